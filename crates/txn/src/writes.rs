//! The write set of a transaction, for first-committer-wins validation.
//!
//! # Shape
//! Changes in the order in which they were made, each of which had an effect on the graph as the transaction
//! saw it. A savepoint is a length of the list.

use crate::mutation::Mutation;
use crate::reads::{Conflict, ReadKind};
use foldhash::{HashMap as SeededMap, HashSet as SeededSet};
use vervet_model::{Id, Statement};

/// Write-write conflicts under snapshot isolation, where the first committer wins.
///
/// A property conflicts as a whole, whatever its values are: of two transactions that set it from different
/// old values to different new ones, one must fail. Each edge conflicts by itself, so that concurrent
/// transactions can add many edges to one vertex.
#[derive(Debug)]
pub(crate) struct WriteValidator {
    /// Subject and predicate of statements with values.
    properties: SeededSet<(Id, Id)>,
    /// Whether the last change of a statement between vertices adds it.
    statements: SeededMap<Statement, bool>,
}

impl WriteValidator {
    pub(crate) fn new(changes: &[Mutation]) -> Self {
        let mut validator = Self { properties: SeededSet::default(), statements: SeededMap::default() };
        for Mutation { statement, added } in changes {
            if statement.object.is_stored_literal() {
                validator.properties.insert((statement.subject, statement.predicate));
            } else {
                validator.statements.insert(*statement, *added);
            }
        }
        validator
    }

    /// The first of `changes` that concerns data changed by this transaction too.
    pub(crate) fn conflict(&self, changes: &[Mutation]) -> Option<Conflict> {
        let both = |change: &&Mutation| {
            let statement = &change.statement;
            if statement.object.is_stored_literal() {
                self.properties.contains(&(statement.subject, statement.predicate))
            } else {
                // Two transactions that add the same statement agree.
                self.statements.get(statement).is_some_and(|added| !(*added && change.added))
            }
        };
        changes.iter().find(both).map(|change| Conflict { what: ReadKind::Write, change: *change })
    }
}
