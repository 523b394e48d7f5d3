//! Numeric reductions: `count`, `sum`, `min`, `max`, `mean`, global or local.

use super::make;
use crate::compile::Compiler;
use crate::error::query_error;
use crate::modulated::Modulated;
use crate::semantic::map_error;
use crate::step::{Node, Step};
use crate::traverser::Traverser;
use vervet_gremlin::semantics::number::{Extreme, Mean, Sum, counted};
use vervet_gremlin::{Scope, Token, Value};
use vervet_model::Result;

/// The kind of reduction.
#[derive(Clone, Copy)]
enum Kind {
    Sum,
    Min,
    Max,
    Mean,
}

/// The accumulator of a reduction.
#[derive(Clone, Default)]
enum State {
    #[default]
    Nothing,
    Sum(Sum),
    Mean(Mean),
    Extreme(Extreme),
}

impl State {
    fn push(&mut self, kind: Kind, value: &Value, count: u64) -> Result<()> {
        if let Self::Nothing = self {
            *self = match kind {
                Kind::Sum => Self::Sum(Sum::default()),
                Kind::Mean => Self::Mean(Mean::default()),
                Kind::Min => Self::Extreme(Extreme::least()),
                Kind::Max => Self::Extreme(Extreme::greatest()),
            };
        }
        match self {
            Self::Nothing => Ok(()),
            Self::Sum(sum) => map_error(sum.push(value, count)),
            Self::Mean(mean) => map_error(mean.push(value, count)),
            Self::Extreme(extreme) => map_error(extreme.push(value)),
        }
    }

    fn finish(self) -> Result<Option<Value>> {
        match self {
            Self::Nothing => Ok(None),
            Self::Sum(sum) => Ok(sum.finish()),
            Self::Mean(mean) => map_error(mean.finish()),
            Self::Extreme(extreme) => Ok(extreme.finish()),
        }
    }
}

pub(crate) fn build(step: &Modulated<'_>) -> Result<Box<dyn Step>> {
    let local = match step.arguments() {
        [] => false,
        [Value::Token(Token::Scope(scope))] => *scope == Scope::Local,
        _ => {
            let message = format!("{}() takes only a scope", step.name());
            return Err(query_error(message));
        }
    };
    let kind = match step.name() {
        "count" => return Ok(count(local)),
        "sum" => Kind::Sum,
        "min" => Kind::Min,
        "max" => Kind::Max,
        _ => Kind::Mean,
    };
    if local {
        return Ok(make::map(move |traverser, _| {
            let mut state = State::Nothing;
            let Some(values) = crate::semantic::items(&traverser.value) else {
                state.push(kind, &traverser.value, 1)?;
                return state.finish();
            };
            for (value, count) in values.iter().filter(|(_, count)| *count > 0) {
                state.push(kind, value, *count)?;
            }
            state.finish()
        }));
    }
    Ok(make::reduce(
        move |state: &mut State, traverser: Traverser, _, _| {
            state.push(kind, &traverser.value, traverser.bulk.get())
        },
        |state, _| state.finish(),
    ))
}

/// A count is a long, or an integer of arbitrary precision beyond 64 bits.
fn count(local: bool) -> Box<dyn Step> {
    if local {
        return make::map(move |traverser, _| {
            Ok(Some(counted(match &traverser.value {
                Value::Bulk(bulk) => bulk.values().map(|count| u128::from(*count)).sum(),
                Value::Tree(tree) => tree.children.len() as u128,
                other => length(other) as u128,
            })))
        });
    }
    make::reduce(
        |count: &mut u128, traverser, _, _| {
            // 128 bits hold 2^64 traversers of the maximum bulk.
            *count += traverser.bulk.wide();
            Ok(())
        },
        |count, _| Ok(Some(counted(count))),
    )
}

/// The number of items of a collection; 1 for other values.
fn length(value: &Value) -> usize {
    match value {
        Value::List(values) => values.len(),
        Value::Set(values) => values.len(),
        Value::Map(map) => map.len(),
        Value::Path(path) => path.objects.len(),
        _ => 1,
    }
}

/// Replaces the first step of a traversal by the step that counts its results without a list of them, if it
/// has one: `E().count()`.
pub(super) fn replace_by_count(step: &Modulated<'_>, nodes: &mut [Node], compiler: &Compiler) -> bool {
    let [node] = nodes else { return false };
    if !step.arguments().is_empty() || !node.labels.is_empty() || compiler.is_nested() {
        return false;
    }
    let Some(count) = node.step.count() else { return false };
    node.step = count;
    true
}
