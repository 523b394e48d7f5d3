//! Moving a version to a new store, into which an earlier version has been built.
//!
//! # Cost
//! What the two versions share is not looked at; each statement that differs is changed anew.

use crate::Version;
use crate::cell::Cell;
use crate::tree::Tree;
use std::sync::Arc;
use vervet_dictionary::Terms;
use vervet_model::{Direction, Error, Id, Result, Statement};
use vervet_snapshot::Snapshot;
use vervet_store::Store;

impl Version {
    /// The same graph over `base`, a store of exactly the statements of `old`: what this version has beyond
    /// `old`, and what it has less. Both must stand over one store. `terms` go on where the dictionary of
    /// `base` ends.
    ///
    /// # Errors
    /// Damaged data. Internal: the versions stand over different stores, or `base` is not a store of `old`.
    pub fn rebase(&self, old: &Self, base: Arc<Store>, terms: Arc<Terms>) -> Result<Self> {
        if !Arc::ptr_eq(&self.base, &old.base) {
            return Err(Error::internal("two versions over different stores cannot be compared"));
        }
        if base.statement_count() != old.statements {
            return Err(Error::internal(
                "the new store has not as many statements as the version it was built of",
            ));
        }
        let (mut gone, mut come) = (Vec::new(), Vec::new());
        let (empty, mut changed) = (Tree::default(), Vec::new());
        self.predicates.differences(&old.predicates, &mut |ours, theirs| {
            changed.extend(ours.or(theirs).map(|one| one.id));
        });
        for predicate in changed {
            let cells = |version: &Self| {
                let one = version.predicates.get(predicate);
                one.map_or_else(|| empty.clone(), |one| one.side(Direction::Out).cells.clone())
            };
            differing(&cells(self), &cells(old), &mut |key, [object, graph, edge], is_there| {
                let statement = Statement { subject: key, predicate, object, graph, edge };
                (if is_there { &mut come } else { &mut gone }).push(statement);
            });
        }
        let mut moved = Self::new(base, terms);
        moved.vertex_end = moved.vertex_end.max(self.vertex_end);
        moved.literal_end = moved.literal_end.max(self.literal_end);
        moved.edge_end = moved.edge_end.max(self.edge_end);
        // What goes comes first: an edge may have left one statement for another.
        for (statements, is_there) in [(gone, false), (come, true)] {
            for statement in statements {
                let Some(change) = moved.change(&statement, is_there)? else {
                    return Err(Error::internal(
                        "the new store is not a store of the version it was built of",
                    ));
                };
                moved.prepare(statement.predicate)?;
                moved.apply(&statement, change);
            }
        }
        Ok(moved)
    }
}

/// Gives `each` every entry that is there by `ours` and not by `theirs`, or the other way round.
fn differing(ours: &Tree<Cell>, theirs: &Tree<Cell>, each: &mut dyn FnMut(Id, [Id; 3], bool)) {
    ours.differences(theirs, &mut |our, their| match (our, their) {
        (Some(cell), None) => each(cell.key, cell.entry(), cell.is_present()),
        // Without its cell the entry is as it was below: the opposite of what the cell said.
        (None, Some(cell)) => each(cell.key, cell.entry(), !cell.is_present()),
        // One store below: the same cell.
        _ => {}
    });
}
