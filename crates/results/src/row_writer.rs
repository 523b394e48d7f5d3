//! Writer of solutions in a format for rows.

use crate::buffer_pool::PooledBuffer;
use crate::csv::Csv;
use crate::json::Json;
use crate::row_format::RowFormat;
use crate::table::Table;
use crate::tsv::Tsv;
use crate::xml::Xml;
use crate::{Format, TableOptions, TermSource};
use std::io::Write;
use vervet_model::{Error, ErrorKind, Id, Result};

/// Output buffer size at which bytes are written out, in bytes.
pub(crate) const BUFFER_BYTES: usize = 64 << 10;

/// Streams solutions.
///
/// ```
/// # use vervet_results::{Format, RowWriter, TermSource};
/// # use vervet_model::{Id, Inline, Result, TermParts};
/// # struct Numbers;
/// # impl TermSource for Numbers {
/// #     fn write_terms(&self, ids: &[Id], out: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<()> {
/// #         for id in ids { out.extend_from_slice(format!("<urn:n:{}>", id.payload()).as_bytes()); ends.push(out.len()); }
/// #         Ok(())
/// #     }
/// #     fn read_term(&self, _: Id, _: &mut String, _: &mut dyn FnMut(TermParts<'_>)) -> Result<()> { Ok(()) }
/// # }
/// let mut writer = RowWriter::new(Format::Tsv, &["x", "y"], Vec::new())?;
/// writer.batch(&[&[Id::vertex(1), Id::vertex(2)], &[Id::vertex(3), Id::UNBOUND]], 2, &Numbers)?;
/// assert_eq!(writer.finish()?, b"?x\t?y\n<urn:n:1>\t<urn:n:3>\n<urn:n:2>\t\n");
/// # Ok::<_, vervet_model::Error>(())
/// ```
pub struct RowWriter<W: Write> {
    format: Box<dyn RowFormat + Send>,
    column_count: usize,
    buffer: PooledBuffer,
    out: W,
}

impl<W: Write> RowWriter<W> {
    /// A writer of solutions with these column names (without `?`).
    ///
    /// # Errors
    /// The format is for graphs, or needs an [`ArrowWriter`](crate::ArrowWriter); `out` fails.
    pub fn new(format: Format, columns: &[&str], out: W) -> Result<Self> {
        let format: Box<dyn RowFormat + Send> = match format {
            Format::Tsv => Box::new(Tsv::default()),
            Format::Csv => Box::new(Csv::default()),
            Format::Json => Box::new(Json::default()),
            Format::Xml => Box::new(Xml::default()),
            Format::Table => Box::new(Table::new(TableOptions::default())),
            Format::Arrow => {
                return Err(Error::internal("Arrow needs the types of the columns: ArrowWriter"));
            }
            _ => {
                let message = format!("rows cannot be written as {format}");
                return Err(Error::new(ErrorKind::Input, message)
                    .with_hint("choose table, tsv, csv, json, xml or arrow"));
            }
        };
        Self::start(format, columns, out)
    }

    /// A writer of a terminal table.
    ///
    /// # Errors
    /// `out` fails.
    pub fn table(options: TableOptions, columns: &[&str], out: W) -> Result<Self> {
        Self::start(Box::new(Table::new(options)), columns, out)
    }

    fn start(mut format: Box<dyn RowFormat + Send>, columns: &[&str], out: W) -> Result<Self> {
        let mut buffer = PooledBuffer::default();
        format.start(columns, &mut buffer);
        Ok(Self { format, column_count: columns.len(), buffer, out })
    }

    /// Writes `rows` rows: one slice of ids per column, with [`Id::UNBOUND`] for unbound values.
    ///
    /// # Errors
    /// `out` or `source` fails; slices of wrong number or length.
    pub fn batch(&mut self, columns: &[&[Id]], rows: usize, source: &dyn TermSource) -> Result<()> {
        if columns.len() != self.column_count || columns.iter().any(|column| column.len() != rows) {
            return Err(Error::internal(format!(
                "a batch of {rows} rows does not fit {} columns",
                self.column_count
            )));
        }
        self.format.rows(columns, rows, source, &mut self.buffer)?;
        if self.buffer.len() >= BUFFER_BYTES { self.write_buffer() } else { Ok(()) }
    }

    /// Completes the document, and returns `out`.
    ///
    /// # Errors
    /// `out` fails.
    pub fn finish(mut self) -> Result<W> {
        self.format.finish(&mut self.buffer);
        self.write_buffer()?;
        self.out.flush().map_err(|error| Error::io("write the result", &error))?;
        Ok(self.out)
    }

    fn write_buffer(&mut self) -> Result<()> {
        let result = self.out.write_all(&self.buffer);
        self.buffer.clear();
        result.map_err(|error| Error::io("write the result", &error))
    }
}
