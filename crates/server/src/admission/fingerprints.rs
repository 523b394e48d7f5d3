//! A lossy set of request fingerprints with a fixed size.
//!
//! # Shape
//! A direct-mapped table of [`COUNT`] hashes: a hash modulo the size is its index, and a colliding hash
//! replaces the previous one.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// The size of the table: larger than the plan cache, since a text without a cached plan is not short.
const COUNT: usize = 4096;

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct Fingerprints {
    /// 0: empty.
    hashes: Box<[AtomicU64]>,
    /// Keyed, so that clients cannot construct collisions.
    hasher: RandomState,
}

impl Default for Fingerprints {
    fn default() -> Self {
        Self { hashes: (0..COUNT).map(|_| AtomicU64::new(0)).collect(), hasher: RandomState::new() }
    }
}

impl Fingerprints {
    /// The hash that the other methods expect.
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

    /// Removes it; another hash at its index stays.
    pub(crate) fn clear(&self, hash: u64) {
        let _ = self.entry(hash).compare_exchange(hash, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colliding_fingerprints_replace_each_other() {
        let all = Fingerprints::default();
        let (one, other) = (all.hash("one"), all.hash("other"));
        assert!(!all.has(one));
        all.set(one);
        assert!(all.has(one));
        all.clear(other);
        assert!(all.has(one));
        // A hash with the same index.
        let same = one.wrapping_add(COUNT as u64).max(1);
        all.set(same);
        assert_eq!((all.has(one), all.has(same)), (false, one % COUNT as u64 == same % COUNT as u64));
        all.clear(same);
        assert!(!all.has(same));
    }
}
