//! String literals: escaping and unescaping.

use std::fmt::{self, Write};

/// Replaces the escapes in the text between the quotes; for an invalid escape, its byte position in `inside`
/// and the reason.
pub(super) fn unescape(inside: &str) -> Result<String, (usize, &'static str)> {
    let mut text = String::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let place = inside.len() - rest.len() + at;
        rest = &rest[at + 1..];
        let escape = rest.chars().next().ok_or((place, "a string cannot end in a single backslash"))?;
        match escape {
            'b' => text.push('\u{8}'),
            't' => text.push('\t'),
            'n' => text.push('\n'),
            'f' => text.push('\u{C}'),
            'r' => text.push('\r'),
            '"' | '\'' | '\\' | '\n' => text.push(escape),
            '\r' if rest.starts_with("\r\n") => text.push('\r'),
            '0'..='7' => {
                let digits_max = if escape <= '3' { 3 } else { 2 };
                let digits = rest.bytes().take(digits_max).take_while(|b| matches!(b, b'0'..=b'7')).count();
                let code = u32::from_str_radix(&rest[..digits], 8).unwrap_or_default();
                text.push(char::from_u32(code).unwrap_or_default());
                rest = &rest[digits..];
                continue;
            }
            'u' => {
                let (c, after) = unicode(rest).ok_or((place, "\\u needs four hexadecimal digits"))?;
                text.push(c);
                rest = after;
                continue;
            }
            _ => return Err((place, "unknown escape (a backslash is written \\\\)")),
        }
        rest = &rest[escape.len_utf8()..];
    }
    text.push_str(rest);
    Ok(text)
}

/// The character of `u0041…` and the remaining text. A surrogate pair is one character; a lone surrogate is
/// U+FFFD.
fn unicode(escape: &str) -> Option<(char, &str)> {
    let (first, rest) = unit(escape)?;
    let second = rest.strip_prefix('\\').filter(|rest| rest.starts_with('u')).and_then(unit);
    if let (0xD800..=0xDBFF, Some((low @ 0xDC00..=0xDFFF, rest))) = (first, second) {
        let code = 0x1_0000 + ((first - 0xD800) << 10) + (low - 0xDC00);
        return Some((char::from_u32(code)?, rest));
    }
    Some((char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), rest))
}

fn unit(escape: &str) -> Option<(u32, &str)> {
    let digits = escape.trim_start_matches('u');
    let code = digits.get(..4).filter(|four| four.bytes().all(|b| b.is_ascii_hexdigit()))?;
    Some((u32::from_str_radix(code, 16).ok()?, &digits[4..]))
}

/// Prints the string in double quotes.
pub(super) fn quote(out: &mut impl Write, text: &str) -> fmt::Result {
    out.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            c if c.is_control() => write!(out, "\\u{:04X}", u32::from(c))?,
            c => out.write_char(c)?,
        }
    }
    out.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::{quote, unescape};

    #[test]
    fn escapes_are_replaced() {
        for (inside, expected) in [
            ("plain", "plain"),
            (r"a\tb\\c\'d\x".trim_end_matches(r"\x"), "a\tb\\c'd"),
            (r"\0\07\377\477", "\0\u{7}\u{FF}\u{27}7"),
            (r"\u0041\uu0042\uD83D\uDE00\uD83D.", "AB😀\u{FFFD}."),
        ] {
            assert_eq!(unescape(inside), Ok(expected.to_owned()));
        }
        for wrong in [r"\d", r"\u12", r"\uäöüß", "\\", r"\8"] {
            assert!(unescape(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn quoted_strings_round_trip() {
        let text: String = (0..0x300).filter_map(char::from_u32).chain("日本😀".chars()).collect();
        let mut quoted = String::new();
        quote(&mut quoted, &text).expect("a string takes everything");
        assert_eq!(unescape(&quoted[1..quoted.len() - 1]), Ok(text));
    }
}
