//! `has` and related filters on elements.
//!
//! After `V()` or `E()` they become conditions of that step, for index look-ups; after `out`, `in` and `both`
//! a label test is fused into the step, which tests all neighbours together.

use super::make::{self, Test};
use super::start::{Elements, label_names};
use super::walk::Neighbours;
use crate::compile::Compiler;
use crate::context::Context;
use crate::graph::element::token_value;
use crate::graph::ids::{find_vertex, is_of_one_vertex};
use crate::graph::read::{is_of_one_type, values, vertex_has_label, vertex_value};
use crate::modulated::Modulated;
use crate::semantic::{passes, predicate};
use crate::step::{Node, Pipeline, Step};
use crate::traverser::Traverser;
use std::sync::Arc;
use vervet_gremlin::{P, T, Token, Value};
use vervet_model::{Id, Result};

/// A condition on an element.
#[derive(Clone)]
pub(crate) enum Condition {
    /// A value of the key exists.
    Key(Arc<str>),
    /// No value of the key exists.
    NotKey(Arc<str>),
    /// A value of this key satisfies the predicate.
    Property(Arc<str>, P),
    /// The id, label, key or value satisfies the predicate.
    Token(T, P),
    /// The label is one of these.
    Label(Vec<Arc<str>>),
    /// The id as text satisfies the predicate.
    IdText(P),
    /// The id as text is this one, which only one vertex can have.
    Id {
        id: Value,
        /// The key of that vertex, after the first successful look-up.
        known: Option<u64>,
        test: P,
    },
    /// Both ends of an edge satisfy the condition.
    Ends(Box<Condition>),
    /// A traversal from the element has a result.
    Traversal(Pipeline),
    /// A traversal from a value of this key has a result.
    PropertyTraversal(Arc<str>, Pipeline),
    /// Always false.
    Never,
}

impl Condition {
    /// Whether the condition contains no traversal.
    pub(crate) fn is_plain(&self) -> bool {
        match self {
            Self::Ends(inner) => inner.is_plain(),
            Self::Traversal(_) | Self::PropertyTraversal(..) => false,
            _ => true,
        }
    }

    pub(crate) fn test(&mut self, traverser: &Traverser, context: &mut Context<'_>) -> Result<bool> {
        let element = &traverser.value;
        match self {
            Self::Never => Ok(false),
            Self::Key(key) => Ok(!of_key(element, key, context)?.is_empty()),
            Self::NotKey(key) => Ok(of_key(element, key, context)?.is_empty()),
            Self::Property(key, test) => {
                for value in of_key(element, key, context)? {
                    if passes(test, &value)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Label(labels) => match element {
                Value::Vertex(vertex) => {
                    let (key, labels) = (vertex.key, &*labels);
                    context.read(|snapshot, names| {
                        for label in labels {
                            if vertex_has_label(snapshot, names, key, label)? {
                                return Ok(true);
                            }
                        }
                        Ok(false)
                    })
                }
                element => match token_value(element, T::Label, context)? {
                    Some(Value::String(label)) => Ok(labels.contains(&label)),
                    _ => Ok(false),
                },
            },
            Self::Token(token, test) => match token_value(element, *token, context)? {
                Some(value) => passes(test, &value),
                None => Ok(false),
            },
            Self::Id { id, known, test } => match element {
                Value::Vertex(vertex) if vertex.key != 0 => {
                    if known.is_none() {
                        // The vertex may be added later; its key never changes.
                        *known = context.read(|snapshot, _| find_vertex(snapshot, id))?.map(Id::bits);
                    }
                    Ok(*known == Some(vertex.key))
                }
                element => has_id_text(element, test, context),
            },
            Self::IdText(test) => has_id_text(element, test, context),
            Self::Ends(test) => {
                let Value::Edge(edge) = element else { return Ok(false) };
                for end in [edge.key.source, edge.key.target] {
                    if !test.test(&traverser.at(vertex_value(end)), context)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Traversal(traversal) => traversal.test(traverser, context),
            Self::PropertyTraversal(key, traversal) => {
                for value in of_key(element, key, context)? {
                    if traversal.test(&traverser.at(value), context)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
}

impl Test for Condition {
    fn test(&mut self, traverser: &Traverser, context: &mut Context<'_>) -> Result<bool> {
        Self::test(self, traverser, context)
    }
}

/// Whether the id of an element as text satisfies the predicate.
fn has_id_text(element: &Value, test: &P, context: &mut Context<'_>) -> Result<bool> {
    match token_value(element, T::Id, context)? {
        Some(id) => passes(test, &Value::text(crate::semantic::text_of(&id))),
        None => Ok(false),
    }
}

/// The values of a key; of a property, its own value if the key matches.
fn of_key(element: &Value, key: &Arc<str>, context: &mut Context<'_>) -> Result<Vec<Value>> {
    if let Value::Property(property) = element {
        return Ok((property.key == *key).then(|| property.value.clone()).into_iter().collect());
    }
    let keys = [key.clone()];
    context.read(|snapshot, names| {
        let mut found = Vec::new();
        values(snapshot, names, element, &keys, &mut |value| found.push(value))?;
        Ok(found)
    })
}

/// Appends a filter, or adds it to a preceding `V()` or `E()`.
pub(crate) fn build(step: &Modulated<'_>, compiler: &mut Compiler, nodes: &mut Vec<Node>) -> Result<()> {
    for condition in conditions(step, compiler)? {
        if let Some(last) = nodes.last_mut()
            && last.labels.is_empty()
            && let Some(elements) = last.step.as_elements()
        {
            elements.conditions.push(condition);
            continue;
        }
        if let Condition::Label(labels) = &condition
            && let Some(last) = nodes.last_mut()
            && last.labels.is_empty()
            && let Some(neighbours) = last.step.as_neighbours()
            && neighbours.take_labels(labels)
        {
            continue;
        }
        if let Condition::Label(labels) = &condition
            && let Some(last) = nodes.last_mut()
            && last.labels.is_empty()
            && let Some(pipeline) = last.step.as_fused_pipeline()
            && labels.iter().all(|label| is_of_one_type(label))
        {
            pipeline.take_labels(labels);
            continue;
        }
        nodes.push(compiler.node(make::test(condition)));
        compiler.fuse_last(nodes);
    }
    Ok(())
}

fn conditions(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Vec<Condition>> {
    let arguments = step.arguments();
    let wrong = |compiler: &Compiler| {
        compiler.error(step.instruction, format!("{}() does not take these arguments", step.name()))
    };
    Ok(match (step.name(), arguments) {
        ("has", [Value::String(key)]) => vec![Condition::Key(key.clone())],
        ("has", [Value::String(key), Value::Traversal(traversal)]) => {
            vec![Condition::PropertyTraversal(key.clone(), compiler.nested(traversal)?)]
        }
        ("has", [Value::String(key), test]) => vec![Condition::Property(key.clone(), predicate(test))],
        ("has", [Value::Null] | [Value::Null, _]) => vec![Condition::Never],
        ("has", [Value::Token(Token::T(token)), Value::Traversal(traversal)]) => {
            let mut value = compiler.nested(traversal)?;
            let token = *token;
            let id = make::map(move |traverser, context| token_value(&traverser.value, token, context));
            value.nodes.insert(0, compiler.node(id));
            vec![Condition::Traversal(value)]
        }
        ("has", [Value::Token(Token::T(T::Id)), test]) => vec![id_test(predicate(test))],
        ("has", [Value::Token(Token::T(token)), test]) => {
            let test = predicate(test);
            vec![match label_names(*token, &test) {
                Some(labels) => Condition::Label(labels),
                None => Condition::Token(*token, test),
            }]
        }
        ("has", [label, Value::String(key), test]) => {
            let label = match label {
                Value::String(label) => Condition::Label(vec![label.clone()]),
                _ => Condition::Never,
            };
            let test = match test {
                Value::Traversal(traversal) => {
                    Condition::PropertyTraversal(key.clone(), compiler.nested(traversal)?)
                }
                test => Condition::Property(key.clone(), predicate(test)),
            };
            vec![label, test]
        }
        ("hasNot", [Value::String(key)]) => vec![Condition::NotKey(key.clone())],
        ("hasLabel", [Value::P(test)]) => vec![match label_names(T::Label, test) {
            Some(labels) => Condition::Label(labels),
            None => Condition::Token(T::Label, test.as_ref().clone()),
        }],
        ("hasLabel", [_, ..]) => vec![Condition::Label(step.texts())],
        ("hasId", [Value::P(test)]) => vec![id_test(test.as_ref().clone())],
        ("hasId", [Value::String(text)]) if is_of_one_vertex(text) => {
            let id = Value::String(text.clone());
            vec![Condition::Id { id: id.clone(), known: None, test: P::Within(vec![id]) }]
        }
        ("hasId", [_, ..]) => vec![id_test(P::Within(flat(arguments)))],
        ("hasKey", [Value::P(test)]) => vec![Condition::Token(T::Key, test.as_ref().clone())],
        ("hasKey", [_, ..]) => vec![Condition::Token(T::Key, P::Within(flat(arguments)))],
        ("hasValue", [Value::P(test)]) => vec![Condition::Token(T::Value, test.as_ref().clone())],
        ("hasValue", [_, ..]) => vec![Condition::Token(T::Value, P::Within(flat(arguments)))],
        _ => return Err(wrong(compiler)),
    })
}

/// A condition on ids: against strings, ids are compared as text.
fn id_test(test: P) -> Condition {
    let is_text = |value: &Value| matches!(value, Value::String(_));
    let texts = match &test {
        P::Compare(_, value) => is_text(value),
        P::Within(values) | P::Without(values) => values.iter().any(is_text),
        _ => false,
    };
    if !texts {
        return Condition::Token(T::Id, test);
    }
    let text = |value: &Value| Value::text(crate::semantic::text_of(value));
    Condition::IdText(match test {
        P::Compare(comparison, value) => P::Compare(comparison, text(&value)),
        P::Within(values) => P::Within(values.iter().map(text).collect()),
        P::Without(values) => P::Without(values.iter().map(text).collect()),
        other => other,
    })
}

/// The values, with lists flattened.
fn flat(values: &[Value]) -> Vec<Value> {
    let mut all = Vec::new();
    for value in values {
        match value {
            Value::List(values) => all.extend(values.iter().cloned()),
            Value::Set(values) => all.extend(values.iter().cloned()),
            value => all.push(value.clone()),
        }
    }
    all
}

impl dyn Step {
    /// The step as `V` or `E`, if it has not run yet.
    fn as_elements(&mut self) -> Option<&mut Elements> {
        self.as_any().downcast_mut()
    }

    /// The step as a walk to neighbours, if no other test filters their ends.
    pub(crate) fn as_neighbours(&mut self) -> Option<&mut Neighbours> {
        self.as_any().downcast_mut()
    }
}
