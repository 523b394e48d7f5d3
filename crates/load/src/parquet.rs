//! Parquet loader: rows of vertices or edges, with column roles from names or a mapping, as for CSV.
//!
//! # Shape
//! `guard` is between the file and the library and enforces limits that the library lacks (`thrift` and
//! `delta` check the same bytes first, `unpack` decompresses). `field` maps column types and formats values
//! as text, `batch` reads a batch of rows of a column. Rows become vertices and edges by the code for CSV
//! (`table`).
//! # Invariants
//! A panic of the library is an error of the file. An error ends the load, except for invalid values.
//! # Cost
//! Memory: a page and a dictionary for each used column, and a batch of rows; one thread.

mod batch;
mod delta;
mod error;
mod field;
mod guard;
mod thrift;
mod unpack;

pub use guard::{
    ELEMENTS_MAX, FOOTER_BYTES_MAX, LIST_VALUES_MAX, PAGE_BYTES_MAX, PAGES_BYTES_MIN, PAGES_TIMES_MAX,
    ROW_GROUPS_MAX, SCHEMA_DEPTH_MAX, WORK_TIMES_MAX,
};

use crate::dialect::Dialect;
use crate::header::{Column as TableColumn, Role, Table};
use crate::merge::Merger;
use crate::options::LoadOptions;
use crate::property::PropertyWriter;
use crate::source::{Layout, Origin, Source};
use crate::table::{Cell, Interpretation, RowFailure, RowState, add_row};
use crate::target::Target;
use crate::value::Type;
use batch::Column;
use field::{Content, Field, Kind};
use guard::{Input, Store};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use vervet_model::{Error, ErrorKind, Result};

/// Maximum number of rows per batch.
const BATCH_ROWS: usize = 1024;
/// Maximum number of rows per batch for files with lists.
const BATCH_ROWS_OF_LISTS: usize = 256;
/// Magic bytes at both ends of a file.
const MAGIC: &[u8; 4] = b"PAR1";
/// Size of the end of a file: the length of the footer, and the magic bytes.
const TAIL_BYTES: usize = 8;

/// Loads all of `source`.
pub(crate) fn load_parquet<T: Target + ?Sized>(
    source: &mut Source,
    merger: &mut Merger<'_, T>,
) -> Result<()> {
    let mut file = File::open(source)?;
    let Interpretation { table, dialect, .. } = file.interpret(source, merger.options, false)?;
    file.input.count = Arc::clone(&merger.bytes);
    let before = merger.bytes.load(Ordering::Relaxed);
    let mut columns = Vec::with_capacity(table.columns.len());
    for (column, field) in table.columns.iter().zip(&file.fields) {
        columns.push(if is_used(column) { Some(file.content(field, column)?) } else { None });
    }
    let mut writer = PropertyWriter::new(merger)?;
    let mut first_row = 1;
    for group in 0..file.metadata.num_row_groups() {
        first_row += file.load_group(group, first_row, &table, &dialect, &columns, &mut writer)?;
    }
    // Skipped parts count as read for progress.
    let read = writer.merger.bytes.load(Ordering::Relaxed) - before;
    writer.merger.bytes.fetch_add(file.input.size.saturating_sub(read), Ordering::Relaxed);
    writer.finish()
}

/// The interpretation of a file from the mapping, the names and types of its columns, and its file name; a
/// default if these are not sufficient.
pub(crate) fn interpret(source: &mut Source, options: &LoadOptions<'_>) -> Result<Interpretation> {
    File::open(source)?.interpret(source, options, true)
}

/// Whether a column has a role.
fn is_used(column: &TableColumn) -> bool {
    !matches!(column.role, Role::Ignored | Role::Property) || !column.key.is_empty()
}

struct File {
    name: String,
    input: Input,
    metadata: ParquetMetaData,
    fields: Vec<Field>,
}

impl File {
    fn open(source: &mut Source) -> Result<Self> {
        source.keep()?;
        let name = source.name().to_owned();
        let size = source.size_bytes().ok_or_else(|| {
            Error::new(ErrorKind::Input, format!("{name} is not a file"))
                .with_hint("Parquet is read from its end: write it to a file first")
        })?;
        let store = match source.origin() {
            Origin::Path(path) => {
                let file =
                    std::fs::File::open(path).map_err(|error| Error::io(format!("open {name}"), &error))?;
                Store::File(Mutex::new(file))
            }
            Origin::Bytes(bytes) => Store::Bytes(bytes::Bytes::from_owner(Arc::clone(bytes))),
            Origin::Reader(_) => return Err(Error::internal("a stream that was kept is a stream still")),
        };
        let input = Input::new(store, size);
        let metadata = footer(&input).map_err(|problem| problem.of(&name, ""))?;
        let fields = guarded(|| Ok(field::fields(metadata.file_metadata().schema_descr())))
            .map_err(|problem| problem.of(&name, "schema: "))?;
        Ok(Self { name, input, metadata, fields })
    }

    /// The table, with a type for each property column.
    fn interpret(&self, source: &Source, options: &LoadOptions<'_>, guess: bool) -> Result<Interpretation> {
        let names: Vec<&str> = self.fields.iter().map(|field| field.name.as_str()).collect();
        let mapping = options.mapping.as_ref();
        let mapped = mapping.and_then(|mapping| mapping.dialect(source.name()));
        let is_mapped = mapped.is_some();
        let names_from_files = options.names_from_files && !is_mapped;
        let mut dialect = mapped.unwrap_or_default();
        if !dialect.has_header {
            return Err(Error::new(
                ErrorKind::Input,
                format!("{}: the columns of Parquet have names", self.name),
            )
            .with_hint("leave `header = false` out of the mapping file"));
        }
        // Parquet has nulls; a mapping may define null texts in addition. Empty strings are values.
        if dialect.nulls == Dialect::default().nulls {
            dialect.nulls.clear();
        }
        let layout = source.layout().filter(|_| !is_mapped);
        let table = match (layout, mapping.and_then(|mapping| mapping.table(source.name(), &names))) {
            (Some(Layout::Columns(columns)), _) => columns.0.positional(names.len()),
            (_, Some(table)) => table,
            (_, None) => Table::from_header(&names, &options.header_names(source.stem(), names_from_files)),
        };
        let mut guessed = None;
        let mut table = match table {
            Err(error) if guess => {
                guessed = Some(error);
                Table::guess(&names)
            }
            table => table.map_err(|error| error.context(&self.name))?,
        };
        for (column, field) in table.columns.iter_mut().zip(&self.fields) {
            if !is_used(column) {
                continue;
            }
            let content = self.content(field, column)?;
            if content.is_list && matches!(column.role, Role::Id(_) | Role::Source(_) | Role::Target(_)) {
                let message =
                    format!("{}: column {} is a list, which cannot be an id", self.name, field.name);
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
            column.is_array |= content.is_list;
            if !column.key.is_empty() {
                column.kind.get_or_insert(content.kind.to_type());
            }
        }
        Ok(Interpretation { table, edges: None, dialect, notes: Vec::new(), guessed })
    }

    /// The content of a column, if it is readable.
    fn content(&self, field: &Field, column: &TableColumn) -> Result<Content> {
        let refused = |what: &str| {
            let message =
                format!("{}: column {} has the type {what}, which is not supported", self.name, field.name);
            Error::new(ErrorKind::Unsupported, message)
        };
        match &field.content {
            Ok(content) if content.kind == Kind::Bytes && column.kind != Some(Type::String) => Err(refused(
                "binary",
            )
            .with_hint("if it holds strings, give it the type string, in a mapping file or as name:string")),
            Ok(content) => Ok(*content),
            Err(what) => Err(refused(what).with_hint(
                "exclude the column in a mapping file (is = 'nothing'), or write it as columns of simple types",
            )),
        }
    }

    /// Adds the rows of a row group and returns their number. `first_row`: the number of its first row.
    fn load_group<T: Target + ?Sized>(
        &self,
        group: usize,
        first_row: usize,
        table: &Table,
        dialect: &Dialect,
        contents: &[Option<Content>],
        writer: &mut PropertyWriter<'_, '_, T>,
    ) -> Result<usize> {
        let metadata = self.metadata.row_group(group);
        let place = |field: usize| format!("row group {}, column {}: ", group + 1, self.fields[field].name);
        let count = usize::try_from(metadata.num_rows())
            .map_err(|_| Problem::File("it has a negative number of rows".to_owned()))
            .map_err(|problem| problem.of(&self.name, &format!("row group {}: ", group + 1)))?;
        let mut columns = Vec::with_capacity(contents.len());
        for (field, content) in contents.iter().enumerate() {
            let Some(content) = content else { continue };
            let open = || {
                let chunk = metadata
                    .columns()
                    .get(content.leaf)
                    .ok_or_else(|| error::refused("the row group does not have it"))?;
                Column::open(&self.input, chunk, count, *content)
            };
            let column = guarded(open).map_err(|problem| problem.of(&self.name, &place(field)))?;
            columns.push((field, *content, column));
        }
        let has_lists = columns.iter().any(|(_, content, _)| content.is_list);
        let batch_rows = if has_lists { BATCH_ROWS_OF_LISTS } else { BATCH_ROWS };
        let mut shared = RowState::new(table);
        shared.rows = (first_row - 1) as u64;
        let mut done = 0;
        while done < count {
            let rows = batch_rows.min(count - done);
            let mut batch = Vec::with_capacity(columns.len());
            for (field, content, column) in &mut columns {
                let (field, content) = (*field, *content);
                guarded(|| column.read(rows)).map_err(|problem| problem.of(&self.name, &place(field)))?;
                let (texts, faults) = column.texts();
                batch.push((field, content, texts, faults));
            }
            for row in 0..rows {
                let mut cells = vec![Cell::Absent; table.columns.len()];
                let mut fault = None;
                let mut text_bytes = 0;
                for (field, content, texts, faults) in &batch {
                    let values = faults.values_of(row);
                    if let Some(why) = faults.of(&values) {
                        fault.get_or_insert((*field, why));
                    }
                    let texts = &texts[values];
                    text_bytes += texts.iter().map(|text| text.len() as u64).sum::<u64>();
                    cells[*field] = match texts {
                        [] => Cell::Absent,
                        [text] if content.kind.to_type() == Type::String && !content.is_list => {
                            if dialect.is_null(text) { Cell::Absent } else { Cell::Text(text) }
                        }
                        texts => Cell::Values(content.kind.to_type(), texts),
                    };
                }
                let work = self.input.budget.work(text_bytes).map_err(ParquetError::from);
                work.map_err(|error| {
                    Problem::from(error).of(&self.name, &format!("row group {}: ", group + 1))
                })?;
                let added = match fault {
                    Some((field, why)) => Err(RowFailure::Field(field, why.to_owned())),
                    None => add_row(table, dialect, cells.into_iter(), &mut shared, writer),
                };
                match added {
                    Ok(()) => {}
                    Err(RowFailure::Field(field, message)) => {
                        let (row, column) = (first_row + done + row, &self.fields[field].name);
                        let name = &self.name;
                        let message = format!(
                            "{name}: row {row} (row group {}), column {column}: {message}",
                            group + 1
                        );
                        writer.merger.skip_or_stop(Error::new(ErrorKind::Input, message))?;
                    }
                    Err(RowFailure::Other(error)) => return Err(error),
                }
            }
            done += rows;
            writer.merger.record_added(0)?;
        }
        Ok(count)
    }
}

/// Reads the footer of a file.
fn footer(input: &Input) -> std::result::Result<ParquetMetaData, Problem> {
    let file = |message: &str| Problem::File(message.to_owned());
    let head = input.exactly(0, MAGIC.len())?;
    if head.starts_with(&[0x1F, 0x8B]) || *head == [0x28, 0xB5, 0x2F, 0xFD] {
        return Err(file(
            "the file as a whole is compressed: decompress it first, since Parquet is read from its end",
        ));
    }
    let tail_start = input.size.saturating_sub(TAIL_BYTES as u64);
    let tail = input.exactly(tail_start, TAIL_BYTES)?;
    let Some((length, magic)) = tail.split_first_chunk::<4>() else { return Err(file("it is too short")) };
    if magic == b"PARE" {
        return Err(Problem::Unsupported("encrypted Parquet is not supported".to_owned()));
    }
    if *head != MAGIC[..] || magic != MAGIC {
        return Err(file("it does not start and end with PAR1: not a Parquet file, or a part of one"));
    }
    let length = u32::from_le_bytes(*length);
    if length as usize > FOOTER_BYTES_MAX {
        return Err(Problem::File(format!(
            "its footer has more than {FOOTER_BYTES_MAX} bytes (FOOTER_BYTES_MAX)"
        )));
    }
    let start = tail_start
        .checked_sub(u64::from(length))
        .filter(|start| *start >= MAGIC.len() as u64)
        .ok_or_else(|| file("its footer is longer than the file, which is cut off or damaged"))?;
    let bytes = input.exactly(start, length as usize)?;
    guard::check_footer(&bytes)
        .map_err(|message| Problem::File(format!("its footer is damaged: {message}")))?;
    guarded(|| ParquetMetaDataReader::decode_metadata(&bytes)).map_err(|problem| match problem {
        Problem::File(message) => Problem::File(format!("its footer is damaged: {message}")),
        problem => problem,
    })
}

/// An error in a file.
#[derive(Debug)]
enum Problem {
    File(String),
    Unsupported(String),
}

impl From<ParquetError> for Problem {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::General(message) | ParquetError::EOF(message) => Self::File(message),
            ParquetError::NYI(message) => Self::Unsupported(message),
            ParquetError::External(error) => Self::File(error.to_string()),
            other => Self::File(other.to_string()),
        }
    }
}

impl Problem {
    /// The error with its position.
    fn of(self, name: &str, place: &str) -> Error {
        match self {
            Self::File(message) => Error::new(ErrorKind::Input, format!("{name}: {place}{message}"))
                .with_hint("the file is damaged or has a wrong extension; fetch or write it again"),
            Self::Unsupported(message) => {
                Error::new(ErrorKind::Unsupported, format!("{name}: {place}{message}"))
            }
        }
    }
}

/// Calls the library; converts its errors and panics.
fn guarded<R>(call: impl FnOnce() -> parquet::errors::Result<R>) -> std::result::Result<R, Problem> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(done) => done.map_err(Problem::from),
        Err(panic) => {
            let why = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("no reason is given");
            Err(Problem::File(format!("the Parquet library panicked: {why}")))
        }
    }
}
