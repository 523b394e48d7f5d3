//! The recorded form of transactions.
//!
//! # Invariants
//! An element (the value of a write or an append) is a number that no other operation of the history writes,
//! and never 0. So a read identifies the transaction that it read from.

use std::collections::HashMap;

/// The type of the keys of a history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A key has at most one element; a write replaces it.
    Register,
    /// A key has a list of elements; a write appends one.
    List,
}

impl Kind {
    pub(super) const ALL: [Self; 2] = [Self::Register, Self::List];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Register => "register",
            Self::List => "list",
        }
    }
}

/// One operation of a transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Operation {
    /// All elements of a key, in order. `None`: the transaction ended before it read.
    Read { key: u64, seen: Option<Vec<u64>> },
    /// The element that replaces the previous one, or is appended.
    Write { key: u64, element: u64 },
}

/// What a client knows of the end of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CommitOutcome {
    /// The commit was acknowledged.
    Committed,
    /// It has no effects.
    Refused,
    /// The commit was sent, and there is no answer that says whether it has effects.
    Unknown,
}

/// Which commits a transaction must see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Freshness {
    /// All that were acknowledged before its begin.
    Strict,
    /// At least those that an earlier read of this number has seen: a server that shows a commit later than
    /// the leader, and never goes back. Only for transactions that do not write.
    Session(u64),
}

/// A finished transaction.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The client that ran it; each client runs one transaction at a time.
    pub(super) client: u64,
    /// Nanoseconds from the start of the history to just before its begin.
    pub(super) began: u128,
    /// Nanoseconds from the start of the history to just after its commit returned.
    pub(super) ended: u128,
    pub(super) outcome: CommitOutcome,
    pub(super) freshness: Freshness,
    pub(super) operations: Vec<Operation>,
}

/// See the header of this file.
#[derive(Clone, Debug)]
pub(super) struct History {
    pub(super) kind: Kind,
    /// By client, and in order for each client.
    pub(super) entries: Vec<Entry>,
}

impl Entry {
    /// Pairs of key and element that it writes.
    pub(super) fn writes(&self) -> impl Iterator<Item = (u64, u64)> {
        self.operations.iter().filter_map(|operation| match operation {
            Operation::Write { key, element } => Some((*key, *element)),
            Operation::Read { .. } => None,
        })
    }

    /// Keys and what it has read of them.
    pub(super) fn reads(&self) -> impl Iterator<Item = (u64, &[u64])> {
        self.operations.iter().filter_map(|operation| match operation {
            Operation::Read { key, seen: Some(seen) } => Some((*key, seen.as_slice())),
            _ => None,
        })
    }
}

impl History {
    pub(super) fn count(&self, outcome: CommitOutcome) -> u64 {
        self.entries.iter().filter(|entry| entry.outcome == outcome).count() as u64
    }

    /// For each entry whether it took effect as far as the history shows: it was acknowledged, or its outcome
    /// is unknown and an entry that took effect has read one of its writes.
    pub(super) fn effective(&self) -> Vec<bool> {
        let mut unknown = HashMap::new();
        for (at, entry) in self.entries.iter().enumerate() {
            if entry.outcome == CommitOutcome::Unknown {
                unknown.extend(entry.writes().map(|(_, element)| (element, at)));
            }
        }
        let mut effective: Vec<bool> =
            self.entries.iter().map(|entry| entry.outcome == CommitOutcome::Committed).collect();
        let mut next: Vec<usize> = (0..effective.len()).filter(|at| effective[*at]).collect();
        while let Some(at) = next.pop() {
            for element in self.entries[at].reads().flat_map(|(_, seen)| seen) {
                if let Some(&writer) = unknown.get(element)
                    && !std::mem::replace(&mut effective[writer], true)
                {
                    next.push(writer);
                }
            }
        }
        effective
    }
}
