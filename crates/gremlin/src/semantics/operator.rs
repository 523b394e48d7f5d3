//! The members of [`Operator`] as functions: what sacks, `fold` and side effects put two values together with.

use super::{Error, Result, list, number};
use crate::{Operator, Set, Value};
use std::sync::Arc;

/// `a operator b`. `a` is what was there before: it is changed in place if nobody else has it.
///
/// # Errors
/// If the values are not of the types that the operator takes, or the result is too large.
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
                let counted = bag_mut.entry(value.clone()).or_insert(0);
                *counted = counted.saturating_add(count);
            }
            Ok(Value::Bulk(bag))
        }
        other => Err(mismatch(&other)),
    }
}
