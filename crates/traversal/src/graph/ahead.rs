//! Reading ahead: the entries of elements that steps are about to read, from a graph over several servers.
//!
//! # Shape
//! Steps read the entries of one element at a time, each time in some segments: `out()` in those of all edge
//! labels. Where each read costs a round trip, a read of an element that is not known yet also reads the
//! elements that were found after it, since steps mostly read elements in the order in which they find them,
//! as programs read files. One request to each server ([`Snapshot::entries_together`]) has the entries of up
//! to [`WINDOW_MAX`] elements in all these segments. Elements are found by scans, by queries, and as
//! neighbours in what is read ahead.
//! # Invariants
//! Reading ahead is unobservable: entries are those of one version of the graph, and are dropped when it
//! changes. Graphs of one process and graphs with recorded reads are not read ahead.
//! # Cost
//! A hash look-up and a copy for each read. The number of elements read ahead grows from [`WINDOW_FIRST`] as
//! long as half of them are used. At most [`FOUND_MAX`] ids and about [`ENTRIES_MAX`] entries are held, and
//! count against the memory cap.

use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;
use vervet_model::{Direction, Id, Result};
use vervet_snapshot::Snapshot;

/// Number of elements that the first read of each kind reads, and the maximum.
const WINDOW_FIRST: usize = 16;
pub(crate) const WINDOW_MAX: usize = 1024;

/// Maximum number of entries of one read, in all its segments.
const ENTRIES_AT_ONCE: usize = 1 << 17;

/// Number of entries from which all are dropped before the next read.
const ENTRIES_MAX: usize = 1 << 18;

/// Number of found ids that are kept at least; there may be twice as many.
const FOUND_MAX: usize = 1 << 16;

/// An entry of an element: the position of its segment among those that were asked for; neighbour, graph,
/// edge.
pub(crate) type EntryAhead = (u32, [Id; 3]);

/// The segments of one kind of reads, and how many elements to read.
#[derive(Debug)]
struct Kind {
    segments: Vec<(Id, Direction)>,
    window: usize,
    /// Elements read by the last read, and how many reads used them.
    read: usize,
    used: usize,
}

/// See the header of this file.
#[derive(Debug, Default)]
pub(crate) struct ReadAhead {
    /// Whether the graph is read ahead; `None`: not known yet.
    is_on: Option<bool>,
    kinds: Vec<Kind>,
    /// Ids in the order in which they were found, without repetition, and the position of each.
    found: Vec<Id>,
    positions: FxHashMap<Id, usize>,
    /// By number of the kind and element: where its entries are.
    known: FxHashMap<(usize, Id), (usize, usize)>,
    /// Elements with too many entries.
    large: FxHashSet<(usize, Id)>,
    entries: Vec<EntryAhead>,
}

impl ReadAhead {
    /// Decides whether the graph is read ahead.
    ///
    /// # Errors
    /// None at present.
    pub(crate) fn begin(&mut self, snapshot: &dyn Snapshot) -> Result<()> {
        if self.is_on.is_none() {
            self.is_on = Some(snapshot.entries_together(&[], &[], 0)?.is_some());
        }
        Ok(())
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on == Some(true)
    }

    /// Drops everything, since the graph has changed.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Approximate size in bytes.
    pub(crate) fn size_bytes(&self) -> u64 {
        (self.entries.capacity() * size_of::<EntryAhead>()
            + (self.known.capacity() + self.large.capacity()) * 40
            + self.found.capacity() * size_of::<Id>()
            + self.positions.capacity() * 24) as u64
    }

    /// Notes ids that were found, in the order in which later steps are likely to read them.
    pub(crate) fn found(&mut self, ids: impl Iterator<Item = Id>) {
        if !self.is_on() {
            return;
        }
        for id in ids {
            // An id that is found again is read where it was found first, with those after it.
            if let Entry::Vacant(position) = self.positions.entry(id) {
                position.insert(self.found.len());
                self.found.push(id);
            }
        }
        if self.found.len() >= 2 * FOUND_MAX {
            self.found.drain(..self.found.len() - FOUND_MAX);
            self.positions.clear();
            self.positions.extend(self.found.iter().enumerate().map(|(position, id)| (*id, position)));
        }
    }

    /// The entries of an element in these segments, by segment. `None`: the graph is not read ahead, or the
    /// element has too many entries; read the segments one by one.
    ///
    /// # Errors
    /// Damaged data; another server cannot be reached; limits.
    pub(crate) fn read(
        &mut self,
        snapshot: &dyn Snapshot,
        segments: &[(Id, Direction)],
        element: Id,
    ) -> Result<Option<Vec<EntryAhead>>> {
        if segments.is_empty() || !self.is_on() {
            return Ok(None);
        }
        let kind = match self.kinds.iter().position(|kind| kind.segments == segments) {
            Some(kind) => kind,
            None => {
                let segments = segments.to_vec();
                self.kinds.push(Kind { segments, window: WINDOW_FIRST, read: 0, used: 0 });
                self.kinds.len() - 1
            }
        };
        if let Some((start, end)) = self.known.get(&(kind, element)) {
            self.kinds[kind].used += 1;
            return Ok(Some(self.entries[*start..*end].to_vec()));
        }
        if self.large.contains(&(kind, element)) {
            return Ok(None);
        }
        let elements = self.elements_from(kind, element);
        self.read_all(snapshot, kind, &elements)?;
        let Some((start, end)) = self.known.get(&(kind, element)) else { return Ok(None) };
        Ok(Some(self.entries[*start..*end].to_vec()))
    }

    /// The element, and unknown ones of its tag that were found after it.
    fn elements_from(&mut self, kind: usize, element: Id) -> Vec<Id> {
        let of = &mut self.kinds[kind];
        if of.used * 2 >= of.read && of.read > 0 {
            of.window = (of.window * 8).min(WINDOW_MAX);
        }
        let window = of.window;
        let mut elements = vec![element];
        let Some(position) = self.positions.get(&element) else { return elements };
        // Ids of another tag, or known ones, may be between.
        for id in self.found.iter().skip(position + 1).take(8 * window) {
            if id.tag() == element.tag()
                && !self.known.contains_key(&(kind, *id))
                && !self.large.contains(&(kind, *id))
            {
                elements.push(*id);
                if elements.len() == window {
                    break;
                }
            }
        }
        elements
    }

    /// Reads the entries of elements, of which the first becomes known or large.
    fn read_all(&mut self, snapshot: &dyn Snapshot, kind: usize, elements: &[Id]) -> Result<()> {
        if self.entries.len() >= ENTRIES_MAX || self.known.len() >= ENTRIES_MAX {
            self.entries.clear();
            self.known.clear();
        }
        let segments = &self.kinds[kind].segments;
        let limit = ENTRIES_AT_ONCE / segments.len();
        let Some(lists) = snapshot.entries_together(segments, elements, limit)? else {
            self.is_on = Some(false);
            return Ok(());
        };
        let whole = lists.iter().map(|list| list.ends.len()).min().unwrap_or(0);
        let mut found = Vec::new();
        for (row, element) in elements.iter().enumerate().take(whole) {
            let start = self.entries.len();
            for (segment, list) in (0_u32..).zip(&lists) {
                let entries = list.of(row).unwrap_or_default();
                self.entries.extend(entries.iter().map(|entry| (segment, *entry)));
            }
            for (_, [neighbour, _, edge]) in &self.entries[start..] {
                found.extend([*neighbour, *edge].into_iter().filter(|id| is_element(*id)));
            }
            self.known.insert((kind, *element), (start, self.entries.len()));
        }
        self.found(found.into_iter());
        if let Some(element) = elements.get(whole).filter(|_| whole == 0) {
            self.large.insert((kind, *element));
        }
        let of = &mut self.kinds[kind];
        (of.read, of.used) = (whole.max(1), 1);
        Ok(())
    }
}

/// Whether steps read entries of the id.
pub(crate) fn is_element(id: Id) -> bool {
    id.is_vertex() || id.tag() == vervet_model::Tag::Edge
}
