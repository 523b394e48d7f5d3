//! Expansion: copying entries of located rows to an output of fixed capacity.

use crate::encode::optional_id;
use crate::locate::{Located, View};
use std::ops::Range;
use vervet_codec::{CodesView, PackedView};
use vervet_model::{Id, Tag};
use vervet_snapshot::{Cursor, EntryFilter, Expansion};

/// Appends every entry of `keys` from `cursor` on, as many as fit.
pub(crate) fn all(view: &View<'_>, keys: &[Id], cursor: &mut Cursor, out: &mut Expansion) {
    let mut located = Located::new();
    while cursor.row < keys.len() && out.room() > 0 {
        view.locate(&keys[cursor.row..], &mut located);
        let done = usize::try_from(cursor.offset).unwrap_or(usize::MAX);
        located.starts[0] = located.starts[0].saturating_add(done).min(located.ends[0]);
        let first_row = cursor.row;
        let total = cut(&mut located, out.room(), cursor);
        append(view, &located, first_row, total, out);
    }
}

/// Cuts `located` to `room` entries, moves `cursor` behind them, and returns their number.
fn cut(located: &mut Located, room: usize, cursor: &mut Cursor) -> usize {
    let mut total = 0;
    for row in 0..located.rows {
        let degree = located.ends[row] - located.starts[row];
        if total + degree > room {
            let taken = room - total;
            located.ends[row] = located.starts[row] + taken;
            located.rows = row + 1;
            let before = if row == 0 { cursor.offset } else { 0 };
            *cursor = Cursor { row: cursor.row + row, offset: before + taken as u64 };
            return room;
        }
        total += degree;
    }
    *cursor = Cursor { row: cursor.row + located.rows, offset: 0 };
    total
}

/// Appends all located entries, `total` in number.
fn append(view: &View<'_>, located: &Located, first_row: usize, total: usize, out: &mut Expansion) {
    let length = out.rows.len();
    out.rows.resize(length + total, 0);
    out.neighbours.resize(length + total, Id::UNBOUND);
    let (rows, neighbours) = (&mut out.rows[length..], &mut out.neighbours[length..]);
    // Row numbers are 32 bits wide by contract; a batch has about a thousand rows.
    let first_row = u32::try_from(first_row).unwrap_or(u32::MAX);
    if view.offsets.is_none() {
        append_single(view, located, first_row, rows, neighbours);
    } else {
        let mut at = 0;
        for (row, range) in (first_row..).zip(located.ranges()) {
            let end = at + range.len();
            if let Some(rows) = rows.get_mut(at..end) {
                // Degrees are small; a loop beats a call to fill.
                for slot in rows {
                    *slot = row;
                }
            }
            at = end;
        }
        decode_ranges(&view.neighbours, located, neighbours);
    }
    let column = |column: &Option<PackedView<'_>>, tag, out: &mut Vec<Id>| match column {
        Some(column) => {
            let indexes = located.ranges().flatten();
            out.extend(indexes.map(|index| optional_id(tag, column.get(index))));
        }
        None => out.resize(out.len() + total, Id::UNBOUND),
    };
    if out.want_graphs {
        column(&view.graphs, Tag::Vertex, &mut out.graphs);
    }
    if out.want_edges {
        column(&view.edges, Tag::Edge, &mut out.edges);
    }
}

/// [`append`] where every key has one entry: written without a branch, overwritten by the next row if
/// the key of this one is missing.
fn append_single(
    view: &View<'_>,
    located: &Located,
    first_row: u32,
    rows: &mut [u32],
    neighbours: &mut [Id],
) {
    let mut at = 0;
    for (row, (start, end)) in (first_row..).zip(located.starts.iter().zip(&located.ends).take(located.rows))
    {
        if let (Some(slot), Some(neighbour)) = (rows.get_mut(at), neighbours.get_mut(at)) {
            *slot = row;
            *neighbour = Id::from_bits(view.neighbours.get(*start));
        }
        at += end - start;
    }
}

/// Decodes the located ranges, one behind the other, into `out`, which has exactly their length.
fn decode_ranges(neighbours: &CodesView<'_>, located: &Located, out: &mut [Id]) {
    match neighbours.elements.width() {
        0 => decode_width::<0>(neighbours, located, out),
        1 => decode_width::<1>(neighbours, located, out),
        2 => decode_width::<2>(neighbours, located, out),
        3 => decode_width::<3>(neighbours, located, out),
        4 => decode_width::<4>(neighbours, located, out),
        5 => decode_width::<5>(neighbours, located, out),
        6 => decode_width::<6>(neighbours, located, out),
        7 => decode_width::<7>(neighbours, located, out),
        _ => decode_width::<8>(neighbours, located, out),
    }
}

fn decode_width<const WIDTH: usize>(neighbours: &CodesView<'_>, located: &Located, out: &mut [Id]) {
    let elements = &neighbours.elements;
    let minimum = elements.minimum();
    let mut rest = out;
    for range in located.ranges() {
        let Some((slots, after)) = rest.split_at_mut_checked(range.len()) else { return };
        rest = after;
        if let Some(table) = &neighbours.table {
            for (index, slot) in range.zip(slots) {
                let code = usize::try_from(minimum.wrapping_add(elements.get_raw::<WIDTH>(index)));
                *slot = Id::from_bits(table.get(code.unwrap_or(usize::MAX)));
            }
        } else {
            for (index, slot) in range.zip(slots) {
                *slot = Id::from_bits(minimum.wrapping_add(elements.get_raw::<WIDTH>(index)));
            }
        }
    }
}

/// Appends the entries of `keys` that pass `filter`, from `cursor` on, as many as fit.
pub(crate) fn some(
    view: &View<'_>,
    keys: &[Id],
    filter: EntryFilter,
    cursor: &mut Cursor,
    out: &mut Expansion,
) {
    let mut located = Located::new();
    while cursor.row < keys.len() {
        view.locate(&keys[cursor.row..], &mut located);
        let first_row = cursor.row;
        for (row, range) in (first_row..).zip(located.ranges()) {
            let skipped =
                if row == first_row { usize::try_from(cursor.offset).unwrap_or(usize::MAX) } else { 0 };
            let first = range.start;
            let rest = first.saturating_add(skipped).min(range.end)..range.end;
            for entry in view.passing_from(first, rest, filter, out.want_edges) {
                if out.room() == 0 {
                    *cursor = Cursor { row, offset: (entry.index - first) as u64 };
                    return;
                }
                out.rows.push(u32::try_from(row).unwrap_or(u32::MAX));
                out.neighbours.push(entry.neighbour);
                if out.want_graphs {
                    out.graphs.push(entry.graph);
                }
                if out.want_edges {
                    out.edges.push(entry.edge);
                }
            }
        }
        *cursor = Cursor { row: first_row + located.rows, offset: 0 };
    }
}

impl View<'_> {
    /// Appends the neighbours of a range.
    pub(crate) fn copy_neighbours(&self, range: Range<usize>, out: &mut Vec<Id>) {
        let length = out.len();
        out.resize(length + range.len(), Id::UNBOUND);
        let mut located = Located::new();
        located.rows = 1;
        (located.starts[0], located.ends[0]) = (range.start, range.end);
        decode_ranges(&self.neighbours, &located, &mut out[length..]);
    }
}
