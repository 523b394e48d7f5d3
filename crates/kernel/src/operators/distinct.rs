//! Distinct: streaming deduplication.

use crate::pipeline::batch::{BATCH_ROWS, Batch, Keep};
use crate::pipeline::chain::{Chain, Flow, Kernel, Run};
use crate::pipeline::nodes::NodeSet;
use crate::pipeline::row_table::{RowTable, SharedRows};
use vervet_algebra::Variable;
use vervet_model::{Id, Result};

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
        let (order, cells, selection) = (&mut self.order, &mut self.cells, &mut self.selection);
        self.rows.insert_all(self.variables, batch, order, cells, selection, next.run().control)?;
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
                        rest.insert_cells(row)?;
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
