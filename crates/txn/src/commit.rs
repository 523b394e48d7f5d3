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
//! about a thousand of these changes for each transaction (`CommitHead::catch_up`), for one append to memory,
//! and for applying the changes: the first transaction of a batch copies the paths that it changes, later
//! ones find many of them copied. A single transaction that has derived its own version from the newest one
//! hands that version over.
//! # Source
//! Flat combining: D. Hendler, I. Incze, N. Shavit, M. Tzafrir, SPAA 2010. Here the other threads wait for
//! the lock itself.

use crate::commit_head::{CommitHead, HeadGuard};
use crate::commit_log::CommitLog;
use crate::mutation::{Mutation, Timestamp, apply_all};
use crate::published::Published;
use crate::reads::ReadSet;
use crate::recent_commits::CommitScope;
use crate::record;
use crate::status::{ConflictCounters, Counts};
use crate::sync::{AtomicU64, Mutex, lock};
use crate::validation::{AbortReason, Isolation, ValidationSets};
use crate::writer::Writer;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use vervet_delta::Version;
use vervet_log::Lsn;
use vervet_model::{Error, ErrorKind, Result};

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct Committer {
    head: Arc<CommitHead>,
    writer: Arc<Writer>,
    /// Requests that wait for the head to commit.
    queue: Mutex<Vec<Request>>,
    pre_read: bool,
    commits: AtomicU64,
    conflicts: ConflictCounters,
}

/// What a transaction hands over to commit.
#[derive(Debug)]
pub(crate) struct CommitRequest {
    pub(crate) isolation: Isolation,
    pub(crate) began: Arc<Published>,
    /// The version of the begin with all changes, if it was derived.
    pub(crate) own: Option<Version>,
    pub(crate) changes: Vec<Mutation>,
    pub(crate) reads: ReadSet,
    /// Whether it satisfies the constraints that it began with.
    pub(crate) constraint_check: Result<()>,
}

/// A transaction in the commit queue.
#[derive(Debug)]
struct Request {
    isolation: Isolation,
    began: Arc<Published>,
    own: Option<Version>,
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

/// A commit in the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommitReceipt {
    timestamp: Timestamp,
    /// LSN up to which the log has to be durable.
    lsn: Option<Lsn>,
    appended: Instant,
}

impl Committer {
    pub(crate) fn new(head: Arc<CommitHead>, writer: Arc<Writer>, pre_read: bool) -> Self {
        Self {
            head,
            writer,
            queue: Mutex::default(),
            pre_read,
            commits: AtomicU64::new(0),
            conflicts: ConflictCounters::default(),
        }
    }

    /// The end of a transaction without changes that began with this version.
    pub(crate) fn commit_unchanged(&self, began: &Published) -> Result<CommitReceipt> {
        let log = self.writer.log()?;
        let lsn = log.filter(|_| self.pre_read).and_then(|_| began.lsn.get().copied());
        Ok(CommitReceipt { timestamp: began.timestamp, lsn, appended: Instant::now() })
    }

    /// Steps 1 and 2 of the header of this file for a transaction, which stays registered with the head until
    /// this returns.
    pub(crate) fn commit(&self, request: CommitRequest) -> Result<CommitReceipt> {
        let log = self.writer.log()?;
        let CommitRequest { isolation, began, own, changes, reads, constraint_check } = request;
        let changes: Arc<[Mutation]> = changes.into();
        let record =
            if log.is_some() { record_of(&changes, self.writer.record_bytes_max())? } else { Vec::new() };
        let sets = ValidationSets::new(isolation, &reads, &began, &changes);
        let validated = self.validate_early(&began, &sets).map_err(|reason| self.error(&began, reason))?;
        if let Some(log) = log {
            // Before the head is locked, since it may wait for the disk.
            self.writer.log_terms(log)?;
        }
        let answer = Arc::new(Mutex::new(None));
        let request = Request {
            isolation,
            began: Arc::clone(&began),
            own,
            reads,
            changes,
            record,
            validated,
            constraint_check,
            answer: Arc::clone(&answer),
        };
        lock(&self.queue).push(request);
        let old = {
            let mut head = match self.head.lock_for_writing() {
                Ok(head) => head,
                Err(error) => {
                    if self.withdraw(&answer) {
                        return Err(error);
                    }
                    self.head.lock()
                }
            };
            // If another thread took the request, it has answered it.
            let requests =
                if head.is_loading() { Vec::new() } else { std::mem::take(&mut *lock(&self.queue)) };
            let old = Arc::clone(head.published());
            if !requests.is_empty() {
                self.commit_all(&mut head, log, requests);
            }
            old
        };
        // Its memory is freed outside of the lock.
        drop(old);
        let answer = lock(&answer).take();
        let answer = answer.ok_or_else(|| Error::internal("a thread panicked while it committed"))?;
        let receipt = answer.outcome.map_err(|reason| self.error(&began, reason))?;
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok(receipt)
    }

    /// Step 3 of the header of this file.
    pub(crate) fn wait(&self, receipt: CommitReceipt) -> Result<Timestamp> {
        if let Some((log, lsn)) = self.writer.open_log().zip(receipt.lsn) {
            log.wait_since(lsn, receipt.appended)?;
        }
        Ok(receipt.timestamp)
    }

    /// Transactions by outcome.
    pub(crate) fn counts(&self) -> Counts {
        Counts { commits: self.commits.load(Ordering::Relaxed), conflicts: self.conflicts.read().sum() }
    }

    /// Conflicts by abort reason.
    pub(crate) fn conflicts(&self) -> &ConflictCounters {
        &self.conflicts
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
    fn commit_all(&self, head: &mut HeadGuard<'_>, log: Option<&CommitLog>, requests: Vec<Request>) {
        let before = Arc::clone(head.published());
        let mut next = NextVersion::of(&before);
        let mut accepted: Vec<Request> = Vec::with_capacity(requests.len());
        for request in requests {
            match self.accept(head, &before, &mut next, &accepted, &request) {
                Ok(()) => accepted.push(request),
                Err(reason) => answer(request, Err(reason)),
            }
            if let Some(error) = next.broken.take() {
                // None of them is in the log.
                head.undo_after(before.timestamp);
                for request in accepted.drain(..) {
                    answer(request, Err(AbortReason::Failed(error.clone())));
                }
                next = NextVersion::of(&before);
            }
        }
        let Some(version) = next.version else { return };
        let published = Arc::new(Published { changes: next.changes, ..before.with(version, next.timestamp) });
        let appended = self.append_all(log, before.timestamp, &published, &mut accepted);
        let lsn = match appended {
            Ok(lsn) => lsn,
            Err(error) => {
                head.undo_after(before.timestamp);
                for request in accepted {
                    answer(request, Err(AbortReason::Failed(error.clone())));
                }
                return;
            }
        };
        head.advance(published);
        head.forget();
        let (mut timestamp, appended) = (before.timestamp, Instant::now());
        for request in accepted {
            timestamp = timestamp.next();
            answer(request, Ok(CommitReceipt { timestamp, lsn, appended }));
        }
    }

    /// Validates a request and applies it to the next version.
    fn accept(
        &self,
        head: &mut HeadGuard<'_>,
        before: &Arc<Published>,
        next: &mut NextVersion,
        accepted: &[Request],
        request: &Request,
    ) -> Result<(), AbortReason> {
        // A load may have failed during the wait for the lock.
        self.writer.check_failure().map_err(AbortReason::Failed)?;
        let Request { began, reads, changes, .. } = request;
        let mut sets = ValidationSets::new(request.isolation, reads, began, changes);
        {
            let newest = next.version.as_ref().unwrap_or(&before.version);
            sets.validate(head, newest, request.validated)?;
            if sets.resolve_unknown_terms() {
                sets.validate(head, newest, began.timestamp)?;
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
        if let Some(own) = request.own.as_ref().filter(|_| is_newest) {
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
        head.push(next.timestamp, CommitScope::Mutations(Arc::clone(changes)));
        Ok(())
    }

    /// Appends the records of a batch; the last one publishes. Returns the LSN that all of them wait for.
    fn append_all(
        &self,
        log: Option<&CommitLog>,
        mut timestamp: Timestamp,
        published: &Arc<Published>,
        accepted: &mut [Request],
    ) -> Result<Option<Lsn>> {
        let publish = self.head.publish_visible(published);
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
    fn validate_early(
        &self,
        began: &Arc<Published>,
        sets: &ValidationSets<'_>,
    ) -> Result<Timestamp, AbortReason> {
        let reached = self.head.catch_up(began, |reached, newest| {
            let commits = self.head.commits_between(reached.timestamp, newest.timestamp);
            sets.validate_list(&commits.ok_or(AbortReason::TooOld)?, &newest.version)
        })?;
        Ok(reached.timestamp)
    }

    /// The error of a transaction that does not commit.
    fn error(&self, began: &Published, reason: AbortReason) -> Error {
        if !matches!(reason, AbortReason::Failed(_)) {
            // A conflict with a commit that will never be durable is not resolved by a retry.
            if let Some(Err(failure)) = self.writer.open_log().map(CommitLog::check) {
                return failure;
            }
            reason.count(&self.conflicts);
        }
        reason.into_error(began)
    }
}

/// The next version, made by a batch.
struct NextVersion {
    /// `None`: no request has been accepted yet.
    version: Option<Version>,
    timestamp: Timestamp,
    changes: u64,
    /// The accepted requests could not be applied again: none of them can commit.
    broken: Option<Error>,
}

impl NextVersion {
    fn of(before: &Published) -> Self {
        Self { version: None, timestamp: before.timestamp, changes: before.changes, broken: None }
    }

    /// Restores the state before a request that failed half way. What could be applied once can be again,
    /// unless the base cannot be read any more, such as at another server.
    fn undo(&mut self, before: &Published, accepted: &[Request]) {
        let mut version = before.version.clone();
        match accepted.iter().try_for_each(|request| apply_all(&mut version, &request.changes)) {
            Ok(()) => self.version = (!accepted.is_empty()).then_some(version),
            Err(error) => self.broken = Some(error),
        }
    }
}

fn answer(request: Request, outcome: Result<CommitReceipt, AbortReason>) {
    let slot = Arc::clone(&request.answer);
    *lock(&slot) = Some(CommitOutcome { outcome, _request: request });
}

fn record_of(changes: &[Mutation], bytes_max: usize) -> Result<Vec<u8>> {
    let mut record = Vec::with_capacity(16 * changes.len() + 16);
    record::write_commit(changes, &mut record);
    if record.len() > bytes_max {
        let message =
            format!("a transaction of {} changes does not fit into a record of the log", changes.len());
        return Err(Error::new(ErrorKind::Input, message).with_hint("split it, or load a file"));
    }
    Ok(record)
}

#[cfg(test)]
mod tests;
