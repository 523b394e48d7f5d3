//! The error of value functions: a one-line message.

use std::fmt;

/// A value of an unsupported type, or an unrepresentable result. Only a change of the traversal helps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error(Box<str>);

/// The result of a function on values.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(message: impl Into<Box<str>>) -> Self {
        Self(message.into())
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
