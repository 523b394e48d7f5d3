//! The members of [`Operator`] as binary functions: the reducers of sacks, `fold` and side effects.

use super::{Error, Result, list, number};
use crate::{Bulk, Operator, Set, Value};
use std::sync::Arc;

/// `a operator b`. The accumulator `a` is updated in place if it is not shared.
///
/// # Errors
/// Operand types that the operator does not support, or a result that is too large.
pub fn apply(operator: Operator, a: Value, b: &Value) -> Result<Value> {
    match operator {
        Operator::Sum => number::add(&a, b),
        Operator::Minus => number::subtract(&a, b),
        Operator::Mult => number::multiply(&a, b),
        Operator::Div => number::divide(&a, b),
        Operator::Min => number::min(&a, b),
        Operator::Max => number::max(&a, b),
        Operator::Assign => Ok(b.clone()),
        Operator::And | Operator::Or | Operator::AddAll if matches!(a, Value::Null) => Ok(b.clone()),
        Operator::And | Operator::Or | Operator::AddAll if matches!(b, Value::Null) => Ok(a),
        Operator::And | Operator::Or => match (&a, b) {
            (Value::Boolean(x), Value::Boolean(y)) => {
                Ok(Value::Boolean(if operator == Operator::And { *x && *y } else { *x || *y }))
            }
            _ => Err(types(operator, "booleans", &a, b)),
        },
        Operator::AddAll => add_all(a, b),
        Operator::SumLong => match (a.as_integer(), b.as_integer()) {
            (Some(x), Some(y)) => number::add(&Value::Long(x), &Value::Long(y)),
            _ => Err(types(operator, "integers", &a, b)),
        },
    }
}

/// `a operator b operator b …`, `times` times, in sublinear time: the effect of a bulk of equal traversers.
///
/// Sums, differences and quotients of doubles are rounded once instead of `times` times. An intermediate
/// result beyond a long is an error, even if further operands would bring it back.
///
/// # Errors
/// As for [`apply`]; [`Operator::Div`] of integers of arbitrary precision with more than [`DIVISIONS_MAX`]
/// steps; [`Operator::AddAll`] to a list of more than [`list::MAX_ITEMS`].
/// # Cost
/// As [`apply`] for most; `log2(times)` products for [`Operator::Mult`]; the number of appended items for
/// [`Operator::AddAll`].
pub fn apply_times(operator: Operator, a: Value, b: &Value, times: u64) -> Result<Value> {
    match times {
        0 => return Ok(a),
        1 => return apply(operator, a, b),
        _ => {}
    }
    if matches!(operator, Operator::And | Operator::Or | Operator::AddAll) {
        match (&a, b) {
            (_, Value::Null) => return Ok(a),
            (Value::Null, _) => return apply_times(operator, b.clone(), b, times - 1),
            _ => {}
        }
    }
    match operator {
        Operator::Assign | Operator::Min | Operator::Max | Operator::And | Operator::Or => {
            apply(operator, a, b)
        }
        // Null is absorbing on the left and neutral on the right.
        Operator::Sum | Operator::Minus | Operator::Mult | Operator::Div
            if matches!(a, Value::Null) || matches!(b, Value::Null) =>
        {
            apply(operator, a, b)
        }
        Operator::Sum | Operator::Minus => apply(operator, a, &number::times(b, times)?),
        Operator::SumLong => {
            let long = b.as_integer().ok_or_else(|| types(operator, "integers", &a, b))?;
            let (start, product) = (a.as_integer(), i128::from(long).checked_mul(times.into()));
            let start = start.ok_or_else(|| types(operator, "integers", &a, b))?;
            let sum = product.and_then(|product| product.checked_add(start.into()));
            match sum.map(i64::try_from) {
                Some(Ok(sum)) => Ok(Value::Long(sum)),
                // The same error as the last of the sums.
                _ => number::add(&Value::Long(i64::MAX), &Value::Long(1)),
            }
        }
        Operator::Mult | Operator::Div => {
            // A fixed point of the operator: 0, infinity.
            let once = apply(operator, a.clone(), b)?;
            if apply(operator, once.clone(), b)? == once {
                return Ok(once);
            }
            // In the common class.
            let b = number::multiply(b, &one_like(&a))?;
            let is_rounded = matches!(b, Value::Float(_) | Value::Double(_) | Value::BigDecimal(_));
            match operator {
                Operator::Div if !is_rounded => divide_times(a, &b, times),
                _ => apply(operator, a, &power(&b, times)?),
            }
        }
        Operator::AddAll => add_all_times(a, b, times),
    }
}

/// 1 in the class of `number`.
fn one_like(number: &Value) -> Value {
    match number {
        Value::Float(_) => Value::Float(1.0),
        Value::Double(_) => Value::Double(1.0),
        Value::BigInteger(_) => Value::BigInteger(Arc::new(1.into())),
        Value::BigDecimal(_) => Value::BigDecimal(Arc::new(1.into())),
        _ => Value::Byte(1),
    }
}

/// `base^exponent` by squaring; `exponent` is at least 1.
fn power(base: &Value, exponent: u64) -> Result<Value> {
    let (mut result, mut square, mut left) = (None, base.clone(), exponent);
    loop {
        if left & 1 == 1 {
            result = Some(match result {
                None => square.clone(),
                Some(result) => number::multiply(&result, &square)?,
            });
        }
        left >>= 1;
        match (left, result) {
            (0, Some(result)) => return Ok(result),
            (_, unfinished) => result = unfinished,
        }
        square = number::multiply(&square, &square)?;
    }
}

/// Maximum number of divisions of [`apply_times`]: enough to halve a number of [`number::MAX_BITS`] bits to
/// 0.
pub const DIVISIONS_MAX: u64 = number::MAX_BITS + 2;

/// Repeated integer division. The quotient becomes 0 within as many steps as it has bits, unless the divisor
/// is 1 or -1, which has period 2.
fn divide_times(a: Value, b: &Value, times: u64) -> Result<Value> {
    let (mut before, mut quotient) = (a.clone(), number::divide(&a, b)?);
    for done in 1..times.min(DIVISIONS_MAX) {
        let next = number::divide(&quotient, b)?;
        if next == quotient {
            return Ok(next);
        }
        if next == before && done > 1 {
            return Ok(if (times - done).is_multiple_of(2) { quotient } else { next });
        }
        (before, quotient) = (quotient, next);
    }
    match times {
        ..=DIVISIONS_MAX => Ok(quotient),
        _ => Err(Error::new(format!("Operator.div of more than {DIVISIONS_MAX} equal traversers"))),
    }
}

fn add_all_times(a: Value, b: &Value, times: u64) -> Result<Value> {
    match a {
        Value::List(_) => {
            // The items of one append are repeated.
            let once = apply(Operator::AddAll, Value::list(Vec::new()), b)?;
            let Value::List(once) = once else { return Ok(once) };
            let Value::List(mut values) = a else { return Ok(a) };
            let total =
                (once.len() as u64).checked_mul(times).and_then(|more| more.checked_add(values.len() as u64));
            let limit = list::MAX_ITEMS as u64;
            if total.is_none_or(|total| total > limit) {
                return Err(Error::new(format!("the result has more than the limit of {limit} items")));
            }
            let all = Arc::make_mut(&mut values);
            // An empty append ignores `times`; otherwise the limit bounds it.
            let rounds = if once.is_empty() { 0 } else { times };
            (0..rounds).for_each(|_| all.extend_from_slice(&once));
            Ok(Value::List(values))
        }
        Value::Bulk(_) => {
            let once = apply(Operator::AddAll, Value::from(Bulk::default()), b)?;
            let (Value::Bulk(mut bag), Value::Bulk(once)) = (a, once) else { return Err(overflow()) };
            let all = Arc::make_mut(&mut bag);
            for (value, count) in once.iter() {
                let more = count.checked_mul(times).ok_or_else(overflow)?;
                add_to_bag(all, value.clone(), more)?;
            }
            Ok(Value::Bulk(bag))
        }
        // Repeated union is idempotent.
        a => apply(Operator::AddAll, a, b),
    }
}

/// Adds `count` occurrences of a value to a bag.
///
/// # Errors
/// More than 2^64 - 1 occurrences.
pub fn add_to_bag(bag: &mut Bulk, value: Value, count: u64) -> Result<()> {
    let counted = bag.entry(value).or_insert(0);
    *counted = counted.checked_add(count).ok_or_else(overflow)?;
    Ok(())
}

fn overflow() -> Error {
    Error::new(format!("a value is in a BulkSet more than {} times", u64::MAX))
}

fn types(operator: Operator, wanted: &str, a: &Value, b: &Value) -> Error {
    let (a, b) = (a.type_name(), b.type_name());
    Error::new(format!("Operator.{} takes {wanted}, encountered {a} and {b}", operator.name()))
}

fn add_all(a: Value, b: &Value) -> Result<Value> {
    if let (Value::Map(_), Value::Map(other)) = (&a, b) {
        let Value::Map(mut map) = a else { return Ok(a) };
        let entries = other.iter().map(|(key, value)| (key.clone(), value.clone()));
        Arc::make_mut(&mut map).extend(entries);
        return Ok(Value::Map(map));
    }
    let mismatch = |a: &Value| {
        let (a, b) = (a.type_name(), b.type_name());
        Error::new(format!("Objects must be both of Map or Collection: a={a} b={b}"))
    };
    // A path can be walked through, but is no collection.
    let Some(items) = list::items(b).filter(|_| !matches!(b, Value::Path(_))) else {
        return Err(mismatch(&a));
    };
    match a {
        Value::List(mut values) => {
            let added = list::expanded(items)?;
            Arc::make_mut(&mut values).extend(added);
            Ok(Value::List(values))
        }
        Value::Set(mut values) => {
            let values_mut: &mut Set = Arc::make_mut(&mut values);
            values_mut.extend(items.map(|(value, _)| value.clone()));
            Ok(Value::Set(values))
        }
        Value::Bulk(mut bag) => {
            let bag_mut = Arc::make_mut(&mut bag);
            for (value, count) in items {
                add_to_bag(bag_mut, value.clone(), count)?;
            }
            Ok(Value::Bulk(bag))
        }
        other => Err(mismatch(&other)),
    }
}

#[cfg(test)]
mod tests {
    use super::{apply, apply_times};
    use crate::semantics::number::compare_exactly;
    use crate::{Operator, Value};

    /// query B6: an operator on a bulk equals its repeated application.
    #[test]
    fn b6_many_times_is_one_by_one() {
        let big = |number: i64| Value::BigInteger(std::sync::Arc::new(number.into()));
        let numbers: Vec<Value> = vec![
            Value::Null,
            Value::Byte(3),
            Value::Int(0),
            Value::Int(1),
            Value::Int(-1),
            Value::Int(-2),
            Value::Int(7),
            Value::Long(1 << 40),
            Value::Double(0.5),
            Value::Double(-2.0),
            big(2),
            big(-9_999_999_999),
            Value::Boolean(true),
            Value::Boolean(false),
            Value::list(vec![Value::Int(1), Value::Int(2)]),
            Value::list(Vec::new()),
            Value::set([Value::Int(1)]),
        ];
        for &operator in Operator::ALL {
            for a in &numbers {
                for b in &numbers {
                    for times in 0..12 {
                        let each = (0..times).try_fold(a.clone(), |a, _| apply(operator, a, b));
                        let at_once = apply_times(operator, a.clone(), b, times);
                        let is_same = match (&each, &at_once) {
                            // A sum of longs may be a long where repeated addition has bytes.
                            (Ok(Value::Double(each)), Ok(Value::Double(at_once))) => {
                                each == at_once || (each - at_once).abs() <= 1e-12 * each.abs()
                            }
                            (Ok(each), Ok(at_once)) if each.is_number() => {
                                compare_exactly(each, at_once) == Some(std::cmp::Ordering::Equal)
                            }
                            (each, at_once) => {
                                each.is_err() == at_once.is_err()
                                    && each.as_ref().ok() == at_once.as_ref().ok()
                            }
                        };
                        assert!(is_same, "{operator:?} {a:?} {b:?} {times}: {each:?} {at_once:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn b6_bulks_of_any_size() {
        let times = u64::MAX;
        let of = |operator, a: Value, b: Value| apply_times(operator, a, &b, times);
        assert_eq!(of(Operator::Div, Value::Int(7), Value::Int(2)), Ok(Value::Int(0)));
        assert_eq!(of(Operator::Div, Value::Int(7), Value::Int(-1)), Ok(Value::Int(-7)));
        assert_eq!(of(Operator::Mult, Value::Int(7), Value::Int(1)), Ok(Value::Int(7)));
        assert!(of(Operator::Mult, Value::Int(7), Value::Int(2)).is_err());
        assert!(of(Operator::SumLong, Value::Int(7), Value::Int(2)).is_err());
        assert!(of(Operator::AddAll, Value::list(Vec::new()), Value::list(vec![Value::Null])).is_err());
        assert_eq!(
            of(Operator::AddAll, Value::list(Vec::new()), Value::list(Vec::new())),
            Ok(Value::list(Vec::new()))
        );
        assert_eq!(of(Operator::Mult, Value::Double(1.0), Value::Double(0.5)), Ok(Value::Double(0.0)));
    }
}
