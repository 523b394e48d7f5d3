//! Several servers of one graph in this process, over loopback: every answer is that of one database, and
//! faults are errors, never wrong answers.

mod backup;
mod changes;
mod flows;
mod hubs;
mod joins;
mod load;
mod lost;
mod members;
mod moving;
mod replicas;
mod stored_backup;
mod together;
mod voters;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vervet::{Database, DatabaseOptions, ErrorKind, Format, OutputFormat, QueryOptions};
use vervet_cluster::{AUTHORITY_KEY_FILE, Cluster, InitOptions, MAP_FILE, check, init, renew_certificate};
use vervet_model::Watch;
use vervet_peer::{ALWAYS, FaultPlan};
use vervet_testkit::free_address;

/// A graph with types, edges with properties, named graphs, values of several types, and a hub.
fn graph() -> Database {
    let mut text = String::new();
    for number in 0..600_u32 {
        let next = (number * 7 + 1) % 600;
        text.push_str(&format!(
            "<urn:v{number}> a <urn:T{}> ; <urn:next> <urn:v{next}> ; <urn:hub> <urn:v0> ; <urn:size> {} ; \
             <urn:name> \"name {number}\" .\n",
            number % 3,
            number % 50,
        ));
        text.push_str(&format!(
            "<urn:v{number}> <urn:near> <urn:v{}> ~ <urn:vervet:edge:{number}> .\n",
            number / 2
        ));
        text.push_str(&format!("<urn:vervet:edge:{number}> <urn:vervet:key:since> {} .\n", number % 20));
        text.push_str(&format!("<urn:g{}> {{ <urn:v{number}> <urn:in> \"g\" }}\n", number % 4));
    }
    let database = Database::in_memory();
    database.load_text(Format::TriG, &text).expect("a graph");
    database
}

const QUERIES: &[&str] = &[
    "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
    "SELECT * { <urn:v5> ?p ?o }",
    "SELECT ?s { ?s <urn:hub> <urn:v0> ; <urn:size> 7 }",
    "SELECT ?a ?c { ?a <urn:next> ?b . ?b <urn:next> ?c . ?c a <urn:T1> }",
    "SELECT ?t (COUNT(*) AS ?n) (SUM(?z) AS ?sum) { ?s a ?t ; <urn:size> ?z } GROUP BY ?t",
    "SELECT ?b { <urn:v3> <urn:next>+ ?b }",
    "SELECT (COUNT(*) AS ?n) { ?a <urn:next>/<urn:near>* ?b }",
    "SELECT ?s ?x { ?s <urn:size> 3 OPTIONAL { ?s <urn:near> ?x . ?x a <urn:T2> } }",
    "SELECT ?s { ?s a <urn:T0> FILTER NOT EXISTS { ?s <urn:next> ?o . ?o <urn:size> ?z FILTER(?z > 10) } }",
    "SELECT ?s { { ?s <urn:size> 1 } UNION { ?s <urn:size> 2 } MINUS { ?s a <urn:T1> } }",
    "SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s <urn:in> ?o } } GROUP BY ?g",
    "SELECT ?e ?since { ?a <urn:near> ?b ~ ?e . ?e <urn:vervet:key:since> ?since FILTER(?since > 18) }",
    "SELECT ?n { ?s <urn:name> ?n FILTER(CONTAINS(?n, \"99\")) }",
    "SELECT ?s ?z { ?s <urn:size> ?z ; <urn:name> ?n } ORDER BY DESC(?z) ?n LIMIT 20",
    "SELECT DISTINCT ?z { ?s <urn:size> ?z }",
    "ASK { ?a <urn:near> ?b . ?b <urn:near> ?a }",
];

/// `count` servers of the graph, and the folder of their directories.
fn start(database: &Database, count: usize) -> (Vec<Cluster>, Vec<PathBuf>, tempfile::TempDir) {
    start_with(database, count, None)
}

/// [`start`] with a server that takes changes.
fn start_with(
    database: &Database,
    count: usize,
    writer: Option<&str>,
) -> (Vec<Cluster>, Vec<PathBuf>, tempfile::TempDir) {
    let mut options = InitOptions::on_host(count, 16, "127.0.0.1", (0, 0));
    options.writer = writer.map(str::to_owned);
    start_options(database, options)
}

/// [`start`] with other options, but for the addresses.
fn start_options(
    database: &Database,
    mut options: InitOptions,
) -> (Vec<Cluster>, Vec<PathBuf>, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    for server in &mut options.servers {
        server.address = free_address();
    }
    let watch = Watch::new("test");
    let directories = init(database, &options, &folder.path().join("servers"), &watch).expect("made");
    let servers = directories.iter().map(|directory| open(directory)).collect();
    (servers, directories, folder)
}

fn open(directory: &Path) -> Cluster {
    Cluster::open(directory, &DatabaseOptions::default()).expect("a server")
}

fn rows(database: &Database, query: &str, options: &QueryOptions) -> vervet::Result<Vec<String>> {
    let mut bytes = Vec::new();
    database.write(query, options, OutputFormat::Tsv, &mut bytes)?;
    let mut rows: Vec<String> =
        String::from_utf8(bytes).expect("a text").lines().map(str::to_owned).collect();
    if !query.contains("ORDER BY") {
        rows.sort();
    }
    Ok(rows)
}

/// Profiles in both languages say what was read from which server.
#[test]
fn profiles_count_reads_of_other_servers() {
    let (servers, ..) = start(&graph(), 3);
    let database = servers[0].database();
    let query =
        "SELECT * { <urn:v5> <urn:next> ?b . ?b <urn:next> ?c . ?c <urn:next> ?d . ?d <urn:next> ?e }";
    let profile = |threads| {
        let options = QueryOptions::default().with_threads(threads);
        database.prepare(query).expect("a query").profile_with(&options).expect("a profile")
    };
    for text in [profile(1), profile(2)] {
        let line = text.lines().find(|line| line.starts_with("reads in place: ")).expect("a line");
        assert!(line.contains("; server b: ") || line.contains("; server c: "), "{line}");
    }
    for _ in 0..2 {
        let found = database.gremlin("g.V().out().out().profile()").expect("a profile");
        let Some(vervet::gremlin::Value::Metrics(metrics)) = found.values().next().cloned() else {
            panic!("no metrics")
        };
        let reads = metrics.steps.last().expect("a step");
        assert!(&*reads.id == "reads" && reads.name.starts_with("reads in place: "), "{reads:?}");
        let names: Vec<&str> = reads.nested.iter().map(|server| &*server.name).collect();
        assert_eq!(names, ["server b", "server c"]);
    }
}

/// The directories have private keys, so only their owner can read them.
#[cfg(unix)]
#[test]
fn directories_are_private() {
    use std::os::unix::fs::MetadataExt;
    let (_, directories, folder) = start(&graph(), 2);
    let mode = |path: &Path| fs::metadata(path).expect("it is there").mode() & 0o777;
    let all = folder.path().join("servers");
    assert_eq!((mode(&all), mode(&all.join(AUTHORITY_KEY_FILE))), (0o700, 0o600));
    for directory in directories {
        let data = directory.join("data");
        assert_eq!((mode(&directory), mode(&data), mode(&directory.join("key.pem"))), (0o700, 0o700, 0o600));
    }
}

/// The remedy for a damaged file is one that a server of a cluster has.
#[test]
fn a_damaged_file_has_a_remedy() {
    let (servers, directories, _folder) = start(&graph(), 2);
    drop(servers);
    for name in ["catalog.vvc", "dictionary.vvd", "partition-0000.vvs"] {
        let path = directories[0].join("data").join(name);
        let sound = fs::read(&path).expect("a file");
        // Not in place: other servers may have the same file.
        fs::remove_file(&path).expect("removed");
        let mut bytes = sound.clone();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&path, bytes).expect("written");
        let error = check(&directories[0], &DatabaseOptions::default()).expect_err("damaged");
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        let hint = error.hint().expect("a hint");
        assert!(hint.contains("vervet cluster init") && !hint.contains("backup"), "{hint}");
        fs::write(&path, sound).expect("written");
    }
}

#[test]
fn every_server_answers_as_one_database() {
    let database = graph();
    let (servers, ..) = start(&database, 3);
    for server in &servers {
        for query in QUERIES {
            for threads in [1, 3] {
                let options = QueryOptions {
                    heavy_from: Duration::ZERO,
                    ..QueryOptions::default().with_threads(threads)
                };
                let expected = rows(&database, query, &options).expect("an answer");
                let found = rows(server.database(), query, &options).expect("an answer");
                assert_eq!(found, expected, "{query}");
            }
        }
        for (traversal, expected) in [
            ("g.V().hasLabel('x').count()", database.gremlin("g.V().hasLabel('x').count()")),
            ("g.V().out().out().count()", database.gremlin("g.V().out().out().count()")),
            ("g.E().has('since', 3).count()", database.gremlin("g.E().has('since', 3).count()")),
        ] {
            let found = server.database().gremlin(traversal).expect("an answer");
            let expected = expected.expect("an answer");
            let texts = |results: &vervet::gremlin::GremlinResults| -> Vec<String> {
                results.values().map(ToString::to_string).collect()
            };
            assert_eq!(texts(&found), texts(&expected), "{traversal}");
        }
        let status = server.status(Duration::from_secs(5));
        assert_eq!(status.servers.iter().filter(|server| server.answers.is_ok()).count(), 3, "{status:?}");
        assert!(server.counts().iter().all(|(_, counts)| counts.requests > 0 && counts.failures == 0));
    }
}

/// A property graph: 1,500 vertices with 3 labels, 6 edge labels, and 5 keys of vertices and 2 of edges.
fn property_graph() -> Database {
    let mut text = String::new();
    for number in 0..1_500_u32 {
        text.push_str(&format!("<urn:v{number}> a <urn:T{}> .\n", number % 3));
        for label in 0..6 {
            let next = (number * (label + 2) + label) % 1_500;
            text.push_str(&format!("<urn:v{number}> <urn:vervet:key:to{label}> <urn:v{next}> .\n"));
        }
        for key in 0..5 {
            let value = number * (key + 1) % 97;
            text.push_str(&format!("<urn:v{number}> <urn:vervet:key:key{key}> {value} .\n"));
        }
        text.push_str(&format!(
            "<urn:v{number}> <urn:vervet:key:near> <urn:v{}> ~ <urn:vervet:edge:{number}> .\n\
             <urn:vervet:edge:{number}> <urn:vervet:key:since> {} ; <urn:vervet:key:weight> {}.5 .\n",
            number / 2,
            number % 20,
            number % 7,
        ));
    }
    let database = Database::in_memory();
    database.load_text(Format::TriG, &text).expect("a graph");
    database
}

/// Steps that read elements one by one ask each server for many at once: the number of requests grows with
/// predicates and batches, not with vertices. Each traversal reads 1,500 vertices or more.
#[test]
fn steps_read_in_batches() {
    let database = property_graph();
    let (servers, ..) = start(&database, 4);
    let server = &servers[0];
    let requests = || server.counts().iter().map(|(_, counts)| counts.requests).max().unwrap_or(0);
    let texts = |database: &Database, traversal: &str| {
        let results = database.gremlin(traversal).unwrap_or_else(|error| panic!("{traversal}: {error}"));
        let mut texts: Vec<String> = results.values().map(|value| format!("{value:?}")).collect();
        texts.sort();
        texts
    };
    // Predicates 15 with types, in both directions; a batch has 1,024 elements, the first ones fewer.
    const PREDICATES: u64 = 15;
    for (traversal, kinds) in [
        ("g.V().out().count()", 1),
        ("g.V().both().count()", 1),
        ("g.V().bothE().count()", 1),
        ("g.V().bothE().otherV().count()", 1),
        ("g.V().out().out().count()", 1),
        ("g.V().repeat(__.out()).times(3).count()", 1),
        ("g.V().repeat(__.both()).times(2).dedup().count()", 1),
        ("g.V().values('key1').sum()", 1),
        ("g.V().values().count()", 1),
        ("g.V().valueMap()", 1),
        ("g.V().valueMap(true)", 2),
        ("g.V().elementMap()", 2),
        ("g.V().label().groupCount()", 1),
        ("g.V()", 2),
        ("g.E().valueMap()", 2),
        ("g.E().elementMap()", 3),
        ("g.E()", 4),
        ("g.V().where(__.out().has('key2', 5)).count()", 2),
        ("g.V().filter(__.in().count().is(__.constant(6))).count()", 2),
        ("g.V().group().by(T.label).by(__.bothE().count())", 2),
        ("g.V().out('to1', 'to2').in('to3').values('key0').count()", 3),
        ("g.V().match(__.as('a').out().as('b'), __.as('b').out('to0').as('c')).count()", 3),
        ("g.V().order().by('key3').limit(40).out().values('key4')", 3),
    ] {
        let before = requests();
        let found = texts(server.database(), traversal);
        let sent = requests() - before;
        assert_eq!(found, texts(&database, traversal), "{traversal}");
        let most = 4 * PREDICATES + 30 * kinds;
        assert!(sent <= most, "{traversal}: {sent} requests to a server, at most {most} expected");
    }
    for query in [
        "SELECT (COUNT(*) AS ?n) { ?s ?p ?o . ?o ?q ?r }",
        "SELECT ?p (COUNT(*) AS ?n) { ?s a <urn:T1> ; ?p ?o } GROUP BY ?p",
        "SELECT (COUNT(*) AS ?n) { ?s <urn:vervet:key:to1> ?o . ?x ?q ?o }",
    ] {
        let before = requests();
        let found = rows(server.database(), query, &QueryOptions::default()).expect("an answer");
        let sent = requests() - before;
        assert_eq!(found, rows(&database, query, &QueryOptions::default()).expect("an answer"), "{query}");
        assert!(sent <= 20 * PREDICATES, "{query}: {sent} requests to a server");
    }
}

#[test]
fn changes_are_refused_at_once() {
    let (servers, ..) = start(&graph(), 2);
    let database = servers[0].database();
    let kind = |result: vervet::Result<()>| result.map_err(|error| error.kind());
    let update = database.update("INSERT DATA { <urn:a> <urn:b> <urn:c> }").map(drop);
    assert_eq!(kind(update), Err(ErrorKind::Unsupported));
    let load = database.load_text(Format::NTriples, "<urn:a> <urn:b> <urn:c> .").map(drop);
    assert_eq!(kind(load), Err(ErrorKind::Unsupported));
    assert_eq!(kind(database.gremlin("g.addV('x')").map(drop)), Err(ErrorKind::Unsupported));
    let error = database.update("DELETE WHERE { <urn:v1> ?p ?o }").map(drop).expect_err("read only");
    assert!(error.message().contains("several servers") && error.hint().is_some(), "{error}");
    assert_eq!(rows(database, QUERIES[0], &QueryOptions::default()).expect("unchanged").len(), 2);
}

#[test]
fn a_server_that_ends_and_returns() {
    let database = graph();
    let (mut servers, directories, _folder) = start(&database, 3);
    let query = QUERIES[3];
    let expected = rows(&database, query, &QueryOptions::default()).expect("an answer");
    drop(servers.pop());
    let begun = Instant::now();
    let error = rows(servers[0].database(), query, &QueryOptions::default()).expect_err("a part is missing");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.message().contains("server c"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(10), "a closed port answers at once");
    let status = servers[0].status(Duration::from_secs(5));
    assert_eq!(status.servers.iter().filter(|server| server.answers.is_err()).count(), 1);
    servers.push(open(&directories[2]));
    assert_eq!(rows(servers[0].database(), query, &QueryOptions::default()).expect("an answer"), expected);
}

#[test]
fn faults_are_errors_and_the_next_query_is_right() {
    let database = graph();
    let (servers, ..) = start(&database, 2);
    let query = QUERIES[3];
    let expected = rows(&database, query, &QueryOptions::default()).expect("an answer");
    let faults = servers[0].faults("b").expect("another server");
    let limited = QueryOptions { timeout: Some(Duration::from_millis(700)), ..QueryOptions::default() };
    let plans = [
        FaultPlan { dropped_requests: ALWAYS, ..FaultPlan::default() },
        FaultPlan { dropped_answers: ALWAYS, ..FaultPlan::default() },
        FaultPlan { cut_requests: ALWAYS, ..FaultPlan::default() },
        FaultPlan { cut_answers: ALWAYS, ..FaultPlan::default() },
        FaultPlan { garbage_requests: ALWAYS, seed: 3, ..FaultPlan::default() },
        FaultPlan { garbage_answers: ALWAYS, seed: 4, ..FaultPlan::default() },
    ];
    for plan in plans {
        let context = format!("{plan:?}");
        let begun = Instant::now();
        let is_silent = plan.dropped_requests + plan.dropped_answers > 0;
        faults.set(plan);
        let error = rows(servers[0].database(), query, &limited).expect_err(&context);
        // The deadline, which is before the silence of a server is an error.
        let expected_kind = if is_silent { ErrorKind::Deadline } else { ErrorKind::Unavailable };
        assert_eq!(error.kind(), expected_kind, "{context}: {error}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{context}: the query has a deadline");
        faults.set(FaultPlan::default());
        let found = rows(servers[0].database(), query, &QueryOptions::default());
        assert_eq!(found.expect("an answer"), expected, "after {context}");
    }
    // Slow, but right.
    faults.set(FaultPlan { delay: Duration::from_millis(20), ..FaultPlan::default() });
    let found = rows(servers[0].database(), query, &QueryOptions::default());
    assert_eq!(found.expect("an answer"), expected);
    // Each request ends in time, and all of them, one for each level of the path, do not.
    faults.set(FaultPlan { delay: Duration::from_millis(200), ..FaultPlan::default() });
    let begun = Instant::now();
    let error = rows(servers[0].database(), "SELECT (COUNT(*) AS ?n) { ?a <urn:next>+ ?b }", &limited);
    assert_eq!(error.expect_err("too many requests").kind(), ErrorKind::Deadline);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn servers_of_other_data_are_refused() {
    let database = graph();
    let (first, first_directories, _one) = start(&database, 2);
    drop(first);
    let (second, second_directories, _two) = start(&database, 2);
    drop(second);
    // The data of one build with the certificates and the map of another.
    fs::remove_dir_all(second_directories[1].join("data")).expect("removed");
    fs::rename(first_directories[1].join("data"), second_directories[1].join("data")).expect("moved");
    let refused = |directory: &Path, part: &str| {
        let error = Cluster::open(directory, &DatabaseOptions::default()).expect_err("another cluster");
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
        assert!(error.message().contains(part) && error.hint().is_some(), "{error}");
        assert_eq!(check(directory, &DatabaseOptions::default()).expect_err("as well").kind(), error.kind());
    };
    refused(&second_directories[1], "the data of this server");
    // A map of an earlier version does not name its data; then the other servers refuse it.
    let path = second_directories[1].join(MAP_FILE);
    let map = fs::read_to_string(&path).expect("a map");
    let without: Vec<&str> = map.lines().filter(|line| !line.starts_with("data = ")).collect();
    assert!(without.len() < map.lines().count());
    fs::write(&path, without.join("\n")).expect("written");
    let servers: Vec<Cluster> = second_directories.iter().map(|directory| open(directory)).collect();
    let error = rows(servers[0].database(), QUERIES[3], &QueryOptions::default()).expect_err("other data");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    drop(servers);
    // The certificates of another server, and those of another cluster.
    let copy = |from: &Path, to: &Path| {
        for name in ["authority.pem", "certificate.pem", "key.pem"] {
            fs::copy(from.join(name), to.join(name)).expect("copied");
        }
    };
    let kept = tempfile::tempdir().expect("a folder");
    copy(&second_directories[0], kept.path());
    copy(&second_directories[1], &second_directories[0]);
    refused(&second_directories[0], "the certificate is not that of server \"a\"");
    copy(&first_directories[0], &second_directories[0]);
    refused(&second_directories[0], "the authority of this server");
    copy(kept.path(), &second_directories[0]);
    // A map in which a partition is where its file is not, or nowhere.
    let path = second_directories[0].join(MAP_FILE);
    let map = fs::read_to_string(&path).expect("a map");
    for (from, to, kind) in [
        ("[0, 2,", "[0, 1, 2,", ErrorKind::Corrupt),
        ("[0, 2,", "[0,", ErrorKind::Input),
        ("[0, 2,", "[0, 2, 99,", ErrorKind::Input),
    ] {
        fs::write(&path, map.replacen(from, to, 1)).expect("written");
        let error = Cluster::open(&second_directories[0], &DatabaseOptions::default()).expect_err(to);
        assert_eq!(error.kind(), kind, "{error}");
    }
    fs::write(&path, &map).expect("written");
    // A damaged catalog, and a missing partition.
    let catalog = second_directories[0].join("data/catalog.vvc");
    let mut bytes = fs::read(&catalog).expect("a catalog");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::remove_file(&catalog).expect("removed");
    fs::write(&catalog, &bytes).expect("written");
    let error = Cluster::open(&second_directories[0], &DatabaseOptions::default()).expect_err("damaged");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    fs::remove_file(second_directories[1].join("data/partition-0001.vvs")).expect("removed");
    let error = Cluster::open(&second_directories[1], &DatabaseOptions::default()).expect_err("missing");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

#[test]
fn a_check_reads_every_byte_of_a_server() {
    let (servers, directories, _folder) = start(&graph(), 2);
    drop(servers);
    let found = check(&directories[0], &DatabaseOptions::default()).expect("sound");
    assert_eq!((found.server.as_str(), found.partitions), ("a", (8, 16)), "{found:?}");
    assert!(found.statements > 3_000 && found.size_bytes > 0, "{found:?}");
    let file = directories[0].join("data/partition-0002.vvs");
    let mut bytes = fs::read(&file).expect("a partition");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::remove_file(&file).expect("removed");
    fs::write(&file, &bytes).expect("written");
    let error = check(&directories[0], &DatabaseOptions::default()).expect_err("damaged");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

/// A directory is made as a whole or not at all, and replaces nothing.
#[test]
fn directories_are_made_whole() {
    let database = graph();
    let folder = tempfile::tempdir().expect("a folder");
    let options = InitOptions::on_host(2, 4, "127.0.0.1", (7100, 7200));
    let watch = Watch::new("test");
    let directory = folder.path().join("servers");
    let make = |directory: &Path| init(&database, &options, directory, &watch);
    let names = |path: &Path| -> Vec<String> {
        let entries = fs::read_dir(path).expect("a directory").map_while(Result::ok);
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    // An interrupted call has left this.
    let partial = folder.path().join("servers.partial");
    fs::create_dir_all(partial.join("a/data")).expect("made");
    fs::write(partial.join("a/data/partition-0000.vvs"), "half").expect("written");
    fs::write(partial.join("lock.tmp"), "").expect("written");
    // An empty directory may exist.
    fs::create_dir(&directory).expect("made");
    let made = make(&directory).expect("made");
    assert_eq!(names(folder.path()), ["servers"]);
    assert_eq!(names(&directory), ["a", AUTHORITY_KEY_FILE, "b"]);
    let expected = ["authority.pem", "certificate.pem", "cluster.toml", "data", "key.pem"];
    assert_eq!(names(&made[1]), expected);
    let data =
        ["catalog.vvc", "checkpoint.toml", "dictionary.vvd", "partition-0001.vvs", "partition-0003.vvs"];
    assert_eq!(names(&made[1].join("data")), data);
    #[cfg(unix)]
    for secret in [directory.join(AUTHORITY_KEY_FILE), made[0].join("key.pem")] {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&secret).expect("a file").permissions().mode() & 0o777, 0o600);
    }
    // `init` replaces no directory, and its error says what to do.
    let saved = folder.path().join("saved");
    let stored = Database::open_or_create(&saved).expect("a database");
    stored.load_text(Format::NTriples, "<urn:a> <urn:b> <urn:c> .").expect("loaded");
    drop(stored);
    for (path, part) in [
        (directory.as_path(), "has the servers of a cluster already"),
        (made[0].as_path(), "is the directory of a server"),
        (saved.as_path(), "is a database"),
        (folder.path(), "is not empty"),
    ] {
        let error = make(path).expect_err("it is in use");
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.message().contains(part) && error.hint().is_some(), "{error}");
    }
    // A cancelled call leaves nothing.
    let cancelled = std::sync::atomic::AtomicBool::new(true);
    let other = folder.path().join("other");
    let watch = Watch::new("test").cancelled_by(&cancelled);
    assert!(init(&database, &options, &other, &watch).is_err());
    assert_eq!(names(folder.path()), ["saved", "servers"]);
}

/// With the key of the authority, a server gets a new certificate.
#[test]
fn the_key_of_the_authority_issues_certificates() {
    let (servers, directories, folder) = start(&graph(), 2);
    drop(servers);
    let key = folder.path().join("servers").join(AUTHORITY_KEY_FILE);
    let before = fs::read(directories[1].join("certificate.pem")).expect("a certificate");
    renew_certificate(&directories[1], &key).expect("a new certificate");
    assert_ne!(fs::read(directories[1].join("certificate.pem")).expect("a certificate"), before);
    let servers: Vec<Cluster> = directories.iter().map(|directory| open(directory)).collect();
    for server in &servers {
        rows(server.database(), QUERIES[3], &QueryOptions::default()).expect("an answer");
    }
    // The key of another authority.
    let (_other, _, folder) = start(&graph(), 2);
    let key = folder.path().join("servers").join(AUTHORITY_KEY_FILE);
    let error = renew_certificate(&directories[1], &key).expect_err("another authority");
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
}

/// The state in the middle of a move of partitions by hand: every file is there, but the maps differ.
#[test]
fn maps_that_differ_are_refused() {
    let (servers, directories, _folder) = start(&graph(), 2);
    drop(servers);
    for (from, to) in [(0, 1), (1, 0)] {
        for file in fs::read_dir(directories[from].join("data")).expect("a directory").map_while(Result::ok) {
            let copy = directories[to].join("data").join(file.file_name());
            if !copy.exists() {
                fs::copy(file.path(), copy).expect("copied");
            }
        }
    }
    let path = directories[1].join(MAP_FILE);
    let map = fs::read_to_string(&path).expect("a map");
    let swapped = map.replace("[0, 2,", "[X").replace("[1, 3,", "[0, 3,").replace("[X", "[1, 2,");
    assert_ne!(map, swapped);
    fs::write(&path, swapped).expect("written");
    let servers: Vec<Cluster> = directories.iter().map(|directory| open(directory)).collect();
    for server in &servers {
        let error = rows(server.database(), QUERIES[0], &QueryOptions::default());
        let error = error.and_then(|_| rows(server.database(), QUERIES[3], &QueryOptions::default()));
        assert_eq!(error.expect_err("other maps").kind(), ErrorKind::Unavailable);
    }
}
