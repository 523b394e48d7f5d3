//! Answers of the engines, and the limits of compared answers.

use std::time::Duration;

/// Cases with more results are not compared.
pub(super) const RESULTS_MAX: usize = 20_000;
/// Slower cases are not compared.
pub(super) const TIMEOUT: Duration = Duration::from_secs(4);

/// The answer of an engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    Results(Vec<String>),
    Refused(String),
    TooLong,
}

impl Answer {
    pub(super) fn agrees(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Results(ours), Self::Results(theirs)) => ours == theirs,
            (Self::Refused(_), Self::Refused(_)) | (Self::TooLong, _) | (_, Self::TooLong) => true,
            _ => false,
        }
    }
}
