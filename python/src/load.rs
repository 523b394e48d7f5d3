//! Loads of files, texts and tables, with progress.

use crate::arrow_import::stream;
use crate::call::Options;
use crate::frames;
use crate::run::{Attempt, Running, run_once, run_watched};
use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::RecordBatchStreamReader;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use vervet::{
    Database, Error, ErrorKind, Format, LoadOptions, LoadReport, Mapping, NamedNode, Progress, Source,
};
use vervet_model::lock;

/// The options of a load, from the keywords of `Database.load`.
struct HowTo {
    format: Option<Format>,
    graph: Option<NamedNode>,
    base_iri: Option<String>,
    skip_errors: bool,
    id_column: Option<String>,
    row_ids: bool,
    label: Option<String>,
    mapping: Option<Mapping>,
}

/// Loads files, texts and tables: paths, pairs of a name and bytes or a table. Calls `tick` meanwhile.
///
/// # Errors
/// Those of the load.
pub(crate) fn load<'py>(
    py: Python<'py>,
    database: &Database,
    running: &Running,
    sources: &[Bound<'py, PyAny>],
    how: &Bound<'py, PyDict>,
    options: &Options,
    tick: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let sources = sources.iter().map(source).collect::<PyResult<Vec<_>>>()?;
    let how = HowTo::extracted(how)?;
    let meter = Meter::default();
    let work = |attempt: &Attempt| loaded(database, &sources, &how, options, attempt, &meter);
    let report = match tick {
        None => run_once(py, running, None, work),
        Some(tick) => run_watched(py, running, &|py| meter.shown(py, &tick), work),
    }?;
    let dict = PyDict::new(py);
    for (name, number) in [
        ("statements", report.statements),
        ("added", report.added),
        ("skipped", report.skipped),
        ("bytes", report.bytes),
    ] {
        dict.set_item(name, number)?;
    }
    dict.set_item("remarks", report.remarks(false, |number| number.to_string()))?;
    Ok(dict)
}

fn loaded(
    database: &Database,
    sources: &[SourceOf],
    how: &HowTo,
    options: &Options,
    attempt: &Attempt,
    meter: &Meter,
) -> vervet::Result<LoadReport> {
    let mut load = LoadOptions {
        format: how.format,
        graph: how.graph.clone(),
        base_iri: how.base_iri.clone(),
        skip_errors: how.skip_errors,
        id_column: how.id_column.clone(),
        row_ids: how.row_ids,
        default_label: how.label.clone(),
        mapping: how.mapping.clone(),
        cancelled: Some(attempt.cancel.as_atomic()),
        progress: Some(meter),
        ..LoadOptions::default()
    };
    if let Some(threads) = options.threads() {
        load.threads = threads;
    }
    let check = || match attempt.cancel.is_cancelled() {
        true => Err(Error::new(ErrorKind::Cancelled, "the load was cancelled")),
        false => Ok(()),
    };
    let has_mapping = how.mapping.is_some();
    let sources =
        sources.iter().map(|source| source.open(has_mapping, &check)).collect::<vervet::Result<_>>()?;
    database.load(sources, &load)
}

impl HowTo {
    fn extracted(how: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mut extracted = Self {
            format: None,
            graph: None,
            base_iri: None,
            skip_errors: false,
            id_column: None,
            row_ids: false,
            label: None,
            mapping: None,
        };
        for (name, value) in how.iter().filter(|(_, value)| !value.is_none()) {
            match &*name.extract::<String>()? {
                "format" => {
                    let name: String = value.extract()?;
                    let format = Format::from_name(&name).ok_or_else(|| {
                        PyValueError::new_err(format!("{name:?} is not a format: see docs/loading.md"))
                    })?;
                    extracted.format = Some(format);
                }
                "graph" => {
                    let iri: String = value.extract()?;
                    let graph = NamedNode::new(&iri)
                        .map_err(|error| PyValueError::new_err(format!("{iri:?} is not an IRI: {error}")))?;
                    extracted.graph = Some(graph);
                }
                "base_iri" => extracted.base_iri = value.extract()?,
                "skip_errors" => extracted.skip_errors = value.extract()?,
                "id_column" => extracted.id_column = value.extract()?,
                "row_ids" => extracted.row_ids = value.extract()?,
                "label" => extracted.label = value.extract()?,
                "mapping" => {
                    let mapping = Mapping::parse(&value.extract::<String>()?);
                    extracted.mapping = Some(mapping.map_err(|error| crate::error::raised(&error))?);
                }
                other => return Err(PyTypeError::new_err(format!("there is no option {other}"))),
            }
        }
        Ok(extracted)
    }
}

/// The progress of a load: written by its threads, read by the one that waits.
#[derive(Debug, Default)]
struct Meter {
    bytes: AtomicU64,
    /// 0: not known.
    bytes_total: AtomicU64,
    statements: AtomicU64,
    built: AtomicU64,
    build_total: AtomicU64,
}

impl Meter {
    /// Calls a Python function with the current numbers.
    fn shown(&self, py: Python<'_>, tick: &Py<PyAny>) -> PyResult<()> {
        let [bytes, total, statements, built, build_total] =
            [&self.bytes, &self.bytes_total, &self.statements, &self.built, &self.build_total]
                .map(|number| number.load(Relaxed));
        let total = (total > 0).then_some(total);
        tick.call1(py, (bytes, total, statements, built, build_total)).map(drop)
    }
}

impl Progress for Meter {
    fn advance(&self, bytes_read: u64, bytes_total: Option<u64>, statements: u64) {
        self.bytes.store(bytes_read, Relaxed);
        self.bytes_total.store(bytes_total.unwrap_or(0), Relaxed);
        self.statements.store(statements, Relaxed);
    }

    fn build(&self, done: u64, total: u64) {
        self.build_total.store(total, Relaxed);
        self.built.store(done, Relaxed);
    }
}

/// A source of a load.
enum SourceOf {
    Path(PathBuf),
    Bytes(String, Arc<[u8]>),
    /// A table in Arrow with its name without extension; `None`: read.
    Table(String, Mutex<Option<RecordBatchStreamReader>>),
}

impl SourceOf {
    fn open(&self, has_mapping: bool, check: &dyn Fn() -> vervet::Result<()>) -> vervet::Result<Source> {
        Ok(match self {
            Self::Path(path) => Source::path(path),
            Self::Bytes(name, bytes) => Source::bytes(name, Arc::clone(bytes)),
            Self::Table(name, reader) => {
                let reader = lock(reader).take();
                let mut reader = reader.ok_or_else(|| Error::internal("a table was read twice"))?;
                match !has_mapping && frames::are_statements(&reader.schema()) {
                    true => {
                        let lines = frames::statements(name, &mut reader, check)?;
                        Source::bytes(format!("{name}.nq"), lines.into_bytes())
                    }
                    false => {
                        let file = frames::parquet(name, &mut reader, check)?;
                        Source::bytes(format!("{name}.parquet"), file)
                    }
                }
            }
        })
    }
}

fn source(object: &Bound<'_, PyAny>) -> PyResult<SourceOf> {
    if let Ok((name, content)) = object.extract::<(String, Bound<'_, PyAny>)>() {
        if content.hasattr("__arrow_c_stream__")? {
            return Ok(SourceOf::Table(name, Mutex::new(Some(stream(&content)?))));
        }
        return Ok(SourceOf::Bytes(name, content.extract::<Vec<u8>>()?.into()));
    }
    object.extract().map(SourceOf::Path)
}
