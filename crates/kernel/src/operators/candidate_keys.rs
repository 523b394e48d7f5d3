//! Iterator over the candidate keys of a sargable condition, in batches.
//!
//! # Shape
//! Keys in ranges of ids, then literals at positions of the text order, then literals (not yet in that
//! order) or literals found in the word index: see [`CandidateKeys`]. Literals need not be keys.
//! # Cost
//! Unordered literals and search results are collected once, for any number of segments and rows.

use crate::pipeline::chain::Run;
use crate::plan::{CandidateKeys, StringRange};
use vervet_model::{Id, Result, Tag};
use vervet_snapshot::Segment;

/// Iterator over candidate keys; see the header.
pub(crate) struct CandidateKeyIter<'a> {
    candidates: &'a CandidateKeys,
    /// Unordered literals, or results of a search.
    listed: Option<Vec<Id>>,
    position: IterPosition,
}

/// Position of the iterator.
#[derive(Default)]
struct IterPosition {
    /// Index of the current key range.
    range: usize,
    /// The next key within that range, if the range has begun.
    key: Option<Id>,
    /// Number of literals returned by position, and of `listed`.
    in_order: u64,
    listed: usize,
}

impl<'a> CandidateKeyIter<'a> {
    pub(crate) fn new(candidates: &'a CandidateKeys) -> Self {
        debug_assert!(candidates.keys.is_sorted_by(|a, b| a.1 < b.0), "ranges of keys are disjoint");
        Self { candidates, listed: None, position: IterPosition::default() }
    }

    /// Whether the candidates may include vertices.
    pub(crate) fn has_vertices(&self) -> bool {
        self.candidates
            .keys
            .iter()
            .any(|(first, last)| first.tag() <= Tag::Vertex && last.tag() >= Tag::Vertex)
    }

    /// Rewinds to the first key.
    pub(crate) fn restart(&mut self) {
        self.position = IterPosition::default();
    }

    /// Replaces `keys` by the next candidates, at most [`crate::Control::batch_rows`]; `false`: the iterator
    /// has ended.
    ///
    /// # Errors
    /// Limits, damaged data.
    pub(crate) fn next(&mut self, segment: &dyn Segment, run: &Run<'_>, keys: &mut Vec<Id>) -> Result<bool> {
        keys.clear();
        let most = run.control.batch_rows();
        let position = &mut self.position;
        if let Some(&(first, last)) = self.candidates.keys.get(position.range) {
            position.key = segment.keys_up_to(position.key.unwrap_or(first), last, most, keys)?;
            position.range += usize::from(position.key.is_none());
            run.control.work(1)?;
            return Ok(true);
        }
        let literals = &self.candidates.literals;
        let start = literals.start + position.in_order;
        if start < literals.end {
            let end = literals.end.min(start + most as u64);
            run.snapshot.literals_in_order(start..end, keys)?;
            position.in_order = end - literals.start;
            // Literals that are not keys produce no output, so no later step counts this work.
            run.control.work(keys.len())?;
            return Ok(true);
        }
        if self.listed.is_none() {
            self.listed = Some(self.list(run)?);
        }
        let rest =
            self.listed.as_ref().and_then(|listed| listed.get(self.position.listed..)).unwrap_or_default();
        let count = rest.len().min(most);
        keys.extend_from_slice(&rest[..count]);
        self.position.listed += count;
        run.control.work(count)?;
        Ok(count > 0)
    }

    /// Collects the unordered literals, or the results of a search.
    fn list(&self, run: &Run<'_>) -> Result<Vec<Id>> {
        let mut listed = Vec::new();
        // Intermediate results count against the memory cap until they are freed.
        let mut counted = 0;
        let mut meter = |ids: usize| {
            let bytes = (ids * size_of::<Id>()) as u64;
            counted += bytes;
            run.control.grow(bytes)?;
            run.control.work(ids)?;
            run.control.check()
        };
        if let Some(StringRange { from, to }) = &self.candidates.string_range {
            run.snapshot.unordered_literals(from, to.as_deref(), &mut listed, &mut meter)?;
        }
        if let Some(search) = &self.candidates.search {
            run.snapshot.search(search, &mut listed, &mut meter)?;
        }
        run.control.shrink(counted);
        run.control.grow((listed.capacity() * size_of::<Id>()) as u64)?;
        Ok(listed)
    }
}
