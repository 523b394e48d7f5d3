//! Terms as values of typed columns, and the type of a column from its values.
//!
//! A column has the type of its values if they have one: integers, decimals (also with integers), other
//! numbers, booleans, dates, date-times. All other columns are texts: lexical forms, IRIs, labels of blank
//! nodes. Unbound cells have no value.

use crate::decimal;
use crate::lexical::{boolean, double, is_date, is_integer_type, is_number, zone_of_date_time};
use std::ops::Range;
use vervet_model::{Id, Inline, LiteralKind, Tag, TermParts, civil_from_days, days_from_civil};

/// Digits of an integer of 64 bits.
const INTEGER_DIGITS: u8 = 19;

/// A cell as a value of a typed column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// Unbound.
    Null,
    /// `xsd:boolean`.
    Boolean(bool),
    /// An integer type of XML Schema.
    Integer(i64),
    /// An integer, and the number of its digits behind the point.
    Decimal(i128, u8),
    /// `xsd:double` and `xsd:float`.
    Float(f64),
    /// Days since 1970.
    Date(i32),
    /// Microseconds since 1970, and whether the date-time has a time zone.
    DateTime(i64, bool),
    /// Anything else.
    Text,
}

/// The type of a column, from its values so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// No cell has a value.
    Unknown,
    /// Booleans.
    Boolean,
    /// Integers of 64 bits.
    Integer,
    /// Decimals, and integers among them: the most digits before and behind the point.
    Decimal(u8, u8),
    /// Numbers.
    Float,
    /// Dates without time zone.
    Date,
    /// Date-times, all with or all without time zone.
    DateTime(bool),
    /// Anything else.
    Text,
}

impl ColumnType {
    /// The type of a column of this value.
    #[must_use]
    pub fn of(scalar: Scalar) -> Self {
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

    /// The type of a column with the values of both.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
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
}

/// The value of an id without reading its term; `None` if that needs its term.
#[must_use]
pub fn of_id(id: Id) -> Option<Scalar> {
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
pub fn of_parts(parts: TermParts<'_>, text: &mut String) -> Scalar {
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

/// The number of a decimal, as its lexical form is read.
#[must_use]
pub fn float(value: i128, scale: u8) -> f64 {
    decimal::text(value, scale.cast_signed()).parse().unwrap_or(f64::NAN)
}

/// The days since 1970 of `YYYY-MM-DD`.
fn date(text: &str) -> Option<i32> {
    if !is_date(text) {
        return None;
    }
    let (year, month, day): (i64, i64, i64) =
        (text[..4].parse().ok()?, text[5..7].parse().ok()?, text[8..].parse().ok()?);
    let days = days_from_civil(year, month, day);
    // The 30th of February is not in the calendar.
    (civil_from_days(days) == (year, month, day)).then(|| i32::try_from(days).ok()).flatten()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_have_values_if_their_lexical_forms_are_valid() {
        let of =
            |text: &str, name: &str| of_literal(text, &format!("http://www.w3.org/2001/XMLSchema#{name}"));
        assert_eq!(of("1970-01-02", "date"), Some(Scalar::Date(1)));
        for text in ["2023-02-29", "2023-13-01", "2023-00-01", "2023-01-00", "2023-1-1", "2023-01-01Z"] {
            assert_eq!(of(text, "date"), None, "{text}");
        }
        assert_eq!(of("2024-02-29", "date"), Some(Scalar::Date(19_782)));
        let second = Scalar::DateTime(1_500_000, true);
        assert_eq!(of("1970-01-01T01:00:01.5+01:00", "dateTime"), Some(second));
        assert_eq!(of("1970-01-01T00:00:01.5Z", "dateTime"), Some(second));
        assert_eq!(of("1970-01-01T24:00:00", "dateTime"), None);
        assert_eq!(of("-0.50", "decimal"), Some(Scalar::Decimal(-5, 1)));
        assert_eq!(of("1e5", "decimal"), None);
        assert_eq!(of("x", "integer"), None);
    }

    #[test]
    fn types_of_columns_are_the_narrowest_for_all_values() {
        use ColumnType::{Boolean, Date, DateTime, Decimal, Float, Integer, Text, Unknown};
        for (one, other, both) in [
            (Unknown, Date, Date),
            (Integer, Integer, Integer),
            (Integer, Float, Float),
            (Integer, Decimal(1, 2), Decimal(19, 2)),
            (Decimal(1, 3), Decimal(4, 0), Decimal(4, 3)),
            (Decimal(20, 3), Decimal(4, 30), Float),
            (DateTime(true), DateTime(false), Text),
            (Boolean, Integer, Text),
        ] {
            assert_eq!((one.with(other), other.with(one)), (both, both), "{one:?} {other:?}");
        }
    }
}
