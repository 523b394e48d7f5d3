//! Gremlin texts: printing and parsing are inverse; kernels and steps have equal results; a failed text
//! changes nothing; every text terminates.

use crate::graph;
use crate::oracle::{self, Outcome};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use vervet::gremlin::Value;
use vervet::gremlin::text::{ParseOptions, Statement, parse};
use vervet::{Database, Format, GremlinOptions, GremlinResults};

/// Time limit of a run, far above the timeout of the text. A longer run counts as one that does not
/// terminate.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(8);

/// Maximum number of results whose values are compared; of more results only the number is compared.
const COMPARED_MAX: usize = 200;

/// TinkerPop's "modern" graph, a loop, parallel edges, multi-valued keys, meta-properties, and ids of all
/// types.
const GRAPH: &str = r#"
{"id":1,"label":"person","outE":{"created":[{"id":9,"inV":3,"properties":{"weight":0.4}}],"knows":[{"id":7,"inV":2,"properties":{"weight":0.5}},{"id":8,"inV":4,"properties":{"weight":1.0}}]},"properties":{"name":[{"value":"marko"}],"age":[{"value":{"@type":"g:Int32","@value":29}}],"location":[{"value":"santa fe","properties":{"startTime":2005}},{"value":"brussels","properties":{"startTime":2004,"endTime":2005}}]}}
{"id":2,"label":"person","properties":{"name":[{"value":"vadas"}],"age":[{"value":{"@type":"g:Int32","@value":27}}]}}
{"id":3,"label":"software","outE":{"self":[{"id":"loop","inV":3}]},"properties":{"name":[{"value":"lop"}],"lang":[{"value":"java"}]}}
{"id":4,"label":"person","outE":{"created":[{"id":10,"inV":5,"properties":{"weight":1.0}},{"id":11,"inV":3,"properties":{"weight":0.4}},{"id":12,"inV":3,"properties":{"weight":0.4}}]},"properties":{"name":[{"value":"josh"}],"age":[{"value":{"@type":"g:Int32","@value":32}}]}}
{"id":5,"label":"software","properties":{"name":[{"value":"ripple"}],"lang":[{"value":"java"},{"value":"java"}],"tags":[{"value":[1,"a",[2.5]]}]}}
{"id":"x y","label":"a::b","outE":{"knows":[{"inV":1}]},"properties":{"when":[{"value":{"@type":"g:Date","@value":0}}],"id":[{"value":{"@type":"g:UUID","@value":"41d2e28a-20a4-4ab0-b379-d810dede3786"}}],"n":[{"value":{"@type":"gx:BigDecimal","@value":1.50}},{"value":{"@type":"g:Double","@value":"NaN"}},{"value":true}]}}
"#;

fn database() -> Database {
    let database = Database::in_memory();
    graph::read(&database, Format::GraphSon, GRAPH.as_bytes(), 1).expect("the graph is well-formed");
    database
}

pub(crate) fn check(text: &str) {
    static DATABASE: OnceLock<Database> = OnceLock::new();
    let Ok(statements) = parse(text, &ParseOptions::default()) else {
        // The database must reject what the parser rejects.
        let refused = oracle::classify(DATABASE.get_or_init(database).gremlin_with(text, &options(true)));
        assert!(!matches!(refused, Outcome::Done(_)), "it runs although the parser rejects it");
        return;
    };
    check_printed(&statements);
    let database = DATABASE.get_or_init(database);
    let before = graph::count(database);
    let [kernels, steps] = [true, false].map(|kernels| run(database, text, kernels));
    assert_eq!(graph::count(database), before, "a rollback leaves statements behind");
    if let (Outcome::Done(kernels), Outcome::Done(steps)) = (&kernels, &steps) {
        compare(text, kernels, steps);
    }
}

fn options(kernels: bool) -> GremlinOptions {
    let limits = oracle::options();
    GremlinOptions {
        timeout: limits.timeout,
        memory_limit_bytes: limits.memory_limit_bytes,
        kernels,
        ..GremlinOptions::default()
    }
}

/// The printed form is a fixed point of parsing and printing, except for values without literals.
fn check_printed(statements: &[Statement]) {
    for statement in statements {
        let Statement::Traversal { bytecode, .. } = statement else { continue };
        let printed = bytecode.to_string();
        let Ok(again) = parse(&printed, &ParseOptions::default()) else { continue };
        if let [Statement::Traversal { bytecode, .. }] = again.as_slice() {
            assert_eq!(bytecode.to_string(), printed, "its second printed form differs");
        }
    }
}

/// Runs the text in a transaction and rolls it back.
fn run(database: &Database, text: &str, kernels: bool) -> Outcome<GremlinResults> {
    let begin = Instant::now();
    let mut transaction = database.begin().expect("there is no other writer");
    let before = statements(&mut transaction);
    let done = oracle::classify(transaction.gremlin_with(text, &options(kernels)));
    if !matches!(done, Outcome::Done(_)) {
        assert_eq!(statements(&mut transaction), before, "a failed text leaves statements behind");
    }
    transaction.roll_back();
    assert!(begin.elapsed() < CLIENT_TIMEOUT, "it does not end: {text}");
    done
}

/// The numbers of vertices, edges and properties.
fn statements(transaction: &mut vervet::Transaction) -> [u64; 3] {
    ["g.V()", "g.E()", "g.V().properties()"]
        .map(|text| transaction.gremlin(text).expect("it can be counted").len())
}

fn compare(text: &str, kernels: &GremlinResults, steps: &GremlinResults) {
    // Steps whose choice of results the language leaves open.
    const OPEN: [&str; 18] = [
        "coin",
        "sample",
        "shuffle",
        "limit",
        "range",
        "tail",
        "skip",
        "uuid",
        "datetime",
        "timelimit",
        "next",
        "profile",
        "explain",
        "repeat",
        "barrier",
        "subgraph",
        "dedup",
        "\\u",
    ];
    // Steps whose results depend on the order, or contain new ids.
    const ORDERED: [&str; 20] = [
        "fold",
        "order",
        "group",
        "aggregate",
        "cap",
        "store",
        "index",
        "tree",
        "sack",
        "sum",
        "mean",
        "math",
        "path",
        "addv",
        "adde",
        "merge",
        "property",
        "match",
        "sideeffect",
        "inject",
    ];
    let lower = text.to_ascii_lowercase();
    if OPEN.iter().any(|word| lower.contains(word)) {
        return;
    }
    assert_eq!(kernels.len(), steps.len(), "kernels and steps differ in the number of results");
    if ORDERED.iter().any(|word| lower.contains(word)) || kernels.counted().len() > COMPARED_MAX {
        return;
    }
    let mut rest: Vec<&Value> = steps.values().take(COMPARED_MAX + 1).collect();
    if rest.len() > COMPARED_MAX {
        return;
    }
    for value in kernels.values() {
        let place = rest.iter().position(|other| *other == value);
        let place = place.unwrap_or_else(|| panic!("only kernels return {value}; steps {rest:?}"));
        rest.swap_remove(place);
    }
}
