//! Strongly connected components.
//! # Source
//! R. Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1(2), 1972, with an explicit
//! stack, so that long paths do not exhaust that of the thread.

use super::adjacency::number;
use super::{Adjacency, ResourceLimits};
use vervet_model::Result;

/// The component of each vertex, numbered in the order of completion: a component has a smaller number than
/// those from which it is reachable.
///
/// # Cost
/// `O(vertices + arcs)` on the calling thread; 24 bytes a vertex.
///
/// # Errors
/// Limits.
pub fn strong_components(graph: &Adjacency, limits: &ResourceLimits<'_>) -> Result<Vec<u32>> {
    let count = graph.len();
    let bytes = 24 * count as u64;
    limits.control.grow(bytes)?;
    // Order of discovery from 1 on, and the least order reachable; 0: not discovered.
    let (mut order, mut low) = (vec![0_u32; count], vec![0_u32; count]);
    let mut component = vec![u32::MAX; count];
    let mut open: Vec<u32> = Vec::new();
    // Vertices under way, each with the number of neighbours that have been followed.
    let mut path: Vec<(u32, u32)> = Vec::new();
    let (mut discovered, mut found) = (0_u32, 0_u32);
    for root in 0..count {
        if order[root] != 0 {
            continue;
        }
        path.push((number(root), 0));
        while let Some((vertex, followed)) = path.last_mut() {
            limits.control.work(1)?;
            let at = *vertex as usize;
            if *followed == 0 && order[at] == 0 {
                discovered += 1;
                (order[at], low[at]) = (discovered, discovered);
                open.push(*vertex);
            }
            if let Some(next) = graph.neighbours(at).get(*followed as usize) {
                *followed += 1;
                let to = *next as usize;
                if order[to] == 0 {
                    path.push((*next, 0));
                } else if component[to] == u32::MAX {
                    low[at] = low[at].min(order[to]);
                }
                continue;
            }
            path.pop();
            if let Some((parent, _)) = path.last() {
                let parent = *parent as usize;
                low[parent] = low[parent].min(low[at]);
            }
            if low[at] == order[at] {
                while let Some(member) = open.pop() {
                    component[member as usize] = found;
                    if member as usize == at {
                        break;
                    }
                }
                found += 1;
            }
        }
    }
    limits.control.shrink(bytes);
    Ok(component)
}
