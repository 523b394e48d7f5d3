//! Physical plans and kernels: vectorised operators from batches of bindings to batches of bindings.
//!
//! [`plan`] defines the steps; [`execute()`] runs a plan. `operators` has one file for each kernel. A kernel
//! owns no thread, no socket and no file; it reads the graph through [`vervet_snapshot`] and pushes batches
//! into the rest of its pipeline, through the types of `pipeline`. `execution` compiles steps to kernels and
//! runs them; its module [`parallel`] has the components with which a driver runs one plan on many threads.
#![forbid(unsafe_code)]

mod execution;
mod operators;
mod pipeline;
pub mod plan;

pub use execution::cut::{PipelineCut, needs_one_thread};
pub use execution::execute::{Results, ends_early, execute, solution_column};
pub use execution::parallel;
pub use operators::intersect::small_lists::{SMALL_LIST_LAST_MEAN, SMALL_LIST_PREFIX_MEAN};
pub use pipeline::batch::{BATCH_ROWS, Batch};
pub use pipeline::chain::{Flow, Run};
pub use pipeline::combined_rows::CombinedRows;
pub use pipeline::control::{Control, HeldMemory, Limits, Reoptimizer, SharedMemory};
pub use pipeline::first_rows::SharedFrontiers;
pub use pipeline::gate::{Gate, LIGHT_TIME};
pub use pipeline::join_table::JoinTable;
pub use pipeline::shared::Shared;
