//! TSV writer: serializes each column of a batch contiguously, then interleaves the cells into lines.
//!
//! Cells are always in full N-Triples form (no abbreviated numbers), which escapes tabs and line ends.
//! Unbound cells are empty.

use crate::TermSource;
use crate::buffer_pool::PooledBuffer;
use crate::row_format::RowFormat;
use vervet_model::{Id, Result};

#[derive(Default)]
pub(crate) struct Tsv {
    columns: Vec<Cells>,
    bound: Vec<Id>,
}

/// Cells are copied in blocks of this size, because copies of variable length are function calls.
const PIECE_BYTES: usize = 64;

/// The cells of one column of a batch.
#[derive(Default)]
struct Cells {
    /// All cells, and [`PIECE_BYTES`] of padding.
    bytes: PooledBuffer,
    /// `ends[i]` is the end of cell `i` in `bytes`.
    ends: Vec<usize>,
}

impl RowFormat for Tsv {
    fn start(&mut self, columns: &[&str], out: &mut Vec<u8>) {
        self.columns.resize_with(columns.len(), Cells::default);
        for (i, name) in columns.iter().enumerate() {
            if i > 0 {
                out.push(b'\t');
            }
            out.push(b'?');
            out.extend_from_slice(name.as_bytes());
        }
        out.push(b'\n');
    }

    fn rows(
        &mut self,
        columns: &[&[Id]],
        rows: usize,
        source: &dyn TermSource,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        for (cells, ids) in self.columns.iter_mut().zip(columns) {
            cells.fill(ids, source, &mut self.bound)?;
        }
        let bytes: usize = self.columns.iter().map(|cells| cells.bytes.len()).sum();
        let mut at = out.len();
        // Larger than the output, because blocks are copied whole.
        out.resize(at + bytes + rows * columns.len().max(1) + PIECE_BYTES, 0);
        for row in 0..rows {
            for cells in &self.columns {
                at = cells.copy_cell(row, out, at);
                out[at] = b'\t';
                at += 1;
            }
            // Replaces the last tab.
            at -= usize::from(!self.columns.is_empty());
            out[at] = b'\n';
            at += 1;
        }
        out.truncate(at);
        Ok(())
    }

    fn finish(&mut self, _out: &mut Vec<u8>) {}
}

impl Cells {
    fn fill(&mut self, ids: &[Id], source: &dyn TermSource, bound: &mut Vec<Id>) -> Result<()> {
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

    /// Copies a cell to `at`; returns the position after it.
    #[inline]
    fn copy_cell(&self, row: usize, out: &mut [u8], at: usize) -> usize {
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
