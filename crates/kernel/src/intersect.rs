//! Intersect: the vertices that are neighbours in every leg, for each row.
//!
//! One variable at a time over sorted adjacencies makes cyclic patterns worst-case optimal: the work for a
//! row is bounded by its shortest adjacency, never by the product of two.
//! # Shape
//! Rows come grouped by the variables bound first, so the keys of a leg come in runs. The leg with the most
//! runs is the *last*; the intersection of the others, the *prefix*, is kept as long as their keys stay, also
//! across batches. For each batch the cheaper of two ways is taken:
//! * *probe*: each vertex of the prefix is checked in the last leg, in its cheaper direction, a thousand
//!   pairs in one call;
//! * *list*: the last leg is expanded, a block of rows in one call, and its entries are looked up in the prefix
//!   as a set of bits (where the prefix stays for some rows) or merged with it.
//! # Cost
//! For a row: the prefix times a check (10 to 35 ns), or the entries of the last leg times some 3 ns. Memory:
//! `vertices / 8` bytes, [`BLOCK_ENTRIES`] entries or the longest adjacency for each leg.
//! # Source
//! H. Ngo, E. Porat, C. Ré, A. Rudra, "Worst-case optimal join algorithms", JACM 2018; T. Veldhuizen,
//! "Leapfrog Triejoin", ICDT 2014. Different: candidates are intersected whole for each row, not leapt
//! over lazily, since rows come in batches and adjacencies are contiguous.

use crate::batch::{BATCH_ROWS, Batch, Keep};
use crate::chain::{Chain, Flow, Kernel, Run};
use crate::control::Control;
use crate::plan::Operand;
use vervet_algebra::Variable;
use vervet_model::{Id, Result};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, Segment};

/// Entries of a leg that are expanded at a time, unless one row has more: 128 KiB.
const BLOCK_ENTRIES: u64 = 1 << 14;

/// Rows for each run of the prefix from which on it is worth marking.
const MARK_ROWS_MIN: usize = 3;

/// What an entry costs that is listed, in ns; see the header.
const LIST_ENTRY_NS: f64 = 3.0;
/// What a check costs: so much, and so much more for each halving of its list.
const PROBE_NS: f64 = 8.0;
const PROBE_HALVING_NS: f64 = 3.0;

pub(crate) struct IntersectLeg<'a> {
    pub segment: &'a dyn Segment,
    /// The same entries by their other end.
    pub reverse: Option<&'a dyn Segment>,
    pub filter: EntryFilter,
    pub key: Operand,
    /// For each row its key.
    keys: Vec<Id>,
    /// How often the key changes.
    runs: usize,
    /// For each row its degree.
    degrees: Vec<u64>,
}

impl<'a> IntersectLeg<'a> {
    pub(crate) fn new(
        segment: &'a dyn Segment,
        reverse: Option<&'a dyn Segment>,
        filter: EntryFilter,
        key: Operand,
    ) -> Self {
        Self { segment, reverse, filter, key, keys: Vec::new(), runs: 0, degrees: Vec::new() }
    }

    fn start(&mut self, batch: &Batch) -> Result<()> {
        self.keys.clear();
        match self.key {
            Operand::Constant(id) => self.keys.resize(batch.rows, id),
            Operand::Variable(variable) => self.keys.extend_from_slice(&batch.columns[variable.index()]),
        }
        self.runs = self.keys.chunk_by(|a, b| a == b).count();
        self.segment.degrees(&self.keys, self.filter, &mut self.degrees)
    }

    /// Whether a check in the other direction is cheaper, and what a check costs in ns.
    fn probe(&self) -> (bool, f64) {
        let cost = |segment: &dyn Segment| {
            let statistics = segment.statistics();
            let degree = statistics.entries as f64 / statistics.keys.max(1) as f64;
            PROBE_NS + PROBE_HALVING_NS * degree.max(1.0).log2()
        };
        let forward = cost(self.segment);
        match self.reverse.map(cost) {
            Some(reverse) if reverse < forward => (true, reverse),
            _ => (false, forward),
        }
    }
}

/// The intersection of all legs but the last, for as long as their keys stay.
#[derive(Default)]
pub(crate) struct Prefix {
    /// Leg and key of each.
    of: Vec<(usize, Id)>,
    list: Vec<Id>,
    scratch: Vec<Id>,
    /// `list` as bits over vertex numbers, if marked.
    words: Vec<u64>,
    is_marked: bool,
    counted_bytes: u64,
}

impl Prefix {
    fn load(
        &mut self,
        legs: &[IntersectLeg<'_>],
        order: &[usize],
        row: usize,
        control: &Control<'_>,
    ) -> Result<()> {
        let same = self.of.len() == order.len()
            && order.iter().zip(&self.of).all(|(&leg, &of)| of == (leg, legs[leg].keys[row]));
        if same {
            return Ok(());
        }
        self.unmark();
        self.of.clear();
        self.list.clear();
        for (at, &leg) in order.iter().enumerate() {
            let leg_at_work = &legs[leg];
            let target = if at == 0 { &mut self.list } else { &mut self.scratch };
            target.clear();
            leg_at_work.segment.neighbours(leg_at_work.keys[row], leg_at_work.filter, target)?;
            control.work(target.len())?;
            if at > 0 {
                retain_common(&mut self.list, &self.scratch);
            }
        }
        let room = self.list.capacity() + self.scratch.capacity();
        control.recount(&mut self.counted_bytes, 8 * room as u64)?;
        self.of.extend(order.iter().map(|&leg| (leg, legs[leg].keys[row])));
        Ok(())
    }

    fn mark(&mut self, run: &Run<'_>) -> Result<()> {
        if self.is_marked {
            return Ok(());
        }
        if self.words.is_empty() {
            let words = run.snapshot.vertex_count().div_ceil(64);
            run.control.grow(8 * words)?;
            self.words.resize(usize::try_from(words).unwrap_or(0), 0);
        }
        for &id in &self.list {
            if let Some(word) = self.words.get_mut(word_of(id)) {
                *word |= 1 << (id.payload() % 64);
            }
        }
        self.is_marked = true;
        Ok(())
    }

    fn unmark(&mut self) {
        if self.is_marked {
            for &id in &self.list {
                if let Some(word) = self.words.get_mut(word_of(id)) {
                    *word = 0;
                }
            }
            self.is_marked = false;
        }
    }

    fn has_mark(&self, id: Id) -> bool {
        let word = self.words.get(word_of(id)).copied().unwrap_or(0);
        word >> (id.payload() % 64) & 1 == 1
    }
}

/// Of a vertex; only legs without other neighbours are marked.
fn word_of(vertex: Id) -> usize {
    usize::try_from(vertex.payload() / 64).unwrap_or(usize::MAX)
}

/// Pairs to be checked in the last leg.
#[derive(Default)]
pub(crate) struct Pairs {
    rows: Vec<u32>,
    candidates: Vec<Id>,
    keys: Vec<Id>,
    hits: Vec<u32>,
}

pub(crate) struct Intersect<'a> {
    pub target: Variable,
    pub legs: Vec<IntersectLeg<'a>>,
    pub count_only: bool,
    pub keep: Keep,
    pub prefix: Prefix,
    pub pairs: Pairs,
    pub entries: Expansion,
    /// The most entries that memory has been counted for.
    pub entries_counted: u64,
    pub rows: Vec<u32>,
    pub found: Vec<Id>,
    pub common: Vec<Id>,
    pub counts: Vec<u64>,
    pub selection: Vec<u32>,
    pub out: Batch,
}

impl<'a> Intersect<'a> {
    pub(crate) fn new(
        target: Variable,
        legs: Vec<IntersectLeg<'a>>,
        count_only: bool,
        keep: Keep,
        variables: usize,
    ) -> Self {
        Self {
            target,
            legs,
            count_only,
            keep,
            prefix: Prefix::default(),
            pairs: Pairs::default(),
            entries: Expansion::default(),
            entries_counted: 0,
            rows: Vec::new(),
            found: Vec::new(),
            common: Vec::new(),
            counts: Vec::new(),
            selection: Vec::new(),
            out: Batch::new(variables),
        }
    }

    fn flush(&mut self, batch: &Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        self.out.gather(batch, &self.rows, &self.keep);
        std::mem::swap(&mut self.out.columns[self.target.index()], &mut self.found);
        self.rows.clear();
        self.found.clear();
        next.push(&mut self.out)
    }

    /// Takes one row and vertex over into the rows found.
    fn add(&mut self, batch: &Batch, row: u32, id: Id, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        self.rows.push(row);
        self.found.push(id);
        if self.rows.len() == BATCH_ROWS { self.flush(batch, next) } else { Ok(Flow::More) }
    }

    /// Whether a row has an empty adjacency.
    fn is_barren(&self, row: usize) -> bool {
        self.legs.iter().any(|leg| leg.degrees[row] == 0)
    }

    fn by_probing(
        &mut self,
        batch: &Batch,
        order: &[usize],
        last: usize,
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        for row in 0..batch.rows {
            if self.is_barren(row) {
                continue;
            }
            self.prefix.load(&self.legs, order, row, next.run().control)?;
            let mut done = 0;
            while done < self.prefix.list.len() {
                let take = (BATCH_ROWS - self.pairs.rows.len()).min(self.prefix.list.len() - done);
                let number = u32::try_from(row).unwrap_or(u32::MAX);
                self.pairs.rows.resize(self.pairs.rows.len() + take, number);
                self.pairs.candidates.extend_from_slice(&self.prefix.list[done..done + take]);
                done += take;
                if self.pairs.rows.len() == BATCH_ROWS && self.probe(batch, last, next)? == Flow::Done {
                    return Ok(Flow::Done);
                }
            }
        }
        self.probe(batch, last, next)
    }

    /// Checks the pairs at hand in the last leg.
    fn probe(&mut self, batch: &Batch, last: usize, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        next.run().control.check()?;
        let leg = &self.legs[last];
        let pairs = &mut self.pairs;
        pairs.keys.clear();
        pairs.keys.extend(pairs.rows.iter().map(|&row| leg.keys[row as usize]));
        pairs.hits.clear();
        match leg.reverse {
            Some(reverse) if leg.probe().0 => {
                reverse.check(&pairs.candidates, &pairs.keys, leg.filter, &mut pairs.hits)?;
            }
            _ => leg.segment.check(&pairs.keys, &pairs.candidates, leg.filter, &mut pairs.hits)?,
        }
        for at in 0..self.pairs.hits.len() {
            let hit = self.pairs.hits[at] as usize;
            let (row, id) = (self.pairs.rows[hit], self.pairs.candidates[hit]);
            if self.count_only {
                self.counts[row as usize] += 1;
            } else if self.add(batch, row, id, next)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        self.pairs.rows.clear();
        self.pairs.candidates.clear();
        Ok(Flow::More)
    }

    fn by_listing(
        &mut self,
        batch: &Batch,
        order: &[usize],
        last: usize,
        marks: bool,
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        let mut first = 0;
        while first < batch.rows {
            next.run().control.check()?;
            let leg = &self.legs[last];
            let mut total = leg.degrees[first];
            let mut end = first + 1;
            while end < batch.rows && total + leg.degrees[end] <= BLOCK_ENTRIES {
                total += leg.degrees[end];
                end += 1;
            }
            self.entries.clear();
            self.entries.capacity = usize::try_from(total).unwrap_or(usize::MAX);
            // 12 bytes: a row number and a neighbour.
            let grown = total.saturating_sub(self.entries_counted);
            next.run().control.grow(12 * grown)?;
            self.entries_counted += grown;
            let mut cursor = Cursor::default();
            leg.segment.expand(&leg.keys[first..end], leg.filter, &mut cursor, &mut self.entries)?;
            let mut at = 0;
            for row in first..end {
                let start = at;
                let offset = u32::try_from(row - first).unwrap_or(u32::MAX);
                at += self.entries.rows[at..].partition_point(|&other| other == offset);
                if start < at
                    && !self.is_barren(row)
                    && self.list(batch, order, (row, start..at), marks, next)? == Flow::Done
                {
                    return Ok(Flow::Done);
                }
            }
            first = end;
        }
        Ok(Flow::More)
    }

    /// Intersects the prefix of a row with its listed entries.
    fn list(
        &mut self,
        batch: &Batch,
        order: &[usize],
        (row, entries): (usize, std::ops::Range<usize>),
        marks: bool,
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        self.prefix.load(&self.legs, order, row, next.run().control)?;
        let entries = &self.entries.neighbours[entries];
        if marks {
            self.prefix.mark(next.run())?;
            let prefix = &self.prefix;
            if self.count_only {
                self.counts[row] = entries.iter().map(|&id| u64::from(prefix.has_mark(id))).sum();
                return Ok(Flow::More);
            }
            self.common.clear();
            self.common.extend(entries.iter().copied().filter(|&id| prefix.has_mark(id)));
        } else {
            self.common.clone_from(&self.prefix.list);
            retain_common(&mut self.common, entries);
            if self.count_only {
                self.counts[row] = self.common.len() as u64;
                return Ok(Flow::More);
            }
        }
        let number = u32::try_from(row).unwrap_or(u32::MAX);
        for at in 0..self.common.len() {
            if self.add(batch, number, self.common[at], next)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    }
}

impl<'a> Kernel<'a> for Intersect<'a> {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        for leg in &mut self.legs {
            leg.start(batch)?;
        }
        self.rows.clear();
        self.found.clear();
        self.pairs.rows.clear();
        self.pairs.candidates.clear();
        self.counts.clear();
        self.counts.resize(batch.rows, 0);
        let mut order: Vec<usize> = (0..self.legs.len()).collect();
        order.sort_by_key(|&leg| self.legs[leg].runs);
        let Some(last) = order.pop() else { return Ok(Flow::More) };
        let prefix_runs: usize = order.iter().map(|&leg| self.legs[leg].runs).max().unwrap_or(1);
        let prefix_of = |row: usize| order.iter().map(|&leg| self.legs[leg].degrees[row]).min().unwrap_or(0);
        let probed: u64 = (0..batch.rows).map(prefix_of).sum();
        let listed: u64 = self.legs[last].degrees.iter().sum();
        let flow = if probed as f64 * self.legs[last].probe().1 < listed as f64 * LIST_ENTRY_NS {
            self.by_probing(batch, &order, last, next)?
        } else {
            let vertices = |leg: &usize| self.legs[*leg].segment.statistics().vertices_only;
            let marks =
                prefix_runs * MARK_ROWS_MIN <= batch.rows && order.iter().all(vertices) && vertices(&last);
            self.by_listing(batch, &order, last, marks, next)?
        };
        if flow == Flow::Done {
            return Ok(Flow::Done);
        }
        if self.count_only {
            batch.multiply(&self.counts, &mut self.selection, &self.keep);
            return next.push(batch);
        }
        self.flush(batch, next)
    }
}

/// Keeps in `common` what is also in `other`; both ascending without duplicates.
fn retain_common(common: &mut Vec<Id>, other: &[Id]) {
    // Galloping pays when one list is much longer; else a merge has better predicted branches.
    if other.len() / 16 > common.len() {
        let mut from = 0;
        common.retain(|&id| {
            from += gallop(&other[from..], id);
            other.get(from) == Some(&id)
        });
        return;
    }
    let (mut kept, mut i, mut j) = (0, 0, 0);
    while i < common.len() && j < other.len() {
        let (a, b) = (common[i], other[j]);
        common[kept] = a;
        kept += usize::from(a == b);
        i += usize::from(a <= b);
        j += usize::from(b <= a);
    }
    common.truncate(kept);
}

/// The position of the first element that is not below `id`.
fn gallop(sorted: &[Id], id: Id) -> usize {
    let mut step = 1;
    while step < sorted.len() && sorted[step] < id {
        step *= 2;
    }
    let start = step / 2;
    let end = (step + 1).min(sorted.len());
    start + sorted[start..end].partition_point(|&other| other < id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn galloping_and_merging_agree_with_sets() {
        let ids = |step: u64, count: u64| (0..count).map(|i| Id::vertex(i * step)).collect::<Vec<_>>();
        for (left, right) in [(3, 5), (1, 1), (7, 2), (1000, 1), (1, 1000), (13, 1)] {
            for (short, long) in [(10, 10), (3, 4000), (0, 5), (5, 0), (1, 1)] {
                let (mut common, other) = (ids(left, short), ids(right, long));
                let expected: Vec<_> = common.iter().copied().filter(|id| other.contains(id)).collect();
                retain_common(&mut common, &other);
                assert_eq!(common, expected);
            }
        }
    }
}
