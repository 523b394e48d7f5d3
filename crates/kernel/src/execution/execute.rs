//! Single-threaded execution of a plan.

use crate::execution::compile::stages_from_one_row;
use crate::execution::volatile::needs_solution;
use crate::pipeline::batch::{BATCH_ROWS, Batch, Keep, repeat_rows};
use crate::pipeline::chain::{Chain, Flow, Run, Stage};
use crate::pipeline::control::Control;
use crate::plan::{Plan, PlanStep, Profile, Step, StepProfile};
use std::sync::atomic::AtomicU64;
use vervet_algebra::Variable;
use vervet_expression::Evaluator;
use vervet_model::Result;
use vervet_snapshot::Snapshot;

/// Runs `plan` from the row `input`, which binds its parameters, and passes every batch of results to `sink`.
/// Each row is one solution. The columns of [`Plan::result`] have values; an empty column is unbound in all
/// rows.
///
/// With `profile` it returns the profile of each step, in the order of
/// [`crate::plan::Pipeline::number_steps`]; time measurement costs some 50 ns for each batch and step.
///
/// # Errors
/// Those of [`Control`], of the store, and of `sink`.
pub fn execute(
    plan: &Plan,
    snapshot: &dyn Snapshot,
    evaluator: &Evaluator<'_>,
    control: &Control<'_>,
    input: &mut Batch,
    profile: bool,
    sink: &mut dyn FnMut(&Batch) -> Result<Flow>,
) -> Result<Profile> {
    control.check()?;
    if ends_early(plan) {
        control.start_with_small_batches();
    }
    let solutions = AtomicU64::new(0);
    let run = Run::new(plan, snapshot, evaluator, control, &solutions, profile);
    input.columns.resize(run.variables, Vec::new());
    let mut stages = stages_from_one_row(&plan.pipeline, &run)?;
    let mut results = Results::new(plan, &run);
    let mut last = |batch: &mut Batch, run: &Run<'_>| results.push(batch, run.control, sink);
    let mut chain = Chain::new(&mut stages, &mut last, &run);
    chain.push(input)?;
    chain.finish()?;
    let mut figures = Profile::default();
    if profile {
        figures = Profile::new(&plan.pipeline);
        add_figures(&plan.pipeline.steps, stages.iter(), &mut figures.steps);
    }
    Ok(figures)
}

/// Whether the plan ends after few rows, and no barrier needs all rows before.
#[must_use]
pub fn ends_early(plan: &Plan) -> bool {
    let Some((last, before)) = plan.pipeline.steps.split_last() else { return false };
    let Step::Slice { start, length: Some(length) } = last.step else { return false };
    let is_barrier = |step: &PlanStep| matches!(step.step, Step::Group { .. } | Step::Order { .. });
    start.saturating_add(length) < BATCH_ROWS / 8 && !before.iter().any(is_barrier)
}

/// The end of a plan: expands the multiplicity of rows into solutions.
pub struct Results {
    keep: Keep,
    out: Batch,
}

impl Results {
    /// The results of one run of `plan`.
    #[must_use]
    pub fn new(plan: &Plan, run: &Run<'_>) -> Self {
        Self { keep: Keep::new(&plan.result, run.variables), out: Batch::new(run.variables) }
    }

    /// Passes the solutions of a batch to `sink`.
    ///
    /// # Errors
    /// Those of [`Control::check`] and of `sink`.
    pub fn push(
        &mut self,
        batch: &mut Batch,
        control: &Control<'_>,
        sink: &mut dyn FnMut(&Batch) -> Result<Flow>,
    ) -> Result<Flow> {
        if batch.multiplicity.is_empty() {
            return sink(batch);
        }
        let mut from = (0, 0);
        while from.0 < batch.rows {
            control.check()?;
            repeat_rows(batch, &mut self.out, &self.keep, &mut from, BATCH_ROWS);
            if sink(&self.out)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    }
}

/// The column of solution numbers, after those of the plan, if the plan calls `BNODE` with a text: for
/// [`Evaluator::with_solution`].
#[must_use]
pub fn solution_column(plan: &Plan) -> Option<Variable> {
    let column = u16::try_from(plan.variables.len()).ok()?;
    needs_solution(&plan.pipeline).then_some(Variable(column))
}

/// Adds the counters of stages to the profiles of their steps, numbered by
/// [`crate::plan::Pipeline::number_steps`]. A step whose pipelines ran elsewhere has no nested stages.
pub(crate) fn add_figures<'s, 'a: 's>(
    steps: &[PlanStep],
    mut stages: impl Iterator<Item = &'s Stage<'a>>,
    figures: &mut [StepProfile],
) {
    let mut number = 0;
    for (step, stage) in steps.iter().zip(&mut stages) {
        figures[number].add(&StepProfile {
            rows_in: stage.rows_in,
            rows_out: stage.rows_out,
            nanoseconds: stage.nanoseconds.saturating_sub(stage.nanoseconds_pushed),
        });
        let inner = stage.kernel.inner();
        let mut inner = inner.as_slice();
        let mut start = number + 1;
        for nested in step.step.nested() {
            let (here, rest) = inner.split_at(nested.steps.len().min(inner.len()));
            add_figures(&nested.steps, here.iter().copied(), &mut figures[start..]);
            start += nested.number_steps();
            inner = rest;
        }
        number += step.step.number_steps();
    }
}
