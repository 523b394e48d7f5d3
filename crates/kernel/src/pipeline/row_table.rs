//! Hash table of distinct rows, for deduplication and grouping, and a concurrent set of them.

use crate::pipeline::batch::Batch;
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
/// Row `i` is `cells[i * width..][..width]`; the hash table holds half a hash and the number of each row, so
/// it grows without reading rows.
/// # Cost
/// `8 * width + 9` bytes for each distinct row at full load; one chain of cache misses for each look-up.
/// Measured 2026-11-27 on SP2Bench q04, 1.9 million distinct rows of two columns: growing took a fifth of the
/// query when it read the rows.
pub(crate) struct RowTable {
    pub variables: Vec<Variable>,
    pub cells: Vec<Id>,
    pub rows: usize,
    table: HashTable<(u32, u32)>,
    row: Vec<Id>,
}

impl RowTable {
    pub(crate) fn new(variables: Vec<Variable>) -> Self {
        Self { variables, cells: Vec::new(), rows: 0, table: HashTable::new(), row: Vec::new() }
    }

    /// Inserts a row; returns its number and whether it is new.
    pub(crate) fn insert(&mut self, batch: &Batch, row: usize) -> Result<(u32, bool)> {
        self.load(batch, row);
        self.insert_loaded(hash_of(&self.row))
    }

    /// Inserts all rows of a batch, and appends their numbers to `numbers`.
    pub(crate) fn insert_batch(&mut self, batch: &Batch, numbers: &mut Vec<u32>) -> Result<()> {
        let column = match self.variables.as_slice() {
            [variable] => batch.columns[variable.index()].as_slice(),
            _ => &[],
        };
        if column.len() != batch.rows {
            for row in 0..batch.rows {
                numbers.push(self.insert(batch, row)?.0);
            }
            return Ok(());
        }
        // Equal values are often adjacent.
        let mut last: Option<(Id, u32)> = None;
        for &id in column {
            let number = match last {
                Some((same, number)) if same == id => number,
                _ => self.insert_id(id)?,
            };
            last = Some((id, number));
            numbers.push(number);
        }
        Ok(())
    }

    /// Inserts a row of one cell.
    #[inline]
    fn insert_id(&mut self, id: Id) -> Result<u32> {
        let (half, cells) = (half(hash_of(&[id])), &self.cells);
        let is_same = |&(other, number): &(u32, u32)| other == half && cells[number as usize] == id;
        if let Some(&(_, number)) = self.table.find(spread(half), is_same) {
            return Ok(number);
        }
        Ok(self.insert_cells(&[id])?.0)
    }

    /// [`RowTable::insert`] for a row whose hash by [`hash_of`] is known.
    fn insert_hashed(&mut self, batch: &Batch, row: usize, hash: u64) -> Result<(u32, bool)> {
        self.load(batch, row);
        self.insert_loaded(hash)
    }

    /// Inserts a row given as its cells, in the order of the variables.
    pub(crate) fn insert_cells(&mut self, cells: &[Id]) -> Result<(u32, bool)> {
        self.row.clear();
        self.row.extend_from_slice(cells);
        self.insert_loaded(hash_of(cells))
    }

    fn load(&mut self, batch: &Batch, row: usize) {
        self.row.clear();
        self.row.extend(self.variables.iter().map(|&variable| batch.value(variable, row)));
    }

    /// Inserts all rows of a table with the same variables; returns their numbers.
    pub(crate) fn insert_all(&mut self, other: &Self, control: &Control<'_>) -> Result<Vec<u32>> {
        let width = self.variables.len();
        let mut numbers = Vec::with_capacity(other.rows);
        for row in 0..other.rows {
            control.work(1)?;
            numbers.push(self.insert_cells(&other.cells[row * width..][..width])?.0);
        }
        Ok(numbers)
    }

    /// Inserts `self.row`, whose hash is `hash`.
    fn insert_loaded(&mut self, hash: u64) -> Result<(u32, bool)> {
        let width = self.variables.len();
        let cells = &self.cells;
        let cells_of = |number: u32| &cells[number as usize * width..][..width];
        let half = half(hash);
        let is_same = |&(other, number): &(u32, u32)| other == half && cells_of(number) == self.row;
        if let Some(&(_, number)) = self.table.find(spread(half), is_same) {
            return Ok((number, false));
        }
        let number = u32::try_from(self.rows).map_err(|_| {
            let message = "more than 4,294,967,295 distinct rows";
            vervet_model::Error::new(vervet_model::ErrorKind::MemoryLimit, message)
        })?;
        self.table.insert_unique(spread(half), (half, number), |&(half, _)| spread(half));
        self.cells.extend_from_slice(&self.row);
        self.rows += 1;
        Ok((number, true))
    }

    /// Size in bytes, as memory caps count it.
    pub(crate) fn size_bytes(&self) -> u64 {
        (8 * self.cells.capacity() + 9 * self.table.capacity()) as u64
    }
}

fn hash_of(cells: &[Id]) -> u64 {
    let mut hasher = FxHasher::default();
    cells.iter().for_each(|id| hasher.write_u64(id.bits()));
    // FxHash leaves the low bits weak for keys that differ in high bits only.
    hasher.finish() ^ hasher.finish() >> 29
}

/// Half of the bits of a hash.
fn half(hash: u64) -> u32 {
    let [a, b, c, d, ..] = (hash ^ hash >> 32).to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// A hash whose low bits, which choose the bucket, and highest bits, which are the tag, are those of `half`.
fn spread(half: u32) -> u64 {
    u64::from(half) << 32 | u64::from(half)
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

    /// The shard of a row with this hash.
    fn shard(hash: u64) -> usize {
        // The hash table uses the low bits for the bucket and the highest ones for the tag.
        usize::try_from(hash >> 40).unwrap_or(0) % SHARD_COUNT
    }

    /// Inserts all rows of a batch; `new` receives the numbers of the new ones, ascending. `order` and
    /// `cells` are buffers.
    pub(crate) fn insert_all(
        &self,
        variables: &[Variable],
        batch: &Batch,
        order: &mut Vec<(usize, u32, u64)>,
        cells: &mut Vec<Id>,
        new: &mut Vec<u32>,
        control: &Control<'_>,
    ) -> Result<()> {
        order.clear();
        for (row, number) in (0..batch.rows).zip(0_u32..) {
            cells.clear();
            cells.extend(variables.iter().map(|&variable| batch.value(variable, row)));
            let hash = hash_of(cells);
            order.push((Self::shard(hash), number, hash));
        }
        order.sort_unstable();
        new.clear();
        for rows in order.chunk_by(|a, b| a.0 == b.0) {
            // A shard is consistent between two insertions, so a panic elsewhere does not corrupt it.
            let mut shard = self.shards[rows[0].0].lock().unwrap_or_else(PoisonError::into_inner);
            let Shard { seen, counted_bytes } = &mut *shard;
            for &(_, row, hash) in rows {
                if seen.insert_hashed(batch, row as usize, hash)?.1 {
                    new.push(row);
                }
            }
            control.recount(counted_bytes, seen.size_bytes())?;
        }
        new.sort_unstable();
        Ok(())
    }
}
