//! Optional and union: nested pipelines evaluated from the input rows.

use crate::pipeline::batch::{Batch, Keep};
use crate::pipeline::chain::{Chain, Flow, Kernel, Run, Stage};
use vervet_algebra::Variable;
use vervet_model::{Id, Result};

/// For each row the output of the inner pipeline, or the row itself if that is empty.
pub(crate) struct Optional<'a> {
    pub inner: Vec<Stage<'a>>,
    /// Column that carries row positions through the inner pipeline.
    pub row: Variable,
    pub keep: Keep,
    pub all: Keep,
    pub input: Batch,
}

impl<'a> Kernel<'a> for Optional<'a> {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        let run = *next.run();
        let mut matched = vec![false; batch.rows];
        self.input.copy_from(batch, &self.all);
        let positions = &mut self.input.columns[self.row.index()];
        positions.clear();
        positions.extend((0..batch.rows as u64).map(Id::from_bits));
        let (row, keep) = (self.row.index(), &self.keep);
        let mut flow = Flow::More;
        let mut sink = |batch: &mut Batch, _: &Run<'a>| {
            for position in &batch.columns[row] {
                let position = usize::try_from(position.bits()).unwrap_or(usize::MAX);
                matched[position] = true;
            }
            batch.drop_all_but(keep);
            flow = next.push(batch)?;
            Ok(flow)
        };
        Chain::new(&mut self.inner, &mut sink, &run).push(&mut self.input)?;
        if flow == Flow::Done {
            return Ok(flow);
        }
        let alone: Vec<u32> =
            (0_u32..).zip(&matched).filter(|(_, matched)| !**matched).map(|(row, _)| row).collect();
        batch.select(&alone, &self.keep);
        next.push(batch)
    }

    fn inner(&self) -> Vec<&Stage<'a>> {
        self.inner.iter().collect()
    }
}

/// The concatenated output of all branches for the input rows.
pub(crate) struct Union<'a> {
    pub branches: Vec<Vec<Stage<'a>>>,
    pub keep: Keep,
    pub all: Keep,
    pub input: Batch,
}

impl<'a> Union<'a> {
    fn run_branch(
        branch: &mut [Stage<'a>],
        input: Option<&mut Batch>,
        keep: &Keep,
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        let run = *next.run();
        let mut flow = Flow::More;
        let mut sink = |batch: &mut Batch, _: &Run<'a>| {
            batch.drop_all_but(keep);
            flow = next.push(batch)?;
            Ok(flow)
        };
        let mut chain = Chain::new(branch, &mut sink, &run);
        match input {
            Some(input) => {
                chain.push(input)?;
            }
            None => chain.finish()?,
        }
        Ok(flow)
    }
}

impl<'a> Kernel<'a> for Union<'a> {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        for branch in &mut self.branches {
            self.input.copy_from(batch, &self.all);
            if Self::run_branch(branch, Some(&mut self.input), &self.keep, next)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    }

    fn finish(&mut self, next: &mut Chain<'_, 'a>) -> Result<()> {
        for branch in &mut self.branches {
            if Self::run_branch(branch, None, &self.keep, next)? == Flow::Done {
                break;
            }
        }
        Ok(())
    }

    fn inner(&self) -> Vec<&Stage<'a>> {
        self.branches.iter().flatten().collect()
    }
}
