//! Small stack-allocated values of the LUBM generator: decimal digits of a number, and small sets of distinct
//! numbers.

use crate::Random;
use std::ops::RangeInclusive;

/// Up to five distinct numbers below a bound.
pub(crate) struct DistinctNumbers {
    numbers: [u32; 5],
    count: usize,
}

impl DistinctNumbers {
    #[inline]
    pub(crate) fn choose(count: RangeInclusive<u32>, bound: u32, random: &mut Random) -> Self {
        let wanted = random.between(count).min(bound) as usize;
        let mut chosen = Self { numbers: [0; 5], count: 0 };
        while chosen.count < wanted {
            let number = random.below(bound);
            if !chosen.numbers().contains(&number) {
                chosen.numbers[chosen.count] = number;
                chosen.count += 1;
            }
        }
        chosen
    }

    #[inline]
    pub(crate) fn numbers(&self) -> &[u32] {
        &self.numbers[..self.count]
    }
}

/// The decimal digits of a number.
#[derive(Clone, Copy)]
pub(crate) struct Digits {
    bytes: [u8; 10],
    start: usize,
}

impl Digits {
    #[inline]
    pub(crate) fn new(mut number: u32) -> Self {
        let mut digits = Self { bytes: [b'0'; 10], start: 10 };
        loop {
            digits.start -= 1;
            digits.bytes[digits.start] = DIGITS[(number % 10) as usize];
            number /= 10;
            if number == 0 {
                return digits;
            }
        }
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

const DIGITS: &[u8; 10] = b"0123456789";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_match_numbers() {
        for number in [0, 7, 10, 99, 100, 256, 1000, 65536, u32::MAX] {
            assert_eq!(Digits::new(number).bytes(), number.to_string().as_bytes());
        }
    }

    #[test]
    fn chosen_numbers_are_distinct() {
        let mut random = Random::new(5);
        for bound in 0..8 {
            let chosen = DistinctNumbers::choose(2..=5, bound, &mut random);
            let mut numbers = chosen.numbers().to_vec();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), chosen.numbers().len());
            assert!(numbers.len() >= bound.min(2) as usize && numbers.iter().all(|number| *number < bound));
        }
    }
}
