//! Disconnecting clients, and the shutdown of the server.

use crate::common::{ENDLESS, ENDLESS_COUNT, Reply, Running, request, thousand};
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// A query ends when its client disconnects, whether it is sending rows or has sent nothing yet.
#[test]
fn disconnecting_cancels_queries() {
    let server = Running::start(&thousand(), |_| ());
    let headers = ["Content-Type: application/sparql-query", "Accept: text/csv"];
    for (text, bytes) in [(ENDLESS, 200_000), (ENDLESS_COUNT, 0)] {
        let mut stream = server.connect();
        stream.write_all(&request("POST", "/query", &headers, text.as_bytes())).unwrap();
        let mut some = vec![0; bytes];
        stream.read_exact(&mut some).unwrap();
        server.wait_for("vervet_requests_running", 1.0);
        drop(stream);
        server.wait_for("vervet_requests_running", 0.0);
    }
}

#[test]
fn disconnecting_cancels_updates() {
    let server = Running::start(&thousand(), |_| ());
    let update = format!("INSERT {{ <urn:n> <urn:n> ?n }} WHERE {{ {{ {ENDLESS_COUNT} }} }}");
    let mut stream = server.connect();
    let headers = ["Content-Type: application/sparql-update"];
    stream.write_all(&request("POST", "/update", &headers, update.as_bytes())).unwrap();
    server.wait_for("vervet_requests_running", 1.0);
    drop(stream);
    server.wait_for("vervet_requests_running", 0.0);
    assert!(server.query("ASK { <urn:n> ?p ?o }", &[]).expect(200).text().contains("false"));
}

#[test]
fn shutdown_lets_running_requests_finish() {
    let server = Running::start(&thousand(), |options| {
        // The answer is long, and this machine may be slow.
        options.limits.shutdown_timeout = Duration::from_secs(600);
    });
    let (address, stopper) = (server.address, server.stopper.clone());
    let mut stream = server.connect();
    let text = "SELECT ?a ?c { ?a <urn:p> ?b . ?c <urn:p> ?d }";
    let headers = ["Content-Type: application/sparql-query", "Accept: text/csv"];
    stream.write_all(&request("POST", "/query", &headers, text.as_bytes())).unwrap();
    // The response has begun, and is too long for the buffers on the way.
    let mut begin = [0; 1000];
    stream.read_exact(&mut begin).unwrap();
    stopper.stop();
    let reply = Reply::read((&begin[..]).chain(stream), false).expect(200);
    assert_eq!(reply.body.iter().filter(|byte| **byte == b'\n').count(), 1_000_001);
    server.join();
    assert!(std::net::TcpStream::connect(address).is_err(), "the server no longer listens");
}

#[test]
fn shutdown_cancels_long_requests() {
    let server = Running::start(&thousand(), |options| {
        options.limits.shutdown_timeout = Duration::from_millis(100);
    });
    let headers = ["Content-Type: application/sparql-query", "Accept: text/csv"];
    let mut silent = server.connect();
    silent.write_all(&request("POST", "/query", &headers, ENDLESS_COUNT.as_bytes())).unwrap();
    let mut loud = server.connect();
    loud.write_all(&request("POST", "/query", &headers, ENDLESS.as_bytes())).unwrap();
    let mut begin = [0; 1000];
    loud.read_exact(&mut begin).unwrap();
    server.wait_for("vervet_requests_running", 2.0);
    server.stopper.stop();
    let rest = std::thread::spawn(move || Reply::read((&begin[..]).chain(loud), false));
    assert_eq!(Reply::read(silent, false).status, 503);
    assert!(!rest.join().unwrap().whole, "the answer broke off");
    server.join();
}

/// A query whose client reads the beginning of its rows and no more.
fn unread(server: &Running) -> std::net::TcpStream {
    let headers = ["Content-Type: application/sparql-query", "Accept: text/csv"];
    let mut stream = server.connect();
    stream.write_all(&request("POST", "/query", &headers, ENDLESS.as_bytes())).expect("the server responds");
    let mut begin = [0; 1000];
    stream.read_exact(&mut begin).expect("the server responds");
    server.wait_for("vervet_requests_running", 1.0);
    server.wait_for_full_buffers();
    stream
}

/// The write timeout is 30 s.
#[test]
fn a_request_whose_client_does_not_read_can_be_stopped() {
    let server = Running::start(&thousand(), |_| ());
    let _stream = unread(&server);
    let list = server.get("/api/queries", &[]).expect(200).json();
    let begin = Instant::now();
    server.send("DELETE", &format!("/api/queries/{}", list["queries"][0]["id"]), &[], b"").expect(204);
    server.wait_for("vervet_requests_running", 0.0);
    assert!(begin.elapsed() < Duration::from_secs(10), "it took {:?}", begin.elapsed());
}

#[test]
fn clients_that_do_not_read_do_not_delay_shutdown() {
    let server = Running::start(&thousand(), |options| {
        options.limits.shutdown_timeout = Duration::from_millis(100);
    });
    let _stream = unread(&server);
    let begin = Instant::now();
    server.stopper.stop();
    server.join();
    assert!(begin.elapsed() < Duration::from_secs(4), "it took {:?}", begin.elapsed());
}

#[test]
fn incomplete_heads_do_not_delay_shutdown() {
    let server = Running::start(&thousand(), |_| ());
    let mut stream = server.connect();
    stream.write_all(b"GET /query HTTP/1.1\r\nHost: loc").unwrap();
    server.wait_for("vervet_connections", 2.0);
    let begin = Instant::now();
    server.stopper.stop();
    server.join();
    assert!(begin.elapsed() < Duration::from_secs(8), "it took {:?}", begin.elapsed());
}

/// In HTTP/1.0 a body ends with the connection, so a connection that breaks off must not look like an end.
#[test]
fn a_body_that_breaks_off_is_no_end_in_http_1_0() {
    let server = Running::start(&thousand(), |_| ());
    let headers = ["Content-Type: application/sparql-query", "Accept: text/csv"];
    let bytes = request("POST", "/query", &headers, ENDLESS.as_bytes());
    let text = String::from_utf8(bytes).unwrap().replacen("HTTP/1.1", "HTTP/1.0", 1);
    let mut stream = server.connect();
    stream.write_all(text.as_bytes()).unwrap();
    let mut begin = [0; 1000];
    stream.read_exact(&mut begin).unwrap();
    assert!(begin.starts_with(b"HTTP/1.0 200"), "{}", String::from_utf8_lossy(&begin));
    let list = server.get("/api/queries", &[]).expect(200).json();
    server.send("DELETE", &format!("/api/queries/{}", list["queries"][0]["id"]), &[], b"").expect(204);
    let error = stream.read_to_end(&mut Vec::new()).expect_err("the body is not whole");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
    // A whole one ends in order.
    let bytes = request("POST", "/query", &headers, b"SELECT ?a ?c { ?a <urn:p> ?b . ?c <urn:p> ?d }");
    let text = String::from_utf8(bytes).unwrap().replacen("HTTP/1.1", "HTTP/1.0", 1);
    let mut stream = server.connect();
    stream.write_all(text.as_bytes()).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    assert!(all.iter().filter(|byte| **byte == b'\n').count() > 1_000_000);
}
