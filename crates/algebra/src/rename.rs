//! Other numbers for variables, in all that is below a node: scopes that hide them, and two variables that are known to be one.
//!
//! # Invariants
//! Each variable is looked up once: what a pair gives is not looked up again, so pairs may also exchange two.

use crate::{Expression, GraphSlot, Node, Pattern, Slot, Variable};

/// Gives a variable another number: `from` becomes `to` for the first such pair.
fn renew(variable: &mut Variable, pairs: &[(Variable, Variable)]) {
    if let Some((_, to)) = pairs.iter().find(|(from, _)| from == variable) {
        *variable = *to;
    }
}

fn renew_slot(slot: &mut Slot, pairs: &[(Variable, Variable)]) {
    if let Slot::Variable(variable) = slot {
        renew(variable, pairs);
    }
}

fn renew_graph(graph: &mut GraphSlot, pairs: &[(Variable, Variable)]) {
    if let GraphSlot::Variable(variable) = graph {
        renew(variable, pairs);
    }
}

impl Pattern {
    /// Gives variables other numbers: `from` becomes `to` for each pair.
    pub fn rename(&mut self, pairs: &[(Variable, Variable)]) {
        let slots = [&mut self.subject, &mut self.predicate, &mut self.object];
        slots.into_iter().chain(self.edge.as_mut()).for_each(|slot| renew_slot(slot, pairs));
        renew_graph(&mut self.graph, pairs);
    }
}

impl Expression {
    /// Gives variables other numbers, also inside the patterns of `EXISTS`: `from` becomes `to` for each pair.
    pub fn rename(&mut self, pairs: &[(Variable, Variable)]) {
        self.for_each_variable_mut(&mut |leaf| {
            if let Self::Variable(variable) | Self::Bound(variable) = leaf {
                renew(variable, pairs);
            }
        });
        self.for_each_exists_mut(&mut |exists| {
            exists.pattern.rename(pairs);
            exists.outer.iter_mut().for_each(|variable| renew(variable, pairs));
        });
    }
}

impl Node {
    /// Gives variables other numbers: `from` becomes `to` for each pair.
    pub fn rename(&mut self, pairs: &[(Variable, Variable)]) {
        if pairs.is_empty() {
            return;
        }
        let fresh = |variable: &mut Variable| renew(variable, pairs);
        match self {
            Self::Patterns(patterns) => patterns.iter_mut().for_each(|pattern| pattern.rename(pairs)),
            Self::Service(service) => {
                renew_slot(&mut service.endpoint, pairs);
                service.variables.iter_mut().for_each(|(_, variable)| fresh(variable));
            }
            Self::Path(path) => {
                [&mut path.subject, &mut path.object].into_iter().for_each(|slot| renew_slot(slot, pairs));
                path.graphs.iter_mut().for_each(|graph| renew_graph(graph, pairs));
            }
            Self::LeftJoin { condition: Some(condition), .. } | Self::Filter { condition, .. } => {
                condition.rename(pairs);
            }
            Self::Extend { variable, expression, .. } => {
                fresh(variable);
                expression.rename(pairs);
            }
            Self::Values { variables, .. } | Self::Project { variables, .. } => {
                variables.iter_mut().for_each(fresh);
            }
            Self::Group { keys, aggregates, .. } => {
                keys.iter_mut().for_each(fresh);
                for (variable, aggregate) in aggregates {
                    fresh(variable);
                    if let Some(expression) = &mut aggregate.expression {
                        expression.rename(pairs);
                    }
                }
            }
            Self::OrderBy { keys, .. } => keys.iter_mut().for_each(|key| key.expression.rename(pairs)),
            Self::Join(_)
            | Self::Union(_)
            | Self::LeftJoin { condition: None, .. }
            | Self::Minus { .. }
            | Self::Distinct(_)
            | Self::Reduced(_)
            | Self::Slice { .. } => {}
        }
        self.for_each_child_mut(&mut |child| child.rename(pairs));
    }
}
