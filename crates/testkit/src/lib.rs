//! Shared test support: [`MemorySnapshot`], a graph as sorted vectors, simple enough to be the reference for
//! every other implementation of [`vervet_snapshot::Snapshot`]; [`check_segment`], the cases that every
//! segment must pass; random numbers.
#![forbid(unsafe_code)]

mod cases;
mod memory;
mod random;

pub use cases::check_segment;
pub use memory::MemorySnapshot;
pub use random::{Random, seed};
pub use vervet_model::Statement;
