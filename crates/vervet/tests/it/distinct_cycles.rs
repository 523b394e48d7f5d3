//! DISTINCT behind an intersection, which may output the rows of a batch in another order: each row once.

use std::collections::BTreeSet;
use vervet::{Database, Format, OutputFormat, QueryOptions};

/// A part of a random graph over which a random query gave rows twice.
const GRAPH: &str = include_str!("distinct_cycles.trig");

const CYCLE: &str = "?a :p1 ?b . ?b :p2 ?c . ?d :p0 ?c . ?a :p3 ?d . ?a :p2 ?d .";

fn rows(database: &Database, query: &str, options: &QueryOptions) -> Vec<String> {
    let mut bytes = Vec::new();
    database.write(query, options, OutputFormat::Tsv, &mut bytes).expect("an answer");
    String::from_utf8(bytes).expect("a text").lines().map(str::to_owned).collect()
}

#[test]
fn rows_are_distinct() {
    let database = Database::in_memory();
    database.load_text(Format::TriG, GRAPH).expect("a graph");
    for threads in [1, 3] {
        let options = QueryOptions::default().with_threads(threads);
        for variables in ["?a ?c", "?c ?a", "?a ?b", "?c ?d", "?b ?d", "?a ?b ?c"] {
            let query = |form: &str| format!("PREFIX : <urn:> SELECT {form} {variables} {{ {CYCLE} }}");
            let all = rows(&database, &query(""), &options);
            let mut distinct = rows(&database, &query("DISTINCT"), &options);
            distinct.sort();
            let expected: BTreeSet<String> = all.into_iter().collect();
            assert!(distinct.iter().eq(&expected), "{variables}, {threads} threads: {distinct:?}");
        }
    }
}
