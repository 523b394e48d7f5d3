//! Rows that are passed on together: equal ones become one row with the sum of their multiplicities.
//!
//! The receiver (a group, a distinct, the next step) gives the same result, and fewer rows move between
//! servers.

use crate::pipeline::batch::Batch;
use crate::pipeline::chain::Run;
use crate::pipeline::control::Control;
use crate::pipeline::row_table::RowTable;
use vervet_algebra::Variable;
use vervet_model::{Multiplicity, Result};

/// See the header of this file.
pub struct CombinedRows {
    rows: RowTable,
    /// Of each row; empty: the rows are a set.
    multiplicity: Vec<Multiplicity>,
    is_set: bool,
    /// Columns of a batch.
    variables: usize,
    numbers: Vec<u32>,
    counted_bytes: u64,
}

impl CombinedRows {
    /// No rows yet, with these columns. `is_set`: multiplicities do not matter.
    #[must_use]
    pub fn new(columns: &[Variable], is_set: bool, run: &Run<'_>) -> Self {
        let (rows, variables) = (RowTable::new(columns.to_vec()), run.variables());
        Self { rows, multiplicity: Vec::new(), is_set, variables, numbers: Vec::new(), counted_bytes: 0 }
    }

    /// Adds the rows of a batch.
    ///
    /// # Errors
    /// The memory cap; a multiplicity that is too large.
    pub fn add(&mut self, batch: &Batch, control: &Control<'_>) -> Result<()> {
        self.numbers.clear();
        self.rows.insert_batch(batch, &mut self.numbers)?;
        if !self.is_set {
            self.multiplicity.resize(self.rows.rows, Multiplicity::ZERO);
            for (row, &number) in self.numbers.iter().enumerate() {
                let sum = &mut self.multiplicity[number as usize];
                *sum = sum.plus(batch.times(row))?;
            }
        }
        let bytes = self.rows.size_bytes()
            + (size_of::<Multiplicity>() * self.multiplicity.capacity() + 4 * self.numbers.capacity()) as u64;
        control.recount(&mut self.counted_bytes, bytes)
    }

    /// Number of different rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows.rows
    }

    /// Takes all rows as one batch, and starts again.
    pub fn take(&mut self, control: &Control<'_>) -> Batch {
        let columns = std::mem::take(&mut self.rows.variables);
        let rows = std::mem::replace(&mut self.rows, RowTable::new(columns));
        let mut batch = Batch::new(self.variables);
        batch.rows = rows.rows;
        batch.multiplicity = std::mem::take(&mut self.multiplicity);
        let width = self.rows.variables.len();
        for (place, variable) in self.rows.variables.iter().enumerate() {
            let cells = rows.cells.iter().skip(place).step_by(width.max(1));
            batch.columns[variable.index()].extend(cells.copied());
        }
        control.shrink(std::mem::take(&mut self.counted_bytes));
        batch
    }
}
