//! Lock shims: `std`'s locks, or in this crate's unit tests those of `shuttle`.
//!
//! `explore.rs` thereby runs the code of `log.rs` itself under schedules that a seed determines. Unit tests
//! of this crate that create a [`crate::Log`] must therefore run inside `shuttle`; tests in `tests/` use
//! `std`'s locks. The feature `shuttle` does the same for the tests of crates above (`vervet_txn`'s
//! `explore.rs`), which are its only users.

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

/// Locks, ignoring poison: the guarded data is still consistent, since nothing panics between two related
/// changes.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a notification; may wake spuriously.
pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
