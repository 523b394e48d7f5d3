//! `has` and related filters on elements.
//!
//! After `V()` or `E()` they become conditions of that step, for index look-ups; after `out`, `in` and `both`
//! a label test is fused into the step, which tests all neighbours together.

use super::make;
use crate::compile::Compiler;
use crate::condition::{Condition, label_names};
use crate::error::query_error;
use crate::graph::element::token_value;
use crate::graph::ids::is_of_one_vertex;
use crate::modulated::Modulated;
use crate::semantic::predicate;
use crate::step::Node;
use vervet_gremlin::{P, T, Token, Value};
use vervet_model::Result;

/// Appends a filter, or adds it to a preceding `V()` or `E()`.
pub(crate) fn build(step: &Modulated<'_>, compiler: &mut Compiler, nodes: &mut Vec<Node>) -> Result<()> {
    for condition in conditions(step, compiler)? {
        let left = match nodes.last_mut() {
            Some(last) if last.labels.is_empty() => last.step.absorb(condition),
            _ => Some(condition),
        };
        let Some(condition) = left else { continue };
        nodes.push(compiler.node(make::test(condition)));
        compiler.fuse_last(nodes);
    }
    Ok(())
}

fn conditions(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Vec<Condition>> {
    let arguments = step.arguments();
    let wrong = || query_error(format!("{}() does not take these arguments", step.name()));
    Ok(match (step.name(), arguments) {
        ("has", [Value::String(key)]) => vec![Condition::Key(key.clone())],
        ("has", [Value::String(key), Value::Traversal(traversal)]) => {
            vec![Condition::PropertyTraversal(key.clone(), Box::new(compiler.nested(traversal)?))]
        }
        ("has", [Value::String(key), test]) => vec![Condition::Property(key.clone(), predicate(test))],
        ("has", [Value::Null] | [Value::Null, _]) => vec![Condition::Never],
        ("has", [Value::Token(Token::T(token)), Value::Traversal(traversal)]) => {
            let mut value = compiler.nested(traversal)?;
            let token = *token;
            let id = make::map(move |traverser, context| token_value(&traverser.value, token, context));
            value.nodes.insert(0, compiler.node(id));
            vec![Condition::Traversal(Box::new(value))]
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
                    Condition::PropertyTraversal(key.clone(), Box::new(compiler.nested(traversal)?))
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
        _ => return Err(wrong()),
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
