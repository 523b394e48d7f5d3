//! Random queries whose steps compute values that later steps need, with sub-queries that are joined, and
//! groups of computed values. The results do not depend on the order of rows.

use crate::random_terms::Random;

/// A query about predicates below `predicates`.
pub(crate) fn query(random: &mut Random, predicates: usize) -> String {
    let mut parts = vec![edge(random, "?a", "?b", predicates)];
    let mut bound = vec!["?a", "?b"];
    let names = ["?c", "?d"];
    let mut computed = Vec::new();
    for at in 0..2 + random.below(3) {
        match random.below(4) {
            0 | 1 if bound.len() < 4 => {
                let (from, to) = (random.pick(&bound), names[bound.len() - 2]);
                parts.push(edge(random, from, to, predicates));
                bound.push(to);
            }
            2 => parts.push(sub_query(random, at, &bound, predicates)),
            _ => {
                let variable = format!("?y{at}");
                parts.push(format!("BIND({} AS {variable})", value(random, &bound)));
                computed.push(variable);
            }
        }
    }
    if random.chance(40) {
        let (one, other) = (random.pick(&bound), random.pick(&bound));
        parts.push(format!("FILTER(STRLEN(STR({one})) <= STRLEN(STR({other})) + {})", random.below(3)));
    }
    let inner = parts.join(" ");
    let shown: Vec<&str> = computed.iter().map(String::as_str).chain(bound.iter().copied()).collect();
    let key = random.pick(&shown);
    match random.below(4) {
        0 => format!("SELECT DISTINCT {key} {} {{ {inner} }}", shown[0]),
        1 => format!("SELECT {} {{ {inner} }}", shown.join(" ")),
        _ => {
            let of = random.pick(&bound);
            let groups = groups(random, of);
            format!("SELECT {key} {groups} {{ {inner} }} GROUP BY {key} {}", having(random))
        }
    }
}

fn edge(random: &mut Random, from: &str, to: &str, predicates: usize) -> String {
    let predicate = random.below(predicates);
    match random.chance(50) {
        true => format!("{from} <urn:p{predicate}> {to} ."),
        false => format!("{to} <urn:p{predicate}> {from} ."),
    }
}

/// An expression over variables: texts that are too long for an id, IRIs of the graph and others, numbers,
/// errors.
fn value(random: &mut Random, of: &[&str]) -> String {
    let (one, other) = (random.pick(of), random.pick(of));
    match random.below(7) {
        0 => format!("CONCAT(\"a longer text of \", STR({one}))"),
        1 => format!("IRI(CONCAT(\"urn:v\", STR(STRLEN(STR({one})))))"),
        2 => format!("STRLEN(STR({one})) / 7"),
        3 => format!("IF(STR({one}) < STR({other}), STRLANG(STR({one}), \"en\"), {other})"),
        4 => format!("{one} + 1"),
        5 => format!("COALESCE({one} * 2, UCASE(STR({other})))"),
        _ => format!("STRDT(STR({one}), <urn:type>)"),
    }
}

/// A sub-query with groups, joined in one of several ways.
fn sub_query(random: &mut Random, at: usize, bound: &[&str], predicates: usize) -> String {
    let on = random.pick(bound);
    let (predicate, result) = (random.below(predicates), format!("?m{at}"));
    let aggregate = match random.below(3) {
        0 => format!("(COUNT(*) AS {result})"),
        1 => format!("(CONCAT(\"number \", STR(COUNT(?u{at}))) AS {result})"),
        _ => format!("(MAX(STR(?u{at})) AS {result})"),
    };
    let inner = format!("SELECT {on} {aggregate} {{ {on} <urn:p{predicate}> ?u{at} }} GROUP BY {on}");
    match random.below(4) {
        0 => format!("OPTIONAL {{ {inner} }}"),
        1 => format!("MINUS {{ {inner} HAVING (COUNT(*) > {}) }}", 1 + random.below(6)),
        _ => format!("{{ {inner} }}"),
    }
}

/// Aggregates whose values do not depend on the order of rows.
fn groups(random: &mut Random, of: &str) -> String {
    let all = [
        "(COUNT(*) AS ?n)".to_owned(),
        format!("(COUNT({of}) AS ?k)"),
        format!("(SUM(STRLEN(STR({of}))) AS ?s)"),
        format!("(AVG(STRLEN(STR({of})) / 3) AS ?m)"),
        format!("(MIN(STR({of})) AS ?l)"),
        format!("(MAX(IF(STRLEN(STR({of})) > 6, STR({of}), 1 / 0)) AS ?x)"),
        format!("(COUNT(DISTINCT {of}) AS ?q)"),
    ];
    let mut chosen: Vec<&str> = all.iter().filter(|_| random.chance(40)).map(String::as_str).collect();
    if chosen.is_empty() {
        chosen.push(&all[3]);
    }
    chosen.join(" ")
}

fn having(random: &mut Random) -> &'static str {
    match random.below(4) {
        0 => "HAVING (COUNT(*) > 2)",
        1 => "HAVING (AVG(STRLEN(STR(?a))) > 4)",
        _ => "",
    }
}
