//! Runs plans on the threads of one process.
//!
//! A *light* plan runs at once on the thread that asked. A *heavy* one, by estimated cost, is cut (see
//! [`vervet_kernel::Cut`]): the thread that asked and some helpers each run a copy of the same kernels
//! over morsels, which all take from one counter; so a thread that drew light morsels takes more of them.
//! Rows come to the thread that asked through a channel of a few batches: who reads slowly makes the helpers
//! wait, and who stops reading ends them.
//!
//! # Invariants
//! 1. Rows are the same, as a multiset, for any number of threads; their order is, where an order was asked
//!    for, up to equal rows.
//! 2. Nothing of a query runs once [`LocalDriver::execute`] has returned, whether it succeeded, failed or
//!    panicked.
//! 3. Cancellation, deadline and memory cap are those of the query, over all its threads.
//! 4. A light query never waits for a heavy one: it needs no helper. A heavy one without a free helper goes
//!    on alone, and its threads take turns with those of others (`gate.rs`).
//! # Not here
//! What a step does, and which steps have a parallel form: `vervet-kernel`.

mod driver;
mod gate;
mod pool;
mod team;

pub use driver::{HEAVY_FROM_DEFAULT, LocalDriver, Parallelism, THREADS_MAX, is_heavy};
pub use gate::on_heavy;
