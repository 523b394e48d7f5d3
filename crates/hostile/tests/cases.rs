//! Regression test of fuzzer findings: every file in `cases/ENTRY` passes the check of that entry.

use std::path::Path;
use std::{fs, panic};
use vervet_hostile::EntryPoint;

#[test]
fn regression_cases_pass() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let mut count = 0;
    for folder in fs::read_dir(&cases).expect("there are cases") {
        let folder = folder.expect("it can be listed").path();
        let name = folder.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        let entry = EntryPoint::from_name(&name).unwrap_or_else(|| panic!("no entry is called {name}"));
        for file in fs::read_dir(&folder).expect("it can be listed") {
            let path = file.expect("it can be listed").path();
            let bytes = fs::read(&path).expect("it can be read");
            if panic::catch_unwind(|| entry.check(&bytes)).is_err() {
                panic!("{} fails again", path.display());
            }
            count += 1;
        }
    }
    assert!(count > 0, "there are cases");
}

/// Sanity test of the checks: each entry accepts a valid text and an invalid one.
#[test]
fn every_entry_takes_good_and_bad_bytes() {
    let good = [
        ("query", "SELECT * { ?s ?p ?o }"),
        ("update", "INSERT DATA { <urn:a> <urn:b> 1 }"),
        ("ntriples", "<urn:a> <urn:b> <urn:c> ."),
        ("nquads", "<urn:a> <urn:b> <urn:c> <urn:d> ."),
        ("turtle", "<a> <urn:b> ( 1 2 ) ."),
        ("trig", "<g> { <a> <urn:b> 1 }"),
        ("rdfxml", "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'/>"),
        ("jsonld", "{\"@id\": \"urn:a\", \"urn:b\": 1}"),
        ("gremlin", "g.V().hasLabel('person').out('knows').values('name')"),
        ("graphml", "<graphml><graph><node id='1'/><edge source='1' target='2'/></graph></graphml>"),
        ("graphson_file", r#"{"id":1,"label":"a","properties":{"k":[{"value":1},{"value":1}]}}"#),
        ("csv", "id,label,name\n1,person,ann\n"),
        ("parquet", "PAR1"),
        ("graphson", r#"{"@type":"g:List","@value":[{"@type":"g:Int32","@value":1}]}"#),
        ("graphbinary", "\u{3}\0\0\0\0\u{1}a"),
        ("http_query", "G\ntext/csv\nSELECT * { ?s ?p ?o }"),
        ("http_update", "F\n*/*\nINSERT DATA { <urn:a> <urn:b> 1 }"),
        ("http_store", "PUT ?graph=urn:g\ntext/turtle\n<urn:a> <urn:b> 1 ."),
        ("http_api", "POST plan?run=true\n\nASK {}"),
        ("http_raw", "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
    ];
    assert_eq!(good.map(|(name, _)| name).to_vec(), EntryPoint::ALL.map(|(name, _)| name).to_vec());
    for ((name, text), (_, entry)) in good.iter().zip(EntryPoint::ALL) {
        println!("{name}");
        // Parquet cannot be written as text.
        let bytes: &[u8] = match *name {
            "parquet" => include_bytes!("../../load/tests/parquet/lists_v2.parquet"),
            _ => text.as_bytes(),
        };
        entry.check(bytes);
        entry.check(&bytes[..bytes.len() / 2]);
        entry.check(&[bytes, b"\xFF\0"].concat());
    }
}
