//! Resource limits for documents whose parsers have none.
//!
//! The parsers of JSON-LD and RDF/XML take time quadratic in the nesting depth; nested triple terms of Turtle
//! and contexts of JSON-LD overflow the stack; an XML entity may expand to a text of any length (ten lines
//! suffice for 10 GB). [`LimitedReader`] scans the input stream and withholds bytes that would exceed a limit
//! from the parser.
//!
//! # Shape
//! One byte-level state machine per syntax. It uses the parser's definition of strings, tags and comments,
//! including its leniency, so that no construct can evade it. It may miscount malformed input, which the
//! parser rejects.
//! # Cost
//! One pass; constant memory, except for the document type of XML.

mod json;
mod limits;
mod turtle;
mod xml;

pub(crate) use limits::STACK_BYTES;
pub use limits::{
    ATTRIBUTES_MAX, CONTEXT_KEYS_MAX, DEPTH_MAX, DOCTYPE_BYTES_MAX, ENTITIES_BYTES_MIN, ENTITIES_TIMES_MAX,
    ENTITY_BYTES_MAX,
};

use std::io::{self, Read};
use std::sync::{Arc, OnceLock};

/// A scanner that follows a document byte by byte.
#[derive(Debug)]
pub(crate) enum Syntax {
    Json(json::Json),
    Turtle(turtle::Turtle),
    Xml(Box<xml::Xml>),
}

impl Syntax {
    pub(crate) fn json() -> Self {
        Self::Json(json::Json::default())
    }

    pub(crate) fn turtle() -> Self {
        Self::Turtle(turtle::Turtle::default())
    }

    pub(crate) fn xml() -> Self {
        Self::Xml(Box::default())
    }

    /// The error for a document that ends here without content, which the parser would accept as empty.
    fn end(&self) -> Result<(), String> {
        match self {
            Self::Xml(xml) => xml.end(),
            Self::Json(_) | Self::Turtle(_) => Ok(()),
        }
    }

    /// Scans the next bytes; the error for an exceeded limit.
    fn scan(&mut self, bytes: &[u8]) -> Result<(), String> {
        match self {
            Self::Json(json) => json.scan(bytes),
            Self::Turtle(turtle) => turtle.scan(bytes),
            Self::Xml(xml) => xml.scan(bytes),
        }
    }
}

/// Checks a line of N-Triples or N-Quads.
pub(crate) fn check_line(line: &[u8]) -> Result<(), String> {
    Syntax::turtle().scan(line)
}

/// Checks the nesting ([`DEPTH_MAX`]) of a JSON document that another parser reads, such as results.
///
/// # Errors
/// The exceeded limit.
pub fn check_json(document: &[u8]) -> Result<(), String> {
    Syntax::json().scan(document)
}

/// As [`check_json`] for an XML document, with its attributes, document type and entities.
///
/// # Errors
/// The exceeded limit.
pub fn check_xml(document: &[u8]) -> Result<(), String> {
    Syntax::xml().scan(document)
}

/// An exceeded limit, or an empty document.
#[derive(Debug)]
pub(crate) struct LimitExceeded {
    /// From 0.
    pub(crate) line: u64,
    pub(crate) message: String,
    pub(crate) hint: &'static str,
}

/// Hint for a document beyond a limit.
const BEYOND: &str = "realistic documents are far below this limit; if yours is not, load it as N-Quads";
/// Hint for an empty document.
const NONE: &str =
    "the file is empty or has a wrong extension; set its format with --format, or fetch it again";

/// A reader that stops at an exceeded limit.
pub(crate) struct LimitedReader<R> {
    input: R,
    syntax: Syntax,
    lines: u64,
    /// The error, for callers that receive it wrapped by a parser.
    exceeded: Arc<OnceLock<LimitExceeded>>,
}

impl<R: Read> LimitedReader<R> {
    pub(crate) fn new(input: R, syntax: Syntax, exceeded: &Arc<OnceLock<LimitExceeded>>) -> Self {
        Self { input, syntax, lines: 0, exceeded: Arc::clone(exceeded) }
    }
}

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let error =
            |exceeded: &LimitExceeded| io::Error::new(io::ErrorKind::InvalidData, exceeded.message.clone());
        if let Some(exceeded) = self.exceeded.get() {
            return Err(error(exceeded));
        }
        let length = self.input.read(buffer)?;
        if length == 0
            && !buffer.is_empty()
            && let Err(message) = self.syntax.end()
        {
            let line = self.lines;
            return Err(error(self.exceeded.get_or_init(|| LimitExceeded { line, message, hint: NONE })));
        }
        for line in buffer[..length].split_inclusive(|byte| *byte == b'\n') {
            if let Err(message) = self.syntax.scan(line) {
                let line = self.lines;
                return Err(error(self.exceeded.get_or_init(|| LimitExceeded {
                    line,
                    message,
                    hint: BEYOND,
                })));
            }
            self.lines += u64::from(line.ends_with(b"\n"));
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::limits::too_deep;
    use super::*;

    /// The scanned length of a text must not depend on the chunk size.
    #[track_caller]
    pub(super) fn scanned(syntax: fn() -> Syntax, text: &str) -> Result<(), String> {
        let whole = syntax().scan(text.as_bytes());
        for size in [1, 2, 3, 7] {
            let mut machine = syntax();
            let pieces = text.as_bytes().chunks(size).try_for_each(|piece| machine.scan(piece));
            assert_eq!(pieces, whole, "in pieces of {size}: {text}");
        }
        whole
    }

    #[test]
    fn bytes_beyond_a_limit_are_withheld() {
        let text = "[".repeat(DEPTH_MAX + 1);
        let exceeded = Arc::default();
        let mut guard = LimitedReader::new(text.as_bytes(), Syntax::json(), &exceeded);
        assert_eq!(guard.read(&mut [0; DEPTH_MAX]).unwrap(), DEPTH_MAX);
        assert!(guard.read(&mut [0; 8]).is_err());
        assert_eq!(exceeded.get().map(|exceeded| exceeded.message.clone()), Some(too_deep()));
        assert!(guard.read(&mut [0; 8]).is_err(), "also when asked again");
    }
}
