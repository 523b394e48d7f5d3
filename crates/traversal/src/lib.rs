//! Gremlin traversals: compilation from bytecode, and execution over a snapshot or a transaction.
//!
//! # Shape
//! [`Traversal::new`] builds a pipeline of steps from bytecode; [`Traversal::run`] returns a [`Run`], which
//! pulls results one at a time. The graph is a [`Host`]: a snapshot, or a transaction that accepts writes.
//!
//! * `analysis`, `modulated`, `compile`, `strategy`: from bytecode to steps.
//! * `step`, `traverser`, `bulk`, `memory`, `queue`, `outputs`, `context`, `collection_index`: execution of
//!   steps, and their limits.
//! * `condition`, `fusion`: filters, and the descriptions by which steps absorb and fuse each other.
//! * `steps`: the steps of the language, one file per family.
//! * `graph`: the snapshot as vertices, edges, properties and their values.
//! # Not here
//! Query text and values (`vervet-gremlin`), transactions (the facade).
#![forbid(unsafe_code)]

mod analysis;
mod bulk;
mod by;
mod collection_index;
mod compile;
mod condition;
mod context;
mod error;
mod fusion;
mod graph;
mod host;
mod memory;
mod modulated;
mod outputs;
mod property_write;
mod queue;
mod run;
mod scope;
mod semantic;
mod size;
mod sort;
mod step;
mod steps;
mod strategy;
mod translation;
mod traverser;

pub use analysis::mutates;
pub use compile::{DEPTH_MAX, STEPS_MAX};
pub use graph::detail::Materialize;
pub use graph::export::{VertexParts, for_each_vertex};
pub use graph::ids::vertex_name;
pub use graph::literal::literal;
pub use host::{FileFormat, Host, Owner, ReadOnly, RowSink};
pub use run::{Run, Traversal};
pub use size::{NESTING_MAX, VALUES_MAX, bytes as value_bytes};
