//! The connections of a server that loads together with others.
//!
//! # Shape
//! The servers are numbered by name; the first one makes the answers of rounds. A thread watches the others:
//! one that is gone stops the load here, and the end of this process stops it there.

use super::requests::{self, CHUNK_BYTES, Requests};
use super::state::{Blob, Round, State};
use crate::map::ClusterMap;
use crate::peer_part::PeerPart;
use crate::reachability::Reachability;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vervet_codec::load_u64;
use vervet_env::Bytes;
use vervet_model::{Error, ErrorKind, Result, ThreadLimits, lock};
use vervet_partition::Remote;
use vervet_peer::{Hello, Identity, Peer, PeerServer};

/// A server that has not answered a ping for this long is gone.
const GONE_AFTER: Duration = Duration::from_secs(6);

/// Time between two looks at the other servers, and between two attempts to reach the first one.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// Instead of the number of the build, in the number that servers of one cluster share: a server that loads
/// and one that serves refuse each other.
const LOADING: u64 = u64::from_le_bytes(*b"LOADING\0");

/// See the header of this file.
pub(crate) struct Link {
    pub(crate) own: usize,
    /// Name and partitions of each server.
    pub(crate) servers: Vec<(String, Vec<usize>)>,
    /// The others; `None` at the own place.
    peers: Vec<Option<Arc<PeerPart>>>,
    pub(crate) state: Arc<State>,
    watcher: Option<JoinHandle<()>>,
    watching: Arc<Watching>,
    sent: AtomicU64,
    /// Answers until this value is dropped.
    _server: PeerServer,
}

/// What the thread that watches is told.
#[derive(Default)]
struct Watching {
    is_ended: Mutex<bool>,
    changed: Condvar,
    /// All servers have joined: from now on one that does not answer is gone.
    has_joined: AtomicBool,
}

impl Link {
    pub(crate) fn start(map: &ClusterMap, identity: Arc<Identity>, signals: Signals) -> Result<Self> {
        let own = map.own()?;
        let mut entries: Vec<_> = map.servers.iter().collect();
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        let number = map.number(LOADING);
        let hello = || Hello::new(number, &own.name);
        let state = Arc::new(State::new());
        let names: Vec<String> = entries.iter().map(|entry| entry.name.clone()).collect();
        let position = names.iter().position(|name| *name == own.name);
        let position = position.ok_or_else(|| Error::internal("a server that is not in its map"))?;
        let requests = Arc::new(Requests { state: Arc::clone(&state), names, own: position });
        let bind = map.bind.clone().unwrap_or_else(|| own.address.clone());
        let server = PeerServer::bind(&bind, Arc::clone(&identity), hello(), requests)
            .map_err(|error| error.with_hint("end the server that uses this directory before a load"))?;
        let peer = |entry: &&crate::map::ServerEntry| {
            let peer = Peer::new(&entry.name, &entry.address, Arc::clone(&identity), hello());
            (entry.name != own.name).then(|| Arc::new(PeerPart::new(peer)))
        };
        let peers: Vec<_> = entries.iter().map(peer).collect();
        let servers = entries.iter().map(|entry| (entry.name.clone(), entry.partitions.clone())).collect();
        let watching = Arc::<Watching>::default();
        let others: Vec<_> = peers.iter().flatten().cloned().collect();
        let reachability = others.iter().map(Reachability::watch).collect::<Result<Vec<_>>>()?;
        let watcher = {
            let (state, watching) = (Arc::clone(&state), Arc::clone(&watching));
            let thread = std::thread::Builder::new().name("load-watch".to_owned());
            let names = others.iter().map(|peer| peer.peer().name().to_owned()).collect();
            thread
                .spawn(move || watch(&reachability, names, &state, &watching, signals))
                .map_err(|error| Error::io("start a thread that watches the servers", &error))?
        };
        Ok(Self {
            own: position,
            servers,
            peers,
            state,
            watcher: Some(watcher),
            watching,
            sent: AtomicU64::new(0),
            _server: server,
        })
    }

    pub(crate) fn count(&self) -> usize {
        self.servers.len()
    }

    pub(crate) fn is_first(&self) -> bool {
        self.own == 0
    }

    /// Bytes sent to other servers.
    pub(crate) fn bytes_sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// All servers have joined.
    pub(crate) fn joined(&self) {
        self.watching.has_joined.store(true, Ordering::Relaxed);
    }

    /// All have what they need of each other: they may end.
    pub(crate) fn leave(&self) {
        self.watching.has_joined.store(false, Ordering::Relaxed);
    }

    fn peer(&self, server: usize) -> Result<&Arc<PeerPart>> {
        let peer = self.peers.get(server).and_then(Option::as_ref);
        peer.ok_or_else(|| Error::internal("a request to no other server"))
    }

    /// Sends a request and waits for the answer.
    pub(crate) fn ask(&self, server: usize, mut request: Vec<u8>) -> Result<Vec<u8>> {
        self.sent.fetch_add(request.len() as u64, Ordering::Relaxed);
        requests::set_build(&mut request, self.state.build().unwrap_or_default());
        let answer = self.peer(server)?.send(&request).and_then(|pending| pending.receive());
        answer.map_err(|error| self.state.heard(error))
    }

    /// Waits until the first server answers.
    ///
    /// # Errors
    /// Unavailable: it does not within `timeout`; the reason.
    pub(crate) fn wait_for_first(&self, timeout: Duration, report: &dyn Fn(&Error)) -> Result<()> {
        let begun = Instant::now();
        loop {
            let Err(error) = self.peer(0)?.peer().ping() else { return Ok(()) };
            if error.kind() != ErrorKind::Unavailable || begun.elapsed() >= timeout {
                return Err(error);
            }
            report(&error);
            self.watching.sleep(LOOK_INTERVAL);
            ThreadLimits::check()?;
        }
    }

    /// Sends a piece to the first server and returns its answer, which `merge` makes there of all pieces.
    pub(crate) fn gather(
        &self,
        round: Round,
        piece: Vec<u8>,
        merge: impl FnOnce(Vec<Vec<u8>>) -> Result<Vec<u8>>,
    ) -> Result<Bytes> {
        if self.is_first() {
            let others = self.state.collect(round, self.count())?;
            let pieces = std::iter::once(piece).chain(others).collect();
            let answer = Bytes::from(merge(pieces)?);
            self.state.publish(Blob::Answer(round), answer.clone());
            return Ok(answer);
        }
        let total = piece.len() as u64;
        let mut offset = 0;
        loop {
            let chunk = &piece[offset..piece.len().min(offset + CHUNK_BYTES)];
            self.ask(0, requests::piece((round, self.own), (offset as u64, total), chunk))?;
            offset += chunk.len();
            if offset == piece.len() {
                break;
            }
        }
        let mut answer = Vec::new();
        self.read(0, Blob::Answer(round), &mut |chunk| {
            answer.extend_from_slice(chunk);
            Ok(())
        })?;
        Ok(Bytes::from(answer))
    }

    /// Reads bytes of another server, chunk after chunk.
    pub(crate) fn read(
        &self,
        server: usize,
        blob: Blob,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut offset = 0;
        loop {
            let answer = self.ask(server, requests::get(blob, offset))?;
            let short = || Error::corrupt("an answer of another server", "it ends early");
            let chunk = answer.get(8..).ok_or_else(short)?;
            let total = load_u64(&answer, 0);
            each(chunk)?;
            offset += chunk.len() as u64;
            if offset >= total {
                return Ok(());
            }
            if chunk.is_empty() {
                return Err(short());
            }
        }
    }

    /// Tells the others that the load has stopped, as far as they answer.
    pub(crate) fn stop_others(&self, reason: &Error) {
        let mut request = requests::stop(self.own, reason.message());
        requests::set_build(&mut request, self.state.build().unwrap_or_default());
        std::thread::scope(|scope| {
            for peer in self.peers.iter().flatten() {
                // Without a limit that the stop has set; it may be gone, or have ended.
                scope.spawn(|| peer.send(&request).and_then(|pending| pending.receive()).is_ok());
            }
        });
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        *lock(&self.watching.is_ended) = true;
        self.watching.changed.notify_all();
        if let Some(watcher) = self.watcher.take() {
            _ = watcher.join();
        }
    }
}

impl Watching {
    /// Waits, at most until the end; returns whether it has come.
    fn sleep(&self, time: Duration) -> bool {
        let is_ended = lock(&self.is_ended);
        let waited = self.changed.wait_timeout_while(is_ended, time, |is_ended| !*is_ended);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// The flag that cancels a load, and what is called when it stops.
type Signals = (Option<&'static AtomicBool>, Option<fn(&Error)>);

/// Stops the load when it is cancelled, and when a server is gone.
fn watch(
    reachability: &[Reachability],
    names: Vec<String>,
    state: &State,
    watching: &Watching,
    (cancelled, mut on_stop): Signals,
) {
    let mut seen = vec![Instant::now(); names.len()];
    while !watching.sleep(LOOK_INTERVAL) {
        if cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed)) {
            state.stop(Error::new(ErrorKind::Cancelled, "the load was cancelled"));
        }
        if let Some(error) = state.stopped()
            && let Some(call) = on_stop.take()
        {
            call(&error);
        }
        let has_joined = watching.has_joined.load(Ordering::Relaxed);
        for ((name, seen), reason) in names.iter().zip(&mut seen).zip(reachability) {
            match reason.reason() {
                Some(reason) if has_joined && seen.elapsed() >= GONE_AFTER => {
                    let what = format!("server {name} is gone: {reason}");
                    state.stop(Error::new(ErrorKind::Unavailable, what));
                }
                Some(_) if has_joined => {}
                _ => *seen = Instant::now(),
            }
        }
    }
}
