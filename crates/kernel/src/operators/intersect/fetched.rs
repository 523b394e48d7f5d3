//! Adjacencies of other servers, fetched for a batch with one call.
//!
//! Each call for a key of another server takes a round trip, and the methods of an intersection read many
//! keys one by one. So the lists of a leg are fetched first, each distinct key once, if they are short by
//! statistics; statistics are a hint, and a leg whose lists turn out longer is read in place.

use crate::pipeline::control::Control;
use rustc_hash::FxHashMap;
use vervet_model::{Id, Result};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, Segment};

/// Expected entries up to which every leg is fetched.
const SHORT_ENTRIES: f64 = (1 << 15) as f64;

/// Maximum number of entries of a leg that is fetched: 8 MiB.
const ENTRIES_MAX: usize = 1 << 20;

/// Entries that are fetched between two checks of the limits.
const PIECE_ENTRIES: usize = 1 << 14;

/// The lists of some keys.
#[derive(Default)]
pub(crate) struct FetchedLists {
    /// From the bits of a key to its range of `neighbours`.
    ranges: FxHashMap<u64, (usize, usize)>,
    neighbours: Vec<Id>,
    counted_bytes: u64,
}

impl FetchedLists {
    /// Fetches the lists of `keys`, which are distinct; `false`: they are too long, and nothing was kept.
    /// `expected`: the number of their entries by statistics.
    pub(crate) fn fetch(
        &mut self,
        segment: &dyn Segment,
        filter: EntryFilter,
        keys: &[Id],
        expected: f64,
        control: &Control<'_>,
    ) -> Result<bool> {
        self.ranges.clear();
        self.neighbours.clear();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive estimate")]
        let entries_max = (4.0 * expected) as usize + PIECE_ENTRIES;
        let mut found = Expansion::new(0);
        let mut cursor = Cursor::default();
        while cursor.row < keys.len() {
            control.check()?;
            if found.len() >= entries_max.min(ENTRIES_MAX) {
                control.recount(&mut self.counted_bytes, 0)?;
                return Ok(false);
            }
            found.capacity = found.len() + PIECE_ENTRIES;
            segment.expand(keys, filter, &mut cursor, &mut found)?;
            // 12 bytes of an entry, 32 of a key.
            control.recount(&mut self.counted_bytes, (12 * found.len() + 32 * keys.len()) as u64)?;
        }
        self.ranges.reserve(keys.len());
        let mut start = 0;
        for run in found.rows.chunk_by(|a, b| a == b) {
            let key = run.first().and_then(|row| keys.get(*row as usize));
            if let Some(key) = key {
                self.ranges.insert(key.bits(), (start, start + run.len()));
            }
            start += run.len();
        }
        self.neighbours = found.neighbours;
        Ok(true)
    }

    /// The neighbours of a key, ascending; one is repeated as its entries are.
    pub(crate) fn list(&self, key: Id) -> &[Id] {
        let range = self.ranges.get(&key.bits()).copied();
        range.and_then(|(start, end)| self.neighbours.get(start..end)).unwrap_or_default()
    }

    /// As [`Segment::expand`], without edges and graphs.
    pub(crate) fn expand(&self, keys: &[Id], cursor: &mut Cursor, out: &mut Expansion) {
        while let Some(key) = keys.get(cursor.row) {
            let list = self.list(*key);
            let offset = usize::try_from(cursor.offset).unwrap_or(usize::MAX).min(list.len());
            let taken = (list.len() - offset).min(out.remaining_capacity());
            out.neighbours.extend_from_slice(&list[offset..offset + taken]);
            out.rows.resize(out.neighbours.len(), u32::try_from(cursor.row).unwrap_or(u32::MAX));
            if offset + taken < list.len() {
                cursor.offset += taken as u64;
                return;
            }
            *cursor = Cursor::at(cursor.row + 1);
        }
    }

    /// As [`Segment::check`].
    pub(crate) fn check(&self, keys: &[Id], neighbours: &[Id], out: &mut Vec<u32>) {
        for (row, (key, neighbour)) in (0..).zip(keys.iter().zip(neighbours)) {
            if self.list(*key).binary_search(neighbour).is_ok() {
                out.push(row);
            }
        }
    }
}

/// Which of some legs to fetch, by the expected entries of each: all but the longest, which is probed or
/// listed in any case, and that one if it is short, too.
pub(crate) fn is_fetched(expected: f64, is_longest: bool) -> bool {
    expected <= SHORT_ENTRIES || (!is_longest && expected <= ENTRIES_MAX as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists() -> FetchedLists {
        let ids = |numbers: &[u64]| numbers.iter().copied().map(Id::vertex).collect::<Vec<_>>();
        let ranges = [(1, (0, 3)), (2, (3, 4))].map(|(key, range)| (Id::vertex(key).bits(), range));
        FetchedLists {
            ranges: ranges.into_iter().collect(),
            neighbours: ids(&[4, 4, 9, 5]),
            counted_bytes: 0,
        }
    }

    #[test]
    fn lists_expand_as_far_as_they_fit() {
        let keys = [2, 3, 1, 2].map(Id::vertex);
        let lists = lists();
        let (mut cursor, mut out) = (Cursor::default(), Expansion::new(3));
        lists.expand(&keys, &mut cursor, &mut out);
        assert_eq!((cursor.row, cursor.offset, &*out.rows), (2, 2, &[0, 2, 2][..]));
        out.capacity = 10;
        lists.expand(&keys, &mut cursor, &mut out);
        assert_eq!((cursor.row, &*out.rows), (4, &[0, 2, 2, 2, 3][..]));
        assert_eq!(out.neighbours, [5, 4, 4, 9, 5].map(Id::vertex));
    }

    #[test]
    fn pairs_are_checked() {
        let (keys, neighbours) = ([1, 1, 2, 3].map(Id::vertex), [9, 5, 5, 5].map(Id::vertex));
        let mut out = Vec::new();
        lists().check(&keys, &neighbours, &mut out);
        assert_eq!(out, [0, 2]);
    }
}
