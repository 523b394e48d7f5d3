//! A set of request fingerprints with a fixed size, which forgets.
//!
//! # Shape
//! A table of [`COUNT`] hashes, each at the position that it names itself; one at the position of another
//! replaces it.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// Requests that are remembered: more than there are plans (a text without a plan takes longer than it
/// should).
const COUNT: usize = 4096;

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct Fingerprints {
    /// 0: none.
    hashes: Box<[AtomicU64]>,
    /// Keyed, so that clients cannot choose requests that take each other's places.
    hasher: RandomState,
}

impl Default for Fingerprints {
    fn default() -> Self {
        Self { hashes: (0..COUNT).map(|_| AtomicU64::new(0)).collect(), hasher: RandomState::new() }
    }
}

impl Fingerprints {
    /// The hash that the other calls take.
    pub(crate) fn hash(&self, request: impl Hash) -> u64 {
        self.hasher.hash_one(request).max(1)
    }

    fn entry(&self, hash: u64) -> &AtomicU64 {
        &self.hashes[usize::try_from(hash % COUNT as u64).expect("a table has fewer entries than memory")]
    }

    pub(crate) fn has(&self, hash: u64) -> bool {
        self.entry(hash).load(Ordering::Relaxed) == hash
    }

    pub(crate) fn set(&self, hash: u64) {
        self.entry(hash).store(hash, Ordering::Relaxed);
    }

    /// Removes it; another at its position stays.
    pub(crate) fn clear(&self, hash: u64) {
        let _ = self.entry(hash).compare_exchange(hash, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_set_and_cleared_and_replace_each_other() {
        let all = Fingerprints::default();
        let (one, other) = (all.hash("one"), all.hash("other"));
        assert!(!all.has(one));
        all.set(one);
        assert!(all.has(one));
        all.clear(other);
        assert!(all.has(one));
        // One of the same place.
        let same = one.wrapping_add(COUNT as u64).max(1);
        all.set(same);
        assert_eq!((all.has(one), all.has(same)), (false, one % COUNT as u64 == same % COUNT as u64));
        all.clear(same);
        assert!(!all.has(same));
    }
}
