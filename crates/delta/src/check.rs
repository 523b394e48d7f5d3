//! Membership checks through an overlay: the result of the lower segment, corrected by cells for the pair.
//!
//! # Cost
//! In addition to the lower segment: one test in the filter for each row, and for a touched key a path
//! through the tree. Entries are merged only if one with that neighbour is removed.

use crate::Overlay;
use crate::cell::CellKey;
use vervet_model::{Id, Result};
use vervet_snapshot::EntryFilter;

/// See [`vervet_snapshot::Segment::check`].
pub(crate) fn pairs(
    overlay: &Overlay,
    keys: &[Id],
    neighbours: &[Id],
    filter: EntryFilter,
    out: &mut Vec<u32>,
) -> Result<()> {
    let start = out.len();
    if let Some(lower) = &overlay.lower {
        lower.check(keys, neighbours, filter, out)?;
    }
    correct(overlay, keys.iter().copied().zip(neighbours.iter().copied()), filter, start, out)
}

/// See [`vervet_snapshot::Segment::check_constant`].
pub(crate) fn constant(
    overlay: &Overlay,
    keys: &[Id],
    neighbour: Id,
    filter: EntryFilter,
    out: &mut Vec<u32>,
) -> Result<()> {
    let start = out.len();
    if let Some(lower) = &overlay.lower {
        lower.check_constant(keys, neighbour, filter, out)?;
    }
    correct(overlay, keys.iter().map(|key| (*key, neighbour)), filter, start, out)
}

/// Corrects the rows of `out` from `start` on.
fn correct(
    overlay: &Overlay,
    pairs: impl Iterator<Item = (Id, Id)>,
    filter: EntryFilter,
    start: usize,
    out: &mut Vec<u32>,
) -> Result<()> {
    let mut answers: Vec<(u32, bool)> = Vec::new();
    let mut last = None;
    for (row, pair) in (0_u32..).zip(pairs) {
        if overlay.key_filter.may_contain(pair.0) {
            let answer = match last {
                Some((of, answer)) if of == pair => answer,
                _ => existence_by_cells(overlay, pair, filter)?,
            };
            last = Some((pair, answer));
            answers.extend(answer.map(|answer| (row, answer)));
        }
    }
    if answers.is_empty() {
        return Ok(());
    }
    let below: Vec<u32> = out.drain(start..).collect();
    let mut below = below.into_iter().peekable();
    for (row, answer) in answers {
        while let Some(other) = below.next_if(|other| *other < row) {
            out.push(other);
        }
        below.next_if_eq(&row);
        if answer {
            out.push(row);
        }
    }
    out.extend(below);
    Ok(())
}

/// Whether the entry exists, if there are cells that decide it.
fn existence_by_cells(
    overlay: &Overlay,
    (key, neighbour): (Id, Id),
    filter: EntryFilter,
) -> Result<Option<bool>> {
    let start = [neighbour, Id::UNBOUND, Id::UNBOUND];
    let cells = overlay.cells.iter_from(CellKey::new(key, start));
    let mut is_any_gone = false;
    for cell in cells.take_while(|cell| cell.key == key && cell.neighbour == neighbour) {
        if !cell.is_present() {
            is_any_gone = true;
        } else if filter.graph.passes(cell.graph) {
            return Ok(Some(true));
        }
    }
    if !is_any_gone {
        return Ok(None);
    }
    let mut entries = overlay.entries_from(key, start);
    while let Some([other, graph, _]) = entries.next()? {
        if other != neighbour {
            break;
        }
        if filter.graph.passes(graph) {
            return Ok(Some(true));
        }
    }
    Ok(Some(false))
}
