//! Oracles: permitted outcomes, and permitted differences between two outcomes.

use std::time::Duration;
use vervet::{ErrorKind, QueryOptions, Result};

/// The outcome of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome<T> {
    /// Success.
    Done(T),
    /// A limit was exceeded.
    Limit,
    /// Malformed or not supported.
    Refused,
}

/// Limits for long-running texts: a fuzzer needs thousands of texts per second.
pub(crate) fn options() -> QueryOptions {
    QueryOptions {
        timeout: Some(Duration::from_millis(300)),
        memory_limit_bytes: Some(32 << 20),
        threads: Some(1),
        ..QueryOptions::default()
    }
}

/// Classifies a result.
///
/// # Panics
/// On an error that no text may cause.
pub(crate) fn classify<T>(done: Result<T>) -> Outcome<T> {
    match done {
        Ok(value) => Outcome::Done(value),
        Err(error) => match error.kind() {
            ErrorKind::Deadline | ErrorKind::MemoryLimit => Outcome::Limit,
            ErrorKind::Internal | ErrorKind::Corrupt | ErrorKind::Io => {
                panic!("no text may cause this error: {:?}: {error}", error.kind())
            }
            _ => Outcome::Refused,
        },
    }
}

/// Compares the outcomes of two evaluation methods.
///
/// # Panics
/// If they differ, unless a limit or randomness explains the difference.
pub(crate) fn check_same<T: PartialEq + std::fmt::Debug>(
    text: &str,
    one: &Outcome<T>,
    other: &Outcome<T>,
    how: &str,
) {
    if matches!(one, Outcome::Limit) || matches!(other, Outcome::Limit) || !is_repeatable(text) {
        return;
    }
    assert_eq!(one, other, "the outcome differs {how}");
}

/// Whether the standard determines the result: the text has no word of a nondeterministic feature. A match in
/// an IRI or a string only weakens the check, and so does the exclusion of texts with escapes.
pub(crate) fn is_repeatable(text: &str) -> bool {
    const NONDETERMINISTIC: [&str; 10] =
        ["rand", "uuid", "now", "bnode", "reduced", "sample", "group_concat", "limit", "offset", "\\u"];
    let text = text.to_ascii_lowercase();
    !NONDETERMINISTIC.iter().any(|word| text.contains(word))
}
