//! What a server knows of changes, for people and for checks.

use vervet::Timestamp;

/// What a server knows of the changes of the graph.
#[derive(Clone, Debug)]
pub struct ChangesStatus {
    /// Name of the server that takes changes; empty if none does at present. At a server that does not vote:
    /// the names of the voters.
    pub writer: String,
    /// The last commit that this server has.
    pub timestamp: Timestamp,
    /// Bytes of the log of the writer that this server has not applied, as of its last answer.
    pub behind_bytes: u64,
    /// This server has once had all changes since it, or the writer, was started; a voter also had its vote.
    pub is_complete: bool,
    /// Why the last request for changes has failed; `None`: it has not, or this server is the writer.
    pub failure: Option<String>,
    /// This server was removed from the cluster, and is to be ended.
    pub has_left: bool,
    /// This server asks for no more changes, and has to be started again.
    pub has_ended: bool,
    /// Position in the log up to which changes are merged into the data of this server; `None`: they are not
    /// merged here.
    pub merged: Option<u64>,
    /// At a voter: what it knows of the voters.
    pub voters: Option<VotersStatus>,
}

/// What a voter knows of the voters.
#[derive(Clone, Debug)]
pub struct VotersStatus {
    /// Names of all voters.
    pub names: Vec<String>,
    /// Name of the leader, if one is known.
    pub leader: Option<String>,
    /// The current term.
    pub term: u64,
    /// Index of the last entry that this server knows to be committed.
    pub committed: u64,
    /// Index of the last entry of the log of this server.
    pub last: u64,
    /// Index of the last entry that this server has dropped from its log, if it has dropped any.
    pub purged: Option<u64>,
    /// At the leader: of each voter the index up to which it has the log.
    pub matched: Vec<(String, Option<u64>)>,
}
