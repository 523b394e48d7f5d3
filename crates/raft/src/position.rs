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

type Membership = StoredMembership<u64, Bytes>;

#[derive(Debug, Default)]
struct State {
    last: Option<LogId>,
    /// As of the last snapshot, and each one behind it.
    memberships: Vec<Membership>,
    snapshot: Option<SnapshotMeta>,
    /// The snapshot that openraft is about to take note of.
    next: Option<SnapshotMeta>,
}

impl State {
    /// The membership as of an entry behind the last snapshot; `None`: as of the last one that is applied.
    fn membership(&self, last: Option<LogId>) -> Membership {
        let is_there = |one: &&Membership| last.is_none() || *one.log_id() <= last;
        self.memberships.iter().rev().find(is_there).cloned().unwrap_or_default()
    }

    /// Forgets the memberships before that of a snapshot.
    fn take(&mut self, meta: &SnapshotMeta) {
        let behind = |one: &Membership| *one.log_id() > *meta.last_membership.log_id();
        self.memberships.retain(behind);
        self.memberships.insert(0, meta.last_membership.clone());
        self.snapshot = Some(meta.clone());
    }
}

impl Position {
    /// The position of the last snapshot in the log.
    pub(crate) fn new(store: Store) -> Self {
        let snapshot = store.snapshot();
        let last = snapshot.as_ref().and_then(|meta| meta.last_log_id);
        let memberships = snapshot.iter().map(|meta| meta.last_membership.clone()).collect();
        let state = State { last, memberships, snapshot, next: None };
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
                last_membership: state.membership(Some(last)),
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
        Ok((state.last, state.membership(None)))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Applied>, StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let (mut applied, mut last, mut memberships) = (Vec::new(), None, Vec::new());
        for entry in entries {
            last = Some(entry.log_id);
            applied.push(Applied { is_void: batch::is_void(&entry) });
            if let EntryPayload::Membership(membership) = entry.payload {
                memberships.push(StoredMembership::new(Some(entry.log_id), membership));
            }
        }
        let Some(last) = last else { return Ok(applied) };
        // A leader may have committed it with the others alone.
        let synced = self.store.wait_for_sync(last.index).await;
        synced.map_err(|error| StorageIOError::write_logs(AnyError::error(&error)))?;
        {
            let mut state = lock(&self.state);
            state.last = Some(last);
            for membership in memberships {
                // A snapshot of an earlier version may have one of an entry behind it.
                state.memberships.retain(|before| before.log_id() < membership.log_id());
                state.memberships.push(membership);
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
            state.last = meta.last_log_id;
            state.memberships.clear();
            state.take(meta);
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
            last_membership: state.membership(None),
            snapshot_id: wire::snapshot_id(state.last.as_ref()),
        });
        state.take(&meta);
        Ok(Snapshot { meta, snapshot: Box::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraft::{CommittedLeaderId, Membership as Voters};

    #[test]
    fn a_snapshot_has_the_membership_as_of_its_entry() {
        let id = |index| Some(LogId::new(CommittedLeaderId::new(1, 1), index));
        let of = |index, voters: &[u64]| {
            StoredMembership::new(id(index), Voters::new(vec![voters.iter().copied().collect()], ()))
        };
        let (one, two, three) = (of(2, &[1]), of(5, &[1, 2]), of(9, &[1, 2, 3]));
        let mut state =
            State { memberships: vec![one.clone(), two.clone(), three.clone()], ..State::default() };
        assert_eq!(state.membership(id(4)), one);
        assert_eq!(state.membership(id(5)), two);
        assert_eq!(state.membership(None), three);
        let meta =
            SnapshotMeta { last_log_id: id(7), last_membership: two.clone(), snapshot_id: String::new() };
        state.take(&meta);
        assert_eq!(state.memberships, [two, three]);
    }
}
