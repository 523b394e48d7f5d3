//! Plan execution for the facade: parameters, limits, result columns.

use crate::database::Database;
use crate::options::QueryOptions;
use crate::query::plans::prefixes;
use crate::query::reading::PinnedVersion;
use crate::query::run::{RunContext, control, run};
use oxrdf::Term;
use std::time::Instant;
use vervet_algebra::Variable;
use vervet_expression::{ComputedTerms, Evaluator};
use vervet_kernel::plan::{Plan, Profile};
use vervet_kernel::{Batch, Control, Flow};
use vervet_model::{Id, Result, Tag};
use vervet_snapshot::Snapshot;

/// One run of a plan.
pub(crate) struct Execution<'a> {
    pub database: &'a Database,
    pub pinned: &'a PinnedVersion,
    /// The same graph, as queries are to read it.
    pub snapshot: &'a dyn Snapshot,
    pub plan: &'a Plan,
    pub options: &'a QueryOptions,
    /// Start of the time budget of `options`.
    pub started: Instant,
}

impl Execution<'_> {
    /// Runs the plan; `sink` receives every batch of results, with an evaluator that reads its ids.
    pub(crate) fn run(
        &self,
        sink: &mut dyn FnMut(&Evaluator<'_>, &Batch) -> Result<Flow>,
    ) -> Result<(ComputedTerms, Profile)> {
        let control = self.control();
        self.run_under(&control, sink)
    }

    /// The limits of this run.
    pub(crate) fn control(&self) -> Control<'static> {
        control(self.options, self.started, self.database.driver().gate())
    }

    /// [`Execution::run`] under existing limits, which the caller continues to use.
    pub(crate) fn run_under(
        &self,
        control: &Control<'_>,
        sink: &mut dyn FnMut(&Evaluator<'_>, &Batch) -> Result<Flow>,
    ) -> Result<(ComputedTerms, Profile)> {
        let context = RunContext {
            environment: self.database.environment(),
            driver: Some(self.database.driver()),
            seed: self.database.next_seed()?,
        };
        run(&context, self.snapshot, self.plan, self.options, control, sink)
    }

    /// The plan with the measurements of its steps, as human-readable text.
    pub(crate) fn explain_profile(&self, profile: &Profile) -> String {
        self.explain(Some(profile))
    }

    /// The plan, with the measurements of its steps if it ran, as human-readable text.
    pub(crate) fn explain(&self, profile: Option<&Profile>) -> String {
        let (store, prefixes) = (self.pinned.version(), prefixes());
        vervet_planner::explain_threads(self.plan, &self.step_threads(), profile, store, &prefixes)
    }

    /// [`Execution::explain`] as structured steps.
    pub(crate) fn explain_steps(&self, profile: Option<&Profile>) -> Vec<vervet_planner::PlanStep> {
        let (store, prefixes) = (self.pinned.version(), prefixes());
        vervet_planner::explain_steps(self.plan, &self.step_threads(), profile, store, &prefixes)
    }

    /// A hash of the steps of the plan and their operands, without estimates: equal plans have equal hashes.
    pub(crate) fn plan_hash(&self) -> u64 {
        let steps = self.explain_steps(None);
        let parts = steps.iter().flat_map(|step| [step.operator.as_bytes(), step.detail.as_bytes()]);
        // FNV-1a: stable across processes and versions.
        parts.fold(0xcbf2_9ce4_8422_2325, |hash, part| {
            let bytes = part.iter().chain(b"\n");
            bytes.fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
        })
    }

    /// The number of threads of each step.
    fn step_threads(&self) -> Vec<usize> {
        let (driver, parallelism) = (self.database.driver(), self.options.parallelism());
        let threads = driver.threads(self.plan, parallelism);
        let copies = driver.steps_in_copies(self.plan, parallelism);
        copies.into_iter().map(|in_copies| if in_copies { threads } else { 1 }).collect()
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
        let mut columns: Vec<Vec<Id>> = vec![Vec::new(); variables.len()];
        let (mut rows, mut counted) = (0, 0);
        let (computed, profile) = execution.run_under(&control, &mut |_, batch| {
            rows += batch.rows;
            for (&variable, column) in variables.iter().zip(&mut columns) {
                column.extend_from_slice(&batch.columns[variable.index()]);
                // A column that no row of the batch binds is empty.
                column.resize(rows, Id::UNBOUND);
            }
            // Capacity counts, used or not.
            let cells: usize = columns.iter().map(Vec::capacity).sum();
            control.recount(&mut counted, 8 * cells as u64)?;
            Ok(Flow::More)
        })?;
        let profile = execution.options.profile.then(|| execution.explain_profile(&profile));
        Ok(Self { pinned: execution.pinned.clone(), computed, names, columns, rows, profile })
    }

    /// The term of an id.
    pub(crate) fn term(&self, id: Id) -> Result<Option<Term>> {
        if !id.is_bound() {
            return Ok(None);
        }
        let mut term = None;
        let mut scratch = String::new();
        let mut read = |parts: vervet_model::TermParts<'_>| term = Some(parts.to_term());
        if id.tag() == Tag::Computed {
            self.computed.read(id, &mut scratch, &mut read)?;
        } else {
            self.pinned.version().read_term(id, &mut scratch, &mut read)?;
        }
        Ok(term)
    }
}
