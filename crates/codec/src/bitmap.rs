//! Dense set of numbers: a bitmap with rank counts.
//!
//! # Shape
//! One block of 12 bytes for 64 numbers: their bits, and the number of elements before.
//! # Cost
//! Position: one cache miss. Space: 1.5 bits for each number between the first and the last. The counts lie
//! beside the bits because two misses cost more than the 30 % of space that larger blocks would save.

use crate::bytes::{Damaged, PADDING, Reader, load_u64, write_u64};
use crate::locate::{Locate, NONE};

/// Size of a block: 64 bits and a count.
pub(crate) const BLOCK_BYTES: usize = 12;

/// Descriptor of a dense set: the position of its blocks in the section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bitmap {
    offset: usize,
    blocks: usize,
    pub(crate) first: u64,
    pub(crate) count: u64,
}

impl Bitmap {
    /// Appends `keys`: distinct, ascending, fewer than 2^32 - 1.
    pub(crate) fn write(keys: &[u64], body: &mut Vec<u8>) -> Self {
        // The first block begins at a multiple of 64, so that the bit number is that of the key.
        debug_assert!(keys.is_sorted_by(|a, b| a < b), "keys ascend and differ");
        let first = keys.first().map_or(0, |key| key & !63);
        let offset = body.len();
        let mut blocks = 0;
        let mut at = 0;
        while at < keys.len() {
            let base = first + 64 * blocks as u64;
            let mut bits = 0_u64;
            let before = at;
            while let Some(key) = keys.get(at).filter(|key| **key - base < 64) {
                bits |= 1 << (key - base);
                at += 1;
            }
            write_block(bits, before, body);
            blocks += 1;
        }
        Self { offset, blocks, first, count: keys.len() as u64 }
    }

    /// Size of all blocks, in bytes.
    pub(crate) const fn size_bytes(&self) -> usize {
        self.blocks * BLOCK_BYTES
    }

    /// Appends the descriptor.
    pub(crate) fn write_meta(&self, meta: &mut Vec<u8>) {
        for number in [self.offset as u64, self.blocks as u64, self.first, self.count] {
            write_u64(number, meta);
        }
    }

    pub(crate) fn read_meta(meta: &mut Reader<'_>, section_bytes: usize) -> Result<Self, Damaged> {
        let bitmap =
            Self { offset: meta.length()?, blocks: meta.length()?, first: meta.u64()?, count: meta.u64()? };
        let end = bitmap.blocks.checked_mul(BLOCK_BYTES).and_then(|bytes| bytes.checked_add(bitmap.offset));
        match end.and_then(|end| end.checked_add(PADDING)) {
            Some(end) if end <= section_bytes && bitmap.count <= 64 * bitmap.blocks as u64 => Ok(bitmap),
            _ => Err(Damaged("bitmap reaches past its section")),
        }
    }

    #[inline]
    pub(crate) fn view<'a>(&self, section: &'a [u8]) -> BitmapView<'a> {
        let end = self.offset + self.blocks * BLOCK_BYTES + PADDING;
        BitmapView {
            blocks: Blocks(section.get(self.offset..end).unwrap_or_default()),
            count: self.blocks,
            first: self.first,
        }
    }
}

/// Blocks of 64 bits and a count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks<'a>(pub(crate) &'a [u8]);

impl Blocks<'_> {
    #[inline(always)]
    pub(crate) fn bits(&self, block: usize) -> u64 {
        load_u64(self.0, block.wrapping_mul(BLOCK_BYTES))
    }

    #[inline(always)]
    pub(crate) fn before(&self, block: usize) -> u64 {
        load_u64(self.0, block.wrapping_mul(BLOCK_BYTES).wrapping_add(8)) & u64::from(u32::MAX)
    }

    /// The position of number `bit` (below 64) of a block, or [`NONE`].
    #[inline(always)]
    pub(crate) fn position(&self, block: usize, bit: u64) -> u32 {
        // One bounds check for both loads.
        let at = block.wrapping_mul(BLOCK_BYTES);
        let Some(chunk) = self.0.get(at..).and_then(|rest| rest.first_chunk::<16>()) else { return NONE };
        let both = u128::from_le_bytes(*chunk);
        #[expect(clippy::cast_possible_truncation, reason = "the low 8 bytes, and the 4 behind them")]
        let (bits, before) = (both as u64, (both >> 64) as u32);
        let below = bits & ((1 << bit) - 1);
        let position = before.wrapping_add(below.count_ones());
        if bits >> bit & 1 == 1 { position } else { NONE }
    }

    /// Number of elements in blocks before this one, or in it and below `bit`.
    pub(crate) fn below(&self, block: usize, bit: u64) -> u64 {
        self.before(block) + u64::from((self.bits(block) & ((1 << bit) - 1)).count_ones())
    }

    /// Number of elements in the first `count` blocks.
    pub(crate) fn end(&self, count: usize) -> u64 {
        let Some(last) = count.checked_sub(1) else { return 0 };
        self.before(last) + u64::from(self.bits(last).count_ones())
    }

    /// The last of `count` blocks that has at most `position` keys before it.
    pub(crate) fn block_of(&self, position: u64, count: usize) -> usize {
        let (mut low, mut high) = (0, count);
        while low + 1 < high {
            let middle = low.midpoint(high);
            if self.before(middle) <= position { low = middle } else { high = middle }
        }
        low
    }
}

/// Appends a block.
pub(crate) fn write_block(bits: u64, before: usize, body: &mut Vec<u8>) {
    body.extend_from_slice(&bits.to_le_bytes());
    let before = u32::try_from(before).expect("a key set has fewer than 2^32 - 1 keys");
    body.extend_from_slice(&before.to_le_bytes());
}

/// A view of a bitmap, for reading.
#[derive(Clone, Copy, Debug)]
pub struct BitmapView<'a> {
    blocks: Blocks<'a>,
    count: usize,
    first: u64,
}

impl BitmapView<'_> {
    /// Number of keys below `key`.
    pub(crate) fn lower_bound(&self, key: u64) -> u64 {
        let distance = key.saturating_sub(self.first);
        match usize::try_from(distance >> 6) {
            Ok(block) if block < self.count => self.blocks.below(block, distance & 63),
            _ => self.blocks.end(self.count),
        }
    }

    /// Calls `out` with the keys at positions `start..end`.
    pub(crate) fn list(&self, start: u64, end: u64, out: &mut impl FnMut(u64)) {
        let low = self.blocks.block_of(start, self.count);
        let mut position = self.blocks.before(low);
        for block in low..self.count {
            let mut bits = self.blocks.bits(block);
            while bits != 0 {
                if position >= end {
                    return;
                }
                if position >= start {
                    out(self.first.wrapping_add(64 * block as u64 + u64::from(bits.trailing_zeros())));
                }
                position += 1;
                bits &= bits - 1;
            }
        }
    }
}

impl Locate for BitmapView<'_> {
    #[inline(always)]
    fn position(&self, key: u64) -> u32 {
        let distance = key.wrapping_sub(self.first);
        if distance >> 6 >= self.count as u64 {
            return NONE;
        }
        match usize::try_from(distance >> 6) {
            Ok(block) => self.blocks.position(block, distance & 63),
            Err(_) => NONE,
        }
    }
}
