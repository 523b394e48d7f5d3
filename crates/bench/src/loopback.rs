//! Servers of a graph in this process, connected over the loopback address.

use std::net::TcpListener;
use std::path::PathBuf;
use vervet::{Database, DatabaseOptions};
use vervet_cluster::{Cluster, InitOptions, init};
use vervet_model::{Error, Result, Watch};

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
