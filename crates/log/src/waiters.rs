//! Threads that wait for the log, each woken alone.
//!
//! # Shape
//! A list by LSN, guarded by the lock of the log. A thread enters itself, lets go of the lock and parks. Who
//! wakes it takes it out of the list first and says why: its record is acknowledged, and then it returns
//! without the lock; or there may be something for it to do, and then it looks again.
//! # Why not one condition variable
//! Each sync woke all who waited, twice (written and published), and each took the lock to find that it had
//! to wait on: with sixteen committers 80 µs of processor time a commit, of which 12 µs were work
//! (2026-11-23, two cores).
//! # Cost
//! An allocation and two atomic operations a wait; one call of the system for each thread that is woken.

use crate::sync::{AtomicU8, Thread, current, park};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// It still waits.
const WAITING: u8 = 0;
/// See [`Woken`].
const ACKNOWLEDGED: u8 = 1;
const LOOK_AGAIN: u8 = 2;

/// Why a thread was woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Woken {
    /// What it waited for has happened.
    Acknowledged,
    /// A role is free, or the log can write no more.
    LookAgain,
}

/// A thread that is in the list, or was.
pub(crate) struct Waiter {
    lsn: u64,
    state: AtomicU8,
    thread: Thread,
}

impl Waiter {
    /// Returns when another thread has woken this one. To be called by the thread that entered it, without
    /// the lock.
    pub(crate) fn sleep(&self) -> Woken {
        loop {
            // Acquire: what the waker did before is seen.
            match self.state.load(Ordering::Acquire) {
                WAITING => park(),
                ACKNOWLEDGED => return Woken::Acknowledged,
                _ => return Woken::LookAgain,
            }
        }
    }
}

/// See the header of this file.
#[derive(Default)]
pub(crate) struct Waiters {
    /// Ascending by LSN.
    list: VecDeque<Arc<Waiter>>,
}

/// Threads that are to be woken as soon as the lock is free.
#[derive(Default)]
pub(crate) struct Wake(Vec<(Arc<Waiter>, Woken)>);

impl Wake {
    /// Wakes them. Without the lock, so that they do not run into it.
    pub(crate) fn wake(self) {
        for (waiter, why) in self.0 {
            let state = if why == Woken::Acknowledged { ACKNOWLEDGED } else { LOOK_AGAIN };
            // Release: see `sleep`. The waiter may be gone with its last pointer but this one, its thread is
            // not.
            waiter.state.store(state, Ordering::Release);
            waiter.thread.unpark();
        }
    }
}

impl Waiters {
    /// Enters the calling thread, which waits for `lsn`.
    pub(crate) fn enter(&mut self, lsn: u64) -> Arc<Waiter> {
        let waiter = Arc::new(Waiter { lsn, state: AtomicU8::new(WAITING), thread: current() });
        let at = self.list.partition_point(|other| other.lsn <= lsn);
        self.list.insert(at, Arc::clone(&waiter));
        waiter
    }

    /// Takes out all who wait for `lsn` or less: they need not look again.
    pub(crate) fn acknowledge(&mut self, lsn: u64, wake: &mut Wake) {
        let count = self.list.partition_point(|waiter| waiter.lsn <= lsn);
        wake.0.extend(self.list.drain(..count).map(|waiter| (waiter, Woken::Acknowledged)));
    }

    /// Takes out the first one that waits for at least `from`, to look again; whether there is one.
    pub(crate) fn call(&mut self, from: u64, wake: &mut Wake) -> bool {
        let at = self.list.partition_point(|waiter| waiter.lsn < from);
        let Some(waiter) = self.list.remove(at) else { return false };
        wake.0.push((waiter, Woken::LookAgain));
        true
    }

    /// Takes out all, to look again.
    pub(crate) fn call_all(&mut self, wake: &mut Wake) {
        wake.0.extend(self.list.drain(..).map(|waiter| (waiter, Woken::LookAgain)));
    }

    /// The least LSN that anybody waits for.
    pub(crate) fn first(&self) -> Option<u64> {
        self.list.front().map(|waiter| waiter.lsn)
    }
}
