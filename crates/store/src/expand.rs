//! Expansion: copies entries of located rows to an output of fixed capacity.

use crate::encode::optional_id;
use crate::locate::{EntryRanges, SegmentView};
use std::ops::Range;
use vervet_codec::{ArrayView, CodesView, FramedView, PackedCodes, PackedView};
use vervet_model::{Id, Tag};
use vervet_snapshot::{Cursor, EntryFilter, Expansion};

/// Number of entries of a row that are written unconditionally.
const AHEAD: usize = 4;

/// Appends every entry of `keys` from `cursor` on, up to the capacity.
pub(crate) fn all(view: &SegmentView<'_>, keys: &[Id], cursor: &mut Cursor, out: &mut Expansion) {
    if let ([key], 0, None) = (keys, cursor.row, out.end) {
        return one(view, *key, cursor, out);
    }
    let mut located = EntryRanges::new();
    while cursor.row < keys.len() && out.remaining_capacity() > 0 {
        view.locate(&keys[cursor.row..], &mut located);
        let done = usize::try_from(cursor.offset).unwrap_or(usize::MAX);
        located.starts[0] = located.starts[0].saturating_add(done).min(located.ends[0]);
        end(view, &mut located, cursor.row, out);
        let first_row = cursor.row;
        let total = cut(&mut located, out.remaining_capacity(), cursor);
        append(view, &located, first_row, total, out);
    }
}

/// [`all`] for a single key, without the arrays of a chunk of rows.
fn one(view: &SegmentView<'_>, key: Id, cursor: &mut Cursor, out: &mut Expansion) {
    let range = view.range_of(view.position(key));
    let done = usize::try_from(cursor.offset).unwrap_or(usize::MAX);
    let start = range.start.saturating_add(done).min(range.end);
    let end = range.end.min(start.saturating_add(out.remaining_capacity()));
    *cursor = match end == range.end {
        true => Cursor::at(1),
        false => Cursor { offset: (end - range.start) as u64, ..Cursor::at(0) },
    };
    if start == end {
        return;
    }
    out.rows.resize(out.rows.len() + (end - start), 0);
    view.copy_neighbours(start..end, &mut out.neighbours);
    let column = |column: &Option<ArrayView<'_>>, tag, out: &mut Vec<Id>| match column {
        Some(column) => out.extend((start..end).map(|index| optional_id(tag, column.get(index)))),
        None => out.resize(out.len() + (end - start), Id::UNBOUND),
    };
    if out.want_graphs {
        column(&view.graphs, Tag::Vertex, &mut out.graphs);
    }
    if out.want_edges {
        column(&view.edges, Tag::Edge, &mut out.edges);
    }
}

/// Truncates the row in which an expansion ends ([`Expansion::end`]), if it is among those located from
/// `first_row` on.
fn end(view: &SegmentView<'_>, located: &mut EntryRanges, first_row: usize, out: &Expansion) {
    if let Some((row, below)) = out.end
        && let Some(at) = row.checked_sub(first_row).filter(|at| *at < located.rows)
    {
        let range = located.starts[at]..located.ends[at];
        located.ends[at] = view.lower_bound(range, [below, Id::UNBOUND, Id::UNBOUND]);
    }
}

/// Truncates `located` to `room` entries, moves `cursor` after them, and returns their number.
fn cut(located: &mut EntryRanges, room: usize, cursor: &mut Cursor) -> usize {
    let mut total = 0;
    for row in 0..located.rows {
        let degree = located.ends[row] - located.starts[row];
        if total + degree > room {
            let taken = room - total;
            located.ends[row] = located.starts[row] + taken;
            located.rows = row + 1;
            let before = if row == 0 { cursor.offset } else { 0 };
            *cursor = Cursor { offset: before + taken as u64, ..Cursor::at(cursor.row + row) };
            return room;
        }
        total += degree;
    }
    *cursor = Cursor::at(cursor.row + located.rows);
    total
}

/// Appends all located entries, `total` in number.
fn append(
    view: &SegmentView<'_>,
    located: &EntryRanges,
    first_row: usize,
    total: usize,
    out: &mut Expansion,
) {
    let length = out.rows.len();
    out.rows.resize(length + total + AHEAD, 0);
    out.neighbours.resize(length + total + AHEAD, Id::UNBOUND);
    let (rows, neighbours) = (&mut out.rows[length..], &mut out.neighbours[length..]);
    // Row numbers are 32 bits wide by contract; a batch has about a thousand rows.
    let first_row = u32::try_from(first_row).unwrap_or(u32::MAX);
    append_ranges(view, located, first_row, rows, neighbours);
    out.rows.truncate(length + total);
    out.neighbours.truncate(length + total);
    let column = |column: &Option<ArrayView<'_>>, tag, out: &mut Vec<Id>| match column {
        // One loop for each form: a call of the enumeration for each entry would not be inlined.
        Some(ArrayView::Packed(column)) => append_optional(located, tag, out, |index| column.get(index)),
        Some(ArrayView::Framed(column)) => append_optional(located, tag, out, |index| column.get(index)),
        None => out.resize(out.len() + total, Id::UNBOUND),
    };
    if out.want_graphs {
        column(&view.graphs, Tag::Vertex, &mut out.graphs);
    }
    if out.want_edges {
        column(&view.edges, Tag::Edge, &mut out.edges);
    }
}

/// Appends the ids of an optional column for all located entries.
#[inline(always)]
fn append_optional(located: &EntryRanges, tag: Tag, out: &mut Vec<Id>, get: impl Fn(usize) -> u64) {
    for range in located.ranges() {
        out.extend(range.map(|index| optional_id(tag, get(index))));
    }
}

/// [`append`] for rows and neighbours; `rows` and `out` have the length of all ranges plus [`AHEAD`].
fn append_ranges(
    view: &SegmentView<'_>,
    located: &EntryRanges,
    first_row: u32,
    rows: &mut [u32],
    out: &mut [Id],
) {
    let degrees = Degrees::of(view);
    let codes = match &view.neighbours {
        CodesView::Packed(codes) => codes,
        CodesView::Framed(values) => return append_values(degrees, located, first_row, rows, out, values),
    };
    match codes.elements.width() {
        0 => append_width::<0>(degrees, codes, located, first_row, rows, out),
        1 => append_width::<1>(degrees, codes, located, first_row, rows, out),
        2 => append_width::<2>(degrees, codes, located, first_row, rows, out),
        3 => append_width::<3>(degrees, codes, located, first_row, rows, out),
        4 => append_width::<4>(degrees, codes, located, first_row, rows, out),
        5 => append_width::<5>(degrees, codes, located, first_row, rows, out),
        6 => append_width::<6>(degrees, codes, located, first_row, rows, out),
        7 => append_width::<7>(degrees, codes, located, first_row, rows, out),
        _ => append_width::<8>(degrees, codes, located, first_row, rows, out),
    }
}

fn copy_packed(codes: &PackedCodes<'_>, start: usize, out: &mut [Id]) {
    match codes.elements.width() {
        0 => copy_width::<0>(codes, start, out),
        1 => copy_width::<1>(codes, start, out),
        2 => copy_width::<2>(codes, start, out),
        3 => copy_width::<3>(codes, start, out),
        4 => copy_width::<4>(codes, start, out),
        5 => copy_width::<5>(codes, start, out),
        6 => copy_width::<6>(codes, start, out),
        7 => copy_width::<7>(codes, start, out),
        _ => copy_width::<8>(codes, start, out),
    }
}

fn copy_width<const WIDTH: usize>(codes: &PackedCodes<'_>, start: usize, out: &mut [Id]) {
    let elements = codes.elements;
    match codes.table {
        Some(table) => Coded::<WIDTH> { elements, table }.copy(start, out),
        None => Plain::<WIDTH>(elements).copy(start, out),
    }
}

fn append_width<const WIDTH: usize>(
    degrees: Degrees,
    codes: &PackedCodes<'_>,
    located: &EntryRanges,
    first_row: u32,
    rows: &mut [u32],
    out: &mut [Id],
) {
    let elements = codes.elements;
    match codes.table {
        Some(table) => {
            append_values(degrees, located, first_row, rows, out, &Coded::<WIDTH> { elements, table });
        }
        None => append_values(degrees, located, first_row, rows, out, &Plain::<WIDTH>(elements)),
    }
}

/// A column of neighbours of a known form. A trait, since a closure would not always be inlined.
trait Column {
    fn get(&self, index: usize) -> u64;

    /// Copies elements from `start` on into all of `out`.
    #[inline(always)]
    fn copy(&self, start: usize, out: &mut [Id]) {
        for (index, slot) in (start..).zip(out) {
            *slot = Id::from_bits(self.get(index));
        }
    }
}

impl Column for FramedView<'_> {
    #[inline(always)]
    fn get(&self, index: usize) -> u64 {
        FramedView::get(self, index)
    }

    #[inline(always)]
    fn copy(&self, start: usize, out: &mut [Id]) {
        FramedView::copy(self, start, out, Id::from_bits);
    }
}

struct Plain<'a, const WIDTH: usize>(PackedView<'a>);

impl<const WIDTH: usize> Column for Plain<'_, WIDTH> {
    #[inline(always)]
    fn get(&self, index: usize) -> u64 {
        self.0.minimum().wrapping_add(self.0.get_raw::<WIDTH>(index))
    }
}

/// Codes are stored unchanged: their minimum is 0.
struct Coded<'a, const WIDTH: usize> {
    elements: PackedView<'a>,
    table: PackedView<'a>,
}

impl<const WIDTH: usize> Column for Coded<'_, WIDTH> {
    #[inline(always)]
    fn get(&self, index: usize) -> u64 {
        self.table.get(usize::try_from(self.elements.get_raw::<WIDTH>(index)).unwrap_or(usize::MAX))
    }
}

/// Expected degrees, which select the loop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Degrees {
    /// 0 or 1.
    One,
    /// Mostly 0 to 2.
    Two,
    /// Mostly 0 to [`AHEAD`].
    Few,
    Many,
}

impl Degrees {
    fn of(view: &SegmentView<'_>) -> Self {
        let keys = view.key_count.max(1);
        match view.count {
            _ if view.offsets.is_none() => Self::One,
            entries if entries <= keys + keys / 2 => Self::Two,
            entries if entries <= keys * AHEAD => Self::Few,
            _ => Self::Many,
        }
    }
}

/// Writes row and value of each entry. Small degrees vary, so a loop over them would end in a misprediction
/// for each row; instead a fixed number of entries is written, and the next row overwrites the excess.
#[inline(always)]
fn append_values(
    degrees: Degrees,
    located: &EntryRanges,
    first_row: u32,
    rows: &mut [u32],
    out: &mut [Id],
    column: &impl Column,
) {
    match degrees {
        Degrees::One => append_ahead::<1>(located, first_row, rows, out, column),
        Degrees::Two => append_ahead::<2>(located, first_row, rows, out, column),
        Degrees::Few => append_ahead::<AHEAD>(located, first_row, rows, out, column),
        Degrees::Many => append_loop(located, first_row, rows, out, column),
    }
}

#[inline(always)]
fn append_ahead<const COUNT: usize>(
    located: &EntryRanges,
    first_row: u32,
    rows: &mut [u32],
    out: &mut [Id],
    column: &impl Column,
) {
    let mut at = 0;
    for (row, range) in (first_row..).zip(located.ranges()) {
        let row_slots = rows.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<COUNT>());
        let slots = out.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<COUNT>());
        let (Some(row_slots), Some(slots)) = (row_slots, slots) else { return };
        *row_slots = [row; COUNT];
        for (index, slot) in (range.start..).zip(slots) {
            *slot = Id::from_bits(column.get(index));
        }
        if COUNT > 1 && range.len() > COUNT {
            let (from, to) = (at + COUNT, at + range.len());
            let (Some(row_slots), Some(slots)) = (rows.get_mut(from..to), out.get_mut(from..to)) else {
                return;
            };
            row_slots.fill(row);
            column.copy(range.start + COUNT, slots);
        }
        at += range.len();
    }
}

#[inline(always)]
fn append_loop(
    located: &EntryRanges,
    first_row: u32,
    rows: &mut [u32],
    out: &mut [Id],
    column: &impl Column,
) {
    let mut at = 0;
    for (row, range) in (first_row..).zip(located.ranges()) {
        let end = at + range.len();
        let (Some(row_slots), Some(slots)) = (rows.get_mut(at..end), out.get_mut(at..end)) else { return };
        row_slots.fill(row);
        column.copy(range.start, slots);
        at = end;
    }
}

/// Appends the entries of `keys` that pass `filter`, from `cursor` on, up to the capacity.
pub(crate) fn some(
    view: &SegmentView<'_>,
    keys: &[Id],
    filter: EntryFilter,
    cursor: &mut Cursor,
    out: &mut Expansion,
) {
    let mut located = EntryRanges::new();
    while cursor.row < keys.len() {
        view.locate(&keys[cursor.row..], &mut located);
        let first_row = cursor.row;
        end(view, &mut located, first_row, out);
        for (row, range) in (first_row..).zip(located.ranges()) {
            let skipped =
                if row == first_row { usize::try_from(cursor.offset).unwrap_or(usize::MAX) } else { 0 };
            let first = range.start;
            let rest = first.saturating_add(skipped).min(range.end)..range.end;
            for entry in view.passing_from(first, rest, filter, out.want_edges) {
                if out.remaining_capacity() == 0 {
                    *cursor = Cursor { offset: (entry.index - first) as u64, ..Cursor::at(row) };
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
        *cursor = Cursor::at(first_row + located.rows);
    }
}

impl SegmentView<'_> {
    /// Appends the neighbours of a range.
    pub(crate) fn copy_neighbours(&self, range: Range<usize>, out: &mut Vec<Id>) {
        let length = out.len();
        out.resize(length + range.len(), Id::UNBOUND);
        let slots = &mut out[length..];
        match &self.neighbours {
            CodesView::Packed(codes) => copy_packed(codes, range.start, slots),
            CodesView::Framed(values) => Column::copy(values, range.start, slots),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{BuildOptions, Statement, StoreBuilder, Target};
    use vervet_codec::CodesView;
    use vervet_dictionary::DictionaryBuilder;
    use vervet_env::Environment;
    use vervet_model::{Direction, Id, Result};
    use vervet_testkit::{Random, check_segment};

    /// Neighbours are packed in small segments, and framed in those with many edges.
    #[test]
    fn neighbours_of_many_edges_are_framed_and_complete() -> Result<()> {
        let seed = vervet_testkit::seed();
        println!("seed {seed}");
        let mut random = Random(seed);
        for (count, is_framed) in [(60_000, false), (70_000, true)] {
            let mut dictionary = DictionaryBuilder::new();
            let vertices: Vec<Id> =
                (0..2000).map(|i| dictionary.intern_iri(&format!("http://e/v{i}"))).collect::<Result<_>>()?;
            let predicate = dictionary.intern_iri("http://e/knows")?;
            let mut rows: Vec<[Id; 4]> = (0..count)
                .map(|edge| [random.pick(&vertices), random.pick(&vertices), Id::UNBOUND, Id::edge(edge)])
                .collect();
            let mut builder = StoreBuilder::new(BuildOptions {
                threads: 2,
                memory_bytes: u64::MAX,
                environment: Environment::simulated(seed),
                temp_dir: None,
                log: None,
                orders: Vec::new(),
            });
            let statement = |&[subject, object, graph, edge]: &[Id; 4]| Statement {
                subject,
                predicate,
                object,
                graph,
                edge,
            };
            builder.add(&rows.iter().map(statement).collect::<Vec<_>>())?;
            let store = builder.finish(dictionary.finish()?, &Target::Memory)?;
            for direction in Direction::BOTH {
                let segment = store.base_segment(predicate, direction)?.expect("it has entries");
                let framed = matches!(segment.view().neighbours, CodesView::Framed(_));
                assert_eq!(framed, is_framed, "{count} {direction:?}");
                rows.sort_unstable();
                check_segment(
                    &**segment,
                    &rows,
                    &vertices,
                    &vertices[..1],
                    &mut random,
                    &format!("{count} {direction:?}"),
                );
                rows.iter_mut().for_each(|row| row.swap(0, 1));
            }
        }
        Ok(())
    }
}
