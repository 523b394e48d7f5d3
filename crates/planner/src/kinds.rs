//! Conditions on the kinds of terms of a pattern, evaluated for all terms of a kind at once.

use vervet_algebra::{Expression, Function, Pattern, Slot, Variable};

/// A kind of term.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TermKind {
    /// Edges too: their names are IRIs.
    Iri,
    Blank,
    Literal,
    Triple,
}

/// The kinds of terms that a snapshot may have, beside IRIs and literals.
#[derive(Clone, Copy)]
pub(crate) struct TermKinds {
    pub(crate) blanks: bool,
    pub(crate) triples: bool,
}

impl TermKinds {
    /// Possible kinds of vertices and edges.
    pub(crate) fn of_vertices(self) -> &'static [TermKind] {
        if self.blanks { &[TermKind::Iri, TermKind::Blank] } else { &[TermKind::Iri] }
    }

    /// Possible kinds of all other terms.
    pub(crate) fn of_literals(self) -> &'static [TermKind] {
        if self.triples { &[TermKind::Literal, TermKind::Triple] } else { &[TermKind::Literal] }
    }
}

/// Conditions on the solutions of a pattern with a variable subject and object.
pub(crate) struct KindCondition<'q> {
    pub(crate) pattern: &'q Pattern,
    pub(crate) conditions: &'q [&'q Expression],
}

impl KindCondition<'_> {
    /// Whether all conditions hold for each subject and each object of one of the kinds `objects`; `None` if
    /// this depends on more, or differs between the kinds.
    pub(crate) fn truth(&self, kinds: TermKinds, objects: &[TermKind]) -> Option<bool> {
        let mut all = None;
        for subject in kinds.of_vertices() {
            for object in objects {
                let mut holds = true;
                for condition in self.conditions {
                    holds &= self.evaluate(condition, *subject, *object)?;
                }
                if all.is_some_and(|all| all != holds) {
                    return None;
                }
                all = Some(holds);
            }
        }
        all
    }

    /// The value of an expression; `None` if kinds do not determine it. A condition on bound variables never
    /// is an error here.
    fn evaluate(&self, expression: &Expression, subject: TermKind, object: TermKind) -> Option<bool> {
        let value = |one: &Expression| self.evaluate(one, subject, object);
        match expression {
            Expression::Not(a) => value(a).map(|truth| !truth),
            Expression::And(list) => list.iter().try_fold(true, |all, one| Some(value(one)? && all)),
            Expression::Or(list) => list.iter().try_fold(false, |any, one| Some(value(one)? || any)),
            Expression::Bound(variable) => {
                self.pattern.variables().any(|own| own == *variable).then_some(true)
            }
            Expression::Call(function, arguments) => {
                let [Expression::Variable(variable)] = arguments.as_slice() else { return None };
                let kind = self.kind(*variable, subject, object)?;
                match function {
                    Function::IsIri => Some(kind == TermKind::Iri),
                    Function::IsBlank => Some(kind == TermKind::Blank),
                    Function::IsLiteral => Some(kind == TermKind::Literal),
                    Function::IsTriple => Some(kind == TermKind::Triple),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn kind(&self, variable: Variable, subject: TermKind, object: TermKind) -> Option<TermKind> {
        let is = |slot: &Slot| slot.variable() == Some(variable);
        if is(&self.pattern.subject) {
            Some(subject)
        } else if is(&self.pattern.object) {
            Some(object)
        } else {
            is(&self.pattern.predicate).then_some(TermKind::Iri)
        }
    }
}
