//! Facts about property paths, cached for all join orders.

use crate::classes::{ClassSet, Distribution};
use std::sync::Arc;
use vervet_kernel::plan::Automaton;

/// Classes that the first and the last node of a path may have; both sets are empty if there is none.
#[derive(Clone, Copy)]
pub(crate) struct PathClasses {
    pub(crate) first: ClassSet,
    pub(crate) last: ClassSet,
}

impl PathClasses {
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_empty() || self.last.is_empty()
    }
}

/// Facts about a path that are independent of its join.
pub(crate) struct PathFacts {
    pub(crate) automaton: Arc<Automaton>,
    /// Classes of both ends.
    pub(crate) classes: PathClasses,
    pub(crate) forwards: ReachEstimate,
    pub(crate) backwards: ReachEstimate,
    /// Cost of one search from all nodes at once, in ns.
    pub(crate) everywhere: f64,
}

/// Estimated reach and cost of a search from one node.
#[derive(Clone)]
pub(crate) struct ReachEstimate {
    /// Nodes at which paths end.
    pub(crate) nodes: f64,
    /// The same, from any number of nodes.
    pub(crate) most: f64,
    /// Cost in ns.
    pub(crate) cost: f64,
    /// Nodes with at least one first move.
    pub(crate) starts: f64,
    /// The distribution of the nodes at which paths end over classes; `None`: unknown.
    pub(crate) classes: Option<Distribution>,
}
