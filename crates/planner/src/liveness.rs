//! Liveness analysis, the last pass of the planner: the columns that each step keeps, and unused outputs.
//!
//! Live variables propagate backwards: each step keeps the variables that later steps read. If a scan, an
//! expansion or an intersection binds a dead variable, its values are counted in the multiplicity of the row
//! instead of listed. A dead computed variable is not computed.

use crate::atom::variable_of;
use crate::scope::expression_variables;
use vervet_algebra::{Aggregate, Expression, Variable, VariableSet};
use vervet_kernel::Control;
use vervet_kernel::plan::{
    GraphOperand, JoinKind, Match, Operand, PathGraphs, PathStep, Pipeline, SemiJoinKind, Step,
};
use vervet_model::Result;

/// Work units for each step, whose sets of variables have up to 65,536 bits.
const STEP_WORK: usize = 1 << 7;

/// The variables of a general pattern.
pub(crate) fn match_variables(pattern: &Match) -> VariableSet {
    let graph = match pattern.graph {
        GraphOperand::Variable(variable) => Some(variable),
        GraphOperand::Filter(_) => None,
    };
    [Some(pattern.subject), Some(pattern.predicate), Some(pattern.object), pattern.edge]
        .into_iter()
        .flatten()
        .filter_map(variable_of)
        .chain(graph)
        .collect()
}

/// The variables of a path.
pub(crate) fn path_variables(path: &PathStep) -> VariableSet {
    let graph = match path.graphs {
        PathGraphs::Variable(variable) => Some(variable),
        PathGraphs::These(_) => None,
    };
    [path.subject, path.object].into_iter().filter_map(variable_of).chain(graph).collect()
}

/// The columns after `step`, given the columns `before` it.
pub(crate) fn columns_after(step: &Step, before: &VariableSet) -> VariableSet {
    let mut after = before.clone();
    match step {
        Step::Empty | Step::Check { .. } | Step::Filter(_) => {}
        Step::Distinct { .. } | Step::Frontier { .. } | Step::Order { .. } | Step::Slice { .. } => {}
        Step::Scan { key, neighbour, .. } | Step::Seek { key, neighbour, .. } => {
            after.insert(*key);
            after.extend(*neighbour);
        }
        Step::Expand { neighbour, edge, .. } => {
            after.extend(*neighbour);
            after.extend(*edge);
        }
        Step::Intersect { target, count_only, .. } => after.extend((!count_only).then_some(*target)),
        Step::Match(pattern) | Step::SeekMatch { pattern, .. } => after.add_all(&match_variables(pattern)),
        Step::Path(path) => after.add_all(&path_variables(path)),
        Step::Exists { semi_join_kind, .. } => {
            if let SemiJoinKind::Mark(variable) = semi_join_kind {
                after.insert(*variable);
            }
        }
        Step::Extend { variable, .. } => after.insert(*variable),
        Step::Values { variables, .. } => after.extend(variables.iter().copied()),
        Step::Join { kind: JoinKind::Semi(_) | JoinKind::Anti(_), .. } => {}
        Step::Join { adds, .. } => after.extend(adds.iter().copied()),
        Step::Optional { inner, row } => {
            let mut start = before.clone();
            start.insert(*row);
            after.add_all(&pipeline_columns(inner, &start));
            after.remove(*row);
        }
        Step::Seeded { adds, .. } => after.extend(adds.iter().copied()),
        Step::Union { branches } => {
            after = VariableSet::default();
            branches.iter().for_each(|branch| after.add_all(&pipeline_columns(branch, before)));
        }
        Step::Group { keys, aggregates } => {
            after = keys.iter().copied().collect::<VariableSet>().intersection(before);
            after.extend(aggregates.iter().map(|(variable, _)| *variable));
        }
    }
    after
}

fn pipeline_columns(pipeline: &Pipeline, before: &VariableSet) -> VariableSet {
    pipeline.steps.iter().fold(before.clone(), |columns, step| columns_after(&step.step, &columns))
}

/// Sets `keep` of all steps; returns the variables that the pipeline reads. `columns`: input columns; `live`:
/// variables live at the end.
///
/// # Errors
/// Limits of the query: each step may have as many columns as the query has variables.
pub(crate) fn finish(
    pipeline: &mut Pipeline,
    columns: &VariableSet,
    live: &VariableSet,
    control: &Control<'_>,
) -> Result<VariableSet> {
    let mut before = Vec::with_capacity(pipeline.steps.len());
    let mut before_bytes = 0;
    let mut now = columns.clone();
    for step in &pipeline.steps {
        let bytes = before_bytes + now.size_bytes();
        control.recount(&mut before_bytes, bytes)?;
        control.work(STEP_WORK)?;
        before.push(now.clone());
        now = columns_after(&step.step, &now);
    }
    let mut live = live.clone();
    let mut is_dropped = vec![false; pipeline.steps.len()];
    for (at, step) in pipeline.steps.iter_mut().enumerate().rev() {
        control.work(STEP_WORK)?;
        let columns = &before[at];
        let kept = live.clone().intersection(&columns_after(&step.step, columns));
        if let Step::Extend { variable, .. } = &step.step
            && !live.contains(*variable)
        {
            is_dropped[at] = true;
            continue;
        }
        live = live_before(&mut step.step, columns, live, control)?;
        step.keep = kept.iter().collect();
        control.grow((step.keep.capacity() * size_of::<Variable>()) as u64)?;
        debug_assert!(
            step.keep.iter().all(|variable| columns_after(&step.step, columns).contains(*variable)),
            "a step keeps only columns that it has: {step:?}"
        );
    }
    let mut is_dropped = is_dropped.into_iter();
    pipeline.steps.retain(|_| !is_dropped.next().unwrap_or(false));
    control.recount(&mut before_bytes, 0)?;
    Ok(live)
}

fn add_operand(live: &mut VariableSet, operand: Operand) {
    live.extend(variable_of(operand));
}

/// Live variables before `step`, given those after it; removes dead outputs of the step.
fn live_before(
    step: &mut Step,
    columns: &VariableSet,
    mut live: VariableSet,
    control: &Control<'_>,
) -> Result<VariableSet> {
    match step {
        Step::Empty => {}
        Step::Scan { key, neighbour, .. } | Step::Seek { key, neighbour, .. } => {
            *neighbour = neighbour.filter(|neighbour| live.contains(*neighbour));
            live.remove(*key);
            neighbour.iter().for_each(|neighbour| live.remove(*neighbour));
        }
        Step::Expand { key, neighbour, edge, .. } => {
            // Only listed entries show whether they have an edge.
            *neighbour = neighbour.filter(|neighbour| edge.is_some() || live.contains(*neighbour));
            neighbour.iter().chain(&*edge).for_each(|found| live.remove(*found));
            add_operand(&mut live, *key);
        }
        Step::Check { key, neighbour, .. } => {
            add_operand(&mut live, *key);
            add_operand(&mut live, *neighbour);
        }
        Step::Intersect { target, legs, count_only } => {
            *count_only = !live.contains(*target);
            live.remove(*target);
            legs.iter().for_each(|leg| add_operand(&mut live, leg.key));
        }
        Step::Match(pattern) | Step::SeekMatch { pattern, .. } => {
            live.add_all(&match_variables(pattern).intersection(columns))
        }
        Step::Path(path) => live.add_all(&path_variables(path).intersection(columns)),
        Step::Exists { inner, row, semi_join_kind } => {
            if let SemiJoinKind::Mark(variable) = semi_join_kind {
                live.remove(*variable);
            }
            let mut start = columns.clone();
            start.insert(*row);
            let used = finish(inner, &start, &VariableSet::from_iter([*row]), control)?;
            live.add_all(&used);
            live.remove(*row);
        }
        Step::Filter(condition) => live.add_all(&expression_variables(condition).intersection(columns)),
        Step::Extend { variable, expression } => {
            live.remove(*variable);
            live.add_all(&expression_variables(expression).intersection(columns));
        }
        Step::Values { variables, .. } => {
            live.add_all(&variables.iter().copied().collect::<VariableSet>().intersection(columns));
        }
        Step::Join { right, kind, on, compatible, adds } => {
            let condition = kind.condition().map(expression_variables).unwrap_or_default();
            adds.retain(|variable| live.contains(*variable) || condition.contains(*variable));
            let added: VariableSet = adds.iter().copied().collect();
            let shared: VariableSet = on.iter().chain(&*compatible).copied().collect();
            finish(right, &VariableSet::default(), &added.clone().union(&shared), control)?;
            live.add_all(&condition);
            live.remove_all(&added);
            live.add_all(&shared);
        }
        Step::Optional { inner, row } => {
            let mut start = columns.clone();
            start.insert(*row);
            let mut wanted = live.clone();
            wanted.insert(*row);
            let used = finish(inner, &start, &wanted, control)?;
            live.add_all(&used);
            live.remove(*row);
        }
        Step::Seeded { inner, seed, on, adds } => {
            adds.retain(|variable| live.contains(*variable));
            let added: VariableSet = adds.iter().copied().collect();
            let shared: VariableSet = on.iter().copied().collect();
            finish(inner, &VariableSet::from_iter([*seed]), &added.clone().union(&shared), control)?;
            live.remove_all(&added);
            live.add_all(&shared);
        }
        Step::Union { branches } => {
            let wanted = std::mem::take(&mut live);
            for branch in branches {
                live.add_all(&finish(branch, columns, &wanted, control)?);
            }
        }
        Step::Group { keys, aggregates } => {
            live = keys.iter().copied().collect();
            for (_, aggregate) in &*aggregates {
                live.add_all(&aggregate_variables(aggregate, columns));
            }
        }
        Step::Distinct { variables } => {
            variables.retain(|variable| columns.contains(*variable));
            live.extend(variables.iter().copied());
        }
        Step::Frontier { variables } => live.extend(variables.iter().copied()),
        Step::Order { keys, .. } => {
            for key in &*keys {
                live.add_all(&expression_variables(&key.expression));
            }
        }
        Step::Slice { .. } => {}
    }
    Ok(live.intersection(columns))
}

/// The variables that an aggregate reads; `COUNT(DISTINCT *)` reads all columns.
fn aggregate_variables(aggregate: &Aggregate, columns: &VariableSet) -> VariableSet {
    match &aggregate.expression {
        Some(expression) => expression_variables(expression),
        None if aggregate.distinct => columns.clone(),
        None => VariableSet::default(),
    }
}

/// Calls `visit` with each expression of `pipeline` and the columns at its step.
pub(crate) fn for_each_expression(
    pipeline: &Pipeline,
    columns: &VariableSet,
    visit: &mut dyn FnMut(&Expression, &VariableSet),
) {
    let mut now = columns.clone();
    for step in &pipeline.steps {
        match &step.step {
            Step::Filter(expression) | Step::Extend { expression, .. } => visit(expression, &now),
            Step::Order { keys, .. } => keys.iter().for_each(|key| visit(&key.expression, &now)),
            Step::Group { aggregates, .. } => {
                aggregates
                    .iter()
                    .filter_map(|(_, one)| one.expression.as_ref())
                    .for_each(|one| visit(one, &now));
            }
            Step::Join { right, kind, adds, .. } => {
                for_each_expression(right, &VariableSet::default(), visit);
                if let Some(condition) = kind.condition() {
                    visit(condition, &now.clone().union(&adds.iter().copied().collect()));
                }
            }
            Step::Optional { inner, .. } | Step::Exists { inner, .. } => {
                for_each_expression(inner, &now, visit)
            }
            Step::Seeded { inner, seed, .. } => {
                for_each_expression(inner, &VariableSet::from_iter([*seed]), visit)
            }
            Step::Union { branches } => branches.iter().for_each(|one| for_each_expression(one, &now, visit)),
            _ => {}
        }
        now = step.keep.iter().copied().collect();
    }
}

/// The variables as a list.
pub(crate) fn list(set: &VariableSet) -> Vec<Variable> {
    set.iter().collect()
}
