//! Random directed graphs with power-law degrees, without parallel edges and self-loops (Chung-Lu model).
//!
//! # Shape
//! Both ends of an edge are drawn independently; the vertex of rank `r` with a probability proportional to
//! `(r + r0)^-a`, `a = 1 / (exponent - 1)`. So the number of vertices with degree `d` falls as `d^-exponent`.
//! `r0` is chosen so that the largest expected degree is about twice the square root of the number of edges.
//! Ranks are then shuffled, so that vertex numbers and degrees are independent.
//! # Cost
//! About 0.2 µs and 16 bytes of memory for each edge.
//! # Source
//! Chung and Lu, "The average distances in random graphs with given expected degrees", PNAS 2002.
//! Different: repeated edges and loops are drawn again, so that the number of edges is exact.

use crate::Random;
use rustc_hash::FxHashSet;
use std::io::{self, Write};

/// Parameters of the graph.
///
/// ```
/// use vervet_generate::PowerLaw;
/// let edges = PowerLaw { vertices: 1_000, edges: 5_000, ..PowerLaw::default() }.generate();
/// assert_eq!(edges.len(), 5_000);
/// assert!(edges.iter().all(|(source, target)| source != target));
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PowerLaw {
    /// Number of vertices; their numbers are `0..vertices`.
    pub vertices: u32,
    /// Number of edges; capped at half of all possible ones.
    pub edges: u32,
    /// Exponent of the degree distribution; must be above 2, most real graphs are below 3.
    pub exponent: f64,
    /// The same seed gives the same graph.
    pub seed: u64,
}

impl Default for PowerLaw {
    /// A million edges between a hundred thousand vertices, exponent 2.3.
    fn default() -> Self {
        Self { vertices: 100_000, edges: 1_000_000, exponent: 2.3, seed: 0 }
    }
}

impl PowerLaw {
    /// The edges as (source, target), sorted.
    #[must_use]
    pub fn generate(&self) -> Vec<(u32, u32)> {
        let mut random = Random::new(self.seed);
        let possible = u64::from(self.vertices) * u64::from(self.vertices.saturating_sub(1));
        let wanted = usize::try_from(u64::from(self.edges).min(possible / 2)).unwrap_or(usize::MAX);
        let mut numbers: Vec<u32> = (0..self.vertices).collect();
        random.shuffle(&mut numbers);
        let ranks = RankSampler::new(self);
        let mut edges = FxHashSet::with_capacity_and_hasher(wanted, rustc_hash::FxBuildHasher);
        while edges.len() < wanted {
            let source = numbers[ranks.sample(&mut random)];
            let target = numbers[ranks.sample(&mut random)];
            if source != target {
                edges.insert((source, target));
            }
        }
        let mut edges: Vec<_> = edges.into_iter().collect();
        edges.sort_unstable();
        edges
    }
}

/// Writes edges as N-Triples, `<urn:v1> <urn:e> <urn:v2> .`
///
/// # Errors
/// Those of `out`, which should be buffered.
pub fn write_edges(edges: &[(u32, u32)], out: &mut dyn Write) -> io::Result<()> {
    for (source, target) in edges {
        writeln!(out, "<urn:v{source}> <urn:e> <urn:v{target}> .")?;
    }
    Ok(())
}

/// Draws ranks by inverting the integral of `(r + offset)^-a`.
struct RankSampler {
    count: usize,
    offset: f64,
    power: f64,
    low: f64,
    high: f64,
}

impl RankSampler {
    fn new(graph: &PowerLaw) -> Self {
        let count = f64::from(graph.vertices);
        let power = 1.0 - 1.0 / (graph.exponent.max(2.001) - 1.0);
        let edges = f64::from(graph.edges).max(1.0);
        let largest = (2.0 * edges.sqrt() / edges).max(1.0 / count.max(1.0));
        // The probability of rank 0 falls as the offset grows: bisection.
        let (mut below, mut above) = (0.0, count);
        for _ in 0..60 {
            let offset = f64::midpoint(below, above);
            if Self::with_offset(graph, power, offset).share_of_first() > largest {
                below = offset;
            } else {
                above = offset;
            }
        }
        Self::with_offset(graph, power, above)
    }

    fn with_offset(graph: &PowerLaw, power: f64, offset: f64) -> Self {
        Self {
            count: graph.vertices as usize,
            offset,
            power,
            low: offset.powf(power),
            high: (offset + f64::from(graph.vertices)).powf(power),
        }
    }

    fn share_of_first(&self) -> f64 {
        ((self.offset + 1.0).powf(self.power) - self.low) / (self.high - self.low)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a conversion from float saturates, and the result is capped"
    )]
    fn sample(&self, random: &mut Random) -> usize {
        let at = self.low + random.unit() * (self.high - self.low);
        let rank = at.powf(1.0 / self.power) - self.offset;
        (rank as usize).min(self.count.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exact number of edges, no loop, no repetition, and a heavy tail: the largest degree is far above the
    /// mean, and about as large as specified.
    #[test]
    fn degrees_are_heavy_tailed() {
        let graph = PowerLaw { vertices: 10_000, edges: 100_000, ..PowerLaw::default() };
        let edges = graph.generate();
        assert_eq!(edges.len(), 100_000);
        assert!(edges.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(edges.iter().all(|(source, target)| source != target));
        let mut degrees = vec![0u32; 10_000];
        for (source, _) in &edges {
            degrees[*source as usize] += 1;
        }
        let largest = *degrees.iter().max().unwrap();
        assert!((400..900).contains(&largest), "{largest}");
        assert_eq!(edges, graph.generate());
    }

    #[test]
    fn small_and_impossible_graphs_terminate() {
        for vertices in 0..4 {
            let graph = PowerLaw { vertices, edges: 100, ..PowerLaw::default() };
            let most = u64::from(vertices) * u64::from(vertices.saturating_sub(1)) / 2;
            assert_eq!(graph.generate().len() as u64, most);
        }
    }
}
