//! Other numbers for variables, in all that is below a node: scopes that hide them, and two variables that
//! are known to be one.
//!
//! # Invariants
//! Each variable is looked up once: what a pair gives is not looked up again, so pairs may also exchange two.

use crate::{Expression, GraphSlot, Node, Pattern, Slot, Variable};

/// New numbers for variables.
///
/// # Cost
/// 2 bytes for each variable up to the greatest that gets another number; a look-up is one access.
struct Renaming {
    /// By index; a variable beyond the end stays as it is.
    to: Vec<Variable>,
}

impl Renaming {
    /// `from` becomes `to` for the first such pair.
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
            exists.outer.iter_mut().for_each(|variable| self.variable(variable));
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
            Node::Values { variables, .. } | Node::Project { variables, .. } => {
                variables.iter_mut().for_each(|variable| self.variable(variable));
            }
            Node::Group { keys, aggregates, .. } => {
                keys.iter_mut().for_each(|variable| self.variable(variable));
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
    /// Gives variables other numbers: `from` becomes `to` for each pair.
    pub fn rename(&mut self, pairs: &[(Variable, Variable)]) {
        Renaming::new(pairs).pattern(self);
    }
}

impl Expression {
    /// Gives variables other numbers, also inside the patterns of `EXISTS`: `from` becomes `to` for each
    /// pair.
    pub fn rename(&mut self, pairs: &[(Variable, Variable)]) {
        Renaming::new(pairs).expression(self);
    }
}

impl Node {
    /// Gives variables other numbers: `from` becomes `to` for each pair.
    pub fn rename(&mut self, pairs: &[(Variable, Variable)]) {
        if !pairs.is_empty() {
            Renaming::new(pairs).node(self);
        }
    }
}
