//! `vervet query --service` with a loopback endpoint that answers with triple terms: values up to the nesting
//! limit work, and deeper nesting is an error, where a recursive parser would overflow its stack.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common::{Done, Place};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

const JSON: &str = "application/sparql-results+json";
const XML: &str = "application/sparql-results+xml";
const TSV: &str = "text/tab-separated-values";

/// The outcome of the command if the endpoint answers with this document.
fn asked(media_type: &str, document: &str) -> Done {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/sparql", listener.local_addr().unwrap());
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{document}",
        document.len()
    );
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(&stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        reader.read_exact(&mut vec![0; length]).unwrap();
        // The client may disconnect once it has read enough.
        let _ = (&stream).write_all(answer.as_bytes());
    });
    let place = Place::new();
    let data = place.file("none.nt", "");
    let query = format!("SELECT ?t {{ SERVICE <{endpoint}> {{ ?s ?p ?t }} }}");
    let done = place.run(&["query", "--data", data, "--service", &endpoint, "--format", "tsv", &query]);
    server.join().unwrap();
    done
}

/// A document whose only value is a triple term of this depth.
fn document(media_type: &str, depth: usize) -> String {
    match media_type {
        JSON => format!(
            r#"{{"head":{{"vars":["t"]}},"results":{{"bindings":[{{"t":{}{{"type":"uri","value":"http://e/c"}}{}}}]}}}}"#,
            r#"{"type":"triple","value":{"subject":{"type":"uri","value":"http://e/a"},"predicate":{"type":"uri","value":"http://e/b"},"object":"#
                .repeat(depth),
            "}}".repeat(depth)
        ),
        XML => format!(
            r#"<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head><variable name="t"/></head><results><result><binding name="t">{}<uri>http://e/c</uri>{}</binding></result></results></sparql>"#,
            "<triple><subject><uri>http://e/a</uri></subject><predicate><uri>http://e/b</uri></predicate><object>"
                .repeat(depth),
            "</object></triple>".repeat(depth)
        ),
        _ => format!(
            "?t\n{}<http://e/c>{}\n",
            "<<( <http://e/a> <http://e/b> ".repeat(depth),
            " )>>".repeat(depth)
        ),
    }
}

#[test]
fn triple_terms_of_an_endpoint() {
    for media_type in [JSON, XML, TSV] {
        // The term parser of TSV has a lower limit of its own.
        for depth in [0, 1, if media_type == TSV { 60 } else { 100 }] {
            let done = asked(media_type, &document(media_type, depth));
            assert_eq!(done.code, 0, "{media_type}, {depth}: {}", done.err);
            assert_eq!(done.out, document(TSV, depth), "{media_type}");
        }
    }
}

#[test]
fn an_endpoint_that_nests_without_end() {
    for media_type in [JSON, XML, TSV] {
        for depth in [101, 120, 100_000] {
            let done = asked(media_type, &document(media_type, depth));
            assert_eq!(done.out, "", "{media_type}");
            assert!(done.err.len() < 2000, "{media_type}: {}", done.err);
            // A stack overflow would end the command by a signal, without a message.
            assert!((1..128).contains(&done.code), "{media_type}, {depth}: {done:?}");
            assert!(
                done.err.contains("nested") || done.err.contains("cannot be read"),
                "{media_type}: {}",
                done.err
            );
        }
    }
}
