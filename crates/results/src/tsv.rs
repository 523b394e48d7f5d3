//! TSV: a batch becomes one run of bytes for each column, and then lines.
//!
//! Cells are always in full N-Triples form (no abbreviated numbers), whose escapes keep tabs and line ends
//! out of them. Unbound cells are empty.

use crate::{RowFormat, TermSource};
use vervet_model::{Id, Result};

#[derive(Default)]
pub(crate) struct Tsv {
    columns: Vec<Cells>,
    bound: Vec<Id>,
}

/// The cells of one column of a batch.
#[derive(Default)]
struct Cells {
    bytes: Vec<u8>,
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
        out.reserve(bytes + rows * columns.len().max(1));
        if let [only] = &self.columns[..] {
            only.lines(out);
            return Ok(());
        }
        for row in 0..rows {
            for (i, cells) in self.columns.iter().enumerate() {
                if i > 0 {
                    out.push(b'\t');
                }
                out.extend_from_slice(cells.cell(row));
            }
            out.push(b'\n');
        }
        Ok(())
    }

    fn finish(&mut self, _out: &mut Vec<u8>) {}
}

impl Cells {
    fn fill(&mut self, ids: &[Id], source: &dyn TermSource, bound: &mut Vec<Id>) -> Result<()> {
        self.bytes.clear();
        self.ends.clear();
        if ids.iter().all(|id| id.is_bound()) {
            return source.write_terms(ids, &mut self.bytes, &mut self.ends);
        }
        bound.clear();
        bound.extend(ids.iter().filter(|id| id.is_bound()));
        source.write_terms(bound, &mut self.bytes, &mut self.ends)?;
        // Spread the ends over all rows, from the back; an unbound cell ends where it starts.
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

    fn cell(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.bytes[start..self.ends[row]]
    }

    fn lines(&self, out: &mut Vec<u8>) {
        let mut start = 0;
        for &end in &self.ends {
            out.extend_from_slice(&self.bytes[start..end]);
            out.push(b'\n');
            start = end;
        }
    }
}
