//! Hash join: inner, left, minus, semi and anti, with possibly unbound variables.
//!
//! # Shape
//! The right side runs once, from one empty row, into a table. Its rows are grouped by the set of
//! `compatible` variables that they bind. For each group and each subset of these variables that a left row
//! also binds there is one hash index, built on first use. So a probe of a group is always one look-up, even
//! if variables are unbound in some rows.
//!
//! A semi- or anti-join whose condition compares a column of each side keeps only the extreme values of each
//! key in its index ([`Comparison`]), so a probe tests one pair for each class of values. Other joins whose
//! condition has such comparisons sort the rows of each key ([`crate::pipeline::range_index`]): a probe
//! visits only rows for which they hold, and if no right column is kept, counts these without visiting them.
//! # Cost
//! Memory: the right table, 4 bytes for each row, and for each index 4 bytes for each row and 14 to 27 for
//! each distinct key; all count against the cap. Time: one look-up for each left row and group.

use crate::pipeline::batch::{Batch, Keep};
use crate::pipeline::chain::{Chain, Flow, Kernel, Run, Stage};
use crate::pipeline::join_table::{Comparison, END, Index, JoinTable, Mask, hash, mask};
use crate::pipeline::range_index::{Candidates, RangeCondition};
use crate::plan::{PlanStep, Step};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use vervet_algebra::Variable;
use vervet_expression::CompiledExpression;
use vervet_model::{Multiplicity, Result};

/// The join kind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Inner,
    Left,
    Minus,
    Semi,
    Anti,
}

/// Maximum number of `compatible` variables of a join.
pub(crate) const COMPATIBLE_MAX: usize = 64;

pub(crate) struct Join<'a> {
    pub kind: Kind,
    /// The condition on pairs.
    pub condition: Option<CompiledExpression>,
    /// The condition of a semi- or anti-join, if it is a comparison.
    pub comparison: Option<Comparison>,
    /// Whether the condition consists of the comparisons of a [`RangeCondition`].
    pub is_exact_range: bool,
    /// Whether only the number of pairs of each left row matters, and an index has it.
    pub counts_pairs: bool,
    pub on: Vec<Variable>,
    pub compatible: Vec<Variable>,
    pub adds: Vec<Variable>,
    pub keep: Keep,
    /// Columns of pairs: those of `keep` and of the condition.
    pub pair_keep: Keep,
    /// Stages of the right side, unless the table was built before.
    pub right: Vec<Stage<'a>>,
    pub table: Option<Arc<JoinTable>>,
    pub step: &'a PlanStep,
    pub indexes: Vec<Arc<Index>>,
    /// Positions in `indexes` by group and mask.
    pub index_of: FxHashMap<(usize, Mask), usize>,
    /// Whether some of `pairs` have not been tested for a condition that consists of range comparisons.
    pub has_untested: bool,
    /// The last one used.
    pub last_index: Option<((usize, Mask), usize)>,
    pub pairs: Vec<(u32, u32)>,
    pub out: Batch,
}

/// Whether the condition of a join consists of the comparisons of a range condition, and, if so, whether no
/// right column is kept.
pub(crate) fn exact_range(step: &PlanStep, kind: Kind) -> (bool, bool) {
    let Step::Join { compatible, adds, .. } = &step.step else { return (false, false) };
    let is_exact = RangeCondition::of(&step.step).is_some_and(|range| range.is_exact);
    let keeps_right = compatible.iter().chain(adds).any(|variable| step.keep.contains(variable));
    (is_exact, is_exact && !keeps_right && matches!(kind, Kind::Inner | Kind::Left))
}

impl<'a> Join<'a> {
    fn build(&mut self, run: &Run<'a>) -> Result<Arc<JoinTable>> {
        let mut table = JoinTable::new(self.step, run.variables)?;
        let mut sink = |batch: &mut Batch, run: &Run<'a>| {
            table.append(batch, run.control)?;
            Ok(Flow::More)
        };
        let mut chain = Chain::new(&mut self.right, &mut sink, run);
        chain.push(&mut Batch::unit(run.variables))?;
        chain.finish()?;
        table.finish(run.control)?;
        Ok(Arc::new(table))
    }

    /// Calls `visit` with each right row that is compatible with a left row and, if `must_share`, shares a
    /// bound variable with it, until `visit` ends the probe.
    fn probe(
        &mut self,
        table: &JoinTable,
        batch: &Batch,
        row: usize,
        run: &Run<'a>,
        must_share: bool,
        visit: &mut dyn FnMut(&mut Self, u32) -> Result<bool>,
    ) -> Result<()> {
        if table.range.is_some() {
            return self.probe_ranges(table, (batch, row), run, &mut |join, found| {
                for &right in found.rows {
                    run.control.work(1)?;
                    join.has_untested |= !found.is_certain;
                    if !visit(join, right)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            });
        }
        let left_mask = mask(&self.compatible, batch, row);
        for group in 0..table.groups.len() {
            // Many unbound variables create many groups.
            run.control.work(1)?;
            let shared = left_mask & table.groups[group].0;
            if must_share && self.on.is_empty() && shared == 0 {
                continue;
            }
            let index = self.index(table, group, shared, run)?;
            let hash = hash(&self.on, &self.compatible, shared, batch, row);
            let mut at = self.indexes[index].first.get(&hash).copied().unwrap_or(END);
            // Positions, not references: `visit` needs `self`.
            while at != END {
                let right = table.groups[group].1[at as usize];
                at = self.indexes[index].next[at as usize];
                run.control.work(1)?;
                let equal = |variable: &Variable| {
                    batch.value(*variable, row) == table.table.batch.value(*variable, right as usize)
                };
                let agrees = self.on.iter().all(equal)
                    && (0..self.compatible.len())
                        .filter(|bit| shared >> bit & 1 == 1)
                        .all(|bit| equal(&self.compatible[bit]));
                if agrees && !visit(self, right)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Calls `visit` with the right rows that are compatible with a left row and may satisfy the range
    /// condition, until `visit` ends the probe.
    fn probe_ranges(
        &mut self,
        table: &JoinTable,
        (batch, row): (&Batch, usize),
        run: &Run<'a>,
        visit: &mut dyn FnMut(&mut Self, Candidates<'_>) -> Result<bool>,
    ) -> Result<()> {
        let Some(condition) = &table.range else { return Ok(()) };
        let left_mask = mask(&self.compatible, batch, row);
        for group in 0..table.groups.len() {
            run.control.work(1)?;
            let shared = left_mask & table.groups[group].0;
            let index = self.index(table, group, shared, run)?;
            let index = Arc::clone(&self.indexes[index]);
            let Some(ranges) = &index.ranges else { continue };
            let hash = hash(&self.on, &self.compatible, shared, batch, row);
            let has_key = |right: u32| table.has_key_of_left(shared, right, batch, row);
            let evaluator = run.evaluator;
            let mut visit = |found: Candidates<'_>| visit(self, found);
            let left = (batch, row);
            let table = &table.table.batch;
            if !ranges.probe(hash, condition, left, table, evaluator, run.control, has_key, &mut visit)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Position of the index of a group for a mask.
    fn index(&mut self, right: &JoinTable, group: usize, shared: Mask, run: &Run<'a>) -> Result<usize> {
        let key = (group, shared);
        if let Some((last, position)) = self.last_index
            && last == key
        {
            return Ok(position);
        }
        let position = match self.index_of.get(&key) {
            Some(&position) => position,
            None => {
                self.indexes.push(right.index(group, shared, run.evaluator, run.control)?);
                self.index_of.insert(key, self.indexes.len() - 1);
                self.indexes.len() - 1
            }
        };
        self.last_index = Some((key, position));
        Ok(position)
    }

    /// Joins `pairs` into `out`, without multiplicities; returns their left rows.
    fn gather_pairs(&mut self, table: &Batch, batch: &Batch) -> Vec<u32> {
        let rows: Vec<u32> = self.pairs.iter().map(|pair| pair.0).collect();
        self.out.gather(batch, &rows, &self.pair_keep);
        for &variable in self.adds.iter().chain(&self.compatible) {
            let values = self.pairs.iter().map(|&(left, right)| {
                let value = batch.value(variable, left as usize);
                if value.is_bound() { value } else { table.value(variable, right as usize) }
            });
            let column = &mut self.out.columns[variable.index()];
            column.clear();
            column.extend(values);
        }
        rows
    }

    /// Joins `pairs` into `out`, applies the condition, and marks the left rows that matched.
    fn join_pairs(
        &mut self,
        table: &Batch,
        batch: &Batch,
        run: &Run<'a>,
        matched: &mut [bool],
    ) -> Result<()> {
        let rows = self.gather_pairs(table, batch);
        if !table.multiplicity.is_empty() {
            self.out.multiplicity = (self.pairs.iter())
                .map(|&(left, right)| batch.times(left as usize).times(table.times(right as usize)))
                .collect::<Result<_>>()?;
        }
        match self.holding_pairs(&rows, run, matched)? {
            Some(selection) => self.out.select(&selection, &self.pair_keep),
            None => rows.iter().for_each(|&row| matched[row as usize] = true),
        }
        self.out.drop_all_but(&self.keep);
        self.pairs.clear();
        self.has_untested = false;
        Ok(())
    }

    /// Marks the left rows of the `pairs` for which the condition holds.
    fn test_pairs(
        &mut self,
        table: &Batch,
        batch: &Batch,
        run: &Run<'a>,
        matched: &mut [bool],
    ) -> Result<()> {
        let rows = self.gather_pairs(table, batch);
        self.holding_pairs(&rows, run, matched)?;
        self.pairs.clear();
        self.has_untested = false;
        Ok(())
    }

    /// The gathered pairs for which the condition holds, whose left rows it marks; `rows`: the left row of
    /// each pair. `None`: it holds for all of them.
    fn holding_pairs(&self, rows: &[u32], run: &Run<'a>, matched: &mut [bool]) -> Result<Option<Vec<u32>>> {
        let Some(condition) = &self.condition else { return Ok(None) };
        if self.is_exact_range && !self.has_untested {
            rows.iter().for_each(|&row| matched[row as usize] = true);
            return Ok(None);
        }
        let mut selection = Vec::new();
        condition.filter(run.evaluator, &self.out.columns, self.out.rows, &mut selection)?;
        run.count_computed()?;
        selection.iter().for_each(|&pair| matched[rows[pair as usize] as usize] = true);
        Ok(Some(selection))
    }

    fn push_pairs(&mut self, table: &JoinTable, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        let run = *next.run();
        let mut matched = vec![false; batch.rows];
        let mut flow = Flow::More;
        self.pairs.clear();
        for row in 0..batch.rows {
            let left = u32::try_from(row).unwrap_or(u32::MAX);
            self.probe(table, batch, row, &run, false, &mut |join, right| {
                join.pairs.push((left, right));
                if join.pairs.len() < next.run().control.batch_rows() {
                    return Ok(true);
                }
                join.join_pairs(&table.table.batch, batch, &run, &mut matched)?;
                flow = next.push(&mut join.out)?;
                Ok(flow == Flow::More)
            })?;
            if flow == Flow::Done {
                return Ok(flow);
            }
        }
        self.join_pairs(&table.table.batch, batch, &run, &mut matched)?;
        if next.push(&mut self.out)? == Flow::Done {
            return Ok(Flow::Done);
        }
        if self.kind == Kind::Left {
            let alone: Vec<u32> =
                (0_u32..).zip(&matched).filter(|(_, matched)| !**matched).map(|(row, _)| row).collect();
            batch.select(&alone, &self.keep);
            return next.push(batch);
        }
        Ok(Flow::More)
    }

    /// Multiplies each left row by the number of its pairs, of which no right column is kept.
    fn push_counts(
        &mut self,
        table: &JoinTable,
        batch: &mut Batch,
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        let run = *next.run();
        let Some(condition) = &table.range else { return Ok(Flow::More) };
        let rows = &table.table.batch;
        let mut selection = Vec::with_capacity(batch.rows);
        let mut counts = Vec::with_capacity(batch.rows);
        for row in 0..batch.rows {
            let mut count = Multiplicity::ZERO;
            self.probe_ranges(table, (batch, row), &run, &mut |_, found| {
                if found.is_certain {
                    count = count.plus(found.solutions())?;
                    return Ok(true);
                }
                for &right in found.rows {
                    run.control.work(1)?;
                    let value = rows.value(condition.right, right as usize);
                    if condition.holds(value, batch, row, run.evaluator)? {
                        count = count.plus(rows.times(right as usize))?;
                    }
                }
                Ok(true)
            })?;
            if count.is_zero() && self.kind == Kind::Left {
                count = Multiplicity::ONE;
            }
            if !count.is_zero() {
                selection.push(u32::try_from(row).unwrap_or(u32::MAX));
            }
            counts.push(count);
        }
        if !batch.multiplicity.is_empty() || counts.iter().any(|count| *count != Multiplicity::ONE) {
            batch.multiplicity.resize(batch.rows, Multiplicity::ONE);
            for (times, count) in batch.multiplicity.iter_mut().zip(counts) {
                *times = times.times(count)?;
            }
        }
        batch.select(&selection, &self.keep);
        next.push(batch)
    }

    fn push_existence(
        &mut self,
        table: &JoinTable,
        batch: &mut Batch,
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        let run = *next.run();
        let (must_share, keep_found) = match self.kind {
            Kind::Minus => (true, false),
            Kind::Anti => (false, false),
            _ => (false, true),
        };
        let rows = &table.table.batch;
        let mut matched = vec![false; batch.rows];
        self.pairs.clear();
        for row in 0..batch.rows {
            let left = u32::try_from(row).unwrap_or(u32::MAX);
            let compared = self.comparison.map(|one| (one, batch.value(one.left, row)));
            let is_certain = self.condition.is_none();
            self.probe(table, batch, row, &run, must_share, &mut |join, right| {
                matched[row] = matched[row] || is_certain;
                if let Some((comparison, left)) = compared {
                    let right = rows.value(comparison.right, right as usize);
                    matched[row] = run.evaluator.holds(comparison.comparator, right, left)? == Some(true);
                } else if !is_certain {
                    join.pairs.push((left, right));
                    if join.pairs.len() >= run.control.batch_rows() {
                        join.test_pairs(rows, batch, &run, &mut matched)?;
                    }
                }
                Ok(!matched[row])
            })?;
        }
        if !self.pairs.is_empty() {
            self.test_pairs(rows, batch, &run, &mut matched)?;
        }
        let selection: Vec<u32> =
            (0..).zip(&matched).filter(|(_, matched)| **matched == keep_found).map(|(row, _)| row).collect();
        batch.select(&selection, &self.keep);
        next.push(batch)
    }
}

impl<'a> Kernel<'a> for Join<'a> {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        let table = match &self.table {
            Some(table) => Arc::clone(table),
            None => {
                let table = self.build(next.run())?;
                Arc::clone(self.table.insert(table))
            }
        };
        match self.kind {
            Kind::Inner | Kind::Left if self.counts_pairs => self.push_counts(&table, batch, next),
            Kind::Inner | Kind::Left => self.push_pairs(&table, batch, next),
            Kind::Minus | Kind::Semi | Kind::Anti => self.push_existence(&table, batch, next),
        }
    }

    fn inner(&self) -> Vec<&Stage<'a>> {
        self.right.iter().collect()
    }
}
