//! The variables that every solution of a node binds.

use crate::{AggregateKind, Node, Pattern, VariableSet};

impl Node {
    /// The variables that every solution binds: a lower bound.
    #[must_use]
    pub fn certain(&self) -> VariableSet {
        match self {
            Self::Patterns(patterns) => patterns.iter().flat_map(Pattern::variables).collect(),
            Self::Path(path) => path.variables().collect(),
            Self::Service(_) => VariableSet::default(),
            Self::Join(nodes) => {
                nodes.iter().fold(VariableSet::default(), |set, node| set.union(&node.certain()))
            }
            Self::Union(nodes) => {
                let mut sets = nodes.iter().map(Self::certain);
                let first = sets.next().unwrap_or_default();
                sets.fold(first, |set, other| set.intersection(&other))
            }
            Self::LeftJoin { left: input, .. }
            | Self::Minus { left: input, .. }
            | Self::Filter { input, .. }
            | Self::Distinct(input)
            | Self::Reduced(input)
            | Self::OrderBy { input, .. }
            | Self::Slice { input, .. } => input.certain(),
            Self::Extend { input, variable, expression } => {
                let mut set = input.certain();
                if expression.is_certain(&set) {
                    set.insert(*variable);
                }
                set
            }
            Self::Values { variables, rows } => variables
                .iter()
                .enumerate()
                .filter(|(at, _)| rows.iter().all(|row| row.get(*at).is_some_and(Option::is_some)))
                .map(|(_, variable)| *variable)
                .collect(),
            Self::Group { input, keys, aggregates } => {
                let mut set = keys.iter().copied().collect::<VariableSet>().intersection(&input.certain());
                set.extend(
                    aggregates
                        .iter()
                        .filter(|(_, aggregate)| aggregate.kind == AggregateKind::Count)
                        .map(|(variable, _)| *variable),
                );
                set
            }
            Self::Project { input, variables } => {
                input.certain().intersection(&variables.iter().copied().collect())
            }
        }
    }
}
