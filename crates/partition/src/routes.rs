//! Which part of a graph has which partition.

use vervet_model::{Error, ErrorKind, Id, Partitioning, Result};

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
    ///
    /// # Errors
    /// Unavailable: this process was asked for a partition of another server.
    #[inline]
    pub(crate) fn part(&self, key: Id) -> Result<usize> {
        let partition = self.partitioning.owner(key);
        self.part_of.get(partition).copied().flatten().ok_or_else(|| elsewhere(partition))
    }
}

#[cold]
pub(crate) fn elsewhere(partition: usize) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        format!("partition {partition} is not at the server that was asked for it"),
    )
    .with_hint("all servers of a cluster must have the same cluster.toml, but for `server`")
}
