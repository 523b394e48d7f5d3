//! Base segment: all entries of one `[predicate, direction]`, immutable.
//!
//! # Shape
//! A key set (key to position `k`), `offsets` (entries of key `k` are `offsets[k]..offsets[k + 1]`; absent
//! when every key has one entry), `neighbours` (packed ids less their minimum, or codes), and columns for
//! graphs and edges if some entry has one. Entries of a key ascend by neighbour, graph, edge. docs/format.md
//! describes the bytes.
//! # Invariants
//! 1. `offsets` ascend from 0 to the number of entries.
//! 2. Every key has an entry; without an edge, `(neighbour, graph)` occurs once for a key.
//! 3. No access panics, whatever the bytes are; the checksum of the section has been verified before.
//! # Cost
//! Neighbours of a key: one cache miss for the key set (none for a range), one for offsets, one for
//! neighbours; those of 64 rows overlap, since all keys are located before the first entry is copied.
//! # Source
//! DESIGN §3; Wukong's segments (research/wukong.md §2). Difference: no hash table, since the rank of a key
//! in a bitmap costs one cache miss and two bits instead of 16 to 30 bytes.
//! # Not here
//! Changes since the segment was built: `vervet-delta` wraps this segment behind the same trait, reads the
//! entries of a key and merges its own into them.

use crate::encode::{SegmentLayout, optional_id};
use crate::key_bitmaps::{self, BitmapLookup, KeyBitmap, KeyBitmaps};
use crate::lazy_section::LazySection;
use crate::locate::{SegmentEntry, SegmentView};
use crate::order::OrderColumn;
use crate::statistics::ClassTable;
use crate::statistics_bytes::{flag, read_statistics};
use std::sync::Arc;
use vervet_codec::{Array, ArrayView, Codes, Damaged, KeySet, NONE, Reader};
use vervet_env::Bytes;
use vervet_model::{Direction, Error, ErrorKind, Id, Result, Tag};
use vervet_snapshot::{
    ClassId, ContentId, Cursor, EntryFilter, Expansion, GraphFilter, OrderRange, OrderedEntry, Segment,
    SegmentStatistics,
};

/// Number of keys checked at a time when a bitmap is built.
const MARK_KEYS: usize = 1 << 12;

/// All entries of one `[predicate, direction]`. See the header of this file.
#[derive(Debug)]
pub struct BaseSegment {
    predicate: Id,
    direction: Direction,
    bytes: Bytes,
    statistics: SegmentStatistics,
    parts: SegmentLayout,
    /// The property that orders the entries, and the order column.
    order: Option<(Id, Arc<LazySection<OrderColumn>>)>,
    bitmaps: KeyBitmaps,
    content: ContentId,
}

impl BaseSegment {
    /// Opens the segment in a section whose checksum was verified.
    ///
    /// # Errors
    /// [`vervet_model::ErrorKind::Corrupt`] if the section is inconsistent; `name` is used in the message.
    pub(crate) fn open(bytes: Bytes, name: &dyn std::fmt::Display) -> Result<Self> {
        Self::parse(bytes).map_err(|damaged| Error::corrupt(name, damaged.0))
    }

    fn parse(bytes: Bytes) -> Result<Self, Damaged> {
        let mut meta = Reader::of_section(&bytes)?;
        let predicate = Id::from_bits(meta.u64()?);
        let direction = match meta.u64()? {
            0 => Direction::Out,
            1 => Direction::In,
            _ => return Err(Damaged("unknown direction")),
        };
        let (statistics, flags) = read_statistics(&mut meta)?;
        let section = bytes.len();
        let keys = KeySet::read_meta(&mut meta, section)?;
        let neighbours = Codes::read_meta(&mut meta, section)?;
        let mut optional = || match meta.u64()? {
            0 => Ok(None),
            1 => Array::read_meta(&mut meta, section).map(Some),
            _ => Err(Damaged("unknown kind of column")),
        };
        let (offsets, graphs, edges) = (optional()?, optional()?, optional()?);
        meta.finish()?;
        let parts = SegmentLayout {
            keys,
            offsets,
            neighbours,
            graphs,
            edges,
            all_edges: flags & flag::ALL_EDGES != 0,
        };
        let entries = parts.neighbours.len();
        let column = |column: &Option<Array>, has: bool| match column {
            Some(column) => has && column.len() == entries,
            None => !has,
        };
        let offsets_fit = match &parts.offsets {
            Some(offsets) => offsets.len() == parts.keys.len() + 1,
            None => parts.keys.len() == entries,
        };
        if !offsets_fit
            || statistics.keys != parts.keys.len() as u64
            || statistics.entries != entries as u64
            || !column(&parts.graphs, statistics.has_named_graphs)
            || !column(&parts.edges, statistics.has_edges)
        {
            return Err(Damaged("parts of a segment have different lengths"));
        }
        Ok(Self {
            predicate,
            direction,
            bytes,
            statistics,
            parts,
            order: None,
            bitmaps: KeyBitmaps::default(),
            content: ContentId::new(),
        })
    }

    /// The predicate.
    #[must_use]
    pub fn predicate(&self) -> Id {
        self.predicate
    }

    /// Whether keys are subjects or objects.
    #[must_use]
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Names and sizes in bytes of the parts of the section.
    #[must_use]
    pub fn parts(&self) -> Vec<(&'static str, u64)> {
        let array = |part: &Option<Array>| part.map_or(0, |part| part.size_bytes()) as u64;
        let sizes = [
            ("keys", self.parts.keys.size_bytes() as u64),
            ("offsets", array(&self.parts.offsets)),
            ("neighbours", self.parts.neighbours.size_bytes() as u64),
            ("graphs", array(&self.parts.graphs)),
            ("edges", array(&self.parts.edges)),
        ];
        let body: u64 = sizes.iter().map(|(_, size)| size).sum();
        let metadata = (self.bytes.len() as u64).saturating_sub(body);
        let sizes = sizes.into_iter().filter(|(_, size)| *size != 0);
        sizes.chain([("metadata", metadata)]).collect()
    }

    /// Sets [`SegmentStatistics::untyped_keys`], which depends on the table of contents.
    pub(crate) fn count_untyped_keys(&mut self, typed_end: ClassId) {
        self.statistics.untyped_keys = ClassTable::untyped_keys(&self.statistics.keys_of_class, typed_end);
    }

    pub(crate) fn set_order(&mut self, property: Id, column: Arc<LazySection<OrderColumn>>) {
        self.order = Some((property, column));
    }

    /// The order of the entries, if they have one.
    pub(crate) fn order_column(&self) -> Result<Option<&OrderColumn>> {
        let Some((property, slot)) = &self.order else { return Ok(None) };
        let open = |bytes, name: &String| {
            let column = OrderColumn::open(bytes, name)?;
            let ours = (self.predicate, self.direction as u64, *property, self.statistics.entries);
            if (column.predicate, column.direction, column.property, column.len() as u64) != ours {
                return Err(Error::corrupt(name, "it is the order of another segment"));
            }
            Ok(column)
        };
        slot.get(open).map(Some)
    }

    /// A view for a batch of accesses.
    pub(crate) fn view(&self) -> SegmentView<'_> {
        SegmentView::new(&self.bytes, &self.parts)
    }

    /// Whether every entry passes `filter`, so that none need be inspected.
    fn is_plain(&self, filter: EntryFilter, want_edges: bool) -> bool {
        let graphs = self.parts.graphs.is_none() || filter.graph == GraphFilter::Any;
        let entries =
            if want_edges { self.parts.all_edges } else { filter.parallel || !self.statistics.has_parallel };
        graphs && entries
    }

    /// Builds the bitmap of the keys with this neighbour, if it is small.
    fn build_bitmap(&self, neighbour: Id) {
        let count = self.statistics.keys;
        let mut ends = Vec::new();
        for position in [0, count.saturating_sub(1)] {
            self.parts.keys.list(&self.bytes, position, 1, |key| ends.push(Id::from_bits(key)));
        }
        let [first, last] = ends[..] else { return };
        if !KeyBitmaps::suit(count, first, last, self.statistics.neighbours) {
            return;
        }
        let view = self.view();
        let mut bits = KeyBitmap::new(first, last);
        let (mut keys, mut rows) = (Vec::new(), Vec::new());
        let mut position = 0;
        while position < count {
            keys.clear();
            rows.clear();
            position =
                self.parts.keys.list(&self.bytes, position, MARK_KEYS, |key| keys.push(Id::from_bits(key)));
            if keys.is_empty() {
                break;
            }
            crate::check::constant(&view, &keys, neighbour, None, &mut rows);
            rows.iter().filter_map(|row| keys.get(*row as usize)).for_each(|key| bits.set(*key));
        }
        self.bitmaps.keep(neighbour, bits);
    }

    /// Whether no entry can pass.
    fn is_void(&self, filter: EntryFilter, want_edges: bool) -> bool {
        let named = matches!(filter.graph, GraphFilter::Named(_) | GraphFilter::AnyNamed);
        named && self.parts.graphs.is_none() || want_edges && self.parts.edges.is_none()
    }
}

impl Segment for BaseSegment {
    fn statistics(&self) -> &SegmentStatistics {
        &self.statistics
    }

    fn expand(
        &self,
        keys: &[Id],
        filter: EntryFilter,
        cursor: &mut Cursor,
        out: &mut Expansion,
    ) -> Result<()> {
        if self.is_void(filter, out.want_edges) {
            *cursor = Cursor::at(keys.len());
            return Ok(());
        }
        if cursor.resume != Cursor::default().resume
            && let Some(key) = keys.get(cursor.row)
        {
            let view = self.view();
            let range = view.range_of(view.position(*key));
            let offset = view.lower_bound(range.clone(), cursor.resume) - range.start;
            *cursor = Cursor { offset: offset as u64, ..Cursor::at(cursor.row) };
        }
        if self.is_plain(filter, out.want_edges) {
            crate::expand::all(&self.view(), keys, cursor, out);
        } else {
            crate::expand::some(&self.view(), keys, filter, cursor, out);
        }
        Ok(())
    }

    fn split(&self, key: Id, parts: usize, entries_min: usize, out: &mut Vec<Id>) -> Result<()> {
        let view = self.view();
        let range = view.range_of(view.position(key));
        let parts = parts.min(range.len() / entries_min.max(1));
        let first = out.len();
        for part in 1..parts {
            let neighbour = Id::from_bits(view.neighbours.get(range.start + range.len() / parts * part));
            if out[first..].last().is_none_or(|last| *last < neighbour) {
                out.push(neighbour);
            }
        }
        Ok(())
    }

    fn degrees(&self, keys: &[Id], filter: EntryFilter, out: &mut Vec<u64>) -> Result<()> {
        out.clear();
        if self.is_void(filter, false) {
            out.resize(keys.len(), 0);
            return Ok(());
        }
        let view = self.view();
        let plain = self.is_plain(filter, false);
        out.reserve(keys.len());
        view.for_each_chunk(keys, |_, located| {
            if plain {
                out.extend(located.ranges().map(|range| range.len() as u64));
            } else {
                out.extend(located.ranges().map(|range| view.passing(range, filter, false).count() as u64));
            }
        });
        Ok(())
    }

    fn check(&self, keys: &[Id], neighbours: &[Id], filter: EntryFilter, out: &mut Vec<u32>) -> Result<()> {
        if self.is_void(filter, false) {
            return Ok(());
        }
        // Duplicates do not matter for a check.
        let plain = self.is_plain(EntryFilter { parallel: true, ..filter }, false);
        crate::check::pairs(&self.view(), keys, neighbours, (!plain).then_some(filter), out);
        Ok(())
    }

    fn check_constant(
        &self,
        keys: &[Id],
        neighbour: Id,
        filter: EntryFilter,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        if self.is_void(filter, false) {
            return Ok(());
        }
        let plain = self.is_plain(EntryFilter { parallel: true, ..filter }, false);
        if plain && keys.len() >= key_bitmaps::KEYS_MIN {
            match self.bitmaps.ask(neighbour, keys.len(), self.statistics.keys) {
                BitmapLookup::Bitmap(bits) => {
                    bits.rows(keys, out);
                    return Ok(());
                }
                BitmapLookup::Build => self.build_bitmap(neighbour),
                BitmapLookup::Absent => {}
            }
        }
        crate::check::constant(&self.view(), keys, neighbour, (!plain).then_some(filter), out);
        Ok(())
    }

    fn neighbours(&self, key: Id, filter: EntryFilter, out: &mut Vec<Id>) -> Result<()> {
        if self.is_void(filter, false) {
            return Ok(());
        }
        let view = self.view();
        let range = view.range_of(view.position(key));
        if self.is_plain(filter, false) && self.parts.graphs.is_none() && !self.statistics.has_parallel {
            view.copy_neighbours(range, out);
            return Ok(());
        }
        let mut last = Id::UNBOUND;
        for entry in view.passing(range, filter, false) {
            if entry.neighbour != last {
                last = entry.neighbour;
                out.push(last);
            }
        }
        Ok(())
    }

    fn keys_up_to(&self, from: Id, last: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
        vervet_snapshot::keys_up_to(self, from, last, limit, out)
    }

    fn order(&self) -> Option<Id> {
        self.order.as_ref().map(|(property, _)| *property)
    }

    fn ordered(
        &self,
        key: Id,
        range: &OrderRange,
        graph: GraphFilter,
        out: &mut Vec<OrderedEntry>,
    ) -> Result<()> {
        let Some(column) = self.order_column()? else {
            return Err(Error::new(ErrorKind::Unsupported, "the entries of this predicate have no order")
                .with_hint("declare one when loading, such as --order knows=since"));
        };
        let (view, order) = (self.view(), column.view());
        let entries = view.range_of(view.position(key));
        let found = order.range(entries.clone(), range.from, range.before);
        let mut left = range.limit;
        let mut visit = |index: usize| {
            let (position, order_key) = order.get(index);
            if position >= entries.len() {
                return Err(Error::corrupt("an order column", "it names an entry that does not exist"));
            }
            let SegmentEntry { neighbour, graph: of, edge, .. } = view.entry(entries.start + position);
            if graph.matches(of) {
                out.push(OrderedEntry { neighbour, graph: of, edge, order_key });
                left -= 1;
            }
            Ok(left > 0)
        };
        if range.limit == 0 {
            return Ok(());
        }
        if range.descending {
            for index in found.rev() {
                if !visit(index)? {
                    break;
                }
            }
        } else {
            for index in found {
                if !visit(index)? {
                    break;
                }
            }
        }
        Ok(())
    }

    fn content_id(&self) -> Option<ContentId> {
        Some(self.content)
    }

    fn is_remote(&self, _: Option<&[Id]>) -> bool {
        false
    }

    fn keys(&self, from: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
        let keys = &self.parts.keys;
        let position = keys.lower_bound(&self.bytes, from.bits());
        let end = keys.list(&self.bytes, position, limit, |key| out.push(Id::from_bits(key)));
        let mut next = None;
        keys.list(&self.bytes, end, 1, |key| next = Some(Id::from_bits(key)));
        Ok(next)
    }

    fn keys_below(&self, key: Id) -> Result<u64> {
        Ok(self.parts.keys.lower_bound(&self.bytes, key.bits()))
    }

    fn entries(&self, key: Id, from: [Id; 3], limit: usize, out: &mut Vec<[Id; 3]>) -> Result<()> {
        let view = self.view();
        let range = view.range_of(view.position(key));
        let start = if from > [Id::UNBOUND; 3] { view.lower_bound(range.clone(), from) } else { range.start };
        out.extend((start..start.saturating_add(limit).min(range.end)).map(|index| view.triple(index)));
        Ok(())
    }
}

impl SegmentView<'_> {
    /// The whole entry at a position.
    #[inline]
    pub(crate) fn entry(&self, index: usize) -> SegmentEntry {
        let optional = |column: &Option<ArrayView<'_>>, tag| match column {
            Some(column) => optional_id(tag, column.get(index)),
            None => Id::UNBOUND,
        };
        SegmentEntry {
            index,
            neighbour: Id::from_bits(self.neighbours.get(index)),
            graph: optional(&self.graphs, Tag::Vertex),
            edge: optional(&self.edges, Tag::Edge),
        }
    }

    /// Neighbour, graph and edge of the entry at a position.
    pub(crate) fn triple(&self, index: usize) -> [Id; 3] {
        let SegmentEntry { neighbour, graph, edge, .. } = self.entry(index);
        [neighbour, graph, edge]
    }

    /// The first position in the `range` of a key whose entry is not below `from`; its end if there is none.
    pub(crate) fn lower_bound(&self, range: std::ops::Range<usize>, from: [Id; 3]) -> usize {
        let (mut start, mut length) = (range.start, range.len());
        while length > 0 {
            let half = length / 2;
            if self.triple(start + half) < from {
                start += half + 1;
                length -= half + 1;
            } else {
                length = half;
            }
        }
        start
    }

    /// The entries of a position in the key set; empty for [`NONE`].
    #[inline]
    pub(crate) fn range_of(&self, position: u32) -> std::ops::Range<usize> {
        if position == NONE {
            return 0..0;
        }
        let position = position as usize;
        match &self.offsets {
            None => position..position + 1,
            Some(offsets) => {
                let (start, end) = match offsets {
                    ArrayView::Packed(offsets) => (offsets.get(position), offsets.get(position + 1)),
                    ArrayView::Framed(offsets) => offsets.pair(position),
                };
                let offset = |offset| usize::try_from(offset).unwrap_or(usize::MAX).min(self.count);
                let end = offset(end);
                offset(start).min(end)..end
            }
        }
    }
}

impl BaseSegment {
    /// Fills `out` with the entries of one key that pass `filter`.
    pub(crate) fn entries_of(&self, key: Id, filter: EntryFilter, out: &mut Vec<SegmentEntry>) {
        let view = self.view();
        out.clear();
        out.extend(view.passing(view.range_of(view.position(key)), filter, false));
    }
}

impl BaseSegment {
    /// Checks that the flags that select fast paths agree with the entries.
    pub(crate) fn validate_flags(&self, entries: &[[u64; 4]], name: &str) -> Result<()> {
        let parallel = entries.windows(2).any(|pair| pair[0][..3] == pair[1][..3]);
        let all_edges = entries.iter().all(|entry| entry[3] != 0);
        // Of no entries, files of earlier versions may say either.
        let is_right = entries.is_empty() || all_edges == self.parts.all_edges;
        if parallel != self.statistics.has_parallel || !is_right {
            return Err(Error::corrupt(name, "its flags do not fit its entries"));
        }
        Ok(())
    }
}
