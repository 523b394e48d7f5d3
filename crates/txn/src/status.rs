//! Storage status for metrics, logs and messages.

use crate::background::new_term_count;
use crate::sync::lock;
use crate::transactions::{Counts, Transactions};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use vervet_model::Error;

/// Snapshot of storage metrics. Counters are read one after the other and are not mutually consistent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StorageStatus {
    /// Why changes are refused at present; `None` if they are accepted. A full disk, a failed sync, or a load
    /// that left the directory in an unknown state.
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

impl Transactions {
    /// The status of storage. Cheap: it reads no file and takes no lock that is held during I/O.
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
