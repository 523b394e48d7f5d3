//! Interruptible search of a regular expression: for long texts and large programs.
//!
//! # Shape
//! The library runs a search to its end. Here its lazy DFA is advanced byte by byte (as its own
//! `hybrid::search` does, without prefilters), so that the work can be counted between bytes. The DFA of the
//! pattern finds the end of the leftmost match, and the DFA of the reversed pattern its start.
//! # Cost
//! Some 2 ns a byte while the states of the DFA are known. A byte that needs a new state costs up to the size
//! of the program, and is counted as such.

use crate::work::{Work, of_text};
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Builder, Cache, Config, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind};
use std::ops::Range;
use std::sync::Mutex;
use vervet_model::{Error, Result, lock};

/// Maximum number of idle caches: one for each thread that searches.
const IDLE_MAX: usize = 16;

/// Bytes between two counts of work in a search with a small program.
const STEP_BYTES: usize = 1 << 12;

/// Bytes of the program that one new state of the DFA visits in a unit of work.
const PROGRAM_BYTES_PER_UNIT: usize = 64;

/// See the header.
#[derive(Debug)]
pub(crate) struct SteppedSearch {
    forward: Direction,
    reverse: Direction,
}

/// A DFA with the caches of its states.
#[derive(Debug)]
struct Direction {
    dfa: DFA,
    /// Size of the program, in bytes.
    program_bytes: usize,
    idle: Mutex<Vec<Cache>>,
}

impl SteppedSearch {
    /// `None` if the pattern cannot be a lazy DFA, or its program is larger than `program_bytes`.
    pub(crate) fn new(
        pattern: &str,
        syntax: syntax::Config,
        program_bytes: usize,
        states_bytes: usize,
    ) -> Option<Self> {
        let direction = |reverse: bool| {
            // No limit for the number of times that the cache is cleared: a search never gives up.
            let config = Config::new()
                .match_kind(if reverse { MatchKind::All } else { MatchKind::LeftmostFirst })
                .cache_capacity(states_bytes)
                .skip_cache_capacity_check(true);
            // The reversed program may be larger, and the pattern has passed the limit.
            let program = thompson::Config::new().reverse(reverse).nfa_size_limit(Some(4 * program_bytes));
            let dfa =
                Builder::new().syntax(syntax).configure(config).thompson(program).build(pattern).ok()?;
            let program_bytes = dfa.get_nfa().memory_usage();
            Some(Direction { dfa, program_bytes, idle: Mutex::default() })
        };
        Some(Self { forward: direction(false)?, reverse: direction(true)? })
    }

    /// Whether the pattern matches somewhere in `range` of `text`; `^` and `$` depend on the text around it.
    ///
    /// # Errors
    /// Those of `work`.
    pub(crate) fn is_match(&self, text: &str, range: Range<usize>, work: &mut Work<'_>) -> Result<bool> {
        Ok(self.forward.end(text, range, true, work)?.is_some())
    }

    /// The leftmost match in `range` of `text`; `^` and `$` depend on the text around it.
    ///
    /// # Errors
    /// Those of `work`.
    pub(crate) fn find(
        &self,
        text: &str,
        range: Range<usize>,
        work: &mut Work<'_>,
    ) -> Result<Option<Range<usize>>> {
        let from = range.start;
        let Some(end) = self.forward.end(text, range, false, work)? else { return Ok(None) };
        let start = self.reverse.start(text, from..end, work)?;
        let start = start.ok_or_else(|| Error::internal("the reversed pattern does not match"))?;
        Ok(Some(start..end))
    }
}

impl Direction {
    /// The end of the leftmost match in `range`; with `any`, an end of any match.
    fn end(&self, text: &str, range: Range<usize>, any: bool, work: &mut Work<'_>) -> Result<Option<usize>> {
        let (dfa, bytes) = (&self.dfa, text.as_bytes());
        self.with_cache(|cache| {
            let mut counter = Counter::new(self, cache);
            let mut state =
                dfa.start_state_forward(cache, &Input::new(text).range(range.clone())).map_err(gave_up)?;
            let mut end = None;
            for (at, &byte) in bytes.iter().enumerate().take(range.end).skip(range.start) {
                counter.byte(cache, work)?;
                state = dfa.next_state(cache, state, byte).map_err(gave_up)?;
                if state.is_tagged() {
                    if state.is_match() {
                        // The DFA reports a match one byte late.
                        end = Some(at);
                        if any {
                            return Ok(end);
                        }
                    } else if state.is_dead() {
                        return Ok(end);
                    }
                    check_quit(state)?;
                }
            }
            state = match bytes.get(range.end) {
                Some(&after) => dfa.next_state(cache, state, after).map_err(gave_up)?,
                None => dfa.next_eoi_state(cache, state).map_err(gave_up)?,
            };
            Ok(if state.is_match() { Some(range.end) } else { end })
        })
    }

    /// The first start of a match that ends at the end of `range`, for the reversed pattern.
    fn start(&self, text: &str, range: Range<usize>, work: &mut Work<'_>) -> Result<Option<usize>> {
        let (dfa, bytes) = (&self.dfa, text.as_bytes());
        self.with_cache(|cache| {
            let mut counter = Counter::new(self, cache);
            let input = Input::new(text).range(range.clone()).anchored(Anchored::Yes);
            let mut state = dfa.start_state_reverse(cache, &input).map_err(gave_up)?;
            let mut start = None;
            for at in range.clone().rev() {
                counter.byte(cache, work)?;
                state = dfa.next_state(cache, state, bytes[at]).map_err(gave_up)?;
                if state.is_tagged() {
                    if state.is_match() {
                        start = Some(at + 1);
                    } else if state.is_dead() {
                        return Ok(start);
                    }
                    check_quit(state)?;
                }
            }
            state = match range.start.checked_sub(1) {
                Some(before) => dfa.next_state(cache, state, bytes[before]).map_err(gave_up)?,
                None => dfa.next_eoi_state(cache, state).map_err(gave_up)?,
            };
            Ok(if state.is_match() { Some(range.start) } else { start })
        })
    }

    /// Calls `search` with a cache, idle or new.
    fn with_cache<T>(&self, search: impl FnOnce(&mut Cache) -> Result<T>) -> Result<T> {
        let idle = lock(&self.idle).pop();
        let mut cache = idle.unwrap_or_else(|| self.dfa.create_cache());
        let found = search(&mut cache)?;
        let mut idle = lock(&self.idle);
        if idle.len() < IDLE_MAX {
            idle.push(cache);
        }
        Ok(found)
    }
}

/// Counts the work of a search.
struct Counter {
    /// Bytes between two counts: fewer for a large program, since each may cost a new state.
    step: usize,
    /// Bytes left until the next count.
    left: usize,
    /// Work if each byte of a step made a new state.
    units_of_new: usize,
    cache_bytes: usize,
    clear_count: usize,
}

impl Counter {
    fn new(direction: &Direction, cache: &Cache) -> Self {
        // A step of new states is about a millisecond.
        let units_of_state = direction.program_bytes / PROGRAM_BYTES_PER_UNIT + 1;
        let step = ((1 << 16) / units_of_state).clamp(4, STEP_BYTES);
        Self {
            step,
            left: step,
            units_of_new: units_of_state * step,
            cache_bytes: cache.memory_usage(),
            clear_count: cache.clear_count(),
        }
    }

    #[inline]
    fn byte(&mut self, cache: &Cache, work: &mut Work<'_>) -> Result<()> {
        self.left -= 1;
        if self.left == 0 { self.count(cache, work) } else { Ok(()) }
    }

    #[cold]
    fn count(&mut self, cache: &Cache, work: &mut Work<'_>) -> Result<()> {
        self.left = self.step;
        let (cache_bytes, clear_count) = (cache.memory_usage(), cache.clear_count());
        let grew = cache_bytes != self.cache_bytes || clear_count != self.clear_count;
        (self.cache_bytes, self.clear_count) = (cache_bytes, clear_count);
        work(if grew { self.units_of_new } else { 1 + 8 * of_text(self.step) })
    }
}

fn check_quit(state: LazyStateID) -> Result<()> {
    // Only word boundaries have bytes that stop the DFA, and XPath has no word boundaries.
    if state.is_quit() { Err(gave_up("a byte that stops the DFA")) } else { Ok(()) }
}

fn gave_up(error: impl std::fmt::Display) -> Error {
    Error::internal(format!("the search of a regular expression gave up: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex_automata::meta::Regex;
    use vervet_model::ErrorKind;

    fn search(pattern: &str) -> SteppedSearch {
        SteppedSearch::new(pattern, syntax::Config::new().multi_line(true), 1 << 20, 1 << 20)
            .expect("it compiles")
    }

    /// The matches are those of the library, for each pattern, text and first position.
    #[test]
    fn matches_are_those_of_the_library() {
        let patterns = [
            "a",
            "ab|abc",
            "(a|ab)(c|bcd)?",
            "^a",
            "b$",
            "[^a]+?b",
            "é+",
            "(?:ab)+",
            "x|^.*a$",
            ".+",
            "a.*?b",
        ];
        let texts = ["", "a", "abc", "abcd abcd", "é é\nab", "xxabxxab\nba", "bbbbbbb", "aaéaabé"];
        for pattern in patterns {
            let syntax = syntax::Config::new().multi_line(true);
            let (mine, theirs) = (search(pattern), Regex::builder().syntax(syntax).build(pattern).unwrap());
            for text in texts {
                let ends = (0..=text.len()).filter(|end| text.is_char_boundary(*end));
                for range in ends
                    .clone()
                    .flat_map(|to| ends.clone().take_while(move |from| *from <= to).map(move |from| from..to))
                {
                    let found = mine.find(text, range.clone(), &mut |_| Ok(())).unwrap();
                    let input = Input::new(text).range(range.clone());
                    let expected = theirs.search(&input).map(|found| found.range());
                    assert_eq!(found, expected, "{pattern:?} in {text:?} {range:?}");
                    let any = mine.is_match(text, range, &mut |_| Ok(())).unwrap();
                    assert_eq!(any, expected.is_some(), "{pattern:?} in {text:?}");
                }
            }
        }
    }

    /// A search in a text of a megabyte stops after a fixed amount of work, with known and with new states.
    #[test]
    fn searches_count_their_work() {
        let text = "ab".repeat(1 << 19);
        for pattern in ["c", "([ab]{30}[a-b]*){20}x", "[ab]*a[ab]{12}c"] {
            let mut units = 0;
            let mut work = |more: usize| {
                units += more;
                if units > 1 << 17 { Err(Error::new(ErrorKind::Cancelled, "enough")) } else { Ok(()) }
            };
            let stopped = search(pattern).find(&text, 0..text.len(), &mut work);
            assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Cancelled, "{pattern}");
            assert!(units < 1 << 18, "{pattern}: {units}");
        }
    }
}
