//! Operators of the logical algebra.

use crate::distinct::DistinctVariables;
use crate::{Aggregate, Expression, PathPattern, Pattern, Service, Variable, VariableSet};
use oxrdf::Term;

/// A sort key.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OrderKey {
    /// The sorted expression.
    pub expression: Expression,
    /// Largest first.
    pub descending: bool,
}

/// A logical operator: maps bags of solutions to a bag of solutions.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Node {
    /// Basic graph pattern: the join of statement patterns; an empty list is the single empty solution.
    Patterns(Vec<Pattern>),
    /// A property path; its solutions bind the two ends.
    Path(PathPattern),
    /// `SERVICE`: solutions of a remote endpoint.
    Service(Box<Service>),
    /// Natural join: solutions agree on shared variables that both bind.
    Join(Vec<Node>),
    /// Left outer join: `left`, extended by compatible solutions of `right` for which `condition` holds.
    LeftJoin {
        /// The preserved side.
        left: Box<Node>,
        /// The optional side.
        right: Box<Node>,
        /// Condition over the variables of both sides.
        condition: Option<Expression>,
    },
    /// Bag union of all inputs.
    Union(Vec<Node>),
    /// Solutions of `left` without a compatible solution of `right` that shares a bound variable.
    Minus {
        /// The filtered side.
        left: Box<Node>,
        /// The excluding side.
        right: Box<Node>,
    },
    /// Selection: solutions for which `condition` is true (an error is not true).
    Filter {
        /// The input.
        input: Box<Node>,
        /// The condition.
        condition: Expression,
    },
    /// `variable` becomes the value of `expression`, or stays unbound on an error.
    Extend {
        /// The input.
        input: Box<Node>,
        /// A variable that `input` does not bind.
        variable: Variable,
        /// Its value.
        expression: Expression,
    },
    /// Inline data; `None` is unbound.
    Values {
        /// The columns.
        variables: Vec<Variable>,
        /// The rows, each as long as `variables`.
        rows: Vec<Vec<Option<Term>>>,
    },
    /// One solution for each distinct combination of `keys`; without keys exactly one, also for an empty
    /// input.
    Group {
        /// The input.
        input: Box<Node>,
        /// Grouping variables.
        keys: Vec<Variable>,
        /// New variables and their aggregates.
        aggregates: Vec<(Variable, Aggregate)>,
    },
    /// Projection: removes all other variables, which `Distinct` and `Minus` above it do not compare.
    Project {
        /// The input.
        input: Box<Node>,
        /// The projected variables.
        variables: Vec<Variable>,
    },
    /// Each solution once (set semantics).
    Distinct(Box<Node>),
    /// Each solution at least once and at most as often as in the input.
    Reduced(Box<Node>),
    /// Sort; projection and slicing directly above it preserve the order.
    OrderBy {
        /// The input.
        input: Box<Node>,
        /// Sort keys, the most significant first.
        keys: Vec<OrderKey>,
    },
    /// Skips `start` solutions and keeps at most `length`.
    Slice {
        /// The input.
        input: Box<Node>,
        /// Number of solutions to skip.
        start: usize,
        /// Maximum number of solutions to keep; `None`: all.
        length: Option<usize>,
    },
}

impl Node {
    /// The single empty solution.
    #[must_use]
    pub fn unit() -> Self {
        Self::Patterns(Vec::new())
    }

    /// Calls `visit` with each direct input.
    pub fn for_each_child_mut(&mut self, visit: &mut dyn FnMut(&mut Node)) {
        match self {
            Self::Patterns(_) | Self::Path(_) | Self::Service(_) | Self::Values { .. } => {}
            Self::Join(nodes) | Self::Union(nodes) => nodes.iter_mut().for_each(visit),
            Self::LeftJoin { left, right, .. } | Self::Minus { left, right } => {
                visit(left);
                visit(right);
            }
            Self::Filter { input, .. }
            | Self::Extend { input, .. }
            | Self::Group { input, .. }
            | Self::Project { input, .. }
            | Self::Distinct(input)
            | Self::Reduced(input)
            | Self::OrderBy { input, .. }
            | Self::Slice { input, .. } => visit(input),
        }
    }

    /// Calls `visit` with each direct input.
    pub fn for_each_child(&self, visit: &mut dyn FnMut(&Node)) {
        match self {
            Self::Patterns(_) | Self::Path(_) | Self::Service(_) | Self::Values { .. } => {}
            Self::Join(nodes) | Self::Union(nodes) => nodes.iter().for_each(visit),
            Self::LeftJoin { left, right, .. } | Self::Minus { left, right } => {
                visit(left);
                visit(right);
            }
            Self::Filter { input, .. }
            | Self::Extend { input, .. }
            | Self::Group { input, .. }
            | Self::Project { input, .. }
            | Self::Distinct(input)
            | Self::Reduced(input)
            | Self::OrderBy { input, .. }
            | Self::Slice { input, .. } => visit(input),
        }
    }

    /// Calls `visit` with each expression of this operator, not of its inputs.
    pub fn for_each_expression(&self, visit: &mut dyn FnMut(&Expression)) {
        match self {
            Self::Filter { condition: one, .. }
            | Self::Extend { expression: one, .. }
            | Self::LeftJoin { condition: Some(one), .. } => visit(one),
            Self::Group { aggregates, .. } => {
                aggregates.iter().filter_map(|(_, one)| one.expression.as_ref()).for_each(visit);
            }
            Self::OrderBy { keys, .. } => keys.iter().for_each(|key| visit(&key.expression)),
            _ => {}
        }
    }

    /// Mutable variant of [`Node::for_each_expression`].
    pub fn for_each_expression_mut(&mut self, visit: &mut dyn FnMut(&mut Expression)) {
        match self {
            Self::Filter { condition: one, .. }
            | Self::Extend { expression: one, .. }
            | Self::LeftJoin { condition: Some(one), .. } => visit(one),
            Self::Group { aggregates, .. } => {
                aggregates.iter_mut().filter_map(|(_, one)| one.expression.as_mut()).for_each(visit);
            }
            Self::OrderBy { keys, .. } => keys.iter_mut().for_each(|key| visit(&mut key.expression)),
            _ => {}
        }
    }

    /// Appends to `out` the variables that some solution may bind, in order of first appearance, without
    /// duplicates.
    pub fn variables(&self, out: &mut Vec<Variable>) {
        let mut all = DistinctVariables::new(out);
        self.visit_variables(&mut |variable| all.add(variable));
    }

    /// [`Node::variables`] as a set.
    #[must_use]
    pub fn variable_set(&self) -> VariableSet {
        let mut set = VariableSet::default();
        self.visit_variables(&mut |variable| set.insert(variable));
        set
    }

    fn visit_variables(&self, add: &mut dyn FnMut(Variable)) {
        match self {
            Self::Patterns(patterns) => {
                patterns.iter().flat_map(Pattern::variables).for_each(add);
            }
            Self::Path(path) => path.variables().for_each(add),
            Self::Service(service) => service.bound().for_each(add),
            Self::Join(nodes) | Self::Union(nodes) => nodes.iter().for_each(|node| node.visit_variables(add)),
            Self::LeftJoin { left, right, .. } => {
                left.visit_variables(add);
                right.visit_variables(add);
            }
            Self::Minus { left: input, .. }
            | Self::Filter { input, .. }
            | Self::Distinct(input)
            | Self::Reduced(input)
            | Self::OrderBy { input, .. }
            | Self::Slice { input, .. } => input.visit_variables(add),
            Self::Extend { input, variable, .. } => {
                input.visit_variables(add);
                add(*variable);
            }
            Self::Values { variables, .. } => variables.iter().for_each(|variable| add(*variable)),
            Self::Group { keys, aggregates, .. } => {
                let computed = aggregates.iter().map(|(variable, _)| *variable);
                keys.iter().copied().chain(computed).for_each(add);
            }
            Self::Project { input, variables } => {
                let inner = input.variable_set();
                variables.iter().copied().filter(|one| inner.contains(*one)).for_each(add);
            }
        }
    }
}
