//! Crash tests of a database.
//!
//! A random life of a database (overlapping transactions, new terms, edges, removals, checkpoints, bulk
//! loads, reopenings) is stopped at each file operation in turn by a loss of power, or hit by an error or a
//! full disk and continued. After reopening, it holds every acknowledged commit, and each of the others whole
//! or not at all: the graph equals the state after some commit that was begun.
#![allow(clippy::cast_possible_truncation, reason = "small numbers of a test")]

use crate::common::{EDGE, Model, Row, read, seed, statement, term};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use vervet_env::{Environment, Fault, SeededRandom, SimulatedClock, Simulation};
use vervet_model::{ErrorKind, Result, Watch};
use vervet_store::{Base, BuildOptions, StoreBuilder, Target};
use vervet_txn::{Durability, Isolation, Options, ReplacementBase, Transaction, Transactions, continued};

const DIR: &str = "/db";
const STEPS: u64 = 7;
const POINTS_MIN: u64 = 6_000;

/// Expected state of a database.
struct Life {
    environment: Environment,
    options: Options,
    transactions: Option<Arc<Transactions>>,
    /// State that every reader must see.
    acknowledged: Model,
    /// States that may be found instead after an accident: later ones, none of which was acknowledged.
    maybe: Vec<Model>,
    /// A transaction that never commits.
    idle: Option<Transaction>,
    counts: [u64; 5],
    clock: Arc<SimulatedClock>,
    /// The disk may be full, and have room again: then failed commits may become visible later.
    may_come_late: bool,
}

impl Life {
    fn new(simulation: &Simulation, random: &SeededRandom) -> Self {
        let environment = simulation.environment();
        let mut options = Options::default();
        // In the background a checkpoint follows about each second commit.
        options.checkpoints = random.below(3) != 0;
        options.log_bytes_max = 2000;
        options.durability = if random.below(4) == 0 { Durability::None } else { Durability::Sync };
        options.pre_read = random.below(4) != 0;
        Self {
            environment,
            options,
            transactions: None,
            acknowledged: Model::default(),
            maybe: Vec::new(),
            idle: None,
            counts: [0; 5],
            clock: Arc::clone(&simulation.clock),
            may_come_late: false,
        }
    }

    fn open(&mut self) -> Result<Arc<Transactions>> {
        if let Some(open) = &self.transactions {
            return Ok(Arc::clone(open));
        }
        let environment = self.environment.clone();
        let opened = Transactions::open_or_create(environment, Path::new(DIR), self.options.clone())?;
        self.transactions = Some(Arc::clone(&opened));
        self.settle(&opened);
        Ok(opened)
    }

    /// Checks that the state found is the acknowledged one, or one of the possible others.
    fn settle(&mut self, opened: &Transactions) {
        let found = read(&opened.current().version);
        if found != self.acknowledged {
            let one = self.maybe.contains(&found);
            assert!(
                one,
                "{:?}\nfound {found:?}\nacknowledged {:?}\nmaybe {:?}",
                self.options, self.acknowledged, self.maybe
            );
            self.maybe.push(std::mem::replace(&mut self.acknowledged, found));
        }
    }

    fn close(&mut self) {
        self.idle = None;
        if let Some(transactions) = self.transactions.take() {
            // A thread that makes a checkpoint keeps the directory.
            transactions.wait_background();
        }
    }

    /// One step of a life, and the background checkpoint that it triggers: thus all lives of a seed are
    /// equal.
    fn step(&mut self, random: &SeededRandom) -> Result<()> {
        // Enables the retry of a failed checkpoint.
        self.clock.advance(Duration::from_secs(120));
        let result = self.one_step(random);
        if let Some(transactions) = &self.transactions {
            transactions.wait_background();
            let status = transactions.storage_status();
            self.counts[4] += status.checkpoints.completed;
            assert!(status.checkpoints.failed == 0 || status.checkpoints.last_failure.is_some());
        }
        result
    }

    fn one_step(&mut self, random: &SeededRandom) -> Result<()> {
        let transactions = self.open()?;
        match random.below(10) {
            0 => {
                self.counts[1] += 1;
                // A checkpoint without work makes nothing durable.
                if transactions.checkpoint()? {
                    self.is_safe();
                }
            }
            1 | 2 => {
                self.counts[2] += 1;
                self.load(&transactions, random)?;
            }
            3 => {
                self.counts[3] += 1;
                drop(transactions);
                self.close();
            }
            4 => {
                let mut idle = transactions.begin(Isolation::Snapshot)?;
                for _ in 0..2 {
                    let row = row(random, 0);
                    idle.insert_all(&[statement(row, &mut |term| idle.intern(term.as_ref()))?])?;
                }
                self.idle = Some(idle);
            }
            _ => self.commit(&transactions, random)?,
        }
        Ok(())
    }

    /// Everything so far is durable.
    fn is_safe(&mut self) {
        self.maybe.clear();
    }

    /// A state that was acknowledged.
    fn acknowledge(&mut self, state: Model, durable: bool) {
        let before = std::mem::replace(&mut self.acknowledged, state);
        if durable {
            self.is_safe();
        } else {
            self.maybe.push(before);
        }
    }

    fn commit(&mut self, transactions: &Arc<Transactions>, random: &SeededRandom) -> Result<()> {
        self.counts[0] += 1;
        let mut transaction = transactions.begin(Isolation::Serializable)?;
        let mut model = read(transaction.version().expect("sound"));
        let is_sure = model == self.acknowledged;
        // It may have read from a commit that failed since; then it fails, too.
        assert!(is_sure || self.options.pre_read && self.maybe.contains(&model), "begins with {model:?}");
        for _ in 0..1 + random.below(4) {
            if !model.0.is_empty() && random.below(3) == 0 {
                let at = random.below(model.0.len() as u64) as usize;
                let row = *model.0.iter().nth(at).expect("there");
                let gone = statement(row, &mut |term| transaction.intern(term.as_ref()))?;
                let savepoint = transaction.savepoint();
                match (transaction.remove(&gone), model.remove(row)) {
                    (Ok(removed), Ok(expected)) => assert_eq!(removed, expected),
                    (Err(error), Err(_)) if error.kind() == ErrorKind::Input => {
                        transaction.roll_back_to(&savepoint)?;
                    }
                    (real, expected) => panic!("{row:?}: {real:?}, {expected:?}"),
                }
            } else {
                let edge = if random.below(2) == 0 { EDGE + transaction.fresh_edge().payload() } else { 0 };
                let mut row = row(random, edge);
                let edges: Vec<u64> = model.0.iter().map(|row| row.e).filter(|edge| *edge > 0).collect();
                if !edges.is_empty() && random.below(4) == 0 {
                    row.s = edges[random.below(edges.len() as u64) as usize];
                }
                let new = statement(row, &mut |term| transaction.intern(term.as_ref()))?;
                assert_eq!(transaction.insert(&new)?, model.insert(row).expect("an edge is new"));
            }
        }
        // Before the commit: it may become visible and then fail.
        self.maybe.push(model.clone());
        transaction.commit()?;
        assert!(is_sure || self.may_come_late, "it has read what was never acknowledged");
        self.maybe.pop();
        // A commit without changes waits for nothing: a failed commit before it may still be found.
        if model != self.acknowledged {
            self.acknowledge(model, self.options.durability == Durability::Sync);
        }
        Ok(())
    }

    fn load(&mut self, transactions: &Arc<Transactions>, random: &SeededRandom) -> Result<()> {
        let mut model = self.acknowledged.clone();
        let rows: Vec<Row> = (0..random.below(4)).map(|_| row(random, 0)).collect();
        for row in &rows {
            model.insert(*row).expect("no edge");
        }
        self.maybe.push(model.clone());
        let environment = self.environment.clone();
        transactions.replace_graph(|replacement| Ok((build(&environment, replacement, &rows)?, ())))?;
        self.maybe.pop();
        self.acknowledge(model, true);
        Ok(())
    }

    /// Checks that the visible state is the acknowledged one.
    fn check_visible(&mut self) {
        if let Some(transactions) = self.transactions.clone() {
            if self.may_come_late {
                self.settle(&transactions);
            }
            assert_eq!(read(&transactions.current().version), self.acknowledged);
        }
    }

    /// The disk has room again: the same process commits and makes checkpoints, and no acknowledged commit is
    /// lost.
    fn goes_on(&mut self, random: &SeededRandom) {
        if self.transactions.is_none() {
            return;
        }
        self.clock.advance(Duration::from_secs(120));
        let opened = self.open().expect("is open");
        // Begin writes the records that waited for room.
        drop(opened.begin(Isolation::Serializable).expect("begins"));
        self.check_visible();
        self.commit(&opened, random).expect("takes commits, without being opened again");
        opened.checkpoint().expect("and checkpoints");
        assert!(opened.storage_status().is_writable());
        self.check_visible();
    }

    /// After an accident: opens, compares, writes, opens again.
    fn check_reopened(&mut self, random: &SeededRandom) {
        let opened = self.open().expect("opens");
        drop(opened.begin(Isolation::Serializable).expect("recovers"));
        self.settle(&opened);
        self.maybe.clear();
        for _ in 0..2 {
            self.commit(&opened, random).expect("takes new commits");
        }
        drop(opened);
        self.close();
        let opened = self.open().expect("opens");
        // Closed in order: at every level all is there.
        assert_eq!(read(&opened.current().version), self.acknowledged, "after new commits");
        opened.begin(Isolation::Serializable).expect("recovers");
        assert_eq!(read(&opened.current().version), self.acknowledged, "as owner");
        opened.checkpoint().expect("works");
        assert_eq!(read(&opened.current().version), self.acknowledged, "after a checkpoint");
        drop(opened);
        self.close();
    }
}

/// A bulk load, as the facade does it.
fn build(
    environment: &Environment,
    replacement: &ReplacementBase<'_>,
    rows: &[Row],
) -> Result<Arc<dyn Base>> {
    let version = replacement.version;
    let mut dictionary = {
        let terms = version.terms();
        continued(version, terms.vertex_end(), terms.literal_end(), &Watch::new("load"))?
    };
    let mut builder = StoreBuilder::new(BuildOptions {
        threads: 1,
        memory_bytes: 1 << 20,
        environment: environment.clone(),
        temp_dir: Some(Path::new(DIR).to_owned()),
        log: replacement.log,
        orders: Vec::new(),
    });
    for statement in version.statements() {
        builder.add(&[statement?])?;
    }
    for row in rows {
        builder.add(&[statement(*row, &mut |term| dictionary.intern_term(term.as_ref()))?])?;
    }
    let target = Target::Directory(Path::new(DIR).to_owned());
    replacement.finish(builder, dictionary.finish()?, &target, &Watch::new("load"))
}

fn row(random: &SeededRandom, e: u64) -> Row {
    let o = match random.below(4) {
        0 => 100 + random.below(6),
        1 => 200 + random.below(6),
        2 => 300 + random.below(4),
        _ => 1 + random.below(9),
    };
    let g = if random.below(3) == 0 { 20 + random.below(2) } else { 0 };
    let row = Row { s: 1 + random.below(9), p: 10 + random.below(3), o, g, e };
    debug_assert!(term(row.o).to_string().len() > 1);
    row
}

fn accident(simulation: &Simulation, random: &SeededRandom) {
    match random.below(4) {
        0 => simulation.files.crash(),
        1 => simulation.files.crash_losing_all(),
        _ => simulation.files.crash_reordering(),
    }
}

fn disk(seed: u64) -> Simulation {
    let simulation = Simulation::new(seed);
    let files = &simulation.environment().files;
    files.create_dir_all(Path::new(DIR)).expect("works");
    files.sync_dir(Path::new("/")).expect("works");
    simulation
}

/// A life up to an operation: returns whether the accident happened, and counts.
type OneLife = fn(&Simulation, &SeededRandom, &SeededRandom, u64) -> (bool, [u64; 5]);

/// Runs lives, each once for every operation at which `run` applies an accident, until there were enough
/// points.
fn every_operation(points_min: u64, run: OneLife) {
    let seed = seed();
    let (mut points, mut lives, mut counts) = (0, 0, [0; 5]);
    while points < points_min {
        lives += 1;
        for n in 0.. {
            let result = std::panic::catch_unwind(|| {
                // The same life for every n; a different accident.
                let random = SeededRandom::new(seed ^ (lives << 32));
                let accidents = SeededRandom::new(seed ^ (lives << 32) ^ (n << 1) ^ 1);
                let simulation = disk(accidents.next());
                run(&simulation, &random, &accidents, n)
            });
            let Ok((reached, life)) = result else {
                panic!("VERVET_SEED={seed}, life {lives}, operation {n}")
            };
            points += 1;
            if !reached {
                counts.iter_mut().zip(life).for_each(|(sum, count)| *sum += count);
                break;
            }
        }
    }
    println!(
        "{points} points in {lives} lives; commits, checkpoints, loads, closings, in the background: {counts:?}"
    );
    assert!(counts.iter().all(|count| *count > 10), "{counts:?}");
}

#[test]
fn no_loss_of_power_loses_an_acknowledged_commit() {
    every_operation(POINTS_MIN, |simulation, random, accidents, n| {
        let mut life = Life::new(simulation, random);
        let before = simulation.files.write_count();
        simulation.files.fail_write(n, Fault::Power);
        for _ in 0..STEPS {
            if let Err(error) = life.step(random) {
                assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                break;
            }
        }
        let reached = simulation.files.write_count() > before + n;
        life.check_visible();
        accident(simulation, accidents);
        life.close();
        // More losses of power, while it recovers.
        while accidents.below(3) == 0 {
            simulation.files.fail_write(accidents.below(8), Fault::Power);
            if let Ok(opened) = life.open() {
                let _ = opened.begin(Isolation::Serializable);
            }
            accident(simulation, accidents);
            life.close();
        }
        life.check_reopened(accidents);
        (reached, life.counts)
    });
}

#[test]
fn an_operation_that_fails_leaves_nothing_half_done() {
    every_operation(POINTS_MIN / 2, |simulation, random, accidents, n| {
        let mut life = Life::new(simulation, random);
        let before = simulation.files.write_count();
        let fault = if accidents.below(3) == 0 { Fault::DiskFull } else { Fault::Io };
        let healed_after = accidents.below(STEPS);
        life.may_come_late = fault == Fault::DiskFull;
        simulation.files.fail_write(n, fault);
        for step in 0..STEPS {
            if fault == Fault::DiskFull && step == healed_after && simulation.files.write_count() > before + n
            {
                simulation.files.clear_faults();
                life.goes_on(accidents);
            }
            if let Err(error) = life.step(random) {
                // A transaction that began after a failed commit conflicts with it.
                let behind = error.kind() == ErrorKind::Conflict && !life.options.pre_read;
                // While checkpoints fail the log may reach its limit.
                let status = life.transactions.as_ref().map(|open| open.storage_status());
                let fails = status.is_some_and(|status| status.checkpoints.failed_in_row > 0);
                let is_at_limit = error.kind() == ErrorKind::Unavailable && fails;
                assert!(behind || is_at_limit || error.kind() == ErrorKind::Io, "{error}");
                life.check_visible();
            }
        }
        let reached = simulation.files.write_count() > before + n;
        life.check_visible();
        if accidents.below(2) == 0 {
            accident(simulation, accidents);
        }
        life.close();
        simulation.files.clear_faults();
        life.check_reopened(accidents);
        (reached, life.counts)
    });
}

/// After a failed sync no record may be written after the lost ones.
#[test]
fn after_a_failed_sync_nothing_commits_until_reopened() {
    let simulation = disk(1);
    let random = SeededRandom::new(seed());
    let mut life = Life::new(&simulation, &random);
    life.options.durability = Durability::Sync;
    life.options.checkpoints = false;
    let opened = life.open().expect("opens");
    life.commit(&opened, &random).expect("works");
    let mut failed = 0;
    // A commit writes and syncs; the sync is the last operation.
    let before = simulation.files.write_count();
    life.commit(&opened, &random).expect("works");
    let operations = simulation.files.write_count() - before;
    simulation.files.fail_write(operations - 1, Fault::Io);
    for _ in 0..5 {
        let commit = life.commit(&opened, &random);
        failed += u32::from(commit.is_err_and(|error| error.kind() == ErrorKind::Io));
        life.check_visible();
    }
    assert_eq!(failed, 5, "all of them, though the disk works again");
    simulation.files.crash_reordering();
    drop(opened);
    life.close();
    life.check_reopened(&random);
}
