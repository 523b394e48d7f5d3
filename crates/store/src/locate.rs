//! Key location: maps keys to ranges of entries, a chunk of rows at a time.
//!
//! # Cost
//! First the positions of all keys of a chunk, then their offsets: neither loop has a branch that depends on
//! a load, so the cache misses of many rows overlap. Keys of several tags (dates of vertices and of edges)
//! are in parts: a chunk of one tag, the usual case, searches for its part once.

#![expect(unsafe_code, reason = "calls of functions for processors with a certain instruction")]

use crate::encode::SegmentLayout;
use std::ops::Range;
use vervet_codec::{ArrayView, CodesView, FramedView, KeySetView, Locate, NONE, OffsetPart, Stride};
use vervet_model::Id;
use vervet_snapshot::EntryFilter;

/// Number of rows located together: enough to fill the line buffers of a core several times, few enough to
/// waste little when the output is full before their end.
pub(crate) const CHUNK: usize = 64;

/// A segment and its bytes, for a batch of accesses.
pub(crate) struct SegmentView<'a> {
    /// For keys in their stored form.
    keys: KeySetView<'a>,
    stride: Stride,
    pub(crate) offsets: Option<ArrayView<'a>>,
    pub(crate) neighbours: CodesView<'a>,
    pub(crate) graphs: Option<ArrayView<'a>>,
    pub(crate) edges: Option<ArrayView<'a>>,
    /// Number of entries.
    pub(crate) count: usize,
    /// Number of keys.
    pub(crate) key_count: usize,
}

/// One entry of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SegmentEntry {
    /// Position in the segment.
    pub(crate) index: usize,
    pub(crate) neighbour: Id,
    pub(crate) graph: Id,
    pub(crate) edge: Id,
}

/// Ranges of entries of a chunk of rows.
pub(crate) struct EntryRanges {
    pub(crate) starts: [usize; CHUNK],
    pub(crate) ends: [usize; CHUNK],
    pub(crate) rows: usize,
}

impl EntryRanges {
    pub(crate) fn new() -> Self {
        Self { starts: [0; CHUNK], ends: [0; CHUNK], rows: 0 }
    }

    /// The ranges, row after row.
    #[inline]
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        self.starts.iter().zip(&self.ends).take(self.rows).map(|(start, end)| *start..*end)
    }
}

/// Whether the offsets at these positions, which mostly ascend, seem to be in few frames.
fn in_few_frames(positions: &[u32]) -> bool {
    let at = |index: usize| positions.get(index).map_or(0, |position| *position as usize);
    let last = positions.len().saturating_sub(1);
    FramedView::are_near(at(0), at(last / 2)) && FramedView::are_near(at(last / 2), at(last))
}

impl<'a> SegmentView<'a> {
    pub(crate) fn new(bytes: &'a [u8], parts: &'a SegmentLayout) -> Self {
        Self {
            keys: parts.keys.view(bytes),
            stride: parts.keys.stride(),
            offsets: parts.offsets.map(|part| part.view(bytes)),
            neighbours: parts.neighbours.view(bytes),
            graphs: parts.graphs.map(|part| part.view(bytes)),
            edges: parts.edges.map(|part| part.view(bytes)),
            count: parts.neighbours.len(),
            key_count: parts.keys.len(),
        }
    }

    /// Locates the first [`CHUNK`] of `keys` (or all).
    #[inline]
    pub(crate) fn locate(&self, keys: &[Id], located: &mut EntryRanges) {
        if self.stride.is_none() {
            return self.locate_stored(keys, located);
        }
        let mut stored = [Id::UNBOUND; CHUNK];
        let keys = &keys[..keys.len().min(CHUNK)];
        for (stored, key) in stored.iter_mut().zip(keys) {
            *stored = Id::from_bits(self.stride.close(key.bits()));
        }
        self.locate_stored(&stored[..keys.len()], located);
    }

    /// [`Self::locate`] for keys in their stored form.
    #[inline]
    fn locate_stored(&self, keys: &[Id], located: &mut EntryRanges) {
        match self.keys {
            KeySetView::Range(view) => self.locate_with::<_, false>(&view, keys, located),
            KeySetView::Bitmap(view) => self.locate_counting::<_, false>(&view, keys, located),
            KeySetView::Tiered(view) => self.locate_counting::<_, false>(&view, keys, located),
            KeySetView::Sparse(view) => self.locate_with::<_, true>(&view, keys, located),
            KeySetView::Parts(view) => {
                let chunk = keys.iter().take(CHUNK).map(|key| key.bits());
                match view.of_all(chunk) {
                    Some((base, KeySetView::Range(part))) => {
                        self.locate_with::<_, false>(&OffsetPart { base, part }, keys, located);
                    }
                    Some((base, KeySetView::Bitmap(part))) => {
                        self.locate_counting::<_, false>(&OffsetPart { base, part }, keys, located);
                    }
                    Some((base, KeySetView::Tiered(part))) => {
                        self.locate_counting::<_, false>(&OffsetPart { base, part }, keys, located);
                    }
                    Some((base, KeySetView::Sparse(part))) => {
                        self.locate_with::<_, true>(&OffsetPart { base, part }, keys, located);
                    }
                    Some((_, KeySetView::Parts(_))) | None => {
                        self.locate_counting::<_, true>(&view, keys, located);
                    }
                }
            }
        }
    }

    /// [`Self::locate_with`] for key sets that use popcount.
    fn locate_counting<L: Locate, const MEMO: bool>(
        &self,
        locator: &L,
        keys: &[Id],
        located: &mut EntryRanges,
    ) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("popcnt") {
            // SAFETY: the only feature that the function requires has just been detected.
            return unsafe { self.locate_popcnt::<L, MEMO>(locator, keys, located) };
        }
        self.locate_with::<L, MEMO>(locator, keys, located);
    }

    /// A popcount takes a dozen instructions on baseline x86-64, the compilation target, and one on any
    /// processor since 2008.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "popcnt")]
    fn locate_popcnt<L: Locate, const MEMO: bool>(
        &self,
        locator: &L,
        keys: &[Id],
        located: &mut EntryRanges,
    ) {
        self.locate_with::<L, MEMO>(locator, keys, located);
    }

    /// The position of one key, or [`NONE`].
    #[inline]
    pub(crate) fn position(&self, key: Id) -> u32 {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("popcnt") {
            // SAFETY: the only feature that the function requires has just been detected.
            return unsafe { self.position_popcnt(key) };
        }
        self.keys.position(self.stride.close(key.bits()))
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "popcnt")]
    fn position_popcnt(&self, key: Id) -> u32 {
        self.keys.position(self.stride.close(key.bits()))
    }

    /// `MEMO`: whether reusing the previous row's result is cheaper than another look-up.
    #[inline(always)]
    fn locate_with<L: Locate, const MEMO: bool>(&self, locator: &L, keys: &[Id], located: &mut EntryRanges) {
        let rows = keys.len().min(CHUNK);
        located.rows = rows;
        let mut positions = [NONE; CHUNK];
        let mut last = (0, NONE);
        for (key, position) in keys.iter().zip(&mut positions) {
            if MEMO {
                if key.bits() != last.0 {
                    last = (key.bits(), locator.position(key.bits()));
                }
                *position = last.1;
            } else {
                *position = locator.position(key.bits());
            }
        }
        let ranges = located.starts.iter_mut().zip(&mut located.ends);
        let positions = positions.get(..rows).unwrap_or_default();
        let Some(offsets) = &self.offsets else {
            for (position, (start, end)) in positions.iter().zip(ranges) {
                *start = *position as usize;
                *end = *start + usize::from(*position != NONE);
            }
            return;
        };
        let rows = positions.iter().zip(ranges);
        let offsets = match offsets {
            ArrayView::Packed(offsets) => offsets,
            // Without a closure: the compiler does not inline one that decodes a frame.
            ArrayView::Framed(offsets) if in_few_frames(positions) => {
                let mut pairs = offsets.pairs();
                for (position, (start, end)) in rows {
                    (*start, *end) = self.range(*position, 0, pairs.get(*position as usize));
                }
                return;
            }
            ArrayView::Framed(offsets) => {
                for (position, (start, end)) in rows {
                    (*start, *end) = self.range(*position, 0, offsets.pair(*position as usize));
                }
                return;
            }
        };
        let minimum = offsets.minimum();
        let wide =
            |at: usize| (offsets.get(at).wrapping_sub(minimum), offsets.get(at + 1).wrapping_sub(minimum));
        match offsets.width() {
            1 => self.ranges_with(rows, minimum, |at| offsets.raw_pair::<1>(at)),
            2 => self.ranges_with(rows, minimum, |at| offsets.raw_pair::<2>(at)),
            3 => self.ranges_with(rows, minimum, |at| offsets.raw_pair::<3>(at)),
            4 => self.ranges_with(rows, minimum, |at| offsets.raw_pair::<4>(at)),
            _ => self.ranges_with(rows, minimum, wide),
        }
    }

    /// Turns positions into ranges; `pair` returns an offset and the next one.
    #[inline(always)]
    fn ranges_with<'b>(
        &self,
        rows: impl Iterator<Item = (&'b u32, (&'b mut usize, &'b mut usize))>,
        minimum: u64,
        pair: impl Fn(usize) -> (u64, u64),
    ) {
        for (position, (start, end)) in rows {
            (*start, *end) = self.range(*position, minimum, pair(*position as usize));
        }
    }

    /// The start and end of the range at `position`, from its offset and the next one less `minimum`.
    #[inline(always)]
    fn range(&self, position: u32, minimum: u64, (from, to): (u64, u64)) -> (usize, usize) {
        let index = |raw: u64| usize::try_from(minimum.wrapping_add(raw)).unwrap_or(usize::MAX);
        let end = if position == NONE { 0 } else { index(to).min(self.count) };
        (index(from).min(end), end)
    }

    /// Calls `each` with the number of the first row and the ranges of each chunk of `keys`.
    #[inline]
    pub(crate) fn for_each_chunk(&self, keys: &[Id], mut each: impl FnMut(usize, &EntryRanges)) {
        let mut located = EntryRanges::new();
        for (index, chunk) in keys.chunks(CHUNK).enumerate() {
            self.locate(chunk, &mut located);
            each(index * CHUNK, &located);
        }
    }

    /// The entries of a key's `range` that pass `filter`: each `(neighbour, graph)` once, or all that have an
    /// edge, or all (see [`EntryFilter::parallel`]).
    pub(crate) fn passing(
        &self,
        range: Range<usize>,
        filter: EntryFilter,
        want_edges: bool,
    ) -> impl Iterator<Item = SegmentEntry> {
        self.passing_from(range.start, range, filter, want_edges)
    }

    /// [`Self::passing`] for a range that may begin after the `first` entry of its key.
    pub(crate) fn passing_from(
        &self,
        first: usize,
        range: Range<usize>,
        filter: EntryFilter,
        want_edges: bool,
    ) -> impl Iterator<Item = SegmentEntry> {
        let once = !want_edges && !filter.parallel;
        let mut previous = (range.start > first).then(|| self.entry(range.start - 1));
        range.map(|index| self.entry(index)).filter(move |entry| {
            let same = |other: SegmentEntry| other.neighbour == entry.neighbour && other.graph == entry.graph;
            let repeated = once && previous.replace(*entry).is_some_and(same);
            let graph = filter.graph.matches(entry.graph);
            graph && !repeated && (!want_edges || entry.edge.is_bound())
        })
    }
}
