//! Translation of path labels and of `where(eq("a"))`.
//!
//! # Shape
//! A label maps to a variable. Two vertices required to be equal share one variable: a walk that returns to
//! `a` is a pattern that ends in `a`, so the planner closes the cycle instead of enumerating all walks. Two
//! vertices required to differ become a filter.
//! # Invariants
//! Only vertices are compared: a vertex is one term, whereas equal values may be several terms.

use super::{Builder, CurrentObject, iri};
use std::sync::Arc;
use vervet_algebra::{Expression, Slot, Variable};
use vervet_gremlin::{Comparison, P, Value};
use vervet_model::vocab::KEY_NAMESPACE;

impl Builder {
    /// The object of the last step with this label.
    pub(super) fn labelled(&mut self, label: &Arc<str>) -> Option<CurrentObject> {
        let found = self.path.iter().rev().find(|(_, labels)| labels.contains(label))?.0;
        self.names.push(label.clone());
        let is_value = self.patterns.iter().any(|pattern| {
            pattern.object == Slot::Variable(found)
                && self
                    .requirements
                    .value_keys
                    .iter()
                    .any(|key| pattern.predicate == Slot::Constant(iri(KEY_NAMESPACE, key).into()))
        });
        Some(if is_value { CurrentObject::Value(found) } else { CurrentObject::Vertex(found) })
    }

    /// `where(eq("a"))`, `where("b", neq("a"))`: equality of two vertices. Without a label the first is the
    /// current vertex.
    pub(super) fn compare_labelled(&mut self, label: Option<&Arc<str>>, test: &P) -> Option<()> {
        let P::Compare(comparison @ (Comparison::Eq | Comparison::Neq), Value::String(other)) = test else {
            return None;
        };
        let one = match label {
            Some(label) => self.labelled(label)?,
            None => self.object.clone(),
        };
        let (CurrentObject::Vertex(one), CurrentObject::Vertex(other)) = (one, self.labelled(other)?) else {
            return None;
        };
        if *comparison == Comparison::Eq {
            return self.unify(one, other);
        }
        let [a, b] = [one, other].map(|variable| Box::new(Expression::Variable(variable)));
        self.filters.push(Expression::Not(Box::new(Expression::SameTerm(a, b))));
        Some(())
    }

    /// Unifies two vertices.
    fn unify(&mut self, one: Variable, other: Variable) -> Option<()> {
        if one == other {
            return Some(());
        }
        let (from, to) = if self.is_bound_by_input(one) { (other, one) } else { (one, other) };
        if self.is_bound_by_input(from) {
            return None;
        }
        let pairs = [(from, to)];
        let substitute = |variable: &mut Variable| {
            if *variable == from {
                *variable = to;
            }
        };
        self.patterns.iter_mut().for_each(|pattern| pattern.rename(&pairs));
        self.unions.iter_mut().for_each(|union| union.rename(&pairs));
        self.filters.iter_mut().for_each(|filter| filter.rename(&pairs));
        self.path.iter_mut().for_each(|(variable, _)| substitute(variable));
        self.known.iter_mut().for_each(|(vertex, ..)| substitute(vertex));
        match &mut self.object {
            CurrentObject::Start => {}
            CurrentObject::Vertex(variable) | CurrentObject::Value(variable) => substitute(variable),
            CurrentObject::Edge { source, target, from, .. } => {
                [source, target, from].into_iter().for_each(substitute)
            }
        }
        Some(())
    }

    /// Whether more than patterns binds the variable: a start vertex.
    fn is_bound_by_input(&self, variable: Variable) -> bool {
        let mut given = Vec::new();
        if let Some(base) = &self.base {
            base.variables(&mut given);
        }
        given.contains(&variable) || self.start.as_ref().is_some_and(|(start, _)| *start == variable)
    }
}
