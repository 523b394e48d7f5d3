//! Whether the other servers answer: a thread for each pings it every second.
//!
//! # Invariants
//! The state changes slowly, so probes that read it do not flap: a server counts as unreachable from its
//! second failed ping in a row on, and until its first ping that succeeds. A server that has not been pinged
//! counts as unreachable.
//! # Cost
//! An empty request a second to each server.

use crate::peer_part::PeerPart;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;
use vervet_model::{Error, Result, ThreadLimits, lock};

/// Time between two pings of a server.
const PING_INTERVAL: Duration = Duration::from_secs(1);

/// Failed pings in a row from which on a server counts as unreachable.
const FAILURES_MIN: u32 = 2;

/// Stack of a thread that pings, for a handshake of TLS.
const STACK_BYTES: usize = 512 << 10;

/// Whether one server answers. Dropping it ends its thread.
#[derive(Debug)]
pub(crate) struct Reachability {
    state: Arc<State>,
    stop: Arc<Stop>,
}

#[derive(Debug, Default)]
struct Stop {
    is_stopped: Mutex<bool>,
    changed: Condvar,
    /// Cancels pings that are under way.
    cancelled: Arc<AtomicBool>,
}

/// The pings of one server.
#[derive(Debug)]
struct State(Mutex<Pings>);

#[derive(Debug)]
struct Pings {
    failures_in_row: u32,
    /// The error of the last one that failed.
    error: Option<Error>,
}

impl State {
    fn new() -> Self {
        Self(Mutex::new(Pings { failures_in_row: FAILURES_MIN, error: None }))
    }

    fn note(&self, ping: Result<Duration>) {
        let mut pings = lock(&self.0);
        match ping {
            Ok(_) => *pings = Pings { failures_in_row: 0, error: None },
            Err(error) => {
                pings.failures_in_row = pings.failures_in_row.saturating_add(1);
                pings.error = Some(error);
            }
        }
    }

    /// Why the server is unreachable; `None`: it is reachable.
    fn reason(&self) -> Option<String> {
        let pings = lock(&self.0);
        let unknown = || "it has not answered yet".to_owned();
        let reason = || pings.error.as_ref().map_or_else(unknown, |error| error.message().to_owned());
        (pings.failures_in_row >= FAILURES_MIN).then(reason)
    }
}

impl Reachability {
    /// Begins to ping a server.
    ///
    /// # Errors
    /// Io: the system has no more threads.
    pub(crate) fn watch(peer: &Arc<PeerPart>) -> Result<Self> {
        let reachability = Self { state: Arc::new(State::new()), stop: Arc::default() };
        let (peer, state, stop) =
            (Arc::clone(peer), Arc::clone(&reachability.state), Arc::clone(&reachability.stop));
        let thread = Builder::new().name("ping".to_owned()).stack_size(STACK_BYTES);
        let started = thread.spawn(move || {
            let cancelled = Some(Arc::clone(&stop.cancelled));
            let _limits = ThreadLimits { cancelled, ..ThreadLimits::default() }.enter();
            while !stop.is_stopped_after(Duration::ZERO) {
                state.note(peer.ping());
                if stop.is_stopped_after(PING_INTERVAL) {
                    break;
                }
            }
        });
        started.map_err(|error| Error::io("start a thread that pings a server", &error))?;
        Ok(reachability)
    }

    /// Why the server is unreachable; `None`: it is reachable.
    pub(crate) fn reason(&self) -> Option<String> {
        self.state.reason()
    }
}

impl Drop for Reachability {
    fn drop(&mut self) {
        // Relaxed: the flag carries no data.
        self.stop.cancelled.store(true, Ordering::Relaxed);
        *lock(&self.stop.is_stopped) = true;
        self.stop.changed.notify_all();
    }
}

impl Stop {
    /// Waits for the end, at most this long.
    fn is_stopped_after(&self, timeout: Duration) -> bool {
        let is_stopped = lock(&self.is_stopped);
        let waited = self.changed.wait_timeout_while(is_stopped, timeout, |is_stopped| !*is_stopped);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vervet_model::ErrorKind;

    #[test]
    fn one_failed_ping_changes_nothing() {
        let state = State::new();
        let failed = || Err(Error::new(ErrorKind::Unavailable, "gone"));
        assert_eq!(state.reason().as_deref(), Some("it has not answered yet"));
        state.note(Ok(Duration::ZERO));
        state.note(failed());
        assert_eq!(state.reason(), None);
        state.note(Ok(Duration::ZERO));
        state.note(failed());
        assert_eq!(state.reason(), None);
        state.note(failed());
        assert_eq!(state.reason().as_deref(), Some("gone"));
        state.note(Ok(Duration::ZERO));
        assert_eq!(state.reason(), None);
    }
}
