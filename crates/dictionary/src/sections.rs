//! The body of a dictionary file: blocks whose checksums are verified on first access.
//!
//! # Shape
//! One bit for each block of [`BLOCK_BYTES`]; set once the checksum of the block was verified.
//! # Invariants
//! [`Sections::get`] returns only bytes of verified blocks, and only inside one section.
//! # Cost
//! A bounds check and one bit: about 1 ns. The first access to a block: about 0.1 ms.

use crate::header::{BLOCK_BYTES, Layout, SECTION_COUNT, Section};
use crate::integers::{read_first_le, read_le};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use vervet_env::Bytes;
use vervet_model::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

#[derive(Debug)]
pub(crate) struct Sections {
    name: Box<str>,
    bytes: Bytes,
    checksums: Bytes,
    verified: Box<[AtomicU64]>,
    sections: [Range<usize>; SECTION_COUNT],
}

impl Sections {
    pub(crate) fn new(layout: Layout, name: &str) -> Self {
        let mut start = 0;
        let sections = layout.lengths.map(|length| {
            start += length;
            start - length..start
        });
        let blocks = layout.body.len().div_ceil(BLOCK_BYTES);
        let verified = (0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Self { name: name.into(), bytes: layout.body, checksums: layout.checksums, verified, sections }
    }

    /// Name of the file.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Length of a section in bytes.
    pub(crate) fn length(&self, section: Section) -> usize {
        self.sections[section as usize].len()
    }

    /// `length` bytes of a section from `start` on.
    #[inline]
    pub(crate) fn get(&self, section: Section, start: usize, length: usize) -> Result<&[u8]> {
        let whole = &self.sections[section as usize];
        if start > whole.len() || length > whole.len() - start {
            return Err(self.damaged("an offset points past the end of its section"));
        }
        if length == 0 {
            return Ok(&[]);
        }
        let start = whole.start + start;
        let end = start + length;
        let (first, last) = (start / BLOCK_BYTES, (end - 1) / BLOCK_BYTES);
        if first != last || !self.is_verified(first) {
            self.verify_all(first..last + 1)?;
        }
        Ok(&self.bytes[start..end])
    }

    #[inline]
    fn is_verified(&self, block: usize) -> bool {
        // Relaxed: the bit describes bytes that never change; no other data is published by it.
        self.verified[block / 64].load(Ordering::Relaxed) & 1 << (block % 64) != 0
    }

    #[cold]
    fn verify_all(&self, mut blocks: Range<usize>) -> Result<()> {
        blocks.try_for_each(|block| if self.is_verified(block) { Ok(()) } else { self.verify(block) })
    }

    /// Prefetches a block of records by loading one of its bytes, unchecked; the returned value has no
    /// meaning.
    #[inline]
    pub(crate) fn touch_block(&self, offsets: Section, records: Section, block: u64, width: usize) -> u8 {
        let at = usize::try_from(block).unwrap_or(usize::MAX).saturating_mul(width);
        let at = self.sections[offsets as usize].start.saturating_add(at);
        let offset = self.bytes.get(at..).map_or(0, |bytes| read_first_le(bytes, width));
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        self.bytes.get(self.sections[records as usize].start.saturating_add(at)).copied().unwrap_or(0)
    }

    /// A whole section.
    pub(crate) fn all(&self, section: Section) -> Result<&[u8]> {
        self.get(section, 0, self.length(section))
    }

    fn verify(&self, block: usize) -> Result<()> {
        let start = block * BLOCK_BYTES;
        let found = xxh3_64(&self.bytes[start..self.bytes.len().min(start + BLOCK_BYTES)]);
        let expected = read_le(&self.checksums[block * 8..block * 8 + 8]);
        if found != expected {
            return Err(
                self.damaged(&format!("block {block} has checksum {found:#x}, expected {expected:#x}"))
            );
        }
        self.verified[block / 64].fetch_or(1 << (block % 64), Ordering::Relaxed);
        Ok(())
    }

    #[cold]
    pub(crate) fn damaged(&self, what: &str) -> Error {
        Error::corrupt(&self.name, what)
    }
}
