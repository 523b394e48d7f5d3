//! Lists of hubs and short segments over servers: how often they are read.

use crate::{rows, start};
use std::time::Duration;
use vervet::{Database, Format, QueryOptions};
use vervet_cluster::Cluster;

/// Two thousand members of four hubs, which know others.
fn hubs() -> Database {
    let mut text = String::new();
    for number in 0..2_000_u32 {
        let (knows, other) = (number * 7 % 2_000, number * 31 % 2_000);
        text.push_str(&format!("<urn:v{number}> <urn:hub> <urn:h{}> .\n", number % 4));
        text.push_str(&format!("<urn:v{number}> <urn:knows> <urn:v{knows}> , <urn:v{other}> .\n"));
        text.push_str(&format!("<urn:v{number}> a <urn:T{}> .\n", number % 3));
        if number % 200 == 7 {
            text.push_str(&format!("<urn:v{number}> <urn:rare> <urn:r{}> .\n", number % 3));
        }
    }
    let database = Database::in_memory();
    database.load_text(Format::Turtle, &text).expect("a graph");
    database
}

/// Joins through hubs: of each row, under set semantics, conditions that the first entry decides.
const QUERIES: &[&str] = &[
    "SELECT (COUNT(*) AS ?n) { ?x <urn:knows> ?y OPTIONAL { ?x <urn:hub> ?h . ?y <urn:hub> ?h . ?z <urn:hub> ?h \
     FILTER(?z = ?x) } }",
    "SELECT (COUNT(*) AS ?n) { ?x <urn:knows> ?y FILTER NOT EXISTS { ?q <urn:hub> ?h . ?x <urn:hub> ?h \
     FILTER(?q != ?x && ?q != ?y) } }",
    "SELECT (COUNT(*) AS ?n) { ?x <urn:knows> ?y FILTER EXISTS { ?y <urn:hub> ?h . ?q <urn:hub> ?h . ?q <urn:knows> ?x } }",
    "SELECT ?x { ?x <urn:knows> ?k FILTER EXISTS { ?x <urn:hub> ?h . ?y <urn:hub> ?h . ?y <urn:rare> ?q } }",
    "SELECT (COUNT(*) AS ?n) { ?x <urn:knows> ?k OPTIONAL { ?y <urn:rare> ?q . ?x <urn:hub> ?h . ?y <urn:hub> ?h } }",
    "SELECT DISTINCT ?t ?u { ?x a ?t ; <urn:knows> ?y . ?y <urn:hub> ?h . ?w <urn:hub> ?h . ?w a ?u }",
    "SELECT DISTINCT ?u { ?x a ?t ; <urn:knows> ?y . ?y <urn:hub> ?h . ?w <urn:hub> ?h . ?w a ?u }",
    "SELECT ?t (COUNT(DISTINCT ?w) AS ?n) { ?x a ?t . ?x <urn:knows> ?y . ?y <urn:hub> ?h . ?w <urn:hub> ?h } GROUP BY ?t",
];

#[test]
fn lists_of_hubs_are_not_read_for_each_row() {
    let database = hubs();
    let (servers, ..) = start(&database, 4);
    let sent =
        || -> u64 { servers.iter().flat_map(Cluster::counts).map(|(_, counts)| counts.requests).sum() };
    for query in QUERIES {
        for heavy_from in [Duration::ZERO, QueryOptions::default().heavy_from] {
            let options = QueryOptions { heavy_from, ..QueryOptions::default() };
            let expected = rows(&database, query, &options).expect("an answer");
            let before = sent();
            assert_eq!(rows(servers[0].database(), query, &options).expect("an answer"), expected, "{query}");
            let requests = sent() - before;
            println!("{heavy_from:?}: {requests} requests: {query}");
            // A request for each of 4,000 rows and three servers would be 12,000.
            assert!(requests <= 400, "{query}: {requests} requests");
        }
    }
}
