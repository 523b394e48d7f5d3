//! Order, top-k and slice.

use crate::batch::{BATCH_ROWS, Batch, Keep};
use crate::chain::{Chain, Flow, Kernel, Run, Table};
use std::cmp::Ordering;
use vervet_expression::{CompiledExpression, SortKey};
use vervet_model::{Id, Result};

/// Barrier: sorts all rows, or keeps the first `limit` of them.
///
/// # Cost
/// Each key is decoded once for each row. With a limit at most `2 * limit + 1024` rows are held.
pub(crate) struct Order {
    /// Expression and whether the largest comes first.
    pub keys: Vec<(CompiledExpression, bool)>,
    pub limit: Option<usize>,
    pub keep: Keep,
    pub table: Table,
    /// Sort keys of the rows in `table`, one column for each key.
    pub sort_keys: Vec<Vec<SortKey>>,
    pub values: Vec<Id>,
    pub out: Batch,
    pub counted_bytes: u64,
}

impl Order {
    fn sorted_rows(&self) -> Vec<u32> {
        let mut rows: Vec<u32> = (0_u32..).take(self.table.batch.rows).collect();
        // Stable: equal rows keep their order.
        rows.sort_by(|&a, &b| {
            for (column, (_, descending)) in self.sort_keys.iter().zip(&self.keys) {
                let order = column[a as usize].cmp(&column[b as usize]);
                let order = if *descending { order.reverse() } else { order };
                if order != Ordering::Equal {
                    return order;
                }
            }
            Ordering::Equal
        });
        rows
    }

    /// Keeps the first `limit` rows only.
    fn prune(&mut self, limit: usize, run: &Run<'_>) -> Result<()> {
        let mut rows = self.sorted_rows();
        rows.truncate(limit);
        let mut kept = Batch::new(run.variables);
        kept.gather(&self.table.batch, &rows, &self.keep);
        self.table.batch = kept;
        self.table.recount(run.control)?;
        for column in &mut self.sort_keys {
            *column = rows.iter().map(|&row| column[row as usize].clone()).collect();
        }
        Ok(())
    }
}

impl<'a> Kernel<'a> for Order {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        let run = next.run();
        let mut bytes = 0;
        for ((expression, _), column) in self.keys.iter().zip(&mut self.sort_keys) {
            self.values.clear();
            expression.evaluate(run.evaluator, &batch.columns, batch.rows, &mut self.values)?;
            for &value in &self.values {
                let key = SortKey::new(run.evaluator, value)?;
                bytes += (size_of::<SortKey>() + key.heap_bytes()) as u64;
                column.push(key);
            }
        }
        run.control.grow(bytes)?;
        self.counted_bytes += bytes;
        self.table.append(batch, &self.keep, run.control)?;
        if let Some(limit) = self.limit
            && self.table.batch.rows > 2 * limit + BATCH_ROWS
        {
            self.prune(limit, run)?;
            run.control.shrink(self.counted_bytes);
            self.counted_bytes = 0;
        }
        Ok(Flow::More)
    }

    fn finish(&mut self, next: &mut Chain<'_, 'a>) -> Result<()> {
        let mut rows = self.sorted_rows();
        if let Some(limit) = self.limit {
            rows.truncate(limit);
        }
        for rows in rows.chunks(BATCH_ROWS) {
            self.out.gather(&self.table.batch, rows, &self.keep);
            if next.push(&mut self.out)? == Flow::Done {
                break;
            }
        }
        Ok(())
    }
}

/// Skips solutions and ends the query after enough of them.
pub(crate) struct Slice {
    pub skip: u64,
    pub left: Option<u64>,
    pub keep: Keep,
}

impl<'a> Kernel<'a> for Slice {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        let mut selection = Vec::new();
        let mut times = Vec::new();
        for row in 0..batch.rows {
            if self.left == Some(0) {
                break;
            }
            let mut count = batch.times(row);
            let skipped = count.min(self.skip);
            self.skip -= skipped;
            count -= skipped;
            if let Some(left) = &mut self.left {
                count = count.min(*left);
                *left -= count;
            }
            if count > 0 {
                selection.push(u32::try_from(row).unwrap_or(u32::MAX));
                times.push(count);
            }
        }
        batch.select(&selection, &self.keep);
        batch.multiplicity = if times.iter().all(|&count| count == 1) { Vec::new() } else { times };
        let flow = next.push(batch)?;
        Ok(if self.left == Some(0) { Flow::Done } else { flow })
    }
}
