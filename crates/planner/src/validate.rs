//! Plan validation: checks that a plan satisfies the contract of its steps.
//!
//! Every kernel relies on some variables being bound and others not; a plan that violates this would silently
//! produce wrong answers. Tests validate every plan they create.

use crate::atom::variable_of;
use crate::liveness::{columns_after, match_variables, path_variables};
use crate::scope::expression_variables;
use vervet_algebra::{AggregateKind, Expression, Variable, VariableSet};
use vervet_kernel::plan::{JoinKind, Operand, Pipeline, Plan, PlanStep, SemiJoinKind, Step};
use vervet_model::{Error, Result};

/// Rows between two steps.
#[derive(Clone, Default)]
struct RowSchema {
    /// The existing columns.
    columns: VariableSet,
    /// The columns that are bound in every row.
    certain: VariableSet,
    /// The columns that an earlier step dropped.
    dropped: VariableSet,
}

/// Checks that every operand is bound where it is used, that every target is unbound before, that no column
/// is used after it has been dropped, and that the columns of the result arrive.
///
/// # Errors
/// [`vervet_model::ErrorKind::Internal`] with the number of the step (within its pipeline) and the violation.
pub fn validate(plan: &Plan) -> Result<()> {
    let parameters: VariableSet = plan.parameters.iter().copied().collect();
    let start =
        RowSchema { columns: parameters.clone(), certain: parameters, dropped: VariableSet::default() };
    let end = walk(&plan.pipeline, start, None)?;
    for variable in &plan.result {
        if end.dropped.contains(*variable) {
            return Err(Error::internal(format!("the result needs ?{}, which has been dropped", variable.0)));
        }
    }
    Ok(())
}

fn walk(pipeline: &Pipeline, mut rows: RowSchema, row: Option<Variable>) -> Result<RowSchema> {
    for (at, step) in pipeline.steps.iter().enumerate() {
        rows = check(step, rows).map_err(|error| error.context(format!("step {at}")))?;
        if row.is_some_and(|row| !rows.columns.contains(row)) {
            return Err(Error::internal(format!("step {at} does not keep the row position")));
        }
    }
    Ok(rows)
}

fn need(holds: bool, what: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::internal(what())) }
}

impl RowSchema {
    fn bound(&self, operand: Operand) -> Result<()> {
        let holds = variable_of(operand).is_none_or(|variable| self.certain.contains(variable));
        need(holds, || format!("{operand:?} is not bound in every row"))
    }

    fn unbound(&self, variable: Variable) -> Result<()> {
        need(!self.columns.contains(variable), || format!("?{} is bound already", variable.0))?;
        need(!self.dropped.contains(variable), || {
            format!("?{} has been dropped and is bound again", variable.0)
        })
    }

    fn readable(&self, expression: &Expression) -> Result<()> {
        let dropped = expression_variables(expression).intersection(&self.dropped).iter().next();
        need(dropped.is_none(), || format!("{dropped:?} has been dropped"))
    }
}

fn check(step: &PlanStep, mut rows: RowSchema) -> Result<RowSchema> {
    let mut after = columns_after(&step.step, &rows.columns);
    let mut certain = rows.certain.clone();
    match &step.step {
        Step::Empty | Step::Slice { .. } => {}
        Step::Scan { key, neighbour, .. } | Step::Seek { key, neighbour, .. } => {
            rows.unbound(*key)?;
            neighbour.map_or(Ok(()), |neighbour| rows.unbound(neighbour))?;
            need(Some(*key) != *neighbour, || "a scan binds one variable twice".into())?;
            certain.insert(*key);
            certain.extend(*neighbour);
        }
        Step::Expand { key, neighbour, edge, .. } => {
            rows.bound(*key)?;
            neighbour.map_or(Ok(()), |neighbour| rows.unbound(neighbour))?;
            edge.map_or(Ok(()), |edge| rows.unbound(edge))?;
            need(edge.is_none() || neighbour.is_some() && *edge != *neighbour, || {
                "an expansion binds an edge without its neighbour".into()
            })?;
            certain.extend(*neighbour);
            certain.extend(*edge);
        }
        Step::Check { key, neighbour, .. } => {
            rows.bound(*key)?;
            rows.bound(*neighbour)?;
        }
        Step::Intersect { target, legs, .. } => {
            rows.unbound(*target)?;
            need(legs.len() >= 2, || "an intersection has fewer than two legs".into())?;
            legs.iter().try_for_each(|leg| rows.bound(leg.key))?;
            certain.insert(*target);
        }
        Step::Match(pattern) | Step::SeekMatch { pattern, .. } => {
            let dropped = match_variables(pattern).intersection(&rows.dropped).iter().next();
            need(dropped.is_none(), || format!("{dropped:?} has been dropped"))?;
            certain.add_all(&match_variables(pattern));
        }
        Step::Filter(expression) => rows.readable(expression)?,
        Step::Extend { variable, expression } => {
            rows.unbound(*variable)?;
            rows.readable(expression)?;
            if expression.is_certain(&certain) {
                certain.insert(*variable);
            }
        }
        Step::Values { variables, rows: table } => {
            for (at, variable) in variables.iter().enumerate() {
                need(!rows.dropped.contains(*variable), || format!("?{} has been dropped", variable.0))?;
                if table.iter().all(|row| row.get(at).is_some_and(|id| id.is_bound())) {
                    certain.insert(*variable);
                }
            }
            need(table.iter().all(|row| row.len() == variables.len()), || {
                "a table is not rectangular".into()
            })?;
        }
        Step::Join { right, kind, on, compatible, adds } => {
            let side = walk(right, RowSchema::default(), None)?;
            for variable in on {
                rows.bound(Operand::Variable(*variable))?;
                need(side.certain.contains(*variable), || {
                    format!("?{} is not a key on the right", variable.0)
                })?;
            }
            for variable in compatible {
                need(rows.columns.contains(*variable) && side.columns.contains(*variable), || {
                    format!("?{} is not a column of both sides", variable.0)
                })?;
            }
            for variable in adds {
                rows.unbound(*variable)?;
                need(side.columns.contains(*variable), || format!("?{} is not on the right", variable.0))?;
            }
            if let Some(condition) = kind.condition() {
                rows.readable(condition)?;
            }
            if matches!(kind, JoinKind::Inner(_)) {
                certain.add_all(&side.certain);
            }
        }
        Step::Optional { inner, row } => {
            rows.unbound(*row)?;
            let mut start = rows.clone();
            start.columns.insert(*row);
            start.certain.insert(*row);
            let end = walk(inner, start, Some(*row))?;
            for variable in &step.keep {
                need(!end.dropped.contains(*variable), || {
                    format!("the optional part drops ?{}", variable.0)
                })?;
            }
        }
        Step::Seeded { inner, seed, on, adds } => {
            need(on.contains(seed), || format!("?{} is not a key of the join that it seeds", seed.0))?;
            let seeds = VariableSet::from_iter([*seed]);
            let start = RowSchema { columns: seeds.clone(), certain: seeds, dropped: VariableSet::default() };
            let side = walk(inner, start, None)?;
            for variable in on {
                rows.bound(Operand::Variable(*variable))?;
                need(side.certain.contains(*variable), || {
                    format!("?{} is not a key of the optional part", variable.0)
                })?;
            }
            for variable in adds {
                rows.unbound(*variable)?;
                need(side.columns.contains(*variable), || format!("?{} is not on the right", variable.0))?;
            }
        }
        Step::Path(path) => {
            let dropped = path_variables(path).intersection(&rows.dropped).iter().next();
            need(dropped.is_none(), || format!("{dropped:?} has been dropped"))?;
            certain.add_all(&path_variables(path));
        }
        Step::Exists { inner, row, semi_join_kind } => {
            rows.unbound(*row)?;
            let mut start = rows.clone();
            start.columns.insert(*row);
            start.certain.insert(*row);
            walk(inner, start, Some(*row))?;
            if let SemiJoinKind::Mark(variable) = semi_join_kind {
                rows.unbound(*variable)?;
                certain.insert(*variable);
            }
        }
        Step::Union { branches } => {
            let mut of_all: Option<VariableSet> = None;
            after = VariableSet::default();
            for branch in branches {
                let end = walk(branch, rows.clone(), None)?;
                for variable in &step.keep {
                    need(!end.dropped.contains(*variable), || format!("a branch drops ?{}", variable.0))?;
                }
                after.add_all(&end.columns);
                of_all = Some(match of_all {
                    None => end.certain,
                    Some(set) => set.intersection(&end.certain),
                });
            }
            certain = of_all.unwrap_or_default();
        }
        Step::Group { keys, aggregates } => {
            for key in keys {
                need(!rows.dropped.contains(*key), || format!("?{} has been dropped", key.0))?;
            }
            for (_, aggregate) in aggregates {
                aggregate.expression.as_ref().map_or(Ok(()), |expression| rows.readable(expression))?;
            }
            certain.keep_all(&keys.iter().copied().collect());
            let counts = aggregates.iter().filter(|(_, aggregate)| aggregate.kind == AggregateKind::Count);
            certain.extend(counts.map(|(variable, _)| *variable));
            // Columns that a group does not output are out of scope, not dropped.
            rows.dropped = VariableSet::default();
            rows.columns = VariableSet::default();
        }
        Step::Distinct { variables } => {
            for variable in variables {
                need(rows.columns.contains(*variable), || format!("?{} is not a column", variable.0))?;
            }
        }
        Step::Frontier { variables } => {
            for variable in variables {
                need(rows.columns.contains(*variable), || format!("?{} is not a column", variable.0))?;
            }
            let others = step.keep.iter().any(|kept| !variables.contains(kept));
            need(!others, || "rows that differ in another column may be lost".into())?;
        }
        Step::Order { keys, .. } => keys.iter().try_for_each(|key| rows.readable(&key.expression))?,
    }
    let keep: VariableSet = step.keep.iter().copied().collect();
    need(keep.is_subset(&after), || "the step keeps a column that does not exist".into())?;
    let dropped = rows.dropped.union(&after.union(&rows.columns).minus(&keep));
    Ok(RowSchema { certain: certain.intersection(&keep), columns: keep, dropped })
}
