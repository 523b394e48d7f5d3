//! Changes of a transaction, their application to a version, and commit timestamps.

use std::fmt;
use vervet_delta::Version;
use vervet_model::{Result, Statement, Tag};

/// Minimum number of consecutive additions that are sorted and added together.
const BULK_MIN: usize = 64;

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

impl Mutation {
    /// Applies this change; returns whether it had an effect.
    pub(crate) fn apply(&self, version: &mut Version) -> Result<bool> {
        if self.added { version.insert(&self.statement) } else { version.remove(&self.statement) }
    }

    fn is_about_edge(&self) -> bool {
        [self.statement.subject, self.statement.object].iter().any(|id| id.tag() == Tag::Edge)
    }
}

/// Applies all changes in order. Consecutive additions may refer to each other in any order, as in
/// [`crate::Transaction::insert_all`].
pub(crate) fn apply_all(version: &mut Version, changes: &[Mutation]) -> Result<()> {
    for run in changes.chunk_by(|a, b| a.added == b.added) {
        match run.first() {
            Some(Mutation { added: true, .. })
                if run.len() >= BULK_MIN || run.iter().any(Mutation::is_about_edge) =>
            {
                let statements: Vec<_> = run.iter().map(|change| change.statement).collect();
                version.insert_all(&statements)?;
            }
            _ => run.iter().try_for_each(|change| change.apply(version).map(drop))?,
        }
    }
    Ok(())
}
