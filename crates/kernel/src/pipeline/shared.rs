//! State shared by the copies of one pipeline: hash join tables, sets of distinct rows, frontiers.
//!
//! # Shape
//! Maps from steps. The address of a step identifies it: comparing addresses is sound while the plan is
//! borrowed, and needs no numbering.

use crate::pipeline::first_rows::{FirstRowsOfStep, SharedFrontiers};
use crate::pipeline::join_table::JoinTable;
use crate::pipeline::row_table::SharedRows;
use crate::plan::{Pipeline, PlanStep, Step};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// State shared by the copies of one pipeline; see the header.
#[derive(Default)]
pub struct Shared {
    joins: FxHashMap<usize, Arc<JoinTable>>,
    rows: FxHashMap<usize, SharedRows>,
    frontiers: FxHashMap<usize, FirstRowsOfStep>,
}

impl Shared {
    /// Shared state for copies of these steps. Their joins still need tables: see [`Shared::joins_of`].
    #[must_use]
    pub fn new(steps: &[PlanStep]) -> Self {
        let mut shared = Self::default();
        for step in steps {
            if let Step::Distinct { variables } = &step.step {
                shared.rows.insert(place(step), SharedRows::new(variables));
            }
        }
        shared
    }

    /// The joins of these steps and of their nested pipelines, each with the number of steps before it in the
    /// order of [`Pipeline::number_steps`].
    #[must_use]
    pub fn joins_of(steps: &[PlanStep]) -> Vec<(usize, &PlanStep)> {
        let mut joins = Vec::new();
        collect_joins(steps, 0, &mut joins);
        joins
    }

    /// Registers the table of a join.
    pub fn add_join(&mut self, step: &PlanStep, table: JoinTable) {
        self.joins.insert(place(step), Arc::new(table));
    }

    /// The table of a join, if it was registered.
    #[must_use]
    pub fn join_table(&self, step: &PlanStep) -> Option<&JoinTable> {
        self.joins.get(&place(step)).map(|table| &**table)
    }

    pub(crate) fn join(&self, step: &PlanStep) -> Option<Arc<JoinTable>> {
        self.joins.get(&place(step)).cloned()
    }

    /// The frontiers among these steps are those of other runs of the steps too. Not those of nested
    /// pipelines, whose rows are numbered anew in each run.
    pub fn add_frontiers(&mut self, steps: &[PlanStep], frontiers: &SharedFrontiers) {
        for (number, step) in steps.iter().enumerate() {
            if let Step::Frontier { variables } = &step.step {
                self.frontiers.insert(place(step), frontiers.of_step(number, variables));
            }
        }
    }

    pub(crate) fn frontier(&self, step: &PlanStep) -> Option<FirstRowsOfStep> {
        self.frontiers.get(&place(step)).cloned()
    }

    pub(crate) fn rows(&self, step: &PlanStep) -> Option<&SharedRows> {
        self.rows.get(&place(step))
    }
}

fn place(step: &PlanStep) -> usize {
    std::ptr::from_ref(step).addr()
}

fn collect_joins<'p>(steps: &'p [PlanStep], mut number: usize, joins: &mut Vec<(usize, &'p PlanStep)>) {
    for step in steps {
        match &step.step {
            Step::Join { .. } => joins.push((number, step)),
            other => {
                let mut start = number + 1;
                for nested in other.nested() {
                    collect_joins(&nested.steps, start, joins);
                    start += Pipeline::number_steps(nested);
                }
            }
        }
        number += step.step.number_steps();
    }
}
