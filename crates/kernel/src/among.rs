//! The keys of a segment that a condition can let through, in batches.
//!
//! # Shape
//! First keys in ranges of ids, then literals at positions of the order of texts, then those that came after
//! the order was made or that an index of words names: see [`Among`]. Literals need not be keys.
//! # Cost
//! Literals that are listed are found once, however many segments and rows they are wanted for.

use crate::chain::Run;
use crate::plan::{Among, Texts};
use vervet_model::{Id, Result, Tag};
use vervet_snapshot::Segment;

/// See the header of this file.
pub(crate) struct AmongKeys<'a> {
    among: &'a Among,
    /// Literals that came after the order was made, or that a search may find.
    listed: Option<Vec<Id>>,
    place: Place,
}

/// What comes next.
#[derive(Default)]
struct Place {
    /// Of the ranges of keys.
    range: usize,
    /// The key to go on with in that range, if it has begun.
    key: Option<Id>,
    /// How many literals have been listed by their positions, and of `listed`.
    in_order: u64,
    listed: usize,
}

impl<'a> AmongKeys<'a> {
    pub(crate) fn new(among: &'a Among) -> Self {
        debug_assert!(among.keys.is_sorted_by(|a, b| a.1 < b.0), "ranges of keys are apart");
        Self { among, listed: None, place: Place::default() }
    }

    /// Whether vertices may be among them.
    pub(crate) fn has_vertices(&self) -> bool {
        self.among.keys.iter().any(|(first, last)| first.tag() <= Tag::Vertex && last.tag() >= Tag::Vertex)
    }

    /// Starts with the first key again.
    pub(crate) fn restart(&mut self) {
        self.place = Place::default();
    }

    /// Replaces `keys` by the next ones, at most [`crate::Control::batch_rows`]; `false`: there are no more.
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
            // Literals that are no keys put out nothing, so nobody else would count this work.
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

    /// The literals that came after the order was made, or that a search may find.
    fn list(&self, run: &Run<'_>) -> Result<Vec<Id>> {
        let mut listed = Vec::new();
        // What is collected on the way counts until it is gone.
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
