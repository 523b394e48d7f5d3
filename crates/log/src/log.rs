//! Appending, and waiting until it is safe: group commit.
//!
//! # Shape
//! One lock around a small [`State`]: a buffer, and LSNs up to which the log is appended, synced, acknowledged. Two
//! roles, each held by one thread at a time, neither under the lock:
//!
//! * the **leader** has the file: it writes the buffer, and syncs (`flush.rs`);
//! * the **announcer** runs what is to be published ([`Publish`]), in the order of LSNs.
//!
//! A thread that waits takes whatever role its wait needs and nobody has; else it sleeps until something changes.
//! So the first of many committers syncs for itself, those that come meanwhile gather in the buffer, and the
//! next leader syncs for all of them. No thread polls, and at [`Level::Sync`] there is no thread of the log's own.
//! (Leader and followers: DeWitt et al., "Implementation Techniques for Main Memory Database Systems",
//! SIGMOD 1984, has group commit; the form without a log thread is that of LevelDB's writer queue. Here the
//! leader is free to be a waiter of any place, since the order is fixed when a record is appended.)
//! # Invariants
//! 1. `acknowledged`, `durable` <= `end`; the buffer holds the bytes before `end`, and what precedes them is
//!    written, or in the hands of the leader.
//! 2. The announcer never holds the file, so what it runs may wait for locks that are held while appending.
//! 3. Once `failure` is set, no leader starts. A failed sync is never tried again: after one, the system may
//!    call pages clean that it has not written, and a second sync would say yes (Rebello et al., "Can Applications
//!    Recover from fsync Failures?", USENIX ATC 2020). Opening again copies whatever is not known to be synced
//!    into a new file, and so does not trust those pages either.
//! # Cost
//! Appending: one lock, a copy, a hash. A wait at [`Level::Sync`]: about one sync for all who wait at that time.

use crate::files;
use crate::flush::Leader;
use crate::frame::{self, HEAD_BYTES, MARK_BYTES};
use crate::sync::{Condvar, Mutex, MutexGuard, lock, wait};
use crate::{KIND_MAX, Level, LogId, LogOptions, Lsn, RECORD_BYTES_MAX, WRITE_BYTES};
use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use vervet_env::{Environment, WriteFile};
use vervet_model::{Error, ErrorKind, Result};

/// What is to happen once a record is acknowledged: run once, with its LSN, after that of every record before it
/// and before any [`Log::wait`] for it returns. Not run if the log fails first.
pub type Publish = Box<dyn FnOnce(Lsn) + Send>;

/// A log that is open for appending. Threads share it by reference. Dropping it closes it, but drops errors too.
pub struct Log {
    pub(crate) shared: Arc<Shared>,
    /// The thread of [`Level::Interval`].
    pub(crate) ticker: Option<JoinHandle<()>>,
}

pub(crate) struct Shared {
    pub(crate) environment: Environment,
    pub(crate) directory: PathBuf,
    pub(crate) id: LogId,
    pub(crate) options: LogOptions,
    pub(crate) state: Mutex<State>,
    /// Some LSN moved, a role is free, or the log failed.
    pub(crate) changed: Condvar,
    /// The log closes: for the thread of [`Level::Interval`].
    pub(crate) closing: Condvar,
}

pub(crate) struct State {
    /// Frames that no leader has taken yet; the first one is a place for a mark.
    pub(crate) buffer: Vec<u8>,
    /// An empty buffer with its memory.
    pub(crate) spare: Vec<u8>,
    pub(crate) end: u64,
    pub(crate) durable: u64,
    pub(crate) acknowledged: u64,
    /// The largest LSN that a mark in the last file, or its start, calls synced.
    pub(crate) proven: u64,
    /// `None`: a leader has it, or the log has failed.
    pub(crate) active: Option<Active>,
    pub(crate) announcing: bool,
    pub(crate) publish: VecDeque<(u64, Publish)>,
    /// First LSNs of the files, ascending.
    pub(crate) files: Vec<u64>,
    pub(crate) failure: Option<Error>,
    pub(crate) closing: bool,
}

/// The file that is written.
pub(crate) struct Active {
    pub(crate) file: Box<dyn WriteFile>,
    pub(crate) first: u64,
}

impl Log {
    /// The id of the log.
    #[must_use]
    pub fn id(&self) -> LogId {
        self.shared.id
    }

    /// Appends a record, and returns its LSN. As [`Log::append_then`], with nothing to publish.
    ///
    /// # Errors
    /// As there.
    pub fn append(&self, kind: u8, payload: &[u8]) -> Result<Lsn> {
        self.shared.append(kind, payload, None)
    }

    /// Appends a record, and returns its LSN. `publish` runs when the record is acknowledged, in the thread of
    /// whoever waits: see [`Publish`]. It must not call the log, and may take locks that are held while appending.
    ///
    /// The record is in the order of the calls, but safe only after [`Log::wait`]. Waits for the disk if too much is
    /// buffered ([`LogOptions::buffer_bytes`]).
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: larger than [`RECORD_BYTES_MAX`]. [`ErrorKind::Io`]: the log has failed.
    /// [`ErrorKind::Internal`]: a kind above [`KIND_MAX`]. Then nothing was appended.
    pub fn append_then(&self, kind: u8, payload: &[u8], publish: Publish) -> Result<Lsn> {
        self.shared.append(kind, payload, Some(publish))
    }

    /// Returns once the log up to `lsn` is acknowledged, as the [`Level`] means it, and published.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: the log failed before. Whether the record is there after the next opening is open.
    /// [`ErrorKind::Internal`]: no record has this LSN.
    pub fn wait(&self, lsn: Lsn) -> Result<()> {
        self.shared.wait(lsn.0)
    }

    /// Makes everything durable that was appended before the call, whatever the level, and publishes it. Returns the
    /// LSN up to which the log is durable.
    ///
    /// # Errors
    /// As [`Log::wait`].
    pub fn sync(&self) -> Result<Lsn> {
        let mut leader = self.shared.lead()?;
        leader.write()?;
        leader.sync()?;
        leader.finish();
        let durable = self.durable_lsn();
        self.shared.wait(durable.0)?;
        Ok(durable)
    }

    /// Whether the log still takes records.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: it has failed. What was appended and is not acknowledged never will be.
    pub fn check(&self) -> Result<()> {
        lock(&self.shared.state).failure.clone().map_or(Ok(()), Err)
    }

    /// The log up to here is synced.
    #[must_use]
    pub fn durable_lsn(&self) -> Lsn {
        Lsn(lock(&self.shared.state).durable)
    }

    /// The log ends here; some of it may be in memory only.
    #[must_use]
    pub fn end_lsn(&self) -> Lsn {
        Lsn(lock(&self.shared.state).end)
    }

    /// Syncs what was appended and begins a new file behind it; returns the LSN at which it starts. Publishes nothing,
    /// so it may be called under the lock that orders appends.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]. If only the new file could not be made, the log goes on in the old one.
    pub fn rotate(&self) -> Result<Lsn> {
        let mut leader = self.shared.lead()?;
        leader.write()?;
        leader.sync()?;
        let result = leader.rotate();
        let start = leader.end();
        leader.finish();
        result.map(|()| start)
    }

    /// Removes the files that end at or before `lsn`. To be called once a checkpoint that holds these records is
    /// durable: recovery can then no longer start before `lsn`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: some of the files are left. The log goes on.
    pub fn remove_before(&self, lsn: Lsn) -> Result<()> {
        let removed: Vec<u64> = {
            let mut state = lock(&self.shared.state);
            let kept_from = state.files.partition_point(|first| *first <= lsn.0).saturating_sub(1);
            state.files.drain(..kept_from).collect()
        };
        let Shared { environment, directory, .. } = &*self.shared;
        for first in &removed {
            let path = files::path_of(directory, *first);
            environment
                .files
                .remove_file(&path)
                .map_err(|error| Error::io(format_args!("remove {}", path.display()), &error))?;
        }
        if removed.is_empty() {
            return Ok(());
        }
        let synced = environment.files.sync_dir(directory);
        synced.map_err(|error| Error::io(format_args!("sync {}", directory.display()), &error))
    }

    /// Makes everything durable, at every level, and marks the log as complete, so that the next reader can tell all
    /// damage from a torn tail.
    ///
    /// # Errors
    /// As [`Log::wait`].
    pub fn close(mut self) -> Result<()> {
        self.shut()
    }

    fn shut(&mut self) -> Result<()> {
        if mem::replace(&mut lock(&self.shared.state).closing, true) {
            return Ok(());
        }
        self.shared.closing.notify_all();
        if let Some(ticker) = self.ticker.take() {
            ticker.join().map_err(|_| Error::internal("the thread of the log panicked"))?;
        }
        self.sync()?;
        let mut leader = self.shared.lead()?;
        leader.write_closing_mark()?;
        leader.finish();
        Ok(())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // Whoever wants to know closes.
        let _ = self.shut();
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.shared.state);
        f.debug_struct("Log")
            .field("id", &self.shared.id)
            .field("end", &Lsn(state.end))
            .field("durable", &Lsn(state.durable))
            .field("failure", &state.failure)
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn append(&self, kind: u8, payload: &[u8], publish: Option<Publish>) -> Result<Lsn> {
        if kind > KIND_MAX {
            return Err(Error::internal(format!("the log keeps records of kind {kind} for itself")));
        }
        let length = u32::try_from(payload.len()).ok().filter(|_| payload.len() <= RECORD_BYTES_MAX);
        let Some(length) = length else {
            let what = format!("a record of {} bytes exceeds {RECORD_BYTES_MAX}", payload.len());
            return Err(Error::new(ErrorKind::Input, what).with_hint("split the transaction"));
        };
        let bytes = MARK_BYTES + HEAD_BYTES + payload.len();
        let mut state = lock(&self.state);
        loop {
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            if state.buffer.is_empty() || state.buffer.len() + bytes <= self.options.buffer_bytes {
                break;
            }
            // Written, not synced: whoever orders appends by a lock should not hold it for a whole sync.
            state = self.lead_or_wait(state, false)?;
        }
        if state.buffer.is_empty() {
            state.buffer.extend_from_slice(&[0; MARK_BYTES]);
            state.end += MARK_BYTES as u64;
        }
        let start = state.end;
        state.end += (HEAD_BYTES + payload.len()) as u64;
        frame::push_record(&mut state.buffer, self.id, start, kind, length, payload);
        let lsn = state.end;
        if let Some(publish) = publish {
            state.publish.push_back((lsn, publish));
        }
        Ok(Lsn(lsn))
    }

    fn wait(&self, lsn: u64) -> Result<()> {
        let mut state = lock(&self.state);
        if lsn > state.end {
            return Err(Error::internal(format!(
                "a wait for LSN {} of a log that ends at {}",
                Lsn(lsn),
                Lsn(state.end)
            )));
        }
        let early = self.options.level != Level::Sync;
        loop {
            if state.acknowledged >= lsn {
                break;
            }
            let reached = if early && state.failure.is_none() { state.end } else { state.durable };
            if reached >= lsn && !state.announcing {
                state = self.announce(state, reached);
            } else if reached >= lsn {
                state = wait(&self.changed, state);
            } else if let Some(failure) = &state.failure {
                return Err(failure.clone());
            } else {
                state = self.lead_or_wait(state, true)?;
            }
        }
        if early && state.buffer.len() >= WRITE_BYTES && state.active.is_some() && state.failure.is_none() {
            drop(self.lead_or_wait(state, false)?);
        }
        Ok(())
    }

    /// If nobody has the file: writes the buffer, and syncs if `sync`. Else waits for a change.
    fn lead_or_wait<'a>(&'a self, state: MutexGuard<'a, State>, sync: bool) -> Result<MutexGuard<'a, State>> {
        if state.active.is_none() {
            return Ok(wait(&self.changed, state));
        }
        if let Some(mut leader) = Leader::take(self, state) {
            leader.write()?;
            if sync {
                leader.sync()?;
            }
            leader.finish();
        }
        Ok(lock(&self.state))
    }

    /// The file and the batch, as soon as nobody else has them.
    fn lead(&self) -> Result<Leader<'_>> {
        let mut state = lock(&self.state);
        loop {
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            if state.active.is_none() {
                state = wait(&self.changed, state);
            } else if let Some(leader) = Leader::take(self, state) {
                return Ok(leader);
            } else {
                state = lock(&self.state);
            }
        }
    }

    /// Publishes up to `reached`. Nobody else does at this moment.
    fn announce<'a>(&'a self, mut state: MutexGuard<'a, State>, reached: u64) -> MutexGuard<'a, State> {
        let count = state.publish.partition_point(|(lsn, _)| *lsn <= reached);
        if count > 0 {
            let due: Vec<(u64, Publish)> = state.publish.drain(..count).collect();
            state.announcing = true;
            drop(state);
            let announcer = Announcer(self);
            for (lsn, publish) in due {
                publish(Lsn(lsn));
            }
            mem::forget(announcer);
            state = lock(&self.state);
            state.announcing = false;
        }
        state.acknowledged = state.acknowledged.max(reached);
        self.changed.notify_all();
        state
    }

    /// The thread of [`Level::Interval`].
    pub(crate) fn tick(&self, every: Duration) {
        loop {
            let state = lock(&self.state);
            let waited = self
                .closing
                .wait_timeout_while(state, every, |state| !state.closing && state.failure.is_none())
                .unwrap_or_else(PoisonError::into_inner);
            let state = waited.0;
            if state.closing || state.failure.is_some() {
                return;
            }
            let idle = state.end == state.durable;
            drop(state);
            if idle {
                continue;
            }
            // An error fails the log, and everybody hears of it there.
            let Ok(mut leader) = self.lead() else { return };
            if leader.write().and_then(|()| leader.sync()).is_err() {
                return;
            }
            leader.finish();
        }
    }
}

/// Leaves the log failed if what is published panics.
struct Announcer<'a>(&'a Shared);

impl Drop for Announcer<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.announcing = false;
        let failure = || Error::internal("a thread panicked while it published a commit");
        state.failure.get_or_insert_with(failure);
        drop(state);
        self.0.changed.notify_all();
    }
}
