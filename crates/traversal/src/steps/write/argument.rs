//! Arguments of mutating steps: evaluation, and validation of labels and keys.

use crate::compile::Compiler;
use crate::context::Context;
use crate::error::query_error;
use crate::semantic::error_text;
use crate::step::Pipeline;
use crate::traverser::{Traverser, start_value};
use std::sync::Arc;
use vervet_gremlin::{T, Token, Value};
use vervet_model::{Error, Result};

/// An argument: a constant, or a traversal that computes it.
#[derive(Clone)]
pub(super) enum WriteArgument {
    Value(Value),
    Traversal(Pipeline),
}

impl WriteArgument {
    pub(super) fn new(argument: &Value, compiler: &mut Compiler) -> Result<Self> {
        Ok(match argument {
            Value::Traversal(traversal) => Self::Traversal(compiler.nested(traversal)?),
            value => Self::Value(value.clone()),
        })
    }

    pub(super) fn get(&mut self, traverser: &Traverser, context: &mut Context<'_>) -> Result<Value> {
        match self {
            Self::Value(value) => Ok(value.clone()),
            Self::Traversal(traversal) => {
                traversal.first(traverser, context)?.ok_or_else(|| no_value(&traverser.value))
            }
        }
    }
}

pub(super) fn no_value(from: &Value) -> Error {
    let from = if *from == start_value() { "the start".to_owned() } else { error_text(from) };
    query_error(format!("The provided traverser does not map to a value: {from}"))
}

/// Validates an element label.
pub(super) fn legal_label(label: Value) -> Result<Arc<str>> {
    match label {
        Value::String(label) if label.is_empty() => Err(query_error("Label can not be empty")),
        Value::String(label) if label.starts_with('~') => {
            Err(query_error(format!("Label can not be a hidden key: {label}")))
        }
        Value::String(label) => Ok(label),
        Value::Null => Err(query_error("Label can not be null")),
        other => Err(query_error(format!("a label must be a String, found a {}", other.type_name()))),
    }
}

/// Validates a property key.
pub(super) fn legal_key(key: Value) -> Result<Arc<str>> {
    match key {
        Value::String(key) if key.is_empty() => Err(query_error("Property key can not be the empty string")),
        Value::String(key) if key.starts_with('~') => {
            Err(query_error(format!("Property key can not be a hidden key: {key}")))
        }
        Value::String(key) => Ok(key),
        Value::Null => Err(query_error("Property key can not be null")),
        Value::Token(Token::T(token)) => {
            Err(query_error(format!("T.{} is immutable on existing elements", token.name())))
        }
        other => {
            Err(query_error(format!("the key of a property must be a String, found a {}", other.type_name())))
        }
    }
}

/// Whether a map key is this token, as opposed to a property key.
pub(super) fn is_token(key: &Value, token: T) -> bool {
    *key == Value::Token(Token::T(token))
}
