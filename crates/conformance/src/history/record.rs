//! What is written down of transactions.
//!
//! # Invariants
//! An element (the value that a write gives, or what an append adds) is a number that no other operation of
//! the history writes, and never 0. So whoever reads it is known to have read from one transaction.

/// What the keys of a history are.
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
    /// The element that takes the place of the one before, or is appended.
    Write { key: u64, element: u64 },
}

/// A transaction that ended.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Which client ran it; each runs one after the other.
    pub(super) client: u64,
    /// Nanoseconds since the start of the history, before its begin.
    pub(super) began: u128,
    /// The same, after its commit had returned.
    pub(super) ended: u128,
    /// Whether it committed; else it conflicted with others, and nothing of it has happened.
    pub(super) committed: bool,
    pub(super) operations: Vec<Operation>,
}

/// See the header of this file.
#[derive(Clone, Debug)]
pub(super) struct History {
    pub(super) kind: Kind,
    /// By client, and for each client in order.
    pub(super) entries: Vec<Entry>,
}

impl History {
    pub(super) fn committed(&self) -> u64 {
        self.entries.iter().filter(|entry| entry.committed).count() as u64
    }
}
