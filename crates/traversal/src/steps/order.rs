//! Steps that compare traversers: `order`, `dedup`, `sample`, `barrier`.

use super::make;
use crate::bulk::Bulk;
use crate::by::By;
use crate::compile::Compiler;
use crate::context::{Context, Random};
use crate::memory::Reservation;
use crate::modulated::Modulated;
use crate::scope::scoped;
use crate::semantic;
use crate::size::{VALUE_BYTES, bytes};
use crate::sort::sorted;
use crate::step::Step;
use crate::traverser::Traverser;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;
use vervet_gremlin::semantics::number::{add, counted, divide_exactly, multiply};
use vervet_gremlin::{Hashing, Map, Order, Pop, Scope, Set, Token, Value};
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

/// The sort keys of a value with their orders; `None`: a key is unproductive.
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

/// Sorts by the keys of each item.
fn sort<T>(
    keyed: Vec<(Vec<Value>, T)>,
    orders: &[Option<Order>],
    context: &Context<'_>,
) -> Result<Vec<(Vec<Value>, T)>> {
    sorted(keyed, context.control, |(a, _), (b, _)| compare(a, b, orders))
}

fn order(local: bool, mut by: Vec<(By, Option<Order>)>) -> Box<dyn Step> {
    if by.is_empty() {
        by.push((By::Identity, None));
    }
    let orders: Vec<Option<Order>> = by.iter().map(|(_, order)| *order).collect();
    if !local {
        return make::barrier(move |all, context| {
            let (mut keyed, mut held) = (Vec::with_capacity(all.len()), Reservation::default());
            for traverser in all {
                if let Some(keys) = keys_of(&mut by, &traverser.value, &traverser, context)? {
                    for key in &keys {
                        held.add(VALUE_BYTES + bytes(key, context.control)?, &context.memory)?;
                    }
                    keyed.push((keys, traverser));
                }
            }
            Ok(sort(keyed, &orders, context)?.into_iter().map(|(_, traverser)| traverser).collect())
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
            Ok(sort(keyed, &orders, context)?.into_iter().map(|(_, value)| value).collect())
        };
        Ok(Some(match &traverser.value {
            Value::Map(map) => {
                // `by` projects entries; Column.keys and Column.values project their parts.
                let entries =
                    map.iter().map(|(key, value)| Value::Entry(Arc::new((key.clone(), value.clone()))));
                let mut keyed = Vec::new();
                for entry in entries {
                    if let Some(keys) = entry_keys(&mut by, &entry, traverser, context)? {
                        keyed.push((keys, entry));
                    }
                }
                let mut all = Map::default();
                for (_, entry) in sort(keyed, &orders, context)? {
                    if let Value::Entry(entry) = entry {
                        all.insert(entry.0.clone(), entry.1.clone());
                    }
                }
                Value::map(all)
            }
            other => match semantic::expanded(other, context)? {
                Some(values) => Value::list(sorted(values, context)?),
                None => other.clone(),
            },
        }))
    })
}

/// As [`keys_of`], for a map entry: Column.keys and Column.values yield its single key and value.
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
            // Keys such as `T.id` sort by their names among the other keys.
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
                Some(values) => Value::set(values.into_iter().map(|(value, _)| value)),
                None => Value::set([traverser.value.clone()]),
            }))
        });
    }
    let by_one = by.pop();
    Box::new(Dedup { labels, by: by_one, seen: Set::default(), held: Reservation::default() })
}

/// Accounted size of a seen value, beside its contents.
const SEEN_BYTES: u64 = 64;

/// Deduplication. The set of seen values lasts over the rounds of a loop.
#[derive(Clone)]
struct Dedup {
    labels: Vec<Arc<str>>,
    by: Option<By>,
    seen: Set,
    /// Counts the set of seen values.
    held: Reservation,
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
            if !self.seen.contains(&key) {
                self.held.add(SEEN_BYTES + bytes(&key, context.control)?, &context.memory)?;
                self.seen.insert(key);
                traverser.bulk = Bulk::ONE;
                return Ok(Some(traverser));
            }
        }
        Ok(None)
    }

    fn reset(&mut self) {
        self.seen.clear();
        self.held.clear();
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
            let Some(mut values) = semantic::expanded(&traverser.value, context)? else {
                return Ok(Some(traverser.value.clone()));
            };
            if values.len() <= count {
                return Ok(Some(traverser.value.clone()));
            }
            let mut chosen = Vec::with_capacity(count);
            while chosen.len() < count {
                let place = random.below(u32::try_from(values.len()).unwrap_or(u32::MAX)) as usize;
                context.control.work(1 + (values.len() - place) / 64)?;
                chosen.push(values.remove(place));
            }
            Ok(Some(Value::list(chosen)))
        });
    }
    make::barrier(move |all, context| {
        let random = random.get_or_insert_with(|| Random::new(context.seed));
        let mut weighted: Vec<Weighted> = Vec::with_capacity(all.len());
        for traverser in all {
            let weight = match by.first_mut() {
                None => 1.0,
                Some(by) => match by.apply(&traverser, context)? {
                    Some(weight) => semantic::to_f64(&weight).unwrap_or(0.0).max(0.0),
                    None => continue,
                },
            };
            weighted.push(Weighted { weight, drawn: 0, traverser });
        }
        let there: u128 = weighted.iter().map(|one| one.traverser.bulk.wide()).sum();
        if there > count as u128 {
            if there <= DRAWN_EACH {
                sample_linear(&mut weighted, count, random, context)?;
            } else {
                sample_fenwick(&mut weighted, count, random, context)?;
            }
            return Ok(weighted.into_iter().filter_map(Weighted::into_traverser).collect());
        }
        Ok(weighted.into_iter().map(|one| one.traverser).collect())
    })
}

/// Maximum number of traversers, by bulk, for which a sample is drawn as TinkerPop does it.
const DRAWN_EACH: u128 = 1 << 10;

/// A candidate of a weighted sample.
struct Weighted {
    /// The weight per traverser of its bulk.
    weight: f64,
    drawn: u64,
    traverser: Traverser,
}

impl Weighted {
    fn into_traverser(self) -> Option<Traverser> {
        Bulk::new(self.drawn).map(|bulk| Traverser { bulk, ..self.traverser })
    }

    /// The part of its bulk not drawn yet.
    fn remaining(&self) -> u64 {
        self.traverser.bulk.get() - self.drawn
    }
}

/// Draws `count` of few candidates with TinkerPop's algorithm, so that a seed has the same result: each draw
/// is a linear walk with a random number per remaining candidate. It favours candidates at the front.
fn sample_linear(
    weighted: &mut [Weighted],
    count: usize,
    random: &mut Random,
    context: &Context<'_>,
) -> Result<()> {
    let mut total: f64 = weighted.iter().map(|one| one.weight * one.remaining() as f64).sum();
    let mut taken = 0;
    while taken < count && total > 0.0 {
        context.control.work(weighted.len())?;
        let mut running = 0.0;
        'draw: for one in weighted.iter_mut() {
            for _ in 0..one.remaining() {
                running += one.weight;
                if random.unit() <= running / total {
                    one.drawn += 1;
                    taken += 1;
                    total -= one.weight;
                    break 'draw;
                }
            }
        }
    }
    Ok(())
}

/// Draws `count` of many candidates, each with a probability proportional to its remaining weight.
///
/// # Cost
/// log2(n) steps per draw, for n traversers.
/// # Source
/// P. M. Fenwick, "A new data structure for cumulative frequency tables", Software: Practice and Experience
/// 24, 1994.
fn sample_fenwick(
    weighted: &mut [Weighted],
    count: usize,
    random: &mut Random,
    context: &Context<'_>,
) -> Result<()> {
    let mut sums = Fenwick::new(weighted.iter().map(|one| one.weight * one.remaining() as f64));
    for _ in 0..count {
        context.control.work(64)?;
        let total = sums.total();
        if total.is_nan() || total <= 0.0 {
            break;
        }
        let place = sums.find(random.unit() * total);
        // Rounded sums of doubles may end the search next to a remaining candidate.
        let has_some = |one: &Weighted| one.weight > 0.0 && one.remaining() > 0;
        let place = match weighted.get(place) {
            Some(one) if has_some(one) => place,
            _ => match weighted.iter().position(has_some) {
                Some(other) => other,
                None => break,
            },
        };
        weighted[place].drawn += 1;
        sums.add(place, -weighted[place].weight);
    }
    Ok(())
}

/// Prefix sums with point updates.
struct Fenwick(Vec<f64>);

impl Fenwick {
    fn new(numbers: impl Iterator<Item = f64>) -> Self {
        let mut sums: Vec<f64> = std::iter::once(0.0).chain(numbers).collect();
        for at in 1..sums.len() {
            let parent = at + (at & at.wrapping_neg());
            if parent < sums.len() {
                sums[parent] += sums[at];
            }
        }
        Self(sums)
    }

    fn total(&self) -> f64 {
        let (mut sum, mut at) = (0.0, self.0.len() - 1);
        while at > 0 {
            sum += self.0[at];
            at &= at - 1;
        }
        sum
    }

    fn add(&mut self, place: usize, more: f64) {
        let mut at = place + 1;
        while at < self.0.len() {
            self.0[at] += more;
            at += at & at.wrapping_neg();
        }
    }

    /// The first index whose inclusive prefix sum exceeds `sum`.
    fn find(&self, mut sum: f64) -> usize {
        let (mut at, mut step) = (0, self.0.len().next_power_of_two());
        while step > 0 {
            if let Some(below) = self.0.get(at + step).filter(|below| **below <= sum) {
                sum -= below;
                at += step;
            }
            step /= 2;
        }
        at
    }
}

fn barrier(norm: bool) -> Box<dyn Step> {
    make::barrier(move |all, context| {
        let mut line = super::transform::BulkQueue::default();
        let mut merged = Vec::new();
        let mut places: HashMap<Value, usize, Hashing> = HashMap::default();
        for traverser in all {
            context.tick()?;
            match (&traverser.sack, context.settings.sack_merge, traverser.path.is_none()) {
                (Some(_), Some(operator), true) => {
                    merge_sacks(&mut merged, &mut places, traverser, operator)?;
                }
                _ => line.push(traverser, &context.memory)?,
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

/// Divides sacks by their sum: in doubles, or in decimals if one of them is a number of arbitrary precision.
fn norm_sacks(all: &mut [Traverser]) -> Result<()> {
    let is_big = |sack: &Value| matches!(sack, Value::BigInteger(_) | Value::BigDecimal(_));
    let number = |sack: &Value| semantic::to_f64(sack).is_some();
    if !all.iter().any(|traverser| traverser.sack.as_deref().is_some_and(is_big)) {
        let mut total = 0.0;
        for traverser in &*all {
            let sack = traverser.sack.as_deref().and_then(semantic::to_f64).unwrap_or(0.0);
            total += sack * traverser.bulk.get() as f64;
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
            let times = counted(traverser.bulk.wide());
            total = semantic::map_error(add(&total, &semantic::map_error(multiply(sack, &times))?))?;
        }
    }
    for sack in all.iter_mut().filter_map(|traverser| traverser.sack.as_deref_mut()) {
        if number(sack) {
            *sack = semantic::map_error(divide_exactly(sack, &total))?;
        }
    }
    Ok(())
}

/// Merges a traverser into an equal one and combines their sacks. `places`: the index of the first of equal
/// traversers.
fn merge_sacks(
    merged: &mut Vec<Traverser>,
    places: &mut HashMap<Value, usize, Hashing>,
    traverser: Traverser,
    operator: vervet_gremlin::Operator,
) -> Result<()> {
    if let Some(other) = places.get(&traverser.value).and_then(|place| merged.get_mut(*place))
        && let (Some(a), Some(b)) = (&mut other.sack, &traverser.sack)
    {
        **a = super::transform::operate(operator, a, b)?;
        other.bulk = other.bulk.plus(traverser.bulk)?;
        return Ok(());
    }
    places.insert(traverser.value.clone(), merged.len());
    merged.push(traverser);
    Ok(())
}
