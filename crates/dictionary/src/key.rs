//! Lookup keys of terms: kind, text, and a hash of both.
//!
//! # Invariants
//! 1. One term has one key: `xsd:string` as a datatype is [`LiteralKind::String`], a base direction is
//!    part of the language tag, a triple term is its text with [`LiteralKind::Triple`].
//! 2. The hash under the seed of a file is part of the file format: a changed hash is a new format version.
//! 3. Terms come from clients, so each file has a random [`Seed`], and the builders of a process share
//!    another one: a client cannot choose colliding terms.
//! # Cost
//! XXH3 of the terms of LUBM-40 in file order: 12 to 31 ns each in most runs (2026-11-20, a shared machine
//! under load); the parser threads can compute it.

use oxrdf::{BaseDirection, LiteralRef, TermRef};
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use vervet_model::vocab::EDGE_NAMESPACE;
use vervet_model::{Error, ErrorKind, Id, LiteralKind, TRIPLE_DEPTH_MAX, inline_id, triple_text};
use xxhash_rust::xxh3::xxh3_64_with_seed;

const XSD_STRING: &str = "http://www.w3.org/2001/XMLSchema#string";
/// Longer strings never fit inside an id.
const INLINE_STRING_BYTES_MAX: usize = 7;

const IRI_SEED: u64 = 0;
const BLANK_SEED: u64 = 1;
const STRING_SEED: u64 = 2;
const LANGUAGE_SEED: u64 = 3;
const DATATYPE_SEED: u64 = 4;
const TRIPLE_SEED: u64 = 5;

/// Kind of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TermKind<'a> {
    Iri,
    Blank,
    Literal(LiteralKind<'a>),
}

/// A term as the dictionary stores it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key<'a> {
    pub(crate) kind: TermKind<'a>,
    pub(crate) text: &'a str,
    pub(crate) hash: u64,
}

/// Location of a term: inside its id, or an entry with a key.
pub(crate) enum TermLocation<'a> {
    Inline(Id),
    Entry(Key<'a>),
}

/// Seed of the hashes of an index. 0: that of files of versions 4 and 5.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seed(pub(crate) u64);

impl Seed {
    /// A new random seed.
    pub(crate) fn random() -> Self {
        Self(RandomState::new().hash_one(0))
    }

    /// The seed of all builders of this process.
    #[inline]
    pub(crate) fn of_builders() -> Self {
        static SEED: LazyLock<Seed> = LazyLock::new(Seed::random);
        *SEED
    }

    /// The hash of a term.
    #[inline]
    pub(crate) fn hash(self, kind: TermKind<'_>, text: &[u8]) -> u64 {
        let seed = match kind {
            TermKind::Iri => IRI_SEED ^ self.0,
            TermKind::Blank => BLANK_SEED ^ self.0,
            TermKind::Literal(LiteralKind::String | LiteralKind::Typed(XSD_STRING)) => STRING_SEED ^ self.0,
            TermKind::Literal(LiteralKind::Triple) => TRIPLE_SEED ^ self.0,
            TermKind::Literal(LiteralKind::Language(tag)) => {
                xxh3_64_with_seed(tag.as_bytes(), LANGUAGE_SEED ^ self.0)
            }
            TermKind::Literal(LiteralKind::Typed(iri)) => {
                xxh3_64_with_seed(iri.as_bytes(), DATATYPE_SEED ^ self.0)
            }
        };
        xxh3_64_with_seed(text, seed)
    }
}

/// The hash of an IRI in this process, for [`crate::DictionaryBuilder::intern_iri_hashed`].
#[inline]
#[must_use]
pub fn hash_iri(iri: &str) -> u64 {
    Seed::of_builders().hash(TermKind::Iri, iri.as_bytes())
}

/// The hash of a blank node by its label in this process, for
/// [`crate::DictionaryBuilder::intern_blank_hashed`].
#[inline]
#[must_use]
pub fn hash_blank(label: &str) -> u64 {
    Seed::of_builders().hash(TermKind::Blank, label.as_bytes())
}

/// The hash of a literal in this process, for [`crate::DictionaryBuilder::intern_literal_hashed`].
#[inline]
#[must_use]
pub fn hash_literal(value: &str, kind: LiteralKind<'_>) -> u64 {
    Seed::of_builders().hash(TermKind::Literal(kind), value.as_bytes())
}

/// The hash of any term; 0 for a triple term that is nested too deep for any dictionary.
#[must_use]
pub fn hash_term(term: TermRef<'_>) -> u64 {
    match term {
        TermRef::NamedNode(iri) => hash_iri(iri.as_str()),
        TermRef::BlankNode(node) => hash_blank(node.as_str()),
        TermRef::Literal(literal) => with_literal_kind(literal, |kind| hash_literal(literal.value(), kind)),
        TermRef::Triple(triple) => {
            triple_text(triple.as_ref()).map_or(0, |text| hash_literal(&text, LiteralKind::Triple))
        }
    }
}

/// Calls `call` with the kind of `literal`.
pub(crate) fn with_literal_kind<T>(literal: LiteralRef<'_>, call: impl FnOnce(LiteralKind<'_>) -> T) -> T {
    match (literal.language(), literal.direction()) {
        (Some(tag), None) => call(LiteralKind::Language(tag)),
        (Some(tag), Some(BaseDirection::Ltr)) => call(LiteralKind::Language(&format!("{tag}--ltr"))),
        (Some(tag), Some(BaseDirection::Rtl)) => call(LiteralKind::Language(&format!("{tag}--rtl"))),
        (None, _) => match literal.datatype().as_str() {
            XSD_STRING => call(LiteralKind::String),
            iri => call(LiteralKind::Typed(iri)),
        },
    }
}

/// The error of a triple term that is nested too deep.
#[cold]
pub(crate) fn too_deep() -> Error {
    let message = format!("a triple term is nested deeper than {TRIPLE_DEPTH_MAX} (TRIPLE_DEPTH_MAX)");
    Error::new(ErrorKind::Unsupported, message).with_hint("name the inner triples by reifiers")
}

/// The location of an IRI; `hash` is called only if it has an entry.
#[inline]
pub(crate) fn locate_iri(iri: &str, hash: impl FnOnce() -> u64) -> TermLocation<'_> {
    match edge_number(iri) {
        Some(number) => TermLocation::Inline(Id::edge(number)),
        None => TermLocation::Entry(Key { kind: TermKind::Iri, text: iri, hash: hash() }),
    }
}

/// The key of a blank node.
#[inline]
pub(crate) fn blank_key(label: &str, hash: u64) -> Key<'_> {
    Key { kind: TermKind::Blank, text: label, hash }
}

/// The location of a literal; `hash` is called only if it has an entry.
#[inline]
pub(crate) fn locate_literal<'a>(
    value: &'a str,
    kind: LiteralKind<'a>,
    hash: impl FnOnce() -> u64,
) -> TermLocation<'a> {
    let (kind, inside) = match kind {
        LiteralKind::String | LiteralKind::Typed(XSD_STRING) => {
            let short = value.len() <= INLINE_STRING_BYTES_MAX;
            (LiteralKind::String, if short { inline_id(value, XSD_STRING) } else { None })
        }
        LiteralKind::Typed(iri) => (kind, inline_id(value, iri)),
        LiteralKind::Language(_) | LiteralKind::Triple => (kind, None),
    };
    match inside {
        Some(id) => TermLocation::Inline(id),
        None => TermLocation::Entry(Key { kind: TermKind::Literal(kind), text: value, hash: hash() }),
    }
}

/// The number of an edge IRI in its canonical form.
#[inline]
fn edge_number(iri: &str) -> Option<u64> {
    let digits = iri.strip_prefix(EDGE_NAMESPACE)?;
    let canonical =
        digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    digits.parse().ok().filter(|&number| canonical && number <= Id::PAYLOAD_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_edge_iris_are_edges() {
        assert_eq!(edge_number("urn:vervet:edge:0"), Some(0));
        assert_eq!(edge_number("urn:vervet:edge:120"), Some(120));
        for other in ["", "007", "+1", "-1", "1 ", "x", "99999999999999999999", "1152921504606846976"] {
            assert_eq!(edge_number(&format!("{EDGE_NAMESPACE}{other}")), None, "{other}");
        }
    }

    #[test]
    fn a_term_has_one_hash() {
        assert_eq!(hash_literal("x", LiteralKind::Typed(XSD_STRING)), hash_literal("x", LiteralKind::String));
        assert_ne!(hash_iri("x"), hash_blank("x"));
        assert_ne!(
            hash_literal("x", LiteralKind::Typed("en")),
            hash_literal("x", LiteralKind::Language("en"))
        );
        let literal = LiteralRef::new_simple_literal("hello");
        assert_eq!(hash_term(literal.into()), hash_literal("hello", LiteralKind::String));
    }

    /// Security S8: terms that collide under one seed, also by their datatype alone, do not collide under
    /// another one; the seed of old files gives the hashes of old files.
    #[test]
    fn s8_hashes_of_terms_depend_on_a_seed() {
        let kinds = [
            TermKind::Iri,
            TermKind::Blank,
            TermKind::Literal(LiteralKind::String),
            TermKind::Literal(LiteralKind::Language("en")),
            TermKind::Literal(LiteralKind::Typed("http://t")),
            TermKind::Literal(LiteralKind::Triple),
        ];
        for kind in kinds {
            let hashes = [Seed(0), Seed(1 << 20), Seed::random()].map(|seed| seed.hash(kind, b"a text"));
            assert!(hashes[0] != hashes[1] && hashes[1] != hashes[2] && hashes[0] != hashes[2], "{kind:?}");
        }
        assert_eq!(Seed(0).hash(TermKind::Iri, b"x"), xxh3_64_with_seed(b"x", 0));
        let typed = xxh3_64_with_seed(b"http://t", 4);
        let kind = TermKind::Literal(LiteralKind::Typed("http://t"));
        assert_eq!(Seed(0).hash(kind, b"x"), xxh3_64_with_seed(b"x", typed));
    }
}
