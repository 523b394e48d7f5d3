//! VolatileBarrier: expands multiplicities before a step with volatile expressions (`RAND`, `UUID`, `BNODE`),
//! and numbers solutions if an expression needs it.
//!
//! # Shape
//! The numbers are in an additional column after those of the plan, which every step keeps. The first such
//! step assigns them, so consecutive steps see a solution under the same number.

use crate::execution::compile::repeat_rows;
use crate::execution::parallel::Partial;
use crate::pipeline::batch::{BATCH_ROWS, Batch, Keep};
use crate::pipeline::chain::{Chain, Flow, Kernel, Run, Stage};
use crate::plan::{JoinKind, Pipeline, Step};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use vervet_algebra::{Expression, Function, Variable};
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

/// Whether an expression of this step, nested pipelines excluded, satisfies `is_one`.
pub(crate) fn calls(step: &Step, is_one: &dyn Fn(&Expression) -> bool) -> bool {
    let any = |expression: &Expression| contains(expression, is_one);
    match step {
        Step::Filter(expression)
        | Step::Extend { expression, .. }
        | Step::Join { kind: JoinKind::Left(Some(expression)), .. } => any(expression),
        Step::Order { keys, .. } => keys.iter().any(|key| any(&key.expression)),
        Step::Group { aggregates, .. } => {
            aggregates.iter().any(|(_, aggregate)| aggregate.expression.as_ref().is_some_and(any))
        }
        _ => false,
    }
}

/// Whether the expression is volatile: two evaluations for equal rows may differ.
pub(crate) fn is_volatile(expression: &Expression) -> bool {
    matches!(
        expression,
        Expression::Call(Function::Rand | Function::BNode | Function::Uuid | Function::StrUuid, _)
    )
}

/// Whether some expression of these steps depends on the identity of the solution.
pub(crate) fn needs_solution(pipeline: &Pipeline) -> bool {
    let is_one = |expression: &Expression| matches!(expression, Expression::Call(Function::BNode, arguments) if !arguments.is_empty());
    pipeline
        .steps
        .iter()
        .any(|step| calls(&step.step, &is_one) || step.step.nested().iter().any(needs_solution))
}

fn contains(expression: &Expression, is_one: &dyn Fn(&Expression) -> bool) -> bool {
    let mut found = is_one(expression);
    expression.for_each_child(&mut |child| found = found || contains(child, is_one));
    found
}
