//! Runs tasks: the kernels of fragments over what this server has, and tasks of other servers for the rows
//! that belong there.
//!
//! # Shape
//! A task runs on one thread, depth first: a batch passes all kernels of its fragment, its rows are dealt to
//! the owners of the next key, and those of this server pass the next fragment at once. Rows for another
//! server wait until they are enough for a request, and then go as a task, whose outcome this thread awaits.
//! So a task has ended when everything that it caused has ended, errors come back the way that the rows went,
//! and a server that is slow slows those that send to it.
//! # Threads
//! The chain of tasks that wait for each other is as long as the fragments, so threads of a server that wait
//! are at most those that asked, times fragments, times servers at the end of their input.

use crate::output::{Deliver, Output};
use crate::rows::{append, rows_max};
use crate::servers::Servers;
use crate::task::{Fragment, Job, Outcome, Task};
use oxsdatatypes::DateTime;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use vervet_algebra::Variable;
use vervet_expression::{ComputedTerms, Evaluator};
use vervet_kernel::parallel::Stages;
use vervet_kernel::plan::{Plan, Sent, StepProfile};
use vervet_kernel::{BATCH_ROWS, Batch, Control, Flow, Gate, Limits, Run};
use vervet_model::{Error, Id, Result, Tag, ThreadLimits};
use vervet_partition::Answer;
use vervet_snapshot::Snapshot;

/// Tasks that are awaited together at the end of a fragment.
const TOGETHER_MAX: usize = 4;

/// Runs a task with the limits of the calling thread. `deliver` receives rows that are too many for the
/// outcome.
///
/// # Errors
/// Limits, damaged data, what other servers answer, those of `deliver`.
pub(crate) fn run_task(
    servers: &Servers,
    job: &Job,
    task: &Task<'_>,
    gate: Option<Arc<dyn Gate>>,
    deliver: &Deliver<'_>,
) -> Result<Outcome> {
    let ThreadLimits { cancelled, deadline } = ThreadLimits::current();
    let limits = Limits { cancelled, deadline, memory_bytes: job.memory_bytes };
    let control = Control::with_gate(limits, gate);
    control.set_heavy();
    let outcome = run_under(servers, job, task, &control, deliver);
    control.leave();
    outcome
}

fn run_under(
    servers: &Servers,
    job: &Job,
    task: &Task<'_>,
    control: &Control<'_>,
    deliver: &Deliver<'_>,
) -> Result<Outcome> {
    control.grow(task.rows.size_bytes())?;
    let base = servers.base();
    let computed = ComputedTerms::new();
    let evaluator = Evaluator::new(base, &computed, DateTime::from_be_bytes(job.now), 0)
        .with_base(job.base.clone())
        .with_interrupt(control);
    for (number, term) in (0_u64..).zip(&job.computed) {
        control.work(16)?;
        if evaluator.intern(term.as_ref())? != Id::new(Tag::Computed, number) {
            return Err(Error::internal(format!("{term} is a term of this server, and of no other")));
        }
    }
    let plan = Plan {
        pipeline: job.pipeline.clone(),
        variables: vec![String::new(); job.variables],
        result: Vec::new(),
        parameters: Vec::new(),
        computed: Vec::new(),
        cost: 0.0,
        joined: Vec::new(),
    };
    let solutions = AtomicU64::new(0);
    let run = Run::new(&plan, base, &evaluator, control, &solutions, job.profile);
    let mut legs = Vec::new();
    for (number, fragment) in job.fragments.iter().enumerate().skip(task.fragment) {
        legs.push(Leg::new(number, fragment, &plan, task, servers, &run)?);
    }
    let mut at_work = AtWork {
        servers,
        run: &run,
        job: task.job,
        output: Output::new(job, deliver, &run),
        awaited: Vec::new(),
    };
    let mut batch = Batch::new(run.variables());
    for start in (0..task.rows.rows).step_by(BATCH_ROWS) {
        batch.columns.resize(run.variables(), Vec::new());
        batch.copy_rows(task.rows, start..task.rows.rows.min(start + BATCH_ROWS));
        push(&mut legs, &mut batch, &mut at_work)?;
    }
    finish(&mut legs, &mut at_work)?;
    let mut outcome = at_work.output.finish()?;
    if job.profile {
        let mut figures = vec![StepProfile::default(); plan.pipeline.number_steps()];
        for leg in &legs {
            leg.scans.iter().for_each(|scan| scan.add_figures(&mut figures[leg.first..]));
            leg.stages.iter().for_each(|(first, stages)| stages.add_figures(&mut figures[*first..]));
        }
        outcome.count(&Outcome { figures, ..Outcome::default() });
    }
    Ok(outcome)
}

/// A fragment at this server, and the rows that wait to be sent to it elsewhere.
struct Leg<'a> {
    number: usize,
    key: Option<Variable>,
    /// The scan of each partition alone. All have the number of the first step.
    scans: Vec<Stages<'a>>,
    /// The number of the first step.
    first: usize,
    /// The other steps; `None`: there are no others. With the number of the first of them.
    stages: Option<(usize, Stages<'a>)>,
    /// Rows of this server, on their way.
    own: Batch,
    /// By server: rows for it.
    waiting: Vec<Batch>,
    /// By server: row numbers of the batch that is dealt.
    dealt: Vec<Vec<u32>>,
    counted_bytes: u64,
}

impl<'a> Leg<'a> {
    fn new(
        number: usize,
        fragment: &Fragment,
        plan: &'a Plan,
        task: &Task<'_>,
        servers: &'a Servers,
        run: &Run<'a>,
    ) -> Result<Self> {
        let mut range = fragment.steps.clone();
        let number_of =
            |at: usize| plan.pipeline.steps[..at].iter().map(|step| step.step.number_steps()).sum();
        let first = number_of(range.start);
        let mut scans = Vec::new();
        if number == task.fragment && !task.partitions.is_empty() {
            let scan = range.start..range.start + 1;
            for &partition in task.partitions {
                let own: &dyn Snapshot = servers.base().partition(partition)?;
                scans.push(Stages::part(&plan.pipeline, scan.clone(), &run.with_snapshot(own))?);
            }
            range.start = scan.end;
        }
        let stages = match range.is_empty() {
            true => None,
            false => Some((number_of(range.start), Stages::part(&plan.pipeline, range, run)?)),
        };
        let batch = || Batch::new(run.variables());
        Ok(Self {
            number,
            key: fragment.key,
            scans,
            first,
            stages,
            own: batch(),
            waiting: (0..servers.count()).map(|_| batch()).collect(),
            dealt: vec![Vec::new(); servers.count()],
            counted_bytes: 0,
        })
    }
}

/// What a running task needs besides its fragments.
struct AtWork<'w, 'a> {
    servers: &'w Servers,
    run: &'w Run<'a>,
    /// The bytes of the job.
    job: &'w [u8],
    output: Output<'w, 'a>,
    /// Tasks that other servers work on.
    awaited: Vec<Box<dyn Answer + 'w>>,
}

impl<'w> AtWork<'w, '_> {
    /// Sends rows as a task to another server.
    fn send(&mut self, fragment: usize, server: usize, rows: &Batch) -> Result<()> {
        let mut request = Vec::new();
        Task { job: self.job, fragment, partitions: &[], rows }.write(&mut request);
        let sent = Sent { rows: rows.rows as u64, bytes: request.len() as u64 };
        if let Some(of_fragment) = self.output.outcome.sent.get_mut(fragment) {
            of_fragment.add(sent);
        }
        self.run.control().leave();
        let servers = self.servers;
        let answer: Box<dyn Answer + 'w> = servers.remote(server)?.send(&request)?;
        self.awaited.push(answer);
        if self.awaited.len() >= TOGETHER_MAX { self.receive() } else { Ok(()) }
    }

    /// Waits for the tasks that were sent.
    fn receive(&mut self) -> Result<()> {
        if self.awaited.is_empty() {
            return Ok(());
        }
        self.run.control().leave();
        for answer in std::mem::take(&mut self.awaited) {
            let outcome = Outcome::read(&answer.receive()?, self.run.variables())?;
            self.output.outcome.count(&outcome);
            if outcome.rows.rows > 0 {
                self.output.add(&outcome.rows)?;
            }
        }
        Ok(())
    }
}

/// Runs a batch through the first fragment, and its rows through the next ones.
fn push<'a>(legs: &mut [Leg<'a>], batch: &mut Batch, at_work: &mut AtWork<'_, 'a>) -> Result<()> {
    let Some((leg, rest)) = legs.split_first_mut() else { return at_work.output.add(batch) };
    let run = at_work.run;
    if leg.scans.is_empty() {
        return push_stages(&mut leg.stages, batch, run, &mut |batch| deal(rest, batch, at_work)).map(drop);
    }
    let mut copy = Batch::new(batch.columns.len());
    for scan in &mut leg.scans {
        // A kernel may overwrite its input.
        copy.copy_rows(batch, 0..batch.rows);
        scan.push(&mut copy, run, &mut |batch| {
            push_stages(&mut leg.stages, batch, run, &mut |batch| deal(rest, batch, at_work))
        })?;
    }
    Ok(())
}

/// Runs a batch through the steps of a fragment after its scan.
fn push_stages<'a>(
    stages: &mut Option<(usize, Stages<'a>)>,
    batch: &mut Batch,
    run: &Run<'a>,
    sink: &mut dyn FnMut(&mut Batch) -> Result<()>,
) -> Result<Flow> {
    let mut sink = |batch: &mut Batch| sink(batch).map(|()| Flow::More);
    match stages {
        Some((_, stages)) => stages.push(batch, run, &mut sink),
        None => sink(batch),
    }
}

/// Deals the rows of a batch to the owners of the key of the next fragment.
fn deal<'a>(legs: &mut [Leg<'a>], batch: &mut Batch, at_work: &mut AtWork<'_, 'a>) -> Result<()> {
    let Some(leg) = legs.first_mut() else { return at_work.output.add(batch) };
    let own = at_work.servers.own();
    leg.dealt.iter_mut().for_each(Vec::clear);
    for (row, number) in (0..batch.rows).zip(0_u32..) {
        let server = match leg.key.map(|key| batch.value(key, row)) {
            Some(id) if id.is_bound() => at_work.servers.of_key(id),
            // It reads nothing by this key.
            _ => own,
        };
        leg.dealt[server].push(number);
    }
    at_work.run.control().work(batch.rows)?;
    let mut full = Vec::new();
    for (server, rows) in leg.dealt.iter().enumerate() {
        if server == own || rows.is_empty() {
            continue;
        }
        append(&mut leg.waiting[server], batch, rows);
        if leg.waiting[server].rows >= rows_max(batch) {
            full.push(server);
        }
    }
    let bytes = leg.waiting.iter().map(Batch::size_bytes).sum();
    at_work.run.control().recount(&mut leg.counted_bytes, bytes)?;
    for server in full {
        let rows = std::mem::replace(&mut leg.waiting[server], Batch::new(batch.columns.len()));
        at_work.send(leg.number, server, &rows)?;
        at_work.receive()?;
    }
    if leg.dealt[own].is_empty() {
        return Ok(());
    }
    let mut rows = std::mem::take(&mut leg.own);
    rows.clear();
    rows.columns.resize(batch.columns.len(), Vec::new());
    append(&mut rows, batch, &leg.dealt[own]);
    push(legs, &mut rows, at_work)?;
    if let Some(leg) = legs.first_mut() {
        leg.own = rows;
    }
    Ok(())
}

/// The end of the input of the first fragment, and then of the next ones.
fn finish<'a>(legs: &mut [Leg<'a>], at_work: &mut AtWork<'_, 'a>) -> Result<()> {
    let Some((leg, rest)) = legs.split_first_mut() else { return Ok(()) };
    for server in 0..leg.waiting.len() {
        let rows = std::mem::take(&mut leg.waiting[server]);
        if rows.rows > 0 {
            at_work.send(leg.number, server, &rows)?;
        }
    }
    // Meanwhile this server works on what it has.
    let run = at_work.run;
    for scan in &mut leg.scans {
        scan.finish(run, &mut |batch| {
            push_stages(&mut leg.stages, batch, run, &mut |batch| deal(rest, batch, at_work))
        })?;
    }
    if let Some((_, stages)) = &mut leg.stages {
        stages.finish(run, &mut |batch| deal(rest, batch, at_work).map(|()| Flow::More))?;
    }
    at_work.receive()?;
    run.control().recount(&mut leg.counted_bytes, 0)?;
    finish(rest, at_work)
}
