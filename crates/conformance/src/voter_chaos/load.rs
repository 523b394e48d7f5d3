//! Clients that write to the server that leads, and one reader at each server.

use super::history::{self, COUNTS, Known, SUMMARY, Shown};
use crate::voter_processes::{Http, LOOK_INTERVAL, NoAnswer, PATIENCE, Servers};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{Scope, sleep};
use std::time::{Duration, Instant};
use vervet_model::lock;

/// A client takes an update without an answer for lost after this time.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// Pause of a client between two updates.
const WRITE_INTERVAL: Duration = Duration::from_millis(2);

/// Pause of a reader between two queries.
const READ_INTERVAL: Duration = Duration::from_millis(4);

/// Pause of a client that every server has refused.
const REFUSED_INTERVAL: Duration = Duration::from_millis(20);

/// What is counted, from the begin of the load.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Updates that were acknowledged.
    pub(super) acknowledged: u64,
    /// Updates without an answer, or with one that says that the outcome is unknown.
    pub(super) lost: u64,
    /// Reads at servers that were ready all the time.
    pub(super) reads: u64,
    /// Of these, those that failed or showed less than an earlier one at the same server.
    pub(super) failed_reads: u64,
}

impl Counts {
    /// Adds what has come between `before` and `now`.
    pub(super) fn add(&mut self, now: Self, before: Self) {
        self.acknowledged += now.acknowledged - before.acknowledged;
        self.lost += now.lost - before.lost;
        self.reads += now.reads - before.reads;
        self.failed_reads += now.failed_reads - before.failed_reads;
    }
}

/// A client, as far as others look at it.
#[derive(Default)]
struct Client {
    sent: AtomicU64,
    acknowledged: AtomicU64,
}

#[derive(Default)]
struct Progress {
    counts: Counts,
    /// Of the last fault.
    fault: Option<Instant>,
    /// From the last fault until an update was acknowledged that was sent after it.
    pause: Option<Duration>,
    /// What was wrong since the last look.
    wrong: Vec<String>,
}

/// Load on a cluster. See the header of this file.
pub(super) struct Load<'a> {
    servers: &'a Servers,
    clients: Vec<Client>,
    /// Position of the server that acknowledged last.
    leader: AtomicUsize,
    progress: Mutex<Progress>,
    /// `progress` has changed.
    moved: Condvar,
    is_over: AtomicBool,
}

impl<'a> Load<'a> {
    pub(super) fn new(servers: &'a Servers, clients: usize) -> Self {
        Self {
            servers,
            clients: (0..clients).map(|_| Client::default()).collect(),
            leader: AtomicUsize::new(0),
            progress: Mutex::default(),
            moved: Condvar::new(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Starts all clients and readers.
    pub(super) fn start<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        for client in 0..self.clients.len() {
            scope.spawn(move || self.write(client));
        }
        for server in 0..self.servers.servers.len() {
            scope.spawn(move || self.read(server));
        }
    }

    /// Ends the load: each client writes its current token, and no more.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// Position of the server that leads, as far as the clients know.
    pub(super) fn leader(&self) -> usize {
        self.leader.load(Ordering::SeqCst)
    }

    pub(super) fn counts(&self) -> Counts {
        lock(&self.progress).counts
    }

    /// Waits for so many further acknowledgements.
    ///
    /// # Errors
    /// They do not come.
    pub(super) fn wait_for(&self, more: u64) -> Result<(), String> {
        let end = self.counts().acknowledged + more;
        let is_waiting = |progress: &mut Progress| progress.counts.acknowledged < end;
        self.wait_while(is_waiting).map(drop).ok_or_else(|| "no update is acknowledged".to_owned())
    }

    /// A fault begins now: see [`Load::pause`].
    pub(super) fn begin_fault(&self) {
        let mut progress = lock(&self.progress);
        (progress.fault, progress.pause) = (Some(Instant::now()), None);
    }

    /// Waits until an update is acknowledged that was sent after the fault, and returns the time from the
    /// fault until then.
    ///
    /// # Errors
    /// None is.
    pub(super) fn pause(&self) -> Result<Duration, String> {
        self.wait_while(|progress| progress.pause.is_none())
            .ok_or_else(|| "no update that was sent after the fault is acknowledged".to_owned())
    }

    /// Returns the pause once `is_waiting` is false; `None`: it stays true.
    fn wait_while(&self, is_waiting: impl FnMut(&mut Progress) -> bool) -> Option<Duration> {
        let waited = self.moved.wait_timeout_while(lock(&self.progress), PATIENCE, is_waiting);
        let (progress, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        (!waited.timed_out()).then_some(progress.pause.unwrap_or_default())
    }

    /// What each client knows.
    pub(super) fn known(&self) -> Vec<Known> {
        let known = |client: &Client| {
            // In this order: a token is acknowledged after it was sent.
            let acknowledged = client.acknowledged.load(Ordering::SeqCst);
            Known { acknowledged, sent: client.sent.load(Ordering::SeqCst) }
        };
        self.clients.iter().map(known).collect()
    }

    /// Asks a server once. It must have what `known` says to be acknowledged, or be behind.
    ///
    /// # Errors
    /// No answer, or a wrong one.
    pub(super) fn look(&self, server: usize, known: &[Known]) -> Result<Shown, String> {
        let server = &self.servers.servers[server];
        let failed = |reason: String| format!("server {}: {reason}", server.name);
        let answer = Http::new(PATIENCE).query(&server.address, SUMMARY).map_err(failed)?;
        let sent_later = self.known();
        let with_sent = |(known, later): (&Known, &Known)| Known { sent: later.sent, ..*known };
        let known: Vec<Known> = known.iter().zip(&sent_later).map(with_sent).collect();
        history::check(&answer, &known).map_err(failed)
    }

    /// Waits until a server shows all that is acknowledged now.
    ///
    /// # Errors
    /// It does not, or an answer is wrong.
    pub(super) fn catch_up(&self, server: usize) -> Result<(), String> {
        let (known, begun) = (self.known(), Instant::now());
        loop {
            match self.look(server, &known)? {
                Shown::All => return Ok(()),
                Shown::Behind(what) if begun.elapsed() > PATIENCE => {
                    return Err(format!("server {} stays behind: {what}", self.servers.servers[server].name));
                }
                Shown::Behind(_) => sleep(LOOK_INTERVAL),
            }
        }
    }

    /// What was wrong since the last call.
    ///
    /// # Errors
    /// Something was: the first reasons.
    pub(super) fn verdict(&self) -> Result<(), String> {
        let wrong = std::mem::take(&mut lock(&self.progress).wrong);
        match wrong.len() {
            0 => Ok(()),
            all => {
                Err(format!("{} ({all} in all)", wrong.into_iter().take(3).collect::<Vec<_>>().join("\n")))
            }
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    fn wrong(&self, what: String) {
        lock(&self.progress).wrong.push(what);
    }

    fn acknowledge(&self, client: usize, token: u64, (server, sent): (usize, Instant)) {
        self.clients[client].acknowledged.store(token, Ordering::SeqCst);
        self.leader.store(server, Ordering::SeqCst);
        {
            let mut progress = lock(&self.progress);
            progress.counts.acknowledged += 1;
            if progress.pause.is_none()
                && let Some(fault) = progress.fault.filter(|fault| sent > *fault)
            {
                progress.pause = Some(fault.elapsed());
            }
        }
        self.moved.notify_all();
    }

    /// The loop of a client.
    fn write(&self, client: usize) {
        let http = Http::new(ANSWER_MAX);
        let mut server = client % self.servers.servers.len();
        for token in 1.. {
            if self.is_over() {
                return;
            }
            self.clients[client].sent.store(token, Ordering::SeqCst);
            match self.write_token(client, token, (&http, server)) {
                Ok(at) => server = at,
                Err(reason) => return self.wrong(format!("client {client}, token {token}: {reason}")),
            }
            sleep(WRITE_INTERVAL);
        }
    }

    /// Sends a token until it is acknowledged; returns the position of the server that did.
    ///
    /// # Errors
    /// No server does in time, or one has an error that has nothing to do with leaders.
    fn write_token(
        &self,
        client: usize,
        token: u64,
        (http, mut server): (&Http, usize),
    ) -> Result<usize, String> {
        let (text, begun, count) =
            (history::update(client, token), Instant::now(), self.servers.servers.len());
        let mut refusals = 0;
        loop {
            let sent = Instant::now();
            let next = (server + 1) % count;
            let (next, reason) = match http.update(&self.servers.servers[server].address, &text) {
                Ok((200..=299, _)) => {
                    self.acknowledge(client, token, (server, sent));
                    return Ok(server);
                }
                Ok((_, reason)) if reason.contains(LEADER_ELSEWHERE) => {
                    (self.named(&reason).unwrap_or(next), reason)
                }
                Ok((_, reason)) if reason.contains(NOTHING_CHANGED) => (next, reason),
                Ok((_, reason)) if reason.contains(UNKNOWN) => {
                    lock(&self.progress).counts.lost += 1;
                    (next, reason)
                }
                // A conflict with another client.
                Ok((409, reason)) => (server, reason),
                Ok((status, reason)) => return Err(format!("{status}: {reason}")),
                Err(NoAnswer::NotSent) => (next, "it does not listen".to_owned()),
                Err(NoAnswer::Lost(reason)) => {
                    lock(&self.progress).counts.lost += 1;
                    (next, reason)
                }
            };
            if begun.elapsed() > PATIENCE {
                return Err(format!("no server acknowledges it, server {} because of: {reason}", server));
            }
            server = next;
            refusals += 1;
            if refusals % count == 0 {
                sleep(REFUSED_INTERVAL);
            }
        }
    }

    /// Position of the server that a refusal names as the leader.
    fn named(&self, refusal: &str) -> Option<usize> {
        self.servers.servers.iter().position(|server| refusal.contains(&format!("({})", server.address)))
    }

    /// The loop of a reader at one server.
    fn read(&self, server: usize) {
        let (http, mut seen) = (Http::new(PATIENCE), vec![0; self.clients.len()]);
        let server = &self.servers.servers[server];
        while !self.is_over() {
            sleep(READ_INTERVAL);
            let Some(period) = server.period() else { continue };
            let counts = http.query(&server.address, COUNTS);
            if server.period() != Some(period) {
                continue;
            }
            let checked = counts
                .and_then(|answer| history::counts(&answer, self.clients.len()))
                .and_then(|counts| history::check_monotonic(&mut seen, counts));
            let mut progress = lock(&self.progress);
            progress.counts.reads += 1;
            if let Err(reason) = checked {
                progress.counts.failed_reads += 1;
                progress.wrong.push(format!("a read at server {}: {reason}", server.name));
            }
        }
    }
}

/// In refusals of servers that do not lead.
const LEADER_ELSEWHERE: &str = "changes of this graph go to";
/// In errors of updates that have had no effect.
const NOTHING_CHANGED: &str = "nothing was changed";
/// In errors of updates that may have had an effect: of the leader, and of a server that has sent one on.
const UNKNOWN: &str = " is unknown: ";
