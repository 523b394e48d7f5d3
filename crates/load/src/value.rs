//! Property values: from the text of a file to the canonical lexical form of a datatype.
//!
//! Canonical forms matter: the same number written in two ways must be one value, and only canonical
//! forms fit inside ids.

use std::borrow::Cow;
use vervet_model::Inline;

/// Datatypes of property columns and keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Type {
    Boolean,
    Int,
    Long,
    Float,
    Double,
    String,
    Date,
    DateTime,
}

impl Type {
    /// The type with this name in GraphML or in a CSV header, in any case of letters.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "boolean" | "bool" => Self::Boolean,
            "int" | "integer" | "short" | "byte" => Self::Int,
            "long" => Self::Long,
            "float" => Self::Float,
            "double" => Self::Double,
            "string" | "char" => Self::String,
            "date" => Self::Date,
            "datetime" => Self::DateTime,
            _ => return None,
        })
    }

    /// The name in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Int => "int",
            Self::Long => "long",
            Self::Float => "float",
            Self::Double => "double",
            Self::String => "string",
            Self::Date => "date",
            Self::DateTime => "datetime",
        }
    }

    /// The datatype IRI.
    pub(crate) fn iri(self) -> &'static str {
        match self {
            Self::Boolean => "http://www.w3.org/2001/XMLSchema#boolean",
            Self::Int => "http://www.w3.org/2001/XMLSchema#int",
            Self::Long => "http://www.w3.org/2001/XMLSchema#long",
            Self::Float => "http://www.w3.org/2001/XMLSchema#float",
            Self::Double => "http://www.w3.org/2001/XMLSchema#double",
            Self::String => "http://www.w3.org/2001/XMLSchema#string",
            Self::Date => "http://www.w3.org/2001/XMLSchema#date",
            Self::DateTime => "http://www.w3.org/2001/XMLSchema#dateTime",
        }
    }

    /// The narrowest type of `text`, for columns without a type. A number with a leading zero or plus is a
    /// string, since it is a code more often than a number.
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

    /// The narrowest type that holds the values of both.
    pub(crate) fn join(self, other: Self) -> Self {
        match (self, other) {
            (one, other) if one == other => one,
            (Self::Int | Self::Long, Self::Int | Self::Long) => Self::Long,
            (Self::Int | Self::Long | Self::Double, Self::Int | Self::Long | Self::Double) => Self::Double,
            _ => Self::String,
        }
    }

    /// The canonical lexical form of `text`; `None` if it is no value of this type.
    pub(crate) fn canonical(self, text: &str) -> Option<Cow<'_, str>> {
        let trimmed = text.trim();
        let value = match self {
            Self::String => return Some(Cow::Borrowed(text)),
            Self::Boolean if trimmed.eq_ignore_ascii_case("true") || trimmed == "1" => Inline::Boolean(true),
            Self::Boolean if trimmed.eq_ignore_ascii_case("false") || trimmed == "0" => {
                Inline::Boolean(false)
            }
            Self::Boolean => return None,
            Self::Int => Inline::Int(trimmed.parse().ok()?),
            Self::Long => Inline::Long(trimmed.parse().ok()?),
            Self::Double => Inline::Double(parse_float(trimmed)?),
            Self::Float => return Some(Cow::Owned(float(trimmed)?)),
            Self::Date => {
                trimmed.parse::<oxsdatatypes::Date>().ok()?;
                return Some(Cow::Owned(trimmed.to_owned()));
            }
            Self::DateTime => return date_time(trimmed).map(Cow::Owned),
        };
        let mut lexical = String::new();
        value.write_lexical(&mut lexical);
        Some(Cow::Owned(lexical))
    }
}

fn parse_float(text: &str) -> Option<f64> {
    match text {
        "INF" | "+INF" | "Infinity" => Some(f64::INFINITY),
        "-INF" | "-Infinity" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        _ if text.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte)) => text.parse().ok(),
        _ => None,
    }
}

/// The shortest form that gives back the same single-precision number.
fn float(text: &str) -> Option<String> {
    let wide = parse_float(text)?;
    if !wide.is_finite() {
        return Some(
            if wide.is_nan() {
                "NaN"
            } else if wide > 0.0 {
                "INF"
            } else {
                "-INF"
            }
            .to_owned(),
        );
    }
    let mut lexical = format!("{:E}", text.parse::<f32>().ok()?);
    if lexical.contains("inf") {
        return None;
    }
    if !lexical.contains('.')
        && let Some(exponent) = lexical.find('E')
    {
        lexical.insert_str(exponent, ".0");
    }
    Some(lexical)
}

/// Milliseconds since 1970, or a date and time with or without zone; the zone may lack its colon, as
/// LDBC writes it. UTC times are made canonical.
fn date_time(text: &str) -> Option<String> {
    let mut lexical = String::new();
    if let Ok(milliseconds) = text.parse::<i64>() {
        // Beyond the years that an `xsd:dateTime` of four digits has there is no such form.
        if !(-62_135_596_800_000..253_402_300_800_000).contains(&milliseconds) {
            return None;
        }
        Inline::DateTime(milliseconds).write_lexical(&mut lexical);
        return Some(lexical);
    }
    lexical.push_str(text);
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
        check(Type::Boolean, "TRUE", Some("true"));
        check(Type::Boolean, "yes", None);
        check(Type::String, " x ", Some(" x "));
        check(Type::Date, "2020-02-29", Some("2020-02-29"));
        check(Type::Date, "2021-02-29", None);
        check(Type::DateTime, "0", Some("1970-01-01T00:00:00Z"));
        check(Type::DateTime, "2012-01-02T03:04:05.600+0000", Some("2012-01-02T03:04:05.6Z"));
        check(Type::DateTime, "2012-01-02T03:04:05+01:00", Some("2012-01-02T03:04:05+01:00"));
        check(Type::DateTime, "9223372036854775807", None);
        check(Type::DateTime, "soon", None);
    }
}
