//! Betweenness centrality: the share of shortest paths that pass through a vertex.
//! # Source
//! U. Brandes, "A Faster Algorithm for Betweenness Centrality", J. Math. Sociology 25(2), 2001.

use super::parallel_chunks::in_chunks;
use super::{Adjacency, ResourceLimits};
use vervet_model::Result;

/// Sums that are kept at a time: one for each piece of work.
const SUMS_MAX: usize = 16;
/// Sources of one piece of work.
const SOURCES: usize = 16;

/// For each vertex the sum, over all pairs of one of `sources` and another vertex, of the fraction of their
/// shortest paths that pass through it; the ends of a path do not count, unless `endpoints`.
///
/// # Cost
/// `O(arcs)` for each source, on several threads; 8 bytes a vertex for each of 16 sums, and 24 bytes a vertex
/// for each thread.
///
/// # Errors
/// Limits.
pub fn betweenness(
    graph: &Adjacency,
    sources: &[u32],
    endpoints: bool,
    limits: &ResourceLimits<'_>,
) -> Result<Vec<f64>> {
    let count = graph.len();
    let bytes = (8 * (1 + SUMS_MAX) + 24 * limits.threads.max(1)) as u64 * count as u64;
    limits.control.grow(bytes)?;
    let mut total = vec![0.0_f64; count];
    // The pieces are added in order, so sums do not depend on the number of threads.
    for wave in sources.chunks(SUMS_MAX * SOURCES) {
        let sums = in_chunks(limits, wave.len(), SOURCES, |chunk| {
            let mut search = Search::new(graph);
            for source in &wave[chunk] {
                search.add(*source, endpoints, limits)?;
            }
            Ok(search.sums)
        })?;
        for sums in sums {
            total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        }
    }
    limits.control.shrink(bytes);
    Ok(total)
}

struct Search<'g> {
    graph: &'g Adjacency,
    sums: Vec<f64>,
    /// Steps from the source; `u32::MAX`: not reached.
    steps: Vec<u32>,
    /// Number of shortest paths from the source.
    paths: Vec<f64>,
    dependency: Vec<f64>,
    reached: Vec<u32>,
}

impl<'g> Search<'g> {
    fn new(graph: &'g Adjacency) -> Self {
        let count = graph.len();
        Self {
            graph,
            sums: vec![0.0; count],
            steps: vec![u32::MAX; count],
            paths: vec![0.0; count],
            dependency: vec![0.0; count],
            reached: Vec::new(),
        }
    }

    /// Adds the dependencies of a source.
    fn add(&mut self, source: u32, endpoints: bool, limits: &ResourceLimits<'_>) -> Result<()> {
        self.reached.clear();
        self.reached.push(source);
        (self.steps[source as usize], self.paths[source as usize]) = (0, 1.0);
        let mut at = 0;
        while let Some(&vertex) = self.reached.get(at) {
            at += 1;
            let (steps, paths) = (self.steps[vertex as usize] + 1, self.paths[vertex as usize]);
            let neighbours = self.graph.neighbours(vertex as usize);
            limits.control.work(1 + neighbours.len())?;
            for &next in neighbours {
                let next_at = next as usize;
                if self.steps[next_at] == u32::MAX {
                    self.steps[next_at] = steps;
                    self.reached.push(next);
                }
                if self.steps[next_at] == steps {
                    self.paths[next_at] += paths;
                }
            }
        }
        if endpoints {
            self.sums[source as usize] += (self.reached.len() - 1) as f64;
        }
        // Backwards: a vertex after all that it precedes.
        for &vertex in self.reached.iter().rev() {
            let at = vertex as usize;
            let neighbours = self.graph.neighbours(at);
            limits.control.work(1 + neighbours.len())?;
            let steps = self.steps[at] + 1;
            let mut sum = 0.0;
            for &next in neighbours {
                if self.steps[next as usize] == steps {
                    sum +=
                        self.paths[at] / self.paths[next as usize] * (1.0 + self.dependency[next as usize]);
                }
            }
            self.dependency[at] = sum;
            if vertex != source {
                self.sums[at] += sum + if endpoints { 1.0 } else { 0.0 };
            }
        }
        for &vertex in &self.reached {
            let at = vertex as usize;
            (self.steps[at], self.paths[at], self.dependency[at]) = (u32::MAX, 0.0, 0.0);
        }
        Ok(())
    }
}
