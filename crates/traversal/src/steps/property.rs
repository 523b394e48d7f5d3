//! Property steps: ids, labels, keys, values and property maps of elements.

use super::make;
use crate::by::By;
use crate::compile::Compiler;
use crate::condition::Condition;
use crate::context::Context;
use crate::error::query_error;
use crate::graph::element::token_value;
use crate::graph::read;
use crate::modulated::Modulated;
use crate::step::Step;
use crate::traverser::Traverser;
use indexmap::IndexMap;
use std::sync::Arc;
use vervet_gremlin::{Direction, EdgeKey, Hashing, Map, T, Token, Value};
use vervet_model::{Error, ErrorKind, Result};

pub(crate) fn build(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let keys = step.texts();
    let nothing = keys.is_empty()
        && !step.arguments().is_empty()
        && step.arguments().iter().all(|argument| matches!(argument, Value::Null));
    let token =
        |token: T| make::map(move |traverser, context| required(&traverser.value, token, context).map(Some));
    Ok(match step.name() {
        "id" => token(T::Id),
        "label" => token(T::Label),
        "key" => token(T::Key),
        "value" => token(T::Value),
        "element" => make::map(|traverser, _| {
            Ok(Some(match &traverser.value {
                Value::VertexProperty(property) => read::vertex_value(property.key.vertex),
                Value::Property(property) => property.element.clone(),
                other => return Err(not_element("element()", other)),
            }))
        }),
        "values" | "properties" => {
            let only_values = step.name() == "values";
            let mut test = match compiler.strategies.vertex_properties.clone() {
                Some(strategy) => Some(Condition::Traversal(compiler.strategy_test(&strategy)?)),
                None => None,
            };
            make::flat_map(move |traverser, context, out| {
                if !is_element(&traverser.value) {
                    return Err(not_element(
                        if only_values { "values()" } else { "properties()" },
                        &traverser.value,
                    ));
                }
                if nothing {
                    return Ok(());
                }
                let test = match &traverser.value {
                    Value::Vertex(_) => test.as_mut(),
                    _ => None,
                };
                let mut found = Vec::new();
                context.read(|snapshot, names| {
                    found.clear();
                    if only_values && test.is_none() {
                        read::values(snapshot, names, &traverser.value, &keys, &mut |value| found.push(value))
                    } else {
                        read::properties(snapshot, names, &traverser.value, &keys, &mut |value| {
                            found.push(value)
                        })
                    }
                })?;
                let Some(test) = test else {
                    out.extend(found);
                    return Ok(());
                };
                for property in found {
                    if test.test(&traverser.at(property.clone()), context)? {
                        out.push_back(match property {
                            Value::VertexProperty(property) if only_values => property.value.clone(),
                            property => property,
                        });
                    }
                }
                Ok(())
            })
        }
        "propertyMap" | "valueMap" | "elementMap" => maps(step, keys, compiler)?,
        other => return Err(query_error(format!("{other}() is not a property"))),
    })
}

fn is_element(value: &Value) -> bool {
    matches!(value, Value::Vertex(_) | Value::Edge(_) | Value::VertexProperty(_))
}

fn not_element(step: &str, value: &Value) -> Error {
    let message = format!("{step} needs an element, found a {}", value.type_name());
    Error::new(ErrorKind::Query, message)
}

/// As [`token_value`], but a missing value is an error.
fn required(value: &Value, token: T, context: &mut Context<'_>) -> Result<Value> {
    token_value(value, token, context)?.ok_or_else(|| not_element(&format!("{}()", token.name()), value))
}

/// `propertyMap`, `valueMap`, `elementMap`.
fn maps(step: &Modulated<'_>, keys: Vec<Arc<str>>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let name = step.name().to_owned();
    let mut tokens = (false, false);
    if let Some(Value::Boolean(true)) = step.arguments().first() {
        tokens = (true, true);
    }
    for with in &step.withs {
        match with.arguments.as_slice() {
            [Value::String(option)] if option.ends_with("tokens") => tokens = (true, true),
            [Value::String(option), Value::Boolean(on)] if option.ends_with("tokens") => tokens = (*on, *on),
            [Value::String(option), bits] if option.ends_with("tokens") => {
                // WithOptions: ids 1, labels 2, keys 4, values 8, all 15.
                let bits = bits.as_integer().unwrap_or(0);
                tokens = (bits & 1 != 0, bits & 2 != 0);
                if bits & 12 != 0 {
                    tokens = (
                        tokens.0 || bits & 4 != 0 && bits & 3 == 0,
                        tokens.1 || bits & 8 != 0 && bits & 3 == 0,
                    );
                }
            }
            _ => {}
        }
    }
    let mut by = compiler.bys(step)?;
    let mut test = match compiler.strategies.vertex_properties.clone() {
        Some(strategy) => Some(Condition::Traversal(compiler.strategy_test(&strategy)?)),
        None => None,
    };
    Ok(make::map(move |traverser, context| {
        let element = &traverser.value;
        if !is_element(element) {
            return Err(not_element(&format!("{name}()"), element));
        }
        let mut map = Map::default();
        let token = |token: T| Value::Token(Token::T(token));
        if name == "elementMap" {
            map.insert(token(T::Id), required(element, T::Id, context)?);
            if let Value::VertexProperty(property) = element {
                map.insert(token(T::Key), Value::String(property.label.clone()));
                map.insert(token(T::Value), property.value.clone());
            } else {
                map.insert(token(T::Label), required(element, T::Label, context)?);
            }
            if let Value::Edge(edge) = element {
                ends(edge.key, &mut map, context)?;
            }
        } else {
            if tokens.0 {
                map.insert(token(T::Id), required(element, T::Id, context)?);
            }
            if tokens.1 {
                if let Value::VertexProperty(property) = element {
                    map.insert(token(T::Key), Value::String(property.label.clone()));
                    map.insert(token(T::Value), property.value.clone());
                } else {
                    map.insert(token(T::Label), required(element, T::Label, context)?);
                }
            }
        }
        let mut found: Vec<Value> = Vec::new();
        context.read(|snapshot, names| {
            found.clear();
            read::properties(snapshot, names, element, &keys, &mut |property| found.push(property))
        })?;
        let mut lists: IndexMap<Value, Vec<Value>, Hashing> = IndexMap::default();
        let is_vertex = matches!(element, Value::Vertex(_));
        for property in found {
            if let (Some(test), true) = (&mut test, is_vertex)
                && !test.test(&traverser.at(property.clone()), context)?
            {
                continue;
            }
            let (key, value) = match &property {
                Value::VertexProperty(property) => (property.label.clone(), property.value.clone()),
                Value::Property(property) => (property.key.clone(), property.value.clone()),
                _ => continue,
            };
            let key = Value::String(key);
            let value = if name == "propertyMap" { property } else { value };
            context.control.work(1)?;
            lists.entry(key).or_default().push(value);
        }
        for (key, mut values) in lists {
            let value = if name == "elementMap" {
                // The last of several values.
                values.pop().unwrap_or_default()
            } else if is_vertex {
                Value::list(values)
            } else {
                values.pop().unwrap_or_default()
            };
            map.insert(key, value);
        }
        apply_bys(&mut map, &mut by, traverser, context)?;
        Ok(Some(Value::map(map)))
    }))
}

/// Projects the values of a map by the `by` modulators in rotation.
fn apply_bys(map: &mut Map, by: &mut [By], traverser: &Traverser, context: &mut Context<'_>) -> Result<()> {
    if by.is_empty() {
        return Ok(());
    }
    let mut changed = Map::default();
    for (i, (key, value)) in std::mem::take(map).into_iter().enumerate() {
        let place = i % by.len();
        // An unproductive `by` removes the key.
        if let Some(value) = by[place].of(&value, traverser, context)? {
            changed.insert(key, value);
        }
    }
    *map = changed;
    Ok(())
}

/// The ends of an edge in the form of `elementMap`.
fn ends(edge: EdgeKey, map: &mut Map, context: &mut Context<'_>) -> Result<()> {
    for (direction, key) in [(Direction::In, edge.target), (Direction::Out, edge.source)] {
        let vertex = read::vertex_value(key);
        let mut end = Map::default();
        for token in [T::Id, T::Label] {
            end.insert(Value::Token(Token::T(token)), required(&vertex, token, context)?);
        }
        map.insert(Value::Token(Token::Direction(direction)), Value::map(end));
    }
    Ok(())
}
