//! Degrees through an overlay: those of the lower segment, corrected for touched keys.
//!
//! # Cost
//! A touched key with few cells: a walk over them; with many: two paths through the tree, whose nodes store
//! sums. All cells of a key are visited, with look-ups of their neighbours in the lower segment, only where
//! parallel edges count once and may exist, or a filter distinguishes graphs.

use crate::Overlay;
use crate::cell::{Cell, CellKey};
use vervet_model::{Id, Result};
use vervet_snapshot::{EntryFilter, GraphFilter};

/// Maximum number of cells of a key that are walked instead of summed by the tree.
const WALK_MAX: usize = 8;

/// See [`vervet_snapshot::Segment::degrees`].
pub(crate) fn degrees(overlay: &Overlay, keys: &[Id], filter: EntryFilter, out: &mut Vec<u64>) -> Result<()> {
    match &overlay.lower {
        Some(lower) => lower.degrees(keys, filter, out)?,
        None => {
            out.clear();
            out.resize(keys.len(), 0);
        }
    }
    let plain = is_plain(overlay, filter);
    let mut last = (Id::UNBOUND, 0);
    for (key, degree) in keys.iter().zip(out) {
        if overlay.key_filter.may_contain(*key) {
            if last.0 != *key {
                let change = if plain { weight_of(overlay, *key) } else { change_of(overlay, *key, filter)? };
                last = (*key, change);
            }
            *degree = degree.saturating_add_signed(last.1);
        }
    }
    Ok(())
}

/// Whether every entry counts, so that none need be inspected.
fn is_plain(overlay: &Overlay, filter: EntryFilter) -> bool {
    let statistics = &overlay.statistics;
    let graphs = match filter.graph {
        GraphFilter::Any => true,
        GraphFilter::Default => !statistics.has_named_graphs,
        GraphFilter::Named(_) | GraphFilter::AnyNamed => false,
    };
    graphs && (filter.parallel || !statistics.has_parallel)
}

/// Number of entries that the key has more than in the lower segment.
pub(crate) fn weight_of(overlay: &Overlay, key: Id) -> i64 {
    let mut weight = 0;
    let cells = overlay.cells.iter_from(CellKey::start(key));
    for (number, cell) in cells.take_while(|cell| cell.key == key).enumerate() {
        if number == WALK_MAX {
            let sum = |to| overlay.cells.sum_below(to).weight;
            return sum(CellKey::end(key)) - sum(CellKey::start(key));
        }
        weight += if cell.is_present() { 1 } else { -1 };
    }
    weight
}

/// [`weight_of`] under a filter.
fn change_of(overlay: &Overlay, key: Id, filter: EntryFilter) -> Result<i64> {
    let mut cells =
        overlay.cells.iter_from(CellKey::start(key)).take_while(|cell| cell.key == key).peekable();
    let mut change = 0;
    while let Some(first) = cells.next() {
        let same = |cell: &&Cell| cell.neighbour == first.neighbour && cell.graph == first.graph;
        let (mut present, mut absent) = (0, 0);
        let mut next = Some(first);
        while let Some(cell) = next {
            *(if cell.is_present() { &mut present } else { &mut absent }) += 1;
            next = cells.next_if(same);
        }
        if !filter.graph.matches(first.graph) {
            continue;
        }
        if filter.parallel {
            change += i64::from(present) - i64::from(absent);
            continue;
        }
        // The lower segment has at least as many parallel entries as are removed; does it have one more?
        let stays = has_more(overlay, key, first, absent)?;
        change += match (stays, present > 0, absent > 0) {
            // Present before and after, or, with nothing removed, neither.
            (true, ..) | (false, true, true) | (false, false, false) => 0,
            (false, true, false) => 1,
            (false, false, true) => -1,
        };
    }
    Ok(change)
}

/// Whether the lower segment has more than `count` entries with the neighbour and graph of `cell`.
fn has_more(overlay: &Overlay, key: Id, cell: &Cell, count: u32) -> Result<bool> {
    let Some(lower) = &overlay.lower else { return Ok(false) };
    let count = count as usize;
    let mut found = Vec::new();
    lower.entries(key, [cell.neighbour, cell.graph, Id::UNBOUND], count.saturating_add(1), &mut found)?;
    Ok(found
        .get(count)
        .is_some_and(|[neighbour, graph, _]| *neighbour == cell.neighbour && *graph == cell.graph))
}
