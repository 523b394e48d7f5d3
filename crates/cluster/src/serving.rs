//! What a server answers others with: its partitions, by the build of their data.
//!
//! # Shape
//! Where changes are merged into partitions, servers go over to new data one after the other. Each has two
//! builds meanwhile: it answers for either, and its own queries read the one of their version.

use crate::generation::Generation;
use crate::layout::remote_parts;
use crate::map::{ClusterMap, ServerEntry};
use crate::members::Members;
use std::sync::{Arc, PoisonError, RwLock};
use vervet_driver_cluster::{ClusterDriver, Servers};
use vervet_model::{Error, ErrorKind, Partitioning, Result};
use vervet_partition::{PartitionedBase, Remote};

/// The graph of the data of a server.
pub(crate) struct Opened {
    /// Its own partitions, for other servers.
    pub(crate) answering: Arc<PartitionedBase>,
    /// All partitions, those of others by requests.
    pub(crate) reading: Arc<PartitionedBase>,
    /// Where queries at all servers run.
    pub(crate) servers: Arc<Servers>,
}

impl Opened {
    /// The same servers, without data.
    pub(crate) fn without_data(self, partitioning: Partitioning) -> Result<Self> {
        let empty = Arc::new(PartitionedBase::empty(partitioning)?);
        let all = vec![(0..partitioning.count()).collect()];
        let servers = Arc::new(Servers::new(vec![None], &all, Arc::clone(&empty), false)?);
        Ok(Self { answering: Arc::clone(&empty), reading: empty, servers })
    }
}

/// Opens data of a server.
///
/// # Errors
/// Input: a partition is nowhere. Corrupt: a file is missing or damaged.
pub(crate) fn open(generation: &Generation, map: &ClusterMap, members: &Members) -> Result<Opened> {
    let (own, files) = (map.own()?, &generation.files);
    let remote_of = |entry: &ServerEntry| {
        let other = members.other(&entry.name)?;
        Some(Arc::clone(&other.part) as Arc<dyn Remote>)
    };
    // Requests of protocol 7 do not say their build, so they are for the first data alone.
    let may_change = generation.checkpoint.position > 0;
    let remotes = remote_parts(map, files.build(), may_change, &remote_of);
    let [answering, reading] = files.bases(&own.partitions, &remotes)?;
    // By name, so that all servers number them alike, whatever the order of their maps.
    let reads = |entry: &&ServerEntry| entry.name == own.name || !map.is_replicated();
    let mut numbered: Vec<&ServerEntry> = map.servers.iter().filter(reads).collect();
    numbered.sort_by(|one, other| one.name.cmp(&other.name));
    let partitions: Vec<_> = numbered.iter().map(|entry| entry.partitions.clone()).collect();
    let by_number = numbered.into_iter().map(remote_of).collect();
    let servers = Servers::new(by_number, &partitions, Arc::clone(&reading), may_change)?;
    Ok(Opened { answering, reading, servers: Arc::new(servers) })
}

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct Serving {
    driver: Arc<ClusterDriver>,
    /// The build of the first data, for which requests are that do not say one.
    origin: u64,
    /// The newest first.
    held: RwLock<Vec<Arc<PartitionedBase>>>,
}

impl Serving {
    pub(crate) fn new(driver: Arc<ClusterDriver>, origin: u64, answering: Arc<PartitionedBase>) -> Self {
        Self { driver, origin, held: RwLock::new(vec![answering]) }
    }

    /// Answers a read of another server.
    ///
    /// # Errors
    /// Unavailable: this server does not have the data that the request is for.
    pub(crate) fn answer(&self, request: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let build = PartitionedBase::build_of(request).unwrap_or(self.origin);
        let base = {
            let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
            held.iter().find(|base| base.build() == build).map(Arc::clone)
        };
        let another = || {
            Error::new(ErrorKind::Unavailable, "the server that was asked has data of another build")
                .with_hint("try again in some seconds")
        };
        base.ok_or_else(another)?.answer(request, out)
    }

    /// Answers for these data, too, from now on.
    pub(crate) fn add(&self, opened: &Opened) {
        self.held.write().unwrap_or_else(PoisonError::into_inner).insert(0, Arc::clone(&opened.answering));
        self.driver.add_servers(Arc::clone(&opened.servers));
    }

    /// Answers for the data of this build alone from now on.
    pub(crate) fn keep_only(&self, build: u64) {
        let removed: Vec<u64> = {
            let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
            let others = held.iter().map(|base| base.build()).filter(|other| *other != build).collect();
            held.retain(|base| base.build() == build);
            others
        };
        removed.into_iter().for_each(|build| self.driver.remove_servers(build));
    }
}
