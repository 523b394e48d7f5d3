//! The types with which openraft is instantiated.

use bytes::Bytes;
use std::io::Cursor;

openraft::declare_raft_types!(
    /// Types of the log: an entry has the bytes of a batch (`batch.rs`), a server has a number, and what its
    /// caller says of it ([`crate::Member::about`]).
    pub(crate) Types:
        D = Bytes,
        R = Applied,
        NodeId = u64,
        Node = Bytes,
);

/// What became of a committed entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Applied {
    /// The batch was proposed in another term than that of its entry, and has no effect.
    pub(crate) is_void: bool,
}

pub(crate) type Entry = openraft::Entry<Types>;
pub(crate) type LogId = openraft::LogId<u64>;
pub(crate) type Membership = openraft::Membership<u64, Bytes>;
pub(crate) type SnapshotMeta = openraft::SnapshotMeta<u64, Bytes>;
pub(crate) type StorageError = openraft::StorageError<u64>;
pub(crate) type Vote = openraft::Vote<u64>;
