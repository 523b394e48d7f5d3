//! Making the directory of a server that joins a cluster.
//!
//! # Shape
//! The directory has a map with the new server, and certificates; no data. When the server is started, it
//! copies the data of another one (`rejoin.rs`), gets the log, and the leader gives it a vote; only then do
//! the others have it in their maps. So an invitation that is not used changes nothing.

use crate::beginning::{Beginning, mark_new};
use crate::files::{create_private, failed};
use crate::init::{AUTHORITY_FILE, write_identity, write_text};
use crate::layout::spread;
use crate::map::{ClusterMap, MAP_FILE, ServerEntry, is_address};
use crate::members::numbered;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use vervet::Environment;
use vervet_model::{Error, ErrorKind, Result};
use vervet_peer::{Authority, Identity};

/// The server that is invited.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InviteOptions {
    /// Its name: letters, digits, `-`.
    pub name: String,
    /// Where the other servers reach it: `host:port`.
    pub address: String,
    /// Where clients reach it.
    pub http: Option<String>,
}

/// Writes the directory `new` for a server that joins the cluster of the one in `directory`, with the key of
/// the authority in the file `authority_key`.
///
/// # Errors
/// Unsupported: not all servers of the cluster vote. Input: the
/// name is in use, a file is missing, `new` is not empty, or the key is that of another authority. Io:
/// nothing stays.
pub fn invite(
    environment: &Environment,
    directory: &Path,
    authority_key: &Path,
    options: &InviteOptions,
    new: &Path,
) -> Result<()> {
    let map = ClusterMap::read(directory)?;
    let own = map.own()?;
    let has_silent = map.servers.iter().any(|entry| !map.voters.contains(&entry.name));
    if map.voters.is_empty() || has_silent && !map.is_replicated() {
        let what = "servers join where all servers vote";
        return Err(Error::new(ErrorKind::Unsupported, what)
            .with_hint("make such a cluster: vervet cluster init --voters N"));
    }
    let unnamed = || Error::new(ErrorKind::Input, "the map does not name the data of the cluster");
    let origin = map.origin().ok_or_else(unnamed)?;
    let read = |path: &Path| fs::read_to_string(path).map_err(failed("read", path));
    let certificate = read(&directory.join(AUTHORITY_FILE))?;
    map.check_authority(certificate.as_bytes())?;
    let authority = Authority::from_pem(&map.name, &certificate, &read(authority_key)?)?;
    let issued = authority.issue(&options.name)?;
    let [authority, own_certificate, key] = [&issued.authority, &issued.certificate, &issued.key];
    let identity = Identity::from_pem(authority.as_bytes(), own_certificate.as_bytes(), key.as_bytes());
    identity.and_then(|identity| identity.check(&options.name))?;
    if let Some(other) = map.servers.iter().find(|entry| entry.address == options.address) {
        let what = format!("{} is the address of server {}", options.address, other.name);
        return Err(Error::new(ErrorKind::Input, what).with_hint("name the address of the new server"));
    }
    // The address of a proxy is only shown.
    if let Some(http) = options.http.as_ref().filter(|http| !is_address(http) && !http.contains("://")) {
        let what = format!("{http:?} is not an address for clients");
        return Err(Error::new(ErrorKind::Input, what).with_hint("name it as HOST:PORT, or as a URL"));
    }
    let mut joined = numbered(&map);
    joined.cluster = Some(format!("{:016x}", map.number(origin)));
    joined.servers.push(ServerEntry {
        name: options.name.clone(),
        address: options.address.clone(),
        http: options.http.clone(),
        number: Some(free_number(environment, &joined)?),
        partitions: if map.is_replicated() { own.partitions.clone() } else { share(&map) },
    });
    if !map.is_replicated() {
        joined.replicas = Some(map.replicas_wanted());
    }
    joined.voters.push(options.name.clone());
    (joined.server, joined.bind) = (options.name.clone(), None);
    // The other voters may have changed since this map was written; the leader counts them.
    joined.check()?;
    let is_taken = fs::read_dir(new).is_ok_and(|mut entries| entries.next().is_some());
    if is_taken || new.is_file() {
        let what = format!("{} is not empty", new.display());
        return Err(Error::new(ErrorKind::Input, what).with_hint("name a new directory"));
    }
    let write = || {
        create_private(new).map_err(failed("write", new))?;
        write_identity(new, &issued)?;
        mark_new(new, origin)?;
        Beginning::new(environment)?.write(new, origin)?;
        // Last: without it, this is the directory of no server.
        write_text(&new.join(MAP_FILE), &joined.to_text())
    };
    write().inspect_err(|_| {
        _ = fs::remove_dir_all(new);
    })
}

/// The partitions of a server that joins those of a map: it has them besides the others, until they give
/// theirs away (`rebalance.rs`).
fn share(map: &ClusterMap) -> Vec<usize> {
    let of = |entry: &ServerEntry| entry.partitions.iter().copied().collect();
    let mut now: Vec<BTreeSet<usize>> = map.servers.iter().map(of).collect();
    now.push(BTreeSet::new());
    let shares = spread(&now, &|_| true, map.replicas_wanted());
    let own = shares.into_iter().next_back().unwrap_or_default();
    if own.is_empty() { map.partitions().into_iter().take(1).collect() } else { own.into_iter().collect() }
}

/// A number that no server of the map has. At random: servers that are invited at the same time do not know
/// each other, and the leader refuses one whose number another one has.
fn free_number(environment: &Environment, map: &ClusterMap) -> Result<u16> {
    loop {
        let random = environment.random.next_u64();
        let random = random.map_err(|error: io::Error| Error::io("draw a random number", &error))?;
        let number = u16::try_from(random >> 48).unwrap_or(u16::MAX);
        if number > 0 && !map.servers.iter().any(|entry| entry.number == Some(number)) {
            return Ok(number);
        }
    }
}
