//! Push-down of `unfold()` after a group, and of the steps on its entries, without the map and its lists.
//!
//! # Shape
//! ```text
//! group().by("name").by(select("date").fold()).unfold().where(select(values).min(local).is(gte(d)))
//!     .project("tag", "count").by(keys).by(select(values).count(local)).order().by("count", desc).limit(10)
//! ```
//! builds lists only to count them and to find their minimum. The query computes these aggregates instead,
//! one row per group. [`Entries`] describes the processing of the rows, which `steps/entries.rs` executes.
//! # Invariants
//! A list is omitted only if no step outputs it. Minimum and maximum require integers, which both languages
//! order alike; if the value itself is output, all values must have one type.

use super::prefix::{Entries, EntryPart, Fold, QueryOutput};
use super::{Builder, CurrentObject};
use crate::modulated::Modulated;
use crate::semantic::predicate;
use std::sync::Arc;
use vervet_algebra::{Aggregate, AggregateKind, Expression, Node, Slot, Variable};
use vervet_gremlin::{Column, Instruction, Order, P, Scope, Token, Value};
use vervet_model::vocab::KEY_NAMESPACE;

/// The part of an entry that a step reads.
enum EntrySelector {
    Key,
    Value,
    Folded(Fold),
}

impl Builder {
    /// Takes `unfold()` and the steps after it if the last step is a group; returns the number of steps.
    pub(super) fn entries(&mut self, steps: &[Modulated<'_>]) -> Option<usize> {
        let mut entries_builder =
            EntriesBuilder { builder: self.clone(), columns: Vec::new(), is_output: false };
        let mut entries = Entries {
            columns: Vec::new(),
            tests: Vec::new(),
            names: None,
            order: Vec::new(),
            range: (0, None),
        };
        let key = match self.output {
            QueryOutput::Counts(key) => {
                entries_builder.columns.push((self.current()?, Fold::Count));
                key
            }
            QueryOutput::Lists(key) => key,
            _ => return None,
        };
        let is_plain = |step: &Modulated<'_>, name: &str| step.name() == name && is_plain(step);
        let mut rest = steps.iter().peekable();
        rest.next_if(|step| is_plain(step, "unfold") && step.bys.is_empty() && step.arguments().is_empty())?;
        while let Some(test) = rest
            .peek()
            .filter(|step| (is_plain(step, "where") || is_plain(step, "filter")) && step.bys.is_empty())
            .and_then(|step| entries_builder.test(step))
        {
            entries.tests.push(test);
            rest.next();
        }
        entries_builder.is_output = true;
        if let Some(names) =
            rest.peek().filter(|step| is_plain(step, "project")).and_then(|step| entries_builder.names(step))
        {
            entries.names = Some(names);
            rest.next();
        } else if let QueryOutput::Lists(_) = self.output {
            return None;
        }
        if let Some(order) = rest
            .peek()
            .filter(|step| is_plain(step, "order"))
            .and_then(|step| entries_builder.order(step, &entries))
        {
            entries.order = order;
            rest.next();
        }
        let is_range = |step: &&&Modulated<'_>| {
            matches!(step.name(), "limit" | "skip" | "range") && self::is_plain(step) && step.bys.is_empty()
        };
        if let Some(range) = rest.peek().filter(is_range).and_then(|step| range(step)) {
            entries.range = range;
            rest.next();
        }
        let taken = steps.len() - rest.count();
        let EntriesBuilder { mut builder, mut columns, .. } = entries_builder;
        if let QueryOutput::Lists(_) = builder.output {
            if columns.is_empty() {
                columns.push((builder.fresh()?, Fold::Count));
            }
            let member = builder.current()?;
            let aggregate = |&(variable, fold): &(Variable, Fold)| {
                let (kind, expression) = match fold {
                    Fold::Count => (AggregateKind::Count, None),
                    Fold::Min => (AggregateKind::Min, Some(Expression::Variable(member))),
                    Fold::Max => (AggregateKind::Max, Some(Expression::Variable(member))),
                };
                (variable, Aggregate { kind, expression, distinct: false })
            };
            let aggregates = columns.iter().map(aggregate).collect();
            let input = Box::new(builder.node());
            builder.closed = Some(Node::Group { input, keys: vec![key], aggregates });
        }
        let (first, _) = *columns.first()?;
        entries.columns = columns;
        builder.object = CurrentObject::Value(first);
        builder.path = vec![(first, Vec::new())];
        builder.output = QueryOutput::Entries(key);
        builder.entries = Some(entries);
        builder.is_profitable = true;
        *self = builder;
        Some(taken)
    }
}

/// Translation state from steps to [`Entries`].
struct EntriesBuilder {
    builder: Builder,
    columns: Vec<(Variable, Fold)>,
    /// Whether the current part is output, not only tested.
    is_output: bool,
}

impl EntriesBuilder {
    /// `where(select(values).count(local).is(gt(3)))`.
    fn test(&mut self, step: &Modulated<'_>) -> Option<(EntryPart, P)> {
        let [Value::Traversal(traversal)] = step.arguments() else { return None };
        let (is, of) = traversal.steps.split_last()?;
        let ("is", [test]) = (&*is.name, is.arguments.as_slice()) else { return None };
        Some((self.part(selector(of)?)?, predicate(test)))
    }

    /// `project("tag", "count").by(keys).by(select(values).count(local))`.
    fn names(&mut self, step: &Modulated<'_>) -> Option<Vec<(Value, EntryPart)>> {
        let names = step.texts();
        if names.len() != step.bys.len() || names.len() != step.arguments().len() {
            return None;
        }
        let mut all: Vec<(Value, EntryPart)> = Vec::with_capacity(names.len());
        for (name, by) in names.into_iter().zip(&step.bys) {
            let selector = match by.arguments.as_slice() {
                [Value::Token(Token::Column(column))] => selector_of_by(*column),
                [Value::Traversal(traversal)] => selector(&traversal.steps)?,
                _ => return None,
            };
            let name = Value::String(name);
            if all.iter().any(|(other, _)| *other == name) {
                return None;
            }
            all.push((name, self.part(selector)?));
        }
        Some(all)
    }

    /// `order().by("count", desc).by("tag")`, or `order().by(values)` of entries.
    fn order(&mut self, step: &Modulated<'_>, entries: &Entries) -> Option<Vec<(EntryPart, bool)>> {
        if !step.arguments().is_empty() || step.bys.is_empty() {
            return None;
        }
        let key = |by: &&Instruction| {
            let (by, descending) = match by.arguments.as_slice() {
                [by] | [by, Value::Token(Token::Order(Order::Asc))] => (by, false),
                [by, Value::Token(Token::Order(Order::Desc))] => (by, true),
                _ => return None,
            };
            let part = match (by, &entries.names) {
                (name @ Value::String(_), Some(names)) => names.iter().find(|(other, _)| other == name)?.1,
                (Value::Token(Token::Column(column)), None) => self.part(selector_of_by(*column))?,
                _ => return None,
            };
            Some((part, descending))
        };
        let mut keys = Vec::with_capacity(step.bys.len());
        let mut key = key;
        for by in &step.bys {
            keys.push(key(by)?);
        }
        Some(keys)
    }

    fn part(&mut self, selector: EntrySelector) -> Option<EntryPart> {
        match (selector, self.builder.output) {
            (EntrySelector::Key, _) => Some(EntryPart::Key),
            (EntrySelector::Value, QueryOutput::Counts(_)) => Some(EntryPart::Column(0)),
            (EntrySelector::Folded(fold), QueryOutput::Lists(_)) => {
                if fold != Fold::Count {
                    let key = self.key_of_members()?;
                    if self.is_output {
                        self.builder.requirements.uniform_keys.push(key.clone());
                    }
                    self.builder.requirements.integer_keys.push(key);
                }
                let known = self.columns.iter().position(|(_, known)| *known == fold);
                Some(EntryPart::Column(match known {
                    Some(known) => known,
                    None => {
                        self.columns.push((self.builder.fresh()?, fold));
                        self.columns.len() - 1
                    }
                }))
            }
            _ => None,
        }
    }

    /// The key whose values are the members of groups.
    fn key_of_members(&self) -> Option<Arc<str>> {
        let CurrentObject::Value(member) = self.builder.object else { return None };
        let of = |key: &&Arc<str>| {
            let predicate = Slot::Constant(super::iri(KEY_NAMESPACE, key).into());
            self.builder
                .patterns
                .iter()
                .any(|pattern| pattern.object == Slot::Variable(member) && pattern.predicate == predicate)
        };
        self.builder.requirements.value_keys.iter().find(of).cloned()
    }
}

/// Whether `by` is the only modulator of a step.
fn is_plain(step: &Modulated<'_>) -> bool {
    step.labels.is_empty()
        && step.withs.is_empty()
        && step.options.is_empty()
        && step.from.is_none()
        && step.to.is_none()
}

fn selector_of_by(column: Column) -> EntrySelector {
    match column {
        Column::Keys => EntrySelector::Key,
        Column::Values => EntrySelector::Value,
    }
}

/// `select(keys)`, `select(values)`, or `select(values)` with an aggregate.
fn selector(steps: &[Instruction]) -> Option<EntrySelector> {
    let (first, rest) = steps.split_first()?;
    let ("select", [Value::Token(Token::Column(column))]) = (&*first.name, first.arguments.as_slice()) else {
        return None;
    };
    let [fold] = rest else { return rest.is_empty().then(|| selector_of_by(*column)) };
    let (Column::Values, [Value::Token(Token::Scope(Scope::Local))]) = (column, fold.arguments.as_slice())
    else {
        return None;
    };
    Some(EntrySelector::Folded(match &*fold.name {
        "count" => Fold::Count,
        "min" => Fold::Min,
        "max" => Fold::Max,
        _ => return None,
    }))
}

/// Offset and limit of a range of the stream.
fn range(step: &Modulated<'_>) -> Option<(usize, Option<usize>)> {
    let number = |value: &Value| usize::try_from(value.as_integer()?).ok();
    match (step.name(), step.arguments()) {
        ("limit", [count]) => Some((0, Some(number(count)?))),
        ("skip", [from]) => Some((number(from)?, None)),
        ("range", [from, to]) => {
            let from = number(from)?;
            match to.as_integer()? {
                -1 => Some((from, None)),
                _ => Some((from, Some(number(to)?.checked_sub(from)?))),
            }
        }
        _ => None,
    }
}
