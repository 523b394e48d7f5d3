//! Model test of random overlapping transactions, in one thread.
//!
//! Each sees the graph of its begin and its own changes. An accepted commit gives the same results when it is
//! run again on the current graph, so the history is serial in the order of commits; a refused one has read
//! data that another transaction changed.
#![allow(clippy::cast_possible_truncation, reason = "small numbers of a test")]

use crate::common::{EDGE, Model, Row, T, read, seed, statement, term};
use oxrdf::Term;
use std::collections::BTreeSet;
use std::sync::Arc;
use vervet_env::{Environment, SeededRandom};
use vervet_model::{Direction, ErrorKind, Id};
use vervet_snapshot::{EntryFilter, Snapshot};
use vervet_txn::{Isolation, Options, Savepoint, Transaction, Transactions};

const STEPS: usize = 10_000;
/// A step of a transaction with its result.
#[derive(Clone, Debug)]
enum Step {
    /// Row, whether added, and the returned value (`None`: refused).
    Change(Row, bool, Option<bool>),
    /// Changes whose effect is not returned.
    Blind(Vec<Row>, bool),
    Save,
    /// Roll-back to the savepoint with this number.
    Back(usize),
    /// Number of statements of a key.
    Degree(T, Direction, T, u64),
    /// Whether there is a statement.
    Check(T, T, T, bool),
    /// Subjects of a predicate.
    Keys(T, u64),
    Predicates(BTreeSet<T>),
    Graphs(usize),
    Edge(T, bool),
    Known(T, bool),
}

fn degree(model: &Model, p: T, direction: Direction, key: T) -> u64 {
    let of = |row: &&Row| row.p == p && key == if direction == Direction::Out { row.s } else { row.o };
    model.0.iter().filter(of).count() as u64
}

fn subjects(model: &Model, p: T) -> u64 {
    model.0.iter().filter(|row| row.p == p).map(|row| row.s).collect::<BTreeSet<T>>().len() as u64
}

fn graphs(model: &Model) -> usize {
    model.0.iter().filter(|row| row.g != 0).map(|row| row.g).collect::<BTreeSet<T>>().len()
}

/// Runs steps on a model; `None` if some result differs now. Whether a term exists is not repeated: a failed
/// transaction may have created it.
fn rerun(mut model: Model, steps: &[Step]) -> Option<Model> {
    let mut saved = Vec::new();
    for step in steps {
        let same = match step {
            Step::Change(row, added, result) => model.change(*row, *added).ok() == *result,
            Step::Blind(rows, added) => rows.iter().all(|row| model.change(*row, *added).is_ok()),
            Step::Save => {
                saved.push(model.clone());
                true
            }
            Step::Back(number) => {
                model = saved[*number].clone();
                true
            }
            Step::Degree(p, direction, key, count) => degree(&model, *p, *direction, *key) == *count,
            Step::Check(s, p, o, found) => {
                model.0.iter().any(|row| (row.s, row.p, row.o) == (*s, *p, *o)) == *found
            }
            Step::Keys(p, count) => subjects(&model, *p) == *count,
            Step::Predicates(all) => model.0.iter().map(|row| row.p).collect::<BTreeSet<T>>() == *all,
            Step::Graphs(count) => graphs(&model) == *count,
            Step::Edge(edge, found) => model.0.iter().any(|row| row.e == *edge) == *found,
            Step::Known(..) => true,
        };
        if !same {
            return None;
        }
    }
    Some(model)
}

/// Whether a concurrent change to `row` touches the read of the step.
fn touches(step: &Step, row: &Row) -> bool {
    match step {
        Step::Change(own, _, _) => {
            (own.s, own.p, own.o) == (row.s, row.p, row.o)
                || row.e != 0 && [own.s, own.o, own.e].contains(&row.e)
                || own.e != 0 && [row.s, row.o].contains(&own.e)
        }
        Step::Blind(rows, _) => rows.iter().any(|own| touches(&Step::Change(*own, true, None), row)),
        Step::Save | Step::Back(_) => false,
        // The absence of statements of a predicate is read as a whole.
        Step::Degree(p, _, _, 0) | Step::Check(_, p, _, false) => *p == row.p,
        Step::Degree(p, Direction::Out, key, _) => (*p, *key) == (row.p, row.s),
        Step::Degree(p, Direction::In, key, _) => (*p, *key) == (row.p, row.o),
        Step::Check(s, p, o, _) => (*s, *p, *o) == (row.s, row.p, row.o),
        Step::Keys(p, _) => *p == row.p,
        Step::Predicates(_) => true,
        Step::Graphs(_) => row.g != 0,
        Step::Edge(edge, _) => row.e == *edge,
        Step::Known(t, found) => !found && [row.s, row.p, row.o, row.g].contains(t),
    }
}

struct Open {
    transaction: Transaction,
    /// The model of its view.
    model: Model,
    steps: Vec<Step>,
    /// With the number of the step and the expected view at that step.
    savepoints: Vec<(Savepoint, usize, Model)>,
    points: usize,
    /// Number of commits at its begin.
    began: usize,
}

impl Open {
    fn id(&self, t: T) -> Option<Id> {
        if t >= EDGE {
            return Some(Id::edge(t - EDGE));
        }
        self.transaction.view().expect("sound").as_snapshot().lookup(term(t).as_ref()).expect("sound")
    }

    fn change(&mut self, row: Row, added: bool) {
        let transaction = &self.transaction;
        let one = statement(row, &mut |term: &Term| transaction.intern(term.as_ref())).expect("new");
        let savepoint = self.transaction.savepoint();
        let real = if added { self.transaction.insert(&one) } else { self.transaction.remove(&one) };
        let expected = self.model.change(row, added).ok();
        match real {
            Ok(changed) => assert_eq!(Some(changed), expected, "{row:?} {added}"),
            Err(error) => {
                assert_eq!((error.kind(), expected), (ErrorKind::Input, None), "{error}");
                assert!(self.transaction.insert(&one).is_err(), "only going back is left");
                self.transaction.roll_back_to(&savepoint).expect("was made here");
            }
        }
        self.steps.push(Step::Change(row, added, expected));
    }

    fn blind(&mut self, rows: Vec<Row>, added: bool) {
        let transaction = &self.transaction;
        let mut after = self.model.clone();
        if rows.iter().any(|row| after.change(*row, added).is_err()) {
            return;
        }
        let all: Vec<_> = rows
            .iter()
            .map(|row| statement(*row, &mut |term: &Term| transaction.intern(term.as_ref())).expect("new"))
            .collect();
        let done = if added { self.transaction.insert_all(&all) } else { self.transaction.remove_all(&all) };
        done.expect("the model does it");
        self.model = after;
        self.steps.push(Step::Blind(rows, added));
    }

    fn savepoint(&mut self, random: &SeededRandom) {
        if self.savepoints.is_empty() || random.below(2) == 0 {
            self.savepoints.push((self.transaction.savepoint(), self.points, self.model.clone()));
            self.points += 1;
            self.steps.push(Step::Save);
            return;
        }
        let at = random.below(self.savepoints.len() as u64) as usize;
        let (savepoint, number, model) = &self.savepoints[at];
        // A savepoint before which the transaction has rolled back is refused, whatever the number of changes
        // since.
        if self.transaction.roll_back_to(savepoint).is_ok() {
            self.model = model.clone();
            self.steps.push(Step::Back(*number));
        }
    }

    fn read(&mut self, random: &SeededRandom) {
        let row = row(random);
        let view = self.transaction.view().expect("sound");
        let snapshot = view.as_snapshot();
        let step = match random.below(7) {
            0 | 1 => {
                let direction = if random.below(2) == 0 { Direction::Out } else { Direction::In };
                let key = if direction == Direction::Out { row.s } else { row.o };
                let Some((p, k)) = self.id(row.p).zip(self.id(key)) else { return };
                let mut degrees = vec![0];
                if let Some(segment) = snapshot.segment(p, direction).expect("sound") {
                    degrees.clear();
                    segment.degrees(&[k], EntryFilter::ALL, &mut degrees).expect("sound");
                }
                Step::Degree(row.p, direction, key, degrees[0])
            }
            2 => {
                let Some(((s, p), o)) = self.id(row.s).zip(self.id(row.p)).zip(self.id(row.o)) else {
                    return;
                };
                let mut found = Vec::new();
                if let Some(segment) = snapshot.segment(p, Direction::Out).expect("sound") {
                    segment.check(&[s], &[o], EntryFilter::ALL, &mut found).expect("sound");
                }
                Step::Check(row.s, row.p, row.o, !found.is_empty())
            }
            3 => {
                let Some(p) = self.id(row.p) else { return };
                let mut keys = Vec::new();
                if let Some(segment) = snapshot.segment(p, Direction::Out).expect("sound") {
                    segment.keys(Id::UNBOUND, 1000, &mut keys).expect("sound");
                }
                Step::Keys(row.p, keys.len() as u64)
            }
            4 => {
                let known = (1..20).filter(|t| {
                    self.transaction
                        .version()
                        .expect("sound")
                        .lookup(term(*t).as_ref())
                        .expect("sound")
                        .is_some_and(|id| snapshot.predicates().iter().any(|(p, _)| *p == id))
                });
                Step::Predicates(known.collect())
            }
            5 => Step::Graphs(snapshot.graphs().len()),
            _ => {
                let edge = EDGE + random.below(30);
                Step::Edge(edge, snapshot.edge(Id::edge(edge - EDGE)).is_ok())
            }
        };
        drop(view);
        let answer = rerun(self.model.clone(), std::slice::from_ref(&step));
        assert!(answer.is_some(), "{step:?} in {:?}", self.model);
        self.steps.push(step);
    }
}

fn row(random: &SeededRandom) -> Row {
    let e = if random.below(3) == 0 { EDGE + random.below(30) } else { 0 };
    let s = if random.below(8) == 0 { EDGE + random.below(30) } else { 1 + random.below(5) };
    let o = if random.below(2) == 0 {
        1 + random.below(5)
    } else {
        100 * (1 + random.below(3)) + random.below(3)
    };
    let g = if random.below(3) == 0 { 20 + random.below(2) } else { 0 };
    Row { s, p: 10 + random.below(4), o, g, e }
}

fn run(isolation: Isolation, seed: u64) {
    let random = SeededRandom::new(seed);
    let mut options = Options::default();
    options.checkpoints = false;
    let graph: Arc<Transactions> = Transactions::in_memory(Environment::real(), options).expect("works");
    let mut head = Model::default();
    // The rows changed by each commit.
    let mut commits: Vec<Vec<Row>> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    let (mut accepted, mut exact, mut conservative, mut merges) = (0, 0, 0, 0);
    for _ in 0..STEPS {
        if open.len() < 2 || open.len() < 5 && random.below(8) == 0 {
            let transaction = graph.begin(isolation).expect("begins");
            let began = commits.len();
            let (steps, savepoints) = (Vec::new(), Vec::new());
            open.push(Open { transaction, model: head.clone(), steps, savepoints, points: 0, began });
            continue;
        }
        let at = random.below(open.len() as u64) as usize;
        let one = &mut open[at];
        match random.below(20) {
            0..7 => one.change(row(&random), random.below(3) > 0),
            7 => {
                let some = (0..1 + random.below(3)).map(|_| row(&random)).collect();
                one.blind(some, random.below(3) > 0);
            }
            8..12 => one.read(&random),
            12 => {
                let t = 1 + random.below(30);
                let found = one.id(t).is_some();
                one.steps.push(Step::Known(t, found));
            }
            13..15 => one.savepoint(&random),
            15 if random.below(4) == 0 => merges += u64::from(graph.checkpoint().expect("works")),
            16 => drop(open.swap_remove(at)),
            17..20 => {
                let Open { transaction, model, steps, began, .. } = open.swap_remove(at);
                assert_eq!(
                    read(transaction.version().expect("sound")),
                    model,
                    "own changes on the graph of the begin"
                );
                let changes = transaction.change_count();
                let again = rerun(head.clone(), &steps);
                let writes = steps.iter().flat_map(|step| match step {
                    Step::Change(row, _, Some(true)) => vec![*row],
                    Step::Blind(rows, _) => rows.clone(),
                    _ => Vec::new(),
                });
                let writes: Vec<Row> = writes.collect();
                match transaction.commit() {
                    Ok(_) if changes == 0 => {}
                    Ok(_) => {
                        accepted += 1;
                        commits.push(writes);
                        let published = read(&graph.current().version);
                        if isolation == Isolation::Serializable {
                            assert_eq!(Some(&published), again.as_ref(), "as if it ran now: {steps:?}");
                        }
                        head = published;
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                        let reads = |row: &Row| steps.iter().any(|step| touches(step, row));
                        let hit = commits[began..].iter().flatten().any(reads);
                        assert!(isolation == Isolation::Snapshot || hit, "{error}: {steps:?}");
                        if again.is_none() { exact += 1 } else { conservative += 1 }
                    }
                }
                assert_eq!(read(&graph.current().version), head, "what others see");
            }
            _ => {}
        }
    }
    println!(
        "{isolation:?}: {accepted} accepted, {exact} refused, {conservative} of caution, {merges} checkpoints"
    );
    assert!(accepted > 300 && exact + conservative > 10 && merges > 10);
    assert!(isolation == Isolation::Snapshot || exact > 10);
}

#[test]
fn serializable_transactions_run_as_if_at_their_commit() {
    run(Isolation::Serializable, seed());
}

#[test]
fn snapshot_transactions_see_their_begin() {
    run(Isolation::Snapshot, seed());
}
