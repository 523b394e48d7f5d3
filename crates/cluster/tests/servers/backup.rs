//! Backups of a cluster that runs: each has what was committed before it, restored graphs are those of a
//! database with the same updates, and what is damaged is found.

use crate::voters::{PATIENCE, answers, leader};
use crate::{QUERIES, graph, open, start_options};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use vervet::{Database, Environment, ErrorKind, Timestamp};
use vervet_cluster::{
    BACKUP_FILE, BackedUp, BackupOptions, Cluster, InitOptions, RestoreOptions, Until, backup, backup_status,
    check_backup, init, restore,
};
use vervet_model::{ThreadLimits, Watch};

const CLIENTS: u32 = 3;

/// Three servers that have the graph and vote, with a rule.
pub(crate) fn start() -> (Vec<Cluster>, Vec<PathBuf>, tempfile::TempDir) {
    let mut options = InitOptions::on_host(3, 4, "127.0.0.1", (0, 0));
    options.voters = options.servers.iter().map(|server| server.name.clone()).collect();
    options.replicas = 3;
    start_options(&base(), options)
}

fn base() -> Database {
    let database = graph();
    let rule: vervet::Constraint = "unique <urn:T0> <urn:name>".parse().expect("a constraint");
    database.add_constraint(&rule).expect("kept");
    database
}

/// The update with this number of a client. Those of different clients change different vertices, and each
/// changes nothing the second time.
pub(crate) fn text(client: u32, number: u32) -> String {
    let vertex = client * 150 + number % 150;
    format!(
        "DELETE {{ <urn:v{vertex}> <urn:size> ?z ; <urn:next> ?n }} \
         INSERT {{ <urn:c{client}> <urn:did> {number} . <urn:v{vertex}> <urn:size> {} ; <urn:near> <urn:v{}> . \
         <urn:new{client}x{number}> a <urn:T0> ; <urn:name> \"new {client} {number}\" ; <urn:next> <urn:v{vertex}> }} \
         WHERE {{ <urn:v{vertex}> <urn:size> ?z OPTIONAL {{ <urn:v{vertex}> <urn:next> ?n }} }}",
        1000 + number,
        number % 600,
    )
}

/// Repeats an update at whichever server leads until it succeeds.
pub(crate) fn update(servers: &[Cluster], text: &str) -> Timestamp {
    let begun = Instant::now();
    loop {
        let database = servers[leader(servers)].database();
        match database.update(text) {
            Ok(_) => return database.newest_commit(),
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn back_up_with(directory: &Path, to: &Path, options: &BackupOptions) -> BackedUp {
    backup(directory, to, options, &|_, _| ()).unwrap_or_else(|error| panic!("{error}"))
}

fn back_up(directory: &Path, to: &Path) -> BackedUp {
    back_up_with(directory, to, &BackupOptions::default())
}

/// The graph of a backup, with its temporary directory.
fn restored(
    backup: &Path,
    until: Option<&str>,
    changes_max: Option<u64>,
) -> vervet::Result<(Database, tempfile::TempDir)> {
    let scratch = tempfile::tempdir().expect("a folder");
    let until = until.map(|until| until.parse::<Until>().expect("a place"));
    let environment = Environment::real();
    let options = RestoreOptions { environment, until, scratch: scratch.path(), changes_max };
    Ok((restore(backup, &options, &Watch::new("test"))?.database, scratch))
}

/// How many updates of each client a graph has: the first ones, without a gap.
fn done(database: &Database) -> Vec<u32> {
    let of = |client: u32| {
        let found = answers(database, &format!("SELECT ?n {{ <urn:c{client}> <urn:did> ?n }}"));
        let number = |row: &String| row.split('"').nth(1)?.parse().ok();
        let mut numbers: Vec<u32> = found.iter().filter_map(number).collect();
        numbers.sort_unstable();
        let count = u32::try_from(numbers.len()).expect("few");
        assert_eq!(numbers, (0..count).collect::<Vec<_>>(), "client {client}");
        count
    };
    (0..CLIENTS).map(of).collect()
}

/// A database to which the first updates of each client are applied.
pub(crate) struct Twin {
    database: Database,
    done: Vec<u32>,
}

impl Twin {
    pub(crate) fn new() -> Self {
        Self { database: base(), done: vec![0; CLIENTS as usize] }
    }

    /// How many updates of a client it has.
    pub(crate) fn count(&self, client: usize) -> u32 {
        self.done[client]
    }

    /// Compares a graph with that of the updates that it has. The calls are for graphs with more and more.
    pub(crate) fn compare(&mut self, database: &Database) -> Vec<u32> {
        let found = done(database);
        for (client, (done, found)) in (0..).zip(self.done.iter_mut().zip(&found)) {
            assert!(*done <= *found, "client {client} has {found}, after {done}");
            while *done < *found {
                self.database.update(&text(client, *done)).expect("an update");
                *done += 1;
            }
        }
        for query in QUERIES.iter().copied().chain(["SELECT ?s ?p ?o { ?s ?p ?o }"]) {
            assert_eq!(answers(database, query), answers(&self.database, query), "{query}");
        }
        assert_eq!(database.constraints(), self.database.constraints());
        found
    }
}

/// Memory of the changes over the base.
fn changes_bytes(database: &Database) -> u64 {
    let sizes = database.component_sizes().expect("sound");
    sizes.iter().filter(|size| matches!(size.name, "delta" | "new terms")).map(|size| size.size_bytes).sum()
}

/// Ends clients, also when a test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Clients change the graph, servers merge changes, and calls add to one backup: each has what was committed
/// before it, and every commit of it can be restored.
#[test]
fn a_backup_under_load_has_what_was_committed() {
    let (servers, directories, folder) = start();
    let to = folder.path().join("backup");
    let is_over = AtomicBool::new(false);
    let acknowledged: Vec<AtomicU32> = (0..CLIENTS).map(|_| AtomicU32::new(0)).collect();
    let mut calls = Vec::new();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (servers, is_over, acknowledged) = (&servers, &is_over, &acknowledged);
            scope.spawn(move || {
                for number in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    update(servers, &text(client, number));
                    acknowledged[client as usize].store(number + 1, Ordering::Release);
                }
            });
        }
        let _ends = Ends(&is_over);
        for round in 0..8 {
            let before: Vec<u32> = acknowledged.iter().map(|count| count.load(Ordering::Acquire)).collect();
            let begun = Instant::now();
            while acknowledged
                .iter()
                .zip(&before)
                .any(|(count, before)| count.load(Ordering::Acquire) < before + 5)
            {
                assert!(begun.elapsed() < PATIENCE, "no commits");
                std::thread::sleep(Duration::from_millis(1));
            }
            if round == 3 || round == 5 {
                // Twice, so that the log lacks what the data before have.
                for server in servers.iter().chain(&servers) {
                    server.merge_changes().expect("merged");
                }
            }
            let expected: Vec<u32> = acknowledged.iter().map(|count| count.load(Ordering::Acquire)).collect();
            calls.push((expected, back_up(&directories[round % 3], &to)));
        }
    });
    let status = backup_status(&Environment::real(), &to).expect("a backup");
    assert_eq!((status.cluster.as_str(), status.servers, status.voters), ("vervet", 3, 3));
    let copies = calls.iter().filter(|(_, made)| made.data_bytes.is_some()).count();
    assert_eq!((status.bases, status.points.len()), (copies, calls.len()));
    println!("{copies} copies of data in {} calls", calls.len());
    assert!(copies > 1, "the log was purged");
    let checked = check_backup(&to, &Environment::real()).expect("sound");
    assert!(checked.records > 0 && checked.last == calls.last().expect("calls").1.point, "{checked:?}");
    let (mut twin, mut merged) = (Twin::new(), 0);
    for (number, (expected, made)) in calls.iter().enumerate() {
        let until = made.point.timestamp.to_string();
        // Changes are merged while they are applied, every second time.
        let changes_max = [None, Some(20)][number % 2];
        let (database, scratch) = restored(&to, Some(&until), changes_max).expect("restored");
        assert_eq!(database.newest_commit(), made.point.timestamp);
        let data = std::fs::read_dir(scratch.path()).expect("a directory").count();
        assert!(data <= usize::from(changes_max.is_some()), "call {number}: the newest data alone");
        merged += data;
        let found = twin.compare(&database);
        for (client, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert!(found >= expected, "call {number}, client {client}: {found} of {expected}");
        }
        let (same, _scratch) = restored(&to, Some(&made.point.time), None).expect("restored");
        assert_eq!(same.newest_commit(), made.point.timestamp);
        assert!(data == 0 || changes_bytes(&database) < changes_bytes(&same), "call {number}");
    }
    assert!(merged > 0, "no changes were merged while they were applied");
    // Any commit between two calls.
    let (from, last) = (status.points[6].timestamp.0, status.points[7].timestamp.0);
    let mut twin = Twin::new();
    for commit in (from..=last).step_by(7) {
        let (database, _scratch) = restored(&to, Some(&commit.to_string()), None).expect("restored");
        assert_eq!(database.newest_commit(), Timestamp(commit));
        twin.compare(&database);
    }
    let (database, _scratch) = restored(&to, None, None).expect("restored");
    assert_eq!(database.newest_commit(), Timestamp(last));
    for until in [(last + 1).to_string(), "2001-02-03T04:05:06Z".to_owned()] {
        let error = restored(&to, Some(&until), None).map(drop).expect_err("the backup does not have it");
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
        assert!(error.hint().is_some(), "{error}");
    }
}

/// A backup has everything that was committed before it, also if the leader dies before it or during it.
#[test]
fn a_backup_goes_on_without_the_leader() {
    let (mut servers, directories, folder) = start();
    let to = folder.path().join("backup");
    let mut twin = Twin::new();
    let mut random = fastrand::Rng::with_seed(3);
    for round in 0..6 {
        for number in round * 4..(round + 1) * 4 {
            update(&servers, &text(0, number));
        }
        let at = leader(&servers);
        let lost = servers.remove(at);
        if round % 2 == 1 {
            // Data are copied again.
            for server in servers.iter().chain(&servers) {
                server.merge_changes().expect("merged");
            }
        }
        let wait = Duration::from_micros(random.u64(..20_000));
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(wait);
                drop(lost);
            });
            back_up(&directories[random.usize(..3)], &to);
        });
        let (database, _scratch) = restored(&to, None, None).expect("restored");
        assert_eq!(twin.compare(&database), [(round + 1) * 4, 0, 0]);
        servers.insert(at, open(&directories[at]));
    }
    check_backup(&to, &Environment::real()).expect("sound");
}

/// A graph that was backed up is restored as a cluster of any shape, and as a database.
#[test]
fn a_backup_is_restored_to_any_shape() {
    let (mut servers, directories, folder) = start();
    let to = folder.path().join("backup");
    for number in 0..20 {
        update(&servers, &text(number % CLIENTS, number / CLIENTS));
        if number == 10 {
            back_up(&directories[0], &to);
        }
    }
    let made = back_up(&directories[1], &to);
    assert!(made.data_bytes.is_none() && made.records > 0, "{made:?}");
    // Nothing new.
    let again = back_up(&directories[2], &to);
    assert_eq!((again.records, &again.point), (0, &made.point));
    assert_eq!(backup_status(&Environment::real(), &to).expect("a backup").points.len(), 2);
    // A majority is enough, also without the server of the directory.
    drop(servers.pop());
    update(&servers, &text(2, 6));
    assert!(back_up(&directories[2], &to).records > 0);
    drop(servers);
    let error = backup(&directories[0], &to, &BackupOptions::default(), &|_, _| ()).expect_err("no server");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let (database, _scratch) = restored(&to, None, None).expect("restored");
    let mut twin = Twin::new();
    assert_eq!(twin.compare(&database), [7, 7, 7]);
    let watch = Watch::new("test");
    let shape = |servers, partitions, voters: usize, replicas| {
        let mut options = InitOptions::on_host(servers, partitions, "127.0.0.1", (0, 0));
        options.voters = options.servers[..voters].iter().map(|server| server.name.clone()).collect();
        options.replicas = replicas;
        for server in &mut options.servers {
            server.address = vervet_testkit::free_address();
        }
        options
    };
    let shapes = [shape(1, 1, 1, 1), shape(2, 8, 0, 1), shape(3, 16, 3, 1), shape(3, 1, 3, 3)];
    for (number, options) in shapes.iter().enumerate() {
        let path = folder.path().join(format!("new{number}"));
        let directories = init(&database, options, &path, &watch).expect("made");
        let servers: Vec<Cluster> = directories.iter().map(|directory| open(directory)).collect();
        for server in &servers {
            twin.compare(server.database());
        }
        if !options.voters.is_empty() {
            update(&servers, "INSERT DATA { <urn:x> <urn:y> <urn:z> }");
            let twice = "INSERT DATA { <urn:v0> <urn:name> \"name 3\" }";
            let error = servers[leader(&servers)].database().update(twice).map(drop).expect_err("the rule");
            assert_ne!(error.kind(), ErrorKind::Internal, "{error}");
        }
        if number == 3 {
            // Another cluster does not add to the backup.
            let error = backup(&directories[0], &to, &BackupOptions::default(), &|_, _| ());
            assert_eq!(error.expect_err("another one").kind(), ErrorKind::Input);
        }
        if number == 1 {
            let error = backup(&directories[0], &to, &BackupOptions::default(), &|_, _| ());
            assert_eq!(error.expect_err("in partitions").kind(), ErrorKind::Unsupported);
        }
    }
    let path = folder.path().join("database");
    database.backup(&path).expect("written");
    let single = Database::open(&path).expect("a database");
    single.check().expect("sound");
    twin.compare(&single);
    single.update("INSERT DATA { <urn:v0> <urn:name> \"name 3\" }").map(drop).expect_err("the rule");
}

/// An interrupted call leaves the backup as it was, and the next one goes on.
#[test]
fn an_interrupted_call_leaves_the_backup_before() {
    let (servers, directories, folder) = start();
    let to = folder.path().join("backup");
    let directory = &directories[0];
    // In the first call, and in one that copies data again.
    let interrupted = |options: &BackupOptions| {
        let cancelled = Arc::new(AtomicBool::new(false));
        let flag = Some(Arc::clone(&cancelled));
        let _limits = ThreadLimits { cancelled: flag, ..ThreadLimits::default() }.enter();
        let error = backup(directory, &to, options, &|_, bytes| {
            assert!(bytes > 0);
            cancelled.store(true, Ordering::Relaxed);
        });
        assert_eq!(error.expect_err("cancelled").kind(), ErrorKind::Cancelled);
    };
    interrupted(&BackupOptions::default());
    let error = restored(&to, None, None).map(drop).expect_err("no call has finished");
    assert!(error.kind() == ErrorKind::Input && error.message().contains("no finished backup"), "{error}");
    update(&servers, &text(0, 0));
    let first = back_up(directory, &to);
    assert!(first.data_bytes.is_some_and(|bytes| bytes > 0), "{first:?}");
    update(&servers, &text(0, 1));
    let full = BackupOptions { full: true, ..BackupOptions::default() };
    interrupted(&full);
    let mut twin = Twin::new();
    assert_eq!(twin.compare(&restored(&to, None, None).expect("restored").0), [1, 0, 0]);
    // As a process that was killed leaves them.
    for name in ["base-0001/records-999", "base-0001/records-1.tmp", "base-0002/data-7.tmp"] {
        std::fs::create_dir_all(to.join(name)).expect("made");
    }
    std::fs::write(to.join("backup.toml.tmp"), "half").expect("written");
    let second = back_up(directory, &to);
    assert_eq!(second.data_bytes, None);
    assert!(!to.join("base-0001/records-999").exists() && !to.join("base-0002").exists());
    assert_eq!(twin.compare(&restored(&to, None, None).expect("restored").0), [2, 0, 0]);
    // Data again, which have all changes by now, and only the newest are kept.
    update(&servers, &text(0, 2));
    servers[0].catch_up(PATIENCE).expect("a majority is up");
    servers[0].merge_changes().expect("merged");
    let third = back_up_with(directory, &to, &BackupOptions { keep: Some(1), ..full });
    assert!(third.data_bytes.is_some());
    assert!(!to.join("base-0001").exists());
    assert_eq!(twin.compare(&restored(&to, None, None).expect("restored").0), [3, 0, 0]);
    let first = first.point.timestamp.to_string();
    assert_eq!(restored(&to, Some(&first), None).map(drop).expect_err("gone").kind(), ErrorKind::Input);
}

/// All files below a directory.
fn files_in(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { files.extend(files_in(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

/// Where the last record of a file of a log begins.
fn last_record(bytes: &[u8]) -> usize {
    const MARK: u8 = 255;
    let (mut at, mut last) = (40, 40);
    while at < bytes.len() {
        let length = bytes[at + 8..at + 12].iter().rev().fold(0, |all, byte| all << 8 | usize::from(*byte));
        if bytes[at + 12] != MARK {
            last = at;
        }
        at += 13 + length;
    }
    last
}

/// A changed byte, a file that was cut or is missing, and records of another call are found by a check and by
/// a restore of what they are part of.
#[test]
fn damage_is_found() {
    let (servers, directories, folder) = start();
    let to = folder.path().join("backup");
    for number in 0..3 {
        for step in 0..4 {
            update(&servers, &text(0, number * 4 + step));
        }
        back_up(&directories[0], &to);
    }
    drop(servers);
    let environment = Environment::real();
    check_backup(&to, &environment).expect("sound");
    let files: Vec<PathBuf> = files_in(&to).into_iter().filter(|path| !path.ends_with("LOCK")).collect();
    assert!(files.len() >= 3 + 4 && files.iter().any(|path| path.ends_with(BACKUP_FILE)), "{files:?}");
    let mut random = fastrand::Rng::with_seed(7);
    let is_found = |what: &str| {
        let error = check_backup(&to, &environment).expect_err(what);
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
        assert!(error.hint().is_some(), "{what}: {error}");
        let error = restored(&to, None, None).map(drop).expect_err(what);
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
    };
    for path in &files {
        let bytes = std::fs::read(path).expect("a file");
        // Texts begin with a comment and end with a line feed, logs end with a mark.
        let is_log = path.extension().is_some_and(|extension| extension == "log");
        let (first, last) = match path.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => {
                (bytes.iter().position(|byte| *byte == b'\n').expect("a line") + 1, bytes.len() - 1)
            }
            Some("log") => (0, bytes.len() - 21),
            _ => (0, bytes.len()),
        };
        for _ in 0..6 {
            let (at, mut changed) = (random.usize(first..last), bytes.clone());
            changed[at] ^= 1 << random.u8(..8);
            std::fs::write(path, &changed).expect("written");
            is_found(&format!("byte {at} of {}", path.display()));
        }
        // A log that ends with a whole record looks like one that never was longer.
        let records_end = if is_log { last_record(&bytes) } else { last / 3 };
        for length in [0, records_end, last / 2, last - 1] {
            std::fs::write(path, &bytes[..length]).expect("written");
            is_found(&format!("{length} bytes of {}", path.display()));
        }
        std::fs::remove_file(path).expect("removed");
        if !path.ends_with(BACKUP_FILE) {
            is_found(&format!("{} is missing", path.display()));
        }
        std::fs::write(path, &bytes).expect("written");
    }
    check_backup(&to, &environment).expect("sound again");
    // What is before the damage can be restored.
    let points = backup_status(&environment, &to).expect("a backup").points;
    let records: Vec<&PathBuf> =
        files.iter().filter(|path| path.to_string_lossy().contains("records-")).collect();
    let mut directories: Vec<&Path> = records.iter().filter_map(|path| path.parent()).collect();
    directories.dedup();
    directories.sort_by_key(|path| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        name.trim_start_matches("records-").parse::<u64>().expect("a position")
    });
    let [.., before, last] = directories[..] else { panic!("{directories:?}") };
    let aside = folder.path().join("aside");
    std::fs::rename(last, &aside).expect("moved");
    is_found("records are missing");
    let hint = check_backup(&to, &environment).expect_err("damaged").hint().expect("a hint").to_owned();
    assert!(hint.contains(&format!("--until {}", points[1].timestamp)), "{hint}");
    let until = points[1].timestamp.to_string();
    Twin::new().compare(&restored(&to, Some(&until), None).expect("restored").0);
    // The records of another call.
    std::fs::rename(before, last).expect("moved");
    is_found("other records");
}
