//! Terms that a query has made and that neither fit inside an id nor occur in the snapshot.
//!
//! # Shape
//! All texts stand one after the other in one `String`; an entry says where, and what else the literal
//! has. A hash table of entry numbers finds a term again.
//! # Invariants
//! 1. Each term has one entry, so equal ids are equal terms.
//! 2. Entries never change or go away while the query runs.
//! # Cost
//! 24 bytes and the text for each term; a lookup hashes the text once and takes one uncontended lock.

use crate::MAX_TEXT_BYTES;
use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher;
use std::sync::{Mutex, MutexGuard, PoisonError};
use vervet_model::{Error, ErrorKind, Id, LiteralKind, Result, Tag, TermParts};

/// The computed terms of one query. See the header of this file.
#[derive(Default, Debug)]
pub struct ComputedTerms {
    inner: Mutex<Inner>,
}

/// What kind of term an entry is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ComputedKind {
    Iri,
    Blank,
    String,
    Language,
    Typed,
    Triple,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    start: usize,
    length: u32,
    /// Index into `extras`: the language tag or the datatype; 0 where there is none.
    extra: u32,
    kind: ComputedKind,
}

#[derive(Default, Debug)]
struct Inner {
    text: String,
    entries: Vec<Entry>,
    index: HashTable<u32>,
    extras: Vec<Box<str>>,
    extra_numbers: FxHashMap<Box<str>, u32>,
    extra_bytes: usize,
    limit_bytes: Option<usize>,
}

impl ComputedTerms {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty table whose texts may take so many bytes.
    #[must_use]
    pub fn with_limit(limit_bytes: usize) -> Self {
        Self { inner: Mutex::new(Inner { limit_bytes: Some(limit_bytes), ..Inner::default() }) }
    }

    /// The id of a term in this table, new or not. The caller has made sure that the term does not fit
    /// inside an id and is not in the snapshot (see [`crate::Evaluator::intern`]).
    pub(crate) fn intern(&self, kind: ComputedKind, text: &str, extra: &str) -> Result<Id> {
        let mut inner = self.lock();
        let extra = inner.extra_number(extra)?;
        inner.intern(kind, text, extra)
    }

    /// Calls `read` with the pieces of the term `id`. `scratch` is working space.
    ///
    /// # Errors
    /// `id` is not of this table.
    pub fn read(&self, id: Id, scratch: &mut String, read: &mut dyn FnMut(TermParts<'_>)) -> Result<()> {
        // The term is copied, so that `read` may use this table itself.
        scratch.clear();
        let (kind, length) = {
            let inner = self.lock();
            let entry = inner.entry(id)?;
            scratch.push_str(inner.text_of(entry));
            scratch.push_str(inner.extras.get(entry.extra as usize).map_or("", |extra| extra));
            (entry.kind, entry.length as usize)
        };
        let (text, extra) = scratch.split_at(length);
        let literal = |kind| TermParts::Literal { head: text, tail: "", kind };
        read(match kind {
            ComputedKind::Iri => TermParts::Iri { namespace: text, local: "" },
            ComputedKind::Blank => TermParts::Blank(text),
            ComputedKind::String => literal(LiteralKind::String),
            ComputedKind::Language => literal(LiteralKind::Language(extra)),
            ComputedKind::Typed => literal(LiteralKind::Typed(extra)),
            ComputedKind::Triple => literal(LiteralKind::Triple),
        });
        Ok(())
    }

    pub(crate) fn kind(&self, id: Id) -> Result<ComputedKind> {
        Ok(self.lock().entry(id)?.kind)
    }

    /// Number of terms.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Whether there are no terms.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory held, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let inner = self.lock();
        inner.text.capacity()
            + inner.entries.capacity() * size_of::<Entry>()
            + inner.index.capacity() * (size_of::<u32>() + 1)
            + inner.extra_bytes
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Each change leaves the table whole, so a panic elsewhere does not spoil it.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn entry(&self, id: Id) -> Result<Entry> {
        (id.tag() == Tag::Computed)
            .then(|| self.entries.get(usize::try_from(id.payload()).ok()?).copied())
            .flatten()
            .ok_or_else(|| Error::internal(format!("{id:?} is not a term of this query")))
    }

    fn text_of(&self, entry: Entry) -> &str {
        &self.text[entry.start..entry.start + entry.length as usize]
    }

    fn extra_number(&mut self, extra: &str) -> Result<u32> {
        if let Some(&number) = self.extra_numbers.get(extra) {
            return Ok(number);
        }
        let number = u32::try_from(self.extras.len()).map_err(|_| too_many())?;
        self.extras.push(extra.into());
        self.extra_numbers.insert(extra.into(), number);
        self.extra_bytes += 2 * extra.len() + 40;
        Ok(number)
    }

    fn intern(&mut self, kind: ComputedKind, text: &str, extra: u32) -> Result<Id> {
        let hash = hash_of(kind, text, extra);
        let found = self.index.find(hash, |&number| {
            let entry = self.entries[number as usize];
            entry.kind == kind && entry.extra == extra && self.text_of(entry) == text
        });
        if let Some(&number) = found {
            return Ok(Id::new(Tag::Computed, u64::from(number)));
        }
        if text.len() > MAX_TEXT_BYTES {
            return Err(text_too_long());
        }
        let length = u32::try_from(text.len()).map_err(|_| text_too_long())?;
        if let Some(limit) = self.limit_bytes.filter(|limit| self.text.len() + text.len() > *limit) {
            let message = format!("the query makes more text than its memory cap of {limit} bytes");
            return Err(Error::new(ErrorKind::MemoryLimit, message)
                .with_hint("raise the memory cap, or ask for less (more constants, LIMIT)"));
        }
        let number = u32::try_from(self.entries.len()).map_err(|_| too_many())?;
        self.entries.push(Entry { start: self.text.len(), length, extra, kind });
        self.text.push_str(text);
        let (entries, all) = (&self.entries, &self.text);
        self.index.insert_unique(hash, number, |&number| {
            let entry = entries[number as usize];
            hash_of(entry.kind, &all[entry.start..entry.start + entry.length as usize], entry.extra)
        });
        Ok(Id::new(Tag::Computed, u64::from(number)))
    }
}

fn hash_of(kind: ComputedKind, text: &str, extra: u32) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u32(extra << 3 | kind as u32);
    hasher.write(text.as_bytes());
    hasher.finish()
}

pub(crate) fn text_too_long() -> Error {
    Error::new(
        ErrorKind::MemoryLimit,
        format!("an expression makes a text longer than {MAX_TEXT_BYTES} bytes"),
    )
    .with_hint("ask for shorter texts")
}

fn too_many() -> Error {
    Error::new(ErrorKind::MemoryLimit, "the query makes more than 4294967295 new terms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_terms_have_equal_ids_and_come_back() {
        let table = ComputedTerms::new();
        let mut ids = Vec::new();
        for number in 0..1000 {
            ids.push(table.intern(ComputedKind::String, &format!("text {number}"), "").unwrap());
        }
        let typed = table.intern(ComputedKind::Typed, "text 1", "http://example.org/t").unwrap();
        let tagged = table.intern(ComputedKind::Language, "text 1", "en").unwrap();
        assert_eq!(table.len(), 1002);
        for (number, &id) in ids.iter().enumerate() {
            assert_eq!(table.intern(ComputedKind::String, &format!("text {number}"), "").unwrap(), id);
        }
        let mut scratch = String::new();
        let mut shown = |id| {
            let mut text = String::new();
            table.read(id, &mut scratch, &mut |parts| text = parts.to_term().to_string()).unwrap();
            text
        };
        assert_eq!(shown(ids[7]), "\"text 7\"");
        assert_eq!(shown(typed), "\"text 1\"^^<http://example.org/t>");
        assert_eq!(shown(tagged), "\"text 1\"@en");
        assert!(table.size_bytes() > 1000 * 30);
        assert!(table.kind(Id::new(Tag::Computed, 5000)).is_err());
        assert!(table.kind(Id::vertex(0)).is_err());
    }
}
