//! Detection of quotes that are not closed, in a table on its way to the CSV parser.
//!
//! The parser accepts a quote that is never closed, and text after a closing quote: one forgotten quote
//! swallows rows, up to the next quote or the end of the file, without an error. [`QuoteGuard`] follows the
//! quoting and fails where a quoted field has swallowed rows: it contains a line break, and the file ends in
//! it or text follows its closing quote.
//! # Cost
//! One pass with `memchr` over the bytes between separators.
//! # Not here
//! Text after a closing quote within a line, which the parser appends to the field.

use std::fmt;
use std::io::{self, Read};

/// A quoted field that is not closed where it should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct UnclosedQuote {
    /// Line in which the field begins, from 1.
    pub(crate) line: u64,
}

impl fmt::Display for UnclosedQuote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the quoted field that begins in line {} is not closed", self.line)
    }
}

impl std::error::Error for UnclosedQuote {}

#[derive(Clone, Copy, Debug)]
enum State {
    FieldStart,
    Unquoted,
    /// In quotes; the line of the opening quote.
    Quoted(u64),
    /// Behind a quote within quotes: the end of the field, or the first of two.
    Quote(u64),
}

/// See the header of this file.
pub(crate) struct QuoteGuard<R> {
    inner: R,
    quote: u8,
    separator: u8,
    state: State,
    line: u64,
}

impl<R: Read> QuoteGuard<R> {
    pub(crate) fn new(inner: R, quote: u8, separator: u8) -> Self {
        Self { inner, quote, separator, state: State::FieldStart, line: 1 }
    }

    fn follow(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            let skipped = match self.state {
                State::Unquoted => memchr::memchr3(self.separator, b'\n', b'\r', rest),
                State::Quoted(_) => memchr::memchr2(self.quote, b'\n', rest),
                State::FieldStart | State::Quote(_) => Some(0),
            };
            match skipped {
                None => return Ok(()),
                Some(0) => {
                    self.step(byte)?;
                    rest = after;
                }
                Some(count) => rest = &rest[count..],
            }
        }
        Ok(())
    }

    fn step(&mut self, byte: u8) -> io::Result<()> {
        let ends = byte == self.separator || byte == b'\n' || byte == b'\r';
        self.state = match self.state {
            State::FieldStart if byte == self.quote => State::Quoted(self.line),
            State::Quoted(begin) if byte == self.quote => State::Quote(begin),
            State::Quoted(begin) => State::Quoted(begin),
            State::Quote(begin) if byte == self.quote => State::Quoted(begin),
            State::Quote(begin) if !ends && begin < self.line => return Err(unclosed(begin)),
            _ if ends => State::FieldStart,
            _ => State::Unquoted,
        };
        self.line += u64::from(byte == b'\n');
        Ok(())
    }
}

fn unclosed(line: u64) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, UnclosedQuote { line })
}

impl<R: Read> Read for QuoteGuard<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        if count == 0 && !buffer.is_empty() {
            return match self.state {
                State::Quoted(line) => Err(unclosed(line)),
                _ => Ok(0),
            };
        }
        self.follow(&buffer[..count])?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line of the field that is not closed, for every size of reads.
    fn check(text: &str, expected: Option<u64>) {
        for size in [1, 2, 3, 7, 1 << 10] {
            let mut guard = QuoteGuard::new(text.as_bytes(), b'"', b',');
            let mut buffer = vec![0; size];
            let found = loop {
                match guard.read(&mut buffer) {
                    Ok(0) => break None,
                    Ok(_) => {}
                    Err(error) => {
                        let unclosed =
                            error.get_ref().and_then(|error| error.downcast_ref::<UnclosedQuote>());
                        break Some(unclosed.expect("no other error").line);
                    }
                }
            };
            assert_eq!(found, expected, "{text:?} in pieces of {size}");
        }
    }

    #[test]
    fn quotes_that_swallow_rows_are_errors() {
        check("id,name\n1,\"Ann\"\n2,\"B \"\"x\"\" y\"\n", None);
        check("id,name\n1,\"two\nlines\"\n2,Eve", None);
        check("id,name\r\n1,\"two\r\nlines\"\r\n", None);
        check("1,a \"quoted\" word\n2,5\" pipe\n", None);
        check("1,\"\"\n2,\"\"\"\"\n3,\"", Some(3));
        check("1,\"Bo\"b\"\n2,x\n", None);
        check("id,name\n1,Ann\n2,\"Bob\n3,Eve\n4,\"Dan\n5,Flo\n", Some(3));
        check("1,\"Zoe\n2,Max\n", Some(1));
    }
}
