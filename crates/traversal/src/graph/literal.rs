//! Conversion between literal ids and Gremlin values; `vervet_tinkerpop::rdf_values` defines the mapping.

use bigdecimal::BigDecimal;
use oxrdf::{Literal, vocab::xsd};
use std::borrow::Cow;
use std::sync::Arc;
use time::{Duration as Span, OffsetDateTime};
use vervet_gremlin::{Extended, Value};
use vervet_model::{Id, Inline, LiteralKind, Result, TermParts, unmetered};
use vervet_snapshot::Snapshot;
pub use vervet_tinkerpop::rdf_values::literal;
use vervet_tinkerpop::rdf_values::{double_text, float_text, typed};

/// The value of a literal id; `None`: the id is not a literal.
pub(crate) fn value(snapshot: &dyn Snapshot, id: Id) -> Result<Option<Value>> {
    if let Some(inline) = Inline::from_id(id) {
        return Ok(Some(match inline {
            Inline::ShortString { .. } => Value::text(inline.as_str().unwrap_or_default()),
            Inline::Integer(number) | Inline::Long(number) => Value::Long(number),
            Inline::Int(number) => Value::Int(number),
            Inline::Double(number) => Value::Double(number),
            Inline::Boolean(value) => Value::Boolean(value),
            Inline::DateTime(ms) => {
                match OffsetDateTime::from_unix_timestamp_nanos(i128::from(ms) * 1_000_000) {
                    Ok(time) => time.into(),
                    Err(_) => other(&inline),
                }
            }
            Inline::Date(days) => match OffsetDateTime::UNIX_EPOCH.checked_add(Span::days(days)) {
                Some(date) => Value::Extended(Arc::new(Extended::LocalDate(
                    date.year(),
                    u8::from(date.month()),
                    date.day(),
                ))),
                None => other(&inline),
            },
            Inline::Decimal { mantissa, scale } => {
                Value::BigDecimal(Arc::new(BigDecimal::new(mantissa.into(), i64::from(scale))))
            }
        }));
    }
    if !id.is_stored_literal() {
        return Ok(None);
    }
    let mut value = None;
    snapshot.read_term(id, &mut String::new(), &mut |parts| value = of_parts(&parts))?;
    Ok(value)
}

/// The result of [`value`], and the literal in N-Triples, from one dictionary look-up. `scratch` is a
/// reusable buffer.
pub(crate) fn value_and_text(
    snapshot: &dyn Snapshot,
    id: Id,
    scratch: &mut String,
    text: &mut Vec<u8>,
) -> Result<Option<Value>> {
    let mut found = match Inline::from_id(id) {
        Some(_) => value(snapshot, id)?,
        None => None,
    };
    snapshot.read_term(id, scratch, &mut |parts| {
        if found.is_none() {
            found = of_parts(&parts);
        }
        parts.write_nt(text);
    })?;
    Ok(found)
}

fn of_parts(parts: &TermParts<'_>) -> Option<Value> {
    let TermParts::Literal { head, tail, kind } = parts else { return None };
    let text = || if tail.is_empty() { Cow::Borrowed(*head) } else { Cow::Owned(format!("{head}{tail}")) };
    Some(match kind {
        LiteralKind::String | LiteralKind::Language(_) | LiteralKind::Triple => Value::String(text().into()),
        LiteralKind::Typed(datatype) => typed(&text(), datatype),
    })
}

fn other(inline: &Inline) -> Value {
    let mut text = String::new();
    inline.write_lexical(&mut text);
    Value::String(text.into())
}

/// The literals of the graph whose Gremlin value equals this one: the keys for an index look-up. `None`: the
/// index cannot answer. Dictionary literals of numbers in non-canonical form are omitted. A string matches
/// plain strings, language-tagged strings, and literals whose type has no Gremlin type.
pub(crate) fn equal_literals(snapshot: &dyn Snapshot, wanted: &Value) -> Result<Option<Vec<Id>>> {
    let mut found = Vec::new();
    for literal in literals_of(wanted) {
        found.extend(snapshot.lookup(literal.as_ref().into())?);
    }
    if let Value::String(text) = wanted {
        // The upper bound of the text's literals.
        let end = format!("{text}\0");
        let Some(places) = snapshot.literal_range(text.as_bytes(), Some(end.as_bytes()))? else {
            return Ok(None);
        };
        let mut others = Vec::new();
        snapshot.literals_in_order(places, &mut others)?;
        snapshot.unordered_literals(text.as_bytes(), Some(end.as_bytes()), &mut others, &mut unmetered)?;
        for id in others {
            // An equal lexical form may be another value, such as a number.
            if value(snapshot, id)?.as_ref() == Some(wanted) {
                found.push(id);
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(Some(found))
}

/// Maximum number of fraction digits of inline decimals (`vervet_model::Inline::Decimal`).
const DIGITS_MAX: usize = 15;

/// The literals of all types that equal a value, except language-tagged strings and literals of unknown
/// types.
fn literals_of(value: &Value) -> Vec<Literal> {
    let mut all: Vec<Literal> = literal(value).ok().into_iter().collect();
    if let Value::Boolean(value) = value {
        all.push(Literal::new_typed_literal(if *value { "1" } else { "0" }, xsd::BOOLEAN));
    }
    let integer = match value {
        Value::Float(number) if number.fract() == 0.0 && number.abs() < 9e15 => Some(f64::from(*number)),
        Value::Double(number) if number.fract() == 0.0 && number.abs() < 9e15 => Some(*number),
        _ => None,
    };
    #[expect(clippy::cast_possible_truncation, reason = "it is whole, and below 2^53")]
    let integer = integer.map(|number| number as i64).or_else(|| value.as_integer());
    if let Some(number) = integer {
        let text = number.to_string();
        for datatype in [xsd::INTEGER, xsd::LONG, xsd::INT, xsd::SHORT, xsd::BYTE, xsd::DECIMAL] {
            all.push(Literal::new_typed_literal(&text, datatype));
        }
        // Inline decimals keep their number of digits.
        for digits in 1..=DIGITS_MAX {
            all.push(Literal::new_typed_literal(format!("{text}.{:0digits$}", 0), xsd::DECIMAL));
        }
        if number == 0 {
            all.push(Literal::new_typed_literal("-0.0E0", xsd::DOUBLE));
        }
        let big = Value::BigInteger(Arc::new(number.into()));
        all.extend(literal(&big));
        if number.unsigned_abs() < 1 << 53 {
            all.push(Literal::from(number as f64));
            all.push(Literal::new_typed_literal(double_text(number as f64), xsd::DOUBLE));
        }
        if number.unsigned_abs() < 1 << 24 {
            all.push(Literal::from(number as f32));
            all.push(Literal::new_typed_literal(float_text(number as f32), xsd::FLOAT));
        }
    }
    all.sort_unstable_by(|a, b| (a.value(), a.datatype().as_str()).cmp(&(b.value(), b.datatype().as_str())));
    all.dedup();
    all
}

/// Whether [`equal_literals`] finds every stored literal that equals this value.
pub(crate) fn is_indexed(value: &Value) -> bool {
    matches!(value, Value::String(_) | Value::Boolean(_) | Value::Uuid(_)) || value.as_integer().is_some()
}
