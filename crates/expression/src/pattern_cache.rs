//! Compiled patterns of one query, by text and flags: for patterns that are computed for each row.

use crate::pattern::Pattern;
use std::sync::Mutex;
use vervet_model::{Result, lock};

/// Maximum number of patterns. A look-up compares with each of them.
const PATTERNS_MAX: usize = 64;

/// Maximum size of all patterns, in bytes.
const PATTERNS_BYTES: usize = 4 << 20;

/// See the header. A full cache is emptied.
#[derive(Default, Debug)]
pub(crate) struct PatternCache(Mutex<Patterns>);

#[derive(Default, Debug)]
struct Patterns {
    entries: Vec<Entry>,
    size_bytes: usize,
}

#[derive(Debug)]
struct Entry {
    text: Box<str>,
    flags: Box<str>,
    /// `None`: it is invalid.
    pattern: Option<Pattern>,
}

impl PatternCache {
    /// The pattern with this text and these flags, made by `compile` if it is new; `None` if it is invalid.
    ///
    /// # Errors
    /// Those of `compile`.
    pub(crate) fn find(
        &self,
        text: &str,
        flags: &str,
        compile: impl FnOnce() -> Result<Option<Pattern>>,
    ) -> Result<Option<Pattern>> {
        let is_it = |entry: &&Entry| *entry.text == *text && *entry.flags == *flags;
        if let Some(entry) = lock(&self.0).entries.iter().find(is_it) {
            return Ok(entry.pattern.clone());
        }
        // Without the lock: other threads go on meanwhile.
        let pattern = compile()?;
        let size_bytes = text.len() + pattern.as_ref().map_or(0, Pattern::size_bytes);
        let mut patterns = lock(&self.0);
        if patterns.entries.len() >= PATTERNS_MAX || patterns.size_bytes + size_bytes > PATTERNS_BYTES {
            patterns.entries.clear();
            patterns.size_bytes = 0;
        }
        if size_bytes <= PATTERNS_BYTES {
            patterns.size_bytes += size_bytes;
            let (text, flags) = (text.into(), flags.into());
            patterns.entries.push(Entry { text, flags, pattern: pattern.clone() });
        }
        Ok(pattern)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_compiled_once_and_bounded() {
        let cache = PatternCache::default();
        let mut compiled = 0;
        let mut find = |text: &str, flags: &str| {
            let compile = || {
                compiled += 1;
                Pattern::new(text, flags, &mut |_| Ok(()))
            };
            let found = cache.find(text, flags, compile).unwrap();
            (found.is_some(), compiled)
        };
        assert_eq!(find("a", ""), (true, 1));
        assert_eq!(find("a", ""), (true, 1));
        assert_eq!(find("a", "i"), (true, 2));
        assert_eq!(find("(", ""), (false, 3));
        assert_eq!(find("(", ""), (false, 3));
        for number in 0..1000 {
            find(&format!("[a-z]{{{number}}}"), "");
        }
        let patterns = lock(&cache.0);
        assert!(patterns.entries.len() <= PATTERNS_MAX && patterns.size_bytes <= PATTERNS_BYTES);
    }
}
