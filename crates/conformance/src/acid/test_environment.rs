//! The environment of a test: a database, clients on threads, and counts of transaction outcomes.

use crate::cluster::{self, Spread};
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use vervet::{
    Database, DatabaseOptions, Durability, Error, ErrorKind, Isolation, Solutions, Transaction,
    TransactionOptions,
};
use vervet_model::lock;
use vervet_testkit::Random;

/// The number of concurrent clients.
pub const THREADS: usize = 8;

/// Why a transaction did not commit.
#[derive(Debug)]
pub(super) enum TransactionFailure {
    /// A conflict with another transaction, which is allowed.
    Conflict,
    /// Any other error; fails the test.
    Failed(String),
}

impl From<Error> for TransactionFailure {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Conflict => Self::Conflict,
            kind => Self::Failed(format!("{kind:?}: {error}")),
        }
    }
}

/// Counts of transaction outcomes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) writer_commits: usize,
    pub(super) writer_aborts: usize,
    pub(super) rolled_back: usize,
    pub(super) reader_commits: usize,
    pub(super) reader_aborts: usize,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { writer_commits, writer_aborts, rolled_back, reader_commits, reader_aborts } = self;
        let tenths = writer_aborts * 1000 / (writer_commits + writer_aborts).max(1);
        write!(
            f,
            "writers {writer_commits:>3} commits {writer_aborts:>3} aborts {:>2}.{} % {rolled_back} rolled back, \
             readers {reader_commits:>3} commits {reader_aborts} aborts",
            tenths / 10,
            tenths % 10
        )
    }
}

/// See the header of this file.
pub(super) struct TestEnvironment {
    pub(super) isolation: Isolation,
    pub(super) sleep: Duration,
    /// Unset before the start of a test over a cluster.
    database: OnceLock<Spread>,
    seed: u64,
    tally: Mutex<Tally>,
    notes: Mutex<String>,
}

impl TestEnvironment {
    /// An empty database, in `folder` or in memory.
    pub(super) fn new(
        isolation: Isolation,
        sleep: Duration,
        folder: Option<&Path>,
        seed: u64,
    ) -> Result<Self, String> {
        let database = match folder {
            _ if cluster::is_chosen() => OnceLock::new(),
            Some(folder) => OnceLock::from(Spread::here(open(folder)?)),
            None => OnceLock::from(Spread::here(crate::partitions::database(seed))),
        };
        let (tally, notes) = Default::default();
        Ok(Self { isolation, sleep, database, seed, tally, notes })
    }

    /// Commits the start graph, given as an update request.
    pub(super) fn start(&self, request: &str) -> Result<(), String> {
        let failed = |error: vervet::Error| format!("start graph: {error}");
        if let Some(database) = self.database.get() {
            // The start graph becomes the base, which has the partitions.
            let written = database.update(request).and_then(|_| database.checkpoint());
            return written.map(drop).map_err(failed);
        }
        let start = Database::in_memory();
        start.update(request).map_err(failed)?;
        let spread = cluster::spread_to_write(&start)?;
        self.database.set(spread).map_err(|_| "a test has two starts".to_owned())
    }

    fn database(&self) -> vervet::Result<&Spread> {
        self.database.get().ok_or_else(|| Error::internal("a test before its start"))
    }

    /// Runs `work` once for each of `clients`, at most [`THREADS`] at a time, started in the given order;
    /// returns the results in any order.
    pub(super) fn run<C: Copy + Sync, T: Send>(
        &self,
        clients: &[C],
        work: impl Fn(&mut Client<'_>, C) -> Result<T, String> + Sync,
    ) -> Result<Vec<T>, String> {
        let next = AtomicUsize::new(0);
        let ends = Mutex::new(Vec::with_capacity(clients.len()));
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    // Relaxed: only the number matters; the end of the scope orders everything else.
                    while let Some((number, client)) =
                        Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|n| Some((n, *clients.get(n)?)))
                    {
                        let seed = self.seed.wrapping_add(number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                        let end = work(&mut Client { environment: self, random: Random(seed | 1) }, client);
                        lock(&ends).push(end);
                    }
                });
            }
        });
        ends.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().collect()
    }

    /// The clients in random order.
    pub(super) fn shuffled<C>(&self, mut clients: Vec<C>) -> Vec<C> {
        let mut random = Random(self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for end in (1..clients.len()).rev() {
            let other = random.below(end as u64 + 1);
            clients.swap(end, usize::try_from(other).unwrap_or(end));
        }
        clients
    }

    /// Reads after all clients have finished.
    pub(super) fn after<T>(
        &self,
        read: impl FnOnce(&mut Transaction) -> Result<T, TransactionFailure>,
    ) -> Result<T, String> {
        let read =
            self.begin().map_err(TransactionFailure::from).and_then(|mut transaction| read(&mut transaction));
        read.map_err(|stop| match stop {
            TransactionFailure::Conflict => "a read-only transaction conflicted".to_owned(),
            TransactionFailure::Failed(message) => message,
        })
    }

    /// Two transactions for the same thread.
    pub(super) fn begin(&self) -> vervet::Result<Transaction> {
        self.database()?.begin_with(TransactionOptions { isolation: self.isolation })
    }

    pub(super) fn tally(&self) -> Tally {
        *lock(&self.tally)
    }

    pub(super) fn notes(&self) -> String {
        lock(&self.notes).clone()
    }

    /// Appends to the output line of this test.
    pub(super) fn note(&self, text: &str) {
        *lock(&self.notes) += &format!("; {text}");
    }

    /// Closes the database in `folder`, reopens it, and checks that it has the same statements. Over a
    /// cluster: that every server has them.
    pub(super) fn reopened_is_the_same(self, folder: Option<&Path>) -> Result<(), String> {
        let database = self.database().map_err(|error| error.to_string())?;
        let sum = cluster::sum(database).map_err(|error| error.to_string())?;
        if let Some(other) = database.sums_elsewhere()?.into_iter().find(|other| *other != sum) {
            return Err(format!("another server has {other}, not {sum}"));
        }
        let Some(folder) = folder.filter(|_| !cluster::is_chosen()) else { return Ok(()) };
        let before = statements(database)?;
        drop(self);
        let after = statements(&open(folder)?)?;
        if before == after {
            return Ok(());
        }
        Err(format!("the reopened database differs: {before:?} before, {after:?} after"))
    }
}

fn open(folder: &Path) -> Result<Database, String> {
    let options = DatabaseOptions { durability: Durability::None, ..DatabaseOptions::default() };
    Database::open_or_create_with(folder, options).map_err(|error| error.to_string())
}

fn statements(database: &Database) -> Result<Vec<String>, String> {
    let read = || {
        let solutions = database.select("SELECT ?s ?p ?o { ?s ?p ?o }")?;
        let line = |row: vervet::Row<'_>| {
            Ok(format!("{:?} {:?} {:?}", row.text("s")?, row.text("p")?, row.get("o")?))
        };
        solutions.rows().map(line).collect::<vervet::Result<Vec<_>>>()
    };
    let mut lines = read().map_err(|error| error.to_string())?;
    lines.sort_unstable();
    Ok(lines)
}

/// A client that runs transactions, one at a time.
pub(super) struct Client<'a> {
    environment: &'a TestEnvironment,
    random: Random,
}

impl Client<'_> {
    /// Runs a transaction that writes; `None`: it aborted.
    pub(super) fn write<T>(
        &mut self,
        work: impl FnOnce(&mut Self, &mut Transaction) -> Result<T, TransactionFailure>,
    ) -> Result<Option<T>, String> {
        let end = self.transaction(work)?;
        let mut tally = lock(&self.environment.tally);
        *(if end.is_some() { &mut tally.writer_commits } else { &mut tally.writer_aborts }) += 1;
        Ok(end)
    }

    /// Runs a read-only transaction; `None`: it aborted.
    pub(super) fn read<T>(
        &mut self,
        work: impl FnOnce(&mut Self, &mut Transaction) -> Result<T, TransactionFailure>,
    ) -> Result<Option<T>, String> {
        let end = self.transaction(work)?;
        let mut tally = lock(&self.environment.tally);
        *(if end.is_some() { &mut tally.reader_commits } else { &mut tally.reader_aborts }) += 1;
        Ok(end)
    }

    /// Runs a transaction that is rolled back.
    pub(super) fn roll_back(
        &mut self,
        work: impl FnOnce(&mut Self, &mut Transaction) -> Result<(), TransactionFailure>,
    ) -> Result<(), String> {
        let mut transaction = self.environment.begin().map_err(|error| error.to_string())?;
        match work(self, &mut transaction) {
            Ok(()) => {}
            Err(TransactionFailure::Conflict) => return Err("a conflict before the commit".to_owned()),
            Err(TransactionFailure::Failed(message)) => return Err(message),
        }
        transaction.roll_back();
        lock(&self.environment.tally).rolled_back += 1;
        Ok(())
    }

    fn transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Self, &mut Transaction) -> Result<T, TransactionFailure>,
    ) -> Result<Option<T>, String> {
        let run = || {
            let mut transaction = self.environment.begin()?;
            let value = work(self, &mut transaction)?;
            transaction.commit()?;
            Ok(value)
        };
        match run() {
            Ok(value) => Ok(Some(value)),
            Err(TransactionFailure::Conflict) => Ok(None),
            Err(TransactionFailure::Failed(message)) => Err(message),
        }
    }

    /// Sleeps between half and one and a half of the usual time.
    pub(super) fn sleep(&mut self) {
        self.sleep_for(self.environment.sleep);
    }

    /// Yields to other clients, every second time: where the description has one statement and no sleep, few
    /// transactions would overlap on a machine with few cores.
    pub(super) fn linger(&mut self) {
        if self.random.one_in(2) {
            self.sleep_for(Duration::from_millis(1));
        }
    }

    /// Sleeps for about this time.
    pub(super) fn sleep_for(&mut self, time: Duration) {
        let percent = u32::try_from(50 + self.random.below(101)).unwrap_or(100);
        std::thread::sleep(time * percent / 100);
    }

    /// A random number below `limit`.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.random.below(limit)
    }
}

/// The IRI of a person.
pub(super) fn person(number: u64) -> String {
    format!("<urn:acid:person:{number}>")
}

/// A request that replaces the value of a property.
pub(super) fn set(vertex: &str, property: &str, value: i64) -> String {
    format!(
        "DELETE {{ {vertex} {property} ?old }} INSERT {{ {vertex} {property} {value} }} \
         WHERE {{ {vertex} {property} ?old }}"
    )
}

/// A request that increments a property.
pub(super) fn count_up(vertex: &str, property: &str) -> String {
    format!(
        "DELETE {{ {vertex} {property} ?old }} INSERT {{ {vertex} {property} ?new }} \
         WHERE {{ {vertex} {property} ?old BIND(?old + 1 AS ?new) }}"
    )
}

/// The integers of the only solution of a query, by column.
pub(super) fn integers<const N: usize>(
    transaction: &Transaction,
    query: &str,
    columns: [&str; N],
) -> Result<[i64; N], TransactionFailure> {
    let solutions = transaction.select(query)?;
    let row = only(&solutions, query)?;
    let mut values = [0; N];
    for (value, column) in values.iter_mut().zip(columns) {
        let read = row.integer(column)?;
        *value = read
            .ok_or_else(|| TransactionFailure::Failed(format!("?{column} is not an integer in {query}")))?;
    }
    Ok(values)
}

/// The only value of a property, an integer.
pub(super) fn integer(
    transaction: &Transaction,
    vertex: &str,
    property: &str,
) -> Result<i64, TransactionFailure> {
    let query = format!("SELECT ?value {{ {vertex} {property} ?value }}");
    Ok(integers(transaction, &query, ["value"])?[0])
}

/// The only value of a property, a string.
pub(super) fn text(
    transaction: &Transaction,
    vertex: &str,
    property: &str,
) -> Result<String, TransactionFailure> {
    let query = format!("SELECT ?value {{ {vertex} {property} ?value }}");
    let solutions = transaction.select(&query)?;
    Ok(only(&solutions, &query)?.text("value")?.unwrap_or_default())
}

fn only<'a>(solutions: &'a Solutions, query: &str) -> Result<vervet::Row<'a>, TransactionFailure> {
    let mut rows = solutions.rows();
    match (rows.next(), rows.len()) {
        (Some(row), 0) => Ok(row),
        _ => {
            Err(TransactionFailure::Failed(format!("{} solutions in place of one: {query}", solutions.len())))
        }
    }
}
