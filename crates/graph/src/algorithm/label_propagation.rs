//! Communities by semi-synchronous label propagation.
//!
//! Vertices are coloured so that neighbours differ. In a round, the colours take turns; all vertices of a
//! colour take the most frequent label among their neighbours at once, on several threads. Ties: the own
//! label if it is among them, else the greatest.
//! # Source
//! G. Cordasco, L. Gargano, "Community Detection via Semi-Synchronous Label Propagation Algorithms", BASNA
//! 2010; colouring and ties as in NetworkX's `label_propagation_communities`, so results are equal.

use super::adjacency::number;
use super::parallel_chunks::in_chunks;
use super::{Adjacency, ResourceLimits};
use vervet_model::Result;

/// Number of vertices of one piece of work.
const CHUNK: usize = 1 << 10;

/// The label of each vertex of a symmetric graph: a number of a vertex, which need not have it itself.
///
/// # Cost
/// `O(arcs log(arcs of one vertex))` for each round; 16 bytes a vertex. The number of rounds is small in
/// practice, and has no known bound.
///
/// # Errors
/// Limits.
pub fn label_propagation(graph: &Adjacency, limits: &ResourceLimits<'_>) -> Result<Vec<u32>> {
    let count = graph.len();
    let bytes = 16 * count as u64;
    limits.control.grow(bytes)?;
    let colours = coloured(graph, limits)?;
    let mut labels: Vec<u32> = (0..u32::try_from(count).unwrap_or(u32::MAX)).collect();
    loop {
        let is_stable = in_chunks(limits, count, CHUNK, |chunk| {
            let mut scratch = Vec::new();
            for vertex in chunk {
                if better(graph, &labels, vertex, &mut scratch, limits)?.is_some() {
                    return Ok(false);
                }
            }
            Ok(true)
        })?;
        if is_stable.into_iter().all(|is_stable| is_stable) {
            break;
        }
        for colour in &colours {
            let changes = in_chunks(limits, colour.len(), CHUNK, |chunk| {
                let (mut scratch, mut changes) = (Vec::new(), Vec::new());
                for &vertex in &colour[chunk] {
                    if let Some(label) = better(graph, &labels, vertex as usize, &mut scratch, limits)? {
                        changes.push((vertex, label));
                    }
                }
                Ok(changes)
            })?;
            for (vertex, label) in changes.into_iter().flatten() {
                labels[vertex as usize] = label;
            }
        }
    }
    limits.control.shrink(bytes);
    Ok(labels)
}

/// The label that a vertex takes, if its own is not among the most frequent ones of its neighbours.
fn better(
    graph: &Adjacency,
    labels: &[u32],
    vertex: usize,
    scratch: &mut Vec<u32>,
    limits: &ResourceLimits<'_>,
) -> Result<Option<u32>> {
    let neighbours = graph.neighbours(vertex);
    limits.control.work(1 + neighbours.len())?;
    scratch.clear();
    scratch.extend(neighbours.iter().map(|other| labels[*other as usize]));
    scratch.sort_unstable();
    let (mut best, mut most, mut own) = (None, 0, 0);
    for same in scratch.chunk_by(|a, b| a == b) {
        if same[0] == labels[vertex] {
            own = same.len();
        }
        if same.len() >= most {
            (best, most) = (Some(same[0]), same.len());
        }
    }
    Ok(best.filter(|_| own < most))
}

/// The vertices of each colour: greedily, in descending order of degrees.
fn coloured(graph: &Adjacency, limits: &ResourceLimits<'_>) -> Result<Vec<Vec<u32>>> {
    let mut order: Vec<u32> = (0..u32::try_from(graph.len()).unwrap_or(u32::MAX)).collect();
    let degree = |vertex: u32| {
        let neighbours = graph.neighbours(vertex as usize);
        // A loop has two ends.
        neighbours.len() + usize::from(neighbours.binary_search(&vertex).is_ok())
    };
    order.sort_by_key(|vertex| std::cmp::Reverse(degree(*vertex)));
    let mut colour = vec![u32::MAX; graph.len()];
    let mut colours: Vec<Vec<u32>> = Vec::new();
    let mut used = Vec::new();
    for vertex in order {
        let neighbours = graph.neighbours(vertex as usize);
        limits.control.work(1 + neighbours.len())?;
        used.clear();
        used.extend(
            neighbours.iter().map(|other| colour[*other as usize]).filter(|known| *known != u32::MAX),
        );
        used.sort_unstable();
        used.dedup();
        // The first gap.
        let free = (0_u32..).zip(&used).find(|(number, used)| number != *used);
        let free = free.map_or(used.len(), |(number, _)| number as usize);
        colour[vertex as usize] = number(free);
        match colours.get_mut(free) {
            Some(members) => members.push(vertex),
            None => colours.push(vec![vertex]),
        }
    }
    Ok(colours)
}
