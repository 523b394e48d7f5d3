//! The native part of `vervet.Transaction`.

use crate::call::{Options, answer_object, check_process, counts, terms_of, values_of, values_rows};
use crate::error::raised;
use crate::result::Rows;
use crate::run::{Running, run};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Arc, Mutex};
use vervet::update::UpdateOptions;
use vervet::{Error, ErrorKind, Result};
use vervet_model::lock;

/// A transaction. Threads that share it take turns.
#[pyclass(frozen, name = "Transaction", module = "vervet._vervet")]
#[derive(Debug)]
pub(crate) struct Transaction {
    /// `None`: it has ended.
    open: Mutex<Option<vervet::Transaction>>,
    database: vervet::Database,
    running: Arc<Running>,
    process: u32,
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if std::process::id() != self.process {
            // As for the database: a copy in a forked process is not to roll back, or to close files.
            std::mem::forget(self.open.get_mut().map(Option::take));
            std::mem::forget(self.database.clone());
        }
    }
}

impl Transaction {
    pub(crate) fn new(
        open: vervet::Transaction,
        database: vervet::Database,
        running: Arc<Running>,
        process: u32,
    ) -> Self {
        Self { open: Mutex::new(Some(open)), database, running, process }
    }

    /// Calls `work` with the open transaction.
    fn with<T>(&self, work: impl FnOnce(&mut vervet::Transaction) -> Result<T>) -> Result<T> {
        check_process(self.process)?;
        match &mut *lock(&self.open) {
            Some(open) => work(open),
            None => Err(ended()),
        }
    }

    fn take(&self) -> Result<vervet::Transaction> {
        check_process(self.process)?;
        lock(&self.open).take().ok_or_else(ended)
    }
}

fn ended() -> Error {
    Error::new(ErrorKind::Input, "the transaction has ended")
        .with_hint("begin another with Database.transaction")
}

#[pymethods]
impl Transaction {
    /// Runs a SPARQL query on what the transaction sees.
    fn query<'py>(
        &self,
        py: Python<'py>,
        text: &str,
        parameters: &Bound<'py, PyDict>,
        options: &Options,
    ) -> PyResult<Bound<'py, PyAny>> {
        let parameters = terms_of(parameters)?;
        let answer = run(py, &self.running, options.timeout(), |attempt| {
            self.with(|open| open.query_with(text, &options.query(text, attempt, &parameters)))
        })?;
        answer_object(py, answer)
    }

    /// Runs a Gremlin script on what the transaction sees.
    fn gremlin(
        &self,
        py: Python<'_>,
        text: &str,
        bindings: &Bound<'_, PyDict>,
        options: &Options,
    ) -> PyResult<Rows> {
        let bindings = values_of(bindings)?;
        let results = run(py, &self.running, options.timeout(), |attempt| {
            self.with(|open| open.gremlin_with(text, &options.gremlin(attempt, &bindings)))
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
        let parameters = terms_of(parameters)?;
        let report = run(py, &self.running, options.timeout(), |attempt| {
            let query = options.query(text, attempt, &parameters);
            self.with(|open| open.update_with(text, &mut UpdateOptions { query, documents: None }))
        })?;
        Ok(counts(report))
    }

    /// Makes the changes visible and durable.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.take()?.commit().map(drop)).map_err(|error| raised(&error))
    }

    /// Discards the changes.
    fn roll_back(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            self.take()?.roll_back();
            Ok(())
        })
        .map_err(|error: Error| raised(&error))
    }

    /// Whether it has neither been committed nor rolled back.
    #[getter]
    fn is_open(&self, py: Python<'_>) -> bool {
        py.detach(|| lock(&self.open).is_some())
    }
}
