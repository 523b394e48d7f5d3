//! Components of dates and times (SPARQL 1.1 §17.4.5).

use crate::value::{Gregorian, Span, Value};
use std::borrow::Cow;

/// A component of a date or time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DateTimeField {
    Year,
    Month,
    Day,
    Hours,
    Minutes,
    Seconds,
    Timezone,
    Tz,
}

/// The component of a date or time; `None` if it has no such component.
pub(crate) fn date_time_field(field: DateTimeField, value: &Value<'_>) -> Option<Value<'static>> {
    Some(match field {
        DateTimeField::Year => Value::Integer(i128::from(match value {
            Value::DateTime(value) => value.year(),
            Value::Date(value) => value.year(),
            Value::Gregorian(Gregorian::Year(value)) => value.year(),
            Value::Gregorian(Gregorian::YearMonth(value)) => value.year(),
            _ => return None,
        })),
        DateTimeField::Month => integer(match value {
            Value::DateTime(value) => value.month(),
            Value::Date(value) => value.month(),
            Value::Gregorian(Gregorian::YearMonth(value)) => value.month(),
            Value::Gregorian(Gregorian::MonthDay(value)) => value.month(),
            Value::Gregorian(Gregorian::Month(value)) => value.month(),
            _ => return None,
        }),
        DateTimeField::Day => integer(match value {
            Value::DateTime(value) => value.day(),
            Value::Date(value) => value.day(),
            Value::Gregorian(Gregorian::MonthDay(value)) => value.day(),
            Value::Gregorian(Gregorian::Day(value)) => value.day(),
            _ => return None,
        }),
        DateTimeField::Hours => integer(match value {
            Value::DateTime(value) => value.hour(),
            Value::Time(value) => value.hour(),
            _ => return None,
        }),
        DateTimeField::Minutes => integer(match value {
            Value::DateTime(value) => value.minute(),
            Value::Time(value) => value.minute(),
            _ => return None,
        }),
        DateTimeField::Seconds => Value::Decimal(match value {
            Value::DateTime(value) => value.second(),
            Value::Time(value) => value.second(),
            _ => return None,
        }),
        DateTimeField::Timezone => Value::Duration(Span::DayTime(match value {
            Value::DateTime(value) => value.timezone()?,
            Value::Date(value) => value.timezone()?,
            Value::Time(value) => value.timezone()?,
            Value::Gregorian(Gregorian::Year(value)) => value.timezone()?,
            Value::Gregorian(Gregorian::YearMonth(value)) => value.timezone()?,
            Value::Gregorian(Gregorian::Month(value)) => value.timezone()?,
            Value::Gregorian(Gregorian::MonthDay(value)) => value.timezone()?,
            Value::Gregorian(Gregorian::Day(value)) => value.timezone()?,
            _ => return None,
        })),
        DateTimeField::Tz => {
            let offset = match value {
                Value::DateTime(value) => value.timezone_offset(),
                Value::Date(value) => value.timezone_offset(),
                Value::Time(value) => value.timezone_offset(),
                Value::Gregorian(Gregorian::Year(value)) => value.timezone_offset(),
                Value::Gregorian(Gregorian::YearMonth(value)) => value.timezone_offset(),
                Value::Gregorian(Gregorian::Month(value)) => value.timezone_offset(),
                Value::Gregorian(Gregorian::MonthDay(value)) => value.timezone_offset(),
                Value::Gregorian(Gregorian::Day(value)) => value.timezone_offset(),
                _ => return None,
            };
            Value::String(Cow::Owned(offset.map(|offset| offset.to_string()).unwrap_or_default()))
        }
    })
}

fn integer(value: u8) -> Value<'static> {
    Value::Integer(value.into())
}
