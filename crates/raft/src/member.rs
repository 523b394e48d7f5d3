//! What the log says of a server that has it.

use bytes::Bytes;
use vervet_model::Result;

/// A server that has the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// Its number.
    pub server: u64,
    /// What it has said of itself when it joined ([`crate::ReplicaOptions::about`]); empty: it is one of the
    /// first voters.
    pub about: Bytes,
    /// Whether it votes. It does not while it gets the log, and when it has left.
    pub votes: bool,
}

/// A new text about a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AboutChange {
    /// Its number.
    pub server: u64,
    /// The text that the caller knows: with another one nothing is changed.
    pub before: Bytes,
    /// The new one.
    pub after: Bytes,
}

/// What the texts about servers ([`Member::about`]) mean, which only users of the log know.
#[derive(Clone, Copy, Debug)]
pub struct MemberRules {
    /// Whether two texts are of the same server: a server is not admitted at the place of another one.
    pub is_same: fn(&[u8], &[u8]) -> bool,
    /// The text of a server that takes its place again, from the one before and its own.
    pub renewed: fn(&[u8], &[u8]) -> Vec<u8>,
    /// Refuses a change from these voters to those.
    pub check: fn(&[Member], &[Member]) -> Result<()>,
}
