//! State of an open log that its leader, its publisher and its waiters share. `log.rs` has the roles and the
//! invariants.

use crate::sync::{Condvar, Mutex};
use crate::waiters::{Waiters, Wake};
use crate::{Durability, LogId, LogOptions, Lsn};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use vervet_env::{Environment, WriteFile};
use vervet_model::Error;

/// Callback for an acknowledged record: runs once, with the record's LSN, after the callback of every earlier
/// record and before any [`Log::wait`](crate::Log::wait) for it returns. Does not run if the log fails first.
pub type Publish = Box<dyn FnOnce(Lsn) + Send>;

/// Hint of the error of a wait for a record without room.
pub(crate) const FULL_HINT: &str = "waiting commits stay in memory and are written as soon as the disk has room; until then all changes are refused";

pub(crate) struct Shared {
    pub(crate) environment: Environment,
    pub(crate) directory: PathBuf,
    pub(crate) id: LogId,
    pub(crate) options: LogOptions,
    pub(crate) state: Mutex<LogState>,
    /// Notified when the file is free or the log failed: for threads that need the file and do not wait for a
    /// record.
    pub(crate) free: Condvar,
    /// Notified when the log closes: for the thread of [`Durability::Interval`].
    pub(crate) closing: Condvar,
    /// Copies of parts of `state`, readable without its lock.
    pub(crate) counters: LogCounters,
}

/// Counters of a log, readable at any time without a lock.
#[derive(Debug, Default)]
pub(crate) struct LogCounters {
    /// See [`LogState::end`].
    pub(crate) end: AtomicU64,
    /// First LSN of the oldest file.
    pub(crate) start: AtomicU64,
    pub(crate) files: AtomicU64,
    pub(crate) syncs: AtomicU64,
    pub(crate) sync_nanoseconds: AtomicU64,
    /// 1 while the log refuses records.
    pub(crate) refuses: AtomicU64,
}

pub(crate) struct LogState {
    /// Bytes that a full disk had no room for: the rest of frames that a leader has begun to write.
    pub(crate) unwritten: Vec<u8>,
    /// The disk-full error; `None` if there was room, and then `unwritten` is empty.
    pub(crate) full: Option<Error>,
    /// Frames that no leader has taken yet; the first one is reserved for a mark.
    pub(crate) buffer: Vec<u8>,
    /// An empty buffer that keeps its allocation.
    pub(crate) spare: Vec<u8>,
    pub(crate) end: u64,
    pub(crate) durable: u64,
    pub(crate) acknowledged: u64,
    /// The largest LSN that a mark in the last file states as synced, or the start of that file.
    pub(crate) proven: u64,
    /// `None`: a leader owns it, or the log has failed.
    pub(crate) active: Option<Active>,
    pub(crate) publishing: bool,
    pub(crate) publish: VecDeque<(u64, Publish)>,
    /// Threads that wait for a record.
    pub(crate) waiters: Waiters,
    /// Number of threads that wait for `free`.
    pub(crate) wanting_file: usize,
    /// First LSNs of the files, ascending.
    pub(crate) files: Vec<u64>,
    pub(crate) failure: Option<Error>,
    pub(crate) closing: bool,
}

/// The file being written.
pub(crate) struct Active {
    pub(crate) file: Box<dyn WriteFile>,
    pub(crate) first: u64,
}

impl Shared {
    /// LSN up to which records may be published.
    pub(crate) fn reachable(&self, state: &LogState) -> u64 {
        let early = self.options.durability != Durability::Sync;
        if early && state.failure.is_none() { state.end } else { state.durable }
    }

    /// Selects the threads that can take a role that is free now: see invariant 4.
    pub(crate) fn call_next(&self, state: &mut LogState, wake: &mut Wake) {
        if state.failure.is_some() {
            state.waiters.call_all(wake);
            self.free.notify_all();
            return;
        }
        let reachable = self.reachable(state);
        if !state.publishing && state.waiters.first().is_some_and(|lsn| lsn <= reachable) {
            state.waiters.call(0, wake);
        }
        self.call_leader(state, wake);
    }

    /// Selects a thread that can take the file, if the file is free.
    pub(crate) fn call_leader(&self, state: &mut LogState, wake: &mut Wake) {
        if state.active.is_some() {
            let reachable = self.reachable(state);
            state.waiters.call(reachable + 1, wake);
            if state.wanting_file > 0 {
                self.free.notify_all();
            }
        }
    }

    /// Updates the copies in `counters`. The caller holds the lock.
    pub(crate) fn count_files(&self, state: &LogState) {
        self.counters.files.store(state.files.len() as u64, Ordering::Relaxed);
        self.counters.start.store(state.files.first().copied().unwrap_or(state.end), Ordering::Relaxed);
        self.counters.end.store(state.end, Ordering::Release);
    }
}
