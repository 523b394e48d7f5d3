//! Removing a server from a cluster.
//!
//! A request is [`REMOVE`] and the name of the server. Any voter takes it, and asks the leader; the answer
//! comes once the server is no voter any more, and is empty.

use crate::identity::open_identity;
use crate::map::{ClusterMap, ServerEntry};
use crate::members::Members;
use crate::moving::{check_can_move, describe};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vervet_model::{Error, ErrorKind, Result, ThreadLimits};
use vervet_peer::{Hello, Peer};
use vervet_raft::Replica;

/// Kind of the requests: none of those of partitions, tasks, followers (96), voters (97), data (98) and
/// clients (99).
pub(crate) const REMOVE: u8 = 101;

/// Longest time of a request: an election, and the news at the server that goes.
const TIME_MAX: Duration = Duration::from_secs(20);

/// Answers a request, at a voter.
pub(crate) fn answer(replica: &Replica, members: &Members, request: &[u8]) -> Result<()> {
    let damaged = |_| Error::corrupt("a request of another server", "it names no server");
    let name = std::str::from_utf8(request.get(1..).unwrap_or_default()).map_err(damaged)?;
    let map = members.map();
    let entry = map.servers.iter().find(|entry| entry.name == name);
    let voter = entry.filter(|_| map.voters.iter().any(|voter| voter == name));
    // One that joins has the log, and is in no map yet.
    let joining = members.number_of(name, &replica.members());
    if let Some(number) = joining.or_else(|| voter.map(|entry| map.number_of(entry))) {
        if !map.is_replicated() && voter.is_some() {
            // The log does not let a partition go that it knows of.
            check_can_move(members)?;
            describe(replica, members, None, &BTreeMap::new())?;
        }
        return replica.remove(number, TIME_MAX);
    }
    let unknown = || {
        let names: Vec<&str> = map.servers.iter().map(|entry| entry.name.as_str()).collect();
        Error::new(ErrorKind::Input, format!("the cluster has no server {name}"))
            .with_hint(format!("its servers are {}", names.join(", ")))
    };
    entry.ok_or_else(unknown)?;
    let what = format!("server {name} does not vote, and no other server depends on it");
    Err(Error::new(ErrorKind::Unsupported, what)
        .with_hint("end it, and take its entry out of cluster.toml of the others"))
}

/// Removes the server `name` from the cluster of the one in `directory`: it votes no more, the others forget
/// it, and its vote counts for nothing. The request goes to one of the servers, with the certificate in
/// `directory`. Returns once the change is committed.
///
/// # Errors
/// Input: there is no such server, or a file is missing. Unsupported: too few voters would be left, or
/// answer. Unavailable: no server answers, or no majority; the server may be removed later.
pub fn remove(directory: &Path, name: &str) -> Result<()> {
    let map = ClusterMap::read(directory)?;
    let identity = Arc::new(open_identity(directory, &map)?);
    let unnamed = || Error::new(ErrorKind::Input, "the map does not name the data of the cluster");
    let hello = Hello::new(map.number(map.origin().ok_or_else(unnamed)?), &map.server);
    let is_asked = |entry: &&ServerEntry| map.voters.contains(&entry.name) && entry.name != name;
    let mut failure = Error::new(ErrorKind::Unavailable, "the map names no other voter");
    let end = Instant::now() + TIME_MAX + TIME_MAX / 2;
    for entry in map.servers.iter().filter(is_asked) {
        let limits =
            ThreadLimits { deadline: Some((end, TIME_MAX + TIME_MAX / 2)), ..ThreadLimits::default() };
        let _limits = limits.enter();
        let peer = Peer::new(&entry.name, &entry.address, Arc::clone(&identity), hello.clone());
        let request = [&[REMOVE][..], name.as_bytes()].concat();
        match peer.send(&request).and_then(vervet_peer::Pending::receive) {
            Ok(_) => return Ok(()),
            Err(error) if !matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Deadline) => {
                return Err(error);
            }
            Err(error) => failure = error,
        }
    }
    if failure.kind() == ErrorKind::Deadline {
        let what = "no majority of the voters has made the change in time; it may be made later";
        return Err(Error::new(ErrorKind::Unavailable, what)
            .with_hint("start a majority of the voters, and run the same command again"));
    }
    Err(failure)
}
