//! Random queries whose groups in `GRAPH ?a { }` mention `?a`: in patterns, optional parts, the right sides
//! of `MINUS`, sub-queries, `EXISTS`, tables and `BIND`.
//!
//! By SPARQL 1.1 §18.6 the group is evaluated once for each named graph, where `?a` is an ordinary variable,
//! and then joined with the name. Oxigraph 0.5.13 binds `?a` inside the group instead, so it gets this
//! definition as a text: the union, over the graphs of the case, of the group on the graph joined with a
//! table of its name.

use crate::random_path::{choice, for_oxigraph, for_vervet};
use crate::random_terms::{GRAPHS, Random, predicate, variable, vertex};
use std::fmt::Write;

/// Makes a group of any kind, without its braces: random numbers, depth, number of the last new variable.
pub(crate) type Group = fn(&mut Random, usize, &mut usize) -> String;

/// Statements in named graphs, some of which mention the graphs.
pub(crate) fn statements(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..random.below(30) {
        let (subject, predicate, object) = (name(random), predicate(random), name(random));
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "<urn:g{}> {{ {subject} {predicate} {object} . }}", random.below(GRAPHS));
    }
    text
}

fn name(random: &mut Random) -> String {
    match random.chance(35) {
        true => format!("<urn:g{}>", random.below(GRAPHS)),
        false => vertex(random),
    }
}

/// A pattern that mentions the variable.
fn pattern(random: &mut Random, of: &str) -> String {
    let predicate = if random.chance(15) { "?d".to_owned() } else { predicate(random) };
    match random.below(3) {
        0 => format!("{of} {predicate} {} .", variable(random)),
        1 => format!("{} {predicate} {of} .", variable(random)),
        _ => format!("{} {predicate} {} .", variable(random), variable(random)),
    }
}

/// A group within `GRAPH of`, without its braces.
fn inner(random: &mut Random, of: &str, depth: usize, fresh: &mut usize, group: Group) -> String {
    let mut parts = Vec::new();
    if random.chance(8) {
        parts.push(match random.chance(50) {
            true => format!("BIND(<urn:g{}> AS {of})", random.below(GRAPHS)),
            false => "BIND(<urn:v1> AS ?x0)".to_owned(),
        });
    }
    if random.chance(80) {
        let of = if random.chance(40) { of } else { "?b" };
        parts.push(pattern(random, of));
    }
    for _ in 0..random.below(3) {
        let more = |random: &mut Random| {
            (0..1 + random.below(2)).map(|_| pattern(random, of)).collect::<Vec<_>>().join(" ")
        };
        let part = match random.below(13) {
            0..=2 => format!("OPTIONAL {{ {} }}", more(random)),
            3 => format!("MINUS {{ {} }}", more(random)),
            4 => format!("{{ {} }} UNION {{ {} }}", more(random), more(random)),
            5 => {
                let not = if random.chance(50) { "NOT " } else { "" };
                format!("FILTER {not}EXISTS {{ {} }}", more(random))
            }
            6 => {
                let distinct = if random.chance(40) { "DISTINCT " } else { "" };
                let columns = if random.chance(50) { of } else { "?b ?c" };
                format!("{{ SELECT {distinct}{columns} {{ {} }} }}", more(random))
            }
            7 => {
                *fresh += 1;
                let keys = match random.below(3) {
                    0 => format!(" GROUP BY {of}"),
                    1 => " GROUP BY ?b".to_owned(),
                    _ => String::new(),
                };
                let aggregate = random.pick(&["COUNT(*)", "COUNT(?b)", "COUNT(DISTINCT ?c)", "SUM(?b)"]);
                let having = if random.chance(20) { " HAVING (COUNT(?c) > 0)" } else { "" };
                format!("{{ SELECT ({aggregate} AS ?n{fresh}) {{ {} }}{keys}{having} }}", more(random))
            }
            8 => match random.chance(50) {
                true => format!("FILTER(BOUND({of}))"),
                false => format!("FILTER({of} != {})", variable(random)),
            },
            9 => format!("VALUES {of} {{ <urn:g0> UNDEF <urn:v1> }}"),
            10 => {
                *fresh += 1;
                format!("BIND(COALESCE({of}, 1) AS ?x{fresh})")
            }
            11 if depth > 0 => graph_part(random, depth - 1, fresh, group),
            _ if depth > 0 => group(random, depth - 1, fresh),
            _ => more(random),
        };
        parts.push(part);
    }
    parts.join(" ")
}

/// `GRAPH` with a variable, in the form of each engine.
fn graph_part(random: &mut Random, depth: usize, fresh: &mut usize, group: Group) -> String {
    let of = if random.chance(75) { "?a" } else { variable(random) };
    let inner = inner(random, of, depth, fresh, group);
    let (ours, theirs) = (for_vervet(&inner), for_oxigraph(&inner));
    let branch = |graph: usize| {
        format!(
            "{{ {{ GRAPH <urn:g{graph}> {{ {theirs} }} }} {ABSENT}{graph} VALUES {of} {{ <urn:g{graph}> }} }}"
        )
    };
    let union = (0..GRAPHS).map(branch).collect::<Vec<_>>().join(" UNION ");
    choice(&format!("GRAPH {of} {{ {ours} }}"), &union)
}

/// Followed by the number of a graph; see [`without_absent`].
const ABSENT: &str = "#graph";

/// The text for Oxigraph without the branches of graphs that have no statements in `trig`.
///
/// A group without patterns has a solution in any graph that `GRAPH` names with an IRI, existing or not.
pub(crate) fn without_absent(text: &str, trig: &str) -> String {
    (0..GRAPHS).fold(text.to_owned(), |text, graph| {
        let exists = trig.contains(&format!("<urn:g{graph}> {{"));
        text.replace(&format!("{ABSENT}{graph}"), if exists { "" } else { "FILTER(false)" })
    })
}

/// A group, without its braces.
pub(crate) fn outer(random: &mut Random, group: Group) -> String {
    let mut fresh = 0;
    let mut parts = Vec::new();
    if random.chance(30) {
        parts.push(pattern(random, "?a"));
    }
    for _ in 0..1 + random.below(2) {
        let part = graph_part(random, 1, &mut fresh, group);
        parts.push(match random.below(10) {
            0 => format!("OPTIONAL {{ {part} }}"),
            1 => format!("MINUS {{ {part} }}"),
            2 => format!("{{ {part} }} UNION {{ {} }}", pattern(random, "?a")),
            3 if is_substitutable(&part) => {
                let not = if random.chance(50) { "NOT " } else { "" };
                format!("{} FILTER {not}EXISTS {{ {part} }}", pattern(random, "?a"))
            }
            _ => part,
        });
    }
    parts.join(" ")
}

/// Whether both engines substitute values of outer rows in the part alike; see [`crate::random`].
fn is_substitutable(part: &str) -> bool {
    [")*", ")?", "MINUS", "BIND(", "SELECT"].iter().all(|other| !part.contains(other))
}
