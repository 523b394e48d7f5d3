//! Schema changes: adding, removing and keeping constraints while transactions run.
//!
//! # Shape
//! A commit publishes the constraints together with the version of the graph. A change of the constraints is
//! a separate commit, with a timestamp and a record that lists all constraints that hold afterwards.
//! # Why every commit satisfies the constraints
//! A constraint is checked first on a whole version without a lock, then on the later commits under the lock
//! of the head. A transaction that began with other constraints than those of the head conflicts in any case,
//! so every transaction that commits was checked against the current constraints.
//! # Ids
//! The IRIs of a constraint, and `rdf:type`, get ids when it is added. In the log, terms precede every record
//! that uses them. A checkpoint keeps all terms.

use crate::commit_head::{CommitHead, HeadGuard, Registration};
use crate::constraint::Constraint;
use crate::constraints::Constraints;
use crate::mutation::Mutation;
use crate::published::Published;
use crate::reads::ReadSet;
use crate::recent_commits::CommitScope;
use crate::record;
use crate::writer::Writer;
use std::sync::Arc;
use vervet_log::Lsn;
use vervet_model::{Error, ErrorKind, Id, Result, Watch};
use vervet_snapshot::Snapshot;

/// Maximum attempts of a constraint change that collides with other constraint changes or loads.
const ATTEMPTS_MAX: u32 = 10;

/// Applies `change` to the list of constraints; `None` leaves it unchanged. `begin` registers an active
/// transaction, which prevents the commits since its begin from being dropped.
pub(crate) fn change_constraints<'a>(
    head: &'a CommitHead,
    writer: &Writer,
    begin: &dyn Fn() -> Result<Registration<'a>>,
    change: &mut dyn FnMut(&mut Vec<Constraint>) -> Option<()>,
) -> Result<bool> {
    for attempt in 1.. {
        let registration = begin()?;
        let began = registration.began();
        let mut list: Vec<Constraint> = began.constraints();
        let before = list.clone();
        if change(&mut list).is_none() {
            // The caller may rely on a constraint as soon as it is reported.
            if let Some((log, lsn)) = writer.log()?.zip(began.lsn.get()) {
                log.wait(*lsn)?;
            }
            return Ok(false);
        }
        let mut id = |iri: &str| -> Result<Id> {
            let term = oxrdf::NamedNodeRef::new_unchecked(iri).into();
            match began.version.lookup(term)? {
                Some(id) => Ok(id),
                None => writer.intern(&began.version, term),
            }
        };
        let new = list.iter().filter(|one| !before.contains(one)).cloned();
        let new = Constraints::new(new, &mut id)?;
        let all = Arc::new(Constraints::new(list, &mut id)?);
        new.check_all(&began.version, &Watch::new("check"))?;
        match publish(head, writer, began, &new, all) {
            Err(error) if error.kind() == ErrorKind::Conflict && attempt < ATTEMPTS_MAX => {}
            published => return published.map(|()| true),
        }
    }
    Err(Error::internal("a change of the constraints did not end"))
}

/// Makes `all` the constraints of the graph, of which `new` hold for the version `began`.
fn publish(
    head: &CommitHead,
    writer: &Writer,
    began: &Arc<Published>,
    new: &Constraints,
    all: Arc<Constraints>,
) -> Result<()> {
    let log = writer.log()?;
    if let Some(log) = log {
        // The IRIs of the constraints are terms.
        writer.log_terms(log)?;
    }
    let mut guard = lock_checked(head, began, new)?;
    writer.check_failure()?;
    let timestamp = guard.published().timestamp.next();
    let mut bytes = Vec::new();
    record::write_constraints(timestamp, &all.texts(), &mut bytes);
    let version = guard.published().version.clone();
    let published = Arc::new(Published { constraints: all, ..guard.published().with(version, timestamp) });
    let publish = head.publish_visible(&published);
    let mut lsn = None;
    match log {
        Some(log) => {
            let appended = log.append_then(record::CONSTRAINTS, &bytes, publish)?;
            let set = published.lsn.set(appended);
            assert!(set.is_ok(), "a version is appended once");
            lsn = Some(appended);
        }
        None => publish(Lsn(0)),
    }
    guard.push(timestamp, CommitScope::Mutations(Arc::new([])));
    guard.advance(published);
    drop(guard);
    if let Some((log, lsn)) = log.zip(lsn) {
        log.wait(lsn)?;
    }
    Ok(())
}

/// Returns the head, locked, once `new` has been checked against every commit since `began`.
fn lock_checked<'a>(
    head: &'a CommitHead,
    began: &Arc<Published>,
    new: &Constraints,
) -> Result<HeadGuard<'a>> {
    let reached = head.catch_up(began, |reached, newest| {
        let commits = head.commits_between(reached.timestamp, newest.timestamp);
        let commits = commits.ok_or_else(|| conflict("much was committed"))?;
        check_commits(commits.iter().map(|(_, scope)| scope), began, newest, new)
    })?;
    let guard = head.lock_for_writing()?;
    let commits = guard.commits_after(reached.timestamp).ok_or_else(|| conflict("much was committed"))?;
    check_commits(commits.map(|(_, scope)| scope), began, guard.published(), new)?;
    Ok(guard)
}

/// Checks that these commits, the last of which is in `newest`, keep `new`.
fn check_commits<'a>(
    commits: impl Iterator<Item = &'a CommitScope>,
    began: &Published,
    newest: &Published,
    new: &Constraints,
) -> Result<()> {
    if !Arc::ptr_eq(&newest.constraints, &began.constraints) {
        return Err(conflict("other transactions changed them"));
    }
    let mut changes: Vec<Mutation> = Vec::new();
    for scope in commits {
        match scope {
            CommitScope::WholeGraph => return Err(conflict("data were loaded")),
            CommitScope::Mutations(mutations) => changes.extend_from_slice(mutations),
        }
    }
    new.check(&newest.version, &changes, &mut ReadSet::default())
}

fn conflict(what: &str) -> Error {
    let message = format!("the constraints could not be changed while {what}");
    Error::new(ErrorKind::Conflict, message).with_hint("try again")
}
