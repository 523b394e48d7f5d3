//! Iterator over the candidate keys of a sargable condition, in batches.
//!
//! # Shape
//! Keys in ranges of ids, then literals at positions of the text order, then later literals (not yet in that
//! order) or literals found in the word index: see [`Among`]. Literals need not be keys.
//! # Cost
//! Later literals and search results are collected once, for any number of segments and rows.

use crate::chain::Run;
use crate::plan::{Among, Texts};
use vervet_model::{Id, Result, Tag};
use vervet_snapshot::Segment;

/// Iterator over candidate keys; see the header.
pub(crate) struct AmongKeys<'a> {
    among: &'a Among,
    /// Later literals, or results of a search.
    listed: Option<Vec<Id>>,
    place: Place,
}

/// Position of the iterator.
#[derive(Default)]
struct Place {
    /// Index of the current key range.
    range: usize,
    /// The next key within that range, if the range has begun.
    key: Option<Id>,
    /// Number of literals returned by position, and of `listed`.
    in_order: u64,
    listed: usize,
}

impl<'a> AmongKeys<'a> {
    pub(crate) fn new(among: &'a Among) -> Self {
        debug_assert!(among.keys.is_sorted_by(|a, b| a.1 < b.0), "ranges of keys are disjoint");
        Self { among, listed: None, place: Place::default() }
    }

    /// Whether the candidates may include vertices.
    pub(crate) fn has_vertices(&self) -> bool {
        self.among.keys.iter().any(|(first, last)| first.tag() <= Tag::Vertex && last.tag() >= Tag::Vertex)
    }

    /// Rewinds to the first key.
    pub(crate) fn restart(&mut self) {
        self.place = Place::default();
    }

    /// Replaces `keys` by the next candidates, at most [`crate::Control::batch_rows`]; `false`: the iterator
    /// has ended.
    ///
    /// # Errors
    /// Limits, damaged data.
    pub(crate) fn next(&mut self, segment: &dyn Segment, run: &Run<'_>, keys: &mut Vec<Id>) -> Result<bool> {
        keys.clear();
        let most = run.control.batch_rows();
        let place = &mut self.place;
        if let Some(&(first, last)) = self.among.keys.get(place.range) {
            place.key = segment.keys_up_to(place.key.unwrap_or(first), last, most, keys)?;
            place.range += usize::from(place.key.is_none());
            run.control.work(1)?;
            return Ok(true);
        }
        let literals = &self.among.literals;
        let start = literals.start + place.in_order;
        if start < literals.end {
            let end = literals.end.min(start + most as u64);
            run.snapshot.literals_in_order(start..end, keys)?;
            place.in_order = end - literals.start;
            // Literals that are not keys produce no output, so no later step counts this work.
            run.control.work(keys.len())?;
            return Ok(true);
        }
        if self.listed.is_none() {
            self.listed = Some(self.list(run)?);
        }
        let rest =
            self.listed.as_ref().and_then(|listed| listed.get(self.place.listed..)).unwrap_or_default();
        let count = rest.len().min(most);
        keys.extend_from_slice(&rest[..count]);
        self.place.listed += count;
        run.control.work(count)?;
        Ok(count > 0)
    }

    /// Collects the later literals, or the results of a search.
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
        if let Some(Texts { from, to }) = &self.among.texts {
            run.snapshot.later_literals(from, to.as_deref(), &mut listed, &mut meter)?;
        }
        if let Some(search) = &self.among.search {
            run.snapshot.search(search, &mut listed, &mut meter)?;
        }
        run.control.shrink(counted);
        run.control.grow((listed.capacity() * size_of::<Id>()) as u64)?;
        Ok(listed)
    }
}
