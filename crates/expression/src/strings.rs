//! String and hash functions (SPARQL 1.1 §17.4.3 and §17.4.6).

use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};
use std::fmt::Write;
use vervet_model::hex;

/// Hash functions; the result is in lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hash {
    Md5,
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

pub(crate) fn hash(function: Hash, text: &str) -> String {
    match function {
        Hash::Md5 => hex(&Md5::digest(text)),
        Hash::Sha1 => hex(&Sha1::digest(text)),
        Hash::Sha256 => hex(&Sha256::digest(text)),
        Hash::Sha384 => hex(&Sha384::digest(text)),
        Hash::Sha512 => hex(&Sha512::digest(text)),
    }
}

/// Percent-encodes all characters except the unreserved ones of RFC 3986.
pub(crate) fn encode_for_uri(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a `String` cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

/// XPath's `fn:substring`: the characters at positions `p >= start` (counted from 1) and, with a length, `p <
/// start + length`. Both numbers are already rounded.
pub(crate) fn substring(text: &str, start: f64, length: Option<f64>) -> &str {
    let end = length.map_or(f64::INFINITY, |length| start + length);
    // A comparison with NaN is false, so NaN selects nothing.
    let selected = |position: f64| position >= start && position < end;
    let mut from = None;
    let mut position = 0.0;
    for (at, _) in text.char_indices() {
        position += 1.0;
        match (from, selected(position)) {
            (None, true) => from = Some(at),
            (Some(from), false) => return &text[from..at],
            _ => {}
        }
    }
    from.map_or("", |from| &text[from..])
}

/// Basic filtering of RFC 4647 §3.3.1, for `LANGMATCHES`.
pub(crate) fn language_matches(tag: &str, range: &str) -> bool {
    if range == "*" {
        return !tag.is_empty();
    }
    let (tag, range) = (tag.as_bytes(), range.as_bytes());
    tag.len() >= range.len()
        && tag[..range.len()].eq_ignore_ascii_case(range)
        && (tag.len() == range.len() || tag[range.len()] == b'-')
}

/// A random UUID (version 4 of RFC 9562) from 128 random bits.
pub(crate) fn uuid(high: u64, low: u64, out: &mut String) {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&high.to_le_bytes());
    bytes[8..].copy_from_slice(&low.to_le_bytes());
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    for (index, byte) in bytes.into_iter().enumerate() {
        let dash = if matches!(index, 4 | 6 | 8 | 10) { "-" } else { "" };
        // Writing to a `String` cannot fail.
        let _ = write!(out, "{dash}{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substrings_are_those_of_xpath() {
        let check = |text, start: f64, length, expected: &str| {
            assert_eq!(substring(text, start, length), expected, "{text} {start} {length:?}");
        };
        check("motor car", 6.0, None, " car");
        check("metadata", 4.0, Some(3.0), "ada");
        check("12345", 0.0, Some(3.0), "12");
        check("12345", 5.0, Some(-3.0), "");
        check("12345", -3.0, Some(5.0), "1");
        check("12345", f64::NAN, Some(3.0), "");
        check("12345", 1.0, Some(f64::NAN), "");
        check("12345", -42.0, Some(f64::INFINITY), "12345");
        check("12345", f64::NEG_INFINITY, Some(f64::INFINITY), "");
        check("größe", 3.0, Some(2.0), "öß");
        check("", 1.0, None, "");
    }

    #[test]
    fn language_ranges_match_whole_subtags() {
        for (tag, range, expected) in [
            ("en", "EN", true),
            ("en-GB", "en", true),
            ("en", "en-GB", false),
            ("eng", "en", false),
            ("fr", "*", true),
            ("", "*", false),
            ("", "", true),
            ("de-Latn-DE", "de-Latn", true),
        ] {
            assert_eq!(language_matches(tag, range), expected, "{tag} {range}");
        }
    }

    #[test]
    fn a_uuid_has_its_version_and_variant() {
        let mut text = String::new();
        uuid(u64::MAX, u64::MAX, &mut text);
        assert_eq!(text, "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }
}
