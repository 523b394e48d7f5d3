//! Adaptive execution: a run whose rows are far more than expected ends in favour of a better plan.
//!
//! # Shape
//! ```text
//! run ──a step leaves its validity range──▶ learn a factor, plan again ──same plan──▶ run goes on
//!                                                        └──another plan──▶ run ends, other plan starts
//! ```
//! The other plan starts on the same snapshot, within the same deadline. It may start only while no result
//! has been passed on. [`HeldRows`] keeps the first results of a run back, so that most runs that turn out to
//! be slow are still free then.
//! # Cost
//! A run that stays within its ranges pays a comparison for each batch and step.

use crate::query::plans::{plan_hash, prefixes};
use crate::query::run::ResultSink;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use vervet_algebra::Query;
use vervet_expression::Evaluator;
use vervet_kernel::plan::{Pipeline, Plan, PlanStep};
use vervet_kernel::{Batch, Control, Flow, Reoptimizer};
use vervet_model::{Error, ErrorKind, Result, lock};
use vervet_planner::{Corrections, PlanOptions};
use vervet_snapshot::Snapshot;

/// Maximum number of times that a query is planned again in one run. Each takes at most the time of a
/// planning and the work that the plan before had done, which was 100 times as much as expected.
const LOOKS_MAX: usize = 12;

/// Maximum number of rows that are kept back.
const HELD_ROWS_MAX: usize = 4_096;

/// Maximum time for which rows are kept back.
const HELD_TIME_MAX: Duration = Duration::from_millis(50);

/// The plan of a run, which the run may replace.
pub(crate) struct AdaptivePlan<'a> {
    query: &'a Query,
    snapshot: &'a dyn Snapshot,
    options: PlanOptions,
    state: Mutex<State>,
    /// Results have been passed on: the plan stays.
    is_settled: AtomicBool,
    /// Whether first results are kept back.
    holds: bool,
}

struct State {
    plan: Arc<Plan>,
    /// The steps of `plan` with the estimates of `corrections`. A factor is relative to an estimate, so
    /// factors learned from older estimates would contain each other.
    estimated: Arc<Plan>,
    /// The plan to start once the run has ended.
    next: Option<Arc<Plan>>,
    corrections: Corrections,
    looks: usize,
    /// A run has ended without an error.
    has_ended: bool,
    /// What happened, for people.
    notes: Vec<String>,
}

/// What the runs of a query have taught.
pub(crate) enum Lesson {
    /// The plan has run to its end, with about as many rows as expected.
    AsExpected,
    /// A better plan, and factors for later ones.
    New(Arc<Plan>, Corrections),
}

impl<'a> AdaptivePlan<'a> {
    /// A run of `plan`, made for `query` and `snapshot` with `options`.
    pub(crate) fn new(
        query: &'a Query,
        snapshot: &'a dyn Snapshot,
        options: PlanOptions,
        plan: Arc<Plan>,
    ) -> Self {
        let corrections = options.corrections.clone();
        let state = State {
            estimated: Arc::clone(&plan),
            plan,
            next: None,
            corrections,
            looks: 0,
            has_ended: false,
            notes: Vec::new(),
        };
        // Without a search there is no other plan.
        let is_settled = AtomicBool::new(!options.reorder);
        Self { query, snapshot, options, state: Mutex::new(state), is_settled, holds: true }
    }

    /// The same for a plan that has run with about as many rows as expected: results are passed on at once.
    pub(crate) fn proven(self) -> Self {
        Self { holds: false, ..self }
    }

    /// The current plan.
    pub(crate) fn plan(&self) -> Arc<Plan> {
        Arc::clone(&lock(&self.state).plan)
    }

    /// The plan stays from now on, since results are about to be passed on.
    ///
    /// # Errors
    /// Another thread has just decided otherwise: the run must end.
    pub(crate) fn settle(&self) -> Result<()> {
        if self.is_settled() {
            return Ok(());
        }
        let state = lock(&self.state);
        if state.next.is_some() {
            return Err(Error::new(ErrorKind::Cancelled, "the query is planned again"));
        }
        // Relaxed: decisions are made under the lock.
        self.is_settled.store(true, Relaxed);
        Ok(())
    }

    /// Whether results have been passed on, or are about to be.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_settled.load(Relaxed)
    }

    /// What the runs have taught.
    pub(crate) fn lesson(&self) -> Option<Lesson> {
        let state = lock(&self.state);
        match state.looks {
            0 => state.has_ended.then_some(Lesson::AsExpected),
            _ => Some(Lesson::New(Arc::clone(&state.estimated), state.corrections.clone())),
        }
    }

    /// What happened, one line for each plan that was given up.
    pub(crate) fn notes(&self) -> String {
        lock(&self.state).notes.iter().fold(String::new(), |text, note| text + note + "\n")
    }

    /// Runs the plan, and the ones that replace it. `attempt` runs one plan, and forgets first what it has
    /// collected.
    pub(crate) fn run<T>(
        &self,
        control: &Control<'_>,
        attempt: &mut dyn FnMut(&Plan) -> Result<T>,
    ) -> Result<T> {
        let bytes = control.memory_bytes();
        loop {
            let plan = self.plan();
            let result = attempt(&plan);
            let mut state = lock(&self.state);
            match (result, state.next.take()) {
                (Err(_), Some(next)) if !self.is_settled() => {
                    state.estimated = Arc::clone(&next);
                    state.plan = next;
                }
                (result, _) => {
                    state.has_ended |= result.is_ok();
                    return result;
                }
            }
            drop(state);
            control.restart(bytes);
            control.check()?;
        }
    }

    /// A line about a step that had more rows than expected.
    fn note(&self, plan: &Plan, step: &PlanStep, rows_out: u64) -> String {
        let steps = vervet_planner::explain_steps(plan, &[], None, self.snapshot, &prefixes());
        let number = number_of(&plan.pipeline, step);
        let described = number.and_then(|number| steps.get(number));
        let mut line = String::from("planned again:");
        if let Some(described) = described {
            let _ = write!(line, " {} {}", described.operator, described.detail);
        }
        let _ = write!(line, " has output {rows_out} rows, {:.0} were expected", step.rows.ceil());
        line
    }
}

impl Reoptimizer for AdaptivePlan<'_> {
    fn goes_on(&self, control: &Control<'_>, step: &PlanStep, rows_in: u64, rows_out: u64) -> Result<bool> {
        let mut state = lock(&self.state);
        if self.is_settled() {
            return Ok(true);
        }
        if state.next.is_some() {
            // Another thread has decided.
            return Ok(false);
        }
        if state.looks >= LOOKS_MAX {
            return Ok(true);
        }
        state.looks += 1;
        let plan = Arc::clone(&state.plan);
        let estimated = Arc::clone(&state.estimated);
        let number = number_of(&plan.pipeline, step);
        match number.and_then(|number| step_of(&estimated.pipeline, number)) {
            Some(now) => state.corrections.learn(&estimated, now, rows_in, rows_out),
            None => return Err(Error::internal("a step that runs is not in its plan")),
        }
        let options = PlanOptions { corrections: state.corrections.clone(), ..self.options.clone() };
        let next = Arc::new(vervet_planner::plan(self.query, self.snapshot, &options, control)?);
        if plan_hash(&next, self.snapshot) == plan_hash(&plan, self.snapshot) {
            state.estimated = next;
            return Ok(true);
        }
        let note = self.note(&plan, step, rows_out);
        state.notes.push(note);
        state.next = Some(next);
        Ok(false)
    }
}

/// The number of a step, by its place in memory.
fn number_of(pipeline: &Pipeline, wanted: &PlanStep) -> Option<usize> {
    let mut number = 0;
    for step in &pipeline.steps {
        if std::ptr::eq(step, wanted) {
            return Some(number);
        }
        let mut inside = number + 1;
        for nested in step.step.nested() {
            if let Some(found) = number_of(nested, wanted) {
                return Some(inside + found);
            }
            inside += nested.number_steps();
        }
        number += step.step.number_steps();
    }
    None
}

/// The step with a number: the inverse of [`number_of`].
fn step_of(pipeline: &Pipeline, number: usize) -> Option<&PlanStep> {
    let mut left = number;
    for step in &pipeline.steps {
        if left == 0 {
            return Some(step);
        }
        let count = step.step.number_steps();
        if left < count {
            let mut inside = left - 1;
            for nested in step.step.nested() {
                match inside.checked_sub(nested.number_steps()) {
                    None => return step_of(nested, inside),
                    Some(rest) => inside = rest,
                }
            }
            return None;
        }
        left -= count;
    }
    None
}

/// The first results of a run, kept back from `sink` while another plan may still start.
pub(crate) struct HeldRows<'s, 'p> {
    plan: &'s AdaptivePlan<'p>,
    sink: &'s mut dyn ResultSink,
    batches: Vec<Batch>,
    rows: usize,
    since: Option<Instant>,
}

impl<'s, 'p> HeldRows<'s, 'p> {
    /// Before a run of `plan`.
    pub(crate) fn new(plan: &'s AdaptivePlan<'p>, sink: &'s mut dyn ResultSink) -> Self {
        Self { plan, sink, batches: Vec::new(), rows: 0, since: None }
    }

    /// Keeps a batch, unless enough has been kept for long enough.
    fn keep(&mut self, batch: &Batch) -> bool {
        let is_recent = match self.since {
            Some(since) => since.elapsed() <= HELD_TIME_MAX,
            None => {
                self.since = Some(Instant::now());
                true
            }
        };
        let keeps = self.plan.holds && is_recent && self.rows + batch.rows <= HELD_ROWS_MAX;
        if keeps {
            self.rows += batch.rows;
            self.batches.push(batch.clone());
        }
        keeps
    }

    /// Passes the kept rows on; from then on the plan stays.
    fn pass_on(&mut self, evaluator: &Evaluator<'_>) -> Result<Flow> {
        self.plan.settle()?;
        for batch in std::mem::take(&mut self.batches) {
            if self.sink.batch(evaluator, &batch)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    }
}

impl ResultSink for HeldRows<'_, '_> {
    fn batch(&mut self, evaluator: &Evaluator<'_>, batch: &Batch) -> Result<Flow> {
        if !self.plan.is_settled() {
            if self.keep(batch) {
                return Ok(Flow::More);
            }
            if self.pass_on(evaluator)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        self.sink.batch(evaluator, batch)
    }

    fn end(&mut self, evaluator: &Evaluator<'_>) -> Result<()> {
        self.pass_on(evaluator)?;
        self.sink.end(evaluator)
    }
}
