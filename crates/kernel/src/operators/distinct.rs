//! Distinct: streaming deduplication, and the hash table of distinct rows shared with grouping.

use crate::operators::nodes::NodeSet;
use crate::pipeline::batch::{BATCH_ROWS, Batch, Keep};
use crate::pipeline::chain::{Chain, Flow, Kernel, Run};
use crate::pipeline::control::Control;
use hashbrown::HashTable;
use rustc_hash::FxHasher;
use std::hash::Hasher;
use std::sync::{Mutex, PoisonError};
use vervet_algebra::Variable;
use vervet_model::{Id, Result};

/// Hash table of distinct rows, numbered in order of first insertion.
///
/// # Shape
/// Row `i` is `cells[i * width..][..width]`; the hash table holds row numbers.
/// # Cost
/// `8 * width + 5` bytes for each distinct row at full load; one chain of cache misses for each look-up.
pub(crate) struct RowTable {
    pub variables: Vec<Variable>,
    pub cells: Vec<Id>,
    pub rows: usize,
    table: HashTable<u32>,
    row: Vec<Id>,
}

impl RowTable {
    pub(crate) fn new(variables: Vec<Variable>) -> Self {
        Self { variables, cells: Vec::new(), rows: 0, table: HashTable::new(), row: Vec::new() }
    }

    /// Inserts a row; returns its number and whether it is new.
    pub(crate) fn insert(&mut self, batch: &Batch, row: usize) -> Result<(u32, bool)> {
        self.row.clear();
        self.row.extend(self.variables.iter().map(|&variable| batch.value(variable, row)));
        let hash = hash_of(&self.row);
        self.insert_row(hash)
    }

    /// Inserts all rows of a table with the same variables; returns their numbers.
    pub(crate) fn insert_all(&mut self, other: &Self, control: &Control<'_>) -> Result<Vec<u32>> {
        let width = self.variables.len();
        let mut numbers = Vec::with_capacity(other.rows);
        for row in 0..other.rows {
            control.work(1)?;
            self.row.clear();
            self.row.extend_from_slice(&other.cells[row * width..][..width]);
            let hash = hash_of(&self.row);
            numbers.push(self.insert_row(hash)?.0);
        }
        Ok(numbers)
    }

    /// Inserts `self.row`, whose hash is `hash`.
    fn insert_row(&mut self, hash: u64) -> Result<(u32, bool)> {
        let width = self.variables.len();
        let cells = &self.cells;
        let cells_of = |number: u32| &cells[number as usize * width..][..width];
        if let Some(&number) = self.table.find(hash, |&number| cells_of(number) == self.row) {
            return Ok((number, false));
        }
        let number = u32::try_from(self.rows).map_err(|_| {
            let message = "more than 4,294,967,295 distinct rows";
            vervet_model::Error::new(vervet_model::ErrorKind::MemoryLimit, message)
        })?;
        self.table.insert_unique(hash, number, |&number| hash_of(cells_of(number)));
        self.cells.extend_from_slice(&self.row);
        self.rows += 1;
        Ok((number, true))
    }

    /// Size in bytes, as memory caps count it.
    pub(crate) fn size_bytes(&self) -> u64 {
        (8 * self.cells.capacity() + 5 * self.table.capacity()) as u64
    }
}

fn hash_of(cells: &[Id]) -> u64 {
    let mut hasher = FxHasher::default();
    cells.iter().for_each(|id| hasher.write_u64(id.bits()));
    // FxHash leaves the low bits weak for keys that differ in high bits only.
    hasher.finish() ^ hasher.finish() >> 29
}

/// Streaming distinct: outputs each distinct combination of some columns at its first occurrence.
pub(crate) struct Distinct {
    pub seen: RowTable,
    pub keep: Keep,
    pub counted_bytes: u64,
    pub selection: Vec<u32>,
}

impl<'a> Kernel<'a> for Distinct {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        self.selection.clear();
        for row in 0..batch.rows {
            if self.seen.insert(batch, row)?.1 {
                self.selection.push(u32::try_from(row).unwrap_or(u32::MAX));
            }
        }
        next.run().control.recount(&mut self.counted_bytes, self.seen.size_bytes())?;
        batch.multiplicity.clear();
        batch.select(&self.selection, &self.keep);
        next.push(batch)
    }
}

/// [`Distinct`] over one column.
pub(crate) struct DistinctNodes {
    pub variable: Variable,
    pub seen: NodeSet,
    pub keep: Keep,
    pub counted_bytes: u64,
    pub selection: Vec<u32>,
}

impl DistinctNodes {
    pub(crate) fn new(variable: Variable, keep: Keep) -> Self {
        Self { variable, seen: NodeSet::default(), keep, counted_bytes: 0, selection: Vec::new() }
    }

    /// Keeps the new rows, each with multiplicity 1.
    fn dedup(&mut self, batch: &mut Batch, run: &Run<'_>) -> Result<()> {
        let vertices = run.snapshot.vertex_count();
        self.selection.clear();
        for row in 0..batch.rows {
            if self.seen.insert(batch.value(self.variable, row), vertices) {
                self.selection.push(u32::try_from(row).unwrap_or(u32::MAX));
            }
        }
        run.control.recount(&mut self.counted_bytes, self.seen.size_bytes())?;
        batch.multiplicity.clear();
        batch.select(&self.selection, &self.keep);
        Ok(())
    }
}

impl<'a> Kernel<'a> for DistinctNodes {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        self.dedup(batch, next.run())?;
        next.push(batch)
    }
}

/// Number of rows after which [`Frontier`] decides whether deduplication pays.
const FRONTIER_TRIAL_ROWS: usize = 8 * BATCH_ROWS;

/// Best-effort deduplication under set semantics: [`DistinctNodes`] until nearly all rows prove to be new,
/// then a no-op. Each copy of a pipeline has its own.
pub(crate) struct Frontier {
    pub distinct: DistinctNodes,
    pub rows_in: usize,
    pub rows_out: usize,
}

impl<'a> Kernel<'a> for Frontier {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        let pays = self.rows_in < FRONTIER_TRIAL_ROWS || self.rows_out < self.rows_in / 8 * 7;
        if pays {
            self.rows_in += batch.rows;
            self.distinct.dedup(batch, next.run())?;
            self.rows_out += batch.rows;
        } else {
            if self.distinct.counted_bytes > 0 {
                self.distinct.seen = NodeSet::default();
                next.run().control.recount(&mut self.distinct.counted_bytes, 0)?;
            }
            batch.multiplicity.clear();
            batch.drop_all_but(&self.distinct.keep);
        }
        next.push(batch)
    }
}

/// Concurrent set of distinct rows.
///
/// # Shape
/// Partitioned by hash, with one lock for each shard, so contention is rare: a batch is sorted by shard and
/// takes each lock once.
pub(crate) struct SharedRows {
    shards: Vec<Mutex<Shard>>,
}

/// Number of shards of [`SharedRows`]. Each gets some 16 rows of a batch, which amortises its lock (20 ns).
const SHARD_COUNT: usize = 64;

struct Shard {
    seen: RowTable,
    counted_bytes: u64,
}

impl SharedRows {
    pub(crate) fn new(variables: &[Variable]) -> Self {
        let shard = || Shard { seen: RowTable::new(variables.to_vec()), counted_bytes: 0 };
        Self { shards: (0..SHARD_COUNT).map(|_| Mutex::new(shard())).collect() }
    }
}

/// [`Distinct`] in one of several copies of a pipeline: the copy that inserts a row first outputs it.
pub(crate) struct SharedDistinct<'a> {
    pub variables: &'a [Variable],
    pub rows: &'a SharedRows,
    pub keep: Keep,
    /// Shard, row and hash.
    pub order: Vec<(usize, u32, u64)>,
    pub cells: Vec<Id>,
    pub selection: Vec<u32>,
}

impl<'a> Kernel<'a> for SharedDistinct<'a> {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        let control = next.run().control;
        self.order.clear();
        for (row, number) in (0..batch.rows).zip(0_u32..) {
            self.cells.clear();
            self.cells.extend(self.variables.iter().map(|&variable| batch.value(variable, row)));
            let hash = hash_of(&self.cells);
            // The hash table uses the low bits for the bucket and the highest ones for the tag.
            let shard = usize::try_from(hash >> 40).unwrap_or(0) % SHARD_COUNT;
            self.order.push((shard, number, hash));
        }
        self.order.sort_unstable();
        self.selection.clear();
        for rows in self.order.chunk_by(|a, b| a.0 == b.0) {
            // A shard is consistent between two insertions, so a panic elsewhere does not corrupt it.
            let mut shard = self.rows.shards[rows[0].0].lock().unwrap_or_else(PoisonError::into_inner);
            let Shard { seen, counted_bytes } = &mut *shard;
            for &(_, row, hash) in rows {
                seen.row.clear();
                seen.row.extend(self.variables.iter().map(|&variable| batch.value(variable, row as usize)));
                if seen.insert_row(hash)?.1 {
                    self.selection.push(row);
                }
            }
            control.recount(counted_bytes, seen.size_bytes())?;
        }
        self.selection.sort_unstable();
        batch.multiplicity.clear();
        batch.select(&self.selection, &self.keep);
        next.push(batch)
    }
}

/// [`Distinct`] over two columns for rows grouped by `group`: the rows of each group are consecutive.
///
/// # Shape
/// Initially a hash table as in [`Distinct`]. After one row for each [`VERTICES_PER_ROW`] vertices of the
/// graph, and if memory permits, an array of stamps: for each vertex the number of the last group that
/// contained it. A new group increments the number, so the array is not cleared. Ids other than vertices
/// remain in the hash table.
/// # Cost
/// Initially 21 bytes for each distinct row, so at most a third of a byte for each vertex. Then `4 *
/// vertices` bytes and one array access for each row, for any number of distinct rows.
pub(crate) struct GroupedDistinct {
    group: Variable,
    other: Variable,
    keep: Keep,
    current: Option<Id>,
    /// Rows processed without stamps.
    rows: u64,
    stamp: u32,
    stamps: Vec<u32>,
    rest: RowTable,
    counted_bytes: u64,
    selection: Vec<u32>,
}

/// [`GroupedDistinct`] allocates stamps after one row for this number of vertices.
const VERTICES_PER_ROW: u64 = 64;

impl GroupedDistinct {
    pub(crate) fn new(group: Variable, other: Variable, variables: &[Variable], keep: Keep) -> Self {
        assert!(variables.contains(&group) && variables.contains(&other), "both are compared");
        Self {
            group,
            other,
            keep,
            current: None,
            rows: 0,
            stamp: 0,
            stamps: Vec::new(),
            rest: RowTable::new(variables.to_vec()),
            counted_bytes: 0,
            selection: Vec::new(),
        }
    }

    /// Switches to stamps, if memory permits.
    fn make_stamps(&mut self, vertices: u64, run: &Run<'_>) -> Result<()> {
        let Ok(count) = usize::try_from(vertices) else { return Ok(()) };
        if count == 0 || !run.control.has_room(vertices.saturating_mul(4)) {
            // The next attempt follows after the same number of rows.
            self.rows = 0;
            return Ok(());
        }
        run.control.grow(4 * vertices)?;
        self.stamps.resize(count, 0);
        self.stamp = 1;
        // Rows of earlier groups do not recur.
        let width = self.rest.variables.len();
        let position = |of: Variable| self.rest.variables.iter().position(|variable| *variable == of);
        let (Some(group), Some(other)) = (position(self.group), position(self.other)) else {
            return Err(vervet_model::Error::internal("a compared column is not in the table"));
        };
        let mut rest = RowTable::new(self.rest.variables.clone());
        for rows in self.rest.cells.chunks(width * BATCH_ROWS) {
            run.control.work(rows.len())?;
            for row in rows.chunks(width).filter(|row| Some(row[group]) == self.current) {
                let stamp = usize::try_from(row[other].payload()).ok().and_then(|at| self.stamps.get_mut(at));
                match stamp.filter(|_| row[other].is_vertex()) {
                    Some(stamp) => *stamp = self.stamp,
                    None => {
                        rest.row.clear();
                        rest.row.extend_from_slice(row);
                        rest.insert_row(hash_of(row))?;
                    }
                }
            }
        }
        self.rest = rest;
        run.control.recount(&mut self.counted_bytes, self.rest.size_bytes())
    }

    /// Whether the pair of this row is new.
    fn is_new(&mut self, batch: &Batch, row: usize) -> Result<bool> {
        let group = batch.value(self.group, row);
        if self.current != Some(group) {
            self.current = Some(group);
            if self.stamp == u32::MAX && !self.stamps.is_empty() {
                self.stamps.fill(0);
                self.stamp = 0;
            }
            self.stamp = if self.stamps.is_empty() { 0 } else { self.stamp + 1 };
        }
        let id = batch.value(self.other, row);
        if id.is_vertex()
            && let Some(seen) =
                usize::try_from(id.payload()).ok().and_then(|number| self.stamps.get_mut(number))
        {
            let new = *seen != self.stamp;
            *seen = self.stamp;
            return Ok(new);
        }
        Ok(self.rest.insert(batch, row)?.1)
    }
}

impl<'a> Kernel<'a> for GroupedDistinct {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        if self.stamps.is_empty() {
            let vertices = next.run().snapshot.vertex_count();
            self.rows += batch.rows as u64;
            if self.rows >= vertices / VERTICES_PER_ROW {
                self.make_stamps(vertices, next.run())?;
            }
        }
        self.selection.clear();
        for row in 0..batch.rows {
            if self.is_new(batch, row)? {
                self.selection.push(u32::try_from(row).unwrap_or(u32::MAX));
            }
        }
        next.run().control.recount(&mut self.counted_bytes, self.rest.size_bytes())?;
        batch.multiplicity.clear();
        batch.select(&self.selection, &self.keep);
        next.push(batch)
    }
}
