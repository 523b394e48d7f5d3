//! Arithmetic on the eight numeric types, with promotion.
//!
//! # Shape
//! Two numbers are promoted to their *common class*: the wider of both widths (8, 16, 32, 64 bits,
//! arbitrary), floating point if one of them is. A result that does not fit is computed in the next wider
//! class: byte, short, int, long; float, double. A long overflow is an error, a double overflow is infinite,
//! arbitrary precision has a limit.
//! # Invariants
//! No result has more than [`MAX_BITS`] bits of digits; a larger result is an error.
//! # Cost
//! Constant up to 64 bits; beyond that at most quadratic in the number of digits.
//! # Source
//! TinkerPop 3.8, "Numeric Type Promotion". Different: division of a decimal by zero is an error, not `0`.

pub(crate) mod big;
mod convert;
mod fold;
mod parse;

pub use big::MAX_BITS;
pub use convert::as_number;
pub use fold::{Extreme, Mean, Sum, max, min};

pub(crate) use big::limited;
pub(crate) use fold::times;

use super::{Error, Result};
use crate::Value;
use big::Operation;
use bigdecimal::BigDecimal;
use num_bigint::BigInt;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

/// `a + b`; null if `a` is null, `a` if `b` is.
///
/// # Errors
/// An operand is not a number, or the sum exceeds a long or [`MAX_BITS`].
pub fn add(a: &Value, b: &Value) -> Result<Value> {
    match (a, b) {
        (Value::Int(x), Value::Int(y)) if x.checked_add(*y).is_some() => Ok(Value::Int(x.wrapping_add(*y))),
        (Value::Double(x), Value::Double(y)) => Ok(Value::Double(x + y)),
        _ => arithmetic(Operation::Add, Precision::Natural, a, b),
    }
}

/// `a - b`; null if `a` is null, `a` if `b` is.
///
/// # Errors
/// As for [`add`].
pub fn subtract(a: &Value, b: &Value) -> Result<Value> {
    arithmetic(Operation::Subtract, Precision::Natural, a, b)
}

/// `a * b`; null if `a` is null, `a` if `b` is.
///
/// # Errors
/// As for [`add`].
pub fn multiply(a: &Value, b: &Value) -> Result<Value> {
    arithmetic(Operation::Multiply, Precision::Natural, a, b)
}

/// `a / b`, truncated if both are integers; null if `a` is null, `a` if `b` is.
///
/// # Errors
/// As for [`add`], or `b` is zero and neither operand is a float or a double.
pub fn divide(a: &Value, b: &Value) -> Result<Value> {
    arithmetic(Operation::Divide, Precision::Natural, a, b)
}

/// `a / b` in floating point.
///
/// # Errors
/// As for [`divide`].
pub fn divide_exactly(a: &Value, b: &Value) -> Result<Value> {
    arithmetic(Operation::Divide, Precision::Floating, a, b)
}

/// A count as a value: a long, or an integer of arbitrary precision beyond 64 bits. Never rounded.
#[must_use]
pub fn counted(count: u128) -> Value {
    i64::try_from(count).map_or_else(|_| Value::BigInteger(Arc::new(count.into())), Value::Long)
}

/// Whether the value is a float or double `NaN`.
#[must_use]
pub fn is_nan(value: &Value) -> bool {
    match value {
        Value::Float(number) => number.is_nan(),
        Value::Double(number) => number.is_nan(),
        _ => false,
    }
}

/// Conversion to a double, rounded, infinite on overflow; `None` if not a number.
#[must_use]
pub fn to_double(value: &Value) -> Option<f64> {
    Some(match value {
        Value::Float(number) => f64::from(*number),
        Value::Double(number) => *number,
        Value::BigInteger(number) => big::to_double(number, 0),
        Value::BigDecimal(number) => {
            let (digits, scale) = number.as_bigint_and_scale();
            big::to_double(&digits, scale)
        }
        _ => rounded(value.as_integer()?),
    })
}

/// Compares two numbers in their common class, as `P.eq` and `P.lt` do; `None` if one is `NaN` or not a
/// number.
///
/// Not transitive: `16777216i` and `16777217i` both equal `16777216f`.
#[must_use]
pub fn compare_promoted(a: &Value, b: &Value) -> Option<Ordering> {
    let (bits, floating) = common(Class::of(a)?, Class::of(b)?, Precision::Natural);
    if !floating {
        return compare_exactly(a, b);
    }
    match bits {
        ..=32 => to_float(a)?.partial_cmp(&to_float(b)?),
        33..=64 => to_double(a)?.partial_cmp(&to_double(b)?),
        _ => match (decimal(a), decimal(b)) {
            (Some(a), Some(b)) => Some(big::compare(&a, &b)),
            // An operand is infinite or NaN.
            _ => infinite(a).partial_cmp(&infinite(b)),
        },
    }
}

/// Compares two numbers by value, without rounding; `NaN` is the maximum and equals itself. `None` if an
/// operand is not a number. This is the total order of `order()`.
#[must_use]
pub fn compare_exactly(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Double(a), Value::Double(b)) => return Some(compare_doubles(*a, *b)),
        (Value::BigInteger(a), Value::BigInteger(b)) => return Some(a.cmp(b)),
        _ => {}
    }
    if let (Some(a), Some(b)) = (small(a), small(b)) {
        return Some(a.cmp(&b));
    }
    Class::of(a)?;
    Class::of(b)?;
    let (x, y) = (floating(a), floating(b));
    if let (Some(x), Some(y)) = (x, y) {
        return Some(compare_doubles(x, y));
    }
    if x.is_some_and(|x| !x.is_finite()) || y.is_some_and(|y| !y.is_finite()) {
        return Some(compare_doubles(x.unwrap_or(0.0), y.unwrap_or(0.0)));
    }
    let (a, b) = (exact(a)?, exact(b)?);
    Some(big::compare(&a, &b))
}

/// `NaN` last and equal to itself, `-0.0` equal to `0.0`.
fn compare_doubles(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// The infinity for comparison with finite numbers; 0 for finite values.
fn infinite(value: &Value) -> f64 {
    match floating(value) {
        Some(number) if !number.is_finite() => number,
        _ => 0.0,
    }
}

fn floating(value: &Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some((*number).into()),
        Value::Double(number) => Some(*number),
        _ => None,
    }
}

/// Integers of at most 64 bits.
fn small(value: &Value) -> Option<i64> {
    match value {
        Value::BigInteger(_) => None,
        _ => value.as_integer(),
    }
}

/// Numeric class: width and kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    Integer(u16),
    Floating(u16),
}

/// The nominal width of arbitrary precision in bits, for comparison with other widths.
const ARBITRARY: u16 = 128;

impl Class {
    fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Byte(_) => Self::Integer(8),
            Value::Short(_) => Self::Integer(16),
            Value::Int(_) => Self::Integer(32),
            Value::Long(_) => Self::Integer(64),
            Value::BigInteger(_) => Self::Integer(ARBITRARY),
            Value::Float(_) => Self::Floating(32),
            Value::Double(_) => Self::Floating(64),
            Value::BigDecimal(_) => Self::Floating(ARBITRARY),
            _ => return None,
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Precision {
    Natural,
    Floating,
}

/// The width of the common class, and whether it is floating point.
fn common(a: Class, b: Class, precision: Precision) -> (u16, bool) {
    let width = |class| match class {
        Class::Integer(bits) | Class::Floating(bits) => bits,
    };
    let floating = |class| matches!(class, Class::Floating(_));
    (width(a).max(width(b)), precision == Precision::Floating || floating(a) || floating(b))
}

fn arithmetic(operation: Operation, precision: Precision, a: &Value, b: &Value) -> Result<Value> {
    if matches!(a, Value::Null) || matches!(b, Value::Null) {
        return Ok(a.clone());
    }
    let (bits, floating) = common(class(a)?, class(b)?, precision);
    match (bits, floating) {
        (..=64, false) => match (small(a), small(b)) {
            (Some(a), Some(b)) => integers(operation, bits, a.into(), b.into()),
            _ => Err(not_a_number(a)),
        },
        (_, false) => match (whole(a), whole(b)) {
            (Some(a), Some(b)) => {
                big::integers(operation, &a, &b).map(|number| Value::BigInteger(Arc::new(number)))
            }
            _ => Err(not_a_number(a)),
        },
        (..=32, true) => {
            let (x, y) = (to_float(a).unwrap_or(f32::NAN), to_float(b).unwrap_or(f32::NAN));
            let result = match operation {
                Operation::Add => x + y,
                Operation::Subtract => x - y,
                Operation::Multiply => x * y,
                Operation::Divide => x / y,
            };
            if result.is_infinite() { Ok(doubles(operation, a, b)) } else { Ok(Value::Float(result)) }
        }
        (..=64, true) => Ok(doubles(operation, a, b)),
        (_, true) => match (decimal(a), decimal(b)) {
            (Some(a), Some(b)) => {
                big::decimals(operation, &a, &b).map(|number| Value::BigDecimal(Arc::new(number)))
            }
            _ => Err(Error::new("cannot compute with a decimal and NaN or infinity")),
        },
    }
}

fn integers(operation: Operation, bits: u16, a: i128, b: i128) -> Result<Value> {
    // Two 64-bit operands: no result exceeds 127 bits.
    let result = match operation {
        Operation::Add => a + b,
        Operation::Subtract => a - b,
        Operation::Multiply => a * b,
        Operation::Divide if b == 0 => return Err(Error::new("/ by zero: cannot divide an integer by zero")),
        Operation::Divide => a / b,
    };
    if let (..=8, Ok(number)) = (bits, i8::try_from(result)) {
        return Ok(Value::Byte(number));
    }
    if let (..=16, Ok(number)) = (bits, i16::try_from(result)) {
        return Ok(Value::Short(number));
    }
    if let (..=32, Ok(number)) = (bits, i32::try_from(result)) {
        return Ok(Value::Int(number));
    }
    i64::try_from(result).map(Value::Long).map_err(|_| {
        Error::new(
            "long overflow: the result does not fit 64 bits (asNumber(GType.BIGINT) gives wider integers)",
        )
    })
}

fn doubles(operation: Operation, a: &Value, b: &Value) -> Value {
    let (a, b) = (to_double(a).unwrap_or(f64::NAN), to_double(b).unwrap_or(f64::NAN));
    Value::Double(match operation {
        Operation::Add => a + b,
        Operation::Subtract => a - b,
        Operation::Multiply => a * b,
        Operation::Divide => a / b,
    })
}

/// Conversion to a class at least as wide; unchanged if that class cannot hold the value.
fn promoted(value: &Value, (bits, floating): (u16, bool)) -> Value {
    let result = match (bits, floating) {
        (8, false) => return value.clone(),
        (16, false) => value.as_integer().and_then(|n| i16::try_from(n).ok()).map(Value::Short),
        (32, false) => value.as_integer().and_then(|n| i32::try_from(n).ok()).map(Value::Int),
        (64, false) => value.as_integer().map(Value::Long),
        (_, false) => whole(value).map(|n| Value::BigInteger(Arc::new(n.into_owned()))),
        (..=32, true) => to_float(value).map(Value::Float),
        (..=64, true) => to_double(value).map(Value::Double),
        (_, true) => decimal(value).map(|n| Value::BigDecimal(Arc::new(n.into_owned()))),
    };
    result.unwrap_or_else(|| value.clone())
}

fn class(value: &Value) -> Result<Class> {
    Class::of(value).ok_or_else(|| not_a_number(value))
}

fn not_a_number(value: &Value) -> Error {
    Error::new(format!("cannot compute with a value that is no number, encountered {}", value.type_name()))
}

/// The value of an integer of any width.
fn whole(value: &Value) -> Option<Cow<'_, BigInt>> {
    match value {
        Value::BigInteger(number) => Some(Cow::Borrowed(number)),
        _ => value.as_integer().map(|number| Cow::Owned(number.into())),
    }
}

/// Conversion to a decimal; for a float or double, the shortest digits that round-trip. `None` for `NaN` and
/// infinity.
fn decimal(value: &Value) -> Option<Cow<'_, BigDecimal>> {
    match value {
        Value::BigDecimal(number) => Some(Cow::Borrowed(number)),
        Value::Float(number) if number.is_finite() => {
            super::java::float(*number).parse().ok().map(Cow::Owned)
        }
        Value::Double(number) if number.is_finite() => {
            super::java::double(*number).parse().ok().map(Cow::Owned)
        }
        Value::Float(_) | Value::Double(_) => None,
        _ => whole(value).map(|number| Cow::Owned(BigDecimal::new(number.into_owned(), 0))),
    }
}

/// Exact conversion to a decimal. `None` for `NaN` and infinity.
fn exact(value: &Value) -> Option<Cow<'_, BigDecimal>> {
    match floating(value) {
        Some(number) => big::from_double(number).map(Cow::Owned),
        None => decimal(value),
    }
}

fn to_float(value: &Value) -> Option<f32> {
    match value {
        Value::Float(number) => Some(*number),
        #[expect(clippy::cast_precision_loss, reason = "Java rounds here as well")]
        Value::Byte(_) | Value::Short(_) | Value::Int(_) | Value::Long(_) => {
            value.as_integer().map(|number| number as f32)
        }
        _ => to_double(value).map(narrowed),
    }
}

#[expect(clippy::cast_precision_loss, reason = "Java rounds here as well")]
fn rounded(number: i64) -> f64 {
    number as f64
}

#[expect(clippy::cast_possible_truncation, reason = "rounding is wanted")]
fn narrowed(number: f64) -> f32 {
    number as f32
}
