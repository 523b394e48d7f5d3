//! Bitmaps of the keys with a frequently checked neighbour, types above all.
//!
//! # Shape
//! For a neighbour of a segment with few distinct ones: the number of keys checked for it; once this reaches
//! the number of keys of the segment, a bitmap with one bit for each number from the first key to the last.
//! # Invariants
//! A segment never changes, so a bitmap never becomes stale.
//! # Cost
//! 1 to 2 ns for each checked key, against 10 for finding its entries (LUBM-40, 2026-11-21). Building a
//! bitmap costs as much as the checks until then, so the total is never more than twice the total without.
//! Memory: an eighth of a byte for each number, for at most [`MARKS_MAX`] neighbours; nothing in the file.

use std::sync::{Arc, Mutex, PoisonError};
use vervet_model::Id;

/// Maximum number of neighbours of one segment for which checks are counted: the first ones checked.
const MARKS_MAX: usize = 32;
/// Maximum number of distinct neighbours of a segment with bitmaps.
const NEIGHBOURS_MAX: u64 = 1 << 12;
/// Maximum ratio of the range of key numbers to the number of keys.
const SPAN_MAX: u64 = 8;
/// Minimum batch size; smaller batches are checked directly, since a lock costs as much.
pub(crate) const KEYS_MIN: usize = 64;

/// See the header of this file.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    all: Mutex<Vec<(Id, Mark)>>,
}

#[derive(Debug)]
enum Mark {
    /// Number of keys checked so far.
    Checked(u64),
    Bits(Arc<Bits>),
}

/// State of a neighbour.
pub(crate) enum Known {
    Nothing,
    /// The threshold is reached: build the bitmap for [`Marks::keep`].
    Wanted,
    Bits(Arc<Bits>),
}

/// Bitmap of the keys that have a neighbour.
#[derive(Debug)]
pub(crate) struct Bits {
    /// Number of the lowest bit: a multiple of 64.
    first: u64,
    words: Box<[u64]>,
}

impl Bits {
    /// An empty bitmap for the keys from `first` to `last`.
    pub(crate) fn new(first: Id, last: Id) -> Self {
        let first = first.bits() & !63;
        let words = usize::try_from((last.bits().saturating_sub(first) >> 6) + 1).unwrap_or(0);
        Self { first, words: vec![0; words].into() }
    }

    /// Appends the rows whose key has the neighbour.
    pub(crate) fn rows(&self, keys: &[Id], out: &mut Vec<u32>) {
        let start = out.len();
        out.resize(start + keys.len(), 0);
        let rows = &mut out[start..];
        let mut count = 0;
        // Written for every row, counted only for hits: no branch to mispredict.
        for (row, key) in (0..).zip(keys) {
            let distance = key.bits().wrapping_sub(self.first);
            let word = usize::try_from(distance >> 6).ok().and_then(|word| self.words.get(word));
            let hit = word.copied().unwrap_or(0) >> (distance & 63) & 1 == 1;
            if let Some(slot) = rows.get_mut(count) {
                *slot = row;
            }
            count += usize::from(hit);
        }
        out.truncate(start + count);
    }

    pub(crate) fn set(&mut self, key: Id) {
        let distance = key.bits().wrapping_sub(self.first);
        if let Some(word) = usize::try_from(distance >> 6).ok().and_then(|word| self.words.get_mut(word)) {
            *word |= 1 << (distance & 63);
        }
    }
}

impl Marks {
    /// Whether bitmaps suit a segment with this number of keys between these two, and this number of distinct
    /// neighbours.
    pub(crate) fn suit(keys: u64, first: Id, last: Id, neighbours: u64) -> bool {
        neighbours <= NEIGHBOURS_MAX && last.bits().saturating_sub(first.bits()) / SPAN_MAX < keys
    }

    /// Counts `keys` checks for `neighbour` and returns its state; `enough`: the number of checks that
    /// justifies a bitmap.
    pub(crate) fn ask(&self, neighbour: Id, keys: usize, enough: u64) -> Known {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        match all.iter_mut().find(|(of, _)| *of == neighbour) {
            Some((_, Mark::Bits(bits))) => Known::Bits(Arc::clone(bits)),
            Some((_, Mark::Checked(checked))) => {
                let before = *checked;
                *checked = before.saturating_add(keys as u64);
                // The caller that crosses the threshold builds; others continue without.
                if before < enough && *checked >= enough { Known::Wanted } else { Known::Nothing }
            }
            None => {
                if all.len() < MARKS_MAX {
                    all.push((neighbour, Mark::Checked(keys as u64)));
                }
                Known::Nothing
            }
        }
    }

    /// Stores the bitmap of the keys that have `neighbour`.
    pub(crate) fn keep(&self, neighbour: Id, bits: Bits) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, mark)) = all.iter_mut().find(|(of, _)| *of == neighbour) {
            *mark = Mark::Bits(Arc::new(bits));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_once_enough_was_asked_and_say_the_same() {
        let marks = Marks::default();
        let (type_id, other) = (Id::vertex(3), Id::vertex(4));
        assert!(matches!(marks.ask(type_id, 60, 100), Known::Nothing));
        assert!(matches!(marks.ask(other, 60, 100), Known::Nothing));
        assert!(matches!(marks.ask(type_id, 60, 100), Known::Wanted));
        assert!(matches!(marks.ask(type_id, 60, 100), Known::Nothing), "only once");
        let members = [70, 71, 128, 500].map(Id::vertex);
        let mut bits = Bits::new(Id::vertex(70), Id::vertex(500));
        members.into_iter().for_each(|key| bits.set(key));
        marks.keep(type_id, bits);
        let Known::Bits(bits) = marks.ask(type_id, 1, 100) else { panic!("they were kept") };
        let keys: Vec<Id> = (0..1000).map(Id::vertex).chain([Id::literal(70), Id::UNBOUND]).collect();
        let mut rows = vec![7];
        bits.rows(&keys, &mut rows);
        assert_eq!(rows, [7, 70, 71, 128, 500]);
        assert!(matches!(marks.ask(other, 1, 100), Known::Nothing));
    }

    #[test]
    fn no_more_neighbours_than_some() {
        let marks = Marks::default();
        (0..1000).for_each(|number| drop(marks.ask(Id::vertex(number), 100, 100)));
        assert_eq!(marks.all.lock().expect("no panic").len(), MARKS_MAX);
        assert!(matches!(marks.ask(Id::vertex(999), 100, 100), Known::Nothing));
    }

    #[test]
    fn only_dense_keys_and_few_neighbours() {
        assert!(Marks::suit(100, Id::vertex(0), Id::vertex(700), 5));
        assert!(!Marks::suit(100, Id::vertex(0), Id::vertex(900), 5));
        assert!(!Marks::suit(100, Id::vertex(0), Id::literal(0), 5));
        assert!(!Marks::suit(100, Id::vertex(0), Id::vertex(99), 1 << 20));
    }
}
