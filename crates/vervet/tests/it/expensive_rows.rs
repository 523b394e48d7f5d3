//! Rows, patterns and variables that take long each: a timeout, a cancellation and the memory cap stop a
//! query within a batch. Each query took 4 to 120 s before, at the same timeout; the bound is generous, since
//! tests share the machine.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write;
use std::time::{Duration, Instant};
use vervet::gremlin::GremlinOptions;
use vervet::{CancelToken, Database, ErrorKind, Format, QueryOptions};

const TIMEOUT: Duration = Duration::from_millis(300);

/// Far more than the timeout, and far less than each query took.
const STOPPED: Duration = Duration::from_secs(5);

const ROWS: usize = 1_000;

/// One statement for each row.
fn database(object: impl Fn(usize) -> String) -> Database {
    let database = Database::in_memory();
    let mut text = String::new();
    for row in 0..ROWS {
        writeln!(text, "<urn:s{row}> <urn:p> {} .", object(row)).unwrap();
    }
    database.load_text(Format::Turtle, &text).unwrap();
    database
}

/// The kind of error of a query (`None`: it has an answer), and the time that it took.
fn run(database: &Database, query: &str, options: QueryOptions) -> (Option<ErrorKind>, Duration) {
    // Plans are cached by text.
    let started = Instant::now();
    let result = database.query_with(query, &options);
    (result.err().map(|error| error.kind()), started.elapsed())
}

fn late() -> QueryOptions {
    QueryOptions { timeout: Some(TIMEOUT), ..QueryOptions::default() }
}

fn check_late(database: &Database, query: &str) {
    for threads in [1, 2] {
        let options = QueryOptions { threads: Some(threads), heavy_from: Duration::ZERO, ..late() };
        let (kind, time) = run(database, query, options);
        let start: String = query.chars().take(100).collect();
        assert_eq!(kind, Some(ErrorKind::Deadline), "{start} on {threads} threads");
        assert!(time < STOPPED, "{start} took {time:?} on {threads} threads");
    }
}

/// A number of 9,004 digits.
fn wide(row: usize) -> String {
    format!("{}{row:04}", "7301".repeat(2_250))
}

/// 17 s: 1,000 numbers of 9,004 digits, divided 40 times.
#[test]
fn divisions_of_wide_numbers_stop() {
    let database = database(wide);
    let quotient = format!("?x{}", " / 3.0".repeat(40));
    check_late(&database, &format!("SELECT (COUNT(?y) AS ?n) {{ ?s <urn:p> ?x BIND({quotient} AS ?y) }}"));
    check_late(&database, &format!("SELECT (SUM({quotient}) AS ?n) {{ ?s <urn:p> ?x }}"));
    check_late(&database, &format!("SELECT ?x {{ ?s <urn:p> ?x }} ORDER BY ({quotient}) LIMIT 1"));
}

/// 120 s: `?x IN` a thousand sums, for a thousand rows.
#[test]
fn memberships_in_many_sums_stop() {
    let database = database(wide);
    let sums: Vec<String> = (0..1_000).map(|number| format!("?x + {number}.5")).collect();
    let query = format!("SELECT (COUNT(*) AS ?n) {{ ?s <urn:p> ?x FILTER(?x IN ({})) }}", sums.join(", "));
    check_late(&database, &query);
}

/// 96 s: a class of 2,000 items, in another pattern for each row.
#[test]
fn patterns_computed_for_each_row_stop() {
    let database = database(|row| row.to_string());
    let items = r"\\p{L}\\P{Nd}".repeat(1_000);
    let regex = format!("REGEX(\"aaaa\", CONCAT(\"[{items}]\", STR(?x)))");
    let query = format!("SELECT (COUNT(*) AS ?n) {{ ?s <urn:p> ?x FILTER({regex}) }}");
    check_late(&database, &query);
}

/// 5.8 s: one class of 100,000 items is compiled in linear time.
#[test]
fn large_classes_compile_in_linear_time() {
    let database = database(|row| format!("\"é{row}\""));
    let ask = |class: &str| {
        let query = format!("ASK {{ ?s <urn:p> ?x FILTER(REGEX(?x, \"^[{class}]+$\")) }}");
        let options = QueryOptions { timeout: None, ..QueryOptions::default() };
        let (kind, time) = run(&database, &query, options);
        assert_eq!(kind, None);
        assert!(time < STOPPED, "{time:?}");
    };
    ask(&r"\\p{L}\\d".repeat(50_000));
    ask(&"ab".repeat(50_000));
    // 20,000 ranges, none beside another.
    let apart: String = (0..20_000).filter_map(|at| char::from_u32(0x4E00 + 2 * at)).collect();
    ask(&apart);
}

/// 9.5 s: a pattern of many states over texts of 10^6 characters. (Fewer here, since they are loaded as
/// well.)
#[test]
fn searches_of_long_texts_stop() {
    let text = "ab".repeat(1 << 20);
    let database = Database::in_memory();
    let mut statements = String::new();
    for row in 0..8 {
        writeln!(statements, "<urn:s{row}> <urn:p> \"{text}{row}\" .").unwrap();
    }
    database.load_text(Format::NTriples, &statements).unwrap();
    // Each byte makes a new state of the automaton.
    let pattern = "[ab]*a[ab]{200}[ab]*a[ab]{300}x";
    for expression in
        [format!("REGEX(?x, \"{pattern}\")"), format!("REPLACE(?x, \"({pattern})\", \"$1\") = \"a\"")]
    {
        let texts = (0..40).map(|copy| format!("BIND(CONCAT(?y, \"{copy}\") AS ?x{copy})"));
        let texts: String = texts.collect();
        let all = (0..40).map(|copy| expression.replace("?x", &format!("?x{copy}")));
        let all = all.collect::<Vec<_>>().join(" || ");
        let query = format!("SELECT (COUNT(*) AS ?n) {{ ?s <urn:p> ?y {texts} FILTER({all}) }}");
        check_late(&database, &query);
    }
}

/// 7.5 s at a timeout of 2 s: the warnings of 60,000 variables took quadratic time.
#[test]
fn many_variables_take_linear_time() {
    let database = Database::in_memory();
    let names: String = (0..60_000).map(|number| format!("?v{number} ")).collect();
    let query = format!("SELECT (COUNT(*) AS ?n) {{ VALUES ({names}) {{ ({}) }} }}", "1 ".repeat(60_000));
    let started = Instant::now();
    let prepared = database.prepare(&query).unwrap();
    assert!(prepared.warnings().unwrap().is_empty());
    assert!(prepared.warnings_after(0).unwrap().is_empty());
    let select = format!("SELECT {names} {{ ?a ?b ?c }}");
    let prepared = database.prepare(&select).unwrap();
    assert!(!prepared.warnings_after(1).unwrap().is_empty());
    assert!(started.elapsed() < 2 * STOPPED, "{:?}", started.elapsed());
}

/// A chain of 2,000 equalities: the planner ends with an error soon, or at the timeout.
#[test]
fn chains_of_equalities_stop() {
    let database = database(|row| row.to_string());
    let patterns: String = (0..2_001).map(|at| format!("?s{at} <urn:p> ?a{at} . ")).collect();
    let equalities: Vec<String> = (0..2_000).map(|at| format!("?a{at} = ?a{}", at + 1)).collect();
    let query = format!("SELECT (COUNT(*) AS ?n) {{ {patterns} FILTER({}) }}", equalities.join(" && "));
    let (kind, time) = run(&database, &query, late());
    assert!(kind.is_some() && time < STOPPED, "{kind:?} after {time:?}");
}

/// A group's texts exceed the memory cap within one batch: 1,000 groups of a megabyte.
#[test]
fn group_concat_counts_within_a_batch() {
    let database = database(|row| format!("\"{}{row}\"", "a".repeat(1 << 10)));
    let text = (0..10).fold("?x".to_owned(), |text, _| format!("CONCAT({text}, {text})"));
    let query = format!("SELECT ?s (GROUP_CONCAT({text}) AS ?t) {{ ?s <urn:p> ?x }} GROUP BY ?s");
    let options =
        QueryOptions { memory_limit_bytes: Some(32 << 20), timeout: None, ..QueryOptions::default() };
    assert_eq!(run(&database, &query, options).0, Some(ErrorKind::MemoryLimit));
}

/// A cancellation stops a query within a batch, too.
#[test]
fn cancellations_stop_within_a_batch() {
    let database = database(wide);
    let quotient = format!("?x{}", " / 3.0".repeat(200));
    let query = format!("SELECT (COUNT(?y) AS ?n) {{ ?s <urn:p> ?x BIND({quotient} AS ?y) }}");
    let cancel = CancelToken::new();
    let options = QueryOptions { cancel: Some(cancel.clone()), timeout: None, ..QueryOptions::default() };
    let canceller = std::thread::spawn(move || {
        // Nothing outside shows that a batch has begun. A cancellation at any other time passes as well; the
        // tests `limits` of the expressions are those without a clock.
        std::thread::sleep(TIMEOUT);
        cancel.cancel();
    });
    let (kind, time) = run(&database, &query, options);
    canceller.join().unwrap();
    assert_eq!(kind, Some(ErrorKind::Cancelled));
    assert!(time < STOPPED, "{time:?}");
}

/// The same in Gremlin: products of wide numbers, and regular expressions over long texts.
#[test]
fn gremlin_stops_within_a_step() {
    let database = Database::in_memory();
    let long = "ab".repeat(1 << 19);
    let regex = "[ab]*a[ab]{200}[ab]*a[ab]{300}x";
    for text in [
        "g.withSack(3n).inject(1).repeat(sack(mult).by(constant(7777777777777777777777n))).times(1000000).sack()",
        &format!(
            "g.inject('{long}').repeat(identity()).emit().times(1000).filter(is(regex('{regex}'))).count()"
        ),
    ] {
        let started = Instant::now();
        let options = GremlinOptions { timeout: Some(TIMEOUT), ..GremlinOptions::default() };
        let result = database.gremlin_with(text, &options).map(|results| results.counted().len());
        let start: String = text.chars().take(60).collect();
        assert!(result.is_err(), "{start}");
        assert!(started.elapsed() < STOPPED, "{start} took {:?}: {result:?}", started.elapsed());
    }
}
