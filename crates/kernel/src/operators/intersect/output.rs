//! Output of an intersection: rows with their target vertices, or the number of targets of each row.

use crate::pipeline::batch::{Batch, Keep};
use crate::pipeline::chain::{Chain, Flow};
use vervet_algebra::Variable;
use vervet_model::{Id, Result};

/// The output; see the header.
pub(crate) struct IntersectOutput {
    target: Variable,
    count_only: bool,
    keep: Keep,
    rows: Vec<u32>,
    found: Vec<Id>,
    counts: Vec<u64>,
    selection: Vec<u32>,
    out: Batch,
}

impl IntersectOutput {
    pub(crate) fn new(target: Variable, count_only: bool, keep: Keep, variables: usize) -> Self {
        Self {
            target,
            count_only,
            keep,
            rows: Vec::new(),
            found: Vec::new(),
            counts: Vec::new(),
            selection: Vec::new(),
            out: Batch::new(variables),
        }
    }

    /// Starts a batch with this number of rows.
    pub(crate) fn start(&mut self, rows: usize) {
        self.rows.clear();
        self.found.clear();
        self.counts.clear();
        self.counts.resize(rows, 0);
    }

    /// Adds a target vertex of a row of `batch`.
    #[inline]
    pub(crate) fn add(&mut self, batch: &Batch, row: u32, id: Id, next: &mut Chain<'_, '_>) -> Result<Flow> {
        if self.count_only {
            self.counts[row as usize] += 1;
            return Ok(Flow::More);
        }
        self.rows.push(row);
        self.found.push(id);
        if self.rows.len() >= next.run().control.batch_rows() {
            self.flush(batch, next)
        } else {
            Ok(Flow::More)
        }
    }

    fn flush(&mut self, batch: &Batch, next: &mut Chain<'_, '_>) -> Result<Flow> {
        self.out.gather(batch, &self.rows, &self.keep);
        std::mem::swap(&mut self.out.columns[self.target.index()], &mut self.found);
        self.rows.clear();
        self.found.clear();
        next.push(&mut self.out)
    }

    /// Pushes the rest of the output of `batch`.
    pub(crate) fn finish(&mut self, batch: &mut Batch, next: &mut Chain<'_, '_>) -> Result<Flow> {
        if self.count_only {
            batch.multiply(&self.counts, &mut self.selection, &self.keep)?;
            return next.push(batch);
        }
        self.flush(batch, next)
    }
}
