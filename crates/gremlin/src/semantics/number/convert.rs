//! `asNumber()`: conversion of values to numeric types.

use super::{big, decimal, floating, is_nan, narrowed, parse, to_double, whole};
use crate::semantics::{Error, Result};
use crate::{Extended, GType, Value};
use bigdecimal::{BigDecimal, ToPrimitive};
use num_bigint::BigInt;
use std::sync::Arc;

/// Conversion to the given type, or to the natural one: strings are parsed, dates become milliseconds since
/// 1970, null stays null. Conversion to an integer drops the fraction.
///
/// # Errors
/// `wanted` is not a numeric type, the value is not convertible, or the number does not fit the type.
pub fn as_number(value: &Value, wanted: Option<GType>) -> Result<Value> {
    if let Some(wanted) = wanted.filter(|wanted| target(*wanted).is_none()) {
        return Err(if wanted == GType::Number {
            Error::new("asNumber() requires the type of a number, got NUMBER, which is any of them")
        } else {
            Error::new(format!("asNumber() requires a numeric type token, got {}", wanted.name()))
        });
    }
    let number = match value {
        Value::Null => return Ok(Value::Null),
        Value::String(text) => parse::number(text)?,
        Value::DateTime(date) => Value::Long(crate::semantics::compare::milliseconds(date)),
        Value::Extended(extended) => match **extended {
            Extended::Date(milliseconds) | Extended::Timestamp(milliseconds) => Value::Long(milliseconds),
            _ => return Err(no_number(value)),
        },
        _ if value.is_number() => value.clone(),
        _ => return Err(no_number(value)),
    };
    match wanted {
        Some(wanted) => cast(&number, wanted),
        None => Ok(number),
    }
}

fn no_number(value: &Value) -> Error {
    let name = match value {
        Value::List(_) => "ArrayList",
        _ => value.type_name(),
    };
    Error::new(format!("Can't parse type {name} as number."))
}

/// The name of the type in messages.
fn target(wanted: GType) -> Option<&'static str> {
    Some(match wanted {
        GType::Byte => "Byte",
        GType::Short => "Short",
        GType::Int => "Integer",
        GType::Long => "Long",
        GType::Float => "Float",
        GType::Double => "Double",
        GType::BigInt => "BigInteger",
        GType::BigDecimal => "BigDecimal",
        _ => return None,
    })
}

/// `number` as a number of the type `wanted`.
fn cast(number: &Value, wanted: GType) -> Result<Value> {
    let name = target(wanted).unwrap_or("Number");
    let result = match wanted {
        GType::Byte => integer(number, name)?.and_then(|n| i8::try_from(n).ok()).map(Value::Byte),
        GType::Short => integer(number, name)?.and_then(|n| i16::try_from(n).ok()).map(Value::Short),
        GType::Int => integer(number, name)?.and_then(|n| i32::try_from(n).ok()).map(Value::Int),
        GType::Long => integer(number, name)?.map(Value::Long),
        GType::Float => match (floating(number), to_double(number)) {
            (Some(special), _) if !special.is_finite() => Some(Value::Float(narrowed(special))),
            (_, Some(double)) if double.abs() <= f64::from(f32::MAX) => Some(Value::Float(narrowed(double))),
            _ => None,
        },
        GType::Double => match (number, to_double(number)) {
            // By printed digits: 3.14f becomes 3.14.
            (Value::Float(float), _) if float.is_finite() => {
                crate::semantics::java::float(*float).parse().ok().map(Value::Double)
            }
            (Value::Float(_) | Value::Double(_), Some(double)) => Some(Value::Double(double)),
            (_, Some(double)) if double.is_finite() => Some(Value::Double(double)),
            _ => None,
        },
        GType::BigInt => Some(Value::BigInteger(Arc::new(big_integer(number, name)?))),
        GType::BigDecimal => Some(Value::BigDecimal(Arc::new(big_decimal(number, name)?))),
        _ => None,
    };
    result.ok_or_else(|| {
        Error::new(format!("Can't convert number of type {} to {name} due to overflow.", number.type_name()))
    })
}

/// An integer of 64 bits; `None` if it does not fit.
fn integer(number: &Value, name: &str) -> Result<Option<i64>> {
    finite(number, name)?;
    Ok(match number {
        Value::Float(_) | Value::Double(_) => {
            // In Java 2^63 passes the range check and saturates to the largest long; here it is out of range.
            let double = floating(number).unwrap_or(f64::NAN).trunc();
            double.to_i64()
        }
        Value::BigDecimal(number) => match big::truncated(number) {
            Ok(number) => number.to_i64(),
            Err(_) => None,
        },
        _ => number.as_integer(),
    })
}

fn big_integer(number: &Value, name: &str) -> Result<BigInt> {
    finite(number, name)?;
    match whole(number) {
        Some(number) => Ok(number.into_owned()),
        None => big::truncated(&big_decimal(number, name)?),
    }
}

fn big_decimal(number: &Value, name: &str) -> Result<BigDecimal> {
    finite(number, name)?;
    decimal(number).map(std::borrow::Cow::into_owned).ok_or_else(|| no_number(number))
}

fn finite(number: &Value, name: &str) -> Result<()> {
    match floating(number) {
        Some(_) if is_nan(number) => Err(Error::new(format!("Can't convert NaN to {name}."))),
        Some(number) if number.is_infinite() => {
            Err(Error::new(format!("Can't convert floating point infinity to {name}.")))
        }
        _ => Ok(()),
    }
}
