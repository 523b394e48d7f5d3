//! Which steps of a plan run at all servers, and where rows move between them.
//!
//! # Shape
//! ```text
//! head ──rows─▶ fragment ──rows by key─▶ fragment ─ … ─rows─▶ tail
//! asked server  all servers               all servers          asked server
//! ```
//! Any step reads any part of the graph from any server, in batches, so moving rows is a matter of cost, not
//! of correctness: a row goes to the owner of the key that the next step reads if there are enough rows, or
//! if the step after it reads by the same key. Only a scan at the beginning is bound to places: each server
//! scans its own partitions.

use crate::servers::Servers;
use crate::task::{Combine, Fragment};
use std::ops::Range;
use vervet_algebra::{Expression, Variable};
use vervet_kernel::BATCH_ROWS;
use vervet_kernel::plan::{Access, Operand, Pipeline, PlanStep, Step};

/// Estimated rows that a scan multiplies; more are not sent to all servers.
const ROWS_SENT_TO_ALL: f64 = 64.0;

/// See the header of this file.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Placement {
    /// The steps that run at all servers.
    pub(crate) steps: Range<usize>,
    /// Those steps. A check may have its ends exchanged.
    pub(crate) pipeline: Pipeline,
    pub(crate) fragments: Vec<Fragment>,
    pub(crate) combine: Combine,
    /// The largest estimated number of rows after one of the steps.
    pub(crate) rows_max: f64,
}

impl Placement {
    /// The placement of a pipeline that starts from one row; `None`: it runs where the query was asked, which
    /// is possible, or takes fewer round trips. `rows_min`: estimated rows from which they move to the owners
    /// of their keys, whatever follows; 0: everything that can runs at all servers.
    pub(crate) fn new(pipeline: &Pipeline, servers: &Servers, rows_min: f64) -> Option<Self> {
        let steps = &pipeline.steps;
        let start = start(steps, servers, rows_min)?;
        let mut walk = Walk { rows_min, ..Walk::default() };
        let mut rows = if start == 0 { 1.0 } else { steps[start - 1].rows };
        let (mut rows_max, mut read_trips) = (0.0_f64, 0.0);
        for (at, step) in steps.iter().enumerate().skip(start) {
            if !walk.take(step, rows, steps.get(at + 1), servers) {
                break;
            }
            read_trips += self::read_trips(&step.step, rows, step.rows);
            rows = step.rows;
            rows_max = rows_max.max(rows);
        }
        let end = start + walk.steps.len();
        walk.end_fragment();
        if rows_min > 0.0 && read_trips <= walk.fragments.len() as f64 {
            return None;
        }
        let combine = match steps.get(end).map(|step| &step.step) {
            Some(Step::Group { .. }) => Combine::Sum,
            Some(Step::Distinct { .. }) => Combine::Set,
            _ => Combine::No,
        };
        // A scan alone whose rows are all sent would be slower than reading.
        let is_worth_it = end > start && (end > start + 1 || combine != Combine::No);
        let pipeline = Pipeline { steps: walk.steps };
        is_worth_it.then_some(Self {
            steps: start..end,
            pipeline,
            fragments: walk.fragments,
            combine,
            rows_max,
        })
    }
}

/// The first step that runs at all servers.
fn start(steps: &[PlanStep], servers: &Servers, rows_min: f64) -> Option<usize> {
    let mut rows = 1.0;
    for (at, step) in steps.iter().enumerate() {
        let wanted = wanted_key(&step.step, None, servers);
        let is_moved = wanted.is_some() && (rows >= rows_min || wants(steps.get(at + 1), wanted, servers));
        match &step.step {
            source if rows <= ROWS_SENT_TO_ALL && step.rows >= rows_min && is_source(source, servers) => {
                return Some(at);
            }
            // What follows a sort keeps its order.
            Step::Order { .. } | Step::Slice { .. } | Step::Group { .. } => return None,
            other if is_moved && is_placeable(other, true) => return Some(at),
            // Its rows may have computed terms, which only this server knows.
            other if !matches!(other, Step::Scan { .. }) && !is_placeable(other, true) => return None,
            _ => {}
        }
        rows = step.rows;
    }
    None
}

/// Whether each server can run the step for its own partitions, and all of them together run it once.
fn is_source(step: &Step, servers: &Servers) -> bool {
    match step {
        // A key of a split segment would be output by each server.
        Step::Scan { access, neighbour, .. } => neighbour.is_some() || servers.is_keyed(access),
        Step::Seek { access, neighbour, candidates, .. } => {
            candidates.search.is_none() && (neighbour.is_some() || servers.is_keyed(access))
        }
        // Each server has the entries of its own neighbours.
        Step::Expand { key: Operand::Constant(_), access, neighbour, .. } => {
            neighbour.is_some() && !servers.is_keyed(access)
        }
        _ => false,
    }
}

/// Whether a step may run at any server: it keeps nothing from row to row, its output has no computed terms,
/// and it is in the bytes of a job. `outermost`: it is not nested in another one.
fn is_placeable(step: &Step, outermost: bool) -> bool {
    let nested = || {
        let mut steps = step.nested().iter().flat_map(|nested| &nested.steps);
        steps.all(|step| is_placeable(&step.step, false))
    };
    match step {
        Step::Empty
        | Step::Expand { .. }
        | Step::Check { .. }
        | Step::Intersect { .. }
        | Step::Match(_)
        | Step::Path(_)
        | Step::Values { .. }
        | Step::Frontier { .. } => true,
        Step::Seek { candidates, .. } | Step::SeekMatch { candidates, .. } => candidates.search.is_none(),
        Step::Scan { .. } => !outermost,
        Step::Filter(condition) => is_placeable_expression(condition),
        Step::Optional { .. } | Step::Seeded { .. } | Step::Exists { .. } | Step::Union { .. } => nested(),
        Step::Extend { .. }
        | Step::Join { .. }
        | Step::Group { .. }
        | Step::Distinct { .. }
        | Step::Order { .. }
        | Step::Slice { .. } => false,
    }
}

fn is_placeable_expression(expression: &Expression) -> bool {
    !expression.is_volatile() && !expression.has_exists()
}

/// The variable whose owner has what a step reads of a row; `None`: any server is as good, or the row is
/// there already: at the owner of `site`.
fn wanted_key(step: &Step, site: Option<Variable>, servers: &Servers) -> Option<Variable> {
    let key_of = |key: Operand, access: &Access| match key {
        Operand::Variable(variable) if servers.is_keyed(access) => Some(variable),
        _ => None,
    };
    let wanted = |keys: &[Option<Variable>]| {
        let is_here = site.is_some() && keys.contains(&site);
        if is_here { None } else { keys.iter().find_map(|key| *key) }
    };
    match step {
        Step::Expand { key, access, .. } => wanted(&[key_of(*key, access)]),
        Step::Check { key, access, neighbour } => {
            wanted(&[key_of(*key, access), key_of(*neighbour, &reversed(access))])
        }
        Step::Intersect { legs, .. } => {
            wanted(&legs.iter().map(|leg| key_of(leg.key, &leg.access)).collect::<Vec<_>>())
        }
        Step::Optional { .. } | Step::Seeded { .. } | Step::Exists { .. } | Step::Union { .. } => {
            let first = step.nested().first().and_then(|nested| nested.steps.first());
            first.and_then(|first| wanted_key(&first.step, site, servers))
        }
        _ => None,
    }
}

/// Whether the next step reads by this key, too.
fn wants(next: Option<&PlanStep>, key: Option<Variable>, servers: &Servers) -> bool {
    next.is_some_and(|next| is_placeable(&next.step, true) && wanted_key(&next.step, key, servers).is_none())
        && next.is_some_and(|next| wanted_key(&next.step, None, servers).is_some())
}

/// Round trips to other servers one after the other, if a step reads them in place.
fn read_trips(step: &Step, rows_in: f64, rows_out: f64) -> f64 {
    let batches = |rows: f64| (rows / BATCH_ROWS as f64).ceil().max(1.0);
    match step {
        Step::Scan { .. } | Step::Seek { .. } => batches(rows_out),
        Step::Expand { .. } | Step::Match(_) | Step::SeekMatch { .. } => batches(rows_in.max(rows_out)),
        Step::Check { .. } | Step::Path(_) => batches(rows_in),
        Step::Intersect { legs, .. } => legs.len() as f64 * batches(rows_in),
        other => {
            let steps = other.nested().iter().flat_map(|nested| &nested.steps);
            steps.map(|step| read_trips(&step.step, rows_in, step.rows)).sum()
        }
    }
}

fn reversed(access: &Access) -> Access {
    Access { direction: access.direction.reverse(), ..*access }
}

/// Steps taken so far, and where their rows are.
#[derive(Default)]
struct Walk {
    steps: Vec<PlanStep>,
    fragments: Vec<Fragment>,
    /// Start and key of the current fragment.
    current: (usize, Option<Variable>),
    /// Rows are at the owner of this variable.
    site: Option<Variable>,
    has_begun: bool,
    /// See [`Placement::new`].
    rows_min: f64,
}

impl Walk {
    /// Takes the next step, which receives about `rows` rows; `false`: it cannot run at any server. `next`:
    /// the step after it.
    fn take(&mut self, step: &PlanStep, rows: f64, next: Option<&PlanStep>, servers: &Servers) -> bool {
        if !self.has_begun {
            self.has_begun = true;
            if is_source(&step.step, servers) {
                self.site = match &step.step {
                    Step::Scan { access, key, .. } | Step::Seek { access, key, .. }
                        if servers.is_keyed(access) =>
                    {
                        Some(*key)
                    }
                    Step::Scan { neighbour, .. }
                    | Step::Seek { neighbour, .. }
                    | Step::Expand { neighbour, .. } => *neighbour,
                    _ => None,
                };
                self.push(step.clone());
                return true;
            }
            if !is_placeable(&step.step, true) {
                return false;
            }
            let key = wanted_key(&step.step, None, servers);
            self.current.1 = key;
            self.site = key;
            self.push(self.oriented(step, servers));
            return key.is_some();
        }
        if !is_placeable(&step.step, true) {
            return false;
        }
        let step = self.oriented(step, servers);
        if let Some(key) = wanted_key(&step.step, self.site, servers)
            && (rows >= self.rows_min || wants(next, Some(key), servers))
        {
            self.end_fragment();
            self.current = (self.steps.len(), Some(key));
            self.site = Some(key);
        }
        self.push(step);
        true
    }

    fn push(&mut self, mut step: PlanStep) {
        step.validity = None;
        self.steps.push(step);
    }

    /// A check read from the end where the rows are.
    fn oriented(&self, step: &PlanStep, servers: &Servers) -> PlanStep {
        let mut step = step.clone();
        if let Step::Check { key, access, neighbour } = &mut step.step {
            let other = reversed(access);
            let is_at = |operand: Operand| self.site.is_some_and(|site| operand == Operand::Variable(site));
            let is_here = is_at(*key) && servers.is_keyed(access);
            let is_keyed = matches!(key, Operand::Variable(_)) && servers.is_keyed(access);
            let is_better = is_at(*neighbour) || !is_keyed && matches!(neighbour, Operand::Variable(_));
            if !is_here && is_better && servers.is_keyed(&other) {
                std::mem::swap(key, neighbour);
                *access = other;
            }
        }
        step
    }

    fn end_fragment(&mut self) {
        let (start, key) = self.current;
        if self.steps.len() > start {
            self.fragments.push(Fragment { steps: start..self.steps.len(), key });
        }
    }
}
