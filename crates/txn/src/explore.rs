//! Model checking of the commit path: `shuttle` decides every thread switch.
//!
//! Switches happen at every lock, version pointer and wait of this crate, of the log, and of the terms. Run
//! with `cargo test -p vervet-txn --features shuttle --lib explore`.
//!
//! # Shape
//! Each writer makes some commits: half of them increment a shared counter, so that they conflict, the others
//! do not. Every commit adds a mark of its own, a new term, in two statements. Concurrently a reader inspects
//! published versions, a thread makes checkpoints, and optionally the power or a file operation fails.
//! # Properties of every schedule
//! 1. No thread waits for ever (`shuttle` reports a deadlock), and without a fault the only errors are
//!    conflicts.
//! 2. A version with the timestamp `t` holds the marks of exactly `t` commits, whole ones, and the counter
//!    equals the number of incrementing commits: no update is lost, at either isolation level.
//! 3. A reader sees timestamps that never decrease; of any two versions read, the earlier one is part of the
//!    later one: there is one order of commits, that of the timestamps that `commit` returned.
//! 4. A commit is visible when it returns, and to every transaction that begins later.
//! 5. At the level `sync` everything read or acknowledged by some moment survives a loss of power at that
//!    moment: the reader therefore copies the durable state of the disk whenever it has read a new version.
//!    The state after reopening the directory is one of these states, or a later one.
//!
//! Schedules are random, or PCT (see the log's `explore.rs`). Memory is sequentially consistent here; the
//! thread sanitizer and the tests with real threads cover relaxed counters.

use crate::{Durability, Isolation, Options, Published, Transaction, Transactions};
use oxrdf::{Literal, NamedNode};
use shuttle::rand::Rng;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::thread;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use vervet_delta::Version;
use vervet_env::{Environment, Fault, SimulatedFiles, Simulation};
use vervet_model::{Direction, ErrorKind, Id, Result, Statement, lock};
use vervet_snapshot::{EntryFilter, Snapshot};

const DIRECTORY: &str = "/db";
/// Distance between the first marks of two writers.
const WRITER: u64 = 100;

/// Maximum pause before a checkpoint.
const CHECKPOINT_YIELDS_MAX: u64 = 80;
/// Latest moment of a loss of power.
const POWER_YIELDS_MAX: u64 = 200;

/// Fault of a schedule.
#[derive(Clone, Copy, PartialEq)]
enum Disturbance {
    None,
    /// Loss of power at some moment.
    Power,
    /// The file operation with this number, counted from the begin, fails.
    Fault(u64),
}

#[derive(Clone, Copy)]
struct Case {
    /// `None`: a graph in memory.
    durability: Option<Durability>,
    isolation: Isolation,
    pre_read: bool,
    writers: u64,
    commits: u64,
    checkpoints: u64,
    /// Maximum pause between two reads of the reader, in yields.
    look_yields_max: u64,
    disturbance: Disturbance,
}

const SYNC: Case = Case {
    durability: Some(Durability::Sync),
    isolation: Isolation::Serializable,
    pre_read: true,
    writers: 3,
    commits: 2,
    checkpoints: 0,
    look_yields_max: 40,
    disturbance: Disturbance::None,
};

/// Ids of the shared terms.
#[derive(Clone, Copy)]
struct SharedIds {
    counter: Id,
    count: Id,
    half: Id,
}

/// Content of a version.
#[derive(Clone, PartialEq, Debug)]
struct Content {
    count: u64,
    marks: BTreeSet<u64>,
}

/// Versions read, and commits acknowledged.
#[derive(Default)]
struct Observations {
    seen: Mutex<BTreeMap<u64, Content>>,
    /// The durable state of the disk when a version with this timestamp was first read.
    durable_states: Mutex<Vec<(u64, SimulatedFiles)>>,
    /// Timestamps and marks of returned commits.
    committed: Mutex<BTreeMap<u64, u64>>,
    conflicts: AtomicU64,
    /// Number of writers still running.
    running: AtomicU64,
}

fn iri(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("urn:{name}"))
}

fn number(value: u64) -> Literal {
    Literal::from(i64::try_from(value).expect("small"))
}

/// The name of a term after `urn:`, or its digits.
fn text(version: &Version, id: Id) -> String {
    let mut text = String::new();
    let mut read = |parts: vervet_model::TermParts<'_>| parts.write_str(&mut text);
    version.read_term(id, &mut String::new(), &mut read).expect("a term that is used is known");
    text.trim_start_matches("urn:").to_owned()
}

/// Reads a version; each of its marks must be whole.
fn content(version: &Version) -> Content {
    let (mut counts, mut halves) = (Vec::new(), BTreeMap::<u64, u64>::new());
    for statement in version.statements() {
        let statement = statement.expect("sound");
        let [subject, object] = [statement.subject, statement.object].map(|id| text(version, id));
        let object: u64 = object.parse().expect("a number");
        match subject.strip_prefix("mark") {
            Some(mark) => *halves.entry(mark.parse().expect("a number")).or_default() += object,
            None => counts.push(object),
        }
    }
    assert!(halves.values().all(|sum| *sum == 1 + 2), "a commit in part: {halves:?}");
    assert!(counts.len() <= 1, "the counter has {counts:?}");
    Content { count: counts.first().copied().unwrap_or(0), marks: halves.into_keys().collect() }
}

impl Observations {
    /// Checks and records the content of a version.
    fn see(&self, published: &Published) -> u64 {
        let (timestamp, found) = (published.timestamp.0, content(&published.version));
        assert_eq!(found.marks.len() as u64, timestamp, "one commit for each timestamp: {found:?}");
        let counted = found.marks.iter().filter(|mark| mark.is_multiple_of(2)).count();
        assert_eq!(found.count, counted as u64, "an update was lost: {found:?}");
        let mut seen = lock(&self.seen);
        if let Some(other) = seen.insert(timestamp, found.clone()) {
            assert_eq!(other, found, "two graphs at timestamp {timestamp}");
        }
        timestamp
    }

    /// Reads the published version, and copies the durable state of the disk if the version is new.
    fn look(&self, graph: &Transactions, files: &SimulatedFiles, last: u64) -> u64 {
        let published = graph.current();
        let left = files.after_power_loss();
        let timestamp = self.see(&published);
        assert!(timestamp >= last, "timestamps do not decrease");
        if timestamp > last {
            lock(&self.durable_states).push((timestamp, left));
        }
        timestamp
    }

    /// Checks that there is one order of commits, that of their timestamps.
    fn is_one_history(&self) {
        let (seen, committed) = (lock(&self.seen), lock(&self.committed));
        for ((one, before), (other, after)) in seen.iter().zip(seen.iter().skip(1)) {
            assert!(before.marks.is_subset(&after.marks), "{one}: {before:?}, {other}: {after:?}");
        }
        for (timestamp, mark) in &*committed {
            for (at, found) in &*seen {
                assert_eq!(found.marks.contains(mark), at >= timestamp, "mark {mark} of {timestamp} at {at}");
            }
        }
    }
}

/// One commit with this mark; an even mark increments the counter.
fn commit(graph: &Arc<Transactions>, case: Case, ids: SharedIds, mark: u64) -> Result<u64> {
    let mut transaction = graph.begin(case.isolation)?;
    if mark.is_multiple_of(2) {
        let before = read_count(&transaction, ids)?;
        let statement = |count| -> Result<Statement> {
            let object = transaction.intern(number(count).as_ref().into())?;
            let SharedIds { counter: subject, count: predicate, .. } = ids;
            Ok(Statement { subject, predicate, object, graph: Id::UNBOUND, edge: Id::UNBOUND })
        };
        let [old, new] = [statement(before)?, statement(before + 1)?];
        transaction.remove(&old)?;
        transaction.insert(&new)?;
    }
    let subject = transaction.intern(iri(&format!("mark{mark}")).as_ref().into())?;
    for half in [1, 2] {
        let object = transaction.intern(number(half).as_ref().into())?;
        let predicate = ids.half;
        let statement = Statement { subject, predicate, object, graph: Id::UNBOUND, edge: Id::UNBOUND };
        transaction.insert_all(&[statement])?;
    }
    transaction.commit().map(|timestamp| timestamp.0)
}

fn read_count(transaction: &Transaction, ids: SharedIds) -> Result<u64> {
    let view = transaction.view()?;
    let Some(segment) = view.as_snapshot().segment(ids.count, Direction::Out)? else { return Ok(0) };
    let mut found = Vec::new();
    segment.neighbours(ids.counter, EntryFilter::ALL, &mut found)?;
    let version = transaction.version()?;
    Ok(found.first().map_or(0, |id| text(version, *id).parse().expect("a number")))
}

/// Yields for a while, at most until the end of all writers.
fn pause(yields_max: u64, observations: &Observations) {
    for _ in 0..shuttle::rand::thread_rng().gen_range(0..yields_max) {
        if observations.running.load(Ordering::Relaxed) == 0 {
            return;
        }
        thread::yield_now();
    }
}

/// Makes all commits with retries, as the facade's `transact` does.
fn write(
    graph: &Arc<Transactions>,
    case: Case,
    ids: SharedIds,
    writer: u64,
    observations: &Observations,
) -> Result<()> {
    let mut last = 0;
    for one in 0..case.commits {
        let mark = WRITER * writer + one;
        let timestamp = loop {
            match commit(graph, case, ids, mark) {
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    observations.conflicts.fetch_add(1, Ordering::Relaxed);
                    assert!(mark.is_multiple_of(2), "marks do not conflict: {error}");
                    // Without pre-read the other commit may not be durable yet; PCT would spin here.
                    thread::yield_now();
                }
                done => break done?,
            }
        };
        assert!(timestamp > last, "timestamps go up");
        last = timestamp;
        let before = lock(&observations.committed).insert(timestamp, mark);
        assert_eq!(before, None, "two commits have the timestamp {timestamp}");
        assert!(graph.current().timestamp.0 >= timestamp, "visible when it returns");
        let next = graph.begin(case.isolation)?;
        assert!(next.began().0 >= timestamp, "visible to later transactions");
    }
    Ok(())
}

fn open(environment: &Environment, case: Case) -> Result<Arc<Transactions>> {
    let options = Options {
        durability: case.durability.unwrap_or_default(),
        pre_read: case.pre_read,
        checkpoints: false,
        ..Options::default()
    };
    match case.durability {
        Some(_) => Transactions::open_or_create(environment.clone(), Path::new(DIRECTORY), options),
        None => Transactions::in_memory(environment.clone(), options),
    }
}

/// One schedule.
fn run(case: Case) {
    let simulation = Simulation::new(1);
    let graph = open(&simulation.environment(), case).expect("opens");
    let ids = {
        let first = graph.begin(case.isolation).expect("begins");
        let id = |name: &str| first.intern(iri(name).as_ref().into()).expect("new");
        SharedIds { counter: id("counter"), count: id("count"), half: id("half") }
    };
    if let Disturbance::Fault(n) = case.disturbance {
        simulation.files.fail_write(n, Fault::Io);
    }
    let observations = Arc::new(Observations::default());
    let mut threads = Vec::new();
    for writer in 0..case.writers {
        let (graph, observations) = (Arc::clone(&graph), Arc::clone(&observations));
        observations.running.fetch_add(1, Ordering::Relaxed);
        threads.push(thread::spawn(move || {
            let done = write(&graph, case, ids, writer, &observations);
            observations.running.fetch_sub(1, Ordering::Relaxed);
            done
        }));
    }
    {
        let (graph, observations, files) =
            (Arc::clone(&graph), Arc::clone(&observations), Arc::clone(&simulation.files));
        threads.push(thread::spawn(move || {
            let mut last = 0;
            while observations.running.load(Ordering::Relaxed) > 0 {
                last = observations.look(&graph, &files, last);
                pause(case.look_yields_max, &observations);
            }
            Ok(())
        }));
    }
    if case.checkpoints > 0 {
        let (graph, observations) = (Arc::clone(&graph), Arc::clone(&observations));
        threads.push(thread::spawn(move || {
            (0..case.checkpoints).try_for_each(|_| {
                // Otherwise there is nothing to merge yet.
                pause(CHECKPOINT_YIELDS_MAX, &observations);
                graph.checkpoint().map(drop)
            })
        }));
    }
    // Commits that must survive the loss of power.
    let mut kept = None;
    if case.disturbance == Disturbance::Power {
        pause(POWER_YIELDS_MAX, &observations);
        simulation.files.crash_losing_all();
        kept = Some((lock(&observations.seen).clone(), lock(&observations.committed).clone()));
    }
    let results: Vec<Result<()>> = threads.into_iter().map(|one| one.join().expect("no panic")).collect();
    let all_well = results.iter().all(Result::is_ok);
    assert!(all_well || case.disturbance != Disturbance::None, "failure without a fault: {results:?}");
    if kept.is_none() {
        observations.see(&graph.current());
    }
    observations.is_one_history();
    let (seen, committed) =
        kept.unwrap_or_else(|| (lock(&observations.seen).clone(), lock(&observations.committed).clone()));
    assert!(
        !all_well
            || case.disturbance != Disturbance::None
            || committed.len() as u64 == case.writers * case.commits
    );
    drop(graph);
    if case.durability.is_some() {
        if case.durability == Some(Durability::Sync) {
            for (seen, left) in std::mem::take(&mut *lock(&observations.durable_states)) {
                let environment = Environment { files: Arc::new(left), ..simulation.environment() };
                let found = open(&environment, case).expect("opens after the loss of power").current();
                assert!(
                    found.timestamp.0 >= seen,
                    "{} commits would be left, {seen} were seen",
                    found.timestamp
                );
            }
        }
        if case.durability == Some(Durability::Sync) {
            simulation.files.crash_losing_all();
        }
        let again = open(&simulation.environment(), case).expect("opens again");
        let found = again.current();
        let timestamp = observations.see(&found);
        observations.is_one_history();
        let promised = seen.keys().chain(committed.keys()).max().copied().unwrap_or(0);
        assert!(timestamp >= promised, "{timestamp} commits are left, {promised} were promised");
    }
}

fn explore(case: Case, random: usize, pct: usize) {
    fn with(scheduler: impl Scheduler + 'static, case: Case) {
        let mut config = shuttle::Config::new();
        // Opening a database exceeds shuttle's default stack.
        config.stack_size = 1 << 20;
        shuttle::Runner::new(scheduler, config).run(move || run(case));
    }
    with(RandomScheduler::new(random), case);
    with(PctScheduler::new(3, pct), case);
}

#[test]
fn no_schedule_breaks_the_order_of_commits() {
    for pre_read in [true, false] {
        for isolation in [Isolation::Serializable, Isolation::Snapshot] {
            explore(Case { pre_read, isolation, ..SYNC }, 500, 300);
            explore(Case { pre_read, isolation, durability: None, ..SYNC }, 500, 300);
        }
    }
    explore(Case { durability: Some(Durability::None), ..SYNC }, 500, 300);
}

#[test]
fn no_schedule_breaks_a_checkpoint() {
    for durability in [Some(Durability::Sync), Some(Durability::None), None] {
        explore(Case { durability, checkpoints: 2, ..SYNC }, 500, 300);
    }
}

/// Commits that do not wait for each other, and a reader that reads continuously: a version published by a
/// checkpoint is durable.
#[test]
fn no_schedule_shows_by_a_checkpoint_what_could_be_lost() {
    explore(Case { writers: 2, commits: 3, checkpoints: 2, look_yields_max: 3, ..SYNC }, 1500, 1500);
}

#[test]
fn no_schedule_loses_what_was_seen_when_the_power_fails() {
    for checkpoints in [0, 1] {
        for pre_read in [true, false] {
            explore(Case { checkpoints, pre_read, disturbance: Disturbance::Power, ..SYNC }, 1000, 500);
        }
    }
}

#[test]
fn no_schedule_breaks_where_the_files_fail() {
    for checkpoints in [0, 1] {
        for fault in 0..24 {
            explore(Case { checkpoints, disturbance: Disturbance::Fault(fault), ..SYNC }, 60, 40);
        }
    }
}
