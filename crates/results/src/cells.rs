//! The cells of a column of a batch, as N-Triples.

use crate::TermSource;
use crate::buffer_pool::PooledBuffer;
use vervet_model::{Id, Result};

/// Cells are copied in blocks of this size, because copies of variable length are function calls.
pub(crate) const PIECE_BYTES: usize = 64;

/// The cells of one column of a batch.
#[derive(Default)]
pub(crate) struct Cells {
    /// All cells, and [`PIECE_BYTES`] of padding.
    bytes: PooledBuffer,
    /// `ends[i]` is the end of cell `i` in `bytes`.
    ends: Vec<usize>,
}

impl Cells {
    /// Bytes of all cells, with padding.
    pub(crate) fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Replaces the cells by the terms of `ids`; `bound` is a reusable buffer. An unbound cell is empty.
    pub(crate) fn fill(&mut self, ids: &[Id], source: &dyn TermSource, bound: &mut Vec<Id>) -> Result<()> {
        self.bytes.clear();
        self.ends.clear();
        let filled = self.fill_bare(ids, source, bound);
        let bytes = self.bytes.len();
        self.bytes.resize(bytes + PIECE_BYTES, 0);
        filled
    }

    fn fill_bare(&mut self, ids: &[Id], source: &dyn TermSource, bound: &mut Vec<Id>) -> Result<()> {
        if ids.iter().all(|id| id.is_bound()) {
            return source.write_terms(ids, &mut self.bytes, &mut self.ends);
        }
        bound.clear();
        bound.extend(ids.iter().filter(|id| id.is_bound()));
        source.write_terms(bound, &mut self.bytes, &mut self.ends)?;
        // Distributes the ends over all rows, backwards; an unbound cell is empty.
        let mut next = self.ends.len();
        self.ends.resize(ids.len(), 0);
        for (row, id) in ids.iter().enumerate().rev() {
            self.ends[row] = if next == 0 { 0 } else { self.ends[next - 1] };
            if id.is_bound() {
                next -= 1;
            }
        }
        Ok(())
    }

    /// The text of a cell.
    pub(crate) fn cell(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.bytes[start..self.ends[row]]
    }

    /// Copies a cell to `at`; returns the position after it.
    #[inline]
    pub(crate) fn copy_cell(&self, row: usize, out: &mut [u8], at: usize) -> usize {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        let end = self.ends[row];
        let piece = self.bytes.get(start..).and_then(|rest| rest.first_chunk::<PIECE_BYTES>());
        let place = out.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<PIECE_BYTES>());
        match (piece, place) {
            (Some(piece), Some(place)) if end - start <= PIECE_BYTES => *place = *piece,
            _ => out[at..at + end - start].copy_from_slice(&self.bytes[start..end]),
        }
        at + end - start
    }
}
