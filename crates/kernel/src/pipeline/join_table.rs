//! The build side of a hash join: its rows, grouped by the variables that they bind, and hash indexes of the
//! groups. See the header of the join for shape and cost.

use crate::pipeline::batch::{Batch, Keep};
use crate::pipeline::control::Control;
use crate::pipeline::range_index::{RangeCondition, RangeIndex, across};
use crate::pipeline::table::Table;
use crate::plan::{JoinKind, PlanStep, Step};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use vervet_algebra::{Comparator, Variable};
use vervet_expression::{Evaluator, OrderClass};
use vervet_model::{Error, Multiplicity, Result};

/// Bit mask of the bound `compatible` variables: bit `i` for the i-th.
pub(crate) type Mask = u64;

/// Hash index of one group by some columns. Rows are positions in the group; rows with an equal hash are an
/// ascending chain.
#[derive(Default)]
pub(crate) struct Index {
    pub first: FxHashMap<u64, u32>,
    /// Next row of the chain, by row; [`END`] ends a chain.
    pub next: Vec<u32>,
    /// Of a join with a range condition, in place of the hash index.
    pub ranges: Option<RangeIndex>,
}

pub(crate) const END: u32 = u32::MAX;

/// A condition `right comparator left` on the pairs of a semi- or anti-join.
///
/// Whether a left row has a match depends only on the extreme right value of its key in each
/// [`OrderClass`]: the index has no other rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison {
    pub left: Variable,
    pub right: Variable,
    pub comparator: Comparator,
}

impl Comparison {
    /// The comparison that is the condition of a join.
    pub(crate) fn of(step: &Step) -> Option<Self> {
        let Step::Join {
            kind: JoinKind::Semi(condition) | JoinKind::Anti(condition), compatible, adds, ..
        } = step
        else {
            return None;
        };
        let (comparator, left, right) = across(condition.as_ref()?, compatible, adds)?;
        Some(Self { left, right, comparator })
    }

    /// The comparator that holds between a more extreme value and a less extreme one.
    fn strict(self) -> Comparator {
        match self.comparator {
            Comparator::Less | Comparator::LessOrEqual => Comparator::Less,
            Comparator::Greater | Comparator::GreaterOrEqual => Comparator::Greater,
        }
    }
}

/// The build side of a join, shared by the copies of the join in several threads.
pub struct JoinTable {
    on: Vec<Variable>,
    compatible: Vec<Variable>,
    keep: Keep,
    comparison: Option<Comparison>,
    /// Only without `comparison`.
    pub(crate) range: Option<RangeCondition>,
    pub(crate) table: Table,
    /// Rows by the mask of their bound variables.
    pub(crate) groups: Vec<(Mask, Vec<u32>)>,
    /// Indexes by group and mask, built on first use.
    indexes: Mutex<FxHashMap<(usize, Mask), Arc<Index>>>,
}

impl JoinTable {
    /// The empty table of a join. `variables`: the number of columns of a batch.
    ///
    /// # Errors
    /// `step` is not a join.
    pub fn new(step: &PlanStep, variables: usize) -> Result<Self> {
        let Step::Join { on, compatible, adds, .. } = &step.step else {
            return Err(Error::internal("a step that is not a join has no right side"));
        };
        let needed = [on.as_slice(), compatible, adds].concat();
        let comparison = Comparison::of(&step.step);
        let range = if comparison.is_some() { None } else { RangeCondition::of(&step.step) };
        Ok(Self {
            on: on.clone(),
            compatible: compatible.clone(),
            keep: Keep::new(&needed, variables),
            comparison,
            range,
            table: Table::new(variables),
            groups: Vec::new(),
            indexes: Mutex::default(),
        })
    }

    /// Adds rows of the right side. Without columns they are one row, whose multiplicity is their number.
    ///
    /// # Errors
    /// The memory cap; the number is too large for a [`Multiplicity`].
    pub fn append(&mut self, batch: &Batch, control: &Control<'_>) -> Result<()> {
        if self.keep.columns.is_empty() {
            let table = &mut self.table.batch;
            let before = if table.rows == 0 { Multiplicity::ZERO } else { table.times(0) };
            let sum = match batch.multiplicity.is_empty() {
                true => before.plus(Multiplicity::new(batch.rows as u64))?,
                false => batch.multiplicity.iter().try_fold(before, |sum, times| sum.plus(*times))?,
            };
            if batch.rows > 0 {
                (table.rows, table.multiplicity) = (1, vec![sum]);
            }
            return Ok(());
        }
        self.table.append(batch, &self.keep, control)
    }

    /// The rows so far, with the columns that the join needs.
    #[must_use]
    pub fn rows(&self) -> &Batch {
        &self.table.batch
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
    pub(crate) fn index(
        &self,
        group: usize,
        shared: Mask,
        evaluator: &Evaluator<'_>,
        control: &Control<'_>,
    ) -> Result<Arc<Index>> {
        // Only complete indexes are inserted, so a panic elsewhere does not corrupt the map.
        let mut indexes = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = indexes.get(&(group, shared)) {
            return Ok(Arc::clone(index));
        }
        let rows = &self.groups[group].1;
        control.grow(4 * rows.len() as u64)?;
        let index = Arc::new(match (self.comparison, &self.range) {
            (Some(comparison), _) => self.index_of_extremes(rows, shared, comparison, evaluator, control)?,
            (None, Some(range)) => self.index_of_ranges(rows, shared, range, evaluator, control)?,
            (None, None) => self.index_of_all(rows, shared, control)?,
        });
        indexes.insert((group, shared), Arc::clone(&index));
        Ok(index)
    }

    fn index_of_all(&self, rows: &[u32], shared: Mask, control: &Control<'_>) -> Result<Index> {
        let mut index = Index { next: vec![END; rows.len()], ..Index::default() };
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
        Ok(index)
    }

    fn index_of_ranges(
        &self,
        rows: &[u32],
        shared: Mask,
        range: &RangeCondition,
        evaluator: &Evaluator<'_>,
        control: &Control<'_>,
    ) -> Result<Index> {
        let table = &self.table.batch;
        let of_mask = self.compatible.iter().enumerate().filter(|(bit, _)| shared >> bit & 1 == 1);
        let key: Vec<Variable> = self.on.iter().copied().chain(of_mask.map(|(_, one)| *one)).collect();
        let hash = |row: usize| hash(&self.on, &self.compatible, shared, table, row);
        let ranges = RangeIndex::new(rows, hash, &key, range.right, table, evaluator, control)?;
        Ok(Index { ranges: Some(ranges), ..Index::default() })
    }

    /// The index without rows that another row of the same key makes irrelevant; see [`Comparison`]. Rows of
    /// ordered classes come first in a chain, so a walk ends at the first row without a class.
    fn index_of_extremes(
        &self,
        rows: &[u32],
        shared: Mask,
        comparison: Comparison,
        evaluator: &Evaluator<'_>,
        control: &Control<'_>,
    ) -> Result<Index> {
        let batch = &self.table.batch;
        let mut index = Index { next: vec![END; rows.len()], ..Index::default() };
        let mut classes = vec![OrderClass::Never; rows.len()];
        let mut counted = 0;
        control.grow((size_of::<OrderClass>() * rows.len()) as u64)?;
        for (at, &right) in rows.iter().enumerate() {
            control.work(1)?;
            let value = batch.value(comparison.right, right as usize);
            let class = evaluator.order_class(value)?;
            classes[at] = class;
            if class == OrderClass::Never {
                continue;
            }
            let at = u32::try_from(at).map_err(|_| too_many_rows())?;
            let hash = hash(&self.on, &self.compatible, shared, batch, right as usize);
            let (mut before, mut found) = (END, index.first.get(&hash).copied().unwrap_or(END));
            let mut is_better = true;
            while found != END && classes[found as usize] != OrderClass::Alone {
                control.work(1)?;
                let other = rows[found as usize];
                if classes[found as usize] == class && self.has_key_of(shared, right, other) {
                    let known = batch.value(comparison.right, other as usize);
                    is_better = evaluator.holds(comparison.strict(), value, known)? == Some(true);
                    found = if is_better { index.next[found as usize] } else { found };
                    break;
                }
                (before, found) = (found, index.next[found as usize]);
            }
            if !is_better {
                continue;
            }
            index.next[at as usize] = found;
            match before {
                END => _ = index.first.insert(hash, at),
                before => index.next[before as usize] = at,
            }
            control.recount(&mut counted, 17 * index.first.capacity() as u64)?;
        }
        control.shrink((size_of::<OrderClass>() * rows.len()) as u64);
        Ok(index)
    }

    /// Whether a left row has the key of a row of the table.
    pub(crate) fn has_key_of_left(&self, shared: Mask, right: u32, left: &Batch, row: usize) -> bool {
        let equal = |variable: &Variable| {
            self.table.batch.value(*variable, right as usize) == left.value(*variable, row)
        };
        self.on.iter().all(equal)
            && (self.compatible.iter().enumerate())
                .all(|(bit, variable)| shared >> bit & 1 == 0 || equal(variable))
    }

    /// Whether two rows of a group have equal keys.
    fn has_key_of(&self, shared: Mask, a: u32, b: u32) -> bool {
        let batch = &self.table.batch;
        let equal =
            |variable: &Variable| batch.value(*variable, a as usize) == batch.value(*variable, b as usize);
        self.on.iter().all(equal)
            && (self.compatible.iter().enumerate())
                .all(|(bit, variable)| shared >> bit & 1 == 0 || equal(variable))
    }
}

fn too_many_rows() -> vervet_model::Error {
    vervet_model::Error::new(
        vervet_model::ErrorKind::MemoryLimit,
        "one side of a join has more than 4,294,967,295 rows",
    )
    .with_hint("restrict the query (more constants)")
}

pub(crate) fn mask(variables: &[Variable], batch: &Batch, row: usize) -> Mask {
    let bits = variables.iter().enumerate().filter(|(_, variable)| batch.value(**variable, row).is_bound());
    bits.fold(0, |mask, (bit, _)| mask | 1 << bit)
}

pub(crate) fn hash(on: &[Variable], compatible: &[Variable], shared: Mask, batch: &Batch, row: usize) -> u64 {
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
