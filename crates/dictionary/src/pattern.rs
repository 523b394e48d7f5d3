//! Patterns: the common structure of many terms, found by replacing their numbers with slots.
//!
//! `http://www.Department3.University0.edu/Course12` has the pattern
//! `http://www.Department#.University#.edu/Course#` and the numbers 3, 0, 12. Machine-numbered data (most
//! data) has few patterns, so a term is stored as the number of its pattern and its numbers.
//!
//! # Shape
//! A pattern is the bytes of the text in which a slot is [`SLOT`] (a byte that never occurs in UTF-8) and one
//! more byte: 0 for a slot that takes the rest of the text (always the last), 19 for one that takes it as
//! codes (see `symbols`), else the number of digits to pad to with zeros; 1 is a number without leading
//! zeros.
//! # Invariants
//! Filling the slots of a pattern with the extracted values restores the exact text.

/// First byte of a slot in a pattern.
pub(crate) const SLOT: u8 = 0xFF;
/// Second byte of a slot that takes the rest of the text.
pub(crate) const REST: u8 = 0;
/// Second byte of a slot that takes the rest of the text as codes.
pub(crate) const CODED: u8 = 19;
/// Maximum number of numbers in a pattern; more are noise (a UUID, a hash), not structure.
pub(crate) const NUMBERS_MAX: usize = 8;
/// Maximum length of a number, so that it fits a `u64`; longer runs of digits stay text.
pub(crate) const DIGITS_MAX: usize = 18;
/// Maximum length of a pattern.
const PATTERN_BYTES_MAX: usize = 512;

/// A pattern and its number of numbers; reused from text to text.
#[derive(Default)]
pub(crate) struct Pattern {
    pub(crate) bytes: Vec<u8>,
    count: usize,
}

impl Pattern {
    /// Extracts the numbers of `text`; `false` if it has none, or too many, or is too long.
    pub(crate) fn take_numbers(&mut self, text: &[u8]) -> bool {
        self.bytes.clear();
        self.count = 0;
        if text.len() > PATTERN_BYTES_MAX {
            return false;
        }
        let (mut at, mut copied) = (0, 0);
        loop {
            at += digit_position(&text[at..]);
            if at >= text.len() {
                break;
            }
            let start = at;
            while text.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
            let digits = at - start;
            if digits > DIGITS_MAX {
                continue;
            }
            if self.count == NUMBERS_MAX {
                return false;
            }
            self.count += 1;
            let padded = text[start] == b'0' && digits > 1;
            self.bytes.extend_from_slice(&text[copied..start]);
            self.bytes.extend_from_slice(&[SLOT, if padded { digits.to_le_bytes()[0] } else { 1 }]);
            copied = at;
        }
        self.bytes.extend_from_slice(&text[copied..]);
        self.count > 0
    }

    /// The pattern of all texts that start with `prefix`.
    pub(crate) fn of_prefix(&mut self, prefix: &[u8]) {
        self.count = 0;
        self.bytes.clear();
        self.bytes.extend_from_slice(prefix);
        self.bytes.extend_from_slice(&[SLOT, REST]);
    }
}

/// The position of the first digit, or the length; scans eight bytes at a time.
#[inline]
fn digit_position(text: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    let mut at = 0;
    while let Some(bytes) = text.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        // `0` to `9` become 0 to 9; any other byte has the top bit set before or after the addition.
        let from_zero = u64::from_le_bytes(*bytes) ^ (ONES * 0x30);
        let others = ((from_zero & (ONES * 0x7F)) + ONES * 0x76) | from_zero;
        let digits = !others & (ONES << 7);
        if digits != 0 {
            return at + digits.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + text[at..].iter().position(u8::is_ascii_digit).unwrap_or(text.len() - at)
}

/// A pattern with numbers, split at its slots.
#[derive(Debug)]
pub(crate) struct SplitPattern {
    head: Box<[u8]>,
    /// The width of each slot, and the text after it.
    slots: Box<[(u8, Box<[u8]>)]>,
}

impl SplitPattern {
    /// Parses a pattern; `None` if its slot takes the rest.
    pub(crate) fn new(pattern: &[u8]) -> Option<Self> {
        let mut pieces = pattern.split(|byte| *byte == SLOT);
        let head = pieces.next()?.into();
        let slot = |piece: &[u8]| {
            let (&width, text) = piece.split_first()?;
            (width != REST).then(|| (width, text.into()))
        };
        Some(Self { head, slots: pieces.map(slot).collect::<Option<_>>()? })
    }

    /// Extracts from `text` the numbers that fill this form; `None` if `text` has another pattern. Equivalent
    /// to [`Pattern::take_numbers`] and a comparison, but faster.
    pub(crate) fn take_numbers(&self, text: &[u8], numbers: &mut Vec<u64>) -> Option<()> {
        numbers.clear();
        let mut rest = text.strip_prefix(&*self.head)?;
        for (width, behind) in &self.slots {
            let (mut number, mut count) = (0_u64, 0_usize);
            while let Some(digit) =
                rest.get(count).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10)
            {
                number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
                count += 1;
            }
            let padded = count > 1 && rest[0] == b'0';
            let expected = if padded { count.to_le_bytes()[0] } else { 1 };
            if count == 0 || count > DIGITS_MAX || *width != expected {
                return None;
            }
            numbers.push(number);
            rest = rest[count..].strip_prefix(&**behind)?;
        }
        rest.is_empty().then_some(())
    }
}

/// The part of an IRI up to its last separator that is not its last byte, if that part is not too long.
pub(crate) fn namespace(iri: &[u8]) -> Option<&[u8]> {
    let inner = iri.split_last()?.1;
    let last = inner.iter().rposition(|byte| matches!(byte, b'/' | b'#' | b':'))?;
    // The separator is ASCII, so this is a character boundary.
    iri.get(..=last).filter(|namespace| namespace.len() <= PATTERN_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_split_off() {
        let mut pattern = Pattern::default();
        assert!(pattern.take_numbers(b"a1b007c"));
        assert_eq!(pattern.bytes, b"a\xFF\x01b\xFF\x03c");
        let mut numbers = Vec::new();
        let form = SplitPattern::new(&pattern.bytes).expect("numbers");
        assert!(form.take_numbers(b"a1b007c", &mut numbers).is_some());
        assert_eq!(numbers, [1, 7]);
        assert!(!pattern.take_numbers(b"none"));
        assert!(!pattern.take_numbers(b"1a1a1a1a1a1a1a1a1"));
        assert!(!pattern.take_numbers(b"1234567890123456789"), "too long a number is text");
        assert!(pattern.take_numbers(b"0"));
        assert_eq!(pattern.bytes, b"\xFF\x01");
    }

    #[test]
    fn numbers_are_split_by_pattern() {
        let texts: [&[u8]; 12] = [
            b"a1b007c",
            b"a2b008c",
            b"a2b08c",
            b"a2b8c",
            b"a2b008",
            b"a2b008cc",
            b"0",
            b"00",
            b"12",
            b"1234567890123456789",
            b"x1234567890123456789y1",
            b"x1234567890123456789y23",
        ];
        let (mut pattern, mut other, mut numbers) = (Pattern::default(), Pattern::default(), Vec::new());
        for form in texts.iter().filter(|text| pattern.take_numbers(text)).copied().collect::<Vec<_>>() {
            assert!(pattern.take_numbers(form));
            let cut = SplitPattern::new(&pattern.bytes).expect("numbers");
            for text in texts {
                let same = other.take_numbers(text) && other.bytes == pattern.bytes;
                assert_eq!(cut.take_numbers(text, &mut numbers).is_some(), same, "{form:?} {text:?}");
                assert!(!same || !numbers.is_empty());
            }
        }
    }

    #[test]
    fn digits_are_found_at_any_offset() {
        for byte in 0..=u8::MAX {
            for length in 0..20 {
                for place in 0..length {
                    let mut text = vec![b'/'; length];
                    text[place] = byte;
                    let expected = if byte.is_ascii_digit() { place } else { length };
                    assert_eq!(digit_position(&text), expected, "{byte} at {place} of {length}");
                    text.fill(0xB5);
                    text[place] = byte;
                    assert_eq!(digit_position(&text), expected, "{byte} at {place} of {length}");
                }
            }
        }
    }

    #[test]
    fn namespaces_end_at_the_last_separator() {
        assert_eq!(namespace(b"http://x/y"), Some(&b"http://x/"[..]));
        assert_eq!(namespace(b"http://x/y/"), Some(&b"http://x/"[..]));
        assert_eq!(namespace("http://x/y#é".as_bytes()), Some(&b"http://x/y#"[..]));
        assert_eq!((namespace(b""), namespace(b"x"), namespace(b":")), (None, None, None));
    }
}
