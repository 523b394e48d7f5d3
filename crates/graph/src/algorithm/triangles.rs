//! Triangles through each vertex.
//! # Source
//! T. Schank, D. Wagner, "Finding, Counting and Listing All Triangles in Large Graphs", WEA 2005 (*forward*):
//! arcs lead from the smaller to the larger degree, so that lists are short.

use super::adjacency::number;
use super::parallel_chunks::in_chunks;
use super::{Adjacency, ResourceLimits};
use std::cmp::Ordering;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use vervet_model::Result;

/// Number of vertices of one piece of work.
const CHUNK: usize = 1 << 8;

/// The number of triangles with each vertex of a symmetric graph. Loops do not count.
///
/// # Cost
/// `O(arcs^1.5)` on several threads; 16 bytes a vertex and 2 an arc.
///
/// # Errors
/// Limits.
pub fn triangles(graph: &Adjacency, limits: &ResourceLimits<'_>) -> Result<Vec<u64>> {
    let count = graph.len();
    let bytes = 16 * count as u64 + 2 * graph.arc_count() as u64;
    limits.control.grow(bytes)?;
    let rank = |vertex: u32| (graph.neighbours(vertex as usize).len(), vertex);
    let forward = in_chunks(limits, count, CHUNK, |chunk| {
        let mut lists = Vec::with_capacity(chunk.len());
        for vertex in chunk {
            let all = graph.neighbours(vertex);
            limits.control.work(1 + all.len())?;
            let own = rank(number(vertex));
            lists.push(all.iter().copied().filter(|other| rank(*other) > own).collect::<Vec<u32>>());
        }
        Ok(lists)
    })?;
    let forward: Vec<Vec<u32>> = forward.into_iter().flatten().collect();
    // Sums of integers do not depend on the order of the additions.
    let counts: Vec<AtomicU64> = (0..count).map(|_| AtomicU64::new(0)).collect();
    in_chunks(limits, count, CHUNK, |chunk| {
        for vertex in chunk {
            let own = &forward[vertex];
            let mut found = 0;
            for &other in own {
                let theirs = &forward[other as usize];
                limits.control.work(1 + own.len() + theirs.len())?;
                let mut both = 0;
                each_common(own, theirs, |third| {
                    both += 1;
                    counts[third as usize].fetch_add(1, Relaxed);
                });
                counts[other as usize].fetch_add(both, Relaxed);
                found += both;
            }
            counts[vertex].fetch_add(found, Relaxed);
        }
        Ok(())
    })?;
    limits.control.shrink(bytes);
    Ok(counts.into_iter().map(AtomicU64::into_inner).collect())
}

/// Calls `each` with the members of both ascending lists.
fn each_common(mut one: &[u32], mut other: &[u32], mut each: impl FnMut(u32)) {
    while let (Some((a, one_rest)), Some((b, other_rest))) = (one.split_first(), other.split_first()) {
        match a.cmp(b) {
            Ordering::Less => one = one_rest,
            Ordering::Greater => other = other_rest,
            Ordering::Equal => {
                each(*a);
                (one, other) = (one_rest, other_rest);
            }
        }
    }
}
