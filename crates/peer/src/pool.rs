//! Idle connections to one server.
//!
//! The connection used last is used first, so that those beyond the usual number become old.

use crate::protocol::Protocol;
use crate::stream::FrameStream;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const IDLE_MAX: usize = 64;

/// Older connections are closed; servers close those that are silent for longer.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// A connection that was used within this time is not checked before it is used again.
const CHECK_AFTER: Duration = Duration::from_millis(1);

/// A connection of a client.
pub(crate) struct PeerConnection {
    pub(crate) stream: FrameStream,
    /// The protocol on which both ends have agreed.
    pub(crate) protocol: Protocol,
    /// Not used for another request from this time on.
    pub(crate) expires_at: Option<Instant>,
}

#[derive(Default)]
pub(crate) struct Pool {
    /// From the oldest to the one used last.
    idle: Mutex<VecDeque<(PeerConnection, Instant)>>,
}

impl Pool {
    /// A connection that the server has not closed. `note_ended` is called for each one that it has closed.
    pub(crate) fn take(&self, note_ended: impl Fn()) -> Option<PeerConnection> {
        loop {
            let (connection, since) = self.lock().pop_back()?;
            let idle_for = since.elapsed();
            if idle_for >= IDLE_TIMEOUT {
                continue;
            }
            if idle_for < CHECK_AFTER || !connection.stream.has_ended() {
                return Some(connection);
            }
            note_ended();
        }
    }

    pub(crate) fn put(&self, connection: PeerConnection) {
        let now = Instant::now();
        if connection.expires_at.is_some_and(|at| at <= now) {
            return;
        }
        let mut idle = self.lock();
        idle.push_back((connection, now));
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

    fn lock(&self) -> MutexGuard<'_, VecDeque<(PeerConnection, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
