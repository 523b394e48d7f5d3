//! Parser and printer of numbers, with size limits.

use crate::WriteError;
use crate::limits::{DIGITS_MAX, INTEGER_BYTES_MAX, SCALE_MAX};
use bigdecimal::BigDecimal;
use num_bigint::BigInt;
use std::fmt::Write;

/// Parses an arbitrary-precision integer: digits with an optional sign.
pub(crate) fn integer(text: &str) -> Result<BigInt, String> {
    if text.len() > DIGITS_MAX {
        return Err(format!("expected at most {DIGITS_MAX} digits, found {}", text.len()));
    }
    if text.contains(['_', '+']) {
        return Err(format!("expected an integer, found {text:?}"));
    }
    text.parse().map_err(|_| format!("expected an integer, found {}", shortened(text)))
}

/// Conversion to digits takes quadratic time; readers have the same limit.
pub(crate) fn checked_bits(bits: u64) -> Result<(), WriteError> {
    if bits <= 8 * INTEGER_BYTES_MAX as u64 {
        Ok(())
    } else {
        Err(WriteError::too_large(format!("could not write a number of {bits} bits")))
    }
}

/// Parses an arbitrary-precision decimal, with or without an exponent.
pub(crate) fn decimal(text: &str) -> Result<BigDecimal, String> {
    if text.len() > DIGITS_MAX {
        return Err(format!("expected at most {DIGITS_MAX} digits, found {}", text.len()));
    }
    if text.contains('_') {
        return Err(format!("expected a decimal number, found {text:?}"));
    }
    let number: BigDecimal =
        text.parse().map_err(|_| format!("expected a decimal number, found {}", shortened(text)))?;
    let (_, scale) = number.as_bigint_and_scale();
    checked_scale(scale)?;
    Ok(number)
}

/// Rejects scales that make arithmetic too expensive.
pub(crate) fn checked_scale(scale: i64) -> Result<(), String> {
    if (-SCALE_MAX..=SCALE_MAX).contains(&scale) {
        Ok(())
    } else {
        Err(format!("expected a decimal number with a scale up to {SCALE_MAX}, found {scale}"))
    }
}

/// A decimal in Java's form: plain, or with an exponent if plain form would pad with zeros.
pub(crate) fn decimal_text(number: &BigDecimal) -> String {
    let (unscaled, scale) = number.as_bigint_and_scale();
    let digits = unscaled.magnitude().to_string();
    let sign = if unscaled.sign() == num_bigint::Sign::Minus { "-" } else { "" };
    let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    let exponent = (length - 1).saturating_sub(scale);
    if scale == 0 {
        format!("{sign}{digits}")
    } else if scale > 0 && exponent >= -6 {
        let scale = usize::try_from(scale).unwrap_or(usize::MAX);
        if digits.len() > scale {
            let (whole, part) = digits.split_at(digits.len() - scale);
            format!("{sign}{whole}.{part}")
        } else {
            format!("{sign}0.{}{digits}", "0".repeat(scale - digits.len()))
        }
    } else {
        let (first, rest) = digits.split_at(1);
        let mut text = format!("{sign}{first}");
        if !rest.is_empty() {
            let _ = write!(text, ".{rest}");
        }
        if exponent != 0 {
            let _ = write!(text, "E{exponent:+}");
        }
        text
    }
}

/// At most 40 characters of `text`, quoted, for a message.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_written_as_java_writes_them() {
        for text in ["0", "-1.50", "0.000001", "1E-7", "1E+3", "1.23E-8", "123456789.00", "-1.5E+20", "0.00"]
        {
            assert_eq!(decimal_text(&decimal(text).unwrap()), text);
        }
    }

    #[test]
    fn numbers_have_limits() {
        assert!(decimal("1E1000000000").is_err());
        assert!(decimal("1E-99999999999999999999").is_err());
        assert!(integer(&"1".repeat(DIGITS_MAX + 1)).is_err());
        assert!(integer("1_0").is_err());
        assert!(integer("").is_err());
        assert!(decimal("").is_err());
    }
}
