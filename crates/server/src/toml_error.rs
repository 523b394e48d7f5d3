//! Errors of TOML with a position but without the text of the line, which may hold a secret or a long query.

use vervet_model::{Error, ErrorKind};

/// The error of a malformed document.
pub(crate) fn toml_error(text: &str, error: &toml::de::Error) -> Error {
    let message = error.message().lines().map(str::trim).collect::<Vec<_>>().join(", ");
    let before = error.span().and_then(|span| text.get(..span.start));
    let message = match before {
        Some(before) => {
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            format!("line {line}, column {column}: {message}")
        }
        None => message,
    };
    Error::new(ErrorKind::Input, message)
}
