//! A statement as ids.

use crate::Id;

/// A statement with all that it may have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Statement {
    /// A vertex, or an edge whose property this is.
    pub subject: Id,
    /// The predicate, key or edge label: a vertex.
    pub predicate: Id,
    /// A vertex or a value.
    pub object: Id,
    /// The named graph; [`Id::UNBOUND`]: the default graph.
    pub graph: Id,
    /// The identity of the statement; [`Id::UNBOUND`]: it has none.
    pub edge: Id,
}
