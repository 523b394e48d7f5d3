//! Tables of other libraries, through the Arrow C stream interface (PyCapsule).
#![expect(unsafe_code, reason = "a capsule has the address of a C structure")]

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// The stream of an object with `__arrow_c_stream__`.
///
/// # Errors
/// `TypeError`: there is no such method, or it returns something else. Exceptions of that method.
pub(crate) fn stream(object: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let capsule = capsule
        .cast::<PyCapsule>()
        .map_err(|_| PyTypeError::new_err("__arrow_c_stream__ does not return a capsule"))?;
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: the interface requires that a capsule of this name, which `pointer_checked` has compared, holds
    // a valid stream, and that its consumer moves it out (a stream that was moved has no `release`). The
    // capsule lives until the end of this function. tests/test_frames.py runs it with pyarrow, pandas and
    // polars.
    let moved = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr().cast()) };
    RecordBatchStreamReader::try_new(moved)
        .map_err(|error| PyValueError::new_err(format!("the Arrow stream cannot be read: {error}")))
}
