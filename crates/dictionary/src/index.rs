//! The hash index of a dictionary file: maps the hash of a term to its number, by linear probing.
//!
//! # Shape
//! A slot is the low byte of a hash and the number of a term plus 1; 0 is an empty slot. The search for a
//! hash begins in its home slot `hash * slots / 2^64` and ends at an empty slot, or at the end of the
//! section: after the home slots there are as many slots as the last cluster needs. (A *cluster* is a run of
//! full slots. In files of old versions the search wraps around to the first slot instead.)
//! # Invariants
//! 1. The slots from the home slot of a term to its own are full.
//! 2. The home slots of terms ascend with their hashes, so terms of one cluster have smaller hashes than
//!    those of the next one, for any number of slots.
//! # Cost
//! [`IndexMerge`] reads an index sequentially and writes the next one sequentially, with new terms, and holds
//! only the new terms and one cluster. With the same number of slots it copies slots; otherwise it reads and
//! hashes each term, which happens once while terms grow by a sixth.

use crate::Dictionary;
use crate::dictionary::TermTable;
use crate::header::{FileWriter, Section};
use crate::index_slots::{fingerprint, home_slot, index_width, slot_count, slots_after};
use crate::integers::read_le;
use vervet_model::{Id, Result, Watch};

/// Number of slots read at once.
const READ_SLOTS: u64 = 1 << 12;
/// Empty slots, written at once.
const EMPTY: [u8; 256] = [0; 256];

/// An index that is filled in any order.
pub(crate) struct IndexBuilder {
    width: usize,
    slots: u64,
    bytes: Vec<u8>,
}

impl IndexBuilder {
    /// An empty index for this many terms.
    pub(crate) fn new(terms: u64) -> Self {
        let (width, slots) = (index_width(terms), slot_count(terms));
        let bytes = vec![0; usize::try_from(slots).unwrap_or(usize::MAX) * (width + 1)];
        Self { width, slots, bytes }
    }

    /// Adds the term with this hash and number.
    pub(crate) fn push(&mut self, hash: u64, number: u64) {
        let slot_bytes = self.width + 1;
        let mut at = usize::try_from(home_slot(hash, self.slots)).unwrap_or(usize::MAX) * slot_bytes;
        while self
            .bytes
            .get(at + 1..at + slot_bytes)
            .is_some_and(|stored| stored.iter().any(|byte| *byte != 0))
        {
            at += slot_bytes;
        }
        if at == self.bytes.len() {
            self.bytes.resize(at + slot_bytes, 0);
        }
        let slot = &mut self.bytes[at..at + slot_bytes];
        slot[0] = fingerprint(hash);
        slot[1..].copy_from_slice(&(number + 1).to_le_bytes()[..self.width]);
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// The content of a slot, and the first slot that it may take.
#[derive(Clone, Copy)]
struct IndexEntry {
    first: u64,
    print: u8,
    stored: u64,
}

/// Merges an index with new terms into a file.
pub(crate) struct IndexMerge<'a, 's> {
    file: &'a mut FileWriter<'s>,
    section: Section,
    /// The new terms in the order of their hashes: hash, and number plus 1.
    new: &'a [(u64, u64)],
    slots: u64,
    width: usize,
    /// The next slot to write.
    next: u64,
}

/// Writes the index of `table` with the terms `new` (hash and number plus 1, ascending) added; returns the
/// number of home slots.
pub(crate) fn merge(
    dictionary: &Dictionary,
    (table, id_of): (&TermTable, fn(u64) -> Id),
    new: &[(u64, u64)],
    file: &mut FileWriter<'_>,
    watch: &Watch<'_>,
) -> Result<u64> {
    let terms = table.terms + new.len() as u64;
    let slots = slots_after(table.slots, terms);
    let mut merge = IndexMerge { file, section: table.index, new, slots, width: index_width(terms), next: 0 };
    let mut ticker = watch.ticker();
    let slot_bytes = index_width(table.terms) + 1;
    let all = dictionary.body().length(table.index) / slot_bytes;
    // The terms of a cluster with their hashes, if these are needed, and its start.
    let (mut cluster, mut start) = (Vec::new(), 0);
    let mut scratch = [String::new(), String::new()];
    let mut at = 0_u64;
    while at < all as u64 {
        let count = READ_SLOTS.min(all as u64 - at);
        // Lossless: the section is in memory.
        let [from, length] =
            [at, count].map(|slots| usize::try_from(slots).unwrap_or(usize::MAX) * slot_bytes);
        for slot in dictionary.body().get(table.index, from, length)?.chunks_exact(slot_bytes) {
            ticker.step()?;
            let stored = read_le(&slot[1..]);
            if slots == table.slots {
                if stored > 0 {
                    merge.push(IndexEntry { first: at, print: slot[0], stored })?;
                }
            } else if stored == 0 {
                merge.push_cluster(&mut cluster, start..at, table.slots, dictionary)?;
                start = at + 1;
            } else {
                cluster.push((dictionary.hash_of(id_of(stored - 1), &mut scratch)?, stored));
            }
            at += 1;
        }
    }
    merge.push_cluster(&mut cluster, start..at, table.slots, dictionary)?;
    merge.finish()?;
    Ok(slots)
}

impl IndexMerge<'_, '_> {
    /// Writes the terms of a cluster, which had these slots, and clears it.
    fn push_cluster(
        &mut self,
        cluster: &mut Vec<(u64, u64)>,
        had: std::ops::Range<u64>,
        slots_before: u64,
        dictionary: &Dictionary,
    ) -> Result<()> {
        cluster.sort_unstable();
        for &(hash, stored) in &*cluster {
            if !had.contains(&home_slot(hash, slots_before)) {
                return Err(dictionary.damaged("a slot of its index has a misplaced term"));
            }
            self.push(IndexEntry { first: home_slot(hash, self.slots), print: fingerprint(hash), stored })?;
        }
        cluster.clear();
        Ok(())
    }

    /// Writes an entry, and the new terms before it.
    fn push(&mut self, entry: IndexEntry) -> Result<()> {
        self.push_new(entry.first)?;
        self.write(entry)
    }

    /// Writes the new terms with home slots below `end`.
    fn push_new(&mut self, end: u64) -> Result<()> {
        while let Some((&(hash, stored), rest)) = self.new.split_first() {
            let first = home_slot(hash, self.slots);
            if first >= end {
                break;
            }
            self.new = rest;
            self.write(IndexEntry { first, print: fingerprint(hash), stored })?;
        }
        Ok(())
    }

    fn write(&mut self, entry: IndexEntry) -> Result<()> {
        self.skip_to(entry.first)?;
        let mut slot = [entry.print; 9];
        slot[1..].copy_from_slice(&entry.stored.to_le_bytes());
        self.next += 1;
        self.file.write(self.section, &slot[..=self.width])
    }

    /// Writes empty slots up to `slot`.
    fn skip_to(&mut self, slot: u64) -> Result<()> {
        let slot_bytes = self.width + 1;
        let at_once = (EMPTY.len() / slot_bytes) as u64;
        while self.next < slot {
            let count = at_once.min(slot - self.next);
            // Lossless: at most `EMPTY`.
            self.file.write(self.section, &EMPTY[..usize::try_from(count).unwrap_or(0) * slot_bytes])?;
            self.next += count;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.push_new(u64::MAX)?;
        self.skip_to(self.slots)
    }
}

#[cfg(test)]
mod tests {
    use crate::index_slots::index_width;
    use crate::key::{Seed, TermKind};
    use crate::{Dictionary, DictionaryBuilder, Extension};
    use vervet_env::Bytes;
    use vervet_model::{Id, TermParts, Watch};

    /// Security S8: terms that were chosen for one seed, so that all searches begin in the last slots, are
    /// found, also in extended files; with another seed they do not collide.
    #[test]
    fn s8_terms_that_collide_under_a_seed_are_found() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut collide = || loop {
            let iri = format!("http://example.org/{:x}", random.u64(..));
            if Seed(seed).hash(TermKind::Iri, iri.as_bytes()) > u64::MAX / 64 * 63 {
                return iri;
            }
        };
        let mut iris: Vec<String> = (0..40).map(|_| collide()).collect();
        let mut builder = DictionaryBuilder::new();
        builder.set_seed(seed);
        iris.iter().for_each(|iri| assert!(builder.intern_iri(iri).is_ok()));
        let mut dictionary =
            Dictionary::open(Bytes::from(builder.finish().expect("small")), "sample").expect("whole");
        for _ in 0..12 {
            dictionary.validate().expect("whole");
            let [(table, _), _] = dictionary.tables();
            let slot_bytes = index_width(table.terms) + 1;
            let slots = dictionary.body().length(table.index) / slot_bytes;
            assert!(slots as u64 > table.slots + table.terms / 2, "seed {seed}: {slots}");
            for (number, iri) in (0..).zip(&iris) {
                assert_eq!(
                    dictionary.lookup_iri(iri).expect("whole"),
                    Some(Id::vertex(number)),
                    "seed {seed}"
                );
            }
            assert_eq!(dictionary.lookup_iri(&collide()).expect("whole"), None, "seed {seed}");
            let mut extension = Extension::new(&dictionary, 5).expect("few");
            for _ in 0..5 {
                iris.push(collide());
                let local = iris.last().map_or("", String::as_str);
                extension.add(TermParts::Iri { namespace: "", local }).expect("room");
            }
            let mut image = Vec::new();
            let mut sink = |bytes: &[u8]| {
                image.extend_from_slice(bytes);
                Ok(())
            };
            extension.write(&mut sink, &Watch::new("test")).expect("whole");
            dictionary = Dictionary::open(Bytes::from(image), "sample").expect("whole");
        }
        let mut builder = DictionaryBuilder::from_dictionary(&dictionary).expect("whole");
        builder.set_seed(!seed);
        let other = Dictionary::open(Bytes::from(builder.finish().expect("small")), "sample").expect("whole");
        other.validate().expect("whole");
        let [(table, _), _] = other.tables();
        let slots = other.body().length(table.index) / (index_width(table.terms) + 1);
        assert!((slots as u64) < table.slots + table.terms / 4, "seed {seed}: {slots}");
    }
}
