//! A client of updates over HTTP that costs little itself: one connection, one write and mostly one read for
//! each update. The client of the tests takes as much processor time as the server.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Most bytes of the head of an answer.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// See the header of this file. It connects on the first update.
pub(crate) struct UpdateClient {
    time_max: Duration,
    connection: Option<(String, TcpStream)>,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl UpdateClient {
    /// `time_max`: of each wait for the server.
    pub(crate) fn new(time_max: Duration) -> Self {
        Self { time_max, connection: None, request: Vec::new(), answer: Vec::new() }
    }

    /// Sends an update to a server; returns the status and the body of its answer.
    ///
    /// # Errors
    /// No answer; the update may have had an effect. The next update connects anew.
    pub(crate) fn update(&mut self, address: &str, text: &str) -> Result<(u16, String)> {
        let (same, mut stream) = match self.connection.take() {
            Some((to, stream)) if to == address => (to, stream),
            _ => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(self.time_max))?;
                (address.to_owned(), stream)
            }
        };
        self.request.clear();
        write!(
            self.request,
            "POST /update HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/sparql-update\r\nContent-Length: {}\r\n\r\n{text}",
            text.len()
        )?;
        stream.write_all(&self.request)?;
        let answer = self.read(&mut stream)?;
        self.connection = Some((same, stream));
        Ok(answer)
    }

    fn read(&mut self, stream: &mut TcpStream) -> Result<(u16, String)> {
        self.answer.clear();
        let head = loop {
            if let Some(at) = self.answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break at + 4;
            }
            if self.answer.len() > HEAD_BYTES_MAX {
                return Err(Error::new(ErrorKind::InvalidData, "the head of an answer has no end"));
            }
            self.read_some(stream)?;
        };
        let text = String::from_utf8_lossy(&self.answer[..head]).to_ascii_lowercase();
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status =
            status.ok_or_else(|| Error::new(ErrorKind::InvalidData, "an answer without a status"))?;
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        let end = head + length.unwrap_or(0_usize);
        while self.answer.len() < end {
            self.read_some(stream)?;
        }
        Ok((status, String::from_utf8_lossy(&self.answer[head..end]).into_owned()))
    }

    fn read_some(&mut self, stream: &mut TcpStream) -> Result<()> {
        let mut bytes = [0; 2 << 10];
        match stream.read(&mut bytes)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            count => {
                self.answer.extend_from_slice(&bytes[..count]);
                Ok(())
            }
        }
    }
}
