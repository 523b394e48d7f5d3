//! Expansion: copying entries of located rows to an output of fixed capacity.

use crate::encode::optional_id;
use crate::locate::{Located, View};
use std::ops::Range;
use vervet_codec::PackedView;
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
    append_ranges(view, located, first_row, rows, neighbours);
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

/// [`append`] where keys have any number of entries; `rows` and `out` have exactly the length of all
/// ranges.
fn append_ranges(view: &View<'_>, located: &Located, first_row: u32, rows: &mut [u32], out: &mut [Id]) {
    match view.neighbours.elements.width() {
        0 => append_width::<0>(view, located, first_row, rows, out),
        1 => append_width::<1>(view, located, first_row, rows, out),
        2 => append_width::<2>(view, located, first_row, rows, out),
        3 => append_width::<3>(view, located, first_row, rows, out),
        4 => append_width::<4>(view, located, first_row, rows, out),
        5 => append_width::<5>(view, located, first_row, rows, out),
        6 => append_width::<6>(view, located, first_row, rows, out),
        7 => append_width::<7>(view, located, first_row, rows, out),
        _ => append_width::<8>(view, located, first_row, rows, out),
    }
}

fn append_width<const WIDTH: usize>(
    view: &View<'_>,
    located: &Located,
    first_row: u32,
    rows: &mut [u32],
    out: &mut [Id],
) {
    let elements = &view.neighbours.elements;
    let minimum = elements.minimum();
    let single = view.offsets.is_none();
    match &view.neighbours.table {
        // Codes are stored as they are: the minimum of a table's codes is 0.
        Some(table) => append_values(single, located, first_row, rows, out, |index| {
            table.get(usize::try_from(elements.get_raw::<WIDTH>(index)).unwrap_or(usize::MAX))
        }),
        None => append_values(single, located, first_row, rows, out, |index| {
            minimum.wrapping_add(elements.get_raw::<WIDTH>(index))
        }),
    }
}

/// Writes row and value of each entry in one loop: degrees are small and vary, so every further loop
/// would be one more mispredicted end for each row.
#[inline(always)]
fn append_values(
    single: bool,
    located: &Located,
    first_row: u32,
    rows: &mut [u32],
    out: &mut [Id],
    value: impl Fn(usize) -> u64,
) {
    if single {
        // Written for every row, and overwritten by the next one if the key is missing: no branch.
        let mut at = 0;
        for (row, range) in (first_row..).zip(located.ranges()) {
            if let (Some(row_slot), Some(slot)) = (rows.get_mut(at), out.get_mut(at)) {
                *row_slot = row;
                *slot = Id::from_bits(value(range.start));
            }
            at += range.len();
        }
        return;
    }
    let mut slots = rows.iter_mut().zip(out);
    for (row, range) in (first_row..).zip(located.ranges()) {
        for index in range {
            let Some((row_slot, slot)) = slots.next() else { return };
            *row_slot = row;
            *slot = Id::from_bits(value(index));
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
        out.extend(range.map(|index| Id::from_bits(self.neighbours.get(index))));
    }
}
