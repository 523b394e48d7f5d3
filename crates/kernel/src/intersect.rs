//! Intersect: the vertices that are neighbours in every leg, for each row.
//!
//! One variable at a time over sorted adjacencies makes cyclic patterns worst-case optimal: the work for a
//! row is bounded by its shortest adjacency times a logarithm, never by the product of two.
//! # Cost
//! The adjacency of a leg is decoded again only when its key changes (rows come grouped by the variable
//! bound first). The shortest list drives: each of its vertices is galloped for in the others.
//! # Source
//! H. Ngo, E. Porat, C. Ré, A. Rudra, "Worst-case optimal join algorithms", JACM 2018; T. Veldhuizen,
//! "Leapfrog Triejoin", ICDT 2014. Different: candidates are intersected whole for each row, not leapt
//! over lazily, since rows come in batches and adjacencies are contiguous.

use crate::batch::{BATCH_ROWS, Batch, Keep};
use crate::chain::{Chain, Flow, Kernel};
use crate::control::Control;
use crate::plan::Operand;
use vervet_algebra::Variable;
use vervet_model::{Id, Result};
use vervet_snapshot::{EntryFilter, Segment};

pub(crate) struct IntersectLeg<'a> {
    pub segment: &'a dyn Segment,
    pub filter: EntryFilter,
    pub key: Operand,
    /// Whose adjacency `neighbours` holds.
    pub loaded: Option<Id>,
    pub neighbours: Vec<Id>,
}

pub(crate) struct Intersect<'a> {
    pub target: Variable,
    pub legs: Vec<IntersectLeg<'a>>,
    pub count_only: bool,
    pub keep: Keep,
    pub rows: Vec<u32>,
    pub found: Vec<Id>,
    pub common: Vec<Id>,
    pub counts: Vec<u64>,
    pub selection: Vec<u32>,
    pub out: Batch,
}

impl<'a> Intersect<'a> {
    /// Fills `common` with the intersection for a row.
    fn intersect(&mut self, batch: &Batch, row: usize, control: &Control) -> Result<()> {
        self.common.clear();
        for leg in &mut self.legs {
            let key = match leg.key {
                Operand::Constant(id) => id,
                Operand::Variable(variable) => batch.value(variable, row),
            };
            if leg.loaded != Some(key) {
                leg.loaded = None;
                leg.neighbours.clear();
                let room = leg.neighbours.capacity();
                leg.segment.neighbours(key, leg.filter, &mut leg.neighbours)?;
                leg.loaded = Some(key);
                control.grow(8 * (leg.neighbours.capacity() - room) as u64)?;
                control.work(leg.neighbours.len())?;
            }
            if leg.neighbours.is_empty() {
                return Ok(());
            }
        }
        let Some(shortest) = (0..self.legs.len()).min_by_key(|&leg| self.legs[leg].neighbours.len()) else {
            return Ok(());
        };
        let room = self.common.capacity();
        self.common.extend_from_slice(&self.legs[shortest].neighbours);
        control.grow(8 * (self.common.capacity() - room) as u64)?;
        control.work(self.common.len())?;
        for (leg, other) in self.legs.iter().enumerate() {
            if leg != shortest {
                retain_common(&mut self.common, &other.neighbours);
            }
        }
        Ok(())
    }

    fn flush(&mut self, batch: &Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        self.out.gather(batch, &self.rows, &self.keep);
        std::mem::swap(&mut self.out.columns[self.target.index()], &mut self.found);
        self.rows.clear();
        self.found.clear();
        next.push(&mut self.out)
    }
}

impl<'a> Kernel<'a> for Intersect<'a> {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        let control = next.run().control;
        if self.count_only {
            self.counts.clear();
            for row in 0..batch.rows {
                self.intersect(batch, row, control)?;
                self.counts.push(self.common.len() as u64);
            }
            batch.multiply(&self.counts, &mut self.selection, &self.keep);
            return next.push(batch);
        }
        self.rows.clear();
        self.found.clear();
        for row in 0..batch.rows {
            self.intersect(batch, row, control)?;
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
