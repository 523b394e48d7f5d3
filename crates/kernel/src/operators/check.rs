//! Check: filters rows by the existence of an entry.

use crate::pipeline::batch::{Batch, Keep};
use crate::pipeline::chain::{Chain, Flow, Kernel, operand_column};
use crate::plan::Operand;
use vervet_model::{Id, Result};
use vervet_snapshot::{EntryFilter, Segment};

pub(crate) struct Check<'a> {
    pub segment: &'a dyn Segment,
    pub filter: EntryFilter,
    pub key: Operand,
    pub neighbour: Operand,
    pub keep: Keep,
    pub keys: Vec<Id>,
    pub neighbours: Vec<Id>,
    pub selection: Vec<u32>,
}

impl<'a> Kernel<'a> for Check<'a> {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        self.selection.clear();
        let keys = operand_column(self.key, batch, &mut self.keys);
        if let Operand::Constant(neighbour) = self.neighbour {
            self.segment.check_constant(keys, neighbour, self.filter, &mut self.selection)?;
        } else {
            let neighbours = operand_column(self.neighbour, batch, &mut self.neighbours);
            self.segment.check(keys, neighbours, self.filter, &mut self.selection)?;
        }
        batch.select(&self.selection, &self.keep);
        next.push(batch)
    }
}
