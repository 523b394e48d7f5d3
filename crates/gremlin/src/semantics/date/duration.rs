//! Durations as text: `PT8H6M12.345S`, `P2DT3H`, `PT-0.5S`.

use crate::Duration;
use crate::semantics::{Error, Result};
use std::fmt::Write;

const NANOSECONDS: i128 = 1_000_000_000;

/// Parses a duration: days, hours, minutes, seconds, each with an optional sign, and an optional sign before
/// all.
///
/// # Errors
/// Not a duration, or longer than 2^63 seconds.
pub fn parse_duration(text: &str) -> Result<Duration> {
    read(text)
        .ok_or_else(|| Error::new(format!("Can't parse {text} as Duration; an example of one is PT1H30M")))
}

fn read(text: &str) -> Option<Duration> {
    let upper = text.to_ascii_uppercase();
    let (negative, rest) = match upper.as_bytes().first()? {
        b'-' => (true, upper.get(1..)?),
        b'+' => (false, upper.get(1..)?),
        _ => (false, upper.as_str()),
    };
    let rest = rest.strip_prefix('P')?;
    let (days, times) = match rest.split_once('T') {
        Some((days, times)) if !times.is_empty() => (days, times),
        Some(_) => return None,
        None => (rest, ""),
    };
    if days.is_empty() && times.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    if !days.is_empty() {
        total = amount(days.strip_suffix('D')?)?.checked_mul(86_400)?;
    }
    let mut left = times;
    for (unit, seconds) in [('H', 3600), ('M', 60), ('S', 1)] {
        if let Some((count, rest)) = left.split_once(unit) {
            let nanoseconds = if unit == 'S' { amount_with_fraction(count)? } else { amount(count)? };
            total = total.checked_add(nanoseconds.checked_mul(seconds)?)?;
            left = rest;
        }
    }
    if !left.is_empty() {
        return None;
    }
    from_nanoseconds(if negative { -total } else { total })
}

/// Parses an integer number of seconds, in nanoseconds.
fn amount(text: &str) -> Option<i128> {
    // Only the sign is not a digit.
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || digits.len() > 19 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse::<i128>().ok()?.checked_mul(NANOSECONDS)
}

fn amount_with_fraction(text: &str) -> Option<i128> {
    let Some((whole, fraction)) = text.split_once(['.', ',']) else { return amount(text) };
    if fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nanoseconds: i128 = format!("{fraction:0<9}").parse().ok()?;
    let seconds = amount(whole)?;
    Some(if whole.starts_with('-') { seconds - nanoseconds } else { seconds + nanoseconds })
}

fn from_nanoseconds(total: i128) -> Option<Duration> {
    let seconds = i64::try_from(total.div_euclid(NANOSECONDS)).ok()?;
    let nanoseconds = u32::try_from(total.rem_euclid(NANOSECONDS)).ok()?;
    Some(Duration { seconds, nanoseconds })
}

/// As Java's `Duration.toString`: hours, minutes and seconds, each with the sign of the duration.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let total = i128::from(duration.seconds) * NANOSECONDS + i128::from(duration.nanoseconds);
    if total == 0 {
        return "PT0S".to_owned();
    }
    let (whole, fraction) = (total / NANOSECONDS, (total % NANOSECONDS).unsigned_abs());
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    let mut out = String::from("PT");
    if hours != 0 {
        let _ = write!(out, "{hours}H");
    }
    if minutes != 0 {
        let _ = write!(out, "{minutes}M");
    }
    if seconds != 0 || fraction != 0 {
        let sign = if total < 0 { "-" } else { "" };
        let _ = write!(out, "{sign}{}", seconds.unsigned_abs());
        if fraction != 0 {
            let digits = format!("{fraction:09}");
            let _ = write!(out, ".{}", digits.trim_end_matches('0'));
        }
        out.push('S');
    }
    out
}
