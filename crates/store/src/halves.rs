//! Halves of statements: the entries of one predicate that each partition has, in either direction.
//!
//! # Shape
//! An entry is at the partition that owns its key. In entries of a split predicate are at the partition of
//! the subject, as the out entries are: an object such as a type would have more entries than one partition
//! should have.
//! # Source
//! "Differentiated partitioning": J. Shi et al., "Fast and Concurrent RDF Queries with RDMA-Based Distributed
//! Graph Exploration", OSDI 2016, §4.1.

use crate::entries::{Entries, KeyRuns};
use crate::sort;
use vervet_codec::Stride;
use vervet_model::{Id, Partitioning, Result, Watch};

/// Predicates with more entries for each distinct object are split.
const ENTRIES_PER_OBJECT_MAX: u64 = 256;

/// An object with at most this many entries is no reason to split its predicate.
const OBJECT_ENTRIES_MIN: u64 = 64;

/// Split predicates have at most this many objects, which calls may list.
const OBJECTS_MAX: u64 = 1 << 16;

/// The objects of a predicate, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ObjectCounts {
    /// Entries, without duplicates.
    pub(crate) entries: u64,
    /// Distinct objects.
    pub(crate) objects: u64,
    /// The most entries of one object.
    pub(crate) degree_max: u64,
}

impl ObjectCounts {
    pub(crate) fn of(objects: &KeyRuns) -> Self {
        Self {
            entries: objects.starts.last().map_or(0, |end| *end as u64),
            objects: objects.keys.len() as u64,
            degree_max: objects.degrees().max().unwrap_or(0),
        }
    }

    /// Whether the in entries of a predicate with these objects, other than types, are split: if there are
    /// few objects for the entries, or one has more entries than a quarter of what a partition has on
    /// average.
    pub(crate) fn is_split(self, partitioning: Partitioning) -> bool {
        let share = self.entries / (4 * partitioning.count() as u64);
        let is_uneven = self.entries > ENTRIES_PER_OBJECT_MAX.saturating_mul(self.objects)
            || self.degree_max > share.max(OBJECT_ENTRIES_MIN);
        is_uneven && self.objects <= OBJECTS_MAX
    }
}

/// The entries of each partition, out and in, of the entries in both directions. `entry` copies one.
pub(crate) fn cut<E: Entries + ?Sized, T>(
    [out, reverse]: [&E; 2],
    is_split: bool,
    partitioning: Partitioning,
    entry: impl Fn(&E, usize) -> T,
) -> Vec<[Vec<T>; 2]> {
    let mut halves: Vec<[Vec<T>; 2]> = (0..partitioning.count()).map(|_| [Vec::new(), Vec::new()]).collect();
    for index in 0..out.len() {
        halves[partitioning.owner(Id::from_bits(out.key(index)))][0].push(entry(out, index));
    }
    for index in 0..reverse.len() {
        let owner = if is_split { reverse.neighbour(index) } else { reverse.key(index) };
        halves[partitioning.owner(Id::from_bits(owner))][1].push(entry(reverse, index));
    }
    halves
}

/// The stride of the keys that a partition owns.
pub(crate) fn stride(partitioning: Partitioning, part: usize) -> Stride {
    let bits = partitioning.count().trailing_zeros();
    let stride = Stride::new(bits, part as u64, partitioning.run_bits());
    debug_assert!(stride.is_some(), "partitions are at most the slots");
    stride.unwrap_or_default()
}

/// The distinct neighbours of entries, ascending.
pub(crate) fn distinct_neighbours<E: Entries + ?Sized>(entries: &E, watch: &Watch<'_>) -> Result<Vec<u64>> {
    let mut all: Vec<u64> = (0..entries.len()).map(|index| entries.neighbour(index)).collect();
    sort::sort(&mut all, u64::MAX, &mut Vec::new(), watch)?;
    all.dedup();
    Ok(all)
}
