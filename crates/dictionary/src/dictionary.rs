//! The finished dictionary: an immutable map between ids and terms, read in place.
//!
//! # Shape
//! Vertices and literals are two tables with the same layout: blocks of [`BLOCK_TERMS`] records, the offset
//! of each block, and a hash index. A block is the lengths of its records, one byte each, and the records; a
//! record is the number of its template and the values of the template's slots.
//! # Invariants
//! 1. All returned data was checked: bounds, checksums (on first access to a block of the file), UTF-8.
//! 2. Damage is an error that names the file; never a panic and never another term.
//! # Cost
//! A term by id: two cache misses (offset, block), then some ns for each number or some dozen for a text. An
//! id by term: one miss in the index, then two for each candidate; one slot in 256 is a false candidate.
//! LUBM-40 (2026-11-20, a shared machine under load): adjacent ids 38 to 42 ns each, random ones 80 to 155,
//! an id by term 300 to 420 (the best of nine rounds in each of several runs).
//! # Source
//! DESIGN §2 and §3 (number templates).

use crate::blank_bits::BlankBits;
use crate::header::{self, Header, Section, order_bytes};
use crate::index_slots::{fingerprint, home_slot, index_width};
use crate::integers::{read_first_le, read_le};
use crate::key::{
    Key, Seed, TermKind, TermLocation, blank_key, locate_iri, locate_literal, with_literal_kind,
};
use crate::record_blocks::{BLOCK_OF, BLOCK_TERMS, RecordBlock, offset_width};
use crate::sections::Sections;
use crate::template::{self, Template, TemplateKind};
use crate::text_ranks::{Literals, TextRanks};
use oxrdf::TermRef;
use vervet_codec::read_varint;
use vervet_env::Bytes;
use vervet_model::{Error, Id, Inline, LiteralKind, Result, Tag, TermParts, triple_text};

/// Enough for two offsets of any width.
const OFFSETS_BYTES: usize = 16;
/// Number of index slots scanned together.
const PROBE_SLOTS: u64 = 16;
const XSD_STRING: &str = "http://www.w3.org/2001/XMLSchema#string";

/// The map between ids and terms, immutable. See the header of this file.
#[derive(Debug)]
pub struct Dictionary {
    image: Bytes,
    sections: Sections,
    templates: Vec<Template>,
    vertices: TermTable,
    literals: TermTable,
    /// Buffer size for the largest term with numbers, in bytes.
    nt_bytes_max: usize,
    /// Which vertices are blank nodes; `None`: there are none.
    blanks: Option<BlankBits>,
    text_ranks: TextRanks,
    has_triples: bool,
    file_bytes: u64,
    /// Seed of the hashes in its indices.
    seed: Seed,
    /// Whether the file has an old version.
    is_old: bool,
}

/// Vertices or literals.
#[derive(Debug)]
pub(crate) struct TermTable {
    pub(crate) terms: u64,
    pub(crate) index: Section,
    pub(crate) offsets: Section,
    pub(crate) records: Section,
    offset_width: usize,
    index_width: usize,
    /// Number of home slots (slots in which searches begin).
    pub(crate) slots: u64,
    /// Total number of slots.
    slots_end: u64,
    /// Whether a search wraps around from the last slot to the first.
    wraps: bool,
}

/// Converts the number of a term to its id.
type MakeId = fn(u64) -> Id;

impl std::fmt::Debug for Section {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "section {}", *self as usize)
    }
}

/// A record before decoding.
#[derive(Clone, Copy)]
pub(crate) struct EncodedTerm<'a> {
    pub(crate) template: &'a Template,
    pub(crate) payload: &'a [u8],
}

impl TermTable {
    fn new(header: &Header, of: usize, sections: &Sections) -> Option<Self> {
        let (terms, [offsets, records, index]) = match of {
            0 => (header.vertices, [Section::VertexOffsets, Section::VertexRecords, Section::VertexIndex]),
            _ => (header.literals, [Section::LiteralOffsets, Section::LiteralRecords, Section::LiteralIndex]),
        };
        let (slots, slot_bytes) = (header.slots[of], index_width(terms) + 1);
        let table = Self {
            terms,
            index,
            offsets,
            records,
            offset_width: offset_width(sections.length(records)),
            index_width: index_width(terms),
            slots,
            slots_end: (sections.length(index) / slot_bytes) as u64,
            wraps: header.wraps,
        };
        // The sections exist, so their lengths bound this product if the counts are correct.
        let blocks = usize::try_from(terms.div_ceil(BLOCK_TERMS as u64)).ok()?;
        let offsets_bytes = blocks.checked_mul(table.offset_width)?;
        let right_slots = if table.wraps { slots == table.slots_end } else { slots <= table.slots_end };
        let right = sections.length(offsets) == offsets_bytes
            && sections.length(index).is_multiple_of(slot_bytes)
            && right_slots
            && table.slots_end >= terms
            && (slots > 0 || table.slots_end == 0);
        right.then_some(table)
    }
}

impl Dictionary {
    /// Opens the image of a file; `name` identifies it in errors. Reads the header and the templates; the
    /// rest is verified on first access.
    ///
    /// # Errors
    /// Damaged, or written by a newer version.
    pub fn open(bytes: Bytes, name: &str) -> Result<Self> {
        let file_bytes = bytes.len() as u64;
        let image = bytes.clone();
        let layout = header::read(&bytes, name)?;
        let header = layout.header;
        let sections = Sections::new(layout, name);
        let templates = template::read_all(sections.all(Section::Templates)?)
            .ok_or_else(|| sections.damaged("its templates cannot be read"))?;
        let tables = [0, 1].map(|of| TermTable::new(&header, of, &sections));
        let order_fits = order_bytes(header.literals) == Some(sections.length(Section::LiteralOrder));
        let ([Some(vertices), Some(literals)], true) = (tables, order_fits) else {
            return Err(sections.damaged("the lengths of its sections do not match its counts"));
        };
        let nt_bytes_max = templates.iter().map(Template::nt_bytes_max).max().unwrap_or(0);
        let has_blanks = templates.iter().any(|template| template.kind == TemplateKind::Blank);
        let blanks = has_blanks.then(|| BlankBits::new(vertices.terms));
        let has_triples = templates.iter().any(|template| template.kind == TemplateKind::Triple);
        let (seed, is_old) = (header.seed, header.wraps);
        Ok(Self {
            image,
            sections,
            templates,
            vertices,
            literals,
            nt_bytes_max,
            blanks,
            text_ranks: TextRanks::default(),
            has_triples,
            file_bytes,
            seed,
            is_old,
        })
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
            ("literal order", Section::LiteralOrder),
            ("literal words", Section::LiteralWords),
        ];
        let mut parts: Vec<_> =
            named.map(|(name, section)| (name, self.sections.length(section) as u64)).into();
        let sections_bytes: u64 = parts.iter().map(|(_, bytes)| bytes).sum();
        parts.push(("header and checksums", self.file_bytes - sections_bytes));
        parts
    }

    /// The image that it was opened from.
    #[must_use]
    pub fn image(&self) -> Bytes {
        self.image.clone()
    }

    /// The id of `term`; `None` if it has no entry. A value that fits inside an id always has one, and so
    /// does an edge IRI, whether or not that edge exists. A triple term that is nested too deep has none.
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
            TermRef::Triple(triple) => match triple_text(triple.as_ref()) {
                Some(text) => self.lookup_literal(&text, LiteralKind::Triple),
                None => Ok(None),
            },
        }
    }

    /// [`Dictionary::lookup`] for an IRI.
    ///
    /// # Errors
    /// Damaged file.
    pub fn lookup_iri(&self, iri: &str) -> Result<Option<Id>> {
        self.lookup_location(&locate_iri(iri, || self.seed.hash(TermKind::Iri, iri.as_bytes())))
    }

    /// [`Dictionary::lookup`] for a blank node by its label, without `_:`.
    ///
    /// # Errors
    /// Damaged file.
    pub fn lookup_blank(&self, label: &str) -> Result<Option<Id>> {
        let hash = self.seed.hash(TermKind::Blank, label.as_bytes());
        self.lookup_location(&TermLocation::Entry(blank_key(label, hash)))
    }

    /// [`Dictionary::lookup`] for a literal.
    ///
    /// # Errors
    /// Damaged file.
    pub fn lookup_literal(&self, value: &str, kind: LiteralKind<'_>) -> Result<Option<Id>> {
        let hash = || self.seed.hash(TermKind::Literal(kind), value.as_bytes());
        self.lookup_location(&locate_literal(value, kind, hash))
    }

    /// [`Dictionary::lookup`] for a term in parts, whose text is `text`.
    pub(crate) fn lookup_parts(&self, parts: TermParts<'_>, text: &str) -> Result<Option<Id>> {
        match parts {
            TermParts::Blank(_) => self.lookup_blank(text),
            TermParts::Literal { kind, .. } => self.lookup_literal(text, kind),
            _ => self.lookup_iri(text),
        }
    }

    /// Calls `read` with the parts of the term of `id`, of every kind but computed. `scratch` is working
    /// space to be kept between calls.
    ///
    /// # Errors
    /// Damaged file; an id that this dictionary never assigned.
    pub fn read_term(&self, id: Id, scratch: &mut String, read: &mut dyn FnMut(TermParts<'_>)) -> Result<()> {
        match id.tag() {
            Tag::Vertex | Tag::Literal => {
                let found = self.find(id)?;
                found.template.read(found.payload, scratch, read).ok_or_else(|| self.damaged_record(id))
            }
            _ => self.read_inside(id, scratch, read),
        }
    }

    /// Prefetches the blocks of these ids, so that their cache misses overlap; the work of [`find`] between
    /// two loads would prevent that. One million random vertices of LUBM-40, two runs of each: 144 and 166 ns
    /// without this, 95 and 125 with it; adjacent ids: 38 and 37, 42 and 40 (2026-11-20, a shared machine
    /// under load).
    ///
    /// [`find`]: Dictionary::find
    #[inline]
    pub(crate) fn touch(&self, batch: &[Id]) {
        let mut touched = 0;
        for &id in batch {
            let table = match id.tag() {
                Tag::Vertex => &self.vertices,
                Tag::Literal => &self.literals,
                _ => continue,
            };
            touched ^= self.sections.touch_block(
                table.offsets,
                table.records,
                id.payload() / BLOCK_TERMS as u64,
                table.offset_width,
            );
        }
        // Keeps the compiler from removing the unused loads.
        std::hint::black_box(touched);
    }

    /// Whether `id` is a blank node; `false` for everything but vertices.
    ///
    /// # Errors
    /// Damaged file; a vertex that this dictionary never assigned.
    pub fn is_blank(&self, id: Id) -> Result<bool> {
        match &self.blanks {
            Some(blanks) if id.is_vertex() && self.has(id) => {
                blanks.is_set(id.payload(), |number| self.blanks_of_block(number))
            }
            _ if id.is_vertex() && !self.has(id) => Err(self.unknown(id)),
            _ => Ok(false),
        }
    }

    /// Whether there may be blank nodes.
    #[must_use]
    pub fn has_blanks(&self) -> bool {
        self.blanks.is_some()
    }

    /// The blank nodes in a block of vertices, as bits.
    fn blanks_of_block(&self, number: u64) -> Result<u16> {
        self.kind_of_block(&self.vertices, number, TemplateKind::Blank)
    }

    /// The literals of type `xsd:string` in a block, as bits.
    fn strings_of_block(&self, number: u64) -> Result<u16> {
        self.kind_of_block(&self.literals, number, TemplateKind::String)
    }

    /// The terms of a kind in a block, as bits.
    fn kind_of_block(&self, table: &TermTable, number: u64, kind: TemplateKind) -> Result<u16> {
        let first = number * BLOCK_OF;
        let terms = table.terms.saturating_sub(first).min(BLOCK_OF);
        let block = self.block(table, number)?;
        (0..terms).try_fold(0, |bits, place| {
            let is_it = self.record_of(&block, first + place)?.template.kind == kind;
            Ok(bits | u16::from(is_it) << place)
        })
    }

    /// The rank of a string: of two strings that have one, the lesser text has the lesser rank. `None` for
    /// other literals, and while ranks are not known. Ranks become known by requests.
    ///
    /// # Errors
    /// Damaged file.
    #[inline]
    pub fn text_rank(&self, literal: Id) -> Result<Option<u64>> {
        let literals = Literals {
            count: self.literals.terms,
            at: |position| self.literal_at(position).map(Id::payload),
            strings: |block| self.strings_of_block(block),
        };
        self.text_ranks.rank(literal.payload(), &literals)
    }

    /// Whether `id` is an `xsd:string`; does not read its text.
    ///
    /// # Errors
    /// Damaged file; a literal that this dictionary never assigned.
    pub fn is_plain_text(&self, id: Id) -> Result<bool> {
        Ok(match id.tag() {
            Tag::ShortString => true,
            Tag::Literal => self.find(id)?.template.kind == TemplateKind::String,
            _ => false,
        })
    }

    /// Calls `read` with the kind of a literal, without reading its text; `None`: another term.
    ///
    /// # Errors
    /// Damaged file; a literal that this dictionary never assigned.
    pub fn read_literal_kind(&self, id: Id, read: &mut dyn FnMut(Option<LiteralKind<'_>>)) -> Result<()> {
        if id.tag() != Tag::Literal {
            return self.read_term(id, &mut String::new(), &mut |parts| {
                read(match parts {
                    TermParts::Literal { kind, .. } => Some(kind),
                    _ => None,
                });
            });
        }
        let found = self.find(id)?;
        let kind = found.template.literal_kind(found.payload);
        read(Some(kind.ok_or_else(|| self.damaged_record(id))?));
        Ok(())
    }

    /// Whether some literal is a triple term.
    #[must_use]
    pub fn has_triple_terms(&self) -> bool {
        self.has_triples
    }

    /// The seed of the hashes in the file.
    pub(crate) fn seed(&self) -> Seed {
        self.seed
    }

    /// Whether the file has an old version.
    pub(crate) fn is_old(&self) -> bool {
        self.is_old
    }

    /// The hash of the term of a vertex or literal.
    pub(crate) fn hash_of(&self, id: Id, scratch: &mut [String; 2]) -> Result<u64> {
        let [scratch, text] = scratch;
        let mut hash = 0;
        self.read_term(id, scratch, &mut |parts| {
            text.clear();
            parts.write_str(text);
            let kind = match parts {
                TermParts::Blank(_) => TermKind::Blank,
                TermParts::Literal { kind, .. } => TermKind::Literal(kind),
                _ => TermKind::Iri,
            };
            hash = self.seed.hash(kind, text.as_bytes());
        })?;
        Ok(hash)
    }

    pub(crate) fn damaged(&self, what: &str) -> Error {
        self.sections.damaged(what)
    }

    pub(crate) fn sections(&self) -> &Sections {
        &self.sections
    }

    /// Both tables, each with the constructor of its ids.
    pub(crate) fn tables(&self) -> [(&TermTable, MakeId); 2] {
        [(&self.vertices, Id::vertex), (&self.literals, Id::literal)]
    }

    #[cold]
    pub(crate) fn damaged_record(&self, id: Id) -> Error {
        self.damaged(&format!("the record of {id:?} cannot be read"))
    }

    /// Reads the term of an id that contains its value.
    pub(crate) fn read_inside(
        &self,
        id: Id,
        scratch: &mut String,
        read: &mut dyn FnMut(TermParts<'_>),
    ) -> Result<()> {
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
        Error::internal(format!("{} has no term for the id {id:?}", self.sections.name()))
    }

    /// The record of a vertex or literal.
    #[inline]
    fn find(&self, id: Id) -> Result<EncodedTerm<'_>> {
        self.find_in(self.table_of(id), id.payload())?.ok_or_else(|| self.unknown(id))
    }

    /// Whether this dictionary has the vertex or literal.
    #[inline]
    pub(crate) fn has(&self, id: Id) -> bool {
        id.payload() < self.table_of(id).terms
    }

    #[inline]
    fn table_of(&self, id: Id) -> &TermTable {
        if id.is_vertex() { &self.vertices } else { &self.literals }
    }

    /// The block with the record of a vertex or literal.
    pub(crate) fn block_of(&self, id: Id) -> Result<RecordBlock<'_>> {
        if !self.has(id) {
            return Err(self.unknown(id));
        }
        self.block(self.table_of(id), id.payload() / BLOCK_OF)
    }

    /// Buffer size for the largest term with numbers, in bytes.
    pub(crate) fn nt_bytes_max(&self) -> usize {
        self.nt_bytes_max
    }

    /// The record with this number; `None` if it is too large.
    #[inline]
    fn find_in(&self, table: &TermTable, number: u64) -> Result<Option<EncodedTerm<'_>>> {
        if number >= table.terms {
            return Ok(None);
        }
        let block = self.block(table, number / BLOCK_TERMS as u64)?;
        self.record_of(&block, number).map(Some)
    }

    /// The block with this number, which must exist.
    #[inline]
    fn block<'a>(&'a self, table: &TermTable, block: u64) -> Result<RecordBlock<'a>> {
        // Below the number of blocks, whose offsets fit the sections of this file; a larger result is out of
        // bounds.
        let at = usize::try_from(block).unwrap_or(usize::MAX).saturating_mul(table.offset_width);
        let left = self.sections.length(table.offsets).saturating_sub(at);
        let offsets = self.sections.get(table.offsets, at, left.min(OFFSETS_BYTES))?;
        // An offset that does not fit is out of bounds, as is the largest.
        let start = usize::try_from(read_first_le(offsets, table.offset_width)).unwrap_or(usize::MAX);
        let end = match offsets.get(table.offset_width..) {
            Some(next) if !next.is_empty() => {
                usize::try_from(read_first_le(next, table.offset_width)).unwrap_or(usize::MAX)
            }
            _ => self.sections.length(table.records),
        };
        let bytes = self.sections.get(table.records, start, end.saturating_sub(start))?;
        RecordBlock::new(bytes).ok_or_else(|| self.damaged_block())
    }

    /// Start of a block in the section of records; after the last block, the end of the section.
    pub(crate) fn block_start(&self, table: &TermTable, block: u64) -> Result<u64> {
        // Lossless: the section is in memory.
        let at = usize::try_from(block).unwrap_or(usize::MAX).saturating_mul(table.offset_width);
        if at >= self.sections.length(table.offsets) {
            return Ok(self.sections.length(table.records) as u64);
        }
        Ok(read_le(self.sections.get(table.offsets, at, table.offset_width)?))
    }

    /// The bytes of the record with this number, which must exist.
    pub(crate) fn raw_record(&self, table: &TermTable, number: u64) -> Result<&[u8]> {
        let place = usize::from(number.to_le_bytes()[0]) % BLOCK_TERMS;
        self.block(table, number / BLOCK_OF)?.record(place).ok_or_else(|| self.damaged_block())
    }

    /// The record of a term in its block.
    #[inline]
    pub(crate) fn record_of<'a>(&'a self, block: &RecordBlock<'a>, number: u64) -> Result<EncodedTerm<'a>> {
        let place = usize::from(number.to_le_bytes()[0]) % BLOCK_TERMS;
        let Some(mut payload) = block.record(place) else { return Err(self.damaged_block()) };
        let template = read_varint(&mut payload)
            .and_then(|template| self.templates.get(usize::try_from(template).ok()?))
            .ok_or_else(|| self.damaged("a record has no template"))?;
        Ok(EncodedTerm { template, payload })
    }

    #[cold]
    fn damaged_block(&self) -> Error {
        self.damaged("a block of records cannot be read")
    }

    fn lookup_location(&self, place: &TermLocation<'_>) -> Result<Option<Id>> {
        match place {
            TermLocation::Inline(id) => Ok(Some(*id)),
            TermLocation::Entry(key) => {
                let is_literal = matches!(key.kind, TermKind::Literal(_));
                let [vertices, literals] = self.tables();
                let (table, id) = if is_literal { literals } else { vertices };
                Ok(self.lookup_in(table, key)?.map(id))
            }
        }
    }

    fn lookup_in(&self, table: &TermTable, key: &Key<'_>) -> Result<Option<u64>> {
        let slot_bytes = table.index_width + 1;
        let home = home_slot(key.hash, table.slots);
        let around = if table.wraps { home } else { 0 };
        for (mut slot, end) in [(home, table.slots_end), (0, around)] {
            while slot < end {
                // Several slots at once. Lossless: they fit the section.
                let count = (end - slot).min(PROBE_SLOTS);
                let start = usize::try_from(slot).unwrap_or(usize::MAX).saturating_mul(slot_bytes);
                let length = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(slot_bytes);
                for bytes in self.sections.get(table.index, start, length)?.chunks_exact(slot_bytes) {
                    let (print, stored) = (bytes[0], &bytes[1..]);
                    if print == fingerprint(key.hash) || print == 0 {
                        let stored = read_le(stored);
                        if stored == 0 {
                            return Ok(None);
                        }
                        if print == fingerprint(key.hash) && self.has_key(table, stored - 1, key)? {
                            return Ok(Some(stored - 1));
                        }
                    }
                }
                slot += count;
            }
        }
        Ok(None)
    }

    fn has_key(&self, table: &TermTable, number: u64, key: &Key<'_>) -> Result<bool> {
        let found = self.find_in(table, number)?;
        let found = found.ok_or_else(|| self.damaged("its index names a term that does not exist"))?;
        found.template.is(key, found.payload).ok_or_else(|| self.damaged("a record cannot be read"))
    }
}
