//! Requests of clients that change the graph, sent on to the server that takes changes.
//!
//! A request is [`FORWARD`] and bytes that only the servers above this crate read; so is the answer. Their
//! sender has checked the credentials of the client, and the receiver checks them again. A server that is
//! about to end, or does not answer clients yet, takes none of them: its answer is empty, nothing was
//! changed, and the sender asks the next leader, or the same one later.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use vervet_model::{Result, lock};

/// Kind of the requests: none of those of partitions, tasks, followers, voters and data.
pub(crate) const FORWARD: u8 = 99;

/// Answers a request that another server sends on.
pub type Forwarded = Box<dyn Fn(&[u8]) -> Result<Vec<u8>> + Send + Sync>;

/// What answers forwarded requests, once the server is up. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Receiver(Arc<Shared>);

#[derive(Default)]
struct Shared {
    answer: OnceLock<Forwarded>,
    state: Mutex<State>,
    idle: Condvar,
}

#[derive(Default)]
struct State {
    running: usize,
    is_ending: bool,
}

/// A request that runs.
struct Running<'a>(&'a Shared);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).running -= 1;
        self.0.idle.notify_all();
    }
}

impl Receiver {
    /// The first call counts.
    pub(crate) fn set(&self, answer: Forwarded) {
        _ = self.0.answer.set(answer);
    }

    /// Takes no more requests.
    pub(crate) fn end(&self) {
        lock(&self.0.state).is_ending = true;
    }

    pub(crate) fn is_ending(&self) -> bool {
        lock(&self.0.state).is_ending
    }

    /// Waits for the requests that run, for `time_max` at most.
    pub(crate) fn wait_until_idle(&self, time_max: Duration) {
        let state = lock(&self.0.state);
        let waited = self.0.idle.wait_timeout_while(state, time_max, |state| state.running > 0);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Answers a request; empty: nothing was changed, since this server is about to end, or not up yet.
    ///
    /// # Errors
    /// Those of the receiver.
    pub(crate) fn answer(&self, request: &[u8]) -> Result<Vec<u8>> {
        let _running = {
            let mut state = lock(&self.0.state);
            if state.is_ending {
                return Ok(Vec::new());
            }
            state.running += 1;
            Running(&self.0)
        };
        match self.0.answer.get() {
            Some(answer) => answer(request),
            None => Ok(Vec::new()),
        }
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Receiver").field(&self.0.answer.get().is_some()).finish()
    }
}
