//! Background checkpoints: triggers, retries after a failure, and back-pressure on commits.
//!
//! # Shape
//! After a commit, or the end of a transaction that added terms, [`Transactions::wants_checkpoint`] checks a
//! few counters for whether a checkpoint is due. If it is and none is in progress, a thread makes one. Its
//! outcome is recorded in `History` for [`Transactions::storage_status`].
//! # Triggers and cost
//! A checkpoint writes the whole base of `B` bytes. It is due when the delta has reached [`CHECKPOINT_SHARE`]
//! of the base, so each changed byte pays for `1 / CHECKPOINT_SHARE` bytes of base, about ten with the log,
//! at any size. The bound on the log, which bounds recovery time, and the bound on memory trigger earlier in
//! a large base and make checkpoints more expensive there: at 10 GB and 256 MiB of log, forty bytes a byte. A
//! log that grew without a change of the graph is cut without writing the base (`checkpoint.rs`).
//! # Failure
//! A failed checkpoint changes nothing, except for one more file of the log. The next attempt waits
//! [`CHECKPOINT_RETRY_MIN`], twice as long after each failure, at most [`CHECKPOINT_RETRY_MAX`]. A panic
//! counts as a failure.
//! # Back-pressure
//! Changes stay in memory and in the log until a checkpoint includes them. From half of
//! [`crate::Options::delta_bytes_max`] or [`crate::Options::log_bytes_max`] on, commits pause for increasing
//! times; at the limit they wait for the checkpoint, at most [`STALL_MAX`], or are refused at once if the
//! checkpoints fail. A refused commit has changed nothing.

use crate::checkpoint::base_bytes;
use crate::sync::{AtomicBool, AtomicU64, Mutex, lock};
use crate::transactions::Transactions;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vervet_delta::Version;
use vervet_model::{Error, ErrorKind, Result};
use vervet_snapshot::Snapshot;

/// A checkpoint is due when the delta reaches this share of the statements of its base…
pub const CHECKPOINT_SHARE: f64 = 0.125;
/// … and at least this many cells (one for each added or removed statement).
pub const CHECKPOINT_CELLS_MIN: u64 = 1 << 16;
/// New terms make it due when they reach that share of the terms of the base and this number.
pub const CHECKPOINT_TERMS_MIN: u64 = 1 << 18;
/// A log of this many bytes makes it due, since its length bounds recovery time…
pub const CHECKPOINT_LOG_BYTES: u64 = 256 << 20;
/// … or a log of at least this many, if it is longer than the base, roughly: then the base is quickly
/// written.
pub const CHECKPOINT_LOG_BYTES_MIN: u64 = 16 << 20;
/// A log of this many files makes it due, whatever their length.
pub const CHECKPOINT_LOG_FILES: u64 = 512;
/// Share of the memory limit of the delta that makes it due, whatever the base.
const CHECKPOINT_MEMORY_SHARE: f64 = 0.25;

/// Delay of the next attempt after one failed checkpoint…
pub const CHECKPOINT_RETRY_MIN: Duration = Duration::from_secs(1);
/// … and after several.
pub const CHECKPOINT_RETRY_MAX: Duration = Duration::from_secs(60);

/// Share of a limit from which commits pause.
const SLOW_FROM: f64 = 0.5;
/// Maximum pause of a commit below the limit.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Pause of a commit close to the limit, for each of its changes.
const PAUSE_PER_CHANGE: Duration = Duration::from_micros(20);
/// Maximum wait of a commit for a checkpoint at the limit, before the commit is refused.
pub const STALL_MAX: Duration = Duration::from_secs(30);
/// Polling interval of waiting commits.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// See the header of this file.
#[derive(Debug, Default)]
pub(crate) struct Background {
    /// The thread that makes a checkpoint, if one was started.
    thread: Mutex<Option<JoinHandle<()>>>,
    is_merging: AtomicBool,
    /// Start of the log part that recovery would read.
    pub(crate) log_start: AtomicU64,
    pub(crate) history: Mutex<History>,
    /// Number of commits that had to wait, and their total wait in nanoseconds.
    pub(crate) slowed: AtomicU64,
    pub(crate) slowed_nanoseconds: AtomicU64,
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
pub(crate) struct Attempt<'a> {
    transactions: &'a Transactions,
    began: Duration,
    is_over: bool,
}

impl<'a> Attempt<'a> {
    pub(crate) fn begin(transactions: &'a Transactions) -> Self {
        Self { transactions, began: transactions.environment.clock.now(), is_over: false }
    }

    pub(crate) fn end(mut self, result: &Result<bool>) {
        self.is_over = true;
        let now = self.transactions.environment.clock.now();
        let mut history = lock(&self.transactions.background.history);
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
            let now = self.transactions.environment.clock.now();
            lock(&self.transactions.background.history).fail(error, now);
        }
    }
}

/// Clears the flag of a running merge when the thread ends, also by a panic.
struct MergeGuard<'a>(&'a Background);

impl Drop for MergeGuard<'_> {
    fn drop(&mut self) {
        self.0.is_merging.store(false, Ordering::Release);
    }
}

/// Number of terms that are in no base.
pub(crate) fn new_term_count(version: &Version) -> u64 {
    let (terms, base) = (version.terms(), version.base().dictionary());
    let all = terms.vertex_end() + terms.literal_end();
    let old = base.vertex_count() + base.literal_count();
    assert!(all >= old, "terms go on where their base ends");
    all - old
}

impl Transactions {
    /// Size of the log part that recovery would read, in bytes.
    pub(crate) fn log_bytes(&self) -> u64 {
        let start = self.background.log_start.load(Ordering::Relaxed);
        self.open_log().map_or(0, |log| log.end_lsn().0.saturating_sub(start))
    }

    /// Whether a checkpoint is due.
    #[must_use]
    pub fn wants_checkpoint(&self) -> bool {
        let newest = self.newest();
        let (version, base) = (&newest.version, newest.version.base());
        let cells = version.delta_cells();
        let old = base.statement_count() as f64;
        let terms = base.dictionary().vertex_count() + base.dictionary().literal_count();
        let log_bytes_max = base_bytes(base).clamp(CHECKPOINT_LOG_BYTES_MIN, CHECKPOINT_LOG_BYTES);
        let memory_max = self.options.delta_bytes_max as f64 * CHECKPOINT_MEMORY_SHARE;
        let new_terms = new_term_count(version);
        (cells >= CHECKPOINT_CELLS_MIN && cells as f64 >= old * CHECKPOINT_SHARE)
            || (cells > 0 && version.delta_bytes() as f64 >= memory_max)
            || (new_terms >= CHECKPOINT_TERMS_MIN && new_terms as f64 >= terms as f64 * CHECKPOINT_SHARE)
            || self.log_bytes() >= log_bytes_max.min(self.options.log_bytes_max / 4)
            || self.open_log().is_some_and(|log| log.status().files >= CHECKPOINT_LOG_FILES)
    }

    /// Starts a checkpoint in the background if one is due, none is in progress, and the retry delay after
    /// the last failure is over.
    pub(crate) fn checkpoint_if_wanted(self: &Arc<Self>) {
        let background = &self.background;
        if !self.options.checkpoints
            || background.is_merging.load(Ordering::Relaxed)
            || !self.wants_checkpoint()
            || lock(&background.history).next_try.is_some_and(|at| self.environment.clock.now() < at)
            || background.is_merging.swap(true, Ordering::AcqRel)
        {
            return;
        }
        let transactions = Arc::clone(self);
        let merge = move || {
            let _merging = MergeGuard(&transactions.background);
            // A failure is recorded in the history and retried later; until then it costs only space.
            let _ = transactions.checkpoint();
        };
        match std::thread::Builder::new().name("vervet-merge".to_owned()).spawn(merge) {
            Ok(thread) => *lock(&background.thread) = Some(thread),
            Err(error) => {
                background.is_merging.store(false, Ordering::Release);
                let error = Error::io("start a thread for a checkpoint", &error);
                lock(&background.history).fail(error, self.environment.clock.now());
            }
        }
    }

    /// Whether a checkpoint is running in the background.
    pub(crate) fn is_merging(&self) -> bool {
        self.background.is_merging.load(Ordering::Acquire)
    }

    /// Waits for the end of a running background checkpoint.
    pub fn wait_background(&self) {
        let thread = lock(&self.background.thread).take();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            // A panic in that thread has changed nothing.
            let _ = thread.join();
        }
    }

    /// Used share of the limits for unmerged changes; 1 at the limit.
    fn pressure(&self) -> f64 {
        let memory = self.newest().version.delta_bytes() as f64 / self.options.delta_bytes_max as f64;
        memory.max(self.log_bytes() as f64 / self.options.log_bytes_max as f64)
    }

    /// Delays a commit with this many changes while checkpoints are behind: see the header.
    pub(crate) fn wait_for_room(self: &Arc<Self>, changes: usize) -> Result<()> {
        if !self.options.checkpoints || self.pressure() < SLOW_FROM {
            return Ok(());
        }
        let begin = Instant::now();
        let result = self.pause(changes, begin);
        self.background.slowed.fetch_add(1, Ordering::Relaxed);
        let took = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.background.slowed_nanoseconds.fetch_add(took, Ordering::Relaxed);
        result
    }

    fn pause(self: &Arc<Self>, changes: usize, begin: Instant) -> Result<()> {
        let all = PAUSE_PER_CHANGE.saturating_mul(u32::try_from(changes).unwrap_or(u32::MAX)).min(PAUSE_MAX);
        loop {
            self.checkpoint_if_wanted();
            let pressure = self.pressure();
            if pressure < 1.0 {
                let share = ((pressure - SLOW_FROM) / (1.0 - SLOW_FROM)).clamp(0.0, 1.0);
                let rest = all.mul_f64(share).saturating_sub(begin.elapsed());
                if rest.is_zero() || !self.is_merging() {
                    return Ok(());
                }
                std::thread::sleep(rest.min(POLL_INTERVAL));
                continue;
            }
            let history = lock(&self.background.history).clone();
            let is_failing = history.failed_in_row > 0 && !self.is_merging();
            if is_failing || begin.elapsed() >= STALL_MAX {
                return Err(self.no_room(&history));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn no_room(&self, history: &super::background::History) -> Error {
        let (delta, log) = (self.newest().version.delta_bytes(), self.log_bytes());
        let mut message = format!(
            "changes without a checkpoint take {delta} bytes of memory (limit {}) and {log} of log (limit {})",
            self.options.delta_bytes_max, self.options.log_bytes_max
        );
        let hint = match history.last_failure.as_ref().filter(|_| history.failed_in_row > 0) {
            Some((error, _)) => {
                message += &format!(", and the last {} checkpoints failed: {error}", history.failed_in_row);
                "nothing was changed; remove the cause of the failure (usually a full disk); the next checkpoint admits changes again"
            }
            None => "nothing was changed; try again when the running checkpoint has ended",
        };
        Error::new(ErrorKind::Unavailable, message).with_hint(hint)
    }
}
