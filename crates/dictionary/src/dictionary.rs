//! A finished dictionary, read in place.
//!
//! # Shape
//! Vertices and literals are two halves of the same build: blocks of [`BLOCK_TERMS`] records, the offset
//! of each block, and an index by hash. A block is the lengths of its records, one byte each, and the
//! records; a record is the number of its template and what fills the template.
//! # Invariants
//! 1. What comes out was checked: bounds, checksums (when a block of the file is first touched), UTF-8.
//! 2. Damage is an error that names the file; it is never a panic and never another term.
//! # Cost
//! A term by id: two cache misses (offset, block), then some ns for each number or some dozen for a text.
//! An id by term: one miss in the index, then two for each candidate; a wrong one in 256 slots.
//! # Source
//! DESIGN §2 and §3 (number templates).

use crate::DictionaryBuilder;
use crate::body::Body;
use crate::encode::{BLOCK_TERMS, LONG, fingerprint, home_slot, index_width, offset_width, slot_count};
use crate::header::{self, Section};
use crate::key::{Key, Place, blank_key, place_iri, place_literal, with_literal_kind};
use crate::number::{read_le, read_varint};
use crate::template::{self, Template, TemplateKind};
use crate::{hash_blank, hash_iri, hash_literal};
use oxrdf::TermRef;
use vervet_env::Bytes;
use vervet_model::{Error, Id, Inline, LiteralKind, Result, Tag, TermParts};

/// Terms whose records are found before the first of them is written, so that their misses overlap.
const WRITE_BATCH: usize = 16;
const XSD_STRING: &str = "http://www.w3.org/2001/XMLSchema#string";

/// The map between ids and terms, immutable. See the header of this file.
#[derive(Debug)]
pub struct Dictionary {
    body: Body,
    templates: Vec<Template>,
    vertices: Half,
    literals: Half,
    file_bytes: u64,
}

/// Vertices or literals.
#[derive(Debug)]
pub(crate) struct Half {
    pub(crate) terms: u64,
    pub(crate) index: Section,
    offsets: Section,
    records: Section,
    offset_width: usize,
    index_width: usize,
    slots: u64,
}

/// From the number of a term to its id.
type MakeId = fn(u64) -> Id;

impl std::fmt::Debug for Section {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "section {}", *self as usize)
    }
}

/// A record that has been found but not yet read.
#[derive(Clone, Copy)]
struct Found<'a> {
    template: &'a Template,
    payload: &'a [u8],
}

impl Half {
    fn new(terms: u64, sections: [Section; 3], body: &Body) -> Option<Self> {
        let [offsets, records, index] = sections;
        let half = Self {
            terms,
            index,
            offsets,
            records,
            offset_width: offset_width(body.length(records)),
            index_width: index_width(terms),
            slots: slot_count(terms),
        };
        // The sections exist, so their lengths bound these products if the counts are right.
        let blocks = usize::try_from(terms.div_ceil(BLOCK_TERMS as u64)).ok()?;
        let offsets_bytes = blocks.checked_mul(half.offset_width)?;
        let index_bytes = usize::try_from(half.slots).ok()?.checked_mul(half.index_width + 1)?;
        let right = body.length(offsets) == offsets_bytes && body.length(index) == index_bytes;
        right.then_some(half)
    }
}

impl Dictionary {
    /// Opens the image of a file; `name` is what errors call it. Reads the header and the templates;
    /// the rest is checked when it is first touched.
    ///
    /// # Errors
    /// Damaged, or written by a newer version.
    pub fn open(bytes: Bytes, name: &str) -> Result<Self> {
        let file_bytes = bytes.len() as u64;
        let layout = header::read(&bytes, name)?;
        let (vertex_count, literal_count) = (layout.header.vertices, layout.header.literals);
        let body = Body::new(layout, name);
        let templates = template::read_all(body.all(Section::Templates)?)
            .ok_or_else(|| body.damaged("its templates cannot be read"))?;
        let sections = [Section::VertexOffsets, Section::VertexRecords, Section::VertexIndex];
        let vertices = Half::new(vertex_count, sections, &body);
        let sections = [Section::LiteralOffsets, Section::LiteralRecords, Section::LiteralIndex];
        let literals = Half::new(literal_count, sections, &body);
        let (Some(vertices), Some(literals)) = (vertices, literals) else {
            return Err(body.damaged("its sections do not have the lengths that its counts ask for"));
        };
        Ok(Self { body, templates, vertices, literals, file_bytes })
    }

    /// A dictionary without terms.
    #[must_use]
    pub fn empty() -> Self {
        let image = DictionaryBuilder::new().finish().expect("nothing to outgrow the format");
        Self::open(Bytes::from(image), "empty dictionary").expect("an image just written is whole")
    }

    /// Number of IRIs and blank nodes.
    #[must_use]
    pub fn vertex_count(&self) -> u64 {
        self.vertices.terms
    }

    /// Number of literals that are not inside their ids.
    #[must_use]
    pub fn literal_count(&self) -> u64 {
        self.literals.terms
    }

    /// Sizes in bytes, by name.
    #[must_use]
    pub fn parts(&self) -> Vec<(&'static str, u64)> {
        let named = [
            ("templates", Section::Templates),
            ("vertex offsets", Section::VertexOffsets),
            ("vertex records", Section::VertexRecords),
            ("vertex index", Section::VertexIndex),
            ("literal offsets", Section::LiteralOffsets),
            ("literal records", Section::LiteralRecords),
            ("literal index", Section::LiteralIndex),
        ];
        let mut parts: Vec<_> = named.map(|(name, section)| (name, self.body.length(section) as u64)).into();
        let body: u64 = parts.iter().map(|(_, bytes)| bytes).sum();
        parts.push(("header and checksums", self.file_bytes - body));
        parts
    }

    /// The id of `term`; `None` if it has no entry. A value that fits inside an id always has one, an
    /// edge IRI too: whether that edge exists is for the caller to know. A triple term has none.
    ///
    /// # Errors
    /// Damaged file.
    pub fn lookup(&self, term: TermRef<'_>) -> Result<Option<Id>> {
        match term {
            TermRef::NamedNode(iri) => self.lookup_iri(iri.as_str()),
            TermRef::BlankNode(node) => self.lookup_blank(node.as_str()),
            TermRef::Literal(literal) => {
                with_literal_kind(literal, |kind| self.lookup_literal(literal.value(), kind))
            }
            _ => Ok(None),
        }
    }

    /// As [`Dictionary::lookup`] for an IRI.
    ///
    /// # Errors
    /// Damaged file.
    pub fn lookup_iri(&self, iri: &str) -> Result<Option<Id>> {
        self.lookup_place(&place_iri(iri, || hash_iri(iri)))
    }

    /// As [`Dictionary::lookup`] for a blank node by its label, without `_:`.
    ///
    /// # Errors
    /// Damaged file.
    pub fn lookup_blank(&self, label: &str) -> Result<Option<Id>> {
        self.lookup_place(&Place::Entry(blank_key(label, hash_blank(label))))
    }

    /// As [`Dictionary::lookup`] for a literal.
    ///
    /// # Errors
    /// Damaged file.
    pub fn lookup_literal(&self, value: &str, kind: LiteralKind<'_>) -> Result<Option<Id>> {
        self.lookup_place(&place_literal(value, kind, || hash_literal(value, kind)))
    }

    /// Calls `read` with the pieces of the term of `id`, of every kind but computed. `scratch` is
    /// working space to be kept between calls.
    ///
    /// # Errors
    /// Damaged file; an id that this dictionary never gave out.
    pub fn read_term(&self, id: Id, scratch: &mut String, read: &mut dyn FnMut(TermParts<'_>)) -> Result<()> {
        match id.tag() {
            Tag::Vertex | Tag::Literal => {
                let found = self.find(id)?;
                found.template.read(found.payload, scratch, read).ok_or_else(|| self.damaged_record(id))
            }
            _ => self.read_inside(id, scratch, read),
        }
    }

    /// Appends the N-Triples forms of the terms of `ids` to `out` and the end of each to `ends`.
    ///
    /// # Errors
    /// As [`Dictionary::read_term`]; `out` and `ends` then hold the terms before the one at fault, and
    /// perhaps a part of it.
    pub fn write_terms(&self, ids: &[Id], out: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<()> {
        let mut scratch = String::new();
        for batch in ids.chunks(WRITE_BATCH) {
            let mut found = [None; WRITE_BATCH];
            for (found, &id) in found.iter_mut().zip(batch) {
                if matches!(id.tag(), Tag::Vertex | Tag::Literal) {
                    *found = Some(self.find(id)?);
                }
            }
            for (found, &id) in found.iter().zip(batch) {
                match found {
                    Some(Found { template, payload }) => {
                        template.write_nt(payload, out).ok_or_else(|| self.damaged_record(id))?;
                    }
                    None => self.read_inside(id, &mut scratch, &mut |parts| parts.write_nt(out))?,
                }
                ends.push(out.len());
            }
        }
        Ok(())
    }

    /// Whether `id` is a blank node; `false` for everything but vertices.
    ///
    /// # Errors
    /// Damaged file; a vertex that this dictionary never gave out.
    pub fn is_blank(&self, id: Id) -> Result<bool> {
        Ok(id.is_vertex() && self.find(id)?.template.kind == TemplateKind::Blank)
    }

    pub(crate) fn damaged(&self, what: &str) -> Error {
        self.body.damaged(what)
    }

    pub(crate) fn body(&self) -> &Body {
        &self.body
    }

    /// Both halves, each with what makes an id of its numbers.
    pub(crate) fn halves(&self) -> [(&Half, MakeId); 2] {
        [(&self.vertices, Id::vertex), (&self.literals, Id::literal)]
    }

    #[cold]
    fn damaged_record(&self, id: Id) -> Error {
        self.damaged(&format!("the record of {id:?} cannot be read"))
    }

    /// The term of an id that holds it.
    fn read_inside(&self, id: Id, scratch: &mut String, read: &mut dyn FnMut(TermParts<'_>)) -> Result<()> {
        if id.tag() == Tag::Edge {
            read(TermParts::Edge(id.payload()));
            return Ok(());
        }
        let Some(value) = Inline::from_id(id) else { return Err(self.unknown(id)) };
        scratch.clear();
        value.write_lexical(scratch);
        let kind = match value.datatype() {
            XSD_STRING => LiteralKind::String,
            iri => LiteralKind::Typed(iri),
        };
        read(TermParts::Literal { head: scratch, tail: "", kind });
        Ok(())
    }

    #[cold]
    fn unknown(&self, id: Id) -> Error {
        Error::internal(format!("{} has no term for the id {id:?}", self.body.name()))
    }

    /// The record of a vertex or literal.
    #[inline]
    fn find(&self, id: Id) -> Result<Found<'_>> {
        let half = if id.is_vertex() { &self.vertices } else { &self.literals };
        self.find_in(half, id.payload())?.ok_or_else(|| self.unknown(id))
    }

    /// The record with this number; `None` if there are not so many.
    #[inline]
    fn find_in(&self, half: &Half, number: u64) -> Result<Option<Found<'_>>> {
        if number >= half.terms {
            return Ok(None);
        }
        // Below the number of terms, which fit the sections of this file.
        let (Ok(block), Ok(place)) =
            (usize::try_from(number / BLOCK_TERMS as u64), usize::try_from(number % BLOCK_TERMS as u64))
        else {
            return Ok(None);
        };
        let offset = self.body.get(half.offsets, block * half.offset_width, half.offset_width)?;
        // An offset that does not fit is behind the end, as is the largest.
        let start = usize::try_from(read_le(offset)).unwrap_or(usize::MAX);
        let lengths = self.body.get(half.records, start, BLOCK_TERMS)?;
        let mut at = start + BLOCK_TERMS;
        let mut sum = 0;
        let mut long = lengths[place] == LONG;
        for &length in &lengths[..place] {
            sum += usize::from(length);
            long |= length == LONG;
        }
        let mut length = usize::from(lengths[place]);
        if long {
            (at, length) = self.find_long(half, at, &lengths[..=place])?;
        } else {
            at += sum;
        }
        let mut payload = self.body.get(half.records, at, length)?;
        let template = read_varint(&mut payload)
            .and_then(|template| self.templates.get(usize::try_from(template).ok()?))
            .ok_or_else(|| self.damaged("a record has no template"))?;
        Ok(Some(Found { template, payload }))
    }

    /// Start and length of the last of the records with these lengths, some of which are long.
    fn find_long(&self, half: &Half, mut at: usize, lengths: &[u8]) -> Result<(usize, usize)> {
        let mut record = 0;
        for &length in lengths {
            at += record;
            record = usize::from(length);
            if length == LONG {
                let left = self.body.length(half.records).saturating_sub(at);
                let mut bytes = self.body.get(half.records, at, left.min(10))?;
                let before = bytes.len();
                let length = read_varint(&mut bytes).and_then(|length| usize::try_from(length).ok());
                record = length
                    .filter(|&length| length <= left)
                    .ok_or_else(|| self.damaged("a record is longer than its section"))?;
                at += before - bytes.len();
            }
        }
        Ok((at, record))
    }

    fn lookup_place(&self, place: &Place<'_>) -> Result<Option<Id>> {
        match place {
            Place::Inside(id) => Ok(Some(*id)),
            Place::Entry(key) => {
                let is_literal = matches!(key.kind, crate::key::Kind::Literal(_));
                let [vertices, literals] = self.halves();
                let (half, id) = if is_literal { literals } else { vertices };
                Ok(self.lookup_in(half, key)?.map(id))
            }
        }
    }

    fn lookup_in(&self, half: &Half, key: &Key<'_>) -> Result<Option<u64>> {
        let slot_bytes = half.index_width + 1;
        let mut slot = home_slot(key.hash, half.slots);
        for _ in 0..half.slots {
            // Below the number of slots, which fit the section.
            let at = usize::try_from(slot).unwrap_or(usize::MAX).saturating_mul(slot_bytes);
            let bytes = self.body.get(half.index, at, slot_bytes)?;
            let stored = read_le(&bytes[1..]);
            if stored == 0 {
                return Ok(None);
            }
            if bytes[0] == fingerprint(key.hash) {
                let number = stored - 1;
                let found = self.find_in(half, number)?;
                let found = found.ok_or_else(|| self.damaged("its index names a term that is not there"))?;
                let same = found.template.is(key, found.payload);
                if same.ok_or_else(|| self.damaged("a record cannot be read"))? {
                    return Ok(Some(number));
                }
            }
            slot = if slot + 1 == half.slots { 0 } else { slot + 1 };
        }
        Ok(None)
    }
}
