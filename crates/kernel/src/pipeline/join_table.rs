//! The build side of a hash join: its rows, grouped by the variables that they bind, and hash indexes of the
//! groups. See the header of the join for shape and cost.

use crate::pipeline::batch::{Batch, Keep};
use crate::pipeline::control::Control;
use crate::pipeline::table::Table;
use crate::plan::{PlanStep, Step};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use vervet_algebra::Variable;
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
}

pub(crate) const END: u32 = u32::MAX;

/// The build side of a join, shared by the copies of the join in several threads.
pub struct JoinTable {
    on: Vec<Variable>,
    compatible: Vec<Variable>,
    keep: Keep,
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
        Ok(Self {
            on: on.clone(),
            compatible: compatible.clone(),
            keep: Keep::new(&needed, variables),
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
    pub(crate) fn index(&self, group: usize, shared: Mask, control: &Control<'_>) -> Result<Arc<Index>> {
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
