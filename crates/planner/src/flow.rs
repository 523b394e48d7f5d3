//! A pipeline in the making and what is known about the rows at its end.

use crate::classes::{ClassSet, Classes, mix};
use crate::domain::{Domains, domain};
use crate::set::VariableSet;
use std::collections::BTreeMap;
use std::rc::Rc;
use vervet_algebra::Variable;
use vervet_kernel::plan::{Pipeline, PlanStep, Step};
use vervet_model::Id;

/// Steps that belong to one flow alone, as a pipeline.
pub(crate) fn pipeline(steps: Vec<Rc<PlanStep>>) -> Pipeline {
    Pipeline { steps: steps.into_iter().map(Rc::unwrap_or_clone).collect() }
}

/// See the header of this file.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    /// Steps so far; `keep` is filled in when the whole plan is known. Alternatives share the steps that they begin with.
    pub(crate) steps: Vec<Rc<PlanStep>>,
    /// Estimated rows.
    pub(crate) rows: f64,
    /// Estimated cost in ns.
    pub(crate) cost: f64,
    /// Variables that some row may bind.
    pub(crate) possible: VariableSet,
    /// Variables that every row binds.
    pub(crate) certain: VariableSet,
    /// Exact supersets of the classes of certain variables.
    pub(crate) domains: Domains,
    /// Estimated classes.
    pub(crate) classes: Classes,
    /// Variables that have the same value in all rows.
    pub(crate) constants: BTreeMap<Variable, Id>,
    /// Whether there is exactly one row, which binds parameters at most, and this pipeline runs once.
    pub(crate) unit: bool,
    /// Whether there is provably no row.
    pub(crate) empty: bool,
}

impl Flow {
    /// One row that binds `bound`.
    pub(crate) fn start(bound: &VariableSet) -> Self {
        Self {
            steps: Vec::new(),
            rows: 1.0,
            cost: 0.0,
            possible: bound.clone(),
            certain: bound.clone(),
            domains: Domains::new(),
            classes: Classes::new(),
            constants: BTreeMap::new(),
            unit: true,
            empty: false,
        }
    }

    /// A nested pipeline that receives the rows of this one.
    pub(crate) fn nested(&self) -> Self {
        Self { steps: Vec::new(), unit: false, ..self.clone() }
    }

    /// Adds a step after which `rows` rows are expected.
    pub(crate) fn push(&mut self, step: Step, rows: f64) {
        if self.empty {
            return;
        }
        self.unit = false;
        self.rows = rows;
        self.steps.push(Rc::new(PlanStep { step, keep: Vec::new(), rows }));
    }

    /// Nothing comes out: what was planned so far need not run.
    pub(crate) fn make_empty(&mut self) {
        self.steps.clear();
        self.push(Step::Empty, 0.0);
        self.cost = 0.0;
        self.empty = true;
    }

    /// The value that `variable` has in all rows.
    pub(crate) fn constant(&self, variable: Variable) -> Option<Id> {
        self.constants.get(&variable).copied()
    }

    /// Takes over what the branches of a union (not empty, all from this flow) know; returns their
    /// pipelines.
    pub(crate) fn merge(&mut self, branches: Vec<Self>) -> Vec<Pipeline> {
        let before = self.cost;
        let mut branches = branches.into_iter();
        let Some(mut all) = branches.next() else { return Vec::new() };
        let mut pipelines = vec![pipeline(std::mem::take(&mut all.steps))];
        for branch in branches {
            let of_both: Domains = all
                .domains
                .iter()
                .filter(|(variable, _)| branch.domains.iter().any(|(other, _)| other == variable))
                .map(|(variable, classes)| (*variable, classes.union(&domain(&branch.domains, *variable))))
                .filter(|(_, classes)| *classes != ClassSet::ALL)
                .collect();
            all.domains = of_both;
            let mut mixed = Classes::new();
            for (variable, classes) in &all.classes {
                if let Some((_, other)) = branch.classes.iter().find(|(other, _)| other == variable) {
                    mixed.push((*variable, mix(classes, all.rows, other, branch.rows)));
                }
            }
            all.classes = mixed;
            all.constants.retain(|variable, id| branch.constants.get(variable) == Some(id));
            all.possible.add_all(&branch.possible);
            all.certain.keep_all(&branch.certain);
            all.rows += branch.rows;
            all.cost += branch.cost - before;
            pipelines.push(pipeline(branch.steps));
        }
        let steps = std::mem::take(&mut self.steps);
        *self = Self { steps, unit: false, empty: false, ..all };
        pipelines
    }
}
