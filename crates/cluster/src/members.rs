//! The servers of a cluster, as one of them knows them: the map, and connections to the others.
//!
//! # Shape
//! Where every server has the whole graph and voters take its changes, servers join and leave. The log says
//! which servers have it ([`vervet_raft::Member`]); each server then writes its map anew, so that it finds
//! the others at its next start, and connects to those that are new. Everywhere else the map stays as it was
//! made.
//! # Not here
//! Servers that do not vote keep the map that they have.

use crate::files::{failed, replace_text};
use crate::map::{ClusterMap, MAP_FILE, ServerEntry};
use crate::peer_part::PeerPart;
use crate::reachability::Reachability;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use vervet_model::{Result, lock};
use vervet_peer::{Hello, Identity, Peer};
use vervet_raft::{Member, place};

/// Time in which a server that is about to end ends, or the voters elect another one.
const ENDING_TIME: Duration = Duration::from_secs(2);

/// What the server of a map says of itself when it joins: its name, its addresses and, if it does not have
/// the whole graph, its partitions, in lines.
pub(crate) fn about(map: &ClusterMap, own: &ServerEntry) -> Vec<u8> {
    let mut text = format!("{}\n{}\n{}", own.name, own.address, own.http.as_deref().unwrap_or_default());
    if !map.is_replicated() {
        let partitions: Vec<String> = own.partitions.iter().map(usize::to_string).collect();
        text.push_str(&format!("\n{}", partitions.join(" ")));
    }
    text.into_bytes()
}

/// Whether two such texts have the same name.
pub(crate) fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.split(|byte| *byte == b'\n').next() == other.split(|byte| *byte == b'\n').next()
}

/// The entry of a server that has joined. The map checks it. `all`: the partitions of one that has the whole
/// graph.
fn entry_of(member: &Member, all: &[usize]) -> Option<ServerEntry> {
    let text = std::str::from_utf8(&member.about).ok()?;
    let mut lines = text.split('\n');
    let (name, address, http) = (lines.next()?, lines.next()?, lines.next()?);
    let numbers = |line: &str| line.split(' ').map(str::parse).collect::<Result<Vec<usize>, _>>().ok();
    let partitions = lines.next().map_or_else(|| Some(all.to_vec()), numbers)?;
    Some(ServerEntry {
        name: name.to_owned(),
        address: address.to_owned(),
        http: Some(http.to_owned()).filter(|http| !http.is_empty()),
        number: u16::try_from(place(member.server)).ok(),
        partitions,
    })
}

/// Another server.
#[derive(Debug)]
pub(crate) struct Other {
    /// With its number.
    entry: ServerEntry,
    pub(crate) part: Arc<PeerPart>,
    /// For messages of the log, which wait for no reads.
    pub(crate) log: Peer,
    pub(crate) reachability: Reachability,
    /// When it has last said that it is about to end.
    ending: Mutex<Option<Instant>>,
}

impl Other {
    /// It has said that it is about to end.
    pub(crate) fn note_ending(&self) {
        *lock(&self.ending) = Some(Instant::now());
    }

    /// Whether the server has said so within [`ENDING_TIME`]. The outcome of a request that it gets while it
    /// ends is unknown.
    pub(crate) fn is_ending(&self) -> bool {
        lock(&self.ending).is_some_and(|said| said.elapsed() < ENDING_TIME)
    }
}

/// Where the map is, and who connects.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub(crate) directory: PathBuf,
    pub(crate) identity: Arc<Identity>,
    pub(crate) hello: Hello,
}

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct Members {
    own: Own,
    now: RwLock<(Arc<ClusterMap>, Vec<Arc<Other>>)>,
    /// Servers of entries of the log that may not be committed, by number: messages of the log go to them.
    introduced: Mutex<BTreeMap<u64, Arc<Other>>>,
}

impl Members {
    pub(crate) fn new(own: Own, map: ClusterMap) -> Result<Self> {
        let others = others(&own, &numbered(&map).servers, &[])?;
        Ok(Self { own, now: RwLock::new((Arc::new(map), others)), introduced: Mutex::default() })
    }

    /// The map at present.
    pub(crate) fn map(&self) -> Arc<ClusterMap> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner).0)
    }

    /// The other servers at present, in the order of the map.
    pub(crate) fn others(&self) -> Vec<Arc<Other>> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    /// The other servers as parts of the graph, in the order of the map.
    pub(crate) fn parts(&self) -> Vec<Arc<PeerPart>> {
        self.others().iter().map(|other| Arc::clone(&other.part)).collect()
    }

    /// Another server, by name.
    pub(crate) fn other(&self, name: &str) -> Option<Arc<Other>> {
        self.others().into_iter().find(|other| other.entry.name == name)
    }

    /// Another server, by its number among the voters.
    pub(crate) fn other_at(&self, number: u64) -> Option<Arc<Other>> {
        let introduced = lock(&self.introduced).get(&number).map(Arc::clone);
        let is_it = |other: &Arc<Other>| other.entry.number.map(u64::from) == Some(number);
        introduced.or_else(|| self.others().into_iter().find(is_it))
    }

    /// Connects to a server that an entry of the log names.
    pub(crate) fn introduce(&self, server: u64, about: &[u8]) {
        let member = Member { server, about: about.to_vec().into(), votes: false };
        let Some(entry) = entry_of(&member, &[]).filter(|entry| entry.name != self.own.hello.server) else {
            return;
        };
        let mut introduced = lock(&self.introduced);
        let known: Vec<_> = introduced.values().cloned().collect();
        // Without a thread that pings it, there is no connection; the next message to it tries again.
        if let Ok(others) = others(&self.own, &[entry], &known) {
            introduced.extend(others.into_iter().map(|other| (place(server), other)));
        }
    }

    /// The number of a server that has the log, by name.
    pub(crate) fn number_of(&self, name: &str, members: &[Member]) -> Option<u64> {
        let is_it = |member: &&Member| match entry_of(member, &[]) {
            Some(entry) => entry.name == name,
            None => self.entry_at(place(member.server)).is_some_and(|entry| entry.name == name),
        };
        members.iter().find(is_it).map(|member| place(member.server))
    }

    /// The entry of a server, by its number among the voters.
    pub(crate) fn entry_at(&self, number: u64) -> Option<ServerEntry> {
        let map = self.map();
        let own = map.own().ok().filter(|own| map.number_of(own) == number).cloned();
        own.or_else(|| Some(self.other_at(number)?.entry.clone()))
    }

    /// Takes note of the servers that have the log. The map gets those that vote; the others are connected as
    /// long as they have it. This server stays in its own map, whatever they are. `true`: the map has
    /// changed.
    ///
    /// # Errors
    /// Io: the map cannot be written; it stays.
    pub(crate) fn update(&self, members: &[Member]) -> Result<bool> {
        let old = self.map();
        let (own, listed) = (numbered(&old).own()?.clone(), numbered(&old).servers);
        let mut entries = Vec::new();
        for member in members {
            let number = place(member.server);
            let is_it = |entry: &&ServerEntry| entry.number.map(u64::from) == Some(number);
            let known = || listed.iter().find(is_it).cloned().or_else(|| self.entry_at(number));
            let entry = entry_of(member, &own.partitions).or_else(known);
            entries.extend(
                entry.map(|entry| (if entry.name == own.name { own.clone() } else { entry }, member.votes)),
            );
        }
        lock(&self.introduced)
            .retain(|number, _| members.iter().any(|member| place(member.server) == *number));
        let (voting, silent): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(_, votes)| *votes);
        let voting: BTreeMap<String, ServerEntry> = voting
            .into_iter()
            .map(|(entry, _)| entry)
            .chain([own])
            .map(|entry| (entry.name.clone(), entry))
            .collect();
        let mut map = numbered(&old);
        map.cluster = Some(format!("{:016x}", self.own.hello.cluster));
        map.servers.retain(|entry| !old.voters.contains(&entry.name) && !voting.contains_key(&entry.name));
        map.servers.extend(voting.values().cloned());
        map.servers.sort_by(|one, other| one.name.cmp(&other.name));
        map.voters = voting.into_keys().collect();
        let is_silent = |entry: &ServerEntry| !map.servers.iter().any(|other| other.name == entry.name);
        let silent = silent.into_iter().map(|(entry, _)| entry).filter(is_silent);
        let connected: Vec<ServerEntry> = map.servers.iter().cloned().chain(silent).collect();
        let others = others(&self.own, &connected, &self.others())?;
        let has_changed = sorted(&map) != sorted(&numbered(&old));
        let map = if has_changed { Arc::new(map) } else { old };
        if has_changed {
            map.check().map_err(|error| error.context("the servers of the log"))?;
            self.write(&map)?;
        }
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = (map, others);
        Ok(has_changed)
    }

    fn write(&self, map: &ClusterMap) -> Result<()> {
        let path = self.own.directory.join(MAP_FILE);
        replace_text(&path, &map.to_text()).map_err(failed("write", &path))
    }
}

/// The servers and the voters of a map, in an order that does not depend on the map.
fn sorted(map: &ClusterMap) -> (BTreeMap<&str, &ServerEntry>, BTreeSet<&str>) {
    let servers = map.servers.iter().map(|entry| (entry.name.as_str(), entry));
    (servers.collect(), map.voters.iter().map(String::as_str).collect())
}

/// A map whose entries say their numbers.
pub(crate) fn numbered(map: &ClusterMap) -> ClusterMap {
    let number = |entry: &ServerEntry| ServerEntry {
        number: u16::try_from(map.number_of(entry)).ok(),
        ..entry.clone()
    };
    ClusterMap { servers: map.servers.iter().map(number).collect(), ..map.clone() }
}

/// The others of these servers; those that are known and have not changed keep their connections.
fn others(own: &Own, servers: &[ServerEntry], known: &[Arc<Other>]) -> Result<Vec<Arc<Other>>> {
    let other = |entry: &ServerEntry| -> Result<Arc<Other>> {
        if let Some(other) = known.iter().find(|other| other.entry == *entry) {
            return Ok(Arc::clone(other));
        }
        let connect = || Peer::new(&entry.name, &entry.address, Arc::clone(&own.identity), own.hello.clone());
        let part = Arc::new(PeerPart::new(connect()));
        let reachability = Reachability::watch(&part)?;
        Ok(Arc::new(Other {
            entry: entry.clone(),
            part,
            log: connect(),
            reachability,
            ending: Mutex::default(),
        }))
    };
    servers.iter().filter(|entry| entry.name != own.hello.server).map(other).collect()
}
