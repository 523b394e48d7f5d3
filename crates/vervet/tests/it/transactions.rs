//! Transactions through the facade: visibility, conflicts, and durability after reopening.

use oxrdf::{GraphNameRef, NamedNodeRef, QuadRef, TripleRef};
use std::path::Path;
use vervet::{
    Database, DatabaseOptions, Direction, Durability, EdgeRange, Environment, ErrorKind, Format, Isolation,
    LoadOptions, Prepared, QueryOptions, Source, TransactionOptions,
};

fn count(database: &Database, pattern: &str) -> usize {
    database.select(&format!("SELECT * {{ {pattern} }}")).expect("it runs").len()
}

fn values(solutions: &vervet::Solutions) -> Vec<i64> {
    let value = |row: vervet::Row<'_>| row.integer("value").expect("bound").expect("a number");
    let mut values: Vec<i64> = solutions.rows().map(value).collect();
    values.sort_unstable();
    values
}

#[test]
fn others_see_changes_when_they_are_committed() {
    let database = Database::in_memory();
    database.update("INSERT DATA { <urn:a> <urn:p> 1 }").expect("it runs");
    let before = database.snapshot();
    let mut transaction = database.begin().expect("it begins");
    let report = transaction.update("INSERT DATA { <urn:a> <urn:p> 2, 1 . <urn:b> <urn:q> <urn:new> }");
    let report = report.expect("it runs");
    assert_eq!((report.inserted, report.removed), (2, 0));
    let all = "SELECT ?value { <urn:a> <urn:p> ?value }";
    assert_eq!(values(&transaction.select(all).expect("it runs")), [1, 2]);
    assert_eq!(values(&database.select(all).expect("it runs")), [1]);
    let savepoint = transaction.savepoint();
    transaction.update("DELETE WHERE { <urn:a> <urn:p> ?value }").expect("it runs");
    assert!(transaction.select(all).expect("it runs").is_empty());
    transaction.roll_back_to(&savepoint).expect("its own");
    // A failed update leaves no changes behind.
    transaction
        .update("INSERT DATA { <urn:a> <urn:p> 3 } ; CREATE GRAPH <urn:g> ; LOAD <urn:x>")
        .expect_err("LOAD");
    assert_eq!(values(&transaction.select(all).expect("it runs")), [1, 2]);
    transaction.commit().expect("no concurrent writer");
    assert_eq!(values(&database.select(all).expect("it runs")), [1, 2]);
    assert_eq!(before.statement_count(), 1);
    assert_eq!(database.snapshot().statement_count(), 3);

    let mut dropped = database.begin().expect("it begins");
    dropped.update("INSERT DATA { <urn:a> <urn:p> 9 }").expect("it runs");
    drop(dropped);
    assert_eq!(values(&database.select(all).expect("it runs")), [1, 2]);
}

#[test]
fn statements_are_added_and_removed_one_by_one() {
    let database = Database::in_memory();
    let name = NamedNodeRef::new_unchecked;
    let triple = TripleRef::new(name("urn:a"), name("urn:p"), name("urn:b"));
    let mut transaction = database.begin().expect("it begins");
    assert!(transaction.insert(triple.in_graph(GraphNameRef::DefaultGraph)).expect("room"));
    assert!(!transaction.insert(triple.in_graph(GraphNameRef::DefaultGraph)).expect("room"));
    assert!(transaction.insert(triple.in_graph(name("urn:g"))).expect("room"));
    assert!(
        !transaction
            .remove(QuadRef::new(name("urn:x"), name("urn:p"), name("urn:b"), name("urn:g")))
            .expect("whole")
    );
    assert!(transaction.remove(triple.in_graph(GraphNameRef::DefaultGraph)).expect("whole"));
    assert!(!transaction.remove(triple.in_graph(GraphNameRef::DefaultGraph)).expect("whole"));
    transaction.commit().expect("no concurrent writer");
    assert_eq!((count(&database, "?s ?p ?o"), count(&database, "GRAPH ?g { ?s ?p ?o }")), (0, 1));
}

/// Write skew: each of two transactions reads both of two values and writes one; one fails if serializable.
#[test]
fn write_skew_is_a_conflict_unless_it_was_asked_for() {
    for (isolation, allowed) in [(Isolation::Serializable, false), (Isolation::Snapshot, true)] {
        let database = Database::in_memory();
        database.update("INSERT DATA { <urn:a> <urn:p> 70 . <urn:b> <urn:p> 80 }").expect("it runs");
        let begin = || {
            let transaction = database.begin_with(TransactionOptions { isolation }).expect("it begins");
            let sum = transaction.select("SELECT (SUM(?x) AS ?value) { ?s <urn:p> ?x }").expect("it runs");
            assert_eq!(values(&sum), [150]);
            transaction
        };
        let (mut one, mut other) = (begin(), begin());
        one.update("DELETE DATA { <urn:a> <urn:p> 70 } ; INSERT DATA { <urn:a> <urn:p> -30 }")
            .expect("it runs");
        other
            .update("DELETE DATA { <urn:b> <urn:p> 80 } ; INSERT DATA { <urn:b> <urn:p> -20 }")
            .expect("it runs");
        one.commit().expect("it is the first");
        match other.commit() {
            Ok(_) => assert!(allowed),
            Err(error) => {
                assert!(!allowed);
                assert_eq!(error.kind(), ErrorKind::Conflict);
                assert!(error.message().contains("<urn:a> <urn:p>"), "{error}");
            }
        }
    }
}

/// Reads without results are reads too.
#[test]
fn absence_is_read() {
    let reads = [
        ("SELECT * { <urn:a> <urn:p> ?x }", true),
        ("SELECT * { <urn:a> <urn:nobody> ?x }", false),
        ("SELECT * { <urn:new> <urn:p> ?x }", true),
        ("SELECT * { ?s <urn:p> <urn:new> }", true),
        ("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", true),
        ("SELECT (COUNT(*) AS ?n) { ?s <urn:p> ?o }", true),
        ("SELECT * { <urn:c> <urn:q> ?x }", false),
        ("ASK { <urn:new> <urn:p> <urn:new> }", true),
        ("SELECT * { GRAPH ?g { <urn:c> <urn:q> ?x } }", false),
    ];
    for (read, collides) in reads {
        let database = Database::in_memory();
        database.update("INSERT DATA { <urn:c> <urn:q> 1 . <urn:a> <urn:q> <urn:b> }").expect("it runs");
        let mut transaction = database.begin().expect("it begins");
        transaction.query(read).expect("it runs");
        transaction.update("INSERT DATA { <urn:mine> <urn:mine> 1 }").expect("it runs");
        database
            .update("INSERT DATA { <urn:a> <urn:p> 1 . <urn:new> <urn:p> <urn:new> }")
            .expect("no concurrent commit");
        let conflict = match transaction.commit() {
            Ok(_) => false,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                true
            }
        };
        assert_eq!(conflict, collides, "{read}");
    }
}

/// A plan made before a commit gives the right answer after it.
#[test]
fn plans_follow_the_graph() {
    let database = Database::in_memory();
    let base: String = (0..200)
        .map(|i| {
            format!("<urn:s{i}> a <urn:T{}> ; <urn:p> <urn:s{}> ; <urn:n> {i} .\n", i % 3, (i * 7) % 200)
        })
        .collect();
    database.load_text(Format::Turtle, &base).expect("it loads");
    let texts = [
        "SELECT ?x { ?x a <urn:T1> ; <urn:p> ?y . ?y a <urn:T2> }",
        "SELECT ?x { ?x a <urn:Unknown> ; <urn:p> ?y }",
        "SELECT ?x { ?x <urn:unheard> ?y }",
        "SELECT ?x { <urn:s4> <urn:p> ?x . ?x a <urn:T1> }",
        "SELECT (COUNT(*) AS ?x) { ?s <urn:p> ?o }",
        "SELECT (COUNT(*) AS ?x) { ?s ?p ?o }",
        "SELECT ?x { ?x <urn:name> ?n FILTER(STRSTARTS(?n, \"a longer name\")) }",
        "SELECT ?x { GRAPH <urn:g> { ?x <urn:p> ?y } }",
    ];
    let prepared: Vec<Prepared> =
        texts.iter().map(|text| database.prepare(text).expect("it parses")).collect();
    let answers = |of: &dyn Fn(usize) -> vervet::Answer| -> Vec<Vec<String>> {
        (0..texts.len())
            .map(|at| {
                let solutions = of(at).into_solutions().expect("a SELECT");
                let cell = |row: vervet::Row<'_>| format!("{:?}", row.get("x"));
                let mut rows: Vec<String> = solutions.rows().map(cell).collect();
                rows.sort_unstable();
                rows
            })
            .collect()
    };
    for (step, update) in [
        "INSERT DATA { <urn:s1> a <urn:T2> }",
        "INSERT DATA { <urn:new> a <urn:T1> ; <urn:p> <urn:s2> . <urn:s4> <urn:p> <urn:new> }",
        "INSERT DATA { <urn:s3> a <urn:Unknown> . <urn:s3> <urn:unheard> 5 }",
        "INSERT DATA { <urn:s5> <urn:name> 'a longer name than others' }",
        "INSERT DATA { <urn:s6> <urn:name> 'a longer name than all' }",
        "INSERT DATA { GRAPH <urn:g> { <urn:s6> <urn:p> <urn:s7> } }",
        "DELETE WHERE { <urn:s4> <urn:p> ?x }",
        "DELETE { ?x a <urn:T2> } INSERT { ?x a <urn:T1> } WHERE { ?x a <urn:T2> }",
        "INSERT DATA { <urn:s8> <urn:p> <urn:s9> }",
    ]
    .iter()
    .enumerate()
    {
        let run = |at: usize| prepared[at].run().expect("it runs");
        answers(&run);
        database.update(update).expect("it runs");
        // The same graph, loaded anew: all of it is newer than the last commit.
        let mut text = Vec::new();
        database.export(Format::NQuads, &mut text).expect("it is written");
        let fresh = Database::in_memory();
        fresh.load_text(Format::NQuads, std::str::from_utf8(&text).expect("UTF-8")).expect("it loads");
        let anew = |at: usize| fresh.query(texts[at]).expect("it runs");
        assert_eq!(answers(&run), answers(&anew), "step {step}");
        let transaction = database.begin().expect("it begins");
        let inside = |at: usize| transaction.run(&prepared[at], &QueryOptions::default()).expect("it runs");
        assert_eq!(answers(&inside), answers(&anew), "step {step}, in a transaction");
        if step == 5 {
            assert!(database.checkpoint().expect("room"));
            assert_eq!(answers(&run), answers(&anew), "merged");
        }
    }
}

#[test]
fn commits_are_there_after_opening_again() {
    for durability in [Durability::Sync, Durability::None] {
        let environment = Environment::simulated(5);
        let directory = Path::new("/db");
        let open = || {
            let environment = environment.clone();
            let options = DatabaseOptions { environment, durability, ..DatabaseOptions::default() };
            Database::open_or_create_with(directory, options).expect("it opens")
        };
        let database = open();
        database
            .update("INSERT DATA { <urn:a> <urn:p> 'some text that is long', <urn:b> }")
            .expect("it runs");
        database.load_text(Format::NTriples, "<urn:x> <urn:p> <urn:y> .\n").expect("it loads");
        database
            .update("INSERT DATA { <urn:b> <urn:p> _:b } ; DELETE DATA { <urn:x> <urn:p> <urn:y> }")
            .expect("it runs");
        // A concurrent reader sees everything that has reached the files.
        if durability == Durability::None {
            database.sync().expect("room");
        }
        assert_eq!(count(&open(), "?s <urn:p> ?o"), 3);
        drop(database);
        let database = open();
        assert_eq!(count(&database, "?s <urn:p> ?o"), 3);
        assert!(database.checkpoint().expect("room"));
        assert!(!database.checkpoint().expect("room"));
        database.update("INSERT DATA { <urn:c> <urn:p> 'another text that is long' }").expect("it runs");
        drop(database);
        let database = open();
        assert_eq!(count(&database, "?s <urn:p> ?o"), 4);
        assert_eq!(count(&database, "<urn:c> <urn:p> 'another text that is long'"), 1);
        database.check().expect("sound");
        let copy = Path::new("/copy");
        assert_eq!(database.backup(copy).expect("room"), 4);
        assert_eq!(database.backup(copy).expect_err("it is there").kind(), ErrorKind::Input);
        let copy = Database::open_in(environment.clone(), copy).expect("a database");
        assert_eq!(count(&copy, "?s <urn:p> ?o"), 4);
    }
}

#[test]
fn a_load_conflicts_with_those_who_have_read() {
    let database = Database::in_memory();
    database.load_text(Format::NTriples, "<urn:a> <urn:p> <urn:b> .\n").expect("it loads");
    let mut transaction = database.begin().expect("it begins");
    transaction.select("SELECT * { <urn:a> <urn:p> ?x }").expect("it runs");
    transaction.update("INSERT DATA { <urn:new> <urn:p> <urn:newer> }").expect("it runs");
    database.load_text(Format::NTriples, "<urn:c> <urn:p> <urn:newest> .\n").expect("it loads");
    assert_eq!(transaction.commit().expect_err("a load came in between").kind(), ErrorKind::Conflict);
    assert_eq!(count(&database, "?s <urn:p> ?o"), 2);
    // A transaction that began before a load cannot use the terms of the load.
    let mut transaction = database.begin().expect("it begins");
    database.load_text(Format::NTriples, "<urn:c> <urn:p> <urn:loaded> .\n").expect("it loads");
    let error = transaction.update("INSERT DATA { <urn:loaded> <urn:p> <urn:c> }").expect_err("it is new");
    assert_eq!(error.kind(), ErrorKind::Conflict);
    database.update("DELETE DATA { <urn:c> <urn:p> <urn:loaded> }").expect("it runs");
    assert!(database.checkpoint().expect("room"));
    // Terms of the failed transaction and of the load have separate numbers.
    database.update("INSERT DATA { <urn:new> <urn:p> <urn:newer> }").expect("it runs");
    assert_eq!(count(&database, "<urn:new> <urn:p> <urn:newer>"), 1);
    assert_eq!(count(&database, "<urn:c> <urn:p> <urn:newest>"), 1);
}

#[test]
fn edges_stay_in_order_while_they_change() {
    let database = Database::in_memory();
    let csv = "~id,~from,~to,~label,since:Int\n1,a,b,knows,5\n2,a,c,knows,3\n3,a,d,knows,9\n";
    let vertices = "~id,~label\na,person\nb,person\nc,person\nd,person\n";
    let options = LoadOptions {
        format: Some(Format::Csv),
        orders: vec![("knows".to_owned(), "since".to_owned())],
        ..LoadOptions::default()
    };
    let sources =
        vec![Source::bytes("vertices.csv", vertices.as_bytes()), Source::bytes("edges.csv", csv.as_bytes())];
    database.load(sources, &options).expect("it loads");
    let newest = || -> Vec<String> {
        let snapshot = database.snapshot();
        let graph = snapshot.graph();
        let a = graph.vertex("a").expect("whole").expect("it was loaded");
        let range = EdgeRange { newest_first: true, limit: 10, ..EdgeRange::default() };
        let edges = graph.edges_in_order(a, "knows", Direction::Out, &range).expect("ordered");
        edges.into_iter().map(|edge| graph.external_id(edge.target).expect("whole")).collect()
    };
    assert_eq!(newest(), ["d", "b", "c"]);
    let key = "PREFIX key: <urn:vervet:key:> PREFIX vertex: <urn:vervet:vertex:>";
    database
        .update(&format!(
            "{key} DELETE {{ ?e key:since ?old }} INSERT {{ ?e key:since \"20\"^^<http://www.w3.org/2001/XMLSchema#int> }}
             WHERE {{ vertex:a key:knows vertex:c ~ ?e . ?e key:since ?old }}"
        ))
        .expect("it runs");
    assert_eq!(newest(), ["c", "d", "b"]);
    assert!(database.checkpoint().expect("room"));
    assert_eq!(newest(), ["c", "d", "b"]);
}
