//! `Block`: parsed statements with block-local term numbers.
//!
//! # Shape
//! `text` holds the tokens: the raw input of the block, then tokens appended by the builder. A [`Token`] is a
//! range of it: `<iri>`, `_:label`, `"value"`, `"value"@language`, `"value"^^<datatype>`, without escapes.
//! Statements are triples of token numbers.
//! # Invariants
//! 1. Every token is a checked term: valid UTF-8, absolute IRI, known form of language tag.
//! 2. Equal tokens have equal numbers (an index of hashes ensures this), and equal tokens are equal terms: an
//!    IRI contains no `>` and no `"`, so the last `"` outside of the suffix ends the value. Hence a raw input
//!    token without `\` that is found in the index needs no check.
//! 3. Numbers are assigned in the order of first occurrence.
//! # Cost
//! One hash of the token and about one comparison for each position of a statement.

use crate::target::TermRef;
use foldhash::fast::RandomState;
use std::hash::BuildHasher;
use std::ops::Range;
use vervet_model::{Error, ErrorKind, LiteralKind, Result};

/// Marker of the default graph in the named-graph column.
pub(crate) const DEFAULT_GRAPH: u32 = u32::MAX;

/// Maximum size of a block's text in bytes: positions fit 32 bits, with room for appended tokens.
pub(crate) const TEXT_BYTES_MAX: usize = 1 << 30;

const XSD_STRING_SUFFIX: &[u8] = b"^^<http://www.w3.org/2001/XMLSchema#string>";

/// The kind of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum TokenKind {
    Iri,
    Blank,
    String,
    Language,
    Typed,
    /// A triple term in N-Triples; labels of blank nodes are those of the input.
    Triple,
}

/// A distinct term of the block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    start: u32,
    length: u32,
    /// Length of the value of a literal, without quotes.
    value_length: u32,
    kind: TokenKind,
}

/// A position in an input.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BlockPosition {
    /// A line, from 0: of the block, or of the file if the block counts no lines.
    Line(u64),
    /// A statement of a document, from 0.
    Statement(u64),
    /// Unknown.
    Unknown,
}

/// `reifier rdf:reifies <<( triple )>>`, in token numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reifier {
    /// Number of rows of the block before it.
    pub(crate) row: usize,
    pub(crate) reifier: u32,
    pub(crate) triple: [u32; 3],
    pub(crate) graph: u32,
    pub(crate) at: BlockPosition,
}

/// A malformed statement, with its position and reason.
#[derive(Clone, Debug)]
pub(crate) struct Malformed {
    /// From 0, in the block, or in the file if the block has no line count.
    pub(crate) line: u64,
    /// From 0, in characters; `None` if the parser does not report it.
    pub(crate) column: Option<u64>,
    pub(crate) message: String,
    pub(crate) kind: ErrorKind,
}

/// See the header of this file.
#[derive(Default, Debug)]
pub(crate) struct Block {
    pub(crate) text: Vec<u8>,
    pub(crate) tokens: Vec<Token>,
    pub(crate) triples: Vec<[u32; 3]>,
    /// Empty if all statements are in the default graph, else one entry per statement.
    pub(crate) graphs: Vec<u32>,
    pub(crate) reifiers: Vec<Reifier>,
    pub(crate) malformed: Vec<Malformed>,
    /// Bytes of `text` that are the raw input.
    pub(crate) raw_bytes: usize,
    /// Number of the first statement in its document, if the block is part of a document.
    pub(crate) first_statement: Option<u64>,
    /// Lines of input in this block.
    pub(crate) line_count: u64,
}

impl Block {
    /// Empties the block and keeps its memory; the old text remains for [`crate::input::LineBlocks`] to
    /// overwrite.
    pub(crate) fn recycle(&mut self) {
        self.tokens.clear();
        self.triples.clear();
        self.graphs.clear();
        self.reifiers.clear();
        self.malformed.clear();
        self.raw_bytes = 0;
        self.first_statement = None;
        self.line_count = 0;
    }

    /// Adds a statement of token numbers.
    #[inline]
    pub(crate) fn push(&mut self, triple: [u32; 3], graph: u32) {
        if graph != DEFAULT_GRAPH && self.graphs.is_empty() {
            self.graphs.resize(self.triples.len(), DEFAULT_GRAPH);
            self.triples.push(triple);
            self.graphs.push(graph);
            return;
        }
        if !self.graphs.is_empty() {
            self.graphs.push(graph);
        }
        self.triples.push(triple);
    }

    /// Whether the token with this number is an IRI.
    pub(crate) fn is_iri(&self, number: u32) -> bool {
        self.tokens.get(wide(number)).is_some_and(|token| token.kind == TokenKind::Iri)
    }

    /// The position of row `row`, or of an earlier row with the same terms; for error messages.
    pub(crate) fn position_of(&self, row: usize) -> BlockPosition {
        if let Some(first) = self.first_statement {
            let reifiers = self.reifiers.iter().filter(|reifier| reifier.row <= row).count();
            return BlockPosition::Statement(first + (row + reifiers) as u64);
        }
        let graph = self.graphs.get(row).copied().unwrap_or(DEFAULT_GRAPH);
        let numbers = self.triples[row].into_iter().chain([graph]);
        let starts =
            numbers.filter_map(|number| self.tokens.get(wide(number))).map(|token| wide(token.start));
        // The token with the latest first occurrence is in this row, if any is.
        match starts.filter(|&start| start < self.raw_bytes).max() {
            Some(start) => {
                BlockPosition::Line(memchr::memchr_iter(b'\n', &self.text[..start]).count() as u64)
            }
            None => BlockPosition::Unknown,
        }
    }

    /// The term of a token; a blank node has its input label.
    pub(crate) fn term(&self, token: &Token) -> Result<TermRef<'_>> {
        let part = |range: Range<usize>| {
            self.text
                .get(range)
                .and_then(|bytes| std::str::from_utf8(bytes).ok())
                .ok_or_else(|| Error::internal("a token of a parsed block is not text"))
        };
        let (start, end) = (wide(token.start), wide(token.start) + wide(token.length));
        let value_end = start + 1 + wide(token.value_length);
        let literal = |kind| Ok(TermRef::Literal { value: part(start + 1..value_end)?, kind });
        match token.kind {
            TokenKind::Iri => Ok(TermRef::Iri(part(start + 1..end - 1)?)),
            TokenKind::Blank => Ok(TermRef::Blank(part(start + 2..end)?)),
            TokenKind::String => literal(LiteralKind::String),
            TokenKind::Language => literal(LiteralKind::Language(part(value_end + 2..end)?)),
            TokenKind::Typed => literal(LiteralKind::Typed(part(value_end + 4..end - 1)?)),
            TokenKind::Triple => Ok(TermRef::Literal { value: part(start..end)?, kind: LiteralKind::Triple }),
        }
    }
}

/// Index over the tokens of one block; reused across blocks for its memory.
pub(crate) struct TokenIndex {
    /// High half: hash; low half: token number + 1; 0: free. Linear probing.
    slots: Vec<u64>,
    used: usize,
    /// A random seed per index: clients could otherwise choose colliding tokens.
    hashing: RandomState,
}

impl TokenIndex {
    pub(crate) fn new() -> Self {
        Self { slots: vec![0; 1 << 12], used: 0, hashing: RandomState::default() }
    }

    /// Removes all tokens.
    pub(crate) fn clear(&mut self) {
        self.slots.fill(0);
        self.used = 0;
    }

    /// The number of the token `bytes` if it is in the index, else the slot and hash for
    /// [`TokenIndex::insert`].
    #[inline]
    pub(crate) fn find(&self, block: &[u8], tokens: &[Token], bytes: &[u8]) -> Result<u32, VacantSlot> {
        let hash = self.hash(bytes);
        let mask = self.slots.len() - 1;
        let mut at = wide(hash) & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return Err(VacantSlot { at, hash });
            }
            let (slot_hash, number) = split(slot);
            if slot_hash == hash {
                let number = number - 1;
                let token = &tokens[wide(number)];
                let start = wide(token.start);
                if block[start..start + wide(token.length)] == *bytes {
                    return Ok(number);
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Numbers the token of `kind` at `range` of the block's text.
    pub(crate) fn insert(
        &mut self,
        tokens: &mut Vec<Token>,
        vacant: VacantSlot,
        range: Range<usize>,
        kind: TokenKind,
        value_length: usize,
    ) -> u32 {
        let number = narrow(tokens.len());
        tokens.push(Token {
            start: narrow(range.start),
            length: narrow(range.len()),
            value_length: narrow(value_length),
            kind,
        });
        self.slots[vacant.at] = u64::from(vacant.hash) << 32 | u64::from(number + 1);
        self.used += 1;
        if self.used * 2 > self.slots.len() {
            self.grow();
        }
        number
    }

    #[inline]
    fn hash(&self, bytes: &[u8]) -> u32 {
        let (high, low) = split(self.hashing.hash_one(bytes));
        high ^ low
    }

    fn grow(&mut self) {
        let size = self.slots.len() * 2;
        let old = std::mem::replace(&mut self.slots, vec![0; size]);
        for slot in old.into_iter().filter(|&slot| slot != 0) {
            let mut at = wide(split(slot).0) & (size - 1);
            while self.slots[at] != 0 {
                at = (at + 1) & (size - 1);
            }
            self.slots[at] = slot;
        }
    }
}

/// The free slot of a missing token.
pub(crate) struct VacantSlot {
    at: usize,
    hash: u32,
}

/// Builds blocks from the terms of a parser library.
pub(crate) struct BlockBuilder {
    numbering: TokenIndex,
    scratch: Vec<u8>,
}

impl BlockBuilder {
    pub(crate) fn new() -> Self {
        Self { numbering: TokenIndex::new(), scratch: Vec::new() }
    }

    pub(crate) fn clear(&mut self) {
        self.numbering.clear();
    }

    pub(crate) fn numbering(&mut self) -> &mut TokenIndex {
        &mut self.numbering
    }

    /// The number of `term` in `block`; its token is appended if it is new.
    pub(crate) fn number(&mut self, block: &mut Block, term: TermRef<'_>) -> u32 {
        let out = &mut self.scratch;
        out.clear();
        let (kind, value_length) = match term {
            TermRef::Iri(iri) => {
                out.push(b'<');
                out.extend_from_slice(iri.as_bytes());
                out.push(b'>');
                (TokenKind::Iri, 0)
            }
            TermRef::Blank(label) => {
                out.extend_from_slice(b"_:");
                out.extend_from_slice(label.as_bytes());
                (TokenKind::Blank, 0)
            }
            TermRef::Literal { value, kind: LiteralKind::Triple } => {
                out.extend_from_slice(value.as_bytes());
                (TokenKind::Triple, 0)
            }
            TermRef::Literal { value, kind } => {
                out.push(b'"');
                out.extend_from_slice(value.as_bytes());
                out.push(b'"');
                let kind = match kind {
                    LiteralKind::String | LiteralKind::Triple => TokenKind::String,
                    LiteralKind::Language(tag) => {
                        out.push(b'@');
                        out.extend_from_slice(tag.as_bytes());
                        TokenKind::Language
                    }
                    LiteralKind::Typed(iri) => {
                        out.extend_from_slice(b"^^<");
                        out.extend_from_slice(iri.as_bytes());
                        out.push(b'>');
                        TokenKind::Typed
                    }
                };
                (kind, value.len())
            }
        };
        match self.numbering.find(&block.text, &block.tokens, out) {
            Ok(number) => number,
            Err(vacant) => {
                let start = block.text.len();
                block.text.extend_from_slice(out);
                self.numbering.insert(&mut block.tokens, vacant, start..start + out.len(), kind, value_length)
            }
        }
    }
}

/// The kind of a literal token with this `suffix` (the part after the closing quote).
#[inline]
pub(crate) fn literal_kind(suffix: &[u8]) -> TokenKind {
    match suffix.first() {
        None => TokenKind::String,
        Some(b'@') => TokenKind::Language,
        Some(_) if suffix == XSD_STRING_SUFFIX => TokenKind::String,
        Some(_) => TokenKind::Typed,
    }
}

/// The high and the low half.
#[inline]
fn split(word: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = word.to_le_bytes();
    (u32::from_le_bytes([e, f, g, h]), u32::from_le_bytes([a, b, c, d]))
}

#[inline]
fn wide(number: u32) -> usize {
    number as usize
}

/// Converts a position in a block or a token number.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "blocks are cut below TEXT_BYTES_MAX, far below 2^32")]
fn narrow(number: usize) -> u32 {
    debug_assert!(number < 1 << 32);
    number as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// security S8: the set of colliding tokens differs for each load.
    #[test]
    fn s8_tokens_are_hashed_with_a_seed() {
        let hashes = |numbering: &TokenIndex| -> Vec<u32> {
            (0..8_u8).map(|number| numbering.hash(&[b'<', number, b'>'])).collect()
        };
        let (one, other) = (TokenIndex::new(), TokenIndex::new());
        assert_eq!(hashes(&one), hashes(&one));
        assert_ne!(hashes(&one), hashes(&other));
    }
}
