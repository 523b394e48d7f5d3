//! Frontiers: best-effort deduplication of rows under set semantics, before further expansion.
//!
//! # Shape
//! A pass over the finished plan, from its end. Below a distinct, and below duplicate-insensitive aggregates,
//! set semantics hold; where rows there have a single column and later steps expand them, [`Step::Frontier`]
//! drops duplicates. So `DISTINCT ?c { … ?a :knows ?b . ?b :knows ?c }` expands each `?b` once instead of
//! once for each path that leads there.
//! # Invariants
//! The dropped columns are dead, so rows with equal values in the remaining column have the same future.
//! Non-deterministic functions (`RAND`, `BNODE`) end the region; so do a slice and other aggregates.
//! # Cost
//! A bit test for each row; the kernel gives up if nearly all rows are new.
//! # Source
//! J. Chen et al., "Grasper", SoCC 2019, §4.3, which drops the history of a traverser; here any dead column.

use crate::lower::Planner;
use crate::partial_plan::PartialPlan;
use vervet_algebra::{Node, Pattern, Slot, Variable, VariableSet};
use vervet_kernel::plan::{JoinKind, Pipeline, PlanStep, Step};
use vervet_model::Direction;

/// Minimum estimated rows for a frontier.
const FRONTIER_ROWS_MIN: f64 = 64.0;

/// Properties of the later steps.
#[derive(Clone, Copy)]
struct DownstreamProperties {
    /// Set semantics: the result does not depend on duplicates.
    set: bool,
    /// Some later step multiplies rows.
    multiplies: bool,
}

/// Inserts frontiers into a plan whose steps have their `keep` columns.
pub(crate) fn add_frontiers(pipeline: &mut Pipeline) {
    add(pipeline, DownstreamProperties { set: false, multiplies: false });
}

fn add(pipeline: &mut Pipeline, mut downstream: DownstreamProperties) {
    for at in (0..pipeline.steps.len()).rev() {
        let is_last = at + 1 == pipeline.steps.len();
        let step = &mut pipeline.steps[at];
        if let ([variable], true) =
            (step.keep.as_slice(), downstream.set && downstream.multiplies && !is_last)
            && step.rows >= FRONTIER_ROWS_MIN
            && makes_duplicates(&step.step, at)
        {
            let frontier = Step::Frontier { variable: *variable };
            let frontier = PlanStep { step: frontier, keep: step.keep.clone(), rows: step.rows };
            pipeline.steps.insert(at + 1, frontier);
        }
        downstream = before(&mut pipeline.steps[at].step, downstream);
    }
}

/// Whether the output of this step may contain duplicates in a single column.
fn makes_duplicates(step: &Step, at: usize) -> bool {
    match step {
        Step::Expand { .. } => at > 0,
        Step::Scan { neighbour, .. } | Step::Seek { neighbour, .. } => neighbour.is_some(),
        Step::Union { .. }
        | Step::Join { kind: JoinKind::Inner | JoinKind::Left(_), .. }
        | Step::Match(_)
        | Step::SeekMatch { .. }
        | Step::Intersect { .. }
        | Step::Optional { .. }
        | Step::Seeded { .. } => true,
        Step::Path(_) => at > 0,
        _ => false,
    }
}

/// Propagates the properties to the input of a step; inserts frontiers into its nested pipelines.
fn before(step: &mut Step, downstream: DownstreamProperties) -> DownstreamProperties {
    let set = downstream.set && is_stable(step);
    let inside = DownstreamProperties { set, ..downstream };
    match step {
        Step::Union { branches } => branches.iter_mut().for_each(|branch| add(branch, inside)),
        Step::Join { right, .. } => add(right, inside),
        // These pipelines run again for each batch, and a column holds the position of the row in the batch.
        Step::Optional { inner, .. } | Step::Seeded { inner, .. } | Step::Exists { inner, .. } => {
            add(inner, DownstreamProperties { set: false, ..downstream })
        }
        _ => {}
    }
    match step {
        Step::Distinct { .. } => DownstreamProperties { set: true, multiplies: false },
        Step::Group { aggregates, .. } => DownstreamProperties {
            set: aggregates.iter().all(|(_, one)| one.ignores_duplicates()),
            multiplies: false,
        },
        Step::Slice { .. } | Step::Order { limit: Some(_), .. } => {
            DownstreamProperties { set: false, multiplies: false }
        }
        Step::Expand { neighbour: None, .. } => inside,
        Step::Expand { .. }
        | Step::Scan { .. }
        | Step::Seek { .. }
        | Step::Match(_)
        | Step::SeekMatch { .. }
        | Step::Path(_)
        | Step::Intersect { .. }
        | Step::Join { .. }
        | Step::Optional { .. }
        | Step::Seeded { .. }
        | Step::Union { .. } => DownstreamProperties { set, multiplies: true },
        Step::Empty
        | Step::Check { .. }
        | Step::Filter(_)
        | Step::Extend { .. }
        | Step::Exists { .. }
        | Step::Values { .. }
        | Step::Frontier { .. }
        | Step::Order { .. } => inside,
    }
}

/// Whether all expressions of a step are deterministic, nested steps included.
pub(crate) fn is_stable(step: &Step) -> bool {
    let own = match step {
        Step::Filter(expression)
        | Step::Extend { expression, .. }
        | Step::Join { kind: JoinKind::Left(Some(expression)), .. } => !expression.is_volatile(),
        Step::Order { keys, .. } => keys.iter().all(|key| !key.expression.is_volatile()),
        Step::Group { aggregates, .. } => aggregates
            .iter()
            .all(|(_, one)| one.expression.as_ref().is_none_or(|expression| !expression.is_volatile())),
        _ => true,
    };
    own && step.nested().iter().all(|nested| nested.steps.iter().all(|step| is_stable(&step.step)))
}

impl Planner<'_> {
    /// Limits the estimated rows after the join with `node` to the distinct values of the last live column,
    /// if there is only one. An estimate: [`add_frontiers`] decides later whether there is a frontier.
    pub(crate) fn cap_rows_by_distinct(&self, node: &Node, partial: &mut PartialPlan, needed: &VariableSet) {
        let live = partial.possible.clone().intersection(needed);
        let mut live = live.iter();
        if let (true, Some(variable), None) = (self.set, live.next(), live.next())
            && let Some(values) = self.values_in(node, variable)
        {
            partial.rows = partial.rows.min(values);
        }
    }

    /// Upper bound on the distinct values of a variable under the patterns of all these nodes; `None`:
    /// unbounded.
    fn values_of<'q>(&self, nodes: impl Iterator<Item = &'q Node>, variable: Variable) -> Option<f64> {
        nodes.filter_map(|node| self.values_in(node, variable)).reduce(f64::min)
    }

    fn values_in(&self, node: &Node, variable: Variable) -> Option<f64> {
        match node {
            Node::Patterns(patterns) => {
                let all = patterns.iter().filter_map(|pattern| self.values_in_pattern(pattern, variable));
                all.reduce(f64::min)
            }
            Node::Join(nodes) => self.values_of(nodes.iter(), variable),
            Node::Union(nodes) => nodes.iter().map(|node| self.values_in(node, variable)).sum(),
            Node::Path(pattern) if pattern.object == Slot::Variable(variable) => {
                if pattern.path.is_nullable() {
                    return None; // The empty path also yields its start.
                }
                Some(self.path_facts(&pattern.path).ok()?.forwards.most)
            }
            Node::Filter { input, .. }
            | Node::Project { input, .. }
            | Node::Distinct(input)
            | Node::Reduced(input) => self.values_in(input, variable),
            _ => None,
        }
    }

    fn values_in_pattern(&self, pattern: &Pattern, variable: Variable) -> Option<f64> {
        let Slot::Constant(predicate) = &pattern.predicate else { return None };
        let is = |slot: &Slot| *slot == Slot::Variable(variable);
        if !is(&pattern.subject) && !is(&pattern.object) {
            return None;
        }
        let predicate = self.snapshot.lookup(predicate.as_ref()).ok()??;
        let segment = self.snapshot.segment(predicate, Direction::Out).ok()??;
        let statistics = segment.statistics();
        let values = if is(&pattern.subject) { statistics.keys } else { statistics.neighbours };
        Some(values as f64)
    }
}
