//! The appendable log: append, group commit, and waits for durability.
//!
//! # Shape
//! One lock around a small [`LogState`]: a buffer, and LSNs up to which the log is appended, synced,
//! acknowledged. Two roles, each held by one thread at a time, neither under the lock:
//!
//! * the **leader** owns the file: it writes the buffer, and syncs (`flush.rs`);
//! * the **publisher** runs the [`Publish`] callbacks, in the order of LSNs.
//!
//! A waiting thread takes the role that its wait needs, if that role is free. Otherwise it sleeps
//! (`waiters.rs`) until its record is acknowledged or a role becomes free for it. So the first of many
//! committers syncs for itself, records of later committers gather in the buffer, and the next leader syncs
//! all of them; that leader is woken as soon as the file is free, before the other waiters. No thread polls,
//! and at [`Durability::Sync`] the log has no thread of its own. (Group commit: DeWitt et al.,
//! "Implementation Techniques for Main Memory Database Systems", SIGMOD 1984; the form without a log thread
//! is LevelDB's writer queue. Here any waiter may become the leader, since the order is fixed when a record
//! is appended.)
//! # Invariants
//! 1. `acknowledged <= durable <= end` at [`Durability::Sync`], `acknowledged`, `durable` <= `end` at others;
//!    the buffer holds the bytes before `end`, `unwritten` those before the buffer; all earlier bytes are
//!    written or held by the leader.
//! 2. The publisher never holds the file, so its callbacks may wait for locks that are held while appending.
//! 3. Once `failure` is set, no leader starts. A failed sync is never retried: the system may afterwards call
//!    pages clean that it has not written, and a second sync would succeed (Rebello et al., "Can Applications
//!    Recover from fsync Failures?", USENIX ATC 2020). Opening again copies everything that is not known to
//!    be synced into a new file, and so does not trust those pages either.
//! 4. A thread that gives a role back wakes a thread that waits for it: no thread sleeps while its role is
//!    free.
//! # A full disk
//! is not a failure: a write without room has written nothing beyond what it reported. The log keeps the
//! unwritten bytes (`unwritten`), waits for them end with an error, and nothing new is appended; each attempt
//! to append or to sync first tries to write them. After the first success the log continues, in the same
//! file and order. A sync that reports a full disk is a failed sync.
//! # Cost
//! Append: one lock, a copy, a hash. A wait at [`Durability::Sync`]: about one sync shared by all threads
//! that wait at that time.

use crate::files;
use crate::flush::Leader;
use crate::frame::{self, HEAD_BYTES, MARK_BYTES};
use crate::state::{FULL_HINT, LogState, Publish, Shared};
use crate::sync::{MutexGuard, lock, wait};
use crate::waiters::{Wake, Woken};
use crate::{Durability, KIND_MAX, LogId, Lsn, RECORD_BYTES_MAX, WRITE_BYTES};
use std::fmt;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use vervet_model::{Error, ErrorKind, Result};

/// A log that is open for appending. Threads share it by reference. Dropping it closes it, but ignores
/// errors.
pub struct Log {
    pub(crate) shared: Arc<Shared>,
    /// The thread of [`Durability::Interval`].
    pub(crate) ticker: Option<JoinHandle<()>>,
}

/// Size, syncs and readiness of a log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogStatus {
    /// Bytes in its files and its buffer.
    pub bytes: u64,
    /// Number of files.
    pub files: u64,
    /// Number of syncs since the log was opened.
    pub syncs: u64,
    /// Total time of these syncs.
    pub sync_time: Duration,
    /// Why the log refuses records at present; `None` if it accepts them.
    pub refusal: Option<Error>,
}

impl Log {
    /// The id of the log.
    #[must_use]
    pub fn id(&self) -> LogId {
        self.shared.id
    }

    /// Appends a record and returns its LSN. Same as [`Log::append_then`] without a callback.
    ///
    /// # Errors
    /// Same as [`Log::append_then`].
    pub fn append(&self, kind: u8, payload: &[u8]) -> Result<Lsn> {
        self.shared.append(kind, &[payload], None)
    }

    /// Appends a record and returns its LSN. `publish` runs when the record is acknowledged, on the thread of
    /// a waiter: see [`Publish`]. It must not call the log; it may take locks that are held while appending.
    ///
    /// The order of records is the order of calls, but a record is safe only after [`Log::wait`]. The call
    /// waits for the disk if the buffer is full ([`crate::LogOptions::buffer_bytes`]).
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: larger than [`RECORD_BYTES_MAX`]. [`ErrorKind::Io`]: the log has failed, or the
    /// disk is full. [`ErrorKind::Internal`]: a kind above [`KIND_MAX`]. Then nothing was appended.
    pub fn append_then(&self, kind: u8, payload: &[u8], publish: Publish) -> Result<Lsn> {
        self.shared.append(kind, &[payload], Some(publish))
    }

    /// [`Log::append_then`] for several records of one kind, in this order: all of them are appended, or
    /// none. Returns the LSN of the last one, after which `publish` runs.
    ///
    /// # Errors
    /// Same as [`Log::append_then`]; [`ErrorKind::Internal`]: there are no records.
    pub fn append_all_then(&self, kind: u8, payloads: &[&[u8]], publish: Publish) -> Result<Lsn> {
        if payloads.is_empty() {
            return Err(Error::internal("no records to append"));
        }
        self.shared.append(kind, payloads, Some(publish))
    }

    /// Returns once the log up to `lsn` is acknowledged, as the [`Durability`] defines it, and published.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: the log failed first; the record may or may not exist after the next opening. Or
    /// the disk is full: the record is kept, and is acknowledged and published as soon as it is written.
    /// [`ErrorKind::Internal`]: no record has this LSN.
    pub fn wait(&self, lsn: Lsn) -> Result<()> {
        self.shared.wait(lsn.0)
    }

    /// Makes everything durable that was appended before the call, at any level, and publishes it.
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

    /// Checks that the log accepts records.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: the log has failed, and unacknowledged records never will be acknowledged; or the
    /// disk was full at the last write.
    pub fn check(&self) -> Result<()> {
        if !self.refuses() {
            return Ok(());
        }
        let state = lock(&self.shared.state);
        state.failure.as_ref().or(state.full.as_ref()).map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Whether [`Log::check`] would fail; takes no lock.
    #[must_use]
    pub fn refuses(&self) -> bool {
        self.shared.counters.refuses.load(Ordering::Relaxed) != 0
    }

    /// Size, files, syncs, and whether the log accepts records. Takes the lock only if it refuses them.
    #[must_use]
    pub fn status(&self) -> LogStatus {
        let counters = &self.shared.counters;
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        LogStatus {
            // The two loads are not atomic together: a rotation in between must not make the difference
            // negative.
            bytes: read(&counters.end).saturating_sub(read(&counters.start)),
            files: read(&counters.files),
            syncs: read(&counters.syncs),
            sync_time: Duration::from_nanos(read(&counters.sync_nanoseconds)),
            refusal: self.check().err(),
        }
    }

    /// LSN up to which the log is synced.
    #[must_use]
    pub fn durable_lsn(&self) -> Lsn {
        Lsn(lock(&self.shared.state).durable)
    }

    /// LSN of the end of the log; its last records may be in memory only.
    #[must_use]
    pub fn end_lsn(&self) -> Lsn {
        Lsn(self.shared.counters.end.load(Ordering::Acquire))
    }

    /// Syncs the appended records and begins a new file after them; returns the LSN at which the file starts.
    /// Publishes nothing, so it may be called under the lock that orders appends.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]. If only the creation of the new file failed, the log continues in the old one.
    pub fn rotate(&self) -> Result<Lsn> {
        let mut leader = self.shared.lead()?;
        leader.write()?;
        leader.sync()?;
        let result = leader.rotate();
        let start = leader.end();
        leader.finish();
        result.map(|()| start)
    }

    /// Removes the files that end at or before `lsn`. Call it once a checkpoint that holds these records is
    /// durable: recovery can then no longer start before `lsn`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: some of the files remain. The log continues.
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
    /// distinguish any damage from a torn tail.
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
        // A caller that needs the error calls `close`.
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
            return Err(Error::internal(format!("record kind {kind} is reserved for the log")));
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
            // Written, not synced: a caller that orders appends by a lock should not hold it for a whole
            // sync.
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
        self.counters.end.store(lsn, Ordering::Release);
        if let Some(publish) = publish {
            state.publish.push_back((lsn, publish));
        }
        Ok(Lsn(lsn))
    }

    fn wait(&self, lsn: u64) -> Result<()> {
        let early = self.options.durability != Durability::Sync;
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
            if reached >= lsn && !state.publishing {
                state = self.publish_up_to(state, reached, Wake::default());
            } else if reached < lsn
                && let Some(failure) = &state.failure
            {
                return Err(failure.clone());
            } else if reached < lsn && state.active.is_some() {
                let Some(mut leader) = Leader::take(self, state) else {
                    return Err(Error::internal("the log has no file for its leader"));
                };
                leader.write().and_then(|()| leader.sync())?;
                let mut wake = Wake::default();
                state = leader.give_back();
                self.call_leader(&mut state, &mut wake);
                if state.publishing {
                    drop(state);
                    wake.wake();
                    state = lock(&self.state);
                } else {
                    let reached = self.reachable(&state);
                    state = self.publish_up_to(state, reached, wake);
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
            // This record is acknowledged and published, even if the write fails: the next append returns the
            // error.
            drop(self.write_or_wait(state));
        }
        Ok(())
    }

    /// Writes the buffer if the file is free. Otherwise waits until it was free; another thread may have
    /// taken it since.
    fn write_or_wait<'a>(&'a self, mut state: MutexGuard<'a, LogState>) -> Result<MutexGuard<'a, LogState>> {
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

    /// Takes the file and the batch as soon as they are free.
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

    /// Publishes up to `reached`. No other thread publishes at this moment. Wakes the threads in `wake`
    /// before or after.
    fn publish_up_to<'a>(
        &'a self,
        mut state: MutexGuard<'a, LogState>,
        reached: u64,
        mut wake: Wake,
    ) -> MutexGuard<'a, LogState> {
        debug_assert!(!state.publishing, "there is one publisher");
        debug_assert!(reached <= state.end, "nothing is published that was not appended");
        let count = state.publish.partition_point(|(lsn, _)| *lsn <= reached);
        if count > 0 {
            let due: Vec<(u64, Publish)> = state.publish.drain(..count).collect();
            state.publishing = true;
            drop(state);
            mem::take(&mut wake).wake();
            let publisher = Publisher(self);
            for (lsn, publish) in due {
                publish(Lsn(lsn));
            }
            mem::forget(publisher);
            state = lock(&self.state);
            state.publishing = false;
        }
        state.acknowledged = state.acknowledged.max(reached);
        let acknowledged = state.acknowledged;
        state.waiters.acknowledge(acknowledged, &mut wake);
        self.call_next(&mut state, &mut wake);
        drop(state);
        wake.wake();
        lock(&self.state)
    }

    /// Main loop of the thread of [`Durability::Interval`].
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
            // An error fails the log, and every later call returns it; a full disk may have room at the next
            // tick.
            let Ok(mut leader) = self.lead() else { return };
            if leader.write().and_then(|()| leader.sync()).is_ok() {
                leader.finish();
            }
        }
    }
}

/// Marks the log as failed if a [`Publish`] callback panics.
struct Publisher<'a>(&'a Shared);

impl Drop for Publisher<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.publishing = false;
        let failure = || Error::internal("a thread panicked while it published a commit");
        state.failure.get_or_insert_with(failure);
        self.0.counters.refuses.store(1, Ordering::Relaxed);
        let mut wake = Wake::default();
        self.0.call_next(&mut state, &mut wake);
        drop(state);
        wake.wake();
    }
}

/// Adds to a disk-full error the hint for an append.
fn nothing_appended(error: Error) -> Error {
    if error.hint() == Some(FULL_HINT) {
        return error.with_hint("nothing was changed; free some space on the disk, then try again");
    }
    error
}
