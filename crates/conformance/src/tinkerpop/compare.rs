//! Compares a result with the expectation of a scenario.
//!
//! # Invariants
//! As in the reference: number types count, finite doubles may differ by 1e-15, labels of paths do not count,
//! lists are ordered, bags are not and equal a list with the same items.

use super::notation::show;
use vervet::gremlin::{Bulk, Map, Tree, Value};

const DOUBLE_APART_MAX: f64 = 1e-15;

/// Whether a result equals this value.
pub(super) fn same(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Double(a), Value::Double(b)) if a.is_finite() && b.is_finite() => {
            (a - b).abs() <= DOUBLE_APART_MAX
        }
        (Value::List(a), Value::List(b)) => in_order(a, b),
        (Value::List(a), Value::Bulk(b)) => differences(a, &items(b)).is_none(),
        (Value::Set(a), Value::Set(b)) => {
            a.len() == b.len() && a.iter().all(|a| b.iter().any(|b| same(a, b)))
        }
        (Value::Map(a), Value::Map(b)) => same_map(a, b),
        (Value::Path(a), Value::Path(b)) => in_order(&a.objects, &b.objects),
        (expected, actual) => expected == actual,
    }
}

/// Whether both have equal values at the same positions.
pub(super) fn in_order(expected: &[Value], actual: &[Value]) -> bool {
    expected.len() == actual.len() && expected.iter().zip(actual).all(|(a, b)| same(a, b))
}

fn same_map(expected: &Map, actual: &Map) -> bool {
    expected.len() == actual.len()
        && expected.iter().all(|(key, value)| {
            actual.iter().any(|(other_key, other)| same(key, other_key) && same(value, other))
        })
}

/// The items of a bag, repeated by their multiplicity.
pub(super) fn items(bulk: &Bulk) -> Vec<Value> {
    bulk.iter()
        .flat_map(|(value, count)| std::iter::repeat_n(value, usize::try_from(*count).unwrap_or(usize::MAX)))
        .cloned()
        .collect()
}

/// The difference of two bags; `None`: equal. Each expected value consumes one actual value.
pub(super) fn differences(expected: &[Value], actual: &[Value]) -> Option<String> {
    let mut rest: Vec<&Value> = actual.iter().collect();
    let mut missing = Vec::new();
    for value in expected {
        match rest.iter().position(|other| same(value, other)) {
            Some(at) => drop(rest.swap_remove(at)),
            None => missing.push(value),
        }
    }
    (!missing.is_empty() || !rest.is_empty())
        .then(|| format!("missing {}; too many {}", show_some(missing), show_some(rest)))
}

/// A readable list, truncated.
pub(super) fn show_some<'v>(values: impl IntoIterator<Item = &'v Value>) -> String {
    const SHOWN_MAX: usize = 12;
    let all: Vec<&Value> = values.into_iter().collect();
    let mut text: Vec<String> = all.iter().take(SHOWN_MAX).map(|value| show(value)).collect();
    if all.len() > SHOWN_MAX {
        text.push(format!("… {} in all", all.len()));
    }
    format!("[{}]", text.join(" | "))
}

/// Whether two trees have the same branches, in any order.
pub(super) fn same_tree(expected: &Tree, actual: &Tree) -> bool {
    expected.children.len() == actual.children.len()
        && expected.children.iter().all(|(value, below)| {
            actual.children.iter().any(|(other, others)| same(value, other) && same_tree(below, others))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_order_count_and_rounding_does_not() {
        assert!(same(&Value::Double(0.3), &Value::Double(0.1 + 0.2)));
        assert!(!same(&Value::Double(0.3), &Value::Double(0.300_001)));
        assert!(!same(&Value::Int(1), &Value::Long(1)));
        assert!(same(&Value::Double(f64::NAN), &Value::Double(f64::NAN)));
        let [a, b] = [Value::text("a"), Value::text("b")];
        let list = |values: &[&Value]| Value::list(values.iter().map(|value| (*value).clone()).collect());
        assert!(!same(&list(&[&a, &b]), &list(&[&b, &a])));
        assert!(!same(&list(&[&a]), &Value::set([a.clone()])));
        let bag: Bulk = [(b.clone(), 2), (a.clone(), 1)].into_iter().collect();
        assert!(same(&list(&[&b, &a, &b]), &bag.clone().into()));
        assert!(!same(&list(&[&b, &a]), &bag.into()));
    }

    #[test]
    fn each_expected_value_takes_one() {
        let [a, b] = [Value::text("a"), Value::text("b")];
        assert_eq!(differences(&[a.clone(), b.clone()], &[b.clone(), a.clone()]), None);
        let text = differences(&[a.clone(), a.clone()], &[a, b]).expect("they differ");
        assert_eq!(text, "missing [a]; too many [b]");
    }
}
