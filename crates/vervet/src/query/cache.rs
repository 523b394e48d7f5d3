//! Bounded cache with the second-chance (CLOCK) replacement policy.
//!
//! # Shape
//! Entries form a ring; a hash table maps keys to ring positions. A lookup sets the reference bit of the
//! entry. To make room, the clock hand advances: it clears set bits and replaces the first entry whose bit is
//! clear.
//! # Invariants
//! 1. The cache holds at most its capacity of entries, and each key at most once.
//! 2. An entry that was looked up since the hand last passed it is not the next victim.
//! # Cost
//! A lookup is one hash and one comparison. An insertion replaces one entry and passes over entries with set
//! bits: at most one round.
//! # Source
//! F. J. Corbató, "A Paging Experiment with the Multics System", MIT Project MAC, 1968.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Cache<K: ?Sized, V> {
    /// Seeded hash: clients may choose keys.
    positions: HashMap<Arc<K>, usize, foldhash::fast::RandomState>,
    ring: Vec<Entry<K, V>>,
    hand: usize,
    entries_max: usize,
}

#[derive(Debug)]
struct Entry<K: ?Sized, V> {
    key: Arc<K>,
    value: V,
    is_marked: bool,
}

impl<K: Hash + Eq + ?Sized, V: Clone> Cache<K, V> {
    /// A cache of `entries_max` entries, at least one.
    pub(crate) fn new(entries_max: usize) -> Self {
        Self { positions: HashMap::default(), ring: Vec::new(), hand: 0, entries_max: entries_max.max(1) }
    }

    /// The value of a key; sets its reference bit.
    pub(crate) fn find<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        Arc<K>: Borrow<Q>,
    {
        let position = *self.positions.get(key)?;
        let entry = self.ring.get_mut(position)?;
        entry.is_marked = true;
        Some(entry.value.clone())
    }

    /// Inserts or replaces the value of a key.
    pub(crate) fn insert(&mut self, key: Arc<K>, value: V) {
        if let Some(entry) = self.positions.get(&key).and_then(|position| self.ring.get_mut(*position)) {
            entry.value = value;
            return;
        }
        let entry = Entry { key: Arc::clone(&key), value, is_marked: false };
        let position = if self.ring.len() < self.entries_max {
            self.ring.push(entry);
            self.ring.len() - 1
        } else {
            let position = self.victim();
            let gone = std::mem::replace(&mut self.ring[position], entry);
            self.positions.remove(&gone.key);
            position
        };
        self.positions.insert(key, position);
        debug_assert_eq!(self.positions.len(), self.ring.len(), "each entry has one key");
    }

    /// Removes all entries.
    pub(crate) fn clear(&mut self) {
        self.positions.clear();
        self.ring.clear();
        self.hand = 0;
    }

    /// The ring position of the entry to replace; the ring must not be empty.
    fn victim(&mut self) -> usize {
        loop {
            let position = self.hand;
            self.hand = (position + 1) % self.ring.len();
            let entry = &mut self.ring[position];
            if !std::mem::take(&mut entry.is_marked) {
                return position;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cache;
    use std::sync::Arc;

    fn key(number: usize) -> Arc<str> {
        number.to_string().into()
    }

    /// Regression test for query B16: a full cache dropped all its entries at once.
    #[test]
    fn b16_a_full_cache_keeps_what_is_used() {
        let mut cache: Cache<str, usize> = Cache::new(100);
        for number in 0..100 {
            cache.insert(key(number), number);
        }
        // Ten keys are looked up repeatedly while a thousand others are inserted.
        for number in 100..1100 {
            for used in 0..10 {
                assert_eq!(cache.find(&*key(used)), Some(used), "behind {number}");
            }
            cache.insert(key(number), number);
        }
        assert_eq!(cache.find(&*key(1099)), Some(1099));
        let kept = (0..1100).filter(|number| cache.find(&*key(*number)).is_some()).count();
        assert_eq!(kept, 100);
        cache.insert(key(3), 33);
        assert_eq!(cache.find(&*key(3)), Some(33));
        cache.clear();
        assert_eq!(cache.find(&*key(3)), None);
        cache.insert(key(3), 3);
        assert_eq!(cache.find(&*key(3)), Some(3));
    }

    #[test]
    fn a_cache_of_one() {
        let mut cache: Cache<str, usize> = Cache::new(0);
        for number in 0..5 {
            cache.insert(key(number), number);
            assert_eq!(cache.find(&*key(number)), Some(number));
            assert_eq!(cache.find(&*key(number + 1)), None);
        }
    }
}
