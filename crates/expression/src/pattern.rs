//! Regular expressions of `REGEX` and `REPLACE`: those of XPath (F&O 3.1 §5.6), translated for the crate
//! `regex` (linear time). [`crate::xpath_regex`] lists the differences.

use crate::xpath_regex::{Flags, translate};
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

/// Why a pattern and its flags are invalid for `REGEX`, or for `REPLACE` if `replaces`, so that the
/// expression is an error for every row; `None` if they are valid.
#[must_use]
pub fn regex_error(pattern: &str, flags: &str, replaces: bool) -> Option<String> {
    match Pattern::parse(pattern, flags) {
        Err(error) => Some(error),
        Ok(pattern) if replaces && pattern.matches_empty() => {
            Some("the pattern of REPLACE matches the empty string".to_owned())
        }
        Ok(_) => None,
    }
}

impl Pattern {
    /// Compiles a pattern; `None` if the pattern or the flags are invalid, or the program is too large.
    pub(crate) fn new(pattern: &str, flags: &str) -> Option<Self> {
        Self::parse(pattern, flags).ok()
    }

    /// As [`Pattern::new`], with the reason of a failure.
    fn parse(pattern: &str, flags: &str) -> Result<Self, String> {
        let flags = Flags::parse(flags)?;
        let regex = RegexBuilder::new(&translate(pattern, flags)?)
            .size_limit(PROGRAM_BYTES)
            .case_insensitive(flags.ignore_case)
            .multi_line(flags.multi_line)
            .build();
        match regex {
            Ok(regex) => Ok(Self { regex, literal: flags.literal }),
            Err(regex::Error::CompiledTooBig(_)) => Err("its program is too large".to_owned()),
            // The last line names the error; the lines before show the translated pattern.
            Err(error) => {
                let text = error.to_string();
                Err(text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned())
            }
        }
    }

    /// Whether the pattern matches the empty string, which is an error in `REPLACE` (FORX0003).
    fn matches_empty(&self) -> bool {
        self.regex.is_match("")
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Replaces each match in `text`, up to `limit` bytes; `None` if the replacement is invalid or the
    /// pattern matches the empty string.
    pub(crate) fn replace(&self, text: &str, replacement: &str, limit: usize) -> Option<Replacement> {
        if self.matches_empty() {
            return None;
        }
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
        check("ab", "(a)", "$0$0", "", Some("aab"));
        check("reluctant", "r.*?t", "X", "", Some("Xant"));
        check("abc", "x*", "-", "", None);
        check("abc", "^", "-", "m", None);
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

    /// Matches, mismatches and refusals, worked from XML Schema 1.1 part 2 §G and F&O 3.1 §5.6.1.
    #[test]
    fn patterns_are_those_of_xpath() {
        let cases: [(&str, &str, &[&str], &[&str]); 47] = [
            // Class subtraction and negation.
            ("^[a-z-[aeiou]]$", "", &["b", "z"], &["a", "u", "A", "-"]),
            ("^[^a-z-[0-9]]$", "", &["A", "-"], &["a", "5"]),
            ("^[a-z-[b-y-[m]]]$", "", &["a", "m", "z"], &["b", "n"]),
            ("^[\\w-[\\d_]]$", "", &["a", "é"], &["5", "_"]),
            ("^[A-Z-[OI]]$", "i", &["a", "Z"], &["o", "I", "i", "O"]),
            ("^[^Q]$", "i", &["a"], &["q", "Q"]),
            // No operators of other syntaxes.
            ("^[a&&b]$", "", &["a", "&", "b"], &["c"]),
            ("^[a~~b]$", "", &["a", "~"], &["c"]),
            ("^[+--]$", "", &["+", ",", "-"], &["."]),
            ("^[a-]$", "", &["a", "-"], &["b"]),
            ("^[-a]$", "", &["a", "-"], &["b"]),
            ("^[\\w-.]$", "", &["a", "-", "."], &["+x"]),
            ("^[\\[\\]\\^\\-]$", "", &["[", "]", "^", "-"], &["\\"]),
            ("^[a^]$", "", &["^", "a"], &["b"]),
            // \w is all but punctuation, separators and others; so it has symbols.
            ("^\\w$", "", &["a", "é", "日", "5", "+", "°", "^"], &["_", "-", ".", " ", "\n", "\u{AD}"]),
            ("^\\W$", "", &["_", " "], &["a", "+"]),
            ("^\\d$", "", &["5", "\u{0665}"], &["a", "½"]),
            ("^\\D$", "", &["a"], &["5"]),
            ("^\\s$", "", &[" ", "\t", "\n", "\r"], &["\u{A0}", "\u{B}", "\u{2003}"]),
            ("^\\S$", "", &["\u{A0}", "a"], &[" "]),
            ("^\\i\\c*$", "", &["a-b.c", "_1", ":x", "é\u{B7}"], &["1a", "-a", "a b", ""]),
            ("^\\I\\C$", "", &["1 ", "- "], &["a ", "11"]),
            ("^[\\i-[:]][\\c-[:]]*$", "", &["name", "n-1"], &["a:b", ":"]),
            // Blocks and categories.
            ("^\\p{IsBasicLatin}+$", "", &["abc~"], &["é"]),
            ("^\\P{IsBasicLatin}$", "", &["é"], &["a"]),
            ("^[\\p{IsGreek}\\p{IsCyrillic}]+$", "", &["αЖ"], &["a"]),
            ("^\\p{IsLatin-1Supplement}$", "", &["é"], &["Ā"]),
            ("^\\p{Lu}\\p{L}$", "", &["Aé"], &["aé"]),
            ("^\\p{Lu}$", "i", &["A"], &["a"]),
            ("^[\\p{Lu}x]$", "i", &["A", "x", "X"], &["a"]),
            // The dot, anchors, and the flags s, m, x, q.
            ("^a.b$", "", &["a b", "a\u{2028}b"], &["a\nb", "a\rb"]),
            ("^a.b$", "s", &["a\nb", "a\rb"], &["ab"]),
            ("^b$", "", &["b"], &["a\nb", "b\n"]),
            ("^b$", "m", &["a\nb", "b\nc"], &["a b"]),
            ("^hello world$", "x", &["helloworld"], &["hello world"]),
            ("^hello[ ]world$ ", "x", &["hello world"], &["helloworld"]),
            ("a#b", "x", &["a#b"], &["a"]),
            ("^a\\ d$", "x", &["a5"], &["a d", "ad"]),
            ("a.b*", "q", &["a.b*"], &["axb"]),
            ("A.B", "qi", &["a.b"], &["axb"]),
            ("GROSS", "i", &["gross"], &["groß"]),
            // Quantifiers and groups.
            ("^a{2,3}?b?$", "", &["aa", "aaab"], &["a", "aaaa"]),
            ("^(?:ab|)c{2}$", "", &["abcc", "cc"], &["abc"]),
            ("^()$", "", &[""], &["a"]),
            ("^a$|^b$", "", &["a", "b"], &["ab"]),
            ("\\n\\r\\t\\$\\^", "", &["\n\r\t$^"], &["n"]),
            ("^#-/&~ \"é$", "", &["#-/&~ \"é"], &[""]),
        ];
        for (pattern, flags, matching, others) in cases {
            let compiled =
                Pattern::parse(pattern, flags).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            for text in matching {
                assert!(compiled.is_match(text), "{pattern:?} {flags} matches {text:?}");
            }
            for text in others {
                assert!(!compiled.is_match(text), "{pattern:?} {flags} does not match {text:?}");
            }
        }
        for pattern in [
            "\\b",
            "(?i)a",
            "(?=a)",
            "(?<n>a)",
            "(?P<n>a)",
            "(a)\\1",
            "\\x41",
            "\\u0041",
            "\\p{Greek}",
            "\\pL",
            "\\p{IsKlingon}",
            "\\p{L",
            "\\h",
            "a**",
            "a++",
            "*a",
            "a{,3}",
            "a{",
            "a{3,2}",
            "a|*",
            "[]",
            "[^]",
            "[a",
            "[a[b]]",
            "[b-a]",
            "[[:alpha:]]",
            "[a-z-[b]c]",
            "(",
            ")",
            "a\\",
            "[\\d-\\q]",
        ] {
            let error = Pattern::parse(pattern, "").expect_err(pattern);
            assert!(!error.is_empty() && !error.contains('\n'), "{pattern}: {error}");
        }
        assert!(Pattern::parse(&"[a-".repeat(100), "").is_err());
    }
}
