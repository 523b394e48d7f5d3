//! Number literals: `1`, `1l`, `0x1F`, `017`, `1_000`, `1.5`, `1e3f`, `1.5m`, `-Infinity`.
//!
//! An integer without a suffix is an int if it fits, else a long, else a big integer. A decimal without a
//! suffix is a double.

use crate::Value;
use bigdecimal::BigDecimal;
use num_bigint::BigInt;
use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

/// Maximum length of a number, which bounds the parse time.
const CHARACTERS_MAX: usize = 10_000;
/// Maximum exponent of a big decimal, which bounds the memory of later results.
const EXPONENT_MAX: i64 = 10_000;

/// Parses a number token.
pub(super) fn value(token: &str) -> Result<Value, String> {
    if token.len() > CHARACTERS_MAX {
        return Err(format!("this number has more than {CHARACTERS_MAX} characters"));
    }
    let (negative, digits) = match token.as_bytes().first() {
        Some(b'-') => (true, &token[1..]),
        Some(b'+') => (false, &token[1..]),
        _ => (false, token),
    };
    match digits {
        "Infinity" if negative => return Ok(Value::Double(f64::NEG_INFINITY)),
        "Infinity" => return Ok(Value::Double(f64::INFINITY)),
        _ => {}
    }
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        let (hex, suffix) = split_suffix(hex, |c| matches!(c, 's' | 'n' | 'i' | 'l'));
        return integer(negative, &plain(hex)?, 16, suffix);
    }
    let (digits, suffix) = split_suffix(digits, |c| c.is_ascii_alphabetic());
    let clean = plain(digits)?;
    let is_decimal = clean.contains(['.', 'e', 'E']);
    match suffix {
        Some('f' | 'd' | 'm') => decimal(negative, &clean, suffix),
        None if is_decimal => decimal(negative, &clean, None),
        Some(suffix) if is_decimal => Err(format!("a decimal number cannot have the suffix {suffix}")),
        _ if clean.len() > 1 && clean.starts_with('0') => integer(negative, &clean[1..], 8, suffix),
        _ => integer(negative, &clean, 10, suffix),
    }
}

fn split_suffix(digits: &str, is_suffix: impl Fn(char) -> bool) -> (&str, Option<char>) {
    match digits.chars().next_back().map(|c| c.to_ascii_lowercase()) {
        Some(last) if is_suffix(last) => (&digits[..digits.len() - 1], Some(last)),
        _ => (digits, None),
    }
}

/// Removes underscores, which may stand only between digits (or after the 0 of an octal number).
fn plain(digits: &str) -> Result<Cow<'_, str>, String> {
    if digits.is_empty() {
        return Err("this number has no digits".to_owned());
    }
    if !digits.contains('_') {
        return Ok(Cow::Borrowed(digits));
    }
    let bytes = digits.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
    let run_is_inside = |at: usize| {
        let end = at + bytes[at..].iter().take_while(|b| **b == b'_').count();
        at > 0 && is_digit(at - 1) && is_digit(end)
    };
    let starts = (0..bytes.len()).filter(|&at| bytes[at] == b'_' && (at == 0 || bytes[at - 1] != b'_'));
    if starts.into_iter().all(run_is_inside) {
        Ok(Cow::Owned(digits.replace('_', "")))
    } else {
        Err("an underscore in a number must stand between digits".to_owned())
    }
}

fn integer(negative: bool, digits: &str, radix: u32, suffix: Option<char>) -> Result<Value, String> {
    let wrong = || format!("these are not digits of base {radix}");
    if !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(wrong());
    }
    let number = match i128::from_str_radix(digits, radix) {
        Ok(number) => Ok(if negative { -number } else { number }),
        Err(_) => {
            let magnitude = BigInt::parse_bytes(digits.as_bytes(), radix).ok_or_else(wrong)?;
            Err(if negative { -magnitude } else { magnitude })
        }
    };
    let small = number.as_ref().ok().copied();
    let out_of_range = |name: &str| format!("this number does not fit {name}");
    Ok(match suffix {
        Some('b') => Value::Byte(narrow(small).ok_or_else(|| out_of_range("a byte (8 bits)"))?),
        Some('s') => Value::Short(narrow(small).ok_or_else(|| out_of_range("a short (16 bits)"))?),
        Some('i') => Value::Int(narrow(small).ok_or_else(|| out_of_range("an int (32 bits)"))?),
        Some('l') => Value::Long(narrow(small).ok_or_else(|| out_of_range("a long (64 bits)"))?),
        Some('n') => big(number),
        Some(other) => return Err(format!("an integer cannot have the suffix {other}")),
        None => match (narrow(small), narrow(small)) {
            (Some(int), _) => Value::Int(int),
            (None, Some(long)) => Value::Long(long),
            (None, None) => big(number),
        },
    })
}

fn narrow<T: TryFrom<i128>>(number: Option<i128>) -> Option<T> {
    number.and_then(|number| T::try_from(number).ok())
}

fn big(number: Result<i128, BigInt>) -> Value {
    Value::BigInteger(Arc::new(number.map_or_else(|big| big, BigInt::from)))
}

fn decimal(negative: bool, digits: &str, suffix: Option<char>) -> Result<Value, String> {
    let wrong = |_| "this is not a number".to_owned();
    Ok(match suffix {
        Some('f') => {
            let number = f32::from_str(digits).map_err(|_| "this is not a number".to_owned())?;
            Value::Float(if negative { -number } else { number })
        }
        Some('m') => {
            let exponent = digits.split(['e', 'E']).nth(1).map_or(Ok(0), i64::from_str);
            if !exponent.is_ok_and(|exponent| exponent.abs() <= EXPONENT_MAX) {
                return Err(format!("the exponent of a big decimal is at most {EXPONENT_MAX}"));
            }
            let number = BigDecimal::from_str(digits).map_err(|_| "this is not a number".to_owned())?;
            Value::BigDecimal(Arc::new(if negative { -number } else { number }))
        }
        _ => {
            let number = f64::from_str(digits).map_err(wrong)?;
            Value::Double(if negative { -number } else { number })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::value;
    use crate::Value;

    #[test]
    fn number_suffixes_determine_the_type() {
        let long = 2_147_483_648i64;
        for (text, expected) in [
            ("0", Value::Int(0)),
            ("-2147483648", Value::Int(i32::MIN)),
            ("2147483648", Value::Long(long)),
            ("1_0__0", Value::Int(100)),
            ("-128b", Value::Byte(i8::MIN)),
            ("0xFFs", Value::Short(255)),
            ("0xAB", Value::Int(171)),
            ("-0x456", Value::Int(-0x456)),
            ("0123_456", Value::Int(0o123_456)),
            ("0_7L", Value::Long(7)),
            ("1N", Value::BigInteger(std::sync::Arc::new(1.into()))),
            ("1e2", Value::Double(100.0)),
            ("1_2.3_4e5_6", Value::Double(12.34e56)),
            ("00.5", Value::Double(0.5)),
            ("123f", Value::Float(123.0)),
            ("-0.0", Value::Double(-0.0)),
            ("-Infinity", Value::Double(f64::NEG_INFINITY)),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
        let big = value("9223372036854775808").expect("a number");
        assert!(matches!(big, Value::BigInteger(_)), "{big:?}");
        assert_eq!(value("1.50m"), value("1.5M"));
    }

    #[test]
    fn other_numbers_are_refused() {
        let long = "1".repeat(10_001);
        for text in ["128b", "32768s", "2147483648i", "9223372036854775808l", "08", "0x", "1_", "1_l", "1._5"]
        {
            assert!(value(text).is_err(), "{text}");
        }
        for text in ["1.5l", "1e99999m", "1e99999999999999999999m", "0x1_", long.as_str()] {
            assert!(value(text).is_err(), "{text}");
        }
    }
}
