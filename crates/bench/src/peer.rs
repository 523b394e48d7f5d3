//! Oxigraph in memory, as the peer.
//!
//! It gets what it is best at: its bulk loader on the whole file in memory, its own optimizer, its own TSV
//! writer straight into the sink.

use crate::engine::{Engine, Prepared, Sink};
use oxigraph::io::{RdfFormat, RdfParser};
use oxigraph::sparql::results::{QueryResultsFormat, QueryResultsSerializer};
use oxigraph::sparql::{
    CancellationToken, PreparedSparqlQuery, QueryEvaluationError, QueryResults, SparqlEvaluator,
};
use oxigraph::store::Store;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;
use vervet_model::{Error, ErrorKind, Result};

/// An Oxigraph store in memory.
pub struct Oxigraph {
    store: Store,
    threads: Option<usize>,
    limit: Option<Duration>,
}

impl Oxigraph {
    /// An empty store; `threads` for its loader, `None` for as many as it takes by default.
    ///
    /// # Errors
    /// The store could not be made.
    pub fn new(threads: Option<usize>) -> Result<Self> {
        let store = Store::new().map_err(|error| foreign("make a store", &error))?;
        Ok(Self { store, threads, limit: None })
    }

    /// Runs `text` and hands the results to `read`, under the time limit.
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
            scope.spawn(move || {
                if wait.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
                    token.cancel();
                }
            });
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
        self.run(text, |results| {
            let serializer = QueryResultsSerializer::from_format(QueryResultsFormat::Tsv);
            let write = |error| Error::io("write a result", &error);
            let QueryResults::Solutions(solutions) = results else {
                return Err(Error::new(ErrorKind::Unsupported, "only SELECT queries are measured"));
            };
            let mut writer = serializer
                .serialize_solutions_to_writer(sink, solutions.variables().to_vec())
                .map_err(write)?;
            let mut rows = 0;
            for solution in solutions {
                writer.serialize(&solution.map_err(|error| evaluation(&error))?).map_err(write)?;
                rows += 1;
            }
            writer.finish().map_err(write)?;
            Ok(rows)
        })
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
