//! Keys through an overlay: those of the lower segment merged with those of the cells.
//!
//! # Invariants
//! A key is listed if and only if it has an entry. A key that only has cells has one; for a key that lost
//! more entries than it gained, the lower degree decides.
//! # Cost
//! One pass over the cells of the keys; of a key with many cells, the rest is skipped.

use crate::Overlay;
use crate::cell::{Cell, CellKey};
use crate::degrees::weight_of;
use crate::tree::Iter;
use vervet_model::{Id, Result};
use vervet_snapshot::EntryFilter;

/// See [`vervet_snapshot::Segment::keys`].
pub(crate) fn keys(overlay: &Overlay, from: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
    let mut listed = Vec::new();
    let lower_next = match &overlay.lower {
        Some(lower) => lower.keys(from, limit, &mut listed)?,
        None => None,
    };
    let end = out.len().saturating_add(limit);
    let mut lower = listed.into_iter().peekable();
    let mut touched = Keys { overlay, cells: overlay.cells.iter_from(CellKey::start(from)), cell: None };
    let mut changed = touched.next();
    loop {
        // Keys after the end of the lower list belong to the next call.
        let own = changed.filter(|(key, _)| lower_next.is_none_or(|next| *key < next));
        let key = match (lower.peek(), own) {
            (None, None) => return Ok(lower_next),
            (Some(lower), Some((own, _))) => own.min(*lower),
            (Some(lower), None) => *lower,
            (None, Some((own, _))) => own,
        };
        if out.len() == end {
            return Ok(Some(key));
        }
        lower.next_if_eq(&key);
        match own.filter(|(own, _)| *own == key) {
            None => out.push(key),
            Some((_, weight)) => {
                if weight >= 0 || lower_degree(overlay, key)?.saturating_add_signed(weight) > 0 {
                    out.push(key);
                }
                changed = touched.next();
            }
        }
    }
}

/// See [`vervet_snapshot::Segment::keys_below`]: added keys are assumed to be distributed like the cells.
pub(crate) fn keys_below(overlay: &Overlay, key: Id) -> Result<u64> {
    let (below, all) = match &overlay.lower {
        Some(lower) => (lower.keys_below(key)?, lower.statistics().keys),
        None => (0, 0),
    };
    let came = u128::from(overlay.statistics.keys.saturating_sub(all));
    let cells = u128::from(overlay.cells.sum_below(CellKey::start(key)).items);
    let came = came * cells / u128::from(overlay.cells.len()).max(1);
    Ok(below.saturating_add(u64::try_from(came).unwrap_or(u64::MAX)))
}

fn lower_degree(overlay: &Overlay, key: Id) -> Result<u64> {
    let mut degrees = Vec::new();
    if let Some(lower) = &overlay.lower {
        lower.degrees(&[key], EntryFilter::ALL, &mut degrees)?;
    }
    Ok(degrees.first().copied().unwrap_or(0))
}

/// The keys of the cells, each with the number of entries that it has more than in the lower segment.
struct Keys<'a> {
    overlay: &'a Overlay,
    cells: Iter<'a, Cell>,
    /// A cell read beyond the current key.
    cell: Option<&'a Cell>,
}

/// Maximum number of cells of a key that are walked before the rest is skipped.
const WALK_MAX: usize = 16;

impl Iterator for Keys<'_> {
    type Item = (Id, i64);

    fn next(&mut self) -> Option<(Id, i64)> {
        let mut cell = self.cell.take().or_else(|| self.cells.next())?;
        let key = cell.key;
        let mut weight = 0;
        for _ in 0..WALK_MAX {
            weight += if cell.is_present() { 1 } else { -1 };
            match self.cells.next() {
                None => return Some((key, weight)),
                Some(next) if next.key != key => {
                    self.cell = Some(next);
                    return Some((key, weight));
                }
                Some(next) => cell = next,
            }
        }
        self.cells = self.overlay.cells.iter_from(CellKey::end(key));
        Some((key, weight_of(self.overlay, key)))
    }
}
