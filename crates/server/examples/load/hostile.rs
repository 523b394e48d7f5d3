//! Attacks on the server, each of which must end at its limit, while a well-behaved client gets its results.
//!
//! # Shape
//! An attack is a function that returns a summary of the server's response. [`ATTACKS`] lists the expected
//! beginnings of the summaries. After each attack the server must be idle. Its timeouts are a few seconds
//! instead of the default of 30.
//! # Not here
//! Requests with changed bytes (`tests/server/mutations.rs`), TLS and users.

use crate::Error;
use crate::client::{Connection, Response};
use crate::report::Report;
use crate::server_process::{MEMORY_BYTES, QUERY_TIMEOUT, ServerProcess, WIRE_TIMEOUT};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const PREFIX: &str = "PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#> ";
/// More than 10^9 rows.
const PRODUCT: &str = "{ ?a ub:name ?b . ?c ub:name ?d . ?e ub:name ?f }";
/// The query of the well-behaved client.
const PROBE_QUERY: &str = "SELECT ?d { ?d ub:subOrganizationOf <http://www.University0.edu> } LIMIT 5";

/// Connections of the attack with many connections; more than the server permits.
const MANY_CONNECTIONS: usize = 1200;

/// Maximum time until the server has stopped the work of a disconnected client.
const DETECTION_TIME_MAX: Duration = Duration::from_secs(5);

/// Memory in MiB that an attack may use in addition to the tables of its query.
const MEMORY_SLACK: f64 = 512.0;

type Outcome = Result<String, Error>;
type Attack = fn(&ServerProcess) -> Outcome;

/// Name, function, and permitted beginnings of the summary.
const ATTACKS: [(&str, Attack, &[&str]); 29] = [
    ("a head, byte by byte", |to| send_slowly(to, &head("POST", "/query", 10), 100), &["408"]),
    ("a connection without a request", |to| send_slowly(to, "", 0), &["closed"]),
    (
        "a head that never ends",
        |to| send_slowly(to, "GET /health HTTP/1.1\r\nHost: localhost\r\nX:", 0),
        &["408"],
    ),
    (
        "a body, byte by byte",
        |to| send_slowly(to, &(head("POST", "/query", 100_000) + "ASK {"), 100),
        &["408"],
    ),
    ("half a body", |to| send_slowly(to, &(head("POST", "/query", 7) + "ASK"), 0), &["408"]),
    ("a client that does not read", silent_reader, &["truncated"]),
    ("a client that reads 1 KiB in 100 ms", slow_reader, &["truncated"]),
    ("10,000 pipelined requests, no response read", pipeline, &["closed"]),
    ("1,200 connections without a request", many_connections, &["1024 open, 176 × 503"]),
    ("sending side closed after the query", half_closed, &["200", "closed"]),
    (
        "a head of 1 MiB",
        |to| raw(to, &format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(1 << 20))),
        &["431"],
    ),
    (
        "a path of 100 kB",
        |to| raw(to, &format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000))),
        &["414", "431"],
    ),
    (
        "10,000 header lines",
        |to| raw(to, &format!("GET / HTTP/1.1\r\n{}\r\n", "X: x\r\n".repeat(10_000))),
        &["431"],
    ),
    ("a body of 17 MB, declared", |to| raw(to, &head("POST", "/query", 17_000_000)), &["413"]),
    ("a body of 2^64 bytes, declared", |to| raw(to, &head("POST", "/query", u64::MAX)), &["413", "431"]),
    ("a body of 17 MB in chunks", chunked, &["413"]),
    ("a compressed body", |to| raw(to, &compressed()), &["415"]),
    ("bytes that are not HTTP", |to| raw(to, "\u{1}\u{2}\u{3}\r\n\r\n"), &["400"]),
    ("100,000 braces", |to| nested(to, "ASK { ", "{", "}", " }"), &["400"]),
    ("100,000 brackets in a filter", |to| nested(to, "ASK { FILTER(", "(", ")", ") }"), &["400"]),
    ("100,000 sub-queries", |to| nested(to, "ASK { ", "{ SELECT * ", "}", " }"), &["400"]),
    ("100,000 brackets in a path", |to| nested(to, "ASK { ?a ", "(^", ")*", " ?b }"), &["400"]),
    ("100,000 collections", |to| nested(to, "ASK { ?a ?b ", "(", ")", " }"), &["400"]),
    (
        "50,000 unions",
        |to| query(to, &format!("ASK {{ {{}} {} }}", "UNION {} ".repeat(50_000))),
        &["200", "400", "504"],
    ),
    ("5,000 joins", joins, &["200", "400", "504", "507"]),
    ("a string that doubles 60 times", doubling, &["507", "504"]),
    ("a product, counted", |to| query(to, &format!("SELECT (COUNT(*) AS ?n) {PRODUCT}")), &["200", "504"]),
    ("a product, counted one by one", counted, &["504"]),
    ("a product, sorted", |to| query(to, &format!("SELECT * {PRODUCT} ORDER BY DESC(?b)")), &["507", "504"]),
];

/// Attacks that disconnect: the server must detect this.
const DISCONNECTS: [(&str, &str); 2] = [
    ("a product, and the client disconnects", "SELECT (COUNT(*) AS ?n) "),
    ("a long result, and the client disconnects", "SELECT * "),
];

/// Runs all attacks; returns whether each ended at its limit and the well-behaved client got all its results.
pub(crate) fn run(server: &ServerProcess, report: &mut Report) -> Result<bool, Error> {
    report.line("## Attacks\n");
    report.line(&format!(
        "Limits: {} s for a head, a body, a client that reads nothing; {} s and {} MiB for a query; default values \
         otherwise.\n",
        WIRE_TIMEOUT.as_secs(),
        QUERY_TIMEOUT.as_secs(),
        MEMORY_BYTES >> 20
    ));
    let probe = Probe::default();
    let mut passed = true;
    let mut rows = Vec::new();
    std::thread::scope(|scope| {
        let prober = scope.spawn(|| probe.run(server.address));
        let before = server.metrics()?.memory();
        let all = ATTACKS.iter().map(|(name, attack, expected)| (*name, Some(attack), *expected, ""));
        let disconnects = DISCONNECTS.iter().map(|(name, form)| (*name, None, &["detected"][..], *form));
        for (name, attack, expected, form) in all.chain(disconnects) {
            let slowest = probe.slowest.swap(0, Ordering::Relaxed);
            probe.longest.fetch_max(slowest, Ordering::Relaxed);
            let begin = Instant::now();
            let outcome = match attack {
                Some(attack) => attack(server),
                None => disconnect(server, form),
            };
            let time = begin.elapsed();
            let outcome = outcome.unwrap_or_else(|error| format!("error: {error}"));
            let is_idle = wait_until_idle(server)?;
            let memory = server.metrics()?.memory();
            let met = expected.iter().any(|expected| outcome.starts_with(expected)) && is_idle;
            passed &= met;
            rows.push(vec![
                name.to_owned(),
                format!("{}{outcome}", if met { "" } else { "**wrong:** " }),
                format!("{:.1}", time.as_secs_f64()),
                format!("{memory:.0}"),
                format!("{:.0}", probe.slowest.load(Ordering::Relaxed) as f64 / 1000.0),
            ]);
            if memory > before + MEMORY_SLACK + (MEMORY_BYTES >> 20) as f64 {
                passed = false;
                rows.push(vec![String::new(), format!("**wrong:** the server has {memory:.0} MiB")]);
            }
        }
        probe.ended.store(true, Ordering::Relaxed);
        prober.join().map_err(|_| "a client panicked")?;
        Ok::<_, Error>(())
    })?;
    rows.iter_mut().for_each(|row| row.resize(5, String::new()));
    report.table(&["attack", "response", "after s", "memory MiB", "longest probe ms"], &rows);
    let (correct, wrong) = (probe.correct.load(Ordering::Relaxed), probe.wrong.load(Ordering::Relaxed));
    report.line(&format!(
        "Meanwhile a well-behaved client sent a light query every 10 ms: {correct} correct results, {wrong} other responses.\n"
    ));
    Ok(passed && wrong == 0 && correct > 0)
}

/// The well-behaved client, with counts of its responses.
#[derive(Default)]
struct Probe {
    ended: AtomicBool,
    correct: AtomicU64,
    wrong: AtomicU64,
    /// Longest response time during the current attack, in µs.
    slowest: AtomicU64,
    longest: AtomicU64,
}

impl Probe {
    fn run(&self, address: SocketAddr) {
        let mut connection = None;
        while !self.ended.load(Ordering::Relaxed) {
            let begin = Instant::now();
            let open = connection.take().map_or_else(|| Connection::open(address), Ok);
            let response = open
                .and_then(|mut open| Ok((open.query("/query", &format!("{PREFIX}{PROBE_QUERY}"))?, open)));
            match response {
                Ok((response, open)) if response.status == 200 && response.whole && response.lines > 1 => {
                    self.correct.fetch_add(1, Ordering::Relaxed);
                    connection = Some(open);
                }
                _ => {
                    self.wrong.fetch_add(1, Ordering::Relaxed);
                }
            }
            let micros = u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.slowest.fetch_max(micros, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Waits until the server runs nothing except requests of the well-behaved client; returns `false` after
/// [`DETECTION_TIME_MAX`].
fn wait_until_idle(server: &ServerProcess) -> Result<bool, Error> {
    let begin = Instant::now();
    while begin.elapsed() < DETECTION_TIME_MAX {
        let metrics = server.metrics()?;
        // A probe runs too briefly to be counted often. The two connections are those of the probe and of
        // this request.
        if metrics.number("vervet_requests_running") == 0.0 && metrics.number("vervet_connections") <= 2.0 {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(false)
}

fn head(method: &str, path: &str, length: u64) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sparql-query\r\n\
         Content-Length: {length}\r\n\r\n"
    )
}

fn compressed() -> String {
    head("POST", "/query", 10).replace("Host", "Content-Encoding: gzip\r\nHost") + "0123456789"
}

/// A summary of a response.
fn summary(response: &Response) -> String {
    if response.status == 200 && !response.whole {
        return format!("truncated after {} kB", response.bytes / 1000);
    }
    let mut line: String = response.first_line().chars().take(80).collect();
    if line.len() < response.first_line().len() {
        line.push('…');
    }
    format!("{} {line}", response.status)
}

/// A summary of the response, or of a connection that was closed without one.
fn read_summary(connection: &mut Connection) -> Outcome {
    match connection.read_response() {
        Ok(response) => Ok(summary(&response)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok("closed without a response".to_owned()),
        Err(error) => Err(error.into()),
    }
}

/// Sends bytes unchanged, until the server stops reading.
fn raw(to: &ServerProcess, bytes: &str) -> Outcome {
    let mut connection = Connection::open(to.address)?;
    let _ = connection.stream().write_all(bytes.as_bytes());
    read_summary(&mut connection)
}

/// Sends `first` one byte at a time with `pause_ms` between two, and then further bytes until the server
/// responds. `pause_ms` 0: sends `first` in one piece, and nothing after it.
fn send_slowly(to: &ServerProcess, first: &str, pause_ms: u64) -> Outcome {
    let mut connection = Connection::open(to.address)?;
    let mut bytes = first.bytes().chain(std::iter::repeat(b'x'));
    if pause_ms == 0 {
        connection.stream().write_all(first.as_bytes())?;
        return read_summary(&mut connection);
    }
    // If a body follows, the head is sent in one piece: otherwise the limit of the head would apply.
    if let Some((head, _)) = first.split_once("\r\n\r\n").filter(|(_, body)| !body.is_empty()) {
        connection.stream().write_all(&first.as_bytes()[..head.len() + 4])?;
        bytes = first[head.len() + 4..].bytes().chain(std::iter::repeat(b'x'));
    }
    let reader = connection.stream().try_clone()?;
    reader.set_read_timeout(Some(Duration::from_millis(pause_ms)))?;
    loop {
        // The read is the pause, and returns at once when the server responds or closes.
        match reader.peek(&mut [0]) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            _ => return read_summary(&mut connection),
        }
        let byte = bytes.next().unwrap_or_default();
        if connection.stream().write_all(&[byte]).is_err() {
            return read_summary(&mut connection);
        }
    }
}

/// Requests a long result and reads nothing.
fn silent_reader(to: &ServerProcess) -> Outcome {
    read_slowly(to, Duration::from_millis(100), 0)
}

/// Requests a long result and reads a little at a time, so that the connection always makes progress.
fn slow_reader(to: &ServerProcess) -> Outcome {
    read_slowly(to, Duration::from_millis(100), 1024)
}

/// Requests a long result, reads `bytes` after each `pause` until the server has ended the request, and then
/// reads the rest.
fn read_slowly(to: &ServerProcess, pause: Duration, bytes: usize) -> Outcome {
    let mut connection = Connection::open(to.address)?;
    connection.send("/query", &format!("{PREFIX} SELECT * {PRODUCT}"))?;
    let (begin, mut piece) = (Instant::now(), vec![0; bytes]);
    connection.stream().peek(&mut [0])?;
    // The metric also counts the probes, each for less than a millisecond.
    while to.metrics()?.number("vervet_requests_running") > 0.0 {
        if begin.elapsed() > 4 * QUERY_TIMEOUT {
            return Err("the server did not stop".into());
        }
        connection.stream().read_exact(&mut piece)?;
        std::thread::sleep(pause);
    }
    let time = begin.elapsed().as_secs_f64();
    // Data in transit arrives, but no last chunk.
    let mut rest = Vec::new();
    let _ = connection.stream().read_to_end(&mut rest);
    if rest.ends_with(b"\r\n0\r\n\r\n") {
        return Err("the response looks complete".into());
    }
    Ok(format!("truncated after {time:.1} s, {} kB were in transit", rest.len() / 1000))
}

/// Sends requests without a pause and reads no response.
fn pipeline(to: &ServerProcess) -> Outcome {
    let mut connection = Connection::open(to.address)?;
    let one = head("POST", "/query", 26) + "SELECT * { ?s ?p ?o } #xxx";
    let stream = connection.stream();
    stream.set_write_timeout(Some(WIRE_TIMEOUT * 3))?;
    for sent in 0..10_000 {
        if let Err(error) = stream.write_all(one.as_bytes()) {
            return match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => Err("the server did not stop".into()),
                _ => Ok(format!("closed after {sent} requests were accepted")),
            };
        }
    }
    let begin = Instant::now();
    while begin.elapsed() < 5 * WIRE_TIMEOUT {
        if stream.write_all(b"x").is_err() {
            return Ok("closed; all requests fitted into buffers".to_owned());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Err("all requests were accepted, and the connection is open".into())
}

/// Opens more connections than permitted and sends nothing.
fn many_connections(to: &ServerProcess) -> Outcome {
    let (mut open, mut longest) = (Vec::new(), Duration::ZERO);
    for _ in 0..MANY_CONNECTIONS {
        let begin = Instant::now();
        open.push(Connection::open(to.address)?);
        longest = longest.max(begin.elapsed());
    }
    let (mut silent, mut refused) = (0_i64, 0_i64);
    for connection in &mut open {
        match connection.read_response() {
            Ok(response) if response.status == 503 => refused += 1,
            Ok(response) => return Ok(summary(&response)),
            Err(_) => silent += 1,
        }
    }
    // The well-behaved client has one of the permitted connections.
    let longest = longest.as_millis();
    Ok(format!(
        "{} open, {} × 503, all closed; the longest connect took {longest} ms",
        silent + 1,
        refused - 1
    ))
}

/// Closes the sending side after a query and reads the response.
fn half_closed(to: &ServerProcess) -> Outcome {
    let mut connection = Connection::open(to.address)?;
    connection.send("/query", &format!("{PREFIX}{PROBE_QUERY}"))?;
    connection.stream().shutdown(Shutdown::Write)?;
    read_summary(&mut connection)
}

fn chunked(to: &ServerProcess) -> Outcome {
    let mut connection = Connection::open(to.address)?;
    let head = head("POST", "/query", 0).replace("Content-Length: 0", "Transfer-Encoding: chunked");
    connection.stream().write_all(head.as_bytes())?;
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, " ".repeat(1 << 20));
    for _ in 0..17 {
        if connection.stream().write_all(chunk.as_bytes()).is_err() {
            break;
        }
    }
    read_summary(&mut connection)
}

fn query(to: &ServerProcess, text: &str) -> Outcome {
    Ok(summary(&Connection::open(to.address)?.query("/query", &format!("{PREFIX}{text}"))?))
}

fn nested(to: &ServerProcess, before: &str, open: &str, close: &str, after: &str) -> Outcome {
    let (open, close) = (open.repeat(100_000), close.repeat(100_000));
    query(to, &format!("{before}{open}{close}{after}"))
}

fn joins(to: &ServerProcess) -> Outcome {
    let joins: String = (0..5_000).map(|n| format!("?x{n} ub:advisor ?x{} . ", n + 1)).collect();
    query(to, &format!("SELECT * {{ {joins} }}"))
}

fn doubling(to: &ServerProcess) -> Outcome {
    let doublings: String = (0..60).map(|n| format!("BIND(CONCAT(?t{n}, ?t{n}) AS ?t{}) ", n + 1)).collect();
    query(to, &format!("SELECT (STRLEN(?t60) AS ?n) {{ BIND(\"xxxxxxxx\" AS ?t0) {doublings} }}"))
}

fn counted(to: &ServerProcess) -> Outcome {
    let text = PRODUCT.replace(" }", " FILTER(CONCAT(?b, ?d, ?f) = \"x\") }");
    query(to, &format!("SELECT (COUNT(*) AS ?n) {text}"))
}

/// Requests a long result and disconnects while the server computes it; measures the time until the server is
/// idle.
fn disconnect(server: &ServerProcess, form: &str) -> Outcome {
    let text = PRODUCT.replace(" }", " FILTER(CONCAT(?b, ?d, ?f) != \"x\") }");
    let mut connection = Connection::open(server.address)?;
    connection.send("/query", &format!("{PREFIX}{form}{text}"))?;
    std::thread::sleep(Duration::from_millis(500));
    drop(connection);
    let begin = Instant::now();
    Ok(if wait_until_idle(server)? {
        format!("detected within {:.2} s", begin.elapsed().as_secs_f64())
    } else {
        "still running".to_owned()
    })
}
