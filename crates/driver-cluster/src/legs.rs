//! The fragments of a task at this server, and the rows on their way through them.
//!
//! # Shape
//! ```text
//! rows ─by key─▶ own steps by partition ─gathered─▶ whole steps ─rows─▶ next fragment
//!      └───────▶ tasks of other servers
//! ```
//! A fragment begins with its *own* steps: what they read of a row is in the partition that owns the key of
//! the fragment. They run on the statements of that partition alone, as in one database, since finding the
//! partition of each key takes longer than most reads. Its *whole* steps read any part of the graph, with
//! requests to other servers, so their rows are gathered into larger batches.
//! # Invariants
//! The own steps of a row run at the owner of its key, never on the statements of another partition.

use crate::at_work::AtWork;
use crate::placement::own_steps;
use crate::rows::{GATHERED_ROWS, append, append_all, rows_max};
use crate::servers::Servers;
use crate::task::Fragment;
use vervet_algebra::Variable;
use vervet_kernel::parallel::Stages;
use vervet_kernel::plan::{Pipeline, Plan, StepProfile};
use vervet_kernel::{BATCH_ROWS, Batch, Flow, Run};
use vervet_model::{Error, ErrorKind, Result};

/// A fragment at this server, and the rows that wait for it here and to be sent to it elsewhere.
pub(crate) struct Leg<'a> {
    number: usize,
    key: Option<Variable>,
    own: Option<Own<'a>>,
    whole: Option<Whole<'a>>,
    /// By server: rows for it.
    waiting: Vec<Batch>,
    /// By destination (see [`Leg::destination`]): row numbers of the batch that is dealt.
    dealt: Vec<Vec<u32>>,
    counted_bytes: u64,
}

/// The own steps of a fragment; see the header of this file.
struct Own<'a> {
    steps: Steps<'a>,
    /// By partition of this server, in the order of [`Servers::own_partitions`]; made when a row arrives.
    stages: Vec<Option<Stages<'a>>>,
    /// By partition of this server: rows that have arrived.
    arrived: Vec<Batch>,
}

/// The whole steps of a fragment; see the header of this file.
struct Whole<'a> {
    steps: Steps<'a>,
    stages: Option<Stages<'a>>,
    gathered: Batch,
}

/// Consecutive steps of a job.
#[derive(Clone, Copy)]
struct Steps<'a> {
    pipeline: &'a Pipeline,
    start: usize,
    end: usize,
}

impl Steps<'_> {
    /// The number of the first step, nested ones counted.
    fn first(&self) -> usize {
        self.pipeline.steps[..self.start].iter().map(|step| step.step.number_steps()).sum()
    }
}

impl<'a> Leg<'a> {
    pub(crate) fn new(
        number: usize,
        fragment: &Fragment,
        plan: &'a Plan,
        servers: &Servers,
        variables: usize,
    ) -> Self {
        let pipeline = &plan.pipeline;
        let (start, end) = (fragment.steps.start, fragment.steps.end);
        let middle = start + own_steps(&pipeline.steps[start..end], fragment.key, servers);
        let partitions = servers.own_partitions().len();
        let batch = || Batch::new(variables);
        let own = (start < middle).then(|| Own {
            steps: Steps { pipeline, start, end: middle },
            stages: (0..partitions).map(|_| None).collect(),
            arrived: vec![batch(); partitions],
        });
        let whole = (middle < end).then(|| Whole {
            steps: Steps { pipeline, start: middle, end },
            stages: None,
            gathered: batch(),
        });
        Self {
            number,
            key: fragment.key,
            own,
            whole,
            waiting: vec![batch(); servers.count()],
            dealt: vec![Vec::new(); servers.count() + partitions],
            counted_bytes: 0,
        }
    }

    /// Where a row goes: the number of another server, or, behind those, the position of a partition of this
    /// one.
    fn destination(&self, batch: &Batch, row: usize, servers: &Servers) -> usize {
        match self.key.map(|key| batch.value(key, row)) {
            Some(id) if id.is_bound() => servers.destination(id),
            // It reads nothing by this key.
            _ => servers.count(),
        }
    }

    fn recount(&mut self, run: &Run<'_>) -> Result<()> {
        let of = |rows: &[Batch]| rows.iter().map(Batch::size_bytes).sum::<u64>();
        let arrived = self.own.as_ref().map_or(0, |own| of(&own.arrived));
        let gathered = self.whole.as_ref().map_or(0, |whole| whole.gathered.size_bytes());
        run.control().recount(&mut self.counted_bytes, of(&self.waiting) + arrived + gathered)
    }

    /// Adds what its steps have measured.
    pub(crate) fn add_figures(&self, figures: &mut [StepProfile]) {
        if let Some(own) = &self.own {
            own.stages
                .iter()
                .flatten()
                .for_each(|stages| stages.add_figures(&mut figures[own.steps.first()..]));
        }
        if let Some(Whole { steps, stages: Some(stages), .. }) = &self.whole {
            stages.add_figures(&mut figures[steps.first()..]);
        }
    }
}

/// Starts a fragment that scans partitions of this server.
pub(crate) fn scan<'a>(
    legs: &mut [Leg<'a>],
    partitions: &[usize],
    batch: &Batch,
    at_work: &mut AtWork<'_, 'a>,
) -> Result<()> {
    let mut copy = Batch::new(batch.columns.len());
    for &partition in partitions {
        let position = at_work.servers.own_position(partition)?;
        // A kernel may overwrite its input.
        copy.copy_rows(batch, 0..batch.rows);
        push_own(legs, position, &mut copy, at_work)?;
    }
    Ok(())
}

/// Rows that another server has sent to the first fragment of a task.
pub(crate) fn arrive_here<'a>(
    legs: &mut [Leg<'a>],
    batch: &Batch,
    at_work: &mut AtWork<'_, 'a>,
) -> Result<()> {
    let Some(leg) = legs.first() else { return at_work.output.add(batch) };
    let servers = at_work.servers;
    let mut dealt = vec![Vec::new(); servers.own_partitions().len()];
    for (row, number) in (0..batch.rows).zip(0_u32..) {
        let destination = leg.destination(batch, row, servers);
        let to = destination.checked_sub(servers.count()).and_then(|position| dealt.get_mut(position));
        to.ok_or_else(|| elsewhere(servers, destination))?.push(number);
    }
    for (position, rows) in dealt.iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
        arrive(legs, position, batch, rows, at_work)?;
    }
    Ok(())
}

/// Runs rows of a partition of this server through the first fragment.
fn push_own<'a>(
    legs: &mut [Leg<'a>],
    position: usize,
    batch: &mut Batch,
    at_work: &mut AtWork<'_, 'a>,
) -> Result<()> {
    at_work.receive_late()?;
    let Some((leg, rest)) = legs.split_first_mut() else { return at_work.output.add(batch) };
    let Some(own) = &mut leg.own else { return push_whole(&mut leg.whole, rest, batch, at_work) };
    let run = at_work.run;
    let slot = &mut own.stages[position];
    let stages = match slot {
        Some(stages) => stages,
        None => {
            let partition = at_work.servers.own_partition(position)?;
            let Steps { pipeline, start, end } = own.steps;
            slot.insert(Stages::part(pipeline, start..end, &run.with_snapshot(partition))?)
        }
    };
    let whole = &mut leg.whole;
    let flow =
        stages.push(batch, run, &mut |batch| push_whole(whole, rest, batch, at_work).map(|()| Flow::More));
    flow.map(drop)
}

/// Runs rows through the whole steps of a fragment, as soon as they are enough, and then through `rest`.
fn push_whole<'a>(
    whole: &mut Option<Whole<'a>>,
    rest: &mut [Leg<'a>],
    batch: &mut Batch,
    at_work: &mut AtWork<'_, 'a>,
) -> Result<()> {
    let Some(whole) = whole else { return deal(rest, batch, at_work) };
    append_all(&mut whole.gathered, batch);
    if whole.gathered.rows < GATHERED_ROWS { Ok(()) } else { whole.run(rest, at_work) }
}

impl<'a> Whole<'a> {
    /// Runs the gathered rows.
    fn run(&mut self, rest: &mut [Leg<'a>], at_work: &mut AtWork<'_, 'a>) -> Result<()> {
        let run = at_work.run;
        let stages = match &mut self.stages {
            Some(stages) => stages,
            None => {
                let Steps { pipeline, start, end } = self.steps;
                self.stages.insert(Stages::part(pipeline, start..end, run)?)
            }
        };
        let mut rows = std::mem::replace(&mut self.gathered, Batch::new(run.variables()));
        stages.push(&mut rows, run, &mut |batch| deal(rest, batch, at_work).map(|()| Flow::More)).map(drop)
    }
}

/// Deals the rows of a batch to the owners of the key of the next fragment.
pub(crate) fn deal<'a>(legs: &mut [Leg<'a>], batch: &mut Batch, at_work: &mut AtWork<'_, 'a>) -> Result<()> {
    at_work.receive_late()?;
    let Some(leg) = legs.first_mut() else { return at_work.output.add(batch) };
    let servers = at_work.servers;
    leg.dealt.iter_mut().for_each(Vec::clear);
    for (row, number) in (0..batch.rows).zip(0_u32..) {
        let destination = leg.destination(batch, row, servers);
        leg.dealt[destination].push(number);
    }
    at_work.run.control().work(batch.rows)?;
    let dealt = std::mem::take(&mut leg.dealt);
    let (to_servers, to_partitions) = dealt.split_at(servers.count());
    for (server, rows) in to_servers.iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
        append(&mut leg.waiting[server], batch, rows);
        if leg.waiting[server].rows >= rows_max(batch) {
            let rows = std::mem::replace(&mut leg.waiting[server], Batch::new(batch.columns.len()));
            at_work.send(leg.number, server, rows)?;
            at_work.receive()?;
        }
    }
    for (position, rows) in to_partitions.iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
        arrive(legs, position, batch, rows, at_work)?;
    }
    if let Some(leg) = legs.first_mut() {
        leg.dealt = dealt;
        leg.recount(at_work.run)?;
    }
    Ok(())
}

/// Rows of a batch arrive at a partition of this server.
fn arrive<'a>(
    legs: &mut [Leg<'a>],
    position: usize,
    batch: &Batch,
    rows: &[u32],
    at_work: &mut AtWork<'_, 'a>,
) -> Result<()> {
    let Some(own) = legs.first_mut().and_then(|leg| leg.own.as_mut()) else {
        let mut some = Batch::new(batch.columns.len());
        append(&mut some, batch, rows);
        return push_own(legs, position, &mut some, at_work);
    };
    let arrived = &mut own.arrived[position];
    append(arrived, batch, rows);
    if arrived.rows < BATCH_ROWS {
        return Ok(());
    }
    let mut some = std::mem::replace(arrived, Batch::new(batch.columns.len()));
    push_own(legs, position, &mut some, at_work)
}

/// The error of a row that belongs to another server.
#[cold]
fn elsewhere(servers: &Servers, server: usize) -> Error {
    let name = servers.remote(server).map_or("?", |remote| remote.name());
    let message = format!("a row was sent to a server that has not its partition, as server {name} has");
    Error::new(ErrorKind::Unavailable, message)
        .with_hint("all servers of a cluster must have the same cluster.toml, but for `server`")
}

/// The end of the input of the first fragment, and then of the next ones.
pub(crate) fn finish<'a>(legs: &mut [Leg<'a>], at_work: &mut AtWork<'_, 'a>) -> Result<()> {
    let Some(leg) = legs.first_mut() else { return Ok(()) };
    for server in 0..leg.waiting.len() {
        let rows = std::mem::take(&mut leg.waiting[server]);
        if rows.rows > 0 {
            at_work.send(leg.number, server, rows)?;
        }
    }
    // Meanwhile this server works on what it has.
    let partitions = leg.own.as_ref().map_or(0, |own| own.stages.len());
    for position in 0..partitions {
        let own = legs.first_mut().and_then(|leg| leg.own.as_mut());
        let arrived = own.map(|own| std::mem::take(&mut own.arrived[position]));
        if let Some(mut rows) = arrived.filter(|rows| rows.rows > 0) {
            push_own(legs, position, &mut rows, at_work)?;
        }
    }
    let Some((leg, rest)) = legs.split_first_mut() else { return Ok(()) };
    let run = at_work.run;
    let whole = &mut leg.whole;
    for stages in leg.own.iter_mut().flat_map(|own| &mut own.stages).flatten() {
        stages.finish(run, &mut |batch| push_whole(whole, rest, batch, at_work).map(|()| Flow::More))?;
    }
    if let Some(whole) = whole {
        if whole.gathered.rows > 0 {
            whole.run(rest, at_work)?;
        }
        if let Some(stages) = &mut whole.stages {
            stages.finish(run, &mut |batch| deal(rest, batch, at_work).map(|()| Flow::More))?;
        }
    }
    at_work.receive()?;
    run.control().recount(&mut leg.counted_bytes, 0)?;
    finish(rest, at_work)
}
