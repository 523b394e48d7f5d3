//! Computed variables that one step reads once: inlined, with equal results.

use vervet::{Database, Format, QueryOptions};

fn sample() -> Database {
    let database = Database::in_memory();
    let text = r#"@prefix : <urn:> .
        :a :n 1 ; :t "one" . :b :n 2 ; :t "two"@en . :c :n 3.5 . :d :n "four" ; :t "2020-01-01" . :e :t :a ."#;
    database.load_text(Format::Turtle, text).expect("it loads");
    database
}

fn rows(database: &Database, query: &str) -> Vec<String> {
    let mut bytes = Vec::new();
    database
        .write(query, &QueryOptions::default(), vervet::OutputFormat::Tsv, &mut bytes)
        .unwrap_or_else(|error| panic!("{query}: {error}"));
    let text = String::from_utf8(bytes).expect("UTF-8");
    let mut rows: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
    rows.sort();
    rows
}

fn extends(database: &Database, query: &str) -> usize {
    let plan = database.prepare(query).expect("a query").explain().expect("a plan");
    plan.lines().filter(|step| step.contains("extend") && !step.contains("= ?_")).count()
}

/// The first query reads a computed variable once; the second one says the same without it or in a form that
/// needs it. The number: the computed variables left in the first one.
#[test]
fn values_read_once_are_computed_where_they_are_read() {
    let database = sample();
    for (once, same, left) in [
        (
            "SELECT (SUM(STRLEN(?y)) AS ?s) { ?x <urn:t> ?t BIND(CONCAT(?t, \"!\") AS ?y) }",
            "SELECT (SUM(?l) AS ?s) { SELECT (STRLEN(CONCAT(?t, \"!\")) AS ?l) { ?x <urn:t> ?t } }",
            0,
        ),
        (
            "SELECT ?x { ?x <urn:n> ?n BIND(?n * 2 AS ?y) FILTER(?y > 3) }",
            "SELECT ?x { ?x <urn:n> ?n FILTER(?n * 2 > 3) }",
            0,
        ),
        (
            "SELECT ?x { ?x <urn:n> ?n BIND(?n * 2 AS ?y) BIND(?y + 1 AS ?z) FILTER(!(?z > 3)) }",
            "SELECT ?x { ?x <urn:n> ?n FILTER(!(?n * 2 + 1 > 3)) }",
            0,
        ),
        (
            "SELECT ?x { ?x <urn:n> ?n BIND(?n * 2 AS ?y) FILTER(COALESCE(?y > 3, true)) }",
            "SELECT ?x { ?x <urn:n> ?n FILTER(COALESCE(?n * 2 > 3, true)) }",
            0,
        ),
        // Read twice, or kept, or asked for.
        (
            "SELECT ?x { ?x <urn:n> ?n BIND(?n * 2 AS ?y) FILTER(?y > 3 || ?y < 0) }",
            "SELECT ?x { ?x <urn:n> ?n FILTER(?n * 2 > 3 || ?n * 2 < 0) }",
            1,
        ),
        (
            "SELECT ?x ?y { ?x <urn:n> ?n BIND(?n * 2 AS ?y) FILTER(?y > 3) }",
            "SELECT ?x (?n * 2 AS ?y) { ?x <urn:n> ?n FILTER(?n * 2 > 3) }",
            1,
        ),
        (
            "SELECT ?x { ?x <urn:n> ?n BIND(?n * 2 AS ?y) FILTER(!BOUND(?y)) }",
            "SELECT ?x { ?x <urn:n> ?n FILTER(!isNumeric(?n)) }",
            1,
        ),
        (
            "SELECT ?y (COUNT(*) AS ?c) { ?x <urn:t> ?t BIND(STRLEN(?t) AS ?y) } GROUP BY ?y",
            "SELECT ?y (COUNT(?x) AS ?c) { ?x <urn:t> ?t BIND(STRLEN(?t) AS ?y) } GROUP BY ?y",
            1,
        ),
        (
            "SELECT (COUNT(?y) AS ?c) { ?x <urn:t> ?t BIND(STRLEN(?t) AS ?y) }",
            "SELECT (COUNT(?y) AS ?c) (COUNT(*) AS ?all) { ?x <urn:t> ?t BIND(STRLEN(?t) AS ?y) \
             FILTER(BOUND(?y)) }",
            0,
        ),
        (
            "SELECT (COUNT(DISTINCT *) AS ?c) { ?x <urn:t> ?t BIND(STRLEN(STR(?t)) AS ?y) }",
            "SELECT (COUNT(*) AS ?c) { SELECT DISTINCT * { ?x <urn:t> ?t BIND(STRLEN(STR(?t)) AS ?y) } }",
            1,
        ),
    ] {
        let expected = rows(&database, same);
        let width = |rows: &[String]| rows.first().map_or(0, |row| row.split('\t').count());
        let found = rows(&database, once);
        let columns = width(&found).min(width(&expected));
        let cut = |rows: &[String]| {
            rows.iter()
                .map(|row| row.split('\t').take(columns).map(str::to_owned).collect())
                .collect::<Vec<Vec<String>>>()
        };
        assert_eq!(cut(&found), cut(&expected), "{once}");
        assert!(!found.is_empty(), "{once}");
        assert_eq!(extends(&database, once), left, "{once}");
    }
    // Volatile functions have one value in each row, however often it is read.
    let query = "SELECT ?x { ?x <urn:n> ?n BIND(RAND() AS ?y) FILTER(?y >= 0) }";
    assert_eq!((rows(&database, query).len(), extends(&database, query)), (4, 1));
}

/// The depth of an inlined expression is bounded.
#[test]
fn long_chains_stay_steps() {
    let database = sample();
    let mut query = "SELECT (SUM(?v400) AS ?s) { ?x <urn:n> ?v0 ".to_owned();
    for number in 1..=400 {
        query += &format!("BIND(?v{} + 1 AS ?v{number}) ", number - 1);
    }
    query += "FILTER(isNumeric(?v0)) }";
    assert_eq!(rows(&database, &query), ["\"1206.5\"^^<http://www.w3.org/2001/XMLSchema#decimal>"]);
    let left = extends(&database, &query);
    assert!((20..400).contains(&left), "{left} steps");
}
