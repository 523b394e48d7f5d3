//! A reader that tracks line and column, for errors of parsers without positions.

use std::io::{self, BufRead, BufReader, Read};

/// Counts lines and columns of the consumed bytes.
pub(crate) struct Positioned {
    input: BufReader<Box<dyn Read + Send>>,
    line: u64,
    column: u64,
    /// The I/O error of a failed read; the parser may report it without details.
    failure: Option<io::Error>,
}

impl Positioned {
    pub(crate) fn new(input: Box<dyn Read + Send>) -> Self {
        Self { input: BufReader::with_capacity(1 << 16, input), line: 0, column: 0, failure: None }
    }

    /// Number of lines before the current one.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// Number of characters since the last line end.
    pub(crate) fn column(&self) -> u64 {
        self.column
    }

    /// The I/O error of a failed read, if any.
    pub(crate) fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }
}

impl Read for Positioned {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let length = available.len().min(buffer.len());
        buffer[..length].copy_from_slice(&available[..length]);
        self.consume(length);
        Ok(length)
    }
}

impl BufRead for Positioned {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        loop {
            match self.input.fill_buf() {
                Ok(_) => return Ok(self.input.buffer()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failure = Some(io::Error::new(error.kind(), error.to_string()));
                    return Err(error);
                }
            }
        }
    }

    fn consume(&mut self, length: usize) {
        let consumed = &self.input.buffer()[..length];
        let characters = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() as u64;
        match memchr::memrchr(b'\n', consumed) {
            Some(end) => {
                self.line += memchr::memchr_iter(b'\n', consumed).count() as u64;
                self.column = characters(&consumed[end + 1..]);
            }
            None => self.column += characters(consumed),
        }
        self.input.consume(length);
    }
}
