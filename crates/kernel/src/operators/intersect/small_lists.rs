//! The *short lists* method of an intersection: two legs with short adjacencies, expanded completely.
//!
//! # Shape
//! Both legs are expanded in one call each: the prefix once for each of its runs, the last leg for each row.
//! The vertices of a prefix fill a fixed number of *lanes*, and a branch-free loop compares each entry of the
//! last leg with the lanes of its row. The method makes no call for a single key and reads no degrees.
//! # Invariants
//! Statistics are only a hint: if the lists of a batch are longer, the other methods process that batch and
//! the next [`PAUSE_BATCHES`].
//! # Cost
//! LUBM-40 Q7 (2026-11-21; 21,000 rows with 3 and 3 neighbours, three rows to a run): 76 ns a row by the
//! *list* method, which locates every key twice and every prefix separately; 41 by this one, both on a loaded
//! machine.

use crate::operators::intersect::cost::reverse_run_ns;
use crate::operators::intersect::leg::IntersectLeg;
use crate::operators::intersect::output::IntersectOutput;
use crate::operators::sorted_ids::is_among;
use crate::pipeline::batch::{BATCH_ROWS, Batch};
use crate::pipeline::chain::{Chain, Flow};
use vervet_model::{Id, Result};
use vervet_snapshot::{Cursor, Expansion, Segment};

/// Maximum average number of vertices for a key of the prefix for which this method is tried.
pub const SMALL_LIST_PREFIX_MEAN: f64 = 4.0;
/// Maximum average number of entries for a key of the last leg; see [`SMALL_LIST_PREFIX_MEAN`].
pub const SMALL_LIST_LAST_MEAN: f64 = 8.0;
/// Maximum entries of either leg for [`BATCH_ROWS`] rows: 192 KiB.
const ENTRIES_MAX: usize = 1 << 14;
/// Maximum vertices of a prefix.
const LANES_MAX: usize = 8;
/// Number of batches without this method after one with longer lists.
const PAUSE_BATCHES: usize = 16;

/// Cost in ns: of a row, of each entry of its last leg, and of each run.
const ROW_NS: f64 = 8.0;
const ENTRY_NS: f64 = 2.5;
const RUN_NS: f64 = 12.0;

/// Buffers of the method.
#[derive(Default)]
pub(crate) struct SmallListBuffers {
    /// Remaining batches for other methods.
    pause: usize,
    /// The key of each run of the prefix.
    keys: Vec<Id>,
    /// The run of each row.
    runs: Vec<u32>,
    prefixes: Expansion,
    entries: Expansion,
    few: Vec<[Id; LANES_MAX / 2]>,
    many: Vec<[Id; LANES_MAX]>,
    /// Positions of entries that are in the prefix of their row.
    hits: Vec<u32>,
    counted_bytes: u64,
}

impl SmallListBuffers {
    /// Expands both legs; `false` if lists are too long.
    fn list(&mut self, prefix: &IntersectLeg<'_>, last: &IntersectLeg<'_>) -> Result<bool> {
        number_runs(&prefix.keys, &mut self.runs, &mut self.keys);
        let capacity = ENTRIES_MAX * last.keys.len().div_ceil(BATCH_ROWS).max(1);
        Ok(list(prefix, &self.keys, capacity, &mut self.prefixes)?
            && list(last, &last.keys, capacity, &mut self.entries)?)
    }

    /// Finds the entries contained in the prefix of their row; `false` if a prefix is too long.
    fn find(&mut self) -> bool {
        let Self { keys, runs, prefixes, entries, few, many, hits, .. } = self;
        if fill(prefixes, keys.len(), few) {
            find(entries, runs, few, hits);
            return true;
        }
        let fits = fill(prefixes, keys.len(), many);
        if fits {
            find(entries, runs, many, hits);
        }
        fits
    }

    /// Processes a batch by this method if its lists are short; otherwise returns `None` without side effects
    /// on the output.
    pub(crate) fn run(
        &mut self,
        legs: &[IntersectLeg<'_>],
        batch: &Batch,
        output: &mut IntersectOutput,
        next: &mut Chain<'_, '_>,
    ) -> Result<Option<Flow>> {
        if self.pause > 0 {
            self.pause -= 1;
            return Ok(None);
        }
        let Some((prefix, last)) = small_list_legs(legs, batch.rows) else { return Ok(None) };
        if !self.list(&legs[prefix], &legs[last])? || !self.find() {
            self.pause = PAUSE_BATCHES;
            return Ok(None);
        }
        let size_bytes = self.size_bytes();
        next.run().control.recount(&mut self.counted_bytes, size_bytes)?;
        for &hit in &self.hits {
            let entry = hit as usize;
            let (row, id) = (self.entries.rows[entry], self.entries.neighbours[entry]);
            if output.add(batch, row, id, next)? == Flow::Done {
                return Ok(Some(Flow::Done));
            }
        }
        Ok(Some(Flow::More))
    }

    fn size_bytes(&self) -> u64 {
        // 12 bytes: a row number and a neighbour.
        let listed = self.prefixes.neighbours.capacity() + self.entries.neighbours.capacity();
        let lanes = LANES_MAX / 2 * self.few.capacity() + LANES_MAX * self.many.capacity();
        let numbers = 8 * self.keys.capacity() + 4 * (self.runs.capacity() + self.hits.capacity());
        (12 * listed + 8 * lanes + numbers) as u64
    }
}

/// The run of each row, and the key of each run; branch-free.
fn number_runs(keys: &[Id], runs: &mut Vec<u32>, of_runs: &mut Vec<Id>) {
    runs.clear();
    of_runs.clear();
    let Some(&first) = keys.first() else { return };
    of_runs.resize(keys.len(), first);
    let (mut number, mut last, mut previous) = (0_u32, 0, first);
    runs.extend(keys.iter().map(|&key| {
        let is_new = key != previous;
        previous = key;
        number += u32::from(is_new);
        last += usize::from(is_new);
        if let Some(slot) = of_runs.get_mut(last) {
            *slot = key;
        }
        number
    }));
    of_runs.truncate(last + 1);
}

/// Lists the neighbours of all `keys`; `false` if there are too many.
fn list(leg: &IntersectLeg<'_>, keys: &[Id], capacity: usize, out: &mut Expansion) -> Result<bool> {
    out.clear();
    out.capacity = capacity;
    let mut cursor = Cursor::default();
    leg.expand(keys, &mut cursor, out)?;
    Ok(cursor.row >= keys.len())
}

/// Fills the lanes with the vertices of each of `runs` prefixes, padded with [`Id::UNBOUND`], which equals no
/// entry; `false` if a prefix has more vertices than lanes.
fn fill<const LANES: usize>(prefixes: &Expansion, runs: usize, lanes: &mut Vec<[Id; LANES]>) -> bool {
    lanes.clear();
    lanes.resize(runs, [Id::UNBOUND; LANES]);
    let slots = lanes.as_flattened_mut();
    let (mut of, mut lane, mut longest) = (u32::MAX, 0, 0);
    for (&run, &id) in prefixes.rows.iter().zip(&prefixes.neighbours) {
        lane = if run == of { lane + 1 } else { 0 };
        of = run;
        longest = longest.max(lane);
        // After an overlong prefix the lanes are invalid, so overwriting is harmless.
        if let Some(slot) = slots.get_mut(run as usize * LANES + lane) {
            *slot = id;
        }
    }
    longest < LANES
}

/// Finds the positions of the entries that are in the lanes of the run of their row.
fn find<const LANES: usize>(entries: &Expansion, runs: &[u32], lanes: &[[Id; LANES]], hits: &mut Vec<u32>) {
    hits.clear();
    hits.resize(entries.len(), 0);
    let hits_here = &mut hits[..];
    let mut count = 0;
    // Branch-free: every position is written, and the write index advances only on a hit.
    for ((position, &row), &id) in (0..).zip(&entries.rows).zip(&entries.neighbours) {
        let run = runs.get(row as usize).copied().unwrap_or_default();
        let Some(of_run) = lanes.get(run as usize) else { break };
        if let Some(hit) = hits_here.get_mut(count) {
            *hit = position;
        }
        count += usize::from(is_among(id, of_run));
    }
    hits.truncate(count);
}

fn mean(segment: &dyn Segment) -> f64 {
    let statistics = segment.statistics();
    statistics.entries as f64 / statistics.keys.max(1) as f64
}

/// Prefix and last leg, if there are two legs with short adjacencies by statistics.
fn small_list_legs(legs: &[IntersectLeg<'_>], rows: usize) -> Option<(usize, usize)> {
    let [first, second] = legs else { return None };
    let (prefix, last) = if first.runs <= second.runs { (0, 1) } else { (1, 0) };
    let runs = legs[prefix].runs as f64;
    let of_prefix = mean(legs[prefix].segment);
    let of_last = mean(legs[last].segment);
    if of_prefix > SMALL_LIST_PREFIX_MEAN || of_last > SMALL_LIST_LAST_MEAN {
        return None;
    }
    let here = rows as f64 * (ROW_NS + of_last * ENTRY_NS) + runs * RUN_NS;
    let reversed =
        legs[last].reverse_here().map_or(f64::INFINITY, |reverse| runs * reverse_run_ns(reverse, of_prefix));
    (here < reversed).then_some((prefix, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expansion(lists: &[&[u64]]) -> Expansion {
        let mut out = Expansion::new(100);
        for (row, list) in (0..).zip(lists) {
            out.rows.extend(list.iter().map(|_| row));
            out.neighbours.extend(list.iter().copied().map(Id::vertex));
        }
        out
    }

    #[test]
    fn runs_are_numbered() {
        let keys = [7, 7, 2, 2, 2, 7, 9].map(Id::vertex);
        let (mut runs, mut of_runs) = (vec![1], vec![Id::UNBOUND]);
        number_runs(&keys, &mut runs, &mut of_runs);
        assert_eq!((runs, of_runs), (vec![0, 0, 1, 1, 1, 2, 3], [7, 2, 7, 9].map(Id::vertex).to_vec()));
        let (mut runs, mut of_runs) = (vec![1], vec![Id::UNBOUND]);
        number_runs(&[], &mut runs, &mut of_runs);
        assert!(runs.is_empty() && of_runs.is_empty());
    }

    #[test]
    fn entries_match_the_lanes_of_their_row() {
        let entries = expansion(&[&[1, 3, 5], &[], &[3, 4], &[8]]);
        let runs = [0, 0, 1, 2];
        let prefixes: [&[u64]; 3] = [&[3, 5, 7, 9], &[1, 3], &[]];
        let (mut lanes, mut hits) = (Vec::new(), Vec::new());
        assert!(fill::<4>(&expansion(&prefixes), 3, &mut lanes));
        find(&entries, &runs, &lanes, &mut hits);
        assert_eq!(hits, [1, 2, 3]);
        assert!(!fill::<4>(&expansion(&[&[1, 2, 3, 4, 5]]), 1, &mut lanes), "more vertices than lanes");
        // Rows without a run, as from a damaged segment, match nothing.
        find::<4>(&entries, &[], &[], &mut hits);
        assert!(hits.is_empty());
    }
}
