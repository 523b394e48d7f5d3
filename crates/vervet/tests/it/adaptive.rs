//! Runs that are planned again because a step has far more rows than expected: the same answers as without
//! the optimizer and as counted here, whatever has been output before, and a better plan the next time.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write as _;
use std::time::Duration;
use vervet::{Database, Format, OutputFormat, QueryOptions, Solutions};

const PREFIX: &str = "PREFIX : <http://e/> ";

/// Targets of the hub.
const WIDE: usize = 25_000;
/// Targets that lead to `:goal`.
const FOUND: usize = 300;

/// `:root :a` leads to one vertex, from which `:b` leads to the one vertex in a thousand that has very many
/// `:c`. So the average says nothing of the rows of `:root :a/:b/:c`.
fn database() -> Database {
    let mut text = "@prefix : <http://e/> .\n".to_owned();
    let mut add = |line: String| writeln!(text, "{line} .").unwrap();
    add(":root :a :y0".to_owned());
    for y in 0..10_000 {
        add(format!(":y{y} :b :z{y}"));
        add(format!(":z{y} :c :w{y}"));
    }
    for w in 0..WIDE {
        add(format!(":z0 :c :w{w}"));
        add(format!(":w{w} :d :v{w}"));
        add(format!(":v{w} :e :{}", if w < FOUND { "goal".to_owned() } else { format!("u{}", w % 900) }));
    }
    let database = Database::in_memory();
    database.load_text(Format::Turtle, &text).unwrap();
    database
}

const PATTERNS: &str = "{ :root :a ?y . ?y :b ?z . ?z :c ?w . ?w :d ?v . ?v :e :goal }";

fn thorough() -> [QueryOptions; 3] {
    let one = QueryOptions { threads: Some(1), ..QueryOptions::default() };
    let many = QueryOptions { threads: Some(3), heavy_from: Duration::ZERO, ..QueryOptions::default() };
    [one, many, QueryOptions { optimize: false, ..QueryOptions::default() }]
}

#[test]
fn a_run_with_unexpected_rows_gets_a_better_plan_and_the_same_answer() {
    for options in thorough() {
        // A new database has no corrections.
        let database = database();
        let query =
            database.prepare_with(&format!("{PREFIX} SELECT (COUNT(*) AS ?n) {PATTERNS}"), &options).unwrap();
        let before = query.explain_with(&options).unwrap();
        let profile = query.profile_with(&options).unwrap();
        let after = query.explain_with(&options).unwrap();
        let answer = query.run_with(&options).unwrap().into_solutions().unwrap();
        assert_eq!(count_of(&answer), FOUND as i64, "{profile}");
        if options.optimize {
            assert!(profile.contains("planned again"), "{profile}");
            assert_ne!(before, after, "the prepared query has learned");
            assert!(!query.profile_with(&options).unwrap().contains("planned again"));
        } else {
            assert_eq!(before, after);
        }
    }
}

fn count_of(answer: &Solutions) -> i64 {
    answer.rows().next().unwrap().integer("n").unwrap().unwrap()
}

/// The first targets lead to the goal, so rows are output before the run is planned again.
#[test]
fn rows_before_another_plan_are_not_output_twice() {
    for options in thorough() {
        for form in ["SELECT ?w", "SELECT DISTINCT ?w", "CONSTRUCT { ?w :found ?v }"] {
            let database = database();
            let query = database.prepare_with(&format!("{PREFIX} {form} {PATTERNS}"), &options).unwrap();
            let mut out = Vec::new();
            let format = if query.is_graph() { OutputFormat::NTriples } else { OutputFormat::Csv };
            query.write_with(&options, format, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            let mut lines: Vec<&str> = text.lines().filter(|line| line.contains("/w")).collect();
            assert_eq!(lines.len(), FOUND, "{form}");
            lines.sort_unstable();
            lines.dedup();
            assert_eq!(lines.len(), FOUND, "{form}");
        }
    }
}

#[test]
fn updates_and_transactions_are_planned_again() {
    let database = database();
    let update = format!("{PREFIX} INSERT {{ ?w :found ?v }} WHERE {PATTERNS}");
    let report = database.update(&update).unwrap();
    assert_eq!(report.inserted, FOUND as u64);
    let mut transaction = database.begin().unwrap();
    transaction.update(&format!("{PREFIX} DELETE DATA {{ :v0 :e :goal }}")).unwrap();
    let answer = transaction.query(&format!("{PREFIX} SELECT (COUNT(*) AS ?n) {PATTERNS}")).unwrap();
    let answer = answer.into_solutions().unwrap();
    assert_eq!(count_of(&answer), FOUND as i64 - 1);
}

/// Regression: a factor learned for a step was relative to an estimate without the factor of the step before,
/// and each run multiplied the factors of earlier runs, so estimates grew until another order, hundreds of
/// times as slow, seemed cheaper.
#[test]
fn factors_of_several_steps_and_runs_do_not_contain_each_other() {
    let database = database();
    let options = QueryOptions { threads: Some(1), ..QueryOptions::default() };
    let text = format!("{PREFIX} SELECT ?v ?u {{ :root :a ?y . ?y :b ?z . ?z :c ?w . ?w :d ?v . ?v :e ?u }}");
    let query = database.prepare_with(&text, &options).unwrap();
    for run in 0..4 {
        let answer = query.run_with(&options).unwrap().into_solutions().unwrap();
        assert_eq!(answer.len(), WIDE, "run {run}");
        let plan = query.explanation(&options, false).unwrap();
        let most = plan.steps.iter().map(|step| step.estimated_rows).fold(0.0, f64::max);
        assert!(most < 10.0 * WIDE as f64, "run {run}: {most} rows in\n{}", plan.text);
    }
}
