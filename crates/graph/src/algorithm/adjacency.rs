//! Adjacency: the neighbours of densely numbered vertices, sorted, each once (compressed sparse rows).
//!
//! The algorithms of simple graphs run on it: those that search, intersect or count neighbours. A
//! [`Network`](super::Network) has parallel arcs, and lists sources rather than targets.
//!
//! # Cost
//! 8 bytes a vertex and 4 an arc. Construction takes a counting sort, and on several threads a sort of each
//! list.

use super::parallel_chunks::in_chunks;
use super::{Network, ResourceLimits};
use vervet_model::{Error, ErrorKind, Result};

/// Number of vertices of one piece of work.
const CHUNK: usize = 1 << 12;

/// Arcs between two checks of the limits.
const CHECK_EVERY: usize = 1 << 16;

/// Sorted lists of neighbours. See the header of this file.
#[derive(Clone, Debug, Default)]
pub struct Adjacency {
    /// Offsets into `neighbours`; one more than there are vertices.
    starts: Vec<usize>,
    neighbours: Vec<u32>,
}

impl Adjacency {
    /// The targets of these arcs between `count` vertices. Parallel arcs become one; loops remain. Counts its
    /// memory.
    ///
    /// # Errors
    /// Limits. [`ErrorKind::Unsupported`]: 2^32 vertices or more. Internal: an arc to a number out of range.
    pub fn new(count: usize, arcs: &[[u32; 2]], limits: &ResourceLimits<'_>) -> Result<Self> {
        if u32::try_from(count).is_err() {
            return Err(Error::new(ErrorKind::Unsupported, "an algorithm cannot run on so many vertices")
                .with_hint("the limit is 2^32 - 1"));
        }
        limits.control.grow(16 * count as u64 + 8 * arcs.len() as u64)?;
        let mut starts = vec![0_usize; count + 1];
        for part in arcs.chunks(CHECK_EVERY) {
            limits.control.check()?;
            for &[source, target] in part {
                if source as usize >= count || target as usize >= count {
                    return Err(Error::internal("an arc has no vertex"));
                }
                starts[source as usize + 1] += 1;
            }
        }
        for vertex in 0..count {
            starts[vertex + 1] += starts[vertex];
        }
        let mut next = starts.clone();
        let mut neighbours = vec![0_u32; arcs.len()];
        for part in arcs.chunks(CHECK_EVERY) {
            limits.control.check()?;
            for &[source, target] in part {
                let index = &mut next[source as usize];
                neighbours[*index] = target;
                *index += 1;
            }
        }
        drop(next);
        let unsorted = Self { starts, neighbours };
        let parts = in_chunks(limits, count, CHUNK, |chunk| {
            let (mut lengths, mut lists) = (Vec::with_capacity(chunk.len()), Vec::new());
            let mut own = Vec::new();
            for vertex in chunk {
                own.clear();
                own.extend_from_slice(unsorted.neighbours(vertex));
                limits.control.work(1 + own.len())?;
                own.sort_unstable();
                own.dedup();
                lengths.push(own.len());
                lists.extend_from_slice(&own);
            }
            Ok((lengths, lists))
        })?;
        let mut sorted = Self { starts: Vec::with_capacity(count + 1), neighbours: Vec::new() };
        sorted.starts.push(0);
        for (lengths, lists) in parts {
            for length in lengths {
                sorted.starts.push(sorted.starts.last().copied().unwrap_or(0) + length);
            }
            sorted.neighbours.extend_from_slice(&lists);
        }
        let freed = arcs.len() - sorted.neighbours.len();
        limits.control.shrink(8 * count as u64 + 4 * (arcs.len() + freed) as u64);
        Ok(sorted)
    }

    /// The targets of the arcs of a network.
    ///
    /// # Errors
    /// Limits.
    pub fn outgoing(network: &Network, limits: &ResourceLimits<'_>) -> Result<Self> {
        let bytes = 8 * network.arc_count() as u64;
        limits.control.grow(bytes)?;
        let mut arcs = Vec::with_capacity(network.arc_count());
        for (number, vertex) in (0_u32..).zip(0..network.len()) {
            limits.control.work(1)?;
            arcs.extend(network.sources(vertex).iter().map(|source| [*source, number]));
        }
        let found = Self::new(network.len(), &arcs, limits);
        limits.control.shrink(bytes);
        found
    }

    /// Every arc reversed.
    ///
    /// # Errors
    /// Limits.
    pub fn reversed(&self, limits: &ResourceLimits<'_>) -> Result<Self> {
        let count = self.len();
        limits.control.grow(16 * count as u64 + 4 * self.arc_count() as u64)?;
        let mut starts = vec![0_usize; count + 1];
        for target in &self.neighbours {
            starts[*target as usize + 1] += 1;
        }
        for vertex in 0..count {
            starts[vertex + 1] += starts[vertex];
        }
        let mut next = starts.clone();
        let mut neighbours = vec![0_u32; self.arc_count()];
        // Sources ascend, so the lists are sorted.
        for (number, source) in (0_u32..).zip(0..count) {
            let targets = self.neighbours(source);
            limits.control.work(1 + targets.len())?;
            for target in targets {
                let index = &mut next[*target as usize];
                neighbours[*index] = number;
                *index += 1;
            }
        }
        limits.control.shrink(8 * count as u64);
        Ok(Self { starts, neighbours })
    }

    /// Every arc in both directions.
    ///
    /// # Errors
    /// Limits.
    pub fn symmetric(&self, limits: &ResourceLimits<'_>) -> Result<Self> {
        let bytes = 16 * self.arc_count() as u64;
        limits.control.grow(bytes)?;
        let mut arcs = Vec::with_capacity(2 * self.arc_count());
        for (number, source) in (0_u32..).zip(0..self.len()) {
            let targets = self.neighbours(source);
            limits.control.work(1 + targets.len())?;
            arcs.extend(targets.iter().flat_map(|target| [[number, *target], [*target, number]]));
        }
        let found = Self::new(self.len(), &arcs, limits);
        limits.control.shrink(bytes);
        found
    }

    /// The neighbours of a vertex, ascending.
    #[must_use]
    pub fn neighbours(&self, vertex: usize) -> &[u32] {
        self.neighbours.get(self.starts[vertex]..self.starts[vertex + 1]).unwrap_or_default()
    }

    /// The number of vertices.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Whether it has no vertex.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of arcs.
    #[must_use]
    pub fn arc_count(&self) -> usize {
        self.neighbours.len()
    }
}

/// The number of a vertex or of something that each vertex has at most one of: [`Adjacency::new`] checks that
/// they fit.
pub(super) fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vervet_kernel::{Control, Limits};

    #[test]
    fn neighbours_are_sorted_and_distinct() -> Result<()> {
        let control = Control::new(Limits::default());
        for threads in [1, 3] {
            let limits = ResourceLimits { control: &control, threads };
            let arcs = [[2, 1], [0, 2], [0, 1], [0, 2], [1, 1]];
            let all = Adjacency::new(3, &arcs, &limits)?;
            let lists = |all: &Adjacency| (0..3).map(|v| all.neighbours(v).to_vec()).collect::<Vec<_>>();
            assert_eq!(lists(&all), [vec![1, 2], vec![1], vec![1]]);
            assert_eq!(lists(&all.reversed(&limits)?), [vec![], vec![0, 1, 2], vec![0]]);
            assert_eq!(lists(&all.symmetric(&limits)?), [vec![1, 2], vec![0, 1, 2], vec![0, 1]]);
            assert!(Adjacency::new(2, &[[0, 2]], &limits).is_err());
            assert!(Adjacency::new(0, &[], &limits)?.is_empty());
        }
        Ok(())
    }
}
