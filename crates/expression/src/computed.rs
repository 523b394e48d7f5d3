//! Computed terms: query-local dictionary of terms that neither fit into an id nor occur in the snapshot.
//!
//! # Shape
//! The hash of a term selects one of [`SHARDS`] shards. A shard concatenates all texts in one `String`; an
//! entry has the position of the text and the language tag or datatype of a literal; a hash table of entry
//! positions finds terms. Ids are consecutive over all shards; [`AppendOnlyTable`] maps them to shard and
//! position without a lock.
//! # Invariants
//! 1. Equal terms have equal hashes, hence one shard and one entry: ids are equal exactly if terms are.
//! 2. Entries are immutable and are never removed while the query runs.
//! 3. On one thread the ids of new terms are 0, 1, 2, …, independent of the hash seed.
//! # Cost
//! Some 40 bytes and the text for each term; a look-up hashes the text once and takes the lock of its shard,
//! which is rarely contended.

use crate::MAX_TEXT_BYTES;
use crate::append_only_table::AppendOnlyTable;
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use rustc_hash::FxHashMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock};
use vervet_model::{Error, ErrorKind, Id, LiteralKind, Result, Tag, TermParts, lock};

/// Number of shards: low contention for sixteen threads that mostly intern terms.
const SHARDS: usize = 32;

/// The computed terms of one query; see the header.
#[derive(Default, Debug)]
pub struct ComputedTerms {
    /// Allocated for the first term: most queries compute none.
    shards: OnceLock<Box<[Shard; SHARDS]>>,
    numbers: AppendOnlyTable,
    /// Number of terms.
    count: AtomicU64,
    text_bytes: AtomicUsize,
    /// Memory held, in bytes.
    size_bytes: AtomicU64,
    limit_bytes: Option<usize>,
    seed: u64,
}

/// Cache-line aligned, to avoid false sharing of the locks.
#[derive(Default, Debug)]
#[repr(align(64))]
struct Shard(Mutex<Inner>);

/// Kind of term of an entry.
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
    /// The language tag or the datatype: 1 + an index into `extras`; 0: none.
    extra: u32,
    /// The payload of the id.
    number: u32,
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
}

/// Key of a look-up.
#[derive(Clone, Copy)]
struct Key<'t> {
    kind: ComputedKind,
    text: &'t str,
    extra: &'t str,
}

impl ComputedTerms {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum total size of the texts, in bytes.
    #[must_use]
    pub fn with_limit(self, limit_bytes: usize) -> Self {
        Self { limit_bytes: Some(limit_bytes), ..self }
    }

    /// Sets the hash seed. Clients choose the terms, so the seed should be unpredictable.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// The id of a term in this table, inserted if new. The caller guarantees that the term does not fit into
    /// an id and is not in the snapshot (see [`crate::Evaluator::intern`]).
    pub(crate) fn intern(&self, kind: ComputedKind, text: &str, extra: &str) -> Result<Id> {
        let key = Key { kind, text, extra };
        let hashing = FixedState::with_seed(self.seed);
        let hash = key.hash(&hashing);
        // The hash tables in the shards use the high and the low bits.
        let shard = index(hash >> 32) % SHARDS;
        let mut inner = self.shard(shard);
        if let Some(number) = inner.find(hash, &key) {
            return Ok(Id::new(Tag::Computed, u64::from(number)));
        }
        self.add_text(text)?;
        let number = u32::try_from(self.count.fetch_add(1, Relaxed)).map_err(|_| too_many())?;
        let before = inner.size_bytes();
        let position = inner.push(hash, &key, number, &hashing)?;
        let grown = inner.size_bytes() - before;
        let grown = grown as u64 + self.numbers.set(number, (shard as u64) << 32 | u64::from(position));
        self.size_bytes.fetch_add(grown, Relaxed);
        Ok(Id::new(Tag::Computed, u64::from(number)))
    }

    /// Counts the text of a new term.
    fn add_text(&self, text: &str) -> Result<()> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(text_too_long());
        }
        let all = self.text_bytes.fetch_add(text.len(), Relaxed).saturating_add(text.len());
        match self.limit_bytes {
            Some(limit) if all > limit => {
                self.text_bytes.fetch_sub(text.len(), Relaxed);
                let message = format!("the computed texts exceed the memory cap of {limit} bytes");
                Err(Error::new(ErrorKind::MemoryLimit, message)
                    .with_hint("raise the memory cap, or restrict the query (more constants, LIMIT)"))
            }
            _ => Ok(()),
        }
    }

    /// Calls `read` with the parts of the term `id`. `scratch` is a reusable buffer.
    ///
    /// # Errors
    /// `id` is not in this table.
    pub fn read(&self, id: Id, scratch: &mut String, read: &mut dyn FnMut(TermParts<'_>)) -> Result<()> {
        // The term is copied, so that `read` may access this table.
        scratch.clear();
        let (kind, length) = {
            let (inner, entry) = self.entry(id)?;
            scratch.push_str(inner.text_of(entry));
            scratch.push_str(inner.extra_of(entry));
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
        Ok(self.entry(id)?.1.kind)
    }

    /// Number of terms.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::try_from(self.count.load(Relaxed)).unwrap_or(usize::MAX)
    }

    /// Whether there are no terms.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory held, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        usize::try_from(self.size_bytes.load(Relaxed)).unwrap_or(usize::MAX)
    }

    /// The entry of a term, and its locked shard.
    fn entry(&self, id: Id) -> Result<(MutexGuard<'_, Inner>, Entry)> {
        let position = (id.tag() == Tag::Computed)
            .then(|| self.numbers.get(u32::try_from(id.payload()).ok()?))
            .flatten();
        let found = position.and_then(|position| {
            let inner = self.shard(index(position >> 32));
            let position = index(position & u64::from(u32::MAX));
            let entry = inner.entries.get(position).copied()?;
            Some((inner, entry))
        });
        found.ok_or_else(|| Error::internal(format!("{id:?} is not a term of this query")))
    }

    fn shard(&self, shard: usize) -> MutexGuard<'_, Inner> {
        let shards = self.shards.get_or_init(|| {
            self.size_bytes.fetch_add((SHARDS * size_of::<Shard>()) as u64, Relaxed);
            Box::default()
        });
        // The table is consistent after each change, so a panic elsewhere does not corrupt it.
        lock(&shards[shard].0)
    }
}

impl Key<'_> {
    fn hash(&self, hashing: &FixedState) -> u64 {
        let mut hasher = hashing.build_hasher();
        hasher.write_u64((self.text.len() as u64) << 3 | self.kind as u64);
        hasher.write(self.text.as_bytes());
        hasher.write(self.extra.as_bytes());
        hasher.finish()
    }
}

impl Inner {
    fn text_of(&self, entry: Entry) -> &str {
        text_of(&self.text, entry)
    }

    fn extra_of(&self, entry: Entry) -> &str {
        extra_of(&self.extras, entry)
    }

    fn size_bytes(&self) -> usize {
        self.text.capacity()
            + self.entries.capacity() * size_of::<Entry>()
            + self.index.capacity() * (size_of::<u32>() + 1)
            + self.extra_bytes
    }

    /// The number of a term; `None`: not in the table.
    fn find(&self, hash: u64, key: &Key<'_>) -> Option<u32> {
        let is_it = |&position: &u32| {
            let entry = self.entries[position as usize];
            entry.kind == key.kind && self.text_of(entry) == key.text && self.extra_of(entry) == key.extra
        };
        let position = *self.index.find(hash, is_it)?;
        Some(self.entries[position as usize].number)
    }

    fn extra_number(&mut self, extra: &str) -> Result<u32> {
        if extra.is_empty() {
            return Ok(0);
        }
        if let Some(&number) = self.extra_numbers.get(extra) {
            return Ok(number);
        }
        let number = u32::try_from(self.extras.len() + 1).map_err(|_| too_many())?;
        self.extras.push(extra.into());
        self.extra_numbers.insert(extra.into(), number);
        self.extra_bytes += 2 * extra.len() + 40;
        Ok(number)
    }

    /// Inserts a new term; returns its position.
    fn push(&mut self, hash: u64, key: &Key<'_>, number: u32, hashing: &FixedState) -> Result<u32> {
        let length = u32::try_from(key.text.len()).map_err(|_| text_too_long())?;
        let position = u32::try_from(self.entries.len()).map_err(|_| too_many())?;
        let extra = self.extra_number(key.extra)?;
        self.entries.push(Entry { start: self.text.len(), length, extra, number, kind: key.kind });
        self.text.push_str(key.text);
        let Self { entries, text, extras, index, .. } = self;
        let hash_of = |&position: &u32| {
            let entry = entries[position as usize];
            Key { kind: entry.kind, text: text_of(text, entry), extra: extra_of(extras, entry) }.hash(hashing)
        };
        index.insert_unique(hash, position, hash_of);
        Ok(position)
    }
}

/// Conversion of a number that fits into 32 bits.
fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn text_of(text: &str, entry: Entry) -> &str {
    &text[entry.start..entry.start + entry.length as usize]
}

fn extra_of(extras: &[Box<str>], entry: Entry) -> &str {
    (entry.extra as usize).checked_sub(1).and_then(|at| extras.get(at)).map_or("", |extra| extra)
}

pub(crate) fn text_too_long() -> Error {
    Error::new(
        ErrorKind::MemoryLimit,
        format!("an expression computes a text longer than {MAX_TEXT_BYTES} bytes"),
    )
    .with_hint("build shorter texts")
}

fn too_many() -> Error {
    Error::new(ErrorKind::MemoryLimit, "the query computes more than 4294967295 new terms")
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

    /// Threads intern equal and different terms concurrently; ids are equal exactly if terms are.
    #[test]
    fn b16_terms_of_many_threads_have_one_id_each() {
        const THREADS: usize = 8;
        const TERMS: usize = 3000;
        let table = ComputedTerms::new().with_seed(16);
        let kinds = [ComputedKind::String, ComputedKind::Language, ComputedKind::Typed, ComputedKind::Iri];
        let term = |number: usize| {
            let extra = ["", "en", "urn:t", ""][number % 4];
            (kinds[number % 4], format!("text {}", number / 8), extra)
        };
        let start = std::sync::Barrier::new(THREADS);
        let run = |thread: usize| {
            start.wait();
            let mut ids = vec![Id::UNBOUND; TERMS];
            // Each thread in a different order, so that each is the first to intern some terms.
            for at in 0..TERMS {
                let number = (at * (2 * thread + 1) * 7 + thread * 100) % TERMS;
                let (kind, text, extra) = term(number);
                let id = table.intern(kind, &text, extra).unwrap();
                let mut scratch = String::new();
                let mut read_back = String::new();
                table.read(id, &mut scratch, &mut |parts| parts.write_str(&mut read_back)).unwrap();
                assert_eq!((read_back, table.kind(id).unwrap()), (text, kind));
                ids[number] = id;
            }
            ids
        };
        let of_threads: Vec<Vec<Id>> = std::thread::scope(|scope| {
            let handles: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || run(thread))).collect();
            handles.into_iter().map(|handle| handle.join().unwrap()).collect()
        });
        let mut id_of = std::collections::HashMap::new();
        for number in 0..TERMS {
            let (kind, text, extra) = term(number);
            for ids in of_threads.iter().filter(|ids| ids[number].is_bound()) {
                let known = *id_of.entry((kind as u8, text.clone(), extra)).or_insert(ids[number]);
                assert_eq!(known, ids[number], "one term, one id: {text} {extra}");
            }
        }
        let distinct: std::collections::HashSet<Id> = id_of.values().copied().collect();
        assert_eq!(distinct.len(), id_of.len(), "one id, one term");
        assert_eq!(table.len(), id_of.len());
        // Dense, as on one thread.
        assert!(distinct.iter().all(|id| index(id.payload()) < id_of.len()));
        // The counter equals the memory held by the shards.
        let held: usize = (0..SHARDS).map(|shard| table.shard(shard).size_bytes()).sum();
        assert!(table.size_bytes() >= held + 8 * id_of.len(), "{} {held}", table.size_bytes());
    }

    #[test]
    fn texts_of_all_shards_count_against_the_limit() {
        let table = ComputedTerms::new().with_limit(10_000);
        let long = "x".repeat(95);
        let interned = (0..).take_while(|number| {
            let made = table.intern(ComputedKind::String, &format!("{long}{number:05}"), "");
            made.is_ok_and(|id| id == Id::new(Tag::Computed, *number))
        });
        assert_eq!(interned.count(), 100);
        let known = table.intern(ComputedKind::String, &format!("{long}00007"), "");
        assert_eq!(known.unwrap(), Id::new(Tag::Computed, 7), "an existing term adds no text");
    }
}
