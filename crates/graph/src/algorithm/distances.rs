//! Breadth-first searches: vertices by their number of steps from a source.

use super::{Adjacency, ResourceLimits};
use vervet_model::Result;

/// The vertices that a breadth-first search has reached, in its order.
#[derive(Clone, Debug, Default)]
pub struct Reached {
    /// The vertices in the order in which they were reached; the source first.
    pub vertices: Vec<u32>,
    /// For each of `vertices` the steps from the source.
    pub steps: Vec<u32>,
    /// For each of `vertices` its predecessor on a shortest path; the source has itself.
    pub parents: Vec<u32>,
}

/// A reusable search on one graph.
#[derive(Debug)]
pub struct BreadthFirst<'g> {
    graph: &'g Adjacency,
    seen: Vec<u64>,
}

impl<'g> BreadthFirst<'g> {
    /// A search.
    ///
    /// # Errors
    /// Limits.
    pub fn new(graph: &'g Adjacency, limits: &ResourceLimits<'_>) -> Result<Self> {
        let words = graph.len().div_ceil(64);
        limits.control.grow(8 * words as u64)?;
        Ok(Self { graph, seen: vec![0; words] })
    }

    /// The vertices at most `steps_max` steps from `source`. Ends when it reaches `target`, if there is one.
    ///
    /// # Cost
    /// `O(arcs)` of the reached part, on the calling thread; 12 bytes for each reached vertex.
    ///
    /// # Errors
    /// Limits.
    pub fn from(
        &mut self,
        source: u32,
        target: Option<u32>,
        steps_max: u32,
        limits: &ResourceLimits<'_>,
    ) -> Result<Reached> {
        let mut reached = Reached { vertices: vec![source], steps: vec![0], parents: vec![source] };
        let result = self.search(&mut reached, target, steps_max, limits);
        for vertex in &reached.vertices {
            self.seen[*vertex as usize / 64] = 0;
        }
        result.map(|()| reached)
    }

    fn search(
        &mut self,
        reached: &mut Reached,
        target: Option<u32>,
        steps_max: u32,
        limits: &ResourceLimits<'_>,
    ) -> Result<()> {
        let first = reached.vertices[0];
        self.seen[first as usize / 64] |= 1 << (first % 64);
        let mut at = 0;
        while let (Some(&vertex), Some(&steps)) = (reached.vertices.get(at), reached.steps.get(at)) {
            at += 1;
            if steps >= steps_max || target == Some(vertex) {
                break;
            }
            let neighbours = self.graph.neighbours(vertex as usize);
            limits.control.work(1 + neighbours.len())?;
            for &next in neighbours {
                let word = &mut self.seen[next as usize / 64];
                if *word >> (next % 64) & 1 == 0 {
                    *word |= 1 << (next % 64);
                    reached.vertices.push(next);
                    reached.steps.push(steps + 1);
                    reached.parents.push(vertex);
                    if target == Some(next) {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }
}

/// The component of each vertex of a symmetric graph, numbered by their least vertices.
///
/// # Cost
/// `O(vertices + arcs)` on the calling thread; 12 bytes a vertex.
///
/// # Errors
/// Limits.
pub fn weak_components(graph: &Adjacency, limits: &ResourceLimits<'_>) -> Result<Vec<u32>> {
    let bytes = 12 * graph.len() as u64;
    limits.control.grow(bytes)?;
    let mut component = vec![u32::MAX; graph.len()];
    let mut waiting = Vec::new();
    let mut found = 0;
    for (number, root) in (0_u32..).zip(0..graph.len()) {
        if component[root] != u32::MAX {
            continue;
        }
        component[root] = found;
        waiting.push(number);
        while let Some(vertex) = waiting.pop() {
            let neighbours = graph.neighbours(vertex as usize);
            limits.control.work(1 + neighbours.len())?;
            for &next in neighbours {
                if component[next as usize] == u32::MAX {
                    component[next as usize] = found;
                    waiting.push(next);
                }
            }
        }
        found += 1;
    }
    limits.control.shrink(bytes);
    Ok(component)
}
