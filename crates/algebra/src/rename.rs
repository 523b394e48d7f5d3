//! Renumbering of variables in a subtree, for scopes that hide variables and for variables that are known to
//! be equal.
//!
//! # Invariants
//! The substitution is simultaneous: the result of a pair is not substituted again, so pairs may swap
//! variables.

use crate::{Expression, GraphSlot, Node, Pattern, Slot, Variable, VariableSet};

/// A simultaneous substitution of variables.
///
/// # Cost
/// 2 bytes for each variable up to the greatest renumbered one; a look-up is one array access.
struct Renaming {
    /// New variable by old index; variables beyond the end are unchanged.
    to: Vec<Variable>,
}

impl Renaming {
    /// For pairs `(from, to)`; the first pair of a `from` wins.
    fn new(pairs: &[(Variable, Variable)]) -> Self {
        let count = pairs.iter().map(|(from, _)| from.index() + 1).max().unwrap_or(0);
        let mut to: Vec<Variable> = (0..=u16::MAX).take(count).map(Variable).collect();
        pairs.iter().rev().for_each(|(from, new)| to[from.index()] = *new);
        Self { to }
    }

    fn variable(&self, variable: &mut Variable) {
        if let Some(new) = self.to.get(variable.index()) {
            *variable = *new;
        }
    }

    /// Each variable of a list of distinct ones; those that become equal once.
    fn list(&self, variables: &mut Vec<Variable>) {
        let mut seen = VariableSet::default();
        variables.retain_mut(|variable| {
            self.variable(variable);
            let is_new = !seen.contains(*variable);
            seen.insert(*variable);
            is_new
        });
    }

    fn slot(&self, slot: &mut Slot) {
        if let Slot::Variable(variable) = slot {
            self.variable(variable);
        }
    }

    fn graph(&self, graph: &mut GraphSlot) {
        if let GraphSlot::Variable(variable) = graph {
            self.variable(variable);
        }
    }

    fn pattern(&self, pattern: &mut Pattern) {
        let slots = [&mut pattern.subject, &mut pattern.predicate, &mut pattern.object];
        slots.into_iter().chain(pattern.edge.as_mut()).for_each(|slot| self.slot(slot));
        self.graph(&mut pattern.graph);
    }

    fn expression(&self, expression: &mut Expression) {
        expression.for_each_variable_mut(&mut |leaf| {
            if let Expression::Variable(variable) | Expression::Bound(variable) = leaf {
                self.variable(variable);
            }
        });
        expression.for_each_exists_mut(&mut |exists| {
            self.node(&mut exists.pattern);
            self.list(&mut exists.outer);
        });
    }

    fn node(&self, node: &mut Node) {
        match node {
            Node::Patterns(patterns) => patterns.iter_mut().for_each(|pattern| self.pattern(pattern)),
            Node::Service(service) => {
                self.slot(&mut service.endpoint);
                service.variables.iter_mut().for_each(|(_, variable)| self.variable(variable));
            }
            Node::Path(path) => {
                [&mut path.subject, &mut path.object].into_iter().for_each(|slot| self.slot(slot));
                path.graphs.iter_mut().for_each(|graph| self.graph(graph));
            }
            Node::LeftJoin { condition: Some(condition), .. } | Node::Filter { condition, .. } => {
                self.expression(condition);
            }
            Node::Extend { variable, expression, .. } => {
                self.variable(variable);
                self.expression(expression);
            }
            Node::Values { variables, .. } => {
                variables.iter_mut().for_each(|variable| self.variable(variable));
            }
            Node::Project { variables, .. } => self.list(variables),
            Node::Group { keys, aggregates, .. } => {
                self.list(keys);
                for (variable, aggregate) in aggregates {
                    self.variable(variable);
                    if let Some(expression) = &mut aggregate.expression {
                        self.expression(expression);
                    }
                }
            }
            Node::OrderBy { keys, .. } => {
                keys.iter_mut().for_each(|key| self.expression(&mut key.expression))
            }
            Node::Join(_)
            | Node::Union(_)
            | Node::LeftJoin { condition: None, .. }
            | Node::Minus { .. }
            | Node::Distinct(_)
            | Node::Reduced(_)
            | Node::Slice { .. } => {}
        }
        node.for_each_child_mut(&mut |child| self.node(child));
    }
}

impl Pattern {
    /// Replaces variable `from` by `to` for each pair `(from, to)`.
    pub fn rename(&mut self, pairs: &[(Variable, Variable)]) {
        Renaming::new(pairs).pattern(self);
    }
}

impl Expression {
    /// Replaces variable `from` by `to` for each pair `(from, to)`, also inside the patterns of `EXISTS`.
    pub fn rename(&mut self, pairs: &[(Variable, Variable)]) {
        Renaming::new(pairs).expression(self);
    }
}

impl Node {
    /// Replaces variable `from` by `to` for each pair `(from, to)`.
    pub fn rename(&mut self, pairs: &[(Variable, Variable)]) {
        if !pairs.is_empty() {
            Renaming::new(pairs).node(self);
        }
    }
}
