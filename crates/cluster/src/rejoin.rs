//! A server that has lost its log, its data or both takes its place again.
//!
//! # Shape
//! The server needs its map and its certificates. It copies the data of another server if it has none, and
//! gives up its log, if there is one. When it is started then, it has another number among the voters
//! ([`vervet_raft::place`]), gets the log, and the leader exchanges the voter that it was for it.
//! # Why this is right
//! A voter that has forgotten its votes and the entries that it acknowledged must not be counted as the one
//! that it was. The exchange is a change of the voters: a majority of those before has to commit it.

use crate::cluster::open_identity;
use crate::damage::with_remedy;
use crate::fetch::fetch;
use crate::generation::{Generation, remove_others};
use crate::map::ClusterMap;
use crate::peer_part::PeerPart;
use crate::voting::{beginning_file, log_directory, mark_new, new_file};
use std::path::Path;
use std::sync::Arc;
use vervet::DatabaseOptions;
use vervet_model::{Error, ErrorKind, Result};
use vervet_peer::{Hello, Peer};

/// What [`rejoin`] has done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejoined {
    /// Name of the server.
    pub server: String,
    /// The data are those of another server.
    pub has_copied: bool,
    /// The server had a log, which is gone.
    pub had_log: bool,
}

/// Makes the server in `directory`, which does not run, ready to take its place again. `report`: gets the
/// name of the server whose data are copied, and their bytes.
///
/// # Errors
/// Unsupported: the servers of the cluster do not have the whole graph each. Input: the map or a certificate
/// is missing or wrong. Unavailable: no other server answers, or the server runs. Io.
pub fn rejoin(directory: &Path, options: &DatabaseOptions, report: &dyn Fn(&str, u64)) -> Result<Rejoined> {
    take_place(directory, options, report).map_err(|error| with_remedy(error, directory))
}

fn take_place(directory: &Path, options: &DatabaseOptions, report: &dyn Fn(&str, u64)) -> Result<Rejoined> {
    let map = ClusterMap::read(directory)?;
    let own = map.own()?.clone();
    if !map.is_replicated() || map.voters.is_empty() {
        let what =
            "a server takes its place again where every server has the whole graph, and voters its changes";
        return Err(Error::new(ErrorKind::Unsupported, what)
            .with_hint("copy the directory of this server back from a copy, or make the cluster again"));
    }
    let identity = Arc::new(open_identity(directory, &map)?);
    let named = map.data.as_deref().and_then(|name| u64::from_str_radix(name, 16).ok());
    let unnamed = || Error::new(ErrorKind::Input, "the map does not name the data of the cluster");
    let origin = named.ok_or_else(unnamed)?;
    let environment = &options.environment;
    let log = log_directory(directory, origin);
    let failed = |what: &str, path: &Path, error: &std::io::Error| {
        Error::io(format_args!("{what} {}", path.display()), error)
    };
    let had_log = log.exists();
    if had_log {
        let lock = environment.files.lock(&log.join(vervet_raft::LOCK_FILE));
        let guard = lock.map_err(|error| match error.kind() {
            std::io::ErrorKind::WouldBlock => {
                Error::new(ErrorKind::Unavailable, "this server runs").with_hint("end it first")
            }
            _ => failed("lock", &log, &error),
        })?;
        drop(guard);
    }
    // A log is given up only for data that are whole.
    let opened = Generation::open(environment, directory).and_then(|generation| {
        map.check_data(generation.origin)?;
        generation.verify()
    });
    let has_copied = opened.is_err();
    if has_copied {
        let hello = || Hello { cluster: map.number(origin), server: own.name.clone() };
        let others = map.servers.iter().filter(|entry| entry.name != own.name);
        let source = |entry: &crate::map::ServerEntry| {
            Arc::new(PeerPart::new(Peer::new(&entry.name, &entry.address, Arc::clone(&identity), hello())))
        };
        let sources: Vec<_> = others.map(source).collect();
        let fetched = fetch(environment, (directory, origin), &sources, 0, report)?.path;
        remove_others(environment, directory, &fetched)?;
    }
    if map.voters.contains(&own.name) {
        let random = environment.random.next_u64();
        let random = random.map_err(|error| Error::io("draw a random number", &error))?;
        let beginning = u32::try_from(random >> 33).unwrap_or(1).max(1);
        if had_log {
            std::fs::remove_dir_all(&log).map_err(|error| failed("remove", &log, &error))?;
        }
        let path = beginning_file(directory, origin);
        std::fs::write(&path, format!("{beginning}\n")).map_err(|error| failed("write", &path, &error))?;
        mark_new(directory, origin)?;
        for path in [path, new_file(directory, origin)] {
            environment.files.sync_file(&path).map_err(|error| failed("sync", &path, &error))?;
        }
        environment.files.sync_dir(directory).map_err(|error| failed("sync", directory, &error))?;
    }
    Ok(Rejoined { server: own.name, has_copied, had_log })
}
