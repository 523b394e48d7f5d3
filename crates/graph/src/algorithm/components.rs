//! Components: what is connected has one name.
//!
//! # Shape
//! Vertices are taken in the order of their names, and each gives its name to all that arcs lead to from it
//! and that have none yet. So every vertex gets the least name of those from which arcs lead to it. Where
//! arcs lead both ways these are the components of the graph.

use super::{Effort, Network};
use vervet_model::Result;

/// The place of the vertex that names the component of each vertex: the first one in `order` (as
/// [`name_order`](super::name_order) gives it) of those from which arcs lead to it, itself included.
///
/// # Cost
/// `O(vertices + arcs)`, on this thread; 32 bytes a vertex and 4 an arc.
///
/// # Errors
/// Limits.
pub fn components(network: &Network, order: &[u32], effort: &Effort<'_>) -> Result<Vec<u32>> {
    let onward = network.turned(effort)?;
    let count = network.len();
    let bytes = 12 * count as u64;
    effort.control.grow(bytes)?;
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
            // The sources of a network whose arcs are turned round are targets.
            let targets = onward.sources(vertex as usize);
            effort.control.work(1 + targets.len())?;
            for target in targets {
                let known = &mut named[*target as usize];
                if *known == u32::MAX {
                    *known = name;
                    waiting.push(*target);
                }
            }
        }
    }
    effort.control.shrink(bytes + 20 * count as u64 + 4 * network.arc_count() as u64);
    Ok(named)
}
