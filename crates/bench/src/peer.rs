//! Oxigraph in memory, as the peer.
//!
//! It is used in its best configuration: its bulk loader on the whole file in memory, its own optimizer, its
//! own TSV writer directly into the sink.

use crate::engine::{Engine, ForConstants, Prepared, Sink};
use crate::measure::{available_bytes, resident_bytes};
use oxigraph::io::{RdfFormat, RdfParser, RdfSerializer};
use oxigraph::model::{NamedNode, Variable};
use oxigraph::sparql::results::{QueryResultsFormat, QueryResultsSerializer};
use oxigraph::sparql::{
    CancellationToken, PreparedSparqlQuery, QueryEvaluationError, QueryResults, SparqlEvaluator,
};
use oxigraph::store::Store;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use vervet_model::{Error, ErrorKind, Result};

/// The polling interval of a query's time limit.
const WATCH_EVERY: Duration = Duration::from_millis(50);

/// An Oxigraph store in memory.
pub struct Oxigraph {
    store: Store,
    threads: Option<usize>,
    limit: Option<Duration>,
}

impl Oxigraph {
    /// An empty store; `threads` for its loader, `None` for its default.
    ///
    /// # Errors
    /// The store could not be created.
    pub fn new(threads: Option<usize>) -> Result<Self> {
        let store = Store::new().map_err(|error| foreign("make a store", &error))?;
        Ok(Self { store, threads, limit: None })
    }

    /// Cancels a query when the time limit has passed or it has used half of the memory that was free: a
    /// comparison must not take the machine down.
    fn watch(limit: Duration, token: &CancellationToken, done: &mpsc::Receiver<()>) {
        let begin = Instant::now();
        let memory_max = resident_bytes().unwrap_or_default() + available_bytes() / 2;
        while let Some(left) = limit.checked_sub(begin.elapsed()).filter(|left| !left.is_zero()) {
            if done.recv_timeout(left.min(WATCH_EVERY)) != Err(mpsc::RecvTimeoutError::Timeout) {
                return;
            }
            if resident_bytes().is_ok_and(|resident| resident > memory_max) {
                break;
            }
        }
        token.cancel();
    }

    /// Runs `text` and passes the results to `read`, under the time limit.
    fn run<T>(&self, text: &str, read: impl FnOnce(QueryResults<'_>) -> Result<T>) -> Result<T> {
        let token = CancellationToken::new();
        let mut evaluator = SparqlEvaluator::new();
        if self.limit.is_some() {
            evaluator = evaluator.with_cancellation_token(token.clone());
        }
        let query = evaluator
            .parse_query(text)
            .map_err(|error| Error::new(ErrorKind::Query, format!("Oxigraph: {error}")))?;
        let run = || {
            let results = query.on_store(&self.store).execute().map_err(|error| evaluation(&error))?;
            read(results)
        };
        let Some(limit) = self.limit else { return run() };
        std::thread::scope(|scope| {
            let (done, wait) = mpsc::channel::<()>();
            scope.spawn(move || Self::watch(limit, &token, &wait));
            let result = run();
            drop(done);
            result
        })
    }
}

impl Engine for Oxigraph {
    fn name(&self) -> &'static str {
        "Oxigraph 0.5.13"
    }

    fn load(&mut self, file: &Path) -> Result<u64> {
        let text = std::fs::read(file)
            .map_err(|error| Error::io(format_args!("read {}", file.display()), &error))?;
        let mut loader = self.store.bulk_loader();
        if let Some(threads) = self.threads {
            loader = loader.with_num_threads(threads);
        }
        let parser = RdfParser::from_format(RdfFormat::NTriples);
        loader
            .parallel_load_from_slice(parser, &text)
            .map_err(|error| foreign(format_args!("load {}", file.display()), &error))?;
        loader.commit().map_err(|error| foreign("commit a load", &error))?;
        let count = self.store.len().map_err(|error| foreign("count statements", &error))?;
        Ok(count as u64)
    }

    fn query_tsv(&self, text: &str, sink: &mut Sink) -> Result<u64> {
        self.run(text, |results| write_tsv(results, sink))
    }

    fn query_rows(&self, text: &str) -> Result<u64> {
        self.run(text, count_rows)
    }

    fn prepare(&self, text: &str) -> Result<Option<Box<dyn Prepared + '_>>> {
        let query = SparqlEvaluator::new()
            .parse_query(text)
            .map_err(|error| Error::new(ErrorKind::Query, format!("Oxigraph: {error}")))?;
        Ok(Some(Box::new(Parsed { query, store: &self.store })))
    }

    fn prepare_for_constants(&self, text: &str) -> Result<Option<Box<dyn ForConstants + '_>>> {
        // It only substitutes constants for variables that are selected.
        let text = text.replacen("SELECT ", "SELECT ?constant ", 1);
        let query = SparqlEvaluator::new()
            .parse_query(&text)
            .map_err(|error| Error::new(ErrorKind::Query, format!("Oxigraph: {error}")))?;
        Ok(Some(Box::new(Parsed { query, store: &self.store })))
    }

    fn set_time_limit(&mut self, limit: Option<Duration>) {
        self.limit = limit;
    }
}

/// A parsed query; Oxigraph plans it anew for every run.
struct Parsed<'a> {
    query: PreparedSparqlQuery,
    store: &'a Store,
}

impl Prepared for Parsed<'_> {
    fn rows(&mut self) -> Result<u64> {
        let query = self.query.clone().on_store(self.store);
        count_rows(query.execute().map_err(|error| evaluation(&error))?)
    }
}

impl ForConstants for Parsed<'_> {
    fn query_tsv(&mut self, iri: &str, sink: &mut Sink) -> Result<u64> {
        let query = self
            .query
            .clone()
            .substitute_variable(Variable::new_unchecked("constant"), NamedNode::new_unchecked(iri))
            .on_store(self.store);
        write_tsv(query.execute().map_err(|error| evaluation(&error))?, sink)
    }
}

fn write_tsv(results: QueryResults<'_>, sink: &mut Sink) -> Result<u64> {
    let serializer = QueryResultsSerializer::from_format(QueryResultsFormat::Tsv);
    let write = |error| Error::io("write a result", &error);
    let solutions = match results {
        QueryResults::Solutions(solutions) => solutions,
        QueryResults::Boolean(value) => {
            serializer.serialize_boolean_to_writer(sink, value).map_err(write)?;
            return Ok(1);
        }
        QueryResults::Graph(triples) => {
            let mut writer = RdfSerializer::from_format(RdfFormat::NTriples).for_writer(sink);
            let mut rows = 0;
            for triple in triples {
                writer.serialize_triple(&triple.map_err(|error| evaluation(&error))?).map_err(write)?;
                rows += 1;
            }
            writer.finish().map_err(write)?;
            return Ok(rows);
        }
    };
    let mut writer =
        serializer.serialize_solutions_to_writer(sink, solutions.variables().to_vec()).map_err(write)?;
    let mut rows = 0;
    for solution in solutions {
        writer.serialize(&solution.map_err(|error| evaluation(&error))?).map_err(write)?;
        rows += 1;
    }
    writer.finish().map_err(write)?;
    Ok(rows)
}

fn count_rows(results: QueryResults<'_>) -> Result<u64> {
    match results {
        QueryResults::Solutions(solutions) => {
            let mut rows = 0;
            for solution in solutions {
                solution.map_err(|error| evaluation(&error))?;
                rows += 1;
            }
            Ok(rows)
        }
        QueryResults::Boolean(_) => Ok(1),
        QueryResults::Graph(triples) => {
            let mut rows = 0;
            for triple in triples {
                triple.map_err(|error| evaluation(&error))?;
                rows += 1;
            }
            Ok(rows)
        }
    }
}

fn evaluation(error: &QueryEvaluationError) -> Error {
    match error {
        QueryEvaluationError::Cancelled => Error::new(ErrorKind::Deadline, "the time limit has passed"),
        error => foreign("run a query", error),
    }
}

fn foreign(what: impl std::fmt::Display, error: &dyn std::error::Error) -> Error {
    Error::new(ErrorKind::Input, format!("Oxigraph could not {what}: {error}"))
}
