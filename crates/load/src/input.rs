//! Splits a stream into blocks of whole lines.

use crate::source::{read_error, read_full};
use std::io::Read;
use vervet_model::{Error, ErrorKind, Result};

use crate::block::TEXT_BYTES_MAX;

/// Bytes per read: large enough that a block numbers most repeated terms once, small enough that the block
/// and its index stay in the second-level cache. Other sizes have not been measured.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;

/// Maximum length of a line, in bytes.
pub(crate) const LINE_BYTES_MAX: usize = TEXT_BYTES_MAX / 4;

/// A stream, and the incomplete last line of the previous block.
pub(crate) struct LineBlocks {
    name: String,
    input: Box<dyn Read + Send>,
    rest: Vec<u8>,
    block_bytes: usize,
    ended: bool,
    /// Number of blocks returned so far.
    count: u64,
}

impl LineBlocks {
    pub(crate) fn new(name: &str, input: Box<dyn Read + Send>, block_bytes: usize) -> Self {
        Self { name: name.to_owned(), input, rest: Vec::new(), block_bytes, ended: false, count: 0 }
    }

    /// Overwrites `text` with the next whole lines and returns the number of this block; `None` at the end.
    ///
    /// The old contents of `text` are irrelevant, but are not cleared first: bytes to be overwritten need not
    /// be zeroed for each block.
    pub(crate) fn next(&mut self, text: &mut Vec<u8>) -> Result<Option<u64>> {
        if self.ended {
            return Ok(None);
        }
        let mut filled = self.rest.len();
        text.resize(text.len().max(filled), 0);
        text[..filled].copy_from_slice(&self.rest);
        loop {
            let start = filled;
            text.resize(text.len().max(start + self.block_bytes), 0);
            let buffer = &mut text[start..start + self.block_bytes];
            let read = read_full(&mut *self.input, buffer).map_err(|error| {
                self.ended = true;
                read_error(&self.name, &error)
            })?;
            filled += read;
            if read < self.block_bytes {
                self.ended = true;
                break;
            }
            if let Some(end) = memchr::memrchr(b'\n', &text[start..filled]) {
                self.rest.clear();
                self.rest.extend_from_slice(&text[start + end + 1..filled]);
                filled = start + end + 1;
                break;
            }
            if filled > LINE_BYTES_MAX {
                self.ended = true;
                let message = format!("{}: a line is longer than {LINE_BYTES_MAX} bytes", self.name);
                return Err(Error::new(ErrorKind::Input, message).with_hint("is this a text file?"));
            }
        }
        text.truncate(filled);
        if filled == 0 {
            return Ok(None);
        }
        self.count += 1;
        Ok(Some(self.count - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_end_at_line_ends_and_are_complete() {
        for text in ["", "a", "a\n", "aaaa\nbb\n\nccccccccccccccc\nd", "\n\n\n"] {
            for block_bytes in 1..9 {
                let mut blocks = LineBlocks::new("x", Box::new(text.as_bytes()), block_bytes);
                let (mut all, mut block) = (Vec::new(), Vec::new());
                while blocks.next(&mut block).unwrap().is_some() {
                    assert!(all.is_empty() || all.ends_with(b"\n"));
                    all.extend_from_slice(&block);
                }
                assert_eq!(all, text.as_bytes());
            }
        }
    }
}
