//! Labels of the path: what they stand for, and `where(eq("a"))`.
//!
//! # Shape
//! A label stands for a variable. Two vertices that are to be one get one variable: a walk that comes back to
//! `a` is a pattern that ends in `a`, and the planner closes the cycle instead of walking all the ways out of
//! it. Two that are to be different are a filter.
//! # Invariants
//! Only vertices are compared: each is one term, whereas values that are equal may be several.

use super::{Builder, Place, iri};
use std::sync::Arc;
use vervet_algebra::{Expression, Slot, Variable};
use vervet_gremlin::{Comparison, P, Value};
use vervet_model::vocab::KEY_NAMESPACE;

impl Builder {
    /// Where the traversers were last at a step with this label.
    pub(super) fn labelled(&mut self, label: &Arc<str>) -> Option<Place> {
        let found = self.path.iter().rev().find(|(_, labels)| labels.contains(label))?.0;
        self.names.push(label.clone());
        let is_value = self.patterns.iter().any(|pattern| {
            pattern.object == Slot::Variable(found)
                && self
                    .value_keys
                    .iter()
                    .any(|key| pattern.predicate == Slot::Constant(iri(KEY_NAMESPACE, key).into()))
        });
        Some(if is_value { Place::Value(found) } else { Place::Vertex(found) })
    }

    /// `where(eq("a"))`, `where("b", neq("a"))`: whether two vertices are one. Without a label the first is
    /// the current one.
    pub(super) fn compare_labelled(&mut self, label: Option<&Arc<str>>, test: &P) -> Option<()> {
        let P::Compare(comparison @ (Comparison::Eq | Comparison::Neq), Value::String(other)) = test else {
            return None;
        };
        let one = match label {
            Some(label) => self.labelled(label)?,
            None => self.place.clone(),
        };
        let (Place::Vertex(one), Place::Vertex(other)) = (one, self.labelled(other)?) else { return None };
        if *comparison == Comparison::Eq {
            return self.unite(one, other);
        }
        let [a, b] = [one, other].map(|variable| Box::new(Expression::Variable(variable)));
        self.filters.push(Expression::Not(Box::new(Expression::SameTerm(a, b))));
        Some(())
    }

    /// Makes two vertices one.
    fn unite(&mut self, one: Variable, other: Variable) -> Option<()> {
        if one == other {
            return Some(());
        }
        let (from, to) = if self.is_given(one) { (other, one) } else { (one, other) };
        if self.is_given(from) {
            return None;
        }
        let pairs = [(from, to)];
        let renew = |variable: &mut Variable| {
            if *variable == from {
                *variable = to;
            }
        };
        self.patterns.iter_mut().for_each(|pattern| pattern.rename(&pairs));
        self.unions.iter_mut().for_each(|union| union.rename(&pairs));
        self.filters.iter_mut().for_each(|filter| filter.rename(&pairs));
        self.path.iter_mut().for_each(|(variable, _)| renew(variable));
        self.known.iter_mut().for_each(|(vertex, ..)| renew(vertex));
        match &mut self.place {
            Place::Start => {}
            Place::Vertex(variable) | Place::Value(variable) => renew(variable),
            Place::Edge { source, target, from, .. } => [source, target, from].into_iter().for_each(renew),
        }
        Some(())
    }

    /// Whether it is bound by more than patterns: a vertex to start from.
    fn is_given(&self, variable: Variable) -> bool {
        let mut given = Vec::new();
        if let Some(base) = &self.base {
            base.variables(&mut given);
        }
        given.contains(&variable) || self.start.as_ref().is_some_and(|(start, _)| *start == variable)
    }
}
