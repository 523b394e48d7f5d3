//! What servers tell each other of a query: the job, tasks of it, and their outcomes.
//!
//! # Shape
//! A *job* is the part of a plan that runs at all servers, cut into *fragments*: consecutive steps that run
//! without moving rows between servers. A *task* is rows for one fragment, at one server, which sends the
//! rows that come out of it to the next fragment as tasks of other servers. Its *outcome* is what came out at
//! the end: rows, or how many were delivered to the server that asked the query.
//!
//! A task carries its job, so a server keeps nothing between two tasks, and forgets a query as soon as its
//! connections end. Jobs are bounded, so that running one takes a bounded stack and memory, whatever its
//! bytes say.

use crate::moved::MovedRows;
use crate::running::FRAGMENTS_MAX;
use crate::wire::{Input, Wire, malformed, wire_enum, wire_struct};
use oxrdf::Term;
use std::ops::Range;
use std::sync::Arc;
use vervet_algebra::Variable;
use vervet_kernel::Shared;
use vervet_kernel::plan::{Pipeline, PlanStep, Sent, Step, StepProfile};
use vervet_model::Result;

/// The first byte of the requests of this crate. Those of `vervet-partition` begin with smaller numbers.
pub(crate) mod kind {
    pub(crate) const TASK: u8 = 64;
    pub(crate) const DELIVERY: u8 = 65;
}

/// Maximum number of steps of a job, nested ones counted: rows pass them on the stack of one thread.
pub(crate) const STEPS_MAX: usize = 1000;

/// The stack of a thread that runs tasks, in bytes. A test runs 900 steps, one within the other, on it.
pub(crate) const STACK_BYTES: usize = 8 << 20;

/// Maximum limit of an order whose first rows each task keeps: far below the rows of a task.
pub(crate) const FIRST_ROWS_MAX: usize = 1 << 10;

/// Maximum bytes of a job, which each request of a task carries.
const JOB_BYTES_MAX: usize = 256 << 10;

/// How rows are passed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Combine {
    /// Equal rows once, with the sum of their multiplicities.
    Sum,
    /// Equal rows once.
    Set,
    /// As they are.
    No,
}

wire_enum!(Combine { 0 => Sum, 1 => Set, 2 => No });

/// Consecutive steps of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fragment {
    pub(crate) steps: Range<usize>,
    /// The variable whose owner receives a row; `None`: all servers do, and scan their own partitions.
    pub(crate) key: Option<Variable>,
}

/// The part of a plan that runs at all servers. See the header of this file.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Job {
    /// Number of columns. First, so that all variables after it are read against it.
    pub(crate) variables: usize,
    /// The server that asked the query.
    pub(crate) origin: usize,
    /// A random number of the query, for its memory: it may have several jobs.
    pub(crate) query: u64,
    pub(crate) pipeline: Pipeline,
    pub(crate) fragments: Vec<Fragment>,
    /// How many fragments jobs have that run while this one waits for them.
    pub(crate) behind: usize,
    pub(crate) combine: Combine,
    /// The bytes of the value of `NOW()`.
    pub(crate) now: [u8; 18],
    pub(crate) base: Option<String>,
    /// The computed terms that ids of the plan and of rows stand for, in their order.
    pub(crate) computed: Vec<Term>,
    /// The rows of the right sides of the joins among the steps, in their order.
    pub(crate) tables: Vec<MovedRows>,
    /// The memory cap of the query at each server, in bytes.
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) profile: bool,
    /// Whether threads of light queries go first.
    pub(crate) is_heavy: bool,
    /// The server of each partition, where several have some; none: each has one, which all know.
    pub(crate) assignment: Vec<usize>,
    /// The build of the data, with an assignment.
    pub(crate) build: u64,
    /// The servers, by the numbers that they keep; none: they are always the same.
    pub(crate) places: Vec<u64>,
}

wire_struct! {
    Fragment { steps, key }
    Sent { rows, bytes }
    StepProfile { rows_in, rows_out, nanoseconds }
}

impl Wire for Job {
    fn write(&self, out: &mut Vec<u8>) {
        self.variables.write(out);
        (self.origin, self.query).write(out);
        self.pipeline.write(out);
        (self.fragments.clone(), (self.behind, self.combine)).write(out);
        (self.now, self.base.clone()).write(out);
        self.computed.write(out);
        self.tables.write(out);
        (self.memory_bytes, (self.profile, self.is_heavy)).write(out);
        // Servers of protocol 7 read no assignment, and have no replicas.
        if !self.assignment.is_empty() {
            (self.assignment.clone(), self.build).write(out);
        }
        // Those of protocol 8 read no places, and no servers join or leave theirs.
        if !self.places.is_empty() {
            self.places.write(out);
        }
    }

    fn read(input: &mut Input<'_>) -> Result<Self> {
        let variables = usize::from(u16::read(input)?);
        input.set_variables(variables);
        let (origin, query) = Wire::read(input)?;
        let pipeline = Wire::read(input)?;
        let (fragments, (behind, combine)) = Wire::read(input)?;
        let (now, base) = Wire::read(input)?;
        let computed = Wire::read(input)?;
        let tables = Wire::read(input)?;
        let (memory_bytes, (profile, is_heavy)) = Wire::read(input)?;
        let (assignment, build) = if input.left() > 0 { Wire::read(input)? } else { (Vec::new(), 0) };
        let places = if input.left() > 0 { Wire::read(input)? } else { Vec::new() };
        Ok(Self {
            variables,
            origin,
            query,
            pipeline,
            fragments,
            behind,
            combine,
            now,
            base,
            computed,
            tables,
            memory_bytes,
            profile,
            is_heavy,
            assignment,
            build,
            places,
        })
    }
}

impl Job {
    /// Checks what running it relies on, whatever its bytes were.
    ///
    /// # Errors
    /// Unavailable: it is no job.
    pub(crate) fn check(&self) -> Result<()> {
        let mut next = 0;
        for fragment in &self.fragments {
            if fragment.steps.start != next || fragment.steps.end <= next {
                return Err(malformed("fragments that are not one after the other"));
            }
            next = fragment.steps.end;
        }
        if next != self.pipeline.steps.len() {
            return Err(malformed("fragments that are not all steps"));
        }
        if self.fragments.len().saturating_add(self.behind) > FRAGMENTS_MAX {
            return Err(malformed("too many fragments"));
        }
        if self.pipeline.number_steps() > STEPS_MAX {
            return Err(malformed("too many steps"));
        }
        let inner = self.pipeline.steps.split_last().map_or(&[][..], |(_, inner)| inner);
        if inner.iter().any(|step| matches!(step.step, Step::Group { .. }))
            || self.pipeline.steps.iter().any(|step| has_nested_group(&step.step))
        {
            return Err(malformed("a group that is not the last step"));
        }
        let joins = Shared::joins_of(&self.pipeline.steps);
        let is_outer = |join: &PlanStep| self.pipeline.steps.iter().any(|step| std::ptr::eq(step, join));
        if joins.len() != self.tables.len() || joins.iter().any(|(_, join)| !is_outer(join)) {
            return Err(malformed("joins without their tables"));
        }
        Ok(())
    }
}

/// Whether a step is made of others, of which one is a group.
fn has_nested_group(step: &Step) -> bool {
    let mut inner = step.nested().iter().flat_map(|nested| &nested.steps);
    inner.any(|inner| matches!(inner.step, Step::Group { .. }) || has_nested_group(&inner.step))
}

/// Rows for a fragment.
pub(crate) struct Task<'t> {
    /// A random number of the round, for deliveries.
    pub(crate) number: u64,
    /// The bytes of the job.
    pub(crate) job: &'t [u8],
    pub(crate) fragment: usize,
    /// The partitions to scan, of the first fragment if it begins with a scan.
    pub(crate) partitions: &'t [usize],
    pub(crate) rows: &'t MovedRows,
}

impl Task<'_> {
    /// Appends the bytes of its request.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.push(kind::TASK);
        self.number.write(out);
        self.job.len().write(out);
        out.extend_from_slice(self.job);
        self.fragment.write(out);
        self.partitions.len().write(out);
        self.partitions.iter().for_each(|partition| partition.write(out));
        self.rows.write(out);
    }
}

/// A task as it was read.
pub(crate) struct ReceivedTask<'b> {
    pub(crate) number: u64,
    pub(crate) job_bytes: &'b [u8],
    pub(crate) job: Job,
    pub(crate) fragment: usize,
    pub(crate) partitions: Vec<usize>,
    pub(crate) rows: MovedRows,
}

impl<'b> ReceivedTask<'b> {
    /// Reads a request without its first byte; `None`: `admit` refuses it. That receives job, number and
    /// fragment before the rows are read, since they may take much more memory than their bytes.
    ///
    /// # Errors
    /// Unavailable: the bytes are none.
    pub(crate) fn read<T>(
        bytes: &'b [u8],
        admit: impl FnOnce(&Job, u64, usize) -> Option<T>,
    ) -> Result<Option<(Self, T)>> {
        let mut input = Input::new(bytes);
        let number = input.number()?;
        let count = input.count()?;
        let job_bytes = input.take(count)?;
        let job = read_job(job_bytes)?;
        let fragment = usize::read(&mut input)?;
        if fragment >= job.fragments.len() {
            return Err(malformed("there is no such fragment"));
        }
        let partitions: Vec<usize> = Wire::read(&mut input)?;
        if !partitions.is_sorted_by(|one, next| one < next) {
            return Err(malformed("partitions that are not ascending"));
        }
        if partitions.is_empty() && job.fragments.get(fragment).is_some_and(|one| one.key.is_none()) {
            return Err(malformed("a scan of no partition"));
        }
        let Some(admitted) = admit(&job, number, fragment) else { return Ok(None) };
        let rows = MovedRows::read(&mut input, job.variables)?;
        input.end()?;
        Ok(Some((Self { number, job_bytes, job, fragment, partitions, rows }, admitted)))
    }
}

/// Reads and checks the bytes of a job.
///
/// # Errors
/// Unavailable: they are none.
pub(crate) fn read_job(bytes: &[u8]) -> Result<Job> {
    if bytes.len() > JOB_BYTES_MAX {
        return Err(malformed("a job is too large"));
    }
    let mut input = Input::new(bytes);
    let job = Job::read(&mut input)?;
    input.end()?;
    job.check()?;
    Ok(job)
}

/// What came out of a task, and of all tasks that it caused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) rows: MovedRows,
    /// Rows that were delivered to the server that asked.
    pub(crate) delivered: u64,
    /// What was sent to each fragment, by its number; behind them what was sent back in outcomes and
    /// deliveries.
    pub(crate) sent: Vec<Sent>,
    /// Of the steps of the job, if it is measured.
    pub(crate) figures: Vec<StepProfile>,
}

impl Outcome {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.delivered.write(out);
        self.sent.write(out);
        self.figures.write(out);
        self.rows.write(out);
    }

    /// # Errors
    /// Unavailable: the bytes are none.
    pub(crate) fn read(bytes: &[u8], variables: usize) -> Result<Self> {
        let mut input = Input::new(bytes);
        let (delivered, mut sent): (u64, Vec<Sent>) = Wire::read(&mut input)?;
        let figures = Wire::read(&mut input)?;
        let rows = MovedRows::read(&mut input, variables)?;
        input.end()?;
        if let Some(back) = sent.last_mut() {
            back.add(Sent { rows: rows.rows() as u64, bytes: bytes.len() as u64 });
        }
        Ok(Self { rows, delivered, sent, figures })
    }

    /// Counts what was sent to the first fragment.
    pub(crate) fn add_sent(&mut self, rows: usize, bytes: usize) {
        if let Some(first) = self.sent.first_mut() {
            first.add(Sent { rows: rows as u64, bytes: bytes as u64 });
        }
    }

    /// Adds the counters of another one.
    pub(crate) fn count(&mut self, other: &Self) {
        self.delivered = self.delivered.saturating_add(other.delivered);
        self.sent.resize(self.sent.len().max(other.sent.len()), Sent::default());
        self.sent.iter_mut().zip(&other.sent).for_each(|(sum, one)| sum.add(*one));
        self.figures.resize(self.figures.len().max(other.figures.len()), StepProfile::default());
        self.figures.iter_mut().zip(&other.figures).for_each(|(sum, one)| sum.add(one));
    }
}

/// What a server answers to a task.
#[derive(Debug)]
pub(crate) enum Answered {
    Outcome(Outcome),
    /// Too many tasks run there: it is to be sent again.
    Busy,
    /// The query needs no more rows.
    NotNeeded,
}

/// The first byte of an answer to a task or a delivery.
pub(crate) mod answer {
    /// Of a delivery: the rows were taken. Of a task: its outcome follows.
    pub(crate) const DONE: u8 = 0;
    pub(crate) const BUSY: u8 = 1;
    pub(crate) const NOT_NEEDED: u8 = 2;
}

impl Answered {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Outcome(outcome) => {
                out.push(answer::DONE);
                outcome.write(out);
            }
            Self::Busy => out.push(answer::BUSY),
            Self::NotNeeded => out.push(answer::NOT_NEEDED),
        }
    }

    /// # Errors
    /// Unavailable: the bytes are none.
    pub(crate) fn read(bytes: &[u8], variables: usize) -> Result<Self> {
        match bytes {
            [answer::DONE, rest @ ..] => Outcome::read(rest, variables).map(Self::Outcome),
            [answer::BUSY] => Ok(Self::Busy),
            [answer::NOT_NEEDED] => Ok(Self::NotNeeded),
            _ => Err(malformed("an unknown answer to a task")),
        }
    }
}

/// The answer to a delivery.
pub(crate) fn write_delivered(is_needed: bool, out: &mut Vec<u8>) {
    out.push(if is_needed { answer::DONE } else { answer::NOT_NEEDED });
}

/// Whether the query needs more rows.
///
/// # Errors
/// Unavailable: the bytes are no answer to a delivery.
pub(crate) fn read_delivered(bytes: &[u8]) -> Result<bool> {
    match bytes {
        [answer::DONE] => Ok(true),
        [answer::NOT_NEEDED] => Ok(false),
        _ => Err(malformed("an unknown answer to a delivery")),
    }
}

/// Appends the request that delivers rows to the query with this number.
pub(crate) fn write_delivery(number: u64, rows: &MovedRows, out: &mut Vec<u8>) {
    out.push(kind::DELIVERY);
    number.write(out);
    rows.columns().write(out);
    rows.write(out);
}

/// Reads such a request without its first byte: the number of the query, and rows.
///
/// # Errors
/// Unavailable: the bytes are none.
pub(crate) fn read_delivery(bytes: &[u8]) -> Result<(u64, MovedRows)> {
    let mut input = Input::new(bytes);
    let number = input.number()?;
    let variables = u16::read(&mut input)?;
    let rows = MovedRows::read(&mut input, usize::from(variables))?;
    input.end()?;
    Ok((number, rows))
}

/// The bytes of a job, which all its tasks share. `None`: the steps have no bytes, or none that can be read:
/// they are too many or nest too deep.
pub(crate) fn bytes_of(job: &Job) -> Option<Arc<[u8]>> {
    let mut bytes = Vec::new();
    job.write(&mut bytes);
    let is_read = read_job(&bytes).is_ok();
    is_read.then(|| bytes.into())
}
