//! What is remembered of requests that came before: that they were short, or heavy. Hashes, and nothing else.
//!
//! # Shape
//! A table of [`MARKS`] hashes, each at the place that it names itself; one that falls on the place of another takes it. A mark
//! that is lost, or one too many by equal hashes, costs time and nothing else.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// Requests that are remembered: more than there are plans (a text without a plan takes longer than it should).
const MARKS: usize = 4096;

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct Marks {
    /// 0: none.
    marks: Box<[AtomicU64]>,
    /// Keyed, so that nobody can choose requests that take each other's places.
    hasher: RandomState,
}

impl Default for Marks {
    fn default() -> Self {
        Self { marks: (0..MARKS).map(|_| AtomicU64::new(0)).collect(), hasher: RandomState::new() }
    }
}

impl Marks {
    /// The hash that the other calls take.
    pub(crate) fn hash(&self, request: impl Hash) -> u64 {
        self.hasher.hash_one(request).max(1)
    }

    fn place(&self, hash: u64) -> &AtomicU64 {
        &self.marks[usize::try_from(hash % MARKS as u64).unwrap_or(0)]
    }

    pub(crate) fn has(&self, hash: u64) -> bool {
        self.place(hash).load(Ordering::Relaxed) == hash
    }

    pub(crate) fn set(&self, hash: u64) {
        self.place(hash).store(hash, Ordering::Relaxed);
    }

    /// Takes the mark off; that of another at its place stays.
    pub(crate) fn clear(&self, hash: u64) {
        let _ = self.place(hash).compare_exchange(hash, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_set_and_cleared_and_take_each_others_places() {
        let marks = Marks::default();
        let (one, other) = (marks.hash("one"), marks.hash("other"));
        assert!(!marks.has(one));
        marks.set(one);
        assert!(marks.has(one));
        marks.clear(other);
        assert!(marks.has(one));
        // One of the same place.
        let same = one.wrapping_add(MARKS as u64).max(1);
        marks.set(same);
        assert_eq!((marks.has(one), marks.has(same)), (false, one % MARKS as u64 == same % MARKS as u64));
        marks.clear(same);
        assert!(!marks.has(same));
    }
}
