//! Physical plans and kernels: vectorised operators from batches of bindings to batches of bindings.
//!
//! [`plan`] defines the steps; [`execute()`] runs a plan. One kernel, one file. A kernel owns no thread, no
//! socket and no file; it reads the graph through [`vervet_snapshot`] and pushes batches into the rest of its
//! pipeline. [`parallel`] has the components with which a driver runs one plan on many threads.
#![forbid(unsafe_code)]

mod automaton_search;
mod batch;
mod candidate_keys;
mod chain;
mod check;
mod claims;
mod common;
mod compile;
mod control;
mod cut;
mod distinct;
mod execute;
mod exists;
mod expand;
mod filter;
mod gate;
mod group;
mod intersect;
mod join;
mod matching;
mod nodes;
mod optional;
mod order;
pub mod parallel;
mod path;
pub mod plan;
mod reverse_probe;
mod scan;
mod seeded;
mod shared;
mod small_lists;
mod values;
mod volatile_barrier;

pub use batch::{BATCH_ROWS, Batch};
pub use chain::{Flow, Run};
pub use control::{Control, Limits};
pub use cut::{PipelineCut, needs_one_thread};
pub use execute::{Results, execute, solution_column};
pub use gate::{Gate, LIGHT_TIME};
pub use join::JoinTable;
pub use shared::Shared;
pub use small_lists::{SMALL_LIST_LAST_MEAN, SMALL_LIST_PREFIX_MEAN};
