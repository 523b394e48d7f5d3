//! Plan execution for the facade: parameters, limits, result columns.

use crate::QueryOptions;
use crate::database::Database;
use crate::query::prepared::parameter_values;
use crate::query::reading::PinnedVersion;
use oxrdf::Term;
use oxsdatatypes::DateTime;
use std::sync::Arc;
use std::time::Instant;
use vervet_algebra::Variable;
use vervet_driver_local::LocalDriver;
use vervet_env::Environment;
use vervet_expression::{ComputedTerms, Evaluator};
use vervet_kernel::plan::{Plan, Profile};
use vervet_kernel::{Batch, Control, Flow, Gate, Limits};
use vervet_model::{Error, Id, Result, Tag};
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
        let (store, prefixes) = (self.pinned.version(), crate::query::prepared::prefixes());
        vervet_planner::explain_threads(self.plan, &self.step_threads(), profile, store, &prefixes)
    }

    /// [`Execution::explain`] as structured steps.
    pub(crate) fn explain_steps(&self, profile: Option<&Profile>) -> Vec<vervet_planner::PlanStep> {
        let (store, prefixes) = (self.pinned.version(), crate::query::prepared::prefixes());
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

/// The limits of `options`, with a time budget that began at `started`. A heavy query passes `gate`.
pub(crate) fn control(
    options: &QueryOptions,
    started: Instant,
    gate: Option<Arc<dyn Gate>>,
) -> Control<'static> {
    let limits = Limits {
        cancelled: options.cancel.as_ref().map(crate::CancelToken::flag),
        deadline: (options.timeout).and_then(|timeout| Some((started.checked_add(timeout)?, timeout))),
        memory_bytes: options.memory_limit_bytes,
    };
    Control::with_gate(limits, gate)
}

/// What a plan needs to run, besides the plan.
pub(crate) struct RunContext<'a> {
    pub environment: &'a Environment,
    /// `None`: the plan runs on the calling thread.
    pub driver: Option<&'a LocalDriver>,
    /// Seed of functions with a new value for each call.
    pub seed: u64,
}

/// Runs a plan on a snapshot for which it is valid; on many threads if the driver chooses to.
pub(crate) fn run(
    context: &RunContext<'_>,
    snapshot: &dyn Snapshot,
    plan: &Plan,
    options: &QueryOptions,
    control: &Control<'_>,
    sink: &mut dyn FnMut(&Evaluator<'_>, &Batch) -> Result<Flow>,
) -> Result<(ComputedTerms, Profile)> {
    let computed = ComputedTerms::new().with_seed(context.seed);
    let computed = match options.memory_limit_bytes {
        Some(limit) => computed.with_limit(usize::try_from(limit).unwrap_or(usize::MAX)),
        None => computed,
    };
    let evaluator = Evaluator::new(snapshot, &computed, now(context.environment), context.seed)
        .with_base(options.base_iri.clone())
        .with_solution(vervet_kernel::solution_column(plan));
    for (index, term) in (0_u64..).zip(&plan.computed) {
        // Counts as work, since the plan looks terms up in the dictionary rather than reading rows.
        control.work(16)?;
        let id = evaluator.intern(term.as_ref())?;
        if id != Id::new(Tag::Computed, index) {
            return Err(Error::internal(format!("the plan expects {term} to be new to the graph")));
        }
    }
    let mut input = Batch::unit(plan.variables.len());
    for (&variable, term) in plan.parameters.iter().zip(parameter_values(plan, options)?) {
        input.columns[variable.index()].push(evaluator.intern(term.as_ref())?);
    }
    let mut sink = |batch: &Batch| {
        if let Some(progress) = &options.progress {
            progress.add(batch.rows as u64);
        }
        sink(&evaluator, batch)
    };
    let profile = match context.driver {
        Some(driver) => driver.execute(
            plan,
            snapshot,
            &evaluator,
            control,
            options.parallelism(),
            &mut input,
            options.profile,
            &mut sink,
        )?,
        None => vervet_kernel::execute(
            plan,
            snapshot,
            &evaluator,
            control,
            &mut input,
            options.profile,
            &mut sink,
        )?,
    };
    drop(evaluator);
    Ok((computed, profile))
}

/// 64 random bits.
pub(crate) fn seed(environment: &Environment) -> Result<u64> {
    environment.random.next_u64().map_err(|error| Error::io("draw a seed", &error))
}

fn now(environment: &Environment) -> DateTime {
    let wall = environment.clock.wall();
    let since_epoch = wall.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let milliseconds = i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX);
    let text = vervet_model::Inline::DateTime(milliseconds);
    let mut lexical = String::new();
    text.write_lexical(&mut lexical);
    lexical.parse().unwrap_or(DateTime::MIN)
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
