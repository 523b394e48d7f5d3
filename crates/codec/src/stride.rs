//! Keys of which the low bits are all equal, such as those of one partition: stored without these bits.
//!
//! # Shape
//! Numbers with the tags of [`STRIDED_TAGS`] (vertices, edges and literals of the dictionary) lose `bits` low
//! bits, which are `residue` in all of them; other keys stay as they are. The order of keys stays the same.
//! # Cost
//! A shift and a comparison for each key. Without it the bitmaps of 2^bits partitions would be as large
//! together as 2^bits bitmaps of all keys.

use crate::bytes::Damaged;

/// Shift to the tag of a key.
const TAG_SHIFT: u32 = 60;
/// The tags of keys that are shortened.
const STRIDED_TAGS: std::ops::RangeInclusive<u64> = 1..=3;
/// Maximum number of equal low bits.
const BITS_MAX: u32 = 12;

/// See the header of this file. The default changes no key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stride {
    bits: u32,
    residue: u64,
}

impl Stride {
    /// Keys that end in the low `bits` bits of `residue`; `None`: more bits than supported.
    #[must_use]
    pub const fn new(bits: u32, residue: u64) -> Option<Self> {
        if bits > BITS_MAX {
            return None;
        }
        Some(Self { bits, residue: residue & ((1 << bits) - 1) })
    }

    /// Whether keys stay as they are.
    #[inline]
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.bits == 0
    }

    const fn mask(self) -> u64 {
        (1 << self.bits) - 1
    }

    /// The stored form of a key; `u64::MAX`, which is none, for a key with other low bits.
    #[inline]
    #[must_use]
    pub fn close(self, key: u64) -> u64 {
        if !STRIDED_TAGS.contains(&(key >> TAG_SHIFT)) {
            return key;
        }
        if key & self.mask() == self.residue { self.shift(key) } else { u64::MAX }
    }

    /// The key of a stored form.
    #[inline]
    #[must_use]
    pub fn open(self, stored: u64) -> u64 {
        let tag = stored >> TAG_SHIFT;
        if STRIDED_TAGS.contains(&tag) {
            let number = stored & ((1 << TAG_SHIFT) - 1);
            tag << TAG_SHIFT | (number << self.bits) & ((1 << TAG_SHIFT) - 1) | self.residue
        } else {
            stored
        }
    }

    /// The least stored form whose key is not below `key`.
    #[must_use]
    pub fn close_up(self, key: u64) -> u64 {
        if !STRIDED_TAGS.contains(&(key >> TAG_SHIFT)) {
            return key;
        }
        let stored = self.shift(key);
        stored + u64::from(key & self.mask() > self.residue)
    }

    const fn shift(self, key: u64) -> u64 {
        let tag = key >> TAG_SHIFT << TAG_SHIFT;
        tag | (key ^ tag) >> self.bits
    }

    /// A number for the descriptor of a key set, 0 for no stride.
    pub(crate) const fn code(self) -> u64 {
        self.residue << 8 | self.bits as u64
    }

    /// The inverse of [`Stride::code`].
    pub(crate) fn from_code(code: u64) -> Result<Self, Damaged> {
        let stride = u32::try_from(code & 0xFF).ok().and_then(|bits| Self::new(bits, code >> 8));
        stride.filter(|stride| stride.code() == code).ok_or(Damaged("unknown stride of keys"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_round_trip_in_order() {
        for (bits, residue) in [(0, 0), (1, 1), (4, 5), (12, 4_095)] {
            let stride = Stride::new(bits, residue).expect("few bits");
            assert_eq!(Stride::from_code(stride.code()).ok(), Some(stride));
            let mut last = None;
            for tag in [1_u64, 2, 3, 4, 12] {
                for number in (0..500).chain([1 << 40]) {
                    let number = if tag <= 3 { number << bits | residue } else { number };
                    let key = tag << 60 | number;
                    let stored = stride.close(key);
                    assert_eq!(stride.open(stored), key, "{stride:?} {key:x}");
                    assert!(last.replace(stored).is_none_or(|last| last < stored), "{stride:?} {key:x}");
                }
            }
        }
        assert!(Stride::new(13, 0).is_none());
        assert!(Stride::from_code(1 << 8).is_err(), "a residue without bits");
        assert!(Stride::from_code(200).is_err());
    }

    #[test]
    fn bounds_are_those_of_the_keys() {
        let stride = Stride::new(3, 5).expect("few bits");
        let keys: Vec<u64> = (0..50).map(|n| 1 << 60 | n << 3 | 5).collect();
        for key in (0..=405).map(|n| 1_u64 << 60 | n) {
            let below = keys.iter().filter(|other| **other < key).count() as u64;
            assert_eq!(stride.close_up(key) & 0xFFFF, below, "{key:x}");
            let is_key = keys.contains(&key);
            assert_eq!(stride.close(key) != u64::MAX, is_key || key & 7 == 5, "{key:x}");
        }
    }
}
