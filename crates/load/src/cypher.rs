//! Tokens of Cypher, for the scripts that Kùzu and Neo4j export.
//!
//! # Cost
//! One pass over the text; a token borrows from it unless it has escapes.
//! # Not here
//! Parameters, comments inside statements that exports do not write, and the grammar.

use std::borrow::Cow;

/// A token with the line in which it begins, from 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Token<'t> {
    pub(crate) kind: LexemeKind<'t>,
    pub(crate) line: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum LexemeKind<'t> {
    /// A word: letters, digits, `_`.
    Word(&'t str),
    /// A name in backticks.
    Quoted(Cow<'t, str>),
    /// A string in single or double quotes.
    Text(Cow<'t, str>),
    /// A number without sign.
    Number(&'t str),
    Symbol(char),
}

impl<'t> Token<'t> {
    /// Whether the token is this word, in any letter case.
    pub(crate) fn is_word(&self, word: &str) -> bool {
        matches!(self.kind, LexemeKind::Word(text) if text.eq_ignore_ascii_case(word))
    }

    pub(crate) fn is_symbol(&self, symbol: char) -> bool {
        self.kind == LexemeKind::Symbol(symbol)
    }

    /// The name of a table, a label or a key.
    pub(crate) fn name(&self) -> Option<&str> {
        match &self.kind {
            LexemeKind::Word(text) => Some(text),
            LexemeKind::Quoted(text) => Some(text),
            _ => None,
        }
    }

    /// The token as written, shortened for messages.
    pub(crate) fn display_text(&self) -> String {
        let text = match &self.kind {
            LexemeKind::Word(text) | LexemeKind::Number(text) => (*text).to_owned(),
            LexemeKind::Quoted(text) => format!("`{text}`"),
            LexemeKind::Text(text) => format!("{text:?}"),
            LexemeKind::Symbol(symbol) => symbol.to_string(),
        };
        text.chars().take(40).collect()
    }
}

/// A position and the reason why the text cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SyntaxError {
    pub(crate) line: u64,
    pub(crate) message: String,
}

/// The tokens of a text.
pub(crate) struct Tokens<'t> {
    rest: &'t str,
    line: u64,
}

impl<'t> Tokens<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { rest: text, line: 1 }
    }

    /// The line of the next token, or of the end.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// The tokens of the next statement without its semicolon, into `tokens`; false at the end. A line that
    /// begins with `:` (a command of a shell) is a statement of its own, without tokens if it has no `=>`.
    pub(crate) fn statement(&mut self, tokens: &mut Vec<Token<'t>>) -> Result<bool, SyntaxError> {
        tokens.clear();
        loop {
            if tokens.is_empty() {
                self.skip_blanks();
                if let Some(command) = self.rest.strip_prefix(':') {
                    let end = command.find('\n').unwrap_or(command.len());
                    if !command[..end].starts_with("param") {
                        self.rest = &command[end..];
                        continue;
                    }
                }
            }
            match self.next()? {
                None => return Ok(!tokens.is_empty()),
                Some(token) if token.is_symbol(';') => {
                    if !tokens.is_empty() {
                        return Ok(true);
                    }
                }
                // Transactions of the shell of Neo4j have no semicolon.
                Some(token)
                    if tokens.is_empty()
                        && ["begin", "commit"].iter().any(|word| token.is_word(word))
                        && !self.rest.trim_start_matches([' ', '\t', '\r']).starts_with(';') => {}
                Some(token) => tokens.push(token),
            }
        }
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest.trim_start();
            let skipped = self.rest.len() - rest.len();
            self.advance(skipped);
            if !self.rest.starts_with("//") {
                return;
            }
            self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
        }
    }

    /// Skips bytes and counts their lines.
    fn advance(&mut self, bytes: usize) {
        let (skipped, rest) = self.rest.split_at(bytes);
        self.line += memchr::memchr_iter(b'\n', skipped.as_bytes()).count() as u64;
        self.rest = rest;
    }

    fn next(&mut self) -> Result<Option<Token<'t>>, SyntaxError> {
        self.skip_blanks();
        let line = self.line;
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        let until = |is_end: &dyn Fn(char) -> bool| self.rest.find(is_end).unwrap_or(self.rest.len());
        let kind = match first {
            '`' => LexemeKind::Quoted(self.quoted_name(line)?),
            '"' | '\'' => LexemeKind::Text(self.text(first, line)?),
            _ if first.is_alphabetic() || first == '_' => {
                let end = until(&|letter| !letter.is_alphanumeric() && letter != '_');
                let word = &self.rest[..end];
                self.advance(end);
                LexemeKind::Word(word)
            }
            _ if first.is_ascii_digit() => {
                let mut last = ' ';
                let mut end = self.rest.len();
                for (at, letter) in self.rest.char_indices() {
                    let is_sign = matches!(letter, '+' | '-') && matches!(last, 'e' | 'E');
                    // `1..2` is a range.
                    let is_range = letter == '.' && self.rest[at + 1..].starts_with('.');
                    if is_range || !(letter.is_ascii_alphanumeric() || letter == '.' || is_sign) {
                        end = at;
                        break;
                    }
                    last = letter;
                }
                let number = &self.rest[..end];
                self.advance(end);
                LexemeKind::Number(number)
            }
            symbol => {
                self.advance(symbol.len_utf8());
                LexemeKind::Symbol(symbol)
            }
        };
        Ok(Some(Token { kind, line }))
    }

    fn quoted_name(&mut self, line: u64) -> Result<Cow<'t, str>, SyntaxError> {
        let inner = &self.rest[1..];
        let mut name = Cow::Borrowed("");
        let mut start = 0;
        while let Some(at) = inner[start..].find('`').map(|at| start + at) {
            if inner[at + 1..].starts_with('`') {
                name.to_mut().push_str(&inner[start..=at]);
                start = at + 2;
                continue;
            }
            match &mut name {
                Cow::Borrowed(_) => name = Cow::Borrowed(&inner[start..at]),
                Cow::Owned(name) => name.push_str(&inner[start..at]),
            }
            self.advance(at + 2);
            return Ok(name);
        }
        Err(SyntaxError { line, message: "the name in backticks is not closed".to_owned() })
    }

    fn text(&mut self, quote: char, line: u64) -> Result<Cow<'t, str>, SyntaxError> {
        let inner = &self.rest[1..];
        let mut text = Cow::Borrowed("");
        let mut start = 0;
        loop {
            let Some(at) = inner[start..].find(['\\', quote]).map(|at| start + at) else {
                return Err(SyntaxError { line, message: "the string is not closed".to_owned() });
            };
            match &mut text {
                Cow::Borrowed("") => text = Cow::Borrowed(&inner[start..at]),
                text => text.to_mut().push_str(&inner[start..at]),
            }
            if !inner[at..].starts_with('\\') {
                self.advance(at + 2);
                return Ok(text);
            }
            let wrong = |message: &str| SyntaxError { line, message: message.to_owned() };
            let Some(escape) = inner[at + 1..].chars().next() else {
                return Err(wrong("the string is not closed"));
            };
            start = at + 1 + escape.len_utf8();
            let character = match escape {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'u' | 'U' => {
                    let (character, end) = unicode(inner, start, if escape == 'u' { 4 } else { 8 })
                        .ok_or_else(|| wrong("the string has a malformed escape \\u"))?;
                    start = end;
                    character
                }
                other => other,
            };
            text.to_mut().push(character);
        }
    }
}

/// The character of an escape with this number of digits at `start`, and the end of the escape. A surrogate
/// needs the other one of its pair.
fn unicode(text: &str, start: usize, digits: usize) -> Option<(char, usize)> {
    let code = |start: usize| {
        let digits = text.get(start..start + digits)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        u32::from_str_radix(digits, 16).ok()
    };
    let (high, end) = (code(start)?, start + digits);
    if !(0xD800..0xDC00).contains(&high) {
        return Some((char::from_u32(high)?, end));
    }
    if !text.get(end..)?.starts_with("\\u") {
        return None;
    }
    let low = code(end + 2).filter(|low| (0xDC00..0xE000).contains(low))?;
    Some((char::from_u32(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))?, end + 2 + digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(text: &str) -> Result<Vec<String>, SyntaxError> {
        let mut tokens = Tokens::new(text);
        let (mut all, mut statement) = (Vec::new(), Vec::new());
        while tokens.statement(&mut statement)? {
            let display_text: Vec<String> = statement.iter().map(Token::display_text).collect();
            all.push(format!("{}: {}", statement[0].line, display_text.join(" ")));
        }
        Ok(all)
    }

    #[test]
    fn statements_are_cut_at_semicolons() {
        let text = ":begin\nCREATE (:`A ``b`` c` {`k`:\"x;\\\"\\n\", n:-1.5e-3});\n:commit\n// a comment\nBEGIN\n\nUNWIND [1..2] AS r;COMMIT;";
        assert_eq!(
            statements(text).unwrap(),
            [
                "2: CREATE ( : `A `b` c` { `k` : \"x;\\\"\\n\" , n : - 1.5e-3 } )",
                "7: UNWIND [ 1 . . 2 ] AS r",
                "7: COMMIT",
            ]
        );
        assert_eq!(statements("'\\u00e9\\uD83D\\ude00' x").unwrap(), ["1: \"é😀\" x"]);
        for (text, line) in
            [("a\n`b", 2), ("\n\n'x", 3), ("'\\", 1), ("'\\u12'", 1), ("'\\uD83Dx'", 1), ("`a``", 1)]
        {
            assert_eq!(statements(text).expect_err(text).line, line, "{text}");
        }
        assert_eq!(statements(" ; ;\n").unwrap(), Vec::<String>::new());
    }
}
