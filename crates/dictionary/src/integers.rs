//! Number encodings: little endian of any width, decimal digits. (Varints: `vervet_codec`.)

/// Number of bytes that hold every number up to `max`; at least 1.
pub(crate) fn bytes_for(max: u64) -> usize {
    (8 - max.leading_zeros() as usize / 8).max(1)
}

/// The little-endian number in `bytes`; only the first 8 bytes count.
#[inline]
pub(crate) fn read_le(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(all) => u64::from_le_bytes(*all),
        None => bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)),
    }
}

/// The first number of `width` bytes in `bytes`, which may be longer: one load if there are 8 bytes.
#[inline]
pub(crate) fn read_first_le(bytes: &[u8], width: usize) -> u64 {
    read_le(bytes) & (u64::MAX >> (64 - 8 * width.clamp(1, 8)))
}

/// The digits of the numbers below 1000, and their count.
static SHORT: [[u8; 4]; 1000] = {
    let mut table = [[b'0', 0, 0, 1]; 1000];
    let digits = *b"0123456789";
    let mut n = 0;
    while n < 1000 {
        let (hundreds, tens, ones) = (digits[n / 100], digits[n / 10 % 10], digits[n % 10]);
        table[n] = if n >= 100 {
            [hundreds, tens, ones, 3]
        } else if n >= 10 {
            [tens, ones, 0, 2]
        } else {
            [ones, 0, 0, 1]
        };
        n += 1;
    }
    table
};

/// Maximum number of bytes that [`put_decimal`] writes.
pub(crate) const DECIMAL_BYTES_MAX: usize = 20;

/// Writes `value` with at least `width` digits at `at`; returns the position after it. Overwrites up to
/// [`DECIMAL_BYTES_MAX`] bytes, which must exist.
#[inline]
pub(crate) fn put_decimal(value: u64, width: u8, buffer: &mut [u8], at: usize) -> usize {
    if width <= 1
        && let Some(digits) = usize::try_from(value).ok().and_then(|value| SHORT.get(value))
    {
        buffer[at..at + 4].copy_from_slice(digits);
        return at + usize::from(digits[3]);
    }
    let decimal = Decimal::new(value, width);
    let digits = decimal.as_bytes();
    buffer[at..at + digits.len()].copy_from_slice(digits);
    at + digits.len()
}

/// A `u64` in decimal digits.
pub(crate) struct Decimal {
    digits: [u8; 20],
    start: usize,
}

impl Decimal {
    /// Formats with at least `width` digits (at most 20), zero padded.
    #[inline]
    pub(crate) fn new(mut value: u64, width: u8) -> Self {
        let mut digits = [b'0'; 20];
        let mut start = 20;
        loop {
            start -= 1;
            digits[start] = b'0' + (value % 10).to_le_bytes()[0];
            value /= 10;
            if value == 0 {
                break;
            }
        }
        Self { digits, start: start.min(20_usize.saturating_sub(usize::from(width))) }
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.digits[self.start..]
    }

    /// The digits as text.
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("decimal digits are ASCII")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_and_digits() {
        assert_eq!((bytes_for(0), bytes_for(255), bytes_for(256), bytes_for(u64::MAX)), (1, 1, 2, 8));
        assert_eq!(read_le(&[1, 2, 3]), 0x03_0201);
        assert_eq!(read_le(&[1, 2, 3, 4, 5]), 0x05_0403_0201);
        assert_eq!(read_first_le(&[1, 2, 3, 4, 5, 6, 7, 8, 9], 3), 0x03_0201);
        assert_eq!(read_first_le(&[1, 2, 3, 4], 3), 0x03_0201);
        for (value, width) in
            [(0, 1), (9, 0), (10, 1), (99, 1), (100, 1), (999, 1), (1000, 1), (7, 3), (u64::MAX, 1)]
        {
            let mut buffer = [0; 24];
            let end = put_decimal(value, width, &mut buffer, 2);
            let expected = format!("{value:0width$}", width = usize::from(width));
            assert_eq!(&buffer[2..end], expected.as_bytes());
        }
        assert_eq!(Decimal::new(0, 1).as_str(), "0");
        assert_eq!(Decimal::new(42, 5).as_str(), "00042");
        assert_eq!(Decimal::new(u64::MAX, 1).as_str(), "18446744073709551615");
    }
}
