//! Packed entries: entries of 16 and 32 bytes as single numbers, for sorting and encoding.
//!
//! # Shape
//! Of each column only the bits between the lowest and the highest differing bit are kept: the others are
//! equal in all entries and are stored once in the [`BitLayout`]. If the remaining bits of key, neighbour,
//! graph and edge are at most 64, an entry is their concatenation, the key highest. Edges of a social
//! network: 19 + 19 + 0 + 18 bits; times of messages: 19 + 38.
//! # Invariants
//! Numbers have the order of their entries, and can be decoded to them.
//! # Cost
//! One pass over all entries, and 8 bytes for each instead of 16 or 32. They are sorted by radix sort
//! (`sort`): 4 passes for the first direction where edges ascend already, 2 for the other, which is derived
//! from the first. A pass reads 8 bytes of an entry twice and writes them once, to 2048 advancing positions.

use crate::entries::Entries;
use crate::sort;
use vervet_model::{Result, Watch};

/// Bits of one column.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct BitField {
    /// The bits that all entries have in common.
    common: u64,
    /// The lowest bit that differs, and the number of kept bits from it on.
    low: u32,
    width: u32,
    /// Position of the bits in the number.
    shift: u32,
}

impl BitField {
    fn mask(self) -> u64 {
        u64::MAX.checked_shr(u64::BITS - self.width).unwrap_or(0)
    }

    fn put(self, value: u64) -> u64 {
        ((value >> self.low) & self.mask()).checked_shl(self.shift).unwrap_or(0)
    }

    #[inline]
    fn get(self, number: u64) -> u64 {
        // A field of no bits may have a shift beyond the number.
        self.common | ((number >> (self.shift & 63)) & self.mask()) << self.low
    }
}

/// Positions of the columns in a number: key, neighbour, graph, edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BitLayout([BitField; 4]);

impl BitLayout {
    /// The layout of these entries; `None` if 64 bits are not enough.
    pub(crate) fn of(entries: impl Iterator<Item = [u64; 4]>) -> Option<Self> {
        let mut entries = entries.peekable();
        let first = *entries.peek()?;
        let mut varying = [0_u64; 4];
        for entry in entries {
            for column in 0..4 {
                varying[column] |= entry[column] ^ first[column];
            }
        }
        let mut fields = [BitField::default(); 4];
        for ((field, varying), first) in fields.iter_mut().zip(varying).zip(first) {
            if varying != 0 {
                field.low = varying.trailing_zeros();
                field.width = u64::BITS - varying.leading_zeros() - field.low;
            }
            field.common = first & !(field.mask() << field.low);
        }
        Self(fields).placed()
    }

    /// Assigns positions to all fields, the last one lowest.
    fn placed(mut self) -> Option<Self> {
        let mut shift = 0;
        for field in self.0.iter_mut().rev() {
            field.shift = shift;
            shift += field.width;
        }
        (shift <= u64::BITS).then_some(self)
    }

    /// The layout of the same entries with key and neighbour exchanged.
    fn reversed(self) -> Self {
        let Self([key, neighbour, graph, edge]) = self;
        let turned = Self([neighbour, key, graph, edge]);
        // The total width is unchanged.
        turned.placed().unwrap_or(turned)
    }

    fn pack(&self, entry: [u64; 4]) -> u64 {
        let Self([key, neighbour, graph, edge]) = self;
        key.put(entry[0]) | neighbour.put(entry[1]) | graph.put(entry[2]) | edge.put(entry[3])
    }

    fn unpack(&self, number: u64) -> [u64; 4] {
        self.0.map(|field| field.get(number))
    }

    /// The bits of the first `columns` columns.
    fn mask_of(&self, columns: usize) -> u64 {
        self.0[..columns]
            .iter()
            .fold(0, |mask, field| mask | field.mask().checked_shl(field.shift).unwrap_or(0))
    }

    /// Whether two numbers are entries that differ only in the edge.
    fn same_but_edge(&self, one: u64, other: u64) -> bool {
        (one ^ other) & self.mask_of(3) == 0
    }
}

/// Sorted entries as numbers. `COLUMNS`: whether some may have a graph or an edge.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct PackedEntries<const COLUMNS: bool> {
    numbers: Vec<u64>,
    layout: BitLayout,
}

impl<const COLUMNS: bool> PackedEntries<COLUMNS> {
    /// Distinct entries, without those that have no edge beside an equal entry with one, in both directions:
    /// by key, and with key and neighbour exchanged. Returns the `entries` unchanged if they cannot be
    /// packed.
    /// # Errors
    /// Those of `watch`.
    pub(crate) fn both<E: Copy + Into<Row>>(
        entries: Vec<E>,
        watch: &Watch<'_>,
    ) -> Result<Result<[Self; 2], Vec<E>>> {
        let rows = || {
            entries.iter().map(|entry| {
                let Row(row) = (*entry).into();
                row
            })
        };
        let Some(layout) = BitLayout::of(rows()) else { return Ok(Err(entries)) };
        watch.check()?;
        // If edges ascend in input order, a stable sort by the other columns also sorts equal entries by
        // edge.
        let in_order = rows().is_sorted_by_key(|row| row[3]);
        let mut numbers: Vec<u64> = rows().map(|row| layout.pack(row)).collect();
        drop(entries);
        let mut scratch = Vec::new();
        sort::sort(&mut numbers, layout.mask_of(if in_order { 3 } else { 4 }), &mut scratch, watch)?;
        numbers.dedup();
        if COLUMNS {
            drop_plain_twins(&mut numbers, &layout);
        }
        let turned = layout.reversed();
        let turn = |number: &u64| {
            let [key, neighbour, graph, edge] = layout.unpack(*number);
            turned.pack([neighbour, key, graph, edge])
        };
        let mut reverse: Vec<u64> = numbers.iter().map(turn).collect();
        // Entries with equal neighbours are already ordered by key.
        watch.check()?;
        sort::sort(&mut reverse, turned.mask_of(1), &mut scratch, watch)?;
        Ok(Ok([Self { numbers, layout }, Self { numbers: reverse, layout: turned }]))
    }

    /// A field of an entry, by its index in a [`Row`].
    #[inline]
    fn field<const FIELD: usize>(&self, index: usize) -> u64 {
        self.layout.0[FIELD].get(self.numbers[index])
    }
}

/// Drops the plain twins of edges: see [`vervet_model::drop_plain_twins`].
fn drop_plain_twins(numbers: &mut Vec<u64>, layout: &BitLayout) {
    let edge = layout.0[3];
    if edge.common == 0 {
        let is_plain = |number: &u64| edge.get(*number) == 0;
        let is_same = |number: &u64, next: &u64| layout.same_but_edge(*number, *next);
        vervet_model::drop_plain_twins(numbers, is_plain, is_same);
    }
}

/// Key, neighbour, graph, edge.
pub(crate) struct Row([u64; 4]);

impl From<[u64; 4]> for Row {
    fn from(entry: [u64; 4]) -> Self {
        Self(entry)
    }
}

impl From<[u64; 2]> for Row {
    fn from([key, neighbour]: [u64; 2]) -> Self {
        Self([key, neighbour, 0, 0])
    }
}

impl<const COLUMNS: bool> Entries for PackedEntries<COLUMNS> {
    const COLUMNS: bool = COLUMNS;

    fn len(&self) -> usize {
        self.numbers.len()
    }

    #[inline]
    fn key(&self, index: usize) -> u64 {
        self.field::<0>(index)
    }

    #[inline]
    fn neighbour(&self, index: usize) -> u64 {
        self.field::<1>(index)
    }

    #[inline]
    fn graph(&self, index: usize) -> u64 {
        self.field::<2>(index)
    }

    #[inline]
    fn edge(&self, index: usize) -> u64 {
        self.field::<3>(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers;

    /// All entries, column by column.
    fn rows<const COLUMNS: bool>(packed: &PackedEntries<COLUMNS>) -> Vec<[u64; 4]> {
        let row = |i| [packed.key(i), packed.neighbour(i), packed.graph(i), packed.edge(i)];
        (0..packed.len()).map(row).collect()
    }

    /// Columns of any width at any position, with and without edges, against the library's sort.
    #[test]
    fn packed_entries_agree_with_a_library_sort() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut packed_count, mut twins) = (0, 0);
        for round in 0..400 {
            let masks: [u64; 4] = std::array::from_fn(|_| {
                let width = random.u32(0..23);
                (u64::MAX >> (63 - width) >> 1) << random.u32(0..64 - width)
            });
            let common: [u64; 4] = std::array::from_fn(|_| random.u64(..));
            let count = random.usize(1..[20, 6000][round % 2]);
            let mut entries: Vec<[u64; 4]> = (0..count)
                .map(|_| std::array::from_fn(|i| (common[i] & !masks[i]) | (random.u64(..) & masks[i])))
                .collect();
            match round % 4 {
                // Only ascending edges.
                0 => (0..).zip(&mut entries).for_each(|(i, entry)| entry[3] = 1 << 60 | i),
                // Some without an edge, some of them twins.
                1 => {
                    for i in 0..entries.len() {
                        entries[i][3] &= masks[3];
                        if random.bool() {
                            entries[i][3] = 0;
                        } else if i > 0 && random.bool() {
                            entries[i] =
                                [entries[i - 1][0], entries[i - 1][1], entries[i - 1][2], entries[i][3]];
                        }
                    }
                }
                _ => {}
            }
            let mut expected = entries.clone();
            expected.sort_unstable();
            expected.dedup();
            let all = expected.len();
            buffers::drop_plain_twins(&mut expected);
            twins += all - expected.len();
            let layout = BitLayout::of(entries.iter().copied());
            let Ok([out, reverse]) = PackedEntries::<true>::both(entries, &Watch::new("test")).unwrap()
            else {
                assert!(layout.is_none(), "seed {seed}");
                continue;
            };
            packed_count += 1;
            assert_eq!(rows(&out), expected, "seed {seed} round {round}");
            expected.iter_mut().for_each(|entry| entry.swap(0, 1));
            expected.sort_unstable();
            assert_eq!(rows(&reverse), expected, "seed {seed} round {round}");
        }
        assert!(packed_count > 50 && twins > 10, "{packed_count} {twins} seed {seed}");
    }

    #[test]
    fn entries_that_do_not_fit_are_returned() {
        let entries = vec![[0, 0], [u64::MAX, 1]];
        let watch = Watch::new("test");
        assert_eq!(PackedEntries::<false>::both(entries.clone(), &watch).unwrap(), Err(entries));
        let entries = vec![[0, 7], [u64::MAX, 7], [5, 7], [5, 7]];
        let [out, reverse] = PackedEntries::<false>::both(entries, &watch).unwrap().unwrap();
        assert_eq!(rows(&out), [[0, 7, 0, 0], [5, 7, 0, 0], [u64::MAX, 7, 0, 0]]);
        assert_eq!(rows(&reverse), [[7, 0, 0, 0], [7, 5, 0, 0], [7, u64::MAX, 0, 0]]);
        assert!(PackedEntries::<false>::both(Vec::<[u64; 2]>::new(), &watch).unwrap().is_err());
    }
}
