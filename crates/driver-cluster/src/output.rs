//! The rows that come out of a task.

use crate::moved::{MovedRows, Terms};
use crate::rows::{append_all, rows_max};
use crate::task::{Combine, Job, Outcome};
use vervet_algebra::Variable;
use vervet_kernel::plan::Sent;
use vervet_kernel::{Batch, CombinedRows, Run};
use vervet_model::{Error, Result, cancelled_error};

/// Delivers rows to the server that asked; what was sent for it. `None`: the query needs no more.
pub(crate) type Deliver<'d> = dyn Fn(MovedRows) -> Result<Option<Sent>> + 'd;

/// The rows of a task, and its outcome.
pub(crate) struct Output<'w, 'a> {
    pub(crate) outcome: Outcome,
    /// Whether the query needs more rows; else the task ends with an error.
    pub(crate) is_needed: bool,
    rows: Rows,
    deliver: &'w Deliver<'w>,
    run: &'w Run<'a>,
    terms: Terms<'a>,
    counted_bytes: u64,
}

enum Rows {
    Combined(CombinedRows),
    AsTheyAre(Batch),
}

impl<'w, 'a> Output<'w, 'a> {
    pub(crate) fn new(job: &Job, deliver: &'w Deliver<'w>, run: &'w Run<'a>) -> Self {
        let columns: &[Variable] = job.pipeline.steps.last().map_or(&[], |step| &step.keep);
        let rows = match job.combine {
            Combine::No => Rows::AsTheyAre(Batch::new(run.variables())),
            combine => Rows::Combined(CombinedRows::new(columns, combine == Combine::Set, run)),
        };
        let sent = vec![Sent::default(); job.fragments.len() + 1];
        let outcome = Outcome { sent, ..Outcome::default() };
        let terms = Terms::new(run.evaluator(), job.computed.len());
        Self { outcome, is_needed: true, rows, deliver, run, terms, counted_bytes: 0 }
    }

    /// Adds rows; those that are too many for the outcome are delivered to the server that asked the query.
    ///
    /// # Errors
    /// The memory cap; those of the delivery.
    pub(crate) fn add(&mut self, batch: &Batch) -> Result<()> {
        let control = self.run.control();
        let count = match &mut self.rows {
            Rows::Combined(rows) => {
                rows.add(batch, control)?;
                rows.rows()
            }
            Rows::AsTheyAre(rows) => {
                append_all(rows, batch);
                control.recount(&mut self.counted_bytes, rows.size_bytes())?;
                rows.rows
            }
        };
        let kept_max = rows_max(batch);
        if count < kept_max {
            return Ok(());
        }
        let rows = self.take();
        for start in (0..rows.rows).step_by(kept_max) {
            let mut part = Batch::new(rows.columns.len());
            part.copy_rows(&rows, start..rows.rows.min(start + kept_max));
            let terms = self.terms;
            terms.leave(part, &mut |rows| self.deliver(rows))?;
        }
        Ok(())
    }

    fn deliver(&mut self, rows: MovedRows) -> Result<()> {
        self.outcome.delivered = self.outcome.delivered.saturating_add(rows.rows() as u64);
        // The thread that takes them may wait for a turn.
        self.run.control().leave();
        let Some(sent) = (self.deliver)(rows)? else { return Err(self.not_needed()) };
        if let Some(back) = self.outcome.sent.last_mut() {
            back.add(sent);
        }
        Ok(())
    }

    /// The query needs no more: the error that ends the task.
    pub(crate) fn not_needed(&mut self) -> Error {
        self.is_needed = false;
        cancelled_error()
    }

    fn take(&mut self) -> Batch {
        let control = self.run.control();
        match &mut self.rows {
            Rows::Combined(rows) => rows.take(control),
            Rows::AsTheyAre(rows) => {
                control.shrink(std::mem::take(&mut self.counted_bytes));
                std::mem::replace(rows, Batch::new(self.run.variables()))
            }
        }
    }

    /// The outcome, with the rows that were kept.
    ///
    /// # Errors
    /// As [`Output::add`].
    pub(crate) fn finish(&mut self) -> Result<Outcome> {
        let (rows, terms) = (self.take(), self.terms);
        let mut last: Option<MovedRows> = None;
        terms.leave(rows, &mut |rows| match last.replace(rows) {
            Some(before) => self.deliver(before),
            None => Ok(()),
        })?;
        self.outcome.rows = last.unwrap_or_default();
        Ok(std::mem::take(&mut self.outcome))
    }
}
