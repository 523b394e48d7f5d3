//! VolatileBarrier: expands multiplicities before a step with volatile expressions (`RAND`, `UUID`, `BNODE`),
//! and numbers solutions if an expression needs it.
//!
//! # Shape
//! The numbers are in an additional column after those of the plan, which every step keeps. The first such
//! step assigns them, so consecutive steps see a solution under the same number.

use crate::pipeline::batch::{BATCH_ROWS, Batch, Keep, repeat_rows};
use crate::pipeline::chain::{Chain, Flow, Kernel, Run, Stage};
use crate::pipeline::partial::Partial;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use vervet_algebra::Variable;
use vervet_model::{Id, Result};

pub(crate) struct VolatileBarrier<'a> {
    pub kernel: Box<dyn Kernel<'a> + 'a>,
    /// All columns.
    pub all: Keep,
    pub out: Batch,
}

impl<'a> Kernel<'a> for VolatileBarrier<'a> {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        let run = *next.run();
        if batch.multiplicity.is_empty() {
            number(batch, run.solution, run.solutions);
            return self.kernel.push(batch, next);
        }
        let mut from = (0, 0);
        while from.0 < batch.rows {
            run.control.check()?;
            repeat_rows(batch, &mut self.out, &self.all, &mut from, BATCH_ROWS);
            number(&mut self.out, run.solution, run.solutions);
            if self.kernel.push(&mut self.out, next)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    }

    fn finish(&mut self, next: &mut Chain<'_, 'a>) -> Result<()> {
        self.kernel.finish(next)
    }

    fn partial(&mut self, run: &Run<'a>) -> Result<Partial<'a>> {
        self.kernel.partial(run)
    }

    fn merge(&mut self, partial: Partial<'a>, run: &Run<'a>) -> Result<()> {
        self.kernel.merge(partial, run)
    }

    fn inner(&self) -> Vec<&Stage<'a>> {
        self.kernel.inner()
    }
}

/// Assigns numbers to the rows without one.
fn number(batch: &mut Batch, solution: Option<Variable>, last: &AtomicU64) {
    let Some(solution) = solution else { return };
    let column = &mut batch.columns[solution.index()];
    column.resize(batch.rows, Id::UNBOUND);
    for id in column.iter_mut().filter(|id| !id.is_bound()) {
        // Only one thread assigns numbers: see `needs_one_thread`.
        *id = Id::vertex(last.fetch_add(1, Relaxed) + 1);
    }
}
