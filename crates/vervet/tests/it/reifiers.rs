//! `INSERT` with reifiers: statements become edges, in memory, after a checkpoint and after reopening.

use std::path::Path;
use vervet::{Database, Direction, Environment, ErrorKind, Result};

const PREFIX: &str = "PREFIX : <http://a/> PREFIX v: <urn:vervet:> \n";

fn count(database: &Database, pattern: &str) -> usize {
    database.select(&format!("{PREFIX} SELECT * {{ {pattern} }}")).expect("it runs").len()
}

fn update(database: &Database, text: &str) -> Result<(u64, u64)> {
    let report = database.update(&(PREFIX.to_owned() + text))?;
    Ok((report.inserted, report.removed))
}

fn degree(database: &Database) -> u64 {
    let snapshot = database.snapshot();
    let graph = snapshot.graph();
    let a = graph.vertex("http://a/a").expect("whole").expect("it is there");
    graph.degree(a, "http://a/p", Direction::Out).expect("whole")
}

#[test]
fn a_reifier_makes_an_edge() -> Result<()> {
    let environment = Environment::simulated(3);
    let open = || Database::open_or_create_in(environment.clone(), Path::new("/db"));
    let database = open()?;
    let text = "INSERT DATA { :a :p :b ~ :r {| :k 1 |} . :r :q 2 . :d :says :r . GRAPH :g { :a :p :b ~ :r2 {| :k 3 |} } }";
    assert_eq!(update(&database, text)?, (8, 0));
    // Repeating it adds nothing.
    assert_eq!(update(&database, text)?, (0, 0));
    let check = |database: &Database| {
        assert_eq!(count(database, ":a :p :b ~ ?e {| :k 1 ; :q 2 ; v:id :r |} . :d :says ?e"), 1);
        assert_eq!(count(database, "GRAPH :g { :a :p :b ~ ?e {| :k 3 ; v:id :r2 |} }"), 1);
        assert_eq!(count(database, ":r ?p ?o"), 0);
        assert_eq!(degree(database), 2);
        database.check().expect("sound");
    };
    check(&database);
    database.checkpoint()?;
    check(&database);
    assert_eq!(update(&database, text)?, (0, 0));
    drop(database);
    let database = open()?;
    check(&database);
    // It is removed like any edge.
    assert_eq!(update(&database, "DELETE WHERE { :a :p :b }")?, (0, 5));
    assert_eq!(update(&database, "CLEAR ALL")?, (0, 3));
    Ok(())
}

#[test]
fn blank_reifiers_are_new_for_each_solution() -> Result<()> {
    let database = Database::in_memory();
    update(&database, "INSERT DATA { :a :p :b, :c . :a :n :b }")?;
    let text = "INSERT { :a :p ?o {| :k ?o |} } WHERE { :a :p ?o }";
    // Plain statements become edges; the second time they become parallel edges.
    assert_eq!(update(&database, text)?, (2, 0));
    assert_eq!((degree(&database), count(&database, "?e :k ?o")), (2, 2));
    assert_eq!(update(&database, text)?, (4, 0));
    assert_eq!((degree(&database), count(&database, "?e :k ?o"), count(&database, ":a :p ?o")), (4, 4, 2));
    assert_eq!(update(&database, "INSERT DATA { :a :p :b ~ _:x ~ _:y ~ {| :k :z |} }")?, (4, 0));
    assert_eq!(degree(&database), 7);
    // One label is one edge; an edge about an edge.
    assert_eq!(
        update(
            &database,
            "INSERT DATA { :a :r :b ~ _:x . _:x :k 1 . :c :says _:x ~ _:y {| :k 2 |} . :a :r :b ~ _:x }"
        )?,
        (4, 0)
    );
    assert_eq!(count(&database, ":a :r :b ~ ?e . ?e :k 1 . :c :says ?e ~ ?f . ?f :k 2"), 1);
    assert_eq!(update(&database, "DELETE WHERE { :a :r :b }")?, (0, 4));
    database.checkpoint()?;
    database.check()
}

#[test]
fn variables_may_be_reifiers() -> Result<()> {
    let database = Database::in_memory();
    update(&database, "INSERT DATA { :a :p :b ~ :r . :a :p :c . :a :name :n }")?;
    // An existing edge is reused; an unbound name leaves the statement plain.
    assert_eq!(
        update(&database, "INSERT { ?s :p ?o ~ ?e {| :seen true |} } WHERE { ?s :p ?o ~ ?e }")?,
        (1, 0)
    );
    assert_eq!(update(&database, "INSERT { ?s :q ?o ~ ?n {| :seen true |} } WHERE { ?s :p ?o }")?, (2, 0));
    assert_eq!(
        update(
            &database,
            "INSERT { ?s :t ?o ~ ?n {| :k 1 |} } WHERE { ?s :p ?o OPTIONAL { ?s :name ?n . FILTER(?o = :b) } }"
        )?,
        (4, 0)
    );
    assert_eq!(count(&database, ":a :t :b ~ ?e {| v:id :n ; :k 1 |} . :a :t :c"), 1);
    // A skipped statement has no statements about it.
    assert_eq!(
        update(
            &database,
            "INSERT { ?s :u ?none ~ :w {| :k 1 |} . :w :k 2 } WHERE { ?s :p :b OPTIONAL { ?s :nothing ?none } }"
        )?,
        (0, 0)
    );
    Ok(())
}

#[test]
fn one_name_is_one_statement() -> Result<()> {
    let database = Database::in_memory();
    update(&database, "INSERT DATA { :a :p :b ~ :r {| :k 1 |} }")?;
    let before = database.snapshot().statement_count();
    for (text, says) in [
        ("INSERT DATA { :a :p :c ~ :r }", "two statements"),
        ("INSERT DATA { :x :p :c ~ :s . :x :p :d ~ :s }", "two statements"),
        ("INSERT DATA { :x :p :c ~ _:s . :x :p :d ~ _:s }", "two statements"),
        ("INSERT { ?s :q ?o ~ ?e } WHERE { ?s :p ?o ~ ?e }", "two statements"),
        ("INSERT { ?o :q ?s ~ :one } WHERE { VALUES (?s ?o) { (:a :b) (:b :c) } }", "two statements"),
        ("INSERT DATA { _:x :q :a ~ _:y . _:y :q :a ~ _:x }", "in a circle"),
        ("INSERT DATA { :a :p :c ~ <urn:vervet:edge:7> }", "there is no edge"),
    ] {
        let error = update(&database, text).expect_err(text);
        assert_eq!(error.kind(), ErrorKind::Query, "{text}: {error}");
        assert!(error.message().contains(says), "{text}: {error}");
        assert_eq!(database.snapshot().statement_count(), before, "{text}");
    }
    Ok(())
}
