//! Changes with voters: several servers have the log, and the one that leads takes changes.
//!
//! # Shape
//! A voter has a [`Replica`] in a directory of its own. One thread applies committed entries to the follower.
//! When the server is elected and has applied all entries, the thread makes transactions that go on from
//! there ([`Follower::lead`]), and the database uses those. When the leadership ends, it takes all entries
//! again, from the first, into a new version over the base, and the database then uses that one. Until then
//! it keeps showing what was committed while it led.
//! # Why from the first
//! The transactions of a leader give numbers to terms, and change versions, before their records are
//! committed. The next leader gives the same numbers to other terms. Nothing of the memory of a leader is
//! used after it.
//! # Messages
//! A message to another voter is [`VOTERS`] and the bytes of `vervet-raft`. Servers that are no voters ask
//! the voters for committed entries, as followers ask a writer (`following.rs`); the position of a record is
//! the index of its entry, which is the same at all voters, so they may ask any of them.

use crate::changes_status::{ChangesStatus, VotersStatus};
use crate::following::{ANSWER_BYTES, Stop, stop, write_answer};
use crate::map::{ClusterMap, ServerEntry};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vervet::{Database, Environment, Follower, LogRecord, SharedLog};
use vervet_model::{Error, ErrorKind, Result, ThreadLimits, lock};
use vervet_peer::Peer;
use vervet_raft::{CommittedEntry, Identity, Leadership, Replica, ReplicaOptions, Role, Timing, Transport};

/// Kind of the messages between voters: none of those of partitions, tasks and followers.
pub(crate) const VOTERS: u8 = 97;

/// Begins the name of the directory with the log of a voter; the number of the build of its data follows.
const LOG: &str = "voter-";

/// Ends the name of the file that says that a voter has never had a log.
const NEW: &str = ".new";

/// Longest wait of the thread for something new.
const WAIT: Duration = Duration::from_millis(100);

/// Time between two attempts to read the partitions of others.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// The directory of the log of a voter, below that of its server.
pub(crate) fn log_directory(directory: &Path, build: u64) -> PathBuf {
    directory.join(format!("{LOG}{build:016x}"))
}

/// The file that says that the server has never had a log for these data.
pub(crate) fn new_file(directory: &Path, build: u64) -> PathBuf {
    directory.join(format!("{LOG}{build:016x}{NEW}"))
}

/// States that the server has never had a log for these data.
pub(crate) fn mark_new(directory: &Path, build: u64) -> Result<()> {
    let path = new_file(directory, build);
    std::fs::write(&path, "").map_err(|error| Error::io(format_args!("write {}", path.display()), &error))
}

/// The numbers of servers, by name.
fn number_of(map: &ClusterMap, name: &str) -> u64 {
    map.servers.iter().filter(|entry| entry.name.as_str() < name).count() as u64 + 1
}

/// Sends messages to the other voters.
struct PeerTransport(BTreeMap<u64, Peer>);

impl Transport for PeerTransport {
    fn call(&self, server: u64, request: &[u8], time_max: Duration) -> Result<Vec<u8>> {
        let unknown = || Error::internal(format!("server {server} is no voter"));
        let peer = self.0.get(&server).ok_or_else(unknown)?;
        let deadline = Instant::now().checked_add(time_max).map(|end| (end, time_max));
        let _limits = ThreadLimits { deadline, ..ThreadLimits::default() }.enter();
        peer.send(&[&[VOTERS], request].concat())?.receive()
    }
}

/// The log of a leader, for its transactions.
#[derive(Debug)]
struct LeaderLog {
    leadership: Leadership,
    /// Transactions may outlive the server.
    replica: Weak<Replica>,
}

impl SharedLog for LeaderLog {
    fn append(&self, kind: u8, payloads: &[&[u8]], publish: Option<Box<dyn FnOnce() + Send>>) -> Result<u64> {
        self.leadership.append(kind, payloads, publish)
    }

    fn wait(&self, position: u64) -> Result<()> {
        self.leadership.wait(position)
    }

    fn last(&self) -> u64 {
        self.leadership.last()
    }

    fn check(&self) -> Result<()> {
        self.leadership.check()
    }

    fn bytes(&self) -> u64 {
        self.replica.upgrade().map_or(0, |replica| replica.log_bytes())
    }
}

fn records_of(entries: Vec<CommittedEntry>) -> Vec<LogRecord> {
    let records = entries.into_iter().flat_map(|CommittedEntry { index, records }| {
        let record = move |record: vervet_raft::Record| LogRecord {
            lsn: index,
            kind: record.kind,
            payload: record.payload.into(),
        };
        records.into_iter().map(record)
    });
    records.collect()
}

/// Answers a request for records, at a voter. `log`: number of the log.
pub(crate) fn answer(
    replica: &Replica,
    log: u64,
    after: u64,
    time_max: Duration,
    out: &mut Vec<u8>,
) -> Result<()> {
    let end = Instant::now() + time_max;
    let mut at = after;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        replica.wait_for_more(at, left.min(WAIT))?;
        let entries = replica.read(at, ANSWER_BYTES)?;
        at = entries.last().map_or(at, |last| last.index);
        let records = records_of(entries);
        if !records.is_empty() || left.is_zero() {
            write_answer([log, 0], replica.committed(), &records, out);
            return Ok(());
        }
        ThreadLimits::check()?;
    }
}

/// A server that votes. Dropping it ends its thread.
pub(crate) struct Voting {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

struct State {
    replica: Arc<Replica>,
    follower: Follower,
    database: Database,
    /// All servers, by number.
    servers: BTreeMap<u64, ServerEntry>,
    progress: Mutex<Progress>,
    /// `progress` has changed.
    moved: Condvar,
    stop: Arc<AtomicBool>,
    is_stopped: Mutex<bool>,
    stopped: Condvar,
}

#[derive(Default)]
struct Progress {
    /// Index of the last entry that was applied.
    after: u64,
    /// Index of an entry up to which readers see all.
    shown: u64,
    /// The database uses transactions of this server as the leader.
    leads: bool,
    failure: Option<String>,
    has_ended: bool,
    is_complete: bool,
}

/// What the thread of a voter remembers.
#[derive(Default)]
struct Course {
    /// The last term that this server has led.
    led: Option<u64>,
    /// Index of the last entry that readers may have seen while this server led: from it on the follower has
    /// as much.
    whole_from: u64,
    /// Index that a majority has confirmed since the start: up to it are all changes that were acknowledged
    /// before. The log of this server may know a smaller one to be committed.
    complete_from: Option<u64>,
    /// The database shows the follower.
    is_shown: bool,
    /// The role that refusals tell.
    role: Option<Role>,
}

/// Opens the log of a voter, and takes part in elections from then on. `peer`: a connection to another
/// server.
pub(crate) fn open(
    environment: &Environment,
    directory: &Path,
    build: u64,
    map: &ClusterMap,
    peer: &dyn Fn(&ServerEntry) -> Peer,
) -> Result<Replica> {
    let new = new_file(directory, build);
    let others =
        map.servers.iter().filter(|entry| entry.name != map.server && map.voters.contains(&entry.name));
    let peers = others.map(|entry| (number_of(map, &entry.name), peer(entry))).collect();
    let options = ReplicaOptions {
        environment: environment.clone(),
        directory: log_directory(directory, build),
        identity: Identity { cluster: map.number(build), server: number_of(map, &map.server) },
        voters: map.voters.iter().map(|voter| number_of(map, voter)).collect(),
        may_begin: new.exists(),
        timing: Timing::default(),
    };
    let replica = Replica::open(&options, Arc::new(PeerTransport(peers)))?;
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io(format_args!("remove {}", new.display()), &error))
        }
        _ => Ok(replica),
    }
}

/// Why a server that does not lead takes no changes.
pub(crate) fn refusal(leader: Option<&ServerEntry>) -> Error {
    let Some(entry) = leader else {
        return Error::new(
            ErrorKind::Unavailable,
            "the voters of this graph have no leader; nothing was changed",
        )
        .with_hint("try again in a second; a majority of the voters must be up");
    };
    let place = entry.http.as_deref().map(|http| format!(" ({http})")).unwrap_or_default();
    let what = format!("changes of this graph go to server {}{place}, which leads", entry.name);
    Error::new(ErrorKind::Unsupported, what).with_hint("send them there; this server shows them soon after")
}

impl Voting {
    pub(crate) fn start(
        (database, follower): (Database, Follower),
        replica: Arc<Replica>,
        map: &ClusterMap,
    ) -> Result<Self> {
        let numbered = |entry: &ServerEntry| (number_of(map, &entry.name), entry.clone());
        let state = Arc::new(State {
            replica,
            follower,
            database,
            servers: map.servers.iter().map(numbered).collect(),
            progress: Mutex::default(),
            moved: Condvar::new(),
            stop: Arc::default(),
            is_stopped: Mutex::default(),
            stopped: Condvar::new(),
        });
        let voting = Arc::clone(&state);
        let thread = std::thread::Builder::new().name("voter".to_owned()).spawn(move || voting.run());
        let thread = thread.map_err(|error| Error::io("start a thread that follows the voters", &error))?;
        Ok(Self { state, thread: Some(thread) })
    }

    /// Why this server takes no changes at present; `None`: it leads.
    pub(crate) fn refusal(&self) -> Option<Error> {
        if self.leads() { None } else { Some(refusal(self.state.leader())) }
    }

    /// Whether this server takes changes.
    pub(crate) fn leads(&self) -> bool {
        lock(&self.state.progress).leads
    }

    /// Waits until this server shows everything that was committed before the call.
    pub(crate) fn catch_up(&self, time_max: Duration) -> Result<()> {
        let end = Instant::now() + time_max;
        let index = self.state.replica.read_index(time_max)?;
        let progress = lock(&self.state.progress);
        let left = end.saturating_duration_since(Instant::now());
        let is_behind = |progress: &mut Progress| !progress.leads && progress.shown < index;
        let waited = self.state.moved.wait_timeout_while(progress, left, is_behind);
        let (progress, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            let what = format!("this server shows entry {} of the log, and not yet {index}", progress.shown);
            return Err(Error::new(ErrorKind::Unavailable, what));
        }
        Ok(())
    }

    pub(crate) fn status(&self) -> ChangesStatus {
        let state = &*self.state;
        let status = state.replica.status();
        let progress = lock(&state.progress);
        let leader = match (progress.leads, state.leader()) {
            (true, _) => state.servers.get(&state.replica.server()),
            (false, leader) => leader,
        };
        let name = |number: &u64| {
            state.servers.get(number).map_or_else(|| number.to_string(), |one| one.name.clone())
        };
        let matched = status.voters.iter().map(|(number, index)| (name(number), *index)).collect();
        ChangesStatus {
            writer: leader.map(|entry| entry.name.clone()).unwrap_or_default(),
            timestamp: state.database.snapshot().timestamp(),
            behind_bytes: 0,
            is_complete: progress.is_complete,
            failure: progress.failure.clone(),
            has_ended: progress.has_ended,
            voters: Some(VotersStatus {
                names: state.replica.voters().iter().map(name).collect(),
                leader: leader.map(|entry| entry.name.clone()),
                term: status.term,
                committed: status.committed,
                last: status.last,
                matched,
            }),
        }
    }
}

impl Drop for Voting {
    fn drop(&mut self) {
        // Relaxed: the flag carries no data.
        self.state.stop.store(true, Ordering::Relaxed);
        *lock(&self.state.is_stopped) = true;
        self.state.stopped.notify_all();
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

impl State {
    /// The other server that leads, if it is known.
    fn leader(&self) -> Option<&ServerEntry> {
        match self.replica.role() {
            Role::Follower { leader: Some(leader) } => self.servers.get(&leader),
            _ => None,
        }
    }

    fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn run(&self) {
        let limits = ThreadLimits { cancelled: Some(Arc::clone(&self.stop)), ..ThreadLimits::default() };
        let _limits = limits.enter();
        let mut course = Course::default();
        while !self.is_stopping() {
            let (failure, is_over) = match self.step(&mut course) {
                Ok(()) => (None, false),
                Err(Stop::Retry(error)) => (Some(error.message().to_owned()), false),
                Err(Stop::Over(error)) => {
                    let message = format!("{error}; this server follows no more, and is to be started again");
                    tracing::error!(target: "vervet", "{message}");
                    (Some(message), true)
                }
            };
            let has_failed = failure.is_some();
            {
                let mut progress = lock(&self.progress);
                (progress.failure, progress.has_ended) = (failure, is_over);
            }
            if is_over {
                return;
            }
            if has_failed {
                let is_stopped = lock(&self.is_stopped);
                let wait = self.stopped.wait_timeout_while(is_stopped, RETRY_INTERVAL, |stopped| !*stopped);
                drop(wait.unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    /// Applies the next entries; with all of them, leads if this server is elected.
    fn step(&self, course: &mut Course) -> Result<(), Stop> {
        let after = lock(&self.progress).after;
        self.replica.wait_for_more(after, WAIT).map_err(Stop::Over)?;
        // What cannot be read here will not be readable later.
        let entries = self.replica.read(after, ANSWER_BYTES).map_err(Stop::Over)?;
        let last = entries.last().map_or(after, |last| last.index);
        let records = records_of(entries);
        if !records.is_empty() {
            self.follower.apply(&records).map_err(stop)?;
        }
        lock(&self.progress).after = last;
        let role = self.replica.role();
        match role {
            Role::Leader { .. } if last < self.replica.committed() => Ok(()),
            Role::Leader { term } if course.led == Some(term) => {
                // Its records would not fit those of before.
                self.replica.stand_for_election().map_err(Stop::Retry)
            }
            Role::Leader { term } => {
                self.lead(term, last)?;
                *course = Course {
                    led: Some(term),
                    whole_from: self.replica.committed(),
                    complete_from: Some(last),
                    ..Course::default()
                };
                Ok(())
            }
            Role::Follower { leader } => {
                if course.role != Some(role) {
                    course.role = Some(role);
                    self.follower.refuse(refusal(self.leader()));
                }
                if course.complete_from.is_none() && leader.is_some() {
                    course.complete_from = self.replica.read_index(WAIT).ok();
                }
                if last >= course.whole_from {
                    self.follower.show().map_err(stop)?;
                    if !std::mem::replace(&mut course.is_shown, true) {
                        self.database.switch_to(Arc::clone(self.follower.transactions()));
                    }
                    let mut progress = lock(&self.progress);
                    progress.shown = progress.shown.max(last);
                    progress.is_complete |= course.complete_from.is_some_and(|index| last >= index);
                    self.moved.notify_all();
                }
                Ok(())
            }
            _ => Err(Stop::Over(Error::new(ErrorKind::Io, self.failure()))),
        }
    }

    fn failure(&self) -> String {
        self.replica.status().failure.unwrap_or_else(|| "the log of this server has ended".to_owned())
    }

    /// Leads until another server does. The caller has applied all entries that were committed when it was
    /// elected, and this server alone appends to the log in this term.
    fn lead(&self, term: u64, after: u64) -> Result<(), Stop> {
        if self.replica.committed() != after {
            return Err(Stop::Retry(Error::internal("entries of this term that this server has not made")));
        }
        let leadership = self.replica.lead(term).map_err(Stop::Retry)?;
        let log = LeaderLog { leadership: leadership.clone(), replica: Arc::downgrade(&self.replica) };
        let transactions = self.follower.lead(Arc::new(log)).map_err(stop)?;
        self.database.switch_to(transactions);
        {
            let mut progress = lock(&self.progress);
            // The follower has begun again.
            progress.after = 0;
            (progress.leads, progress.is_complete, progress.failure) = (true, true, None);
            self.moved.notify_all();
        }
        tracing::info!(target: "vervet", "this server takes the changes of the graph, in term {term}");
        while !self.is_stopping() && leadership.check().is_ok() {
            _ = self.replica.wait_for_role(Role::Leader { term }, WAIT);
        }
        leadership.end();
        {
            let mut progress = lock(&self.progress);
            (progress.leads, progress.shown) = (false, 0);
        }
        tracing::info!(target: "vervet", "this server does not take the changes of the graph any more");
        Ok(())
    }
}

impl std::fmt::Debug for Voting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Voting").field("status", &self.status()).finish()
    }
}
