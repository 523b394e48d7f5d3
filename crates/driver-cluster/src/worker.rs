//! Runs tasks: the kernels of fragments over what this server has, and tasks of other servers for the rows
//! that belong there.
//!
//! # Shape
//! A task runs on one thread, depth first: a batch passes all kernels of its fragment, its rows are dealt to
//! the owners of the next key, and those of this server pass the next fragment as soon as they are a batch
//! (`legs.rs`). Rows for another server wait until they are enough for a request, and then go as a task,
//! whose outcome this thread awaits.
//! So a task has ended when everything that it caused has ended, errors come back the way that the rows went,
//! and a server that is slow slows those that send to it.
//! # Threads
//! The chain of tasks that wait for each other is as long as the fragments, so threads of a server that wait
//! are at most those that asked, times fragments, times servers at the end of their input.

use crate::at_work::AtWork;
use crate::legs::{Leg, arrive_here, finish, scan};
use crate::moved::Terms;
use crate::output::{Deliver, Output};
use crate::servers::Servers;
use crate::task::{Answered, Job, Outcome, Task};
use crate::wire::malformed;
use oxsdatatypes::DateTime;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use vervet_expression::{ComputedTerms, Evaluator};
use vervet_kernel::plan::{Plan, StepProfile};
use vervet_kernel::{BATCH_ROWS, Batch, Control, Gate, JoinTable, Limits, Run, Shared, SharedFrontiers};
use vervet_model::{Error, Id, Result, Tag, ThreadLimits};

/// Runs a task with the limits of the calling thread. `shared`: what all tasks of the query
/// share here. `deliver` receives rows that are too many for the outcome.
///
/// # Errors
/// Limits, damaged data, what other servers answer, those of `deliver`.
pub(crate) fn run_task(
    servers: &Servers,
    job: &Job,
    task: &Task<'_>,
    gate: Option<Arc<dyn Gate>>,
    shared: &SharedFrontiers,
    deliver: &Deliver<'_>,
) -> Result<Answered> {
    let ThreadLimits { cancelled, deadline, reads } = ThreadLimits::current();
    let limits = Limits { cancelled, deadline, memory_bytes: job.memory_bytes, reads };
    let control = Control::with_gate(limits, gate).with_shared_memory(shared.memory());
    if job.is_heavy {
        control.set_heavy();
    }
    let answered = run_under(servers, job, task, &control, shared, deliver);
    control.leave();
    answered
}

/// Maximum columns of rows that wait in a task, over all fragments, servers and partitions.
const COLUMNS_MAX: usize = 1 << 22;

/// Whether a task of so many fragments and variables may run at any server.
pub(crate) fn has_columns(fragments: usize, variables: usize, servers: &Servers) -> bool {
    let places = servers.count() + servers.base().partitioning().count();
    fragments.saturating_mul(variables).saturating_mul(places) <= COLUMNS_MAX
}

/// Bytes of those columns before there are any rows.
///
/// # Errors
/// Unavailable: they are too many.
fn waiting_bytes(job: &Job, servers: &Servers) -> Result<u64> {
    if !has_columns(job.fragments.len(), job.variables, servers) {
        return Err(malformed("too many columns"));
    }
    let places = servers.count() + servers.own_partitions().len();
    Ok((job.fragments.len() * job.variables * places * size_of::<Vec<Id>>()) as u64)
}

fn run_under(
    servers: &Servers,
    job: &Job,
    task: &Task<'_>,
    control: &Control<'_>,
    frontiers: &SharedFrontiers,
    deliver: &Deliver<'_>,
) -> Result<Answered> {
    control.grow(task.rows.size_bytes() + waiting_bytes(job, servers)?)?;
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
    let terms = Terms::new(run.evaluator(), job.computed.len());
    let mut shared = Shared::default();
    shared.add_frontiers(&plan.pipeline.steps, frontiers);
    for ((_, step), rows) in Shared::joins_of(&plan.pipeline.steps).into_iter().zip(&job.tables) {
        let mut table = JoinTable::new(step, run.variables())?;
        let rows = terms.arrive(rows, control)?;
        table.append(rows.as_ref(), control)?;
        table.finish(control)?;
        shared.add_join(step, table);
    }
    let run = run.with_shared(&shared);
    let mut legs = Vec::new();
    for (number, fragment) in job.fragments.iter().enumerate().skip(task.fragment) {
        legs.push(Leg::new(number, fragment, &plan, servers, run.variables()));
    }
    let mut at_work = AtWork::new(servers, &run, (job, task), Output::new(job, deliver, &run));
    let rows = terms.arrive(task.rows, control)?;
    let ended = run_legs(&mut legs, task, &rows, &mut at_work);
    let mut outcome = match ended.and_then(|()| at_work.output.finish()) {
        Err(_) if !at_work.output.is_needed => return Ok(Answered::NotNeeded),
        ended => ended?,
    };
    if job.profile {
        let mut figures = vec![StepProfile::default(); plan.pipeline.number_steps()];
        legs.iter().for_each(|leg| leg.add_figures(&mut figures));
        outcome.count(&Outcome { figures, ..Outcome::default() });
    }
    Ok(Answered::Outcome(outcome))
}

/// Runs the rows of a task through its fragments.
fn run_legs<'a>(
    legs: &mut [Leg<'a>],
    task: &Task<'_>,
    rows: &Batch,
    at_work: &mut AtWork<'_, 'a>,
) -> Result<()> {
    let variables = at_work.run.variables();
    let mut batch = Batch::new(variables);
    for start in (0..rows.rows).step_by(BATCH_ROWS) {
        batch.columns.resize(variables, Vec::new());
        batch.copy_rows(rows, start..rows.rows.min(start + BATCH_ROWS));
        if task.partitions.is_empty() {
            arrive_here(legs, &batch, at_work)?;
        } else {
            scan(legs, task.partitions, &batch, at_work)?;
        }
    }
    finish(legs, at_work)
}
