//! A replicated log: openraft over the write-ahead log, for the servers of a cluster.
//!
//! A few servers, the *voters*, have the same log. One of them, the leader, appends records to it; a record
//! is committed when a majority of the voters has synced it, and stays in the log while any majority of their
//! disks lives. When the leader fails, the others elect the next one, which has all committed entries.
//!
//! # Shape
//! [`Replica`]: one voter. [`Member`]: the voters, which join and leave. [`Leadership`]: what a leader
//! appends. [`Transport`]: messages to the other voters, which the caller sends. `store`: the log on disk.
//! `network`: openraft's messages over the transport. `position`: how far the log is committed. `batch`: the
//! records of an entry. `wire`: bytes. `types`: openraft's parameters.
//!
//! An entry has a batch of records, all that waited when the entry before it was proposed. Every server takes
//! the records of committed entries from its own log ([`Replica::read`]), in the same order.
//! # Changes of the leader
//! A leader makes records for the state that the log leads to, and that state includes records that are not
//! committed yet. When it loses the leadership, its state may contain what the log of the next leader does
//! not: changes, and numbers that it gave to terms. Undoing them one by one would have to find all of them.
//! Instead:
//!
//! 1. The caller makes a state for each leadership, from the committed entries. A [`Role::Leader`] has
//!    applied the first entry of its term, so all entries of earlier leaders are committed and readable.
//! 2. What readers see changes only by [`Publish`], when a record is committed.
//! 3. When the leadership ends, its queue ends for good, with errors that say whether the outcome is
//!    known; the caller drops the state, and takes it again from the log when it needs one.
//! 4. A batch names the term in which it was made. One that reaches the log in a later term of the same
//!    server is void: every server ignores it, since the state that it was made for is gone.
//! # Invariants
//! 1. A published record is synced at a majority of the voters, so it survives the loss of any minority.
//! 2. All servers read the same entries at the same indexes.
//! 3. A voter whose log cannot be read or written ends; it never answers with a part of its log. A voter
//!    without a log does not start, unless the caller knows that it never had one
//!    ([`ReplicaOptions::may_begin`]): it would have forgotten votes and acknowledged entries, and a majority
//!    with it could lose some.
//! # Reads
//! [`Replica::read_index`] returns an index that is at least that of any commit acknowledged before the call
//! (ReadIndex, §6.4 of Ongaro's thesis): no clock decides. Requests share confirmations.
//! # Not here
//! What entries lead to: the caller keeps it, and says up to which entry ([`Replica::compact`]). Handing over
//! the leadership: openraft 0.9 has none.
//! # Source
//! D. Ongaro, J. Ousterhout, "In Search of an Understandable Consensus Algorithm", USENIX ATC 2014; openraft
//! 0.9, where a term may have several leaders of which one is elected.
#![forbid(unsafe_code)]
#![allow(clippy::result_large_err, reason = "errors of openraft, whose traits return them by value")]

mod batch;
mod leadership;
mod member;
mod members;
mod network;
mod place;
mod position;
mod replica;
mod store;
mod types;
mod unsynced;
mod wait;
mod wire;

#[cfg(test)]
mod tests;

pub use batch::Record;
pub use leadership::{BATCH_BYTES, IN_FLIGHT_MAX, Leadership, Publish, RECORD_BYTES_MAX, Sequence, WAIT_MAX};
pub use member::{AboutChange, Member, MemberRules};
pub use members::VOTERS_MAX;
pub use network::Transport;
pub use place::{number_at, place};
pub use replica::{CommittedEntry, Replica, ReplicaOptions, ReplicaStatus, Role, STEP_DOWN_MAX, Timing};
pub use store::{CheckedEntries, Identity, LOCK_FILE};
