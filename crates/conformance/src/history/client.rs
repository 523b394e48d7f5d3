//! Clients that run random transactions and record what they see.
//!
//! # Shape
//! Each client is a thread. It draws a transaction of one to four operations, runs it step by step with
//! pauses, so that transactions overlap even with few cores, commits, and continues whatever the outcome. The
//! keys of a history are a sliding window, so lists stay short.

use super::record::{CommitOutcome, Entry, Freshness, History, Kind, Operation};
use super::storage::{Storage, StorageForm};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use vervet::{
    Database, DatabaseOptions, Durability, ErrorKind, Isolation, Result, Transaction, TransactionOptions,
};
use vervet_testkit::Random;

/// Clients of a history.
pub const THREADS: u64 = 8;
/// The number of keys in use at a time.
pub(super) const KEYS: u64 = 6;
/// Transactions of all clients together after which the oldest key is replaced by a new one.
pub(super) const KEY_LIFE: u64 = 40;

/// The location of an on-disk database.
#[derive(Clone, Debug)]
pub(super) struct DatabaseLocation {
    /// Emptied first.
    pub(super) directory: PathBuf,
    pub(super) durability: Durability,
    /// Whether new bases are written continuously. Otherwise the database is closed and reopened half way.
    pub(super) checkpoints: bool,
}

/// The kind of a history.
#[derive(Clone, Debug)]
pub(super) struct Workload {
    pub(super) storage: Storage,
    pub(super) transactions: u64,
    pub(super) place: Option<DatabaseLocation>,
    /// Whether each operation runs in a transaction of its own, retried until it commits: a fault.
    pub(super) split: bool,
    /// Whether two transactions at the end each read what the other one writes. Only snapshot isolation lets
    /// both commit.
    pub(super) skew: bool,
}

impl Workload {
    /// In memory, without a fault.
    pub(super) fn new(kind: Kind, shape: StorageForm, isolation: Isolation, transactions: u64) -> Self {
        let storage = Storage { kind, shape, isolation };
        Self { storage, transactions, place: None, split: false, skew: false }
    }

    fn keys(&self) -> u64 {
        KEYS + self.transactions / KEY_LIFE + 1
    }

    fn open(&self) -> std::result::Result<Database, String> {
        let Some(place) = &self.place else { return Ok(crate::partitions::database(self.transactions)) };
        let options = DatabaseOptions { durability: place.durability, ..DatabaseOptions::default() };
        Database::open_or_create_with(&place.directory, options).map_err(|error| error.to_string())
    }
}

/// Runs the clients of a history.
pub(super) fn record(workload: &Workload, random: &mut Random) -> std::result::Result<History, String> {
    if let Some(place) = &workload.place
        && place.directory.exists()
    {
        std::fs::remove_dir_all(&place.directory)
            .map_err(|error| format!("could not empty {}: {error}", place.directory.display()))?;
    }
    let common =
        Common { workload, start: Instant::now(), elements: AtomicU64::new(1), begun: AtomicU64::new(0) };
    let mut database = workload.open()?;
    let first = common.first(&database).map_err(|error| format!("set-up: {error}"))?;
    let mut clients: Vec<Client<'_>> = (0..THREADS)
        .map(|number| Client {
            common: &common,
            number,
            random: Random(random.next() | 1),
            entries: Vec::new(),
        })
        .collect();
    let in_directory = workload.place.is_some();
    let checkpoints = workload.place.as_ref().is_some_and(|place| place.checkpoints);
    let parts = if in_directory && !checkpoints { 2 } else { 1 };
    for part in 1..=parts {
        if part > 1 {
            drop(database);
            database = workload.open()?;
        }
        let share = workload.transactions * part / parts / THREADS;
        race(&database, &mut clients, share, checkpoints)?;
    }
    if workload.skew {
        let [one, two, ..] = clients.as_mut_slice() else { return Err("too few clients".to_owned()) };
        skew(&database, one, two).map_err(|error| format!("write skew: {error}"))?;
    }
    let entries = first.into_iter().chain(clients.into_iter().flat_map(|client| client.entries)).collect();
    Ok(History { kind: workload.storage.kind, entries })
}

/// Two transactions that overlap: both read two keys, and each writes one of them.
fn skew<'a>(database: &Database, one: &mut Client<'a>, two: &mut Client<'a>) -> Result<()> {
    let common = one.common;
    let keys = [0, 1];
    let began = common.now();
    let mut transactions = [common.begin(database)?, common.begin(database)?];
    let mut all = [Vec::new(), Vec::new()];
    for ((transaction, operations), key) in transactions.iter_mut().zip(&mut all).zip(keys) {
        *operations = keys.map(|key| Operation::Read { key, seen: None }).to_vec();
        operations.push(Operation::Write { key, element: common.element() });
        for operation in operations {
            one.operation(transaction, operation)?;
        }
    }
    for (client, (transaction, operations)) in [one, two].into_iter().zip(transactions.into_iter().zip(all)) {
        transaction.commit()?;
        client.entries.push(Entry {
            client: client.number,
            began,
            ended: common.now(),
            outcome: CommitOutcome::Committed,
            freshness: Freshness::Strict,
            operations,
        });
    }
    Ok(())
}

/// Runs until every client has run `share` transactions since its start.
fn race(
    database: &Database,
    clients: &mut [Client<'_>],
    share: u64,
    checkpoints: bool,
) -> std::result::Result<(), String> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let merger = scope.spawn(|| {
            while checkpoints && !done.load(Ordering::Acquire) {
                database.checkpoint()?;
                std::thread::sleep(Duration::from_millis(3));
            }
            Ok(())
        });
        let threads: Vec<_> = clients
            .iter_mut()
            .map(|client| {
                scope.spawn(|| {
                    while (client.entries.len() as u64) < share {
                        client.transaction(database)?;
                    }
                    Ok(())
                })
            })
            .collect();
        let ends: Vec<Result<()>> = threads.into_iter().map(join).collect();
        done.store(true, Ordering::Release);
        ends.into_iter().chain([join(merger)]).collect::<Result<()>>()
    })
    .map_err(|error| format!("a client: {:?}: {error}", error.kind()))
}

fn join(thread: std::thread::ScopedJoinHandle<'_, Result<()>>) -> Result<()> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// State shared by all clients of a history.
struct Common<'a> {
    workload: &'a Workload,
    start: Instant,
    /// The next element.
    elements: AtomicU64,
    /// The number of transactions begun by all clients.
    begun: AtomicU64,
}

impl Common<'_> {
    fn now(&self) -> u128 {
        self.start.elapsed().as_nanos()
    }

    fn element(&self) -> u64 {
        // Relaxed: only uniqueness of the numbers matters.
        self.elements.fetch_add(1, Ordering::Relaxed)
    }

    fn begin(&self, database: &Database) -> Result<Transaction> {
        database.begin_with(TransactionOptions { isolation: self.workload.storage.isolation })
    }

    /// The first transaction, by a client of its own.
    fn first(&self, database: &Database) -> Result<Option<Entry>> {
        let storage = self.workload.storage;
        let began = self.now();
        let mut transaction = self.begin(database)?;
        storage.set_up(&mut transaction, self.workload.keys())?;
        let mut operations = Vec::new();
        if storage.starts_with_elements() {
            for key in 0..self.workload.keys() {
                let element = self.element();
                storage.write(&mut transaction, key, element, &mut Random(1))?;
                operations.push(Operation::Write { key, element });
            }
        }
        transaction.commit()?;
        let entry = Entry {
            client: THREADS,
            began,
            ended: self.now(),
            outcome: CommitOutcome::Committed,
            freshness: Freshness::Strict,
            operations,
        };
        Ok((!entry.operations.is_empty()).then_some(entry))
    }
}

/// Draws the operations of a transaction; `oldest`: the oldest key in use. Of four transactions, one is
/// read-only, one writes without reading first, and two are mixed.
pub(super) fn draw(
    kind: Kind,
    oldest: u64,
    random: &mut Random,
    mut element: impl FnMut() -> u64,
) -> Vec<Operation> {
    let (style, count) = (random.below(4), 1 + random.below(4));
    let mut operations = Vec::new();
    for _ in 0..count {
        let key = oldest + random.below(KEYS);
        let writes = style > 0 && random.one_in(2);
        if !writes || style > 1 && (style > 2 || kind == Kind::Register) {
            operations.push(Operation::Read { key, seen: None });
        }
        if writes {
            operations.push(Operation::Write { key, element: element() });
        }
    }
    operations
}

struct Client<'a> {
    common: &'a Common<'a>,
    number: u64,
    random: Random,
    entries: Vec<Entry>,
}

impl Client<'_> {
    fn transaction(&mut self, database: &Database) -> Result<()> {
        let mut operations = self.draw();
        let began = self.common.now();
        let done = if self.common.workload.split {
            self.run_split(database, &mut operations)
        } else {
            self.run(database, &mut operations)
        };
        let ended = self.common.now();
        let outcome = match done {
            Ok(()) => CommitOutcome::Committed,
            Err(error) if error.kind() == ErrorKind::Conflict => CommitOutcome::Refused,
            Err(error) => return Err(error),
        };
        let freshness = Freshness::Strict;
        self.entries.push(Entry { client: self.number, began, ended, outcome, freshness, operations });
        Ok(())
    }

    fn draw(&mut self) -> Vec<Operation> {
        let oldest = self.common.begun.fetch_add(1, Ordering::Relaxed) / KEY_LIFE;
        draw(self.common.workload.storage.kind, oldest, &mut self.random, || self.common.element())
    }

    fn run(&mut self, database: &Database, operations: &mut [Operation]) -> Result<()> {
        let mut transaction = self.common.begin(database)?;
        for operation in operations {
            self.operation(&mut transaction, operation)?;
            self.pause();
        }
        transaction.commit()?;
        Ok(())
    }

    fn run_split(&mut self, database: &Database, operations: &mut [Operation]) -> Result<()> {
        for operation in operations {
            loop {
                let mut transaction = self.common.begin(database)?;
                self.operation(&mut transaction, operation)?;
                match transaction.commit() {
                    Err(error) if error.kind() == ErrorKind::Conflict => {}
                    done => {
                        done?;
                        break;
                    }
                }
            }
            self.pause();
        }
        Ok(())
    }

    fn operation(&mut self, transaction: &mut Transaction, operation: &mut Operation) -> Result<()> {
        let storage = self.common.workload.storage;
        match operation {
            Operation::Read { key, seen } => {
                *seen = Some(storage.read(transaction, *key, &mut self.random)?);
                Ok(())
            }
            Operation::Write { key, element } => storage.write(transaction, *key, *element, &mut self.random),
        }
    }

    /// Yields to other clients.
    fn pause(&mut self) {
        match self.random.below(4) {
            0 => std::thread::yield_now(),
            1 => std::thread::sleep(Duration::from_micros(self.random.below(200))),
            _ => {}
        }
    }
}
