//! Components of dates and times (SPARQL 1.1 §17.4.5).

use crate::value::{Gregorian, Span, Value};
use oxsdatatypes::{Date, DateTime, DayTimeDuration, Decimal, Integer, Time, TimezoneOffset};
use std::borrow::Cow;
use std::sync::LazyLock;

pub(crate) const SECONDS_PER_DAY: i64 = 86_400;

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

/// Whole seconds since 1970-01-01T00:00:00Z, of a date or time without a time zone as if in UTC. Dates and
/// times that are equal under `=` have equal ones.
pub(crate) fn instant(value: &Value<'_>) -> Option<i64> {
    let seconds = match value {
        Value::DateTime(value) => seconds_of_date_time(*value),
        Value::Date(value) => seconds_of_date(*value),
        Value::Time(value) => seconds_of_time(*value),
        _ => None,
    };
    Integer::try_from(seconds?.checked_floor()?).ok().map(i64::from)
}

pub(crate) fn seconds_of_date_time(value: DateTime) -> Option<Decimal> {
    static EPOCH: LazyLock<Option<DateTime>> = LazyLock::new(|| "1970-01-01T00:00:00Z".parse().ok());
    let value =
        if value.timezone_offset().is_none() { value.adjust(Some(TimezoneOffset::UTC))? } else { value };
    value.checked_sub((*EPOCH)?).map(DayTimeDuration::as_seconds)
}

pub(crate) fn seconds_of_date(value: Date) -> Option<Decimal> {
    static EPOCH: LazyLock<Option<Date>> = LazyLock::new(|| "1970-01-01Z".parse().ok());
    let value =
        if value.timezone_offset().is_none() { value.adjust(Some(TimezoneOffset::UTC))? } else { value };
    value.checked_sub((*EPOCH)?).map(DayTimeDuration::as_seconds)
}

pub(crate) fn seconds_of_time(value: Time) -> Option<Decimal> {
    static EPOCH: LazyLock<Option<Time>> = LazyLock::new(|| "00:00:00Z".parse().ok());
    let value =
        if value.timezone_offset().is_none() { value.adjust(Some(TimezoneOffset::UTC))? } else { value };
    value.checked_sub((*EPOCH)?).map(DayTimeDuration::as_seconds)
}
