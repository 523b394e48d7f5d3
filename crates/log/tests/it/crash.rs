//! Crash tests of the log.
//!
//! A random life of a log is stopped at each of its file operations in turn, by an error or a full disk, with
//! or without a loss of power, and sometimes again while it is opened. Afterwards every acknowledged record
//! is present, no record is partial or out of order, and the log continues.

use crate::common::{Model, disk, read_all, seed};
use vervet_env::{Fault, SeededRandom, Simulation};
use vervet_log::{Log, ReadOptions};
use vervet_model::{ErrorKind, Result};

const STEPS: usize = 25;
const POINTS_MIN: u64 = 40_000;

fn live(model: &mut Model, simulation: &Simulation, random: &SeededRandom) -> Result<Log> {
    let environment = simulation.environment();
    let mut log = model.reopen(&environment)?;
    for _ in 0..STEPS {
        log = model.step(log, &environment, random)?;
    }
    Ok(log)
}

/// Applies a random accident to the disk after the log has stopped.
fn accident(simulation: &Simulation, random: &SeededRandom) -> &'static str {
    match random.below(5) {
        0 => {
            simulation.files.clear_faults();
            "process"
        }
        1 => {
            simulation.files.crash();
            "prefix"
        }
        2 => {
            simulation.files.crash_losing_all();
            "losing all"
        }
        _ => {
            simulation.files.crash_reordering();
            "reordering"
        }
    }
}

#[test]
fn no_acknowledged_record_is_lost_by_a_fault_at_any_operation() {
    let seed = seed();
    let (mut points, mut lives, mut again) = (0, 0, 0);
    while points < POINTS_MIN {
        lives += 1;
        for n in 0.. {
            let context = format!("VERVET_SEED={seed}, life {lives}, operation {n}");
            let run = std::panic::catch_unwind(|| {
                // The same life for every n; a different accident.
                let random = SeededRandom::new(seed ^ (lives << 32));
                let accidents = SeededRandom::new(seed ^ (lives << 32) ^ (n << 1) ^ 1);
                let simulation = disk(accidents.next());
                let environment = simulation.environment();
                let mut model = Model::new(&random);
                let before = simulation.files.write_count();
                let fault = if accidents.below(4) == 0 { Fault::DiskFull } else { Fault::Io };
                simulation.files.fail_write(n, fault);
                let log = match live(&mut model, &simulation, &random) {
                    Ok(log) => Some(log),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                        None
                    }
                };
                let reached = simulation.files.write_count() > before + n;
                accident(&simulation, &accidents);
                // It is still open here, but its files are dead.
                drop(log);
                // More accidents, during opening and just after it.
                let mut again = 0;
                while accidents.below(2) == 0 {
                    simulation.files.fail_write(accidents.below(6), Fault::Io);
                    let log = model.reopen(&environment);
                    accident(&simulation, &accidents);
                    drop(log);
                    again += 1;
                }
                let log = model.reopen(&environment).expect("opens");
                for _ in 0..3 {
                    let lsn = model.append(&log, &accidents).expect("works");
                    log.wait(lsn).expect("works");
                }
                log.close().expect("works");
                let (found, records) =
                    read_all(&environment, model.checkpoint, &ReadOptions::default()).expect("sound");
                assert_eq!(found.truncation, None, "closed");
                assert!(model.records.ends_with(&records), "all of them");
                assert!(records.len() >= 3);
                (reached, again)
            });
            let Ok((reached, accidents)) = run else { panic!("{context}") };
            points += 1;
            again += accidents;
            if !reached {
                break;
            }
        }
    }
    println!("{points} points in {lives} lives, {again} accidents on opening");
}

/// A sync fails, the process restarts and finds the records in the page cache, then the power fails. The
/// records were found and may have been returned to a client, so they must survive. Also tested with a sync
/// that fails at each of its turns.
#[test]
fn records_read_after_a_failed_sync_are_made_durable() {
    for acknowledged in 0..3 {
        let simulation = disk(1);
        let environment = simulation.environment();
        let mut model = Model::new(&SeededRandom::new(3));
        model.options.buffer_bytes = 1 << 20;
        model.options.durability = vervet_log::Durability::Sync;
        let random = SeededRandom::new(5);
        let log = model.reopen(&environment).expect("opens");
        for _ in 0..acknowledged {
            let lsn = model.append(&log, &random).expect("works");
            log.wait(lsn).expect("works");
            model.safe += 1;
        }
        let lsn = model.append(&log, &random).expect("works");
        simulation.files.fail_write(1, Fault::Io);
        let error = log.wait(lsn).expect_err("the sync fails");
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.message().contains("could not sync /db/wal-"), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("opened again")));
        let operations = simulation.files.write_count();
        for result in
            [log.wait(lsn), log.append(0, b"").map(drop), log.sync().map(drop), log.rotate().map(drop)]
        {
            assert_eq!(result.expect_err("poisoned").message(), error.message());
        }
        assert_eq!(log.close().expect_err("poisoned").message(), error.message());
        assert_eq!(simulation.files.write_count(), operations, "nothing is tried again");

        let log = model.reopen(&environment).expect("opens");
        assert_eq!(model.records.len(), acknowledged + 1, "the page cache still has it");
        simulation.files.crash_losing_all();
        drop(log);
        model.reopen(&environment).expect("opens");
        assert_eq!(model.records.len(), acknowledged + 1);
    }
}
