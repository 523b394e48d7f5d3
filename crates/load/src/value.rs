//! Property values: conversion of file text to the canonical lexical form of a datatype.
//!
//! The canonical form is required: two spellings of one number must be one value, and only canonical forms
//! are inline in ids.

use std::borrow::Cow;
use vervet_model::Inline;
use vervet_model::vocab::UUID_DATATYPE;

/// The names of types, for messages.
pub(crate) const TYPES: &str = "string, int, long, biginteger, float, double, decimal, boolean, date, time, datetime, duration, uuid, and lists such as int[]";

/// Datatypes of property columns and keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Type {
    Boolean,
    Int,
    Long,
    BigInteger,
    Float,
    Double,
    Decimal,
    String,
    Uuid,
    Date,
    Time,
    DateTime,
    Duration,
}

impl Type {
    /// The type with this name in GraphML or in a CSV header, case-insensitive.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "boolean" | "bool" => Self::Boolean,
            "int" | "integer" | "short" | "byte" => Self::Int,
            "long" => Self::Long,
            "biginteger" => Self::BigInteger,
            "float" => Self::Float,
            "double" => Self::Double,
            "decimal" => Self::Decimal,
            "string" | "char" => Self::String,
            "uuid" => Self::Uuid,
            "date" => Self::Date,
            // Neo4j has types for times with and without zone.
            "time" | "localtime" => Self::Time,
            "datetime" | "localdatetime" => Self::DateTime,
            "duration" => Self::Duration,
            _ => return None,
        })
    }

    /// The name in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Int => "int",
            Self::Long => "long",
            Self::BigInteger => "biginteger",
            Self::Float => "float",
            Self::Double => "double",
            Self::Decimal => "decimal",
            Self::String => "string",
            Self::Uuid => "uuid",
            Self::Date => "date",
            Self::Time => "time",
            Self::DateTime => "datetime",
            Self::Duration => "duration",
        }
    }

    /// The datatype IRI.
    pub(crate) fn iri(self) -> &'static str {
        match self {
            Self::Boolean => "http://www.w3.org/2001/XMLSchema#boolean",
            Self::Int => "http://www.w3.org/2001/XMLSchema#int",
            Self::Long => "http://www.w3.org/2001/XMLSchema#long",
            Self::BigInteger => "http://www.w3.org/2001/XMLSchema#integer",
            Self::Float => "http://www.w3.org/2001/XMLSchema#float",
            Self::Double => "http://www.w3.org/2001/XMLSchema#double",
            Self::Decimal => "http://www.w3.org/2001/XMLSchema#decimal",
            Self::String => "http://www.w3.org/2001/XMLSchema#string",
            Self::Uuid => UUID_DATATYPE,
            Self::Date => "http://www.w3.org/2001/XMLSchema#date",
            Self::Time => "http://www.w3.org/2001/XMLSchema#time",
            Self::DateTime => "http://www.w3.org/2001/XMLSchema#dateTime",
            Self::Duration => "http://www.w3.org/2001/XMLSchema#duration",
        }
    }

    /// The narrowest type of `text`, for columns without a type. A number with a leading zero or plus is a
    /// string, since it is usually a code.
    pub(crate) fn infer(text: &str) -> Self {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let whole = digits.split(['.', 'e', 'E']).next().unwrap_or_default();
        let canonical_start = whole == "0" || (!whole.starts_with('0') && !whole.is_empty());
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if matches!(text, "true" | "false") {
            Self::Boolean
        } else if !canonical_start || !is_number(whole) {
            Self::String
        } else if is_number(digits) {
            match text.parse::<i64>() {
                Ok(value) if i32::try_from(value).is_ok() => Self::Int,
                Ok(_) => Self::Long,
                Err(_) => Self::String,
            }
        } else if digits.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte))
            && !text.ends_with('.')
            && text.parse::<f64>().is_ok()
        {
            Self::Double
        } else {
            Self::String
        }
    }

    /// The narrowest type that holds the values of both types.
    pub(crate) fn join(self, other: Self) -> Self {
        match (self, other) {
            (one, other) if one == other => one,
            (Self::Int | Self::Long, Self::Int | Self::Long) => Self::Long,
            (Self::Int | Self::Long | Self::Double, Self::Int | Self::Long | Self::Double) => Self::Double,
            _ => Self::String,
        }
    }

    /// The canonical lexical form of `text`; `None` if it is not a value of this type.
    pub(crate) fn canonical(self, text: &str) -> Option<Cow<'_, str>> {
        self.value(text).map(Canonical::into_text)
    }

    /// The canonical value; numbers and booleans are not formatted.
    pub(crate) fn value(self, text: &str) -> Option<Canonical<'_>> {
        let owned = |text| Some(Canonical::Text(Cow::Owned(text)));
        let trimmed = text.trim();
        let value = match self {
            Self::String => return Some(Canonical::Text(Cow::Borrowed(text))),
            Self::Boolean if trimmed.eq_ignore_ascii_case("true") || trimmed == "1" => Inline::Boolean(true),
            Self::Boolean if trimmed.eq_ignore_ascii_case("false") || trimmed == "0" => {
                Inline::Boolean(false)
            }
            Self::Boolean => return None,
            Self::Int => Inline::Int(trimmed.parse().ok()?),
            Self::Long => Inline::Long(trimmed.parse().ok()?),
            Self::Double => Inline::Double(parse_float(trimmed)?),
            Self::Float => return float(trimmed).and_then(owned),
            Self::BigInteger => return number(trimmed, false).and_then(owned),
            Self::Decimal => return number(trimmed, true).and_then(owned),
            Self::Uuid => return uuid(trimmed).and_then(owned),
            Self::Time => {
                trimmed.parse::<oxsdatatypes::Time>().ok()?;
                return owned(trimmed.to_owned());
            }
            Self::Date => {
                trimmed.parse::<oxsdatatypes::Date>().ok()?;
                return owned(trimmed.to_owned());
            }
            Self::DateTime => return date_time(trimmed).and_then(owned),
            Self::Duration => {
                return trimmed
                    .parse::<oxsdatatypes::Duration>()
                    .ok()
                    .and_then(|text| owned(text.to_string()));
            }
        };
        Some(Canonical::Inline(value))
    }
}

/// A value in its canonical form.
#[derive(Debug)]
pub(crate) enum Canonical<'t> {
    /// A value whose lexical form is not built yet.
    Inline(Inline),
    Text(Cow<'t, str>),
}

impl<'t> Canonical<'t> {
    /// The lexical form.
    pub(crate) fn into_text(self) -> Cow<'t, str> {
        match self {
            Self::Text(text) => text,
            Self::Inline(value) => {
                let mut lexical = String::new();
                value.write_lexical(&mut lexical);
                Cow::Owned(lexical)
            }
        }
    }
}

fn parse_float(text: &str) -> Option<f64> {
    match text {
        // `inf` and `nan` are those of Python.
        "INF" | "+INF" | "Infinity" | "inf" => Some(f64::INFINITY),
        "-INF" | "-Infinity" | "-inf" => Some(f64::NEG_INFINITY),
        "NaN" | "nan" => Some(f64::NAN),
        _ if text.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte)) => text.parse().ok(),
        _ => None,
    }
}

/// The canonical form of a single-precision number.
fn float(text: &str) -> Option<String> {
    let wide = parse_float(text)?;
    let value = if wide.is_finite() { text.parse::<f32>().ok()? } else { narrow(wide) };
    (value.is_finite() || !wide.is_finite()).then(|| float_lexical(value))
}

/// Conversion of infinities and `NaN` to single precision.
fn narrow(wide: f64) -> f32 {
    if wide.is_nan() {
        f32::NAN
    } else if wide > 0.0 {
        f32::INFINITY
    } else {
        f32::NEG_INFINITY
    }
}

/// The shortest form that round-trips to the same single-precision number: its canonical form.
pub(crate) fn float_lexical(value: f32) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "INF" } else { "-INF" }.to_owned();
    }
    let mut lexical = format!("{value:E}");
    if !lexical.contains('.')
        && let Some(exponent) = lexical.find('E')
    {
        lexical.insert_str(exponent, ".0");
    }
    lexical
}

/// A number of any length without redundant zeros; with a point only if `may_have_point`, and if digits
/// follow it.
fn number(text: &str, may_have_point: bool) -> Option<String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = match digits.split_once('.') {
        Some(parts) if may_have_point => parts,
        Some(_) => return None,
        None => (digits, ""),
    };
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    Some(match (whole, fraction) {
        ("0", "") => "0".to_owned(),
        (whole, "") => format!("{sign}{whole}"),
        (whole, fraction) => format!("{sign}{whole}.{fraction}"),
    })
}

/// A UUID in lower case.
fn uuid(text: &str) -> Option<String> {
    let is_one = text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    is_one.then(|| text.to_ascii_lowercase())
}

/// Milliseconds since 1970, or a date and time with or without zone. A blank may separate date and time, as
/// in SQL; the zone may lack its colon, as in LDBC, or its minutes, as in Kùzu; a name of the zone in
/// brackets, as in Neo4j, is dropped behind an offset. UTC times become canonical.
fn date_time(text: &str) -> Option<String> {
    let mut lexical = String::new();
    if let Ok(milliseconds) = text.parse::<i64>() {
        // Outside the years of a four-digit `xsd:dateTime` there is no such form.
        if !(-62_135_596_800_000..253_402_300_800_000).contains(&milliseconds) {
            return None;
        }
        Inline::DateTime(milliseconds).write_lexical(&mut lexical);
        return Some(lexical);
    }
    let text = match text.split_once('[') {
        // Without an offset the name alone would say which moment is meant, and times have no names of zones.
        Some((start, name)) if name.ends_with(']') => {
            let (_, time) = start.split_once(['T', ' '])?;
            Some(start).filter(|_| time.contains(['+', '-', 'Z']))?
        }
        _ => text,
    };
    lexical.push_str(text);
    // The blank behind the date, which may have a longer year.
    if let Some(blank) = text.find(' ') {
        lexical.replace_range(blank..=blank, "T");
        let hours = text.len().checked_sub(3).and_then(|at| text.get(at..));
        if hours.is_some_and(|zone| zone.starts_with(['+', '-'])) {
            lexical.push_str(":00");
        }
    }
    let zone = text.len().checked_sub(5).and_then(|at| text.get(at..));
    if let Some(zone) = zone
        && zone.starts_with(['+', '-'])
        && zone[1..].bytes().all(|byte| byte.is_ascii_digit())
    {
        lexical.insert(text.len() - 2, ':');
    }
    if let Some(start) = lexical.strip_suffix("+00:00").or_else(|| lexical.strip_suffix("-00:00")) {
        lexical = format!("{start}Z");
    }
    if let Some(start) = lexical.strip_suffix('Z')
        && start.contains('.')
    {
        lexical = format!("{}Z", start.trim_end_matches('0').trim_end_matches('.'));
    }
    lexical.parse::<oxsdatatypes::DateTime>().ok()?;
    Some(lexical)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_inferred_narrowly() {
        for (text, expected) in [
            ("0", Type::Int),
            ("-12", Type::Int),
            ("2147483647", Type::Int),
            ("2147483648", Type::Long),
            ("9223372036854775808", Type::String),
            ("007", Type::String),
            ("+1", Type::String),
            ("1.5", Type::Double),
            ("-1e9", Type::Double),
            ("0.5", Type::Double),
            ("1.", Type::String),
            (".5", Type::String),
            ("1.2.3", Type::String),
            ("1-2", Type::String),
            ("NaN", Type::String),
            ("true", Type::Boolean),
            ("True", Type::String),
            ("", Type::String),
            ("-", Type::String),
            ("12e", Type::String),
        ] {
            assert_eq!(Type::infer(text), expected, "{text}");
        }
        assert_eq!(Type::Int.join(Type::Double), Type::Double);
        assert_eq!(Type::Boolean.join(Type::Int), Type::String);
    }

    #[test]
    fn values_become_canonical() {
        let check = |kind: Type, text: &str, expected: Option<&str>| {
            assert_eq!(kind.canonical(text).as_deref(), expected, "{kind:?} {text}");
        };
        check(Type::Int, "+007", Some("7"));
        check(Type::Int, "2147483648", None);
        check(Type::Long, "2147483648", Some("2147483648"));
        check(Type::Double, "33.6366996765137", Some("3.36366996765137E1"));
        check(Type::Double, "1", Some("1.0E0"));
        check(Type::Double, "infinity", None);
        check(Type::Float, "33.5", Some("3.35E1"));
        check(Type::Float, "100", Some("1.0E2"));
        check(Type::Float, "1e99", None);
        check(Type::Float, "-INF", Some("-INF"));
        check(Type::Float, "NaN", Some("NaN"));
        check(Type::BigInteger, "+0018446744073709551616", Some("18446744073709551616"));
        check(Type::BigInteger, "-0", Some("0"));
        check(Type::BigInteger, "1.0", None);
        check(Type::Decimal, "-012.50", Some("-12.5"));
        check(Type::Decimal, "3.000", Some("3"));
        check(Type::Decimal, ".5", Some("0.5"));
        check(Type::Decimal, "-0.0", Some("0"));
        for text in ["", ".", "+", "1e3", "1.2.3", "٣"] {
            check(Type::Decimal, text, None);
        }
        check(
            Type::Uuid,
            "123E4567-E89B-12D3-A456-426614174000",
            Some("123e4567-e89b-12d3-a456-426614174000"),
        );
        check(Type::Uuid, "123e4567e89b12d3a456426614174000", None);
        check(Type::Uuid, "123e4567-e89b-12d3-a456-42661417400é", None);
        check(Type::Time, "03:04:05.25", Some("03:04:05.25"));
        check(Type::Time, "25:00:00", None);
        check(Type::Boolean, "TRUE", Some("true"));
        check(Type::Boolean, "yes", None);
        check(Type::String, " x ", Some(" x "));
        check(Type::Date, "2020-02-29", Some("2020-02-29"));
        check(Type::Date, "2021-02-29", None);
        check(Type::DateTime, "0", Some("1970-01-01T00:00:00Z"));
        check(Type::DateTime, "2012-01-02T03:04:05.600+0000", Some("2012-01-02T03:04:05.6Z"));
        check(Type::DateTime, "2012-01-02T03:04:05+01:00", Some("2012-01-02T03:04:05+01:00"));
        check(Type::DateTime, "2012-01-02 03:04:05", Some("2012-01-02T03:04:05"));
        check(Type::DateTime, "2012-01-02 03:04:05.25+00", Some("2012-01-02T03:04:05.25Z"));
        check(Type::DateTime, "2012-01-02 03:04:05-02:30", Some("2012-01-02T03:04:05-02:30"));
        check(Type::DateTime, "2012-01-02T03:04:05+01:00[Europe/Vienna]", Some("2012-01-02T03:04:05+01:00"));
        check(Type::DateTime, "2012-01-02T03:04:05[Europe/Vienna]", None);
        check(Type::DateTime, "2012-01-02", None);
        check(Type::DateTime, "2012-01-02 ", None);
        check(Type::Duration, "P14DT16H12M", Some("P14DT16H12M"));
        check(Type::Duration, "14 days", None);
        check(Type::Double, "-inf", Some("-INF"));
        check(Type::DateTime, "9223372036854775807", None);
        check(Type::DateTime, "soon", None);
    }
}
