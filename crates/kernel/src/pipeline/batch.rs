//! A batch of bindings: the unit that kernels exchange.
//!
//! # Shape
//! One column of ids for each variable of the plan, all of length [`Batch::rows`]; a variable that is not
//! carried has an empty column and reads as unbound. `multiplicity` is empty (every row represents one
//! solution) or has one number for each row.
//! # Cost
//! 8 bytes for each cell, 16 for each multiplicity; only columns in a step's `keep` are ever copied.

use std::ops::Range;
use vervet_algebra::Variable;
use vervet_model::{Id, Multiplicity, Result};

/// Maximum number of rows of a batch created by a kernel.
pub const BATCH_ROWS: usize = 1024;

/// A binding table in columns: partial results of a query.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Columns by [`Variable::index`]; empty if the variable is not carried.
    pub columns: Vec<Vec<Id>>,
    /// Number of rows.
    pub rows: usize,
    /// Number of equal solutions that each row represents; empty: one each.
    pub multiplicity: Vec<Multiplicity>,
}

impl Batch {
    /// A batch without rows and without columns, for plans with this many variables.
    #[must_use]
    pub fn new(variables: usize) -> Self {
        Self { columns: vec![Vec::new(); variables], rows: 0, multiplicity: Vec::new() }
    }

    /// A batch with a single empty row.
    #[must_use]
    pub fn unit(variables: usize) -> Self {
        Self { rows: 1, ..Self::new(variables) }
    }

    /// The value of a variable in a row.
    #[inline]
    #[must_use]
    pub fn value(&self, variable: Variable, row: usize) -> Id {
        self.columns[variable.index()].get(row).copied().unwrap_or(Id::UNBOUND)
    }

    /// Number of equal solutions that a row represents.
    #[inline]
    #[must_use]
    pub fn times(&self, row: usize) -> Multiplicity {
        self.multiplicity.get(row).copied().unwrap_or(Multiplicity::ONE)
    }

    /// Removes all rows; retains the allocations.
    pub fn clear(&mut self) {
        self.columns.iter_mut().for_each(Vec::clear);
        self.multiplicity.clear();
        self.rows = 0;
    }

    /// Keeps the rows in `selection` (ascending) and the columns in `keep`.
    pub(crate) fn select(&mut self, selection: &[u32], keep: &Keep) {
        debug_assert!(selection.is_sorted_by(|a, b| a < b), "selected rows ascend");
        assert!(selection.last().is_none_or(|&last| (last as usize) < self.rows), "selected rows exist");
        if selection.len() < self.rows {
            for &column in &keep.columns {
                compact(&mut self.columns[column], selection);
            }
            compact(&mut self.multiplicity, selection);
            self.rows = selection.len();
        }
        self.drop_all_but(keep);
    }

    /// Empties the columns that are not in `keep`.
    pub(crate) fn drop_all_but(&mut self, keep: &Keep) {
        for &column in &keep.dropped {
            self.columns[column].clear();
        }
    }

    /// Copies the rows `rows` of `source`, in that order, for the columns in `keep`.
    pub(crate) fn gather(&mut self, source: &Self, rows: &[u32], keep: &Keep) {
        for &column in &keep.columns {
            gather(&source.columns[column], rows, &mut self.columns[column]);
        }
        gather(&source.multiplicity, rows, &mut self.multiplicity);
        for &column in &keep.dropped {
            self.columns[column].clear();
        }
        self.rows = rows.len();
    }

    /// Copies the columns in `keep` of all rows of `source`.
    pub(crate) fn copy_from(&mut self, source: &Self, keep: &Keep) {
        for &column in &keep.columns {
            self.columns[column].clone_from(&source.columns[column]);
        }
        for &column in &keep.dropped {
            self.columns[column].clear();
        }
        self.multiplicity.clone_from(&source.multiplicity);
        self.rows = source.rows;
    }

    /// Multiplies the multiplicities row by row and keeps the rows where the product is not zero.
    ///
    /// # Errors
    /// A product is too large for a [`Multiplicity`].
    pub(crate) fn multiply(&mut self, factors: &[u64], selection: &mut Vec<u32>, keep: &Keep) -> Result<()> {
        assert_eq!(factors.len(), self.rows, "one factor for each row");
        if factors.iter().any(|&factor| factor != 1) || !self.multiplicity.is_empty() {
            self.multiplicity.resize(self.rows, Multiplicity::ONE);
            for (times, &factor) in self.multiplicity.iter_mut().zip(factors) {
                *times = times.scale(factor)?;
            }
        }
        selection.clear();
        selection.extend((0_u32..).zip(factors).filter(|(_, factor)| **factor != 0).map(|(row, _)| row));
        self.select(selection, keep);
        Ok(())
    }

    /// Copies all columns of the rows `rows` of `source`.
    pub fn copy_rows(&mut self, source: &Self, rows: Range<usize>) {
        let copy = |from: &[Id], to: &mut Vec<Id>| {
            to.clear();
            if let Some(from) = from.get(rows.clone()) {
                to.extend_from_slice(from);
            }
        };
        for (from, to) in source.columns.iter().zip(&mut self.columns) {
            copy(from, to);
        }
        self.multiplicity.clear();
        if let Some(multiplicity) = source.multiplicity.get(rows.clone()) {
            self.multiplicity.extend_from_slice(multiplicity);
        }
        self.rows = rows.len();
    }

    /// Size in bytes, as counted against the memory cap.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        let cells: usize = self.columns.iter().map(Vec::len).sum();
        (8 * cells + size_of::<Multiplicity>() * self.multiplicity.len()) as u64
    }
}

/// The columns that a step outputs and drops, computed once for each step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keep {
    /// Kept columns.
    pub columns: Vec<usize>,
    /// All others.
    pub dropped: Vec<usize>,
}

impl Keep {
    pub(crate) fn new(keep: &[Variable], variables: usize) -> Self {
        let mut is_kept = vec![false; variables];
        keep.iter().for_each(|variable| is_kept[variable.index()] = true);
        let (columns, dropped) = (0..variables).partition(|&index| is_kept[index]);
        Self { columns, dropped }
    }
}

/// Repeats each row as often as its multiplicity. `from`: the current row, and the number of its solutions
/// already output.
pub(crate) fn repeat_rows(
    batch: &mut Batch,
    out: &mut Batch,
    keep: &Keep,
    from: &mut (usize, u128),
    capacity: usize,
) {
    let mut rows: Vec<u32> = Vec::with_capacity(capacity.min(batch.rows));
    while from.0 < batch.rows && rows.len() < capacity {
        let left = batch.times(from.0).get() - from.1;
        let take = left.min((capacity - rows.len()) as u128);
        let row = u32::try_from(from.0).unwrap_or(u32::MAX);
        rows.extend(std::iter::repeat_n(row, usize::try_from(take).unwrap_or(capacity)));
        *from = if take == left { (from.0 + 1, 0) } else { (from.0, from.1 + take) };
    }
    out.gather(batch, &rows, keep);
    out.multiplicity.clear();
}

fn compact<T: Copy>(column: &mut Vec<T>, selection: &[u32]) {
    if column.is_empty() {
        return;
    }
    for (to, &from) in selection.iter().enumerate() {
        column[to] = column[from as usize];
    }
    column.truncate(selection.len());
}

fn gather<T: Copy>(column: &[T], rows: &[u32], out: &mut Vec<T>) {
    out.clear();
    if !column.is_empty() {
        out.extend(rows.iter().map(|&row| column[row as usize]));
    }
}
