//! Core numbers: the largest `k` for which a vertex is in a subgraph of minimum degree `k`.
//! # Source
//! V. Batagelj, M. Zaversnik, "An O(m) Algorithm for Cores Decomposition of Networks", 2003.

use super::adjacency::number;
use super::{Adjacency, ResourceLimits};
use vervet_model::Result;

/// The core number of each vertex of a symmetric graph. Loops do not count.
///
/// # Cost
/// `O(vertices + arcs)` on the calling thread; 20 bytes a vertex.
///
/// # Errors
/// Limits.
pub fn core_numbers(graph: &Adjacency, limits: &ResourceLimits<'_>) -> Result<Vec<u32>> {
    let count = graph.len();
    let bytes = 20 * count as u64;
    limits.control.grow(bytes)?;
    let degree = |vertex: usize| {
        let neighbours = graph.neighbours(vertex);
        let has_loop = neighbours.binary_search(&number(vertex)).is_ok();
        number(neighbours.len() - usize::from(has_loop))
    };
    let mut degrees: Vec<u32> = (0..count).map(degree).collect();
    // Vertices by degree, the first position of each degree, and the position of each vertex.
    let max = degrees.iter().max().copied().unwrap_or(0) as usize;
    let mut first = vec![0_u32; max + 2];
    for degree in &degrees {
        first[*degree as usize + 1] += 1;
    }
    for degree in 0..=max {
        first[degree + 1] += first[degree];
    }
    let (mut by_degree, mut position) = (vec![0_u32; count], vec![0_u32; count]);
    let mut next = first.clone();
    for (vertex, degree) in (0_u32..).zip(&degrees) {
        let at = &mut next[*degree as usize];
        position[vertex as usize] = *at;
        by_degree[*at as usize] = vertex;
        *at += 1;
    }
    for at in 0..count {
        let vertex = by_degree[at] as usize;
        let neighbours = graph.neighbours(vertex);
        limits.control.work(1 + neighbours.len())?;
        for &other in neighbours {
            let (other, own) = (other as usize, degrees[vertex]);
            if degrees[other] <= own {
                continue;
            }
            // Swaps it with the first vertex of its degree, and moves the border.
            let border = &mut first[degrees[other] as usize];
            let (from, to) = (position[other], *border);
            let swapped = by_degree[to as usize];
            by_degree.swap(from as usize, to as usize);
            position[other] = to;
            position[swapped as usize] = from;
            *border += 1;
            degrees[other] -= 1;
        }
    }
    limits.control.shrink(bytes);
    Ok(degrees)
}
