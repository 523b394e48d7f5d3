//! Limits on documents whose parsers have none: JSON-LD and RDF/XML.
//!
//! Their time grows with the square of the depth of nesting, and recursion over it can overflow the stack; an entity of
//! XML may stand for a text of any length (ten lines are enough for 10 GB). [`Guard`] reads along: bytes that would pass a
//! limit do not reach the parser.
//!
//! # Shape
//! A state machine over bytes for each syntax, which follows what the parser takes for strings, tags and comments, to the
//! letter where that is lax, so that nothing can hide from it. What is malformed may count wrongly; the parser
//! refuses it.
//! # Cost
//! One pass; constant memory, but for the document type of XML.

mod json;
mod xml;

use std::io::{self, Read};
use std::sync::{Arc, OnceLock};

/// The deepest nesting of JSON-LD and RDF/XML. Documents for people and programs have less than a tenth of it.
pub const DEPTH_MAX: usize = 256;

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
    Xml(Box<xml::Xml>),
}

impl Syntax {
    pub(crate) fn json() -> Self {
        Self::Json(json::Json::default())
    }

    pub(crate) fn xml() -> Self {
        Self::Xml(Box::default())
    }

    /// What is wrong with the document up to these bytes, which follow those before.
    fn follow(&mut self, bytes: &[u8]) -> Result<(), String> {
        match self {
            Self::Json(json) => json.follow(bytes),
            Self::Xml(xml) => xml.follow(bytes),
        }
    }
}

fn too_deep() -> String {
    format!("the document is nested more than {DEPTH_MAX} levels deep (DEPTH_MAX)")
}

/// Hands out bytes as long as they pass no limit.
pub(crate) struct Guard<R> {
    input: R,
    syntax: Syntax,
    /// What was passed, for those who get the error wrapped by a parser.
    excess: Arc<OnceLock<String>>,
}

impl<R: Read> Guard<R> {
    pub(crate) fn new(input: R, syntax: Syntax, excess: &Arc<OnceLock<String>>) -> Self {
        Self { input, syntax, excess: Arc::clone(excess) }
    }
}

impl<R: Read> Read for Guard<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(excess) = self.excess.get() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, excess.clone()));
        }
        let length = self.input.read(buffer)?;
        match self.syntax.follow(&buffer[..length]) {
            Ok(()) => Ok(length),
            Err(excess) => {
                let excess = self.excess.get_or_init(|| excess);
                Err(io::Error::new(io::ErrorKind::InvalidData, excess.clone()))
            }
        }
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
        assert_eq!(excess.get(), Some(&too_deep()));
        assert!(guard.read(&mut [0; 8]).is_err(), "also when asked again");
    }
}
