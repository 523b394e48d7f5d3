//! Peer pressure clustering (label propagation): each vertex joins the cluster with the most votes of its
//! in-neighbours.
//!
//! # Shape
//! Each vertex starts as its own cluster. In each round it adopts the cluster with the most votes, its own
//! and those of its in-neighbours; ties go to the least name. The algorithm ends when no vertex changes its
//! cluster.
//! # Source
//! Rounds, votes and ties as in TinkerPop's `PeerPressureVertexProgram`.

use super::parallel_chunks::in_chunks;
use super::{Network, ResourceLimits};
use vervet_model::{Error, ErrorKind, Result};

/// Number of vertices of one piece of work.
const CHUNK: usize = 1 << 13;
/// A sum of votes up to this does not count: the least number above 0.
const LEAST: f64 = f64::from_bits(1);

/// Options of [`peer_pressure`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerPressure {
    /// Maximum number of rounds; 0: each vertex remains its own cluster.
    pub times: u32,
}

impl Default for PeerPressure {
    fn default() -> Self {
        Self { times: 30 }
    }
}

/// For each vertex the position of the vertex that names its cluster. `strengths`: weight of the vote of each
/// vertex; `None`: 1. `order`: ranks of the names ([`name_order`](super::name_order)).
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
    limits: &ResourceLimits<'_>,
) -> Result<Vec<u32>> {
    let count = network.len();
    if strengths.is_some_and(|all| all.len() != count || !all.iter().all(|vote| vote.is_finite())) {
        return Err(Error::new(ErrorKind::Input, "strengths must be one finite number for each vertex"));
    }
    let strength = |vertex: usize| strengths.map_or(1.0, |strengths| strengths[vertex]);
    limits.control.grow(8 * count as u64)?;
    let mut clusters: Vec<u32> = (0..).take(count).collect();
    for _ in 0..options.times {
        let chunks = in_chunks(limits, count, CHUNK, |chunk| {
            let (mut new, mut votes) = (Vec::with_capacity(chunk.len()), Vec::new());
            let mut moved = false;
            for vertex in chunk {
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
        let moved = chunks.iter().any(|(_, moved)| *moved);
        clusters = chunks.into_iter().flat_map(|(new, _)| new).collect();
        if !moved {
            break;
        }
    }
    limits.control.shrink(8 * count as u64);
    Ok(clusters)
}

/// The cluster with the most votes; `None`: no sum of votes counts.
fn winner(votes: &mut [(u32, f64)], order: &[u32]) -> Option<u32> {
    // Stable, so that votes are summed in the order of the arcs.
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
