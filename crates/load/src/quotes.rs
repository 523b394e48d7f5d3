//! Rows of a table on their way to the CSV parser: their lines, and faults of their quotes.
//!
//! The parser does not tell the line of a row: it does not count blank lines, and with CRLF its lines are one
//! too small. It also accepts a quote that is never closed, and text after a closing quote. [`QuoteGuard`]
//! follows rows and quotes, and records each row in [`Rows`]. It fails where a quoted field has swallowed
//! rows: the field contains a line break, and the file ends in it or text follows its closing quote.
//! # Invariants
//! The guard and the parser find the same rows: rows end at LF, CR or CRLF outside quotes, and blank lines
//! are no rows.
//! # Cost
//! One pass with `memchr` over the bytes between separators, and 24 bytes for each row in the buffer of the
//! parser.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

/// Hint for a file with a wrong quote.
pub(crate) const QUOTE_HINT: &str = "write quotes inside a quoted field twice (\"Bo\"\"b\"), or load with a mapping that has \
                                     quote = \"\", which makes quotes ordinary characters";

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

/// A row that the guard has passed to the parser.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    /// The line in which the row begins, from 1. A line ends at LF, CR or CRLF.
    pub(crate) line: u64,
    /// The first field, from 1, with text after its closing quote.
    pub(crate) misquoted: Option<u32>,
}

/// The rows that the parser has not returned yet, in order.
#[derive(Clone, Default)]
pub(crate) struct Rows(Arc<Mutex<VecDeque<Row>>>);

impl Rows {
    /// Removes the next row.
    pub(crate) fn next(&self) -> Option<Row> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// The next row, which remains.
    pub(crate) fn peek(&self) -> Option<Row> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).front().copied()
    }
}

/// The quoting of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Quoting {
    /// `None`: quotes are ordinary characters.
    pub(crate) quote: Option<u8>,
    /// The character before a quote in a quoted field; `None`: a quote is written twice.
    pub(crate) escape: Option<u8>,
    pub(crate) separator: u8,
}

#[derive(Clone, Copy, Debug)]
enum State {
    RowStart,
    FieldStart,
    Unquoted,
    /// In quotes; the line of the opening quote.
    Quoted(u64),
    /// Behind the escape character in quotes.
    Escaped(u64),
    /// Behind a quote within quotes: the end of the field, or the first of two.
    Quote(u64),
}

/// See the header of this file.
pub(crate) struct QuoteGuard<R> {
    inner: R,
    quoting: Quoting,
    rows: Rows,
    state: State,
    line: u64,
    /// Number of separators before the current field in its row.
    field: u32,
    /// Whether the last byte was CR, whose line break includes a following LF.
    is_behind_cr: bool,
}

impl<R: Read> QuoteGuard<R> {
    pub(crate) fn new(inner: R, quoting: Quoting) -> Self {
        Self {
            inner,
            quoting,
            rows: Rows::default(),
            state: State::RowStart,
            line: 1,
            field: 0,
            is_behind_cr: false,
        }
    }

    /// The rows that this guard records.
    pub(crate) fn rows(&self) -> Rows {
        self.rows.clone()
    }

    fn follow(&mut self, bytes: &[u8]) -> io::Result<()> {
        let rows = self.rows.clone();
        let mut rows = rows.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Quoting { quote, escape, separator } = self.quoting;
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            let skipped = match self.state {
                // Without quotes the fields of a row need not be followed.
                State::FieldStart | State::Unquoted if quote.is_none() => memchr::memchr2(b'\n', b'\r', rest),
                State::Unquoted => memchr::memchr3(separator, b'\n', b'\r', rest),
                State::Quoted(_) if escape.is_none() && !self.is_behind_cr => {
                    memchr::memchr3(quote.unwrap_or(b'\n'), b'\n', b'\r', rest)
                }
                _ => Some(0),
            };
            match skipped {
                None => return Ok(()),
                Some(0) => {
                    self.step(byte, &mut rows)?;
                    rest = after;
                }
                Some(count) => rest = &rest[count..],
            }
        }
        Ok(())
    }

    fn step(&mut self, byte: u8, rows: &mut VecDeque<Row>) -> io::Result<()> {
        let is_break = byte == b'\n' || byte == b'\r';
        let is_quote = self.quoting.quote == Some(byte);
        let is_separator = byte == self.quoting.separator;
        if matches!(self.state, State::RowStart) && !is_break {
            rows.push_back(Row { line: self.line, misquoted: None });
            self.state = State::FieldStart;
            self.field = 0;
        }
        self.state = match self.state {
            State::FieldStart if is_quote => State::Quoted(self.line),
            State::Quoted(begin) if self.quoting.escape == Some(byte) => State::Escaped(begin),
            State::Quoted(begin) if is_quote => State::Quote(begin),
            State::Quoted(begin) | State::Escaped(begin) => State::Quoted(begin),
            State::Quote(begin) if is_quote && self.quoting.escape.is_none() => State::Quoted(begin),
            State::Quote(begin) if !is_break && !is_separator => {
                if begin < self.line {
                    return Err(unclosed(begin));
                }
                if let Some(row) = rows.back_mut() {
                    row.misquoted.get_or_insert(self.field + 1);
                }
                State::Unquoted
            }
            _ if is_break => State::RowStart,
            _ if is_separator => {
                self.field = self.field.saturating_add(1);
                State::FieldStart
            }
            _ => State::Unquoted,
        };
        self.line += u64::from(is_break && !(byte == b'\n' && self.is_behind_cr));
        self.is_behind_cr = byte == b'\r';
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
                State::Quoted(line) | State::Escaped(line) => Err(unclosed(line)),
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

    const COMMAS: Quoting = Quoting { quote: Some(b'"'), escape: None, separator: b',' };

    /// The rows, or the line of the field that is not closed, for every size of reads.
    fn check(text: &str, quoting: Quoting, expected: Result<&[(u64, Option<u32>)], u64>) {
        for size in [1, 2, 3, 7, 1 << 10] {
            let mut guard = QuoteGuard::new(text.as_bytes(), quoting);
            let mut buffer = vec![0; size];
            let found = loop {
                match guard.read(&mut buffer) {
                    Ok(0) => break Ok(()),
                    Ok(_) => {}
                    Err(error) => {
                        let unclosed =
                            error.get_ref().and_then(|error| error.downcast_ref::<UnclosedQuote>());
                        break Err(unclosed.expect("no other error").line);
                    }
                }
            };
            let rows = std::iter::from_fn(|| guard.rows().next()).map(|row| (row.line, row.misquoted));
            let rows: Vec<_> = rows.collect();
            assert_eq!(found.map(|()| rows.as_slice()), expected, "{text:?} in pieces of {size}");
        }
    }

    #[test]
    fn quotes_that_swallow_rows_are_errors() {
        check("id,name\n1,\"Ann\"\n2,\"B \"\"x\"\" y\"\n", COMMAS, Ok(&[(1, None), (2, None), (3, None)]));
        check("id,name\n1,\"two\nlines\"\n2,Eve", COMMAS, Ok(&[(1, None), (2, None), (4, None)]));
        check("1,a \"quoted\" word\n2,5\" pipe\n", COMMAS, Ok(&[(1, None), (2, None)]));
        check("1,\"\"\n2,\"\"\"\"\n3,\"", COMMAS, Err(3));
        check("id,name\n1,Ann\n2,\"Bob\n3,Eve\n4,\"Dan\n5,Flo\n", COMMAS, Err(3));
        check("1,\"Zoe\n2,Max\n", COMMAS, Err(1));
    }

    #[test]
    fn lines_are_those_of_an_editor() {
        let rows: &[(u64, Option<u32>)] = &[(1, None), (2, None), (4, None)];
        check("id,name\r\n1,\"two\r\nlines\"\r\n2,x\r\n", COMMAS, Ok(rows));
        check("id,name\r1,a\r\r2,b", COMMAS, Ok(rows));
        check("\n\nid\n\r\n\n1\n", COMMAS, Ok(&[(3, None), (6, None)]));
        let plain = Quoting { quote: None, ..COMMAS };
        check("id,name\r\n1,\"two\r\n\r\n2,lines\"\r\n", plain, Ok(rows));
    }

    #[test]
    fn text_behind_a_closing_quote_is_found() {
        check("1,\"Bo\"b\"\n2,x\n", COMMAS, Ok(&[(1, Some(2)), (2, None)]));
        check("a,b\n\"1\" ,\"x\"y\n", COMMAS, Ok(&[(1, None), (2, Some(1))]));
        let escaped = Quoting { escape: Some(b'\\'), ..COMMAS };
        check("1,\"Bo\\\"b\\\\\"\n2,x\n", escaped, Ok(&[(1, None), (2, None)]));
        check("1,\"Bo\"\"b\"\n", escaped, Ok(&[(1, Some(2))]));
    }
}
