//! Streaming JSON reader: a cursor over members and elements, without a tree.
//!
//! # Why not a library
//! Numbers keep all their digits (a library's tree would round them, or change how the whole workspace reads
//! JSON), every error has its byte offset, only the resulting values are held, and the cursor can return to
//! an `@value` once its `@type` is known.
//! # Source
//! RFC 8259. Different: an escape of a lone surrogate is an error, since no string can hold it.

use crate::limits::DEPTH_MAX;
use crate::number::shortened;
use crate::{Limits, ReadError};
use std::borrow::Cow;

type Result<T> = std::result::Result<T, ReadError>;

/// Maximum nesting of skipped objects and arrays: a value has up to four levels.
const SKIPPED_DEPTH_MAX: usize = 4 * DEPTH_MAX;
/// Maximum number of times that a text may be skipped in total.
const SKIPPED_TIMES_MAX: usize = 16;

/// A position in a text.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    values: usize,
    /// Number of bytes skipped to find a type after its value.
    skipped: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `bytes`.
    pub(crate) fn new(bytes: &'a [u8], limits: Limits) -> Result<Self> {
        if bytes.len() > limits.bytes {
            let message = format!("expected at most {} bytes, found {}", limits.bytes, bytes.len());
            return Err(ReadError::too_large(limits.bytes, message));
        }
        let text = std::str::from_utf8(bytes)
            .map_err(|error| ReadError::malformed(error.valid_up_to(), "expected UTF-8"))?;
        Ok(Self { text, at: 0, depth: limits.depth.min(DEPTH_MAX), values: limits.values, skipped: 0 })
    }

    /// The byte offset.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Moves to an earlier or later offset.
    pub(crate) fn go(&mut self, at: usize) {
        self.at = at;
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips white space and peeks at the next byte.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        self.byte()
    }

    /// The error for unexpected input.
    pub(crate) fn expected(&mut self, expected: &str) -> ReadError {
        let found = match self.peek() {
            None => "the end".to_owned(),
            Some(b'"') => quoted(&self.text[self.at + 1..]),
            Some(_) => shortened(&self.text[self.at..].chars().take(12).collect::<String>()),
        };
        ReadError::malformed(self.at, format!("expected {expected}, found {found}"))
    }

    /// Consumes `byte` if it is next.
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Consumes `byte`, else an error.
    pub(crate) fn need(&mut self, byte: u8, expected: &str) -> Result<()> {
        if self.take(byte) { Ok(()) } else { Err(self.expected(expected)) }
    }

    /// Requires the end of the text.
    pub(crate) fn end(&mut self) -> Result<()> {
        if self.peek().is_none() { Ok(()) } else { Err(self.expected("the end")) }
    }

    /// Counts a value and enters a nesting level; must be paired with [`leave`](Self::leave).
    pub(crate) fn enter(&mut self) -> Result<()> {
        let Some(depth) = self.depth.checked_sub(1) else {
            return Err(ReadError::too_large(self.at, "expected a smaller nesting depth of values"));
        };
        let Some(values) = self.values.checked_sub(1) else {
            return Err(ReadError::too_large(self.at, "expected fewer values"));
        };
        (self.depth, self.values) = (depth, values);
        Ok(())
    }

    /// Leaves a nesting level.
    pub(crate) fn leave(&mut self) {
        self.depth += 1;
    }

    /// Consumes a word such as `true` if it is next.
    pub(crate) fn word(&mut self, word: &str) -> bool {
        self.peek();
        let found = self.text[self.at..].starts_with(word)
            && !self.text[self.at + word.len()..].starts_with(|c: char| c.is_ascii_alphanumeric());
        self.at += if found { word.len() } else { 0 };
        found
    }

    /// Reads an object; `member` reads each value.
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, Cow<'a, str>) -> Result<()>,
    ) -> Result<()> {
        self.need(b'{', "an object")?;
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            let key = self.key()?;
            member(self, key)?;
            if !self.take(b',') {
                return self.need(b'}', "\",\" or \"}\"");
            }
        }
    }

    /// Reads a key and its colon.
    pub(crate) fn key(&mut self) -> Result<Cow<'a, str>> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a key"));
        }
        let key = self.string()?;
        self.need(b':', "\":\"")?;
        Ok(key)
    }

    /// Reads an array; `element` reads each element.
    pub(crate) fn array(&mut self, mut element: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        self.need(b'[', "an array")?;
        if self.take(b']') {
            return Ok(());
        }
        loop {
            element(self)?;
            if !self.take(b',') {
                return self.need(b']', "\",\" or \"]\"");
            }
        }
    }

    /// Reads a string.
    pub(crate) fn string(&mut self) -> Result<Cow<'a, str>> {
        self.need(b'"', "a string")?;
        let start = self.at;
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b'"') => {
                    let text = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(Cow::Borrowed(text));
                }
                Some(b'\\') => return self.escaped(start).map(Cow::Owned),
                Some(0..0x20) => return Err(self.expected("an escaped control character")),
                Some(_) => self.at += 1,
                None => return Err(ReadError::malformed(start - 1, "expected the end of a string")),
            }
        }
    }

    /// Reads the rest of a string that started at `start` and has its first escape here.
    fn escaped(&mut self, start: usize) -> Result<String> {
        let mut text = self.text[start..self.at].to_owned();
        loop {
            let from = self.at;
            while !matches!(self.byte(), None | Some(b'"' | b'\\' | 0..0x20)) {
                self.at += 1;
            }
            text.push_str(&self.text[from..self.at]);
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => {
                    self.at += 1;
                    text.push(self.escape()?);
                }
                Some(_) => return Err(self.expected("an escaped control character")),
                None => return Err(ReadError::malformed(start - 1, "expected the end of a string")),
            }
        }
    }

    /// Reads an escape after its backslash.
    fn escape(&mut self) -> Result<char> {
        let at = self.at;
        let byte = self.byte();
        self.at += usize::from(byte.is_some_and(|byte| byte.is_ascii()));
        Ok(match byte {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let mut code = self.four_digits()?;
                if (0xd800..0xdc00).contains(&code) && self.text[self.at..].starts_with("\\u") {
                    self.at += 2;
                    let low = self.four_digits()?;
                    if (0xdc00..0xe000).contains(&low) {
                        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                    }
                }
                char::from_u32(code)
                    .ok_or_else(|| ReadError::malformed(at, "expected both halves of a surrogate pair"))?
            }
            _ => return Err(ReadError::malformed(at, "expected a character that may be escaped")),
        })
    }

    fn four_digits(&mut self) -> Result<u32> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let code = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or_else(|| ReadError::malformed(self.at, "expected four hexadecimal digits"))?;
        self.at += 4;
        Ok(code)
    }

    /// Reads a number and returns its text.
    pub(crate) fn number(&mut self) -> Result<&'a str> {
        self.peek();
        let start = self.at;
        self.at += usize::from(self.byte() == Some(b'-'));
        let leading_zero = self.byte() == Some(b'0');
        let whole = self.digits();
        if whole == 0 || (leading_zero && whole > 1) {
            self.at = start;
            return Err(self.expected("a number"));
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return Err(self.expected("a digit"));
            }
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.byte(), Some(b'+' | b'-')));
            if self.digits() == 0 {
                return Err(self.expected("a digit"));
            }
        }
        Ok(&self.text[start..self.at])
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.byte(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    /// Skips a value. Nothing is kept, so only the nesting of its objects and arrays is limited.
    pub(crate) fn skip(&mut self) -> Result<()> {
        self.skip_within(SKIPPED_DEPTH_MAX)
    }

    fn skip_within(&mut self, depth: usize) -> Result<()> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(ReadError::too_large(
                self.at,
                "expected a smaller nesting depth of objects and arrays",
            ));
        };
        match self.peek() {
            Some(b'{') => self.object(|cursor, _| cursor.skip_within(depth)),
            Some(b'[') => self.array(|cursor| cursor.skip_within(depth)),
            Some(b'"') => self.string().map(drop),
            Some(b'-' | b'0'..=b'9') => self.number().map(drop),
            _ if self.word("null") || self.word("true") || self.word("false") => Ok(()),
            _ => Err(self.expected("a value")),
        }
    }

    /// Skips a value that will be read later, because its type follows it. Repeated nesting of such values is
    /// rejected, since the time would grow with the depth.
    pub(crate) fn skip_for_now(&mut self) -> Result<()> {
        let start = self.at;
        self.skip()?;
        self.skipped += self.at - start;
        if self.skipped > SKIPPED_TIMES_MAX * self.text.len() {
            return Err(ReadError::too_large(start, "expected \"@type\" before \"@value\""));
        }
        Ok(())
    }
}

/// At most 12 characters of the string after an opening quote, for a message.
fn quoted(rest: &str) -> String {
    let end = rest.find(['"', '\\']).unwrap_or(rest.len());
    match rest[..end].char_indices().nth(12) {
        Some((cut, _)) => shortened(&rest[..cut]) + "…",
        None if rest[end..].starts_with('"') => shortened(&rest[..end]),
        None => shortened(&rest[..end]) + "…",
    }
}

/// Appends `text` as a quoted JSON string.
pub(crate) fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut from = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let escape = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            0..0x20 => b'u',
            _ => continue,
        };
        out.extend_from_slice(&bytes[from..at]);
        out.extend_from_slice(&[b'\\', escape]);
        if escape == b'u' {
            const HEX: &[u8; 16] = b"0123456789ABCDEF";
            out.extend_from_slice(&[b'0', b'0', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
        from = at + 1;
    }
    out.extend_from_slice(&bytes[from..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(text: &str) -> Cursor<'_> {
        Cursor::new(text.as_bytes(), Limits::default()).unwrap()
    }

    #[test]
    fn strings_with_escapes() {
        let text = r#" "a\n\u00e4\ud83d\ude00\/ü" "#;
        assert_eq!(cursor(text).string().unwrap(), "a\nä😀/ü");
        for bad in [
            r#""\ud83d""#,
            r#""\ud83dx""#,
            r#""\ude00""#,
            r#""\x""#,
            r#""\u12g4""#,
            "\"\n\"",
            r#""abc"#,
            r#""\"#,
        ] {
            assert!(cursor(bad).string().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_string_is_read_as_it_was_written() {
        let text: String = (0..0x300).filter_map(char::from_u32).chain("😀\u{ffff}".chars()).collect();
        let mut out = Vec::new();
        write_string(&text, &mut out);
        let out = String::from_utf8(out).unwrap();
        assert_eq!(cursor(&out).string().unwrap(), text);
        assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
    }

    #[test]
    fn numbers_are_those_of_json() {
        for good in ["0", "-0", "10", "1.5", "-1e5", "1E+05", "0.0"] {
            assert_eq!(cursor(good).number().unwrap(), good);
        }
        for bad in ["", "-", "01", "1.", ".5", "1e", "+1", "-a"] {
            let mut cursor = cursor(bad);
            assert!(cursor.number().and_then(|_| cursor.end()).is_err(), "{bad}");
        }
    }

    #[test]
    fn errors_say_where() {
        let mut cursor = cursor("  [1, 2, x]");
        assert_eq!(cursor.skip().unwrap_err().to_string(), "expected a value, found \"x]\" at byte 9");
        for (text, found) in [
            (r#""bare"}}"#, r#"expected an array, found "bare" at byte 0"#),
            (r#" "a \" b""#, r#"expected an array, found "a "… at byte 1"#),
            (r#""abcdefghijklmnop""#, r#"expected an array, found "abcdefghijkl"… at byte 0"#),
            (r#"""#, r#"expected an array, found ""… at byte 0"#),
        ] {
            let error = self::cursor(text).array(|_| Ok(())).unwrap_err();
            assert_eq!(error.to_string(), found, "{text}");
        }
    }

    #[test]
    fn too_deep_or_too_long_input_is_an_error() {
        let deep = "[".repeat(100_000);
        assert_eq!(cursor(&deep).skip().unwrap_err().kind(), crate::ReadErrorKind::TooLarge);
        let many = format!("[{}0]", "0,".repeat(100));
        let limits = Limits { values: 50, ..Limits::default() };
        assert!(Cursor::new(many.as_bytes(), limits).unwrap().value().is_err());
        let limits = Limits { bytes: 10, ..Limits::default() };
        assert!(Cursor::new(many.as_bytes(), limits).is_err());
    }
}
