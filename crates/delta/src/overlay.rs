//! An overlay: a segment with changes on top.
//!
//! # Shape
//! A lower segment (of a store, another overlay, or none), a persistent tree of cells (see `cell`), the Bloom
//! filter of touched keys, statistics, and the identity of its entries. A clone shares all of them and costs
//! four atomic increments.
//! # Invariants
//! 1. Cells are never redundant: an entry has a "present" cell only if the lower segment lacks it, and a
//!    "removed" cell only if the lower segment has it. A degree is therefore the lower one plus a sum of 1
//!    and -1, and adding a removed entry again deletes its cell.
//! 2. A key with cells is in the filter.
//! 3. The flags of the statistics exclude only properties that no entry has ever had, here or below; the rest
//!    of the statistics is an estimate (see `estimates`).
//! # Cost
//! A batch of keys without cells: one test in the filter for each, then the work of the lower segment. A key
//! with cells: merging (see `merged`); its degree: two paths through the tree.
//! # Source
//! DESIGN §3. Difference: no stamps and no visibility checks. A version is a value; changes that a reader
//! cannot see are not in its tree.
//! # Not here
//! Reading it as a segment (see `segment`); the conversion of a statement to two entries, and its other
//! effects (see `version`).

use crate::cell::{Cell, CellKey};
use crate::key_filter::KeyFilter;
use crate::merged::{Cells, MergedEntries};
use crate::tree::Tree;
use std::fmt;
use std::sync::{Arc, OnceLock};
use vervet_model::{Id, Result, Tag};
use vervet_snapshot::{ContentId, KeyEntries, Segment, SegmentStatistics};

/// A segment with changes on top. See the header of this file.
#[derive(Clone)]
pub struct Overlay {
    pub(crate) lower: Option<Arc<dyn Segment>>,
    pub(crate) cells: Tree<Cell>,
    pub(crate) key_filter: Arc<KeyFilter>,
    pub(crate) statistics: Arc<SegmentStatistics>,
    /// Number of entries of the lower segment.
    pub(crate) lower_entries: u64,
    /// Identity of the entries, once it was requested; a change clears it.
    pub(crate) content: OnceLock<ContentId>,
}

/// Transition of one entry between the states of its cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CellTransition {
    /// From neither: the entry gets a "present" cell.
    Add,
    /// From a "removed" cell: the cell is deleted.
    Restore,
    /// From the lower segment: the entry gets a "removed" cell.
    Hide,
    /// From a "present" cell: the cell is deleted.
    Drop,
}

impl fmt::Debug for Overlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let below = self.lower_entries;
        f.debug_struct("Overlay").field("cells", &self.cells.len()).field("lower", &below).finish()
    }
}

impl Overlay {
    /// An overlay without changes over `lower`, which has `entries` entries.
    #[must_use]
    pub fn new(lower: Option<Arc<dyn Segment>>, entries: u64) -> Self {
        let statistics = match &lower {
            Some(lower) => SegmentStatistics { exact: false, ..lower.statistics().clone() },
            // Without entries there is no neighbour of any other kind.
            None => SegmentStatistics {
                literals_only: true,
                plain_strings_only: true,
                vertices_only: true,
                ..Default::default()
            },
        };
        Self {
            lower_entries: if lower.is_some() { entries } else { 0 },
            lower,
            cells: Tree::default(),
            key_filter: Arc::new(KeyFilter::for_keys(0)),
            statistics: Arc::new(statistics),
            content: OnceLock::new(),
        }
    }

    /// Exact number of entries.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.lower_entries.saturating_add_signed(self.cells.sum().weight)
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of cells: entries that differ from the lower segment.
    #[must_use]
    pub fn cells(&self) -> u64 {
        self.cells.len()
    }

    /// Adds an entry (neighbour, graph, edge) of `key`; `false` if it existed.
    ///
    /// # Errors
    /// Damaged lower segment.
    pub fn insert(&mut self, key: Id, entry: [Id; 3]) -> Result<bool> {
        let Some(change) = self.change(key, entry, true)? else { return Ok(false) };
        self.apply(key, entry, change, entry[0].tag() == Tag::ShortString);
        if self.may_gain_parallel() && self.has_twin(key, entry, Id::UNBOUND) {
            self.set_parallel();
        }
        Ok(true)
    }

    /// Removes an entry of `key`; `false` if it did not exist.
    ///
    /// # Errors
    /// Damaged lower segment.
    pub fn remove(&mut self, key: Id, entry: [Id; 3]) -> Result<bool> {
        let change = self.change(key, entry, false)?;
        Ok(change.inspect(|change| self.apply(key, entry, *change, false)).is_some())
    }

    /// Whether the entry exists.
    ///
    /// # Errors
    /// Damaged lower segment.
    pub fn contains(&self, key: Id, entry: [Id; 3]) -> Result<bool> {
        // An existing entry cannot be added.
        Ok(self.change(key, entry, true)?.is_none())
    }

    /// The transition that makes the entry exist, or not exist; `None` if that is its state.
    pub(crate) fn change(&self, key: Id, entry: [Id; 3], to_present: bool) -> Result<Option<CellTransition>> {
        if self.key_filter.may_contain(key)
            && let Some(cell) = self.cells.get(CellKey::new(key, entry))
        {
            return Ok(match (cell.is_present(), to_present) {
                (true, false) => Some(CellTransition::Drop),
                (false, true) => Some(CellTransition::Restore),
                _ => None,
            });
        }
        change_over(self.lower.as_deref(), key, entry, to_present)
    }

    /// Applies the transition that [`Overlay::change`] has returned. `string`: the neighbour of an added
    /// entry is certainly an `xsd:string`.
    pub(crate) fn apply(&mut self, key: Id, entry: [Id; 3], change: CellTransition, string: bool) {
        self.content.take();
        match change {
            CellTransition::Add | CellTransition::Hide => {
                let is_present = change == CellTransition::Add;
                self.touch([key].into_iter());
                if is_present {
                    self.widen_flags(entry, string);
                }
                self.cells.insert(Cell::new(key, entry, is_present));
            }
            CellTransition::Drop | CellTransition::Restore => {
                self.cells.remove(CellKey::new(key, entry));
            }
        }
    }

    /// Whether an added entry could be the first that is parallel to another.
    pub(crate) fn may_gain_parallel(&self) -> bool {
        self.statistics.has_edges && !self.statistics.has_parallel
    }

    /// Whether the key has two entries with the neighbour and graph of `entry` whose edges are not below
    /// `first_edge`.
    ///
    /// Cost: a path through the tree, and one search in the lower segment.
    pub(crate) fn has_twin(&self, key: Id, [neighbour, graph, _]: [Id; 3], first_edge: Id) -> bool {
        let mut entries = self.entries_from(key, [neighbour, graph, first_edge]);
        for _ in 0..2 {
            match entries.next() {
                Ok(Some(found)) if found[..2] == [neighbour, graph] => {}
                Ok(_) => return false,
                // A damaged segment fails its readers; a flag that is set needlessly is still correct.
                Err(_) => return true,
            }
        }
        true
    }

    /// Sets the flag that there may be parallel entries.
    pub(crate) fn set_parallel(&mut self) {
        Arc::make_mut(&mut self.statistics).has_parallel = true;
    }

    /// Adds many entries that neither this overlay nor the lower segment has any trace of: sorted "present"
    /// cells. The caller detects entries that are parallel to existing ones ([`Overlay::set_parallel`]).
    /// `strings`: all neighbours are certainly of type `xsd:string`.
    pub(crate) fn add_all(&mut self, cells: &[Cell], strings: bool) {
        self.content.take();
        let keys = || cells.chunk_by(|a, b| a.key == b.key).filter_map(|run| run.first());
        let touched = self.key_filter.keys() + keys().count() as u64;
        if touched > self.key_filter.capacity() {
            self.renew_filter(touched + touched / 2);
        }
        self.touch(keys().map(|cell| cell.key));
        let mut last = None;
        for cell in cells {
            let [neighbour, graph, edge] = cell.entry();
            let kinds = (neighbour.tag(), graph.is_bound(), edge.is_bound());
            if last != Some(kinds) {
                self.widen_flags(cell.entry(), strings);
                last = Some(kinds);
            }
        }
        let are_twins = |pair: &[Cell]| {
            (pair[0].key, pair[0].neighbour, pair[0].graph) == (pair[1].key, pair[1].neighbour, pair[1].graph)
        };
        if self.may_gain_parallel() && cells.windows(2).any(are_twins) {
            self.set_parallel();
        }
        self.cells.merge_sorted(cells);
    }

    /// The first entry of `key` that is not below `from`.
    pub(crate) fn first_entry(&self, key: Id, from: [Id; 3]) -> Result<Option<[Id; 3]>> {
        if self.touches(key) {
            return self.entries_from(key, from).next();
        }
        first_of(self.lower.as_deref(), key, from)
    }

    /// The entries of `key` that are not below `from`.
    pub(crate) fn entries_from(&self, key: Id, from: [Id; 3]) -> MergedEntries<'_> {
        MergedEntries::from_entry(self.lower.as_deref(), &self.cells, key, from)
    }

    /// All entries of `key`, whose cells are `cells`.
    pub(crate) fn all_entries<'a>(&'a self, key: Id, cells: Cells<'a>) -> MergedEntries<'a> {
        MergedEntries::all(self.lower.as_deref(), key, cells)
    }

    /// Makes the entries of keys in the lower segment those of this one.
    ///
    /// # Errors
    /// None: the lower segment is not read.
    pub(crate) fn change_entries(&self, keys: &[Id], list: &mut KeyEntries) -> Result<()> {
        let is_changed = |key: &Id| self.touches(*key);
        if !keys.iter().take(list.ends.len()).any(is_changed) {
            return Ok(());
        }
        let mut changed = KeyEntries::default();
        for (row, key) in keys.iter().enumerate().take(list.ends.len()) {
            let lower = list.of(row).unwrap_or_default();
            match self.cells_of(*key) {
                None => changed.entries.extend_from_slice(lower),
                Some(cells) => {
                    let mut merged = MergedEntries::of_entries(lower.to_vec(), *key, cells);
                    while let Some(entry) = merged.next()? {
                        changed.entries.push(entry);
                    }
                }
            }
            changed.ends.push(changed.entries.len());
        }
        *list = changed;
        Ok(())
    }

    /// Whether the key has a cell.
    #[inline]
    pub(crate) fn touches(&self, key: Id) -> bool {
        self.cells_of(key).is_some()
    }

    /// The cells of a key, if it has any.
    #[inline]
    pub(crate) fn cells_of(&self, key: Id) -> Option<Cells<'_>> {
        if self.key_filter.may_contain(key) { self.find_cells(key) } else { None }
    }

    fn find_cells(&self, key: Id) -> Option<Cells<'_>> {
        let mut cells = self.cells.iter_from(CellKey::start(key));
        let first = cells.next().filter(|cell| cell.key == key)?;
        Some((cells, first))
    }

    fn touch(&mut self, keys: impl Iterator<Item = Id>) {
        if self.key_filter.keys() >= self.key_filter.capacity() {
            // Bounds the count of keys that only other versions added: each own key has at least one cell.
            self.renew_filter(2 * self.key_filter.keys().min(self.cells.len()));
        }
        keys.for_each(|key| self.key_filter.add(key));
    }

    /// Replaces the filter by one of this capacity, with the keys that have cells.
    fn renew_filter(&mut self, keys: u64) {
        let filter = KeyFilter::for_keys(keys);
        let mut last = None;
        for cell in self.cells.iter_from(CellKey::start(Id::UNBOUND)) {
            if last != Some(cell.key) {
                filter.add(cell.key);
                last = Some(cell.key);
            }
        }
        self.key_filter = Arc::new(filter);
    }
}

/// The first entry of `key` in a segment that is not below `from`.
pub(crate) fn first_of(segment: Option<&dyn Segment>, key: Id, from: [Id; 3]) -> Result<Option<[Id; 3]>> {
    let Some(segment) = segment else { return Ok(None) };
    let mut found = Vec::new();
    segment.entries(key, from, 1, &mut found)?;
    Ok(found.pop())
}

/// [`Overlay::change`] for an entry without a cell.
pub(crate) fn change_over(
    lower: Option<&dyn Segment>,
    key: Id,
    entry: [Id; 3],
    to_present: bool,
) -> Result<Option<CellTransition>> {
    Ok(match (first_of(lower, key, entry)? == Some(entry), to_present) {
        (false, true) => Some(CellTransition::Add),
        (true, false) => Some(CellTransition::Hide),
        _ => None,
    })
}
