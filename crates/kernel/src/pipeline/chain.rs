//! Push-based execution: batches run depth first, each through all steps before the next one starts.
//!
//! A kernel pushes its output into a [`Chain`], the rest of the pipeline. There are no queues: each step has
//! at most one batch in flight.

use crate::pipeline::batch::{BATCH_ROWS, Batch, Keep};
use crate::pipeline::control::Control;
use crate::pipeline::partial::Partial;
use crate::pipeline::shared::Shared;
use crate::pipeline::watched::Watched;
use crate::plan::{Operand, Plan, PlanStep};
use std::cell::Cell;
use std::sync::atomic::AtomicU64;
use std::time::Instant;
use vervet_algebra::Variable;
use vervet_expression::Evaluator;
use vervet_model::{Error, Id, Result};
use vervet_snapshot::Snapshot;

/// Least work units of a step for a batch. A step takes some 100 ns for one row, and a read of the clock 25,
/// so the limits of a light query are checked after several steps.
const STEP_WORK: usize = 1 << 7;

/// Context of the running query for kernels. Each thread has one, with its own limits.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    pub(crate) snapshot: &'a dyn Snapshot,
    pub(crate) evaluator: &'a Evaluator<'a>,
    pub(crate) control: &'a Control<'a>,
    /// Number of variables of the plan.
    pub(crate) variables: usize,
    /// Whether to measure times.
    pub(crate) profile: bool,
    /// The column of solution numbers, after those of the plan, if an expression needs it.
    pub(crate) solution: Option<Variable>,
    /// The last assigned solution number.
    pub(crate) solutions: &'a AtomicU64,
    /// State shared by the copies of a pipeline, if there are several.
    pub(crate) shared: Option<&'a Shared>,
}

impl<'a> Run<'a> {
    /// A run of `plan`. `solutions` starts at 0 and counts the assigned solution numbers.
    #[must_use]
    pub fn new(
        plan: &Plan,
        snapshot: &'a dyn Snapshot,
        evaluator: &'a Evaluator<'a>,
        control: &'a Control<'a>,
        solutions: &'a AtomicU64,
        profile: bool,
    ) -> Self {
        let solution = evaluator.solution().filter(|column| column.index() == plan.variables.len());
        let variables = plan.variables.len() + usize::from(solution.is_some());
        Self { snapshot, evaluator, control, variables, profile, solution, solutions, shared: None }
    }

    /// The same run on another thread, with the limits of that thread and an evaluator that checks them
    /// ([`Evaluator::for_thread`]).
    #[must_use]
    pub fn for_thread<'b>(&self, control: &'b Control<'b>, evaluator: &'b Evaluator<'b>) -> Run<'b>
    where
        'a: 'b,
    {
        Run { control, evaluator, ..*self }
    }

    /// The same run on another graph, such as a part of the one of the query.
    #[must_use]
    pub fn with_snapshot<'b>(&self, snapshot: &'b dyn Snapshot) -> Run<'b>
    where
        'a: 'b,
    {
        Run { snapshot, ..*self }
    }

    /// The same run with at least this many columns in a batch: those behind its own are spare.
    #[must_use]
    pub fn with_columns(self, count: usize) -> Self {
        Self { variables: self.variables.max(count), ..self }
    }

    /// The evaluator.
    #[must_use]
    pub fn evaluator(&self) -> &'a Evaluator<'a> {
        self.evaluator
    }

    /// The same run in one of several copies of a pipeline.
    #[must_use]
    pub fn with_shared<'b>(&self, shared: &'b Shared) -> Run<'b>
    where
        'a: 'b,
    {
        Run { shared: Some(shared), ..*self }
    }

    /// The limits.
    #[must_use]
    pub fn control(&self) -> &'a Control<'a> {
        self.control
    }

    /// Whether the run measures its steps.
    #[must_use]
    pub fn profiles(&self) -> bool {
        self.profile
    }

    /// Number of columns of a batch.
    #[must_use]
    pub fn variables(&self) -> usize {
        self.variables
    }

    /// The columns that a step outputs: `keep`, and the solution numbers.
    pub(crate) fn keep(&self, keep: &[Variable]) -> Keep {
        match self.solution {
            Some(solution) => Keep::new(&[keep, &[solution]].concat(), self.variables),
            None => Keep::new(keep, self.variables),
        }
    }

    /// Counts the memory of computed terms.
    pub(crate) fn count_computed(&self) -> Result<()> {
        self.control.count_computed(self.evaluator.computed().size_bytes() as u64)
    }
}

/// Back-pressure signal of a sink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// The sink needs more rows.
    More,
    /// Further rows would not change the result.
    Done,
}

/// A step in execution.
///
/// # Contract
/// * [`Flow::Done`] refers to the pushed batch, not to the kernel: more batches may be pushed after it. A
///   sink ends a batch early as soon as the answer for its rows is known (see [`crate::operators::exists`]),
///   and the next batch enters the same stages. So every exit from `push` except an error must leave the
///   kernel ready for the next batch: buffers are restored and contain no rows of the previous batch.
/// * After an error no method is called.
/// * A loop whose length depends on rows, data or the plan calls [`Control::work`] or [`Control::check`]; a
///   buffer of such a length counts against the memory cap.
pub(crate) trait Kernel<'a>: Send {
    /// Processes a batch (and may overwrite it) and pushes the output. `Done`: the rest of the output of this
    /// batch is not needed.
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow>;

    /// End of input: pushes the buffered output.
    fn finish(&mut self, _next: &mut Chain<'_, 'a>) -> Result<()> {
        Ok(())
    }

    /// The partial state of this copy of a barrier; called in place of [`Kernel::finish`], on the thread of
    /// the copy.
    fn partial(&mut self, _run: &Run<'a>) -> Result<Partial<'a>> {
        Err(Error::internal("partial state requested of a step that has none"))
    }

    /// Merges the partial state of a copy of this barrier.
    fn merge(&mut self, _partial: Partial<'a>, _run: &Run<'a>) -> Result<()> {
        Err(Error::internal("partial state merged into a step that has none"))
    }

    /// Stages of the nested pipelines, in the order of [`crate::plan::Pipeline::number_steps`].
    fn inner(&self) -> Vec<&Stage<'a>> {
        Vec::new()
    }
}

/// A kernel and its profile counters.
pub(crate) struct Stage<'a> {
    pub kernel: Box<dyn Kernel<'a> + 'a>,
    pub rows_in: u64,
    pub rows_out: u64,
    /// Time in this stage and all later ones.
    pub nanoseconds: u64,
    /// The part of `nanoseconds` spent in later stages.
    pub nanoseconds_pushed: u64,
    /// Its step, if the rows of that are limited.
    watched: Option<Watched<'a>>,
}

impl<'a> Stage<'a> {
    pub(crate) fn new(kernel: Box<dyn Kernel<'a> + 'a>, step: &'a PlanStep) -> Self {
        let watched = Watched::new(step);
        Self { kernel, rows_in: 0, rows_out: 0, nanoseconds: 0, nanoseconds_pushed: 0, watched }
    }
}

/// Consumer of the output of a pipeline.
pub(crate) type Sink<'s, 'a> = dyn FnMut(&mut Batch, &Run<'a>) -> Result<Flow> + 's;

/// The rows of an outer batch that have what they need from a nested pipeline: what else it finds for them is
/// of no use.
pub(crate) struct Answered {
    /// The column with the position of the outer row.
    row: Variable,
    flags: Vec<Cell<bool>>,
}

impl Answered {
    /// None of `rows` rows, whose positions are in column `row`.
    pub(crate) fn none(row: Variable, rows: usize) -> Self {
        Self { row, flags: vec![Cell::new(false); rows] }
    }

    /// The outer row at `position` has what it needs; whether it had before.
    pub(crate) fn set(&self, position: Id) -> bool {
        let position = usize::try_from(position.bits()).unwrap_or(usize::MAX);
        self.flags.get(position).is_none_or(|flag| flag.replace(true))
    }

    /// Whether the outer row of a row of `batch` has what it needs.
    pub(crate) fn has(&self, batch: &Batch, row: usize) -> bool {
        let position = batch.columns[self.row.index()].get(row);
        let position = position.map_or(usize::MAX, |id| usize::try_from(id.bits()).unwrap_or(usize::MAX));
        self.flags.get(position).is_some_and(Cell::get)
    }

    /// By position of the outer row.
    pub(crate) fn flags(&self) -> impl Iterator<Item = bool> + '_ {
        self.flags.iter().map(Cell::get)
    }
}

/// The rest of a pipeline.
pub(crate) struct Chain<'c, 'a> {
    stages: &'c mut [Stage<'a>],
    sink: &'c mut Sink<'c, 'a>,
    run: &'c Run<'a>,
    answered: Option<&'c Answered>,
    /// Number of pushed rows, and the time spent pushing.
    pub rows: u64,
    pub nanoseconds: u64,
    /// Number of rows at which `watched` is asked.
    rows_max: u64,
    /// What pushes, if its rows are limited, with its rows in and out before.
    watched: Option<(&'c mut Watched<'a>, u64, u64)>,
}

impl<'c, 'a> Chain<'c, 'a> {
    pub(crate) fn new(stages: &'c mut [Stage<'a>], sink: &'c mut Sink<'c, 'a>, run: &'c Run<'a>) -> Self {
        Self { stages, sink, run, answered: None, rows: 0, nanoseconds: 0, rows_max: u64::MAX, watched: None }
    }

    /// Counts the pushed rows as those of a step that has received `rows_in` rows and pushed `rows_out`.
    pub(crate) fn watch(&mut self, watched: Option<&'c mut Watched<'a>>, rows_in: u64, rows_out: u64) {
        if let Some(watched) = watched {
            self.rows_max = watched.rows_left(rows_out);
            self.watched = Some((watched, rows_in, rows_out));
        }
    }

    /// The pushed rows are more than expected.
    #[cold]
    fn exceed(&mut self) -> Result<()> {
        let Some((watched, rows_in, rows_out)) = &mut self.watched else { return Ok(()) };
        watched.ask(self.run.control, *rows_in, *rows_out + self.rows)?;
        self.rows_max = watched.rows_left(*rows_out);
        Ok(())
    }

    pub(crate) fn run(&self) -> &'c Run<'a> {
        self.run
    }

    /// The same chain, whose kernels may leave out what they find for rows that are answered.
    pub(crate) fn with_answered(self, answered: Option<&'c Answered>) -> Self {
        Self { answered, ..self }
    }

    /// Rows of which the output is of no use, if there may be some.
    pub(crate) fn answered(&self) -> Option<&'c Answered> {
        self.answered
    }

    /// Runs a batch through the remaining stages.
    pub(crate) fn push(&mut self, batch: &mut Batch) -> Result<Flow> {
        if batch.rows == 0 {
            // Limits apply here to a step that runs long without output.
            self.run.control.work(BATCH_ROWS)?;
            return Ok(Flow::More);
        }
        self.rows += batch.rows as u64;
        if self.rows > self.rows_max {
            self.exceed()?;
        }
        let start = self.run.profile.then(Instant::now);
        let flow = self.step(Some(batch));
        if let Some(start) = start {
            self.nanoseconds += nanoseconds(start);
        }
        flow
    }

    /// Signals the end of input to the remaining stages.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let start = self.run.profile.then(Instant::now);
        self.step(None)?;
        if !self.stages.is_empty() {
            let (_, rest) = self.stages.split_at_mut(1);
            Chain::new(rest, &mut *self.sink, self.run).with_answered(self.answered).finish()?;
        }
        if let Some(start) = start {
            self.nanoseconds += nanoseconds(start);
        }
        Ok(())
    }

    fn step(&mut self, batch: Option<&mut Batch>) -> Result<Flow> {
        let Some((first, rest)) = self.stages.split_first_mut() else {
            let Some(batch) = batch else { return Ok(Flow::More) };
            self.run.control.work(batch.rows)?;
            return (self.sink)(batch, self.run);
        };
        // A kernel that runs long for few rows checks the limits itself.
        let rows = batch.as_ref().map_or(0, |batch| batch.rows);
        self.run.control.work(rows.max(STEP_WORK))?;
        let start = self.run.profile.then(Instant::now);
        if let Some(batch) = &batch {
            first.rows_in += batch.rows as u64;
        }
        let mut next = Chain::new(rest, &mut *self.sink, self.run).with_answered(self.answered);
        next.watch(first.watched.as_mut(), first.rows_in, first.rows_out);
        let flow = match batch {
            Some(batch) => first.kernel.push(batch, &mut next),
            None => first.kernel.finish(&mut next).map(|()| Flow::More),
        };
        first.rows_out += next.rows;
        first.nanoseconds_pushed += next.nanoseconds;
        if let Some(start) = start {
            first.nanoseconds += nanoseconds(start);
        }
        flow
    }
}

pub(crate) fn nanoseconds(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The values of an operand for all rows: a column, or `scratch` filled with the constant.
pub(crate) fn operand_column<'b>(operand: Operand, batch: &'b Batch, scratch: &'b mut Vec<Id>) -> &'b [Id] {
    match operand {
        Operand::Variable(variable) if !batch.columns[variable.index()].is_empty() => {
            &batch.columns[variable.index()]
        }
        Operand::Variable(_) => filled(scratch, Id::UNBOUND, batch.rows),
        Operand::Constant(id) => filled(scratch, id, batch.rows),
    }
}

fn filled(scratch: &mut Vec<Id>, id: Id, rows: usize) -> &[Id] {
    scratch.clear();
    scratch.resize(rows, id);
    scratch
}
