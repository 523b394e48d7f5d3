//! A query that runs at all servers, seen from the server that was asked.
//!
//! # Shape
//! ```text
//! here ─▶ all servers ─▶ here ─▶ all servers ─▶ … ─▶ here ─▶ rows
//! ```
//! Parts of a pipeline run at all servers (`placement`), in rounds. This server collects rows for a round
//! until it has [`HEAD_ROWS_MAX`], or the last one. It runs the steps between two parts, such as a join whose
//! right side is large, on the rows that servers return, and collects their output for the next part.
//! # Invariants
//! A round may run within the round of a part before it. Its tasks leave room for those of later parts
//! (`Job::behind`), so no round waits for another one that waits for it.

use crate::cost::trips;
use crate::host::Host;
use crate::moved::{MovedRows, Terms};
use crate::partial_groups::Columns;
use crate::parts::{is_placed, number_of, placements};
use crate::placement::{HEAD_ROWS_MAX, Placement};
use crate::round::Query;
use crate::rows::{GATHERED_ROWS, append_all};
use crate::servers::Servers;
use crate::task::{Job, bytes_of};
use crate::wire::Wire;
use oxrdf::Term;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vervet_driver_local::Parallelism;
use vervet_expression::Evaluator;
use vervet_kernel::parallel::{HeadRows, Stages};
use vervet_kernel::plan::{Pipeline, PlanStep, Profile, StepProfile};
use vervet_kernel::{Batch, Flow, JoinTable, Run, Shared};
use vervet_model::{Error, ErrorKind, Id, Result, Tag};

/// Computed terms that a job carries at most, and the bytes of their texts; a plan with more runs where it
/// was asked.
const COMPUTED_MAX: usize = 1 << 12;
const COMPUTED_BYTES_MAX: usize = 64 << 10;

/// Rows of the table of a join that goes to all servers, and the bytes of all such tables of a job.
const TABLE_ROWS_MAX: usize = 1 << 12;
const TABLES_BYTES_MAX: usize = 48 << 10;

/// A query that runs at all servers.
pub(crate) struct Execution<'d> {
    pub(crate) host: &'d Host,
    /// As the query is assigned to them.
    pub(crate) servers: &'d Servers,
    /// Counts rows that move between servers.
    pub(crate) rows_moved: &'d AtomicU64,
    pub(crate) parallelism: Parallelism,
    pub(crate) columns: Columns,
    pub(crate) profile: bool,
    /// The terms that ids of the plan stand for. Those that its steps compute stay here.
    pub(crate) computed: &'d [Term],
    /// Its number, for its memory.
    pub(crate) number: u64,
}

/// The computed terms of a plan that has not begun, in their order; `None`: too many for a job.
pub(crate) fn known_terms(evaluator: &Evaluator<'_>) -> Result<Option<Vec<Term>>> {
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
    pub(crate) fn pipeline<'p>(
        &self,
        pipeline: &'p Pipeline,
        base: usize,
        run: &Run<'p>,
        input: &mut Batch,
        figures: &mut Profile,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let place =
            |with_joins| placements(self.servers, pipeline, self.columns, self.parallelism, with_joins);
        let mut placements = place(true);
        let sent: Vec<&PlanStep> =
            placements.iter().flat_map(|placement| &pipeline.steps[placement.steps.clone()]).collect();
        let tables = self.joins(pipeline, base, &sent, run, figures)?;
        let run = run.with_shared(&tables);
        let sent_tables =
            |placement: &Placement| self.sent_tables(&pipeline.steps[placement.steps.clone()], &tables, &run);
        let mut jobs = placements.iter().map(sent_tables).collect::<Result<Option<Vec<_>>>>()?;
        if jobs.is_none() {
            placements = place(false);
            jobs = Some(vec![Vec::new(); placements.len()]);
        }
        let mut parts = Vec::with_capacity(placements.len() + 1);
        let mut behind: usize = placements.iter().map(|placement| placement.fragments.len()).sum();
        let mut before = None;
        for (placement, tables) in placements.iter().zip(jobs.unwrap_or_default()) {
            behind -= placement.fragments.len();
            let here = Here::new(pipeline, before, placement.steps.start, &run)?;
            let (job, job_bytes) = self.job(placement, tables, behind, &run)?;
            let rows = HeadRows::new(&run);
            let there = There { execution: self, placement, job, job_bytes, rows, is_done: false };
            parts.push(Part { here, there: Some(there) });
            before = Some(placement);
        }
        parts.push(Part { here: Here::new(pipeline, before, pipeline.steps.len(), &run)?, there: None });
        let mut context = Context { pipeline, base, run: &run, figures, sink, held_bytes: 0 };
        push(&mut parts, input, &mut context)?;
        finish(&mut parts, &mut context)?;
        for part in &parts {
            part.here.add_figures(&mut figures.steps[base + number_of(pipeline, part.here.first)..]);
        }
        Ok(())
    }

    /// Runs the right sides of joins that run at all servers, and of those among `sent`, whose tables go to
    /// all servers, and returns their tables; other joins build their table at the first row.
    fn joins<'p>(
        &self,
        pipeline: &'p Pipeline,
        base: usize,
        sent: &[&PlanStep],
        run: &Run<'p>,
        figures: &mut Profile,
    ) -> Result<Shared> {
        let mut tables = Shared::default();
        for (number, step) in Shared::joins_of(&pipeline.steps) {
            let Some(right) = step.step.nested().first() else { continue };
            let is_sent = sent.iter().any(|one| std::ptr::eq(*one, step));
            if !is_sent && !is_placed(self.servers, right, self.columns, self.parallelism) {
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

    /// The job of a placement, and its bytes. `behind`: fragments of the placements after it.
    fn job(
        &self,
        placement: &Placement,
        tables: Vec<MovedRows>,
        behind: usize,
        run: &Run<'_>,
    ) -> Result<(Job, Arc<[u8]>)> {
        let (evaluator, control) = (run.evaluator(), run.control());
        let job = Job {
            now: evaluator.now().to_be_bytes(),
            base: evaluator.base().map(str::to_owned),
            computed: self.computed.to_vec(),
            tables,
            query: self.number,
            behind,
            memory_bytes: control.memory_limit(),
            profile: self.profile,
            is_heavy: control.is_heavy(),
            assignment: match self.servers.has_assignments() {
                true => self.servers.assignment().to_vec(),
                false => Vec::new(),
            },
            build: self.servers.base().build(),
            places: self.servers.places().to_vec(),
            ..placement.job(run.variables(), self.servers.own())
        };
        let bytes = bytes_of(&job).ok_or_else(|| Error::internal("a part of a plan has no bytes"))?;
        Ok((job, bytes))
    }
}

/// Receives the rows that come out of a pipeline.
type Sink<'s> = dyn FnMut(&mut Batch) -> Result<Flow> + 's;

/// A pipeline that runs.
struct Context<'c, 's, 'p> {
    pipeline: &'p Pipeline,
    /// The number of its first step.
    base: usize,
    run: &'c Run<'p>,
    figures: &'c mut Profile,
    sink: &'c mut Sink<'s>,
    /// Bytes of the query itself that rounds hold which have not ended.
    held_bytes: u64,
}

/// Steps that run here, and those behind them that run at all servers; the last part has none.
struct Part<'e, 'p> {
    here: Here<'p>,
    there: Option<There<'e>>,
}

/// Steps at all servers, and the rows that this server has collected for them.
struct There<'e> {
    execution: &'e Execution<'e>,
    placement: &'e Placement,
    job: Job,
    job_bytes: Arc<[u8]>,
    rows: HeadRows,
    /// What follows needs no more rows.
    is_done: bool,
}

/// Passes rows on to the first of these parts.
fn push<'p>(
    parts: &mut [Part<'_, 'p>],
    batch: &mut Batch,
    context: &mut Context<'_, '_, 'p>,
) -> Result<Flow> {
    let Some((Part { here, there }, rest)) = parts.split_first_mut() else { return Ok(Flow::Done) };
    let run = context.run;
    here.push(batch, run, &mut |batch| take(there, rest, batch, context))
}

/// The first of these parts receives no more rows: sends the rows that the parts have collected.
fn finish<'p>(parts: &mut [Part<'_, 'p>], context: &mut Context<'_, '_, 'p>) -> Result<()> {
    let Some((Part { here, there }, rest)) = parts.split_first_mut() else { return Ok(()) };
    let run = context.run;
    here.finish(run, &mut |batch| take(there, rest, batch, context))?;
    if let Some(there) = there
        && there.rows.batch().rows > 0
        && !there.is_done
    {
        there.round(rest, context)?;
    }
    finish(rest, context)
}

/// Takes rows that come out of the steps here.
fn take<'p>(
    there: &mut Option<There<'_>>,
    rest: &mut [Part<'_, 'p>],
    batch: &mut Batch,
    context: &mut Context<'_, '_, 'p>,
) -> Result<Flow> {
    let Some(there) = there else { return (context.sink)(batch) };
    if there.is_done {
        return Ok(Flow::Done);
    }
    there.rows.append(batch, context.run)?;
    if there.rows.batch().rows < HEAD_ROWS_MAX { Ok(Flow::More) } else { there.round(rest, context) }
}

impl There<'_> {
    /// Sends the collected rows to all servers, and the rows that these return to `rest`.
    fn round<'p>(&mut self, rest: &mut [Part<'_, 'p>], context: &mut Context<'_, '_, 'p>) -> Result<Flow> {
        let Self { execution, placement, job, job_bytes, .. } = self;
        let (run, held_before) = (context.run, context.held_bytes);
        let bytes = run.control().memory_bytes();
        let query = Query {
            host: execution.host,
            servers: execution.servers,
            job,
            job_bytes,
            control: run.control(),
            terms: Terms::new(run.evaluator(), job.computed.len()),
            threads: execution.parallelism.threads,
            rows_max: placement.rows_max,
            held_bytes: bytes.saturating_sub(held_before),
        };
        context.held_bytes = bytes.max(held_before);
        let (flow, outcome) = query.round(self.rows.batch(), &mut |batch| push(rest, batch, context))?;
        context.held_bytes = held_before;
        let moved = outcome.sent.iter().skip(1).take(job.fragments.len() - 1).map(|one| one.rows).sum();
        execution.rows_moved.fetch_add(moved, Ordering::Relaxed);
        let Context { pipeline, base, figures, .. } = context;
        let number = |at: usize| *base + number_of(pipeline, at);
        for (fragment, one) in outcome.sent.iter().enumerate() {
            let at = job.fragments.get(fragment).map_or(placement.steps.len(), |one| one.steps.start);
            figures.add_sent(number(placement.steps.start + at), *one);
        }
        let steps = number(placement.steps.start)..number(placement.steps.end);
        outcome.figures.iter().zip(&mut figures.steps[steps]).for_each(|(one, sum)| sum.add(one));
        self.rows.clear();
        self.is_done = flow == Flow::Done;
        Ok(flow)
    }
}

/// Steps that run where the query was asked. Rows that servers send are gathered for steps that read other
/// servers: a round trip for each batch, not for each server.
struct Here<'p> {
    /// The first step, in the pipeline.
    first: usize,
    /// Merges the groups of tasks.
    merge: Option<Stages<'p>>,
    stages: Stages<'p>,
    is_gathered: bool,
    gathered: Batch,
}

impl<'p> Here<'p> {
    /// The steps behind those of `before`, up to `end`.
    fn new(pipeline: &'p Pipeline, before: Option<&'p Placement>, end: usize, run: &Run<'p>) -> Result<Self> {
        let first = before.map_or(0, |before| before.steps.end);
        let merge = before.and_then(|before| before.merge.as_ref());
        let start = first + usize::from(merge.is_some());
        let merge = merge.map(|merge| Stages::part(merge, 0..merge.steps.len(), run)).transpose()?;
        let reads = pipeline.steps.get(start).is_some_and(|step| trips(&step.step) > 0.0);
        let is_gathered = before.is_some() && merge.is_none() && start < end && reads;
        let stages = Stages::part(pipeline, start..end, run)?;
        Ok(Self { first, merge, stages, is_gathered, gathered: Batch::new(run.variables()) })
    }

    fn push(&mut self, batch: &mut Batch, run: &Run<'p>, sink: &mut Sink<'_>) -> Result<Flow> {
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

    fn flush(&mut self, run: &Run<'p>, sink: &mut Sink<'_>) -> Result<Flow> {
        let mut rows = std::mem::replace(&mut self.gathered, Batch::new(run.variables()));
        if rows.rows == 0 { Ok(Flow::More) } else { self.stages.push(&mut rows, run, sink) }
    }

    fn finish(&mut self, run: &Run<'p>, sink: &mut Sink<'_>) -> Result<()> {
        self.flush(run, sink)?;
        if let Some(merge) = &mut self.merge {
            merge.finish(run, &mut |batch| self.stages.push(batch, run, sink))?;
        }
        self.stages.finish(run, sink)
    }

    /// Adds what its steps have measured; `figures` starts at the first of them.
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
