//! Casts between datatypes: the constructor functions of SPARQL 1.1 §17.5.

use crate::arithmetic::{double_of, float_of};
use crate::value::{Gregorian, Span, Value, XSD, decimal, integer};
use crate::wide::{Wide, double_of_decimal};
use oxsdatatypes::{Boolean, Date, Decimal, Double, Float, Integer};
use std::borrow::Cow;

/// Target datatype of a cast (SPARQL 1.1 §17.5, and dates and durations).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cast {
    String,
    Boolean,
    Integer,
    Decimal,
    Float,
    Double,
    DateTime,
    Date,
    Time,
    Duration,
    YearMonthDuration,
    DayTimeDuration,
    GYear,
    GYearMonth,
    GMonth,
    GMonthDay,
    GDay,
}

impl Cast {
    /// The cast to the datatype with this IRI, if it is supported.
    pub(crate) fn from_iri(iri: &str) -> Option<Self> {
        Some(match iri.strip_prefix(XSD)? {
            "string" => Self::String,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "decimal" => Self::Decimal,
            "float" => Self::Float,
            "double" => Self::Double,
            "dateTime" => Self::DateTime,
            "date" => Self::Date,
            "time" => Self::Time,
            "duration" => Self::Duration,
            "yearMonthDuration" => Self::YearMonthDuration,
            "dayTimeDuration" => Self::DayTimeDuration,
            "gYear" => Self::GYear,
            "gYearMonth" => Self::GYearMonth,
            "gMonth" => Self::GMonth,
            "gMonthDay" => Self::GMonthDay,
            "gDay" => Self::GDay,
            _ => return None,
        })
    }
}

/// Bounds of the absolute values that [`Cast::String`] writes as decimals (F&O 3.1 §19.1.2.2).
const DECIMAL_FROM: f64 = 0.000_001;
const DECIMAL_BELOW: f64 = 1_000_000.0;

fn text_of_double(number: Double) -> String {
    text_of_number(number.into(), || format!("{number}"), || format!("{:E}", f64::from(number)))
}

fn text_of_float(number: Float) -> String {
    text_of_number(number.into(), || format!("{number}"), || format!("{:E}", f32::from(number)))
}

/// A number as a text (F&O 3.1 §19.1.2.2): as a decimal, or in the canonical form of XML Schema with an
/// exponent, whose mantissa has a fraction digit.
fn text_of_number(
    value: f64,
    decimal: impl FnOnce() -> String,
    scientific: impl FnOnce() -> String,
) -> String {
    let is_decimal =
        value == 0.0 || !value.is_finite() || (DECIMAL_FROM..DECIMAL_BELOW).contains(&value.abs());
    if is_decimal {
        return decimal();
    }
    let mut text = scientific();
    if let (false, Some(at)) = (text.contains('.'), text.find('E')) {
        text.insert_str(at, ".0");
    }
    text
}

/// `value` as a value of another datatype; `None` if there is no such value.
pub(crate) fn cast(to: Cast, value: &Value<'_>) -> Option<Value<'static>> {
    Some(match to {
        Cast::String => match value {
            Value::Blank(_) | Value::Triple(_) => return None,
            Value::Float(number) => Value::String(Cow::Owned(text_of_float(*number))),
            Value::Double(number) => Value::String(Cow::Owned(text_of_double(*number))),
            value => {
                let mut text = String::new();
                value.write_lexical(&mut text);
                Value::String(Cow::Owned(text))
            }
        },
        Cast::Boolean => Value::Boolean(match value {
            Value::Boolean(value) => *value,
            Value::Integer(value) => *value != 0,
            Value::Decimal(value) => Boolean::from(*value).into(),
            Value::Wide(_) => true,
            Value::Float(value) => Boolean::from(*value).into(),
            Value::Double(value) => Boolean::from(*value).into(),
            Value::String(text) => text.parse::<Boolean>().ok()?.into(),
            _ => return None,
        }),
        Cast::Integer => match value {
            Value::Boolean(value) => Value::Integer(i128::from(*value)),
            Value::Integer(value) => Value::Integer(*value),
            Value::Decimal(value) => Value::Integer(whole(*value)?),
            Value::Wide(value) => Value::of_exact(value.truncated())?,
            Value::Float(value) => whole_of_double(f64::from(*value))?,
            Value::Double(value) => whole_of_double(f64::from(*value))?,
            Value::String(text) => integer(text)?,
            _ => return None,
        },
        Cast::Decimal => match value {
            Value::Boolean(value) => Value::Decimal(Boolean::from(*value).into()),
            Value::Integer(_) | Value::Wide(_) => Value::of_exact(value.to_wide()?.as_decimal())?,
            Value::Decimal(value) => Value::Decimal(*value),
            Value::Float(value) => Value::of_exact(Wide::of_double(f64::from(*value))?)?,
            Value::Double(value) => Value::of_exact(Wide::of_double(f64::from(*value))?)?,
            Value::String(text) => decimal(text)?,
            _ => return None,
        },
        Cast::Float => Value::Float(match value {
            Value::Boolean(value) => Boolean::from(*value).into(),
            Value::Integer(value) => float_of(*value),
            Value::Decimal(value) => (*value).into(),
            Value::Wide(value) => value.to_float().into(),
            Value::Float(value) => *value,
            Value::Double(value) => Float::from(*value),
            Value::String(text) => text.parse().ok()?,
            _ => return None,
        }),
        Cast::Double => Value::Double(match value {
            Value::Boolean(value) => Boolean::from(*value).into(),
            Value::Integer(value) => double_of(*value),
            Value::Decimal(value) => double_of_decimal(*value).into(),
            Value::Wide(value) => value.to_double().into(),
            Value::Float(value) => Double::from(*value),
            Value::Double(value) => *value,
            Value::String(text) => text.parse().ok()?,
            _ => return None,
        }),
        Cast::DateTime => Value::DateTime(match value {
            Value::DateTime(value) => *value,
            Value::Date(value) => (*value).try_into().ok()?,
            Value::String(text) => text.parse().ok()?,
            _ => return None,
        }),
        Cast::Date => Value::Date(match value {
            Value::Date(value) => *value,
            Value::DateTime(value) => Date::try_from(*value).ok()?,
            Value::String(text) => text.parse().ok()?,
            _ => return None,
        }),
        Cast::Time => Value::Time(match value {
            Value::Time(value) => *value,
            Value::DateTime(value) => (*value).into(),
            Value::String(text) => text.parse().ok()?,
            _ => return None,
        }),
        Cast::Duration | Cast::YearMonthDuration | Cast::DayTimeDuration => {
            Value::Duration(cast_span(to, value)?)
        }
        Cast::GYear | Cast::GYearMonth | Cast::GMonth | Cast::GMonthDay | Cast::GDay => {
            Value::Gregorian(cast_gregorian(to, value)?)
        }
    })
}

/// The whole part of a decimal, rounded towards zero.
fn whole(value: Decimal) -> Option<i128> {
    if let Ok(whole) = Integer::try_from(value) {
        return Some(i64::from(whole).into());
    }
    let whole = if value.is_negative() { value.checked_ceil()? } else { value.checked_floor()? };
    whole.to_string().parse().ok()
}

/// The whole part of a double, rounded towards zero; `None` if it is not finite.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn whole_of_double(value: f64) -> Option<Value<'static>> {
    // 2^127; both bounds are doubles.
    const LIMIT: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;
    if value > -LIMIT && value < LIMIT {
        return Some(Value::Integer(value as i128));
    }
    Value::of_exact(Wide::of_double(value)?.truncated())
}

fn cast_span(to: Cast, value: &Value<'_>) -> Option<Span> {
    Some(match (to, value) {
        (Cast::Duration, Value::Duration(value)) => Span::Any(value.duration()),
        (Cast::Duration, Value::String(text)) => Span::Any(text.parse().ok()?),
        (Cast::YearMonthDuration, Value::Duration(Span::YearMonth(value))) => Span::YearMonth(*value),
        (Cast::YearMonthDuration, Value::Duration(Span::Any(value))) => {
            Span::YearMonth((*value).try_into().ok()?)
        }
        (Cast::YearMonthDuration, Value::String(text)) => Span::YearMonth(text.parse().ok()?),
        (Cast::DayTimeDuration, Value::Duration(Span::DayTime(value))) => Span::DayTime(*value),
        (Cast::DayTimeDuration, Value::Duration(Span::Any(value))) => {
            Span::DayTime((*value).try_into().ok()?)
        }
        (Cast::DayTimeDuration, Value::String(text)) => Span::DayTime(text.parse().ok()?),
        _ => return None,
    })
}

fn cast_gregorian(to: Cast, value: &Value<'_>) -> Option<Gregorian> {
    Some(match (to, value) {
        (Cast::GYear, Value::Gregorian(same @ Gregorian::Year(_)))
        | (Cast::GYearMonth, Value::Gregorian(same @ Gregorian::YearMonth(_)))
        | (Cast::GMonth, Value::Gregorian(same @ Gregorian::Month(_)))
        | (Cast::GMonthDay, Value::Gregorian(same @ Gregorian::MonthDay(_)))
        | (Cast::GDay, Value::Gregorian(same @ Gregorian::Day(_))) => *same,
        (Cast::GYear, Value::Gregorian(Gregorian::YearMonth(value))) => {
            Gregorian::Year((*value).try_into().ok()?)
        }
        (Cast::GYear, Value::Date(value)) => Gregorian::Year((*value).try_into().ok()?),
        (Cast::GYear, Value::DateTime(value)) => Gregorian::Year((*value).try_into().ok()?),
        (Cast::GYear, Value::String(text)) => Gregorian::Year(text.parse().ok()?),
        (Cast::GYearMonth, Value::Date(value)) => Gregorian::YearMonth((*value).into()),
        (Cast::GYearMonth, Value::DateTime(value)) => Gregorian::YearMonth((*value).try_into().ok()?),
        (Cast::GYearMonth, Value::String(text)) => Gregorian::YearMonth(text.parse().ok()?),
        (Cast::GMonth, Value::Gregorian(Gregorian::YearMonth(value))) => Gregorian::Month((*value).into()),
        (Cast::GMonth, Value::Gregorian(Gregorian::MonthDay(value))) => Gregorian::Month((*value).into()),
        (Cast::GMonth, Value::Date(value)) => Gregorian::Month((*value).into()),
        (Cast::GMonth, Value::DateTime(value)) => Gregorian::Month((*value).into()),
        (Cast::GMonth, Value::String(text)) => Gregorian::Month(text.parse().ok()?),
        (Cast::GMonthDay, Value::Date(value)) => Gregorian::MonthDay((*value).into()),
        (Cast::GMonthDay, Value::DateTime(value)) => Gregorian::MonthDay((*value).into()),
        (Cast::GMonthDay, Value::String(text)) => Gregorian::MonthDay(text.parse().ok()?),
        (Cast::GDay, Value::Gregorian(Gregorian::MonthDay(value))) => Gregorian::Day((*value).into()),
        (Cast::GDay, Value::Date(value)) => Gregorian::Day((*value).into()),
        (Cast::GDay, Value::DateTime(value)) => Gregorian::Day((*value).into()),
        (Cast::GDay, Value::String(text)) => Gregorian::Day(text.parse().ok()?),
        _ => return None,
    })
}
