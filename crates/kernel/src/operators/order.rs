//! Order (sort), top-k and slice.

use crate::pipeline::batch::{BATCH_ROWS, Batch, Keep};
use crate::pipeline::chain::{Chain, Flow, Kernel, Run};
use crate::pipeline::control::Control;
use crate::pipeline::partial::{Gathered, Partial};
use crate::pipeline::table::Table;
use std::cmp::Ordering;
use vervet_expression::{CompiledExpression, SortKey, order_of_ids};
use vervet_model::{Error, ErrorKind, Id, Multiplicity, Result};

/// Rows of one run, sorted without a check of the limits.
const RUN_ROWS: usize = 1 << 11;

/// Maximum memory of the keys of one run, in bytes: a comparison of long texts takes time.
const RUN_KEY_BYTES: u64 = 16 << 20;

/// Bytes of keys that count as a unit of work.
const KEY_BYTES_PER_UNIT: usize = 1 << 12;

/// How many times the limit there must be rows for a selection of the first ones to be cheaper than a sort.
const SELECT_FACTOR: usize = 4;

/// Maximum rows of a selection, which does not check the limits: some milliseconds.
const SELECT_ROWS_MAX: usize = 1 << 14;

/// Barrier: sorts all rows, or keeps the first `limit` of them.
///
/// # Cost
/// Each key is decoded once for each row. With a small limit the first rows are selected, not sorted: two to
/// three comparisons a row instead of ten. With a limit at most `2 * limit + 1024` rows are held; after that,
/// only the first key is decoded of a row that it excludes, and no key where the ids of first keys decide.
pub(crate) struct Order {
    /// Expression, and whether the order is descending.
    pub keys: Vec<(CompiledExpression, bool)>,
    pub limit: Option<usize>,
    pub keep: Keep,
    pub table: Table,
    /// Sort keys of the rows in `table`, one column for each key.
    pub sort_keys: Vec<Vec<SortKey>>,
    pub values: Vec<Id>,
    /// With a limit: the values of the first key for the rows in `table`. Empty once rows of other threads
    /// are merged.
    pub first_values: Vec<Id>,
    pub out: Batch,
    pub counted_bytes: u64,
    /// Sorted runs of copies of this step: positions in `table`. Empty: no run yet.
    pub runs: Vec<Vec<u32>>,
    /// Position in `table` of the last row within the limit; rows after it in the order are dropped.
    pub last_kept: Option<usize>,
}

impl Order {
    /// Positions of the rows in `table` within the limit, sorted stably.
    ///
    /// Runs are sorted and then merged pairwise, with a check of the limits in between.
    fn sorted_rows(&mut self, control: &Control<'_>) -> Result<Vec<u32>> {
        let mut rows = self.all_sorted_rows(control)?;
        rows.truncate(self.limit.unwrap_or(usize::MAX));
        Ok(rows)
    }

    /// As [`Order::sorted_rows`], possibly with further rows after the limit.
    fn all_sorted_rows(&mut self, control: &Control<'_>) -> Result<Vec<u32>> {
        let mut runs = std::mem::take(&mut self.runs);
        if runs.is_empty() {
            let mut rows: Vec<u32> = (0_u32..).take(self.table.batch.rows).collect();
            if let Some(limit) = self.limit.filter(|limit| limit.saturating_mul(SELECT_FACTOR) < rows.len())
                && rows.len() <= SELECT_ROWS_MAX
                && self.counted_bytes <= RUN_KEY_BYTES
            {
                // Of equal rows the earlier one comes first.
                let compare = |a: &u32, b: &u32| self.compare(*a, *b).then(a.cmp(b));
                if limit > 0 {
                    rows.select_nth_unstable_by(limit, compare);
                }
                rows.truncate(limit);
                rows.sort_unstable_by(compare);
                return Ok(rows);
            }
            for rows in rows.chunks(RUN_ROWS.min(self.rows_of(RUN_KEY_BYTES))) {
                control.check()?;
                let mut run = rows.to_vec();
                run.sort_by(|&a, &b| self.compare(a, b));
                runs.push(run);
            }
        }
        let units = 1 + RUN_ROWS / self.rows_of((RUN_ROWS * KEY_BYTES_PER_UNIT) as u64);
        while runs.len() > 1 {
            let mut merged = Vec::with_capacity(runs.len().div_ceil(2));
            let mut pairs = runs.into_iter();
            while let Some(left) = pairs.next() {
                merged.push(match pairs.next() {
                    Some(right) => self.merge_runs(&left, &right, units, control)?,
                    None => left,
                });
            }
            runs = merged;
        }
        Ok(runs.pop().unwrap_or_default())
    }

    /// The number of rows whose keys take `bytes` on average, at least 16.
    fn rows_of(&self, bytes: u64) -> usize {
        let bytes_per_row = self.counted_bytes / (self.table.batch.rows as u64).max(1) + 1;
        usize::try_from(bytes / bytes_per_row).unwrap_or(usize::MAX).max(16)
    }

    /// Merges two runs. `units`: work of one comparison.
    fn merge_runs(
        &self,
        left: &[u32],
        right: &[u32],
        units: usize,
        control: &Control<'_>,
    ) -> Result<Vec<u32>> {
        let mut merged: Vec<u32> = Vec::with_capacity(left.len() + right.len());
        let (mut left, mut right) = (left, right);
        while let ([a, left_rest @ ..], [b, right_rest @ ..]) = (left, right) {
            control.work(units)?;
            if self.compare(*b, *a) == Ordering::Less {
                merged.push(*b);
                right = right_rest;
            } else {
                merged.push(*a);
                left = left_rest;
            }
        }
        merged.extend_from_slice(left);
        merged.extend_from_slice(right);
        Ok(merged)
    }

    fn check_rows(&self) -> Result<()> {
        if u32::try_from(self.table.batch.rows).is_err() {
            let message = "more than 4,294,967,295 rows to sort";
            return Err(Error::new(ErrorKind::MemoryLimit, message).with_hint("use LIMIT"));
        }
        Ok(())
    }

    fn compare(&self, a: u32, b: u32) -> Ordering {
        for (column, (_, descending)) in self.sort_keys.iter().zip(&self.keys) {
            let order = column[a as usize].cmp(&column[b as usize]);
            let order = if *descending { order.reverse() } else { order };
            if order != Ordering::Equal {
                return order;
            }
        }
        Ordering::Equal
    }

    /// Evaluates one sort key for all rows of a batch, into `values`.
    fn evaluate(&mut self, at: usize, batch: &Batch, run: &Run<'_>) -> Result<()> {
        let (expression, _) = &self.keys[at];
        self.values.clear();
        expression.evaluate(run.evaluator, &batch.columns, batch.rows, &mut self.values)
    }

    /// As [`Order::drop_late`] by ids and ranks of strings alone, before keys are decoded. Rows for which
    /// these do not decide are kept.
    fn drop_late_values(&mut self, batch: &mut Batch, run: &Run<'_>) -> Result<()> {
        let Some(&last) = self.last_kept.and_then(|last| self.first_values.get(last)) else { return Ok(()) };
        let (descending, has_further) = (self.keys[0].1, self.keys.len() > 1);
        let mut rows = Vec::with_capacity(batch.rows);
        for (row, &value) in (0_u32..).zip(&self.values) {
            let order = match order_of_ids(value, last) {
                None => run.evaluator.order_of_ranks(value, last)?,
                order => order,
            };
            let is_kept = match order {
                None => true,
                Some(Ordering::Equal) => has_further,
                Some(order) => (order == Ordering::Less) != descending,
            };
            if is_kept {
                rows.push(row);
            }
        }
        if rows.len() < batch.rows {
            self.values = rows.iter().map(|&row| self.values[row as usize]).collect();
            // Later sort keys may read columns that are dead after this step.
            batch.select(&rows, &Keep { columns: (0..batch.columns.len()).collect(), dropped: Vec::new() });
        }
        Ok(())
    }

    /// Drops the rows, and their first keys, that sort after all rows within the limit by their first key.
    fn drop_late(&mut self, batch: &mut Batch, first: &mut Vec<SortKey>) {
        let (Some(last), [(_, descending), further @ ..]) = (self.last_kept, self.keys.as_slice()) else {
            return;
        };
        let last = &self.sort_keys[0][last];
        let is_kept = |key: &SortKey| match if *descending { last.cmp(key) } else { key.cmp(last) } {
            Ordering::Less => true,
            // Of equal rows the earlier one is kept.
            Ordering::Equal => !further.is_empty(),
            Ordering::Greater => false,
        };
        let rows: Vec<u32> =
            (0_u32..).zip(&*first).filter(|(_, key)| is_kept(key)).map(|(row, _)| row).collect();
        if rows.len() < batch.rows {
            first.retain(is_kept);
            self.values = rows.iter().map(|&row| self.values[row as usize]).collect();
            // Later sort keys may read columns that are dead after this step.
            batch.select(&rows, &Keep { columns: (0..batch.columns.len()).collect(), dropped: Vec::new() });
        }
    }

    /// Keeps only the rows within the limit.
    fn prune(&mut self, run: &Run<'_>) -> Result<()> {
        let rows = self.sorted_rows(run.control)?;
        // During the copy the kept rows exist twice.
        let mut copy_bytes = 0;
        let row_bytes = 8 * self.keep.columns.len() + size_of::<SortKey>() * self.keys.len();
        run.control.recount(&mut copy_bytes, (row_bytes * rows.len()) as u64)?;
        let mut kept = Batch::new(run.variables);
        kept.gather(&self.table.batch, &rows, &self.keep);
        self.table.batch = kept;
        self.table.recount(run.control)?;
        self.last_kept = rows.len().checked_sub(1);
        if !self.first_values.is_empty() {
            self.first_values = rows.iter().map(|&row| self.first_values[row as usize]).collect();
        }
        let mut bytes = 0;
        for column in &mut self.sort_keys {
            let mut kept = Vec::with_capacity(rows.len());
            for rows in rows.chunks(BATCH_ROWS) {
                run.control.work(rows.len())?;
                for &row in rows {
                    // Each row occurs once in the list, so its key can be moved.
                    let key = std::mem::take(&mut column[row as usize]);
                    bytes += key_bytes(&key);
                    kept.push(key);
                }
            }
            *column = kept;
        }
        run.control.recount(&mut copy_bytes, 0)?;
        run.control.recount(&mut self.counted_bytes, bytes)
    }
}

/// The keys of the values of a batch.
fn keys_of(values: &[Id], run: &Run<'_>) -> Result<Vec<SortKey>> {
    let mut keys = Vec::with_capacity(values.len());
    let (mut bytes, mut checked_bytes) = (0, 0);
    for &value in values {
        let key = SortKey::new(run.evaluator, value)?;
        bytes += key.heap_bytes();
        // The caller counts the keys only after the batch.
        if bytes > checked_bytes + RUN_ROWS * size_of::<SortKey>() {
            checked_bytes = bytes;
            run.control.check()?;
            run.control.check_room(bytes as u64)?;
        }
        keys.push(key);
    }
    Ok(keys)
}

/// Size of a key in bytes, with the two positions used by sorting.
fn key_bytes(key: &SortKey) -> u64 {
    (size_of::<SortKey>() + key.heap_bytes() + 2 * size_of::<u32>()) as u64
}

impl<'a> Kernel<'a> for Order {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        let run = next.run();
        let mut bytes = self.counted_bytes;
        for at in 0..self.keys.len() {
            self.evaluate(at, batch, run)?;
            if at == 0 {
                self.drop_late_values(batch, run)?;
            }
            let mut keys = keys_of(&self.values, run)?;
            if at == 0 {
                self.drop_late(batch, &mut keys);
                // Rows of other threads come without their values.
                if self.limit.is_some() && self.first_values.len() == self.table.batch.rows {
                    self.first_values.extend_from_slice(&self.values);
                    bytes += (size_of::<Id>() * self.values.len()) as u64;
                }
            }
            bytes += keys.iter().map(key_bytes).sum::<u64>();
            self.sort_keys[at].append(&mut keys);
        }
        run.count_computed()?;
        run.control.recount(&mut self.counted_bytes, bytes)?;
        self.table.append(batch, &self.keep, run.control)?;
        self.check_rows()?;
        if let Some(limit) = self.limit
            && self.table.batch.rows > limit.saturating_mul(2).saturating_add(BATCH_ROWS)
        {
            self.prune(run)?;
        }
        Ok(Flow::More)
    }

    fn partial(&mut self, run: &Run<'a>) -> Result<Partial<'a>> {
        let rows = self.sorted_rows(run.control)?;
        self.last_kept = None;
        self.first_values = Vec::new();
        Ok(Partial(Gathered::Sorted {
            table: std::mem::replace(&mut self.table, Table::new(run.variables)),
            sort_keys: std::mem::take(&mut self.sort_keys),
            rows,
            counted_bytes: std::mem::take(&mut self.counted_bytes),
        }))
    }

    fn merge(&mut self, partial: Partial<'a>, run: &Run<'a>) -> Result<()> {
        let Gathered::Sorted { table, sort_keys, mut rows, counted_bytes } = partial.0 else {
            return Err(Error::internal("partial state of another step merged into an order"));
        };
        self.first_values.clear();
        if self.table.batch.rows == 0 {
            run.control.shrink(self.table.counted_bytes + self.counted_bytes);
            (self.table, self.sort_keys, self.counted_bytes) = (table, sort_keys, counted_bytes);
        } else {
            let first = self.table.batch.rows;
            self.table.append(&table.batch, &self.keep, run.control)?;
            self.check_rows()?;
            let first = u32::try_from(first).unwrap_or(u32::MAX);
            rows.iter_mut().for_each(|row| *row += first);
            for (mine, theirs) in self.sort_keys.iter_mut().zip(sort_keys) {
                mine.extend(theirs);
            }
            // The keys have moved, and their counted bytes with them.
            self.counted_bytes += counted_bytes;
            run.control.shrink(table.counted_bytes);
        }
        if !rows.is_empty() {
            self.runs.push(rows);
        }
        Ok(())
    }

    fn finish(&mut self, next: &mut Chain<'_, 'a>) -> Result<()> {
        let rows = self.sorted_rows(next.run().control)?;
        for rows in rows.chunks(next.run().control.batch_rows()) {
            self.out.gather(&self.table.batch, rows, &self.keep);
            if next.push(&mut self.out)? == Flow::Done {
                break;
            }
        }
        Ok(())
    }
}

/// Skips solutions and ends the query at the limit.
pub(crate) struct Slice {
    skip: Multiplicity,
    /// Remaining solutions; `None`: unlimited.
    left: Option<Multiplicity>,
    keep: Keep,
}

impl Slice {
    pub(crate) fn new(start: usize, length: Option<usize>, keep: Keep) -> Self {
        let count = |count: usize| Multiplicity::new(count as u64);
        Self { skip: count(start), left: length.map(count), keep }
    }
}

impl<'a> Kernel<'a> for Slice {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        let mut selection = Vec::new();
        let mut times = Vec::new();
        for row in 0..batch.rows {
            if self.left == Some(Multiplicity::ZERO) {
                break;
            }
            let mut count = batch.times(row);
            let skipped = count.min(self.skip);
            self.skip = self.skip.saturating_sub(skipped);
            count = count.saturating_sub(skipped);
            if let Some(left) = &mut self.left {
                count = count.min(*left);
                *left = left.saturating_sub(count);
            }
            if !count.is_zero() {
                selection.push(u32::try_from(row).unwrap_or(u32::MAX));
                times.push(count);
            }
        }
        batch.select(&selection, &self.keep);
        batch.multiplicity =
            if times.iter().all(|&count| count == Multiplicity::ONE) { Vec::new() } else { times };
        let flow = next.push(batch)?;
        Ok(if self.left == Some(Multiplicity::ZERO) { Flow::Done } else { flow })
    }
}
