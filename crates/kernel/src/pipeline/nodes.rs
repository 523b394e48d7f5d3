//! Adaptive set of nodes: hash set while small, bit map when large.
//!
//! # Shape
//! A small set is a hash set. A large set has a bit for each vertex of the graph, and a hash set of other
//! ids.
//! # Cost
//! A bit test. The bit map takes 1 byte for 8 vertices of the graph. It is used from about a thousandth of
//! the vertices on, whose hash set would take about as much memory.

use rustc_hash::FxHashSet;
use vervet_model::{Id, Tag};

/// Minimum members for the bit map, in any graph.
const SMALL_MAX: usize = 256;
/// The bit map needs at least one member for this number of vertices, in large graphs.
const VERTICES_PER_MEMBER: usize = 1024;

/// A set of nodes; see the header.
#[derive(Default)]
pub(crate) struct NodeSet {
    /// Bit map of the vertices; empty while the set is small.
    bits: Vec<u64>,
    /// Other ids, and all members while the set is small.
    others: FxHashSet<Id>,
}

impl NodeSet {
    #[inline(always)]
    fn bit(&self, id: Id) -> Option<(usize, u64)> {
        if self.bits.is_empty() || id.tag() != Tag::Vertex {
            return None;
        }
        let word = usize::try_from(id.payload() / 64).unwrap_or(usize::MAX);
        (word < self.bits.len()).then_some((word, 1 << (id.payload() % 64)))
    }

    pub(crate) fn contains(&self, id: Id) -> bool {
        match self.bit(id) {
            Some((word, bit)) => self.bits[word] & bit != 0,
            None => self.others.contains(&id),
        }
    }

    /// Inserts a node; returns whether it is new. `vertices`: number of vertices of the graph.
    ///
    /// Always inlined: with several callers the compiler emits a call otherwise, which costs an expansion
    /// over few labels a tenth of its time.
    #[inline(always)]
    pub(crate) fn insert(&mut self, id: Id, vertices: u64) -> bool {
        if let Some((word, bit)) = self.bit(id) {
            let before = self.bits[word];
            self.bits[word] = before | bit;
            return before & bit == 0;
        }
        self.insert_other(id, vertices)
    }

    #[inline(never)]
    fn insert_other(&mut self, id: Id, vertices: u64) -> bool {
        let is_new = self.others.insert(id);
        if is_new && self.bits.is_empty() && self.others.len() >= SMALL_MAX {
            self.grow(usize::try_from(vertices).unwrap_or(usize::MAX));
        }
        is_new
    }

    /// Switches to the bit map, if there are enough members.
    fn grow(&mut self, vertices: usize) {
        if self.others.len() < vertices / VERTICES_PER_MEMBER {
            return;
        }
        self.bits = vec![0; vertices / 64 + 1];
        for id in std::mem::take(&mut self.others) {
            match self.bit(id) {
                Some((word, bit)) => self.bits[word] |= bit,
                None => _ = self.others.insert(id),
            }
        }
    }

    /// Clears the set; `members`: all of its members.
    pub(crate) fn clear(&mut self, members: &[Id]) {
        if members.len() > self.bits.len() {
            self.bits.fill(0);
        } else {
            for &id in members {
                if let Some((word, bit)) = self.bit(id) {
                    self.bits[word] &= !bit;
                }
            }
        }
        self.others.clear();
    }

    /// Size in bytes, as counted against the memory cap.
    pub(crate) fn size_bytes(&self) -> u64 {
        8 * (self.bits.len() + 2 * self.others.capacity()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn node_set_agrees_with_and_without_bitset() {
        for vertices in [0, 10, 700, 1_000_000] {
            let mut model = BTreeSet::new();
            let mut set = NodeSet::default();
            for round in 0..2 {
                let mut random = 7_u64 + round;
                for _ in 0..5_000 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let number = (random >> 33) % 1_500;
                    // Vertices inside and outside the graph, and numbers.
                    let id =
                        if random >> 63 == 0 { Id::vertex(number) } else { Id::new(Tag::Computed, number) };
                    assert_eq!(set.contains(id), model.contains(&id), "{vertices} vertices, {id:?}");
                    assert_eq!(set.insert(id, vertices), model.insert(id), "{vertices} vertices, {id:?}");
                }
                let members: Vec<Id> = model.iter().copied().collect();
                set.clear(&members);
                assert!(members.iter().all(|&id| !set.contains(id)), "{vertices} vertices");
                model.clear();
            }
        }
    }
}
