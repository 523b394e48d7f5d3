//! Entries of one key through an overlay, and its distinct neighbours.

use crate::Overlay;
use vervet_model::{Id, Result};
use vervet_snapshot::EntryFilter;

/// See [`vervet_snapshot::Segment::neighbours`].
pub(crate) fn neighbours(overlay: &Overlay, key: Id, filter: EntryFilter, out: &mut Vec<Id>) -> Result<()> {
    let Some(cells) = overlay.cells_of(key) else {
        return match &overlay.lower {
            Some(lower) => lower.neighbours(key, filter, out),
            None => Ok(()),
        };
    };
    let mut entries = overlay.all_entries(key, cells);
    let mut last = Id::UNBOUND;
    while let Some([neighbour, graph, _]) = entries.next()? {
        if neighbour != last && filter.graph.passes(graph) {
            out.push(neighbour);
            last = neighbour;
        }
    }
    Ok(())
}

/// See [`vervet_snapshot::Segment::entries`].
pub(crate) fn entries(
    overlay: &Overlay,
    key: Id,
    from: [Id; 3],
    limit: usize,
    out: &mut Vec<[Id; 3]>,
) -> Result<()> {
    if !overlay.touches(key) {
        return match &overlay.lower {
            Some(lower) => lower.entries(key, from, limit, out),
            None => Ok(()),
        };
    }
    let mut entries = overlay.entries_from(key, from);
    let end = out.len().saturating_add(limit);
    while out.len() < end
        && let Some(entry) = entries.next()?
    {
        out.push(entry);
    }
    Ok(())
}
