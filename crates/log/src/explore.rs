//! Model checking of thread schedules: `shuttle` decides every thread switch of `log.rs`.
//!
//! Each schedule shows that no thread waits for ever (`shuttle` reports a deadlock), that the promise of a
//! wait holds when it returns, that publication is in order and happens once, and that the log reads back as
//! it was appended. Schedules are random, and PCT (Burckhardt et al., "A Randomized Scheduler with
//! Probabilistic Guarantees of Finding Bugs", ASPLOS 2010), which finds any bug with few ordering constraints
//! with a known probability. A failing schedule is printed and can be replayed.

use crate::{Durability, Log, LogOptions, Lsn, ReadOptions, read};
use std::path::Path;
use std::sync::{Arc, Mutex};
use vervet_env::{Fault, Simulation};
use vervet_model::{Error, Result};

#[derive(Clone, Copy)]
struct Case {
    level: Durability,
    /// Small values make appends wait for the disk.
    buffer_bytes: usize,
    /// Index of the file operation that fails, counted from opening, and its fault.
    fault: Option<(u64, Fault)>,
}

fn open(simulation: &Simulation, options: LogOptions) -> Result<Log> {
    let (environment, directory) = (simulation.environment(), Path::new("/db"));
    let made = environment.files.create_dir_all(directory);
    made.map_err(|error| Error::io("make the directory", &error))?;
    let found = read(&environment, directory, Lsn(0), &ReadOptions::default(), &mut |_, _, _| Ok(()))?;
    Log::open(&environment, directory, found, options)
}

/// Two committers hold a lock while they append, and publication takes the same lock; a third thread rotates.
fn run(case: Case) {
    let simulation = Simulation::new(1);
    let options = LogOptions { durability: case.level, buffer_bytes: case.buffer_bytes };
    let log = Arc::new(open(&simulation, options).expect("opens"));
    if let Some((n, fault)) = case.fault {
        simulation.files.fail_write(n, fault);
    }
    let committing = Arc::new(shuttle::sync::Mutex::new(()));
    let appended = Arc::new(Mutex::new(Vec::new()));
    let published = Arc::new(Mutex::new(Vec::new()));
    let mut threads = Vec::new();
    for thread in 0..3_u8 {
        let log = log.clone();
        let (committing, appended, published) = (committing.clone(), appended.clone(), published.clone());
        threads.push(shuttle::thread::spawn(move || -> Result<()> {
            for count in 0..2 {
                if thread == 2 {
                    if count == 0 {
                        log.rotate()?;
                    } else {
                        log.sync()?;
                    }
                    continue;
                }
                let (again, seen) = (committing.clone(), published.clone());
                let publish = Box::new(move |lsn| {
                    drop(again.lock().expect("whole"));
                    seen.lock().expect("whole").push(lsn);
                });
                let guard = committing.lock().expect("whole");
                let lsn = log.append_then(thread, &[count; 20], publish)?;
                appended.lock().expect("whole").push((lsn, thread, [count; 20].to_vec()));
                drop(guard);
                log.wait(lsn)?;
                assert!(published.lock().expect("whole").contains(&lsn), "published before the wait returns");
                assert!(case.level != Durability::Sync || log.durable_lsn() >= lsn, "durable");
            }
            Ok(())
        }));
    }
    let results: Vec<Result<()>> = threads.into_iter().map(|t| t.join().expect("no panic")).collect();
    let log = Arc::try_unwrap(log).expect("all threads have ended");
    let healed = case.fault.is_some_and(|(_, fault)| fault == Fault::DiskFull);
    if healed {
        simulation.files.clear_faults();
        log.sync().expect("there is room again");
        let (appended, published) = (appended.lock().expect("whole"), published.lock().expect("whole"));
        assert_eq!(published.len(), appended.len(), "unwritten records are published once there is room");
    }
    let closed = log.close();
    assert!(!healed || closed.is_ok(), "{closed:?}");
    let failed = closed.is_err() || results.iter().any(Result::is_err);
    assert!(case.fault.is_some() || !failed, "failure without a fault: {closed:?} {results:?}");

    let published = published.lock().expect("whole");
    assert!(published.is_sorted_by(|a, b| a < b), "in order, once");
    let appended = appended.lock().expect("whole");
    let mut found = Vec::new();
    read(
        &simulation.environment(),
        Path::new("/db"),
        Lsn(0),
        &ReadOptions::default(),
        &mut |lsn, kind, bytes| {
            found.push((lsn, kind, bytes.to_vec()));
            Ok(())
        },
    )
    .expect("reads");
    assert!(appended.starts_with(&found), "as it was appended");
    assert!(failed || (found.len() == 4 && published.len() == 4), "all of it");
    if case.level == Durability::Sync {
        assert!(found.len() >= published.len(), "published records are in the log");
    }
}

const CASES: [(Durability, usize); 4] =
    [(Durability::Sync, 1000), (Durability::Sync, 1), (Durability::None, 1000), (Durability::None, 1)];

#[test]
fn no_schedule_breaks_the_log() {
    for (level, buffer_bytes) in CASES {
        let case = Case { level, buffer_bytes, fault: None };
        shuttle::check_random(move || run(case), 3000);
        shuttle::check_pct(move || run(case), 3000, 3);
    }
}

#[test]
fn no_schedule_breaks_a_failing_log() {
    for (level, buffer_bytes) in CASES {
        for (n, fault) in (0..16).flat_map(|n| [(n, Fault::Io), (n, Fault::DiskFull)]) {
            let case = Case { level, buffer_bytes, fault: Some((n, fault)) };
            shuttle::check_random(move || run(case), 200);
            shuttle::check_pct(move || run(case), 150, 3);
        }
    }
}
