//! Graph algorithms: PageRank, connected components, peer pressure clustering, shortest paths.
//!
//! Gremlin's `pageRank()`, `connectedComponent()`, `peerPressure()` and `shortestPath()` run the same code;
//! here they are methods that return vertices.
//!
//! ```
//! use vervet::algorithms::{AlgorithmOptions, PageRank};
//! use vervet::Database;
//!
//! # fn main() -> vervet::Result<()> {
//! let db = Database::in_memory();
//! db.gremlin(
//!     r#"g.addV("page").property(T.id, "a").as("a").addV("page").property(T.id, "b").as("b").
//!          addV("page").property(T.id, "c").as("c").
//!          addE("links").from("a").to("c").addE("links").from("b").to("c").addE("links").from("c").to("a")"#,
//! )?;
//! let snapshot = db.snapshot();
//! let options = AlgorithmOptions { labels: vec!["links".to_owned()], ..AlgorithmOptions::default() };
//! let ranks = snapshot.page_rank(&PageRank::default(), &options)?;
//! let (best, rank) = ranks.iter().max_by(|(_, a), (_, b)| a.total_cmp(b)).expect("there are three pages");
//! assert_eq!(snapshot.graph().external_id(*best)?, "c");
//! assert!((0.4..0.5).contains(rank));
//! # Ok(())
//! # }
//! ```
//!
//! # Cost
//! The edges are read once, on several threads: 20 bytes a vertex and 4 an edge (8 if edges are followed in
//! both directions), twice that while reading. Each method states what it adds to this.

pub use vervet_graph::algorithm::{Follow, FoundPath, PageRank, PeerPressure};

use crate::options::{CancelToken, QUERY_MEMORY_DEFAULT_BYTES, QUERY_TIMEOUT_DEFAULT, THREADS_MAX};
use crate::{GraphSnapshot, Vertex};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vervet_graph::algorithm::{
    Network, PathOptions, ResourceLimits, SegmentArcs, ShortestPaths, components, name_order, page_rank,
    peer_pressure,
};
use vervet_kernel::{Control, Gate, Limits};
use vervet_model::{Error, Id, Result};

/// The edges that an algorithm follows, and its limits.
#[derive(Clone, Debug)]
pub struct AlgorithmOptions {
    /// Deadline; `None`: none.
    pub timeout: Option<Duration>,
    /// Memory cap in bytes; `None`: no cap.
    pub memory_limit_bytes: Option<u64>,
    /// Cancels the run from another thread.
    pub cancel: Option<CancelToken>,
    /// The maximum number of threads, including the calling thread; `None`: the available parallelism of the
    /// process. Results do not depend on it.
    pub threads: Option<usize>,
    /// Labels of the edges to follow; empty: all.
    pub labels: Vec<String>,
    /// Direction in which edges are followed; `None`: from source to target for ranks and clusters, both
    /// directions for components and paths.
    pub follow: Option<Follow>,
}

impl Default for AlgorithmOptions {
    fn default() -> Self {
        Self {
            timeout: Some(QUERY_TIMEOUT_DEFAULT),
            memory_limit_bytes: Some(QUERY_MEMORY_DEFAULT_BYTES),
            cancel: None,
            threads: None,
            labels: Vec::new(),
            follow: None,
        }
    }
}

impl AlgorithmOptions {
    fn control(&self, gate: Option<Arc<dyn Gate>>) -> Control<'static> {
        let limits = Limits {
            cancelled: self.cancel.as_ref().map(CancelToken::flag),
            deadline: self.timeout.and_then(|timeout| Some((Instant::now().checked_add(timeout)?, timeout))),
            memory_bytes: self.memory_limit_bytes,
            reads: None,
        };
        Control::with_gate(limits, gate)
    }
}

/// The number of threads that an algorithm uses.
pub(crate) fn threads(wanted: Option<usize>) -> usize {
    let threads =
        wanted.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    threads.clamp(1, THREADS_MAX)
}

/// Parameters of a shortest-path search.
#[derive(Clone, PartialEq, Debug)]
pub struct PathSearch {
    /// The property key that holds the length of an edge; an edge without it has length 0. `None`: every
    /// length is 1.
    pub distance: Option<String>,
    /// The longest distance of a path.
    pub distance_max: f64,
    /// Whether paths over parallel edges are different paths, and paths contain edge ids.
    pub edges: bool,
}

impl Default for PathSearch {
    fn default() -> Self {
        Self { distance: None, distance_max: f64::INFINITY, edges: false }
    }
}

impl GraphSnapshot {
    /// The rank of every vertex, by vertex number. The ranks add up to 1.
    ///
    /// # Cost
    /// `O((vertices + edges) * times)` on several threads; 16 bytes a vertex.
    ///
    /// # Errors
    /// Input: `alpha` outside 0 to 1. Limits; damaged data.
    pub fn page_rank(&self, how: &PageRank, options: &AlgorithmOptions) -> Result<Vec<(Vertex, f64)>> {
        self.on_network(options, Follow::Out, &mut |network, limits| page_rank(network, how, None, limits))
    }

    /// The component of every vertex, by vertex number. A component is named by its vertex with the smallest
    /// external id as text (compared by UTF-16 units, like TinkerPop). If edges are followed in one direction
    /// only, the name is the smallest vertex from which the vertex is reachable.
    ///
    /// # Cost
    /// `O(vertices log(vertices) + edges)`: all external ids are read and sorted. 32 bytes a vertex and 4 an
    /// edge, and the ids while they are sorted.
    ///
    /// # Errors
    /// Limits; damaged data.
    pub fn connected_components(&self, options: &AlgorithmOptions) -> Result<Vec<(Vertex, Vertex)>> {
        let found = self.on_network(options, Follow::Both, &mut |network, limits| {
            let found = components(network, &self.order(network, limits)?, limits)?;
            Ok(vertices(network, &found))
        })?;
        found.into_iter().map(|(vertex, name)| Ok((vertex, handle(name)?))).collect()
    }

    /// The cluster of every vertex, by vertex number; a cluster is named by one of its vertices.
    ///
    /// # Cost
    /// `O((vertices + edges log(edges of one vertex)) * times)` on several threads. External ids are read and
    /// sorted as in [`GraphSnapshot::connected_components`].
    ///
    /// # Errors
    /// Limits; damaged data.
    pub fn peer_pressure(
        &self,
        how: &PeerPressure,
        options: &AlgorithmOptions,
    ) -> Result<Vec<(Vertex, Vertex)>> {
        let found = self.on_network(options, Follow::Out, &mut |network, limits| {
            let found = peer_pressure(network, how, None, &self.order(network, limits)?, limits)?;
            Ok(vertices(network, &found))
        })?;
        found.into_iter().map(|(vertex, name)| Ok((vertex, handle(name)?))).collect()
    }

    /// Calls `each` with every shortest path from one of `sources` to one of `targets` (`None`: to any
    /// vertex), equally short paths included. The path from a vertex to itself has no edges. An error of
    /// `each` ends the search and is returned.
    ///
    /// # Cost
    /// For each source `O(edges)`, with distances `O(edges log(vertices))`, over the reachable part of the
    /// graph. Edges are read when they are first reached: 44 bytes a vertex, 48 an edge. Runs on the calling
    /// thread. The number of paths may be exponential.
    ///
    /// # Errors
    /// [`ErrorKind::Query`](crate::ErrorKind::Query): a distance that is negative or not a number. Limits;
    /// damaged data; errors of `each`.
    pub fn shortest_paths(
        &self,
        sources: &[Vertex],
        targets: Option<&[Vertex]>,
        how: &PathSearch,
        options: &AlgorithmOptions,
        each: &mut dyn FnMut(FoundPath<'_>) -> Result<()>,
    ) -> Result<()> {
        let control = options.control(self.gate.clone());
        let _limits = control.enter();
        let limits = ResourceLimits { control: &control, threads: 1 };
        let follow = options.follow.unwrap_or(Follow::Both);
        let targets: Option<HashSet<Id>> = targets.map(|all| all.iter().map(|vertex| vertex.id()).collect());
        let (distance, snapshot) = (how.distance.as_deref(), self.as_snapshot());
        let arcs = SegmentArcs::new(snapshot, &options.labels, follow, distance, how.edges)?;
        let options =
            PathOptions { weighted: distance.is_some(), distance_max: how.distance_max, edges: how.edges };
        let mut search = ShortestPaths::new(arcs, options, limits);
        for source in sources {
            let mut is_target = |_: &mut SegmentArcs<'_>, vertex: Id| {
                Ok(targets.as_ref().is_none_or(|targets| targets.contains(&vertex)))
            };
            search.from(source.id(), &mut is_target, &mut |_, path| each(path))?;
        }
        Ok(())
    }

    /// Runs an algorithm on the edges selected by `options`.
    fn on_network<T>(
        &self,
        options: &AlgorithmOptions,
        follow: Follow,
        run: &mut dyn FnMut(&Network, &ResourceLimits<'_>) -> Result<Vec<T>>,
    ) -> Result<Vec<(Vertex, T)>> {
        let control = options.control(self.gate.clone());
        let _limits = control.enter();
        let limits = ResourceLimits { control: &control, threads: threads(options.threads) };
        let follow = options.follow.unwrap_or(follow);
        let network = Network::read(self.as_snapshot(), &options.labels, follow, &limits)?;
        let found = run(&network, &limits)?;
        network.vertices().iter().zip(found).map(|(vertex, found)| Ok((handle(*vertex)?, found))).collect()
    }

    /// The rank of each vertex in the order of external ids.
    fn order(&self, network: &Network, limits: &ResourceLimits<'_>) -> Result<Vec<u32>> {
        let graph = self.graph();
        name_order(network.vertices(), &mut |vertex| graph.external_id(handle(vertex)?), limits)
    }
}

/// The vertices at these positions of the network.
fn vertices(network: &Network, places: &[u32]) -> Vec<Id> {
    places.iter().map(|place| network.vertices()[*place as usize]).collect()
}

fn handle(id: Id) -> Result<Vertex> {
    Vertex::from_id(id).ok_or_else(|| Error::internal("a network contains an id that is not a vertex"))
}
