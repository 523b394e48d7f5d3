//! The world's air routes from GraphML, CSV and N-Triples: equal graphs with equal answers, in SPARQL and in
//! Gremlin; and a round trip.

use std::path::PathBuf;
use vervet::gremlin::Value;
use vervet::{Database, Direction, EdgeRange, Format, Literal, LoadOptions, QueryOptions, Source, Term};

/// The folder of the air routes, if the test data are available.
fn data() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("VERVET_TEST_DATA").map_or(beside, PathBuf::from);
    let found =
        ["data/air-routes", "air-routes"].iter().map(|name| folder.join(name)).find(|path| path.is_dir());
    if found.is_none() {
        eprintln!("skipped: no air routes at ../shared nor in VERVET_TEST_DATA");
    }
    found
}

fn load(files: &[&str]) -> Option<Database> {
    let folder = data()?;
    let db = Database::in_memory();
    let sources = files.iter().map(|name| Source::path(folder.join(name))).collect();
    db.load(sources, &LoadOptions::default()).expect("valid");
    db.check().expect("whole");
    Some(db)
}

const CSV: [&str; 2] = ["air-routes-nodes.csv", "air-routes-edges.csv"];

/// `?n` of the only row, which must be equal on one and on several threads.
fn count(db: &Database, query: &str) -> i64 {
    let [one, two, four] = [1, 2, 4].map(|threads| {
        let heavy_from = if threads == 1 { vervet::HEAVY_FROM_DEFAULT } else { std::time::Duration::ZERO };
        let options = QueryOptions { heavy_from, ..QueryOptions::default().with_threads(threads) };
        let answer = db.query_with(query, &options).expect("runs");
        let solutions = answer.into_solutions().expect("a SELECT");
        solutions.rows().next().and_then(|row| row.integer("n").expect("a number")).expect("one row")
    });
    assert_eq!([two, four], [one; 2], "{query}");
    one
}

const AIRPORTS: &str = "SELECT (COUNT(*) AS ?n) { ?a a <urn:vervet:label:airport> }";
const ROUTES: &str = "PREFIX key: <urn:vervet:key:> SELECT (COUNT(*) AS ?n) (SUM(?d) AS ?miles) {
  ?a key:route ?b ~ ?e . ?e key:dist ?d }";
const CONTAINS: &str = "SELECT (COUNT(*) AS ?n) { ?a <urn:vervet:key:contains> ?b }";

/// Counts on which the three forms must agree: airports, routes, pairs of containment.
const COUNTS: [i64; 3] = [3504, 50_637, 7008];

/// The distance from Austin (3) to London Heathrow (49), by the typed interface.
fn distance(db: &Database) -> String {
    let snapshot = db.snapshot();
    let graph = snapshot.graph();
    let airport = |code: &str| {
        let code = Term::Literal(vervet::Literal::new_simple_literal(code));
        let found = graph.vertices_with_property("code", &code).expect("whole");
        let of_airport =
            |v: &vervet::Vertex| graph.labels(*v).expect("whole").contains(&"airport".to_owned());
        found.into_iter().find(of_airport).expect("an airport")
    };
    let (austin, london) = (airport("AUS"), airport("LHR"));
    let routes = graph.edges(austin, "route", Direction::Out).expect("whole");
    let route = routes.into_iter().find(|edge| edge.target == london).expect("a route");
    match graph.property(route, "dist").expect("whole") {
        Some(Term::Literal(value)) => value.value().to_owned(),
        other => panic!("{other:?}"),
    }
}

fn check_property_graph(db: &Database) -> i64 {
    assert_eq!([AIRPORTS, ROUTES, CONTAINS].map(|query| count(db, query)), COUNTS);
    assert_eq!(db.snapshot().as_snapshot().edge_count(), 57_645);
    assert_eq!(distance(db), "4901");
    let solutions = db.select(ROUTES).expect("runs");
    solutions.rows().next().and_then(|row| row.integer("miles").expect("a number")).expect("one row")
}

/// Plan F3: routes have identities and no two are parallel, so both languages find triangles by
/// intersections.
fn f3_triangles_intersect_in_both_languages(db: &Database) {
    let gremlin = "g.V().as('a').out('route').out('route').out('route').where(eq('a')).count()";
    let sparql = "PREFIX key: <urn:vervet:key:> SELECT (COUNT(*) AS ?n) {
      ?a key:route ?b . ?b key:route ?c . ?c key:route ?a }";
    let run = |text: &str| db.gremlin(text).expect("runs").into_values().expect("there are few");
    let plan = match run(&format!("{gremlin}.explain()")).as_slice() {
        [Value::String(plan)] => plan.to_string(),
        other => panic!("{other:?}"),
    };
    for plan in [plan, db.explain(sparql, &QueryOptions::default()).expect("plans")] {
        assert!(plan.contains("intersect") && !plan.contains("match "), "{plan}");
    }
    assert_eq!(run(gremlin), [Value::Long(count(db, sparql))]);
}

#[test]
fn graphml_csv_and_ntriples_give_the_same_counts() {
    let Some(csv) = load(&CSV) else { return };
    let Some(graphml) = load(&["air-routes.graphml.zst"]) else { return };
    let Some(rdf) = load(&["air-routes.nt.zst"]) else { return };
    let miles = check_property_graph(&csv);
    assert_eq!(check_property_graph(&graphml), miles);
    assert_eq!(csv.snapshot().statement_count(), graphml.snapshot().statement_count());
    f3_triangles_intersect_in_both_languages(&graphml);

    // In the N-Triples file, each route is a statement and, for its distance, a vertex of its own.
    let prefix = "PREFIX a: <http://example.org/air/ont#> SELECT (COUNT(*) AS ?n) ";
    let airports = format!("{prefix} {{ ?a a a:Airport }}");
    let routes = format!("{prefix} {{ ?a a:route ?b }}");
    let contains = format!("{prefix} {{ ?a a:contains ?b }}");
    assert_eq!([airports, routes, contains].map(|query| count(&rdf, &query)), COUNTS);
    let legs = "PREFIX a: <http://example.org/air/ont#> SELECT (SUM(?d) AS ?n) {
      ?leg a:from ?a ; a:to ?b ; a:dist ?d . ?a a:route ?b }";
    assert_eq!(count(&rdf, legs), miles);
    let snapshot = rdf.snapshot();
    let graph = snapshot.graph();
    let label = "http://example.org/air/ont#Airport";
    assert_eq!(graph.vertices_with_label(label).expect("whole").len(), 3504);
}

#[test]
fn an_export_brings_the_air_routes_back() {
    let Some(db) = load(&CSV) else { return };
    let miles = check_property_graph(&db);
    for format in [Format::NTriples, Format::NQuads, Format::Turtle] {
        let mut text = Vec::new();
        db.export(format, &mut text).expect("exports");
        let again = Database::in_memory();
        let options = LoadOptions { format: Some(format), ..LoadOptions::default() };
        again.load(vec![Source::bytes("export", text)], &options).expect("valid");
        again.check().expect("whole");
        assert_eq!(check_property_graph(&again), miles);
        assert_eq!(again.snapshot().statement_count(), db.snapshot().statement_count());
        same_edges(&db, &again);
    }
}

/// Asserts that every route has the same ends and properties.
fn same_edges(one: &Database, two: &Database) {
    let routes = |db: &Database| {
        let snapshot = db.snapshot();
        let graph = snapshot.graph();
        let mut rows = Vec::new();
        for airport in graph.vertices_with_label("airport").expect("whole") {
            for edge in graph.edges(airport, "route", Direction::Out).expect("whole") {
                let ends = [edge.source, edge.target].map(|vertex| graph.external_id(vertex).expect("whole"));
                rows.push((
                    ends,
                    graph.properties(edge).expect("whole"),
                    graph.property_values(edge, "urn:vervet:id").expect("whole"),
                ));
            }
        }
        rows.sort_by_cached_key(|row| format!("{row:?}"));
        rows
    };
    let (one, two) = (routes(one), routes(two));
    assert_eq!(one.len(), 50_637);
    assert!(one == two, "the routes differ");
}

/// Routes ordered by length: a load declares the order, later loads keep it, and ranges list it.
#[test]
fn routes_come_in_the_order_of_their_length() {
    let Some(folder) = data() else { return };
    let db = Database::in_memory();
    let sources = CSV.iter().map(|name| Source::path(folder.join(name))).collect();
    let orders = vec![("route".to_owned(), "dist".to_owned()), ("contains".to_owned(), "elev".to_owned())];
    db.load(sources, &LoadOptions { orders, ..LoadOptions::default() }).expect("valid");
    // A later load without orders keeps them.
    db.load_text(Format::Turtle, "<http://e/s> <http://e/p> 1 .").expect("valid");
    db.check().expect("whole");
    let snapshot = db.snapshot();
    let graph = snapshot.graph();
    let miles = |edge| match graph.property(edge, "dist").expect("whole") {
        Some(Term::Literal(value)) => value.value().parse::<i64>().expect("a number"),
        other => panic!("{other:?}"),
    };
    let mut listed = 0;
    for direction in [Direction::Out, Direction::In] {
        for airport in graph.vertices_with_label("airport").expect("whole").into_iter().step_by(7) {
            let mut all: Vec<i64> =
                graph.edges(airport, "route", direction).expect("whole").into_iter().map(miles).collect();
            all.sort_unstable();
            let lengths = |range: &EdgeRange| -> Vec<i64> {
                let edges = graph.edges_in_order(airport, "route", direction, range).expect("ordered");
                edges.into_iter().map(miles).collect()
            };
            assert_eq!(lengths(&EdgeRange::default()), all);
            let (from, before) = (Some(Literal::from(300)), Some(Literal::from(1000)));
            let middle: Vec<i64> = all.iter().copied().filter(|miles| (300..1000).contains(miles)).collect();
            assert_eq!(lengths(&EdgeRange { from, before, ..EdgeRange::default() }), middle);
            all.reverse();
            all.truncate(3);
            assert_eq!(lengths(&EdgeRange { newest_first: true, limit: 3, ..EdgeRange::default() }), all);
            listed += all.len();
        }
    }
    assert!(listed > 1000, "{listed}");
    // A property of the neighbours: what a country contains, highest first.
    let countries = graph.vertices_with_label("country").expect("whole");
    let highest = EdgeRange { newest_first: true, limit: 5, ..EdgeRange::default() };
    for country in countries.into_iter().step_by(5) {
        let edges = graph.edges_in_order(country, "contains", Direction::Out, &highest).expect("ordered");
        let height = |edge: &vervet::Edge| match graph.property(edge.target, "elev").expect("whole") {
            Some(Term::Literal(value)) => value.value().parse::<i64>().expect("a number"),
            _ => i64::MIN,
        };
        assert!(edges.iter().map(height).is_sorted_by(|a, b| a >= b));
    }
    let austin = graph.vertex("3").expect("whole").expect("Austin");
    let text =
        EdgeRange { from: Some(Literal::from("a text of more than seven bytes")), ..EdgeRange::default() };
    assert!(graph.edges_in_order(austin, "route", Direction::Out, &text).is_err());
    assert!(graph.edges_in_order(austin, "code", Direction::Out, &EdgeRange::default()).is_err());
    assert!(graph.edges_in_order(austin, "no such", Direction::Out, &highest).expect("whole").is_empty());
}

/// The rows of a SPARQL answer: lexical forms separated by blanks, in order.
fn rows(db: &Database, query: &str) -> Vec<String> {
    let prefixes = "PREFIX : <urn:vervet:key:> PREFIX l: <urn:vervet:label:> PREFIX v: <urn:vervet:vertex:> ";
    let solutions =
        db.select(&format!("{prefixes}{query}")).unwrap_or_else(|error| panic!("{query}: {error}"));
    let text = |term: &Term| match term {
        Term::Literal(literal) => literal.value().to_owned(),
        term => term.to_string(),
    };
    let row = |row: vervet::Row<'_>| -> String {
        let values: Vec<String> = solutions
            .variables()
            .iter()
            .map(|name| row.get(name).expect("whole").map_or_else(String::new, |term| text(&term)))
            .collect();
        values.join(" ")
    };
    let mut all: Vec<String> = solutions.rows().map(row).collect();
    all.sort();
    all
}

/// The results of a traversal in the same form: maps as their values, lists as their items, numbers in
/// SPARQL's notation.
fn results(db: &Database, text: &str, kernels: bool) -> Vec<String> {
    fn show(value: &Value) -> String {
        match value {
            Value::String(text) => text.to_string(),
            Value::List(items) => items.iter().map(show).collect::<Vec<_>>().join(" "),
            Value::Map(map) => map.values().map(show).collect::<Vec<_>>().join(" "),
            Value::Int(number) => number.to_string(),
            Value::Long(number) => number.to_string(),
            value => panic!("{value} is neither a text nor a whole number"),
        }
    }
    let options = vervet::GremlinOptions { kernels, ..vervet::GremlinOptions::default() };
    let results = db.gremlin_with(text, &options).unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut all: Vec<String> = results.values().map(show).collect();
    all.sort();
    all
}

/// Each question in SPARQL and in Gremlin, with its answer, or the number of its rows, counted in the CSV
/// files.
const QUESTIONS: [[&str; 4]; 12] = [
    [
        "how many airports there are",
        "SELECT (COUNT(*) AS ?n) { ?a a l:airport }",
        "g.V().hasLabel('airport').count()",
        "3504",
    ],
    [
        "where one can fly from Austin",
        "SELECT ?c { ?a :code 'AUS' ; :route ?b . ?b :code ?c }",
        "g.V().has('airport', 'code', 'AUS').out('route').values('code')",
        "98 rows",
    ],
    [
        "how far it is to each of those, if it is far",
        "SELECT ?c ?d { ?a :code 'AUS' ; :route ?b ~ ?e . ?e :dist ?d . ?b :code ?c FILTER(?d > 4000) }",
        "g.V().has('airport', 'code', 'AUS').outE('route').has('dist', gt(4000)).as('e').
           project('c', 'd').by(inV().values('code')).by('dist')",
        "4 rows",
    ],
    [
        "how many airports can be reached with two flights",
        "SELECT (COUNT(DISTINCT ?c) AS ?n) { v:3 :route/:route ?c }",
        "g.V(3).out('route').out('route').dedup().count()",
        "1044",
    ],
    [
        "how many ways there are to fly twice",
        "SELECT (COUNT(*) AS ?n) { v:3 :route ?b . ?b :route ?c }",
        "g.V(3).out('route').out('route').count()",
        "8354",
    ],
    [
        "how many airports each continent has",
        "SELECT ?c (COUNT(*) AS ?n) { ?k a l:continent ; :code ?c ; :contains ?a . ?a a l:airport } GROUP BY ?c",
        "g.V().hasLabel('continent').as('k').out('contains').hasLabel('airport').
           groupCount().by(__.in('contains').hasLabel('continent').values('code')).unfold().
           project('c', 'n').by(keys).by(values)",
        "6 rows",
    ],
    [
        "which airports have no flight",
        "SELECT ?c { ?a a l:airport ; :code ?c FILTER NOT EXISTS { ?a :route ?b } FILTER NOT EXISTS { ?b :route ?a } }",
        "g.V().hasLabel('airport').not(bothE('route')).values('code')",
        "28 rows",
    ],
    [
        "the longest routes",
        "SELECT ?f ?t ?d { ?a :route ?b ~ ?e . ?e :dist ?d . ?a :code ?f . ?b :code ?t FILTER(?d >= 9000) }",
        "g.E().hasLabel('route').has('dist', gte(9000)).
           project('f', 't', 'd').by(outV().values('code')).by(inV().values('code')).by('dist')",
        "8 rows",
    ],
    [
        "airports with many runways, high up",
        "SELECT ?c { ?a a l:airport ; :runways ?r ; :elev ?h ; :code ?c FILTER(?r >= 4 && ?h > 1000) }",
        "g.V().hasLabel('airport').has('runways', gte(4)).has('elev', gt(1000)).values('code')",
        "17 rows",
    ],
    [
        "which countries one can fly to from Iceland",
        "SELECT DISTINCT ?c { ?i a l:country ; :code 'IS' ; :contains ?a . ?a :route ?b . ?k a l:country ; :contains ?b ; :code ?c }",
        "g.V().has('country', 'code', 'IS').out('contains').out('route').
           in('contains').hasLabel('country').dedup().values('code')",
        "26 rows",
    ],
    [
        "flights that lead back in three steps and stay in New Zealand",
        "SELECT (COUNT(*) AS ?n) { ?a :country 'NZ' ; :route ?b . ?b :country 'NZ' ; :route ?c . ?c :country 'NZ' ; :route ?a }",
        "g.V().has('country', 'NZ').as('a').out('route').has('country', 'NZ').out('route').has('country', 'NZ').
           out('route').where(eq('a')).count()",
        "264",
    ],
    [
        "the sum of all distances",
        "SELECT (SUM(?d) AS ?n) { ?a :route ?b ~ ?e . ?e :dist ?d }",
        "g.E().hasLabel('route').values('dist').sum()",
        "61418542",
    ],
];

#[test]
fn both_languages_give_the_same_answers() {
    let Some(db) = load(&["air-routes.graphml.zst"]) else { return };
    for [what, sparql, gremlin, expected] in QUESTIONS {
        let found = rows(&db, sparql);
        for kernels in [true, false] {
            assert_eq!(results(&db, gremlin, kernels), found, "{what}");
        }
        let shown = if let [one] = found.as_slice() { one.clone() } else { format!("{} rows", found.len()) };
        assert_eq!(shown, expected, "{what}");
    }
}

/// All triangles: the plan closes the cycle by a join; all walks of three routes would not fit into memory.
#[test]
fn triangles_are_closed_in_both_languages() {
    let Some(db) = load(&CSV) else { return };
    let sparql = "SELECT (COUNT(*) AS ?n) { ?a a l:airport ; :route ?b . ?b :route ?c . ?c :route ?a }";
    let gremlin =
        "g.V().hasLabel('airport').as('a').out('route').out('route').out('route').where(eq('a')).count()";
    assert_eq!(rows(&db, sparql), ["1106304"]);
    assert_eq!(results(&db, gremlin, true), ["1106304"]);
}
