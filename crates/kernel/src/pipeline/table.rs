//! Rows buffered by a barrier: columns without a limit on their length, counted against the memory cap.

use crate::pipeline::batch::{Batch, Keep};
use crate::pipeline::control::Control;
use vervet_model::{Id, Multiplicity, Result};

/// Rows buffered by a barrier: a batch without a limit on its rows.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub batch: Batch,
    pub counted_bytes: u64,
}

impl Table {
    pub(crate) fn new(variables: usize) -> Self {
        Self { batch: Batch::new(variables), counted_bytes: 0 }
    }

    /// Appends the columns in `keep`.
    pub(crate) fn append(&mut self, batch: &Batch, keep: &Keep, control: &Control<'_>) -> Result<()> {
        for &column in &keep.columns {
            let source = &batch.columns[column];
            let target = &mut self.batch.columns[column];
            if source.is_empty() {
                target.resize(self.batch.rows + batch.rows, Id::UNBOUND);
            } else {
                target.extend_from_slice(source);
            }
        }
        if !batch.multiplicity.is_empty() || !self.batch.multiplicity.is_empty() {
            self.batch.multiplicity.resize(self.batch.rows, Multiplicity::ONE);
            self.batch.multiplicity.extend((0..batch.rows).map(|row| batch.times(row)));
        }
        self.batch.rows += batch.rows;
        self.recount(control)
    }

    /// Counts the growth in bytes since the last call.
    pub(crate) fn recount(&mut self, control: &Control<'_>) -> Result<()> {
        // Capacity counts, used or not.
        let cells: usize = self.batch.columns.iter().map(Vec::capacity).sum();
        let bytes = (8 * cells + size_of::<Multiplicity>() * self.batch.multiplicity.capacity()) as u64;
        control.recount(&mut self.counted_bytes, bytes)
    }
}
