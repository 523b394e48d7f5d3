//! Mapping of Gremlin values and ids to RDF: literals, and names of vertices. docs/gremlin.md specifies it;
//! loaders, traversals and file writers share it.
//!
//! # Shape
//! | Gremlin | datatype |
//! | --- | --- |
//! | String | `xsd:string`; a language-tagged string is also read as one |
//! | Boolean, Byte, Short, Int, Long, Float, Double | `xsd:boolean`, `byte`, `short`, `int`, `long`, `float`, `double` |
//! | BigInteger | `xsd:integer`; one that fits 64 bits gets a leading zero, since `xsd:integer` is read as Long if it fits |
//! | BigDecimal | `xsd:decimal` |
//! | OffsetDateTime, LocalDate, Duration | `xsd:dateTime`, `xsd:date`, `xsd:dayTimeDuration` |
//! | UUID, Character | `urn:vervet:datatype:uuid`, `…:character` |
//! | lists, sets, maps, all other types | `urn:vervet:datatype:graphson` |
//!
//! Literals of other datatypes are read as their lexical form.

use crate::{Limits, graphson};
use bigdecimal::BigDecimal;
use num_bigint::{BigInt, Sign};
use oxrdf::{Literal, NamedNodeRef, vocab::xsd};
use std::str::FromStr;
use std::sync::Arc;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use vervet_gremlin::{Duration, Extended, Value};
use vervet_model::vocab::{CHARACTER_DATATYPE, GRAPHSON_DATATYPE, UUID_DATATYPE};
use vervet_model::{Error, ErrorKind, Inline, Result};

/// Maximum number of digits of a stored integer or decimal, before and after the point. A literal with more
/// is read as a text, since the conversion of digits takes quadratic time.
const DECIMAL_DIGITS_MAX: i64 = 100_000;
/// Maximum number of trailing zeros of a decimal with an exponent that is an id.
const ID_ZEROS_MAX: i64 = 100;
const UUID_NAMESPACE: &str = "urn:uuid:";

/// The external id of a vertex as text, in the form of the facade's typed writes.
///
/// # Errors
/// Input: a type that cannot be an id.
pub fn vertex_name(id: &Value) -> Result<String> {
    match id {
        Value::String(text) => Ok(text.to_string()),
        Value::Uuid(uuid) => Ok(format!("{UUID_NAMESPACE}{uuid}")),
        Value::Float(number) if number.fract() == 0.0 => Ok(format!("{number:.0}")),
        Value::Double(number) if number.fract() == 0.0 => Ok(format!("{number:.0}")),
        Value::BigInteger(number) => Ok(number.to_string()),
        Value::BigDecimal(number) if is_short_integer(number) => Ok(number.with_scale(0).to_string()),
        id => match id.as_integer() {
            Some(number) => Ok(number.to_string()),
            None => Err(Error::new(
                ErrorKind::Input,
                format!("a vertex or an edge cannot have an id of the type {}", id.type_name()),
            )
            .with_hint("ids are numbers, texts and UUIDs")),
        },
    }
}

/// Whether a decimal is an integer with few trailing zeros. The scale is checked first: it is unbounded, and
/// [`BigDecimal::is_integer`] computes that many digits.
fn is_short_integer(number: &BigDecimal) -> bool {
    let (digits, scale) = number.as_bigint_and_scale();
    // A number of n bits has at most n / 3 + 1 digits; with a longer fraction it is an integer only if all
    // its digits are 0.
    let digits_max = i64::try_from(digits.bits() / 3 + 1).unwrap_or(i64::MAX);
    let is_fraction = scale > digits_max && digits.sign() != Sign::NoSign;
    scale > -ID_ZEROS_MAX && scale <= DECIMAL_DIGITS_MAX && !is_fraction && number.is_integer()
}

/// The external id that a vertex name represents.
#[must_use]
pub fn value_of_name(name: &str) -> Value {
    if let Some(uuid) = name.strip_prefix(UUID_NAMESPACE).and_then(|text| uuid::Uuid::parse_str(text).ok()) {
        return Value::Uuid(uuid);
    }
    match name.parse::<i64>() {
        Ok(number) if number.to_string() == name => Value::Long(number),
        _ => Value::text(name),
    }
}

/// The value of a lexical form; the lexical form itself if it is invalid for the datatype.
#[must_use]
pub fn typed(text: &str, datatype: &str) -> Value {
    let known = match NamedNodeRef::new_unchecked(datatype) {
        xsd::INTEGER if is_number(text, false) => {
            BigInt::from_str(text).ok().map(|number| match i64::try_from(&number) {
                Ok(small) if small.to_string() == text => Value::Long(small),
                _ => Value::BigInteger(Arc::new(number)),
            })
        }
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
        xsd::DECIMAL if is_number(text, true) => {
            BigDecimal::from_str(text).ok().map(|number| Value::BigDecimal(Arc::new(number)))
        }
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

/// Whether a text is a lexical form of `xsd:integer` or `xsd:decimal`, and not too long. The libraries accept
/// more: underscores, exponents.
fn is_number(text: &str, point: bool) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = match unsigned.split_once('.') {
        Some(parts) if point => parts,
        _ => (unsigned, ""),
    };
    let count = whole.len() + fraction.len();
    let digits = whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    digits && count > 0 && i64::try_from(count).is_ok_and(|count| count <= DECIMAL_DIGITS_MAX)
}

/// A value of a type without a datatype of its own.
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

/// `xsd:dateTime`; UTC without a zone.
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

/// The literal of a value.
///
/// # Errors
/// Input: a type that cannot be a property value.
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
        Value::Float(number) => typed(float_text(*number), xsd::FLOAT),
        Value::Double(number) => typed(double_text(*number), xsd::DOUBLE),
        Value::BigInteger(number) => {
            let too_long = || {
                let message = format!("an integer of more than {DECIMAL_DIGITS_MAX} digits cannot be stored");
                Error::new(ErrorKind::Input, message)
            };
            // A digit has less than 3.4 bits; the conversion takes quadratic time.
            if number.bits() / 34 * 10 > DECIMAL_DIGITS_MAX.unsigned_abs() {
                return Err(too_long());
            }
            let text = number.to_string();
            if i64::try_from(text.trim_start_matches('-').len()).is_ok_and(|count| count > DECIMAL_DIGITS_MAX)
            {
                return Err(too_long());
            }
            let marked = match (i64::try_from(number.as_ref()), text.strip_prefix('-')) {
                (Ok(_), Some(digits)) => format!("-0{digits}"),
                (Ok(_), None) => format!("0{text}"),
                _ => text,
            };
            typed(marked, xsd::INTEGER)
        }
        Value::BigDecimal(number) => {
            if number.fractional_digit_count().unsigned_abs() > DECIMAL_DIGITS_MAX.unsigned_abs() {
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

/// The canonical form, which is inline in an id if the number fits: `1.5E0`.
#[must_use]
pub fn double_text(number: f64) -> String {
    let mut text = String::new();
    Inline::Double(number).write_lexical(&mut text);
    text
}

/// The canonical form of a single-precision number.
#[must_use]
pub fn float_text(number: f32) -> String {
    if !number.is_finite() {
        return double_text(f64::from(number));
    }
    let mut text = format!("{number:E}");
    if let (None, Some(exponent)) = (text.find('.'), text.find('E')) {
        text.insert_str(exponent, ".0");
    }
    text
}

fn not_storable(value: &Value) -> Error {
    let message = format!("a property cannot have a value of the type {}", value.type_name());
    Error::new(ErrorKind::Input, message)
}

#[cfg(test)]
mod tests {
    use super::{DECIMAL_DIGITS_MAX, literal, typed, vertex_name};
    use bigdecimal::BigDecimal;
    use num_bigint::BigInt;
    use oxrdf::vocab::xsd;
    use std::sync::Arc;
    use vervet_gremlin::Value;

    /// The forms of XML Schema are numbers, and no others; a length beyond the limit takes linear time.
    #[test]
    fn numbers_of_any_length_are_those_of_xml_schema() {
        let is_number = |text: &str, datatype: oxrdf::NamedNodeRef<'_>| {
            let value = typed(text, datatype.as_str());
            matches!(value, Value::Long(_) | Value::BigInteger(_) | Value::BigDecimal(_))
        };
        let long = "7".repeat(1_000);
        for text in ["7", "-7", "+7", "007", "99999999999999999999999999999999999999999", &long] {
            assert!(is_number(text, xsd::INTEGER) && is_number(text, xsd::DECIMAL), "{text}");
        }
        for text in
            ["0.5", ".5", "5.", "-0.0000000000000000000000000000000000000001", &format!("{long}.{long}")]
        {
            assert!(!is_number(text, xsd::INTEGER) && is_number(text, xsd::DECIMAL), "{text}");
        }
        let million = "7".repeat(1_000_000);
        for text in
            ["", ".", "-", "1_000", "1e5", "1E-999999999", "1e999999999", "x", "1.2.3", "--1", " 1", &million]
        {
            assert!(!is_number(text, xsd::INTEGER) && !is_number(text, xsd::DECIMAL), "{text:.20}");
        }
        // What is stored is read again.
        let digits = usize::try_from(DECIMAL_DIGITS_MAX).expect("positive");
        let greatest: BigInt = "9".repeat(digits).parse().expect("digits");
        let stored = literal(&Value::BigInteger(Arc::new(greatest.clone()))).expect("as long as possible");
        assert!(
            matches!(typed(stored.value(), xsd::INTEGER.as_str()), Value::BigInteger(read) if *read == greatest)
        );
        assert!(literal(&Value::BigInteger(Arc::new(greatest * 1_000_000_u64))).is_err());
    }

    /// query B8: the test for an integer never expands the exponent of a decimal.
    #[test]
    fn b8_ids_that_are_decimals() {
        let name = |digits: i64, scale: i64| {
            vertex_name(&Value::BigDecimal(Arc::new(BigDecimal::new(digits.into(), scale)))).ok()
        };
        for (digits, scale, expected) in [
            (12, 0, Some("12")),
            (120, 1, Some("12")),
            (-7_000, 3, Some("-7")),
            (12, -2, Some("1200")),
            (0, 300, Some("0")),
            (12, 1, None),
            (1, 300, None),
            (1, -100, None),
            (1, 999_999_999, None),
            (1, -999_999_999, None),
            (0, i64::MAX, None),
            (1, i64::MAX, None),
            (1, i64::MIN, None),
        ] {
            assert_eq!(name(digits, scale).as_deref(), expected, "{digits} {scale}");
        }
        for scale in [i64::MIN, i64::MAX] {
            assert!(literal(&Value::BigDecimal(Arc::new(BigDecimal::new(1.into(), scale)))).is_err());
        }
    }
}
