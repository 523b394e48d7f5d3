//! What the copies of one pipeline share: tables of hash joins, sets of distinct rows.
//!
//! # Shape
//! By step. A step is told by where it stands in memory, which is sound to compare as long as the plan is
//! borrowed, and needs no numbering.

use crate::distinct::SharedRows;
use crate::join::JoinTable;
use crate::plan::{Pipeline, PlanStep, Step};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What the copies of one pipeline share; see the header of this file.
#[derive(Default)]
pub struct Shared {
    joins: FxHashMap<usize, Arc<JoinTable>>,
    rows: FxHashMap<usize, SharedRows>,
}

impl Shared {
    /// For copies of these steps. Their joins still need tables: see [`Shared::joins_of`].
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

    /// The joins of these steps and of the pipelines that run inside them, each with how many steps stand
    /// before it in the order of [`Pipeline::number_steps`].
    #[must_use]
    pub fn joins_of(steps: &[PlanStep]) -> Vec<(usize, &PlanStep)> {
        let mut joins = Vec::new();
        collect_joins(steps, 0, &mut joins);
        joins
    }

    /// Gives a join its table.
    pub fn add_join(&mut self, step: &PlanStep, table: JoinTable) {
        self.joins.insert(place(step), Arc::new(table));
    }

    pub(crate) fn join(&self, step: &PlanStep) -> Option<Arc<JoinTable>> {
        self.joins.get(&place(step)).cloned()
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
