//! All shortest paths from a source vertex (Dijkstra, or breadth-first search without weights).
//!
//! # Shape
//! A search in the order of distances (by levels if each arc is 1, otherwise with a heap) records for each
//! vertex the last arcs of its shortest paths; paths are enumerated backwards, one at a time. Vertices are
//! numbered when reached, and their arcs are cached for later searches.
//! # Cost
//! A search takes `O(arcs)`, or `O(arcs log(vertices))` with distances; 44 bytes for each reached vertex, 48
//! for each of its arcs and 16 for each arc of a shortest path. There may be exponentially many paths: they
//! are visited one at a time and not stored.
//! # Source
//! E. W. Dijkstra, "A note on two problems in connexion with graphs", 1959. The definition of a path (simple;
//! paths over parallel edges are distinct only if edges are requested) is that of TinkerPop's
//! `ShortestPathVertexProgram`, which also supports negative distances, by enumerating all paths.

use super::{ArcSource, ResourceLimits, WeightedArc};
use crate::Edge;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use vervet_model::{Error, ErrorKind, Id, Result};

/// Number of vertices whose arcs are read at a time.
const BATCH: usize = 1024;
const NO_VERTEX: u32 = u32::MAX;

/// Options of a search.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathOptions {
    /// Whether arcs have their own distances; otherwise each is 1.
    pub weighted: bool,
    /// Maximum length of a path.
    pub distance_max: f64,
    /// Whether paths over parallel edges are distinct.
    pub edges: bool,
}

impl Default for PathOptions {
    fn default() -> Self {
        Self { weighted: false, distance_max: f64::INFINITY, edges: false }
    }
}

/// A path passed to `visit`.
#[derive(Clone, Copy, Debug)]
pub struct FoundPath<'p> {
    /// The vertices, including both ends.
    pub vertices: &'p [Id],
    /// The edges between consecutive vertices; without ids if [`PathOptions::edges`] is off.
    pub edges: &'p [Edge],
    /// Length of the path.
    pub distance: f64,
}

/// State and caches of searches.
#[derive(Debug)]
pub struct ShortestPaths<'c, W> {
    arc_source: W,
    options: PathOptions,
    limits: ResourceLimits<'c>,
    numbers: FxHashMap<Id, u32>,
    vertices: Vec<Vertex>,
    arcs: Vec<Arc>,
    /// Last arcs of shortest paths, as linked lists that start at vertices.
    arrivals: Vec<Arrival>,
    /// Number and start of the current search.
    search: u32,
    start: u32,
    counted: u64,
}

#[derive(Clone, Copy, Debug)]
struct Vertex {
    id: Id,
    /// Range of its arcs; `None`: not read yet.
    arcs: Option<(u32, u32)>,
    /// The last search that reached it, with its results.
    search: u32,
    distance: f64,
    arrival: u32,
    on_path: bool,
}

#[derive(Clone, Copy, Debug)]
struct Arc {
    to: u32,
    edge: Edge,
    distance: f64,
}

#[derive(Clone, Copy, Debug)]
struct Arrival {
    from: u32,
    arc: u32,
    /// Next element in the list of the same vertex.
    next: u32,
}

impl<'c, W: ArcSource> ShortestPaths<'c, W> {
    /// Empty caches.
    pub fn new(arc_source: W, options: PathOptions, limits: ResourceLimits<'c>) -> Self {
        Self {
            arc_source,
            options,
            limits,
            numbers: FxHashMap::default(),
            vertices: Vec::new(),
            arcs: Vec::new(),
            arrivals: Vec::new(),
            search: 0,
            start: NO_VERTEX,
            counted: 0,
        }
    }

    /// The provider of the arcs.
    pub fn arc_source_mut(&mut self) -> &mut W {
        &mut self.arc_source
    }

    /// Calls `visit` with each shortest path from `source` to a vertex accepted by `is_target`, including the
    /// empty path to `source` itself. Targets are in the order of their distances; the order of the paths to
    /// one target is deterministic.
    ///
    /// # Errors
    /// Limits; a distance that is negative or not a number; errors of `is_target`, `visit` and the
    /// [`ArcSource`].
    pub fn from(
        &mut self,
        source: Id,
        is_target: &mut dyn FnMut(&mut W, Id) -> Result<bool>,
        visit: &mut dyn FnMut(&mut W, FoundPath<'_>) -> Result<()>,
    ) -> Result<()> {
        self.search = self.search.wrapping_add(1);
        self.arrivals.clear();
        self.start = self.number(source)?;
        self.reach(self.start, 0.0);
        let reached = if self.options.weighted { self.by_distance()? } else { self.by_levels()? };
        for vertex in reached {
            let id = self.vertices[vertex as usize].id;
            if is_target(&mut self.arc_source, id)? {
                self.paths_to(vertex, visit)?;
            }
        }
        Ok(())
    }

    /// The number of a vertex, assigned on first use.
    fn number(&mut self, id: Id) -> Result<u32> {
        if let Some(number) = self.numbers.get(&id) {
            return Ok(*number);
        }
        let number = u32::try_from(self.vertices.len()).ok().filter(|number| *number != NO_VERTEX);
        let number = number.ok_or_else(too_much)?;
        self.vertices.push(Vertex {
            id,
            arcs: None,
            search: 0,
            distance: 0.0,
            arrival: NO_VERTEX,
            on_path: false,
        });
        self.numbers.insert(id, number);
        Ok(number)
    }

    /// Records that the current search has reached a vertex at a new distance.
    fn reach(&mut self, vertex: u32, distance: f64) {
        let search = self.search;
        let vertex = &mut self.vertices[vertex as usize];
        (vertex.search, vertex.distance, vertex.arrival) = (search, distance, NO_VERTEX);
    }

    /// Reads the arcs of these vertices, unless cached.
    fn know(&mut self, vertices: &[u32]) -> Result<()> {
        let unknown: Vec<u32> = vertices
            .iter()
            .copied()
            .filter(|number| self.vertices[*number as usize].arcs.is_none())
            .collect();
        for numbers in unknown.chunks(BATCH) {
            self.limits.control.check()?;
            let ids: Vec<Id> = numbers.iter().map(|number| self.vertices[*number as usize].id).collect();
            let mut found: Vec<(usize, WeightedArc)> = Vec::new();
            self.arc_source.arcs(&ids, &mut |row, weighted| found.push((row, weighted)))?;
            // Groups the arcs by vertex; the stable sort preserves their order.
            found.sort_by_key(|(row, _)| *row);
            let mut found = found.into_iter().peekable();
            for (row, number) in numbers.iter().enumerate() {
                let first = self.arc_count()?;
                while let Some((_, weighted)) = found.next_if(|(of, _)| *of == row) {
                    if weighted.distance.is_nan() || weighted.distance < 0.0 {
                        let message =
                            format!("an edge has the distance {}, which is not permitted", weighted.distance);
                        return Err(
                            Error::new(ErrorKind::Query, message).with_hint("distances are 0 or more")
                        );
                    }
                    let to = self.number(weighted.to)?;
                    self.arcs.push(Arc { to, edge: weighted.edge, distance: weighted.distance });
                }
                let end = self.arc_count()?;
                self.vertices[*number as usize].arcs = Some((first, end));
            }
            self.count()?;
        }
        Ok(())
    }

    fn arc_count(&self) -> Result<u32> {
        u32::try_from(self.arcs.len()).map_err(|_| too_much())
    }

    /// Counts the memory of the caches.
    fn count(&mut self) -> Result<()> {
        let of_vertex = size_of::<Vertex>() + 2 * size_of::<(Id, u32)>();
        let bytes = self.vertices.capacity() * of_vertex
            + self.arcs.capacity() * size_of::<Arc>()
            + self.arrivals.capacity() * size_of::<Arrival>();
        self.limits.control.recount(&mut self.counted, bytes as u64)
    }

    /// Relaxes the arcs of a vertex; `further` receives the vertices with a new shortest distance.
    fn follow(&mut self, from: u32, further: &mut dyn FnMut(u32, f64)) -> Result<()> {
        let Vertex { arcs, distance, .. } = self.vertices[from as usize];
        let (first, end) = arcs.unwrap_or_default();
        self.limits.control.work((end - first) as usize + 1)?;
        for index in first..end {
            let arc = self.arcs[index as usize];
            let length = distance + if self.options.weighted { arc.distance } else { 1.0 };
            if arc.to == from || arc.to == self.start || length > self.options.distance_max {
                continue;
            }
            let to = self.vertices[arc.to as usize];
            if to.search != self.search || length < to.distance {
                self.reach(arc.to, length);
                further(arc.to, length);
            } else if length > to.distance {
                continue;
            } else if let (false, Some(last)) = (self.options.edges, self.arrivals.get(to.arrival as usize))
                && last.from == from
            {
                // A parallel edge, if those are not distinct.
                continue;
            }
            let number = u32::try_from(self.arrivals.len()).ok().filter(|number| *number != NO_VERTEX);
            let next = self.vertices[arc.to as usize].arrival;
            self.arrivals.push(Arrival { from, arc: index, next });
            self.vertices[arc.to as usize].arrival = number.ok_or_else(too_much)?;
        }
        Ok(())
    }

    /// All reached vertices, by number of arcs (breadth-first search).
    fn by_levels(&mut self) -> Result<Vec<u32>> {
        let mut reached = vec![self.start];
        let mut level = 0;
        while level < reached.len() {
            let end = reached.len();
            let now = reached[level..end].to_vec();
            self.know(&now)?;
            for vertex in now {
                self.follow(vertex, &mut |next, _| reached.push(next))?;
            }
            self.count()?;
            level = end;
        }
        Ok(reached)
    }

    /// All reached vertices, by distance (Dijkstra).
    fn by_distance(&mut self) -> Result<Vec<u32>> {
        let mut reached = Vec::new();
        let mut waiting = BinaryHeap::from([Reverse((Distance(0.0), self.start))]);
        while let Some(Reverse((Distance(distance), vertex))) = waiting.pop() {
            // The heap has one element for each improvement of a vertex; outdated ones are skipped.
            if distance > self.vertices[vertex as usize].distance {
                continue;
            }
            reached.push(vertex);
            self.know(&[vertex])?;
            self.follow(vertex, &mut |next, length| waiting.push(Reverse((Distance(length), next))))?;
            if reached.len().is_multiple_of(BATCH) {
                self.count()?;
            }
        }
        Ok(reached)
    }

    /// Enumerates all paths to a vertex, backwards arc by arc.
    fn paths_to(
        &mut self,
        target: u32,
        visit: &mut dyn FnMut(&mut W, FoundPath<'_>) -> Result<()>,
    ) -> Result<()> {
        let distance = self.vertices[target as usize].distance;
        // Backtracking stack: a vertex, and its next last arc to try.
        let mut back: Vec<(u32, u32)> = vec![(target, self.vertices[target as usize].arrival)];
        let mut edges: Vec<Edge> = Vec::new();
        self.vertices[target as usize].on_path = true;
        let done = loop {
            if let Err(error) = self.limits.control.work(16) {
                break Err(error);
            }
            let Some(&(vertex, next)) = back.last() else { break Ok(()) };
            if vertex == self.start {
                let vertices: Vec<Id> =
                    back.iter().rev().map(|(vertex, _)| self.vertices[*vertex as usize].id).collect();
                let forward: Vec<Edge> = edges.iter().rev().copied().collect();
                let path = FoundPath { vertices: &vertices, edges: &forward, distance };
                if let Err(error) = visit(&mut self.arc_source, path) {
                    break Err(error);
                }
            }
            match self.arrivals.get(next as usize).copied() {
                Some(arrival) => {
                    if let Some((_, next)) = back.last_mut() {
                        *next = arrival.next;
                    }
                    let before = &mut self.vertices[arrival.from as usize];
                    if !before.on_path {
                        before.on_path = true;
                        back.push((arrival.from, before.arrival));
                        edges.push(self.arcs[arrival.arc as usize].edge);
                    }
                }
                None => {
                    self.vertices[vertex as usize].on_path = false;
                    back.pop();
                    edges.pop();
                }
            }
        };
        for (vertex, _) in back {
            self.vertices[vertex as usize].on_path = false;
        }
        done
    }
}

impl<W> Drop for ShortestPaths<'_, W> {
    fn drop(&mut self) {
        self.limits.control.shrink(self.counted);
    }
}

fn too_much() -> Error {
    Error::new(ErrorKind::Unsupported, "a search cannot reach 2^32 vertices or arcs")
}

/// A distance, never NaN, hence totally ordered.
#[derive(Clone, Copy, PartialEq)]
struct Distance(f64);

impl Eq for Distance {}

impl PartialOrd for Distance {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Distance {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
