//! A set of nodes.
//!
//! # Shape
//! A hash set while there are few; from then on a bit for each vertex of the graph, and the hash set for what
//! is no vertex.
//! # Cost
//! One test of a bit, in 1 byte for 8 vertices of the graph. Bits are worth it once a thousandth of the
//! vertices are in: a hash set of those takes about as much memory.

use rustc_hash::FxHashSet;
use vervet_model::{Id, Tag};

/// Members from which on there are bits, in any graph.
const SMALL_MAX: usize = 256;
/// Vertices of the graph for each member from which on there are bits, in large graphs.
const VERTICES_PER_MEMBER: usize = 1024;

/// See the header of this file.
#[derive(Default)]
pub(crate) struct NodeSet {
    /// For vertices, once there are many.
    bits: Vec<u64>,
    /// The others, and all while there are few.
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

    /// Adds a node; whether it is new. `vertices`: how many there are in the graph.
    ///
    /// Inlined always: a call costs a tenth of what walks over few labels take, and the compiler makes one of
    /// it once there are several callers.
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

    /// Goes over to bits, if there are enough members for that.
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

    /// Removes all; `members`: what is in it.
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

    /// Size in bytes, as memory caps count it.
    pub(crate) fn size_bytes(&self) -> u64 {
        8 * (self.bits.len() + 2 * self.others.capacity()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn it_is_a_set_with_bits_and_without() {
        for vertices in [0, 10, 700, 1_000_000] {
            let mut model = BTreeSet::new();
            let mut set = NodeSet::default();
            for round in 0..2 {
                let mut random = 7_u64 + round;
                for _ in 0..5_000 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let number = (random >> 33) % 1_500;
                    // Vertices that the graph has, that it does not have, and numbers.
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
