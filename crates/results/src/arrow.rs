//! Tables in the streaming format of Arrow IPC.
//!
//! # Shape
//! The types of the columns stand at the beginning of a stream, and depend on all of its values
//! ([`ColumnType`]). So the ids of a result are collected first; [`ArrowWriter`] then reads their terms and
//! writes batches. A batch is written once it has [`BATCH_ROWS`] rows or [`BATCH_BYTES`] bytes.
//! # Layout
//! A message is `ffffffff`, the size of its metadata (4 bytes), the metadata (a flatbuffer, padded to 8
//! bytes), and a body of buffers, each padded to 8 bytes. A stream is a schema, batches, and
//! `ffffffff 00000000`. All numbers are little endian. The schema has the number of rows as
//! [`ROWS_KEY`], so that a reader notices a stream that was cut between two messages.
//! # Source
//! Apache Arrow, columnar format 1.5 (metadata version 5), "IPC Streaming Format", and `Message.fbs`,
//! `Schema.fbs`. Written here: the library arrow-ipc would add nine packages to the program. Readers of
//! others read it in `python/tests/test_serve.py`.

mod column;
mod flatbuffer;
mod metadata;

use crate::scalar;
use crate::scalar::{ColumnType, Scalar};
use column::Column;
pub use metadata::ROWS_KEY;
use std::io::Write;
use vervet_model::{Error, Id, Result, TermParts};

/// The maximum number of rows of a batch.
const BATCH_ROWS: usize = 1 << 16;

/// The size from which on a batch is written, in bytes.
const BATCH_BYTES: usize = 1 << 20;

/// Calls a function with the parts of the term of an id. The string is a buffer to reuse.
pub type ReadTerm<'r> = dyn Fn(Id, &mut String, &mut dyn FnMut(TermParts<'_>)) -> Result<()> + 'r;

/// Reads the values of ids.
struct ScalarReader<'r> {
    read: &'r ReadTerm<'r>,
    scratch: String,
    text: String,
}

impl<'r> ScalarReader<'r> {
    fn new(read: &'r ReadTerm<'r>) -> Self {
        Self { read, scratch: String::new(), text: String::new() }
    }

    /// The value of an id. With `with_text`, its text is in `self.text` unless it has no value.
    fn scalar(&mut self, id: Id, with_text: bool) -> Result<Scalar> {
        match scalar::of_id(id) {
            Some(scalar) if scalar == Scalar::Null || !with_text => Ok(scalar),
            _ => {
                let (mut scalar, text) = (Scalar::Null, &mut self.text);
                text.clear();
                (self.read)(id, &mut self.scratch, &mut |parts| scalar = scalar::of_parts(parts, text))?;
                Ok(scalar)
            }
        }
    }
}

/// The type of a column of these ids, beside `known`, the type of those before them.
///
/// # Errors
/// Those of `read`.
pub fn column_type(known: ColumnType, ids: &[Id], read: &ReadTerm<'_>) -> Result<ColumnType> {
    let (mut found, mut reader) = (known, ScalarReader::new(read));
    for &id in ids {
        if found == ColumnType::Text {
            break;
        }
        found = found.with(ColumnType::of(reader.scalar(id, false)?));
    }
    Ok(found)
}

/// Streams rows.
///
/// ```
/// use vervet_model::Id;
/// use vervet_results::{ArrowWriter, ColumnType};
///
/// let mut writer = ArrowWriter::new(&[("n", ColumnType::Integer)], 0, Vec::new())?;
/// writer.rows(&[&[]], 0, &|_: Id, _, _| Ok(()))?;
/// let stream = writer.finish()?;
/// assert!(stream.starts_with(b"\xff\xff\xff\xff") && stream.ends_with(b"\xff\xff\xff\xff\0\0\0\0"));
/// # Ok::<_, vervet_model::Error>(())
/// ```
pub struct ArrowWriter<W: Write> {
    columns: Vec<Column>,
    /// Rows of the batch that is being built.
    row_count: usize,
    out: W,
}

impl<W: Write> ArrowWriter<W> {
    /// Begins a stream of `row_count` rows with these columns.
    ///
    /// # Errors
    /// `out` fails.
    pub fn new(columns: &[(&str, ColumnType)], row_count: u64, out: W) -> Result<Self> {
        let kinds = columns.iter().map(|(_, kind)| Column::new(*kind)).collect();
        let mut writer = Self { columns: kinds, row_count: 0, out };
        writer.message(&metadata::schema(columns, row_count))?;
        Ok(writer)
    }

    /// Adds `row_count` rows: one slice of ids per column, with [`Id::UNBOUND`] for unbound values.
    ///
    /// # Errors
    /// `out` or `read` fails; slices of wrong number or length.
    pub fn rows(&mut self, columns: &[&[Id]], row_count: usize, read: &ReadTerm<'_>) -> Result<()> {
        if columns.len() != self.columns.len() || columns.iter().any(|ids| ids.len() != row_count) {
            return Err(Error::internal(format!(
                "{row_count} rows do not fit {} columns",
                self.columns.len()
            )));
        }
        let mut reader = ScalarReader::new(read);
        for row in 0..row_count {
            let mut size_bytes = 0;
            for (column, ids) in self.columns.iter_mut().zip(columns) {
                let scalar = reader.scalar(ids[row], column.has_text())?;
                column.push(scalar, &reader.text);
                size_bytes += column.size_bytes();
            }
            self.row_count += 1;
            if self.row_count >= BATCH_ROWS || size_bytes >= BATCH_BYTES {
                self.write_batch()?;
            }
        }
        Ok(())
    }

    /// Completes the stream, and returns `out`.
    ///
    /// # Errors
    /// `out` fails.
    pub fn finish(mut self) -> Result<W> {
        if self.row_count > 0 {
            self.write_batch()?;
        }
        self.write(&metadata::CONTINUATION)?;
        self.write(&[0; 4])?;
        self.out.flush().map_err(|error| Error::io("write the result", &error))?;
        Ok(self.out)
    }

    fn write_batch(&mut self) -> Result<()> {
        let mut columns = std::mem::take(&mut self.columns);
        let buffers: Vec<&[u8]> = columns.iter().flat_map(Column::buffers).collect();
        let nulls: Vec<usize> = columns.iter().map(Column::null_count).collect();
        let written = self.message(&metadata::batch(self.row_count, &nulls, &buffers)).and_then(|()| {
            for buffer in &buffers {
                self.write(buffer)?;
                self.write(&[0; 8][..metadata::padding(buffer.len())])?;
            }
            Ok(())
        });
        columns.iter_mut().for_each(Column::clear);
        self.columns = columns;
        self.row_count = 0;
        written
    }

    /// Writes the metadata of a message, which has a multiple of 8 bytes.
    fn message(&mut self, metadata: &[u8]) -> Result<()> {
        let length = u32::try_from(metadata.len())
            .map_err(|_| Error::internal("the metadata of a message have 4 GiB"))?;
        self.write(&metadata::CONTINUATION)?;
        self.write(&length.to_le_bytes())?;
        self.write(metadata)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(|error| Error::io("write the result", &error))
    }
}

/// Writes the result of `ASK`: a table with one row and the column `boolean`.
///
/// # Errors
/// `out` fails.
pub(crate) fn write_boolean(answer: bool, out: &mut dyn Write) -> Result<()> {
    let mut writer = ArrowWriter::new(&[("boolean", ColumnType::Boolean)], 1, out)?;
    writer.columns[0].push(Scalar::Boolean(answer), "");
    writer.row_count = 1;
    writer.finish().map(drop)
}
