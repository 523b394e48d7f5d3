//! Errors of traversals.

use vervet_model::{Error, ErrorKind};

/// An error of a traversal or of the values that it finds.
pub(crate) fn query_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Query, message)
}
