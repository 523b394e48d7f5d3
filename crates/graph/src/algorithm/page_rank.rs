//! PageRank: the stationary distribution of a random walk with teleportation.
//!
//! A vertex distributes the fraction `alpha` of its rank over its arcs, in equal parts; the rest, and the
//! rank of vertices without arcs, is distributed over all vertices (*teleportation*).
//! # Source
//! L. Page, S. Brin, R. Motwani, T. Winograd, "The PageRank Citation Ranking", 1999; rounds and initial ranks
//! as in TinkerPop's `PageRankVertexProgram`.

use super::parallel_chunks::in_chunks;
use super::{Network, ResourceLimits};
use vervet_model::{Error, ErrorKind, Result};

/// Number of vertices of one piece of work.
const CHUNK: usize = 1 << 14;

/// Options of [`page_rank`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PageRank {
    /// Damping factor: the fraction of a rank distributed over arcs, from 0 to 1.
    pub alpha: f64,
    /// Maximum number of rounds; 0: all vertices keep their initial rank.
    pub times: u32,
    /// Convergence threshold: ends when the sum of all rank changes is less than this.
    pub epsilon: f64,
}

impl Default for PageRank {
    fn default() -> Self {
        Self { alpha: 0.85, times: 20, epsilon: 1e-5 }
    }
}

/// The rank of each vertex. `first`: initial ranks, whose sum is preserved; `None`: all initial ranks are
/// equal, with sum 1.
///
/// # Cost
/// `O((vertices + arcs) * times)`, on several threads; 16 bytes a vertex.
///
/// # Errors
/// Input: an `alpha` outside of 0 to 1; initial ranks that are not one finite number for each vertex. Limits.
pub fn page_rank(
    network: &Network,
    options: &PageRank,
    first: Option<&[f64]>,
    limits: &ResourceLimits<'_>,
) -> Result<Vec<f64>> {
    if !(0.0..=1.0).contains(&options.alpha) {
        let message = format!("the alpha of PageRank must be from 0 to 1, but is {}", options.alpha);
        return Err(Error::new(ErrorKind::Input, message));
    }
    if first.is_some_and(|first| first.len() != network.len() || !first.iter().all(|rank| rank.is_finite())) {
        return Err(Error::new(ErrorKind::Input, "initial ranks must be one finite number for each vertex"));
    }
    let (count, alpha) = (network.len(), options.alpha);
    limits.control.grow(16 * count as u64)?;
    let mut ranks = vec![0.0_f64; count];
    // Rank that each vertex sends along each of its arcs.
    let mut sent = vec![0.0_f64; count];
    let mut teleported = if first.is_some() { 0.0 } else { 1.0 };
    for round in 0..=options.times {
        let everywhere = if teleported > 0.0 { teleported / count as f64 } else { 0.0 };
        let chunks = in_chunks(limits, count, CHUNK, |chunk| {
            let (mut new, mut change, mut spread) = (Vec::with_capacity(chunk.len()), 0.0, 0.0);
            for vertex in chunk {
                let arrived = match (round, first) {
                    (0, None) => 0.0,
                    (0, Some(first)) => first[vertex],
                    _ => network.sources(vertex).iter().map(|source| sent[*source as usize]).sum(),
                };
                let rank = arrived + everywhere;
                change += f64::abs(rank - ranks[vertex]);
                spread += (1.0 - alpha) * rank;
                if network.leaving(vertex) == 0 {
                    spread += alpha * rank;
                }
                new.push(rank);
            }
            Ok((new, change, spread))
        })?;
        teleported = teleported.min(0.0);
        let (mut at, mut change) = (0, 0.0);
        for (new, changed, spread) in chunks {
            for rank in new {
                ranks[at] = rank;
                let leaving = network.leaving(at);
                sent[at] = if leaving == 0 { 0.0 } else { alpha * rank / f64::from(leaving) };
                at += 1;
            }
            change += changed;
            teleported += spread;
        }
        if change < options.epsilon {
            break;
        }
    }
    limits.control.shrink(16 * count as u64);
    Ok(ranks)
}
