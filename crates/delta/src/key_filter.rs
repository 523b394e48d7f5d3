//! Bloom filter of the keys that may have cells, shared by all versions of a segment.
//!
//! # Shape
//! Words of 64 bits; a key sets [`PROBES`] bits of one word. 16 bits for each key at full capacity. Versions
//! share one filter by `Arc`; when it is full, the writer makes one of twice the size from its tree, and only
//! later versions use that.
//! # Invariants
//! 1. Bits are only ever set, and the bits of a key before the version that has its cells is handed to
//!    another thread. Handing over synchronizes (a lock, a channel, a join), so relaxed accesses are enough:
//!    a thread that can reach the cells sees the bits.
//! 2. An old version, and one whose transaction failed, may see keys that it never touched. The result is
//!    correct; such a key costs a look-up in the tree.
//! # Cost
//! One load and a few operations for a key. False positives when full: 0.6 %, each a look-up in the tree
//! (about 100 ns); the test below counts them.
//! # Source
//! F. Putze, P. Sanders, J. Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", JEA 2009: blocked
//! filters, here with blocks of one word.

use std::sync::atomic::{AtomicU64, Ordering};
use vervet_model::Id;

/// Bits that a key sets.
const PROBES: u32 = 4;
/// Maximum number of keys for each word.
const WORD_KEYS: u64 = 4;
/// Minimum capacity of a filter, in keys.
const KEYS_MIN: u64 = 16;

/// The filter. See the header of this file.
#[derive(Debug)]
pub(crate) struct KeyFilter {
    words: Box<[AtomicU64]>,
    /// Right shift that turns a hash into the index of a word.
    shift: u32,
    /// Number of keys that changed a bit when they were added.
    keys: AtomicU64,
}

impl KeyFilter {
    /// An empty filter for this many keys.
    pub(crate) fn for_keys(keys: u64) -> Self {
        let words = keys.max(KEYS_MIN).div_ceil(WORD_KEYS).next_power_of_two();
        Self {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
            shift: 64 - words.trailing_zeros(),
            keys: AtomicU64::new(0),
        }
    }

    /// Adds a key.
    pub(crate) fn add(&self, key: Id) {
        let (word, bits) = self.place(key);
        if let Some(word) = self.words.get(word)
            && word.load(Ordering::Relaxed) & bits != bits
        {
            word.fetch_or(bits, Ordering::Relaxed);
            self.keys.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether `key` may have cells.
    #[inline]
    pub(crate) fn may_contain(&self, key: Id) -> bool {
        let (word, bits) = self.place(key);
        self.words.get(word).is_none_or(|word| word.load(Ordering::Relaxed) & bits == bits)
    }

    /// Number of keys added by any version; slightly low where bits were set already.
    pub(crate) fn keys(&self) -> u64 {
        self.keys.load(Ordering::Relaxed)
    }

    /// Number of keys at which the filter is full.
    pub(crate) fn capacity(&self) -> u64 {
        self.words.len() as u64 * WORD_KEYS
    }

    /// The word of a key, and its bits.
    #[inline]
    fn place(&self, key: Id) -> (usize, u64) {
        // Two multiplications, so that all bits of consecutive numbers reach all bits of the hash.
        let mixed = key.bits().wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let hash = (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let bits = (0..PROBES).fold(0, |bits, probe| bits | 1 << (hash >> (6 * probe) & 63));
        // At most 2^60 words: the shift is 64 only for one word, a size that is never made.
        (usize::try_from(hash.wrapping_shr(self.shift)).unwrap_or(usize::MAX), bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_false_negatives_and_few_false_positives() {
        for count in [1, 16, 1000, 65_536, 100_000] {
            for step in [1, 7, 1 << 20] {
                let filter = KeyFilter::for_keys(count);
                let key = |number: u64| Id::vertex(number * step);
                (0..count).for_each(|number| filter.add(key(number)));
                assert!((0..count).all(|number| filter.may_contain(key(number))), "{count} by {step}");
                assert!(filter.keys() <= filter.capacity());
                let strangers = 100_000;
                let found = (count..count + strangers).filter(|number| filter.may_contain(key(*number)));
                let found = found.count();
                println!("{count} keys by {step}: {found} of {strangers} strangers");
                assert!(found < 1000, "{count} by {step}: {found} of {strangers}");
            }
        }
    }

    #[test]
    fn the_filter_reaches_its_capacity() {
        let filter = KeyFilter::for_keys(1000);
        (0..5000).for_each(|number| filter.add(Id::vertex(number)));
        assert!(filter.keys() > filter.capacity());
    }
}
