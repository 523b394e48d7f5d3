//! A pipeline under construction, with the derived properties of its output rows.

use crate::classes::{ClassSet, Classes, mix};
use crate::corrections;
use crate::domain::{Domains, domain, narrow};
use crate::key_joins::{Ends, mix_ends};
use crate::liveness::columns_after;
use std::collections::BTreeMap;
use std::rc::Rc;
use vervet_algebra::{Variable, VariableSet};
use vervet_kernel::plan::{Pipeline, PlanStep, Step};
use vervet_model::Id;

/// Turns the steps of a partial plan, of which it is the only owner, into a pipeline.
pub(crate) fn pipeline(steps: Vec<Rc<PlanStep>>) -> Pipeline {
    Pipeline { steps: steps.into_iter().map(Rc::unwrap_or_clone).collect() }
}

/// Maximum number of variables with known runs; in longer queries those bound first.
const RUNS_MAX: usize = 64;

/// Estimated number of runs of equal consecutive values of each variable: the number of rows when it was
/// bound, since each step preserves the order of its input rows.
#[derive(Clone, Default, Debug)]
pub(crate) struct Runs(Vec<(Variable, f64)>);

impl Runs {
    /// The number of runs of `variable`, if known.
    pub(crate) fn of(&self, variable: Variable) -> Option<f64> {
        self.0.iter().find(|(of, _)| *of == variable).map(|(_, runs)| *runs)
    }

    /// Sets an upper bound on the runs of a variable that the last step has bound.
    pub(crate) fn limit(&mut self, variable: Variable, most: f64) {
        if let Some((_, runs)) = self.0.iter_mut().find(|(of, _)| *of == variable) {
            *runs = runs.min(most);
        }
    }

    /// Updates the runs after a step with `rows` output rows.
    fn after(&mut self, step: &Step, rows: f64) {
        match step {
            // Equal rows need not be consecutive afterwards.
            Step::Order { .. } | Step::Group { .. } => self.0.clear(),
            Step::Distinct { variables } => {
                let these = self.0.iter_mut().filter(|(of, _)| variables.contains(of));
                these.for_each(|(_, runs)| *runs = runs.min(rows));
            }
            step => {
                for variable in columns_after(step, &VariableSet::default()).iter() {
                    if self.0.len() < RUNS_MAX && self.of(variable).is_none() {
                        self.0.push((variable, rows));
                    }
                }
            }
        }
    }
}

/// A pipeline under construction; see the header.
#[derive(Clone, Debug)]
pub(crate) struct PartialPlan {
    /// Steps so far; `keep` is set when the plan is complete. Alternatives share their common prefix of
    /// steps.
    pub(crate) steps: Vec<Rc<PlanStep>>,
    /// Estimated rows.
    pub(crate) rows: f64,
    /// Estimated cost in ns.
    pub(crate) cost: f64,
    /// Variables that some row may bind.
    pub(crate) possible: VariableSet,
    /// Variables that every row binds.
    pub(crate) certain: VariableSet,
    /// Supersets of the classes of certain variables.
    pub(crate) domains: Domains,
    /// Estimated class distributions.
    pub(crate) classes: Classes,
    /// Ends of predicates that have bound variables.
    pub(crate) ends: Ends,
    /// Estimated runs of equal values.
    pub(crate) runs: Runs,
    /// Variables that have the same value in all rows.
    pub(crate) constants: BTreeMap<Variable, Id>,
    /// Whether the partial plan is the single initial row, which binds at most parameters, and the pipeline
    /// runs once.
    pub(crate) unit: bool,
    /// Whether the partial plan is provably empty.
    pub(crate) empty: bool,
    /// Whether it is nested in a step that needs to know the row from which each of its rows comes.
    pub(crate) by_row: bool,
}

impl PartialPlan {
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
            ends: Ends::new(),
            runs: Runs::default(),
            constants: BTreeMap::new(),
            unit: true,
            empty: false,
            by_row: false,
        }
    }

    /// A nested pipeline that receives the rows of this one.
    pub(crate) fn nested(&self) -> Self {
        Self { steps: Vec::new(), unit: false, ..self.clone() }
    }

    /// A nested pipeline that receives the rows of this one, each with its position.
    pub(crate) fn nested_by_row(&self) -> Self {
        Self { by_row: true, ..self.nested() }
    }

    /// A nested pipeline that receives `rows` values of `variable`, which all rows of this partial plan bind.
    pub(crate) fn seeds(&self, variable: Variable, rows: f64) -> Self {
        let one = VariableSet::from_iter([variable]);
        let mut seeds = Self { rows, cost: self.cost, unit: false, by_row: true, ..Self::start(&one) };
        seeds.domains.extend(self.domains.iter().filter(|(of, _)| *of == variable).copied());
        seeds.classes.extend(self.classes.iter().filter(|(of, _)| *of == variable).cloned());
        seeds.ends.extend(self.ends.iter().filter(|(of, _)| *of == variable).cloned());
        seeds.constants.extend(self.constant(variable).map(|id| (variable, id)));
        seeds
    }

    /// Adds a step after which `rows` rows are expected.
    pub(crate) fn push(&mut self, step: Step, rows: f64) {
        if self.empty {
            return;
        }
        self.unit = false;
        self.rows = rows;
        self.runs.after(&step, rows);
        self.steps.push(Rc::new(PlanStep { step, keep: Vec::new(), rows, validity: None }));
    }

    /// [`PartialPlan::push`] of a step that has, with earlier ones, joined the patterns of this range of
    /// keys. `unexpected`: see [`crate::PlanOptions::unexpected_rows`].
    pub(crate) fn push_join_step(
        &mut self,
        step: Step,
        rows: f64,
        unexpected: f64,
        joined: Option<(u32, u32)>,
    ) {
        let rows_before = self.rows;
        self.push(step, rows);
        if let (Some(joined), Some(last)) = (joined, self.steps.last_mut().and_then(Rc::get_mut)) {
            last.validity = Some(corrections::validity(rows_before, rows, unexpected, joined));
        }
    }

    /// Replaces the steps by [`Step::Empty`]: the partial plan is provably empty.
    pub(crate) fn make_empty(&mut self) {
        self.steps.clear();
        self.push(Step::Empty, 0.0);
        self.cost = 0.0;
        self.empty = true;
    }

    /// Restricts a variable, which is bound or about to be, to these classes; `false`: it has no value.
    pub(crate) fn narrow(&mut self, variable: Variable, classes: &ClassSet) -> bool {
        if *classes != ClassSet::ALL {
            narrow(&mut self.domains, variable, classes);
        }
        !domain(&self.domains, variable).is_empty()
    }

    /// Restricts the variables that this and `other` bind to the classes of both; `false`: one has no value.
    pub(crate) fn narrow_to(&mut self, other: &Self) -> bool {
        let both = |variable| self.certain.contains(variable) && other.certain.contains(variable);
        let shared: Domains = other.domains.iter().filter(|(variable, _)| both(*variable)).copied().collect();
        shared.iter().all(|(variable, classes)| self.narrow(*variable, classes))
    }

    /// The value that `variable` has in all rows.
    pub(crate) fn constant(&self, variable: Variable) -> Option<Id> {
        self.constants.get(&variable).copied()
    }

    /// Merges the properties of the branches of a union (at least one, all started from this partial plan);
    /// returns their pipelines.
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
            let mut ends = Ends::new();
            for (variable, of_all) in &all.ends {
                if let Some((_, other)) = branch.ends.iter().find(|(other, _)| other == variable) {
                    ends.push((*variable, mix_ends(of_all, all.rows, other, branch.rows)));
                }
            }
            all.ends = ends;
            all.constants.retain(|variable, id| branch.constants.get(variable) == Some(id));
            all.possible.add_all(&branch.possible);
            all.certain.keep_all(&branch.certain);
            all.rows += branch.rows;
            all.cost += branch.cost - before;
            pipelines.push(pipeline(branch.steps));
        }
        let (steps, runs) = (std::mem::take(&mut self.steps), std::mem::take(&mut self.runs));
        *self = Self { steps, runs, unit: false, empty: false, ..all };
        pipelines
    }
}
