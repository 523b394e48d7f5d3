//! Servers with different partitions merge changes into their data together: answers stay those of one
//! database with the same updates, also while some read the data before, and with one of them away.

use crate::changes::{OWN_QUERIES, UPDATES};
use crate::voters::{PATIENCE, answers, leader};
use crate::{QUERIES, graph, open, rows, start_options};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vervet::{Database, DatabaseOptions, Environment, ErrorKind, QueryOptions};
use vervet_cluster::{
    BackupOptions, Cluster, InitOptions, RestoreOptions, backup, check, check_backup, rejoin, restore,
};
use vervet_model::Watch;

pub(crate) fn start(
    database: &Database,
    servers: usize,
    replicas: usize,
) -> (Vec<Cluster>, Vec<PathBuf>, tempfile::TempDir) {
    let mut options = InitOptions::on_host(servers, 8, "127.0.0.1", (0, 0));
    options.voters = options.servers.iter().map(|server| server.name.clone()).collect();
    options.replicas = replicas;
    start_options(database, options)
}

/// Repeats what fails while there is no leader, or the servers are not ready for it.
pub(crate) fn until_done<T>(mut call: impl FnMut() -> vervet::Result<T>) -> T {
    let begun = Instant::now();
    loop {
        match call() {
            Ok(done) => return done,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
        }
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

pub(crate) fn update(servers: &[Cluster], text: &str) {
    until_done(|| servers[leader(servers)].database().update(text).map(drop));
}

/// Merges, and returns the position of the merged data.
pub(crate) fn merge(servers: &[Cluster]) -> u64 {
    let before = merged(&servers[leader(servers)]);
    assert!(until_done(|| servers[leader(servers)].merge_changes()), "there are changes");
    wait_for(servers, "new data", |server| merged(server) > before);
    merged(&servers[0])
}

fn merged(server: &Cluster) -> u64 {
    server.changes().and_then(|changes| changes.merged).unwrap_or_default()
}

pub(crate) fn wait_for(servers: &[Cluster], what: &str, is_so: impl Fn(&Cluster) -> bool) {
    let begun = Instant::now();
    while !servers.iter().all(&is_so) {
        let changes: Vec<_> = servers.iter().map(Cluster::changes).collect();
        assert!(begun.elapsed() < PATIENCE, "no {what}: {changes:?}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// Waits until each server has all commits of the leader.
pub(crate) fn wait_for_all(servers: &[Cluster]) {
    let newest = servers[leader(servers)].database().newest_commit();
    wait_for(servers, "commits", |server| server.database().snapshot().timestamp() >= newest);
}

/// Every server answers as the twin does, however it runs queries.
pub(crate) fn all_answer(servers: &[Cluster], twin: &Database) {
    wait_for_all(servers);
    for query in QUERIES.iter().chain(OWN_QUERIES) {
        for heavy_from in [QueryOptions::default().heavy_from, Duration::ZERO] {
            let options = QueryOptions { heavy_from, ..QueryOptions::default().with_threads(2) };
            let expected = rows(twin, query, &options).expect("right");
            for server in servers {
                let found = rows(server.database(), query, &options);
                let found = found.unwrap_or_else(|error| panic!("{query}: {error}"));
                assert_eq!(found, expected, "{query} at {}", server.map().server);
            }
        }
    }
}

fn queries_at_all(servers: &[Cluster]) -> u64 {
    servers.iter().map(|server| server.query_counts().queries).sum()
}

#[test]
fn changes_are_merged_into_partitions() {
    for replicas in [1, 2] {
        let twin = graph();
        let (mut servers, directories, _folder) = start(&graph(), 3, replicas);
        let (first, second) = UPDATES.split_at(UPDATES.len() / 2);
        let mut positions = vec![0];
        for updates in [first, second] {
            for text in updates {
                twin.update(text).expect("an update");
                update(&servers, text);
            }
            all_answer(&servers, &twin);
            // While there are changes, queries run where they are asked.
            let before = queries_at_all(&servers);
            all_answer(&servers, &twin);
            assert_eq!(queries_at_all(&servers), before);
            let follower = (leader(&servers) + 1) % servers.len();
            let error = servers[follower].merge_changes().expect_err("it does not lead");
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            positions.push(merge(&servers));
            all_answer(&servers, &twin);
            assert!(queries_at_all(&servers) > before, "queries run at all servers again");
        }
        assert!(positions.is_sorted_by(|one, next| one < next), "{positions:?}");
        for directory in &directories {
            check(directory, &DatabaseOptions::default()).expect("whole");
        }
        // From the merged data, and with more changes.
        drop(servers);
        servers = directories.iter().map(|directory| open(directory)).collect();
        // They may begin with older ones, which others might read.
        wait_for(&servers, "merged data", |server| Some(&merged(server)) == positions.last());
        all_answer(&servers, &twin);
        let text = "INSERT DATA { <urn:last> a <urn:T1> ; <urn:next> <urn:v1> ; <urn:size> 7 }";
        twin.update(text).expect("an update");
        update(&servers, text);
        all_answer(&servers, &twin);
    }
}

/// Clients read and write while servers go over to new data again and again.
#[test]
fn queries_go_on_while_changes_are_merged() {
    let twin = graph();
    let (servers, _directories, _folder) = start(&graph(), 3, 2);
    let is_over = AtomicBool::new(false);
    let expected = QUERIES.iter().map(|query| answers(&twin, query)).collect::<Vec<_>>();
    std::thread::scope(|scope| {
        for (at, server) in servers.iter().enumerate() {
            let (is_over, expected) = (&is_over, &expected);
            scope.spawn(move || {
                let mut number = at;
                while !is_over.load(Ordering::Relaxed) {
                    number = (number + 1) % QUERIES.len();
                    let heavy_from = [QueryOptions::default().heavy_from, Duration::ZERO][number % 2];
                    let options = QueryOptions { heavy_from, ..QueryOptions::default() };
                    let found = rows(server.database(), QUERIES[number], &options);
                    assert_eq!(found.expect("an answer"), expected[number], "{}", QUERIES[number]);
                }
            });
        }
        for round in 0..4 {
            // Nothing that the queries see is there in the end, but terms and commits.
            let graph = "GRAPH <urn:other> { <urn:a> <urn:b> ";
            update(&servers, &format!("INSERT DATA {{ {graph} \"{round}\" }} }}"));
            update(&servers, &format!("DELETE DATA {{ {graph} \"{round}\" }} }}"));
            merge(&servers);
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

/// Changes, and merges, of which a server knows nothing while it is away.
#[test]
fn a_server_that_was_away_copies_its_share() {
    let twin = graph();
    let (mut servers, directories, _folder) = start(&graph(), 3, 2);
    for (number, text) in UPDATES.iter().enumerate().take(6) {
        let away = number % 3;
        let name = ["a", "b", "c"][away];
        let at = servers.iter().position(|server| server.map().server == name).expect("up");
        drop(servers.remove(at));
        twin.update(text).expect("an update");
        update(&servers, text);
        let position = merge(&servers);
        all_answer(&servers, &twin);
        servers.push(open(&directories[away]));
        wait_for(&servers, "copied data", |server| merged(server) >= position);
        all_answer(&servers, &twin);
    }
}

/// A server without its data, its log, or both, takes its place again.
#[test]
fn a_server_with_lost_partitions_rejoins() {
    let twin = graph();
    let (mut servers, directories, _folder) = start(&graph(), 3, 2);
    let remove = |directory: &Path, begins: &[&str]| {
        for entry in std::fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() && begins.iter().any(|begin| name.starts_with(begin)) {
                std::fs::remove_dir_all(&path).expect("removed");
            }
        }
    };
    let both = || vec!["data", "voter-"];
    // Some partitions are only at the first two, which both have copied the first data.
    let losses = [
        (0, vec!["data"], false),
        (1, both(), false),
        (0, both(), true),
        (1, vec!["voter-"], true),
        (2, both(), true),
    ];
    for (text, (away, lost, is_merged)) in UPDATES.iter().zip(losses) {
        twin.update(text).expect("an update");
        update(&servers, text);
        if is_merged {
            merge(&servers);
        }
        let name = ["a", "b", "c"][away];
        let at = servers.iter().position(|server| server.map().server == name).expect("up");
        drop(servers.remove(at));
        remove(&directories[away], &lost);
        leader(&servers);
        let options = DatabaseOptions::default();
        let rejoined = until_done(|| rejoin(&directories[away], &options, &|_, _| {}));
        assert_eq!(rejoined.has_copied, lost.contains(&"data"));
        servers.push(open(&directories[away]));
        wait_for(&servers, "vote", |server| server.changes().is_some_and(|changes| changes.is_complete));
        all_answer(&servers, &twin);
    }
}

#[test]
fn partitions_are_backed_up_and_restored() {
    let twin = graph();
    let (servers, directories, folder) = start(&graph(), 3, 1);
    let to = folder.path().join("backup");
    let environment = Environment::real();
    for (number, text) in UPDATES.iter().enumerate() {
        twin.update(text).expect("an update");
        update(&servers, text);
        if number == 4 {
            merge(&servers);
        }
        if number % 3 == 0 {
            let options = BackupOptions { environment: environment.clone(), ..BackupOptions::default() };
            until_done(|| backup(&directories[number % 3], &to, &options, &|_, _| {}));
        }
    }
    let options = BackupOptions { environment: environment.clone(), ..BackupOptions::default() };
    until_done(|| backup(&directories[0], &to, &options, &|_, _| {}));
    check_backup(&to, &environment).expect("whole");
    let scratch = tempfile::tempdir().expect("a folder");
    let into = RestoreOptions { environment, until: None, scratch: scratch.path(), changes_max: None };
    let database = restore(&to, &into, &Watch::new("restore")).expect("restored").database;
    for query in QUERIES.iter().chain(OWN_QUERIES) {
        assert_eq!(answers(&database, query), answers(&twin, query), "{query}");
    }
}
