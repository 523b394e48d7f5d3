//! Groups in two stages: each task groups its own rows, and the server that asked merges the groups.
//!
//! # Shape
//! `COUNT` becomes a sum of counts; `SUM`, `MIN`, `MAX` and `SAMPLE` those of their own values; `AVG` a sum
//! and a count in spare columns, which are divided after the merge. Others need all values in one place, and
//! groups without keys a value for no rows: there equal rows become one with a count.
//! # Invariants
//! Every group of a task has a row at least, so a value that is missing there is an error of the aggregate,
//! and the merge of it is one as well.

use vervet_algebra::{Aggregate, AggregateKind, Expression, Variable};
use vervet_kernel::plan::{Pipeline, Plan, PlanStep, Step};

/// Columns of the rows of a query: those of the plan, one that runs may add, and the spare ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    /// The first spare column.
    spare: usize,
    /// The number of all.
    pub(crate) all: usize,
}

impl Columns {
    pub(crate) fn of(plan: &Plan) -> Self {
        fn means(pipeline: &Pipeline) -> usize {
            let of_step = |step: &PlanStep| {
                let own = match &step.step {
                    Step::Group { aggregates, .. } => {
                        aggregates.iter().filter(|(_, one)| one.kind == AggregateKind::Avg).count()
                    }
                    _ => 0,
                };
                step.step.nested().iter().map(means).fold(own, usize::max)
            };
            pipeline.steps.iter().map(of_step).max().unwrap_or(0)
        }
        let spare = plan.variables.len() + 1;
        Self { spare, all: spare + 2 * means(&plan.pipeline) }
    }
}

/// The group of a task, and the steps that merge such groups; `None`: the step is no group that has parts.
pub(crate) fn split(step: &PlanStep, columns: Columns) -> Option<(PlanStep, Pipeline)> {
    let Step::Group { keys, aggregates } = &step.step else { return None };
    let has_parts = |aggregate: &Aggregate| {
        let is_placeable =
            aggregate.expression.as_ref().is_none_or(|one| !one.is_volatile() && !one.has_exists());
        !aggregate.distinct && is_placeable && !matches!(aggregate.kind, AggregateKind::GroupConcat { .. })
    };
    // Counts of solutions alone are those of equal rows.
    let has_values = aggregates.iter().any(|(_, one)| one.expression.is_some());
    if keys.is_empty() || !has_values || !aggregates.iter().all(|(_, one)| has_parts(one)) {
        return None;
    }
    let of = |kind, expression| Aggregate { kind, expression, distinct: false };
    let merged = |kind, variable| (variable, of(kind, Some(Expression::Variable(variable))));
    let mut spare =
        (columns.spare..columns.all).filter_map(|column| u16::try_from(column).ok().map(Variable));
    let (mut parts, mut merges, mut means) = (Vec::new(), Vec::new(), Vec::new());
    for (variable, aggregate) in aggregates {
        match &aggregate.kind {
            AggregateKind::Avg => {
                let (sum, count) = (spare.next()?, spare.next()?);
                parts.push((sum, of(AggregateKind::Sum, aggregate.expression.clone())));
                parts.push((count, of(AggregateKind::Count, None)));
                merges.extend([sum, count].map(|one| merged(AggregateKind::Sum, one)));
                means.push((*variable, [sum, count]));
            }
            kind => {
                parts.push((*variable, aggregate.clone()));
                let kind = if *kind == AggregateKind::Count { AggregateKind::Sum } else { kind.clone() };
                merges.push(merged(kind, *variable));
            }
        }
    }
    let kept = |step: Step, keep: Vec<Variable>, rows: f64| PlanStep { step, keep, rows, validity: None };
    let of_parts = keys.iter().copied().chain(parts.iter().map(|(variable, _)| *variable)).collect();
    let part = kept(Step::Group { keys: keys.clone(), aggregates: parts }, of_parts, step.rows);
    let keep_after = |done: usize| -> Vec<Variable> {
        let is_open = |variable: &&Variable| means[done..].iter().all(|(mean, _)| mean != *variable);
        let open = means[done..].iter().flat_map(|(_, of)| *of);
        step.keep.iter().filter(is_open).copied().chain(open).collect()
    };
    let mut steps =
        vec![kept(Step::Group { keys: keys.clone(), aggregates: merges }, keep_after(0), step.rows)];
    for (done, (variable, of)) in means.iter().enumerate() {
        let [sum, count] = of.map(|one| Box::new(Expression::Variable(one)));
        let expression = Expression::Divide(sum, count);
        let extend = Step::Extend { variable: *variable, expression };
        steps.push(kept(extend, keep_after(done + 1), step.rows));
    }
    Some((part, Pipeline { steps }))
}
