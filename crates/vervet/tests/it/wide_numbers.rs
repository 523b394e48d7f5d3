//! Integers and decimals of any length in both languages: loaded, inserted later, and both, on one thread and
//! on several. The data are conversion factors as vocabularies of units have them.

use std::fmt::Write as _;
use std::time::Duration;
use vervet::{Database, Format, OutputFormat, QueryOptions};

const FACTORS: [(&str, &str); 8] = [
    ("turn", "0.0002777777777777777777777777777777778"),
    ("hour", "3.6"),
    ("mole", "602214076000000000000000.0"),
    ("sextillion", "1000000000000000000000"),
    ("kilo", "1000"),
    ("half", "5.0e-1"),
    ("tiny", "0.00000000000000000000000000000000000000000000000000000000001"),
    ("negative", "-170141183460469231731687303715884105729"),
];

/// The same graph: all of it loaded, all of it inserted, and half of each.
fn databases() -> Vec<Database> {
    [8, 0, 4]
        .into_iter()
        .map(|loaded| {
            let text = |factors: &[(&str, &str)]| {
                factors.iter().fold(String::new(), |mut text, (name, factor)| {
                    writeln!(text, "<urn:vervet:vertex:{name}> <urn:vervet:key:factor> {factor} .")
                        .expect("a string");
                    text
                })
            };
            let database = Database::in_memory();
            database.load_text(Format::Turtle, &text(&FACTORS[..loaded])).expect("it loads");
            if loaded < FACTORS.len() {
                database
                    .update(&format!("INSERT DATA {{ {} }}", text(&FACTORS[loaded..])))
                    .expect("it inserts");
            }
            database
        })
        .collect()
}

fn rows(database: &Database, query: &str, threads: usize) -> Vec<String> {
    let heavy_from = if threads == 1 { vervet::HEAVY_FROM_DEFAULT } else { Duration::ZERO };
    let options = QueryOptions { heavy_from, ..QueryOptions::default().with_threads(threads) };
    let mut bytes = Vec::new();
    database
        .write(query, &options, OutputFormat::Tsv, &mut bytes)
        .unwrap_or_else(|error| panic!("{query}: {error}"));
    let text = String::from_utf8(bytes).expect("TSV is UTF-8");
    let drop = [
        "<urn:vervet:vertex:",
        "^^<http://www.w3.org/2001/XMLSchema#integer>",
        "^^<http://www.w3.org/2001/XMLSchema#decimal>",
        "\"",
        ">",
    ];
    let clean = |line: &str| drop.iter().fold(line.to_owned(), |line, part| line.replace(part, ""));
    text.lines().skip(1).map(clean).collect()
}

#[test]
fn sparql_of_wide_numbers() {
    let sum = "-170141183460468628517611303715884104725.39972222222222222222222222222222222219999999999999999999999";
    let pattern = "?u <urn:vervet:key:factor> ?f";
    for database in databases() {
        for threads in [1, 4] {
            let check = |query: &str, expected: &[&str]| {
                assert_eq!(rows(&database, query, threads), expected, "{threads} threads: {query}");
            };
            let sorted = ["negative", "tiny", "turn", "half", "hour", "kilo", "sextillion", "mole"];
            check(&format!("SELECT ?u {{ {pattern} }} ORDER BY ?f"), &sorted);
            let mut descending = sorted;
            descending.reverse();
            check(&format!("SELECT ?u {{ {pattern} }} ORDER BY DESC(?f)"), &descending);
            check(&format!("SELECT ?u {{ {pattern} }} ORDER BY ?f LIMIT 3"), &sorted[..3]);
            check(&format!("SELECT (MIN(?f) AS ?m) {{ {pattern} }}"), &[FACTORS[7].1]);
            check(&format!("SELECT (MAX(?f) AS ?m) {{ {pattern} }}"), &[FACTORS[2].1]);
            check(&format!("SELECT (COUNT(*) AS ?n) {{ {pattern} FILTER(isNumeric(?f)) }}"), &["8"]);
            for (condition, expected) in [
                ("?f < 1", &sorted[..4]),
                ("?f > 5", &sorted[5..]),
                ("5 < ?f", &sorted[5..]),
                ("?f > 5 && ?f < 1e22", &sorted[5..7]),
                ("?f >= 1000000000000000000000.0", &sorted[6..]),
                ("?f > 1e21", &sorted[7..]),
                ("?f = 1e21", &sorted[6..7]),
                ("?f = 1000000000000000000000.00", &sorted[6..7]),
                ("?f < -1e38", &sorted[..1]),
                ("?f < -170141183460469231731687303715884105728", &sorted[..1]),
                ("?f IN (3.60, 1000000000000000000000.0)", &["hour", "sextillion"]),
                ("?f * 3600 = 1.00000000000000000000000000000000008", &["turn"][..]),
                ("?f / 10 = 100000000000000000000", &["sextillion"]),
            ] {
                check(&format!("SELECT ?u {{ {pattern} FILTER({condition}) }} ORDER BY ?f"), expected);
            }
            let exact = "FILTER(datatype(?f) != <http://www.w3.org/2001/XMLSchema#double>)";
            check(&format!("SELECT (SUM(?f) AS ?s) {{ {pattern} {exact} }}"), &[sum]);
            check(
                &format!(
                    "SELECT ?n (COUNT(*) AS ?c) {{ {pattern} BIND(IF(?f > 0, 1, 0) AS ?n) }} GROUP BY ?n ORDER BY ?n"
                ),
                &["0\t1", "1\t7"],
            );
        }
    }
}

/// The other language reads the same numbers, in the same order.
#[test]
fn gremlin_of_wide_numbers() {
    for database in databases() {
        let run = |text: &str| -> Vec<String> {
            let results = database.gremlin(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            results.values().map(|value| value.to_string().replace('"', "")).collect()
        };
        let sorted = ["negative", "tiny", "turn", "half", "hour", "kilo", "sextillion", "mole"];
        assert_eq!(run("g.V().order().by('factor').id()"), sorted);
        assert_eq!(run("g.V().has('factor', gt(5)).order().by('factor').id()"), sorted[5..]);
        assert_eq!(run("g.V().has('factor', lt(1)).order().by('factor').id()"), sorted[..4]);
        assert_eq!(run("g.V().has('factor', gt(1000000000000000000000n)).id()"), sorted[7..]);
        assert_eq!(run("g.V().has('factor', eq(1000000000000000000000n)).id()"), sorted[6..7]);
        assert_eq!(run("g.V().values('factor').is(gt(5)).count()"), ["3L"]);
        // Printed as Java prints a BigDecimal.
        assert_eq!(run("g.V().values('factor').max()"), ["6.022140760000000000000000e23M"]);
        assert_eq!(run("g.V().values('factor').min()"), ["-1.70141183460469231731687303715884105729e38M"]);
        let sum = run("g.V().has('factor', gt(500)).values('factor').sum()");
        assert_eq!(sum, ["6.032140760000000000010000e23M"]);
    }
}
