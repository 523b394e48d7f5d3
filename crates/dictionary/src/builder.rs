//! The dictionary builder: interns terms during a load, which makes it the hot path of loading.
//!
//! # Shape
//! `arena`: one record for each term in order of first occurrence: number (4 bytes), kind and length (LEB128,
//! usually a byte each), text. `slots`: open addressing with linear probing; a slot is 24 low bits of the
//! hash and 40 bits of `offset in the arena + 1`; 0 is empty. The high bits of the hash choose the slot.
//! # Invariants
//! 1. Vertices and literals are numbered densely from 0, each in the order of the arena.
//! 2. At most 3/4 of the slots are full.
//! # Cost
//! A known term: one cache miss for its slot, one or two for its record; a caller that knows some terms ahead
//! (`prefetch`) overlaps the misses of 16. Memory: the text, 6 bytes, and 11 to 21 bytes of slots for each
//! term. The arena doubles; what is reserved is not touched. While it or the slots grow, the old half may
//! coexist with the new; hashes are recomputed then, since storing them would cost 8 bytes a term.
//! # Not here
//! Encoding of the finished dictionary (see `encode`).

use crate::key::{
    Key, Seed, TermKind, TermLocation, blank_key, locate_iri, locate_literal, too_deep, with_literal_kind,
};
use crate::{hash_blank, hash_iri, hash_literal};
use foldhash::quality::RandomState;
use oxrdf::TermRef;
use std::collections::HashMap;
use std::ops::Range;
use vervet_codec::{VARINT_BYTES_MAX, read_varint, write_varint};
use vervet_model::{Error, ErrorKind, Id, Inline, LiteralKind, Result, TermParts, triple_text};

const OFFSET_BITS: u32 = 40;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;
const SLOTS_MIN: usize = 1 << 8;
/// Number of terms prefetched together: about as many misses as a core can have in flight.
const AHEAD: usize = 16;
/// Size of the record of an IRI of usual length.
const RECORD_BYTES_USUAL: usize = 40;
/// Bytes of a number in a record.
const NUMBER_BYTES: usize = 4;
/// The least growth step of the arena: a page.
const GROWTH_BYTES_MIN: usize = 1 << 12;
/// Maximum length of a term, in bytes.
const TEXT_BYTES_MAX: usize = 1 << 30;

pub(crate) const KIND_IRI: u32 = 0;
pub(crate) const KIND_BLANK: u32 = 1;
pub(crate) const KIND_STRING: u32 = 2;
pub(crate) const KIND_TRIPLE: u32 = 3;
/// Kinds from here on are indices into [`DictionaryBuilder::kinds`].
pub(crate) const KIND_FIRST_OWN: u32 = 4;

/// Numbers terms in order of first occurrence. See the header of this file.
#[derive(Debug)]
pub struct DictionaryBuilder {
    arena: Vec<u8>,
    slots: Vec<u64>,
    shift: u32,
    kinds: Vec<LiteralDetail>,
    kind_numbers: HashMap<LiteralDetail, u32, RandomState>,
    vertices: u32,
    literals: u32,
    /// Whether the file gets an index of words.
    words: bool,
    /// Whether blank nodes occur.
    has_blanks: bool,
    /// Whether triple terms occur.
    has_triples: bool,
    /// Seed of the hashes in the file.
    seed: Seed,
    /// Working space.
    text: String,
}

/// A language tag or datatype.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct LiteralDetail {
    pub(crate) is_language: bool,
    pub(crate) detail: String,
}

/// A range of consecutive terms.
pub(crate) struct TermChunk {
    arena: Range<usize>,
    /// Indices among all terms.
    pub(crate) terms: Range<usize>,
}

/// A term in the arena.
#[derive(Clone, Copy)]
pub(crate) struct ArenaRecord<'a> {
    pub(crate) number: u32,
    pub(crate) kind: u32,
    /// UTF-8.
    pub(crate) text: &'a [u8],
    /// Size of the whole record in the arena.
    pub(crate) bytes: usize,
}

impl ArenaRecord<'_> {
    pub(crate) fn is_vertex(&self) -> bool {
        self.kind <= KIND_BLANK
    }

    pub(crate) fn id(&self) -> Id {
        let number = u64::from(self.number);
        if self.is_vertex() { Id::vertex(number) } else { Id::literal(number) }
    }
}

impl Default for DictionaryBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl DictionaryBuilder {
    /// An empty builder.
    #[must_use]
    pub fn new() -> Self {
        Self {
            arena: Vec::new(),
            slots: vec![0; SLOTS_MIN],
            shift: u64::BITS - SLOTS_MIN.trailing_zeros(),
            kinds: Vec::new(),
            kind_numbers: HashMap::default(),
            vertices: 0,
            literals: 0,
            words: false,
            has_blanks: false,
            has_triples: false,
            seed: Seed::random(),
            text: String::new(),
        }
    }

    /// Sets the seed of the hashes in the file's index, which is random by default. Equal terms and seeds
    /// give equal files.
    pub fn set_seed(&mut self, seed: u64) {
        self.seed = Seed(seed);
    }

    /// Seed of the hashes in the file's index.
    pub(crate) fn seed(&self) -> Seed {
        self.seed
    }

    /// Adds an index of the words of its literals to the file, for [`crate::Dictionary::search`]; files
    /// extended from it have one, too.
    pub fn index_words(&mut self) {
        self.words = true;
    }

    /// Whether the file gets an index of words.
    pub(crate) fn has_words(&self) -> bool {
        self.words
    }

    /// Whether blank nodes occur.
    pub(crate) fn has_blanks(&self) -> bool {
        self.has_blanks
    }

    /// Whether triple terms occur.
    pub(crate) fn has_triples(&self) -> bool {
        self.has_triples
    }

    /// The id of an IRI, a new one on its first occurrence; edge IRIs are [`Id::edge`] and have no entry.
    ///
    /// # Errors
    /// Too long a term, or too many.
    pub fn intern_iri(&mut self, iri: &str) -> Result<Id> {
        match locate_iri(iri, || hash_iri(iri)) {
            TermLocation::Inline(id) => Ok(id),
            TermLocation::Entry(key) => self.intern(&key),
        }
    }

    /// The id of a blank node by its label, without `_:`.
    ///
    /// # Errors
    /// As [`DictionaryBuilder::intern_iri`].
    pub fn intern_blank(&mut self, label: &str) -> Result<Id> {
        self.intern(&blank_key(label, hash_blank(label)))
    }

    /// The id of a literal; a literal that fits inside an id has no entry.
    ///
    /// # Errors
    /// As [`DictionaryBuilder::intern_iri`].
    pub fn intern_literal(&mut self, value: &str, kind: LiteralKind<'_>) -> Result<Id> {
        match locate_literal(value, kind, || hash_literal(value, kind)) {
            TermLocation::Inline(id) => Ok(id),
            TermLocation::Entry(key) => self.intern(&key),
        }
    }

    /// The id of the literal of a value, without formatting and parsing numbers and booleans.
    ///
    /// # Errors
    /// As [`DictionaryBuilder::intern_iri`].
    pub fn intern_value(&mut self, value: Inline) -> Result<Id> {
        if let Inline::Integer(_) | Inline::Int(_) | Inline::Long(_) | Inline::Boolean(_) = value
            && let Some(id) = value.to_id()
        {
            return Ok(id);
        }
        let mut lexical = String::new();
        value.write_lexical(&mut lexical);
        self.intern_literal(&lexical, LiteralKind::Typed(value.datatype()))
    }

    /// [`DictionaryBuilder::intern_iri`] with a precomputed [`hash_iri`]. A wrong hash makes a second entry
    /// for an existing term.
    ///
    /// # Errors
    /// As [`DictionaryBuilder::intern_iri`].
    pub fn intern_iri_hashed(&mut self, iri: &str, hash: u64) -> Result<Id> {
        match locate_iri(iri, || hash) {
            TermLocation::Inline(id) => Ok(id),
            TermLocation::Entry(key) => self.intern(&key),
        }
    }

    /// [`DictionaryBuilder::intern_blank`] with a precomputed [`hash_blank`].
    ///
    /// # Errors
    /// As [`DictionaryBuilder::intern_iri`].
    pub fn intern_blank_hashed(&mut self, label: &str, hash: u64) -> Result<Id> {
        self.intern(&blank_key(label, hash))
    }

    /// [`DictionaryBuilder::intern_literal`] with a precomputed [`hash_literal`].
    ///
    /// # Errors
    /// As [`DictionaryBuilder::intern_iri`].
    pub fn intern_literal_hashed(&mut self, value: &str, kind: LiteralKind<'_>, hash: u64) -> Result<Id> {
        match locate_literal(value, kind, || hash) {
            TermLocation::Inline(id) => Ok(id),
            TermLocation::Entry(key) => self.intern(&key),
        }
    }

    /// The id of any term.
    ///
    /// # Errors
    /// As [`DictionaryBuilder::intern_iri`]; a triple term that is nested too deep.
    pub fn intern_term(&mut self, term: TermRef<'_>) -> Result<Id> {
        match term {
            TermRef::NamedNode(iri) => self.intern_iri(iri.as_str()),
            TermRef::BlankNode(node) => self.intern_blank(node.as_str()),
            TermRef::Literal(literal) => {
                with_literal_kind(literal, |kind| self.intern_literal(literal.value(), kind))
            }
            TermRef::Triple(triple) => {
                let text = triple_text(triple.as_ref()).ok_or_else(too_deep)?;
                self.intern_literal(&text, LiteralKind::Triple)
            }
        }
    }

    /// The id of a term in parts.
    ///
    /// # Errors
    /// As [`DictionaryBuilder::intern_iri`].
    pub fn intern_parts(&mut self, parts: TermParts<'_>) -> Result<Id> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        parts.write_str(&mut text);
        let interned = match parts {
            TermParts::Blank(_) => self.intern_blank(&text),
            TermParts::Literal { kind, .. } => self.intern_literal(&text, kind),
            _ => self.intern_iri(&text),
        };
        self.text = text;
        interned
    }

    /// Prefetches the memory for looking up terms with these hashes: call it with about 16 hashes, then
    /// intern their terms.
    pub fn prefetch(&self, hashes: &[u64]) {
        let mut touched = 0_u8;
        for batch in hashes.chunks(AHEAD) {
            // Independent loads, so that all cache misses of a loop are in flight at once.
            let mut offsets = [0_u64; AHEAD];
            for (offset, &hash) in offsets.iter_mut().zip(batch) {
                *offset = self.slots[self.home(hash)];
            }
            for (offset, &hash) in offsets.iter_mut().zip(batch) {
                *offset = self.likely(*offset, hash) & OFFSET_MASK;
            }
            for offset in offsets {
                let at = usize::try_from(offset).unwrap_or(usize::MAX);
                // Most records are shorter than a cache line, but may begin anywhere in one.
                for at in [at, at.saturating_add(RECORD_BYTES_USUAL)] {
                    touched ^= self.arena.get(at).copied().unwrap_or_default();
                }
            }
        }
        // Keeps the compiler from removing the unused loads.
        std::hint::black_box(touched);
    }

    /// The first slot from `home`, the first slot of the hash, whose hash bits match; an empty slot if there
    /// is none.
    fn likely(&self, home: u64, hash: u64) -> u64 {
        let mask = self.slots.len() - 1;
        let (mut slot, mut at) = (home, self.home(hash));
        while slot != 0 && slot >> OFFSET_BITS != hash & (u64::MAX >> OFFSET_BITS) {
            at = (at + 1) & mask;
            slot = self.slots[at];
        }
        slot
    }

    /// Number of IRIs and blank nodes.
    #[must_use]
    pub fn vertex_count(&self) -> u64 {
        u64::from(self.vertices)
    }

    /// Number of literals that are not inside their ids.
    #[must_use]
    pub fn literal_count(&self) -> u64 {
        u64::from(self.literals)
    }

    /// Memory in use, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.arena.len() + self.slots.capacity() * 8
    }

    /// All terms in order of first occurrence.
    pub(crate) fn records(&self) -> impl Iterator<Item = ArenaRecord<'_>> {
        self.records_in(0..self.arena.len())
    }

    /// The terms whose records begin in this range of the arena, whose start is that of a record.
    fn records_in(&self, arena: Range<usize>) -> impl Iterator<Item = ArenaRecord<'_>> {
        let mut at = arena.start;
        std::iter::from_fn(move || {
            let record = self.record(at).filter(|_| at < arena.end)?;
            at += record.bytes;
            Some(record)
        })
    }

    /// The terms whose records begin at this place or behind it.
    pub(crate) fn records_from(&self, at: usize) -> impl Iterator<Item = ArenaRecord<'_>> {
        self.records_in(at.min(self.arena.len())..self.arena.len())
    }

    /// The terms of a piece.
    pub(crate) fn records_of(&self, piece: &TermChunk) -> impl Iterator<Item = ArenaRecord<'_>> {
        self.records_in(piece.arena.clone())
    }

    /// All terms cut into about `count` pieces of equal size.
    pub(crate) fn pieces(&self, count: usize) -> Vec<TermChunk> {
        let size = (self.arena.len() / count.max(1)).max(1);
        let mut pieces = Vec::new();
        let (mut at, mut term) = (0, 0);
        let mut piece = TermChunk { arena: 0..0, terms: 0..0 };
        for record in self.records() {
            if at - piece.arena.start >= size {
                pieces.push(TermChunk { arena: piece.arena.start..at, terms: piece.terms.start..term });
                piece = TermChunk { arena: at..at, terms: term..term };
            }
            at += record.bytes;
            term += 1;
        }
        pieces.push(TermChunk { arena: piece.arena.start..at, terms: piece.terms.start..term });
        pieces
    }

    /// Offsets of the records of literals, in order of first occurrence.
    pub(crate) fn literal_places(&self) -> impl Iterator<Item = u64> {
        let mut at = 0;
        self.records().filter_map(move |record| {
            let place = at;
            at += record.bytes;
            (!record.is_vertex()).then_some(place as u64)
        })
    }

    /// The text of the record at an offset.
    pub(crate) fn text_at(&self, place: u64) -> &[u8] {
        self.record(usize::try_from(place).unwrap_or(usize::MAX)).map_or(&[], |record| record.text)
    }

    /// The number of the record at an offset.
    pub(crate) fn number_at(&self, place: u64) -> u32 {
        self.record(usize::try_from(place).unwrap_or(usize::MAX)).map_or(0, |record| record.number)
    }

    /// The language tag or datatype of a kind number.
    pub(crate) fn own_kind(&self, kind: u32) -> Option<&LiteralDetail> {
        self.kinds.get(kind.checked_sub(KIND_FIRST_OWN)? as usize)
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        // Lossless: only as many high bits as there are slots.
        usize::try_from(hash >> self.shift).unwrap_or_default()
    }

    /// The record at this offset; `None` at the end of the arena.
    #[inline]
    fn record(&self, at: usize) -> Option<ArenaRecord<'_>> {
        let start = self.arena.get(at..)?;
        if let [a, b, c, d, kind @ ..0x80, length @ ..0x80, rest @ ..] = start {
            let text = rest.get(..usize::from(*length))?;
            let number = u32::from_le_bytes([*a, *b, *c, *d]);
            return Some(ArenaRecord {
                number,
                kind: u32::from(*kind),
                text,
                bytes: NUMBER_BYTES + 2 + text.len(),
            });
        }
        Self::long_record(start)
    }

    /// Decodes a record whose kind or length takes more than a byte.
    #[cold]
    fn long_record(start: &[u8]) -> Option<ArenaRecord<'_>> {
        let (number, mut rest) = start.split_first_chunk::<NUMBER_BYTES>()?;
        let kind = u32::try_from(read_varint(&mut rest)?).ok()?;
        let length = usize::try_from(read_varint(&mut rest)?).ok()?;
        let text = rest.get(..length)?;
        let bytes = start.len() - rest.len() + length;
        Some(ArenaRecord { number: u32::from_le_bytes(*number), kind, text, bytes })
    }

    /// The hash of the term of a record.
    pub(crate) fn hash_of(&self, record: &ArenaRecord<'_>, seed: Seed) -> u64 {
        let kind = match (record.kind, self.own_kind(record.kind)) {
            (KIND_IRI, _) => TermKind::Iri,
            (KIND_BLANK, _) => TermKind::Blank,
            (KIND_TRIPLE, _) => TermKind::Literal(LiteralKind::Triple),
            (_, Some(own)) if own.is_language => TermKind::Literal(LiteralKind::Language(&own.detail)),
            (_, Some(own)) => TermKind::Literal(LiteralKind::Typed(&own.detail)),
            (_, None) => TermKind::Literal(LiteralKind::String),
        };
        seed.hash(kind, record.text)
    }

    /// The id at `slot` if its term is `key`.
    #[inline]
    fn matches(&self, slot: u64, key: &Key<'_>) -> Option<Id> {
        if (slot >> OFFSET_BITS) != (key.hash & (u64::MAX >> OFFSET_BITS)) {
            return None;
        }
        let record = self.record(usize::try_from((slot & OFFSET_MASK) - 1).ok()?)?;
        let same_kind = match key.kind {
            TermKind::Iri => record.kind == KIND_IRI,
            TermKind::Blank => record.kind == KIND_BLANK,
            TermKind::Literal(LiteralKind::String) => record.kind == KIND_STRING,
            TermKind::Literal(LiteralKind::Triple) => record.kind == KIND_TRIPLE,
            TermKind::Literal(LiteralKind::Language(tag)) => {
                self.own_kind(record.kind).is_some_and(|own| own.is_language && own.detail == tag)
            }
            TermKind::Literal(LiteralKind::Typed(iri)) => {
                self.own_kind(record.kind).is_some_and(|own| !own.is_language && own.detail == iri)
            }
        };
        (same_kind && record.text == key.text.as_bytes()).then(|| record.id())
    }

    #[inline]
    fn intern(&mut self, key: &Key<'_>) -> Result<Id> {
        let mask = self.slots.len() - 1;
        let mut at = self.home(key.hash);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return self.insert(key, at);
            }
            if let Some(id) = self.matches(slot, key) {
                return Ok(id);
            }
            at = (at + 1) & mask;
        }
    }

    /// The id of a term that was interned.
    pub(crate) fn find(&self, key: &Key<'_>) -> Option<Id> {
        let mask = self.slots.len() - 1;
        let mut at = self.home(key.hash);
        while self.slots[at] != 0 {
            if let Some(id) = self.matches(self.slots[at], key) {
                return Some(id);
            }
            at = (at + 1) & mask;
        }
        None
    }

    fn insert(&mut self, key: &Key<'_>, at: usize) -> Result<Id> {
        if key.text.len() > TEXT_BYTES_MAX {
            let what = format!("a term of {} bytes is longer than {TEXT_BYTES_MAX}", key.text.len());
            return Err(Error::new(ErrorKind::Input, what));
        }
        let is_vertex = matches!(key.kind, TermKind::Iri | TermKind::Blank);
        let number = if is_vertex { self.vertices } else { self.literals };
        let offset = self.arena.len() as u64 + 1;
        if number == u32::MAX || offset > OFFSET_MASK {
            let what = format!("a dictionary holds at most {} terms of a kind", u32::MAX);
            return Err(Error::new(ErrorKind::Unsupported, what));
        }
        let kind = self.kind_number(key.kind);
        let needed = NUMBER_BYTES + 2 * VARINT_BYTES_MAX + key.text.len();
        if self.arena.capacity() - self.arena.len() < needed {
            // Doubled, since not every allocator grows without a copy, and pages that are not touched take no
            // memory.
            self.arena.reserve_exact(needed.max(self.arena.len()).max(GROWTH_BYTES_MIN));
        }
        self.arena.extend_from_slice(&number.to_le_bytes());
        write_varint(u64::from(kind), &mut self.arena);
        write_varint(key.text.len() as u64, &mut self.arena);
        self.arena.extend_from_slice(key.text.as_bytes());
        self.slots[at] = key.hash << OFFSET_BITS | offset;
        *if is_vertex { &mut self.vertices } else { &mut self.literals } += 1;
        let terms = self.vertices as usize + self.literals as usize;
        if terms > self.slots.len() / 4 * 3 {
            self.grow();
        }
        let number = u64::from(number);
        Ok(if is_vertex { Id::vertex(number) } else { Id::literal(number) })
    }

    fn kind_number(&mut self, kind: TermKind<'_>) -> u32 {
        let (is_language, detail) = match kind {
            TermKind::Iri => return KIND_IRI,
            TermKind::Blank => {
                self.has_blanks = true;
                return KIND_BLANK;
            }
            TermKind::Literal(LiteralKind::String) => return KIND_STRING,
            TermKind::Literal(LiteralKind::Triple) => {
                self.has_triples = true;
                return KIND_TRIPLE;
            }
            TermKind::Literal(LiteralKind::Language(tag)) => (true, tag),
            TermKind::Literal(LiteralKind::Typed(iri)) => (false, iri),
        };
        let own = LiteralDetail { is_language, detail: detail.to_owned() };
        if let Some(&number) = self.kind_numbers.get(&own) {
            return number;
        }
        // There are fewer kinds than literals, which are below 2^32 - 1; four numbers are reserved.
        let number = u32::try_from(self.kinds.len()).unwrap_or(u32::MAX).saturating_add(KIND_FIRST_OWN);
        self.kinds.push(own.clone());
        self.kind_numbers.insert(own, number);
        number
    }

    /// Doubles the number of slots; walks the arena sequentially.
    #[cold]
    fn grow(&mut self) {
        let count = self.slots.len() * 2;
        self.shift -= 1;
        let mut slots = vec![0; count];
        let mut records = self.records();
        let mut offset = 1;
        loop {
            // Computes some hashes, then all their positions, then fills the slots: cache misses overlap.
            let mut batch = [(0, 0, 0); AHEAD];
            let mut length = 0;
            for (entry, record) in batch.iter_mut().zip(&mut records) {
                let hash = self.hash_of(&record, Seed::of_builders());
                *entry = (self.home(hash), hash, offset);
                offset += record.bytes as u64;
                length += 1;
            }
            let touched = batch[..length].iter().fold(0, |touched, (home, ..)| touched ^ slots[*home]);
            std::hint::black_box(touched);
            for &(home, hash, offset) in &batch[..length] {
                let mut at = home;
                while slots[at] != 0 {
                    at = (at + 1) & (count - 1);
                }
                slots[at] = hash << OFFSET_BITS | offset;
            }
            if length < AHEAD {
                break;
            }
        }
        drop(records);
        self.slots = slots;
    }
}
