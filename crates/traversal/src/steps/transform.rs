//! `map`, `flatMap`, `local`, `unfold`, `fold`, `sideEffect`, `index`, `constant`, `identity`.

use super::branch::gathers;
use super::make;
use crate::compile::{Compiler, Modulated};
use crate::context::Context;
use crate::semantic::told;
use crate::step::{Input, Pipeline, Step};
use crate::traverser::Traverser;
use std::collections::VecDeque;
use std::sync::Arc;
use vervet_gremlin::{Map, Operator, Token, Value};
use vervet_model::Result;

pub(crate) fn build(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let arguments = step.arguments();
    Ok(match (step.name(), arguments) {
        ("identity", []) => Box::new(make::identity()),
        ("constant", [value]) => Box::new(make::constant(value.clone())),
        ("map", [Value::Traversal(traversal)]) => {
            let mut traversal = compiler.nested(traversal)?;
            make::map(move |traverser, context| traversal.first(traverser, context))
        }
        ("flatMap", [Value::Traversal(traversal)]) => {
            let mut traversal = compiler.nested(traversal)?;
            make::flat_map(move |traverser, context, out| {
                out.extend(traversal.all(traverser, context)?);
                Ok(())
            })
        }
        ("local", [Value::Traversal(traversal)]) => {
            // What counts or gathers does so for each of several equal traversers.
            let one_each = step.arguments().iter().any(gathers);
            Box::new(Local { body: compiler.nested(traversal)?, one_each, current: None })
        }
        ("sideEffect", [Value::Traversal(traversal)]) => {
            let mut traversal = compiler.nested(traversal)?;
            make::with_each(move |traverser, context| {
                traversal.reset();
                traversal.start(traverser.clone());
                while traversal.next(context)?.is_some() {}
                Ok(Some(traverser))
            })
        }
        ("unfold", []) => make::flat_map(|traverser, _, out| {
            match &traverser.value {
                Value::Map(map) => out.extend(
                    map.iter().map(|(key, value)| Value::Entry(Arc::new((key.clone(), value.clone())))),
                ),
                Value::Bulk(bulk) => {
                    for (value, count) in bulk.iter() {
                        out.extend((0..*count).map(|_| value.clone()));
                    }
                }
                Value::Tree(tree) => out.extend(tree.children.iter().map(|(value, below)| {
                    Value::from(vervet_gremlin::Tree { children: vec![(value.clone(), below.clone())] })
                })),
                other => match crate::semantic::items(other) {
                    Some(values) => out.extend(values),
                    None => out.push_back(other.clone()),
                },
            }
            Ok(())
        }),
        ("fold", []) => make::reduce(
            |all: &mut Vec<Value>, traverser, context| {
                for _ in 0..traverser.bulk {
                    context.hold(1)?;
                    all.push(traverser.value.clone());
                }
                Ok(())
            },
            |all, _| Ok(Some(Value::list(all))),
        ),
        ("fold", [seed, Value::Token(Token::Operator(operator))]) => {
            let (seed, operator) = (seed.clone(), *operator);
            let at_end = seed.clone();
            make::reduce(
                move |state: &mut Option<Value>, traverser, _| {
                    for _ in 0..traverser.bulk {
                        let before = state.take().unwrap_or_else(|| seed.clone());
                        *state = Some(operate(operator, &before, &traverser.value)?);
                    }
                    Ok(())
                },
                move |state, _| Ok(Some(state.unwrap_or_else(|| at_end.clone()))),
            )
        }
        ("index", []) => {
            let mut as_map = false;
            for with in &step.withs {
                if let [Value::String(option), kind] = with.arguments.as_slice()
                    && option.ends_with("indexer")
                {
                    as_map = kind.as_integer() == Some(1);
                }
            }
            make::map(move |traverser, _| {
                let values =
                    crate::semantic::items(&traverser.value).unwrap_or_else(|| vec![traverser.value.clone()]);
                let number = |i: usize| Value::Int(i32::try_from(i).unwrap_or(i32::MAX));
                Ok(Some(if as_map {
                    let indexed = values.into_iter().enumerate();
                    Value::map(indexed.map(|(i, value)| (number(i), value)).collect::<Map>())
                } else {
                    let indexed = values.into_iter().enumerate();
                    Value::list(indexed.map(|(i, value)| Value::list(vec![value, number(i)])).collect())
                }))
            })
        }
        _ => {
            let message = format!("{}() does not take these arguments", step.name());
            return Err(compiler.error(step.instruction, message));
        }
    })
}

/// A further value put to one.
pub(crate) fn operate(operator: Operator, before: &Value, value: &Value) -> Result<Value> {
    told(vervet_gremlin::semantics::operator::apply(operator, before.clone(), value))
}

/// A traversal for each traverser by itself.
#[derive(Clone)]
struct Local {
    body: Pipeline,
    one_each: bool,
    /// The traverser that runs, with how often it has to run after that.
    current: Option<Traverser>,
}

impl Step for Local {
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        loop {
            if self.current.is_some()
                && let Some(next) = self.body.next(context)?
            {
                return Ok(Some(next));
            }
            self.body.reset();
            let again = self.current.take().filter(|traverser| traverser.bulk > 0);
            let next = match again {
                Some(again) => Some(again),
                None => input.next(context)?,
            };
            let Some(mut traverser) = next else { return Ok(None) };
            if self.one_each {
                self.body.start(traverser.single());
                traverser.bulk -= 1;
            } else {
                self.body.start(traverser.clone());
                traverser.bulk = 0;
            }
            self.current = Some(traverser);
        }
    }

    fn reset(&mut self) {
        self.body.reset();
        self.current = None;
    }

    fn moves(&self) -> bool {
        false
    }
}

/// Traversers that wait in line; equal ones without a path become one.
#[derive(Clone, Default)]
pub(crate) struct Line {
    queue: VecDeque<Traverser>,
    places: std::collections::HashMap<Value, u64, vervet_gremlin::Hashing>,
    gone: u64,
}

impl Line {
    pub(crate) fn push(&mut self, traverser: Traverser) {
        if traverser.path.is_none() && traverser.sack.is_none() {
            if let Some(place) = self.places.get(&traverser.value)
                && let Some(waiting) = place
                    .checked_sub(self.gone)
                    .and_then(|place| usize::try_from(place).ok())
                    .and_then(|place| self.queue.get_mut(place))
                && waiting.merges_with(&traverser)
            {
                waiting.bulk = waiting.bulk.saturating_add(traverser.bulk);
                return;
            }
            self.places.insert(traverser.value.clone(), self.gone + self.queue.len() as u64);
        }
        self.queue.push_back(traverser);
    }

    pub(crate) fn pop(&mut self) -> Option<Traverser> {
        let first = self.queue.pop_front()?;
        if self.places.get(&first.value) == Some(&self.gone) {
            self.places.remove(&first.value);
        }
        self.gone += 1;
        Some(first)
    }

    pub(crate) fn peek(&self) -> Option<&Traverser> {
        self.queue.front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
