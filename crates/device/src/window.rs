//! Windows: runs of keys of a segment with their neighbours, as device kernels read them.
//!
//! # Shape
//! A header of 9 words, the key set (nothing for consecutive keys; blocks of 64 bits and a rank; or packed
//! keys), an offset of 4 bytes for each key and one more (absent if each key has one entry), and the packed
//! neighbours. `kernels/window.cuh` reads this format and documents each field.
//! # Cost
//! A look-up of a key: one load for consecutive keys, two in a bitmap, a binary search in packed keys. Keys
//! and neighbours of one window are copied together, so a resident key always has its neighbours.

/// Size of the header of a window, in bytes.
pub const WINDOW_HEADER_BYTES: u64 = 8 * HEADER_WORDS as u64;

const HEADER_WORDS: usize = 9;
const KEYS_RANGE: u64 = 0;
const KEYS_BITMAP: u64 = 1;
const KEYS_SORTED: u64 = 2;

/// Upper bound of the bytes of a window with this many keys and entries.
#[must_use]
pub const fn window_bytes_max(keys: u64, entries: u64) -> u64 {
    // Each part ends with up to 19 bytes of padding.
    WINDOW_HEADER_BYTES + 8 * keys + 4 * (keys + 1) + 8 * entries + 3 * 24
}

/// An encoded window.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window {
    words: Vec<u64>,
}

impl Window {
    /// Encodes keys (ascending, distinct, at least one) and their neighbours, which ascend for each key.
    /// `ends[i]` is the end of the neighbours of key `i`; every key has one at least. `None`: the lists do
    /// not fit together, or there are 2^32 entries or more.
    #[must_use]
    pub fn encode(keys: &[u64], ends: &[u32], neighbours: &[u64]) -> Option<Self> {
        let (&first, &last) = (keys.first()?, keys.last()?);
        if keys.len() != ends.len() || ends.last().map(|end| *end as usize) != Some(neighbours.len()) {
            return None;
        }
        let mut header = [0; HEADER_WORDS];
        let mut body = Vec::new();
        let end = |body: &Vec<u64>| 8 * (HEADER_WORDS + body.len()) as u64;
        header[0] = first;
        header[1] = keys.len() as u64;
        header[4] = end(&body);
        let span = last.checked_sub(first)?;
        let width = width_of(span);
        if span == keys.len() as u64 - 1 {
            header[2] = KEYS_RANGE;
        } else if 16 * (span / 64 + 1) <= keys.len() as u64 * width {
            header[2] = KEYS_BITMAP;
            header[3] = span / 64 + 1;
            push_bitmap(keys, first, &mut body)?;
        } else {
            header[2] = KEYS_SORTED;
            header[3] = width;
            push_packed(keys, first, width, &mut body);
        }
        if ends.len() != neighbours.len() {
            header[5] = end(&body);
            let mut offsets = std::iter::once(&0).chain(ends);
            while let Some(low) = offsets.next() {
                let high = offsets.next().copied().unwrap_or(0);
                body.push(u64::from(*low) | u64::from(high) << 32);
            }
        }
        let minimum = neighbours.iter().copied().min()?;
        let maximum = neighbours.iter().copied().max()?;
        header[6] = end(&body);
        header[7] = width_of(maximum - minimum);
        header[8] = minimum;
        push_packed(neighbours, minimum, header[7], &mut body);
        let mut words = header.to_vec();
        words.append(&mut body);
        Some(Self { words })
    }

    /// The words to copy to the device.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }
}

/// Number of bytes that numbers up to `span` need.
fn width_of(span: u64) -> u64 {
    u64::from(64 - span.leading_zeros()).div_ceil(8)
}

fn push_bitmap(keys: &[u64], first: u64, body: &mut Vec<u64>) -> Option<()> {
    let start = body.len();
    for (rank, key) in (0_u64..).zip(keys) {
        let distance = key.checked_sub(first)?;
        let block = start + 2 * usize::try_from(distance / 64).ok()?;
        while body.len() <= block {
            // The bits of the block, and the number of keys before it.
            body.extend([0, rank]);
        }
        body[block] |= 1 << (distance % 64);
    }
    Some(())
}

fn push_packed(values: &[u64], minimum: u64, width: u64, body: &mut Vec<u64>) {
    let mut pending = 0_u128;
    let mut bits = 0;
    for value in values {
        pending |= u128::from(value.wrapping_sub(minimum)) << bits;
        bits += 8 * width;
        if bits >= 64 {
            #[expect(clippy::cast_possible_truncation, reason = "the low word")]
            body.push(pending as u64);
            pending >>= 64;
            bits -= 64;
        }
    }
    // The rest, and 12 readable bytes behind the last element.
    #[expect(clippy::cast_possible_truncation, reason = "fewer than 64 bits are pending")]
    body.extend([pending as u64, 0, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(body: &[u64], minimum: u64, width: u64, count: usize) -> Vec<u64> {
        let bytes: Vec<u8> = body.iter().flat_map(|word| word.to_le_bytes()).collect();
        let width = usize::try_from(width).unwrap();
        let value = |index: usize| {
            let mut bits = [0; 8];
            bits[..width].copy_from_slice(&bytes[index * width..(index + 1) * width]);
            minimum + u64::from_le_bytes(bits)
        };
        (0..count).map(value).collect()
    }

    #[test]
    fn packed_values_are_read_back_at_every_width() {
        for bits in 0..64 {
            let values: Vec<u64> = (0..40).map(|i| 5 + (i * 0x9E37_79B9 % (1_u64 << bits))).collect();
            let minimum = *values.iter().min().unwrap();
            let width = width_of(values.iter().max().unwrap() - minimum);
            let mut body = Vec::new();
            push_packed(&values, minimum, width, &mut body);
            assert_eq!(unpacked(&body, minimum, width, values.len()), values, "{bits} bits");
        }
        assert_eq!([0, 1, 255, 256, u64::MAX].map(width_of), [0, 1, 1, 2, 8]);
    }

    #[test]
    fn windows_stay_below_the_bound_of_their_size() {
        for keys in [1_u64, 2, 3, 100] {
            for step in [1, 2, 90, 1 << 40] {
                for degree in [1, 2, 7] {
                    let list: Vec<u64> = (0..keys).map(|key| 9 + key * step).collect();
                    let ends: Vec<u32> = (1..=u32::try_from(keys).unwrap()).map(|key| key * degree).collect();
                    let entries = keys * u64::from(degree);
                    let neighbours: Vec<u64> = (0..entries).map(|entry| entry << 50).collect();
                    let window = Window::encode(&list, &ends, &neighbours).unwrap();
                    assert!(8 * window.words().len() as u64 <= window_bytes_max(keys, entries));
                }
            }
        }
    }

    #[test]
    fn lists_that_do_not_fit_together_are_no_window() {
        assert_eq!(Window::encode(&[], &[], &[]), None);
        assert_eq!(Window::encode(&[1], &[2], &[5]), None);
        assert_eq!(Window::encode(&[1, 2], &[1], &[5]), None);
        assert_eq!(Window::encode(&[2, 1], &[1, 2], &[5, 6]), None);
    }
}
