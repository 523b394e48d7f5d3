//! Lowering: the part of a plan that can run on the device, with its segments.
//!
//! # Steps on the device
//! * Scan as the first step of the part, expand with or without neighbour, check, intersect of up to
//!   [`LEGS_MAX`] legs, listed or counted.
//! * Filters whose conjuncts are tests of ids ([`IdTest`]), up to [`TESTS_MAX`] of them. Rows that these do
//!   not decide leave for the CPU at that step.
//! * Exists, not exists, optional parts and unions whose nested pipelines have such steps only; frontiers.
//!
//! All others run on the CPU. The part is the run with most steps of the root pipeline that read segments,
//! before anything that sorts: rows leave the device in another order than they enter. If a group or distinct
//! follows the part, equal rows are combined before they leave.

use crate::windows::Variant;
use std::ops::Range;
use vervet_algebra::{Aggregate, AggregateKind, Expression, Variable};
use vervet_device::{COLUMNS_MAX, LEGS_MAX, TESTS_MAX};
use vervet_expression::{CompiledExpression, Evaluator, IdTest};
use vervet_kernel::plan::{Access, Operand, Pipeline, Plan, PlanStep, SemiJoinKind, Step};
use vervet_model::Result;
use vervet_snapshot::{EntryFilter, Segment, Snapshot};

/// The segment of a step.
#[derive(Clone, Copy)]
pub(crate) struct SegmentUse<'a> {
    pub(crate) segment: &'a dyn Segment,
    pub(crate) variant: Variant,
}

/// The adjacency of a key.
#[derive(Clone, Copy)]
pub(crate) struct LoweredLeg<'a> {
    pub(crate) key: Operand,
    pub(crate) used: SegmentUse<'a>,
}

/// A step as the device runs it.
pub(crate) enum LoweredStep<'a> {
    /// No row has output.
    Empty,
    /// Binds the neighbours that all legs have in common.
    Expand { legs: Vec<LoweredLeg<'a>>, target: Variable },
    /// Multiplies by the number of neighbours that all legs have in common.
    Count { legs: Vec<LoweredLeg<'a>> },
    /// Keeps rows with an entry `key -> neighbour`.
    Check { leg: LoweredLeg<'a>, neighbour: Operand },
    /// Keeps the rows that all tests accept.
    Filter { tests: Vec<IdTest> },
    /// Keeps one of equal rows, as far as they are in one table.
    Unique,
    /// Keeps the rows with (`wanted`) or without output of the nested steps. `row`: their positions.
    Exists { inner: Vec<DeviceStep<'a>>, row: Variable, wanted: bool },
    /// The output of the nested steps, and the rows without any.
    Optional { inner: Vec<DeviceStep<'a>>, row: Variable },
    /// The output of each branch.
    Union { branches: Vec<Vec<DeviceStep<'a>>> },
}

impl<'a> LoweredStep<'a> {
    /// Its segments, and those of nested steps.
    pub(crate) fn segments(&self) -> Vec<SegmentUse<'a>> {
        match self {
            Self::Empty | Self::Filter { .. } | Self::Unique => Vec::new(),
            Self::Expand { legs, .. } | Self::Count { legs } => legs.iter().map(|leg| leg.used).collect(),
            Self::Check { leg, .. } => vec![leg.used],
            Self::Exists { inner, .. } | Self::Optional { inner, .. } => {
                inner.iter().flat_map(|step| step.op.segments()).collect()
            }
            Self::Union { branches } => {
                branches.iter().flatten().flat_map(|step| step.op.segments()).collect()
            }
        }
    }

    /// The adjacencies that it expands.
    pub(crate) fn legs(&self) -> &[LoweredLeg<'a>] {
        match self {
            Self::Expand { legs, .. } | Self::Count { legs } => legs,
            _ => &[],
        }
    }

    /// The variable that it binds to candidates.
    pub(crate) fn target(&self) -> Option<Variable> {
        match self {
            Self::Expand { target, .. } => Some(*target),
            _ => None,
        }
    }

    /// Number of tests of a launch that it consists of; 0: it is no test.
    pub(crate) fn test_count(&self) -> usize {
        match self {
            Self::Check { .. } => 1,
            Self::Filter { tests } => tests.len(),
            _ => 0,
        }
    }

    /// The variables that it reads; `None`: any.
    pub(crate) fn reads(&self) -> Option<Vec<Variable>> {
        let operands = match self {
            Self::Empty => Vec::new(),
            Self::Expand { legs, .. } | Self::Count { legs } => legs.iter().map(|leg| leg.key).collect(),
            Self::Check { leg, neighbour } => vec![leg.key, *neighbour],
            Self::Filter { .. }
            | Self::Unique
            | Self::Exists { .. }
            | Self::Optional { .. }
            | Self::Union { .. } => return None,
        };
        let variable = |operand: &Operand| match operand {
            Operand::Variable(variable) => Some(*variable),
            Operand::Constant(_) => None,
        };
        Some(operands.iter().filter_map(variable).collect())
    }
}

/// A lowered step with its place.
pub(crate) struct DeviceStep<'a> {
    pub(crate) op: LoweredStep<'a>,
    /// Live columns after it.
    pub(crate) keep: Vec<Variable>,
    /// Its number among the steps of the part, which are numbered depth first.
    pub(crate) number: usize,
}

/// How equal rows are combined before they leave the device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Combination {
    /// Their multiplicities are added, unless one of these columns has a double or a literal: the sum of
    /// several doubles depends on how they are added.
    Sum { alone: Vec<Variable> },
    /// One is enough.
    Once,
}

/// The part of a plan that runs on the device.
pub(crate) struct DevicePart<'a> {
    /// Positions of its steps in the root pipeline.
    pub(crate) range: Range<usize>,
    /// One for each step.
    pub(crate) steps: Vec<DeviceStep<'a>>,
    /// Number of steps, nested ones included.
    pub(crate) step_count: usize,
    /// The segment whose keys the CPU lists, if the first step is a scan, and the variable of the keys.
    pub(crate) scan: Option<(&'a dyn Segment, Variable)>,
    /// The same steps as a pipeline for the CPU: a scan is an expansion of its keys.
    pub(crate) pipeline: Pipeline,
    /// What happens to equal rows behind the last step.
    pub(crate) combination: Option<Combination>,
}

impl<'a> DevicePart<'a> {
    /// The largest part of the plan for the device; `None`: there is none.
    pub(crate) fn new(
        plan: &Plan,
        snapshot: &'a dyn Snapshot,
        evaluator: &Evaluator<'_>,
    ) -> Result<Option<Self>> {
        if vervet_kernel::needs_one_thread(plan) || plan.variables.len() > usize::from(u16::MAX) / 2 {
            return Ok(None);
        }
        let lowering = Lowering { snapshot, evaluator };
        let steps = &plan.pipeline.steps;
        let end = steps
            .iter()
            .position(|step| matches!(step.step, Step::Order { .. } | Step::Slice { .. }))
            .unwrap_or(steps.len());
        let weight =
            |lowered: &[DeviceStep<'a>]| lowered.iter().filter(|step| !step.op.segments().is_empty()).count();
        let mut best: Option<(Range<usize>, Vec<DeviceStep<'a>>)> = None;
        let mut start = 0;
        while start < end {
            // Rows are not copied only to be filtered.
            if matches!(steps[start].step, Step::Filter(_) | Step::Frontier { .. }) {
                start += 1;
                continue;
            }
            let lowered = lowering.pipeline(&steps[start..end], 0, true)?;
            let length = lowered.len();
            if weight(&lowered) > best.as_ref().map_or(0, |(_, lowered)| weight(lowered)) {
                best = Some((start..start + length, lowered));
            }
            start += length.max(1);
        }
        let Some((range, lowered)) = best else { return Ok(None) };
        let mut pipeline = Pipeline { steps: steps[range.clone()].to_vec() };
        forget_ranges(&mut pipeline);
        let mut scan = None;
        if let Some(first) = pipeline.steps.first_mut()
            && let Step::Scan { access, key, neighbour } = first.step
        {
            let Some(segment) = snapshot.segment(access.predicate, access.direction)? else {
                return Ok(None);
            };
            scan = Some((segment, key));
            first.step = Step::Expand { key: Operand::Variable(key), access, neighbour, edge: None };
        }
        let step_count = pipeline.number_steps();
        let combination = steps.get(range.end).and_then(|step| combination(&step.step));
        Ok(Some(Self { range, steps: lowered, step_count, scan, pipeline, combination }))
    }
}

/// Removes validity ranges, which refer to steps of the plan by identity.
fn forget_ranges(pipeline: &mut Pipeline) {
    for step in &mut pipeline.steps {
        step.validity = None;
        match &mut step.step {
            Step::Exists { inner, .. } | Step::Optional { inner, .. } => forget_ranges(inner),
            Step::Union { branches } => branches.iter_mut().for_each(forget_ranges),
            _ => {}
        }
    }
}

/// How equal rows may be combined before this step.
fn combination(step: &Step) -> Option<Combination> {
    let is_summed = |aggregate: &Aggregate| {
        matches!(aggregate.kind, AggregateKind::Sum | AggregateKind::Avg) && !aggregate.distinct
    };
    match step {
        Step::Distinct { .. } | Step::Frontier { .. } => Some(Combination::Once),
        Step::Group { aggregates, .. } => {
            let mut alone = Vec::new();
            for (_, aggregate) in aggregates.iter().filter(|(_, aggregate)| is_summed(aggregate)) {
                match &aggregate.expression {
                    Some(Expression::Variable(variable)) => alone.push(*variable),
                    _ => return None,
                }
            }
            Some(Combination::Sum { alone })
        }
        _ => None,
    }
}

/// The kinds of steps that may run on the device, for `EXPLAIN` without a snapshot.
pub(crate) fn may_run_on_device(step: &Step) -> bool {
    let may_all = |inner: &Pipeline| {
        let may = |step: &PlanStep| may_run_on_device(&step.step) && !matches!(step.step, Step::Scan { .. });
        !inner.steps.is_empty() && inner.steps.iter().all(may)
    };
    match step {
        Step::Scan { .. } | Step::Expand { edge: None, .. } | Step::Check { .. } | Step::Frontier { .. } => {
            true
        }
        Step::Intersect { legs, .. } => legs.len() <= LEGS_MAX,
        Step::Filter(expression) => may_be_decided(expression),
        Step::Exists { inner, semi_join_kind: SemiJoinKind::Semi | SemiJoinKind::Anti, .. }
        | Step::Optional { inner, .. } => may_all(inner),
        Step::Union { branches } => branches.iter().all(may_all),
        _ => false,
    }
}

/// Whether an expression has only what may become tests of ids.
fn may_be_decided(expression: &Expression) -> bool {
    match expression {
        Expression::Constant(_) | Expression::Variable(_) | Expression::Bound(_) => true,
        Expression::And(_)
        | Expression::Or(_)
        | Expression::Not(_)
        | Expression::Equal(..)
        | Expression::SameTerm(..)
        | Expression::Compare(..)
        | Expression::In(..) => {
            let mut may = true;
            expression.for_each_child(&mut |child| may &= may_be_decided(child));
            may
        }
        _ => false,
    }
}

struct Lowering<'a, 'e> {
    snapshot: &'a dyn Snapshot,
    evaluator: &'e Evaluator<'e>,
}

impl<'a> Lowering<'a, '_> {
    /// The first steps of a pipeline, up to one that runs on the CPU. `number`: the number of the first step.
    fn pipeline(&self, steps: &[PlanStep], mut number: usize, scans: bool) -> Result<Vec<DeviceStep<'a>>> {
        let mut lowered = Vec::new();
        for step in steps {
            let Some(op) = self.step(step, number, scans && lowered.is_empty())? else { break };
            lowered.push(DeviceStep { op, keep: step.keep.clone(), number });
            number += step.step.number_steps();
        }
        Ok(lowered)
    }

    /// All steps of a nested pipeline of the step `number`; `None`: one runs on the CPU.
    fn nested(&self, inner: &Pipeline, number: usize) -> Result<Option<Vec<DeviceStep<'a>>>> {
        let lowered = self.pipeline(&inner.steps, number + 1, false)?;
        Ok((lowered.len() == inner.steps.len()).then_some(lowered))
    }

    /// A step for the device; `None`: it runs on the CPU.
    fn step(&self, step: &PlanStep, number: usize, may_scan: bool) -> Result<Option<LoweredStep<'a>>> {
        if step.keep.len() > COLUMNS_MAX || !may_run_on_device(&step.step) {
            return Ok(None);
        }
        let leg = |key: Operand, access: &Access, distinct: bool| leg(key, access, distinct, self.snapshot);
        let expand = |legs: Vec<LoweredLeg<'a>>, target: Option<Variable>| match target {
            Some(target) => LoweredStep::Expand { legs, target },
            None => LoweredStep::Count { legs },
        };
        Ok(match &step.step {
            Step::Scan { access, key, neighbour } if may_scan && *neighbour != Some(*key) => {
                match leg(Operand::Variable(*key), access, false)? {
                    Lowered::Leg(leg) => Some(expand(vec![leg], *neighbour)),
                    // The CPU lists no key of a segment without entries.
                    Lowered::Empty | Lowered::OnCpu => None,
                }
            }
            Step::Expand { key, access, neighbour, edge: None } => match leg(*key, access, false)? {
                Lowered::Leg(leg) => Some(expand(vec![leg], *neighbour)),
                Lowered::Empty => Some(LoweredStep::Empty),
                Lowered::OnCpu => None,
            },
            Step::Check { key, access, neighbour } => {
                let access = Access { parallel: false, ..*access };
                match leg(*key, &access, false)? {
                    Lowered::Leg(leg) => Some(LoweredStep::Check { leg, neighbour: *neighbour }),
                    Lowered::Empty => Some(LoweredStep::Empty),
                    Lowered::OnCpu => None,
                }
            }
            Step::Intersect { target, legs: parts, count_only } => {
                let mut legs = Vec::new();
                for part in parts {
                    match leg(part.key, &part.access, true)? {
                        Lowered::Leg(leg) => legs.push(leg),
                        Lowered::Empty => return Ok(Some(LoweredStep::Empty)),
                        Lowered::OnCpu => return Ok(None),
                    }
                }
                Some(expand(legs, (!count_only).then_some(*target)))
            }
            Step::Filter(condition) => {
                let tests = CompiledExpression::new(condition, self.evaluator)?.id_tests();
                let tests = tests.filter(|tests| (1..=TESTS_MAX).contains(&tests.len()));
                tests.map(|tests| LoweredStep::Filter { tests })
            }
            Step::Frontier { .. } => Some(LoweredStep::Unique),
            Step::Exists { inner, row, semi_join_kind } => {
                let wanted = *semi_join_kind == SemiJoinKind::Semi;
                let inner = self.nested(inner, number)?;
                inner.map(|inner| LoweredStep::Exists { inner, row: *row, wanted })
            }
            Step::Optional { inner, row } => {
                let inner = self.nested(inner, number)?;
                inner.map(|inner| LoweredStep::Optional { inner, row: *row })
            }
            Step::Union { branches } => {
                let (mut lowered, mut before) = (Vec::new(), number);
                for branch in branches {
                    let Some(steps) = self.nested(branch, before)? else { return Ok(None) };
                    lowered.push(steps);
                    before += branch.number_steps();
                }
                Some(LoweredStep::Union { branches: lowered })
            }
            _ => None,
        })
    }
}

enum Lowered<'a> {
    Leg(LoweredLeg<'a>),
    /// The segment has no entries.
    Empty,
    /// The segment must not be copied.
    OnCpu,
}

fn leg<'a>(key: Operand, access: &Access, distinct: bool, snapshot: &'a dyn Snapshot) -> Result<Lowered<'a>> {
    let Some(segment) = snapshot.segment(access.predicate, access.direction)? else {
        return Ok(Lowered::Empty);
    };
    let filter = EntryFilter { graph: access.graph, parallel: access.parallel };
    Ok(match Variant::new(segment, filter, distinct) {
        Some(variant) => Lowered::Leg(LoweredLeg { key, used: SegmentUse { segment, variant } }),
        None => Lowered::OnCpu,
    })
}
