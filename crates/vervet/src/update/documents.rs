//! The documents that `LOAD` may read.
//!
//! Off unless the caller lists allowed sources: a request must not read arbitrary files of the server, or
//! make it send requests into its network.

use std::fmt;
use std::path::PathBuf;
use vervet_load::Source;
use vervet_model::{Error, ErrorKind, Result};

/// Opens the document at an IRI.
type OpenDocument<'a> = dyn FnMut(&str) -> Result<Source> + 'a;

/// The documents that `LOAD` may read.
pub struct Documents<'a> {
    allowed: Vec<String>,
    open: Box<OpenDocument<'a>>,
}

impl<'a> Documents<'a> {
    /// Allows documents whose IRIs start with one of `allowed` (a folder ends with `/`); `open` opens them,
    /// and may be [`file_source`].
    pub fn new(
        allowed: impl IntoIterator<Item = impl Into<String>>,
        open: impl FnMut(&str) -> Result<Source> + 'a,
    ) -> Self {
        Self { allowed: allowed.into_iter().map(Into::into).collect(), open: Box::new(open) }
    }

    pub(super) fn open(&mut self, iri: &str) -> Result<Source> {
        let allowed = self.allowed.iter().any(|prefix| iri.starts_with(prefix.as_str()));
        if !allowed || climbs(iri) {
            let message = format!("LOAD may not read <{iri}>");
            return Err(
                Error::new(ErrorKind::Input, message).with_hint("the operator of the database can allow it")
            );
        }
        (self.open)(iri)
    }
}

impl fmt::Debug for Documents<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Documents").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}

/// Whether a segment of the path leads up (`..`, also as `%2E%2E`, or behind a backslash).
fn climbs(iri: &str) -> bool {
    let decoded = decoded(iri).unwrap_or_default();
    decoded.is_empty() || decoded.split(['/', '\\']).any(|part| part == "..")
}

/// The text with percent codes decoded; `None` if the result is not UTF-8 or contains a NUL.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |at: usize| tail.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        if let (b'%', Some(high), Some(low)) = (first, hex(0), hex(1)) {
            bytes.push(u8::try_from(high * 16 + low).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// The local file of a `file:` IRI. The file extension determines format and compression.
///
/// # Errors
/// [`ErrorKind::Input`] if it is not the IRI of a local file.
pub fn file_source(iri: &str) -> Result<Source> {
    let path = iri.strip_prefix("file://").and_then(|rest| rest.strip_prefix("localhost").or(Some(rest)));
    let path = path.filter(|path| path.starts_with('/') && !path.contains(['?', '#'])).and_then(decoded);
    match path {
        Some(path) => Ok(Source::path(PathBuf::from(path))),
        None => Err(Error::new(ErrorKind::Input, format!("<{iri}> does not name a local file"))
            .with_hint("such a name looks like file:///data/people.ttl")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_allowed_is_opened() {
        let mut documents = Documents::new(["file:///data/"], file_source);
        for (iri, expected) in [
            ("file:///data/a.ttl", Some("/data/a.ttl")),
            ("file:///data/a%20b/..c.ttl", Some("/data/a b/..c.ttl")),
            ("file:///etc/passwd", None),
            ("file:///data/../etc/passwd", None),
            ("file:///data/%2e%2E/etc/passwd", None),
            ("file:///data/a%2F..%2f..%2Fetc/passwd", None),
            ("file:///data/a%00.ttl", None),
            ("file:///data/a.ttl?x", None),
            ("http://example.org/a.ttl", None),
        ] {
            let opened = documents.open(iri);
            assert_eq!(opened.ok().map(|source| source.name().to_owned()).as_deref(), expected, "{iri}");
        }
        assert!(file_source("file://host/data/a.ttl").is_err());
    }
}
