//! Translation of aggregating steps: `order`, `groupCount`, `group`, `count`, and ranges of ordered results.

use super::prefix::QueryOutput;
use super::{Builder, CurrentObject, Value};
use crate::modulated::Modulated;
use oxrdf::NamedNode;
use std::sync::Arc;
use vervet_algebra::{Aggregate, AggregateKind, Expression, Node, OrderKey, Pattern, Slot, Variable};
use vervet_gremlin::{Instruction, Order, Token};
use vervet_model::vocab::RDF_TYPE;

impl Builder {
    /// `order` by keys of the current vertices.
    pub(super) fn order(&mut self, step: &Modulated<'_>) -> Option<()> {
        let CurrentObject::Vertex(vertex) = self.object else { return None };
        if !step.arguments().is_empty() || step.bys.is_empty() || self.productive || !step.labels.is_empty() {
            return None;
        }
        let mut keys = Vec::new();
        for by in &step.bys {
            let (key, descending) = match by.arguments.as_slice() {
                [Value::String(key)] => (key, false),
                [Value::String(key), Value::Token(Token::Order(Order::Asc))] => (key, false),
                [Value::String(key), Value::Token(Token::Order(Order::Desc))] => (key, true),
                _ => return None,
            };
            let value = self.single(vertex, key)?;
            self.requirements.integer_keys.push(key.clone());
            keys.push(OrderKey { expression: Expression::Variable(value), descending });
        }
        self.closed = Some(Node::OrderBy { input: Box::new(self.node()), keys });
        self.is_profitable = true;
        Some(())
    }

    /// `groupCount()` of the current objects, or of the value of a single-valued key.
    pub(super) fn group_count(&mut self, step: &Modulated<'_>) -> Option<()> {
        self.groups(step)?;
        let key = match step.bys.as_slice() {
            [] => self.current()?,
            [by] => self.key(by)?,
            _ => return None,
        };
        self.counts(key)
    }

    /// `group().by(…).by(…)`, where the second one folds or counts; the default is fold.
    pub(super) fn group(&mut self, step: &Modulated<'_>) -> Option<()> {
        self.groups(step)?;
        let (key, members) = match step.bys.as_slice() {
            [] => (self.current()?, None),
            [by] => (self.key(by)?, None),
            [by, members] => match members.arguments.as_slice() {
                [Value::Traversal(members)] => (self.key(by)?, Some(members)),
                _ => return None,
            },
            _ => return None,
        };
        let (of, last) = match members.map(|members| members.steps.as_slice()) {
            None => (None, None),
            Some([last]) => (None, Some(last)),
            Some([of, last]) => (Some(label_of(of)?), Some(last)),
            Some(_) => return None,
        };
        let place = match of {
            Some(label) => self.labelled(label)?,
            None => self.object.clone(),
        };
        match last.map(|last| (&*last.name, last.arguments.as_slice())) {
            Some(("count", [])) => self.counts(key),
            None | Some(("fold", [])) => {
                self.closed = Some(self.node());
                self.object = place;
                self.path = vec![(self.current()?, Vec::new())];
                self.output = QueryOutput::Lists(key);
                Some(())
            }
            Some(_) => None,
        }
    }

    /// Whether the current objects can be grouped: no later step needs paths, and the current object is
    /// known.
    fn groups(&self, step: &Modulated<'_>) -> Option<()> {
        let is_plain = step.arguments().is_empty() && step.labels.is_empty();
        (is_plain && self.is_of_vertices() && !self.productive && !self.keep_paths && !self.has_sack)
            .then_some(())
    }

    /// Whether patterns restrict the current objects to vertices: an edge can also have the value of a key.
    pub(super) fn is_of_vertices(&self) -> bool {
        let has_label = |pattern: &Pattern| {
            pattern.predicate == Slot::Constant(NamedNode::new_unchecked(RDF_TYPE).into())
        };
        self.walks > 0 || self.base.is_some() && self.base_exists || self.patterns.iter().any(has_label)
    }

    /// The column of `by("key")` or `by(select("label"))`.
    fn key(&mut self, by: &Instruction) -> Option<Variable> {
        match (by.arguments.as_slice(), &self.object) {
            ([], _) => self.current(),
            ([Value::String(key)], &CurrentObject::Vertex(vertex)) => self.single(vertex, key),
            ([Value::Traversal(of)], _) => {
                let [of] = of.steps.as_slice() else { return None };
                match self.labelled(label_of(of)?)? {
                    CurrentObject::Vertex(variable) | CurrentObject::Value(variable) => Some(variable),
                    CurrentObject::Start | CurrentObject::Edge { .. } => None,
                }
            }
            _ => None,
        }
    }

    fn counts(&mut self, key: Variable) -> Option<()> {
        let count = self.count_of(vec![key])?;
        self.output = QueryOutput::Counts(key);
        self.path = vec![(count, Vec::new())];
        self.is_profitable = true;
        Some(())
    }

    /// Counts the rows for each combination of `keys`; the count becomes the current object.
    pub(super) fn count_of(&mut self, keys: Vec<Variable>) -> Option<Variable> {
        let count = self.fresh()?;
        let aggregate = Aggregate { kind: AggregateKind::Count, expression: None, distinct: false };
        let input = Box::new(self.node());
        self.closed = Some(Node::Group { input, keys, aggregates: vec![(count, aggregate)] });
        self.object = CurrentObject::Value(count);
        Some(count)
    }

    pub(super) fn slice(&mut self, from: i64, count: Option<i64>) -> Option<()> {
        let start = usize::try_from(from).ok()?;
        let length = count.map(usize::try_from).transpose().ok()?;
        self.current()?;
        let input = Box::new(self.node());
        self.closed = Some(Node::Slice { input, start, length });
        Some(())
    }
}

/// The label of a `select` with one label.
fn label_of(instruction: &Instruction) -> Option<&Arc<str>> {
    match (&*instruction.name, instruction.arguments.as_slice()) {
        ("select", [Value::String(label)]) => Some(label),
        _ => None,
    }
}
