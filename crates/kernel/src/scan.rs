//! Scan: all entries of a segment for each incoming row.
//!
//! # Cost
//! Keys are listed in batches and expanded like any other column, so a scan costs what reading the
//! segment in order costs.

use crate::batch::{BATCH_ROWS, Batch, Keep};
use crate::chain::{Chain, Flow, Kernel};
use std::ops::Range;
use vervet_algebra::Variable;
use vervet_model::Result;
use vervet_snapshot::{Cursor, EntryFilter, Expansion, Segment};

pub(crate) struct Scan<'a> {
    pub segment: &'a dyn Segment,
    pub filter: EntryFilter,
    pub key: Variable,
    pub neighbour: Option<Variable>,
    pub keep: Keep,
    pub keys: Batch,
    pub expansion: Expansion,
    pub degrees: Vec<u64>,
    pub out: Batch,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(
        segment: &'a dyn Segment,
        filter: EntryFilter,
        key: Variable,
        neighbour: Option<Variable>,
        keep: Keep,
        variables: usize,
    ) -> Self {
        Self {
            segment,
            filter,
            key,
            neighbour,
            keep,
            keys: Batch::new(1),
            expansion: Expansion::new(BATCH_ROWS),
            degrees: Vec::new(),
            out: Batch::new(variables),
        }
    }

    /// Writes the outer row `row` of `batch` beside `rows` new rows.
    fn repeat_outer(&mut self, batch: &Batch, row: usize, rows: usize) {
        let new = [Some(self.key.index()), self.neighbour.map(Variable::index)];
        for &column in &self.keep.columns {
            if new.contains(&Some(column)) {
                continue;
            }
            let target = &mut self.out.columns[column];
            target.clear();
            if let Some(&id) = batch.columns[column].get(row) {
                target.resize(rows, id);
            }
        }
        self.out.multiplicity.clear();
        if !batch.multiplicity.is_empty() {
            self.out.multiplicity.resize(rows, batch.times(row));
        }
        self.out.rows = rows;
    }

    /// Pushes, for one row, the entries of the keys at these positions.
    pub(crate) fn push_range(
        &mut self,
        batch: &Batch,
        row: usize,
        positions: Range<u64>,
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        let mut position = positions.start;
        while position < positions.end {
            let limit = usize::try_from(positions.end - position).unwrap_or(BATCH_ROWS).min(BATCH_ROWS);
            self.keys.columns[0].clear();
            position = self.segment.keys(position, limit, &mut self.keys.columns[0])?;
            if self.push_keys(batch, row, next)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    }

    fn push_keys(&mut self, batch: &Batch, row: usize, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        let keys = &self.keys.columns[0];
        let Some(neighbour) = self.neighbour else {
            self.segment.degrees(keys, self.filter, &mut self.degrees)?;
            self.repeat_outer(batch, row, self.keys.columns[0].len());
            self.out.columns[self.key.index()].clone_from(&self.keys.columns[0]);
            let mut selection = Vec::new();
            let degrees = std::mem::take(&mut self.degrees);
            self.out.multiply(&degrees, &mut selection, &self.keep);
            self.degrees = degrees;
            return next.push(&mut self.out);
        };
        let mut cursor = Cursor::default();
        while cursor.row < self.keys.columns[0].len() {
            self.expansion.clear();
            self.segment.expand(&self.keys.columns[0], self.filter, &mut cursor, &mut self.expansion)?;
            self.repeat_outer(batch, row, self.expansion.len());
            let target = &mut self.out.columns[self.key.index()];
            target.clear();
            target.extend(self.expansion.rows.iter().map(|&row| self.keys.columns[0][row as usize]));
            self.out.columns[neighbour.index()].clone_from(&self.expansion.neighbours);
            self.out.drop_all_but(&self.keep);
            if next.push(&mut self.out)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    }
}

impl<'a> Kernel<'a> for Scan<'a> {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        for row in 0..batch.rows {
            if self.push_range(batch, row, 0..self.segment.statistics().keys, next)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    }
}
