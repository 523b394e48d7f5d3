//! Batches of rows of one column: decoded by the library, and formatted as text.

use super::error::refused;
use super::field::{self, Content, Kind};
use super::guard::{CheckedPageReader, Input};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray, Int96};
use parquet::errors::Result;
use parquet::file::metadata::ColumnChunkMetaData;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A column of a row group.
pub(super) struct Column {
    reader: ColumnReader,
    kind: Kind,
    levels_max: [i16; 2],
    /// Number of list values in the pages since the last batch (see `guard`).
    values: Arc<AtomicU64>,
    levels: Levels,
    buffers: Buffers,
    rows: BatchValues,
}

#[derive(Default)]
struct Levels {
    repetition: Vec<i16>,
    definition: Vec<i16>,
}

/// Buffers for decoded values.
#[derive(Default)]
struct Buffers {
    booleans: Vec<bool>,
    ints: Vec<i32>,
    longs: Vec<i64>,
    int96s: Vec<Int96>,
    floats: Vec<f32>,
    doubles: Vec<f64>,
    fixed: Vec<FixedLenByteArray>,
}

/// The values of a batch.
#[derive(Default)]
struct BatchValues {
    /// Strings in buffers of the library, shared with its pages.
    shared: Vec<ByteArray>,
    /// Concatenated texts of all other values, and their ends.
    text: String,
    ends: Vec<usize>,
    /// The end of each row in values; empty: one value per row.
    row_ends: Vec<usize>,
    /// Indexes of values without a text, ascending, with the reason.
    faults: Vec<(usize, &'static str)>,
}

impl Column {
    /// `rows`: number of rows of the row group.
    pub(super) fn open(
        input: &Input,
        chunk: &ColumnChunkMetaData,
        rows: usize,
        content: Content,
    ) -> Result<Self> {
        if chunk.file_path().is_some_and(|path| !path.is_empty()) {
            return Err(refused("its values are in another file, which is not supported"));
        }
        let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
        let (Ok(start), Ok(length)) = (u64::try_from(start), u64::try_from(chunk.compressed_size())) else {
            return Err(refused("its offset in the file is negative"));
        };
        if start.checked_add(length).is_none_or(|end| end > input.size) {
            return Err(refused("it is beyond the end of the file, which is truncated or damaged"));
        }
        let values = Arc::default();
        let pages = CheckedPageReader::new(input, chunk, rows, Arc::clone(&values))?;
        let column = chunk.column_descr_ptr();
        let levels_max = [column.max_rep_level(), column.max_def_level()];
        Ok(Self {
            reader: get_column_reader(column, Box::new(pages)),
            kind: content.kind,
            levels_max,
            values,
            levels: Levels::default(),
            buffers: Buffers::default(),
            rows: BatchValues::default(),
        })
    }

    /// Reads the next `count` rows.
    pub(super) fn read(&mut self, count: usize) -> Result<()> {
        // Relaxed: a counter within this thread.
        self.values.store(0, Ordering::Relaxed);
        self.levels.repetition.clear();
        self.levels.definition.clear();
        self.rows.clear();
        let (kind, levels, rows, buffers) = (self.kind, &mut self.levels, &mut self.rows, &mut self.buffers);
        match &mut self.reader {
            ColumnReader::BoolColumnReader(reader) => {
                take(reader, count, levels, &mut buffers.booleans)?;
                rows.write(&buffers.booleans, |value, text| {
                    field::write_boolean(*value, text);
                    Ok(())
                });
            }
            ColumnReader::Int32ColumnReader(reader) => {
                take(reader, count, levels, &mut buffers.ints)?;
                rows.write(&buffers.ints, |value, text| field::write_i32(*value, kind, text));
            }
            ColumnReader::Int64ColumnReader(reader) => {
                take(reader, count, levels, &mut buffers.longs)?;
                rows.write(&buffers.longs, |value, text| field::write_i64(*value, kind, text));
            }
            ColumnReader::Int96ColumnReader(reader) => {
                take(reader, count, levels, &mut buffers.int96s)?;
                rows.write(&buffers.int96s, field::write_int96);
            }
            ColumnReader::FloatColumnReader(reader) => {
                take(reader, count, levels, &mut buffers.floats)?;
                rows.write(&buffers.floats, |value, text| {
                    field::write_f32(*value, text);
                    Ok(())
                });
            }
            ColumnReader::DoubleColumnReader(reader) => {
                take(reader, count, levels, &mut buffers.doubles)?;
                rows.write(&buffers.doubles, |value, text| {
                    field::write_f64(*value, text);
                    Ok(())
                });
            }
            ColumnReader::ByteArrayColumnReader(reader) if matches!(kind, Kind::Text | Kind::Bytes) => {
                take(reader, count, levels, &mut rows.shared)?;
            }
            ColumnReader::ByteArrayColumnReader(reader) => {
                take(reader, count, levels, &mut rows.shared)?;
                let bytes = std::mem::take(&mut rows.shared);
                rows.write(&bytes, |value, text| field::write_bytes(value.data(), kind, text));
            }
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                take(reader, count, levels, &mut buffers.fixed)?;
                rows.write(&buffers.fixed, |value, text| field::write_bytes(value.data(), kind, text));
            }
        }
        self.find_rows(count)
    }

    /// Assigns values to rows.
    fn find_rows(&mut self, count: usize) -> Result<()> {
        let [repetition_max, definition_max] = self.levels_max;
        let Levels { repetition, definition } = &self.levels;
        let is_value = |at: usize| definition_max == 0 || definition.get(at) == Some(&definition_max);
        let rows = &mut self.rows;
        let mut values = 0;
        if repetition_max > 0 {
            for (at, level) in repetition.iter().enumerate() {
                if *level == 0 && at > 0 {
                    rows.row_ends.push(values);
                }
                values += usize::from(is_value(at));
            }
            if !repetition.is_empty() {
                rows.row_ends.push(values);
            }
            if repetition.first().is_some_and(|first| *first != 0) {
                return Err(refused("a list begins before its row"));
            }
        } else if definition_max > 0 {
            for at in 0..definition.len() {
                values += usize::from(is_value(at));
                rows.row_ends.push(values);
            }
        } else {
            values = rows.count();
        }
        let found = if repetition_max + definition_max > 0 { rows.row_ends.len() } else { values };
        if found != count || values != rows.count() {
            return Err(refused("it has fewer or more rows than its row group"));
        }
        Ok(())
    }

    /// All values of the batch; values without a text are added to the faults.
    pub(super) fn texts(&mut self) -> (Vec<&str>, Faults<'_>) {
        let rows = &mut self.rows;
        let mut texts = Vec::with_capacity(rows.shared.len() + rows.ends.len());
        for (at, bytes) in rows.shared.iter().enumerate() {
            texts.push(std::str::from_utf8(bytes.data()).unwrap_or_else(|_| {
                rows.faults.push((at, "the text is not UTF-8"));
                ""
            }));
        }
        let mut start = 0;
        for &end in &rows.ends {
            texts.push(&rows.text[start..end]);
            start = end;
        }
        (texts, Faults { row_ends: &rows.row_ends, faults: &rows.faults })
    }
}

/// Assignment of values to rows, and the values without a text.
#[derive(Clone, Copy)]
pub(super) struct Faults<'r> {
    row_ends: &'r [usize],
    faults: &'r [(usize, &'static str)],
}

impl Faults<'_> {
    /// The values of a row.
    pub(super) fn values_of(&self, row: usize) -> Range<usize> {
        match self.row_ends {
            [] => row..row + 1,
            ends => row.checked_sub(1).map_or(0, |before| ends[before])..ends[row],
        }
    }

    /// The reason why one of these values has no text, if any.
    pub(super) fn of(&self, values: &Range<usize>) -> Option<&'static str> {
        if self.faults.is_empty() {
            return None;
        }
        let first = self.faults.partition_point(|(at, _)| *at < values.start);
        self.faults.get(first).filter(|(at, _)| values.contains(at)).map(|(_, why)| *why)
    }
}

impl BatchValues {
    fn clear(&mut self) {
        self.shared.clear();
        self.text.clear();
        self.ends.clear();
        self.row_ends.clear();
        self.faults.clear();
    }

    fn count(&self) -> usize {
        self.shared.len() + self.ends.len()
    }

    fn write<T>(
        &mut self,
        values: &[T],
        mut write: impl FnMut(&T, &mut String) -> std::result::Result<(), &'static str>,
    ) {
        for (at, value) in values.iter().enumerate() {
            let start = self.text.len();
            if let Err(why) = write(value, &mut self.text) {
                self.text.truncate(start);
                self.faults.push((at, why));
            }
            self.ends.push(self.text.len());
        }
    }
}

/// Decodes `count` rows with the library.
fn take<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    count: usize,
    levels: &mut Levels,
    values: &mut Vec<T::T>,
) -> Result<()> {
    values.clear();
    let (definition, repetition) = (&mut levels.definition, &mut levels.repetition);
    let (rows, _, _) = reader.read_records(count, Some(definition), Some(repetition), values)?;
    if rows == count { Ok(()) } else { Err(refused("it ends before its row group does")) }
}
