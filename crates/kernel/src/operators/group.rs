//! Group: one row for each distinct combination of the keys, with aggregates.
//!
//! # Cost
//! One look-up for each row, then one pass for each aggregate over the batch. `COUNT(*)` adds multiplicities,
//! so its cost depends on the rows, not on the solutions that they represent.

use crate::pipeline::batch::{Batch, Keep};
use crate::pipeline::chain::{Chain, Flow, Kernel, Run};
use crate::pipeline::partial::{Gathered, Partial};
use crate::pipeline::row_table::RowTable;
use vervet_algebra::Variable;
use vervet_expression::Accumulators;
use vervet_model::{Error, Result};

pub(crate) struct Group<'a> {
    pub keys: RowTable,
    pub aggregates: Vec<(Variable, Accumulators<'a>)>,
    pub keep: Keep,
    pub groups: Vec<u32>,
    pub counted_bytes: u64,
    pub out: Batch,
}

impl<'a> Group<'a> {
    fn account(&mut self, run: &Run<'a>) -> Result<()> {
        let accumulators: usize =
            self.aggregates.iter().map(|(_, accumulators)| accumulators.size_bytes()).sum();
        let bytes = self.keys.size_bytes() + accumulators as u64;
        run.control.recount(&mut self.counted_bytes, bytes)?;
        run.count_computed()
    }
}

impl<'a> Kernel<'a> for Group<'a> {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        self.groups.clear();
        if self.keys.variables.is_empty() {
            self.keys.rows = 1;
            self.groups.resize(batch.rows, 0);
        } else {
            self.keys.insert_batch(batch, &mut self.groups)?;
        }
        let multiplicities = (!batch.multiplicity.is_empty()).then_some(batch.multiplicity.as_slice());
        for (_, accumulators) in &mut self.aggregates {
            accumulators.update(&self.groups, &batch.columns, multiplicities)?;
        }
        self.account(next.run())?;
        Ok(Flow::More)
    }

    fn partial(&mut self, run: &Run<'a>) -> Result<Partial<'a>> {
        self.account(run)?;
        Ok(Partial(Gathered::Groups {
            keys: std::mem::replace(&mut self.keys, RowTable::new(Vec::new())),
            aggregates: std::mem::take(&mut self.aggregates),
            counted_bytes: std::mem::take(&mut self.counted_bytes),
        }))
    }

    fn merge(&mut self, partial: Partial<'a>, run: &Run<'a>) -> Result<()> {
        let Gathered::Groups { keys, aggregates, counted_bytes } = partial.0 else {
            return Err(Error::internal("partial state of another step merged into a group"));
        };
        if keys.rows == 0 {
            run.control.shrink(counted_bytes);
            return Ok(());
        }
        if self.keys.rows == 0 {
            run.control.shrink(self.counted_bytes);
            (self.keys, self.aggregates, self.counted_bytes) = (keys, aggregates, counted_bytes);
            for (_, accumulators) in &mut self.aggregates {
                accumulators.set_evaluator(run.evaluator);
            }
            return Ok(());
        }
        let groups =
            if keys.variables.is_empty() { vec![0] } else { self.keys.insert_all(&keys, run.control)? };
        let mut numbers_bytes = 0;
        run.control.recount(&mut numbers_bytes, 4 * groups.capacity() as u64)?;
        for ((_, mine), (_, theirs)) in self.aggregates.iter_mut().zip(aggregates) {
            run.control.check()?;
            mine.merge(theirs, &groups, &|rows| run.control.work(rows))?;
        }
        run.control.shrink(counted_bytes + numbers_bytes);
        self.account(run)
    }

    fn finish(&mut self, next: &mut Chain<'_, 'a>) -> Result<()> {
        if self.keys.variables.is_empty() {
            // Without keys there is one group, even for no rows.
            self.keys.rows = 1;
        }
        let width = self.keys.variables.len();
        let rows = next.run().control.batch_rows();
        for start in (0..self.keys.rows).step_by(rows) {
            let end = (start + rows).min(self.keys.rows);
            self.out.clear();
            self.out.rows = end - start;
            for (position, variable) in self.keys.variables.iter().enumerate() {
                self.out.columns[variable.index()]
                    .extend((start..end).map(|row| self.keys.cells[row * width + position]));
            }
            for (variable, accumulators) in &mut self.aggregates {
                let column = &mut self.out.columns[variable.index()];
                for group in start..end {
                    column.push(accumulators.finish(group)?);
                }
            }
            next.run().count_computed()?;
            self.out.drop_all_but(&self.keep);
            if next.push(&mut self.out)? == Flow::Done {
                break;
            }
        }
        Ok(())
    }
}
