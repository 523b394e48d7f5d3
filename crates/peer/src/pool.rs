//! Idle connections to one server.
//!
//! The connection used last is used first, so that those beyond the usual number become old.

use crate::stream::FrameStream;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const IDLE_MAX: usize = 64;

/// Older connections are closed; servers close those that are silent for longer.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// A connection that was used within this time is not checked before it is used again.
const CHECK_AFTER: Duration = Duration::from_millis(1);

#[derive(Default)]
pub(crate) struct Pool {
    /// From the oldest to the one used last.
    idle: Mutex<VecDeque<(FrameStream, Instant)>>,
}

impl Pool {
    /// A connection that the server has not closed.
    pub(crate) fn take(&self) -> Option<FrameStream> {
        loop {
            let (stream, since) = self.lock().pop_back()?;
            let idle_for = since.elapsed();
            if idle_for < CHECK_AFTER || (idle_for < IDLE_TIMEOUT && !stream.has_ended()) {
                return Some(stream);
            }
        }
    }

    pub(crate) fn put(&self, stream: FrameStream) {
        let now = Instant::now();
        let mut idle = self.lock();
        idle.push_back((stream, now));
        let is_old = |since: &Instant| now.saturating_duration_since(*since) >= IDLE_TIMEOUT;
        let mut closed = Vec::new();
        while idle.len() > IDLE_MAX || idle.front().is_some_and(|(_, since)| is_old(since)) {
            closed.extend(idle.pop_front());
        }
        // Closed without the lock.
        drop(idle);
    }

    /// Closes all: the server does not answer, or has ended.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *self.lock());
        drop(all);
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(FrameStream, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
