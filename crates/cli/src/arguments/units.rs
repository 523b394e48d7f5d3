//! Value parsers of times, sizes and counts.

use std::time::Duration;

/// The maximum timeout: beyond it, sums of times could overflow the clock.
const TIMEOUT_MAX_SECONDS: f64 = 1e9;

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if !(0.0..=TIMEOUT_MAX_SECONDS).contains(&seconds) {
        return Err(format!("must be between 0 and {TIMEOUT_MAX_SECONDS}"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Bytes from `1048576`, `1024K`, `1M`, `1MB`, `1MiB`, `1.5G`: each letter is 1024 times the one before.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_lowercase();
    let unit = unit.strip_suffix("ib").or_else(|| unit.strip_suffix('b')).unwrap_or(&unit);
    let shift = match unit {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err("not a size: write bytes, or a number with K, M, G or T".to_owned()),
    };
    let too_large = || "too large".to_owned();
    if let Ok(number) = digits.trim().parse::<u64>() {
        return number.checked_mul(1 << shift).ok_or_else(too_large);
    }
    let number: f64 =
        digits.trim().parse().map_err(|_| "not a size: write for example 512M or 4G".to_owned())?;
    let bytes = number * f64::from(1_u32 << (shift / 2)) * f64::from(1_u32 << (shift / 2));
    if !(0.0..9e15).contains(&bytes) {
        return Err(too_large());
    }
    // A whole number below 2^53 is printed as such.
    format!("{bytes:.0}").parse().map_err(|_| too_large())
}

/// A count, whose digits may be in groups: `100,000,000`, `100_000_000`.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let digits: String = text.chars().filter(|letter| !matches!(letter, ',' | '_')).collect();
    digits.parse().map_err(|_| "not a number, such as 100000000 or 100,000,000".to_owned())
}

/// A factor above 0.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    let factor: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if factor > 0.0 && factor <= 1e9 { Ok(factor) } else { Err("must be above 0 and at most 1e9".to_owned()) }
}
