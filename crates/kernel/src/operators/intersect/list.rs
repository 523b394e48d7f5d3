//! The *list* method of an intersection: the last leg is expanded and compared with the prefix.

use crate::operators::intersect::leg::OrderedLegs;
use crate::operators::intersect::output::IntersectOutput;
use crate::operators::intersect::prefix::{LANES, Prefix};
use crate::operators::sorted_ids::{PIECE_ENTRIES, common, hits, is_among};
use crate::pipeline::chain::{Chain, Flow};
use std::ops::Range;
use vervet_model::Result;
use vervet_snapshot::{Cursor, Expansion};

/// Maximum number of leg entries in one expansion, unless a single row has more: 128 KiB.
pub(crate) const BLOCK_ENTRIES: u64 = 1 << 14;

/// Entries of the last leg for a block of rows.
#[derive(Default)]
pub(crate) struct ListedEntries {
    entries: Expansion,
    /// Number of entries whose memory has been counted.
    entries_counted: u64,
    /// Positions of entries that are in the prefix.
    hits: Vec<u32>,
}

/// Rows of equal prefix, and their range of the entries listed for the rows from `first` on.
struct PrefixRun {
    first: usize,
    rows: Range<usize>,
    entries: Range<usize>,
}

impl ListedEntries {
    /// Processes a batch. `bitset`: whether the prefix is stored as a bit set.
    pub(crate) fn run(
        &mut self,
        input: OrderedLegs<'_, '_>,
        bitset: bool,
        prefix: &mut Prefix,
        output: &mut IntersectOutput,
        next: &mut Chain<'_, '_>,
    ) -> Result<Flow> {
        let OrderedLegs { batch, legs, .. } = input;
        let degrees = &input.last().degrees;
        let mut first = 0;
        while first < batch.rows {
            next.run().control.check()?;
            let mut total = degrees[first];
            let mut end = first + 1;
            while end < batch.rows && total + degrees[end] <= BLOCK_ENTRIES {
                total += degrees[end];
                end += 1;
            }
            self.expand(input, first..end, total, next)?;
            let (mut at, mut row) = (0, first);
            while row < end {
                let run_end = input.run_end(row, end);
                let count: u64 = degrees[row..run_end].iter().sum();
                let start = at;
                at = (at + usize::try_from(count).unwrap_or(usize::MAX)).min(self.entries.len());
                let run = PrefixRun { first, rows: row..run_end, entries: start..at };
                if start < at
                    && !input.prefix.iter().any(|&leg| legs[leg].degrees[row] == 0)
                    && self.intersect(input, &run, bitset, prefix, output, next)? == Flow::Done
                {
                    return Ok(Flow::Done);
                }
                row = run_end;
            }
            first = end;
        }
        Ok(Flow::More)
    }

    /// Lists the `total` entries of the last leg for the rows in `rows`.
    fn expand(
        &mut self,
        input: OrderedLegs<'_, '_>,
        rows: Range<usize>,
        total: u64,
        next: &Chain<'_, '_>,
    ) -> Result<()> {
        let leg = input.last();
        self.entries.clear();
        // 16 bytes: a row number, a neighbour and the position of a hit.
        let grown = total.saturating_sub(self.entries_counted);
        next.run().control.grow(grown.saturating_mul(16))?;
        self.entries_counted += grown;
        let total = usize::try_from(total).unwrap_or(usize::MAX);
        let keys = &leg.keys[rows];
        let mut cursor = Cursor::default();
        while cursor.row < keys.len() && self.entries.len() < total {
            next.run().control.check()?;
            self.entries.capacity = total.min(self.entries.len() + PIECE_ENTRIES);
            leg.expand(keys, &mut cursor, &mut self.entries)?;
        }
        Ok(())
    }

    /// Intersects the prefix of a run of rows with the entries listed for them.
    fn intersect(
        &mut self,
        input: OrderedLegs<'_, '_>,
        run: &PrefixRun,
        bitset: bool,
        prefix: &mut Prefix,
        output: &mut IntersectOutput,
        next: &mut Chain<'_, '_>,
    ) -> Result<Flow> {
        prefix.load(input, run.rows.start, next.run().control)?;
        if prefix.list().is_empty() {
            return Ok(Flow::More);
        }
        let neighbours = &self.entries.neighbours[run.entries.clone()];
        self.hits.clear();
        if let Some(lanes) = prefix.lanes::<4>() {
            hits(neighbours, &mut self.hits, |id| is_among(id, lanes));
        } else if let Some(lanes) = prefix.lanes::<LANES>() {
            hits(neighbours, &mut self.hits, |id| is_among(id, lanes));
        } else if bitset {
            prefix.fill_bitset(next.run())?;
            hits(neighbours, &mut self.hits, |id| prefix.bitset_contains(id));
        } else {
            let mut start = 0_usize;
            for row in run.rows.clone() {
                let degree = usize::try_from(input.last().degrees[row]).unwrap_or(usize::MAX);
                let end = start.saturating_add(degree).min(neighbours.len());
                common(prefix.list(), &neighbours[start..end], start, &mut self.hits);
                start = end;
            }
        }
        for &hit in &self.hits {
            let entry = run.entries.start + hit as usize;
            let row = run.first + self.entries.rows[entry] as usize;
            let row = u32::try_from(row).unwrap_or(u32::MAX);
            if output.add(input.batch, row, self.entries.neighbours[entry], next)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    }
}
