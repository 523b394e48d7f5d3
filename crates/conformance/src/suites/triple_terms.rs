//! Triple terms against Oxigraph: random expressions, and random patterns over random data (in a base, as
//! changes over it, and after reopening) give the same rows.
//!
//! The generator avoids intended differences: terms are in canonical form, `<` does not compare triple terms,
//! no literal has an unknown datatype where its value counts, alternatives of paths have another multiplicity
//! there, and empty paths do not find a triple term that occurs in no statement. `VERVET_SEED` chooses
//! another run.

use oxigraph::sparql::{QueryResults, SparqlEvaluator};
use oxigraph::store::Store;
use std::path::Path;
use vervet::{Database, Environment, Format};

fn random() -> fastrand::Rng {
    let seed = std::env::var("VERVET_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("VERVET_SEED={seed}");
    fastrand::Rng::with_seed(seed)
}

fn of<'t>(random: &mut fastrand::Rng, list: &[&'t str]) -> &'t str {
    list[random.usize(0..list.len())]
}

const PREFIX: &str = "PREFIX : <http://e/>\n";
const NODES: [&str; 3] = [":a", ":b", ":c"];
const LITERALS: [&str; 6] =
    ["1", "\"1\"^^<http://www.w3.org/2001/XMLSchema#decimal>", "2", "\"a \\\" b\\n\"", "\"a\"@en", "true"];

/// A triple term as data: `<<( s p o )>>`.
fn ground(random: &mut fastrand::Rng, depth: usize) -> String {
    let object = match random.usize(0..4) {
        0 if depth > 0 => ground(random, depth - 1),
        1 => of(random, &LITERALS).to_owned(),
        _ => of(random, &NODES).to_owned(),
    };
    format!("<<( {} {} {object} )>>", of(random, &NODES), of(random, &NODES))
}

fn term(random: &mut fastrand::Rng, depth: usize) -> String {
    if depth == 0 {
        return match random.usize(0..4) {
            0 => of(random, &LITERALS).to_owned(),
            1 => of(random, &NODES).to_owned(),
            2 => ground(random, 1),
            _ => "?v".to_owned(),
        };
    }
    let d = depth - 1;
    match random.usize(0..8) {
        0 | 1 => format!("TRIPLE({}, {}, {})", term(random, d), term(random, d), term(random, d)),
        2 => format!("SUBJECT({})", term(random, d)),
        3 => format!("PREDICATE({})", term(random, d)),
        4 => format!("OBJECT({})", term(random, d)),
        5 => format!("<<( :a ?v {} )>>", of(random, &["?v", "1", ":b", "<<( :a :b ?v )>>"])),
        6 => format!("IF({}, {}, {})", truth(random, d), term(random, d), term(random, d)),
        _ => format!("COALESCE({}, {})", term(random, d), term(random, d)),
    }
}

fn truth(random: &mut fastrand::Rng, depth: usize) -> String {
    let d = depth.saturating_sub(1);
    match random.usize(0..8) {
        0 | 1 => format!("({} {} {})", term(random, d), of(random, &["=", "!="]), term(random, d)),
        2 => format!("sameTerm({}, {})", term(random, d), term(random, d)),
        3 => format!("({} IN ({}, {}))", term(random, d), term(random, d), term(random, d)),
        4 => format!("isTRIPLE({})", term(random, d)),
        5 => {
            let test = of(random, &["isIRI", "isLITERAL", "isBLANK", "isNUMERIC"]);
            format!("{test}({})", term(random, d))
        }
        _ => format!("BOUND(?v) && isTRIPLE({})", term(random, d)),
    }
}

/// The rows as text, sorted.
fn ours(database: &Database, query: &str) -> Result<Vec<String>, String> {
    let solutions = database.select(&format!("{PREFIX}{query}")).map_err(|error| error.to_string())?;
    let mut rows = Vec::new();
    for row in solutions.rows() {
        let cell = |name: &String| match row.get(name) {
            Ok(term) => Ok(term.map(|term| term.to_string()).unwrap_or_default()),
            Err(error) => Err(error.to_string()),
        };
        rows.push(solutions.variables().iter().map(cell).collect::<Result<Vec<_>, _>>()?.join("\t"));
    }
    rows.sort();
    Ok(rows)
}

fn theirs(store: &Store, query: &str) -> Result<Vec<String>, String> {
    let parsed = SparqlEvaluator::new().parse_query(&format!("{PREFIX}{query}"));
    let parsed = parsed.map_err(|error| format!("{query}: {error}"))?;
    let results = parsed.on_store(store).execute().map_err(|error| error.to_string())?;
    let QueryResults::Solutions(solutions) = results else { return Err("no solutions".to_owned()) };
    let mut rows = Vec::new();
    for solution in solutions {
        let solution = solution.map_err(|error| error.to_string())?;
        let cell = |term: &Option<oxrdf::Term>| term.as_ref().map(ToString::to_string).unwrap_or_default();
        rows.push(solution.values().iter().map(cell).collect::<Vec<_>>().join("\t"));
    }
    rows.sort();
    Ok(rows)
}

#[test]
fn expressions_have_the_same_values() {
    let mut random = random();
    let (database, store) = (Database::in_memory(), Store::new().expect("a store"));
    let mut values = 0;
    for _ in 0..1_500 {
        let depth = random.usize(0..4);
        let expression = match random.bool() {
            true => term(&mut random, depth),
            false => truth(&mut random, depth),
        };
        let (a, b) = (ground(&mut random, 2), of(&mut random, &LITERALS));
        let query = format!("SELECT ?v ({expression} AS ?x) {{ VALUES ?v {{ {a} {b} :a UNDEF }} }}");
        let expected = theirs(&store, &query).expect("it runs there");
        assert_eq!(ours(&database, &query).as_ref(), Ok(&expected), "{query}");
        values += expected.iter().filter(|row| !row.ends_with('\t')).count();
    }
    assert!(values > 1_500, "most are errors: {values}");
}

/// A statement of data, which is also a line of Turtle.
fn statement(random: &mut fastrand::Rng) -> String {
    let object = match random.usize(0..4) {
        0 => of(random, &LITERALS).to_owned(),
        1 => of(random, &NODES).to_owned(),
        _ => ground(random, 2),
    };
    format!("{} {} {object} .\n", of(random, &NODES), of(random, &[":p", ":q"]))
}

fn slot(random: &mut fastrand::Rng, constants: &[&str]) -> String {
    match random.usize(0..4) {
        0 => of(random, constants).to_owned(),
        _ => of(random, &["?a", "?b", "?c", "?d"]).to_owned(),
    }
}

fn pattern_term(random: &mut fastrand::Rng, depth: usize) -> String {
    let object = match random.usize(0..3) {
        0 if depth > 0 => pattern_term(random, depth - 1),
        1 => slot(random, &LITERALS),
        _ => slot(random, &NODES),
    };
    format!("<<( {} {} {object} )>>", slot(random, &NODES), slot(random, &NODES))
}

fn pattern(random: &mut fastrand::Rng) -> String {
    let object = match random.usize(0..3) {
        0 => slot(random, &NODES),
        _ => pattern_term(random, 1),
    };
    let predicate = of(random, &[":p", ":q", ":p", "?d", ":p/:q"]);
    format!("{} {predicate} {object} . ", slot(random, &NODES))
}

#[test]
fn patterns_find_the_same_statements() {
    let mut random = random();
    let mut found = 0;
    for round in 0..12 {
        let lines: Vec<String> = (0..14).map(|_| statement(&mut random)).collect();
        let store = Store::new().expect("a store");
        let document = format!("PREFIX : <http://e/>\n{}", lines.concat());
        store.load_from_slice(oxigraph::io::RdfFormat::Turtle, &document).expect("loads there");
        let environment = Environment::simulated(round);
        let open = || Database::open_or_create_in(environment.clone(), Path::new("/db")).expect("opens");
        let database = open();
        // A part in the base, the rest as changes; and a statement that is removed again.
        let (base, changes) = lines.split_at(random.usize(0..lines.len()));
        let text = format!("PREFIX : <http://e/>\n{}", base.concat());
        database.load_text(Format::Turtle, &text).expect("loads");
        let gone = ground(&mut random, 1);
        let insert = format!("{PREFIX}INSERT DATA {{ :x :p {gone} . {} }}", changes.concat());
        database.update(&insert).expect("runs");
        database.update(&format!("{PREFIX}DELETE DATA {{ :x :p {gone} }}")).expect("runs");
        let queries: Vec<String> = (0..60)
            .map(|_| {
                let mut text = (0..random.usize(1..4)).map(|_| pattern(&mut random)).collect::<String>();
                if random.usize(0..4) == 0 {
                    text = format!("{} OPTIONAL {{ {text} }}", pattern(&mut random));
                }
                if random.usize(0..4) == 0 {
                    text += &format!("FILTER({})", truth(&mut random, 1).replace("?v", "?a"));
                }
                format!("SELECT ?a ?b ?c ?d {{ {text} }}")
            })
            .collect();
        let check = |database: &Database, when: &str| {
            let mut rows = 0;
            for query in &queries {
                // In Oxigraph, a variable of a triple term bound to a term that cannot be its subject is an
                // error; here it has no solution.
                let Ok(expected) = theirs(&store, query) else {
                    ours(database, query).expect("it runs");
                    continue;
                };
                assert_eq!(ours(database, query).as_ref(), Ok(&expected), "{when}: {query}\n{document}");
                rows += expected.len();
            }
            database.check().expect("whole");
            rows
        };
        found += check(&database, "changes");
        drop(database);
        let database = open();
        check(&database, "opened again");
        database.checkpoint().expect("a checkpoint");
        check(&database, "after a checkpoint");
        drop(database);
        check(&open(), "opened again after a checkpoint");
    }
    assert!(found > 200, "most find nothing: {found}");
}
