//! What a server answers others with: its partitions, by the build of their data.
//!
//! # Shape
//! Where changes are merged into partitions, servers go over to new data one after the other. Each has two
//! builds meanwhile: it answers for either, and its own queries read the one of their version. Where
//! partitions move, it is likewise: a server that gives partitions away answers for them as long as others
//! may ask it.

use crate::generation::Generation;
use crate::layout::remote_parts;
use crate::map::{ClusterMap, ServerEntry};
use crate::members::Members;
use std::collections::BTreeSet;
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

/// Opens data of a server. `here`: the partitions whose files it has.
///
/// # Errors
/// Input: a partition is nowhere. Corrupt: a file is missing or damaged.
pub(crate) fn open(
    generation: &Generation,
    here: &BTreeSet<usize>,
    map: &ClusterMap,
    members: &Members,
) -> Result<Opened> {
    let (own, files) = (map.own()?, &generation.files);
    let remote_of = |entry: &ServerEntry| {
        let other = members.other(&entry.name)?;
        Some(Arc::clone(&other.part) as Arc<dyn Remote>)
    };
    // Requests of protocol 7 do not say their build, so they are for the first data alone.
    let may_change = generation.checkpoint.position > 0 || map.replicas.is_some();
    let remotes = remote_parts(map, here, files.build(), may_change, &remote_of);
    let here: Vec<usize> = here.iter().copied().collect();
    let [answering, reading] = files.bases(&here, &remotes)?;
    // By name, since servers of protocol 8 number them so.
    let reads = |entry: &&ServerEntry| entry.name == own.name || !map.is_replicated();
    let mut numbered: Vec<&ServerEntry> = map.servers.iter().filter(reads).collect();
    numbered.sort_by(|one, other| one.name.cmp(&other.name));
    let partitions: Vec<_> = numbered.iter().map(|entry| entry.partitions.clone()).collect();
    let places = numbered.iter().map(|entry| map.number_of(entry)).collect();
    let by_number = numbered.into_iter().map(remote_of).collect();
    let servers = Servers::new(by_number, &partitions, Arc::clone(&reading), may_change)?;
    let servers = if map.replicas.is_some() { servers.with_places(places) } else { servers };
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
        let bases: Vec<Arc<PartitionedBase>> = {
            let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
            held.iter().filter(|base| base.build() == build).map(Arc::clone).collect()
        };
        let mut answered =
            Err(Error::new(ErrorKind::Unavailable, "the server that was asked has data of another build")
                .with_hint("try again in some seconds"));
        for base in bases {
            let before = out.len();
            answered = base.answer(request, out);
            // One of before may have partitions that this server has given away since.
            match &answered {
                Err(error) if error.kind() == ErrorKind::Unavailable => out.truncate(before),
                _ => break,
            }
        }
        answered
    }

    /// Answers for these data, too, from now on.
    pub(crate) fn add(&self, opened: &Opened) {
        self.held.write().unwrap_or_else(PoisonError::into_inner).insert(0, Arc::clone(&opened.answering));
        self.driver.add_servers(Arc::clone(&opened.servers));
    }

    /// Answers for the newest data alone from now on.
    pub(crate) fn keep_newest(&self) {
        self.held.write().unwrap_or_else(PoisonError::into_inner).truncate(1);
        self.driver.keep_newest_servers();
    }
}
