//! Sequential reader of one log file.
//!
//! It reads the file instead of mapping it: an unreadable sector is then an error, where an access to a map
//! would end the process (SIGBUS). A log file also grows while other processes read it.
//!
//! # Cost
//! A copy of the bytes read, [`CHUNK_BYTES`] at a time; memory holds at most the longest frame.

use crate::LogId;
use crate::frame::{self, Frame, HEAD_BYTES, MARK_BYTES};
use std::io::{self, Read};
use std::path::Path;
use vervet_env::Environment;

/// Minimum number of bytes of one read.
const CHUNK_BYTES: usize = 256 << 10;

/// Maximum payload that [`Stream::count_records`] accepts: bytes between frames, taken for lengths, would
/// make it hash too much.
const FOUND_PAYLOAD_MAX: usize = 16 << 20;

/// See the header of this file.
pub(crate) struct Stream {
    file: Box<dyn Read + Send>,
    /// Bytes read; those before `at` are consumed.
    buffer: Vec<u8>,
    at: usize,
    /// Number of bytes that may still be read.
    limit: u64,
    ended: bool,
}

impl Stream {
    /// Opens a file at `offset`, for at most `limit` bytes.
    pub(crate) fn open(environment: &Environment, path: &Path, offset: u64, limit: u64) -> io::Result<Self> {
        let file = environment.files.open_at(path, offset)?;
        Ok(Self { file, buffer: Vec::new(), at: 0, limit, ended: false })
    }

    /// At least `wanted` bytes from the current position; fewer only if the file ends before. An end is
    /// final, even if the file grows.
    pub(crate) fn peek(&mut self, wanted: usize) -> io::Result<&[u8]> {
        while self.buffer.len() - self.at < wanted && !self.ended {
            if self.at > self.buffer.len() / 2 {
                self.buffer.drain(..self.at);
                self.at = 0;
            }
            let length = self.buffer.len();
            let chunk = usize::try_from(self.limit).unwrap_or(usize::MAX).min(CHUNK_BYTES);
            self.buffer.resize(length + chunk, 0);
            let read = loop {
                match self.file.read(&mut self.buffer[length..]) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    read => break read,
                }
            };
            self.buffer.truncate(length + read.as_ref().map_or(0, |read| *read));
            let read = read?;
            self.limit -= read as u64;
            self.ended = read == 0;
        }
        Ok(&self.buffer[self.at..])
    }

    /// Moves past the next `count` bytes, which `peek` has returned.
    pub(crate) fn consume(&mut self, count: usize) {
        self.at += count;
        assert!(self.at <= self.buffer.len(), "only what was read is consumed");
    }

    /// The valid frame at the current position, which is LSN `lsn`; `None` if there is none. Consumes
    /// nothing.
    pub(crate) fn frame(&mut self, id: LogId, lsn: u64, payload_max: usize) -> io::Result<Option<Frame<'_>>> {
        let length = frame::bytes_of(self.peek(HEAD_BYTES)?);
        match length {
            Some(length) if length <= HEAD_BYTES + payload_max => {
                Ok(frame::decode(id, lsn, self.peek(length)?))
            }
            _ => Ok(None),
        }
    }

    /// The largest LSN that any mark from the current position on states as synced; 0 without a mark. The
    /// current position is LSN `lsn`.
    pub(crate) fn synced_by_marks(&mut self, id: LogId, mut lsn: u64) -> io::Result<u64> {
        let mut synced = 0;
        loop {
            let bytes = self.peek(CHUNK_BYTES)?;
            synced = synced.max(frame::synced_by_marks(id, lsn, bytes));
            // A mark may begin in the bytes that stay.
            let step = bytes.len().saturating_sub(MARK_BYTES - 1);
            if step == 0 {
                return Ok(synced);
            }
            self.consume(step);
            lsn = lsn.wrapping_add(step as u64);
        }
    }

    /// Number of valid records at any position from here on, up to the first unreadable byte. The current
    /// position is LSN `lsn`.
    pub(crate) fn count_records(&mut self, id: LogId, mut lsn: u64) -> u64 {
        let mut records = 0;
        while self.peek(1).is_ok_and(|bytes| !bytes.is_empty()) {
            let step = match self.frame(id, lsn, FOUND_PAYLOAD_MAX) {
                Ok(Some(frame)) => {
                    records += u64::from(matches!(frame, Frame::Record { .. }));
                    frame.bytes()
                }
                Ok(None) => 1,
                Err(_) => return records,
            };
            self.consume(step);
            lsn = lsn.wrapping_add(step as u64);
        }
        records
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// Marks and records are found at any position, also across the end of a chunk.
    #[test]
    fn frames_across_chunks_are_found() {
        let environment = Environment::simulated(1);
        let path = Path::new("/log");
        let id = LogId(7);
        for gap in [0, 3, CHUNK_BYTES - 5, CHUNK_BYTES - MARK_BYTES, CHUNK_BYTES, 2 * CHUNK_BYTES - 30] {
            let mut bytes = vec![1; gap];
            bytes.extend_from_slice(&frame::mark(id, 100 + gap as u64, 90));
            let start = 100 + bytes.len() as u64;
            frame::push_record(&mut bytes, id, start, 1, 2, b"hi");
            bytes.extend_from_slice(b"noise");
            environment.files.create(path).and_then(|mut file| file.write_all(&bytes)).expect("works");
            let stream = |limit| Stream::open(&environment, path, 0, limit).expect("opens");
            assert_eq!(stream(u64::MAX).synced_by_marks(id, 100).expect("reads"), 90, "gap {gap}");
            assert_eq!(stream(u64::MAX).count_records(id, 100), 1, "gap {gap}");
            assert_eq!(stream(u64::MAX).count_records(id, 101), 0, "gap {gap}");
            assert_eq!(stream(gap as u64).synced_by_marks(id, 100).expect("reads"), 0, "gap {gap}");
            assert_eq!(stream(gap as u64).peek(usize::MAX).expect("reads").len(), gap);
        }
    }
}
