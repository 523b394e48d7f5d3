//! Expansion through an overlay: untouched keys by the lower segment, touched keys by merging.
//!
//! # Cost
//! Each key is tested once in the filter, up to [`STRETCH`] keys ahead of the output, so a batch that fills
//! the output many times is not tested whole each time. A touched key whose entries do not fit resumes at the
//! entry that the cursor names: a search, independent of the number of earlier entries.

use crate::Overlay;
use crate::cell::CellKey;
use crate::merged::Cells;
use vervet_model::{Id, Result};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, append_entries};

/// Number of keys tested before the untouched ones among them are expanded.
const STRETCH: usize = 256;

/// See [`vervet_snapshot::Segment::expand`].
pub(crate) fn expand(
    overlay: &Overlay,
    keys: &[Id],
    filter: EntryFilter,
    cursor: &mut Cursor,
    out: &mut Expansion,
) -> Result<()> {
    while cursor.row < keys.len() && out.remaining_capacity() > 0 {
        let ahead = keys.len().min(cursor.row + STRETCH);
        let rest = &keys[cursor.row..ahead];
        let mut found = None;
        let untouched = rest.iter().position(|key| {
            found = overlay.cells_of(*key);
            found.is_some()
        });
        let untouched = untouched.unwrap_or(rest.len());
        if untouched > 0 {
            let end = cursor.row + untouched;
            match &overlay.lower {
                // Rows count from the first key, so the lower expansion begins there, too.
                Some(lower) => lower.expand(&keys[..end], filter, cursor, out)?,
                None => *cursor = Cursor::at(end),
            }
            if cursor.row < end {
                return Ok(());
            }
        }
        if let Some(cells) = found {
            one(overlay, keys[cursor.row], cells, filter, cursor, out)?;
        }
    }
    Ok(())
}

/// See [`vervet_snapshot::Segment::split`]. The ranges of lower entries and of cells overlap, so there are up
/// to twice as many parts.
pub(crate) fn split(
    overlay: &Overlay,
    key: Id,
    parts: usize,
    entries_min: usize,
    out: &mut Vec<Id>,
) -> Result<()> {
    let first = out.len();
    if let Some(lower) = &overlay.lower {
        lower.split(key, parts, entries_min, out)?;
    }
    if overlay.cells_of(key).is_none() {
        return Ok(());
    }
    let below = |at| overlay.cells.sum_below(at).items;
    let (start, end) = (below(CellKey::start(key)), below(CellKey::end(key)));
    let count = end.saturating_sub(start);
    let parts = (parts as u64).min(count / (entries_min as u64).max(1));
    let cells = (1..parts).filter_map(|part| overlay.cells.nth(start + count / parts * part));
    out.extend(cells.map(|cell| cell.entry()[0]));
    let mut own = out.split_off(first);
    own.sort_unstable();
    own.dedup();
    out.append(&mut own);
    Ok(())
}

/// Appends the entries of one touched key, that of `cursor.row`, as far as they fit.
fn one(
    overlay: &Overlay,
    key: Id,
    cells: Cells<'_>,
    filter: EntryFilter,
    cursor: &mut Cursor,
    out: &mut Expansion,
) -> Result<()> {
    let mut entries = match cursor.resume {
        from if from == Cursor::default().resume => overlay.all_entries(key, cells),
        from => overlay.entries_from(key, from),
    };
    append_entries(&mut || entries.next(), filter, cursor, out)
}
