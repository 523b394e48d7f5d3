//! The recorded form of transactions.
//!
//! # Invariants
//! An element (the value of a write or an append) is a number that no other operation of the history writes,
//! and never 0. So a read identifies the transaction that it read from.

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

/// A finished transaction.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The client that ran it; each client runs one transaction at a time.
    pub(super) client: u64,
    /// Nanoseconds from the start of the history to just before its begin.
    pub(super) began: u128,
    /// Nanoseconds from the start of the history to just after its commit returned.
    pub(super) ended: u128,
    /// Whether it committed; otherwise it conflicted, and has no effects.
    pub(super) committed: bool,
    pub(super) operations: Vec<Operation>,
}

/// See the header of this file.
#[derive(Clone, Debug)]
pub(super) struct History {
    pub(super) kind: Kind,
    /// By client, and in order for each client.
    pub(super) entries: Vec<Entry>,
}

impl History {
    pub(super) fn committed(&self) -> u64 {
        self.entries.iter().filter(|entry| entry.committed).count() as u64
    }
}
