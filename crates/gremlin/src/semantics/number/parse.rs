//! Number parser of `asNumber()`, for strings in Java syntax rather than Gremlin literals.
//!
//! # Shape
//! Surrounding white space is ignored. A sign, then one of: `0x` and hexadecimal digits; `0` and octal
//! digits; decimal digits with a point, an exponent and one of the suffixes `l` (integers only), `f`, `d`. An
//! integer gets the narrowest of int, long, big integer; a fraction is a float if its text equals that of the
//! double, else a double if that is exact in its digits, else a decimal.
//! # Source
//! Apache Commons Lang, `NumberUtils.createNumber`, which TinkerPop calls.

use super::big;
use crate::Value;
use crate::semantics::{Error, Result, java};
use bigdecimal::BigDecimal;
use num_bigint::BigInt;
use std::cmp::Ordering;
use std::sync::Arc;

pub(super) fn number(text: &str) -> Result<Value> {
    let fail = || Error::new(format!("Can't parse string '{text}' as number."));
    let trimmed = text.trim_matches(|c: char| c <= ' ');
    let (sign, digits) = match trimmed.as_bytes().first() {
        Some(b'-') => ("-", trimmed.get(1..).unwrap_or_default()),
        Some(b'+') => ("", trimmed.get(1..).unwrap_or_default()),
        _ => ("", trimmed),
    };
    if let Some(hexadecimal) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        return integer(sign, hexadecimal, 16).ok_or_else(fail);
    }
    if let Some(octal) = digits.strip_prefix('0')
        && octal.starts_with(|c: char| c.is_ascii_digit())
        && !octal.contains('.')
    {
        return integer(sign, octal, 8).ok_or_else(fail);
    }
    let (body, suffix) = match digits.as_bytes().last() {
        Some(last @ (b'l' | b'L' | b'f' | b'F' | b'd' | b'D')) => {
            (digits.get(..digits.len() - 1).unwrap_or_default(), Some(last.to_ascii_lowercase()))
        }
        _ => (digits, None),
    };
    let form = NumeralForm::of(body).ok_or_else(fail)?;
    match suffix {
        Some(b'l') if form != NumeralForm::Integer => None,
        Some(b'l') => match integer(sign, body, 10) {
            Some(Value::Int(number)) => Some(Value::Long(number.into())),
            number => number,
        },
        None if form == NumeralForm::Integer => integer(sign, body, 10),
        _ => fraction(&format!("{sign}{body}"), suffix),
    }
    .ok_or_else(fail)
}

#[derive(PartialEq, Eq)]
enum NumeralForm {
    Integer,
    Fraction,
}

impl NumeralForm {
    /// `None` if the text is not a number.
    fn of(body: &str) -> Option<Self> {
        let (mantissa, exponent) = match body.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (body, None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let some = !whole.is_empty() || fraction.is_some_and(|fraction| !fraction.is_empty());
        if !some || !digits(whole) || !fraction.is_none_or(digits) {
            return None;
        }
        if let Some(exponent) = exponent {
            let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if exponent.is_empty() || !digits(exponent) {
                return None;
            }
        }
        Some(if fraction.is_none() && exponent.is_none() { Self::Integer } else { Self::Fraction })
    }
}

fn integer(sign: &str, digits: &str, radix: u32) -> Option<Value> {
    // A digit has at most 4 bits.
    big::limited(u64::try_from(digits.len()).ok()?.saturating_mul(4)).ok()?;
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let text = format!("{sign}{digits}");
    if let Ok(number) = i32::from_str_radix(&text, radix) {
        return Some(Value::Int(number));
    }
    if let Ok(number) = i64::from_str_radix(&text, radix) {
        return Some(Value::Long(number));
    }
    BigInt::parse_bytes(text.as_bytes(), radix).map(|number| Value::BigInteger(Arc::new(number)))
}

/// `text`: a number of decimal digits with a point, an exponent, or both.
fn fraction(text: &str, suffix: Option<u8>) -> Option<Value> {
    big::limited(u64::try_from(text.len()).ok()?.saturating_mul(4)).ok()?;
    let zero =
        text.bytes().take_while(|byte| !matches!(byte, b'e' | b'E')).all(|b| !matches!(b, b'1'..=b'9'));
    let float: f32 = text.parse().ok()?;
    let double: f64 = text.parse().ok()?;
    let float_holds = float.is_finite() && (float != 0.0 || zero);
    let double_holds = double.is_finite() && (double != 0.0 || zero);
    match suffix {
        Some(b'f') if float_holds => return Some(Value::Float(float)),
        Some(_) if double_holds => return Some(Value::Double(double)),
        Some(_) => {}
        None if float_holds && java::float(float) == java::double(double) => {
            return Some(Value::Float(float));
        }
        None => {}
    }
    let decimal: BigDecimal = text.parse().ok()?;
    if suffix.is_none() && double_holds {
        let printed: BigDecimal = java::double(double).parse().ok()?;
        if big::compare(&decimal, &printed) == Ordering::Equal {
            return Some(Value::Double(double));
        }
    }
    Some(Value::BigDecimal(Arc::new(decimal)))
}
