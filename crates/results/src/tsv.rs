//! TSV writer: serializes each column of a batch contiguously, then interleaves the cells into lines.
//!
//! Cells are always in full N-Triples form (no abbreviated numbers), which escapes tabs and line ends.
//! Unbound cells are empty.

use crate::TermSource;
use crate::cells::{Cells, PIECE_BYTES};
use crate::row_format::RowFormat;
use vervet_model::{Id, Result};

#[derive(Default)]
pub(crate) struct Tsv {
    columns: Vec<Cells>,
    bound: Vec<Id>,
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
        let bytes: usize = self.columns.iter().map(Cells::size_bytes).sum();
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
