//! Deadline, cancellation and counts of the request that a thread works for, for code without a parameter for
//! them: reads of other servers, far below the query that causes them.
//!
//! # Shape
//! A thread that begins to work for a request enters its limits; code that waits calls
//! [`ThreadLimits::check`], and waits no longer than [`ThreadLimits::remaining`].
//! # Cost
//! Some 10 ns to enter and to leave; nothing for code that does not wait.

use crate::{Error, ErrorKind, RemoteReads, Result};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The error of a request that was cancelled.
#[must_use]
pub fn cancelled_error() -> Error {
    Error::new(ErrorKind::Cancelled, "the query was cancelled")
}

/// The error of a request that did not end in time.
#[must_use]
pub fn deadline_error(timeout: Duration) -> Error {
    let message = format!("the query did not end within its timeout of {timeout:?}");
    Error::new(ErrorKind::Deadline, message)
        .with_hint("raise the timeout, or restrict the query (more constants, LIMIT)")
}

thread_local! {
    static CURRENT: RefCell<ThreadLimits> =
        const { RefCell::new(ThreadLimits { cancelled: None, deadline: None, reads: None }) };
}

/// See the header of this file.
#[derive(Clone, Debug, Default)]
pub struct ThreadLimits {
    /// Set by another thread to cancel.
    pub cancelled: Option<Arc<AtomicBool>>,
    /// The deadline, and the timeout (for the message).
    pub deadline: Option<(Instant, Duration)>,
    /// Counts the reads of other servers, if the query is profiled.
    pub reads: Option<Arc<RemoteReads>>,
}

/// Restores the earlier limits of the thread when it is dropped.
#[must_use = "the limits end with it"]
#[derive(Debug)]
pub struct EnteredLimits {
    before: ThreadLimits,
}

impl ThreadLimits {
    /// Makes these the limits of the calling thread.
    pub fn enter(self) -> EnteredLimits {
        EnteredLimits { before: CURRENT.replace(self) }
    }

    /// The limits of the calling thread.
    #[must_use]
    pub fn current() -> Self {
        CURRENT.with_borrow(Self::clone)
    }

    /// What counts the reads of the calling thread, if anything does.
    #[must_use]
    pub fn reads() -> Option<Arc<RemoteReads>> {
        CURRENT.with_borrow(|limits| limits.reads.clone())
    }

    /// Checks the limits of the calling thread.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`], [`ErrorKind::Deadline`].
    pub fn check() -> Result<()> {
        CURRENT.with_borrow(|limits| {
            // Relaxed: the flag carries no data.
            if limits.cancelled.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                return Err(cancelled_error());
            }
            match limits.deadline {
                Some((deadline, timeout)) if Instant::now() >= deadline => Err(deadline_error(timeout)),
                _ => Ok(()),
            }
        })
    }

    /// The time that is left to the calling thread; `None`: no deadline.
    #[must_use]
    pub fn remaining() -> Option<Duration> {
        let deadline = CURRENT.with_borrow(|limits| limits.deadline);
        deadline.map(|(deadline, _)| deadline.saturating_duration_since(Instant::now()))
    }
}

impl Drop for EnteredLimits {
    fn drop(&mut self) {
        CURRENT.set(std::mem::take(&mut self.before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_hold_from_entering_to_leaving() {
        let flag = Arc::new(AtomicBool::new(false));
        let outer = ThreadLimits { cancelled: Some(Arc::clone(&flag)), ..ThreadLimits::default() }.enter();
        assert!(ThreadLimits::check().is_ok() && ThreadLimits::remaining().is_none());
        {
            let past = (Instant::now(), Duration::ZERO);
            let _inner = ThreadLimits { deadline: Some(past), ..ThreadLimits::default() }.enter();
            flag.store(true, Ordering::Relaxed);
            assert_eq!(ThreadLimits::check().map_err(|error| error.kind()), Err(ErrorKind::Deadline));
            assert_eq!(ThreadLimits::remaining(), Some(Duration::ZERO));
        }
        assert_eq!(ThreadLimits::check().map_err(|error| error.kind()), Err(ErrorKind::Cancelled));
        drop(outer);
        assert!(ThreadLimits::check().is_ok());
    }
}
