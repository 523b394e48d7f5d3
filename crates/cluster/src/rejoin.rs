//! A server that has lost its log, its data or both takes its place again.
//!
//! # Shape
//! The server needs its map and its certificates. It copies the data of another server if it has none, and
//! gives up its log, if there is one. When it is started then, it has another number among the voters
//! ([`vervet_raft::place`]), gets the log, and the leader exchanges the voter that it was for it. A server
//! that was removed has no place: the others say so, to a request of [`MEMBERSHIP`] and the place (8 bytes),
//! with 0 in place of 1.
//! # Why this is right
//! A voter that has forgotten its votes and the entries that it acknowledged must not be counted as the one
//! that it was. The exchange is a change of the voters: a majority of those before has to commit it.

use crate::beginning::{Beginning, is_invited, log_directory, mark_new, new_file};
use crate::damage::with_remedy;
use crate::fetch::{Wanted, fetch};
use crate::generation::{Generation, newest_path, remove_others};
use crate::identity::open_identity;
use crate::map::{ClusterMap, ServerEntry};
use crate::peer_part::PeerPart;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vervet::{DatabaseOptions, Environment};
use vervet_model::{Error, ErrorKind, Result, ThreadLimits};
use vervet_partition::PartitionDirectory;
use vervet_peer::{Hello, Peer, Pending};
use vervet_raft::{Replica, place};

/// Kind of the requests whether the log has a server: none of those of partitions, tasks, followers (96),
/// voters (97), data (98), clients (99), backups (100) and removals (101).
pub(crate) const MEMBERSHIP: u8 = 102;

/// Longest time of such a request.
const MEMBERSHIP_MAX: Duration = Duration::from_secs(3);

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
/// Unsupported: other servers do not have its partitions, there are no voters, or this server was removed.
/// Input: the map or a certificate is missing or wrong. Unavailable: no other server answers, or the server
/// runs. Io.
pub fn rejoin(directory: &Path, options: &DatabaseOptions, report: &dyn Fn(&str, u64)) -> Result<Rejoined> {
    take_place(directory, options, report).map_err(|error| with_remedy(error, directory))
}

fn take_place(directory: &Path, options: &DatabaseOptions, report: &dyn Fn(&str, u64)) -> Result<Rejoined> {
    let map = ClusterMap::read(directory)?;
    let own = map.own()?.clone();
    let are_elsewhere = map.partitions_without(|entry| entry.name == own.name).is_empty();
    if !are_elsewhere || map.voters.is_empty() {
        let what = "a server takes its place again where others have its partitions, and voters take changes";
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
        generation.verify(&own.partitions)
    });
    let has_copied = opened.is_err();
    let hello = || Hello::new(map.number(origin), &own.name);
    let others = map.servers.iter().filter(|entry| entry.name != own.name);
    let source = |entry: &ServerEntry| {
        Arc::new(PeerPart::new(Peer::new(&entry.name, &entry.address, Arc::clone(&identity), hello())))
    };
    let sources: Vec<_> = others.map(source).collect();
    // A server that was invited, and never was a voter, has no place yet.
    let is_admitted = Beginning::read(directory, origin).map_or(true, |beginning| beginning.is_admitted);
    if is_admitted && map.voters.contains(&own.name) {
        check_member(&map, &own, &sources)?;
    }
    if had_log {
        check_majority(&map, &sources)?;
    }
    if has_copied {
        let count = map.partitions().len();
        let least = (0, 0);
        let wanted = Wanted { origin, least, is_whole: false, partitions: &own.partitions, count };
        let fetched = fetch(environment, directory, wanted, &sources, report)?.path;
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

/// Answers whether the log has a server at a place, as of now: with a majority of the voters.
pub(crate) fn answer(replica: &Replica, request: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let damaged = || Error::corrupt("a request of another server", "it names no place");
    let at = request.get(1..).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
    let (at, end) = (at.ok_or_else(damaged)?, Instant::now() + MEMBERSHIP_MAX);
    let index = replica.read_index(MEMBERSHIP_MAX)?;
    replica.wait_for_more(index.saturating_sub(1), end.saturating_duration_since(Instant::now()));
    let members = replica.members();
    if replica.committed() < index || members.is_empty() {
        return Err(Error::new(ErrorKind::Unavailable, "this server does not know all voters yet"));
    }
    out.push(u8::from(members.iter().any(|member| place(member.server) == at)));
    Ok(())
}

/// Refuses a server that was removed, as far as a voter answers. With its old place it would be a voter
/// again, without an invitation.
fn check_member(map: &ClusterMap, own: &ServerEntry, others: &[Arc<PeerPart>]) -> Result<()> {
    let request = [&[MEMBERSHIP][..], &map.number_of(own).to_le_bytes()].concat();
    let ask = |peer: &Arc<PeerPart>| {
        let deadline = Some((Instant::now() + MEMBERSHIP_MAX, MEMBERSHIP_MAX));
        let _limits = ThreadLimits { deadline, ..ThreadLimits::default() }.enter();
        peer.peer().send(&request).and_then(Pending::receive).ok()
    };
    if others.iter().find_map(ask).is_none_or(|answer| answer != [0]) {
        return Ok(());
    }
    let what = format!("server {} was removed from the cluster; nothing was changed", own.name);
    Err(Error::new(ErrorKind::Unsupported, what)
        .with_hint("to have it in the cluster again, invite it into a new directory: vervet cluster invite"))
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
