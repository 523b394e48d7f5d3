//! Wait queue of the log: threads that wait for an LSN, each woken individually.
//!
//! # Shape
//! A list by LSN, guarded by the lock of the log. A thread enters itself, releases the lock and parks. The
//! waking thread first takes it out of the list and states the reason: its record is acknowledged, and the
//! waiter returns without the lock; or there may be work for it, and the waiter looks again.
//! # Why not one condition variable
//! With one condition variable each sync woke all waiters twice (written and published), and each took the
//! lock only to find that it had to keep waiting: with sixteen committers 80 µs of processor time a commit,
//! of which 12 µs were work (2026-11-23, two cores).
//! # Cost
//! An allocation and two atomic operations a wait; one system call for each thread that is woken.

use crate::sync::{AtomicU8, Thread, current, park};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The thread still waits.
const WAITING: u8 = 0;
/// See [`Woken`].
const ACKNOWLEDGED: u8 = 1;
const LOOK_AGAIN: u8 = 2;

/// Why a thread was woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Woken {
    /// The record is acknowledged.
    Acknowledged,
    /// A role is free, or the log cannot write any more.
    LookAgain,
}

/// A thread that is in the list, or was in it.
pub(crate) struct Waiter {
    lsn: u64,
    state: AtomicU8,
    thread: Thread,
}

impl Waiter {
    /// Returns when another thread has woken this one. Must be called by the thread that entered the list,
    /// without the lock.
    pub(crate) fn sleep(&self) -> Woken {
        loop {
            // Acquire pairs with the release in `Wake::wake`.
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

/// Threads to wake as soon as the lock is free.
#[derive(Default)]
pub(crate) struct Wake(Vec<(Arc<Waiter>, Woken)>);

impl Wake {
    /// Wakes the threads. Call it without the lock, so that they do not block on it.
    pub(crate) fn wake(self) {
        for (waiter, why) in self.0 {
            let state = if why == Woken::Acknowledged { ACKNOWLEDGED } else { LOOK_AGAIN };
            // Release pairs with the acquire in `sleep`. The waiter may have dropped every other pointer to
            // this entry; its thread still exists.
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

    /// Takes out all waiters for `lsn` or less: they need not look again.
    pub(crate) fn acknowledge(&mut self, lsn: u64, wake: &mut Wake) {
        let count = self.list.partition_point(|waiter| waiter.lsn <= lsn);
        wake.0.extend(self.list.drain(..count).map(|waiter| (waiter, Woken::Acknowledged)));
    }

    /// Takes out the first waiter for at least `from`, to look again; returns whether there was one.
    pub(crate) fn call(&mut self, from: u64, wake: &mut Wake) -> bool {
        let at = self.list.partition_point(|waiter| waiter.lsn < from);
        let Some(waiter) = self.list.remove(at) else { return false };
        wake.0.push((waiter, Woken::LookAgain));
        true
    }

    /// Takes out all waiters, to look again.
    pub(crate) fn call_all(&mut self, wake: &mut Wake) {
        wake.0.extend(self.list.drain(..).map(|waiter| (waiter, Woken::LookAgain)));
    }

    /// The least LSN that a thread waits for.
    pub(crate) fn first(&self) -> Option<u64> {
        self.list.front().map(|waiter| waiter.lsn)
    }
}
