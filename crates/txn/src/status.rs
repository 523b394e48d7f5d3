//! Storage status for metrics, logs and messages.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use vervet_model::Error;

/// Transactions by outcome, since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Committed, with changes.
    pub commits: u64,
    /// Refused for a conflict.
    pub conflicts: u64,
}

/// Snapshot of storage metrics. Counters are read one after the other and are not mutually consistent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StorageStatus {
    /// Why changes are refused at present; `None` if they are accepted. A full disk, a failed sync, a load
    /// that left the directory in an unknown state, or a limit that no checkpoint can relieve.
    pub refusal: Option<Error>,
    /// Size of the log part that recovery would read now, in bytes. 0 where no log is open, as for all fields
    /// below.
    pub log_bytes: u64,
    /// Number of files of the log.
    pub log_files: u64,
    /// Number of syncs of the log since it was opened.
    pub log_syncs: u64,
    /// Total time of these syncs.
    pub log_sync_time: Duration,
    /// Number of statements that were added to or removed from the base.
    pub delta_cells: u64,
    /// Estimated memory of these, in bytes.
    pub delta_bytes: u64,
    /// Vertices and literals that have a number, used or not: at most [`crate::TERMS_MAX`] of each kind,
    /// ever.
    pub terms: u64,
    /// Number of these that are in no base yet, and so in memory.
    pub new_terms: u64,
    /// Number of active transactions. Each keeps the version that it began with in memory.
    pub active_transactions: u64,
    /// Age of the oldest active transaction.
    pub oldest_transaction: Option<Duration>,
    /// Transactions by outcome.
    pub transactions: Counts,
    /// [`Counts::conflicts`] by reason.
    pub conflicts: ConflictCounts,
    /// Number of commits that waited because checkpoints were behind.
    pub slowed_commits: u64,
    /// Total wait of these commits.
    pub slowed_time: Duration,
    /// Status of checkpoints.
    pub checkpoints: CheckpointStatus,
}

impl StorageStatus {
    /// Whether changes are accepted.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.refusal.is_none()
    }
}

/// Status of checkpoints.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckpointStatus {
    /// Whether one is running in the background.
    pub running: bool,
    /// Number of checkpoints made since the graph was opened.
    pub completed: u64,
    /// Number of failed checkpoints.
    pub failed: u64,
    /// Number of consecutive failures up to now.
    pub failed_in_row: u32,
    /// Time since the last successful checkpoint, or since the graph was opened.
    pub age: Duration,
    /// Duration of that checkpoint.
    pub took: Duration,
    /// The last failure, and the time since.
    pub last_failure: Option<(Error, Duration)>,
    /// Time until the next attempt is allowed in the background; `None`: whenever a checkpoint is due.
    pub next_try: Option<Duration>,
}

/// Conflicts by abort reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ConflictCounts {
    /// A concurrent transaction had changed what they read or changed.
    pub changes: u64,
    /// A bulk load had replaced the graph.
    pub loads: u64,
    /// They were so old that the changes since were no longer recorded.
    pub too_old: u64,
    /// The constraints had changed.
    pub constraints: u64,
}

/// Counters of [`ConflictCounts`].
#[derive(Debug, Default)]
pub(crate) struct ConflictCounters {
    pub(crate) changes: AtomicU64,
    pub(crate) loads: AtomicU64,
    pub(crate) too_old: AtomicU64,
    pub(crate) constraints: AtomicU64,
}

impl ConflictCounters {
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
    /// Total number of conflicts.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.changes + self.loads + self.too_old + self.constraints
    }
}
