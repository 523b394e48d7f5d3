//! Algorithms on whole graphs: rank of vertices, components, clusters, shortest paths.
//!
//! # Shape
//! * [`Network`]: vertices numbered densely, and for each the arcs that lead to it, read from segments once
//!   (compressed sparse rows). [`page_rank`], [`components`] and [`peer_pressure`] run on it.
//! * [`ShortestPaths`]: a search from one vertex after the other, which asks [`Ways`] for the arcs of what it
//!   reaches and remembers them, so a short search reads little.
//! * [`Effort`]: limits and threads of one run.
//!
//! Numbers of vertices in a network are `u32`, and results are vectors by them: whoever wants other vertices
//! or arcs than those of a graph makes a network of its own ([`Network::new`]).
//! # Invariants
//! A result does not depend on the number of threads: work is cut into pieces of a fixed size, and what the
//! pieces give is put together in their order, sums of floating-point numbers included.
//! # Source
//! Behaviour is that of the vertex programs of Apache TinkerPop 3.8.1 (PageRank, PeerPressure,
//! ConnectedComponent, ShortestPath), which pass messages; here each round is one pass over the arcs.

mod components;
mod network;
mod page_rank;
mod paths;
mod peer_pressure;
mod pieces;
mod ways;

pub use components::components;
pub use network::{Follow, Network, name_order};
pub use page_rank::{PageRank, page_rank};
pub use paths::{FoundPath, PathOptions, ShortestPaths};
pub use peer_pressure::{PeerPressure, peer_pressure};
pub use ways::{SegmentWays, Way, Ways};

use vervet_kernel::Control;

/// What an algorithm may take.
#[derive(Clone, Copy, Debug)]
pub struct Effort<'c> {
    /// Deadline, cancellation and memory cap.
    pub control: &'c Control<'c>,
    /// The most threads, the one that calls included; 0 is 1.
    pub threads: usize,
}
