//! Changes of a transaction, and commit timestamps.

use std::fmt;
use vervet_model::Statement;

/// A position in the order of commits; 0 is before the first commit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The next timestamp.
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

/// One statement that a transaction added or removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mutation {
    /// The exact statement, with its graph and its edge.
    pub statement: Statement,
    /// `true` if the statement was added, `false` if it was removed.
    pub added: bool,
}
