//! Formats, parameters, errors, compression and CORS of queries and updates.

use crate::common::{Running, people, thousand};
use vervet::Database;

const NAMES: &str = "SELECT ?n { ?p <http://example.org/name> ?n } ORDER BY ?n";
const CONSTRUCT: &str = "CONSTRUCT { ?p a <urn:x> } { ?p <http://example.org/name> \"Ann\" }";

#[test]
fn each_format_is_available() {
    let server = Running::start(&people(), |_| ());
    for (query, accept, content_type, part) in [
        (NAMES, "application/sparql-results+json", "application/sparql-results+json", "\"value\":\"Ann\""),
        (NAMES, "application/json", "application/json", "\"value\":\"Ann\""),
        (NAMES, "application/sparql-results+xml", "application/sparql-results+xml", "<literal>Ann</literal>"),
        (NAMES, "text/xml", "text/xml; charset=utf-8", "<literal>Ann</literal>"),
        (NAMES, "text/csv", "text/csv; charset=utf-8", "n\r\nAnn\r\nBob\r\n"),
        (
            NAMES,
            "text/tab-separated-values",
            "text/tab-separated-values; charset=utf-8",
            "?n\n\"Ann\"\n\"Bob\"@en\n",
        ),
        (NAMES, "text/plain", "text/plain; charset=utf-8", "Ann"),
        (NAMES, "*/*", "application/sparql-results+json", "bindings"),
        (
            NAMES,
            "text/csv;q=0.2, application/sparql-results+xml;q=0.5",
            "application/sparql-results+xml",
            "Ann",
        ),
        ("ASK {}", "application/sparql-results+json", "application/sparql-results+json", "\"boolean\":true"),
        (
            "ASK {}",
            "application/sparql-results+xml",
            "application/sparql-results+xml",
            "<boolean>true</boolean>",
        ),
        ("ASK {}", "text/csv", "text/csv; charset=utf-8", "true"),
        (CONSTRUCT, "text/turtle", "text/turtle; charset=utf-8", "<urn:x>"),
        (
            CONSTRUCT,
            "application/n-triples",
            "application/n-triples",
            "<http://example.org/ann> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:x> .\n",
        ),
        (CONSTRUCT, "application/rdf+xml", "application/rdf+xml", "<rdf:RDF"),
        (CONSTRUCT, "application/ld+json", "application/ld+json", "\"@id\":\"urn:x\""),
        (CONSTRUCT, "application/n-quads", "application/n-quads", "<urn:x> ."),
        (CONSTRUCT, "application/trig", "application/trig", "<urn:x>"),
        (CONSTRUCT, "application/sparql-results+json, */*;q=0.1", "text/turtle; charset=utf-8", "<urn:x>"),
        ("DESCRIBE <http://example.org/bob>", "text/turtle", "text/turtle; charset=utf-8", "Bob"),
    ] {
        let reply = server.query(query, &[&format!("Accept: {accept}")]).expect(200);
        assert_eq!(reply.content_type(), content_type, "{query} as {accept}");
        assert!(reply.text().contains(part), "{query} as {accept}: {}", reply.text());
    }
    let reply = server.query(NAMES, &["Accept: image/png"]).expect(406);
    assert!(reply.text().contains("application/sparql-results+json"), "{}", reply.text());
    server.query(CONSTRUCT, &["Accept: text/csv"]).expect(406);
}

#[test]
fn queries_have_three_forms_and_updates_two() {
    let server = Running::start(&people(), |_| ());
    let form = "Content-Type: application/x-www-form-urlencoded";
    for path in ["/query", "/query/", "/sparql"] {
        let by_get = server.get(&format!("{path}?query=ASK+%7B%7D&unknown=1"), &[]).expect(200);
        let by_form = server.send("POST", path, &[form], b"query=ASK%20%7B%7D").expect(200);
        let headers = ["Content-Type: application/sparql-query; charset=utf-8"];
        let direct = server.send("POST", path, &headers, b"ASK {}").expect(200);
        assert_eq!((&by_get.body, &by_form.body), (&direct.body, &direct.body));
        server.send("HEAD", &format!("{path}?query=ASK+%7B%7D"), &[], b"").expect(200);
    }
    for (path, n) in [("/update", 1), ("/sparql", 2)] {
        let text = format!("INSERT DATA {{ <urn:{n}> <urn:p> {n} }}");
        server.send("POST", path, &["Content-Type: application/sparql-update"], text.as_bytes()).expect(204);
        let body = format!("update=INSERT+DATA+{{+<urn:f{n}>+<urn:p>+{n}+}}");
        server.send("POST", path, &[form], body.as_bytes()).expect(204);
    }
    let reply = server.query("SELECT (COUNT(*) AS ?n) { ?s <urn:p> ?o }", &["Accept: text/csv"]).expect(200);
    assert_eq!(reply.text(), "n\r\n4\r\n");
}

#[test]
fn invalid_protocol_requests_are_refused() {
    let server = Running::start(&people(), |_| ());
    let form = "Content-Type: application/x-www-form-urlencoded";
    let query = "Content-Type: application/sparql-query";
    let update = "Content-Type: application/sparql-update";
    for (status, method, path, headers, body) in [
        (400, "GET", "/query?query=ASK%7B%7D&query=ASK%7B%7D", &[][..], ""),
        (400, "POST", "/query?query=ASK%7B%7D", &[form], "query=ASK%7B%7D"),
        (400, "POST", "/query?query=ASK%7B%7D", &[query], "ASK {}"),
        (400, "POST", "/sparql", &[form], "query=ASK%7B%7D&update=CLEAR+ALL"),
        (400, "POST", "/query", &[form], "q=ASK%7B%7D"),
        (400, "POST", "/query", &[form], "update=CLEAR+ALL"),
        (400, "POST", "/update", &[form], "query=ASK%7B%7D"),
        (400, "GET", "/query?query=ASK%7B%7D&default-graph-uri=relative", &[], ""),
        (400, "GET", "/query?query=ASK%7B%7D&timeout=soon", &[], ""),
        (400, "GET", "/query?query=ASK%7B", &[], ""),
        (
            400,
            "POST",
            "/update?using-graph-uri=urn:g",
            &[update],
            "INSERT { <urn:a> <urn:b> 1 } USING <urn:h> WHERE {}",
        ),
        (
            400,
            "POST",
            "/update?using-graph-uri=urn:g",
            &[update],
            "WITH <urn:h> INSERT { <urn:a> <urn:b> 1 } WHERE {}",
        ),
        (400, "POST", "/update", &[update], "LOAD <file:///etc/passwd>"),
        (405, "GET", "/update?update=CLEAR+ALL", &[], ""),
        (405, "GET", "/sparql?update=CLEAR+ALL", &[], ""),
        (405, "PUT", "/query", &[query], "ASK {}"),
        (405, "DELETE", "/sparql", &[], ""),
        (415, "POST", "/query", &[], "ASK {}"),
        (415, "POST", "/query", &["Content-Type: text/plain"], "ASK {}"),
        (415, "POST", "/query", &[update], "CLEAR ALL"),
        (415, "POST", "/update", &[query], "ASK {}"),
        (415, "POST", "/query", &["Content-Type: application/sparql-query; charset=utf-16"], "ASK {}"),
        (415, "POST", "/query", &[query, "Content-Encoding: gzip"], "ASK {}"),
        (404, "GET", "/nothing", &[], ""),
    ] {
        let reply = server.send(method, path, headers, body.as_bytes());
        assert_eq!(reply.status, status, "{method} {path} {body}: {}", reply.text());
        assert!(reply.text().starts_with("error: "), "{}", reply.text());
        assert_eq!(reply.header("allow").is_some(), status == 405, "{method} {path}");
    }
    assert_eq!(server.send("POST", "/query", &[query], b"ASK \xff {}").status, 400);
    let count = server.query("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", &["Accept: text/csv"]).expect(200);
    assert_eq!(count.text(), "n\r\n5\r\n", "nothing has changed");
}

#[test]
fn query_errors_have_positions() {
    let server = Running::start(&people(), |_| ());
    let text = server.query("SELECT * { ?x fof:name ?name }", &[]).expect(400);
    assert!(text.content_type().starts_with("text/plain"));
    assert!(text.text().contains('^') && text.text().contains("hint: "), "{}", text.text());
    let json = server.query("SELECT * { ?x fof:name ?name }", &["Accept: application/sparql-results+json"]);
    let json = json.expect(400).json();
    assert_eq!(json["error"]["kind"], "query");
    assert!(json["error"]["message"].as_str().is_some_and(|message| message.contains('^')), "{json}");
    assert!(json["error"]["hint"].as_str().is_some_and(|hint| hint.contains("foaf:")), "{json}");
    let update = server.query("INSERT DATA { <urn:a> <urn:b> 1 }", &[]).expect(400);
    assert!(update.text().contains("hint: ") && update.text().contains("POST /update"), "{}", update.text());
}

#[test]
fn the_dataset_of_the_request_overrides_that_of_the_query() {
    let server = Running::start(&people(), |_| ());
    let names = |parameters: &str| {
        let path = format!(
            "/query?query={}{parameters}",
            "SELECT%20?n%20%7B?p%20%3Chttp://example.org/name%3E%20?n%7D"
        );
        server.get(&path, &["Accept: text/csv"]).expect(200).text()
    };
    assert_eq!(names("").lines().count(), 3);
    assert_eq!(names("&default-graph-uri=http%3A%2F%2Fexample.org%2Fwork"), "n\r\nEve\r\n");
    assert_eq!(names("&named-graph-uri=http%3A%2F%2Fexample.org%2Fwork"), "n\r\n");
    // The same text again, so that the plan of one dataset is not used for the other.
    assert_eq!(names("").lines().count(), 3);
    let headers = ["Content-Type: application/sparql-update"];
    let text = "INSERT { GRAPH <urn:copy> { ?s ?p ?o } } WHERE { ?s ?p ?o }";
    let path = "/update?using-graph-uri=http%3A%2F%2Fexample.org%2Fwork";
    server.send("POST", path, &headers, text.as_bytes()).expect(204);
    let copy = server.query("SELECT * { GRAPH <urn:copy> { ?s ?p ?o } }", &["Accept: text/csv"]).expect(200);
    assert_eq!(copy.text().lines().count(), 3, "{}", copy.text());
}

#[test]
fn relative_iris_resolve_against_the_url() {
    let server =
        Running::start(&Database::in_memory(), |options| options.hosts.push("example.org".to_owned()));
    let reply =
        server.query("CONSTRUCT { <a> <b> 1 } {}", &["Host: example.org", "Accept: application/n-triples"]);
    let text = reply.expect(200).text();
    assert!(text.starts_with("<http://example.org/a> <http://example.org/b> "), "{text}");
}

#[test]
fn responses_are_compressed_if_accepted() {
    let server = Running::start(&thousand(), |_| ());
    // One response that is held as a whole, and one that is streamed.
    for query in
        ["SELECT * { ?s <urn:p> ?o } LIMIT 200", "SELECT * { ?a <urn:p> ?b . ?c <urn:p> ?d } LIMIT 30000"]
    {
        let plain = server.query(query, &["Accept: text/csv"]).expect(200);
        for encoding in ["gzip", "zstd"] {
            let header = format!("Accept-Encoding: {encoding}");
            let reply = server.query(query, &["Accept: text/csv", &header]).expect(200);
            assert_eq!(reply.header("content-encoding"), Some(encoding));
            assert!(reply.body.len() < plain.body.len() / 2, "{} bytes", reply.body.len());
            assert_eq!(reply.text().lines().count(), plain.text().lines().count());
            assert!(reply.header("vary").is_some_and(|vary| vary.contains("Accept-Encoding")));
        }
    }
    let short = server.query("ASK {}", &["Accept-Encoding: gzip"]).expect(200);
    assert_eq!(short.header("content-encoding"), None, "not worth it");
}

#[test]
fn short_responses_have_a_length_and_long_ones_are_chunked() {
    let server = Running::start(&thousand(), |_| ());
    let short = server.query("SELECT * { ?s <urn:p> ?o } LIMIT 10", &[]).expect(200);
    assert!(short.header("content-length").is_some());
    let long =
        server.query("SELECT ?a ?c { ?a <urn:p> ?b . ?c <urn:p> ?d }", &["Accept: text/csv"]).expect(200);
    assert_eq!(long.header("transfer-encoding"), Some("chunked"));
    assert_eq!(long.body.iter().filter(|byte| **byte == b'\n').count(), 1_000_001);
}

#[test]
fn several_requests_share_a_connection() {
    use std::io::{Read, Write};
    let server = Running::start(&people(), |_| ());
    let mut stream = server.connect();
    let request = b"GET /query?query=ASK%7B%7D HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for _ in 0..3 {
        stream.write_all(request).unwrap();
        let mut answer = Vec::new();
        let mut byte = [0];
        while !answer.ends_with(b"true}\n") {
            stream.read_exact(&mut byte).unwrap();
            answer.push(byte[0]);
        }
    }
    assert_eq!(server.metric("vervet_requests_total{kind=\"query\",status=\"200\"}"), 3.0);
}

#[test]
fn a_read_only_server_changes_nothing() {
    let server = Running::start(&people(), |options| options.read_only = true);
    server.update("CLEAR ALL", &[]).expect(403);
    server.send("PUT", "/store?default", &["Content-Type: text/turtle"], b"").expect(403);
    server.send("DELETE", "/store?default", &[], b"").expect(403);
    assert!(server.query("ASK { ?s ?p ?o }", &[]).expect(200).text().contains("true"));
}

/// A query that was short before takes the fast path (`admission`), with the same behaviour.
#[test]
fn repeated_queries_see_changes() {
    let server = Running::start(&people(), |_| ());
    let text = "SELECT ?n { <http://example.org/zoe> <http://example.org/name> ?n } ORDER BY ?n";
    for number in 0..20 {
        let names = |format: &str| server.query(text, &[&format!("Accept: {format}")]).expect(200).text();
        for _ in 0..5 {
            assert_eq!(names("text/csv").lines().count(), number + 1);
            assert_eq!(names("application/sparql-results+json").matches("\"literal\"").count(), number);
        }
        assert_eq!(server.query(text, &["Accept: image/png"]).status, 406);
        let insert =
            format!("INSERT DATA {{ <http://example.org/zoe> <http://example.org/name> \"Zoe {number}\" }}");
        server.update(&insert, &[]).expect(204);
    }
}

/// users 16: an empty response has a header with warnings about the query, in both languages, also on the
/// fast path; other responses have none.
#[test]
fn users_16_warnings_are_in_a_header() {
    let server = Running::start(&people(), |_| ());
    let wrong = "SELECT ?n { ?p <http://example.org/nam> ?n }";
    for _ in 0..4 {
        let reply = server.query(wrong, &[]).expect(200);
        let warnings: Vec<String> =
            serde_json::from_str(reply.header("vervet-warnings").expect("a header")).expect("JSON");
        let expected = "no statement has the predicate <http://example.org/nam>; did you mean <http://example.org/name>?";
        assert_eq!(warnings, [expected]);
        assert_eq!(server.query(NAMES, &[]).expect(200).header("vervet-warnings"), None);
    }
    let reply = server.query("SELECT * { ?p <http://example.org/n\u{e4}me\u{1F600}> ?n }", &[]).expect(200);
    let header = reply.header("vervet-warnings").expect("a header");
    assert!(header.is_ascii() && header.contains("n\\u00e4me\\ud83d\\ude00"), "{header}");
    let gremlin = |text: &str| {
        server.send("POST", "/gremlin", &["Content-Type: application/json"], text.as_bytes()).expect(200)
    };
    let reply = gremlin("{\"gremlin\": \"g.V().hasLabel('nobody').count()\"}");
    assert_eq!(reply.header("vervet-warnings"), Some("[\"nothing has the label \\\"nobody\\\"\"]"));
    assert_eq!(gremlin("{\"gremlin\": \"g.V().count()\"}").header("vervet-warnings"), None);
}
