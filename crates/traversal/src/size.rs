//! How large a value may be that steps make: a list of lists of lists shares its parts, so a short text could make one that
//! takes years to hash, or one so deep that whoever walks down it runs out of stack.

use vervet_gremlin::Value;
use vervet_model::{Error, ErrorKind, Result};

/// Values inside one another.
pub const NESTING_MAX: usize = 100;
/// Values in one value, each counted as often as it is in it.
pub const VALUES_MAX: u64 = 1 << 24;

/// Checks a value that a step has made.
///
/// # Cost
/// A walk over a collection; nothing for any other value.
pub(crate) fn check(value: &Value) -> Result<()> {
    match value {
        Value::List(_)
        | Value::Set(_)
        | Value::Map(_)
        | Value::Entry(_)
        | Value::Bulk(_)
        | Value::Path(_)
        | Value::Tree(_) => {}
        _ => return Ok(()),
    }
    let mut left = VALUES_MAX;
    if fits(value, NESTING_MAX, &mut left) {
        return Ok(());
    }
    let message = match left {
        0 => format!("a value would hold more than {VALUES_MAX} values (VALUES_MAX)"),
        _ => format!("a value would be nested deeper than {NESTING_MAX} (NESTING_MAX)"),
    };
    Err(Error::new(ErrorKind::MemoryLimit, message).with_hint("gather less in one value"))
}

fn fits(value: &Value, depth: usize, left: &mut u64) -> bool {
    *left = left.saturating_sub(1);
    if *left == 0 || depth == 0 {
        return false;
    }
    match value {
        Value::List(values) => values.iter().all(|value| fits(value, depth - 1, left)),
        Value::Set(values) => values.iter().all(|value| fits(value, depth - 1, left)),
        Value::Map(map) => {
            map.iter().all(|(key, value)| fits(key, depth - 1, left) && fits(value, depth - 1, left))
        }
        Value::Entry(entry) => fits(&entry.0, depth - 1, left) && fits(&entry.1, depth - 1, left),
        Value::Bulk(bulk) => bulk.keys().all(|value| fits(value, depth - 1, left)),
        Value::Path(path) => path.objects.iter().all(|value| fits(value, depth - 1, left)),
        Value::Tree(tree) => fits_tree(tree, depth - 1, left),
        _ => true,
    }
}

fn fits_tree(tree: &vervet_gremlin::Tree, depth: usize, left: &mut u64) -> bool {
    depth > 0
        && tree
            .children
            .iter()
            .all(|(value, below)| fits(value, depth - 1, left) && fits_tree(below, depth - 1, left))
}
