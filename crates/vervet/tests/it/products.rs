//! Counts of parts that share no variable: products of their numbers of solutions, exact to any size, against
//! sizes that the graph was made with.

use std::time::{Duration, Instant};
use vervet::{Database, Format, Result};

/// Of each of seven predicates 1,000 statements, from ten subjects to all objects.
fn database() -> Result<Database> {
    let database = Database::in_memory();
    let mut text = String::new();
    for predicate in 0..7 {
        for at in 0..1_000 {
            text += &format!("<urn:s{}> <urn:p{predicate}> <urn:o{at}> .\n", at % 10);
        }
    }
    database.load_text(Format::NTriples, &text)?;
    Ok(database)
}

/// The sorted rows of a query, as texts.
fn rows(database: &Database, query: &str) -> Result<Vec<String>> {
    let solutions = database.select(query)?;
    let names = solutions.variables().to_vec();
    let mut rows = Vec::new();
    for row in solutions.rows() {
        let cells: Vec<String> = (names.iter())
            .map(|name| Ok(row.get(name)?.map_or_else(String::new, |term| term.to_string())))
            .collect::<Result<_>>()?;
        rows.push(cells.join(" "));
    }
    rows.sort();
    Ok(rows)
}

fn integer(number: u128) -> String {
    format!("\"{number}\"^^<http://www.w3.org/2001/XMLSchema#integer>")
}

#[test]
fn products_are_counted_without_their_rows() -> Result<()> {
    let database = database()?;
    let started = Instant::now();
    let part = |at: usize| format!("?a{at} <urn:p{at}> ?b{at} .");
    for count in 2..=7_usize {
        let parts: String = (0..count).map(part).collect();
        let expected = integer(1_000_u128.pow(u32::try_from(count).expect("small")));
        for counted in ["*".to_owned(), "?b0".to_owned(), format!("?a{}", count - 1)] {
            let query = format!("SELECT (COUNT({counted}) AS ?n) {{ {parts} }}");
            assert_eq!(rows(&database, &query)?, std::slice::from_ref(&expected), "{query}");
        }
    }
    // Rows of this many pairs would take hours.
    assert!(started.elapsed() < Duration::from_secs(60));
    Ok(())
}

#[test]
fn products_keep_groups_conditions_and_sets() -> Result<()> {
    let database = database()?;
    let by_subject = |count: u128| -> Vec<String> {
        (0..10).map(|at| format!("<urn:s{at}> {}", integer(count))).collect()
    };
    for (query, expected) in [
        // Each subject has a hundred objects, beside each of the thousand solutions of the other part.
        ("SELECT ?a (COUNT(*) AS ?n) { ?a <urn:p0> ?b . ?c <urn:p1> ?d } GROUP BY ?a", by_subject(100_000)),
        (
            "SELECT ?a (COUNT(DISTINCT ?b) AS ?n) { ?a <urn:p0> ?b . ?c <urn:p1> ?d } GROUP BY ?a",
            by_subject(100),
        ),
        (
            "SELECT (COUNT(*) AS ?n) { ?a <urn:p0> ?b . ?c <urn:p1> ?d FILTER(?c = <urn:s3>) }",
            vec![integer(100_000)],
        ),
        (
            "SELECT (COUNT(*) AS ?n) { ?a <urn:p0> ?b . ?c <urn:p1> ?d FILTER(?a = ?c) }",
            vec![integer(100_000)],
        ),
        (
            "SELECT (COUNT(*) AS ?n) { ?a <urn:p0> ?b . ?c <urn:p1> ?d FILTER(?a != ?c) }",
            vec![integer(900_000)],
        ),
        (
            "SELECT (COUNT(*) AS ?n) { ?a <urn:p0> ?b . ?c <urn:p1> ?d FILTER EXISTS { ?c <urn:p2> <urn:o4> } }",
            vec![integer(100_000)],
        ),
        ("SELECT (COUNT(*) AS ?n) { ?a <urn:p0> ?b . ?c <urn:none> ?d }", vec![integer(0)]),
        (
            "SELECT (COUNT(*) AS ?n) { ?a <urn:p0> ?b OPTIONAL { ?c <urn:p1> ?d . ?e <urn:p2> ?f } }",
            vec![integer(1_000_000_000)],
        ),
        (
            "SELECT (COUNT(*) AS ?n) { SELECT DISTINCT ?a { ?a <urn:p0> ?b . ?c <urn:p1> ?d } }",
            vec![integer(10)],
        ),
        (
            "SELECT (COUNT(*) AS ?n) { { SELECT ?a { ?a <urn:p0> ?b . ?c <urn:p1> ?d } LIMIT 1500 } }",
            vec![integer(1_500)],
        ),
        (
            "SELECT (COUNT(?d) AS ?n) (COUNT(?none) AS ?m) (COUNT(DISTINCT ?c) AS ?k)
             { ?a <urn:p0> ?b . ?c <urn:p1> ?d }",
            vec![format!("{} {} {}", integer(1_000_000), integer(0), integer(10))],
        ),
    ] {
        assert_eq!(rows(&database, query)?, expected, "{query}");
    }
    Ok(())
}
