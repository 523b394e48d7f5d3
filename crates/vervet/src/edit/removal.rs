//! Cascading removal.
//!
//! # Shape
//! The removal of a statement with an identity also removes the statements about it, recursively. Statements
//! about others are removed first, since no statement may be about an edge that does not exist.
//! # Invariants
//! Removing an edge notes that no statement about it remains, so the reads here need not be noted.

use super::find::{CHUNK, statement_of};
use crate::Transaction;
use crate::update::remove::put_in_order;
use rustc_hash::FxHashSet;
use vervet_model::{Direction, Id, Result, Statement};
use vervet_snapshot::{EntryFilter, Snapshot, successor};
use vervet_txn::Read;

impl Transaction {
    /// Runs `change` atomically: rolls back on error.
    pub(super) fn whole(&mut self, change: impl FnOnce(&mut Self) -> Result<u64>) -> Result<u64> {
        let before = self.inner.savepoint();
        let done = change(self);
        if done.is_err() {
            self.inner.roll_back_to(&before)?;
        }
        done
    }

    /// Removes all statements with this subject or object, in chunks; returns their number.
    pub(super) fn take_out_vertex(&mut self, vertex: Id) -> Result<u64> {
        self.inner.record_read(Read::Predicates);
        let predicates: Vec<Id> = self.inner.version()?.predicates().iter().map(|(id, _)| *id).collect();
        let mut count = 0;
        for predicate in predicates {
            for direction in Direction::BOTH {
                self.inner.record_read(Read::Key(predicate, direction, vertex));
                let mut from = [Id::UNBOUND; 3];
                loop {
                    let mut entries = Vec::new();
                    if let Some(segment) = self.inner.version()?.segment(predicate, direction)? {
                        segment.entries(vertex, from, CHUNK, &mut entries)?;
                    }
                    let Some(last) = entries.last() else { break };
                    from = successor(*last);
                    let is_last = entries.len() < CHUNK;
                    let statement = |entry| statement_of(predicate, direction, vertex, entry);
                    count += self.take_out(entries.into_iter().map(statement).collect())?;
                    if is_last {
                        break;
                    }
                }
            }
        }
        Ok(count)
    }

    /// Removes these existing statements, with all statements about those that have an identity; returns the
    /// number removed.
    pub(super) fn take_out(&mut self, statements: Vec<Statement>) -> Result<u64> {
        if statements.iter().all(|statement| !statement.edge.is_bound()) {
            self.inner.remove_all(&statements)?;
            return Ok(statements.len() as u64);
        }
        let mut all: FxHashSet<Statement> = FxHashSet::default();
        let mut ahead = statements;
        while !ahead.is_empty() {
            let edges =
                ahead.iter().filter(|statement| all.insert(**statement)).map(|statement| statement.edge);
            let mut edges: Vec<Id> = edges.filter(|edge| edge.is_bound()).collect();
            edges.sort_unstable();
            ahead = self.about(&edges)?;
        }
        let mut order: Vec<Statement> = all.into_iter().collect();
        order.sort_unstable();
        put_in_order(&mut order);
        let mut plain = Vec::new();
        for statement in &order {
            if statement.edge.is_bound() {
                self.inner.remove_all(&plain)?;
                plain.clear();
                self.inner.remove(statement)?;
            } else {
                plain.push(*statement);
            }
        }
        self.inner.remove_all(&plain)?;
        Ok(order.len() as u64)
    }

    /// The statements whose subject or object is one of these edges.
    fn about(&self, edges: &[Id]) -> Result<Vec<Statement>> {
        let mut about = Vec::new();
        if edges.is_empty() {
            return Ok(about);
        }
        let version = self.inner.version()?;
        let (mut degrees, mut entries) = (Vec::new(), Vec::new());
        for &(predicate, _) in version.predicates() {
            for direction in Direction::BOTH {
                let Some(segment) = version.segment(predicate, direction)? else { continue };
                degrees.clear();
                segment.degrees(edges, EntryFilter::ALL, &mut degrees)?;
                for (&edge, _) in edges.iter().zip(&degrees).filter(|(_, degree)| **degree > 0) {
                    entries.clear();
                    segment.entries(edge, [Id::UNBOUND; 3], usize::MAX, &mut entries)?;
                    about
                        .extend(entries.iter().map(|entry| statement_of(predicate, direction, edge, *entry)));
                }
            }
        }
        Ok(about)
    }
}
