//! Facts about property paths, cached for all join orders.

use std::sync::Arc;
use vervet_kernel::plan::Automaton;

/// Facts about a path that are independent of its join.
pub(crate) struct PathFacts {
    pub(crate) automaton: Arc<Automaton>,
    pub(crate) forwards: ReachEstimate,
    pub(crate) backwards: ReachEstimate,
    /// Cost of one search from all nodes at once, in ns.
    pub(crate) everywhere: f64,
}

/// Estimated reach and cost of a search from one node.
#[derive(Clone, Copy)]
pub(crate) struct ReachEstimate {
    /// Nodes at which paths end.
    pub(crate) nodes: f64,
    /// The same, from any number of nodes.
    pub(crate) most: f64,
    /// Cost in ns.
    pub(crate) cost: f64,
    /// Nodes with at least one first move.
    pub(crate) starts: f64,
}
