//! Pseudo-random number generator, stable between versions, since generated data depends on it.
//!
//! # Source
//! xoshiro256++ with its state filled by `SplitMix64`: Blackman and Vigna, "Scrambled Linear Pseudorandom
//! Number Generators", ACM TOMS 2021. Ranges by multiplication: Lemire, "Fast Random Integer Generation
//! in an Interval", ACM TOMACS 2019, without the rejection step; a range here has far fewer than 2^32
//! members, so the bias is below one in 2^32.
//! # Not here
//! Cryptographic security.

use std::ops::RangeInclusive;

/// A small deterministic generator of pseudo-random numbers.
///
/// ```
/// use vervet_generate::Random;
/// let (mut a, mut b) = (Random::new(7), Random::new(7));
/// assert_eq!(a.between(1..=6), b.between(1..=6));
/// ```
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// A generator determined by `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut mixed = seed;
        let state = std::array::from_fn(|_| split_mix(&mut mixed));
        Self { state }
    }

    /// A generator for part `part` of a dataset with this seed: parts can be generated in any order.
    #[must_use]
    pub fn for_part(seed: u64, part: &[u64]) -> Self {
        let mut mixed = seed;
        for &number in part {
            mixed = split_mix(&mut mixed) ^ number.wrapping_mul(0xd6e8_feb8_6659_fd93);
        }
        Self::new(split_mix(&mut mixed))
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// A number below `bound`; 0 if `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        high_half((self.next_u64() >> 32) * u64::from(bound))
    }

    /// A number in `range`, whose start must not be above its end.
    #[inline]
    pub fn between(&mut self, range: RangeInclusive<u32>) -> u32 {
        range.start() + self.below(range.end() - range.start() + 1)
    }

    /// An index below `length`; 0 if `length` is 0. Lengths above 2^32 are not reached.
    #[inline]
    pub fn index(&mut self, length: usize) -> usize {
        self.below(u32::try_from(length).unwrap_or(u32::MAX)) as usize
    }

    /// A number in `[0, 1)` with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True once in `times`.
    #[inline]
    pub fn one_in(&mut self, times: u32) -> bool {
        self.below(times) == 0
    }

    /// One of `items`, which must not be empty.
    #[inline]
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// Shuffles `items`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.index(end + 1));
        }
    }
}

#[inline]
fn high_half(number: u64) -> u32 {
    (number >> 32) as u32
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every member of a range occurs about equally often, and no other number occurs.
    #[test]
    fn ranges_are_uniform() {
        let mut random = Random::new(1);
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[random.between(5..=14) as usize - 5] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..=10_500).contains(count)), "{counts:?}");
        assert_eq!(random.below(0), 0);
    }

    /// The sequence of numbers is part of the format of generated data and must not change.
    #[test]
    fn the_sequence_is_stable() {
        let mut random = Random::new(0);
        assert_eq!(random.next_u64(), 0x5317_5d61_490b_23df);
        let mut reordered: Vec<u32> = (0..100).collect();
        random.shuffle(&mut reordered);
        reordered.sort_unstable();
        assert_eq!(reordered, (0..100).collect::<Vec<_>>());
    }
}
