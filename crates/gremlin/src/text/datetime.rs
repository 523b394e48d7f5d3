//! Date-time literals of `datetime("…")`: `2023-08-02`, `2023-08`, `2023-08-02T10:30`, with optional seconds,
//! fraction and offset (`Z`, `+0100`, `+01:00`). The default offset is UTC.

use std::fmt::{self, Write};
use time::{Date, Month, OffsetDateTime, Time, UtcOffset};

/// Parses a date-time; `None` if it has none of these forms.
pub(super) fn parse(text: &str) -> Option<OffsetDateTime> {
    let (date, rest) = date(text)?;
    let Some(rest) = rest.strip_prefix(['T', 't']) else {
        return rest.is_empty().then(|| date.midnight().assume_utc());
    };
    let (time, rest) = clock(rest)?;
    Some(date.with_time(time).assume_offset(offset(rest)?))
}

fn date(text: &str) -> Option<(Date, &str)> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (year, rest) = number(rest, 4, 6)?;
    let year = i32::try_from(year).ok()?;
    let (month, rest) = number(rest.strip_prefix('-')?, 1, 2)?;
    let (day, rest) = match rest.strip_prefix('-') {
        Some(rest) => number(rest, 2, 2)?,
        None if rest.is_empty() => (1, rest),
        None => return None,
    };
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    let year = if negative { -year } else { year };
    Some((Date::from_calendar_date(year, month, u8::try_from(day).ok()?).ok()?, rest))
}

fn clock(text: &str) -> Option<(Time, &str)> {
    let (hour, rest) = number(text, 2, 2)?;
    let (minute, mut rest) = number(rest.strip_prefix(':')?, 2, 2)?;
    let (mut second, mut nanosecond) = (0, 0);
    if let Some(seconds) = rest.strip_prefix(':') {
        (second, rest) = number(seconds, 2, 2)?;
        if let Some(fraction) = rest.strip_prefix('.') {
            let (digits, after) = number(fraction, 1, 9)?;
            let width = u32::try_from(fraction.len() - after.len()).ok()?;
            nanosecond = digits * 10_u32.pow(9 - width);
            rest = after;
        }
    }
    let part = |n: u32| u8::try_from(n).ok();
    Some((Time::from_hms_nano(part(hour)?, part(minute)?, part(second)?, nanosecond).ok()?, rest))
}

fn offset(text: &str) -> Option<UtcOffset> {
    if text.is_empty() || text.eq_ignore_ascii_case("z") {
        return Some(UtcOffset::UTC);
    }
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+')?),
    };
    let (hours, mut rest) = number(rest, 2, 2)?;
    let mut parts = [hours, 0, 0];
    for part in &mut parts[1..] {
        if !rest.is_empty() {
            (*part, rest) = number(rest.strip_prefix(':').unwrap_or(rest), 2, 2)?;
        }
    }
    let [hours, minutes, seconds] = parts;
    if !rest.is_empty() || hours > 18 || minutes > 59 || seconds > 59 {
        return None;
    }
    let seconds = i32::try_from(hours * 3_600 + minutes * 60 + seconds).ok()?;
    UtcOffset::from_whole_seconds(if negative { -seconds } else { seconds }).ok()
}

/// A number of `least` to `most` digits, and the remaining text.
fn number(text: &str, least: usize, most: usize) -> Option<(u32, &str)> {
    let digits = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    if digits < least {
        return None;
    }
    Some((text[..digits].parse().ok()?, &text[digits..]))
}

/// Prints the form that [`parse`] accepts.
pub(super) fn print(out: &mut impl Write, at: &OffsetDateTime) -> fmt::Result {
    let year = at.year();
    let sign = if year < 0 { "-" } else { "" };
    write!(out, "{sign}{:04}-{:02}-{:02}", year.unsigned_abs(), u8::from(at.month()), at.day())?;
    write!(out, "T{:02}:{:02}:{:02}", at.hour(), at.minute(), at.second())?;
    if at.nanosecond() > 0 {
        let fraction = format!("{:09}", at.nanosecond());
        write!(out, ".{}", fraction.trim_end_matches('0'))?;
    }
    let (hours, minutes, seconds) = at.offset().as_hms();
    if at.offset().is_utc() {
        return out.write_char('Z');
    }
    let sign = if at.offset().is_negative() { '-' } else { '+' };
    write!(out, "{sign}{:02}:{:02}", hours.unsigned_abs(), minutes.unsigned_abs())?;
    if seconds == 0 { Ok(()) } else { write!(out, ":{:02}", seconds.unsigned_abs()) }
}

#[cfg(test)]
mod tests {
    use super::{parse, print};

    #[test]
    fn datetimes_round_trip() {
        for (text, expected) in [
            ("2023-08-02T00:00:00Z", "2023-08-02T00:00:00Z"),
            ("2023-04-15", "2023-04-15T00:00:00Z"),
            ("2023-4", "2023-04-01T00:00:00Z"),
            ("2023-04-15t10:30", "2023-04-15T10:30:00Z"),
            ("2023-04-15T10:30:45.120-07:00", "2023-04-15T10:30:45.12-07:00"),
            ("-0044-03-15T12:00:00+0130", "-0044-03-15T12:00:00+01:30"),
        ] {
            let at = parse(text).unwrap_or_else(|| panic!("{text} is a time"));
            let mut printed = String::new();
            print(&mut printed, &at).expect("a string takes everything");
            assert_eq!(printed, expected);
            assert_eq!(parse(&printed), Some(at));
        }
    }

    #[test]
    fn invalid_datetimes_are_refused() {
        for text in ["", "2023", "2023-13-01", "2023-02-30", "10:30:45", "2023-W15-3", "20230415T103045"] {
            assert_eq!(parse(text), None, "{text}");
        }
        for text in ["2023-04-15 10:30:45", "2023-Apr-15", "2023-04-15T25:00:00", "2023-04-15T10:30:45+19:00"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
