//! Which part of a graph has which partition.

use vervet_model::{Id, Partitioning};

/// From partitions to positions in a list of parts: partitions of this process, and other servers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Routes {
    partitioning: Partitioning,
    /// For each partition; `None`: a part that is not there.
    part_of: Vec<Option<usize>>,
}

impl Routes {
    /// `part_of`: for each partition its part.
    pub(crate) fn new(partitioning: Partitioning, part_of: Vec<Option<usize>>) -> Self {
        debug_assert_eq!(part_of.len(), partitioning.count(), "one for each partition");
        Self { partitioning, part_of }
    }

    pub(crate) fn partitioning(&self) -> Partitioning {
        self.partitioning
    }

    /// The part that has the entries of a key.
    #[inline]
    pub(crate) fn part(&self, key: Id) -> Option<usize> {
        *self.part_of.get(self.partitioning.owner(key))?
    }
}
