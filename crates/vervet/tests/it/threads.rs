//! Queries on several threads give the same results as on one: every form, orders, slices, and failing
//! outputs.
//!
//! Queries are cut into the smallest morsels, over a graph that is large enough for several of them.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;
use vervet::{Answer, Database, Format, OutputFormat, QueryOptions};

/// Persons who know each other, with names, ages (some without), and towns.
fn people() -> Database {
    let mut text = String::new();
    for i in 0..600_u32 {
        writeln!(text, "<urn:p{i}> <urn:name> \"name {:03}\" .", i * 7 % 600).expect("a string");
        writeln!(text, "<urn:p{i}> <urn:town> <urn:t{}> .", i % 13).expect("a string");
        if i % 3 > 0 {
            writeln!(text, "<urn:p{i}> <urn:age> {} .", 10 + i % 70).expect("a string");
        }
        for step in [1, 2, 3, 40] {
            writeln!(text, "<urn:p{i}> <urn:knows> <urn:p{}> .", (i + step) % 600).expect("a string");
        }
    }
    let database = Database::in_memory();
    database.load_text(Format::Turtle, &text).expect("it loads");
    database
}

fn on(threads: usize) -> QueryOptions {
    let heavy_from = if threads == 1 { vervet::HEAVY_FROM_DEFAULT } else { Duration::ZERO };
    QueryOptions { heavy_from, ..QueryOptions::default().with_threads(threads) }
}

fn rows(database: &Database, query: &str, threads: usize) -> Vec<String> {
    let mut bytes = Vec::new();
    database.write(query, &on(threads), OutputFormat::Tsv, &mut bytes).expect("it runs");
    String::from_utf8(bytes).expect("TSV is UTF-8").lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn rows_are_the_same() {
    let database = people();
    for query in [
        "SELECT * { ?a <urn:knows> ?b . ?b <urn:knows> ?c . ?a <urn:knows> ?c }",
        "SELECT * { ?a <urn:knows> ?b . ?b <urn:age> ?x FILTER(?x > 40) }",
        "SELECT DISTINCT ?t ?u { ?a <urn:town> ?t . ?a <urn:knows> ?b . ?b <urn:town> ?u }",
        "SELECT DISTINCT ?c { ?a <urn:knows> ?b . ?b <urn:knows> ?c }",
        "SELECT ?t (COUNT(*) AS ?n) (SUM(?x) AS ?s) (AVG(?x) AS ?v) (MIN(?name) AS ?i) (MAX(?x) AS ?j)
           (COUNT(DISTINCT ?x) AS ?d) (SUM(DISTINCT ?x) AS ?e)
         { ?a <urn:town> ?t ; <urn:name> ?name OPTIONAL { ?a <urn:age> ?x } } GROUP BY ?t",
        "SELECT (COUNT(*) AS ?n) (COUNT(?x) AS ?m) { ?a <urn:knows> ?b OPTIONAL { ?b <urn:age> ?x } }",
        "SELECT (COUNT(DISTINCT *) AS ?n) { ?a <urn:knows> ?b . ?b <urn:town> ?t }",
        "SELECT ?a ?x { ?a <urn:knows> ?b MINUS { ?b <urn:age> ?y } OPTIONAL { ?a <urn:age> ?x } }",
        "SELECT * { { ?a <urn:age> ?x } UNION { ?a <urn:town> ?t } ?a <urn:knows> ?b }",
        "SELECT ?a ?n { ?a <urn:knows> ?b { SELECT ?b (COUNT(*) AS ?n) { ?c <urn:knows> ?b } GROUP BY ?b } }",
        "SELECT ?a ?l { ?a <urn:name> ?name BIND(CONCAT(STR(STRLEN(?name)), ?name) AS ?l) }",
        "SELECT ?t (GROUP_CONCAT(?name; SEPARATOR=\"|\") AS ?all)
         { ?a <urn:town> ?t ; <urn:name> ?name } GROUP BY ?t",
        "SELECT * { ?a ?p ?o . ?o <urn:town> ?t }",
        "SELECT (COUNT(?b) AS ?n) { ?a <urn:knows> ?b } HAVING (COUNT(?b) > 1)",
        "SELECT (SUM(?x) AS ?n) { ?a <urn:knows> ?b . ?b <urn:name> ?x }",
    ] {
        let mut one = rows(&database, query, 1);
        assert!(!one.is_empty(), "{query}");
        one.sort();
        for threads in [2, 4] {
            let mut several = rows(&database, query, threads);
            several.sort();
            assert!(several == one, "{threads} threads: {query}\n{several:#?}\n{one:#?}");
        }
    }
}

#[test]
fn an_order_is_kept() {
    let database = people();
    for query in [
        "SELECT ?name ?bame { ?a <urn:knows> ?b . ?a <urn:name> ?name . ?b <urn:name> ?bame }
         ORDER BY ?name DESC(?bame)",
        "SELECT ?name ?bame { ?a <urn:knows> ?b . ?a <urn:name> ?name . ?b <urn:name> ?bame }
         ORDER BY DESC(?name) ?bame OFFSET 5 LIMIT 20",
        "SELECT ?t (COUNT(*) AS ?n) { ?a <urn:town> ?t . ?a <urn:knows> ?b } GROUP BY ?t ORDER BY ?n ?t",
        // The order of equal rows is undefined; the order of their keys is not.
        "SELECT ?x { ?a <urn:knows> ?b OPTIONAL { ?b <urn:age> ?x } } ORDER BY ?x",
        "SELECT ?x { ?a <urn:knows> ?b OPTIONAL { ?b <urn:age> ?x } } ORDER BY ?x LIMIT 900",
    ] {
        let one = rows(&database, query, 1);
        assert!(one.len() > 10, "{query}");
        for threads in [2, 4] {
            assert!(rows(&database, query, threads) == one, "{threads} threads: {query}");
        }
    }
}

/// `GROUP_CONCAT` and `SAMPLE` see the rows in the order of a sub-query.
#[test]
fn aggregates_see_the_order_of_a_sub_query() {
    let database = people();
    let sorted = "SELECT ?t ?name { ?a <urn:town> ?t ; <urn:name> ?name } ORDER BY DESC(?name)";
    let mut names: Vec<Vec<String>> = vec![Vec::new(); 13];
    for i in 0..600_usize {
        names[i % 13].push(format!("name {:03}", i * 7 % 600));
    }
    names.iter_mut().for_each(|names| names.sort_by(|a, b| b.cmp(a)));
    for (query, column) in [
        (format!("SELECT ?t (GROUP_CONCAT(?name) AS ?x) {{ {{ {sorted} }} }} GROUP BY ?t"), "all"),
        (format!("SELECT ?t (GROUP_CONCAT(DISTINCT ?name) AS ?x) {{ {{ {sorted} }} }} GROUP BY ?t"), "all"),
        (format!("SELECT ?t (GROUP_CONCAT(?n) AS ?x) {{ {{ {sorted} }} BIND(?name AS ?n) }} GROUP BY ?t"), "all"),
        (
            format!("SELECT ?t (GROUP_CONCAT(?name) AS ?x) {{ {{ {sorted} }} FILTER(?name != \"\") }} GROUP BY ?t"),
            "all",
        ),
        (
            format!(
                "SELECT ?t (GROUP_CONCAT(?name) AS ?x)
                 {{ ?b <urn:town> ?t ; <urn:name> ?name . {{ SELECT DISTINCT ?t ?name {{ {{ {sorted} }} }} }} }} GROUP BY ?t"
            ),
            "any",
        ),
        (
            format!("SELECT ?t (GROUP_CONCAT(?name) AS ?x) {{ ?b <urn:town> ?t ; <urn:name> ?name . {{ {sorted} }} }} GROUP BY ?t"),
            "all",
        ),
        (format!("SELECT ?t (SAMPLE(?name) AS ?x) {{ {{ {sorted} }} }} GROUP BY ?t"), "first"),
        (
            format!("SELECT ?t (SAMPLE(?name) AS ?x) {{ {{ {sorted} }} ?b <urn:name> ?name . ?b <urn:knows> ?c }} GROUP BY ?t"),
            "first",
        ),
    ] {
        for threads in [1, 2, 4] {
            for row in rows(&database, &query, threads) {
                let (town, found) = row.split_once('\t').expect("two columns");
                let town: usize = town.trim_start_matches("<urn:t").trim_end_matches('>').parse().expect("a number");
                let found = found.trim_matches('"');
                match column {
                    "all" => assert_eq!(found, names[town].join(" "), "{threads} threads: {query}"),
                    "first" => assert_eq!(found, names[town][0], "{threads} threads: {query}"),
                    _ => assert_eq!(found.len(), names[town].join(" ").len(), "{threads} threads: {query}"),
                }
            }
        }
    }
    // Nothing observes these orders, so nothing is sorted.
    for query in [
        format!("SELECT ?t (COUNT(*) AS ?n) {{ {{ {sorted} }} }} GROUP BY ?t"),
        format!("SELECT * {{ ?t ?p ?o {{ {sorted} }} }}"),
        format!("SELECT (GROUP_CONCAT(?o) AS ?n) {{ {{ {sorted} }} OPTIONAL {{ ?s <urn:age> ?o }} }}"),
        format!("SELECT (GROUP_CONCAT(?o) AS ?n) {{ ?s <urn:age> ?o FILTER EXISTS {{ {{ {sorted} }} }} }}"),
    ] {
        let plan = database.explain(&query, &QueryOptions::default()).expect("a plan");
        assert!(!plan.contains("order"), "{query}\n{plan}");
    }
}

/// What follows a sort keeps its order: plans whose first steps run on one thread, and a `DISTINCT` after it.
#[test]
fn distinct_keeps_an_order() {
    let database = people();
    for query in [
        "SELECT DISTINCT ?s ?q ?o { ?s ?q ?o } ORDER BY ?s ?q ?o",
        "SELECT DISTINCT ?s ?o { { ?s <urn:knows> ?o } UNION { ?o <urn:knows> ?s } } ORDER BY ?s ?o",
        "SELECT DISTINCT ?s ?o { { ?s <urn:knows> ?o } UNION { ?o <urn:knows> ?s } } ORDER BY ?s ?o LIMIT 99 OFFSET 1024",
    ] {
        let one = rows(&database, query, 1);
        assert!(one.len() >= 99, "{query}");
        for round in 0..8 {
            assert!(rows(&database, query, 4) == one, "{query}, round {round}");
        }
    }
}

#[test]
fn as_many_rows_as_are_wanted() {
    let database = people();
    for (start, length) in [(0, 1), (3, 1000), (2390, 20), (2400, 5)] {
        let query =
            format!("SELECT * {{ ?a <urn:knows> ?b . ?b <urn:town> ?t }} OFFSET {start} LIMIT {length}");
        for threads in [1, 2, 4] {
            let found = rows(&database, &query, threads);
            assert_eq!(
                found.len(),
                length.min(2400_usize.saturating_sub(start)),
                "{threads} threads: {query}"
            );
        }
    }
}

#[test]
fn other_forms_run_on_several_threads() {
    let database = people();
    let mut first = None;
    for threads in [1, 2, 4] {
        let ask = |query| match database.query_with(query, &on(threads)).expect("it runs") {
            Answer::Boolean(value) => value,
            other => panic!("no truth value: {other:?}"),
        };
        assert!(ask("ASK { ?a <urn:knows> ?b . ?b <urn:knows> ?c . ?a <urn:knows> ?c }"));
        assert!(!ask("ASK { ?a <urn:knows> ?b . ?b <urn:knows> ?a }"));
        let graph = |query| match database.query_with(query, &on(threads)).expect("it runs") {
            Answer::Graph(triples) => triples,
            other => panic!("no graph: {other:?}"),
        };
        let mut near =
            graph("CONSTRUCT { ?t <urn:near> ?u } { ?a <urn:town> ?t ; <urn:knows> ?b . ?b <urn:town> ?u }");
        near.sort_by_key(ToString::to_string);
        assert!(near.len() >= 13 * 3, "each town is near three others: {near:?}");
        assert_eq!(*first.get_or_insert_with(|| near.clone()), near, "{threads} threads");
        let met = graph("CONSTRUCT { [] <urn:met> ?b } { ?a <urn:knows> ?b . ?a <urn:town> <urn:t1> }");
        assert_eq!(met.len(), 47 * 4, "one blank node for each solution");
        let query = "SELECT DISTINCT ?n { ?a <urn:knows> ?b BIND(BNODE(STR(?a)) AS ?n) }";
        assert_eq!(rows(&database, query, threads).len(), 2400, "one blank node for each solution");
    }
}

#[test]
fn plans_say_what_runs_on_several_threads() {
    let database = people();
    let query = "SELECT ?t (COUNT(*) AS ?n) { ?a <urn:knows> ?b . ?b <urn:town> ?t } GROUP BY ?t ORDER BY ?n";
    let plan = database.explain(query, &on(4)).expect("a plan");
    assert!(plan.lines().next().is_some_and(|title| title.ends_with("threads")), "{plan}");
    assert!(plan.lines().any(|line| line.contains("scan") && line.ends_with(" 4")), "{plan}");
    assert!(plan.lines().any(|line| line.contains("order") && line.ends_with(" 1")), "{plan}");
    assert!(!database.explain(query, &on(1)).expect("a plan").contains("threads"));
    let profile = database.prepare(query).expect("a query").profile_with(&on(4)).expect("it runs");
    assert!(profile.lines().any(|line| line.contains("scan") && line.contains(" 600 ")), "{profile}");
}

/// Accepts some bytes, then fails like a pipe whose reader has closed it.
struct Broken(usize);

impl Write for Broken {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_reader_who_goes_away_ends_the_query() {
    let database = people();
    // 5.8 million rows, if it did not end.
    let query = "SELECT * { ?a <urn:knows> ?b . ?c <urn:knows> ?d }";
    for threads in [1, 2, 4] {
        let written = database.write(query, &on(threads), OutputFormat::Tsv, &mut Broken(100_000));
        let error = written.expect_err("the output fails");
        assert_eq!(error.kind(), vervet::ErrorKind::Io, "{threads} threads");
    }
}
