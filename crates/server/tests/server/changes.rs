//! The change feed: responses, streams of events, positions, and clients that do not read.

use crate::common::{Reply, Running, request};
use crate::users::users;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use vervet::{Database, Environment};

const PATCH: &str = "Accept: application/rdf-patch";
const EVENTS: &str = "Accept: text/event-stream";

fn database() -> Database {
    Database::open_or_create_in(Environment::simulated(1), "/db").expect("opens")
}

fn insert(database: &Database, number: usize) {
    database.update(&format!("INSERT DATA {{ <urn:a{number}> <urn:p> \"text\"@en }}")).expect("works");
}

fn commits(reply: &Reply) -> Vec<u64> {
    let text = reply.text();
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["commit"].as_u64().expect("a number"))
        .collect()
}

fn position(reply: &Reply) -> String {
    reply.header("vervet-position").expect("a position").to_owned()
}

#[test]
fn responses_have_the_commits_after_a_position() {
    let database = database();
    let server = Running::start(&database, |_| ());
    let empty = server.get("/changes", &[]).expect(200);
    assert_eq!((empty.text().as_str(), position(&empty).split('-').next()), ("", Some("0")));
    (0..5).for_each(|number| insert(&database, number));
    let all = server.get("/changes?after=0", &[]).expect(200);
    assert_eq!(all.header("content-type"), Some("application/x-ndjson"));
    assert_eq!(commits(&all), [1, 2, 3, 4, 5]);
    assert!(
        all.text()
            .contains(r#""op":"insert","subject":"<urn:a0>","predicate":"<urn:p>","object":"\"text\"@en""#)
    );
    let some = server.get("/changes?after=1&limit=2", &[]).expect(200);
    assert_eq!(commits(&some), [2, 3]);
    let next = position(&some);
    assert!(next.starts_with("3-"), "{next}");
    assert_eq!(commits(&server.get(&format!("/changes?after={next}"), &[]).expect(200)), [4, 5]);
    assert_eq!(position(&server.send("HEAD", "/changes?after=0", &[], b"").expect(200)), position(&all));
    let patch = server.get("/changes?after=4", &[PATCH]).expect(200);
    assert_eq!(patch.header("content-type"), Some("application/rdf-patch"));
    let expected =
        format!("H position \"{}\" .\nTX .\nA <urn:a4> <urn:p> \"text\"@en .\nTC .\n", position(&all));
    assert_eq!(patch.text(), expected);
    assert_eq!(server.get("/changes?after=4&format=rdf-patch", &[]).expect(200).text(), expected);
    assert!(server.get("/changes?after=0", &["Accept-Encoding: gzip"]).expect(200).header("vary").is_some());

    // An export is a start.
    let export = server.get("/store", &[]).expect(200);
    assert_eq!(position(&export), position(&all));
    insert(&database, 5);
    assert_eq!(commits(&server.get(&format!("/changes?after={}", position(&export)), &[]).expect(200)), [6]);
}

#[test]
fn wrong_positions_have_their_status() {
    let database = database();
    let server = Running::start(&database, |_| ());
    (0..3).for_each(|number| insert(&database, number));
    for wrong in [
        "after=4",
        "after=18446744073709551615",
        "after=18446744073709551616",
        "after=-1",
        "after=",
        "after=x",
        "after=1.0",
        "after=%2B1",
        "after=0x1",
        "after=1-",
        "after=1&after=2",
        "limit=0",
        "limit=-1",
        "limit=x",
        "after=0&limit=99999999999999999999",
        "before=1",
        "format=xml",
        "format=events&limit=1",
        "timeout=0",
        "after=1-00",
    ] {
        server.get(&format!("/changes?{wrong}"), &[]).expect(400);
    }
    server.get("/changes?after=0", &["Accept: text/turtle"]).expect(406);
    server.send("POST", "/changes?after=0", &[], b"").expect(405);
    server.get("/changes?after=2-0123456789abcdef", &[]).expect(410);
    database.checkpoint().expect("works");
    let gone =
        server.get("/changes?after=2", &["Accept: application/x-ndjson, application/json"]).expect(410);
    assert!(gone.text().contains("GET /store"), "{}", gone.text());
    server.get("/changes?after=2", &[EVENTS]).expect(410);
    server.get("/changes?after=0", &[EVENTS, "Last-Event-ID: 2"]).expect(410);
    assert_eq!(server.get("/changes?after=3", &[]).expect(200).text(), "");

    let memory = Running::start(&Database::in_memory(), |_| ());
    memory.get("/changes?after=0", &[]).expect(404);
    assert_eq!(memory.get("/store", &[]).expect(200).header("vervet-position"), None);
    let read_only = Running::start(&database, |options| options.read_only = true);
    read_only.get("/changes?after=0", &[]).expect(404);
}

/// A client of a stream of events.
struct Client {
    lines: BufReader<TcpStream>,
    /// Bytes of the body that are in no line yet, without the sizes of chunks.
    body: Vec<u8>,
}

impl Client {
    fn connect(server: &Running, path: &str, headers: &[&str]) -> Self {
        Self::try_connect(server, path, headers).unwrap_or_else(|status| panic!("{status}"))
    }

    fn try_connect(server: &Running, path: &str, headers: &[&str]) -> Result<Self, String> {
        let mut stream = server.connect();
        let headers: Vec<&str> = headers.iter().copied().chain([EVENTS]).collect();
        stream.write_all(&request("GET", path, &headers, b"")).expect("sent");
        let mut client = Self { lines: BufReader::new(stream), body: Vec::new() };
        let status = client.raw_line().expect("a status");
        while client.raw_line().is_some_and(|line| !line.is_empty()) {}
        if status.contains(" 200 ") { Ok(client) } else { Err(status) }
    }

    /// The next line of the connection; `None` at the end.
    fn raw_line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.lines.read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
        }
    }

    /// The next line of the body; `None` at the end.
    fn line(&mut self) -> Option<String> {
        let mut searched = 0;
        loop {
            if let Some(end) = self.body[searched..].iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.body.drain(..=searched + end).collect();
                return Some(String::from_utf8(line).expect("text").trim_end().to_owned());
            }
            searched = self.body.len();
            let size = usize::from_str_radix(&self.raw_line()?, 16).expect("the size of a chunk");
            let mut chunk = vec![0; size + 2];
            self.lines.read_exact(&mut chunk).ok()?;
            self.body.extend_from_slice(&chunk[..size]);
            if size == 0 {
                return None;
            }
        }
    }

    /// The id and the data of the next event; `None`: the stream has ended.
    fn event(&mut self) -> Option<(String, Value)> {
        let mut id = String::new();
        loop {
            let line = self.line()?;
            if let Some(text) = line.strip_prefix("id: ") {
                text.clone_into(&mut id);
            } else if let Some(data) = line.strip_prefix("data: ") {
                return Some((id, serde_json::from_str(data).expect("JSON")));
            }
        }
    }
}

#[test]
fn streams_show_commits_as_they_come() {
    let database = database();
    let server = Running::start(&database, |_| ());
    insert(&database, 0);
    let mut from_begin = Client::connect(&server, "/changes?after=0", &[]);
    let mut from_now = Client::connect(&server, "/changes", &[]);
    let (id, first) = from_begin.event().expect("the first commit");
    assert_eq!(first["commit"], 1);
    assert!(id.starts_with("1-"), "{id}");
    for number in 2..40_u64 {
        insert(&database, usize::try_from(number).expect("small"));
        for client in [&mut from_begin, &mut from_now] {
            let (id, event) = client.event().expect("an event");
            assert_eq!(
                (event["commit"].as_u64(), event["position"].as_str()),
                (Some(number), Some(id.as_str()))
            );
        }
    }
    // A client resumes after the last event that it has.
    let mut resumed = Client::connect(&server, "/changes?after=0", &["Last-Event-ID: 37"]);
    assert_eq!(resumed.event().expect("an event").1["commit"], 38);
    // A load has no record.
    database.load_text(vervet::Format::NTriples, "<urn:x> <urn:p> <urn:y> .").expect("loads");
    let (_, gone) = from_now.event().expect("an event");
    assert!(gone["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{gone}");
    assert_eq!(from_now.event(), None);
    // The server ends streams when it ends.
    let mut last = Client::connect(&server, "/changes", &[]);
    let begun = Instant::now();
    server.stopper.stop();
    assert_eq!(last.event(), None);
    server.join();
    assert!(begun.elapsed() < Duration::from_secs(8), "it waits for no stream");
}

#[test]
fn streams_are_bounded() {
    let database = database();
    let server = Running::start(&database, |options| options.limits.change_streams = 3);
    let mut clients: Vec<Client> = (0..3).map(|_| Client::connect(&server, "/changes", &[])).collect();
    let refused = server.get("/changes", &[EVENTS]).expect(503);
    assert!(refused.header("retry-after").is_some());
    drop(clients.pop());
    // The stream ends when the server notices that its client is gone.
    let begun = Instant::now();
    while Client::try_connect(&server, "/changes", &[]).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Clients that do not read hold no thread: others get their events, and the clients lose their streams.
#[test]
fn clients_that_do_not_read_hold_no_threads() {
    let database = database();
    let server = Running::start(&database, |options| {
        options.limits.requests = 2;
        options.limits.write_timeout = Duration::from_secs(2);
    });
    let silent: Vec<Client> = (0..8).map(|_| Client::connect(&server, "/changes?after=0", &[])).collect();
    let mut reading = Client::connect(&server, "/changes?after=0", &[]);
    // More than the buffers of the system take.
    let text = "x".repeat(100_000);
    for number in 1..=400 {
        let update = format!("INSERT DATA {{ <urn:a{number}> <urn:p> \"{text}{number}\" }}");
        database.update(&update).expect("works");
        assert_eq!(reading.event().expect("an event").1["commit"], number);
    }
    server.query("ASK { ?s ?p ?o }", &[]).expect(200);
    for mut client in silent {
        let mut rest = Vec::new();
        // What was on the way arrives, then the connection is gone or has ended early.
        _ = client.lines.read_to_end(&mut rest);
        assert!(!rest.ends_with(b"0\r\n\r\n"), "the stream has no end");
    }
}

#[test]
fn a_large_commit_is_one_event_and_one_line() {
    let database = database();
    let server = Running::start(&database, |_| ());
    let mut client = Client::connect(&server, "/changes?after=0", &[]);
    let triples: String = (0..20_000).map(|number| format!("<urn:a{number}> <urn:p> {number} .\n")).collect();
    database.update(&format!("INSERT DATA {{ {triples} }}")).expect("works");
    let line = server.get("/changes?after=0", &[]).expect(200).text();
    let commit: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(commit["changes"].as_array().map(Vec::len), Some(20_000));
    assert_eq!(client.event().expect("an event").1, commit);
}

#[test]
fn the_feed_needs_the_right_to_read() {
    let database = database();
    insert(&database, 0);
    let server = Running::start(&database, |options| options.users = users());
    server.get("/changes?after=0", &[]).expect(401);
    server.get("/changes", &[EVENTS]).expect(401);
}
