//! Recently committed transactions (RCT): the changes that a commit is validated against.
//!
//! # Shape
//! Commit timestamps with the changes of each, ascending, without gaps from `floor` on.
//! # Invariants
//! Every commit after the begin of an active transaction is in the table, or `floor` is above that begin:
//! then the transaction is too old to be validated and cannot commit.
//! # Source
//! The RCT of G-Tran (arXiv 2105.04449, §4). Difference: a timestamp is taken and its changes are entered
//! under one lock, so no commit can be missed; no entry is still being validated, so there is nothing to wait
//! for (see `commit`).

use crate::mutation::{Mutation, Timestamp};
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of changes that are kept for long transactions.
pub const COMMITTED_CHANGES_MAX: usize = 8 << 20;

/// The changes of one transaction.
#[derive(Clone, Debug)]
pub(crate) enum CommitScope {
    /// A list of changes.
    Mutations(Arc<[Mutation]>),
    /// Not listed: a bulk load.
    WholeGraph,
}

impl CommitScope {
    /// Number of changes to validate against.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Mutations(changes) => changes.len(),
            Self::WholeGraph => 0,
        }
    }
}

/// See the header of this file.
#[derive(Debug, Default)]
pub(crate) struct RecentCommits {
    commits: VecDeque<(Timestamp, CommitScope)>,
    changes: usize,
    /// All commits after this one are in the table.
    floor: Timestamp,
}

impl RecentCommits {
    /// An empty table: commits up to `floor` are unknown.
    pub(crate) fn new(floor: Timestamp) -> Self {
        Self { floor, ..Self::default() }
    }

    /// Enters a commit; timestamps ascend.
    pub(crate) fn push(&mut self, timestamp: Timestamp, changes: CommitScope) {
        let last = self.commits.back().map_or(self.floor, |(last, _)| *last);
        assert!(last < timestamp, "commit {timestamp} behind {last}");
        self.changes += changes.count();
        self.commits.push_back((timestamp, changes));
    }

    /// Commits after `begin`, ascending; `None` if some of them have been dropped.
    pub(crate) fn after(&self, begin: Timestamp) -> Option<impl Iterator<Item = (Timestamp, &CommitScope)>> {
        let first = self.commits.partition_point(|(timestamp, _)| *timestamp <= begin);
        (begin >= self.floor)
            .then(|| self.commits.range(first..).map(|(timestamp, changes)| (*timestamp, changes)))
    }

    /// Removes the commits after this one: they were not applied.
    pub(crate) fn undo_after(&mut self, last: Timestamp) {
        while let Some((timestamp, changes)) = self.commits.back()
            && *timestamp > last
        {
            self.changes -= changes.count();
            self.commits.pop_back();
        }
    }

    /// Drops commits that no active transaction needs, and the oldest ones beyond the limit.
    pub(crate) fn forget(&mut self, oldest_active: Timestamp) {
        while let Some((timestamp, changes)) = self.commits.front()
            && (*timestamp <= oldest_active || self.changes > COMMITTED_CHANGES_MAX)
        {
            self.floor = *timestamp;
            self.changes -= changes.count();
            self.commits.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_there_until_nobody_can_ask() {
        let mut committed = RecentCommits::new(Timestamp(3));
        for timestamp in 4..10 {
            committed.push(Timestamp(timestamp), CommitScope::WholeGraph);
        }
        let after = |committed: &RecentCommits, begin| {
            committed.after(Timestamp(begin)).map(|commits| commits.map(|(at, _)| at.0).collect::<Vec<_>>())
        };
        assert_eq!(after(&committed, 2), None);
        assert_eq!(after(&committed, 3), Some(vec![4, 5, 6, 7, 8, 9]));
        committed.forget(Timestamp(6));
        assert_eq!(after(&committed, 5), None);
        assert_eq!(after(&committed, 6), Some(vec![7, 8, 9]));
        assert_eq!(after(&committed, 9), Some(vec![]));
    }
}
