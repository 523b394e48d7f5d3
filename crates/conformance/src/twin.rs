//! Servers of a graph in this process, without connections: a request is a call.
//!
//! The twin of a cluster: the same partitions, driver and bytes, but no sockets, frames, threads of
//! connections or TLS, so that a difference to a cluster is a fault of connections, and one to a database a
//! fault of the driver or of partitions.

use crate::cluster::directories;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use vervet::{Database, DatabaseOptions, Start};
use vervet_cluster::ClusterMap;
use vervet_driver_cluster::{ClusterDriver, Servers};
use vervet_driver_local::LocalDriver;
use vervet_model::{Error, ErrorKind, Result};
use vervet_partition::{Answer, PartitionDirectory, PartitionedBase, Remote, RemotePart};

/// What a server answers others with.
struct Answering {
    own: Arc<PartitionedBase>,
    driver: Arc<ClusterDriver>,
}

/// The way to another server.
struct Link {
    name: String,
    /// Set when all servers are there.
    to: OnceLock<Weak<Answering>>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Link").field(&self.name).finish()
    }
}

struct Ready(Result<Vec<u8>>);

impl Answer for Ready {
    fn receive(self: Box<Self>) -> Result<Vec<u8>> {
        self.0
    }
}

impl Remote for Link {
    fn name(&self) -> &str {
        &self.name
    }

    fn send<'a>(&'a self, request: &[u8]) -> Result<Box<dyn Answer + 'a>> {
        let to = self.to.get().and_then(Weak::upgrade);
        let to = to.ok_or_else(|| Error::new(ErrorKind::Unavailable, "the server has ended"))?;
        let mut out = Vec::new();
        let answered = match ClusterDriver::is_request(request) {
            true => to.driver.answer(request, &mut out),
            false => to.own.answer(request, &mut out),
        };
        Ok(Box::new(Ready(answered.map(|()| out))))
    }
}

/// Servers in this process; the first one is asked.
pub(crate) struct Twin {
    asked: Database,
    driver: Arc<ClusterDriver>,
    _servers: Vec<Arc<Answering>>,
}

impl Twin {
    /// The graph of `database` over `count` servers.
    pub(crate) fn new(
        database: &Database,
        count: usize,
        partitions: usize,
    ) -> std::result::Result<Self, String> {
        // The directories are read whole, so they may go.
        let (_folder, made) = directories(database, count, partitions)?;
        Self::open(&made).map_err(|error| format!("{count} servers in one process: {error}"))
    }

    fn open(directories: &[std::path::PathBuf]) -> Result<Self> {
        let options = DatabaseOptions::default();
        let mut servers = Vec::new();
        let mut links: Vec<Vec<(usize, Arc<Link>)>> = Vec::new();
        let mut bases = Vec::new();
        for directory in directories {
            let map = ClusterMap::read(directory)?;
            let files = PartitionDirectory::open(&options.environment, &directory.join("data"))?;
            let own = map.own()?.name.clone();
            let (mut of_server, mut remotes): (Vec<_>, Vec<RemotePart>) = (Vec::new(), Vec::new());
            for (number, entry) in map.servers.iter().enumerate().filter(|(_, entry)| entry.name != own) {
                let link = Arc::new(Link { name: entry.name.clone(), to: OnceLock::new() });
                remotes.push((Arc::clone(&link) as Arc<dyn Remote>, entry.partitions.clone()));
                of_server.push((number, link));
            }
            let [answering, reading] = files.bases(&map.own()?.partitions, &remotes)?;
            let by_number = (0..map.servers.len()).map(|number| {
                let found = of_server.iter().find(|(of, _)| *of == number);
                found.map(|(_, link)| Arc::clone(link) as Arc<dyn Remote>)
            });
            let partitions: Vec<_> = map.servers.iter().map(|entry| entry.partitions.clone()).collect();
            let of_driver = Servers::new(by_number.collect(), &partitions, Arc::clone(&reading), false)?;
            let driver = Arc::new(ClusterDriver::new(LocalDriver::default(), Arc::new(of_driver), 1));
            servers.push(Arc::new(Answering { own: answering, driver }));
            links.push(of_server);
            bases.push(reading);
        }
        for (number, link) in links.iter().flatten() {
            if let Some(server) = servers.get(*number) {
                // It is set once.
                let _ = link.to.set(Arc::downgrade(server));
            }
        }
        let (Some(base), Some(first)) = (bases.into_iter().next(), servers.first()) else {
            return Err(Error::internal("no server"));
        };
        let driver = Arc::clone(&first.driver);
        let refusal = Error::new(ErrorKind::Unsupported, "this graph is only read");
        let asked =
            Database::read_only(&Start::new(base, Vec::new()), refusal, Arc::clone(&driver) as _, &options)?;
        Ok(Self { asked, driver, _servers: servers })
    }

    pub(crate) fn database(&self) -> &Database {
        &self.asked
    }

    /// Queries that ran at all servers, and rows that moved between them.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let counts = self.driver.counts();
        (counts.queries, counts.rows_moved)
    }
}
