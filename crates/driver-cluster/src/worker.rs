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
use crate::output::{Deliver, Output};
use crate::servers::Servers;
use crate::task::{Job, Outcome, Task};
use oxsdatatypes::DateTime;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use vervet_expression::{ComputedTerms, Evaluator};
use vervet_kernel::plan::{Plan, StepProfile};
use vervet_kernel::{BATCH_ROWS, Batch, Control, Gate, Limits, Run};
use vervet_model::{Error, Id, Result, Tag, ThreadLimits};

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
        legs.push(Leg::new(number, fragment, &plan, servers, run.variables()));
    }
    let mut at_work = AtWork::new(servers, &run, task.job, Output::new(job, deliver, &run));
    let mut batch = Batch::new(run.variables());
    for start in (0..task.rows.rows).step_by(BATCH_ROWS) {
        batch.columns.resize(run.variables(), Vec::new());
        batch.copy_rows(task.rows, start..task.rows.rows.min(start + BATCH_ROWS));
        if task.partitions.is_empty() {
            arrive_here(&mut legs, &batch, &mut at_work)?;
        } else {
            scan(&mut legs, task.partitions, &batch, &mut at_work)?;
        }
    }
    finish(&mut legs, &mut at_work)?;
    let mut outcome = at_work.output.finish()?;
    if job.profile {
        let mut figures = vec![StepProfile::default(); plan.pipeline.number_steps()];
        legs.iter().for_each(|leg| leg.add_figures(&mut figures));
        outcome.count(&Outcome { figures, ..Outcome::default() });
    }
    Ok(outcome)
}
