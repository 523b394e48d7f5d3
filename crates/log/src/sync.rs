//! Locks: `std`'s, or in this crate's unit tests those of `shuttle`, which decide which thread runs next.
//!
//! So `explore.rs` runs the very code of `log.rs` under schedules that a seed decides. Unit tests of this
//! crate that make a [`crate::Log`] must therefore run inside `shuttle`; tests in `tests/` have `std`'s
//! locks. The feature `shuttle` gives the same to the tests of crates above (`vervet_txn`'s `explore.rs`),
//! and nobody else turns it on.

#[cfg(not(any(test, feature = "shuttle")))]
pub(crate) use std::{
    sync::atomic::AtomicU8,
    sync::{Condvar, Mutex, MutexGuard},
    thread::{Thread, current, park},
};

#[cfg(any(test, feature = "shuttle"))]
pub(crate) use shuttle::{
    sync::atomic::AtomicU8,
    sync::{Condvar, Mutex, MutexGuard},
    thread::{Thread, current, park},
};

use std::sync::PoisonError;

/// What a poisoned lock guards is still whole: nothing panics between two changes that belong together.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits to be notified; may wake for no reason.
pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
