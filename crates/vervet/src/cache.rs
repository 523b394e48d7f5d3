//! A cache of bounded size with second chances.
//!
//! # Shape
//! Entries stand in a ring; a hash table finds their positions. Finding an entry marks it. To make room the
//! hand goes round the ring: a marked entry loses its mark, the first one without a mark is replaced.
//! # Invariants
//! 1. There are at most as many entries as the cache was made for, and each key is there once.
//! 2. An entry that was found since the hand passed it last is not the next to go.
//! # Cost
//! A hash and a comparison. An insertion replaces one entry and passes over those with marks: one round at
//! most.
//! # Source
//! F. J. Corbató, "A Paging Experiment with the Multics System", MIT Project MAC, 1968.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Cache<K: ?Sized, V> {
    /// Seeded: keys may be chosen by clients.
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
    /// Room for so many entries, at least one.
    pub(crate) fn new(entries_max: usize) -> Self {
        Self { positions: HashMap::default(), ring: Vec::new(), hand: 0, entries_max: entries_max.max(1) }
    }

    /// The value of a key.
    pub(crate) fn find<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        Arc<K>: Borrow<Q>,
    {
        let position = *self.positions.get(key)?;
        let entry = self.ring.get_mut(position)?;
        entry.is_marked = true;
        Some(entry.value.clone())
    }

    /// Gives a key a value.
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

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.positions.clear();
        self.ring.clear();
        self.hand = 0;
    }

    /// The position of the entry to be replaced, in a ring that is not empty.
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

    /// query B16: a full cache threw everything away at once.
    #[test]
    fn b16_a_full_cache_keeps_what_is_used() {
        let mut cache: Cache<str, usize> = Cache::new(100);
        for number in 0..100 {
            cache.insert(key(number), number);
        }
        // Ten are asked for again and again while a thousand others come.
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
