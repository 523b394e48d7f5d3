//! Connections between servers through this process, which delays and holds what they send.
//!
//! # Shape
//! Each server has an address of its own for each other one: a listener of this process, which passes the
//! bytes of a connection on to the real address ([`Relays::address`]). So there is a link for each ordered
//! pair of servers, with a delay, or cut: what is sent over a cut link waits, also the end of a connection,
//! and arrives when the link is back, as the repetitions of TCP would bring it. The link in the other
//! direction does not notice, so a partition can be one-way.
//! # Why not the kernel
//! `netem` is not in every kernel, and rules for links need rights that tests do not have everywhere.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Bytes that are passed on at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Chunks of a connection that wait for their time.
const CHUNKS_MAX: usize = 256;

/// The longest wait of a thread before it looks whether all has ended.
const LOOK_MAX: Duration = Duration::from_millis(200);

/// Time between two looks at a cut link.
const CUT_INTERVAL: Duration = Duration::from_millis(2);

/// What is sent from one server to another one.
#[derive(Debug, Default)]
struct Link {
    is_cut: AtomicBool,
    delay_ms: AtomicU64,
}

/// The links of some servers. All threads end with this value.
#[derive(Debug)]
pub struct Relays {
    /// By sender and receiver.
    links: Vec<Vec<Arc<Link>>>,
    /// The listeners, in the same order; none for a server and itself.
    addresses: Vec<Vec<String>>,
    is_over: Arc<AtomicBool>,
}

impl Relays {
    /// Links between servers with these real addresses.
    ///
    /// # Errors
    /// No port is free.
    pub fn start(real: &[String]) -> std::io::Result<Self> {
        let count = real.len();
        let link = |_| (0..count).map(|_| Arc::default()).collect();
        let links: Vec<Vec<Arc<Link>>> = (0..count).map(link).collect();
        let is_over = Arc::<AtomicBool>::default();
        let mut relays = Self { links, addresses: Vec::new(), is_over };
        for from in 0..count {
            let mut addresses = Vec::new();
            for (to, target) in real.iter().enumerate() {
                addresses.push(if from == to { target.clone() } else { relays.listen(from, to, target)? });
            }
            relays.addresses.push(addresses);
        }
        Ok(relays)
    }

    fn listen(&self, from: usize, to: usize, target: &str) -> std::io::Result<String> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let (there, back) = (Arc::clone(&self.links[from][to]), Arc::clone(&self.links[to][from]));
        let (target, is_over) = (target.to_owned(), Arc::clone(&self.is_over));
        std::thread::spawn(move || {
            while let Ok((near, _)) = listener.accept() {
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
                // Where nothing listens, the connection ends at once, as it would without this process.
                let Ok(far) = TcpStream::connect(&target) else { continue };
                for (source, sink, link) in [(&near, &far, &there), (&far, &near, &back)] {
                    let (Ok(source), Ok(sink)) = (source.try_clone(), sink.try_clone()) else { continue };
                    let (link, is_over) = (Arc::clone(link), Arc::clone(&is_over));
                    std::thread::spawn(move || pass_on(source, sink, link, is_over));
                }
            }
        });
        Ok(address)
    }

    /// The address at which `from` reaches `to`.
    #[must_use]
    pub fn address(&self, from: usize, to: usize) -> &str {
        &self.addresses[from][to]
    }

    /// What `from` sends to `to` waits, or arrives again.
    pub fn set_cut(&self, from: usize, to: usize, is_cut: bool) {
        self.links[from][to].is_cut.store(is_cut, Ordering::SeqCst);
    }

    /// What `from` sends to `to` takes so much longer.
    pub fn set_delay(&self, from: usize, to: usize, delay: Duration) {
        let delay = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.links[from][to].delay_ms.store(delay, Ordering::SeqCst);
    }

    /// All links are as at the start.
    pub fn heal(&self) {
        for link in self.links.iter().flatten() {
            link.is_cut.store(false, Ordering::SeqCst);
            link.delay_ms.store(0, Ordering::SeqCst);
        }
    }
}

impl Drop for Relays {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        for (from, addresses) in self.addresses.iter().enumerate() {
            let listeners = addresses.iter().enumerate().filter(|(to, _)| *to != from);
            // A thread that waits for a connection gets one, and ends.
            listeners.for_each(|(_, address)| drop(TcpStream::connect(address)));
        }
    }
}

/// Sends the bytes of `source` to `sink` until `source` ends. A second thread waits for the delay of each
/// chunk: a slow link has the throughput of a fast one.
fn pass_on(mut source: TcpStream, sink: TcpStream, link: Arc<Link>, is_over: Arc<AtomicBool>) {
    let prepared = source.set_read_timeout(Some(LOOK_MAX)).and_then(|()| sink.set_nodelay(true));
    let Ok(end) = prepared.and_then(|()| source.try_clone()) else { return };
    let (sender, chunks) = sync_channel(CHUNKS_MAX);
    let (writer_link, writer_is_over) = (Arc::clone(&link), Arc::clone(&is_over));
    std::thread::spawn(move || {
        write_chunks(&chunks, &sink, &writer_link, &writer_is_over);
        let _ = end.shutdown(Shutdown::Both);
        let _ = sink.shutdown(Shutdown::Both);
    });
    let mut chunk = vec![0; CHUNK_BYTES];
    while !is_over.load(Ordering::SeqCst) {
        let length = match source.read(&mut chunk) {
            Ok(length) => length,
            Err(error) if is_timeout(&error) => continue,
            Err(_) => 0,
        };
        let delay = Duration::from_millis(link.delay_ms.load(Ordering::SeqCst));
        // The end of a connection is an empty chunk.
        if sender.send((Instant::now() + delay, chunk[..length].to_vec())).is_err() || length == 0 {
            return;
        }
    }
}

/// Writes each chunk at its time, but not while the link is cut, until an empty one.
fn write_chunks(
    chunks: &Receiver<(Instant, Vec<u8>)>,
    mut sink: &TcpStream,
    link: &Link,
    is_over: &AtomicBool,
) {
    for (due, chunk) in chunks {
        sleep(due.saturating_duration_since(Instant::now()));
        while link.is_cut.load(Ordering::SeqCst) && !is_over.load(Ordering::SeqCst) {
            sleep(CUT_INTERVAL);
        }
        if chunk.is_empty() || sink.write_all(&chunk).is_err() {
            return;
        }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut | std::io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link that is cut holds what is sent in its direction alone, and delivers it afterwards.
    #[test]
    fn links_are_cut_in_one_direction() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let real = listener.local_addr().expect("an address").to_string();
        let relays = Relays::start(&["127.0.0.1:1".to_owned(), real]).expect("links");
        let mut near = TcpStream::connect(relays.address(0, 1)).expect("a connection");
        let (mut far, _) = listener.accept().expect("it arrives");
        for stream in [&near, &far] {
            stream.set_read_timeout(Some(Duration::from_millis(100))).expect("a limit");
        }
        let mut byte = [0];
        relays.set_cut(0, 1, true);
        near.write_all(b"a").expect("it is sent");
        assert!(far.read_exact(&mut byte).is_err());
        far.write_all(b"b").expect("it is sent");
        far.set_read_timeout(Some(Duration::from_secs(5))).expect("a limit");
        near.set_read_timeout(Some(Duration::from_secs(5))).expect("a limit");
        near.read_exact(&mut byte).expect("the other direction is whole");
        relays.heal();
        far.read_exact(&mut byte).expect("it arrives now");
        assert_eq!(&byte, b"a");
        relays.set_delay(1, 0, Duration::from_millis(80));
        let begun = Instant::now();
        far.write_all(b"c").expect("it is sent");
        near.read_exact(&mut byte).expect("it arrives late");
        assert!(begun.elapsed() >= Duration::from_millis(80));
        // The end of one side is the end of the other one.
        drop(far);
        assert_eq!(near.read(&mut byte).expect("the end"), 0);
    }
}
