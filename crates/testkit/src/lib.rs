//! Shared test support: a reference snapshot, conformance cases for segments, random numbers,
//! addresses of servers, a server of objects.
//!
//! [`MemorySnapshot`] is a graph as sorted vectors, simple enough to be the reference for every other
//! implementation of [`vervet_snapshot::Snapshot`]; [`check_segment`] has the cases that every segment must
//! pass.
#![forbid(unsafe_code)]

mod cases;
mod memory;
mod object_server;
mod ports;
mod random;

pub use cases::{check_segment, check_strings};
pub use memory::MemorySnapshot;
pub use object_server::{Fault, ObjectRequest, ObjectServer};
pub use ports::free_address;
pub use random::{Random, seed};
pub use vervet_model::Statement;
