//! Scope lookup of a name: a map value, a side effect, or a labelled object of the path.

use crate::context::Context;
use crate::traverser::Traverser;
use std::sync::Arc;
use vervet_gremlin::{Pop, Value};

/// The value of a name; `None` if it has none.
pub(crate) fn scoped(traverser: &Traverser, key: &str, pop: Pop, context: &Context<'_>) -> Option<Value> {
    if let Value::Map(map) = &traverser.value
        && let Some(value) = map.get(&Value::text(key))
    {
        return Some(value.clone());
    }
    if let Value::Entry(entry) = &traverser.value
        && entry.0.as_text() == Some(key)
    {
        return Some(entry.1.clone());
    }
    if let Some(side_effect) = context.side_effects.get(key) {
        return Some(side_effect.value.clone());
    }
    match pop {
        // An empty list requires a known label.
        Pop::All if !traverser.has_label(key) => None,
        pop => traverser.select(key, pop),
    }
}

/// The value of a name that `select` gives.
pub(crate) fn select_one(traverser: &Traverser, key: &Arc<str>, context: &Context<'_>) -> Option<Value> {
    if let Value::Map(map) = &traverser.value
        && let Some(value) = map.get(&Value::String(key.clone()))
    {
        return Some(value.clone());
    }
    scoped(traverser, key, Pop::Last, context)
}
