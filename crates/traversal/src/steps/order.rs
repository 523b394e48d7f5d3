//! `order`, `dedup`, `sample`, `barrier`: what needs to see other traversers.

use super::make;
use crate::by::By;
use crate::compile::{Compiler, Modulated};
use crate::context::{Context, Random};
use crate::scope::scoped;
use crate::semantic;
use crate::step::Step;
use crate::traverser::Traverser;
use std::cmp::Ordering;
use std::sync::Arc;
use vervet_gremlin::semantics::number::{add, divide_exactly, multiply};
use vervet_gremlin::{Map, Order, Pop, Scope, Set, Token, Value};
use vervet_model::Result;

pub(crate) fn build(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let local =
        step.arguments().iter().any(|argument| matches!(argument, Value::Token(Token::Scope(Scope::Local))));
    Ok(match step.name() {
        "order" => order(local, compiler.ordered_bys(step)?),
        "dedup" => dedup(local, step.texts(), compiler.bys(step)?),
        "sample" => {
            let count = step.arguments().iter().find_map(Value::as_integer).unwrap_or(0);
            let count = usize::try_from(count).unwrap_or(0);
            sample(local, count, compiler.bys(step)?)
        }
        _ => {
            let norm = step.arguments().iter().any(|argument| {
                matches!(argument, Value::Token(Token::Barrier(_)))
                    || argument.as_text().is_some_and(|text| text == "normSack")
            });
            barrier(norm)
        }
    })
}

/// Sort keys of a value with how they are compared; `None`: one of them gives nothing.
fn keys_of(
    by: &mut [(By, Option<Order>)],
    value: &Value,
    traverser: &Traverser,
    context: &mut Context<'_>,
) -> Result<Option<Vec<Value>>> {
    let mut keys = Vec::with_capacity(by.len());
    for (by, order) in by {
        if *order == Some(Order::Shuffle) {
            keys.push(Value::Long(context.random().next().cast_signed()));
            continue;
        }
        match by.of(value, traverser, context)? {
            Some(key) => keys.push(semantic::with_ids(key, context)?),
            None => return Ok(None),
        }
    }
    Ok(Some(keys))
}

fn compare(a: &[Value], b: &[Value], orders: &[Option<Order>]) -> Ordering {
    for ((a, b), order) in a.iter().zip(b).zip(orders) {
        let ordering = semantic::order(a, b);
        let ordering = if *order == Some(Order::Desc) { ordering.reverse() } else { ordering };
        if ordering != Ordering::Equal {
            return ordering;
        }
    }
    Ordering::Equal
}

fn order(local: bool, mut by: Vec<(By, Option<Order>)>) -> Box<dyn Step> {
    if by.is_empty() {
        by.push((By::Identity, None));
    }
    let orders: Vec<Option<Order>> = by.iter().map(|(_, order)| *order).collect();
    if !local {
        return make::barrier(move |all, context| {
            let mut keyed = Vec::with_capacity(all.len());
            for traverser in all {
                if let Some(keys) = keys_of(&mut by, &traverser.value, &traverser, context)? {
                    keyed.push((keys, traverser));
                }
            }
            keyed.sort_by(|(a, _), (b, _)| compare(a, b, &orders));
            Ok(keyed.into_iter().map(|(_, traverser)| traverser).collect())
        });
    }
    make::map(move |traverser, context| {
        let mut sorted = |values: Vec<Value>, context: &mut Context<'_>| -> Result<Vec<Value>> {
            let mut keyed = Vec::with_capacity(values.len());
            for value in values {
                if let Some(keys) = keys_of(&mut by, &value, traverser, context)? {
                    keyed.push((keys, value));
                }
            }
            keyed.sort_by(|(a, _), (b, _)| compare(a, b, &orders));
            Ok(keyed.into_iter().map(|(_, value)| value).collect())
        };
        Ok(Some(match &traverser.value {
            Value::Map(map) => {
                // Entries are ordered by what `by` makes of them; Column.keys and Column.values name their parts.
                let entries =
                    map.iter().map(|(key, value)| Value::Entry(Arc::new((key.clone(), value.clone()))));
                let mut keyed = Vec::new();
                for entry in entries {
                    if let Some(keys) = entry_keys(&mut by, &entry, traverser, context)? {
                        keyed.push((keys, entry));
                    }
                }
                keyed.sort_by(|(a, _), (b, _)| compare(a, b, &orders));
                let mut all = Map::default();
                for (_, entry) in keyed {
                    if let Value::Entry(entry) = entry {
                        all.insert(entry.0.clone(), entry.1.clone());
                    }
                }
                Value::map(all)
            }
            other => match semantic::items(other) {
                Some(values) => Value::list(sorted(values, context)?),
                None => other.clone(),
            },
        }))
    })
}

/// As [`keys_of`], of an entry of a map: keys and values of entries are single ones.
fn entry_keys(
    by: &mut [(By, Option<Order>)],
    entry: &Value,
    traverser: &Traverser,
    context: &mut Context<'_>,
) -> Result<Option<Vec<Value>>> {
    let Value::Entry(parts) = entry else { return Ok(None) };
    let (key, value) = parts.as_ref();
    let mut keys = Vec::with_capacity(by.len());
    for (by, order) in by {
        let found = match by {
            _ if *order == Some(Order::Shuffle) => Some(Value::Long(context.random().next().cast_signed())),
            By::Column(vervet_gremlin::Column::Keys) => Some(key.clone()),
            By::Column(vervet_gremlin::Column::Values) => Some(value.clone()),
            by => by.of(entry, traverser, context)?,
        };
        match found {
            // Keys such as `T.id` stand among the others by their names.
            Some(Value::Token(token)) => keys.push(Value::text(token.name())),
            Some(found) => keys.push(semantic::with_ids(found, context)?),
            None => return Ok(None),
        }
    }
    Ok(Some(keys))
}

fn dedup(local: bool, labels: Vec<Arc<str>>, mut by: Vec<By>) -> Box<dyn Step> {
    if local {
        return make::map(|traverser, _| {
            Ok(Some(match semantic::items(&traverser.value) {
                Some(values) => Value::set(values),
                None => Value::set([traverser.value.clone()]),
            }))
        });
    }
    let by_one = by.pop();
    Box::new(Dedup { labels, by: by_one, seen: Set::default() })
}

/// The first of equal traversers. What it has seen is kept over the rounds of a loop.
#[derive(Clone)]
struct Dedup {
    labels: Vec<Arc<str>>,
    by: Option<By>,
    seen: Set,
}

impl Step for Dedup {
    fn next(
        &mut self,
        input: &mut crate::step::Input<'_>,
        context: &mut Context<'_>,
    ) -> Result<Option<Traverser>> {
        'next: while let Some(mut traverser) = input.next(context)? {
            let key = if self.labels.is_empty() {
                match &mut self.by {
                    None => traverser.value.clone(),
                    Some(by) => match by.apply(&traverser, context)? {
                        Some(key) => key,
                        None => continue,
                    },
                }
            } else {
                let mut keys = Vec::with_capacity(self.labels.len());
                for label in &self.labels {
                    let Some(value) = scoped(&traverser, label, Pop::Last, context) else { continue 'next };
                    match &mut self.by {
                        None => keys.push(value),
                        Some(by) => match by.of(&value, &traverser, context)? {
                            Some(key) => keys.push(key),
                            None => continue 'next,
                        },
                    }
                }
                Value::list(keys)
            };
            if self.seen.insert(key) {
                context.hold(1)?;
                traverser.bulk = 1;
                return Ok(Some(traverser));
            }
        }
        Ok(None)
    }

    fn reset(&mut self) {
        self.seen.clear();
    }

    fn moves(&self) -> bool {
        false
    }
}

fn sample(local: bool, count: usize, mut by: Vec<By>) -> Box<dyn Step> {
    let mut random = None;
    if local {
        return make::map(move |traverser, context| {
            let random = random.get_or_insert_with(|| Random::new(context.seed));
            let Some(mut values) = semantic::items(&traverser.value) else {
                return Ok(Some(traverser.value.clone()));
            };
            if values.len() <= count {
                return Ok(Some(traverser.value.clone()));
            }
            let mut chosen = Vec::with_capacity(count);
            while chosen.len() < count {
                let place = random.below(u32::try_from(values.len()).unwrap_or(u32::MAX));
                chosen.push(values.remove(place as usize));
            }
            Ok(Some(Value::list(chosen)))
        });
    }
    make::barrier(move |all, context| {
        let random = random.get_or_insert_with(|| Random::new(context.seed));
        let mut weighted: Vec<(f64, u64, Traverser)> = Vec::with_capacity(all.len());
        for traverser in all {
            let weight = match by.first_mut() {
                None => 1.0,
                Some(by) => match by.apply(&traverser, context)? {
                    Some(weight) => semantic::to_f64(&weight).unwrap_or(0.0).max(0.0),
                    None => continue,
                },
            };
            weighted.push((weight, 0, traverser));
        }
        if weighted.iter().map(|(.., traverser)| traverser.bulk).sum::<u64>() <= count as u64 {
            return Ok(weighted.into_iter().map(|(.., traverser)| traverser).collect());
        }
        // Each draw walks over what is left; a traverser is taken with the share of the weight up to it.
        let mut total: f64 = weighted.iter().map(|(weight, _, t)| weight * t.bulk as f64).sum();
        let mut taken = 0;
        while taken < count && total > 0.0 {
            context.tick()?;
            let mut running = 0.0;
            'draw: for (weight, drawn, traverser) in &mut weighted {
                for _ in 0..traverser.bulk - *drawn {
                    running += *weight;
                    if random.unit() <= running / total {
                        *drawn += 1;
                        taken += 1;
                        total -= *weight;
                        break 'draw;
                    }
                }
            }
        }
        let chosen = weighted.into_iter().filter(|(_, drawn, _)| *drawn > 0);
        Ok(chosen.map(|(_, drawn, traverser)| Traverser { bulk: drawn, ..traverser }).collect())
    })
}

fn barrier(norm: bool) -> Box<dyn Step> {
    make::barrier(move |all, context| {
        let mut line = super::transform::Line::default();
        let mut merged = Vec::with_capacity(all.len());
        for traverser in all {
            match (&traverser.sack, context.settings.sack_merge, traverser.path.is_none()) {
                (Some(_), Some(operator), true) => {
                    merge_sacks(&mut merged, traverser, operator)?;
                }
                _ => line.push(traverser),
            }
        }
        while let Some(traverser) = line.pop() {
            merged.push(traverser);
        }
        if norm {
            norm_sacks(&mut merged)?;
        }
        Ok(merged)
    })
}

/// Divides sacks by their sum: in doubles, and in decimals where one of them is a number of arbitrary precision, which a double
/// may not hold.
fn norm_sacks(all: &mut [Traverser]) -> Result<()> {
    let is_big = |sack: &Value| matches!(sack, Value::BigInteger(_) | Value::BigDecimal(_));
    let number = |sack: &Value| semantic::to_f64(sack).is_some();
    if !all.iter().any(|traverser| traverser.sack.as_deref().is_some_and(is_big)) {
        let mut total = 0.0;
        for traverser in &*all {
            let sack = traverser.sack.as_deref().and_then(semantic::to_f64).unwrap_or(0.0);
            total += sack * traverser.bulk as f64;
        }
        for sack in all.iter_mut().filter_map(|traverser| traverser.sack.as_deref_mut()) {
            if let Some(value) = semantic::to_f64(sack) {
                *sack = Value::Double(value / total);
            }
        }
        return Ok(());
    }
    let mut total = Value::BigDecimal(Arc::default());
    for traverser in &*all {
        if let Some(sack) = traverser.sack.as_deref().filter(|sack| number(sack)) {
            let times = Value::Long(i64::try_from(traverser.bulk).unwrap_or(i64::MAX));
            total = semantic::told(add(&total, &semantic::told(multiply(sack, &times))?))?;
        }
    }
    for sack in all.iter_mut().filter_map(|traverser| traverser.sack.as_deref_mut()) {
        if number(sack) {
            *sack = semantic::told(divide_exactly(sack, &total))?;
        }
    }
    Ok(())
}

/// Puts a traverser to an equal one; their sacks become one.
fn merge_sacks(
    merged: &mut Vec<Traverser>,
    traverser: Traverser,
    operator: vervet_gremlin::Operator,
) -> Result<()> {
    for other in merged.iter_mut() {
        if other.value == traverser.value
            && let (Some(a), Some(b)) = (&mut other.sack, &traverser.sack)
        {
            **a = super::transform::operate(operator, a, b)?;
            other.bulk += traverser.bulk;
            return Ok(());
        }
    }
    merged.push(traverser);
    Ok(())
}
