//! Intersect: the vertices that are neighbours in every leg, for each row.
//!
//! One variable at a time over sorted adjacencies makes cyclic patterns worst-case optimal: the work for a
//! row is bounded by its adjacencies, never by the product of two.
//! # Shape
//! Rows come grouped by the variables bound first, so the keys of a leg come in runs. The leg with the
//! fewest runs is *marked*: its adjacency is a set of bits, made once for each run, also across batches.
//! The other legs are expanded a block of rows at a time, in one call, so that their cache misses overlap;
//! their lists are intersected pairwise, shortest first, and what is left is looked up in the bits.
//! # Cost
//! For a row of a triangle: the entries of the unmarked leg, some 1.5 ns each. Memory: `vertices / 8` bytes,
//! and [`BLOCK_ENTRIES`] entries or the longest adjacency for each leg.
//! # Source
//! H. Ngo, E. Porat, C. Ré, A. Rudra, "Worst-case optimal join algorithms", JACM 2018; T. Veldhuizen,
//! "Leapfrog Triejoin", ICDT 2014. Different: candidates are intersected whole for each row, not leapt
//! over lazily, since rows come in batches and adjacencies are contiguous.

use crate::batch::{BATCH_ROWS, Batch, Keep};
use crate::chain::{Chain, Flow, Kernel, Run};
use crate::plan::Operand;
use vervet_algebra::Variable;
use vervet_model::{Id, Result};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, GraphFilter, Segment};

/// Entries of a leg that are expanded at a time, unless one row has more: 512 KiB.
const BLOCK_ENTRIES: u64 = 1 << 16;

/// Rows for each run from which on a leg is worth marking.
const RUN_ROWS_MIN: usize = 3;

pub(crate) struct IntersectLeg<'a> {
    pub segment: &'a dyn Segment,
    pub filter: EntryFilter,
    pub key: Operand,
    /// The keys of a batch without immediate repetition.
    runs: Vec<Id>,
    /// For each row its position in `runs`.
    run_of_row: Vec<u32>,
    /// For each run its degree.
    degrees: Vec<u64>,
    /// The adjacencies of the runs of a block, one after the other, and where each ends.
    entries: Expansion,
    ends: Vec<usize>,
    /// The run that `ends[0]` belongs to.
    first_run: usize,
}

impl<'a> IntersectLeg<'a> {
    pub(crate) fn new(segment: &'a dyn Segment, filter: EntryFilter, key: Operand) -> Self {
        Self {
            segment,
            filter,
            key,
            runs: Vec::new(),
            run_of_row: Vec::new(),
            degrees: Vec::new(),
            entries: Expansion::default(),
            ends: Vec::new(),
            first_run: 0,
        }
    }

    /// Works out the runs of a batch and their degrees.
    fn start(&mut self, batch: &Batch) -> Result<()> {
        self.runs.clear();
        self.run_of_row.clear();
        for row in 0..batch.rows {
            let key = match self.key {
                Operand::Constant(id) => id,
                Operand::Variable(variable) => batch.value(variable, row),
            };
            if self.runs.last() != Some(&key) {
                self.runs.push(key);
            }
            self.run_of_row.push(u32::try_from(self.runs.len() - 1).unwrap_or(u32::MAX));
        }
        self.segment.degrees(&self.runs, self.filter, &mut self.degrees)
    }

    fn degree(&self, row: usize) -> u64 {
        self.degrees[self.run_of_row[row] as usize]
    }

    /// Expands the runs of the rows `first..end`.
    fn load(&mut self, first: usize, end: usize) -> Result<()> {
        let (from, to) = (self.run_of_row[first] as usize, self.run_of_row[end - 1] as usize + 1);
        let total: u64 = self.degrees[from..to].iter().sum();
        self.entries.clear();
        self.entries.capacity = usize::try_from(total).unwrap_or(usize::MAX);
        let mut cursor = Cursor::default();
        self.segment.expand(&self.runs[from..to], self.filter, &mut cursor, &mut self.entries)?;
        self.first_run = from;
        self.ends.clear();
        // What `expand` lists is what `degrees` counts, key by key.
        let mut end = 0;
        self.ends.extend(self.degrees[from..to].iter().map(|&degree| {
            end += usize::try_from(degree).unwrap_or(usize::MAX);
            end
        }));
        Ok(())
    }

    /// The loaded adjacency of a row.
    fn neighbours(&self, row: usize) -> &[Id] {
        let run = self.run_of_row[row] as usize - self.first_run;
        let start = if run == 0 { 0 } else { self.ends[run - 1] };
        self.entries.neighbours.get(start..self.ends[run]).unwrap_or_default()
    }
}

/// The adjacency of one key as bits over vertex numbers.
#[derive(Default)]
pub(crate) struct Marks {
    words: Vec<u64>,
    /// Of which leg and key.
    of: Option<(usize, Id)>,
    /// What is marked, to unmark it.
    list: Vec<Id>,
}

impl Marks {
    fn mark(&mut self, leg: usize, legs: &[IntersectLeg<'_>], row: usize, run: &Run<'_>) -> Result<()> {
        let key = legs[leg].runs[legs[leg].run_of_row[row] as usize];
        if self.of == Some((leg, key)) {
            return Ok(());
        }
        if self.words.is_empty() {
            let words = run.snapshot.vertex_count().div_ceil(64);
            run.control.grow(8 * words)?;
            self.words.resize(usize::try_from(words).unwrap_or(0), 0);
        }
        for id in &self.list {
            if let Some(word) = word_of(*id).and_then(|word| self.words.get_mut(word)) {
                *word = 0;
            }
        }
        self.of = None;
        self.list.clear();
        legs[leg].segment.neighbours(key, legs[leg].filter, &mut self.list)?;
        for id in &self.list {
            if let Some(word) = word_of(*id).and_then(|word| self.words.get_mut(word)) {
                *word |= 1 << (id.payload() % 64);
            }
        }
        self.of = Some((leg, key));
        Ok(())
    }

    fn contains(&self, id: Id) -> bool {
        let word = word_of(id).and_then(|word| self.words.get(word)).copied().unwrap_or(0);
        word >> (id.payload() % 64) & 1 == 1
    }
}

fn word_of(vertex: Id) -> Option<usize> {
    usize::try_from(vertex.payload() / 64).ok().filter(|_| vertex.is_vertex())
}

pub(crate) struct Intersect<'a> {
    pub target: Variable,
    pub legs: Vec<IntersectLeg<'a>>,
    pub count_only: bool,
    pub keep: Keep,
    pub marks: Marks,
    pub rows: Vec<u32>,
    pub found: Vec<Id>,
    pub common: Vec<Id>,
    pub counts: Vec<u64>,
    pub selection: Vec<u32>,
    pub out: Batch,
}

impl<'a> Intersect<'a> {
    /// The leg to mark, if one is worth it: vertices only, and long runs.
    fn leg_to_mark(&self, rows: usize) -> Option<usize> {
        (0..self.legs.len())
            .filter(|&leg| self.legs[leg].segment.statistics().vertices_only)
            .min_by_key(|&leg| self.legs[leg].runs.len())
            .filter(|&leg| self.legs[leg].runs.len() * RUN_ROWS_MIN <= rows)
    }

    /// The end of a block of rows that starts with `first`: as many rows as have few enough entries.
    fn block_end(&self, first: usize, rows: usize, marked: Option<usize>) -> usize {
        let mut totals = vec![0_u64; self.legs.len()];
        for row in first..rows {
            for (leg, total) in totals.iter_mut().enumerate() {
                let runs = &self.legs[leg].run_of_row;
                if Some(leg) != marked && (row == first || runs[row] != runs[row - 1]) {
                    *total += self.legs[leg].degree(row);
                }
            }
            if row > first && totals.iter().any(|&total| total > BLOCK_ENTRIES) {
                return row;
            }
        }
        rows
    }

    /// Fills `common` with the intersection for a row whose legs are loaded.
    fn intersect(&mut self, row: usize, marked: Option<usize>) {
        self.common.clear();
        let mut shortest: Option<usize> = None;
        for leg in (0..self.legs.len()).filter(|&leg| Some(leg) != marked) {
            if shortest.is_none_or(|other| self.legs[leg].degree(row) < self.legs[other].degree(row)) {
                shortest = Some(leg);
            }
        }
        let Some(shortest) = shortest else { return };
        let neighbours = self.legs[shortest].neighbours(row);
        if marked.is_some() {
            let marks = &self.marks;
            self.common.extend(neighbours.iter().copied().filter(|&id| marks.contains(id)));
        } else {
            self.common.extend_from_slice(neighbours);
        }
        for leg in 0..self.legs.len() {
            if leg != shortest && Some(leg) != marked {
                retain_common(&mut self.common, self.legs[leg].neighbours(row));
            }
        }
        // Statements of several graphs repeat a neighbour.
        if self.legs[shortest].filter.graph == GraphFilter::Any
            || self.legs[shortest].filter.graph == GraphFilter::AnyNamed
        {
            self.common.dedup();
        }
    }

    /// How many there are for a row of two legs of which one is marked.
    fn count_marked(&self, row: usize, marked: usize) -> u64 {
        let neighbours = self.legs[1 - marked].neighbours(row);
        neighbours.iter().map(|&id| u64::from(self.marks.contains(id))).sum()
    }

    fn flush(&mut self, batch: &Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        self.out.gather(batch, &self.rows, &self.keep);
        std::mem::swap(&mut self.out.columns[self.target.index()], &mut self.found);
        self.rows.clear();
        self.found.clear();
        next.push(&mut self.out)
    }

    /// Takes `common` over into the rows found.
    fn take_common(&mut self, batch: &Batch, row: usize, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        let mut done = 0;
        while done < self.common.len() {
            let take = (BATCH_ROWS - self.rows.len()).min(self.common.len() - done);
            let row = u32::try_from(row).unwrap_or(u32::MAX);
            self.rows.resize(self.rows.len() + take, row);
            self.found.extend_from_slice(&self.common[done..done + take]);
            done += take;
            if self.rows.len() == BATCH_ROWS && self.flush(batch, next)? == Flow::Done {
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
        self.counts.clear();
        let marked = self.leg_to_mark(batch.rows);
        let plain = self.legs.iter().all(|leg| {
            matches!(leg.filter.graph, GraphFilter::Default | GraphFilter::Named(_)) && !leg.filter.parallel
        });
        let mut first = 0;
        while first < batch.rows {
            next.run().control.check()?;
            let end = self.block_end(first, batch.rows, marked);
            for (leg, at) in self.legs.iter_mut().zip(0..) {
                if Some(at) != marked {
                    leg.load(first, end)?;
                }
            }
            for row in first..end {
                if self.legs.iter().any(|leg| leg.degree(row) == 0) {
                    self.counts.push(0);
                    continue;
                }
                if let Some(leg) = marked {
                    self.marks.mark(leg, &self.legs, row, next.run())?;
                }
                match marked {
                    Some(marked) if self.count_only && plain && self.legs.len() == 2 => {
                        self.counts.push(self.count_marked(row, marked));
                    }
                    _ => {
                        self.intersect(row, marked);
                        self.counts.push(self.common.len() as u64);
                        if !self.count_only && self.take_common(batch, row, next)? == Flow::Done {
                            return Ok(Flow::Done);
                        }
                    }
                }
            }
            first = end;
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
