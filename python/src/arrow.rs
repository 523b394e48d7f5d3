//! Results as Arrow streams.
//!
//! A column has the type of its values if they have one: integers int64, decimals (also with integers)
//! decimal128 with the digits that they need, other numbers float64, booleans, dates date32, date-times
//! timestamps in microseconds (with the time zone UTC if all have a time zone). All other columns are texts:
//! lexical forms, IRIs, labels of blank nodes. Unbound cells are null.
//! # Cost
//! Two passes over a column: one decides the type, and ends with the first text; one builds the batches.

use crate::cells::Table;
use crate::decimal;
use crate::literals::{boolean, double, is_integer_type, is_number, zone_of_date_time};
use arrow_array::builder::{
    BooleanBuilder, Date32Builder, Decimal128Builder, Float64Builder, Int64Builder, LargeStringBuilder,
    TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use oxrdf::Term;
use std::ops::Range;
use std::sync::Arc;
use vervet::gremlin::{Extended, Value};
use vervet::{Id, Result};
use vervet_model::{Inline, LiteralKind, Tag, TermParts, days_from_civil, with_parts};

/// Digits of an integer of 64 bits.
const INTEGER_DIGITS: u8 = 19;

/// Rows of a batch.
const BATCH_ROWS: usize = 1 << 16;

/// A cell as a value of an Arrow type.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scalar {
    Null,
    Boolean(bool),
    Integer(i64),
    /// An integer, and the number of its digits behind the point.
    Decimal(i128, u8),
    Float(f64),
    /// Days since 1970.
    Date(i32),
    /// Microseconds since 1970, and whether the date-time has a time zone.
    DateTime(i64, bool),
    Text,
}

/// The type of a column, from its values so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unknown,
    Boolean,
    Integer,
    /// Decimals, and integers among them: the most digits before and behind the point.
    Decimal(u8, u8),
    Float,
    Date,
    DateTime(bool),
    Text,
}

impl Kind {
    fn of(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Null => Self::Unknown,
            Scalar::Boolean(_) => Self::Boolean,
            Scalar::Integer(_) => Self::Integer,
            Scalar::Decimal(value, scale) => {
                Self::Decimal(decimal::digits(value).saturating_sub(scale), scale)
            }
            Scalar::Float(_) => Self::Float,
            Scalar::Date(_) => Self::Date,
            Scalar::DateTime(_, has_zone) => Self::DateTime(has_zone),
            Scalar::Text => Self::Text,
        }
    }

    fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, other) | (other, Self::Unknown) => other,
            (one, other) if one == other => one,
            (Self::Decimal(a, scale_a), Self::Decimal(b, scale_b)) => {
                let (whole, scale) = (a.max(b), scale_a.max(scale_b));
                // More digits than a decimal of 128 bits has.
                if whole + scale > decimal::DIGITS_MAX { Self::Float } else { Self::Decimal(whole, scale) }
            }
            (Self::Decimal(whole, scale), Self::Integer) | (Self::Integer, Self::Decimal(whole, scale)) => {
                Self::Decimal(INTEGER_DIGITS, 0).with(Self::Decimal(whole, scale))
            }
            (
                Self::Integer | Self::Decimal(..) | Self::Float,
                Self::Integer | Self::Decimal(..) | Self::Float,
            ) => Self::Float,
            _ => Self::Text,
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::Integer => DataType::Int64,
            Self::Decimal(whole, scale) => DataType::Decimal128((whole + scale).max(1), scale.cast_signed()),
            Self::Float => DataType::Float64,
            Self::Date => DataType::Date32,
            Self::DateTime(has_zone) => {
                DataType::Timestamp(TimeUnit::Microsecond, has_zone.then(|| "UTC".into()))
            }
            // 64-bit offsets: the texts of a batch may exceed 2 GiB.
            Self::Unknown | Self::Text => DataType::LargeUtf8,
        }
    }
}

/// A result as a reader of record batches.
pub(crate) struct TableReader {
    table: Arc<Table>,
    kinds: Vec<Kind>,
    schema: SchemaRef,
    names: Vec<String>,
    next: usize,
}

impl TableReader {
    /// Decides the types of the columns.
    ///
    /// # Errors
    /// Damaged data.
    pub(crate) fn new(table: Arc<Table>) -> Result<Self> {
        let names = table.columns();
        let mut kinds = Vec::with_capacity(names.len());
        for (column, name) in names.iter().enumerate() {
            kinds.push(kind(&table, column, name)?);
        }
        let fields = names.iter().zip(&kinds).map(|(name, kind)| Field::new(name, kind.data_type(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Self { table, kinds, schema, names, next: 0 })
    }

    fn batch(&self, rows: Range<usize>) -> std::result::Result<RecordBatch, ArrowError> {
        let mut columns = Vec::with_capacity(self.kinds.len());
        for (column, (kind, name)) in self.kinds.iter().zip(&self.names).enumerate() {
            let built = build(&self.table, column, name, *kind, rows.clone());
            columns.push(built.map_err(|error| ArrowError::ExternalError(Box::new(error)))?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }
}

impl Iterator for TableReader {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = usize::try_from(self.table.len()).unwrap_or(usize::MAX);
        let end = self.next.saturating_add(BATCH_ROWS).min(rows);
        let range = std::mem::replace(&mut self.next, end)..end;
        (!range.is_empty()).then(|| self.batch(range))
    }
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

/// The number of a decimal, as its lexical form is read.
fn float(value: i128, scale: u8) -> f64 {
    decimal::text(value, scale.cast_signed()).parse().unwrap_or(f64::NAN)
}

/// The type of a column.
fn kind(table: &Table, column: usize, name: &str) -> Result<Kind> {
    let mut kind = Kind::Unknown;
    let rows = 0..usize::try_from(table.len()).unwrap_or(usize::MAX);
    each_cell(table, column, name, rows, false, &mut |scalar, _| {
        kind = kind.with(Kind::of(scalar));
        kind != Kind::Text
    })?;
    Ok(kind)
}

fn build(table: &Table, column: usize, name: &str, kind: Kind, rows: Range<usize>) -> Result<ArrayRef> {
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
        Kind::Boolean => built!(BooleanBuilder::with_capacity(length), Scalar::Boolean(truth) => truth),
        Kind::Integer => built!(Int64Builder::with_capacity(length), Scalar::Integer(number) => number),
        Kind::Float => built!(
            Float64Builder::with_capacity(length),
            Scalar::Float(number) => number,
            Scalar::Integer(number) => number as f64,
            Scalar::Decimal(value, scale) => float(value, scale)
        ),
        Kind::Decimal(_, digits) => {
            let mut builder = Decimal128Builder::with_capacity(length).with_data_type(kind.data_type());
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
        Kind::Date => built!(Date32Builder::with_capacity(length), Scalar::Date(days) => days),
        Kind::DateTime(_) => built!(
            TimestampMicrosecondBuilder::with_capacity(length).with_data_type(kind.data_type()),
            Scalar::DateTime(at, _) => at
        ),
        Kind::Unknown | Kind::Text => {
            let mut builder = LargeStringBuilder::with_capacity(length, 16 * length);
            each_cell(table, column, name, rows, true, &mut |scalar, text| {
                builder.append_option((scalar != Scalar::Null).then_some(text));
                true
            })?;
            Arc::new(builder.finish())
        }
    })
}

/// The value of an id without reading its term; `None` if that needs its term.
fn of_id(id: Id) -> Option<Scalar> {
    Some(match Inline::from_id(id) {
        Some(Inline::Integer(number) | Inline::Long(number)) => Scalar::Integer(number),
        Some(Inline::Int(number)) => Scalar::Integer(number.into()),
        Some(Inline::Double(number)) => Scalar::Float(number),
        Some(Inline::Boolean(truth)) => Scalar::Boolean(truth),
        Some(Inline::DateTime(milliseconds)) => Scalar::DateTime(milliseconds.checked_mul(1000)?, true),
        Some(Inline::Date(days)) => Scalar::Date(i32::try_from(days).ok()?),
        Some(Inline::ShortString { .. }) => Scalar::Text,
        Some(Inline::Decimal { .. }) => return None,
        None => match id.tag() {
            Tag::Unbound => Scalar::Null,
            Tag::Vertex | Tag::Edge => Scalar::Text,
            _ => return None,
        },
    })
}

/// The value of a term, whose text is appended to `text`.
fn of_parts(parts: TermParts<'_>, text: &mut String) -> Scalar {
    parts.write_str(text);
    match parts {
        TermParts::Literal { kind: LiteralKind::Typed(datatype), .. } => {
            of_literal(text, datatype).unwrap_or(Scalar::Text)
        }
        _ => Scalar::Text,
    }
}

fn of_literal(text: &str, datatype: &str) -> Option<Scalar> {
    if is_integer_type(datatype) {
        return text.parse().ok().map(Scalar::Integer);
    }
    match datatype.strip_prefix("http://www.w3.org/2001/XMLSchema#")? {
        "boolean" => boolean(text).map(Scalar::Boolean),
        "double" | "float" => double(text).map(Scalar::Float),
        "decimal" if is_number(text, true) => match decimal::parsed(text) {
            Some((value, scale)) => Some(Scalar::Decimal(value, scale)),
            None => text.parse().ok().map(Scalar::Float),
        },
        "date" => date(text).map(Scalar::Date),
        "dateTime" => date_time(text),
        _ => None,
    }
}

/// The days since 1970 of `YYYY-MM-DD`.
fn date(text: &str) -> Option<i32> {
    if !crate::literals::is_date(text) {
        return None;
    }
    let (year, month, day) =
        (text[..4].parse().ok()?, text[5..7].parse::<u8>().ok()?, text[8..].parse().ok()?);
    time::Date::from_calendar_date(year, time::Month::try_from(month).ok()?, day).ok()?;
    i32::try_from(days_from_civil(year.into(), month.into(), day.into())).ok()
}

fn date_time(text: &str) -> Option<Scalar> {
    let zone = zone_of_date_time(text)?;
    let days = i64::from(date(text.get(..10)?)?);
    let time = text.get(11..text.len() - zone.len())?;
    let number = |range: Range<usize>| time.get(range)?.parse::<i64>().ok();
    let (hours, minutes, seconds) = (number(0..2)?, number(3..5)?, number(6..8)?);
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let fraction = time.get(9..).unwrap_or("");
    let micros: i64 = format!("{fraction:0<6}").parse().ok()?;
    let offset = match zone.get(1..).filter(|rest| !rest.is_empty()) {
        None => 0,
        Some(rest) => {
            let (hours, minutes): (i64, i64) = (rest[..2].parse().ok()?, rest[3..].parse().ok()?);
            (hours * 60 + minutes) * if zone.starts_with('-') { -1 } else { 1 }
        }
    };
    let seconds = days * 86_400 + hours * 3600 + (minutes - offset) * 60 + seconds;
    Some(Scalar::DateTime(seconds * 1_000_000 + micros, !zone.is_empty()))
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
