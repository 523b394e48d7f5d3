//! Appending, and waiting until it is safe: group commit.
//!
//! # Shape
//! One lock around a small [`State`]: a buffer, and LSNs up to which the log is appended, synced,
//! acknowledged. Two roles, each held by one thread at a time, neither under the lock:
//!
//! * the **leader** has the file: it writes the buffer, and syncs (`flush.rs`);
//! * the **announcer** runs what is to be published ([`Publish`]), in the order of LSNs.
//!
//! A thread that waits takes the role that its wait needs, if that is free; else it sleeps (`waiters.rs`)
//! until its record is acknowledged, or a role is free for it. So the first of many committers syncs for
//! itself, those that come meanwhile gather in the buffer, and the next leader syncs for all of them: it is
//! woken as soon as the file is free, before the others are told. No thread polls, and at [`Level::Sync`]
//! there is no thread of the log's own. (Leader and followers: DeWitt et al., "Implementation Techniques for
//! Main Memory Database Systems", SIGMOD 1984, has group commit; the form without a log thread is that of
//! LevelDB's writer queue. Here the leader is free to be a waiter of any place, since the order is fixed when
//! a record is appended.)
//! # Invariants
//! 1. `acknowledged <= durable <= end` at [`Level::Sync`], `acknowledged`, `durable` <= `end` at others; the
//!    buffer holds the bytes before `end`, what precedes them is in `unwritten`, and what precedes that is
//!    written, or in the hands of the leader.
//! 2. The announcer never holds the file, so what it runs may wait for locks that are held while appending.
//! 3. Once `failure` is set, no leader starts. A failed sync is never tried again: after one, the system may
//!    call pages clean that it has not written, and a second sync would say yes (Rebello et al., "Can
//!    Applications Recover from fsync Failures?", USENIX ATC 2020). Opening again copies whatever is not
//!    known to be synced into a new file, and so does not trust those pages either.
//! 4. A thread that gives a role back wakes one that waits for it: no thread sleeps beside a free role.
//! # A full disk
//! is no failure: a write that found no room has written nothing that it did not report. What could not be
//! written is kept (`unwritten`), waits for it end with an error, nothing new is appended, and each attempt
//! to append or to sync tries to write it first. With the first success all goes on, in the same file and
//! order. A sync that says that the disk is full is a failed sync.
//! # Cost
//! Appending: one lock, a copy, a hash. A wait at [`Level::Sync`]: about one sync for all who wait at that
//! time.

use crate::files;
use crate::flush::Leader;
use crate::frame::{self, HEAD_BYTES, MARK_BYTES};
use crate::sync::{Condvar, Mutex, MutexGuard, lock, wait};
use crate::waiters::{Waiters, Wake, Woken};
use crate::{KIND_MAX, Level, LogId, LogOptions, Lsn, RECORD_BYTES_MAX, WRITE_BYTES};
use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use vervet_env::{Environment, WriteFile};
use vervet_model::{Error, ErrorKind, Result};

/// What is to happen once a record is acknowledged: run once, with its LSN, after that of every record before
/// it and before any [`Log::wait`] for it returns. Not run if the log fails first.
pub type Publish = Box<dyn FnOnce(Lsn) + Send>;

/// A log that is open for appending. Threads share it by reference. Dropping it closes it, but drops errors
/// too.
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
    /// The file is free, or the log failed: for those who need the file and do not wait for a record.
    pub(crate) free: Condvar,
    /// The log closes: for the thread of [`Level::Interval`].
    pub(crate) closing: Condvar,
    /// Copies of what `state` has, to be read without its lock.
    pub(crate) watched: Watched,
}

/// Numbers about a log that anybody may look at, at any time and without a lock.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    /// See [`State::end`].
    pub(crate) end: AtomicU64,
    /// First LSN of the oldest file.
    pub(crate) start: AtomicU64,
    pub(crate) files: AtomicU64,
    pub(crate) syncs: AtomicU64,
    pub(crate) sync_nanoseconds: AtomicU64,
    /// 1: the log takes no records at the moment.
    pub(crate) refuses: AtomicU64,
}

/// What a log takes and does.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogStatus {
    /// Bytes in its files and its buffer.
    pub bytes: u64,
    /// How many files it has.
    pub files: u64,
    /// How often a file was synced since the log was opened.
    pub syncs: u64,
    /// How long that took, all together.
    pub sync_time: Duration,
    /// Why no records are taken at the moment; `None`: they are.
    pub refusal: Option<Error>,
}

pub(crate) struct State {
    /// What a full disk had no room for: the rest of frames that a leader has begun to write.
    pub(crate) unwritten: Vec<u8>,
    /// Why; `None`: there was room, and `unwritten` is empty.
    pub(crate) full: Option<Error>,
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
    /// Those who wait for a record.
    pub(crate) waiters: Waiters,
    /// How many wait for `free`.
    pub(crate) wanting_file: usize,
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
        self.shared.append(kind, &[payload], None)
    }

    /// Appends a record, and returns its LSN. `publish` runs when the record is acknowledged, in the thread
    /// of whoever waits: see [`Publish`]. It must not call the log, and may take locks that are held while
    /// appending.
    ///
    /// The record is in the order of the calls, but safe only after [`Log::wait`]. Waits for the disk if too
    /// much is buffered ([`LogOptions::buffer_bytes`]).
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: larger than [`RECORD_BYTES_MAX`]. [`ErrorKind::Io`]: the log has failed, or the
    /// disk is full. [`ErrorKind::Internal`]: a kind above [`KIND_MAX`]. Then nothing was appended.
    pub fn append_then(&self, kind: u8, payload: &[u8], publish: Publish) -> Result<Lsn> {
        self.shared.append(kind, &[payload], Some(publish))
    }

    /// As [`Log::append_then`] for several records of one kind, in this order: all of them are appended, or
    /// none. Returns the LSN of the last one, behind which `publish` runs.
    ///
    /// # Errors
    /// As there; [`ErrorKind::Internal`]: there are no records.
    pub fn append_all_then(&self, kind: u8, payloads: &[&[u8]], publish: Publish) -> Result<Lsn> {
        if payloads.is_empty() {
            return Err(Error::internal("no records to append"));
        }
        self.shared.append(kind, payloads, Some(publish))
    }

    /// Returns once the log up to `lsn` is acknowledged, as the [`Level`] means it, and published.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: the log failed before. Whether the record is there after the next opening is open.
    /// Or the disk is full: the record is kept, and acknowledged and published as soon as something is
    /// written. [`ErrorKind::Internal`]: no record has this LSN.
    pub fn wait(&self, lsn: Lsn) -> Result<()> {
        self.shared.wait(lsn.0)
    }

    /// Makes everything durable that was appended before the call, whatever the level, and publishes it.
    /// Returns the LSN up to which the log is durable.
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
    /// [`ErrorKind::Io`]: it has failed, and what was appended and is not acknowledged never will be; or the
    /// disk was full when something was last written.
    pub fn check(&self) -> Result<()> {
        if !self.refuses() {
            return Ok(());
        }
        let state = lock(&self.shared.state);
        state.failure.as_ref().or(state.full.as_ref()).map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Whether [`Log::check`] is an error; without a lock.
    #[must_use]
    pub fn refuses(&self) -> bool {
        self.shared.watched.refuses.load(Ordering::Relaxed) != 0
    }

    /// Bytes, files, syncs, and whether records are taken. Takes no lock unless they are not.
    #[must_use]
    pub fn status(&self) -> LogStatus {
        let watched = &self.shared.watched;
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        LogStatus {
            // Read one after the other: a rotation in between must not make it negative.
            bytes: read(&watched.end).saturating_sub(read(&watched.start)),
            files: read(&watched.files),
            syncs: read(&watched.syncs),
            sync_time: Duration::from_nanos(read(&watched.sync_nanoseconds)),
            refusal: self.check().err(),
        }
    }

    /// The log up to here is synced.
    #[must_use]
    pub fn durable_lsn(&self) -> Lsn {
        Lsn(lock(&self.shared.state).durable)
    }

    /// The log ends here; some of it may be in memory only.
    #[must_use]
    pub fn end_lsn(&self) -> Lsn {
        Lsn(self.shared.watched.end.load(Ordering::Acquire))
    }

    /// Syncs what was appended and begins a new file behind it; returns the LSN at which it starts. Publishes
    /// nothing, so it may be called under the lock that orders appends.
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

    /// Removes the files that end at or before `lsn`. To be called once a checkpoint that holds these records
    /// is durable: recovery can then no longer start before `lsn`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: some of the files are left. The log goes on.
    pub fn remove_before(&self, lsn: Lsn) -> Result<()> {
        let removed: Vec<u64> = {
            let mut state = lock(&self.shared.state);
            let kept_from = state.files.partition_point(|first| *first <= lsn.0).saturating_sub(1);
            let removed = state.files.drain(..kept_from).collect();
            self.shared.count_files(&state);
            removed
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

    /// Makes everything durable, at every level, and marks the log as complete, so that the next reader can
    /// tell all damage from a torn tail.
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
    fn append(&self, kind: u8, payloads: &[&[u8]], publish: Option<Publish>) -> Result<Lsn> {
        if kind > KIND_MAX {
            return Err(Error::internal(format!("the log keeps records of kind {kind} for itself")));
        }
        let mut lengths = Vec::with_capacity(payloads.len());
        for payload in payloads {
            let length = u32::try_from(payload.len()).ok().filter(|_| payload.len() <= RECORD_BYTES_MAX);
            let Some(length) = length else {
                let what = format!("a record of {} bytes exceeds {RECORD_BYTES_MAX}", payload.len());
                return Err(Error::new(ErrorKind::Input, what).with_hint("split the transaction"));
            };
            lengths.push(length);
        }
        let bytes: usize = payloads.iter().map(|payload| HEAD_BYTES + payload.len()).sum();
        let mut state = lock(&self.state);
        loop {
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            let has_room = state.buffer.is_empty()
                || state.buffer.len() + MARK_BYTES + bytes <= self.options.buffer_bytes;
            if has_room && state.full.is_none() {
                break;
            }
            // Written, not synced: whoever orders appends by a lock should not hold it for a whole sync.
            state = self.write_or_wait(state).map_err(nothing_appended)?;
        }
        if state.buffer.is_empty() {
            state.buffer.extend_from_slice(&[0; MARK_BYTES]);
            state.end += MARK_BYTES as u64;
        }
        for (payload, length) in payloads.iter().zip(lengths) {
            let start = state.end;
            frame::push_record(&mut state.buffer, self.id, start, kind, length, payload);
            state.end += (HEAD_BYTES + payload.len()) as u64;
        }
        let lsn = state.end;
        self.watched.end.store(lsn, Ordering::Release);
        if let Some(publish) = publish {
            state.publish.push_back((lsn, publish));
        }
        Ok(Lsn(lsn))
    }

    /// Up to where records may be published.
    fn reachable(&self, state: &State) -> u64 {
        let early = self.options.level != Level::Sync;
        if early && state.failure.is_none() { state.end } else { state.durable }
    }

    fn wait(&self, lsn: u64) -> Result<()> {
        let early = self.options.level != Level::Sync;
        let mut state = lock(&self.state);
        if lsn > state.end {
            return Err(Error::internal(format!(
                "a wait for LSN {} of a log that ends at {}",
                Lsn(lsn),
                Lsn(state.end)
            )));
        }
        while state.acknowledged < lsn {
            let reached = self.reachable(&state);
            if reached >= lsn && !state.announcing {
                state = self.announce(state, reached, Wake::default());
            } else if reached < lsn
                && let Some(failure) = &state.failure
            {
                return Err(failure.clone());
            } else if reached < lsn && state.active.is_some() {
                let Some(mut leader) = Leader::take(self, state) else {
                    return Err(Error::internal("the file of the log is there and is not"));
                };
                leader.write().and_then(|()| leader.sync())?;
                let mut wake = Wake::default();
                state = leader.give_back();
                self.call_leader(&mut state, &mut wake);
                if state.announcing {
                    drop(state);
                    wake.wake();
                    state = lock(&self.state);
                } else {
                    let reached = self.reachable(&state);
                    state = self.announce(state, reached, wake);
                }
            } else {
                let waiter = state.waiters.enter(lsn);
                drop(state);
                if waiter.sleep() == Woken::Acknowledged && !early {
                    return Ok(());
                }
                state = lock(&self.state);
            }
        }
        if early && state.buffer.len() >= WRITE_BYTES && state.active.is_some() && state.failure.is_none() {
            // This record is acknowledged and published, whatever becomes of the writing: the next append
            // returns the error.
            drop(self.write_or_wait(state));
        }
        Ok(())
    }

    /// Writes the buffer if the file is free. Else waits until it was free; another thread may have taken it
    /// by then.
    fn write_or_wait<'a>(&'a self, mut state: MutexGuard<'a, State>) -> Result<MutexGuard<'a, State>> {
        if state.active.is_none() {
            state.wanting_file += 1;
            state = wait(&self.free, state);
            state.wanting_file -= 1;
            return Ok(state);
        }
        if let Some(mut leader) = Leader::take(self, state) {
            leader.write()?;
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
                state.wanting_file += 1;
                state = wait(&self.free, state);
                state.wanting_file -= 1;
            } else if let Some(leader) = Leader::take(self, state) {
                return Ok(leader);
            } else {
                state = lock(&self.state);
            }
        }
    }

    /// Publishes up to `reached`. No other thread publishes at this moment. Before that, or after it, wakes
    /// those of `wake`.
    fn announce<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        reached: u64,
        mut wake: Wake,
    ) -> MutexGuard<'a, State> {
        debug_assert!(!state.announcing, "there is one announcer");
        debug_assert!(reached <= state.end, "nothing is published that was not appended");
        let count = state.publish.partition_point(|(lsn, _)| *lsn <= reached);
        if count > 0 {
            let due: Vec<(u64, Publish)> = state.publish.drain(..count).collect();
            state.announcing = true;
            drop(state);
            mem::take(&mut wake).wake();
            let announcer = Announcer(self);
            for (lsn, publish) in due {
                publish(Lsn(lsn));
            }
            mem::forget(announcer);
            state = lock(&self.state);
            state.announcing = false;
        }
        state.acknowledged = state.acknowledged.max(reached);
        let acknowledged = state.acknowledged;
        state.waiters.acknowledge(acknowledged, &mut wake);
        self.call_next(&mut state, &mut wake);
        drop(state);
        wake.wake();
        lock(&self.state)
    }

    /// Calls those who may take a role that is free now: see invariant 4.
    pub(crate) fn call_next(&self, state: &mut State, wake: &mut Wake) {
        if state.failure.is_some() {
            state.waiters.call_all(wake);
            self.free.notify_all();
            return;
        }
        let reachable = self.reachable(state);
        if !state.announcing && state.waiters.first().is_some_and(|lsn| lsn <= reachable) {
            state.waiters.call(0, wake);
        }
        self.call_leader(state, wake);
    }

    /// Calls those who may take the file, if it is there.
    fn call_leader(&self, state: &mut State, wake: &mut Wake) {
        if state.active.is_some() {
            let reachable = self.reachable(state);
            state.waiters.call(reachable + 1, wake);
            if state.wanting_file > 0 {
                self.free.notify_all();
            }
        }
    }

    /// Brings the copies of `watched` up to date. The caller holds the lock.
    pub(crate) fn count_files(&self, state: &State) {
        self.watched.files.store(state.files.len() as u64, Ordering::Relaxed);
        self.watched.start.store(state.files.first().copied().unwrap_or(state.end), Ordering::Relaxed);
        self.watched.end.store(state.end, Ordering::Release);
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
            // An error fails the log, and everybody hears of it there; or the disk is full, and may not be
            // the next time.
            let Ok(mut leader) = self.lead() else { return };
            if leader.write().and_then(|()| leader.sync()).is_ok() {
                leader.finish();
            }
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
        self.0.watched.refuses.store(1, Ordering::Relaxed);
        let mut wake = Wake::default();
        self.0.call_next(&mut state, &mut wake);
        drop(state);
        wake.wake();
    }
}

/// The error of an append on a full disk.
fn nothing_appended(error: Error) -> Error {
    if error.hint() == Some(FULL_HINT) {
        return error.with_hint("nothing was changed; free some space on the disk, then try again");
    }
    error
}

/// The error of a wait for a record that has no room.
pub(crate) const FULL_HINT: &str = "what waits is kept in memory, and is written as soon as there is room on the disk; until then all changes are refused";
