//! Query driver: classification of plans as light or heavy, and parallel execution of heavy plans.

use crate::gate::Gate;
use crate::pipeline_executor::{AbortState, PipelineExecutor, Sink, WakePolicy};
use crate::pool::Pool;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use vervet_expression::Evaluator;
use vervet_kernel::parallel::{HeadRows, Stages};
use vervet_kernel::plan::{Pipeline, Plan, Profile, Step, StepProfile};
use vervet_kernel::{Batch, Control, Flow, JoinTable, PipelineCut, Results, Run, Shared};
use vervet_model::Result;
use vervet_snapshot::Snapshot;

/// Maximum number of threads of one query.
pub const THREADS_MAX: usize = 256;

/// Default of [`Parallelism::heavy_from`]. Cutting a plan and calling helpers takes some 30 µs, so that even
/// a plan that takes a quarter of its estimate gains.
pub const HEAVY_FROM_DEFAULT: Duration = Duration::from_millis(1);

/// Maximum buffered rows of the head, plus one batch.
const HEAD_ROWS_MAX: usize = 1 << 16;

/// Degree of parallelism of a query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parallelism {
    /// Threads of one query, including the calling thread; 1: only the calling thread. `None`: the available
    /// parallelism of the process. Capped at [`THREADS_MAX`].
    pub threads: Option<usize>,
    /// Estimated single-threaded time from which a plan is heavy.
    pub heavy_from: Duration,
    /// When a heavy plan is cut, and when it calls helpers.
    pub cut_policy: CutPolicy,
    /// Whether parts of the plan may run on a device.
    pub placement: Placement,
}

/// Where a plan may run. Without a device, or a driver that uses one, every plan runs on the CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Placement {
    /// On a device where the estimated time there is less.
    #[default]
    Auto,
    /// On the CPU.
    Cpu,
    /// On a device as far as possible, whatever the estimate: for tests and measurements.
    Gpu,
}

/// When a heavy plan is cut, and when it calls helpers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CutPolicy {
    /// Minimum estimated rows for splitting a step into morsels.
    pub split_rows_min: u32,
    /// Time on one thread before the query calls helpers.
    pub call_after: Duration,
    /// Time that the calling thread then waits for helpers to join.
    pub wait_for_helpers: Duration,
}

impl CutPolicy {
    /// For tests: small plans are cut as well, and helpers take part in them.
    pub const EAGER: Self =
        Self { split_rows_min: 0, call_after: Duration::ZERO, wait_for_helpers: Duration::from_millis(1) };
}

impl Default for CutPolicy {
    fn default() -> Self {
        // Estimates err, and waking a helper in vain slows other queries.
        let call_after = Duration::from_micros(100);
        Self { split_rows_min: 256, call_after, wait_for_helpers: Duration::ZERO }
    }
}

impl Parallelism {
    /// For tests: every plan that can be cut runs on `threads` threads.
    #[must_use]
    pub fn eager(threads: usize) -> Self {
        Self {
            threads: Some(threads),
            heavy_from: Duration::ZERO,
            cut_policy: CutPolicy::EAGER,
            ..Self::default()
        }
    }
}

impl Default for Parallelism {
    fn default() -> Self {
        Self {
            threads: None,
            heavy_from: HEAVY_FROM_DEFAULT,
            cut_policy: CutPolicy::default(),
            placement: Placement::default(),
        }
    }
}

/// Something that runs plans: on the threads of one process, or over several servers.
pub trait Driver: Send + Sync + std::fmt::Debug {
    /// Runs `plan` as [`vervet_kernel::execute`] does. `sink` is called only on the calling thread.
    ///
    /// # Errors
    /// Those of [`Control`], of the store, and of `sink`; [`vervet_model::ErrorKind::Internal`] if a helper
    /// panics; [`vervet_model::ErrorKind::Unavailable`] if a server does not answer.
    #[expect(clippy::too_many_arguments, reason = "those of the kernel, and how parallel")]
    fn execute(
        &self,
        plan: &Plan,
        snapshot: &dyn Snapshot,
        evaluator: &Evaluator<'_>,
        control: &Control<'_>,
        parallelism: Parallelism,
        input: &mut Batch,
        profile: bool,
        sink: &mut dyn FnMut(&Batch) -> Result<Flow>,
    ) -> Result<Profile>;

    /// The gate for [`Control::with_gate`], shared by all queries on the same database.
    fn gate(&self) -> Option<Arc<dyn vervet_kernel::Gate>>;

    /// Number of threads with which a plan would run.
    fn threads(&self, plan: &Plan, parallelism: Parallelism) -> usize;

    /// Whether every thread runs a copy of each step, by step number ([`Pipeline::number_steps`]), for
    /// `EXPLAIN`.
    fn steps_in_copies(&self, plan: &Plan, parallelism: Parallelism) -> Vec<bool>;

    /// Where steps of a plan run if not here, as lines for people; after a run also what was sent.
    fn notes(&self, _plan: &Plan, _parallelism: Parallelism, _profile: Option<&Profile>) -> Vec<String> {
        Vec::new()
    }
}

/// Runs plans, and owns the helper threads for heavy ones. See the header of this crate.
#[derive(Debug)]
pub struct LocalDriver {
    pool: Pool,
    /// Available parallelism of the process, cached because the system calls for it take microseconds.
    available: OnceLock<usize>,
    gate: Option<Arc<Gate>>,
}

impl Default for LocalDriver {
    fn default() -> Self {
        Self::new(true)
    }
}

impl LocalDriver {
    /// A driver without threads; they are started on demand. `has_gate`: heavy queries take turns and yield
    /// to light ones. A driver without a gate is a baseline for measurements: the scheduler of the operating
    /// system alone decides which threads run.
    #[must_use]
    pub fn new(has_gate: bool) -> Self {
        let slots = || std::thread::available_parallelism().map_or(1, usize::from);
        let gate = has_gate.then(|| Arc::new(Gate::new(slots())));
        Self { pool: Pool::new(), available: OnceLock::new(), gate }
    }
}

impl Driver for LocalDriver {
    fn gate(&self) -> Option<Arc<dyn vervet_kernel::Gate>> {
        self.gate.clone().map(|gate| gate as Arc<dyn vervet_kernel::Gate>)
    }

    /// With helpers if the plan is heavy.
    fn execute(
        &self,
        plan: &Plan,
        snapshot: &dyn Snapshot,
        evaluator: &Evaluator<'_>,
        control: &Control<'_>,
        parallelism: Parallelism,
        input: &mut Batch,
        profile: bool,
        sink: &mut dyn FnMut(&Batch) -> Result<Flow>,
    ) -> Result<Profile> {
        if is_heavy(plan, parallelism) {
            control.set_heavy();
        }
        let threads = self.threads(plan, parallelism);
        if threads < 2 {
            return vervet_kernel::execute(plan, snapshot, evaluator, control, input, profile, sink);
        }
        let solutions = AtomicU64::new(0);
        let run = Run::new(plan, snapshot, evaluator, control, &solutions, profile);
        input.columns.resize(run.variables(), Vec::new());
        let mut results = Results::new(plan, &run);
        let mut figures = Profile::new(&plan.pipeline);
        let heavy = HeavyExecution { pool: &self.pool, threads, cut_policy: parallelism.cut_policy };
        heavy.pipeline(&plan.pipeline, &run, input, &mut figures.steps, &mut |batch| {
            results.push(batch, control, sink)
        })?;
        Ok(if profile { figures } else { Profile::default() })
    }

    fn threads(&self, plan: &Plan, parallelism: Parallelism) -> usize {
        if parallelism.threads == Some(1) || !is_heavy(plan, parallelism) {
            return 1;
        }
        let threads = parallelism.threads.unwrap_or_else(|| {
            *self.available.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
        });
        let heavy = HeavyExecution { pool: &self.pool, threads, cut_policy: parallelism.cut_policy };
        if heavy.cuts(&plan.pipeline) && !vervet_kernel::needs_one_thread(plan) {
            threads.clamp(1, THREADS_MAX)
        } else {
            1
        }
    }

    fn steps_in_copies(&self, plan: &Plan, parallelism: Parallelism) -> Vec<bool> {
        let mut is_parallel = vec![false; plan.pipeline.number_steps()];
        let threads = self.threads(plan, parallelism);
        if threads > 1 {
            let heavy = HeavyExecution { pool: &self.pool, threads, cut_policy: parallelism.cut_policy };
            heavy.mark_parallel(&plan.pipeline, &mut is_parallel);
        }
        is_parallel
    }
}

/// Whether the estimated single-threaded time of a plan reaches [`Parallelism::heavy_from`].
#[must_use]
pub fn is_heavy(plan: &Plan, parallelism: Parallelism) -> bool {
    cost_ns(plan) >= parallelism.heavy_from.as_nanos() as f64
}

/// Estimated cost of a plan in ns. A plan with a row limit costs only the rows up to it.
fn cost_ns(plan: &Plan) -> f64 {
    let mut rows = 1.0;
    for step in &plan.pipeline.steps {
        match &step.step {
            Step::Slice { start, length: Some(length) } => {
                let wanted = start.saturating_add(*length) as f64;
                return if wanted < rows { plan.cost * wanted / rows } else { plan.cost };
            }
            Step::Group { .. } | Step::Order { .. } => break,
            _ => rows = step.rows,
        }
    }
    plan.cost
}

/// Execution of one heavy query.
struct HeavyExecution<'d> {
    pool: &'d Pool,
    threads: usize,
    cut_policy: CutPolicy,
}

impl HeavyExecution<'_> {
    fn cut(&self, pipeline: &Pipeline) -> Option<PipelineCut> {
        PipelineCut::new(pipeline, f64::from(self.cut_policy.split_rows_min))
    }

    /// Whether this pipeline or the right side of one of its joins is cut.
    fn cuts(&self, pipeline: &Pipeline) -> bool {
        self.cut(pipeline).is_some()
            || Shared::joins_of(&pipeline.steps)
                .iter()
                .any(|(_, step)| step.step.nested().iter().any(|right| self.cuts(right)))
    }

    fn mark_parallel(&self, pipeline: &Pipeline, is_parallel: &mut [bool]) {
        if let Some(cut) = self.cut(pipeline) {
            let numbers = numbers(pipeline);
            for at in cut.steps() {
                is_parallel[numbers[at]] = true;
            }
        }
        for (number, step) in Shared::joins_of(&pipeline.steps) {
            for right in step.step.nested() {
                self.mark_parallel(right, &mut is_parallel[number + 1..]);
            }
        }
    }

    /// Runs a pipeline that starts from the single row `input`. `figures`: profiles of its steps.
    fn pipeline<'p>(
        &self,
        pipeline: &'p Pipeline,
        run: &Run<'p>,
        input: &mut Batch,
        figures: &mut [StepProfile],
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let cut = self.cut(pipeline);
        let body = cut.as_ref().map_or(0..0, PipelineCut::steps);
        let around = self.joins(pipeline, &(0..pipeline.steps.len()), Some(&body), run, figures)?;
        let run = run.with_shared(&around);
        let Some(cut) = &cut else {
            let mut stages = Stages::whole(pipeline, &run)?;
            stages.push(input, &run, sink)?;
            stages.finish(&run, sink)?;
            stages.add_figures(figures);
            return Ok(());
        };
        let shared = self.joins(pipeline, &body, None, &run, figures)?;
        let abort = AbortState::default();
        let controls: Vec<Control<'_>> =
            (0..self.threads).map(|_| run.control().for_worker(&abort.flag)).collect();
        let evaluators: Vec<Evaluator<'_>> =
            controls.iter().map(|control| run.evaluator().for_thread(control)).collect();
        let threads: Vec<_> = controls.iter().zip(&evaluators).collect();
        let mut head = Stages::head(pipeline, cut, &run)?;
        let mut tail = Stages::tail(pipeline, cut, &run)?;
        let CutPolicy { call_after: after, wait_for_helpers: wait, .. } = self.cut_policy;
        let wake_policy = WakePolicy { after, wait };
        let executor = PipelineExecutor::new(
            self.pool,
            (pipeline, cut),
            run.with_shared(&shared),
            &threads,
            &abort,
            wake_policy,
        );
        let mut rows = HeadRows::new(&run);
        {
            let mut run_round = |rows: &mut HeadRows| -> Result<Flow> {
                let flow = executor.run_round(rows.batch(), &mut |batch| tail.push(batch, &run, sink))?;
                rows.clear();
                Ok(flow)
            };
            let mut collect = |batch: &mut Batch| {
                rows.append(batch, &run)?;
                if rows.batch().rows < HEAD_ROWS_MAX { Ok(Flow::More) } else { run_round(&mut rows) }
            };
            head.push(input, &run, &mut collect)?;
            head.finish(&run, &mut collect)?;
            if rows.batch().rows > 0 && !abort.is_set() {
                run_round(&mut rows)?;
            }
        }
        if cut.folds() {
            for partial in executor.partials()? {
                tail.merge(partial, &run)?;
            }
        }
        tail.finish(&run, sink)?;
        head.add_figures(figures);
        let numbers = numbers(pipeline);
        executor.add_figures(&mut figures[numbers[body.start]..]);
        tail.add_figures(&mut figures[numbers[cut.tail_start()]..]);
        Ok(())
    }

    /// Runs the right sides of the joins in the steps of `range` except those of `without`, and returns their
    /// tables. With `without`, runs only right sides that are worth cutting; other joins build their table at
    /// the first row.
    fn joins<'p>(
        &self,
        pipeline: &'p Pipeline,
        range: &std::ops::Range<usize>,
        without: Option<&std::ops::Range<usize>>,
        run: &Run<'p>,
        figures: &mut [StepProfile],
    ) -> Result<Shared> {
        let mut shared =
            if without.is_none() { Shared::new(&pipeline.steps[range.clone()]) } else { Shared::default() };
        let numbers_here = numbers(pipeline);
        for at in range.clone().filter(|at| without.is_none_or(|without| !without.contains(at))) {
            let number = numbers_here[at];
            for (inside, step) in Shared::joins_of(&pipeline.steps[at..=at]) {
                let Some(right) = step.step.nested().first() else { continue };
                if without.is_some() && !self.cuts(right) {
                    continue;
                }
                let mut table = JoinTable::new(step, run.variables())?;
                let join = number + inside;
                let mut row = Batch::unit(run.variables());
                self.pipeline(right, run, &mut row, &mut figures[join + 1..], &mut |batch| {
                    table.append(batch, run.control())?;
                    Ok(Flow::More)
                })?;
                table.finish(run.control())?;
                shared.add_join(step, table);
                // The time of a step includes that of its nested pipelines.
                let steps = numbers(right);
                let steps = &steps[..right.steps.len()];
                let nanoseconds: u64 =
                    steps.iter().map(|number| figures[join + 1 + number].nanoseconds).sum();
                figures[join].nanoseconds += nanoseconds;
            }
        }
        Ok(shared)
    }
}

/// The number of each step, starting at 0, and the total count.
fn numbers(pipeline: &Pipeline) -> Vec<usize> {
    let mut numbers = Vec::with_capacity(pipeline.steps.len() + 1);
    numbers.push(0);
    let mut next = 0;
    for step in &pipeline.steps {
        next += step.step.number_steps();
        numbers.push(next);
    }
    numbers
}
