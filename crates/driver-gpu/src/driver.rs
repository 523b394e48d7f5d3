//! The driver: placement, strips, and the way back to the CPU.

use crate::cost::is_worth_it;
use crate::engine::{Engine, OpenDevice};
use crate::lower::{DevicePart, DeviceStep, may_run_on_device};
use crate::options::GpuOptions;
use crate::stop::Stop;
use crate::strip::{Context, StripResult};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use vervet_device::Device;
use vervet_driver_local::{Driver, Parallelism, Placement, is_heavy};
use vervet_expression::Evaluator;
use vervet_kernel::parallel::{HeadRows, Stages};
use vervet_kernel::plan::{DeviceProfile, Plan, Profile, StepProfile};
use vervet_kernel::{BATCH_ROWS, Batch, Control, Flow, Results, Run};
use vervet_model::{Id, Result};
use vervet_snapshot::Snapshot;

/// Rows of the first strip of a query; later ones have four times as many as the one before.
const FIRST_STRIP_ROWS: usize = 1 << 12;
/// Strips of this many rows or fewer are not split any further when they do not fit.
const SPLIT_ROWS_MIN: usize = 16;

/// What a driver has run since it was created.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeviceCounts {
    /// Queries.
    pub queries: u64,
    /// Queries of which at least one strip ran on the device.
    pub queries_on_device: u64,
    /// Steps of plans in strips that ran on the device.
    pub steps_on_device: u64,
    /// Strips that ran on the device.
    pub strips_on_device: u64,
    /// Strips that ran on the CPU after an error of the device.
    pub strips_failed: u64,
    /// Strips that ran on the CPU since their windows or rows did not fit.
    pub strips_unfit: u64,
    /// Rows that came from the device.
    pub rows: u64,
    /// Rows that left the device for the CPU at a step in the middle, since ids did not decide it.
    pub rows_undecided: u64,
    /// Launched kernels.
    pub launches: u64,
    /// Steps of a table that ran in passes, since their windows did not fit together.
    pub passes: u64,
    /// Windows copied to the device, in bytes.
    pub copied_bytes: u64,
}

/// Runs parts of heavy plans on a device. See the header of this crate.
#[derive(Debug)]
pub struct GpuDriver {
    /// Runs everything else.
    local: Arc<dyn Driver>,
    options: GpuOptions,
    /// The name of the device, once it is open.
    name: OnceLock<String>,
    engine: Mutex<Engine>,
    queries: AtomicU64,
    queries_on_device: AtomicU64,
    steps_on_device: AtomicU64,
    strips_on_device: AtomicU64,
    strips_failed: AtomicU64,
    strips_unfit: AtomicU64,
    rows: AtomicU64,
    rows_undecided: AtomicU64,
}

impl GpuDriver {
    /// A driver that uses this device, and `local` for everything else.
    #[must_use]
    pub fn new(local: Arc<dyn Driver>, device: Box<dyn Device>, options: GpuOptions) -> Self {
        let name = device.name();
        let driver = Self::with_closed(local, Box::new(|| Ok(device)), options);
        driver.name.get_or_init(|| name);
        driver
    }

    /// A driver with a device that `open` opens before its first use. If that fails, every query runs on the
    /// CPU, and one event says why.
    #[must_use]
    pub fn with_closed(local: Arc<dyn Driver>, open: OpenDevice, options: GpuOptions) -> Self {
        Self {
            local,
            options,
            name: OnceLock::new(),
            engine: Mutex::new(Engine::new(open)),
            queries: AtomicU64::new(0),
            queries_on_device: AtomicU64::new(0),
            steps_on_device: AtomicU64::new(0),
            strips_on_device: AtomicU64::new(0),
            strips_failed: AtomicU64::new(0),
            strips_unfit: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            rows_undecided: AtomicU64::new(0),
        }
    }

    /// Opens the device now. Returns its name; `None`: queries run on the CPU, and an event has said why.
    pub fn open(&self) -> Option<String> {
        let mut engine = self.engine();
        self.open_engine(&mut engine).then(|| self.name().to_owned())
    }

    /// Whether the device is open, or could be opened now.
    fn open_engine(&self, engine: &mut Engine) -> bool {
        match engine.open() {
            Ok(Some(name)) => {
                tracing::info!(device = name, "heavy queries may run on the device");
                self.name.get_or_init(|| name);
            }
            Ok(None) => {}
            Err(error) if self.options.force => {
                tracing::warn!(reason = %error, "queries run on the CPU alone");
            }
            Err(error) => tracing::info!(reason = %error, "queries run on the CPU alone"),
        }
        engine.is_open()
    }

    /// The name of the device.
    fn name(&self) -> &str {
        self.name.get().map_or("GPU", String::as_str)
    }

    /// What has run so far.
    pub fn counts(&self) -> DeviceCounts {
        let engine = self.engine();
        DeviceCounts {
            queries: self.queries.load(Relaxed),
            queries_on_device: self.queries_on_device.load(Relaxed),
            steps_on_device: self.steps_on_device.load(Relaxed),
            strips_on_device: self.strips_on_device.load(Relaxed),
            strips_failed: self.strips_failed.load(Relaxed),
            strips_unfit: self.strips_unfit.load(Relaxed),
            rows: self.rows.load(Relaxed),
            rows_undecided: self.rows_undecided.load(Relaxed),
            launches: engine.launches,
            passes: engine.passes,
            copied_bytes: 8 * engine.cache.copied_words,
        }
    }

    /// The device; after a panic while it was in use, it counts as lost.
    fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(|poisoned: PoisonError<_>| {
            let mut engine = poisoned.into_inner();
            engine.lose();
            engine
        })
    }

    /// The part of a plan for the device, if it should run there.
    fn part<'a>(
        &self,
        plan: &Plan,
        snapshot: &'a dyn Snapshot,
        evaluator: &Evaluator<'_>,
        parallelism: Parallelism,
    ) -> Result<Option<DevicePart<'a>>> {
        let is_forced = match parallelism.placement {
            Placement::Cpu => return Ok(None),
            Placement::Gpu => true,
            Placement::Auto => self.options.force,
        };
        if !is_forced && !is_heavy(plan, parallelism) {
            return Ok(None);
        }
        let Some(part) = DevicePart::new(plan, snapshot, evaluator)? else { return Ok(None) };
        if is_forced {
            return Ok(self.open_engine(&mut self.engine()).then_some(part));
        }
        let Ok(mut engine) = self.engine.try_lock() else { return Ok(None) };
        let is_known =
            |step: &DeviceStep<'_>| step.op.segments().iter().all(|used| engine.cache.knows(&used.variant));
        let threads = self.local.threads(plan, parallelism);
        let steps = &plan.pipeline.steps[part.range.clone()];
        let is_worth_it =
            !engine.is_lost() && is_worth_it(plan, steps, &part.steps, &is_known, threads, engine.is_open());
        Ok((is_worth_it && self.open_engine(&mut engine)).then_some(part))
    }
}

impl Driver for GpuDriver {
    fn gate(&self) -> Option<Arc<dyn vervet_kernel::Gate>> {
        self.local.gate()
    }

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
        self.queries.fetch_add(1, Relaxed);
        let Some(part) = self.part(plan, snapshot, evaluator, parallelism)? else {
            return self.local.execute(plan, snapshot, evaluator, control, parallelism, input, profile, sink);
        };
        if is_heavy(plan, parallelism) {
            control.set_heavy();
        }
        let solutions = AtomicU64::new(0);
        let run = Run::new(plan, snapshot, evaluator, control, &solutions, profile);
        input.columns.resize(run.variables(), Vec::new());
        let mut results = Results::new(plan, &run);
        let steps = part.range.clone();
        let mut head = Stages::part(&plan.pipeline, 0..steps.start, &run)?;
        let tail = Stages::part(&plan.pipeline, steps.end..plan.pipeline.steps.len(), &run)?;
        let on_cpu = Stages::part(&part.pipeline, 0..part.pipeline.steps.len(), &run)?;
        let mut execution = Execution {
            driver: self,
            part: &part,
            run: &run,
            on_cpu,
            tail,
            sink: &mut |batch: &mut Batch| results.push(batch, control, sink),
            figures: vec![StepProfile::default(); part.step_count],
            strip_rows: self.options.strip_rows.clamp(1, FIRST_STRIP_ROWS),
            strip_rows_max: self.options.strip_rows,
            done: false,
            device: DeviceProfile { steps: steps.clone(), ..DeviceProfile::default() },
        };
        let mut rows = HeadRows::new(&run);
        let mut collect = |batch: &mut Batch| {
            rows.append(batch, &run)?;
            if rows.batch().rows >= execution.strip_rows {
                execution.rows(rows.batch())?;
                rows.clear();
            }
            Ok(if execution.done { Flow::Done } else { Flow::More })
        };
        head.push(input, &run, &mut collect)?;
        head.finish(&run, &mut collect)?;
        execution.rows(rows.batch())?;
        execution.finish()?;
        if execution.device.strips > 0 {
            self.queries_on_device.fetch_add(1, Relaxed);
        }
        if !profile {
            return Ok(Profile::default());
        }
        let mut figures = Profile::new(&plan.pipeline);
        let numbers = numbers(plan);
        head.add_figures(&mut figures.steps);
        execution.on_cpu.add_figures(&mut figures.steps[numbers[steps.start]..]);
        for (figures, own) in figures.steps[numbers[steps.start]..].iter_mut().zip(&execution.figures) {
            figures.add(own);
        }
        execution.tail.add_figures(&mut figures.steps[numbers[steps.end]..]);
        figures.device = Some(execution.device);
        Ok(figures)
    }

    fn threads(&self, plan: &Plan, parallelism: Parallelism) -> usize {
        self.local.threads(plan, parallelism)
    }

    fn steps_in_copies(&self, plan: &Plan, parallelism: Parallelism) -> Vec<bool> {
        self.local.steps_in_copies(plan, parallelism)
    }

    fn notes(&self, plan: &Plan, parallelism: Parallelism, profile: Option<&Profile>) -> Vec<String> {
        let name = |range: &Range<usize>| match range.len() {
            1 => format!("step {}", range.start + 1),
            _ => format!("steps {} to {}", range.start + 1, range.end),
        };
        match profile {
            Some(Profile {
                device: Some(DeviceProfile { steps, strips, strips_on_cpu, launches, rows_to_cpu }),
                ..
            }) => {
                let left = match rows_to_cpu {
                    0 => String::new(),
                    rows => format!(", {rows} rows left for the CPU in between"),
                };
                let (name, device) = (name(steps), self.name());
                vec![format!(
                    "{name} on the {device}: {strips} strips in {launches} launches, {strips_on_cpu} on the CPU instead{left}"
                )]
            }
            Some(_) => Vec::new(),
            None if parallelism.placement == Placement::Cpu => Vec::new(),
            None => {
                let steps = &plan.pipeline.steps;
                let runs = steps.chunk_by(|a, b| may_run_on_device(&a.step) == may_run_on_device(&b.step));
                let mut start = 0;
                let mut longest = 0..0;
                for run in runs {
                    let range = start..start + run.len();
                    start = range.end;
                    if may_run_on_device(&run[0].step) && range.len() > longest.len() {
                        longest = range;
                    }
                }
                let is_any = !longest.is_empty();
                is_any
                    .then(|| format!("{} can run on the {}", name(&longest), self.name()))
                    .into_iter()
                    .collect()
            }
        }
    }
}

/// The number of each step of the root pipeline, and the total count.
fn numbers(plan: &Plan) -> Vec<usize> {
    let mut next = 0;
    let mut numbers = vec![0];
    for step in &plan.pipeline.steps {
        next += step.step.number_steps();
        numbers.push(next);
    }
    numbers
}

/// One query with a part on the device.
struct Execution<'x, 'a, 's> {
    driver: &'x GpuDriver,
    part: &'x DevicePart<'a>,
    run: &'x Run<'a>,
    /// The steps of the part, for strips that do not run on the device.
    on_cpu: Stages<'a>,
    tail: Stages<'a>,
    sink: &'s mut dyn FnMut(&mut Batch) -> Result<Flow>,
    /// Profile of the steps on the device.
    figures: Vec<StepProfile>,
    /// Rows of the next strip, and their maximum.
    strip_rows: usize,
    strip_rows_max: usize,
    /// Whether the result needs no more rows.
    done: bool,
    device: DeviceProfile,
}

impl Execution<'_, '_, '_> {
    /// Runs rows of the head.
    fn rows(&mut self, rows: &Batch) -> Result<()> {
        match self.part.scan {
            None => self.strips(rows),
            Some((segment, key)) => {
                let mut strip = Batch::new(self.run.variables());
                let mut counted = 0;
                for row in 0..rows.rows {
                    let mut next = Some(Id::UNBOUND);
                    while let Some(from) = next.filter(|_| !self.done) {
                        self.run.control().check()?;
                        strip.clear();
                        let keys = &mut strip.columns[key.index()];
                        next = segment.keys(from, self.strip_rows, keys)?;
                        let count = keys.len();
                        for variable in self.part.pipeline.steps[0].keep.iter().filter(|other| **other != key)
                        {
                            if let Some(id) = rows.columns[variable.index()].get(row) {
                                strip.columns[variable.index()].resize(count, *id);
                            }
                        }
                        if !rows.multiplicity.is_empty() {
                            strip.multiplicity.resize(count, rows.times(row));
                        }
                        strip.rows = count;
                        self.run.control().recount(&mut counted, strip.size_bytes())?;
                        self.strips(&strip)?;
                    }
                }
                self.run.control().shrink(counted);
                Ok(())
            }
        }
    }

    /// Runs rows in strips.
    fn strips(&mut self, rows: &Batch) -> Result<()> {
        let mut start = 0;
        while start < rows.rows && !self.done {
            let end = (start + self.strip_rows).min(rows.rows);
            self.strip(rows, start..end)?;
            start = end;
            self.strip_rows = (4 * self.strip_rows).min(self.strip_rows_max).max(1);
        }
        Ok(())
    }

    /// Runs a strip on the device, in halves if it does not fit, on the CPU if that does not help.
    fn strip(&mut self, rows: &Batch, range: Range<usize>) -> Result<()> {
        if self.done || range.is_empty() {
            return Ok(());
        }
        let control = self.run.control();
        let mut input = Batch::new(rows.columns.len());
        input.copy_rows(rows, range.clone());
        let mut counted = 0;
        // Light queries need this thread's processor more than it does while the device works.
        control.leave();
        let result = {
            let mut engine = self.driver.engine();
            let before = engine.launches;
            let context = Context { control, profile: self.run.profiles(), counted: &mut counted };
            let result = engine.run(self.part, &input, &self.driver.options, context);
            self.device.launches += engine.launches - before;
            result
        };
        let stopped = match result {
            Ok(StripResult { figures, out, exits }) => {
                for (sum, figures) in self.figures.iter_mut().zip(&figures) {
                    sum.add(figures);
                }
                self.device.strips += 1;
                self.driver.strips_on_device.fetch_add(1, Relaxed);
                self.driver.steps_on_device.fetch_add(self.part.range.len() as u64, Relaxed);
                self.driver.rows.fetch_add(out.rows as u64, Relaxed);
                self.pass_on(&out)?;
                for (position, rows) in &exits {
                    self.device.rows_to_cpu += rows.rows as u64;
                    self.driver.rows_undecided.fetch_add(rows.rows as u64, Relaxed);
                    self.on_cpu(rows, 0..rows.rows, *position)?;
                }
                control.shrink(counted);
                return Ok(());
            }
            Err(stopped) => stopped,
        };
        control.shrink(counted);
        match stopped {
            Stop::Query(error) => return Err(error),
            Stop::Rows if range.len() > SPLIT_ROWS_MIN => {
                let middle = range.start + range.len() / 2;
                self.strip_rows_max = (range.len() / 2).max(1);
                self.strip(rows, range.start..middle)?;
                return self.strip(rows, middle..range.end);
            }
            Stop::Rows | Stop::Windows | Stop::Overflow | Stop::Undecided => {
                self.driver.strips_unfit.fetch_add(1, Relaxed);
            }
            Stop::Device(_) => {
                self.driver.strips_failed.fetch_add(1, Relaxed);
            }
        }
        self.device.strips_on_cpu += 1;
        self.on_cpu(rows, range, 0)
    }

    /// Runs rows on the CPU, from the step of the part at `position` on.
    fn on_cpu(&mut self, rows: &Batch, range: Range<usize>, position: usize) -> Result<()> {
        let mut batch = Batch::new(rows.columns.len());
        for start in range.clone().step_by(BATCH_ROWS) {
            if self.done {
                break;
            }
            batch.copy_rows(rows, start..(start + BATCH_ROWS).min(range.end));
            let (run, tail, sink) = (self.run, &mut self.tail, &mut *self.sink);
            let mut tail = |batch: &mut Batch| tail.push(batch, run, sink);
            let flow = self.on_cpu.push_from(position, &mut batch, run, &mut tail)?;
            self.done |= flow == Flow::Done;
        }
        Ok(())
    }

    /// Runs rows of the device through the tail.
    fn pass_on(&mut self, rows: &Batch) -> Result<()> {
        let mut batch = Batch::new(rows.columns.len());
        for start in (0..rows.rows).step_by(BATCH_ROWS) {
            batch.copy_rows(rows, start..(start + BATCH_ROWS).min(rows.rows));
            if self.tail.push(&mut batch, self.run, self.sink)? == Flow::Done {
                self.done = true;
                break;
            }
        }
        Ok(())
    }

    /// End of input.
    fn finish(&mut self) -> Result<()> {
        let (run, tail, sink) = (self.run, &mut self.tail, &mut *self.sink);
        self.on_cpu.finish(run, &mut |batch: &mut Batch| tail.push(batch, run, sink))?;
        self.tail.finish(self.run, self.sink)
    }
}
