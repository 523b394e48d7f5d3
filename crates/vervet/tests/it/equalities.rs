//! Equalities between parts of a query: as join keys they have the same solutions as conditions on the
//! product of the parts, for values of all types.
#![allow(clippy::unwrap_used, reason = "tests")]

use vervet::{Answer, Database, Format, QueryOptions};
use vervet_testkit::{Random, seed};

const PREFIXES: &str = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> ";

/// Values, some of which are equal to others. Integers around 2^53 and 2^24 are equal as doubles and floats.
const VALUES: &[&str] = &[
    "1",
    "\"01\"^^xsd:integer",
    "1.0",
    "\"1.00\"^^xsd:decimal",
    "1e0",
    "\"1\"^^xsd:float",
    "\"1\"^^xsd:int",
    "\"1\"^^xsd:long",
    "\"1\"^^xsd:unsignedByte",
    "\"1\"",
    "\"1\"@en",
    "0",
    "-0.0e0",
    "\"-0\"^^xsd:integer",
    "0.1",
    "0.1e0",
    "\"0.1\"^^xsd:float",
    "9007199254740992",
    "9007199254740993",
    "9007199254740992.0",
    "9.007199254740992e15",
    "\"9007199254740992\"^^xsd:float",
    "16777217",
    "16777217.0e0",
    "\"16777216\"^^xsd:float",
    "1000000000000000000000000000000000000000000000",
    "1000000000000000000000000000000000000000000000.0",
    "\"01000000000000000000000000000000000000000000000\"^^xsd:nonNegativeInteger",
    "1e45",
    "1000000000000000000000000000000000000000000000.5",
    "0.1000000000000000000000000000000000000000000001",
    "\"NaN\"^^xsd:double",
    "\"NaN\"^^xsd:float",
    "\"INF\"^^xsd:double",
    "\"INF\"^^xsd:float",
    "true",
    "\"1\"^^xsd:boolean",
    "false",
    "\"2024-01-01T12:00:00Z\"^^xsd:dateTime",
    "\"2024-01-01T13:00:00+01:00\"^^xsd:dateTime",
    "\"2024-01-01T12:00:00\"^^xsd:dateTime",
    "\"2024-01-01\"^^xsd:date",
    "\"2024-01-01Z\"^^xsd:date",
    "\"P1D\"^^xsd:duration",
    "\"PT24H\"^^xsd:dayTimeDuration",
    "\"2024\"^^xsd:gYear",
    "\"a\"",
    "\"a much longer text\"",
    "\"a much longer text\"@en",
    "\"a much longer text\"@EN",
    "\"a\"^^xsd:integer",
    "\"b\"^^xsd:integer",
    "\"x\"^^:unknown",
    "\"y\"^^:unknown",
    ":a1",
    ":b1",
    "<<( :a1 :p 1 )>>",
    "<<( :a1 :p 1.0 )>>",
];

/// Subjects `:a…` with `:p` and `:b…` with `:q`, each with one of [`VALUES`]; a few have more statements.
fn database() -> Database {
    let mut text = PREFIXES.to_owned();
    for (number, value) in VALUES.iter().enumerate() {
        text += &format!(
            ":a{number} :p {value} ; :n {} . :b{number} :q {value} ; :m {} .\n",
            number % 7,
            number % 5
        );
    }
    text += ":a1 :r :b1, :b2 . :a2 :r :b1 . :b1 :s :a1 . :b2 :s :a3 .";
    let database = Database::in_memory();
    database.load_text(Format::Turtle, &text).unwrap();
    database
}

/// The rows of a query, sorted.
fn rows(database: &Database, text: &str, optimize: bool, threads: usize) -> Vec<String> {
    let options = QueryOptions { optimize, threads: Some(threads), ..QueryOptions::default() };
    let answer = database.query_with(text, &options).unwrap_or_else(|error| panic!("{error}: {text}"));
    let Answer::Solutions(found) = answer else { panic!("no solutions: {text}") };
    let of_row = |row: vervet::Row<'_>| {
        let value = |name: &String| row.get(name).unwrap().map_or_else(String::new, |term| term.to_string());
        found.variables().iter().map(value).collect::<Vec<_>>().join(" | ")
    };
    let mut rows: Vec<String> = found.rows().map(of_row).collect();
    rows.sort();
    rows
}

#[track_caller]
fn check(database: &Database, text: &str) -> usize {
    let text = format!("{PREFIXES}{text}");
    let expected = rows(database, &text, false, 1);
    for threads in [1, 2] {
        let found = rows(database, &text, true, threads);
        let [more, fewer] = [(&found, &expected), (&expected, &found)]
            .map(|(these, those)| these.iter().find(|row| !those.contains(row)));
        let counts = (found.len(), expected.len());
        assert!(
            found == expected,
            "{threads} threads: {text}: {counts:?} rows, more: {more:?}, fewer: {fewer:?}"
        );
    }
    expected.len()
}

#[test]
fn values_of_all_types_are_joined_as_they_are_compared() {
    let database = database();
    // By the table of operators of SPARQL 1.1 and XPath, counted by hand: nine numbers are equal to 1.
    let ones = "FILTER(?x = 1 && ?x = ?y)";
    assert_eq!(check(&database, &format!("SELECT * {{ ?a :p ?x . ?b :q ?y {ones} }}")), 81);
    let texts = check(&database, "SELECT * { ?a :p ?x . ?b :q ?y FILTER(?x = ?y && ?x = \"a\") }");
    assert_eq!(texts, 1);
    let all = check(&database, "SELECT * { ?a :p ?x . ?b :q ?y FILTER(?x = ?y) }");
    let terms = check(&database, "SELECT * { ?a :p ?x . ?b :q ?y FILTER(sameTerm(?x, ?y)) }");
    // Each term is the same as itself; language tags have one case.
    assert_eq!(terms, VALUES.len() + 2);
    assert!(all > terms + 80, "{all}");
}

#[test]
fn equalities_hold_in_every_place() {
    let database = database();
    for (text, some) in [
        // Two and three parts, also connected by resources.
        ("SELECT * { ?a :p ?x ; :n ?n . ?b :q ?y ; :m ?m FILTER(?x = ?y && ?n < ?m) }", true),
        ("SELECT * { ?a :p ?x . ?b :q ?y . ?c :n ?z FILTER(?x = ?y) FILTER(?y = ?z) }", true),
        ("SELECT * { ?a :n ?x . ?b :m ?y . ?c :n ?z FILTER(?x = ?y && ?y = ?z && ?x = ?z) }", true),
        ("SELECT * { ?a :r ?x . ?y :s ?z FILTER(?x = ?y) }", true),
        ("SELECT * { ?a :r ?x . ?y :s ?z FILTER(?y = ?x) }", true),
        ("SELECT * { ?a :r ?x . ?y :s ?z . ?v :p ?w FILTER(?y = ?x && ?v = ?z && ?w = ?w) }", true),
        ("SELECT * { ?x :p ?v . ?y :q ?w FILTER(?x = ?y) }", false),
        ("SELECT * { ?s ?p ?x . :p ?q ?y FILTER(?p = ?q) }", false),
        ("SELECT * { ?s ?p ?x . ?t ?q :b1 FILTER(?p = ?q) }", true),
        // Equal variables are visible, counted and grouped.
        ("SELECT ?y { ?a :r ?x . ?y :s ?z FILTER(?x = ?y) }", true),
        ("SELECT DISTINCT ?x ?y { ?a :p ?x . ?b :q ?y FILTER(?x = ?y) }", true),
        ("SELECT (COUNT(*) AS ?c) { ?a :p ?x . ?b :q ?y FILTER(?x = ?y) }", true),
        ("SELECT (COUNT(DISTINCT *) AS ?c) { ?a :p ?x . ?b :q ?y FILTER(?x = ?y) }", true),
        ("SELECT ?y (COUNT(*) AS ?c) { ?a :r ?x . ?y :s ?z FILTER(?x = ?y) } GROUP BY ?y", true),
        // Optional parts.
        ("SELECT * { ?a :p ?x OPTIONAL { ?b :q ?y FILTER(?x = ?y) } }", true),
        ("SELECT * { ?a :p ?x OPTIONAL { ?b :q ?y ; :m ?m FILTER(?x = ?y && ?m > 2) } }", true),
        ("SELECT * { ?a :r ?x OPTIONAL { ?y :s ?z FILTER(?x = ?y) } FILTER(!BOUND(?z)) }", false),
        ("SELECT * { ?a :r ?x . ?a :p ?p OPTIONAL { ?y :s ?z FILTER(?x = ?y) } }", true),
        ("SELECT * { ?a :n ?n OPTIONAL { ?b :m ?m FILTER(?n = ?m) } OPTIONAL { ?b :q ?q } }", true),
        ("SELECT * { ?a :p ?x OPTIONAL { ?b :q ?y . ?c :m ?z FILTER(?y = ?z) FILTER(?x = ?y) } }", true),
        ("SELECT * { ?a :p ?x . ?b :q ?y OPTIONAL { ?a :r ?c } FILTER(?x = ?y) }", true),
        // A variable that is not always bound is no key.
        ("SELECT * { ?a :n 1 OPTIONAL { ?a :r ?x } ?b :q ?y FILTER(?x = ?y) }", true),
        ("SELECT * { { ?a :p ?x } UNION { ?a :n ?n } ?b :q ?y FILTER(?x = ?y) }", true),
        ("SELECT * { { ?a :p ?x } UNION { ?a :n ?x } ?b :q ?y FILTER(?x = ?y) }", true),
        // Nested groups, exclusions, tables, sub-queries, computed variables.
        ("SELECT * { ?c :n ?z { ?a :p ?x . ?b :q ?y FILTER(?x = ?y) } FILTER(?z = ?x) }", true),
        ("SELECT * { ?a :p ?x MINUS { ?b :q ?y . ?a :n ?n FILTER(?y = ?n) } }", true),
        ("SELECT * { ?a :p ?x FILTER EXISTS { ?b :q ?y FILTER(?x = ?y) } }", true),
        ("SELECT * { ?a :p ?x FILTER NOT EXISTS { ?b :q ?y . ?c :m ?m FILTER(?x = ?y && ?y = ?m) } }", true),
        ("SELECT * { VALUES ?x { 1 1.0 :a1 \"a\" UNDEF } ?b :q ?y FILTER(?x = ?y) }", true),
        ("SELECT * { VALUES ?x { 1 1.0 :a1 \"a\" } ?b :q ?y FILTER(?x = ?y) }", true),
        ("SELECT * { { SELECT ?x { ?a :p ?x } LIMIT 5 } ?b :q ?y FILTER(?x = ?y) }", true),
        (
            "SELECT * { { SELECT ?n (COUNT(*) AS ?x) { ?a :n ?n } GROUP BY ?n } ?b :q ?y FILTER(?x = ?y) }",
            false,
        ),
        ("SELECT * { ?a :p ?v BIND(?v AS ?x) ?b :q ?y FILTER(?x = ?y) }", true),
        ("SELECT * { ?a :p ?x . ?b :q ?y BIND(?x AS ?z) FILTER(?x = ?y && ?z = ?y) }", true),
        ("SELECT * { ?a (:r|:p) ?x . ?b :q ?y FILTER(?x = ?y) }", true),
        ("SELECT * { ?a :p ?x . ?b :q ?y FILTER(?x = ?y || ?x = 0) }", true),
        ("SELECT * { ?a :p ?x . ?b :q ?y FILTER(!(?x = ?y) && ?a = :a1) }", true),
    ] {
        assert_eq!(check(&database, text) > 0, some, "{text}");
    }
}

#[test]
fn comparisons_hold_in_every_place() {
    let database = database();
    for comparator in ["<", "<=", ">", ">="] {
        for (text, some) in [
            ("SELECT * { ?a :p ?x . ?b :q ?y FILTER(?x < ?y) }", true),
            ("SELECT ?x { ?a :p ?x . ?b :q ?y FILTER(?x < ?y) }", true),
            ("SELECT (COUNT(*) AS ?c) { ?a :p ?x . ?b :q ?y FILTER(?x < ?y) }", true),
            ("SELECT ?b (COUNT(?x) AS ?c) { ?a :p ?x . ?b :q ?y FILTER(?x < ?y) } GROUP BY ?b", true),
            ("SELECT DISTINCT ?x { ?a :p ?x . ?b :q ?y FILTER(?x < ?y && ?a != ?b) }", true),
            ("SELECT DISTINCT ?x { ?a :p ?x . ?b :q ?y FILTER(?x < ?y && ?x + 1 > ?y) }", false),
            ("SELECT * { ?a :p ?x ; :n ?n . ?b :q ?y ; :m ?m FILTER(?x < ?y && ?n > ?m) }", true),
            ("SELECT * { ?a :p ?x . ?b :q ?y . ?c :n ?z FILTER(?x < ?y && ?y < ?z) }", false),
            ("SELECT * { ?a :p ?x . ?b :q ?y FILTER(?x - 2 < ?y && ?y < ?x + 2) }", true),
            ("SELECT * { ?a :p ?x . ?b :q ?y FILTER(?x = ?y && STR(?x) < STR(?y)) }", false),
            ("SELECT * { ?a :p ?x . ?b :q ?y FILTER(STRLEN(STR(?x)) < STRLEN(STR(?y)) && ?a = :a1) }", true),
            // Beside a part that nothing links.
            ("SELECT (COUNT(*) AS ?n) { ?a :p ?x . ?b :q ?y . ?c :n ?z FILTER(?x < ?y) }", true),
            ("SELECT ?z { ?a :p ?x . ?b :q ?y . ?c :r ?z FILTER(?x < ?y) }", true),
            ("SELECT (COUNT(DISTINCT ?z) AS ?n) { ?a :p ?x . ?b :q ?y . ?c :n ?z FILTER(?x < ?y) }", true),
            (
                "SELECT (COUNT(*) AS ?n) { ?a :p ?x . ?b :q ?y . ?c :n ?z ; :p ?m FILTER(?x < ?y && ?z < 3) }",
                true,
            ),
            ("SELECT * { ?a :p ?x . ?b :q ?y . ?c :r ?z FILTER(?x < ?y && (?a != ?c || ?z != :b2)) }", true),
            // Several comparisons: clusters of parts, chains.
            (
                "SELECT (COUNT(*) AS ?c) { ?a :n 1 ; :p ?x . ?b :m 1 ; :q ?y . ?s :n 2 ; :p ?v . ?t :m 2 ; :q ?w \
                 FILTER(?x < ?y && ?v < ?w) }",
                true,
            ),
            (
                "SELECT ?x ?w { ?a :n 1 ; :p ?x . ?b :m 1 ; :q ?y . ?s :n 2 ; :p ?v . ?t :m 2 ; :q ?w . ?c :r ?d \
                 FILTER(?x < ?y && ?v < ?w && ?x != ?v) }",
                true,
            ),
            (
                "SELECT DISTINCT ?x { ?a :n 1 ; :p ?x . ?b :m 1 ; :q ?y . ?s :n 2 ; :p ?v . ?t :m 2 ; :q ?w \
                 FILTER(?x < ?y && ?v >= ?w) }",
                true,
            ),
            (
                "SELECT (COUNT(*) AS ?c) { ?a :n 1 ; :p ?x . ?b :q ?y . ?s :n ?v FILTER(?x < ?y && ?v > ?y) }",
                true,
            ),
            (
                "SELECT (COUNT(*) AS ?c) { ?a :n ?x . ?b :m ?y . ?s :n ?v FILTER(?x < ?y && ?x < ?v && ?v < ?y) }",
                true,
            ),
            (
                "SELECT ?y (COUNT(*) AS ?c) { ?a :n ?x . ?b :m ?y . ?s :n ?v FILTER(?x < ?y && ?y < ?v) } \
                 GROUP BY ?y",
                true,
            ),
            // Connected patterns.
            ("SELECT * { ?a :n ?g ; :p ?x . ?d :n ?g . ?d :p ?y FILTER(?x < ?y) }", true),
            ("SELECT (COUNT(*) AS ?c) { ?a :n ?g . ?a :p ?x . ?d :n ?g . ?d :p ?y FILTER(?x < ?y) }", true),
            ("SELECT DISTINCT ?a { ?a :n ?g . ?a :p ?x . ?d :n ?g . ?d :p ?y FILTER(?x + 1 < ?y) }", true),
            (
                "SELECT ?g (COUNT(*) AS ?c) { ?a :n ?g . ?a :p ?x . ?d :n ?g . ?d :p ?y . ?b :m ?g \
                 FILTER(?x < ?y && ?a != ?d) } GROUP BY ?g",
                true,
            ),
            (
                "SELECT * { ?a :n ?g . ?a :p ?x . ?d :n ?g . ?d :p ?y OPTIONAL { ?a :r ?b } FILTER(?x < ?y) }",
                true,
            ),
            // Optional parts.
            ("SELECT * { ?a :p ?x OPTIONAL { ?b :q ?y FILTER(?x < ?y) } }", true),
            ("SELECT ?a ?x { ?a :p ?x OPTIONAL { ?b :q ?y FILTER(?x < ?y) } }", true),
            ("SELECT (COUNT(*) AS ?c) { ?a :p ?x OPTIONAL { ?b :q ?y FILTER(?x < ?y) } }", true),
            ("SELECT * { ?a :p ?x OPTIONAL { ?b :q ?y ; :m ?m FILTER(?x < ?y && ?m > 2) } }", true),
            (
                "SELECT * { ?a :n ?x OPTIONAL { ?b :m ?y FILTER(?x - 1 < ?y && ?y <= ?x + 1 && ?a != ?b) } }",
                true,
            ),
            ("SELECT * { ?a :n ?x OPTIONAL { ?b :q ?v } OPTIONAL { ?b :q ?y FILTER(?x < ?y) } }", true),
            ("SELECT ?a { ?a :p ?x OPTIONAL { ?b :q ?y FILTER(?x < ?y) } FILTER(!BOUND(?y)) }", true),
            // A variable that some rows leave unbound.
            ("SELECT * { ?a :n 1 OPTIONAL { ?a :r ?x } ?b :q ?y FILTER(?x < ?y) }", false),
            ("SELECT * { { ?a :p ?x } UNION { ?a :n ?n } ?b :q ?y FILTER(?x < ?y) }", true),
            ("SELECT * { VALUES ?x { 1 1.0 :a1 \"a\" UNDEF } ?b :q ?y FILTER(?x < ?y) }", true),
            // Nested groups, sub-queries, computed variables.
            ("SELECT * { ?c :n ?z { ?a :p ?x . ?b :q ?y FILTER(?x < ?y) } FILTER(?z = ?x) }", true),
            ("SELECT * { { SELECT DISTINCT ?x { ?a :p ?x } } ?b :q ?y FILTER(?x < ?y) }", true),
            ("SELECT * { ?a :p ?x MINUS { ?b :q ?y . ?a :n ?n FILTER(?y < ?n) } }", true),
            ("SELECT * { ?a :p ?x FILTER EXISTS { ?b :q ?y . ?c :m ?m FILTER(?x < ?y && ?y < ?m) } }", false),
        ] {
            let text = text.replace(" < ?y", &format!(" {comparator} ?y"));
            let found = check(&database, &text);
            assert!(found > 0 || !some || comparator != "<", "{text}");
        }
    }
    let text = format!("{PREFIXES}SELECT * {{ ?a :p ?x . ?b :q ?y FILTER(?x < ?y) }}");
    let plan = database.prepare(&text).unwrap().explain().unwrap();
    assert!(plan.contains("join if ?x < ?y"), "{plan}");
    let text =
        format!("{PREFIXES}SELECT (COUNT(*) AS ?n) {{ ?a :p ?x . ?b :q ?y . ?c :n ?z FILTER(?x < ?y) }}");
    let plan = database.prepare(&text).unwrap().explain().unwrap();
    assert!(plan.contains("join if ?x < ?y") && plan.contains("product"), "{plan}");
    let text = format!(
        "{PREFIXES}SELECT (COUNT(*) AS ?n) {{ ?a :p ?x . ?b :q ?y . ?s :p ?v . ?t :q ?w FILTER(?x < ?y && ?v < ?w) }}"
    );
    let plan = database.prepare(&text).unwrap().explain().unwrap();
    assert!(plan.contains("product") && plan.matches("join if").count() == 2, "{plan}");
}

#[test]
fn a_comparison_within_connected_patterns_is_a_join() {
    let mut text = PREFIXES.to_owned();
    for number in 0..3000_u32 {
        let (group, value) = (number % 5, number.wrapping_mul(7919) % 997);
        text += &format!(":g{group} :has :i{number} . :i{number} :from {value} ; :until {} .\n", value + 900);
    }
    let database = Database::in_memory();
    database.load_text(Format::Turtle, &text).unwrap();
    let of = |columns: &str| {
        format!(
            "{PREFIXES}SELECT {columns} {{ ?r :has ?o . ?o :from ?x . ?r :has ?q . ?q :until ?y FILTER(?y < ?x) }}"
        )
    };
    let plan = database.prepare(&of("(COUNT(*) AS ?n)")).unwrap().explain().unwrap();
    assert!(plan.contains("join if ?y < ?x on ?r"), "{plan}");
    for columns in ["(COUNT(*) AS ?n)", "?o ?q", "?r (COUNT(?q) AS ?n)", "DISTINCT ?o"] {
        let suffix = if columns.starts_with("?r") { " GROUP BY ?r" } else { "" };
        let text = of(columns) + suffix;
        let found = rows(&database, &text, true, 1);
        assert_eq!(found, rows(&database, &text, false, 1), "{text}");
        assert!(!found.is_empty(), "{text}");
    }
}

/// Subjects with `:name`, whose objects are strings, and `:q` with all [`VALUES`].
fn names() -> Database {
    let mut text = PREFIXES.to_owned();
    for number in 0..40 {
        text += &format!(":n{number} :name \"{}\", \"a much longer text {}\" .\n", number % 9, number % 7);
    }
    for (number, value) in VALUES.iter().enumerate() {
        text += &format!(":b{number} :q {value} .\n");
    }
    text += ":b1 :q \"3\", \"a much longer text 3\" .";
    let database = Database::in_memory();
    database.load_text(Format::Turtle, &text).unwrap();
    database
}

const NAME_QUERIES: &[&str] = &[
    "SELECT * { ?a :name ?x . ?b :q ?y FILTER(?x = ?y) }",
    "SELECT * { ?a :name ?x . ?b :name ?y FILTER(?y = ?x && ?a != ?b) }",
    "SELECT DISTINCT ?a { ?a :name ?x . ?b :name ?y FILTER(?x = ?y) }",
    "SELECT * { ?b :q ?y OPTIONAL { ?a :name ?x FILTER(?x = ?y) } }",
    "SELECT * { ?b :q ?y FILTER EXISTS { ?a :name ?x FILTER(?x = ?y) } }",
    "SELECT * { ?b :q ?y FILTER NOT EXISTS { ?a :name ?x FILTER(?x = ?y) } }",
    "SELECT * { { ?a :name ?x } UNION { ?a :q ?x } ?b :q ?y FILTER(?x = ?y) }",
];

/// Whether the equality of the first of [`NAME_QUERIES`] is one of terms.
fn is_of_terms(database: &Database) -> bool {
    let text = format!("{PREFIXES}{}", NAME_QUERIES[0]);
    let plan = database.explain(&text, &QueryOptions::default()).unwrap();
    plan.contains("sameTerm")
}

/// For strings `=` is identity. The plans of before are of no use once another object has been added.
#[test]
fn strings_are_joined_as_terms_until_other_objects_come() {
    for other in ["1", "\"1\"@en", "\"a much longer text\"@en", "\"x\"^^:unknown", ":a1", "16777217.0"] {
        let database = names();
        let prepared = database.prepare(&format!("{PREFIXES}{}", NAME_QUERIES[0])).unwrap();
        assert!(is_of_terms(&database));
        for text in NAME_QUERIES {
            assert!(check(&database, text) > 0, "{text}");
        }
        // More strings, short and long, known and new: it stays so.
        let update = "INSERT DATA { :n1 :name \"b\", \"a much longer text\", \"the longest text of all\" }";
        database.update(&format!("{PREFIXES}{update}")).unwrap();
        assert!(is_of_terms(&database));
        let before: usize = NAME_QUERIES.iter().map(|text| check(&database, text)).sum();
        database.update(&format!("{PREFIXES}INSERT DATA {{ :n1 :name {other} }}")).unwrap();
        assert!(!is_of_terms(&database), "{other}");
        let after: usize = NAME_QUERIES.iter().map(|text| check(&database, text)).sum();
        assert!(after > before, "{other}");
        let Answer::Solutions(found) = prepared.run().unwrap() else { panic!("solutions") };
        assert_eq!(found.rows().count(), check(&database, NAME_QUERIES[0]), "{other}");
    }
}

/// A transaction that joined strings as terms is refused where another object came meanwhile.
#[test]
fn transactions_that_rely_on_strings_are_refused_if_others_come() {
    for (other, refused) in
        [("1.0", true), ("\"a\"@en", true), ("\"1\"", false), ("\"unheard of texts\"", false)]
    {
        let database = names();
        let mut transaction = database.begin().unwrap();
        // From `:q` on: no value of `:name` besides those of `:q` is read.
        let text = "SELECT * { :b0 :q ?y . ?a :name ?x FILTER(?x = ?y) }";
        assert_eq!(transaction.select(&format!("{PREFIXES}{text}")).unwrap().rows().count(), 0);
        transaction.update(&format!("{PREFIXES}INSERT DATA {{ :z :z :z }}")).unwrap();
        database.update(&format!("{PREFIXES}INSERT DATA {{ :n1 :name {other} }}")).unwrap();
        assert_eq!(transaction.commit().is_err(), refused, "{other}");
    }
}

/// Many constant strings are a hash set.
#[test]
fn membership_in_many_strings_is_equality_with_one_of_them() {
    let database = database();
    let strings: Vec<String> = (0..200).map(|number| format!("\"s{number}\"")).collect();
    for others in [&["\"a\""][..], &["\"a\"", "1", ":a1"], &["\"a\"", "\"x\"^^:unknown", "\"a\"@en", "?n"]] {
        for item in ["?x", "COALESCE(?x, 1)", "STR(?x)", "?x + 1", "CONCAT(\"s\", STR(?n))"] {
            let list = [&strings.iter().map(String::as_str).collect::<Vec<_>>(), others].concat();
            let of = |test: &str| {
                let text = format!("{PREFIXES}SELECT ?a ?r {{ ?a :p ?x ; :n ?n BIND({test} AS ?r) }}");
                rows(&database, &text, true, 1)
            };
            let equal: Vec<String> = list.iter().map(|one| format!("{item} = {one}")).collect();
            let found = of(&format!("{item} IN ({})", list.join(", ")));
            assert_eq!(found, of(&equal.join(" || ")), "{item} {others:?}");
            assert!(found.iter().any(|row| row.contains("true")) || item == "?x + 1", "{item}");
        }
    }
}

#[test]
fn random_groups_have_the_solutions_of_the_unoptimized_plan() {
    let seed = seed();
    let mut random = Random(seed);
    let database = database();
    let variables = ["?a", "?b", "?c", "?x", "?y", "?z"];
    for case in 0..400 {
        let mut one = |of: &[&str]| of[usize::try_from(random.below(of.len() as u64)).unwrap()].to_owned();
        let mut parts = String::new();
        for part in 0..3 {
            let subject = one(&variables);
            let object = one(&variables);
            let pattern = format!("{subject} {} {object} . ", one(&[":p", ":q", ":r", ":s", ":n"]));
            let equality = format!(
                "{}({} {} {})",
                "FILTER",
                one(&variables),
                one(&["=", "=", "=", "!="]),
                one(&variables)
            );
            parts += &match (part, one(&["", "", "OPTIONAL", "UNION", "MINUS"]).as_str()) {
                (0, _) | (_, "") => format!("{pattern} {equality} "),
                (_, "UNION") => {
                    format!("{{ {pattern} }} UNION {{ {} :r {object} {equality} }} ", one(&variables))
                }
                (_, kind) => format!("{kind} {{ {pattern} {equality} }} "),
            };
        }
        let text = format!("SELECT * {{ {parts} }} # case {case} of seed {seed}");
        check(&database, &text);
    }
}

#[test]
fn many_equalities_do_not_make_a_query_too_large() {
    let database = Database::in_memory();
    database.load_text(Format::Turtle, "<http://e/a> <http://e/p> <http://e/b> .").unwrap();
    for count in [100, 250, 400] {
        let parts: String = (0..=count).map(|part| format!("?a{part} :p ?v{part} . ")).collect();
        for [open, between, close] in [["", " = ", ""], ["sameTerm(", ", ", ")"]] {
            let all: Vec<String> =
                (0..count).map(|part| format!("{open}?v{part}{between}?v{}{close}", part + 1)).collect();
            let text = format!("{PREFIXES}SELECT ?v0 {{ {parts} FILTER({}) }}", all.join(" && "));
            assert_eq!(rows(&database, &text, true, 1).len(), 1, "{count} equalities{between}");
        }
    }
}
