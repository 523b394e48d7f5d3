//! Plans and the kernels that run them: a batch of bindings to a batch of bindings.
//!
//! [`plan`] says what can be run; [`execute()`] runs it. One kernel, one file. A kernel owns no thread, no
//! socket and no file; it reads the graph through [`vervet_snapshot`] and pushes batches into the rest of
//! its pipeline.
#![forbid(unsafe_code)]

mod batch;
mod chain;
mod check;
mod compile;
mod control;
mod distinct;
mod execute;
mod expand;
mod filter;
mod group;
mod intersect;
mod join;
mod matching;
mod once;
mod optional;
mod order;
pub mod plan;
mod scan;
mod values;

pub use batch::{BATCH_ROWS, Batch};
pub use chain::Flow;
pub use control::{Control, Limits};
pub use execute::{execute, solution_column};
