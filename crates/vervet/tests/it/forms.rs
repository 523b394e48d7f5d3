//! Query forms, parameters, base IRIs, and expressions with a new value for each solution.

use std::collections::BTreeSet;
use vervet::{Answer, Database, ErrorKind, Format, Literal, NamedNode, OutputFormat, QueryOptions, Triple};

fn sample() -> Database {
    let database = Database::in_memory();
    database
        .load_text(
            Format::TriG,
            r#"@prefix : <http://example.org/> .
               :ann :name "Ann" ; :knows :bob, :eve ; :address [ :city "Graz" ; :country [ :code "AT" ] ] .
               :bob :name "Bob" ; :knows :eve .
               :eve :name "Eve" ; :age 30 .
               :work { :ann :knows :bob ; :title "Dr" }"#,
        )
        .expect("it loads");
    database
}

fn graph(database: &Database, query: &str) -> Vec<Triple> {
    match database.query(query).expect("it runs") {
        Answer::Graph(triples) => triples,
        other => panic!("no graph: {other:?}"),
    }
}

const PREFIX: &str = "PREFIX : <http://example.org/>\n";

#[test]
fn written_results_are_those_that_are_held() {
    let database = sample();
    for query in [
        "SELECT * { ?s :knows ?o }",
        "SELECT ?s ?none { ?s :name ?n }",
        "SELECT ?n (STRLEN(?n) * 1.5 AS ?l) { ?s :name ?n } ORDER BY ?n",
        "SELECT ?s { ?s :knows ?o }",
        "SELECT ?s { ?s ?p ?o } OFFSET 2 LIMIT 3",
        "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
        "SELECT * { }",
    ] {
        let query = PREFIX.to_owned() + query;
        let solutions = database.select(&query).expect("it runs");
        let mut held = String::new();
        for row in solutions.rows() {
            let term = |name: &String| row.get(name).expect("readable").map(|term| term.to_string());
            let terms: Vec<String> =
                solutions.variables().iter().map(|name| term(name).unwrap_or_default()).collect();
            held += &(terms.join("\t") + "\n");
        }
        let mut bytes = Vec::new();
        let written = database.write(&query, &QueryOptions::default(), OutputFormat::Tsv, &mut bytes);
        assert_eq!(written.expect("it runs").rows, solutions.len() as u64, "{query}");
        let tsv = String::from_utf8(bytes).expect("TSV is UTF-8");
        let (header, rows) = tsv.split_once('\n').expect("there is a header");
        let names: Vec<String> = solutions.variables().iter().map(|name| format!("?{name}")).collect();
        assert_eq!(header, names.join("\t"), "{query}");
        assert_eq!(rows, held, "{query}");
    }
}

#[test]
fn templates_make_blank_nodes_for_each_solution() {
    let database = sample();
    let query = PREFIX.to_owned() + "CONSTRUCT { ?s :met _:m . _:m :whom ?o ; :again _:m } { ?s :knows ?o }";
    let triples = graph(&database, &query);
    let meetings: BTreeSet<String> = triples
        .iter()
        .filter(|triple| triple.predicate.as_str().ends_with("whom"))
        .map(|triple| triple.subject.to_string())
        .collect();
    assert_eq!((triples.len(), meetings.len()), (9, 3));
    // Solutions without variables count separately too.
    let query = PREFIX.to_owned() + "CONSTRUCT { [] :is :met } { ?s :knows ?o }";
    assert_eq!(graph(&database, &query).len(), 3);
    // Literals cannot be subjects; unbound variables produce no triples.
    let query = PREFIX.to_owned() + "CONSTRUCT { ?n :of ?s . ?s :has ?none, ?n } { ?s :name ?n }";
    assert_eq!(graph(&database, &query).len(), 3);
}

#[test]
fn descriptions_follow_blank_nodes_and_say_nothing_twice() {
    let database = sample();
    let about = |query: &str| graph(&database, &(PREFIX.to_owned() + query));
    // Three statements of Ann in the default graph with her address, one in another; the address and its
    // country.
    let triples = about("DESCRIBE :ann");
    let distinct: BTreeSet<String> = triples.iter().map(ToString::to_string).collect();
    assert_eq!((triples.len(), distinct.len()), (8, 8), "{triples:?}");
    assert_eq!(about("DESCRIBE ?s :ann :nobody { ?s :name ?n }").len(), 12);
    assert_eq!(about("DESCRIBE ?n { ?s :name ?n }"), []);
    assert_eq!(about("DESCRIBE * { ?s :age ?a }").len(), 2);
}

#[test]
fn asking_is_about_one_solution() {
    let database = sample();
    let ask = |text: &str| match database.query(&(PREFIX.to_owned() + text)).expect("it runs") {
        Answer::Boolean(value) => value,
        other => panic!("no truth value: {other:?}"),
    };
    assert!(ask("ASK {}"));
    assert!(ask("ASK { :ann :knows ?x }"));
    assert!(!ask("ASK { :eve :knows ?x }"));
    assert!(!ask("ASK { ?x :knows ?y } LIMIT 0"));
    assert!(ask("ASK { SELECT (COUNT(*) AS ?n) { ?x :nothing ?y } }"));
    let error = database.select("ASK {}").expect_err("it is no SELECT");
    assert_eq!(error.kind(), ErrorKind::Query);
}

#[test]
fn plans_are_cached_by_names_of_parameters_and_prefixes() {
    let database = sample();
    let rows = |text: &str, options: &QueryOptions| {
        let before = database.plan_cache_counts().hits;
        let Answer::Solutions(solutions) = database.query_with(text, options).expect("it runs") else {
            panic!("a SELECT")
        };
        (solutions.len(), database.plan_cache_counts().hits - before)
    };
    let text = PREFIX.to_owned() + "SELECT ?s ?n { ?s :name ?n }";
    let name = |name: &str, text: &str| QueryOptions::default().with_parameter(name, Literal::from(text));
    let all = rows(&text, &QueryOptions::default());
    assert!(all.0 > 1 && all.1 == 0, "{all:?}");
    assert_eq!(rows(&text, &name("n", "Ann")), (1, 0));
    assert_eq!(rows(&text, &name("n", "Bob")), (1, 1));
    assert_eq!(rows(&text, &name("n", "nothing")), (0, 1));
    assert_eq!(rows(&text, &name("s", "Ann")), (0, 0));
    assert_eq!(rows(&text, &QueryOptions::default()), (all.0, 1));
    let both = |first: (&str, &str), second: (&str, &str)| {
        let options = name(first.0, first.1);
        options.with_parameter(second.0, Literal::from(second.1))
    };
    assert_eq!(rows(&text, &both(("n", "Ann"), ("s", "Ann"))), (0, 0));
    assert_eq!(rows(&text, &both(("s", "Ann"), ("n", "Bob"))), (0, 1));
    // The same text with other prefixes is another query.
    let prefixed = |iri: &str| QueryOptions {
        prefixes: vec![("e".to_owned(), iri.to_owned())],
        ..QueryOptions::default()
    };
    let text = "SELECT ?n { ?s e:name ?n }";
    assert_eq!(rows(text, &prefixed("http://example.org/")), (all.0, 0));
    assert_eq!(rows(text, &prefixed("http://example.com/")), (0, 0));
    assert_eq!(rows(text, &prefixed("http://example.org/")), (all.0, 1));
}

/// A plan that rests on a predicate, or a graph, without statements is not used once there are some.
#[test]
fn plans_of_an_emptied_graph_are_not_used_again() {
    let database = Database::in_memory();
    let data = "<urn:v> <urn:p0> <urn:o> . <urn:v> <urn:p1> <urn:o> .";
    database.load_text(Format::NTriples, &data.replace(" . ", " .\n")).expect("it loads");
    let ask = |text: &str| match database.query(text).expect("it runs") {
        Answer::Boolean(value) => value,
        other => panic!("no truth value: {other:?}"),
    };
    let joined = "ASK { ?a <urn:p0> ?c . ?a <urn:p1> ?e }";
    for (remove, text) in [
        ("CLEAR DEFAULT", "ASK { ?a <urn:p0> ?c }"),
        ("DELETE WHERE { ?s ?p ?o }", joined),
        ("DELETE WHERE { ?s <urn:p1> ?o }", joined),
    ] {
        assert!(ask(text), "{text} before {remove}");
        database.update(remove).expect("it runs");
        assert!(!ask(text), "{text} after {remove}");
        let insert = "INSERT DATA { <urn:z> <urn:p0> <urn:o> . <urn:z> <urn:p1> <urn:o> }";
        database.update(insert).expect("it runs");
        assert!(ask(text), "{text} after {remove} and an insertion");
    }
}

#[test]
fn parameters_are_bound_again_and_again() {
    let database = sample();
    let name = |text: &str| QueryOptions::default().with_parameter("n", Literal::from(text));
    let text = PREFIX.to_owned() + "SELECT ?s ?n { ?s :name ?n }";
    let prepared = database.prepare_with(&text, &name("Ann")).expect("it is a query");
    let count = |options: &QueryOptions| match prepared.run_with(options).expect("it runs") {
        Answer::Solutions(solutions) => solutions.len(),
        other => panic!("no solutions: {other:?}"),
    };
    for _ in 0..2 {
        assert_eq!(count(&name("Ann")), 1);
        assert_eq!(count(&name("Bob")), 1);
        // A term that the graph does not have, a term that is not a name, and a term that cannot be looked
        // up.
        assert_eq!(count(&name("Zoe, of whom nothing is known")), 0);
        let other = |term: vervet::Term| QueryOptions::default().with_parameter("n", term);
        assert_eq!(count(&other(NamedNode::new_unchecked("http://example.org/ann").into())), 0);
        assert_eq!(count(&other(NamedNode::new_unchecked("http://example.org/nobody").into())), 0);
        assert_eq!(count(&other(Literal::from(7).into())), 0);
    }
    let error = prepared.run().expect_err("it has no value");
    assert_eq!(error.kind(), ErrorKind::Query);
    // As subject, predicate and object, and in expressions; new terms are ordinary values.
    let all = "SELECT ?p (CONCAT(?t, \"!\") AS ?u) ?t { { ?s ?p ?o } UNION { BIND(?t AS ?o) } }";
    let options = QueryOptions::default()
        .with_parameter("t", Literal::from("a text that is new to the graph"))
        .with_parameter("s", NamedNode::new_unchecked("http://example.org/nobody"))
        .with_parameter("p", NamedNode::new_unchecked("http://example.org/unheard"));
    let Answer::Solutions(solutions) = database.query_with(all, &options).expect("it runs") else {
        panic!("a SELECT")
    };
    assert_eq!(solutions.len(), 1);
    let row = solutions.rows().next().expect("one row");
    assert_eq!(row.text("t").expect("readable").as_deref(), Some("a text that is new to the graph"));
    assert_eq!(row.text("u").expect("readable").as_deref(), Some("a text that is new to the graph!"));
    assert_eq!(row.text("p").expect("readable").as_deref(), Some("http://example.org/unheard"));
    // The term is added later: plans are valid for one version.
    database
        .load_text(Format::NTriples, "<urn:z> <http://example.org/name> \"Zoe, of whom nothing is known\" .")
        .expect("loads");
    assert_eq!(count(&name("Zoe, of whom nothing is known")), 1);
}

#[test]
fn relative_names_are_resolved_against_the_base() {
    let database = sample();
    let with_base = QueryOptions { base_iri: Some("http://example.org/".into()), ..QueryOptions::default() };
    for (query, options) in [
        ("SELECT (IRI(\"bob\") AS ?b) { <ann> <knows> <bob> }", &with_base),
        ("BASE <http://example.org/> SELECT (IRI(\"bob\") AS ?b) { <ann> <knows> <bob> }", &with_base),
        (
            "BASE <http://example.org/> SELECT (IRI(\"bob\") AS ?b) { <ann> <knows> <bob> }",
            &QueryOptions::default(),
        ),
    ] {
        let Answer::Solutions(solutions) = database.query_with(query, options).expect("it runs") else {
            panic!("a SELECT")
        };
        let row = solutions.rows().next().expect("one row");
        assert_eq!(row.text("b").expect("readable").as_deref(), Some("http://example.org/bob"), "{query}");
    }
}

#[test]
fn what_is_made_anew_is_made_for_each_solution() {
    let database = sample();
    // Three solutions, without projected variables.
    for call in ["UUID()", "STRUUID()", "RAND()", "BNODE()", "BNODE(\"x\")"] {
        for query in [
            format!("SELECT ({call} AS ?v) {{ ?s :knows ?o }}"),
            format!("SELECT ?v {{ ?s :knows ?o BIND({call} AS ?v) }}"),
            format!("SELECT ?v {{ {{ SELECT ?s {{ ?s :knows ?o }} }} BIND({call} AS ?v) }}"),
            format!("SELECT DISTINCT ({call} AS ?v) {{ ?s :knows ?o }}"),
        ] {
            let solutions = database.select(&(PREFIX.to_owned() + &query)).expect("it runs");
            let distinct: BTreeSet<_> = solutions.column("v").expect("a column").iter().collect();
            assert_eq!((solutions.len(), distinct.len()), (3, 3), "{query}");
        }
    }
    // Within one solution, one text denotes one blank node.
    let query = "SELECT (BNODE(\"x\") AS ?v) (BNODE(\"x\") AS ?w) (BNODE(\"y\") AS ?z) { ?s :knows ?o }";
    let solutions = database.select(&(PREFIX.to_owned() + query)).expect("it runs");
    assert_eq!(solutions.column("v"), solutions.column("w"));
    let nodes = ["v", "z"].map(|name| solutions.column(name).expect("a column").to_vec()).concat();
    assert_eq!(nodes.into_iter().collect::<BTreeSet<_>>().len(), 6);
}

#[test]
fn every_form_can_be_profiled() {
    let database = sample();
    for query in [
        "SELECT * { ?s :knows ?o }",
        "ASK { ?s :knows ?o }",
        "CONSTRUCT { ?s :met ?o } { ?s :knows ?o }",
        "DESCRIBE ?o { ?s :knows ?o }",
    ] {
        let prepared = database.prepare(&(PREFIX.to_owned() + query)).expect("it is a query");
        let plan = prepared.explain().expect("it has a plan");
        let profile = prepared.profile_with(&QueryOptions::default()).expect("it runs");
        assert!(profile.lines().count() >= plan.lines().count() && profile != plan, "{profile}");
        // Profiling applies to that run alone.
        if let Answer::Solutions(solutions) = prepared.run().expect("it runs") {
            assert_eq!(solutions.profile(), None);
        }
    }
}

/// A parameter is substituted in templates and in `DESCRIBE`, even if the pattern does not mention it.
#[test]
fn parameters_are_values_in_templates() {
    let database = sample();
    let iri = |name: &str| NamedNode::new_unchecked(format!("http://example.org/{name}"));
    let tag = Literal::from("a text that is new to the graph");
    let options =
        QueryOptions::default().with_parameter("tag", tag.clone()).with_parameter("who", iri("eve"));
    let ask = |text: &str| match database.query_with(&(PREFIX.to_owned() + text), &options).expect("it runs")
    {
        Answer::Graph(triples) => triples,
        other => panic!("no graph: {other:?}"),
    };
    let tagged = ask("CONSTRUCT { ?s :tagged ?tag . ?who :of ?s . ?s :never ?unbound } WHERE { ?s :age ?a }");
    let expected =
        [Triple::new(iri("eve"), iri("tagged"), tag.clone()), Triple::new(iri("eve"), iri("of"), iri("eve"))];
    assert_eq!(tagged, expected);
    // It is visible in a sub-query as well.
    assert_eq!(
        ask("CONSTRUCT { ?s :tagged ?tag } WHERE { { SELECT ?s { ?s :age ?a . FILTER(?who = ?s) } } }"),
        expected[..1]
    );
    let described = ask("DESCRIBE ?who WHERE { ?s :city ?c . FILTER(STRLEN(?tag) > 1) }");
    assert_eq!(described.len(), 2, "{described:?}");
}

/// Names in plans are those of the query; a name that no prefix shortens keeps its end, which tells it from
/// others.
#[test]
fn plans_use_the_prefixes_of_the_query() {
    let namespace = "http://example.org/a/vocabulary/with/a/very/long/namespace/of/names/";
    let database = Database::in_memory();
    let data = format!("<urn:a> <{namespace}first> <urn:b> . <urn:b> <{namespace}second> <urn:c> .");
    database.load_text(Format::NTriples, &data.replace(" . ", " .\n")).expect("it loads");
    let plan = |text: &str| database.explain(text, &QueryOptions::default()).expect("it plans");
    let named = plan(&format!("PREFIX dc: <{namespace}> SELECT * {{ ?x dc:first ?y . ?y dc:second ?z }}"));
    assert!(named.contains("dc:first") && named.contains("dc:second"), "{named}");
    let bare = plan(&format!("SELECT * {{ ?x <{namespace}first> ?y . ?y <{namespace}second> ?z }}"));
    assert!(bare.contains("names/first>") && bare.contains("names/second>"), "{bare}");
}
