//! Cardinality feedback: a step outputs far more rows than those for which its plan was chosen.
//!
//! # Shape
//! A chain counts the rows that a stage pushes. When they leave the [validity range](ValidityRange) of the
//! step, it asks the [`Reoptimizer`](crate::Reoptimizer) of the query, which plans the query again with what
//! is known now. If another plan is better, the run ends with an error that the owner of the run expects; it
//! then starts the other plan, on the same snapshot. It may do so while no result has been passed on.
//! # Cost
//! One comparison for each batch and stage.

use crate::pipeline::control::Control;
use crate::plan::{PlanStep, ValidityRange};
use vervet_model::{Error, ErrorKind, Result};

/// Growth of the rows after which a step that runs on is looked at again.
const NEXT_LOOK: u64 = 16;

/// A step whose rows a chain counts.
#[derive(Clone, Copy)]
pub(crate) struct Watched<'a> {
    step: &'a PlanStep,
    /// Maximum rows before the reoptimizer is asked; not below those of the validity range.
    rows_max: u64,
}

impl<'a> Watched<'a> {
    /// The step, if it has a validity range.
    pub(crate) fn new(step: &'a PlanStep) -> Option<Self> {
        step.validity.map(|ValidityRange { rows_max, .. }| Self { step, rows_max })
    }

    /// Number of rows that may still be pushed after `rows_out` rows.
    pub(crate) fn rows_left(&self, rows_out: u64) -> u64 {
        self.rows_max.saturating_sub(rows_out)
    }

    /// Asks whether the run goes on after `rows_out` rows.
    #[cold]
    pub(crate) fn ask(&mut self, control: &Control<'_>, rows_in: u64, rows_out: u64) -> Result<()> {
        self.rows_max = rows_out.saturating_mul(NEXT_LOOK);
        match control.reoptimizer() {
            Some(reoptimizer) if !reoptimizer.goes_on(control, self.step, rows_in, rows_out)? => {
                Err(Error::new(ErrorKind::Cancelled, "the query is planned again"))
            }
            _ => Ok(()),
        }
    }
}
