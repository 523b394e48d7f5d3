//! Another server as a part of the graph.
//!
//! # Shape
//! A request that fails because the server does not answer makes it suspected, until a ping succeeds: other
//! servers with the same partitions are asked first meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vervet_model::{ErrorKind, Result, ThreadLimits};
use vervet_partition::{Answer, Remote};
use vervet_peer::{Peer, Pending};

/// How long a probe waits for an answer.
const PROBE_TIME: Duration = Duration::from_millis(500);

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct PeerPart {
    peer: Peer,
    is_suspected: AtomicBool,
}

impl PeerPart {
    pub(crate) fn new(peer: Peer) -> Self {
        Self { peer, is_suspected: AtomicBool::new(false) }
    }

    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Pings the server with the limits of the calling thread.
    pub(crate) fn ping(&self) -> Result<Duration> {
        let ping = self.peer.ping();
        // Relaxed: the flag carries no data.
        self.is_suspected.store(ping.is_err(), Ordering::Relaxed);
        ping
    }

    fn note<T>(&self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| {
            if error.kind() == ErrorKind::Unavailable {
                self.is_suspected.store(true, Ordering::Relaxed);
            }
        })
    }
}

impl Remote for PeerPart {
    fn name(&self) -> &str {
        self.peer.name()
    }

    fn is_suspected(&self) -> bool {
        self.is_suspected.load(Ordering::Relaxed)
    }

    fn probe(&self) {
        let own = ThreadLimits::current();
        let end = Instant::now() + PROBE_TIME;
        let deadline = match own.deadline {
            Some((before, timeout)) if before < end => (before, timeout),
            _ => (end, PROBE_TIME),
        };
        let _limits = ThreadLimits { deadline: Some(deadline), ..own }.enter();
        // What it finds out is noted.
        _ = self.ping();
    }

    fn send<'a>(&'a self, request: &[u8]) -> Result<Box<dyn Answer + 'a>> {
        let pending = self.note(self.peer.send(request))?;
        Ok(Box::new(PendingAnswer { part: self, pending }))
    }
}

struct PendingAnswer<'p> {
    part: &'p PeerPart,
    pending: Pending<'p>,
}

impl Answer for PendingAnswer<'_> {
    fn receive(self: Box<Self>) -> Result<Vec<u8>> {
        self.part.note(self.pending.receive())
    }
}
