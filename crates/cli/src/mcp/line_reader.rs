//! Lines of bounded length. A line that is too long is skipped without being held.

use std::io::{self, BufRead};

/// A line without its end.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Line {
    Complete(Vec<u8>),
    /// Longer than the maximum; the reader has skipped it.
    TooLong,
}

pub(crate) struct LineReader<R> {
    input: R,
    bytes_max: usize,
}

impl<R: BufRead> LineReader<R> {
    pub(crate) fn new(input: R, bytes_max: usize) -> Self {
        Self { input, bytes_max }
    }

    /// The next line; `None` at the end of the input. The last line needs no line end.
    ///
    /// # Errors
    /// Those of the input.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        let (mut has_bytes, mut is_too_long) = (false, false);
        loop {
            let available = match self.input.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let end = available.iter().position(|&byte| byte == b'\n');
            let part = &available[..end.unwrap_or(available.len())];
            is_too_long |= line.len() + part.len() > self.bytes_max;
            if is_too_long {
                line = Vec::new();
            } else {
                line.extend_from_slice(part);
            }
            has_bytes |= !available.is_empty();
            let is_last = available.is_empty();
            let length = part.len() + usize::from(end.is_some());
            self.input.consume(length);
            if end.is_some() || is_last {
                return Ok(has_bytes.then_some(if is_too_long {
                    Line::TooLong
                } else {
                    Line::Complete(line)
                }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str, buffer: usize, bytes_max: usize) -> Vec<Line> {
        let mut reader = LineReader::new(io::BufReader::with_capacity(buffer, text.as_bytes()), bytes_max);
        std::iter::from_fn(|| reader.next().expect("a slice has no errors")).collect()
    }

    #[test]
    fn long_lines_are_skipped_and_the_next_one_is_whole() {
        let line = |text: &str| Line::Complete(text.as_bytes().to_vec());
        for buffer in [1, 3, 100] {
            assert_eq!(
                all("abcd\n\nabcde\nxy\nabcdefghijkl\nz", buffer, 4),
                [line("abcd"), line(""), Line::TooLong, line("xy"), Line::TooLong, line("z")]
            );
            assert_eq!(all("", buffer, 4), []);
            assert_eq!(all("abcde", buffer, 4), [Line::TooLong]);
        }
    }
}
