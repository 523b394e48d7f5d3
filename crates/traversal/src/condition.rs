//! Conditions on elements: the filters `has`, `hasLabel`, `hasId`, …, and those of strategies.

use crate::context::Context;
use crate::fusion::{EdgeWalkPart, FusedStep, Test, TestClone};
use crate::graph::element::token_value;
use crate::graph::ids::find_vertex;
use crate::graph::read::{values, vertex_has_label, vertex_value};
use crate::semantic::{passes, text_of};
use crate::traverser::Traverser;
use std::sync::Arc;
use vervet_gremlin::{Comparison, P, T, Value};
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
    Traversal(Box<dyn Test>),
    /// A traversal from a value of this key has a result.
    PropertyTraversal(Arc<str>, Box<dyn Test>),
    /// Always false.
    Never,
}

impl Condition {
    /// Whether the condition contains no traversal.
    fn is_plain(&self) -> bool {
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
                    if passes(test, &value, context.control)? {
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
                Some(value) => passes(test, &value, context.control),
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

    fn fused_steps(&self) -> Option<Vec<FusedStep>> {
        Some(vec![match self {
            Self::Property(key, test) => FusedStep::Property(key.clone(), test.clone()),
            plain if plain.is_plain() => FusedStep::Test(plain.boxed()),
            _ => return None,
        }])
    }

    fn edge_walk_part(&self) -> Option<EdgeWalkPart<'_>> {
        match self {
            Self::Property(key, test) => Some(EdgeWalkPart::Property(key, test)),
            _ => None,
        }
    }
}

/// Whether the id of an element as text satisfies the predicate.
fn has_id_text(element: &Value, test: &P, context: &mut Context<'_>) -> Result<bool> {
    match token_value(element, T::Id, context)? {
        Some(id) => passes(test, &Value::text(text_of(&id)), context.control),
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

/// The label names of a `T.label` test, if it compares with label names.
pub(crate) fn label_names(token: T, test: &P) -> Option<Vec<Arc<str>>> {
    if token != T::Label {
        return None;
    }
    let names = |values: &[Value]| -> Option<Vec<Arc<str>>> {
        values
            .iter()
            .map(|value| match value {
                Value::String(text) => Some(text.clone()),
                _ => None,
            })
            .collect()
    };
    match test {
        P::Compare(Comparison::Eq, value) => names(std::slice::from_ref(value)),
        P::Within(values) => names(values),
        _ => None,
    }
}
