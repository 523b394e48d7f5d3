//! A volatile expression has one value for each solution of the part that it is in, whatever that part is
//! joined with afterwards.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;
use vervet::{Database, Format, QueryOptions};

const DATA: &str = "
    <urn:a> <urn:q> <urn:h> . <urn:a2> <urn:q> <urn:h2> .
    <urn:h> <urn:p> <urn:o1>, <urn:o2>, <urn:o3> .
    <urn:o1> <urn:r> <urn:z>, <urn:z2> . <urn:o2> <urn:r> <urn:z> .
";

/// Pattern, number of distinct values of `?u`, number of solutions; `CALL` is the volatile expression.
const CASES: &[(&str, u64, u64)] = &[
    ("{ SELECT ?b (CALL AS ?u) { ?a <urn:q> ?b } } ?b <urn:p> ?c", 1, 3),
    ("?a <urn:q> ?b BIND(CALL AS ?u) ?b <urn:p> ?c", 1, 3),
    ("?b <urn:p> ?c . { ?a <urn:q> ?b BIND(CALL AS ?u) }", 1, 3),
    ("{ SELECT (CALL AS ?u) {} } ?b <urn:p> ?c", 1, 3),
    ("{ SELECT ?b (CALL AS ?u) { ?a <urn:q> ?b } ORDER BY ?b } ?b <urn:p> ?c", 1, 3),
    ("?a <urn:q> ?b BIND(CALL AS ?x) BIND(STR(?x) AS ?u) ?b <urn:p> ?c", 1, 3),
    ("{ ?a <urn:q> ?b BIND(CALL AS ?u) FILTER(BOUND(?u)) } ?b <urn:p> ?c", 1, 3),
    ("?a <urn:q> ?b BIND(CALL AS ?u) { ?b <urn:p> ?c } UNION { ?b <urn:p> ?d }", 1, 6),
    ("?a <urn:q> ?b BIND(CALL AS ?u) ?b (<urn:p>|<urn:zz>)* ?c", 2, 5),
    ("{ SELECT (CALL AS ?u) (COUNT(*) AS ?k) { ?a <urn:q> ?b } GROUP BY ?b } ?x <urn:p> ?y", 2, 6),
    ("?a <urn:q> ?b BIND(CALL AS ?u) OPTIONAL { ?b <urn:p> ?c }", 2, 4),
    ("?b <urn:p> ?c OPTIONAL { ?a <urn:q> ?b BIND(CALL AS ?u) }", 1, 3),
    (
        "?b <urn:p> ?c OPTIONAL { ?c <urn:r> ?d { SELECT ?d (CALL AS ?u) { ?e <urn:r> ?d } GROUP BY ?d } }",
        2,
        4,
    ),
    ("?b <urn:p> ?c { ?a <urn:q> ?b BIND(CALL AS ?u) } UNION { ?b <urn:p> <urn:o1> BIND(CALL AS ?u) }", 2, 6),
    ("?b <urn:p> ?c BIND(CALL AS ?u) ?c <urn:r> ?d . ?a <urn:q> ?b", 2, 3),
    ("VALUES ?w { 1 2 } { ?a <urn:q> ?b BIND(CALL AS ?u) } ?b <urn:p> ?c", 1, 6),
    ("?b <urn:p> ?c BIND(CALL AS ?u)", 3, 3),
    ("?x <urn:q> ?y . ?b <urn:p> ?c BIND(CALL AS ?u)", 6, 6),
];

fn database() -> Database {
    let database = Database::in_memory();
    database.load_text(Format::Turtle, DATA).unwrap();
    database
}

/// As planned, in order, and on several threads.
fn configurations() -> [QueryOptions; 3] {
    let plain = QueryOptions { optimize: false, ..QueryOptions::default() };
    let parallel = QueryOptions { heavy_from: Duration::ZERO, ..QueryOptions::default().with_threads(3) };
    [QueryOptions::default(), plain, parallel]
}

#[test]
fn each_solution_of_the_part_has_one_value() {
    let database = database();
    for call in ["UUID()", "STRUUID()", "RAND()", "BNODE()"] {
        for &(pattern, values, rows) in CASES {
            if call == "BNODE()" && pattern.contains("STR(?x)") {
                continue;
            }
            let pattern = pattern.replace("CALL", call);
            let query = format!("SELECT (COUNT(DISTINCT ?u) AS ?n) (COUNT(*) AS ?m) {{ {pattern} }}");
            for options in configurations() {
                let answer = database.query_with(&query, &options).unwrap();
                let solutions = answer.into_solutions().unwrap();
                let row = solutions.rows().next().unwrap();
                let number = |name: &str| row.text(name).unwrap().unwrap().parse::<u64>().unwrap();
                assert_eq!((number("n"), number("m")), (values, rows), "{query}");
            }
        }
    }
}

/// One order with three items, not three orders.
#[test]
fn an_update_stores_one_value_for_all() {
    let database = database();
    database
        .update(
            "INSERT { ?u <urn:order> ?b ; <urn:item> ?c } \
             WHERE { ?a <urn:q> ?b BIND(UUID() AS ?u) ?b <urn:p> ?c }",
        )
        .unwrap();
    for (predicate, statements) in [("order", 1), ("item", 3)] {
        let solutions = database.select(&format!("SELECT * {{ ?s <urn:{predicate}> ?o }}")).unwrap();
        assert_eq!(solutions.len(), statements, "{predicate}");
    }
}

/// A condition is tested for each solution of its part: the items of a kept part are all kept.
#[test]
fn conditions_are_tested_once_for_each_solution() {
    let database = Database::in_memory();
    let text: String = (0..200)
        .map(|i| format!("<urn:a{i}> <urn:q> <urn:h{i}> . <urn:h{i}> <urn:p> <urn:x>, <urn:y>, <urn:z> .\n"))
        .collect();
    database.load_text(Format::Turtle, &text).unwrap();
    for pattern in [
        "{ ?a <urn:q> ?b FILTER(RAND() < 0.5) } ?b <urn:p> ?c",
        "?b <urn:p> ?c . { ?a <urn:q> ?b FILTER(RAND() < 0.5) }",
    ] {
        let query = format!("SELECT ?b (COUNT(*) AS ?n) {{ {pattern} }} GROUP BY ?b");
        let solutions = database.select(&query).unwrap();
        assert!((40..160).contains(&solutions.len()), "{} of 200: {query}", solutions.len());
        let whole = solutions.rows().all(|row| row.text("n").unwrap().as_deref() == Some("3"));
        assert!(whole, "{query}");
    }
    // `EXISTS` is evaluated for each solution.
    let query = "SELECT ?a { ?a <urn:q> ?b FILTER EXISTS { ?x <urn:p> <urn:x> FILTER(RAND() < 0.003) } }";
    let kept = database.select(query).unwrap().len();
    assert!((30..170).contains(&kept), "{kept} of 200");
}
