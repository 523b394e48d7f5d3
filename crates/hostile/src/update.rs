//! Update requests: they are atomic and report correct counts, and the resulting graph survives export and
//! load.

use crate::graph;
use crate::oracle::{self, Outcome};
use std::sync::OnceLock;
use vervet::update::{UpdateOptions, UpdateReport};
use vervet::{Answer, Database, QueryOptions, Transaction};

pub(crate) fn check(text: &str) {
    static DATABASE: OnceLock<Database> = OnceLock::new();
    let database = DATABASE.get_or_init(graph::database);
    let before = graph::count(database);
    let planned = attempt(database, text, oracle::options());
    let naive = attempt(database, text, QueryOptions { optimize: false, ..oracle::options() });
    oracle::check_same(text, &planned, &naive, "without a plan");
    assert_eq!(graph::count(database), before, "a rollback leaves statements behind");
    let Outcome::Done(report) = planned else { return };
    if report.inserted == 0 && report.removed == 0 {
        return;
    }
    // Again, with a commit.
    let committed = graph::database();
    let mut options = UpdateOptions { query: oracle::options(), documents: None };
    if let Outcome::Done(report) = oracle::classify(committed.update_with(text, &mut options)) {
        assert_eq!(graph::count(&committed), expected(before, report), "the report has wrong counts");
        graph::check_round_trip(&committed);
    }
}

/// Runs the request and rolls it back.
fn attempt(database: &Database, text: &str, options: QueryOptions) -> Outcome<UpdateReport> {
    let mut transaction = database.begin().expect("there is no other writer");
    let before = statements(&transaction);
    let mut options = UpdateOptions { query: options, documents: None };
    let done = oracle::classify(transaction.update_with(text, &mut options));
    let after = statements(&transaction);
    match done {
        Outcome::Done(report) => assert_eq!(after, expected(before, report), "the report has wrong counts"),
        _ => assert_eq!(after, before, "a failed request leaves statements behind"),
    }
    transaction.roll_back();
    done
}

fn expected(before: u64, report: UpdateReport) -> u64 {
    (before + report.inserted).checked_sub(report.removed).expect("not more removals than statements")
}

/// The number of statements as queries see them: a statement with several identities is one row without them,
/// and several statements with them.
fn statements(transaction: &Transaction) -> u64 {
    let count = |text: &str| match transaction.query(text).expect("it can be counted") {
        Answer::Solutions(solutions) => {
            let row = solutions.rows().next().expect("a count has a row");
            let count = row.integer("n").expect("it can be read").expect("it is a number");
            u64::try_from(count).expect("it is not negative")
        }
        _ => panic!("a count is a table"),
    };
    let both = |what: &str| {
        count(&what.replace("ALL", "?s ?p ?o ~ ?e"))
            + count(&what.replace("ALL", "GRAPH ?g { ?s ?p ?o ~ ?e }"))
    };
    let seen = count("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }")
        + count("SELECT (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } }");
    let identities = both("SELECT (COUNT(*) AS ?n) { ALL }");
    let identified = both("SELECT (COUNT(*) AS ?n) { SELECT DISTINCT ?s ?p ?o ?g { ALL } }");
    seen + identities - identified
}
