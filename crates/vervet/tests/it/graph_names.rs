//! `GRAPH ?g { }` against its definition: the union, over the named graphs, of the group on the graph joined
//! with its name (SPARQL 1.1 §18.6). Within the group `?g` is an ordinary variable.
#![allow(clippy::unwrap_used, reason = "tests")]

use vervet::{Database, Format, QueryOptions};

const PREFIX: &str = "PREFIX : <http://e/> ";
const GRAPHS: [&str; 3] = [":g", ":h", ":i"];

fn database() -> Database {
    let database = Database::in_memory();
    let text = "@prefix : <http://e/> .
        :a :p :b ; :q :g . :g :p 1 . :h :q :a .
        :g { :a :p :b, :c . :g :q :a ; :r 1 . :b :q :h . :h :r 2 . }
        :h { :a :p :b . :b :q :c . :c :r :h, :g . }
        :i { :b :p :i . :i :q :b, :i ; :r :h . }";
    database.load_text(Format::TriG, text).unwrap();
    database
}

fn rows(database: &Database, text: &str, optimize: bool) -> Vec<String> {
    let options = QueryOptions { optimize, ..QueryOptions::default() };
    let answer =
        database.query_with(&format!("{PREFIX} {text}"), &options).map_err(|e| format!("{text}: {e}"));
    let vervet::Answer::Solutions(solutions) = answer.unwrap() else { panic!("not rows: {text}") };
    let mut names: Vec<&String> = solutions.variables().iter().collect();
    names.sort();
    let mut all: Vec<String> = (solutions.rows())
        .map(|row| {
            names
                .iter()
                .map(|name| format!("{name}={:?} ", row.get(name).unwrap().map(|t| t.to_string())))
                .collect()
        })
        .collect();
    all.sort();
    all
}

/// The group on each graph in turn.
fn union(group: &str) -> String {
    let branch = |graph: &&str| format!("{{ {{ GRAPH {graph} {{ {group} }} }} VALUES ?g {{ {graph} }} }}");
    GRAPHS.iter().map(branch).collect::<Vec<_>>().join(" UNION ")
}

const GROUPS: &[&str] = &[
    "?x :p ?y",
    "?g :q ?x",
    "?x ?g ?y",
    "?x :p ?y OPTIONAL { ?g :q ?z }",
    "?x :p ?y OPTIONAL { ?y :q ?g }",
    "?x :p ?y OPTIONAL { ?y :q ?z OPTIONAL { ?z :r ?g } }",
    "?g :q ?x OPTIONAL { ?g :r ?z }",
    "?g :q ?x OPTIONAL { ?z :r ?g FILTER(?z != ?g) }",
    "OPTIONAL { ?g :q ?x } ?x :p ?y",
    "?x :p ?y MINUS { ?g :q ?x }",
    "?x :p ?y MINUS { ?x :q ?g }",
    "?g :q ?x MINUS { ?x :q ?g }",
    "?x :p ?y OPTIONAL { ?x :q ?z } MINUS { ?v :q ?z }",
    "OPTIONAL { ?x :q ?z } MINUS { ?x :p ?y OPTIONAL { ?z :r ?w } }",
    "OPTIONAL { ?g :q ?z } MINUS { ?g :r ?y }",
    "?x :p ?y FILTER EXISTS { ?g :q ?z }",
    "?x :p ?y FILTER NOT EXISTS { ?g :r ?y }",
    "?g :q ?y FILTER NOT EXISTS { ?z :r ?g }",
    "{ ?g :q ?x } UNION { ?x :p ?y }",
    "{ ?g :q ?x } UNION { ?x :p ?y } FILTER(BOUND(?g))",
    "{ ?g :q ?x } UNION { ?x :p ?y } FILTER(!BOUND(?g))",
    "{ ?g :q ?x } UNION { ?x :p ?y } BIND(COALESCE(?g, 1) AS ?z)",
    "{ ?g :q ?x } UNION { ?x :p ?y } OPTIONAL { ?x :r ?w FILTER(BOUND(?g)) }",
    "?x :p ?y FILTER(BOUND(?g))",
    "{ SELECT ?g ?x { ?g :q ?x } }",
    "{ SELECT ?x { ?g :q ?x } }",
    "{ SELECT DISTINCT ?g { ?g ?p ?x } }",
    "{ SELECT DISTINCT ?g { ?x :p ?y OPTIONAL { ?y :q ?g } } }",
    "{ SELECT ?g { ?x :p ?y } }",
    "{ SELECT ?g (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?g }",
    "{ SELECT ?g (COUNT(*) AS ?n) { ?x :q ?g } GROUP BY ?g }",
    "{ SELECT ?g (COUNT(*) AS ?n) { ?x :q ?y OPTIONAL { ?y :r ?g } } GROUP BY ?g }",
    "{ SELECT ?x (COUNT(?g) AS ?n) { ?x :q ?g } GROUP BY ?x }",
    "{ SELECT (COUNT(*) AS ?n) { ?x :r ?y } }",
    "{ SELECT (COUNT(*) AS ?n) { ?g :none ?y } }",
    "{ SELECT (COUNT(DISTINCT ?y) AS ?n) (SUM(?y) AS ?s) (MIN(?y) AS ?m) { :h :r ?y } }",
    "{ SELECT (SUM(?y) AS ?s) { :h :r ?y } }",
    "{ SELECT (COUNT(DISTINCT *) AS ?n) { ?g :none ?y } }",
    "{ SELECT (GROUP_CONCAT(?y) AS ?s) (SAMPLE(?y) AS ?m) { :h :r ?y } }",
    "{ SELECT (AVG(?y) AS ?s) { :h :r ?y } HAVING (COUNT(*) = 0) }",
    "{ SELECT (COUNT(*) AS ?g) { ?x :r ?y } }",
    "{ SELECT (:g AS ?g) { ?x :r ?y } }",
    "BIND(:h AS ?g) ?x :p ?y",
    "?x :p ?y BIND(IF(?y = :b, :h, 1/0) AS ?g)",
    "VALUES ?g { :g UNDEF } ?x :p ?y",
    "VALUES ?g { :g UNDEF }",
    "VALUES (?g ?x) { (:g UNDEF) (UNDEF :a) } OPTIONAL { ?x :p ?y }",
    "GRAPH ?g { ?x :p ?y }",
    "?x :p ?y GRAPH ?g { ?g :q ?z }",
    "?x :p ?y OPTIONAL { GRAPH ?g { ?y :q ?z } }",
    "?x :p ?y OPTIONAL { GRAPH ?h { ?y :q ?g } }",
    "GRAPH ?h { ?x :p ?y } FILTER NOT EXISTS { GRAPH ?g { ?x :q ?y } }",
    "?g :q+ ?x",
    "?x :p ?y OPTIONAL { ?g :q* ?y }",
    "?x :p ?y OPTIONAL { ?g ?x ?y }",
    "",
];

#[test]
fn the_variable_of_a_graph_is_joined_after_its_group() {
    let database = database();
    for group in GROUPS {
        for (before, after) in [
            ("", ""),
            ("?g :p ?v ", ""),
            ("VALUES ?g { :h :i UNDEF } ", ""),
            ("", " OPTIONAL { ?g :p ?v }"),
            ("OPTIONAL { ?a :q ?g } ", ""),
        ] {
            let text = |part: &str| format!("SELECT * {{ {before} {part} {after} }}");
            let expected = rows(&database, &text(&format!("{{ {} }}", union(group))), true);
            for optimize in [true, false] {
                let found = rows(&database, &text(&format!("GRAPH ?g {{ {group} }}")), optimize);
                assert_eq!(found, expected, "{before} {group} {after}, optimize {optimize}");
            }
            let parts = [format!("GRAPH ?g {{ {group} }}"), union(group)];
            for kind in ["MINUS", "OPTIONAL"] {
                let [found, expected] = parts.each_ref().map(|part| {
                    rows(&database, &format!("SELECT * {{ ?x ?p ?g . {before} {kind} {{ {part} }} }}"), true)
                });
                assert_eq!(found, expected, "{kind} {before} {group}");
            }
        }
    }
}

/// A value from outside replaces the variable in all of the group.
#[test]
fn values_of_rows_replace_the_variable_of_a_graph_in_exists() {
    let database = database();
    for group in
        GROUPS.iter().filter(|group| !["SELECT", "MINUS", "BIND", "*"].iter().any(|one| group.contains(one)))
    {
        let found = rows(
            &database,
            &format!("SELECT ?g {{ ?g :q ?o FILTER EXISTS {{ GRAPH ?g {{ {group} }} }} }}"),
            true,
        );
        let mut expected = Vec::new();
        for graph in [":b", ":g", ":h", ":i"] {
            let group = group.replace("BOUND(?g)", "(true)");
            // A value in a table is a condition on the table.
            if group.contains("VALUES") {
                continue;
            }
            let group = group.replace("?g", graph);
            let text = format!(
                "SELECT ({graph} AS ?g) {{ {graph} :q ?o FILTER EXISTS {{ GRAPH {graph} {{ {group} }} }} }}"
            );
            expected.extend(rows(&database, &text, true));
        }
        if !group.contains("VALUES") {
            expected.sort();
            assert_eq!(found, expected, "{group}");
        }
    }
}
