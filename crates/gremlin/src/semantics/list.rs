//! Collection functions: iteration, `combine`, `conjoin`, `difference`, `disjunct`, `intersect`, `merge`,
//! `product`, `reverse`, `all`, `any`, `none`.
//!
//! # Shape
//! [`items`] iterates over lists, sets, bags and paths; a bag yields each item once, with its count.
//! [`unfold`] also splits maps and trees into maps of one entry, and yields any other value as a single item.
//!
//! Items are compared by *equivalence* (`==` of [`Value`]). Results are sets in the order of first
//! appearance, where an item counts once.
//! # Invariants
//! No result has more than [`MAX_ITEMS`] items, whatever the counts of a bag.
//! # Cost
//! Linear in the items, except `product`.

pub use super::items::{Items, MAX_ITEMS, expanded, items};

use super::items::limited;
use super::predicate::Compiled;
use super::{Details, Error, Result, string};
use crate::{Map, Set, Value};
use std::sync::Arc;

/// The items of `unfold()` and of the local `sum()`, `min()`, …: items, entries as maps of one, or the value
/// itself.
#[must_use]
pub fn unfold(value: &Value) -> Vec<(Value, u64)> {
    let entry = |key: &Value, value: Value| (Value::map(Map::from_iter([(key.clone(), value)])), 1);
    match value {
        Value::Map(map) => map.iter().map(|(key, value)| entry(key, value.clone())).collect(),
        Value::Tree(tree) => tree
            .children
            .iter()
            .map(|(key, below)| entry(key, Value::Tree(Arc::new(below.clone()))))
            .collect(),
        _ => match items(value) {
            Some(items) => items.map(|(item, count)| (item.clone(), count)).collect(),
            None => vec![(value.clone(), 1)],
        },
    }
}

/// Origin of the second collection, for messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A constant in the traversal.
    Argument,
    /// The result of a nested traversal.
    Traversal,
}

/// `a` followed by `b`, as a list.
///
/// # Errors
/// An operand is not a collection, or the result is too long.
pub fn combine(a: &Value, b: &Value, origin: Origin) -> Result<Value> {
    let (a, b) = (incoming("combine", a)?, argument("combine", b, origin)?);
    let mut all = expanded(a)?;
    let more = expanded(b)?;
    limited(all.len() + more.len())?;
    all.extend(more);
    Ok(Value::list(all))
}

/// The set difference of `a` and `b`.
///
/// # Errors
/// An operand is not a collection.
pub fn difference(a: &Value, b: &Value, origin: Origin) -> Result<Value> {
    let (a, b) = (incoming("difference", a)?, argument("difference", b, origin)?);
    let b = set_of(b);
    Ok(Value::set(a.map(|item| item.0).filter(|item| !b.contains(*item)).cloned()))
}

/// The symmetric set difference of `a` and `b`.
///
/// # Errors
/// An operand is not a collection.
pub fn disjunct(a: &Value, b: &Value, origin: Origin) -> Result<Value> {
    let (a, b) = (incoming("disjunct", a)?, argument("disjunct", b, origin)?);
    let (a, b) = (set_of(a), set_of(b));
    let only = |these: &Set, those: &Set| -> Vec<Value> {
        these.iter().filter(|item| !those.contains(*item)).cloned().collect()
    };
    Ok(Value::set(only(&a, &b).into_iter().chain(only(&b, &a))))
}

/// The set intersection of `a` and `b`.
///
/// # Errors
/// An operand is not a collection.
pub fn intersect(a: &Value, b: &Value, origin: Origin) -> Result<Value> {
    let (a, b) = (incoming("intersect", a)?, argument("intersect", b, origin)?);
    let a = set_of(a);
    Ok(Value::set(b.map(|item| item.0).filter(|item| a.contains(*item)).cloned()))
}

/// For two maps, the merged map, in which entries of `b` win; for other collections, the set union.
///
/// # Errors
/// Exactly one operand is a map, or an operand is not a collection.
pub fn merge(a: &Value, b: &Value, origin: Origin) -> Result<Value> {
    if let Value::Map(map) = a {
        let Value::Map(other) = b else {
            return Err(Error::new(format!(
                "merge step expected provided argument to evaluate to a Map, encountered {}",
                b.type_name()
            )));
        };
        let mut merged = Map::clone(map);
        merged.extend(other.iter().map(|(key, value)| (key.clone(), value.clone())));
        return Ok(Value::map(merged));
    }
    let a = incoming("merge", a)?;
    if origin == Origin::Argument && matches!(b, Value::Map(_)) {
        return Err(Error::new("merge step type mismatch: expected argument to be Iterable but got Map"));
    }
    let b = argument("merge", b, origin)?;
    Ok(Value::set(a.chain(b).map(|item| item.0.clone())))
}

/// Cartesian product, as lists of two.
///
/// # Errors
/// An operand is not a collection, or the result is too long.
pub fn product(a: &Value, b: &Value, origin: Origin) -> Result<Value> {
    let (a, b) = (incoming("product", a)?, argument("product", b, origin)?);
    let (a, b) = (expanded(a)?, expanded(b)?);
    limited(a.len().saturating_mul(b.len()))?;
    let pairs =
        a.iter().flat_map(|first| b.iter().map(|second| Value::list(vec![first.clone(), second.clone()])));
    Ok(Value::list(pairs.collect()))
}

/// The non-null items as text, joined by `delimiter`; null if all are null.
///
/// # Errors
/// `value` is not a collection, or the text is too long.
pub fn conjoin(value: &Value, delimiter: &str, details: &dyn Details) -> Result<Value> {
    let mut out = string::Writer::new(details);
    let (mut some, mut first) = (false, true);
    for (item, count) in incoming("conjoin", value)? {
        some = true;
        if matches!(item, Value::Null) {
            continue;
        }
        for _ in 0..count {
            let (before, is_first) = (out.len(), std::mem::take(&mut first));
            if !is_first {
                out.push(delimiter)?;
            }
            out.value(item)?;
            if !is_first && out.len() == before {
                // Text and delimiter are both empty; any other text reaches MAX_TEXT_BYTES.
                break;
            }
        }
    }
    Ok(if some && first { Value::Null } else { Value::from(out.finish()) })
}

/// Reverses a string or collection; other values are unchanged.
///
/// # Errors
/// The list is too long.
pub fn reverse(value: &Value) -> Result<Value> {
    if let Value::String(text) = value {
        return Ok(Value::from(text.chars().rev().collect::<String>()));
    }
    let Some(items) = items(value) else { return Ok(value.clone()) };
    let mut all = expanded(items)?;
    all.reverse();
    Ok(Value::list(all))
}

/// Whether the value is a collection and `predicate` holds for every item.
#[must_use]
pub fn all(value: &Value, predicate: &Compiled) -> bool {
    items(value).is_some_and(|mut items| items.all(|item| predicate.test(item.0)))
}

/// Whether `predicate` holds for an item.
#[must_use]
pub fn any(value: &Value, predicate: &Compiled) -> bool {
    items(value).is_some_and(|mut items| items.any(|item| predicate.test(item.0)))
}

/// Whether the value is a collection and `predicate` holds for no item.
#[must_use]
pub fn none(value: &Value, predicate: &Compiled) -> bool {
    items(value).is_some_and(|mut items| !items.any(|item| predicate.test(item.0)))
}

fn set_of(items: Items<'_>) -> Set {
    items.map(|item| item.0.clone()).collect()
}

fn incoming<'v>(step: &str, value: &'v Value) -> Result<Items<'v>> {
    items(value).ok_or_else(|| {
        Error::new(match value {
            Value::Null => format!("Incoming traverser for {step} step can't be null."),
            _ => format!(
                "{step} step can only take an array or an Iterable type for incoming traversers, encountered {}",
                value.type_name()
            ),
        })
    })
}

fn argument<'v>(step: &str, value: &'v Value, origin: Origin) -> Result<Items<'v>> {
    items(value).ok_or_else(|| {
        let found = value.type_name();
        Error::new(match (origin, value) {
            (Origin::Argument, Value::Null) => format!("Argument provided for {step} step can't be null."),
            (Origin::Argument, _) => {
                format!("{step} step can only take an array or an Iterable as an argument, encountered {found}")
            }
            (Origin::Traversal, Value::Null) => {
                format!("Provided traversal argument for {step} step must yield an iterable type, not null")
            }
            (Origin::Traversal, _) => {
                format!("Provided traversal argument for {step} step must yield an iterable type, encountered {found}")
            }
        })
    })
}
