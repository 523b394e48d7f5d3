//! A cluster that changes: one server takes the changes, all show them, and every answer is that of one
//! database with the same changes.

use crate::{QUERIES, graph, open, rows, start, start_with};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vervet::{
    Database, DatabaseOptions, ErrorKind, FeedFormat, FeedLimits, FeedPosition, FeedRefusal, QueryOptions,
    Timestamp,
};
use vervet_cluster::{Cluster, check};

/// Waits until a server has the newest commit of the writer.
pub(crate) fn wait_for(server: &Cluster, writer: &Cluster) {
    let begun = Instant::now();
    let timestamp = |cluster: &Cluster| cluster.database().snapshot().timestamp();
    while timestamp(server) < timestamp(writer) {
        let changes = server.changes().expect("it changes");
        assert!(begun.elapsed() < Duration::from_secs(20), "{changes:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub(crate) fn answers(database: &Database, query: &str) -> Vec<String> {
    rows(database, query, &QueryOptions::default()).unwrap_or_else(|error| panic!("{query}: {error}"))
}

/// Updates of all kinds: new and known terms, types, edges with properties, graphs, removals, patterns.
pub(crate) const UPDATES: &[&str] = &[
    "INSERT DATA { <urn:new> a <urn:T1> ; <urn:next> <urn:v1> ; <urn:size> 7 ; <urn:name> \"a new name with 99\" }",
    "INSERT DATA { <urn:v5> <urn:next> <urn:new> . <urn:new> <urn:next> <urn:new2> }",
    "INSERT DATA { GRAPH <urn:g9> { <urn:new> <urn:in> \"a long text in a new graph\" } }",
    "DELETE DATA { <urn:v3> <urn:hub> <urn:v0> . <urn:v4> <urn:hub> <urn:v0> }",
    "DELETE { ?s <urn:size> ?z } INSERT { ?s <urn:size> 77 } WHERE { ?s <urn:size> ?z FILTER(?z = 3) }",
    "INSERT { ?a <urn:two> ?c } WHERE { ?a <urn:next> ?b . ?b <urn:next> ?c FILTER(STRENDS(STR(?a), \"9\")) }",
    "INSERT DATA { <urn:new> <urn:near> <urn:v7> ~ <urn:edgename> . <urn:edgename> <urn:vervet:key:since> 19 }",
    "DELETE WHERE { <urn:v10> ?p ?o }",
    "DELETE { ?s a <urn:T2> } INSERT { ?s a <urn:T9> } WHERE { ?s a <urn:T2> ; <urn:size> 11 }",
];

pub(crate) const OWN_QUERIES: &[&str] = &[
    "SELECT ?p ?o { <urn:new> ?p ?o }",
    "SELECT ?s { ?s a <urn:T9> }",
    "SELECT ?a ?c { ?a <urn:two> ?c }",
    "SELECT ?o { GRAPH <urn:g9> { ?s ?p ?o } }",
    "SELECT ?s { ?s <urn:size> 77 }",
    "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p",
];

#[test]
fn every_server_shows_changes() {
    let twin = graph();
    let (mut servers, directories, _folder) = start_with(&graph(), 3, Some("b"));
    // Unknown terms, before they are known.
    for query in OWN_QUERIES {
        servers.iter().for_each(|server| drop(answers(server.database(), query)));
    }
    for (number, update) in UPDATES.iter().enumerate() {
        twin.update(update).expect("an update");
        servers[1].database().update(update).expect("an update");
        servers.iter().for_each(|server| wait_for(server, &servers[1]));
        for query in QUERIES.iter().chain(OWN_QUERIES) {
            let expected = answers(&twin, query);
            for (at, server) in servers.iter().enumerate() {
                assert_eq!(
                    answers(server.database(), query),
                    expected,
                    "{query} at {at} after update {number}"
                );
            }
        }
        // In both modes of running.
        for query in QUERIES {
            let options =
                QueryOptions { heavy_from: Duration::ZERO, ..QueryOptions::default().with_threads(2) };
            let expected = answers(&twin, query);
            let found = rows(servers[2].database(), query, &options).expect("an answer");
            assert_eq!(found, expected, "{query} after update {number}");
        }
        match number {
            3 => {
                // A follower that begins again takes all changes from the log.
                drop(servers.pop());
                servers.push(open(&directories[2]));
            }
            5 => {
                // So does the writer, and the others go on.
                drop(servers.remove(1));
                let stale = answers(servers[0].database(), OWN_QUERIES[2]);
                assert!(stale.len() > 1, "reads of own and other statements go on where the keys are");
                servers.insert(1, open(&directories[1]));
                assert_eq!(answers(servers[1].database(), OWN_QUERIES[2]), answers(&twin, OWN_QUERIES[2]));
            }
            _ => {}
        }
    }
    for traversal in ["g.V().out().out().count()", "g.V().hasLabel('T1').count()", "g.E().count()"] {
        let texts = |database: &Database| -> Vec<String> {
            let found = database.gremlin(traversal).expect("an answer");
            found.values().map(ToString::to_string).collect()
        };
        for server in &servers {
            assert_eq!(texts(server.database()), texts(&twin), "{traversal}");
        }
    }
    let changes = servers[0].changes().expect("it changes");
    assert_eq!((changes.writer.as_str(), changes.failure), ("b", None));
}

/// Reads of a follower are of one timestamp: an update that moves a value is seen whole or not at all, and in
/// order.
#[test]
fn followers_see_whole_commits_in_order() {
    let database = Database::in_memory();
    database.update("INSERT DATA { <urn:a> <urn:has> 0 . <urn:b> <urn:has> 1000 }").expect("an update");
    let (servers, _, _folder) = start_with(&database, 2, Some("a"));
    let query = "SELECT ?x ?y { <urn:a> <urn:has> ?x . <urn:b> <urn:has> ?y }";
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for number in 1..=200 {
                let before = number - 1;
                let update = format!(
                    "DELETE DATA {{ <urn:a> <urn:has> {before} . <urn:b> <urn:has> {} }} ; \
                     INSERT DATA {{ <urn:a> <urn:has> {number} . <urn:b> <urn:has> {} }}",
                    1000 - before,
                    1000 - number
                );
                servers[0].database().update(&update).expect("an update");
            }
        });
        let (mut last, mut seen) = (0, 0);
        while !writing.is_finished() || last < 200 {
            let rows = answers(servers[1].database(), query);
            assert_eq!(rows.len(), 2, "{rows:?}");
            let number = |text: &str| text.trim_matches(|c: char| !c.is_ascii_digit()).to_owned();
            let row = rows.iter().find(|row| !row.starts_with('?')).expect("a row");
            let values: Vec<i64> = row
                .split('\t')
                .map(|cell| number(cell.split("^^").next().unwrap_or_default()).parse().expect("a number"))
                .collect();
            assert_eq!(values[0] + values[1], 1000, "{row}");
            assert!(values[0] >= last, "{} after {last}", values[0]);
            seen += i64::from(values[0] > last);
            last = values[0];
        }
        assert!(seen > 1, "it was read while it was written");
    });
}

/// Servers whose partitions the log concerns may be away when others start: those ask again.
#[test]
fn servers_start_in_any_order() {
    let twin = graph();
    let (mut servers, directories, _folder) = start_with(&graph(), 3, Some("a"));
    let updates = [
        "INSERT { ?s <urn:next> <urn:v1> } WHERE { ?s <urn:hub> <urn:v0> }",
        "DELETE { ?s <urn:size> ?z } WHERE { ?s <urn:size> ?z ; a <urn:T1> }",
    ];
    for update in updates {
        twin.update(update).expect("an update");
        servers[0].database().update(update).expect("an update");
    }
    drop(servers.split_off(1));
    let b = open(&directories[1]);
    let begun = Instant::now();
    while b.changes().expect("it changes").failure.is_none() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it needs server c");
        std::thread::sleep(Duration::from_millis(1));
    }
    let changes = b.changes().expect("it changes");
    assert!(!changes.is_complete && !changes.has_ended, "{changes:?}");
    let c = open(&directories[2]);
    wait_for(&b, &servers[0]);
    wait_for(&c, &servers[0]);
    drop((servers, b, c));
    // All again, the writer first.
    let servers = std::thread::scope(|scope| {
        let a = scope.spawn(|| open(&directories[0]));
        let (b, c) = (open(&directories[1]), open(&directories[2]));
        [a.join().expect("no panic"), b, c]
    });
    servers.iter().for_each(|server| wait_for(server, &servers[0]));
    for query in QUERIES {
        let expected = answers(&twin, query);
        servers.iter().for_each(|server| assert_eq!(answers(server.database(), query), expected, "{query}"));
    }
}

/// A log that was replaced by an older copy while the writer was down: followers take the new history.
#[test]
fn a_log_that_is_replaced_by_a_copy() {
    let (mut servers, directories, folder) = start_with(&graph(), 2, Some("a"));
    let insert = |server: &Cluster, number: u32| {
        let update = format!("INSERT DATA {{ <urn:x> <urn:number> {} }}", 100 + number);
        server.database().update(&update).expect("an update");
    };
    insert(&servers[0], 1);
    wait_for(&servers[1], &servers[0]);
    let entries = std::fs::read_dir(&directories[0]).expect("a directory");
    let log = entries.map(|entry| entry.expect("an entry").path());
    let log = log.into_iter().find(|path| path.to_string_lossy().contains("changes-")).expect("a log");
    let copy = folder.path().join("copy");
    let copy_all = |from: &std::path::Path, to: &std::path::Path| {
        std::fs::create_dir_all(to).expect("made");
        for entry in std::fs::read_dir(from).expect("a directory") {
            let path = entry.expect("an entry").path();
            std::fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("copied");
        }
    };
    copy_all(&log, &copy);
    (2..4).for_each(|number| insert(&servers[0], number));
    wait_for(&servers[1], &servers[0]);
    drop(servers.remove(0));
    std::fs::remove_dir_all(&log).expect("removed");
    copy_all(&copy, &log);
    servers.insert(0, open(&directories[0]));
    (11..15).for_each(|number| insert(&servers[0], number));
    let query = "SELECT ?n { <urn:x> <urn:number> ?n }";
    let expected = answers(servers[0].database(), query);
    assert_eq!(expected.len(), 6);
    let begun = Instant::now();
    while answers(servers[1].database(), query) != expected {
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", servers[1].changes());
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn changes_go_to_the_writer() {
    let (servers, directories, _folder) = start_with(&graph(), 2, Some("a"));
    let update = "INSERT DATA { <urn:x> <urn:y> <urn:z> }";
    let error = servers[1].database().update(update).expect_err("not the writer");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("server a (127.0.0.1:"), "{error}");
    // Loads and checkpoints would replace the files of the partitions.
    let load = servers[0].database().load_text(vervet::Format::NTriples, "<urn:a> <urn:b> <urn:c> .");
    assert_eq!(load.expect_err("refused").kind(), ErrorKind::Unsupported);
    assert_eq!(servers[0].database().checkpoint().expect_err("refused").kind(), ErrorKind::Unsupported);
    // Servers whose maps differ in the writer refuse each other.
    let map = directories[1].join("cluster.toml");
    let text = std::fs::read_to_string(&map).expect("a map");
    drop(servers);
    std::fs::write(&map, text.replace("writer = \"a\"", "writer = \"b\"")).expect("written");
    let servers = [open(&directories[0]), open(&directories[1])];
    let error = rows(servers[0].database(), QUERIES[0], &QueryOptions::default()).err();
    let all = "SELECT (COUNT(*) AS ?n) { ?s <urn:next> ?o . ?o <urn:next> ?x }";
    let error = error.or(rows(servers[0].database(), all, &QueryOptions::default()).err());
    assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::Unavailable));
}

/// Transactions at the writer are serializable, whatever they read of other servers.
#[test]
fn transactions_conflict_over_servers() {
    let (servers, _, _folder) = start_with(&graph(), 3, Some("a"));
    let database = servers[0].database();
    let count = "SELECT (COUNT(*) AS ?n) { ?s a <urn:T0> ; <urn:next> ?o . ?o <urn:size> ?z }";
    let (mut one, mut other) = (database.begin().expect("begins"), database.begin().expect("begins"));
    let options = QueryOptions { heavy_from: Duration::ZERO, ..QueryOptions::default() };
    drop(one.query_with(count, &options).expect("an answer"));
    drop(other.query_with(count, &options).expect("an answer"));
    one.update("INSERT DATA { <urn:n1> a <urn:T0> ; <urn:next> <urn:v1> }").expect("an update");
    other.update("INSERT DATA { <urn:n2> a <urn:T0> ; <urn:next> <urn:v2> }").expect("an update");
    one.commit().expect("commits");
    assert_eq!(
        other.commit().expect_err("it has read what the first one changed").kind(),
        ErrorKind::Conflict
    );
}

/// Without a writer nothing changes.
#[test]
fn a_cluster_without_a_writer_says_so() {
    let (servers, _, _folder) = start(&graph(), 2);
    assert!(servers[0].changes().is_none());
    let error = servers[0].database().update("CLEAR ALL").map(drop).expect_err("read only");
    assert!(error.hint().is_some_and(|hint| hint.contains("writer")), "{error:?}");
}

/// The change feed of a follower is that of the writer.
#[test]
fn every_server_has_the_change_feed() {
    let (mut servers, directories, _folder) = start_with(&graph(), 2, Some("a"));
    let feed = |server: &Cluster, after: u64| {
        let after = FeedPosition { commit: Timestamp(after), log: None };
        let mut feed = server.database().feed(Some(after)).map_err(FeedRefusal::into_error)?;
        let mut text = Vec::new();
        let (format, limits) = (FeedFormat::JsonLines, FeedLimits::default());
        let options = QueryOptions::default();
        let written = server.database().write_feed(&mut feed, format, limits, &options, &mut text);
        written.map_err(FeedRefusal::into_error)?;
        Ok::<_, vervet::Error>(String::from_utf8(text).expect("text"))
    };
    for update in UPDATES {
        servers[0].database().update(update).expect("an update");
    }
    wait_for(&servers[1], &servers[0]);
    let commits = servers[0].database().newest_commit().0;
    for after in 0..=commits {
        let expected = feed(&servers[0], after).expect("the log has it");
        assert_eq!(expected.lines().count() as u64, commits - after);
        assert_eq!(feed(&servers[1], after).expect("the writer answers"), expected);
    }
    let positions: Vec<_> = servers.iter().map(|server| server.database().feed_snapshot()).collect();
    let [writer, follower] = [0, 1].map(|at| positions[at].as_ref().expect("a position").0);
    assert_eq!(writer, follower);
    assert!(feed(&servers[1], commits + 1).is_err());
    // It needs the writer.
    drop(servers.remove(0));
    let refused = feed(&servers[0], 0).map_err(|error| error.kind());
    assert_eq!(refused, Err(ErrorKind::Unavailable));
    servers.insert(0, open(&directories[0]));
    let begun = Instant::now();
    while feed(&servers[1], 0).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(feed(&servers[1], 0).expect("the log"), feed(&servers[0], 0).expect("the log"));
}

/// The directory of the log of a server.
fn log_of(directory: &Path) -> PathBuf {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let is_log = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("changes-"))
    };
    entries.into_iter().find(is_log).expect("a log")
}

fn open_error(directory: &Path) -> vervet::Error {
    Cluster::open(directory, &DatabaseOptions::default()).expect_err("refused")
}

/// A check of the writer reads its log, and an error of the log has the remedy for a log.
#[test]
fn a_check_reads_the_log_of_changes() {
    let (servers, directories, _folder) = start_with(&graph(), 2, Some("a"));
    let verify = |at: usize| check(&directories[at], &DatabaseOptions::default());
    assert_eq!(verify(1).expect("sound").log, None);
    for update in UPDATES {
        servers[0].database().update(update).expect("an update");
    }
    assert!(servers[0].database().file_bytes().log > 0);
    let commits = servers[0].database().newest_commit().0;
    assert_eq!(verify(0).expect("sound beside its server").log.map(|log| log.commits), Some(commits));
    drop(servers);
    let log = verify(0).expect("sound").log.expect("a log");
    assert!(log.commits == commits && log.bytes > 0, "{log:?}");
    let directory = log_of(&directories[0]);
    let file = fs::read_dir(&directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let file =
        file.into_iter().find(|path| path.extension().is_some_and(|end| end == "log")).expect("a file");
    let mut bytes = fs::read(&file).expect("a log");
    bytes[200] ^= 1;
    fs::write(&file, &bytes).expect("written");
    let checked = verify(0).expect_err("damaged");
    for error in [checked, open_error(&directories[0])] {
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        let hint = error.hint().expect("a remedy");
        assert!(hint.contains("log of changes") && !hint.contains("vervet recover"), "{hint}");
    }
}

/// The log of a server of another cluster is refused under any name, and so is that of other data.
#[test]
fn a_log_of_another_cluster_is_refused() {
    let (servers, directories, _folder) = start_with(&graph(), 2, Some("a"));
    let (others, other_directories, _other_folder) = start_with(&graph(), 2, Some("a"));
    for servers in [&servers, &others] {
        servers[0].database().update(UPDATES[0]).expect("an update");
    }
    drop((servers, others));
    let (own, other) = (log_of(&directories[0]), log_of(&other_directories[0]));
    let kept = own.with_file_name("kept");
    fs::rename(&own, &kept).expect("moved");
    fs::create_dir(&own).expect("made");
    for entry in fs::read_dir(&other).expect("a directory") {
        let path = entry.expect("an entry").path();
        fs::copy(&path, own.join(path.file_name().expect("a name"))).expect("copied");
    }
    let checked = check(&directories[0], &DatabaseOptions::default()).expect_err("another cluster");
    for error in [open_error(&directories[0]), checked] {
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
        assert!(error.message().contains("of another cluster") && error.hint().is_some(), "{error:?}");
    }
    // The own one, as an earlier version has made it, gets the file when it is opened.
    fs::remove_dir_all(&own).expect("removed");
    fs::rename(&kept, &own).expect("moved back");
    let before = fs::read(own.join("ORIGIN")).expect("a file");
    fs::remove_file(own.join("ORIGIN")).expect("removed");
    // The changes concern partitions of the other server.
    let servers = [1, 0].map(|at| open(&directories[at]));
    assert_eq!(servers[1].database().newest_commit(), Timestamp(1));
    assert_eq!(fs::read(own.join("ORIGIN")).expect("a file"), before);
    drop(servers);
    fs::write(own.join("ORIGIN"), "data = 7").expect("written");
    assert_eq!(open_error(&directories[0]).kind(), ErrorKind::Corrupt);
}
