//! Merge iterator over the current entries of one key: those of the lower segment and its cells.
//!
//! # Cost
//! Lower entries are read in chunks that grow fourfold, each found by a search from the end of the last one.

use crate::cell::{Cell, CellKey};
use crate::tree::{Iter, Tree};
use vervet_model::{Id, Result};
use vervet_snapshot::{Segment, successor};

/// Size of the first chunk, and of the largest, in entries.
const CHUNK_FIRST: usize = 16;
const CHUNK_MAX: usize = 1024;

/// The cells of a key from the second on, and the first.
pub(crate) type Cells<'a> = (Iter<'a, Cell>, &'a Cell);

/// Entries (neighbour, graph, edge) in ascending order.
pub(crate) struct MergedEntries<'a> {
    lower: Option<&'a dyn Segment>,
    key: Id,
    chunk: Vec<[Id; 3]>,
    /// Position of the next entry in the chunk.
    at: usize,
    /// Size of the next chunk; 0 at the end.
    ask: usize,
    /// Start of the chunk after this one.
    from: [Id; 3],
    cells: Iter<'a, Cell>,
    /// The next cell of the key.
    cell: Option<&'a Cell>,
}

impl<'a> MergedEntries<'a> {
    /// The entries of `key` that are not below `from`.
    pub(crate) fn from_entry(
        lower: Option<&'a dyn Segment>,
        cells: &'a Tree<Cell>,
        key: Id,
        from: [Id; 3],
    ) -> Self {
        let mut cells = cells.iter_from(CellKey::new(key, from));
        let cell = cells.next().filter(|cell| cell.key == key);
        Self::new(lower, key, from, (cells, cell))
    }

    /// All entries of `key`, which has cells.
    pub(crate) fn all(lower: Option<&'a dyn Segment>, key: Id, (cells, cell): Cells<'a>) -> Self {
        Self::new(lower, key, [Id::UNBOUND; 3], (cells, Some(cell)))
    }

    /// The entries of `key`, of which the lower segment has these, and which has cells.
    pub(crate) fn of_entries(lower: Vec<[Id; 3]>, key: Id, (cells, cell): Cells<'a>) -> Self {
        Self { chunk: lower, ..Self::new(None, key, [Id::UNBOUND; 3], (cells, Some(cell))) }
    }

    fn new(
        lower: Option<&'a dyn Segment>,
        key: Id,
        from: [Id; 3],
        (cells, cell): (Iter<'a, Cell>, Option<&'a Cell>),
    ) -> Self {
        let ask = if lower.is_some() { CHUNK_FIRST } else { 0 };
        Self { lower, key, chunk: Vec::new(), at: 0, ask, from, cells, cell }
    }

    /// The next entry.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<[Id; 3]>> {
        loop {
            if self.at == self.chunk.len() && self.ask > 0 {
                self.refill()?;
            }
            let lower = self.chunk.get(self.at).copied();
            let Some(cell) = self.cell else {
                self.at += usize::from(lower.is_some());
                return Ok(lower);
            };
            let own = cell.entry();
            if lower.is_some_and(|lower| lower < own) {
                self.at += 1;
                return Ok(lower);
            }
            // A cell for an entry of the lower segment marks it as removed.
            self.at += usize::from(lower == Some(own));
            self.cell = self.cells.next().filter(|cell| cell.key == self.key);
            if cell.is_present() {
                return Ok(Some(own));
            }
        }
    }

    fn refill(&mut self) -> Result<()> {
        self.chunk.clear();
        self.at = 0;
        if let Some(lower) = self.lower {
            lower.entries(self.key, self.from, self.ask, &mut self.chunk)?;
        }
        self.ask = if self.chunk.len() < self.ask { 0 } else { (self.ask * 4).min(CHUNK_MAX) };
        if let Some(last) = self.chunk.last() {
            self.from = successor(*last);
        }
        Ok(())
    }
}
