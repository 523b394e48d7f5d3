//! PageRank: how much of a walk that goes on for ever is spent at each vertex.
//!
//! A share `alpha` of the rank of a vertex goes along its arcs, in equal parts; the rest, and all that
//! vertices without arcs would send, is spread over all vertices (*teleportation*).
//! # Source
//! L. Page, S. Brin, R. Motwani, T. Winograd, "The PageRank Citation Ranking", 1999; rounds and first ranks
//! as TinkerPop's `PageRankVertexProgram` has them.

use super::pieces::in_pieces;
use super::{Effort, Network};
use vervet_model::{Error, ErrorKind, Result};

/// Vertices of one piece of work.
const PIECE: usize = 1 << 14;

/// How [`page_rank`] goes on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PageRank {
    /// The share of a rank that goes along arcs, from 0 to 1.
    pub alpha: f64,
    /// The most rounds; after none all have the first rank.
    pub times: u32,
    /// Ends once all ranks together change by less than this.
    pub epsilon: f64,
}

impl Default for PageRank {
    fn default() -> Self {
        Self { alpha: 0.85, times: 20, epsilon: 1e-5 }
    }
}

/// The rank of each vertex. Without `first` all vertices begin with an equal part of 1; with it these are the
/// first ranks, of which the sum is kept.
///
/// # Cost
/// `O((vertices + arcs) * times)`, on several threads; 16 bytes a vertex.
///
/// # Errors
/// Input: an `alpha` outside of 0 to 1; first ranks that are not one finite number for each vertex. Limits.
pub fn page_rank(
    network: &Network,
    options: &PageRank,
    first: Option<&[f64]>,
    effort: &Effort<'_>,
) -> Result<Vec<f64>> {
    if !(0.0..=1.0).contains(&options.alpha) {
        let message = format!("the alpha of a rank must be from 0 to 1, and this is {}", options.alpha);
        return Err(Error::new(ErrorKind::Input, message));
    }
    if first.is_some_and(|first| first.len() != network.len() || !first.iter().all(|rank| rank.is_finite())) {
        return Err(Error::new(ErrorKind::Input, "first ranks must be one finite number for each vertex"));
    }
    let (count, alpha) = (network.len(), options.alpha);
    effort.control.grow(16 * count as u64)?;
    let mut ranks = vec![0.0_f64; count];
    // What a vertex sends along each of its arcs.
    let mut sent = vec![0.0_f64; count];
    let mut teleported = if first.is_some() { 0.0 } else { 1.0 };
    for round in 0..=options.times {
        let everywhere = if teleported > 0.0 { teleported / count as f64 } else { 0.0 };
        let pieces = in_pieces(effort, count, PIECE, |piece| {
            let (mut new, mut change, mut spread) = (Vec::with_capacity(piece.len()), 0.0, 0.0);
            for vertex in piece {
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
        for (new, changed, spread) in pieces {
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
    effort.control.shrink(16 * count as u64);
    Ok(ranks)
}
