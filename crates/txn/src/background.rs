//! Background checkpoints: triggers, retries after a failure, and back-pressure on commits.
//!
//! # Shape
//! After a commit, or the end of a transaction that added terms, [`Background::wants_checkpoint`] checks a
//! few counters for whether a checkpoint is due. If it is and none is in progress, a thread makes one. Its
//! outcome is recorded by the [`Checkpointer`], which also decides how long to wait after a failure.
//! # Triggers and cost
//! A checkpoint writes the whole base of `B` bytes. It is due when the delta has reached [`CHECKPOINT_SHARE`]
//! of the base, so each changed byte pays for `1 / CHECKPOINT_SHARE` bytes of base, about ten with the log,
//! at any size. The bound on the log, which bounds recovery time, and the bound on memory trigger earlier in
//! a large base and make checkpoints more expensive there: at 10 GB and 256 MiB of log, forty bytes a byte. A
//! log that grew without a change of the graph is cut without writing the base (`checkpoint.rs`).
//! # Back-pressure
//! Changes stay in memory and in the log until a checkpoint includes them. From half of
//! [`crate::Options::delta_bytes_max`] or [`crate::Options::log_bytes_max`] on, commits pause for increasing
//! times; at the limit they wait for the checkpoint, at most [`STALL_MAX`], or are refused at once if the
//! checkpoints fail. A refused commit has changed nothing.

use crate::base::{base_bytes, new_term_count};
use crate::checkpoint::{Checkpointer, History};
use crate::commit_head::CommitHead;
use crate::commit_log::CommitLog;
use crate::options::Options;
use crate::sync::{AtomicBool, AtomicU64, Mutex, lock};
use crate::writer::Writer;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vervet_model::{Error, ErrorKind, Result};

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
#[derive(Debug)]
pub(crate) struct Background {
    head: Arc<CommitHead>,
    writer: Arc<Writer>,
    checkpointer: Checkpointer,
    /// [`Options::checkpoints`].
    is_enabled: bool,
    delta_bytes_max: u64,
    log_bytes_max: u64,
    /// The thread that makes a checkpoint, if one was started.
    thread: Mutex<Option<JoinHandle<()>>>,
    is_merging: AtomicBool,
    /// Number of commits that had to wait, and their total wait in nanoseconds.
    slowed: AtomicU64,
    slowed_nanoseconds: AtomicU64,
}

/// Clears the flag of a running merge when the thread ends, also by a panic.
struct MergeGuard<'a>(&'a Background);

impl Drop for MergeGuard<'_> {
    fn drop(&mut self) {
        self.0.is_merging.store(false, Ordering::Release);
    }
}

impl Background {
    pub(crate) fn new(head: Arc<CommitHead>, writer: Arc<Writer>, options: &Options) -> Self {
        Self {
            checkpointer: Checkpointer::new(Arc::clone(&head), Arc::clone(&writer)),
            head,
            writer,
            is_enabled: options.checkpoints,
            delta_bytes_max: options.delta_bytes_max,
            log_bytes_max: options.log_bytes_max,
            thread: Mutex::default(),
            is_merging: AtomicBool::new(false),
            slowed: AtomicU64::new(0),
            slowed_nanoseconds: AtomicU64::new(0),
        }
    }

    /// Makes checkpoints, and has their outcomes.
    pub(crate) fn checkpointer(&self) -> &Checkpointer {
        &self.checkpointer
    }

    /// Number of commits that had to wait, and their total wait.
    pub(crate) fn slowed(&self) -> (u64, Duration) {
        let nanoseconds = self.slowed_nanoseconds.load(Ordering::Relaxed);
        (self.slowed.load(Ordering::Relaxed), Duration::from_nanos(nanoseconds))
    }

    /// Whether a checkpoint is due.
    pub(crate) fn wants_checkpoint(&self) -> bool {
        let newest = self.head.newest();
        let (version, base) = (&newest.version, newest.version.base());
        let cells = version.delta_cells();
        let old = base.statement_count() as f64;
        let terms = base.dictionary().vertex_count() + base.dictionary().literal_count();
        let log_bytes_max = base_bytes(&**base).clamp(CHECKPOINT_LOG_BYTES_MIN, CHECKPOINT_LOG_BYTES);
        let memory_max = self.delta_bytes_max as f64 * CHECKPOINT_MEMORY_SHARE;
        let new_terms = new_term_count(version);
        (cells >= CHECKPOINT_CELLS_MIN && cells as f64 >= old * CHECKPOINT_SHARE)
            || (cells > 0 && version.delta_bytes() as f64 >= memory_max)
            || (new_terms >= CHECKPOINT_TERMS_MIN && new_terms as f64 >= terms as f64 * CHECKPOINT_SHARE)
            || self.writer.log_bytes() >= log_bytes_max.min(self.log_bytes_max / 4)
            || self
                .writer
                .open_log()
                .and_then(CommitLog::status)
                .is_some_and(|log| log.files >= CHECKPOINT_LOG_FILES)
    }

    /// Starts a checkpoint in the background if one is due, none is in progress, and the retry delay after
    /// the last failure is over.
    pub(crate) fn start_if_wanted(self: &Arc<Self>) {
        if !self.is_enabled
            || self.is_merging.load(Ordering::Relaxed)
            || !self.wants_checkpoint()
            || !self.checkpointer.may_try()
            || self.is_merging.swap(true, Ordering::AcqRel)
        {
            return;
        }
        let background = Arc::clone(self);
        let merge = move || {
            let _merging = MergeGuard(&background);
            // A failure is recorded in the history and retried later; until then it costs only space.
            let _ = background.checkpointer.checkpoint();
        };
        match std::thread::Builder::new().name("vervet-merge".to_owned()).spawn(merge) {
            Ok(thread) => *lock(&self.thread) = Some(thread),
            Err(error) => {
                self.is_merging.store(false, Ordering::Release);
                self.checkpointer.fail(Error::io("start a thread for a checkpoint", &error));
            }
        }
    }

    /// Whether a checkpoint is running in the background.
    pub(crate) fn is_merging(&self) -> bool {
        self.is_merging.load(Ordering::Acquire)
    }

    /// Waits for the end of a running background checkpoint.
    pub(crate) fn wait(&self) {
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            // A panic in that thread has changed nothing.
            let _ = thread.join();
        }
    }

    /// Used share of the limits for unmerged changes; 1 at the limit.
    fn pressure(&self) -> f64 {
        let memory = self.head.newest().version.delta_bytes() as f64 / self.delta_bytes_max as f64;
        memory.max(self.writer.log_bytes() as f64 / self.log_bytes_max as f64)
    }

    /// Delays a commit with this many changes while checkpoints are behind: see the header.
    pub(crate) fn wait_for_room(self: &Arc<Self>, changes: usize) -> Result<()> {
        if self.writer.check_replaceable().is_err() {
            return self.check_room_without_checkpoints();
        }
        if !self.is_enabled || self.pressure() < SLOW_FROM {
            return Ok(());
        }
        let begin = Instant::now();
        let result = self.pause(changes, begin);
        self.slowed.fetch_add(1, Ordering::Relaxed);
        let took = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.slowed_nanoseconds.fetch_add(took, Ordering::Relaxed);
        result
    }

    fn pause(self: &Arc<Self>, changes: usize, begin: Instant) -> Result<()> {
        let all = PAUSE_PER_CHANGE.saturating_mul(u32::try_from(changes).unwrap_or(u32::MAX)).min(PAUSE_MAX);
        loop {
            self.start_if_wanted();
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
            let history = self.checkpointer.history();
            let is_failing = history.failed_in_row > 0 && !self.is_merging();
            if is_failing || begin.elapsed() >= STALL_MAX {
                return Err(self.no_room(&history));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Why every commit is refused for lack of room, where no checkpoint can make some; `None`: there is
    /// room, or checkpoints make it.
    pub(crate) fn refusal(&self) -> Option<Error> {
        self.writer
            .check_replaceable()
            .is_err()
            .then(|| self.check_room_without_checkpoints().err())
            .flatten()
    }

    /// A base that no checkpoint replaces has room for changes up to the limits.
    fn check_room_without_checkpoints(&self) -> Result<()> {
        if self.pressure() < 1.0 {
            return Ok(());
        }
        let (delta, log) = (self.head.newest().version.delta_bytes(), self.writer.log_bytes());
        let what = format!(
            "the changes of this graph take {delta} bytes of memory (limit {}) and {log} of log (limit {})",
            self.delta_bytes_max, self.log_bytes_max
        );
        Err(Error::new(ErrorKind::Unavailable, what).with_hint(
            "nothing was changed; where every server has the whole graph and voters take changes, try again in a \
             while: servers merge changes into their data; elsewhere export the graph, and make the files of its \
             servers again from the export",
        ))
    }

    fn no_room(&self, history: &History) -> Error {
        let (delta, log) = (self.head.newest().version.delta_bytes(), self.writer.log_bytes());
        let mut message = format!(
            "changes without a checkpoint take {delta} bytes of memory (limit {}) and {log} of log (limit {})",
            self.delta_bytes_max, self.log_bytes_max
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
