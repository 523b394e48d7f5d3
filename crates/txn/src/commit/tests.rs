//! A batch of commits that fails as a whole.

use super::{CommitOutcome, Committer, Request};
use crate::mutation::{Mutation, Timestamp};
use crate::options::Options;
use crate::reads::ReadSet;
use crate::sync::{Mutex, lock};
use crate::transactions::Transactions;
use crate::validation::Isolation;
use oxrdf::NamedNodeRef;
use std::sync::Arc;
use vervet_delta::Version;
use vervet_env::Environment;
use vervet_model::{Error, Id, Result, Statement};

fn iri(text: &str) -> oxrdf::TermRef<'_> {
    NamedNodeRef::new_unchecked(text).into()
}

fn statement(ids: [Id; 3]) -> Statement {
    let [subject, predicate, object] = ids;
    Statement { subject, predicate, object, graph: Id::UNBOUND, edge: Id::UNBOUND }
}

type Answer = Arc<Mutex<Option<CommitOutcome>>>;

/// Queues a request that adds a statement; `own`: with a version, which a batch takes without applying the
/// change.
fn push(committer: &Committer, own: Option<Version>, statement: Statement) -> Answer {
    let answer = Answer::default();
    let began = committer.head.newest();
    lock(&committer.queue).push(Request {
        isolation: Isolation::Snapshot,
        validated: began.timestamp,
        began,
        own,
        reads: ReadSet::default(),
        changes: Arc::new([Mutation { statement, added: true }]),
        record: Vec::new(),
        constraint_check: Ok(()),
        answer: Arc::clone(&answer),
    });
    answer
}

/// The timestamp of a request that committed; `None`: it failed.
fn timestamp(answer: &Answer) -> Option<Timestamp> {
    let outcome = lock(answer).take().expect("it is answered");
    outcome.outcome.ok().map(|receipt| receipt.timestamp)
}

fn commit_queued(committer: &Committer) {
    let mut head = committer.head.lock();
    let requests = std::mem::take(&mut *lock(&committer.queue));
    committer.commit_all(&mut head, None, requests);
}

/// One request cannot be applied, and then those before it cannot be applied again: none of them commits, and
/// the requests after them commit as if they had not been there.
#[test]
fn a_batch_that_cannot_be_undone_fails_as_a_whole() -> Result<()> {
    let graph = Transactions::in_memory(Environment::simulated(1), Options::default())?;
    let mut transaction = graph.begin(Isolation::Snapshot)?;
    let known = |text| transaction.intern(iri(text));
    let (ann, knows, bob) = (known("urn:ann")?, known("urn:knows")?, known("urn:bob")?);
    let good = statement([ann, knows, bob]);
    assert!(transaction.insert(&good)?);
    transaction.commit()?;
    let before = graph.current();
    // Keeps the list of commits since then.
    let active = graph.begin(Isolation::Snapshot)?;
    // No version has this vertex.
    let bad = statement([Id::vertex(1 << 30), knows, bob]);
    let other = statement([bob, knows, ann]);
    let reverse = statement([bob, knows, bob]);

    let committer = graph.committer();
    let accepted = push(committer, Some(before.version.clone()), bad);
    let also_accepted = push(committer, None, other);
    let failing = push(committer, None, bad);
    let later = push(committer, None, reverse);
    let failing_alone = push(committer, None, bad);
    commit_queued(committer);

    assert_eq!(timestamp(&accepted), None, "it cannot be applied again");
    assert_eq!(timestamp(&also_accepted), None, "it was after one that cannot be applied again");
    assert_eq!(timestamp(&failing), None);
    assert_eq!(timestamp(&later), Some(before.timestamp.next()));
    assert_eq!(timestamp(&failing_alone), None, "the one before it is applied again");
    let after = graph.current();
    assert_eq!(after.timestamp, before.timestamp.next());
    assert!(after.version.contains(&good)? && after.version.contains(&reverse)?);
    assert!(!after.version.contains(&other)?, "its commit failed");
    assert_eq!(after.version.delta_cells(), before.version.delta_cells() + 1);

    // A transaction that began before conflicts with none of the commits that failed.
    let commits = graph.head().commits_between(before.timestamp, after.timestamp);
    assert_eq!(commits.ok_or_else(|| Error::internal("forgotten"))?.len(), 1);
    let again = push(committer, None, other);
    commit_queued(committer);
    assert_eq!(timestamp(&again), Some(after.timestamp.next()));
    assert!(graph.current().version.contains(&other)?);
    drop(active);
    Ok(())
}
