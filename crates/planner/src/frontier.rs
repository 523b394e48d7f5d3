//! Frontiers: best-effort deduplication of rows under set semantics, before further expansion.
//!
//! # Shape
//! A pass over the finished plan, from its end. Below a distinct, below duplicate-insensitive aggregates, and
//! in a query that only asks whether there is a solution, set semantics hold; where later steps expand the
//! rows of a step that may contain duplicates, [`Step::Frontier`] drops them. So `DISTINCT ?c { … ?a :knows
//! ?b . ?b :knows ?c }` expands each `?b` once instead of once for each path that leads there.
//!
//! A pattern of which only the predicate remains outputs each predicate once, so one entry of each is found.
//! # Invariants
//! The dropped columns are dead, so rows with equal values in the remaining columns have the same future.
//! Non-deterministic functions (`RAND`, `BNODE`) end the region; so do a slice and other aggregates.
//! # Cost
//! A bit test for each row of one column, a hash table look-up for each row of several; the kernel gives up
//! if nearly all rows are new. Estimates do not decide: where they are far too low, duplicates are many.
//! # Source
//! J. Chen et al., "Grasper", SoCC 2019, §4.3, which drops the history of a traverser; here any dead
//! columns.

use crate::liveness::columns_after;
use crate::lower::Planner;
use crate::partial_plan::PartialPlan;
use vervet_algebra::{Node, Pattern, Slot, Variable, VariableSet};
use vervet_kernel::plan::{JoinKind, Operand, Pipeline, PlanStep, Step};
use vervet_model::Direction;
use vervet_snapshot::Snapshot;

/// Properties of the later steps.
#[derive(Clone, Copy)]
struct DownstreamProperties<'s> {
    /// Set semantics: the result does not depend on duplicates.
    set: bool,
    /// Some later step multiplies rows.
    multiplies: bool,
    /// The graph, whose predicates are counted only if a step lists them anyway.
    snapshot: &'s dyn Snapshot,
}

/// Inserts frontiers into a plan whose steps have their `keep` columns. `set`: the result does not depend on
/// duplicates of the rows before the last slice (`ASK`).
pub(crate) fn add_frontiers(pipeline: &mut Pipeline, set: bool, snapshot: &dyn Snapshot) {
    let last = match pipeline.steps.last() {
        Some(PlanStep { step: Step::Slice { start: 0, .. }, .. }) if set => pipeline.steps.pop(),
        _ => None,
    };
    add(pipeline, DownstreamProperties { set, multiplies: false, snapshot }, &VariableSet::default());
    pipeline.steps.extend(last);
}

/// `columns`: those of the input.
fn add(pipeline: &mut Pipeline, mut downstream: DownstreamProperties<'_>, columns: &VariableSet) {
    let kept = pipeline.steps.iter().map(|step| step.keep.iter().copied().collect());
    let before: Vec<VariableSet> = std::iter::once(columns.clone()).chain(kept).collect();
    for at in (0..pipeline.steps.len()).rev() {
        let is_last = at + 1 == pipeline.steps.len();
        let step = &mut pipeline.steps[at];
        if let Step::Match(pattern) = &mut step.step
            && let Operand::Variable(predicate) = pattern.predicate
            && downstream.set
            && !before[at].contains(predicate)
            && step.keep == [predicate]
        {
            pattern.predicates_once = true;
            step.rows = step.rows.min(downstream.snapshot.predicates().len() as f64);
        }
        if downstream.set
            && downstream.multiplies
            && !is_last
            && !step.keep.is_empty()
            && makes_duplicates(step, &before[at])
        {
            let (keep, rows) = (step.keep.clone(), step.rows);
            // The search of the join order has the rows that remain.
            let next = pipeline.steps[at + 1].validity.as_ref().map_or(rows, |next| next.rows_before);
            let frontier = Step::Frontier { variables: keep.clone() };
            let frontier = PlanStep { step: frontier, keep, rows: rows.min(next), validity: None };
            pipeline.steps.insert(at + 1, frontier);
        }
        downstream = before_step(&mut pipeline.steps[at].step, downstream, &before[at]);
    }
}

/// Whether the output of this step may contain duplicates that its input does not. `before`: its input
/// columns.
fn makes_duplicates(step: &PlanStep, before: &VariableSet) -> bool {
    let drops_any = |columns: &VariableSet| columns.iter().any(|column| !step.keep.contains(&column));
    match &step.step {
        // Each node with a path is output once; pairs of a path are distinct.
        Step::Path(path) => {
            let after = columns_after(&step.step, before);
            drops_any(before) || path.tested == [false, false] && drops_any(&after)
        }
        Step::Union { .. } => true,
        Step::Join { kind: JoinKind::Inner(_) | JoinKind::Left(_), .. }
        | Step::Match(_)
        | Step::SeekMatch { .. }
        | Step::Optional { .. }
        | Step::Seeded { .. } => step.keep.len() == 1 || drops_any(&columns_after(&step.step, before)),
        // The neighbours of a constant are distinct.
        Step::Expand { key: Operand::Constant(_), .. } => drops_any(before),
        Step::Expand { .. }
        | Step::Scan { .. }
        | Step::Seek { .. }
        | Step::Intersect { .. }
        | Step::Check { .. }
        | Step::Filter(_)
        | Step::Exists { .. }
        | Step::Join { .. }
        | Step::Values { .. } => drops_any(&columns_after(&step.step, before)),
        Step::Empty
        | Step::Extend { .. }
        | Step::Group { .. }
        | Step::Distinct { .. }
        | Step::Frontier { .. }
        | Step::Order { .. }
        | Step::Slice { .. } => false,
    }
}

/// Propagates the properties to the input of a step; inserts frontiers into its nested pipelines.
fn before_step<'s>(
    step: &mut Step,
    downstream: DownstreamProperties<'s>,
    columns: &VariableSet,
) -> DownstreamProperties<'s> {
    let set = downstream.set && is_stable(step);
    let inside = DownstreamProperties { set, ..downstream };
    let snapshot = downstream.snapshot;
    match step {
        Step::Union { branches } => branches.iter_mut().for_each(|branch| add(branch, inside, columns)),
        Step::Join { right, .. } => add(right, inside, &VariableSet::default()),
        // These pipelines run again for each batch, and a column holds the position of the row in the batch.
        Step::Optional { inner, .. } | Step::Seeded { inner, .. } | Step::Exists { inner, .. } => {
            add(inner, DownstreamProperties { set: false, ..downstream }, columns)
        }
        _ => {}
    }
    match step {
        Step::Distinct { .. } => DownstreamProperties { set: true, multiplies: false, snapshot },
        Step::Group { aggregates, .. } => DownstreamProperties {
            set: aggregates.iter().all(|(_, one)| one.ignores_duplicates()),
            multiplies: false,
            snapshot,
        },
        Step::Slice { .. } | Step::Order { limit: Some(_), .. } => {
            DownstreamProperties { set: false, multiplies: false, snapshot }
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
        | Step::Union { .. } => DownstreamProperties { set, multiplies: true, snapshot },
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
        Step::Filter(expression) | Step::Extend { expression, .. } => !expression.is_volatile(),
        Step::Join { kind, .. } => kind.condition().is_none_or(|condition| !condition.is_volatile()),
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
        if let (true, Some(variable), None) = (self.set && !partial.by_row, live.next(), live.next())
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
            Node::Path(pattern) if pattern.ends().any(|end| end == variable) => {
                let facts = self.path_facts(&pattern.path).ok()?;
                if pattern.path.is_nullable() {
                    // The empty path has every node as its ends; those with a first move may be values.
                    let vertices = self.snapshot.vertex_count() as f64;
                    return Some(vertices.max(facts.forwards.starts).max(facts.backwards.starts));
                }
                let is_end = pattern.object == Slot::Variable(variable);
                Some(if is_end { facts.forwards.most } else { facts.forwards.starts })
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
