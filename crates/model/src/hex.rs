//! Hexadecimal digits.

const DIGITS: [u8; 16] = *b"0123456789abcdef";

/// The bytes as lower-case hexadecimal digits, two for each.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from(DIGITS[usize::from(digit)]));
        }
    }
    text
}
