//! Loads by all servers together: the graph is the one that one load of all files makes, and a load that
//! fails changes nothing.

use crate::together::{merge, until_done, update, wait_for};
use crate::{QUERIES, open, rows};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use vervet::{Database, DatabaseOptions, Environment, Error, ErrorKind, LoadOptions, QueryOptions, Source};
use vervet_cluster::{
    Cluster, ClusterLoadOptions, ClusterLoadReport, InitOptions, LoadEvent, Rebalance, check, init_empty,
    load, rebalance,
};
use vervet_testkit::free_address;

/// Directories of servers without data, and their folder.
fn directories(count: usize) -> (Vec<PathBuf>, tempfile::TempDir) {
    directories_with(count, |_| {})
}

fn directories_with(
    count: usize,
    change: impl FnOnce(&mut InitOptions),
) -> (Vec<PathBuf>, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = InitOptions::on_host(count, 16, "127.0.0.1", (0, 0));
    for server in &mut options.servers {
        server.address = free_address();
    }
    change(&mut options);
    let directories = init_empty(&options, &folder.path().join("servers")).expect("made");
    (directories, folder)
}

pub(crate) fn options(report: &(dyn Fn(LoadEvent<'_>) + Sync)) -> ClusterLoadOptions<'_> {
    ClusterLoadOptions {
        reading: LoadOptions::default(),
        cancelled: None,
        memory_bytes: None,
        environment: Environment::real(),
        run_bits: None,
        replace: false,
        on_stop: None,
        wait: Duration::from_secs(60),
        report,
    }
}

/// Files of each server, as names and contents.
type Shares = Vec<Vec<(String, String)>>;

fn sources(share: &[(String, String)]) -> Vec<Source> {
    share.iter().map(|(name, text)| Source::bytes(name.clone(), text.clone().into_bytes())).collect()
}

/// Loads all shares together.
fn load_all(
    directories: &[PathBuf],
    shares: &Shares,
    change: impl Fn(usize, &mut ClusterLoadOptions<'_>) + Sync,
) -> Vec<vervet::Result<ClusterLoadReport>> {
    std::thread::scope(|scope| {
        let change = &change;
        let threads: Vec<_> = directories
            .iter()
            .zip(shares)
            .enumerate()
            .map(|(server, (directory, share))| {
                scope.spawn(move || {
                    let ignored = |_: LoadEvent<'_>| {};
                    let mut options = options(&ignored);
                    change(server, &mut options);
                    load(directory, sources(share), &options, &mut std::io::sink())
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// A graph in `count` shares with several files each: types, edges with properties, named graphs, values, a
/// hub, blank nodes, texts in languages, and terms that all shares use.
fn shares(count: usize) -> Shares {
    let mut shares: Shares = vec![Vec::new(); count];
    for (server, share) in shares.iter_mut().enumerate() {
        let (mut turtle, mut quads) = (String::new(), String::new());
        for number in (0..600_u32).filter(|number| *number as usize * count / 600 == server) {
            let next = (number * 7 + 1) % 600;
            writeln!(
                turtle,
                "<urn:v{number}> a <urn:T{}> ; <urn:next> <urn:v{next}> ; <urn:hub> <urn:v0> ; <urn:size> {} ;\n\
                 <urn:name> \"name {number}\", \"Name mit Länge {number}\"@de ; <urn:part> [ <urn:size> {} ] .",
                number % 3,
                number % 50,
                number % 7,
            )
            .expect("a text");
            writeln!(
                turtle,
                "<urn:v{number}> <urn:near> <urn:v{}> ~ <urn:vervet:edge:{number}> .\n\
                 <urn:vervet:edge:{number}> <urn:vervet:key:since> {} .",
                number / 2,
                number % 20
            )
            .expect("a text");
            writeln!(quads, "<urn:v{number}> <urn:in> \"g\" <urn:g{}> .", number % 4).expect("a text");
            writeln!(quads, "_:b{number} <urn:of> <urn:v{number}> .").expect("a text");
        }
        share.push((format!("share{server}.ttl"), turtle));
        share.push((format!("share{server}.nq"), quads));
    }
    shares
}

/// What one load of all files makes.
fn whole(shares: &Shares) -> Database {
    let database = Database::in_memory();
    let all = shares.iter().flat_map(|share| sources(share)).collect();
    database.load(all, &LoadOptions::default()).expect("a graph");
    database
}

fn compare(directories: &[PathBuf], database: &Database) {
    compare_servers(&directories.iter().map(|directory| open(directory)).collect::<Vec<_>>(), database);
}

/// Queries of the graph of [`shares`].
const OWN_QUERIES: [&str; 4] = [
    "SELECT ?t { ?s <urn:name> ?t FILTER(LANG(?t) = \"de\" && CONTAINS(?t, \"99\")) }",
    "SELECT (COUNT(DISTINCT ?b) AS ?n) { ?s <urn:part> ?b . ?b <urn:size> ?z }",
    "SELECT ?v { ?b <urn:of> ?v . ?v <urn:size> 3 FILTER(ISBLANK(?b)) }",
    "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p",
];

fn compare_servers(servers: &[Cluster], database: &Database) {
    for query in QUERIES.iter().chain(&OWN_QUERIES) {
        let options = QueryOptions::default();
        let answer = |database: &Database| {
            let mut rows = rows(database, query, &options).expect("an answer");
            rows.iter_mut().for_each(|row| *row = without_labels(row));
            rows
        };
        let expected = answer(database);
        for server in servers {
            assert_eq!(answer(server.database()), expected, "{query}");
        }
    }
}

/// A row without the labels of its blank nodes, which every load chooses.
fn without_labels(row: &str) -> String {
    let cell = |cell: &str| if cell.starts_with("_:") { "_:".to_owned() } else { cell.to_owned() };
    row.split('\t').map(cell).collect::<Vec<_>>().join("\t")
}

/// Also where changes were merged into the data, which are then in another directory.
#[test]
fn a_graph_with_merged_changes_is_replaced() {
    let (directories, _folder) = directories_with(3, |options| {
        options.voters = options.servers.iter().map(|server| server.name.clone()).collect();
    });
    let of_others = |share: Vec<(String, String)>| {
        let text = |(name, text): (String, String)| (name, text.replace("name", "other"));
        share.into_iter().map(text).collect::<Vec<_>>()
    };
    let (before, after) = (shares(3), shares(3).into_iter().map(of_others).collect::<Shares>());
    load_all(&directories, &before, |_, _| {}).into_iter().for_each(|loaded| drop(loaded.expect("loaded")));
    let servers: Vec<Cluster> = directories.iter().map(|directory| open(directory)).collect();
    update(&servers, "INSERT DATA { <urn:v1> <urn:next> <urn:v9> }");
    merge(&servers);
    drop(servers);
    for loaded in load_all(&directories, &after, |_, _| {}) {
        let kept = loaded.expect_err("they have data");
        assert!(kept.to_string().contains("has a graph already"), "{kept}");
    }
    for loaded in load_all(&directories, &after, |_, options| options.replace = true) {
        loaded.expect("replaced");
    }
    compare(&directories, &whole(&after));
}

/// Servers that load together have each partition once; more copies of each are made afterwards.
#[test]
fn a_graph_that_was_loaded_together_gets_replicas() {
    let (directories, _folder) = directories_with(3, |options| {
        options.voters = options.servers.iter().map(|server| server.name.clone()).collect();
    });
    let shares = shares(3);
    let database = whole(&shares);
    load_all(&directories, &shares, |_, _| {}).into_iter().for_each(|loaded| drop(loaded.expect("loaded")));
    let mut servers: Vec<Cluster> = directories.iter().map(|directory| open(directory)).collect();
    let of = Rebalance::Evenly { replicas: Some(2) };
    until_done(|| rebalance(&directories[0], &of, &mut |_| {}));
    wait_for(&servers, "map", |server| server.map().fewest_replicas() == 2);
    compare_servers(&servers, &database);
    drop(servers.pop());
    // The others may not have gone over yet to where partitions are now. Answers that they have kept say
    // nothing about that, so they are opened again.
    servers.clear();
    servers.extend(directories[..2].iter().map(|directory| open(directory)));
    for server in &servers {
        let answers = |query: &&str| rows(server.database(), query, &QueryOptions::default()).map(drop);
        until_done(|| QUERIES.iter().chain(&OWN_QUERIES).try_for_each(answers));
    }
    compare_servers(&servers, &database);
}

#[test]
fn servers_load_together() {
    for (count, memory) in [(1, None), (2, None), (3, Some(40_000)), (4, None)] {
        let (directories, folder) = directories(count);
        let shares = shares(count);
        let database = whole(&shares);
        let loaded = load_all(&directories, &shares, |_, options| options.memory_bytes = memory);
        let statements = database.snapshot().statement_count();
        for report in loaded {
            let report = report.expect("loaded");
            assert_eq!(report.statements, statements);
            assert!(report.share.statements > 0 && (count == 1 || report.bytes_sent > 10_000), "{report:?}");
        }
        compare(&directories, &database);
        for directory in &directories {
            let checked = check(directory, &DatabaseOptions::default()).expect("whole");
            assert_eq!(checked.statements, statements);
            let names = names(directory);
            assert!(!names.iter().any(|name| name.contains("partial") || name.contains("lock")), "{names:?}");
        }
        // A second load is refused, and changes nothing.
        for report in load_all(&directories, &shares, |_, _| ()) {
            assert!(report.expect_err("there is a graph").message().contains("has a graph already"));
        }
        compare(&directories, &database);
        drop(folder);
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A text that is longer than a request is read by any server.
#[test]
fn long_texts_are_loaded_anywhere() {
    let (directories, _folder) = directories(2);
    let long = "x".repeat(17 << 20);
    let shares: Shares = vec![
        vec![("a.nt".to_owned(), "<urn:a> <urn:p> \"short\" .\n".to_owned())],
        vec![("b.nt".to_owned(), format!("<urn:b> <urn:p> \"{long}\" .\n<urn:c> <urn:p> \"short\" .\n"))],
    ];
    for report in load_all(&directories, &shares, |_, _| ()) {
        report.expect("loaded");
    }
    let servers: Vec<Cluster> = directories.iter().map(|directory| open(directory)).collect();
    let query = "SELECT ?s (STRLEN(?t) AS ?n) { ?s <urn:p> ?t }";
    for server in &servers {
        let found = rows(server.database(), query, &QueryOptions::default()).expect("an answer");
        assert!(found.iter().any(|row| row.contains(&(17 << 20).to_string())), "{found:?}");
    }
}

/// Ids do not depend on how files are given to servers, so neither do the files of partitions.
#[test]
fn the_number_of_servers_does_not_matter() {
    let plain = |count: usize| -> Shares {
        let line = |number: usize| {
            format!(
                "<urn:v{number}> <urn:p{}> <urn:v{}> .\n<urn:v{number}> <urn:size> \"size {}\" .\n",
                number % 5,
                number * number % 997,
                number % 30
            )
        };
        let share = |server: usize| {
            let numbers = (0..1_000).filter(|number| number * count / 1_000 == server);
            vec![(format!("{server}.nt"), numbers.map(line).collect::<String>())]
        };
        (0..count).map(share).collect()
    };
    let load_with = |count: usize| {
        let (directories, folder) = directories(count);
        for report in load_all(&directories, &plain(count), |_, options| options.run_bits = Some(2)) {
            report.expect("loaded");
        }
        let file = |partition: usize| {
            let name = format!("data/partition-{partition:04}.vvs");
            let found = directories.iter().map(|directory| directory.join(&name)).find(|path| path.exists());
            std::fs::read(found.expect("at a server")).expect("a file")
        };
        let files: Vec<Vec<u8>> = (0..16).map(file).collect();
        drop(folder);
        files
    };
    let (one, three) = (load_with(1), load_with(3));
    // The number of the build is in the last 48 bytes.
    for (one, three) in one.iter().zip(&three) {
        assert_eq!(one.len(), three.len());
        assert!(one[..one.len() - 48] == three[..three.len() - 48]);
    }
}

fn errors(loaded: Vec<vervet::Result<ClusterLoadReport>>) -> Vec<Error> {
    loaded.into_iter().map(|report| report.expect_err("it fails")).collect()
}

#[test]
fn a_load_that_fails_changes_nothing() {
    let (directories, _folder) = directories(3);
    let good = shares(3);
    let before: Vec<Vec<String>> = directories.iter().map(|directory| names(directory)).collect();
    let with = |server: usize, name: &str, text: &str| {
        let mut shares = good.clone();
        shares[server].push((name.to_owned(), text.to_owned()));
        shares
    };
    let named = "<urn:x> <urn:p> <urn:y> ~ <urn:edge> .\n";
    let cases: Vec<(Shares, &str, usize)> = vec![
        (with(1, "bad.nt", "<urn:a> <urn:b> .\n"), "bad.nt:1", 1),
        (with(0, "bad.nt", "<urn:a> <urn:b> .\n"), "bad.nt:1", 0),
        (
            {
                let mut shares = with(1, "named.ttl", named);
                shares[2].push(("about.ttl".to_owned(), "<urn:edge> <urn:since> 3 .\n".to_owned()));
                shares
            },
            "<urn:edge> is the name of an edge in the files of server b, and used in those of server c",
            2,
        ),
        (
            {
                let mut shares = with(1, "named.ttl", named);
                shares[0].push(("about.ttl".to_owned(), "<urn:z> <urn:since> <urn:edge> .\n".to_owned()));
                shares
            },
            "<urn:edge> is the name of an edge in the files of server b, and used in those of server a",
            0,
        ),
        (
            {
                let mut shares = with(1, "named.ttl", named);
                shares[2].push(("named.ttl".to_owned(), named.to_owned()));
                shares
            },
            "servers b and c give edges the same name",
            0,
        ),
    ];
    for (shares, message, origin) in cases {
        let errors = errors(load_all(&directories, &shares, |_, _| ()));
        assert!(errors[origin].message().contains(message), "{message}: {errors:?}");
        for (server, error) in errors.iter().enumerate().filter(|(server, _)| *server != origin) {
            let from = ["a", "b", "c"][origin];
            let expected = format!("server {from} has stopped the load: ");
            assert!(error.message().starts_with(&expected), "server {server}: {error}");
            assert!(error.message().contains(message), "{error}");
        }
        let after: Vec<Vec<String>> = directories.iter().map(|directory| names(directory)).collect();
        assert_eq!(after, before);
        let error = Cluster::open(&directories[0], &DatabaseOptions::default()).expect_err("no data");
        assert!(error.hint().is_some_and(|hint| hint.contains("vervet cluster load")), "{error:?}");
    }
    for report in load_all(&directories, &good, |_, _| ()) {
        report.expect("loaded");
    }
    compare(&directories, &whole(&good));
}

#[test]
fn a_server_that_does_not_begin_is_named() {
    let (directories, _folder) = directories(3);
    let shares = shares(3);
    let short = |_: usize, options: &mut ClusterLoadOptions<'_>| options.wait = Duration::from_millis(700);
    let found = errors(load_all(&directories[..2], &shares, short));
    assert!(found[0].message().contains("servers have not begun: c"), "{found:?}");
    assert!(found.iter().all(|error| error.kind() == ErrorKind::Unavailable), "{found:?}");
    let found = errors(load_all(&directories[1..], &shares[1..].to_vec(), short));
    assert!(found.iter().all(|error| error.message().contains("server a")), "{found:?}");
}

#[test]
fn a_load_can_be_cancelled() {
    static CANCELLED: AtomicBool = AtomicBool::new(false);
    let (directories, _folder) = directories(2);
    let shares = shares(2);
    // Server b waits for a file that never comes.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let ignored = |_: LoadEvent<'_>| {};
    let found = std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            let cancel = |event: LoadEvent<'_>| {
                if matches!(event, LoadEvent::Step("terms")) {
                    CANCELLED.store(true, Ordering::Relaxed);
                }
            };
            let options = ClusterLoadOptions { cancelled: Some(&CANCELLED), ..options(&cancel) };
            load(&directories[0], sources(&shares[0]), &options, &mut std::io::sink())
        });
        let second = scope.spawn(|| {
            let source = Source::reader("pipe.nt", reader);
            load(&directories[1], vec![source], &options(&ignored), &mut std::io::sink())
        });
        let first = first.join().expect("no panic");
        drop(writer);
        [first, second.join().expect("no panic")]
    });
    let found = errors(found.into());
    assert_eq!(found[0].kind(), ErrorKind::Cancelled, "{found:?}");
    assert!(found[1].message().contains("server a has stopped the load"), "{found:?}");
}

/// Directories of which one has been published and others have not: the load is made again.
#[test]
fn data_of_an_interrupted_load() {
    let (directories, _folder) = directories(2);
    let shares = shares(2);
    for report in load_all(&directories, &shares, |_, _| ()) {
        report.expect("loaded");
    }
    let database = whole(&shares);
    let [data, partial] = ["data", "data.partial"].map(|name| directories[1].join(name));
    // Complete, but not renamed.
    std::fs::rename(&data, &partial).expect("renamed");
    compare(&directories, &database);
    assert!(data.exists() && !partial.exists());
    // Not complete: the first server has data that no other one has.
    std::fs::rename(&data, &partial).expect("renamed");
    std::fs::remove_file(partial.join("catalog.vvc")).expect("removed");
    let refused = errors(load_all(&directories, &shares, |_, _| ()));
    assert!(refused[0].message().contains("servers a have data that the others do not have"), "{refused:?}");
    for report in load_all(&directories, &shares, |_, options| options.replace = true) {
        report.expect("loaded");
    }
    compare(&directories, &database);
}
