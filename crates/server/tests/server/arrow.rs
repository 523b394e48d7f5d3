//! Results as Arrow streams: the frame of the stream, limits, and responses that break off. The content is
//! read by another implementation in `python/tests/test_arrow_http.py`.

use crate::common::{ENDLESS, ENDLESS_COUNT, Reply, Running, people, request, thousand};
use std::io::{Read, Write};
use std::time::Duration;

const ARROW: &str = "application/vnd.apache.arrow.stream";
const ACCEPT: &str = "Accept: application/vnd.apache.arrow.stream";
const PRODUCT: &str = "SELECT ?a ?d { ?a <urn:p> ?b . ?c <urn:p> ?d }";
const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// The messages of a stream: sizes of metadata and of bodies. `None`: it ends within a message.
fn messages(mut stream: &[u8]) -> Option<Vec<(usize, usize)>> {
    let word = |bytes: &[u8]| Some(u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?));
    let mut messages = Vec::new();
    while stream != END {
        assert_eq!(word(stream)?, u32::MAX, "the mark of a message");
        let size = usize::try_from(word(&stream[4..])?).ok()?;
        let metadata = stream.get(8..8 + size)?;
        assert!(size > 0 && size.is_multiple_of(8));
        // The root table; its member 3 is the size of the body.
        let table = usize::try_from(word(metadata)?).ok()?;
        let layout = table - usize::try_from(word(&metadata[table..])?).ok()?;
        let member = usize::from(u16::from_le_bytes(metadata[layout + 10..layout + 12].try_into().ok()?));
        let body = &metadata[table + member..];
        let body = usize::try_from(u64::from_le_bytes(body[..8].try_into().ok()?)).ok()?;
        messages.push((size, body));
        stream = stream.get(8 + size + body..)?;
    }
    Some(messages)
}

#[test]
fn rows_and_truth_values_are_streams_of_messages() {
    let server = Running::start(&thousand(), |_| ());
    let all = server.query("SELECT ?s ?o { ?s <urn:p> ?o }", &[ACCEPT]).expect(200);
    assert_eq!(all.content_type(), ARROW);
    let found = messages(&all.body).expect("a whole stream");
    assert_eq!(found.len(), 2, "a schema and a batch: {found:?}");
    let texts: usize = (0..1000).map(|n| format!("urn:s:{n}value {n}").len()).sum();
    // Each column: 1001 offsets of 8 bytes, and the texts; each buffer is padded.
    assert!((2 * 8008 + texts..2 * 8008 + texts + 16).contains(&found[1].1), "{found:?}");
    for (query, count) in
        [("SELECT * { ?s <urn:none> ?o }", 1), ("ASK {}", 2), ("SELECT * {}", 2), ("SELECT (1 AS ?n) {}", 2)]
    {
        let reply = server.query(query, &[ACCEPT]).expect(200);
        assert_eq!(messages(&reply.body).map(|found| found.len()), Some(count), "{query}");
    }
    let long = server.query(PRODUCT, &[ACCEPT]).expect(200);
    let found = messages(&long.body).expect("a whole stream");
    assert!(
        found.len() > 16 && found.iter().all(|message| message.1 < 2 << 20),
        "batches are bounded: {found:?}"
    );
    // It is not the default, and no format of graphs.
    let reply = server.query("ASK {}", &["Accept: application/*"]).expect(200);
    assert_eq!(reply.content_type(), "application/sparql-results+json");
    server.query("CONSTRUCT WHERE { ?s ?p ?o }", &[ACCEPT]).expect(406);
    // Compression of HTTP.
    let reply =
        server.query("SELECT ?s ?o { ?s <urn:p> ?o }", &[ACCEPT, "Accept-Encoding: gzip"]).expect(200);
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&reply.body[..]).read_to_end(&mut bytes).expect("gzip");
    assert!(bytes == all.body);
}

/// The types of the columns depend on all rows: a query that fails has sent nothing, and so has a status.
#[test]
fn errors_of_the_query_precede_the_stream() {
    let server = Running::start(&thousand(), |options| options.limits.memory_bytes = 4 << 20);
    let headers = ["Content-Type: application/sparql-query", ACCEPT];
    for (query, timeout, status) in [
        ("SELECT ?x { ?x fof:name ?n }", 60.0, 400),
        (ENDLESS, 60.0, 507),
        (PRODUCT, 60.0, 507),
        (ENDLESS_COUNT, 0.5, 504),
    ] {
        let path = format!("/query?timeout={timeout}");
        let reply = server.send("POST", &path, &headers, query.as_bytes()).expect(status);
        assert!(!reply.content_type().contains("arrow"), "{query}");
    }
    server.query("SELECT ?s ?o { ?s <urn:p> ?o }", &[ACCEPT]).expect(200);
}

/// A client that does not read holds its thread for a limited time. Its response then has no end, neither
/// that of HTTP nor that of Arrow.
#[test]
fn a_response_that_breaks_off_does_not_look_whole() {
    let server =
        Running::start(&people(), |options| options.limits.write_timeout = Duration::from_millis(200));
    let text: String =
        (0..3000).map(|n| format!("<urn:s:{n}> <urn:p> \"{n}{}\" .\n", "x".repeat(2000))).collect();
    server.send("POST", "/store?default", &["Content-Type: application/n-triples"], text.as_bytes());
    let mut stream = server.connect();
    let headers = ["Content-Type: application/sparql-query", ACCEPT];
    let query = "SELECT ?a ?b ?d { ?a <urn:p> ?b . ?c <urn:p> ?d } LIMIT 100000";
    stream.write_all(&request("POST", "/query", &headers, query.as_bytes())).expect("it is sent");
    let mut byte = [0];
    stream.read_exact(&mut byte).expect("a response begins");
    server.wait_for("vervet_requests_running", 0.0);
    let reply = Reply::read((&byte[..]).chain(stream), false);
    assert!(reply.status == 200 && !reply.whole && !reply.body.ends_with(&END));
    let whole = server.query("SELECT ?a ?b { ?a <urn:p> ?b }", &[ACCEPT]).expect(200);
    assert!(messages(&whole.body).is_some_and(|found| found.len() > 3));
}
