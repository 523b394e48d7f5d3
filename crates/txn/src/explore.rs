//! Schedules: the commit path under thread switches that `shuttle` decides, at every lock, every pointer to a
//! version and every wait: of this crate, of the log, and of the terms. `cargo test -p vervet-txn --features
//! shuttle --lib explore`.
//!
//! # Shape
//! Writers each make some commits: half of them count a common counter up, so that they conflict, the others
//! do not. Every commit adds a mark of its own, a term that nobody knew, in two statements. Beside them a
//! reader looks at what is published, somebody makes checkpoints, and maybe the power fails or an operation
//! on the files does.
//! # What every schedule must show
//! 1. Nobody waits for ever (`shuttle` reports a deadlock), and nothing fails by itself but for a conflict.
//! 2. A version with the timestamp `t` holds the marks of exactly `t` commits, whole ones, and the counter is
//!    the number of those that counted: so no update is lost, at either isolation level.
//! 3. Whoever looks sees timestamps that never go down; of any two versions that anybody has seen the earlier
//!    one is part of the later one: there is one order of commits, and it is that of the timestamps that
//!    `commit` returned.
//! 4. A commit is visible when it returns, and to whoever begins from then on.
//! 5. At the level `sync` all that was seen or acknowledged by some moment is in what a loss of power at that
//!    moment leaves: so the reader copies the disk as it would be then, whenever it has seen something new.
//!    And what is there when the directory is opened again is one of those states, or a later one.
//!
//! Random schedules, and PCT (see the log's `explore.rs`). Memory is sequentially consistent here: that
//! relaxed counters do not matter is for the thread sanitizer and the tests with real threads.

use crate::{Durability, Isolation, Options, Published, Transaction, Transactions};
use oxrdf::{Literal, NamedNode};
use shuttle::rand::Rng;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::thread;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use vervet_delta::Version;
use vervet_env::{Environment, Fault, SimulatedFiles, Simulation};
use vervet_model::{Direction, ErrorKind, Id, Result, Statement};
use vervet_snapshot::{EntryFilter, GraphFilter, Snapshot};

const DIRECTORY: &str = "/db";
const EVERY: EntryFilter = EntryFilter { graph: GraphFilter::Any, parallel: true };
/// The first marks of writers are apart by this.
const WRITER: u64 = 100;

/// The longest pause before a checkpoint.
const CHECKPOINT_YIELDS_MAX: u64 = 80;
/// The latest moment of a loss of power.
const POWER_YIELDS_MAX: u64 = 200;

/// What can go wrong meanwhile.
#[derive(Clone, Copy, PartialEq)]
enum Accident {
    None,
    /// The power fails at some moment.
    Power,
    /// The operation on files with this number, from the begin on, fails.
    Fault(u64),
}

#[derive(Clone, Copy)]
struct Case {
    /// `None`: in memory.
    durability: Option<Durability>,
    isolation: Isolation,
    pre_read: bool,
    writers: u64,
    commits: u64,
    checkpoints: u64,
    /// The longest pause between two looks of the reader, in steps of it.
    look_yields_max: u64,
    accident: Accident,
}

const SYNC: Case = Case {
    durability: Some(Durability::Sync),
    isolation: Isolation::Serializable,
    pre_read: true,
    writers: 3,
    commits: 2,
    checkpoints: 0,
    look_yields_max: 40,
    accident: Accident::None,
};

/// The terms that all know.
#[derive(Clone, Copy)]
struct Known {
    counter: Id,
    count: Id,
    half: Id,
}

/// What a version holds.
#[derive(Clone, PartialEq, Debug)]
struct Content {
    count: u64,
    marks: BTreeSet<u64>,
}

/// What has been seen, and what was acknowledged.
#[derive(Default)]
struct Told {
    seen: Mutex<BTreeMap<u64, Content>>,
    /// What a loss of power would have left when a version with this timestamp was first seen.
    left: Mutex<Vec<(u64, SimulatedFiles)>>,
    /// Timestamps and marks of commits that returned.
    committed: Mutex<BTreeMap<u64, u64>>,
    conflicts: AtomicU64,
    /// How many writers have not ended.
    running: AtomicU64,
}

fn held<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn iri(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("urn:{name}"))
}

fn number(value: u64) -> Literal {
    Literal::from(i64::try_from(value).expect("small"))
}

/// The name of a term behind `urn:`, or its digits.
fn text(version: &Version, id: Id) -> String {
    let mut text = String::new();
    let mut read = |parts: vervet_model::TermParts<'_>| parts.write_str(&mut text);
    version.read_term(id, &mut String::new(), &mut read).expect("a term that is used is known");
    text.trim_start_matches("urn:").to_owned()
}

/// Reads a version, each mark of which must be whole.
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

impl Told {
    /// Looks at a version.
    fn see(&self, published: &Published) -> u64 {
        let (timestamp, found) = (published.timestamp.0, content(&published.version));
        assert_eq!(found.marks.len() as u64, timestamp, "one commit for each timestamp: {found:?}");
        let counted = found.marks.iter().filter(|mark| mark.is_multiple_of(2)).count();
        assert_eq!(found.count, counted as u64, "an update was lost: {found:?}");
        let mut seen = held(&self.seen);
        if let Some(other) = seen.insert(timestamp, found.clone()) {
            assert_eq!(other, found, "two graphs at timestamp {timestamp}");
        }
        timestamp
    }

    /// Looks at what is published, and copies what a loss of power would leave if that is new.
    fn look(&self, graph: &Transactions, files: &SimulatedFiles, last: u64) -> u64 {
        let published = graph.current();
        let left = files.after_power_loss();
        let timestamp = self.see(&published);
        assert!(timestamp >= last, "time goes on");
        if timestamp > last {
            held(&self.left).push((timestamp, left));
        }
        timestamp
    }

    /// There is one order, and it is that of timestamps.
    fn is_one_history(&self) {
        let (seen, committed) = (held(&self.seen), held(&self.committed));
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

/// One commit with this mark, an even one of which counts.
fn commit(graph: &Arc<Transactions>, case: Case, known: Known, mark: u64) -> Result<u64> {
    let mut transaction = graph.begin(case.isolation)?;
    if mark.is_multiple_of(2) {
        let before = read_count(&transaction, known)?;
        let statement = |count| -> Result<Statement> {
            let object = transaction.intern(number(count).as_ref().into())?;
            let Known { counter: subject, count: predicate, .. } = known;
            Ok(Statement { subject, predicate, object, graph: Id::UNBOUND, edge: Id::UNBOUND })
        };
        let [old, new] = [statement(before)?, statement(before + 1)?];
        transaction.remove(&old)?;
        transaction.insert(&new)?;
    }
    let subject = transaction.intern(iri(&format!("mark{mark}")).as_ref().into())?;
    for half in [1, 2] {
        let object = transaction.intern(number(half).as_ref().into())?;
        let predicate = known.half;
        let statement = Statement { subject, predicate, object, graph: Id::UNBOUND, edge: Id::UNBOUND };
        transaction.insert_all(&[statement])?;
    }
    transaction.commit().map(|timestamp| timestamp.0)
}

fn read_count(transaction: &Transaction, known: Known) -> Result<u64> {
    let view = transaction.view()?;
    let Some(segment) = view.as_snapshot().segment(known.count, Direction::Out)? else { return Ok(0) };
    let mut found = Vec::new();
    segment.neighbours(known.counter, EVERY, &mut found)?;
    let version = transaction.version()?;
    Ok(found.first().map_or(0, |id| text(version, *id).parse().expect("a number")))
}

/// Lets others run for a while, up to the end of all writers.
fn pause(yields_max: u64, told: &Told) {
    for _ in 0..shuttle::rand::thread_rng().gen_range(0..yields_max) {
        if told.running.load(Ordering::Relaxed) == 0 {
            return;
        }
        thread::yield_now();
    }
}

/// Commits until all are in, as the facade's `transact` does.
fn write(graph: &Arc<Transactions>, case: Case, known: Known, writer: u64, told: &Told) -> Result<()> {
    let mut last = 0;
    for one in 0..case.commits {
        let mark = WRITER * writer + one;
        let timestamp = loop {
            match commit(graph, case, known, mark) {
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    told.conflicts.fetch_add(1, Ordering::Relaxed);
                    assert!(mark.is_multiple_of(2), "marks have nothing to do with each other: {error}");
                    // Without pre-read the other one may be on its way to the disk; PCT would spin here.
                    thread::yield_now();
                }
                done => break done?,
            }
        };
        assert!(timestamp > last, "timestamps go up");
        last = timestamp;
        let before = held(&told.committed).insert(timestamp, mark);
        assert_eq!(before, None, "two commits have the timestamp {timestamp}");
        assert!(graph.current().timestamp.0 >= timestamp, "visible when it returns");
        let next = graph.begin(case.isolation)?;
        assert!(next.began().0 >= timestamp, "visible to who begins then");
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
    let known = {
        let first = graph.begin(case.isolation).expect("begins");
        let id = |name: &str| first.intern(iri(name).as_ref().into()).expect("new");
        Known { counter: id("counter"), count: id("count"), half: id("half") }
    };
    if let Accident::Fault(n) = case.accident {
        simulation.files.fail_write(n, Fault::Io);
    }
    let told = Arc::new(Told::default());
    let mut threads = Vec::new();
    for writer in 0..case.writers {
        let (graph, told) = (Arc::clone(&graph), Arc::clone(&told));
        told.running.fetch_add(1, Ordering::Relaxed);
        threads.push(thread::spawn(move || {
            let done = write(&graph, case, known, writer, &told);
            told.running.fetch_sub(1, Ordering::Relaxed);
            done
        }));
    }
    {
        let (graph, told, files) = (Arc::clone(&graph), Arc::clone(&told), Arc::clone(&simulation.files));
        threads.push(thread::spawn(move || {
            let mut last = 0;
            while told.running.load(Ordering::Relaxed) > 0 {
                last = told.look(&graph, &files, last);
                pause(case.look_yields_max, &told);
            }
            Ok(())
        }));
    }
    if case.checkpoints > 0 {
        let (graph, told) = (Arc::clone(&graph), Arc::clone(&told));
        threads.push(thread::spawn(move || {
            (0..case.checkpoints).try_for_each(|_| {
                // Else there is nothing to merge yet.
                pause(CHECKPOINT_YIELDS_MAX, &told);
                graph.checkpoint().map(drop)
            })
        }));
    }
    // What must be there after the power has failed.
    let mut kept = None;
    if case.accident == Accident::Power {
        pause(POWER_YIELDS_MAX, &told);
        simulation.files.crash_losing_all();
        kept = Some((held(&told.seen).clone(), held(&told.committed).clone()));
    }
    let results: Vec<Result<()>> = threads.into_iter().map(|one| one.join().expect("no panic")).collect();
    let all_well = results.iter().all(Result::is_ok);
    assert!(all_well || case.accident != Accident::None, "nothing fails by itself: {results:?}");
    if kept.is_none() {
        told.see(&graph.current());
    }
    told.is_one_history();
    let (seen, committed) = kept.unwrap_or_else(|| (held(&told.seen).clone(), held(&told.committed).clone()));
    assert!(
        !all_well || case.accident != Accident::None || committed.len() as u64 == case.writers * case.commits
    );
    drop(graph);
    if case.durability.is_some() {
        if case.durability == Some(Durability::Sync) {
            for (seen, left) in std::mem::take(&mut *held(&told.left)) {
                let environment = Environment { files: Arc::new(left), ..simulation.environment() };
                let found = open(&environment, case).expect("opens what is left").current();
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
        let timestamp = told.see(&found);
        told.is_one_history();
        let promised = seen.keys().chain(committed.keys()).max().copied().unwrap_or(0);
        assert!(timestamp >= promised, "{timestamp} commits are left, {promised} were promised");
    }
}

fn explore(case: Case, random: usize, pct: usize) {
    fn with(scheduler: impl Scheduler + 'static, case: Case) {
        let mut config = shuttle::Config::new();
        // Opening a database takes more than shuttle's stacks.
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

/// Commits that do not wait for each other, and somebody who looks all the time: what a checkpoint publishes
/// is durable.
#[test]
fn no_schedule_shows_by_a_checkpoint_what_could_be_lost() {
    explore(Case { writers: 2, commits: 3, checkpoints: 2, look_yields_max: 3, ..SYNC }, 1500, 1500);
}

#[test]
fn no_schedule_loses_what_was_seen_when_the_power_fails() {
    for checkpoints in [0, 1] {
        for pre_read in [true, false] {
            explore(Case { checkpoints, pre_read, accident: Accident::Power, ..SYNC }, 1000, 500);
        }
    }
}

#[test]
fn no_schedule_breaks_where_the_files_fail() {
    for checkpoints in [0, 1] {
        for fault in 0..24 {
            explore(Case { checkpoints, accident: Accident::Fault(fault), ..SYNC }, 60, 40);
        }
    }
}
