//! Errors of the engine as Python exceptions: one class of `vervet.errors` for each kind.

use pyo3::prelude::*;
use pyo3::types::PyModule;
use vervet::{Error, ErrorKind};

/// The exception of an error.
pub(crate) fn raised(error: &Error) -> PyErr {
    Python::attach(|py| exception(py, error).unwrap_or_else(|problem| problem))
}

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let class = PyModule::import(py, "vervet.errors")?.getattr(class_name(error.kind()))?;
    let position = error.position();
    let (line, column) = (position.map(|at| at.line), position.and_then(|at| at.column));
    Ok(PyErr::from_value(class.call1((error.message(), error.hint(), line, column))?))
}

fn class_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Query => "QueryError",
        ErrorKind::Input => "InputError",
        ErrorKind::Corrupt => "CorruptError",
        ErrorKind::Io => "IoError",
        ErrorKind::Cancelled => "CancelledError",
        ErrorKind::Deadline => "DeadlineError",
        ErrorKind::MemoryLimit => "MemoryLimitError",
        ErrorKind::Unsupported => "UnsupportedError",
        ErrorKind::Conflict => "ConflictError",
        ErrorKind::Constraint => "ConstraintError",
        ErrorKind::Unavailable => "UnavailableError",
        // `ErrorKind` may have further kinds in the future.
        _ => "InternalError",
    }
}
