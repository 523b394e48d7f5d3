//! The native part of `vervet.Database`: an open database and its calls.

use crate::call::{Options, answer_object, check_process, counts, terms_of, values_of, values_rows};
use crate::error::raised;
use crate::load::load;
use crate::network::Network;
use crate::result::Rows;
use crate::run::{Running, run, run_once};
use crate::server::{Listening, Server, Serving};
use crate::transaction::Transaction;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;
use vervet::update::UpdateOptions;
use vervet::{DatabaseOptions, Durability, Error, ErrorKind, Id, Isolation, TransactionOptions};
use vervet_model::lock;
use vervet_snapshot::Snapshot;

/// An open database, shared by threads.
#[pyclass(frozen, name = "Database", module = "vervet._vervet")]
#[derive(Debug)]
pub(crate) struct Database {
    /// `None`: closed.
    open: RwLock<Option<vervet::Database>>,
    read_only: bool,
    running: Arc<Running>,
    /// Servers of this database that run.
    servers: Mutex<Vec<Arc<Serving>>>,
    /// The process that opened it. A child of `fork` has none of its threads.
    process: u32,
}

impl Drop for Database {
    fn drop(&mut self) {
        if std::process::id() != self.process {
            // The database belongs to the parent: its files and threads are not to be touched.
            let open = self.open.get_mut();
            std::mem::forget(open.map(Option::take));
            std::mem::forget(std::mem::take(&mut self.servers));
            return;
        }
        // Without waiting for their threads, which would keep the interpreter lock.
        lock(&self.servers).iter().for_each(|server| server.begin_stop());
    }
}

impl Database {
    /// The open database.
    fn open(&self) -> PyResult<vervet::Database> {
        self.found().map_err(|error| raised(&error))
    }

    fn found(&self) -> vervet::Result<vervet::Database> {
        check_process(self.process)?;
        let open = self.open.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        open.clone().ok_or_else(|| {
            Error::new(ErrorKind::Unavailable, "the database is closed")
                .with_hint("open it again with vervet.open")
        })
    }

    /// # Errors
    /// The database was opened to be read only.
    fn check_writable(&self) -> vervet::Result<()> {
        match self.read_only {
            false => Ok(()),
            true => Err(Error::new(ErrorKind::Unavailable, "the database was opened to be read only")
                .with_hint("open it without read_only=True")),
        }
    }
}

#[pymethods]
impl Database {
    /// Opens the database in a directory, or one in memory.
    #[new]
    #[pyo3(signature = (path, create, read_only, durability))]
    fn new(
        py: Python<'_>,
        path: Option<PathBuf>,
        create: bool,
        read_only: bool,
        durability: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let mut options = DatabaseOptions::default();
        if let Some(level) = durability {
            options.durability = durability_of(level)?;
        }
        let open = py.detach(|| match path {
            None => Ok(vervet::Database::in_memory_with(options)),
            Some(path) if create && !read_only => vervet::Database::open_or_create_with(path, options),
            Some(path) => vervet::Database::open_with(path, options),
        });
        let open = open.map_err(|error| raised(&error))?;
        let process = std::process::id();
        let (running, servers) = Default::default();
        Ok(Self { open: RwLock::new(Some(open)), read_only, running, servers, process })
    }

    /// Closes the database and stops its servers. Calls under way and open transactions keep it until they
    /// end.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            check_process(self.process)?;
            for server in std::mem::take(&mut *lock(&self.servers)) {
                server.stop()?;
            }
            let open = self.open.write().unwrap_or_else(std::sync::PoisonError::into_inner).take();
            drop(open);
            Ok(())
        })
        .map_err(|error: Error| raised(&error))
    }

    /// Whether it is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.open.read().unwrap_or_else(std::sync::PoisonError::into_inner).is_none()
    }

    /// Whether it was opened to be read only.
    #[getter]
    fn read_only(&self) -> bool {
        self.read_only
    }

    /// Cancels all calls under way; returns their number.
    fn cancel(&self) -> usize {
        self.running.cancel_all()
    }

    /// Runs a SPARQL query.
    fn query<'py>(
        &self,
        py: Python<'py>,
        text: &str,
        parameters: &Bound<'py, PyDict>,
        options: &Options,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (database, parameters) = (self.open()?, terms_of(parameters)?);
        let answer = run(py, &self.running, options.timeout(), |attempt| {
            let options = options.query(text, attempt, &parameters);
            let prepared = database.prepare_with(text, &options)?;
            if attempt.is_short && prepared.is_heavy(&options)? {
                return Err(Error::new(ErrorKind::Deadline, "a heavy query"));
            }
            prepared.run_with(&options)
        })?;
        answer_object(py, answer)
    }

    /// Runs a Gremlin script.
    fn gremlin(
        &self,
        py: Python<'_>,
        text: &str,
        bindings: &Bound<'_, PyDict>,
        options: &Options,
    ) -> PyResult<Rows> {
        let (database, bindings) = (self.open()?, values_of(bindings)?);
        let results = run(py, &self.running, options.timeout(), |attempt| {
            let options = options.gremlin(attempt, &bindings);
            let script = database.gremlin_script(text, &options)?;
            if script.mutates() {
                self.check_writable()?;
            }
            database.run_gremlin(&script, &options)
        })?;
        Ok(values_rows(results))
    }

    /// Runs a SPARQL update; returns the numbers of inserted and removed statements.
    fn update(
        &self,
        py: Python<'_>,
        text: &str,
        parameters: &Bound<'_, PyDict>,
        options: &Options,
    ) -> PyResult<(u64, u64)> {
        let (database, parameters) = (self.open()?, terms_of(parameters)?);
        let report = run(py, &self.running, options.timeout(), |attempt| {
            self.check_writable()?;
            let query = options.query(text, attempt, &parameters);
            database.update_with(text, &mut UpdateOptions { query, documents: None })
        })?;
        Ok(counts(report))
    }

    /// The plan of a SPARQL query as text; with `profile`, after a run.
    fn explain(
        &self,
        py: Python<'_>,
        text: &str,
        parameters: &Bound<'_, PyDict>,
        options: &Options,
        profile: bool,
    ) -> PyResult<String> {
        let (database, parameters) = (self.open()?, terms_of(parameters)?);
        run(py, &self.running, options.timeout(), |attempt| {
            let options = options.query(text, attempt, &parameters);
            let prepared = database.prepare_with(text, &options)?;
            match profile {
                true => prepared.profile_with(&options),
                false => prepared.explain_with(&options),
            }
        })
    }

    /// Loads files, texts and tables.
    #[pyo3(signature = (sources, how, options, tick))]
    fn load<'py>(
        &self,
        py: Python<'py>,
        sources: Vec<Bound<'py, PyAny>>,
        how: &Bound<'py, PyDict>,
        options: &Options,
        tick: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let database = self.open()?;
        self.check_writable().map_err(|error| raised(&error))?;
        load(py, &database, &self.running, &sources, how, options, tick)
    }

    /// The vertices and edges of a property graph, or of IRIs, for algorithms.
    #[pyo3(signature = (labels, vertices, directed, options))]
    fn network(
        &self,
        py: Python<'_>,
        labels: Vec<String>,
        vertices: Vec<String>,
        directed: bool,
        options: &Options,
    ) -> PyResult<Network> {
        let database = self.open()?;
        run_once(py, &self.running, options.timeout(), |attempt| {
            let snapshot = database.snapshot();
            Network::read(&snapshot, &labels, &vertices, directed, &self.running, attempt, options)
        })
    }

    /// Serves the database over HTTP until the server is stopped or the database is closed.
    #[pyo3(signature = (host, ports, read_only, allow_plain_http, options))]
    fn serve(
        &self,
        py: Python<'_>,
        host: &str,
        ports: Vec<u16>,
        read_only: bool,
        allow_plain_http: bool,
        options: &Options,
    ) -> PyResult<Server> {
        let database = self.open()?;
        let serving = py.detach(|| {
            let read_only = read_only || self.read_only;
            let how = Listening { host, ports: &ports, read_only, allow_plain_http };
            Serving::start(database, &how, options.threads())
        });
        let serving = Arc::new(serving.map_err(|error| raised(&error))?);
        py.detach(|| lock(&self.servers).push(Arc::clone(&serving)));
        Ok(Server::new(serving, self.process))
    }

    /// Begins a transaction.
    fn begin(&self, py: Python<'_>, snapshot_isolation: bool) -> PyResult<Transaction> {
        let database = self.open()?;
        let isolation = if snapshot_isolation { Isolation::Snapshot } else { Isolation::Serializable };
        let begun = py.detach(|| {
            self.check_writable()?;
            database.begin_with(TransactionOptions { isolation })
        });
        let begun = begun.map_err(|error| raised(&error))?;
        Ok(Transaction::new(begun, database, Arc::clone(&self.running), self.process))
    }

    /// Counts, names and sizes.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let database = self.open()?;
        let facts = py.detach(|| Facts::collect(&database)).map_err(|error| raised(&error))?;
        let dict = PyDict::new(py);
        for (name, number) in facts.counts {
            dict.set_item(name, number)?;
        }
        for (name, list) in [("graphs", facts.graphs), ("predicates", facts.predicates)] {
            let numbers = PyDict::new(py);
            for (name, number) in list {
                numbers.set_item(name, number)?;
            }
            dict.set_item(name, numbers)?;
        }
        dict.set_item("constraints", facts.constraints)?;
        dict.set_item("durability", facts.durability)?;
        Ok(dict)
    }

    /// Copies the database into another directory; returns the number of statements.
    fn backup(&self, py: Python<'_>, path: PathBuf) -> PyResult<u64> {
        let database = self.open()?;
        run_once(py, &self.running, None, |attempt| {
            let watch = vervet::Watch::new("backup").cancelled_by(attempt.cancel.as_atomic());
            database.backup_watched(&path, &watch)
        })
    }
}

/// What `info` returns.
struct Facts {
    counts: Vec<(&'static str, u64)>,
    graphs: Vec<(String, u64)>,
    predicates: Vec<(String, u64)>,
    constraints: Vec<String>,
    durability: Option<String>,
}

impl Facts {
    fn collect(database: &vervet::Database) -> vervet::Result<Self> {
        let snapshot = database.snapshot();
        let view = snapshot.as_snapshot();
        let size_bytes = database.component_sizes()?.iter().map(|part| part.size_bytes).sum();
        Ok(Self {
            counts: vec![
                ("statements", view.statement_count()),
                ("vertices", snapshot.vertex_count()?),
                ("edges", view.edge_count()),
                ("literals", view.literal_count()),
                ("size_bytes", size_bytes),
                ("file_bytes", database.file_bytes().all),
            ],
            graphs: named(view, view.graphs())?,
            predicates: named(view, view.predicates())?,
            constraints: database.constraints().iter().map(ToString::to_string).collect(),
            durability: database.durability().map(|level| match level {
                Durability::Interval(time) => format!("interval {}", time.as_secs_f64()),
                Durability::None => "none".to_owned(),
                _ => "sync".to_owned(),
            }),
        })
    }
}

/// The names of ids with their numbers, in descending order.
fn named(view: &dyn Snapshot, list: &[(Id, u64)]) -> vervet::Result<Vec<(String, u64)>> {
    let mut named = Vec::with_capacity(list.len());
    let mut scratch = String::new();
    for &(id, number) in list {
        let mut name = String::new();
        view.read_term(id, &mut scratch, &mut |parts| parts.write_str(&mut name))?;
        named.push((name, number));
    }
    named.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(named)
}

fn durability_of(level: &Bound<'_, PyAny>) -> PyResult<Durability> {
    if let Ok(seconds) = level.extract::<f64>() {
        let time = Duration::try_from_secs_f64(seconds);
        return time
            .map(Durability::Interval)
            .map_err(|error| PyValueError::new_err(format!("durability: {error}")));
    }
    match &*level.extract::<String>()? {
        "sync" => Ok(Durability::Sync),
        "none" => Ok(Durability::None),
        _ => Err(PyValueError::new_err("durability: \"sync\", \"none\", or seconds between two syncs")),
    }
}
