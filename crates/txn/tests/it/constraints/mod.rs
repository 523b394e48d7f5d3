//! Constraint tests against the definition.
//!
//! Random transactions, loads, checkpoints and reopenings in a small world; threads that race for the same
//! values at both isolation levels while constraints are added and removed; and accidents at every file
//! operation, after which a constraint either exists and holds, or does not exist.

mod world;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use vervet_env::{Environment, Fault, SeededRandom, Simulation};
use vervet_model::{Error, ErrorKind, Result};
use vervet_store::Target;
use vervet_txn::{Constraint, ConstraintKind, Isolation, Options, Published, Transaction, Transactions};
use world::{DIR, Model, Row, TYPE, constraint, holds, in_directory, iri, load, read, row, statement};

fn seed() -> u64 {
    let seed = std::env::var("VERVET_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_121_u64);
    println!("VERVET_SEED={seed}");
    seed
}

fn options() -> Options {
    let mut options = Options::default();
    options.checkpoints = false;
    options
}

fn open(environment: &Environment) -> Result<Arc<Transactions>> {
    Transactions::open_or_create(environment.clone(), Path::new(DIR), options())
}

fn disk(seed: u64) -> Simulation {
    let simulation = Simulation::new(seed);
    let files = &simulation.environment().files;
    files.create_dir_all(Path::new(DIR)).expect("works");
    files.sync_dir(Path::new("/")).expect("works");
    simulation
}

/// Adds or removes a row: blindly, singly, or with a preceding read.
fn change(transaction: &mut Transaction, row: &Row, added: bool, blind: bool) -> Result<()> {
    let statement = statement(row, &mut |term| transaction.intern(term.as_ref()))?;
    match (added, blind) {
        (true, true) => transaction.insert_all(&[statement]),
        (false, true) => transaction.remove_all(&[statement]),
        (true, false) => transaction.insert(&statement).map(drop),
        (false, false) => transaction.remove(&statement).map(drop),
    }
}

/// Expected state of a graph.
#[derive(Clone, Default, PartialEq, Debug)]
struct State {
    model: Model,
    constraints: BTreeSet<Constraint>,
}

impl State {
    fn of(published: &Published) -> Self {
        Self { model: read(&published.version), constraints: published.constraints().into_iter().collect() }
    }

    fn is_sound(&self) -> bool {
        self.constraints.iter().all(|constraint| holds(&self.model, constraint))
    }
}

/// One step of a life: the attempted change, and its expected result.
fn step(
    graph: &Arc<Transactions>,
    environment: &Environment,
    target: &Target,
    state: &State,
    random: &SeededRandom,
) -> (State, Result<()>) {
    let mut next = state.clone();
    let done = match random.below(12) {
        0 => graph.checkpoint().map(drop),
        1 => {
            let rows: Vec<Row> = (0..random.below(3)).map(|_| row(random)).collect();
            next.model.extend(rows.iter().cloned());
            load(graph, environment, &rows, target)
        }
        2..=4 => {
            let constraint = constraint(random);
            let new = next.constraints.insert(constraint.clone());
            let added = graph.add_constraint(&constraint);
            added.map(|added| assert_eq!(added, new))
        }
        5 => {
            let constraint = constraint(random);
            let old = next.constraints.remove(&constraint);
            let removed = graph.remove_constraint(&constraint);
            removed.map(|removed| assert_eq!(removed, old))
        }
        _ => commit(graph, &mut next, random),
    };
    (next, done)
}

fn commit(graph: &Arc<Transactions>, next: &mut State, random: &SeededRandom) -> Result<()> {
    let isolation = if random.below(2) == 0 { Isolation::Serializable } else { Isolation::Snapshot };
    let mut transaction = graph.begin(isolation)?;
    for _ in 0..1 + random.below(4) {
        let old = next.model.iter().nth(usize::try_from(random.below(12)).expect("small")).cloned();
        let (row, added) = match old {
            Some(row) if random.below(2) == 0 => (row, false),
            _ => (row(random), true),
        };
        change(&mut transaction, &row, added, random.below(2) == 0)?;
        if added {
            next.model.insert(row)
        } else {
            next.model.remove(&row)
        };
    }
    transaction.commit().map(drop)
}

#[test]
fn a_random_life_keeps_its_constraints() {
    let seed = seed();
    let mut counts = [0_u64; 3];
    for life in 0..150 {
        let random = SeededRandom::new(seed ^ (life << 32));
        let simulation = disk(random.next());
        let environment = simulation.environment();
        let on_disk = life % 3 != 0;
        let target = if on_disk { in_directory() } else { Target::Memory };
        let start = || match on_disk {
            true => open(&environment).expect("opens"),
            false => Transactions::in_memory(environment.clone(), options()).expect("opens"),
        };
        let mut graph = start();
        let mut state = State::default();
        for number in 0..60 {
            let (next, done) = step(&graph, &environment, &target, &state, &random);
            match done {
                Ok(()) => {
                    assert!(next.is_sound(), "seed {seed}, life {life}, step {number}: {next:?}");
                    counts[0] += 1;
                    state = next;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Constraint, "seed {seed}, life {life}: {error}");
                    assert!(!next.is_sound(), "seed {seed}, life {life}, step {number}: {error}\n{next:?}");
                    assert!(error.hint().is_some() && error.message().contains("<urn:v"), "{error}");
                    counts[1] += 1;
                }
            }
            assert_eq!(State::of(&graph.current()), state, "seed {seed}, life {life}, step {number}");
            if on_disk && random.below(12) == 0 {
                drop(graph);
                graph = start();
                counts[2] += 1;
                assert_eq!(State::of(&graph.current()), state, "seed {seed}, life {life}, reopened");
            }
        }
    }
    println!("done, refused, reopened: {counts:?}");
    assert!(counts.iter().all(|count| *count > 300), "{counts:?}");
}

#[test]
fn a_backup_has_them_too() {
    let simulation = disk(1);
    let environment = simulation.environment();
    let graph = open(&environment).expect("opens");
    let unique = Constraint::new(ConstraintKind::Unique, iri("C"), [iri("p")]).expect("sound");
    assert!(graph.add_constraint(&unique).expect("holds"));
    assert!(!graph.add_constraint(&unique).expect("is there"));
    let to = Path::new("/backup");
    graph.backup(to).expect("room");
    let copy = Transactions::open(environment, to, options()).expect("opens");
    assert_eq!(copy.constraints(), std::slice::from_ref(&unique));
    assert!(copy.remove_constraint(&unique).expect("is there"));
    assert!(!copy.remove_constraint(&unique).expect("is gone"));
}

/// Messages name the constraint, the vertices and the value.
#[test]
fn messages_name_everything() {
    let graph = Transactions::in_memory(Environment::real(), options()).expect("opens");
    let commit = |rows: &[[&str; 3]]| {
        let mut transaction = graph.begin(Isolation::Serializable)?;
        for [s, p, o] in rows {
            change(&mut transaction, &[*s, *p, *o, ""].map(str::to_owned), true, false)?;
        }
        transaction.commit()
    };
    commit(&[["v1", TYPE, "C"], ["v1", "p", "1"], ["v1", "q", "1"], ["v2", TYPE, "C"]])
        .expect("no constraints");
    let new = |kind, names: &[&str]| {
        Constraint::new(kind, iri("C"), names.iter().map(|name| iri(name))).expect("sound")
    };
    let message = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::Constraint);
        error.message().to_owned()
    };
    let error = graph.add_constraint(&new(ConstraintKind::Required, &["p"])).expect_err("v2 has none");
    assert_eq!(
        message(error),
        "the constraint required <urn:C> <urn:p> does not hold: <urn:v2> has no value"
    );
    commit(&[["v2", "p", "2"]]).expect("nothing is unique");
    for (kind, properties) in [
        (ConstraintKind::Required, &["p"][..]),
        (ConstraintKind::Single, &["p"]),
        (ConstraintKind::Unique, &["p", "q"]),
    ] {
        assert!(graph.add_constraint(&new(kind, properties)).expect("holds"));
    }
    let broken = |rows: &[[&str; 3]]| message(commit(rows).expect_err("breaks one"));
    let five = "\"5\"^^<http://www.w3.org/2001/XMLSchema#integer>";
    let one = five.replace('5', "1");
    assert_eq!(
        broken(&[["v3", TYPE, "C"]]),
        "the constraint required <urn:C> <urn:p> is broken: <urn:v3> has no value"
    );
    assert_eq!(
        broken(&[["v1", "p", "5"]]),
        format!("the constraint single <urn:C> <urn:p> is broken: <urn:v1> has {one} and {five}")
    );
    assert_eq!(
        broken(&[["v3", "q", "1"], ["v3", "p", "1"], ["v3", TYPE, "C"]]),
        format!(
            "the constraint unique <urn:C> <urn:p> <urn:q> is broken: <urn:v3> and <urn:v1> both have {one} and {one}"
        )
    );
}

/// Threads race for few values; every version read satisfies the constraints that it was published with.
fn race(isolation: Isolation, seed: u64) {
    let graph = Transactions::in_memory(Environment::real(), Options::default()).expect("opens");
    let (stop, refused) = (AtomicBool::new(false), AtomicU64::new(0));
    let (committed, changed) = (AtomicU64::new(0), AtomicU64::new(0));
    let always = [
        Constraint::new(ConstraintKind::Unique, iri("C"), [iri("p")]),
        Constraint::new(ConstraintKind::Required, iri("C"), [iri("p")]),
        Constraint::new(ConstraintKind::Single, iri("C"), [iri("q")]),
    ]
    .map(|constraint| constraint.expect("sound"));
    for constraint in &always {
        assert!(graph.add_constraint(constraint).expect("nothing is there"));
    }
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|thread| {
                let (graph, refused, committed) = (&graph, &refused, &committed);
                scope.spawn(move || {
                    let random = SeededRandom::new(seed ^ (thread << 40));
                    for _ in 0..1500 {
                        let mut next = State { model: read(&graph.current().version), ..State::default() };
                        let before = next.model.len();
                        let mut transaction = graph.begin(isolation).expect("begins");
                        for _ in 0..1 + random.below(3) {
                            // Adds or removes a whole vertex, or one row.
                            let whole = [row(&random), row(&random), row(&random)];
                            let added = before < 14 && random.below(3) > 0;
                            let old =
                                next.model.iter().nth(usize::try_from(random.below(20)).expect("small"));
                            let rows: Vec<Row> = match old.cloned() {
                                Some(old) if !added => vec![old],
                                _ => whole.to_vec(),
                            };
                            for row in rows {
                                if change(&mut transaction, &row, added, random.below(2) == 0).is_ok() {
                                    if added {
                                        next.model.insert(row)
                                    } else {
                                        next.model.remove(&row)
                                    };
                                }
                            }
                        }
                        std::thread::yield_now();
                        match transaction.commit() {
                            Ok(_) => committed.fetch_add(1, Ordering::Relaxed),
                            Err(error) if error.kind() == ErrorKind::Constraint => {
                                refused.fetch_add(1, Ordering::Relaxed)
                            }
                            Err(error) => {
                                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                                0
                            }
                        };
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let random = SeededRandom::new(seed ^ 99);
            while !stop.load(Ordering::Relaxed) {
                let constraint = constraint(&random);
                let done = match random.below(3) {
                    0 if !always.contains(&constraint) => graph.remove_constraint(&constraint),
                    1 => graph.checkpoint(),
                    _ => graph.add_constraint(&constraint),
                };
                match done {
                    Ok(done) => drop(changed.fetch_add(u64::from(done), Ordering::Relaxed)),
                    Err(error) if error.kind() == ErrorKind::Constraint => {}
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
                }
            }
        });
        let watcher = scope.spawn(|| {
            let mut seen = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                let state = State::of(&graph.current());
                assert!(state.is_sound(), "seed {seed}: {state:?}");
                seen += 1;
            }
            seen
        });
        let ended: Vec<_> = workers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        stop.store(true, Ordering::Relaxed);
        let seen = watcher.join().expect("everything that was seen is sound");
        assert!(seen > 10, "{seen}");
        ended.into_iter().for_each(|ended| ended.expect("ends"));
    });
    let state = State::of(&graph.current());
    assert!(
        state.is_sound() && always.iter().all(|one| state.constraints.contains(one)),
        "seed {seed}: {state:?}"
    );
    let counts =
        [committed.into_inner(), refused.into_inner(), changed.into_inner(), graph.counts().conflicts];
    println!(
        "{isolation:?}: committed, refused, changes of constraints and checkpoints, conflicts: {counts:?}"
    );
    assert!(counts.iter().all(|count| *count > 10), "{counts:?}");
}

#[test]
fn nobody_slips_through_if_serializable() {
    race(Isolation::Serializable, seed());
}

#[test]
fn nobody_slips_through_under_snapshot_isolation() {
    race(Isolation::Snapshot, seed());
}

/// A kind, the rows before, and the changes of each of two transactions.
type Race = (ConstraintKind, Vec<Row>, [(Row, bool); 2]);

/// Races that would violate a constraint if the reads of its check were not validated.
#[test]
fn write_skew_of_constraints_is_a_conflict() {
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let rows = |rows: &[[&str; 3]]| {
            rows.iter().map(|row| [row[0], row[1], row[2], ""].map(str::to_owned)).collect()
        };
        let cases: [Race; 5] = {
            let row = |s: &str, p: &str, o: &str| [s, p, o, ""].map(str::to_owned);
            [
                // Two vertices get the same value.
                (
                    ConstraintKind::Unique,
                    rows(&[["v1", TYPE, "C"], ["v2", TYPE, "C"]]),
                    [(row("v1", "p", "1"), true), (row("v2", "p", "1"), true)],
                ),
                // One gets the value, the other the class.
                (
                    ConstraintKind::Unique,
                    rows(&[["v1", TYPE, "C"], ["v2", "p", "1"]]),
                    [(row("v1", "p", "1"), true), (row("v2", TYPE, "C"), true)],
                ),
                // Each removes one of two values.
                (
                    ConstraintKind::Required,
                    rows(&[["v1", TYPE, "C"], ["v1", "p", "v8"], ["v1", "p", "v9"]]),
                    [(row("v1", "p", "v8"), false), (row("v1", "p", "v9"), false)],
                ),
                // One removes the last value, the other adds the class.
                (
                    ConstraintKind::Required,
                    rows(&[["v1", "p", "v8"]]),
                    [(row("v1", "p", "v8"), false), (row("v1", TYPE, "C"), true)],
                ),
                (
                    ConstraintKind::Single,
                    rows(&[["v1", TYPE, "C"]]),
                    [(row("v1", "p", "v8"), true), (row("v1", "p", "v9"), true)],
                ),
            ]
        };
        for (kind, before, [one, two]) in cases {
            for blind in [false, true] {
                for swapped in [false, true] {
                    let graph = Transactions::in_memory(Environment::real(), options()).expect("opens");
                    let constraint = Constraint::new(kind, iri("C"), [iri("p")]).expect("sound");
                    graph.add_constraint(&constraint).expect("nothing is there");
                    let mut first = graph.begin(isolation).expect("begins");
                    before.iter().for_each(|row| change(&mut first, row, true, false).expect("room"));
                    first.commit().expect("sound");
                    let mut pair = [&one, &two].map(|(row, added)| {
                        let mut transaction = graph.begin(isolation).expect("begins");
                        change(&mut transaction, row, *added, blind).expect("room");
                        transaction
                    });
                    if swapped {
                        pair.reverse();
                    }
                    let [winner, loser] = pair;
                    winner.commit().expect("alone");
                    let error = loser.commit().expect_err("together they break it");
                    assert_eq!(error.kind(), ErrorKind::Conflict, "{isolation:?} {kind:?}: {error}");
                    assert!(State::of(&graph.current()).is_sound());
                }
            }
        }
    }
}

/// Changes outside of the reads of a check do not conflict with it.
#[test]
fn checks_conflict_with_nothing_else() {
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let graph = Transactions::in_memory(Environment::real(), options()).expect("opens");
        for kind in [ConstraintKind::Unique, ConstraintKind::Required, ConstraintKind::Single] {
            graph
                .add_constraint(&Constraint::new(kind, iri("C"), [iri("p")]).expect("sound"))
                .expect("empty");
        }
        let mut open: Vec<Transaction> = Vec::new();
        for number in 0..8 {
            let mut transaction = graph.begin(isolation).expect("begins");
            let vertex = format!("v{number}");
            for (predicate, object) in
                [(TYPE, "C".to_owned()), ("p", number.to_string()), ("q", "1".to_owned())]
            {
                let row = [vertex.clone(), predicate.to_owned(), object, String::new()];
                change(&mut transaction, &row, true, number % 2 == 0).expect("room");
            }
            open.push(transaction);
        }
        for transaction in open {
            transaction.commit().expect("they are independent");
        }
        assert!(State::of(&graph.current()).is_sound());
    }
}

/// A transaction that began before a constraint was added fails with a conflict.
#[test]
fn a_constraint_conflicts_with_those_who_began_before() {
    let graph = Transactions::in_memory(Environment::real(), options()).expect("opens");
    let mut late = graph.begin(Isolation::Snapshot).expect("begins");
    for vertex in ["v1", "v2"] {
        for (predicate, object) in [(TYPE, "C"), ("p", "1")] {
            let row = [vertex, predicate, object, ""].map(str::to_owned);
            change(&mut late, &row, true, true).expect("room");
        }
    }
    let unique = Constraint::new(ConstraintKind::Unique, iri("C"), [iri("p")]).expect("sound");
    graph.add_constraint(&unique).expect("holds");
    assert_eq!(late.commit().expect_err("it breaks it").kind(), ErrorKind::Conflict);
}

#[test]
fn accidents_leave_constraints_that_hold() {
    const POINTS_MIN: u64 = 4_000;
    const STEPS: usize = 8;
    let seed = seed();
    let (mut points, mut lives, mut lost) = (0, 0_u64, 0);
    while points < POINTS_MIN {
        lives += 1;
        for n in 0.. {
            let random = SeededRandom::new(seed ^ (lives << 32));
            let accidents = SeededRandom::new(seed ^ (lives << 32) ^ (n << 1) ^ 1);
            let simulation = disk(accidents.next());
            let environment = simulation.environment();
            let before = simulation.files.write_count();
            let power = accidents.below(2) == 0;
            simulation.files.fail_write(n, if power { Fault::Power } else { Fault::Io });
            let (mut state, mut maybe) = (State::default(), None);
            if let Ok(graph) = open(&environment) {
                for _ in 0..STEPS {
                    let (next, done) = step(&graph, &environment, &in_directory(), &state, &random);
                    match done {
                        Ok(()) => state = next,
                        Err(error) if error.kind() == ErrorKind::Constraint => {}
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                            maybe = Some(next);
                            break;
                        }
                    }
                }
            }
            let reached = simulation.files.write_count() > before + n;
            match accidents.below(3) {
                0 => simulation.files.crash(),
                1 => simulation.files.crash_losing_all(),
                _ => simulation.files.crash_reordering(),
            }
            simulation.files.clear_faults();
            let context = format!("VERVET_SEED={seed}, life {lives}, operation {n}");
            for _ in 0..2 {
                let graph = open(&environment).expect("opens");
                drop(graph.begin(Isolation::Serializable).expect("recovers"));
                let found = State::of(&graph.current());
                assert!(found.is_sound(), "{context}: {found:?}");
                let known = found == state || maybe.as_ref() == Some(&found);
                assert!(known, "{context}: found {found:?}\nacknowledged {state:?}\nmaybe {maybe:?}");
                lost += u64::from(maybe.is_some() && found == state);
                (state, maybe) = (found, None);
                for _ in 0..3 {
                    let (next, done) = step(&graph, &environment, &in_directory(), &state, &accidents);
                    match done {
                        Ok(()) => state = next,
                        Err(error) => assert_eq!(error.kind(), ErrorKind::Constraint, "{context}: {error}"),
                    }
                }
                assert_eq!(State::of(&graph.current()), state, "{context}");
            }
            points += 1;
            if !reached {
                break;
            }
        }
    }
    println!("{points} points in {lives} lives; {lost} unfinished steps were lost");
    assert!(lost > 100, "{lost}");
}
