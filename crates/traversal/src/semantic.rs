//! Adapters from `vervet_gremlin::semantics` to the errors and contexts of this crate.

use crate::context::Context;
use crate::memory::Reservation;
use std::cmp::Ordering;
use std::sync::Arc;
use vervet_gremlin::semantics::number::{add, counted};
use vervet_gremlin::semantics::{self, compare, number, predicate, string};
use vervet_gremlin::{Comparison, P, TextTest, Value};
use vervet_kernel::Control;
use vervet_model::{Error, ErrorKind, Result};

/// Converts an error of a value function to a query error.
pub(crate) fn map_error<T>(result: semantics::Result<T>) -> Result<T> {
    result.map_err(|error| Error::new(ErrorKind::Query, error.message()))
}

/// Whether a value satisfies a predicate.
///
/// # Errors
/// An invalid predicate; cancellation and deadline: a test of a text or a list takes time.
pub(crate) fn passes(test: &P, value: &Value, control: &Control<'_>) -> Result<bool> {
    control.work(units(test, value))?;
    map_error(predicate::test(test, value))
}

/// Units of work of a test.
fn units(test: &P, value: &Value) -> usize {
    const TEXT_BYTES_PER_UNIT: usize = 64;
    const ITEMS_PER_UNIT: usize = 8;
    /// A check of the limits before each search: a pattern may take long to compile and to match.
    const REGEX: usize = 1 << 11;
    let of_text = || value.as_text().map_or(0, str::len) / TEXT_BYTES_PER_UNIT;
    match test {
        P::Within(values) | P::Without(values) => of_text() + values.len() / ITEMS_PER_UNIT,
        P::Text(TextTest::Regex | TextTest::NotRegex, _) => REGEX + of_text(),
        P::Text(..) | P::Compare(..) => of_text(),
        P::Not(inner) => units(inner, value),
        P::And(parts) | P::Or(parts) => {
            parts.iter().fold(parts.len(), |sum, part| sum.saturating_add(units(part, value)))
        }
        P::Inside(..) | P::Outside(..) | P::Between(..) | P::TypeOf(_) => 0,
    }
}

/// An argument as a predicate; a value means equality.
pub(crate) fn predicate(argument: &Value) -> P {
    match argument {
        Value::P(test) => test.as_ref().clone(),
        value => P::Compare(Comparison::Eq, value.clone()),
    }
}

/// The text of a value in an error message.
pub(crate) fn error_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Long(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Boolean(value) => value.to_string(),
        Value::Null => "null".to_owned(),
        value => value.type_name().to_owned(),
    }
}

/// The sum of two counts.
pub(crate) fn add_counts(a: &Value, b: &Value) -> Result<Value> {
    match (a.as_integer(), b.as_integer()) {
        (Some(a), Some(b)) => match u128::try_from(i128::from(a) + i128::from(b)) {
            Ok(sum) => Ok(counted(sum)),
            Err(_) => Err(Error::internal("a query counted less than nothing")),
        },
        _ => map_error(add(a, b)),
    }
}

/// The items of a collection with their multiplicities; `None`: not a collection.
pub(crate) fn items(value: &Value) -> Option<Vec<(Value, u64)>> {
    let once = |value: &Value| (value.clone(), 1);
    Some(match value {
        Value::List(values) => values.iter().map(once).collect(),
        Value::Set(values) => values.iter().map(once).collect(),
        Value::Bulk(bulk) => bulk.iter().map(|(value, count)| (value.clone(), *count)).collect(),
        Value::Path(path) => path.objects.iter().map(once).collect(),
        Value::Map(map) => {
            map.iter().map(|(key, value)| (Value::Entry(Arc::new((key.clone(), value.clone()))), 1)).collect()
        }
        _ => return None,
    })
}

/// The items of a collection, repeated by multiplicity; `None`: not a collection.
///
/// # Errors
/// As [`Context::expand`], of a bag.
pub(crate) fn expanded(value: &Value, context: &Context<'_>) -> Result<Option<Vec<Value>>> {
    let Value::Bulk(bulk) = value else {
        return Ok(items(value).map(|items| items.into_iter().map(|(value, _)| value).collect()));
    };
    let (mut all, mut held) = (Vec::new(), Reservation::default());
    for (value, count) in bulk.iter() {
        context.expand(value, *count, &mut all, &mut held)?;
    }
    Ok(Some(all))
}

/// A value as text, by the rules of `asString()`; empty for values without a text form.
pub(crate) fn text_of(value: &Value) -> String {
    string::to_text(value, &semantics::NoDetails).unwrap_or_default()
}

pub(crate) fn to_f64(value: &Value) -> Option<f64> {
    number::to_double(value)
}

/// The order of two values.
pub(crate) fn order(a: &Value, b: &Value) -> Ordering {
    compare::order(a, b)
}

/// A sort key: an element is replaced by its id.
pub(crate) fn with_ids(value: Value, context: &mut Context<'_>) -> Result<Value> {
    match &value {
        Value::Entry(entry) => {
            let (key, value) = entry.as_ref().clone();
            Ok(Value::Entry(Arc::new((with_ids(key, context)?, with_ids(value, context)?))))
        }
        Value::Vertex(_)
        | Value::Edge(_)
        | Value::VertexProperty(_)
        | Value::Property(_)
        | Value::Path(_)
        | Value::List(_)
        | Value::Set(_)
        | Value::Bulk(_)
        | Value::Tree(_)
        | Value::Map(_) => crate::graph::detail::detailed(context, value, crate::Materialize::Tokens),
        _ => Ok(value),
    }
}
