//! Concurrency tests of transactions.
//!
//! Threads transfer, count and read registers, while checkpoints run. No snapshot has a wrong sum, no update
//! is lost, and no skew and no phantom occurs at the serializable level. The whole history of registers is
//! checked against the definition of serializability (Adya, "Weak Consistency", 1999): the graph of write,
//! read and overwrite dependencies has no cycle.
#![allow(clippy::cast_possible_truncation, reason = "small numbers of a test")]

use crate::common::seed;
use oxrdf::{Literal, NamedNode, Term};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use vervet_delta::Version;
use vervet_env::{SeededRandom, Simulation};
use vervet_model::{Direction, ErrorKind, Id, Result, Statement, TermParts, inline_id};
use vervet_snapshot::{EntryFilter, Snapshot};
use vervet_txn::{Isolation, Options, Transaction, Transactions};

const THREADS: u64 = 4;
fn iri(name: &str) -> Term {
    NamedNode::new_unchecked(format!("http://example.org/{name}")).into()
}

fn number(value: i64) -> Id {
    inline_id(&value.to_string(), "http://www.w3.org/2001/XMLSchema#integer").expect("small")
}

fn value_of(snapshot: &dyn Snapshot, id: Id) -> i64 {
    let mut found = None;
    let mut read = |parts: TermParts<'_>| found = Some(parts.to_term());
    snapshot.read_term(id, &mut String::new(), &mut read).expect("inside the id");
    let Some(Term::Literal(literal)) = found else { panic!("{id:?} is no number") };
    literal.value().parse().expect("a number")
}

/// A graph with registers, each of which holds `value`.
struct Registers {
    graph: Arc<Transactions>,
    value: Id,
    ids: Vec<Id>,
    conflicts: AtomicU64,
}

impl Registers {
    fn new(count: u64, initial: impl Fn(u64) -> i64, on_disk: bool) -> Self {
        let simulation = Simulation::new(7);
        let environment = simulation.environment();
        let graph = if on_disk {
            Transactions::open_or_create(environment, Path::new("/db"), Options::default())
        } else {
            Transactions::in_memory(environment, Options::default())
        };
        let graph = graph.expect("opens");
        let mut first = graph.begin(Isolation::Serializable).expect("begins");
        let value = first.intern(iri("value").as_ref()).expect("new");
        let ids: Vec<Id> =
            (0..count).map(|n| first.intern(iri(&n.to_string()).as_ref()).expect("new")).collect();
        for (n, id) in (0..).zip(&ids) {
            first.insert(&holds(*id, value, initial(n))).expect("fits");
        }
        first.commit().expect("alone");
        Self { graph, value, ids, conflicts: AtomicU64::new(0) }
    }

    fn get(&self, snapshot: &dyn Snapshot, register: usize) -> i64 {
        let mut found = Vec::new();
        let segment = snapshot.segment(self.value, Direction::Out).expect("sound").expect("there");
        segment.neighbours(self.ids[register], EntryFilter::ALL, &mut found).expect("sound");
        assert_eq!(found.len(), 1, "a register has one value");
        value_of(snapshot, found[0])
    }

    fn set(&self, transaction: &mut Transaction, register: usize, old: i64, new: i64) -> Result<()> {
        assert!(transaction.remove(&holds(self.ids[register], self.value, old))?);
        assert!(transaction.insert(&holds(self.ids[register], self.value, new))?);
        Ok(())
    }

    fn sum(&self, snapshot: &dyn Snapshot) -> i64 {
        (0..self.ids.len()).map(|register| self.get(snapshot, register)).sum()
    }

    /// Retries until it commits; returns the result of the last try.
    fn run<T>(&self, isolation: Isolation, mut body: impl FnMut(&mut Transaction) -> Result<T>) -> T {
        loop {
            let mut transaction = self.graph.begin(isolation).expect("begins");
            let result = body(&mut transaction).expect("works");
            match transaction.commit() {
                Ok(_) => return result,
                Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
            }
            self.conflicts.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Runs `write` in [`THREADS`] threads, with concurrent threads for `read` on the newest version and for
    /// checkpoints.
    fn race(&self, write: impl Fn(&SeededRandom, u64) + Sync, read: impl Fn(&Version) + Sync) {
        let (seed, done) = (seed(), AtomicBool::new(false));
        let (reads, merges, write) = (AtomicU64::new(0), AtomicU64::new(0), &write);
        std::thread::scope(|scope| {
            // Each at least once, also if the machine is too slow to run them meanwhile.
            scope.spawn(|| {
                loop {
                    let last = done.load(Ordering::Acquire);
                    read(&self.graph.current().version);
                    reads.fetch_add(1, Ordering::Relaxed);
                    if last {
                        break;
                    }
                }
            });
            scope.spawn(|| {
                loop {
                    let last = done.load(Ordering::Acquire);
                    merges.fetch_add(u64::from(self.graph.checkpoint().expect("works")), Ordering::Relaxed);
                    if last {
                        break;
                    }
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
            });
            let writers: Vec<_> = (0..THREADS)
                .map(|n| scope.spawn(move || write(&SeededRandom::new(seed ^ (n << 40)), n)))
                .collect();
            let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            done.store(true, Ordering::Release);
            assert!(results.iter().all(|result| result.is_ok()), "a writer failed");
        });
        let (reads, merges) = (reads.into_inner(), merges.into_inner());
        println!("{:?}, {reads} readers, {merges} checkpoints", self.graph.counts());
        assert!(reads > 0 && merges > 0);
    }
}

fn holds(subject: Id, predicate: Id, value: i64) -> Statement {
    Statement { subject, predicate, object: number(value), graph: Id::UNBOUND, edge: Id::UNBOUND }
}

fn two(random: &SeededRandom, count: u64) -> (usize, usize) {
    let first = random.below(count);
    (first as usize, ((first + 1 + random.below(count - 1)) % count) as usize)
}

#[test]
fn transfers_keep_the_sum() {
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let bank = Registers::new(6, |_| 100, true);
        let transfer = |random: &SeededRandom, _| {
            for _ in 0..500 {
                let (from, to) = two(random, 6);
                let amount = 1 + random.below(20) as i64;
                bank.run(isolation, |transaction| {
                    let (left, right) = {
                        let view = transaction.view().expect("sound");
                        assert_eq!(bank.sum(transaction.version().expect("sound")), 600, "in a transaction");
                        (bank.get(view.as_snapshot(), from), bank.get(view.as_snapshot(), to))
                    };
                    bank.set(transaction, from, left, left - amount)?;
                    bank.set(transaction, to, right, right + amount)
                });
            }
        };
        bank.race(transfer, |version| assert_eq!(bank.sum(version), 600));
        assert_eq!(bank.sum(&bank.graph.current().version), 600);
        assert_eq!(bank.graph.counts().commits, 1 + 500 * THREADS);
    }
}

#[test]
fn no_increment_is_lost() {
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let counters = Registers::new(2, |_| 0, false);
        let before = AtomicI64::new(0);
        let increment = |random: &SeededRandom, _| {
            for _ in 0..500 {
                let counter = random.below(2) as usize;
                counters.run(isolation, |transaction| {
                    let old = counters.get(transaction.view().expect("sound").as_snapshot(), counter);
                    counters.set(transaction, counter, old, old + 1)
                });
            }
        };
        counters.race(increment, |version| {
            let sum = counters.sum(version);
            assert!(before.swap(sum, Ordering::Relaxed) <= sum, "the sum decreases");
        });
        assert_eq!(counters.sum(&counters.graph.current().version), 500 * THREADS as i64);
    }
}

/// One of two must be on duty; each leaves only if the other one is present. Under snapshot isolation both
/// may leave.
#[test]
fn no_skew_at_the_serializable_level() {
    let pair = Registers::new(2, |_| 1, true);
    let leave = |random: &SeededRandom, _| {
        for _ in 0..500 {
            let (own, other) = two(random, 2);
            pair.run(Isolation::Serializable, |transaction| {
                let (mine, others) = {
                    let view = transaction.view().expect("sound");
                    (pair.get(view.as_snapshot(), own), pair.get(view.as_snapshot(), other))
                };
                match (mine, others) {
                    (1, 1) => pair.set(transaction, own, 1, 0),
                    (0, _) => pair.set(transaction, own, 0, 1),
                    _ => Ok(()),
                }
            });
        }
    };
    pair.race(leave, |version| assert!(pair.sum(version) >= 1, "both have left"));

    // Snapshot isolation permits it.
    let (mut one, mut two) = (pair.graph.begin(Isolation::Snapshot), pair.graph.begin(Isolation::Snapshot));
    let both = [&mut one, &mut two];
    for (register, transaction) in both.into_iter().enumerate() {
        let transaction = transaction.as_mut().expect("begins");
        let old = pair.get(transaction.version().expect("sound"), register);
        pair.set(transaction, register, old, 5).expect("works");
    }
    assert!(one.and_then(Transaction::commit).is_ok() && two.and_then(Transaction::commit).is_ok());
}

/// At most five may be inside; each transaction counts the members, by the list of keys or by a degree.
#[test]
fn no_phantom_at_the_serializable_level() {
    const PLACES: u64 = 5;
    let room = Registers::new(1, |_| 0, true);
    let mut first = room.graph.begin(Isolation::Serializable).expect("begins");
    let inside = first.intern(iri("inside").as_ref()).expect("new");
    let yes = first.intern(Literal::new_simple_literal("yes, it is inside").as_ref().into()).expect("new");
    let people: Vec<Id> =
        (0..40).map(|n| first.intern(iri(&format!("p{n}")).as_ref()).expect("new")).collect();
    let is_in = |person| Statement {
        subject: person,
        predicate: inside,
        object: yes,
        graph: Id::UNBOUND,
        edge: Id::UNBOUND,
    };
    first.insert(&is_in(people[0])).expect("fits");
    first.commit().expect("alone");
    let count = |snapshot: &dyn Snapshot, by_keys: bool| {
        let direction = if by_keys { Direction::Out } else { Direction::In };
        let Some(segment) = snapshot.segment(inside, direction).expect("sound") else { return 0 };
        if by_keys {
            let mut keys = Vec::new();
            segment.keys(Id::UNBOUND, 100, &mut keys).expect("sound");
            return keys.len() as u64;
        }
        let mut degrees = Vec::new();
        segment.degrees(&[yes], EntryFilter::ALL, &mut degrees).expect("sound");
        degrees[0]
    };
    let come_and_go = |random: &SeededRandom, _| {
        for _ in 0..500 {
            let person = people[random.below(40) as usize];
            let by_keys = random.below(2) == 0;
            room.run(Isolation::Serializable, |transaction| {
                let now = count(transaction.view().expect("sound").as_snapshot(), by_keys);
                assert!(now <= PLACES);
                if now < PLACES {
                    transaction.insert_all(&[is_in(person)])
                } else {
                    let one = people.iter().find(|one| {
                        transaction.version().expect("sound").contains(&is_in(**one)).expect("sound")
                    });
                    transaction.remove_all(&[is_in(*one.expect("someone is in"))])
                }
            });
        }
    };
    room.race(come_and_go, |version| assert!(count(version, true) <= PLACES, "too many are in"));
}

/// A transaction on registers: values are written only once, so a value identifies its writer.
#[derive(Clone, Debug, Default)]
struct Event {
    reads: Vec<(usize, i64)>,
    /// Register, the value before, the value after.
    writes: Vec<(usize, i64, i64)>,
}

/// Checks that a history, whose registers begin with 0, is serializable; otherwise returns the fault.
fn check(history: &[Event]) -> std::result::Result<usize, String> {
    let (mut writer, mut overwriter) = (HashMap::new(), HashMap::new());
    for (at, event) in history.iter().enumerate() {
        for (register, old, new) in &event.writes {
            if let Some(other) = overwriter.insert((*register, *old), at) {
                return Err(format!("lost update: {at} and {other} both replace {old} in {register}"));
            }
            writer.insert((*register, *new), at);
        }
    }
    let mut edges = vec![Vec::new(); history.len()];
    let mut count = 0;
    let mut edge = |from: Option<&usize>, to: Option<&usize>| {
        if let (Some(from), Some(to)) = (from, to)
            && from != to
        {
            edges[*from].push(*to);
            count += 1;
        }
    };
    for (at, event) in history.iter().enumerate() {
        for (register, old, _) in &event.writes {
            edge(writer.get(&(*register, *old)), Some(&at)); // ww
        }
        for (register, value) in &event.reads {
            if *value != 0 && !writer.contains_key(&(*register, *value)) {
                return Err(format!("{at} read {value}, which no transaction committed"));
            }
            edge(writer.get(&(*register, *value)), Some(&at)); // wr
            edge(Some(&at), overwriter.get(&(*register, *value))); // rw
        }
    }
    // Kahn's algorithm: a transaction that cannot be removed is on a cycle or after one.
    let mut before = vec![0; history.len()];
    edges.iter().flatten().for_each(|to| before[*to] += 1);
    let mut free: Vec<usize> = (0..history.len()).filter(|at| before[*at] == 0).collect();
    let mut taken = 0;
    while let Some(at) = free.pop() {
        taken += 1;
        for to in &edges[at] {
            before[*to] -= 1;
            if before[*to] == 0 {
                free.push(*to);
            }
        }
    }
    if taken == history.len() { Ok(count) } else { Err(format!("{} are on cycles", history.len() - taken)) }
}

fn history(isolation: Isolation, number_of: u64) -> Vec<Event> {
    const REGISTERS: u64 = 8;
    let registers = Registers::new(REGISTERS, |_| 0, false);
    let next = AtomicI64::new(1);
    let events = std::sync::Mutex::new(Vec::new());
    let work = |random: &SeededRandom, _| {
        let mut own = Vec::new();
        for _ in 0..number_of / THREADS {
            let (first, second) = two(random, REGISTERS);
            let (writes_second, pause) = (random.below(3), random.below(4) == 0);
            own.push(registers.run(isolation, |transaction| {
                let values = [first, second]
                    .map(|n| registers.get(transaction.view().expect("sound").as_snapshot(), n));
                if pause {
                    std::thread::yield_now();
                }
                let mut event =
                    Event { reads: vec![(first, values[0]), (second, values[1])], writes: Vec::new() };
                let written = [(first, values[0]), (second, values[1])];
                let written = if writes_second == 0 { &written[..] } else { &written[1..] };
                for (register, old) in written {
                    let new = next.fetch_add(1, Ordering::Relaxed);
                    registers.set(transaction, *register, *old, new)?;
                    event.writes.push((*register, *old, new));
                }
                Ok(event)
            }));
        }
        events.lock().expect("whole").extend(own);
    };
    registers.race(work, |_| std::thread::yield_now());
    events.into_inner().expect("whole")
}

#[test]
fn histories_are_serializable() {
    let events = history(Isolation::Serializable, 20_000);
    assert_eq!(events.len(), 20_000);
    let edges = check(&events).expect("serializable");
    println!("{} transactions, {edges} edges", events.len());

    // The checker detects faults: a read that is one version too old, a lost update, a read without a writer.
    let (mut old, mut lost, mut nowhere) = (events.clone(), events.clone(), events);
    let stale = old.iter_mut().rev().find(|event| event.writes.len() == 2).expect("some");
    let (register, before, _) = stale.writes[0];
    let previous =
        lost.iter().flat_map(|event| &event.writes).find(|write| write.0 == register && write.2 == before);
    let (_, older, _) = *previous.expect("written");
    stale.reads.retain(|read| read.0 != register);
    stale.reads.push((register, older));
    assert!(check(&old).is_err_and(|fault| fault.contains("cycles")));
    let twin = lost.iter().find(|event| !event.writes.is_empty()).expect("some").clone();
    lost.push(twin);
    assert!(check(&lost).is_err_and(|fault| fault.contains("lost update")));
    nowhere[5].reads.push((0, -1));
    assert!(check(&nowhere).is_err_and(|fault| fault.contains("no transaction committed")));
    // Two transactions that each read what the other one overwrites.
    let skew = [
        Event { reads: vec![(0, 0), (1, 0)], writes: vec![(0, 0, 1)] },
        Event { reads: vec![(0, 0), (1, 0)], writes: vec![(1, 0, 2)] },
    ];
    assert!(check(&skew).is_err_and(|fault| fault.contains("cycles")));
}
