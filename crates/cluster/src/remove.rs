//! Removing a server from a cluster.
//!
//! A request is [`REMOVE`] and the name of the server. Any voter takes it, and asks the leader; the answer
//! comes once the server is no voter any more, and is empty.

use crate::holdings::Holdings;
use crate::identity::open_identity;
use crate::map::{ClusterMap, ServerEntry};
use crate::members::Members;
use crate::moving::{check_can_move, describe};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vervet::Environment;
use vervet_model::{Error, ErrorKind, Result, ThreadLimits};
use vervet_peer::{Hello, Peer};
use vervet_raft::Replica;

/// Kind of the requests: none of those of partitions, tasks, followers (96), voters (97), data (98) and
/// clients (99).
pub(crate) const REMOVE: u8 = 101;

/// Longest time of a request: an election, and the news at the server that goes.
const TIME_MAX: Duration = Duration::from_secs(20);

/// Longest time to learn which servers have joined.
const NEWS_MAX: Duration = Duration::from_secs(3);

/// Answers a request, at a voter.
///
/// # Errors
/// Conflict, Unsupported: the server alone has partitions of the newest data, or of all. As
/// [`Replica::remove`].
pub(crate) fn answer(
    replica: &Replica,
    members: &Members,
    (environment, directory): (&Environment, &Path),
    request: &[u8],
) -> Result<()> {
    let damaged = |_| Error::corrupt("a request of another server", "it names no server");
    let name = std::str::from_utf8(request.get(1..).unwrap_or_default()).map_err(damaged)?;
    // One that joins has the log, and is in no map yet.
    if members.number_of(name, &replica.members()).is_none() {
        // This voter may not know yet of one that has joined.
        let (index, end) = (replica.read_index(NEWS_MAX)?, Instant::now() + NEWS_MAX);
        replica.wait_for_more(index.saturating_sub(1), end.saturating_duration_since(Instant::now()));
    }
    let map = members.map();
    let entry = map.servers.iter().find(|entry| entry.name == name);
    let voter = entry.filter(|_| map.voters.iter().any(|voter| voter == name));
    let joining = members.number_of(name, &replica.members());
    if let Some(number) = joining.or_else(|| voter.map(|entry| map.number_of(entry))) {
        if !map.is_replicated() && voter.is_some() {
            // The log does not let a partition go that it knows of.
            check_can_move(members)?;
            check_data(&Holdings::ask(environment, directory, members)?, name)?;
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

/// Refuses to remove a server that alone has partitions of the newest data, as far as servers tell.
fn check_data(holdings: &Holdings, name: &str) -> Result<()> {
    let without = holdings.latest_whole(None, Some(name));
    if without.is_none() && holdings.have_told(name) {
        let what = format!("the others do not have the whole graph without server {name}");
        return Err(Error::new(ErrorKind::Unsupported, what)
            .with_hint("start it, if it does not run; run the command again in some seconds"));
    }
    if without >= holdings.latest_whole(None, None) {
        return Ok(());
    }
    let what = format!("server {name} has partitions of the newest data, which the others copy at present");
    Err(Error::new(ErrorKind::Conflict, what).with_hint("run the command again in some seconds"))
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
