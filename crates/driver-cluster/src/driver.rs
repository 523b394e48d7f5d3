//! The server that asks a query: head and tail of the plan, and the tasks of all servers between them.

use crate::cost::trips;
use crate::host::Host;
use crate::moved::{MovedRows, Terms};
use crate::partial_groups::Columns;
use crate::placement::Placement;
use crate::round::Query;
use crate::rows::{GATHERED_ROWS, append_all};
use crate::servers::Servers;
use crate::task::{
    Answered, Job, ReceivedTask, Task, bytes_of, kind, read_delivered, read_delivery, write_delivered,
    write_delivery,
};
use crate::wire::Wire;
use crate::worker::has_columns;
use oxrdf::Term;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use vervet_driver_local::{Driver, LocalDriver, Parallelism, is_heavy};
use vervet_expression::Evaluator;
use vervet_kernel::parallel::{HeadRows, Stages};
use vervet_kernel::plan::{Pipeline, Plan, PlanStep, Profile, Sent, Step, StepProfile};
use vervet_kernel::{
    Batch, Control, Flow, Gate, JoinTable, Results, Run, Shared, ends_early, needs_one_thread,
};
use vervet_model::{Error, ErrorKind, Id, Result, Tag};
use vervet_snapshot::Snapshot;

/// Maximum buffered rows of the head, plus one batch.
const HEAD_ROWS_MAX: usize = 1 << 16;

/// Rows move to their servers from a fourth of the rows at which a step is split into morsels: a request
/// takes less than a thread that is woken in vain.
const MOVED_OF_SPLIT: f64 = 4.0;

/// Computed terms that a job carries at most, and the bytes of their texts; a plan with more runs where it
/// was asked.
const COMPUTED_MAX: usize = 1 << 12;
const COMPUTED_BYTES_MAX: usize = 64 << 10;

/// Rows of the table of a join that goes to all servers, and the bytes of all such tables of a job.
const TABLE_ROWS_MAX: usize = 1 << 12;
const TABLES_BYTES_MAX: usize = 48 << 10;

/// Bytes of a job without its computed terms and tables: with them it is below the limit of jobs.
const STEPS_BYTES_MAX: usize = 128 << 10;

/// Runs plans over the servers of a cluster: light ones here, reading the other servers, heavy ones at all
/// servers. See the header of this crate.
#[derive(Debug)]
pub struct ClusterDriver {
    local: LocalDriver,
    host: Host,
    counters: Counters,
    /// Whether the newest version has changes, so that queries run where they are asked: for notes.
    has_changes: OnceLock<Probe>,
}

/// A question to the database whose queries the driver runs.
struct Probe(Box<dyn Fn() -> bool + Send + Sync>);

impl std::fmt::Debug for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Probe")
    }
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

impl ClusterDriver {
    /// A driver for queries that are asked at this server, and for the tasks of others. `seed`: random bits,
    /// so that this server does not take a delivery for a query that it has forgotten.
    #[must_use]
    pub fn new(local: LocalDriver, servers: Arc<Servers>, seed: u64) -> Self {
        let host = Host::new(servers, local.gate(), seed);
        Self { local, host, counters: Counters::default(), has_changes: OnceLock::new() }
    }

    /// From now on threads that run heavy tasks, and nothing else, call this first, to lower their priority.
    /// The first call counts.
    pub fn on_heavy_task(&self, call: fn()) {
        self.host.set_lower_priority(call);
    }

    /// From now on explanations ask `has_changes` whether the newest version has changes over the base of the
    /// servers: queries then run where they are asked. The first call counts.
    pub fn ask_for_changes(&self, has_changes: impl Fn() -> bool + Send + Sync + 'static) {
        _ = self.has_changes.set(Probe(Box::new(has_changes)));
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
                let (number, rows) = read_delivery(bytes)?;
                write_delivered(self.host.inboxes.deliver(number, rows)?, out);
                Ok(())
            }
            _ => Err(crate::wire::malformed("an unknown request")),
        }
    }

    fn answer_task(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let host = &self.host;
        let received = ReceivedTask::read(bytes, |job, number, fragment| {
            let behind = job.fragments.len().saturating_sub(fragment + 1);
            host.running.enter((job.origin, number), behind)
        })?;
        let Some((received, entered)) = received else {
            Answered::Busy.write(out);
            return Ok(());
        };
        let ReceivedTask { number, job_bytes, job, fragment, partitions, rows } = &received;
        let number = *number;
        let answered = host.with_priority(job.is_heavy, || {
            let task = Task { number, job: job_bytes, fragment: *fragment, partitions, rows };
            host.run(job, &task, &entered, &|rows| {
                if job.origin == host.servers.own() {
                    return Ok(host.inboxes.deliver(number, rows)?.then(Sent::default));
                }
                let mut request = Vec::new();
                write_delivery(number, &rows, &mut request);
                let answer = host.servers.remote(job.origin)?.send(&request)?.receive()?;
                let sent = Sent { rows: rows.rows() as u64, bytes: request.len() as u64 };
                Ok(read_delivered(&answer)?.then_some(sent))
            })
        })?;
        self.counters.tasks.fetch_add(1, Ordering::Relaxed);
        answered.write(out);
        Ok(())
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
        if let Some(placement) = self.placement(pipeline, Columns::of(plan), parallelism, true) {
            let (first, last) = (line(placement.steps.start), line(placement.steps.end - 1));
            notes.push(format!("at all {} servers: steps {first} to {last}", self.host.servers.count()));
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
            let what = match pipeline.steps.get(placement.steps.end).map(|next| &next.step) {
                Some(Step::Order { limit: Some(limit), .. }) if placement.has_first_rows => {
                    format!("of each task the first {limit} rows in the order of step {} ", last + 1)
                }
                _ if placement.merge.is_some() => format!("of each task its groups of step {} ", last + 1),
                _ => String::new(),
            };
            match sent(placement.steps.end) {
                Some(back) => notes.push(format!("  {what}back to this server{back}")),
                None if !what.is_empty() => notes.push(format!("  {what}go back to this server")),
                None => {}
            }
        }
        for (number, step) in Shared::joins_of(&pipeline.steps) {
            for right in step.step.nested() {
                self.note(right, base + number + 1, plan, parallelism, profile, notes);
            }
        }
    }

    fn is_over_servers(&self, plan: &Plan, parallelism: Parallelism) -> bool {
        self.host.servers.count() > 1
            && (is_heavy(plan, parallelism) || !ends_early(plan))
            && !needs_one_thread(plan)
            && self.is_placed(&plan.pipeline, Columns::of(plan), parallelism)
    }

    /// Whether a part of a pipeline, or of the right side of one of its joins, runs at all servers.
    fn is_placed(&self, pipeline: &Pipeline, columns: Columns, parallelism: Parallelism) -> bool {
        let is_right_placed = |(_, step): (usize, &PlanStep)| {
            step.step.nested().iter().any(|right| self.is_placed(right, columns, parallelism))
        };
        self.placement(pipeline, columns, parallelism, true).is_some()
            || Shared::joins_of(&pipeline.steps).into_iter().any(is_right_placed)
    }

    /// Where the steps of a pipeline run; `None`: all here. What runs elsewhere has bytes within all limits.
    fn placement(
        &self,
        pipeline: &Pipeline,
        columns: Columns,
        parallelism: Parallelism,
        with_joins: bool,
    ) -> Option<Placement> {
        let rows_min = f64::from(parallelism.cut_policy.split_rows_min) / MOVED_OF_SPLIT;
        let placement = Placement::new(pipeline, columns, &self.host.servers, rows_min, with_joins)?;
        let mut job = placement.job(columns.all, self.host.servers.own());
        let joins = job.pipeline.steps.iter().filter(|step| matches!(step.step, Step::Join { .. })).count();
        job.tables = vec![MovedRows::default(); joins];
        let has_bytes = || bytes_of(&job).is_some_and(|bytes| bytes.len() <= STEPS_BYTES_MAX);
        let fits = has_columns(job.fragments.len(), columns.all, &self.host.servers) && has_bytes();
        fits.then_some(placement)
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
        let has_changes = self.has_changes.get().is_some_and(|probe| probe.0());
        if !has_changes && self.is_over_servers(plan, parallelism) {
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
        // The other servers run their tasks on the base, and record no reads.
        let is_over_servers = !snapshot.has_changes() && self.is_over_servers(plan, parallelism);
        let computed = if is_over_servers { known_terms(evaluator)? } else { None };
        let Some(computed) = computed else {
            return self.local.execute(plan, snapshot, evaluator, control, parallelism, input, profile, sink);
        };
        if is_heavy(plan, parallelism) {
            control.set_heavy();
        }
        self.counters.queries.fetch_add(1, Ordering::Relaxed);
        let solutions = AtomicU64::new(0);
        let columns = Columns::of(plan);
        let run = Run::new(plan, snapshot, evaluator, control, &solutions, profile).with_columns(columns.all);
        input.columns.resize(run.variables(), Vec::new());
        let mut results = Results::new(plan, &run);
        let mut figures = Profile::new(&plan.pipeline);
        let execution = Execution { driver: self, parallelism, columns, profile, computed };
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
    columns: Columns,
    profile: bool,
    /// The terms that ids of the plan stand for. Those that its steps compute stay here.
    computed: Vec<Term>,
}

/// The computed terms of a plan that has not begun, in their order; `None`: too many for a job.
fn known_terms(evaluator: &Evaluator<'_>) -> Result<Option<Vec<Term>>> {
    let count = evaluator.computed().len();
    if count > COMPUTED_MAX {
        return Ok(None);
    }
    let (mut terms, mut bytes) = (Vec::with_capacity(count), Vec::new());
    evaluator.base().map(str::to_owned).write(&mut bytes);
    for number in (0_u64..).take(count) {
        let term = evaluator.term(Id::new(Tag::Computed, number))?;
        let term = term.ok_or_else(|| Error::internal("a computed term has no value"))?;
        term.write(&mut bytes);
        terms.push(term);
        if bytes.len() > COMPUTED_BYTES_MAX {
            return Ok(None);
        }
    }
    Ok(Some(terms))
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
        let place = |with_joins| self.driver.placement(pipeline, self.columns, self.parallelism, with_joins);
        let mut placement = place(true);
        let sent = placement.as_ref().map_or(&[][..], |placement| &pipeline.steps[placement.steps.clone()]);
        let tables = self.joins(pipeline, base, sent, run, figures)?;
        let run = run.with_shared(&tables);
        let mut sent_tables = self.sent_tables(sent, &tables, &run)?;
        if sent_tables.is_none() {
            (placement, sent_tables) = (place(false), Some(Vec::new()));
        }
        let Some(placement) = placement else {
            let mut stages = Stages::whole(pipeline, &run)?;
            stages.push(input, &run, sink)?;
            stages.finish(&run, sink)?;
            stages.add_figures(&mut figures.steps[base..]);
            return Ok(());
        };
        let (job, job_bytes) = self.job(&placement, sent_tables.unwrap_or_default(), &run)?;
        let mut head = Stages::part(pipeline, 0..placement.steps.start, &run)?;
        let mut tail = Tail::new(pipeline, &placement, &run)?;
        let first = base + number_of(pipeline, placement.steps.start);
        let last = base + number_of(pipeline, placement.steps.end);
        let (driver, threads) = (self.driver, self.parallelism.threads);
        let rows_max = placement.rows_max;
        let control = run.control();
        let terms = Terms::new(run.evaluator(), job.computed.len());
        let query =
            Query { host: &driver.host, job: &job, job_bytes: &job_bytes, control, terms, threads, rows_max };
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
            outcome.figures.iter().zip(&mut figures.steps[first..last]).for_each(|(one, sum)| sum.add(one));
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
        tail.add_figures(&mut figures.steps[last..]);
        Ok(())
    }

    /// Runs the right sides of joins that run at all servers, and of those among `sent`, whose tables go to
    /// all servers, and returns their tables; other joins build their table at the first row.
    fn joins<'p>(
        &self,
        pipeline: &'p Pipeline,
        base: usize,
        sent: &[PlanStep],
        run: &Run<'p>,
        figures: &mut Profile,
    ) -> Result<Shared> {
        let mut tables = Shared::default();
        for (number, step) in Shared::joins_of(&pipeline.steps) {
            let Some(right) = step.step.nested().first() else { continue };
            let is_sent = sent.iter().any(|one| std::ptr::eq(one, step));
            if !is_sent && !self.driver.is_placed(right, self.columns, self.parallelism) {
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

    /// The rows of the tables of the joins among `steps`, in their order; `None`: too many for a job.
    fn sent_tables(
        &self,
        steps: &[PlanStep],
        tables: &Shared,
        run: &Run<'_>,
    ) -> Result<Option<Vec<MovedRows>>> {
        let terms = Terms::new(run.evaluator(), self.computed.len());
        let (mut all, mut bytes) = (Vec::new(), Vec::new());
        for table in steps.iter().filter_map(|step| tables.join_table(step)) {
            if table.rows().rows > TABLE_ROWS_MAX {
                return Ok(None);
            }
            let before = all.len();
            let left = terms.leave(table.rows().clone(), &mut |rows| {
                rows.write(&mut bytes);
                all.push(rows);
                Ok(())
            });
            match left {
                // Texts that cannot move: the join stays here, where they are.
                Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(None),
                left => left?,
            }
            if bytes.len() > TABLES_BYTES_MAX || all.len() > before + 1 {
                return Ok(None);
            }
        }
        Ok(Some(all))
    }

    /// The job of a placement, and its bytes.
    fn job(&self, placement: &Placement, tables: Vec<MovedRows>, run: &Run<'_>) -> Result<(Job, Arc<[u8]>)> {
        let (evaluator, control) = (run.evaluator(), run.control());
        let job = Job {
            now: evaluator.now().to_be_bytes(),
            base: evaluator.base().map(str::to_owned),
            computed: self.computed.clone(),
            tables,
            memory_bytes: control.memory_limit(),
            profile: self.profile,
            is_heavy: control.is_heavy(),
            ..placement.job(run.variables(), self.driver.host.servers.own())
        };
        let bytes = bytes_of(&job).ok_or_else(|| Error::internal("a part of a plan has no bytes"))?;
        Ok((job, bytes))
    }
}

/// The steps after those that run at all servers. Rows that servers send are gathered for steps that read
/// other servers: a round trip for each batch, not for each server.
struct Tail<'p> {
    /// Merges the groups of tasks.
    merge: Option<Stages<'p>>,
    stages: Stages<'p>,
    is_gathered: bool,
    gathered: Batch,
}

impl<'p> Tail<'p> {
    fn new(pipeline: &'p Pipeline, placement: &'p Placement, run: &Run<'p>) -> Result<Self> {
        let merge = placement.merge.as_ref();
        let start = placement.steps.end + usize::from(merge.is_some());
        let merge = merge.map(|merge| Stages::part(merge, 0..merge.steps.len(), run)).transpose()?;
        let is_gathered =
            merge.is_none() && pipeline.steps.get(start).is_some_and(|step| trips(&step.step) > 0.0);
        let stages = Stages::part(pipeline, start..pipeline.steps.len(), run)?;
        Ok(Self { merge, stages, is_gathered, gathered: Batch::new(run.variables()) })
    }

    fn push(
        &mut self,
        batch: &mut Batch,
        run: &Run<'p>,
        sink: &mut dyn FnMut(&mut Batch) -> Result<Flow>,
    ) -> Result<Flow> {
        if let Some(merge) = &mut self.merge {
            return merge.push(batch, run, &mut |batch| self.stages.push(batch, run, sink));
        }
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
        if let Some(merge) = &mut self.merge {
            merge.finish(run, &mut |batch| self.stages.push(batch, run, sink))?;
        }
        self.stages.finish(run, sink)
    }

    /// Adds what its steps have measured; `figures` starts at the step behind those at all servers.
    fn add_figures(&self, figures: &mut [StepProfile]) {
        let Some(merge) = &self.merge else { return self.stages.add_figures(figures) };
        // The group and the means made of it are one step of the plan.
        let Some((group, rest)) = figures.split_first_mut() else { return };
        let mut merged = vec![StepProfile::default(); merge.steps().len()];
        merge.add_figures(&mut merged);
        let [first, means @ ..] = merged.as_slice() else { return };
        group.add(first);
        group.nanoseconds += means.iter().map(|step| step.nanoseconds).sum::<u64>();
        self.stages.add_figures(rest);
    }
}

/// The number of the step at this place.
fn number_of(pipeline: &Pipeline, at: usize) -> usize {
    pipeline.steps[..at].iter().map(|step| step.step.number_steps()).sum()
}
