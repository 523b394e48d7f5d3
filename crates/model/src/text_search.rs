//! Full-text search: word segmentation, search syntax, matching and scores.
//!
//! # Shape
//! Words are those of UAX #29 in lower case: `don't`, `3.14` and `foo_bar` are one each, every Han character
//! is one. Of a longer word only the first [`WORD_BYTES_MAX`] bytes are compared. Accents are significant,
//! and there are no stop words.
//!
//! | search | finds texts with |
//! | --- | --- |
//! | `graph data` | both words, anywhere |
//! | `"graph data"` | the words in sequence |
//! | `graph*`, `"graph dat*"` | a word with this prefix, as the last one |
//! | `graph -theory` | the first word and not the second |
//! | `graph OR network data` | `graph`, or both `network` and `data` |
//!
//! A group of several words without quotes (`foo-bar`) is a phrase. Characters outside words only separate.
//! # Invariants
//! The index of a dictionary and the test of a text use the same segmentation, so they agree.
//! # Cost
//! A test segments its text, and compares each word once for each clause of the search.

use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

/// Maximum number of bytes of a word that are compared; up to three fewer, to end between characters.
pub const WORD_BYTES_MAX: usize = 128;
/// Maximum number of words of a search.
pub const SEARCH_WORDS_MAX: usize = 64;

/// Calls `visit` with each word of `text`; `scratch` is working space.
pub fn for_each_word(text: &str, scratch: &mut String, mut visit: impl FnMut(&str)) {
    for word in text.unicode_words() {
        visit(case_folded(word, scratch));
    }
}

/// The case-case_folded form in which words are compared.
fn case_folded<'a>(word: &'a str, scratch: &'a mut String) -> &'a str {
    let word = &word[..compared_length(word)];
    if word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
        return word;
    }
    scratch.clear();
    if word.is_ascii() {
        scratch.push_str(word);
        scratch.make_ascii_lowercase();
    } else {
        scratch.push_str(&word.to_lowercase());
        // Lower case may be longer.
        scratch.truncate(compared_length(scratch));
    }
    scratch
}

/// Length of the compared prefix of `word`, in bytes.
fn compared_length(word: &str) -> usize {
    let mut end = word.len().min(WORD_BYTES_MAX);
    while !word.is_char_boundary(end) {
        end -= 1;
    }
    end
}

/// A parsed search. See the header of this file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextSearch {
    /// The search matches if any of these does.
    alternatives: Vec<Vec<SearchClause>>,
}

/// A word, a prefix, or a phrase.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SearchClause {
    /// Consecutive words; at least one.
    pub words: Vec<String>,
    /// Whether the last word is a prefix.
    pub is_prefix: bool,
    /// Whether the clause must not match.
    pub is_excluded: bool,
}

/// Syntax error of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SearchError {
    /// The search or one of its alternatives has no required word.
    NoRequiredWord,
    /// A quote is not closed.
    OpenQuote,
    /// More than [`SEARCH_WORDS_MAX`] words.
    TooManyWords,
}

impl std::fmt::Display for SearchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoRequiredWord => write!(f, "the search names no word that texts must have"),
            Self::OpenQuote => write!(f, "a quote of the search is not closed"),
            Self::TooManyWords => write!(f, "the search has more than {SEARCH_WORDS_MAX} words"),
        }
    }
}

/// The words of one text.
#[derive(Default, Debug)]
pub struct Words {
    text: String,
    ends: Vec<usize>,
    scratch: String,
}

impl Words {
    /// Replaces the words by those of `text`.
    pub fn take(&mut self, text: &str) {
        self.text.clear();
        self.ends.clear();
        for_each_word(text, &mut self.scratch, |word| {
            self.text.push_str(word);
            self.ends.push(self.text.len());
        });
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn word(&self, at: usize) -> &str {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[start..self.ends[at]]
    }
}

impl TextSearch {
    /// Parses a search.
    ///
    /// # Errors
    /// The text is not a valid search.
    pub fn parse(text: &str) -> Result<Self, SearchError> {
        let mut alternatives = vec![Vec::new()];
        let (mut rest, mut count) = (text.trim_start(), 0);
        while !rest.is_empty() {
            let (part, behind) = next_token(rest)?;
            rest = behind.trim_start();
            match part {
                SearchToken::Or => alternatives.push(Vec::new()),
                SearchToken::Clause(part) => {
                    count += part.words.len();
                    if count > SEARCH_WORDS_MAX {
                        return Err(SearchError::TooManyWords);
                    }
                    if let Some(last) = alternatives.last_mut() {
                        last.extend((!part.words.is_empty()).then_some(part));
                    }
                }
            }
        }
        let wanted = |parts: &Vec<SearchClause>| parts.iter().any(|part| !part.is_excluded);
        if alternatives.iter().all(wanted) {
            Ok(Self { alternatives })
        } else {
            Err(SearchError::NoRequiredWord)
        }
    }

    /// Alternatives of the search, each a conjunction of clauses.
    #[must_use]
    pub fn alternatives(&self) -> &[Vec<SearchClause>] {
        &self.alternatives
    }

    /// Whether a text of this length may match.
    #[must_use]
    pub fn may_match_length(&self, bytes: usize) -> bool {
        // A text may be longer in lower case, by half at most, except for ASCII text.
        let fits = |word: &String| word.len() <= bytes || (!word.is_ascii() && word.len() <= 2 * bytes);
        self.alternatives.iter().any(|parts| {
            parts.iter().filter(|part| !part.is_excluded).all(|part| part.words.iter().all(fits))
        })
    }

    /// Whether a text with these words matches.
    #[must_use]
    pub fn matches(&self, words: &Words) -> bool {
        self.alternatives.iter().any(|parts| {
            parts.iter().all(|part| part.occurrences(words).next().is_some() != part.is_excluded)
        })
    }

    /// The fraction of these words that match the search, more than 0 and at most 1; 0 if the text does not
    /// match. The best of several matching alternatives counts.
    #[must_use]
    pub fn score(&self, words: &Words) -> f64 {
        let mut best = 0;
        let mut hit = vec![false; words.len()];
        for parts in &self.alternatives {
            hit.fill(false);
            let all = parts.iter().all(|part| {
                let mut found = part.occurrences(words).peekable();
                if part.is_excluded {
                    return found.peek().is_none();
                }
                let any = found.peek().is_some();
                found.for_each(|place| hit[place].fill(true));
                any
            });
            if all {
                best = best.max(hit.iter().filter(|hit| **hit).count());
            }
        }
        // Texts have less than 2^30 words.
        #[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
        let share = best as f64 / words.len().max(1) as f64;
        share
    }
}

impl SearchClause {
    /// Ranges of words that match the clause.
    fn occurrences<'a>(&'a self, words: &'a Words) -> impl Iterator<Item = Range<usize>> + 'a {
        let length = self.words.len();
        let ends = length..words.len() + 1;
        ends.map(move |end| end - length..end).filter(move |place| self.matches_at(words, place.start))
    }

    fn matches_at(&self, words: &Words, start: usize) -> bool {
        self.words.iter().enumerate().all(|(at, wanted)| {
            let word = words.word(start + at);
            if self.is_prefix && at + 1 == self.words.len() {
                word.starts_with(wanted.as_str())
            } else {
                word == wanted
            }
        })
    }
}

enum SearchToken {
    Or,
    Clause(SearchClause),
}

/// The first item of `text`, which does not begin with white space, and the rest.
fn next_token(text: &str) -> Result<(SearchToken, &str), SearchError> {
    let (is_excluded, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (inner, mut rest) = match text.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').ok_or(SearchError::OpenQuote)?,
        None => text.split_at(text.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(text.len())),
    };
    if inner == "OR" && !is_excluded && !text.starts_with('"') {
        return Ok((SearchToken::Or, rest));
    }
    let mut is_prefix = inner.ends_with('*');
    if let Some(behind) = rest.strip_prefix('*') {
        (is_prefix, rest) = (true, behind);
    }
    let (mut words, mut scratch) = (Vec::new(), String::new());
    for_each_word(inner, &mut scratch, |word| words.push(word.to_owned()));
    Ok((SearchToken::Clause(SearchClause { words, is_prefix, is_excluded }), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(text: &str) -> Vec<String> {
        let (mut words, mut scratch) = (Vec::new(), String::new());
        for_each_word(text, &mut scratch, |word| words.push(word.to_owned()));
        words
    }

    fn finds(search: &str, text: &str) -> bool {
        let search = TextSearch::parse(search).expect("a search");
        let mut words = Words::default();
        words.take(text);
        let found = search.matches(&words);
        assert_eq!(search.score(&words) > 0.0, found, "{text}");
        found
    }

    #[test]
    fn words_follow_uax_29_in_lower_case() {
        assert_eq!(
            words_of("Don't PANIC, 3.14-fold (foo_bar)!"),
            ["don't", "panic", "3.14", "fold", "foo_bar"]
        );
        assert_eq!(words_of("ΟΔΟΣ Straße 東京"), ["οδος", "straße", "東", "京"]);
        assert_eq!(words_of(" \t--- ** "), [""; 0]);
        let long = "x".repeat(1000);
        assert_eq!(words_of(&long), [&long[..WORD_BYTES_MAX]]);
        assert!(words_of(&"İ".repeat(1000)).iter().all(|word| word.len() <= WORD_BYTES_MAX));
    }

    #[test]
    fn searches() {
        let text = "The Graph Database for Knowledge-Graphs, 東京タワー";
        for search in [
            "graph",
            "GRAPH database",
            "database graph",
            "\"graph database\"",
            "graph*",
            "know*",
            "\"graph data*\"",
            "\"graph data\"*",
            "graph -theory",
            "knowledge-graphs",
            "theory OR graph",
            "theory OR the for",
            "東京",
            "graph ***",
            "-theory graph",
            "-\"database graph\" the",
        ] {
            assert!(finds(search, text), "{search}");
        }
        for search in [
            "theory",
            "graph theory",
            "\"database graph\"",
            "data",
            "nowledge*",
            "\"the database\"",
            "graph -database",
            "theory OR network",
            "graphs-knowledge",
            "京東",
            "\"knowledge graph\"",
            "graph -know*",
        ] {
            assert!(!finds(search, text), "{search}");
        }
        assert!(!finds("a", ""));
    }

    #[test]
    fn invalid_searches_are_errors() {
        let wrong = |text: &str| TextSearch::parse(text).expect_err("no search");
        for text in ["", "  ", "-a", "a OR", "OR a", "a OR -b", "!!!", "-", "\"\""] {
            assert_eq!(wrong(text), SearchError::NoRequiredWord, "{text}");
        }
        assert_eq!(wrong("a \"b c"), SearchError::OpenQuote);
        assert_eq!(wrong(&"a ".repeat(65)), SearchError::TooManyWords);
        assert!(TextSearch::parse(&"a ".repeat(64)).is_ok());
    }

    #[test]
    fn scores_are_fractions_of_words() {
        let score = |search: &str, text: &str| {
            let mut words = Words::default();
            words.take(text);
            TextSearch::parse(search).expect("a search").score(&words)
        };
        assert_eq!(score("a", "a"), 1.0);
        assert_eq!(score("a", "a b a c"), 0.5);
        assert_eq!(score("a b", "a b a c"), 0.75);
        assert_eq!(score("a OR \"a c\"", "a b a c"), 0.5);
        assert_eq!(score("d", "a b a c"), 0.0);
    }
}
