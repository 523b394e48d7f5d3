//! Values as they are stored, and back.
//!
//! # Shape
//! | Gremlin | datatype |
//! | --- | --- |
//! | String | `xsd:string`; a text with a language tag is read as one, too |
//! | Boolean, Byte, Short, Int, Long, Float, Double | `xsd:boolean`, `byte`, `short`, `int`, `long`, `float`, `double` |
//! | BigInteger | `xsd:integer`; one that fits 64 bits gets a leading zero, since `xsd:integer` is read as Long where it fits |
//! | BigDecimal | `xsd:decimal` |
//! | OffsetDateTime, LocalDate, Duration | `xsd:dateTime`, `xsd:date`, `xsd:dayTimeDuration` |
//! | UUID, Character | `urn:vervet:datatype:uuid`, `…:character` |
//! | lists, sets, maps, all else | `urn:vervet:datatype:graphson` |
//!
//! Literals of other datatypes are read as their text.

use bigdecimal::BigDecimal;
use num_bigint::BigInt;
use oxrdf::{Literal, NamedNodeRef, vocab::xsd};
use std::str::FromStr;
use std::sync::Arc;
use time::format_description::well_known::Rfc3339;
use time::{Duration as Span, OffsetDateTime};
use vervet_gremlin::{Duration, Extended, Value};
use vervet_model::vocab::{CHARACTER_DATATYPE, GRAPHSON_DATATYPE, UUID_DATATYPE};
use vervet_model::{Error, ErrorKind, Id, Inline, LiteralKind, Result, TermParts};
use vervet_snapshot::Snapshot;
use vervet_tinkerpop::{Limits, graphson};

/// Digits of a stored decimal, before and behind the point.
const DECIMAL_DIGITS_MAX: i64 = 100_000;

/// The value of a literal's id; `None`: it is no literal.
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
    snapshot.read_term(id, &mut String::new(), &mut |parts| {
        if let TermParts::Literal { head, tail, kind } = parts {
            let text = format!("{head}{tail}");
            value = Some(match kind {
                LiteralKind::String | LiteralKind::Language(_) => Value::String(text.into()),
                LiteralKind::Typed(datatype) => typed(&text, datatype),
            });
        }
    })?;
    Ok(value)
}

fn other(inline: &Inline) -> Value {
    let mut text = String::new();
    inline.write_lexical(&mut text);
    Value::String(text.into())
}

/// The value of a lexical form; its text if it is no value of the datatype.
fn typed(text: &str, datatype: &str) -> Value {
    let known = match NamedNodeRef::new_unchecked(datatype) {
        xsd::INTEGER => BigInt::from_str(text).ok().map(|number| match i64::try_from(&number) {
            Ok(small) if small.to_string() == text => Value::Long(small),
            _ => Value::BigInteger(Arc::new(number)),
        }),
        xsd::INT => text.parse().ok().map(Value::Int),
        xsd::LONG => text.parse().ok().map(Value::Long),
        xsd::SHORT => text.parse().ok().map(Value::Short),
        xsd::BYTE => text.parse().ok().map(Value::Byte),
        xsd::FLOAT => float(text).map(Value::Float),
        xsd::DOUBLE => double(text).map(Value::Double),
        xsd::BOOLEAN => match text {
            "true" | "1" => Some(Value::Boolean(true)),
            "false" | "0" => Some(Value::Boolean(false)),
            _ => None,
        },
        xsd::DECIMAL => BigDecimal::from_str(text).ok().map(|number| Value::BigDecimal(Arc::new(number))),
        xsd::DATE_TIME => date_time(text).map(Value::from),
        xsd::DAY_TIME_DURATION | xsd::DURATION => duration(text).map(Value::Duration),
        _ => match datatype {
            UUID_DATATYPE => uuid::Uuid::parse_str(text).ok().map(Value::Uuid),
            CHARACTER_DATATYPE => text.chars().next().map(Value::Char),
            GRAPHSON_DATATYPE => from_graphson(text),
            _ => None,
        },
    };
    known.unwrap_or_else(|| Value::text(text))
}

/// A value of a type that has no datatype of its own.
fn from_graphson(text: &str) -> Option<Value> {
    graphson::read(text.as_bytes(), Limits::default()).ok()
}

fn to_graphson(value: &Value) -> Result<String> {
    let mut out = Vec::new();
    graphson::write(value, graphson::Dialect::V3, &mut out).map_err(|_| not_storable(value))?;
    String::from_utf8(out).map_err(|_| not_storable(value))
}

fn float(text: &str) -> Option<f32> {
    match text {
        "INF" | "+INF" => Some(f32::INFINITY),
        "-INF" => Some(f32::NEG_INFINITY),
        text => text.parse().ok(),
    }
}

fn double(text: &str) -> Option<f64> {
    match text {
        "INF" | "+INF" => Some(f64::INFINITY),
        "-INF" => Some(f64::NEG_INFINITY),
        text => text.parse().ok(),
    }
}

/// `xsd:dateTime`; without a zone it is in UTC.
fn date_time(text: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text, &Rfc3339)
        .or_else(|_| OffsetDateTime::parse(&format!("{text}Z"), &Rfc3339))
        .ok()
}

fn duration(text: &str) -> Option<Duration> {
    let value = oxsd_seconds(text)?;
    Some(Duration { seconds: value.0, nanoseconds: value.1 })
}

/// Seconds and nanoseconds of `[-]P[nD][T[nH][nM][n[.n]S]]`.
fn oxsd_seconds(text: &str) -> Option<(i64, u32)> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let text = text.strip_prefix('P')?;
    let (days, clock) = text.split_once('T').unwrap_or((text, ""));
    let mut nanoseconds: i128 = 0;
    let mut add = |mut rest: &str, units: &[(char, i128)]| -> Option<()> {
        while !rest.is_empty() {
            let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
            let (number, unit) = (&rest[..end], rest[end..].chars().next()?);
            let (_, size) = units.iter().find(|(name, _)| *name == unit)?;
            let (whole, part) = number.split_once('.').unwrap_or((number, ""));
            nanoseconds =
                nanoseconds.checked_add(whole.parse::<i64>().ok().map(i128::from)?.checked_mul(*size)?)?;
            if !part.is_empty() {
                let digits: String = part.chars().chain("000000000".chars()).take(9).collect();
                nanoseconds += digits.parse::<i128>().ok()? * size / 1_000_000_000;
            }
            rest = &rest[end + 1..];
        }
        Some(())
    };
    const SECOND: i128 = 1_000_000_000;
    add(days, &[('D', 86_400 * SECOND)])?;
    add(clock, &[('H', 3600 * SECOND), ('M', 60 * SECOND), ('S', SECOND)])?;
    let total = if negative { -nanoseconds } else { nanoseconds };
    Some((i64::try_from(total.div_euclid(SECOND)).ok()?, u32::try_from(total.rem_euclid(SECOND)).ok()?))
}

/// The literal that a value is stored as.
///
/// # Errors
/// Input: a value that cannot be a property.
pub fn literal(value: &Value) -> Result<Literal> {
    let typed = |text: String, datatype: NamedNodeRef<'_>| Literal::new_typed_literal(text, datatype);
    let own = |text: String, datatype| typed(text, NamedNodeRef::new_unchecked(datatype));
    Ok(match value {
        Value::String(text) => Literal::new_simple_literal(text.to_string()),
        Value::Boolean(value) => Literal::from(*value),
        Value::Byte(number) => typed(number.to_string(), xsd::BYTE),
        Value::Short(number) => typed(number.to_string(), xsd::SHORT),
        Value::Int(number) => typed(number.to_string(), xsd::INT),
        Value::Long(number) => typed(number.to_string(), xsd::LONG),
        Value::Float(number) => Literal::from(*number),
        Value::Double(number) => Literal::from(*number),
        Value::BigInteger(number) => {
            let text = number.to_string();
            let marked = match (i64::try_from(number.as_ref()), text.strip_prefix('-')) {
                (Ok(_), Some(digits)) => format!("-0{digits}"),
                (Ok(_), None) => format!("0{text}"),
                _ => text,
            };
            typed(marked, xsd::INTEGER)
        }
        Value::BigDecimal(number) => {
            if number.fractional_digit_count().abs() > DECIMAL_DIGITS_MAX {
                let message =
                    format!("a decimal number of more than {DECIMAL_DIGITS_MAX} digits cannot be stored");
                return Err(Error::new(ErrorKind::Input, message));
            }
            typed(number.to_plain_string(), xsd::DECIMAL)
        }
        Value::DateTime(time) => {
            let text = time.format(&Rfc3339).map_err(|_| not_storable(value))?;
            typed(text, xsd::DATE_TIME)
        }
        Value::Duration(length) => {
            let total = i128::from(length.seconds) * 1_000_000_000 + i128::from(length.nanoseconds);
            let (sign, size) = if total < 0 { ("-", -total) } else { ("", total) };
            let (seconds, rest) = (size / 1_000_000_000, size % 1_000_000_000);
            let fraction = if rest == 0 { String::new() } else { format!(".{rest:09}") };
            typed(format!("{sign}PT{seconds}{fraction}S"), xsd::DAY_TIME_DURATION)
        }
        Value::Extended(extended) => match extended.as_ref() {
            Extended::LocalDate(year @ 0..=9999, month, day) => {
                typed(format!("{year:04}-{month:02}-{day:02}"), xsd::DATE)
            }
            _ => own(to_graphson(value)?, GRAPHSON_DATATYPE),
        },
        Value::Char(character) => own(character.to_string(), CHARACTER_DATATYPE),
        Value::Uuid(uuid) => own(uuid.to_string(), UUID_DATATYPE),
        Value::List(_) | Value::Set(_) | Value::Map(_) => own(to_graphson(value)?, GRAPHSON_DATATYPE),
        _ => return Err(not_storable(value)),
    })
}

fn not_storable(value: &Value) -> Error {
    let message = format!("a property cannot have a value of the type {}", value.type_name());
    Error::new(ErrorKind::Input, message)
}

/// The literals that are equal to a value, whatever their types: what an index has to be asked for.
pub(crate) fn equal_literals(value: &Value) -> Vec<Literal> {
    let mut all: Vec<Literal> = literal(value).ok().into_iter().collect();
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
        let big = Value::BigInteger(Arc::new(number.into()));
        all.extend(literal(&big));
        if number.unsigned_abs() < 1 << 53 {
            all.push(Literal::from(number as f64));
        }
        if number.unsigned_abs() < 1 << 24 {
            all.push(Literal::from(number as f32));
        }
    }
    all.sort_unstable_by(|a, b| (a.value(), a.datatype().as_str()).cmp(&(b.value(), b.datatype().as_str())));
    all.dedup();
    all
}

/// Whether [`equal_literals`] finds every stored value that is equal to this one.
pub(crate) fn is_indexed(value: &Value) -> bool {
    matches!(value, Value::String(_) | Value::Boolean(_) | Value::Uuid(_)) || value.as_integer().is_some()
}
