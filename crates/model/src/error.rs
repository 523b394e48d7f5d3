//! The error type of the boundary between the engine and its callers.
//!
//! Kinds are for the caller's next action; messages are for people: one lower-case line without a full stop
//! that states the problem and its location, and a hint that states the remedy.

use std::fmt;

/// `Result` with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Category of an [`Error`], by what the caller can do about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Correct the query.
    Query,
    /// Correct the input file or the argument.
    Input,
    /// Stored data is damaged: restore a backup, or load again.
    Corrupt,
    /// The operating system refused a file operation (full disk, no permission, missing file).
    Io,
    /// The caller cancelled the query.
    Cancelled,
    /// The deadline of the query has passed: raise it, or ask for less.
    Deadline,
    /// The memory cap of the query has been reached: raise it, or ask for less.
    MemoryLimit,
    /// Valid, but not supported by Vervet.
    Unsupported,
    /// The transaction conflicts with another one: run it again.
    Conflict,
    /// The transaction would violate a constraint of the graph: correct its data.
    Constraint,
    /// Another process owns the directory, or it is closed.
    Unavailable,
    /// A defect in Vervet itself: please report it.
    Internal,
}

/// An error: kind, message, location and hint.
#[derive(Clone, Debug)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Clone, Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    position: Option<Position>,
}

/// Location of a mistake in a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    /// Line, from 1.
    pub line: u64,
    /// Column, in characters, in documents in bytes; from 1. `None` if unknown.
    pub column: Option<u64>,
}

impl Error {
    /// An error of this kind; `message` is one lower-case line without a full stop.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { inner: Box::new(Inner { kind, message: message.into(), hint: None, position: None }) }
    }

    /// The same error with a hint, a line that states the remedy.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.inner.hint = Some(hint.into());
        self
    }

    /// The same error with the location of the mistake, which the message also states.
    #[must_use]
    pub fn at(mut self, position: Position) -> Self {
        self.inner.position = Some(position);
        self
    }

    /// The same error with `context: ` before its message.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.inner.message = format!("{context}: {}", self.inner.message);
        self
    }

    /// An [`ErrorKind::Io`] error: `could not {what}: {source}`. That of a full disk has a hint.
    #[must_use]
    pub fn io(what: impl fmt::Display, source: &std::io::Error) -> Self {
        let error = Self::new(ErrorKind::Io, format!("could not {what}: {source}"));
        match source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => error
                .with_hint("free some space on the disk, or name a directory on another one; then try again"),
            _ => error,
        }
    }

    /// An [`ErrorKind::Corrupt`] error in `file`.
    #[must_use]
    pub fn corrupt(file: impl fmt::Display, what: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Corrupt, format!("{file} is damaged: {what}"))
            .with_hint("restore this database from a backup, or load its data again into a new directory")
    }

    /// An [`ErrorKind::Internal`] error.
    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message).with_hint("this is a defect of Vervet; please report it")
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// The message, one line.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// Location of the mistake, if it is in a text: a query, an update, a traversal, a document.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        self.inner.position
    }

    /// The hint, one line.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.inner.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_has_a_hint() {
        let of = |kind: std::io::ErrorKind| Error::io("write a", &kind.into());
        assert!(of(std::io::ErrorKind::StorageFull).hint().is_some_and(|hint| hint.contains("space")));
        assert_eq!(of(std::io::ErrorKind::NotFound).hint(), None);
    }
}
