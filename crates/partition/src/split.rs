//! A segment over partitions in which each key may have entries in all of them: in entries by types, and by
//! other objects that have too many for one partition.
//!
//! # Shape
//! A call goes to all parts (partitions of this process, other servers) that have entries of the predicate.
//! The neighbours, which are subjects, are each in one partition, so degrees are sums, sorted lists are
//! merged, and a check goes to the part that has the neighbour.
//! # Cost
//! Calls of all parts; entries are read in chunks that grow fourfold, the first chunks of all parts together.
//! With parts at other servers, an expansion of many keys with few entries is one call to each part.

use crate::call::{Call, PartSegment, ROWS_MAX, Reply, Shape, another_kind};
use crate::gather::gather;
use crate::keyed::{merged_keys, part_entries, part_neighbours, part_ordered};
use crate::long_lists::{self, ENTRIES_MAX, List, OfSegment};
use crate::routes::Routes;
use crate::window::Window;
use std::borrow::Cow;
use std::sync::Arc;
use vervet_model::{Id, Result};
use vervet_snapshot::{
    ContentId, Cursor, EntryFilter, Expansion, GraphFilter, OrderRange, OrderedEntry, Segment,
    SegmentStatistics, append_entries, keys_up_to, successor,
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
    pub(crate) routes: Arc<Routes>,
    /// The parts, each if it has entries.
    pub(crate) parts: Vec<Option<PartSegment>>,
    pub(crate) statistics: SegmentStatistics,
    pub(crate) order: Option<Id>,
    pub(crate) lists: OfSegment,
    pub(crate) content: ContentId,
}

/// The entries of one key in one part.
struct Entries<'a> {
    part: &'a PartSegment,
    key: Id,
    chunk: Vec<[Id; 3]>,
    at: usize,
    /// Size of the next chunk; 0 at the end.
    ask: usize,
    from: [Id; 3],
}

impl Entries<'_> {
    /// Continues after a chunk that was just read.
    fn asked(&mut self) {
        self.ask = if self.chunk.len() < self.ask { 0 } else { (self.ask * 4).min(CHUNK_MAX) };
        self.from = self.chunk.last().map_or(self.from, |last| successor(*last));
    }

    fn peek(&mut self) -> Result<Option<[Id; 3]>> {
        if self.at == self.chunk.len() && self.ask > 0 {
            self.chunk.clear();
            self.at = 0;
            part_entries(self.part, self.key, self.from, self.ask, &mut self.chunk)?;
            self.asked();
        }
        Ok(self.chunk.get(self.at).copied())
    }
}

/// The entries of a key in all parts, ascending.
struct Merged<'a> {
    lists: Vec<Entries<'a>>,
}

impl Merged<'_> {
    fn next(&mut self) -> Result<Option<[Id; 3]>> {
        let mut least: Option<(usize, [Id; 3])> = None;
        for (position, list) in self.lists.iter_mut().enumerate() {
            if let Some(entry) = list.peek()?
                && least.is_none_or(|(_, least)| entry < least)
            {
                least = Some((position, entry));
            }
        }
        let Some((position, entry)) = least else { return Ok(None) };
        self.lists[position].at += 1;
        Ok(Some(entry))
    }
}

impl SplitSegment {
    fn parts(&self) -> impl Iterator<Item = &PartSegment> {
        self.parts.iter().flatten()
    }

    /// How many of `count` entries to ask each part for.
    fn share_of(&self, count: usize) -> usize {
        (count / self.parts().count().max(1)).saturating_mul(5) / 4 + 16
    }

    /// The entries of `key` from `from` on, of which about `count` will be read.
    fn merged(&self, key: Id, from: [Id; 3], count: usize) -> Result<Merged<'_>> {
        let has_remote = self.parts().any(|part| matches!(part, PartSegment::Remote(..)));
        // A further chunk of a partition here costs little, one of another server a round trip.
        let ask = if has_remote { self.share_of(count).clamp(CHUNK_FIRST, CHUNK_MAX) } else { CHUNK_FIRST };
        let entries = |part| Entries { part, key, chunk: Vec::new(), at: 0, ask, from };
        let mut lists: Vec<Entries<'_>> = self.parts().map(entries).collect();
        if has_remote {
            let call = |list: &Entries<'_>| Call::Entries { key, from, limit: list.ask };
            let calls: Vec<_> = lists.iter().map(|list| (list.part, call(list))).collect();
            for (list, reply) in lists.iter_mut().zip(gather(&calls)?) {
                let Reply::Entries(chunk) = reply else { return Err(another_kind()) };
                list.chunk = chunk;
                list.asked();
            }
        }
        Ok(Merged { lists })
    }

    /// The list of a key that is read from its beginning, if others have some of it and it was read before.
    fn begin(&self, key: Id) -> Result<Option<List>> {
        if !self.is_remote(None) {
            return Ok(None);
        }
        self.lists.begin(key, || {
            let (mut merged, mut list) = (self.merged(key, [Id::UNBOUND; 3], ENTRIES_MAX)?, Vec::new());
            while let Some(entry) = merged.next()? {
                if list.len() == ENTRIES_MAX {
                    return Ok(None);
                }
                list.push(entry);
            }
            Ok(Some(list))
        })
    }

    /// Expands some of the rows from that of `cursor` with one call to each part, as far as whole rows fit.
    /// `false`: not even that of `cursor`, or there is no other row.
    fn expand_whole_rows(
        &self,
        keys: &[Id],
        filter: EntryFilter,
        window: &mut Window,
        cursor: &mut Cursor,
        out: &mut Expansion,
    ) -> Result<bool> {
        let first = cursor.row;
        let rows = window.end(first, keys.len()) - first;
        let rows = self.lists.before_first(&keys[first..first + rows]);
        if rows < 2 || *cursor != Cursor::at(first) || out.end.is_some() {
            return Ok(false);
        }
        let keys = &keys[first..first + rows];
        let (want_edges, want_graphs) = (out.want_edges, out.want_graphs);
        // Each part has about its share of the entries that fit.
        let capacity = self.share_of(out.remaining_capacity().min(ROWS_MAX));
        let shape = Shape { want_edges, want_graphs, capacity, end: None };
        let call = || Call::Expand { keys: Cow::Borrowed(keys), filter, cursor: Cursor::default(), shape };
        let calls: Vec<_> = self.parts().map(|part| (part, call())).collect();
        let (mut end, mut found) = (rows, Vec::new());
        for reply in gather(&calls)? {
            let Reply::Expansion(reached, of_part) = reply else { return Err(another_kind()) };
            end = end.min(reached.row);
            found.push((of_part, 0));
        }
        // The entries of a row: neighbour, part, and position there. Each neighbour is at one part.
        let mut of_row: Vec<(Id, usize, usize)> = Vec::new();
        for row in 0..end {
            of_row.clear();
            for (part, (of_part, at)) in found.iter_mut().enumerate() {
                while of_part.rows.get(*at).is_some_and(|of| *of as usize == row) {
                    of_row.push((of_part.neighbours[*at], part, *at));
                    *at += 1;
                }
            }
            if of_row.len() > out.remaining_capacity() {
                return Ok(row > 0);
            }
            of_row.sort_unstable();
            for (neighbour, part, at) in &of_row {
                let (of_part, _) = &found[*part];
                out.rows.push(u32::try_from(first + row).unwrap_or(u32::MAX));
                out.neighbours.push(*neighbour);
                if want_edges {
                    out.edges.push(of_part.edges[*at]);
                }
                if want_graphs {
                    out.graphs.push(of_part.graphs[*at]);
                }
            }
            *cursor = Cursor::at(first + row + 1);
        }
        if end == rows {
            window.grow();
        }
        Ok(end > 0)
    }

    /// Makes a call with the rows of the part that has their neighbours, whose answers are positions of these
    /// rows, and appends the rows to `out`, ascending. `part_of`: the part of a row.
    fn rows_of_parts<'c>(
        &self,
        rows: usize,
        part_of: impl Fn(usize) -> Result<usize>,
        call: impl Fn(&[usize]) -> Call<'c>,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        for first in (0..rows).step_by(ROWS_MAX) {
            let start = out.len();
            let mut shares: Vec<Vec<usize>> = vec![Vec::new(); self.parts.len()];
            for row in first..rows.min(first + ROWS_MAX) {
                if let Some(share) = shares.get_mut(part_of(row)?) {
                    share.push(row);
                }
            }
            let mut calls = Vec::new();
            let mut asked = Vec::new();
            for (part, share) in self.parts.iter().zip(shares) {
                if let Some(part) = part.as_ref().filter(|_| !share.is_empty()) {
                    calls.push((part, call(&share)));
                    asked.push(share);
                }
            }
            for (share, reply) in asked.iter().zip(gather(&calls)?) {
                let Reply::Rows(positions) = reply else { return Err(another_kind()) };
                let rows = positions.iter().filter_map(|position| share.get(*position as usize));
                out.extend(rows.filter_map(|row| u32::try_from(*row).ok()));
            }
            out[start..].sort_unstable();
        }
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
        let mut window = Window::new(&self.statistics, out.remaining_capacity());
        while let Some(key) = keys.get(cursor.row).filter(|_| out.remaining_capacity() > 0) {
            if self.is_remote(None) && self.expand_whole_rows(keys, filter, &mut window, cursor, out)? {
                continue;
            }
            let list = match *cursor == Cursor::at(cursor.row) {
                true => self.begin(*key)?,
                false => self.lists.get(*key),
            };
            if let Some(list) = list {
                long_lists::expand(&list, filter, cursor, out)?;
                continue;
            }
            let mut merged = self.merged(*key, cursor.resume, out.remaining_capacity())?;
            append_entries(&mut || merged.next(), filter, cursor, out)?;
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
        if count <= LISTED_PER_PARTITION * self.routes.partitioning().count() {
            // Partitions with a few entries each would name no points.
            self.neighbours(key, EntryFilter::ALL, &mut points)?;
            points.drain(..points.len().min(1));
        } else {
            let least = entries_min.div_ceil(self.routes.partitioning().count());
            let call = || Call::Split { key, parts: ranges.min(ROWS_MAX), entries_min: least };
            let calls: Vec<_> = self.parts().map(|part| (part, call())).collect();
            for reply in gather(&calls)? {
                let Reply::Ids(of_part) = reply else { return Err(another_kind()) };
                points.extend(of_part);
            }
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
        for first in (0..keys.len()).step_by(ROWS_MAX) {
            let end = keys.len().min(first + ROWS_MAX);
            let call = || Call::Degrees { keys: Cow::Borrowed(&keys[first..end]), filter };
            let calls: Vec<_> = self.parts().map(|part| (part, call())).collect();
            for reply in gather(&calls)? {
                let Reply::Numbers(degrees) = reply else { return Err(another_kind()) };
                out[first..end].iter_mut().zip(&degrees).for_each(|(sum, degree)| *sum += degree);
            }
        }
        Ok(())
    }

    fn check(&self, keys: &[Id], neighbours: &[Id], filter: EntryFilter, out: &mut Vec<u32>) -> Result<()> {
        let call = |rows: &[usize]| Call::Check {
            keys: rows.iter().filter_map(|row| keys.get(*row)).copied().collect(),
            neighbours: rows.iter().filter_map(|row| neighbours.get(*row)).copied().collect(),
            filter,
        };
        let part_of = |row: usize| self.routes.part(neighbours.get(row).copied().unwrap_or_default());
        self.rows_of_parts(keys.len(), part_of, call, out)
    }

    fn check_constant(
        &self,
        keys: &[Id],
        neighbour: Id,
        filter: EntryFilter,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let call = |rows: &[usize]| Call::CheckConstant {
            keys: rows.iter().filter_map(|row| keys.get(*row)).copied().collect(),
            neighbour,
            filter,
        };
        self.rows_of_parts(keys.len(), |_| self.routes.part(neighbour), call, out)
    }

    fn neighbours(&self, key: Id, filter: EntryFilter, out: &mut Vec<Id>) -> Result<()> {
        if let Some(list) = self.begin(key)? {
            long_lists::neighbours(&list, filter, out);
            return Ok(());
        }
        let first = out.len();
        for part in self.parts() {
            match part {
                PartSegment::Local(segment) => segment.neighbours(key, filter, out)?,
                PartSegment::Remote(..) => part_neighbours(part, key, filter, out)?,
            }
        }
        out[first..].sort_unstable();
        Ok(())
    }

    fn content_id(&self) -> Option<ContentId> {
        (!self.is_remote(None)).then_some(self.content)
    }

    fn is_remote(&self, _: Option<&[Id]>) -> bool {
        self.parts().any(|part| matches!(part, PartSegment::Remote(..)))
    }

    fn keys(&self, from: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
        merged_keys(self.parts(), from, limit, out)
    }

    fn keys_up_to(&self, from: Id, last: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
        keys_up_to(self, from, last, limit, out)
    }

    fn entries(&self, key: Id, from: [Id; 3], limit: usize, out: &mut Vec<[Id; 3]>) -> Result<()> {
        let end = out.len().saturating_add(limit);
        if limit == 0 {
            return Ok(());
        }
        let mut merged = self.merged(key, from, limit)?;
        while let Some(entry) = merged.next()? {
            out.push(entry);
            if out.len() == end {
                break;
            }
        }
        Ok(())
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
        self.parts().try_for_each(|part| part_ordered(part, key, range, graph, &mut all))?;
        all.sort_unstable_by_key(|entry| (entry.order_key, entry.neighbour, entry.graph, entry.edge));
        if range.descending {
            all.reverse();
        }
        all.truncate(range.limit);
        out.append(&mut all);
        Ok(())
    }
}
