//! Synchronization shims: locks, counters, and pointers to versions.
//!
//! They are `std`'s and `arc_swap`'s, or with the feature `shuttle` those of `shuttle`, which controls thread
//! scheduling. `explore.rs` thereby runs the code of this crate, and of the log and the terms below it, under
//! schedules that a seed determines. State accessed only through these shims is decided by the schedule;
//! state that is set once and never waited for (`OnceLock`), and the read set, which belongs to one
//! transaction, use `std`'s types.

#[cfg(not(feature = "shuttle"))]
pub(crate) use arc_swap::ArcSwap;
#[cfg(not(feature = "shuttle"))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64};
#[cfg(not(feature = "shuttle"))]
pub(crate) use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU64};
#[cfg(feature = "shuttle")]
pub(crate) use shuttle::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use std::sync::PoisonError;

/// Locks, ignoring poison: the data guarded by these mutexes is consistent after each change.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A pointer that is read and replaced atomically, like that of `arc_swap`.
#[cfg(feature = "shuttle")]
#[derive(Debug)]
pub(crate) struct ArcSwap<T>(Mutex<std::sync::Arc<T>>);

#[cfg(feature = "shuttle")]
impl<T> ArcSwap<T> {
    pub(crate) fn new(value: std::sync::Arc<T>) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn load(&self) -> std::sync::Arc<T> {
        self.load_full()
    }

    pub(crate) fn load_full(&self) -> std::sync::Arc<T> {
        std::sync::Arc::clone(&lock(&self.0))
    }

    pub(crate) fn store(&self, value: std::sync::Arc<T>) {
        *lock(&self.0) = value;
    }
}
