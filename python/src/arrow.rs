//! Results as Arrow streams.
//!
//! A column has the type of its values if they have one: integers int64, decimals (also with integers)
//! decimal128 with the digits that they need, other numbers float64, booleans, dates date32, date-times
//! timestamps in microseconds (with the time zone UTC if all have a time zone). All other columns are texts:
//! lexical forms, IRIs, labels of blank nodes. Unbound cells are null.
//! # Cost
//! Two passes over a column: one decides the type, and ends with the first text; one builds the batches. Both
//! run on all processors, the columns of some batches at a time (`in_parallel.rs`).

use crate::cells::Table;
use crate::in_parallel::{in_parallel, processors};
use arrow_array::builder::{
    BooleanBuilder, Date32Builder, Decimal128Builder, Float64Builder, Int64Builder, LargeStringBuilder,
    TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use oxrdf::Term;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vervet::Result;
use vervet::gremlin::{Extended, Value};
use vervet_model::{Inline, days_from_civil, with_parts};
use vervet_results::scalar::{Scalar, float, of_id, of_parts};
use vervet_results::{ColumnType, decimal};

/// Rows of a batch.
const BATCH_ROWS: usize = 1 << 16;

fn data_type(kind: ColumnType) -> DataType {
    match kind {
        ColumnType::Boolean => DataType::Boolean,
        ColumnType::Integer => DataType::Int64,
        ColumnType::Decimal(whole, scale) => {
            DataType::Decimal128((whole + scale).max(1), scale.cast_signed())
        }
        ColumnType::Float => DataType::Float64,
        ColumnType::Date => DataType::Date32,
        ColumnType::DateTime(has_zone) => {
            DataType::Timestamp(TimeUnit::Microsecond, has_zone.then(|| "UTC".into()))
        }
        // 64-bit offsets: the texts of a batch may exceed 2 GiB.
        ColumnType::Unknown | ColumnType::Text => DataType::LargeUtf8,
    }
}

/// A result as a reader of record batches.
pub(crate) struct TableReader {
    table: Arc<Table>,
    kinds: Vec<ColumnType>,
    schema: SchemaRef,
    names: Vec<String>,
    /// The first row of the next batches.
    next: usize,
    /// Batches that were built together with one before them.
    ready: VecDeque<RecordBatch>,
}

impl TableReader {
    /// Decides the types of the columns.
    ///
    /// # Errors
    /// Damaged data.
    pub(crate) fn new(table: Arc<Table>) -> Result<Self> {
        let names = table.columns();
        let parts = batches(0, row_count(&table));
        // A column with a text is one of texts: no more of it needs to be read.
        let is_text: Vec<AtomicBool> = names.iter().map(|_| AtomicBool::new(false)).collect();
        let found = in_parallel(names.len() * parts.len(), &|task| {
            let (column, rows) = (task / parts.len(), &parts[task % parts.len()]);
            if is_text[column].load(Ordering::Relaxed) {
                return Ok(ColumnType::Text);
            }
            let found = kind(&table, column, &names[column], rows.clone())?;
            is_text[column].fetch_or(found == ColumnType::Text, Ordering::Relaxed);
            Ok(found)
        })?;
        let of_column = |column: usize| found.iter().skip(column * parts.len()).take(parts.len()).copied();
        let kinds: Vec<ColumnType> = (0..names.len())
            .map(|column| of_column(column).fold(ColumnType::Unknown, ColumnType::with))
            .collect();
        let fields = names.iter().zip(&kinds).map(|(name, kind)| Field::new(name, data_type(*kind), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Self { table, kinds, schema, names, next: 0, ready: VecDeque::new() })
    }

    /// Builds the next batches, one for each processor.
    fn build_ahead(&mut self) -> std::result::Result<(), ArrowError> {
        let parts = batches(self.next, row_count(&self.table)).into_iter().take(processors());
        let parts: Vec<Range<usize>> = parts.collect();
        let columns = self.kinds.len();
        let built = in_parallel(columns * parts.len(), &|task| {
            let (rows, column) = (parts[task / columns].clone(), task % columns);
            build(&self.table, column, &self.names[column], self.kinds[column], rows)
        });
        let mut built = built.map_err(|error| ArrowError::ExternalError(Box::new(error)))?.into_iter();
        for rows in parts {
            self.next = rows.end;
            let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
            let arrays = built.by_ref().take(columns).collect();
            let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?;
            self.ready.push_back(batch);
        }
        Ok(())
    }
}

impl Iterator for TableReader {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty()
            && let Err(error) = self.build_ahead()
        {
            // Ends with the error.
            self.next = usize::MAX;
            return Some(Err(error));
        }
        self.ready.pop_front().map(Ok)
    }
}

fn row_count(table: &Table) -> usize {
    usize::try_from(table.len()).unwrap_or(usize::MAX)
}

/// The rows of each batch from `first` on.
fn batches(first: usize, rows: usize) -> Vec<Range<usize>> {
    let start = |batch: usize| first.saturating_add(batch.saturating_mul(BATCH_ROWS));
    (0..).map(|batch| start(batch)..start(batch + 1).min(rows)).take_while(|rows| !rows.is_empty()).collect()
}

impl RecordBatchReader for TableReader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Calls `each` with the cells of a column and, where they are texts, their text, until it returns `false`.
/// Without `with_text`, the text may be missing.
fn each_cell(
    table: &Table,
    column: usize,
    name: &str,
    rows: Range<usize>,
    with_text: bool,
    each: &mut dyn FnMut(Scalar, &str) -> bool,
) -> Result<()> {
    let mut text = String::new();
    match table {
        Table::Solutions(solutions) => {
            let ids = solutions.column(name).unwrap_or_default();
            let mut scratch = String::new();
            for &id in &ids[rows] {
                text.clear();
                let scalar = match of_id(id) {
                    Some(scalar) if scalar == Scalar::Null || !with_text => scalar,
                    _ => {
                        let mut scalar = Scalar::Null;
                        solutions.read(id, &mut scratch, &mut |parts| scalar = of_parts(parts, &mut text))?;
                        scalar
                    }
                };
                if !each(scalar, &text) {
                    break;
                }
            }
        }
        Table::Graph(triples) => {
            for triple in &triples[rows] {
                text.clear();
                let term: Term = match column {
                    0 => triple.subject.clone().into(),
                    1 => triple.predicate.clone().into(),
                    _ => triple.object.clone(),
                };
                let scalar = with_parts(term.as_ref(), |parts| of_parts(parts, &mut text));
                if !each(scalar.unwrap_or(Scalar::Null), &text) {
                    break;
                }
            }
        }
        Table::Values(values) => {
            let key = values.keys().map(|_| Value::text(name));
            for row in rows {
                text.clear();
                let value = match (&key, values.at(row)) {
                    (Some(key), Value::Map(map)) => map.get(key).unwrap_or(&Value::Null),
                    (_, value) => value,
                };
                let scalar = of_value(value, &mut text);
                if with_text && text.is_empty() {
                    write_scalar(scalar, &mut text);
                }
                if !each(scalar, &text) {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Appends the text of a value among texts.
fn write_scalar(scalar: Scalar, text: &mut String) {
    match scalar {
        Scalar::Null | Scalar::Text => {}
        Scalar::Boolean(truth) => Inline::Boolean(truth).write_lexical(text),
        Scalar::Integer(number) => Inline::Integer(number).write_lexical(text),
        Scalar::Decimal(value, scale) => text.push_str(&decimal::text(value, scale.cast_signed())),
        Scalar::Float(number) => text.push_str(&number.to_string()),
        Scalar::Date(days) => Inline::Date(days.into()).write_lexical(text),
        Scalar::DateTime(micros, _) => Inline::DateTime(micros.div_euclid(1000)).write_lexical(text),
    }
}

/// The type of some rows of a column.
fn kind(table: &Table, column: usize, name: &str, rows: Range<usize>) -> Result<ColumnType> {
    let mut kind = ColumnType::Unknown;
    each_cell(table, column, name, rows, false, &mut |scalar, _| {
        kind = kind.with(ColumnType::of(scalar));
        kind != ColumnType::Text
    })?;
    Ok(kind)
}

fn build(table: &Table, column: usize, name: &str, kind: ColumnType, rows: Range<usize>) -> Result<ArrayRef> {
    let length = rows.len();
    macro_rules! built {
        ($builder:expr, $($pattern:pat => $value:expr),+) => {{
            let mut builder = $builder;
            each_cell(table, column, name, rows, false, &mut |scalar, _| {
                builder.append_option(match scalar {
                    $($pattern => Some($value),)+
                    _ => None,
                });
                true
            })?;
            Arc::new(builder.finish()) as ArrayRef
        }};
    }
    Ok(match kind {
        ColumnType::Boolean => built!(BooleanBuilder::with_capacity(length), Scalar::Boolean(truth) => truth),
        ColumnType::Integer => built!(Int64Builder::with_capacity(length), Scalar::Integer(number) => number),
        ColumnType::Float => built!(
            Float64Builder::with_capacity(length),
            Scalar::Float(number) => number,
            Scalar::Integer(number) => number as f64,
            Scalar::Decimal(value, scale) => float(value, scale)
        ),
        ColumnType::Decimal(_, digits) => {
            let mut builder = Decimal128Builder::with_capacity(length).with_data_type(data_type(kind));
            each_cell(table, column, name, rows, false, &mut |scalar, _| {
                builder.append_option(match scalar {
                    Scalar::Integer(number) => decimal::rescaled(number.into(), 0, digits),
                    Scalar::Decimal(value, scale) => decimal::rescaled(value, scale, digits),
                    _ => None,
                });
                true
            })?;
            Arc::new(builder.finish())
        }
        ColumnType::Date => built!(Date32Builder::with_capacity(length), Scalar::Date(days) => days),
        ColumnType::DateTime(_) => built!(
            TimestampMicrosecondBuilder::with_capacity(length).with_data_type(data_type(kind)),
            Scalar::DateTime(at, _) => at
        ),
        ColumnType::Unknown | ColumnType::Text => {
            let mut builder = LargeStringBuilder::with_capacity(length, 16 * length);
            each_cell(table, column, name, rows, true, &mut |scalar, text| {
                builder.append_option((scalar != Scalar::Null).then_some(text));
                true
            })?;
            Arc::new(builder.finish())
        }
    })
}

/// The value of a Gremlin value, whose text is appended to `text` if it is one.
fn of_value(value: &Value, text: &mut String) -> Scalar {
    use std::fmt::Write;
    // Writing to a `String` cannot fail, here and below.
    let mut written = |value: &dyn std::fmt::Display| {
        let _ = write!(text, "{value}");
        Scalar::Text
    };
    match value {
        Value::Null => Scalar::Null,
        Value::Boolean(truth) => Scalar::Boolean(*truth),
        Value::Float(number) => Scalar::Float((*number).into()),
        Value::Double(number) => Scalar::Float(*number),
        Value::BigDecimal(number) => {
            let plain = number.to_plain_string();
            match (decimal::parsed(&plain), plain.parse()) {
                (Some((value, scale)), _) => Scalar::Decimal(value, scale),
                (None, Ok(number)) => Scalar::Float(number),
                (None, Err(_)) => written(&number),
            }
        }
        Value::BigInteger(number) => match i64::try_from(number.as_ref()) {
            Ok(number) => Scalar::Integer(number),
            Err(_) => written(&number),
        },
        Value::DateTime(at) => match i64::try_from(at.unix_timestamp_nanos().div_euclid(1000)) {
            Ok(micros) => Scalar::DateTime(micros, true),
            Err(_) => written(&value),
        },
        Value::Extended(extended) => match **extended {
            Extended::LocalDate(year, month, day) => {
                let days = days_from_civil(year.into(), month.into(), day.into());
                i32::try_from(days).map_or(Scalar::Text, Scalar::Date)
            }
            _ => written(&value),
        },
        Value::String(string) => written(&string),
        Value::Char(c) => written(&c),
        Value::Uuid(uuid) => written(&uuid),
        Value::Vertex(vertex) => id_text(vertex.id(), text),
        Value::Edge(edge) => id_text(edge.id(), text),
        Value::VertexProperty(property) => of_value(&property.value, text),
        Value::Property(property) => of_value(&property.value, text),
        value => match value.as_integer() {
            Some(number) => Scalar::Integer(number),
            None => written(&value),
        },
    }
}

/// The id of an element is a text, whatever its type.
fn id_text(id: &Value, text: &mut String) -> Scalar {
    use std::fmt::Write;
    match of_value(id, text) {
        Scalar::Integer(number) => {
            let _ = write!(text, "{number}");
        }
        Scalar::Text => {}
        _ => {
            let _ = write!(text, "{id}");
        }
    }
    Scalar::Text
}
