//! Which vertices are blank nodes, as bits: read from their records on first access.
//!
//! # Shape
//! A word of 64 bits for 32 vertices: their bits in the lower half, and the bit [`KNOWN`] once they have been
//! read. In memory only.
//! # Cost
//! A quarter of a byte for each vertex, allocated on first access. A known bit is one load; no access reads
//! more than the two blocks of its word.

use crate::record_blocks::BLOCK_OF;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use vervet_model::Result;

/// Number of vertices of a word: two blocks.
const WORD_OF: u64 = 2 * BLOCK_OF;
/// The bit of a word whose bits are known.
const KNOWN: u64 = 1 << 63;

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct BlankBits {
    vertices: u64,
    words: OnceLock<Box<[AtomicU64]>>,
}

impl BlankBits {
    pub(crate) fn new(vertices: u64) -> Self {
        Self { vertices, words: OnceLock::new() }
    }

    /// Whether the vertex with this number, which must exist, is a blank node. `read` reads the bits of a
    /// block.
    #[inline]
    pub(crate) fn is_set(&self, number: u64, read: impl Fn(u64) -> Result<u16>) -> Result<bool> {
        let words = self.words.get_or_init(|| {
            let count = usize::try_from(self.vertices.div_ceil(WORD_OF)).unwrap_or(usize::MAX);
            (0..count).map(|_| AtomicU64::new(0)).collect()
        });
        let word = usize::try_from(number / WORD_OF).ok().and_then(|at| words.get(at));
        // Relaxed: a word has all that a thread reads, and all threads store the same.
        let mut bits = word.map_or(0, |word| word.load(Relaxed));
        if bits & KNOWN == 0 {
            bits = self.read_word(number / WORD_OF, read)?;
            if let Some(word) = word {
                word.store(bits, Relaxed);
            }
        }
        Ok(bits >> (number % WORD_OF) & 1 == 1)
    }

    #[cold]
    fn read_word(&self, word: u64, read: impl Fn(u64) -> Result<u16>) -> Result<u64> {
        let first = word * (WORD_OF / BLOCK_OF);
        let blocks = self.vertices.div_ceil(BLOCK_OF).saturating_sub(first).min(WORD_OF / BLOCK_OF);
        (0..blocks)
            .try_fold(KNOWN, |bits, block| Ok(bits | u64::from(read(first + block)?) << (block * BLOCK_OF)))
    }
}
