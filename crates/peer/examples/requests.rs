//! What a request costs: requests a second, and CPU time of both ends together, for some sizes and numbers of
//! threads. Client and server are in this process, on loopback.
//!
//! ```sh
//! cargo run --release -p vervet-peer --example requests -- [SECONDS [BYTES_OF_ANSWER]]
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vervet_model::{Error, Result};
use vervet_peer::{Authority, Handler, Hello, Identity, Peer, PeerServer, Protocol};

/// Answers with as many bytes as the first four say.
struct Bytes;

impl Handler for Bytes {
    fn answer(&self, request: &[u8], _protocol: Protocol, out: &mut Vec<u8>) -> Result<()> {
        let count = request.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        out.resize(usize::try_from(count).unwrap_or(0), 7);
        Ok(())
    }
}

fn main() -> Result<()> {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2.0);
    let authority = Authority::new("requests")?;
    let identity = |server: &str| -> Result<Arc<Identity>> {
        let files = authority.issue(server)?;
        let (authority, certificate, key) = (&files.authority, &files.certificate, &files.key);
        Ok(Arc::new(Identity::from_pem(authority.as_bytes(), certificate.as_bytes(), key.as_bytes())?))
    };
    let hello = |server: &str| Hello::new(1, server);
    let server = PeerServer::bind("127.0.0.1:0", identity("b")?, hello("b"), Arc::new(Bytes))?;
    let peer = Peer::new("b", &server.local_address().to_string(), identity("a")?, hello("a"));
    println!("request answer  threads in flight  requests/s  wall us  CPU us (both ends)");
    let only: Option<u32> = std::env::args().nth(2).and_then(|text| text.parse().ok());
    for (answer, threads, in_flight) in [
        (100, 1, 1),
        (100, 16, 1),
        (400, 1, 1),
        (400, 1, 4),
        (400, 1, 16),
        (400, 4, 1),
        (400, 16, 1),
        (65_536, 1, 1),
        (65_536, 1, 16),
        (65_536, 16, 1),
        (8 << 20, 1, 1),
    ] {
        if only.is_some_and(|only| only != answer) {
            continue;
        }
        let mut request = vec![1; 100];
        request[..4].copy_from_slice(&u32::to_le_bytes(answer));
        run(&peer, &request, threads, in_flight, Duration::from_secs_f64(seconds / 10.0))?;
        let (cpu, start) = (cpu_seconds(), Instant::now());
        let count = run(&peer, &request, threads, in_flight, Duration::from_secs_f64(seconds))?;
        let (wall, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
        let requests = f64::from(count);
        println!(
            "{:7} {answer:7} {threads:7} {in_flight:9} {:12.0} {:8.1} {:7.1}",
            request.len(),
            requests / wall,
            wall / requests * 1e6,
            cpu / requests * 1e6
        );
    }
    connects(&server, &identity("a")?, &hello("a"), seconds)
}

/// New connections, one after the other.
fn connects(server: &PeerServer, identity: &Arc<Identity>, hello: &Hello, seconds: f64) -> Result<()> {
    let (cpu, start, mut count) = (cpu_seconds(), Instant::now(), 0);
    while start.elapsed().as_secs_f64() < seconds {
        let address = server.local_address().to_string();
        Peer::new("b", &address, Arc::clone(identity), hello.clone()).ping()?;
        count += 1;
    }
    let (wall, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let count = f64::from(count);
    println!(
        "connection and ping: wall {:.0} us, CPU {:.0} us (both ends)",
        wall / count * 1e6,
        cpu / count * 1e6
    );
    Ok(())
}

/// How many requests `threads` threads end, each with so many in flight at a time.
fn run(peer: &Peer, request: &[u8], threads: u32, in_flight: u32, time: Duration) -> Result<u32> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let work = || {
            let mut count = 0;
            while !is_over.load(Ordering::Relaxed) {
                let mut pending = Vec::new();
                for _ in 0..in_flight {
                    pending.push(peer.send(request)?);
                }
                for pending in pending {
                    pending.receive()?;
                    count += 1;
                }
            }
            Ok::<u32, Error>(count)
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        std::thread::sleep(time);
        is_over.store(true, Ordering::Relaxed);
        workers.into_iter().map(|worker| worker.join().unwrap_or(Ok(0))).sum()
    })
}

/// CPU time of this process: 0 where the system does not say.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    // User and system time, in hundredths of a second.
    fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}
