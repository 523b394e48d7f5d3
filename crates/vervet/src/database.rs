//! The database: where the graph is, and the current version of it.

use crate::options::QueryOptions;
use crate::prepared::{PlanCache, Prepared};
use crate::{Answer, Solutions, loading};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use vervet_driver_local::LocalDriver;
use vervet_env::Environment;
use vervet_graph::Graph;
use vervet_load::{Format, LoadOptions, LoadReport, Source};
use vervet_model::{Direction, Error, ErrorKind, Result};
use vervet_snapshot::Snapshot;
use vervet_store::Store;

/// A load of fewer statements leaves too little behind to be worth asking for it back.
const RELEASE_STATEMENTS_MIN: u64 = 100_000;

/// One graph, in memory or in a directory. Clones share it; all calls may come from many threads.
///
/// Queries never wait: each sees the version of the graph that was current when it began. A load makes a
/// new version and publishes it whole, or leaves everything as it was.
#[derive(Clone, Debug)]
pub struct Database {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    environment: Environment,
    directory: Option<PathBuf>,
    current: RwLock<Arc<Version>>,
    /// Held while a load runs.
    loading: Mutex<()>,
    plans: Mutex<PlanCache>,
    /// Owns the threads that help with heavy queries; they end with the database.
    driver: LocalDriver,
}

/// A version of the graph.
#[derive(Debug)]
pub(crate) struct Version {
    pub number: u64,
    pub store: Store,
}

/// The graph at one point in time, for the typed interface.
#[derive(Clone, Debug)]
pub struct GraphSnapshot {
    version: Arc<Version>,
}

impl GraphSnapshot {
    /// Vertices, edges and properties.
    #[must_use]
    pub fn graph(&self) -> Graph<'_> {
        Graph::new(&self.version.store)
    }

    /// What query engines read.
    #[must_use]
    pub fn as_snapshot(&self) -> &dyn Snapshot {
        &self.version.store
    }

    /// Number of statements.
    #[must_use]
    pub fn statement_count(&self) -> u64 {
        self.version.store.statement_count()
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
        let store = Store::empty().expect("an empty store is made of constants");
        Self::new(Environment::real(), None, store)
    }

    /// Opens the database in a directory.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] if there is none, [`ErrorKind::Corrupt`] if its manifest is damaged. Data is
    /// verified when it is first read, or by [`Database::check`].
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        Self::open_in(Environment::real(), directory)
    }

    /// [`Database::open`] in another outside world.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open_in(environment: Environment, directory: impl AsRef<Path>) -> Result<Self> {
        let directory = directory.as_ref();
        let store = Store::open(&environment, directory)?;
        Ok(Self::new(environment, Some(directory.to_owned()), store))
    }

    /// Opens the database in a directory, or an empty one that its first load will put there.
    ///
    /// # Errors
    /// As [`Database::open`], except that nothing need be there.
    pub fn open_or_create(directory: impl AsRef<Path>) -> Result<Self> {
        Self::open_or_create_in(Environment::real(), directory)
    }

    /// [`Database::open_or_create`] in another outside world.
    ///
    /// # Errors
    /// As [`Database::open_or_create`].
    pub fn open_or_create_in(environment: Environment, directory: impl AsRef<Path>) -> Result<Self> {
        let directory = directory.as_ref();
        let store = match Store::open(&environment, directory) {
            Err(error) if error.kind() == ErrorKind::Input => Store::empty()?,
            store => store?,
        };
        Ok(Self::new(environment, Some(directory.to_owned()), store))
    }

    fn new(environment: Environment, directory: Option<PathBuf>, store: Store) -> Self {
        let current = RwLock::new(Arc::new(Version { number: 0, store }));
        let (loading, plans) = (Mutex::default(), Mutex::default());
        Self {
            inner: Arc::new(Inner {
                environment,
                directory,
                current,
                loading,
                plans,
                driver: LocalDriver::default(),
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
    /// [`ErrorKind::Input`] with file, line and column of a malformed statement; [`ErrorKind::Io`];
    /// [`ErrorKind::Unavailable`] if another process (the message says which) or another handle of this
    /// one is loading into the same directory.
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
        let _one_at_a_time = lock(&self.inner.loading);
        let before = self.version();
        let owned = match &self.inner.directory {
            Some(directory) => Some(loading::own(&self.inner.environment, directory)?),
            None => None,
        };
        // Another process may have published a newer graph: this load adds to that.
        let newest = owned.as_ref().and_then(|owned| owned.store.as_ref()).unwrap_or(&before.store);
        let place = loading::Place {
            environment: &self.inner.environment,
            directory: self.inner.directory.as_deref(),
            memory_bytes,
        };
        let (store, report) = loading::load(newest, sources, options, &place, skipped)?;
        let version = Arc::new(Version { number: before.number + 1, store });
        *self.inner.current.write().unwrap_or_else(PoisonError::into_inner) = version;
        lock(&self.inner.plans).clear();
        drop(owned);
        drop(before);
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
        // A text with parameters, a base or prefixes means different things at different times.
        let cacheable =
            options.parameters.is_empty() && options.base_iri.is_none() && options.prefixes.is_empty();
        if cacheable && let Some(query) = lock(&self.inner.plans).find(text) {
            return Ok(Prepared::new(self.clone(), query));
        }
        let query = Arc::new(crate::prepared::compile(text, options)?);
        if cacheable {
            lock(&self.inner.plans).insert(text, Arc::clone(&query));
        }
        Ok(Prepared::new(self.clone(), query))
    }

    /// Forgets all plans: for measurements.
    pub fn clear_plan_cache(&self) {
        lock(&self.inner.plans).clear();
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
        GraphSnapshot { version: self.version() }
    }

    /// Reads everything and verifies checksums and invariants.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] naming the file and what is wrong.
    pub fn check(&self) -> Result<()> {
        self.version().store.validate()
    }

    /// What the parts of the database take.
    ///
    /// # Errors
    /// Damaged data.
    pub fn parts(&self) -> Result<Vec<Part>> {
        let version = self.version();
        let name_of = |id| -> Result<String> {
            let mut name = String::new();
            version.store.read_term(id, &mut String::new(), &mut |parts| parts.write_str(&mut name))?;
            Ok(name)
        };
        let parts = version.store.parts()?.into_iter().map(|part| {
            let segment = match part.segment {
                Some((predicate, direction)) => Some((name_of(predicate)?, direction)),
                None => None,
            };
            Ok(Part { segment, name: part.part, size_bytes: part.bytes })
        });
        parts.collect()
    }

    pub(crate) fn version(&self) -> Arc<Version> {
        Arc::clone(&self.inner.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn driver(&self) -> &LocalDriver {
        &self.inner.driver
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.inner.environment
    }
}

/// What the mutexes guard is whole after each change, so a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
