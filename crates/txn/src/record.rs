//! Log records: binary encoding of terms, commits and constraints.
//!
//! # Shape
//! *Term* (kind 1): the id (8 bytes, little endian), the kind of term (1 byte: IRI, blank node, string,
//! language-tagged, typed, triple term), for tags and datatypes the length of tag or datatype (varint) and
//! its text; the text to the end. *Commit* (kind 2): timestamp (8 bytes), number of changes (varint), and for
//! each a byte of flags (bit 0: added; 1: has a graph; 2: has an edge) and its ids. An id is a varint of
//! `payload << 4 | tag`. A varint is LEB128. *Constraints* (kind 3): timestamp (8 bytes), number of
//! constraints from then on (varint), and for each the length of its text (varint) and the text.
//! # Invariants
//! A term precedes every commit that uses it in the log, and terms are in the order of their numbers, without
//! gaps. Terms of a base may be repeated.
//! # Cost
//! A triple takes about 13 bytes.

use crate::mutation::{Mutation, Timestamp};
use oxrdf::{BaseDirection, Term, TermRef};
use vervet_codec::{read_varint, write_varint};
use vervet_model::{Id, LiteralKind, Statement, TermParts, triple_term, triple_text};

// The longest term fits into a record, with its id, its kind and the length of its detail.
const _: () = assert!(vervet_dictionary::TERM_BYTES_MAX + 8 + 1 + 10 <= vervet_log::RECORD_BYTES_MAX);

/// Kind of the record of a term.
pub(crate) const TERM: u8 = 1;
/// Kind of the record of a commit.
pub(crate) const COMMIT: u8 = 2;
/// Kind of the record of all constraints.
pub(crate) const CONSTRAINTS: u8 = 3;

const IRI: u8 = 0;
const BLANK: u8 = 1;
const STRING: u8 = 2;
const LANGUAGE: u8 = 3;
const TYPED: u8 = 4;
const TRIPLE: u8 = 5;

const ADDED: u8 = 1;
const GRAPH: u8 = 2;
const EDGE: u8 = 4;

/// A record of the log of another process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogRecord {
    /// Position of its end, in bytes.
    pub lsn: u64,
    /// What it is; its meaning belongs to this crate.
    pub kind: u8,
    /// Its content.
    pub payload: Vec<u8>,
}

/// Writes the record of a term.
pub(crate) fn write_term(id: Id, term: TermRef<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&id.bits().to_le_bytes());
    let mut put = |kind: u8, detail: Option<&str>, text: &str| {
        out.push(kind);
        if let Some(detail) = detail {
            write_varint(detail.len() as u64, out);
            out.extend_from_slice(detail.as_bytes());
        }
        out.extend_from_slice(text.as_bytes());
    };
    match term {
        TermRef::NamedNode(iri) => put(IRI, None, iri.as_str()),
        TermRef::BlankNode(node) => put(BLANK, None, node.as_str()),
        TermRef::Literal(literal) => match (literal.language(), literal.direction()) {
            (Some(tag), None) => put(LANGUAGE, Some(tag), literal.value()),
            (Some(tag), Some(direction)) => {
                let direction = if direction == BaseDirection::Rtl { "rtl" } else { "ltr" };
                put(LANGUAGE, Some(&format!("{tag}--{direction}")), literal.value());
            }
            (None, _) if literal.datatype() == oxrdf::vocab::xsd::STRING => {
                put(STRING, None, literal.value());
            }
            (None, _) => put(TYPED, Some(literal.datatype().as_str()), literal.value()),
        },
        TermRef::Triple(triple) => {
            let text = triple_text(triple.as_ref());
            put(TRIPLE, None, &text.expect("a triple term that is nested too deep has no number"));
        }
    }
}

/// Decodes the record of a term; `None` if the bytes are invalid.
pub(crate) fn read_term(mut bytes: &[u8]) -> Option<(Id, Term)> {
    let id = Id::from_bits(u64::from_le_bytes(take(&mut bytes, 8)?.try_into().ok()?));
    let kind = *take(&mut bytes, 1)?.first()?;
    let detail = if matches!(kind, LANGUAGE | TYPED) {
        let length = usize::try_from(read_varint(&mut bytes)?).ok()?;
        std::str::from_utf8(take(&mut bytes, length)?).ok()?
    } else {
        ""
    };
    let text = std::str::from_utf8(bytes).ok()?;
    let literal = |kind| TermParts::Literal { head: text, tail: "", kind };
    let parts = match kind {
        IRI => TermParts::Iri { namespace: text, local: "" },
        BLANK => TermParts::Blank(text),
        STRING => literal(LiteralKind::String),
        LANGUAGE => literal(LiteralKind::Language(detail)),
        TYPED => literal(LiteralKind::Typed(detail)),
        TRIPLE => return Some((id, triple_term(text)?)),
        _ => return None,
    };
    Some((id, parts.to_term()))
}

/// Writes the record of a commit whose timestamp is not known yet; see [`set_timestamp`].
pub(crate) fn write_commit(changes: &[Mutation], out: &mut Vec<u8>) {
    out.extend_from_slice(&[0; 8]);
    write_varint(changes.len() as u64, out);
    for Mutation { statement, added } in changes {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        out.push(
            flag(*added, ADDED)
                | flag(statement.graph.is_bound(), GRAPH)
                | flag(statement.edge.is_bound(), EDGE),
        );
        for id in [statement.subject, statement.predicate, statement.object] {
            write_id(id, out);
        }
        for id in [statement.graph, statement.edge].into_iter().filter(|id| id.is_bound()) {
            write_id(id, out);
        }
    }
}

/// Fills in the timestamp of the record of a commit.
pub(crate) fn set_timestamp(record: &mut [u8], timestamp: Timestamp) {
    if let Some(slot) = record.first_chunk_mut::<8>() {
        *slot = timestamp.0.to_le_bytes();
    }
}

/// The timestamp of the record of a commit, or of constraints; `None` if it is too short.
pub(crate) fn timestamp(bytes: &[u8]) -> Option<Timestamp> {
    bytes.first_chunk::<8>().map(|bytes| Timestamp(u64::from_le_bytes(*bytes)))
}

/// Decodes timestamp and changes of a commit; `None` if the bytes are invalid.
pub(crate) fn read_commit(bytes: &[u8]) -> Option<(Timestamp, Vec<Mutation>)> {
    let timestamp = timestamp(bytes)?;
    let mut reader = MutationReader::of(bytes)?;
    // A change takes at least four bytes, so damaged data cannot request more memory than that.
    let mut changes = Vec::with_capacity(reader.count.min(bytes.len() / 4));
    while let Some(change) = reader.next_mutation() {
        changes.push(change?);
    }
    reader.bytes.is_empty().then_some((timestamp, changes))
}

/// Decodes the changes of a commit one at a time.
#[derive(Clone, Debug)]
pub(crate) struct MutationReader<'a> {
    bytes: &'a [u8],
    /// Changes that were not read yet.
    count: usize,
}

impl<'a> MutationReader<'a> {
    /// `None` if the record is too short.
    pub(crate) fn of(mut bytes: &'a [u8]) -> Option<Self> {
        take(&mut bytes, 8)?;
        let count = usize::try_from(read_varint(&mut bytes)?).ok()?;
        Some(Self { bytes, count })
    }

    /// The next change; `Some(None)` if the bytes are invalid.
    pub(crate) fn next_mutation(&mut self) -> Option<Option<Mutation>> {
        self.count = self.count.checked_sub(1)?;
        let change = read_mutation(&mut self.bytes);
        if change.is_none() || self.count == 0 && !self.bytes.is_empty() {
            self.count = 0;
            return Some(None);
        }
        Some(change)
    }
}

fn read_mutation(bytes: &mut &[u8]) -> Option<Mutation> {
    let flags = *take(bytes, 1)?.first()?;
    let mut id = || read_id(bytes);
    let (subject, predicate, object) = (id()?, id()?, id()?);
    let graph = if flags & GRAPH != 0 { id()? } else { Id::UNBOUND };
    let edge = if flags & EDGE != 0 { id()? } else { Id::UNBOUND };
    Some(Mutation {
        statement: Statement { subject, predicate, object, graph, edge },
        added: flags & ADDED != 0,
    })
}

/// Writes the record of a commit that changes the constraints.
pub(crate) fn write_constraints(timestamp: Timestamp, texts: &[String], out: &mut Vec<u8>) {
    out.extend_from_slice(&timestamp.0.to_le_bytes());
    write_varint(texts.len() as u64, out);
    for text in texts {
        write_varint(text.len() as u64, out);
        out.extend_from_slice(text.as_bytes());
    }
}

/// Decodes timestamp and texts of a record of constraints; `None` if the bytes are invalid.
pub(crate) fn read_constraints(mut bytes: &[u8]) -> Option<(Timestamp, Vec<String>)> {
    let timestamp = Timestamp(u64::from_le_bytes(take(&mut bytes, 8)?.try_into().ok()?));
    let count = read_varint(&mut bytes)?;
    let mut texts = Vec::new();
    for _ in 0..count {
        let length = usize::try_from(read_varint(&mut bytes)?).ok()?;
        texts.push(std::str::from_utf8(take(&mut bytes, length)?).ok()?.to_owned());
    }
    bytes.is_empty().then_some((timestamp, texts))
}

fn write_id(id: Id, out: &mut Vec<u8>) {
    // The tag in the low bits keeps small numbers short.
    write_varint(id.bits().rotate_left(u64::BITS - Id::PAYLOAD_BITS), out);
}

fn read_id(bytes: &mut &[u8]) -> Option<Id> {
    Some(Id::from_bits(read_varint(bytes)?.rotate_right(u64::BITS - Id::PAYLOAD_BITS)))
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::{BlankNode, Literal, NamedNode, NamedNodeRef, Triple};

    #[test]
    fn terms_come_back() {
        let datatype = NamedNodeRef::new_unchecked("http://example.org/type");
        let inner = Triple {
            subject: BlankNode::new_unchecked("b").into(),
            predicate: datatype.into_owned(),
            object: Literal::new_simple_literal("a \"text\"\n").into(),
        };
        let outer = Triple { object: inner.clone().into(), ..inner.clone() };
        let terms: [Term; 8] = [
            inner.into(),
            outer.into(),
            NamedNode::new_unchecked("http://example.org/a").into(),
            BlankNode::new_unchecked("b").into(),
            Literal::new_simple_literal("text \u{1F600}").into(),
            Literal::new_language_tagged_literal_unchecked("chat", "fr").into(),
            Literal::new_directional_language_tagged_literal_unchecked("chat", "ar", BaseDirection::Rtl)
                .into(),
            Literal::new_typed_literal("", datatype).into(),
        ];
        for (number, term) in (0..).zip(terms) {
            let mut bytes = Vec::new();
            let id =
                if term.is_literal() || term.is_triple() { Id::literal(number) } else { Id::vertex(number) };
            write_term(id, term.as_ref(), &mut bytes);
            assert_eq!(read_term(&bytes), Some((id, term)));
        }
    }

    #[test]
    fn constraints_come_back_and_no_cut_record_does() {
        for texts in [vec![], vec!["single <urn:C> <urn:\u{e9}>".to_owned(), String::new()]] {
            let mut bytes = Vec::new();
            write_constraints(Timestamp(7), &texts, &mut bytes);
            assert_eq!(read_constraints(&bytes), Some((Timestamp(7), texts)));
            for length in 0..bytes.len() {
                assert_eq!(read_constraints(&bytes[..length]), None);
            }
        }
    }

    #[test]
    fn commits_come_back_and_no_cut_one_does() {
        let seed = fastrand::u64(..);
        eprintln!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..200 {
            let changes: Vec<Mutation> = (0..random.usize(0..6))
                .map(|_| {
                    let mut id = |some: bool| {
                        let bits = 60 - random.u32(0..60);
                        if some { Id::vertex(random.u64(..) >> bits.min(59)) } else { Id::UNBOUND }
                    };
                    let statement = Statement {
                        subject: id(true),
                        predicate: id(true),
                        object: id(true),
                        graph: id(false),
                        edge: id(true),
                    };
                    Mutation { statement, added: random.bool() }
                })
                .collect();
            let timestamp = Timestamp(random.u64(..));
            let mut bytes = Vec::new();
            write_commit(&changes, &mut bytes);
            set_timestamp(&mut bytes, timestamp);
            assert_eq!(read_commit(&bytes), Some((timestamp, changes)));
            for length in 0..bytes.len() {
                assert_eq!(read_commit(&bytes[..length]), None);
            }
        }
    }
}
