//! Messages to the other voters.
//!
//! # Shape
//! [`Transport`] sends the bytes of a request to a server and returns those of its answer. The first byte of
//! a request says what it is:
//!
//! | byte | request | answer |
//! | ---: | --- | --- |
//! | 0 | append: entries, or none as a heartbeat | as openraft's `AppendEntriesResponse` |
//! | 1 | vote | as openraft's `VoteResponse` |
//! | 2 | read index: confirm the leadership | index (8 bytes) |
//! | 3 | install: what says that there is a snapshot | vote |
//! | 4 | join: number of a voter that has begun anew (8 bytes), and what is said of it | empty |
//! | 5 | remove: place of a voter (8 bytes) | empty |
//! | 6 | as 4, from a voter that sends it on to the leader | empty |
//! | 7 | describe: new texts about servers | empty |
//!
//! A vote is refused, as unsupported, to a server that has been removed and does not know it.
//! # Dropped calls
//! openraft drops the future of an append after one heartbeat interval, and sends the same entries again. A
//! large entry on a slow connection would never arrive that way. So a call runs in a thread of its own until
//! it ends; the next append to the same server waits for it, and takes its result if that says what it needs
//! to know. At most one append a server is under way, and no message is cut.
//! # What is committed
//! A leader sends entries before it has synced them (`store.rs`), and tells the others only afterwards that
//! they are committed: with more entries as far as they are synced, and otherwise after a wait for the sync,
//! [`SYNC_WAIT_MAX`] at most. A leader whose disk takes longer than [`STALL_MAX`] for a sync says nothing to
//! the others meanwhile, so they elect another one if it goes on.
//! # Cost
//! A message is encoded once for each server. Its threads are those of the runtime for blocking calls.

use crate::store::Store;
use crate::types::{LogId, Types, Vote};
use crate::wire;
use bytes::Bytes;
use openraft::AnyError;
use openraft::error::{InstallSnapshotError, NetworkError, RPCError, RaftError, Unreachable};
use openraft::network::{Backoff, RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use vervet_model::{Error, ErrorKind, Result};

pub(crate) const APPEND: u8 = 0;
pub(crate) const VOTE: u8 = 1;
pub(crate) const READ_INDEX: u8 = 2;
pub(crate) const INSTALL: u8 = 3;
pub(crate) const JOIN: u8 = 4;
pub(crate) const REMOVE: u8 = 5;
pub(crate) const JOIN_LEADER: u8 = 6;
pub(crate) const DESCRIBE: u8 = 7;

/// Longest time of an append, whose bytes may be many.
const APPEND_TIME_MAX: Duration = Duration::from_secs(30);

/// Longest wait of a message without entries for a sync of this server: a slow disk delays no heartbeat by
/// more.
const SYNC_WAIT_MAX: Duration = Duration::from_millis(50);

/// Longest sync of a leader that speaks to the others: so long that a pause of half a second elects no other.
const STALL_MAX: Duration = Duration::from_millis(300);

/// Time between two attempts to reach a server.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Sends requests to the other voters.
pub trait Transport: Send + Sync + 'static {
    /// Says what a server has said of itself ([`crate::Member::about`]), before the first message to it: it
    /// may be needed to commit the entry that names it.
    fn introduce(&self, server: u64, about: &[u8]);

    /// Sends `request` to a server, and returns its answer. Blocks, for about `time_max` at most.
    ///
    /// # Errors
    /// Whatever kept the answer from coming: the request may have arrived.
    fn call(&self, server: u64, request: &[u8], time_max: Duration) -> Result<Vec<u8>>;
}

/// Makes the connections of openraft.
#[derive(Clone)]
pub(crate) struct Network {
    pub(crate) transport: Arc<dyn Transport>,
    /// The log of this server.
    pub(crate) store: Store,
    /// Another voter has said that this one has been removed.
    pub(crate) is_dismissed: Arc<AtomicBool>,
}

/// The connection to one server.
pub(crate) struct Connection {
    transport: Arc<dyn Transport>,
    store: Store,
    is_dismissed: Arc<AtomicBool>,
    server: u64,
    /// The append that is under way.
    pending: Option<PendingAppend>,
}

struct PendingAppend {
    vote: Vote,
    prev: Option<LogId>,
    last: Option<LogId>,
    answer: JoinHandle<Result<Vec<u8>>>,
}

type CallError = RPCError<u64, Bytes, RaftError<u64>>;

/// The error of a call without an answer. openraft waits before it tries again.
fn unreachable(error: &Error) -> CallError {
    RPCError::Unreachable(Unreachable::new(&AnyError::error(error)))
}

fn malformed_answer<E: std::error::Error>() -> RPCError<u64, Bytes, E> {
    RPCError::Network(NetworkError::new(&AnyError::error("an answer that is damaged")))
}

fn malformed() -> CallError {
    malformed_answer()
}

impl RaftNetworkFactory<Types> for Network {
    type Network = Connection;

    async fn new_client(&mut self, server: u64, about: &Bytes) -> Connection {
        if !about.is_empty() {
            self.transport.introduce(server, about);
        }
        let Self { transport, store, is_dismissed } = self.clone();
        Connection { transport, store, is_dismissed, server, pending: None }
    }
}

impl Connection {
    fn start(&self, request: Vec<u8>, time_max: Duration) -> JoinHandle<Result<Vec<u8>>> {
        let (transport, server) = (Arc::clone(&self.transport), self.server);
        tokio::task::spawn_blocking(move || transport.call(server, &request, time_max))
    }

    /// What the other server is told to be committed.
    async fn committed(&self, request: &AppendEntriesRequest<Types>) -> Option<LogId> {
        let committed = request.leader_commit;
        let synced = self.store.synced(committed);
        if synced >= committed || !request.entries.is_empty() {
            return synced;
        }
        let index = committed.map_or(0, |last| last.index);
        // A disk that fails ends openraft where it applies the entry.
        _ = timeout(SYNC_WAIT_MAX, self.store.wait_for_sync(index)).await;
        self.store.synced(committed)
    }

    /// Waits for the append that is under way. Stays under way if the future is dropped.
    async fn finish(&mut self) -> Option<(PendingAppend, Result<AppendEntriesResponse<u64>, CallError>)> {
        let answer = joined((&mut self.pending.as_mut()?.answer).await);
        let pending = self.pending.take()?;
        let answer = answer
            .map_err(|error| unreachable(&error))
            .and_then(|answer| wire::read_append_answer(Bytes::from(answer)).map_err(|_| malformed()));
        Some((pending, answer))
    }
}

fn joined(joined: Result<Result<Vec<u8>>, tokio::task::JoinError>) -> Result<Vec<u8>> {
    joined.unwrap_or_else(|error| Err(Error::internal(format!("a call to another server failed: {error}"))))
}

impl RaftNetwork<Types> for Connection {
    async fn append_entries(
        &mut self,
        mut request: AppendEntriesRequest<Types>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, CallError> {
        let last = request.entries.last().map(|entry| entry.log_id).or(request.prev_log_id);
        if let Some((before, answer)) = self.finish().await {
            let is_same = before.vote == request.vote && before.prev == request.prev_log_id;
            match answer {
                Ok(AppendEntriesResponse::HigherVote(vote)) => {
                    return Ok(AppendEntriesResponse::HigherVote(vote));
                }
                Ok(AppendEntriesResponse::Success) if is_same && before.last >= last => {
                    return Ok(AppendEntriesResponse::Success);
                }
                Ok(AppendEntriesResponse::Success) if is_same && before.last > request.prev_log_id => {
                    return Ok(AppendEntriesResponse::PartialSuccess(before.last));
                }
                // It is sent, and fails, anew.
                _ => {}
            }
        }
        request.leader_commit = self.committed(&request).await;
        if self.store.sync_waited() > STALL_MAX {
            let what = "the disk of this server does not answer, so it does not lead";
            return Err(unreachable(&Error::new(ErrorKind::Unavailable, what)));
        }
        let mut bytes = vec![APPEND];
        wire::write_append(&request, &mut bytes);
        let answer = self.start(bytes, APPEND_TIME_MAX);
        self.pending = Some(PendingAppend { vote: request.vote, prev: request.prev_log_id, last, answer });
        match self.finish().await {
            Some((_, answer)) => answer,
            None => Err(malformed()),
        }
    }

    async fn install_snapshot(
        &mut self,
        request: InstallSnapshotRequest<Types>,
        option: RPCOption,
    ) -> Result<InstallSnapshotResponse<u64>, RPCError<u64, Bytes, RaftError<u64, InstallSnapshotError>>>
    {
        let mut bytes = vec![INSTALL];
        wire::write_install(&request, &mut bytes);
        let answer = joined(self.start(bytes, option.hard_ttl()).await);
        let answer =
            answer.map_err(|error| RPCError::Unreachable(Unreachable::new(&AnyError::error(&error))))?;
        let vote = wire::read_vote_only(Bytes::from(answer)).map_err(|_| malformed_answer())?;
        Ok(InstallSnapshotResponse { vote })
    }

    async fn vote(
        &mut self,
        request: VoteRequest<u64>,
        option: RPCOption,
    ) -> Result<VoteResponse<u64>, CallError> {
        let mut bytes = vec![VOTE];
        wire::write_vote_request(&request, &mut bytes);
        let answer = joined(self.start(bytes, option.hard_ttl()).await);
        let answer = answer.map_err(|error| {
            if error.kind() == ErrorKind::Unsupported {
                self.is_dismissed.store(true, Ordering::Relaxed);
            }
            unreachable(&error)
        })?;
        wire::read_vote_answer(Bytes::from(answer)).map_err(|_| malformed())
    }

    fn backoff(&self) -> Backoff {
        Backoff::new(std::iter::repeat(RETRY_INTERVAL))
    }
}
