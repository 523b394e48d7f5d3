//! The servers of a cluster, as one of them knows them: the map, and connections to the others.
//!
//! # Shape
//! Where all servers vote, servers join and leave, and partitions move. The log says which servers have it
//! and which partitions each has ([`vervet_raft::Member`]); each server then writes its map anew, so that it
//! finds the others at its next start, and connects to those that are new. Everywhere else the map stays as
//! it was made.
//! # Not here
//! Servers that do not vote keep the map that they have.

use crate::map::{ClusterMap, ServerEntry};
use crate::peer_part::PeerPart;
use crate::reachability::Reachability;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use vervet_model::{Error, ErrorKind, Result, lock};
use vervet_peer::{Hello, Identity, Peer};
use vervet_raft::{Member, MemberRules, place};

/// Time in which a server that is about to end ends, or the voters elect another one.
const ENDING_TIME: Duration = Duration::from_secs(2);

/// Longest list of partitions as numbers, in bytes.
const LIST_BYTES_MAX: usize = 2048;

/// Begins partitions as hexadecimal digits.
const DIGITS: char = 'x';

/// Partitions as text: their numbers, or, if those are long, a bit for each, lowest first, as hexadecimal
/// digits.
pub(crate) fn partitions_text(partitions: &[usize]) -> String {
    let numbers = partitions.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
    if numbers.len() <= LIST_BYTES_MAX {
        return numbers;
    }
    let last = partitions.iter().max().copied().unwrap_or(0);
    let mut digits = vec![0_u32; last / 4 + 1];
    partitions.iter().for_each(|partition| digits[partition / 4] |= 1 << (partition % 4));
    let digits = digits.into_iter().filter_map(|digit| char::from_digit(digit, 16));
    std::iter::once(DIGITS).chain(digits).collect()
}

/// Partitions of their text.
pub(crate) fn read_partitions(text: &str) -> Option<Vec<usize>> {
    let Some(digits) = text.strip_prefix(DIGITS) else {
        return text
            .split(' ')
            .filter(|number| !number.is_empty())
            .map(|number| number.parse().ok())
            .collect();
    };
    let digits = digits.chars().map(|digit| digit.to_digit(16)).collect::<Option<Vec<u32>>>()?;
    let has = |partition: &usize| digits[partition / 4] >> (partition % 4) & 1 == 1;
    Some((0..digits.len() * 4).filter(has).collect())
}

/// What the log says of a server: its name, its addresses and, if it does not have the whole graph, its
/// partitions and how many servers are to have each, in lines.
pub(crate) fn about(map: &ClusterMap, entry: &ServerEntry) -> Vec<u8> {
    let http = entry.http.as_deref().unwrap_or_default();
    let mut text = format!("{}\n{}\n{http}", entry.name, entry.address);
    if !map.is_replicated() {
        text.push_str(&format!("\n{}", partitions_text(&entry.partitions)));
        map.replicas.iter().for_each(|replicas| text.push_str(&format!("\n{replicas}")));
    }
    text.into_bytes()
}

/// A line of such a text.
fn line_of(about: &[u8], number: usize) -> Option<&str> {
    std::str::from_utf8(about).ok()?.split('\n').nth(number)
}

fn partitions_line(about: &[u8]) -> Option<&str> {
    line_of(about, 3)
}

/// How many servers are to have each partition.
fn replicas_of(member: &Member) -> Option<usize> {
    line_of(&member.about, 4)?.parse().ok().filter(|replicas| *replicas > 0)
}

/// The text of a server that takes its place again: the log knows better which partitions it has.
fn renewed(before: &[u8], own: &[u8]) -> Vec<u8> {
    if partitions_line(before).is_none() {
        return own.to_vec();
    }
    let lines = |about: &'_ [u8]| about.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let lines: Vec<Vec<u8>> =
        lines(own).into_iter().take(3).chain(lines(before).into_iter().skip(3)).collect();
    lines.join(&b'\n')
}

/// Refuses a change of the voters after which a partition is at none of them. Those of whose partitions the
/// log says nothing do not count.
fn check_partitions(before: &[Member], after: &[Member]) -> Result<()> {
    let all = |members: &[Member]| -> BTreeSet<usize> {
        let lines = members.iter().filter_map(|member| partitions_line(&member.about));
        lines.filter_map(read_partitions).flatten().collect()
    };
    let lost: Vec<String> = all(before).difference(&all(after)).map(usize::to_string).collect();
    if lost.is_empty() {
        return Ok(());
    }
    let what = format!("no server would have partition {} any more", lost.join(", "));
    Err(Error::new(ErrorKind::Unsupported, what)
        .with_hint("copy its partitions to other servers first: vervet cluster drain"))
}

/// What the log does with such texts.
pub(crate) const RULES: MemberRules = MemberRules { is_same, renewed, check: check_partitions };

/// Whether two such texts have the same name.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.split(|byte| *byte == b'\n').next() == other.split(|byte| *byte == b'\n').next()
}

/// The entry of a server that has joined. The map checks it. `all`: the partitions of one that has the whole
/// graph.
pub(crate) fn entry_of(member: &Member, all: &[usize]) -> Option<ServerEntry> {
    let text = std::str::from_utf8(&member.about).ok()?;
    let mut lines = text.split('\n');
    let (name, address, http) = (lines.next()?, lines.next()?, lines.next()?);
    let partitions = lines.next().map_or_else(|| Some(all.to_vec()), read_partitions)?;
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
    /// Index of the entry of the log which the map is of, at least.
    index: AtomicU64,
    /// Servers of entries of the log that may not be committed, by number: messages of the log go to them.
    introduced: Mutex<BTreeMap<u64, Arc<Other>>>,
}

impl Members {
    pub(crate) fn new(own: Own, map: ClusterMap) -> Result<Self> {
        let others = others(&own, &numbered(&map).servers, &[])?;
        let now = RwLock::new((Arc::new(map), others));
        Ok(Self { own, now, index: AtomicU64::new(0), introduced: Mutex::default() })
    }

    /// Index of the entry of the log which the map is of, at least; 0: it was not compared with the log yet.
    /// To be read before the map.
    pub(crate) fn index(&self) -> u64 {
        self.index.load(Ordering::Acquire)
    }

    /// The map has what the log says up to the entry `index`.
    pub(crate) fn note_index(&self, index: u64) {
        self.index.fetch_max(index, Ordering::AcqRel);
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
        let (mut own, listed) = (numbered(&old).own()?.clone(), numbered(&old).servers);
        let mut entries = Vec::new();
        for member in members {
            let number = place(member.server);
            let is_it = |entry: &&ServerEntry| entry.number.map(u64::from) == Some(number);
            let known = || listed.iter().find(is_it).cloned().or_else(|| self.entry_at(number));
            let entry = entry_of(member, &own.partitions).or_else(known);
            if let Some(entry) = entry.as_ref().filter(|entry| entry.name == own.name && member.votes) {
                own.partitions.clone_from(&entry.partitions);
            }
            entries.extend(entry.map(|entry| (entry, member.votes)));
        }
        entries.retain(|(entry, _)| entry.name != own.name);
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
        if !old.is_replicated() && sorted(&map) != sorted(&numbered(&old)) {
            // Though each may have all partitions now.
            map.replicas = Some(old.replicas_wanted());
        }
        map.replicas = members.iter().filter(|member| member.votes).find_map(replicas_of).or(map.replicas);
        let is_silent = |entry: &ServerEntry| !map.servers.iter().any(|other| other.name == entry.name);
        let silent = silent.into_iter().map(|(entry, _)| entry).filter(is_silent);
        let connected: Vec<ServerEntry> = map.servers.iter().cloned().chain(silent).collect();
        let others = others(&self.own, &connected, &self.others())?;
        let has_changed = sorted(&map) != sorted(&numbered(&old)) || map.replicas != old.replicas;
        let map = if has_changed { Arc::new(map) } else { old };
        if has_changed {
            map.check().map_err(|error| error.context("the servers of the log"))?;
            map.write(&self.own.directory)?;
        }
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = (map, others);
        Ok(has_changed)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_their_text() {
        let many: Vec<usize> = (0..1500).filter(|number| number % 3 > 0).collect();
        for partitions in [vec![], vec![0], vec![3, 5, 1000], many] {
            let text = partitions_text(&partitions);
            assert!(text.len() <= LIST_BYTES_MAX, "{text}");
            assert_eq!(read_partitions(&text), Some(partitions));
        }
        assert_eq!(partitions_text(&[1, 12]), "1 12");
        for text in ["1 a", "-1", "xg", "1,2"] {
            assert_eq!(read_partitions(text), None, "{text}");
        }
    }

    #[test]
    fn no_partition_is_lost() {
        let member = |server: u64, about: &str| Member {
            server,
            about: about.as_bytes().to_vec().into(),
            votes: true,
        };
        let (a, b, c) = (member(1, "a\nh:1\n\n0 1"), member(2, "b\nh:2\n\n1 2"), member(3, ""));
        let before = [a.clone(), b.clone(), c.clone()];
        check_partitions(&before, &[a.clone(), b.clone()]).expect("nothing is known of c");
        check_partitions(&before, &[a.clone(), member(2, "b\nh:2\n\n2"), c.clone()]).expect("1 is at a");
        let lost = check_partitions(&before, &[a, c]).expect_err("2 is at b alone");
        assert!(lost.message().contains("partition 2 "), "{lost}");
        assert_eq!(lost.kind(), ErrorKind::Unsupported);
        assert_eq!(renewed(&b.about, b"b\nh:9\nh:80\n0 1 2"), b"b\nh:9\nh:80\n1 2");
        assert_eq!(renewed(b"b\nh:2\n\n1\n2", b"b\nh:9\nh:80\n7\n3"), b"b\nh:9\nh:80\n1\n2");
        assert_eq!(renewed(b"b\nh:2\n", b"b\nh:9\n"), b"b\nh:9\n");
    }
}
