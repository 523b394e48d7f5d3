//! The commit of a transaction.
//!
//! # Shape
//! 1. Without the lock, if there is much to look at: the sets are held against commits known so far.
//! 2. Under the lock of the head: against the rest; take the next timestamp; append the record to the log's
//!    buffer; the new head is the transaction's own version if nobody committed since its begin, else its
//!    changes applied to the head.
//! 3. Without the lock: wait until the log is durable, together with all who commit meanwhile; publish.
//!
//! # Why this is right
//! Commits are ordered by the lock. A serializable transaction's reads are those of the version of its begin, and
//! validation shows that no commit in between changed any of them: so it could as well have run at its commit. One without
//! changes could have run at its begin. Under snapshot isolation only what both wrote is compared.
//! # The optimistic rules of G-Tran
//! *Pre-read* (of transactions that are validated, but not durable yet) is [`crate::Options::pre_read`]. The
//! condition on which it rests costs nothing, since the log keeps the order of commits. *Optimistic
//! validation* (waiting for a conflicting transaction that is itself being validated, since it may abort) has no
//! object here: between validation and the end of a transaction nothing can abort it but a failing disk, which
//! stops all writers; so a conflict is certain when it is seen.
//! # Cost
//! Validation: up to nine hash look-ups for each change of those who committed meanwhile. The lock is held for
//! [`LOCKED_CHANGES_MAX`] of these, for one append to memory, and for applying the changes where
//! somebody else was faster.

use crate::change::{Change, Timestamp};
use crate::committed::Changes;
use crate::reads::{Collision, Validator};
use crate::record;
use crate::transaction::{Isolation, Transaction, apply};
use crate::transactions::{Head, Published, Transactions, lock};
use crate::writes::WriteValidator;
use std::fmt::Write;
use std::sync::{Arc, MutexGuard, PoisonError};
use vervet_delta::Version;
use vervet_log::Lsn;
use vervet_model::{Error, ErrorKind, Id, Result, TermParts};
use vervet_snapshot::Snapshot;

/// The most changes of others that are looked at under the lock, unless others commit faster than they can be
/// looked at.
const LOCKED_CHANGES_MAX: usize = 1 << 10;
/// How often a validation starts anew without the lock.
const ROUNDS_MAX: usize = 4;

/// The sets of a transaction, ready to be held against commits of others.
enum Against<'a> {
    Reads(Validator<'a>),
    Writes(WriteValidator),
}

impl Against<'_> {
    /// Looks unknown terms up again; whether somebody has introduced one meanwhile. Under the lock this is final:
    /// a term is there before the commit that uses it.
    fn learn(&mut self) -> bool {
        match self {
            Self::Reads(reads) => reads.learn(),
            Self::Writes(_) => false,
        }
    }

    fn collision(&self, changes: &Changes, newest: &Version) -> Result<(), Option<Collision>> {
        let collision = match (changes, self) {
            (Changes::All, _) => return Err(None),
            (Changes::Listed(changes), Against::Reads(reads)) => reads.collision(changes, newest),
            (Changes::Listed(changes), Against::Writes(writes)) => writes.collision(changes),
        };
        collision.map_or(Ok(()), |collision| Err(Some(collision)))
    }
}

impl Transactions {
    /// See the header of this file.
    pub(crate) fn commit(&self, mut transaction: Transaction) -> Result<Timestamp> {
        let log = self.log()?;
        let began = Arc::clone(&transaction.began);
        if transaction.changes.is_empty() {
            if let Some(log) = log.filter(|_| self.options.pre_read) {
                began.lsn.get().map_or(Ok(()), |lsn| log.wait(*lsn))?;
            }
            return Ok(began.timestamp);
        }
        let changes: Arc<[Change]> = std::mem::take(&mut transaction.changes).into();
        let mut bytes = Vec::new();
        if log.is_some() {
            bytes.reserve(16 * changes.len() + 16);
            record::write_commit(&changes, &mut bytes);
        }
        let reads = std::mem::take(transaction.reads.get_mut().unwrap_or_else(PoisonError::into_inner));
        let mut against = match transaction.isolation {
            Isolation::Serializable => Against::Reads(reads.validator(&began.version)),
            Isolation::Snapshot => Against::Writes(WriteValidator::new(&changes)),
        };
        let mut head = self.validated(&began, &mut against)?;
        // A load may have failed while this waited.
        if let Some(failure) = self.failure.get() {
            return Err(failure.clone());
        }
        let version = match self.on_head(&head, &transaction, &changes) {
            Ok(version) => version,
            // It was possible in the transaction's own version.
            Err(error) if error.kind() == ErrorKind::Input => {
                drop(head);
                self.count_conflict();
                let message = format!("this transaction conflicts with another commit: {error}");
                return Err(Error::new(ErrorKind::Conflict, message).with_hint("run it again"));
            }
            Err(error) => return Err(error),
        };
        let timestamp = head.published.timestamp.next();
        let published = Published::new(version, timestamp);
        let publish = self.publish_visible(&published);
        let lsn = match log {
            Some(log) => {
                record::set_timestamp(&mut bytes, timestamp);
                let lsn = log.append_then(record::COMMIT, &bytes, publish)?;
                // Nobody else sets it.
                let _ = published.lsn.set(lsn);
                Some(lsn)
            }
            None => {
                publish(Lsn(0));
                None
            }
        };
        self.publish_newest(&published);
        head.committed.push(timestamp, Changes::Listed(changes));
        head.committed.forget(self.oldest_active());
        let old = std::mem::replace(&mut head.published, Arc::clone(&published));
        drop(head);
        // What only the old versions held is given back outside of the lock.
        drop(against);
        drop((old, began, transaction));
        self.count_commit();
        if let Some((log, lsn)) = log.zip(lsn) {
            log.wait(lsn)?;
        }
        Ok(timestamp)
    }

    /// The head, locked, once `against` has been held against every commit since the begin.
    fn validated(&self, began: &Published, against: &mut Against<'_>) -> Result<MutexGuard<'_, Head>> {
        let mut validated = began.timestamp;
        for round in 0.. {
            let head = lock(&self.head);
            let Some(commits) = head.committed.after(validated) else {
                self.count_conflict();
                let message = "this transaction is too old: changes since its begin have been forgotten";
                return Err(Error::new(ErrorKind::Conflict, message)
                    .with_hint("run it again, and keep transactions that write short"));
            };
            let commits: Vec<(Timestamp, Changes)> =
                commits.map(|(at, changes)| (at, changes.clone())).collect();
            let number: usize = commits.iter().map(|(_, changes)| changes.count()).sum();
            let newest = Arc::clone(&head.published);
            let hold = number <= LOCKED_CHANGES_MAX || round >= ROUNDS_MAX;
            let held = if hold {
                Some(head)
            } else {
                drop(head);
                None
            };
            for (timestamp, changes) in &commits {
                if let Err(collision) = against.collision(changes, &newest.version) {
                    drop(held);
                    self.count_conflict();
                    return Err(conflict(&began.version, *timestamp, collision));
                }
                validated = *timestamp;
            }
            if let Some(head) = held {
                if !against.learn() {
                    return Ok(head);
                }
                validated = began.timestamp;
            }
        }
        Err(Error::internal("a validation did not end"))
    }

    /// The version after this transaction.
    fn on_head(&self, head: &Head, transaction: &Transaction, changes: &[Change]) -> Result<Version> {
        let newest = &head.published;
        // A checkpoint may have given the same graph another base meanwhile.
        let is_newest = transaction.began.timestamp == newest.timestamp
            && Arc::ptr_eq(transaction.version.base(), newest.version.base());
        if is_newest {
            return Ok(transaction.version.clone());
        }
        let mut version = newest.version.clone();
        for change in changes {
            apply(&mut version, change)?;
        }
        Ok(version)
    }
}

/// The error of a transaction that cannot commit.
fn conflict(version: &Version, with: Timestamp, collision: Option<Collision>) -> Error {
    let mut message = format!("this transaction conflicts with commit {with}");
    match collision {
        None => message += ", a bulk load",
        Some(Collision { what, change }) => {
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

/// A term as people write it.
fn name(version: &Version, id: Id) -> String {
    let mut bytes = Vec::new();
    let mut read = |parts: TermParts<'_>| parts.write_nt(&mut bytes);
    match version.read_term(id, &mut String::new(), &mut read) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => format!("{id:?}"),
    }
}
