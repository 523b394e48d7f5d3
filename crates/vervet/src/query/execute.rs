//! Plan execution for the facade: parameters, limits, result columns.

use crate::database::Database;
use crate::options::QueryOptions;
use crate::query::adaptive::{AdaptivePlan, HeldRows};
use crate::query::plans::{plan_hash, prefixes};
use crate::query::reading::PinnedVersion;
use crate::query::run::{ResultSink, RunContext, control, run};
use oxrdf::Term;
use std::cell::RefCell;
use std::time::Instant;
use vervet_algebra::Variable;
use vervet_expression::{ComputedTerms, Evaluator};
use vervet_kernel::plan::{Plan, Profile};
use vervet_kernel::{Batch, Control, Flow};
use vervet_model::{Id, Result, Tag, TermParts, describe_reads};
use vervet_snapshot::Snapshot;

/// One run of a plan.
pub(crate) struct Execution<'a> {
    pub database: &'a Database,
    pub pinned: &'a PinnedVersion,
    /// The same graph, as queries are to read it.
    pub snapshot: &'a dyn Snapshot,
    pub plan: AdaptivePlan<'a>,
    /// The prefixes that the query declares and their IRIs.
    pub prefixes: &'a [(String, String)],
    pub options: &'a QueryOptions,
    /// Start of the time budget of `options`.
    pub started: Instant,
}

impl Execution<'_> {
    /// Runs the plan; `sink` receives every batch of results, with an evaluator that reads its ids.
    pub(crate) fn run(&self, sink: &mut dyn ResultSink) -> Result<(ComputedTerms, Profile)> {
        let control = self.control();
        self.run_under(&control, sink)
    }

    /// The limits of this run.
    pub(crate) fn control(&self) -> Control<'_> {
        control(self.options, self.started, self.database.driver().gate()).with_reoptimizer(&self.plan)
    }

    /// [`Execution::run`] under existing limits, which the caller continues to use.
    pub(crate) fn run_under(
        &self,
        control: &Control<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<(ComputedTerms, Profile)> {
        self.plan.run(control, &mut |plan| self.attempt(plan, control, &mut HeldRows::new(&self.plan, sink)))
    }

    /// [`Execution::run_under`] with a sink that can forget: `forget` is called before each plan starts.
    pub(crate) fn run_again(
        &self,
        control: &Control<'_>,
        forget: &mut dyn FnMut(),
        sink: &mut dyn ResultSink,
    ) -> Result<(ComputedTerms, Profile)> {
        self.plan.run(control, &mut |plan| {
            forget();
            self.attempt(plan, control, sink)
        })
    }

    /// Runs one plan.
    fn attempt(
        &self,
        plan: &Plan,
        control: &Control<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<(ComputedTerms, Profile)> {
        let _limits = control.enter();
        let context = RunContext {
            environment: self.database.environment(),
            driver: Some(self.database.driver()),
            seed: self.database.next_seed()?,
        };
        let (computed, mut profile) = run(&context, self.snapshot, plan, self.options, control, sink)?;
        profile.reads = control.take_reads();
        Ok((computed, profile))
    }

    /// The plan with the measurements of its steps, as human-readable text.
    pub(crate) fn explain_profile(&self, profile: &Profile) -> String {
        self.explain(Some(profile))
    }

    /// The plan, with the measurements of its steps if it ran, as human-readable text.
    pub(crate) fn explain(&self, profile: Option<&Profile>) -> String {
        let (store, prefixes, plan) = (self.pinned.version(), self.prefixes(), self.plan.plan());
        let threads = self.step_threads(&plan);
        let text = vervet_planner::explain_threads(&plan, &threads, profile, store, &prefixes);
        let notes = self.database.driver().notes(&plan, self.options.parallelism(), profile);
        let reads = profile.and_then(|profile| describe_reads(&profile.reads));
        let notes: String = notes.into_iter().chain(reads).map(|line| line + "\n").collect();
        text + &notes + &self.plan.notes()
    }

    /// [`Execution::explain`] as structured steps.
    pub(crate) fn explain_steps(&self, profile: Option<&Profile>) -> Vec<vervet_planner::PlanStep> {
        let (store, prefixes, plan) = (self.pinned.version(), self.prefixes(), self.plan.plan());
        vervet_planner::explain_steps(&plan, &self.step_threads(&plan), profile, store, &prefixes)
    }

    /// Prefixes that shorten terms in plans: those of the query, of its options, and those well-known, each
    /// unless an earlier one has its name.
    fn prefixes(&self) -> Vec<vervet_planner::Prefix<'_>> {
        let given = self.prefixes.iter().chain(&self.options.prefixes);
        let mut all: Vec<vervet_planner::Prefix<'_>> = Vec::new();
        for prefix in given.map(|(name, iri)| (&**name, &**iri)).chain(prefixes()) {
            if all.iter().all(|(name, _)| *name != prefix.0) {
                all.push(prefix);
            }
        }
        all
    }

    /// See [`plan_hash`].
    pub(crate) fn plan_hash(&self) -> u64 {
        plan_hash(&self.plan.plan(), self.pinned.version())
    }

    /// The number of threads of each step.
    fn step_threads(&self, plan: &Plan) -> Vec<usize> {
        let (driver, parallelism) = (self.database.driver(), self.options.parallelism());
        let threads = driver.threads(plan, parallelism);
        let copies = driver.steps_in_copies(plan, parallelism);
        copies.into_iter().map(|in_copies| if in_copies { threads } else { 1 }).collect()
    }
}

/// Solutions that a run has output.
struct Collected {
    columns: Vec<Vec<Id>>,
    rows: usize,
    /// Counted bytes.
    bytes: u64,
}

impl Collected {
    fn clear(&mut self) {
        self.columns.iter_mut().for_each(|column| *column = Vec::new());
        (self.rows, self.bytes) = (0, 0);
    }
}

/// Solutions in memory, with the snapshot and ids to read them.
#[derive(Debug)]
pub(crate) struct MaterializedSolutions {
    pinned: PinnedVersion,
    computed: ComputedTerms,
    pub names: Vec<String>,
    pub columns: Vec<Vec<Id>>,
    pub rows: usize,
    pub profile: Option<String>,
}

impl MaterializedSolutions {
    /// Runs a plan and collects these columns.
    pub(crate) fn collect(
        execution: &Execution<'_>,
        variables: &[Variable],
        names: Vec<String>,
    ) -> Result<Self> {
        let control = execution.control();
        let collected =
            RefCell::new(Collected { columns: vec![Vec::new(); variables.len()], rows: 0, bytes: 0 });
        let (computed, profile) = execution.run_again(
            &control,
            &mut || collected.borrow_mut().clear(),
            &mut |_: &Evaluator<'_>, batch: &Batch| {
                let Collected { columns, rows, bytes } = &mut *collected.borrow_mut();
                *rows += batch.rows;
                for (&variable, column) in variables.iter().zip(columns.iter_mut()) {
                    column.extend_from_slice(&batch.columns[variable.index()]);
                    // A column that no row of the batch binds is empty.
                    column.resize(*rows, Id::UNBOUND);
                }
                // Capacity counts, used or not.
                let cells: usize = columns.iter().map(Vec::capacity).sum();
                control.recount(bytes, 8 * cells as u64)?;
                Ok(Flow::More)
            },
        )?;
        let Collected { columns, rows, .. } = collected.into_inner();
        let profile = execution.options.profile.then(|| execution.explain_profile(&profile));
        Ok(Self { pinned: execution.pinned.clone(), computed, names, columns, rows, profile })
    }

    /// The term of an id.
    pub(crate) fn term(&self, id: Id) -> Result<Option<Term>> {
        let mut term = None;
        self.read(id, &mut String::new(), &mut |parts| term = Some(parts.to_term()))?;
        Ok(term)
    }

    /// Calls `read` with the parts of the term of an id, unless it is unbound.
    pub(crate) fn read(
        &self,
        id: Id,
        scratch: &mut String,
        read: &mut dyn FnMut(TermParts<'_>),
    ) -> Result<()> {
        match id.tag() {
            _ if !id.is_bound() => Ok(()),
            Tag::Computed => self.computed.read(id, scratch, read),
            _ => self.pinned.version().read_term(id, scratch, read),
        }
    }
}
