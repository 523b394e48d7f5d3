//! Indexes of the trees and subgraphs among the side effects, which make an insertion a hash look-up.

use crate::memory::{Memory, Reservation, TRAVERSER_BYTES};
use crate::size;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use vervet_gremlin::{Edge, Hashing, Tree, Value, Vertex};
use vervet_model::Result;

/// Positions of values in a tree or a subgraph, which make insertion a hash look-up.
#[derive(Debug)]
pub(crate) enum CollectionIndex {
    Tree(TreeIndex),
    Subgraph { vertices: HashSet<Vertex, Hashing>, edges: HashSet<Arc<Edge>, Hashing> },
}

/// Positions of values among the children of the nodes of a tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct TreeIndex {
    /// By parent node and value: the child node, and its index among its siblings. The root is node 0.
    of: HashMap<(usize, Value), (usize, usize), Hashing>,
    /// Number of nodes, without the root.
    nodes: usize,
}

impl TreeIndex {
    /// The positions of an existing tree.
    pub(crate) fn of_tree(tree: &Tree) -> Self {
        let mut index = Self::default();
        let mut nodes = vec![(0, tree)];
        while let Some((node, tree)) = nodes.pop() {
            for (place, (value, below)) in tree.children.iter().enumerate() {
                index.nodes += 1;
                index.of.entry((node, value.clone())).or_insert((index.nodes, place));
                nodes.push((index.nodes, below));
            }
        }
        index
    }

    /// Inserts a path of values below the root.
    ///
    /// # Errors
    /// Deeper than [`size::NESTING_MAX`]; the memory cap; cancellation.
    pub(crate) fn add(
        &mut self,
        tree: &mut Tree,
        values: Vec<Value>,
        held: &mut Reservation,
        memory: &Memory<'_>,
    ) -> Result<()> {
        // A recursive walk or drop of a deeper tree could overflow the stack.
        if values.len() > size::NESTING_MAX {
            return Err(size::too_deep());
        }
        let (mut node, mut at) = (0, tree);
        for value in values {
            let place = match self.of.entry((node, value)) {
                Entry::Occupied(entry) => *entry.get(),
                Entry::Vacant(entry) => {
                    let value = entry.key().1.clone();
                    let bytes = 2 * TRAVERSER_BYTES + size::bytes(&value, memory.control)?;
                    held.add(bytes, memory)?;
                    at.children.push((value, Tree::default()));
                    self.nodes += 1;
                    *entry.insert((self.nodes, at.children.len() - 1))
                }
            };
            node = place.0;
            at = &mut at.children[place.1].1;
        }
        Ok(())
    }
}
