//! HTTP client with keep-alive. It counts the lines of a response without storing them, and distinguishes a
//! truncated response from a complete one.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Socket timeout. No response takes longer unless the server hangs.
const IO_TIMEOUT: Duration = Duration::from_secs(120);

/// Bytes of a body that are stored for messages.
const KEPT_BYTES: usize = 16 << 10;

/// A keep-alive connection.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// `begin..end`: the unread bytes in `buffer`.
    begin: usize,
    end: usize,
}

/// A response.
#[derive(Debug, Default)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) retry_after: bool,
    /// The server closes the connection after this response.
    pub(crate) closes: bool,
    /// Number of line ends in the body.
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
    /// The body is complete by its `Content-Length` or its last chunk.
    pub(crate) whole: bool,
    /// The first bytes of the body, about [`KEPT_BYTES`].
    pub(crate) beginning: String,
}

impl Response {
    /// The first line of the body, for messages.
    pub(crate) fn first_line(&self) -> &str {
        self.beginning.lines().next().unwrap_or_default()
    }
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(IO_TIMEOUT))?;
        stream.set_write_timeout(Some(IO_TIMEOUT))?;
        Ok(Self { stream, buffer: vec![0; 16 << 10], begin: 0, end: 0 })
    }

    pub(crate) fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    pub(crate) fn get(&mut self, path: &str) -> io::Result<Response> {
        self.stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())?;
        self.read_response()
    }

    /// Sends a query and reads its rows as TSV.
    pub(crate) fn query(&mut self, path: &str, text: &str) -> io::Result<Response> {
        self.send(path, text)?;
        self.read_response()
    }

    /// Sends a SPARQL query, or to `/gremlin` a JSON request.
    pub(crate) fn send(&mut self, path: &str, text: &str) -> io::Result<()> {
        let (accept, content) = match path {
            "/gremlin" => ("application/json", "application/json"),
            _ => ("text/tab-separated-values", "application/sparql-query"),
        };
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\
             Content-Type: {content}\r\nContent-Length: {}\r\n\r\n{text}",
            text.len()
        );
        self.stream.write_all(request.as_bytes())
    }

    /// Reads one response. A truncated response has `whole: false`; a connection that is closed before the
    /// status line is an error.
    pub(crate) fn read_response(&mut self) -> io::Result<Response> {
        let mut response = Response::default();
        let status = self.line()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        response.status = status.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let (mut length, mut chunked) = (0, false);
        loop {
            let Some(line) = self.line()? else { return Ok(response) };
            let Some((name, value)) = line.split_once(':') else { break };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().unwrap_or(0),
                "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
                "retry-after" => response.retry_after = true,
                "connection" => response.closes = value.eq_ignore_ascii_case("close"),
                _ => {}
            }
        }
        if !chunked {
            response.whole = self.body(length, &mut response)?;
            return Ok(response);
        }
        loop {
            let Some(line) = self.line()? else { return Ok(response) };
            let Ok(length) = u64::from_str_radix(line.trim(), 16) else { return Ok(response) };
            if !self.body(length, &mut response)? || self.line()?.is_none() {
                return Ok(response);
            }
            if length == 0 {
                response.whole = true;
                return Ok(response);
            }
        }
    }

    /// Reads `length` bytes of a body; returns whether all of them arrived.
    fn body(&mut self, mut length: u64, response: &mut Response) -> io::Result<bool> {
        while length > 0 {
            if self.begin == self.end && !self.fill()? {
                return Ok(false);
            }
            let unread = &self.buffer[self.begin..self.end];
            let unread = &unread[..unread.len().min(usize::try_from(length).unwrap_or(usize::MAX))];
            response.lines += unread.iter().filter(|byte| **byte == b'\n').count() as u64;
            response.bytes += unread.len() as u64;
            if response.beginning.len() < KEPT_BYTES {
                response.beginning += &String::from_utf8_lossy(unread);
            }
            length -= unread.len() as u64;
            self.begin += unread.len();
        }
        Ok(true)
    }

    /// Reads a line without its line end; `None` at the end of the connection.
    fn line(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        loop {
            let unread = &self.buffer[self.begin..self.end];
            if let Some(at) = unread.iter().position(|byte| *byte == b'\n') {
                line.extend_from_slice(&unread[..at]);
                self.begin += at + 1;
                let line = line.strip_suffix(b"\r").unwrap_or(&line);
                return Ok(Some(String::from_utf8_lossy(line).into_owned()));
            }
            line.extend_from_slice(unread);
            self.begin = self.end;
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// Reads more bytes; returns `false` at the end of the connection. A reset counts as an end.
    fn fill(&mut self) -> io::Result<bool> {
        self.begin = 0;
        self.end = 0;
        match self.stream.read(&mut self.buffer) {
            Ok(read) => self.end = read,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
            Err(error) => return Err(error),
        }
        Ok(self.end > 0)
    }
}
