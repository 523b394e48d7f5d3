//! What it costs to read other servers and to move rows to them: processor time of both ends, in µs.
//!
//! Measured with `vervet-bench cluster-sheet`: requests of LUBM queries that send nearly nothing else, and
//! queries that send rows. Work that is the same wherever it is done counts nothing, but for the processors
//! that take part.

use crate::rows::GATHERED_ROWS;
use crate::servers::Servers;
use vervet_algebra::Variable;
use vervet_kernel::plan::{Leg, Operand, PlanStep, Step};
use vervet_snapshot::Snapshot;

/// A request and its answer.
const REQUEST_US: f64 = 25.0;

/// A row that moves.
const ROW_MOVED_US: f64 = 0.06;

/// A key that is asked for, or an entry that is answered.
const ENTRY_US: f64 = 0.05;

/// A row in a step.
const ROW_US: f64 = 0.05;

/// A row in a step that is more than a read.
const SLOW_ROW_US: f64 = 1.0;

/// Rows of a request that moves rows.
const MOVED_TOGETHER: f64 = 16_384.0;

/// See the header of this file.
pub(crate) struct Cost<'s> {
    servers: &'s Servers,
    count: f64,
    /// The part of all keys that are at other servers.
    others: f64,
}

impl<'s> Cost<'s> {
    pub(crate) fn new(servers: &'s Servers) -> Self {
        let count = servers.count() as f64;
        Self { servers, count, others: (count - 1.0) / count }
    }

    /// The first tasks.
    pub(crate) fn start(&self) -> f64 {
        (self.count - 1.0) * REQUEST_US
    }

    /// Rows move from all servers to all others.
    pub(crate) fn move_rows(&self, rows: f64) -> f64 {
        let pairs = self.count * (self.count - 1.0);
        let requests = (rows / (self.count * self.count * MOVED_TOGETHER)).ceil().max(1.0);
        pairs * requests * REQUEST_US + rows * self.others * ROW_MOVED_US
    }

    /// Rows go to the server that was asked.
    pub(crate) fn back(&self, rows: f64) -> f64 {
        rows * self.others * ROW_MOVED_US
    }

    /// A step at the server that was asked. Its processor does the work of all.
    pub(crate) fn here(&self, step: &PlanStep, rows: f64) -> f64 {
        let requests = trips(&step.step) * (self.count - 1.0) * (rows / GATHERED_ROWS as f64).ceil().max(1.0);
        let row = match &step.step {
            Step::Path(_) | Step::Match(_) | Step::SeekMatch { .. } => SLOW_ROW_US,
            Step::Join { .. } => ROW_US,
            other if !other.nested().is_empty() => SLOW_ROW_US,
            _ => ROW_US,
        };
        let is_read = if trips(&step.step) > 0.0 { 1.0 } else { 0.0 };
        let entries = self.entries(step, rows, None);
        requests * REQUEST_US + (is_read * entries * ENTRY_US + rows.max(step.rows) * row) * self.others
    }

    /// A step at all servers. `is_own`: each reads its own statements alone. `site`: where the rows are.
    pub(crate) fn at_servers(&self, step: &PlanStep, rows: f64, is_own: bool, site: Option<Variable>) -> f64 {
        if is_own || trips(&step.step) == 0.0 {
            return 0.0;
        }
        // Also for an intersection with a leg that is here: counted on LUBM (Q1) are the lists of the other
        // leg, the degrees, and the reverse reads.
        let pairs = self.count * (self.count - 1.0);
        let requests = trips(&step.step) * pairs * (rows / self.count / GATHERED_ROWS as f64).ceil().max(1.0);
        requests * REQUEST_US + self.entries(step, rows, site) * ENTRY_US * self.others
    }

    /// Keys and entries that a step reads.
    fn entries(&self, step: &PlanStep, rows: f64, site: Option<Variable>) -> f64 {
        match &step.step {
            Step::Intersect { legs, .. } => {
                let is_here = |leg: &&Leg| site.is_some_and(|site| leg.key == Operand::Variable(site));
                let others = legs.iter().filter(|leg| !is_here(leg));
                // Of the longest lists, only what is found in the others is read.
                let mut entries: Vec<f64> = others.map(|leg| self.list_entries(leg, rows)).collect();
                entries.sort_unstable_by(f64::total_cmp);
                if let [.., before, longest] = entries.as_mut_slice() {
                    *longest = longest.min(2.0 * *before + rows);
                }
                entries.iter().sum()
            }
            _ => rows + step.rows,
        }
    }

    /// Fetching the lists of a leg of an intersection, each key once at each server.
    pub(crate) fn lists(&self, leg: &Leg, rows: f64) -> f64 {
        self.list_entries(leg, rows) * self.others * ENTRY_US
    }

    fn list_entries(&self, leg: &Leg, rows: f64) -> f64 {
        let segment = self.servers.base().segment(leg.access.predicate, leg.access.direction);
        let Ok(Some(segment)) = segment else { return 0.0 };
        let (entries, keys) = (segment.statistics().entries as f64, segment.statistics().keys as f64);
        let distinct = match leg.key {
            Operand::Constant(_) => 1.0,
            Operand::Variable(_) => rows.min(keys),
        };
        // Each server reads those that it needs.
        distinct.min(rows / self.count) * self.count * entries / keys.max(1.0)
    }
}

/// Round trips of a batch, one after the other, if nothing that it reads is here.
pub(crate) fn trips(step: &Step) -> f64 {
    match step {
        // The right side of a join runs once.
        Step::Empty
        | Step::Filter(_)
        | Step::Extend { .. }
        | Step::Values { .. }
        | Step::Frontier { .. }
        | Step::Join { .. } => 0.0,
        Step::Intersect { legs, .. } => legs.len() as f64 + 1.0,
        other if !other.nested().is_empty() => {
            let steps = other.nested().iter().flat_map(|nested| &nested.steps);
            steps.map(|step| trips(&step.step)).sum()
        }
        _ => 1.0,
    }
}
