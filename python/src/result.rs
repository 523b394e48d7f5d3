//! The native part of `vervet.Result`.

use crate::arrow::TableReader;
use crate::cells::Table;
use crate::error::raised;
use crate::gremlin_values;
use crate::run::{Running, run_once};
use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyTuple};
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use vervet::{Error, ErrorKind};

/// The rows of a query or a traversal. Holds the snapshot that was read.
#[pyclass(frozen, name = "Rows", module = "vervet._vervet")]
#[derive(Debug)]
pub(crate) struct Rows {
    table: Arc<Table>,
    columns: OnceLock<Vec<String>>,
}

impl Rows {
    pub(crate) fn new(table: Table) -> Self {
        Self { table: Arc::new(table), columns: OnceLock::new() }
    }
}

#[pymethods]
impl Rows {
    /// The names of the columns.
    #[getter]
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let columns = py.detach(|| self.columns.get_or_init(|| self.table.columns()));
        PyTuple::new(py, columns)
    }

    /// The number of rows.
    #[getter]
    fn count(&self) -> u64 {
        self.table.len()
    }

    /// Whether they are the triples of a graph.
    #[getter]
    fn is_graph(&self) -> bool {
        matches!(*self.table, Table::Graph(_))
    }

    fn __len__(&self) -> PyResult<usize> {
        isize::try_from(self.table.len()).map(isize::cast_unsigned).map_err(|_| {
            PyOverflowError::new_err("there are more results than len() can return; see `count`")
        })
    }

    /// `count` rows from `start` on, as tuples.
    #[pyo3(signature = (start, count, terms=false))]
    fn rows<'py>(
        &self,
        py: Python<'py>,
        start: usize,
        count: usize,
        terms: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.table.rows(py, start..start.saturating_add(count), terms)?)
    }

    /// `count` results of a traversal from `start` on; rows for a query.
    fn values<'py>(&self, py: Python<'py>, start: usize, count: usize) -> PyResult<Bound<'py, PyList>> {
        let Table::Values(values) = &*self.table else { return self.rows(py, start, count, false) };
        let length = usize::try_from(self.table.len()).unwrap_or(usize::MAX);
        let end = start.saturating_add(count).min(length);
        let objects = (start.min(end)..end).map(|row| gremlin_values::object(py, values.at(row)));
        PyList::new(py, objects.collect::<PyResult<Vec<_>>>()?)
    }

    /// The results of a traversal, each with its number of consecutive occurrences.
    fn counted<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let Table::Values(values) = &*self.table else { return Ok(PyList::empty(py)) };
        let pairs = values.results.counted().iter().map(|(value, count)| {
            PyTuple::new(py, [gremlin_values::object(py, value)?, count.into_pyobject(py)?.into_any()])
        });
        PyList::new(py, pairs.collect::<PyResult<Vec<_>>>()?)
    }

    /// Writes the rows into a Parquet file; returns their number.
    fn write_parquet(&self, py: Python<'_>, path: PathBuf) -> PyResult<u64> {
        let table = &self.table;
        run_once(py, &Running::default(), None, |attempt| {
            let failed = |error: &dyn std::fmt::Display| {
                Error::new(ErrorKind::Io, format!("could not write {}: {error}", path.display()))
            };
            let reader = TableReader::new(Arc::clone(table))?;
            let properties = WriterProperties::builder()
                .set_compression(Compression::ZSTD(ZstdLevel::default()))
                .set_created_by("vervet".to_owned())
                .build();
            // Beside the file, so that one that is read has all rows.
            let mut beside = path.clone().into_os_string();
            beside.push(".incomplete");
            let file = File::create(&beside).map_err(|error| failed(&error))?;
            let write = || {
                let writer = ArrowWriter::try_new(file, reader.schema(), Some(properties));
                let mut writer = writer.map_err(|error| failed(&error))?;
                for batch in reader {
                    if attempt.cancel.is_cancelled() {
                        return Err(Error::new(ErrorKind::Cancelled, "the export was cancelled"));
                    }
                    writer.write(&batch.map_err(|error| failed(&error))?).map_err(|error| failed(&error))?;
                }
                writer.close().map_err(|error| failed(&error))?;
                std::fs::rename(&beside, &path).map_err(|error| failed(&error))
            };
            let written = write();
            if written.is_err() {
                // The error of the export matters more.
                let _ = std::fs::remove_file(&beside);
            }
            written
        })?;
        Ok(self.table.len())
    }

    /// The rows as a capsule of the Arrow C stream interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol permits a producer to ignore the request.
        let _ = requested_schema;
        let table = Arc::clone(&self.table);
        let reader = py.detach(|| TableReader::new(table)).map_err(|error| raised(&error))?;
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        // The stream releases itself when the capsule is dropped, unless a consumer has moved it out.
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
