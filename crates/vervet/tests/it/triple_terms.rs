//! Triple terms as values: functions on them, their order, their limits; and as objects of statements.

use std::path::Path;
use vervet::{Answer, Database, Environment, ErrorKind, Format, LoadOptions, QueryOptions, Source, Term};

const PREFIX: &str = "PREFIX : <http://e/>\n";

fn column(database: &Database, query: &str) -> Vec<String> {
    let solutions = database.select(&format!("{PREFIX}{query}")).expect("it runs");
    let name = solutions.variables()[0].clone();
    let text = |term: Option<Term>| term.map(|term| term.to_string()).unwrap_or_default();
    solutions.rows().map(|row| text(row.get(&name).expect("readable"))).collect()
}

#[test]
fn functions_of_triple_terms() {
    let database = Database::in_memory();
    for (expression, value) in [
        (
            "TRIPLE(:a, :b, '01'^^<http://www.w3.org/2001/XMLSchema#integer>)",
            "<<( <http://e/a> <http://e/b> \"01\"^^<http://www.w3.org/2001/XMLSchema#integer> )>>",
        ),
        (
            "OBJECT(<<( :a a '01'^^<http://www.w3.org/2001/XMLSchema#byte> )>>)",
            "\"01\"^^<http://www.w3.org/2001/XMLSchema#byte>",
        ),
        ("OBJECT(OBJECT(<<( :a :b <<( :c :d 'x\\n\"'@en )>> )>>))", "\"x\\n\\\"\"@en"),
        ("PREDICATE(<<( :a a 1 )>>)", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"),
        ("SUBJECT(TRIPLE(BNODE(), :b, 1)) = 1", "\"false\"^^<http://www.w3.org/2001/XMLSchema#boolean>"),
        ("isBLANK(SUBJECT(TRIPLE(BNODE(), :b, 1)))", "\"true\"^^<http://www.w3.org/2001/XMLSchema#boolean>"),
        ("TRIPLE(:a, BNODE(), 1)", ""),
        ("TRIPLE('a', :b, 1)", ""),
        ("TRIPLE(<<( :a :b :c )>>, :b, 1)", ""),
        ("TRIPLE(:a, <<( :a :b :c )>>, 1)", ""),
        ("SUBJECT(:a)", ""),
        ("STR(<<( :a :b :c )>>)", ""),
        ("DATATYPE(<<( :a :b :c )>>)", ""),
        ("LANG(<<( :a :b :c )>>)", ""),
        ("CONCAT('a', <<( :a :b :c )>>)", ""),
        ("<http://www.w3.org/2001/XMLSchema#string>(<<( :a :b :c )>>)", ""),
        ("IF(<<( :a :b :c )>>, 1, 2)", ""),
        ("<<( :a :b 1 )>> = <<( :a :b 1.0 )>>", "\"true\"^^<http://www.w3.org/2001/XMLSchema#boolean>"),
        (
            "sameTerm(<<( :a :b 1 )>>, <<( :a :b 1.0 )>>)",
            "\"false\"^^<http://www.w3.org/2001/XMLSchema#boolean>",
        ),
        ("<<( :a :b 'x'^^:t )>> = <<( :a :b 'y'^^:t )>>", ""),
        (
            "<<( :a :b 'x'^^:t )>> = <<( :c :b 'y'^^:t )>>",
            "\"false\"^^<http://www.w3.org/2001/XMLSchema#boolean>",
        ),
        ("<<( :a :b 1 )>> < <<( :a :b 2 )>>", ""),
    ] {
        let query = format!("SELECT ({expression} AS ?x) {{}}");
        assert_eq!(column(&database, &query), [value], "{expression}");
        // With the terms as values of a variable, nothing is constant-folded.
        let query = format!("SELECT ?x {{ VALUES ?t {{ 1 }} BIND(IF(?t = 1, {expression}, 0) AS ?x) }}");
        assert_eq!(column(&database, &query), [value], "{expression}");
    }
}

#[test]
fn triple_terms_follow_literals_in_order() {
    let sorted = [
        "<http://e/z>",
        "\"10\"^^<http://www.w3.org/2001/XMLSchema#integer>",
        "\"z\"",
        "<<( <http://e/a> <http://e/b> <http://e/z> )>>",
        "<<( <http://e/a> <http://e/b> \"9\"^^<http://www.w3.org/2001/XMLSchema#integer> )>>",
        "<<( <http://e/a> <http://e/b> \"10\"^^<http://www.w3.org/2001/XMLSchema#integer> )>>",
        "<<( <http://e/a> <http://e/b> <<( <http://e/a> <http://e/b> <http://e/c> )>> )>>",
        "<<( <http://e/a> <http://e/c> <http://e/a> )>>",
        "<<( <http://e/b> <http://e/a> <http://e/a> )>>",
    ];
    let mut values = sorted.to_vec();
    fastrand::shuffle(&mut values);
    let query = format!("SELECT ?x {{ VALUES ?x {{ {} }} }} ORDER BY ?x", values.join(" "));
    let database = Database::in_memory();
    assert_eq!(column(&database, &query), sorted);
    let query = query.replace("?x }", "?x } ").replace("ORDER BY ?x", "ORDER BY DESC(?x)");
    assert_eq!(column(&database, &query), sorted.iter().rev().copied().collect::<Vec<_>>());
    let query = format!("SELECT (MAX(?v) AS ?x) {{ VALUES ?v {{ {} }} }}", values.join(" "));
    assert_eq!(column(&database, &query), [sorted[8]]);
}

#[test]
fn depth_has_a_limit() {
    let database = Database::in_memory();
    // In query text, the parser's nesting limit applies first.
    let nested = |depth: usize| format!("{}:c{}", "<<( :a :b ".repeat(depth), " )>>".repeat(depth));
    assert_eq!(column(&database, &format!("SELECT ({} AS ?x) {{}}", nested(90))).len(), 1);
    for depth in [101, 100_000] {
        let query = format!("{PREFIX}SELECT ({} AS ?x) {{}}", nested(depth));
        assert_eq!(database.select(&query).expect_err("too deep").kind(), ErrorKind::Query, "{depth}");
    }
    // Through functions, the limit of triple terms applies.
    let doubled = |expression: &str| format!("TRIPLE(:a, :b, {expression})");
    let binds = |count: usize| {
        let bind = |number: usize| format!("BIND({} AS ?t{}) ", doubled(&format!("?t{number}")), number + 1);
        format!("SELECT ?t{count} {{ BIND(1 AS ?t0) {} }}", (0..count).map(bind).collect::<String>())
    };
    assert_eq!(column(&database, &binds(100))[0].matches("<<(").count(), 100);
    // An expression error: no value, and the rest of the query continues.
    let query = binds(101).replace("?t101 {", "?t101 ?t100 {");
    let solutions = database.select(&format!("{PREFIX}{query}")).expect("it runs");
    let row = solutions.rows().next().expect("a row");
    assert_eq!(["t100", "t101"].map(|name| row.get(name).expect("readable").is_some()), [true, false]);
}

/// A stored term at the nesting limit cannot be nested further: not as a value, not in a template, not as
/// what an edge reifies.
#[test]
fn nobody_makes_what_could_not_be_loaded() {
    let database = Database::in_memory();
    let nested = |depth: usize| {
        format!("{}<http://e/c>{}", "<<( <http://e/a> <http://e/b> ".repeat(depth), " )>>".repeat(depth))
    };
    let text = [99, 100].map(|depth| format!("<http://e/x> <http://e/says{depth}> {} .\n", nested(depth)));
    database.load_text(Format::NTriples, &text.concat()).expect("loads");
    let edge = "<http://e/r> <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> <<( <http://e/x> <http://e/says100>";
    let edge = format!("{}{edge} {} )>> .\n", text[1], nested(100));
    database.load_text(Format::NTriples, &edge).expect("loads");
    for (pattern, rows) in [
        (":x ?p ?t BIND(TRIPLE(:a, :b, ?t) AS ?u)", 2),
        (":x ?p ?t BIND(TRIPLE(:a, :b, ?t) AS ?u) FILTER(BOUND(?u))", 1),
        (":x ?p ?t BIND(<<( :a :b ?t )>> AS ?u) FILTER(BOUND(?u))", 1),
        (":x ?p ?t BIND(COALESCE(TRIPLE(:a, :b, ?t), 1) AS ?u) FILTER(BOUND(?u))", 2),
        ("?r <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> ?t", 0),
        ("?s :says100 ?o ~ ?r", 1),
    ] {
        assert_eq!(count(&database, pattern), rows, "{pattern}");
    }
    let graph = |query: &str| {
        let answer = database.query(&format!("{PREFIX}{query}")).expect("it runs");
        let Answer::Graph(triples) = answer else { panic!("no graph") };
        triples
    };
    for (query, triples) in [
        ("CONSTRUCT { ?x ?p ?t } { ?x ?p ?t FILTER(isTRIPLE(?t)) }", 2),
        ("CONSTRUCT { ?x ?p <<( :a :b ?t )>> } { ?x ?p ?t FILTER(isTRIPLE(?t)) }", 1),
        (
            "CONSTRUCT { ?x :is ?p . ?x ?p <<( :a :b <<( :a :b ?t )>> )>> } { ?x ?p ?t FILTER(isTRIPLE(?t)) }",
            2,
        ),
    ] {
        let made = graph(query);
        assert_eq!(made.len(), triples, "{query}");
        let text: String = made.iter().map(|triple| format!("{triple} .\n")).collect();
        let again = Database::in_memory();
        again.load_text(Format::NTriples, &text).unwrap_or_else(|error| panic!("{error}: {query}"));
    }
    for (update, inserted) in [
        ("INSERT { :y ?p <<( :a :b ?t )>> } WHERE { :x ?p ?t }", 1),
        ("INSERT { :z ?p <<( :a :b ?t )>> } WHERE { :x ?p ?u BIND(OBJECT(?u) AS ?t) }", 2),
        ("INSERT { :z :q ?p . :z ?p <<( :a :b <<( :a ?p ?t )>> )>> } WHERE { :x ?p ?t }", 2),
        // Neither the statement nor the statements about its edge.
        ("INSERT { :w ?p <<( :a :b ?t )>> ~ :e . :e :q 1 } WHERE { VALUES ?p { :says100 } :x ?p ?t }", 0),
    ] {
        assert_eq!(
            database.update(&format!("{PREFIX}{update}")).expect("runs").inserted,
            inserted,
            "{update}"
        );
    }
    let mut text = Vec::new();
    database.export(Format::NTriples, &mut text).expect("exports");
    let text = String::from_utf8(text).expect("text");
    Database::in_memory().load_text(Format::NTriples, &text).expect("what was exported loads");
}

#[test]
fn a_graph_may_be_made_of_triple_terms() {
    let database = Database::in_memory();
    let query = "CONSTRUCT { :x :says ?t } { VALUES ?o { 1 :o } BIND(TRIPLE(:s, :p, ?o) AS ?t) }";
    let Answer::Graph(triples) = database.query(&format!("{PREFIX}{query}")).expect("it runs") else {
        panic!("no graph")
    };
    let objects: Vec<String> = triples.iter().map(|triple| triple.object.to_string()).collect();
    assert_eq!(
        objects,
        [
            "<<( <http://e/s> <http://e/p> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer> )>>",
            "<<( <http://e/s> <http://e/p> <http://e/o> )>>"
        ]
    );
    // A triple term as a subject is not allowed in a graph.
    let query = "CONSTRUCT { ?t :says :x } { BIND(TRIPLE(:s, :p, 1) AS ?t) }";
    let Answer::Graph(triples) = database.query(&format!("{PREFIX}{query}")).expect("it runs") else {
        panic!("no graph")
    };
    assert!(triples.is_empty());
}

fn count(database: &Database, pattern: &str) -> usize {
    database.select(&format!("{PREFIX}SELECT * {{ {pattern} }}")).expect("it runs").len()
}

const DATA: &str = r#"PREFIX : <http://e/>
    :x :says <<( :a :p "text \n \" 17" )>>, <<( :a :p <<( _:b :p 1 )>> )>>, <<( _:b :q _:c )>> .
    :y :says <<( :a :p 2 )>> . _:b :name "b" . _:c :name "c" .
    :a :p 2 ~ :r {| :since 1999 |} ."#;

fn check(database: &Database, when: &str) {
    for (pattern, rows) in [
        ("?x :says ?t FILTER(isTRIPLE(?t))", 4),
        ("?x :says ?t FILTER(isLITERAL(?t))", 0),
        ("?x :says <<( :a :p ?o )>>", 3),
        ("?x :says <<( :a :p 2 )>>", 1),
        ("?x :says <<( ?b :q ?c )>> . ?b :name 'b' . ?c :name 'c'", 1),
        ("?x :says <<( :a ?p <<( ?b ?p 1 )>> )>> . ?b :name 'b'", 1),
        ("?x ?p <<( ?x ?q ?o )>>", 0),
        ("?x :says ?t . ?y :says ?t FILTER(?x != ?y)", 0),
        ("?x :says <<( ?s ?p ?o )>> . ?s ?p ?o", 1),
        (":a :p 2 {| :since 1999 |}", 1),
    ] {
        assert_eq!(count(database, pattern), rows, "{when}: {pattern}");
    }
    database.check().expect("whole");
}

#[test]
fn triple_terms_are_stored() {
    let environment = Environment::simulated(5);
    let open = || Database::open_or_create_in(environment.clone(), Path::new("/db")).expect("opens");
    let database = open();
    database.load_text(Format::Turtle, DATA).expect("loads");
    check(&database, "loaded");
    for format in [Format::NTriples, Format::Turtle, Format::NQuads, Format::TriG] {
        let mut text = Vec::new();
        database.export(format, &mut text).expect("exports");
        let text = String::from_utf8(text).expect("text");
        let again = Database::in_memory();
        again.load_text(format, &text).unwrap_or_else(|error| panic!("{error}:\n{text}"));
        check(&again, &format!("{format:?}"));
    }
    let mut text = Vec::new();
    assert!(
        database.export(Format::RdfXml, &mut text).is_err(),
        "RDF/XML of this library has no triple terms"
    );
    drop(database);
    let database = open();
    check(&database, "opened again");
    // As delta over a base, and replayed from the log.
    let insert = "INSERT DATA { :z :says <<( :a :p _:n )>>, <<( :a :p <<( :a :p 3 )>> )>> . _:n :name 'n' }";
    assert_eq!(database.update(&format!("{PREFIX}{insert}")).expect("runs").inserted, 3);
    let changed = |database: &Database| {
        assert_eq!(count(database, ":z :says <<( :a :p ?n )>> . ?n :name 'n'"), 1);
        assert_eq!(count(database, ":z :says <<( :a :p <<( :a :p 3 )>> )>>"), 1);
        assert_eq!(count(database, "?s :says ?t FILTER(isTRIPLE(?t))"), 6);
        database.check().expect("whole");
    };
    changed(&database);
    drop(database);
    let database = open();
    changed(&database);
    database.checkpoint().expect("a checkpoint");
    changed(&database);
    drop(database);
    let database = open();
    changed(&database);
    for (update, removed) in [
        ("DELETE WHERE { :z :says <<( ?a :p <<( ?a :p ?n )>> )>> }", 1),
        (
            "DELETE { :z :says <<( ?a ?p ?n )>> } WHERE { ?n :name 'n' . VALUES (?a ?p) { (:a :p) (:a :q) } }",
            1,
        ),
        ("DELETE DATA { :y :says <<( :a :p 2 )>> . :y :says <<( :a :p 4 )>> }", 1),
        ("DELETE WHERE { ?s :name 'n' }", 1),
    ] {
        assert_eq!(database.update(&format!("{PREFIX}{update}")).expect("runs").removed, removed, "{update}");
    }
    let insert = "INSERT { :y :says <<( ?a :p ?two )>> . :y :says <<( ?a ?none 1 )>> . :y :says <<( 1 :p 1 )>> } \
                  WHERE { VALUES (?a ?two) { (:a 2) ('a' 2) (UNDEF 2) } }";
    assert_eq!(database.update(&format!("{PREFIX}{insert}")).expect("runs").inserted, 1);
    check(&database, "as it was");
}

#[test]
fn a_plan_learns_of_triple_terms_that_come_later() {
    let database = Database::in_memory();
    database.load_text(Format::Turtle, "PREFIX : <http://e/> :a :p 1 .").expect("loads");
    let patterns = [
        "VALUES ?t { <<( :a :b :c )>> } ?s :p ?t",
        "?s :p <<( :a :b :c )>>",
        "?s :p ?t FILTER(?t = <<( :a :b :c )>>)",
    ];
    for pattern in patterns {
        assert_eq!(count(&database, pattern), 0, "{pattern}");
    }
    database.update(&format!("{PREFIX}INSERT DATA {{ :a :p <<( :a :b :c )>> }}")).expect("runs");
    for pattern in patterns {
        assert_eq!(count(&database, pattern), 1, "{pattern}");
    }
}

#[test]
fn blank_nodes_of_templates_are_new_in_triple_terms_too() {
    let database = Database::in_memory();
    let insert = "INSERT { ?x :says <<( _:n :p _:n )>> . _:n :of ?x } WHERE { VALUES ?x { :a :b } }";
    assert_eq!(database.update(&format!("{PREFIX}{insert}")).expect("runs").inserted, 4);
    assert_eq!(count(&database, "?x :says <<( ?n :p ?n )>> . ?n :of ?x FILTER(isBLANK(?n))"), 2);
    assert_eq!(column(&database, "SELECT (COUNT(DISTINCT ?t) AS ?n) { ?x :says ?t }").len(), 1);
    assert_eq!(count(&database, "?x :says ?t . ?y :says ?t FILTER(?x != ?y)"), 0);
}

#[test]
fn two_files_have_blank_nodes_of_their_own_in_triple_terms() {
    let database = Database::in_memory();
    let file = "_:b <http://e/p> <<( _:b <http://e/p> <<( _:b <http://e/p> _:b )>> )>> .\n";
    let sources = [1, 2].map(|number| Source::bytes(format!("{number}.nt"), file.as_bytes()));
    database.load(sources.into(), &LoadOptions::default()).expect("loads");
    assert_eq!(count(&database, "?b :p <<( ?b :p <<( ?b :p ?b )>> )>>"), 2);
}

#[test]
fn reifiers_have_their_triple_terms() {
    let database = Database::in_memory();
    let data = "PREFIX : <http://e/> :a :p 1 ~ :r {| :k 1 |}, 2 ~ _:s . :b :p 3 . GRAPH :g { :a :p 4 ~ :u } \
                << :a :p 1 ~ :r >> :q :z ~ :v . :r :q :z . :x <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> :y .";
    database.load_text(Format::TriG, data).expect("loads");
    let reifies = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies>";
    for (pattern, rows) in [
        // :r, _:s, :v, and a statement unrelated to reifiers.
        ("?r R ?t", 4),
        ("?r R ?t FILTER(isTRIPLE(?t))", 3),
        ("?r R ?t FILTER(OBJECT(?t) = 1)", 1),
        ("?r R ?t . ?r :k 1", 1),
        ("?r R ?t . ?v R ?u FILTER(SUBJECT(?u) = ?r)", 1),
        ("BIND(<<( :a :p 2 )>> AS ?t) ?r R ?t", 1),
        ("VALUES ?t { <<( :a :p 2 )>> <<( :b :p 3 )>> } ?r R ?t", 1),
        ("GRAPH :g { ?r R ?t }", 1),
        ("GRAPH ?g { ?r R ?t }", 1),
        ("?x :p ?o OPTIONAL { ?r R ?t FILTER(OBJECT(?t) = ?o) }", 3),
        ("?x R :y", 1),
    ] {
        assert_eq!(count(&database, &pattern.replace(" R ", &format!(" {reifies} "))), rows, "{pattern}");
    }
    // A reifying statement must be written with its statement.
    let insert = format!("INSERT {{ :n {reifies} ?t }} WHERE {{ VALUES ?t {{ <<( :a :p 1 )>> }} }}");
    let error = database.update(&format!("{PREFIX}{insert}")).expect_err("it is not");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let insert = format!("INSERT {{ :n {reifies} ?t }} WHERE {{ VALUES ?t {{ :y }} }}");
    assert_eq!(database.update(&format!("{PREFIX}{insert}")).expect("runs").inserted, 1);
}

#[test]
fn a_stored_triple_term_speaks_of_no_edge() {
    let database = Database::in_memory();
    database.load_text(Format::Turtle, DATA).expect("loads");
    let insert = "INSERT { :x :says <<( ?e :p 1 )>> } WHERE { :a :p 2 ~ ?e }";
    let error = database.update(&format!("{PREFIX}{insert}")).expect_err("an edge");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let text = "<http://e/a> <http://e/p> <<( <urn:vervet:edge:0> <http://e/p> <http://e/a> )>> .";
    let error = Database::in_memory().load_text(Format::NTriples, text).expect_err("an edge");
    assert!(error.message().contains("edge"), "{error}");
    // As a value of a query, an edge is an ordinary value.
    assert_eq!(count(&database, ":a :p 2 ~ ?e BIND(TRIPLE(?e, :p, 1) AS ?t) FILTER(SUBJECT(?t) = ?e)"), 1);
}

/// Inside EXISTS, and with parameters, a variable is already bound: the components of a triple term are
/// compared with it.
#[test]
fn what_rows_outside_bind_is_compared() {
    let database = Database::in_memory();
    let data = "@prefix : <http://e/> . @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
        :a1 :p 1 . :a2 :p 1 . :a3 :p 2 . :s :says <<( :a1 :q :o )>> . :s :says <<( :a3 :q <<( :a2 :q 7 )>> )>> .
        :x :k :y . :e rdf:reifies <<( :x :k :y )>> . :z :says <<( :x :k :y )>> . :w rdf:reifies :w .";
    database.load_text(Format::Turtle, data).expect("loads");
    let reifies = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies>";
    for (query, expected) in [
        ("SELECT ?a { ?a :p ?x FILTER EXISTS { ?s :says <<( ?a :q ?o )>> } }", "a1 a3"),
        ("SELECT ?a { ?a :p ?x FILTER NOT EXISTS { ?s :says <<( ?a :q ?o )>> } }", "a2"),
        ("SELECT ?a { ?a :p 1 FILTER EXISTS { ?s :says <<( ?b :q <<( ?a :q ?o )>> )>> } }", "a2"),
        ("SELECT ?a { ?a :p 1 FILTER EXISTS { ?a :p ?y . ?s :says <<( ?a :q ?o )>> } }", "a1"),
        (
            "SELECT ?a { ?a :p 1 FILTER EXISTS { ?b :p ?y FILTER EXISTS { ?s :says <<( ?a :q ?o )>> } } }",
            "a1",
        ),
        (
            "SELECT ?a { ?a :p ?x OPTIONAL { ?b :k ?c FILTER EXISTS { ?s :says <<( ?a :q ?o )>> } } FILTER(BOUND(?b)) }",
            "a1 a3",
        ),
        ("SELECT ?a { ?a :says ?t FILTER EXISTS { ?r R ?t } }", "z"),
        ("SELECT ?a { ?a :says ?t FILTER NOT EXISTS { ?r R ?t } }", "s s"),
        ("SELECT ?a { ?a R ?a }", "w"),
    ] {
        let mut found = column(&database, &query.replace(" R ", &format!(" {reifies} ")));
        found.sort();
        let expected: Vec<String> = expected.split(' ').map(|name| format!("<http://e/{name}>")).collect();
        assert_eq!(found, expected, "{query}");
    }
    let with = |query: &str, name: &str, value: &str| {
        let value = column(&database, &format!("SELECT ?v {{ VALUES ?v {{ {value} }} }}")).remove(0);
        let term: Term = value.parse().expect("a term");
        let options = QueryOptions::default().with_parameter(name, term);
        let prepared = database
            .prepare_with(&format!("{PREFIX}{}", query.replace(" R ", &format!(" {reifies} "))), &options)
            .expect("a query");
        let answer = prepared.run_with(&options).expect("it runs");
        answer.into_solutions().expect("a SELECT").len()
    };
    let query = "SELECT ?s ?a { ?s :says <<( ?a :q ?o )>> }";
    assert_eq!([":a1", ":a2", ":a3"].map(|value| with(query, "a", value)), [1, 0, 1]);
    let query = "SELECT ?r ?t { ?r R ?t }";
    assert_eq!(
        ["<<( :x :k :y )>>", "<<( :x :k :z )>>", ":w"].map(|value| with(query, "t", value)),
        [1, 0, 1]
    );
    // Cases without an exact answer are rejected.
    for refused in [
        "SELECT ?s { ?s :says ?z OPTIONAL { ?a :p 9 } FILTER EXISTS { ?s :says <<( ?a :q ?o )>> } }",
        "CONSTRUCT WHERE { ?r R ?t }",
    ] {
        let refused = format!("{PREFIX}{}", refused.replace(" R ", &format!(" {reifies} ")));
        let error = database.query(&refused).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{refused}");
    }
    for refused in ["DELETE WHERE { ?r R ?t }", "DELETE { ?r R ?t } WHERE { ?r R ?t }"] {
        let refused = format!("{PREFIX}{}", refused.replace(" R ", &format!(" {reifies} ")));
        let error = database.update(&refused).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{refused}");
    }
}
