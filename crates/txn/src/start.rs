//! Where a log of changes begins, if not in the directory of a database.

use crate::mutation::Timestamp;
use std::sync::Arc;
use vervet_store::Base;

/// A base, and the position in the log of its changes up to which the base has them.
#[derive(Clone, Debug)]
pub struct Start {
    /// The graph of all records up to `position`.
    pub base: Arc<dyn Base>,
    /// The last commit of the log in it; 0: none.
    pub timestamp: Timestamp,
    /// Position of the last record of the log in it; 0: none.
    pub position: u64,
    /// The texts of the constraints that it satisfies.
    pub constraints: Vec<String>,
}

impl Start {
    /// A base that was made before the log began.
    #[must_use]
    pub fn new(base: Arc<dyn Base>, constraints: Vec<String>) -> Self {
        Self { base, timestamp: Timestamp::default(), position: 0, constraints }
    }
}
