//! The `with(…)` options of graph algorithms.

use super::edges::{Arcs, follow};
use crate::compile::Compiler;
use crate::error::query_error;
use crate::modulated::Modulated;
use std::sync::Arc;
use vervet_graph::algorithm::Follow;
use vervet_gremlin::{Token, Value};
use vervet_model::{Error, ErrorKind, Result};

/// The options of a step: names and values of `with(…)`.
pub(super) struct Options<'b> {
    class: &'static str,
    all: Vec<(&'b str, Option<&'b Value>)>,
}

impl<'b> Options<'b> {
    pub(super) fn of(step: &Modulated<'b>, class: &'static str, known: &[&str]) -> Result<Self> {
        let mut all = Vec::with_capacity(step.withs.len());
        for with in &step.withs {
            let (name, value) = match with.arguments.as_slice() {
                [Value::String(name)] => (name, None),
                [Value::String(name), value] => (name, Some(value)),
                _ => return Err(query_error("with() does not take these arguments")),
            };
            let short = name.rsplit('.').next().unwrap_or_default();
            if !known.contains(&short) {
                let message = format!("{}() has no option {name}", step.name());
                return Err(query_error(message).with_hint(format!("it has {}", known.join(", "))));
            }
            all.push((short, value));
        }
        Ok(Self { class, all })
    }

    /// The last value of an option.
    pub(super) fn get(&self, name: &str) -> Option<Option<&'b Value>> {
        self.all.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    pub(super) fn wrong<T>(&self, name: &str, wanted: &str) -> Result<T> {
        let message = format!("{}.{name} requires {wanted} as its argument", self.class);
        Err(Error::new(ErrorKind::Query, message))
    }

    pub(super) fn property(&self, default: &str) -> Result<Arc<str>> {
        match self.get("propertyName") {
            None => Ok(default.into()),
            Some(Some(Value::String(name))) => Ok(name.clone()),
            Some(_) => self.wrong("propertyName", "a String"),
        }
    }

    pub(super) fn times(&self, default: u32) -> Result<u32> {
        match self.get("times") {
            None => Ok(default),
            Some(value) => {
                match value.and_then(Value::as_integer).and_then(|times| u32::try_from(times).ok()) {
                    Some(times) => Ok(times),
                    None => self.wrong("times", "an Integer that is not negative"),
                }
            }
        }
    }

    pub(super) fn arcs(&self, default: Follow, compiler: &mut Compiler) -> Result<Arcs> {
        match self.get("edges") {
            None => Arcs::new(default, Vec::new(), compiler),
            Some(Some(Value::Traversal(traversal))) => Arcs::of_traversal(traversal, compiler),
            Some(Some(Value::Token(Token::Direction(direction)))) if self.class == "ShortestPath" => {
                Arcs::new(follow(*direction), Vec::new(), compiler)
            }
            Some(_) if self.class == "ShortestPath" => self.wrong("edges", "a Traversal or a Direction"),
            Some(_) => self.wrong("edges", "a Traversal"),
        }
    }
}
