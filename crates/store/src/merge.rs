//! External merge sort of the entries of a predicate.
//!
//! # Shape
//! A heap with the next entry of each run. The output goes to a file of its own, because a segment is encoded
//! in several passes over its entries, and because the other direction is made from it.
//! # Cost
//! About 50 to 100 ns an entry for each of the two directions. Memory: the caller's limit for runs of the
//! other direction, and 40 bytes for each run; the system may drop mapped pages at any time.

use crate::entries::Entries;
use crate::spill::{RunKind, SortedRun, Spill};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use vervet_model::{Result, Watch};

/// Entries of a run as input of the encoder. `COLUMNS`: whether some may have a graph or an edge.
pub(crate) struct MergedRun<'a, const COLUMNS: bool>(pub(crate) &'a SortedRun);

impl<const COLUMNS: bool> Entries for MergedRun<'_, COLUMNS> {
    const COLUMNS: bool = COLUMNS;

    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn key(&self, index: usize) -> u64 {
        self.0.row(index)[0]
    }

    #[inline]
    fn neighbour(&self, index: usize) -> u64 {
        self.0.row(index)[1]
    }

    #[inline]
    fn graph(&self, index: usize) -> u64 {
        self.0.row(index)[2]
    }

    #[inline]
    fn edge(&self, index: usize) -> u64 {
        self.0.row(index)[3]
    }
}

/// The narrowest kind that can represent the entries of all `runs`.
fn kind_of(runs: &[SortedRun]) -> RunKind {
    let mut kinds = runs.iter().map(SortedRun::kind);
    let first = kinds.next().unwrap_or(RunKind::Pairs);
    kinds.fold(first, |kind, other| match (kind, other) {
        _ if kind == other => kind,
        (RunKind::Quads, _) | (_, RunKind::Quads) => RunKind::Quads,
        _ => RunKind::Pairs,
    })
}

/// Merges all entries of `runs` into one run; entries without an edge are deduplicated.
pub(crate) fn merge(runs: &[SortedRun], spill: &Spill, watch: &Watch<'_>) -> Result<SortedRun> {
    if let [run] = runs {
        return Ok(run.clone());
    }
    let mut heap: BinaryHeap<_> = (0..)
        .zip(runs)
        .filter(|(_, run)| run.len() > 0)
        .map(|(number, run)| Reverse((run.row(0), number, 0_usize)))
        .collect();
    let mut next = || {
        let mut top = heap.peek_mut()?;
        let (row, number, index) = top.0;
        let number: usize = number;
        if index + 1 < runs[number].len() {
            *top = Reverse((runs[number].row(index + 1), number, index + 1));
        } else {
            std::collections::binary_heap::PeekMut::pop(top);
        }
        Some(row)
    };
    let mut held = next();
    let rows = std::iter::from_fn(|| {
        loop {
            let row = held?;
            held = next();
            // Duplicates of an entry with an edge are kept, as everywhere (see `Buffers::spill`); an entry
            // without one is dropped before the same entry with or without one.
            let gives_way = row[3] == 0 && held.is_some_and(|next| next[..3] == row[..3]);
            if !gives_way {
                return Some(Ok(row));
            }
        }
    });
    one_run(kind_of(runs), rows, spill, watch)
}

/// The entries of `run` with subject and object exchanged, sorted by way of runs of about `memory_bytes`.
pub(crate) fn reverse(
    run: &SortedRun,
    memory_bytes: u64,
    spill: &Spill,
    watch: &Watch<'_>,
) -> Result<SortedRun> {
    let kind = run.kind().reversed();
    let rows_max = usize::try_from(memory_bytes / 32).unwrap_or(usize::MAX).max(ROWS_MIN);
    let mut runs = Vec::new();
    let mut start = 0;
    let mut rows = Vec::with_capacity(rows_max.min(run.len()));
    while start < run.len() {
        let end = run.len().min(start.saturating_add(rows_max));
        rows.clear();
        rows.extend((start..end).map(|index| {
            let [subject, object, graph, edge] = run.row(index);
            [object, subject, graph, edge]
        }));
        watch.sort(&mut rows, Ord::cmp)?;
        runs.push(one_run(kind, rows.iter().copied().map(Ok), spill, watch)?);
        start = end;
    }
    drop(rows);
    merge(&runs, spill, watch)
}

/// Minimum number of rows of a run; shorter runs would be too many.
const ROWS_MIN: usize = 1 << 10;

/// Writes these rows, sorted and distinct, to a file.
fn one_run(
    kind: RunKind,
    rows: impl Iterator<Item = Result<[u64; 4]>>,
    spill: &Spill,
    watch: &Watch<'_>,
) -> Result<SortedRun> {
    let mut file = spill.begin()?;
    let written = [file.write(kind, rows, watch)?];
    let [run] = <[SortedRun; 1]>::try_from(file.finish(&written)?).map_err(|_| {
        vervet_model::Error::internal("a temporary file has another number of runs than were written")
    })?;
    Ok(run)
}
