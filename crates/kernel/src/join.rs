//! Hash join: inner, left, minus, semi and anti, with variables that may be unbound.
//!
//! # Shape
//! The right side runs once, from one empty row, into a table. Its rows are grouped by which of the
//! `compatible` variables they bind; for each group and each set of those variables that a left row binds
//! too there is one hash index, made when first needed. So a probe is always one look-up, also where
//! variables are unbound in some rows.
//! # Cost
//! Memory: the right table, plus 16 bytes for each row and index; both count against the cap.

use crate::batch::{BATCH_ROWS, Batch, Keep};
use crate::chain::{Chain, Flow, Kernel, Run, Stage, Table};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use vervet_algebra::Variable;
use vervet_expression::CompiledExpression;
use vervet_model::Result;

/// What the join does with pairs, with expressions compiled.
pub(crate) enum Kind {
    Inner,
    Left(Option<CompiledExpression>),
    Minus,
    Semi,
    Anti,
}

/// Which of the `compatible` variables are bound: bit `i` for the i-th.
type Mask = u64;

/// The most `compatible` variables of a join.
pub(crate) const COMPATIBLE_MAX: usize = 64;

pub(crate) struct Join<'a> {
    pub kind: Kind,
    pub on: Vec<Variable>,
    pub compatible: Vec<Variable>,
    pub adds: Vec<Variable>,
    pub keep: Keep,
    /// Columns of pairs: what the condition needs besides `keep`.
    pub pair_keep: Keep,
    pub right: Vec<Stage<'a>>,
    pub right_keep: Keep,
    pub table: Option<Table>,
    /// Right rows by the mask of what they bind.
    pub groups: Vec<(Mask, Vec<u32>)>,
    pub indexes: FxHashMap<(usize, Mask), FxHashMap<u64, Vec<u32>>>,
    pub pairs: Vec<(u32, u32)>,
    pub out: Batch,
}

impl<'a> Join<'a> {
    fn build(&mut self, run: &Run<'a>) -> Result<()> {
        let mut table = Table::new(run.variables);
        let keep = &self.right_keep;
        let mut sink = |batch: &mut Batch, run: &Run<'a>| {
            table.append(batch, keep, run.control)?;
            Ok(Flow::More)
        };
        let mut chain = Chain::new(&mut self.right, &mut sink, run);
        chain.push(&mut Batch::unit(run.variables))?;
        chain.finish()?;
        let mut groups: FxHashMap<Mask, Vec<u32>> = FxHashMap::default();
        for row in 0..table.batch.rows {
            let mask = mask(&self.compatible, &table.batch, row);
            groups.entry(mask).or_default().push(u32::try_from(row).map_err(|_| too_many_rows())?);
        }
        self.groups = groups.into_iter().collect();
        self.groups.sort_unstable_by_key(|group| group.0);
        self.table = Some(table);
        Ok(())
    }

    /// Calls `visit` with each right row that is compatible with a left row, and with whether they share
    /// a bound variable; stops when `visit` says so.
    fn probe(
        &mut self,
        batch: &Batch,
        row: usize,
        run: &Run<'a>,
        visit: &mut dyn FnMut(&mut Self, u32, bool) -> Result<bool>,
    ) -> Result<()> {
        let left_mask = mask(&self.compatible, batch, row);
        for group in 0..self.groups.len() {
            let shared = left_mask & self.groups[group].0;
            if !self.indexes.contains_key(&(group, shared)) {
                let index = self.index(group, shared);
                run.control.grow(16 * self.groups[group].1.len() as u64)?;
                self.indexes.insert((group, shared), index);
            }
            let hash = hash(&self.on, &self.compatible, shared, batch, row);
            // Positions, not references: `visit` needs `self`.
            let count = self.indexes[&(group, shared)].get(&hash).map_or(0, Vec::len);
            for at in 0..count {
                let right = self.indexes[&(group, shared)][&hash][at];
                let table = &self.table.as_ref().expect("built before the first probe").batch;
                let equal = |variable: &Variable| {
                    batch.value(*variable, row) == table.value(*variable, right as usize)
                };
                let agrees = self.on.iter().all(equal)
                    && (0..self.compatible.len())
                        .filter(|bit| shared >> bit & 1 == 1)
                        .all(|bit| equal(&self.compatible[bit]));
                let shares = !self.on.is_empty() || shared != 0;
                if agrees && !visit(self, right, shares)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn index(&self, group: usize, shared: Mask) -> FxHashMap<u64, Vec<u32>> {
        let table = &self.table.as_ref().expect("built before the first probe").batch;
        let mut index: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
        for &right in &self.groups[group].1 {
            let hash = hash(&self.on, &self.compatible, shared, table, right as usize);
            index.entry(hash).or_default().push(right);
        }
        index
    }

    /// Makes joined rows of `pairs` in `out`, applies the condition, and marks left rows that matched.
    fn join_pairs(&mut self, batch: &Batch, run: &Run<'a>, matched: &mut [bool]) -> Result<()> {
        let rows: Vec<u32> = self.pairs.iter().map(|pair| pair.0).collect();
        self.out.gather(batch, &rows, &self.pair_keep);
        let table = &self.table.as_ref().expect("built before the first probe").batch;
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
                .map(|&(left, right)| batch.times(left as usize).saturating_mul(table.times(right as usize)))
                .collect();
        }
        if let Kind::Left(Some(condition)) = &self.kind {
            let mut selection = Vec::new();
            condition.filter(run.evaluator, &self.out.columns, self.out.rows, &mut selection)?;
            selection.iter().for_each(|&pair| matched[rows[pair as usize] as usize] = true);
            self.out.select(&selection, &self.pair_keep);
        } else {
            rows.iter().for_each(|&row| matched[row as usize] = true);
        }
        self.out.drop_all_but(&self.keep);
        self.pairs.clear();
        Ok(())
    }

    fn push_pairs(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        let run = *next.run();
        let mut matched = vec![false; batch.rows];
        let mut flow = Flow::More;
        self.pairs.clear();
        for row in 0..batch.rows {
            let left = u32::try_from(row).unwrap_or(u32::MAX);
            self.probe(batch, row, &run, &mut |join, right, _| {
                join.pairs.push((left, right));
                if join.pairs.len() < BATCH_ROWS {
                    return Ok(true);
                }
                join.join_pairs(batch, &run, &mut matched)?;
                flow = next.push(&mut join.out)?;
                Ok(flow == Flow::More)
            })?;
            if flow == Flow::Done {
                return Ok(flow);
            }
        }
        self.join_pairs(batch, &run, &mut matched)?;
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

    fn push_existence(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        let run = *next.run();
        let (must_share, keep_found) = match self.kind {
            Kind::Minus => (true, false),
            Kind::Anti => (false, false),
            _ => (false, true),
        };
        let mut selection = Vec::new();
        for row in 0..batch.rows {
            let mut found = false;
            self.probe(batch, row, &run, &mut |_, _, shares| {
                found = shares || !must_share;
                Ok(!found)
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
        if self.table.is_none() {
            self.build(next.run())?;
        }
        match self.kind {
            Kind::Inner | Kind::Left(_) => self.push_pairs(batch, next),
            Kind::Minus | Kind::Semi | Kind::Anti => self.push_existence(batch, next),
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
    .with_hint("ask for less (more constants)")
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
