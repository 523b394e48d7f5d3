//! `CONSTRUCT` and `DESCRIBE`: graphs are sets, and stream.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use vervet::{Answer, Database, ErrorKind, Format, OutputFormat, QueryOptions};

/// A hundred people who know each other, in two named graphs and the default graph.
fn network() -> Database {
    let mut text = String::new();
    for person in 0..100 {
        for step in [1, 2, 7] {
            let other = (person + step) % 100;
            let _ = writeln!(text, "<urn:p{person}> <urn:knows> <urn:p{other}> .");
            let _ = writeln!(text, "<urn:p{person}> <urn:knows> <urn:p{other}> <urn:g{}> .", person % 2);
        }
        let _ = writeln!(text, "<urn:p{person}> <urn:age> \"{}\" .", person % 10);
        let _ = writeln!(text, "<urn:p{person}> <urn:lives> _:home{} .", person % 5);
        let _ = writeln!(text, "_:home{} <urn:in> <urn:town> .", person % 5);
    }
    let database = Database::in_memory();
    database.load_text(Format::NQuads, &text).expect("it loads");
    database
}

fn lines(database: &Database, query: &str, options: &QueryOptions) -> Vec<String> {
    let mut bytes = Vec::new();
    let written = database.write(query, options, OutputFormat::NTriples, &mut bytes).expect("it runs");
    let lines: Vec<String> = String::from_utf8(bytes).expect("UTF-8").lines().map(str::to_owned).collect();
    assert_eq!(written.rows, lines.len() as u64, "{query}");
    lines
}

/// The statements that a `SELECT` of the same three columns makes.
fn expected(database: &Database, columns: [&str; 3], pattern: &str) -> BTreeSet<String> {
    let solutions = database.select(&format!("SELECT * {pattern}")).expect("it runs");
    let mut statements = BTreeSet::new();
    for row in solutions.rows() {
        let term = |column: &str| match column.strip_prefix('?') {
            Some(name) => row.get(name).expect("readable").map(|term| term.to_string()),
            None => Some(column.to_owned()),
        };
        let [Some(subject), Some(predicate), Some(object)] = columns.map(term) else { continue };
        if !subject.starts_with('"') && predicate.starts_with('<') {
            statements.insert(format!("{subject} {predicate} {object} ."));
        }
    }
    statements
}

#[test]
fn graphs_have_each_statement_once() {
    let database = network();
    for (columns, pattern) in [
        (["?s", "?p", "?o"], "{ ?s ?p ?o }"),
        (["?o", "?p", "?s"], "{ ?s ?p ?o }"),
        (["?s", "?o", "?p"], "{ ?s ?p ?o }"),
        (["?s", "?p", "?o"], "{ GRAPH ?g { ?s ?p ?o } }"),
        (["?s", "?p", "?o"], "{ { ?s ?p ?o } UNION { ?s ?p ?o } UNION { GRAPH <urn:g1> { ?s ?p ?o } } }"),
        (["?s", "<urn:met>", "?o"], "{ ?s <urn:knows> ?x . ?x <urn:knows> ?o }"),
        (["?s", "<urn:met>", "?x"], "{ ?s <urn:knows> ?x . ?x <urn:knows> ?o }"),
        (["?s", "<urn:met>", "?o"], "{ ?s <urn:knows> ?o FILTER(STR(?s) < STR(?o)) }"),
        (["?s", "<urn:met>", "?o"], "{ SELECT ?s ?o { ?s <urn:knows> ?x . ?x <urn:knows> ?o } }"),
        (["?s", "<urn:met>", "?o"], "{ SELECT DISTINCT ?s ?o { ?s <urn:knows> ?x . ?x <urn:knows> ?o } }"),
        (["?s", "<urn:met>", "?o"], "{ SELECT DISTINCT ?s ?x ?o { ?s <urn:knows> ?x . ?x <urn:knows> ?o } }"),
        (["?s", "<urn:age>", "?a"], "{ ?s <urn:knows> ?o OPTIONAL { ?o <urn:age> ?a FILTER(?a != \"3\") } }"),
        (["?s", "<urn:met>", "?o"], "{ ?s <urn:knows>+ ?o }"),
        (["?s", "<urn:met>", "?o"], "{ ?s <urn:knows>/<urn:knows> ?o }"),
        (["<urn:all>", "<urn:has>", "?a"], "{ ?s <urn:age> ?a }"),
        (["?s", "<urn:at>", "?h"], "{ ?s <urn:lives> ?h . ?h <urn:in> ?t }"),
        (["?s", "<urn:text>", "?t"], "{ ?s <urn:age> ?a BIND(CONCAT(?a, \"-\") AS ?t) }"),
        (["?s", "<urn:v>", "?v"], "{ VALUES (?s ?v) { (<urn:a> 1) (<urn:a> 1) (<urn:a> UNDEF) (2 3) } }"),
    ] {
        let [s, p, o] = columns;
        let query = format!("CONSTRUCT {{ {s} {p} {o} }} {pattern}");
        let expected = expected(&database, columns, pattern);
        for threads in [1, 2] {
            let options = QueryOptions { threads: Some(threads), ..QueryOptions::default() };
            let lines = lines(&database, &query, &options);
            let set: BTreeSet<String> = lines.iter().cloned().collect();
            assert_eq!(set.len(), lines.len(), "each statement once: {query}");
            assert_eq!(set, expected, "{query}");
        }
        let Answer::Graph(held) = database.query(&query).expect("it runs") else { panic!("a graph") };
        let held: Vec<String> = held.iter().map(|triple| format!("{triple} .")).collect();
        assert_eq!(held.len(), expected.len(), "{query}");
        assert_eq!(held.into_iter().collect::<BTreeSet<String>>(), expected, "{query}");
    }
}

#[test]
fn templates_of_several_statements_mix_terms_and_blank_nodes() {
    let database = network();
    let query = "CONSTRUCT { ?s <urn:met> ?o . ?o <urn:met> ?s . _:m <urn:who> ?s ; <urn:who> ?o . \
                 ?s <urn:is> <urn:p1> . ?s <urn:says> <<( ?s <urn:knows> ?o )>> } { ?s <urn:knows> ?o }";
    let lines = lines(&database, query, &QueryOptions::default());
    let set: BTreeSet<&String> = lines.iter().collect();
    assert_eq!(set.len(), lines.len());
    let count = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
    // 300 pairs, no two of which are the inverse of each other.
    assert_eq!(
        [count("<urn:met>"), count("<urn:who>"), count("<urn:is>"), count("<urn:says>")],
        [600, 600, 100, 300]
    );
}

#[test]
fn a_graph_whose_statements_cannot_repeat_streams_in_little_memory() {
    let database = Database::in_memory();
    let mut text = String::new();
    for number in 0..60_000 {
        let _ = writeln!(text, "<urn:s{}> <urn:p{}> <urn:o{number}> .", number / 3, number % 3);
    }
    database.load_text(Format::NTriples, &text).expect("it loads");
    let options = QueryOptions { memory_limit_bytes: Some(1 << 20), ..QueryOptions::default() };
    let copy = "CONSTRUCT { ?s ?p ?o } { ?s ?p ?o }";
    assert_eq!(lines(&database, copy, &options).len(), 60_000);
    let error = database.query_with(copy, &options).expect_err("a list of all texts");
    assert_eq!(error.kind(), ErrorKind::MemoryLimit);
    // The set of all statements counts.
    let pairs = "CONSTRUCT { ?s <urn:x> ?o . ?o <urn:y> ?s } { ?s ?p ?o }";
    let error = database
        .write(pairs, &options, OutputFormat::NTriples, &mut Vec::new())
        .expect_err("a set of 120,000 statements");
    assert_eq!(error.kind(), ErrorKind::MemoryLimit);
    assert_eq!(lines(&database, pairs, &QueryOptions::default()).len(), 120_000);
    // The resources count, their statements do not.
    let described = "DESCRIBE ?s { ?s <urn:p0> ?o }";
    let error = database.write(described, &options, OutputFormat::NTriples, &mut Vec::new());
    assert_eq!(lines(&database, described, &QueryOptions::default()).len(), 60_000);
    let one_in_ten = "DESCRIBE ?s { ?s <urn:p0> ?o FILTER(STRENDS(STR(?o), \"0\")) }";
    assert_eq!(lines(&database, one_in_ten, &options).len(), 6_000);
    assert!(error.is_ok_and(|written| written.rows == 60_000), "20,000 resources of 32 bytes");
}

#[test]
fn turtle_declares_the_prefixes_that_a_small_graph_uses() {
    let database = network();
    let turtle = |query: &str| {
        let mut bytes = Vec::new();
        database.write(query, &QueryOptions::default(), OutputFormat::Turtle, &mut bytes).expect("it runs");
        String::from_utf8(bytes).expect("UTF-8")
    };
    let foaf = "CONSTRUCT { ?s <http://xmlns.com/foaf/0.1/age> ?a } { ?s <urn:age> ?a }";
    let text = turtle(foaf);
    assert!(text.contains("@prefix foaf:") && !text.contains("@prefix skos:"), "{text}");
    let large = "CONSTRUCT { ?s ?a ?o } { ?s <urn:knows> ?o VALUES ?a { <urn:a> <urn:b> <urn:c> <urn:d> } }";
    let text = turtle(large);
    assert!(text.contains("@prefix foaf:") && text.contains("@prefix skos:"));
    let copy = Database::in_memory();
    copy.load_text(Format::Turtle, &text).expect("it loads again");
    assert_eq!(lines(&copy, "CONSTRUCT { ?s ?p ?o } { ?s ?p ?o }", &QueryOptions::default()).len(), 1_200);
}
