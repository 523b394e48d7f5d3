//! Round trip: an exported graph loaded into a new database is the same graph.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, Instant};
use vervet::{
    CancelToken, Database, Direction, ErrorKind, Format, LoadOptions, OutputFormat, QueryOptions, Source,
};

fn export(db: &Database, format: Format) -> String {
    let mut text = Vec::new();
    db.export(format, &mut text).expect("exports");
    String::from_utf8(text).expect("text")
}

fn reload(format: Format, text: &str) -> Database {
    let db = Database::in_memory();
    db.load_text(format, text).unwrap_or_else(|error| panic!("{error}:\n{text}"));
    db.check().expect("whole");
    db
}

fn table(db: &Database, query: &str) -> Vec<String> {
    let mut text = Vec::new();
    db.write(query, &QueryOptions::default(), OutputFormat::Tsv, &mut text).expect("runs");
    let mut lines: Vec<String> = String::from_utf8(text).expect("text").lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

const EDGES: &str = "PREFIX key: <urn:vervet:key:> SELECT ?a ?b ?l ?w WHERE {
  ?a key:knows ?b ~ ?e . ?e key:weight ?w OPTIONAL { ?e key:label ?l } }";

/// Source, target and properties of every edge with this label, through the typed interface.
fn edges(db: &Database, label: &str) -> BTreeMap<(String, String, Vec<String>), usize> {
    let snapshot = db.snapshot();
    let graph = snapshot.graph();
    let mut found = BTreeMap::new();
    for vertex in graph.vertices_with_label("person").expect("whole") {
        for edge in graph.edges(vertex, label, Direction::Out).expect("whole") {
            let properties = graph.properties(edge).expect("whole");
            let properties = properties.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
            let name = |vertex| graph.external_id(vertex).expect("whole");
            *found.entry((name(edge.source), name(edge.target), properties)).or_default() += 1;
        }
    }
    found
}

/// Splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (x ^ (x >> 31)) % end
    }
}

/// CSV of vertices and of edges: parallel edges, self-loops, some with equal properties, some without.
fn random_graph(random: &mut Random) -> [String; 2] {
    let vertices = 1 + random.below(12);
    let mut nodes = "id,label,name\n".to_owned();
    for vertex in 0..vertices {
        let _ = writeln!(nodes, "v{vertex},person,\"name \"\"{}\"\" é\"", random.below(4));
    }
    let mut edges = "id,from,to,label,weight:int,label2:string\n".replace("label2", "note");
    for edge in 0..random.below(60) {
        let (from, to) = (random.below(vertices), random.below(vertices));
        let label = ["knows", "likes"][usize::from(random.below(3) == 0)];
        let id = if random.below(2) == 0 { format!("e{edge}") } else { String::new() };
        let weight = if random.below(4) > 0 { random.below(3).to_string() } else { String::new() };
        let _ = writeln!(edges, "{id},v{from},v{to},{label},{weight},n{}", random.below(2));
    }
    [nodes, edges]
}

fn load_csv(db: &Database, [nodes, edges]: [String; 2], graph: Option<&str>) {
    let graph = graph.map(|name| vervet::NamedNode::new(name).expect("an IRI"));
    let options = LoadOptions { graph, ..LoadOptions::default() };
    let sources =
        vec![Source::bytes("nodes.csv", nodes.into_bytes()), Source::bytes("edges.csv", edges.into_bytes())];
    db.load(sources, &options).expect("valid");
}

#[test]
fn random_property_graphs_survive() {
    let mut random = Random(7);
    for round in 0..60 {
        let db = Database::in_memory();
        load_csv(&db, random_graph(&mut random), None);
        let mut formats = vec![Format::NTriples, Format::Turtle, Format::NQuads, Format::TriG];
        if round % 2 == 1 {
            load_csv(&db, random_graph(&mut random), Some("http://example.org/g"));
            formats.drain(..2);
        }
        for format in formats {
            let text = export(&db, format);
            let again = reload(format, &text);
            assert_eq!(again.snapshot().statement_count(), db.snapshot().statement_count(), "{text}");
            let counts = |db: &Database| {
                let snapshot = db.snapshot();
                (snapshot.as_snapshot().edge_count(), snapshot.as_snapshot().vertex_count())
            };
            assert_eq!(counts(&again).0, counts(&db).0);
            for label in ["knows", "likes"] {
                assert_eq!(edges(&again, label), edges(&db, label), "{text}");
            }
            assert_eq!(table(&again, EDGES), table(&db, EDGES));
            // Loaded once more into the same database: an equal graph beside the first, under other edge
            // numbers.
            let before = counts(&again).0;
            again.load_text(format, &text).expect("valid");
            again.check().expect("whole");
            assert_eq!(counts(&again).0, 2 * before);
        }
    }
}

#[test]
fn numbers_of_edges_never_clash() {
    let db = Database::in_memory();
    let text = |who: &str| {
        format!(
            "<http://a/{who}> <urn:vervet:key:knows> <http://a/x> .\n\
             <urn:vervet:edge:0> <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> \
             <<( <http://a/{who}> <urn:vervet:key:knows> <http://a/x> )>> .\n\
             <urn:vervet:edge:0> <urn:vervet:key:weight> \"{who}\" .\n"
        )
    };
    for who in ["ann", "bob", "eve"] {
        db.load_text(Format::NTriples, &text(who)).expect("valid");
    }
    let found = table(
        &db,
        "PREFIX key: <urn:vervet:key:> SELECT ?a ?w WHERE { ?a key:knows ?b ~ ?e . ?e key:weight ?w }",
    );
    assert_eq!(found.len(), 4);
    for who in ["ann", "bob", "eve"] {
        assert!(found.contains(&format!("<http://a/{who}>\t\"{who}\"")), "{found:?}");
    }
}

#[test]
fn parallel_edges_count_once_in_sparql_and_twice_in_the_typed_interface() {
    let db = Database::in_memory();
    let text = "PREFIX : <http://a/> :s a :T ; :p :o ~ :one {| :since 1 |} ~ :two {| :since 2 |} .";
    db.load_text(Format::Turtle, text).expect("valid");
    assert_eq!(table(&db, "SELECT * { <http://a/s> <http://a/p> ?o }").len(), 2);
    let snapshot = db.snapshot();
    let graph = snapshot.graph();
    let source = graph.vertex("http://a/s").expect("whole").expect("it is there");
    assert_eq!(graph.degree(source, "http://a/p", Direction::Out).expect("whole"), 2);
    let query = "SELECT ?name ?since { <http://a/s> <http://a/p> ?o ~ ?e .
                 ?e <http://a/since> ?since ; <urn:vervet:id> ?name }";
    let since = |name: &str, year: i32| {
        let found = table(&db, query);
        assert!(
            found.iter().any(
                |row| row.starts_with(&format!("<http://a/{name}>\t")) && row.contains(&year.to_string())
            ),
            "{found:?}"
        );
    };
    since("one", 1);
    since("two", 2);
}

#[test]
fn edges_that_nobody_declares_are_errors_of_the_input() {
    let db = Database::in_memory();
    db.load_text(Format::Turtle, "<http://a/s> <http://a/p> <http://a/o> {| <http://a/q> 1 |} .")
        .expect("valid");
    for (format, text) in [
        (Format::NTriples, "<urn:vervet:edge:0> <http://a/p> <http://a/o> .\n"),
        (Format::NTriples, "<http://a/s> <http://a/p> <urn:vervet:edge:5> .\n"),
        (Format::NTriples, "<http://a/s> <urn:vervet:edge:0> <http://a/o> .\n"),
        (Format::NQuads, "<http://a/s> <http://a/p> <http://a/o> <urn:vervet:edge:0> .\n"),
        (Format::Turtle, "<http://a/s> a <urn:vervet:edge:12> ."),
        (Format::TriG, "<urn:vervet:edge:0> { <http://a/s> a <http://a/o> }"),
        (
            Format::NTriples,
            "_:n <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> <<( <http://a/s> <http://a/p> <http://a/x> )>> .\n",
        ),
    ] {
        let before = db.snapshot().statement_count();
        let error = db.load_text(format, text).expect_err("undeclared");
        assert!(matches!(error.kind(), ErrorKind::Input | ErrorKind::Unsupported), "{error}");
        assert!(error.to_string().starts_with("text:1:"), "{error}");
        assert!(error.hint().is_some(), "{error}");
        assert_eq!(db.snapshot().statement_count(), before);
    }
    let graph = Some(vervet::NamedNode::new_unchecked("urn:vervet:edge:0"));
    let options = LoadOptions { graph, ..LoadOptions::default() };
    let source = Source::bytes("x.ttl", *b"<http://a/s> a <http://a/o> .");
    assert_eq!(db.load(vec![source], &options).expect_err("an edge").kind(), ErrorKind::Input);
}

/// Cancels at the first write.
struct Cancelling<'t>(&'t CancelToken, u64);

impl std::io::Write for Cancelling<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.cancel();
        self.1 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Every loop with a data-dependent length checks limits: an export ends at its deadline and on cancellation,
/// also half-way, and the buffered edges of a vertex count against the memory cap.
#[test]
fn every_loop_of_an_export_sees_its_limits() {
    let db = Database::in_memory();
    let mut text = String::from("PREFIX k: <urn:vervet:key:>\n");
    for number in 0..20_000 {
        let _ = writeln!(text, "<urn:hub> k:knows <urn:a-rather-long-name-of-a-neighbour/{number}> .");
    }
    db.load_text(Format::Turtle, &text).expect("it loads");
    for format in
        [Format::NTriples, Format::NQuads, Format::TriG, Format::GraphSon, Format::GraphSon2, Format::GraphMl]
    {
        let whole = export(&db, format);
        let mut same = Vec::new();
        let count = db.export_with(format, &QueryOptions::default(), &mut same).expect("it fits");
        assert!(count >= 20_000 && same == whole.as_bytes(), "{format:?}");
        let kind = |options: QueryOptions| {
            db.export_with(format, &options, &mut std::io::sink()).map_err(|error| error.kind())
        };
        let token = CancelToken::new();
        let mut out = Cancelling(&token, 0);
        let done = db.export_with(format, &QueryOptions::default().with_cancel(&token), &mut out);
        assert_eq!(done.expect_err("half-way").kind(), ErrorKind::Cancelled, "{format:?}");
        assert!(out.1 > 0 && out.1 < whole.len() as u64, "{format:?}: {} of {} bytes", out.1, whole.len());
        assert_eq!(
            kind(QueryOptions::default().with_cancel(&token)),
            Err(ErrorKind::Cancelled),
            "{format:?}"
        );
        let begun = Instant::now().checked_sub(Duration::from_secs(2));
        let late =
            QueryOptions { timeout: Some(Duration::from_secs(1)), started: begun, ..QueryOptions::default() };
        assert_eq!(kind(late), Err(ErrorKind::Deadline), "{format:?}");
        let small = QueryOptions { memory_limit_bytes: Some(1 << 20), ..QueryOptions::default() };
        let holds = matches!(format, Format::GraphSon | Format::GraphSon2 | Format::GraphMl);
        let expected = if holds { Err(ErrorKind::MemoryLimit) } else { Ok(20_000) };
        assert_eq!(kind(small), expected, "{format:?}");
    }
}
