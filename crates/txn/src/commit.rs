//! The commit of a transaction: validation, combining, and the append to the log.
//!
//! # Shape
//! 1. Without a lock, if there are many commits to check: the sets are validated against the commits known so
//!    far.
//! 2. The transaction enters a queue, and its thread takes the lock of the head. The lock holder commits all
//!    queued transactions, in their order: it validates the sets against the remaining commits; each
//!    transaction gets the next timestamp and is applied to the same next version, which becomes the head
//!    after the last one; their records are appended to the log's buffer. Threads that waited for the lock
//!    meanwhile find their answer in the queue entry.
//! 3. Without the lock: wait until the log is durable, together with concurrent committers; publish.
//!
//! # Why this is right
//! Commits are ordered by the queue, under the lock. The reads of a serializable transaction are those of the
//! version of its begin, and validation shows that no commit in between, including those of the same batch,
//! changed any of them: it could equally have run at its commit. A transaction without changes could have run
//! at its begin. Under snapshot isolation only the write sets are compared. Of a batch only the last version
//! is published, with the last record; the whole batch waits for that.
//! # The optimistic rules of G-Tran
//! *Pre-read* (of transactions that are validated, but not durable yet) is [`crate::Options::pre_read`]. Its
//! precondition costs nothing, since the log keeps the order of commits. *Optimistic validation* (waiting for
//! a conflicting transaction that is itself being validated, since it may abort) does not apply: between
//! validation and its end a transaction can only abort by a failing disk, which stops all writers; so a
//! detected conflict is certain.
//! # Cost
//! Validation: up to nine hash look-ups for each change of a concurrent commit. The lock is held for
//! [`LOCKED_CHANGES_MAX`] of these changes for each transaction, for one append to memory, and for applying
//! the changes: the first transaction of a batch copies the paths that it changes, later ones find many of
//! them copied. A single transaction that has derived its own version from the newest one hands that version
//! over.
//! # Source
//! Flat combining: D. Hendler, I. Incze, N. Shavit, M. Tzafrir, SPAA 2010. Here the other threads wait for
//! the lock itself.

use crate::mutation::{Mutation, Timestamp};
use crate::reads::{Conflict, ReadSet, Validator};
use crate::recent_commits::CommitScope;
use crate::record;
use crate::sync::Mutex;
use crate::sync::lock;
use crate::transaction::{Isolation, Transaction, apply};
use crate::transactions::{Head, Published, Transactions};
use crate::writes::WriteValidator;
use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use vervet_delta::Version;
use vervet_log::{Log, Lsn, RECORD_BYTES_MAX};
use vervet_model::{Error, ErrorKind, Id, Result, Tag, TermParts};
use vervet_snapshot::Snapshot;

/// Maximum number of concurrent changes validated under the lock for one transaction, unless commits are
/// faster than validation.
const LOCKED_CHANGES_MAX: u64 = 1 << 10;
/// Maximum number of validation rounds without the lock.
const ROUNDS_MAX: usize = 4;
/// Minimum number of consecutive additions that are sorted and added together.
const BULK_MIN: usize = 64;

/// The sets of a transaction, ready for validation against other commits.
enum ValidationSets<'a> {
    Reads(Validator<'a>),
    /// Includes the reads of constraint checks.
    Writes(WriteValidator, Validator<'a>),
}

impl<'a> ValidationSets<'a> {
    fn new(isolation: Isolation, reads: &'a ReadSet, began: &'a Published, changes: &[Mutation]) -> Self {
        match isolation {
            Isolation::Serializable => Self::Reads(reads.validator(&began.version)),
            Isolation::Snapshot => {
                Self::Writes(WriteValidator::new(changes), reads.validator(&began.version))
            }
        }
    }

    /// Looks unknown terms up again; returns whether another transaction has introduced one meanwhile. Under
    /// the lock the result is final: a term exists before the commit that uses it.
    fn resolve_unknown_terms(&mut self) -> bool {
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
}

/// A transaction in the commit queue.
#[derive(Debug)]
pub(crate) struct Request {
    transaction: Transaction,
    reads: ReadSet,
    changes: Arc<[Mutation]>,
    /// The record for the log, without its timestamp.
    record: Vec<u8>,
    /// The commits up to this timestamp are validated.
    validated: Timestamp,
    /// Whether it satisfies the constraints that it began with.
    constraint_check: Result<()>,
    answer: Arc<Mutex<Option<CommitOutcome>>>,
}

/// Result of a request. The request comes back with it, so that its memory is freed outside of the lock.
#[derive(Debug)]
struct CommitOutcome {
    outcome: Result<CommitReceipt, AbortReason>,
    _request: Request,
}

#[derive(Clone, Copy, Debug)]
struct CommitReceipt {
    timestamp: Timestamp,
    /// LSN up to which the log has to be durable.
    lsn: Option<Lsn>,
}

/// Abort reason of a transaction.
#[derive(Debug)]
enum AbortReason {
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

impl Transactions {
    /// Commits a transaction. See the header of this file.
    pub(crate) fn commit(&self, mut transaction: Transaction) -> Result<Timestamp> {
        let log = self.log()?;
        let began = Arc::clone(&transaction.began);
        if transaction.changes.is_empty() {
            if let Some(log) = log.filter(|_| self.options.pre_read) {
                began.lsn.get().map_or(Ok(()), |lsn| log.wait(*lsn))?;
            }
            return Ok(began.timestamp);
        }
        let constraint_check = transaction.check_constraints();
        let changes: Arc<[Mutation]> = std::mem::take(&mut transaction.changes).into();
        let record = if log.is_some() { record_of(&changes)? } else { Vec::new() };
        let reads = std::mem::take(transaction.reads.get_mut().unwrap_or_else(PoisonError::into_inner));
        let sets = ValidationSets::new(transaction.isolation, &reads, &began, &changes);
        let validated =
            self.validate_early(&began, &sets).map_err(|reason| self.abort_error(&began, reason))?;
        if let Some(log) = log {
            // Before the head is locked, since it may wait for the disk.
            self.log_terms(log)?;
        }
        let answer = Arc::new(Mutex::new(None));
        let answer_to = Arc::clone(&answer);
        let request =
            Request { transaction, reads, changes, record, validated, constraint_check, answer: answer_to };
        lock(&self.queue).push(request);
        let old = {
            let mut head = match self.head_for_writing() {
                Ok(head) => head,
                Err(error) => {
                    if self.withdraw(&answer) {
                        return Err(error);
                    }
                    lock(&self.head)
                }
            };
            // If another thread took the request, it has answered it.
            let requests = if head.is_loading { Vec::new() } else { std::mem::take(&mut *lock(&self.queue)) };
            let old = Arc::clone(&head.published);
            if !requests.is_empty() {
                self.commit_all(&mut head, log, requests);
            }
            old
        };
        // Its memory is freed outside of the lock.
        drop(old);
        let answer = lock(&answer).take();
        let answer = answer.ok_or_else(|| Error::internal("a thread panicked while it committed"))?;
        let committed = answer.outcome.map_err(|reason| self.abort_error(&began, reason))?;
        self.count_commit();
        if let Some((log, lsn)) = log.zip(committed.lsn) {
            log.wait(lsn)?;
        }
        Ok(committed.timestamp)
    }

    /// Takes a request out of the queue; returns whether it was still there. If not, another thread has
    /// answered it, or answers it while it holds the head.
    fn withdraw(&self, answer: &Arc<Mutex<Option<CommitOutcome>>>) -> bool {
        let taken = {
            let mut queue = lock(&self.queue);
            let at = queue.iter().position(|request| Arc::ptr_eq(&request.answer, answer));
            at.map(|at| queue.remove(at))
        };
        taken.is_some()
    }

    /// Commits the queued requests in order, and answers them.
    fn commit_all(&self, head: &mut Head, log: Option<&Log>, requests: Vec<Request>) {
        let before = Arc::clone(&head.published);
        let mut next = NextVersion { version: None, timestamp: before.timestamp, changes: before.changes };
        let mut accepted: Vec<Request> = Vec::with_capacity(requests.len());
        for request in requests {
            match self.accept(head, &before, &mut next, &accepted, &request) {
                Ok(()) => accepted.push(request),
                Err(reason) => answer(request, Err(reason)),
            }
        }
        let Some(version) = next.version else { return };
        let published = Arc::new(Published { changes: next.changes, ..before.with(version, next.timestamp) });
        let appended = self.append_all(log, before.timestamp, &published, &mut accepted);
        let lsn = match appended {
            Ok(lsn) => lsn,
            Err(error) => {
                head.recent_commits.undo_after(before.timestamp);
                for request in accepted {
                    answer(request, Err(AbortReason::Failed(error.clone())));
                }
                return;
            }
        };
        self.publish_newest(&published);
        head.recent_commits.forget(self.oldest_active());
        head.published = published;
        let mut timestamp = before.timestamp;
        for request in accepted {
            timestamp = timestamp.next();
            answer(request, Ok(CommitReceipt { timestamp, lsn }));
        }
    }

    /// Validates a request and applies it to the next version.
    fn accept(
        &self,
        head: &mut Head,
        before: &Arc<Published>,
        next: &mut NextVersion,
        accepted: &[Request],
        request: &Request,
    ) -> Result<(), AbortReason> {
        // A load may have failed during the wait for the lock.
        if let Some(failure) = self.failure.get() {
            return Err(AbortReason::Failed(failure.clone()));
        }
        let Request { transaction, reads, changes, .. } = request;
        let began = &transaction.began;
        let mut sets = ValidationSets::new(transaction.isolation, reads, began, changes);
        {
            let newest = next.version.as_ref().unwrap_or(&before.version);
            validate(head, newest, &sets, request.validated)?;
            if sets.resolve_unknown_terms() {
                validate(head, newest, &sets, began.timestamp)?;
            }
        }
        if !Arc::ptr_eq(&began.constraints, &before.constraints) {
            return Err(AbortReason::Constraints);
        }
        // After validation: another commit may have removed the cause of the violation, and then the
        // transaction runs again.
        request.constraint_check.clone().map_err(AbortReason::Failed)?;
        // A checkpoint may have given the same graph another base meanwhile.
        let is_newest = next.version.is_none()
            && began.timestamp == before.timestamp
            && Arc::ptr_eq(began.version.base(), before.version.base());
        if let Some(own) = transaction.own_version().filter(|_| is_newest) {
            next.version = Some(own.clone());
        } else {
            let version = next.version.get_or_insert_with(|| before.version.clone());
            if let Err(error) = apply_all(version, changes) {
                next.undo(before, accepted);
                return Err(match error.kind() {
                    // The changes could be applied to the transaction's own version.
                    ErrorKind::Input => AbortReason::Inapplicable(error),
                    _ => AbortReason::Failed(error),
                });
            }
        }
        next.timestamp = next.timestamp.next();
        next.changes += changes.len() as u64;
        head.recent_commits.push(next.timestamp, CommitScope::Mutations(Arc::clone(changes)));
        Ok(())
    }

    /// Appends the records of a batch; the last one publishes. Returns the LSN that all of them wait for.
    fn append_all(
        &self,
        log: Option<&Log>,
        mut timestamp: Timestamp,
        published: &Arc<Published>,
        accepted: &mut [Request],
    ) -> Result<Option<Lsn>> {
        let publish = self.publish_visible(published);
        let Some(log) = log else {
            publish(Lsn(0));
            return Ok(None);
        };
        for request in accepted.iter_mut() {
            timestamp = timestamp.next();
            record::set_timestamp(&mut request.record, timestamp);
        }
        let records: Vec<&[u8]> = accepted.iter().map(|request| &request.record[..]).collect();
        // All or none: the log continues after a full disk, and must then not contain a refused commit.
        let lsn = log.append_all_then(record::COMMIT, &records, publish)?;
        let set = published.lsn.set(lsn);
        assert!(set.is_ok(), "a version is appended once");
        Ok(Some(lsn))
    }

    /// Validates a transaction against the commits since its begin without the lock, until few are left.
    fn validate_early(&self, began: &Published, sets: &ValidationSets<'_>) -> Result<Timestamp, AbortReason> {
        let (mut validated, mut seen) = (began.timestamp, began.changes);
        for _ in 0..ROUNDS_MAX {
            let newest = self.newest();
            // May precede the begin: a version can become visible before it is the newest for all.
            if newest.changes.saturating_sub(seen) <= LOCKED_CHANGES_MAX {
                break;
            }
            let commits: Vec<(Timestamp, CommitScope)> = {
                let head = lock(&self.head);
                let commits = head.recent_commits.after(validated).ok_or(AbortReason::TooOld)?;
                let commits = commits.take_while(|(at, _)| *at <= newest.timestamp);
                commits.map(|(at, changes)| (at, changes.clone())).collect()
            };
            for (with, changes) in &commits {
                let checked = sets.conflict(changes, &newest.version);
                checked.map_err(|conflict| AbortReason::Conflict { with: *with, conflict })?;
            }
            (validated, seen) = (newest.timestamp, newest.changes);
        }
        Ok(validated)
    }

    /// The error of a transaction that does not commit.
    fn abort_error(&self, began: &Published, reason: AbortReason) -> Error {
        if !matches!(reason, AbortReason::Failed(_)) {
            // A conflict with a commit that will never be durable is not resolved by a retry.
            if let Some(Err(failure)) = self.open_log().map(Log::check) {
                return failure;
            }
            let conflicts = &self.conflicts;
            let count = match &reason {
                AbortReason::Conflict { conflict: None, .. } => &conflicts.loads,
                AbortReason::TooOld => &conflicts.too_old,
                AbortReason::Constraints => &conflicts.constraints,
                _ => &conflicts.changes,
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
        let conflict_error =
            |message: String, hint: &str| Error::new(ErrorKind::Conflict, message).with_hint(hint);
        match reason {
            AbortReason::Conflict { with, conflict } => conflict_with(&began.version, with, conflict),
            AbortReason::TooOld => conflict_error(
                "this transaction is too old: changes since its begin are no longer recorded".to_owned(),
                "run it again, and keep transactions that write short",
            ),
            AbortReason::Inapplicable(error) => conflict_error(
                format!("this transaction conflicts with another commit: {error}"),
                "run it again",
            ),
            AbortReason::Constraints => conflict_error(
                "this transaction conflicts with a change of the constraints".to_owned(),
                "run it again",
            ),
            AbortReason::Failed(error) => error,
        }
    }
}

/// The next version, made by a batch.
struct NextVersion {
    /// `None`: no request has been accepted yet.
    version: Option<Version>,
    timestamp: Timestamp,
    changes: u64,
}

impl NextVersion {
    /// Restores the state before a request that failed half way.
    fn undo(&mut self, before: &Published, accepted: &[Request]) {
        let mut version = before.version.clone();
        let again = accepted.iter().try_for_each(|request| apply_all(&mut version, &request.changes));
        debug_assert!(again.is_ok(), "what could be applied once can be again");
        self.version = (!accepted.is_empty()).then_some(version);
    }
}

/// Validates a transaction against the commits after `from`.
fn validate(
    head: &Head,
    newest: &Version,
    sets: &ValidationSets<'_>,
    from: Timestamp,
) -> Result<(), AbortReason> {
    for (with, changes) in head.recent_commits.after(from).ok_or(AbortReason::TooOld)? {
        let checked = sets.conflict(changes, newest);
        checked.map_err(|conflict| AbortReason::Conflict { with, conflict })?;
    }
    Ok(())
}

fn answer(request: Request, outcome: Result<CommitReceipt, AbortReason>) {
    let slot = Arc::clone(&request.answer);
    *lock(&slot) = Some(CommitOutcome { outcome, _request: request });
}

fn record_of(changes: &[Mutation]) -> Result<Vec<u8>> {
    let mut record = Vec::with_capacity(16 * changes.len() + 16);
    record::write_commit(changes, &mut record);
    if record.len() > RECORD_BYTES_MAX {
        let message =
            format!("a transaction of {} changes does not fit into a record of the log", changes.len());
        return Err(Error::new(ErrorKind::Input, message).with_hint("split it, or load a file"));
    }
    Ok(record)
}

/// Applies all changes in order. Consecutive additions may refer to each other in any order, as in
/// [`Transaction::insert_all`].
pub(crate) fn apply_all(version: &mut Version, changes: &[Mutation]) -> Result<()> {
    let is_about_edge = |Mutation { statement, .. }: &Mutation| {
        [statement.subject, statement.object].iter().any(|id| id.tag() == Tag::Edge)
    };
    for run in changes.chunk_by(|a, b| a.added == b.added) {
        match run.first() {
            Some(Mutation { added: true, .. }) if run.len() >= BULK_MIN || run.iter().any(is_about_edge) => {
                let statements: Vec<_> = run.iter().map(|change| change.statement).collect();
                version.insert_all(&statements)?;
            }
            _ => run.iter().try_for_each(|change| apply(version, change).map(drop))?,
        }
    }
    Ok(())
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
