//! Long queries and large counts: each gives the right answer soon, or fails with the limit that it hits.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write;
use std::time::Duration;
use vervet::{Answer, CancelToken, Database, ErrorKind, Format, QueryOptions};

/// Far more than any of these takes, and far less than before their fixes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The first row of the answer, as texts.
fn row(database: &Database, query: &str) -> vervet::Result<Vec<String>> {
    let options = QueryOptions { timeout: Some(TIMEOUT), ..QueryOptions::default() };
    let Answer::Solutions(solutions) = database.query_with(query, &options)? else { panic!("not a SELECT") };
    let variables = solutions.variables().to_vec();
    let Some(row) = solutions.rows().next() else { return Ok(Vec::new()) };
    variables.iter().map(|name| Ok(row.get(name)?.map(|term| term.to_string()).unwrap_or_default())).collect()
}

fn integer(value: &str) -> String {
    format!("\"{value}\"^^<http://www.w3.org/2001/XMLSchema#integer>")
}

/// Finding "query B3" of the reviews: `EXISTS` around a pattern with a variable predicate, whose batches end
/// exactly when the pattern's buffer is full.
#[test]
fn b3_exists_with_variable_predicate_ends() {
    let database = Database::in_memory();
    let mut text = String::new();
    for number in 0..2_100 {
        writeln!(text, "<urn:s{number}> <urn:p> \"v\" .").unwrap();
    }
    database.load_text(Format::NTriples, &text).unwrap();
    let query = "SELECT ?e (COUNT(*) AS ?n) { ?s <urn:p> ?o BIND(EXISTS { ?s ?q ?z } AS ?e) } GROUP BY ?e";
    let found = row(&database, query).unwrap();
    assert_eq!(found[1], integer("2100"));
}

/// Finding "query B9" of the reviews: a count beyond 64 bits is exact and a number to later expressions; a
/// count beyond 127 bits is an error.
#[test]
fn b9_large_counts_are_exact() {
    let database = Database::in_memory();
    let mut text = String::new();
    for number in 0..10_000 {
        writeln!(text, "<urn:h> <urn:p> <urn:o{number}> .").unwrap();
    }
    writeln!(text, "<urn:h> <urn:few> <urn:a>, <urn:b> .").unwrap();
    database.load_text(Format::Turtle, &text).unwrap();
    let hundred = integer("100000000000000000000");
    let five = "<urn:h> <urn:p> ?a, ?b, ?c, ?d, ?e";
    let count = format!("SELECT (COUNT(*) AS ?n) {{ {five} }}");
    assert_eq!(row(&database, &count).unwrap(), std::slice::from_ref(&hundred));
    let by_key = format!("SELECT (COUNT(*) AS ?n) {{ <urn:h> <urn:few> ?k . {five} }} GROUP BY ?k");
    assert_eq!(row(&database, &by_key).unwrap(), std::slice::from_ref(&hundred));
    let twice = format!("{count} HAVING (COUNT(*) * 2 > 150000000000000000000)");
    assert_eq!(row(&database, &twice).unwrap(), std::slice::from_ref(&hundred));
    assert!(row(&database, &format!("{count} HAVING (COUNT(*) < 5)")).unwrap().is_empty());
    // Sums, and parts of a join with multiplicities on both sides.
    let sum = format!("SELECT (SUM(?x) AS ?n) {{ VALUES ?x {{ 3 }} {five} }}");
    assert_eq!(row(&database, &sum).unwrap(), [integer("300000000000000000000")]);
    let parts = "SELECT (COUNT(*) AS ?n) { { SELECT ?h { ?h <urn:p> ?a, ?b, ?c } } { SELECT ?h { ?h <urn:p> ?d, ?e } } }";
    assert_eq!(row(&database, parts).unwrap(), [hundred]);
    // `OFFSET` and `LIMIT` count single solutions, whatever the multiplicity of a row.
    let slice = "SELECT (COUNT(*) AS ?n) { SELECT ?h { ?h <urn:p> ?a, ?b, ?c, ?d, ?e } OFFSET 18446744073709551000 LIMIT 7 }";
    assert_eq!(row(&database, slice).unwrap(), [integer("7")]);
    let ten = "<urn:h> <urn:p> ?a, ?b, ?c, ?d, ?e, ?f, ?g, ?i, ?j, ?k";
    let error = row(&database, &format!("SELECT (COUNT(*) AS ?n) {{ {ten} }}")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

/// Findings "query B4" and "query B5" of the reviews, and similar loops: planning takes time at most in
/// proportion to the length of the query.
#[test]
fn b4_b5_long_queries_are_planned_soon() {
    let database = Database::in_memory();
    database.load_text(Format::NTriples, "<urn:s> <urn:p> <urn:o> .\n<urn:o> <urn:p> <urn:s> .\n").unwrap();
    let many = |count: usize, part: &dyn Fn(usize) -> String| (0..count).map(part).collect::<String>();
    let path = |closure: &str| {
        let steps: Vec<&str> = vec!["<urn:p>?"; 900];
        format!("SELECT (COUNT(*) AS ?n) {{ <urn:s> ({}){closure} ?y }}", steps.join("/"))
    };
    let two = integer("2");
    assert_eq!(row(&database, &path("*")).unwrap(), std::slice::from_ref(&two), "a closure of a long path");
    assert_eq!(row(&database, &path("+")).unwrap(), std::slice::from_ref(&two), "a closure of a long path");
    let either = vec!["<urn:p>"; 900].join("|");
    let either = format!("SELECT (COUNT(*) AS ?n) {{ <urn:s> ({either})* ?y }}");
    assert_eq!(row(&database, &either).unwrap(), std::slice::from_ref(&two), "an alternative of many");
    let unknown = many(100_000, &|number| format!("<urn:{number}> "));
    let values = format!("SELECT (COUNT(*) AS ?n) {{ VALUES ?x {{ {unknown} }} }}");
    assert_eq!(row(&database, &values).unwrap(), [integer("100000")], "VALUES");
    let listed = unknown.trim_end().replace(' ', ", ");
    let listed = format!("SELECT (COUNT(*) AS ?n) {{ ?s <urn:p> ?o FILTER(?o IN ({listed}, <urn:o>)) }}");
    assert_eq!(row(&database, &listed).unwrap(), [integer("1")], "IN");
    let groups = many(500, &|_| "{ ?s <urn:p> ?o } ".to_owned());
    assert_eq!(
        row(&database, &format!("SELECT (COUNT(*) AS ?n) {{ {groups} }}")).unwrap(),
        std::slice::from_ref(&two),
        "groups"
    );
    let tables = many(500, &|number| format!("VALUES ?x{number} {{ 1 }} "));
    assert_eq!(
        row(&database, &format!("SELECT (COUNT(*) AS ?n) {{ {tables} }}")).unwrap(),
        [integer("1")],
        "tables"
    );
    let filters = many(20_000, &|number| format!("FILTER(?o != {number}) FILTER(STR(?o) > \"{number}\") "));
    assert_eq!(
        row(&database, &format!("SELECT (COUNT(*) AS ?n) {{ ?s <urn:p> ?o {filters} }}")).unwrap(),
        std::slice::from_ref(&two),
        "filters"
    );
    let union = vec!["{ ?s <urn:p> ?o }"; 3_000].join(" UNION ");
    assert_eq!(
        row(&database, &format!("SELECT (COUNT(*) AS ?n) {{ {union} }}")).unwrap(),
        [integer("6000")],
        "UNION"
    );
    let optional = many(300, &|number| format!("OPTIONAL {{ ?s <urn:q{number}> ?o{number} }} "));
    assert_eq!(
        row(&database, &format!("SELECT (COUNT(*) AS ?n) {{ ?s <urn:p> ?o {optional} }}")).unwrap(),
        [two],
        "OPTIONAL"
    );
    let from = many(20_000, &|number| format!("FROM <urn:g{number}> "));
    assert_eq!(
        row(&database, &format!("SELECT (COUNT(*) AS ?n) {from} {{ ?s <urn:p> ?o }}")).unwrap(),
        [integer("0")],
        "FROM"
    );
}

/// Each operator of a plan uses stack while it processes a batch, so the number of operators is limited: many
/// more patterns in one query overflowed the stack.
#[test]
fn too_many_steps_are_an_error() {
    let database = Database::in_memory();
    database.load_text(Format::NTriples, "<urn:s> <urn:p> <urn:o> .\n").unwrap();
    let query: String = (0..3_000).map(|number| format!("?s <urn:p> ?x{number} . ")).collect();
    let error = row(&database, &format!("SELECT (COUNT(*) AS ?n) {{ {query} }}")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

/// Finding "query B4" of the reviews: planning obeys cancellation, the deadline and the memory cap.
#[test]
fn b4_planning_sees_limits() {
    let database = Database::in_memory();
    database.load_text(Format::NTriples, "<urn:s> <urn:p> <urn:o> .").unwrap();
    let values: String = (0..30_000).map(|number| format!("<urn:{number}> ")).collect();
    let query = format!("SELECT * {{ VALUES ?x {{ {values} }} ?x <urn:p> ?y }}");
    let kind = |options: QueryOptions| database.query_with(&query, &options).unwrap_err().kind();
    let cancel = CancelToken::new();
    cancel.cancel();
    assert_eq!(kind(QueryOptions { cancel: Some(cancel), ..QueryOptions::default() }), ErrorKind::Cancelled);
    let late = QueryOptions { timeout: Some(Duration::ZERO), ..QueryOptions::default() };
    assert_eq!(kind(late), ErrorKind::Deadline);
    let small = QueryOptions { memory_limit_bytes: Some(1 << 20), ..QueryOptions::default() };
    assert_eq!(kind(small), ErrorKind::MemoryLimit);
}
