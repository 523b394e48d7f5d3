//! Hash join: inner, left, minus, semi and anti, with possibly unbound variables.
//!
//! # Shape
//! The right side runs once, from one empty row, into a table. Its rows are grouped by the set of
//! `compatible` variables that they bind. For each group and each subset of these variables that a left row
//! also binds there is one hash index, built on first use. So a probe of a group is always one look-up, even
//! if variables are unbound in some rows.
//! # Cost
//! Memory: the right table, 4 bytes for each row, and for each index 4 bytes for each row and 14 to 27 for
//! each distinct key; all count against the cap. Time: one look-up for each left row and group.

use crate::pipeline::batch::{Batch, Keep};
use crate::pipeline::chain::{Chain, Flow, Kernel, Run, Stage, Table};
use crate::pipeline::control::Control;
use crate::plan::{PlanStep, Step};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use vervet_algebra::Variable;
use vervet_expression::CompiledExpression;
use vervet_model::{Error, Result};

/// The join kind, with compiled expressions.
pub(crate) enum Kind {
    Inner,
    Left(Option<CompiledExpression>),
    Minus,
    Semi,
    Anti,
}

/// Bit mask of the bound `compatible` variables: bit `i` for the i-th.
type Mask = u64;

/// Maximum number of `compatible` variables of a join.
pub(crate) const COMPATIBLE_MAX: usize = 64;

/// Hash index of one group by some columns. Rows are positions in the group; rows with an equal hash are an
/// ascending chain.
#[derive(Default)]
pub(crate) struct Index {
    first: FxHashMap<u64, u32>,
    /// Next row of the chain, by row; [`END`] ends a chain.
    next: Vec<u32>,
}

const END: u32 = u32::MAX;

/// The build side of a join, shared by the copies of the join in several threads.
pub struct JoinTable {
    on: Vec<Variable>,
    compatible: Vec<Variable>,
    keep: Keep,
    table: Table,
    /// Rows by the mask of their bound variables.
    groups: Vec<(Mask, Vec<u32>)>,
    /// Indexes by group and mask, built on first use.
    indexes: Mutex<FxHashMap<(usize, Mask), Arc<Index>>>,
}

impl JoinTable {
    /// The empty table of a join.
    ///
    /// # Errors
    /// `step` is not a join.
    pub fn new(step: &PlanStep, run: &Run<'_>) -> Result<Self> {
        let Step::Join { on, compatible, adds, .. } = &step.step else {
            return Err(Error::internal("a step that is not a join has no right side"));
        };
        let needed = [on.as_slice(), compatible, adds].concat();
        Ok(Self {
            on: on.clone(),
            compatible: compatible.clone(),
            keep: Keep::new(&needed, run.variables),
            table: Table::new(run.variables),
            groups: Vec::new(),
            indexes: Mutex::default(),
        })
    }

    /// Adds rows of the right side.
    ///
    /// # Errors
    /// The memory cap.
    pub fn append(&mut self, batch: &Batch, control: &Control<'_>) -> Result<()> {
        self.table.append(batch, &self.keep, control)
    }

    /// End of input.
    ///
    /// # Errors
    /// Limits.
    pub fn finish(&mut self, control: &Control<'_>) -> Result<()> {
        let mut groups: FxHashMap<Mask, Vec<u32>> = FxHashMap::default();
        for row in 0..self.table.batch.rows {
            let mask = mask(&self.compatible, &self.table.batch, row);
            let row = u32::try_from(row).ok().filter(|row| *row != END).ok_or_else(too_many_rows)?;
            groups.entry(mask).or_default().push(row);
            control.work(1)?;
        }
        control.grow(groups.values().map(|rows| 4 * rows.capacity() as u64).sum())?;
        self.groups = groups.into_iter().collect();
        self.groups.sort_unstable_by_key(|group| group.0);
        Ok(())
    }

    /// The index of a group for a mask, built on first use; concurrent callers wait.
    fn index(&self, group: usize, shared: Mask, control: &Control<'_>) -> Result<Arc<Index>> {
        // Only complete indexes are inserted, so a panic elsewhere does not corrupt the map.
        let mut indexes = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = indexes.get(&(group, shared)) {
            return Ok(Arc::clone(index));
        }
        let rows = &self.groups[group].1;
        control.grow(4 * rows.len() as u64)?;
        let mut index = Index { first: FxHashMap::default(), next: vec![END; rows.len()] };
        let mut counted = 0;
        // In reverse order, so that each chain ascends.
        for (at, &right) in rows.iter().enumerate().rev() {
            let hash = hash(&self.on, &self.compatible, shared, &self.table.batch, right as usize);
            let at = u32::try_from(at).map_err(|_| too_many_rows())?;
            if let Some(following) = index.first.insert(hash, at) {
                index.next[at as usize] = following;
            }
            control.work(1)?;
            control.recount(&mut counted, 17 * index.first.capacity() as u64)?;
        }
        let index = Arc::new(index);
        indexes.insert((group, shared), Arc::clone(&index));
        Ok(index)
    }
}

pub(crate) struct Join<'a> {
    pub kind: Kind,
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
    pub pairs: Vec<(u32, u32)>,
    pub out: Batch,
}

impl<'a> Join<'a> {
    fn build(&mut self, run: &Run<'a>) -> Result<Arc<JoinTable>> {
        let mut table = JoinTable::new(self.step, run)?;
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

    /// Position of the index of a group for a mask.
    fn index(&mut self, right: &JoinTable, group: usize, shared: Mask, run: &Run<'a>) -> Result<usize> {
        if let Some(&position) = self.index_of.get(&(group, shared)) {
            return Ok(position);
        }
        self.indexes.push(right.index(group, shared, run.control)?);
        self.index_of.insert((group, shared), self.indexes.len() - 1);
        Ok(self.indexes.len() - 1)
    }

    /// Joins `pairs` into `out`, applies the condition, and marks the left rows that matched.
    fn join_pairs(
        &mut self,
        table: &Batch,
        batch: &Batch,
        run: &Run<'a>,
        matched: &mut [bool],
    ) -> Result<()> {
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
        if !table.multiplicity.is_empty() {
            self.out.multiplicity = (self.pairs.iter())
                .map(|&(left, right)| batch.times(left as usize).times(table.times(right as usize)))
                .collect::<Result<_>>()?;
        }
        if let Kind::Left(Some(condition)) = &self.kind {
            let mut selection = Vec::new();
            condition.filter(run.evaluator, &self.out.columns, self.out.rows, &mut selection)?;
            run.count_computed()?;
            selection.iter().for_each(|&pair| matched[rows[pair as usize] as usize] = true);
            self.out.select(&selection, &self.pair_keep);
        } else {
            rows.iter().for_each(|&row| matched[row as usize] = true);
        }
        self.out.drop_all_but(&self.keep);
        self.pairs.clear();
        Ok(())
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
        if matches!(self.kind, Kind::Left(_)) {
            let alone: Vec<u32> =
                (0_u32..).zip(&matched).filter(|(_, matched)| !**matched).map(|(row, _)| row).collect();
            batch.select(&alone, &self.keep);
            return next.push(batch);
        }
        Ok(Flow::More)
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
        let mut selection = Vec::new();
        for row in 0..batch.rows {
            let mut found = false;
            self.probe(table, batch, row, &run, must_share, &mut |_, _| {
                found = true;
                Ok(false)
            })?;
            if found == keep_found {
                selection.push(u32::try_from(row).unwrap_or(u32::MAX));
            }
        }
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
            Kind::Inner | Kind::Left(_) => self.push_pairs(&table, batch, next),
            Kind::Minus | Kind::Semi | Kind::Anti => self.push_existence(&table, batch, next),
        }
    }

    fn inner(&self) -> Vec<&Stage<'a>> {
        self.right.iter().collect()
    }
}

fn too_many_rows() -> vervet_model::Error {
    vervet_model::Error::new(
        vervet_model::ErrorKind::MemoryLimit,
        "one side of a join has more than 4,294,967,295 rows",
    )
    .with_hint("restrict the query (more constants)")
}

fn mask(variables: &[Variable], batch: &Batch, row: usize) -> Mask {
    let bits = variables.iter().enumerate().filter(|(_, variable)| batch.value(**variable, row).is_bound());
    bits.fold(0, |mask, (bit, _)| mask | 1 << bit)
}

fn hash(on: &[Variable], compatible: &[Variable], shared: Mask, batch: &Batch, row: usize) -> u64 {
    let mut hasher = FxHasher::default();
    for &variable in on {
        batch.value(variable, row).hash(&mut hasher);
    }
    for (bit, &variable) in compatible.iter().enumerate() {
        if shared >> bit & 1 == 1 {
            batch.value(variable, row).hash(&mut hasher);
        }
    }
    hasher.finish()
}
