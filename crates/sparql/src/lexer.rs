//! Lexer: tokens of SPARQL text, on demand.
//!
//! A token is a kind and a span; the parser unescapes and resolves it when needed. A lexer is a position in
//! the text, so the parser can copy one and return to it.

use crate::QueryError;

/// Kinds of tokens; all keywords and function names are [`Token::Word`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Token {
    End,
    /// `<...>`
    Iri,
    /// `prefix:local`; the lexeme has the position of the colon.
    Name,
    /// `?x` or `$x`
    Variable,
    /// `_:x`
    Blank,
    /// A string with its quotes; the lexeme has the length of the quotation mark.
    Text,
    /// `@en`
    Language,
    Integer,
    Decimal,
    Double,
    Word,
    BraceOpen,
    BraceClose,
    ParenthesisOpen,
    ParenthesisClose,
    BracketOpen,
    BracketClose,
    /// `<<(`
    TripleTermOpen,
    /// `)>>`
    TripleTermClose,
    /// `<<`
    ReifiedOpen,
    /// `>>`
    ReifiedClose,
    /// `{|`
    AnnotationOpen,
    /// `|}`
    AnnotationClose,
    Comma,
    Semicolon,
    Dot,
    Star,
    Slash,
    Plus,
    Minus,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Not,
    And,
    Or,
    Pipe,
    Caret,
    DatatypeMark,
    Question,
    Tilde,
}

/// A token and its span in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lexeme {
    pub(crate) token: Token,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// [`Token::Name`]: position of the colon. [`Token::Text`]: length of one quotation mark.
    pub(crate) extra: usize,
}

/// A position in a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next token; at the end always [`Token::End`].
    pub(crate) fn next(&mut self) -> Result<Lexeme, QueryError> {
        self.skip_blanks();
        let start = self.at;
        let (token, length, extra) = self.scan()?;
        self.at = start + length;
        Ok(Lexeme { token, start, end: self.at, extra })
    }

    fn skip_blanks(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                b'#' => {
                    let rest = &bytes[self.at..];
                    let line = rest.iter().position(|b| matches!(b, b'\n' | b'\r'));
                    self.at += line.unwrap_or(rest.len());
                }
                _ => break,
            }
        }
    }

    /// Kind, length and extra of the token at the current position.
    fn scan(&self) -> Result<(Token, usize, usize), QueryError> {
        let rest = &self.text[self.at..];
        let bytes = rest.as_bytes();
        let Some(&first) = bytes.first() else { return Ok((Token::End, 0, 0)) };
        let second = bytes.get(1).copied().unwrap_or_default();
        let one = |token| Ok((token, 1, 0));
        let two = |token| Ok((token, 2, 0));
        match first {
            b'<' => match iri_length(bytes) {
                Some(length) => Ok((Token::Iri, length, 0)),
                None => {
                    let (token, length) = less(bytes);
                    Ok((token, length, 0))
                }
            },
            b'>' if second == b'=' => two(Token::GreaterOrEqual),
            b'>' if second == b'>' => two(Token::ReifiedClose),
            b'>' => one(Token::Greater),
            b'"' | b'\'' => self.string(bytes, first),
            b'?' | b'$' => {
                let length = variable_length(&rest[1..]);
                match (length, first) {
                    (0, b'?') => one(Token::Question),
                    (0, _) => Err(self.error(1, "expected a name after $")),
                    _ => Ok((Token::Variable, 1 + length, 0)),
                }
            }
            b'_' if second == b':' => match blank_length(&rest[2..]) {
                0 => Err(self.error(2, "expected a label after _:")),
                length => Ok((Token::Blank, 2 + length, 0)),
            },
            b'@' => match language_length(bytes) {
                0 => Err(self.error(1, "expected a language tag after @")),
                length => Ok((Token::Language, length, 0)),
            },
            b'0'..=b'9' => Ok(number(bytes)),
            b'.' if second.is_ascii_digit() => Ok(number(bytes)),
            b'.' => one(Token::Dot),
            b':' => Ok((Token::Name, 1 + local_length(&rest[1..]), self.at)),
            b'{' if second == b'|' => two(Token::AnnotationOpen),
            b'{' => one(Token::BraceOpen),
            b'}' => one(Token::BraceClose),
            b'(' => one(Token::ParenthesisOpen),
            b')' if bytes.starts_with(b")>>") => Ok((Token::TripleTermClose, 3, 0)),
            b')' => one(Token::ParenthesisClose),
            b'[' => one(Token::BracketOpen),
            b']' => one(Token::BracketClose),
            b',' => one(Token::Comma),
            b';' => one(Token::Semicolon),
            b'*' => one(Token::Star),
            b'/' => one(Token::Slash),
            b'+' => one(Token::Plus),
            b'-' => one(Token::Minus),
            b'=' => one(Token::Equal),
            b'~' => one(Token::Tilde),
            b'!' if second == b'=' => two(Token::NotEqual),
            b'!' => one(Token::Not),
            b'&' if second == b'&' => two(Token::And),
            b'|' if second == b'|' => two(Token::Or),
            b'|' if second == b'}' => two(Token::AnnotationClose),
            b'|' => one(Token::Pipe),
            b'^' if second == b'^' => two(Token::DatatypeMark),
            b'^' => one(Token::Caret),
            _ => self.word(rest),
        }
    }

    /// A keyword, or a name with a prefix.
    fn word(&self, rest: &str) -> Result<(Token, usize, usize), QueryError> {
        let prefix = prefix_length(rest);
        if prefix > 0 && rest.as_bytes().get(prefix) == Some(&b':') {
            let local = local_length(&rest[prefix + 1..]);
            return Ok((Token::Name, prefix + 1 + local, self.at + prefix));
        }
        let length = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        if length > 0 {
            return Ok((Token::Word, length, 0));
        }
        let c = rest.chars().next().unwrap_or_default();
        let error = self.error(c.len_utf8().max(prefix), format!("unexpected character {c:?}"));
        Err(match crate::mistakes::of_character(c) {
            Some(hint) => error.with_hint(hint),
            None => error,
        })
    }

    fn string(&self, bytes: &[u8], quote: u8) -> Result<(Token, usize, usize), QueryError> {
        let long = bytes.len() >= 3 && bytes[1] == quote && bytes[2] == quote;
        let marks = if long { 3 } else { 1 };
        let mut at = marks;
        loop {
            match bytes.get(at) {
                None => break,
                Some(b'\\') => at += 2,
                Some(b'\n' | b'\r') if !long => break,
                Some(&byte) if byte == quote => {
                    if !long {
                        return Ok((Token::Text, at + 1, 1));
                    }
                    if bytes[at..].starts_with(&[quote; 3]) {
                        return Ok((Token::Text, at + 3, 3));
                    }
                    at += 1;
                }
                Some(_) => at += 1,
            }
        }
        let hint = "a string over several lines needs three quotation marks on each side";
        Err(self.error(marks, "this string does not end").with_hint(hint))
    }

    fn error(&self, length: usize, message: impl Into<String>) -> QueryError {
        QueryError::at(self.text, self.at, self.at + length, message)
    }
}

/// The operator that starts with `<`.
fn less(bytes: &[u8]) -> (Token, usize) {
    match bytes {
        [_, b'<', b'(', ..] => (Token::TripleTermOpen, 3),
        [_, b'<', ..] => (Token::ReifiedOpen, 2),
        [_, b'=', ..] => (Token::LessOrEqual, 2),
        _ => (Token::Less, 1),
    }
}

/// Length of the `<...>` at the start, if there is one.
fn iri_length(bytes: &[u8]) -> Option<usize> {
    for (i, &byte) in bytes.iter().enumerate().skip(1) {
        match byte {
            b'>' => return Some(i + 1),
            0..=b' ' | b'<' | b'"' | b'{' | b'}' | b'|' | b'^' | b'`' => return None,
            _ => {}
        }
    }
    None
}

fn number(bytes: &[u8]) -> (Token, usize, usize) {
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let exponent = |from: usize| {
        let sign = usize::from(matches!(bytes.get(from + 1), Some(b'+' | b'-')));
        match bytes.get(from) {
            Some(b'e' | b'E') if digits((from + 1 + sign).min(bytes.len())) > 0 => {
                1 + sign + digits(from + 1 + sign)
            }
            _ => 0,
        }
    };
    let whole = digits(0);
    if bytes.get(whole) == Some(&b'.') {
        let end = whole + 1 + digits(whole + 1);
        match exponent(end) {
            0 if end > whole + 1 => return (Token::Decimal, end, 0),
            0 => {}
            length => return (Token::Double, end + length, 0),
        }
    }
    match exponent(whole) {
        0 => (Token::Integer, whole, 0),
        length => (Token::Double, whole + length, 0),
    }
}

/// `PN_CHARS_BASE`
fn is_base(c: char) -> bool {
    c.is_ascii_alphabetic()
        || matches!(c, '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}'
            | '\u{370}'..='\u{37D}' | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}'
            | '\u{2070}'..='\u{218F}' | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}'
            | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}' | '\u{10000}'..='\u{EFFFF}')
}

/// Whether the character may follow the first one in a variable.
fn is_variable(c: char) -> bool {
    is_base(c)
        || c == '_'
        || c.is_ascii_digit()
        || matches!(c, '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}

/// `PN_CHARS`
fn is_name(c: char) -> bool {
    is_variable(c) || c == '-'
}

fn variable_length(rest: &str) -> usize {
    match rest.chars().next() {
        Some(c) if is_base(c) || c == '_' || c.is_ascii_digit() => {
            rest.find(|c| !is_variable(c)).unwrap_or(rest.len())
        }
        _ => 0,
    }
}

fn prefix_length(rest: &str) -> usize {
    if !rest.starts_with(is_base) {
        return 0;
    }
    let length = rest.find(|c| !is_name(c) && c != '.').unwrap_or(rest.len());
    rest[..length].trim_end_matches('.').len()
}

fn blank_length(rest: &str) -> usize {
    if !rest.starts_with(|c: char| is_base(c) || c == '_' || c.is_ascii_digit()) {
        return 0;
    }
    let length = rest.find(|c| !is_name(c) && c != '.').unwrap_or(rest.len());
    rest[..length].trim_end_matches('.').len()
}

/// Length of `PN_LOCAL` at the start; 0 if there is none.
fn local_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut at = 0;
    let mut end = 0;
    while let Some(&byte) = bytes.get(at) {
        let length = match byte {
            b'%' => match bytes.get(at + 1..at + 3) {
                Some(hex) if hex.iter().all(u8::is_ascii_hexdigit) => 3,
                _ => break,
            },
            b'\\' => match bytes.get(at + 1) {
                Some(escaped) if b"_~.-!$&'()*+,;=/?#@%".contains(escaped) => 2,
                _ => break,
            },
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b':' => 1,
            b'-' if at > 0 => 1,
            b'.' if at > 0 => {
                at += 1;
                continue;
            }
            128.. => match rest[at..].chars().next() {
                Some(c) if is_base(c) || (at > 0 && is_name(c)) => c.len_utf8(),
                _ => break,
            },
            _ => break,
        };
        at += length;
        end = at;
    }
    end
}

/// Length of `@en-GB--ltr` at the start; 0 if there is none.
fn language_length(bytes: &[u8]) -> usize {
    let mut end = 1 + bytes[1..].iter().take_while(|b| b.is_ascii_alphabetic()).count();
    if end == 1 {
        return 0;
    }
    while bytes.get(end) == Some(&b'-') {
        let dashes = if bytes.get(end + 1) == Some(&b'-') { 2 } else { 1 };
        let part = bytes.get(end + dashes..).unwrap_or_default();
        match part.iter().take_while(|b| b.is_ascii_alphanumeric()).count() {
            0 => break,
            length => end += dashes + length,
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(Token, &str)]) {
        let mut lexer = Lexer::new(text);
        for (token, spelled) in expected {
            let lexeme = lexer.next().expect("a token");
            assert_eq!((lexeme.token, &text[lexeme.start..lexeme.end]), (*token, *spelled), "{text}");
        }
        assert_eq!(lexer.next().expect("the end").token, Token::End, "{text}");
    }

    #[test]
    fn tokens() {
        check(
            "<a>< <=<<<<(",
            &[
                (Token::Iri, "<a>"),
                (Token::Less, "<"),
                (Token::LessOrEqual, "<="),
                (Token::ReifiedOpen, "<<"),
                (Token::TripleTermOpen, "<<("),
            ],
        );
        check(
            "a:b.c. a: :b : a.b:c%20\\.x- FILTER",
            &[
                (Token::Name, "a:b.c"),
                (Token::Dot, "."),
                (Token::Name, "a:"),
                (Token::Name, ":b"),
                (Token::Name, ":"),
                (Token::Name, "a.b:c%20\\.x-"),
                (Token::Word, "FILTER"),
            ],
        );
        check(
            "?x? $y _:b.c. # comment\n[]",
            &[
                (Token::Variable, "?x"),
                (Token::Question, "?"),
                (Token::Variable, "$y"),
                (Token::Blank, "_:b.c"),
                (Token::Dot, "."),
                (Token::BracketOpen, "["),
                (Token::BracketClose, "]"),
            ],
        );
        check(
            "1 1. 1.5 .5 1e5 1.e-5 1e",
            &[
                (Token::Integer, "1"),
                (Token::Integer, "1"),
                (Token::Dot, "."),
                (Token::Decimal, "1.5"),
                (Token::Decimal, ".5"),
                (Token::Double, "1e5"),
                (Token::Double, "1.e-5"),
                (Token::Integer, "1"),
                (Token::Word, "e"),
            ],
        );
        check(
            r#""a\"b" '''x'y\'''' ""@en-GB--ltr"#,
            &[
                (Token::Text, r#""a\"b""#),
                (Token::Text, r"'''x'y\''''"),
                (Token::Text, r#""""#),
                (Token::Language, "@en-GB--ltr"),
            ],
        );
    }

    #[test]
    fn errors_are_errors() {
        for text in ["\"a", "'a\n'", "\"\"\"a\"\"", "$", "_:", "@", "\u{1}", "&", "\"\\", "größe"] {
            let mut lexer = Lexer::new(text);
            let failed = (0..5).any(|_| lexer.next().is_err());
            assert!(failed, "{text}");
        }
    }
}
