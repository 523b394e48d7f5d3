//! Failures of a scenario.

use vervet::{Error, ErrorKind};

/// Why a scenario did not pass.
#[derive(Debug)]
pub(super) enum ScenarioFailure {
    /// The engine reports the feature as unsupported.
    Unsupported(String),
    /// It does not apply to this configuration.
    LeftOut(String),
    /// Any other failure.
    Wrong(String),
}

impl From<String> for ScenarioFailure {
    fn from(reason: String) -> Self {
        Self::Wrong(reason)
    }
}

/// An error where none was expected.
impl From<Error> for ScenarioFailure {
    fn from(error: Error) -> Self {
        let message = error.message().to_owned();
        if error.kind() == ErrorKind::Unsupported || message.contains("is not supported") {
            Self::Unsupported(message)
        } else {
            Self::Wrong(format!("error: {message}"))
        }
    }
}
