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
//!
//! Before an `ORDER BY` with a small limit, each task sends back its own first rows alone: the last fragment
//! ends with a copy of that step (`is_first_rows`). Before groups, it ends with groups of the rows of the
//! task (`partial_groups.rs`).
//!
//! Steps run at all servers as far as that is cheaper than reading in place: a move of rows takes a request
//! of each server to each other one, a read of the server that was asked only one to each (`cost.rs`).

use crate::cost::Cost;
use crate::partial_groups::{self, Columns};
use crate::plan_bytes::uncounted;
use crate::servers::Servers;
use crate::task::{Combine, FIRST_ROWS_MAX, Fragment, Job};
use std::ops::Range;
use vervet_algebra::{Expression, Variable};
use vervet_kernel::plan::{Access, Leg, Operand, Pipeline, PlanStep, Step};

/// Estimated rows of the right side of a join that goes to all servers.
const JOIN_ROWS_MAX: f64 = 2_048.0;

/// Estimated rows that a scan multiplies; more are not sent to all servers.
const ROWS_SENT_TO_ALL: f64 = 64.0;

/// Maximum rows, plus one batch, that wait for the first fragment where the query was asked.
pub(crate) const HEAD_ROWS_MAX: usize = 1 << 16;

/// See the header of this file.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Placement {
    /// The steps that run at all servers.
    pub(crate) steps: Range<usize>,
    /// Those steps. A check may have its ends exchanged. With `has_first_rows`, a copy of the step behind
    /// them follows; with `merge`, what tasks do of it.
    pub(crate) pipeline: Pipeline,
    /// Each task keeps the first rows of the order that follows.
    pub(crate) has_first_rows: bool,
    /// The steps that merge the groups of tasks, in place of the step behind `steps`.
    pub(crate) merge: Option<Pipeline>,
    pub(crate) fragments: Vec<Fragment>,
    pub(crate) combine: Combine,
    /// The largest estimated number of rows after one of the steps.
    pub(crate) rows_max: f64,
}

impl Placement {
    /// The first placement of a pipeline that starts from one row, among its steps from `from` on; `None`:
    /// they run where the query was asked, which is possible, or costs less. `rows_min`: estimated rows from
    /// which they move to the owners of their keys, whatever follows; 0: everything that can runs at all
    /// servers. `with_joins`: also joins with few rows at their right sides, whose tables then go to all
    /// servers.
    pub(crate) fn new(
        pipeline: &Pipeline,
        from: usize,
        columns: Columns,
        servers: &Servers,
        rows_min: f64,
        with_joins: bool,
    ) -> Option<Self> {
        let steps = &pipeline.steps;
        let mut from = from;
        loop {
            let start = start(steps, from, servers, rows_min, with_joins)?;
            let placement = Self::at(pipeline, start, columns, servers, rows_min, with_joins);
            if placement.is_some() {
                return placement;
            }
            // Behind a join with many rows at its right side it may pay again.
            let is_large =
                |step: &PlanStep| matches!(step.step, Step::Join { .. }) && !is_small_join(&step.step);
            from = start + 1 + steps[start + 1..].iter().position(is_large)?;
        }
    }

    /// The placement whose first step is `start`; see [`Placement::new`].
    fn at(
        pipeline: &Pipeline,
        start: usize,
        columns: Columns,
        servers: &Servers,
        rows_min: f64,
        with_joins: bool,
    ) -> Option<Self> {
        let steps = &pipeline.steps;
        let walk = |limit: usize| {
            let mut walk = Walk { rows_min, with_joins, ..Walk::default() };
            let mut rows = rows_before(steps, start);
            for (at, step) in steps.iter().enumerate().take(limit).skip(start) {
                if !walk.take(step, rows, steps.get(at + 1), servers) {
                    break;
                }
                rows = step.rows;
            }
            walk.end_fragment();
            walk
        };
        let all = walk(steps.len());
        let end = match rows_min > 0.0 {
            true => start + cheapest_end(&all, pipeline, start, servers)?,
            false => start + all.steps.len(),
        };
        let walk = if end < start + all.steps.len() { walk(end) } else { all };
        let (part, merge) = steps.get(end).and_then(|next| partial_groups::split(next, columns)).unzip();
        let combine = match steps.get(end).map(|step| &step.step) {
            Some(Step::Group { .. }) if merge.is_none() => Combine::Sum,
            Some(Step::Distinct { .. }) => Combine::Set,
            _ => Combine::No,
        };
        let rows_max = walk.steps.iter().map(|step| step.rows).fold(0.0, f64::max);
        let Walk { steps: mut placed, mut fragments, .. } = walk;
        let first_rows = steps.get(end).filter(|next| is_first_rows(&next.step));
        if let (Some(order), Some(last), Some(fragment)) = (first_rows, placed.last(), fragments.last_mut()) {
            // The order is read again where the query was asked, so all columns stay.
            placed.push(PlanStep { keep: last.keep.clone(), validity: None, ..order.clone() });
            fragment.steps.end += 1;
        }
        let has_first_rows = first_rows.is_some();
        if let (Some(part), Some(fragment)) = (part, fragments.last_mut()) {
            placed.push(part);
            fragment.steps.end += 1;
        }
        // A scan alone whose rows are all sent would be slower than reading.
        let is_worth_it =
            end > start && (end > start + 1 || combine != Combine::No || has_first_rows || merge.is_some());
        let pipeline = Pipeline { steps: placed };
        is_worth_it.then_some(Self {
            steps: start..end,
            pipeline,
            has_first_rows,
            merge,
            fragments,
            combine,
            rows_max,
        })
    }

    /// The steps as a job of server `origin`, without what belongs to a single run.
    pub(crate) fn job(&self, variables: usize, origin: usize) -> Job {
        Job {
            variables,
            origin,
            query: 0,
            pipeline: self.pipeline.clone(),
            fragments: self.fragments.clone(),
            behind: 0,
            combine: self.combine,
            now: [0; 18],
            base: None,
            computed: Vec::new(),
            tables: Vec::new(),
            memory_bytes: None,
            profile: false,
            is_heavy: false,
            assignment: Vec::new(),
            build: 0,
            places: Vec::new(),
        }
    }
}

/// Estimated rows that a step receives.
fn rows_before(steps: &[PlanStep], at: usize) -> f64 {
    at.checked_sub(1).and_then(|before| steps.get(before)).map_or(1.0, |before| before.rows)
}

/// How many of the steps of a walk run at all servers, so that all together cost the least; `None`: none.
fn cheapest_end(walk: &Walk, pipeline: &Pipeline, start: usize, servers: &Servers) -> Option<usize> {
    let (steps, placed) = (&pipeline.steps, &walk.steps);
    let cost = Cost::new(servers);
    // Of the steps from each one on, here.
    let mut rest = vec![0.0; placed.len() + 1];
    for at in (0..placed.len()).rev() {
        rest[at] = rest[at + 1] + cost.here(&steps[start + at], rows_before(steps, start + at));
    }
    let (mut best, mut best_cost) = (None, rest[0]);
    let head_rows = rows_before(steps, start);
    let rounds = (head_rows / HEAD_ROWS_MAX as f64).ceil().max(1.0);
    let mut before = rounds * cost.start() + if start > 0 { cost.back(head_rows) } else { 0.0 };
    for (number, fragment) in walk.fragments.iter().enumerate() {
        let range = fragment.steps.clone();
        if number > 0 {
            before += cost.move_rows(rows_before(steps, start + range.start));
        }
        let own = range.start + own_steps(&placed[range.clone()], fragment.key, servers);
        let site = fragment.key.or_else(|| scanned_site(&placed[range.start].step, servers));
        for at in range {
            let (step, rows) = (&placed[at], rows_before(steps, start + at));
            before += cost.at_servers(step, rows, at < own, site);
            let (is_reduced, back) = match steps.get(start + at + 1) {
                Some(next) if matches!(next.step, Step::Group { .. } | Step::Distinct { .. }) => {
                    (true, next.rows)
                }
                Some(next) if is_first_rows(&next.step) => {
                    // Each server sends tasks of a later fragment to each other one.
                    let senders = if number > 0 { servers.count() } else { 1 };
                    (true, step.rows.min(next.rows * (senders * servers.count()) as f64))
                }
                _ => (false, step.rows),
            };
            let all = before + cost.back(back) + rest[at + 1];
            // The more steps at all servers, the more processors work on them.
            if all <= best_cost && (at > 0 || is_reduced) {
                (best, best_cost) = (Some(at + 1), all);
            }
        }
    }
    best
}

/// The first step from `from` on that runs at all servers.
fn start(
    steps: &[PlanStep],
    from: usize,
    servers: &Servers,
    rows_min: f64,
    with_joins: bool,
) -> Option<usize> {
    let mut rows = rows_before(steps, from);
    for (at, step) in steps.iter().enumerate().skip(from) {
        let wanted = wanted_key(&step.step, rows, None, servers);
        let is_moved = wanted.is_some()
            && (rows >= rows_min || wants(steps.get(at + 1), step.rows, wanted, servers, with_joins));
        match &step.step {
            source if rows <= ROWS_SENT_TO_ALL && step.rows >= rows_min && is_source(source, servers) => {
                return Some(at);
            }
            // What follows a sort keeps its order.
            Step::Order { .. } | Step::Slice { .. } | Step::Group { .. } => return None,
            other if is_moved && is_placeable(other, true, with_joins) => return Some(at),
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

/// Whether a step may run at any server: it keeps nothing from row to row, and it is in the bytes of a job.
/// `outermost`: it is not nested in another one.
fn is_placeable(step: &Step, outermost: bool, with_joins: bool) -> bool {
    let nested = || {
        let mut steps = step.nested().iter().flat_map(|nested| &nested.steps);
        steps.all(|step| is_placeable(&step.step, false, with_joins))
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
        Step::Filter(expression) | Step::Extend { expression, .. } => is_placeable_expression(expression),
        Step::Optional { .. } | Step::Seeded { .. } | Step::Exists { .. } | Step::Union { .. } => nested(),
        Step::Join { kind, .. } => {
            let is_placeable = kind.condition().is_none_or(is_placeable_expression);
            with_joins && outermost && is_placeable && is_small_join(step)
        }
        Step::Group { .. } | Step::Distinct { .. } | Step::Order { .. } | Step::Slice { .. } => false,
    }
}

/// Whether a step is a join whose right side has so few rows that they go to all servers.
fn is_small_join(step: &Step) -> bool {
    let Step::Join { right, .. } = step else { return false };
    right.steps.last().is_none_or(|last| last.rows <= JOIN_ROWS_MAX)
}

/// Whether each task may keep the first rows of this step alone: the rows within the limit are among them.
fn is_first_rows(step: &Step) -> bool {
    match step {
        Step::Order { keys, limit: Some(limit) } => {
            *limit <= FIRST_ROWS_MAX && keys.iter().all(|key| is_placeable_expression(&key.expression))
        }
        _ => false,
    }
}

fn is_placeable_expression(expression: &Expression) -> bool {
    !expression.is_volatile() && !expression.has_exists()
}

/// The number of leading steps of a fragment that read, of each row, only statements of the partition that
/// owns the value of `key`. `None`: the fragment begins with a scan of partitions.
pub(crate) fn own_steps(steps: &[PlanStep], key: Option<Variable>, servers: &Servers) -> usize {
    let (site, scans) = match (key, steps.first()) {
        (Some(key), _) => (Some(key), 0),
        (None, Some(first)) => (scanned_site(&first.step, servers), 1),
        (None, None) => return 0,
    };
    let is_own = |step: &&PlanStep| site.is_some_and(|site| is_own(&step.step, site, servers));
    scans + steps.iter().skip(scans).take_while(is_own).count()
}

/// The variable whose owner has the rows of a source.
fn scanned_site(step: &Step, servers: &Servers) -> Option<Variable> {
    match step {
        Step::Scan { access, key, .. } | Step::Seek { access, key, .. } if servers.is_keyed(access) => {
            Some(*key)
        }
        Step::Scan { neighbour, .. } | Step::Seek { neighbour, .. } | Step::Expand { neighbour, .. } => {
            *neighbour
        }
        _ => None,
    }
}

/// Whether a step reads, of each row, only statements of the partition that owns the value of `site`.
fn is_own(step: &Step, site: Variable, servers: &Servers) -> bool {
    let is_site = |operand: &Operand| *operand == Operand::Variable(site);
    match step {
        Step::Empty
        | Step::Filter(_)
        | Step::Extend { .. }
        | Step::Values { .. }
        | Step::Frontier { .. }
        | Step::Join { .. } => true,
        Step::Expand { key, access, .. } => is_site(key) && servers.is_keyed(access),
        // Entries of a split segment are at the owner of their neighbour.
        Step::Check { key, access, neighbour } => match servers.is_keyed(access) {
            true => is_site(key),
            false => is_site(neighbour),
        },
        Step::Optional { .. } | Step::Seeded { .. } | Step::Exists { .. } | Step::Union { .. } => {
            let mut steps = step.nested().iter().flat_map(|nested| &nested.steps);
            steps.all(|step| is_own(&step.step, site, servers))
        }
        _ => false,
    }
}

/// The variable whose owner has what a step reads of a row; `None`: any server is as good, or the row is
/// there already: at the owner of `site`. `rows`: the estimated number of rows.
fn wanted_key(step: &Step, rows: f64, site: Option<Variable>, servers: &Servers) -> Option<Variable> {
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
        Step::Intersect { legs, .. } => cheapest_site(legs, rows, site, servers),
        Step::Optional { .. } | Step::Seeded { .. } | Step::Exists { .. } | Step::Union { .. } => {
            let first = step.nested().first().and_then(|nested| nested.steps.first());
            first.and_then(|first| wanted_key(&first.step, rows, site, servers))
        }
        _ => None,
    }
}

/// Whether the next step reads by this key, too.
fn wants(
    next: Option<&PlanStep>,
    rows: f64,
    key: Option<Variable>,
    servers: &Servers,
    with_joins: bool,
) -> bool {
    let wanted_from = |next: &PlanStep, site| wanted_key(&next.step, rows, site, servers);
    next.is_some_and(|next| is_placeable(&next.step, true, with_joins) && wanted_from(next, key).is_none())
        && next.is_some_and(|next| wanted_from(next, None).is_some())
}

/// The variable at whose owners an intersection runs: the lists of the other legs are fetched from there, and
/// rows may have to move. `None`: where the rows are.
fn cheapest_site(legs: &[Leg], rows: f64, site: Option<Variable>, servers: &Servers) -> Option<Variable> {
    let cost = Cost::new(servers);
    let cost_at = |of: Option<Variable>| -> f64 {
        let others = legs.iter().filter(|leg| {
            of.is_none_or(|of| leg.key != Operand::Variable(of) || !servers.is_keyed(&leg.access))
        });
        others.map(|leg| cost.lists(leg, rows)).sum()
    };
    let keyed = legs.iter().filter(|leg| servers.is_keyed(&leg.access));
    let keys = keyed.filter_map(|leg| match leg.key {
        Operand::Variable(key) => Some((key, cost_at(Some(key)))),
        Operand::Constant(_) => None,
    });
    let (key, least) = keys.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let moved = if site.is_some() { cost.move_rows(rows) } else { 0.0 };
    (site != Some(key) && (site.is_none() || least + moved < cost_at(site))).then_some(key)
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
    with_joins: bool,
}

impl Walk {
    /// Takes the next step, which receives about `rows` rows; `false`: it cannot run at any server. `next`:
    /// the step after it.
    fn take(&mut self, step: &PlanStep, rows: f64, next: Option<&PlanStep>, servers: &Servers) -> bool {
        if !self.has_begun {
            self.has_begun = true;
            if is_source(&step.step, servers) {
                self.site = scanned_site(&step.step, servers);
                self.push(step.clone());
                return true;
            }
            if !is_placeable(&step.step, true, self.with_joins) {
                return false;
            }
            let key = wanted_key(&step.step, rows, None, servers);
            self.current.1 = key;
            self.site = key;
            self.push(self.oriented(step, servers));
            return key.is_some();
        }
        if !is_placeable(&step.step, true, self.with_joins) {
            return false;
        }
        let step = self.oriented(step, servers);
        if let Some(key) = wanted_key(&step.step, rows, self.site, servers)
            && (rows >= self.rows_min || wants(next, step.rows, Some(key), servers, self.with_joins))
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
        if let Step::Join { right, .. } = &mut step.step {
            *right = uncounted(right.number_steps());
        }
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
