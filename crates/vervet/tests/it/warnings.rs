//! Warnings of queries with an empty answer: unknown names, unbound variables, invalid patterns; `HAVING` on
//! an alias of `SELECT`; and vertex counts.

use vervet::{Database, Format, GremlinOptions};

const AIR: &str = r#"
@prefix key: <urn:vervet:key:> . @prefix label: <urn:vervet:label:> . @prefix v: <urn:vervet:vertex:> .
v:1 a label:airport ; key:code "VIE" ; key:country "AT" ; key:route v:2 ~ <urn:vervet:edge:0> .
v:2 a label:airport ; key:code "GRZ" ; key:country "AT" ; key:number "7" ; key:small "5"^^<http://www.w3.org/2001/XMLSchema#int> .
v:3 a label:airport ; key:code "FRA" ; key:country "DE" .
<urn:vervet:edge:0> key:dist 94 .
"#;

fn air() -> Database {
    let db = Database::in_memory();
    db.load_text(Format::Turtle, AIR).expect("it loads");
    db.update("INSERT DATA { GRAPH <urn:graph:air> { <urn:vervet:vertex:1> <urn:vervet:key:code> 'VIE' } }")
        .expect("it runs");
    db
}

fn warned(db: &Database, text: &str) -> Vec<String> {
    let query = format!("PREFIX key: <urn:vervet:key:> PREFIX label: <urn:vervet:label:> {text}");
    let prepared = db.prepare(&query).unwrap_or_else(|error| panic!("{text}: {error}"));
    prepared.warnings().expect("sound").iter().map(ToString::to_string).collect()
}

/// users 5: `HAVING` on an alias uses its value, as in other systems; by the letter of the standard it
/// matched nothing.
#[test]
fn users_5_having_may_name_what_select_computes() {
    let db = air();
    let rows = |text: &str| -> Vec<String> {
        let solutions = db
            .select(&format!("PREFIX key: <urn:vervet:key:> {text}"))
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        solutions.rows().map(|row| row.text("c").expect("sound").unwrap_or_default()).collect()
    };
    let of = |having: &str| {
        rows(&format!("SELECT ?c (COUNT(?a) AS ?n) {{ ?a key:country ?c }} GROUP BY ?c HAVING({having})"))
    };
    assert_eq!(of("?n > 1"), ["AT"]);
    assert_eq!(of("?n > 1 && COUNT(?a) < 3"), ["AT"]);
    assert_eq!(of("COUNT(?a) < 2"), ["DE"]);
    assert!(of("?n > 2").is_empty() && of("?nobody > 1").is_empty());
    // Aliases computed from others, in sub-queries, and with VALUES behind.
    assert_eq!(
        rows("SELECT ?c (COUNT(?a) AS ?n) (?n * 2 AS ?m) { ?a key:country ?c } GROUP BY ?c HAVING(?m = 4)"),
        ["AT"]
    );
    assert_eq!(
        rows(
            "SELECT ?c { { SELECT ?c (MIN(?a) AS ?first) { ?a key:country ?c } GROUP BY ?c HAVING(BOUND(?first)) } } ORDER BY ?c"
        ),
        ["AT", "DE"]
    );
}

/// users 16: unknown predicates, classes, variables and invalid patterns in SPARQL.
#[test]
fn users_16_sparql_names_that_are_not_there_are_told() {
    let db = air();
    for (query, expected) in [
        (
            "SELECT * { ?a key:cod ?c }",
            &["no statement has the predicate key:cod; did you mean key:code?"][..],
        ),
        (
            "SELECT * { ?a a label:airprot }",
            &["nothing has the type label:airprot; did you mean label:airport?"],
        ),
        (
            "SELECT ?a { ?a key:code ?code FILTER(?cod = 'VIE') }",
            &["nothing binds ?cod; did you mean ?code?"],
        ),
        ("SELECT (SUM(?x) AS ?s) { ?a key:code ?c }", &["nothing binds ?x"]),
        ("SELECT * { ?a key:code ?c } ORDER BY ?zzz", &["nothing binds ?zzz"]),
        (
            "SELECT * { ?a key:code ?c FILTER REGEX(?c, '[A-') }",
            &[
                "the regular expression \"[A-\" with the flags \"\" is an error: a class is not closed by ]; patterns and flags are those of XPath: docs/sparql.md",
            ],
        ),
        (
            "ASK { ?a key:rout/key:code ?c }",
            &["no statement has the predicate key:rout; did you mean key:route?"],
        ),
        (
            "SELECT * { ?a key:code ?c FILTER NOT EXISTS { ?a key:contry ?d } }",
            &["no statement has the predicate key:contry; did you mean key:country?"],
        ),
        (
            "SELECT * FROM <urn:graph:airs> { ?a key:code ?c }",
            &["no statement is in the graph <urn:graph:airs>; did you mean <urn:graph:air>?"],
        ),
        (
            "SELECT * { GRAPH <urn:graph:airs> { ?a key:code/key:code ?c } }",
            &["no statement is in the graph <urn:graph:airs>; did you mean <urn:graph:air>?"],
        ),
        // Values of another datatype.
        (
            "SELECT * { ?a key:dist '94' }",
            &["no statement has key:dist with the value \"94\"; did you mean 94?"],
        ),
        (
            "SELECT * { ?a key:dist '94'^^<http://www.w3.org/2001/XMLSchema#int> }",
            &["no statement has key:dist with the value \"94\"^^xsd:int; did you mean 94?"],
        ),
        (
            "SELECT * { ?a key:number 7 }",
            &["no statement has key:number with the value 7; did you mean \"7\"?"],
        ),
        (
            "SELECT * { ?a key:number ?n FILTER(7 = ?n) }",
            &["key:number has the value \"7\", which is not equal to 7"],
        ),
        (
            "SELECT * { ?a key:number ?n FILTER(?n IN (8, 7)) }",
            &["key:number has the value \"7\", which is not equal to 7"],
        ),
        ("SELECT * { ?a key:number ?n FILTER(?n != 7 && ?n NOT IN (7)) }", &[]),
        (
            "SELECT * { ?a key:dist '94'^^<http://www.w3.org/2001/XMLSchema#short> }",
            &["no statement has key:dist with the value \"94\"^^xsd:short; did you mean 94?"],
        ),
        (
            "SELECT * { ?a key:code 'VIE'@en }",
            &["no statement has key:code with the value \"VIE\"@en; did you mean \"VIE\"?"],
        ),
        ("SELECT * { ?a key:dist 95 ; key:number 8 , '8' , '7' FILTER(?a = 7) }", &[]),
        (
            "SELECT * { ?a key:small 5 }",
            &["no statement has key:small with the value 5; did you mean \"5\"^^xsd:int?"],
        ),
        ("SELECT * { ?a key:small ?s FILTER(?s = 5 && ?s = 6) }", &[]),
        ("SELECT * { ?a key:dist ?d FILTER(?d = 94.0 && ?d = 95) }", &[]),
        // A variable that only `BOUND` tests is not a mistake, unless a similar one is bound.
        ("SELECT ?a { ?a key:code ?c FILTER(!BOUND(?other)) }", &[]),
        (
            "SELECT ?a { ?a key:code ?code FILTER(!BOUND(?cod)) }",
            &["nothing binds ?cod; did you mean ?code?"],
        ),
        ("SELECT ?other { ?a key:code ?c FILTER(!BOUND(?other)) }", &["nothing binds ?other"]),
        // A name in a part that removes solutions does not explain an empty answer.
        ("SELECT * { ?a key:code 'XXX' FILTER NOT EXISTS { ?a key:gone true } }", &[]),
        ("SELECT * { ?a key:code 'XXX' MINUS { ?a key:gone true . ?b a label:ship } }", &[]),
        (
            "SELECT * { ?a key:code 'XXX' FILTER(!(!EXISTS { ?a key:gone true })) }",
            &["no statement has the predicate key:gone"],
        ),
        // No warnings: existing names, other endpoints, variables bound by a sub-query, parameters.
        ("SELECT * { ?a key:code 'XXX' ; a label:airport }", &[]),
        ("SELECT * FROM <urn:graph:air> { ?a key:code 'XXX' }", &[]),
        ("SELECT * FROM NAMED <urn:graph:air> { GRAPH ?g { ?a key:code 'XXX' } }", &[]),
        ("SELECT ?n { { SELECT (COUNT(*) AS ?n) { ?x ?p ?o } } }", &[]),
        ("SELECT * { VALUES ?a { <urn:x> } BIND(1 AS ?b) ?a ?p ?c . ?d key:route|key:code ?e }", &[]),
        ("SELECT * { ?a a label:airport FILTER EXISTS { ?a key:code ?inner } }", &[]),
    ] {
        assert_eq!(warned(&db, query), expected, "{query}");
    }
    let count = db.prepare("SELECT (COUNT(*) AS ?n) { ?a <urn:vervet:key:cod> ?c }").expect("a query");
    assert!(count.warnings_after(2).expect("sound").is_empty(), "an answer with rows needs none");
    assert_eq!(count.warnings_after(1).expect("sound").len(), 1, "a count of nothing is a row");
    // A variable that nothing binds is reported with any answer: the rows are not in the intended order.
    for (text, expected) in [
        ("SELECT ?code { ?a <urn:vervet:key:code> ?code } ORDER BY ?cod", &["nothing binds ?cod"][..]),
        ("SELECT ?code { ?a <urn:vervet:key:code> ?code FILTER NOT EXISTS { ?a <urn:no> ?b } }", &[]),
        ("SELECT ?g (COUNT(?a) AS ?n) { GRAPH ?g { ?a ?p ?c } } GROUP BY ?g ORDER BY ?n", &[]),
        ("SELECT ?g { GRAPH ?g {} }", &[]),
        ("SELECT ?e ?d { ?a ?p ?b ~ ?e . ?e ?q ?d }", &[]),
        ("SELECT ?b { ?e <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> <<( ?a ?p ?b )>> }", &[]),
        ("SELECT ?s { { SELECT (?o AS ?s) { ?a ?p ?o } } } ORDER BY ?s", &[]),
        ("CONSTRUCT { ?a <urn:to> _:new } { ?a <urn:vervet:key:route>+ ?b }", &[]),
        ("DESCRIBE ?a { ?a <urn:vervet:key:code> ?b }", &[]),
    ] {
        let warnings = db.prepare(text).expect("a query").warnings_after(2).expect("sound");
        let warnings: Vec<String> = warnings.iter().map(|warning| warning.message.clone()).collect();
        assert_eq!(warnings, expected, "{text}");
    }
    let many: String = (0..40).map(|i| format!("?a <urn:no:{i}x> ?b{i} . ")).collect();
    assert_eq!(warned(&db, &format!("SELECT * {{ {many} }}")).len(), 16, "no more than a person reads");
}

/// users 16: unknown labels, keys and edge labels in Gremlin.
#[test]
fn users_16_gremlin_names_that_are_not_there_are_told() {
    let db = air();
    for (text, expected) in [
        ("g.V().hasLabel('airprot')", &["nothing has the label \"airprot\"; did you mean \"airport\"?"][..]),
        (
            "g.V().has('cod', 'VIE').out('rout')",
            &[
                "nothing has the key \"cod\"; did you mean \"code\"?",
                "nothing has the edge label \"rout\"; did you mean \"route\"?",
            ],
        ),
        (
            "g.V().where(__.out('rute')).values('code')",
            &["nothing has the edge label \"rute\"; did you mean \"route\"?"],
        ),
        (
            "g.V().hasLabel('airport').order().by('cod')",
            &["nothing has the key \"cod\"; did you mean \"code\"?"],
        ),
        ("g.V().groupCount().by('contry')", &["nothing has the key \"contry\"; did you mean \"country\"?"]),
        ("g.V().has('code', 'XXX').project('cod').by('code').order().by('cod')", &[]),
        ("g.V().has('airport', 'code', 'XXX').outE('route').values('dist')", &[]),
        ("g.E().hasLabel('route').has('dist', 1)", &[]),
        ("g.addV('new').property('also', 1)", &[]),
        ("g.V().has('number', 7)", &["key:number has the value \"7\", which is not equal to 7"]),
        ("g.E().has('dist', '94').count()", &["key:dist has the value 94, which is not equal to \"94\""]),
        ("g.V().has('small', '5')", &["key:small has the value 5, which is not equal to \"5\""]),
        ("g.E().has('dist', 94).has('dist', 95L).has('small', 5).has('dist', gt('94'))", &[]),
    ] {
        let script =
            db.gremlin_script(text, &GremlinOptions::default()).unwrap_or_else(|error| panic!("{error}"));
        let warnings: Vec<String> =
            db.gremlin_warnings(&script).expect("sound").iter().map(ToString::to_string).collect();
        assert_eq!(warnings, expected, "{text}");
    }
}

/// A constraint on names that no data have.
#[test]
fn constraints_on_unknown_names_are_told() {
    let db = air();
    let warned = |text: &str| -> Vec<String> {
        let constraint: vervet::Constraint = text.parse().expect("a constraint");
        let warnings = db.constraint_warnings(&constraint).expect("sound");
        warnings.iter().map(ToString::to_string).collect()
    };
    let unique = |class: &str, key: &str| format!("unique <urn:vervet:label:{class}> <urn:vervet:key:{key}>");
    assert_eq!(
        warned(&unique("airprot", "cod")),
        [
            "nothing has the type label:airprot; did you mean label:airport?",
            "no statement has the predicate key:cod; did you mean key:code?",
        ]
    );
    assert!(warned(&unique("airport", "code")).is_empty());
}

/// Names of an update that changed nothing.
#[test]
fn updates_that_change_nothing_tell_unknown_names() {
    let db = air();
    let warned = |text: &str| -> Vec<String> {
        let text = format!("PREFIX key: <urn:vervet:key:> PREFIX label: <urn:vervet:label:> {text}");
        assert_eq!(db.update(&text).unwrap_or_else(|error| panic!("{error}")).removed, 0, "{text}");
        let warnings = db.update_warnings(&text, &vervet::QueryOptions::default()).expect("valid");
        warnings.iter().map(ToString::to_string).collect()
    };
    let cod = ["no statement has the predicate key:cod; did you mean key:code?"];
    assert_eq!(warned("DELETE WHERE { ?a key:cod ?b }"), cod);
    assert_eq!(warned("DELETE DATA { <urn:a> key:cod 1 }"), cod);
    assert_eq!(warned("DELETE { ?a key:cod ?b } WHERE { ?a key:code ?b }"), cod);
    assert_eq!(
        warned("DELETE { ?a key:code ?b } WHERE { ?a a label:airprot ; key:code ?b }"),
        ["nothing has the type label:airprot; did you mean label:airport?"]
    );
    assert_eq!(
        warned("WITH <urn:graph:airs> DELETE { ?a key:code ?b } WHERE { ?a key:code ?b }"),
        ["no statement is in the graph <urn:graph:airs>; did you mean <urn:graph:air>?"]
    );
    assert_eq!(warned("DELETE { ?a key:code ?x } WHERE { ?a key:code 'XXX' }"), ["nothing binds ?x"]);
    assert!(warned("DELETE WHERE { ?a key:code 'XXX' }").is_empty());
}

/// users 35: the vertex count agrees with Gremlin's, also after removals.
#[test]
fn users_35_vertices_are_counted_as_gremlin_counts_them() {
    let db = air();
    let check = || {
        let counted = db.gremlin("g.V().count()").expect("it runs").into_values().expect("one");
        let count = db.snapshot().vertex_count().expect("sound");
        assert_eq!(counted, [vervet::gremlin::Value::Long(i64::try_from(count).expect("few"))]);
        count
    };
    assert_eq!(check(), 3);
    assert!(db.snapshot().as_snapshot().vertex_count() > 3, "predicates and classes have ids, too");
    db.update("INSERT DATA { <urn:x> <urn:y> <urn:z> . <urn:only> <urn:text> 'a' }").expect("it runs");
    assert_eq!(check(), 6);
    db.update("DELETE DATA { <urn:x> <urn:y> <urn:z> . <urn:only> <urn:text> 'a' }").expect("it runs");
    assert_eq!(check(), 3);
}
