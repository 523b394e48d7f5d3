//! The server that asks a query: head and tail of the plan, and the tasks of all servers between them.

use crate::cost::trips;
use crate::placement::Placement;
use crate::rows::{GATHERED_ROWS, append, append_all, rows_max};
use crate::servers::Servers;
use crate::task::{Job, Outcome, ReceivedTask, Task, bytes_of, kind, read_delivery, write_delivery};
use crate::worker::run_task;
use rustc_hash::FxHashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use vervet_driver_local::{Driver, LocalDriver, Parallelism, is_heavy};
use vervet_expression::Evaluator;
use vervet_kernel::parallel::{HeadRows, Stages};
use vervet_kernel::plan::{Pipeline, Plan, PlanStep, Profile, Sent};
use vervet_kernel::{
    BATCH_ROWS, Batch, Control, Flow, Gate, JoinTable, Results, Run, Shared, ends_early, needs_one_thread,
};
use vervet_model::{Error, ErrorKind, Id, Result, Tag, ThreadLimits, cancelled_error, lock};
use vervet_snapshot::Snapshot;

/// Maximum buffered rows of the head, plus one batch.
const HEAD_ROWS_MAX: usize = 1 << 16;

/// Rows move to their servers from a fourth of the rows at which a step is split into morsels: a request
/// takes less than a thread that is woken in vain.
const MOVED_OF_SPLIT: f64 = 4.0;

/// Computed terms that a job carries at most; the part of a plan with more runs where it was asked.
const COMPUTED_MAX: usize = 1 << 12;

/// Estimated rows up to which each server runs one task, while this thread waits.
const SMALL_ROWS_MAX: f64 = 16_384.0;

/// Bytes of rows that wait for a query whose thread waits, if its cap is larger.
const DELIVERED_BYTES_MAX: u64 = 1 << 30;

/// Estimated rows from which the scan of a server is cut into more tasks than it has threads.
const BALANCED_ROWS_MIN: f64 = 262_144.0;

/// Tasks of such a scan for each thread: partitions have different work.
const TASKS_PER_THREAD: usize = 4;

/// The limits of the query are checked at least this often while it waits for servers.
const WAIT: Duration = Duration::from_millis(20);

/// Runs plans over the servers of a cluster: light ones here, reading the other servers, heavy ones at all
/// servers. See the header of this crate.
#[derive(Debug)]
pub struct ClusterDriver {
    local: LocalDriver,
    servers: Arc<Servers>,
    /// By number: where deliveries for the queries that were asked here go.
    jobs: Mutex<FxHashMap<u64, Inbox>>,
    next_job: AtomicU64,
    counters: Counters,
}

#[derive(Debug, Default)]
struct Counters {
    queries: AtomicU64,
    tasks: AtomicU64,
    rows_moved: AtomicU64,
}

/// What a server has done for queries over all servers since it started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClusterCounts {
    /// Queries that were asked here and ran at all servers.
    pub queries: u64,
    /// Tasks of other servers that were answered.
    pub tasks: u64,
    /// Rows that the tasks of queries that were asked here sent from server to server.
    pub rows_moved: u64,
}

/// What the thread of the query receives.
enum Message {
    /// Rows that were too many for an outcome.
    Delivered(Batch),
    Ended(Outcome),
    /// A lane has no more tasks, or has failed.
    LaneEnded(Result<()>),
}

/// Where deliveries for a query go.
#[derive(Clone, Debug)]
enum Inbox {
    /// To a thread that takes them, one after the other.
    Taken(SyncSender<Message>),
    /// To a list, while the thread of the query waits for outcomes: few rows were expected.
    Listed(Arc<DeliveredRows>),
}

/// Rows that wait, at most as many bytes as the cap of the query.
#[derive(Debug)]
struct DeliveredRows {
    batches: Mutex<(Vec<Batch>, u64)>,
    bytes_max: u64,
}

/// The tasks for one server, each taken once.
struct Lane {
    server: usize,
    tasks: Vec<(Vec<usize>, Arc<Batch>)>,
    next: AtomicUsize,
}

/// Removes a job when its query ends.
struct Registered<'d> {
    driver: &'d ClusterDriver,
    job: u64,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        lock(&self.driver.jobs).remove(&self.job);
    }
}

impl ClusterDriver {
    /// A driver for queries that are asked at this server, and for the tasks of others. `seed`: random bits,
    /// so that this server does not take a delivery for a query that it has forgotten.
    #[must_use]
    pub fn new(local: LocalDriver, servers: Arc<Servers>, seed: u64) -> Self {
        Self {
            local,
            servers,
            jobs: Mutex::default(),
            next_job: AtomicU64::new(seed),
            counters: Counters::default(),
        }
    }

    /// What was done so far.
    #[must_use]
    pub fn counts(&self) -> ClusterCounts {
        // Relaxed: each is exact, they need not fit each other.
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { queries, tasks, rows_moved } = &self.counters;
        ClusterCounts { queries: read(queries), tasks: read(tasks), rows_moved: read(rows_moved) }
    }

    /// Whether a request of another server is for [`ClusterDriver::answer`].
    #[must_use]
    pub fn is_request(request: &[u8]) -> bool {
        matches!(request.first(), Some(&(kind::TASK | kind::DELIVERY)))
    }

    /// Appends the answer to a request of another server, with the limits of the calling thread.
    ///
    /// # Errors
    /// Limits; damaged data; what other servers answer; the request is none.
    pub fn answer(&self, request: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match request.split_first() {
            Some((&kind::TASK, bytes)) => self.answer_task(bytes, out),
            Some((&kind::DELIVERY, bytes)) => {
                let (job, rows) = read_delivery(bytes)?;
                self.deliver(job, rows)
            }
            _ => Err(crate::wire::malformed("an unknown request")),
        }
    }

    fn answer_task(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let received = ReceivedTask::read(bytes)?;
        let ReceivedTask { job_bytes, job, fragment, partitions, rows } = &received;
        let task = Task { job: job_bytes, fragment: *fragment, partitions, rows };
        let outcome = run_task(&self.servers, job, &task, self.gate(), &|rows| {
            if job.origin == self.servers.own() {
                return self.deliver(job.number, rows).map(|()| Sent::default());
            }
            let mut request = Vec::new();
            write_delivery(job.number, &rows, &mut request);
            self.servers.remote(job.origin)?.send(&request)?.receive()?;
            Ok(Sent { rows: rows.rows as u64, bytes: request.len() as u64 })
        })?;
        self.counters.tasks.fetch_add(1, Ordering::Relaxed);
        outcome.write(out);
        Ok(())
    }

    /// Passes rows on to a query that was asked here.
    fn deliver(&self, job: u64, rows: Batch) -> Result<()> {
        let inbox = lock(&self.jobs).get(&job).cloned().ok_or_else(cancelled_error)?;
        match inbox {
            Inbox::Taken(sender) => sender.send(Message::Delivered(rows)).map_err(|_| cancelled_error()),
            Inbox::Listed(list) => list.add(rows),
        }
    }

    /// Where the steps of a pipeline run, and what was sent.
    fn note(
        &self,
        pipeline: &Pipeline,
        base: usize,
        plan: &Plan,
        parallelism: Parallelism,
        profile: Option<&Profile>,
        notes: &mut Vec<String>,
    ) {
        let line = |at: usize| base + number_of(pipeline, at) + 1;
        let sent = |at: usize| {
            let number = base + number_of(pipeline, at);
            let found = profile.and_then(|profile| profile.sent.iter().find(|(step, _)| *step == number));
            let (_, Sent { rows, bytes }) = found.copied()?;
            Some(format!(": {rows} rows sent, {bytes} bytes"))
        };
        if let Some(placement) = self.placement(pipeline, parallelism) {
            let (first, last) = (line(placement.steps.start), line(placement.steps.end - 1));
            notes.push(format!("at all {} servers: steps {first} to {last}", self.servers.count()));
            for fragment in &placement.fragments {
                let at = placement.steps.start + fragment.steps.start;
                let how = match fragment.key {
                    None => format!("step {} reads the partitions of each server", line(at)),
                    Some(key) => {
                        let name = plan.variables.get(key.index()).map_or("", String::as_str);
                        let rows = if at == 0 { 1.0 } else { pipeline.steps[at - 1].rows };
                        format!(
                            "before step {} rows go to the owner of ?{name}: est. {rows:.0} rows",
                            line(at)
                        )
                    }
                };
                notes.push(format!("  {how}{}", sent(at).unwrap_or_default()));
            }
            if let Some(back) = sent(placement.steps.end) {
                notes.push(format!("  back to this server{back}"));
            }
        }
        for (number, step) in Shared::joins_of(&pipeline.steps) {
            for right in step.step.nested() {
                self.note(right, base + number + 1, plan, parallelism, profile, notes);
            }
        }
    }

    fn is_over_servers(&self, plan: &Plan, parallelism: Parallelism) -> bool {
        self.servers.count() > 1
            && (is_heavy(plan, parallelism) || !ends_early(plan))
            && !needs_one_thread(plan)
            && self.is_placed(&plan.pipeline, parallelism)
    }

    /// Whether a part of a pipeline, or of the right side of one of its joins, runs at all servers.
    fn is_placed(&self, pipeline: &Pipeline, parallelism: Parallelism) -> bool {
        let is_right_placed = |(_, step): (usize, &PlanStep)| {
            step.step.nested().iter().any(|right| self.is_placed(right, parallelism))
        };
        self.placement(pipeline, parallelism).is_some()
            || Shared::joins_of(&pipeline.steps).into_iter().any(is_right_placed)
    }

    fn placement(&self, pipeline: &Pipeline, parallelism: Parallelism) -> Option<Placement> {
        let rows_min = f64::from(parallelism.cut_policy.split_rows_min) / MOVED_OF_SPLIT;
        Placement::new(pipeline, &self.servers, rows_min)
    }
}

impl Driver for ClusterDriver {
    fn gate(&self) -> Option<Arc<dyn Gate>> {
        self.local.gate()
    }

    fn threads(&self, plan: &Plan, parallelism: Parallelism) -> usize {
        self.local.threads(plan, parallelism)
    }

    fn steps_in_copies(&self, plan: &Plan, parallelism: Parallelism) -> Vec<bool> {
        self.local.steps_in_copies(plan, parallelism)
    }

    fn notes(&self, plan: &Plan, parallelism: Parallelism, profile: Option<&Profile>) -> Vec<String> {
        let mut notes = Vec::new();
        if self.is_over_servers(plan, parallelism) {
            self.note(&plan.pipeline, 0, plan, parallelism, profile, &mut notes);
        }
        notes
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
        if !self.is_over_servers(plan, parallelism) {
            return self.local.execute(plan, snapshot, evaluator, control, parallelism, input, profile, sink);
        }
        if is_heavy(plan, parallelism) {
            control.set_heavy();
        }
        self.counters.queries.fetch_add(1, Ordering::Relaxed);
        let solutions = AtomicU64::new(0);
        let run = Run::new(plan, snapshot, evaluator, control, &solutions, profile);
        input.columns.resize(run.variables(), Vec::new());
        let mut results = Results::new(plan, &run);
        let mut figures = Profile::new(&plan.pipeline);
        let execution = Execution { driver: self, parallelism, profile };
        execution.pipeline(&plan.pipeline, 0, &run, input, &mut figures, &mut |batch| {
            results.push(batch, control, sink)
        })?;
        Ok(if profile { figures } else { Profile::default() })
    }
}

/// A query that runs at all servers.
struct Execution<'d> {
    driver: &'d ClusterDriver,
    parallelism: Parallelism,
    profile: bool,
}

impl Execution<'_> {
    /// Runs a pipeline that starts from the single row `input`. `base`: the number of its first step.
    fn pipeline<'p>(
        &self,
        pipeline: &'p Pipeline,
        base: usize,
        run: &Run<'p>,
        input: &mut Batch,
        figures: &mut Profile,
        sink: &mut dyn FnMut(&mut Batch) -> Result<Flow>,
    ) -> Result<()> {
        let tables = self.joins(pipeline, base, run, figures)?;
        let run = run.with_shared(&tables);
        let placement = self.driver.placement(pipeline, self.parallelism);
        let placed = match &placement {
            Some(placement) => self.job(placement, &run)?,
            None => None,
        };
        let (Some(placement), Some((job, job_bytes))) = (&placement, &placed) else {
            let mut stages = Stages::whole(pipeline, &run)?;
            stages.push(input, &run, sink)?;
            stages.finish(&run, sink)?;
            stages.add_figures(&mut figures.steps[base..]);
            return Ok(());
        };
        let mut head = Stages::part(pipeline, 0..placement.steps.start, &run)?;
        let mut tail = Tail::new(pipeline, placement.steps.end, &run)?;
        let first = base + number_of(pipeline, placement.steps.start);
        let (driver, threads) = (self.driver, self.parallelism.threads);
        let rows_max = placement.rows_max;
        let query = Query { driver, job, job_bytes, control: run.control(), threads, rows_max };
        let mut rows = HeadRows::new(&run);
        let mut is_done = false;
        let mut run_round = |rows: &mut HeadRows| -> Result<Flow> {
            let (flow, outcome) = query.round(rows.batch(), &mut |batch| tail.push(batch, &run, sink))?;
            let moved = outcome.sent.iter().skip(1).take(job.fragments.len() - 1).map(|one| one.rows).sum();
            driver.counters.rows_moved.fetch_add(moved, Ordering::Relaxed);
            for (number, one) in outcome.sent.iter().enumerate() {
                let at = job.fragments.get(number).map_or(placement.steps.len(), |one| one.steps.start);
                figures.add_sent(base + number_of(pipeline, placement.steps.start + at), *one);
            }
            outcome.figures.iter().zip(&mut figures.steps[first..]).for_each(|(one, sum)| sum.add(one));
            rows.clear();
            Ok(flow)
        };
        let mut collect = |batch: &mut Batch| {
            rows.append(batch, &run)?;
            let flow = if rows.batch().rows < HEAD_ROWS_MAX { Flow::More } else { run_round(&mut rows)? };
            is_done = flow == Flow::Done;
            Ok(flow)
        };
        head.push(input, &run, &mut collect)?;
        head.finish(&run, &mut collect)?;
        if rows.batch().rows > 0 && !is_done {
            run_round(&mut rows)?;
        }
        tail.finish(&run, sink)?;
        head.add_figures(&mut figures.steps[base..]);
        tail.stages.add_figures(&mut figures.steps[base + number_of(pipeline, placement.steps.end)..]);
        Ok(())
    }

    /// Runs the right sides of joins that run at all servers, and returns their tables; other joins build
    /// their table at the first row.
    fn joins<'p>(
        &self,
        pipeline: &'p Pipeline,
        base: usize,
        run: &Run<'p>,
        figures: &mut Profile,
    ) -> Result<Shared> {
        let mut tables = Shared::default();
        for (number, step) in Shared::joins_of(&pipeline.steps) {
            let Some(right) = step.step.nested().first() else { continue };
            if !self.driver.is_placed(right, self.parallelism) {
                continue;
            }
            let mut table = JoinTable::new(step, run.variables())?;
            let mut row = Batch::unit(run.variables());
            self.pipeline(right, base + number + 1, run, &mut row, figures, &mut |batch| {
                table.append(batch, run.control())?;
                Ok(Flow::More)
            })?;
            table.finish(run.control())?;
            tables.add_join(step, table);
        }
        Ok(tables)
    }

    /// The job of a placement, and its bytes; `None`: it has steps without bytes.
    fn job(&self, placement: &Placement, run: &Run<'_>) -> Result<Option<(Job, Arc<[u8]>)>> {
        let evaluator = run.evaluator();
        if evaluator.computed().len() > COMPUTED_MAX {
            return Ok(None);
        }
        let computed = (0_u64..).take(evaluator.computed().len()).map(|number| {
            let term = evaluator.term(Id::new(Tag::Computed, number))?;
            term.ok_or_else(|| Error::internal("a computed term has no value"))
        });
        let job = Job {
            variables: run.variables(),
            number: self.driver.next_job.fetch_add(1, Ordering::Relaxed),
            origin: self.driver.servers.own(),
            pipeline: placement.pipeline.clone(),
            fragments: placement.fragments.clone(),
            combine: placement.combine,
            now: evaluator.now().to_be_bytes(),
            base: evaluator.base().map(str::to_owned),
            computed: computed.collect::<Result<_>>()?,
            memory_bytes: run.control().memory_limit(),
            profile: self.profile,
        };
        Ok(bytes_of(&job).map(|bytes| (job, bytes)))
    }
}

/// The steps after those that run at all servers. Rows that servers send are gathered for steps that read
/// other servers: a round trip for each batch, not for each server.
struct Tail<'p> {
    stages: Stages<'p>,
    is_gathered: bool,
    gathered: Batch,
}

impl<'p> Tail<'p> {
    fn new(pipeline: &'p Pipeline, start: usize, run: &Run<'p>) -> Result<Self> {
        let is_gathered = pipeline.steps.get(start).is_some_and(|step| trips(&step.step) > 0.0);
        let stages = Stages::part(pipeline, start..pipeline.steps.len(), run)?;
        Ok(Self { stages, is_gathered, gathered: Batch::new(run.variables()) })
    }

    fn push(
        &mut self,
        batch: &mut Batch,
        run: &Run<'p>,
        sink: &mut dyn FnMut(&mut Batch) -> Result<Flow>,
    ) -> Result<Flow> {
        if !self.is_gathered {
            return self.stages.push(batch, run, sink);
        }
        append_all(&mut self.gathered, batch);
        if self.gathered.rows < GATHERED_ROWS {
            return Ok(Flow::More);
        }
        self.flush(run, sink)
    }

    fn flush(&mut self, run: &Run<'p>, sink: &mut dyn FnMut(&mut Batch) -> Result<Flow>) -> Result<Flow> {
        let mut rows = std::mem::replace(&mut self.gathered, Batch::new(run.variables()));
        if rows.rows == 0 { Ok(Flow::More) } else { self.stages.push(&mut rows, run, sink) }
    }

    fn finish(&mut self, run: &Run<'p>, sink: &mut dyn FnMut(&mut Batch) -> Result<Flow>) -> Result<()> {
        self.flush(run, sink)?;
        self.stages.finish(run, sink)
    }
}

/// The number of the step at this place.
fn number_of(pipeline: &Pipeline, at: usize) -> usize {
    pipeline.steps[..at].iter().map(|step| step.step.number_steps()).sum()
}

/// A query over all servers.
struct Query<'q> {
    driver: &'q ClusterDriver,
    job: &'q Job,
    job_bytes: &'q [u8],
    control: &'q Control<'q>,
    /// Tasks at one server at a time; `None`: as many as this one has processors.
    threads: Option<usize>,
    /// The largest estimated number of rows after one of the steps of the job.
    rows_max: f64,
}

impl DeliveredRows {
    fn add(&self, rows: Batch) -> Result<()> {
        let mut batches = lock(&self.batches);
        batches.1 += rows.size_bytes();
        if batches.1 > self.bytes_max {
            let message = format!("the rows that servers sent need more than {} bytes", self.bytes_max);
            return Err(Error::new(ErrorKind::MemoryLimit, message)
                .with_hint("raise the memory cap, or restrict the query (more constants, LIMIT)"));
        }
        batches.0.push(rows);
        Ok(())
    }
}

impl Query<'_> {
    /// As [`Query::round`] for few rows: one task for each server, without other threads. Those of other
    /// servers are sent before the own one begins.
    fn small_round(
        &self,
        rows: &Batch,
        tail: &mut dyn FnMut(&mut Batch) -> Result<Flow>,
    ) -> Result<(Flow, Outcome)> {
        let servers = &self.driver.servers;
        let lanes = self.lanes(rows, 1);
        let bytes_max = self.job.memory_bytes.unwrap_or(DELIVERED_BYTES_MAX).min(DELIVERED_BYTES_MAX);
        let list = Arc::new(DeliveredRows { batches: Mutex::default(), bytes_max });
        lock(&self.driver.jobs).insert(self.job.number, Inbox::Listed(Arc::clone(&list)));
        let _registered = Registered { driver: self.driver, job: self.job.number };
        let mut request = Vec::new();
        self.control.leave();
        let mut answers = Vec::new();
        for (lane, (partitions, rows)) in
            lanes.iter().flat_map(|lane| lane.tasks.iter().map(move |task| (lane, task)))
        {
            if lane.server != servers.own() {
                request.clear();
                Task { job: self.job_bytes, fragment: 0, partitions, rows }.write(&mut request);
                let sent = Sent { rows: rows.rows as u64, bytes: request.len() as u64 };
                answers.push((servers.remote(lane.server)?.send(&request)?, sent));
            }
        }
        let mut outcomes = Vec::new();
        for (partitions, rows) in
            lanes.iter().filter(|lane| lane.server == servers.own()).flat_map(|lane| &lane.tasks)
        {
            let task = Task { job: self.job_bytes, fragment: 0, partitions, rows };
            outcomes.push(run_task(servers, self.job, &task, self.driver.gate(), &|rows| {
                list.add(rows).map(|()| Sent::default())
            })?);
        }
        for (answer, sent) in answers {
            self.control.leave();
            let mut outcome = Outcome::read(&answer.receive()?, self.job.variables)?;
            outcome.sent.iter_mut().take(1).for_each(|first| first.add(sent));
            outcomes.push(outcome);
        }
        let mut sum = Outcome::default();
        outcomes.iter().for_each(|outcome| sum.count(outcome));
        let (batches, _) = std::mem::take(&mut *lock(&list.batches));
        check_delivered(batches.iter().map(|batch| batch.rows as u64).sum(), &sum)?;
        for rows in batches.into_iter().chain(outcomes.into_iter().map(|outcome| outcome.rows)) {
            if push_all(&rows, tail)? == Flow::Done {
                return Ok((Flow::Done, sum));
            }
        }
        Ok((Flow::More, sum))
    }

    /// Runs rows of the head at all servers, and passes the resulting rows to `tail`. [`Flow::Done`]: `tail`
    /// needs no more rows.
    fn round(
        &self,
        rows: &Batch,
        tail: &mut dyn FnMut(&mut Batch) -> Result<Flow>,
    ) -> Result<(Flow, Outcome)> {
        if self.rows_max <= SMALL_ROWS_MAX {
            return self.small_round(rows, tail);
        }
        let here = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.threads.unwrap_or_else(here).max(1);
        let lanes =
            self.lanes(rows, threads * if self.rows_max > BALANCED_ROWS_MIN { TASKS_PER_THREAD } else { 1 });
        let copies: Vec<&Lane> = lanes
            .iter()
            .flat_map(|lane| std::iter::repeat_n(lane, threads.clamp(1, lane.tasks.len())))
            .collect();
        let (sender, receiver) = sync_channel(copies.len().max(1));
        lock(&self.driver.jobs).insert(self.job.number, Inbox::Taken(sender.clone()));
        let _registered = Registered { driver: self.driver, job: self.job.number };
        let stop = Arc::new(AtomicBool::new(false));
        let deadline = ThreadLimits::current().deadline;
        std::thread::scope(|scope| {
            // Whatever ends this thread ends the others.
            let stopped = StopOnDrop(&stop);
            for lane in &copies {
                let (sender, stop) = (sender.clone(), Arc::clone(&stop));
                scope.spawn(move || {
                    let _limits = ThreadLimits { cancelled: Some(stop), deadline }.enter();
                    let run = || self.run_lane(lane, &sender);
                    let ended = catch_unwind(AssertUnwindSafe(run));
                    let ended =
                        ended.unwrap_or_else(|_| Err(Error::internal("a thread of the query panicked")));
                    // Without a receiver the query has ended.
                    let _ = sender.send(Message::LaneEnded(ended));
                });
            }
            drop(sender);
            let collected = self.collect(&receiver, copies.len(), tail);
            drop(stopped);
            // Threads that deliver end.
            drop(receiver);
            collected
        })
    }

    /// The tasks of each server that has some. `scans`: into how many tasks the scan of a server is cut.
    fn lanes(&self, rows: &Batch, scans: usize) -> Vec<Lane> {
        let servers = &self.driver.servers;
        let mut lanes: Vec<Lane> = (0..servers.count())
            .map(|server| Lane { server, tasks: Vec::new(), next: AtomicUsize::new(0) })
            .collect();
        match self.job.fragments.first().and_then(|fragment| fragment.key) {
            None => {
                for start in (0..rows.rows).step_by(rows_max(rows)) {
                    let mut part = Batch::new(rows.columns.len());
                    part.copy_rows(rows, start..rows.rows.min(start + rows_max(rows)));
                    let part = Arc::new(part);
                    for lane in &mut lanes {
                        let partitions = servers.partitions_of(lane.server);
                        let some = partitions.len().div_ceil(scans).max(1);
                        let cut = partitions.chunks(some).map(|some| (some.to_vec(), Arc::clone(&part)));
                        lane.tasks.extend(cut);
                    }
                }
            }
            Some(key) => {
                let mut dealt = vec![Vec::new(); servers.count()];
                for (row, number) in (0..rows.rows).zip(0_u32..) {
                    let id = rows.value(key, row);
                    let server = if id.is_bound() { servers.of_key(id) } else { servers.own() };
                    dealt[server].push(number);
                }
                for (lane, numbers) in lanes.iter_mut().zip(&dealt) {
                    for some in numbers.chunks(rows_max(rows)) {
                        let mut part = Batch::new(rows.columns.len());
                        append(&mut part, rows, some);
                        lane.tasks.push((Vec::new(), Arc::new(part)));
                    }
                }
            }
        }
        lanes.retain(|lane| !lane.tasks.is_empty());
        lanes
    }

    /// Runs tasks of a server one after the other.
    fn run_lane(&self, lane: &Lane, sender: &SyncSender<Message>) -> Result<()> {
        let servers = &self.driver.servers;
        let mut request = Vec::new();
        while let Some((partitions, rows)) = lane.tasks.get(lane.next.fetch_add(1, Ordering::Relaxed)) {
            ThreadLimits::check()?;
            let task = Task { job: self.job_bytes, fragment: 0, partitions, rows };
            let outcome = if lane.server == servers.own() {
                run_task(servers, self.job, &task, self.driver.gate(), &|rows| {
                    sender.send(Message::Delivered(rows)).map_err(|_| cancelled_error())?;
                    Ok(Sent::default())
                })?
            } else {
                request.clear();
                task.write(&mut request);
                let answer = servers.remote(lane.server)?.send(&request)?.receive()?;
                let mut outcome = Outcome::read(&answer, self.job.variables)?;
                if let Some(first) = outcome.sent.first_mut() {
                    first.add(Sent { rows: rows.rows as u64, bytes: request.len() as u64 });
                }
                outcome
            };
            sender.send(Message::Ended(outcome)).map_err(|_| cancelled_error())?;
        }
        Ok(())
    }

    /// Receives what the lanes and other servers send, until all lanes have ended or no more is needed.
    fn collect(
        &self,
        receiver: &Receiver<Message>,
        lanes: usize,
        tail: &mut dyn FnMut(&mut Batch) -> Result<Flow>,
    ) -> Result<(Flow, Outcome)> {
        let mut sum = Outcome::default();
        let (mut delivered, mut ended) = (0, 0);
        while ended < lanes {
            let message = receiver.try_recv().map_or_else(
                |_| {
                    self.control.leave();
                    receiver.recv_timeout(WAIT)
                },
                Ok,
            );
            let rows = match message {
                Ok(Message::Delivered(rows)) => {
                    delivered += rows.rows as u64;
                    rows
                }
                Ok(Message::Ended(outcome)) => {
                    sum.count(&outcome);
                    outcome.rows
                }
                Ok(Message::LaneEnded(result)) => {
                    result?;
                    ended += 1;
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.control.check()?;
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::internal("the threads of a query have ended without a word"));
                }
            };
            self.control.check()?;
            if push_all(&rows, tail)? == Flow::Done {
                return Ok((Flow::Done, sum));
            }
        }
        check_delivered(delivered, &sum)?;
        Ok((Flow::More, sum))
    }
}

/// Passes rows on in batches.
fn push_all(rows: &Batch, tail: &mut dyn FnMut(&mut Batch) -> Result<Flow>) -> Result<Flow> {
    let mut part = Batch::new(rows.columns.len());
    for start in (0..rows.rows).step_by(BATCH_ROWS) {
        part.columns.resize(rows.columns.len(), Vec::new());
        part.copy_rows(rows, start..rows.rows.min(start + BATCH_ROWS));
        if tail(&mut part)? == Flow::Done {
            return Ok(Flow::Done);
        }
    }
    Ok(Flow::More)
}

/// Fails if rows have not arrived that were delivered.
fn check_delivered(arrived: u64, sum: &Outcome) -> Result<()> {
    if arrived == sum.delivered {
        return Ok(());
    }
    let message = format!("servers delivered {} rows, of which {arrived} arrived", sum.delivered);
    Err(Error::internal(message))
}

/// Stops the lanes of a query.
struct StopOnDrop<'s>(&'s AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        // Relaxed: the flag carries no data.
        self.0.store(true, Ordering::Relaxed);
    }
}
