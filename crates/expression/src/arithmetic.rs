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
        (Operator::Multiply, Pair::Decimal(a, b)) => Value::Decimal(a.checked_mul(b)?),
        (Operator::Multiply, Pair::Float(a, b)) => Value::Float(a * b),
        (Operator::Multiply, Pair::Double(a, b)) => Value::Double(a * b),
        (Operator::Divide, Pair::Integer(a, b)) => {
            Value::Decimal(divide(Decimal::try_from(a).ok()?, Decimal::try_from(b).ok()?)?)
        }
        // They overflow: `apply` has tried them.
        (_, Pair::Integer(..)) => return None,
        (Operator::Divide, Pair::Decimal(a, b)) => Value::Decimal(divide(a, b)?),
        (Operator::Divide, Pair::Float(a, b)) => Value::Float(a / b),
        (Operator::Divide, Pair::Double(a, b)) => Value::Double(a / b),
    })
}

fn divide(a: Decimal, b: Decimal) -> Option<Decimal> {
    let quotient = a.checked_div(b)?;
    is_precise(a, b, quotient).then_some(quotient)
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
        (Unary::Ceil, Value::Decimal(value)) => Value::Decimal(value.checked_ceil()?),
        (Unary::Ceil, Value::Float(value)) => Value::Float(value.ceil()),
        (Unary::Ceil, Value::Double(value)) => Value::Double(value.ceil()),
        (Unary::Floor, Value::Decimal(value)) => Value::Decimal(value.checked_floor()?),
        (Unary::Floor, Value::Float(value)) => Value::Float(value.floor()),
        (Unary::Floor, Value::Double(value)) => Value::Double(value.floor()),
        (Unary::Round, Value::Decimal(value)) => Value::Decimal(value.checked_round()?),
        (Unary::Round, Value::Float(value)) => Value::Float(value.round()),
        (Unary::Round, Value::Double(value)) => Value::Double(value.round()),
        _ => return None,
    })
}
