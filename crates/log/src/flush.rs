//! What the one thread does that has the file at a moment: the leader.
//!
//! # Shape
//! [`Leader::take`] moves the file and the buffered batch out of the shared state; the lock is then free, and others
//! append to an empty buffer or wait. [`Leader::write`], [`Leader::sync`] and [`Leader::rotate`] touch the disk
//! without the lock. [`Leader::finish`] moves everything back and wakes whoever waits.
//! # Invariants
//! A leader that goes away in another way (an error, a panic) takes the file with it and leaves the log failed.

use crate::Lsn;
use crate::files::{self, CreateError};
use crate::frame::{self, MARK_BYTES};
use crate::log::{Active, Shared, State};
use crate::sync::{MutexGuard, lock};
use std::io::Write;
use std::mem;
use vervet_model::{Error, Result};

/// The most memory that an empty buffer keeps for the next batch.
const SPARE_BYTES_MAX: usize = 1 << 20;

pub(crate) struct Leader<'a> {
    shared: &'a Shared,
    /// `None`: given back, or lost to an error.
    active: Option<Active>,
    batch: Vec<u8>,
    /// The LSN behind the batch.
    end: u64,
    durable: u64,
    proven: u64,
}

impl<'a> Leader<'a> {
    /// Takes file and batch. `None` while another leader has the file.
    pub(crate) fn take(shared: &'a Shared, mut state: MutexGuard<'a, State>) -> Option<Self> {
        let active = state.active.take()?;
        let spare = mem::take(&mut state.spare);
        let batch = mem::replace(&mut state.buffer, spare);
        Some(Self {
            shared,
            active: Some(active),
            batch,
            end: state.end,
            durable: state.durable,
            proven: state.proven,
        })
    }

    /// The LSN behind everything this leader has.
    pub(crate) fn end(&self) -> Lsn {
        Lsn(self.end)
    }

    /// Writes the batch, whose first frame is the place for its mark.
    pub(crate) fn write(&mut self) -> Result<()> {
        let start = self.end - self.batch.len() as u64;
        let Some(place) = self.batch.first_chunk_mut::<MARK_BYTES>() else { return Ok(()) };
        *place = frame::mark(self.shared.id, start, self.durable);
        self.proven = self.proven.max(self.durable);
        let result = match &mut self.active {
            Some(active) => active.file.write_all(&self.batch),
            None => return Ok(()),
        };
        self.batch.clear();
        self.check("write", result)
    }

    /// Syncs what is written.
    pub(crate) fn sync(&mut self) -> Result<()> {
        if self.durable == self.end {
            return Ok(());
        }
        let result = match &mut self.active {
            Some(active) => active.file.sync(),
            None => return Ok(()),
        };
        self.check("sync", result)?;
        self.durable = self.end;
        Ok(())
    }

    /// Writes a mark that says that everything is synced, and syncs it too: the end of a closed log.
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

    /// Begins a new file behind everything written and synced so far; nothing to do if the current one is empty.
    ///
    /// # Errors
    /// While the file is made, the old one stays in use; afterwards the log has failed.
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
                lock(&shared.state).files.push(self.end);
                Ok(())
            }
            // If there were such a file, what the old one gets from now on would not count.
            Err(CreateError { error, may_exist: true }) => Err(self.fail(error)),
            Err(CreateError { error, may_exist: false }) => Err(error),
        }
    }

    fn check(&mut self, what: &str, result: std::io::Result<()>) -> Result<()> {
        let Err(error) = result else { return Ok(()) };
        let first = self.active.as_ref().map_or(0, |active| active.first);
        let path = files::path_of(&self.shared.directory, first);
        Err(self.fail(Error::io(format_args!("{what} {}", path.display()), &error)))
    }

    /// Ends the log's life. Every later call gets this error.
    fn fail(&mut self, error: Error) -> Error {
        let error = error
            .with_hint("no more is written until the database is opened again; what was acknowledged stays");
        self.active = None;
        lock(&self.shared.state).failure.get_or_insert_with(|| error.clone());
        self.shared.changed.notify_all();
        error
    }

    /// Gives everything back. At the end of every path without an error that failed the log.
    pub(crate) fn finish(mut self) {
        let Some(active) = self.active.take() else { return };
        let mut state = lock(&self.shared.state);
        state.active = Some(active);
        state.durable = self.durable;
        state.proven = self.proven;
        // A closing mark lies behind what others know of.
        state.end = state.end.max(self.end);
        self.batch.clear();
        self.batch.shrink_to(SPARE_BYTES_MAX);
        state.spare = mem::take(&mut self.batch);
        drop(state);
        self.shared.changed.notify_all();
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        if self.active.is_some() {
            self.fail(Error::internal("a thread panicked while it wrote the log"));
        }
    }
}
