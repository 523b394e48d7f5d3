//! The list of running requests, stopping them, and readiness of a server that cannot write.

use crate::common::{ENDLESS_COUNT, Reply, Running, request, thousand};
use crate::users::{basic, users};
use std::io::Write;
use std::net::TcpStream;
use vervet::{Database, DatabaseOptions};
use vervet_env::{Fault, Simulation};

/// Sends a query that never ends, and returns once it runs.
fn begin(server: &Running, path: &str, body: &str, headers: &[&str]) -> TcpStream {
    let running = server.metric("vervet_requests_running");
    let mut stream = server.connect();
    stream.write_all(&request("POST", path, headers, body.as_bytes())).expect("it is sent");
    server.wait_for("vervet_requests_running", running + 1.0);
    stream
}

#[test]
fn requests_are_listed_and_stopped() {
    let server = Running::start(&thousand(), |_| ());
    let sparql = ["Content-Type: application/sparql-query", "Accept: application/json"];
    let query = begin(&server, "/query", ENDLESS_COUNT, &sparql);
    let update = format!("INSERT {{ <urn:n> <urn:n> ?n }} WHERE {{ {{ {ENDLESS_COUNT} }} }}");
    let update = begin(&server, "/update", &update, &["Content-Type: application/sparql-update"]);
    let gremlin = r#"{"gremlin": "g.inject(1).repeat(identity())"}"#;
    let gremlin = begin(&server, "/gremlin", gremlin, &[]);
    let list = server.get("/api/queries", &[]).expect(200).json();
    let kinds: Vec<&str> =
        list["queries"].as_array().unwrap().iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["query", "update", "gremlin"], "{list}");
    assert_eq!(list["queries"][0]["text"], ENDLESS_COUNT);
    assert!(list["queries"][0]["seconds"].as_f64().unwrap() > 0.0, "{list}");
    for (at, stream) in [query, update, gremlin].into_iter().enumerate() {
        let address = format!("/api/queries/{}", list["queries"][at]["id"]);
        server.send("DELETE", &address, &[], b"").expect(204);
        let reply = Reply::read(stream, false).expect(503);
        assert!(reply.text().contains("stopped by DELETE"), "{}", reply.text());
    }
    server.wait_for("vervet_requests_running", 0.0);
    assert_eq!(server.get("/api/queries", &[]).expect(200).json()["queries"].as_array().unwrap().len(), 0);
    assert!(server.query("ASK { <urn:n> ?p ?o }", &[]).expect(200).text().contains("false"));
    server.send("DELETE", "/api/queries/1", &[], b"").expect(404);
    server.send("DELETE", "/api/queries/x", &[], b"").expect(404);
    server.get("/api/queries/1", &[]).expect(405);
    server.send("POST", "/api/queries", &[], b"").expect(405);
}

#[test]
fn users_see_their_own_requests_and_admins_all() {
    let server = Running::start(&thousand(), |options| options.users = users());
    let (reader, robot, root) =
        (basic("reader", "let me in"), "Authorization: Bearer s3cret".to_owned(), basic("root", "root"));
    let wait = |count: usize| {
        // The metrics need credentials too, so the test polls the list itself.
        loop {
            let list = server.get("/api/queries", &[&root]).expect(200).json();
            let queries = list["queries"].as_array().unwrap().clone();
            if queries.len() == count {
                return queries;
            }
            std::thread::yield_now();
        }
    };
    let mut stream = server.connect();
    let headers = ["Content-Type: application/sparql-query", &reader];
    stream.write_all(&request("POST", "/query", &headers, ENDLESS_COUNT.as_bytes())).expect("it is sent");
    let all = wait(1);
    assert_eq!(all[0]["user"], "reader");
    let address = format!("/api/queries/{}", all[0]["id"]);
    for (name, sees) in [(&reader, 1), (&robot, 0)] {
        let list = server.get("/api/queries", &[name]).expect(200).json();
        assert_eq!(list["queries"].as_array().unwrap().len(), sees, "{name}");
    }
    server.get("/api/queries", &[]).expect(401);
    server.send("DELETE", &address, &[], b"").expect(401);
    server.send("DELETE", &address, &[&robot], b"").expect(404);
    server.send("DELETE", &address, &[&root, "Origin: https://elsewhere.example"], b"").expect(403);
    server.send("DELETE", &address, &[&reader], b"").expect(204);
    assert_eq!(Reply::read(stream, false).status, 503);
    wait(0);
}

/// users 24: after a failed write the server refused all updates, while `/health` said `ok` and no metric
/// showed it.
#[test]
fn users_24_a_server_that_cannot_write_is_not_ready() {
    let simulation = Simulation::new(24);
    let options = DatabaseOptions { environment: simulation.environment(), ..DatabaseOptions::default() };
    let database = Database::open_or_create_with("/db", options).expect("an empty disk");
    let server = Running::start(&database, |_| ());
    let insert = |n: u32| server.update(&format!("INSERT DATA {{ <urn:a> <urn:b> {n} }}"), &[]);
    insert(1).expect(204);
    assert_eq!(server.get("/ready", &[]).expect(200).text(), "ready\n");
    assert!(server.metric("vervet_writable") == 1.0 && server.metric("vervet_log_bytes") > 0.0);
    simulation.files.fail_write(0, Fault::Io);
    let failed = insert(2);
    assert!(failed.status >= 500, "{}", failed.status);
    let reply = server.get("/ready", &[]).expect(503);
    assert!(reply.text().contains("not writable"), "{}", reply.text());
    assert_eq!(server.metric("vervet_writable"), 0.0);
    assert_eq!(server.get("/health", &[]).expect(200).text(), "ok\n");
    server.send("POST", "/ready", &[], b"").expect(405);
}
