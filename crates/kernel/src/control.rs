//! Limits of one query: cancellation, deadline, memory cap.
//!
//! # Shape
//! One [`Control`] for the query, and where several threads run it, one more for each of them
//! ([`Control::for_worker`]): it counts memory in that of the query, and rows looked at on its own, since
//! that happens so often that threads must not share the counter.
//! # Cost
//! All counters are relaxed atomics: they carry no data, and nothing is ordered by them. A count of rows is a
//! load and a store as for a plain number; a count of bytes is one read-modify-write (some 5 ns) for each
//! table that has grown.

use crate::batch::BATCH_ROWS;
use crate::gate::{Class, Gate};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use vervet_model::{Error, ErrorKind, Result};

/// What may stop a query before its end.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Set by another thread to cancel.
    pub cancelled: Option<Arc<AtomicBool>>,
    /// When to give up, and after how long that is (for the message).
    pub deadline: Option<(Instant, Duration)>,
    /// The most bytes that tables of the query may take.
    pub memory_bytes: Option<u64>,
}

/// How many rows are looked at between two looks at the clock, where no batch passes a step: some 20 µs of
/// the cheap ones, and 1 ms of expensive ones, such as a row of a hash table that is merged.
const WORK_ROWS: usize = 1 << 11;

/// Rows of a batch in a heavy query beside light ones. 1,024 rows took some steps 1 ms; with 256 rows heavy
/// queries lost a tenth of their throughput (2026-11-23).
const BATCH_ROWS_BESIDE_LIGHT: usize = BATCH_ROWS / 2;

/// Limits, and what counts against them. Checked once for each batch and each step, and by
/// [`Control::work`] where rows are looked at without any going on.
///
/// Aligned so that the counters of two threads share no cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Control<'q> {
    limits: Limits,
    /// What counts bytes, if that is another.
    query: Option<&'q Control<'q>>,
    /// Set once the workers of a query need not go on.
    halted: Option<&'q AtomicBool>,
    memory_bytes: AtomicU64,
    /// Bytes of computed terms that are part of `memory_bytes`.
    computed_bytes: AtomicU64,
    /// Rows looked at since the last look at the clock.
    work: AtomicUsize,
    /// Light or heavy, and the gate that heavy ones pass.
    class: Class,
}

impl<'q> Control<'q> {
    /// Nothing counted yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Nothing counted yet; heavy queries pass `gate` at every [`Control::check`].
    #[must_use]
    pub fn with_gate(limits: Limits, gate: Option<Arc<dyn Gate>>) -> Self {
        let begun = limits.deadline.and_then(|(deadline, timeout)| deadline.checked_sub(timeout));
        Self { limits, class: Class::new(gate, begun), ..Self::default() }
    }

    /// The same limits for one more thread of a heavy query; [`Control::check`] fails there too once `halted`
    /// is set.
    #[must_use]
    pub fn for_worker(&'q self, halted: &'q AtomicBool) -> Self {
        Self {
            limits: self.limits.clone(),
            query: Some(self.counter()),
            halted: Some(halted),
            class: self.class.for_worker(),
            ..Self::default()
        }
    }

    /// The query is heavy from now on.
    pub fn set_heavy(&self) {
        self.class.set_heavy();
    }

    /// Whether the query is heavy: by estimate, or by what it has used.
    #[must_use]
    pub fn is_heavy(&self) -> bool {
        self.class.is_heavy()
    }

    /// How many rows a source makes a batch of: fewer in a heavy query beside light ones, which wait while a
    /// batch goes through a step.
    #[must_use]
    pub fn batch_rows(&self) -> usize {
        if self.class.is_beside_light() { BATCH_ROWS_BESIDE_LIGHT } else { BATCH_ROWS }
    }

    /// This thread has no work of the query for now, or is about to wait: others may have its place at the
    /// gate.
    pub fn leave(&self) {
        self.class.leave();
    }

    /// Who counts bytes.
    fn counter(&self) -> &Control<'q> {
        self.query.unwrap_or(self)
    }

    /// Whether to go on; blocks a heavy query while others go first.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`], [`ErrorKind::Deadline`].
    pub fn check(&self) -> Result<()> {
        let now = (self.limits.deadline.is_some() || self.class.has_gate()).then(Instant::now);
        self.check_at(now)?;
        if let Some(now) = now {
            self.class.pass(now, &|| self.check_at(Some(Instant::now())).is_err());
        }
        Ok(())
    }

    fn check_at(&self, now: Option<Instant>) -> Result<()> {
        // Relaxed: the flags carry no data; being seen one batch later does no harm.
        if self.halted.is_some_and(|flag| flag.load(Relaxed)) {
            return Err(Error::new(ErrorKind::Cancelled, "another thread of the query has stopped it"));
        }
        if self.limits.cancelled.as_ref().is_some_and(|flag| flag.load(Relaxed)) {
            return Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"));
        }
        if let Some((deadline, timeout)) = self.limits.deadline
            && now.is_some_and(|now| now >= deadline)
        {
            let message = format!("the query did not end within its timeout of {timeout:?}");
            return Err(Error::new(ErrorKind::Deadline, message)
                .with_hint("raise the timeout, or ask for less (more constants, LIMIT)"));
        }
        Ok(())
    }

    /// The time until the deadline; `None`: there is none.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        let (deadline, _) = self.limits.deadline?;
        Some(deadline.saturating_duration_since(Instant::now()))
    }

    /// Whether to go on, asked so often that most calls only count: `rows` more have been looked at.
    ///
    /// # Errors
    /// As [`Control::check`].
    #[inline]
    pub fn work(&self, rows: usize) -> Result<()> {
        let work = self.work.load(Relaxed).saturating_add(rows);
        if work < WORK_ROWS {
            self.work.store(work, Relaxed);
            return Ok(());
        }
        self.work.store(0, Relaxed);
        self.check()
    }

    /// Counts bytes that a table of the query has grown by.
    ///
    /// # Errors
    /// [`ErrorKind::MemoryLimit`].
    pub fn grow(&self, bytes: u64) -> Result<()> {
        let total = self.counter().memory_bytes.fetch_add(bytes, Relaxed).saturating_add(bytes);
        match self.limits.memory_bytes {
            Some(limit) if total > limit => {
                let message = format!("the query needs more than its memory cap of {limit} bytes");
                Err(Error::new(ErrorKind::MemoryLimit, message)
                    .with_hint("raise the memory cap, or ask for less (more constants, LIMIT)"))
            }
            _ => Ok(()),
        }
    }

    /// Whether a table of so many more bytes would stay below the cap. For what can also be done with less.
    #[must_use]
    pub fn has_room(&self, bytes: u64) -> bool {
        let total = self.memory_bytes().saturating_add(bytes);
        self.limits.memory_bytes.is_none_or(|limit| total <= limit)
    }

    /// Counts bytes that were freed.
    pub fn shrink(&self, bytes: u64) {
        let before = self.counter().memory_bytes.fetch_sub(bytes, Relaxed);
        debug_assert!(before >= bytes, "{bytes} bytes are given back of {before}");
    }

    /// Counts a table that took `counted` bytes at the last call and takes `bytes` now.
    ///
    /// # Errors
    /// As [`Control::grow`].
    #[inline]
    pub fn recount(&self, counted: &mut u64, bytes: u64) -> Result<()> {
        let before = std::mem::replace(counted, bytes);
        match bytes.checked_sub(before) {
            Some(0) => Ok(()),
            Some(more) => self.grow(more),
            None => {
                self.shrink(before - bytes);
                Ok(())
            }
        }
    }

    /// Counts the terms that the query has made: `bytes` in all.
    ///
    /// # Errors
    /// As [`Control::grow`].
    pub fn count_computed(&self, bytes: u64) -> Result<()> {
        let counter = self.counter();
        if counter.computed_bytes.load(Relaxed) == bytes {
            return Ok(());
        }
        // Each thread replaces what another counted, so that the sum is right in the end.
        let mut counted = counter.computed_bytes.swap(bytes, Relaxed);
        self.recount(&mut counted, bytes)
    }

    /// Bytes counted now.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.counter().memory_bytes.load(Relaxed)
    }
}
