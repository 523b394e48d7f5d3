//! Clusters by peer pressure: each vertex goes where most of those go that have an arc to it.
//!
//! # Shape
//! Each vertex begins as a cluster of its own. In each round it takes the cluster with the most votes among
//! its own and those of the vertices with arcs to it; of equal ones that with the least name. It ends once
//! nobody moves.
//! # Source
//! Rounds, votes and ties as TinkerPop's `PeerPressureVertexProgram` has them.

use super::pieces::in_pieces;
use super::{Effort, Network};
use vervet_model::{Error, ErrorKind, Result};

/// Vertices of one piece of work.
const PIECE: usize = 1 << 13;
/// Votes that sum up to this or less do not count: the least number above 0.
const LEAST: f64 = f64::from_bits(1);

/// How [`peer_pressure`] goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerPressure {
    /// The most rounds; after none each vertex is its own cluster.
    pub times: u32,
}

impl Default for PeerPressure {
    fn default() -> Self {
        Self { times: 30 }
    }
}

/// The place of the vertex that names the cluster of each vertex. `strengths`: what the vote of a vertex
/// counts; without, 1. `order` says which name is less ([`name_order`](super::name_order)).
///
/// # Cost
/// `O((vertices + arcs log(arcs of one vertex)) * times)`, on several threads; 8 bytes a vertex.
///
/// # Errors
/// Input: strengths that are not one finite number for each vertex. Limits.
pub fn peer_pressure(
    network: &Network,
    options: &PeerPressure,
    strengths: Option<&[f64]>,
    order: &[u32],
    effort: &Effort<'_>,
) -> Result<Vec<u32>> {
    let count = network.len();
    if strengths.is_some_and(|all| all.len() != count || !all.iter().all(|vote| vote.is_finite())) {
        return Err(Error::new(ErrorKind::Input, "strengths must be one finite number for each vertex"));
    }
    let strength = |vertex: usize| strengths.map_or(1.0, |strengths| strengths[vertex]);
    effort.control.grow(8 * count as u64)?;
    let mut clusters: Vec<u32> = (0..).take(count).collect();
    for _ in 0..options.times {
        let pieces = in_pieces(effort, count, PIECE, |piece| {
            let (mut new, mut votes) = (Vec::with_capacity(piece.len()), Vec::new());
            let mut moved = false;
            for vertex in piece {
                votes.clear();
                votes.push((clusters[vertex], strength(vertex)));
                votes.extend(network.sources(vertex).iter().map(|source| {
                    let source = *source as usize;
                    (clusters[source], strength(source))
                }));
                let own = || u32::try_from(vertex).unwrap_or(u32::MAX);
                let cluster = winner(&mut votes, order).unwrap_or_else(own);
                moved |= cluster != clusters[vertex];
                new.push(cluster);
            }
            Ok((new, moved))
        })?;
        let moved = pieces.iter().any(|(_, moved)| *moved);
        clusters = pieces.into_iter().flat_map(|(new, _)| new).collect();
        if !moved {
            break;
        }
    }
    effort.control.shrink(8 * count as u64);
    Ok(clusters)
}

/// The cluster with the most votes; `None`: no vote counts.
fn winner(votes: &mut [(u32, f64)], order: &[u32]) -> Option<u32> {
    // Stable, so that votes are summed up in the order of the arcs.
    votes.sort_by_key(|(cluster, _)| *cluster);
    let (mut best, mut most) = (None::<u32>, LEAST);
    for votes in votes.chunk_by(|(a, _), (b, _)| a == b) {
        let Some(&(cluster, _)) = votes.first() else { continue };
        let sum: f64 = votes.iter().map(|(_, vote)| vote).sum();
        let is_less = |other: u32| order[cluster as usize] < order[other as usize];
        if sum > most || (sum == most && best.is_some_and(is_less)) {
            (best, most) = (Some(cluster), sum);
        }
    }
    best
}
