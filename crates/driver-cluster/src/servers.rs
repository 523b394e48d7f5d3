//! The servers of a graph, as one of them sees them.

use std::sync::Arc;
use vervet_kernel::plan::Access;
use vervet_model::{Direction, Error, Id, Result};
use vervet_partition::{PartitionedBase, Remote};
use vervet_snapshot::Snapshot;

/// See the header of this file. All servers number themselves in the same order.
#[derive(Debug)]
pub struct Servers {
    own: usize,
    /// The server of each partition.
    server_of: Vec<usize>,
    /// The partitions of this server.
    own_partitions: Vec<usize>,
    /// For each partition the number of another server, or, behind those, its position among the partitions
    /// of this one.
    destination_of: Vec<usize>,
    /// By number; `None`: this server.
    remotes: Vec<Option<Arc<dyn Remote>>>,
    /// The whole graph.
    base: Arc<PartitionedBase>,
}

impl Servers {
    /// `remotes`: by number, `None` for this server. `partitions`: those of each.
    ///
    /// # Errors
    /// Internal: not every partition is at one of them, or not one of them is this server.
    pub fn new(
        remotes: Vec<Option<Arc<dyn Remote>>>,
        partitions: &[Vec<usize>],
        base: Arc<PartitionedBase>,
    ) -> Result<Self> {
        let wrong = || Error::internal("the servers of a graph do not have each partition once");
        let mut server_of = vec![usize::MAX; base.partitioning().count()];
        for (server, list) in partitions.iter().enumerate() {
            for &partition in list {
                *server_of.get_mut(partition).ok_or_else(wrong)? = server;
            }
        }
        let own = remotes.iter().position(Option::is_none).ok_or_else(wrong)?;
        if server_of.iter().any(|server| *server >= remotes.len()) {
            return Err(wrong());
        }
        let of_own = server_of.iter().enumerate().filter(|(_, server)| **server == own);
        let own_partitions: Vec<usize> = of_own.map(|(partition, _)| partition).collect();
        let mut destination_of = server_of.clone();
        for (position, &partition) in own_partitions.iter().enumerate() {
            destination_of[partition] = remotes.len() + position;
        }
        Ok(Self { own, server_of, own_partitions, destination_of, remotes, base })
    }

    /// The number of servers.
    #[must_use]
    pub fn count(&self) -> usize {
        self.remotes.len()
    }

    /// The number of this server.
    pub(crate) fn own(&self) -> usize {
        self.own
    }

    /// The whole graph.
    pub(crate) fn base(&self) -> &PartitionedBase {
        &self.base
    }

    /// Another server.
    pub(crate) fn remote(&self, server: usize) -> Result<&dyn Remote> {
        let remote = self.remotes.get(server).and_then(Option::as_deref);
        remote.ok_or_else(|| Error::internal(format!("server {server} is not another server")))
    }

    /// The server that has the statements of a key.
    #[inline]
    pub(crate) fn of_key(&self, key: Id) -> usize {
        self.server_of[self.base.partitioning().owner(key)]
    }

    /// Where the statements of a key are: the number of another server, or, behind those, the position of a
    /// partition of this one.
    #[inline]
    pub(crate) fn destination(&self, key: Id) -> usize {
        self.destination_of[self.base.partitioning().owner(key)]
    }

    /// The partitions of this server.
    pub(crate) fn own_partitions(&self) -> &[usize] {
        &self.own_partitions
    }

    /// The position of a partition among those of this server.
    ///
    /// # Errors
    /// Unavailable: it is at another server.
    pub(crate) fn own_position(&self, partition: usize) -> Result<usize> {
        let position = self.own_partitions.iter().position(|own| *own == partition);
        position.map_or_else(|| self.base.partition(partition).map(|_| 0), Ok)
    }

    /// The statements of a partition of this server, by its position.
    pub(crate) fn own_partition(&self, position: usize) -> Result<&dyn Snapshot> {
        let partition = self.own_partitions.get(position).copied().unwrap_or(usize::MAX);
        self.base.partition(partition)
    }

    /// The partitions of a server.
    pub(crate) fn partitions_of(&self, server: usize) -> Vec<usize> {
        let all = self.server_of.iter().enumerate();
        all.filter(|(_, of)| **of == server).map(|(partition, _)| partition).collect()
    }

    /// Whether the entries of each key of this segment are at one server.
    pub(crate) fn is_keyed(&self, access: &Access) -> bool {
        access.direction == Direction::Out || !self.base.is_split(access.predicate)
    }
}
