//! Three voters in one process, over a network that loses messages and disks that lose what was not synced.

use crate::store::Store;
use crate::{
    AboutChange, Identity, Leadership, Member, MemberRules, Replica, ReplicaOptions, Role, Timing, Transport,
};
use fastrand::Rng;
use openraft::storage::{RaftLogStorage, RaftLogStorageExt};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::{Duration, Instant};
use vervet_env::Simulation;
use vervet_model::{Error, ErrorKind, Result, lock};

const SERVERS: [u64; 3] = [1, 2, 3];

/// Longest wait of a test for something that has to happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A text is refused if no voter has one of at least two letters.
const RULES: MemberRules = MemberRules {
    is_same: |_, _| true,
    renewed: |before, _| before.to_vec(),
    check: |_, after| {
        let has_one = after.iter().any(|member: &Member| member.about.len() > 1);
        if has_one { Ok(()) } else { Err(Error::new(ErrorKind::Unsupported, "no text is left")) }
    },
};

const STEP: Duration = Duration::from_millis(50);

fn timing() -> Timing {
    let milliseconds = Duration::from_millis;
    Timing { heartbeat: milliseconds(100), election: milliseconds(300)..milliseconds(600) }
}

/// The network: voters that are up, and links that are cut.
#[derive(Default)]
struct Net {
    up: Mutex<BTreeMap<u64, Weak<Replica>>>,
    cut: Mutex<BTreeSet<(u64, u64)>>,
}

struct Links {
    net: Arc<Net>,
    from: u64,
}

impl Net {
    fn check(&self, from: u64, to: u64) -> Result<()> {
        let is_cut = lock(&self.cut).contains(&(from, to));
        if is_cut { Err(Error::new(ErrorKind::Unavailable, "the link is cut")) } else { Ok(()) }
    }

    /// Cuts all links of a server, both ways.
    fn isolate(&self, server: u64) {
        let mut cut = lock(&self.cut);
        cut.extend(SERVERS.iter().flat_map(|other| [(server, *other), (*other, server)]));
    }

    fn heal(&self) {
        lock(&self.cut).clear();
    }
}

impl Transport for Links {
    fn introduce(&self, _: u64, _: &[u8]) {}

    fn call(&self, server: u64, request: &[u8], _: Duration) -> Result<Vec<u8>> {
        self.net.check(self.from, server)?;
        let replica = lock(&self.net.up).get(&server).and_then(Weak::upgrade);
        let down = || Error::new(ErrorKind::Unavailable, "the server is down");
        let mut out = Vec::new();
        replica.ok_or_else(down)?.answer(request, &mut out)?;
        self.net.check(server, self.from)?;
        Ok(out)
    }
}

struct Server {
    simulation: Simulation,
    replica: Mutex<Option<Arc<Replica>>>,
    leadership: Mutex<Option<Leadership>>,
}

struct Voters {
    net: Arc<Net>,
    servers: BTreeMap<u64, Server>,
}

impl Voters {
    fn start(seed: u64) -> Self {
        let server = |number: u64| {
            let simulation = Simulation::new(seed.wrapping_mul(10).wrapping_add(number));
            (number, Server { simulation, replica: Mutex::default(), leadership: Mutex::default() })
        };
        let voters = Self { net: Arc::default(), servers: SERVERS.map(server).into() };
        SERVERS.iter().for_each(|server| voters.open(*server, true));
        voters
    }

    fn open(&self, number: u64, may_begin: bool) {
        let server = &self.servers[&number];
        let options = ReplicaOptions {
            environment: server.simulation.environment(),
            directory: PathBuf::from("/raft"),
            identity: Identity { cluster: 5, server: number },
            about: bytes::Bytes::new(),
            rules: RULES,
            voters: SERVERS.into(),
            may_begin,
            timing: timing(),
        };
        let transport = Arc::new(Links { net: Arc::clone(&self.net), from: number });
        let replica = Arc::new(Replica::open(&options, transport).expect("opens"));
        lock(&self.net.up).insert(number, Arc::downgrade(&replica));
        *lock(&server.replica) = Some(replica);
    }

    /// Ends a server as a loss of power does.
    fn crash(&self, number: u64) {
        let server = &self.servers[&number];
        server.simulation.files.crash();
        lock(&self.net.up).remove(&number);
        *lock(&server.leadership) = None;
        let replica = lock(&server.replica).take();
        drop(replica);
    }

    fn replica(&self, number: u64) -> Option<Arc<Replica>> {
        lock(&self.servers[&number].replica).clone()
    }

    /// The leadership of a server, if it leads.
    fn leadership(&self, number: u64) -> Option<Leadership> {
        let replica = self.replica(number)?;
        let Role::Leader { term } = replica.role() else { return None };
        let mut known = lock(&self.servers[&number].leadership);
        if known.as_ref().is_none_or(|known| known.term() != term) {
            *known = replica.lead(term).ok();
        }
        known.clone()
    }

    /// Waits for a leader among the given servers.
    fn leader(&self, among: &[u64]) -> (u64, Leadership) {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            for number in among {
                if let Some(leadership) = self.leadership(*number) {
                    return (*number, leadership);
                }
            }
            let replica = self.replica(among[0]).expect("up");
            replica.wait_for_role(replica.role(), STEP);
        }
        panic!("no leader among {among:?}");
    }

    /// Waits until a server has as many entries as are committed anywhere.
    fn records(&self, number: u64, committed: u64) -> Vec<u64> {
        self.wait(number, committed);
        let replica = self.replica(number).expect("up");
        let (mut records, mut after) = (Vec::new(), 0);
        while after < committed {
            for entry in replica.read(after, 1 << 16).expect("readable") {
                assert_eq!(entry.index, after + 1);
                after = entry.index;
                let number = |payload: &[u8]| u64::from_le_bytes(payload.try_into().expect("a number"));
                records.extend(entry.records.iter().map(|record| number(&record.payload)));
            }
        }
        records
    }

    /// Waits until a server knows that entry `index` is committed.
    fn wait(&self, number: u64, index: u64) {
        let (replica, begun) = (self.replica(number).expect("up"), Instant::now());
        while replica.wait_for_more(index - 1, STEP) < index {
            assert!(begun.elapsed() < PATIENCE, "server {number} does not catch up: {:?}", replica.status());
        }
    }

    /// The records of all servers once they are equal.
    fn all_records(&self) -> Vec<u64> {
        let (leader, leadership) = self.leader(&SERVERS);
        // An entry of this term, so that what earlier leaders left is committed or gone.
        leadership.wait(leadership.append(0, &[], None).expect("appended")).expect("committed");
        let committed = self.replica(leader).expect("up").committed();
        let all: Vec<_> = SERVERS.iter().map(|server| self.records(*server, committed)).collect();
        let length = all.iter().map(Vec::len).min().expect("three");
        assert_eq!(all[0][..length], all[1][..length]);
        assert_eq!(all[0][..length], all[2][..length]);
        all[0][..length].to_vec()
    }
}

fn append(leadership: &Leadership, numbers: std::ops::Range<u64>) -> Vec<u64> {
    let append = |number: u64| leadership.append(1, &[&number.to_le_bytes()], None).expect("appended");
    numbers.map(append).collect()
}

/// A leader dies by a loss of power; another one has all that was acknowledged, and the first one follows it.
#[test]
fn a_leader_dies_and_comes_back() {
    let voters = Voters::start(1);
    let (first, leadership) = voters.leader(&SERVERS);
    let positions = append(&leadership, 0..300);
    leadership.wait(positions[299]).expect("committed");
    voters.crash(first);
    let others: Vec<u64> = SERVERS.into_iter().filter(|server| *server != first).collect();
    let (second, leadership) = voters.leader(&others);
    let positions = append(&leadership, 300..400);
    leadership.wait(positions[99]).expect("committed");
    voters.open(first, false);
    assert_eq!(voters.all_records(), (0..400).collect::<Vec<_>>());
    // Without a majority nothing is committed.
    voters.crash(first);
    let third = others.into_iter().find(|server| *server != second).expect("three");
    voters.crash(third);
    let leadership = voters.leadership(second);
    let index = voters.replica(second).expect("up").read_index(Duration::from_secs(1));
    assert_eq!(index.expect_err("not confirmed").kind(), ErrorKind::Unavailable);
    drop(leadership);
}

/// A leader that is cut off commits nothing more; what it had is unknown, and its records are replaced.
#[test]
fn a_leader_is_cut_off() {
    let voters = Voters::start(2);
    let (first, cut_off) = voters.leader(&SERVERS);
    let positions = append(&cut_off, 0..10);
    cut_off.wait(positions[9]).expect("committed");
    voters.net.isolate(first);
    let lost = append(&cut_off, 1000..1010);
    let others: Vec<u64> = SERVERS.into_iter().filter(|server| *server != first).collect();
    let (_, leadership) = voters.leader(&others);
    let positions = append(&leadership, 10..20);
    leadership.wait(positions[9]).expect("committed");
    voters.net.heal();
    let error = cut_off.wait(lost[9]).expect_err("not committed");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(cut_off.append(1, &[b"more"], None).is_err(), "the leadership has ended");
    assert_eq!(voters.all_records(), (0..20).collect::<Vec<_>>());
}

/// A server that got the entry with its removal, and ended before it knew that this was committed, learns it
/// when it is back.
#[test]
fn a_removed_server_learns_it_when_it_is_back() {
    let voters = Voters::start(8);
    let (leader, leadership) = voters.leader(&SERVERS);
    let last = append(&leadership, 0..10)[9];
    leadership.wait(last).expect("committed");
    let leading = voters.replica(leader).expect("up");
    // As the rules want it.
    let change = AboutChange { server: leader, before: "".into(), after: "leader".into() };
    leading.describe(&[change], PATIENCE).expect("described");
    let removed = SERVERS.into_iter().find(|server| *server != leader).expect("three");
    voters.wait(removed, leading.committed());
    let known = voters.replica(removed).expect("up").committed();
    voters.crash(removed);
    leading.remove(removed, PATIENCE).expect("removed");
    let entries = leading.store.entries(known + 1, leading.committed() + 1, usize::MAX).expect("readable");
    let environment = voters.servers[&removed].simulation.environment();
    let identity = Identity { cluster: 5, server: removed };
    let mut store = Store::open(&environment, Path::new("/raft"), identity, false).expect("its log");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let last = runtime.block_on(store.get_log_state()).expect("readable").last_log_id;
    let news: Vec<_> = entries.into_iter().filter(|entry| Some(entry.log_id) > last).collect();
    assert!(!news.is_empty());
    runtime.block_on(store.blocking_append(news)).expect("appended");
    drop(store);
    voters.open(removed, false);
    let replica = voters.replica(removed).expect("up");
    let begun = Instant::now();
    while !replica.is_dismissed() {
        assert!(begun.elapsed() < PATIENCE, "{:?}", replica.status());
        replica.ask_about_removal(STEP);
        replica.wait_for_role(replica.role(), STEP);
    }
}

/// A leader that gives its leadership up is followed by another one, or by itself in a later term.
#[test]
fn a_leader_steps_down() {
    let voters = Voters::start(31);
    for _ in 0..3 {
        let (leader, leadership) = voters.leader(&SERVERS);
        let last = append(&leadership, 0..3).into_iter().next_back().expect("three");
        leadership.wait(last).expect("committed");
        leadership.end();
        let term = leadership.term();
        voters.replica(leader).expect("it is up").step_down(term);
        let (_, next) = voters.leader(&SERVERS);
        assert!(next.term() > term, "{} behind {term}", next.term());
    }
    assert_eq!(voters.all_records(), [0, 1, 2].repeat(3));
}

/// What is said of voters is the same at all, changes from what the caller knows, and as the rules allow.
#[test]
fn voters_are_described() {
    let voters = Voters::start(29);
    let (leader, _) = voters.leader(&SERVERS);
    let change = |server, before: &'static str, after: &'static str| AboutChange {
        server,
        before: before.into(),
        after: after.into(),
    };
    let describe =
        |by: u64, changes: &[AboutChange]| voters.replica(by).expect("it is up").describe(changes, PATIENCE);
    let follower = SERVERS.into_iter().find(|server| *server != leader).expect("three servers");
    describe(follower, &[change(1, "", "one"), change(2, "", "two")]).expect("described");
    describe(leader, &[change(2, "two", "2")]).expect("described");
    let changed = describe(leader, &[change(2, "two", "zwei")]).expect_err("it is another one by now");
    assert_eq!(changed.kind(), ErrorKind::Conflict, "{changed}");
    let refused = describe(follower, &[change(1, "one", "1")]).expect_err("the rules refuse it");
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
    let unknown = describe(leader, &[change(9, "", "nine")]).expect_err("it is none of them");
    assert_eq!(unknown.kind(), ErrorKind::Unsupported, "{unknown}");
    for server in SERVERS {
        let replica = voters.replica(server).expect("it is up");
        let abouts = || replica.members().into_iter().map(|member| member.about).collect::<Vec<_>>();
        let end = Instant::now() + PATIENCE;
        while abouts() != ["one", "2", ""] && Instant::now() < end {
            std::thread::park_timeout(STEP);
        }
        assert_eq!(abouts(), ["one", "2", ""], "at server {server}");
    }
}

/// Records are published in order, each once, before the waits for them return.
#[test]
fn records_are_published_in_order() {
    let voters = Voters::start(3);
    let (leader, leadership) = voters.leader(&SERVERS);
    let published = Arc::new(Mutex::new(Vec::new()));
    let mut last = 0;
    for number in 0..5000_u64 {
        let published = Arc::clone(&published);
        let publish = Box::new(move || lock(&published).push(number));
        last = leadership.append(1, &[&number.to_le_bytes()], Some(publish)).expect("appended");
    }
    leadership.wait(last).expect("committed");
    assert_eq!(*lock(&published), (0..5000).collect::<Vec<_>>());
    let replica = voters.replica(leader).expect("up");
    assert!(replica.committed() < 1000, "records share entries: {:?}", replica.status());
    // A reader at another server that asks first sees all of them.
    let other = SERVERS.into_iter().find(|server| *server != leader).expect("three");
    let index = voters.replica(other).expect("up").read_index(PATIENCE).expect("confirmed");
    assert_eq!(voters.records(other, index), (0..5000).collect::<Vec<_>>());
}

/// What clients were told.
#[derive(Default)]
struct Told {
    acknowledged: Mutex<Vec<u64>>,
    refused: Mutex<Vec<u64>>,
    more: Condvar,
    count: AtomicU64,
    is_over: AtomicBool,
}

impl Told {
    /// A client: appends numbers of its own wherever there is a leader.
    fn client(&self, voters: &Voters, client: u64) {
        let mut next = client << 32;
        while !self.is_over.load(Ordering::Relaxed) {
            for server in SERVERS {
                let Some(leadership) = voters.leadership(server) else { continue };
                let number = next;
                next += 1;
                let appended = leadership.append(1, &[&number.to_le_bytes()], None);
                match appended.and_then(|position| leadership.wait(position)) {
                    Ok(()) => {
                        lock(&self.acknowledged).push(number);
                        self.count.fetch_add(1, Ordering::Relaxed);
                        self.more.notify_all();
                    }
                    Err(error) if error.message().contains("nothing was changed") => {
                        lock(&self.refused).push(number);
                    }
                    Err(error) => assert!(error.message().contains("unknown"), "{error}"),
                }
            }
            std::thread::yield_now();
        }
    }

    /// Waits for some acknowledgements, or a while.
    fn wait(&self, count: u64, time_max: Duration) {
        let before = self.count.load(Ordering::Relaxed);
        let acknowledged = lock(&self.acknowledged);
        let waited = self.more.wait_timeout_while(acknowledged, time_max, |_| {
            self.count.load(Ordering::Relaxed) < before + count
        });
        drop(waited.expect("not poisoned"));
    }
}

/// Random losses of power and cut links, of one server at a time and sometimes of two, while clients append:
/// what was acknowledged is in all logs, once, what was refused is in none, and the order is the same.
#[test]
fn random_failures_lose_nothing() {
    let rounds = std::env::var("VERVET_RAFT_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    let first = std::env::var("VERVET_RAFT_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(100);
    for seed in first..first + rounds {
        println!("seed {seed}");
        random_failures(seed);
    }
}

fn random_failures(seed: u64) {
    let mut random = Rng::with_seed(seed);
    let voters = Voters::start(seed);
    let told = Told::default();
    std::thread::scope(|scope| {
        for client in 1..=4 {
            let (told, voters) = (&told, &voters);
            scope.spawn(move || told.client(voters, client));
        }
        for _ in 0..8 {
            told.wait(random.u64(1..300), Duration::from_secs(5));
            let server = random.choice(SERVERS).expect("three");
            let pause = Duration::from_millis(random.u64(1..1500));
            match random.u8(..6) {
                0 | 1 => {
                    voters.crash(server);
                    told.wait(random.u64(1..300), pause);
                    voters.open(server, false);
                }
                2 | 3 => {
                    voters.net.isolate(server);
                    told.wait(random.u64(1..300), pause);
                    voters.net.heal();
                }
                4 => {
                    let other = random.choice(SERVERS).expect("three");
                    lock(&voters.net.cut).insert((server, other));
                    told.wait(random.u64(1..300), pause);
                    voters.net.heal();
                }
                _ => {
                    let others = SERVERS.into_iter().filter(|other| *other != server);
                    others.clone().for_each(|other| voters.crash(other));
                    told.wait(1, pause);
                    others.for_each(|other| voters.open(other, false));
                }
            }
        }
        told.wait(50, Duration::from_secs(20));
        told.is_over.store(true, Ordering::Relaxed);
    });
    let records = voters.all_records();
    let distinct: BTreeSet<u64> = records.iter().copied().collect();
    assert_eq!(distinct.len(), records.len(), "seed {seed}: a record is there twice");
    let acknowledged = lock(&told.acknowledged);
    let lost: Vec<_> = acknowledged.iter().filter(|number| !distinct.contains(number)).collect();
    assert!(lost.is_empty(), "seed {seed}: lost {lost:?} of {}", acknowledged.len());
    let refused = lock(&told.refused);
    let kept: Vec<_> = refused.iter().filter(|number| distinct.contains(number)).collect();
    assert!(kept.is_empty(), "seed {seed}: refused, and there: {kept:?}");
    // The records of a client are in its order.
    for client in 1..=4 {
        let own: Vec<_> = records.iter().filter(|number| **number >> 32 == client).collect();
        assert!(own.is_sorted(), "seed {seed}");
    }
    println!(
        "seed {seed}: {} acknowledged, {} refused, {} in the log",
        acknowledged.len(),
        refused.len(),
        records.len()
    );
}

/// Logs drop entries whose effects are kept elsewhere. A voter that lacks dropped entries is told so, gets
/// those behind them, and takes part in elections.
#[test]
fn logs_are_compacted() {
    let voters = Voters::start(11);
    let (first, _) = voters.leader(&SERVERS);
    let others: Vec<u64> = SERVERS.into_iter().filter(|server| *server != first).collect();
    let (away, other) = (others[0], others[1]);
    // Commits entries, one by one, at whichever server leads; returns the index of the last one.
    let commit = |among: &[u64], count: usize| {
        let (mut done, mut index, begun) = (0, 0, Instant::now());
        while done < count {
            assert!(begun.elapsed() < PATIENCE, "nothing is committed");
            let (leader, leadership) = voters.leader(among);
            let appended = leadership.append(1, &[&7_u64.to_le_bytes()], None);
            if appended.and_then(|position| leadership.wait(position)).is_ok() {
                done += 1;
                index = voters.replica(leader).expect("up").committed();
            }
        }
        index
    };
    commit(&SERVERS, 10);
    voters.crash(away);
    let committed = commit(&[first, other], 40);
    for server in [first, other] {
        voters.wait(server, committed);
        let replica = voters.replica(server).expect("up");
        assert_eq!(replica.purged(), None);
        let error = replica.compact(u64::MAX, None).expect_err("not committed");
        assert_eq!(error.kind(), ErrorKind::Input);
        replica.compact(committed - 10, Some(committed - 20)).expect("compacted");
        replica.compact(committed - 10, Some(committed - 20)).expect("twice is once");
        let begun = Instant::now();
        while replica.purged() != Some(committed - 20) {
            assert!(begun.elapsed() < PATIENCE, "{:?}", replica.purged());
            std::thread::yield_now();
        }
        let entries = replica.read(0, usize::MAX).expect("readable");
        assert_eq!(entries.first().expect("some").index, committed - 19);
    }
    // After a start from the disk, too.
    voters.crash(other);
    voters.open(other, false);
    assert_eq!(voters.replica(other).expect("up").purged(), Some(committed - 20));
    let last = commit(&[first, other], 10);
    voters.open(away, false);
    voters.wait(away, last);
    let replica = voters.replica(away).expect("up");
    let purged = replica.purged().expect("it lacks entries");
    assert!((committed - 20..=committed - 10).contains(&purged), "{purged} of {committed}");
    let indexes: Vec<u64> =
        replica.read(purged, usize::MAX).expect("readable").iter().map(|entry| entry.index).collect();
    assert_eq!(indexes, (purged + 1..=*indexes.last().expect("some")).collect::<Vec<_>>());
    drop(replica);
    // It votes, and can lead, also after a start.
    voters.crash(away);
    voters.open(away, false);
    voters.crash(first);
    commit(&[away, other], 1);
}
