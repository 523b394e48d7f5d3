//! Tests of a long-running database: checkpoints, back-pressure, full disks.
//!
//! The log is cut, failed checkpoints are retried and reported, back-pressure delays writers, and a full disk
//! does not stop the process. Findings B1, B3, B4, B6, B11, B12 and B17 of the review of storage.
#![allow(clippy::cast_possible_truncation, reason = "small numbers of a test")]

use crate::common::{Row, read, statement};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use vervet_env::{Fault, Simulation};
use vervet_model::{Direction, ErrorKind, Result, Watch};
use vervet_snapshot::Snapshot;
use vervet_store::{BuildOptions, StoreBuilder, Target};
use vervet_txn::{
    CHECKPOINT_RETRY_MAX, CHECKPOINT_RETRY_MIN, Durability, Isolation, Options, Transactions, continued,
};

const DIR: &str = "/db";

fn options() -> Options {
    let mut options = Options::default();
    options.durability = Durability::None;
    options
}

fn open(simulation: &Simulation, options: Options) -> Arc<Transactions> {
    Transactions::open_or_create(simulation.environment(), Path::new(DIR), options).expect("opens")
}

fn row(number: u64) -> Row {
    Row { s: 1 + number % 90, p: 1, o: 200 + number / 90 % 100, g: 0, e: 0 }
}

/// Adds or removes these rows in one transaction.
fn change(graph: &Arc<Transactions>, rows: &[Row], add: bool) -> Result<()> {
    let mut transaction = graph.begin(Isolation::Serializable)?;
    for row in rows {
        let statement = statement(*row, &mut |term| transaction.intern(term.as_ref()))?;
        if add {
            transaction.insert_all(&[statement])?;
        } else {
            transaction.remove(&statement)?;
        }
    }
    transaction.commit().map(drop)
}

/// Adds rows in one transaction and removes them in the same transaction.
fn come_and_go(graph: &Arc<Transactions>, row: Row) -> Result<()> {
    let mut transaction = graph.begin(Isolation::Serializable)?;
    let statement = statement(row, &mut |term| transaction.intern(term.as_ref()))?;
    transaction.insert(&statement)?;
    transaction.remove(&statement)?;
    transaction.commit().map(drop)
}

/// The seed in the newest dictionary file, which a dictionary that is copied keeps.
fn dictionary_seed(simulation: &Simulation) -> Vec<u8> {
    let files = simulation.environment().files;
    let names = files.list(Path::new(DIR)).expect("there");
    let is_dictionary = |path: &&std::path::PathBuf| path.to_string_lossy().contains("dictionary-");
    let path = names.iter().filter(is_dictionary).max().expect("a dictionary file");
    let bytes = files.read(path).expect("it can be read");
    let trailer = bytes.len() - 128;
    bytes[trailer + 32..trailer + 40].to_vec()
}

/// Storage B6 (c): a checkpoint with few new terms copies the dictionary with them; one with many rebuilds
/// it.
#[test]
fn b6_a_checkpoint_extends_the_dictionary() {
    let simulation = Simulation::new(1);
    let mut graph = open(&simulation, options());
    // IRIs, then blank nodes; each second row has a new literal.
    let row = |number: u64| {
        let s = if number < 98 { 2 + number } else { 202 + number };
        Row { s, p: 1, o: 100 + number / 2, g: 0, e: 0 }
    };
    let mut rows: Vec<Row> = (0..20).map(row).collect();
    change(&graph, &rows, true).expect("works");
    assert!(graph.checkpoint().expect("room"));
    let first = dictionary_seed(&simulation);
    for round in 0..7 {
        let count = if round == 6 { 120 } else { 3 };
        let next = rows.len() as u64;
        let new: Vec<Row> = (next..next + count).map(row).collect();
        change(&graph, &new, true).expect("works");
        rows.extend(new);
        assert!(graph.checkpoint().expect("room"));
        assert_eq!(dictionary_seed(&simulation) == first, round < 6, "round {round}");
        if round % 2 == 0 {
            drop(graph);
            graph = open(&simulation, options());
        }
        let version = graph.current();
        version.version.base().validate().expect("sound");
        assert_eq!(read(&version.version).0, rows.iter().copied().collect());
    }
}

/// Samples of the keys of segments are made by a checkpoint, survive reopening, and remain those of the base
/// while it has changes, whose counts are estimates.
#[test]
fn samples_of_keys_survive_checkpoints() {
    let simulation = Simulation::new(1);
    let graph = open(&simulation, options());
    let rows = |numbers: std::ops::Range<u64>| -> Vec<Row> {
        numbers.map(|number| Row { s: 2 + number % 50, p: 1, o: 210 + number % 7, g: 0, e: 0 }).collect()
    };
    let statistics = |graph: &Arc<Transactions>, direction| {
        let current = graph.current();
        let predicate =
            current.version.lookup(crate::common::term(1).as_ref()).expect("sound").expect("there");
        let segment = current.version.segment(predicate, direction).expect("sound").expect("has entries");
        segment.statistics().clone()
    };
    change(&graph, &rows(0..200), true).expect("works");
    assert_eq!(statistics(&graph, Direction::Out).sketch, None, "there is no base");
    assert!(graph.checkpoint().expect("room"));
    drop(graph);
    let graph = open(&simulation, options());
    for (direction, keys) in [(Direction::Out, 50), (Direction::In, 7)] {
        let found = statistics(&graph, direction);
        let sketch = found.sketch.expect("the base has samples");
        assert!(found.exact && sketch.is_complete());
        assert!((sketch.keys() - keys as f64).abs() < 1e-9, "{direction:?}");
        assert!((sketch.entries() - found.entries as f64).abs() < 1e-9, "{direction:?}");
        assert!(found.degree_squares >= found.entries * found.entries / keys, "{direction:?}");
    }
    let before = statistics(&graph, Direction::Out);
    change(&graph, &[Row { s: 3, p: 1, o: 290, g: 0, e: 0 }], true).expect("works");
    let after = statistics(&graph, Direction::Out);
    assert!(!after.exact && after.entries == before.entries + 1);
    assert_eq!(after.sketch, before.sketch);
    assert!(after.degree_squares >= before.degree_squares);
}

/// Storage B1: formerly, changes without an effect grew the log and not the delta, and the log was never cut.
#[test]
fn b1_an_empty_delta_cuts_the_log() {
    let simulation = Simulation::new(1);
    let mut options = options();
    options.log_bytes_max = 40_000;
    let graph = open(&simulation, options.clone());
    change(&graph, &[row(0), row(1), row(2)], true).expect("works");
    assert!(graph.checkpoint().expect("works"));
    let base = graph.current().version.base().number();
    let mut most = 0;
    for number in 0..3000 {
        match number % 2 {
            0 => change(&graph, &[row(0), row(1)], true).expect("they are there"),
            _ => come_and_go(&graph, row(3 + number % 2)).expect("works"),
        }
        most = most.max(graph.storage_status().log_bytes);
        graph.wait_background();
    }
    let status = graph.storage_status();
    assert!(status.checkpoints.completed > 5, "{status:?}");
    assert!(most < options.log_bytes_max / 2 && status.log_files <= 2, "{most} bytes, {status:?}");
    assert_eq!(status.delta_cells, 0);
    // A checkpoint without changes is cheap: of these only the first had terms for the base.
    let rebuilt = graph.current().version.base().number();
    assert!(graph.checkpoint().expect("works") || graph.storage_status().log_bytes == 0);
    assert_eq!(graph.current().version.base().number(), rebuilt, "the same files");
    assert!(rebuilt != base, "the terms of row 3 and 4 are in a base");
    assert!(!graph.checkpoint().expect("works"), "nothing to do");
    let timestamp = graph.current().timestamp;
    drop(graph);
    simulation.files.crash_losing_all();
    let again = open(&simulation, options);
    assert_eq!((again.current().timestamp, again.current().version.statement_count()), (timestamp, 3));
    change(&again, &[row(7)], true).expect("goes on");
}

/// Storage B3: a failed checkpoint is counted, reported and delayed; once the disk has room, the process
/// continues without a restart.
#[test]
fn b3_a_checkpoint_that_fails_waits_and_is_told() {
    let simulation = Simulation::new(1);
    let mut options = options();
    options.durability = Durability::Sync;
    options.log_bytes_max = 100_000;
    let graph = open(&simulation, options.clone());
    let mut number = 0;
    let mut commit = |graph: &Arc<Transactions>| {
        let done = change(graph, &[row(number), row(number + 1)], true);
        graph.wait_background();
        number += 1;
        done
    };
    while graph.storage_status().checkpoints.completed == 0 {
        commit(&graph).expect("works");
    }
    // The disk has no room for another base, but it has for the log.
    simulation.files.set_available(Some(1000));
    let mut files = 0;
    while graph.storage_status().checkpoints.failed == 0 {
        commit(&graph).expect("the log has room");
        files = graph.storage_status().log_files;
    }
    let status = graph.storage_status().checkpoints;
    let (error, _) = status.last_failure.expect("it is reported");
    assert!(error.kind() == ErrorKind::Io && error.message().contains("1000 are free"), "{error}");
    assert_eq!(status.next_try, Some(CHECKPOINT_RETRY_MIN));
    for _ in 0..20 {
        commit(&graph).expect("works");
    }
    assert_eq!(graph.storage_status().checkpoints.failed, 1, "not with every commit");
    assert_eq!(graph.storage_status().log_files, files, "not a file for every attempt");
    // The delay grows up to its maximum.
    let mut waits = Vec::new();
    for failed in 2..10 {
        simulation.clock.advance(graph.storage_status().checkpoints.next_try.expect("it waits"));
        commit(&graph).expect("works");
        let status = graph.storage_status().checkpoints;
        assert_eq!(status.failed, failed);
        waits.push(status.next_try.expect("it waits"));
    }
    assert!(waits.is_sorted() && waits.last() == Some(&CHECKPOINT_RETRY_MAX), "{waits:?}");
    // Commits reach the limit, and are refused before the log is longer.
    let refused = loop {
        if let Err(error) = commit(&graph) {
            break error;
        }
    };
    assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
    assert!(refused.message().contains("checkpoints failed") && refused.hint().is_some(), "{refused}");
    assert!(graph.storage_status().log_bytes < options.log_bytes_max + 1000);
    let before = graph.current().version.statement_count();
    simulation.files.set_available(None);
    simulation.clock.advance(CHECKPOINT_RETRY_MAX);
    // The commit at the limit requests a checkpoint, waits for it, and continues.
    commit(&graph).expect("there is room again");
    let status = graph.storage_status();
    assert_eq!((status.checkpoints.failed_in_row, status.checkpoints.next_try), (0, None));
    assert!(
        status.log_bytes < options.log_bytes_max / 4 && status.is_writable() && status.slowed_commits > 0
    );
    assert!(graph.current().version.statement_count() >= before);
}

/// Storage B3: a full disk refuses changes, not queries; with room again the same process continues with
/// every acknowledged commit.
#[test]
fn b3_a_full_disk_heals_without_a_restart() {
    for n in 0..12 {
        let simulation = Simulation::new(n);
        let mut options = options();
        options.durability = Durability::Sync;
        let graph = open(&simulation, options.clone());
        change(&graph, &[row(0)], true).expect("works");
        simulation.files.fail_write(n, Fault::DiskFull);
        let mut acknowledged = 1;
        let mut refused = 0;
        for number in 1..10 {
            match change(&graph, &[row(number)], true) {
                Ok(()) => acknowledged += 1,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                    assert!(
                        error.hint().is_some_and(|hint| hint.contains("disk")),
                        "{error} {:?}",
                        error.hint()
                    );
                    refused += 1;
                }
            }
            assert_eq!(graph.current().version.statement_count(), acknowledged, "operation {n}");
        }
        assert!(refused > 0 && !graph.storage_status().is_writable());
        graph.checkpoint().expect_err("no room for it either");
        simulation.files.clear_faults();
        change(&graph, &[row(20)], true).expect("there is room again");
        assert!(graph.storage_status().is_writable());
        // The commit in progress when the disk filled up may be present, too.
        let count = graph.current().version.statement_count();
        assert!(count == acknowledged + 1 || count == acknowledged + 2, "{count}, {acknowledged}");
        graph.checkpoint().expect("works");
        change(&graph, &[row(21)], true).expect("works");
        drop(graph);
        simulation.files.crash_losing_all();
        assert_eq!(open(&simulation, options).current().version.statement_count(), count + 1);
    }
}

/// Storage B4: formerly, a panic in the thread that merges ended all checkpoints.
#[test]
fn b4_a_panic_does_not_end_checkpoints() {
    let simulation = Simulation::new(1);
    let mut options = options();
    options.log_bytes_max = 20_000;
    let graph = open(&simulation, options);
    // The checkpoint called by the application panics: after the operations of the log, in the builder.
    change(&graph, &[row(5000)], true).expect("works");
    simulation.files.fail_write(12, Fault::Panic);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| graph.checkpoint()));
    assert!(panicked.is_err());
    let status = graph.storage_status().checkpoints;
    assert_eq!((status.failed, status.running), (1, false));
    assert!(status.last_failure.is_some_and(|(error, _)| error.message().contains("panicked")));
    drop(graph);
    let simulation = Simulation::new(2);
    let mut options = self::options();
    options.log_bytes_max = 20_000;
    let graph = open(&simulation, options);
    for number in 0.. {
        if graph.storage_status().log_bytes > 4_500 {
            // The next commit that crosses the trigger starts a thread, whose first operations are the log's.
            simulation.files.fail_write(12, Fault::Panic);
        }
        change(&graph, &[row(number)], true).expect("works");
        graph.wait_background();
        if graph.storage_status().checkpoints.failed > 0 {
            break;
        }
    }
    simulation.files.clear_faults();
    assert!(!graph.storage_status().checkpoints.running, "the flag is not left set");
    simulation.clock.advance(CHECKPOINT_RETRY_MAX);
    change(&graph, &[row(8000)], true).expect("works");
    graph.wait_background();
    assert_eq!(graph.storage_status().checkpoints.completed, 1, "the next one is made");
}

/// Storage B6: changes that are faster than checkpoints wait, and memory exceeds its limit by at most one
/// transaction.
#[test]
fn b6_commits_wait_for_checkpoints_that_are_behind() {
    let simulation = Simulation::new(1);
    let mut options = options();
    options.delta_bytes_max = 100_000;
    let graph = open(&simulation, options.clone());
    // Each base takes some milliseconds, and twenty statements some microseconds.
    simulation.files.set_sync_time(Duration::from_millis(1));
    let most = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (graph, most) = (&graph, &most);
            scope.spawn(move || {
                for number in 0..100 {
                    let rows: Vec<Row> = (0..20).map(|at| row(thread * 2000 + number * 20 + at)).collect();
                    change(graph, &rows, true).expect("waits, and is not refused");
                    most.fetch_max(graph.storage_status().delta_bytes, Ordering::Relaxed);
                }
            });
        }
    });
    let most = most.into_inner();
    assert!(most < options.delta_bytes_max + 4 * 20 * 200, "{most}");
    assert_eq!(graph.current().version.statement_count(), 8000);
    assert!(graph.storage_status().checkpoints.completed > 0);
}

/// Storage B6: the base counts terms in 32 bits; beyond that every checkpoint failed. Now the first excess
/// term is refused.
#[test]
fn b6_terms_have_a_limit_that_is_told() {
    let simulation = Simulation::new(1);
    let mut options = options();
    options.terms_max = 20;
    let graph = open(&simulation, options);
    let refused = (0..50).find_map(|number| change(&graph, &[row(number)], true).err()).expect("too many");
    assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
    assert!(refused.hint().is_some_and(|hint| hint.contains("export")), "{:?}", refused.hint());
    assert!(graph.checkpoint().expect("still possible"));
    change(&graph, &[row(0)], false).expect("terms that are there may be used");
    assert!(graph.storage_status().terms >= 20);
}

/// Storage B6: a transaction that keeps an old version in memory is visible in the status.
#[test]
fn b6_old_transactions_are_told() {
    let simulation = Simulation::new(1);
    let graph = open(&simulation, options());
    let old = graph.begin(Isolation::Snapshot).expect("begins");
    simulation.clock.advance(Duration::from_secs(700));
    let young = graph.begin(Isolation::Snapshot).expect("begins");
    let status = graph.storage_status();
    assert_eq!((status.active_transactions, status.oldest_transaction), (2, Some(Duration::from_secs(700))));
    drop((old, young));
    assert_eq!(graph.storage_status().active_transactions, 0);
}

/// Storage B6: formerly, terms of rolled-back transactions stayed in memory until enough was committed.
#[test]
fn b6_terms_of_rolled_back_transactions_leave_memory() {
    let simulation = Simulation::new(1);
    let graph = open(&simulation, options());
    let mut most = 0;
    for number in 0..350 {
        let transaction = graph.begin(Isolation::Serializable).expect("begins");
        for one in 0..1000 {
            let name = format!("urn:nobody:{number}:{one}");
            transaction.intern(oxrdf::NamedNodeRef::new_unchecked(&name).into()).expect("new");
        }
        transaction.roll_back();
        graph.wait_background();
        most = most.max(graph.storage_status().new_terms);
    }
    assert!(most <= vervet_txn::CHECKPOINT_TERMS_MIN + 1000, "{most}");
    assert_eq!(graph.storage_status().terms, 350_000);
}

/// Storage B11: processes that open, commit once and close leave few files, and the log is cut in time.
#[test]
fn b11_short_writers_leave_few_files() {
    let simulation = Simulation::new(1);
    let mut options = options();
    options.durability = Durability::Sync;
    options.log_bytes_max = 40_000;
    for number in 0..300 {
        let graph = open(&simulation, options.clone());
        change(&graph, &[row(number)], true).expect("works");
        graph.wait_background();
        drop(graph);
        let names = simulation.environment().files.list(Path::new(DIR)).expect("there");
        let logs = names.iter().filter(|name| name.to_string_lossy().contains("wal-")).count();
        assert!(logs <= 3, "{logs} files of the log after {number} writers");
    }
    assert_eq!(open(&simulation, options).current().version.statement_count(), 300);
}

/// Storage B11: a process that opens a directory to write reads the log once, and gets the same graph.
#[test]
fn b11_who_opens_to_write_reads_the_log_once() {
    let simulation = Simulation::new(1);
    let files = &simulation.files;
    let graph = open(&simulation, options());
    for number in 0..400 {
        change(&graph, &[row(2 * number), row(2 * number + 1)], true).expect("works");
    }
    drop(graph);
    let reads = |open: &dyn Fn() -> Arc<Transactions>| {
        let before = files.read_count();
        let graph = open();
        graph.begin(Isolation::Serializable).expect("begins").roll_back();
        assert_eq!(graph.current().version.statement_count(), 800);
        files.read_count() - before
    };
    let path = Path::new(DIR);
    let twice = reads(&|| open(&simulation, options()));
    let once =
        reads(&|| Transactions::open_to_write(simulation.environment(), path, options()).expect("opens"));
    assert!(once < twice, "{once} reads, and {twice} where the first transaction reads again");
    let writer = Transactions::open_or_create_to_write(simulation.environment(), path, options());
    let writer = writer.expect("opens");
    let other = Transactions::open_to_write(simulation.environment(), path, options());
    assert_eq!(other.expect_err("it has a writer").kind(), ErrorKind::Unavailable);
    change(&writer, &[row(1000)], true).expect("works");
    drop(writer);
    assert_eq!(open(&simulation, options()).current().version.statement_count(), 801);
    let nowhere = Path::new("/nowhere");
    let none = Transactions::open_to_write(simulation.environment(), nowhere, options());
    assert_eq!(none.expect_err("nothing is there").kind(), ErrorKind::Input);
    assert!(simulation.environment().files.list(nowhere).is_err(), "and nothing is made");
    let new = Transactions::open_or_create_to_write(simulation.environment(), nowhere, options());
    assert_eq!(new.expect("opens").current().version.statement_count(), 0);
}

/// Storage B17: formerly, a writer waited for a bulk load without a limit.
#[test]
fn b17_a_load_lets_writers_wait_for_a_time_only() {
    let simulation = Simulation::new(1);
    let mut options = options();
    options.load_wait = Duration::from_millis(20);
    let graph = open(&simulation, options);
    change(&graph, &[row(0)], true).expect("works");
    let environment = simulation.environment();
    let waiting = graph.begin(Isolation::Serializable).expect("begins");
    let mut waiting = Some(waiting);
    graph
        .replace_graph(|replacement| {
            // Readers and transactions begin as usual.
            assert_eq!(graph.current().version.statement_count(), 1);
            let mut transaction = graph.begin(Isolation::Serializable).expect("begins");
            let refused =
                transaction.intern(crate::common::term(77).as_ref()).expect_err("the load numbers terms");
            assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
            let known = statement(row(0), &mut |term| transaction.intern(term.as_ref()));
            if let Ok(known) = known {
                transaction.remove(&known).expect("it is there");
                let refused = transaction.commit().expect_err("the load takes its place");
                assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
                assert!(refused.message().contains("load"), "{refused}");
            }
            drop(waiting.take());
            let version = replacement.version;
            let ends = [version.terms().vertex_end(), version.terms().literal_end()];
            let mut dictionary = continued(version, ends[0], ends[1], &Watch::new("load"))?;
            let mut builder = StoreBuilder::new(BuildOptions {
                threads: 1,
                memory_bytes: 1 << 20,
                environment: environment.clone(),
                temp_dir: None,
                log: replacement.log,
                orders: Vec::new(),
            });
            for statement in version.statements() {
                builder.add(&[statement?])?;
            }
            builder.add(&[statement(row(1), &mut |term| dictionary.intern_term(term.as_ref()))?])?;
            let store = replacement.finish(
                builder,
                dictionary.finish()?,
                &Target::Directory(Path::new(DIR).to_owned()),
                &Watch::new("load"),
            )?;
            Ok((store, ()))
        })
        .expect("loads");
    change(&graph, &[row(2)], true).expect("the load is done");
    assert_eq!(graph.current().version.statement_count(), 3);
    // A failed load ends the wait, too.
    graph.replace_graph::<()>(|_| Err(vervet_model::Error::internal("no"))).expect_err("fails");
    change(&graph, &[row(3)], true).expect("goes on");
}
