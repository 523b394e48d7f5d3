//! One episode: a cluster from its first start to its end, with clients and faults, from one seed.

use crate::faults::{Faults, KINDS};
use crate::judge::{Entry, History, Look, judge};
use crate::machine::{self, with};
use crate::merges::{self, Merges, Source};
use crate::operator::{Operator, PARTITIONS, WORKS};
use crate::server::{Life, Server};
use crate::telling::{Telling, tell};
use crate::transaction::{Answer, Commit, KEYS, Outcome, Registers, Request, Step, first_data};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use vervet::{Database, Isolation};
use vervet_cluster::{InitOptions, init};
use vervet_model::{Watch, lock};
use vervet_testkit::Random;

/// Longest wait of a client for an answer, as that of clients for HTTP.
const ANSWER_NS: u64 = 15_000_000_000;

/// Time in which all servers are equal after the last fault.
const PEACE_NS: u64 = 120_000_000_000;

/// Time in which all servers go over to merged data then.
const MERGE_NS: u64 = 300_000_000_000;

/// How often faults are drawn, and clients look for servers.
const LOOK: Duration = Duration::from_millis(10);

/// A mistake that an episode makes on purpose; the judge must find it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Planted {
    /// A majority of the disks forgets what was synced.
    LyingDisks,
    /// A server that has lost power comes back with an older state of its log.
    OlderLog,
    /// Strict reads do not ask the leader.
    StaleReads,
    /// Transactions are not serializable.
    SnapshotIsolation,
    /// A client repeats a change whose outcome is unknown.
    RepeatedChanges,
}

impl Planted {
    pub(crate) const ALL: [(&'static str, Self); 5] = [
        ("lying-disks", Self::LyingDisks),
        ("older-log", Self::OlderLog),
        ("stale-reads", Self::StaleReads),
        ("snapshot-isolation", Self::SnapshotIsolation),
        ("repeated-changes", Self::RepeatedChanges),
    ];
}

/// What an episode is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// Transactions, at least.
    pub(crate) transactions: u64,
    pub(crate) planted: Option<Planted>,
    /// Print what happens.
    pub(crate) tells: Option<tracing::Level>,
    /// Stop for a debugger when servers do not become equal.
    pub(crate) traps: bool,
}

/// What an episode was.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    /// Milliseconds of virtual time from the death of a leader to a commit that began after it.
    pub(crate) again: Vec<u64>,
    pub(crate) committed: u64,
    pub(crate) refused: u64,
    pub(crate) unknown: u64,
    pub(crate) reads: u64,
    pub(crate) faults: [u64; KINDS.len()],
    pub(crate) works: [u64; WORKS.len()],
    pub(crate) merges: merges::Counts,
    /// Virtual time, in milliseconds.
    pub(crate) milliseconds: u64,
    pub(crate) trace: u64,
    pub(crate) switches: u64,
}

/// What all threads of an episode share. None of them waits with one of the locks.
struct Shared {
    plan: Plan,
    lives: Mutex<Vec<Option<Life>>>,
    history: Mutex<History>,
    /// Transactions that were begun.
    begun: AtomicU64,
    /// All servers show all commits.
    is_settled: AtomicBool,
    /// Why the episode is over before its time.
    failure: Mutex<Option<String>>,
    /// The server that took the last change.
    leader: AtomicU64,
    /// Servers have different partitions.
    is_shared_out: bool,
    merges: Merges,
}

fn now() -> u64 {
    with(|world| world.now())
}

impl Shared {
    fn is_over(&self) -> bool {
        self.begun.load(Ordering::Relaxed) >= self.plan.transactions || lock(&self.failure).is_some()
    }

    fn fail(&self, why: String) {
        lock(&self.failure).get_or_insert(why);
    }

    fn life(&self, server: usize) -> Option<Life> {
        lock(&self.lives).get(server).cloned().flatten()
    }

    fn publish(&self, servers: &[Server]) {
        *lock(&self.lives) = servers.iter().map(|server| server.life.clone()).collect();
    }

    fn tell(&self, what: impl FnOnce() -> String) {
        if self.plan.tells.is_some() {
            tell(&what());
        }
    }
}

/// The first panic of any thread.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Partitions and replicas of a cluster.
type Layout = (usize, usize);

/// Makes a cluster of voters in a folder: each has the whole graph, or its share of several partitions.
fn make(folder: &Path, count: usize, (partitions, replicas): Layout) -> vervet::Result<Vec<PathBuf>> {
    let mut options = InitOptions::on_host(count, partitions, "10.0.0.1", (0, 0));
    for (number, server) in (1..).zip(&mut options.servers) {
        server.address = format!("10.0.0.{number}:7000");
        server.http = None;
    }
    options.replicas = replicas;
    options.voters = options.servers.iter().map(|server| server.name.clone()).collect();
    let database = Database::in_memory();
    if replicas < count {
        first_data(&database)?;
    }
    init(&database, &options, &folder.join("servers"), &Watch::new("simulate"))
}

/// Runs an episode in a folder of its own. The calling process does nothing else.
pub(crate) fn run(plan: Plan, folder: &Path) -> Result<Summary, String> {
    machine::begin(plan.seed);
    std::panic::set_hook(Box::new(|panic| {
        lock(&PANIC).get_or_insert_with(|| panic.to_string());
    }));
    if let Some(level) = plan.tells {
        _ = tracing::subscriber::set_global_default(Telling(level));
    }
    let mut random = Random(plan.seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1);
    let count = if random.one_in(4) { 5 } else { 3 };
    let layout = match random.one_in(4) {
        true => (PARTITIONS, 1 + usize::try_from(random.below(count as u64)).unwrap_or(0)),
        false => (1, count),
    };
    let is_shared_out = layout.1 < count;
    // Servers look every second whether they go over to merged data: fewer transactions, in more time.
    let transactions = if is_shared_out { plan.transactions.div_ceil(2) } else { plan.transactions };
    let plan = Plan { transactions, ..plan };
    let directories = make(folder, count, layout).map_err(|error| format!("no cluster was made: {error}"))?;
    let mut servers: Vec<Server> = directories
        .into_iter()
        .map(|directory| {
            let name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            Server::new(name, directory, random.next(), 970 + random.below(61))
        })
        .collect::<Result<_, _>>()
        .map_err(|error| format!("no disk was made: {error}"))?;
    if plan.planted == Some(Planted::LyingDisks) {
        servers.iter().for_each(|server| server.disk.lie());
    }
    for server in &mut servers {
        server.start();
    }
    let shared = Arc::new(Shared {
        plan,
        lives: Mutex::default(),
        history: Mutex::default(),
        begun: AtomicU64::new(0),
        is_settled: AtomicBool::new(false),
        failure: Mutex::default(),
        leader: AtomicU64::new(0),
        is_shared_out,
        merges: Merges::default(),
    });
    shared.publish(&servers);
    let pace = if is_shared_out { 20 + random.below(4) } else { 14 + random.below(6) };
    let clients: Vec<_> = (1..=4 + random.below(28))
        .map(|number| {
            let random = Random(random.next() | 1);
            let client = Client { shared: Arc::clone(&shared), number, pace, random };
            std::thread::spawn(move || client.run())
        })
        .collect();
    let collecting = Arc::clone(&shared);
    let collector = std::thread::spawn(move || collect(&collecting));
    let mut faults = Faults::new(random.next(), plan.tells.is_some());
    let (folder, tells) = (folder.join("servers"), plan.tells.is_some());
    let mut operator = Operator::new(random.next(), folder, (is_shared_out, layout.1 > 1), tells);
    let has_operator = random.one_in(2);
    let mut keeps = 0;
    while !shared.is_over() {
        std::thread::sleep(LOOK);
        let leader = usize::try_from(shared.leader.load(Ordering::Relaxed)).ok();
        faults.step(&mut servers, leader.filter(|_| operator.is_idle()));
        if let Err(why) = operator.step(&mut servers, leader, has_operator) {
            shared.fail(why);
        }
        keeps += 1;
        if plan.planted == Some(Planted::OlderLog) && keeps % 150 == 0 {
            servers.iter_mut().for_each(|server| server.disk.keep());
        }
        shared.publish(&servers);
        for (at, server) in servers.iter().enumerate() {
            if let Some(why) = server.life.as_ref().and_then(Life::failure)
                && !faults.has_failed(at)
                && operator.is_idle()
            {
                shared.fail(format!("server {at} did not start: {why}"));
            }
        }
    }
    faults.end(&mut servers);
    shared.publish(&servers);
    for client in clients {
        _ = client.join();
    }
    shared.tell(|| "peace".to_owned());
    change_everywhere(&shared, &mut servers, &mut operator);
    if is_shared_out {
        merge_everywhere(&shared, &servers);
        change_everywhere(&shared, &mut servers, &mut operator);
    }
    let ended = settle(&shared, &mut servers, &mut operator);
    shared.is_settled.store(true, Ordering::Relaxed);
    _ = collector.join();
    let panic = lock(&PANIC).take().map(|why| format!("a thread has panicked: {why}"));
    let failure = panic.or_else(|| lock(&shared.failure).take());
    if let Some(why) = failure {
        return Err(why);
    }
    let (last, transactions) = ended?;
    let history = std::mem::take(&mut *lock(&shared.history));
    let judged = judge(&history)?;
    if judged != last || transactions != history.commits.len() as u64 {
        return Err(format!(
            "the servers show {last:?} and {transactions} transactions, and the log says {judged:?} and {}",
            history.commits.len()
        ));
    }
    let milliseconds = now() / 1_000_000;
    let (counts, works) = (faults.counts, operator.counts);
    let mut summary = Summary { faults: counts, works, milliseconds, ..Summary::default() };
    summary.merges = shared.merges.counts();
    for entry in &history.entries {
        match entry.outcome {
            Outcome::Committed(_) => summary.committed += 1,
            Outcome::Refused => summary.refused += 1,
            Outcome::Unknown => summary.unknown += 1,
        }
    }
    summary.again = faults.leader_deaths.iter().filter_map(|at| again(&history, *at)).collect();
    summary.reads = history.looks.len() as u64;
    (summary.trace, summary.switches) = with(|world| world.traced());
    Ok(summary)
}

/// Milliseconds from a time to the end of the first commit that began after it.
fn again(history: &History, at: u64) -> Option<u64> {
    let commits = history.entries.iter().filter(|entry| matches!(entry.outcome, Outcome::Committed(_)));
    let ended = commits.filter(|entry| entry.began >= at).map(|entry| entry.ended).min()?;
    Some((ended - at) / 1_000_000)
}

/// After the last fault, each server takes a change, or sends it on.
fn change_everywhere(shared: &Shared, servers: &mut Vec<Server>, operator: &mut Operator) {
    let end = now() + PEACE_NS;
    let mut at = 0;
    while at < servers.len() && lock(&shared.failure).is_none() {
        if let Err(why) = operator.step(servers, None, false) {
            shared.fail(why);
        }
        start_again(servers);
        shared.publish(servers);
        if now() > end {
            shared.fail(format!("server {at} takes no change after all was mended"));
        }
        let Some(life) = servers[at].life.clone().filter(|_| operator.is_idle() && !servers[at].is_gone)
        else {
            at += usize::from(servers[at].is_gone);
            std::thread::sleep(LOOK);
            continue;
        };
        let number = shared.begun.fetch_add(1, Ordering::Relaxed) + 1;
        let (key, began) = (at % KEYS, now());
        let request = Request::Update { number, client: 0, keys: vec![key], once: false };
        let outcome = match life.ask(request, ANSWER_NS) {
            Some(Answer::Done(done, _)) => done,
            Some(Answer::Unavailable) => Outcome::Refused,
            Some(Answer::Wrong(why)) => {
                shared.fail(format!("the last update at server {at}: {why}"));
                Outcome::Unknown
            }
            _ => Outcome::Unknown,
        };
        at += usize::from(matches!(outcome, Outcome::Committed(_)));
        let (steps, seen) = (vec![Step::Replace(key)], Vec::new());
        lock(&shared.history).entries.push(Entry { number, began, ended: now(), steps, seen, outcome });
    }
}

/// After that, the servers merge all changes, and each goes over to the merged data.
fn merge_everywhere(shared: &Shared, servers: &[Server]) {
    let end = now() + MERGE_NS;
    while lock(&shared.failure).is_none() {
        std::thread::sleep(LOOK * 10);
        let lives = || servers.iter().filter_map(|server| server.life.as_ref());
        let mut is_done = false;
        for life in lives() {
            match life.ask(Request::Merge, ANSWER_NS) {
                Some(Answer::Merged(true)) => shared.merges.note_merge(),
                Some(Answer::Merged(false)) => is_done = true,
                Some(Answer::Wrong(why)) => shared.fail(format!("the last merge: {why}")),
                _ => {}
            }
        }
        let read = |life: &Life| match life.ask(Request::Read { strict: true }, ANSWER_NS) {
            Some(Answer::Registers(registers, source)) => Some((registers, source)),
            _ => None,
        };
        let reads: Vec<_> = lives().map(read).collect();
        for (server, (_, source)) in
            reads.iter().enumerate().filter_map(|(at, read)| Some((at, read.as_ref()?)))
        {
            shared.merges.note_read(server, *source);
        }
        let state = |read: &Option<(Registers, Source)>| {
            read.map(|(registers, source)| (registers, source.merged)).filter(|(_, merged)| *merged > 0)
        };
        let first = reads.first().and_then(state);
        if is_done && first.is_some() && reads.iter().all(|read| state(read) == first) {
            return;
        }
        if now() > end {
            shared.fail(format!("the servers do not go over to merged data: {reads:?}"));
        }
    }
}

/// Starts servers again that did not start, such as those whose disk was full.
fn start_again(servers: &mut [Server]) {
    for server in servers {
        if server.life.as_ref().is_some_and(|life| life.failure().is_some()) {
            server.kill(false, false);
            server.start();
        }
    }
}

/// Whether this server names exactly these voters.
fn has_voters(life: &Life, names: &[&str]) -> bool {
    let Some(Answer::Voters(mut voters)) = life.ask(Request::Voters, ANSWER_NS) else { return false };
    voters.sort_unstable();
    voters == names
}

/// Waits until all servers show the same, and says what.
fn settle(
    shared: &Shared,
    servers: &mut Vec<Server>,
    operator: &mut Operator,
) -> Result<([Option<u64>; KEYS], u64), String> {
    let end = now() + PEACE_NS;
    let mut why = String::new();
    while now() < end && lock(&shared.failure).is_none() {
        std::thread::sleep(LOOK);
        if let Err(why) = operator.step(servers, None, false) {
            shared.fail(why);
        }
        start_again(servers);
        shared.publish(servers);
        let mut names: Vec<&str> =
            servers.iter().filter(|server| !server.is_gone).map(|server| server.name.as_str()).collect();
        names.sort_unstable();
        let all = servers.iter().filter(|server| !server.is_gone).map(|server| {
            let life = server.life.as_ref().filter(|life| has_voters(life, &names))?;
            let Answer::Registers(registers, _) = life.ask(Request::Read { strict: true }, ANSWER_NS)? else {
                return None;
            };
            let Answer::Count(count) = life.ask(Request::Count, ANSWER_NS)? else { return None };
            Some((registers, count))
        });
        let all: Vec<_> = all.collect();
        let known = lock(&shared.history).commits.len() as u64;
        match all.first() {
            Some(Some(first))
                if operator.is_idle() && all.iter().all(|one| *one == Some(*first)) && first.1 == known =>
            {
                return Ok(*first);
            }
            _ => why = format!("the servers show {all:?}, and {known} commits are known"),
        }
    }
    for (at, server) in servers.iter().enumerate() {
        let life = server.life.as_ref();
        shared.tell(|| {
            let status = match life.and_then(|life| life.ask(Request::Status, ANSWER_NS)) {
                Some(Answer::Status(status)) => status,
                _ => "it does not answer".to_owned(),
            };
            let state = life.map(|life| (life.state(), life.failure()));
            format!("server {at}: {state:?} {status}")
        });
    }
    if shared.plan.traps {
        machine::trap();
    }
    shared.fail(format!("the servers are not equal after all was mended: {why}"));
    Err(why)
}

/// Collects the commits from the feeds of the servers.
fn collect(shared: &Shared) {
    let mut at = 0;
    while !shared.is_settled.load(Ordering::Relaxed) && lock(&shared.failure).is_none() {
        std::thread::sleep(LOOK);
        let after = lock(&shared.history).commits.len() as u64;
        let count = lock(&shared.lives).len();
        at = (at + 1) % count.max(1);
        let Some(life) = shared.life(at) else { continue };
        match life.ask(Request::Feed { after }, ANSWER_NS) {
            Some(Answer::Commits(commits)) => {
                let commits: Vec<Commit> =
                    commits.into_iter().skip_while(|commit| commit.timestamp <= after).collect();
                lock(&shared.history).commits.extend(commits);
            }
            Some(Answer::Wrong(why)) => shared.fail(format!("the feed of server {at}: {why}")),
            _ => {}
        }
    }
}

struct Client {
    shared: Arc<Shared>,
    number: u64,
    /// Bits of the number of microseconds between two requests.
    pace: u64,
    random: Random,
}

impl Client {
    fn run(mut self) {
        while !self.shared.is_over() {
            let pause = self.random.magnitude(self.pace);
            std::thread::sleep(Duration::from_micros(pause));
            match self.random.below(8) {
                0 | 1 => self.read(),
                2 => self.update(),
                3 if self.random.one_in(if self.shared.is_shared_out { 16 } else { 64 }) => self.merge(),
                _ => self.transaction(),
            }
        }
    }

    fn server(&mut self) -> usize {
        let count = lock(&self.shared.lives).len() as u64;
        usize::try_from(self.random.below(count)).unwrap_or(0)
    }

    fn read(&mut self) {
        let (server, strict) = (self.server(), self.random.one_in(2));
        let Some(life) = self.shared.life(server) else { return };
        let asks = strict && self.shared.plan.planted != Some(Planted::StaleReads);
        let began = now();
        match life.ask(Request::Read { strict: asks }, ANSWER_NS) {
            Some(Answer::Registers(registers, source)) => {
                if self.shared.is_shared_out {
                    self.shared.merges.note_read(server, source);
                }
                let look = Look { began, ended: now(), strict, server: (server, life.number), registers };
                lock(&self.shared.history).looks.push(look);
            }
            Some(Answer::Wrong(why)) => self.shared.fail(format!("a read at server {server}: {why}")),
            _ => {}
        }
    }

    fn merge(&mut self) {
        let mut server = self.server();
        if self.shared.is_shared_out {
            // The leader merges for all.
            server = usize::try_from(self.shared.leader.load(Ordering::Relaxed)).unwrap_or(server);
        }
        match self.shared.life(server).and_then(|life| life.ask(Request::Merge, ANSWER_NS)) {
            Some(Answer::Merged(true)) if self.shared.is_shared_out => self.shared.merges.note_merge(),
            Some(Answer::Wrong(why)) => self.shared.fail(format!("merging at server {server}: {why}")),
            _ => {}
        }
    }

    fn begin(&self) -> u64 {
        self.shared.begun.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn update(&mut self) {
        let number = self.begin();
        let keys: Vec<usize> = (0..KEYS).filter(|_| self.random.one_in(4)).collect();
        let once = self.random.one_in(2);
        let steps: Vec<Step> = keys.iter().map(|key| Step::Replace(*key)).collect();
        let began = now();
        let repeats = once || self.shared.plan.planted == Some(Planted::RepeatedChanges);
        let mut outcome = Outcome::Refused;
        for _ in 0..if repeats { 3 } else { 1 } {
            let server = self.server();
            let Some(life) = self.shared.life(server) else { continue };
            let request = Request::Update { number, client: self.number, keys: keys.clone(), once };
            match life.ask(request, ANSWER_NS) {
                Some(Answer::Done(Outcome::Refused, _)) | Some(Answer::Unavailable) => {}
                Some(Answer::Done(done, _)) => outcome = done,
                Some(Answer::Wrong(why)) => self.shared.fail(format!("an update at server {server}: {why}")),
                _ => outcome = Outcome::Unknown,
            }
            if matches!(outcome, Outcome::Committed(_)) {
                break;
            }
        }
        let entry = Entry { number, began, ended: now(), steps, seen: Vec::new(), outcome };
        lock(&self.shared.history).entries.push(entry);
    }

    fn transaction(&mut self) {
        let number = self.begin();
        let steps = self.draw();
        let isolation = match self.shared.plan.planted {
            Some(Planted::SnapshotIsolation) => Isolation::Snapshot,
            _ => Isolation::Serializable,
        };
        let began = now();
        let mut server = usize::try_from(self.shared.leader.load(Ordering::Relaxed)).unwrap_or(0);
        if self.random.one_in(16) {
            server = self.server();
        }
        let (mut outcome, mut seen) = (Outcome::Refused, Vec::new());
        if let Some(life) = self.shared.life(server) {
            let request =
                Request::Transaction { number, client: self.number, steps: steps.clone(), isolation };
            match life.ask(request, ANSWER_NS) {
                Some(Answer::Done(done, reads)) => (outcome, seen) = (done, reads),
                Some(Answer::Unavailable) => {}
                Some(Answer::Wrong(why)) => {
                    self.shared.fail(format!("a transaction at server {server}: {why}"))
                }
                _ => outcome = Outcome::Unknown,
            }
        }
        if matches!(outcome, Outcome::Committed(_)) {
            self.shared.leader.store(server as u64, Ordering::Relaxed);
        } else if self.random.one_in(2) {
            let other = self.server() as u64;
            self.shared.leader.store(other, Ordering::Relaxed);
        }
        let entry = Entry { number, began, ended: now(), steps, seen, outcome };
        lock(&self.shared.history).entries.push(entry);
    }

    fn draw(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..=self.random.below(4) {
            let key = usize::try_from(self.random.below(KEYS as u64)).unwrap_or(0);
            steps.push(match self.random.below(8) {
                0 | 1 => Step::Read(key),
                2 => Step::ReadAll,
                3 | 4 => Step::Write(key),
                5 => Step::Replace(key),
                6 => Step::Clear(key),
                _ => Step::Pause(self.random.magnitude(12)),
            });
        }
        steps
    }
}
