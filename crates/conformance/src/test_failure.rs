//! Failures of the W3C's tests.

use crate::manifest::{File, Test};
use vervet::{Error, ErrorKind};

/// Why a test did not pass.
pub(crate) enum TestFailure {
    NotRun,
    Unsupported(String),
    Failed(String),
}

impl From<String> for TestFailure {
    fn from(reason: String) -> Self {
        Self::Failed(reason)
    }
}

impl From<Error> for TestFailure {
    fn from(error: Error) -> Self {
        if error.kind() == ErrorKind::Unsupported {
            // The message begins or ends with a position in this file, and may contain an IRI of it.
            let reason = error.message().rsplit(": ").next().unwrap_or_default();
            let reason = reason.lines().next().unwrap_or_default();
            let reason = reason.split(" (line ").next().and_then(|reason| reason.split(" <").next());
            return Self::Unsupported(reason.unwrap_or_default().to_owned());
        }
        Self::Failed(error.to_string())
    }
}

/// The file of the query or update, and its text.
pub(crate) fn action(test: &Test) -> Result<(&File, String), TestFailure> {
    let file = test.action.as_ref().ok_or_else(|| "the test has no query".to_owned())?;
    Ok((file, file.read_text()?))
}
