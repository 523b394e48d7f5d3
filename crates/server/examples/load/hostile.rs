//! Attacks, each of which must meet its limit, while a client that means no harm goes on being answered.
//!
//! # Shape
//! An attack is a function that does its worst and tells what came back; a list says what is to come back.
//! After each one the server must have nothing running any more. The server has seconds for what by default
//! takes half a minute.
//! # Not here
//! Damaged requests, byte by byte (`tests/server/mutations.rs`), TLS and users.

use crate::Error;
use crate::client::{Answer, Connection};
use crate::report::Report;
use crate::served::{MEMORY_BYTES, QUERY_TIMEOUT, Served, WIRE_TIMEOUT};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const PREFIX: &str = "PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#> ";
/// Far more than a billion rows.
const PRODUCT: &str = "{ ?a ub:name ?b . ?c ub:name ?d . ?e ub:name ?f }";
/// What the client that means no harm asks.
const HARMLESS: &str = "SELECT ?d { ?d ub:subOrganizationOf <http://www.University0.edu> } LIMIT 5";

/// Connections of the attack by number; more than the server has places for.
const MANY: usize = 1200;

/// How long the server may take to notice that a client is gone.
const NOTICED_WITHIN: Duration = Duration::from_secs(5);

/// What memory an attack may take besides the tables of its query.
const MEMORY_SLACK: f64 = 512.0;

type Outcome = Result<String, Error>;
type Attack = fn(&Served) -> Outcome;

/// Name, what is done, and what its outcome must begin with.
const ATTACKS: [(&str, Attack, &[&str]); 29] = [
    ("a head, byte by byte", |to| drip(to, &head("POST", "/query", 10), 100), &["408"]),
    ("nothing at all", |to| drip(to, "", 0), &["closed"]),
    ("a head that never ends", |to| drip(to, "GET /health HTTP/1.1\r\nHost: localhost\r\nX:", 0), &["408"]),
    ("a body, byte by byte", |to| drip(to, &(head("POST", "/query", 100_000) + "ASK {"), 100), &["408"]),
    ("half a body", |to| drip(to, &(head("POST", "/query", 7) + "ASK"), 0), &["408"]),
    ("a reader that does not read", silent_reader, &["broken off"]),
    ("a reader of 1 KiB in 100 ms", slow_reader, &["broken off"]),
    ("10,000 requests at once, nothing read", pipeline, &["closed"]),
    ("1,200 connections that say nothing", many, &["1024 open, 176 × 503"]),
    ("done speaking after the question", half_closed, &["200", "closed"]),
    (
        "a head of 1 MiB",
        |to| raw(to, &format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(1 << 20))),
        &["431"],
    ),
    (
        "an address of 100 kB",
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
    ("bytes that are no HTTP", |to| raw(to, "\u{1}\u{2}\u{3}\r\n\r\n"), &["400"]),
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
    ("a text that doubles 60 times", doubling, &["507", "504"]),
    ("a product, counted", |to| query(to, &format!("SELECT (COUNT(*) AS ?n) {PRODUCT}")), &["200", "504"]),
    ("a product, counted one by one", counted, &["504"]),
    ("a product, sorted", |to| query(to, &format!("SELECT * {PRODUCT} ORDER BY DESC(?b)")), &["507", "504"]),
];

/// Attacks whose end is theirs: the server must notice.
const LEAVERS: [(&str, &str); 2] = [
    ("a product, and the client leaves", "SELECT (COUNT(*) AS ?n) "),
    ("an answer, and the client leaves", "SELECT * "),
];

/// Runs all attacks; whether each met its limit and nobody else suffered.
pub(crate) fn run(server: &Served, report: &mut Report) -> Result<bool, Error> {
    report.line("## Attacks\n");
    report.line(&format!(
        "Limits: {} s for a head, a body, a client that takes nothing; {} s and {} MiB for a query; the others as by \
         default.\n",
        WIRE_TIMEOUT.as_secs(),
        QUERY_TIMEOUT.as_secs(),
        MEMORY_BYTES >> 20
    ));
    let harmless = Harmless::default();
    let mut good = true;
    let mut rows = Vec::new();
    std::thread::scope(|scope| {
        let friend = scope.spawn(|| harmless.run(server.address));
        let before = server.metrics()?.memory();
        let all = ATTACKS.iter().map(|(name, attack, expected)| (*name, Some(attack), *expected, ""));
        let leavers = LEAVERS.iter().map(|(name, form)| (*name, None, &["noticed"][..], *form));
        for (name, attack, expected, form) in all.chain(leavers) {
            let slowest = harmless.slowest.swap(0, Ordering::Relaxed);
            harmless.longest.fetch_max(slowest, Ordering::Relaxed);
            let begin = Instant::now();
            let outcome = match attack {
                Some(attack) => attack(server),
                None => leave(server, form),
            };
            let time = begin.elapsed();
            let outcome = outcome.unwrap_or_else(|error| format!("error: {error}"));
            let rest = quiet(server)?;
            let memory = server.metrics()?.memory();
            let met = expected.iter().any(|expected| outcome.starts_with(expected)) && rest;
            good &= met;
            rows.push(vec![
                name.to_owned(),
                format!("{}{outcome}", if met { "" } else { "**wrong:** " }),
                format!("{:.1}", time.as_secs_f64()),
                format!("{memory:.0}"),
                format!("{:.0}", harmless.slowest.load(Ordering::Relaxed) as f64 / 1000.0),
            ]);
            if memory > before + MEMORY_SLACK + (MEMORY_BYTES >> 20) as f64 {
                good = false;
                rows.push(vec![String::new(), format!("**wrong:** {memory:.0} MiB are held")]);
            }
        }
        harmless.ended.store(true, Ordering::Relaxed);
        friend.join().map_err(|_| "a client panicked")?;
        Ok::<_, Error>(())
    })?;
    rows.iter_mut().for_each(|row| row.resize(5, String::new()));
    report.table(&["attack", "what came back", "after s", "memory MiB", "others waited ms, most"], &rows);
    let (right, wrong) = (harmless.right.load(Ordering::Relaxed), harmless.wrong.load(Ordering::Relaxed));
    report.line(&format!(
        "Meanwhile a client that means no harm asked a light question every 10 ms: {right} right answers, {wrong} others.\n"
    ));
    Ok(good && wrong == 0 && right > 0)
}

/// The client that means no harm.
#[derive(Default)]
struct Harmless {
    ended: AtomicBool,
    right: AtomicU64,
    wrong: AtomicU64,
    /// Of the current attack, in µs.
    slowest: AtomicU64,
    longest: AtomicU64,
}

impl Harmless {
    fn run(&self, address: SocketAddr) {
        let mut connection = None;
        while !self.ended.load(Ordering::Relaxed) {
            let begin = Instant::now();
            let open = connection.take().map_or_else(|| Connection::open(address), Ok);
            let answer =
                open.and_then(|mut open| Ok((open.query("/query", &format!("{PREFIX}{HARMLESS}"))?, open)));
            match answer {
                Ok((answer, open)) if answer.status == 200 && answer.whole && answer.lines > 1 => {
                    self.right.fetch_add(1, Ordering::Relaxed);
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

/// Waits until nothing runs any more but the client that means no harm; false if that takes too long.
fn quiet(server: &Served) -> Result<bool, Error> {
    let begin = Instant::now();
    while begin.elapsed() < NOTICED_WITHIN {
        let metrics = server.metrics()?;
        // The one is hardly ever seen running; connections are its and the one that asks.
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

/// What an answer was, in short.
fn told(answer: &Answer) -> String {
    if answer.status == 200 && !answer.whole {
        return format!("broken off after {} kB", answer.bytes / 1000);
    }
    let mut line: String = answer.first_line().chars().take(80).collect();
    if line.len() < answer.first_line().len() {
        line.push('…');
    }
    format!("{} {line}", answer.status)
}

/// The answer, or that the connection was closed without one.
fn end(connection: &mut Connection) -> Outcome {
    match connection.answer() {
        Ok(answer) => Ok(told(&answer)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok("closed without an answer".to_owned()),
        Err(error) => Err(error.into()),
    }
}

/// Sends bytes as they are, as far as they are taken.
fn raw(to: &Served, bytes: &str) -> Outcome {
    let mut connection = Connection::open(to.address)?;
    let _ = connection.stream().write_all(bytes.as_bytes());
    end(&mut connection)
}

/// Sends `first` byte by byte, `pause_ms` between two, for as long as the server listens; without a pause: at
/// once, and nothing after it.
fn drip(to: &Served, first: &str, pause_ms: u64) -> Outcome {
    let mut connection = Connection::open(to.address)?;
    let mut bytes = first.bytes().chain(std::iter::repeat(b'x'));
    if pause_ms == 0 {
        connection.stream().write_all(first.as_bytes())?;
        return end(&mut connection);
    }
    // All but the last bytes of a head at once if a body follows, or it would be the head that is slow.
    if let Some((head, _)) = first.split_once("\r\n\r\n").filter(|(_, body)| !body.is_empty()) {
        connection.stream().write_all(&first.as_bytes()[..head.len() + 4])?;
        bytes = first[head.len() + 4..].bytes().chain(std::iter::repeat(b'x'));
    }
    let reader = connection.stream().try_clone()?;
    reader.set_read_timeout(Some(Duration::from_millis(pause_ms)))?;
    loop {
        // Reading is how one waits, and hears of an end at once.
        match reader.peek(&mut [0]) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            _ => return end(&mut connection),
        }
        let byte = bytes.next().unwrap_or_default();
        if connection.stream().write_all(&[byte]).is_err() {
            return end(&mut connection);
        }
    }
}

/// Asks for everything and takes nothing.
fn silent_reader(to: &Served) -> Outcome {
    take(to, Duration::from_millis(100), 0)
}

/// Takes a little now and then, so that there always is some progress.
fn slow_reader(to: &Served) -> Outcome {
    take(to, Duration::from_millis(100), 1024)
}

/// Asks for everything, takes so many bytes at a time until the server has given up, and then the rest.
fn take(to: &Served, pause: Duration, bytes: usize) -> Outcome {
    let mut connection = Connection::open(to.address)?;
    connection.send("/query", &format!("{PREFIX} SELECT * {PRODUCT}"))?;
    let (begin, mut piece) = (Instant::now(), vec![0; bytes]);
    connection.stream().peek(&mut [0])?;
    // The client that means no harm is seen now and then, for less than a millisecond.
    while to.metrics()?.number("vervet_requests_running") > 0.0 {
        if begin.elapsed() > 4 * QUERY_TIMEOUT {
            return Err("the server goes on".into());
        }
        connection.stream().read_exact(&mut piece)?;
        std::thread::sleep(pause);
    }
    let time = begin.elapsed().as_secs_f64();
    // What was on its way comes, but no last chunk.
    let mut rest = Vec::new();
    let _ = connection.stream().read_to_end(&mut rest);
    if rest.ends_with(b"\r\n0\r\n\r\n") {
        return Err("the answer looks whole".into());
    }
    Ok(format!("broken off after {time:.1} s, {} kB were on their way", rest.len() / 1000))
}

/// Sends requests without end and reads none of the answers.
fn pipeline(to: &Served) -> Outcome {
    let mut connection = Connection::open(to.address)?;
    let one = head("POST", "/query", 26) + "SELECT * { ?s ?p ?o } #xxx";
    let stream = connection.stream();
    stream.set_write_timeout(Some(WIRE_TIMEOUT * 3))?;
    for sent in 0..10_000 {
        if let Err(error) = stream.write_all(one.as_bytes()) {
            return match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => Err("the server goes on".into()),
                _ => Ok(format!("closed after {sent} requests were taken")),
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
    Err("all taken, still open".into())
}

/// More connections than there may be, none of which says anything.
fn many(to: &Served) -> Outcome {
    let (mut open, mut longest) = (Vec::new(), Duration::ZERO);
    for _ in 0..MANY {
        let begin = Instant::now();
        open.push(Connection::open(to.address)?);
        longest = longest.max(begin.elapsed());
    }
    let (mut silent, mut refused) = (0_i64, 0_i64);
    for connection in &mut open {
        match connection.answer() {
            Ok(answer) if answer.status == 503 => refused += 1,
            Ok(answer) => return Ok(told(&answer)),
            Err(_) => silent += 1,
        }
    }
    // The client that means no harm has one of the places.
    let longest = longest.as_millis();
    Ok(format!(
        "{} open, {} × 503, all closed; the longest connect took {longest} ms",
        silent + 1,
        refused - 1
    ))
}

/// Says that nothing more will come, and waits for the answer.
fn half_closed(to: &Served) -> Outcome {
    let mut connection = Connection::open(to.address)?;
    connection.send("/query", &format!("{PREFIX}{HARMLESS}"))?;
    connection.stream().shutdown(Shutdown::Write)?;
    end(&mut connection)
}

fn chunked(to: &Served) -> Outcome {
    let mut connection = Connection::open(to.address)?;
    let head = head("POST", "/query", 0).replace("Content-Length: 0", "Transfer-Encoding: chunked");
    connection.stream().write_all(head.as_bytes())?;
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, " ".repeat(1 << 20));
    for _ in 0..17 {
        if connection.stream().write_all(chunk.as_bytes()).is_err() {
            break;
        }
    }
    end(&mut connection)
}

fn query(to: &Served, text: &str) -> Outcome {
    Ok(told(&Connection::open(to.address)?.query("/query", &format!("{PREFIX}{text}"))?))
}

fn nested(to: &Served, before: &str, open: &str, close: &str, after: &str) -> Outcome {
    let (open, close) = (open.repeat(100_000), close.repeat(100_000));
    query(to, &format!("{before}{open}{close}{after}"))
}

fn joins(to: &Served) -> Outcome {
    let joins: String = (0..5_000).map(|n| format!("?x{n} ub:advisor ?x{} . ", n + 1)).collect();
    query(to, &format!("SELECT * {{ {joins} }}"))
}

fn doubling(to: &Served) -> Outcome {
    let doublings: String = (0..60).map(|n| format!("BIND(CONCAT(?t{n}, ?t{n}) AS ?t{}) ", n + 1)).collect();
    query(to, &format!("SELECT (STRLEN(?t60) AS ?n) {{ BIND(\"xxxxxxxx\" AS ?t0) {doublings} }}"))
}

fn counted(to: &Served) -> Outcome {
    let text = PRODUCT.replace(" }", " FILTER(CONCAT(?b, ?d, ?f) = \"x\") }");
    query(to, &format!("SELECT (COUNT(*) AS ?n) {text}"))
}

/// Asks for much, and is gone when the server is at it: how long it takes to notice.
fn leave(server: &Served, form: &str) -> Outcome {
    let text = PRODUCT.replace(" }", " FILTER(CONCAT(?b, ?d, ?f) != \"x\") }");
    let mut connection = Connection::open(server.address)?;
    connection.send("/query", &format!("{PREFIX}{form}{text}"))?;
    std::thread::sleep(Duration::from_millis(500));
    drop(connection);
    let begin = Instant::now();
    Ok(if quiet(server)? {
        format!("noticed within {:.2} s", begin.elapsed().as_secs_f64())
    } else {
        "still runs".to_owned()
    })
}
