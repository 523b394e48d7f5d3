//! Cache of the overlaps of a sketch with others.
//!
//! The planner asks for the same pairs of predicates in each query. A cache belongs to a sketch and is shared
//! by its clones. The other sketch is known by a number that no second sketch of this process has, so an
//! entry is never wrong, even if that sketch no longer exists.
//! # Cost
//! 20 ns for a known overlap; 56 bytes for each slot, from the first overlap on.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use vervet_model::lock;

/// Number of slots: a query joins a predicate with few others. A later sketch replaces the one in its slot.
const SLOT_COUNT: u64 = 32;

/// Estimated sums over the keys that two segments have in common.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct KeyOverlap {
    /// Number of keys.
    pub keys: f64,
    /// Entries of these keys in the first segment.
    pub first: f64,
    /// Entries of these keys in the second segment.
    pub second: f64,
    /// Entries of the first times entries of the second: rows of the join.
    pub products: f64,
    /// Estimated standard deviation of `first`, divided by it.
    pub deviation: f64,
    /// Number of samples that both sketches have.
    pub samples: usize,
}

/// Overlaps of one sketch with others.
pub(crate) struct KnownOverlaps {
    /// The number of the sketch in this process; never 0.
    number: u64,
    /// Number of the other sketch (0: none), and the overlap; empty until one is known.
    slots: Mutex<Vec<(u64, KeyOverlap)>>,
}

impl Default for KnownOverlaps {
    fn default() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        // Relaxed: only distinct numbers matter.
        Self { number: LAST.fetch_add(1, Ordering::Relaxed) + 1, slots: Mutex::default() }
    }
}

/// Equal sketches have equal texts.
impl std::fmt::Debug for KnownOverlaps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KnownOverlaps").finish_non_exhaustive()
    }
}

impl KnownOverlaps {
    /// The overlap with the sketch of `other`, known or computed.
    pub(crate) fn get(&self, other: &Self, compute: impl FnOnce() -> KeyOverlap) -> KeyOverlap {
        let slot = usize::try_from(other.number % SLOT_COUNT).unwrap_or(0);
        if let Some((number, overlap)) = lock(&self.slots).get(slot)
            && *number == other.number
        {
            return *overlap;
        }
        let overlap = compute();
        let mut slots = lock(&self.slots);
        slots.resize(usize::try_from(SLOT_COUNT).unwrap_or(0), (0, KeyOverlap::default()));
        slots[slot] = (other.number, overlap);
        overlap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlap_is_computed_once_for_each_other_sketch() {
        let (one, others) = (KnownOverlaps::default(), [(); 40].map(|()| KnownOverlaps::default()));
        let of = |number: usize| KeyOverlap { samples: number, ..KeyOverlap::default() };
        for (number, other) in others.iter().enumerate() {
            assert_eq!(one.get(other, || of(number)), of(number));
            assert_eq!(one.get(other, || unreachable!("known")), of(number));
        }
        // The first ones share their slots with the last ones.
        assert_eq!(one.get(&others[0], || of(100)), of(100));
        assert_eq!(one.get(&others[39], || unreachable!("known")), of(39));
        assert_eq!(others[0].get(&one, || of(7)), of(7), "the other direction is another overlap");
    }
}
