//! The environment of a test over servers: clients that find the leader, and counts of outcomes.

use crate::acid::THREADS;
use crate::voter_processes::{Http, LOOK_INTERVAL, NoAnswer, PATIENCE, Servers};
use crate::wire_session::{Effect, RequestFailure, WireSession, follow, has_read_older};
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use vervet::gremlin::Value;
use vervet_model::lock;
use vervet_testkit::Random;

/// A client takes a request without an answer for lost after this time.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// A change that is rolled back: see the header of this file.
const CHANGE: &str = "g.addV('urn:acid:Change').iterate()";

/// Pause of a client before it repeats a transaction.
const AGAIN_INTERVAL: Duration = Duration::from_millis(15);

/// Counts of transaction outcomes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) commits: usize,
    /// Conflicts.
    pub(super) aborts: usize,
    pub(super) unknown: usize,
    pub(super) rolled_back: usize,
    pub(super) reads: usize,
    pub(super) read_aborts: usize,
    /// Transactions that a fault has ended before their commit, and that ran again.
    pub(super) repeated: usize,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Self) {
        self.commits += other.commits;
        self.aborts += other.aborts;
        self.unknown += other.unknown;
        self.rolled_back += other.rolled_back;
        self.reads += other.reads;
        self.read_aborts += other.read_aborts;
        self.repeated += other.repeated;
    }

    /// Whether so many commits are possible.
    pub(super) fn allows(&self, commits: i64) -> bool {
        usize::try_from(commits)
            .is_ok_and(|commits| (self.commits..=self.commits + self.unknown).contains(&commits))
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { commits, aborts, unknown, rolled_back, reads, read_aborts, repeated } = self;
        write!(
            f,
            "writers {commits:>3} commits {aborts:>3} aborts {unknown} unknown {rolled_back} rolled back, readers \
             {reads:>3} commits {read_aborts} aborts, {repeated} ended by faults and repeated"
        )
    }
}

/// How a transaction of a client ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End<T> {
    Committed(T),
    Aborted,
    Unknown(T),
}

impl<T> End<T> {
    pub(super) fn committed(self) -> Option<T> {
        match self {
            Self::Committed(value) => Some(value),
            Self::Aborted | Self::Unknown(_) => None,
        }
    }
}

/// Why the steps of a transaction ended early.
#[derive(Debug)]
pub(super) enum Stop {
    Request(RequestFailure),
    /// The server does not show the start graph of the test.
    Behind,
    /// Fails the test.
    Wrong(String),
}

impl From<RequestFailure> for Stop {
    fn from(failure: RequestFailure) -> Self {
        Self::Request(failure)
    }
}

/// The cluster, as a test sees it.
pub(super) struct Environment<'a> {
    pub(super) servers: &'a Servers,
    pub(super) leader: &'a AtomicUsize,
    pub(super) sleep: Duration,
    pub(super) seed: u64,
    pub(super) prefix: String,
    pub(super) tally: Mutex<Tally>,
}

impl<'a> Environment<'a> {
    pub(super) fn tally(&self) -> Tally {
        *lock(&self.tally)
    }

    /// The name of a vertex of this test.
    pub(super) fn name(&self, of: impl fmt::Display) -> String {
        format!("{}{of}", self.prefix)
    }

    /// Writes the start graph, by SPARQL.
    pub(super) fn start(&self, statements: &str) -> Result<(), String> {
        let (http, begun) = (Http::new(PATIENCE), Instant::now());
        for at in 0.. {
            let server = &self.servers.servers[at % self.servers.servers.len()];
            let reason = match http.update(&server.address, &format!("INSERT DATA {{ {statements} }}")) {
                Ok((200..=299, _)) => return Ok(()),
                Ok((_, reason)) | Err(NoAnswer::Lost(reason)) => reason,
                Err(NoAnswer::NotSent) => "nothing listens".to_owned(),
            };
            if begun.elapsed() > PATIENCE {
                return Err(format!("start graph: {reason}"));
            }
            sleep(LOOK_INTERVAL);
        }
        Ok(())
    }

    /// Runs `work` once for each of `roles`, at most [`THREADS`] at a time, and returns the results in any
    /// order.
    pub(super) fn run<C: Copy + Sync, T: Send>(
        &'a self,
        roles: &[C],
        work: impl Fn(&mut Client<'a>, C) -> Result<T, String> + Sync,
    ) -> Result<Vec<T>, String> {
        let (next, ends) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for thread in 0..THREADS as u64 {
                let (next, ends, work) = (&next, &ends, &work);
                scope.spawn(move || {
                    let seed = self.seed.wrapping_add(thread << 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                    let mut client = Client { environment: self, random: Random(seed | 1), session: None };
                    // Relaxed: only the number matters; the end of the scope orders everything else.
                    while let Some(role) = roles.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let end = work(&mut client, *role);
                        lock(ends).push(end);
                    }
                });
            }
        });
        ends.into_inner().unwrap_or_default().into_iter().collect()
    }

    /// Writers, numbered from 1, and readers (`None`), in random order.
    pub(super) fn writers_and_readers(&self, writers: i64, readers: usize) -> Vec<Option<i64>> {
        let mut roles: Vec<Option<i64>> = (1..=writers).map(Some).collect();
        roles.extend(std::iter::repeat_n(None, readers));
        let mut random = Random(self.seed | 1);
        for end in (1..roles.len()).rev() {
            let other = usize::try_from(random.below(end as u64 + 1)).unwrap_or(end);
            roles.swap(end, other);
        }
        roles
    }

    /// Reads after all clients have finished: everything that was committed.
    pub(super) fn after<T>(&self, read: impl Fn(&mut WireSession) -> Result<T, Stop>) -> Result<T, String> {
        let begun = Instant::now();
        for at in 0.. {
            let server = &self.servers.servers[at % self.servers.servers.len()];
            let session = WireSession::connect(&server.address, true, Duration::from_secs(4));
            let reason = match session.map(|mut session| read(&mut session)) {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(Stop::Wrong(what))) => return Err(what),
                Ok(Err(Stop::Behind)) => return Err("a strict read lacks the start graph".to_owned()),
                Ok(Err(Stop::Request(failure))) => format!("{failure:?}"),
                Err(failure) => format!("{failure:?}"),
            };
            if begun.elapsed() > PATIENCE {
                return Err(format!("no server answers a strict read: {reason}"));
            }
            sleep(AGAIN_INTERVAL);
        }
        Err("no server".to_owned())
    }
}

/// What a transaction does at its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Write,
    Read,
    RollBack,
}

/// A client that runs transactions, one at a time.
pub(super) struct Client<'a> {
    environment: &'a Environment<'a>,
    random: Random,
    session: Option<(usize, WireSession)>,
}

impl Client<'_> {
    /// Runs a transaction that writes.
    pub(super) fn write<T>(
        &mut self,
        work: impl FnMut(&mut Self, &mut WireSession) -> Result<T, Stop>,
    ) -> Result<End<T>, String> {
        let end = self.transaction(Kind::Write, work)?;
        let mut tally = lock(&self.environment.tally);
        match &end {
            End::Committed(_) => tally.commits += 1,
            End::Aborted => tally.aborts += 1,
            End::Unknown(_) => tally.unknown += 1,
        }
        Ok(end)
    }

    /// Runs a read-only transaction; `None`: it aborted.
    pub(super) fn read<T>(
        &mut self,
        work: impl FnMut(&mut Self, &mut WireSession) -> Result<T, Stop>,
    ) -> Result<Option<T>, String> {
        let end = self.transaction(Kind::Read, work)?.committed();
        let mut tally = lock(&self.environment.tally);
        *(if end.is_some() { &mut tally.reads } else { &mut tally.read_aborts }) += 1;
        Ok(end)
    }

    /// Runs a transaction that is rolled back.
    pub(super) fn roll_back(
        &mut self,
        work: impl FnMut(&mut Self, &mut WireSession) -> Result<(), Stop>,
    ) -> Result<(), String> {
        self.transaction(Kind::RollBack, work)?;
        lock(&self.environment.tally).rolled_back += 1;
        Ok(())
    }

    fn transaction<T>(
        &mut self,
        kind: Kind,
        mut work: impl FnMut(&mut Self, &mut WireSession) -> Result<T, Stop>,
    ) -> Result<End<T>, String> {
        let (begun, only_reads) = (Instant::now(), kind == Kind::Read);
        let mut reason = "no connection".to_owned();
        while begun.elapsed() < PATIENCE {
            let leader =
                self.environment.leader.load(Ordering::SeqCst) % self.environment.servers.servers.len();
            let Some(mut session) = self.session_at(leader) else {
                follow(self.environment.servers, self.environment.leader, leader, "");
                sleep(AGAIN_INTERVAL);
                continue;
            };
            let mut value = None;
            let mut steps = || {
                value = Some(work(self, &mut session)?);
                if kind == Kind::Read {
                    session.run(CHANGE)?;
                }
                Ok::<_, Stop>(())
            };
            let (failure, is_committing) = match steps() {
                Err(Stop::Wrong(what)) => return Err(what),
                Err(Stop::Request(failure)) => (Some(failure), false),
                Err(Stop::Behind) => {
                    (Some(RequestFailure::Lost("the start graph is missing".to_owned())), false)
                }
                Ok(()) if kind != Kind::Write => (session.roll_back().err(), false),
                Ok(()) => (session.commit().err(), true),
            };
            let effect = match (failure, value) {
                (None, Some(value)) => {
                    self.session = Some((leader, session));
                    return Ok(End::Committed(value));
                }
                (Some(RequestFailure::Error { kind, message }), value) => {
                    let effect = match Effect::of(&kind, &message) {
                        Effect::Conflict if only_reads && has_read_older(&message) => Effect::None,
                        effect => effect,
                    };
                    if effect == Effect::Unexpected {
                        return Err(format!("{kind}: {message}"));
                    }
                    if effect != Effect::Conflict {
                        follow(self.environment.servers, self.environment.leader, leader, &message);
                    }
                    if session.roll_back().is_ok() {
                        self.session = Some((leader, session));
                    }
                    reason = message;
                    (effect, value)
                }
                (Some(RequestFailure::Lost(message)), value) => {
                    follow(self.environment.servers, self.environment.leader, leader, "");
                    reason = message;
                    (Effect::Unknown, value)
                }
                (None, None) => return Err("a transaction without a value".to_owned()),
            };
            match effect {
                (Effect::Conflict, _) => return Ok(End::Aborted),
                (Effect::Unknown, Some(value)) if is_committing => return Ok(End::Unknown(value)),
                _ => {}
            }
            lock(&self.environment.tally).repeated += 1;
            sleep(AGAIN_INTERVAL);
        }
        Err(format!("a transaction does not end: {reason}"))
    }

    fn session_at(&mut self, leader: usize) -> Option<WireSession> {
        match self.session.take() {
            Some((at, session)) if at == leader => Some(session),
            _ => {
                let address = &self.environment.servers.servers[leader].address;
                WireSession::connect(address, false, ANSWER_MAX).ok()
            }
        }
    }

    /// Sleeps between half and one and a half of the usual time.
    pub(super) fn sleep(&mut self) {
        self.sleep_for(self.environment.sleep);
    }

    pub(super) fn sleep_for(&mut self, time: Duration) {
        let percent = u32::try_from(50 + self.random.below(101)).unwrap_or(100);
        sleep(time * percent / 100);
    }

    /// A random number below `limit`.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.random.below(limit)
    }
}

/// Two sessions at the leader; `None`: they cannot be had at present.
pub(super) fn two_sessions(environment: &Environment<'_>) -> Option<[WireSession; 2]> {
    let leader = environment.leader.load(Ordering::SeqCst) % environment.servers.servers.len();
    let connect =
        || WireSession::connect(&environment.servers.servers[leader].address, false, ANSWER_MAX).ok();
    Some([connect()?, connect()?])
}

/// The integers in the results of a text.
pub(super) fn integers(session: &mut WireSession, text: &str) -> Result<Vec<i64>, Stop> {
    let values = session.run(text)?;
    let integer = |value: &Value| {
        let text = value.as_text().and_then(|text| text.parse().ok());
        value
            .as_integer()
            .or(text)
            .ok_or_else(|| Stop::Wrong(format!("not an integer: {value:?} in {text:?}")))
    };
    values.iter().map(integer).collect()
}

/// The only value of a property, an integer.
pub(super) fn integer(session: &mut WireSession, vertex: &str, key: &str) -> Result<i64, Stop> {
    let values = integers(session, &format!("g.V('{vertex}').values('{key}')"))?;
    match values.as_slice() {
        [one] => Ok(*one),
        [] => Err(Stop::Behind),
        other => Err(Stop::Wrong(format!("{other:?} in place of one value of {key} of {vertex}"))),
    }
}

/// Replaces the value of a property; `value` is a literal of Gremlin.
pub(super) fn set(
    session: &mut WireSession,
    vertex: &str,
    key: &str,
    value: impl fmt::Display,
) -> Result<(), Stop> {
    session.run(&format!("g.V('{vertex}').property(single, '{key}', {value}).iterate()"))?;
    Ok(())
}
