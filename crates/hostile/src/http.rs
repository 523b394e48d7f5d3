//! HTTP requests to a server in this process, over loopback: every input yields an HTTP response, and never a
//! 500.
//!
//! # Shape of the bytes
//! The server would reject most random requests for their length alone, so for all addresses except
//! [`Address::Raw`] the first lines are parameters, from which the check builds the request head:
//! ```text
//! Query   G|F|D and more parameters   \n  Accept        \n  text of a query       GET, POST of a form, POST direct
//! Update  F|D and more parameters     \n  Accept        \n  text of an update     (a small letter: not encoded)
//! Store   method, space, rest of /store \n  Content-Type \n  body
//! Api     method, space, rest of /api/  \n  Content-Type \n  body
//! ```

use crate::{graph, oracle};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vervet::Database;
use vervet_server::{Server, ServerOptions, Stopper};

/// The endpoint of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Address {
    /// `/query`: GET and both forms of POST.
    Query,
    /// `/update`: both forms of POST.
    Update,
    /// `/store`: the Graph Store Protocol.
    Store,
    /// `/api/`: the interface of the web console.
    Api,
    /// Raw bytes.
    Raw,
}

/// Client timeout, much longer than any limit of the server.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(8);

/// Server timeout for an incomplete request: raw bytes are rarely complete requests, and must fail soon.
fn head_timeout(address: Address) -> Duration {
    Duration::from_millis(if address == Address::Raw { 50 } else { 1000 })
}

/// A running server and its database.
struct RunningServer {
    database: Database,
    address: SocketAddr,
    stopper: Stopper,
    thread: Option<JoinHandle<vervet::Result<()>>>,
}

impl RunningServer {
    fn start(address: Address) -> Self {
        let database = graph::database();
        let mut options = ServerOptions::default();
        options.bind = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
        let limits = oracle::options();
        options.limits.timeout = limits.timeout.expect("there is one");
        options.limits.memory_bytes = limits.memory_limit_bytes.expect("there is one");
        options.limits.threads = Some(1);
        options.limits.head_timeout = head_timeout(address);
        options.limits.body_timeout = head_timeout(address);
        let server = Server::bind(database.clone(), options).expect("it listens");
        let (address, stopper) = (server.address().expect("it has one"), server.stopper());
        let thread = Some(std::thread::spawn(move || server.run()));
        Self { database, address, stopper, thread }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.stopper.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            assert!(matches!(ended, Some(Ok(Ok(())))), "the server failed: {ended:?}");
        }
    }
}

pub(crate) fn check(address: Address, bytes: &[u8]) {
    /// One server with the limits for raw bytes, and one with the others.
    static SERVERS: [Mutex<Option<RunningServer>>; 2] = [Mutex::new(None), Mutex::new(None)];
    let Some(request) = request(address, bytes) else { return };
    // A failed case does not affect the next one, which starts a new server.
    let server = &SERVERS[usize::from(address == Address::Raw)];
    let mut running = server.lock().unwrap_or_else(PoisonError::into_inner);
    let server = running.take().unwrap_or_else(|| RunningServer::start(address));
    let before = server.database.transaction_counts();
    let begin = Instant::now();
    let answer = exchange(server.address, &request);
    // An incomplete request gets no response before the timeout; on a very busy machine a complete one may
    // not either.
    let late = begin.elapsed() >= head_timeout(address);
    check_response(&request, &answer, late || address == Address::Raw);
    if server.database.transaction_counts() == before {
        *running = Some(server);
    }
}

/// The request that `bytes` encode; `None` if they do not encode one.
fn request(address: Address, bytes: &[u8]) -> Option<Vec<u8>> {
    if address == Address::Raw {
        return Some(bytes.to_vec());
    }
    let mut lines = bytes.splitn(3, |byte| *byte == b'\n');
    let (first, second, body) = (lines.next()?, lines.next()?, lines.next()?);
    if address == Address::Store || address == Address::Api {
        let space = first.iter().position(|byte| *byte == b' ')?;
        let (method, rest) = (&first[..space], &first[space + 1..]);
        let root: &[u8] = if address == Address::Store { b"/store" } else { b"/api/" };
        return Some(whole(method, &[root, rest].concat(), b"Content-Type", second, body));
    }
    let (form, more) = first.split_first()?;
    let (path, name): (&[u8], &[u8]) =
        if address == Address::Query { (b"/query?", b"query=") } else { (b"/update?", b"update=") };
    let encoded = if form.is_ascii_uppercase() { encode(body) } else { body.to_vec() };
    let accept = [b"application/x-www-form-urlencoded\r\nAccept: ", second].concat();
    Some(match form.to_ascii_uppercase() {
        b'G' => whole(b"GET", &[path, name, &encoded, more].concat(), b"Accept", second, b""),
        b'F' => whole(b"POST", path, b"Content-Type", &accept, &[name, &encoded[..], more].concat()),
        b'D' => {
            let kind: &[u8] = if address == Address::Query { b"query" } else { b"update" };
            let accept = [b"application/sparql-", kind, b"\r\nAccept: ", second].concat();
            whole(b"POST", &[path, more].concat(), b"Content-Type", &accept, body)
        }
        _ => return None,
    })
}

fn whole(method: &[u8], path: &[u8], header: &[u8], value: &[u8], body: &[u8]) -> Vec<u8> {
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let parts: [&[u8]; 10] = [
        method,
        b" ",
        path,
        b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n",
        length.as_bytes(),
        header,
        b": ",
        value,
        b"\r\n\r\n",
        body,
    ];
    parts.concat()
}

fn encode(text: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(text.len() * 2);
    for byte in text {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => encoded.push(*byte),
            _ => encoded.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    encoded
}

/// The response until the server closes the connection; `None` if it resets the connection.
fn exchange(address: SocketAddr, request: &[u8]) -> Option<Vec<u8>> {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(CLIENT_TIMEOUT)).expect("a timeout");
    stream.set_write_timeout(Some(CLIENT_TIMEOUT)).expect("a timeout");
    // The server may respond and close before it has read everything.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => Some(answer),
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => None,
        Err(error) => panic!("no response, and no end of the connection: {error}"),
    }
}

fn check_response(request: &[u8], answer: &Option<Vec<u8>>, may_be_empty: bool) {
    let Some(answer) = answer else { return };
    let exchange_text =
        || format!("{}\n->\n{}", String::from_utf8_lossy(request), String::from_utf8_lossy(answer));
    if answer.is_empty() {
        assert!(may_be_empty, "no answer: {}", exchange_text());
        return;
    }
    let mut rest = answer.as_slice();
    let status = loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut head = httparse::Response::new(&mut headers);
        match (head.parse(rest), head.code) {
            // 100 Continue precedes the response.
            (Ok(httparse::Status::Complete(length)), Some(100)) => rest = &rest[length..],
            (Ok(httparse::Status::Complete(_)), Some(status)) => break status,
            // The announced body never arrives.
            (Ok(httparse::Status::Partial), _) if rest.is_empty() && may_be_empty => return,
            (other, _) => panic!("not an HTTP response: {other:?}: {}", exchange_text()),
        }
    };
    assert!((200..600).contains(&status) && status != 500, "status {status}: {}", exchange_text());
}
