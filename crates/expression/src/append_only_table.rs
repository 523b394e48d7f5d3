//! Append-only table of words by number, with lock-free reads.
//!
//! # Shape
//! Chunks of doubling length, each allocated when its first word is written. A chunk never moves, so readers
//! need no lock.
//! # Invariants
//! 1. A word is written once, before its number is published.
//! 2. An unwritten word is 0; a stored word is its value plus 1.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of words of the first chunk.
const FIRST: u64 = 1 << FIRST_BITS;
const FIRST_BITS: u32 = 6;

/// Number of chunks; together they hold 2^32 words.
const CHUNKS: usize = 33 - FIRST_BITS as usize;

/// An append-only table of words; see the header.
#[derive(Default, Debug)]
pub(crate) struct AppendOnlyTable {
    chunks: [OnceLock<Box<[AtomicU64]>>; CHUNKS],
}

impl AppendOnlyTable {
    /// Sets the word of a number; returns the number of allocated bytes.
    pub(crate) fn set(&self, number: u32, word: u64) -> u64 {
        let (chunk, at) = chunk_position(number);
        let length = length_of(chunk);
        let mut allocated = 0;
        let words = self.chunks[chunk].get_or_init(|| {
            allocated = length * size_of::<AtomicU64>() as u64;
            (0..length).map(|_| AtomicU64::new(0)).collect()
        });
        // Release: a reader that acquires the word sees all earlier writes.
        words[at].store(word + 1, Ordering::Release);
        allocated
    }

    /// The word of a number; `None`: not written.
    pub(crate) fn get(&self, number: u32) -> Option<u64> {
        let (chunk, at) = chunk_position(number);
        self.chunks[chunk].get()?.get(at)?.load(Ordering::Acquire).checked_sub(1)
    }
}

/// Number of words of a chunk.
fn length_of(chunk: usize) -> u64 {
    if chunk == 0 { FIRST } else { FIRST << (chunk - 1) }
}

/// The chunk of a number, and its position there.
fn chunk_position(number: u32) -> (usize, usize) {
    let number = u64::from(number);
    let chunk = (u64::BITS - (number >> FIRST_BITS).leading_zeros()) as usize;
    let start = if chunk == 0 { 0 } else { length_of(chunk) };
    (chunk, usize::try_from(number - start).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_dense_and_words_read_back() {
        let mut expected = (0, 0);
        for number in 0..5000 {
            assert_eq!(chunk_position(number), expected, "{number}");
            expected.1 += 1;
            if expected.1 as u64 == length_of(expected.0) {
                expected = (expected.0 + 1, 0);
            }
        }
        assert_eq!(chunk_position(u32::MAX), (CHUNKS - 1, (1 << 31) - 1));
        let table = AppendOnlyTable::default();
        assert_eq!((table.get(0), table.get(u32::MAX)), (None, None));
        let bytes: u64 = (0..1000).map(|number| table.set(number, u64::from(number) * 3)).sum();
        assert_eq!(bytes, 8 * 1024);
        assert_eq!((table.get(0), table.get(999), table.get(1000)), (Some(0), Some(2997), None));
    }
}
