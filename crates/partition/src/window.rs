//! How many rows an expansion asks other parts for together.
//!
//! # Shape
//! As many as are likely to fill the output, by the mean number of entries of a key, and at least
//! [`ROWS_MIN`]. A few keys with most of the entries make that mean far too large for all others, so each
//! window that was expanded whole, with room left, is followed by one four times as long.
//! # Cost
//! Entries of rows that do not fit into the output are read again: those of one window at most.

use crate::call::ROWS_MAX;
use vervet_snapshot::SegmentStatistics;

/// Least rows of a window.
const ROWS_MIN: usize = 16;

/// See the header of this file.
pub(crate) struct Window {
    rows: usize,
}

impl Window {
    /// The first window of a call whose output has room for `capacity` entries.
    pub(crate) fn new(statistics: &SegmentStatistics, capacity: usize) -> Self {
        let (keys, entries) = (statistics.keys.max(1), statistics.entries.max(1));
        let likely = u128::from(keys) * (capacity as u128 * 5 / 4) / u128::from(entries);
        let rows = usize::try_from(likely).unwrap_or(ROWS_MAX).saturating_add(ROWS_MIN);
        Self { rows: rows.min(ROWS_MAX) }
    }

    /// Where a window that begins at row `first` of `rows` ends.
    pub(crate) fn end(&self, first: usize, rows: usize) -> usize {
        rows.min(first.saturating_add(self.rows))
    }

    /// Makes the next window longer: this one was expanded whole.
    pub(crate) fn grow(&mut self) {
        self.rows = (self.rows * 4).min(ROWS_MAX);
    }
}
