//! Variable scopes: bound and free variables of an algebra node, and lateral evaluation.
//!
//! A node is evaluated *laterally* if it starts from rows that already bind some of its variables (graph
//! exploration) instead of from the empty row. [`is_lateral`] tests whether both are equivalent.

use vervet_algebra::{Expression, Node, VariableSet};

/// The variables of an expression.
pub(crate) fn expression_variables(expression: &Expression) -> VariableSet {
    expression.variable_set()
}

/// The variables that some solution of `node` may bind.
pub(crate) fn possible(node: &Node) -> VariableSet {
    node.variable_set()
}

/// Whether evaluating `node` from rows that may bind `outer` is equivalent to joining it with them.
///
/// Tests the outermost operator only; its inputs are tested when they are lowered. The rule behind all cases:
/// an operator that reads a variable must see the value from its own input, not one that only the outer row
/// binds. Operators over whole bags (grouping, distinct, order, slice) always start from the empty row, and
/// so do volatile ones: each solution of their input has one value, whatever it is joined with.
pub(crate) fn is_lateral(node: &Node, outer: &VariableSet) -> bool {
    if is_volatile(node) {
        return outer.is_empty();
    }
    let sees_the_same = |seen: VariableSet, bound: VariableSet| seen.intersection(outer).is_subset(&bound);
    match node {
        Node::Patterns(_) | Node::Path(_) | Node::Service(_) => true,
        Node::Values { .. } | Node::Join(_) | Node::Union(_) => true,
        Node::Project { .. } | Node::Reduced(_) => true,
        Node::Filter { input, condition } => sees_the_same(expression_variables(condition), input.certain()),
        Node::Extend { input, variable, expression } => {
            !outer.contains(*variable) && sees_the_same(expression_variables(expression), input.certain())
        }
        Node::LeftJoin { left, right, condition } => {
            let of_left = left.certain();
            condition.as_ref().is_none_or(|condition| {
                sees_the_same(expression_variables(condition), of_left.clone().union(&right.certain()))
            }) && sees_the_same(possible(right), of_left)
        }
        Node::Minus { left, right } => sees_the_same(possible(right), left.certain()),
        Node::Group { .. } | Node::Distinct(_) | Node::OrderBy { .. } | Node::Slice { .. } => false,
    }
}

/// Whether the operator itself has a volatile expression (`RAND`, `UUID`, `BNODE`), which is evaluated once
/// for each solution of its input.
pub(crate) fn is_volatile(node: &Node) -> bool {
    match node {
        Node::Filter { condition, .. } => condition.is_volatile(),
        Node::Extend { expression, .. } => expression.is_volatile(),
        Node::LeftJoin { condition, .. } => condition.as_ref().is_some_and(Expression::is_volatile),
        _ => false,
    }
}

/// Whether no expression in the node, patterns of `EXISTS` included, is volatile.
pub(crate) fn is_stable(node: &Node) -> bool {
    let mut stable = true;
    node.for_each_expression(&mut |expression| {
        stable &= !expression.is_volatile();
        expression.for_each_exists(&mut |exists| stable &= is_stable(&exists.pattern));
    });
    node.for_each_child(&mut |child| stable &= is_stable(child));
    stable
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
        Node::Filter { input, condition } => (expression_variables(condition), input.certain()),
        Node::Extend { input, expression, .. } => (expression_variables(expression), input.certain()),
        Node::LeftJoin { left, right, condition } => {
            let of_condition = condition.as_ref().map(expression_variables).unwrap_or_default();
            let of_condition = of_condition.minus(&right.certain());
            (possible(right).union(&of_condition), left.certain())
        }
        Node::Minus { left, right } => (possible(right), left.certain()),
        _ => return set,
    };
    set.union(&seen.minus(&bound))
}
