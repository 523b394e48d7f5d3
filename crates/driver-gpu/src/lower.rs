//! Lowering: the part of a plan that can run on the device, with its segments.
//!
//! # Steps on the device
//! Scan as the first step of the part, expand with or without neighbour, check, intersect of up to
//! [`LEGS_MAX`] legs, listed or counted. All others run on the CPU. The part is the longest run of such steps
//! of the root pipeline before anything that sorts: rows leave the device in another order than they enter.

use crate::windows::Variant;
use std::ops::Range;
use vervet_algebra::Variable;
use vervet_device::{COLUMNS_MAX, LEGS_MAX};
use vervet_kernel::plan::{Access, Operand, Pipeline, Plan, PlanStep, Step};
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
}

impl<'a> LoweredStep<'a> {
    /// Its segments.
    pub(crate) fn segments(&self) -> impl Iterator<Item = SegmentUse<'a>> {
        let legs = match self {
            Self::Empty => Vec::new(),
            Self::Expand { legs, .. } | Self::Count { legs } => legs.clone(),
            Self::Check { leg, .. } => vec![*leg],
        };
        legs.into_iter().map(|leg| leg.used)
    }
}

/// The part of a plan that runs on the device.
pub(crate) struct DevicePart<'a> {
    /// Positions of its steps in the root pipeline.
    pub(crate) range: Range<usize>,
    /// One for each step.
    pub(crate) steps: Vec<LoweredStep<'a>>,
    /// The segment whose keys the CPU lists, if the first step is a scan, and the variable of the keys.
    pub(crate) scan: Option<(&'a dyn Segment, Variable)>,
    /// The same steps as a pipeline for the CPU: a scan is an expansion of its keys.
    pub(crate) pipeline: Pipeline,
}

impl<'a> DevicePart<'a> {
    /// The longest part of the plan for the device; `None`: there is none.
    pub(crate) fn new(plan: &Plan, snapshot: &'a dyn Snapshot) -> Result<Option<Self>> {
        if vervet_kernel::needs_one_thread(plan) || plan.variables.len() > usize::from(u16::MAX) / 2 {
            return Ok(None);
        }
        let steps = &plan.pipeline.steps;
        let end = steps
            .iter()
            .position(|step| matches!(step.step, Step::Order { .. } | Step::Slice { .. }))
            .unwrap_or(steps.len());
        let mut best: Option<(Range<usize>, Vec<LoweredStep<'a>>)> = None;
        let mut start = 0;
        while start < end {
            let mut lowered = Vec::new();
            for step in &steps[start..end] {
                match lower(step, lowered.is_empty(), snapshot)? {
                    Some(step) => lowered.push(step),
                    None => break,
                }
            }
            let length = lowered.len();
            if length > best.as_ref().map_or(0, |(range, _)| range.len()) {
                best = Some((start..start + length, lowered));
            }
            start += length.max(1);
        }
        let Some((range, lowered)) = best else { return Ok(None) };
        let mut pipeline = Pipeline { steps: steps[range.clone()].to_vec() };
        // Ranges refer to steps of the plan by identity.
        pipeline.steps.iter_mut().for_each(|step| step.validity = None);
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
        Ok(Some(Self { range, steps: lowered, scan, pipeline }))
    }
}

/// The kinds of steps that may run on the device, for `EXPLAIN` without a snapshot.
pub(crate) fn may_run_on_device(step: &Step) -> bool {
    match step {
        Step::Scan { .. } | Step::Expand { edge: None, .. } | Step::Check { .. } => true,
        Step::Intersect { legs, .. } => legs.len() <= LEGS_MAX,
        _ => false,
    }
}

/// A step for the device; `None`: it runs on the CPU.
fn lower<'a>(step: &PlanStep, is_first: bool, snapshot: &'a dyn Snapshot) -> Result<Option<LoweredStep<'a>>> {
    if step.keep.len() > COLUMNS_MAX || !may_run_on_device(&step.step) {
        return Ok(None);
    }
    let leg = |key: Operand, access: &Access, distinct: bool| leg(key, access, distinct, snapshot);
    let expand = |legs: Vec<LoweredLeg<'a>>, target: Option<Variable>| match target {
        Some(target) => LoweredStep::Expand { legs, target },
        None => LoweredStep::Count { legs },
    };
    Ok(match &step.step {
        Step::Scan { access, key, neighbour } if is_first && *neighbour != Some(*key) => {
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
        _ => None,
    })
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
