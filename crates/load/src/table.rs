//! CSV loader: rows of vertices or edges, interpreted by the header of the file (`header`) or by a mapping
//! (`mapping`).
//!
//! A column without a type gets the narrowest type that holds all its values, so a file with such columns is
//! read twice. An empty cell is an absent property.
//!
//! # Cost
//! A row of an edge looks up two vertices at random positions of the dictionary: two or three dependent cache
//! misses for each. So [`ROWS_AHEAD`] rows are read in advance, their IRIs built (about 40 bytes each, no
//! allocation) and hashed, and the hashes passed to the target, which prefetches: 16 look-ups miss in
//! parallel. An end equal to that of the previous row is not looked up again. The LDBC social network, all of
//! a load into a directory (2026-11-22, a machine under load): 0.7 to 0.8 µs of CPU time per row; before, 1.1
//! to 1.3.

use crate::apoc;
use crate::block::Malformed;
use crate::csv_rows::{CsvRows, failure, row_error};
use crate::dialect::{Dialect, ListForm};
use crate::header::{Column, Role, Table, words};
use crate::inference::infer;
use crate::merge::Merger;
use crate::options::LoadOptions;
use crate::property::{EDGE_LABEL, PropertyWriter, Rejected, VERTEX_LABEL, push_vertex};
use crate::quotes::Row;
use crate::source::{Layout, Source};
use crate::target::Target;
use crate::value::{Canonical, Type};
use csv::StringRecord;
use foldhash::HashMap as SeededMap;
use std::borrow::Cow;
use std::sync::Arc;
use vervet_model::{Error, ErrorKind, Id, Result};

/// Rows read in advance for prefetching; fewer if they are long.
const ROWS_AHEAD: usize = 16;
const ROWS_AHEAD_BYTES: usize = 1 << 16;

/// Loads all of `source`.
pub(crate) fn load_csv<T: Target + ?Sized>(source: &mut Source, merger: &mut Merger<'_, T>) -> Result<()> {
    let Interpretation { table, edges, dialect, notes, .. } =
        interpret(source, merger.options, &mut merger.csv_tables, false)?;
    notes.into_iter().for_each(|note| merger.report.add_note(note));
    let counted = Arc::clone(&merger.bytes);
    let mut rows = CsvRows::open(source, &counted, &dialect)?;
    if dialect.has_header {
        // Skips the header.
        rows.headers(source.name())?;
    }
    let mut writer = PropertyWriter::new(merger)?;
    let mut shared = RowState::new(&table);
    let mut edges = edges.map(|edges| (RowState::new(&edges), edges));
    let mut records = vec![StringRecord::new(); ROWS_AHEAD];
    let mut places = [Row { line: 0, misquoted: None }; ROWS_AHEAD];
    loop {
        let (mut count, mut bytes) = (0, 0);
        let end = loop {
            match rows.read(&mut records[count]) {
                Ok(Some(row)) => {
                    bytes += records[count].as_slice().len();
                    places[count] = row;
                    count += 1;
                    if count == ROWS_AHEAD || bytes >= ROWS_AHEAD_BYTES {
                        break Ok(false);
                    }
                }
                Ok(None) => break Ok(true),
                Err(error) => break Err(error),
            }
        };
        shared.look_ahead(&dialect, &records[..count], &mut writer);
        for (row, (record, place)) in records[..count].iter_mut().zip(&places).enumerate() {
            shared.row = row;
            let cell = |cell| if dialect.is_null(cell) { Cell::Absent } else { Cell::Text(cell) };
            let cells = record.iter().map(cell);
            let added = match (place.misquoted(), &mut edges) {
                (Some(malformed), _) => {
                    writer.merger.malformed(&malformed)?;
                    continue;
                }
                (None, Some((shared, edges))) if is_edge(edges, record) => {
                    add_row_of_apoc(edges, &dialect, record, shared, &mut writer)
                }
                (None, Some(_)) => add_row_of_apoc(&table, &dialect, record, &mut shared, &mut writer),
                (None, None) => add_row(&table, &dialect, cells, &mut shared, &mut writer),
            };
            match added {
                Ok(()) => {}
                Err(RowFailure::Field(field, message)) => {
                    let malformed = malformed(record, place.line, field, message);
                    writer.merger.malformed(&malformed)?;
                }
                Err(RowFailure::Other(error)) => return Err(error),
            }
            if record.as_slice().len() >= ROWS_AHEAD_BYTES {
                *record = StringRecord::new();
            }
        }
        match end {
            Ok(false) => {}
            Ok(true) => break,
            Err((error, line)) => match row_error(&error, line) {
                Some(malformed) => writer.merger.malformed(&malformed)?,
                None => return Err(failure(source.name(), error, line)),
            },
        }
    }
    writer.finish()
}

/// The interpretation of a file.
#[derive(Clone, Debug)]
pub(crate) struct Interpretation {
    /// The columns; those of vertices, if `edges` are known.
    pub(crate) table: Table,
    /// The columns of edges in a file whose rows are vertices or edges.
    pub(crate) edges: Option<Table>,
    pub(crate) dialect: Dialect,
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
    /// The reason for a default interpretation.
    pub(crate) guessed: Option<Error>,
}

/// The interpretation of a file: the columns from the mapping, the header and the file name, and the dialect.
/// Type inference for columns without a type reads the whole file; a stream is kept in memory for that.
/// `known`: tables by file names without numbers. `guess`: whether an unknown header yields a default instead
/// of an error.
pub(crate) fn interpret(
    source: &mut Source,
    options: &LoadOptions<'_>,
    known: &mut SeededMap<String, Table>,
    guess: bool,
) -> Result<Interpretation> {
    source.buffer_stream()?;
    let mapping = options.mapping.as_ref();
    let mapped = mapping.and_then(|mapping| mapping.dialect(source.name()));
    // A mapping takes precedence over other descriptions.
    let layout = source.layout().filter(|_| mapped.is_none()).cloned();
    let is_mapped = mapped.is_some() || matches!(layout, Some(Layout::Columns(_)));
    let names_from_files = options.names_from_files && !is_mapped;
    let mut dialect = mapped.unwrap_or_default();
    match &layout {
        Some(Layout::Columns(columns)) => dialect = columns.1.clone(),
        Some(Layout::Header { separator, .. }) => {
            dialect.separator = Some(*separator);
            dialect.has_header = false;
        }
        None => {}
    }
    dialect.separator = Some(match dialect.separator {
        Some(separator) => separator,
        None => separator(&source.head()?),
    });
    if names_from_files && layout.is_none() && dialect.separator == Some(b'|') {
        // In LDBC files quotes have no special meaning.
        dialect.quote = None;
    }
    if dialect.separator == Some(b';') && dialect.list == Dialect::default().list && !is_mapped {
        // The list separator must differ from the cell separator.
        dialect.list = ListForm { separator: ',', ..dialect.list };
    }
    // The first pass does not count as progress.
    let mut rows = CsvRows::open(source, &Arc::default(), &dialect)?;
    let (header, line) = rows.headers(source.name())?;
    let mut fields: Vec<&str> = header.iter().collect();
    let at = format!("{}:{line}", source.name());
    let mut edges = None;
    let words = words(source.stem()).join("_");
    let table = match (&layout, mapping.and_then(|mapping| mapping.table(source.name(), &fields))) {
        (Some(Layout::Columns(columns)), _) => columns.0.positional(fields.len()),
        (_, Some(table)) => table,
        (Some(Layout::Header { file, fields: header, .. }), None) => {
            let count = fields.len();
            fields = header.iter().map(String::as_str).collect();
            let table = Table::from_header(&fields, &options.header_names(source.stem(), names_from_files));
            match count {
                0 => table,
                count if count == header.len() => table,
                count => Err(Error::new(
                    ErrorKind::Input,
                    format!("the row has {count} fields, its header in {file} {}", header.len()),
                )
                .with_hint("correct one of the two files")),
            }
        }
        (None, None) => match Table::of_apoc(&fields) {
            Some(tables) => {
                dialect.has_json_lists = true;
                tables.map(|[vertices, of_edges]| {
                    edges = Some(of_edges);
                    vertices
                })
            }
            None => Table::from_header(&fields, &options.header_names(source.stem(), names_from_files)),
        },
    };
    let (mut notes, mut guessed) = (Vec::new(), None);
    if fields.iter().any(|field| *field != field.trim()) && dialect.has_header {
        notes.push(format!(
            "{}: blanks around the names in the header are ignored; those around texts and ids in the rows are kept",
            source.name()
        ));
    }
    let mut table = match table {
        Ok(table) => {
            if !is_mapped {
                known.insert(words, table.clone());
            }
            table
        }
        // A file without a header can continue a file of the same name.
        Err(error) => match known.get(&words) {
            Some(table) if names_from_files && table.columns.len() == fields.len() => {
                dialect.has_header = false;
                rows = CsvRows::open(source, &Arc::default(), &dialect)?;
                table.clone()
            }
            _ if guess => {
                guessed = Some(error);
                Table::guess(&fields)
            }
            _ => return Err(error.context(at)),
        },
    };
    if let Some(edges) = &mut edges {
        // A column belongs to vertices or to edges.
        let pairs = table.columns.iter_mut().zip(&mut edges.columns);
        let mut owners: Vec<&mut Column> =
            pairs.map(|(one, other)| if one.role == Role::Ignored { other } else { one }).collect();
        let mut columns: Vec<Column> = owners.iter().map(|column| (**column).clone()).collect();
        notes.extend(infer(&mut columns, &mut rows, (source.name(), options), &dialect)?);
        owners.iter_mut().zip(columns).for_each(|(owner, column)| **owner = column);
    } else if table.columns.iter().any(Column::is_untyped) {
        notes.extend(infer(&mut table.columns, &mut rows, (source.name(), options), &dialect)?);
    }
    Ok(Interpretation { table, edges, dialect, notes, guessed })
}

/// The most frequent separator in the first line with text.
pub(crate) fn separator(head: &[u8]) -> u8 {
    let mut lines = head.split(|&byte| byte == b'\n' || byte == b'\r');
    let header = lines.find(|line| !line.is_empty()).unwrap_or_default();
    let count = |separator: u8| memchr::memchr_iter(separator, header).count();
    // The last of equal maxima wins, so a header of one column yields a comma.
    [b';', b'\t', b'|', b','].into_iter().max_by_key(|&separator| count(separator)).unwrap_or(b',')
}

/// The content of a field of a row.
#[derive(Clone, Copy)]
pub(crate) enum Cell<'r> {
    Absent,
    /// A text, to be converted by the type of the column and the dialect.
    Text(&'r str),
    /// Values of this type in canonical form.
    Values(Type, &'r [&'r str]),
}

impl<'r> Cell<'r> {
    /// The texts as written.
    fn texts(&self) -> &[&'r str] {
        match self {
            Self::Absent => &[],
            Self::Text(text) => std::slice::from_ref(text),
            Self::Values(_, texts) => texts,
        }
    }

    /// The texts of the values.
    fn values(&self, is_array: bool, dialect: &Dialect) -> Cow<'_, [&'r str]> {
        match self {
            Self::Text(text) if is_array => dialect.list.values(text).collect(),
            _ => Cow::Borrowed(self.texts()),
        }
    }
}

/// The reason for a rejected row.
pub(crate) enum RowFailure {
    /// The index of the field, and the reason.
    Field(usize, String),
    Other(Error),
}

impl From<Error> for RowFailure {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// Adds the field to the reason for a rejected name.
fn at(field: usize) -> impl Fn(Rejected) -> RowFailure {
    move |rejected| match rejected {
        Rejected::Name(message) => RowFailure::Field(field, message),
        Rejected::Other(error) => RowFailure::Other(error),
    }
}

/// State shared by the rows of a file: cached ids, and reusable buffers.
pub(crate) struct RowState {
    /// The id of the key of each column.
    keys: Vec<Option<Id>>,
    /// Ids of the edge label and of the vertex labels, if they are the same for all rows.
    edge_label: Option<Id>,
    labels: Option<Vec<Id>>,
    /// Source and target of the previous row, or its vertex as the source: consecutive rows often share them.
    ends: [(String, Id); 2],
    /// Fields whose IRIs can be built in advance, ends of edges or ids of vertices (as sources): field,
    /// source (0) or target (1), id space.
    places: Vec<(usize, usize, String)>,
    /// IRIs of the rows read in advance, their positions in this string, and their hashes.
    iris: String,
    ahead: Vec<[Option<(usize, usize, u64)>; 2]>,
    hashes: Vec<u64>,
    /// Index of the current row among those read in advance.
    row: usize,
    values: Vec<(Id, Id)>,
    /// Edges of foreign keys: label, other end, whether the edge is reversed.
    edges: Vec<(Id, Id, bool)>,
    /// Number of rows so far, for files with row numbers as ids.
    pub(crate) rows: u64,
    /// The edge column with the direction, in Gephi's form.
    direction: Option<usize>,
}

impl RowState {
    pub(crate) fn new(table: &Table) -> Self {
        let place = |(field, column): (usize, &Column)| match &column.role {
            Role::Id(space) if !table.is_edges => Some((field, 0, space.clone())),
            Role::Source(space) => Some((field, 0, space.clone())),
            Role::Target(space) => Some((field, 1, space.clone())),
            _ => None,
        };
        let places = table.columns.iter().enumerate().filter_map(place);
        // Without an id space, an id may be an IRI or a blank node.
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
    ) -> Result<Id, Rejected> {
        match self.keys.get(field) {
            Some(Some(id)) => Ok(*id),
            _ => {
                let id = writer.key(&column.key)?;
                self.keys.get_mut(field).map(|known| known.replace(id));
                Ok(id)
            }
        }
    }

    /// Builds the IRIs of rows read in advance and passes their hashes to the target.
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

    /// The vertex with this nonempty id: a source (0), including the vertex of a vertex row, or a target (1).
    fn vertex<T: Target + ?Sized>(
        &mut self,
        of: usize,
        (space, id): (&str, &str),
        writer: &mut PropertyWriter<'_, '_, T>,
    ) -> Result<Id, Rejected> {
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

/// Adds the vertex or edge of a row. A malformed row adds no statements.
pub(crate) fn add_row<'r, T: Target + ?Sized>(
    table: &Table,
    dialect: &Dialect,
    cells: impl Iterator<Item = Cell<'r>>,
    shared: &mut RowState,
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
            // Empty cells are not ids or labels.
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
        // Without a label the row has additional values for a vertex of another file.
        if !labels.is_empty() {
            writer.declare(vertex);
        }
        for label in &labels {
            writer.label(vertex, *label)?;
        }
        // Labels of a single row are not cached.
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

/// Whether a row of APOC is an edge.
fn is_edge(edges: &Table, record: &StringRecord) -> bool {
    let is_end = |column: &Column| matches!(column.role, Role::Source(_) | Role::Target(_));
    edges.columns.iter().zip(record).any(|(column, cell)| is_end(column) && !cell.is_empty())
}

/// [`add_row`] for a file of APOC, with labels as `:A:B` and lists in JSON.
fn add_row_of_apoc<T: Target + ?Sized>(
    table: &Table,
    dialect: &Dialect,
    record: &StringRecord,
    shared: &mut RowState,
    writer: &mut PropertyWriter<'_, '_, T>,
) -> Result<(), RowFailure> {
    let lists = |(column, cell): (&Column, &str)| -> Option<Vec<String>> {
        if column.role == Role::Label && !table.is_edges {
            return Some(cell.split(':').filter(|label| !label.is_empty()).map(str::to_owned).collect());
        }
        let items = column.is_array.then(|| apoc::list(cell)).flatten()?;
        Some(items.into_iter().map(|(_, text)| text).collect())
    };
    let lists: Vec<Option<Vec<String>>> = table.columns.iter().zip(record).map(lists).collect();
    let texts: Vec<Option<Vec<&str>>> = lists
        .iter()
        .map(|list| list.as_ref().map(|list| list.iter().map(String::as_str).collect()))
        .collect();
    let cells = record.iter().zip(&texts).map(|(cell, texts)| match texts {
        Some(texts) if texts.is_empty() => Cell::Absent,
        Some(texts) => Cell::Values(Type::String, texts),
        None if dialect.is_null(cell) => Cell::Absent,
        None => Cell::Text(cell),
    });
    add_row(table, dialect, cells, shared, writer)
}

/// The malformed statement for a field of the row that begins in `line`. The column counts characters as
/// written, except the quotes of preceding fields.
fn malformed(record: &StringRecord, line: u64, field: usize, message: String) -> Malformed {
    let before = record.iter().take(field).map(|field| field.chars().count() as u64 + 1).sum();
    let line = line.saturating_sub(1);
    Malformed { line, column: Some(before), message, kind: ErrorKind::Input }
}
