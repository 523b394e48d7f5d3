//! Limits on documents whose parsers have none.
//!
//! The time of the parsers of JSON-LD and RDF/XML grows with the square of the depth of nesting; what triple
//! terms of Turtle and contexts of JSON-LD nest overflows the stack; an entity of XML may stand for a text of
//! any length (ten lines are enough for 10 GB). [`Guard`] reads along: bytes that would pass a limit do not
//! reach the parser.
//!
//! # Shape
//! A state machine over bytes for each syntax, which follows what the parser takes for strings, tags and
//! comments, to the letter where that is lax, so that nothing can hide from it. What is malformed may count
//! wrongly; the parser refuses it.
//! # Cost
//! One pass; constant memory, but for the document type of XML.

mod json;
mod turtle;
mod xml;

use std::io::{self, Read};
use std::sync::{Arc, OnceLock};

/// The deepest nesting of JSON-LD, of RDF/XML, and of triple terms and reified triples in the other formats.
/// Documents for people and programs have less than a tenth of it.
pub const DEPTH_MAX: usize = 256;

/// Keys in one context of JSON-LD, those of contexts inside of it included. The largest vocabularies have
/// half of it.
pub const CONTEXT_KEYS_MAX: usize = 16 << 10;

/// Room for the recursion over as many terms as [`CONTEXT_KEYS_MAX`] lets through: 2 to 3 kB for each.
pub(crate) const STACK_BYTES: usize = 128 << 20;

/// Attributes of one element of RDF/XML, each of which the parser compares with all others.
pub const ATTRIBUTES_MAX: usize = 1 << 10;

/// The longest document type (`<!DOCTYPE`) of RDF/XML in bytes. Those of ontologies have less than 10 kB.
pub const DOCTYPE_BYTES_MAX: usize = 64 << 10;

/// Bytes that one entity of RDF/XML may stand for. Most stand for a namespace.
pub const ENTITY_BYTES_MAX: u64 = 64 << 10;

/// Bytes that the entities of one RDF/XML document may stand for together, and as many times its length.
pub const ENTITIES_BYTES_MIN: u64 = 16 << 20;
/// See [`ENTITIES_BYTES_MIN`].
pub const ENTITIES_TIMES_MAX: u64 = 8;

/// Follows a document byte by byte.
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

    /// What is wrong with a document that ends here, though the parser would take it for one that says
    /// nothing.
    fn end(&self) -> Result<(), String> {
        match self {
            Self::Xml(xml) => xml.end(),
            Self::Json(_) | Self::Turtle(_) => Ok(()),
        }
    }

    /// What is wrong with the document up to these bytes, which follow those before.
    fn follow(&mut self, bytes: &[u8]) -> Result<(), String> {
        match self {
            Self::Json(json) => json.follow(bytes),
            Self::Turtle(turtle) => turtle.follow(bytes),
            Self::Xml(xml) => xml.follow(bytes),
        }
    }
}

/// What is wrong with a line of N-Triples or N-Quads.
pub(crate) fn check_line(line: &[u8]) -> Result<(), String> {
    Syntax::turtle().follow(line)
}

/// What is wrong with a document of JSON that is read by others, such as results: its nesting
/// ([`DEPTH_MAX`]).
///
/// # Errors
/// The limit that it passes.
pub fn check_json(document: &[u8]) -> Result<(), String> {
    Syntax::json().follow(document)
}

/// As [`check_json`] for a document of XML, with its attributes, document type and entities.
///
/// # Errors
/// The limit that it passes.
pub fn check_xml(document: &[u8]) -> Result<(), String> {
    Syntax::xml().follow(document)
}

fn too_deep() -> String {
    format!("the document is nested more than {DEPTH_MAX} levels deep (DEPTH_MAX)")
}

/// The limit that a document has passed, or that it is none.
#[derive(Debug)]
pub(crate) struct Excess {
    /// From 0.
    pub(crate) line: u64,
    pub(crate) message: String,
    pub(crate) hint: &'static str,
}

/// What to do about a document beyond a limit.
const BEYOND: &str = "no data that people exchange is like that; if yours is, load it as N-Quads";
/// What to do about a document that is none.
const NONE: &str =
    "the file is empty, or not what its name says; name its format with --format, or fetch it again";

/// Hands out bytes as long as they pass no limit.
pub(crate) struct Guard<R> {
    input: R,
    syntax: Syntax,
    lines: u64,
    /// For those who get the error wrapped by a parser.
    excess: Arc<OnceLock<Excess>>,
}

impl<R: Read> Guard<R> {
    pub(crate) fn new(input: R, syntax: Syntax, excess: &Arc<OnceLock<Excess>>) -> Self {
        Self { input, syntax, lines: 0, excess: Arc::clone(excess) }
    }
}

impl<R: Read> Read for Guard<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let error = |excess: &Excess| io::Error::new(io::ErrorKind::InvalidData, excess.message.clone());
        if let Some(excess) = self.excess.get() {
            return Err(error(excess));
        }
        let length = self.input.read(buffer)?;
        if length == 0
            && !buffer.is_empty()
            && let Err(message) = self.syntax.end()
        {
            let line = self.lines;
            return Err(error(self.excess.get_or_init(|| Excess { line, message, hint: NONE })));
        }
        for line in buffer[..length].split_inclusive(|byte| *byte == b'\n') {
            if let Err(message) = self.syntax.follow(line) {
                let line = self.lines;
                return Err(error(self.excess.get_or_init(|| Excess { line, message, hint: BEYOND })));
            }
            self.lines += u64::from(line.ends_with(b"\n"));
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How far a text is followed, in pieces of any size: the same.
    #[track_caller]
    pub(super) fn followed(syntax: fn() -> Syntax, text: &str) -> Result<(), String> {
        let whole = syntax().follow(text.as_bytes());
        for size in [1, 2, 3, 7] {
            let mut machine = syntax();
            let pieces = text.as_bytes().chunks(size).try_for_each(|piece| machine.follow(piece));
            assert_eq!(pieces, whole, "in pieces of {size}: {text}");
        }
        whole
    }

    #[test]
    fn what_passes_a_limit_is_not_handed_out() {
        let text = "[".repeat(DEPTH_MAX + 1);
        let excess = Arc::default();
        let mut guard = Guard::new(text.as_bytes(), Syntax::json(), &excess);
        assert_eq!(guard.read(&mut [0; DEPTH_MAX]).unwrap(), DEPTH_MAX);
        assert!(guard.read(&mut [0; 8]).is_err());
        assert_eq!(excess.get().map(|excess| excess.message.clone()), Some(too_deep()));
        assert!(guard.read(&mut [0; 8]).is_err(), "also when asked again");
    }
}
