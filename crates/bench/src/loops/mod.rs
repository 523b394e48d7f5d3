//! Performance baseline: graph patterns as hand-written loops over plain arrays.
//!
//! # Shape
//! Terms are numbered in order of first occurrence. One [`Csr`] per predicate and direction: `u32` offsets
//! over all terms, sorted `u32` neighbours. One byte for each term encodes its class. No versions, no
//! compression, no planner: the author of the loop was the planner.
//! # Cost
//! 8 bytes a term and predicate for the offsets, 8 bytes a statement for the neighbours. Loading is naive:
//! split lines, one hash map of borrowed strings, a sort per predicate and direction.
//! # Not here
//! Serialization: a result is a vector of numbers.

mod lubm;
mod patterns;

pub use lubm::LubmLoops;
pub use patterns::PatternLoops;

use rustc_hash::FxHashMap;
use vervet_model::{Error, ErrorKind, Result};

/// No class, or a class without a number.
pub const NO_CLASS: u8 = u8::MAX;
const TYPE: &str = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>";

/// The neighbours of every term in one direction of one predicate.
#[derive(Default, Debug)]
pub struct Csr {
    offsets: Vec<u32>,
    neighbours: Vec<u32>,
}

impl Csr {
    /// Builds it from pairs of (key, neighbour) in ascending order, for the keys `0..keys`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if there are more than 2^32 pairs.
    pub fn from_sorted(keys: usize, pairs: impl ExactSizeIterator<Item = (u32, u32)>) -> Result<Self> {
        if u32::try_from(pairs.len()).is_err() {
            return Err(Error::new(ErrorKind::Unsupported, "the loops hold at most 2^32 entries"));
        }
        let mut offsets = vec![0u32; keys + 1];
        let mut neighbours = Vec::with_capacity(pairs.len());
        for (key, neighbour) in pairs {
            offsets[key as usize + 1] += 1;
            neighbours.push(neighbour);
        }
        for key in 1..offsets.len() {
            offsets[key] += offsets[key - 1];
        }
        Ok(Self { offsets, neighbours })
    }

    /// The neighbours of a key, ascending.
    #[inline]
    #[must_use]
    pub fn of(&self, key: u32) -> &[u32] {
        let key = key as usize;
        &self.neighbours[self.offsets[key] as usize..self.offsets[key + 1] as usize]
    }

    /// The number of entries.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.neighbours.len()
    }

    /// The number of keys, those without neighbours included.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether `neighbour` is one of the neighbours of `key`.
    #[inline]
    #[must_use]
    pub fn has(&self, key: u32, neighbour: u32) -> bool {
        let neighbours = self.of(key);
        // A linear scan of a few neighbours is faster than a binary search.
        if neighbours.len() <= 16 {
            neighbours.contains(&neighbour)
        } else {
            neighbours.binary_search(&neighbour).is_ok()
        }
    }
}

/// Both directions of one predicate.
#[derive(Default, Debug)]
pub struct Both {
    /// From subjects to objects.
    pub outward: Csr,
    /// From objects to subjects.
    pub inward: Csr,
}

impl Both {
    /// Builds it from pairs of (subject, object) in any order; duplicates count once.
    ///
    /// # Errors
    /// As [`Csr::from_sorted`].
    pub fn from_pairs(keys: usize, mut pairs: Vec<(u32, u32)>) -> Result<Self> {
        pairs.sort_unstable();
        pairs.dedup();
        let outward = Csr::from_sorted(keys, pairs.iter().copied())?;
        pairs.iter_mut().for_each(|pair| *pair = (pair.1, pair.0));
        pairs.sort_unstable();
        Ok(Self { outward, inward: Csr::from_sorted(keys, pairs.iter().copied())? })
    }
}

/// A graph as plain arrays over borrowed text.
#[derive(Debug)]
pub struct Arrays<'a> {
    terms: Vec<&'a str>,
    numbers: FxHashMap<&'a str, u32>,
    predicates: FxHashMap<&'a str, Both>,
    statements: u64,
}

impl<'a> Arrays<'a> {
    /// Parses N-Triples in their usual layout: one statement per line, single blanks, no comments.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] with the number of the first line in another layout.
    pub fn parse(text: &'a str) -> Result<Self> {
        let mut terms = Vec::new();
        let mut numbers = FxHashMap::default();
        let mut pairs: FxHashMap<&str, Vec<(u32, u32)>> = FxHashMap::default();
        let mut number_of = |term: &'a str| {
            let next = u32::try_from(terms.len()).ok();
            let number = *numbers.entry(term).or_insert_with(|| {
                terms.push(term);
                next.unwrap_or(u32::MAX)
            });
            (number != u32::MAX).then_some(number)
        };
        for (index, line) in text.lines().enumerate() {
            let parts = line.strip_suffix(" .").and_then(|line| {
                let (subject, rest) = line.split_once(' ')?;
                let (predicate, object) = rest.split_once(' ')?;
                Some((number_of(subject)?, predicate, number_of(object)?))
            });
            let Some((subject, predicate, object)) = parts else {
                let what = format!("line {}: the loops cannot read {line:?}", index + 1);
                return Err(Error::new(ErrorKind::Input, what));
            };
            match pairs.get_mut(predicate) {
                Some(pairs) => pairs.push((subject, object)),
                None => drop(pairs.insert(predicate, vec![(subject, object)])),
            }
        }
        let mut predicates = FxHashMap::default();
        let mut statements = 0;
        for (predicate, pairs) in pairs {
            let both = Both::from_pairs(terms.len(), pairs)?;
            statements += both.outward.entries() as u64;
            predicates.insert(predicate, both);
        }
        Ok(Self { terms, numbers, predicates, statements })
    }

    /// The number of distinct statements.
    #[must_use]
    pub fn statements(&self) -> u64 {
        self.statements
    }

    /// The number of terms.
    #[must_use]
    pub fn terms(&self) -> usize {
        self.terms.len()
    }

    /// The number of a term in N-Triples form.
    #[must_use]
    pub fn number(&self, term: &str) -> Option<u32> {
        self.numbers.get(term).copied()
    }

    /// The term with this number.
    #[must_use]
    pub fn term(&self, number: u32) -> &'a str {
        self.terms[number as usize]
    }

    /// Takes a predicate out of the arrays; an empty one if it does not occur.
    fn take(&mut self, predicate: &str) -> Both {
        self.predicates.remove(predicate).unwrap_or_else(|| {
            let empty = || Csr { offsets: vec![0; self.terms.len() + 1], neighbours: Vec::new() };
            Both { outward: empty(), inward: empty() }
        })
    }
}
