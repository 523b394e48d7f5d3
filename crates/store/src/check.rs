//! Membership checks: whether a key has a neighbour.
//!
//! # Cost
//! In addition to locating the key: one comparison where keys have one entry; [`AHEAD`] comparisons at once
//! where they have at most that many; a binary search above. Neighbours are compared in their stored form, so
//! a constant is encoded once for the whole batch.

use crate::locate::{CHUNK, EntryRanges, SegmentView};
use vervet_codec::{CodesView, FramedView, PackedView};
use vervet_model::Id;
use vervet_snapshot::EntryFilter;

/// Number of entries compared without reading the degree.
const AHEAD: usize = 4;

/// Appends the rows whose key has the neighbour of the row; with a `filter`, in an entry that passes.
pub(crate) fn pairs(
    view: &SegmentView<'_>,
    keys: &[Id],
    neighbours: &[Id],
    filter: Option<EntryFilter>,
    out: &mut Vec<u32>,
) {
    let codes = match &view.neighbours {
        CodesView::Packed(codes) => codes,
        CodesView::Framed(values) => {
            return view.for_each_chunk(keys, |first_row, located| {
                let target =
                    |row: usize| neighbours.get(first_row + row).map_or(0, |neighbour| neighbour.bits());
                framed(view, values, first_row, located, target, filter, out);
            });
        }
    };
    let mut last = (Id::UNBOUND, codes.raw_of(0));
    let mut targets = [None; CHUNK];
    view.for_each_chunk(keys, |first_row, located| {
        let wanted = neighbours.get(first_row..).unwrap_or_default();
        targets = [None; CHUNK];
        for (neighbour, target) in wanted.iter().zip(&mut targets) {
            if *neighbour != last.0 {
                last = (*neighbour, codes.raw_of(neighbour.bits()));
            }
            *target = last.1;
        }
        chunk(view, &codes.elements, first_row, located, |row| targets[row], filter, out);
    });
}

/// Appends the rows whose key has this neighbour; with a `filter`, in an entry that passes.
pub(crate) fn constant(
    view: &SegmentView<'_>,
    keys: &[Id],
    neighbour: Id,
    filter: Option<EntryFilter>,
    out: &mut Vec<u32>,
) {
    match &view.neighbours {
        CodesView::Packed(codes) => {
            let target = codes.raw_of(neighbour.bits());
            if target.is_some() {
                view.for_each_chunk(keys, |first_row, located| {
                    chunk(view, &codes.elements, first_row, located, |_| target, filter, out)
                });
            }
        }
        CodesView::Framed(values) => view.for_each_chunk(keys, |first_row, located| {
            framed(view, values, first_row, located, |_| neighbour.bits(), filter, out);
        }),
    }
}

/// [`chunk`] for framed neighbours: `target` returns them decoded.
fn framed(
    view: &SegmentView<'_>,
    values: &FramedView<'_>,
    first_row: usize,
    located: &EntryRanges,
    target: impl Fn(usize) -> u64,
    filter: Option<EntryFilter>,
    out: &mut Vec<u32>,
) {
    for (row, range) in located.ranges().enumerate() {
        let (target, end) = (target(row), range.end);
        let start = values.lower_bound(range.start, end, target);
        let hit = match filter {
            Some(filter) => {
                let equal = (start..end).take_while(|index| values.get(*index) == target);
                view.passing(start..start + equal.count(), filter, false).next().is_some()
            }
            None => start < end && values.get(start) == target,
        };
        if hit {
            out.push(u32::try_from(first_row + row).unwrap_or(u32::MAX));
        }
    }
}

#[inline(always)]
fn chunk(
    view: &SegmentView<'_>,
    elements: &PackedView<'_>,
    first_row: usize,
    located: &EntryRanges,
    target: impl Fn(usize) -> Option<u64>,
    filter: Option<EntryFilter>,
    out: &mut Vec<u32>,
) {
    let mut hits = [0_u32; CHUNK];
    let mut count = 0;
    let mut test = |row: usize, hit: bool| {
        // Written for every row, counted only for hits: no branch to mispredict.
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
                // A missing key has an empty range; the element at its start is loaded but not used.
                let raw = elements.get(range.start).wrapping_sub(elements.minimum());
                test(row, !range.is_empty() & (target(row) == Some(raw)));
            }
        }
        (None, 0) => few::<0>(elements, located, target, test),
        (None, 1) => few::<1>(elements, located, target, test),
        (None, 2) => few::<2>(elements, located, target, test),
        (None, 3) => few::<3>(elements, located, target, test),
        (None, 4) => few::<4>(elements, located, target, test),
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

/// Tests all rows of a segment with small degrees.
#[inline(always)]
fn few<const WIDTH: usize>(
    elements: &PackedView<'_>,
    located: &EntryRanges,
    target: impl Fn(usize) -> Option<u64>,
    mut test: impl FnMut(usize, bool),
) {
    // A loop without a branch first, so that the cache misses of all rows overlap.
    let mut windows = [0; CHUNK];
    for (range, window) in located.ranges().zip(&mut windows) {
        *window = elements.window::<WIDTH>(range.start);
    }
    for (row, (range, window)) in located.ranges().zip(windows).enumerate() {
        // No element takes all 8 bytes here, so `u64::MAX` matches none.
        test(row, contains::<WIDTH>(elements, range, window, target(row).unwrap_or(u64::MAX)));
    }
}

/// Whether the raw element `target` is in the ascending `range`, whose first bytes are `window`.
#[inline(always)]
fn contains<const WIDTH: usize>(
    elements: &PackedView<'_>,
    range: std::ops::Range<usize>,
    window: u64,
    target: u64,
) -> bool {
    let length = range.len();
    if length <= AHEAD {
        // A fixed number of comparisons for every row: no branch to mispredict.
        return match WIDTH {
            1 => has_lane::<8>(window, length, target),
            2 => has_lane::<16>(window, length, target),
            _ => (0..AHEAD).fold(false, |found, index| {
                found | ((elements.get_raw::<WIDTH>(range.start + index) == target) & (index < length))
            }),
        };
    }
    let mut base = range.start;
    let mut length = length;
    while length > 1 {
        let half = length / 2;
        base = if elements.get_raw::<WIDTH>(base + half) <= target { base + half } else { base };
        length -= half;
    }
    elements.get_raw::<WIDTH>(base) == target
}

/// Whether one of the lowest `length` (at most [`AHEAD`]) lanes of `BITS` bits is `target`.
#[inline(always)]
fn has_lane<const BITS: usize>(lanes: u64, length: usize, target: u64) -> bool {
    let ones = u64::MAX / ((1 << BITS) - 1);
    let fits = target >> BITS == 0;
    // A lane that is equal becomes 0; lanes after the range do not.
    let difference =
        (lanes ^ target.wrapping_mul(ones)) | u64::MAX.checked_shl(lane_bits(length, BITS)).unwrap_or(0);
    fits & (difference.wrapping_sub(ones) & !difference & (ones << (BITS - 1)) != 0)
}

/// Mask of the bits of `length` lanes.
#[inline(always)]
fn lane_bits(length: usize, bits: usize) -> u32 {
    u32::try_from(length * bits).unwrap_or(u64::BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes() {
        let lanes = u64::from_le_bytes([5, 0, 255, 5, 7, 0, 1, 2]);
        for (length, target, expected) in [
            (0, 5, false),
            (1, 5, true),
            (1, 0, false),
            (2, 0, true),
            (2, 255, false),
            (3, 255, true),
            (4, 7, false),
        ] {
            assert_eq!(has_lane::<8>(lanes, length, target), expected, "{length} {target}");
        }
        for (length, target, expected) in
            [(0, 5, false), (1, 5, true), (2, 1535, true), (3, 7, true), (4, 513, true), (3, 513, false)]
        {
            assert_eq!(has_lane::<16>(lanes, length, target), expected, "{length} {target}");
        }
    }
}
