//! Transform steps: `map`, `flatMap`, `local`, `unfold`, `fold`, `sideEffect`, `index`, `constant`,
//! `identity`.

use super::make;
use crate::analysis::gathers;
use crate::bulk::Bulk;
use crate::compile::Compiler;
use crate::context::Context;
use crate::error::query_error;
use crate::memory::{Memory, Reservation};
use crate::modulated::Modulated;
use crate::semantic::map_error;
use crate::size::{VALUE_BYTES, VALUES_MAX};
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
            make::flat_map(move |traverser, context, out| traversal.all(traverser, out, context))
        }
        ("local", [Value::Traversal(traversal)]) => {
            // Aggregating traversals run once for each traverser of a bulk.
            let one_each = step.arguments().iter().any(gathers);
            Box::new(Local { body: compiler.nested(traversal)?, one_each, running: false, others: None })
        }
        ("sideEffect", [Value::Traversal(traversal)]) => {
            let mut traversal = compiler.nested(traversal)?;
            make::with_each(move |traverser, context| {
                traversal.reset();
                traversal.start(traverser.clone(), context)?;
                while traversal.next(context)?.is_some() {}
                Ok(Some(traverser))
            })
        }
        ("unfold", []) => make::flat_map(|traverser, context, out| {
            match &traverser.value {
                Value::Map(map) => out.extend(
                    map.iter().map(|(key, value)| Value::Entry(Arc::new((key.clone(), value.clone())))),
                ),
                Value::Tree(tree) => out.extend(tree.children.iter().map(|(value, below)| {
                    Value::from(vervet_gremlin::Tree { children: vec![(value.clone(), below.clone())] })
                })),
                other => match crate::semantic::items(other) {
                    Some(values) => {
                        for (value, count) in values {
                            if let Some(bulk) = Bulk::new(count) {
                                out.push(value, bulk, &context.memory)?;
                            }
                        }
                    }
                    None => out.push_back(other.clone()),
                },
            }
            Ok(())
        }),
        ("fold", []) => make::reduce(
            |all: &mut Vec<Value>, traverser, held, context| {
                context.expand(&traverser.value, traverser.bulk.get(), all, held)
            },
            |all, _| Ok(Some(Value::list(all))),
        ),
        ("fold", [seed, Value::Token(Token::Operator(operator))]) => {
            let (seed, operator) = (seed.clone(), *operator);
            let at_end = seed.clone();
            make::reduce(
                move |state: &mut Option<Value>, traverser, held, context| {
                    let before = state.take().unwrap_or_else(|| seed.clone());
                    let after = operate_times(operator, before, &traverser.value, traverser.bulk, context)?;
                    held.set(crate::size::bytes(&after, context.control)?, &context.memory)?;
                    *state = Some(after);
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
            make::map(move |traverser, context| {
                let values = crate::semantic::expanded(&traverser.value, context)?
                    .unwrap_or_else(|| vec![traverser.value.clone()]);
                // Lists of a value and its index, or map entries.
                let mut reservation = Reservation::default();
                reservation.add(3 * VALUE_BYTES * values.len() as u64, &context.memory)?;
                context.control.work(values.len())?;
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
            return Err(query_error(message));
        }
    })
}

/// Applies an operator to an accumulator and a value.
pub(crate) fn operate(operator: Operator, before: &Value, value: &Value) -> Result<Value> {
    map_error(vervet_gremlin::semantics::operator::apply(operator, before.clone(), value))
}

/// Applies an operator to an accumulator and a value, repeated by its bulk.
pub(crate) fn operate_times(
    operator: Operator,
    before: Value,
    value: &Value,
    bulk: Bulk,
    context: &Context<'_>,
) -> Result<Value> {
    if operator == Operator::AddAll && matches!(before, Value::List(_)) {
        // Counted before the list takes the value.
        let more =
            vervet_gremlin::semantics::list::items(value).map_or(0, |items| items.size_hint().0 as u64);
        let mut reservation = Reservation::default();
        reservation.add(more.saturating_mul(bulk.get()).min(VALUES_MAX) * VALUE_BYTES, &context.memory)?;
    }
    map_error(vervet_gremlin::semantics::operator::apply_times(operator, before, value, bulk.get()))
}

/// `local`: the body runs for one traverser at a time.
#[derive(Clone)]
struct Local {
    body: Pipeline,
    one_each: bool,
    /// Whether the body is running for a traverser.
    running: bool,
    /// The rest of the bulk, for which the body has not run.
    others: Option<Traverser>,
}

impl Step for Local {
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        loop {
            if self.running
                && let Some(next) = self.body.next(context)?
            {
                return Ok(Some(next));
            }
            context.tick()?;
            self.running = false;
            self.body.reset();
            let next = match self.others.take() {
                Some(others) => Some(others),
                None => input.next(context)?,
            };
            let Some(mut traverser) = next else { return Ok(None) };
            if self.one_each {
                let others = traverser.bulk.minus(1);
                self.others = others.map(|bulk| Traverser { bulk, ..traverser.clone() });
                traverser.bulk = Bulk::ONE;
            }
            self.body.start(traverser, context)?;
            self.running = true;
        }
    }

    fn reset(&mut self) {
        self.body.reset();
        self.running = false;
        self.others = None;
    }

    fn moves(&self) -> bool {
        false
    }
}

/// Traverser queue that merges equal traversers without a path. Counts against the memory cap.
#[derive(Clone, Default)]
pub(crate) struct BulkQueue {
    queue: VecDeque<Traverser>,
    positions: std::collections::HashMap<Value, u64, vervet_gremlin::Hashing>,
    popped_count: u64,
    held: Reservation,
}

impl BulkQueue {
    /// Appends a traverser, or merges it into an equal one in the queue.
    ///
    /// # Errors
    /// The merged bulk overflows; the memory cap; cancellation.
    pub(crate) fn push(&mut self, traverser: Traverser, memory: &Memory<'_>) -> Result<()> {
        if traverser.path.is_none() && traverser.sack.is_none() {
            if let Some(place) = self.positions.get(&traverser.value)
                && let Some(waiting) = place
                    .checked_sub(self.popped_count)
                    .and_then(|place| usize::try_from(place).ok())
                    .and_then(|place| self.queue.get_mut(place))
                && waiting.merges_with(&traverser)
            {
                waiting.bulk = waiting.bulk.plus(traverser.bulk)?;
                return Ok(());
            }
            self.positions.insert(traverser.value.clone(), self.popped_count + self.queue.len() as u64);
        }
        self.held.add_traverser(&traverser, memory)?;
        self.queue.push_back(traverser);
        Ok(())
    }

    pub(crate) fn pop(&mut self) -> Option<Traverser> {
        let first = self.queue.pop_front()?;
        self.held.release_fraction(self.queue.len() + 1);
        if self.positions.get(&first.value) == Some(&self.popped_count) {
            self.positions.remove(&first.value);
        }
        self.popped_count += 1;
        Some(first)
    }

    pub(crate) fn peek(&self) -> Option<&Traverser> {
        self.queue.front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
