//! The arguments of `property()`, of which `addV` and `addE` take some over.

use crate::error::query_error;
use crate::semantic::error_text;
use vervet_gremlin::{Cardinality, Instruction, Token, Value};
use vervet_model::Result;

/// One key and value of a `property()`.
#[derive(Clone, Debug)]
pub(crate) struct Write<'b> {
    pub(crate) cardinality: Option<Cardinality>,
    pub(crate) key: &'b Value,
    pub(crate) value: &'b Value,
    /// Keys and values of its meta-properties.
    pub(crate) about: &'b [Value],
}

impl<'b> Write<'b> {
    /// All keys of a `property()`.
    pub(crate) fn all(instruction: &'b Instruction) -> Result<Vec<Self>> {
        let (cardinality, arguments) = match instruction.arguments.as_slice() {
            [Value::Token(Token::Cardinality(cardinality)), rest @ ..] => (Some(*cardinality), rest),
            all => (None, all),
        };
        match arguments {
            [Value::Null] => Ok(Vec::new()),
            [Value::Map(map)] => Ok(map
                .iter()
                .map(|(key, value)| match value {
                    Value::WithCardinality(with) => {
                        Self { cardinality: Some(with.0), key, value: &with.1, about: &[] }
                    }
                    value => Self { cardinality, key, value, about: &[] },
                })
                .collect()),
            [Value::Token(Token::T(_)), Value::Null, ..] => Err(query_error("Value of T cannot be null")),
            [key, value, about @ ..] => {
                if about.len() % 2 != 0 {
                    return Err(query_error(
                        "keyValues must contain key/value pairs, found key without matching value",
                    ));
                }
                Ok(vec![Self { cardinality, key, value, about }])
            }
            _ => Err(query_error("property() does not take these arguments")),
        }
    }

    /// Whether it is part of the step that adds the element.
    pub(crate) fn belongs_to(&self, adds: &str) -> Result<bool> {
        match (adds, self.cardinality) {
            ("addE", Some(cardinality @ (Cardinality::List | Cardinality::Set))) => {
                Err(query_error(format!(
                    "Multi-property cardinality of [{}] can only be set for a Vertex but is being used for addE() with key: {}",
                    cardinality.name(),
                    error_text(self.key)
                )))
            }
            ("addE", _) => Ok(true),
            ("addV", cardinality) => Ok(self.about.is_empty()
                && match self.key {
                    Value::Token(_) | Value::Traversal(_) => true,
                    _ => cardinality.is_none(),
                }),
            _ => Ok(false),
        }
    }
}
