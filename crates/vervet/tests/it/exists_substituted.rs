//! `EXISTS` against its definition: for each row, the pattern with the values of the row substituted for its
//! variables (SPARQL 1.1 §18.6), run as a query of its own.
#![allow(clippy::unwrap_used, reason = "tests")]

use vervet::{Answer, Database, ErrorKind, Format, QueryOptions};

const PREFIX: &str = "PREFIX : <http://e/> ";
const OUTER: &str = "?p a :Person ; :age ?a .";

fn database() -> Database {
    let database = Database::in_memory();
    let text = "@prefix : <http://e/> .
        :ann a :Person ; :name \"Ann\" ; :age 34 ; :knows :bob, :eve ; :tag \"a\", \"b\", \"c\" ; :dept :d1 .
        :bob a :Person ; :name \"Bob\"@en ; :age 28 ; :knows :eve, :dan ; :tag \"b\" ; :dept :d1 .
        :eve a :Person ; :name \"Eve\"@fr, \"Ève\"@fr ; :age 40 ; :knows :ann ; :tag \"c\", \"d\" ; :dept :d2 .
        :dan a :Person, :Boss ; :name \"Dan\" ; :age \"x\" ; :knows :zoe ; :dept :d2 .
        :zoe a :Person ; :name \"Zoe\" ; :age 34.0 .
        :d1 :name \"Dept One\" ; :boss :dan . :d2 :name \"Dept Two\" ; :boss :eve .";
    database.load_text(Format::Turtle, text).unwrap();
    database
}

struct Random(fastrand::Rng);

impl Random {
    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.0.usize(..of.len())]
    }

    fn triple(&mut self) -> String {
        let (subject, is_edge) = (self.one(&["?p", "?q", "?x"]), self.0.u8(..5) < 3);
        let (predicate, object) = match is_edge {
            true => (self.one(&[":knows", ":dept", ":boss"]), self.one(&["?p", "?q", "?x", ":eve"])),
            false => (self.one(&[":age", ":tag", ":name"]), self.one(&["?x", "?a", "?b", "\"c\""])),
        };
        format!("{subject} {predicate} {object} . ")
    }

    fn group(&mut self, depth: usize) -> String {
        let mut text: String = (0..self.0.usize(1..=2)).map(|_| self.triple()).collect();
        for _ in 0..self.0.usize(0..=2) {
            let kind = self.0.u8(if depth == 0 { 0..25 } else { 0..100 });
            let mut inner = |before: &str| format!("{before} {{ {} }} ", self.group(depth - 1));
            text += &match kind {
                0..25 => {
                    let conditions =
                        ["?a > 30", "?b < ?a", "BOUND(?x)", "!BOUND(?b)", "?q != ?p", "isIRI(?q)"];
                    format!("FILTER({}) ", self.one(&conditions))
                }
                25..45 => inner("OPTIONAL"),
                45..70 => inner("MINUS"),
                70..80 => inner("") + &inner("UNION"),
                80..88 => inner("") + &self.triple(),
                88..94 => inner("FILTER EXISTS"),
                _ => inner("FILTER NOT EXISTS"),
            };
        }
        text
    }
}

/// The pattern with values substituted for variables; variables bound in the text stay.
fn substituted(pattern: &str, row: &[(&str, String)]) -> String {
    row.iter().fold(pattern.to_owned(), |text, (name, value)| {
        text.replace(&format!("BOUND({name})"), "(true)").replace(name, value)
    })
}

#[test]
fn exists_is_its_pattern_with_the_values_of_the_row() {
    let seed = fastrand::u64(..);
    eprintln!("seed {seed}");
    let mut random = Random(fastrand::Rng::with_seed(seed));
    let database = database();
    let rows: Vec<[(&str, String); 2]> = database
        .select(&format!("{PREFIX} SELECT ?p ?a {{ {OUTER} }}"))
        .unwrap()
        .rows()
        .map(|row| ["?p", "?a"].map(|name| (name, row.get(&name[1..]).unwrap().unwrap().to_string())))
        .collect();
    assert_eq!(rows.len(), 5);
    let (mut compared, mut refused, mut some) = (0, 0, 0);
    let mut fixed = [
        "?d :boss ?q MINUS { ?p :knows ?q }",
        "?q :boss ?x MINUS { ?q :boss ?p }",
        "?x :boss ?q MINUS { ?x :name ?c FILTER(?a > 30) }",
        "?x :boss ?q OPTIONAL { ?q :knows ?p . ?p :tag ?z } ?p :tag ?z",
        "?q :dept ?d OPTIONAL { ?q :knows ?p } ?p :dept ?d",
        "?x :dept ?d MINUS { ?x :knows ?q MINUS { ?q :knows ?p } }",
        "VALUES ?z { :eve } { ?q :dept ?d OPTIONAL { ?q :knows ?z FILTER(?p = :ann) } }",
        "BIND(:eve AS ?z) { ?q :dept ?d OPTIONAL { ?q :knows ?z FILTER(?p = :ann) } }",
    ]
    .map(str::to_owned)
    .to_vec();
    for _ in 0..1_500 {
        let pattern = fixed.pop().unwrap_or_else(|| random.group(2));
        let query = format!("{PREFIX} SELECT ?p {{ {OUTER} FILTER EXISTS {{ {pattern} }} }}");
        for optimize in [true, false] {
            let options = QueryOptions { optimize, ..QueryOptions::default() };
            let answer = match database.query_with(&query, &options) {
                Ok(Answer::Solutions(solutions)) => solutions,
                Ok(_) => panic!("a table"),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Unsupported, "{query}: {error}");
                    refused += 1;
                    continue;
                }
            };
            let mut found: Vec<String> =
                answer.rows().map(|row| row.get("p").unwrap().unwrap().to_string()).collect();
            found.sort();
            let mut expected = Vec::new();
            for row in &rows {
                let ask = format!("{PREFIX} ASK {{ {} }}", substituted(&pattern, row));
                match database.query_with(&ask, &options) {
                    Ok(Answer::Boolean(true)) => expected.push(row[0].1.clone()),
                    Ok(Answer::Boolean(false)) => {}
                    other => panic!("{ask}: {other:?}"),
                }
            }
            expected.sort();
            compared += 1;
            some += usize::from(!found.is_empty() && found.len() < rows.len());
            assert_eq!(found, expected, "{query}");
        }
    }
    eprintln!("{compared} compared, {some} of them with some rows and not all, {refused} refused");
    assert!(compared > 2_000 && some > 200, "{compared}, {some}");
    assert!(refused < compared / 10, "{refused} of {compared} were refused");
}

/// A parameter is a pre-bound variable too.
#[test]
fn conditions_in_minus_read_parameters() {
    let database = database();
    for (limit, count) in [(30, 2), (50, 5), (10, 1)] {
        let query = format!("{PREFIX} SELECT ?p {{ {OUTER} MINUS {{ ?p :age ?b FILTER(?b > ?limit) }} }}");
        let parameters = vec![("limit".to_owned(), oxrdf::Literal::from(limit).into())];
        let options = QueryOptions { parameters, ..QueryOptions::default() };
        let Answer::Solutions(rows) = database.query_with(&query, &options).unwrap() else {
            panic!("a table")
        };
        let without = query.replace("?limit", &limit.to_string());
        assert_eq!(rows.rows().count(), database.select(&without).unwrap().rows().count(), "{limit}");
        assert_eq!(rows.rows().count(), count, "{limit}");
    }
}

/// A variable projected by a sub-query is the variable around it, in its conditions too; a variable that is
/// not projected is local.
#[test]
fn sub_queries_read_what_they_show() {
    let database = database();
    for (pattern, count) in [
        ("{ SELECT ?p ?q { ?d :boss ?q FILTER(?p != ?q && ?q != :dan) } }", 4),
        ("{ SELECT ?p { ?d :boss ?q FILTER(?a < 30) } }", 0),
        ("{ SELECT ?a { ?d :boss ?q FILTER(?a < 30) } }", 1),
    ] {
        let query = format!("{PREFIX} SELECT ?p {{ {OUTER} FILTER EXISTS {{ {pattern} }} }}");
        for optimize in [true, false] {
            let options = QueryOptions { optimize, ..QueryOptions::default() };
            let Answer::Solutions(rows) = database.query_with(&query, &options).unwrap() else {
                panic!("a table")
            };
            assert_eq!(rows.rows().count(), count, "{query}");
        }
    }
    // The row outside contributes no rows to the group.
    let group = "{ SELECT ?p (COUNT(*) AS ?n) { ?d :boss ?q FILTER(BOUND(?p)) } GROUP BY ?p }";
    let query = format!("{PREFIX} SELECT ?p {{ {OUTER} FILTER EXISTS {{ ?x :dept ?d {group} }} }}");
    assert_eq!(database.select(&query).unwrap_err().kind(), ErrorKind::Unsupported);
}

/// Equalities with variables that the pattern computes are conditions: a row has no say in them.
#[test]
fn computed_variables_are_compared() {
    let database = database();
    for (pattern, persons) in [
        ("?q :knows ?r BIND(?q AS ?x) FILTER(sameTerm(?p, ?x))", 4),
        ("?q :knows ?r BIND(?q AS ?x) FILTER(?x = ?p)", 4),
        ("?q :boss ?r BIND(?r AS ?x) FILTER(sameTerm(?x, ?p))", 2),
        ("{ SELECT ?x (COUNT(*) AS ?n) { ?x :knows ?r } GROUP BY ?x } FILTER(sameTerm(?x, ?p))", 4),
        ("{ SELECT DISTINCT ?x { ?q :boss ?x } } FILTER(sameTerm(?x, ?p))", 2),
        ("{ SELECT ?x { ?q :boss ?x } ORDER BY ?x LIMIT 1 } FILTER(sameTerm(?x, ?p))", 1),
        ("{ ?q :boss ?x } UNION { ?q :knows ?y BIND(?y AS ?x) } FILTER(sameTerm(?x, ?p))", 5),
        ("?q :dept ?x FILTER(sameTerm(?x, ?p))", 0),
    ] {
        for (word, count) in [("EXISTS", persons), ("NOT EXISTS", 5 - persons)] {
            let query = format!("{PREFIX} SELECT ?p {{ ?p a :Person FILTER {word} {{ {pattern} }} }}");
            for optimize in [true, false] {
                let options = QueryOptions { optimize, ..QueryOptions::default() };
                let solutions = database.query_with(&query, &options).unwrap().into_solutions().unwrap();
                assert_eq!(solutions.len(), count, "{query}, optimize: {optimize}");
            }
        }
    }
}

/// Rows that leave a shared variable unbound are compared where they bind it: by one join for all rows, with
/// the answers of one evaluation for each row.
#[test]
fn variables_that_some_rows_leave_unbound_are_joined() {
    let database = Database::in_memory();
    let mut text = String::from("@prefix : <http://e/> .\n");
    for number in 0..600_u32 {
        text += &format!(":s{number} :p :o{} .\n", number % 97);
        if number % 3 != 0 {
            text += &format!(":s{number} :q :v{} .\n", number % 31);
        }
        if number % 5 < 2 {
            text += &format!(":s{number} :n {} .\n", number % 50);
        }
        if number % 7 == 0 {
            text += &format!(
                ":r{number} :has :v{} ; :of :o{} ; :least {} .\n",
                number % 29,
                number % 89,
                number % 60
            );
        }
    }
    database.load_text(Format::Turtle, &text).unwrap();
    let outer = [
        "?s :p ?o OPTIONAL { ?s :q ?v }",
        "{ ?s :p ?o } UNION { ?s :q ?v }",
        "?s :p ?o OPTIONAL { ?s :q ?v } OPTIONAL { ?s :n ?n }",
        "{ ?s :q ?v } UNION { ?s :n ?n } UNION { ?s :p ?o }",
    ];
    let patterns = [
        "?r :has ?v",
        "?r :has ?v ; :of ?o",
        "?r :has ?v ; :of ?o FILTER(?r != ?s)",
        "?r :has ?v ; :least ?m FILTER(?m < ?n)",
        "?r :has ?v ; :least ?n",
        "?r :has ?w ; :least ?m FILTER(?w = ?v)",
        "?r :least ?n FILTER(?n > 40)",
        "?r :has ?v FILTER(BOUND(?n))",
        "{ ?r :has ?v } UNION { ?r :least ?n }",
        "{ { ?r :has ?v } UNION { ?r :of ?o } FILTER(BOUND(?v)) }",
        "{ { ?r :has ?v } UNION { ?r :of ?o } FILTER(BOUND(?v)) } ?x :has ?v",
        "?r :least ?m FILTER(?m > ?n || !BOUND(?v))",
        "VALUES (?v ?o) { (:v1 UNDEF) (UNDEF :o5) (:v3 :o3) }",
        "?r :none ?v",
    ];
    let mut joined = 0;
    for outer in outer {
        for pattern in patterns {
            for not in ["", "NOT "] {
                let query = format!(
                    "{PREFIX} SELECT ?s ?o ?v ?n {{ {outer} FILTER {not}EXISTS {{ {pattern} }} }} ORDER BY ?s ?o ?v ?n"
                );
                let [found, expected] = [true, false].map(|optimize| {
                    let options = QueryOptions { optimize, ..QueryOptions::default() };
                    let solutions = database.query_with(&query, &options).unwrap().into_solutions().unwrap();
                    let rows = solutions.rows();
                    rows.map(|row| ["s", "o", "v", "n"].map(|name| row.get(name).unwrap()))
                        .collect::<Vec<_>>()
                });
                assert_eq!(found, expected, "{query}");
                let plan = database.explain(&query, &QueryOptions::default()).unwrap();
                joined += usize::from(plan.contains("semi join") || plan.contains("anti join"));
            }
        }
    }
    assert!(joined > 40, "only {joined} plans with one join");
}
