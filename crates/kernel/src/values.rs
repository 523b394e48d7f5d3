//! Values: every compatible pair of an incoming row and a row of an inline table.

use crate::batch::{BATCH_ROWS, Batch, Keep};
use crate::chain::{Chain, Flow, Kernel};
use vervet_algebra::Variable;
use vervet_model::{Id, Result};

pub(crate) struct Values {
    pub variables: Vec<Variable>,
    pub table: Vec<Vec<Id>>,
    pub keep: Keep,
    /// Pairs of an incoming row and a row of the table.
    pub pairs: Vec<(u32, usize)>,
    pub rows: Vec<u32>,
    pub out: Batch,
}

impl Values {
    fn compatible(&self, batch: &Batch, row: usize, values: &[Id]) -> bool {
        self.variables.iter().zip(values).all(|(&variable, &value)| {
            let bound = batch.value(variable, row);
            !bound.is_bound() || !value.is_bound() || bound == value
        })
    }

    fn flush<'a>(&mut self, batch: &Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        self.rows.clear();
        self.rows.extend(self.pairs.iter().map(|pair| pair.0));
        self.out.gather(batch, &self.rows, &self.keep);
        for (position, &variable) in self.variables.iter().enumerate() {
            let values = self.pairs.iter().map(|&(row, index)| {
                let value = self.table[index][position];
                if value.is_bound() { value } else { batch.value(variable, row as usize) }
            });
            let column = &mut self.out.columns[variable.index()];
            column.clear();
            column.extend(values);
        }
        self.out.drop_all_but(&self.keep);
        self.pairs.clear();
        next.push(&mut self.out)
    }
}

impl<'a> Kernel<'a> for Values {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        self.pairs.clear();
        for row in 0..batch.rows {
            for index in 0..self.table.len() {
                if self.compatible(batch, row, &self.table[index]) {
                    self.pairs.push((u32::try_from(row).unwrap_or(u32::MAX), index));
                    if self.pairs.len() == BATCH_ROWS && self.flush(batch, next)? == Flow::Done {
                        return Ok(Flow::Done);
                    }
                }
            }
        }
        self.flush(batch, next)
    }
}
