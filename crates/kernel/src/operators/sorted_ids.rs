//! Intersection of sorted lists of ids without duplicates: merge, galloping and SIMD-friendly comparison.
//!
//! # Cost
//! Merge: 1 to 2 ns for each element of both lists. Galloping, if one list is much longer: the logarithm of
//! the gap for each element of the shorter. Comparison with a few lanes: 1 to 3 ns for each element.

use crate::pipeline::control::Control;
use vervet_model::{Id, Result};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, Segment};

/// Maximum number of entries listed between two checks of the limits: some 0.1 ms.
pub(crate) const PIECE_ENTRIES: usize = 1 << 16;

/// Appends the distinct neighbours of a key that has `degree` entries, ascending, as [`Segment::neighbours`]
/// does. Long adjacencies are listed in pieces, with a check of the limits in between and memory counted
/// before allocation. `counted`: bytes counted for `out`.
pub(crate) fn list_neighbours(
    segment: &dyn Segment,
    key: Id,
    filter: EntryFilter,
    degree: u64,
    control: &Control<'_>,
    counted: &mut u64,
    out: &mut Vec<Id>,
) -> Result<()> {
    if degree <= PIECE_ENTRIES as u64 {
        segment.neighbours(key, filter, out)?;
        control.work(out.len())?;
    } else {
        let mut piece = Expansion::new(PIECE_ENTRIES);
        let mut cursor = Cursor::default();
        while cursor.row == 0 {
            control.check()?;
            piece.clear();
            segment.expand(&[key], filter, &mut cursor, &mut piece)?;
            let room = 8 * (out.len() + piece.len()).max(out.capacity()) as u64;
            control.recount(counted, room)?;
            for &id in &piece.neighbours {
                if out.last() != Some(&id) {
                    out.push(id);
                }
            }
        }
    }
    debug_assert!(out.is_sorted_by(|a, b| a < b), "neighbours ascend, each once");
    control.recount(counted, 8 * out.capacity() as u64)
}

/// Whether one of the lanes is `id`; branch-free.
pub(crate) fn is_among<const COUNT: usize>(id: Id, lanes: &[Id; COUNT]) -> bool {
    lanes.iter().fold(false, |found, lane| found | (id == *lane))
}

/// Appends the positions of the ids that pass.
pub(crate) fn hits(ids: &[Id], out: &mut Vec<u32>, passes: impl Fn(Id) -> bool) {
    // Branch-free: every position is written, and the write index advances only on a hit.
    let mut count = out.len();
    out.resize(count + ids.len(), 0);
    for (position, id) in (0..).zip(ids) {
        out[count] = position;
        count += usize::from(passes(*id));
    }
    out.truncate(count);
}

/// Appends the positions in `other`, counted from `start`, of the ids that `list` also contains; both ascend
/// without duplicates.
pub(crate) fn common(list: &[Id], other: &[Id], start: usize, out: &mut Vec<u32>) {
    let position = |at: usize| u32::try_from(start + at).unwrap_or(u32::MAX);
    // Galloping is faster if one list is much longer; otherwise the branches of a merge are better predicted.
    if other.len() / 16 > list.len() {
        let mut from = 0;
        for id in list {
            from += gallop(&other[from..], *id);
            if other.get(from) == Some(id) {
                out.push(position(from));
            }
        }
        return;
    }
    if list.len() / 16 > other.len() {
        let mut from = 0;
        for (at, id) in other.iter().enumerate() {
            from += gallop(&list[from..], *id);
            if list.get(from) == Some(id) {
                out.push(position(at));
            }
        }
        return;
    }
    let mut count = out.len();
    out.resize(count + other.len().min(list.len()) + 1, 0);
    let (mut i, mut j) = (0, 0);
    while i < list.len() && j < other.len() {
        let (a, b) = (list[i], other[j]);
        out[count] = position(j);
        count += usize::from(a == b);
        i += usize::from(a <= b);
        j += usize::from(b <= a);
    }
    out.truncate(count);
}

/// Retains the ids of `common` that `other` also contains; both ascend without duplicates.
pub(crate) fn retain_common(common: &mut Vec<Id>, other: &[Id]) {
    // Galloping is faster if one list is much longer; otherwise the branches of a merge are better predicted.
    if other.len() / 16 > common.len() {
        let mut from = 0;
        common.retain(|&id| {
            from += gallop(&other[from..], id);
            other.get(from) == Some(&id)
        });
        return;
    }
    let (mut kept, mut i, mut j) = (0, 0, 0);
    while i < common.len() && j < other.len() {
        let (a, b) = (common[i], other[j]);
        common[kept] = a;
        kept += usize::from(a == b);
        i += usize::from(a <= b);
        j += usize::from(b <= a);
    }
    common.truncate(kept);
}

/// The position of the first element that is not below `id`.
fn gallop(sorted: &[Id], id: Id) -> usize {
    let mut step = 1;
    while step < sorted.len() && sorted[step] < id {
        step *= 2;
    }
    let start = step / 2;
    let end = (step + 1).min(sorted.len());
    start + sorted[start..end].partition_point(|&other| other < id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn galloping_and_merging_agree_with_sets() {
        let ids = |step: u64, count: u64| (0..count).map(|i| Id::vertex(i * step)).collect::<Vec<_>>();
        for (left, right) in [(3, 5), (1, 1), (7, 2), (1000, 1), (1, 1000), (13, 1)] {
            for (short, long) in [(10, 10), (3, 4000), (0, 5), (5, 0), (1, 1)] {
                let (mut list, other) = (ids(left, short), ids(right, long));
                let expected: Vec<_> = list.iter().copied().filter(|id| other.contains(id)).collect();
                let mut positions = vec![7];
                common(&list, &other, 0, &mut positions);
                let found: Vec<_> = positions[1..].iter().map(|&at| other[at as usize]).collect();
                assert_eq!((positions[0], &found), (7, &expected));
                let mut positions = Vec::new();
                hits(&other, &mut positions, |id| list.contains(&id));
                let found: Vec<_> = positions.iter().map(|&at| other[at as usize]).collect();
                assert_eq!(found, expected);
                retain_common(&mut list, &other);
                assert_eq!(list, expected);
            }
        }
    }
}
