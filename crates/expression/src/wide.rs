//! Wide numbers: integers beyond 128 bits, and decimals beyond the 128 bits and 18 fraction digits of
//! [`oxsdatatypes::Decimal`].
//!
//! # Shape
//! A number is `digits / 10^scale`. Narrow numbers have their own arithmetic. The functions here are the
//! fallback: they compute a result that does not fit, or whose operands do not fit. [`Wide::narrowed`] is the
//! normal form of a result: a narrow number where it fits.
//! # Invariants
//! Of a number in normal form: it does not fit a narrow type of its kind, so it is not zero; `scale` is
//! minimal (the last fraction digit is not 0); `digits` has at most [`DIGITS_MAX`] digits, and `scale` is at
//! most [`DIGITS_MAX`].
//! # Precision
//! Sums, differences and products are exact. A quotient is cut (not rounded) after as many fraction digits as
//! the operands have, at least 18; a quotient below 10^-9 after 18 significant digits if that is later.
//! Fraction digits beyond the limit of digits are cut; an integer part beyond it is an error (F&O 4.2).
//! # Cost
//! Below a microsecond for 40 digits; quadratic in the number of digits, below a millisecond at the limit.

use crate::operator::{Operator, Unary};
use num_bigint::{BigInt, Sign};
use oxsdatatypes::Decimal;
use std::cmp::Ordering;
use std::fmt::Write;

/// Maximum number of digits of a number, before and after the point together. A literal with more is not a
/// number.
pub const DIGITS_MAX: usize = 10_000;

/// Fraction digits of a narrow decimal, and precision of a quotient.
const NARROW_SCALE: u32 = 18;
const NARROW_UNIT: i128 = 1_000_000_000_000_000_000;
/// Quotients below 10^-`SMALL` have more fraction digits.
const SMALL: u32 = 9;

/// Whether a number is an `xsd:integer` or an `xsd:decimal`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Integer,
    Decimal,
}

/// An integer or a decimal of any length up to [`DIGITS_MAX`]; see the header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wide {
    digits: BigInt,
    scale: u32,
    kind: Kind,
}

/// An integer or a decimal in normal form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Exact {
    Integer(i128),
    Decimal(Decimal),
    Wide(Wide),
}

impl Wide {
    /// The number in a lexical form of `xsd:integer` or `xsd:decimal`; `None` if the form is invalid or has
    /// too many digits. Takes linear time beyond [`DIGITS_MAX`].
    pub(crate) fn parse(lexical: &str, kind: Kind) -> Option<Self> {
        let (negative, unsigned) = match lexical.as_bytes().first()? {
            b'-' => (true, &lexical[1..]),
            b'+' => (false, &lexical[1..]),
            _ => (false, lexical),
        };
        let (whole, fraction) = match (unsigned.split_once('.'), kind) {
            (Some(parts), Kind::Decimal) => parts,
            (Some(_), Kind::Integer) => return None,
            (None, _) => (unsigned, ""),
        };
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        if whole.len() + fraction.len() > DIGITS_MAX {
            return None;
        }
        let digits: BigInt = match whole.len() + fraction.len() {
            0 => BigInt::ZERO,
            _ => format!("{whole}{fraction}").parse().ok()?,
        };
        let scale = u32::try_from(fraction.len()).ok()?;
        Some(Self { digits: if negative { -digits } else { digits }, scale, kind })
    }

    /// The decimal of a double: exact if it is whole, otherwise the shortest that rounds to the double.
    /// `None` for infinity and NaN.
    pub(crate) fn of_double(value: f64) -> Option<Self> {
        if !value.is_finite() {
            return None;
        }
        if value.fract() != 0.0 {
            // Without an exponent; the least double has 324 fraction digits.
            return Self::parse(&value.to_string(), Kind::Decimal);
        }
        Some(Self { digits: whole_double(value), scale: 0, kind: Kind::Decimal })
    }

    /// The number in normal form; `None` if its integer part has too many digits.
    pub(crate) fn narrowed(self) -> Option<Exact> {
        let Self { mut digits, mut scale, kind } = self;
        if digits.sign() == Sign::NoSign {
            scale = 0;
        }
        if scale > 0 && digits.magnitude().trailing_zeros().unwrap_or(1) > 0 {
            // Divisible by 2, so perhaps by 10.
            let text = digits.magnitude().to_string();
            let zeros = text.len() - text.trim_end_matches('0').len();
            let cut = u32::try_from(zeros).unwrap_or(scale).min(scale);
            if cut > 0 {
                digits /= ten_to(cut);
                scale -= cut;
            }
        }
        let count = digit_count(&digits);
        let limit = u32::try_from(DIGITS_MAX).unwrap_or(u32::MAX);
        let cut = u32::try_from(count).ok()?.max(scale).saturating_sub(limit);
        if cut > 0 {
            if cut > scale {
                return None;
            }
            // Truncation may leave zeros at the end.
            return Self { digits: digits / ten_to(cut), scale: scale - cut, kind }.narrowed();
        }
        if kind == Kind::Integer
            && let Ok(narrow) = i128::try_from(&digits)
        {
            return Some(Exact::Integer(narrow));
        }
        if kind == Kind::Decimal
            && scale <= NARROW_SCALE
            && let Ok(narrow) = i128::try_from(&digits)
            && let Ok(narrow) = Decimal::new(narrow, scale)
        {
            return Some(Exact::Decimal(narrow));
        }
        Some(Exact::Wide(Self { digits, scale, kind }))
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.digits.sign() == num_bigint::Sign::Minus
    }

    /// The same number as a decimal.
    pub(crate) fn as_decimal(&self) -> Self {
        Self { kind: Kind::Decimal, ..self.clone() }
    }

    /// The whole part, rounded towards zero.
    pub(crate) fn truncated(&self) -> Self {
        let digits = if self.scale == 0 { self.digits.clone() } else { &self.digits / ten_to(self.scale) };
        Self { digits, scale: 0, kind: Kind::Integer }
    }

    /// The nearest double; infinite if it is too large.
    pub(crate) fn to_double(&self) -> f64 {
        self.exponent_form().parse().unwrap_or(f64::NAN)
    }

    /// The nearest float; infinite if it is too large.
    pub(crate) fn to_float(&self) -> f32 {
        self.exponent_form().parse().unwrap_or(f32::NAN)
    }

    fn exponent_form(&self) -> String {
        format!("{}e-{}", self.digits, self.scale)
    }

    /// Appends the canonical form: no point if the number is whole, no zeros at the ends.
    pub(crate) fn write_lexical(&self, out: &mut String) {
        let digits = self.digits.magnitude().to_string();
        if self.digits.sign() == Sign::Minus {
            out.push('-');
        }
        let scale = self.scale as usize;
        let (whole, fraction) = digits.split_at(digits.len().saturating_sub(scale));
        out.push_str(if whole.is_empty() { "0" } else { whole });
        if scale > 0 {
            // Writing to a `String` cannot fail.
            let _ = write!(out, ".{fraction:0>scale$}");
        }
    }

    /// Memory held, in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        size_of::<Self>() + usize::try_from(self.digits.bits() / 8).unwrap_or(usize::MAX)
    }

    /// Units of work of an operation on this number; see [`crate::work`].
    pub(crate) fn work(&self) -> usize {
        crate::work::of_bits(self.digits.bits())
    }

    /// `self operator other`; `None` for division by zero.
    pub(crate) fn apply(&self, operator: Operator, other: &Self) -> Option<Self> {
        let kind = match (self.kind, other.kind) {
            (Kind::Integer, Kind::Integer) if operator != Operator::Divide => Kind::Integer,
            _ => Kind::Decimal,
        };
        let (digits, scale) = match operator {
            Operator::Add => {
                let (a, b, scale) = self.aligned(other);
                (a + b, scale)
            }
            Operator::Subtract => {
                let (a, b, scale) = self.aligned(other);
                (a - b, scale)
            }
            Operator::Multiply => (&self.digits * &other.digits, self.scale + other.scale),
            Operator::Divide => self.divided(other)?,
        };
        Some(Self { digits, scale, kind })
    }

    /// `function(self)`.
    pub(crate) fn apply_unary(self, function: Unary) -> Self {
        let kind = self.kind;
        let whole = |digits| Self { digits, scale: 0, kind };
        match function {
            Unary::Plus => self,
            Unary::Minus => Self { digits: -self.digits, ..self },
            Unary::Abs => Self { digits: self.digits.magnitude().clone().into(), ..self },
            Unary::Floor => whole(self.floor()),
            Unary::Ceil => whole(-Self { digits: -self.digits, ..self }.floor()),
            // Half towards positive infinity (F&O 4.4.4).
            Unary::Round => {
                let (digits, half, scale) = self.aligned(&Self { digits: 5.into(), scale: 1, kind });
                whole(Self { digits: digits + half, scale, kind }.floor())
            }
        }
    }

    /// The digits of two numbers at the same scale, and the scale.
    fn aligned(&self, other: &Self) -> (BigInt, BigInt, u32) {
        let scale = self.scale.max(other.scale);
        let at = |number: &Self| match scale - number.scale {
            0 => number.digits.clone(),
            places => &number.digits * ten_to(places),
        };
        (at(self), at(other), scale)
    }

    fn divided(&self, other: &Self) -> Option<(BigInt, u32)> {
        if other.digits.sign() == Sign::NoSign {
            return None;
        }
        // a / 10^s / (b / 10^t) = a * 10^(t - s) / b
        let at = |scale: u32| {
            let power = ten_to(scale + other.scale - self.scale);
            &self.digits * power / &other.digits
        };
        let least = NARROW_SCALE.max(self.scale).max(other.scale);
        let quotient = at(least);
        if *quotient.magnitude() >= ten_to(least - SMALL).into_parts().1 {
            return Some((quotient, least));
        }
        // The quotient is at least 10^magnitude.
        let magnitude = |number: &Self| digit_count(&number.digits).cast_signed() - number.scale as isize;
        let magnitude = magnitude(self) - magnitude(other) - 1;
        let significant = u32::try_from(NARROW_SCALE as isize - 1 - magnitude).unwrap_or(0);
        let limit = u32::try_from(DIGITS_MAX).unwrap_or(u32::MAX);
        let scale = least.max(significant.min(limit));
        let quotient = at(scale);
        // That bound may be one too low.
        let excess = scale > least && digit_count(&quotient) > NARROW_SCALE as usize;
        Some(if excess { (quotient / 10, scale - 1) } else { (quotient, scale) })
    }

    /// `floor(self)` as an integer.
    fn floor(&self) -> BigInt {
        let unit = ten_to(self.scale);
        let whole = &self.digits / &unit;
        match self.digits.sign() {
            Sign::Minus if &whole * &unit != self.digits => whole - 1,
            _ => whole,
        }
    }
}

/// The nearest double. (The conversion of the library rounds the digits first, and then the quotient.)
pub(crate) fn double_of_decimal(value: Decimal) -> f64 {
    // Integers up to 2^53 and powers of ten up to 10^22 are doubles, so one division rounds once.
    const EXACT_MAX: i128 = 1 << 53;
    let digits = i128::from_be_bytes(value.to_be_bytes());
    let (whole, fraction) = (digits / NARROW_UNIT, digits % NARROW_UNIT);
    let Ok(mut fraction) = i64::try_from(fraction) else { return Wide::from(value).to_double() };
    #[expect(clippy::cast_precision_loss, reason = "rounds to the nearest")]
    if fraction == 0 {
        return whole as f64;
    }
    let mut unit: i64 = 1_000_000_000_000_000_000;
    while fraction % 10 == 0 {
        fraction /= 10;
        unit /= 10;
    }
    if whole.abs() < EXACT_MAX {
        let digits = whole * i128::from(unit) + i128::from(fraction);
        #[expect(clippy::cast_precision_loss, reason = "both are exact")]
        if digits.abs() <= EXACT_MAX {
            return digits as f64 / unit as f64;
        }
    }
    Wide::from(value).to_double()
}

impl From<i128> for Wide {
    fn from(value: i128) -> Self {
        Self { digits: value.into(), scale: 0, kind: Kind::Integer }
    }
}

impl From<Decimal> for Wide {
    fn from(value: Decimal) -> Self {
        let digits = i128::from_be_bytes(value.to_be_bytes());
        let (whole, fraction) = (digits / NARROW_UNIT, digits % NARROW_UNIT);
        match fraction {
            0 => Self { digits: whole.into(), scale: 0, kind: Kind::Decimal },
            // Not the minimal scale: only for computations.
            _ => Self { digits: digits.into(), scale: NARROW_SCALE, kind: Kind::Decimal },
        }
    }
}

impl Ord for Wide {
    fn cmp(&self, other: &Self) -> Ordering {
        self.digits.sign().cmp(&other.digits.sign()).then_with(|| {
            if self.scale == other.scale {
                return self.digits.cmp(&other.digits);
            }
            let (a, b, _) = self.aligned(other);
            a.cmp(&b)
        })
    }
}

/// A number for many comparisons: each takes time linear in the number of digits, whatever the scales are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OrderedDigits {
    sign: Sign,
    /// The number is `0.digits * 10^exponent`.
    exponent: i64,
    /// Decimal digits; neither the first nor the last is 0.
    digits: Box<str>,
}

impl OrderedDigits {
    pub(crate) fn new(number: &Wide) -> Self {
        let sign = number.digits.sign();
        if sign == Sign::NoSign {
            return Self { sign, exponent: 0, digits: "".into() };
        }
        let digits = number.digits.magnitude().to_string();
        // At most `DIGITS_MAX`, or the digits of a double.
        let exponent = i64::try_from(digits.len()).unwrap_or(i64::MAX) - i64::from(number.scale);
        Self { sign, exponent, digits: digits.trim_end_matches('0').into() }
    }

    /// Memory held besides the value itself, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.digits.len()
    }
}

impl Ord for OrderedDigits {
    fn cmp(&self, other: &Self) -> Ordering {
        self.sign.cmp(&other.sign).then_with(|| {
            let order = self.exponent.cmp(&other.exponent).then_with(|| self.digits.cmp(&other.digits));
            if self.sign == Sign::Minus { order.reverse() } else { order }
        })
    }
}

impl PartialOrd for OrderedDigits {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialOrd for Wide {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Whether a narrow quotient has the precision of the header, so that no wide one is needed.
pub(crate) fn is_precise(a: Decimal, b: Decimal, quotient: Decimal) -> bool {
    const LEAST: u128 = NARROW_UNIT.unsigned_abs() / 10_u128.pow(SMALL);
    i128::from_be_bytes(quotient.to_be_bytes()).unsigned_abs() >= LEAST || quotient.checked_mul(b) == Some(a)
}

/// The number of decimal digits; 1 for zero.
fn digit_count(number: &BigInt) -> usize {
    let bits = number.bits();
    // log10(2) from below and above: most lengths follow from the number of bits.
    let (low, high) = (bits.saturating_sub(1) * 30_102 / 100_000, bits * 30_103 / 100_000);
    match low == high {
        true => usize::try_from(low + 1).unwrap_or(usize::MAX),
        false => number.magnitude().to_string().len(),
    }
}

fn ten_to(power: u32) -> BigInt {
    BigInt::from(10).pow(power)
}

/// The value of a finite whole double.
fn whole_double(value: f64) -> BigInt {
    const FRACTION_BITS: i64 = 52;
    let bits = value.to_bits();
    let exponent = i64::try_from(bits >> FRACTION_BITS & 0x7FF).unwrap_or(0) - 1023 - FRACTION_BITS;
    let mantissa = bits & ((1 << FRACTION_BITS) - 1) | 1 << FRACTION_BITS;
    let magnitude = match (value == 0.0, exponent) {
        (true, _) => BigInt::ZERO,
        (_, 0..) => BigInt::from(mantissa) << exponent,
        // Whole: the bits that the shift drops are 0.
        _ => BigInt::from(mantissa) >> -exponent,
    };
    if value.is_sign_negative() { -magnitude } else { magnitude }
}
