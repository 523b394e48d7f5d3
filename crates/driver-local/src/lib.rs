//! Local driver: parallel query execution on the threads of one process (morsel-driven).
//!
//! A *light* plan runs immediately on the calling thread. A *heavy* one, by estimated cost, is cut (see
//! [`vervet_kernel::PipelineCut`]): the calling thread and some helpers each run a copy of the same kernels
//! over morsels from one shared counter, which balances load. Helpers send rows to the calling thread through
//! a channel of a few batches: a slow reader blocks the helpers (back-pressure), and a reader that stops ends
//! them.
//!
//! # Invariants
//! 1. The result is the same multiset of rows for any number of threads; with `ORDER BY`, so is the order, up
//!    to equal rows.
//! 2. No thread runs any part of a query after [`Driver::execute`] has returned, whether it succeeded,
//!    failed or panicked.
//! 3. Cancellation, deadline and memory cap apply to the query as a whole, over all its threads.
//! 4. A light query never waits for a heavy one: it needs no helper. A heavy one without a free helper runs
//!    on the calling thread alone, and its threads take turns with those of other heavy queries (`gate.rs`).
//! # Not here
//! Semantics and parallel forms of steps: `vervet-kernel`.

mod driver;
mod gate;
mod pipeline_executor;
mod pool;

pub use driver::{
    CutPolicy, Driver, HEAVY_FROM_DEFAULT, LocalDriver, Parallelism, Placement, THREADS_MAX, is_heavy,
};
pub use gate::on_heavy;
