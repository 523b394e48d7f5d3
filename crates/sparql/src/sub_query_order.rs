//! Which `ORDER BY` of a sub-query matters: below a `LIMIT` or `OFFSET`, and below `GROUP_CONCAT` and
//! `SAMPLE`.
//!
//! The solutions of a group pattern have no order (SPARQL 1.1 §18.2), so all others are removed.
//! `GROUP_CONCAT` and `SAMPLE` see the solutions in the order of the sub-query as far as the operators
//! between preserve it: filters, `BIND`, projection, and joins, whose other parts follow the ordered one.

use vervet_algebra::Node;

/// Removes the sorts below `root` that no operator observes; sorts of the query itself remain.
pub(crate) fn remove_unused(root: &mut Node) {
    match root {
        Node::Project { input, .. }
        | Node::Distinct(input)
        | Node::Reduced(input)
        | Node::Slice { input, .. } => remove_unused(input),
        Node::OrderBy { input, .. } => remove(input, false),
        other => return remove(other, false),
    }
    remove_in_conditions(root);
}

/// Removes the sorts in the pattern of an update.
pub(crate) fn remove_all(pattern: &mut Node) {
    remove(pattern, false);
}

/// Removes the sorts in `node`; `used`: whether the order of its solutions matters.
fn remove(node: &mut Node, used: bool) {
    if !used {
        while let Node::OrderBy { input, .. } = node {
            *node = std::mem::replace(&mut **input, Node::unit());
        }
    }
    remove_in_conditions(node);
    match node {
        Node::Slice { input, .. } => remove_unused(input),
        Node::OrderBy { input, .. } => remove(input, false),
        Node::Group { input, aggregates, .. } => {
            let used = aggregates.iter().any(|(_, aggregate)| aggregate.kind.depends_on_order());
            remove(input, used);
        }
        Node::Project { input, .. }
        | Node::Distinct(input)
        | Node::Reduced(input)
        | Node::Filter { input, .. }
        | Node::Extend { input, .. } => remove(input, used),
        Node::Minus { left, right } => {
            remove(left, used);
            remove(right, false);
        }
        // Its rows without a match come after others.
        Node::LeftJoin { left, right, .. } => {
            remove(left, false);
            remove(right, false);
        }
        Node::Join(parts) => {
            let first = parts.iter().position(has_order);
            for (at, part) in parts.iter_mut().enumerate() {
                remove(part, used && first == Some(at));
            }
        }
        Node::Union(branches) => branches.iter_mut().for_each(|branch| remove(branch, false)),
        Node::Patterns(_) | Node::Path(_) | Node::Service(_) | Node::Values { .. } => {}
    }
}

/// Whether the solutions of a part of a join have an order.
fn has_order(node: &Node) -> bool {
    match node {
        Node::OrderBy { .. } => true,
        Node::Project { input, .. }
        | Node::Distinct(input)
        | Node::Reduced(input)
        | Node::Filter { input, .. }
        | Node::Extend { input, .. } => has_order(input),
        _ => false,
    }
}

/// Removes the sorts in `EXISTS`.
fn remove_in_conditions(node: &mut Node) {
    node.for_each_expression_mut(&mut |expression| {
        expression.for_each_exists_mut(&mut |exists| remove(&mut exists.pattern, false));
    });
}
