//! A segment over partitions in which each key is at its owner.
//!
//! # Shape
//! A call with several keys becomes one call for each partition that owns some of them, with those keys in
//! the order of their rows; the answers are laid back in that order. A call for one key goes to its owner.
//! # Cost
//! Beyond the calls of the partitions: two passes over the keys, and a copy of each entry. Entries of rows
//! that no longer fit into the output are read again by the next call.

use std::sync::Arc;
use vervet_model::{Id, Partitioning, Result};
use vervet_snapshot::{
    Cursor, EntryFilter, Expansion, GraphFilter, OrderRange, OrderedEntry, Segment, SegmentStatistics,
    keys_up_to,
};

/// See the header of this file.
pub(crate) struct KeyedSegment {
    pub(crate) partitioning: Partitioning,
    /// For each partition its segment, if it has entries.
    pub(crate) parts: Vec<Option<Arc<dyn Segment>>>,
    pub(crate) statistics: SegmentStatistics,
    pub(crate) order: Option<Id>,
}

/// The keys of one partition among those of a call.
#[derive(Default)]
struct Share {
    /// Their rows, ascending.
    rows: Vec<usize>,
    keys: Vec<Id>,
}

impl KeyedSegment {
    fn owner(&self, key: Id) -> Option<&dyn Segment> {
        self.parts.get(self.partitioning.owner(key))?.as_deref()
    }

    /// The keys of each partition from `first` on, for those that have entries.
    fn shares(&self, keys: &[Id], first: usize) -> impl Iterator<Item = (&dyn Segment, Share)> {
        let mut shares: Vec<Share> = self.parts.iter().map(|_| Share::default()).collect();
        for (row, key) in keys.iter().enumerate().skip(first) {
            let share = &mut shares[self.partitioning.owner(*key)];
            share.rows.push(row);
            share.keys.push(*key);
        }
        let with_entries = self.parts.iter().zip(shares).filter(|(_, share)| !share.rows.is_empty());
        with_entries.filter_map(|(part, share)| Some((part.as_deref()?, share)))
    }

    /// Calls `ask` for each partition with its share of `keys`; `ask` appends the positions of the keys of
    /// that share that pass. Appends their rows to `out`, ascending.
    fn rows_that_pass(
        &self,
        keys: &[Id],
        mut ask: impl FnMut(&dyn Segment, &Share, &mut Vec<u32>) -> Result<()>,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let (start, mut positions) = (out.len(), Vec::new());
        for (part, share) in self.shares(keys, 0) {
            positions.clear();
            ask(part, &share, &mut positions)?;
            let rows = positions.iter().filter_map(|position| share.rows.get(*position as usize));
            out.extend(rows.filter_map(|row| u32::try_from(*row).ok()));
        }
        out[start..].sort_unstable();
        Ok(())
    }

    /// Expands the rows from that of `cursor`, which begins a row, as far as whole rows fit.
    fn expand_whole_rows(
        &self,
        keys: &[Id],
        filter: EntryFilter,
        cursor: &mut Cursor,
        out: &mut Expansion,
    ) -> Result<()> {
        let mut answers = Vec::new();
        // The first row that some partition did not finish.
        let mut end = keys.len();
        for (part, share) in self.shares(keys, cursor.row) {
            let mut found = Expansion::new(out.remaining_capacity());
            (found.want_edges, found.want_graphs) = (out.want_edges, out.want_graphs);
            let limit = out.end.and_then(|(row, below)| Some((share.rows.binary_search(&row).ok()?, below)));
            found.end = limit;
            let mut reached = Cursor::default();
            part.expand(&share.keys, filter, &mut reached, &mut found)?;
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
                    return Ok(());
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
        Ok(())
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
        while cursor.row < keys.len() && out.remaining_capacity() > 0 {
            if *cursor == Cursor::at(cursor.row) {
                self.expand_whole_rows(keys, filter, cursor, out)?;
            }
            // A row that does not fit whole, or that the caller has begun.
            if let Some(key) = keys.get(cursor.row).filter(|_| out.remaining_capacity() > 0) {
                let end = cursor.row + 1;
                match self.owner(*key) {
                    Some(part) => part.expand(&keys[..end], filter, cursor, out)?,
                    None => *cursor = Cursor::at(end),
                }
            }
        }
        Ok(())
    }

    fn split(&self, key: Id, parts: usize, entries_min: usize, out: &mut Vec<Id>) -> Result<()> {
        self.owner(key).map_or(Ok(()), |part| part.split(key, parts, entries_min, out))
    }

    fn degrees(&self, keys: &[Id], filter: EntryFilter, out: &mut Vec<u64>) -> Result<()> {
        out.clear();
        out.resize(keys.len(), 0);
        let mut degrees = Vec::new();
        for (part, share) in self.shares(keys, 0) {
            part.degrees(&share.keys, filter, &mut degrees)?;
            for (row, degree) in share.rows.iter().zip(&degrees) {
                out[*row] = *degree;
            }
        }
        Ok(())
    }

    fn check(&self, keys: &[Id], neighbours: &[Id], filter: EntryFilter, out: &mut Vec<u32>) -> Result<()> {
        let mut own = Vec::new();
        let ask = |part: &dyn Segment, share: &Share, positions: &mut Vec<u32>| {
            own.clear();
            own.extend(share.rows.iter().filter_map(|row| neighbours.get(*row)));
            part.check(&share.keys, &own, filter, positions)
        };
        self.rows_that_pass(keys, ask, out)
    }

    fn check_constant(
        &self,
        keys: &[Id],
        neighbour: Id,
        filter: EntryFilter,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let ask = |part: &dyn Segment, share: &Share, positions: &mut Vec<u32>| {
            part.check_constant(&share.keys, neighbour, filter, positions)
        };
        self.rows_that_pass(keys, ask, out)
    }

    fn neighbours(&self, key: Id, filter: EntryFilter, out: &mut Vec<Id>) -> Result<()> {
        self.owner(key).map_or(Ok(()), |part| part.neighbours(key, filter, out))
    }

    fn keys(&self, from: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
        merged_keys(self.parts.iter().flatten(), from, limit, out)
    }

    fn keys_up_to(&self, from: Id, last: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
        keys_up_to(self, from, last, limit, out)
    }

    fn entries(&self, key: Id, from: [Id; 3], limit: usize, out: &mut Vec<[Id; 3]>) -> Result<()> {
        self.owner(key).map_or(Ok(()), |part| part.entries(key, from, limit, out))
    }

    fn keys_below(&self, key: Id) -> Result<u64> {
        self.parts.iter().flatten().try_fold(0, |sum, part| Ok(sum + part.keys_below(key)?))
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
        self.owner(key).map_or(Ok(()), |part| part.ordered(key, range, graph, out))
    }
}

/// [`Segment::keys`] over segments that may have equal keys.
pub(crate) fn merged_keys<'a>(
    parts: impl Iterator<Item = &'a Arc<dyn Segment>>,
    from: Id,
    limit: usize,
    out: &mut Vec<Id>,
) -> Result<Option<Id>> {
    let mut all = Vec::new();
    let mut next: Option<Id> = None;
    for part in parts {
        if let Some(of_part) = part.keys(from, limit, &mut all)? {
            next = Some(next.map_or(of_part, |next| next.min(of_part)));
        }
    }
    // A partition has listed all its keys below where it continues.
    all.retain(|key| next.is_none_or(|next| *key < next));
    all.sort_unstable();
    all.dedup();
    if let Some(beyond) = all.get(limit) {
        next = Some(*beyond);
        all.truncate(limit);
    }
    out.append(&mut all);
    Ok(next)
}
