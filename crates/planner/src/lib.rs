//! Query planner: cost-based translation of the logical algebra into a plan of kernels.
//!
//! ```text
//! algebra ──join_group──▶ joins + what follows on them ──lower──▶ steps ──liveness──▶ plan
//!                           │ patterns
//!                           ▼
//!        atoms (constants looked up, exact degrees) ──domain──▶ implied types, provable emptiness
//!                           └──search──▶ order: scan, expand, check, intersect, match
//! ```
//!
//! The planner reads statistics, exact degrees and the neighbours of a few constants through
//! [`vervet_snapshot::Snapshot`], and no other data. A plan contains ids and may contain counts, so it
//! belongs to the snapshot for which it was planned.
//! # Cost
//! 2 µs for two patterns, 5 to 15 for six, below a millisecond for twelve. The example `planning_time`
//! measures planning alone, `profile` of the crate `vervet` whole queries with parsing and execution.
//! # Not here
//! Execution of plans, threads, devices; query languages.
#![forbid(unsafe_code)]

mod atom;
mod bgp;
mod classes;
mod corrections;
mod cost;
mod counts;
mod distinct_values;
mod domain;
mod equalities;
mod estimate;
mod exists;
mod explain;
mod filter;
mod frontier;
mod group_order;
mod implied;
mod inline;
mod join_candidates;
mod join_group;
mod join_order;
mod join_state;
mod key_joins;
mod kinds;
mod liveness;
mod lower;
mod negligible;
mod options;
mod pair_conditions;
mod partial_plan;
mod path_classes;
mod path_facts;
mod path_reach;
mod paths;
mod range_split;
mod scope;
mod seeded;
mod seek;
mod set_paths;
mod unmatched;
mod validate;
mod variable_uses;

pub use corrections::Corrections;
pub use explain::{PlanStep, Prefix, explain, explain_profile, explain_steps, explain_threads};
pub use options::PlanOptions;
pub use validate::validate;

use crate::filter::Conjunct;
use crate::lower::Planner;
use crate::partial_plan::PartialPlan;
use crate::scope::expression_variables;
use std::borrow::Cow;
use vervet_algebra::{Form, Node, Pattern, Query, Slot, Variable, VariableSet};
use vervet_kernel::Control;
use vervet_kernel::plan::{Pipeline, Plan, Step};
use vervet_model::{Error, ErrorKind, Result};
use vervet_snapshot::Snapshot;

/// Plans `query` for `snapshot`, within the limits of `control`, since the length of the query text alone
/// bounds the number of join orders. The memory of the plan stays accounted in `control`.
///
/// # Errors
/// Those of [`Control`]; damaged dictionary or segment; a query that is too large or combines aggregates in
/// an unsupported way; a parameter used where it is not in scope.
pub fn plan(
    query: &Query,
    snapshot: &dyn Snapshot,
    options: &PlanOptions,
    control: &Control<'_>,
) -> Result<Plan> {
    control.check()?;
    let parameters: VariableSet = query.parameters.iter().copied().collect();
    let mut planner = Planner::new(snapshot, options, control, query.variables.clone(), parameters.clone());
    let result = result_variables(query);
    let needed: VariableSet = result.iter().copied().collect();
    let mut partial = PartialPlan::start(&parameters);
    let with_anti_joins = planner.with_anti_joins(&query.root)?;
    let with_keys = planner.with_equalities_as_keys(with_anti_joins)?;
    let has_keys = matches!(with_keys, Cow::Owned(_));
    let with_paths = planner.with_set_paths(&with_keys, query, &needed)?;
    let is_compared = with_paths.is_some() && planner.is_spread()?;
    let root = with_paths.map_or(with_keys, Cow::Owned);
    planner.stable = scope::is_stable(&root);
    planner.set = options.frontiers && query.form == Form::Ask;
    planner.first_rows = (query.form == Form::Ask).then_some(1.0);
    planner.join(&root, &mut partial, &needed, Vec::<Conjunct>::new())?;
    let ends_early = |node: &Node| matches!(node, Node::Slice { length: Some(0 | 1), .. });
    if query.form == Form::Ask && !partial.empty && !ends_early(&query.root) {
        let rows = partial.rows.min(1.0);
        partial.push(Step::Slice { start: 0, length: Some(1) }, rows);
    }
    let cost = partial.cost;
    if is_compared {
        let joined =
            plan(query, snapshot, &PlanOptions { joined: f64::INFINITY, ..options.clone() }, control)?;
        if joined.cost <= cost * options.joined {
            return Ok(joined);
        }
    }
    let mut pipeline = partial_plan::pipeline(partial.steps);
    liveness::finish(&mut pipeline, &parameters, &needed, control)?;
    inline::inline_computed(&mut pipeline);
    if options.frontiers {
        frontier::add_frontiers(&mut pipeline, query.form == Form::Ask, snapshot);
    }
    check_parameters(&pipeline, &parameters, query)?;
    if depth(&pipeline) > DEPTH_MAX {
        if has_keys {
            // Each key adds up to three steps; without keys the plan may be short enough.
            let options = PlanOptions { equalities: false, ..options.clone() };
            return plan(query, snapshot, &options, control);
        }
        let message = format!("the plan of the query has more than {DEPTH_MAX} steps in a row");
        return Err(Error::new(ErrorKind::Unsupported, message)
            .with_hint("join fewer patterns and parts in one query; put lists into VALUES or IN"));
    }
    Ok(Plan {
        pipeline,
        variables: planner.variables,
        result,
        parameters: query.parameters.clone(),
        computed: planner.computed,
        cost,
        joined: planner.joined,
    })
}

/// Maximum number of steps on the call stack at a time. A step calls the next one with each batch before it
/// returns, so each takes stack space: up to some 1.5 KiB, and threads of programs that embed Vervet may have
/// only 2 MiB.
pub const DEPTH_MAX: usize = 1_000;

/// Maximum number of steps of the pipeline on the call stack at a time.
fn depth(pipeline: &Pipeline) -> usize {
    let (mut here, mut most) = (0_usize, 0_usize);
    for step in &pipeline.steps {
        here = here.saturating_add(1);
        let inside = step.step.nested().iter().map(depth).max().unwrap_or(0);
        most = most.max(here.saturating_add(inside));
        if matches!(step.step, Step::Optional { .. } | Step::Seeded { .. } | Step::Union { .. }) {
            // Nested pipelines of these steps call the next step from inside.
            here = here.saturating_add(inside);
        }
    }
    most.max(here)
}

/// The columns that the result form of a query needs.
fn result_variables(query: &Query) -> Vec<Variable> {
    let bound = scope::possible(&query.root).union(&query.parameters.iter().copied().collect());
    match &query.form {
        Form::Select(variables) => variables.clone(),
        Form::Ask => Vec::new(),
        Form::Construct { statements, triples } => {
            let parts = triples.iter().flat_map(|triple| &triple.parts).filter_map(Slot::variable);
            let wanted = statements.iter().flat_map(Pattern::variables).chain(parts);
            liveness::list(&wanted.collect::<VariableSet>().intersection(&bound))
        }
        Form::Describe(slots) => liveness::list(
            &slots.iter().filter_map(Slot::variable).collect::<VariableSet>().intersection(&bound),
        ),
    }
}

/// Checks the scope of parameters: the initial row binds them, and a pipeline that starts from the empty row
/// does not have them.
fn check_parameters(pipeline: &Pipeline, parameters: &VariableSet, query: &Query) -> Result<()> {
    if parameters.is_empty() {
        return Ok(());
    }
    let mut lost = None;
    liveness::for_each_expression(pipeline, parameters, &mut |expression, columns| {
        lost =
            lost.or(expression_variables(expression).intersection(parameters).minus(columns).iter().next());
    });
    match lost {
        None => Ok(()),
        Some(variable) => {
            let name = query.variables.get(variable.index()).map_or("", String::as_str);
            Err(Error::new(
                ErrorKind::Unsupported,
                format!("the parameter ?{name} cannot be used inside this sub-query"),
            )
            .with_hint("move the condition on it out of the sub-query"))
        }
    }
}
