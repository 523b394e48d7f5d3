//! Vervet behind the engine interface.
//!
//! Every run of a text is planned anew, so that no figure depends on the plan cache; prepared queries show
//! what it would save.

use crate::engine::{Engine, ForConstants, Prepared, Sink};
use std::path::Path;
use std::time::Duration;
use vervet::{Answer, Database, Direction, LoadOptions, NamedNode, OutputFormat, QueryOptions, Source, Term};
use vervet_model::{Error, Result};

/// Vervet, in memory or in a directory.
#[derive(Debug)]
pub struct Vervet {
    database: Database,
    threads: usize,
    options: QueryOptions,
}

impl Vervet {
    /// An empty database that loads with this number of threads.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        Self::on(Database::in_memory(), threads)
    }

    /// A database that loads with this number of threads; its queries run on one thread, like those of the
    /// peers.
    #[must_use]
    pub fn on(database: Database, threads: usize) -> Self {
        Self { database, threads, options: QueryOptions::default().with_threads(1) }
    }

    /// Sets the number of threads of each query.
    #[must_use]
    pub fn with_query_threads(mut self, threads: usize) -> Self {
        self.options.threads = Some(threads);
        self
    }

    /// The database.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.database
    }
}

impl Engine for Vervet {
    fn name(&self) -> &str {
        concat!("vervet ", env!("CARGO_PKG_VERSION"))
    }

    fn load(&mut self, file: &Path) -> Result<u64> {
        let options = LoadOptions { threads: self.threads, ..LoadOptions::default() };
        self.database.load(vec![Source::path(file)], &options)?;
        Ok(self.database.snapshot().statement_count())
    }

    fn query_tsv(&self, text: &str, sink: &mut Sink) -> Result<u64> {
        self.database.clear_plan_cache();
        Ok(self.database.write(text, &self.options, OutputFormat::Tsv, sink)?.rows)
    }

    fn query_rows(&self, text: &str) -> Result<u64> {
        self.database.clear_plan_cache();
        Ok(rows(&self.database.query_with(text, &self.options)?))
    }

    fn prepare(&self, text: &str) -> Result<Option<Box<dyn Prepared + '_>>> {
        let prepared = self.database.prepare(text)?;
        Ok(Some(Box::new(Ready { prepared, options: &self.options })))
    }

    fn query_rows_cached(&self, text: &str) -> Option<Result<u64>> {
        Some(self.database.query_with(text, &self.options).map(|answer| rows(&answer)))
    }

    fn query_tsv_cached(&self, text: &str, sink: &mut Sink) -> Option<Result<u64>> {
        let written = self.database.write(text, &self.options, OutputFormat::Tsv, sink);
        Some(written.map(|written| written.rows))
    }

    fn prepare_for_constants(&self, text: &str) -> Result<Option<Box<dyn ForConstants + '_>>> {
        let nothing = NamedNode::new_unchecked("urn:nothing");
        let options = self.options.clone().with_parameter("constant", nothing);
        let prepared = self.database.prepare_with(text, &options)?;
        Ok(Some(Box::new(ReadyForConstants { prepared, options })))
    }

    fn reach(&self, start: &str, predicate: &str) -> Option<Result<u64>> {
        let snapshot = self.database.snapshot();
        let graph = snapshot.graph();
        let reached = graph.vertex(start).and_then(|vertex| match vertex {
            Some(vertex) => Ok(graph.reach(vertex, predicate, Direction::Out)?.len() as u64),
            None => Ok(0),
        });
        Some(reached)
    }

    fn explain(&self, text: &str) -> Option<String> {
        self.database.explain(text, &self.options).ok()
    }

    fn set_time_limit(&mut self, limit: Option<Duration>) {
        self.options.timeout = limit;
    }
}

struct Ready<'a> {
    prepared: vervet::Prepared,
    options: &'a QueryOptions,
}

impl Prepared for Ready<'_> {
    fn rows(&mut self) -> Result<u64> {
        Ok(rows(&self.prepared.run_with(self.options)?))
    }
}

struct ReadyForConstants {
    prepared: vervet::Prepared,
    /// With one parameter, the constant.
    options: QueryOptions,
}

impl ForConstants for ReadyForConstants {
    fn query_tsv(&mut self, iri: &str, sink: &mut Sink) -> Result<u64> {
        let constant = NamedNode::new(iri).map_err(|error| Error::internal(format!("{iri}: {error}")))?;
        for (_, value) in &mut self.options.parameters {
            *value = Term::from(constant.clone());
        }
        Ok(self.prepared.write_with(&self.options, OutputFormat::Tsv, sink)?.rows)
    }
}

fn rows(answer: &Answer) -> u64 {
    match answer {
        Answer::Solutions(solutions) => solutions.len() as u64,
        Answer::Boolean(_) => 1,
        Answer::Graph(triples) => triples.len() as u64,
    }
}
