//! What openraft calls the state machine: how far the log is committed.
//!
//! # Shape
//! A server takes committed entries from its own log when it wants them ([`crate::Replica::read`]), so
//! applying an entry only moves a position. Consumers that cannot read the base of the graph for a while,
//! since it is on other servers, do not hold up the log this way, and a server that has lost the leadership
//! reads again from the first entry. An entry is applied once it is synced at this server.
//! # Snapshots
//! The callers keep the effects of entries ([`crate::Replica::compact`]). A snapshot names the last entry
//! whose effects this server keeps, so that the log can drop the entries up to it. A voter that receives a
//! snapshot copies those effects from another server, not through the log.

use crate::batch;
use crate::store::Store;
use crate::types::{Applied, Entry, LogId, SnapshotMeta, StorageError, Types};
use crate::wire;
use bytes::Bytes;
use openraft::storage::RaftStateMachine;
use openraft::{
    AnyError, EntryPayload, OptionalSend, RaftSnapshotBuilder, RaftTypeConfig, Snapshot, StorageIOError,
    StoredMembership,
};
use std::io::Cursor;
use std::sync::Arc;
use std::sync::Mutex;
use tokio::sync::watch;
use vervet_model::{Error, Result as VervetResult, lock};

/// See the header of this file. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    store: Store,
    state: Arc<Mutex<State>>,
    /// The last committed entry that this server has.
    committed: Arc<watch::Sender<Option<LogId>>>,
}

#[derive(Debug, Default)]
struct State {
    last: Option<LogId>,
    membership: StoredMembership<u64, Bytes>,
    snapshot: Option<SnapshotMeta>,
    /// The snapshot that openraft is about to take note of.
    next: Option<SnapshotMeta>,
}

impl Position {
    /// The position of the last snapshot in the log.
    pub(crate) fn new(store: Store) -> Self {
        let snapshot = store.snapshot();
        let last = snapshot.as_ref().and_then(|meta| meta.last_log_id);
        let membership = snapshot.as_ref().map(|meta| meta.last_membership.clone()).unwrap_or_default();
        let state = State { last, membership, snapshot, next: None };
        Self { store, state: Arc::new(Mutex::new(state)), committed: Arc::new(watch::channel(last).0) }
    }

    /// Makes the next snapshot one whose last entry is `last`, unless there is one with it already.
    ///
    /// # Errors
    /// Io.
    pub(crate) fn prepare_snapshot(&self, last: LogId) -> VervetResult<bool> {
        let meta = {
            let state = lock(&self.state);
            if state.snapshot.as_ref().is_some_and(|meta| meta.last_log_id >= Some(last)) {
                return Ok(false);
            }
            SnapshotMeta {
                last_log_id: Some(last),
                last_membership: state.membership.clone(),
                snapshot_id: wire::snapshot_id(Some(&last)),
            }
        };
        self.store.save_snapshot(&meta)?;
        lock(&self.state).next = Some(meta);
        Ok(true)
    }

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

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership<u64, Bytes>), StorageError> {
        let state = lock(&self.state);
        Ok((state.last, state.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Applied>, StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let (mut applied, mut last, mut last_membership) = (Vec::new(), None, None);
        for entry in entries {
            last = Some(entry.log_id);
            applied.push(Applied { is_void: batch::is_void(&entry) });
            if let EntryPayload::Membership(membership) = entry.payload {
                last_membership = Some(StoredMembership::new(Some(entry.log_id), membership));
            }
        }
        let Some(last) = last else { return Ok(applied) };
        // A leader may have committed it with the others alone.
        let synced = self.store.wait_for_sync(last.index).await;
        synced.map_err(|error| StorageIOError::write_logs(AnyError::error(&error)))?;
        {
            let mut state = lock(&self.state);
            state.last = Some(last);
            if let Some(membership) = last_membership {
                state.membership = membership;
            }
        }
        self.committed.send_replace(Some(last));
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
        meta: &SnapshotMeta,
        _: Box<<Types as RaftTypeConfig>::SnapshotData>,
    ) -> Result<(), StorageError> {
        self.store.save_snapshot(meta).map_err(|error: Error| {
            StorageIOError::write_snapshot(Some(meta.signature()), AnyError::error(&error))
        })?;
        {
            let mut state = lock(&self.state);
            (state.last, state.membership) = (meta.last_log_id, meta.last_membership.clone());
            state.snapshot = Some(meta.clone());
        }
        self.committed.send_replace(meta.last_log_id);
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<Types>>, StorageError> {
        Ok(self.snapshot())
    }
}

impl RaftSnapshotBuilder<Types> for Position {
    async fn build_snapshot(&mut self) -> Result<Snapshot<Types>, StorageError> {
        let mut state = lock(&self.state);
        let meta = state.next.take().unwrap_or_else(|| SnapshotMeta {
            last_log_id: state.last,
            last_membership: state.membership.clone(),
            snapshot_id: wire::snapshot_id(state.last.as_ref()),
        });
        state.snapshot = Some(meta.clone());
        Ok(Snapshot { meta, snapshot: Box::default() })
    }
}
