//! Lexer with on-demand tokens.
//!
//! The lexer only delimits numbers and strings; `number` and `strings` parse them. Names may contain any
//! letters, including those outside the basic plane, which TinkerPop's grammar excludes.

use super::error::{Fault, NO_LAMBDAS, Result};
use super::mistakes;
use super::statement::TOKENS_MAX;

/// The kind of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// `out`, `T`, `x1`
    Name,
    /// `"…"` or `'…'`, with the quotes.
    Text,
    /// `1`, `-0x1Fl`, `1.5e3m`, `-Infinity`
    Number,
    /// `(`
    Open,
    /// `)`
    Close,
    /// `[`
    OpenBracket,
    /// `]`
    CloseBracket,
    /// `{`
    OpenBrace,
    /// `}`
    CloseBrace,
    /// `,`
    Comma,
    /// `.`
    Dot,
    /// `:`
    Colon,
    /// `;`
    Semicolon,
    /// The end of the text.
    End,
}

/// A token and its bytes `start..end` of the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: u32,
    pub(super) end: u32,
}

/// Lexer of a text of less than 4 GiB.
pub(super) struct Lexer<'a> {
    bytes: &'a [u8],
    text: &'a str,
    at: usize,
    tokens: usize,
}

impl<'a> Lexer<'a> {
    /// A lexer at the start of `text`.
    pub(super) fn new(text: &'a str) -> Self {
        Self { bytes: text.as_bytes(), text, at: 0, tokens: 0 }
    }

    /// The text.
    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// The next token; [`Kind::End`] at the end, repeatedly.
    pub(super) fn next(&mut self) -> Result<Token> {
        self.skip_blanks();
        self.tokens += 1;
        let start = self.at;
        if self.tokens > TOKENS_MAX {
            return Err(self.fault(start, format!("the text has more than {TOKENS_MAX} tokens")));
        }
        let Some(&byte) = self.bytes.get(start) else {
            return Ok(token(Kind::End, start, start));
        };
        let kind = match byte {
            b'(' => Kind::Open,
            b')' => Kind::Close,
            b'[' => Kind::OpenBracket,
            b']' => Kind::CloseBracket,
            b'{' => Kind::OpenBrace,
            b'}' => Kind::CloseBrace,
            b',' => Kind::Comma,
            b'.' => Kind::Dot,
            b':' => Kind::Colon,
            b';' => Kind::Semicolon,
            b'"' | b'\'' => return self.string(start, byte),
            b'0'..=b'9' | b'+' | b'-' => return self.number(start),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80.. => return self.name(start),
            _ => {
                let fault = self.fault(start, format!("unexpected {}", shown(byte)));
                return Err(hinted(fault, char::from(byte)));
            }
        };
        self.at += 1;
        Ok(token(kind, start, self.at))
    }

    fn skip_blanks(&mut self) {
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | 0x0C => self.at += 1,
                b'/' if self.bytes.get(self.at + 1) == Some(&b'/') => {
                    let rest = &self.bytes[self.at..];
                    self.at += rest.iter().position(|&b| b == b'\n' || b == b'\r').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    fn string(&mut self, start: usize, quote: u8) -> Result<Token> {
        let mut at = start + 1;
        loop {
            match self.bytes.get(at) {
                Some(&byte) if byte == quote => break,
                Some(b'\\') => at += 2,
                Some(_) => at += 1,
                None => return Err(self.fault(start, "this string is not terminated".to_owned())),
            }
        }
        self.at = at + 1;
        Ok(token(Kind::Text, start, self.at))
    }

    fn number(&mut self, start: usize) -> Result<Token> {
        let mut at = start;
        if matches!(self.bytes[at], b'+' | b'-') {
            at += 1;
            if self.bytes[at..].starts_with(b"Infinity") {
                return self.number_end(start, at + "Infinity".len());
            }
            if self.bytes[start..].starts_with(b"->") {
                return Err(self.fault(start, "unexpected ->".to_owned()).hint(NO_LAMBDAS));
            }
            if !self.bytes.get(at).is_some_and(u8::is_ascii_digit) {
                return Err(self.fault(start, "a number must follow this sign".to_owned()));
            }
        }
        let digits = |bytes: &[u8], mut at: usize| {
            while bytes.get(at).is_some_and(|b| b.is_ascii_digit() || *b == b'_') {
                at += 1;
            }
            at
        };
        let is_digit = |at: usize| self.bytes.get(at).is_some_and(u8::is_ascii_digit);
        if self.bytes[at] == b'0' && matches!(self.bytes.get(at + 1), Some(b'x' | b'X')) {
            at += 2;
            while self.bytes.get(at).is_some_and(|b| b.is_ascii_hexdigit() || *b == b'_') {
                at += 1;
            }
        } else {
            at = digits(self.bytes, at);
            if self.bytes.get(at) == Some(&b'.') && is_digit(at + 1) {
                at = digits(self.bytes, at + 1);
            }
            if matches!(self.bytes.get(at), Some(b'e' | b'E')) {
                let signed = usize::from(matches!(self.bytes.get(at + 1), Some(b'+' | b'-')));
                if is_digit(at + 1 + signed) {
                    at = digits(self.bytes, at + 1 + signed);
                }
            }
        }
        let suffix = self.bytes.get(at).map(u8::to_ascii_lowercase);
        if matches!(suffix, Some(b'b' | b's' | b'n' | b'i' | b'l' | b'f' | b'd' | b'm')) {
            at += 1;
        }
        self.number_end(start, at)
    }

    fn number_end(&mut self, start: usize, at: usize) -> Result<Token> {
        self.at = at;
        if self.text[at..].starts_with(is_part) {
            return Err(self.fault(start, "a number cannot end in letters".to_owned()));
        }
        Ok(token(Kind::Number, start, at))
    }

    fn name(&mut self, start: usize) -> Result<Token> {
        let mut at = start;
        while let Some(&byte) = self.bytes.get(at) {
            if byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' {
                at += 1;
            } else if byte < 0x80 {
                break;
            } else {
                match self.text[at..].chars().next() {
                    Some(c) if is_part(c) => at += c.len_utf8(),
                    _ => break,
                }
            }
        }
        if at == start || !self.text[start..].starts_with(is_start) {
            let c = self.text[start..].chars().next().unwrap_or(' ');
            return Err(hinted(self.fault(start, format!("unexpected {c:?}")), c));
        }
        self.at = at;
        Ok(token(Kind::Name, start, at))
    }

    fn fault(&self, start: usize, message: String) -> Box<Fault> {
        let place = token(Kind::End, start, start + 1);
        Fault::new(place.start, place.end, message)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "texts are shorter than TEXT_BYTES_MAX")]
fn token(kind: Kind, start: usize, end: usize) -> Token {
    Token { kind, start: start as u32, end: end as u32 }
}

fn is_start(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '_' | '$' | '\u{A2}'..='\u{A5}' | '\u{20A0}'..='\u{20BF}')
}

fn is_part(c: char) -> bool {
    is_start(c) || c.is_alphanumeric() || matches!(c, '\u{300}'..='\u{36F}' | '\u{203F}' | '\u{2040}')
}

fn hinted(fault: Box<Fault>, c: char) -> Box<Fault> {
    match mistakes::of_character(c) {
        Some(hint) => fault.hint(hint),
        None => fault,
    }
}

fn shown(byte: u8) -> String {
    match byte {
        b'-' | b'>' => "an arrow or sign".to_owned(),
        _ => format!("{:?}", char::from(byte)),
    }
}
