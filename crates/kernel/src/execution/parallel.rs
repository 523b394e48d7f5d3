//! Parallel execution of a cut pipeline: morsels, worker copies and partial states, for use by a driver.
//!
//! A driver [cuts](PipelineCut) a pipeline. One thread runs the [`Stages`] of head and tail. Between them,
//! every thread takes [`Morsels`] and runs them through its own [`Worker`].
//! # Not here
//! Threads, channels, and when to use them: see the crate `vervet-driver-local`.

use crate::execution::compile::{segment, stages_of};
use crate::execution::cut::{PipelineCut, SourceKind};
use crate::execution::execute::add_figures;
use crate::operators::claims::Claims;
use crate::operators::expand::Expand;
use crate::operators::scan::Scan;
use crate::pipeline::batch::{BATCH_ROWS, Batch, Keep};
use crate::pipeline::chain::{Chain, Flow, Run, Stage, nanoseconds, operand_column};
use crate::pipeline::table::Table;
use crate::pipeline::watched::Watched;
use crate::plan::{Pipeline, PlanStep, Step, StepProfile};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;
use vervet_model::{Error, Id, Result};
use vervet_snapshot::GraphFilter;

pub use crate::pipeline::partial::Partial;

/// Morsels for each thread: enough for load balance between morsels of different cost.
const MORSELS_PER_THREAD: u64 = 64;

/// Kernels of consecutive steps, used by one thread at a time.
pub struct Stages<'a> {
    steps: &'a [PlanStep],
    stages: Vec<Stage<'a>>,
}

impl<'a> Stages<'a> {
    /// The stages of the head, which starts from one row.
    ///
    /// # Errors
    /// Damaged data; expressions that cannot be compiled.
    pub fn head(pipeline: &'a Pipeline, cut: &PipelineCut, run: &Run<'a>) -> Result<Self> {
        Self::new(pipeline, 0..cut.head_end, true, run)
    }

    /// The stages of the tail.
    ///
    /// # Errors
    /// As [`Stages::head`].
    pub fn tail(pipeline: &'a Pipeline, cut: &PipelineCut, run: &Run<'a>) -> Result<Self> {
        Self::new(pipeline, cut.body_end..pipeline.steps.len(), false, run)
    }

    /// The stages of a pipeline without a cut.
    ///
    /// # Errors
    /// As [`Stages::head`].
    pub fn whole(pipeline: &'a Pipeline, run: &Run<'a>) -> Result<Self> {
        Self::new(pipeline, 0..pipeline.steps.len(), true, run)
    }

    /// The stages of the steps in `range`, which receive rows in any order.
    ///
    /// # Errors
    /// As [`Stages::head`].
    pub fn part(pipeline: &'a Pipeline, range: Range<usize>, run: &Run<'a>) -> Result<Self> {
        Self::new(pipeline, range, false, run)
    }

    fn new(pipeline: &'a Pipeline, range: Range<usize>, from_one_row: bool, run: &Run<'a>) -> Result<Self> {
        let stages = stages_of(&pipeline.steps, range.clone(), from_one_row, run)?;
        Ok(Self { steps: &pipeline.steps[range], stages })
    }

    /// The steps.
    #[must_use]
    pub fn steps(&self) -> &'a [PlanStep] {
        self.steps
    }

    /// Runs a batch through all stages.
    ///
    /// # Errors
    /// Limits, damaged data, those of `sink`.
    pub fn push(
        &mut self,
        batch: &mut Batch,
        run: &Run<'a>,
        sink: &mut dyn FnMut(&mut Batch) -> Result<Flow>,
    ) -> Result<Flow> {
        let mut sink = |batch: &mut Batch, _: &Run<'a>| sink(batch);
        Chain::new(&mut self.stages, &mut sink, run).push(batch)
    }

    /// Runs a batch through the stages from the one at this position on.
    ///
    /// # Errors
    /// As [`Stages::push`].
    pub fn push_from(
        &mut self,
        position: usize,
        batch: &mut Batch,
        run: &Run<'a>,
        sink: &mut dyn FnMut(&mut Batch) -> Result<Flow>,
    ) -> Result<Flow> {
        let mut sink = |batch: &mut Batch, _: &Run<'a>| sink(batch);
        let stages = self.stages.get_mut(position..).unwrap_or_default();
        Chain::new(stages, &mut sink, run).push(batch)
    }

    /// End of input.
    ///
    /// # Errors
    /// As [`Stages::push`].
    pub fn finish(&mut self, run: &Run<'a>, sink: &mut dyn FnMut(&mut Batch) -> Result<Flow>) -> Result<()> {
        let mut sink = |batch: &mut Batch, _: &Run<'a>| sink(batch);
        Chain::new(&mut self.stages, &mut sink, run).finish()
    }

    /// Merges the partial state of a worker into the first stage, the fold of the cut.
    ///
    /// # Errors
    /// Limits, damaged data.
    pub fn merge(&mut self, partial: Partial<'a>, run: &Run<'a>) -> Result<()> {
        match self.stages.first_mut() {
            Some(stage) => {
                let start = run.profile.then(Instant::now);
                let merged = stage.kernel.merge(partial, run);
                if let Some(start) = start {
                    stage.nanoseconds += nanoseconds(start);
                }
                merged
            }
            None => Err(Error::internal("the tail has no stage to merge into")),
        }
    }

    /// Adds the counters to the profiles of the steps; `figures` starts at the first stage.
    pub fn add_figures(&self, figures: &mut [StepProfile]) {
        add_figures(self.steps, self.stages.iter(), figures);
    }
}

/// Source of morsels for all threads.
pub struct Morsels<'m> {
    /// Rows of the head.
    rows: &'m Batch,
    /// Number of rows, keys or entries of one morsel.
    size: u64,
    next: Next,
}

enum Next {
    Nothing,
    /// Current row of the head, and the next key in it.
    Scan(Mutex<(usize, Id)>),
    Expand(Claims),
    Rows(AtomicU64),
}

impl<'m> Morsels<'m> {
    /// The morsels of the source of a cut for `rows`, for `threads` threads.
    ///
    /// # Errors
    /// Damaged data.
    pub fn new(
        pipeline: &Pipeline,
        cut: &PipelineCut,
        rows: &'m Batch,
        threads: usize,
        run: &Run<'_>,
    ) -> Result<Self> {
        let step = pipeline.steps.get(cut.head_end);
        let size = |total: u64| {
            let size = total / (MORSELS_PER_THREAD * threads as u64).max(1);
            size.clamp(1, BATCH_ROWS as u64)
        };
        let (next, size) = match step.map(|step| (&step.step, step.rows)) {
            Some((Step::Scan { access, .. }, _)) if cut.source == SourceKind::Scan => {
                match segment(access, run)? {
                    Some((segment, _)) => {
                        let keys = segment.statistics().keys;
                        let next = Next::Scan(Mutex::new((0, Id::UNBOUND)));
                        (next, size(keys.saturating_mul(rows.rows as u64)))
                    }
                    None => (Next::Nothing, 1),
                }
            }
            Some((Step::Expand { key, access, .. }, estimate)) if cut.source == SourceKind::Expand => {
                let mut scratch = Vec::new();
                let keys = operand_column(*key, rows, &mut scratch).to_vec();
                // The estimate covers all rows of the head; `rows` may be a part of them.
                #[expect(clippy::cast_possible_truncation, reason = "saturates; it is an estimate")]
                let total = estimate as u64;
                let (rows, entries) = (size(keys.len() as u64), size(total));
                match segment(access, run)? {
                    Some((segment, _)) => {
                        let claims = Claims::new(keys, segment, to_usize(rows), to_usize(entries), threads)?;
                        (Next::Expand(claims), entries)
                    }
                    None => (Next::Nothing, 1),
                }
            }
            _ => (Next::Rows(AtomicU64::new(0)), size(rows.rows as u64)),
        };
        Ok(Self { rows, size, next })
    }
}

enum Source<'a> {
    Scan(Box<Scan<'a>>),
    Expand(Box<Expand<'a>>),
    Rows(Batch),
}

/// A copy of source and body, used by one thread at a time.
pub struct Worker<'a> {
    source: Source<'a>,
    /// The step of the source, if its rows are limited, and the rows that this copy has output.
    watched: Option<Watched<'a>>,
    rows_out: u64,
    /// Profile of the source.
    figures: StepProfile,
    /// Kernels of the body and of the fold.
    body: Stages<'a>,
    cut: PipelineCut,
}

impl<'a> Worker<'a> {
    /// Creates a copy. `run` refers to the state shared by the copies.
    ///
    /// # Errors
    /// As [`Stages::head`].
    pub fn new(pipeline: &'a Pipeline, cut: &PipelineCut, run: &Run<'a>) -> Result<Self> {
        let rows = || Source::Rows(Batch::new(run.variables));
        let source = match pipeline.steps.get(cut.head_end).filter(|_| cut.source != SourceKind::Rows) {
            Some(PlanStep { step: Step::Scan { access, key, neighbour }, keep, .. }) => segment(access, run)?
                .map_or_else(rows, |(segment, filter)| {
                    let keep = run.keep(keep);
                    Source::Scan(Box::new(Scan::new((segment, filter), None, *key, *neighbour, keep, run)))
                }),
            Some(PlanStep {
                step: Step::Expand { access, key, neighbour: Some(neighbour), edge },
                keep,
                ..
            }) => segment(access, run)?.map_or_else(rows, |segment| {
                let keep = run.keep(keep);
                let expand = Expand::new(segment, *key, *neighbour, *edge, keep, run.variables);
                Source::Expand(Box::new(expand))
            }),
            _ => rows(),
        };
        let from_one_row = cut.head_end == 0 && keeps_groups_together(pipeline, cut);
        let body = Stages::new(pipeline, cut.stages(), from_one_row, run)?;
        let step = pipeline.steps.get(cut.head_end).filter(|_| cut.source != SourceKind::Rows);
        let watched = step.and_then(Watched::new);
        Ok(Self { source, watched, rows_out: 0, figures: StepProfile::default(), body, cut: cut.clone() })
    }

    /// Takes one morsel and runs it through the body; `None`: no morsels are left.
    ///
    /// # Errors
    /// Limits, damaged data, those of `sink`.
    pub fn take(
        &mut self,
        morsels: &Morsels<'_>,
        run: &Run<'a>,
        sink: &mut dyn FnMut(&mut Batch) -> Result<Flow>,
    ) -> Result<Option<Flow>> {
        run.control.check()?;
        let mut sink = |batch: &mut Batch, _: &Run<'a>| sink(batch);
        let start = run.profile.then(Instant::now);
        let mut next = Chain::new(&mut self.body.stages, &mut sink, run);
        // How many rows of the head the copy has taken is not known.
        next.watch(self.watched.as_mut(), 0, self.rows_out);
        let flow = take(&mut self.source, morsels, &mut next);
        self.rows_out += next.rows;
        if let Some(start) = start {
            self.figures.rows_out += next.rows;
            self.figures.nanoseconds += nanoseconds(start).saturating_sub(next.nanoseconds);
        }
        flow
    }

    /// The partial state of the fold of this copy.
    ///
    /// # Errors
    /// Limits, damaged data.
    pub fn partial(&mut self, run: &Run<'a>) -> Result<Partial<'a>> {
        match self.body.stages.last_mut() {
            Some(stage) => {
                let start = run.profile.then(Instant::now);
                let partial = stage.kernel.partial(run);
                if let Some(start) = start {
                    stage.nanoseconds += nanoseconds(start);
                }
                partial
            }
            None => Err(Error::internal("a copy without a fold has no partial state")),
        }
    }

    /// Adds the counters to the profiles of the steps; `figures` starts at the source.
    pub fn add_figures(&self, figures: &mut [StepProfile]) {
        let is_step = self.cut.source != SourceKind::Rows;
        if let Some(first) = figures.first_mut().filter(|_| is_step) {
            first.add(&self.figures);
        }
        self.body.add_figures(figures.get_mut(usize::from(is_step)..).unwrap_or_default());
    }
}

/// Whether rows with an equal first variable are always in one morsel, if the source is the first step. This
/// holds for the keys of a scan; a neighbour that an expansion finds in two graphs may be in two morsels.
fn keeps_groups_together(pipeline: &Pipeline, cut: &PipelineCut) -> bool {
    match pipeline.steps.get(cut.head_end).map(|step| &step.step) {
        Some(Step::Scan { .. }) => cut.source == SourceKind::Scan,
        Some(Step::Expand { access, .. }) => {
            cut.source == SourceKind::Expand
                && matches!(access.graph, GraphFilter::Default | GraphFilter::Named(_))
        }
        _ => false,
    }
}

fn take<'a>(
    source: &mut Source<'a>,
    morsels: &Morsels<'_>,
    next: &mut Chain<'_, 'a>,
) -> Result<Option<Flow>> {
    let rows = morsels.rows;
    let most = next.run().control.batch_rows();
    match (source, &morsels.next) {
        (Source::Scan(scan), Next::Scan(place)) => {
            scan.push_next(rows, place, most.min(to_usize(morsels.size)), next)
        }
        (Source::Expand(expand), Next::Expand(claims)) => expand.push_next(rows, claims, most, next),
        (Source::Rows(batch), Next::Rows(number)) => {
            let start = usize::try_from(number.fetch_add(1, Relaxed).saturating_mul(morsels.size))
                .unwrap_or(usize::MAX);
            if start >= rows.rows {
                return Ok(None);
            }
            let end = start.saturating_add(to_usize(morsels.size)).min(rows.rows);
            batch.copy_rows(rows, start..end);
            next.push(batch).map(Some)
        }
        // The segment is empty.
        _ => Ok(None),
    }
}

/// The size of a morsel.
fn to_usize(size: u64) -> usize {
    usize::try_from(size).unwrap_or(BATCH_ROWS)
}

/// Buffered output rows of the head of a cut.
pub struct HeadRows {
    table: Table,
    all: Keep,
}

impl HeadRows {
    /// An empty buffer.
    #[must_use]
    pub fn new(run: &Run<'_>) -> Self {
        let all = Keep { columns: (0..run.variables).collect(), dropped: Vec::new() };
        Self { table: Table::new(run.variables), all }
    }

    /// Adds the rows of a batch.
    ///
    /// # Errors
    /// The memory cap.
    pub fn append(&mut self, batch: &Batch, run: &Run<'_>) -> Result<()> {
        self.table.append(batch, &self.all, run.control)
    }

    /// The rows.
    #[must_use]
    pub fn batch(&self) -> &Batch {
        &self.table.batch
    }

    /// Removes all rows; retains the allocations.
    pub fn clear(&mut self) {
        self.table.batch.clear();
    }
}
