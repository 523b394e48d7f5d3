//! How storage is doing: for metrics, for logs, and for people.

use crate::background::new_term_count;
use crate::sync::lock;
use crate::transactions::{Counts, Transactions};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use vervet_model::Error;

/// How storage is doing at a moment. Numbers are taken one after the other, while others go on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StorageStatus {
    /// Why changes are refused at the moment; `None`: they are not. A full disk, a failed sync, a load that
    /// left the directory in doubt.
    pub refusal: Option<Error>,
    /// Bytes of the log that recovery would read now. 0 where no log is open, as everywhere below.
    pub log_bytes: u64,
    /// Files of the log.
    pub log_files: u64,
    /// How often the log was synced since it was opened.
    pub log_syncs: u64,
    /// How long that took, all together.
    pub log_sync_time: Duration,
    /// Statements that differ from the base: came, or went.
    pub delta_cells: u64,
    /// Memory that these take, in bytes, roughly.
    pub delta_bytes: u64,
    /// Vertices and literals that have a number, used or not: at most [`crate::TERMS_MAX`] of each kind,
    /// ever.
    pub terms: u64,
    /// Of these, terms that are in no base yet, and so in memory.
    pub new_terms: u64,
    /// Transactions that have begun and not ended. Each keeps the version in memory that it began with.
    pub active_transactions: u64,
    /// How long the oldest of these has been active.
    pub oldest_transaction: Option<Duration>,
    /// How many transactions ended how.
    pub transactions: Counts,
    /// Of [`Counts::conflicts`], how many for what.
    pub conflicts: ConflictCounts,
    /// Commits that waited because checkpoints were behind.
    pub slowed_commits: u64,
    /// How long they waited, all together.
    pub slowed_time: Duration,
    /// Checkpoints.
    pub checkpoints: CheckpointStatus,
}

impl StorageStatus {
    /// Whether changes are taken.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.refusal.is_none()
    }
}

/// How checkpoints are doing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckpointStatus {
    /// Whether one is being made in the background.
    pub running: bool,
    /// How many were made since the graph was opened.
    pub completed: u64,
    /// How many failed.
    pub failed: u64,
    /// How many of the last ones failed, one after the other.
    pub failed_in_row: u32,
    /// How long ago the last one was made, or the graph was opened.
    pub age: Duration,
    /// How long that one took.
    pub took: Duration,
    /// The last failure, and how long it is ago.
    pub last_failure: Option<(Error, Duration)>,
    /// How long no attempt is made in the background; `None`: it is when there is enough to merge.
    pub next_try: Option<Duration>,
}

/// Why transactions were refused for a conflict.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ConflictCounts {
    /// Another one had changed what they read or changed.
    pub changes: u64,
    /// A bulk load had.
    pub loads: u64,
    /// They were so old that the changes since were forgotten.
    pub too_old: u64,
    /// The constraints had changed.
    pub constraints: u64,
}

/// [`ConflictCounts`], as they are counted.
#[derive(Debug, Default)]
pub(crate) struct Conflicts {
    pub(crate) changes: AtomicU64,
    pub(crate) loads: AtomicU64,
    pub(crate) too_old: AtomicU64,
    pub(crate) constraints: AtomicU64,
}

impl Conflicts {
    pub(crate) fn read(&self) -> ConflictCounts {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        ConflictCounts {
            changes: read(&self.changes),
            loads: read(&self.loads),
            too_old: read(&self.too_old),
            constraints: read(&self.constraints),
        }
    }
}

impl ConflictCounts {
    /// All of them.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.changes + self.loads + self.too_old + self.constraints
    }
}

impl Transactions {
    /// How storage is doing. Cheap: no file is looked at, and no lock waits for one.
    #[must_use]
    pub fn storage_status(&self) -> StorageStatus {
        let now = self.environment.clock.now();
        let newest = self.newest();
        let version = &newest.version;
        let log = self.open_log().map(|log| log.status());
        let (active_transactions, oldest) = self.active_since();
        let background = &self.background;
        let history = lock(&background.history).clone();
        StorageStatus {
            refusal: self.failure.get().cloned().or(log.as_ref().and_then(|log| log.refusal.clone())),
            log_bytes: self.log_bytes(),
            log_files: log.as_ref().map_or(0, |log| log.files),
            log_syncs: log.as_ref().map_or(0, |log| log.syncs),
            log_sync_time: log.as_ref().map_or(Duration::ZERO, |log| log.sync_time),
            delta_cells: version.delta_cells(),
            delta_bytes: version.delta_bytes(),
            terms: version.terms().vertex_end() + version.terms().literal_end(),
            new_terms: new_term_count(version),
            active_transactions,
            oldest_transaction: oldest.map(|began| now.saturating_sub(began)),
            transactions: self.counts(),
            conflicts: self.conflicts.read(),
            slowed_commits: background.slowed.load(Ordering::Relaxed),
            slowed_time: Duration::from_nanos(background.slowed_nanoseconds.load(Ordering::Relaxed)),
            checkpoints: CheckpointStatus {
                running: self.is_merging(),
                completed: history.completed,
                failed: history.failed,
                failed_in_row: history.failed_in_row,
                age: now.saturating_sub(history.last),
                took: history.took,
                last_failure: history.last_failure.map(|(error, at)| (error, now.saturating_sub(at))),
                next_try: history.next_try.map(|at| at.saturating_sub(now)).filter(|time| !time.is_zero()),
            },
        }
    }
}
