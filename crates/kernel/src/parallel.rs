//! The parts of a pipeline that several threads run: what a driver puts together.
//!
//! A driver [cuts](Cut) a pipeline, runs its [`Stages`] before and behind the cut on one thread, and in
//! between has every thread take [`Morsels`] and run them through a [`Worker`] of its own.
//! # Not here
//! Threads, channels, and when to use them: see the crate `vervet-driver-local`.

use crate::batch::{BATCH_ROWS, Batch, Keep};
use crate::chain::{Chain, Flow, Run, Stage, Table, nanoseconds, operand_column};
use crate::claims::Claims;
use crate::compile::{segment, stages_of};
use crate::cut::{Cut, SourceKind};
use crate::distinct::RowTable;
use crate::execute::add_figures;
use crate::expand::Expand;
use crate::plan::{Pipeline, PlanStep, Step, StepProfile};
use crate::scan::Scan;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;
use vervet_algebra::Variable;
use vervet_expression::{Accumulators, SortKey};
use vervet_model::{Error, Id, Result};
use vervet_snapshot::GraphFilter;

/// How many morsels there should be for each thread: enough that threads that drew light ones take more of
/// them and all end together.
const MORSELS_PER_THREAD: u64 = 64;

/// What one copy of a barrier has gathered.
pub struct Partial<'a>(pub(crate) Gathered<'a>);

pub(crate) enum Gathered<'a> {
    Groups {
        keys: RowTable,
        aggregates: Vec<(Variable, Accumulators<'a>)>,
        counted_bytes: u64,
    },
    Sorted {
        table: Table,
        sort_keys: Vec<Vec<SortKey>>,
        /// Positions in `table`, in order.
        rows: Vec<u32>,
        counted_bytes: u64,
    },
}

/// Kernels of some steps in a row, on one thread at a time.
pub struct Stages<'a> {
    steps: &'a [PlanStep],
    stages: Vec<Stage<'a>>,
}

impl<'a> Stages<'a> {
    /// Of the steps before the cut, which start from one row.
    ///
    /// # Errors
    /// Damaged data; expressions that cannot be compiled.
    pub fn head(pipeline: &'a Pipeline, cut: &Cut, run: &Run<'a>) -> Result<Self> {
        Self::new(pipeline, 0..cut.head_end, true, run)
    }

    /// Of the steps behind the cut.
    ///
    /// # Errors
    /// As [`Stages::head`].
    pub fn tail(pipeline: &'a Pipeline, cut: &Cut, run: &Run<'a>) -> Result<Self> {
        Self::new(pipeline, cut.body_end..pipeline.steps.len(), false, run)
    }

    /// Of a pipeline that is not cut.
    ///
    /// # Errors
    /// As [`Stages::head`].
    pub fn whole(pipeline: &'a Pipeline, run: &Run<'a>) -> Result<Self> {
        Self::new(pipeline, 0..pipeline.steps.len(), true, run)
    }

    fn new(pipeline: &'a Pipeline, range: Range<usize>, from_one_row: bool, run: &Run<'a>) -> Result<Self> {
        let stages = stages_of(&pipeline.steps, range.clone(), from_one_row, run)?;
        Ok(Self { steps: &pipeline.steps[range], stages })
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

    /// No more batches come.
    ///
    /// # Errors
    /// As [`Stages::push`].
    pub fn finish(&mut self, run: &Run<'a>, sink: &mut dyn FnMut(&mut Batch) -> Result<Flow>) -> Result<()> {
        let mut sink = |batch: &mut Batch, _: &Run<'a>| sink(batch);
        Chain::new(&mut self.stages, &mut sink, run).finish()
    }

    /// Takes over what a worker has gathered: the first stage is the fold of the cut.
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
            None => Err(Error::internal("nothing is left that merges")),
        }
    }

    /// Adds what was done to the figures of the steps, of which the first belongs to the first stage.
    pub fn add_figures(&self, figures: &mut [StepProfile]) {
        add_figures(self.steps, self.stages.iter(), figures);
    }
}

/// Where threads take their morsels.
pub struct Morsels<'m> {
    /// Rows of the head.
    rows: &'m Batch,
    /// Rows, keys or entries of one morsel.
    size: u64,
    next: Next,
}

enum Next {
    Nothing,
    /// A row of the head, and the key to go on with in it.
    Scan(Mutex<(usize, Id)>),
    Expand(Claims),
    Rows(AtomicU64),
}

impl<'m> Morsels<'m> {
    /// Those that the source of a cut makes of `rows`, for so many threads.
    ///
    /// # Errors
    /// Damaged data.
    pub fn new(
        pipeline: &Pipeline,
        cut: &Cut,
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
                // The estimate is of all rows of the head, these may be a part.
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

/// A copy of source and body, on one thread at a time.
pub struct Worker<'a> {
    source: Source<'a>,
    /// Of the source.
    figures: StepProfile,
    /// Kernels of the body and of the fold.
    body: Stages<'a>,
    cut: Cut,
}

impl<'a> Worker<'a> {
    /// A copy. `run` shares what copies share.
    ///
    /// # Errors
    /// As [`Stages::head`].
    pub fn new(pipeline: &'a Pipeline, cut: &Cut, run: &Run<'a>) -> Result<Self> {
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
        Ok(Self { source, figures: StepProfile::default(), body, cut: cut.clone() })
    }

    /// Takes one morsel and runs it through the body; `None`: there are no more.
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
        let flow = take(&mut self.source, morsels, &mut next);
        if let Some(start) = start {
            self.figures.rows_out += next.rows;
            self.figures.nanoseconds += nanoseconds(start).saturating_sub(next.nanoseconds);
        }
        flow
    }

    /// What the fold of this copy has gathered.
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
            None => Err(Error::internal("a copy without a fold has gathered nothing")),
        }
    }

    /// Adds what was done to the figures of the steps, of which the first is the source.
    pub fn add_figures(&self, figures: &mut [StepProfile]) {
        let is_step = self.cut.source != SourceKind::Rows;
        if let Some(first) = figures.first_mut().filter(|_| is_step) {
            first.add(&self.figures);
        }
        self.body.add_figures(figures.get_mut(usize::from(is_step)..).unwrap_or_default());
    }
}

/// Whether rows with one value of the first variable never fall into two morsels, if the source is the first
/// step. A key of a scan never does; a neighbour that an expansion finds in two graphs may.
fn keeps_groups_together(pipeline: &Pipeline, cut: &Cut) -> bool {
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

/// Rows that come out of the head of a cut and wait for the threads.
pub struct HeadRows {
    table: Table,
    all: Keep,
}

impl HeadRows {
    /// None yet.
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

    /// Removes all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.table.batch.clear();
    }
}
