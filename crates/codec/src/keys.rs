//! Key set of a segment: maps keys to positions and back.
//!
//! # Shape
//! Keys with equal high 4 bits (their tag) form a *part*; positions count through the parts in ascending
//! order. A part is a range (every key present), a bitmap (see `bitmap`), a bitmap without its empty
//! blocks (see `tiered`), or a sorted array (see `sparse`).
//! # Invariants
//! 1. Positions are below 2^32 - 1, the value of [`NONE`].
//! 2. Keys ascend with their positions.
//! # Cost
//! Position: range 0 cache misses, bitmap 1, tiered 1 to 2, sparse 2 to 3. Space: 0; 1.5 bits for each
//! number between the first and the last key; up to 12 bytes for each key; 1 to 8 bytes for each key.

use crate::bitmap::{BLOCK_BYTES, Bitmap, BitmapView};
use crate::bytes::{Damaged, Reader, write_u64};
use crate::locate::{Locate, NONE};
use crate::sparse::{Sparse, SparseView};
use crate::stride::Stride;
use crate::tiered::{Tiered, TieredView};
use std::cmp::Ordering;

/// Maximum size of a bitmap of either form relative to sorted numbers, for keys with one of
/// [`JOIN_KEY_TAGS`].
const BITMAP_FACTOR: u64 = 5;
/// The high bits of keys that joins look up for every row: vertices and edges.
const JOIN_KEY_TAGS: std::ops::RangeInclusive<u64> = 1..=2;
/// A bitmap of at most this many bytes is always used: there are few segments, and it stays in a cache.
const BITMAP_BYTES: u64 = 1 << 16;
/// Marks a stride before the number of parts, which is small.
const STRIDED: u64 = 1 << 63;
/// Shift to the bits that are equal for keys with the same tag.
const TAG_SHIFT: u32 = 60;

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
    /// A bitmap.
    Bitmap(Bitmap),
    /// A bitmap without empty blocks.
    Tiered(Tiered),
    /// Sorted numbers.
    Sparse(Sparse),
}

/// Descriptor of a key set in its section.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeySet {
    /// The parts with the position of their first key, ascending.
    parts: Vec<(u32, KeyPart)>,
    count: u32,
    /// Parts have the stored forms of keys.
    stride: Stride,
}

impl KeySet {
    /// Appends `keys`: distinct, ascending, fewer than 2^32 - 1.
    ///
    /// # Errors
    /// Too many keys.
    pub fn write(keys: &[u64], body: &mut Vec<u8>) -> Result<Self, Damaged> {
        Self::write_strided(keys, Stride::default(), body)
    }

    /// [`KeySet::write`] for keys that all have the low bits of `stride`.
    ///
    /// # Errors
    /// As [`KeySet::write`].
    pub fn write_strided(keys: &[u64], stride: Stride, body: &mut Vec<u8>) -> Result<Self, Damaged> {
        let closed: Vec<u64>;
        let keys = if stride.is_none() {
            keys
        } else {
            closed = keys.iter().map(|key| stride.close(*key)).collect();
            closed.as_slice()
        };
        let count =
            u32::try_from(keys.len()).ok().filter(|count| *count < NONE).ok_or(Damaged("too many keys"))?;
        let mut parts = Vec::new();
        let mut position = 0_u32;
        for part in keys.chunk_by(|a, b| a >> TAG_SHIFT == b >> TAG_SHIFT) {
            parts.push((position, write_part(part, body)));
            position += u32::try_from(part.len()).map_err(|_| Damaged("too many keys"))?;
        }
        Ok(Self { parts, count, stride })
    }

    /// The stored form of a key, for [`KeySet::view`].
    #[inline]
    #[must_use]
    pub const fn stride(&self) -> Stride {
        self.stride
    }

    /// Appends the descriptor.
    pub fn write_meta(&self, meta: &mut Vec<u8>) {
        if !self.stride.is_none() {
            write_u64(STRIDED | self.stride.code(), meta);
        }
        write_u64(self.parts.len() as u64, meta);
        for (_, part) in &self.parts {
            match part {
                KeyPart::Range { first, count } => {
                    for number in [0, *first, *count] {
                        write_u64(number, meta);
                    }
                }
                KeyPart::Bitmap(bitmap) => {
                    write_u64(1, meta);
                    bitmap.write_meta(meta);
                }
                KeyPart::Sparse(sparse) => {
                    write_u64(2, meta);
                    sparse.write_meta(meta);
                }
                KeyPart::Tiered(tiered) => {
                    write_u64(3, meta);
                    tiered.write_meta(meta);
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
        let mut length = meta.u64()?;
        let mut stride = Stride::default();
        if length & STRIDED != 0 {
            stride = Stride::from_code(length ^ STRIDED)?;
            length = meta.u64()?;
        }
        // Each part takes numbers of the metadata, so a wrong length ends with them.
        for _ in 0..length {
            let position = u32::try_from(total).map_err(|_| Damaged("too many keys"))?;
            let part = match meta.u64()? {
                0 => KeyPart::Range { first: meta.u64()?, count: meta.u64()? },
                1 => KeyPart::Bitmap(Bitmap::read_meta(meta, section_bytes)?),
                2 => KeyPart::Sparse(Sparse::read_meta(meta, section_bytes)?),
                3 => KeyPart::Tiered(Tiered::read_meta(meta, section_bytes)?),
                _ => return Err(Damaged("unknown kind of key set")),
            };
            total = total.checked_add(part.len()).ok_or(Damaged("too many keys"))?;
            parts.push((position, part));
        }
        let count =
            u32::try_from(total).ok().filter(|count| *count < NONE).ok_or(Damaged("too many keys"))?;
        Ok(Self { parts, count, stride })
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

    /// Size of the whole set, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let size = |part: &KeyPart| match part {
            KeyPart::Range { .. } => 0,
            KeyPart::Bitmap(bitmap) => bitmap.size_bytes(),
            KeyPart::Tiered(tiered) => tiered.size_bytes(),
            KeyPart::Sparse(sparse) => sparse.size_bytes(),
        };
        self.parts.iter().map(|(_, part)| size(part)).sum()
    }

    /// A view of the set in the bytes of its section, for keys in their stored form ([`KeySet::stride`]).
    #[inline]
    #[must_use]
    pub fn view<'a>(&'a self, section: &'a [u8]) -> KeySetView<'a> {
        match self.parts.as_slice() {
            [(_, part)] => part.view(section),
            parts => KeySetView::Parts(PartsView { parts, section }),
        }
    }

    /// Number of keys below `key`: the position of the first one that is not below.
    #[must_use]
    pub fn lower_bound(&self, section: &[u8], key: u64) -> u64 {
        let key = self.stride.close_up(key);
        let mut below = 0;
        for (base, part) in &self.parts {
            match (part.first(section) >> TAG_SHIFT).cmp(&(key >> TAG_SHIFT)) {
                Ordering::Less => below = u64::from(*base) + part.len(),
                Ordering::Equal => return u64::from(*base) + part.lower_bound(section, key).min(part.len()),
                Ordering::Greater => break,
            }
        }
        below
    }

    /// Passes up to `limit` keys from `position` on to `out` and returns the position after the last.
    pub fn list(&self, section: &[u8], position: u64, limit: usize, mut out: impl FnMut(u64)) -> u64 {
        let end = position.saturating_add(limit as u64).min(u64::from(self.count));
        let mut at = position.min(end);
        for (base, part) in &self.parts {
            let base = u64::from(*base);
            let stop = (base + part.len()).min(end);
            if at >= base && at < stop {
                part.list(section, at - base, stop - base, &mut |stored| out(self.stride.open(stored)));
                at = stop;
            }
        }
        at
    }
}

/// Appends the keys of one part in the best form.
fn write_part(keys: &[u64], body: &mut Vec<u8>) -> KeyPart {
    let (Some(first), Some(last)) = (keys.first().copied(), keys.last().copied()) else {
        panic!("a part of a key set has keys")
    };
    debug_assert!(keys.is_sorted_by(|a, b| a < b), "keys ascend and differ");
    let span = last - first;
    let count = keys.len() as u64;
    if span + 1 == count {
        return KeyPart::Range { first, count };
    }
    // Bitmaps are three to five times as fast (5 ns against 15 to 27 for a row, LUBM-40, 2026-11-20), so they
    // may be larger than the sorted numbers. The plain one saves a cache miss, so it may be somewhat larger
    // than the tiered one.
    let limit = if JOIN_KEY_TAGS.contains(&(first >> TAG_SHIFT)) {
        (count * crate::Packed::width_of(span) as u64).saturating_mul(BITMAP_FACTOR)
    } else {
        // Values are looked up a few at a time, and read in order: the smallest form, unless a bitmap takes
        // little more.
        let mut sorted = Vec::new();
        Sparse::write(keys, &mut sorted);
        sorted.len() as u64 / 5 * 6
    };
    let limit = limit.max(BITMAP_BYTES);
    let blocks_bytes = |blocks: u64| blocks.saturating_mul(BLOCK_BYTES as u64);
    let bitmap_bytes = blocks_bytes(span / 64 + 1);
    let full = keys.chunk_by(|a, b| a >> 6 == b >> 6).count() as u64;
    let tiered_bytes = blocks_bytes(full).saturating_add(blocks_bytes(span / (64 * 64) + 1));
    if bitmap_bytes <= limit && bitmap_bytes / 2 <= tiered_bytes {
        KeyPart::Bitmap(Bitmap::write(keys, body))
    } else if tiered_bytes <= limit {
        KeyPart::Tiered(Tiered::write(keys, body))
    } else {
        KeyPart::Sparse(Sparse::write(keys, body))
    }
}

impl KeyPart {
    fn len(&self) -> u64 {
        match self {
            Self::Range { count, .. } => *count,
            Self::Bitmap(bitmap) => bitmap.count,
            Self::Tiered(tiered) => tiered.count,
            Self::Sparse(sparse) => sparse.len() as u64,
        }
    }

    /// A key with the tag of this part.
    fn first(&self, section: &[u8]) -> u64 {
        match self {
            Self::Range { first, .. }
            | Self::Bitmap(Bitmap { first, .. })
            | Self::Tiered(Tiered { first, .. }) => *first,
            Self::Sparse(sparse) => sparse.view(section).key(0),
        }
    }

    /// Number of keys of this part below `key`.
    fn lower_bound(&self, section: &[u8], key: u64) -> u64 {
        match self {
            Self::Range { first, count } => key.saturating_sub(*first).min(*count),
            Self::Bitmap(bitmap) => bitmap.view(section).lower_bound(key),
            Self::Tiered(tiered) => tiered.view(section).lower_bound(key),
            Self::Sparse(sparse) => sparse.view(section).lower_bound(key),
        }
    }

    fn list(&self, section: &[u8], start: u64, end: u64, out: &mut impl FnMut(u64)) {
        match self {
            Self::Range { first, .. } => (start..end).for_each(|position| out(first.wrapping_add(position))),
            Self::Bitmap(bitmap) => bitmap.view(section).list(start, end, out),
            Self::Tiered(tiered) => tiered.view(section).list(start, end, out),
            Self::Sparse(sparse) => {
                let view = sparse.view(section);
                for position in start..end {
                    out(view.key(usize::try_from(position).unwrap_or(usize::MAX)));
                }
            }
        }
    }

    fn view<'a>(&self, section: &'a [u8]) -> KeySetView<'a> {
        match self {
            Self::Range { first, count } => KeySetView::Range(RangeView { first: *first, count: *count }),
            Self::Bitmap(bitmap) => KeySetView::Bitmap(bitmap.view(section)),
            Self::Tiered(tiered) => KeySetView::Tiered(tiered.view(section)),
            Self::Sparse(sparse) => KeySetView::Sparse(sparse.view(section)),
        }
    }
}

/// A view of a key set, for reading.
#[derive(Clone, Copy, Debug)]
pub enum KeySetView<'a> {
    /// One part: a range.
    Range(RangeView),
    /// One part: a bitmap.
    Bitmap(BitmapView<'a>),
    /// One part: a bitmap without empty blocks.
    Tiered(TieredView<'a>),
    /// One part: sorted numbers.
    Sparse(SparseView<'a>),
    /// No part, or several.
    Parts(PartsView<'a>),
}

impl Locate for KeySetView<'_> {
    #[inline(always)]
    fn position(&self, key: u64) -> u32 {
        match self {
            Self::Range(view) => view.position(key),
            Self::Bitmap(view) => view.position(key),
            Self::Tiered(view) => view.position(key),
            Self::Sparse(view) => view.position(key),
            Self::Parts(view) => view.position(key),
        }
    }
}

/// A range of consecutive numbers.
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

/// Several parts.
#[derive(Clone, Copy, Debug)]
pub struct PartsView<'a> {
    parts: &'a [(u32, KeyPart)],
    section: &'a [u8],
}

impl<'a> PartsView<'a> {
    /// The part with the tag of all `keys`, and the position of its first key; `None` if they have several
    /// tags. A tag without keys has an empty part.
    #[inline]
    pub fn of_all(&self, mut keys: impl Iterator<Item = u64>) -> Option<(u32, KeySetView<'a>)> {
        let tag = keys.next()? >> TAG_SHIFT;
        if keys.any(|key| key >> TAG_SHIFT != tag) {
            return None;
        }
        let found = self.parts.iter().find(|(_, part)| part.first(self.section) >> TAG_SHIFT == tag);
        Some(match found {
            Some((base, part)) => (*base, part.view(self.section)),
            None => (0, KeySetView::Range(RangeView { first: 0, count: 0 })),
        })
    }
}

impl Locate for PartsView<'_> {
    #[inline]
    fn position(&self, key: u64) -> u32 {
        for (base, part) in self.parts {
            if part.first(self.section) >> TAG_SHIFT == key >> TAG_SHIFT {
                return OffsetPart { base: *base, part: part.view(self.section) }.position(key);
            }
        }
        NONE
    }
}

/// A part after other parts: positions count from the first key of all.
#[derive(Clone, Copy, Debug)]
pub struct OffsetPart<L> {
    /// The position of its first key.
    pub base: u32,
    /// The part.
    pub part: L,
}

impl<L: Locate> Locate for OffsetPart<L> {
    #[inline(always)]
    fn position(&self, key: u64) -> u32 {
        match self.part.position(key) {
            NONE => NONE,
            position => self.base.saturating_add(position),
        }
    }
}
