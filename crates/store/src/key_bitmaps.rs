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
//! Memory: an eighth of a byte for each number, for at most [`BITMAPS_MAX`] neighbours; nothing in the file.

use std::sync::{Arc, Mutex};
use vervet_model::{Id, lock};

/// Maximum number of neighbours of one segment for which checks are counted: the first ones checked.
const BITMAPS_MAX: usize = 32;
/// Maximum number of distinct neighbours of a segment with bitmaps.
const NEIGHBOURS_MAX: u64 = 1 << 12;
/// Maximum ratio of the range of key numbers to the number of keys.
const SPAN_MAX: u64 = 8;
/// Minimum batch size; smaller batches are checked directly, since a lock costs as much.
pub(crate) const KEYS_MIN: usize = 64;

/// See the header of this file.
#[derive(Debug, Default)]
pub(crate) struct KeyBitmaps {
    all: Mutex<Vec<(Id, BitmapState)>>,
}

#[derive(Debug)]
enum BitmapState {
    /// Number of keys checked so far.
    Checked(u64),
    Bitmap(Arc<KeyBitmap>),
}

/// State of a neighbour.
pub(crate) enum BitmapLookup {
    Absent,
    /// The threshold is reached: build the bitmap for [`KeyBitmaps::keep`].
    Build,
    Bitmap(Arc<KeyBitmap>),
}

/// Bitmap of the keys that have a neighbour.
#[derive(Debug)]
pub(crate) struct KeyBitmap {
    /// Number of the lowest bit: a multiple of 64.
    first: u64,
    words: Box<[u64]>,
}

impl KeyBitmap {
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

impl KeyBitmaps {
    /// Whether bitmaps suit a segment with this number of keys between these two, and this number of distinct
    /// neighbours.
    pub(crate) fn suit(keys: u64, first: Id, last: Id, neighbours: u64) -> bool {
        neighbours <= NEIGHBOURS_MAX && last.bits().saturating_sub(first.bits()) / SPAN_MAX < keys
    }

    /// Counts `keys` checks for `neighbour` and returns its state; `enough`: the number of checks that
    /// justifies a bitmap.
    pub(crate) fn ask(&self, neighbour: Id, keys: usize, enough: u64) -> BitmapLookup {
        let mut all = lock(&self.all);
        match all.iter_mut().find(|(of, _)| *of == neighbour) {
            Some((_, BitmapState::Bitmap(bitmap))) => BitmapLookup::Bitmap(Arc::clone(bitmap)),
            Some((_, BitmapState::Checked(checked))) => {
                let before = *checked;
                *checked = before.saturating_add(keys as u64);
                // The caller that crosses the threshold builds; others continue without.
                if before < enough && *checked >= enough { BitmapLookup::Build } else { BitmapLookup::Absent }
            }
            None => {
                if all.len() < BITMAPS_MAX {
                    all.push((neighbour, BitmapState::Checked(keys as u64)));
                }
                BitmapLookup::Absent
            }
        }
    }

    /// Stores the bitmap of the keys that have `neighbour`.
    pub(crate) fn keep(&self, neighbour: Id, bitmap: KeyBitmap) {
        let mut all = lock(&self.all);
        if let Some((_, state)) = all.iter_mut().find(|(of, _)| *of == neighbour) {
            *state = BitmapState::Bitmap(Arc::new(bitmap));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bitmaps_are_built_after_enough_checks_and_agree() {
        let bitmaps = KeyBitmaps::default();
        let (type_id, other) = (Id::vertex(3), Id::vertex(4));
        assert!(matches!(bitmaps.ask(type_id, 60, 100), BitmapLookup::Absent));
        assert!(matches!(bitmaps.ask(other, 60, 100), BitmapLookup::Absent));
        assert!(matches!(bitmaps.ask(type_id, 60, 100), BitmapLookup::Build));
        assert!(matches!(bitmaps.ask(type_id, 60, 100), BitmapLookup::Absent), "only once");
        let members = [70, 71, 128, 500].map(Id::vertex);
        let mut bitmap = KeyBitmap::new(Id::vertex(70), Id::vertex(500));
        members.into_iter().for_each(|key| bitmap.set(key));
        bitmaps.keep(type_id, bitmap);
        let BitmapLookup::Bitmap(bitmap) = bitmaps.ask(type_id, 1, 100) else { panic!("they were kept") };
        let keys: Vec<Id> = (0..1000).map(Id::vertex).chain([Id::literal(70), Id::UNBOUND]).collect();
        let mut rows = vec![7];
        bitmap.rows(&keys, &mut rows);
        assert_eq!(rows, [7, 70, 71, 128, 500]);
        assert!(matches!(bitmaps.ask(other, 1, 100), BitmapLookup::Absent));
    }

    #[test]
    fn the_number_of_bitmaps_is_limited() {
        let bitmaps = KeyBitmaps::default();
        (0..1000).for_each(|number| drop(bitmaps.ask(Id::vertex(number), 100, 100)));
        assert_eq!(bitmaps.all.lock().expect("no panic").len(), BITMAPS_MAX);
        assert!(matches!(bitmaps.ask(Id::vertex(999), 100, 100), BitmapLookup::Absent));
    }

    #[test]
    fn bitmaps_need_dense_keys_and_few_neighbours() {
        assert!(KeyBitmaps::suit(100, Id::vertex(0), Id::vertex(700), 5));
        assert!(!KeyBitmaps::suit(100, Id::vertex(0), Id::vertex(900), 5));
        assert!(!KeyBitmaps::suit(100, Id::vertex(0), Id::literal(0), 5));
        assert!(!KeyBitmaps::suit(100, Id::vertex(0), Id::vertex(99), 1 << 20));
    }
}
