//! Arithmetic: `+ - * /`, signs and rounding, with the numeric promotions of SPARQL 1.1 §17.3 (integer,
//! decimal, float, double), and dates plus or minus durations.
//!
//! Integers have 128 bits, decimals 128 bits and 18 fraction digits; a result that does not fit, and operands
//! that do not, are the task of [`crate::wide`]. Division of integers and decimals by zero is an error
//! (`None`).

use crate::operator::{Operator, Unary};
use crate::value::{Span, Value};
use crate::wide::{double_of_decimal, is_precise};
use oxsdatatypes::{Decimal, Double, Float};

/// The digits of the decimal 1.
const UNIT: i128 = 1_000_000_000_000_000_000;
/// The square root of [`UNIT`]: the digits of a decimal with at most nine fraction digits are a multiple.
const ROOT: i128 = 1_000_000_000;
/// Maximum of a number whose product with [`UNIT`] has 128 bits.
const TIMES_UNIT_MAX: u128 = 100_000_000_000_000_000_000;

/// Two numbers of the same type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pair {
    Integer(i128, i128),
    Decimal(Decimal, Decimal),
    Float(Float, Float),
    Double(Double, Double),
}

/// Converts both numbers to the wider of their two types; `None` if one is not a number, or if both are exact
/// and one exceeds the range of that type.
pub(crate) fn promote(a: &Value<'_>, b: &Value<'_>) -> Option<Pair> {
    if let (Value::Integer(a), Value::Integer(b)) = (a, b) {
        return Some(Pair::Integer(*a, *b));
    }
    if !a.is_numeric() || !b.is_numeric() {
        return None;
    }
    if matches!(a, Value::Double(_)) || matches!(b, Value::Double(_)) {
        return Some(Pair::Double(to_double(a)?, to_double(b)?));
    }
    if matches!(a, Value::Float(_)) || matches!(b, Value::Float(_)) {
        return Some(Pair::Float(to_float(a)?, to_float(b)?));
    }
    Some(Pair::Decimal(to_decimal(a)?, to_decimal(b)?))
}

fn to_double(value: &Value<'_>) -> Option<Double> {
    Some(match value {
        Value::Integer(value) => double_of(*value),
        Value::Decimal(value) => double_of_decimal(*value).into(),
        Value::Wide(value) => value.to_double().into(),
        Value::Float(value) => (*value).into(),
        Value::Double(value) => *value,
        _ => return None,
    })
}

/// By way of a double, so that numbers that are equal as doubles are equal as floats.
fn to_float(value: &Value<'_>) -> Option<Float> {
    Some(match value {
        Value::Float(value) => *value,
        value => to_double(value)?.into(),
    })
}

/// The float that a number is in a comparison with a float. Equal numbers of any type have the same.
pub(crate) fn nearest_float(value: &Value<'_>) -> Option<Float> {
    match value {
        Value::Double(value) => Some((*value).into()),
        value => to_float(value),
    }
}

fn to_decimal(value: &Value<'_>) -> Option<Decimal> {
    Some(match value {
        Value::Integer(value) => Decimal::try_from(*value).ok()?,
        Value::Decimal(value) => *value,
        _ => return None,
    })
}

/// The nearest double.
#[expect(clippy::cast_precision_loss, reason = "rounding is what the promotion of SPARQL 1.1 §17.3 does")]
pub(crate) fn double_of(value: i128) -> Double {
    Double::from(value as f64)
}

/// The nearest float.
#[expect(clippy::cast_precision_loss, reason = "rounding is what the promotion of SPARQL 1.1 §17.3 does")]
pub(crate) fn float_of(value: i128) -> Float {
    Float::from(value as f32)
}

/// `a operator b`.
pub(crate) fn apply(operator: Operator, a: &Value<'_>, b: &Value<'_>) -> Option<Value<'static>> {
    if let (Value::Integer(a), Value::Integer(b)) = (a, b) {
        let result = match operator {
            Operator::Add => a.checked_add(*b),
            Operator::Subtract => a.checked_sub(*b),
            Operator::Multiply => a.checked_mul(*b),
            Operator::Divide => None,
        };
        if let Some(result) = result {
            return Some(Value::Integer(result));
        }
    }
    match promote(a, b) {
        Some(pair) => apply_narrow(operator, pair).or_else(|| apply_wide(operator, a, b)),
        None if a.is_numeric() && b.is_numeric() => apply_wide(operator, a, b),
        None => match operator {
            Operator::Add => add_duration(a, b),
            Operator::Subtract => subtract_duration(a, b),
            Operator::Multiply | Operator::Divide => None,
        },
    }
}

/// `a operator b` of two integers or decimals of any length; `None` for other values.
#[cold]
fn apply_wide(operator: Operator, a: &Value<'_>, b: &Value<'_>) -> Option<Value<'static>> {
    Value::of_exact(a.to_wide()?.apply(operator, &b.to_wide()?)?)
}

/// `function(value)` of an integer or decimal of any length; `None` for other values.
#[cold]
fn apply_unary_wide(function: Unary, value: &Value<'_>) -> Option<Value<'static>> {
    Value::of_exact(value.to_wide()?.apply_unary(function))
}

/// `a operator b`; `None` for division by zero, if the result does not fit, and if a quotient needs more
/// digits.
fn apply_narrow(operator: Operator, pair: Pair) -> Option<Value<'static>> {
    Some(match (operator, pair) {
        (Operator::Add, Pair::Decimal(a, b)) => Value::Decimal(a.checked_add(b)?),
        (Operator::Add, Pair::Float(a, b)) => Value::Float(a + b),
        (Operator::Add, Pair::Double(a, b)) => Value::Double(a + b),
        (Operator::Subtract, Pair::Decimal(a, b)) => Value::Decimal(a.checked_sub(b)?),
        (Operator::Subtract, Pair::Float(a, b)) => Value::Float(a - b),
        (Operator::Subtract, Pair::Double(a, b)) => Value::Double(a - b),
        (Operator::Multiply, Pair::Decimal(a, b)) => Value::Decimal(multiply(a, b)?),
        (Operator::Multiply, Pair::Float(a, b)) => Value::Float(a * b),
        (Operator::Multiply, Pair::Double(a, b)) => Value::Double(a * b),
        (Operator::Divide, Pair::Integer(a, b)) => {
            let decimals = [Decimal::try_from(a).ok()?, Decimal::try_from(b).ok()?];
            Value::Decimal(divide(decimals, [a, b])?)
        }
        // They overflow: `apply` has tried them.
        (_, Pair::Integer(..)) => return None,
        (Operator::Divide, Pair::Decimal(a, b)) => {
            let quotients = [a, b].map(|number| by_root(number).unwrap_or(i128::MAX));
            Value::Decimal(divide([a, b], quotients)?)
        }
        (Operator::Divide, Pair::Float(a, b)) => Value::Float(a / b),
        (Operator::Divide, Pair::Double(a, b)) => Value::Double(a / b),
    })
}

/// The digits of a decimal: its value times [`UNIT`].
fn digits_of(number: Decimal) -> i128 {
    i128::from_be_bytes(number.to_be_bytes())
}

/// The decimal with these digits.
fn of_digits(digits: i128) -> Decimal {
    Decimal::from_be_bytes(digits.to_be_bytes())
}

/// The digits divided by [`ROOT`], if that is exact.
fn by_root(number: Decimal) -> Option<i128> {
    let digits = digits_of(number);
    let quotient = digits / ROOT;
    (quotient * ROOT == digits).then_some(quotient)
}

/// As [`Decimal::checked_mul`], which removes the factors of ten from both numbers one after the other: 600
/// ns (2026-11-20).
fn multiply(a: Decimal, b: Decimal) -> Option<Decimal> {
    match (by_root(a), by_root(b)) {
        (Some(a), Some(b)) => a.checked_mul(b).map(of_digits),
        _ => a.checked_mul(b),
    }
}

/// The quotient of two decimals, which is that of `numbers`; `None` if it needs more digits.
///
/// The library scales both numbers as far as they allow, digit by digit, and truncates the quotient; with
/// small `numbers` one division gives the same digits.
fn divide([a, b]: [Decimal; 2], numbers: [i128; 2]) -> Option<Decimal> {
    let quotient = match numbers {
        [_, 0] => return None,
        [a, b] if a.unsigned_abs() <= TIMES_UNIT_MAX && b != i128::MAX => of_digits(a * UNIT / b),
        _ => a.checked_div(b)?,
    };
    is_precise(a, b, quotient).then_some(quotient)
}

/// The decimal rounded by `round`, which gets its integer part and the digits after it, both with its sign.
fn rounded(number: Decimal, round: impl FnOnce(i128, i128) -> i128) -> Option<Decimal> {
    let digits = digits_of(number);
    let whole = digits / UNIT;
    round(whole, digits - whole * UNIT).checked_mul(UNIT).map(of_digits)
}

fn ceil(number: Decimal) -> Option<Decimal> {
    rounded(number, |whole, fraction| whole + i128::from(fraction > 0))
}

fn floor(number: Decimal) -> Option<Decimal> {
    rounded(number, |whole, fraction| whole - i128::from(fraction < 0))
}

/// Half towards positive infinity (F&O 4.4.4).
fn round(number: Decimal) -> Option<Decimal> {
    rounded(number, |whole, fraction| {
        whole + i128::from(fraction >= UNIT / 2) - i128::from(fraction < -UNIT / 2)
    })
}

fn add_duration(a: &Value<'_>, b: &Value<'_>) -> Option<Value<'static>> {
    Some(match (a, b) {
        (Value::DateTime(a), Value::Duration(b)) => Value::DateTime(match b {
            Span::Any(b) => a.checked_add_duration(*b)?,
            Span::YearMonth(b) => a.checked_add_year_month_duration(*b)?,
            Span::DayTime(b) => a.checked_add_day_time_duration(*b)?,
        }),
        (Value::Date(a), Value::Duration(b)) => Value::Date(match b {
            Span::Any(b) => a.checked_add_duration(*b)?,
            Span::YearMonth(b) => a.checked_add_year_month_duration(*b)?,
            Span::DayTime(b) => a.checked_add_day_time_duration(*b)?,
        }),
        (Value::Time(a), Value::Duration(Span::Any(b))) => Value::Time(a.checked_add_duration(*b)?),
        (Value::Time(a), Value::Duration(Span::DayTime(b))) => {
            Value::Time(a.checked_add_day_time_duration(*b)?)
        }
        (Value::Duration(a), Value::Duration(b)) => Value::Duration(match (a, b) {
            (Span::YearMonth(a), Span::YearMonth(b)) => Span::YearMonth(a.checked_add(*b)?),
            (Span::DayTime(a), Span::DayTime(b)) => Span::DayTime(a.checked_add(*b)?),
            (a, b) => Span::Any(a.duration().checked_add(b.duration())?),
        }),
        _ => return None,
    })
}

fn subtract_duration(a: &Value<'_>, b: &Value<'_>) -> Option<Value<'static>> {
    Some(match (a, b) {
        (Value::DateTime(a), Value::Duration(b)) => Value::DateTime(match b {
            Span::Any(b) => a.checked_sub_duration(*b)?,
            Span::YearMonth(b) => a.checked_sub_year_month_duration(*b)?,
            Span::DayTime(b) => a.checked_sub_day_time_duration(*b)?,
        }),
        (Value::Date(a), Value::Duration(b)) => Value::Date(match b {
            Span::Any(b) => a.checked_sub_duration(*b)?,
            Span::YearMonth(b) => a.checked_sub_year_month_duration(*b)?,
            Span::DayTime(b) => a.checked_sub_day_time_duration(*b)?,
        }),
        (Value::Time(a), Value::Duration(Span::Any(b))) => Value::Time(a.checked_sub_duration(*b)?),
        (Value::Time(a), Value::Duration(Span::DayTime(b))) => {
            Value::Time(a.checked_sub_day_time_duration(*b)?)
        }
        (Value::Duration(a), Value::Duration(b)) => Value::Duration(match (a, b) {
            (Span::YearMonth(a), Span::YearMonth(b)) => Span::YearMonth(a.checked_sub(*b)?),
            (Span::DayTime(a), Span::DayTime(b)) => Span::DayTime(a.checked_sub(*b)?),
            (a, b) => Span::Any(a.duration().checked_sub(b.duration())?),
        }),
        (Value::DateTime(a), Value::DateTime(b)) => Value::Duration(Span::DayTime(a.checked_sub(*b)?)),
        (Value::Date(a), Value::Date(b)) => Value::Duration(Span::DayTime(a.checked_sub(*b)?)),
        (Value::Time(a), Value::Time(b)) => Value::Duration(Span::DayTime(a.checked_sub(*b)?)),
        _ => return None,
    })
}

/// `function(value)`.
pub(crate) fn apply_unary(function: Unary, value: &Value<'_>) -> Option<Value<'static>> {
    apply_unary_narrow(function, value).or_else(|| apply_unary_wide(function, value))
}

fn apply_unary_narrow(function: Unary, value: &Value<'_>) -> Option<Value<'static>> {
    Some(match (function, value) {
        (Unary::Plus, Value::Integer(value)) => Value::Integer(*value),
        (Unary::Plus, Value::Decimal(value)) => Value::Decimal(*value),
        (Unary::Plus, Value::Float(value)) => Value::Float(*value),
        (Unary::Plus, Value::Double(value)) => Value::Double(*value),
        (Unary::Plus, Value::Duration(value)) => Value::Duration(*value),
        (Unary::Minus, Value::Integer(value)) => Value::Integer(value.checked_neg()?),
        (Unary::Minus, Value::Decimal(value)) => Value::Decimal(value.checked_neg()?),
        (Unary::Minus, Value::Float(value)) => Value::Float(-*value),
        (Unary::Minus, Value::Double(value)) => Value::Double(-*value),
        (Unary::Minus, Value::Duration(value)) => Value::Duration(match value {
            Span::Any(value) => Span::Any(value.checked_neg()?),
            Span::YearMonth(value) => Span::YearMonth(value.checked_neg()?),
            Span::DayTime(value) => Span::DayTime(value.checked_neg()?),
        }),
        (Unary::Abs, Value::Integer(value)) => Value::Integer(value.checked_abs()?),
        (_, Value::Integer(value)) => Value::Integer(*value),
        (Unary::Abs, Value::Decimal(value)) => Value::Decimal(value.checked_abs()?),
        (Unary::Abs, Value::Float(value)) => Value::Float(value.abs()),
        (Unary::Abs, Value::Double(value)) => Value::Double(value.abs()),
        (Unary::Ceil, Value::Decimal(value)) => Value::Decimal(ceil(*value)?),
        (Unary::Ceil, Value::Float(value)) => Value::Float(value.ceil()),
        (Unary::Ceil, Value::Double(value)) => Value::Double(value.ceil()),
        (Unary::Floor, Value::Decimal(value)) => Value::Decimal(floor(*value)?),
        (Unary::Floor, Value::Float(value)) => Value::Float(value.floor()),
        (Unary::Floor, Value::Double(value)) => Value::Double(value.floor()),
        (Unary::Round, Value::Decimal(value)) => Value::Decimal(round(*value)?),
        (Unary::Round, Value::Float(value)) => Value::Float(value.round()),
        (Unary::Round, Value::Double(value)) => Value::Double(value.round()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluator::mix;

    /// Results of the short ways are those of the library, wherever that has one.
    #[test]
    fn decimals_are_those_of_the_library() {
        let mut state = 18;
        let mut below = |end: u64| {
            state += 1;
            mix(state) % end
        };
        let mut number = || {
            // All lengths, with and without fraction digits, also at the limits.
            let bits = i128::from(below(u64::MAX)) << 64 | i128::from(below(u64::MAX));
            let digits = bits >> below(128);
            match below(8) {
                0 => 0,
                1 => digits / UNIT * UNIT,
                2 => digits / ROOT * ROOT,
                3 => digits % UNIT / ROOT * ROOT,
                4 => (digits % 1000) * UNIT,
                5 => (digits % 1000) * UNIT / 2,
                6 => digits,
                _ => (digits % 100_000) * 10_i128.pow(u32::try_from(below(30)).unwrap()),
            }
        };
        let mut quotients = 0;
        for _ in 0..200_000 {
            let (a, b) = (of_digits(number()), of_digits(number()));
            assert_eq!(multiply(a, b), a.checked_mul(b), "{a} {b}");
            assert_eq!(ceil(a), a.checked_ceil(), "{a}");
            assert_eq!(floor(a), a.checked_floor(), "{a}");
            assert_eq!(round(a), a.checked_round(), "{a}");
            let expected = a.checked_div(b).filter(|quotient| is_precise(a, b, *quotient));
            let quotient = divide([a, b], [a, b].map(|number| by_root(number).unwrap_or(i128::MAX)));
            if expected.is_some() || digits_of(a) != 0 {
                assert_eq!(quotient, expected, "{a} {b}");
            }
            let whole = [a, b].map(|number| digits_of(number) / UNIT);
            if let [Ok(a), Ok(b)] = whole.map(Decimal::try_from) {
                let expected = a.checked_div(b).filter(|quotient| is_precise(a, b, *quotient));
                assert_eq!(divide([a, b], whole), expected, "{a} {b}");
            }
            quotients += usize::from(quotient.is_some());
        }
        assert!(quotients > 20_000, "{quotients}");
    }
}
