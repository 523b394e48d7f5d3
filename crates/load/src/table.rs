//! CSV: rows of vertices or edges by the header of the file (see `header`).
//!
//! A column without a type gets the narrowest that holds all its values, so a file with such columns is read
//! twice. An empty cell is an absent property.

use crate::block::Malformed;
use crate::header::{Column, Role, Table, words};
use crate::merge::Merger;
use crate::property::{EDGE_LABEL, PropertyWriter, Refused, VERTEX_LABEL};
use crate::source::{Source, read_error, read_full};
use crate::target::Target;
use crate::value::Type;
use csv::{ErrorKind as CsvError, ReaderBuilder, StringRecord};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use vervet_model::{Error, ErrorKind, Id, Result};

/// The header must end within this many bytes.
const HEADER_BYTES_MAX: usize = 1 << 16;

/// How rows are cut.
struct Dialect {
    names_from_files: bool,
    has_header: bool,
}

type Rows = csv::Reader<Box<dyn Read + Send>>;

/// Reads all of `source`.
pub(crate) fn load_csv<T: Target + ?Sized>(source: &mut Source, merger: &mut Merger<'_, T>) -> Result<()> {
    source.keep()?;
    let names_from_files = merger.options.names_from_files;
    // The first look at the file does not count as progress.
    let mut rows = open(source, &Arc::default(), &Dialect { names_from_files, has_header: true })?;
    let header = match rows.headers() {
        Ok(header) => header.clone(),
        Err(error) => return Err(failure(source.name(), error, 1, merger)),
    };
    let fields: Vec<&str> = header.iter().collect();
    let mut dialect = Dialect { names_from_files, has_header: true };
    let words = words(source.stem()).join("_");
    let mut table = match Table::from_header(&fields, source.stem(), names_from_files) {
        Ok(table) => {
            merger.csv_tables.insert(words, table.clone());
            table
        }
        // A file without a header can continue one of the same name.
        Err(error) => match merger.csv_tables.get(&words) {
            Some(table) if names_from_files && table.columns.len() == fields.len() => {
                dialect.has_header = false;
                rows = open(source, &Arc::default(), &dialect)?;
                table.clone()
            }
            _ => return Err(error.context(format_args!("{}:1", source.name()))),
        },
    };
    if table.columns.iter().any(is_untyped) {
        infer(&mut table.columns, &mut rows, source.name(), merger)?;
    }
    let counted = Arc::clone(&merger.bytes);
    let mut rows = open(source, &counted, &dialect)?;
    if dialect.has_header {
        // Moves behind the header, so that positions are those of rows.
        rows.headers().map_err(|error| failure(source.name(), error, 1, merger))?;
    }
    let mut writer = PropertyWriter::new(merger)?;
    let mut record = StringRecord::new();
    loop {
        let line = rows.position().line();
        match rows.read_record(&mut record) {
            Ok(false) => break,
            Ok(true) => match add_row(&table, &record, &mut writer) {
                Ok(()) => {}
                Err(RowFailure::Field(field, message)) => {
                    let malformed = malformed(&record, field, message);
                    writer.merger.malformed(&malformed)?;
                }
                Err(RowFailure::Other(error)) => return Err(error),
            },
            Err(error) => match row_error(&error, line) {
                Some(malformed) => writer.merger.malformed(&malformed)?,
                None => return Err(failure(source.name(), error, line, writer.merger)),
            },
        }
    }
    writer.finish()
}

/// Opens the file, with the separator that its header has.
fn open(source: &mut Source, bytes: &Arc<AtomicU64>, dialect: &Dialect) -> Result<Rows> {
    let mut input = source.open(bytes)?;
    let mut head = vec![0; HEADER_BYTES_MAX];
    let length = read_full(&mut *input, &mut head).map_err(|error| read_error(source.name(), &error))?;
    head.truncate(length);
    let header = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let count = |separator: u8| memchr::memchr_iter(separator, header).count();
    // The last of equals wins, so a header of one column has a comma.
    let separator = [b'\t', b'|', b','].into_iter().max_by_key(|&separator| count(separator)).unwrap_or(b',');
    let input: Box<dyn Read + Send> = Box::new(io::Cursor::new(head).chain(input));
    // In the files of LDBC a quote is a character like any other.
    Ok(ReaderBuilder::new()
        .delimiter(separator)
        .quoting(!dialect.names_from_files)
        .has_headers(dialect.has_header)
        .buffer_capacity(1 << 18)
        .from_reader(input))
}

fn is_untyped(column: &Column) -> bool {
    column.kind.is_none() && !column.key.is_empty()
}

/// Gives a type to every column without one. Malformed rows are passed over; the second reading tells
/// of them.
fn infer<T: Target + ?Sized>(
    columns: &mut [Column],
    rows: &mut Rows,
    name: &str,
    merger: &Merger<'_, T>,
) -> Result<()> {
    let mut kinds: Vec<Option<Type>> = vec![None; columns.len()];
    let mut record = StringRecord::new();
    loop {
        let line = rows.position().line();
        match rows.read_record(&mut record) {
            Ok(false) => break,
            Ok(true) => {
                for ((column, kind), cell) in columns.iter().zip(&mut kinds).zip(&record) {
                    if is_untyped(column) && *kind != Some(Type::String) && !cell.is_empty() {
                        let found = Type::infer(cell);
                        *kind = Some(kind.map_or(found, |kind| kind.join(found)));
                    }
                }
            }
            Err(error) if row_error(&error, line).is_some() => {}
            Err(error) => return Err(failure(name, error, line, merger)),
        }
    }
    for (column, kind) in columns.iter_mut().zip(kinds) {
        if column.kind.is_none() {
            column.kind = Some(kind.unwrap_or(Type::String));
        }
    }
    Ok(())
}

/// Why a row is not added.
enum RowFailure {
    /// The field, and what is wrong with it.
    Field(usize, String),
    Other(Error),
}

impl From<Error> for RowFailure {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// The same, of a name in this field.
fn at(field: usize) -> impl Fn(Refused) -> RowFailure {
    move |refused| match refused {
        Refused::Name(message) => RowFailure::Field(field, message),
        Refused::Other(error) => RowFailure::Other(error),
    }
}

/// Adds the vertex or edge of a row. A malformed row adds nothing.
fn add_row<T: Target + ?Sized>(
    table: &Table,
    record: &StringRecord,
    writer: &mut PropertyWriter<'_, '_, T>,
) -> Result<(), RowFailure> {
    let (mut id, mut label, mut source, mut target) = (None, None, None, None);
    let mut values: Vec<(Id, Id)> = Vec::with_capacity(record.len());
    for (field, (column, cell)) in table.columns.iter().zip(record).enumerate() {
        if cell.is_empty() {
            continue;
        }
        match &column.role {
            Role::Id(space) => id = Some((field, space, cell)),
            Role::Label => label = Some((field, cell)),
            Role::Source(space) => source = Some((field, space, cell)),
            Role::Target(space) => target = Some((field, space, cell)),
            Role::Property | Role::Ignored => {}
        }
        if column.key.is_empty() {
            continue;
        }
        let kind = column.kind.unwrap_or(Type::String);
        let one = [cell];
        let many: Vec<&str> = if column.is_array { cell.split(';').collect() } else { Vec::new() };
        let key = writer.key(&column.key).map_err(at(field))?;
        for text in if column.is_array { &many[..] } else { &one[..] } {
            let Some(lexical) = kind.canonical(text) else {
                let message =
                    format!("{text:?} in column {} is not a value of type {}", column.key, kind.name());
                return Err(RowFailure::Field(field, message));
            };
            values.push((key, writer.value(kind, &lexical)?));
        }
    }
    let subject = if table.is_edges {
        let (Some(source), Some(target)) = (source, target) else {
            return Err(RowFailure::Field(0, "the edge lacks its source or its target".to_owned()));
        };
        let [source, target] =
            [source, target].map(|(field, space, id)| writer.vertex(space, id).map_err(at(field)));
        let (field, label) = label.unwrap_or((0, table.label.as_deref().unwrap_or(EDGE_LABEL)));
        let label = writer.key(label).map_err(at(field))?;
        writer.edge(source?, label, target?, id.map(|(_, _, id)| id))?
    } else {
        let Some((field, space, id)) = id else {
            return Err(RowFailure::Field(0, "the vertex lacks its id".to_owned()));
        };
        let vertex = writer.vertex(space, id).map_err(at(field))?;
        let (field, labels) = label.unwrap_or((0, table.label.as_deref().unwrap_or(VERTEX_LABEL)));
        let labels = labels.split(';').filter(|label| !label.is_empty());
        let labels: Vec<Id> =
            labels.map(|label| writer.label_id(label).map_err(at(field))).collect::<Result<_, _>>()?;
        for label in labels {
            writer.label(vertex, label)?;
        }
        vertex
    };
    for (key, value) in values {
        writer.add(subject, key, value, Id::UNBOUND)?;
    }
    Ok(())
}

/// The place of a field. The column counts characters as they stand in the file, but not the quotes of the
/// fields before.
fn malformed(record: &StringRecord, field: usize, message: String) -> Malformed {
    let before = record.iter().take(field).map(|field| field.chars().count() as u64 + 1).sum();
    let line = record.position().map_or(0, |position| position.line().saturating_sub(1));
    Malformed { line, column: Some(before), message, kind: ErrorKind::Input }
}

/// An error of the row that starts at `line` (from 1), behind which the file can be read on.
fn row_error(error: &csv::Error, line: u64) -> Option<Malformed> {
    let message = match error.kind() {
        CsvError::UnequalLengths { expected_len, len, .. } => {
            format!("the row has {len} fields, the header {expected_len}")
        }
        CsvError::Utf8 { err, .. } => format!("field {} is not UTF-8", err.field() + 1),
        _ => return None,
    };
    Some(Malformed { line: line.saturating_sub(1), column: Some(0), message, kind: ErrorKind::Input })
}

fn failure<T: Target + ?Sized>(name: &str, error: csv::Error, line: u64, merger: &Merger<'_, T>) -> Error {
    if let Some(malformed) = row_error(&error, line) {
        return merger.fatal(&malformed);
    }
    match error.into_kind() {
        CsvError::Io(error) => read_error(name, &error),
        other => Error::internal(format!("{name}:{line}: the CSV library says {other:?}")),
    }
}
