//! The header of a table that is appended to a file: it is written only if the previous table of the file had
//! another one, so that equal queries fill one table.

use std::sync::{Arc, Mutex, PoisonError};

/// The header of the last table of a file; empty: the file ends with something else.
pub(crate) type LastHeader = Arc<Mutex<Vec<u8>>>;

/// Separates the header of one result from its rows.
pub(crate) struct RepeatedHeader {
    last: LastHeader,
    state: State,
}

enum State {
    /// Nothing was written yet, and the result has no header.
    Headless,
    /// The header as far as it was written, and whether it may have line ends between quotes.
    Header(Vec<u8>, bool),
    Rows,
}

impl RepeatedHeader {
    /// A result without a header, unless [`RepeatedHeader::expect`] follows.
    pub(crate) fn new(last: LastHeader) -> Self {
        Self { last, state: State::Headless }
    }

    /// The result begins with a header.
    pub(crate) fn expect(&mut self, has_quotes: bool) {
        self.state = State::Header(Vec::new(), has_quotes);
    }

    /// Takes the part of `bytes` that belongs to the header. Returns its length, and the complete header if
    /// it is to be written.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> (usize, Option<Vec<u8>>) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut self.state {
            State::Rows => (0, None),
            State::Headless => {
                last.clear();
                self.state = State::Rows;
                (0, None)
            }
            State::Header(header, has_quotes) => {
                let quotes = header.iter().filter(|&&byte| byte == b'"').count();
                let mut is_quoted = *has_quotes && quotes % 2 == 1;
                let end = bytes.iter().position(|&byte| {
                    is_quoted ^= *has_quotes && byte == b'"';
                    byte == b'\n' && !is_quoted
                });
                let length = end.map_or(bytes.len(), |end| end + 1);
                header.extend_from_slice(&bytes[..length]);
                if end.is_none() {
                    return (length, None);
                }
                let header = std::mem::take(header);
                self.state = State::Rows;
                if header == *last {
                    return (length, None);
                }
                last.clone_from(&header);
                (length, Some(header))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a file has after these tables, written in pieces of every size.
    fn check(tables: &[&str], expect: &str) {
        for size in 1..20 {
            let last = LastHeader::default();
            let mut file = Vec::new();
            for table in tables {
                let mut header = RepeatedHeader::new(Arc::clone(&last));
                if !table.starts_with('{') {
                    header.expect(true);
                }
                for mut piece in table.as_bytes().chunks(size) {
                    loop {
                        let (length, line) = header.take(piece);
                        file.extend(line.unwrap_or_default());
                        piece = &piece[length..];
                        if length == 0 || piece.is_empty() {
                            break;
                        }
                    }
                    file.extend_from_slice(piece);
                }
            }
            assert_eq!(String::from_utf8(file).unwrap(), expect, "pieces of {size}");
        }
    }

    #[test]
    fn only_another_header_is_written() {
        check(&["a,b\n1,2\n", "a,b\n3,4\n", "a,b\n"], "a,b\n1,2\n3,4\n");
        check(&["a\n1\n", "b\n2\n", "a\n3\n"], "a\n1\nb\n2\na\n3\n");
        check(&["a\n1\n", "{}\n", "a\n3\n"], "a\n1\n{}\na\n3\n");
        check(&["\"x\ny\"\n1\n", "\"x\ny\"\n2\n"], "\"x\ny\"\n1\n2\n");
    }
}
