//! Query errors: message, hint and position in the text.

use std::fmt;
use vervet_model::{Error, ErrorKind, Position};

/// Kind of a query error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum QueryErrorKind {
    /// The text is not valid SPARQL.
    Syntax,
    /// The text is valid SPARQL that Vervet does not support.
    Unsupported,
}

/// An error with its position in the text. `Display` marks the position:
///
/// ```text
/// undeclared prefix fof: (line 1, column 15)
/// 1 | SELECT * { ?x fof:name ?name }
///   |               ^^^^
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueryError {
    inner: Box<Inner>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Inner {
    kind: QueryErrorKind,
    message: String,
    hint: Option<String>,
    line: usize,
    column: usize,
    excerpt: String,
    carets: String,
}

impl QueryError {
    /// An error about the bytes `start..end` of `text`.
    pub(crate) fn at(text: &str, start: usize, end: usize, message: impl Into<String>) -> Self {
        let start = floor(text, start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let source = text[line_start..line_end].trim_end_matches('\r');
        let before = &text[line_start..start];
        let marked = text.get(start..end.min(line_end)).unwrap_or_default();
        let (excerpt, carets) = excerpt(source, before.chars().count(), marked.chars().count());
        Self {
            inner: Box::new(Inner {
                kind: QueryErrorKind::Syntax,
                message: message.into(),
                hint: None,
                line: text[..start].bytes().filter(|&byte| byte == b'\n').count() + 1,
                column: before.chars().count() + 1,
                excerpt,
                carets,
            }),
        }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.inner.hint = Some(hint.into());
        self
    }

    pub(crate) fn unsupported(mut self) -> Self {
        self.inner.kind = QueryErrorKind::Unsupported;
        self
    }

    /// Kind of the error.
    #[must_use]
    pub fn kind(&self) -> QueryErrorKind {
        self.inner.kind
    }

    /// The message, one line.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// The hint, one line.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.inner.hint.as_deref()
    }

    /// The line, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.inner.line
    }

    /// The column in characters, from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.inner.column
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { message, line, column, excerpt, carets, .. } = &*self.inner;
        let margin = " ".repeat(line.to_string().len());
        write!(f, "{message} (line {line}, column {column})\n{line} | {excerpt}\n{margin} | {carets}")
    }
}

impl std::error::Error for QueryError {}

/// The message keeps its three lines, since they show the position.
impl From<QueryError> for Error {
    fn from(error: QueryError) -> Self {
        let kind = match error.kind() {
            QueryErrorKind::Syntax => ErrorKind::Query,
            QueryErrorKind::Unsupported => ErrorKind::Unsupported,
        };
        let position = Position { line: error.line() as u64, column: Some(error.column() as u64) };
        let converted = Self::new(kind, error.to_string()).at(position);
        match error.inner.hint {
            Some(hint) => converted.with_hint(hint),
            None => converted,
        }
    }
}

/// The nearest character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The part of a long line around the marked range, and the carets below it. Tabs and control characters
/// become spaces, so that the carets are aligned.
fn excerpt(line: &str, column: usize, marked: usize) -> (String, String) {
    const WIDTH: usize = 100;
    const BEFORE: usize = 60;
    let skipped = if column > BEFORE + 10 { column - BEFORE } else { 0 };
    let mut shown = String::new();
    if skipped > 0 {
        shown.push('…');
    }
    let indent = shown.chars().count() + column - skipped;
    shown.extend(line.chars().skip(skipped).take(WIDTH).map(|c| if c.is_control() { ' ' } else { c }));
    if line.chars().nth(skipped + WIDTH).is_some() {
        shown.push('…');
    }
    let width = marked.clamp(1, WIDTH.saturating_sub(column - skipped).max(1));
    (shown, format!("{}{}", " ".repeat(indent), "^".repeat(width)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_its_position() {
        let text = "SELECT *\n{\n\t?x größe:y ?z\n}";
        let start = text.find("größe").expect("is there");
        let error = QueryError::at(text, start, start + "größe".len(), "no such prefix");
        assert_eq!(error.to_string(), "no such prefix (line 3, column 5)\n3 |  ?x größe:y ?z\n  |     ^^^^^");
    }

    #[test]
    fn any_position_of_any_text_can_be_shown() {
        let long = format!("{}ß{}", "x".repeat(300), "y".repeat(300));
        for text in ["", "\n", "a\r\nb", "日本", long.as_str()] {
            for start in 0..text.len() + 3 {
                for length in [0, 1, 500] {
                    let shown = QueryError::at(text, start, start + length, "m").to_string();
                    assert_eq!(shown.lines().count(), 3);
                }
            }
        }
    }
}
