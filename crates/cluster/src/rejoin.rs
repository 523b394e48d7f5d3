//! A server that has lost its log, its data or both takes its place again.
//!
//! # Shape
//! The server needs its map and its certificates. It copies the data of another server if it has none, and
//! gives up its log, if there is one. When it is started then, it has another number among the voters
//! ([`vervet_raft::place`]), gets the log, and the leader exchanges the voter that it was for it.
//! # Why this is right
//! A voter that has forgotten its votes and the entries that it acknowledged must not be counted as the one
//! that it was. The exchange is a change of the voters: a majority of those before has to commit it.

use crate::damage::with_remedy;
use crate::fetch::fetch;
use crate::generation::{Generation, newest_path, remove_others};
use crate::identity::open_identity;
use crate::map::{ClusterMap, ServerEntry};
use crate::peer_part::PeerPart;
use crate::voting::{Beginning, is_invited, log_directory, mark_new, new_file};
use std::path::Path;
use std::sync::Arc;
use vervet::{DatabaseOptions, Environment};
use vervet_model::{Error, ErrorKind, Result};
use vervet_partition::PartitionDirectory;
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

fn has_directory(environment: &Environment, path: &Path) -> Result<bool> {
    environment
        .files
        .exists(path)
        .map_err(|error| Error::io(format_args!("look for {}", path.display()), &error))
}

/// Copies the data of another server, if this one has been invited and has none yet.
pub(crate) fn take_invitation(directory: &Path, options: &DatabaseOptions) -> Result<()> {
    let map = ClusterMap::read(directory)?;
    let Some(origin) = map.origin().filter(|origin| is_invited(directory, *origin)) else { return Ok(()) };
    let data = newest_path(&options.environment, directory)?;
    if has_directory(&options.environment, &log_directory(directory, origin))?
        || PartitionDirectory::is_published(&options.environment, &data)
    {
        return Ok(());
    }
    let report = |server: &str, bytes: u64| {
        tracing::info!(target: "vervet", "this server is new; it copies {bytes} bytes of data from server {server}");
    };
    take_place(directory, options, &report).map(drop)
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
    let unnamed = || Error::new(ErrorKind::Input, "the map does not name the data of the cluster");
    let origin = map.origin().ok_or_else(unnamed)?;
    let environment = &options.environment;
    let log = log_directory(directory, origin);
    let failed = |what: &str, path: &Path, error: &std::io::Error| {
        Error::io(format_args!("{what} {}", path.display()), error)
    };
    let had_log = has_directory(environment, &log)?;
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
    let hello = || Hello { cluster: map.number(origin), server: own.name.clone() };
    let others = map.servers.iter().filter(|entry| entry.name != own.name);
    let source = |entry: &ServerEntry| {
        Arc::new(PeerPart::new(Peer::new(&entry.name, &entry.address, Arc::clone(&identity), hello())))
    };
    let sources: Vec<_> = others.map(source).collect();
    if had_log {
        check_majority(&map, &sources)?;
    }
    if has_copied {
        let fetched = fetch(environment, (directory, origin), &sources, 0, report)?.path;
        remove_others(environment, directory, &fetched)?;
    }
    if map.voters.contains(&own.name) {
        if had_log {
            environment.files.remove_dir_all(&log).map_err(|error| failed("remove", &log, &error))?;
        }
        Beginning::new(environment)?.write(directory, origin)?;
        mark_new(directory, origin)?;
        let new = new_file(directory, origin);
        environment.files.sync_file(&new).map_err(|error| failed("sync", &new, &error))?;
        environment.files.sync_dir(directory).map_err(|error| failed("sync", directory, &error))?;
    }
    Ok(Rejoined { server: own.name, has_copied, had_log })
}

/// Whether a majority of the voters answers without this server. Otherwise its log may be needed: a commit is
/// at a majority of the voters, and those that answer may be the minority without it.
fn check_majority(map: &ClusterMap, others: &[Arc<PeerPart>]) -> Result<()> {
    let votes = |peer: &&Arc<PeerPart>| map.voters.iter().any(|voter| voter == peer.peer().name());
    let (up, down): (Vec<_>, Vec<_>) =
        others.iter().filter(votes).partition(|peer| peer.peer().ping().is_ok());
    if up.len() * 2 > map.voters.len() {
        return Ok(());
    }
    let names: Vec<&str> = down.iter().map(|peer| peer.peer().name()).collect();
    let what = format!(
        "no majority of the voters answers: {}; the log of this server may be needed",
        names.join(", ")
    );
    Err(Error::new(ErrorKind::Unavailable, what).with_hint("start those first; nothing was changed"))
}
