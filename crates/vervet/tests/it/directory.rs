//! The directory of a database, and states that must neither be trusted nor overwritten: lost manifests, lost
//! logs, logs of other databases, backups; and files of each readable format version.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use vervet::{Database, Environment, ErrorKind, Result};
use vervet_env::{Fault, SimulatedFiles, Simulation};

const DB: &str = "/db";

/// A database with `count` statements, its files in memory.
fn database(environment: &Environment, directory: &str, count: usize) -> Database {
    let database = Database::open_or_create_in(environment.clone(), directory).expect("opens");
    for number in 0..count {
        insert(&database, number).expect("it runs");
    }
    database
}

fn insert(database: &Database, number: usize) -> Result<()> {
    let text =
        format!("INSERT DATA {{ <urn:s{number}> <urn:p> \"a text that is too long for an id {number}\" }}");
    database.update(&text).map(drop)
}

fn count(database: &Database) -> usize {
    database.select("SELECT * { ?s ?p ?o }").expect("it runs").len()
}

/// Names and contents of all files but the lock, ascending; empty if there is no directory.
fn files(environment: &Environment, directory: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut paths = environment.files.list(Path::new(directory)).unwrap_or_default();
    paths.retain(|path| path.file_name() != Some("LOCK".as_ref()));
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), environment.files.read(&path).expect("a file"))).collect()
}

fn write(environment: &Environment, path: &Path, bytes: &[u8]) {
    let mut file = environment.files.create(path).expect("room");
    file.write_all(bytes).expect("room");
    file.sync().expect("room");
}

/// Copies files over those of another directory, as `cp` does.
fn copy(environment: &Environment, from: &str, to: &str) {
    environment.files.create_dir_all(Path::new(to)).expect("room");
    for (path, bytes) in files(environment, from) {
        write(environment, &Path::new(to).join(path.file_name().expect("a name")), &bytes);
    }
}

fn remove(environment: &Environment, directory: &str, which: impl Fn(&str) -> bool) {
    for (path, _) in files(environment, directory) {
        if which(path.file_name().and_then(|name| name.to_str()).expect("a name")) {
            environment.files.remove_file(&path).expect("it is there");
        }
    }
}

fn is_log(name: &str) -> bool {
    name.starts_with("wal-")
}

/// Checks that every way to write to the directory, or to open it as a database, is refused.
fn refused(environment: &Environment, directory: &str, what: &str) {
    let before = files(environment, directory);
    let open = |writes: bool| match writes {
        true => Database::open_or_create_in(environment.clone(), directory),
        false => Database::open_in(environment.clone(), directory),
    };
    for writes in [false, true] {
        let error = open(writes).expect_err(what);
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
    }
    let other = database(environment, "/other", 1);
    assert_eq!(other.backup(directory).expect_err(what).kind(), ErrorKind::Corrupt, "{what}");
    other.backup("/backup").expect("a new directory");
    let restored = Database::restore(environment, "/backup", directory, &mut |_, _| Ok(()));
    assert_eq!(restored.expect_err(what).kind(), ErrorKind::Corrupt, "{what}");
    assert!(files(environment, directory) == before, "{what}: files have changed");
}

/// users 3: files of a database without a manifest are never overwritten, whichever of them are left.
#[test]
fn users_3_a_directory_without_its_manifest_is_left_alone() {
    let (_, environment) = simulated(1);
    let database = database(&environment, DB, 3);
    database.checkpoint().expect("room");
    insert(&database, 3).expect("it runs");
    drop(database);
    remove(&environment, DB, |name| name == "MANIFEST");
    refused(&environment, DB, "all but the manifest");
    let names: Vec<PathBuf> = files(&environment, DB).into_iter().map(|(path, _)| path).collect();
    assert!(names.len() >= 3, "{names:?}");
    for (at, name) in names.iter().enumerate() {
        let (_, environment) = simulated(1);
        let name = name.file_name().and_then(|name| name.to_str()).expect("a name");
        environment.files.create_dir_all(Path::new(DB)).expect("room");
        write(&environment, &Path::new(DB).join(name), b"whatever it was");
        refused(&environment, DB, &format!("{at}: {name} alone"));
    }
}

/// users 3: the leftovers of an interrupted first load or commit are not a database, and the next attempt
/// starts afresh.
#[test]
fn users_3_a_first_commit_that_ended_early_can_be_repeated() {
    for lost in [false, true] {
        for operation in 0.. {
            let (files, environment) = simulated(operation);
            files.fail_write(operation, Fault::Power);
            let first = Database::open_or_create_in(environment.clone(), DB).and_then(|db| insert(&db, 0));
            if first.is_ok() {
                assert!(operation > 10, "{operation} operations");
                break;
            }
            if lost {
                files.crash_losing_all()
            } else {
                files.crash()
            }
            let again =
                Database::open_or_create_in(environment.clone(), DB).expect("no database, or a whole one");
            insert(&again, 1).expect("it runs");
            assert!((1..=2).contains(&count(&again)), "operation {operation}");
            again.check().expect("sound");
        }
    }
}

/// users 4: a missing log is an error if it was ever begun, whether the base came from a commit, a
/// checkpoint, a backup or a restore; the hint names the remedy.
#[test]
fn users_4_deleted_logs_are_noticed() {
    for base in ["commit", "checkpoint", "backup", "restore"] {
        let (_, environment) = simulated(1);
        let first = database(&environment, DB, 2);
        let directory = match base {
            "commit" => DB,
            "checkpoint" => {
                assert!(first.checkpoint().expect("room"));
                DB
            }
            _ => {
                first.backup("/backup").expect("room");
                if base == "restore" {
                    Database::restore(&environment, "/backup", "/restored", &mut |_, _| Ok(()))
                        .expect("room");
                    "/restored"
                } else {
                    "/backup"
                }
            }
        };
        drop(first);
        let before = Database::open_in(environment.clone(), directory).expect("whole");
        assert_eq!(count(&before), 2, "{base}");
        for number in 2..5 {
            insert(&before, number).expect("it runs");
        }
        drop(before);
        let again = Database::open_in(environment.clone(), directory).expect("whole");
        assert_eq!(count(&again), 5, "{base}");
        drop(again);

        remove(&environment, directory, is_log);
        let error = Database::open_in(environment.clone(), directory).expect_err("the log is gone");
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{base}: {error}");
        assert!(
            error.hint().is_some_and(|hint| hint.contains("vervet recover")),
            "{base}: {:?}",
            error.hint()
        );
        Database::open_or_create_in(environment.clone(), directory).expect_err("the log is gone");
        // Cutting the log accepts the loss and keeps the base.
        assert!(Database::find_log_damage(&environment, directory).expect("a base").is_some(), "{base}");
        assert!(Database::cut_log_at_damage(&environment, directory).expect("a base").is_some(), "{base}");
        let cut = Database::open_in(environment.clone(), directory).expect("whole again");
        assert_eq!(count(&cut), if base == "commit" { 0 } else { 2 }, "{base}");
        insert(&cut, 9).expect("it runs");
    }
}

/// storage B13: the log of another database is not replayed.
#[test]
fn b13_the_log_of_another_database_is_not_replayed() {
    for checkpoint in [false, true] {
        let (_, environment) = simulated(1);
        let first = database(&environment, DB, 2);
        first.backup("/backup").expect("room");
        // The mistake that restoring the backup is meant to undo.
        first.update("DELETE WHERE { ?s ?p ?o }").expect("it runs");
        insert(&first, 7).expect("it runs");
        if checkpoint {
            first.checkpoint().expect("room");
            insert(&first, 8).expect("it runs");
        }
        drop(first);
        copy(&environment, "/backup", DB);
        for writes in [false, true] {
            let opened = match writes {
                true => Database::open_or_create_in(environment.clone(), DB),
                false => Database::open_in(environment.clone(), DB),
            };
            let error = opened.expect_err("the log is of another database");
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.to_string().contains("another database"), "{error}");
        }
        // Without these files it is the backup.
        remove(&environment, DB, is_log);
        let restored = Database::open_in(environment.clone(), DB).expect("whole");
        assert_eq!(count(&restored), 2);
        insert(&restored, 9).expect("it runs");
    }
}

/// `vervet restore`: the same statements, a new log, and no overwriting.
#[test]
fn a_backup_is_restored_once_and_goes_on_by_itself() {
    let (_, environment) = simulated(1);
    let first = database(&environment, DB, 3);
    first.backup("/backup").expect("room");
    let (mut last, mut total) = (0, 0);
    let restored = Database::restore(&environment, "/backup", "/restored", &mut |done, all| {
        assert!(done > last && done <= all && (total == 0 || total == all));
        (last, total) = (done, all);
        Ok(())
    });
    assert_eq!(restored.expect("room"), 3);
    assert!(total > 0 && last == total);
    let again = Database::restore(&environment, "/backup", "/restored", &mut |_, _| Ok(()));
    assert_eq!(again.expect_err("there is one").kind(), ErrorKind::Input);
    let restored = Database::open_in(environment.clone(), "/restored").expect("whole");
    restored.check().expect("sound");
    insert(&restored, 5).expect("it runs");
    assert_eq!((count(&restored), count(&first)), (4, 3));
    drop(restored);
    assert_eq!(count(&Database::open_in(environment.clone(), "/restored").expect("whole")), 4);

    // A backup that was written to is no longer a backup; neither is a database.
    for written in ["/restored", DB] {
        let error =
            Database::restore(&environment, written, "/new", &mut |_, _| Ok(())).expect_err("it has a log");
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    }
    let missing = Database::restore(&environment, "/nowhere", "/new", &mut |_, _| Ok(()));
    assert_eq!(missing.expect_err("nothing is there").kind(), ErrorKind::Input);
    assert!(!environment.files.exists(Path::new("/new")).expect("a name"), "nothing was made");
}

/// A restore that fails at any operation, is cancelled, or finds damage leaves a complete database or none,
/// and can be repeated.
#[test]
fn a_restore_is_atomic() {
    let backup = |environment: &Environment| {
        let first = database(environment, DB, 3);
        first.checkpoint().expect("room");
        first.backup("/backup").expect("room");
    };
    let restore = |environment: &Environment, to: &str| {
        Database::restore(environment, "/backup", to, &mut |_, _| Ok(()))
    };
    for fault in [Fault::Io, Fault::DiskFull, Fault::Power] {
        for operation in 0.. {
            let (files, environment) = simulated(operation);
            backup(&environment);
            files.fail_write(operation, fault);
            let done = restore(&environment, "/restored").is_ok();
            if fault == Fault::Power {
                files.crash();
            }
            files.clear_faults();
            match Database::open_in(environment.clone(), "/restored") {
                Ok(restored) => assert_eq!(count(&restored), 3),
                Err(error) => {
                    assert!(!done, "{fault:?} at {operation}: {error}");
                    assert_eq!(error.kind(), ErrorKind::Input, "{fault:?} at {operation}: {error}");
                    assert_eq!(restore(&environment, "/restored").expect("room"), 3);
                }
            }
            if done {
                assert!(operation > 5);
                break;
            }
        }
    }
    let (files_of, environment) = simulated(1);
    backup(&environment);
    let error = Database::restore(&environment, "/backup", "/restored", &mut |_, _| {
        Err(vervet::Error::new(ErrorKind::Cancelled, "cancelled"))
    });
    let error = error.expect_err("cancelled");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    for (path, bytes) in files(&environment, "/backup") {
        let at = bytes.len() / 2;
        files_of.damage(&path, at, bytes[at] ^ 1).expect("a file");
        let error = restore(&environment, "/restored").expect_err("it is damaged");
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{}: {error}", path.display());
        files_of.damage(&path, at, bytes[at]).expect("a file");
        assert!(files(&environment, "/restored").is_empty(), "{}", path.display());
    }
    assert_eq!(restore(&environment, "/restored").expect("whole again"), 3);
}

fn simulated(seed: u64) -> (Arc<SimulatedFiles>, Environment) {
    let simulation = Simulation::new(seed);
    (Arc::clone(&simulation.files), simulation.environment())
}

/// storage B19, STYLE 9: databases written by this version and earlier ones can be read and written to.
/// `manifest-1-no-log`: segments 3, dictionary 4, a log that the manifest does not name. `manifest-1-log`:
/// the same with dictionary 5 (triple terms), an edge, a named graph, and a log that the manifest names
/// (2026-11-23, commit 2565fac). `manifest-2`: segments 3, dictionary 6 (2026-11-24, commit 4ce0d2b).
/// `segments-4`: segments with samples of keys, a wide integer, a deletion in the log (commit e4c35ac).
#[test]
fn b19_files_of_each_readable_version_are_read() {
    for (name, expected) in
        [("manifest-1-no-log", 5), ("manifest-1-log", 9), ("manifest-2", 14), ("segments-4", 15)]
    {
        let environment = Environment::simulated(1);
        environment.files.create_dir_all(Path::new(DB)).expect("room");
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats").join(name);
        for entry in std::fs::read_dir(sample).expect("a folder") {
            let path = entry.expect("a file").path();
            let bytes = std::fs::read(&path).expect("a file");
            write(&environment, &Path::new(DB).join(path.file_name().expect("a name")), &bytes);
        }
        let all = "SELECT * { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }";
        for round in 0..3 {
            let opened = Database::open_in(environment.clone(), DB).expect("readable");
            opened.check().expect("sound");
            assert_eq!(opened.select(all).expect("it runs").len(), expected + round, "{name}");
            insert(&opened, round).expect("it runs");
            if round == 1 {
                opened.checkpoint().expect("room");
            }
        }
        // Its log has an id by now.
        remove(&environment, DB, is_log);
        assert_eq!(
            Database::open_in(environment.clone(), DB).expect_err("no log").kind(),
            ErrorKind::Corrupt
        );
    }
}
