//! A graph whose log other processes follow: every follower has, at every timestamp, the graph that the
//! writer had; no loss of power and no restart of the writer takes from a follower what it has seen.

use crate::common::{EDGE, Model, Row, read, seed, statement, term};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use vervet_dictionary::DictionaryBuilder;
use vervet_env::{SeededRandom, Simulation};
use vervet_model::{Error, ErrorKind, Partitioning};
use vervet_store::{Base, BuildOptions, StoreBuilder, Target};
use vervet_txn::{
    Constraint, ConstraintKind, Follower, Isolation, LogRecord, Options, Start, Timestamp, Transactions,
};

const DIR: &str = "/log";

fn row(random: &SeededRandom, e: u64) -> Row {
    let o = [1 + random.below(60), 100 + random.below(40), 200 + random.below(40), 300 + random.below(9)];
    let o = o[usize::try_from(random.below(4)).expect("small")];
    Row { s: 1 + random.below(60), p: 90 + random.below(4), o, g: 0, e }
}

/// A base in several partitions, or one store, and its graph.
fn base(simulation: &Simulation, random: &SeededRandom) -> (Arc<dyn Base>, Model) {
    let mut dictionary = DictionaryBuilder::new();
    let mut builder = StoreBuilder::new(BuildOptions {
        threads: 1,
        memory_bytes: 1 << 20,
        environment: simulation.environment(),
        temp_dir: None,
        log: None,
        orders: Vec::new(),
    });
    let mut model = Model::default();
    for number in 0..random.below(60) {
        let row = row(random, if random.below(4) == 0 { EDGE + number } else { 0 });
        if model.insert(row).is_ok_and(|added| added) {
            let statement = statement(row, &mut |term| dictionary.intern_term(term.as_ref()));
            builder.add(&[statement.expect("short")]).expect("in memory");
        }
    }
    let partitioning = Partitioning::new(1 << random.below(3)).expect("a power of two");
    let image = dictionary.finish().expect("small");
    let base = vervet_partition::finish(builder, image, &Target::Memory, partitioning, None);
    (base.expect("a good graph"), model)
}

fn start_of(base: &Arc<dyn Base>) -> Start {
    Start::new(Arc::clone(base), Vec::new())
}

fn refusal() -> Error {
    Error::new(ErrorKind::Unsupported, "another server writes")
}

/// A follower with its place in the log.
struct Following {
    follower: Follower,
    after: u64,
}

impl Following {
    fn new(simulation: &Simulation, base: &Arc<dyn Base>) -> Self {
        let (environment, options) = (simulation.environment(), Options::default());
        let start = start_of(base);
        Self { follower: Follower::new(environment, start, options, refusal()).expect("no rules"), after: 0 }
    }

    /// Takes some records; returns whether there were any.
    fn follow(&mut self, writer: &Transactions, bytes_max: usize) -> bool {
        let (_, records) = writer.read_log(self.after, bytes_max).expect("a sound log");
        let Some(last) = records.last() else { return false };
        self.after = last.lsn;
        self.follower.apply(&records).expect("the next records");
        true
    }

    fn state(&self) -> (Timestamp, Model) {
        let current = self.follower.transactions().current();
        (current.timestamp, read(&current.version))
    }
}

#[test]
fn followers_have_the_graph_of_each_timestamp() {
    let seed = seed();
    for case in 0..40 {
        let random = SeededRandom::new(seed + case);
        let simulation = Simulation::new(seed + case);
        simulation.environment().files.create_dir_all(Path::new(DIR)).expect("works");
        let (base, mut model) = base(&simulation, &random);
        let open = || {
            let start = start_of(&base);
            Transactions::over(simulation.environment(), start, Path::new(DIR), Options::default())
        };
        let mut writer = open().expect("opens");
        // Graphs by timestamp.
        let mut states = BTreeMap::from([(writer.current().timestamp, model.clone())]);
        let mut followers: Vec<Following> = (0..3).map(|_| Following::new(&simulation, &base)).collect();
        for _ in 0..60 {
            match random.below(12) {
                0 => {
                    drop(writer);
                    if random.below(2) == 0 {
                        simulation.files.crash_losing_all();
                    }
                    writer = open().expect("opens again");
                    assert_eq!(read(&writer.current().version), model, "seed {}", seed + case);
                }
                1 => {
                    // A follower that begins again, from the base.
                    let at = usize::try_from(random.below(3)).expect("small");
                    followers[at] = Following::new(&simulation, &base);
                }
                2..6 => {
                    let at = usize::try_from(random.below(3)).expect("small");
                    let bytes_max = 1 << random.below(12);
                    followers[at].follow(&writer, bytes_max);
                    let (timestamp, found) = followers[at].state();
                    let expected = states.get(&timestamp);
                    assert_eq!(Some(&found), expected, "seed {} at {timestamp:?}", seed + case);
                }
                _ => {
                    let mut transaction = writer.begin(Isolation::Serializable).expect("begins");
                    for _ in 0..1 + random.below(5) {
                        let edge = match random.below(4) {
                            0 => EDGE + transaction.fresh_edge().payload(),
                            _ => 0,
                        };
                        let (row, id) =
                            (row(&random, edge), &mut |term: &oxrdf::Term| transaction.intern(term.as_ref()));
                        let statement = statement(row, id).expect("numbered");
                        if random.below(3) == 0 && edge == 0 {
                            let removed = transaction.remove(&statement);
                            match model.remove(row) {
                                Ok(expected) => assert_eq!(removed.expect("removed"), expected),
                                Err(_) => assert!(removed.is_err()),
                            }
                        } else {
                            let inserted = transaction.insert(&statement).expect("an edge is new");
                            assert_eq!(inserted, model.insert(row).expect("an edge is new"));
                        }
                    }
                    let timestamp = transaction.commit().expect("commits");
                    states.insert(timestamp, model.clone());
                }
            }
        }
        for following in &mut followers {
            while following.follow(&writer, 100) {}
            assert_eq!(
                following.state(),
                (writer.current().timestamp, model.clone()),
                "seed {}",
                seed + case
            );
            assert_eq!(following.after, writer.synced_log_end().min(following.after));
        }
    }
}

#[test]
fn constraints_are_followed_and_the_base_stays() {
    let (simulation, random) = (Simulation::new(1), SeededRandom::new(1));
    simulation.environment().files.create_dir_all(Path::new(DIR)).expect("works");
    let (base, _) = base(&simulation, &random);
    let open =
        || Transactions::over(simulation.environment(), start_of(&base), Path::new(DIR), Options::default());
    let writer = open().expect("opens");
    let name = oxrdf::NamedNode::new_unchecked;
    let constraint = Constraint::new(ConstraintKind::Unique, name("urn:none"), [name("urn:key")]);
    let constraint = constraint.expect("a constraint");
    assert!(writer.add_constraint(&constraint).expect("holds"));
    let mut following = Following::new(&simulation, &base);
    while following.follow(&writer, 10) {}
    assert_eq!(following.follower.transactions().constraints(), std::slice::from_ref(&constraint));
    let refused = |result: vervet_model::Result<bool>| result.expect_err("refused").kind();
    assert_eq!(refused(writer.checkpoint()), ErrorKind::Unsupported);
    let load = writer.replace_graph(|_| -> vervet_model::Result<(Arc<dyn Base>, ())> {
        unreachable!("the base is not replaced")
    });
    assert_eq!(load.expect_err("refused").kind(), ErrorKind::Unsupported);
    // A follower does not write.
    let mut transaction = following.follower.transactions().begin(Isolation::Serializable);
    let interned = transaction.as_mut().map(|transaction| transaction.intern(term(399).as_ref()));
    assert!(!matches!(interned, Ok(Ok(_))), "{interned:?}");
    // A second process does not write to the log.
    assert_eq!(open().expect_err("taken").kind(), ErrorKind::Unavailable);
    drop(writer);
    assert_eq!(open().expect("free").constraints(), [constraint]);
}

/// Without checkpoints, changes end at the limits.
#[test]
fn changes_are_limited() {
    let (simulation, random) = (Simulation::new(5), SeededRandom::new(5));
    simulation.environment().files.create_dir_all(Path::new(DIR)).expect("works");
    let (base, _) = base(&simulation, &random);
    let mut options = Options::default();
    options.log_bytes_max = 2_000;
    let writer = Transactions::over(simulation.environment(), start_of(&base), Path::new(DIR), options)
        .expect("opens");
    let mut commits = 0;
    assert!(writer.storage_status().refusal.is_none());
    let error = loop {
        let mut transaction = writer.begin(Isolation::Serializable).expect("begins");
        let row = Row { s: 1 + commits % 60, p: 90, o: 200 + commits / 60, g: 0, e: 0 };
        let statement = statement(row, &mut |term| transaction.intern(term.as_ref())).expect("numbered");
        transaction.insert(&statement).expect("new");
        match transaction.commit() {
            Ok(_) => commits += 1,
            Err(error) => break error,
        }
        assert!(commits < 1_000, "it has a limit");
    };
    assert!(commits > 5, "{commits}");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("limit 2000") && error.hint().is_some(), "{error:?}");
    let refusal = writer.storage_status().refusal.expect("it refuses commits");
    assert_eq!(refusal.message(), error.message());
    // The log is sound, as far as can be seen without its base.
    let checked = vervet_txn::check_log(&simulation.environment(), Path::new(DIR)).expect("sound");
    assert_eq!(checked.commits, commits);
    let files = simulation.environment().files.list(Path::new(DIR)).expect("a directory");
    let log = files.iter().find(|path| path.extension().is_some_and(|end| end == "log")).expect("a log");
    let length = simulation.environment().files.length(log).expect("a length");
    for position in (40..length).step_by(97) {
        let position = usize::try_from(position).expect("small");
        let before = simulation.environment().files.read(log).expect("readable")[position];
        simulation.files.damage(log, position, before ^ 1).expect("damaged");
        match vervet_txn::check_log(&simulation.environment(), Path::new(DIR)) {
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{position}: {error}"),
            Ok(torn) => assert!(torn.commits >= checked.commits - 1, "{position}"),
        }
        simulation.files.damage(log, position, before).expect("repaired");
    }
}

#[test]
fn wrong_records_are_refused() {
    let (simulation, random) = (Simulation::new(3), SeededRandom::new(3));
    simulation.environment().files.create_dir_all(Path::new(DIR)).expect("works");
    let (base, model) = base(&simulation, &random);
    let options = Options::default();
    let writer = Transactions::over(simulation.environment(), start_of(&base), Path::new(DIR), options)
        .expect("opens");
    for number in 0..3 {
        let mut transaction = writer.begin(Isolation::Serializable).expect("begins");
        let row = Row { s: 61 + number, p: 90, o: 300, g: 0, e: 0 };
        let statement = statement(row, &mut |term| transaction.intern(term.as_ref())).expect("numbered");
        transaction.insert(&statement).expect("new");
        transaction.commit().expect("commits");
    }
    let (_, records) = writer.read_log(0, usize::MAX).expect("a sound log");
    assert!(records.len() >= 6, "{records:?}");
    let damage: [fn(&mut Vec<LogRecord>); 4] = [
        |records| drop(records.remove(0)),
        |records| records.truncate(0),
        |records| records.swap(0, 1),
        |records| records[1].payload.truncate(3),
    ];
    for damage in damage {
        let mut changed = records.clone();
        damage(&mut changed);
        let following = Following::new(&simulation, &base);
        if let Err(error) = following.follower.apply(&changed) {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        } else {
            assert!(changed.is_empty());
        }
        // Nothing half done is visible.
        assert_eq!(following.state(), (Timestamp(0), model.clone()));
    }
}
