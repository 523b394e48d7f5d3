//! Exists: correlated `EXISTS`, whether a nested pipeline outputs a row for each input row.
//!
//! # Shape
//! As [`crate::operators::optional`]: the rows of a batch run through the inner pipeline together, with their
//! positions in a column. No other column of the output is read, so the planner carries only positions, and
//! unused neighbours are not listed.
//! # Cost
//! The cost of the solutions of the pattern for a batch, until each row has one. Expansions and scans leave
//! out the rest of a row that has: of long lists of neighbours they then read a few entries at a time.

use crate::pipeline::batch::{Batch, Keep};
use crate::pipeline::chain::{Answered, Chain, Flow, Kernel, Run, Stage};
use crate::plan::SemiJoinKind;
use vervet_algebra::Variable;
use vervet_model::{Id, Result, Tag};

pub(crate) struct Exists<'a> {
    pub inner: Vec<Stage<'a>>,
    /// Column that carries row positions through the inner pipeline.
    pub row: Variable,
    pub semi_join_kind: SemiJoinKind,
    pub keep: Keep,
    pub all: Keep,
    pub input: Batch,
}

impl<'a> Kernel<'a> for Exists<'a> {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        let run = *next.run();
        let answered = Answered::none(self.row, batch.rows);
        let mut missing = batch.rows;
        self.input.copy_from(batch, &self.all);
        // Existence is independent of multiplicity.
        self.input.multiplicity.clear();
        let positions = &mut self.input.columns[self.row.index()];
        positions.clear();
        positions.extend((0..batch.rows as u64).map(Id::from_bits));
        let row = self.row.index();
        let mut sink = |batch: &mut Batch, _: &Run<'a>| {
            for position in &batch.columns[row] {
                missing -= usize::from(!answered.set(*position));
            }
            Ok(if missing == 0 { Flow::Done } else { Flow::More })
        };
        let chain = Chain::new(&mut self.inner, &mut sink, &run);
        chain.with_answered(Some(&answered)).push(&mut self.input)?;
        let wanted = match self.semi_join_kind {
            SemiJoinKind::Semi => true,
            SemiJoinKind::Anti => false,
            SemiJoinKind::Mark(variable) => {
                let column = &mut batch.columns[variable.index()];
                column.clear();
                column.extend(answered.flags().map(|matched| Id::new(Tag::Boolean, u64::from(matched))));
                batch.drop_all_but(&self.keep);
                return next.push(batch);
            }
        };
        let selection: Vec<u32> = (0_u32..)
            .zip(answered.flags())
            .filter(|(_, matched)| *matched == wanted)
            .map(|(row, _)| row)
            .collect();
        batch.select(&selection, &self.keep);
        next.push(batch)
    }

    fn inner(&self) -> Vec<&Stage<'a>> {
        self.inner.iter().collect()
    }
}
