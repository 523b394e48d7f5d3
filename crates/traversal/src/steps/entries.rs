//! Execution of `translation/entries.rs`: filters, orders and projects the rows of its query, one per group.
//!
//! # Cost
//! Keys are read only for output: after numeric filters, after an order that begins with numbers, and within
//! its range. Other string keys are only checked for being plain strings, since two language-tagged strings
//! can be one value.

use crate::context::Context;
use crate::graph::element::value_of;
use crate::memory::Reservation;
use crate::semantic::{add_counts, map_error, order, passes, with_ids};
use crate::sort::sorted;
use crate::translation::prefix::{Entries, EntryPart, Fold};
use indexmap::IndexMap;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;
use vervet_gremlin::semantics::number;
use vervet_gremlin::{Hashing, Map, Value};
use vervet_model::{Error, Id, Result, Tag};

/// Accounted size of a group, with its key and columns.
const GROUP_BYTES: u64 = 128;

struct Group {
    key: Id,
    /// The key as a value, read lazily.
    value: Option<Value>,
    columns: Vec<Value>,
}

/// The entries of groups, or the maps that they become. A row is the key of a group and its aggregates.
pub(super) fn entries<'r>(
    rows: impl Iterator<Item = &'r [Id]>,
    entries: &Entries,
    context: &mut Context<'_>,
) -> Result<VecDeque<Value>> {
    let mut groups = Vec::with_capacity(rows.size_hint().0);
    for row in rows {
        let Some((&key, columns)) = row.split_first() else { continue };
        context.control.work(row.len())?;
        let columns = columns.iter().map(|id| read(*id, context)).collect::<Result<_>>()?;
        groups.push(Group { key, value: None, columns });
    }
    let mut held = Reservation::default();
    held.add(groups.len() as u64 * GROUP_BYTES, &context.memory)?;
    if may_be_equal(&groups, context)? {
        groups = merged(groups, entries, context)?;
    }
    for (part, test) in &entries.tests {
        let mut kept = Vec::with_capacity(groups.len());
        for mut group in groups {
            context.control.work(1)?;
            if passes(test, group.part(*part, context)?, context.control)? {
                kept.push(group);
            }
        }
        groups = kept;
    }
    let (from, count) = entries.range;
    sort(&mut groups, &entries.order, count.map(|count| from.saturating_add(count)), context)?;
    let mut all = VecDeque::new();
    for mut group in groups.into_iter().skip(from).take(count.unwrap_or(usize::MAX)) {
        context.control.work(1)?;
        all.push_back(match &entries.names {
            None => {
                let key = group.part(EntryPart::Key, context)?.clone();
                Value::Entry(Arc::new((key, group.columns.swap_remove(0))))
            }
            Some(names) => {
                let mut map = Map::default();
                for (name, part) in names {
                    map.insert(name.clone(), group.part(*part, context)?.clone());
                }
                Value::map(map)
            }
        });
    }
    Ok(all)
}

impl Group {
    fn part(&mut self, part: EntryPart, context: &mut Context<'_>) -> Result<&Value> {
        match part {
            EntryPart::Column(at) => Ok(self.column(at)),
            EntryPart::Key => {
                if self.value.is_none() {
                    self.value = Some(read(self.key, context)?);
                }
                Ok(self.value.as_ref().unwrap_or(&Value::Null))
            }
        }
    }

    fn column(&self, at: usize) -> &Value {
        self.columns.get(at).unwrap_or(&Value::Null)
    }
}

fn read(id: Id, context: &mut Context<'_>) -> Result<Value> {
    value_of(id, context)?.ok_or_else(|| Error::internal("a group of a query has a key that is no value"))
}

/// Whether keys with different ids may be equal values.
fn may_be_equal(groups: &[Group], context: &mut Context<'_>) -> Result<bool> {
    let Some(first) = groups.first().map(|group| group.key.tag()) else { return Ok(false) };
    match first {
        Tag::Vertex | Tag::Int | Tag::Integer | Tag::Long | Tag::Boolean => {
            Ok(!groups.iter().all(|group| group.key.tag() == first))
        }
        Tag::ShortString | Tag::Literal => context.read(|snapshot, _| {
            for group in groups {
                let is_plain = group.key.tag() == Tag::ShortString
                    || group.key.tag() == Tag::Literal && snapshot.is_plain_text(group.key)?;
                if !is_plain {
                    return Ok(true);
                }
            }
            Ok(false)
        }),
        _ => Ok(true),
    }
}

/// Merges groups with equal keys.
fn merged(groups: Vec<Group>, entries: &Entries, context: &mut Context<'_>) -> Result<Vec<Group>> {
    let mut all: IndexMap<Value, Group, Hashing> = IndexMap::default();
    for mut group in groups {
        context.control.work(1)?;
        let key = group.part(EntryPart::Key, context)?.clone();
        let Some(same) = all.get_mut(&key) else {
            all.insert(key, group);
            continue;
        };
        for ((one, other), (_, fold)) in same.columns.iter_mut().zip(&group.columns).zip(&entries.columns) {
            *one = match fold {
                Fold::Count => add_counts(one, other)?,
                Fold::Min => map_error(number::min(one, other))?,
                Fold::Max => map_error(number::max(one, other))?,
            };
        }
    }
    Ok(all.into_values().collect())
}

/// Sorts groups; may drop groups beyond the first `end`.
fn sort(
    groups: &mut Vec<Group>,
    by: &[(EntryPart, bool)],
    end: Option<usize>,
    context: &mut Context<'_>,
) -> Result<()> {
    // Numeric sort keys before the first group key need no key reads, and decide most comparisons.
    let numbers: Vec<(usize, bool)> = by
        .iter()
        .map_while(|(part, descending)| match part {
            EntryPart::Column(at) => Some((*at, *descending)),
            EntryPart::Key => None,
        })
        .collect();
    let by_numbers = |a: &Group, b: &Group| {
        let orders = numbers.iter().map(|&(at, descending)| ordered(a.column(at), b.column(at), descending));
        orders.fold(Ordering::Equal, Ordering::then)
    };
    if let Some(last) = end.and_then(|end| end.checked_sub(1)).filter(|last| *last + 1 < groups.len())
        && !numbers.is_empty()
    {
        let (_, pivot, behind) = groups.select_nth_unstable_by(last, by_numbers);
        let mut kept = last + 1;
        let tied: Vec<bool> =
            behind.iter().map(|group| by_numbers(group, pivot) == Ordering::Equal).collect();
        for (at, _) in tied.iter().enumerate().filter(|(_, tied)| **tied) {
            groups.swap(kept, last + 1 + at);
            kept += 1;
        }
        groups.truncate(kept);
    }
    if numbers.len() == by.len() {
        *groups = sorted(std::mem::take(groups), context.control, by_numbers)?;
        return Ok(());
    }
    let mut keyed = Vec::with_capacity(groups.len());
    for mut group in groups.drain(..) {
        context.control.work(1)?;
        let mut keys = Vec::with_capacity(by.len());
        for (part, _) in by {
            let value = group.part(*part, context)?.clone();
            keys.push(with_ids(value, context)?);
        }
        keyed.push((keys, group));
    }
    let keyed = sorted(keyed, context.control, |(a, _), (b, _)| {
        let orders = a.iter().zip(b).zip(by).map(|((a, b), (_, descending))| ordered(a, b, *descending));
        orders.fold(Ordering::Equal, Ordering::then)
    })?;
    groups.extend(keyed.into_iter().map(|(_, group)| group));
    Ok(())
}

fn ordered(a: &Value, b: &Value, descending: bool) -> Ordering {
    let ordering = order(a, b);
    if descending { ordering.reverse() } else { ordering }
}
