//! The set of keys of a segment: from a key to its position and back.
//!
//! # Shape
//! Keys with equal high 4 bits (their tag) form a *part*; positions count through the parts in ascending
//! order. A part is a range (every key present), a bitmap with counts (dense), or a sorted array (see
//! `sparse`). Bitmap: one block of 12 bytes for 64 keys: their bits, and the number of keys before.
//! # Invariants
//! 1. Positions are below 2^32 - 1, which means "not there".
//! 2. Keys ascend with their positions.
//! # Cost
//! Position: range 0 cache misses, bitmap 1, sparse 2 to 3. Space: 0, 1.5 bits for each number between
//! the first and the last key, or 1 to 8 bytes for each key. The counts lie beside the bits because two
//! misses cost more than the 30 % of space that counts for larger blocks would save.

use crate::bytes::{Damaged, PADDING, Reader, load_u64, write_u64};
use crate::sparse::{Sparse, SparseView};

/// No position: the key is not in the set.
pub const NONE: u32 = u32::MAX;

/// Bytes of a bitmap block: 64 bits and a count.
const BLOCK_BYTES: usize = 12;
/// How much larger than sorted numbers a bitmap may be.
const BITMAP_FACTOR: u64 = 4;
/// Keys that share a tag have these bits equal.
const PART_SHIFT: u32 = 60;

/// Something that knows the positions of keys.
pub trait Locate {
    /// The position of `key`, or [`NONE`].
    fn position(&self, key: u64) -> u32;
}

/// A dense set: where its blocks lie in the section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bitmap {
    offset: usize,
    blocks: usize,
    first: u64,
    count: u64,
}

/// The keys with one tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyPart {
    /// Every number from `first` on.
    Range {
        /// The first key.
        first: u64,
        /// Number of keys.
        count: u64,
    },
    /// Bits.
    Bitmap(Bitmap),
    /// Sorted numbers.
    Sparse(Sparse),
}

/// Where a key set lies in its section.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeySet {
    /// The parts with the position of their first key, ascending.
    parts: Vec<(u32, KeyPart)>,
    count: u32,
}

impl KeySet {
    /// Appends `keys`: distinct, ascending, fewer than 2^32 - 1.
    ///
    /// # Errors
    /// More keys than that.
    pub fn write(keys: &[u64], body: &mut Vec<u8>) -> Result<Self, Damaged> {
        let count =
            u32::try_from(keys.len()).ok().filter(|count| *count < NONE).ok_or(Damaged("too many keys"))?;
        let mut parts = Vec::new();
        let mut position = 0_u32;
        for part in keys.chunk_by(|a, b| a >> PART_SHIFT == b >> PART_SHIFT) {
            parts.push((position, write_part(part, body)));
            position += u32::try_from(part.len()).map_err(|_| Damaged("too many keys"))?;
        }
        Ok(Self { parts, count })
    }

    /// Appends the descriptor.
    pub fn write_meta(&self, meta: &mut Vec<u8>) {
        write_u64(self.parts.len() as u64, meta);
        for (_, part) in &self.parts {
            match part {
                KeyPart::Range { first, count } => {
                    for number in [0, *first, *count] {
                        write_u64(number, meta);
                    }
                }
                KeyPart::Bitmap(bitmap) => {
                    for number in [1, bitmap.offset as u64, bitmap.blocks as u64, bitmap.first, bitmap.count]
                    {
                        write_u64(number, meta);
                    }
                }
                KeyPart::Sparse(sparse) => {
                    write_u64(2, meta);
                    sparse.write_meta(meta);
                }
            }
        }
    }

    /// Reads a descriptor of a section of `section_bytes`.
    ///
    /// # Errors
    /// The set would not lie inside the section.
    pub fn read_meta(meta: &mut Reader<'_>, section_bytes: usize) -> Result<Self, Damaged> {
        let mut parts: Vec<(u32, KeyPart)> = Vec::new();
        let mut total = 0_u64;
        for _ in 0..meta.list_length()? {
            let position = u32::try_from(total).map_err(|_| Damaged("too many keys"))?;
            let part = match meta.u64()? {
                0 => KeyPart::Range { first: meta.u64()?, count: meta.u64()? },
                1 => KeyPart::Bitmap(Bitmap::read_meta(meta, section_bytes)?),
                2 => KeyPart::Sparse(Sparse::read_meta(meta, section_bytes)?),
                _ => return Err(Damaged("unknown kind of key set")),
            };
            total = total.checked_add(part.len()).ok_or(Damaged("too many keys"))?;
            parts.push((position, part));
        }
        let count =
            u32::try_from(total).ok().filter(|count| *count < NONE).ok_or(Damaged("too many keys"))?;
        Ok(Self { parts, count })
    }

    /// Number of keys.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are no keys.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes for the whole set.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let size = |part: &KeyPart| match part {
            KeyPart::Range { .. } => 0,
            KeyPart::Bitmap(bitmap) => bitmap.blocks * BLOCK_BYTES,
            KeyPart::Sparse(sparse) => sparse.size_bytes(),
        };
        self.parts.iter().map(|(_, part)| size(part)).sum()
    }

    /// The set in the bytes of its section.
    #[inline]
    #[must_use]
    pub fn view<'a>(&'a self, section: &'a [u8]) -> KeySetView<'a> {
        match self.parts.as_slice() {
            [(_, KeyPart::Range { first, count })] => {
                KeySetView::Range(RangeView { first: *first, count: *count })
            }
            [(_, KeyPart::Bitmap(bitmap))] => KeySetView::Bitmap(bitmap.view(section)),
            [(_, KeyPart::Sparse(sparse))] => KeySetView::Sparse(sparse.view(section)),
            parts => KeySetView::Parts(PartsView { parts, section }),
        }
    }

    /// Appends up to `limit` keys from `position` on to `out` and returns the position behind the last.
    pub fn list(&self, section: &[u8], position: u64, limit: usize, mut out: impl FnMut(u64)) -> u64 {
        let end = position.saturating_add(limit as u64).min(u64::from(self.count));
        let mut at = position.min(end);
        for (base, part) in &self.parts {
            let base = u64::from(*base);
            let stop = (base + part.len()).min(end);
            if at >= base && at < stop {
                part.list(section, at - base, stop - base, &mut out);
                at = stop;
            }
        }
        at
    }
}

/// Appends the keys of one part in the form that suits them.
fn write_part(keys: &[u64], body: &mut Vec<u8>) -> KeyPart {
    let first = keys.first().copied().unwrap_or(0);
    let span = keys.last().copied().unwrap_or(0).saturating_sub(first);
    let count = keys.len() as u64;
    if span + 1 == count {
        return KeyPart::Range { first, count };
    }
    // A bitmap is two to four times as fast (6 ns against 16 to 26 for a row, LUBM-40, 2026-11-20), so it
    // may be larger than the sorted numbers: about 12 bytes a key at most.
    let sorted_bytes = count * crate::Packed::width_of(span) as u64;
    let bitmap_bytes = (span / 64 + 1).saturating_mul(BLOCK_BYTES as u64);
    if bitmap_bytes > sorted_bytes.saturating_mul(BITMAP_FACTOR) {
        return KeyPart::Sparse(Sparse::write(keys, body));
    }
    KeyPart::Bitmap(Bitmap::write(keys, body))
}

impl KeyPart {
    fn len(&self) -> u64 {
        match self {
            Self::Range { count, .. } => *count,
            Self::Bitmap(bitmap) => bitmap.count,
            Self::Sparse(sparse) => sparse.len() as u64,
        }
    }

    fn list(&self, section: &[u8], start: u64, end: u64, out: &mut impl FnMut(u64)) {
        match self {
            Self::Range { first, .. } => (start..end).for_each(|position| out(first.wrapping_add(position))),
            Self::Bitmap(bitmap) => bitmap.view(section).list(start, end, out),
            Self::Sparse(sparse) => {
                let view = sparse.view(section);
                for position in start..end {
                    out(view.key(usize::try_from(position).unwrap_or(usize::MAX)));
                }
            }
        }
    }

    fn position(&self, section: &[u8], key: u64) -> u32 {
        match self {
            Self::Range { first, count } => RangeView { first: *first, count: *count }.position(key),
            Self::Bitmap(bitmap) => bitmap.view(section).position(key),
            Self::Sparse(sparse) => sparse.view(section).position(key),
        }
    }
}

impl Bitmap {
    fn write(keys: &[u64], body: &mut Vec<u8>) -> Self {
        // Blocks begin at multiples of 64, so that the bit number is that of the key.
        let first = keys.first().copied().unwrap_or(0) & !63;
        let offset = body.len();
        let mut blocks = 0;
        let mut at = 0;
        while at < keys.len() {
            let base = first + 64 * blocks as u64;
            let mut bits = 0_u64;
            let before = u32::try_from(at).unwrap_or(NONE);
            while let Some(key) = keys.get(at).filter(|key| **key - base < 64) {
                bits |= 1 << (key - base);
                at += 1;
            }
            body.extend_from_slice(&bits.to_le_bytes());
            body.extend_from_slice(&before.to_le_bytes());
            blocks += 1;
        }
        Self { offset, blocks, first, count: keys.len() as u64 }
    }

    fn read_meta(meta: &mut Reader<'_>, section_bytes: usize) -> Result<Self, Damaged> {
        let bitmap =
            Self { offset: meta.length()?, blocks: meta.length()?, first: meta.u64()?, count: meta.u64()? };
        let end = bitmap.blocks.checked_mul(BLOCK_BYTES).and_then(|bytes| bytes.checked_add(bitmap.offset));
        match end.and_then(|end| end.checked_add(PADDING)) {
            Some(end) if end <= section_bytes && bitmap.count <= 64 * bitmap.blocks as u64 => Ok(bitmap),
            _ => Err(Damaged("bitmap reaches past its section")),
        }
    }

    #[inline]
    fn view<'a>(&self, section: &'a [u8]) -> BitmapView<'a> {
        let end = self.offset + self.blocks * BLOCK_BYTES + PADDING;
        BitmapView {
            bytes: section.get(self.offset..end).unwrap_or_default(),
            blocks: self.blocks,
            first: self.first,
        }
    }
}

/// A key set to read from.
#[derive(Clone, Copy, Debug)]
pub enum KeySetView<'a> {
    /// One part: a range.
    Range(RangeView),
    /// One part: a bitmap.
    Bitmap(BitmapView<'a>),
    /// One part: sorted numbers.
    Sparse(SparseView<'a>),
    /// No part, or several.
    Parts(PartsView<'a>),
}

impl Locate for KeySetView<'_> {
    fn position(&self, key: u64) -> u32 {
        match self {
            Self::Range(view) => view.position(key),
            Self::Bitmap(view) => view.position(key),
            Self::Sparse(view) => view.position(key),
            Self::Parts(view) => view.position(key),
        }
    }
}

/// Every number from a first one on.
#[derive(Clone, Copy, Debug)]
pub struct RangeView {
    first: u64,
    count: u64,
}

impl Locate for RangeView {
    #[inline(always)]
    fn position(&self, key: u64) -> u32 {
        let position = key.wrapping_sub(self.first);
        if position < self.count { u32::try_from(position).unwrap_or(NONE) } else { NONE }
    }
}

/// Bits with counts.
#[derive(Clone, Copy, Debug)]
pub struct BitmapView<'a> {
    bytes: &'a [u8],
    blocks: usize,
    first: u64,
}

impl BitmapView<'_> {
    #[inline(always)]
    fn bits(&self, block: usize) -> u64 {
        load_u64(self.bytes, block.wrapping_mul(BLOCK_BYTES))
    }

    #[inline(always)]
    fn before(&self, block: usize) -> u64 {
        load_u64(self.bytes, block.wrapping_mul(BLOCK_BYTES).wrapping_add(8)) & u64::from(u32::MAX)
    }

    /// Gives the keys at positions `start..end` to `out`.
    fn list(&self, start: u64, end: u64, out: &mut impl FnMut(u64)) {
        // The last block that has at most `start` keys before it.
        let (mut low, mut high) = (0, self.blocks);
        while low + 1 < high {
            let middle = low.midpoint(high);
            if self.before(middle) <= start { low = middle } else { high = middle }
        }
        let mut position = self.before(low);
        for block in low..self.blocks {
            let mut bits = self.bits(block);
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
        if distance >> 6 >= self.blocks as u64 {
            return NONE;
        }
        let Ok(block) = usize::try_from(distance >> 6) else { return NONE };
        let bits = self.bits(block);
        let below = bits & ((1 << (distance & 63)) - 1);
        let position = u32::try_from(self.before(block)).unwrap_or(NONE).wrapping_add(below.count_ones());
        if bits >> (distance & 63) & 1 == 1 { position } else { NONE }
    }
}

/// Several parts.
#[derive(Clone, Copy, Debug)]
pub struct PartsView<'a> {
    parts: &'a [(u32, KeyPart)],
    section: &'a [u8],
}

impl Locate for PartsView<'_> {
    #[inline]
    fn position(&self, key: u64) -> u32 {
        for (base, part) in self.parts {
            let first = match part {
                KeyPart::Range { first, .. } | KeyPart::Bitmap(Bitmap { first, .. }) => *first,
                KeyPart::Sparse(sparse) => sparse.view(self.section).key(0),
            };
            if first >> PART_SHIFT == key >> PART_SHIFT {
                let position = part.position(self.section, key);
                return if position == NONE { NONE } else { base.saturating_add(position) };
            }
        }
        NONE
    }
}
