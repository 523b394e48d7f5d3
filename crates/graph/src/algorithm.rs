//! Graph algorithms (OLAP): ranks, components, communities, cores, triangles, centrality, shortest paths.
//!
//! # Shape
//! * [`Network`]: densely numbered vertices with their incoming arcs, read from segments once (compressed
//!   sparse rows). [`page_rank`], [`components`] and [`peer_pressure`] run on it.
//! * [`Adjacency`]: sorted neighbours, each once. The algorithms of simple graphs run on it:
//!   [`power_iteration`], [`weak_components`], [`strong_components`], [`BreadthFirst`], [`core_numbers`],
//!   [`triangles`], [`betweenness`], [`louvain`], [`label_propagation`].
//! * [`ShortestPaths`]: single-source searches in sequence, which read the arcs of reached vertices from
//!   [`ArcSource`] and cache them, so a short search reads little.
//! * [`ResourceLimits`]: limits and threads of one run.
//!
//! Numbers of vertices in a network are `u32`, and results are vectors indexed by them. [`Network::new`]
//! creates a network from any vertices and arcs, which need not be those of a graph.
//! # Invariants
//! A result does not depend on the number of threads: work is split into chunks of a fixed size, whose
//! results are combined in order, including sums of floating-point numbers.
//! # Source
//! Semantics are those of the vertex programs of Apache TinkerPop 3.8.1 (PageRank, PeerPressure,
//! ConnectedComponent, ShortestPath), which pass messages; here each round is one pass over the arcs. Those
//! of simple graphs have the semantics of NetworkX 3.6.

mod adjacency;
mod arcs;
mod betweenness;
mod components;
mod cores;
mod distances;
mod label_propagation;
mod louvain;
mod network;
mod page_rank;
mod parallel_chunks;
mod paths;
mod peer_pressure;
mod power_iteration;
mod strong_components;
mod triangles;

pub use adjacency::Adjacency;
pub use arcs::{ArcSource, SegmentArcs, WeightedArc};
pub use betweenness::betweenness;
pub use components::components;
pub use cores::core_numbers;
pub use distances::{BreadthFirst, Reached, weak_components};
pub use label_propagation::label_propagation;
pub use louvain::{Louvain, louvain};
pub use network::{Follow, Network, name_order};
pub use page_rank::{PageRank, page_rank};
pub use paths::{FoundPath, PathOptions, ShortestPaths};
pub use peer_pressure::{PeerPressure, peer_pressure};
pub use power_iteration::{PowerIteration, power_iteration};
pub use strong_components::strong_components;
pub use triangles::triangles;

use vervet_kernel::Control;

/// Resource limits of an algorithm.
#[derive(Clone, Copy, Debug)]
pub struct ResourceLimits<'c> {
    /// Deadline, cancellation and memory cap.
    pub control: &'c Control<'c>,
    /// Maximum number of threads, including the calling one; 0 is 1.
    pub threads: usize,
}
