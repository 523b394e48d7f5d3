//! The trait of the formats for rows.

use crate::TermSource;
use vervet_model::{Id, Result};

/// Serializer of one format. All bytes go to `out`, which the caller drains.
pub(crate) trait RowFormat {
    fn start(&mut self, columns: &[&str], out: &mut Vec<u8>);
    /// `columns` has one slice of `rows` ids for each column.
    fn rows(
        &mut self,
        columns: &[&[Id]],
        rows: usize,
        source: &dyn TermSource,
        out: &mut Vec<u8>,
    ) -> Result<()>;
    fn finish(&mut self, out: &mut Vec<u8>);
}
