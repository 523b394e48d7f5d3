//! A cluster whose log several servers have: the leader dies under load, another one goes on, and what was
//! acknowledged is there, once, at every server.

use crate::{QUERIES, graph, open, rows, start_options};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use vervet::{
    Database, DatabaseOptions, ErrorKind, FeedFormat, FeedLimits, FeedPosition, FeedRefusal, QueryOptions,
    Timestamp,
};
use vervet_cluster::{Cluster, InitOptions, check};

/// Longest wait for something that has to happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

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
pub(crate) fn leader(servers: &[Cluster]) -> usize {
    let begun = Instant::now();
    loop {
        if let Some(at) = servers.iter().position(Cluster::takes_changes) {
            return at;
        }
        let changes: Vec<_> = servers.iter().map(Cluster::changes).collect();
        assert!(begun.elapsed() < PATIENCE, "no leader: {changes:?}");
        std::thread::sleep(Duration::from_millis(1));
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

pub(crate) fn answers(database: &Database, query: &str) -> Vec<String> {
    rows(database, query, &QueryOptions::default()).unwrap_or_else(|error| panic!("{query}: {error}"))
}

/// A check of a voter reads its replicated log, beside its server too, and finds that it is damaged or lost.
#[test]
fn a_check_reads_the_log_of_a_voter() {
    let (mut servers, directories, _folder) = start(&graph(), 3, 3);
    let verify = |directory: &Path| check(directory, &DatabaseOptions::default());
    let before = verify(&directories[0]).expect("sound").voter_log.expect("a log");
    for number in 0..20 {
        update(&servers, &format!("INSERT DATA {{ <urn:n{number}> <urn:is> \"{}\" }}", "x".repeat(100)));
    }
    wait_for_all(&servers, "SELECT ?n { ?n <urn:is> ?x }");
    let log = verify(&directories[0]).expect("sound beside its server").voter_log.expect("a log");
    assert!(log.entries > before.entries && log.bytes > before.bytes + 2_000, "{before:?} {log:?}");
    drop(servers.remove(0));
    let is_log = |path: &PathBuf| {
        path.file_name().is_some_and(|name| {
            let name = name.to_string_lossy();
            name.starts_with("voter-") && !name.contains('.')
        })
    };
    let entries = std::fs::read_dir(&directories[0]).expect("a directory");
    let log = entries.map(|entry| entry.expect("an entry").path()).find(is_log).expect("a log");
    let files = std::fs::read_dir(&log).expect("a log").map(|entry| entry.expect("an entry").path());
    let file =
        files.into_iter().find(|path| path.extension().is_some_and(|end| end == "log")).expect("a file");
    // Its last tasks may end a moment later, and the log with them.
    let lock = std::fs::File::open(log.join("lock")).expect("the file of the lock");
    lock.lock().expect("the server has ended");
    let whole = std::fs::read(&file).expect("a file");
    let mut bytes = whole.clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, &bytes).expect("written");
    let error = verify(&directories[0]).expect_err("damaged");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("rejoin") && hint.contains("never")), "{error:?}");
    std::fs::write(&file, &whole).expect("written");
    verify(&directories[0]).expect("sound again");
    std::fs::rename(&log, log.with_file_name("away")).expect("moved");
    let error = verify(&directories[0]).expect_err("lost");
    assert!(error.message().contains("the replicated log of this server is not in"), "{error}");
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
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Voters with two replicas of each partition: whichever of three servers ends, the others take changes and
/// answer.
#[test]
fn voters_with_replicas_go_on_without_any_one_of_them() {
    let twin = graph();
    let mut options = InitOptions::on_host(3, 8, "127.0.0.1", (0, 0));
    options.replicas = 2;
    options.voters = options.servers.iter().map(|server| server.name.clone()).collect();
    let (mut servers, directories, _folder) = start_options(&graph(), options);
    for away in 0..4_usize {
        let at = if away % 2 == 0 { leader(&servers) } else { away % servers.len() };
        let name = servers[at].map().server.clone();
        drop(servers.remove(at));
        let text = format!(
            "DELETE {{ ?s <urn:size> ?z }} INSERT {{ ?s <urn:size> {} }} WHERE {{ ?s <urn:size> ?z ; <urn:next> ?n . \
             ?n <urn:size> {away} }}",
            100 + away
        );
        twin.update(&text).expect("an update");
        update(&servers, &text);
        wait_for_all(&servers, "SELECT (COUNT(*) AS ?n) { ?s <urn:size> ?z FILTER(?z > 99) }");
        for query in QUERIES {
            let expected = answers(&twin, query);
            for server in &servers {
                assert_eq!(answers(server.database(), query), expected, "{query} without {name}");
            }
        }
        let directory = directories.iter().find(|directory| directory.ends_with(&name)).expect("its own");
        servers.push(open(directory));
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
            std::thread::sleep(Duration::from_millis(1));
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
    die_under_load(1);
}

/// The same where every server has the whole graph, and merges changes into its data all the time.
#[test]
fn leaders_that_merge_die_under_load() {
    die_under_load(3);
}

fn die_under_load(replicas: usize) {
    let rounds = std::env::var("VERVET_VOTERS_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let database = Database::in_memory();
    database.update("INSERT DATA { <urn:a> <urn:b> <urn:c> }").expect("an update");
    let mut options = InitOptions::on_host(3, 16, "127.0.0.1", (0, 0));
    options.voters = options.servers.iter().map(|server| server.name.clone()).collect();
    options.replicas = replicas;
    let (servers, directories, _folder) = start_options(&database, options);
    let merged = AtomicU64::new(0);
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
                std::thread::sleep(Duration::from_millis(1));
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
        if replicas > 1 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    for server in &servers {
                        let server = server.lock().expect("not poisoned");
                        let outcome = server.as_ref().map(Cluster::merge_changes);
                        merged.fetch_add(u64::from(matches!(outcome, Some(Ok(true)))), Ordering::Relaxed);
                    }
                }
            });
        }
        let wait_for = |more: u64| {
            let (begun, before) = (Instant::now(), count.load(Ordering::Relaxed));
            while count.load(Ordering::Relaxed) < before + more {
                assert!(begun.elapsed() < PATIENCE, "no commits");
                std::thread::sleep(Duration::from_millis(1));
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
        "{} acknowledged, {} refused, {} unknown, merged {} times; writes again after {pauses:?}",
        acknowledged.len(),
        refused.len(),
        unknown.load(Ordering::Relaxed),
        merged.load(Ordering::Relaxed)
    );
    assert!(replicas == 1 || merged.load(Ordering::Relaxed) > 10, "changes were merged");
}

/// A transaction that began at a voter before it led is refused as a conflict, and the next one commits.
#[test]
fn a_transaction_that_began_before_the_election_is_a_conflict() {
    let (mut servers, _directories, _folder) = start(&graph(), 3, 3);
    update(&servers, "INSERT DATA { <urn:x> <urn:is> 0 }");
    drop(servers.remove(leader(&servers)));
    let mut begun: Vec<_> =
        servers.iter().map(|server| server.database().begin().expect("a transaction")).collect();
    let refusals: Vec<_> = servers.iter().map(Cluster::refusal).collect();
    assert!(refusals.iter().all(Option::is_some), "neither leads yet: {refusals:?}");
    let at = update(&servers, "INSERT DATA { <urn:x> <urn:is> 1 }");
    let mut before = begun.swap_remove(at);
    let done = before.update("INSERT DATA { <urn:x> <urn:is> 2 }").and_then(|_| before.commit());
    let error = done.map(drop).expect_err("it began before");
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(error.message().contains("nothing was changed") && error.hint().is_some(), "{error}");
    let mut next = servers[at].database().begin().expect("a transaction");
    next.update("INSERT DATA { <urn:x> <urn:is> 3 }").expect("an update");
    next.commit().expect("it leads");
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
            std::thread::sleep(Duration::from_millis(1));
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

/// The positions of the data in a directory.
fn data_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a text"));
    names.filter(|name| name.starts_with("data")).collect()
}

/// Changes are merged into the data at a leader, a voter and a server that follows, while they go on; each
/// starts from its data, and one that was away for long copies those of another.
#[test]
fn changes_are_merged_into_the_data() {
    let seed = std::env::var("VERVET_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    println!("VERVET_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let twin = graph();
    let rule: vervet::Constraint = "unique <urn:T0> <urn:name>".parse().expect("a constraint");
    let base = graph();
    for database in [&twin, &base] {
        database.add_constraint(&rule).expect("kept");
    }
    let mut options = InitOptions::on_host(4, 4, "127.0.0.1", (0, 0));
    options.voters = options.servers[..3].iter().map(|server| server.name.clone()).collect();
    options.replicas = 4;
    let (servers, directories, _folder) = start_options(&base, options);
    let mut servers: Vec<Option<Cluster>> = servers.into_iter().map(Some).collect();
    // Repeats an update whose outcome is unknown, so each text has to change nothing the second time.
    let up = |servers: &[Option<Cluster>], text: &str| {
        let begun = Instant::now();
        loop {
            let leading = servers.iter().flatten().find(|server| server.takes_changes());
            match leading.map(|server| server.database().update(text)) {
                Some(Ok(_)) => return,
                Some(Err(error)) if error.kind() == ErrorKind::Constraint => panic!("{error}"),
                other => assert!(begun.elapsed() < PATIENCE, "{other:?}"),
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let check = |servers: &[Option<Cluster>], twin: &Database| {
        for query in QUERIES {
            let expected = answers(twin, query);
            for server in servers.iter().flatten() {
                let begun = Instant::now();
                while answers(server.database(), query) != expected {
                    assert!(
                        begun.elapsed() < PATIENCE,
                        "{query} at {}: {:?}",
                        server.map().server,
                        server.changes()
                    );
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
    };
    let (mut number, mut away) = (0, None);
    for round in 0..12 {
        for _ in 0..random.usize(1..30) {
            number += 1;
            let (old, new) = (random.u32(..600), random.u32(..900));
            let text = match random.u8(..4) {
                0 => format!(
                    "INSERT DATA {{ <urn:n{number}> a <urn:T0> ; <urn:name> \"new {number}\" ; <urn:next> <urn:v{new}> }}"
                ),
                1 => format!("DELETE WHERE {{ <urn:v{old}> <urn:next> ?o }}"),
                2 => format!(
                    "INSERT DATA {{ <urn:v{old}> <urn:near> <urn:v{new}> ~ <urn:e{number}> {{| <urn:vervet:key:since> {} |}} ; \
                     <urn:size> {} }}",
                    number % 22,
                    number % 70
                ),
                _ => format!(
                    "DELETE {{ ?s <urn:size> ?z }} INSERT {{ ?s <urn:size> {} }} WHERE {{ ?s <urn:size> ?z FILTER(?z = {}) }}",
                    number % 50,
                    number % 7
                ),
            };
            twin.update(&text).expect("an update");
            up(&servers, &text);
        }
        check(&servers, &twin);
        let merging: Vec<usize> = (0..4).filter(|_| random.bool()).collect();
        for &at in merging.iter().filter(|at| servers[**at].is_some()) {
            let server = servers[at].as_ref().expect("up");
            let merged = server.merge_changes().expect("merged");
            let position = server.changes().expect("it changes").merged.expect("it merges");
            let expected = if position == 0 { "data".to_owned() } else { format!("data-{position}") };
            assert_eq!(data_in(&directories[at]), [expected], "round {round}, server {at}: {merged}");
            let (has_changes, begun) = (server.database().changes_probe(), Instant::now());
            while has_changes() {
                assert!(
                    begun.elapsed() < PATIENCE,
                    "round {round}: server {at} does not go on from its data"
                );
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        check(&servers, &twin);
        match (round % 4, away) {
            // One voter is away for some rounds.
            (1, _) => {
                let at = random.usize(..3);
                let voters = servers[at].as_ref().and_then(Cluster::changes).and_then(|one| one.voters);
                drop(servers[at].take());
                away = Some((at, voters.expect("it votes").last));
            }
            (3, Some((at, last))) => {
                // Twice, so that the others purge what it has not.
                for _ in 0..2 {
                    number += 1;
                    let text = format!("INSERT DATA {{ <urn:more> <urn:than> {number} }}");
                    twin.update(&text).expect("an update");
                    up(&servers, &text);
                    check(&servers, &twin);
                    for server in servers.iter().flatten() {
                        server.merge_changes().expect("merged");
                    }
                }
                // A leader keeps entries while it sends them, so it drops these when an attempt has failed.
                let begun = Instant::now();
                let has_dropped = |server: &Cluster| match server.changes().and_then(|changes| changes.voters)
                {
                    Some(voters) => voters.purged > Some(last),
                    None => true,
                };
                while !servers.iter().flatten().all(has_dropped) {
                    assert!(begun.elapsed() < PATIENCE, "the log keeps its entries");
                    std::thread::sleep(Duration::from_millis(1));
                }
                servers[at] = Some(open(&directories[at]));
                check(&servers, &twin);
                let server = servers[at].as_ref().expect("up");
                let position = server.changes().expect("it changes").merged.expect("it merges");
                assert!(position > 0, "it copied data of another server");
                away = None;
            }
            (0, _) => {
                // All at once, as after a loss of power.
                servers.iter_mut().for_each(|server| drop(server.take()));
                for (server, directory) in servers.iter_mut().zip(&directories) {
                    *server = Some(open(directory));
                }
                check(&servers, &twin);
            }
            _ => {}
        }
        // The rule holds over merged data, and where a new leader has read it from them.
        let leading = servers.iter().flatten().find(|server| server.takes_changes());
        let twice = "INSERT DATA { <urn:v0> <urn:name> \"name 3\" }";
        if let Some(error) = leading.and_then(|server| server.database().update(twice).err()) {
            assert!(
                matches!(
                    error.kind(),
                    ErrorKind::Constraint | ErrorKind::Unavailable | ErrorKind::Unsupported
                ),
                "{error}"
            );
        } else {
            assert!(leading.is_none(), "the rule is not kept");
        }
    }
    for (server, directory) in servers.into_iter().zip(&directories) {
        drop(server);
        let checked = vervet_cluster::check(directory, &vervet::DatabaseOptions::default()).expect("sound");
        assert_eq!(checked.partitions, (4, 4));
    }
}

/// A voter that has lost its log, or everything but its map and certificates, takes its place again, and its
/// vote counts: without one of the others, changes go on.
#[test]
fn a_voter_that_has_lost_its_files_joins_again() {
    let twin = graph();
    let mut options = InitOptions::on_host(3, 2, "127.0.0.1", (0, 0));
    options.voters = options.servers.iter().map(|server| server.name.clone()).collect();
    options.replicas = 3;
    let (mut servers, directories, _folder) = start_options(&graph(), options);
    let mut number = 0;
    let mut change = |servers: &[Cluster]| {
        number += 1;
        let text =
            format!("INSERT DATA {{ <urn:new{number}> <urn:next> <urn:v{number}> ; <urn:size> {number} }}");
        twin.update(&text).expect("an update");
        update(servers, &text);
        for query in QUERIES {
            assert_eq!(wait_for_all(servers, query), answers(&twin, query), "{query}");
        }
    };
    let options = vervet::DatabaseOptions::default();
    change(&servers);
    for (round, loses_data) in [false, true, false, false, false].into_iter().enumerate() {
        let (at, is_damaged) = (round % 3, round >= 3);
        let running = vervet_cluster::rejoin(&directories[at], &options, &|_, _| {}).expect_err("it runs");
        assert_eq!(running.kind(), ErrorKind::Unavailable, "{running}");
        drop(servers.remove(at));
        if round == 2 {
            for server in &servers {
                server.merge_changes().expect("merged");
            }
        }
        change(&servers);
        if loses_data {
            let entries = std::fs::read_dir(&directories[at]).expect("a directory");
            for path in entries.map(|entry| entry.expect("an entry").path()) {
                let is_kept = path.extension().is_some_and(|ending| ending == "pem" || ending == "toml");
                match (is_kept, path.is_dir()) {
                    (true, _) => {}
                    (false, true) => std::fs::remove_dir_all(&path).expect("removed"),
                    (false, false) => std::fs::remove_file(&path).expect("removed"),
                }
            }
        }
        if is_damaged {
            // A byte of the data is another one, or the file that is written last is gone.
            let data = directories[at].join(&data_in(&directories[at])[0]);
            let file = data.join(if round == 3 { "partition-0001.vvs" } else { "catalog.vvc" });
            let mut bytes = std::fs::read(&file).expect("a file");
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::remove_file(&file).expect("removed");
            if round == 3 {
                std::fs::write(&file, &bytes).expect("written");
            }
        }
        let log = std::fs::read_dir(&directories[at]).expect("a directory").find_map(|entry| {
            let path = entry.expect("an entry").path();
            (path.is_dir() && path.to_string_lossy().contains("voter-")).then_some(path)
        });
        if round == 0 {
            std::fs::remove_dir_all(log.expect("a log")).expect("removed");
        }
        if round < 2 {
            let lost = Cluster::open(&directories[at], &options).expect_err("its files are lost");
            assert!(lost.hint().is_some_and(|hint| hint.contains("vervet cluster rejoin")), "{lost:?}");
        }
        let rejoined = vervet_cluster::rejoin(&directories[at], &options, &|_, _| {}).expect("ready");
        assert_eq!((rejoined.has_copied, rejoined.had_log), (loses_data || is_damaged, round >= 2));
        servers.insert(at, open(&directories[at]));
        change(&servers);
        let begun = Instant::now();
        let is_voter = |servers: &[Cluster]| {
            let voters = servers[leader(servers)].changes().expect("it changes").voters.expect("it votes");
            voters.names.len() == 3
                && voters.matched.iter().filter(|(name, _)| *name == ["a", "b", "c"][at]).count() == 1
        };
        while !is_voter(&servers) {
            assert!(begun.elapsed() < PATIENCE, "{:?}", servers[leader(&servers)].changes());
            std::thread::sleep(Duration::from_millis(1));
        }
        // Its vote is needed now.
        let other = (at + 1) % 3;
        drop(servers.remove(other));
        change(&servers);
        servers.insert(other, open(&directories[other]));
        change(&servers);
        // It is the same voter after the next start.
        drop(servers.remove(at));
        servers.insert(at, open(&directories[at]));
        change(&servers);
    }
}

/// The change feed of a server, by steps of a few commits, each from the position of the one before.
fn feed_of(server: &Cluster, after: u64, step: u64) -> Result<String, vervet::Error> {
    let mut position = FeedPosition { commit: Timestamp(after), log: None };
    let mut text = Vec::new();
    loop {
        let mut feed = server.database().feed(Some(position)).map_err(FeedRefusal::into_error)?;
        let limits = FeedLimits { commits: step, ..FeedLimits::default() };
        let (format, options) = (FeedFormat::JsonLines, QueryOptions::default());
        let written = server.database().write_feed(&mut feed, format, limits, &options, &mut text);
        if written.map_err(FeedRefusal::into_error)? == 0 {
            return Ok(String::from_utf8(text).expect("a text"));
        }
        position = feed.position();
    }
}

/// Every server has the change feed of the log of the voters, wherever it leads and whatever was merged; it
/// goes on over a change of the leader.
#[test]
fn voters_have_the_change_feed() {
    let mut options = InitOptions::on_host(4, 1, "127.0.0.1", (0, 0));
    options.voters = options.servers[..3].iter().map(|server| server.name.clone()).collect();
    options.replicas = 4;
    let (mut servers, directories, _folder) = start_options(&graph(), options);
    // Several at once, so that entries have the records of several.
    let change = |servers: &[Cluster], from: u32| {
        std::thread::scope(|scope| {
            for client in 0..8 {
                scope.spawn(move || {
                    for number in from..from + 10 {
                        let text = format!(
                            "INSERT DATA {{ <urn:c{client}> <urn:n> {number} ; <urn:is> \"{number}\" }}"
                        );
                        update(servers, &text);
                    }
                });
            }
        });
        update(servers, &format!("INSERT DATA {{ <urn:all> <urn:of> {from} }}"));
        wait_for_all(servers, &format!("ASK {{ <urn:all> <urn:of> {from} }}"));
    };
    let check = |servers: &[Cluster], after: u64| {
        let last = servers[0].database().newest_commit().0;
        let expected = feed_of(&servers[0], after, u64::MAX).expect("the log has it");
        assert_eq!(expected.lines().count() as u64, last - after);
        for (server, step) in servers.iter().zip([1, 3, 7, u64::MAX]) {
            assert_eq!(feed_of(server, after, step).expect("a feed"), expected, "{}", server.map().server);
        }
        last
    };
    change(&servers, 0);
    let first = check(&servers, 0);
    assert!(first > 40, "{first}");
    let position = FeedPosition { commit: Timestamp(first), log: None };
    let mut open_feeds: Vec<_> =
        servers.iter().map(|server| server.database().feed(Some(position)).expect("a feed")).collect();
    // Another one leads.
    let lost = leader(&servers);
    drop(servers.remove(lost));
    drop(open_feeds.remove(lost));
    change(&servers, 100);
    for (server, feed) in servers.iter().zip(&mut open_feeds) {
        assert!(server.database().advance_feed(feed).expect("it goes on"), "{}", server.map().server);
        let (mut text, options) = (Vec::new(), QueryOptions::default());
        let limits = FeedLimits::default();
        let written = server.database().write_feed(feed, FeedFormat::JsonLines, limits, &options, &mut text);
        assert!(written.expect("commits") > 40);
    }
    servers.insert(lost, open(&directories[lost]));
    change(&servers, 200);
    check(&servers, first);
    let all = check(&servers, 0);
    // Entries that are not in the log any more: the feed says so, and goes on behind them.
    for from in [300, 400] {
        for server in &servers {
            server.merge_changes().expect("merged");
        }
        change(&servers, from);
    }
    let begun = Instant::now();
    for server in &servers {
        while let Ok(text) = feed_of(server, 0, u64::MAX) {
            assert!(begun.elapsed() < PATIENCE, "nothing is purged: {} lines", text.lines().count());
            std::thread::sleep(Duration::from_millis(1));
        }
        let error = feed_of(server, 0, u64::MAX).expect_err("purged");
        assert!(error.message().contains("a checkpoint or a load has replaced them"), "{error}");
    }
    let newest = check(&servers, all + 1).saturating_sub(5);
    check(&servers, newest);
}

/// A server that does not vote has all changes soon after its start, and shows new ones, while changes go on
/// and it merges them.
#[test]
fn a_follower_keeps_up_with_steady_changes() {
    let mut options = InitOptions::on_host(4, 1, "127.0.0.1", (0, 0));
    options.voters = options.servers[..3].iter().map(|server| server.name.clone()).collect();
    options.replicas = 4;
    let (mut servers, directories, _folder) = start_options(&graph(), options);
    let at = leader(&servers);
    let (database, is_over) = (servers[at].database().clone(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for client in 0..4 {
            let (database, is_over) = (&database, &is_over);
            scope.spawn(move || {
                for number in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    _ = database.update(&format!("INSERT DATA {{ <urn:c{client}> <urn:n> {number} }}"));
                }
            });
        }
        drop(servers.pop());
        let server = open(&directories[3]);
        let begun = Instant::now();
        let wait = |what: &str, is_there: &dyn Fn() -> bool| {
            while !is_there() {
                if begun.elapsed() > PATIENCE {
                    is_over.store(true, Ordering::Relaxed);
                    panic!("{what}: {:?}", server.changes());
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        wait("not complete", &|| server.changes().is_some_and(|changes| changes.is_complete));
        for _ in 0..5 {
            server.merge_changes().expect("merged");
            let newest = database.newest_commit();
            wait("frozen", &|| server.database().newest_commit() >= newest);
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
