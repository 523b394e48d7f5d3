//! Crash tests of a load.
//!
//! A second load into a database is stopped at each of its operations in turn, by an error, by a full disk,
//! or by a loss of power. Afterwards the database is the old one or the new one, whole; and the next load
//! succeeds and leaves no leftover files.

use crate::common::{Graph, GraphParameters, Random, compare, options, seed};
use std::path::PathBuf;
use vervet_env::{Fault, Simulation};
use vervet_model::ErrorKind;
use vervet_snapshot::Snapshot;
use vervet_store::{Base, BuildOptions, Store, Target};

#[test]
fn every_operation_may_fail() {
    let seed = seed();
    let mut random = Random(seed | 1);
    let shape = GraphParameters {
        vertices: 9,
        statements: 40,
        predicates: 2,
        types: 2,
        edges: true,
        named_graphs: true,
    };
    let old = Graph::random(shape, &mut random);
    let new = Graph::random(GraphParameters { statements: 80, ..shape }, &mut random);
    let dir = PathBuf::from("/data/db");
    let target = Target::Directory(dir.clone());
    for (fault, power) in [(Fault::Io, false), (Fault::DiskFull, false), (Fault::Io, true)] {
        for first in [true, false] {
            let mut outcomes = [0, 0, 0];
            for n in 0.. {
                let context = format!("seed {seed}, {fault:?}, power {power}, first {first}, operation {n}");
                let simulation = Simulation::new(seed.wrapping_add(n));
                let environment = simulation.environment();
                if !first {
                    old.build(options(&environment), &target);
                }
                let spilling =
                    BuildOptions { memory_bytes: 600, temp_dir: Some(dir.clone()), ..options(&environment) };
                let operations = simulation.files.write_count();
                simulation.files.fail_write(n, fault);
                let result = new.try_build(spilling, &target);
                let stopped = match &result {
                    Ok(store) => {
                        compare(store, &new, &mut random, &context);
                        false
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Io, "{context}: {error}");
                        true
                    }
                };
                drop(result);
                let failed = simulation.files.write_count() > operations + n;
                if power {
                    simulation.files.crash();
                }
                simulation.files.clear_faults();
                match Store::open(&environment, &dir) {
                    Ok(store) => {
                        store.validate().unwrap_or_else(|error| panic!("{context}: {error}"));
                        let is_new = store.statement_count() == new.set().len() as u64;
                        assert!(is_new || stopped, "{context}: an acknowledged load is gone");
                        compare(&store, if is_new { &new } else { &old }, &mut random, &context);
                        outcomes[if is_new { 2 } else { 1 }] += 1;
                    }
                    Err(error) => {
                        assert!(first && stopped && error.kind() == ErrorKind::Input, "{context}: {error}");
                        outcomes[0] += 1;
                    }
                }
                let store = new.build(options(&environment), &target);
                compare(&store, &new, &mut random, &context);
                let names = environment.files.list(&dir).expect("it is there");
                assert_eq!(names.len(), 3, "{context}: {names:?}");
                if !failed {
                    assert!(!stopped, "{context}");
                    break;
                }
            }
            println!("{fault:?}, power {power}, first {first}: none, old, new: {outcomes:?}");
        }
    }
}

/// Storage B14: a writer that dies between renaming the manifest and syncing the directory leaves a manifest
/// that a loss of power may undo; the next load removes no file that the old one names before the new one is
/// durable. Here any subset of the unsynced names may survive.
#[test]
fn b14_leftovers_stay_until_the_manifest_is_durable() {
    let seed = seed();
    let mut random = Random(seed | 1);
    let shape = GraphParameters {
        vertices: 5,
        statements: 8,
        predicates: 1,
        types: 1,
        edges: false,
        named_graphs: false,
    };
    let [first, second, third] = [(); 3].map(|()| Graph::random(shape, &mut random));
    let dir = PathBuf::from("/data/db");
    let target = Target::Directory(dir.clone());
    let mut met = 0;
    for n in 0.. {
        let simulation = Simulation::new(seed.wrapping_add(n));
        let environment = simulation.environment();
        first.build(options(&environment), &target);
        // All operations of the next load fail from here on, as for a killed process.
        let before = simulation.files.write_count();
        simulation.files.fail_write(n, Fault::Io);
        let killed = second.try_build(options(&environment), &target).is_err();
        simulation.files.clear_faults();
        let is_new = Store::open(&environment, &dir).expect("old or new").generation() == Some(2);
        if killed && is_new {
            for at in 0..8 {
                met += 1;
                let simulation = Simulation::new(seed.wrapping_add(n * 100 + at));
                let environment = simulation.environment();
                first.build(options(&environment), &target);
                simulation.files.fail_write(n, Fault::Io);
                second.try_build(options(&environment), &target).expect_err("as before");
                simulation.files.fail_write(at, Fault::Power);
                third.try_build(options(&environment), &target).expect_err("the power is gone");
                simulation.files.crash_reordering();
                let store = Store::open(&environment, &dir);
                let store = store.unwrap_or_else(|error| panic!("seed {seed}, {n}, {at}: {error}"));
                store.validate().expect("whole");
            }
        }
        if simulation.files.write_count() <= before + n {
            break;
        }
    }
    assert!(met > 0, "no operation lies between the renaming and the sync");
}

/// Storage B18: a load succeeds although an ancestor of the directory is on a file system without directory
/// syncs (FUSE, drvfs).
#[test]
fn b18_unsyncable_ancestors_are_tolerated() {
    let simulation = Simulation::new(1);
    let mut random = Random(1);
    let shape = GraphParameters {
        vertices: 9,
        statements: 40,
        predicates: 2,
        types: 2,
        edges: false,
        named_graphs: false,
    };
    let graph = Graph::random(shape, &mut random);
    let dir = PathBuf::from("/mnt/fuse/db");
    simulation.files.fail_directory_syncs(&PathBuf::from("/mnt"));
    let store = graph.build(options(&simulation.environment()), &Target::Directory(dir.clone()));
    compare(&store, &graph, &mut random, "above");
    // The database directory itself holds the names of its files.
    let simulation = Simulation::new(1);
    simulation.files.fail_directory_syncs(&dir);
    let refused = graph.try_build(options(&simulation.environment()), &Target::Directory(dir));
    assert_eq!(refused.expect_err("its names would not be durable").kind(), ErrorKind::Io);
}
