//! Range steps: `range`, `limit`, `skip`, `tail`, by position in the stream or in a list.
//!
//! Inside `repeat` each round has its own positions.

use super::make;
use crate::bulk::Bulk;
use crate::compile::Compiler;
use crate::context::Context;
use crate::error::query_error;
use crate::memory::Reservation;
use crate::modulated::Modulated;
use crate::step::{Input, Step};
use crate::traverser::Traverser;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use vervet_gremlin::{Map, Scope, Set, Token, Value};
use vervet_model::Result;

pub(crate) fn build(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let mut local = false;
    let mut numbers = Vec::new();
    for argument in step.arguments() {
        match argument {
            Value::Token(Token::Scope(scope)) => local = *scope == Scope::Local,
            argument => match argument.as_integer() {
                Some(number) => numbers.push(number),
                None => {
                    let message = format!("{}() needs numbers", step.name());
                    return Err(query_error(message));
                }
            },
        }
    }
    let (from, to) = match (step.name(), numbers.as_slice()) {
        ("range", [from, to]) => (*from, *to),
        ("limit", [to]) => (0, *to),
        ("skip", [from]) => (*from, -1),
        ("tail", []) => (1, -1),
        ("tail", [count]) => (*count, -1),
        _ => return Err(query_error(format!("{}() got invalid numbers", step.name()))),
    };
    if step.name() == "tail" {
        let count = u64::try_from(from).unwrap_or(0);
        let items = usize::try_from(count).unwrap_or(usize::MAX);
        return Ok(match local {
            true => make::map(move |traverser, _| Ok(Some(tail_of(&traverser.value, items)))),
            false => Box::new(TailStep { count, last: None, held: Reservation::default() }),
        });
    }
    if to != -1 && from > to {
        let message = format!("Not a legal range: [{from}, {to}]");
        return Err(query_error(message));
    }
    let (from, to) = (u64::try_from(from).unwrap_or(0), u64::try_from(to).ok());
    Ok(match local {
        true => make::map(move |traverser, _| Ok(Some(range_of(&traverser.value, from, to)))),
        false => Box::new(Range { from, to, in_loop: compiler.loops > 0, seen: FxHashMap::default() }),
    })
}

/// A range of a collection, of the same type; other values are unchanged.
fn range_of(value: &Value, from: u64, to: Option<u64>) -> Value {
    let (from, to) =
        (usize::try_from(from).unwrap_or(usize::MAX), to.and_then(|to| usize::try_from(to).ok()));
    let count = to.map_or(usize::MAX, |to| to - from);
    match value {
        Value::List(values) => Value::list(values.iter().skip(from).take(count).cloned().collect()),
        Value::Set(values) => {
            Value::Set(Arc::new(values.iter().skip(from).take(count).cloned().collect::<Set>()))
        }
        Value::Map(map) => {
            let items = map.iter().skip(from).take(count);
            Value::map(items.map(|(key, value)| (key.clone(), value.clone())).collect::<Map>())
        }
        Value::Path(path) => {
            let mut part = path.as_ref().clone();
            part.objects = part.objects.into_iter().skip(from).take(count).collect();
            part.labels = part.labels.into_iter().skip(from).take(count).collect();
            part.into()
        }
        value => value.clone(),
    }
}

fn tail_of(value: &Value, count: usize) -> Value {
    let length = match value {
        Value::List(values) => values.len(),
        Value::Set(values) => values.len(),
        Value::Map(map) => map.len(),
        Value::Path(path) => path.objects.len(),
        _ => return value.clone(),
    };
    range_of(value, length.saturating_sub(count) as u64, None)
}

#[derive(Clone)]
struct Range {
    from: u64,
    to: Option<u64>,
    in_loop: bool,
    /// The number of traversers seen, by round of the loop.
    seen: FxHashMap<u32, u128>,
}

impl Step for Range {
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        loop {
            // Outside loops there is one count; once it reaches the limit, no more input is pulled.
            let seen = self.seen.get(&0).copied().unwrap_or(0);
            if !self.in_loop && self.to.is_some_and(|to| seen >= to.into()) {
                return Ok(None);
            }
            let Some(mut traverser) = input.next(context)? else { return Ok(None) };
            let round = if self.in_loop { traverser.loops(None).unwrap_or(0) } else { 0 };
            let seen = self.seen.entry(round).or_default();
            let (start, end) = (*seen, *seen + traverser.bulk.wide());
            *seen = end;
            let low = start.max(self.from.into());
            let high = self.to.map_or(end, |to| end.min(to.into()));
            // A part of a bulk fits a bulk.
            let kept = high.checked_sub(low).and_then(|kept| u64::try_from(kept).ok()).and_then(Bulk::new);
            if let Some(kept) = kept {
                traverser.bulk = kept;
                return Ok(Some(traverser));
            }
        }
    }

    fn reset(&mut self) {
        self.seen.clear();
    }

    fn moves(&self) -> bool {
        false
    }
}

#[derive(Clone)]
struct TailStep {
    count: u64,
    last: Option<VecDeque<Traverser>>,
    held: Reservation,
}

impl Step for TailStep {
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        if self.last.as_ref().is_none_or(VecDeque::is_empty) {
            let mut last: VecDeque<Traverser> = VecDeque::new();
            let mut kept: u128 = 0;
            self.held.clear();
            while let Some(traverser) = input.next(context)? {
                kept += traverser.bulk.wide();
                self.held.add_traverser(&traverser, &context.memory)?;
                last.push_back(traverser);
                while let Some(over) = kept.checked_sub(self.count.into()).filter(|over| *over > 0)
                    && let Some(first) = last.front_mut()
                {
                    let over = u64::try_from(over).unwrap_or(u64::MAX);
                    match first.bulk.minus(over) {
                        Some(left) => {
                            first.bulk = left;
                            kept -= u128::from(over);
                        }
                        None => {
                            kept -= first.bulk.wide();
                            self.held.release_fraction(last.len());
                            last.pop_front();
                        }
                    }
                }
            }
            self.last = Some(last);
        }
        Ok(self.last.as_mut().and_then(VecDeque::pop_front))
    }

    fn reset(&mut self) {
        self.last = None;
        self.held.clear();
    }

    fn moves(&self) -> bool {
        false
    }
}
