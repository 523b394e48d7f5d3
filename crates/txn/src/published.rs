//! A committed version of the graph: what readers take, and what transactions begin with.

use crate::constraint::Constraint;
use crate::constraints::Constraints;
use crate::mutation::Timestamp;
use std::sync::{Arc, OnceLock};
use vervet_delta::Version;
use vervet_log::Lsn;

/// A version with its timestamp.
#[derive(Debug)]
pub struct Published {
    /// The graph.
    pub version: Version,
    /// The last commit in it.
    pub timestamp: Timestamp,
    /// Number of changes of all commits since the start.
    pub(crate) changes: u64,
    /// The constraints that it satisfies, and that every transaction from it must satisfy.
    pub(crate) constraints: Arc<Constraints>,
    /// LSN at which everything in it is durable. Not set: it is durable.
    pub(crate) lsn: OnceLock<Lsn>,
}

impl Published {
    pub(crate) fn new(version: Version, timestamp: Timestamp, constraints: Arc<Constraints>) -> Arc<Self> {
        Arc::new(Self { version, timestamp, changes: 0, constraints, lsn: OnceLock::new() })
    }

    /// The same commit with another version and timestamp.
    pub(crate) fn with(&self, version: Version, timestamp: Timestamp) -> Self {
        let constraints = Arc::clone(&self.constraints);
        Self { version, timestamp, changes: self.changes, constraints, lsn: OnceLock::new() }
    }

    /// The constraints of this version, ascending.
    #[must_use]
    pub fn constraints(&self) -> Vec<Constraint> {
        self.constraints.list().cloned().collect()
    }
}
