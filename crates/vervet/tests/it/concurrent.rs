//! Loads concurrent with queries, loads concurrent with loads, and the messages of limits.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vervet::{Answer, Database, Environment, ErrorKind, Format, LoadOptions, QueryOptions, Source};

const BATCHES: usize = 12;
const BATCH: usize = 50;

/// The statements of one load: `BATCH` of them, with the number of the load.
fn batch(load: usize) -> String {
    (0..BATCH).map(|i| format!("<urn:s{load}-{i}> <urn:in> <urn:load{load}> .\n")).collect()
}

#[test]
fn queries_see_whole_versions_while_another_thread_loads() {
    let database = Database::in_memory();
    database.load_text(Format::NTriples, &batch(0)).expect("it loads");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..4 {
            let (database, done) = (database.clone(), &done);
            scope.spawn(move || {
                let text = "SELECT ?load (COUNT(*) AS ?n) WHERE { ?s <urn:in> ?load } GROUP BY ?load";
                let prepared = database.prepare(text).expect("it is a query");
                let mut before = 0;
                while !done.load(Ordering::Acquire) || before < BATCHES {
                    let answer = match reader % 2 {
                        0 => prepared.run(),
                        _ => database.query(text),
                    };
                    let Answer::Solutions(solutions) = answer.expect("it runs") else { panic!("a SELECT") };
                    for row in solutions.rows() {
                        let count = row.integer("n").expect("it is readable");
                        assert_eq!(count, i64::try_from(BATCH).ok(), "part of a load");
                        // Terms are read from the version that the query ran on.
                        assert!(row.text("load").expect("readable").is_some());
                    }
                    assert!(solutions.len() >= before, "a graph that was there is gone");
                    before = solutions.len();
                }
            });
        }
        for load in 1..BATCHES {
            database.load_text(Format::NTriples, &batch(load)).expect("it loads");
        }
        done.store(true, Ordering::Release);
    });
}

fn count(database: &Database) -> u64 {
    database.snapshot().statement_count()
}

#[test]
fn a_second_writer_is_told_who_writes_and_builds_on_what_it_wrote() {
    let environment = Environment::simulated(7);
    let directory = Path::new("/db");
    let open = || Database::open_or_create_in(environment.clone(), directory).expect("it opens");
    let (one, other) = (open(), open());
    one.load_text(Format::NTriples, &batch(0)).expect("it loads");
    // Readers continue on their version, and can open the database at any time.
    assert_eq!((count(&other), count(&open())), (0, 50));
    let writes: [&dyn Fn() -> vervet::Result<()>; 2] =
        [&|| other.load_text(Format::NTriples, &batch(1)).map(drop), &|| {
            other.update("INSERT DATA { <urn:a> <urn:b> <urn:c> }").map(drop)
        }];
    for write in writes {
        let error = write().expect_err("the other handle writes");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
    }
    one.update("INSERT DATA { <urn:a> <urn:b> <urn:c> }").expect("it writes");
    drop(one);
    other.load_text(Format::NTriples, &batch(1)).expect("no concurrent writer");
    assert_eq!((count(&other), count(&open())), (101, 101));
    // A failed load changes nothing.
    other.load_text(Format::NTriples, "no statement").expect_err("it is malformed");
    other.update("DELETE DATA { <urn:a> <urn:b> <urn:c> }").expect("it writes");
    assert_eq!((count(&other), count(&open())), (100, 100));
    open().check().expect("it is sound");
}

#[test]
fn blank_nodes_of_different_loads_never_meet() {
    let database = Database::in_memory();
    // As numbers without separators, 1 and 23 would read as 12 and 3.
    let many = |files: usize| -> Vec<Source> {
        (0..files)
            .map(|file| {
                let text = format!("_:x <urn:p> \"{file}\" .\n");
                Source::bytes(format!("file {file}"), text.into_bytes())
            })
            .collect()
    };
    let options = LoadOptions { format: Some(Format::NTriples), ..LoadOptions::default() };
    let mut expected = 0;
    for files in [1, 24, 1, 8, 40, 112] {
        database.load(many(files), &options).expect("it loads");
        expected += files;
        let blanks = database.select("SELECT DISTINCT ?x { ?x <urn:p> ?file }").expect("it runs");
        assert_eq!(blanks.len(), expected);
    }
}

/// A graph with this number of subjects, each with one text.
fn texts(subjects: usize) -> Database {
    let database = Database::in_memory();
    let text: String =
        (0..subjects).map(|i| format!("<urn:s{i}> <urn:p> \"a text of subject {i}\" .\n")).collect();
    database.load_text(Format::NTriples, &text).expect("it loads");
    database
}

#[test]
fn every_form_has_a_memory_cap_and_a_deadline() {
    let database = texts(3000);
    let capped = QueryOptions { memory_limit_bytes: Some(100_000), ..QueryOptions::default() };
    let late = QueryOptions::default().with_timeout(Duration::ZERO);
    for query in [
        "SELECT * { ?a <urn:p> ?b . ?c <urn:p> ?d }",
        "CONSTRUCT { ?a <urn:q> ?d } { ?a <urn:p> ?b . ?c <urn:p> ?d }",
        "CONSTRUCT { ?a <urn:q> _:b } { ?a <urn:p> ?b . ?c <urn:p> ?d }",
        "DESCRIBE ?a { ?a <urn:p> ?b }",
        "SELECT (CONCAT(?b, ?d) AS ?e) { ?a <urn:p> ?b . ?c <urn:p> ?d }",
        "SELECT * { ?a <urn:p> ?b } ORDER BY CONCAT(?b, ?b)",
        "SELECT ?a (GROUP_CONCAT(?d) AS ?e) { ?a <urn:p> ?b . ?c <urn:p> ?d } GROUP BY ?a",
        "ASK { ?a <urn:p> ?b . BIND(CONCAT(?b, \"x\") AS ?c) FILTER(STRLEN(?c) = 0 || ?c = \"y\") }",
    ] {
        for (threads, heavy_from) in
            [(1, vervet::HEAVY_FROM_DEFAULT), (2, Duration::ZERO), (4, Duration::ZERO)]
        {
            let with_threads =
                |options: &QueryOptions| QueryOptions { heavy_from, ..options.clone().with_threads(threads) };
            let error = database.query_with(query, &with_threads(&capped)).map(|_| ()).expect_err(query);
            assert_eq!(error.kind(), ErrorKind::MemoryLimit, "{threads} threads: {query}");
            let error = database.query_with(query, &with_threads(&late)).map(|_| ()).expect_err(query);
            assert_eq!(error.kind(), ErrorKind::Deadline, "{threads} threads: {query}");
        }
    }
    // A query without results for a long time.
    let query =
        "SELECT * { ?a <urn:p> ?b . ?c <urn:p> ?d . ?e <urn:p> ?f FILTER(?b = ?d && ?d = ?f && ?b = 1) }";
    let start = Instant::now();
    let options = QueryOptions::default().with_timeout(Duration::from_millis(200));
    // A planner that sees the contradiction may answer at once.
    if let Err(error) = database.query_with(query, &options) {
        assert_eq!(error.kind(), ErrorKind::Deadline);
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn one_text_cannot_outgrow_the_cap() {
    let database = texts(20);
    let long = "x".repeat(50_000);
    let query = format!("SELECT (REPLACE(?b, \" \", \"{long}\") AS ?c) {{ ?a <urn:p> ?b }}");
    let options = QueryOptions { memory_limit_bytes: Some(1_000_000), ..QueryOptions::default() };
    let error = database.query_with(&query, &options).map(|_| ()).expect_err("each text takes 200 kB");
    assert_eq!(error.kind(), ErrorKind::MemoryLimit);
}
