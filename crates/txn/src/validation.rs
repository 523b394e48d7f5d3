//! Validation of a transaction against concurrent commits: its read and write sets, and why it may not
//! commit.
//!
//! # Cost
//! Up to nine hash look-ups for each change of a concurrent commit.

use crate::commit_head::HeadGuard;
use crate::mutation::{Mutation, Timestamp};
use crate::published::Published;
use crate::reads::{Conflict, ReadSet, Validator};
use crate::recent_commits::CommitScope;
use crate::status::ConflictCounters;
use crate::writes::WriteValidator;
use std::fmt::Write;
use std::sync::atomic::Ordering;
use vervet_delta::Version;
use vervet_model::{Error, ErrorKind, Id, Result, TermParts};
use vervet_snapshot::Snapshot;

/// Isolation level: which concurrent changes a transaction may see.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Isolation {
    /// Serializable: the result equals a serial execution in the order of commits. A transaction that read
    /// data which another one has changed meanwhile, absence and counts included, fails with a conflict.
    #[default]
    Serializable,
    /// Snapshot isolation: every read sees the graph at the begin; of two transactions that change the same
    /// data the second one fails with a conflict. Two transactions that each read data changed by the other
    /// may both commit (write skew).
    Snapshot,
}

/// The sets of a transaction, ready for validation against other commits.
pub(crate) enum ValidationSets<'a> {
    Reads(Validator<'a>),
    /// Includes the reads of constraint checks.
    Writes(WriteValidator, Validator<'a>),
}

impl<'a> ValidationSets<'a> {
    pub(crate) fn new(
        isolation: Isolation,
        reads: &'a ReadSet,
        began: &'a Published,
        changes: &[Mutation],
    ) -> Self {
        match isolation {
            Isolation::Serializable => Self::Reads(reads.validator(&began.version)),
            Isolation::Snapshot => {
                Self::Writes(WriteValidator::new(changes), reads.validator(&began.version))
            }
        }
    }

    /// Looks unknown terms up again; returns whether another transaction has introduced one meanwhile. Under
    /// the lock the result is final: a term exists before the commit that uses it.
    pub(crate) fn resolve_unknown_terms(&mut self) -> bool {
        match self {
            Self::Reads(reads) | Self::Writes(_, reads) => reads.resolve_unknown_terms(),
        }
    }

    fn conflict(&self, changes: &CommitScope, newest: &Version) -> Result<(), Option<Conflict>> {
        let conflict = match (changes, self) {
            (CommitScope::WholeGraph, _) => return Err(None),
            (CommitScope::Mutations(changes), ValidationSets::Reads(reads)) => {
                reads.conflict(changes, newest)
            }
            (CommitScope::Mutations(changes), ValidationSets::Writes(writes, reads)) => {
                writes.conflict(changes).or_else(|| reads.conflict(changes, newest))
            }
        };
        conflict.map_or(Ok(()), |conflict| Err(Some(conflict)))
    }

    /// Validates the transaction against these commits; `newest` is a version with all of them.
    pub(crate) fn validate_list(
        &self,
        commits: &[(Timestamp, CommitScope)],
        newest: &Version,
    ) -> Result<(), AbortReason> {
        commits.iter().try_for_each(|(with, scope)| self.validate_one(*with, scope, newest))
    }

    /// Validates the transaction against the commits after `from`.
    pub(crate) fn validate(
        &self,
        head: &HeadGuard<'_>,
        newest: &Version,
        from: Timestamp,
    ) -> Result<(), AbortReason> {
        let mut commits = head.commits_after(from).ok_or(AbortReason::TooOld)?;
        commits.try_for_each(|(with, scope)| self.validate_one(with, scope, newest))
    }

    fn validate_one(
        &self,
        with: Timestamp,
        scope: &CommitScope,
        newest: &Version,
    ) -> Result<(), AbortReason> {
        self.conflict(scope, newest).map_err(|conflict| AbortReason::Conflict { with, conflict })
    }
}

/// Abort reason of a transaction.
#[derive(Debug)]
pub(crate) enum AbortReason {
    Conflict {
        with: Timestamp,
        conflict: Option<Conflict>,
    },
    TooOld,
    /// Its changes cannot be applied to the newest version, although they could to its own.
    Inapplicable(Error),
    /// It was checked against other constraints than the current ones.
    Constraints,
    Failed(Error),
}

impl AbortReason {
    /// Counts a conflict.
    pub(crate) fn count(&self, conflicts: &ConflictCounters) {
        let count = match self {
            Self::Failed(_) => return,
            Self::Conflict { conflict: None, .. } => &conflicts.loads,
            Self::TooOld => &conflicts.too_old,
            Self::Constraints => &conflicts.constraints,
            Self::Conflict { .. } | Self::Inapplicable(_) => &conflicts.changes,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// The error of a transaction that began with this version.
    pub(crate) fn into_error(self, began: &Published) -> Error {
        let conflict_error =
            |message: String, hint: &str| Error::new(ErrorKind::Conflict, message).with_hint(hint);
        match self {
            Self::Conflict { with, conflict } => conflict_with(&began.version, with, conflict),
            Self::TooOld => conflict_error(
                "this transaction is too old: changes since its begin are no longer recorded".to_owned(),
                "run it again, and keep transactions that write short",
            ),
            Self::Inapplicable(error) => conflict_error(
                format!("this transaction conflicts with another commit: {error}"),
                "run it again",
            ),
            Self::Constraints => conflict_error(
                "this transaction conflicts with a change of the constraints".to_owned(),
                "run it again",
            ),
            Self::Failed(error) => error,
        }
    }
}

/// The conflict error of a transaction.
fn conflict_with(version: &Version, with: Timestamp, conflict: Option<Conflict>) -> Error {
    let mut message = format!("this transaction conflicts with commit {with}");
    match conflict {
        None => message += ", a bulk load",
        Some(Conflict { what, change }) => {
            let verb = if change.added { "added" } else { "removed" };
            let statement = &change.statement;
            // Writing to a `String` cannot fail.
            let _ = write!(message, ", which {verb}");
            for id in [statement.subject, statement.predicate, statement.object] {
                let _ = write!(message, " {}", name(version, id));
            }
            let _ = write!(message, ": {what}");
        }
    }
    Error::new(ErrorKind::Conflict, message).with_hint("run it again")
}

/// A term as text for messages.
fn name(version: &Version, id: Id) -> String {
    let mut bytes = Vec::new();
    let mut read = |parts: TermParts<'_>| parts.write_nt(&mut bytes);
    match version.read_term(id, &mut String::new(), &mut read) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => format!("{id:?}"),
    }
}
