//! Errors of readers and writers.

use std::fmt;

/// Kind of a read error, by what the caller can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// The bytes are not in the format.
    Malformed,
    /// The bytes are in the format, but exceed a limit.
    TooLarge,
    /// The bytes are in the format, but contain a type without a value.
    Unsupported,
    /// The source of the bytes failed.
    Io,
}

/// A read error with its position.
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

    /// The same error, for bytes that start at offset `by` of a file.
    #[must_use]
    pub(crate) fn moved(mut self, by: u64) -> Self {
        self.at += by;
        self
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ReadErrorKind {
        self.kind
    }

    /// The byte offset of the error, from 0.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The message without the position.
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

/// Kind of a write error, by what the caller can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WriteErrorKind {
    /// An element has no details; the caller must look them up first.
    NoDetails,
    /// The format cannot represent the value.
    Unsupported,
    /// The value exceeds a limit.
    TooLarge,
}

/// A write error.
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

    /// The kind of the error.
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
