//! Terms of one builder on their way to another one, at another server, as bytes.
//!
//! # Shape
//! Terms in the order of their numbers, each: kind (a byte), for [`LANGUAGE`] and [`TYPED`] the length of the
//! language tag or datatype and its text, the length of the text, the text. Lengths are LEB128.

use crate::builder::{ArenaRecord, KIND_BLANK, KIND_IRI, KIND_TRIPLE};
use crate::key::{TermLocation, locate_iri};
use crate::{DictionaryBuilder, hash_iri};
use vervet_codec::{Damaged, read_varint, write_varint};
use vervet_model::{Error, Id, LiteralKind, Result, Tag};

const IRI: u8 = 0;
const BLANK: u8 = 1;
const STRING: u8 = 2;
const TRIPLE: u8 = 3;
const LANGUAGE: u8 = 4;
const TYPED: u8 = 5;

/// A term of a builder.
enum Transferred<'a> {
    Iri,
    Blank,
    Literal(LiteralKind<'a>),
}

impl DictionaryBuilder {
    /// Appends terms from position `at` on to `out`, until it has `bytes_max` bytes or more. `at` is 0 at
    /// first, and is moved behind them; returns whether these were the last ones.
    pub fn transfer(&self, at: &mut usize, bytes_max: usize, out: &mut Vec<u8>) -> bool {
        for record in self.records_from(*at) {
            if out.len() >= bytes_max {
                return false;
            }
            let (kind, detail) = kind_of(self, &record);
            out.push(kind);
            if let Some(detail) = detail {
                write_varint(detail.len() as u64, out);
                out.extend_from_slice(detail.as_bytes());
            }
            write_varint(record.text.len() as u64, out);
            out.extend_from_slice(record.text);
            *at += record.bytes;
        }
        true
    }

    /// Interns what [`DictionaryBuilder::transfer`] wrote, and appends the numbers of the terms to `numbers`.
    ///
    /// # Errors
    /// Corrupt: the bytes are damaged. As [`DictionaryBuilder::intern_iri`].
    pub fn intern_transferred(&mut self, mut bytes: &[u8], numbers: &mut Vec<u32>) -> Result<()> {
        while !bytes.is_empty() {
            let (term, text) = read_term(&mut bytes)
                .map_err(|damaged| Error::corrupt("terms of another server", damaged.0))?;
            let id = match term {
                Transferred::Iri => self.intern_iri(text)?,
                Transferred::Blank => self.intern_blank(text)?,
                Transferred::Literal(kind) => self.intern_literal(text, kind)?,
            };
            let is_expected = match term {
                Transferred::Literal(_) => id.tag() == Tag::Literal,
                _ => id.is_vertex(),
            };
            let number = u32::try_from(id.payload()).ok().filter(|_| is_expected);
            // A value inside an id has no number, and is in no builder.
            numbers.push(number.ok_or_else(|| Error::corrupt("terms of another server", "no entry"))?);
        }
        Ok(())
    }

    /// For each term in the order of [`DictionaryBuilder::transfer`], whether it is a vertex.
    pub fn kinds(&self) -> impl Iterator<Item = bool> + '_ {
        self.records().map(|record| record.is_vertex())
    }

    /// The id of an IRI that was interned.
    #[must_use]
    pub fn lookup_iri(&self, iri: &str) -> Option<Id> {
        match locate_iri(iri, || hash_iri(iri)) {
            TermLocation::Inline(id) => Some(id),
            TermLocation::Entry(key) => self.find(&key),
        }
    }

    /// Calls `each` with the id and the text of every term.
    pub fn for_each_text(&self, each: &mut dyn FnMut(Id, &str)) {
        for record in self.records() {
            if let Ok(text) = std::str::from_utf8(record.text) {
                each(record.id(), text);
            }
        }
    }

    /// The text of a vertex or literal of this builder; `None`: the dictionary does not have it.
    ///
    /// # Cost
    /// All terms are passed: for messages.
    #[must_use]
    pub fn find_text(&self, id: Id) -> Option<&str> {
        let found = self.records().find(|record| record.id() == id)?;
        std::str::from_utf8(found.text).ok()
    }
}

fn read_term<'a>(bytes: &mut &'a [u8]) -> Result<(Transferred<'a>, &'a str), Damaged> {
    let (kind, rest) = bytes.split_first().ok_or(Damaged("it ends early"))?;
    *bytes = rest;
    let term = match *kind {
        IRI => Transferred::Iri,
        BLANK => Transferred::Blank,
        STRING => Transferred::Literal(LiteralKind::String),
        TRIPLE => Transferred::Literal(LiteralKind::Triple),
        LANGUAGE => Transferred::Literal(LiteralKind::Language(read_text(bytes)?)),
        TYPED => Transferred::Literal(LiteralKind::Typed(read_text(bytes)?)),
        _ => return Err(Damaged("unknown kind of term")),
    };
    Ok((term, read_text(bytes)?))
}

fn read_text<'a>(bytes: &mut &'a [u8]) -> Result<&'a str, Damaged> {
    let length = read_varint(bytes).and_then(|length| usize::try_from(length).ok());
    let (text, rest) =
        length.and_then(|length| bytes.split_at_checked(length)).ok_or(Damaged("it ends early"))?;
    *bytes = rest;
    std::str::from_utf8(text).map_err(|_| Damaged("a text is not UTF-8"))
}

/// The kind of a record as a byte, and its language tag or datatype.
fn kind_of<'a>(builder: &'a DictionaryBuilder, record: &ArenaRecord<'_>) -> (u8, Option<&'a str>) {
    match (record.kind, builder.own_kind(record.kind)) {
        (KIND_IRI, _) => (IRI, None),
        (KIND_BLANK, _) => (BLANK, None),
        (KIND_TRIPLE, _) => (TRIPLE, None),
        (_, Some(own)) if own.is_language => (LANGUAGE, Some(&own.detail)),
        (_, Some(own)) => (TYPED, Some(&own.detail)),
        (_, None) => (STRING, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builder() -> DictionaryBuilder {
        let mut builder = DictionaryBuilder::new();
        let mut long = "x".repeat(300);
        for number in 0..200 {
            builder.intern_iri(&format!("http://e/{number}")).expect("short");
            builder.intern_blank(&format!("b{number}")).expect("short");
            for kind in [
                LiteralKind::String,
                LiteralKind::Language("de"),
                LiteralKind::Typed("http://e/type"),
                LiteralKind::Typed(&format!("http://e/type{number}")),
            ] {
                builder.intern_literal(&format!("a text that is long enough {number}"), kind).expect("short");
            }
            builder.intern_literal(&long, LiteralKind::String).expect("short");
            long.push('y');
        }
        builder
    }

    #[test]
    fn another_builder_gets_the_same_terms() {
        let from = builder();
        let terms = from.vertex_count() + from.literal_count();
        let mut again = DictionaryBuilder::new();
        again.intern_iri("http://e/7").expect("short");
        let (mut at, mut numbers, mut calls, mut bytes) = (0, Vec::new(), 0, Vec::new());
        loop {
            bytes.clear();
            let is_last = from.transfer(&mut at, 1_000, &mut bytes);
            again.intern_transferred(&bytes, &mut numbers).expect("what was written");
            calls += 1;
            if is_last {
                break;
            }
        }
        assert!(calls > 10 && numbers.len() as u64 == terms, "{calls}");
        assert_eq!(again.vertex_count() + again.literal_count(), terms);
        // `http://e/7` was first; all others are in their order.
        assert_eq!(numbers[0], 1);
        let seven = from.records().position(|record| record.text == b"http://e/7").expect("it is there");
        assert_eq!(numbers[seven], 0);
        assert_eq!(again.find_text(Id::vertex(0)), Some("http://e/7"));
        assert_eq!(again.lookup_iri("http://e/7"), Some(Id::vertex(0)));
        assert_eq!(again.lookup_iri("http://e/70000"), None);
        for (record, number) in from.records().zip(&numbers) {
            let id = if record.id().is_vertex() {
                Id::vertex(u64::from(*number))
            } else {
                Id::literal(u64::from(*number))
            };
            assert_eq!(again.find_text(id).map(str::as_bytes), Some(record.text));
        }
    }

    #[test]
    fn damaged_bytes_are_errors() {
        let from = builder();
        let mut bytes = Vec::new();
        from.transfer(&mut 0, 4_000, &mut bytes);
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..2_000 {
            let mut changed = bytes.clone();
            let at = random.usize(..changed.len());
            changed[at] = random.u8(..);
            changed.truncate(random.usize(..=changed.len()));
            _ = DictionaryBuilder::new().intern_transferred(&changed, &mut Vec::new());
        }
        let mut edge = vec![IRI, 18];
        edge.extend(b"urn:vervet:edge:12");
        assert!(DictionaryBuilder::new().intern_transferred(&edge, &mut Vec::new()).is_err());
    }
}
