//! Vervet behind the interface of a comparison.
//!
//! A plan is made anew for every run of a text, so that no figure rests on the plan cache; prepared
//! queries say what it would save.

use crate::engine::{Engine, Prepared, Sink};
use std::path::Path;
use std::time::Duration;
use vervet::{Answer, Database, LoadOptions, OutputFormat, QueryOptions, Source};
use vervet_model::Result;

/// Vervet in memory.
#[derive(Debug)]
pub struct Vervet {
    database: Database,
    threads: usize,
    options: QueryOptions,
}

impl Vervet {
    /// An empty one that loads with so many threads.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        Self { database: Database::in_memory(), threads, options: QueryOptions::default() }
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

fn rows(answer: &Answer) -> u64 {
    match answer {
        Answer::Solutions(solutions) => solutions.len() as u64,
        Answer::Boolean(_) => 1,
        Answer::Graph(triples) => triples.len() as u64,
    }
}
