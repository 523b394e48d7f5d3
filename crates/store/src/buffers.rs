//! Build buffers: statements grouped by predicate, before they are sorted into segments.
//!
//! # Shape
//! For each predicate: lists of narrow entries (one for each pair of tags, payloads below 2^32), pairs
//! and quads (see `entries`), and runs of the same that have been spilled to files.
//! # Cost
//! A triple costs one hash lookup and 8 bytes.

use crate::Statement;
use crate::spill::{RunKind, SortedRun, Spill};
use crate::{merge, sort};
use rustc_hash::FxHashMap;
use vervet_model::{Id, Result, Watch};

/// All statements added so far.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    predicates: Vec<PredicateBuffer>,
    index: FxHashMap<u64, usize>,
    /// Size of the entries in memory, in bytes.
    pub(crate) held_bytes: u64,
}

/// The entries added for one predicate, keyed by subject.
#[derive(Debug, Default)]
pub(crate) struct PredicateBuffer {
    /// Bits of the predicate.
    pub(crate) predicate: u64,
    /// Tags (subject's and object's, 4 bits each) and entries.
    narrow: Vec<(u8, Vec<u64>)>,
    pairs: Vec<[u64; 2]>,
    quads: Vec<[u64; 4]>,
    runs: Vec<SortedRun>,
    /// Number of added entries, duplicates included.
    count: usize,
}

/// All entries of one predicate, keyed by subject, unsorted, in the narrowest form that can represent them.
#[derive(Debug)]
pub(crate) enum EntryBuffer {
    /// See `entries::Narrow`: tags in place, entries.
    Narrow {
        key_tag: u64,
        neighbour_tag: u64,
        entries: Vec<u64>,
    },
    Pairs(Vec<[u64; 2]>),
    Quads(Vec<[u64; 4]>),
}

const NARROW_MAX: u64 = u32::MAX as u64;

impl Buffers {
    fn buffer(&mut self, predicate: Id) -> &mut PredicateBuffer {
        let next = self.predicates.len();
        let index = *self.index.entry(predicate.bits()).or_insert(next);
        if index == next {
            self.predicates
                .push(PredicateBuffer { predicate: predicate.bits(), ..PredicateBuffer::default() });
        }
        &mut self.predicates[index]
    }

    pub(crate) fn add_triple(&mut self, subject: Id, predicate: Id, object: Id) {
        let buffer = self.buffer(predicate);
        self.held_bytes += buffer.add(subject, object);
    }

    pub(crate) fn add(&mut self, statement: &Statement) {
        if !statement.graph.is_bound() && !statement.edge.is_bound() {
            self.add_triple(statement.subject, statement.predicate, statement.object);
            return;
        }
        let Statement { subject, object, graph, edge, .. } = *statement;
        let buffer = self.buffer(statement.predicate);
        buffer.quads.push([subject.bits(), object.bits(), graph.bits(), edge.bits()]);
        buffer.count += 1;
        self.held_bytes += 32;
    }

    /// Writes all entries in memory to a file of `spill`, sorted.
    pub(crate) fn spill(&mut self, spill: &Spill, watch: &Watch<'_>) -> Result<()> {
        if self.held_bytes == 0 {
            return Ok(());
        }
        let mut file = spill.begin()?;
        let (mut written, mut owners) = (Vec::new(), Vec::new());
        let mut scratch = Vec::new();
        for (number, buffer) in self.predicates.iter_mut().enumerate() {
            for (tags, mut entries) in std::mem::take(&mut buffer.narrow) {
                sort::sort(&mut entries, u64::MAX, &mut scratch, watch)?;
                entries.dedup();
                let rows = entries.iter().map(|entry| Ok([entry >> 32, entry & NARROW_MAX, 0, 0]));
                written.push(file.write(RunKind::Narrow(tags), rows, watch)?);
            }
            let mut pairs = std::mem::take(&mut buffer.pairs);
            if !pairs.is_empty() {
                watch.sort(&mut pairs, Ord::cmp)?;
                pairs.dedup();
                let rows = pairs.iter().map(|[subject, object]| Ok([*subject, *object, 0, 0]));
                written.push(file.write(RunKind::Pairs, rows, watch)?);
            }
            let mut quads = std::mem::take(&mut buffer.quads);
            if !quads.is_empty() {
                watch.sort(&mut quads, Ord::cmp)?;
                // An edge with two statements must stay visible: it is an error of the input.
                quads.dedup_by(|a, b| a == b && a[3] == 0);
                drop_plain_twins(&mut quads);
                written.push(file.write(RunKind::Quads, quads.iter().copied().map(Ok), watch)?);
            }
            owners.resize(written.len(), number);
        }
        for (owner, run) in owners.into_iter().zip(file.finish(&written)?) {
            self.predicates[owner].runs.push(run);
        }
        self.held_bytes = 0;
        Ok(())
    }

    /// The buffer of a predicate that has entries.
    pub(crate) fn of(&self, predicate: Id) -> Option<&PredicateBuffer> {
        self.predicates.get(*self.index.get(&predicate.bits())?)
    }

    /// Takes all entries in memory: calls `each` with the predicate, the kind and the numbers of each list.
    pub(crate) fn drain(&mut self, each: &mut dyn FnMut(u64, RunKind, &[u64])) {
        for buffer in &mut self.predicates {
            let predicate = buffer.predicate;
            for (tags, entries) in std::mem::take(&mut buffer.narrow) {
                each(predicate, RunKind::Narrow(tags), &entries);
            }
            let (pairs, quads) = (std::mem::take(&mut buffer.pairs), std::mem::take(&mut buffer.quads));
            if !pairs.is_empty() {
                each(predicate, RunKind::Pairs, pairs.as_flattened());
            }
            if !quads.is_empty() {
                each(predicate, RunKind::Quads, quads.as_flattened());
            }
        }
        self.held_bytes = 0;
    }

    /// Number of added entries, duplicates included.
    pub(crate) fn count(&self) -> u64 {
        self.predicates.iter().map(|buffer| buffer.count as u64).sum()
    }

    /// The buffers in no particular order.
    pub(crate) fn into_predicates(self) -> Vec<PredicateBuffer> {
        self.predicates
    }

    /// The buffers, largest first (equal sizes by predicate): the order in which they become segments.
    pub(crate) fn into_ranked(self) -> Vec<PredicateBuffer> {
        let mut buffers = self.predicates;
        buffers.sort_by_cached_key(|buffer| (std::cmp::Reverse(buffer.count), buffer.predicate));
        buffers
    }
}

/// Drops the plain twins of edges: see [`vervet_model::drop_plain_twins`].
pub(crate) fn drop_plain_twins(entries: &mut Vec<[u64; 4]>) {
    vervet_model::drop_plain_twins(entries, |entry| entry[3] == 0, |entry, next| entry[..3] == next[..3]);
}

impl PredicateBuffer {
    /// Adds a plain entry; returns its size in bytes.
    #[inline]
    fn add(&mut self, subject: Id, object: Id) -> u64 {
        self.count += 1;
        if subject.payload() > NARROW_MAX || object.payload() > NARROW_MAX {
            self.pairs.push([subject.bits(), object.bits()]);
            return 16;
        }
        let tag = |id: Id| (id.bits() >> Id::PAYLOAD_BITS).to_le_bytes()[0];
        let tags = tag(subject) << 4 | tag(object);
        let entry = subject.payload() << 32 | object.payload();
        match self.narrow.iter_mut().find(|(other, _)| *other == tags) {
            Some((_, entries)) => entries.push(entry),
            None => self.narrow.push((tags, vec![entry])),
        }
        8
    }

    /// Calls `each` with subject and object of every entry.
    pub(crate) fn for_each_pair(&self, each: &mut dyn FnMut([u64; 2])) {
        for (tags, entries) in &self.narrow {
            let [key_tag, neighbour_tag] =
                [tags >> 4, tags & 15].map(|tag| u64::from(tag) << Id::PAYLOAD_BITS);
            entries
                .iter()
                .for_each(|entry| each([key_tag | entry >> 32, neighbour_tag | entry & NARROW_MAX]));
        }
        self.pairs.iter().for_each(|pair| each(*pair));
        self.quads.iter().for_each(|[subject, object, ..]| each([*subject, *object]));
        for run in &self.runs {
            (0..run.len()).for_each(|index| {
                let [subject, object, ..] = run.row(index);
                each([subject, object]);
            });
        }
    }

    /// Number of added entries, duplicates included.
    pub(crate) fn added(&self) -> u64 {
        self.count as u64
    }

    /// Calls `each` with every quad.
    pub(crate) fn for_each_quad(&self, mut each: impl FnMut(&[u64; 4])) {
        self.quads.iter().for_each(&mut each);
        for run in self.runs.iter().filter(|run| run.kind() == RunKind::Quads) {
            (0..run.len()).for_each(|index| each(&run.row(index)));
        }
    }

    /// Number of quads.
    pub(crate) fn quad_count(&self) -> usize {
        let runs = self.runs.iter().filter(|run| run.kind() == RunKind::Quads);
        self.quads.len() + runs.map(SortedRun::len).sum::<usize>()
    }

    /// Merges the runs into one, if there are any; no entries are in memory then.
    pub(crate) fn merge(&mut self, spill: &Spill, watch: &Watch<'_>) -> Result<()> {
        if self.runs.len() > 1 {
            self.runs = vec![merge::merge(&self.runs, spill, watch)?];
        }
        Ok(())
    }

    /// Calls `each` with subject, object, graph and edge of every entry.
    pub(crate) fn for_each(self, each: &mut dyn FnMut([u64; 4]) -> Result<()>) -> Result<()> {
        let tag = |tags: u8| u64::from(tags & 15) << Id::PAYLOAD_BITS;
        let widen =
            |tags: u8, entry: u64| [tag(tags >> 4) | entry >> 32, tag(tags) | entry & NARROW_MAX, 0, 0];
        for (tags, entries) in self.narrow {
            entries.into_iter().try_for_each(|entry| each(widen(tags, entry)))?;
        }
        self.pairs.into_iter().try_for_each(|[subject, object]| each([subject, object, 0, 0]))?;
        self.quads.into_iter().try_for_each(&mut *each)?;
        self.runs.iter().try_for_each(|run| (0..run.len()).try_for_each(|index| each(run.row(index))))
    }

    /// The one run of a merged buffer; `None` if all entries are in memory.
    pub(crate) fn run(&self) -> Option<&SortedRun> {
        self.runs.first()
    }

    /// All entries, if they are in memory.
    pub(crate) fn gather(mut self) -> EntryBuffer {
        let tag = |tags: u8| u64::from(tags & 15) << Id::PAYLOAD_BITS;
        if self.pairs.is_empty() && self.quads.is_empty() && self.narrow.len() == 1 {
            let (tags, entries) = self.narrow.remove(0);
            return EntryBuffer::Narrow { key_tag: tag(tags >> 4), neighbour_tag: tag(tags), entries };
        }
        let widened = self.narrow.iter().flat_map(|(tags, entries)| {
            let (key_tag, neighbour_tag) = (tag(tags >> 4), tag(*tags));
            entries.iter().map(move |entry| [key_tag | entry >> 32, neighbour_tag | entry & NARROW_MAX])
        });
        let mut pairs = self.pairs;
        if self.quads.is_empty() {
            pairs.extend(widened);
            return EntryBuffer::Pairs(pairs);
        }
        let mut quads = self.quads;
        quads.extend(widened.chain(pairs).map(|[subject, object]| [subject, object, 0, 0]));
        EntryBuffer::Quads(quads)
    }

    /// Subject and object of every entry in memory, sorted, without consuming the buffer.
    pub(crate) fn sorted_pairs(&self, watch: &Watch<'_>) -> Result<Vec<[u64; 2]>> {
        let copy = Self {
            narrow: self.narrow.clone(),
            pairs: self.pairs.clone(),
            quads: self.quads.clone(),
            ..Self::default()
        };
        let mut pairs: Vec<[u64; 2]> = match copy.gather() {
            EntryBuffer::Narrow { key_tag, neighbour_tag, entries } => {
                let widen = |entry: u64| [key_tag | entry >> 32, neighbour_tag | entry & NARROW_MAX];
                entries.into_iter().map(widen).collect()
            }
            EntryBuffer::Pairs(pairs) => pairs,
            EntryBuffer::Quads(quads) => {
                quads.into_iter().map(|[subject, object, ..]| [subject, object]).collect()
            }
        };
        if !pairs.is_sorted() {
            watch.sort(&mut pairs, Ord::cmp)?;
        }
        Ok(pairs)
    }
}
