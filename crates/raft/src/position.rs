//! What openraft calls the state machine: how far the log is committed.
//!
//! # Shape
//! A server takes committed entries from its own log when it wants them ([`crate::Replica::read`]), so
//! applying an entry only moves a position. Consumers that cannot read the base of the graph for a while,
//! since it is on other servers, do not hold up the log this way, and a server that has lost the leadership
//! reads again from the first entry.
//! # Snapshots
//! A snapshot has the position and no data: nothing purges the log, so a new voter receives all entries.

use crate::batch;
use crate::types::{Applied, Entry, LogId, StorageError, Types};
use openraft::storage::RaftStateMachine;
use openraft::{
    EntryPayload, OptionalSend, RaftSnapshotBuilder, RaftTypeConfig, Snapshot, SnapshotMeta, StoredMembership,
};
use std::io::Cursor;
use std::sync::Arc;
use std::sync::Mutex;
use tokio::sync::watch;
use vervet_model::lock;

type Meta = SnapshotMeta<u64, openraft::EmptyNode>;

/// See the header of this file. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    state: Arc<Mutex<State>>,
    /// The last committed entry that this server has.
    committed: Arc<watch::Sender<Option<LogId>>>,
}

#[derive(Debug, Default)]
struct State {
    last: Option<LogId>,
    membership: StoredMembership<u64, openraft::EmptyNode>,
    snapshot: Option<Meta>,
}

impl Default for Position {
    fn default() -> Self {
        Self { state: Arc::default(), committed: Arc::new(watch::channel(None).0) }
    }
}

impl Position {
    /// The last committed entry, and its changes.
    pub(crate) fn committed(&self) -> watch::Receiver<Option<LogId>> {
        self.committed.subscribe()
    }

    fn snapshot(&self) -> Option<Snapshot<Types>> {
        let meta = lock(&self.state).snapshot.clone()?;
        Some(Snapshot { meta, snapshot: Box::default() })
    }
}

impl RaftStateMachine<Types> for Position {
    type SnapshotBuilder = Self;

    async fn applied_state(
        &mut self,
    ) -> Result<(Option<LogId>, StoredMembership<u64, openraft::EmptyNode>), StorageError> {
        let state = lock(&self.state);
        Ok((state.last, state.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Applied>, StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut applied = Vec::new();
        let last = {
            let mut state = lock(&self.state);
            for entry in entries {
                state.last = Some(entry.log_id);
                applied.push(Applied { is_void: batch::is_void(&entry) });
                if let EntryPayload::Membership(membership) = entry.payload {
                    state.membership = StoredMembership::new(Some(entry.log_id), membership);
                }
            }
            state.last
        };
        self.committed.send_replace(last);
        Ok(applied)
    }

    async fn get_snapshot_builder(&mut self) -> Self {
        self.clone()
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Cursor<Vec<u8>>>, StorageError> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &Meta,
        _: Box<<Types as RaftTypeConfig>::SnapshotData>,
    ) -> Result<(), StorageError> {
        let mut state = lock(&self.state);
        (state.last, state.membership) = (meta.last_log_id, meta.last_membership.clone());
        state.snapshot = Some(meta.clone());
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<Types>>, StorageError> {
        Ok(self.snapshot())
    }
}

impl RaftSnapshotBuilder<Types> for Position {
    async fn build_snapshot(&mut self) -> Result<Snapshot<Types>, StorageError> {
        let mut state = lock(&self.state);
        let meta = Meta {
            last_log_id: state.last,
            last_membership: state.membership.clone(),
            snapshot_id: state.last.map_or(0, |last| last.index).to_string(),
        };
        state.snapshot = Some(meta.clone());
        Ok(Snapshot { meta, snapshot: Box::default() })
    }
}
