//! The beginning of a text that is being written: a maximum of lines and of bytes.

use std::io::{self, Write};

/// Collects whole lines. The write that exceeds a maximum fails, which ends the query that writes.
pub(crate) struct Excerpt {
    bytes: Vec<u8>,
    lines_left: u64,
    bytes_max: usize,
    is_cut: bool,
}

impl Excerpt {
    pub(crate) fn new(lines_max: u64, bytes_max: usize) -> Self {
        Self { bytes: Vec::new(), lines_left: lines_max, bytes_max, is_cut: false }
    }

    /// Whether something did not fit.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The text. If it was cut, it ends with the last whole line; a single line is cut in itself.
    pub(crate) fn into_text(self) -> String {
        let mut bytes = self.bytes;
        if self.is_cut {
            let end = bytes.iter().rposition(|&byte| byte == b'\n').map_or(bytes.len(), |end| end + 1);
            bytes.truncate(end);
            if let Err(error) = std::str::from_utf8(&bytes)
                && error.error_len().is_none()
            {
                // The last character was cut.
                bytes.truncate(error.valid_up_to());
            }
        }
        String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned()
    }
}

impl Write for Excerpt {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for &byte in bytes {
            if self.lines_left == 0 || self.bytes.len() >= self.bytes_max {
                self.is_cut = true;
                return Err(io::Error::other("the result is larger than its maximum"));
            }
            self.bytes.push(byte);
            self.lines_left -= u64::from(byte == b'\n');
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, lines_max: u64, bytes_max: usize) -> (String, bool) {
        let mut excerpt = Excerpt::new(lines_max, bytes_max);
        let is_whole = excerpt.write_all(text.as_bytes()).is_ok();
        assert_eq!(is_whole, !excerpt.is_cut());
        let is_cut = excerpt.is_cut();
        (excerpt.into_text(), is_cut)
    }

    #[test]
    fn only_whole_lines_remain() {
        assert_eq!(of("a\nbc\n", 2, 5), ("a\nbc".to_owned(), false));
        assert_eq!(of("a\nbc\nd\n", 2, 100), ("a\nbc".to_owned(), true));
        assert_eq!(of("a\nbcdef\n", 9, 5), ("a".to_owned(), true));
        assert_eq!(of("aäää", 9, 4), ("aä".to_owned(), true));
        assert_eq!(of("", 1, 1), (String::new(), false));
    }
}
