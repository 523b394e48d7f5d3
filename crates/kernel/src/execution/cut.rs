//! Pipeline cutting: the split of a pipeline into a serial head, a parallel body and a serial tail.
//!
//! # Shape
//! ```text
//! head ─rows─▶ source ─morsels─▶ body ─────────────────rows─▶ tail ─▶ result
//!  once, on     (a scan, an       one copy for         once, on the
//!  the thread   expansion, or     each thread          thread that
//!  that asked   rows as they                           asked
//!               are)              └─ fold: partial states ─▶ merged
//! ```
//! The *head* outputs few rows (by estimate) and may be empty. The *source* is the first step after it whose
//! output is large enough for morsels. The *body* extends over the following steps while each has a parallel
//! form. The *fold* is a group or an order directly after the body: the copies build partial states, which
//! are merged. The *tail* is the rest, including the fold.
//! # Parallel forms of steps
//! * Scan, expand, check, intersect, match, seek, path, filter, extend, values: rows are independent of each
//!   other.
//! * Hash joins: the right side runs first, in parallel if that pays, and all copies probe one table.
//! * Distinct: copies share one set, partitioned by hash; or each has its own, if equal rows are always in
//!   one morsel (see [`crate::plan::Step::Distinct`] after a scan of its first column).
//! * Frontier: each copy has its own set, so a value may pass once in each copy.
//! * Optional, exists and union: if all nested steps have one, except stateful steps (group, order, distinct,
//!   slice).
//! * Group: partial states. Order: sorted runs.
//! * Slice: part of the tail, which stops all copies when it has enough rows.
//!
//! Plans whose result depends on the row order are not cut: see [`needs_one_thread`].

use crate::execution::volatile::needs_solution;
use crate::plan::{Pipeline, Plan, PlanStep, Step};
use std::ops::Range;
use vervet_algebra::AggregateKind;

/// Source of the morsels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SourceKind {
    /// Ranges of the keys of a scan.
    Scan,
    /// Ranges of the entries of an expansion.
    Expand,
    /// Ranges of the rows of the head.
    Rows,
}

/// Cut positions of a pipeline; see the header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PipelineCut {
    pub(crate) source: SourceKind,
    /// Position of the first step after the head.
    pub(crate) head_end: usize,
    /// Position of the first step of the tail.
    pub(crate) body_end: usize,
    /// Whether the first step of the tail is merged from partial states.
    pub(crate) folds: bool,
}

impl PipelineCut {
    /// Chooses the cut of `pipeline`, which starts from one row, so that the morsels have at least some
    /// `rows_min` rows in all; `None`: no cut is possible or worthwhile.
    #[must_use]
    pub fn new(pipeline: &Pipeline, rows_min: f64) -> Option<Self> {
        let steps = &pipeline.steps;
        let (at, source) = source(steps, rows_min)?;
        let start = at + usize::from(source != SourceKind::Rows);
        let body = steps[start..].iter().take_while(|step| runs_in_copies(&step.step, true)).count();
        let body_end = start + body;
        let folds = steps
            .get(body_end)
            .is_some_and(|step| matches!(step.step, Step::Group { .. } | Step::Order { .. }));
        // Passing rows between threads costs as much as scanning them.
        let is_worth_it = body > 0 || folds;
        is_worth_it.then_some(Self { source, head_end: at, body_end, folds })
    }

    /// The steps copied to every thread, including the source.
    #[must_use]
    pub fn steps(&self) -> Range<usize> {
        self.head_end..self.body_end + usize::from(self.folds)
    }

    /// Position of the first step of the tail.
    #[must_use]
    pub fn tail_start(&self) -> usize {
        self.body_end
    }

    /// Whether the first step of the tail is merged from partial states of the copies.
    #[must_use]
    pub fn folds(&self) -> bool {
        self.folds
    }

    /// The steps of the body, and the fold.
    pub(crate) fn stages(&self) -> Range<usize> {
        let start = self.head_end + usize::from(self.source != SourceKind::Rows);
        start..self.body_end + usize::from(self.folds)
    }
}

/// Whether a plan must run on one thread: it numbers its solutions (`BNODE` with a text), or it has a
/// `GROUP_CONCAT`, whose result depends on the row order, or a `SAMPLE` of sorted rows.
#[must_use]
pub fn needs_one_thread(plan: &Plan) -> bool {
    needs_solution(&plan.pipeline) || concatenates(&plan.pipeline)
}

fn concatenates(pipeline: &Pipeline) -> bool {
    let mut sorted = false;
    pipeline.steps.iter().any(|step| match &step.step {
        Step::Group { aggregates, .. } => aggregates.iter().any(|(_, aggregate)| match aggregate.kind {
            AggregateKind::GroupConcat { .. } => true,
            AggregateKind::Sample => sorted,
            _ => false,
        }),
        Step::Order { .. } => {
            sorted = true;
            false
        }
        other => other.nested().iter().any(concatenates),
    })
}

fn source(steps: &[PlanStep], rows_min: f64) -> Option<(usize, SourceKind)> {
    let mut rows = 1.0;
    for (at, step) in steps.iter().enumerate() {
        match &step.step {
            Step::Scan { .. } if step.rows >= rows_min => return Some((at, SourceKind::Scan)),
            Step::Expand { neighbour: Some(_), .. } if step.rows >= rows_min => {
                return Some((at, SourceKind::Expand));
            }
            other if at > 0 && rows >= rows_min && runs_in_copies(other, true) => {
                return Some((at, SourceKind::Rows));
            }
            // Copies emit rows in any order: what follows a sort runs on one thread.
            Step::Order { .. } => return None,
            _ => {}
        }
        rows = step.rows;
    }
    None
}

fn runs_in_copies(step: &Step, outermost: bool) -> bool {
    match step {
        Step::Empty
        | Step::Scan { .. }
        | Step::Seek { .. }
        | Step::Expand { .. }
        | Step::Check { .. }
        | Step::Intersect { .. }
        | Step::Match(_)
        | Step::SeekMatch { .. }
        | Step::Path(_)
        | Step::Filter(_)
        | Step::Extend { .. }
        | Step::Values { .. }
        | Step::Frontier { .. }
        | Step::Join { .. } => true,
        Step::Distinct { .. } => outermost,
        Step::Optional { .. } | Step::Seeded { .. } | Step::Exists { .. } | Step::Union { .. } => {
            (step.nested().iter())
                .all(|nested| nested.steps.iter().all(|step| runs_in_copies(&step.step, false)))
        }
        Step::Group { .. } | Step::Order { .. } | Step::Slice { .. } => false,
    }
}
