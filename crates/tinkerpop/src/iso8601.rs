//! ISO 8601 dates and times in Java's form: years beyond four digits, and no optional parts.

use crate::number::shortened;
use time::{Date, Month, OffsetDateTime, Time, UtcOffset};
use vervet_gremlin::{Duration, Extended, Value};
use vervet_model::{civil_from_days, days_from_civil};

/// Nanoseconds of a day.
pub(crate) const DAY_NANOSECONDS: i64 = 86_400 * 1_000_000_000;
/// Maximum year.
pub(crate) const YEAR_MAX: i32 = 999_999_999;
/// Maximum offset from UTC, in seconds.
pub(crate) const OFFSET_MAX: i32 = 18 * 3_600;
/// Range of instants, in seconds since 1970.
const INSTANTS: std::ops::RangeInclusive<i64> = -31_557_014_167_219_200..=31_556_889_864_403_199;

type Result<T> = std::result::Result<T, String>;

/// Whether the date exists.
pub(crate) fn is_day(year: i32, month: u8, day: u8) -> bool {
    (-YEAR_MAX..=YEAR_MAX).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days(i64::from(year), month)).contains(&day)
}

fn days(year: i64, month: u8) -> u8 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Rejects values that no format can represent.
pub(crate) fn checked(value: Extended) -> Result<Extended> {
    let day_time = |time: i64| (0..DAY_NANOSECONDS).contains(&time);
    let offset = |offset: i32| (-OFFSET_MAX..=OFFSET_MAX).contains(&offset);
    let year = |year: i32| (-YEAR_MAX..=YEAR_MAX).contains(&year);
    let good = match &value {
        Extended::Instant(seconds, nanoseconds) => {
            INSTANTS.contains(seconds) && (0..1_000_000_000).contains(nanoseconds)
        }
        Extended::LocalDate(y, m, d) => is_day(*y, *m, *d),
        Extended::LocalDateTime(y, m, d, t) => is_day(*y, *m, *d) && day_time(*t),
        Extended::LocalTime(t) => day_time(*t),
        Extended::MonthDay(m, d) => is_day(2000, *m, *d),
        Extended::OffsetDateTime(y, m, d, t, o) | Extended::ZonedDateTime(y, m, d, t, o, _) => {
            is_day(*y, *m, *d) && day_time(*t) && offset(*o)
        }
        Extended::OffsetTime(t, o) => day_time(*t) && offset(*o),
        Extended::Year(y) => year(*y),
        Extended::YearMonth(y, m) => year(*y) && (1..=12).contains(m),
        Extended::ZoneOffset(o) => offset(*o),
        _ => true,
    };
    if good { Ok(value) } else { Err(format!("expected a date or time that there is, found {value:?}")) }
}

/// A date-time with an offset; the standard type if the year has four digits.
pub(crate) fn date_time(year: i32, month: u8, day: u8, time: i64, offset: i32) -> Result<Value> {
    let extended = checked(Extended::OffsetDateTime(year, month, day, time, offset))?;
    let known = || {
        let date = Date::from_calendar_date(year, Month::try_from(month).ok()?, day).ok()?;
        let seconds = u32::try_from(time / 1_000_000_000).ok()?;
        let nanoseconds = u32::try_from(time % 1_000_000_000).ok()?;
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        let part = |part: u32| u8::try_from(part).ok();
        let time = Time::from_hms_nano(part(hour)?, part(minute)?, part(second)?, nanoseconds).ok()?;
        Some(date.with_time(time).assume_offset(UtcOffset::from_whole_seconds(offset).ok()?))
    };
    Ok(known().map_or_else(|| Value::Extended(extended.into()), |time| Value::DateTime(Box::new(time))))
}

/// Year, month, day, nanoseconds of the day, offset in seconds.
pub(crate) fn date_time_parts(time: &OffsetDateTime) -> (i32, u8, u8, i64, i32) {
    let (hour, minute, second, nanosecond) = time.to_hms_nano();
    let seconds = i64::from(hour) * 3_600 + i64::from(minute) * 60 + i64::from(second);
    let nanoseconds = seconds * 1_000_000_000 + i64::from(nanosecond);
    (time.year(), time.month().into(), time.day(), nanoseconds, time.offset().whole_seconds())
}

/// A duration from seconds and nanoseconds that may be out of range.
pub(crate) fn duration(seconds: i64, nanoseconds: i64) -> Result<Duration> {
    let carried = seconds
        .checked_add(nanoseconds.div_euclid(1_000_000_000))
        .ok_or("expected a shorter length of time")?;
    let nanoseconds = u32::try_from(nanoseconds.rem_euclid(1_000_000_000)).unwrap_or_default();
    Ok(Duration { seconds: carried, nanoseconds })
}

/// The text of a date or a time; none for other types.
pub(crate) fn text(value: &Extended) -> Option<String> {
    Some(match value {
        Extended::Instant(seconds, nanoseconds) => {
            let (y, m, d) = civil(seconds.div_euclid(86_400));
            let second = seconds.rem_euclid(86_400);
            let clock = format!("{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60);
            format!("{}T{clock}{}Z", date_text(y, m, d), fraction_text((*nanoseconds).into()))
        }
        Extended::LocalDate(y, m, d) => date_text(*y, *m, *d),
        Extended::LocalDateTime(y, m, d, t) => format!("{}T{}", date_text(*y, *m, *d), time_text(*t)),
        Extended::LocalTime(t) => time_text(*t),
        Extended::MonthDay(m, d) => format!("--{m:02}-{d:02}"),
        Extended::OffsetDateTime(y, m, d, t, o) => date_time_text(*y, *m, *d, *t, *o),
        Extended::OffsetTime(t, o) => format!("{}{}", time_text(*t), offset_text(*o)),
        Extended::Period(years, months, days) => period_text(*years, *months, *days),
        Extended::Year(y) => y.to_string(),
        Extended::YearMonth(y, m) => format!("{}-{m:02}", year_text(*y)),
        Extended::ZonedDateTime(y, m, d, t, o, zone) => {
            let time = date_time_text(*y, *m, *d, *t, *o);
            zone.as_ref().map_or_else(|| time.clone(), |zone| format!("{time}[{zone}]"))
        }
        Extended::ZoneOffset(o) => offset_text(*o),
        _ => return None,
    })
}

/// `2007-12-03T10:15:30+01:00`
pub(crate) fn date_time_text(year: i32, month: u8, day: u8, time: i64, offset: i32) -> String {
    format!("{}T{}{}", date_text(year, month, day), time_text(time), offset_text(offset))
}

/// `PT8H6M12.345S`
pub(crate) fn duration_text(duration: Duration) -> String {
    // Every part has its sign, so the printer starts from the total.
    let total = i128::from(duration.seconds) * 1_000_000_000 + i128::from(duration.nanoseconds);
    if total == 0 {
        return "PT0S".to_owned();
    }
    let (seconds, fraction) = (total / 1_000_000_000, (total % 1_000_000_000).unsigned_abs());
    let (hours, minutes, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let mut text = "PT".to_owned();
    if hours != 0 {
        text += &format!("{hours}H");
    }
    if minutes != 0 {
        text += &format!("{minutes}M");
    }
    if second != 0 || fraction != 0 {
        let sign = if total < 0 && second == 0 { "-" } else { "" };
        let digits = format!("{fraction:09}");
        let digits = digits.trim_end_matches('0');
        let point = if digits.is_empty() { "" } else { "." };
        text += &format!("{sign}{second}{point}{digits}S");
    }
    text
}

fn year_text(year: i32) -> String {
    match year {
        0..=9999 => format!("{year:04}"),
        10_000.. => format!("+{year}"),
        _ => format!("-{:04}", year.unsigned_abs()),
    }
}

fn date_text(year: i32, month: u8, day: u8) -> String {
    format!("{}-{month:02}-{day:02}", year_text(year))
}

fn time_text(nanoseconds: i64) -> String {
    let (seconds, fraction) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if second == 0 && fraction == 0 {
        format!("{hour:02}:{minute:02}")
    } else {
        format!("{hour:02}:{minute:02}:{second:02}{}", fraction_text(fraction))
    }
}

/// Zero, three, six or nine digits.
fn fraction_text(nanoseconds: i64) -> String {
    match nanoseconds {
        0 => String::new(),
        n if n % 1_000_000 == 0 => format!(".{:03}", n / 1_000_000),
        n if n % 1_000 == 0 => format!(".{:06}", n / 1_000),
        n => format!(".{n:09}"),
    }
}

fn offset_text(offset: i32) -> String {
    let (sign, seconds) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs());
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match (seconds, second) {
        (0, _) => "Z".to_owned(),
        (_, 0) => format!("{sign}{hour:02}:{minute:02}"),
        _ => format!("{sign}{hour:02}:{minute:02}:{second:02}"),
    }
}

fn period_text(years: i32, months: i32, days: i32) -> String {
    let mut text = "P".to_owned();
    for (number, unit) in [(years, 'Y'), (months, 'M'), (days, 'D')] {
        if number != 0 {
            text += &format!("{number}{unit}");
        }
    }
    if text.len() == 1 { "P0D".to_owned() } else { text }
}

/// The date `days` after 1970-01-01.
fn civil(days: i64) -> (i32, u8, u8) {
    let (year, month, day) = civil_from_days(days);
    (
        i32::try_from(year).unwrap_or_default(),
        u8::try_from(month).unwrap_or_default(),
        u8::try_from(day).unwrap_or_default(),
    )
}

/// Days from 1970-01-01 to this day.
fn days_since_1970(year: i32, month: u8, day: u8) -> i64 {
    days_from_civil(year.into(), month.into(), day.into())
}

/// The remaining input.
struct Rest<'a>(&'a str);

impl Rest<'_> {
    fn take(&mut self, c: char) -> Option<()> {
        self.0 = self.0.strip_prefix(c)?;
        Some(())
    }

    /// A number of `from` to `to` digits.
    fn digits(&mut self, from: usize, to: usize) -> Option<i64> {
        let length = self.0.bytes().take(to).take_while(u8::is_ascii_digit).count();
        if length < from {
            return None;
        }
        let (digits, rest) = self.0.split_at(length);
        self.0 = rest;
        digits.parse().ok()
    }

    fn two(&mut self) -> Option<u8> {
        self.digits(2, 2).and_then(|number| u8::try_from(number).ok())
    }

    fn year(&mut self) -> Option<i32> {
        let negative = self.take('-').is_some();
        let signed = negative || self.take('+').is_some();
        let year = self.digits(4, if signed { 10 } else { 4 })?;
        i32::try_from(if negative { -year } else { year }).ok()
    }

    fn date(&mut self) -> Option<(i32, u8, u8)> {
        let year = self.year()?;
        self.take('-')?;
        let month = self.two()?;
        self.take('-')?;
        Some((year, month, self.two()?))
    }

    /// Nanoseconds of the day.
    fn time(&mut self) -> Option<i64> {
        let hour = self.digits(2, 2)?;
        self.take(':')?;
        let minute = self.digits(2, 2)?;
        let (mut second, mut fraction) = (0, 0);
        if self.take(':').is_some() {
            second = self.digits(2, 2)?;
            if self.take('.').is_some() {
                fraction = self.fraction()?;
            }
        }
        (hour < 24 && minute < 60 && second < 60)
            .then_some((hour * 3_600 + minute * 60 + second) * 1_000_000_000 + fraction)
    }

    fn fraction(&mut self) -> Option<i64> {
        let before = self.0.len();
        let number = self.digits(1, 9)?;
        let digits = u32::try_from(before - self.0.len()).ok()?;
        Some(number * 10_i64.pow(9 - digits))
    }

    fn offset(&mut self) -> Option<i32> {
        if self.take('Z').is_some() {
            return Some(0);
        }
        let negative = self.take('-').is_some();
        if !negative {
            self.take('+')?;
        }
        let hour = self.digits(2, 2)?;
        let (mut minute, mut second) = (0, 0);
        if self.take(':').is_some() {
            minute = self.digits(2, 2)?;
            if self.take(':').is_some() {
                second = self.digits(2, 2)?;
            }
        } else if self.0.starts_with(|c: char| c.is_ascii_digit()) {
            minute = self.digits(2, 2)?;
        }
        let offset = i32::try_from(hour * 3_600 + minute * 60 + second).ok()?;
        (minute < 60 && second < 60).then_some(if negative { -offset } else { offset })
    }

    fn date_time(&mut self) -> Option<(i32, u8, u8, i64)> {
        let (year, month, day) = self.date()?;
        self.take('T')?;
        Some((year, month, day, self.time()?))
    }
}

/// Parses the whole of `text`.
fn whole<T>(what: &str, text: &str, parts: impl FnOnce(&mut Rest<'_>) -> Option<T>) -> Result<T> {
    let mut rest = Rest(text);
    let value = parts(&mut rest).filter(|_| rest.0.is_empty());
    value.ok_or_else(|| format!("expected {what}, found {}", shortened(text)))
}

/// Parses a value of the type `kind` (`LocalDate`, …); none if it is no such type.
pub(crate) fn parse(kind: &str, text: &str) -> Option<Result<Value>> {
    let extended = match kind {
        "Duration" => return Some(parse_duration(text).map(Value::Duration)),
        "OffsetDateTime" => {
            let parts = whole("a date-time such as 2007-12-03T10:15:30+01:00", text, |rest| {
                Some((rest.date_time()?, rest.offset()?))
            });
            return Some(parts.and_then(|((y, m, d, t), offset)| date_time(y, m, d, t, offset)));
        }
        "Instant" => parse_instant(text),
        "LocalDate" => whole("a date such as 2016-01-01", text, |rest| {
            let (y, m, d) = rest.date()?;
            Some(Extended::LocalDate(y, m, d))
        }),
        "LocalDateTime" => whole("a date-time such as 2016-01-01T12:30", text, |rest| {
            let (y, m, d, t) = rest.date_time()?;
            Some(Extended::LocalDateTime(y, m, d, t))
        }),
        "LocalTime" => whole("a time such as 12:30:45", text, |rest| rest.time().map(Extended::LocalTime)),
        "MonthDay" => whole("a day of a year such as --01-01", text, |rest| {
            rest.take('-')?;
            rest.take('-')?;
            let month = rest.two()?;
            rest.take('-')?;
            Some(Extended::MonthDay(month, rest.two()?))
        }),
        "OffsetTime" => whole("a time such as 10:15:30+01:00", text, |rest| {
            let time = rest.time()?;
            Some(Extended::OffsetTime(time, rest.offset()?))
        }),
        "Period" => parse_period(text),
        "Year" => text
            .parse()
            .map(Extended::Year)
            .map_err(|_| format!("expected a year, found {}", shortened(text))),
        "YearMonth" => whole("a month such as 2016-06", text, |rest| {
            let year = rest.year()?;
            rest.take('-')?;
            Some(Extended::YearMonth(year, rest.two()?))
        }),
        "ZonedDateTime" => parse_zoned(text),
        "ZoneOffset" => {
            whole("an offset such as +03:06:09", text, |rest| rest.offset().map(Extended::ZoneOffset))
        }
        _ => return None,
    };
    Some(extended.and_then(checked).map(|extended| Value::Extended(extended.into())))
}

fn parse_zoned(text: &str) -> Result<Extended> {
    let (time, zone) = match text.strip_suffix(']').and_then(|text| text.split_once('[')) {
        Some((time, zone)) => (time, Some(zone.into())),
        None => (text, None),
    };
    let ((y, m, d, t), offset) =
        whole("a date-time such as 2016-12-23T12:12:24+02:00[GMT+02:00]", time, |rest| {
            Some((rest.date_time()?, rest.offset()?))
        })?;
    Ok(Extended::ZonedDateTime(y, m, d, t, offset, zone))
}

fn parse_instant(text: &str) -> Result<Extended> {
    let ((y, m, d, t), offset) = whole("an instant such as 2016-12-14T16:39:19.349Z", text, |rest| {
        Some((rest.date_time()?, rest.offset()?))
    })?;
    if !is_day(y.clamp(-YEAR_MAX, YEAR_MAX), m, d) {
        return Err(format!("expected a day that there is, found {}", shortened(text)));
    }
    let seconds = days_since_1970(y, m, d) * 86_400 + t / 1_000_000_000 - i64::from(offset);
    Ok(Extended::Instant(seconds, i32::try_from(t % 1_000_000_000).unwrap_or_default()))
}

/// `P1Y6M15D`, `-P2W`
fn parse_period(text: &str) -> Result<Extended> {
    let parse = |rest: &mut Rest<'_>| {
        let sign = if rest.take('-').is_some() { -1 } else { 1 };
        rest.take('P')?;
        let (mut years, mut months, mut days) = (0_i64, 0_i64, 0_i64);
        let mut before = "";
        while !rest.0.is_empty() {
            let number = signed(rest)? * sign;
            let unit = ["Y", "M", "W", "D"].into_iter().find(|unit| rest.0.starts_with(unit))?;
            // Units are distinct, in descending order.
            if "YMWD".find(unit) <= "YMWD".find(before).filter(|_| !before.is_empty()) {
                return None;
            }
            before = unit;
            rest.0 = &rest.0[1..];
            match unit {
                "Y" => years = number,
                "M" => months = number,
                "W" => days += number * 7,
                _ => days += number,
            }
        }
        let part = |part: i64| i32::try_from(part).ok();
        (!before.is_empty()).then_some(Extended::Period(part(years)?, part(months)?, part(days)?))
    };
    whole("a period such as P1Y6M15D", text, parse)
}

/// `PT8H6M12.345S`, `P2DT-3H`, `-PT1S`
fn parse_duration(text: &str) -> Result<Duration> {
    let parse = |rest: &mut Rest<'_>| {
        let sign = if rest.take('-').is_some() { -1 } else { 1 };
        rest.take('P')?;
        let mut total = 0_i128;
        let mut units = [('D', 86_400_i128), ('T', 0), ('H', 3_600), ('M', 60), ('S', 1)].into_iter();
        let mut parts = 0;
        let mut in_time = false;
        while !rest.0.is_empty() {
            if !in_time && rest.take('T').is_some() {
                units.find(|(unit, _)| *unit == 'T')?;
                in_time = true;
                continue;
            }
            let negative = rest.0.starts_with('-');
            let number = i128::from(signed(rest)?);
            let mut fraction = 0;
            if in_time && (rest.take('.').is_some()) {
                fraction = i128::from(rest.fraction()?);
                if !rest.0.starts_with('S') {
                    return None;
                }
            }
            let (unit, seconds) = units.find(|(unit, _)| rest.0.starts_with(*unit))?;
            if unit == 'T' || (unit != 'D') != in_time {
                return None;
            }
            rest.take(unit)?;
            let fraction = if negative { -fraction } else { fraction };
            total += number * seconds * 1_000_000_000 + fraction;
            parts += 1;
        }
        total *= sign;
        let seconds = i64::try_from(total.div_euclid(1_000_000_000)).ok()?;
        let nanoseconds = u32::try_from(total.rem_euclid(1_000_000_000)).ok()?;
        (parts > 0).then_some(Duration { seconds, nanoseconds })
    };
    whole("a length of time such as PT8H6M12.345S", text, parse)
}

/// Digits with an optional sign; up to 18, so that no sum overflows.
fn signed(rest: &mut Rest<'_>) -> Option<i64> {
    let negative = rest.take('-').is_some();
    if !negative {
        let _ = rest.take('+');
    }
    let number = rest.digits(1, 18)?;
    Some(if negative { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(kind: &str, texts: &[&str]) {
        for given in texts {
            let value = parse(kind, given).unwrap().unwrap();
            let written = match &value {
                Value::Extended(extended) => text(extended).unwrap(),
                Value::Duration(duration) => duration_text(*duration),
                Value::DateTime(time) => {
                    let (y, m, d, t, o) = date_time_parts(time);
                    date_time_text(y, m, d, t, o)
                }
                _ => panic!("{value:?}"),
            };
            assert_eq!(&written, given, "{kind}");
        }
    }

    #[test]
    fn texts_round_trip() {
        round("LocalDate", &["2016-01-01", "-0001-12-31", "+10000-02-29", "0000-02-29", "-999999999-01-01"]);
        round("LocalTime", &["12:30", "12:30:45", "00:00:00.001", "23:59:59.999999999", "00:00"]);
        round(
            "OffsetDateTime",
            &["2007-12-03T10:15:30+01:00", "2007-12-03T10:15Z", "+12345-01-01T00:00-17:59:59"],
        );
        round(
            "Instant",
            &["2016-12-14T16:39:19.349Z", "1969-12-31T23:59:59.999999999Z", "-0100-03-01T00:00:00Z"],
        );
        round("Instant", &["+999999999-12-31T23:59:59Z", "-999999999-01-01T00:00:00Z"]);
        round("Duration", &["PT120H", "PT0S", "PT-1S", "PT-0.5S", "PT8H6M12.345S", "PT-1H-1M-1.000000001S"]);
        round("Period", &["P1Y6M15D", "P0D", "P-1Y2D"]);
        round("MonthDay", &["--02-29"]);
        round("ZonedDateTime", &["2016-12-23T12:12:24.000000036+02:00[GMT+02:00]", "2016-12-23T12:12Z"]);
        round("ZoneOffset", &["+03:06:09", "Z", "-18:00"]);
        round("OffsetTime", &["10:15:30+01:00"]);
        round("Year", &["2016", "-5"]);
        round("YearMonth", &["2016-06"]);
    }

    #[test]
    fn other_forms_of_the_same() {
        assert_eq!(parse_duration("P1DT1S").unwrap(), Duration { seconds: 86_401, nanoseconds: 0 });
        assert_eq!(parse_duration("-PT1.5S").unwrap(), Duration { seconds: -2, nanoseconds: 500_000_000 });
        assert_eq!(parse_period("-P2W1D").unwrap(), Extended::Period(0, 0, -15));
    }

    #[test]
    fn bad_texts_are_refused() {
        for (kind, texts) in [
            ("LocalDate", &["2016-13-01", "2015-02-29", "2016-1-1", "16-01-01", "", "2016-01-01x", "é"][..]),
            ("LocalTime", &["24:00", "12", "12:60", "12:30:", "12:30:45."]),
            (
                "Duration",
                &["P", "PT", "PT1", "PT1S1H", "PT1.5H", "1S", "PT1D", "P1H", "PT99999999999999999999S"],
            ),
            ("Period", &["P", "P1", "P1D1Y", "P1Y1Y", "P99999999999Y"]),
            ("OffsetDateTime", &["2007-12-03T10:15", "2007-12-03T10:15+19:00", "2007-12-03 10:15Z"]),
            ("ZoneOffset", &["+25:00", "03:00", "+3"]),
            ("MonthDay", &["--02-30", "02-03"]),
            ("Instant", &["+9999999999-12-31T23:59:59Z"]),
        ] {
            for text in texts {
                assert!(parse(kind, text).unwrap().is_err(), "{kind} {text}");
            }
        }
    }

    #[test]
    fn days_are_counted_as_a_library_counts_them() {
        for day in (-1_000_000..1_000_000).step_by(997) {
            let (y, m, d) = civil(day);
            assert_eq!(days_since_1970(y, m, d), day);
            let date = Date::from_calendar_date(y, Month::try_from(m).unwrap(), d).unwrap();
            assert_eq!(i64::from(date.to_julian_day()) - 2_440_588, day);
        }
    }
}
