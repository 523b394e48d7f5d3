//! The native part of `vervet.Result`.

use crate::arrow::TableReader;
use crate::cells::Table;
use crate::error::raised;
use crate::gremlin_values;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyTuple};
use std::sync::{Arc, OnceLock};

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
