//! A server in this process, and a client that reads every byte, so that tests can tell a broken response
//! from a complete one.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vervet::{Database, Format};
use vervet_server::{Reloader, Server, ServerOptions, Stopper};

/// Timeout of clients.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server; dropping it stops the server.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) stopper: Stopper,
    pub(crate) reloader: Reloader,
    thread: Option<JoinHandle<vervet::Result<()>>>,
}

impl Running {
    /// Starts a server on a free port of loopback.
    pub(crate) fn start(database: &Database, change: impl FnOnce(&mut ServerOptions)) -> Self {
        let mut options = ServerOptions::default();
        options.bind = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
        change(&mut options);
        let server = Server::bind(database.clone(), options).expect("it listens");
        let (address, stopper) = (server.address().expect("it has one"), server.stopper());
        let reloader = server.reloader();
        let thread = Some(std::thread::spawn(move || server.run()));
        Self { address, stopper, reloader, thread }
    }

    /// Waits until the server has stopped.
    pub(crate) fn join(mut self) {
        let thread = self.thread.take().expect("it is joined once");
        thread.join().expect("no panic").expect("it ends well");
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// Sends a request on a new connection. Headers: `Name: value`.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Reply {
        let mut stream = self.connect();
        stream.write_all(&request(method, path, headers, body)).expect("it is sent");
        Reply::read(stream, method == "HEAD")
    }

    pub(crate) fn get(&self, path: &str, headers: &[&str]) -> Reply {
        self.send("GET", path, headers, b"")
    }

    pub(crate) fn query(&self, text: &str, headers: &[&str]) -> Reply {
        let headers: Vec<&str> =
            headers.iter().copied().chain(["Content-Type: application/sparql-query"]).collect();
        self.send("POST", "/query", &headers, text.as_bytes())
    }

    pub(crate) fn update(&self, text: &str, headers: &[&str]) -> Reply {
        let headers: Vec<&str> =
            headers.iter().copied().chain(["Content-Type: application/sparql-update"]).collect();
        self.send("POST", "/update", &headers, text.as_bytes())
    }

    /// The value of a metric in `/metrics`.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics", &[]).text();
        let line = text.lines().find(|line| line.split(' ').next() == Some(name));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0.0)
    }

    /// Polls `/metrics` until the metric has this value; panics after a timeout.
    pub(crate) fn wait_for(&self, name: &str, value: f64) {
        let begin = std::time::Instant::now();
        loop {
            let now = self.metric(name);
            if now == value {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "{name} is {now}, not {value}");
            std::thread::yield_now();
        }
    }
}

impl Running {
    /// Waits until this many Gremlin requests have been executed or refused, whether or not their clients
    /// have read the responses.
    pub(crate) fn wait_for_ended_gremlin_requests(&self, count: usize) {
        let begin = Instant::now();
        loop {
            let text = self.get("/metrics", &[]).text();
            let ended: usize = text
                .lines()
                .filter(|line| line.starts_with("vervet_requests_total{kind=\"gremlin\""))
                .filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok())
                .sum();
            if ended >= count {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "{ended} of {count} requests have ended");
            std::thread::yield_now();
        }
    }

    /// Waits until the oldest request finds no more rows: its client does not read, and all buffers are full.
    pub(crate) fn wait_for_full_buffers(&self) {
        let (begin, mut before) = (Instant::now(), None);
        loop {
            assert!(begin.elapsed() < PATIENCE, "no request waits for its client");
            let list = self.get("/api/queries", &[]).expect(200).json();
            let rows = list["queries"][0]["rows"].as_u64();
            if rows > Some(0) && rows == before {
                return;
            }
            before = rows;
            std::thread::sleep(Duration::from_millis(300));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.expect("no panic").expect("it ends well");
            }
        }
    }
}

/// The bytes of a request.
pub(crate) fn request(method: &str, path: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|header| header.to_ascii_lowercase().starts_with("host:")) {
        text += "Host: localhost\r\n";
    }
    if !body.is_empty() || method == "POST" || method == "PUT" {
        text += &format!("Content-Length: {}\r\n", body.len());
    }
    headers.iter().for_each(|header| text += &format!("{header}\r\n"));
    let mut bytes = (text + "\r\n").into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Whether it is complete, by its length or its last chunk.
    pub(crate) whole: bool,
}

impl Reply {
    /// Reads to the end of the connection.
    pub(crate) fn read(mut stream: impl Read, head_only: bool) -> Self {
        let mut bytes = Vec::new();
        // A connection reset ends a response just as a close does.
        let _ = stream.read_to_end(&mut bytes);
        let end = find(&bytes, b"\r\n\r\n")
            .unwrap_or_else(|| panic!("no head in {:?}", String::from_utf8_lossy(&bytes)));
        let head = String::from_utf8(bytes[..end].to_vec()).expect("a head is ASCII");
        let mut lines = head.split("\r\n");
        let status = lines.next().expect("a first line").split(' ').nth(1).expect("a status");
        let headers = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let mut reply =
            Self { status: status.parse().expect("a number"), headers, body: Vec::new(), whole: false };
        let rest = &bytes[end + 4..];
        if reply.header("transfer-encoding") == Some("chunked") && !head_only {
            (reply.body, reply.whole) = dechunk(rest);
        } else {
            let length = reply.header("content-length").map_or(0, |length| length.parse().expect("a number"));
            reply.whole = head_only || rest.len() == length;
            reply.body = rest.to_vec();
        }
        reply
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn content_type(&self) -> &str {
        self.header("content-type").unwrap_or_default()
    }

    /// The body as text, decompressed.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        match self.header("content-encoding") {
            None => text = String::from_utf8(self.body.clone()).expect("UTF-8"),
            Some("gzip") => {
                flate2::read::GzDecoder::new(&self.body[..])
                    .read_to_string(&mut text)
                    .map(drop)
                    .expect("gzip");
            }
            Some("zstd") => {
                let mut decoder = zstd::stream::read::Decoder::new(&self.body[..]).expect("zstd");
                decoder.read_to_string(&mut text).map(drop).expect("zstd");
            }
            Some(other) => panic!("encoded as {other}"),
        }
        text
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.text()).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Asserts the status of a complete response.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        assert!(self.whole, "the answer broke off");
        self
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// The data of chunks, and whether the last chunk was received.
fn dechunk(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut data = Vec::new();
    loop {
        let Some(end) = find(bytes, b"\r\n") else { return (data, false) };
        let size = std::str::from_utf8(&bytes[..end]).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a size");
        bytes = &bytes[end + 2..];
        if size == 0 {
            return (data, bytes == b"\r\n");
        }
        if bytes.len() < size + 2 {
            data.extend_from_slice(&bytes[..bytes.len().min(size)]);
            return (data, false);
        }
        data.extend_from_slice(&bytes[..size]);
        bytes = &bytes[size + 2..];
    }
}

/// Two people, and one in a named graph.
pub(crate) fn people() -> Database {
    let database = Database::in_memory();
    let text = r#"@prefix : <http://example.org/> .
        :ann a :Person ; :name "Ann" ; :knows :bob .
        :bob a :Person ; :name "Bob"@en .
        <http://example.org/work> { :eve a :Person ; :name "Eve" . }"#;
    database.load_text(Format::TriG, text).expect("it loads");
    database
}

/// Enough statements that a product of two patterns has a million rows, and larger products never end.
pub(crate) fn thousand() -> Database {
    let database = Database::in_memory();
    let text: String = (0..1000).map(|n| format!("<urn:s:{n}> <urn:p> \"value {n}\" .\n")).collect();
    database.load_text(Format::NTriples, &text).expect("it loads");
    database
}

/// A query that never ends.
pub(crate) const ENDLESS: &str =
    "SELECT * { ?a <urn:p> ?b . ?c <urn:p> ?d . ?e <urn:p> ?f . ?g <urn:p> ?h . ?i <urn:p> ?j }";
/// A query that never ends and has no results until its end.
pub(crate) const ENDLESS_COUNT: &str = "SELECT (COUNT(*) AS ?n) { ?a <urn:p> ?b . ?c <urn:p> ?d . ?e <urn:p> ?f . \
     ?g <urn:p> ?h . FILTER(CONCAT(?b, ?d, ?f, ?h) = \"x\") }";
