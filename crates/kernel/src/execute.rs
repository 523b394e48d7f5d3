//! Runs a plan on the calling thread.

use crate::batch::{BATCH_ROWS, Batch, Keep};
use crate::chain::{Chain, Flow, Run, Stage};
use crate::compile::{repeat_rows, stages_from_one_row};
use crate::control::Control;
use crate::once::needs_solution;
use crate::plan::{Plan, Profile, StepProfile};
use std::cell::Cell;
use vervet_algebra::Variable;
use vervet_expression::Evaluator;
use vervet_model::Result;
use vervet_snapshot::Snapshot;

/// Runs `plan` from the row `input`, which binds its parameters, and hands every batch of results to
/// `sink`; the columns of [`Plan::result`] are filled (an empty column: unbound in all rows), and each row
/// is one solution.
///
/// With `profile` it returns what each step did, numbered as [`crate::plan::Pipeline::number_steps`] says; taking
/// times costs some 50 ns for each batch and step.
///
/// # Errors
/// Those of [`Control`], of the store, and of `sink`.
pub fn execute(
    plan: &Plan,
    snapshot: &dyn Snapshot,
    evaluator: &Evaluator<'_>,
    control: &Control,
    input: &mut Batch,
    profile: bool,
    sink: &mut dyn FnMut(&Batch) -> Result<Flow>,
) -> Result<Profile> {
    let solution = evaluator.solution().filter(|column| column.index() == plan.variables.len());
    let variables = plan.variables.len() + usize::from(solution.is_some());
    let solutions = &Cell::new(0);
    let run = Run { snapshot, evaluator, control, variables, profile, solution, solutions };
    input.columns.resize(variables, Vec::new());
    let mut stages = stages_from_one_row(&plan.pipeline, &run)?;
    let keep = Keep::new(&plan.result, run.variables);
    let mut out = Batch::new(run.variables);
    let mut last = |batch: &mut Batch, _: &Run<'_>| {
        if batch.multiplicity.is_empty() {
            return sink(batch);
        }
        let mut from = (0, 0);
        while from.0 < batch.rows {
            control.check()?;
            repeat_rows(batch, &mut out, &keep, &mut from, BATCH_ROWS);
            if sink(&out)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    };
    let mut chain = Chain::new(&mut stages, &mut last, &run);
    chain.push(input)?;
    chain.finish()?;
    let mut figures = Profile::default();
    if profile {
        stages.iter().for_each(|stage| collect(stage, &mut figures));
    }
    Ok(figures)
}

/// The column, behind those of the plan, that numbers solutions, if the plan calls `BNODE` with a text: for
/// [`Evaluator::with_solution`].
#[must_use]
pub fn solution_column(plan: &Plan) -> Option<Variable> {
    let column = u16::try_from(plan.variables.len()).ok()?;
    needs_solution(&plan.pipeline).then_some(Variable(column))
}

/// Depth first, as [`crate::plan::Pipeline::number_steps`] numbers steps.
fn collect(stage: &Stage<'_>, figures: &mut Profile) {
    figures.steps.push(StepProfile {
        rows_in: stage.rows_in,
        rows_out: stage.rows_out,
        nanoseconds: stage.nanoseconds.saturating_sub(stage.nanoseconds_pushed),
    });
    for stage in stage.kernel.inner() {
        collect(stage, figures);
    }
}
