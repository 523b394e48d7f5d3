//! What tests share: [`MemorySnapshot`], a graph as sorted vectors, simple enough to be the reference
//! for every other implementation of [`vervet_snapshot::Snapshot`].
#![forbid(unsafe_code)]

mod memory;

pub use memory::MemorySnapshot;
pub use vervet_model::Statement;
