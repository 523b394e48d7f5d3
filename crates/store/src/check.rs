//! Membership: whether a key has a neighbour.
//!
//! # Cost
//! Behind locating the key: one comparison where keys have one entry; up to [`LINEAR_MAX`] comparisons of
//! one or two cache lines for small degrees; a binary search above. Neighbours are compared as stored, so
//! a constant is coded once for the whole batch.

use crate::locate::{CHUNK, Located, View};
use vervet_codec::PackedView;
use vervet_model::Id;
use vervet_snapshot::EntryFilter;

/// Largest degree that is searched front to back.
const LINEAR_MAX: usize = 16;

/// Appends the rows whose key has the neighbour of the row; with a `filter`, in an entry that passes.
pub(crate) fn pairs(
    view: &View<'_>,
    keys: &[Id],
    neighbours: &[Id],
    filter: Option<EntryFilter>,
    out: &mut Vec<u32>,
) {
    let mut last = (Id::UNBOUND, view.neighbours.raw_of(0));
    let mut targets = [None; CHUNK];
    view.for_each_chunk(keys, |first_row, located| {
        let wanted = neighbours.get(first_row..).unwrap_or_default();
        targets = [None; CHUNK];
        for (neighbour, target) in wanted.iter().zip(&mut targets) {
            if *neighbour != last.0 {
                last = (*neighbour, view.neighbours.raw_of(neighbour.bits()));
            }
            *target = last.1;
        }
        chunk(view, first_row, located, |row| targets[row], filter, out);
    });
}

/// Appends the rows whose key has this neighbour; with a `filter`, in an entry that passes.
pub(crate) fn constant(
    view: &View<'_>,
    keys: &[Id],
    neighbour: Id,
    filter: Option<EntryFilter>,
    out: &mut Vec<u32>,
) {
    let target = view.neighbours.raw_of(neighbour.bits());
    if target.is_some() {
        view.for_each_chunk(keys, |first_row, located| {
            chunk(view, first_row, located, |_| target, filter, out)
        });
    }
}

#[inline(always)]
fn chunk(
    view: &View<'_>,
    first_row: usize,
    located: &Located,
    target: impl Fn(usize) -> Option<u64>,
    filter: Option<EntryFilter>,
    out: &mut Vec<u32>,
) {
    let elements = &view.neighbours.elements;
    let mut hits = [0_u32; CHUNK];
    let mut count = 0;
    let mut test = |row: usize, hit: bool| {
        // Written for every row and kept for hits: no branch to mispredict.
        hits[count] = u32::try_from(first_row + row).unwrap_or(u32::MAX);
        count += usize::from(hit);
    };
    let rows = located.ranges().enumerate();
    match (filter, elements.width()) {
        (Some(filter), _) => {
            for (row, range) in rows {
                let end = range.end;
                let hit = target(row).is_some_and(|target| {
                    let wanted = elements.minimum().wrapping_add(target);
                    let start = elements.lower_bound(range.start, end, wanted);
                    let equal = (start..end).take_while(|index| elements.get(*index) == wanted);
                    view.passing(start..start + equal.count(), filter, false).next().is_some()
                });
                test(row, hit);
            }
        }
        (None, _) if view.offsets.is_none() => {
            for (row, range) in rows {
                // A missing key has an empty range; what lies at its start is not looked at.
                let raw = elements.get(range.start).wrapping_sub(elements.minimum());
                test(row, !range.is_empty() & (target(row) == Some(raw)));
            }
        }
        (None, 0) => rows.for_each(|(row, range)| test(row, contains::<0>(elements, range, target(row)))),
        (None, 1) => rows.for_each(|(row, range)| test(row, contains::<1>(elements, range, target(row)))),
        (None, 2) => rows.for_each(|(row, range)| test(row, contains::<2>(elements, range, target(row)))),
        (None, 3) => rows.for_each(|(row, range)| test(row, contains::<3>(elements, range, target(row)))),
        (None, 4) => rows.for_each(|(row, range)| test(row, contains::<4>(elements, range, target(row)))),
        (None, _) => rows.for_each(|(row, range)| {
            let wanted = target(row).map(|target| elements.minimum().wrapping_add(target));
            let hit = wanted.is_some_and(|wanted| {
                let at = elements.lower_bound(range.start, range.end, wanted);
                at < range.end && elements.get(at) == wanted
            });
            test(row, hit);
        }),
    }
    out.extend_from_slice(&hits[..count]);
}

/// Whether the raw element `target` is in the ascending `range`.
#[inline(always)]
fn contains<const WIDTH: usize>(
    elements: &PackedView<'_>,
    range: std::ops::Range<usize>,
    target: Option<u64>,
) -> bool {
    let Some(target) = target else { return false };
    if range.len() <= LINEAR_MAX {
        return range.fold(false, |found, index| found | (elements.get_raw::<WIDTH>(index) == target));
    }
    let mut base = range.start;
    let mut length = range.len();
    while length > 1 {
        let half = length / 2;
        base = if elements.get_raw::<WIDTH>(base + half) <= target { base + half } else { base };
        length -= half;
    }
    elements.get_raw::<WIDTH>(base) == target
}
