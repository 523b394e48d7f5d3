//! Random queries under set semantics, without regard to types: chains, alternatives with equal branches,
//! bounded repetitions and closures between a few variables, of which some are projected. And, under bag
//! semantics, counts of parts that share no variable.
//!
//! Oxigraph counts pairs of alternatives differently (see `random_path.rs`), so under bag semantics there are
//! chains only; paths that may be empty have variables at both ends, and do not occur in `EXISTS`.

use crate::random_terms::{Random, predicate, vertex};

const VARIABLES: [&str; 5] = ["?a", "?b", "?c", "?d", "?e"];

fn variable(random: &mut Random) -> &'static str {
    VARIABLES[random.below(VARIABLES.len())]
}

fn chain(random: &mut Random, most: usize) -> String {
    let step =
        |random: &mut Random| format!("{}{}", if random.chance(40) { "^" } else { "" }, predicate(random));
    (0..1 + random.below(most)).map(|_| step(random)).collect::<Vec<_>>().join("/")
}

/// Alternatives of chains, some of them equal.
fn alternatives(random: &mut Random) -> String {
    let mut all = vec![chain(random, 3)];
    for _ in 0..random.below(3) {
        let same = random.chance(50).then(|| all[random.below(all.len())].clone());
        all.push(same.unwrap_or_else(|| chain(random, 3)));
    }
    all.iter().map(|one| format!("({one})")).collect::<Vec<_>>().join("|")
}

fn path(random: &mut Random) -> String {
    let part = alternatives(random);
    match random.below(10) {
        0 | 1 => format!("({part})?/({part})?/({part})?"),
        2 => format!("({part})?/({})?", alternatives(random)),
        3 => format!("({part})*"),
        4 => format!("({part})+/({})", chain(random, 2)),
        5 => format!("({})/({part})?", chain(random, 2)),
        6 | 7 => chain(random, 4),
        _ => part,
    }
}

fn conjunct(random: &mut Random, path: &str) -> String {
    format!("{} {path} {} .", variable(random), variable(random))
}

/// Conjuncts with paths of any kind.
fn conjuncts(random: &mut Random, most: usize) -> String {
    let mut text = String::new();
    let mut last: Option<String> = None;
    for _ in 0..1 + random.below(most) {
        // Equal paths make some conjuncts redundant.
        let path = match last.take().filter(|_| random.chance(25)) {
            Some(path) => path,
            None => path(random),
        };
        text += &conjunct(random, &path);
        last = Some(path);
    }
    text
}

/// `EXISTS` over variables that some rows, or some of its own solutions, leave unbound.
fn half_bound_exists(random: &mut Random) -> String {
    let one = |random: &mut Random| {
        let path = chain(random, 2);
        conjunct(random, &path)
    };
    let not = if random.chance(60) { "NOT " } else { "" };
    let inner = match random.below(4) {
        0 => format!("{{ {} }} UNION {{ {} }}", one(random), one(random)),
        1 => format!(
            "VALUES ({} {}) {{ (UNDEF {}) ({} UNDEF) }} {}",
            VARIABLES[random.below(2)],
            VARIABLES[2 + random.below(2)],
            vertex(random),
            vertex(random),
            one(random)
        ),
        2 => format!("{} FILTER({} != {})", one(random), variable(random), variable(random)),
        _ => one(random),
    };
    let optional = one(random);
    let before = match random.below(3) {
        0 => format!("{{ {} }} UNION {{ {} }}", one(random), one(random)),
        _ => format!("OPTIONAL {{ {optional} }}"),
    };
    format!("{before} FILTER {not}EXISTS {{ {inner} }}")
}

/// A group under set semantics, without its braces.
fn group(random: &mut Random) -> String {
    let mut parts = vec![conjuncts(random, 4)];
    for _ in 0..random.below(3) {
        let part = match random.below(13) {
            0 => format!("FILTER({} != {})", variable(random), variable(random)),
            1 => format!("OPTIONAL {{ {} }}", conjuncts(random, 2)),
            2 => format!("MINUS {{ {} }}", conjuncts(random, 2)),
            3 => format!("{{ {} }} UNION {{ {} }}", conjuncts(random, 2), conjuncts(random, 2)),
            4 => {
                let same = conjuncts(random, 1);
                format!("{{ {same} }} UNION {{ {same} }}")
            }
            5 => format!("GRAPH <urn:g{}> {{ {} }}", random.below(2), conjuncts(random, 2)),
            6 => format!("GRAPH ?e {{ {} }}", conjuncts(random, 2)),
            7 => {
                let path = chain(random, 3);
                let not = if random.chance(50) { "NOT " } else { "" };
                format!("FILTER {not}EXISTS {{ {} }}", conjunct(random, &path))
            }
            12 => half_bound_exists(random),
            8 => format!("{} {} {} .", variable(random), predicate(random), vertex(random)),
            9 => format!("{{ SELECT DISTINCT {} {{ {} }} }}", variable(random), conjuncts(random, 2)),
            10 => format!("{} ?p {} .", variable(random), variable(random)),
            _ => conjuncts(random, 1),
        };
        parts.push(part);
    }
    parts.join(" ")
}

/// Some variables, at least one.
fn projection(random: &mut Random) -> String {
    let first = random.below(VARIABLES.len());
    (0..1 + random.below(3)).map(|at| VARIABLES[(first + at) % VARIABLES.len()]).collect::<Vec<_>>().join(" ")
}

/// Conjuncts whose number of solutions counts.
fn bag(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..2 + random.below(3) {
        let path = chain(random, 2);
        text += &conjunct(random, &path);
    }
    if random.chance(20) {
        text += &format!(" FILTER({} != {})", variable(random), variable(random));
    }
    text
}

/// A query, and whether `LIMIT` leaves the choice of rows open.
pub(crate) fn query(random: &mut Random) -> (String, bool) {
    if random.chance(20) {
        let inner = bag(random);
        let of = variable(random);
        let text = match random.below(4) {
            0 => format!("SELECT (COUNT(*) AS ?r) {{ {inner} }}"),
            1 => format!("SELECT (COUNT({of}) AS ?r) {{ {inner} }}"),
            2 => format!("SELECT {of} (COUNT(*) AS ?r) {{ {inner} }} GROUP BY {of}"),
            _ => format!("SELECT {} {{ {inner} }}", projection(random)),
        };
        return (text, false);
    }
    let inner = group(random);
    let columns = projection(random);
    let (of, by) = (variable(random), variable(random));
    match random.below(12) {
        0 | 1 => (format!("ASK {{ {inner} }}"), false),
        2 => (format!("SELECT (COUNT(DISTINCT {of}) AS ?r) {{ {inner} }}"), false),
        3 => (format!("SELECT {by} (COUNT(DISTINCT {of}) AS ?r) {{ {inner} }} GROUP BY {by}"), false),
        4 => (format!("SELECT {by} (MIN(STR({of})) AS ?r) {{ {inner} }} GROUP BY {by}"), false),
        5 | 6 => (format!("SELECT (COUNT(*) AS ?r) {{ SELECT DISTINCT {columns} {{ {inner} }} }}"), false),
        7 => {
            let outside = format!("{of} {} {by} .", predicate(random));
            (format!("SELECT {by} {{ {outside} {{ SELECT DISTINCT {columns} {{ {inner} }} }} }}"), false)
        }
        8 => (format!("SELECT DISTINCT {columns} {{ {inner} }} ORDER BY {of}"), false),
        9 => (format!("SELECT DISTINCT {columns} {{ {inner} }} LIMIT {}", 1 + random.below(5)), true),
        _ => (format!("SELECT DISTINCT {columns} {{ {inner} }}"), false),
    }
}
