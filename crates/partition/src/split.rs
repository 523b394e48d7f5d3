//! A segment over partitions in which each key may have entries in all of them: in entries by types, and by
//! other objects that have too many for one partition.
//!
//! # Shape
//! A call goes to all partitions that have entries of the predicate. The neighbours, which are subjects, are
//! each in one partition, so degrees are sums, and sorted lists are merged.
//! # Cost
//! Calls of all partitions; entries are read in chunks that grow fourfold.

use crate::keyed::merged_keys;
use std::sync::Arc;
use vervet_model::{Id, Result};
use vervet_snapshot::{
    Cursor, EntryFilter, Expansion, GraphFilter, OrderRange, OrderedEntry, Segment, SegmentStatistics,
    append_entries, keys_up_to, successor,
};

/// Size of the first chunk of entries, and of the largest.
const CHUNK_FIRST: usize = 64;
const CHUNK_MAX: usize = 4_096;

/// Up to this many entries for each partition, the ranges of a key are found by listing its neighbours.
const LISTED_PER_PARTITION: usize = 64;

/// Number of keys that are listed at a time.
const KEYS_AHEAD: usize = 1_024;

/// See the header of this file.
pub(crate) struct SplitSegment {
    pub(crate) parts: Vec<Arc<dyn Segment>>,
    pub(crate) statistics: SegmentStatistics,
    pub(crate) order: Option<Id>,
}

/// The entries of one key in one partition.
struct Entries<'a> {
    part: &'a dyn Segment,
    key: Id,
    chunk: Vec<[Id; 3]>,
    at: usize,
    /// Size of the next chunk; 0 at the end.
    ask: usize,
    from: [Id; 3],
}

impl Entries<'_> {
    fn peek(&mut self) -> Result<Option<[Id; 3]>> {
        if self.at == self.chunk.len() && self.ask > 0 {
            self.chunk.clear();
            self.at = 0;
            self.part.entries(self.key, self.from, self.ask, &mut self.chunk)?;
            self.ask = if self.chunk.len() < self.ask { 0 } else { (self.ask * 4).min(CHUNK_MAX) };
            self.from = self.chunk.last().map_or(self.from, |last| successor(*last));
        }
        Ok(self.chunk.get(self.at).copied())
    }
}

impl SplitSegment {
    /// Calls `each` with the entries of `key` from `from` on, ascending, while it returns `true`.
    fn for_each(&self, key: Id, from: [Id; 3], each: &mut dyn FnMut([Id; 3]) -> bool) -> Result<()> {
        let mut next = self.merged(key, from);
        while let Some(entry) = next()? {
            if !each(entry) {
                break;
            }
        }
        Ok(())
    }

    /// A function that returns these entries, one after the other.
    fn merged(&self, key: Id, from: [Id; 3]) -> impl FnMut() -> Result<Option<[Id; 3]>> {
        let entries = |part| Entries { part, key, chunk: Vec::new(), at: 0, ask: CHUNK_FIRST, from };
        let mut lists: Vec<Entries<'_>> = self.parts.iter().map(|part| entries(&**part)).collect();
        move || {
            let mut least: Option<(usize, [Id; 3])> = None;
            for (position, list) in lists.iter_mut().enumerate() {
                if let Some(entry) = list.peek()?
                    && least.is_none_or(|(_, least)| entry < least)
                {
                    least = Some((position, entry));
                }
            }
            let Some((position, entry)) = least else { return Ok(None) };
            lists[position].at += 1;
            Ok(Some(entry))
        }
    }

    /// Appends the union of the rows that `ask` appends for each partition, ascending.
    fn rows_of_any(
        &self,
        ask: impl Fn(&dyn Segment, &mut Vec<u32>) -> Result<()>,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let mut rows = Vec::new();
        self.parts.iter().try_for_each(|part| ask(&**part, &mut rows))?;
        rows.sort_unstable();
        rows.dedup();
        out.append(&mut rows);
        Ok(())
    }
}

impl Segment for SplitSegment {
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
        while let Some(key) = keys.get(cursor.row).filter(|_| out.remaining_capacity() > 0) {
            let mut next = self.merged(*key, cursor.resume);
            append_entries(&mut next, filter, cursor, out)?;
        }
        Ok(())
    }

    fn split(&self, key: Id, parts: usize, entries_min: usize, out: &mut Vec<Id>) -> Result<()> {
        let mut degrees = Vec::new();
        self.degrees(&[key], EntryFilter::ALL, &mut degrees)?;
        let count = degrees.first().map_or(0, |degree| usize::try_from(*degree).unwrap_or(usize::MAX));
        let ranges = parts.min(count / entries_min.max(1));
        if ranges < 2 {
            return Ok(());
        }
        let mut points = Vec::new();
        if count <= LISTED_PER_PARTITION * self.parts.len() {
            // Partitions with a few entries each would name no points.
            self.neighbours(key, EntryFilter::ALL, &mut points)?;
            points.drain(..points.len().min(1));
        } else {
            let least = entries_min.div_ceil(self.parts.len());
            self.parts.iter().try_for_each(|part| part.split(key, ranges, least, &mut points))?;
            points.sort_unstable();
        }
        points.dedup();
        let step = (points.len() + 1).div_ceil(ranges);
        out.extend(points.into_iter().skip(step - 1).step_by(step));
        Ok(())
    }

    fn degrees(&self, keys: &[Id], filter: EntryFilter, out: &mut Vec<u64>) -> Result<()> {
        out.clear();
        out.resize(keys.len(), 0);
        let mut degrees = Vec::new();
        for part in &self.parts {
            part.degrees(keys, filter, &mut degrees)?;
            out.iter_mut().zip(&degrees).for_each(|(sum, degree)| *sum += degree);
        }
        Ok(())
    }

    fn check(&self, keys: &[Id], neighbours: &[Id], filter: EntryFilter, out: &mut Vec<u32>) -> Result<()> {
        self.rows_of_any(|part, rows| part.check(keys, neighbours, filter, rows), out)
    }

    fn check_constant(
        &self,
        keys: &[Id],
        neighbour: Id,
        filter: EntryFilter,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        self.rows_of_any(|part, rows| part.check_constant(keys, neighbour, filter, rows), out)
    }

    fn neighbours(&self, key: Id, filter: EntryFilter, out: &mut Vec<Id>) -> Result<()> {
        let first = out.len();
        self.parts.iter().try_for_each(|part| part.neighbours(key, filter, out))?;
        out[first..].sort_unstable();
        Ok(())
    }

    fn keys(&self, from: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
        merged_keys(self.parts.iter(), from, limit, out)
    }

    fn keys_up_to(&self, from: Id, last: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
        keys_up_to(self, from, last, limit, out)
    }

    fn entries(&self, key: Id, from: [Id; 3], limit: usize, out: &mut Vec<[Id; 3]>) -> Result<()> {
        let end = out.len().saturating_add(limit);
        if limit == 0 {
            return Ok(());
        }
        self.for_each(key, from, &mut |entry| {
            out.push(entry);
            out.len() < end
        })
    }

    /// Lists the keys, of which split predicates have few.
    fn keys_below(&self, key: Id) -> Result<u64> {
        let (mut keys, mut count, mut next) = (Vec::new(), 0, Some(Id::UNBOUND));
        while let Some(from) = next.filter(|from| *from < key) {
            keys.clear();
            next = self.keys(from, KEYS_AHEAD, &mut keys)?;
            count += keys.iter().filter(|found| **found < key).count() as u64;
        }
        Ok(count)
    }

    fn order(&self) -> Option<Id> {
        self.order
    }

    fn ordered(
        &self,
        key: Id,
        range: &OrderRange,
        graph: GraphFilter,
        out: &mut Vec<OrderedEntry>,
    ) -> Result<()> {
        let mut all = Vec::new();
        self.parts.iter().try_for_each(|part| part.ordered(key, range, graph, &mut all))?;
        all.sort_unstable_by_key(|entry| (entry.order_key, entry.neighbour, entry.graph, entry.edge));
        if range.descending {
            all.reverse();
        }
        all.truncate(range.limit);
        out.append(&mut all);
        Ok(())
    }
}
