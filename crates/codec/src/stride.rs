//! Keys of which some low bits are all equal, such as those of one partition: stored without these bits.
//!
//! # Shape
//! Numbers with the tags of [`STRIDED_TAGS`] (vertices, edges and literals of the dictionary) lose `bits`
//! bits above the `run_bits` lowest ones, which are `residue` in all of them; other keys stay as they are.
//! The order of keys stays the same.
//! # Cost
//! A shift and a comparison for each key. Without it the bitmaps of 2^bits partitions would be as large
//! together as 2^bits bitmaps of all keys.

use crate::bytes::Damaged;

/// Shift to the tag of a key.
const TAG_SHIFT: u32 = 60;
/// The tags of keys that are shortened.
const STRIDED_TAGS: std::ops::RangeInclusive<u64> = 1..=3;
/// Maximum number of equal bits.
const BITS_MAX: u32 = 12;
/// Maximum number of bits below them.
const RUN_BITS_MAX: u32 = 16;
/// Shift to these in [`Stride::code`].
const RUN_SHIFT: u32 = 32;

/// See the header of this file. The default changes no key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stride {
    bits: u32,
    residue: u64,
    run_bits: u32,
}

impl Stride {
    /// Keys that have the low `bits` bits of `residue` above their `run_bits` lowest ones; `None`: more bits
    /// than supported.
    #[must_use]
    pub const fn new(bits: u32, residue: u64, run_bits: u32) -> Option<Self> {
        if bits > BITS_MAX || run_bits > RUN_BITS_MAX {
            return None;
        }
        // Without equal bits no key changes, whatever is below them.
        let run_bits = if bits == 0 { 0 } else { run_bits };
        Some(Self { bits, residue: residue & ((1 << bits) - 1), run_bits })
    }

    /// Whether keys stay as they are.
    #[inline]
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.bits == 0
    }

    /// The bits of a key that are equal in all.
    const fn equal_bits(self, key: u64) -> u64 {
        key >> self.run_bits & ((1 << self.bits) - 1)
    }

    /// The bits below these.
    const fn run(self, key: u64) -> u64 {
        key & ((1 << self.run_bits) - 1)
    }

    /// The stored form of a key; `u64::MAX`, which is none, for a key with other bits.
    #[inline]
    #[must_use]
    pub fn close(self, key: u64) -> u64 {
        if !STRIDED_TAGS.contains(&(key >> TAG_SHIFT)) {
            return key;
        }
        if self.equal_bits(key) == self.residue { self.shift(key) | self.run(key) } else { u64::MAX }
    }

    /// The key of a stored form.
    #[inline]
    #[must_use]
    pub fn open(self, stored: u64) -> u64 {
        let tag = stored >> TAG_SHIFT;
        if STRIDED_TAGS.contains(&tag) {
            let number = stored & ((1 << TAG_SHIFT) - 1);
            let above = (number >> self.run_bits << (self.run_bits + self.bits)) & ((1 << TAG_SHIFT) - 1);
            tag << TAG_SHIFT | above | self.residue << self.run_bits | self.run(number)
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
        let start = self.shift(key);
        match self.equal_bits(key) {
            equal if equal == self.residue => start | self.run(key),
            equal => start + (u64::from(equal > self.residue) << self.run_bits),
        }
    }

    /// The stored form of the first key of a run.
    const fn shift(self, key: u64) -> u64 {
        let tag = key >> TAG_SHIFT << TAG_SHIFT;
        tag | (key ^ tag) >> (self.bits + self.run_bits) << self.run_bits
    }

    /// A number for the descriptor of a key set, 0 for no stride.
    pub(crate) const fn code(self) -> u64 {
        (self.run_bits as u64) << RUN_SHIFT | self.residue << 8 | self.bits as u64
    }

    /// The inverse of [`Stride::code`].
    pub(crate) fn from_code(code: u64) -> Result<Self, Damaged> {
        let low = |number: u64| u32::try_from(number).ok();
        let residue = code >> 8 & ((1 << (RUN_SHIFT - 8)) - 1);
        let stride = low(code & 0xFF)
            .zip(low(code >> RUN_SHIFT))
            .and_then(|(bits, run)| Self::new(bits, residue, run));
        stride.filter(|stride| stride.code() == code).ok_or(Damaged("unknown stride of keys"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_round_trip_in_order() {
        for (bits, residue, run) in
            [(0, 0, 0), (1, 1, 0), (4, 5, 0), (12, 4_095, 0), (1, 0, 3), (4, 9, 8), (12, 7, 16)]
        {
            let stride = Stride::new(bits, residue, run).expect("few bits");
            assert_eq!(Stride::from_code(stride.code()).ok(), Some(stride));
            let mut last = None;
            for tag in [1_u64, 2, 3, 4, 12] {
                for number in (0..500).chain([1 << 40]) {
                    let number = match tag {
                        1..=3 => (number >> run << bits | residue) << run | number & ((1 << run) - 1),
                        _ => number,
                    };
                    let key = tag << 60 | number;
                    let stored = stride.close(key);
                    assert_eq!(stride.open(stored), key, "{stride:?} {key:x}");
                    assert!(last.replace(stored).is_none_or(|last| last < stored), "{stride:?} {key:x}");
                }
            }
        }
        assert!(Stride::new(13, 0, 0).is_none() && Stride::new(1, 0, 17).is_none());
        assert!(Stride::from_code(1 << 8).is_err(), "a residue without bits");
        assert!(Stride::from_code(1 << 32).is_err(), "a run without bits");
        assert!(Stride::from_code(200).is_err() && Stride::from_code(17 << 32 | 1).is_err());
    }

    #[test]
    fn bounds_are_those_of_the_keys() {
        for run in [0, 1, 4] {
            let stride = Stride::new(3, 5, run).expect("few bits");
            let number = |n: u64| (n >> run << 3 | 5) << run | n & ((1 << run) - 1);
            let keys: Vec<u64> = (0..400).map(|n| 1 << 60 | number(n)).collect();
            for key in (0..=405).map(|n| 1_u64 << 60 | n) {
                let below = keys.iter().filter(|other| **other < key).count() as u64;
                assert_eq!(stride.close_up(key) & 0xFFFF, below, "{run} {key:x}");
                assert_eq!(stride.close(key) != u64::MAX, keys.contains(&key), "{run} {key:x}");
            }
        }
    }
}
