//! Arithmetic of arbitrary-precision integers and decimals, with size limits.
//!
//! A decimal is `digits * 10^-scale`. `scale` is untrusted, so no function expands a decimal before it has
//! checked the length.

use crate::semantics::{Error, Result};
use bigdecimal::{BigDecimal, Signed, ToPrimitive, Zero};
use num_bigint::{BigInt, Sign};
use std::cmp::Ordering;

/// Maximum number of bits of the digits of a result of arbitrary precision: 19,728 digits.
pub const MAX_BITS: u64 = 1 << 16;

#[derive(Clone, Copy)]
pub(crate) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// `log2(10)`, rounded up.
const BITS_PER_DIGIT: f64 = 3.321_928_094_887_363;

pub(super) fn integers(operation: Operation, a: &BigInt, b: &BigInt) -> Result<BigInt> {
    let bits = a.bits().max(b.bits());
    limited(if matches!(operation, Operation::Multiply) { a.bits().saturating_add(b.bits()) } else { bits })?;
    Ok(match operation {
        Operation::Add => a + b,
        Operation::Subtract => a - b,
        Operation::Multiply => a * b,
        Operation::Divide if b.is_zero() => return Err(by_zero()),
        Operation::Divide => a / b,
    })
}

pub(super) fn decimals(operation: Operation, a: &BigDecimal, b: &BigDecimal) -> Result<BigDecimal> {
    match operation {
        Operation::Add => {
            let (a, b, scale) = aligned(a, b)?;
            Ok(BigDecimal::new(a + b, scale))
        }
        Operation::Subtract => {
            let (a, b, scale) = aligned(a, b)?;
            Ok(BigDecimal::new(a - b, scale))
        }
        Operation::Multiply => {
            let ((x, s), (y, t)) = (a.as_bigint_and_scale(), b.as_bigint_and_scale());
            limited(x.bits().saturating_add(y.bits()))?;
            let scale = s.checked_add(t).ok_or_else(too_large)?;
            Ok(BigDecimal::new(x.as_ref() * y.as_ref(), scale))
        }
        Operation::Divide => divide(a, b),
    }
}

/// The digits of both operands at the larger scale.
fn aligned(a: &BigDecimal, b: &BigDecimal) -> Result<(BigInt, BigInt, i64)> {
    let ((x, s), (y, t)) = (a.as_bigint_and_scale(), b.as_bigint_and_scale());
    let scale = s.max(t);
    Ok((shifted(&x, scale, s)?, shifted(&y, scale, t)?, scale))
}

/// `digits * 10^(to - from)`, where `to >= from`.
fn shifted(digits: &BigInt, to: i64, from: i64) -> Result<BigInt> {
    limited(digits.bits())?;
    if digits.is_zero() {
        return Ok(BigInt::zero());
    }
    let places = to.checked_sub(from).and_then(|places| u32::try_from(places).ok()).ok_or_else(too_large)?;
    limited(digits.bits() + bits_of_places(places))?;
    Ok(digits * ten().pow(places))
}

/// The exact quotient if it terminates; else with 10 digits more than the longer operand, rounded half up.
fn divide(a: &BigDecimal, b: &BigDecimal) -> Result<BigDecimal> {
    let ((x, s), (y, t)) = (a.as_bigint_and_scale(), b.as_bigint_and_scale());
    limited(x.bits().max(y.bits()))?;
    if y.is_zero() {
        return Err(by_zero());
    }
    let scale = s.checked_sub(t).ok_or_else(too_large)?;
    if x.is_zero() {
        return Ok(BigDecimal::new(BigInt::zero(), scale));
    }
    if let Some(quotient) = terminating_quotient(&x, &y, scale)? {
        return Ok(quotient);
    }
    let precision = digits(&x).max(digits(&y)) + 10;
    let mut places = precision + digits(&y) - digits(&x);
    let mut quotient = rounded_quotient(&x, &y, places)?;
    while digits(&quotient) > precision {
        places -= 1;
        quotient = rounded_quotient(&x, &y, places)?;
    }
    let result = scale.checked_add(places).ok_or_else(too_large)?;
    let most = s.max(t).max(10);
    if result > most {
        let dropped = u32::try_from(result - most).map_err(|_| too_large())?;
        limited(bits_of_places(dropped))?;
        return Ok(BigDecimal::new(div_round_half_up(&quotient, &ten().pow(dropped)), most));
    }
    Ok(BigDecimal::new(quotient, result))
}

/// `x / y` if it terminates, with the fewest digits but at least `scale` decimal places.
fn terminating_quotient(x: &BigInt, y: &BigInt, scale: i64) -> Result<Option<BigDecimal>> {
    let twos = y.trailing_zeros().unwrap_or(0);
    let mut rest: BigInt = y >> twos;
    let five = BigInt::from(5);
    let mut fives = 0_u64;
    while (&rest % &five).is_zero() {
        rest /= &five;
        fives += 1;
    }
    if !(x % &rest).is_zero() {
        return Ok(None);
    }
    let mut places = u32::try_from(twos.max(fives)).map_err(|_| too_large())?;
    limited(x.bits() + bits_of_places(places))?;
    let mut quotient: BigInt = x * ten().pow(places) / y;
    while places > 0 && (&quotient % 10_u8).is_zero() {
        quotient /= 10_u8;
        places -= 1;
    }
    let scale = scale.checked_add(places.into()).ok_or_else(too_large)?;
    Ok(Some(BigDecimal::new(quotient, scale)))
}

/// `x * 10^places / y`, rounded half up.
fn rounded_quotient(x: &BigInt, y: &BigInt, places: i64) -> Result<BigInt> {
    let power = u32::try_from(places.unsigned_abs()).map_err(|_| too_large())?;
    limited(x.bits().max(y.bits()) + bits_of_places(power))?;
    let power = ten().pow(power);
    Ok(if places >= 0 { div_round_half_up(&(x * power), y) } else { div_round_half_up(x, &(y * power)) })
}

/// `a / b`, rounded half away from zero.
fn div_round_half_up(a: &BigInt, b: &BigInt) -> BigInt {
    let (quotient, rest) = (a / b, a % b);
    if (rest.abs() << 1_u8) < b.abs() {
        quotient
    } else if (a.sign() == Sign::Minus) == (b.sign() == Sign::Minus) {
        quotient + 1
    } else {
        quotient - 1
    }
}

/// Whether two decimals are equal. `==` of the library may write out all zeros of an exponent.
pub(crate) fn equal_decimals(a: &BigDecimal, b: &BigDecimal) -> bool {
    compare(a, b) == Ordering::Equal
}

/// Compares by value. Expands at most a few digits more than the longer number has.
pub(super) fn compare(a: &BigDecimal, b: &BigDecimal) -> Ordering {
    let ((x, s), (y, t)) = (a.as_bigint_and_scale(), b.as_bigint_and_scale());
    let signs = x.sign().cmp(&y.sign());
    if signs != Ordering::Equal || x.is_zero() {
        return signs;
    }
    let larger = magnitudes(x.bits(), s).cmp_apart(magnitudes(y.bits(), t));
    let larger = larger.unwrap_or_else(|| {
        // The magnitudes overlap, so the scales differ by at most about the number of digits.
        let places = u32::try_from(s.abs_diff(t)).unwrap_or(0);
        let power = ten().pow(places);
        if s >= t {
            x.magnitude().cmp((&*y * power).magnitude())
        } else {
            (&*x * power).magnitude().cmp(y.magnitude())
        }
    });
    if x.sign() == Sign::Minus { larger.reverse() } else { larger }
}

/// Bounds of the binary logarithm of a number.
struct Bounds(f64, f64);

impl Bounds {
    fn cmp_apart(self, other: Self) -> Option<Ordering> {
        if self.1 < other.0 {
            Some(Ordering::Less)
        } else if self.0 > other.1 {
            Some(Ordering::Greater)
        } else {
            None
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "bounds are widened by more than the loss")]
fn magnitudes(bits: u64, scale: i64) -> Bounds {
    let exponent = -(scale as f64) * BITS_PER_DIGIT;
    // Relative error of a product of doubles, with a margin.
    let slack = 1.0 + exponent.abs() * 1e-14;
    Bounds(bits as f64 - 1.0 + exponent - slack, bits as f64 + exponent + slack)
}

/// Truncation to an integer.
pub(super) fn truncated(number: &BigDecimal) -> Result<BigInt> {
    let (digits, scale) = number.as_bigint_and_scale();
    if scale <= 0 {
        return shifted(&digits, 0, scale);
    }
    if magnitudes(digits.bits(), scale).1 < 0.0 {
        return Ok(BigInt::zero());
    }
    // At least as many bits as `10^scale` has.
    limited(digits.bits())?;
    let places = u32::try_from(scale).map_err(|_| too_large())?;
    limited(bits_of_places(places))?;
    Ok(digits.as_ref() / ten().pow(places))
}

/// `digits * 10^-scale`, correctly rounded for up to [`MAX_BITS`] bits; infinite on overflow.
pub(super) fn to_double(digits: &BigInt, scale: i64) -> f64 {
    if scale == 0 {
        return digits.to_f64().unwrap_or(f64::NAN);
    }
    // Bits beyond these matter only for ties.
    let dropped = digits.bits().saturating_sub(MAX_BITS);
    if dropped == 0 {
        return format!("{digits}e{}", -i128::from(scale)).parse().unwrap_or(f64::NAN);
    }
    let Bounds(low, high) = magnitudes(digits.bits(), scale);
    let sign = if digits.sign() == Sign::Minus { -1.0 } else { 1.0 };
    if low > 1024.0 {
        return sign * f64::INFINITY;
    }
    if high < -1080.0 {
        return sign * 0.0;
    }
    // Most of the many digits are fraction digits: a quotient of some 70 bits suffices.
    let Ok(places) = u32::try_from(scale) else { return sign * f64::INFINITY };
    let divisor = ten().pow(places);
    let shift = i64::try_from(divisor.bits()).unwrap_or(0) + 70 - i64::try_from(digits.bits()).unwrap_or(0);
    let Ok(shift) = i32::try_from(shift) else { return sign * f64::INFINITY };
    let quotient = if shift >= 0 { (digits << shift) / divisor } else { (digits >> -shift) / divisor };
    let halves = (2.0_f64.powi(-shift / 2), 2.0_f64.powi(-(shift - shift / 2)));
    quotient.to_f64().unwrap_or(f64::NAN) * halves.0 * halves.1
}

/// The exact value of a finite double; `None` for others.
pub(super) fn from_double(number: f64) -> Option<BigDecimal> {
    if !number.is_finite() {
        return None;
    }
    let bits = number.to_bits();
    let stored = i64::try_from((bits >> 52) & 0x7ff).ok()?;
    let fraction = bits & ((1 << 52) - 1);
    let (mantissa, exponent) =
        if stored == 0 { (fraction, -1074) } else { (fraction | 1 << 52, stored - 1075) };
    let mut mantissa = BigInt::from(mantissa);
    if number.is_sign_negative() {
        mantissa = -mantissa;
    }
    let power = u32::try_from(exponent.unsigned_abs()).ok()?;
    Some(if exponent >= 0 {
        BigDecimal::new(mantissa << power, 0)
    } else {
        // m / 2^k = m * 5^k / 10^k
        BigDecimal::new(mantissa * BigInt::from(5).pow(power), power.into())
    })
}

/// The number of decimal digits; 1 for zero.
fn digits(number: &BigInt) -> i64 {
    i64::try_from(number.magnitude().to_string().len()).unwrap_or(i64::MAX)
}

fn ten() -> BigInt {
    BigInt::from(10)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "32 bits times 3.3 fit")]
fn bits_of_places(places: u32) -> u64 {
    (f64::from(places) * BITS_PER_DIGIT) as u64 + 1
}

/// # Errors
/// More than [`MAX_BITS`] bits.
pub(crate) fn limited(bits: u64) -> Result<()> {
    if bits > MAX_BITS { Err(too_large()) } else { Ok(()) }
}

fn too_large() -> Error {
    Error::new(format!("number overflow: its digits need more than the limit of {MAX_BITS} bits"))
}

fn by_zero() -> Error {
    Error::new("/ by zero: cannot divide a number of arbitrary precision by zero")
}
