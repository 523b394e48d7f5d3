//! The mutable part of the dictionary: terms added after the file was written.
//!
//! # Shape
//! Two append-only lists, one of vertices and one of literals, numbered from where the file ends; and a hash
//! table from terms to their indices in the lists. A list is chunks of 64, 128, 256, … places, so that a term
//! never moves and is read without a lock.
//! # Invariants
//! 1. One term has one number, whichever thread adds it first; a number is never assigned twice.
//! 2. An assigned number has its term: all terms below the ends can be read, in order, and so be written to a
//!    log. Nothing here waits for that.
//! 3. A sealed part ([`MutableDictionary::seal_and_succeed`]) assigns no numbers: it delegates to its
//!    successor, so holders of an old version of the graph still find every term.
//! # Cost
//! Reading a term: two cache misses, no lock. Looking one up: a read lock, which waits only while one term is
//! added. Memory: about 70 bytes and the text for each term.
//! # Not here
//! Compression: terms move into the file at the next checkpoint. Values inside ids: they have no entry.

use crate::full_text::{MutableFullText, candidate_count, candidates};
use crate::key::{
    Key, TermKind, TermLocation, blank_key, locate_iri, locate_literal, too_deep, with_literal_kind,
};
use crate::text_runs::{self, RunItem, TextRuns};
use crate::{hash_blank, hash_iri, hash_literal};
use foldhash::quality::RandomState;
use hashbrown::HashTable;
use oxrdf::TermRef;
#[cfg(feature = "shuttle")]
use shuttle::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
#[cfg(not(feature = "shuttle"))]
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use vervet_model::{
    Error, ErrorKind, Id, LiteralKind, METER_STEP, Meter, Result, Tag, TermParts, TextSearch, mentions_edge,
    triple_text,
};

/// Size of the first chunk of a list; a power of two. Each chunk is twice as long as the one before.
const CHUNK_MIN: u64 = 64;
/// Maximum number of chunks of a list: room for more terms than a number has bits for.
const CHUNKS: usize = 40;
/// Maximum length of the text of a term with its datatype or language tag, in bytes. Longer terms are
/// refused: a term with its id has to fit into a log record of at most 1 GiB.
pub const TERM_BYTES_MAX: usize = (1 << 30) - (1 << 10);

/// Terms added after the file was written. See the header of this file.
#[derive(Debug)]
pub struct MutableDictionary {
    vertices: ChunkedList,
    literals: ChunkedList,
    growing: RwLock<Growing>,
    /// Whether triple terms may be here, or in a part before or after this one.
    has_blanks: Arc<AtomicBool>,
    has_triples: Arc<AtomicBool>,
    /// The literals here in text order, as far as range queries have needed them.
    order: Mutex<TextRuns>,
    /// The words of the literals here, as far as searches have needed them.
    words: Mutex<MutableFullText>,
}

#[derive(Debug)]
struct Growing {
    /// Ids of all terms here, by hashes with a random seed: the file's hashes are the same everywhere, so
    /// clients could choose colliding terms.
    table: HashTable<Id>,
    hashing: RandomState,
    /// Numbers assigned so far, by list.
    vertices: u64,
    literals: u64,
    /// Datatypes and language tags, without duplicates.
    details: HashTable<Arc<str>>,
    bytes: u64,
    /// Successor for new terms, once this part is sealed.
    next: Option<Arc<MutableDictionary>>,
}

/// An append-only list. See the header of this file.
struct ChunkedList {
    /// The number of its first term.
    first: u64,
    chunks: [OnceLock<Box<[OnceLock<StoredTerm>]>>; CHUNKS],
}

impl std::fmt::Debug for ChunkedList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkedList").field("first", &self.first).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct StoredTerm {
    kind: StoredTermKind,
    text: Box<str>,
}

#[derive(Debug)]
enum StoredTermKind {
    Iri,
    Blank,
    String,
    Language(Arc<str>),
    Typed(Arc<str>),
    Triple,
}

impl StoredTerm {
    fn matches(&self, key: &Key<'_>) -> bool {
        let kind = match (&self.kind, key.kind) {
            (StoredTermKind::Iri, TermKind::Iri)
            | (StoredTermKind::Blank, TermKind::Blank)
            | (StoredTermKind::String, TermKind::Literal(LiteralKind::String))
            | (StoredTermKind::Triple, TermKind::Literal(LiteralKind::Triple)) => true,
            (StoredTermKind::Language(own), TermKind::Literal(LiteralKind::Language(tag))) => &**own == tag,
            (StoredTermKind::Typed(own), TermKind::Literal(LiteralKind::Typed(iri))) => &**own == iri,
            _ => false,
        };
        kind && &*self.text == key.text
    }

    fn parts(&self) -> TermParts<'_> {
        let literal = |kind| TermParts::Literal { head: &self.text, tail: "", kind };
        match &self.kind {
            StoredTermKind::Iri => TermParts::Iri { namespace: &self.text, local: "" },
            StoredTermKind::Blank => TermParts::Blank(&self.text),
            StoredTermKind::String => literal(LiteralKind::String),
            StoredTermKind::Language(tag) => literal(LiteralKind::Language(tag)),
            StoredTermKind::Typed(iri) => literal(LiteralKind::Typed(iri)),
            StoredTermKind::Triple => literal(LiteralKind::Triple),
        }
    }
}

impl ChunkedList {
    fn new(first: u64) -> Self {
        Self { first, chunks: [const { OnceLock::new() }; CHUNKS] }
    }

    /// Chunk, and index in it, of the term at `index`.
    fn place(index: u64) -> (usize, usize) {
        let shifted = index + CHUNK_MIN;
        let chunk = shifted.ilog2() - CHUNK_MIN.ilog2();
        let place = shifted - (CHUNK_MIN << chunk);
        (chunk as usize, usize::try_from(place).unwrap_or(usize::MAX))
    }

    fn get(&self, number: u64) -> Option<&StoredTerm> {
        let (chunk, place) = Self::place(number.checked_sub(self.first)?);
        self.chunks.get(chunk)?.get()?.get(place)?.get()
    }

    /// Stores the term with this number in its empty place.
    fn set(&self, number: u64, entry: StoredTerm) {
        let (chunk, place) = Self::place(number - self.first);
        let places = self.chunks[chunk].get_or_init(|| {
            (0..CHUNK_MIN << chunk).map(|_| OnceLock::new()).collect::<Vec<_>>().into_boxed_slice()
        });
        let taken = places[place].set(entry).is_err();
        debug_assert!(!taken, "a number was assigned twice");
    }
}

impl MutableDictionary {
    /// An empty part whose terms are numbered from these numbers on.
    #[must_use]
    pub fn new(first_vertex: u64, first_literal: u64) -> Self {
        let growing = Growing {
            table: HashTable::new(),
            hashing: RandomState::default(),
            vertices: first_vertex,
            literals: first_literal,
            details: HashTable::new(),
            bytes: 0,
            next: None,
        };
        Self {
            vertices: ChunkedList::new(first_vertex),
            literals: ChunkedList::new(first_literal),
            growing: RwLock::new(growing),
            has_blanks: Arc::default(),
            has_triples: Arc::default(),
            order: Mutex::default(),
            words: Mutex::default(),
        }
    }

    /// The id of `term` if it is here. Values inside ids are found too, edges never.
    #[must_use]
    pub fn lookup(&self, term: TermRef<'_>) -> Option<Id> {
        with_location(term, |place| match place {
            TermLocation::Inline(id) => Some(id).filter(|id| id.tag() != Tag::Edge),
            TermLocation::Entry(key) => self.find(&key),
        })
        .flatten()
    }

    fn find(&self, key: &Key<'_>) -> Option<Id> {
        let growing = self.read();
        match (self.find_in(&growing, key), &growing.next) {
            (None, Some(next)) => next.find(key),
            (found, _) => found,
        }
    }

    fn find_in(&self, growing: &Growing, key: &Key<'_>) -> Option<Id> {
        let matches = |id: &Id| self.entry(*id).is_some_and(|entry| entry.matches(key));
        growing.table.find(growing.hash_key(key), matches).copied()
    }

    /// The id of `term`, which is not in the file; assigns a new one if the term is unknown.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`]: a triple term that is nested too deep or has an edge in it;
    /// [`ErrorKind::Input`]: longer than [`TERM_BYTES_MAX`].
    pub fn intern(&self, term: TermRef<'_>) -> Result<Id> {
        let interned = with_location(term, |place| match place {
            TermLocation::Inline(id) => Ok(id),
            TermLocation::Entry(Key { kind: TermKind::Literal(LiteralKind::Triple), text, .. })
                if mentions_edge(text) =>
            {
                Err(Error::new(
                    ErrorKind::Unsupported,
                    "a triple term that is stored cannot have an edge in it",
                )
                .with_hint("give the statement of the triple term a reifier, and refer to that"))
            }
            TermLocation::Entry(key) => self.intern_key(&key),
        });
        interned.unwrap_or_else(|| Err(too_deep()))
    }

    fn intern_key(&self, key: &Key<'_>) -> Result<Id> {
        if let Some(id) = self.find(key) {
            return Ok(id);
        }
        let detail = match key.kind {
            TermKind::Literal(LiteralKind::Language(detail) | LiteralKind::Typed(detail)) => detail.len(),
            _ => 0,
        };
        if key.text.len() + detail > TERM_BYTES_MAX {
            return Err(Error::new(ErrorKind::Input, "a term is longer than 1 GiB"));
        }
        let mut growing = self.write();
        if let Some(id) = self.find_in(&growing, key) {
            return Ok(id);
        }
        if let Some(next) = growing.next.clone() {
            drop(growing);
            return next.intern_key(key);
        }
        let id = match key.kind {
            TermKind::Iri | TermKind::Blank => Id::vertex(growing.vertices),
            TermKind::Literal(_) => Id::literal(growing.literals),
        };
        let kind = match key.kind {
            TermKind::Iri => StoredTermKind::Iri,
            TermKind::Blank => StoredTermKind::Blank,
            TermKind::Literal(LiteralKind::String) => StoredTermKind::String,
            TermKind::Literal(LiteralKind::Language(tag)) => StoredTermKind::Language(growing.detail(tag)),
            TermKind::Literal(LiteralKind::Typed(iri)) => StoredTermKind::Typed(growing.detail(iri)),
            TermKind::Literal(LiteralKind::Triple) => StoredTermKind::Triple,
        };
        self.add(&mut growing, id, StoredTerm { kind, text: key.text.into() });
        Ok(id)
    }

    /// Adds a term with the next number.
    fn add(&self, growing: &mut Growing, id: Id, entry: StoredTerm) {
        let (hash, bytes) =
            (growing.hash_entry(&entry), entry.text.len() + size_of::<OnceLock<StoredTerm>>());
        // Relaxed: a thread that gets the id of the term gets it through a lock.
        match entry.kind {
            StoredTermKind::Blank => self.has_blanks.store(true, Ordering::Relaxed),
            StoredTermKind::Triple => self.has_triples.store(true, Ordering::Relaxed),
            _ => {}
        }
        if id.is_vertex() {
            self.vertices.set(id.payload(), entry);
            growing.vertices += 1;
        } else {
            self.literals.set(id.payload(), entry);
            growing.literals += 1;
        }
        growing.bytes += bytes as u64;
        let Growing { table, hashing, .. } = growing;
        let hash_of = |id: &Id| self.entry(*id).map_or(0, |entry| entry.table_hash(hashing));
        table.insert_unique(hash, id, hash_of);
    }

    /// Seals this part: terms below these numbers are in a file now, the others and all new ones belong to
    /// the returned part. This part still answers for all of them.
    #[must_use]
    pub fn seal_and_succeed(&self, first_vertex: u64, first_literal: u64) -> Arc<Self> {
        let mut growing = self.write();
        if let Some(next) = &growing.next {
            return Arc::clone(next);
        }
        let mut next = Self::new(first_vertex, first_literal);
        next.has_blanks = Arc::clone(&self.has_blanks);
        next.has_triples = Arc::clone(&self.has_triples);
        {
            let mut successor = next.write();
            let vertices = (first_vertex..growing.vertices).map(Id::vertex);
            for id in vertices.chain((first_literal..growing.literals).map(Id::literal)) {
                let entry = self.entry(id).expect("an assigned number has its term");
                let kind = match &entry.kind {
                    StoredTermKind::Iri => StoredTermKind::Iri,
                    StoredTermKind::Blank => StoredTermKind::Blank,
                    StoredTermKind::String => StoredTermKind::String,
                    StoredTermKind::Language(tag) => StoredTermKind::Language(successor.detail(tag)),
                    StoredTermKind::Typed(iri) => StoredTermKind::Typed(successor.detail(iri)),
                    StoredTermKind::Triple => StoredTermKind::Triple,
                };
                let entry = StoredTerm { kind, text: entry.text.clone() };
                next.add(&mut successor, id, entry);
            }
        }
        let next = Arc::new(next);
        growing.next = Some(Arc::clone(&next));
        next
    }

    /// Calls `read` with the parts of the term of `id`; `false` if it is not here.
    pub fn read_term(&self, id: Id, read: &mut dyn FnMut(TermParts<'_>)) -> bool {
        if let Some(entry) = self.entry(id) {
            read(entry.parts());
            return true;
        }
        let next = self.read().next.clone();
        next.is_some_and(|next| next.read_term(id, read))
    }

    /// Appends the literals with numbers below `end` whose text is at least `from`, and below `to` if given,
    /// in text order (those of a successor after the others), of any language or datatype. The bounds are
    /// UTF-8, or prefixes of UTF-8.
    ///
    /// # Cost
    /// See `later`: the query sorts the literals added since the last query.
    ///
    /// # Errors
    /// Those of `meter`.
    pub fn literals_between(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        end: u64,
        out: &mut Vec<Id>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let (own_end, next) = self.ends();
        let mut found: Vec<RunItem> = Vec::new();
        let text_of = |number| self.literals.get(number).map_or("", |entry| &entry.text);
        for run in self.runs(own_end.min(end)) {
            for items in text_runs::range(&run, from, to, &text_of).chunks(METER_STEP) {
                meter(items.len())?;
                // A run may have later literals than the version of the caller.
                found.extend(items.iter().filter(|item| item.number() < end));
            }
        }
        // Each run is sorted; with one run there is nothing to do.
        found.sort_by(|a, b| text_runs::compare(a, b, &text_of));
        out.extend(found.iter().map(|item| Id::literal(item.number())));
        if let Some(next) = next.filter(|_| own_end < end) {
            let first = out.len();
            next.literals_between(from, to, end, out, meter)?;
            // The successor also has the literals that are here and in no file.
            let mut place = 0;
            out.retain(|id| {
                place += 1;
                place <= first || id.payload() >= own_end
            });
        }
        Ok(())
    }

    /// Upper estimate of the number of results of [`MutableDictionary::literals_between`].
    #[must_use]
    pub fn literals_between_count(&self, from: &[u8], to: Option<&[u8]>, end: u64) -> u64 {
        let (own_end, next) = self.ends();
        let text_of = |number| self.literals.get(number).map_or("", |entry| &entry.text);
        let runs = self.runs(own_end.min(end));
        let count: usize = runs.iter().map(|run| text_runs::range(run, from, to, &text_of).len()).sum();
        let later =
            next.filter(|_| own_end < end).map_or(0, |next| next.literals_between_count(from, to, end));
        later + count as u64
    }

    /// Appends the literals with numbers below `end` that match `search`, and possibly others, ascending.
    ///
    /// # Errors
    /// Those of `meter`.
    ///
    /// # Cost
    /// See `words`: the search indexes the literals added since the last search.
    pub fn search(
        &self,
        search: &TextSearch,
        end: u64,
        out: &mut Vec<Id>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let (own_end, next) = self.ends();
        let mut numbers = Vec::new();
        candidates(&*self.words(own_end.min(end), meter)?, search, &mut numbers, meter)?;
        meter(numbers.len())?;
        // The index may have later literals than the version of the caller.
        out.extend(numbers.into_iter().filter(|number| *number < end).map(Id::literal));
        if let Some(next) = next.filter(|_| own_end < end) {
            let first = out.len();
            next.search(search, end, out, meter)?;
            // The successor also has the literals that are here and in no file.
            let mut place = 0;
            out.retain(|id| {
                place += 1;
                place <= first || id.payload() >= own_end
            });
        }
        Ok(())
    }

    /// Upper estimate of the number of results of [`MutableDictionary::search`].
    ///
    /// # Errors
    /// Those of `meter`.
    pub fn search_count(&self, search: &TextSearch, end: u64, meter: &mut Meter<'_>) -> Result<u64> {
        let (own_end, next) = self.ends();
        let count = candidate_count(&*self.words(own_end.min(end), meter)?, search)?;
        match next.filter(|_| own_end < end) {
            Some(next) => Ok(count + next.search_count(search, end, meter)?),
            None => Ok(count),
        }
    }

    /// The words of all literals here below `end`, and possibly of later ones.
    fn words(&self, end: u64, meter: &mut Meter<'_>) -> Result<MutexGuard<'_, MutableFullText>> {
        // A panic half way leaves an uncounted literal in some lists, which is then indexed again.
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let text_of = |number| {
            let entry = self.literals.get(number)?;
            matches!(entry.kind, StoredTermKind::String | StoredTermKind::Language(_)).then_some(&*entry.text)
        };
        words.up_to(self.literals.first, end, text_of, meter)?;
        Ok(words)
    }

    /// The end of the literals here, and the successor that has the later ones.
    fn ends(&self) -> (u64, Option<Arc<Self>>) {
        let growing = self.read();
        (growing.literals, growing.next.clone())
    }

    #[cfg(test)]
    pub(crate) fn literals_first(&self) -> u64 {
        self.literals.first
    }

    /// Runs that cover all literals here below `end`.
    fn runs(&self, end: u64) -> Vec<Arc<[RunItem]>> {
        let text_of = |number| self.literals.get(number).map_or("", |entry| &entry.text);
        // Consistent after each change: a step interrupted by a panic was not counted.
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        order.up_to(self.literals.first, end, &text_of)
    }

    /// Whether the vertex is a blank node; `None` if it is not here.
    #[must_use]
    pub fn is_blank(&self, id: Id) -> Option<bool> {
        let mut is_blank = None;
        self.read_term(id, &mut |parts| is_blank = Some(matches!(parts, TermParts::Blank(_))));
        is_blank
    }

    /// Whether a vertex here, or of a successor, may be a blank node.
    #[must_use]
    pub fn may_have_blanks(&self) -> bool {
        self.has_blanks.load(Ordering::Relaxed)
    }

    /// Whether a literal here, or of a successor, may be a triple term.
    #[must_use]
    pub fn may_have_triple_terms(&self) -> bool {
        self.has_triples.load(Ordering::Relaxed)
    }

    /// Upper bound of vertex numbers.
    #[must_use]
    pub fn vertex_end(&self) -> u64 {
        let growing = self.read();
        growing.next.as_ref().map_or(growing.vertices, |next| next.vertex_end())
    }

    /// Upper bound of literal numbers.
    #[must_use]
    pub fn literal_end(&self) -> u64 {
        let growing = self.read();
        growing.next.as_ref().map_or(growing.literals, |next| next.literal_end())
    }

    /// Memory of the terms, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let growing = self.read();
        growing.bytes + growing.table.capacity() as u64 * size_of::<Id>() as u64
    }

    fn entry(&self, id: Id) -> Option<&StoredTerm> {
        match id.tag() {
            Tag::Vertex => self.vertices.get(id.payload()),
            Tag::Literal => self.literals.get(id.payload()),
            _ => None,
        }
    }

    /// Ignores poison. After a panic, lists and table are consistent except for a place that is set but not
    /// counted; it would be set again with the same effect.
    fn read(&self) -> RwLockReadGuard<'_, Growing> {
        self.growing.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Growing> {
        self.growing.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoredTerm {
    fn table_hash(&self, hashing: &RandomState) -> u64 {
        let kind = match &self.kind {
            StoredTermKind::Iri => (0, ""),
            StoredTermKind::Blank => (1, ""),
            StoredTermKind::String => (2, ""),
            StoredTermKind::Language(tag) => (3, &**tag),
            StoredTermKind::Typed(iri) => (4, &**iri),
            StoredTermKind::Triple => (5, ""),
        };
        table_hash(hashing, kind, &self.text)
    }
}

fn table_hash(hashing: &RandomState, kind: (u8, &str), text: &str) -> u64 {
    hashing.hash_one((kind, text))
}

impl Growing {
    fn hash_entry(&self, entry: &StoredTerm) -> u64 {
        entry.table_hash(&self.hashing)
    }

    /// The hash of a lookup key, equal to that of its entry.
    fn hash_key(&self, key: &Key<'_>) -> u64 {
        let kind = match key.kind {
            TermKind::Iri => (0, ""),
            TermKind::Blank => (1, ""),
            TermKind::Literal(LiteralKind::String) => (2, ""),
            TermKind::Literal(LiteralKind::Language(tag)) => (3, tag),
            TermKind::Literal(LiteralKind::Typed(iri)) => (4, iri),
            TermKind::Literal(LiteralKind::Triple) => (5, ""),
        };
        table_hash(&self.hashing, kind, key.text)
    }

    /// `detail`, shared by all terms that have it.
    fn detail(&mut self, detail: &str) -> Arc<str> {
        let hash = self.hashing.hash_one(detail);
        if let Some(known) = self.details.find(hash, |known| &**known == detail) {
            return Arc::clone(known);
        }
        let shared: Arc<str> = detail.into();
        self.details.insert_unique(hash, Arc::clone(&shared), |known| self.hashing.hash_one(&**known));
        shared
    }
}

/// Calls `call` with the location of the term; `None` for a triple term that is nested too deep.
fn with_location<T>(term: TermRef<'_>, call: impl FnOnce(TermLocation<'_>) -> T) -> Option<T> {
    Some(match term {
        TermRef::NamedNode(iri) => call(locate_iri(iri.as_str(), || hash_iri(iri.as_str()))),
        TermRef::BlankNode(node) => {
            call(TermLocation::Entry(blank_key(node.as_str(), hash_blank(node.as_str()))))
        }
        TermRef::Literal(literal) => with_literal_kind(literal, |kind| {
            call(locate_literal(literal.value(), kind, || hash_literal(literal.value(), kind)))
        }),
        TermRef::Triple(triple) => {
            let text = triple_text(triple.as_ref())?;
            call(locate_literal(&text, LiteralKind::Triple, || hash_literal(&text, LiteralKind::Triple)))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::{BlankNode, Literal, NamedNode, NamedNodeRef, Term, Triple};
    use std::collections::BTreeSet;

    /// Security S8: colliding terms differ from dictionary to dictionary.
    #[test]
    fn s8_terms_are_hashed_with_a_seed() {
        let hashes = |terms: &MutableDictionary| -> Vec<u64> {
            let hash = |text: String| terms.read().hash_key(&blank_key(&text, 0));
            (0..8).map(|number| hash(format!("b{number}"))).collect()
        };
        let (one, other) = (MutableDictionary::new(0, 0), MutableDictionary::new(0, 0));
        assert_eq!(hashes(&one), hashes(&one));
        assert_ne!(hashes(&one), hashes(&other));
        // A lookup key has the same hash as its entry.
        let entry = StoredTerm { kind: StoredTermKind::Language("en".into()), text: "a".into() };
        let key = Key { kind: TermKind::Literal(LiteralKind::Language("en")), text: "a", hash: 0 };
        assert_eq!(one.read().hash_key(&key), one.read().hash_entry(&entry));
    }

    fn term(number: usize) -> Term {
        match number % 5 {
            0 => NamedNode::new_unchecked(format!("http://example.org/{number}")).into(),
            1 => BlankNode::new_unchecked(format!("b{number}")).into(),
            2 => Literal::new_simple_literal(format!("a longer text {number}")).into(),
            3 if number.is_multiple_of(2) => {
                Literal::new_language_tagged_literal_unchecked(format!("text {number}"), "en").into()
            }
            3 => {
                let node = NamedNode::new_unchecked(format!("http://example.org/{number}"));
                let predicate = NamedNode::new_unchecked("http://example.org/p");
                let object = Literal::from(number as u64).into();
                Triple { subject: node.into(), predicate, object }.into()
            }
            _ => {
                let datatype = NamedNodeRef::new_unchecked("http://example.org/type");
                Literal::new_typed_literal(format!("value {number}"), datatype).into()
            }
        }
    }

    fn read(terms: &MutableDictionary, id: Id) -> Option<Term> {
        let mut found = None;
        terms.read_term(id, &mut |parts| found = Some(parts.to_term()));
        found
    }

    #[test]
    fn terms_round_trip_and_are_numbered_densely() {
        let terms = MutableDictionary::new(10, 20);
        let mut reported = BTreeSet::new();
        for round in 0..2 {
            for number in 0..1000 {
                let term = term(number);
                let id = terms.intern(term.as_ref()).expect("no limit is reached");
                reported.insert(id);
                assert_eq!(read(&terms, id).as_ref(), Some(&term), "round {round}");
                assert_eq!(terms.lookup(term.as_ref()), Some(id));
            }
        }
        let (vertices, literals): (Vec<Id>, Vec<Id>) = reported.into_iter().partition(|id| id.is_vertex());
        assert_eq!(vertices, (10..410).map(Id::vertex).collect::<Vec<_>>());
        assert_eq!(literals, (20..620).map(Id::literal).collect::<Vec<_>>());
        assert_eq!((terms.vertex_end(), terms.literal_end()), (410, 620));
        assert_eq!(terms.is_blank(Id::vertex(11)), Some(true));
        assert_eq!(terms.is_blank(Id::vertex(10)), Some(false));
        assert_eq!(terms.is_blank(Id::vertex(9)), None);
        assert_eq!(terms.lookup(term(1000).as_ref()), None);
    }

    #[test]
    fn inline_values_have_no_entry() {
        let terms = MutableDictionary::new(0, 0);
        let id = terms.intern(Literal::from(5).as_ref().into());
        assert_eq!(id.expect("an integer").tag(), Tag::Integer);
        assert_eq!(terms.literal_end(), 0);
    }

    #[test]
    fn sealed_terms_are_found_through_the_successor() {
        let old = MutableDictionary::new(0, 0);
        let intern = |terms: &MutableDictionary, number| {
            terms.intern(term(number).as_ref()).expect("no limit is reached")
        };
        let ids: Vec<Id> = (0..50).map(|number| intern(&old, number)).collect();
        // The first ten vertices and literals are in a file from here on.
        let new = old.seal_and_succeed(10, 10);
        let later = intern(&old, 100);
        assert_eq!(intern(&new, 100), later);
        assert_eq!(later, Id::vertex(20));
        assert_eq!((old.vertex_end(), new.vertex_end()), (21, 21));
        for (number, id) in ids.into_iter().enumerate() {
            assert_eq!(read(&old, id), Some(term(number)));
            assert_eq!(intern(&old, number), id);
            let expected = (id.payload() >= 10).then(|| term(number));
            assert_eq!(read(&new, id), expected);
        }
        assert_eq!(read(&old, later), Some(term(100)));
    }

    #[test]
    fn threads_agree_on_numbers() {
        let terms = MutableDictionary::new(0, 0);
        let ids = |_| {
            let intern = |number| terms.intern(term(number).as_ref());
            (0..2000).map(|number| intern(number).expect("no limit is reached")).collect::<Vec<Id>>()
        };
        let all: Vec<Vec<Id>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || ids(thread))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(all.iter().all(|ids| *ids == all[0]));
        assert_eq!(terms.vertex_end() + terms.literal_end(), 2000);
    }
}
