//! A cluster whose log several servers have: the leader dies under load, another one goes on, and what was
//! acknowledged is there, once, at every server.

use crate::{QUERIES, graph, open, rows, start_options};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use vervet::{Database, ErrorKind, QueryOptions};
use vervet_cluster::{Cluster, InitOptions};

/// Longest wait for something that has to happen.
const PATIENCE: Duration = Duration::from_secs(60);

fn start(
    database: &Database,
    servers: usize,
    voters: usize,
) -> (Vec<Cluster>, Vec<PathBuf>, tempfile::TempDir) {
    let mut options = InitOptions::on_host(servers, 16, "127.0.0.1", (0, 0));
    options.voters = options.servers[..voters].iter().map(|server| server.name.clone()).collect();
    start_options(database, options)
}

/// Position of the server that takes changes, once there is one.
fn leader(servers: &[Cluster]) -> usize {
    let begun = Instant::now();
    loop {
        if let Some(at) = servers.iter().position(Cluster::takes_changes) {
            return at;
        }
        let changes: Vec<_> = servers.iter().map(Cluster::changes).collect();
        assert!(begun.elapsed() < PATIENCE, "no leader: {changes:?}");
        std::thread::yield_now();
    }
}

/// Runs an update at whichever server leads.
fn update(servers: &[Cluster], text: &str) -> usize {
    let begun = Instant::now();
    loop {
        let at = leader(servers);
        match servers[at].database().update(text) {
            Ok(_) => return at,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
        }
    }
}

fn answers(database: &Database, query: &str) -> Vec<String> {
    rows(database, query, &QueryOptions::default()).unwrap_or_else(|error| panic!("{query}: {error}"))
}

/// Waits until all servers give the same answer as the one that leads.
fn wait_for_all(servers: &[Cluster], query: &str) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let expected = answers(servers[leader(servers)].database(), query);
        if servers.iter().all(|server| answers(server.database(), query) == expected) {
            return expected;
        }
        let changes: Vec<_> = servers.iter().map(Cluster::changes).collect();
        assert!(begun.elapsed() < PATIENCE, "{changes:?}");
        std::thread::yield_now();
    }
}

#[test]
fn voters_elect_a_server_that_takes_changes() {
    let twin = graph();
    let (mut servers, directories, _folder) = start(&graph(), 4, 3);
    let texts = [
        "INSERT DATA { <urn:new> a <urn:T1> ; <urn:next> <urn:v1> ; <urn:size> 7 ; <urn:name> \"a new one with 99\" }",
        "DELETE { ?s <urn:size> ?z } INSERT { ?s <urn:size> 77 } WHERE { ?s <urn:size> ?z FILTER(?z = 3) }",
        "DELETE WHERE { <urn:v10> ?p ?o }",
    ];
    for text in texts {
        twin.update(text).expect("an update");
        let at = update(&servers, text);
        for (other, server) in servers.iter().enumerate().filter(|(other, _)| *other != at) {
            let error = server.database().update("INSERT DATA { <urn:x> <urn:y> <urn:z> }");
            let error = error.map(drop).expect_err("not the leader");
            assert!(
                matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Unavailable),
                "{other}: {error}"
            );
        }
    }
    for query in QUERIES {
        let expected = answers(&twin, query);
        assert_eq!(wait_for_all(&servers, query), expected, "{query}");
    }
    // All at once, as after a loss of power.
    servers.clear();
    for directory in directories.iter().rev() {
        servers.push(open(directory));
    }
    let begun = Instant::now();
    for server in &servers {
        while !server.changes().is_some_and(|changes| changes.is_complete) {
            assert!(begun.elapsed() < PATIENCE, "{:?}", server.changes());
            std::thread::yield_now();
        }
    }
    for query in QUERIES {
        assert_eq!(wait_for_all(&servers, query), answers(&twin, query), "{query}");
    }
    let voter = servers.iter().find(|server| !server.takes_changes() && server.map().server != "d");
    let voter = voter.expect("it follows");
    voter.catch_up(PATIENCE).expect("a majority is up");
    let status = voter.changes().expect("it changes");
    let voters = status.voters.expect("it votes");
    assert_eq!(voters.names, ["a", "b", "c"]);
    assert_eq!(voters.leader.as_ref(), Some(&status.writer));
    let refusal = voter.refusal().expect("it follows");
    assert!(refusal.message().contains("which leads"), "{refusal}");
}

/// Servers that each have the whole graph and the log: when the leader has ended, the others answer
/// everything, and one of them takes changes.
#[test]
fn servers_with_everything_lose_one() {
    let twin = graph();
    let mut options = InitOptions::on_host(3, 1, "127.0.0.1", (0, 0));
    options.voters = options.servers.iter().map(|server| server.name.clone()).collect();
    options.replicas = 3;
    let (mut servers, directories, _folder) = start_options(&graph(), options);
    let change = |servers: &[Cluster], number: u32| {
        let text = format!(
            "DELETE {{ <urn:v{number}> <urn:size> ?z }} INSERT {{ <urn:v{number}> <urn:size> 1000 ; <urn:next> <urn:v7> }} \
             WHERE {{ <urn:v{number}> <urn:size> ?z }}"
        );
        twin.update(&text).expect("an update");
        update(servers, &text);
        for query in QUERIES {
            assert_eq!(wait_for_all(servers, query), answers(&twin, query), "{query}");
        }
    };
    change(&servers, 1);
    let lost = leader(&servers);
    drop(servers.remove(lost));
    change(&servers, 2);
    servers.insert(lost, open(&directories[lost]));
    change(&servers, 3);
}

/// A leader dies under load, again and again: what was acknowledged is there, what was refused is not, and
/// increments are done once each.
#[test]
fn leaders_die_under_load() {
    let rounds = std::env::var("VERVET_VOTERS_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let database = Database::in_memory();
    database.update("INSERT DATA { <urn:a> <urn:b> <urn:c> }").expect("an update");
    let (servers, directories, _folder) = start(&database, 3, 3);
    let servers: Vec<Mutex<Option<Cluster>>> =
        servers.into_iter().map(|server| Mutex::new(Some(server))).collect();
    let (acknowledged, refused) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let (unknown, count) = (AtomicU64::new(0), AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    let database_of = |at: usize| {
        let server = servers[at].lock().expect("not poisoned");
        server.as_ref().filter(|server| server.takes_changes()).map(|server| server.database().clone())
    };
    let client = |client: u64| {
        for number in 0.. {
            let Some(database) = (0..servers.len()).find_map(database_of) else {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                std::thread::yield_now();
                continue;
            };
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            let name = format!("urn:n{client}x{number}");
            let text = format!("INSERT DATA {{ <{name}> <urn:is> \"text {client} {number}\" }}");
            match database.update(&text) {
                Ok(_) => {
                    acknowledged.lock().expect("not poisoned").push(name);
                    count.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) if error.message().contains("unknown") => {
                    unknown.fetch_add(1, Ordering::Relaxed);
                }
                Err(_) => refused.lock().expect("not poisoned").push(name),
            }
        }
    };
    let mut pauses = Vec::new();
    std::thread::scope(|scope| {
        for number in 0..4 {
            scope.spawn(move || client(number));
        }
        let wait_for = |more: u64| {
            let (begun, before) = (Instant::now(), count.load(Ordering::Relaxed));
            while count.load(Ordering::Relaxed) < before + more {
                assert!(begun.elapsed() < PATIENCE, "no commits");
                std::thread::yield_now();
            }
            begun.elapsed()
        };
        for _ in 0..rounds {
            wait_for(50);
            let begun = Instant::now();
            let at = loop {
                let at = (0..servers.len()).find(|at| database_of(*at).is_some());
                if let Some(at) = at {
                    break at;
                }
                assert!(begun.elapsed() < PATIENCE, "no leader");
            };
            drop(servers[at].lock().expect("not poisoned").take());
            pauses.push(wait_for(1));
            wait_for(30);
            *servers[at].lock().expect("not poisoned") = Some(open(&directories[at]));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let servers: Vec<Cluster> =
        servers.into_iter().map(|server| server.into_inner().expect("not poisoned").expect("up")).collect();
    // Of this term, so that nothing of an earlier one is still open.
    update(&servers, "INSERT DATA { <urn:end> <urn:of> <urn:test> }");
    let found = wait_for_all(&servers, "SELECT ?s ?o { ?s <urn:is> ?o }");
    let name = |row: &String| row.split('>').next().unwrap_or_default().trim_start_matches('<').to_owned();
    let found: Vec<String> = found.iter().map(name).collect();
    let distinct: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    assert_eq!(distinct.len(), found.len(), "each has one text");
    let acknowledged = acknowledged.into_inner().expect("not poisoned");
    let lost: Vec<_> = acknowledged.iter().filter(|name| !distinct.contains(name.as_str())).collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    let refused = refused.into_inner().expect("not poisoned");
    let kept: Vec<_> = refused.iter().filter(|name| distinct.contains(name.as_str())).collect();
    assert!(kept.is_empty(), "refused, and there: {kept:?}");
    println!(
        "{} acknowledged, {} refused, {} unknown; writes again after {pauses:?}",
        acknowledged.len(),
        refused.len(),
        unknown.load(Ordering::Relaxed)
    );
}

/// A voter that was away is complete once it shows what the others have committed meanwhile.
#[test]
fn a_voter_that_comes_back_is_complete_with_everything() {
    let (mut servers, directories, _folder) = start(&graph(), 3, 3);
    update(&servers, "INSERT DATA { <urn:x> <urn:is> 0 }");
    for round in 0..3 {
        let follower = (leader(&servers) + 1) % servers.len();
        drop(servers.remove(follower));
        for number in 1..=40 {
            update(&servers, &format!("INSERT DATA {{ <urn:x> <urn:is> {} }}", round * 40 + number));
        }
        let back = open(&directories[follower]);
        let begun = Instant::now();
        while !back.changes().is_some_and(|changes| changes.is_complete) {
            assert!(begun.elapsed() < PATIENCE, "{:?}", back.changes());
            std::thread::yield_now();
        }
        // And the row with the name of the column.
        let found = answers(back.database(), "SELECT ?n { <urn:x> <urn:is> ?n }").len() - 1;
        assert_eq!(found, round * 40 + 41, "round {round}");
        servers.insert(follower, back);
    }
}

/// A voter that has lost its log does not vote again.
#[test]
fn a_voter_without_its_log_does_not_start() {
    let (mut servers, directories, _folder) = start(&graph(), 3, 3);
    update(&servers, "INSERT DATA { <urn:x> <urn:y> <urn:z> }");
    drop(servers.remove(2));
    let entries = std::fs::read_dir(&directories[2]).expect("a directory");
    let mut names = entries.map(|entry| entry.expect("an entry").path());
    let log = names.find(|path| path.to_string_lossy().contains("voter-")).expect("a log");
    assert!(log.is_dir(), "the file that allows a new log is gone: {}", log.display());
    std::fs::remove_dir_all(&log).expect("removed");
    let error = Cluster::open(&directories[2], &vervet::DatabaseOptions::default()).expect_err("no log");
    assert_eq!(error.kind(), ErrorKind::Input);
    update(&servers, "INSERT DATA { <urn:x> <urn:y> <urn:z2> }");
}
