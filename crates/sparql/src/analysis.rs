//! Analysis and construction of algebra nodes: variables, joins, filters.

use vervet_algebra::{Expression, GraphSlot, Node, Pattern, Slot, Variable, VariableSet};

/// Adds the variables that a solution of `node` may bind. The variable `graph` does not count if it occurs
/// only as a graph: within `GRAPH ?g { }`, SPARQL has not bound `?g` yet.
pub(crate) fn mark_possible(node: &Node, graph: Option<Variable>, set: &mut VariableSet) {
    match node {
        Node::Patterns(patterns) => {
            patterns.iter().flat_map(ordinary_variables).for_each(|variable| set.insert(variable));
            for pattern in patterns {
                match pattern.graph {
                    GraphSlot::Variable(variable) if Some(variable) != graph => set.insert(variable),
                    _ => {}
                }
            }
        }
        Node::Path(path) => {
            path.ends().for_each(|variable| set.insert(variable));
            path.graph_variable().filter(|of| Some(*of) != graph).into_iter().for_each(|of| set.insert(of));
        }
        Node::Service(service) => service.bound().for_each(|variable| set.insert(variable)),
        Node::Join(nodes) | Node::Union(nodes) => {
            nodes.iter().for_each(|node| mark_possible(node, graph, set));
        }
        Node::LeftJoin { left, right, .. } => {
            mark_possible(left, graph, set);
            mark_possible(right, graph, set);
        }
        Node::Minus { left: input, .. }
        | Node::Filter { input, .. }
        | Node::Distinct(input)
        | Node::Reduced(input)
        | Node::OrderBy { input, .. }
        | Node::Slice { input, .. } => mark_possible(input, graph, set),
        Node::Extend { input, variable, .. } => {
            mark_possible(input, graph, set);
            set.insert(*variable);
        }
        Node::Values { variables, .. } => variables.iter().for_each(|variable| set.insert(*variable)),
        Node::Group { keys, aggregates, .. } => {
            let computed = aggregates.iter().map(|(variable, _)| *variable);
            let shown = |variable: &Variable| Some(*variable) != graph;
            keys.iter().copied().filter(shown).chain(computed).for_each(|variable| set.insert(variable));
        }
        Node::Project { input, variables } => {
            let mut inner = VariableSet::default();
            mark_possible(input, graph, &mut inner);
            variables.iter().filter(|v| inner.contains(**v)).for_each(|v| set.insert(*v));
        }
    }
}

/// The variables of a pattern other than its graph.
pub(crate) fn ordinary_variables(pattern: &Pattern) -> impl Iterator<Item = Variable> + '_ {
    let edge = pattern.edge.as_ref().and_then(Slot::variable);
    [pattern.subject.variable(), pattern.predicate.variable(), pattern.object.variable(), edge]
        .into_iter()
        .flatten()
}

/// All variables that `node` mentions in patterns or expressions, without duplicates.
pub(crate) fn mentioned(node: &Node) -> Vec<Variable> {
    fn visit(node: &Node, all: &mut Vec<Variable>) {
        node.for_each_child(&mut |child| visit(child, all));
        node.for_each_expression(&mut |expression| expression.variables(all));
        node.variables(all);
    }
    let mut all = Vec::new();
    visit(node, &mut all);
    all
}

/// Number of parts of a join searched for its list of patterns.
const HOME_MAX: usize = 16;

/// Joins two nodes. Patterns are merged into one list, if there is one among the first parts, and nested
/// joins are flattened.
///
/// # Cost
/// Proportional to the moved parts of `right`, since a large group is joined part by part.
pub(crate) fn join(left: Node, right: Node) -> Node {
    let mut parts = match left {
        Node::Join(parts) => parts,
        other => vec![other],
    };
    let new = match right {
        Node::Join(parts) => parts,
        other => vec![other],
    };
    for node in new {
        let is_unit = matches!(parts.as_slice(), [Node::Patterns(patterns)] if patterns.is_empty());
        let home = parts.iter_mut().take(HOME_MAX).find_map(|part| match part {
            Node::Patterns(patterns) => Some(patterns),
            _ => None,
        });
        match (node, home) {
            (node, _) if is_unit => parts[0] = node,
            (Node::Patterns(mut more), Some(patterns)) => patterns.append(&mut more),
            (Node::Patterns(more), None) if more.is_empty() => {}
            (node, _) => parts.push(node),
        }
    }
    match parts.pop() {
        None => Node::unit(),
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            Node::Join(parts)
        }
    }
}

/// Filters by all of `conditions`; merges with a filter directly below.
pub(crate) fn filter(input: Node, mut conditions: Vec<Expression>) -> Node {
    if conditions.is_empty() {
        return input;
    }
    let mut all = Vec::new();
    let input = match input {
        Node::Filter { input, condition } => {
            flatten_and(condition, &mut all);
            *input
        }
        other => other,
    };
    conditions.drain(..).for_each(|condition| flatten_and(condition, &mut all));
    Node::Filter { input: Box::new(input), condition: conjunction(all) }
}

/// The conjunction of `conditions`.
pub(crate) fn conjunction(mut conditions: Vec<Expression>) -> Expression {
    match conditions.pop() {
        Some(only) if conditions.is_empty() => only,
        Some(last) => {
            conditions.push(last);
            Expression::And(conditions)
        }
        None => Expression::And(conditions),
    }
}

fn flatten_and(condition: Expression, all: &mut Vec<Expression>) {
    match condition {
        Expression::And(parts) => all.extend(parts),
        other => all.push(other),
    }
}
