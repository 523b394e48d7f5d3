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
//! # Merging
//! Where every server has the whole graph, changes are merged into its data from time to time (`merging.rs`):
//! the thread, or the transactions of a leader, go on over them, and the log drops the entries before the
//! data before. A voter that was away for longer copies data of another server (`fetch.rs`).
//! # Messages
//! A message to another voter is [`VOTERS`], the number of that voter and the bytes of `vervet-raft`. Servers
//! that are no voters ask the voters for committed entries, as followers ask a writer (`following.rs`); the
//! position of a record is the index of its entry, which is the same at all voters, so they may ask any of
//! them.

use crate::beginning::{Beginning, log_directory, new_file};
use crate::changes_status::{ChangesStatus, VotersStatus};
use crate::following::{ANSWER_BYTES, PURGED, Stop, stop, write_answer};
use crate::map::ServerEntry;
use crate::members::{self, Members};
use crate::merge::{Merge, Merged};
use crate::merging::Data;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vervet::{
    Applied, Database, Environment, Follower, LogRecord, RecordSource, SharedLog, Start, Transactions,
};
use vervet_log::LogStatus;
use vervet_model::{Error, ErrorKind, Result, ThreadLimits, lock};
use vervet_raft::{
    CommittedEntry, Identity, Leadership, Member, Replica, ReplicaOptions, Role, Timing, Transport,
    number_at, place,
};

/// Kind of the messages between voters: none of those of partitions, tasks and followers.
pub(crate) const VOTERS: u8 = 97;

/// A leader that no majority has confirmed for this time says so.
const UNCONFIRMED_MAX: Duration = Duration::from_secs(3);

/// How long a server keeps a leadership in which all it does fails; twice as long each time, …
const LEAD_TIME: Duration = Duration::from_secs(3);
/// … so many times.
const LEAD_DOUBLINGS: u32 = 4;

/// Time between two requests to be admitted.
const JOIN_INTERVAL: Duration = Duration::from_secs(1);

/// Longest wait of the thread for something new.
const WAIT: Duration = Duration::from_millis(100);

/// Time between two attempts to read the partitions of others.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// Sends messages to the other voters.
struct PeerTransport(Arc<Members>);

impl Transport for PeerTransport {
    fn introduce(&self, server: u64, about: &[u8]) {
        self.0.introduce(server, about);
    }

    fn call(&self, server: u64, request: &[u8], time_max: Duration) -> Result<Vec<u8>> {
        let unknown = || Error::new(ErrorKind::Unavailable, format!("server {server} is not known here"));
        let other = self.0.other_at(place(server)).ok_or_else(unknown)?;
        let deadline = Instant::now().checked_add(time_max).map(|end| (end, time_max));
        let _limits = ThreadLimits { deadline, ..ThreadLimits::default() }.enter();
        other.log.send(&[&[VOTERS][..], &server.to_le_bytes(), request].concat())?.receive()
    }
}

/// Answers a message of another voter, at the one that it is for: one that has begun anew at the same place
/// does not vote, and has no entries, for the one that it was.
pub(crate) fn answer_voter(replica: &Replica, request: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let damaged = || Error::corrupt("a message of another voter", "it ends early");
    let (target, message) = request[1..].split_first_chunk::<8>().ok_or_else(damaged)?;
    let target = u64::from_le_bytes(*target);
    if target != replica.server() && !Replica::is_for_any(message) {
        return Err(Error::new(ErrorKind::Unavailable, "the voter that this is for is no more"));
    }
    replica.answer(message, out)
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

    fn wait(&self, position: u64, since: Instant) -> Result<()> {
        self.leadership.wait_since(position, since)
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

pub(crate) fn records_of(entries: Vec<CommittedEntry>) -> Vec<LogRecord> {
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

/// Some records of the committed entries behind one, or of the first ones behind it that the log has; none if
/// there are none at present.
pub(crate) fn records_behind(replica: &Replica, mut after: u64) -> Result<Vec<LogRecord>> {
    loop {
        let entries = replica.read(after, ANSWER_BYTES)?;
        let Some(last) = entries.last().map(|last| last.index) else { return Ok(Vec::new()) };
        let records = records_of(entries);
        if !records.is_empty() {
            return Ok(records);
        }
        after = last;
    }
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
        replica.wait_for_more(at, left.min(WAIT));
        let entries = replica.read(at, ANSWER_BYTES)?;
        if let Some(purged) = replica.purged().filter(|purged| *purged > at) {
            write_answer([log, PURGED], purged, &[], out);
            return Ok(());
        }
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
    /// The log, for change feeds.
    feed: Arc<dyn RecordSource>,
    follower: Follower,
    database: Database,
    members: Arc<Members>,
    /// Where its log is, and of which build.
    place: (PathBuf, u64),
    /// The data, if changes are merged into them.
    data: Option<Arc<Data>>,
    /// Data from which to go on.
    merged: Mutex<Option<Merged>>,
    /// Bytes of the log when changes were merged last.
    log_bytes_before: AtomicU64,
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
    /// This server leads, and the database uses these transactions.
    leading: Option<(Leadership, Arc<Transactions>)>,
    failure: Option<String>,
    has_ended: bool,
    has_left: bool,
    is_complete: bool,
}

/// What the thread of a voter remembers.
#[derive(Default)]
struct Course {
    /// The last term that this server has led.
    led: Option<u64>,
    /// The term in which this server was elected and does not lead, since all it does fails, and since when.
    failing: Option<(u64, Instant)>,
    /// How often it has given the leadership up for that.
    given_way: u32,
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
    /// When this server asked to be admitted last.
    asked: Option<Instant>,
    /// The servers that have the log, as of the last look.
    members: Vec<Member>,
    /// What the file of the beginning says; `None`: it was not read yet.
    beginning: Option<Beginning>,
}

/// Opens the log of a voter, and takes part in elections from then on.
pub(crate) fn open(
    environment: &Environment,
    directory: &Path,
    build: u64,
    members: &Arc<Members>,
) -> Result<Replica> {
    let new = new_file(directory, build);
    let map = members.map();
    let own = map.own()?;
    let number_of = |entry: &ServerEntry| map.number_of(entry);
    let options = ReplicaOptions {
        environment: environment.clone(),
        directory: log_directory(directory, build),
        identity: Identity {
            cluster: map.number(build),
            server: number_at(number_of(own), Beginning::read(directory, build)?.number),
        },
        about: members::about(&map, own).into(),
        rules: members::RULES,
        voters: map.servers.iter().filter(|entry| map.voters.contains(&entry.name)).map(number_of).collect(),
        may_begin: new.exists(),
        timing: Timing::default(),
    };
    let replica = Replica::open(&options, Arc::new(PeerTransport(Arc::clone(members))))?;
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

/// Why a server that leads commits no transaction that it began before.
fn begun_before() -> Error {
    let what = "this transaction began before this server led the voters of the graph; nothing was changed";
    Error::new(ErrorKind::Conflict, what).with_hint("roll back, and run the transaction again from its start")
}

/// Why a leader does not go on from earlier data as one.
fn given_up() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "the later data were given up, since a partition of them is at no server",
    )
}

/// Why a server that has left takes no changes, and shows no new ones.
fn removed() -> Error {
    let what = "this server is no server of the cluster any more: it was removed";
    Error::new(ErrorKind::Unsupported, what)
        .with_hint("end it; to have it in the cluster again, invite it: vervet cluster invite")
}

impl Voting {
    pub(crate) fn start(
        (database, follower): (Database, Follower),
        replica: Arc<Replica>,
        (members, place): (Arc<Members>, (PathBuf, u64)),
        data: Option<Arc<Data>>,
        feed: Arc<dyn RecordSource>,
    ) -> Result<Self> {
        let progress = Progress { after: follower.start().position, ..Progress::default() };
        follower.transactions().feed_from(Arc::clone(&feed));
        let state = Arc::new(State {
            replica,
            feed,
            follower,
            database,
            members,
            place,
            data,
            merged: Mutex::default(),
            log_bytes_before: AtomicU64::new(0),
            progress: Mutex::new(progress),
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

    pub(crate) fn as_merge(&self) -> Arc<dyn Merge> {
        Arc::clone(&self.state) as _
    }

    /// Why this server takes no changes at present; `None`: it leads.
    pub(crate) fn refusal(&self) -> Option<Error> {
        if self.leads() {
            None
        } else if self.has_left() {
            Some(removed())
        } else {
            Some(refusal(self.state.leader().as_ref()))
        }
    }

    /// Whether this server was removed, and knows it.
    pub(crate) fn has_left(&self) -> bool {
        lock(&self.state.progress).has_left
    }

    /// Whether this server takes changes.
    pub(crate) fn leads(&self) -> bool {
        lock(&self.state.progress).leading.is_some()
    }

    /// Size and syncs of its log.
    pub(crate) fn log_status(&self) -> LogStatus {
        self.state.replica.log_status()
    }

    /// Name of the other server that leads, if it is known.
    pub(crate) fn leader(&self) -> Option<String> {
        self.state.leader().map(|entry| entry.name)
    }

    /// Waits until this server shows everything that was committed before the call.
    pub(crate) fn catch_up(&self, time_max: Duration) -> Result<()> {
        let end = Instant::now() + time_max;
        let index = self.state.replica.read_index(time_max)?;
        let leading = lock(&self.state.progress).leading.as_ref().map(|(leading, _)| leading.clone());
        if let Some(leading) = leading {
            // Others may show an entry that is committed, and not published here yet. When the leadership
            // ends meanwhile, the wait below is for what the next leader has.
            _ = leading.wait_for_proposed(end.saturating_duration_since(Instant::now()));
        }
        let progress = lock(&self.state.progress);
        let left = end.saturating_duration_since(Instant::now());
        let is_behind = |progress: &mut Progress| match &progress.leading {
            _ if progress.has_ended => false,
            // The index may be that of the next leader, of which the thread has not taken note yet.
            Some((leading, _)) => self.state.replica.role() != (Role::Leader { term: leading.term() }),
            None => progress.shown < index,
        };
        let waited = self.state.moved.wait_timeout_while(progress, left, is_behind);
        let (progress, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if progress.has_ended {
            let what = progress.failure.clone().unwrap_or_else(|| "this server follows no more".to_owned());
            return Err(Error::new(ErrorKind::Unavailable, what));
        }
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
        let leader = match (&progress.leading, state.leader()) {
            (Some(_), _) => state.members.map().own().ok().cloned(),
            (None, leader) => leader,
        };
        let name = |number: &u64| {
            state.members.entry_at(place(*number)).map_or_else(|| number.to_string(), |one| one.name)
        };
        let unconfirmed =
            status.confirmed_before.filter(|time| progress.leading.is_some() && *time > UNCONFIRMED_MAX);
        let silent = unconfirmed.map(|time| {
            format!("no majority of the voters has answered for {} s, so no change is made", time.as_secs())
        });
        let matched = status.voters.iter().map(|(number, index)| (name(number), *index)).collect();
        ChangesStatus {
            writer: leader.as_ref().map(|entry| entry.name.clone()).unwrap_or_default(),
            timestamp: state.database.snapshot().timestamp(),
            behind_bytes: 0,
            is_complete: progress.is_complete && !state.data.as_ref().is_some_and(|data| data.is_behind()),
            failure: progress.failure.clone().or(silent),
            has_left: progress.has_left,
            has_ended: progress.has_ended,
            merged: state.data.as_ref().map(|data| data.position()),
            voters: Some(VotersStatus {
                names: state.replica.voters().iter().map(name).collect(),
                leader: leader.map(|entry| entry.name),
                term: status.term,
                committed: status.committed,
                last: status.last,
                purged: state.replica.purged(),
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
    fn leader(&self) -> Option<ServerEntry> {
        match self.replica.role() {
            Role::Follower { leader: Some(leader) } => self.members.entry_at(place(leader)),
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
                    let message = match error.kind() {
                        ErrorKind::Unsupported => error.to_string(),
                        _ => format!("{error}; this server follows no more, and is to be started again"),
                    };
                    tracing::error!(target: "vervet", "{message}");
                    (Some(message), true)
                }
            };
            let has_failed = failure.is_some();
            self.give_way(&mut course, has_failed);
            {
                let mut progress = lock(&self.progress);
                (progress.failure, progress.has_ended) = (failure, is_over);
                if is_over {
                    self.moved.notify_all();
                }
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

    /// Gives the leadership up where this server was elected, and cannot lead, each time after a longer
    /// while: the others may not be able to either.
    fn give_way(&self, course: &mut Course, has_failed: bool) {
        let term = match self.replica.role() {
            Role::Leader { term } if has_failed && self.replica.voters().len() > 1 => term,
            _ => return course.failing = None,
        };
        let failing = course.failing.filter(|(failing, _)| *failing == term);
        let (_, since) = *course.failing.insert(failing.unwrap_or_else(|| (term, Instant::now())));
        let patience = LEAD_TIME * (1 << course.given_way.min(LEAD_DOUBLINGS));
        if since.elapsed() > patience && !self.is_stopping() {
            tracing::warn!(target: "vervet", "this server was elected, and cannot lead: another one may");
            self.replica.step_down(term);
            (course.failing, course.given_way) = (None, course.given_way + 1);
        }
    }

    /// Goes on from data with some of the entries. Readers keep what they have until as much is there again.
    fn go_over(&self, course: &mut Course, start: Start) {
        let mut progress = lock(&self.progress);
        course.whole_from = course.whole_from.max(progress.shown);
        progress.after = start.position;
        self.follower.restart_over(start);
    }

    /// Takes note of servers that have joined or left.
    fn note_members(&self, course: &mut Course) -> Result<(), Stop> {
        let (directory, build) = &self.place;
        let beginning = match course.beginning {
            Some(beginning) => beginning,
            None => *course.beginning.insert(Beginning::read(directory, *build).map_err(Stop::Over)?),
        };
        if !beginning.is_admitted && self.replica.is_admitted() {
            let admitted = Beginning { is_admitted: true, ..beginning };
            admitted.write(directory, *build).map_err(Stop::Retry)?;
            course.beginning = Some(admitted);
        }
        if !course.beginning.is_some_and(|beginning| beginning.is_admitted) {
            return Ok(());
        }
        if course.asked.is_none_or(|asked| asked.elapsed() >= JOIN_INTERVAL) {
            course.asked = Some(Instant::now());
            self.replica.ask_about_removal(JOIN_INTERVAL);
        }
        let index = self.replica.members_index();
        let members = self.replica.members();
        let own = self.replica.server();
        let has_left = !members.is_empty() && !members.iter().any(|one| one.server == own && one.votes);
        if has_left || self.replica.is_dismissed() {
            lock(&self.progress).has_left = true;
            self.follower.refuse(removed());
            return Err(Stop::Over(removed()));
        }
        if members != course.members && !members.is_empty() {
            if self.members.update(&members).map_err(Stop::Retry)? {
                tracing::info!(target: "vervet", "the voters are {}", self.members.map().voters.join(", "));
            }
            course.members = members;
        }
        self.members.note_index(index);
        Ok(())
    }

    /// Asks to be admitted, if this server has begun anew and never was a voter.
    fn join(&self, course: &mut Course) -> Result<(), Stop> {
        let is_admitted = course.beginning.is_some_and(|beginning| beginning.is_admitted);
        if is_admitted || course.asked.is_some_and(|asked| asked.elapsed() < JOIN_INTERVAL) {
            return Ok(());
        }
        course.asked = Some(Instant::now());
        self.replica.join(JOIN_INTERVAL).map_err(Stop::Retry)
    }

    /// Applies the next entries; with all of them, leads if this server is elected.
    fn step(&self, course: &mut Course) -> Result<(), Stop> {
        let merged = lock(&self.merged).clone();
        if let Some(merged) = merged {
            self.go_over(course, merged.start);
            *lock(&self.merged) = None;
        }
        self.note_members(course)?;
        self.join(course)?;
        let after = lock(&self.progress).after;
        self.replica.wait_for_more(after, WAIT);
        // What cannot be read here will not be readable later.
        let entries = self.replica.read(after, ANSWER_BYTES).map_err(Stop::Over)?;
        if let Some(purged) = self.replica.purged().filter(|purged| *purged > after) {
            let lost = || Error::corrupt("the replicated log", "it lacks entries that the data do not have");
            let data = self.data.as_ref().ok_or_else(|| Stop::Over(lost()))?;
            let start = data.fetch(purged).map_err(Stop::Retry)?;
            self.go_over(course, start);
            return Ok(());
        }
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
                self.replica.step_down(term);
                Ok(())
            }
            Role::Leader { term } => {
                self.lead(course, term, last)?;
                *course = Course {
                    members: std::mem::take(&mut course.members),
                    beginning: course.beginning,
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
                    self.follower.refuse(refusal(self.leader().as_ref()));
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
                    // An operator who takes one server after another out of the cluster waits for this.
                    let has_vote = course.beginning.is_some_and(|beginning| beginning.is_admitted);
                    let has_all = course.complete_from.is_some_and(|index| last >= index);
                    progress.is_complete |= has_vote && has_all;
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
    fn lead(&self, course: &mut Course, term: u64, after: u64) -> Result<(), Stop> {
        if self.replica.committed() != after {
            return Err(Stop::Retry(Error::internal("entries of this term that this server has not made")));
        }
        let leadership = self.replica.lead(term).map_err(Stop::Retry)?;
        let log = LeaderLog { leadership: leadership.clone(), replica: Arc::downgrade(&self.replica) };
        let transactions = self.follower.lead(Arc::new(log)).map_err(stop)?;
        transactions.feed_from(Arc::clone(&self.feed));
        // Transactions of the follower may be open.
        self.follower.refuse(begun_before());
        self.database.switch_to(Arc::clone(&transactions));
        {
            let mut progress = lock(&self.progress);
            progress.leading = Some((leadership.clone(), Arc::clone(&transactions)));
            (progress.is_complete, progress.failure) = (true, None);
            self.moved.notify_all();
        }
        tracing::info!(target: "vervet", "this server takes the changes of the graph, in term {term}");
        while !self.is_stopping() && leadership.check().is_ok() {
            let role = self.replica.wait_for_role(Role::Leader { term }, WAIT);
            if role != (Role::Leader { term }) {
                break;
            }
            if let Err(Stop::Retry(error)) = self.note_members(course) {
                tracing::warn!(target: "vervet", "the servers that have joined or left are not noted: {error}");
            }
            let merged = lock(&self.merged).clone();
            if let Some(Merged { start, applied }) = merged {
                let is_made = applied.is_some();
                let before = self.follower.start();
                let applied = match applied {
                    Some(applied) => Ok(applied),
                    None if start.position < before.position => Err(given_up()),
                    None => self.applied_over(before, Some(start.position)),
                };
                let moved =
                    applied.and_then(|applied| transactions.move_to(Arc::clone(&start.base), &applied));
                match moved {
                    Ok(()) => self.follower.restart_over(start),
                    Err(error) if error.kind() == ErrorKind::Unavailable && !is_made => {
                        // The data before are not whole any more.
                        tracing::warn!(target: "vervet", "the leader goes on from new data as a follower: {error}");
                        self.follower.restart_over(start);
                        *lock(&self.merged) = None;
                        break;
                    }
                    // The data are there for the next start; the log has what they lack.
                    Err(error) => {
                        tracing::warn!(target: "vervet", "the leader stays on the data before: {error}");
                    }
                }
                *lock(&self.merged) = None;
            }
        }
        leadership.end();
        {
            let mut progress = lock(&self.progress);
            // The follower has begun again.
            progress.after = self.follower.start().position;
            (progress.leading, progress.shown) = (None, 0);
            self.moved.notify_all();
        }
        tracing::info!(target: "vervet", "this server does not take the changes of the graph any more");
        Ok(())
    }
}

impl Merge for State {
    fn changes(&self) -> (u64, u64) {
        let leading = lock(&self.progress).leading.clone();
        let transactions = leading.as_ref().map_or(self.follower.transactions(), |(_, leading)| leading);
        let before = self.log_bytes_before.load(Ordering::Relaxed);
        (transactions.change_count(), self.replica.log_bytes().saturating_sub(before))
    }

    fn applied(&self) -> Result<Applied> {
        if lock(&self.progress).leading.is_none() {
            return Ok(self.follower.applied());
        }
        // The versions of a leader have what is not committed yet.
        self.applied_over(self.follower.start(), None)
    }

    fn applied_over(&self, start: Start, until: Option<u64>) -> Result<Applied> {
        let committed = self.replica.committed();
        let (until, reader) = (until.unwrap_or(committed), self.follower.anew_over(start)?);
        let mut after = reader.start().position;
        if until > committed {
            return Err(Error::internal("data have entries that are not committed"));
        }
        while after < until {
            ThreadLimits::check()?;
            let mut entries = self.replica.read(after, ANSWER_BYTES)?;
            entries.retain(|entry| entry.index <= until);
            let Some(last) = entries.last().map(|last| last.index) else { break };
            if entries.first().is_some_and(|first| first.index != after + 1) {
                return Err(Error::internal("the log lacks entries behind the data of its leader"));
            }
            reader.apply(&records_of(entries))?;
            after = last;
        }
        Ok(reader.applied())
    }

    fn leads(&self) -> bool {
        lock(&self.progress).leading.is_some()
    }

    fn start_number(&self) -> u64 {
        self.follower.start().base.number()
    }

    fn is_pending(&self) -> bool {
        lock(&self.merged).is_some()
    }

    fn purged(&self) -> u64 {
        self.replica.purged().unwrap_or(0)
    }

    fn go_on_from(&self, merged: Merged, before: u64) -> Result<()> {
        let position = merged.start.position;
        *lock(&self.merged) = Some(merged);
        // A voter without the entries up to `cut` needs data with them. Data of servers with different
        // partitions may be given up, for those before.
        let is_together = self.data.as_ref().is_some_and(|data| data.as_together().is_some());
        let cut = if is_together { before } else { position };
        // Not for the same data, of which partitions have moved, nor for earlier ones.
        if position > before && cut > self.purged() && position <= self.replica.committed() {
            self.replica.compact(cut, Some(before).filter(|before| *before > 0))?;
        }
        // A log that lacks entries of the data, which another server has written, is cut with the next data.
        self.log_bytes_before.store(self.replica.log_bytes(), Ordering::Relaxed);
        Ok(())
    }
}

impl std::fmt::Debug for Voting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Voting").field("status", &self.status()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vervet_raft::ReplicaOptions;

    struct NoOthers;

    impl Transport for NoOthers {
        fn introduce(&self, _: u64, _: &[u8]) {}

        fn call(&self, _: u64, _: &[u8], _: Duration) -> Result<Vec<u8>> {
            Err(Error::new(ErrorKind::Unavailable, "there is no other"))
        }
    }

    /// A voter that has begun anew does not vote, and has no entries, for the one that it was: with its vote
    /// a server without the last commits could be elected.
    #[test]
    fn messages_are_for_one_beginning() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = number_at(3, 77);
        let options = ReplicaOptions {
            environment: Environment::real(),
            directory: folder.path().join("log"),
            identity: Identity { cluster: 5, server: own },
            about: Vec::new().into(),
            rules: members::RULES,
            voters: [1, 2, 3].into(),
            may_begin: true,
            timing: Timing::default(),
        };
        let replica = Replica::open(&options, Arc::new(NoOthers)).expect("opens");
        // A vote of a later term without an entry before it: kind, term, server, flag; no last entry.
        let mut vote = vec![1];
        vote.extend(9_u64.to_le_bytes());
        vote.extend(1_u64.to_le_bytes());
        vote.extend([0, 0]);
        let ask = |target: u64| {
            let message = [&[VOTERS][..], &target.to_le_bytes(), &vote].concat();
            answer_voter(&replica, &message, &mut Vec::new())
        };
        for target in [3, number_at(3, 76), number_at(2, 77)] {
            let refused = ask(target).expect_err("of another one");
            assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
        }
        ask(own).expect("it is for this one");
        let short = answer_voter(&replica, &[VOTERS, 1, 2], &mut Vec::new());
        assert_eq!(short.expect_err("short").kind(), ErrorKind::Corrupt);
    }
}
