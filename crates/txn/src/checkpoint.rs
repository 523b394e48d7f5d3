//! Checkpoints: the delta is merged into a new base, while transactions read and write.
//!
//! # Shape
//! 1. Under the lock of the head: take the newest version, and begin a new file of the log.
//! 2. Without a lock: write a store with that version. Its manifest states that the log continues with the
//!    new file: from now on recovery starts there.
//! 3. Without a lock: rebase later commits onto the new base, until few are left (`CommitHead::catch_up`);
//!    under the lock again: rebase the rest, and make the result the head.
//! 4. Remove the files of the log that are no longer needed.
//!
//! If the graph equals its base, to the last term and edge number (existing statements were added again, or
//! statements were added and removed), step 2 only writes the manifest: the same files, and the later start
//! of the log. Step 3 is then empty.
//!
//! A graph in memory does the same without files; this merges its delta.
//! # Why this is right
//! A crash before the manifest is renamed leaves the old base and the whole log; a crash after it, the new
//! base and the rest of the log. Terms with records before the new file are in the new dictionary, because
//! they had their numbers when it was made. Recovery compares terms that are in both.
//! # Cost
//! The whole graph is rewritten. Steps 1 and 3 hold the lock for one sync of the log each, and step 3 for
//! about a thousand changes unless commits are faster than the rebase. A checkpoint that would not fit on the
//! disk is not started.
//! # Failure
//! A failed checkpoint changes nothing, except for one more file of the log. The next attempt in the
//! background waits [`CHECKPOINT_RETRY_MIN`], twice as long after each failure, at most
//! [`CHECKPOINT_RETRY_MAX`]. A panic counts as a failure.
//! # Not here
//! Triggers: `background.rs`. Merging single segments, and runs between base and delta.

use crate::base::{self, is_its_base, new_term_count};
use crate::commit_head::CommitHead;
use crate::commit_log::CommitLog;
use crate::mutation::Timestamp;
use crate::sync::{Mutex, lock};
use crate::writer::Writer;
use std::sync::Arc;
use std::time::Duration;
use vervet_delta::Version;
use vervet_log::Lsn;
use vervet_model::{Error, ErrorKind, Result, Watch};
use vervet_snapshot::Snapshot;
use vervet_store::CheckpointPosition;

/// Minimum space that a checkpoint leaves free on the disk: the log grows meanwhile.
pub const CHECKPOINT_SPARE_BYTES: u64 = 1 << 20;
/// Delay of the next attempt after one failed checkpoint…
pub const CHECKPOINT_RETRY_MIN: Duration = Duration::from_secs(1);
/// … and after several.
pub const CHECKPOINT_RETRY_MAX: Duration = Duration::from_secs(60);

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    head: Arc<CommitHead>,
    writer: Arc<Writer>,
    history: Mutex<History>,
}

/// Outcomes of checkpoints. Times are those of the environment's clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) failed_in_row: u32,
    pub(crate) last_failure: Option<(Error, Duration)>,
    /// Earliest time of the next attempt in the background.
    pub(crate) next_try: Option<Duration>,
    /// End of the last successful checkpoint, or the opening of the graph.
    pub(crate) last: Duration,
    /// Duration of that checkpoint.
    pub(crate) took: Duration,
}

impl History {
    fn fail(&mut self, error: Error, now: Duration) {
        let wait = CHECKPOINT_RETRY_MIN.saturating_mul(1 << self.failed_in_row.min(16));
        self.failed += 1;
        self.failed_in_row += 1;
        self.last_failure = Some((error, now));
        self.next_try = Some(now + wait.min(CHECKPOINT_RETRY_MAX));
    }
}

/// A running checkpoint. Dropping it without a recorded outcome means that the checkpoint panicked.
struct Attempt<'a> {
    checkpointer: &'a Checkpointer,
    began: Duration,
    is_over: bool,
}

impl<'a> Attempt<'a> {
    fn begin(checkpointer: &'a Checkpointer) -> Self {
        Self { checkpointer, began: checkpointer.now(), is_over: false }
    }

    fn end(mut self, result: &Result<bool>) {
        self.is_over = true;
        let now = self.checkpointer.now();
        let mut history = lock(&self.checkpointer.history);
        match result {
            Err(error) => history.fail(error.clone(), now),
            Ok(made) => {
                (history.failed_in_row, history.next_try) = (0, None);
                if *made {
                    history.completed += 1;
                    (history.last, history.took) = (now, now.saturating_sub(self.began));
                }
            }
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let error = Error::internal("a thread panicked while it made a checkpoint");
            let now = self.checkpointer.now();
            lock(&self.checkpointer.history).fail(error, now);
        }
    }
}

impl Checkpointer {
    pub(crate) fn new(head: Arc<CommitHead>, writer: Arc<Writer>) -> Self {
        let last = writer.environment().clock.now();
        Self { head, writer, history: Mutex::new(History { last, ..History::default() }) }
    }

    /// Outcomes so far.
    pub(crate) fn history(&self) -> History {
        lock(&self.history).clone()
    }

    /// Records a failure to start a checkpoint.
    pub(crate) fn fail(&self, error: Error) {
        lock(&self.history).fail(error, self.now());
    }

    /// Whether the retry delay after the last failure is over.
    pub(crate) fn may_try(&self) -> bool {
        lock(&self.history).next_try.is_none_or(|at| self.now() >= at)
    }

    fn now(&self) -> Duration {
        self.writer.environment().clock.now()
    }

    /// Merges the delta into a new base, and cuts the log. `false` if there was nothing to do. Only one
    /// checkpoint runs at a time.
    ///
    /// # Errors
    /// A full disk and other I/O errors: nothing is changed. Damaged data.
    pub(crate) fn checkpoint(&self) -> Result<bool> {
        // Before taking the lock, since opening the log may take it.
        let log = self.writer.log()?;
        let _one = self.writer.lock_manifest();
        let attempt = Attempt::begin(self);
        let result = self.merge(log);
        attempt.end(&result);
        result
    }

    fn merge(&self, log: Option<&CommitLog>) -> Result<bool> {
        {
            let newest = self.head.newest();
            let has_log = log.is_some() && self.writer.log_bytes() > 0;
            if newest.version.delta_cells() == 0 && new_term_count(&newest.version) == 0 && !has_log {
                return Ok(false);
            }
            self.check_space(&newest.version)?;
        }
        let (from, lsn) = {
            let head = self.head.lock();
            let lsn = log.map(|log| log.rotate()).transpose()?;
            (Arc::clone(head.published()), lsn)
        };
        let version = &from.version;
        // After the new file was begun: a term with a record before that file has its number, and is counted.
        let ends = [version.terms().vertex_end(), version.terms().literal_end()];
        let place = log.zip(lsn).map(|(log, lsn)| checkpoint_position(log, lsn, from.timestamp));
        if let Some(((directory, place), log)) = self.writer.directory().zip(place).zip(log)
            && is_its_base(&from, ends)
        {
            vervet_store::publish_log(self.writer.environment(), directory, place)?;
            self.writer.cut(log, Lsn(place.lsn));
            return Ok(true);
        }
        let environment = self.writer.environment();
        let base =
            base::build(environment, &from, ends, place, &self.writer.target(), &Watch::new("checkpoint"))?;
        let mut merged = version.rebase_empty(base)?;
        let reached = self
            .head
            .catch_up(&from, |reached, newest| merged.apply_difference(&reached.version, &newest.version))?;
        if let Some(log) = log {
            // Most of the log is synced here, so that little is left to sync under the lock.
            log.sync()?;
        }
        {
            let mut head = self.head.lock();
            if let Some(log) = log {
                log.sync()?;
            }
            merged.apply_difference(&reached.version, &head.published().version)?;
            let terms = head.published().version.terms().seal_and_succeed(ends[0], ends[1]);
            let merged = merged.with_terms(terms);
            let published = Arc::new(head.published().with(merged, head.published().timestamp));
            head.replace(published);
        }
        if let Some((log, lsn)) = log.zip(lsn) {
            self.writer.cut(log, lsn);
        }
        Ok(true)
    }

    /// Checks that the disk has room for a base with this graph.
    fn check_space(&self, version: &Version) -> Result<()> {
        let Some(directory) = self.writer.directory() else { return Ok(()) };
        // Attempt the checkpoint if the free space is unknown.
        let Ok(Some(free)) = self.writer.environment().files.available_bytes(directory) else {
            return Ok(());
        };
        let base = version.base();
        // At most the current size: too large an estimate would delay a checkpoint that has room.
        let kept = version.statement_count() as f64 / base.statement_count().max(1) as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a length")]
        let base_bytes = (base.file_bytes() as f64 * kept.min(1.0) * 0.9) as u64;
        let needed = base_bytes + CHECKPOINT_SPARE_BYTES;
        if free >= needed {
            return Ok(());
        }
        let message = format!(
            "a checkpoint of {} needs {needed} bytes or more, and {free} are free on its disk",
            directory.display()
        );
        Err(Error::new(ErrorKind::Io, message)
            .with_hint("free some space; until then changes stay in the log and in memory"))
    }
}

/// The position of a log that continues at `lsn`, after the commit with this timestamp.
pub(crate) fn checkpoint_position(log: &CommitLog, lsn: Lsn, timestamp: Timestamp) -> CheckpointPosition {
    CheckpointPosition { id: log.id().0, lsn: lsn.0, timestamp: timestamp.0, begun: true }
}
