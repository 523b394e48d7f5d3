//! Regular expressions of `REGEX` and `REPLACE`: the syntax of the crate `regex` (linear time), with the
//! flags of XPath (`i`, `m`, `s`, `x`, `q`) and XPath's replacement strings.
//!
//! Different from XPath: no back references in patterns, and a pattern may match the empty string.

use regex::{Captures, Regex, RegexBuilder};

/// Maximum size of the compiled program of one pattern, in bytes.
const PROGRAM_BYTES: usize = 1_000_000;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    /// Flag `q`: the replacement is literal text, too.
    literal: bool,
}

/// Whether a pattern and its flags are valid for `REGEX` and `REPLACE`; a condition with an invalid one is an
/// error for every row.
#[must_use]
pub fn is_regex(pattern: &str, flags: &str) -> bool {
    Pattern::new(pattern, flags).is_some()
}

impl Pattern {
    /// Compiles a pattern; `None` if the pattern or the flags are invalid, or the program is too large.
    pub(crate) fn new(pattern: &str, flags: &str) -> Option<Self> {
        let literal = flags.contains('q');
        let escaped = literal.then(|| regex::escape(pattern));
        let mut builder = RegexBuilder::new(escaped.as_deref().unwrap_or(pattern));
        builder.size_limit(PROGRAM_BYTES);
        for flag in flags.chars() {
            match flag {
                'i' => builder.case_insensitive(true),
                'm' => builder.multi_line(true),
                's' => builder.dot_matches_new_line(true),
                // With `q` white space is significant.
                'x' => builder.ignore_whitespace(!literal),
                'q' => &mut builder,
                _ => return None,
            };
        }
        Some(Self { regex: builder.build().ok()?, literal })
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Replaces each match in `text`; `None` if the replacement is invalid or the result longer than `limit`
    /// bytes.
    pub(crate) fn replace(&self, text: &str, replacement: &str, limit: usize) -> Option<Replacement> {
        let template = if self.literal {
            vec![TemplateToken::Text(replacement.to_owned())]
        } else {
            parse_replacement(replacement, self.regex.captures_len() - 1)?
        };
        let mut out = String::with_capacity(text.len());
        let mut end = 0;
        for captures in self.regex.captures_iter(text) {
            let Some(whole) = captures.get(0) else { continue };
            out.push_str(&text[end..whole.start()]);
            expand(&template, &captures, &mut out);
            end = whole.end();
            if out.len() > limit {
                return Some(Replacement::TooLong);
            }
        }
        out.push_str(&text[end..]);
        Some(if out.len() > limit { Replacement::TooLong } else { Replacement::Text(out) })
    }
}

/// Result of [`Pattern::replace`].
pub(crate) enum Replacement {
    Text(String),
    TooLong,
}

enum TemplateToken {
    Text(String),
    Group(usize),
}

fn expand(template: &[TemplateToken], captures: &Captures<'_>, out: &mut String) {
    for token in template {
        match token {
            TemplateToken::Text(text) => out.push_str(text),
            TemplateToken::Group(number) => {
                out.push_str(captures.get(*number).map_or("", |found| found.as_str()))
            }
        }
    }
}

/// Parses a replacement string by XPath F&O §5.6.4: `$N` is a group (the longest sequence of digits that is
/// an existing group), `\$` and `\\` are escapes; any other `$` or `\` is an error.
fn parse_replacement(replacement: &str, groups: usize) -> Option<Vec<TemplateToken>> {
    let mut tokens = Vec::new();
    let mut text = String::new();
    let mut chars = replacement.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                escaped @ ('$' | '\\') => text.push(escaped),
                _ => return None,
            },
            '$' => {
                let mut number = usize::try_from(chars.next()?.to_digit(10)?).ok()?;
                while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
                    let longer = number * 10 + usize::try_from(digit).ok()?;
                    if longer > groups {
                        break;
                    }
                    number = longer;
                    chars.next();
                }
                tokens.push(TemplateToken::Text(std::mem::take(&mut text)));
                tokens.push(TemplateToken::Group(number));
            }
            c => text.push(c),
        }
    }
    tokens.push(TemplateToken::Text(text));
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacements_are_those_of_xpath() {
        let check = |text: &str, pattern: &str, replacement: &str, flags: &str, expected: Option<&str>| {
            let found = Pattern::new(pattern, flags).unwrap().replace(text, replacement, 100);
            let found = found.map(|found| match found {
                Replacement::Text(text) => text,
                Replacement::TooLong => "too long".to_owned(),
            });
            assert_eq!(found.as_deref(), expected, "{text} {pattern} {replacement} {flags}");
        };
        check("abracadabra", "bra", "*", "", Some("a*cada*"));
        check("abracadabra", "a(.)", "a$1$1", "", Some("abbraccaddabbra"));
        check("abcd", "(a)(b)", "$2x$1y$3", "", Some("bxaycd"));
        check("ab", "(a)", "$12", "", Some("a2b"));
        check("ab", "(?P<x>a)", "$0$0", "", Some("aab"));
        check("a.b", ".", "$1", "q", Some("a$1b"));
        check("a", "a", "\\$\\\\", "", Some("$\\"));
        check("a", "a", "$", "", None);
        check("a", "a", "$x", "", None);
        check("a", "a", "\\n", "", None);
        check("aaaaaaaaaaaaaaaaaaaa", "a", "1234567890", "", Some("too long"));
        assert!(Pattern::new("(", "").is_none());
        assert!(Pattern::new("a", "z").is_none());
        assert!(Pattern::new("(a{1000}){1000}", "").is_none());
    }
}
