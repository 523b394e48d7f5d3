//! What can be wrong with bytes that are read, and with values that are written.

use std::fmt;

/// What a reader's caller may do about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// The bytes are not in the format.
    Malformed,
    /// They are, and over a limit.
    TooLarge,
    /// They are, and name something that there is no value for.
    Unsupported,
    /// The source of the bytes failed.
    Io,
}

/// Why bytes could not be read, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadError {
    kind: ReadErrorKind,
    at: u64,
    message: String,
}

impl ReadError {
    pub(crate) fn new(kind: ReadErrorKind, at: usize, message: impl Into<String>) -> Self {
        Self { kind, at: at as u64, message: message.into() }
    }

    pub(crate) fn malformed(at: usize, message: impl Into<String>) -> Self {
        Self::new(ReadErrorKind::Malformed, at, message)
    }

    pub(crate) fn too_large(at: usize, message: impl Into<String>) -> Self {
        Self::new(ReadErrorKind::TooLarge, at, message)
    }

    pub(crate) fn unsupported(at: usize, message: impl Into<String>) -> Self {
        Self::new(ReadErrorKind::Unsupported, at, message)
    }

    /// The same, in bytes that begin `by` bytes into a file.
    #[must_use]
    pub(crate) fn moved(mut self, by: u64) -> Self {
        self.at += by;
        self
    }

    /// What may be done about it.
    #[must_use]
    pub fn kind(&self) -> ReadErrorKind {
        self.kind
    }

    /// The byte at which it showed, from 0.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// What is wrong, without the place.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.message, self.at)
    }
}

impl std::error::Error for ReadError {}

/// What a writer's caller may do about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WriteErrorKind {
    /// An element has no details: look them up first.
    NoDetails,
    /// The format cannot hold it.
    Unsupported,
    /// It is over a limit.
    TooLarge,
}

/// Why a value could not be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WriteError {
    kind: WriteErrorKind,
    message: String,
}

impl WriteError {
    pub(crate) fn new(kind: WriteErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn no_details(what: &str) -> Self {
        Self::new(WriteErrorKind::NoDetails, format!("could not write {what} whose details are not known"))
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(WriteErrorKind::Unsupported, message)
    }

    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Self::new(WriteErrorKind::TooLarge, message)
    }

    /// What may be done about it.
    #[must_use]
    pub fn kind(&self) -> WriteErrorKind {
        self.kind
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for WriteError {}
