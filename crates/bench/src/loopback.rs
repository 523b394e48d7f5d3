//! Servers of a graph in this process, connected over the loopback address.

use std::cell::Cell;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use vervet::{Database, DatabaseOptions};
use vervet_cluster::{Cluster, InitOptions, init};
use vervet_model::{Error, ErrorKind, Result, Watch};

/// Longest wait for a leader, or for a server that catches up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Time after which a leader is taken to stay: longer than an election.
pub(crate) const STABLE: Duration = Duration::from_secs(2);

/// Time between two looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// Starts the servers of `options`, at free ports; their directories are removed with the folder.
///
/// # Errors
/// A directory cannot be made; a server cannot be opened.
pub(crate) fn start(
    database: &Database,
    mut options: InitOptions,
) -> Result<(Vec<Cluster>, tempfile::TempDir)> {
    let folder = tempfile::tempdir().map_err(|error| Error::io("make a folder", &error))?;
    // Held until all are chosen, so that no two are equal.
    let mut ports = Vec::new();
    for server in &mut options.servers {
        let failed = |error: std::io::Error| Error::io("find a port", &error);
        let port = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        server.address = port.local_addr().map_err(failed)?.to_string();
        ports.push(port);
    }
    drop(ports);
    let directories = init(database, &options, &folder.path().join("servers"), &Watch::new("servers"))?;
    let open = |directory: &PathBuf| Cluster::open(directory, &DatabaseOptions::default());
    Ok((directories.iter().map(open).collect::<Result<_>>()?, folder))
}

/// Looks until there is something.
pub(crate) fn wait_for<T>(look: impl Fn() -> Result<Option<T>>, otherwise: &str) -> Result<T> {
    let begun = Instant::now();
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if begun.elapsed() > PATIENCE {
            return Err(Error::new(ErrorKind::Unavailable, otherwise));
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
}

/// Position of the server that leads, once it has done so for [`STABLE`]: voters that start at the same time
/// may elect several in turn.
pub(crate) fn leader(servers: &[Cluster]) -> Result<usize> {
    let since = Cell::new((None, Instant::now()));
    let look = || {
        let leader = servers.iter().position(Cluster::takes_changes);
        if leader != since.get().0 {
            since.set((leader, Instant::now()));
        }
        Ok(leader.filter(|_| since.get().1.elapsed() > STABLE))
    };
    wait_for(look, "there is no leader")
}

/// The server that leads, for clients that change the graph.
pub(crate) struct Leading<'a> {
    servers: &'a [Cluster],
    at: AtomicUsize,
    changes: AtomicUsize,
}

impl<'a> Leading<'a> {
    /// Waits for a leader.
    pub(crate) fn of(servers: &'a [Cluster]) -> Result<Self> {
        Ok(Self { servers, at: AtomicUsize::new(leader(servers)?), changes: AtomicUsize::new(0) })
    }

    /// Runs a transaction at the leader, and again at the next one if there is another one meanwhile. The
    /// outcome of an attempt may be unknown, so the transaction must be one that may take effect twice.
    pub(crate) fn run(&self, transaction: impl Fn(&Database) -> Result<()>) -> Result<()> {
        let attempt = || {
            let at = self.at.load(Ordering::Relaxed);
            match transaction(self.servers[at].database()) {
                Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Unsupported) => {
                    let elsewhere = self.servers.iter().position(Cluster::takes_changes);
                    if elsewhere
                        .is_some_and(|elsewhere| self.at.swap(elsewhere, Ordering::Relaxed) != elsewhere)
                    {
                        self.changes.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(None)
                }
                done => done.map(Some),
            }
        };
        wait_for(attempt, "there is no leader")
    }

    /// How often the leader has changed.
    pub(crate) fn changes(&self) -> usize {
        self.changes.load(Ordering::Relaxed)
    }
}
