//! Whether solutions can repeat.

use vervet_algebra::{GraphSlot, Node, Variable};

/// Whether no two solutions of `node` agree on all of `variables`. `false` if that is not certain.
pub(crate) fn are_distinct(node: &Node, variables: &[Variable]) -> bool {
    match node {
        Node::Patterns(patterns) => patterns.iter().all(|pattern| {
            // The property graph view has a statement once for each graph.
            let once = pattern.edge.is_some() || !pattern.parallel;
            let graph = !matches!(pattern.graph, GraphSlot::Any);
            once && graph && pattern.variables().all(|variable| variables.contains(&variable))
        }),
        // Each input binds all of its variables, so a solution of the join determines one of each.
        Node::Join(inputs) => inputs.iter().all(|input| are_distinct(input, variables)),
        Node::Filter { input, .. } | Node::OrderBy { input, .. } | Node::Slice { input, .. } => {
            are_distinct(input, variables)
        }
        Node::Project { input, variables: kept } => {
            let both: Vec<Variable> = kept.iter().copied().filter(|kept| variables.contains(kept)).collect();
            are_distinct(input, &both)
        }
        Node::Distinct(input) => match input.as_ref() {
            Node::Project { variables: kept, .. } if kept.iter().all(|kept| variables.contains(kept)) => true,
            input => are_distinct(input, variables),
        },
        Node::Reduced(input) => are_distinct(input, variables),
        _ => false,
    }
}
