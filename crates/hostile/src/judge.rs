//! Which outcomes are fine, and which two may differ.

use std::time::Duration;
use vervet::{ErrorKind, QueryOptions, Result};

/// What became of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome<T> {
    /// It ran.
    Done(T),
    /// A limit ended it.
    Limit,
    /// It is malformed, or not supported.
    Refused,
}

/// Limits that end what is merely long: a fuzzer wants thousands of texts a second.
pub(crate) fn options() -> QueryOptions {
    QueryOptions {
        timeout: Some(Duration::from_millis(300)),
        memory_limit_bytes: Some(32 << 20),
        threads: Some(1),
        ..QueryOptions::default()
    }
}

/// Sorts a result.
///
/// # Panics
/// For an error that no text may cause.
pub(crate) fn settle<T>(done: Result<T>) -> Outcome<T> {
    match done {
        Ok(value) => Outcome::Done(value),
        Err(error) => match error.kind() {
            ErrorKind::Deadline | ErrorKind::MemoryLimit => Outcome::Limit,
            ErrorKind::Internal | ErrorKind::Corrupt | ErrorKind::Io => {
                panic!("no text may cause this: {:?}: {error}", error.kind())
            }
            _ => Outcome::Refused,
        },
    }
}

/// Two ways to the same answer.
///
/// # Panics
/// If they lead to different ones, and no limit or chance explains that.
pub(crate) fn check_same<T: PartialEq + std::fmt::Debug>(
    text: &str,
    one: &Outcome<T>,
    other: &Outcome<T>,
    how: &str,
) {
    if matches!(one, Outcome::Limit) || matches!(other, Outcome::Limit) || !is_repeatable(text) {
        return;
    }
    assert_eq!(one, other, "another outcome {how}");
}

/// Whether the standard leaves nothing of the answer open. A word that only looks like one of these in an IRI
/// or a string makes the check weaker, never wrong; so does an escape, which may hide one.
pub(crate) fn is_repeatable(text: &str) -> bool {
    const OPEN: [&str; 10] =
        ["rand", "uuid", "now", "bnode", "reduced", "sample", "group_concat", "limit", "offset", "\\u"];
    let text = text.to_ascii_lowercase();
    !OPEN.iter().any(|word| text.contains(word))
}
