//! Joins with many rows at their right sides: made where the query was asked, with steps at all servers on
//! both sides of them, and behind them.

use crate::{rows, start};
use std::time::Duration;
use vervet::{Database, ErrorKind, Format, QueryOptions};
use vervet_peer::{ALWAYS, FaultPlan};

/// 6,000 vertices with some neighbours each, numbers, names and types.
fn wide_graph() -> Database {
    let mut text = String::new();
    for number in 0..6_000_u32 {
        text.push_str(&format!(
            "<urn:v{number}> a <urn:T{}> ; <urn:next> <urn:v{}>, <urn:v{}> ; <urn:near> <urn:v{}> ; <urn:size> {} ; \
             <urn:name> \"name {number}\" .\n",
            number % 3,
            (number * 7 + 1) % 6_000,
            (number * 11 + 5) % 6_000,
            (number * 13 + 3) % 5_000,
            number % 4_000,
        ));
    }
    let database = Database::in_memory();
    database.load_text(Format::TriG, &text).expect("a graph");
    database
}

/// Inner and left joins, MINUS, two of them, groups, orders, sets and computed texts behind them.
const LARGE: &[&str] = &[
    "SELECT ?a ?c ?n { { SELECT ?b (COUNT(*) AS ?n) { ?x <urn:near> ?b } GROUP BY ?b } ?a <urn:next> ?b . ?b <urn:near> ?c . ?c a <urn:T1> }",
    "SELECT ?a ?d ?n { ?a <urn:next> ?b OPTIONAL { SELECT ?b (SUM(?z) AS ?n) { ?x <urn:next> ?b ; <urn:size> ?z } GROUP BY ?b } \
     ?b <urn:near> ?c . ?c <urn:next> ?d FILTER(?n > 5000) }",
    "SELECT (COUNT(*) AS ?k) (SUM(?n) AS ?s) { ?a <urn:next> ?b . { SELECT ?b (COUNT(*) AS ?n) { ?x <urn:next> ?b } GROUP BY ?b } \
     ?b <urn:near> ?c . ?c <urn:next> ?d . ?d a <urn:T2> }",
    "SELECT ?t (COUNT(*) AS ?k) (AVG(?n) AS ?s) { ?a <urn:next> ?b . { SELECT ?b (MAX(?z) AS ?n) { ?x <urn:next> ?b ; <urn:size> ?z } GROUP BY ?b } \
     ?b <urn:near> ?c . ?c <urn:next> ?d . ?d a ?t } GROUP BY ?t",
    "SELECT ?a ?e { ?a <urn:next> ?b MINUS { SELECT ?b { ?x <urn:near> ?b . ?x a <urn:T1> } } ?b <urn:near> ?c . ?c <urn:next> ?d . ?d <urn:near> ?e . \
     ?e <urn:size> ?z FILTER(?z < 900) }",
    "SELECT ?z (COUNT(*) AS ?k) { ?a <urn:next> ?b . { SELECT ?b (COUNT(*) AS ?n) { ?x <urn:next> ?b } GROUP BY ?b } ?b <urn:near> ?c . ?c <urn:near> ?d . \
     { SELECT ?d (MIN(?y) AS ?m) { ?w <urn:near> ?d ; <urn:size> ?y } GROUP BY ?d } ?d <urn:next> ?e . ?e <urn:size> ?z FILTER(?m < ?z) } GROUP BY ?z",
    "SELECT DISTINCT ?e { ?a <urn:next> ?b . { SELECT ?b (COUNT(*) AS ?n) { ?x <urn:next> ?b } GROUP BY ?b } ?b <urn:near> ?c . ?c <urn:next> ?d . \
     ?d <urn:near> ?e }",
    "SELECT ?n ?m ?k { ?a <urn:next> ?b . { SELECT ?b (COUNT(*) AS ?n) { ?x <urn:next> ?b } GROUP BY ?b } ?b <urn:near> ?c . ?c <urn:next> ?d . \
     ?d <urn:name> ?m . ?a <urn:name> ?k } ORDER BY ?n DESC(?m) ?k LIMIT 40",
    "SELECT ?y ?e { ?a <urn:next> ?b . { SELECT ?b (CONCAT(\"as many as \", STR(COUNT(*))) AS ?n) { ?x <urn:next> ?b } GROUP BY ?b } ?b <urn:near> ?c . \
     ?c <urn:next> ?d . ?d <urn:near> ?e BIND(CONCAT(?n, \" of \", STR(?d)) AS ?y) ?e a <urn:T0> }",
    "SELECT ?a ?d { { SELECT ?b { ?x <urn:next> ?b . ?x <urn:size> ?z } ORDER BY DESC(?z) ?b LIMIT 3000 } ?a <urn:next> ?b . ?b <urn:near> ?c . ?c <urn:next> ?d }",
    "SELECT ?a ?q ?n { ?a <urn:next> ?b . ?b <urn:near> ?c OPTIONAL { SELECT ?c (COUNT(*) AS ?n) { ?x <urn:near> ?c . ?x <urn:next> ?y } GROUP BY ?c } \
     OPTIONAL { ?c <urn:next> ?q . ?q a <urn:T1> . ?q <urn:size> ?z FILTER(?z > ?n) } }",
    "SELECT ?t (COUNT(?q) AS ?k) { ?a <urn:next> ?b OPTIONAL { SELECT ?a ?n { { SELECT ?a (COUNT(*) AS ?n) { ?x <urn:next> ?a } GROUP BY ?a } FILTER(?n > 1) } } \
     OPTIONAL { ?b <urn:near> ?q } MINUS { SELECT ?b { ?y <urn:near> ?b . ?y a <urn:T0> } } OPTIONAL { ?q <urn:next> ?r . ?r a ?t } } GROUP BY ?t",
];

/// The steps behind such joins run at all servers, in one query with those before them.
#[test]
fn steps_behind_joins_with_many_rows_run_at_all_servers() {
    let database = wide_graph();
    let mut behind = 0;
    for count in [2, 3] {
        let (servers, ..) = start(&database, count);
        let requests = || -> u64 {
            servers.iter().flat_map(|server| server.counts()).map(|(_, counts)| counts.requests).sum()
        };
        for query in LARGE {
            for heavy_from in [Duration::ZERO, QueryOptions::default().heavy_from] {
                for threads in [1, 3] {
                    let options =
                        QueryOptions { heavy_from, ..QueryOptions::default().with_threads(threads) };
                    let expected = rows(&database, query, &options).expect("an answer");
                    let before = requests();
                    let found = rows(servers[0].database(), query, &options).expect("an answer");
                    println!("{count} servers, {threads} threads: {} requests: {query}", requests() - before);
                    assert_eq!(found, expected, "{query}");
                    assert!(found.len() > 1, "{query}");
                }
            }
            let options = QueryOptions { heavy_from: Duration::ZERO, ..QueryOptions::default() };
            let plan = servers[0].database().explain(query, &options).expect("a plan");
            println!("{plan}");
            let is_join = |line: &str| line.starts_with("├─ group") || line.starts_with("├─ hash");
            let join = plan.lines().position(is_join).unwrap_or(usize::MAX);
            let starts =
                plan.lines().filter_map(|line| line.split_once(" servers: steps ")?.1.split(' ').next());
            let starts: Vec<usize> = starts.filter_map(|start| start.parse().ok()).collect();
            // The first one is before the join.
            behind += usize::from(starts.len() > 1 && starts.iter().any(|start| *start > join));
        }
    }
    assert!(behind >= 12, "behind {behind} joins and groups steps run at all servers");
}

/// Faults and caps in queries of several parts: the right answer, or an error with its reason.
#[test]
fn faults_and_caps_in_queries_of_several_parts() {
    let seed = std::env::var("VERVET_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_129);
    println!("seed {seed}");
    let database = wide_graph();
    let (servers, ..) = start(&database, 3);
    let eager = QueryOptions {
        heavy_from: Duration::ZERO,
        timeout: Some(Duration::from_secs(10)),
        ..QueryOptions::default().with_threads(2)
    };
    let expected: Vec<_> = LARGE.iter().map(|query| rows(&database, query, &eager).expect("right")).collect();
    let chance = ALWAYS / 60;
    let (mut right, mut failed) = (0, 0);
    for round in 0..3 {
        for (number, server) in (0..).zip(&servers) {
            let none = FaultPlan { seed: (seed + round) * 16 + number, ..FaultPlan::default() };
            let plan = match round {
                0 => FaultPlan { cut_requests: chance, cut_answers: chance, ..none },
                1 => FaultPlan { garbage_requests: chance, garbage_answers: chance, ..none },
                _ => none,
            };
            for name in ["a", "b", "c"] {
                server.faults(name).into_iter().for_each(|faults| faults.set(plan.clone()));
            }
        }
        for (query, expected) in LARGE.iter().zip(&expected) {
            match rows(servers[1].database(), query, &eager) {
                Ok(found) => {
                    assert_eq!(&found, expected, "{query}");
                    right += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Unavailable, "{query}: {error}");
                    failed += 1;
                }
            }
        }
    }
    assert!(right >= LARGE.len() && failed > 3, "{right} right, {failed} failed");
    let (mut right, mut capped) = (0, 0);
    for (query, expected) in LARGE.iter().zip(&expected) {
        for bytes in [30_000, 300_000, 3_000_000, 300_000_000] {
            let options = QueryOptions { memory_limit_bytes: Some(bytes), ..eager.clone() };
            match rows(servers[1].database(), query, &options) {
                Ok(found) => {
                    assert_eq!(&found, expected, "{query}");
                    right += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::MemoryLimit, "{query}: {error}");
                    capped += 1;
                }
            }
        }
    }
    assert!(right >= LARGE.len() && capped >= LARGE.len(), "{right} right, {capped} capped");
}
