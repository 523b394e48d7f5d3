//! A client that runs random transactions at servers, and records what it sees and what it knows.
//!
//! # Shape
//! | transaction | how it runs |
//! | --- | --- |
//! | reads and writes | a session of Gremlin: a request for each operation, then a commit |
//! | writes alone | half of them so; else one update of SPARQL at any server, which sends it on |
//! | reads alone | a quarter each: session; strict session, strict query, query at any server |
//!
//! Half of the sessions are at any server, which sends changes on; the others are at the leader, as far as it
//! is known (`server_faults`). What happens before a commit is sent has no effect. A commit without an
//! answer, or with the error that its outcome is unknown, has an unknown outcome. A client takes a request
//! without an answer for lost after [`ANSWER_MAX`].

use super::shared::Run;
use crate::history::client::{KEY_LIFE, draw};
use crate::history::record::{CommitOutcome, Entry, Freshness, Kind, Operation};
use crate::history::storage::Storage;
use crate::voter_processes::{Http, NoAnswer, PATIENCE};
use crate::wire_session::{Effect, RequestFailure, WireSession, follow};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use vervet::gremlin::Value;
use vervet_testkit::Random;

/// See the header of this file.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// As [`ANSWER_MAX`], of strict reads, which wait for a leader.
const STRICT_MAX: Duration = Duration::from_secs(4);

/// Pause of a client that a server has refused for another reason than a conflict.
const REFUSED_INTERVAL: Duration = Duration::from_millis(15);

/// What happened besides the outcomes in the history.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Transactions that ended before they had an effect, or read nothing that could be wrong: no leader, no
    /// connection.
    pub(super) not_run: u64,
    /// Transactions that committed, by the way in which they ran.
    pub(super) ways: BTreeMap<&'static str, u64>,
    /// Messages of errors that a change at a server of a cluster may not have.
    pub(super) unexpected: BTreeMap<String, u64>,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
        self.not_run += other.not_run;
        other.ways.iter().for_each(|(way, count)| *self.ways.entry(way).or_default() += count);
        for (message, count) in &other.unexpected {
            *self.unexpected.entry(message.clone()).or_default() += count;
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} transactions found no leader or no server", self.not_run)?;
        self.ways.iter().try_for_each(|(way, count)| write!(f, ", {count} {way}"))
    }
}

/// How a transaction ended.
enum End {
    Committed(Freshness),
    Refused,
    Unknown,
    /// Nothing was read or written, or only read.
    NotRun,
}

/// How a transaction runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    SessionAtLeader,
    Session,
    StrictSession,
    StrictQuery,
    Query,
    Update,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::SessionAtLeader => "in sessions at the leader",
            Self::Session => "in sessions at any server",
            Self::StrictSession => "in strict sessions",
            Self::StrictQuery => "as strict queries",
            Self::Query => "as queries",
            Self::Update => "as updates",
        }
    }
}

/// See the header of this file.
pub(super) struct Client<'a> {
    run: &'a Run<'a>,
    storage: Storage,
    /// Keys that exist.
    keys: Range<u64>,
    /// The number of transactions begun by all clients of the history.
    begun: &'a AtomicU64,
    number: u64,
    random: Random,
    http: Http,
    strict_http: Http,
    /// Sessions, by the position of their server.
    sessions: BTreeMap<usize, WireSession>,
    pub(super) entries: Vec<Entry>,
    pub(super) counts: Counts,
}

impl<'a> Client<'a> {
    pub(super) fn new(
        run: &'a Run<'a>,
        storage: Storage,
        keys: Range<u64>,
        begun: &'a AtomicU64,
        random: Random,
    ) -> Self {
        Self {
            run,
            storage,
            keys,
            begun,
            number: run.client_number(),
            random,
            http: Http::new(ANSWER_MAX),
            strict_http: Http::new(STRICT_MAX),
            sessions: BTreeMap::new(),
            entries: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Runs until `share` transactions have committed, or all is over.
    ///
    /// # Errors
    /// None commits for a long time; an answer is no element of a history.
    pub(super) fn run(client: &mut Self, share: u64, is_over: &AtomicBool) -> Result<(), String> {
        let (mut committed, mut last) = (0, Instant::now());
        while committed < share && !is_over.load(Ordering::SeqCst) {
            if client.transaction()? {
                (committed, last) = (committed + 1, Instant::now());
            }
            if last.elapsed() > PATIENCE {
                return Err(format!("client {} commits nothing for {} s", client.number, PATIENCE.as_secs()));
            }
        }
        Ok(())
    }

    /// Whether it committed.
    fn transaction(&mut self) -> Result<bool, String> {
        let begun = self.begun.fetch_add(1, Ordering::Relaxed);
        // Many refusals use up the keys; then the last ones stay.
        let last = self.keys.end - crate::history::client::KEYS;
        let oldest = (self.keys.start + begun / KEY_LIFE).min(last);
        let mut operations = draw(self.storage.kind, oldest, &mut self.random, || self.run.element());
        let way = self.way(&operations);
        let began = self.run.now();
        let end = match way {
            Way::SessionAtLeader => {
                let leader = self.run.leader.load(Ordering::SeqCst) % self.run.servers.servers.len();
                self.in_session(leader, &mut operations)?
            }
            Way::Session => {
                let server = self.any_server();
                self.in_session(server, &mut operations)?
            }
            Way::StrictSession => self.in_strict_session(&mut operations)?,
            Way::StrictQuery | Way::Query => self.by_query(&mut operations, way == Way::StrictQuery)?,
            Way::Update => self.by_update(&operations),
        };
        let ended = self.run.now();
        let (outcome, freshness) = match end {
            End::Committed(freshness) => (CommitOutcome::Committed, freshness),
            End::Refused => (CommitOutcome::Refused, Freshness::Strict),
            End::Unknown => (CommitOutcome::Unknown, Freshness::Strict),
            End::NotRun => {
                self.counts.not_run += 1;
                sleep(REFUSED_INTERVAL);
                return Ok(false);
            }
        };
        self.entries.push(Entry { client: self.number, began, ended, outcome, freshness, operations });
        if outcome == CommitOutcome::Unknown {
            self.number = self.run.client_number();
        }
        let committed = outcome == CommitOutcome::Committed;
        *self.counts.ways.entry(way.name()).or_default() += u64::from(committed);
        Ok(committed)
    }

    fn way(&mut self, operations: &[Operation]) -> Way {
        let writes = operations.iter().filter(|one| matches!(one, Operation::Write { .. })).count();
        match (writes, self.random.below(4)) {
            (0, 0) => Way::StrictSession,
            (0, 1) => Way::StrictQuery,
            (0, 2) => Way::Query,
            (all, 0 | 1) if all == operations.len() => Way::Update,
            _ if self.random.one_in(2) => Way::Session,
            _ => Way::SessionAtLeader,
        }
    }

    fn any_server(&mut self) -> usize {
        usize::try_from(self.random.below(self.run.servers.servers.len() as u64)).unwrap_or(0)
    }

    fn address(&self, server: usize) -> &'a str {
        &self.run.servers.servers[server].address
    }

    /// A transaction in the session that this client keeps with a server.
    fn in_session(&mut self, server: usize, operations: &mut [Operation]) -> Result<End, String> {
        let mut session = match self.sessions.remove(&server) {
            Some(session) => session,
            None => match WireSession::connect(self.address(server), false, ANSWER_MAX) {
                Ok(session) => session,
                Err(_) => {
                    self.try_next(server, "");
                    return Ok(End::NotRun);
                }
            },
        };
        let before = self.view(server);
        let (mut has_written, mut is_committing) = (false, false);
        let failure = match self.steps(&mut session, operations, (&mut has_written, &mut is_committing)) {
            Ok(()) => {
                let only_reads = !has_written;
                let freshness =
                    if only_reads { self.session_read(server, before) } else { Freshness::Strict };
                self.sessions.insert(server, session);
                return Ok(End::Committed(freshness));
            }
            Err(StepFailure::Wrong(what)) => return Err(what),
            Err(StepFailure::Request(failure)) => failure,
        };
        let effect = match &failure {
            RequestFailure::Lost(_) => {
                self.try_next(server, "");
                Effect::Unknown
            }
            RequestFailure::Error { kind, message } => {
                let effect = self.effect(kind, message);
                if effect != Effect::Conflict {
                    self.try_next(server, message);
                }
                // A session that does not answer any more is closed.
                if session.roll_back().is_ok() {
                    self.sessions.insert(server, session);
                }
                effect
            }
        };
        Ok(match effect {
            Effect::Unknown if is_committing && has_written => End::Unknown,
            // Reads that no commit has confirmed are not judged.
            _ if !has_written => End::NotRun,
            Effect::Unexpected if is_committing => End::Unknown,
            _ => End::Refused,
        })
    }

    /// Runs operations, and commits.
    fn steps(
        &mut self,
        session: &mut WireSession,
        operations: &mut [Operation],
        (has_written, is_committing): (&mut bool, &mut bool),
    ) -> Result<(), StepFailure> {
        for operation in operations {
            match operation {
                Operation::Read { key, seen } => *seen = Some(self.read(session, *key)?),
                Operation::Write { key, element } => {
                    let position = self.position(session, *key)?;
                    // It may be there although its answer is lost.
                    *has_written = true;
                    session.run(&self.storage.gremlin_write(*key, *element, position))?;
                }
            }
            self.pause();
        }
        *is_committing = true;
        Ok(session.commit()?)
    }

    fn read(&self, session: &mut WireSession, key: u64) -> Result<Vec<u64>, StepFailure> {
        let values = session.run(&self.storage.gremlin_read(key))?;
        self.storage.elements_of_values(&values).map_err(StepFailure::Wrong)
    }

    /// The position of the next element of a list, by a read or a count.
    fn position(&mut self, session: &mut WireSession, key: u64) -> Result<u64, StepFailure> {
        if self.storage.kind == Kind::Register {
            return Ok(0);
        }
        if self.random.one_in(2) {
            return Ok(self.read(session, key)?.len() as u64);
        }
        let values = session.run(&self.storage.gremlin_count(key))?;
        let count = values.first().and_then(Value::as_integer).and_then(|count| u64::try_from(count).ok());
        count.ok_or_else(|| StepFailure::Wrong(format!("not a count: {values:?}")))
    }

    /// Reads in a session of its own, which begins with everything that was committed before.
    fn in_strict_session(&mut self, operations: &mut [Operation]) -> Result<End, String> {
        let server = self.any_server();
        let Ok(mut session) = WireSession::connect(self.address(server), true, STRICT_MAX) else {
            return Ok(End::NotRun);
        };
        match self.steps(&mut session, operations, (&mut false, &mut false)) {
            Ok(()) => Ok(End::Committed(Freshness::Strict)),
            Err(StepFailure::Wrong(what)) => Err(what),
            Err(StepFailure::Request(failure)) => {
                if let RequestFailure::Error { kind, message } = failure {
                    self.effect(&kind, &message);
                }
                Ok(End::NotRun)
            }
        }
    }

    /// Reads all keys with one query.
    fn by_query(&mut self, operations: &mut [Operation], is_strict: bool) -> Result<End, String> {
        let server = self.any_server();
        let before = self.view(server);
        let key = |operation: &Operation| match operation {
            Operation::Read { key, .. } | Operation::Write { key, .. } => *key,
        };
        let keys: std::collections::BTreeSet<u64> = operations.iter().map(key).collect();
        let text = self.storage.sparql_read(keys.into_iter());
        let answer = if is_strict {
            self.strict_http.strict_query(self.address(server), &text)
        } else {
            self.http.query(self.address(server), &text).map(|csv| (200, csv)).map_err(NoAnswer::Lost)
        };
        let Ok((200, csv)) = answer else { return Ok(End::NotRun) };
        let elements = self.storage.elements_of_csv(&csv)?;
        for operation in operations {
            if let Operation::Read { key, seen } = operation {
                *seen = Some(elements.get(key).cloned().unwrap_or_default());
            }
        }
        Ok(End::Committed(if is_strict { Freshness::Strict } else { self.session_read(server, before) }))
    }

    /// Writes with one update at any server.
    fn by_update(&mut self, operations: &[Operation]) -> End {
        let server = self.any_server();
        let write = |operation: &Operation| match operation {
            Operation::Write { key, element } => Some((*key, *element)),
            Operation::Read { .. } => None,
        };
        let text = self.storage.sparql_update(operations.iter().filter_map(write));
        match self.http.update(self.address(server), &text) {
            Ok((200..=299, _)) => End::Committed(Freshness::Strict),
            Ok((status, message)) => {
                let kind = match status {
                    409 => "conflict",
                    503 => "unavailable",
                    _ => "",
                };
                match self.effect(kind, &message) {
                    Effect::None | Effect::Conflict => End::Refused,
                    Effect::Unknown | Effect::Unexpected => End::Unknown,
                }
            }
            Err(NoAnswer::NotSent) => End::NotRun,
            Err(NoAnswer::Lost(_)) => End::Unknown,
        }
    }

    /// The effect of a request that failed. Counts what must not happen.
    fn effect(&mut self, kind: &str, message: &str) -> Effect {
        let effect = Effect::of(kind, message);
        if effect == Effect::Unexpected {
            *self.counts.unexpected.entry(format!("{kind}: {message}")).or_default() += 1;
        }
        effect
    }

    fn try_next(&self, server: usize, message: &str) {
        follow(self.run.servers, &self.run.leader, server, message);
    }

    /// A number for what a server shows between two of its starts.
    fn view(&self, server: usize) -> Option<u64> {
        let period = self.run.servers.servers[server].period()?;
        Some(period * self.run.servers.servers.len() as u64 + server as u64)
    }

    /// The freshness of a read that began with this view.
    fn session_read(&self, server: usize, before: Option<u64>) -> Freshness {
        let view = before.filter(|_| self.view(server) == before);
        // A number of its own: nothing is known of earlier reads there.
        Freshness::Session(view.unwrap_or_else(|| u64::MAX - self.run.element()))
    }

    /// Yields to other clients.
    fn pause(&mut self) {
        if self.random.one_in(2) {
            sleep(Duration::from_micros(self.random.below(400)));
        }
    }
}

/// Why a transaction did not reach its end.
enum StepFailure {
    Request(RequestFailure),
    /// The server has returned what no client wrote.
    Wrong(String),
}

impl From<RequestFailure> for StepFailure {
    fn from(failure: RequestFailure) -> Self {
        Self::Request(failure)
    }
}
