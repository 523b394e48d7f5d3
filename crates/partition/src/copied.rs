//! A segment of other servers that has few entries: copied when it is read a second time, so that steps which
//! read it for each row, as a scan within `EXISTS` does, take no round trips.
//!
//! # Shape
//! Before the copy is there, and if there is no room for it, all calls go to the segment over partitions.
//! # Cost
//! [`ENTRIES_MAX`] entries at most for each segment, and what [`LongLists`](crate::long_lists::LongLists) has
//! room for in all.

use crate::long_lists::{self, OfSegment};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use vervet_model::{Id, Result};
use vervet_snapshot::{
    ContentId, Cursor, EntryFilter, Expansion, GraphFilter, OrderRange, OrderedEntry, Segment,
    SegmentStatistics, keys_up_to,
};

/// Maximum entries of a segment that is copied.
pub(crate) const ENTRIES_MAX: u64 = 1 << 12;

/// Bytes of an entry with its key.
const ENTRY_BYTES: usize = 32;

/// See the header of this file.
pub(crate) struct CopiedSegment<S> {
    inner: S,
    lists: OfSegment,
    was_read: AtomicBool,
    /// `None` inside: there is no room.
    copy: OnceLock<Option<Copied>>,
}

/// The entries of a segment: key, neighbour, graph, edge; ascending.
struct Copied {
    keys: Vec<Id>,
    /// Of each key the end of its entries.
    ends: Vec<usize>,
    entries: Vec<[Id; 3]>,
}

impl<S: Segment> CopiedSegment<S> {
    /// `inner` has [`ENTRIES_MAX`] entries at most.
    pub(crate) fn new(inner: S, lists: OfSegment) -> Self {
        Self { inner, lists, was_read: AtomicBool::new(false), copy: OnceLock::new() }
    }

    /// The copy, if the segment was read before and there is room.
    fn copy(&self) -> Result<Option<&Copied>> {
        if let Some(copy) = self.copy.get() {
            return Ok(copy.as_ref());
        }
        // Relaxed: whether the second or the third reading copies is all the same.
        if !self.was_read.swap(true, Ordering::Relaxed) {
            return Ok(None);
        }
        let entries = usize::try_from(self.inner.statistics().entries).unwrap_or(usize::MAX);
        let bytes = entries.saturating_mul(ENTRY_BYTES);
        if !self.lists.reserve(bytes) {
            return Ok(self.copy.get_or_init(|| None).as_ref());
        }
        let copied = Copied::of(&self.inner).inspect_err(|_| self.lists.release(bytes))?;
        if self.copy.set(Some(copied)).is_err() {
            // Another thread was faster.
            self.lists.release(bytes);
        }
        Ok(self.copy.get().and_then(Option::as_ref))
    }
}

impl Copied {
    fn of(segment: &dyn Segment) -> Result<Self> {
        let (mut keys, mut from) = (Vec::new(), Some(Id::UNBOUND));
        while let Some(next) = from {
            from = segment.keys(next, usize::try_from(ENTRIES_MAX).unwrap_or(usize::MAX), &mut keys)?;
        }
        // Entries with an edge are listed apart: an expansion that asks for edges leaves out the others.
        let all = expanded(segment, &keys, false)?;
        let with_edges = match segment.statistics().has_edges {
            true => expanded(segment, &keys, true)?,
            false => Vec::new(),
        };
        let mut with_edges = with_edges.into_iter().peekable();
        let mut copied = Self { keys, ends: Vec::new(), entries: Vec::with_capacity(all.len()) };
        let mut all = all.into_iter().peekable();
        for row in 0..copied.keys.len() {
            while let Some((_, [neighbour, graph, _])) = all.next_if(|(of, _)| *of == row) {
                let mut count = 1;
                let same = |(of, entry): &(usize, [Id; 3])| *of == row && entry[..2] == [neighbour, graph];
                while all.next_if(same).is_some() {
                    count += 1;
                }
                let first = copied.entries.len();
                while let Some((_, entry)) = with_edges.next_if(same) {
                    copied.entries.push(entry);
                }
                let found = copied.entries.len() - first;
                // Those without an edge sort first.
                let without = std::iter::repeat_n([neighbour, graph, Id::UNBOUND], count - found.min(count));
                copied.entries.splice(first..first, without);
            }
            copied.ends.push(copied.entries.len());
        }
        Ok(copied)
    }

    /// The entries of a key.
    fn list(&self, key: Id) -> &[[Id; 3]] {
        let Ok(position) = self.keys.binary_search(&key) else { return &[] };
        let start = position.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.entries[start..self.ends[position]]
    }

    fn has(&self, key: Id, neighbour: Id, filter: EntryFilter) -> bool {
        let list = self.list(key);
        let from = list.partition_point(|entry| entry[0] < neighbour);
        let mut of_neighbour = list[from..].iter().take_while(|entry| entry[0] == neighbour);
        of_neighbour.any(|entry| filter.graph.matches(entry[1]))
    }

    fn degree(&self, key: Id, filter: EntryFilter) -> u64 {
        let passing = self.list(key).iter().filter(|entry| filter.graph.matches(entry[1]));
        if filter.parallel {
            return passing.count() as u64;
        }
        let (mut last, mut count) = (None, 0);
        for [neighbour, graph, _] in passing {
            count += u64::from(last.replace((*neighbour, *graph)) != Some((*neighbour, *graph)));
        }
        count
    }
}

/// Row, neighbour, graph and edge of all entries, or of those with an edge.
fn expanded(segment: &dyn Segment, keys: &[Id], want_edges: bool) -> Result<Vec<(usize, [Id; 3])>> {
    let (mut entries, mut cursor) = (Vec::new(), Cursor::default());
    while cursor.row < keys.len() {
        let mut out = Expansion { want_edges, want_graphs: true, capacity: 1 << 13, ..Expansion::default() };
        segment.expand(keys, EntryFilter::ALL, &mut cursor, &mut out)?;
        for (at, row) in out.rows.iter().enumerate() {
            let edge = if want_edges { out.edges[at] } else { Id::UNBOUND };
            entries.push((*row as usize, [out.neighbours[at], out.graphs[at], edge]));
        }
    }
    Ok(entries)
}

impl<S: Segment> Segment for CopiedSegment<S> {
    fn statistics(&self) -> &SegmentStatistics {
        self.inner.statistics()
    }

    fn expand(
        &self,
        keys: &[Id],
        filter: EntryFilter,
        cursor: &mut Cursor,
        out: &mut Expansion,
    ) -> Result<()> {
        // A row that the segment over partitions has begun may have a place that only it knows.
        let Some(copy) = self.copy()?.filter(|_| cursor.offset == 0) else {
            return self.inner.expand(keys, filter, cursor, out);
        };
        while let Some(key) = keys.get(cursor.row).filter(|_| out.remaining_capacity() > 0) {
            long_lists::expand(copy.list(*key), filter, cursor, out)?;
        }
        Ok(())
    }

    fn split(&self, key: Id, parts: usize, entries_min: usize, out: &mut Vec<Id>) -> Result<()> {
        let Some(copy) = self.copy()? else { return self.inner.split(key, parts, entries_min, out) };
        let mut neighbours: Vec<Id> = copy.list(key).iter().map(|entry| entry[0]).collect();
        let ranges = parts.min(neighbours.len() / entries_min.max(1));
        if ranges > 1 {
            let step = neighbours.len().div_ceil(ranges);
            neighbours = neighbours.into_iter().skip(step).step_by(step).collect();
            neighbours.dedup();
            out.append(&mut neighbours);
        }
        Ok(())
    }

    fn degrees(&self, keys: &[Id], filter: EntryFilter, out: &mut Vec<u64>) -> Result<()> {
        let Some(copy) = self.copy()? else { return self.inner.degrees(keys, filter, out) };
        out.clear();
        out.extend(keys.iter().map(|key| copy.degree(*key, filter)));
        Ok(())
    }

    fn check(&self, keys: &[Id], neighbours: &[Id], filter: EntryFilter, out: &mut Vec<u32>) -> Result<()> {
        let Some(copy) = self.copy()? else { return self.inner.check(keys, neighbours, filter, out) };
        let rows = (0_u32..).zip(keys.iter().zip(neighbours));
        out.extend(rows.filter(|(_, (key, other))| copy.has(**key, **other, filter)).map(|(row, _)| row));
        Ok(())
    }

    fn check_constant(
        &self,
        keys: &[Id],
        neighbour: Id,
        filter: EntryFilter,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let Some(copy) = self.copy()? else {
            return self.inner.check_constant(keys, neighbour, filter, out);
        };
        let rows = (0_u32..).zip(keys);
        out.extend(rows.filter(|(_, key)| copy.has(**key, neighbour, filter)).map(|(row, _)| row));
        Ok(())
    }

    fn neighbours(&self, key: Id, filter: EntryFilter, out: &mut Vec<Id>) -> Result<()> {
        match self.copy()? {
            Some(copy) => {
                long_lists::neighbours(copy.list(key), filter, out);
                Ok(())
            }
            None => self.inner.neighbours(key, filter, out),
        }
    }

    /// Of all keys, `None`, it is remote in any case: whether the graph is spread does not depend on what was
    /// read before.
    fn is_remote(&self, keys: Option<&[Id]>) -> bool {
        let is_here = keys.is_some() && matches!(self.copy.get(), Some(Some(_)));
        !is_here && self.inner.is_remote(keys)
    }

    fn content_id(&self) -> Option<ContentId> {
        self.inner.content_id()
    }

    fn keys(&self, from: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
        let Some(copy) = self.copy()? else { return self.inner.keys(from, limit, out) };
        let rest = &copy.keys[copy.keys.partition_point(|key| *key < from)..];
        let (listed, beyond) = rest.split_at(limit.min(rest.len()));
        out.extend_from_slice(listed);
        Ok(beyond.first().copied())
    }

    fn keys_up_to(&self, from: Id, last: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
        keys_up_to(self, from, last, limit, out)
    }

    fn entries(&self, key: Id, from: [Id; 3], limit: usize, out: &mut Vec<[Id; 3]>) -> Result<()> {
        let Some(copy) = self.copy()? else { return self.inner.entries(key, from, limit, out) };
        let list = copy.list(key);
        out.extend(list[list.partition_point(|entry| *entry < from)..].iter().take(limit));
        Ok(())
    }

    fn keys_below(&self, key: Id) -> Result<u64> {
        match self.copy()? {
            Some(copy) => Ok(copy.keys.partition_point(|of| *of < key) as u64),
            None => self.inner.keys_below(key),
        }
    }

    fn order(&self) -> Option<Id> {
        self.inner.order()
    }

    fn ordered(
        &self,
        key: Id,
        range: &OrderRange,
        graph: GraphFilter,
        out: &mut Vec<OrderedEntry>,
    ) -> Result<()> {
        self.inner.ordered(key, range, graph, out)
    }
}
