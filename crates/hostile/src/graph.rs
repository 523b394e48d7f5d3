//! The small fixture graph of the checks, with one instance of every case that the engine distinguishes.

use vervet::{Database, Format, LoadOptions, LoadReport, Result, Source};

/// Classes, cycles, lists, values of many types, blank nodes, two named graphs, and statements with
/// identities. The names are the most frequent ones of the W3C's suites.
const GRAPH: &str = r#"
@prefix : <http://example/> .
@prefix ex: <http://example.org/> .
@prefix foaf: <http://xmlns.com/foaf/0.1/> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .

:s :p :o, 1, 2.5, 1e3, true, "a", "b"@en, "c"@de-at, "2020-01-02T03:04:05Z"^^xsd:dateTime .
:a :p :b . :b :p :c . :c :p :a . :c :q :d . :d :q :d .
:s1 :p "foo" ; :q 1 . :s2 :p "foobar"@en ; :q 02 . :s3 :p "" ; :q "1"^^xsd:byte .
:x a :C ; :date "2020-02-30"^^xsd:date, "2020-02-29"^^xsd:date ; :duration "P1Y2M"^^xsd:duration, "PT5M"^^xsd:dayTimeDuration .
:y a :C, :D ; :nan "NaN"^^xsd:double ; :inf "-INF"^^xsd:float ; :zero -0.0e0 ; :big 123456789012345678901234567890 .
:z a :D ; :list ( 1 :x "z" ) ; :other "?"^^:type .
:C rdfs:subClassOf :D .
ex:ann a foaf:Person ; foaf:name "Ann" ; foaf:mbox <mailto:ann@example.org> ; foaf:knows ex:bob, _:n .
ex:bob a foaf:Person ; foaf:name "Bob", "Bób"@cs ; foaf:age 42 ; foaf:knows ex:ann .
_:n a foaf:Person ; foaf:nick "n\n\t\"\\" .
ex:ann :edge ex:bob . :e1 rdf:reifies <<( ex:ann :edge ex:bob )>> . :e1 :since 1999 .
:g1 { :s :p :o . :a :p :b, 3 . :only :in :g1 . }
:g2 { :s :q :o . :b :p :c . _:m :p _:m . }
"#;

/// An in-memory database with that graph.
pub(crate) fn database() -> Database {
    let database = Database::in_memory();
    read(&database, Format::TriG, GRAPH.as_bytes(), 1).expect("the graph is well-formed");
    database
}

/// Loads a document on this many threads.
pub(crate) fn read(database: &Database, format: Format, bytes: &[u8], threads: usize) -> Result<LoadReport> {
    let base_iri = Some("http://example/base".to_owned());
    let options = LoadOptions { format: Some(format), base_iri, threads, ..LoadOptions::default() };
    database.load(vec![Source::bytes("text", bytes)], &options)
}

/// The number of statements.
pub(crate) fn count(database: &Database) -> u64 {
    database.snapshot().as_snapshot().statement_count()
}

/// An N-Quads round trip keeps the number of statements. Only the number is compared, since blank nodes get
/// new labels.
pub(crate) fn check_round_trip(database: &Database) {
    let mut quads = Vec::new();
    let written = database.export(Format::NQuads, &mut quads).expect("a graph in memory can be written");
    let there = count(database);
    assert_eq!(written, there, "the export has another number of statements");
    let text = std::str::from_utf8(&quads).expect("N-Quads are UTF-8");
    let again = Database::in_memory();
    if let Err(error) = read(&again, Format::NQuads, &quads, 1) {
        panic!("the export cannot be read: {error}\n{text}");
    }
    assert_eq!(count(&again), there, "the second graph has other counts:\n{text}");
}
