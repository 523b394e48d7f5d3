//! What a transaction does to the graph, and when that became visible.

use std::fmt;
use vervet_model::Statement;

/// A point in the order of commits. 0 is before the first one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The one that follows.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One statement that is there after a transaction, or no longer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// The statement, exactly: with its graph and its edge.
    pub statement: Statement,
    /// Whether it was added; else it was removed.
    pub added: bool,
}
