//! PageRank by power iteration, with a tolerance, start ranks and a distribution of jumps.
//!
//! [`page_rank`](super::page_rank) has the rounds of TinkerPop; this is the form of NetworkX.

use super::parallel_chunks::in_chunks;
use super::{Adjacency, ResourceLimits};
use vervet_model::Result;

/// Number of vertices of one piece of work.
const CHUNK: usize = 1 << 13;

/// Options of [`power_iteration`]. A distribution has a number for each vertex, with sum 1.
#[derive(Clone, Copy, Debug)]
pub struct PowerIteration<'a> {
    /// Damping factor.
    pub alpha: f64,
    /// Maximum number of rounds.
    pub rounds_max: u32,
    /// Ends when the sum of all changes in a round is less than this for each vertex.
    pub tolerance: f64,
    /// First ranks; `None`: all equal.
    pub first: Option<&'a [f64]>,
    /// Where jumps lead to; `None`: to all vertices equally.
    pub jumps: Option<&'a [f64]>,
    /// Where the ranks of vertices without arcs go; `None`: as jumps.
    pub dangling: Option<&'a [f64]>,
}

/// The ranks; `None` if they have not converged. `incoming` is `outgoing` reversed.
///
/// # Cost
/// `O(vertices + arcs)` for each round, on several threads; 24 bytes a vertex.
///
/// # Errors
/// Limits.
pub fn power_iteration(
    outgoing: &Adjacency,
    incoming: &Adjacency,
    options: &PowerIteration<'_>,
    limits: &ResourceLimits<'_>,
) -> Result<Option<Vec<f64>>> {
    let count = outgoing.len();
    let bytes = 24 * count as u64;
    limits.control.grow(bytes)?;
    let equal = 1.0 / count as f64;
    let mut ranks = options.first.map_or_else(|| vec![equal; count], <[f64]>::to_vec);
    let jumps = |vertex: usize| options.jumps.map_or(equal, |jumps| jumps[vertex]);
    let dangling = |vertex: usize| options.dangling.map_or_else(|| jumps(vertex), |parts| parts[vertex]);
    let mut sent = vec![0.0_f64; count];
    let mut has_converged = false;
    for _ in 0..options.rounds_max {
        let parts = in_chunks(limits, count, CHUNK, |chunk| {
            let mut lost = 0.0;
            let part = chunk.map(|vertex| match outgoing.neighbours(vertex).len() {
                0 => {
                    lost += ranks[vertex];
                    0.0
                }
                degree => ranks[vertex] / degree as f64,
            });
            let part: Vec<f64> = part.collect();
            Ok((part, lost))
        })?;
        let (mut at, mut lost) = (0, 0.0);
        for (part, of_part) in parts {
            sent[at..at + part.len()].copy_from_slice(&part);
            at += part.len();
            lost += of_part;
        }
        let parts = in_chunks(limits, count, CHUNK, |chunk| {
            let (mut part, mut change) = (Vec::with_capacity(chunk.len()), 0.0);
            for vertex in chunk {
                let sources = incoming.neighbours(vertex);
                limits.control.work(1 + sources.len())?;
                let arrived: f64 = sources.iter().map(|source| sent[*source as usize]).sum();
                let rank = options.alpha * (arrived + lost * dangling(vertex))
                    + (1.0 - options.alpha) * jumps(vertex);
                change += f64::abs(rank - ranks[vertex]);
                part.push(rank);
            }
            Ok((part, change))
        })?;
        let (mut at, mut change) = (0, 0.0);
        for (part, of_part) in parts {
            ranks[at..at + part.len()].copy_from_slice(&part);
            at += part.len();
            change += of_part;
        }
        if change < options.tolerance * count as f64 {
            has_converged = true;
            break;
        }
    }
    limits.control.shrink(bytes);
    Ok(has_converged.then_some(ranks))
}
