//! Nested pipelines on the device: `EXISTS`, `NOT EXISTS`, optional parts and unions.
//!
//! # Shape
//! The rows of a table get positions in a column, and a mark for each position. The nested pipeline starts
//! from the same columns, and carries the positions. At its end, the kernel *mark* marks the positions of its
//! rows. Then a test of the marks keeps the rows that `EXISTS` wants, or those without an optional part.
//!
//! A row of the nested pipeline that ids do not decide gives its outer row a lesser mark. If no other row
//! decides, the outer row leaves for the CPU at the outer step. An optional part or a union has passed rows
//! on by then, so the whole strip runs on the CPU.

use crate::lower::{DeviceStep, LoweredStep};
use crate::rest::{End, Matched, Rest};
use crate::stop::Stop;
use crate::strip::{Group, Strip};
use crate::table::DeviceTable;
use vervet_algebra::Variable;
use vervet_device::{Address, Kernel, Mark, Number, Operand, Test};
use vervet_expression::IdOutcome;

/// Marks of a position: none, a row that is not decided, a row.
const MARKS: [u64; 3] = [0, 1, 2];
const UNDECIDED: u64 = MARKS[1];
const MATCHED: u64 = MARKS[2];

impl<'a> Strip<'_, 'a> {
    /// The rows of a table that has run through all steps of a pipeline.
    pub(crate) fn end(&mut self, end: End<'_, 'a>, table: &DeviceTable) -> Result<(), Stop> {
        let (step, rest) = match end {
            End::Result => return self.collect(table),
            End::Union(step, rest) => (step, *rest),
            End::Matched(matched) => {
                self.mark(matched, table, MATCHED)?;
                let Some(then) = matched.then else { return Ok(()) };
                then
            }
        };
        self.figures[step.number].rows_out += table.rows;
        let mut next = table.clone();
        next.keep(&step.keep);
        self.run_from(rest, &next)
    }

    fn mark(&mut self, matched: &Matched<'_, 'a>, table: &DeviceTable, value: u64) -> Result<(), Stop> {
        let (rows, marks) = (table.rows, matched.marks);
        let positions = table.columns[matched.row.index()];
        if positions == Address::NONE {
            return Err(
                vervet_model::Error::internal("a nested pipeline dropped the positions of rows").into()
            );
        }
        self.launch_alone(Kernel::Mark, rows, &Mark { rows, positions, value, marks }.words())
    }

    /// Rows before the first step of `rest` that ids do not decide.
    pub(crate) fn undecided(&mut self, rest: Rest<'_, 'a>, rows: &DeviceTable) -> Result<(), Stop> {
        if rows.rows == 0 {
            return Ok(());
        }
        match rest.end {
            End::Result => {
                if let Some(step) = rest.steps.first() {
                    // The CPU counts them again.
                    let figures = &mut self.figures[step.number];
                    figures.rows_in = figures.rows_in.saturating_sub(rows.rows);
                }
                self.leave(self.part.steps.len() - rest.steps.len(), rows)
            }
            End::Matched(Matched { then: Some(_), .. }) | End::Union(..) => Err(Stop::Undecided),
            End::Matched(matched) => self.mark(matched, rows, UNDECIDED),
        }
    }

    /// The output of each branch for the rows of the table.
    pub(crate) fn union(
        &mut self,
        rest: Rest<'_, 'a>,
        table: &DeviceTable,
        branches: &[Vec<DeviceStep<'a>>],
    ) -> Result<(), Stop> {
        let Some(step) = rest.steps.first() else { return Ok(()) };
        let after = rest.after(1);
        for branch in branches {
            self.run_from(Rest { steps: branch, end: End::Union(step, &after) }, table)?;
        }
        Ok(())
    }

    /// Keeps the rows with output of `inner`, or those without.
    pub(crate) fn exists(
        &mut self,
        rest: Rest<'_, 'a>,
        table: &DeviceTable,
        inner: &[DeviceStep<'a>],
        row: Variable,
        wanted: bool,
    ) -> Result<(), Stop> {
        let outcomes = match wanted {
            true => [IdOutcome::Rejected, IdOutcome::Undecided, IdOutcome::Accepted],
            false => [IdOutcome::Accepted, IdOutcome::Undecided, IdOutcome::Rejected],
        };
        self.marked(rest, table, inner, row, None, outcomes)
    }

    /// The output of `inner`, and the rows without any.
    pub(crate) fn optional(
        &mut self,
        rest: Rest<'_, 'a>,
        table: &DeviceTable,
        inner: &[DeviceStep<'a>],
        row: Variable,
    ) -> Result<(), Stop> {
        let outcomes = [IdOutcome::Accepted, IdOutcome::Rejected, IdOutcome::Rejected];
        self.marked(rest, table, inner, row, rest.steps.first(), outcomes)
    }

    /// Runs `inner`, in slices of the table, and keeps the rows whose marks have the outcome `Accepted`.
    fn marked(
        &mut self,
        rest: Rest<'_, 'a>,
        table: &DeviceTable,
        inner: &[DeviceStep<'a>],
        row: Variable,
        optional: Option<&DeviceStep<'a>>,
        outcomes: [IdOutcome; 3],
    ) -> Result<(), Stop> {
        let slice_rows = Self::fitting(self.budget(rest), 2)?;
        let mut start = 0;
        while start < table.rows {
            let slice = table.slice(start, slice_rows);
            start += slice.rows;
            let mark = self.arena.mark();
            let (numbers, marks) = (self.take(slice.rows)?, self.take(slice.rows)?);
            let number = Number { rows: slice.rows, to: numbers };
            self.launch_alone(Kernel::Number, slice.rows, &number.words())?;
            self.device.clear(marks, slice.rows)?;
            let mut outer = slice.clone();
            outer.columns[row.index()] = numbers;
            outer.bounds[row.index()] = (0, slice.rows - 1);
            if optional.is_none() {
                // Existence is independent of multiplicity.
                outer.times = Address::NONE;
            }
            let then = optional.map(|step| (step, rest.after(1)));
            let matched = Matched { row, marks, then };
            self.run_from(Rest { steps: inner, end: End::Matched(&matched) }, &outer)?;
            self.by_marks(rest, &slice, marks, outcomes)?;
            self.arena.release_to(mark);
        }
        Ok(())
    }

    /// Keeps the rows whose marks have the outcome `Accepted`; those that have `Undecided` leave.
    fn by_marks(
        &mut self,
        rest: Rest<'_, 'a>,
        table: &DeviceTable,
        marks: Address,
        outcomes: [IdOutcome; 3],
    ) -> Result<(), Stop> {
        let mark = self.arena.mark();
        let words: Vec<u64> = MARKS.into_iter().chain(outcomes.map(|outcome| outcome as u64)).collect();
        let intervals = self.upload_intervals(&words)?;
        // The test reads the marks of all rows of the table, whichever chunk of them a launch is for.
        let test = Test::Interval { value: Operand::Column(marks), intervals };
        let mut group = Group {
            rest,
            fused: 0,
            needed: Vec::new(),
            windows: Vec::new(),
            intervals: Vec::new(),
            of_marks: Some(test),
            generation: None,
        };
        debug_assert!(
            matches!(rest.steps[0].op, LoweredStep::Exists { .. } | LoweredStep::Optional { .. }),
            "marks belong to a nested pipeline"
        );
        self.test(&mut group, table)?;
        self.arena.release_to(mark);
        Ok(())
    }
}
