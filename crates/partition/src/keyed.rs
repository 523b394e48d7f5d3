//! A segment over partitions in which each key is at its owner.
//!
//! # Shape
//! A call with several keys becomes one call for each part (a partition of this process, or another server
//! with several) that owns some of them, with those keys in the order of their rows; the answers are laid
//! back in that order. A call for one key goes to its owner. Calls to other servers are under way together.
//! # Cost
//! Beyond the calls of the parts: two passes over the keys, and a copy of each entry. Entries of rows that no
//! longer fit into the output are read again by the next call, so an expansion asks for no more rows than are
//! likely to fit.

use crate::call::{Call, PartSegment, ROWS_MAX, Reply, Shape, another_kind};
use crate::gather::{ask, gather};
use crate::long_lists::{self, ENTRIES_MAX, List, OfSegment};
use crate::routes::Routes;
use crate::window::Window;
use std::borrow::Cow;
use std::sync::Arc;
use vervet_model::{Id, Result};
use vervet_snapshot::{
    ContentId, Cursor, EntryFilter, Expansion, GraphFilter, OrderRange, OrderedEntry, Segment,
    SegmentStatistics, keys_up_to, successor,
};

/// Entries of a key that are read at a time from another server.
const ENTRIES_AT_ONCE: usize = 1 << 14;

/// Entries in their order that are read at a time from another server, which finds those before again.
const ORDERED_AT_ONCE: usize = 1 << 12;

/// Consecutive keys of one partition of this process from which on they are expanded without copies.
const LOCAL_RUN_MIN: usize = 16;

/// Keys that a part of this process lists at first.
const KEYS_MIN: usize = 64;

/// See the header of this file.
pub(crate) struct KeyedSegment {
    pub(crate) routes: Arc<Routes>,
    /// The parts, each if it has entries.
    pub(crate) parts: Vec<Option<PartSegment>>,
    pub(crate) statistics: SegmentStatistics,
    pub(crate) order: Option<Id>,
    pub(crate) lists: OfSegment,
    pub(crate) content: ContentId,
}

/// The keys of one part among those of a call.
struct Share<'s> {
    part: &'s PartSegment,
    /// Their rows, ascending.
    rows: Vec<usize>,
    keys: Vec<Id>,
}

impl KeyedSegment {
    fn owner(&self, key: Id) -> Result<Option<&PartSegment>> {
        let part = self.routes.part(key)?;
        Ok(self.parts.get(part).and_then(Option::as_ref))
    }

    /// The keys of each part at the rows of `rows`, for those that have entries.
    fn shares(&self, keys: &[Id], rows: std::ops::Range<usize>) -> Result<Vec<Share<'_>>> {
        let share = |part| Share { part, rows: Vec::new(), keys: Vec::new() };
        let mut shares: Vec<Option<Share<'_>>> =
            self.parts.iter().map(|part| part.as_ref().map(share)).collect();
        for (row, key) in keys.iter().enumerate().take(rows.end).skip(rows.start) {
            if let Some(Some(share)) = shares.get_mut(self.routes.part(*key)?) {
                share.rows.push(row);
                share.keys.push(*key);
            }
        }
        Ok(shares.into_iter().flatten().filter(|share| !share.rows.is_empty()).collect())
    }

    /// Makes a call of each share of `keys`, whose answers are positions of keys that pass, and appends their
    /// rows to `out`, ascending.
    fn rows_that_pass<'c>(
        &self,
        keys: &[Id],
        call: impl Fn(&Share<'_>) -> Call<'c>,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        for first in (0..keys.len()).step_by(ROWS_MAX) {
            let start = out.len();
            let shares = self.shares(keys, first..keys.len().min(first + ROWS_MAX))?;
            let calls: Vec<_> = shares.iter().map(|share| (share.part, call(share))).collect();
            for (share, reply) in shares.iter().zip(gather(&calls)?) {
                let Reply::Rows(positions) = reply else { return Err(another_kind()) };
                let rows = positions.iter().filter_map(|position| share.rows.get(*position as usize));
                out.extend(rows.filter_map(|row| u32::try_from(*row).ok()));
            }
            out[start..].sort_unstable();
        }
        Ok(())
    }

    /// The partition of this process that owns the keys from a row on, and the row where others follow.
    /// `None`: these are too few to be expanded alone.
    fn local_run(&self, keys: &[Id], row: usize) -> Result<(Option<&dyn Segment>, usize)> {
        let Some(first) = keys.get(row) else { return Ok((None, row)) };
        let part = self.routes.part(*first)?;
        let Some(Some(PartSegment::Local(local))) = self.parts.get(part) else { return Ok((None, row)) };
        let mut end = row + 1;
        while end < keys.len() && self.routes.part(keys[end])? == part {
            end += 1;
        }
        let is_long = end - row >= LOCAL_RUN_MIN;
        Ok((is_long.then_some(&**local), end))
    }

    /// Expands some of the rows from that of `cursor`, which begins a row, as far as whole rows fit. `true`:
    /// the row of `cursor` does not fit.
    fn expand_whole_rows(
        &self,
        keys: &[Id],
        filter: EntryFilter,
        window: &mut Window,
        cursor: &mut Cursor,
        out: &mut Expansion,
    ) -> Result<bool> {
        let capacity = out.remaining_capacity().min(ROWS_MAX);
        // The first row that some part did not finish.
        let end = window.end(cursor.row, keys.len());
        let mut end = cursor.row + self.lists.before_first(&keys[cursor.row..end]);
        if end == cursor.row {
            return Ok(true);
        }
        let window_end = end;
        let shares = self.shares(keys, cursor.row..end)?;
        let call = |share: &Share<'_>| {
            let limit = out.end.and_then(|(row, below)| Some((share.rows.binary_search(&row).ok()?, below)));
            let (want_edges, want_graphs) = (out.want_edges, out.want_graphs);
            let shape = Shape { want_edges, want_graphs, capacity, end: limit };
            Call::Expand { keys: Cow::Owned(share.keys.clone()), filter, cursor: Cursor::default(), shape }
        };
        let calls: Vec<_> = shares.iter().map(|share| (share.part, call(share))).collect();
        let replies = gather(&calls)?;
        drop(calls);
        let mut answers = Vec::with_capacity(replies.len());
        for (share, reply) in shares.into_iter().zip(replies) {
            let Reply::Expansion(reached, found) = reply else { return Err(another_kind()) };
            end = end.min(share.rows.get(reached.row).copied().unwrap_or(end));
            answers.push((share, found, 0));
        }
        // Each row is in one answer; rows without an answer have no entries.
        let mut of_row: Vec<Option<usize>> = vec![None; end - cursor.row];
        for (answer, (share, ..)) in answers.iter().enumerate() {
            for row in share.rows.iter().take_while(|row| **row < end) {
                of_row[row - cursor.row] = Some(answer);
            }
        }
        for answer in of_row {
            if let Some((share, found, at)) = answer.and_then(|answer| answers.get_mut(answer)) {
                let is_of_row = |position: &u32| share.rows.get(*position as usize) == Some(&cursor.row);
                let count = found.rows[*at..].iter().take_while(|position| is_of_row(position)).count();
                if count > out.remaining_capacity() {
                    return Ok(true);
                }
                let taken = *at..*at + count;
                *at += count;
                out.rows.extend(std::iter::repeat_n(u32::try_from(cursor.row).unwrap_or(u32::MAX), count));
                out.neighbours.extend_from_slice(&found.neighbours[taken.clone()]);
                if out.want_edges {
                    out.edges.extend_from_slice(&found.edges[taken.clone()]);
                }
                if out.want_graphs {
                    out.graphs.extend_from_slice(&found.graphs[taken]);
                }
            }
            *cursor = Cursor::at(cursor.row + 1);
        }
        if end == window_end {
            window.grow();
        }
        Ok(end < window_end)
    }
}

impl KeyedSegment {
    /// Expands one row of another server from `cursor` on.
    fn expand_remote(
        &self,
        part: &PartSegment,
        key: Id,
        filter: EntryFilter,
        cursor: &mut Cursor,
        out: &mut Expansion,
    ) -> Result<()> {
        let list = match *cursor == Cursor::at(cursor.row) {
            true => self.begin(part, key)?,
            false => self.lists.get(key).filter(|_| cursor.offset == 0),
        };
        match list {
            Some(list) => long_lists::expand(&list, filter, cursor, out),
            None => expand_row(part, key, filter, cursor, out),
        }
    }

    /// The list of a key at another server that is read from its beginning, if it was read before.
    fn begin(&self, part: &PartSegment, key: Id) -> Result<Option<List>> {
        self.lists.begin(key, || {
            let mut list = Vec::new();
            part_entries(part, key, [Id::UNBOUND; 3], ENTRIES_MAX + 1, &mut list)?;
            Ok((list.len() <= ENTRIES_MAX).then_some(list))
        })
    }
}

impl Segment for KeyedSegment {
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
        while cursor.row < keys.len() && out.remaining_capacity() > 0 {
            let (local, end) = self.local_run(keys, cursor.row)?;
            if let Some(local) = local {
                local.expand(&keys[..end], filter, cursor, out)?;
                continue;
            }
            if *cursor == Cursor::at(cursor.row)
                && !self.expand_whole_rows(keys, filter, &mut window, cursor, out)?
            {
                continue;
            }
            // A row that does not fit whole, or that the caller has begun.
            let capacity = out.remaining_capacity();
            if let Some(key) = keys.get(cursor.row).filter(|_| capacity > 0) {
                let row = cursor.row;
                match self.owner(*key)? {
                    Some(PartSegment::Local(part)) => part.expand(&keys[..=row], filter, cursor, out)?,
                    Some(part) => self.expand_remote(part, *key, filter, cursor, out)?,
                    None => *cursor = Cursor::at(row + 1),
                }
            }
        }
        Ok(())
    }

    fn split(&self, key: Id, parts: usize, entries_min: usize, out: &mut Vec<Id>) -> Result<()> {
        let Some(part) = self.owner(key)? else { return Ok(()) };
        let Reply::Ids(points) = ask(part, Call::Split { key, parts: parts.min(ROWS_MAX), entries_min })?
        else {
            return Err(another_kind());
        };
        out.extend(points);
        Ok(())
    }

    fn degrees(&self, keys: &[Id], filter: EntryFilter, out: &mut Vec<u64>) -> Result<()> {
        out.clear();
        out.resize(keys.len(), 0);
        for first in (0..keys.len()).step_by(ROWS_MAX) {
            let shares = self.shares(keys, first..keys.len().min(first + ROWS_MAX))?;
            let call = |share: &Share<'_>| Call::Degrees { keys: Cow::Owned(share.keys.clone()), filter };
            let calls: Vec<_> = shares.iter().map(|share| (share.part, call(share))).collect();
            for (share, reply) in shares.iter().zip(gather(&calls)?) {
                let Reply::Numbers(degrees) = reply else { return Err(another_kind()) };
                for (row, degree) in share.rows.iter().zip(&degrees) {
                    out[*row] = *degree;
                }
            }
        }
        Ok(())
    }

    fn check(&self, keys: &[Id], neighbours: &[Id], filter: EntryFilter, out: &mut Vec<u32>) -> Result<()> {
        let call = |share: &Share<'_>| Call::Check {
            keys: Cow::Owned(share.keys.clone()),
            neighbours: share.rows.iter().filter_map(|row| neighbours.get(*row)).copied().collect(),
            filter,
        };
        self.rows_that_pass(keys, call, out)
    }

    fn check_constant(
        &self,
        keys: &[Id],
        neighbour: Id,
        filter: EntryFilter,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let call = |share: &Share<'_>| Call::CheckConstant {
            keys: Cow::Owned(share.keys.clone()),
            neighbour,
            filter,
        };
        self.rows_that_pass(keys, call, out)
    }

    fn neighbours(&self, key: Id, filter: EntryFilter, out: &mut Vec<Id>) -> Result<()> {
        match self.owner(key)? {
            Some(PartSegment::Local(part)) => part.neighbours(key, filter, out),
            Some(part) => part_neighbours(part, key, filter, out),
            None => Ok(()),
        }
    }

    fn content_id(&self) -> Option<ContentId> {
        (!self.is_remote(None)).then_some(self.content)
    }

    fn is_remote(&self, keys: Option<&[Id]>) -> bool {
        let is_at = |key: &Id| matches!(self.owner(*key), Ok(Some(PartSegment::Remote(..))));
        self.parts.iter().any(|part| matches!(part, Some(PartSegment::Remote(..))))
            && keys.is_none_or(|keys| keys.iter().any(is_at))
    }

    fn keys(&self, from: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
        merged_keys(self.parts.iter().flatten(), from, limit, out)
    }

    fn keys_up_to(&self, from: Id, last: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
        keys_up_to(self, from, last, limit, out)
    }

    fn entries(&self, key: Id, from: [Id; 3], limit: usize, out: &mut Vec<[Id; 3]>) -> Result<()> {
        match self.owner(key)? {
            Some(PartSegment::Local(part)) => part.entries(key, from, limit, out),
            Some(part) => part_entries(part, key, from, limit, out),
            None => Ok(()),
        }
    }

    fn keys_below(&self, key: Id) -> Result<u64> {
        let calls: Vec<_> = self.parts.iter().flatten().map(|part| (part, Call::KeysBelow { key })).collect();
        gather(&calls)?.into_iter().try_fold(0, |sum, reply| match reply {
            Reply::Numbers(numbers) => Ok(sum + numbers.iter().sum::<u64>()),
            _ => Err(another_kind()),
        })
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
        match self.owner(key)? {
            Some(part) => part_ordered(part, key, range, graph, out),
            None => Ok(()),
        }
    }
}

/// Expands one row of another server from `cursor` on.
fn expand_row(
    part: &PartSegment,
    key: Id,
    filter: EntryFilter,
    cursor: &mut Cursor,
    out: &mut Expansion,
) -> Result<()> {
    let row = cursor.row;
    let shape = Shape {
        want_edges: out.want_edges,
        want_graphs: out.want_graphs,
        capacity: out.remaining_capacity().min(ROWS_MAX),
        end: out.end.filter(|(of, _)| *of == row).map(|(_, below)| (0, below)),
    };
    let from = Cursor { row: 0, ..*cursor };
    let call = Call::Expand { keys: Cow::Owned(vec![key]), filter, cursor: from, shape };
    let Reply::Expansion(reached, found) = ask(part, call)? else { return Err(another_kind()) };
    out.rows.extend(std::iter::repeat_n(u32::try_from(row).unwrap_or(u32::MAX), found.len()));
    out.neighbours.extend_from_slice(&found.neighbours);
    out.edges.extend_from_slice(&found.edges);
    out.graphs.extend_from_slice(&found.graphs);
    *cursor = if reached.row == 0 { Cursor { row, ..reached } } else { Cursor::at(row + 1) };
    Ok(())
}

/// [`Segment::entries`] of a part.
pub(crate) fn part_entries(
    part: &PartSegment,
    key: Id,
    mut from: [Id; 3],
    limit: usize,
    out: &mut Vec<[Id; 3]>,
) -> Result<()> {
    let mut left = limit;
    while left > 0 {
        let limit = left.min(ENTRIES_AT_ONCE);
        let Reply::Entries(entries) = ask(part, Call::Entries { key, from, limit })? else {
            return Err(another_kind());
        };
        out.extend_from_slice(&entries);
        left -= entries.len().min(left);
        match entries.last().filter(|_| entries.len() == limit) {
            Some(last) => from = successor(*last),
            None => break,
        }
    }
    Ok(())
}

/// [`Segment::neighbours`] of a part at another server.
pub(crate) fn part_neighbours(
    part: &PartSegment,
    key: Id,
    filter: EntryFilter,
    out: &mut Vec<Id>,
) -> Result<()> {
    let (mut from, mut entries, mut last) = ([Id::UNBOUND; 3], Vec::new(), None);
    loop {
        entries.clear();
        part_entries(part, key, from, ENTRIES_AT_ONCE, &mut entries)?;
        for [neighbour, graph, _] in &entries {
            if filter.graph.matches(*graph) && last.replace(*neighbour) != Some(*neighbour) {
                out.push(*neighbour);
            }
        }
        match entries.last().filter(|_| entries.len() == ENTRIES_AT_ONCE) {
            Some(entry) => from = successor(*entry),
            None => return Ok(()),
        }
    }
}

/// [`Segment::ordered`] of a part.
pub(crate) fn part_ordered(
    part: &PartSegment,
    key: Id,
    range: &OrderRange,
    graph: GraphFilter,
    out: &mut Vec<OrderedEntry>,
) -> Result<()> {
    if let PartSegment::Local(segment) = part {
        return segment.ordered(key, range, graph, out);
    }
    let (mut left, mut skip) = (range.limit, 0);
    while left > 0 {
        let range = OrderRange { limit: left.min(ORDERED_AT_ONCE), ..*range };
        let Reply::Ordered(entries) = ask(part, Call::Ordered { key, range, graph, skip })? else {
            return Err(another_kind());
        };
        let count = entries.len();
        out.extend(entries);
        if count < range.limit {
            break;
        }
        (left, skip) = (left - count, skip + count);
    }
    Ok(())
}

/// [`Segment::keys`] over parts that may have equal keys. Other servers list `limit` keys, with one request
/// each. Parts of this process list [`KEYS_MIN`] at first, and more only where the result needs them.
pub(crate) fn merged_keys<'a>(
    parts: impl Iterator<Item = &'a PartSegment>,
    from: Id,
    limit: usize,
    out: &mut Vec<Id>,
) -> Result<Option<Id>> {
    let limit_of_part = limit.clamp(1, ROWS_MAX);
    let (mut calls, mut local) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            PartSegment::Local(segment) => local.push((from, limit_of_part.min(KEYS_MIN), segment)),
            PartSegment::Remote(..) => calls.push((part, Call::Keys { from, limit: limit_of_part })),
        }
    }
    // A part has listed all its keys below where it continues.
    let (mut all, mut elsewhere) = (Vec::new(), None);
    for reply in gather(&calls)? {
        let Reply::Keys(keys, continues) = reply else { return Err(another_kind()) };
        all.extend(keys);
        elsewhere = [elsewhere, continues].into_iter().flatten().min();
    }
    let mut next = loop {
        let Some(least) = (0..local.len()).min_by_key(|part| local[*part].0) else { break elsewhere };
        let (at, count, segment) = &mut local[least];
        if elsewhere.is_some_and(|elsewhere| elsewhere <= *at) {
            break elsewhere;
        }
        if all.len() >= limit && *at > from {
            all.sort();
            all.dedup();
            if all.partition_point(|key| key < at) >= limit {
                break Some(*at);
            }
        }
        match segment.keys(*at, *count, &mut all)? {
            Some(continues) => (*at, *count) = (continues, limit_of_part.min(2 * *count)),
            None => _ = local.swap_remove(least),
        }
    };
    all.retain(|key| next.is_none_or(|next| *key < next));
    all.sort();
    all.dedup();
    if let Some(beyond) = all.get(limit) {
        next = Some(*beyond);
        all.truncate(limit);
    }
    out.append(&mut all);
    Ok(next)
}
