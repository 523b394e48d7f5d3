//! Colours of an input in the line editor.

use crate::keywords::KEYWORDS;

const COMMENT: &str = "\x1b[2m";
const TEXT: &str = "\x1b[32m";
const NUMBER: &str = "\x1b[33m";
const IRI: &str = "\x1b[34m";
const KEYWORD: &str = "\x1b[1;35m";
const VARIABLE: &str = "\x1b[36m";
const PLAIN: &str = "\x1b[0m";

/// `input` with escape sequences for colours; its visible characters are the same.
pub(crate) fn highlight(input: &str, is_gremlin: bool) -> String {
    let mut out = String::with_capacity(input.len() * 2);
    let mut rest = input;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let (length, colour) = token(rest, c, before, is_gremlin);
        let (token, after) = rest.split_at(length.max(c.len_utf8()).min(rest.len()));
        match colour {
            // Each line has its own colour, so that a redrawn line is complete.
            Some(colour) => {
                for (at, line) in token.split('\n').enumerate() {
                    if at > 0 {
                        out.push('\n');
                    }
                    out.extend([colour, line, PLAIN]);
                }
            }
            None => out.push_str(token),
        }
        before = token.chars().next_back().unwrap_or(' ');
        rest = after;
    }
    out
}

/// Length in bytes and colour of the token at the start of `rest`, which begins with `c` and follows
/// `before`.
fn token(rest: &str, c: char, before: char, is_gremlin: bool) -> (usize, Option<&'static str>) {
    let word = |text: &str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let to_line_end = || rest.find('\n').unwrap_or(rest.len());
    match c {
        '#' if !is_gremlin => (to_line_end(), Some(COMMENT)),
        '/' if is_gremlin && rest.starts_with("//") => (to_line_end(), Some(COMMENT)),
        '"' | '\'' => (string_length(rest, c), Some(TEXT)),
        '?' | '$' if !is_gremlin && word(&rest[1..]) > 0 => (1 + word(&rest[1..]), Some(VARIABLE)),
        '<' if !is_gremlin => match rest.find(|c: char| c == '>' || c.is_whitespace()) {
            Some(end) if rest[end..].starts_with('>') => (end + 1, Some(IRI)),
            _ => (1, None),
        },
        '0'..='9' if !before.is_alphanumeric() => {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
            let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            (rest[..length].trim_end_matches('.').len(), Some(NUMBER))
        }
        _ if c.is_alphabetic() => {
            let length = word(rest);
            let (name, after) = rest.split_at(length);
            let is_key = match is_gremlin {
                true => after.starts_with('('),
                false => before != ':' && !after.starts_with(':') && is_keyword(name),
            };
            (length, is_key.then_some(KEYWORD))
        }
        _ => (c.len_utf8(), None),
    }
}

fn is_keyword(word: &str) -> bool {
    KEYWORDS.iter().any(|keyword| keyword.split(' ').any(|part| part.eq_ignore_ascii_case(word)))
        || ["AS", "NOT", "EXISTS", "BIND", "FROM", "NAMED"].contains(&word.to_ascii_uppercase().as_str())
        || word == "a"
}

/// The length of the string at the start of `rest`, to the end of the text if it does not end.
fn string_length(rest: &str, quote: char) -> usize {
    let triple: String = [quote; 3].iter().collect();
    let mark = if rest.starts_with(&triple) { triple } else { quote.to_string() };
    let mut at = mark.len();
    while let Some(c) = rest[at..].chars().next() {
        if rest[at..].starts_with(&mark) {
            return at + mark.len();
        }
        at += c.len_utf8();
        if c == '\\' {
            at += rest[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Colours by letter, one for each visible character.
    fn colours(input: &str, is_gremlin: bool) -> String {
        let coloured = highlight(input, is_gremlin);
        let (mut out, mut visible, mut colour) = (String::new(), String::new(), '.');
        let mut rest = coloured.as_str();
        while let Some(c) = rest.chars().next() {
            if c == '\x1b' {
                let end = rest.find('m').expect("a whole sequence") + 1;
                colour = match &rest[..end] {
                    COMMENT => 'c',
                    TEXT => 't',
                    NUMBER => 'n',
                    IRI => 'i',
                    KEYWORD => 'k',
                    VARIABLE => 'v',
                    _ => '.',
                };
                rest = &rest[end..];
                continue;
            }
            visible.push(c);
            out.push(colour);
            rest = &rest[c.len_utf8()..];
        }
        assert_eq!(visible, input, "the visible characters are the same");
        out
    }

    #[test]
    fn tokens_have_colours() {
        for (input, is_gremlin, expected) in [
            ("SELECT ?x { ?x <u:a> 'b' }", false, "kkkkkk.vv...vv.iiiii.ttt.."),
            ("ask {?x key:select 1.5 . # c", false, "kkk..vv............nnn...ccc"),
            ("?a < 3", false, "vv...n"),
            ("'a\\'b' \"größe", false, "tttttt.tttttt"),
            ("g.V().has('a', 1)", true, "..k...kkk.ttt..n."),
            ("g.V() // x", true, "..k...cccc"),
        ] {
            assert_eq!(colours(input, is_gremlin), expected, "{input}");
        }
        for input in ["", "'", "'''a\nb", "<", "é?", "\\", "\"\\", "日本 \u{301}"] {
            colours(input, false);
            colours(input, true);
        }
    }
}
