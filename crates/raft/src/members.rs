//! The voters of a log: how servers join and leave them.
//!
//! # Shape
//! The log has its voters, and what is said of each ([`Member::about`]), in entries of its own; so all voters
//! know the same ones, and they change while commits go on. A server that joins first gets the log, then a
//! vote. One that leaves first loses its vote, and gets the log until it knows that.
//! # Invariants
//! 1. A change is committed by a majority of the voters before it and a majority of those after it.
//! 2. A number is that of one log on one disk: a voter that has lost its log has forgotten its votes, and a
//!    server that has left may have a log of long ago. Each begins anew with another number ([`number_at`]).
//! 3. A vote is taken away only if a majority of the voters that are left answers: otherwise the change could
//!    not be committed, and nothing after it.
//! 4. What is said of a voter changes from what the caller knows, not from something newer
//!    ([`AboutChange::before`]), and only as the [`MemberRules`] allow.
//!
//! [`number_at`]: crate::number_at

use crate::member::{AboutChange, Member, MemberRules};
use crate::network::{DESCRIBE, JOIN, REMOVE, VOTE};
use crate::place::place;
use crate::replica::{Metrics, Replica, Role, ended, no_leader};
use crate::types::{LogId, Types, Vote};
use crate::wire;
use bytes::Bytes;
use openraft::raft::VoteRequest;
use openraft::{ChangeMembers, Raft, ServerState};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio::time::timeout;
use vervet_model::{Error, ErrorKind, Result, lock};

/// Most voters: each change waits for a majority of them.
pub const VOTERS_MAX: usize = 7;

/// Most servers that are admitted at the same time.
const ADMITTING_MAX: usize = 2 * VOTERS_MAX;

/// Longest wait until a server that joins has the log; it asks again then.
const LEARN_MAX: Duration = Duration::from_secs(10);

/// Longest wait until a majority of the voters that would be left has answered.
const ANSWER_MAX: Duration = Duration::from_secs(3);

/// Longest wait until a change of the voters is committed.
const CHANGE_MAX: Duration = Duration::from_secs(10);

/// Longest wait until a server that has left knows it.
const FAREWELL_MAX: Duration = Duration::from_secs(5);

/// Time for a server that has left to get the news that this is committed.
const FAREWELL_MIN: Duration = Duration::from_millis(600);

/// Time between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Whether a server is the only one of `voters` at its place.
fn is_alone(voters: &[u64], server: u64) -> bool {
    voters.contains(&server) && voters.iter().filter(|voter| place(**voter) == place(server)).count() == 1
}

fn members_of(metrics: &Metrics) -> Vec<Member> {
    let membership = metrics.membership_config.membership();
    let voters: BTreeSet<u64> = membership.voter_ids().collect();
    let member = |(server, about): (&u64, &Bytes)| Member {
        server: *server,
        about: about.clone(),
        votes: voters.contains(server),
    };
    membership.nodes().map(member).collect()
}

fn refused(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unsupported, what)
}

impl Replica {
    /// The servers that have the log, in the order of their numbers, as far as that is committed; none at a
    /// server that has not got the log yet.
    #[must_use]
    pub fn members(&self) -> Vec<Member> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow();
        let is_committed = *metrics.membership_config.log_id() <= metrics.last_applied;
        if is_committed { members_of(&metrics) } else { Vec::new() }
    }

    /// Index of the entry that [`Replica::members`] tells of; 0: of none.
    #[must_use]
    pub fn members_index(&self) -> u64 {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow();
        let index = *metrics.membership_config.log_id();
        index.filter(|_| index <= metrics.last_applied).map_or(0, |id| id.index)
    }

    /// Numbers of all voters.
    #[must_use]
    pub fn voters(&self) -> Vec<u64> {
        self.raft.metrics().borrow().membership_config.voter_ids().collect()
    }

    /// Whether this server is a voter, and no other has its place, as far as that is committed. Between the
    /// two halves of an exchange both are voters: a leader that dies then leaves it to the next one.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        let voters: Vec<u64> =
            self.members().into_iter().filter(|member| member.votes).map(|member| member.server).collect();
        is_alone(&voters, self.server)
    }

    /// Asks the leader to admit this server, which has begun anew, in place of the voter that it was, if it
    /// was one. It is a voter some time after: see [`Replica::is_admitted`].
    ///
    /// # Errors
    /// Unsupported: the leader refuses it. Unavailable: none of the others leads, or all answers failed.
    pub fn join(&self, time_max: Duration) -> Result<()> {
        let mut request = vec![JOIN];
        wire::write_join(self.server, &self.about, &mut request);
        let mut failure = no_leader("no other voter is known");
        for other in self.named.iter().filter(|other| place(**other) != place(self.server)) {
            match self.transport.call(*other, &request, time_max) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Unsupported => return Err(error),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Whether another voter has said that this one has been removed, as it does when this one stands for
    /// election.
    #[must_use]
    pub fn is_dismissed(&self) -> bool {
        self.is_dismissed.load(Ordering::Relaxed)
    }

    /// Asks the others whether this server has been removed ([`Replica::is_dismissed`]), if the newest list
    /// of voters in its log is without it and may not be committed: then it stands for no election, and
    /// no leader may send it anything. Blocks, for `time_max` for each of the others.
    pub fn ask_about_removal(&self, time_max: Duration) {
        let (voters, last) = {
            let metrics = self.raft.metrics();
            let metrics = metrics.borrow();
            (metrics.membership_config.voter_ids().collect::<BTreeSet<u64>>(), metrics.last_applied)
        };
        if voters.is_empty() || voters.contains(&self.server) || self.is_dismissed() {
            return;
        }
        // Term 0: voters do not grant the vote. The request names the last applied entry as the end of this
        // log, so a voter that has committed the removal finds the removal behind it, and refuses.
        let mut request = vec![VOTE];
        wire::write_vote_request(&VoteRequest::new(Vote::new(0, self.server), last), &mut request);
        let is_refused = |voter: &u64| {
            let answer = self.transport.call(*voter, &request, time_max);
            answer.is_err_and(|error| error.kind() == ErrorKind::Unsupported)
        };
        if voters.iter().any(is_refused) {
            self.is_dismissed.store(true, Ordering::Relaxed);
        }
    }

    /// Refuses a candidate that was removed by a later entry than its last one.
    pub(crate) fn check_candidate(&self, candidate: u64, last: Option<LogId>) -> Result<()> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow();
        let stored = &metrics.membership_config;
        let is_committed = *stored.log_id() <= metrics.last_applied;
        let is_known = stored.membership().nodes().any(|(server, _)| *server == candidate);
        if is_committed && *stored.log_id() > last && !is_known {
            return Err(refused(format!("server {candidate} is no voter any more")));
        }
        Ok(())
    }

    fn check_leads(&self) -> Result<()> {
        match self.role() {
            Role::Leader { .. } => Ok(()),
            _ => Err(no_leader("this server does not lead")),
        }
    }

    /// Begins to admit a server in place of the voter at its place, at the leader.
    pub(crate) fn admit(&self, server: u64, about: Bytes) -> Result<()> {
        self.check_leads()?;
        let is_there = |member: &Member| place(member.server) == place(server) && !member.about.is_empty();
        let members = members_of(&self.raft.metrics().borrow());
        let before = members.iter().find(|member| is_there(member));
        if before.is_some_and(|before| !(self.rules.is_same)(&before.about, &about)) {
            let what = format!("the place {} of this server is that of another one", place(server));
            return Err(refused(what).with_hint("invite the server again: vervet cluster invite"));
        }
        let about = before.map_or(about.clone(), |before| (self.rules.renewed)(&before.about, &about).into());
        let is_same = self.rules.is_same;
        let has_name =
            |member: &Member| place(member.server) != place(server) && is_same(&member.about, &about);
        if members.iter().any(|member| !member.about.is_empty() && has_name(member)) {
            return Err(refused("another server of the cluster has the name of this one")
                .with_hint("remove that one, or invite this one by another name"));
        }
        let voters = self.voters();
        let others: BTreeSet<u64> =
            voters.iter().map(|voter| place(*voter)).filter(|at| *at != place(server)).collect();
        if others.len() >= VOTERS_MAX {
            return Err(refused(format!("the log has {} voters, which is the most", others.len()))
                .with_hint("remove one of them: vervet cluster remove"));
        }
        if is_alone(&voters, server) {
            return Ok(());
        }
        let (runtime, admitting) = (self.runtime()?, Arc::clone(&self.admitting));
        {
            let mut admitting = lock(&admitting);
            // One that is not begun now asks again.
            if admitting.len() >= ADMITTING_MAX || !admitting.insert(server) {
                return Ok(());
            }
        }
        let (raft, is_changing) = (self.raft.clone(), Arc::clone(&self.is_changing));
        runtime.spawn(async move {
            if let Err(error) = give_vote(&raft, server, about, &is_changing).await {
                tracing::warn!(target: "vervet", "a server that joins the voters was not admitted: {error}");
            }
            lock(&admitting).remove(&server);
        });
        Ok(())
    }

    /// Removes the server at a place: it votes no more, and gets no more of the log. Returns once that is
    /// committed, and this server knows it.
    ///
    /// # Errors
    /// Unsupported: too few voters would be left, or too few of those that would be left answer. Unavailable:
    /// there is no leader, or the change is not committed in time; it may be later.
    pub fn remove(&self, at: u64, time_max: Duration) -> Result<()> {
        let end = Instant::now() + time_max;
        let request = [&[REMOVE][..], &at.to_le_bytes()].concat();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let asked = match self.role() {
                Role::Leader { .. } => self.dismiss(at),
                Role::Follower { leader: Some(leader) } => {
                    self.transport.call(leader, &request, left).map(drop)
                }
                _ => Err(no_leader("the voters have no leader")),
            };
            let members = self.members();
            match asked {
                Ok(()) if !members.is_empty() && !members.iter().any(|member| place(member.server) == at) => {
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Deadline && left.is_zero() => {
                    return Err(undecided());
                }
                Err(error)
                    if !matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Deadline)
                        || left.is_zero() =>
                {
                    return Err(error);
                }
                Ok(()) if left.is_zero() => {
                    let what = "the server votes no more, and not all others know it yet";
                    return Err(
                        Error::new(ErrorKind::Unavailable, what).with_hint("run the same command again")
                    );
                }
                _ => std::thread::sleep(RETRY_INTERVAL.min(left)),
            }
        }
    }

    /// Takes the vote of the server at a place away, at the leader, and lets it go once it knows.
    pub(crate) fn dismiss(&self, at: u64) -> Result<()> {
        self.check_leads()?;
        let members = members_of(&self.raft.metrics().borrow());
        let gone: Vec<Member> = members.into_iter().filter(|member| place(member.server) == at).collect();
        if gone.is_empty() {
            return Ok(());
        }
        let numbers: BTreeSet<u64> = gone.iter().map(|member| member.server).collect();
        if gone.iter().any(|member| member.votes) {
            self.block_on(async {
                let _one_at_a_time = self.is_changing.lock().await;
                take_votes(&self.raft, &numbers, self.rules).await
            })??;
        }
        let (raft, is_releasing) = (self.raft.clone(), Arc::clone(&self.is_releasing));
        if !is_releasing.swap(true, Ordering::AcqRel) {
            self.runtime()?.spawn(async move {
                let_go(&raft, numbers).await;
                is_releasing.store(false, Ordering::Release);
            });
        }
        Ok(())
    }

    /// Replaces what is said of servers. Returns once that is committed, and this server knows it.
    ///
    /// # Errors
    /// Unsupported: the rules refuse it. Conflict: something else is said of one of them by now. Unavailable:
    /// there is no leader, or the change is not committed in time; it may be later.
    pub fn describe(&self, changes: &[AboutChange], time_max: Duration) -> Result<()> {
        let end = Instant::now() + time_max;
        let mut request = vec![DESCRIBE];
        wire::write_abouts(changes, &mut request);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let asked = match self.role() {
                Role::Leader { .. } => self.change_abouts(changes),
                Role::Follower { leader: Some(leader) } => {
                    self.transport.call(leader, &request, left).map(drop)
                }
                _ => Err(no_leader("the voters have no leader")),
            };
            let members = self.members();
            let is_there = |change: &AboutChange| {
                members.iter().any(|member| member.server == change.server && member.about == change.after)
            };
            match asked {
                Ok(()) if changes.iter().all(is_there) => return Ok(()),
                Ok(()) if left.is_zero() => return Err(undecided()),
                Err(error)
                    if !matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Deadline)
                        || left.is_zero() =>
                {
                    return Err(error);
                }
                _ => std::thread::sleep(RETRY_INTERVAL.min(left)),
            }
        }
    }

    /// Replaces what is said of servers, at the leader.
    pub(crate) fn change_abouts(&self, changes: &[AboutChange]) -> Result<()> {
        self.check_leads()?;
        self.block_on(async {
            let _one_at_a_time = self.is_changing.lock().await;
            let before = members_of(&self.raft.metrics().borrow());
            let mut after = before.clone();
            for change in changes {
                let member = after.iter_mut().find(|member| member.server == change.server);
                let member = member.ok_or_else(|| refused("a server that does not have the log"))?;
                if member.about != change.before && member.about != change.after {
                    let what = "what is said of a server has changed meanwhile; nothing was changed";
                    return Err(Error::new(ErrorKind::Conflict, what).with_hint("run the command again"));
                }
                member.about = change.after.clone();
            }
            if after == before {
                return Ok(());
            }
            let voting = |members: Vec<Member>| members.into_iter().filter(|member| member.votes).collect();
            let [before, after]: [Vec<Member>; 2] = [before, after].map(voting);
            (self.rules.check)(&before, &after)?;
            let nodes: BTreeMap<u64, Bytes> =
                changes.iter().map(|change| (change.server, change.after.clone())).collect();
            let changed = self.raft.change_membership(ChangeMembers::SetNodes(nodes), true);
            let changed = timeout(CHANGE_MAX, changed).await.map_err(|_| undecided())?;
            changed.map(drop).map_err(|error| unchanged(&error))
        })?
    }

    /// Ends a change of the voters that an earlier leader has begun, at the leader.
    pub(crate) fn settle_members(&self) -> Result<()> {
        let raft = self.raft.clone();
        let is_joint =
            |metrics: &Metrics| metrics.membership_config.membership().get_joint_config().len() > 1;
        if is_joint(&raft.metrics().borrow()) {
            self.runtime()?.spawn(async move {
                _ = raft.change_membership(ChangeMembers::RemoveVoters(BTreeSet::new()), false).await;
            });
        }
        Ok(())
    }
}

fn undecided() -> Error {
    let what = "the change of the voters is not committed yet: no majority of them answers";
    Error::new(ErrorKind::Unavailable, what).with_hint("start them; the change may be made then")
}

fn unchanged(error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Unavailable, format!("the voters were not changed: {error}"))
}

/// Whether another server has an entry, as a leader knows it.
fn has_entry(metrics: &Metrics, server: u64, index: u64) -> bool {
    let matched = metrics.replication.as_ref().and_then(|all| all.get(&server).copied().flatten());
    matched.is_some_and(|last| last.index >= index)
}

/// Gives a server a vote, once it has the log, so that commits do not wait for it.
async fn give_vote(raft: &Raft<Types>, server: u64, about: Bytes, is_changing: &Mutex<()>) -> Result<()> {
    let added = {
        let _one_at_a_time = is_changing.lock().await;
        timeout(CHANGE_MAX, raft.add_learner(server, about, false)).await
    };
    let added = added.map_err(|_| undecided())?.map_err(|error| unchanged(&error))?;
    // openraft itself takes a server without an entry for one with almost all, if the log is short.
    let mut metrics = raft.metrics();
    let learned = metrics.wait_for(|metrics| has_entry(metrics, server, added.log_id.index));
    let late = |_| unchanged(&"the server does not get the log in time");
    drop(timeout(LEARN_MAX, learned).await.map_err(late)?);
    let _one_at_a_time = is_changing.lock().await;
    // Others may have joined and left meanwhile.
    let kept: Vec<u64> = raft.metrics().borrow().membership_config.voter_ids().collect();
    let kept = kept.into_iter().filter(|voter| place(*voter) != place(server));
    let voters: BTreeSet<u64> = kept.chain([server]).collect();
    if voters.iter().map(|voter| place(*voter)).collect::<BTreeSet<_>>().len() > VOTERS_MAX {
        return Err(unchanged(&"there are as many as there can be"));
    }
    let changed = timeout(CHANGE_MAX, raft.change_membership(voters, false)).await;
    changed.map_err(|_| undecided())?.map(drop).map_err(|error| unchanged(&error))
}

/// Takes votes away, if a majority of the voters that are left answers.
async fn take_votes(raft: &Raft<Types>, gone: &BTreeSet<u64>, rules: MemberRules) -> Result<()> {
    // An entry with the same voters: a server that acknowledges it is up. It also completes a change that an
    // earlier leader has begun.
    let nothing = raft.change_membership(ChangeMembers::RemoveVoters(BTreeSet::new()), true);
    let entry = timeout(ANSWER_MAX, nothing).await;
    let late = |_| unchanged(&"no majority of the voters answers");
    let index = entry.map_err(late)?.map_err(|error| unchanged(&error))?.log_id.index;
    let mut metrics = raft.metrics();
    let voters: BTreeSet<u64> = metrics.borrow().membership_config.voter_ids().collect();
    let kept: BTreeSet<u64> = voters.difference(gone).copied().collect();
    if kept.len() < 2 {
        return Err(refused("a single voter would be left").with_hint("let another server join before"));
    }
    let before: Vec<Member> =
        members_of(&metrics.borrow()).into_iter().filter(|member| member.votes).collect();
    let after: Vec<Member> = before.iter().filter(|member| !gone.contains(&member.server)).cloned().collect();
    (rules.check)(&before, &after)?;
    let is_up = |metrics: &Metrics| {
        let has = |server: &&u64| **server == metrics.id || has_entry(metrics, **server, index);
        kept.iter().filter(has).count() * 2 > kept.len()
    };
    let up = timeout(ANSWER_MAX, metrics.wait_for(is_up)).await;
    let silent = |_| {
        refused("too few of the voters that would be left answer, so nothing could be changed afterwards")
            .with_hint("start them, or remove another one first: vervet cluster status")
    };
    drop(up.map_err(silent)?);
    // A leader that keeps the log would go on leading without a vote.
    let keeps_log = !gone.contains(&metrics.borrow().id);
    let changed = raft.change_membership(ChangeMembers::RemoveVoters(gone.clone()), keeps_log);
    let changed = timeout(CHANGE_MAX, changed).await;
    changed.map_err(|_| undecided())?.map(drop).map_err(|error| unchanged(&error))
}

/// Lets servers go that have lost their vote, once they know it.
async fn let_go(raft: &Raft<Types>, gone: BTreeSet<u64>) {
    let mut metrics = raft.metrics();
    let index = metrics.borrow().membership_config.log_id().map_or(0, |id| id.index);
    let know = |metrics: &Metrics| {
        metrics.replication.is_none() || gone.iter().all(|server| has_entry(metrics, *server, index))
    };
    _ = timeout(FAREWELL_MAX, metrics.wait_for(know)).await.map(drop);
    // The next heartbeat says that it is committed.
    tokio::time::sleep(FAREWELL_MIN).await;
    let leads = metrics.borrow().state == ServerState::Leader;
    if leads && let Err(error) = raft.change_membership(ChangeMembers::RemoveNodes(gone), true).await {
        tracing::debug!(target: "vervet", "{}", ended(&error));
    }
}
