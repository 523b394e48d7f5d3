//! [`Database`]: the facade over one graph, in memory or in a directory, and its current version.

use crate::loading;
use crate::options::{DatabaseOptions, QueryOptions};
use crate::query::plans::{Compiled, PlanCache, PlanCacheCounts, TraversalPlans};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Instant;
use vervet_driver_local::{Driver, LocalDriver};
use vervet_env::Environment;
use vervet_graph::Graph;
use vervet_kernel::Gate;
use vervet_load::{Format, LoadOptions, LoadReport, Source};
use vervet_model::vocab::EDGE_ID;
use vervet_model::{Direction, Error, Id, Partitioning, Result, Watch, lock};
use vervet_partition::PartitionDirectory;
use vervet_snapshot::Snapshot;
use vervet_txn::{
    Constraint, Counts, Damage, Durability, Follower, LogRecord, Published, Start, StorageStatus, Timestamp,
    Transactions,
};

/// Loads with fewer statements leave too little free memory for the allocator to be worth returning.
const RELEASE_STATEMENTS_MIN: u64 = 100_000;

/// Keys read at a time when vertices are counted.
const KEYS_AT_ONCE: usize = 1 << 12;

/// One graph, in memory or in a directory. Clones share it; all methods may be called from many threads.
///
/// Queries never block: each reads the snapshot of the last commit before it began. Transactions
/// ([`Database::begin`]) make changes; they are serializable by default. A bulk load is a transaction too.
#[derive(Clone, Debug)]
pub struct Database {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    environment: Environment,
    directory: Option<PathBuf>,
    transactions: Arc<CurrentTransactions>,
    plans: Mutex<PlanCache>,
    traversal_plans: Mutex<TraversalPlans>,
    plan_hits: AtomicU64,
    plan_misses: AtomicU64,
    /// Owns the helper threads of heavy queries; they end with the database.
    driver: Arc<dyn Driver>,
    /// Drawn once, by the first query: a system call per query would take as long as a small query.
    seed: OnceLock<u64>,
    /// The number of queries run so far.
    runs: AtomicU64,
    /// Prefix of the external ids of new vertices; drawn when the first vertex is added.
    names: OnceLock<u64>,
    /// The number of external ids generated so far.
    named: AtomicU64,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.transactions.get().wait_background();
    }
}

/// The transactions of the graph: other ones when this process begins, or ends, to lead a graph that several
/// have. A transaction belongs to those with which it began.
#[derive(Debug)]
struct CurrentTransactions(RwLock<Arc<Transactions>>);

impl CurrentTransactions {
    fn get(&self) -> Arc<Transactions> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The graph at one point in time, for the typed interface.
#[derive(Clone, Debug)]
pub struct GraphSnapshot {
    published: Arc<Published>,
    /// The gate of heavy work, for algorithms that run on this snapshot.
    pub(crate) gate: Option<Arc<dyn Gate>>,
}

impl GraphSnapshot {
    /// The published version with its timestamp.
    pub(crate) fn published(&self) -> &Published {
        &self.published
    }

    /// The property-graph view: vertices, edges and properties.
    #[must_use]
    pub fn graph(&self) -> Graph<'_> {
        Graph::new(&self.published.version)
    }

    /// The interface that query engines read.
    #[must_use]
    pub fn as_snapshot(&self) -> &dyn Snapshot {
        &self.published.version
    }

    /// The number of statements.
    #[must_use]
    pub fn statement_count(&self) -> u64 {
        self.published.version.statement_count()
    }

    /// The number of vertices as Gremlin counts them: IRIs and blank nodes with a type, a property or an
    /// edge. Predicates and classes without statements about them are not vertices; neither are removed
    /// vertices.
    ///
    /// # Cost
    /// About 10 ns for each of [`GraphSnapshot::vertex_count_steps`]; one bit of memory for each IRI and
    /// blank node.
    ///
    /// # Errors
    /// Damaged data.
    pub fn vertex_count(&self) -> Result<u64> {
        let view = self.as_snapshot();
        let mut words = vec![0_u64; usize::try_from(view.vertex_count() / 64 + 1).unwrap_or(usize::MAX)];
        let mut keys = Vec::with_capacity(KEYS_AT_ONCE);
        for (predicate, direction) in self.vertex_sources()? {
            let Some(segment) = view.segment(predicate, direction)? else { continue };
            let mut next = Some(Id::vertex(0));
            while let Some(from) = next {
                keys.clear();
                next = segment.keys(from, KEYS_AT_ONCE, &mut keys)?;
                // Keys ascend by tag, and vertices have the lowest tags.
                next = next.filter(|_| keys.last().is_none_or(|key| key.is_vertex()));
                for key in keys.iter().filter(|key| key.is_vertex()) {
                    let word = usize::try_from(key.payload() / 64).unwrap_or(usize::MAX);
                    if let Some(word) = words.get_mut(word) {
                        *word |= 1 << (key.payload() % 64);
                    }
                }
            }
        }
        Ok(words.iter().map(|word| u64::from(word.count_ones())).sum())
    }

    /// The approximate number of keys that [`GraphSnapshot::vertex_count`] reads.
    ///
    /// # Errors
    /// Damaged data.
    pub fn vertex_count_steps(&self) -> Result<u64> {
        let view = self.as_snapshot();
        self.vertex_sources()?.into_iter().try_fold(0, |sum: u64, (predicate, direction)| {
            let segment = view.segment(predicate, direction)?;
            Ok(sum + segment.map_or(0, |segment| segment.statistics().keys))
        })
    }

    /// The segments whose keys are vertices.
    fn vertex_sources(&self) -> Result<Vec<(Id, Direction)>> {
        let view = self.as_snapshot();
        // Edge names are not vertices.
        let edge_id = view.lookup(oxrdf::NamedNodeRef::new_unchecked(EDGE_ID).into())?;
        let mut sources = Vec::new();
        for (predicate, _) in view.predicates() {
            if Some(*predicate) == edge_id {
                continue;
            }
            sources.push((*predicate, Direction::Out));
            if Some(*predicate) != view.type_predicate() {
                sources.push((*predicate, Direction::In));
            }
        }
        Ok(sources)
    }

    /// The timestamp of the last commit in this snapshot.
    #[must_use]
    pub fn timestamp(&self) -> Timestamp {
        self.published.timestamp
    }
}

/// A component of the database and its size.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ComponentSize {
    /// The segment that the component belongs to, if any: the IRI of its predicate, and its direction.
    pub segment: Option<(String, Direction)>,
    /// The name of the component, such as `neighbours`.
    pub name: &'static str,
    /// Size in bytes, the same in memory and in files.
    pub size_bytes: u64,
}

/// A driver on the threads of this process.
fn local(gate: bool) -> Arc<dyn Driver> {
    Arc::new(LocalDriver::new(gate))
}

impl Database {
    /// An empty in-memory database. It is dropped with its last clone.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::in_memory_with(DatabaseOptions::default())
    }

    /// [`Database::in_memory`] with options; the durability option has no effect.
    ///
    /// # Panics
    /// Never: an empty store consists of constants.
    #[must_use]
    pub fn in_memory_with(options: DatabaseOptions) -> Self {
        let transactions = Transactions::in_memory(options.environment.clone(), options.of_transactions())
            .expect("an empty store is made of constants");
        Self::new(options.environment, None, transactions, local(options.gate))
    }

    /// Opens the database in a directory with everything committed there, including the commits of another
    /// process that is writing to it now. This process takes ownership of the directory with its first
    /// transaction or load.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) if there is no database,
    /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) if its manifest or its log is damaged. Data is
    /// verified when it is first read, or by [`Database::check`].
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(directory, DatabaseOptions::default())
    }

    /// [`Database::open`] with an explicit environment (files, clock, randomness).
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open_in(environment: Environment, directory: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(directory, DatabaseOptions { environment, ..DatabaseOptions::default() })
    }

    /// [`Database::open`] with options.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open_with(directory: impl AsRef<Path>, options: DatabaseOptions) -> Result<Self> {
        let directory = directory.as_ref();
        let begin = Instant::now();
        let open = if options.to_write { Transactions::open_to_write } else { Transactions::open };
        let transactions = open(options.environment.clone(), directory, options.of_transactions())?;
        log_opened(directory, &transactions, begin);
        Ok(Self::new(options.environment, Some(directory.to_owned()), transactions, local(options.gate)))
    }

    /// Opens the database in a directory, or an empty one that its first load or commit creates there.
    ///
    /// # Errors
    /// As [`Database::open`], except that a missing database is not an error.
    pub fn open_or_create(directory: impl AsRef<Path>) -> Result<Self> {
        Self::open_or_create_with(directory, DatabaseOptions::default())
    }

    /// [`Database::open_or_create`] with an explicit environment.
    ///
    /// # Errors
    /// As [`Database::open_or_create`].
    pub fn open_or_create_in(environment: Environment, directory: impl AsRef<Path>) -> Result<Self> {
        Self::open_or_create_with(directory, DatabaseOptions { environment, ..DatabaseOptions::default() })
    }

    /// [`Database::open_or_create`] with options.
    ///
    /// # Errors
    /// As [`Database::open_or_create`].
    pub fn open_or_create_with(directory: impl AsRef<Path>, options: DatabaseOptions) -> Result<Self> {
        let directory = directory.as_ref();
        let begin = Instant::now();
        let open = match options.to_write {
            true => Transactions::open_or_create_to_write,
            false => Transactions::open_or_create,
        };
        let transactions = open(options.environment.clone(), directory, options.of_transactions())?;
        log_opened(directory, &transactions, begin);
        Ok(Self::new(options.environment, Some(directory.to_owned()), transactions, local(options.gate)))
    }

    /// Reports whether the log of the database in a directory is damaged, and what cutting it there would
    /// lose. Changes nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) if there is no database,
    /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) if cutting the log would not repair it.
    pub fn find_log_damage(environment: &Environment, directory: impl AsRef<Path>) -> Result<Option<Damage>> {
        vervet_txn::find_damage(environment, directory.as_ref())
    }

    /// Cuts the log of the database in a directory at its damage. The records behind the cut are lost, as the
    /// result states. `None`: the log is sound.
    ///
    /// # Errors
    /// As [`Database::find_log_damage`]; [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) while a
    /// process writes to it.
    pub fn cut_log_at_damage(
        environment: &Environment,
        directory: impl AsRef<Path>,
    ) -> Result<Option<Damage>> {
        vervet_txn::cut_at_damage(environment, directory.as_ref())
    }

    /// Copies a backup ([`Database::backup`]) into a directory without a database; returns the number of its
    /// statements. The restore is atomic: the database exists once everything has been copied, verified and
    /// synced. `report` is called with the bytes copied so far and the total; an error of it ends the copy.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input): there is no database in `backup`, or the database there
    /// has been written to and so has a log; there is already a database in `directory`.
    /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt): the backup is damaged; `directory` has files of a
    /// database without a manifest, such as a log that would be replayed.
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable): another process writes to `directory`.
    /// [`ErrorKind::Io`](crate::ErrorKind::Io). Errors of `report`.
    ///
    /// # Cost
    /// Each file is read once and written once.
    pub fn restore(
        environment: &Environment,
        backup: impl AsRef<Path>,
        directory: impl AsRef<Path>,
        report: &mut dyn FnMut(u64, u64) -> Result<()>,
    ) -> Result<u64> {
        vervet_txn::restore(environment, backup.as_ref(), directory.as_ref(), report)
    }

    /// A database over a graph that nothing changes, such as one in partitions on several servers. Changes
    /// fail with `refusal`. `driver` runs the queries.
    ///
    /// # Errors
    /// As [`Transactions::read_only`].
    pub fn read_only(
        start: &Start,
        refusal: Error,
        driver: Arc<dyn Driver>,
        options: &DatabaseOptions,
    ) -> Result<Self> {
        let environment = options.environment.clone();
        let transactions =
            Transactions::read_only(environment.clone(), start, options.of_transactions(), refusal)?;
        Ok(Self::new(environment, None, transactions, driver))
    }

    /// A database over a base whose files are elsewhere, such as at several servers, with its changes in a
    /// log in `directory`, which this process writes. All changes stay in memory and in the log: see
    /// [`Transactions::over`].
    ///
    /// # Errors
    /// As [`Transactions::over`].
    pub fn over(
        start: Start,
        directory: &Path,
        driver: Arc<dyn Driver>,
        options: &DatabaseOptions,
    ) -> Result<Self> {
        let environment = options.environment.clone();
        let transactions =
            Transactions::over(environment.clone(), start, directory, options.of_transactions())?;
        Ok(Self::new(environment, None, transactions, driver))
    }

    /// A database that takes its changes behind `start` from the log of another process
    /// ([`Database::over`]), by the follower; other changes fail with `refusal`.
    ///
    /// # Errors
    /// As [`Follower::new`].
    pub fn following(
        start: Start,
        refusal: Error,
        driver: Arc<dyn Driver>,
        options: &DatabaseOptions,
    ) -> Result<(Self, Follower)> {
        let environment = options.environment.clone();
        let follower = Follower::new(environment.clone(), start, options.of_transactions(), refusal)?;
        let transactions = Arc::clone(follower.transactions());
        Ok((Self::new(environment, None, transactions, driver), follower))
    }

    /// From now on the graph is that of `transactions`: those that a [`Follower`] begins when its process
    /// leads, or its own. Both must be of the graph of this database. Transactions that have begun stay as
    /// they are.
    pub fn switch_to(&self, transactions: Arc<Transactions>) {
        let current = &self.inner.transactions.0;
        let before =
            std::mem::replace(&mut *current.write().unwrap_or_else(PoisonError::into_inner), transactions);
        // Its memory is freed outside of the lock.
        drop(before);
    }

    /// Whether the newest version has changes over its base, for who must not hold this database.
    pub fn changes_probe(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let transactions = Arc::clone(&self.inner.transactions);
        move || transactions.get().current().version.base_number().is_none()
    }

    /// The synced records of the log behind `after`: see [`Transactions::read_log`].
    ///
    /// # Errors
    /// As [`Transactions::read_log`].
    pub fn read_log(&self, after: u64, bytes_max: usize) -> Result<(u64, Vec<LogRecord>)> {
        self.inner.transactions.get().read_log(after, bytes_max)
    }

    /// Position up to which the log is synced; 0 without a log.
    #[must_use]
    pub fn synced_log_end(&self) -> u64 {
        self.inner.transactions.get().synced_log_end()
    }

    /// The same database, whose queries `driver` runs, such as one that uses a device. Plans of queries are
    /// cached separately.
    #[must_use]
    pub fn with_driver(&self, driver: Arc<dyn Driver>) -> Self {
        let inner = &self.inner;
        let transactions = Arc::clone(&inner.transactions);
        Self::sharing(inner.environment.clone(), inner.directory.clone(), transactions, driver)
    }

    /// The driver that runs its queries, for one that wraps it.
    #[must_use]
    pub fn shared_driver(&self) -> Arc<dyn Driver> {
        Arc::clone(&self.inner.driver)
    }

    /// Writes the current graph in several partitions to a directory without one, for the servers of a
    /// cluster (`vervet cluster init`). Blocks nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input): the directory has such a graph.
    /// [`ErrorKind::Io`](crate::ErrorKind::Io); those of `watch`.
    ///
    /// # Cost
    /// As a checkpoint: the whole graph is sorted and encoded; up to 1 GB of memory, then temporary files.
    pub fn write_partitions(
        &self,
        partitioning: Partitioning,
        directory: impl AsRef<Path>,
        watch: &Watch<'_>,
    ) -> Result<PartitionDirectory> {
        self.inner.transactions.get().write_partitions(partitioning, directory.as_ref(), watch)
    }

    fn new(
        environment: Environment,
        directory: Option<PathBuf>,
        transactions: Arc<Transactions>,
        driver: Arc<dyn Driver>,
    ) -> Self {
        let transactions = Arc::new(CurrentTransactions(RwLock::new(transactions)));
        Self::sharing(environment, directory, transactions, driver)
    }

    fn sharing(
        environment: Environment,
        directory: Option<PathBuf>,
        transactions: Arc<CurrentTransactions>,
        driver: Arc<dyn Driver>,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                environment,
                directory,
                transactions,
                plans: Mutex::default(),
                traversal_plans: Mutex::default(),
                plan_hits: AtomicU64::new(0),
                plan_misses: AtomicU64::new(0),
                seed: OnceLock::new(),
                runs: AtomicU64::new(0),
                names: OnceLock::new(),
                named: AtomicU64::new(0),
                driver,
            }),
        }
    }

    /// Loads a file. The file extension determines format and compression.
    ///
    /// # Errors
    /// As [`Database::load`].
    pub fn load_file(&self, path: impl Into<PathBuf>) -> Result<LoadReport> {
        self.load(vec![Source::path(path)], &LoadOptions::default())
    }

    /// Loads a text.
    ///
    /// # Errors
    /// As [`Database::load`].
    pub fn load_text(&self, format: Format, text: &str) -> Result<LoadReport> {
        let options = LoadOptions { format: Some(format), ..LoadOptions::default() };
        self.load(vec![Source::bytes("text", text.as_bytes())], &options)
    }

    /// Loads `sources` and adds their statements to the existing ones, including those that another process
    /// has loaded into the directory since it was opened here. The load is atomic, even if the process dies
    /// or the disk is full.
    ///
    /// # Cost
    /// Rewrites the whole database.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) with file, line and column of a malformed statement;
    /// [`ErrorKind::Constraint`](crate::ErrorKind::Constraint) if the graph would violate a constraint;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io); [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) if
    /// another process (the message names it) or another handle of this one is loading into the same
    /// directory.
    pub fn load(&self, sources: Vec<Source>, options: &LoadOptions<'_>) -> Result<LoadReport> {
        self.load_with_report(sources, options, None, &mut std::io::sink())
    }

    /// [`Database::load`] with a cap on the bytes of statements held in memory (beyond it, statements are
    /// sorted in temporary files), and a receiver for the statements that [`LoadOptions::skip_errors`] skips.
    ///
    /// # Errors
    /// As [`Database::load`].
    pub fn load_with_report(
        &self,
        sources: Vec<Source>,
        options: &LoadOptions<'_>,
        memory_bytes: Option<u64>,
        skipped: &mut dyn std::io::Write,
    ) -> Result<LoadReport> {
        let context = loading::LoadContext {
            environment: &self.inner.environment,
            directory: self.inner.directory.as_deref(),
            memory_bytes,
        };
        let begin = Instant::now();
        let report =
            self.inner.transactions.get().replace_graph(|replacement| {
                loading::load(replacement, sources, options, &context, skipped)
            })?;
        tracing::info!(statements = report.statements, seconds = begin.elapsed().as_secs_f64(), "loaded");
        lock(&self.inner.plans).clear();
        lock(&self.inner.traversal_plans).clear();
        if report.statements >= RELEASE_STATEMENTS_MIN {
            vervet_env::release_free_memory();
        }
        Ok(report)
    }

    /// Hits and misses of the plan cache.
    #[must_use]
    pub fn plan_cache_counts(&self) -> PlanCacheCounts {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        PlanCacheCounts { hits: load(&self.inner.plan_hits), misses: load(&self.inner.plan_misses) }
    }

    /// Clears the plan cache, for measurements.
    pub fn clear_plan_cache(&self) {
        lock(&self.inner.plans).clear();
        lock(&self.inner.traversal_plans).clear();
    }

    /// A snapshot of the current graph.
    #[must_use]
    pub fn snapshot(&self) -> GraphSnapshot {
        self.snapshot_of(self.published())
    }

    /// The number of the base of the newest version ([`vervet_store::Base::number`]).
    #[must_use]
    pub fn base_number(&self) -> u64 {
        self.published().version.base().number()
    }

    pub(crate) fn snapshot_of(&self, published: Arc<Published>) -> GraphSnapshot {
        GraphSnapshot { published, gate: self.driver().gate() }
    }

    /// Reads the whole database and verifies checksums and invariants.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) with the file and the violation.
    pub fn check(&self) -> Result<()> {
        self.published().version.base().validate()
    }

    /// The sizes of the components of the database.
    ///
    /// # Errors
    /// Damaged data.
    pub fn component_sizes(&self) -> Result<Vec<ComponentSize>> {
        let published = self.published();
        let version = &published.version;
        let name_of = |id| -> Result<String> {
            let mut name = String::new();
            version.read_term(id, &mut String::new(), &mut |parts| parts.write_str(&mut name))?;
            Ok(name)
        };
        let parts = version.base().parts()?.into_iter().map(|part| {
            let segment = match part.segment {
                Some((predicate, direction)) => Some((name_of(predicate)?, direction)),
                None => None,
            };
            Ok(ComponentSize { segment, name: part.part, size_bytes: part.bytes })
        });
        let delta = [("delta", version.delta_bytes()), ("new terms", version.terms().bytes())];
        let delta = delta.into_iter().filter(|(_, bytes)| *bytes > 0);
        let delta = delta.map(|(name, size_bytes)| Ok(ComponentSize { segment: None, name, size_bytes }));
        parts.chain(delta).collect()
    }

    /// The durability of commits; `None` for an in-memory database.
    #[must_use]
    pub fn durability(&self) -> Option<Durability> {
        self.inner.directory.as_ref().map(|_| self.inner.transactions.get().durability())
    }

    /// Counts of finished transactions by outcome, since the database was opened.
    #[must_use]
    pub fn transaction_counts(&self) -> Counts {
        self.inner.transactions.get().counts()
    }

    /// Status of storage: log, delta in memory, checkpoints and their failures, conflicts, whether writes are
    /// accepted. Cheap: reads no file.
    #[must_use]
    pub fn storage_status(&self) -> StorageStatus {
        self.inner.transactions.get().storage_status()
    }

    /// Copies the current version into another directory as a database of its own, concurrently with readers
    /// and writers; returns its number of statements.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input): `to` has a database, or unrelated files.
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), such as a full disk; then the partial copy is removed.
    pub fn backup(&self, to: impl AsRef<Path>) -> Result<u64> {
        self.backup_watched(to, &Watch::new("backup"))
    }

    /// [`Database::backup`] with progress and cancellation through `watch`.
    ///
    /// # Errors
    /// As [`Database::backup`]; [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled), and the partial copy
    /// is removed.
    pub fn backup_watched(&self, to: impl AsRef<Path>, watch: &Watch<'_>) -> Result<u64> {
        self.inner.transactions.get().backup_watched(to.as_ref(), watch)
    }

    /// Sets the description of this process, such as `vervet serve at http://localhost:7878/`, for the error
    /// that other processes get when they try to write to the directory. Has no effect before this process
    /// has begun a transaction.
    pub fn describe_owner(&self, text: &str) {
        self.inner.transactions.get().describe_owner(text);
    }

    /// Merges all changes since the last load or checkpoint into a new base, concurrently with readers and
    /// writers, and truncates the log. Also runs in the background when there is enough to merge. `false`:
    /// there was nothing to merge.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), such as a full disk; then nothing has changed.
    pub fn checkpoint(&self) -> Result<bool> {
        self.inner.transactions.get().checkpoint()
    }

    /// Makes all commits so far durable, whatever [`DatabaseOptions::durability`] says. Dropping the last
    /// clone of a database does it, too; a process that ends while another thread has a clone does not.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), such as a full disk.
    pub fn sync(&self) -> Result<()> {
        self.inner.transactions.get().sync()
    }

    /// The constraints of the graph, ascending: see [`Constraint`].
    #[must_use]
    pub fn constraints(&self) -> Vec<Constraint> {
        self.inner.transactions.get().constraints()
    }

    /// Adds a constraint, which is enforced from then on; `false`: it existed. The graph is checked
    /// concurrently with readers and writers; each concurrent writer conflicts with it once.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`](crate::ErrorKind::Constraint): the graph violates it; the message names the
    /// first violating vertices. As [`Database::begin`].
    ///
    /// ```
    /// use vervet::{Constraint, ConstraintKind, Database, ErrorKind, NamedNode};
    ///
    /// # fn main() -> vervet::Result<()> {
    /// let db = Database::in_memory();
    /// let iri = NamedNode::new_unchecked;
    /// let unique = Constraint::new(ConstraintKind::Unique, iri("urn:Person"), [iri("urn:email")])?;
    /// assert!(db.add_constraint(&unique)?);
    /// db.update("INSERT DATA { <urn:ann> a <urn:Person> ; <urn:email> 'ann@example.org' }")?;
    /// let error = db.update("INSERT DATA { <urn:bob> a <urn:Person> ; <urn:email> 'ann@example.org' }");
    /// assert_eq!(error.map_err(|error| error.kind()).err(), Some(ErrorKind::Constraint));
    /// # Ok(())
    /// # }
    /// ```
    pub fn add_constraint(&self, constraint: &Constraint) -> Result<bool> {
        self.inner.transactions.get().add_constraint(constraint)
    }

    /// Removes a constraint; `false`: it did not exist. Each concurrent writer conflicts with it once.
    ///
    /// # Errors
    /// As [`Database::begin`].
    pub fn remove_constraint(&self, constraint: &Constraint) -> Result<bool> {
        self.inner.transactions.get().remove_constraint(constraint)
    }

    pub(crate) fn published(&self) -> Arc<Published> {
        self.inner.transactions.get().current()
    }

    pub(crate) fn transactions(&self) -> Arc<Transactions> {
        self.inner.transactions.get()
    }

    /// The parsed query, from the plan cache if it is there.
    pub(crate) fn compiled(&self, text: &str, options: &QueryOptions) -> Result<Arc<Compiled>> {
        let key = options.cache_key(text);
        if let Some(key) = &key
            && let Some(query) = lock(&self.inner.plans).find(key)
        {
            self.inner.plan_hits.fetch_add(1, Ordering::Relaxed);
            return Ok(query);
        }
        self.inner.plan_misses.fetch_add(1, Ordering::Relaxed);
        let query = Arc::new(crate::query::plans::compile(text, options)?);
        if let Some(key) = &key {
            lock(&self.inner.plans).insert(key, Arc::clone(&query));
        }
        Ok(query)
    }

    pub(crate) fn traversal_plans(&self) -> &Mutex<TraversalPlans> {
        &self.inner.traversal_plans
    }

    pub(crate) fn driver(&self) -> &dyn Driver {
        &*self.inner.driver
    }

    /// A seed for the random functions of one run, different for each run.
    pub(crate) fn next_seed(&self) -> Result<u64> {
        let drawn = self.random_once(&self.inner.seed)?;
        Ok(drawn.wrapping_add(self.inner.runs.fetch_add(1, Ordering::Relaxed)))
    }

    /// An external id that no vertex has: 63 random bits and a counter.
    pub(crate) fn fresh_vertex_name(&self) -> Result<String> {
        let drawn = self.random_once(&self.inner.names)? >> 1;
        Ok(format!("{drawn}-{}", self.inner.named.fetch_add(1, Ordering::Relaxed) + 1))
    }

    /// A random number, drawn on first use and then constant.
    fn random_once(&self, slot: &OnceLock<u64>) -> Result<u64> {
        if let Some(drawn) = slot.get() {
            return Ok(*drawn);
        }
        let random = &self.inner.environment.random;
        let drawn = random.next_u64().map_err(|error| Error::io("draw a seed", &error))?;
        Ok(*slot.get_or_init(|| drawn))
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.inner.environment
    }
}

/// Logs what opening found: the base, and the changes replayed from the log.
fn log_opened(directory: &Path, transactions: &Transactions, begin: Instant) {
    let current = transactions.current();
    tracing::info!(
        directory = %directory.display(),
        statements = current.version.statement_count(),
        recovered_changes = current.version.delta_cells(),
        seconds = begin.elapsed().as_secs_f64(),
        "opened"
    );
}
