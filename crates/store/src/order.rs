//! Order columns: the entries of each key sorted by a property, such as the time of an edge.
//!
//! # Shape
//! An additional section beside that of a segment: for each key a permutation of its entries, as indices from
//! its first entry, and in the same order their order keys (see [`order_key`]): 0 where there is none, else
//! the key less a base plus 1. Both are packed arrays with an element for each entry, so they share the
//! offsets of the segment. Entries of the segment itself stay sorted by neighbour, graph, edge.
//! # Invariants
//! 1. The indices of a key are a permutation; its order keys ascend, equal ones by index.
//! 2. An order key is that of the least value of the property: of the edges of the entries, if any edge of
//!    the predicate has such a value, else of the neighbours.
//! # Cost
//! Entries of a key in a range: two binary searches in its order keys, then one cache miss for each entry.
//! Space for each entry: the width of the largest degree plus that of the span of order keys, in whole bytes:
//! 5 to 8 bytes for times, 3 for small numbers. Building takes 16 bytes for each entry of the predicate in
//! addition to its segment, and 16 for each statement of the property unless those are spilled to a file.
//! # Source
//! A. Khandelwal et al., "ZipG", SIGMOD 2017, §3.3: edge records sorted by timestamp. Difference: a
//! permutation beside the entries, since joins, checks and intersections need them by neighbour.

use crate::entries::{Entries, KeyRuns};
use crate::spill::SortedRun;
use std::ops::Range;
use vervet_codec::{Damaged, Packed, PackedView, Reader, write_u64};
use vervet_env::Bytes;
use vervet_model::{Direction, Error, Id, Result, Watch, order_key};

/// An order of the entries of a predicate, as IRIs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrderBy {
    /// The predicate.
    pub predicate: String,
    /// The ordering property: of the edges of the predicate if one of them has it, else of the neighbours
    /// (see the header of this file).
    pub property: String,
}

/// Subjects of a property with their values, sorted.
pub(crate) enum Values {
    /// In memory.
    Pairs(Vec<[u64; 2]>),
    /// In a temporary file.
    Run(SortedRun),
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Self::Pairs(pairs) => pairs.len(),
            Self::Run(run) => run.len(),
        }
    }

    fn pair(&self, index: usize) -> [u64; 2] {
        match self {
            Self::Pairs(pairs) => pairs[index],
            Self::Run(run) => {
                let [subject, value, ..] = run.row(index);
                [subject, value]
            }
        }
    }

    /// The order key of the least value of `subject`; 0 if no value has one.
    fn key_of(&self, subject: u64) -> u64 {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.pair(middle)[0] < subject { low = middle + 1 } else { high = middle }
        }
        let values = (low..self.len()).map(|index| self.pair(index));
        let values = values.take_while(|[of, _]| *of == subject);
        let keys = values.map(|[_, value]| order_key(Id::from_bits(value)).bits());
        keys.filter(|key| *key != 0).min().unwrap_or(0)
    }
}

/// Whether edges order the entries of a predicate: one of the edges has a value with an order key.
pub(crate) fn is_by_edges<E: Entries + ?Sized>(entries: &E, values: &Values) -> bool {
    let has_key = |index| entries.edge(index) != 0 && values.key_of(entries.edge(index)) != 0;
    E::COLUMNS && (0..entries.len()).any(has_key)
}

/// The section that orders `entries` by `property`, of the edges if `by_edges`, else of the neighbours.
/// `runs` are their keys.
///
/// # Errors
/// Those of `watch`.
pub(crate) fn encode<E: Entries + ?Sized>(
    (predicate, direction, property): (Id, Direction, Id),
    entries: &E,
    runs: &KeyRuns,
    values: &Values,
    by_edges: bool,
    watch: &Watch<'_>,
) -> Result<Vec<u8>> {
    let count = entries.len();
    let mut ticker = watch.ticker();
    let key_of = |index| {
        ticker.step()?;
        Ok(match if by_edges { entries.edge(index) } else { entries.neighbour(index) } {
            0 => 0,
            of => values.key_of(of),
        })
    };
    let keys: Vec<u64> = (0..count).map(key_of).collect::<Result<_>>()?;
    let base = keys.iter().copied().filter(|key| *key != 0).min().unwrap_or(0);
    let mut order: Vec<u32> = Vec::with_capacity(count);
    for range in runs.starts.windows(2).map(|pair| pair[0]..pair[1]) {
        ticker.step()?;
        let first = order.len();
        // The key set of the other direction would refuse more entries than keys that fit 32 bits.
        let length = u32::try_from(range.len()).expect("a key has fewer than 2^32 neighbours");
        order.extend(0..length);
        let key = |position: &u32| keys[range.start + *position as usize];
        watch.sort(&mut order[first..], |a, b| (key(a), *a).cmp(&(key(b), *b)))?;
    }
    let mut body = Vec::new();
    let widest = runs.degrees().max().unwrap_or(0).saturating_sub(1);
    let positions =
        Packed::write(order.iter().map(|position| u64::from(*position)), count, 0, widest, &mut body);
    let stored = |key: u64| if key == 0 { 0 } else { key - base + 1 };
    let starts = runs.starts.windows(2).flat_map(|pair| std::iter::repeat_n(pair[0], pair[1] - pair[0]));
    let sorted = starts.zip(&order).map(|(start, position)| stored(keys[start + *position as usize]));
    let widest = keys.iter().copied().map(stored).max().unwrap_or(0);
    let sorted = Packed::write(sorted, count, 0, widest, &mut body);
    let mut meta = Vec::new();
    for number in [predicate.bits(), u64::from(direction as u8), property.bits(), base] {
        write_u64(number, &mut meta);
    }
    positions.write_meta(&mut meta);
    sorted.write_meta(&mut meta);
    body.extend_from_slice(&meta);
    write_u64(meta.len() as u64, &mut body);
    body.shrink_to_fit();
    Ok(body)
}

/// An order column with its bytes. See the header of this file.
#[derive(Debug)]
pub(crate) struct OrderColumn {
    pub(crate) bytes: Bytes,
    pub(crate) predicate: Id,
    pub(crate) direction: u64,
    pub(crate) property: Id,
    base: u64,
    positions: Packed,
    keys: Packed,
}

impl OrderColumn {
    /// Opens the column in a section whose checksum was verified.
    pub(crate) fn open(bytes: Bytes, name: &dyn std::fmt::Display) -> Result<Self> {
        Self::parse(bytes).map_err(|damaged| Error::corrupt(name, damaged.0))
    }

    fn parse(bytes: Bytes) -> Result<Self, Damaged> {
        let mut meta = Reader::of_section(&bytes)?;
        let (predicate, direction) = (Id::from_bits(meta.u64()?), meta.u64()?);
        let (property, base) = (Id::from_bits(meta.u64()?), meta.u64()?);
        let positions = Packed::read_meta(&mut meta, bytes.len())?;
        let keys = Packed::read_meta(&mut meta, bytes.len())?;
        meta.finish()?;
        if positions.len() != keys.len() {
            return Err(Damaged("parts of an order column have different lengths"));
        }
        Ok(Self { bytes, predicate, direction, property, base, positions, keys })
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// A view for a batch of accesses.
    pub(crate) fn view(&self) -> OrderView<'_> {
        let view = |part: &Packed| part.view(&self.bytes);
        OrderView { base: self.base, positions: view(&self.positions), keys: view(&self.keys) }
    }
}

/// An order column to read from.
pub(crate) struct OrderView<'a> {
    base: u64,
    positions: PackedView<'a>,
    keys: PackedView<'a>,
}

impl OrderView<'_> {
    /// The subrange of `entries`, the entries of a key, whose order keys are at least `from` and below
    /// `before` (unbound: no bound). Entries without an order key are included only without any bound.
    pub(crate) fn range(&self, entries: Range<usize>, from: Id, before: Id) -> Range<usize> {
        if !from.is_bound() && !before.is_bound() {
            return entries;
        }
        let stored =
            |key: u64| key.saturating_sub(self.base).saturating_add(u64::from(key >= self.base)).max(1);
        let bound = |key: Id| self.keys.lower_bound(entries.start, entries.end, stored(key.bits()));
        let end = if before.is_bound() { bound(before) } else { entries.end };
        bound(from).min(end)..end
    }

    /// The index of an entry among those of its key, counted from 0, and its order key.
    pub(crate) fn get(&self, index: usize) -> (usize, Id) {
        let position = usize::try_from(self.positions.get(index)).unwrap_or(usize::MAX);
        let key = match self.keys.get(index) {
            0 => 0,
            stored => self.base.wrapping_add(stored - 1),
        };
        (position, Id::from_bits(key))
    }
}
