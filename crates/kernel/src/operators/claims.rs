//! Work sharing: claims of rows and entries of an expansion by the threads of a query.
//!
//! # Shape
//! Threads claim rows by an atomic counter. A thread expands its claim until its batch is full and returns
//! the rest for other threads: the remaining rows and, of a row with many entries, ranges that begin and end
//! between two neighbours ([`Segment::split`]). If there are few rows, they are split before any thread
//! starts.
//! # Invariants
//! 1. Claims are disjoint. Claims, unclaimed rows and expanded entries together cover all entries.
//! 2. A claim that ends inside a row contains only that row.
//! # Cost
//! For each batch an atomic addition, or a lock for a push and a pop. No lock is held while entries are read.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use vervet_model::{Id, Result};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, Segment};

/// Ranges of one row for each thread. The rest of a range is returned after each batch, so only the last
/// ranges affect load balance.
const RANGES_PER_THREAD: usize = 8;

/// Claims of the rows and entries of an expansion; see the header.
pub(crate) struct Claims {
    keys: Vec<Id>,
    /// The first unclaimed row.
    next: AtomicUsize,
    /// Rows of one claim.
    rows: usize,
    /// Entries expanded from one claim at a time.
    entries: usize,
    /// Maximum number of ranges of one row.
    ranges: usize,
    /// Stack of returned claims. Last in, first out: at most one partly expanded row for each thread.
    left: Mutex<Vec<Claim>>,
    /// Number of claims in `left`, to avoid locking an empty stack.
    left_count: AtomicUsize,
}

struct Claim {
    cursor: Cursor,
    /// End of the rows (exclusive).
    end: usize,
    /// Exclusive upper bound of the neighbours of the last row; unbound: none.
    below: Id,
    /// Whether the claim is a range of one row, which is not split again.
    is_range: bool,
}

impl Claims {
    /// Initial state: all rows with these keys are unclaimed.
    pub(crate) fn new(
        keys: Vec<Id>,
        segment: &dyn Segment,
        rows: usize,
        entries: usize,
        threads: usize,
    ) -> Result<Self> {
        let ranges = RANGES_PER_THREAD.saturating_mul(threads);
        let (mut left, mut next) = (Vec::new(), 0);
        if keys.len() < ranges {
            next = keys.len();
            for (row, &key) in keys.iter().enumerate().rev() {
                cut(Cursor::at(row), key, segment, (ranges, entries), Id::UNBOUND, &mut left)?;
            }
        }
        Ok(Self {
            keys,
            next: AtomicUsize::new(next),
            rows: rows.max(1),
            entries,
            ranges,
            left_count: AtomicUsize::new(left.len()),
            left: Mutex::new(left),
        })
    }

    /// Claims and expands some entries, at most `entries_max`, into the empty `out`; `false`: no entries are
    /// left.
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
        // Relaxed: the lock orders the accesses to `left`.
        if self.left_count.load(Relaxed) > 0
            && let Some(claim) = self.pop()
        {
            return Some(claim);
        }
        let start = self.next.fetch_add(self.rows, Relaxed);
        if start < self.keys.len() {
            let end = start.saturating_add(self.rows).min(self.keys.len());
            return Some(Claim { cursor: Cursor::at(start), end, below: Id::UNBOUND, is_range: false });
        }
        self.pop()
    }

    fn pop(&self) -> Option<Claim> {
        let mut left = self.left();
        let claim = left.pop();
        self.left_count.store(left.len(), Relaxed);
        claim
    }

    /// Returns the rest of a claim; `last`: the last expanded neighbour.
    fn give_back(&self, claim: Claim, segment: &dyn Segment, last: Id) -> Result<()> {
        let row = claim.cursor.row;
        let mut back = Vec::new();
        if claim.is_range || claim.cursor == Cursor::at(row) {
            back.push(claim);
        } else {
            if row + 1 < claim.end {
                back.push(Claim { cursor: Cursor::at(row + 1), ..claim });
            }
            cut(claim.cursor, self.keys[row], segment, (self.ranges, self.entries), last, &mut back)?;
        }
        let mut left = self.left();
        left.append(&mut back);
        self.left_count.store(left.len(), Relaxed);
        Ok(())
    }

    fn left(&self) -> MutexGuard<'_, Vec<Claim>> {
        // The list is consistent at any time, so a panic elsewhere does not corrupt it.
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Splits the rest of the row of `cursor` into claims and pushes them, the last one first. `last`: the
/// neighbour before `cursor`.
fn cut(
    cursor: Cursor,
    key: Id,
    segment: &dyn Segment,
    (ranges, entries_min): (usize, usize),
    last: Id,
    out: &mut Vec<Claim>,
) -> Result<()> {
    let mut bounds = Vec::new();
    segment.split(key, ranges, entries_min, &mut bounds)?;
    let end = cursor.row + 1;
    let mut below = Id::UNBOUND;
    for bound in bounds.into_iter().rev().take_while(|bound| *bound > last) {
        let from = Cursor { resume: [bound, Id::UNBOUND, Id::UNBOUND], ..Cursor::at(cursor.row) };
        out.push(Claim { cursor: from, end, below, is_range: true });
        below = bound;
    }
    out.push(Claim { cursor, end, below, is_range: true });
    Ok(())
}
