//! `range`, `limit`, `skip`, `tail`: by place in the stream, or in a list.
//!
//! Inside `repeat` the places are counted anew for each round.

use super::make;
use crate::compile::{Compiler, Modulated};
use crate::context::Context;
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
                    return Err(compiler.error(step.instruction, message));
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
        _ => return Err(compiler.error(step.instruction, format!("{}() needs other numbers", step.name()))),
    };
    if step.name() == "tail" {
        let count = usize::try_from(from).unwrap_or(0);
        return Ok(match local {
            true => make::map(move |traverser, _| Ok(Some(tail_of(&traverser.value, count)))),
            false => Box::new(Tail { count, last: None }),
        });
    }
    if to != -1 && from > to {
        let message = format!("Not a legal range: [{from}, {to}]");
        return Err(compiler.error(step.instruction, message));
    }
    let (from, to) = (u64::try_from(from).unwrap_or(0), u64::try_from(to).ok());
    Ok(match local {
        true => make::map(move |traverser, _| Ok(Some(range_of(&traverser.value, from, to)))),
        false => Box::new(Range { from, to, in_loop: compiler.loops > 0, seen: FxHashMap::default() }),
    })
}

/// Items of a collection, and how to make one of the kind again. What is no collection is left as it is.
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
    /// By round of the loop.
    seen: FxHashMap<u32, u64>,
}

impl Step for Range {
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        loop {
            // Outside loops there is one count, and when it is full nothing more has to be asked for.
            if !self.in_loop && self.to.is_some_and(|to| self.seen.get(&0).copied().unwrap_or(0) >= to) {
                return Ok(None);
            }
            let Some(mut traverser) = input.next(context)? else { return Ok(None) };
            let round = if self.in_loop { traverser.loops(None).unwrap_or(0) } else { 0 };
            let seen = self.seen.entry(round).or_default();
            let (start, end) = (*seen, *seen + traverser.bulk);
            *seen = end;
            let low = start.max(self.from);
            let high = self.to.map_or(end, |to| end.min(to));
            if low < high {
                traverser.bulk = high - low;
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
struct Tail {
    count: usize,
    last: Option<VecDeque<Traverser>>,
}

impl Step for Tail {
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        if self.last.as_ref().is_none_or(VecDeque::is_empty) {
            let mut last: VecDeque<Traverser> = VecDeque::new();
            let mut held: u64 = 0;
            while let Some(traverser) = input.next(context)? {
                held += traverser.bulk;
                last.push_back(traverser);
                context.hold(1)?;
                while let Some(first) = last.front_mut() {
                    let over = held.saturating_sub(self.count as u64);
                    if over == 0 {
                        break;
                    }
                    let gone = over.min(first.bulk);
                    first.bulk -= gone;
                    held -= gone;
                    if first.bulk == 0 {
                        last.pop_front();
                        context.control.shrink(128);
                    }
                }
            }
            self.last = Some(last);
        }
        Ok(self.last.as_mut().and_then(VecDeque::pop_front))
    }

    fn reset(&mut self) {
        self.last = None;
    }

    fn moves(&self) -> bool {
        false
    }
}
