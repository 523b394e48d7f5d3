//! Compilation of plan steps to kernels: segment look-up, expression compilation, buffer allocation.

use crate::execution::volatile;
use crate::operators::{
    check, distinct, exists, expand, filter, frontier, group, intersect, join, matching, optional, order,
    path, scan, seeded, values, volatile_barrier,
};
use crate::pipeline::batch::{Batch, Keep};
use crate::pipeline::chain::{Chain, Flow, Kernel, Run, Stage};
use crate::pipeline::join_table::Comparison;
use crate::pipeline::row_table::RowTable;
use crate::pipeline::table::Table;
use crate::plan::{Access, JoinKind, Leg, Operand, Pipeline, PlanStep, Step};
use std::ops::Range;
use vervet_algebra::{Aggregate, Expression, Variable};
use vervet_expression::{Accumulators, CompiledExpression};
use vervet_model::{Direction, Error, Result};
use vervet_snapshot::{EntryFilter, Segment};

/// Kernel without output.
struct EmptyKernel;

impl<'a> Kernel<'a> for EmptyKernel {
    fn push(&mut self, _: &mut Batch, _: &mut Chain<'_, 'a>) -> Result<Flow> {
        Ok(Flow::More)
    }
}

/// The kernels of a pipeline that starts from one row.
pub(crate) fn stages_from_one_row<'a>(pipeline: &'a Pipeline, run: &Run<'a>) -> Result<Vec<Stage<'a>>> {
    stages_of(&pipeline.steps, 0..pipeline.steps.len(), true, run)
}

/// The kernels of a pipeline that starts from the rows of another.
fn stages<'a>(pipeline: &'a Pipeline, run: &Run<'a>) -> Result<Vec<Stage<'a>>> {
    stages_of(&pipeline.steps, 0..pipeline.steps.len(), false, run)
}

/// The kernels of the steps in `range`. `from_one_row`: `steps` start from one row, and copies of the kernels
/// never share rows with an equal first variable.
pub(crate) fn stages_of<'a>(
    steps: &'a [PlanStep],
    range: Range<usize>,
    from_one_row: bool,
    run: &Run<'a>,
) -> Result<Vec<Stage<'a>>> {
    let mut stages = Vec::with_capacity(range.len());
    let mut carried: &[Variable] = &[];
    let mut grouped = None;
    // For each step: the kept and dropped columns, and the columns of a batch.
    let step_bytes = run.variables * (size_of::<usize>() + size_of::<Vec<vervet_model::Id>>());
    for (at, step) in steps.iter().enumerate().take(range.end) {
        if at >= range.start {
            run.control.work(run.variables)?;
            run.control.grow(step_bytes as u64)?;
            let kernel = match (&step.step, grouped) {
                (Step::Distinct { variables }, Some(group)) => grouped_distinct(variables, group, step, run),
                _ => None,
            };
            let kernel = match kernel {
                Some(kernel) => kernel,
                None => once_each(step, carried, run)?,
            };
            stages.push(Stage::new(kernel, step));
        }
        carried = &step.keep;
        if from_one_row {
            grouped = grouped_after(&step.step, at == 0, grouped).filter(|group| carried.contains(group));
        }
    }
    Ok(stages)
}

/// The kernel of a step; volatile expressions are evaluated once for each solution.
fn once_each<'a>(
    step: &'a PlanStep,
    carried: &[Variable],
    run: &Run<'a>,
) -> Result<Box<dyn Kernel<'a> + 'a>> {
    let kernel = kernel(step, carried, run)?;
    Ok(if volatile::is_volatile(&step.step) {
        Box::new(volatile_barrier::VolatileBarrier { kernel, all: all(run), out: Batch::new(run.variables) })
    } else {
        kernel
    })
}

/// The variable by which the output of this step is grouped: each value is in one run of consecutive rows.
/// `first`: the step receives one row.
fn grouped_after(step: &Step, first: bool, before: Option<Variable>) -> Option<Variable> {
    match step {
        Step::Scan { key, .. } | Step::Seek { key, .. } if first => Some(*key),
        // Two morsels may contain parallel edges of one neighbour.
        Step::Expand { key: Operand::Constant(_), access, neighbour, edge: None }
            if first && !access.parallel =>
        {
            *neighbour
        }
        // These steps output consecutive rows for each input row and preserve the input order. An
        // intersection does not: it may sort the rows of a batch, so that those with equal keys are adjacent.
        Step::Scan { .. }
        | Step::Seek { .. }
        | Step::Expand { .. }
        | Step::Check { .. }
        | Step::Filter(_)
        | Step::Extend { .. }
        | Step::Distinct { .. }
        | Step::Frontier { .. }
        | Step::Slice { .. } => before,
        _ => None,
    }
}

fn grouped_distinct<'a>(
    variables: &[Variable],
    group: Variable,
    step: &PlanStep,
    run: &Run<'a>,
) -> Option<Box<dyn Kernel<'a> + 'a>> {
    let other = match variables {
        [a, b] if *a == group => *b,
        [a, b] if *b == group => *a,
        _ => return None,
    };
    Some(Box::new(distinct::GroupedDistinct::new(group, other, variables, run.keep(&step.keep))))
}

pub(crate) fn segment<'a>(access: &Access, run: &Run<'a>) -> Result<Option<(&'a dyn Segment, EntryFilter)>> {
    let filter = EntryFilter { graph: access.graph, parallel: access.parallel };
    Ok(run.snapshot.segment(access.predicate, access.direction)?.map(|segment| (segment, filter)))
}

fn compile(expression: &Expression, run: &Run<'_>) -> Result<CompiledExpression> {
    CompiledExpression::new(expression, run.evaluator)
}

fn all(run: &Run<'_>) -> Keep {
    Keep { columns: (0..run.variables).collect(), dropped: Vec::new() }
}

fn kernel<'a>(step: &'a PlanStep, carried: &[Variable], run: &Run<'a>) -> Result<Box<dyn Kernel<'a> + 'a>> {
    let keep = run.keep(&step.keep);
    let out = || Batch::new(run.variables);
    Ok(match &step.step {
        Step::Empty => Box::new(EmptyKernel),
        Step::Scan { access, key, neighbour } => match segment(access, run)? {
            Some(segment) => Box::new(scan::Scan::new(segment, None, *key, *neighbour, keep, run)),
            None => Box::new(EmptyKernel),
        },
        Step::Seek { access, key, neighbour, candidates } => match segment(access, run)? {
            Some(segment) => {
                Box::new(scan::Scan::new(segment, Some(candidates), *key, *neighbour, keep, run))
            }
            None => Box::new(EmptyKernel),
        },
        Step::Expand { key, access, neighbour, edge } => match (segment(access, run)?, neighbour) {
            (Some(segment), Some(neighbour)) => {
                Box::new(expand::Expand::new(segment, *key, *neighbour, *edge, keep, run.variables))
            }
            (Some((segment, filter)), None) => Box::new(expand::Degree {
                segment,
                filter,
                key: *key,
                keep,
                keys: Vec::new(),
                degrees: Vec::new(),
                selection: Vec::new(),
            }),
            (None, _) => Box::new(EmptyKernel),
        },
        Step::Check { key, access, neighbour } => check_kernel(*key, access, *neighbour, keep, run)?,
        Step::Intersect { target, legs, count_only } => {
            intersect_kernel(*target, legs, *count_only, keep, run)?
        }
        Step::Match(pattern) => Box::new(matching::Matching::new(*pattern, None, keep, run.variables)),
        Step::SeekMatch { pattern, candidates } => {
            Box::new(matching::Matching::new(*pattern, Some(candidates), keep, run.variables))
        }
        Step::Filter(condition) => {
            Box::new(filter::Filter { condition: compile(condition, run)?, keep, selection: Vec::new() })
        }
        Step::Extend { variable, expression } => Box::new(filter::Extend {
            variable: *variable,
            expression: compile(expression, run)?,
            keep,
            values: Vec::new(),
        }),
        Step::Values { variables, rows } => Box::new(values::Values {
            variables,
            table: rows,
            keep,
            by_value: vec![None; variables.len()],
            pairs: Vec::new(),
            rows: Vec::new(),
            out: out(),
        }),
        Step::Join { right, kind: kind_of_step, on, compatible, adds } => {
            if compatible.len() > join::COMPATIBLE_MAX {
                let message = format!("a join has more than {} shared variables", join::COMPATIBLE_MAX);
                return Err(Error::new(vervet_model::ErrorKind::Unsupported, message));
            }
            let mut needed = [on.as_slice(), compatible, adds].concat();
            needed.extend_from_slice(&step.keep);
            let table = run.shared.and_then(|shared| shared.join(step));
            let kind = match kind_of_step {
                JoinKind::Inner(_) => join::Kind::Inner,
                JoinKind::Minus => join::Kind::Minus,
                JoinKind::Semi(_) => join::Kind::Semi,
                JoinKind::Anti(_) => join::Kind::Anti,
                JoinKind::Left(_) => join::Kind::Left,
            };
            let condition = kind_of_step.condition().map(|condition| compile(condition, run)).transpose()?;
            kind_of_step.condition().into_iter().for_each(|condition| condition.variables(&mut needed));
            let (is_exact_range, counts_pairs) = join::exact_range(step, kind);
            Box::new(join::Join {
                kind,
                is_exact_range,
                counts_pairs,
                has_untested: false,
                condition,
                comparison: Comparison::of(&step.step),
                on: on.clone(),
                compatible: compatible.clone(),
                adds: adds.clone(),
                keep,
                pair_keep: run.keep(&needed),
                right: if table.is_some() { Vec::new() } else { stages_from_one_row(right, run)? },
                table,
                step,
                indexes: Vec::new(),
                index_of: rustc_hash::FxHashMap::default(),
                last_index: None,
                pairs: Vec::new(),
                out: out(),
            })
        }
        Step::Optional { inner, row } => {
            let inner = stages(inner, run)?;
            Box::new(optional::Optional { inner, row: *row, keep, all: all(run), input: out() })
        }
        Step::Seeded { inner, seed, on, adds } => {
            let before: Vec<Variable> =
                step.keep.iter().filter(|variable| !adds.contains(variable)).copied().collect();
            Box::new(seeded::Seeded {
                inner: stages(inner, run)?,
                seed: *seed,
                on,
                adds,
                keep,
                before: run.keep(&before),
                input: out(),
                rows: seeded::RowIndex::default(),
                pairs: Vec::new(),
                out: out(),
            })
        }
        Step::Exists { inner, row, semi_join_kind } => Box::new(exists::Exists {
            inner: stages(inner, run)?,
            row: *row,
            semi_join_kind: *semi_join_kind,
            keep,
            all: all(run),
            input: out(),
        }),
        Step::Path(path) => Box::new(path::Paths::new(path, keep, run)?),
        Step::Union { branches } => {
            let branches = branches.iter().map(|branch| stages(branch, run)).collect::<Result<_>>()?;
            Box::new(optional::Union { branches, keep, all: all(run), input: out() })
        }
        Step::Group { keys, aggregates } => {
            let mut all_accumulators = Vec::with_capacity(aggregates.len());
            for (variable, aggregate) in aggregates {
                all_accumulators.push((*variable, accumulators(aggregate, carried, run)?));
            }
            Box::new(group::Group {
                keys: RowTable::new(keys.clone()),
                aggregates: all_accumulators,
                keep,
                groups: Vec::new(),
                counted_bytes: 0,
                out: out(),
            })
        }
        Step::Distinct { variables } => match run.shared.and_then(|shared| shared.rows(step)) {
            Some(rows) => Box::new(distinct::SharedDistinct {
                variables,
                rows,
                keep,
                order: Vec::new(),
                cells: Vec::new(),
                selection: Vec::new(),
            }),
            None => match variables.as_slice() {
                [variable] => Box::new(distinct::DistinctNodes::new(*variable, keep)),
                _ => Box::new(distinct::Distinct {
                    seen: RowTable::new(variables.clone()),
                    keep,
                    counted_bytes: 0,
                    selection: Vec::new(),
                }),
            },
        },
        Step::Frontier { variables } => {
            let shared = run.shared.and_then(|shared| shared.frontier(step));
            Box::new(frontier::Frontier::new(variables, keep, shared))
        }
        Step::Order { keys, limit } => Box::new(order::Order {
            keys: keys
                .iter()
                .map(|key| Ok((compile(&key.expression, run)?, key.descending)))
                .collect::<Result<_>>()?,
            limit: *limit,
            keep,
            table: Table::new(run.variables),
            sort_keys: keys.iter().map(|_| Vec::new()).collect(),
            values: Vec::new(),
            first_values: Vec::new(),
            out: out(),
            counted_bytes: 0,
            runs: Vec::new(),
            last_kept: None,
        }),
        Step::Slice { start, length } => Box::new(order::Slice::new(*start, *length, keep)),
    })
}

fn check_kernel<'a>(
    mut key: Operand,
    access: &Access,
    mut neighbour: Operand,
    keep: Keep,
    run: &Run<'a>,
) -> Result<Box<dyn Kernel<'a> + 'a>> {
    let mut access = *access;
    // A check with a constant neighbour is faster than one with a constant key.
    if matches!((key, neighbour), (Operand::Constant(_), Operand::Variable(_)))
        && access.direction == Direction::In
    {
        std::mem::swap(&mut key, &mut neighbour);
        access.direction = access.direction.reverse();
    }
    let Some((segment, filter)) = segment(&access, run)? else { return Ok(Box::new(EmptyKernel)) };
    Ok(Box::new(check::Check {
        segment,
        filter,
        key,
        neighbour,
        keep,
        keys: Vec::new(),
        neighbours: Vec::new(),
        selection: Vec::new(),
    }))
}

fn intersect_kernel<'a>(
    target: Variable,
    legs: &[Leg],
    count_only: bool,
    keep: Keep,
    run: &Run<'a>,
) -> Result<Box<dyn Kernel<'a> + 'a>> {
    let mut at_work = Vec::with_capacity(legs.len());
    for leg in legs {
        let Some((segment, filter)) = segment(&leg.access, run)? else { return Ok(Box::new(EmptyKernel)) };
        let reverse = run.snapshot.segment(leg.access.predicate, leg.access.direction.reverse())?;
        at_work.push(intersect::leg::IntersectLeg::new(segment, reverse, filter, leg.key));
    }
    Ok(Box::new(intersect::Intersect::new(target, at_work, count_only, keep, run.variables)))
}

fn accumulators<'a>(aggregate: &Aggregate, carried: &[Variable], run: &Run<'a>) -> Result<Accumulators<'a>> {
    let accumulators = Accumulators::new(aggregate, run.evaluator)?;
    // Only carried columns of the input belong to solutions.
    Ok(if aggregate.expression.is_none() {
        accumulators.with_solution(carried.to_vec())
    } else {
        accumulators
    })
}
