//! The log on disk: openraft's own suite, power failures, and reads that fail.

use crate::position::Position;
use crate::store::{Identity, Store};
use crate::types::{Entry, LogId, SnapshotMeta, StorageError, Types, Vote};
use bytes::Bytes;
use fastrand::Rng;
use openraft::storage::{RaftLogStorage, RaftLogStorageExt};
use openraft::testing::{StoreBuilder, Suite, log_id};
use openraft::{EntryPayload, RaftLogReader, StorageIOError, StoredMembership};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use vervet_env::{Environment, Fault, Simulation};
use vervet_model::{ErrorKind, Result};

const IDENTITY: Identity = Identity { cluster: 7, server: 1 };

fn open(environment: &Environment, cache: usize) -> Result<Store> {
    Store::open_with_cache(environment, Path::new("/server/raft"), IDENTITY, true, cache)
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(future)
}

struct Builder {
    cache: usize,
    seed: AtomicU64,
}

impl StoreBuilder<Types, Store, Position> for Builder {
    async fn build(&self) -> Result<((), Store, Position), StorageError> {
        let environment = Environment::simulated(self.seed.fetch_add(1, Ordering::Relaxed));
        let store = open(&environment, self.cache);
        let store = store.map_err(|error| StorageIOError::read_logs(openraft::AnyError::error(error)))?;
        Ok(((), store.clone(), Position::new(store)))
    }
}

/// openraft's suite passes, with entries in memory and with entries that are read from the files.
#[test]
fn the_suite_of_openraft_passes() {
    for cache in [usize::MAX, 0] {
        Suite::test_all(Builder { cache, seed: AtomicU64::new(1) }).expect("passes");
    }
}

/// Entries with the same position have the same content, as in all logs.
fn entry(term: u64, index: u64) -> Entry {
    let mut random = Rng::with_seed(term << 32 | index);
    let length = random.usize(..300);
    let bytes: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(length).collect();
    Entry { log_id: log_id(term, 1, index), payload: EntryPayload::Normal(Bytes::from(bytes)) }
}

/// What a log has to have.
#[derive(Clone, PartialEq, Debug, Default)]
struct Model {
    entries: Vec<Entry>,
    vote: Option<Vote>,
    purged: Option<LogId>,
}

impl Model {
    fn of(store: &mut Store) -> Self {
        let entries = store.entries(0, u64::MAX, usize::MAX).expect("readable");
        Self { entries, vote: block_on(store.read_vote()).expect("known"), purged: store.purged() }
    }

    fn next(&self) -> u64 {
        let last = self.entries.last().map(|entry| entry.log_id).or(self.purged);
        last.map_or(0, |last| last.index + 1)
    }
}

fn snapshot_of(last: LogId) -> SnapshotMeta {
    let snapshot_id = crate::wire::snapshot_id(Some(&last));
    SnapshotMeta { last_log_id: Some(last), last_membership: StoredMembership::default(), snapshot_id }
}

/// One random change of a store. The states that a power failure may leave are added to `states`; once the
/// change is synced, only the last one is left.
fn change(store: &mut Store, states: &mut Vec<Model>, random: &mut Rng) -> Result<(), StorageError> {
    let mut model = states.last().cloned().expect("one state");
    let term = model.vote.map_or(1, |vote| vote.leader_id.term);
    let (first, next) = (model.next() - model.entries.len() as u64, model.next());
    match random.u8(..11) {
        0 => {
            let vote = Vote::new(term + 1, random.u64(1..4));
            states.push(Model { vote: Some(vote), ..model });
            block_on(store.save_vote(&vote))?;
        }
        1 if next > first => {
            let from = random.u64(next.saturating_sub(5).max(first)..next);
            model.entries.truncate(usize::try_from(from - first).expect("small"));
            states.push(model);
            return block_on(store.truncate(log_id(term, 1, from)));
        }
        2 => {
            let committed: Option<LogId> = model.entries.last().map(|entry| entry.log_id);
            return block_on(store.save_committed(committed));
        }
        3 if next > first => {
            let count = random.usize(1..=model.entries.len());
            let last = model.entries[random.usize(count - 1..model.entries.len())].log_id;
            store.save_snapshot(&snapshot_of(last)).map_err(|error| StorageIOError::write(&error))?;
            states.drain(..states.len() - 1);
            let purged = model.entries[count - 1].log_id;
            model.entries.drain(..count);
            states.push(Model { purged: Some(purged), ..model });
            block_on(store.purge(purged))?;
        }
        _ => {
            let new: Vec<Entry> = (next..=next + random.u64(..4)).map(|at| entry(term, at)).collect();
            for entry in &new {
                model.entries.push(entry.clone());
                states.push(model.clone());
            }
            block_on(store.blocking_append(new))?;
        }
    }
    states.drain(..states.len() - 1);
    Ok(())
}

/// After a loss of power at any write, the log is as it was at its last sync, or after some of the changes
/// since.
#[test]
fn what_was_synced_survives_a_loss_of_power() {
    for seed in 0..200 {
        let mut random = Rng::with_seed(seed);
        let simulation = Simulation::new(seed);
        let environment = simulation.environment();
        let mut states = vec![Model::default()];
        for _ in 0..6 {
            let mut store = open(&environment, random.usize(..2000)).expect("opens");
            let found = Model::of(&mut store);
            assert!(states.contains(&found), "seed {seed}: {found:?} is none of {states:?}");
            states = vec![found];
            let committed = block_on(store.read_committed()).expect("known");
            let last = states[0].entries.last().map(|entry| entry.log_id).or(states[0].purged);
            assert!(committed <= last, "seed {seed}: {committed:?} is behind {last:?}");
            simulation.files.fail_write(random.u64(..40), Fault::Power);
            while change(&mut store, &mut states, &mut random).is_ok() {}
            match random.u8(..3) {
                0 => simulation.files.crash(),
                1 => simulation.files.crash_losing_all(),
                _ => simulation.files.crash_reordering(),
            }
        }
    }
}

/// A failed sync is an error of the append, and no later entry counts as written.
#[test]
fn a_failed_sync_ends_the_log() {
    for n in 0..12 {
        let simulation = Simulation::new(n);
        let mut store = open(&simulation.environment(), usize::MAX).expect("opens");
        simulation.files.fail_write(n, Fault::Io);
        let mut at = 0;
        let append = |store: &mut Store, at| block_on(store.blocking_append([entry(1, at)]));
        while append(&mut store, at).is_ok() {
            at += 1;
        }
        assert!(append(&mut store, at + 1).is_err(), "write {n}");
        assert!(block_on(store.save_vote(&Vote::new(2, 1))).is_err(), "write {n}");
        simulation.files.crash_losing_all();
        drop(store);
        let store = open(&simulation.environment(), usize::MAX).expect("opens");
        let kept = store.entries(0, u64::MAX, usize::MAX).expect("readable").len() as u64;
        assert!(kept >= at && kept <= at + 1, "write {n}: {kept} entries of {at}");
    }
}

/// A leader's entries are appended before they are synced; a sync that fails is an error of the wait for it.
#[test]
fn a_failed_sync_of_a_leader_is_found() {
    for n in 0..12 {
        let simulation = Simulation::new(n);
        let mut store = open(&simulation.environment(), usize::MAX).expect("opens");
        block_on(store.save_vote(&Vote::new_committed(1, IDENTITY.server))).expect("saved");
        simulation.files.fail_write(n, Fault::Io);
        let mut at = 0;
        while block_on(store.blocking_append([entry(1, at)])).is_ok()
            && block_on(store.wait_for_sync(at)).is_ok()
        {
            assert_eq!(store.synced(Some(log_id(1, 1, at))), Some(log_id(1, 1, at)), "write {n}");
            at += 1;
        }
        assert!(block_on(store.blocking_append([entry(1, at + 1)])).is_err(), "write {n}");
        simulation.files.crash_losing_all();
        drop(store);
        let store = open(&simulation.environment(), usize::MAX).expect("opens");
        let kept = store.entries(0, u64::MAX, usize::MAX).expect("readable").len() as u64;
        assert!(kept >= at && kept <= at + 1, "write {n}: {kept} entries of {at}");
    }
}

/// A server that led when it ended does not lead on: entries of its term may be committed later, in front of
/// its next records.
#[test]
fn a_leader_that_is_started_again_does_not_lead_on() {
    for (server, is_committed) in [(IDENTITY.server, false), (IDENTITY.server + 1, true)] {
        let environment = Environment::simulated(1);
        let vote = Vote::new_committed(5, server);
        let mut store = open(&environment, 0).expect("opens");
        block_on(store.save_vote(&vote)).expect("saved");
        assert_eq!(block_on(store.read_vote()).expect("known"), Some(vote));
        drop(store);
        let mut store = open(&environment, 0).expect("opens again");
        let found = block_on(store.read_vote()).expect("known");
        assert_eq!(found, Some(Vote { committed: is_committed, ..vote }), "server {server}");
    }
}

/// A read that fails is an error and never a shorter list.
#[test]
fn a_failed_read_is_no_short_list() {
    let simulation = Simulation::new(3);
    let mut store = open(&simulation.environment(), 0).expect("opens");
    for at in 0..50 {
        block_on(store.blocking_append([entry(1, at)])).expect("appends");
    }
    let all = store.entries(0, 50, usize::MAX).expect("readable");
    assert_eq!(all.len(), 50);
    let files = simulation.environment().files.list(Path::new("/server/raft")).expect("listed");
    let log = files.iter().find(|file| file.extension().is_some_and(|ending| ending == "log")).expect("one");
    // First the disk cannot read a byte in the middle, then it is another one.
    simulation.files.add_bad_sector(log, 3000);
    assert!(block_on(store.try_get_log_entries(0..48)).is_err());
    simulation.files.clear_faults();
    assert_eq!(block_on(store.try_get_log_entries(0..48)).expect("readable"), all[..48]);
    simulation.files.damage(log, 3000, 0x55).expect("damaged");
    assert!(block_on(store.try_get_log_entries(0..48)).is_err());
    assert_eq!(block_on(store.try_get_log_entries(45..60)).expect("behind the damage"), all[45..]);
}

/// A list ends after about the bytes of a message, and is never empty.
#[test]
fn lists_are_bounded_by_bytes() {
    for cache in [usize::MAX, 0] {
        let mut store = open(&Environment::simulated(4), cache).expect("opens");
        for at in 0..6 {
            let payload = EntryPayload::Normal(Bytes::from(vec![1; 600 << 10]));
            let entry = Entry { log_id: log_id(1, 1, at), payload };
            block_on(store.blocking_append([entry])).expect("appends");
        }
        assert_eq!(block_on(store.limited_get_log_entries(1, 6)).expect("readable").len(), 2);
        assert_eq!(block_on(store.limited_get_log_entries(5, 6)).expect("readable").len(), 1);
        assert_eq!(store.entries(0, 6, usize::MAX).expect("readable").len(), 6);
    }
}

/// Purged entries leave the disk with the files before the snapshot, and what is no entry stays. A log whose
/// first files are lost is damaged.
#[test]
fn purged_entries_leave_the_disk() {
    let simulation = Simulation::new(6);
    let environment = simulation.environment();
    let files = || {
        let mut files = environment.files.list(Path::new("/server/raft")).expect("listed");
        files.retain(|file| file.extension().is_some_and(|ending| ending == "log"));
        files.sort();
        files
    };
    let vote = Vote::new(4, 2);
    let mut store = open(&environment, 0).expect("opens");
    block_on(store.save_vote(&vote)).expect("saved");
    for round in 0..5_u64 {
        for at in round * 100..(round + 1) * 100 {
            block_on(store.blocking_append([entry(1, at)])).expect("appends");
        }
        let last = store.log_id(round * 100 + 60).expect("an entry");
        store.save_snapshot(&snapshot_of(last)).expect("saved");
        if round > 0 {
            let before = store.log_id((round - 1) * 100 + 60).expect("an entry");
            block_on(store.purge(before)).expect("purged");
        }
    }
    assert_eq!(files().len(), 3, "two with entries that are needed, and the new one: {:?}", files());
    drop(store);
    let mut store = Store::open(&environment, Path::new("/server/raft"), IDENTITY, false).expect("opens");
    assert_eq!(block_on(store.read_vote()).expect("known"), Some(vote));
    assert_eq!(store.purged().map(|id| id.index), Some(360));
    assert_eq!(store.snapshot().and_then(|meta| meta.last_log_id).map(|id| id.index), Some(460));
    let entries = store.entries(0, u64::MAX, usize::MAX).expect("readable");
    assert_eq!(entries, (361..500).map(|at| entry(1, at)).collect::<Vec<_>>());
    drop(store);
    environment.files.remove_file(&files()[0]).expect("removed");
    let lost = Store::open(&environment, Path::new("/server/raft"), IDENTITY, false).expect_err("lost");
    assert_eq!(lost.kind(), ErrorKind::Corrupt, "{lost}");
}

/// The next process that opens a log has it alone: the one before has closed it when its lock is free.
#[test]
fn a_log_is_closed_before_its_lock_is_free() {
    let directory = Path::new("/server/raft");
    for seed in 0..200 {
        let environment = Environment::simulated(seed);
        let store = open(&environment, 0).expect("begun");
        let files = environment.files.list(directory).expect("a directory");
        let is_log = |path: &PathBuf| path.extension().is_some_and(|end| end == "log");
        let file = files.into_iter().find(is_log).expect("a file");
        let length = || environment.files.length(&file).expect("a file");
        let open = length();
        drop(store);
        // Closing writes a mark.
        assert!(length() > open, "seed {seed}");
    }
}

/// A server without its log, or with that of another one, does not start.
#[test]
fn a_lost_log_is_noticed() {
    let environment = Environment::simulated(5);
    let directory = Path::new("/server/raft");
    let lost = Store::open(&environment, directory, IDENTITY, false).expect_err("no log");
    assert_eq!(lost.kind(), ErrorKind::Input);
    assert!(!Store::exists(&environment, directory).expect("readable"));
    drop(open(&environment, 0).expect("begun"));
    assert!(Store::exists(&environment, directory).expect("readable"));
    let store = Store::open(&environment, directory, IDENTITY, false).expect("its log");
    let busy = Store::open(&environment, directory, IDENTITY, false).expect_err("in use");
    assert_eq!(busy.kind(), ErrorKind::Unavailable, "{busy}");
    drop(store);
    let other = Identity { server: 2, ..IDENTITY };
    let foreign = Store::open(&environment, directory, other, true).expect_err("of another server");
    assert_eq!(foreign.kind(), ErrorKind::Input);
}
