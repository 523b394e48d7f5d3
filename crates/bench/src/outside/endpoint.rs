//! A peer in another process: a SPARQL endpoint that already has the data.
//!
//! # Shape
//! One HTTP/1.1 connection for each query, `POST` with the query as a form field; a `SELECT` asks for TSV, an
//! `ASK` for JSON, other forms for N-Triples. The whole body is read into the sink. So times include HTTP,
//! which our engine does not pay here: those of the wall clock, or the CPU time of the process if its id is
//! known.
//! # Not here
//! TLS, redirects, authentication: the endpoint runs on this machine.

use crate::engine::{Engine, Sink};
use crate::measure::CpuClock;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;
use vervet_model::{Error, ErrorKind, Result};

/// A SPARQL endpoint.
#[derive(Debug)]
pub struct Endpoint {
    name: String,
    /// `HOST:PORT`.
    address: String,
    path: String,
    process: Option<u32>,
    writes_terms: bool,
    limit: Option<Duration>,
}

impl Endpoint {
    /// The endpoint at `url`, `http://HOST:PORT/PATH`, or `http://HOST:PORT/PATH#ID` with the id of its
    /// process.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for another form of URL.
    pub fn new(name: &str, url: &str) -> Result<Self> {
        let (address, process) = match url.split_once('#') {
            Some((address, id)) => (address, id.parse().ok()),
            None => (url, None),
        };
        let rest = address.strip_prefix("http://");
        let Some(rest) = rest.filter(|rest| !rest.is_empty() && process.is_some() == url.contains('#'))
        else {
            let what = format!("{url} is neither http://HOST:PORT/PATH nor http://HOST:PORT/PATH#PROCESS");
            return Err(Error::new(ErrorKind::Input, what));
        };
        let (host, path) = rest.split_once('/').unwrap_or((rest, "sparql"));
        let address = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
        Ok(Self {
            name: name.to_owned(),
            address,
            path: format!("/{path}"),
            process,
            writes_terms: true,
            limit: None,
        })
    }

    /// Sends a query and passes the body to `sink`; returns the number of lines.
    fn request(&self, text: &str, accept: &str, sink: &mut dyn Write) -> io::Result<u64> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(self.limit)?;
        let body = format!("query={}", form_encoded(text));
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nAccept: {accept}\r\nConnection: close\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n",
            self.path,
            self.address,
            body.len()
        );
        (&stream).write_all(head.as_bytes())?;
        (&stream).write_all(body.as_bytes())?;
        read_response(BufReader::new(stream), sink)
    }
}

impl Engine for Endpoint {
    fn name(&self) -> &str {
        &self.name
    }

    /// Only counts the statements: the endpoint has the data.
    fn load(&mut self, _file: &Path) -> Result<u64> {
        let mut sink = Sink::keeping();
        self.query_tsv("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", &mut sink)?;
        // Headings of SPARQL 1.1 TSV are variables. Virtuoso writes names, and the terms as texts.
        let mut text = sink.into_text();
        self.writes_terms = text.starts_with('?');
        text.retain(|c| c != '"');
        let number = text.lines().nth(1).and_then(|line| line.split('^').next()?.trim().parse().ok());
        number.ok_or_else(|| Error::new(ErrorKind::Input, format!("{}: no count in {text:?}", self.name)))
    }

    fn query_tsv(&self, text: &str, sink: &mut Sink) -> Result<u64> {
        let form = form(text);
        let accept = match form {
            "SELECT" => "text/tab-separated-values",
            "ASK" => "application/sparql-results+json",
            _ => "application/n-triples",
        };
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                Error::new(ErrorKind::Deadline, format!("{}: the time limit has passed", self.name))
            }
            _ => Error::io(format_args!("query {}", self.name), &error),
        };
        if form != "ASK" {
            let lines = self.request(text, accept, sink).map_err(failed)?;
            return Ok(if form == "SELECT" { lines.saturating_sub(1) } else { lines });
        }
        let mut json = Vec::new();
        self.request(text, accept, &mut json).map_err(failed)?;
        let value: serde_json::Value = serde_json::from_slice(&json)
            .map_err(|error| Error::new(ErrorKind::Input, format!("{}: {error}", self.name)))?;
        // Virtuoso answers with a row.
        let row = &value["results"]["bindings"][0]["__ASK_RETVAL"]["value"];
        let value = value["boolean"].as_bool().unwrap_or(*row == "1");
        writeln!(sink, "{value}").map_err(failed)?;
        Ok(1)
    }

    fn query_rows(&self, text: &str) -> Result<u64> {
        self.query_tsv(text, &mut Sink::counting())
    }

    fn writes_terms(&self) -> bool {
        self.writes_terms
    }

    fn cpu_clock(&self) -> Option<CpuClock> {
        self.process.map(CpuClock::Process)
    }

    fn set_time_limit(&mut self, limit: Option<Duration>) {
        self.limit = limit;
    }
}

/// The query form: the first keyword after prefixes and comments.
fn form(text: &str) -> &'static str {
    const FORMS: [&str; 4] = ["SELECT", "ASK", "CONSTRUCT", "DESCRIBE"];
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words
        .filter_map(|word| FORMS.into_iter().find(|form| word.eq_ignore_ascii_case(form)))
        .next()
        .unwrap_or("SELECT")
}

fn form_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Passes the body of a response to `sink`; returns its number of lines.
fn read_response(mut stream: impl BufRead, sink: &mut dyn Write) -> io::Result<u64> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let status = line.trim().to_owned();
    let (mut length, mut is_chunked) = (None, false);
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        let header = line.trim().to_ascii_lowercase();
        match header.split_once(':') {
            None => break,
            Some(("content-length", value)) => length = value.trim().parse::<u64>().ok(),
            Some(("transfer-encoding", value)) => is_chunked = value.contains("chunked"),
            Some(_) => {}
        }
    }
    let mut lines = LineCounter { inner: sink, lines: 0 };
    if !status.split(' ').nth(1).is_some_and(|code| code.starts_with('2')) {
        let mut text = String::new();
        stream.take(300).read_to_string(&mut text).unwrap_or_default();
        return Err(io::Error::other(format!("{status}: {}", text.trim())));
    }
    if !is_chunked {
        io::copy(&mut stream.take(length.unwrap_or(u64::MAX)), &mut lines)?;
        return Ok(lines.lines);
    }
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        let digits = line.trim().split(';').next().unwrap_or_default();
        let size = u64::from_str_radix(digits, 16).map_err(io::Error::other)?;
        if size == 0 {
            return Ok(lines.lines);
        }
        io::copy(&mut stream.by_ref().take(size), &mut lines)?;
        line.clear();
        stream.read_line(&mut line)?;
    }
}

struct LineCounter<'w> {
    inner: &'w mut dyn Write,
    lines: u64,
}

impl Write for LineCounter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.iter().filter(|&&byte| byte == b'\n').count();
        self.lines += count as u64;
        self.inner.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// An endpoint that answers one request with these bytes; returns its URL.
    fn serve(response: &'static str) -> (String, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/query", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let mut text = String::new();
            while !text.contains("query=") {
                let read = stream.read(&mut request).unwrap();
                text.push_str(&String::from_utf8_lossy(&request[..read]));
            }
            stream.write_all(response.as_bytes()).unwrap();
            text
        });
        (url, server)
    }

    #[test]
    fn answers_are_read_with_and_without_chunks() {
        let (url, server) = serve(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n?x\n<a\r\n5;x=y\r\n>\n<b>\r\n1\r\n\n\r\n0\r\n\r\n",
        );
        let mut sink = Sink::keeping();
        let endpoint = Endpoint::new("peer", &url).unwrap();
        assert_eq!(endpoint.query_tsv("SELECT ?x { ?x ?p 1 }", &mut sink).unwrap(), 2);
        assert_eq!(sink.into_text(), "?x\n<a>\n<b>\n");
        let request = server.join().unwrap();
        assert!(
            request.starts_with("POST /query HTTP/1.1\r\n") && request.contains("tab-separated"),
            "{request}"
        );
        assert!(request.ends_with("query=SELECT%20%3Fx%20%7B%20%3Fx%20%3Fp%201%20%7D"), "{request}");

        let (url, server) = serve("HTTP/1.1 200 OK\r\nContent-Length: 19\r\n\r\n{ \"boolean\": true }");
        let mut sink = Sink::keeping();
        Endpoint::new("peer", &url).unwrap().query_tsv("ask { ?x ?p 1 }", &mut sink).unwrap();
        assert_eq!(sink.into_text(), "true\n");
        server.join().unwrap();
        let (url, server) = serve("HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno");
        let error = Endpoint::new("peer", &url).unwrap().query_rows("SELECT").unwrap_err();
        assert!(error.to_string().contains("400 Bad Request: no"), "{error}");
        server.join().unwrap();
        for wrong in ["ftp://x", "http://", "http://x#", "http://x/#y"] {
            assert!(Endpoint::new("peer", wrong).is_err(), "{wrong}");
        }
        let peer = Endpoint::new("peer", "http://localhost:1/sparql#17").unwrap();
        assert_eq!(peer.cpu_clock(), Some(CpuClock::Process(17)));
        assert_eq!((peer.address.as_str(), peer.path.as_str()), ("localhost:1", "/sparql"));
    }
}
