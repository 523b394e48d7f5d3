//! Checker of delta-encoded lengths, all of which the library unpacks before it returns the first value.
//!
//! A stream of lengths declares their number, which may be huge in ten bytes; in prefix-compressed pages
//! every text may be as long as the page. This module sums both before the library reads them.
//!
//! # Source
//! Apache Parquet, "Encodings", *DELTA_BINARY_PACKED*, *DELTA_LENGTH_BYTE_ARRAY*, *DELTA_BYTE_ARRAY*. The end
//! of a stream follows the library: block widths after the last value count as zero.

const WRONG: &str = "the lengths of its texts are damaged";
const MANY: &str = "it has more lengths of texts than values";

/// Total size of the texts of a page that is encoded as lengths and texts, in bytes; `with_prefixes`: each
/// text may share a prefix with the previous one. `values_max`: maximum number of texts.
pub(super) fn text_bytes(data: &[u8], with_prefixes: bool, values_max: usize) -> Result<u64, &'static str> {
    let mut prefixes = Vec::new();
    let mut rest = data;
    if with_prefixes {
        let end = lengths(data, values_max, |length| prefixes.push(length))?;
        rest = data.get(end..).ok_or(WRONG)?;
    }
    let (mut total, mut last, mut at) = (0_u64, 0_u64, 0);
    let mut negative = false;
    lengths(rest, values_max, |length| {
        let prefix = prefixes.get(at).copied().unwrap_or_default();
        at += 1;
        match (u64::try_from(prefix), u64::try_from(length)) {
            (Ok(prefix), Ok(length)) if prefix <= last => {
                last = prefix + length;
                total = total.saturating_add(last);
            }
            _ => negative = true,
        }
    })?;
    if negative || (with_prefixes && at != prefixes.len()) { Err(WRONG) } else { Ok(total) }
}

/// Passes the lengths of a stream to `each` and returns its end.
fn lengths(data: &[u8], values_max: usize, mut each: impl FnMut(i32)) -> Result<usize, &'static str> {
    let mut bits = BitReader { data, at: 0 };
    let small = |number: u64| usize::try_from(number).map_err(|_| WRONG);
    let block_size = small(bits.number()?)?;
    let parts = small(bits.number()?)?;
    let count = small(bits.number()?)?;
    let first = signed(bits.number()?)?;
    if parts == 0 || block_size % 128 != 0 || block_size % parts != 0 || (block_size / parts) % 32 != 0 {
        return Err(WRONG);
    }
    if count > values_max {
        return Err(MANY);
    }
    let in_part = block_size / parts;
    if count == 0 {
        return Ok(bits.at / 8);
    }
    let mut value = first;
    each(value);
    let mut left = count - 1;
    let mut end = bits.at / 8;
    while left > 0 {
        if in_part == 0 {
            return Err(WRONG);
        }
        let least = signed(bits.number()?)?;
        let widths = bits.bytes(parts)?;
        end = bits.at / 8;
        let mut waiting = left;
        for &width in widths {
            if waiting == 0 {
                break;
            }
            waiting = waiting.saturating_sub(in_part);
            end = usize::from(width)
                .checked_mul(in_part)
                .and_then(|bits| end.checked_add(bits / 8))
                .ok_or(WRONG)?;
        }
        for &width in widths {
            for _ in 0..in_part.min(left) {
                value = value.wrapping_add(least).wrapping_add(bits.packed(width)?);
                each(value);
            }
            left = left.saturating_sub(in_part);
            if left == 0 {
                break;
            }
        }
        if left > 0 {
            // The next block starts at a byte boundary: miniblocks have multiples of 32 values.
            bits.at = bits.at.next_multiple_of(8);
        }
    }
    Ok(end.max(bits.at.div_ceil(8)))
}

/// Decodes a zigzag number of 32 bits.
fn signed(number: u64) -> Result<i32, &'static str> {
    i32::try_from((number >> 1).cast_signed() ^ -(number & 1).cast_signed()).map_err(|_| WRONG)
}

/// Bit reader, least significant bit first.
struct BitReader<'a> {
    data: &'a [u8],
    /// Position in bits.
    at: usize,
}

impl<'a> BitReader<'a> {
    fn number(&mut self) -> Result<u64, &'static str> {
        let mut number = 0_u64;
        for shift in (0..63).step_by(7) {
            let byte = *self.data.get(self.at / 8).ok_or(WRONG)?;
            self.at += 8;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(WRONG)
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8], &'static str> {
        let start = self.at / 8;
        let bytes = start.checked_add(count).and_then(|end| self.data.get(start..end)).ok_or(WRONG)?;
        self.at += 8 * count;
        Ok(bytes)
    }

    fn packed(&mut self, width: u8) -> Result<i32, &'static str> {
        if width > 32 {
            return Err(WRONG);
        }
        let (start, shift) = (self.at / 8, self.at % 8);
        let end = self.at + usize::from(width);
        let bytes = self.data.get(start..end.div_ceil(8)).ok_or(WRONG)?;
        self.at = end;
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let mask = (1_u64 << width) - 1;
        let number = (u64::from_le_bytes(word) >> shift) & mask;
        // An unsigned 32-bit number, as in the library.
        Ok(u32::try_from(number).map_err(|_| WRONG)?.cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream of one block with miniblocks of 32 values, of which the first has 4 bits per value.
    fn stream(values: &[u8]) -> Vec<u8> {
        let count = u8::try_from(values.len()).expect("few");
        let mut bytes = vec![0x80, 1, 4, count, 2 * values[0]];
        if values.len() > 1 {
            bytes.push(15); // The minimum difference: -8.
            bytes.extend([4, 0, 0, 0]);
            let mut packed = [0_u8; 16];
            for (at, pair) in values.windows(2).enumerate() {
                packed[at / 2] |= (pair[1] + 8 - pair[0]) << (4 * (at % 2));
            }
            bytes.extend(packed);
        }
        bytes
    }

    #[test]
    fn lengths_are_read() {
        for values in [&[3][..], &[3, 4], &[1, 2, 7, 0, 5, 5], &[0; 33]] {
            let mut found = Vec::new();
            let bytes = stream(values);
            let end = lengths(&bytes, 40, |value| found.push(u8::try_from(value).expect("small")));
            assert_eq!(end, Ok(bytes.len()), "{values:?}");
            assert_eq!(found, values);
            assert_eq!(lengths(&bytes, values.len() - 1, |_| ()), Err(MANY));
            for end in 0..bytes.len() {
                let cut = lengths(&bytes[..end], 40, |_| ());
                // Padding after the last value may be missing.
                assert!(cut.is_err() || cut == Ok(bytes.len()), "{end}");
            }
        }
    }

    #[test]
    fn prefix_compressed_texts_are_summed() {
        let texts = [stream(&[0, 5, 5]), stream(&[5, 0, 2])].concat();
        assert_eq!(text_bytes(&texts, true, 3), Ok(5 + 5 + 7));
        assert_eq!(text_bytes(&stream(&[5, 0, 2]), false, 3), Ok(7));
        assert_eq!(text_bytes(&[stream(&[0, 6]), stream(&[5, 0])].concat(), true, 3), Err(WRONG));
        assert_eq!(text_bytes(&[stream(&[0]), stream(&[5, 0])].concat(), true, 3), Err(WRONG));
        // Ten bytes that declare the maximum number of lengths.
        assert_eq!(text_bytes(&[0x80, 1, 4, 0xFF, 0xFF, 0xFF, 0x7F, 0], false, 1000), Err(MANY));
    }
}
