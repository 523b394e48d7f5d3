//! Clients that send updates and reads at a fixed rate.

use super::node::Node;
use crate::voter_processes::{Http, NoAnswer};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::Scope;
use std::time::{Duration, Instant};
use vervet_model::lock;
use vervet_testkit::Random;

/// Threads that send updates, and as many that send reads: more than requests that wait at a time, so that
/// one that waits for a leader holds up no other.
const THREADS: u32 = 64;

/// Longest time of a request.
const TIME_MAX: Duration = Duration::from_secs(30);

/// Requests that end within this time after a kill may have been under way at the killed server.
const KILL_TIME: Duration = Duration::from_secs(8);

/// Time until the system tells the other ends of its connections that a process has ended.
const NEWS_TIME: Duration = Duration::from_millis(100);

/// Attempts for a request that no server has received.
const ATTEMPTS: usize = 200;

/// Time between two rounds of attempts.
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(10);

/// What has become of requests.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Counts {
    updates: u64,
    reads: u64,
    lost: u64,
    failed: u64,
    slowest_ms: u64,
}

impl Counts {
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            updates: self.updates - before.updates,
            reads: self.reads - before.reads,
            lost: self.lost - before.lost,
            failed: self.failed - before.failed,
            slowest_ms: self.slowest_ms,
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { updates, reads, lost, failed, slowest_ms } = self;
        write!(
            f,
            "{updates} updates, {reads} reads, {lost} lost with a killed server, {failed} failed, the slowest {slowest_ms} ms"
        )
    }
}

/// The updates that CSV shows.
pub(super) fn numbers(found: &str) -> BTreeSet<u64> {
    let number = |line: &str| line.trim().strip_prefix("urn:u")?.parse().ok();
    found.lines().filter_map(number).collect()
}

/// See the header of this file.
pub(super) struct Clients {
    nodes: Mutex<Vec<Arc<Node>>>,
    acknowledged: Mutex<Vec<u64>>,
    /// Updates whose outcome is unknown.
    unknown: Mutex<BTreeSet<u64>>,
    counts: Mutex<Counts>,
    /// The first requests that failed.
    failures: Mutex<Vec<String>>,
    killed: Mutex<Option<Instant>>,
    next: AtomicU64,
    is_over: AtomicBool,
}

/// What has become of a request.
enum Sent {
    Answered(String),
    /// Without an answer, or with an error; whether it may have had an effect.
    Failed(String, bool),
}

impl Clients {
    pub(super) fn new(nodes: &[Arc<Node>]) -> Self {
        Self {
            nodes: Mutex::new(nodes.to_vec()),
            acknowledged: Mutex::default(),
            unknown: Mutex::default(),
            counts: Mutex::default(),
            failures: Mutex::default(),
            killed: Mutex::default(),
            next: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    /// Starts clients that send `rate` updates and as many reads a second.
    pub(super) fn start<'a>(&'a self, scope: &'a Scope<'a, '_>, rate: u32, seed: u64) {
        let begun = Instant::now();
        for thread in 0..2 * THREADS {
            scope.spawn(move || {
                let mut random =
                    Random(seed.wrapping_add(u64::from(thread) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
                let http = Http::new(TIME_MAX);
                // The requests of all threads are spread over time.
                let interval = Duration::from_secs(1) * THREADS / rate.max(1);
                let mut at = begun + interval / THREADS * (thread % THREADS);
                while !self.is_over.load(Ordering::Relaxed) {
                    std::thread::sleep(at.saturating_duration_since(Instant::now()));
                    if self.is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    if thread < THREADS {
                        self.update(&http, &mut random)
                    } else {
                        self.read(&http, &mut random)
                    }
                    // One that is late sends the next one at once, and those that it has missed no more.
                    at = (at + interval).max(Instant::now() - interval);
                }
            });
        }
    }

    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Requests go to these servers from now on.
    pub(super) fn set(&self, nodes: &[Arc<Node>]) {
        *lock(&self.nodes) = nodes.to_vec();
    }

    /// A server is about to be killed, or has been.
    pub(super) fn note_kill(&self) {
        *lock(&self.killed) = Some(Instant::now());
    }

    /// What has become of all requests; the slowest one since the last call.
    pub(super) fn counts(&self) -> Counts {
        let mut counts = lock(&self.counts);
        let now = *counts;
        counts.slowest_ms = 0;
        now
    }

    pub(super) fn verdict(&self) -> Result<(), String> {
        let failures = lock(&self.failures);
        if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
    }

    /// The updates that were acknowledged so far.
    pub(super) fn acknowledged(&self) -> BTreeSet<u64> {
        lock(&self.acknowledged).iter().copied().collect()
    }

    /// The number of the next update.
    pub(super) fn sent(&self) -> u64 {
        self.next.load(Ordering::SeqCst)
    }

    /// Compares the updates that a server shows, as CSV, with those that were acknowledged.
    pub(super) fn compare(&self, found: &str) -> Result<(), String> {
        let (found, acknowledged) = (numbers(found), self.acknowledged());
        let lost: Vec<_> = acknowledged.difference(&found).take(5).collect();
        if !lost.is_empty() {
            return Err(format!("acknowledged updates are lost, such as {lost:?}"));
        }
        let unknown = lock(&self.unknown);
        let more: Vec<_> =
            found.difference(&acknowledged).filter(|number| !unknown.contains(number)).take(5).collect();
        if more.is_empty() {
            Ok(())
        } else {
            Err(format!("updates that no client has sent, or that were refused: {more:?}"))
        }
    }

    fn update(&self, http: &Http, random: &mut Random) {
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        let text = format!("INSERT DATA {{ <urn:u{number}> <urn:is> {number} }}");
        let begun = Instant::now();
        match self.send(random, |address| http.update(address, &text)) {
            Sent::Answered(_) => {
                lock(&self.acknowledged).push(number);
                self.count(begun, |counts| counts.updates += 1);
            }
            Sent::Failed(reason, may_have_effect) => {
                if may_have_effect {
                    lock(&self.unknown).insert(number);
                }
                self.fail(begun, format!("update {number}: {reason}"));
            }
        }
    }

    fn read(&self, http: &Http, random: &mut Random) {
        let number = {
            let acknowledged = lock(&self.acknowledged);
            // Mostly one of the last ones.
            let most = random.below(acknowledged.len() as u64) + 1;
            let behind = random.below(most);
            let at =
                (acknowledged.len() as u64).checked_sub(behind + 1).and_then(|at| usize::try_from(at).ok());
            let Some(number) = at.and_then(|at| acknowledged.get(at).copied()) else { return };
            number
        };
        let begun = Instant::now();
        let text = format!("SELECT ?o {{ <urn:u{number}> <urn:is> ?o }}");
        match self.send(random, |address| http.strict_query(address, &text)) {
            Sent::Answered(text) if text.lines().nth(1).map(str::trim) == Some(&*number.to_string()) => {
                self.count(begun, |counts| counts.reads += 1);
            }
            Sent::Answered(text) => {
                let wrong = format!("a read lacks the acknowledged update {number}: {text:?}");
                lock(&self.failures).push(wrong);
            }
            Sent::Failed(reason, _) => self.fail(begun, format!("read of {number}: {reason}")),
        }
    }

    /// Sends a request to servers in turn until one has got it.
    fn send(&self, random: &mut Random, call: impl Fn(&str) -> Result<(u16, String), NoAnswer>) -> Sent {
        for _ in 0..ATTEMPTS {
            let mut nodes = lock(&self.nodes).clone();
            nodes.retain(|node| node.is_in_rotation.load(Ordering::SeqCst));
            let first = usize::try_from(random.below(nodes.len().max(1) as u64)).unwrap_or(0);
            let (later, sooner) = (nodes.iter().skip(first), nodes.iter().take(first));
            for node in later.chain(sooner) {
                match call(&node.http) {
                    Ok((200 | 204, text)) => return Sent::Answered(text),
                    Ok((status, text)) => {
                        let may_have_effect = text.contains("unknown");
                        return Sent::Failed(
                            format!("server {}: {status} {}", node.name, text.trim()),
                            may_have_effect,
                        );
                    }
                    Err(NoAnswer::Lost(reason)) => {
                        return Sent::Failed(format!("server {}: {reason}", node.name), true);
                    }
                    Err(NoAnswer::NotSent) => {}
                }
            }
            std::thread::sleep(ATTEMPT_INTERVAL);
        }
        Sent::Failed("no server listens".to_owned(), false)
    }

    fn count(&self, begun: Instant, count: impl FnOnce(&mut Counts)) {
        let mut counts = lock(&self.counts);
        count(&mut counts);
        counts.slowest_ms =
            counts.slowest_ms.max(u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX));
    }

    fn fail(&self, begun: Instant, what: String) {
        let is_lost = lock(&self.killed)
            .is_some_and(|killed| begun <= killed + NEWS_TIME && killed.elapsed() < KILL_TIME);
        self.count(begun, |counts| if is_lost { counts.lost += 1 } else { counts.failed += 1 });
        let mut failures = lock(&self.failures);
        if !is_lost && failures.len() < 5 {
            failures.push(what);
        }
    }
}
