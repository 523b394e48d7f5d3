//! The servers of a graph, as one of them sees them.
//!
//! # Shape
//! Several servers may have a partition. The *assignment* of a query says which of them works on it: the
//! server that is asked makes it, of servers that are not suspected to be down, and the job has it, so all
//! servers of the query send the rows of a partition to the same one. Where each partition is at one server,
//! and data are never replaced, there is one assignment, and jobs have none. Where servers join and leave,
//! the job also has its servers, by their *places*: numbers that they keep, whatever others there are.

use crate::threads::spawn;
use crate::wire::malformed;
use std::collections::BTreeSet;
use std::sync::Arc;
use vervet_kernel::plan::Access;
use vervet_model::{Direction, Error, Id, Result, ThreadLimits};
use vervet_partition::{PartitionedBase, Remote};
use vervet_snapshot::Snapshot;

/// What does not depend on a query.
#[derive(Clone, Debug)]
struct Known {
    own: usize,
    /// The servers that have each partition, ascending.
    with: Vec<Vec<usize>>,
    /// By number; `None`: this server.
    remotes: Vec<Option<Arc<dyn Remote>>>,
    /// By number: the numbers that they keep; none: they are always the same servers.
    places: Vec<u64>,
    /// The whole graph.
    base: Arc<PartitionedBase>,
    /// Jobs say their assignment, and the build of their data.
    has_assignments: bool,
}

/// See the header of this file. All servers number themselves in the same order.
#[derive(Clone, Debug)]
pub struct Servers {
    known: Arc<Known>,
    /// The server of each partition.
    server_of: Vec<usize>,
    /// The partitions of this server.
    own_partitions: Vec<usize>,
    /// For each partition the number of another server, or, behind those, its position among the partitions
    /// of this one.
    destination_of: Vec<usize>,
}

impl Servers {
    /// `remotes`: by number, `None` for this server. `partitions`: those of each. `may_change`: the data may
    /// be replaced by others.
    ///
    /// # Errors
    /// Internal: a partition is at none of them, or not one of them is this server.
    pub fn new(
        remotes: Vec<Option<Arc<dyn Remote>>>,
        partitions: &[Vec<usize>],
        base: Arc<PartitionedBase>,
        may_change: bool,
    ) -> Result<Self> {
        let wrong = || Error::internal("the servers of a graph do not have all partitions");
        let mut with = vec![Vec::new(); base.partitioning().count()];
        for (server, list) in partitions.iter().enumerate() {
            for &partition in list {
                with.get_mut(partition).ok_or_else(wrong)?.push(server);
            }
        }
        let own = remotes.iter().position(Option::is_none).ok_or_else(wrong)?;
        let is_at = |servers: &Vec<usize>| servers.last().is_some_and(|last| *last < remotes.len());
        if !with.iter().all(is_at) {
            return Err(wrong());
        }
        let server_of = with.iter().map(|servers| servers[0]).collect();
        let has_assignments = may_change || with.iter().any(|servers| servers.len() > 1);
        Ok(Self::over(
            Arc::new(Known { own, with, remotes, places: Vec::new(), base, has_assignments }),
            server_of,
        ))
    }

    /// The same servers, which keep these numbers when others join and leave.
    #[must_use]
    pub fn with_places(self, places: Vec<u64>) -> Self {
        debug_assert_eq!(places.len(), self.count(), "one for each server");
        let known = Known { places, has_assignments: true, ..(*self.known).clone() };
        Self { known: Arc::new(known), ..self }
    }

    /// The numbers that servers keep, for a job; none: they are always the same servers.
    pub(crate) fn places(&self) -> &[u64] {
        &self.known.places
    }

    /// The servers at these places, with the numbers that they have there.
    fn at_places(&self, places: &[u64]) -> Result<Arc<Known>> {
        let known = &self.known;
        if places.is_empty() || *places == *known.places {
            return Ok(Arc::clone(known));
        }
        let position = |place: &u64| known.places.iter().position(|own| own == place);
        let unknown = || malformed("a server that this one does not know");
        let numbers: Vec<usize> = places.iter().map(position).collect::<Option<_>>().ok_or_else(unknown)?;
        let of = |number: usize| numbers.iter().position(|one| *one == number);
        let with = |servers: &Vec<usize>| servers.iter().copied().filter_map(of).collect();
        Ok(Arc::new(Known {
            own: of(known.own).ok_or_else(unknown)?,
            with: known.with.iter().map(with).collect(),
            remotes: numbers.iter().map(|number| known.remotes[*number].clone()).collect(),
            places: places.to_vec(),
            base: Arc::clone(&known.base),
            has_assignments: true,
        }))
    }

    fn over(known: Arc<Known>, server_of: Vec<usize>) -> Self {
        let of_own = server_of.iter().enumerate().filter(|(_, server)| **server == known.own);
        let own_partitions: Vec<usize> = of_own.map(|(partition, _)| partition).collect();
        let mut destination_of = server_of.clone();
        for (position, &partition) in own_partitions.iter().enumerate() {
            destination_of[partition] = known.remotes.len() + position;
        }
        Self { known, server_of, own_partitions, destination_of }
    }

    /// Whether jobs say their assignment, and the build of their data.
    pub(crate) fn has_assignments(&self) -> bool {
        self.known.has_assignments
    }

    /// The other servers that are suspected to be down.
    pub(crate) fn suspected(&self) -> BTreeSet<usize> {
        let remotes = self.known.remotes.iter().enumerate();
        let suspected = remotes.filter(|(_, one)| one.as_ref().is_some_and(|one| one.is_suspected()));
        suspected.map(|(server, _)| server).collect()
    }

    /// The same servers with an assignment for a query, each with as many partitions as the others, about,
    /// but as few as possible of those in `avoided`.
    pub(crate) fn assigned(&self, avoided: &BTreeSet<usize>) -> Self {
        let Known { with, remotes, .. } = &*self.known;
        let mut loads = vec![0_usize; remotes.len()];
        let choose = |servers: &Vec<usize>| {
            let best =
                servers.iter().copied().min_by_key(|server| (avoided.contains(server), loads[*server]));
            let server = best.unwrap_or_default();
            loads[server] += 1;
            server
        };
        let server_of = with.iter().map(choose).collect();
        Self::over(Arc::clone(&self.known), server_of)
    }

    /// Finds out which of the other servers answer, all at once.
    pub(crate) fn probe(&self) {
        std::thread::scope(|scope| {
            for remote in self.known.remotes.iter().flatten() {
                let limits = ThreadLimits::current();
                let probed = spawn(scope, move || {
                    let _limits = limits.enter();
                    remote.probe();
                });
                // Without another thread it is found out by the next request.
                _ = probed;
            }
        });
    }

    /// The servers of a job, with its assignment. Which partitions another server has, that one checks.
    ///
    /// # Errors
    /// Unavailable: it is none of these servers, or of partitions that this one lacks.
    pub(crate) fn with_assignment(&self, places: &[u64], server_of: &[usize]) -> Result<Self> {
        let known = self.at_places(places)?;
        let lacks = || malformed("a server that does not have its partition");
        if server_of.len() != known.with.len()
            || server_of.iter().any(|server| *server >= known.remotes.len())
        {
            return Err(lacks());
        }
        let assigned = Self::over(known, server_of.to_vec());
        let here = |partition: &usize| assigned.known.base.partition(*partition).is_ok();
        if assigned.own_partitions.iter().all(here) { Ok(assigned) } else { Err(lacks()) }
    }

    /// The server of each partition.
    pub(crate) fn assignment(&self) -> &[usize] {
        &self.server_of
    }

    /// The number of servers.
    #[must_use]
    pub fn count(&self) -> usize {
        self.known.remotes.len()
    }

    /// The number of this server.
    pub(crate) fn own(&self) -> usize {
        self.known.own
    }

    /// The whole graph.
    pub(crate) fn base(&self) -> &PartitionedBase {
        &self.known.base
    }

    /// Another server.
    pub(crate) fn remote(&self, server: usize) -> Result<&dyn Remote> {
        let remote = self.known.remotes.get(server).and_then(Option::as_deref);
        remote.ok_or_else(|| Error::internal(format!("server {server} is not another server")))
    }

    /// The server that works on the statements of a key.
    #[inline]
    pub(crate) fn of_key(&self, key: Id) -> usize {
        self.server_of[self.known.base.partitioning().owner(key)]
    }

    /// Where the statements of a key are: the number of another server, or, behind those, the position of a
    /// partition of this one.
    #[inline]
    pub(crate) fn destination(&self, key: Id) -> usize {
        self.destination_of[self.known.base.partitioning().owner(key)]
    }

    /// The partitions that this server works on.
    pub(crate) fn own_partitions(&self) -> &[usize] {
        &self.own_partitions
    }

    /// The position of a partition among those of this server.
    ///
    /// # Errors
    /// Unavailable: it is not here, or another server works on it.
    pub(crate) fn own_position(&self, partition: usize) -> Result<usize> {
        self.known.base.partition(partition)?;
        let position = self.own_partitions.iter().position(|own| *own == partition);
        position.ok_or_else(|| malformed("a scan of a partition of another server"))
    }

    /// The statements of a partition of this server, by its position.
    pub(crate) fn own_partition(&self, position: usize) -> Result<&dyn Snapshot> {
        let partition = self.own_partitions.get(position).copied().unwrap_or(usize::MAX);
        self.known.base.partition(partition)
    }

    /// The partitions that a server works on.
    pub(crate) fn partitions_of(&self, server: usize) -> Vec<usize> {
        let all = self.server_of.iter().enumerate();
        all.filter(|(_, of)| **of == server).map(|(partition, _)| partition).collect()
    }

    /// Whether the entries of each key of this segment are at one server.
    pub(crate) fn is_keyed(&self, access: &Access) -> bool {
        access.direction == Direction::Out || !self.known.base.is_split(access.predicate)
    }
}
