//! CSV: rows of vertices or edges by the header of the file (see `header`) or by a mapping (see `mapping`).
//!
//! A column without a type gets the narrowest that holds all its values, so a file with such columns is read
//! twice. An empty cell is an absent property.
//!
//! # Cost
//! A row of an edge asks for two vertices, which may be anywhere in the dictionary: two or three misses for
//! each, one behind the other. So [`ROWS_AHEAD`] rows are read first, their IRIs made (about 40 bytes each,
//! no allocation) and hashed, and the target told: 16 look-ups miss together. An end that is that of the row
//! before is not asked for again. The LDBC social network, all of a load into a directory (2026-11-22, a
//! machine under load): 0.7 to 0.8 µs of the CPU a row; that was 1.1 to 1.3.

use crate::block::Malformed;
use crate::dialect::{Dialect, ListForm};
use crate::header::{Column, Names, Role, Table, words};
use crate::merge::Merger;
use crate::options::LoadOptions;
use crate::property::{EDGE_LABEL, PropertyWriter, Refused, VERTEX_LABEL, push_vertex};
use crate::source::{Source, read_error};
use crate::target::Target;
use crate::value::{Canonical, Type};
use csv::{ErrorKind as CsvError, ReaderBuilder, StringRecord};
use foldhash::HashMap as SeededMap;
use std::borrow::Cow;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vervet_model::{Error, ErrorKind, Id, Result};

/// Rows that are read before they are added, so that what they ask the target for is there; fewer if they are
/// long.
const ROWS_AHEAD: usize = 16;
const ROWS_AHEAD_BYTES: usize = 1 << 16;

/// Rows whose types are found between two looks at whether the load is cancelled.
const ROWS_BETWEEN_LOOKS: u64 = 1 << 12;
/// So many values of a narrower type make a text behind them worth a note…
const NARROW_MIN: u64 = 3;
/// … that has so much of it.
const NOTED_CHARACTERS_MAX: usize = 40;

type Rows = csv::Reader<Box<dyn Read + Send>>;

/// Reads all of `source`.
pub(crate) fn load_csv<T: Target + ?Sized>(source: &mut Source, merger: &mut Merger<'_, T>) -> Result<()> {
    let Understood { table, dialect, notes, .. } =
        understand(source, merger.options, &mut merger.csv_tables, false)?;
    notes.into_iter().for_each(|note| merger.report.note(note));
    let counted = Arc::clone(&merger.bytes);
    let mut rows = open(source, &counted, &dialect)?;
    if dialect.has_header {
        // Moves behind the header, so that positions are those of rows.
        rows.headers().map_err(|error| failure(source.name(), error, 1))?;
    }
    let mut writer = PropertyWriter::new(merger)?;
    let mut shared = Shared::new(&table);
    let mut records = vec![StringRecord::new(); ROWS_AHEAD];
    loop {
        let (mut count, mut bytes) = (0, 0);
        let end = loop {
            let line = rows.position().line();
            match rows.read_record(&mut records[count]) {
                Ok(true) => {
                    bytes += records[count].as_slice().len();
                    count += 1;
                    if count == ROWS_AHEAD || bytes >= ROWS_AHEAD_BYTES {
                        break None;
                    }
                }
                end => break Some((line, end)),
            }
        };
        shared.look_ahead(&dialect, &records[..count], &mut writer);
        for (row, record) in records[..count].iter_mut().enumerate() {
            shared.row = row;
            let cell = |cell| if dialect.is_null(cell) { Cell::Absent } else { Cell::Text(cell) };
            let cells = record.iter().map(cell);
            match add_row(&table, &dialect, cells, &mut shared, &mut writer) {
                Ok(()) => {}
                Err(RowFailure::Field(field, message)) => {
                    let malformed = malformed(record, field, message);
                    writer.merger.malformed(&malformed)?;
                }
                Err(RowFailure::Other(error)) => return Err(error),
            }
            if record.as_slice().len() >= ROWS_AHEAD_BYTES {
                *record = StringRecord::new();
            }
        }
        match end {
            None => {}
            Some((_, Ok(_))) => break,
            Some((line, Err(error))) => match row_error(&error, line) {
                Some(malformed) => writer.merger.malformed(&malformed)?,
                None => return Err(failure(source.name(), error, line)),
            },
        }
    }
    writer.finish()
}

/// What a file holds.
#[derive(Clone, Debug)]
pub(crate) struct Understood {
    pub(crate) table: Table,
    pub(crate) dialect: Dialect,
    /// What a person may want to know of it.
    pub(crate) notes: Vec<String>,
    /// Why the table is a guess, if it is.
    pub(crate) guessed: Option<Error>,
}

/// What the columns of a file are, by the mapping, its header and its name, and how it is cut. Columns
/// without a type get one, for which all of it is read; a stream is kept in memory for that. `known`: tables
/// by file names without numbers. `guess`: a header that says nothing is no error, but guessed at.
pub(crate) fn understand(
    source: &mut Source,
    options: &LoadOptions<'_>,
    known: &mut SeededMap<String, Table>,
    guess: bool,
) -> Result<Understood> {
    source.keep()?;
    let mapping = options.mapping.as_ref();
    let mapped = mapping.and_then(|mapping| mapping.dialect(source.name()));
    let is_mapped = mapped.is_some();
    let names_from_files = options.names_from_files && !is_mapped;
    let mut dialect = mapped.unwrap_or_else(|| Dialect {
        // In the files of LDBC a quote is a character like any other.
        quote: (!names_from_files).then_some(b'"'),
        ..Dialect::default()
    });
    dialect.separator = Some(match dialect.separator {
        Some(separator) => separator,
        None => separator(source)?,
    });
    if dialect.separator == Some(b';') && dialect.list == Dialect::default().list && !is_mapped {
        // What stands between cells cannot stand between the values of one.
        dialect.list = ListForm { separator: ',', ..dialect.list };
    }
    // The first look at the file does not count as progress.
    let mut rows = open(source, &Arc::default(), &dialect)?;
    let header = match rows.headers() {
        Ok(header) => header.clone(),
        Err(error) => return Err(failure(source.name(), error, 1)),
    };
    let fields: Vec<&str> = header.iter().collect();
    let words = words(source.stem()).join("_");
    let table = match mapping.and_then(|mapping| mapping.table(source.name(), &fields)) {
        Some(table) => table,
        None => Table::from_header(&fields, &Names::new(source.stem(), options, names_from_files)),
    };
    let (mut notes, mut guessed) = (Vec::new(), None);
    let mut table = match table {
        Ok(table) => {
            if !is_mapped {
                known.insert(words, table.clone());
            }
            table
        }
        // A file without a header can continue one of the same name.
        Err(error) => match known.get(&words) {
            Some(table) if names_from_files && table.columns.len() == fields.len() => {
                dialect.has_header = false;
                rows = open(source, &Arc::default(), &dialect)?;
                table.clone()
            }
            _ if guess => {
                guessed = Some(error);
                Table::guess(&fields)
            }
            _ => return Err(error.context(format_args!("{}:1", source.name()))),
        },
    };
    if table.columns.iter().any(is_untyped) {
        notes = infer(&mut table.columns, &mut rows, (source.name(), options), &dialect)?;
    }
    Ok(Understood { table, dialect, notes, guessed })
}

/// The separator that the first line has most of.
fn separator(source: &mut Source) -> Result<u8> {
    let head = source.head()?;
    let header = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let count = |separator: u8| memchr::memchr_iter(separator, header).count();
    // The last of equals wins, so a header of one column has a comma.
    Ok([b';', b'\t', b'|', b','].into_iter().max_by_key(|&separator| count(separator)).unwrap_or(b','))
}

fn open(source: &mut Source, bytes: &Arc<AtomicU64>, dialect: &Dialect) -> Result<Rows> {
    Ok(ReaderBuilder::new()
        .delimiter(dialect.separator.unwrap_or(b','))
        .quote(dialect.quote.unwrap_or(b'"'))
        .quoting(dialect.quote.is_some())
        .has_headers(dialect.has_header)
        .buffer_capacity(1 << 18)
        .from_reader(source.open(bytes)?))
}

fn is_untyped(column: &Column) -> bool {
    column.kind.is_none() && !column.key.is_empty()
}

/// Gives a type to every column without one; notes on columns that hold texts because of one value. Malformed
/// rows are passed over; the second reading tells of them.
fn infer(
    columns: &mut [Column],
    rows: &mut Rows,
    (name, options): (&str, &LoadOptions<'_>),
    dialect: &Dialect,
) -> Result<Vec<String>> {
    let mut kinds: Vec<Option<Type>> = vec![None; columns.len()];
    // Of each column, how many values fit a narrower type before the first one that does not.
    let mut narrow: Vec<u64> = vec![0; columns.len()];
    let mut notes = Vec::new();
    let mut record = StringRecord::new();
    for count in 0_u64.. {
        // Relaxed: the flag guards no other memory.
        if count.is_multiple_of(ROWS_BETWEEN_LOOKS)
            && options.cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed))
        {
            return Err(Error::new(ErrorKind::Cancelled, "the load was cancelled"));
        }
        let line = rows.position().line();
        match rows.read_record(&mut record) {
            Ok(false) => break,
            Ok(true) => {
                let of_column = columns.iter().zip(&mut kinds).zip(&mut narrow);
                for (((column, kind), narrow), cell) in of_column.zip(&record) {
                    if !is_untyped(column) || *kind == Some(Type::String) || dialect.is_null(cell) {
                        continue;
                    }
                    let found = Type::infer(cell);
                    let joined = kind.map_or(found, |kind| kind.join(found));
                    if let Some(before) = kind.filter(|_| joined == Type::String && *narrow >= NARROW_MIN) {
                        let cell: String = cell.chars().take(NOTED_CHARACTERS_MAX).collect();
                        notes.push(format!(
                            "{name}: column {} holds texts because of {cell:?} in line {}: the {narrow} values before are of \
                             type {}; if the others are too, say {}:{} in the header",
                            column.name,
                            record.position().map_or(line, csv::Position::line),
                            before.name(),
                            column.key,
                            before.name(),
                        ));
                    }
                    *narrow += 1;
                    *kind = Some(joined);
                }
            }
            Err(error) if row_error(&error, line).is_some() => {}
            Err(error) => return Err(failure(name, error, line)),
        }
    }
    for (column, kind) in columns.iter_mut().zip(kinds) {
        if column.kind.is_none() {
            column.kind = Some(kind.unwrap_or(Type::String));
        }
    }
    Ok(notes)
}

/// What stands in a field of a row.
#[derive(Clone, Copy)]
pub(crate) enum Cell<'r> {
    Absent,
    /// A text, of which the type of the column and the dialect make values.
    Text(&'r str),
    /// Values of this type in their canonical forms.
    #[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "only Parquet has such fields"))]
    Values(Type, &'r [&'r str]),
}

impl<'r> Cell<'r> {
    /// The texts as they stand there.
    fn texts(&self) -> &[&'r str] {
        match self {
            Self::Absent => &[],
            Self::Text(text) => std::slice::from_ref(text),
            Self::Values(_, texts) => texts,
        }
    }

    /// The texts of its values.
    fn values(&self, is_array: bool, dialect: &Dialect) -> Cow<'_, [&'r str]> {
        match self {
            Self::Text(text) if is_array => dialect.list.values(text).collect(),
            _ => Cow::Borrowed(self.texts()),
        }
    }
}

/// Why a row is not added.
pub(crate) enum RowFailure {
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

/// What the rows of a file share: ids once they are known, and room that is used again.
pub(crate) struct Shared {
    /// Of each column, the id of its key.
    keys: Vec<Option<Id>>,
    /// Those of the label of edges, and of the labels of vertices, that all rows have.
    edge_label: Option<Id>,
    labels: Option<Vec<Id>>,
    /// Source and target of the row before, or its vertex as the source: many rows have the same.
    ends: [(String, Id); 2],
    /// Where the ends of edges, or the ids of vertices (as sources), are if their IRIs can be made ahead:
    /// field, source (0) or target (1), space.
    places: Vec<(usize, usize, String)>,
    /// IRIs of some rows to come, and where they are in there, with their hashes.
    iris: String,
    ahead: Vec<[Option<(usize, usize, u64)>; 2]>,
    hashes: Vec<u64>,
    /// Which of those rows is being added.
    row: usize,
    values: Vec<(Id, Id)>,
    /// Edges of foreign keys: label, the other end, whether they come from there.
    edges: Vec<(Id, Id, bool)>,
    /// Rows so far, for files whose vertices are numbered.
    pub(crate) rows: u64,
    /// The column of edges that says whether they are undirected, as Gephi writes it.
    direction: Option<usize>,
}

impl Shared {
    pub(crate) fn new(table: &Table) -> Self {
        let place = |(field, column): (usize, &Column)| match &column.role {
            Role::Id(space) if !table.is_edges => Some((field, 0, space.clone())),
            Role::Source(space) => Some((field, 0, space.clone())),
            Role::Target(space) => Some((field, 1, space.clone())),
            _ => None,
        };
        let places = table.columns.iter().enumerate().filter_map(place);
        // Without a space an id may be anything.
        let places = places.filter(|(.., space)| !space.is_empty());
        Self {
            keys: vec![None; table.columns.len()],
            edge_label: None,
            labels: None,
            ends: [(String::new(), Id::UNBOUND), (String::new(), Id::UNBOUND)],
            places: places.collect(),
            iris: String::new(),
            ahead: Vec::new(),
            hashes: Vec::new(),
            row: 0,
            values: Vec::new(),
            edges: Vec::new(),
            rows: 0,
            direction: table
                .columns
                .iter()
                .position(|column| table.is_edges && column.key.eq_ignore_ascii_case("type")),
        }
    }

    /// The id of the key of a column.
    fn key<T: Target + ?Sized>(
        &mut self,
        (field, column): (usize, &Column),
        writer: &mut PropertyWriter<'_, '_, T>,
    ) -> Result<Id, Refused> {
        match self.keys.get(field) {
            Some(Some(id)) => Ok(*id),
            _ => {
                let id = writer.key(&column.key)?;
                self.keys.get_mut(field).map(|known| known.replace(id));
                Ok(id)
            }
        }
    }

    /// Makes the IRIs of rows to come and tells the target.
    fn look_ahead<T: Target + ?Sized>(
        &mut self,
        dialect: &Dialect,
        records: &[StringRecord],
        writer: &mut PropertyWriter<'_, '_, T>,
    ) {
        self.iris.clear();
        self.hashes.clear();
        self.ahead.clear();
        self.ahead.resize(records.len(), [None, None]);
        for (field, of, space) in &self.places {
            let mut last = self.ends[*of].0.as_str();
            for (record, ahead) in records.iter().zip(&mut self.ahead) {
                let id = record.get(*field).unwrap_or_default();
                if id.is_empty() || id == last || dialect.is_null(id) {
                    continue;
                }
                let start = self.iris.len();
                push_vertex(&mut self.iris, space, id);
                let hash = writer.merger.target.hash_iri(&self.iris[start..]);
                ahead[*of] = Some((start, self.iris.len(), hash));
                self.hashes.push(hash);
                last = id;
            }
        }
        writer.merger.target.expect(&self.hashes);
    }

    /// The vertex with this id, which is not empty: a source (0), also of a row that is a vertex, or a target
    /// (1).
    fn vertex<T: Target + ?Sized>(
        &mut self,
        of: usize,
        (space, id): (&str, &str),
        writer: &mut PropertyWriter<'_, '_, T>,
    ) -> Result<Id, Refused> {
        if self.ends[of].0 != id {
            let found = match self.ahead.get_mut(self.row).and_then(|ahead| ahead[of].take()) {
                Some((start, end, hash)) => {
                    writer.merger.target.intern_iri_hashed(&self.iris[start..end], hash)?
                }
                None => writer.vertex(space, id)?,
            };
            let (last, vertex) = &mut self.ends[of];
            id.clone_into(last);
            *vertex = found;
        }
        Ok(self.ends[of].1)
    }
}

/// Adds the vertex or edge of a row. A malformed row adds nothing.
pub(crate) fn add_row<'r, T: Target + ?Sized>(
    table: &Table,
    dialect: &Dialect,
    cells: impl Iterator<Item = Cell<'r>>,
    shared: &mut Shared,
    writer: &mut PropertyWriter<'_, '_, T>,
) -> Result<(), RowFailure> {
    let (mut id, mut label, mut source, mut target) = (None, None, None, None);
    shared.values.clear();
    shared.edges.clear();
    shared.rows += 1;
    let mut is_undirected = false;
    for (field, (column, cell)) in table.columns.iter().zip(cells).enumerate() {
        let Some(&first) = cell.texts().first() else { continue };
        match &column.role {
            // Only an id that is there is one.
            Role::Id(_) | Role::Source(_) | Role::Target(_) | Role::Label if first.is_empty() => continue,
            Role::Id(space) => id = Some((field, space, first)),
            Role::Label => label = Some((field, cell)),
            Role::Source(space) => source = Some((field, space, first)),
            Role::Target(space) => target = Some((field, space, first)),
            Role::Edge { label, space, is_reversed } => {
                let label = writer.key(label).map_err(at(field))?;
                for other in cell.values(column.is_array, dialect).iter().filter(|other| !other.is_empty()) {
                    let other = writer.vertex(space, other).map_err(at(field))?;
                    shared.edges.push((label, other, *is_reversed));
                }
            }
            Role::Property | Role::Ignored => {}
        }
        if column.key.is_empty() {
            continue;
        }
        is_undirected |= shared.direction == Some(field) && first.eq_ignore_ascii_case("undirected");
        let kind = column.kind.unwrap_or(Type::String);
        let key = shared.key((field, column), writer).map_err(at(field))?;
        for text in cell.values(column.is_array, dialect).iter() {
            let value = match cell {
                Cell::Values(known, _) if known == kind => Some(Canonical::Text(Cow::Borrowed(*text))),
                _ => dialect.value(kind, text),
            };
            let value = match value {
                Some(Canonical::Inline(value)) => writer.inline_value(value)?,
                Some(Canonical::Text(lexical)) => writer.value(kind, &lexical)?,
                None => {
                    let message =
                        format!("{text:?} in column {} is not a value of type {}", column.key, kind.name());
                    return Err(RowFailure::Field(field, message));
                }
            };
            shared.values.push((key, value));
        }
    }
    let subject = if table.is_edges {
        let (Some(source), Some(target)) = (source, target) else {
            return Err(RowFailure::Field(0, "the edge lacks its source or its target".to_owned()));
        };
        let [source, target] = [(0, source), (1, target)]
            .map(|(of, (field, space, id))| shared.vertex(of, (space, id), writer).map_err(at(field)));
        let default = table.label.as_deref().unwrap_or(EDGE_LABEL);
        let label = match (label, shared.edge_label) {
            (None, Some(label)) => label,
            (None, None) => *shared.edge_label.insert(writer.key(default).map_err(at(0))?),
            (Some((field, label)), _) => {
                writer.key(label.texts().first().unwrap_or(&default)).map_err(at(field))?
            }
        };
        let (source, target) = (source?, target?);
        let edge = writer.edge(source, label, target, id.map(|(_, _, id)| id))?;
        if is_undirected {
            writer.undirected([source, label, target], &shared.values)?;
        }
        edge
    } else {
        let number = shared.rows.to_string();
        let id = id.or_else(|| table.row_ids.as_ref().map(|space| (0, space, number.as_str())));
        let Some((field, space, id)) = id else {
            return Err(RowFailure::Field(0, "the vertex lacks its id".to_owned()));
        };
        let vertex = shared.vertex(0, (space, id), writer).map_err(at(field))?;
        let default = table.label.as_deref().unwrap_or(VERTEX_LABEL);
        let is_own = label.is_some();
        let (field, texts) = label.unwrap_or((0, Cell::Text(default)));
        let labels = match shared.labels.take().filter(|_| !is_own) {
            Some(labels) => labels,
            None => {
                let labels = texts.texts().iter().flat_map(|labels| labels.split(';'));
                let labels = labels.filter(|label| !label.is_empty());
                labels.map(|label| writer.label_id(label).map_err(at(field))).collect::<Result<_, _>>()?
            }
        };
        // Without a label there are more values for vertices that another file declares.
        if !labels.is_empty() {
            writer.declare(vertex);
        }
        for label in &labels {
            writer.label(vertex, *label)?;
        }
        // Those of a row are not those of all.
        shared.labels = Some(labels).filter(|_| !is_own);
        vertex
    };
    for (key, value) in &shared.values {
        writer.add(subject, *key, *value, Id::UNBOUND)?;
    }
    for (label, other, is_reversed) in &shared.edges {
        let (source, target) = if *is_reversed { (*other, subject) } else { (subject, *other) };
        writer.edge(source, *label, target, None)?;
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

/// An error behind which the file cannot be read on.
fn failure(name: &str, error: csv::Error, line: u64) -> Error {
    if let Some(Malformed { line, message, kind, .. }) = row_error(&error, line) {
        return Error::new(kind, format!("{name}:{}:1: {message}", line + 1)).with_hint("mend the file");
    }
    match error.into_kind() {
        CsvError::Io(error) => read_error(name, &error),
        other => Error::internal(format!("{name}:{line}: the CSV library says {other:?}")),
    }
}
