//! Values: join with an inline table, every compatible pair of an input row and a table row.
//!
//! # Cost
//! A row that binds a variable of the table is a look-up by that variable; the look-up table is built on
//! first use. A row that binds none is paired with all table rows.

use crate::pipeline::batch::{Batch, Keep};
use crate::pipeline::chain::{Chain, Flow, Kernel};
use crate::pipeline::control::Control;
use rustc_hash::FxHashMap;
use vervet_algebra::Variable;
use vervet_model::{Id, Result};

/// Maximum number of table rows for which a linear scan is faster than a look-up.
const SCAN_ROWS_MAX: usize = 16;

pub(crate) struct Values<'a> {
    pub variables: &'a [Variable],
    pub table: &'a [Vec<Id>],
    pub keep: Keep,
    /// By position of the variable: table rows by value (unbound ones under [`Id::UNBOUND`]), ascending.
    pub by_value: Vec<Option<FxHashMap<Id, Vec<usize>>>>,
    /// Pairs of an input row and a table row.
    pub pairs: Vec<(u32, usize)>,
    pub rows: Vec<u32>,
    pub out: Batch,
}

impl<'a> Values<'a> {
    fn compatible(&self, batch: &Batch, row: usize, values: &[Id]) -> bool {
        self.variables.iter().zip(values).all(|(&variable, &value)| {
            let bound = batch.value(variable, row);
            !bound.is_bound() || !value.is_bound() || bound == value
        })
    }

    /// The table column for the look-up of a row, and the value.
    fn look_up_by(&self, batch: &Batch, row: usize) -> Option<(usize, Id)> {
        if self.table.len() <= SCAN_ROWS_MAX {
            return None;
        }
        let values = self.variables.iter().map(|&variable| batch.value(variable, row)).enumerate();
        values.into_iter().find(|(_, id)| id.is_bound())
    }

    fn rows_by_value(&self, position: usize, control: &Control<'_>) -> Result<FxHashMap<Id, Vec<usize>>> {
        control.grow(64 * self.table.len() as u64)?;
        let mut rows: FxHashMap<Id, Vec<usize>> = FxHashMap::default();
        for (index, values) in self.table.iter().enumerate() {
            control.work(1)?;
            rows.entry(values[position]).or_default().push(index);
        }
        Ok(rows)
    }

    fn add(&mut self, batch: &Batch, row: usize, index: usize, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        next.run().control.work(1)?;
        if !self.compatible(batch, row, &self.table[index]) {
            return Ok(Flow::More);
        }
        self.pairs.push((u32::try_from(row).unwrap_or(u32::MAX), index));
        if self.pairs.len() >= next.run().control.batch_rows() {
            self.flush(batch, next)
        } else {
            Ok(Flow::More)
        }
    }

    fn flush(&mut self, batch: &Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
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

impl<'a> Kernel<'a> for Values<'a> {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        debug_assert!(
            self.table.iter().all(|row| row.len() == self.variables.len()),
            "rows are as wide as the table"
        );
        self.pairs.clear();
        for row in 0..batch.rows {
            let Some((position, value)) = self.look_up_by(batch, row) else {
                for index in 0..self.table.len() {
                    if self.add(batch, row, index, next)? == Flow::Done {
                        return Ok(Flow::Done);
                    }
                }
                continue;
            };
            let by_value = match self.by_value[position].take() {
                Some(by_value) => by_value,
                None => self.rows_by_value(position, next.run().control)?,
            };
            let found = [Id::UNBOUND, value].map(|id| by_value.get(&id).map_or(&[][..], Vec::as_slice));
            let mut flow = Flow::More;
            for &index in found.into_iter().flatten() {
                flow = self.add(batch, row, index, next)?;
                if flow == Flow::Done {
                    break;
                }
            }
            self.by_value[position] = Some(by_value);
            if flow == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        self.flush(batch, next)
    }
}
