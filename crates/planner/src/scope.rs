//! Variable scopes: bound and free variables of an algebra node, and lateral evaluation.
//!
//! A node is evaluated *laterally* if it starts from rows that already bind some of its variables (graph
//! exploration) instead of from the empty row. [`is_lateral`] tests whether both are equivalent.

use crate::set::VariableSet;
use vervet_algebra::{AggregateKind, Expression, Function, Node, Pattern};

/// The variables of an expression.
pub(crate) fn expression_variables(expression: &Expression) -> VariableSet {
    let mut variables = Vec::new();
    expression.variables(&mut variables);
    variables.into_iter().collect()
}

/// The variables that some solution of `node` may bind.
pub(crate) fn possible(node: &Node) -> VariableSet {
    let mut variables = Vec::new();
    node.variables(&mut variables);
    variables.into_iter().collect()
}

/// The variables that every solution of `node` binds.
pub(crate) fn certain(node: &Node) -> VariableSet {
    match node {
        Node::Patterns(patterns) => patterns.iter().flat_map(Pattern::variables).collect(),
        Node::Path(path) => path.variables().collect(),
        Node::Service(_) => VariableSet::default(),
        Node::Join(nodes) => nodes.iter().fold(VariableSet::default(), |set, node| set.union(&certain(node))),
        Node::Union(nodes) => {
            let mut sets = nodes.iter().map(certain);
            let first = sets.next().unwrap_or_default();
            sets.fold(first, |set, other| set.intersection(&other))
        }
        Node::LeftJoin { left: input, .. }
        | Node::Minus { left: input, .. }
        | Node::Filter { input, .. }
        | Node::Distinct(input)
        | Node::Reduced(input)
        | Node::OrderBy { input, .. }
        | Node::Slice { input, .. } => certain(input),
        Node::Extend { input, variable, expression } => {
            let mut set = certain(input);
            if matches!(expression, Expression::Constant(_)) {
                set.insert(*variable);
            }
            set
        }
        Node::Values { variables, rows } => variables
            .iter()
            .enumerate()
            .filter(|(at, _)| rows.iter().all(|row| row.get(*at).is_some_and(Option::is_some)))
            .map(|(_, variable)| *variable)
            .collect(),
        Node::Group { input, keys, aggregates } => {
            let mut set = keys.iter().copied().collect::<VariableSet>().intersection(&certain(input));
            set.extend(
                aggregates
                    .iter()
                    .filter(|(_, aggregate)| aggregate.kind == AggregateKind::Count)
                    .map(|(variable, _)| *variable),
            );
            set
        }
        Node::Project { input, variables } => {
            certain(input).intersection(&variables.iter().copied().collect())
        }
    }
}

/// Whether evaluating `node` from rows that may bind `outer` is equivalent to joining it with them.
///
/// Tests the outermost operator only; its inputs are tested when they are lowered. The rule behind all cases:
/// an operator that reads a variable must see the value from its own input, not one that only the outer row
/// binds. Operators over whole bags (grouping, distinct, order, slice) always start from the empty row.
pub(crate) fn is_lateral(node: &Node, outer: &VariableSet) -> bool {
    let sees_the_same = |seen: VariableSet, bound: VariableSet| seen.intersection(outer).is_subset(&bound);
    match node {
        Node::Patterns(_) | Node::Path(_) | Node::Service(_) => true,
        Node::Values { .. } | Node::Join(_) | Node::Union(_) => true,
        Node::Project { .. } | Node::Reduced(_) => true,
        Node::Filter { input, condition } => sees_the_same(expression_variables(condition), certain(input)),
        Node::Extend { input, variable, expression } => {
            !outer.contains(*variable) && sees_the_same(expression_variables(expression), certain(input))
        }
        Node::LeftJoin { left, right, condition } => {
            let of_left = certain(left);
            condition.as_ref().is_none_or(|condition| {
                sees_the_same(expression_variables(condition), of_left.clone().union(&certain(right)))
            }) && sees_the_same(possible(right), of_left)
        }
        Node::Minus { left, right } => sees_the_same(possible(right), certain(left)),
        Node::Group { .. } | Node::Distinct(_) | Node::OrderBy { .. } | Node::Slice { .. } => false,
    }
}

/// Free variables: those that expressions in `node` read but its patterns do not bind, that is, outer
/// variables within an `EXISTS`, and parameters.
pub(crate) fn free(node: &Node) -> VariableSet {
    let mut set = VariableSet::default();
    node.for_each_child(&mut |child| set.add_all(&free(child)));
    let mut read = VariableSet::default();
    node.for_each_expression(&mut |expression| read.add_all(&expression_variables(expression)));
    let mut bound = VariableSet::default();
    node.for_each_child(&mut |child| bound.add_all(&possible(child)));
    // The left side may bind variables that the optional part reads.
    set.union(&read).minus(&bound)
}

/// Variables for which pre-binding changes the result of `node`: an operator reads them, and its own input
/// need not bind them. Variables that expressions read and no pattern binds are in [`free`].
pub(crate) fn looks_at(node: &Node) -> VariableSet {
    let mut set = VariableSet::default();
    node.for_each_child(&mut |child| set.add_all(&looks_at(child)));
    let (seen, bound) = match node {
        Node::Filter { input, condition } => (expression_variables(condition), certain(input)),
        Node::Extend { input, expression, .. } => (expression_variables(expression), certain(input)),
        Node::LeftJoin { left, right, condition } => {
            let of_condition = condition.as_ref().map(expression_variables).unwrap_or_default();
            let of_condition = of_condition.minus(&certain(right));
            (possible(right).union(&of_condition), certain(left))
        }
        Node::Minus { left, right } => (possible(right), certain(left)),
        _ => return set,
    };
    set.union(&seen.minus(&bound))
}

/// Whether repeated evaluation of the expression for a row always yields the same value.
pub(crate) fn is_deterministic(expression: &Expression) -> bool {
    if let Expression::Call(Function::Rand | Function::BNode | Function::Uuid | Function::StrUuid, _) =
        expression
    {
        return false;
    }
    let mut all = true;
    expression.for_each_child(&mut |child| all &= is_deterministic(child));
    all
}
