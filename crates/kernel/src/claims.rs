//! Which rows and entries of an expansion the threads of a query take next.
//!
//! # Shape
//! Threads claim rows by a counter. A thread expands what it has claimed until its batch is full, and then
//! gives the rest back, so that others take it: the rows behind and, of a row with many entries, stretches
//! that begin and end between two neighbours ([`Segment::split`]). Few rows are cut before any thread begins.
//! # Invariants
//! 1. Claims are apart from each other, and together with the rows that are not claimed yet and the entries
//!    that have been taken they are all entries.
//! 2. A claim that ends inside a row is of that row alone.
//! # Cost
//! An atomic addition, or a lock for a push and a pop, for each batch. No lock is held while entries are
//! read.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use vervet_model::{Id, Result};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, Segment};

/// Stretches of one row for each thread: a stretch is given back after each batch, so only the last ones
/// decide whether threads end together.
const PARTS_PER_THREAD: usize = 8;

/// See the header of this file.
pub(crate) struct Claims {
    keys: Vec<Id>,
    /// The first row that has not been claimed.
    next: AtomicUsize,
    /// Rows that are claimed at once.
    rows: usize,
    /// Entries that are taken at once.
    entries: usize,
    /// Stretches that a row is cut into at most.
    parts: usize,
    /// What was given back; the last comes first. So few rows are open at once: as many as there are threads.
    left: Mutex<Vec<Claim>>,
    /// Claims in `left`, so that nobody takes the lock for nothing.
    left_count: AtomicUsize,
}

struct Claim {
    cursor: Cursor,
    /// The row behind the last one.
    end: usize,
    /// Of the last row only neighbours below this; unbound: all.
    below: Id,
    /// Whether it is a stretch of one row, which is not cut again.
    is_cut: bool,
}

impl Claims {
    /// Nothing of the rows with these keys is claimed.
    pub(crate) fn new(
        keys: Vec<Id>,
        segment: &dyn Segment,
        rows: usize,
        entries: usize,
        threads: usize,
    ) -> Result<Self> {
        let parts = PARTS_PER_THREAD.saturating_mul(threads);
        let (mut left, mut next) = (Vec::new(), 0);
        if keys.len() < parts {
            next = keys.len();
            for (row, &key) in keys.iter().enumerate().rev() {
                cut(Cursor::at(row), key, segment, (parts, entries), Id::UNBOUND, &mut left)?;
            }
        }
        Ok(Self {
            keys,
            next: AtomicUsize::new(next),
            rows: rows.max(1),
            entries,
            parts,
            left_count: AtomicUsize::new(left.len()),
            left: Mutex::new(left),
        })
    }

    /// Claims some entries, at most `entries_max`, and appends them to `out`, which is empty; `false`: there
    /// are no more.
    pub(crate) fn expand_next(
        &self,
        segment: &dyn Segment,
        filter: EntryFilter,
        entries_max: usize,
        out: &mut Expansion,
    ) -> Result<bool> {
        let Some(mut claim) = self.take() else { return Ok(false) };
        out.capacity = self.entries.min(entries_max);
        out.end = claim.below.is_bound().then_some((claim.end - 1, claim.below));
        segment.expand(&self.keys[..claim.end], filter, &mut claim.cursor, out)?;
        if claim.cursor.row < claim.end {
            self.give_back(claim, segment, out.neighbours.last().copied().unwrap_or_default())?;
        }
        Ok(true)
    }

    fn take(&self) -> Option<Claim> {
        // Relaxed: the lock orders what matters.
        if self.left_count.load(Relaxed) > 0
            && let Some(claim) = self.pop()
        {
            return Some(claim);
        }
        let start = self.next.fetch_add(self.rows, Relaxed);
        if start < self.keys.len() {
            let end = start.saturating_add(self.rows).min(self.keys.len());
            return Some(Claim { cursor: Cursor::at(start), end, below: Id::UNBOUND, is_cut: false });
        }
        self.pop()
    }

    fn pop(&self) -> Option<Claim> {
        let mut left = self.left();
        let claim = left.pop();
        self.left_count.store(left.len(), Relaxed);
        claim
    }

    /// Gives back what is left of a claim; `last`: the neighbour that was found last.
    fn give_back(&self, claim: Claim, segment: &dyn Segment, last: Id) -> Result<()> {
        let row = claim.cursor.row;
        let mut back = Vec::new();
        if claim.is_cut || claim.cursor == Cursor::at(row) {
            back.push(claim);
        } else {
            if row + 1 < claim.end {
                back.push(Claim { cursor: Cursor::at(row + 1), ..claim });
            }
            cut(claim.cursor, self.keys[row], segment, (self.parts, self.entries), last, &mut back)?;
        }
        let mut left = self.left();
        left.append(&mut back);
        self.left_count.store(left.len(), Relaxed);
        Ok(())
    }

    fn left(&self) -> MutexGuard<'_, Vec<Claim>> {
        // A list is whole at any time, so a panic elsewhere does not spoil it.
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Pushes the claims of the row of `cursor` from there on, the last one first. `last`: the neighbour before
/// it.
fn cut(
    cursor: Cursor,
    key: Id,
    segment: &dyn Segment,
    (parts, entries_min): (usize, usize),
    last: Id,
    out: &mut Vec<Claim>,
) -> Result<()> {
    let mut bounds = Vec::new();
    segment.split(key, parts, entries_min, &mut bounds)?;
    let end = cursor.row + 1;
    let mut below = Id::UNBOUND;
    for bound in bounds.into_iter().rev().take_while(|bound| *bound > last) {
        let from = Cursor { resume: [bound, Id::UNBOUND, Id::UNBOUND], ..Cursor::at(cursor.row) };
        out.push(Claim { cursor: from, end, below, is_cut: true });
        below = bound;
    }
    out.push(Claim { cursor, end, below, is_cut: true });
    Ok(())
}
