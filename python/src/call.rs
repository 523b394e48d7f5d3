//! Arguments and answers of the calls of a database or a transaction: limits, parameters, bindings, rows.

use crate::cells::{Table, Values};
use crate::result::Rows;
use crate::run::Attempt;
use crate::{gremlin_values, terms};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use std::time::Duration;
use vervet::gremlin::Value;
use vervet::update::UpdateReport;
use vervet::{
    Answer, Dataset, Error, ErrorKind, GremlinOptions, GremlinResults, NamedNode, QueryOptions, Term,
};
use vervet_sparql::well_known_prefixes;

/// Limits of calls.
#[pyclass(frozen, name = "Options", module = "vervet._vervet")]
#[derive(Clone, Debug)]
pub(crate) struct Options {
    timeout: Option<Duration>,
    memory_limit_bytes: Option<u64>,
    threads: Option<usize>,
    text: TextOptions,
}

/// What a query or an update takes from its caller rather than from its text.
#[derive(Clone, Debug, Default)]
struct TextOptions {
    /// The graphs whose merge is the default graph; `None`: that of the database.
    default_graphs: Option<Vec<NamedNode>>,
    /// Prefixes that the text need not declare, beside the well-known ones.
    prefixes: Vec<(String, String)>,
    base_iri: Option<String>,
}

#[pymethods]
impl Options {
    #[new]
    fn new(timeout: Option<f64>, memory_limit_bytes: Option<u64>, threads: Option<usize>) -> PyResult<Self> {
        let timeout = timeout.map(Duration::try_from_secs_f64).transpose();
        let timeout = timeout.map_err(|error| PyValueError::new_err(format!("timeout: {error}")))?;
        if threads == Some(0) {
            return Err(PyValueError::new_err("threads: at least 1"));
        }
        Ok(Self { timeout, memory_limit_bytes, threads, text: TextOptions::default() })
    }

    /// The same limits, with the context of a query: the graphs whose merge is its default graph, prefixes
    /// and a base.
    #[pyo3(signature = (default_graphs, prefixes, base_iri))]
    fn with_context(
        &self,
        default_graphs: Option<Vec<String>>,
        prefixes: Vec<(String, String)>,
        base_iri: Option<String>,
    ) -> PyResult<Self> {
        let node = |iri: String| {
            NamedNode::new(&iri)
                .map_err(|error| PyValueError::new_err(format!("{iri:?} is not an IRI: {error}")))
        };
        let graphs = default_graphs.map(|graphs| graphs.into_iter().map(node).collect::<PyResult<_>>());
        let text = TextOptions { default_graphs: graphs.transpose()?, prefixes, base_iri };
        Ok(Self { text, ..self.clone() })
    }
}

impl Options {
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    pub(crate) fn threads(&self) -> Option<usize> {
        self.threads
    }

    pub(crate) fn memory_limit_bytes(&self) -> Option<u64> {
        self.memory_limit_bytes
    }

    pub(crate) fn query(&self, text: &str, attempt: &Attempt, parameters: &[(String, Term)]) -> QueryOptions {
        QueryOptions {
            timeout: attempt.timeout,
            started: Some(attempt.started),
            memory_limit_bytes: self.memory_limit_bytes,
            cancel: Some(attempt.cancel.clone()),
            parameters: parameters.to_vec(),
            prefixes: self.used_prefixes(text),
            base_iri: self.text.base_iri.clone(),
            dataset: self
                .text
                .default_graphs
                .as_ref()
                .map(|graphs| Dataset { default: Some(graphs.clone()), named: None }),
            threads: self.threads,
            ..QueryOptions::default()
        }
    }

    /// The prefixes that a text may use without declaring them: those of its context, and the well-known ones
    /// as on the command line. None if it seems to use none: only then its plan is kept for the next run.
    fn used_prefixes(&self, text: &str) -> Vec<(String, String)> {
        let lower = text.to_ascii_lowercase();
        let uses = |prefix: &str| {
            let name = format!("{prefix}:");
            text.contains(&name) && !lower.contains(&format!("prefix {}", name.to_ascii_lowercase()))
        };
        let own = self.text.prefixes.iter().filter(|(prefix, _)| uses(prefix)).cloned();
        let known = well_known_prefixes().iter().filter(|(prefix, _)| uses(prefix));
        let known = known.filter(|(prefix, _)| self.text.prefixes.iter().all(|(own, _)| own != prefix));
        own.chain(known.map(|&(prefix, iri)| (prefix.to_owned(), iri.to_owned()))).collect()
    }

    pub(crate) fn gremlin(&self, attempt: &Attempt, bindings: &[(String, Value)]) -> GremlinOptions {
        GremlinOptions {
            timeout: attempt.timeout.map(|timeout| timeout.saturating_sub(attempt.started.elapsed())),
            memory_limit_bytes: self.memory_limit_bytes,
            cancel: Some(attempt.cancel.clone()),
            bindings: bindings.iter().cloned().collect(),
            threads: self.threads,
            refuse_heavy: attempt.is_short,
            ..GremlinOptions::default()
        }
    }
}

/// # Errors
/// This process is a fork of the one that opened the database.
pub(crate) fn check_process(process: u32) -> vervet::Result<()> {
    if std::process::id() == process {
        return Ok(());
    }
    let message = "the database was opened by the process that this one was forked from";
    Err(Error::new(ErrorKind::Unavailable, message)
        .with_hint("open it in the new process, or start processes with multiprocessing's \"spawn\""))
}

/// The parameters of a query.
pub(crate) fn terms_of(parameters: &Bound<'_, PyDict>) -> PyResult<Vec<(String, Term)>> {
    let pair = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name: String = name.extract()?;
        match terms::term(&value) {
            Ok(term) => Ok((name, term)),
            Err(error) if error.is_instance_of::<PyTypeError>(value.py()) => {
                Err(PyTypeError::new_err(format!("parameter {name}: {}", error.value(value.py()))))
            }
            Err(error) => Err(error),
        }
    };
    parameters.iter().map(pair).collect()
}

/// The bindings of a script.
pub(crate) fn values_of(bindings: &Bound<'_, PyDict>) -> PyResult<Vec<(String, Value)>> {
    bindings.iter().map(|(name, value)| Ok((name.extract()?, gremlin_values::value(&value)?))).collect()
}

/// The rows, or the truth value, of an answer.
pub(crate) fn answer_object(py: Python<'_>, answer: Answer) -> PyResult<Bound<'_, PyAny>> {
    let table = match answer {
        Answer::Boolean(truth) => return Ok(PyBool::new(py, truth).to_owned().into_any()),
        Answer::Solutions(solutions) => Table::Solutions(solutions),
        Answer::Graph(triples) => Table::Graph(triples),
    };
    Ok(Bound::new(py, Rows::new(table))?.into_any())
}

pub(crate) fn values_rows(results: GremlinResults) -> Rows {
    Rows::new(Table::Values(Values::new(results)))
}

pub(crate) fn counts(report: UpdateReport) -> (u64, u64) {
    (report.inserted, report.removed)
}
