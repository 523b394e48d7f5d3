//! Radix sort of narrow and of packed entries: 64-bit numbers in which few bits vary.
//!
//! # Cost
//! One pass of 11 bits costs about 2 ns a number; bits that are equal in all numbers cost nothing. Ids of a
//! million vertices in both halves: 4 passes, and 2 for the reverse direction, whose input is already ordered
//! by the other half. Sorted input costs one pass.

use vervet_model::{Result, Watch};

/// Minimum size for counting; below this, comparison sort is faster.
const RADIX_MIN: usize = 4096;
const DIGIT_BITS: u32 = 11;
const DIGITS: usize = 1 << DIGIT_BITS;

/// Sorts `numbers`. Numbers that are equal inside `mask` must already be ordered by the bits outside.
/// `scratch` is working space.
///
/// # Errors
/// Those of `watch`, which is checked before each pass.
pub(crate) fn sort(
    numbers: &mut Vec<u64>,
    mask: u64,
    scratch: &mut Vec<u64>,
    watch: &Watch<'_>,
) -> Result<()> {
    if numbers.is_sorted() {
        return Ok(());
    }
    if numbers.len() < RADIX_MIN {
        numbers.sort_unstable();
        return Ok(());
    }
    let first = numbers[0];
    let mut varying = numbers.iter().fold(0, |bits, number| bits | (number ^ first)) & mask;
    scratch.clear();
    scratch.resize(numbers.len(), 0);
    while varying != 0 {
        watch.check()?;
        let shift = varying.trailing_zeros();
        pass(numbers, scratch, shift);
        std::mem::swap(numbers, scratch);
        varying = varying.checked_shr(shift + DIGIT_BITS).map_or(0, |rest| rest << (shift + DIGIT_BITS));
    }
    Ok(())
}

/// Moves the numbers of `from` to `to` in the order of the 11 bits at `shift`, stably.
fn pass(from: &[u64], to: &mut [u64], shift: u32) {
    #[expect(clippy::cast_possible_truncation, reason = "masked to 11 bits")]
    let digit = |number: u64| (number >> shift) as usize & (DIGITS - 1);
    let mut positions = [0_usize; DIGITS];
    for number in from {
        positions[digit(*number)] += 1;
    }
    let mut sum = 0;
    for position in &mut positions {
        sum += std::mem::replace(position, sum);
    }
    for number in from {
        let position = &mut positions[digit(*number)];
        to[*position] = *number;
        *position += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_like_the_library() {
        let mut state = 88_172_645_463_325_252_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for (count, bits) in
            [(0, 0), (1, u64::MAX), (100, u64::MAX), (20_000, u64::MAX), (20_000, 0x1F_FFFF_001F_FFFF)]
        {
            let mut numbers: Vec<u64> = (0..count).map(|_| next() & bits).collect();
            let mut expected = numbers.clone();
            expected.sort_unstable();
            let mut scratch = Vec::new();
            sort(&mut numbers, u64::MAX, &mut scratch, &Watch::new("test")).unwrap();
            assert_eq!(numbers, expected);
            let mut turned: Vec<u64> = expected.iter().map(|number| number.rotate_left(32)).collect();
            sort(&mut turned, u64::MAX << 32, &mut scratch, &Watch::new("test")).unwrap();
            assert!(turned.is_sorted());
        }
    }
}
