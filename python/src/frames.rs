//! Tables in Arrow as sources of a load.
//!
//! Vertices and edges: the table becomes a Parquet file in memory, so that its columns mean what those of a
//! Parquet file mean. Statements: the rows become lines of N-Quads, which threads parse in parallel.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Schema, TimeUnit};
use oxrdf::{BlankNode, Literal, NamedNode, Term};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use std::fmt::Write;
use std::sync::Arc;
use vervet::{Error, ErrorKind, Result};
use vervet_model::Inline;
use vervet_model::vocab::is_iri;
use vervet_results::decimal;

/// The columns of statements.
const STATEMENT_COLUMNS: [&str; 6] = ["subject", "predicate", "object", "graph", "datatype", "language"];

/// Whether the columns are those of statements.
pub(crate) fn are_statements(schema: &Schema) -> bool {
    STATEMENT_COLUMNS[..3].iter().all(|name| schema.field_with_name(name).is_ok())
        && schema.fields().iter().all(|field| STATEMENT_COLUMNS.contains(&field.name().as_str()))
}

fn failed(name: &str, error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Input, format!("{name}: the table cannot be read: {error}"))
}

/// The table as a Parquet file, without columns that have no values.
///
/// # Errors
/// Types that Parquet does not have; errors of the stream.
pub(crate) fn parquet(
    name: &str,
    reader: &mut dyn RecordBatchReader,
    check: &dyn Fn() -> Result<()>,
) -> Result<Vec<u8>> {
    let schema = reader.schema();
    let kept: Vec<usize> = (0..schema.fields().len())
        .filter(|index| *schema.field(*index).data_type() != DataType::Null)
        .collect();
    let own = Arc::new(schema.project(&kept).map_err(|error| failed(name, &error))?);
    // It is read once, at once, from memory.
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .build();
    let mut writer =
        ArrowWriter::try_new(Vec::new(), own, Some(properties)).map_err(|error| failed(name, &error))?;
    for batch in reader {
        check()?;
        let batch = batch.and_then(|batch| batch.project(&kept)).map_err(|error| failed(name, &error))?;
        writer.write(&batch).map_err(|error| failed(name, &error))?;
    }
    writer.into_inner().map_err(|error| failed(name, &error))
}

/// The rows as lines of N-Quads.
///
/// # Errors
/// A type without a datatype of RDF, a cell that is not a term, with its row; errors of the stream.
pub(crate) fn statements(
    name: &str,
    reader: &mut dyn RecordBatchReader,
    check: &dyn Fn() -> Result<()>,
) -> Result<String> {
    let (mut lines, mut row_number) = (String::new(), 0_u64);
    for batch in reader {
        check()?;
        let batch = batch.map_err(|error| failed(name, &error))?;
        let rows = StatementRows::new(&batch).map_err(|error| failed(name, &error))?;
        for row in 0..batch.num_rows() {
            row_number += 1;
            if let Err(message) = rows.write(row, &mut lines) {
                return Err(Error::new(ErrorKind::Input, format!("{name}: row {row_number}, {message}")));
            }
        }
    }
    Ok(lines)
}

/// The columns of a batch of statements.
struct StatementRows {
    columns: [Option<ArrayRef>; 6],
}

impl StatementRows {
    fn new(batch: &RecordBatch) -> std::result::Result<Self, ArrowError> {
        Ok(Self { columns: STATEMENT_COLUMNS.map(|name| batch.column_by_name(name).cloned()) })
    }

    /// The text of a cell; `None`: null, or no such column.
    fn text(&self, column: usize, row: usize) -> std::result::Result<Option<String>, String> {
        let Some(array) = &self.columns[column] else { return Ok(None) };
        match cell(array, row) {
            Ok(None) => Ok(None),
            Ok(Some((text, None))) => Ok(Some(text)),
            Ok(Some((_, Some(_)))) => Err(format!("column {}: expected texts", STATEMENT_COLUMNS[column])),
            Err(message) => Err(format!("column {}: {message}", STATEMENT_COLUMNS[column])),
        }
    }

    fn write(&self, row: usize, lines: &mut String) -> std::result::Result<(), String> {
        let node = |column: usize| -> std::result::Result<Option<Term>, String> {
            let Some(text) = self.text(column, row)? else { return Ok(None) };
            let term = node(&text).ok_or_else(|| {
                format!("column {}: {text:?} is neither an IRI nor a blank node", STATEMENT_COLUMNS[column])
            });
            term.map(Some)
        };
        let missing = |column: usize| format!("column {}: there is no value", STATEMENT_COLUMNS[column]);
        let subject = node(0)?.ok_or_else(|| missing(0))?;
        let predicate = match node(1)?.ok_or_else(|| missing(1))? {
            Term::NamedNode(iri) => iri,
            _ => return Err("column predicate: a predicate is an IRI".to_owned()),
        };
        let object = self.object(row)?.ok_or_else(|| missing(2))?;
        let graph = node(3)?;
        // Writing to a `String` cannot fail.
        let _ = write!(lines, "{subject} {predicate} {object}");
        if let Some(graph) = graph {
            let _ = write!(lines, " {graph}");
        }
        lines.push_str(" .\n");
        Ok(())
    }

    fn object(&self, row: usize) -> std::result::Result<Option<Term>, String> {
        let Some(array) = &self.columns[2] else { return Ok(None) };
        let cell = cell(array, row).map_err(|message| format!("column object: {message}"))?;
        let Some((text, own)) = cell else { return Ok(None) };
        if let Some(language) = self.text(5, row)? {
            let literal = Literal::new_language_tagged_literal(text, language);
            return literal
                .map(|literal| Some(literal.into()))
                .map_err(|error| format!("column language: {error}"));
        }
        if let Some(datatype) = self.text(4, row)? {
            let datatype = NamedNode::new(datatype).map_err(|error| format!("column datatype: {error}"))?;
            return Ok(Some(Literal::new_typed_literal(text, datatype).into()));
        }
        Ok(Some(match own {
            Some(datatype) => {
                Literal::new_typed_literal(text, NamedNode::new_unchecked(xsd(datatype))).into()
            }
            None => node(&text).unwrap_or_else(|| Literal::new_simple_literal(text).into()),
        }))
    }
}

fn xsd(name: &str) -> String {
    format!("http://www.w3.org/2001/XMLSchema#{name}")
}

/// The IRI or blank node of a text, as in names of property graphs.
fn node(text: &str) -> Option<Term> {
    if let Some(label) = text.strip_prefix("_:") {
        return BlankNode::new(label).ok().map(Term::from);
    }
    if is_iri(text) || text.split_once(':').is_some_and(|(scheme, _)| matches!(scheme, "mailto" | "tel")) {
        return NamedNode::new(text).ok().map(Term::from);
    }
    None
}

fn primitive<T: ArrowPrimitiveType>(array: &dyn Array, row: usize) -> T::Native {
    array.as_primitive::<T>().value(row)
}

/// A cell as text, and the name of its datatype in XML Schema if it is not a text.
type CellText = Option<(String, Option<&'static str>)>;

fn cell(array: &dyn Array, row: usize) -> std::result::Result<CellText, String> {
    if array.is_null(row) {
        return Ok(None);
    }
    macro_rules! integer {
        ($kind:ty) => {
            Ok(Some((primitive::<$kind>(array, row).to_string(), Some("integer"))))
        };
    }
    let text = |text: &str| Ok(Some((text.to_owned(), None)));
    let inline = |value: Inline, datatype| {
        let mut text = String::new();
        value.write_lexical(&mut text);
        Ok(Some((text, Some(datatype))))
    };
    match array.data_type() {
        DataType::Null => Ok(None),
        DataType::Utf8 => text(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => text(array.as_string::<i64>().value(row)),
        DataType::Utf8View => text(array.as_string_view().value(row)),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let Some((key, _)) = cell(dictionary.keys(), row)? else { return Ok(None) };
            let key: usize = key.parse().map_err(|_| "a key of the dictionary is negative".to_owned())?;
            match key < dictionary.values().len() {
                true => cell(dictionary.values(), key),
                false => Err("a key is beyond the dictionary".to_owned()),
            }
        }
        DataType::Boolean => inline(Inline::Boolean(array.as_boolean().value(row)), "boolean"),
        DataType::Int8 => integer!(Int8Type),
        DataType::Int16 => integer!(Int16Type),
        DataType::Int32 => integer!(Int32Type),
        DataType::Int64 => integer!(Int64Type),
        DataType::UInt8 => integer!(UInt8Type),
        DataType::UInt16 => integer!(UInt16Type),
        DataType::UInt32 => integer!(UInt32Type),
        DataType::UInt64 => integer!(UInt64Type),
        DataType::Float32 => inline(Inline::Double(primitive::<Float32Type>(array, row).into()), "double"),
        DataType::Float64 => inline(Inline::Double(primitive::<Float64Type>(array, row)), "double"),
        DataType::Decimal128(_, scale) => {
            Ok(Some((decimal::text(primitive::<Decimal128Type>(array, row), *scale), Some("decimal"))))
        }
        DataType::Date32 => inline(Inline::Date(primitive::<Date32Type>(array, row).into()), "date"),
        DataType::Timestamp(unit, zone) => {
            let nanos: i128 = match unit {
                TimeUnit::Second => i128::from(primitive::<TimestampSecondType>(array, row)) * 1_000_000_000,
                TimeUnit::Millisecond => {
                    i128::from(primitive::<TimestampMillisecondType>(array, row)) * 1_000_000
                }
                TimeUnit::Microsecond => {
                    i128::from(primitive::<TimestampMicrosecondType>(array, row)) * 1_000
                }
                TimeUnit::Nanosecond => primitive::<TimestampNanosecondType>(array, row).into(),
            };
            let at = time::OffsetDateTime::from_unix_timestamp_nanos(nanos)
                .map_err(|error| format!("the time is out of range: {error}"))?;
            let mut text = format!(
                "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
                at.year(),
                u8::from(at.month()),
                at.day(),
                at.hour(),
                at.minute(),
                at.second()
            );
            if at.nanosecond() > 0 {
                let fraction = format!(".{:09}", at.nanosecond());
                text.push_str(fraction.trim_end_matches('0'));
            }
            if zone.is_some() {
                text.push('Z');
            }
            Ok(Some((text, Some("dateTime"))))
        }
        other => Err(format!("the type {other} has no datatype of RDF")),
    }
}
