//! What may be done with values, with the errors of this crate.

use crate::context::Context;
use std::cmp::Ordering;
use std::sync::Arc;
use vervet_gremlin::semantics::{self, compare, number, predicate, string};
use vervet_gremlin::{P, Value};
use vervet_model::{Error, ErrorKind, Result};

/// An error of a function on values as one of a query.
pub(crate) fn told<T>(result: semantics::Result<T>) -> Result<T> {
    result.map_err(|error| Error::new(ErrorKind::Query, error.message()))
}

/// Whether a value passes.
pub(crate) fn passes(test: &P, value: &Value) -> Result<bool> {
    told(predicate::test(test, value))
}

/// What is in a collection; `None`: it is none.
pub(crate) fn items(value: &Value) -> Option<Vec<Value>> {
    Some(match value {
        Value::List(values) => values.to_vec(),
        Value::Set(values) => values.iter().cloned().collect(),
        Value::Bulk(bulk) => {
            bulk.iter().flat_map(|(value, count)| (0..*count).map(|_| value.clone())).collect()
        }
        Value::Path(path) => path.objects.clone(),
        Value::Map(map) => {
            map.iter().map(|(key, value)| Value::Entry(Arc::new((key.clone(), value.clone())))).collect()
        }
        _ => return None,
    })
}

/// A value as text, as `asString()` has it; what has none is empty.
pub(crate) fn text_of(value: &Value) -> String {
    string::to_text(value, &semantics::NoDetails).unwrap_or_default()
}

pub(crate) fn to_f64(value: &Value) -> Option<f64> {
    number::to_double(value)
}

/// Where a value stands among others.
pub(crate) fn order(a: &Value, b: &Value) -> Ordering {
    compare::order(a, b)
}

/// A value to be ordered: an element is ordered by its id.
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
