//! A statement as ids.

use crate::Id;

/// A statement with its optional graph and edge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Statement {
    /// A vertex, or an edge that has this property.
    pub subject: Id,
    /// The predicate, key or edge label: a vertex.
    pub predicate: Id,
    /// A vertex or a value.
    pub object: Id,
    /// The named graph; [`Id::UNBOUND`] for the default graph.
    pub graph: Id,
    /// The identity of the statement; [`Id::UNBOUND`] without one.
    pub edge: Id,
}
