//! A client that keeps its connection, counts the rows of an answer without keeping them, and knows a broken
//! answer from a whole one.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// No answer takes longer, or the server hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// How much of a body is kept, for messages.
const KEPT_BYTES: usize = 16 << 10;

/// A connection that can be used again.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// What of `buffer` holds bytes that were not looked at.
    begin: usize,
    end: usize,
}

/// An answer.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) retry_after: bool,
    /// The server closes the connection after it.
    pub(crate) closes: bool,
    /// Ends of lines in the body.
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
    /// It ended as its length or its last chunk says.
    pub(crate) whole: bool,
    /// The first 16 KiB or so of the body.
    pub(crate) beginning: String,
}

impl Answer {
    /// Its first line, for messages.
    pub(crate) fn first_line(&self) -> &str {
        self.beginning.lines().next().unwrap_or_default()
    }
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, buffer: vec![0; 16 << 10], begin: 0, end: 0 })
    }

    pub(crate) fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    pub(crate) fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())?;
        self.answer()
    }

    /// Sends a query and reads its rows as TSV.
    pub(crate) fn query(&mut self, path: &str, text: &str) -> io::Result<Answer> {
        self.send(path, text)?;
        self.answer()
    }

    /// Sends a query; to `/gremlin`, the JSON that holds one.
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

    /// Reads one answer. An answer that ends too early is one that is not whole; no answer at all is an
    /// error.
    pub(crate) fn answer(&mut self) -> io::Result<Answer> {
        let mut answer = Answer::default();
        let status = self.line()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        answer.status = status.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let (mut length, mut chunked) = (0, false);
        loop {
            let Some(line) = self.line()? else { return Ok(answer) };
            let Some((name, value)) = line.split_once(':') else { break };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().unwrap_or(0),
                "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
                "retry-after" => answer.retry_after = true,
                "connection" => answer.closes = value.eq_ignore_ascii_case("close"),
                _ => {}
            }
        }
        if !chunked {
            answer.whole = self.body(length, &mut answer)?;
            return Ok(answer);
        }
        loop {
            let Some(line) = self.line()? else { return Ok(answer) };
            let Ok(length) = u64::from_str_radix(line.trim(), 16) else { return Ok(answer) };
            if !self.body(length, &mut answer)? || self.line()?.is_none() {
                return Ok(answer);
            }
            if length == 0 {
                answer.whole = true;
                return Ok(answer);
            }
        }
    }

    /// Reads `length` bytes of a body; whether they were there.
    fn body(&mut self, mut length: u64, answer: &mut Answer) -> io::Result<bool> {
        while length > 0 {
            if self.begin == self.end && !self.fill()? {
                return Ok(false);
            }
            let there = &self.buffer[self.begin..self.end];
            let there = &there[..there.len().min(usize::try_from(length).unwrap_or(usize::MAX))];
            answer.lines += there.iter().filter(|byte| **byte == b'\n').count() as u64;
            answer.bytes += there.len() as u64;
            if answer.beginning.len() < KEPT_BYTES {
                answer.beginning += &String::from_utf8_lossy(there);
            }
            length -= there.len() as u64;
            self.begin += there.len();
        }
        Ok(true)
    }

    /// A line without its end; `None` at the end of the connection.
    fn line(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        loop {
            let there = &self.buffer[self.begin..self.end];
            if let Some(at) = there.iter().position(|byte| *byte == b'\n') {
                line.extend_from_slice(&there[..at]);
                self.begin += at + 1;
                let line = line.strip_suffix(b"\r").unwrap_or(&line);
                return Ok(Some(String::from_utf8_lossy(line).into_owned()));
            }
            line.extend_from_slice(there);
            self.begin = self.end;
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// Gets more bytes; false at the end. A connection that is reset ends as one that is closed does.
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
