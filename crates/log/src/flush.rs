//! The leader of a group commit: the one thread that owns the log file and writes and syncs it.
//!
//! # Shape
//! [`Leader::take`] moves the file and the buffered batch out of the shared state; the lock is then free, and
//! other threads append to an empty buffer or wait. [`Leader::write`], [`Leader::sync`] and
//! [`Leader::rotate`] touch the disk without the lock. [`Leader::finish`] moves everything back and wakes the
//! threads that can continue.
//! # Invariants
//! A leader that ends in any other way (an error, a panic) drops the file and leaves the log failed. The
//! exception is a full disk: the leader then returns the file with the unwritten bytes.

use crate::Lsn;
use crate::files::{self, CreateError};
use crate::frame::{self, MARK_BYTES};
use crate::state::{Active, FULL_HINT, LogState, Shared};
use crate::sync::{MutexGuard, lock};
use crate::waiters::Wake;
use std::io;
use std::mem;
use std::sync::atomic::Ordering;
use std::time::Instant;
use vervet_env::{WriteFile, is_disk_full};
use vervet_model::{Error, Result};

/// Maximum memory that an empty buffer keeps for the next batch.
const SPARE_BYTES_MAX: usize = 1 << 20;

pub(crate) struct Leader<'a> {
    shared: &'a Shared,
    /// `None`: given back, or lost to an error.
    active: Option<Active>,
    /// Bytes before the batch for which the disk had no room: [`LogState::unwritten`].
    unwritten: Vec<u8>,
    batch: Vec<u8>,
    /// LSN after the batch.
    end: u64,
    durable: u64,
    proven: u64,
}

impl<'a> Leader<'a> {
    /// Takes file and batch. `None` while another leader has the file.
    pub(crate) fn take(shared: &'a Shared, mut state: MutexGuard<'a, LogState>) -> Option<Self> {
        let active = state.active.take()?;
        let spare = mem::take(&mut state.spare);
        let batch = mem::replace(&mut state.buffer, spare);
        let unwritten = mem::take(&mut state.unwritten);
        debug_assert!(
            state.durable <= state.end && state.proven <= state.durable,
            "what is proven is synced"
        );
        debug_assert!(batch.is_empty() || batch.len() > MARK_BYTES, "a batch has a mark and a record");
        Some(Self {
            shared,
            active: Some(active),
            unwritten,
            batch,
            end: state.end,
            durable: state.durable,
            proven: state.proven,
        })
    }

    /// LSN after everything this leader has taken.
    pub(crate) fn end(&self) -> Lsn {
        Lsn(self.end)
    }

    /// Writes the bytes for which the disk had no room before, then the batch; the first frame of the batch
    /// is reserved for its mark.
    ///
    /// # Errors
    /// Disk full: the file goes back to the shared state with the unwritten bytes, and the log continues when
    /// there is room. Others: the log has failed. In both cases this leader is finished.
    pub(crate) fn write(&mut self) -> Result<()> {
        let start = self.end - self.batch.len() as u64;
        let mark = self.batch.first_chunk_mut::<MARK_BYTES>();
        let has_mark = mark.is_some();
        if let Some(place) = mark {
            *place = frame::mark(self.shared.id, start, self.durable);
        }
        let Some(active) = &mut self.active else { return Ok(()) };
        let result = [&mut self.unwritten, &mut self.batch].into_iter().try_for_each(|bytes| {
            let (written, result) = write_all(&mut *active.file, bytes);
            bytes.drain(..written);
            result
        });
        match result {
            Ok(()) => {}
            Err(error) if is_disk_full(&error) => return Err(self.give_back_unwritten(&error)),
            Err(error) => return self.check("write", Err(error)),
        }
        if has_mark {
            self.proven = self.proven.max(self.durable);
        }
        Ok(())
    }

    /// Returns the unwritten bytes and the file to the shared state, and wakes all waiters with the error.
    fn give_back_unwritten(&mut self, error: &io::Error) -> Error {
        let error = self.error("write", error).with_hint(FULL_HINT);
        let shared = self.shared;
        let mut state = lock(&shared.state);
        state.unwritten = mem::take(&mut self.unwritten);
        state.unwritten.append(&mut self.batch);
        state.full.get_or_insert_with(|| error.clone());
        state.active = self.active.take();
        state.durable = self.durable;
        state.end = state.end.max(self.end);
        shared.counters.refuses.store(1, Ordering::Relaxed);
        // All waiters: each retries and gets its own error.
        let mut wake = Wake::default();
        state.waiters.call_all(&mut wake);
        shared.free.notify_all();
        drop(state);
        wake.wake();
        error
    }

    /// Syncs the written bytes.
    pub(crate) fn sync(&mut self) -> Result<()> {
        if self.durable == self.end {
            return Ok(());
        }
        debug_assert!(
            self.unwritten.is_empty() && self.batch.is_empty(),
            "everything is written before it is synced"
        );
        let Some(active) = &mut self.active else { return Ok(()) };
        let begin = Instant::now();
        let result = active.file.sync();
        let counters = &self.shared.counters;
        counters.syncs.fetch_add(1, Ordering::Relaxed);
        let took = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        counters.sync_nanoseconds.fetch_add(took, Ordering::Relaxed);
        self.check("sync", result)?;
        self.durable = self.end;
        Ok(())
    }

    /// Writes and syncs a mark which states that everything is synced: the end of a closed log.
    pub(crate) fn write_closing_mark(&mut self) -> Result<()> {
        if self.proven >= self.end {
            return Ok(());
        }
        let start = self.end;
        self.end += MARK_BYTES as u64;
        self.batch.extend_from_slice(&[0; MARK_BYTES]);
        debug_assert_eq!(start, self.durable, "everything else is synced");
        self.write()?;
        self.sync()
    }

    /// Begins a new file after everything written and synced so far; does nothing if the current file is
    /// empty.
    ///
    /// # Errors
    /// An error while the new file is created leaves the old one in use; a later error fails the log.
    pub(crate) fn rotate(&mut self) -> Result<()> {
        let Some(active) = &self.active else { return Ok(()) };
        if active.first == self.end {
            return Ok(());
        }
        let shared = self.shared;
        match files::create(&shared.environment, &shared.directory, shared.id, Lsn(self.end), &[]) {
            Ok(file) => {
                self.active = Some(Active { file, first: self.end });
                self.proven = self.end;
                let mut state = lock(&shared.state);
                debug_assert!(state.files.last().is_none_or(|last| *last < self.end), "files ascend");
                state.files.push(self.end);
                shared.count_files(&state);
                Ok(())
            }
            // If the new file may exist, records appended to the old file would not count.
            Err(CreateError { error, may_exist: true }) => Err(self.fail(error)),
            Err(CreateError { error, may_exist: false }) => Err(error),
        }
    }

    fn error(&self, what: &str, error: &io::Error) -> Error {
        let first = self.active.as_ref().map_or(0, |active| active.first);
        Error::io(format_args!("{what} {}", files::path_of(&self.shared.directory, first).display()), error)
    }

    fn check(&mut self, what: &str, result: io::Result<()>) -> Result<()> {
        let Err(error) = result else { return Ok(()) };
        Err(self.fail(self.error(what, &error)))
    }

    /// Marks the log as failed. Every later call returns this error.
    fn fail(&mut self, error: Error) -> Error {
        let error = error
            .with_hint("nothing is written until the database is opened again; acknowledged commits stay");
        self.active = None;
        let shared = self.shared;
        let mut state = lock(&shared.state);
        state.failure.get_or_insert_with(|| error.clone());
        shared.counters.refuses.store(1, Ordering::Relaxed);
        let mut wake = Wake::default();
        shared.call_next(&mut state, &mut wake);
        drop(state);
        wake.wake();
        error
    }

    /// Returns everything to the shared state and wakes the threads that can continue. Every path without an
    /// error ends here.
    pub(crate) fn finish(self) {
        let shared = self.shared;
        let mut state = self.give_back();
        let mut wake = Wake::default();
        shared.call_next(&mut state, &mut wake);
        drop(state);
        wake.wake();
    }

    /// Returns everything to the shared state. The caller wakes the threads that can continue.
    pub(crate) fn give_back(mut self) -> MutexGuard<'a, LogState> {
        debug_assert!(self.unwritten.is_empty() && self.batch.is_empty(), "everything taken is written");
        debug_assert!(self.proven <= self.durable && self.durable <= self.end, "what is proven is synced");
        let shared = self.shared;
        let mut state = lock(&shared.state);
        debug_assert!(state.active.is_none(), "there is one leader");
        debug_assert!(state.durable <= self.durable, "what is durable stays so");
        state.active = self.active.take();
        state.durable = self.durable;
        state.proven = self.proven;
        state.full = None;
        shared.counters.refuses.store(u64::from(state.failure.is_some()), Ordering::Relaxed);
        // A closing mark lies after the end that the shared state knows.
        if self.end > state.end {
            state.end = self.end;
            shared.count_files(&state);
        }
        self.batch.clear();
        self.batch.shrink_to(SPARE_BYTES_MAX);
        state.spare = mem::take(&mut self.batch);
        state
    }
}

/// Writes all of `bytes`; returns the number of bytes written, also on an error.
fn write_all(file: &mut dyn WriteFile, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(()))
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        if self.active.is_some() {
            self.fail(Error::internal("a thread panicked while it wrote the log"));
        }
    }
}
