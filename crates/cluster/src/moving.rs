//! Partitions that go to other servers.
//!
//! # Shape
//! An operator asks servers to copy the partitions that they are to get (`rebalance.rs`), and then a voter to
//! have the log say where partitions are from now on. So nothing changes before all are copied, and all
//! servers agree on it. A request is [`LAYOUT`] and a byte:
//!
//! | byte | request | answer |
//! | ---: | --- | --- |
//! | 0 | which servers have what | the text of the map of the server that is asked |
//! | 1 | partitions that the server is to copy, as text | [`HAS`] or [`COPIES`] |
//! | 2 | lines: how many servers are to have each partition; of each server its name and partitions | empty |

use crate::members::{self, Members};
use crate::merging_together::Together;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use vervet_model::{Error, ErrorKind, Result};
use vervet_peer::Protocol;
use vervet_raft::{AboutChange, Replica, place};

/// Kind of the requests: none of those of partitions, tasks, followers (96), voters (97), data (98), clients
/// (99), backups (100), removals (101) and membership (102).
pub(crate) const LAYOUT: u8 = 103;

/// The second byte of the requests.
pub(crate) const ASK: u8 = 0;
/// See [`ASK`].
pub(crate) const GAIN: u8 = 1;
/// See [`ASK`].
pub(crate) const SET: u8 = 2;

/// The server has the partitions, and answers for them.
pub(crate) const HAS: u8 = 1;
/// The server copies them.
pub(crate) const COPIES: u8 = 0;

/// Longest time until a change of the log is committed.
const SET_MAX: Duration = Duration::from_secs(20);

fn damaged() -> Error {
    Error::corrupt("a request of another server", "it does not say which partitions are where")
}

/// Answers a request. `together`: the data of this server, where servers have different partitions.
pub(crate) fn answer(
    replica: &Replica,
    members: &Members,
    together: Option<&Together>,
    request: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let (kind, text) = request.get(1..).and_then(<[u8]>::split_first).ok_or_else(damaged)?;
    let text = std::str::from_utf8(text).map_err(|_| damaged())?;
    let map = members.map();
    match *kind {
        ASK => out.extend_from_slice(map.to_text().as_bytes()),
        GAIN => {
            let together = together.ok_or_else(whole_graph)?;
            let partitions = read_partitions(text, &map.partitions())?;
            out.push(if together.gain(&partitions)? { HAS } else { COPIES });
        }
        SET => {
            together.ok_or_else(whole_graph)?;
            set(replica, members, text)?;
        }
        _ => return Err(damaged()),
    }
    Ok(())
}

/// Why no partition moves.
pub(crate) fn whole_graph() -> Error {
    let what = "each server of this cluster has the whole graph, so no partition moves";
    Error::new(ErrorKind::Unsupported, what)
        .with_hint("to spread it, restore a backup into a new cluster: vervet cluster restore --replicas N")
}

/// `known`: all partitions of the graph.
fn read_partitions(text: &str, known: &BTreeSet<usize>) -> Result<BTreeSet<usize>> {
    let partitions = members::read_partitions(text).ok_or_else(damaged)?;
    match partitions.iter().find(|partition| !known.contains(partition)) {
        Some(unknown) => Err(Error::new(ErrorKind::Input, format!("the graph has no partition {unknown}"))),
        None => Ok(partitions.into_iter().collect()),
    }
}

/// Whether partitions of the servers of a map can move.
///
/// # Errors
/// Unsupported: a server does not vote. Unavailable: one has an earlier version.
pub(crate) fn check_can_move(members: &Members) -> Result<()> {
    let map = members.map();
    if map.is_replicated() {
        return Err(whole_graph());
    }
    if let Some(entry) = map.servers.iter().find(|entry| !map.voters.contains(&entry.name)) {
        let what = format!("server {} does not vote, so it does not learn where partitions go", entry.name);
        return Err(Error::new(ErrorKind::Unsupported, what)
            .with_hint("partitions move where all servers vote: vervet cluster init --voters N"));
    }
    let parts = members.parts();
    let earlier = parts.iter().find(|part| part.peer().protocol().is_some_and(|one| one < Protocol::LAYOUTS));
    match earlier {
        Some(part) => {
            let what =
                format!("server {} has an earlier version, whose partitions do not move", part.peer().name());
            Err(Error::new(ErrorKind::Unavailable, what).with_hint("upgrade all servers first"))
        }
        None => Ok(()),
    }
}

/// Has the log say what `text` says of the servers.
fn set(replica: &Replica, members: &Members, text: &str) -> Result<()> {
    check_can_move(members)?;
    let known = members.map().partitions();
    let mut lines = text.lines();
    let replicas = lines.next().and_then(|line| line.parse().ok()).filter(|replicas| *replicas > 0);
    let replicas = replicas.ok_or_else(damaged)?;
    let mut shares = BTreeMap::new();
    for line in lines {
        let (name, partitions) = line.split_once(' ').ok_or_else(damaged)?;
        let partitions = read_partitions(partitions, &known)?;
        if partitions.is_empty() {
            let what = format!("server {name} would have no partition");
            return Err(Error::new(ErrorKind::Unsupported, what)
                .with_hint("leave it one, or remove the server: vervet cluster remove"));
        }
        shares.insert(name.to_owned(), partitions.into_iter().collect());
    }
    describe(replica, members, Some(replicas), &shares)
}

/// Has the log say of each voter which partitions it has: those in `shares`, or those that it has.
/// `replicas`: how many servers are to have each; `None`: as before.
///
/// # Errors
/// Unsupported: a partition would be at none of them. As [`Replica::describe`].
pub(crate) fn describe(
    replica: &Replica,
    members: &Members,
    replicas: Option<usize>,
    shares: &BTreeMap<String, Vec<usize>>,
) -> Result<()> {
    let mut map = (*members.map()).clone();
    map.replicas = Some(replicas.unwrap_or_else(|| map.replicas_wanted()));
    let (mut before, mut after) = (BTreeSet::new(), BTreeSet::new());
    let (mut changes, mut names) = (Vec::new(), BTreeSet::new());
    for member in replica.members().into_iter().filter(|member| member.votes) {
        // The log may be newer than the map.
        let entry = members::entry_of(&member, &[]).or_else(|| members.entry_at(place(member.server)));
        let Some(mut entry) = entry else { continue };
        before.extend(entry.partitions.iter().copied());
        if let Some(share) = shares.get(&entry.name) {
            entry.partitions.clone_from(share);
        }
        after.extend(entry.partitions.iter().copied());
        let about = members::about(&map, &entry).into();
        if member.about != about {
            changes.push(AboutChange { server: member.server, before: member.about, after: about });
        }
        names.insert(entry.name);
    }
    if let Some(name) = shares.keys().find(|name| !names.contains(*name)) {
        return Err(Error::new(ErrorKind::Conflict, format!("server {name} has left the cluster"))
            .with_hint("run the command again"));
    }
    if let Some(partition) = before.difference(&after).next() {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("no server would have partition {partition}"),
        ));
    }
    if changes.is_empty() { Ok(()) } else { replica.describe(&changes, SET_MAX) }
}
