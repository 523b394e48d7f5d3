//! Clustered set of numbers: a bitmap without its empty blocks.
//!
//! # Shape
//! The numbers are split into *words* of 64, counted from `first` (a multiple of 64). `words`: the bitmap of
//! the nonempty words. `blocks`: for each of them, in order, 64 bits and the number of elements before, as in
//! a bitmap.
//! # Cost
//! Position: one cache miss for the word, which is rare since `words` has 12 bytes for 4096 numbers, and one
//! for the block. Space: at most 12 bytes for each number, plus the 12 bytes for 4096.

use crate::bitmap::{BLOCK_BYTES, Bitmap, BitmapView, Blocks, write_block};
use crate::bytes::{Damaged, PADDING, Reader, write_u64};
use crate::locate::{Locate, NONE};

/// Descriptor of a tiered set in its section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tiered {
    words: Bitmap,
    offset: usize,
    pub(crate) first: u64,
    pub(crate) count: u64,
}

impl Tiered {
    /// Appends `keys`: distinct, ascending, fewer than 2^32 - 1.
    pub(crate) fn write(keys: &[u64], body: &mut Vec<u8>) -> Self {
        debug_assert!(keys.is_sorted_by(|a, b| a < b), "keys ascend and differ");
        let first = keys.first().map_or(0, |key| key & !63);
        let word = |key: u64| (key - first) >> 6;
        let groups = || keys.chunk_by(|a, b| word(*a) == word(*b));
        let present: Vec<u64> = groups().map(|group| word(group[0])).collect();
        let words = Bitmap::write(&present, body);
        let offset = body.len();
        let mut before = 0;
        for group in groups() {
            let bits = group.iter().fold(0, |bits, key| bits | 1 << ((key - first) & 63));
            write_block(bits, before, body);
            before += group.len();
        }
        Self { words, offset, first, count: keys.len() as u64 }
    }

    /// Appends the descriptor.
    pub(crate) fn write_meta(&self, meta: &mut Vec<u8>) {
        self.words.write_meta(meta);
        for number in [self.offset as u64, self.first, self.count] {
            write_u64(number, meta);
        }
    }

    pub(crate) fn read_meta(meta: &mut Reader<'_>, section_bytes: usize) -> Result<Self, Damaged> {
        let words = Bitmap::read_meta(meta, section_bytes)?;
        let tiered = Self { words, offset: meta.length()?, first: meta.u64()?, count: meta.u64()? };
        let blocks = usize::try_from(words.count).ok();
        let bytes = blocks.and_then(|blocks| blocks.checked_mul(BLOCK_BYTES));
        let end = bytes.and_then(|bytes| bytes.checked_add(tiered.offset)?.checked_add(PADDING));
        match end {
            Some(end) if end <= section_bytes && tiered.count <= words.count.saturating_mul(64) => Ok(tiered),
            _ => Err(Damaged("tiered bitmap reaches past its section")),
        }
    }

    fn blocks(&self) -> usize {
        usize::try_from(self.words.count).unwrap_or(0)
    }

    /// Size of words and blocks, in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        self.words.size_bytes() + self.blocks() * BLOCK_BYTES
    }

    #[inline]
    pub(crate) fn view<'a>(&self, section: &'a [u8]) -> TieredView<'a> {
        let end = self.offset + self.blocks() * BLOCK_BYTES + PADDING;
        TieredView {
            words: self.words.view(section),
            blocks: Blocks(section.get(self.offset..end).unwrap_or_default()),
            count: self.blocks(),
            first: self.first,
        }
    }
}

/// A view of a tiered set, for reading.
#[derive(Clone, Copy, Debug)]
pub struct TieredView<'a> {
    words: BitmapView<'a>,
    blocks: Blocks<'a>,
    /// Number of blocks.
    count: usize,
    first: u64,
}

impl TieredView<'_> {
    /// Number of keys below `key`.
    pub(crate) fn lower_bound(&self, key: u64) -> u64 {
        let distance = key.saturating_sub(self.first);
        let Ok(block) = usize::try_from(self.words.lower_bound(distance >> 6)) else { return 0 };
        match self.words.position(distance >> 6) {
            NONE if block < self.count => self.blocks.before(block),
            NONE => self.blocks.end(self.count),
            _ => self.blocks.below(block, distance & 63),
        }
    }

    /// Calls `out` with the keys at positions `start..end`.
    pub(crate) fn list(&self, start: u64, end: u64, out: &mut impl FnMut(u64)) {
        if start >= end {
            return;
        }
        let low = self.blocks.block_of(start, self.count);
        let high = self.blocks.block_of(end - 1, self.count) as u64 + 1;
        let mut block = low;
        let mut position = self.blocks.before(low);
        self.words.list(low as u64, high, &mut |word| {
            let mut bits = self.blocks.bits(block);
            block += 1;
            while bits != 0 && position < end {
                if position >= start {
                    let number = word.wrapping_mul(64).wrapping_add(u64::from(bits.trailing_zeros()));
                    out(self.first.wrapping_add(number));
                }
                position += 1;
                bits &= bits - 1;
            }
        });
    }
}

impl Locate for TieredView<'_> {
    #[inline(always)]
    fn position(&self, key: u64) -> u32 {
        let distance = key.wrapping_sub(self.first);
        let block = self.words.position(distance >> 6);
        if block == NONE { NONE } else { self.blocks.position(block as usize, distance & 63) }
    }
}
