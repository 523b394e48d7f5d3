//! Iteration over lists, sets, bags and paths.

use super::{Error, Result};
use crate::Value;

/// Maximum number of items of a result.
pub const MAX_ITEMS: usize = 1 << 24;

/// Iterator over a collection: items with their counts.
#[derive(Clone, Debug)]
pub struct Items<'v>(Inner<'v>);

#[derive(Clone, Debug)]
enum Inner<'v> {
    Slice(std::slice::Iter<'v, Value>),
    Set(indexmap::set::Iter<'v, Value>),
    Bulk(indexmap::map::Iter<'v, Value, u64>),
}

impl<'v> Iterator for Items<'v> {
    type Item = (&'v Value, u64);

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Inner::Slice(items) => items.next().map(|item| (item, 1)),
            Inner::Set(items) => items.next().map(|item| (item, 1)),
            Inner::Bulk(items) => items.by_ref().map(|(item, count)| (item, *count)).find(|item| item.1 > 0),
        }
    }
}

/// The items of a list, set, bag or path; `None` for other values, including maps.
#[must_use]
pub fn items(value: &Value) -> Option<Items<'_>> {
    Some(Items(match value {
        Value::List(list) => Inner::Slice(list.iter()),
        Value::Path(path) => Inner::Slice(path.objects.iter()),
        Value::Set(set) => Inner::Set(set.iter()),
        Value::Bulk(bag) => Inner::Bulk(bag.iter()),
        _ => return None,
    }))
}

/// The items, repeated by their counts.
///
/// # Errors
/// More than [`MAX_ITEMS`] items.
pub fn expanded(items: Items<'_>) -> Result<Vec<Value>> {
    let mut out = Vec::new();
    for (item, count) in items {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        limited(out.len().saturating_add(count))?;
        out.extend(std::iter::repeat_n(item, count).cloned());
    }
    Ok(out)
}

pub(super) fn limited(count: usize) -> Result<()> {
    if count > MAX_ITEMS {
        return Err(Error::new(format!("the result has more than the limit of {MAX_ITEMS} items")));
    }
    Ok(())
}
