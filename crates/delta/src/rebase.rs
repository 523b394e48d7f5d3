//! Rebasing a version onto a new store that was built from an earlier version.
//!
//! # Cost
//! Shared parts of the two versions are not visited; each statement that differs is changed again.

use crate::Version;
use crate::cell::Cell;
use crate::tree::Tree;
use std::sync::Arc;
use vervet_dictionary::MutableDictionary;
use vervet_model::{Direction, Error, Id, Result, Statement};
use vervet_store::Base;

impl Version {
    /// The same graph over `base`, a store of exactly its statements: a version without changes. The terms
    /// stay the same until [`Version::with_terms`].
    ///
    /// # Errors
    /// Internal: `base` is not a store of this version.
    pub fn rebase_empty(&self, base: Arc<dyn Base>) -> Result<Self> {
        if base.statement_count() != self.statements {
            return Err(not_its_store());
        }
        let mut moved = Self::new(base, Arc::clone(&self.terms));
        moved.extend_ids_to(self);
        Ok(moved)
    }

    /// Applies the difference between `old` and `new` to this version, which has the graph of `old`; it then
    /// has the graph of `new`. `old` and `new` must share one store; this version may have another.
    ///
    /// # Errors
    /// Damaged data. Internal: `old` and `new` stand over different stores, or this version has another graph
    /// than `old`.
    pub fn apply_difference(&mut self, old: &Self, new: &Self) -> Result<()> {
        if !Arc::ptr_eq(&new.base, &old.base) {
            return Err(Error::internal("two versions over different stores cannot be compared"));
        }
        let (mut removed, mut added) = (Vec::new(), Vec::new());
        let (empty, mut changed) = (Tree::default(), Vec::new());
        new.predicates.differences(&old.predicates, &mut |ours, theirs| {
            changed.extend(ours.or(theirs).map(|one| one.id));
        });
        for predicate in changed {
            let cells = |version: &Self| {
                let one = version.predicates.get(predicate);
                one.map_or_else(|| empty.clone(), |one| one.side(Direction::Out).cells.clone())
            };
            differing(&cells(new), &cells(old), &mut |key, [object, graph, edge], is_there| {
                let statement = Statement { subject: key, predicate, object, graph, edge };
                (if is_there { &mut added } else { &mut removed }).push(statement);
            });
        }
        self.extend_ids_to(new);
        // Removals first: an edge may have moved from one statement to another.
        for (statements, is_there) in [(removed, false), (added, true)] {
            for statement in statements {
                let change = self.change(&statement, is_there)?.ok_or_else(not_its_store)?;
                self.prepare(statement.predicate)?;
                self.apply(&statement, change);
            }
        }
        Ok(())
    }

    /// The same version with `terms`, which continue after the dictionary of its store.
    #[must_use]
    pub fn with_terms(mut self, terms: Arc<MutableDictionary>) -> Self {
        self.terms = terms;
        self
    }

    /// [`Version::rebase_empty`], [`Version::apply_difference`] and [`Version::with_terms`] in one: this
    /// graph over `base`, a store of exactly the statements of `old`.
    ///
    /// # Errors
    /// As for these.
    pub fn rebase(&self, old: &Self, base: Arc<dyn Base>, terms: Arc<MutableDictionary>) -> Result<Self> {
        let mut moved = old.rebase_empty(base)?;
        moved.apply_difference(old, self)?;
        Ok(moved.with_terms(terms))
    }

    fn extend_ids_to(&mut self, other: &Self) {
        self.vertex_end = self.vertex_end.max(other.vertex_end);
        self.literal_end = self.literal_end.max(other.literal_end);
        self.edge_end = self.edge_end.max(other.edge_end);
    }
}

fn not_its_store() -> Error {
    Error::internal("the new store was not built from this version")
}

/// Calls `each` for every entry in which `ours` and `theirs` differ, with whether it is present in `ours`.
fn differing(ours: &Tree<Cell>, theirs: &Tree<Cell>, each: &mut dyn FnMut(Id, [Id; 3], bool)) {
    ours.differences(theirs, &mut |our, their| match (our, their) {
        (Some(cell), None) => each(cell.key, cell.entry(), cell.is_present()),
        // Without its cell the entry has its lower state: the opposite of the cell's.
        (None, Some(cell)) => each(cell.key, cell.entry(), !cell.is_present()),
        // Both are over one store, so the cells are equal.
        _ => {}
    });
}
