//! Date-times: `asDate`, `dateAdd`, `dateDiff`, and their text form.
//!
//! # Shape
//! The parser accepts ISO 8601: `2023-08-02T10:15:30.123456789+02:00`, where seconds, fraction and offset are
//! optional and the offset is `Z`, `+02:00`, `+02:00:30`, `+0200` or `+020030`; a date alone is midnight, a
//! month alone its first day; the default offset is UTC. The printer follows Java's
//! `OffsetDateTime.toString`.
//! # Invariants
//! Years are -9999 to 9999; a result beyond that is an error.
//! # Source
//! TinkerPop 3.8, `DatetimeHelper`. Different: a day beyond the end of its month is an error, not the last
//! day of the month.

mod duration;

pub use duration::{format_duration, parse_duration};

use super::{Error, Result, compare};
use crate::{Extended, TimeUnit, Value};
use std::fmt::Write;
use time::{Date, Month, OffsetDateTime, Time, UtcOffset};

/// Parses a date-time.
///
/// # Errors
/// The text is not a date-time.
pub fn parse(text: &str) -> Result<OffsetDateTime> {
    Reader(text).date_time().ok_or_else(|| unreadable(text))
}

fn unreadable(what: &str) -> Error {
    Error::new(format!("Can't parse {what} as OffsetDateTime."))
}

/// `asDate()`: of a string, of integers as milliseconds since 1970, of a date.
///
/// # Errors
/// Another type, an unparsable string, or a date out of range.
pub fn as_date(value: &Value) -> Result<Value> {
    if let Some(date) = known_date(value) {
        return date.map(Value::from);
    }
    match value {
        Value::String(text) => parse(text).map(Value::from),
        Value::Null => Err(unreadable("null")),
        _ => match value.as_integer() {
            Some(milliseconds) => from_milliseconds(milliseconds).map(Value::from),
            None => Err(unreadable(value.type_name())),
        },
    }
}

fn from_milliseconds(milliseconds: i64) -> Result<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(milliseconds) * 1_000_000)
        .map_err(|_| unreadable(&milliseconds.to_string()))
}

/// `None` if the value has no date type.
fn known_date(value: &Value) -> Option<Result<OffsetDateTime>> {
    match value {
        Value::DateTime(date) => Some(Ok(**date)),
        Value::Extended(extended) => match **extended {
            Extended::Date(milliseconds) | Extended::Timestamp(milliseconds) => {
                Some(from_milliseconds(milliseconds))
            }
            Extended::OffsetDateTime(..) => {
                Some(Err(Error::new("cannot compute with a date beyond the year 9999")))
            }
            _ => None,
        },
        _ => None,
    }
}

/// `dateAdd(unit, count)`.
///
/// # Errors
/// Not a date, or the result is out of range.
pub fn date_add(value: &Value, unit: TimeUnit, count: i64) -> Result<Value> {
    let date = known_date(value).unwrap_or_else(|| {
        Err(Error::new(format!(
            "dateAdd() accept only OffsetDateTime or Date (deprecated), encountered {}",
            value.type_name()
        )))
    })?;
    let seconds = match unit {
        TimeUnit::Second => 1,
        TimeUnit::Minute => 60,
        TimeUnit::Hour => 3_600,
        TimeUnit::Day => 86_400,
    };
    count
        .checked_mul(seconds)
        .and_then(|seconds| date.checked_add(time::Duration::seconds(seconds)))
        .map(Value::from)
        .ok_or_else(|| Error::new("dateAdd() gives a date beyond the years -9999 to 9999"))
}

/// `dateDiff(other)`: milliseconds from `other` to `value`, truncated; null means 1970.
///
/// # Errors
/// An argument is not a date.
pub fn date_diff(value: &Value, other: &Value) -> Result<Value> {
    let date = |value: &Value| {
        known_date(value).unwrap_or_else(|| {
            Err(Error::new(format!(
                "DateDiff can only take OffsetDateTime or Date (deprecated) as argument, encountered {}",
                value.type_name()
            )))
        })
    };
    let to = date(value)?;
    if matches!(other, Value::Null) {
        return Ok(Value::Long(compare::milliseconds(&to)));
    }
    let nanoseconds = to.unix_timestamp_nanos() - date(other)?.unix_timestamp_nanos();
    // 20,000 years are far below the limit.
    Ok(Value::Long(i64::try_from(nanoseconds / 1_000_000).unwrap_or(i64::MAX)))
}

/// `2023-08-02T00:00Z`: seconds and fraction only if nonzero.
#[must_use]
pub fn format(date: &OffsetDateTime) -> String {
    let (hours, minutes, seconds, nanoseconds) = date.to_hms_nano();
    let of_day = (i64::from(hours) * 60 + i64::from(minutes)) * 60 + i64::from(seconds);
    let time = time_of_day(of_day * 1_000_000_000 + i64::from(nanoseconds));
    let day = day(date.year().into(), u8::from(date.month()).into(), date.day().into());
    format!("{day}T{time}{}", offset(date.offset().whole_seconds().into()))
}

/// `2023-08-02`; years of more than four digits have a sign.
pub(crate) fn day(year: i64, month: i64, day: i64) -> String {
    let sign = match year {
        ..0 => "-",
        0..10_000 => "",
        _ => "+",
    };
    format!("{sign}{:04}-{month:02}-{day:02}", year.unsigned_abs())
}

/// `10:15`, `10:15:30`, `10:15:30.120` of nanoseconds since midnight.
pub(crate) fn time_of_day(nanoseconds: i64) -> String {
    let (seconds, fraction) = (nanoseconds.div_euclid(1_000_000_000), nanoseconds.rem_euclid(1_000_000_000));
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let mut out = format!("{hours:02}:{minutes:02}");
    if seconds != 0 || fraction != 0 {
        let _ = write!(out, ":{seconds:02}");
    }
    if fraction != 0 {
        let _ = match (fraction % 1_000_000, fraction % 1000) {
            (0, _) => write!(out, ".{:03}", fraction / 1_000_000),
            (_, 0) => write!(out, ".{:06}", fraction / 1000),
            _ => write!(out, ".{fraction:09}"),
        };
    }
    out
}

/// `Z`, `+02:00`, `-01:30:15`.
pub(crate) fn offset(seconds: i64) -> String {
    if seconds == 0 {
        return "Z".to_owned();
    }
    let sign = if seconds < 0 { '-' } else { '+' };
    let seconds = seconds.unsigned_abs();
    let mut out = format!("{sign}{:02}:{:02}", seconds / 3600, seconds / 60 % 60);
    if !seconds.is_multiple_of(60) {
        let _ = write!(out, ":{:02}", seconds % 60);
    }
    out
}

/// The remaining input.
struct Reader<'t>(&'t str);

impl Reader<'_> {
    fn date_time(mut self) -> Option<OffsetDateTime> {
        let date = self.date()?;
        if self.0.is_empty() {
            return Some(date.midnight().assume_utc());
        }
        self.take(&['T', 't'])?;
        let time = self.time()?;
        let offset = self.offset()?;
        self.0.is_empty().then(|| date.with_time(time).assume_offset(offset))
    }

    /// A day, or a month for its first day.
    fn date(&mut self) -> Option<Date> {
        let negative = self.take(&['-', '+']).map(|sign| sign == '-');
        let year = i32::try_from(self.digits(4, 9)?).ok()?;
        let year = if negative == Some(true) { -year } else { year };
        self.take(&['-'])?;
        let month = Month::try_from(u8::try_from(self.digits(1, 2)?).ok()?).ok()?;
        if self.0.is_empty() {
            return Date::from_calendar_date(year, month, 1).ok();
        }
        self.take(&['-'])?;
        Date::from_calendar_date(year, month, u8::try_from(self.digits(2, 2)?).ok()?).ok()
    }

    fn time(&mut self) -> Option<Time> {
        let hour = self.digits(2, 2)?;
        self.take(&[':'])?;
        let minute = self.digits(2, 2)?;
        let (mut second, mut nanosecond) = (0, 0);
        if self.take(&[':']).is_some() {
            second = self.digits(2, 2)?;
            if self.take(&['.']).is_some() {
                let before = self.0.len();
                let digits = self.digits(1, 9)?;
                let count = u32::try_from(before - self.0.len()).ok()?;
                nanosecond = digits * 10_u32.pow(9_u32.checked_sub(count)?);
            }
        }
        let small = |number: u32| u8::try_from(number).ok();
        Time::from_hms_nano(small(hour)?, small(minute)?, small(second)?, nanosecond).ok()
    }

    fn offset(&mut self) -> Option<UtcOffset> {
        if self.0.is_empty() || self.take(&['Z', 'z']).is_some() {
            return Some(UtcOffset::UTC);
        }
        let sign = if self.take(&['-', '+'])? == '-' { -1 } else { 1 };
        let hours = self.digits(2, 2)?;
        let colon = self.take(&[':']).is_some();
        let minutes = if self.0.is_empty() && !colon { 0 } else { self.digits(2, 2)? };
        let seconds = match (self.0.is_empty(), colon) {
            (true, _) => 0,
            (false, true) => {
                self.take(&[':'])?;
                self.digits(2, 2)?
            }
            (false, false) => self.digits(2, 2)?,
        };
        let total = hours * 3600 + minutes * 60 + seconds;
        if minutes > 59 || seconds > 59 || total > 18 * 3600 {
            return None;
        }
        UtcOffset::from_whole_seconds(sign * i32::try_from(total).ok()?).ok()
    }

    /// Consumes one of these characters.
    fn take(&mut self, wanted: &[char]) -> Option<char> {
        let first = self.0.chars().next().filter(|first| wanted.contains(first))?;
        self.0 = self.0.get(first.len_utf8()..)?;
        Some(first)
    }

    /// Consumes all following digits, if their number is in range; at most 9.
    fn digits(&mut self, least: usize, most: usize) -> Option<u32> {
        let count = self.0.bytes().take_while(u8::is_ascii_digit).take(most).count();
        if count < least {
            return None;
        }
        let (digits, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        digits.parse().ok()
    }
}
