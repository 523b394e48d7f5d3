//! Java's text form of numbers.

use bigdecimal::BigDecimal;
use std::fmt::Write;

/// `Double.toString`: the shortest digits that round-trip, scientific below 0.001 and from 10,000,000 on.
pub(crate) fn double(number: f64) -> String {
    if number.is_finite() { floating(&format!("{number:e}")) } else { special(number).to_owned() }
}

/// `Float.toString`.
pub(crate) fn float(number: f32) -> String {
    if number.is_finite() { floating(&format!("{number:e}")) } else { special(number.into()).to_owned() }
}

fn special(number: f64) -> &'static str {
    if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

/// `scientific`: a finite number in Rust's exponent form, `-1.25e-7`.
fn floating(scientific: &str) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut out = String::from(sign);
    if !(-3..7).contains(&exponent) {
        let fraction = if fraction.is_empty() { "0" } else { fraction };
        let _ = write!(out, "{whole}.{fraction}E{exponent}");
        return out;
    }
    let digits = format!("{whole}{fraction}");
    match usize::try_from(exponent) {
        Ok(exponent) => {
            // `exponent + 1` digits before the point.
            let padded = format!("{digits:0<width$}", width = exponent + 2);
            let (before, after) = padded.split_at(exponent + 1);
            let _ = write!(out, "{before}.{after}");
        }
        Err(_) => {
            let zeros = usize::try_from(-exponent - 1).unwrap_or(0);
            let _ = write!(out, "0.{}{digits}", "0".repeat(zeros));
        }
    }
    out
}

/// `BigDecimal.toString`: plain down to 0.000001, scientific below and if plain form would pad with zeros.
pub(crate) fn decimal(number: &BigDecimal) -> String {
    let (unscaled, scale) = number.as_bigint_and_scale();
    let text = unscaled.to_string();
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let length = i128::try_from(digits.len()).unwrap_or(i128::MAX);
    let adjusted = length - 1 - i128::from(scale);
    if scale == 0 {
        return text;
    }
    let mut out = String::from(sign);
    if scale > 0 && adjusted >= -6 {
        // `adjusted >= -6` means that `scale` is at most the number of digits and 5.
        let before = length - i128::from(scale);
        if let Ok(before @ 1..) = usize::try_from(before) {
            let (whole, fraction) = digits.split_at(before);
            let _ = write!(out, "{whole}.{fraction}");
        } else {
            let zeros = usize::try_from(-before).unwrap_or(0);
            let _ = write!(out, "0.{}{digits}", "0".repeat(zeros));
        }
        return out;
    }
    let (first, rest) = digits.split_at(1);
    out.push_str(first);
    if !rest.is_empty() {
        out.push('.');
        out.push_str(rest);
    }
    if adjusted != 0 {
        let _ = write!(out, "E{adjusted:+}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{decimal, double, float};
    use bigdecimal::BigDecimal;
    use num_bigint::BigInt;

    #[test]
    fn numbers_print_as_in_java() {
        for (number, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (100.0, "100.0"),
            (0.001, "0.001"),
            (0.000_999, "9.99E-4"),
            (1_234_567.0, "1234567.0"),
            (9_999_999.5, "9999999.5"),
            (12_345_678.0, "1.2345678E7"),
            (1e10, "1.0E10"),
            (-12.5, "-12.5"),
            (0.012_5, "0.0125"),
            (f64::MAX, "1.7976931348623157E308"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(double(number), text);
        }
        assert_eq!(float(0.1), "0.1");
        assert_eq!(float(16_777_216.0), "1.6777216E7");
        for (digits, scale, text) in [
            (123, 0, "123"),
            (-123, 2, "-1.23"),
            (123, 10, "1.23E-8"),
            (123, 8, "0.00000123"),
            (123, 3, "0.123"),
            (1, -10, "1E+10"),
            (123, -1, "1.23E+3"),
            (0, 2, "0.00"),
            (0, 7, "0E-7"),
            (5, 1, "0.5"),
        ] {
            assert_eq!(decimal(&BigDecimal::new(BigInt::from(digits), scale)), text);
        }
    }
}
