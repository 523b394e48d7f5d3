//! Connected components, each named by its least vertex.
//!
//! # Shape
//! Vertices are processed in the order of their names. Each propagates its name to all reachable vertices
//! without a name, so every vertex gets the least name among the vertices that reach it. If arcs exist in
//! both directions, the vertices with one name are a connected component.

use super::{Network, ResourceLimits};
use vervet_model::Result;

/// For each vertex the position of the vertex that names its component: the first in `order` (see
/// [`name_order`](super::name_order)) among the vertices that reach it, including itself.
///
/// # Cost
/// `O(vertices + arcs)`, single-threaded; 32 bytes a vertex and 4 an arc.
///
/// # Errors
/// Limits.
pub fn components(network: &Network, order: &[u32], limits: &ResourceLimits<'_>) -> Result<Vec<u32>> {
    let onward = network.reversed(limits)?;
    let count = network.len();
    let bytes = 12 * count as u64;
    limits.control.grow(bytes)?;
    let mut by_name = vec![0_u32; count];
    for (vertex, place) in (0_u32..).zip(order) {
        by_name[*place as usize] = vertex;
    }
    let mut named = vec![u32::MAX; count];
    let mut waiting: Vec<u32> = Vec::new();
    for name in by_name {
        if named[name as usize] != u32::MAX {
            continue;
        }
        named[name as usize] = name;
        waiting.push(name);
        while let Some(vertex) = waiting.pop() {
            // The sources in the transposed network are targets.
            let targets = onward.sources(vertex as usize);
            limits.control.work(1 + targets.len())?;
            for target in targets {
                let known = &mut named[*target as usize];
                if *known == u32::MAX {
                    *known = name;
                    waiting.push(*target);
                }
            }
        }
    }
    limits.control.shrink(bytes + 20 * count as u64 + 4 * network.arc_count() as u64);
    Ok(named)
}
