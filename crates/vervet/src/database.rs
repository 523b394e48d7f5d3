//! The database: where the graph is, and the current version of it.

use crate::options::{DatabaseOptions, QueryOptions};
use crate::prepared::{PlanCache, Prepared, TraversalPlans};
use crate::status::PlanCacheCounts;
use crate::{Answer, Solutions, loading};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;
use vervet_driver_local::LocalDriver;
use vervet_env::Environment;
use vervet_graph::Graph;
use vervet_kernel::Gate;
use vervet_load::{Format, LoadOptions, LoadReport, Source};
use vervet_model::vocab::EDGE_ID;
use vervet_model::{Direction, Error, ErrorKind, Id, Result, Watch};
use vervet_snapshot::Snapshot;
use vervet_txn::{Constraint, Counts, Damage, Durability, Published, StorageStatus, Timestamp, Transactions};

/// A load of fewer statements leaves too little behind to be worth asking for it back.
const RELEASE_STATEMENTS_MIN: u64 = 100_000;

/// Keys that are read at a time when vertices are counted.
const KEYS_AT_ONCE: usize = 1 << 12;

/// One graph, in memory or in a directory. Clones share it; all calls may come from many threads.
///
/// Queries never wait: each sees the graph as the last commit before its begin has left it. Changes are made
/// by transactions ([`Database::begin`]), serializable unless asked otherwise; a bulk load is one as well.
#[derive(Clone, Debug)]
pub struct Database {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    environment: Environment,
    directory: Option<PathBuf>,
    transactions: Arc<Transactions>,
    plans: Mutex<PlanCache>,
    traversal_plans: Mutex<TraversalPlans>,
    plan_hits: AtomicU64,
    plan_misses: AtomicU64,
    /// Owns the threads that help with heavy queries; they end with the database.
    driver: LocalDriver,
    /// Drawn when the first query runs: a call of the system for each would take as long as a small query.
    seed: OnceLock<u64>,
    /// Queries that have run.
    runs: AtomicU64,
    /// Begins the names of new vertices; drawn when the first one is added.
    names: OnceLock<u64>,
    /// Names that have been given out.
    named: AtomicU64,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.transactions.wait_background();
    }
}

/// The graph at one point in time, for the typed interface.
#[derive(Clone, Debug)]
pub struct GraphSnapshot {
    published: Arc<Published>,
    /// For algorithms that run on it.
    pub(crate) gate: Option<Arc<dyn Gate>>,
}

impl GraphSnapshot {
    /// The version, with its timestamp.
    pub(crate) fn published(&self) -> &Published {
        &self.published
    }

    /// Vertices, edges and properties.
    #[must_use]
    pub fn graph(&self) -> Graph<'_> {
        Graph::new(&self.published.version)
    }

    /// What query engines read.
    #[must_use]
    pub fn as_snapshot(&self) -> &dyn Snapshot {
        &self.published.version
    }

    /// Number of statements.
    #[must_use]
    pub fn statement_count(&self) -> u64 {
        self.published.version.statement_count()
    }

    /// How many vertices there are, as Gremlin counts them: IRIs and blank nodes with a type, a property or
    /// an edge. Predicates and classes that nothing is said about are none, nor is what has been removed.
    ///
    /// # Cost
    /// About 10 ns for each of [`GraphSnapshot::vertex_count_steps`], and a bit for each IRI and blank node.
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
                // Keys ascend by tag, and vertices have the lowest.
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

    /// How many keys [`GraphSnapshot::vertex_count`] looks at, roughly.
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

    /// The lists of keys that are vertices.
    fn vertex_sources(&self) -> Result<Vec<(Id, Direction)>> {
        let view = self.as_snapshot();
        // Names of edges are no vertices.
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

    /// The last commit that it holds.
    #[must_use]
    pub fn timestamp(&self) -> Timestamp {
        self.published.timestamp
    }
}

/// A part of a database and what it takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The segment that it is part of, if it is: the IRI of its predicate, and its direction.
    pub segment: Option<(String, Direction)>,
    /// What it is, such as `neighbours`.
    pub name: &'static str,
    /// Bytes in memory and in files alike.
    pub size_bytes: u64,
}

impl Database {
    /// An empty database that is gone with its last clone.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::in_memory_with(DatabaseOptions::default())
    }

    /// [`Database::in_memory`] with options; durability means nothing there.
    ///
    /// # Panics
    /// Never: an empty store is made of constants.
    #[must_use]
    pub fn in_memory_with(options: DatabaseOptions) -> Self {
        let transactions = Transactions::in_memory(options.environment.clone(), options.of_transactions())
            .expect("an empty store is made of constants");
        Self::new(options.environment, None, transactions, options.gate)
    }

    /// Opens the database in a directory: everything that was committed there, also by another process that
    /// is writing to it now. The directory becomes this process's own with the first transaction or load.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] if there is none, [`ErrorKind::Corrupt`] if its manifest or its log is damaged.
    /// Data is verified when it is first read, or by [`Database::check`].
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(directory, DatabaseOptions::default())
    }

    /// [`Database::open`] in another outside world.
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
        Ok(Self::new(options.environment, Some(directory.to_owned()), transactions, options.gate))
    }

    /// Opens the database in a directory, or an empty one that its first load or commit will put there.
    ///
    /// # Errors
    /// As [`Database::open`], except that nothing need be there.
    pub fn open_or_create(directory: impl AsRef<Path>) -> Result<Self> {
        Self::open_or_create_with(directory, DatabaseOptions::default())
    }

    /// [`Database::open_or_create`] in another outside world.
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
        Ok(Self::new(options.environment, Some(directory.to_owned()), transactions, options.gate))
    }

    /// Whether the log of the database in a directory is damaged, and what cutting it there would lose.
    /// Changes nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] if there is no database, [`ErrorKind::Corrupt`] where cutting the log would not
    /// help.
    pub fn find_log_damage(environment: &Environment, directory: impl AsRef<Path>) -> Result<Option<Damage>> {
        vervet_txn::find_damage(environment, directory.as_ref())
    }

    /// Cuts the log of the database in a directory where it is damaged: what follows is lost, as it says.
    /// `None`: it is sound.
    ///
    /// # Errors
    /// As [`Database::find_log_damage`]; [`ErrorKind::Unavailable`] while a process writes to it.
    pub fn cut_log_at_damage(
        environment: &Environment,
        directory: impl AsRef<Path>,
    ) -> Result<Option<Damage>> {
        vervet_txn::cut_at_damage(environment, directory.as_ref())
    }

    /// Copies a backup ([`Database::backup`]) into a directory without a database; returns the number of its
    /// statements. The database is there when everything has been copied, verified and synced, or not at all.
    /// `report` is called with the bytes copied so far and those of all files; an error of it ends the copy.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: there is no database in `backup`, or one that has been written to and so has a
    /// log; there is a database in `directory`. [`ErrorKind::Corrupt`]: the backup is damaged; `directory`
    /// has files of a database without a manifest, such as a log that would be replayed.
    /// [`ErrorKind::Unavailable`]: another process writes to
    /// `directory`. [`ErrorKind::Io`]. Those of `report`.
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

    fn new(
        environment: Environment,
        directory: Option<PathBuf>,
        transactions: Arc<Transactions>,
        gate: bool,
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
                driver: LocalDriver::new(gate),
            }),
        }
    }

    /// Loads a file; format and compression are told by its name.
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

    /// Loads `sources` and adds their statements to those that are there, also to those that another
    /// process has loaded into the directory since it was opened here. Either all of them are there
    /// afterwards, or none: also if the process dies or the disk is full.
    ///
    /// # Cost
    /// The whole database is written anew.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] with file, line and column of a malformed statement; [`ErrorKind::Constraint`] if
    /// the graph would break one; [`ErrorKind::Io`]; [`ErrorKind::Unavailable`] if another process (the
    /// message says which) or another handle of this one is loading into the same directory.
    pub fn load(&self, sources: Vec<Source>, options: &LoadOptions<'_>) -> Result<LoadReport> {
        self.load_with_report(sources, options, None, &mut std::io::sink())
    }

    /// [`Database::load`] with a cap on the bytes of statements held in memory (beyond it they are sorted
    /// in temporary files), and with a place for the statements that
    /// [`LoadOptions::skip_errors`] passes over.
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
        let place = loading::Place {
            environment: &self.inner.environment,
            directory: self.inner.directory.as_deref(),
            memory_bytes,
        };
        let begin = Instant::now();
        let report = self
            .inner
            .transactions
            .replace_graph(|successor| loading::load(successor, sources, options, &place, skipped))?;
        tracing::info!(statements = report.statements, seconds = begin.elapsed().as_secs_f64(), "loaded");
        lock(&self.inner.plans).clear();
        lock(&self.inner.traversal_plans).clear();
        if report.statements >= RELEASE_STATEMENTS_MIN {
            vervet_env::release_free_memory();
        }
        Ok(report)
    }

    /// Runs a query of any form.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] with line, column and a caret; limits; damaged data.
    pub fn query(&self, text: &str) -> Result<Answer> {
        self.query_with(text, &QueryOptions::default())
    }

    /// Runs a query of any form with options.
    ///
    /// # Errors
    /// As [`Database::query`].
    pub fn query_with(&self, text: &str, options: &QueryOptions) -> Result<Answer> {
        self.prepare_with(text, options)?.run_with(options)
    }

    /// Runs a `SELECT`.
    ///
    /// # Errors
    /// As [`Database::query`]; [`ErrorKind::Query`] if it is of another form.
    pub fn select(&self, text: &str) -> Result<Solutions> {
        self.query(text)?.into_solutions().ok_or_else(|| {
            Error::new(ErrorKind::Query, "this query is not a SELECT").with_hint("use `query`")
        })
    }

    /// Parses and plans a query, to run it many times.
    ///
    /// # Errors
    /// As [`Database::query`].
    pub fn prepare(&self, text: &str) -> Result<Prepared> {
        self.prepare_with(text, &QueryOptions::default())
    }

    /// [`Database::prepare`] with a base IRI and names of parameters.
    ///
    /// # Errors
    /// As [`Database::query`].
    pub fn prepare_with(&self, text: &str, options: &QueryOptions) -> Result<Prepared> {
        let key = options.cache_key(text);
        if let Some(key) = &key
            && let Some(query) = lock(&self.inner.plans).find(key)
        {
            self.inner.plan_hits.fetch_add(1, Ordering::Relaxed);
            return Ok(Prepared::new(self.clone(), query));
        }
        self.inner.plan_misses.fetch_add(1, Ordering::Relaxed);
        let query = Arc::new(crate::prepared::compile(text, options)?);
        if let Some(key) = &key {
            lock(&self.inner.plans).insert(key, Arc::clone(&query));
        }
        Ok(Prepared::new(self.clone(), query))
    }

    /// How often a query was parsed before.
    #[must_use]
    pub fn plan_cache_counts(&self) -> PlanCacheCounts {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        PlanCacheCounts { hits: load(&self.inner.plan_hits), misses: load(&self.inner.plan_misses) }
    }

    /// Forgets all plans: for measurements.
    pub fn clear_plan_cache(&self) {
        lock(&self.inner.plans).clear();
        lock(&self.inner.traversal_plans).clear();
    }

    /// How a query would run, for people.
    ///
    /// # Errors
    /// As [`Database::query`].
    pub fn explain(&self, text: &str, options: &QueryOptions) -> Result<String> {
        self.prepare_with(text, options)?.explain_with(options)
    }

    /// The graph as it is now.
    #[must_use]
    pub fn snapshot(&self) -> GraphSnapshot {
        GraphSnapshot { published: self.published(), gate: self.driver().gate() }
    }

    /// Reads everything and verifies checksums and invariants.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] naming the file and what is wrong.
    pub fn check(&self) -> Result<()> {
        self.published().version.base().validate()
    }

    /// What the parts of the database take.
    ///
    /// # Errors
    /// Damaged data.
    pub fn parts(&self) -> Result<Vec<Part>> {
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
            Ok(Part { segment, name: part.part, size_bytes: part.bytes })
        });
        let delta = [("delta", version.delta_bytes()), ("new terms", version.terms().bytes())];
        let delta = delta.into_iter().filter(|(_, bytes)| *bytes > 0);
        let delta = delta.map(|(name, size_bytes)| Ok(Part { segment: None, name, size_bytes }));
        parts.chain(delta).collect()
    }

    /// How commits become durable; `None` for a database in memory.
    #[must_use]
    pub fn durability(&self) -> Option<Durability> {
        self.inner.directory.as_ref().map(|_| self.inner.transactions.durability())
    }

    /// How many transactions have ended how since the database was opened.
    #[must_use]
    pub fn transaction_counts(&self) -> Counts {
        self.inner.transactions.counts()
    }

    /// How storage is doing: log, changes in memory, checkpoints and their failures, conflicts, whether
    /// changes are taken. Cheap: no file is looked at.
    #[must_use]
    pub fn storage_status(&self) -> StorageStatus {
        self.inner.transactions.storage_status()
    }

    /// Copies the database as it is now into another directory, as a database of its own, while others read
    /// and write; returns its number of statements.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: there is a database in `to`, or files of something else. A full disk and the
    /// like: then nothing of it is left.
    pub fn backup(&self, to: impl AsRef<Path>) -> Result<u64> {
        self.backup_watched(to, &Watch::new("backup"))
    }

    /// [`Database::backup`], followed and cancelled by `watch`.
    ///
    /// # Errors
    /// As [`Database::backup`]; [`ErrorKind::Cancelled`], and nothing is left of it.
    pub fn backup_watched(&self, to: impl AsRef<Path>, watch: &Watch<'_>) -> Result<u64> {
        self.inner.transactions.backup_watched(to.as_ref(), watch)
    }

    /// Says what this process is, such as `vervet serve at http://localhost:7878/`, to other processes that
    /// want to write to the directory: the error that they get names it. It has no effect before this process
    /// has begun a transaction.
    pub fn describe_owner(&self, text: &str) {
        self.inner.transactions.describe_owner(text);
    }

    /// Merges all changes since the last load or checkpoint into a new base, while others read and write, and
    /// cuts the log; done in the background when there is enough to merge. `false`: there was nothing to do.
    ///
    /// # Errors
    /// A full disk and the like: then everything is as it was.
    pub fn checkpoint(&self) -> Result<bool> {
        self.inner.transactions.checkpoint()
    }

    /// What must hold for the graph, ascending: see [`Constraint`].
    #[must_use]
    pub fn constraints(&self) -> Vec<Constraint> {
        self.inner.transactions.constraints()
    }

    /// Adds a constraint, which holds from then on; `false`: it was there. The graph is checked while others
    /// read and write; writers conflict with it once.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`]: the graph breaks it; the message names the first vertices that do. As
    /// [`Database::begin`].
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
        self.inner.transactions.add_constraint(constraint)
    }

    /// Removes a constraint; `false`: it was not there. Writers conflict with it once.
    ///
    /// # Errors
    /// As [`Database::begin`].
    pub fn remove_constraint(&self, constraint: &Constraint) -> Result<bool> {
        self.inner.transactions.remove_constraint(constraint)
    }

    pub(crate) fn published(&self) -> Arc<Published> {
        self.inner.transactions.current()
    }

    pub(crate) fn transactions(&self) -> &Arc<Transactions> {
        &self.inner.transactions
    }

    pub(crate) fn traversal_plans(&self) -> &Mutex<TraversalPlans> {
        &self.inner.traversal_plans
    }

    pub(crate) fn directory(&self) -> Option<&Path> {
        self.inner.directory.as_deref()
    }

    pub(crate) fn driver(&self) -> &LocalDriver {
        &self.inner.driver
    }

    /// A number for the random functions of one run; others get others.
    pub(crate) fn next_seed(&self) -> Result<u64> {
        let drawn = self.drawn(&self.inner.seed)?;
        Ok(drawn.wrapping_add(self.inner.runs.fetch_add(1, Ordering::Relaxed)))
    }

    /// An external id that no vertex has: 63 random bits and a number.
    pub(crate) fn fresh_vertex_name(&self) -> Result<String> {
        let drawn = self.drawn(&self.inner.names)? >> 1;
        Ok(format!("{drawn}-{}", self.inner.named.fetch_add(1, Ordering::Relaxed) + 1))
    }

    /// A random number that stays the same once it is drawn.
    fn drawn(&self, place: &OnceLock<u64>) -> Result<u64> {
        if let Some(drawn) = place.get() {
            return Ok(*drawn);
        }
        let random = &self.inner.environment.random;
        let drawn = random.next_u64().map_err(|error| Error::io("draw a seed", &error))?;
        Ok(*place.get_or_init(|| drawn))
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.inner.environment
    }
}

/// What opening has found: the base, and the changes in the log since.
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

/// What the mutexes guard is whole after each change, so a panic elsewhere does not spoil it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
