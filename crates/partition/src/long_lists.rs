//! Long lists of entries at other servers that are read more than once: by each row of a join, by each task
//! of a query, by one query after the other.
//!
//! # Shape
//! A list that does not fit into an answer is read in parts. When that begins a second time, all of it is
//! read and kept, as the base never changes. The list that was kept first goes first.
//! # Cost
//! [`BYTES_MAX`] at most, for all queries together, and [`COPIED_BYTES_MAX`] for segments that are copied
//! (`copied`). A lock and a look-up for each row that may be one.

use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use vervet_model::{Direction, Id, Result, lock};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, append_entries};

/// Maximum bytes of all lists.
const BYTES_MAX: usize = 64 << 20;

/// Maximum bytes of all copies of segments.
const COPIED_BYTES_MAX: usize = 32 << 20;

/// Minimum entries of a list that is kept: a shorter one takes a round trip, as any part of a list.
const ENTRIES_MIN: usize = 64;

/// Maximum entries of a list.
pub(crate) const ENTRIES_MAX: usize = 1 << 18;

/// Maximum number of lists of which it is known that they were read once, or are too long.
const BEGUN_MAX: usize = 1 << 12;

/// The entries of a key in their order: neighbour, graph, edge.
pub(crate) type List = Arc<[[Id; 3]]>;

/// Predicate, direction, key.
type Key = (Id, Direction, Id);

/// See the header of this file.
#[derive(Default)]
pub(crate) struct LongLists {
    state: Mutex<State>,
    /// The number of lists, to be read without the lock.
    count: AtomicUsize,
    /// Bytes of copies of segments, which stay.
    copied_bytes: AtomicUsize,
}

#[derive(Default)]
struct State {
    lists: FxHashMap<Key, List>,
    /// Their keys, the oldest first.
    kept: VecDeque<Key>,
    bytes: usize,
    begun: FxHashMap<Key, Begun>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Begun {
    Once,
    TooLong,
}

/// The long lists of one segment.
#[derive(Clone)]
pub(crate) struct OfSegment {
    lists: Arc<LongLists>,
    predicate: Id,
    direction: Direction,
}

impl LongLists {
    /// Those of one segment.
    pub(crate) fn of_segment(self: &Arc<Self>, predicate: Id, direction: Direction) -> OfSegment {
        OfSegment { lists: Arc::clone(self), predicate, direction }
    }
}

impl OfSegment {
    /// Whether a copy of the segment of so many bytes has room; it then counts until it is released.
    pub(crate) fn reserve(&self, bytes: usize) -> bool {
        let copied = &self.lists.copied_bytes;
        let has_room = copied.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= COPIED_BYTES_MAX;
        if !has_room {
            self.release(bytes);
        }
        has_room
    }

    /// Takes back what [`OfSegment::reserve`] has counted.
    pub(crate) fn release(&self, bytes: usize) {
        self.lists.copied_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn key(&self, key: Id) -> Key {
        (self.predicate, self.direction, key)
    }

    /// The list of a key, if it was kept.
    pub(crate) fn get(&self, key: Id) -> Option<List> {
        if self.lists.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        lock(&self.lists.state).lists.get(&self.key(key)).cloned()
    }

    /// How many keys come before the first one whose list was kept.
    pub(crate) fn before_first(&self, keys: &[Id]) -> usize {
        if self.lists.count.load(Ordering::Relaxed) == 0 {
            return keys.len();
        }
        let state = lock(&self.lists.state);
        let is_kept = |key: &Id| state.lists.contains_key(&self.key(*key));
        keys.iter().position(is_kept).unwrap_or(keys.len())
    }

    /// The list of a key that is about to be read from its beginning, if it is read once more. `read`: the
    /// entries, or `None` if they are more than [`ENTRIES_MAX`].
    ///
    /// # Errors
    /// Those of `read`.
    pub(crate) fn begin(
        &self,
        key: Id,
        read: impl FnOnce() -> Result<Option<Vec<[Id; 3]>>>,
    ) -> Result<Option<List>> {
        let key = self.key(key);
        {
            let mut state = lock(&self.lists.state);
            if let Some(list) = state.lists.get(&key) {
                return Ok(Some(Arc::clone(list)));
            }
            match state.begun.get(&key) {
                Some(Begun::TooLong) => return Ok(None),
                Some(Begun::Once) => {}
                None => {
                    state.set_begun(key, Begun::Once);
                    return Ok(None);
                }
            }
        }
        let list = read()?.map(List::from);
        let mut state = lock(&self.lists.state);
        match &list {
            Some(list) if list.len() < ENTRIES_MIN => {}
            Some(list) => state.keep(key, list),
            None => state.set_begun(key, Begun::TooLong),
        }
        self.lists.count.store(state.lists.len(), Ordering::Relaxed);
        Ok(list)
    }
}

impl State {
    fn set_begun(&mut self, key: Key, begun: Begun) {
        if self.begun.len() >= BEGUN_MAX {
            self.begun.clear();
        }
        self.begun.insert(key, begun);
    }

    fn keep(&mut self, key: Key, list: &List) {
        self.begun.remove(&key);
        if self.lists.insert(key, Arc::clone(list)).is_some() {
            // Another thread was faster.
            return;
        }
        self.kept.push_back(key);
        self.bytes += size_of_val(&**list);
        while self.bytes > BYTES_MAX {
            let Some(oldest) = self.kept.pop_front() else { return };
            self.bytes -= self.lists.remove(&oldest).map_or(0, |list| size_of_val(&*list));
        }
    }
}

/// Appends the entries of the row of `cursor`, whose list this is, from `cursor` on.
///
/// # Errors
/// None at present.
pub(crate) fn expand(
    list: &[[Id; 3]],
    filter: EntryFilter,
    cursor: &mut Cursor,
    out: &mut Expansion,
) -> Result<()> {
    let mut rest = list[list.partition_point(|entry| *entry < cursor.resume)..].iter();
    append_entries(&mut || Ok(rest.next().copied()), filter, cursor, out)
}

/// Appends the neighbours in a list, each once.
pub(crate) fn neighbours(list: &[[Id; 3]], filter: EntryFilter, out: &mut Vec<Id>) {
    let mut last = None;
    for [neighbour, graph, _] in list {
        if filter.graph.matches(*graph) && last.replace(*neighbour) != Some(*neighbour) {
            out.push(*neighbour);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vervet_model::Tag;

    fn list(entries: u64) -> Vec<[Id; 3]> {
        (0..entries).map(|number| [Id::new(Tag::Vertex, number), Id::UNBOUND, Id::UNBOUND]).collect()
    }

    #[test]
    fn the_second_reader_keeps_a_list_and_the_oldest_goes_first() {
        let lists = Arc::new(LongLists::default());
        let segment = lists.of_segment(Id::new(Tag::Vertex, 1), Direction::In);
        let entries = ENTRIES_MAX as u64;
        let key = |number| Id::new(Tag::Vertex, number);
        let most = BYTES_MAX as u64 / (24 * entries);
        for number in 0..=most {
            let first = segment.begin(key(number), || panic!("the first reader reads in parts"));
            assert!(first.is_ok_and(|list| list.is_none()));
            let kept = segment.begin(key(number), || Ok(Some(list(entries)))).expect("read");
            assert_eq!(kept.map(|list| list.len() as u64), Some(entries));
        }
        assert!(segment.get(key(0)).is_none(), "there is room for {most} lists");
        assert_eq!(segment.before_first(&[key(0), key(99), key(most)]), 2);
        assert!(lists.of_segment(Id::new(Tag::Vertex, 1), Direction::Out).get(key(most)).is_none());
        assert!(lock(&lists.state).bytes <= BYTES_MAX);
    }

    #[test]
    fn short_lists_are_not_kept() {
        let segment = Arc::new(LongLists::default()).of_segment(Id::UNBOUND, Direction::In);
        let read = || segment.begin(Id::UNBOUND, || Ok(Some(list(ENTRIES_MIN as u64 - 1)))).expect("read");
        assert_eq!([read(), read(), read()].map(|list| list.is_some()), [false, true, true]);
        assert!(segment.get(Id::UNBOUND).is_none());
    }

    #[test]
    fn too_long_lists_are_read_in_parts() {
        let segment = Arc::new(LongLists::default()).of_segment(Id::UNBOUND, Direction::In);
        let mut read = 0;
        for _ in 0..4 {
            let kept = segment.begin(Id::UNBOUND, || {
                read += 1;
                Ok(None)
            });
            assert!(kept.is_ok_and(|list| list.is_none()));
        }
        assert_eq!(read, 1, "at the second reading it is found to be too long");
    }
}
