//! Regular expressions of `REGEX` and `REPLACE`: those of XPath (F&O 3.1 §5.6), translated for the crate
//! `regex` (linear time). [`crate::xpath_regex`] lists the differences.

use crate::regex_search::SteppedSearch;
use crate::work::{UNITS_PER_CHECK, Work};
use crate::xpath_regex::{Flags, may_end_in_line_start, translate};
use regex_automata::meta::{self, Regex};
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use vervet_model::{Error, ErrorKind, Result};

/// Maximum size of the compiled program of one pattern, in bytes.
const PROGRAM_BYTES: usize = 1_000_000;

/// Maximum size of the lazily computed states of one pattern and thread, in bytes.
const STATES_BYTES: usize = 2 << 20;

/// Maximum size of a text times that of the program for a search that cannot be interrupted: at most some 40
/// ms (states times bytes), and mostly microseconds.
const UNINTERRUPTED_MAX: usize = 1 << 27;

/// The product of [`UNINTERRUPTED_MAX`] for one unit of work.
const PRODUCT_PER_UNIT: usize = 1 << 12;

/// Maximum size of a match of `REPLACE` times that of the program if the replacement has groups: the search
/// for groups cannot be interrupted.
const GROUPS_MAX: usize = 1 << 35;

/// A compiled pattern. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(Arc<Program>);

#[derive(Debug)]
struct Program {
    regex: Regex,
    /// Flag `q`: the replacement is literal text, too.
    literal: bool,
    /// Flag `m`.
    multi_line: bool,
    /// With the flag `m`: whether a match may end in `^`.
    ends_in_line_start: bool,
    /// The pattern in the syntax of the library.
    translated: String,
    syntax: syntax::Config,
    size_bytes: usize,
    /// For long texts; `None`: impossible for this pattern.
    stepped: OnceLock<Option<SteppedSearch>>,
}

/// Why a pattern and its flags are invalid for `REGEX`, or for `REPLACE` if `replaces`, so that the
/// expression is an error for every row; `None` if they are valid.
#[must_use]
pub fn regex_error(pattern: &str, flags: &str, replaces: bool) -> Option<String> {
    match Pattern::parse(pattern, flags, &mut |_| Ok(())) {
        // Nothing aborts it.
        Err(_) => None,
        Ok(Err(error)) => Some(error),
        Ok(Ok(pattern)) if replaces && pattern.matches_empty() => {
            Some("the pattern of REPLACE matches the empty string".to_owned())
        }
        Ok(Ok(_)) => None,
    }
}

impl Pattern {
    /// Compiles a pattern; `None` if the pattern or the flags are invalid, or the program is too large.
    ///
    /// # Errors
    /// Those of `work`.
    pub(crate) fn new(pattern: &str, flags: &str, work: &mut Work<'_>) -> Result<Option<Self>> {
        Ok(Self::parse(pattern, flags, work)?.ok())
    }

    /// As [`Pattern::new`], with the reason of a failure.
    fn parse(pattern: &str, flags: &str, work: &mut Work<'_>) -> Result<std::result::Result<Self, String>> {
        // Units for each byte: some 100 ns of translation, and as much of compilation.
        const UNITS: usize = 8;
        // A short pattern may have the largest program, so each is preceded by a check.
        work(UNITS_PER_CHECK + pattern.len().saturating_mul(UNITS))?;
        let translated = Flags::parse(flags).and_then(|flags| Ok((flags, translate(pattern, flags)?)));
        let (flags, translated) = match translated {
            Ok(translated) => translated,
            Err(error) => return Ok(Err(error)),
        };
        work(translated.len().saturating_mul(UNITS))?;
        let syntax = syntax::Config::new().case_insensitive(flags.ignore_case).multi_line(flags.multi_line);
        let limits =
            meta::Config::new().nfa_size_limit(Some(PROGRAM_BYTES)).hybrid_cache_capacity(STATES_BYTES);
        let regex = Regex::builder().configure(limits).syntax(syntax).build(&translated);
        Ok(match regex {
            Ok(regex) => {
                let size_bytes = regex.memory_usage() + translated.len();
                let (literal, multi_line) = (flags.literal, flags.multi_line);
                let ends_in_line_start = multi_line && may_end_in_line_start(&translated);
                Ok(Self(Arc::new(Program {
                    regex,
                    literal,
                    multi_line,
                    ends_in_line_start,
                    translated,
                    syntax,
                    size_bytes,
                    stepped: OnceLock::new(),
                })))
            }
            Err(error) => Err(match error.syntax_error() {
                // The last line names the error; the lines before show the translated pattern.
                Some(error) => {
                    let text = error.to_string();
                    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
                }
                None => "its program is too large".to_owned(),
            }),
        })
    }

    /// Memory of the program, in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        self.0.size_bytes
    }

    /// Whether the pattern matches the empty string, which is an error in `REPLACE` (FORX0003).
    fn matches_empty(&self) -> bool {
        self.0.regex.is_match("")
    }

    /// A bound of the work of a search in `bytes` bytes.
    fn product(&self, bytes: usize) -> usize {
        bytes.saturating_mul(self.0.size_bytes)
    }

    /// The interruptible search, if a search in `bytes` bytes may take long.
    fn stepped(&self, bytes: usize) -> Option<&SteppedSearch> {
        if self.product(bytes) <= UNINTERRUPTED_MAX {
            return None;
        }
        let Program { translated, syntax, stepped, .. } = &*self.0;
        stepped.get_or_init(|| SteppedSearch::new(translated, *syntax, PROGRAM_BYTES, STATES_BYTES)).as_ref()
    }

    /// Whether the pattern matches somewhere in `text`; `None` if this cannot be decided, because of a line
    /// feed at the end of the text.
    ///
    /// # Errors
    /// Those of `work`.
    pub(crate) fn is_match(&self, text: &str, work: &mut Work<'_>) -> Result<Option<bool>> {
        if !self.has_final_line_feed(text) {
            return self.is_match_in(text, 0..text.len(), work).map(Some);
        }
        let guarded = guarded(text);
        if self.is_match_in(&guarded, 0..text.len() - 1, work)? {
            return Ok(Some(true));
        }
        // A match would end after the line feed, where `^` does not match.
        let found = self.is_match_in(&guarded, 0..text.len(), work)?;
        Ok((!found || !self.0.ends_in_line_start).then_some(found))
    }

    fn is_match_in(&self, text: &str, range: Range<usize>, work: &mut Work<'_>) -> Result<bool> {
        if let Some(stepped) = self.stepped(range.len()) {
            return stepped.is_match(text, range, work);
        }
        work(self.product(range.len()) / PRODUCT_PER_UNIT)?;
        Ok(self.0.regex.is_match(Input::new(text).range(range)))
    }

    /// Whether the text ends with a line feed that `^` and `$` treat differently from the library, which has
    /// an empty line after it (F&O 3.1 §5.6.1.1: with `m`, neither of them matches there).
    fn has_final_line_feed(&self, text: &str) -> bool {
        self.0.multi_line && text.ends_with('\n')
    }

    /// Replaces each match in `text`, up to `limit` bytes; `None` if the replacement is invalid, the pattern
    /// matches the empty string, or the matches cannot be decided as in [`Pattern::is_match`].
    ///
    /// # Errors
    /// Those of `work`.
    pub(crate) fn replace(
        &self,
        text: &str,
        replacement: &str,
        limit: usize,
        work: &mut Work<'_>,
    ) -> Result<Option<Replacement>> {
        if self.matches_empty() {
            return Ok(None);
        }
        let regex = &self.0.regex;
        let template = if self.0.literal {
            vec![TemplateToken::Text(replacement.to_owned())]
        } else {
            match parse_replacement(replacement, regex.captures_len() - 1) {
                Some(template) => template,
                None => return Ok(None),
            }
        };
        let has_groups = template.iter().any(|token| matches!(token, TemplateToken::Group(1..)));
        let stepped = self.stepped(text.len());
        let mut groups = regex.create_captures();
        let is_guarded = self.has_final_line_feed(text);
        let haystack = if is_guarded { Cow::Owned(guarded(text)) } else { Cow::Borrowed(text) };
        let mut out = String::with_capacity(text.len().min(limit));
        let (mut end, mut start) = (0, 0);
        loop {
            let input = Input::new(&*haystack).range(end..text.len());
            let found = match stepped {
                Some(stepped) => stepped.find(&haystack, end..text.len(), work)?,
                None => {
                    work(1 + self.product(text.len() - end) / PRODUCT_PER_UNIT)?;
                    if has_groups {
                        regex.search_captures(&input, &mut groups);
                        groups.get_match().map(|found| found.range())
                    } else {
                        regex.search(&input).map(|found| found.range())
                    }
                }
            };
            let Some(whole) = found else { break };
            if is_guarded && self.0.ends_in_line_start && whole.end == text.len() {
                return Ok(None);
            }
            if stepped.is_some() && has_groups {
                if self.product(whole.len()) > GROUPS_MAX {
                    return Err(match_too_long(whole.len(), GROUPS_MAX / self.0.size_bytes));
                }
                let input = Input::new(&*haystack).range(whole.clone()).anchored(Anchored::Yes);
                regex.search_captures(&input, &mut groups);
            }
            out.push_str(&text[start..whole.start]);
            for token in &template {
                match token {
                    TemplateToken::Text(text) => out.push_str(text),
                    TemplateToken::Group(0) => out.push_str(&text[whole.clone()]),
                    TemplateToken::Group(number) => {
                        out.push_str(groups.get_group(*number).map_or("", |span| &text[span.range()]));
                    }
                }
            }
            // The pattern does not match the empty string, so each search starts later.
            (end, start) = (whole.end, whole.end);
            if out.len() > limit {
                return Ok(Some(Replacement::TooLong));
            }
        }
        out.push_str(&text[start..]);
        Ok(Some(if out.len() > limit { Replacement::TooLong } else { Replacement::Text(out) }))
    }
}

/// The text and a character after it, so that `$` does not match at the end of the text.
fn guarded(text: &str) -> String {
    let mut guarded = String::with_capacity(text.len() + 1);
    guarded.push_str(text);
    guarded.push('|');
    guarded
}

#[cold]
fn match_too_long(bytes: usize, limit: usize) -> Error {
    let message = format!(
        "REPLACE with groups found a match of {bytes} bytes; with this pattern a match has at most {limit}"
    );
    Error::new(ErrorKind::MemoryLimit, message).with_hint("replace without $1, or cut the text with SUBSTR")
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

    fn compiled(pattern: &str, flags: &str) -> std::result::Result<Pattern, String> {
        Pattern::parse(pattern, flags, &mut |_| Ok(())).expect("nothing aborts it")
    }

    #[test]
    fn replacements_are_those_of_xpath() {
        let check = |text: &str, pattern: &str, replacement: &str, flags: &str, expected: Option<&str>| {
            let found = compiled(pattern, flags).unwrap().replace(text, replacement, 100, &mut |_| Ok(()));
            let found = found.unwrap().map(|found| match found {
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
        check("a \nb \n", "\\s+$", "-", "m", Some("a-\nb-\n"));
        check("a\nb\n", "(^|b)\\n?", "-", "m", None);
        check("a\n", "\\n(^|b)", "-", "m", None);
        check("a\nb\n", "^.", "-", "m", Some("-\n-\n"));
        check("a", "a", "$", "", None);
        check("a", "a", "$x", "", None);
        check("a", "a", "\\n", "", None);
        check("aaaaaaaaaaaaaaaaaaaa", "a", "1234567890", "", Some("too long"));
        assert!(compiled("(", "").is_err());
        assert!(compiled("a", "z").is_err());
        assert!(compiled("(a{1000}){1000}", "").is_err());
    }

    /// Matches, mismatches and refusals, worked from XML Schema 1.1 part 2 §G and F&O 3.1 §5.6.1.
    #[test]
    fn patterns_are_those_of_xpath() {
        let cases: [(&str, &str, &[&str], &[&str]); 54] = [
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
            ("^b$", "m", &["a\nb", "b\nc", "b\n"], &["a b"]),
            // With m, a line feed at the end of the text ends a line and begins none.
            ("^$", "m", &["", "\n", "a\n\n", "\na"], &["a", "a\n"]),
            ("\\n$", "m", &["a\n\n"], &["a\n", "\n"]),
            ("\\n^", "m", &["a\nb", "a\n\n"], &["a", "ab"]),
            ("a\\n", "m", &["a\n", "ba\nb"], &["a"]),
            ("^\\n", "m", &["\n", "a\n\n"], &["a\n", "a\nb"]),
            // The code points on both sides of the surrogates.
            ("^[^\\C\\i]$", "", &["-", "5"], &["\u{E000}", "\u{D7FF}", "a", " "]),
            ("^[^\\i]$", "", &["\u{E000}", " "], &["\u{D7FF}", "a"]),
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
            let compiled = compiled(pattern, flags).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            let is_match = |text: &str| {
                compiled.is_match(text, &mut |_| Ok(())).expect("nothing aborts it") == Some(true)
            };
            for text in matching {
                assert!(is_match(text), "{pattern:?} {flags} matches {text:?}");
            }
            for text in others {
                assert!(!is_match(text), "{pattern:?} {flags} does not match {text:?}");
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
            let error = compiled(pattern, "").expect_err(pattern);
            assert!(!error.is_empty() && !error.contains('\n'), "{pattern}: {error}");
        }
        assert!(compiled(&"[a-".repeat(100), "").is_err());
    }

    /// Flag `m` against a search that tries everything: whether a match exists is right, or refused where a
    /// match may end in `^`.
    #[test]
    fn lines_are_those_of_xpath() {
        const TOKENS: [&str; 10] =
            ["a", "\\n", ".", "^", "$", "a*", "\\n*", "(?:^|a)", "(?:$|\\n)", "(?:a|)"];
        /// The ends of a match of one token at a position.
        fn ends(token: &str, text: &[u8], at: usize) -> Vec<usize> {
            let is_final = at == text.len() && text.last() == Some(&b'\n');
            let starts_line = at == 0 || text[at - 1] == b'\n' && !is_final;
            let ends_line = text.get(at) == Some(&b'\n') || at == text.len() && !is_final;
            let take = |byte| if text.get(at) == Some(&byte) { vec![at + 1] } else { vec![] };
            let repeat = |byte| (at..=at + text[at..].iter().take_while(|c| **c == byte).count()).collect();
            let here = |holds: bool| if holds { vec![at] } else { vec![] };
            match token {
                "a" | "." => take(b'a'),
                "\\n" => take(b'\n'),
                "^" => here(starts_line),
                "$" => here(ends_line),
                "a*" => repeat(b'a'),
                "\\n*" => repeat(b'\n'),
                "(?:^|a)" => [here(starts_line), take(b'a')].concat(),
                "(?:$|\\n)" => [here(ends_line), take(b'\n')].concat(),
                _ => [take(b'a'), here(true)].concat(),
            }
        }
        let texts: Vec<String> = (0..31_u32)
            .map(|n| n + 1)
            .map(|n| (0..n.ilog2()).map(|bit| if n >> bit & 1 == 1 { 'a' } else { '\n' }).collect())
            .collect();
        let (mut refused, mut all) = (0, 0);
        for number in 0..10_000 {
            let tokens =
                [number / 1000, number / 100 % 10, number / 10 % 10, number % 10].map(|at| TOKENS[at]);
            let pattern = compiled(&tokens.concat(), "m").expect("valid");
            for text in &texts {
                let matches = |from: usize| {
                    let mut at = vec![from];
                    for token in tokens {
                        at = at.iter().flat_map(|at| ends(token, text.as_bytes(), *at)).collect();
                    }
                    !at.is_empty()
                };
                let expected = (0..=text.len()).any(matches);
                let found = pattern.is_match(text, &mut |_| Ok(())).expect("nothing aborts it");
                all += 1;
                match found {
                    Some(found) => assert_eq!(found, expected, "{tokens:?} {text:?}"),
                    None => refused += 1,
                }
            }
        }
        assert!(refused * 20 < all, "{refused} of {all}");
    }
}
