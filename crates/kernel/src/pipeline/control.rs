//! Limits of one query: cancellation, deadline, memory cap.
//!
//! # Shape
//! One [`Control`] for the query, and if several threads run it, one more for each of them
//! ([`Control::for_worker`]), which counts memory in the `Control` of the query but has its own work counter,
//! since a shared counter would be contended.
//! # Cost
//! All counters are relaxed atomics: they publish no data and order no accesses. Counting rows is a load and
//! a store, as for a plain integer; counting bytes is one read-modify-write (some 5 ns) for each table that
//! has grown, two if parts of the query share a cap.

use crate::pipeline::batch::BATCH_ROWS;
use crate::pipeline::gate::{Gate, WorkloadClass};
use crate::plan::PlanStep;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use vervet_expression::Interrupt;
use vervet_model::{
    EnteredLimits, Error, ErrorKind, ReadCounts, RemoteReads, Result, ThreadLimits, cancelled_error,
    deadline_error,
};

/// Limits that may abort a query.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Set by another thread to cancel.
    pub cancelled: Option<Arc<AtomicBool>>,
    /// The deadline, and the timeout (for the message).
    pub deadline: Option<(Instant, Duration)>,
    /// Memory cap: maximum bytes of the tables of the query.
    pub memory_bytes: Option<u64>,
    /// Counts the reads of other servers, if the query is profiled.
    pub reads: Option<Arc<RemoteReads>>,
}

/// Decides whether a run goes on with a plan whose estimates were wrong. Called by any thread of the run.
pub trait Reoptimizer: Send + Sync {
    /// `rows_out` rows of `step`, from at most `rows_in` rows before it, exceed its validity range. `true`:
    /// the run goes on. `control`: the limits of the calling thread. `rows_in` is 0 if it is unknown.
    ///
    /// # Errors
    /// Limits of the query.
    fn goes_on(&self, control: &Control<'_>, step: &PlanStep, rows_in: u64, rows_out: u64) -> Result<bool>;
}

/// Work units between two reads of the clock while no batch passes a step: some 20 µs of cheap rows, and 1 ms
/// of expensive ones, such as rows of a merged hash table.
const WORK_ROWS: usize = 1 << 11;

/// Rows of a batch of a heavy query while light queries run. 1,024 rows took some steps 1 ms; with 256 rows
/// heavy queries lost a tenth of their throughput (2026-11-23).
const BATCH_ROWS_BESIDE_LIGHT: usize = BATCH_ROWS / 2;

/// Rows of the first batch of a query that ends after few rows; each further one has this many rows more.
const BATCH_ROWS_FIRST: usize = 16;

/// Bytes of parts of a query that run at the same time, each with a [`Control`] of its own and the same cap.
#[derive(Debug, Default)]
pub struct SharedMemory(AtomicU64);

impl SharedMemory {
    /// Counts `bytes` more; the sum.
    fn add(&self, bytes: u64) -> u64 {
        self.0.fetch_add(bytes, Relaxed).saturating_add(bytes)
    }

    /// Counts bytes of no part, which the returned value takes back when it is dropped.
    ///
    /// # Errors
    /// [`ErrorKind::MemoryLimit`]: they would be more than `limit`.
    pub fn hold(self: &Arc<Self>, bytes: u64, limit: Option<u64>) -> Result<HeldMemory> {
        let held = HeldMemory(CountedBytes::sharing(self));
        let total = held.0.add(bytes);
        match limit {
            Some(limit) if total > limit => Err(too_much(limit)),
            _ => Ok(held),
        }
    }
}

/// See [`SharedMemory::hold`].
#[derive(Debug)]
pub struct HeldMemory(CountedBytes);

/// The bytes of one [`Control`], which are part of shared ones if others count with it.
#[derive(Debug, Default)]
struct CountedBytes {
    own: AtomicU64,
    shared: Option<Arc<SharedMemory>>,
}

impl CountedBytes {
    fn sharing(shared: &Arc<SharedMemory>) -> Self {
        Self { own: AtomicU64::new(0), shared: Some(Arc::clone(shared)) }
    }

    /// Counts `bytes` more; the sum of all that share them.
    fn add(&self, bytes: u64) -> u64 {
        let own = self.own.fetch_add(bytes, Relaxed).saturating_add(bytes);
        self.shared.as_ref().map_or(own, |shared| shared.add(bytes))
    }

    /// Counts `bytes` less; the own ones before.
    fn subtract(&self, bytes: u64) -> u64 {
        if let Some(shared) = &self.shared {
            shared.0.fetch_sub(bytes, Relaxed);
        }
        self.own.fetch_sub(bytes, Relaxed)
    }

    /// The sum of all that share them.
    fn total(&self) -> u64 {
        self.shared.as_ref().map_or(&self.own, |shared| &shared.0).load(Relaxed)
    }
}

impl Drop for CountedBytes {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            shared.0.fetch_sub(self.own.load(Relaxed), Relaxed);
        }
    }
}

/// Limits of a query and the usage counted against them. Checked once for each batch and step, and by
/// [`Control::work`] in loops without output.
///
/// Aligned to avoid false sharing between threads.
#[derive(Default)]
#[repr(align(128))]
pub struct Control<'q> {
    limits: Limits,
    /// Decides whether the query is planned again while it runs.
    reoptimizer: Option<&'q dyn Reoptimizer>,
    /// The `Control` of the query, which counts bytes, if this is that of a worker.
    query: Option<&'q Control<'q>>,
    /// Set when the workers of the query shall stop.
    halted: Option<&'q AtomicBool>,
    memory: CountedBytes,
    /// Bytes of computed terms that are part of `memory`.
    computed_bytes: AtomicU64,
    /// Rows of the next batch while batches grow; 0: they have their full size.
    growing_batch_rows: AtomicUsize,
    /// Work units since the last read of the clock.
    work: AtomicUsize,
    /// Light or heavy, and the gate for heavy queries.
    class: WorkloadClass,
}

impl<'q> Control<'q> {
    /// Zero usage.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Zero usage; heavy queries pass `gate` at every [`Control::check`].
    #[must_use]
    pub fn with_gate(limits: Limits, gate: Option<Arc<dyn Gate>>) -> Self {
        let begun = limits.deadline.and_then(|(deadline, timeout)| deadline.checked_sub(timeout));
        Self { limits, class: WorkloadClass::new(gate, begun), ..Self::default() }
    }

    /// The same limits, with bytes counted together with those of other parts of the query.
    #[must_use]
    pub fn with_shared_memory(self, shared: &Arc<SharedMemory>) -> Self {
        Self { memory: CountedBytes::sharing(shared), ..self }
    }

    /// The same limits for a run that `reoptimizer` may end in favour of another plan.
    #[must_use]
    pub fn with_reoptimizer(self, reoptimizer: &'q dyn Reoptimizer) -> Self {
        Self { reoptimizer: Some(reoptimizer), ..self }
    }

    /// The same limits, with bytes counted here, for a run within a query or update that `reoptimizer` may
    /// end in favour of another plan.
    #[must_use]
    pub fn for_run(&'q self, reoptimizer: &'q dyn Reoptimizer) -> Self {
        Self {
            limits: self.limits.clone(),
            reoptimizer: Some(reoptimizer),
            query: Some(self.counter()),
            halted: self.halted,
            class: self.class.for_part(),
            ..Self::default()
        }
    }

    /// See [`Control::with_reoptimizer`].
    pub(crate) fn reoptimizer(&self) -> Option<&'q dyn Reoptimizer> {
        self.reoptimizer
    }

    /// Takes back what a run that has ended with an error has counted, before another run: `bytes` were
    /// counted before it.
    pub fn restart(&self, bytes: u64) {
        let counter = self.counter();
        counter.computed_bytes.store(0, Relaxed);
        counter.memory.subtract(counter.memory.own.load(Relaxed));
        counter.memory.add(bytes);
    }

    /// The same limits for a worker thread of a heavy query; its [`Control::check`] also fails once `halted`
    /// is set.
    #[must_use]
    pub fn for_worker(&'q self, halted: &'q AtomicBool) -> Self {
        Self {
            limits: self.limits.clone(),
            reoptimizer: self.reoptimizer,
            query: Some(self.counter()),
            halted: Some(halted),
            class: self.class.for_worker(),
            ..Self::default()
        }
    }

    /// Classifies the query as heavy.
    pub fn set_heavy(&self) {
        self.class.set_heavy();
    }

    /// Whether the query is heavy, by estimate or by processor time used.
    #[must_use]
    pub fn is_heavy(&self) -> bool {
        self.class.is_heavy()
    }

    /// Lets batches start small and grow, for a query that probably ends after few rows.
    pub(crate) fn start_with_small_batches(&self) {
        self.growing_batch_rows.store(BATCH_ROWS_FIRST, Relaxed);
    }

    /// Number of rows of a batch from a source. Smaller in a heavy query while light queries run, which wait
    /// for the current step of a batch.
    #[must_use]
    pub fn batch_rows(&self) -> usize {
        let growing = self.growing_batch_rows.load(Relaxed);
        if growing > 0 {
            let next = growing + BATCH_ROWS_FIRST;
            self.growing_batch_rows.store(if next < BATCH_ROWS { next } else { 0 }, Relaxed);
            return growing;
        }
        if self.class.is_beside_light() { BATCH_ROWS_BESIDE_LIGHT } else { BATCH_ROWS }
    }

    /// Releases the permit of this thread at the gate, since it has no work for now or is about to block.
    pub fn leave(&self) {
        self.class.leave();
    }

    /// The `Control` that counts bytes.
    fn counter(&self) -> &Control<'q> {
        self.query.unwrap_or(self)
    }

    /// Checks cancellation and deadline; blocks a heavy query at the gate while others have priority.
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
        // Relaxed: the flags publish no data; a delay of one batch is harmless.
        if self.halted.is_some_and(|flag| flag.load(Relaxed)) {
            return Err(Error::new(ErrorKind::Cancelled, "another thread of the query has stopped it"));
        }
        if self.limits.cancelled.as_ref().is_some_and(|flag| flag.load(Relaxed)) {
            return Err(cancelled_error());
        }
        if let Some((deadline, timeout)) = self.limits.deadline
            && now.is_some_and(|now| now >= deadline)
        {
            return Err(deadline_error(timeout));
        }
        Ok(())
    }

    /// Makes deadline and cancellation those of the calling thread, for code below that waits.
    pub fn enter(&self) -> EnteredLimits {
        let Limits { cancelled, deadline, reads, .. } = self.limits.clone();
        ThreadLimits { cancelled, deadline, reads }.enter()
    }

    /// The reads of other servers that were counted, by server; the counts begin again at zero.
    #[must_use]
    pub fn take_reads(&self) -> Vec<(String, ReadCounts)> {
        self.limits.reads.as_ref().map(|reads| reads.take()).unwrap_or_default()
    }

    /// Time until the deadline; `None`: no deadline.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        let (deadline, _) = self.limits.deadline?;
        Some(deadline.saturating_duration_since(Instant::now()))
    }

    /// Counts `rows` work units; calls [`Control::check`] after a fixed number of units, so most calls only
    /// count.
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
        let total = self.counter().memory.add(bytes);
        match self.limits.memory_bytes {
            Some(limit) if total > limit => Err(too_much(limit)),
            _ => Ok(()),
        }
    }

    /// The memory cap in bytes.
    #[must_use]
    pub fn memory_limit(&self) -> Option<u64> {
        self.limits.memory_bytes
    }

    /// Whether `bytes` more would stay below the cap, for algorithms with a variant that uses less memory.
    #[must_use]
    pub fn has_room(&self, bytes: u64) -> bool {
        let total = self.memory_bytes().saturating_add(bytes);
        self.limits.memory_bytes.is_none_or(|limit| total <= limit)
    }

    /// Counts bytes that were freed.
    pub fn shrink(&self, bytes: u64) {
        let before = self.counter().memory.subtract(bytes);
        debug_assert!(before >= bytes, "{bytes} bytes are freed of {before}");
    }

    /// Updates the count of a table that took `counted` bytes at the last call and takes `bytes` now.
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

    /// Checks whether `bytes` more would stay below the cap.
    ///
    /// # Errors
    /// [`ErrorKind::MemoryLimit`].
    pub fn check_room(&self, bytes: u64) -> Result<()> {
        match self.limits.memory_bytes {
            Some(limit) if !self.has_room(bytes) => Err(too_much(limit)),
            _ => Ok(()),
        }
    }

    /// Sets the total size of the computed terms of the query to `bytes`.
    ///
    /// # Errors
    /// As [`Control::grow`].
    pub fn count_computed(&self, bytes: u64) -> Result<()> {
        let counter = self.counter();
        if counter.computed_bytes.load(Relaxed) == bytes {
            return Ok(());
        }
        // Each thread replaces the count of another, so that the final sum is correct.
        let mut counted = counter.computed_bytes.swap(bytes, Relaxed);
        self.recount(&mut counted, bytes)
    }

    /// Bytes currently counted, by all that share the cap.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.counter().memory.total()
    }
}

impl std::fmt::Debug for Control<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (limits, bytes) = (&self.limits, self.memory_bytes());
        f.debug_struct("Control")
            .field("limits", limits)
            .field("memory_bytes", &bytes)
            .finish_non_exhaustive()
    }
}

impl Interrupt for Control<'_> {
    fn check(&self) -> Result<()> {
        Control::check(self)
    }

    fn check_room(&self, bytes: u64) -> Result<()> {
        Control::check_room(self, bytes)
    }
}

#[cold]
fn too_much(limit: u64) -> Error {
    let message = format!("the query needs more than its memory cap of {limit} bytes");
    Error::new(ErrorKind::MemoryLimit, message)
        .with_hint("raise the memory cap, or restrict the query (more constants, LIMIT)")
}
