//! One voter: its log, its part in elections, and what the rest of the server asks of it.
//!
//! # Threads
//! openraft is asynchronous; it runs on a runtime of [`RUNTIME_THREADS`] threads of its own. All calls here
//! block, and must not come from tasks of that runtime.

use crate::batch::{self, Record};
use crate::leadership::Leadership;
use crate::member::MemberRules;
use crate::network::{
    APPEND, DESCRIBE, INSTALL, JOIN, JOIN_LEADER, Network, READ_INDEX, REMOVE, Transport, VOTE,
};
use crate::place::place;
use crate::position::Position;
use crate::store::{Identity, Store};
use crate::types::Types;
use crate::wait::within;
use crate::wire;
use bytes::Bytes;
use openraft::{Config, Raft, RaftMetrics, ServerState, SnapshotPolicy};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::timeout;
use vervet_env::Environment;
use vervet_log::LogStatus;
use vervet_model::{Error, ErrorKind, Result};

/// Threads of the runtime of openraft. With a second one, most steps of a commit woke the other thread, which
/// costs more than the step (docs/benchmarks/cluster-transactions.md).
const RUNTIME_THREADS: usize = 1;

/// Longest wait for the tasks of the runtime at the end.
const SHUTDOWN_MAX: Duration = Duration::from_secs(3);

/// Longest wait for openraft to take note of a snapshot.
const COMPACT_MAX: Duration = Duration::from_secs(10);

/// Time after which a voter without an answer of the leader asks again.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Longest wait for the leader to which a request is sent on.
const SEND_ON_MAX: Duration = Duration::from_millis(800);

/// When a leader is taken for dead.
#[derive(Clone, Debug)]
pub struct Timing {
    /// Time between two heartbeats of a leader.
    pub heartbeat: Duration,
    /// A voter that has heard no leader for the end of this range, and a random time within it, stands for
    /// election.
    pub election: Range<Duration>,
}

impl Default for Timing {
    /// Others stand for election 0.9 to 1 s after the last heartbeat: openraft adds the end of the range to
    /// each wait. A pause of half a second, of a process or a disk, changes nothing.
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_millis(200),
            election: Duration::from_millis(400)..Duration::from_millis(500),
        }
    }
}

/// How a voter is opened.
#[derive(Clone, Debug)]
pub struct ReplicaOptions {
    /// Files and randomness.
    pub environment: Environment,
    /// The directory of the log.
    pub directory: PathBuf,
    /// Whose log it is.
    pub identity: Identity,
    /// What the others are told of this server, at most 4 KiB, if it asks to be admitted ([`Replica::join`]).
    pub about: Bytes,
    /// What such texts mean.
    pub rules: MemberRules,
    /// Numbers of the voters of a new log, this one included. A log that has voters keeps those.
    pub voters: BTreeSet<u64>,
    /// A missing log is begun. Only right if this voter has never had one: one that has lost its log has
    /// forgotten its votes and entries that it acknowledged.
    pub may_begin: bool,
    /// Timing of elections.
    pub timing: Timing,
}

/// Longest wait for another leader: some elections.
pub const STEP_DOWN_MAX: Duration = Duration::from_secs(4);

/// What a voter is at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Role {
    /// It follows a leader, if it knows one.
    Follower {
        /// Number of the leader.
        leader: Option<u64>,
    },
    /// It leads, and has all entries of earlier leaders.
    Leader {
        /// The term, which no other leader has.
        term: u64,
    },
    /// Its log has failed: it votes no more, and has to be started again.
    Ended,
}

/// The state of a voter.
#[derive(Clone, Debug)]
pub struct ReplicaStatus {
    /// What it is.
    pub role: Role,
    /// The current term.
    pub term: u64,
    /// Index of the last entry of its log.
    pub last: u64,
    /// Index of the last entry that it knows to be committed.
    pub committed: u64,
    /// Bytes of its log.
    pub log_bytes: u64,
    /// At a leader: time since a majority of the voters has confirmed it.
    pub confirmed_before: Option<Duration>,
    /// At a leader: of each voter the index up to which it has the log.
    pub voters: Vec<(u64, Option<u64>)>,
    /// Why it has ended.
    pub failure: Option<String>,
}

/// A committed entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommittedEntry {
    /// Its index; indexes are consecutive.
    pub index: u64,
    /// Its records, in order. None: it belongs to the log itself.
    pub records: Vec<Record>,
}

/// See the header of this file. Dropping it ends it.
pub struct Replica {
    pub(crate) raft: Raft<Types>,
    pub(crate) store: Store,
    position: Position,
    pub(crate) server: u64,
    pub(crate) about: Bytes,
    pub(crate) rules: MemberRules,
    /// The voters that the caller has named.
    pub(crate) named: BTreeSet<u64>,
    pub(crate) transport: Arc<dyn Transport>,
    reads: mpsc::UnboundedSender<oneshot::Sender<Result<u64>>>,
    /// The servers that are being admitted. One that is not reached delays no other one.
    pub(crate) admitting: Arc<std::sync::Mutex<BTreeSet<u64>>>,
    /// Another voter has said that this one has been removed.
    pub(crate) is_dismissed: Arc<AtomicBool>,
    /// Locked while the voters are changed: each change begins with what the one before has made.
    pub(crate) is_changing: Arc<Mutex<()>>,
    /// The leader waits until a removed server knows of its removal, to stop sending it the log.
    pub(crate) is_releasing: Arc<AtomicBool>,
    /// `None` while it is dropped.
    runtime: Option<Runtime>,
}

pub(crate) type Metrics = RaftMetrics<u64, Bytes>;

fn role_of(metrics: &Metrics) -> Role {
    if metrics.running_state.is_err() {
        return Role::Ended;
    }
    let leads = metrics.state == ServerState::Leader;
    // The first entry of a leader follows all entries of earlier ones.
    let is_ready = metrics.last_applied.is_some_and(|last| {
        last.leader_id.term == metrics.current_term && last.leader_id.node_id == metrics.id
    });
    match metrics.current_leader {
        _ if leads && is_ready => Role::Leader { term: metrics.current_term },
        leader => Role::Follower { leader: leader.filter(|leader| *leader != metrics.id) },
    }
}

pub(crate) fn ended(error: &dyn fmt::Display) -> Error {
    Error::new(ErrorKind::Unavailable, format!("the replicated log has ended at this server: {error}"))
        .with_hint("see the log of the server, and start it again")
}

pub(crate) fn no_leader(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unavailable, what).with_hint("try again when a majority of the voters is up")
}

/// Confirms leaderships: one confirmation for all requests that came before it began.
async fn confirm(raft: Raft<Types>, mut requests: mpsc::UnboundedReceiver<oneshot::Sender<Result<u64>>>) {
    while let Some(first) = requests.recv().await {
        let mut all = vec![first];
        while let Ok(next) = requests.try_recv() {
            all.push(next);
        }
        let confirmed = match raft.get_read_log_id().await {
            Ok((index, _)) => Ok(index.map_or(0, |id| id.index)),
            Err(error) => Err(no_leader(format!("this server is not confirmed as the leader: {error}"))),
        };
        for request in all {
            _ = request.send(confirmed.clone());
        }
    }
}

impl Replica {
    /// Whether a directory has a log that was begun.
    ///
    /// # Errors
    /// As [`Replica::open`].
    pub fn exists(environment: &Environment, directory: &std::path::Path) -> Result<bool> {
        Store::exists(environment, directory)
    }

    /// Verifies every record of the log in a directory. Changes nothing; a voter may have it open.
    ///
    /// # Errors
    /// Input: there is none. Corrupt: it is damaged. Io.
    pub fn check_log(
        environment: &Environment,
        directory: &std::path::Path,
    ) -> Result<crate::CheckedEntries> {
        Store::check(environment, directory)
    }

    /// Opens a voter. It takes part in elections from now on.
    ///
    /// # Errors
    /// Input: there is no log and `may_begin` is unset, or it is the log of another server. Corrupt: it is
    /// damaged. Unavailable: another process has it. Io.
    pub fn open(options: &ReplicaOptions, transport: Arc<dyn Transport>) -> Result<Self> {
        let ReplicaOptions { environment, directory, identity, voters, may_begin, timing, .. } = options;
        let store = Store::open(environment, directory, *identity, *may_begin)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(RUNTIME_THREADS)
            .thread_name("raft")
            .enable_time()
            .build()
            .map_err(|error| Error::io("start the threads of the replicated log", &error))?;
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let config = Config {
            cluster_name: format!("{:016x}", identity.cluster),
            heartbeat_interval: milliseconds(timing.heartbeat),
            election_timeout_min: milliseconds(timing.election.start),
            election_timeout_max: milliseconds(timing.election.end),
            snapshot_policy: SnapshotPolicy::Never,
            // Only `compact` purges.
            max_in_snapshot_log_to_keep: u64::MAX,
            ..Config::default()
        };
        let config = config.validate().map_err(|error| Error::internal(error.to_string()))?;
        let position = Position::new(store.clone());
        let is_dismissed = Arc::<AtomicBool>::default();
        let network = Network {
            transport: Arc::clone(&transport),
            store: store.clone(),
            is_dismissed: Arc::clone(&is_dismissed),
        };
        let started = Raft::new(identity.server, Arc::new(config), network, store.clone(), position.clone());
        let raft = runtime.block_on(started).map_err(|error| ended(&error))?;
        let (reads, requests) = mpsc::unbounded_channel();
        runtime.spawn(confirm(raft.clone(), requests));
        let server = identity.server;
        let replica = Self {
            raft,
            store,
            position,
            server,
            about: options.about.clone(),
            rules: options.rules,
            named: voters.clone(),
            transport,
            reads,
            admitting: Arc::default(),
            is_dismissed,
            is_releasing: Arc::default(),
            is_changing: Arc::default(),
            runtime: Some(runtime),
        };
        replica.begin(voters)?;
        Ok(replica)
    }

    /// Writes the voters into a new log.
    fn begin(&self, voters: &BTreeSet<u64>) -> Result<()> {
        let known = self.block_on(self.raft.with_raft_state(|state| {
            state.membership_state.effective().membership().voter_ids().collect::<BTreeSet<u64>>()
        }))?;
        let known = known.map_err(|error| ended(&error))?;
        // A server that has begun anew is admitted by the others.
        if !known.is_empty() || place(self.server) != self.server {
            return Ok(());
        }
        let begun = self.block_on(self.raft.initialize(voters.clone()))?;
        if let Err(error) = begun {
            // Another voter was faster, and its entry has arrived meanwhile.
            let is_begun = self.block_on(self.raft.is_initialized())?;
            if !is_begun.map_err(|error| ended(&error))? {
                return Err(ended(&error));
            }
        }
        Ok(())
    }

    pub(crate) fn runtime(&self) -> Result<&Runtime> {
        self.runtime.as_ref().ok_or_else(|| Error::internal("the replicated log is being closed"))
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> Result<T> {
        Ok(self.runtime()?.block_on(future))
    }

    /// Whether a message may be answered by whichever voter has the place of its receiver.
    #[must_use]
    pub fn is_for_any(request: &[u8]) -> bool {
        matches!(request.first(), Some(&JOIN | &REMOVE))
    }

    /// Answers a message of another voter. The caller has checked that it is for this one
    /// ([`Replica::server`]), unless it is for any: what the voter was that this server was before is not
    /// what it is.
    ///
    /// # Errors
    /// Corrupt: it is no message. Unavailable: this voter has ended, or is not the leader.
    pub fn answer(&self, request: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let malformed = |_| Error::corrupt("a message of another voter", "it is damaged");
        let (kind, body) = request.split_first().ok_or_else(|| malformed(wire::Malformed))?;
        let body = Bytes::copy_from_slice(body);
        match *kind {
            APPEND => {
                let request = wire::read_append(body).map_err(malformed)?;
                let answer = self.block_on(self.raft.append_entries(request))?;
                wire::write_append_answer(&answer.map_err(|error| ended(&error))?, out);
            }
            VOTE => {
                let request = wire::read_vote_request(body).map_err(malformed)?;
                self.check_candidate(request.vote.leader_id.node_id, request.last_log_id)?;
                let answer = self.block_on(self.raft.vote(request))?;
                wire::write_vote_answer(&answer.map_err(|error| ended(&error))?, out);
            }
            INSTALL => {
                let request = wire::read_install(body).map_err(malformed)?;
                let answer = self.block_on(self.raft.install_snapshot(request))?;
                wire::write_vote(&answer.map_err(|error| ended(&error))?.vote, out);
            }
            JOIN => match self.role() {
                // The server that asks may know of this one, and not of the leader, which joined later.
                Role::Follower { leader: Some(leader) } => {
                    wire::read_join(body.clone()).map_err(malformed)?;
                    let sent_on = [&[JOIN_LEADER][..], &body].concat();
                    self.transport.call(leader, &sent_on, SEND_ON_MAX)?;
                }
                _ => self.admit_asked(body)?,
            },
            JOIN_LEADER => self.admit_asked(body)?,
            REMOVE => {
                let place = body.first_chunk::<8>().filter(|_| body.len() == 8);
                self.dismiss(u64::from_le_bytes(*place.ok_or_else(|| malformed(wire::Malformed))?))?;
            }
            DESCRIBE => {
                let changes = wire::read_abouts(body).map_err(malformed)?;
                self.change_abouts(&changes)?;
            }
            READ_INDEX => out.extend_from_slice(&self.confirmed_index()?.to_le_bytes()),
            _ => return Err(malformed(wire::Malformed)),
        }
        Ok(())
    }

    fn admit_asked(&self, body: Bytes) -> Result<()> {
        let asked = wire::read_join(body);
        let (number, about) =
            asked.map_err(|_| Error::corrupt("a message of another voter", "it is damaged"))?;
        self.admit(number, about)
    }

    /// What this voter is.
    #[must_use]
    pub fn role(&self) -> Role {
        role_of(&self.raft.metrics().borrow())
    }

    /// Returns the role once it differs from `known`, or after `time_max`.
    pub fn wait_for_role(&self, known: Role, time_max: Duration) -> Role {
        let mut metrics = self.raft.metrics();
        let changed = metrics.wait_for(|metrics| role_of(metrics) != known);
        // A closed channel has the last role.
        _ = within(time_max, changed).map(drop);
        self.role()
    }

    /// Begins to append as the leader of `term`, as [`Role::Leader`] says. At most once a term: the records
    /// of two callers would not fit each other.
    ///
    /// # Errors
    /// Unavailable: this server does not lead any more.
    pub fn lead(&self, term: u64) -> Result<Leadership> {
        if self.role() != (Role::Leader { term }) {
            return Err(no_leader("this server does not lead any more"));
        }
        self.settle_members()?;
        let leadership = Leadership::start(term, self.raft.clone(), self.runtime()?.handle());
        let (mut metrics, watched) = (self.raft.metrics(), leadership.clone());
        self.runtime()?.spawn(async move {
            _ = metrics.wait_for(|metrics| role_of(metrics) != (Role::Leader { term })).await;
            watched.end();
        });
        Ok(leadership)
    }

    /// Index of the last entry that this voter knows to be committed.
    #[must_use]
    pub fn committed(&self) -> u64 {
        self.position.committed().borrow().map_or(0, |last| last.index)
    }

    /// Returns the index of the last committed entry once it is behind `index`, or after `time_max`.
    pub fn wait_for_more(&self, index: u64, time_max: Duration) -> u64 {
        let mut committed = self.position.committed();
        let more = committed.wait_for(|last| last.is_some_and(|last| last.index > index));
        _ = within(time_max, more).map(drop);
        self.committed()
    }

    /// The committed entries behind index `after` (0 at first), in order, about `bytes_max` bytes of them at
    /// most and at least one if there is one. If some of them were purged, the result begins behind those.
    ///
    /// # Errors
    /// Corrupt, Io: they cannot be read.
    pub fn read(&self, after: u64, bytes_max: usize) -> Result<Vec<CommittedEntry>> {
        let end = self.committed().saturating_add(1);
        let entries = self.store.entries(after.saturating_add(1), end, bytes_max.max(1))?;
        let committed = |entry: &_| {
            batch::records(entry).map(|records| CommittedEntry { index: entry.log_id.index, records })
        };
        entries.iter().map(committed).collect()
    }

    /// Index of the last entry that is not in the log any more: entries up to it cannot be read. `None`: all
    /// entries are in the log.
    #[must_use]
    pub fn purged(&self) -> Option<u64> {
        self.store.purged().map(|last| last.index)
    }

    /// States that what the entries up to `index` have led to is durable elsewhere at this server. The log
    /// drops the entries up to `purged`, which is before it, and the files that have no others. A voter that
    /// lacks them will be told so, and [`Replica::purged`] is then ahead of what it has read.
    ///
    /// # Errors
    /// Input: entry `index` is not committed, or not in the log. Unavailable: this voter has ended. Io.
    pub fn compact(&self, index: u64, purged: Option<u64>) -> Result<()> {
        let last = self.store.log_id(index).filter(|_| index <= self.committed());
        let missing =
            || Error::new(ErrorKind::Input, format!("entry {index} of the log is not committed here"));
        if self.position.prepare_snapshot(last.ok_or_else(missing)?)? {
            self.block_on(self.raft.trigger().snapshot())?.map_err(|error| ended(&error))?;
            let mut metrics = self.raft.metrics();
            let taken = metrics.wait_for(|metrics| {
                metrics.snapshot.is_some_and(|last| last.index >= index) || metrics.running_state.is_err()
            });
            let late =
                |_| Error::new(ErrorKind::Unavailable, "the replicated log takes no note of a snapshot");
            self.block_on(async { timeout(COMPACT_MAX, taken).await.map(drop) })?.map_err(late)?;
        }
        match purged.filter(|purged| *purged <= index) {
            Some(purged) => {
                self.block_on(self.raft.trigger().purge_log(purged))?.map_err(|error| ended(&error))
            }
            None => Ok(()),
        }
    }

    /// An index that everything has that was committed before the call: a version of the graph with it is as
    /// new as the newest that any client has seen. At the leader: confirms the leadership with a majority.
    /// Elsewhere: asks the leader.
    ///
    /// # Errors
    /// Unavailable: no leader, or no majority, answers in time.
    pub fn read_index(&self, time_max: Duration) -> Result<u64> {
        let end = Instant::now() + time_max;
        loop {
            let role = self.role();
            let left = end.saturating_duration_since(Instant::now());
            let index = match role {
                Role::Leader { .. } => self.confirmed_index(),
                Role::Follower { leader: Some(leader) } => self.index_of(leader, left),
                Role::Follower { leader: None } | Role::Ended => Err(no_leader("the voters have no leader")),
            };
            match index {
                Err(error)
                    if error.kind() == ErrorKind::Unavailable
                        && role != Role::Ended
                        && Instant::now() < end =>
                {
                    self.wait_for_role(role, RETRY_INTERVAL.min(left));
                }
                Err(error) if error.kind() == ErrorKind::Deadline => {
                    return Err(no_leader(
                        "no majority of the voters says in time what the newest commit is",
                    ));
                }
                index => return index,
            }
        }
    }

    /// The index that the leader confirms.
    fn index_of(&self, leader: u64, time_max: Duration) -> Result<u64> {
        let answer = self.transport.call(leader, &[READ_INDEX], time_max)?;
        let damaged = |_| Error::corrupt("an answer of the leader", "it is damaged");
        Ok(u64::from_le_bytes(answer.try_into().map_err(damaged)?))
    }

    /// The index that is confirmed by a majority, at the leader.
    fn confirmed_index(&self) -> Result<u64> {
        let (request, answer) = oneshot::channel();
        let closed = |_: &dyn fmt::Display| ended(&"it is being closed");
        self.reads.send(request).map_err(|error| closed(&error))?;
        self.block_on(answer)?.map_err(|error| closed(&error))?
    }

    /// The state of this voter.
    #[must_use]
    pub fn status(&self) -> ReplicaStatus {
        let metrics = self.raft.metrics().borrow().clone();
        let replication = metrics.replication.as_ref();
        ReplicaStatus {
            role: role_of(&metrics),
            term: metrics.current_term,
            last: metrics.last_log_index.unwrap_or(0),
            committed: self.committed(),
            log_bytes: self.store.bytes(),
            confirmed_before: metrics.millis_since_quorum_ack.map(Duration::from_millis),
            voters: replication
                .map(|all| all.iter().map(|(server, id)| (*server, id.map(|id| id.index))).collect())
                .unwrap_or_default(),
            failure: metrics.running_state.as_ref().err().map(ToString::to_string),
        }
    }

    /// Gives the leadership of `term` up: says nothing to the others until they elect a leader, which may be
    /// this server in a later term. Waits for that, for [`STEP_DOWN_MAX`] at most.
    pub fn step_down(&self, term: u64) {
        // openraft 0.9 has no other way, and does not elect a leader anew.
        let raft = self.raft.runtime_config();
        raft.heartbeat(false);
        raft.elect(false);
        self.wait_for_role(Role::Leader { term }, STEP_DOWN_MAX);
        raft.heartbeat(true);
        raft.elect(true);
    }

    /// Bytes of the log.
    #[must_use]
    pub fn log_bytes(&self) -> u64 {
        self.store.bytes()
    }

    /// Size and syncs of the log.
    #[must_use]
    pub fn log_status(&self) -> LogStatus {
        self.store.status()
    }

    /// Number of this server.
    #[must_use]
    pub fn server(&self) -> u64 {
        self.server
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            _ = runtime.block_on(self.raft.shutdown());
            // The lock of the log is free once all tasks have ended. Calls to other servers may take longer.
            runtime.shutdown_timeout(SHUTDOWN_MAX);
        }
    }
}

impl fmt::Debug for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replica").field("server", &self.server).field("status", &self.status()).finish()
    }
}
