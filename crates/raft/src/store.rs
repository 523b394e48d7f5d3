//! The log of one server: openraft's log storage over the records of `vervet-log`.
//!
//! # Shape
//! One write-ahead log has everything that a server must not forget, in the order in which it happened:
//!
//! | kind | record |
//! | ---: | --- |
//! | 1 | entry: the next one |
//! | 2 | vote |
//! | 3 | committed: position up to which entries are committed, or 0 and nothing; may lag behind |
//! | 4 | truncated: index (8 bytes) of the first entry that no longer counts |
//! | 5 | purged: position of the last entry that is no longer needed |
//! | 6 | identity: number of the cluster and of the server (8 bytes each), the first record |
//! | 7 | snapshot: the last entry whose effects are kept elsewhere, and the voters at that entry |
//!
//! In memory: of each entry its position and where its record is, and the last entries ([`CACHE_BYTES`]).
//! Earlier entries are read from the files.
//! # Files
//! A snapshot begins a new file, which repeats the identity, the vote and the committed position. So the
//! files before it have nothing but entries that are needed, and are removed once those are purged.
//! # Invariants
//! 1. Entries have consecutive indexes. A truncation is a record before the entries that replace the removed
//!    ones, so the state after a power loss is one that the server was in, at or after its last sync: torn
//!    tails are cut by `vervet-log` as in the log of a single database.
//! 2. A vote is synced before `save_vote` returns. An entry of another leader is synced before its callback
//!    runs. An entry of this server's own leadership may be sent to the others before it is synced here, as
//!    Ongaro's thesis (10.2.1) has it: its callback runs at once. openraft then counts this server among
//!    those that have the entry. So nothing leaves openraft that rests on it: an entry is applied, and the
//!    others are told that it is committed, only once it is synced here (`Store::wait_for_sync`,
//!    `Store::synced`). A server that loses such an entry has also lost what openraft made of it.
//! 3. An entry that cannot be read, or does not have the position that it should have, is an error, which
//!    ends openraft on this server. It is never left out of a list: a leader that sent a list without it
//!    would damage the logs of others.
//! # Threads
//! At a leader one thread syncs, for all appends that wait at that time, and openraft's own task goes on
//! meanwhile. Elsewhere that task has nothing to do before an append is synced, and syncs it itself: a thread
//! less to wake. So it does with votes.
//! # Cost
//! An entry takes 32 bytes of memory beyond the cache. Reading an entry that is not in the cache opens a
//! file.

use crate::batch;
use crate::types::{Entry, LogId, SnapshotMeta, StorageError, Types, Vote};
use crate::unsynced::Unsynced;
use crate::wire::{self, Malformed, entry_bytes};
use bytes::{Buf, Bytes};
use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{AnyError, CommittedLeaderId, LogState, OptionalSend, RaftLogReader, StorageIOError};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::ops::{Bound, RangeBounds};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use vervet_env::{Environment, LockGuard};
use vervet_log::{Log, LogOptions, LogStatus, Lsn, ReadOptions};
use vervet_model::{Error, ErrorKind, Result, lock};

const ENTRY: u8 = 1;
const VOTE: u8 = 2;
const COMMITTED: u8 = 3;
const TRUNCATED: u8 = 4;
const PURGED: u8 = 5;
const IDENTITY: u8 = 6;
const SNAPSHOT: u8 = 7;

/// Bytes of entries that stay in memory.
const CACHE_BYTES: usize = 64 << 20;

/// How often the check of a log begins again.
const CHECKS_MAX: usize = 10;

/// Bytes of entries of one message, unless one entry alone has more.
pub(crate) const MESSAGE_BYTES: usize = 1 << 20;

/// Name of the file in the directory of a log that its process has locked.
pub const LOCK_FILE: &str = "lock";

/// Whose log it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Number of the cluster, and of its data.
    pub cluster: u64,
    /// Number of the server.
    pub server: u64,
}

/// What [`crate::Replica::check_log`] has verified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckedEntries {
    /// Number of entries that are in the log.
    pub entries: u64,
    /// Payload of all records, in bytes.
    pub bytes: u64,
}

/// The error of a voter whose log is not there.
fn lost(directory: &Path) -> Error {
    let what = format!("the replicated log of this server is not in {}", directory.display());
    Error::new(ErrorKind::Input, what)
        .with_hint("a server that has lost its log, and so its votes, cannot vote any more")
}

/// The log of one server. Clones share it.
#[derive(Clone)]
pub(crate) struct Store {
    /// Appends of an own leadership that wait for the disk. Ends before `shared`, which waits for the thread
    /// that receives them.
    syncs: Sender<Lsn>,
    shared: Arc<Shared>,
}

struct Shared {
    environment: Environment,
    directory: PathBuf,
    log: Arc<Log>,
    state: Mutex<State>,
    cache_bytes_max: usize,
    unsynced: Arc<Unsynced>,
    /// The thread that syncs, which also holds the log. It ends when all clones of the store have ended.
    syncing: Option<JoinHandle<()>>,
    /// Released after the log is closed.
    _lock: Box<dyn LockGuard>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(syncing) = self.syncing.take() {
            // After a panic there is nothing to wait for.
            _ = syncing.join();
        }
    }
}

#[derive(Default)]
struct State {
    identity: Option<Identity>,
    vote: Option<Vote>,
    committed: Option<LogId>,
    purged: Option<LogId>,
    snapshot: Option<SnapshotMeta>,
    /// Index of the first of `places`.
    first: u64,
    places: VecDeque<Place>,
    /// The last entries.
    cache: VecDeque<Entry>,
    cache_bytes: usize,
    /// Position of the last record of any kind.
    last_record: Lsn,
}

/// Where the record of an entry is.
#[derive(Clone, Copy)]
struct Place {
    leader: CommittedLeaderId<u64>,
    /// The record before it.
    before: Lsn,
}

impl State {
    fn next(&self) -> u64 {
        self.first + self.places.len() as u64
    }

    fn cache_first(&self) -> u64 {
        self.next() - self.cache.len() as u64
    }

    fn id(&self, index: u64) -> Option<LogId> {
        let at = usize::try_from(index.checked_sub(self.first)?).ok()?;
        self.places.get(at).map(|place| LogId::new(place.leader, index))
    }

    fn last(&self) -> Option<LogId> {
        self.next().checked_sub(1).and_then(|last| self.id(last)).or(self.purged)
    }

    /// Adds the entry whose record is the next one.
    fn push(&mut self, id: &LogId) -> Result<(), Malformed> {
        if self.places.is_empty() {
            self.first = id.index;
        }
        if id.index != self.next() {
            return Err(Malformed);
        }
        self.places.push_back(Place { leader: id.leader_id, before: self.last_record });
        Ok(())
    }

    /// Checks that the log begins where the purged entries end, with the identity.
    fn check_start(&self, directory: &Path, start: Lsn) -> Result<()> {
        let first = self.purged.map_or(0, |purged| purged.index + 1);
        if start > Lsn(0) && self.identity.is_none() || !self.places.is_empty() && self.first != first {
            let what = format_args!("files of the replicated log before LSN {start} are missing");
            return Err(Error::corrupt(directory.display(), what));
        }
        Ok(())
    }

    /// Whether the server appends entries as a leader: the vote for itself is that of a majority.
    fn leads(&self) -> bool {
        self.vote.is_some_and(|vote| {
            vote.committed && Some(vote.leader_id.node_id) == self.identity.map(|own| own.server)
        })
    }

    fn truncate(&mut self, from: u64) {
        while self.next() > from && self.places.pop_back().is_some() {
            if let Some(entry) = self.cache.pop_back() {
                self.cache_bytes -= entry_bytes(&entry);
            }
        }
    }

    fn purge(&mut self, up_to: LogId) {
        while self.first <= up_to.index && self.places.pop_front().is_some() {
            self.first += 1;
            if self.cache.len() > self.places.len()
                && let Some(entry) = self.cache.pop_front()
            {
                self.cache_bytes -= entry_bytes(&entry);
            }
        }
        if self.places.is_empty() {
            self.first = up_to.index + 1;
        }
        self.purged = Some(up_to);
    }

    /// Replays a record.
    fn replay(&mut self, lsn: Lsn, kind: u8, payload: &[u8]) -> Result<()> {
        let damaged = |_: Malformed| {
            Error::corrupt(
                "the replicated log",
                format_args!("the record of kind {kind} before {lsn} is damaged"),
            )
        };
        let mut bytes = Bytes::copy_from_slice(payload);
        match kind {
            ENTRY => wire::read_log_id(&mut bytes).and_then(|id| self.push(&id)).map_err(damaged)?,
            VOTE => self.vote = Some(wire::read_vote(&mut bytes).map_err(damaged)?),
            COMMITTED => self.committed = wire::read_optional_log_id(&mut bytes).map_err(damaged)?,
            TRUNCATED => self.truncate(bytes.try_get_u64_le().map_err(|_| damaged(Malformed))?),
            PURGED => self.purge(wire::read_log_id(&mut bytes).map_err(damaged)?),
            SNAPSHOT => self.snapshot = Some(wire::read_snapshot(&mut bytes).map_err(damaged)?),
            IDENTITY => {
                let mut number = || bytes.try_get_u64_le().map_err(|_| damaged(Malformed));
                self.identity = Some(Identity { cluster: number()?, server: number()? });
            }
            _ => {
                let what = format!("the replicated log has a record of unknown kind {kind}");
                return Err(Error::new(ErrorKind::Unsupported, what)
                    .with_hint("start the server with the version of Vervet that wrote it"));
            }
        }
        self.last_record = lsn;
        Ok(())
    }
}

impl Store {
    /// Whether a directory has a log that was begun.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub(crate) fn exists(environment: &Environment, directory: &Path) -> Result<bool> {
        let exists = environment.files.exists(directory);
        if !exists.map_err(|error| Error::io(format_args!("look for {}", directory.display()), &error))? {
            return Ok(false);
        }
        let mut has_record = false;
        let options = ReadOptions { beside_writer: true, ..ReadOptions::default() };
        let start = vervet_log::first_lsn(environment, directory)?;
        let read = vervet_log::read(environment, directory, start, &options, &mut |_, _, _| {
            has_record = true;
            Err(Error::internal("the first record is enough"))
        });
        match read {
            Err(error) if !has_record => Err(error),
            _ => Ok(has_record),
        }
    }

    /// Verifies every record of the log in a directory; returns the number of entries, and the bytes of all
    /// records. Changes nothing; another process may write to the log meanwhile.
    ///
    /// # Errors
    /// Input: there is none. Corrupt: it is damaged. Io.
    pub(crate) fn check(environment: &Environment, directory: &Path) -> Result<CheckedEntries> {
        if !Self::exists(environment, directory)? {
            return Err(lost(directory));
        }
        let mut attempts = 0..CHECKS_MAX;
        loop {
            match Self::check_once(environment, directory) {
                // The process that has the log has removed files that were to be read.
                Err(error) if error.kind() == ErrorKind::Unavailable && attempts.next().is_some() => {}
                checked => return checked,
            }
        }
    }

    fn check_once(environment: &Environment, directory: &Path) -> Result<CheckedEntries> {
        let mut state = State::default();
        let mut bytes = 0;
        let options = ReadOptions { beside_writer: true, ..ReadOptions::default() };
        let start = vervet_log::first_lsn(environment, directory)?;
        vervet_log::read(environment, directory, start, &options, &mut |lsn, kind, payload| {
            state.replay(lsn, kind, payload)?;
            if kind == ENTRY {
                let entry = wire::read_entry(Bytes::copy_from_slice(payload)).map_err(|_| {
                    let what = format_args!("the entry before {lsn} is damaged");
                    Error::corrupt(directory.display(), what)
                })?;
                batch::records(&entry)?;
            }
            bytes += payload.len() as u64;
            Ok(())
        })?;
        state.check_start(directory, start)?;
        Ok(CheckedEntries { entries: state.places.len() as u64, bytes })
    }

    /// Opens the log in a directory, or begins one if `may_begin`.
    ///
    /// # Errors
    /// Input: there is none, or that of another server. Corrupt: it is damaged. Io, Unavailable: another
    /// process has it.
    pub(crate) fn open(
        environment: &Environment,
        directory: &Path,
        identity: Identity,
        may_begin: bool,
    ) -> Result<Self> {
        Self::open_with_cache(environment, directory, identity, may_begin, CACHE_BYTES)
    }

    /// [`Store::open`] with another size of the cache than [`CACHE_BYTES`].
    pub(crate) fn open_with_cache(
        environment: &Environment,
        directory: &Path,
        identity: Identity,
        may_begin: bool,
        cache_bytes_max: usize,
    ) -> Result<Self> {
        let io = |what: &str, error| Error::io(format_args!("{what} {}", directory.display()), &error);
        if may_begin {
            create(environment, directory).map_err(|error| io("create", error))?;
        } else if !Self::exists(environment, directory)? {
            return Err(lost(directory));
        }
        let guard =
            environment.files.lock(&directory.join(LOCK_FILE)).map_err(|error| match error.kind() {
                std::io::ErrorKind::WouldBlock => {
                    let what = format!("another process writes the log in {}", directory.display());
                    Error::new(ErrorKind::Unavailable, what)
                }
                _ => io("lock", error),
            })?;
        let mut state = State::default();
        let options = ReadOptions::default();
        let start = vervet_log::first_lsn(environment, directory)?;
        let found = vervet_log::read(environment, directory, start, &options, &mut |lsn, kind, payload| {
            state.replay(lsn, kind, payload)
        })?;
        state.check_start(directory, start)?;
        if state.identity.is_some_and(|found| found != identity) {
            let what = format!("the log in {} is that of another server", directory.display());
            return Err(
                Error::new(ErrorKind::Input, what).with_hint("give each server the files that are its own")
            );
        }
        // A torn tail may have had the entries, or a truncation, that a position refers to.
        if let Some(committed) = state.committed
            && state.id(committed.index) != Some(committed)
        {
            state.committed = None;
        }
        // openraft leads on after a restart if this vote is committed. The entries that a leader has sent are
        // committed later, and its next records would not follow them. As a candidate it leads in a later
        // term, behind all entries of this one.
        if let Some(vote) = &mut state.vote
            && vote.leader_id.node_id == identity.server
        {
            vote.committed = false;
        }
        let log = Arc::new(Log::open(environment, directory, found, LogOptions::default())?);
        if state.identity.is_none() {
            state.last_record = log.append(IDENTITY, &identity_record(identity))?;
            log.wait(state.last_record)?;
            state.identity = Some(identity);
        }
        let (syncs, waiting) = mpsc::channel();
        let unsynced = Arc::new(Unsynced::new());
        let (synced, entries) = (Arc::clone(&log), Arc::clone(&unsynced));
        let syncing = std::thread::Builder::new()
            .name("raft-log".to_owned())
            .spawn(move || sync_all(&synced, &entries, &waiting))
            .map_err(|error| Error::io("start a thread for the log", &error))?;
        let shared = Shared {
            environment: environment.clone(),
            directory: directory.to_owned(),
            log,
            state: Mutex::new(state),
            cache_bytes_max,
            unsynced,
            syncing: Some(syncing),
            _lock: guard,
        };
        Ok(Self { shared: Arc::new(shared), syncs })
    }

    /// The last entry up to `last` that is synced here, as are all before it. `None`: there is none in the
    /// log.
    pub(crate) fn synced(&self, last: Option<LogId>) -> Option<LogId> {
        match (last, self.shared.unsynced.first()) {
            (Some(last), Some(first)) if last.index >= first => {
                first.checked_sub(1).and_then(|synced| self.log_id(synced))
            }
            _ => last,
        }
    }

    /// How long the first entry of an own leadership has waited for its sync.
    pub(crate) fn sync_waited(&self) -> Duration {
        self.shared.unsynced.waited()
    }

    /// Returns once the entries up to `index` are synced here.
    ///
    /// # Errors
    /// Io: they cannot be synced.
    pub(crate) async fn wait_for_sync(&self, index: u64) -> Result<()> {
        self.shared.unsynced.wait(index).await
    }

    /// Bytes in the files.
    pub(crate) fn bytes(&self) -> u64 {
        self.status().bytes
    }

    /// Size and syncs of the files.
    pub(crate) fn status(&self) -> LogStatus {
        self.shared.log.status()
    }

    /// The position of an entry of the log.
    pub(crate) fn log_id(&self, index: u64) -> Option<LogId> {
        lock(&self.shared.state).id(index)
    }

    /// The last entry that was purged.
    pub(crate) fn purged(&self) -> Option<LogId> {
        lock(&self.shared.state).purged
    }

    /// The last snapshot.
    pub(crate) fn snapshot(&self) -> Option<SnapshotMeta> {
        lock(&self.shared.state).snapshot.clone()
    }

    /// Keeps what says that there is a snapshot, in a new file.
    pub(crate) fn save_snapshot(&self, meta: &SnapshotMeta) -> Result<()> {
        let last = {
            let mut state = lock(&self.shared.state);
            let state = &mut *state;
            self.shared.log.rotate()?;
            let identity = state.identity.ok_or_else(|| Error::internal("a log without an identity"))?;
            self.write(state, IDENTITY, &identity_record(identity))?;
            let mut record = Vec::new();
            if let Some(vote) = &state.vote {
                wire::write_vote(vote, &mut record);
                self.write(state, VOTE, &record)?;
            }
            record.clear();
            wire::write_optional_log_id(state.committed.as_ref(), &mut record);
            self.write(state, COMMITTED, &record)?;
            record.clear();
            wire::write_snapshot(meta, &mut record);
            state.snapshot = Some(meta.clone());
            self.write(state, SNAPSHOT, &record)?
        };
        self.shared.log.wait(last)
    }

    /// Drops the entries up to this one, and the files that have no others.
    fn purge_files(&self, up_to: LogId) -> Result<()> {
        let mut record = Vec::new();
        wire::write_log_id(&up_to, &mut record);
        let (purged, needed) = {
            let mut state = lock(&self.shared.state);
            state.purge(up_to);
            let purged = self.write(&mut state, PURGED, &record)?;
            (purged, state.places.front().map_or(purged, |first| first.before))
        };
        // Without its record, the log would lack entries that nothing says are not needed.
        self.shared.log.wait(purged)?;
        self.shared.log.remove_before(needed)
    }

    /// Appends a record, and optionally syncs it.
    fn write(&self, state: &mut State, kind: u8, record: &[u8]) -> Result<Lsn> {
        let lsn = self.shared.log.append(kind, record)?;
        state.last_record = lsn;
        Ok(lsn)
    }

    /// The entries of a range as far as they are in the log, at least one if there is one, and no more after
    /// `bytes_max` bytes.
    ///
    /// # Errors
    /// Corrupt, Io: an entry cannot be read.
    pub(crate) fn entries(&self, start: u64, end: u64, bytes_max: usize) -> Result<Vec<Entry>> {
        let (mut entries, mut bytes) = (Vec::new(), 0);
        let mut next = start;
        while bytes < bytes_max {
            let (from, cached_from, until, ids) = {
                let state = lock(&self.shared.state);
                next = next.max(state.first);
                let (cached_from, until) = (state.cache_first(), state.next().min(end));
                if next >= until {
                    break;
                }
                if next >= cached_from {
                    let skip = usize::try_from(next - cached_from).unwrap_or(usize::MAX);
                    for entry in state.cache.iter().skip(skip) {
                        if entry.log_id.index >= until || bytes >= bytes_max {
                            break;
                        }
                        bytes += entry_bytes(entry);
                        entries.push(entry.clone());
                    }
                    break;
                }
                let at = usize::try_from(next - state.first).unwrap_or(usize::MAX);
                let from = state.places.get(at).map(|place| place.before);
                let count = usize::try_from(until.min(cached_from) - next).unwrap_or(usize::MAX);
                let ids: Vec<_> =
                    state.places.iter().skip(at).take(count).map(|place| place.leader).collect();
                (from.ok_or_else(|| Error::internal("an entry has no place"))?, cached_from, until, ids)
            };
            debug_assert!(next < cached_from && next < until, "the cache has the rest");
            next = self.read_files(from, next, &ids, (&mut entries, &mut bytes), bytes_max)?;
        }
        Ok(entries)
    }

    /// Reads entries `next`, … with the given leaders from the files behind `from`; returns the index after
    /// the last one.
    fn read_files(
        &self,
        from: Lsn,
        mut next: u64,
        leaders: &[CommittedLeaderId<u64>],
        (entries, bytes): (&mut Vec<Entry>, &mut usize),
        bytes_max: usize,
    ) -> Result<u64> {
        let mut leaders = leaders.iter().peekable();
        let Shared { environment, directory, log, .. } = &*self.shared;
        let options = ReadOptions { beside_writer: true, id: Some(log.id()), ..ReadOptions::default() };
        let read = vervet_log::read(environment, directory, from, &options, &mut |_, kind, payload| {
            let Some(leader) = leaders.peek().filter(|_| *bytes < bytes_max) else {
                return Err(Error::internal("enough entries"));
            };
            if kind != ENTRY {
                return Ok(());
            }
            let wrong =
                |_: Malformed| Error::corrupt(directory.display(), format_args!("entry {next} is damaged"));
            let id = wire::read_log_id(&mut Bytes::copy_from_slice(&payload[..payload.len().min(24)]));
            // Others were truncated later.
            if id.map_err(wrong)? == LogId::new(**leader, next) {
                let entry = wire::read_entry(Bytes::copy_from_slice(payload)).map_err(wrong)?;
                *bytes += entry_bytes(&entry);
                entries.push(entry);
                (next, _) = (next + 1, leaders.next());
            }
            Ok(())
        });
        match read {
            Err(error) if leaders.peek().is_some() && *bytes < bytes_max => Err(error),
            Ok(_) if leaders.peek().is_some() => {
                let what = format_args!("entry {next} of the replicated log is missing");
                Err(Error::corrupt(directory.display(), what))
            }
            _ => Ok(next),
        }
    }
}

fn identity_record(identity: Identity) -> [u8; 16] {
    let mut record = [0; 16];
    record[..8].copy_from_slice(&identity.cluster.to_le_bytes());
    record[8..].copy_from_slice(&identity.server.to_le_bytes());
    record
}

/// Creates a directory, and syncs the names of all that it creates.
fn create(environment: &Environment, directory: &Path) -> std::io::Result<()> {
    let files = &environment.files;
    let mut parents = Vec::new();
    for above in directory.ancestors().filter(|above| !above.as_os_str().is_empty()) {
        if files.exists(above)? {
            break;
        }
        parents.extend(above.parent().filter(|parent| !parent.as_os_str().is_empty()));
    }
    files.create_dir_all(directory)?;
    parents.into_iter().rev().try_for_each(|parent| files.sync_dir(parent))
}

/// Syncs appends until the store is dropped.
fn sync_all(log: &Log, unsynced: &Unsynced, waiting: &Receiver<Lsn>) {
    while let Ok(first) = waiting.recv() {
        let last = waiting.try_iter().last().unwrap_or(first);
        unsynced.end(last, log.wait(last));
    }
}

fn any(error: &Error) -> AnyError {
    AnyError::error(error)
}

fn unwritten(error: &Error) -> StorageError {
    StorageIOError::write_logs(any(error)).into()
}

fn unread(error: &Error) -> StorageError {
    StorageIOError::read_logs(any(error)).into()
}

impl RaftLogReader<Types> for Store {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry>, StorageError> {
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(last) => last.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => u64::MAX,
        };
        self.entries(start, end, usize::MAX).map_err(|error| unread(&error))
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<Entry>, StorageError> {
        self.entries(start, end, MESSAGE_BYTES).map_err(|error| unread(&error))
    }
}

impl RaftLogStorage<Types> for Store {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, StorageError> {
        let state = lock(&self.shared.state);
        Ok(LogState { last_purged_log_id: state.purged, last_log_id: state.last() })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), StorageError> {
        let mut record = Vec::new();
        wire::write_vote(vote, &mut record);
        let saved = {
            let mut state = lock(&self.shared.state);
            state.vote = Some(*vote);
            self.write(&mut state, VOTE, &record)
        };
        let synced = saved.and_then(|lsn| self.shared.log.wait(lsn));
        synced.map_err(|error| StorageIOError::write_vote(any(&error)).into())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, StorageError> {
        Ok(lock(&self.shared.state).vote)
    }

    /// Not synced: without it, the server learns the position from the next leader.
    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), StorageError> {
        let mut record = Vec::new();
        wire::write_optional_log_id(committed.as_ref(), &mut record);
        let mut state = lock(&self.shared.state);
        state.committed = committed;
        self.write(&mut state, COMMITTED, &record).map(drop).map_err(|error| unwritten(&error))
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, StorageError> {
        Ok(lock(&self.shared.state).committed)
    }

    async fn append<I>(&mut self, entries: I, callback: LogFlushed<Types>) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let (lsn, is_own) = self.append_entries(entries).map_err(|error| unwritten(&error))?;
        let synced = if is_own {
            self.syncs.send(lsn).map_err(|_| unwritten(&Error::internal("the log has ended")))?;
            Ok(())
        } else {
            self.shared.log.wait(lsn)
        };
        callback.log_io_completed(synced.map_err(std::io::Error::other));
        Ok(())
    }

    async fn truncate(&mut self, from: LogId) -> Result<(), StorageError> {
        let mut state = lock(&self.shared.state);
        state.truncate(from.index);
        self.shared.unsynced.truncate(from.index);
        self.write(&mut state, TRUNCATED, &from.index.to_le_bytes())
            .map(drop)
            .map_err(|error| unwritten(&error))
    }

    async fn purge(&mut self, up_to: LogId) -> Result<(), StorageError> {
        self.purge_files(up_to).map_err(|error| unwritten(&error))
    }
}

impl Store {
    /// Appends entries, not synced; whether they are of this server's own leadership.
    fn append_entries(&self, entries: impl IntoIterator<Item = Entry>) -> Result<(Lsn, bool)> {
        let mut record = Vec::new();
        let mut state = lock(&self.shared.state);
        let state = &mut *state;
        let is_own = state.leads();
        for entry in entries {
            record.clear();
            wire::write_entry(&entry, &mut record);
            state
                .push(&entry.log_id)
                .map_err(|_| Error::internal(format!("entry {} is not the next one", entry.log_id)))?;
            let lsn = self.write(state, ENTRY, &record)?;
            if is_own {
                self.shared.unsynced.push(entry.log_id.index, lsn);
            }
            state.cache_bytes += entry_bytes(&entry);
            state.cache.push_back(entry);
        }
        self.shrink_cache(state);
        Ok((state.last_record, is_own))
    }

    /// Drops entries from the cache that are in the files, and not the last one.
    fn shrink_cache(&self, state: &mut State) {
        if state.cache_bytes <= self.shared.cache_bytes_max {
            return;
        }
        let durable = self.shared.log.durable_lsn();
        while state.cache_bytes > self.shared.cache_bytes_max && state.cache.len() > 1 {
            let after = state.places.len() - state.cache.len() + 1;
            // The record before the next entry is this one or a later one.
            if state.places.get(after).is_none_or(|next| next.before > durable) {
                break;
            }
            let Some(entry) = state.cache.pop_front() else { break };
            state.cache_bytes -= entry_bytes(&entry);
        }
    }
}

impl Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = lock(&self.shared.state);
        f.debug_struct("Store")
            .field("identity", &state.identity)
            .field("vote", &state.vote)
            .field("last", &state.last())
            .finish_non_exhaustive()
    }
}
