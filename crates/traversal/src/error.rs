//! Errors of traversals.

use vervet_model::{Error, ErrorKind};

/// A query error with TinkerPop's message.
pub(crate) fn illegal(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Query, message)
}
