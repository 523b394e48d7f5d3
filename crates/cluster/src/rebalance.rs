//! Moving partitions between the servers of a cluster, for an operator.
//!
//! # Shape
//! 1. A voter says which servers have what; the plan is made from that.
//! 2. Each server that is to get partitions is asked to copy them, again and again until it has them.
//! 3. A voter is asked to have the log say where partitions are from now on (`moving.rs`).
//!
//! A call that ends before the last step has changed nothing; what was copied is used by the next one, or
//! removed after a while.

use crate::identity::open_identity;
use crate::layout::spread;
use crate::map::{ClusterMap, ServerEntry};
use crate::members::partitions_text;
use crate::moving::{ASK, GAIN, HAS, LAYOUT, SET, whole_graph};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vervet_model::{Error, ErrorKind, Result, ThreadLimits};
use vervet_peer::{Hello, Identity, Peer, Protocol};

/// Longest time of a request.
const ASK_MAX: Duration = Duration::from_secs(5);

/// Longest time of the request that changes the log.
const SET_MAX: Duration = Duration::from_secs(25);

/// Time between two looks at a server that copies.
const LOOK_INTERVAL: Duration = Duration::from_millis(300);

/// Longest time that a server which is to copy does not answer, as it does while it is started again.
const SILENT_MAX: Duration = Duration::from_secs(60);

/// What partitions are moved for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rebalance {
    /// All servers have about as many.
    Evenly {
        /// How many servers are to have each partition, from now on; `None`: as many as before.
        replicas: Option<usize>,
    },
    /// Others have the partitions of a server, which can then be removed.
    Drain {
        /// Its name.
        server: String,
    },
    /// Some partitions go to a server.
    Move {
        /// The partitions.
        partitions: Vec<usize>,
        /// The server that lacks them afterwards; `None`: all keep theirs.
        from: Option<String>,
        /// The server that gets them.
        to: String,
    },
}

/// Where partitions are, and where they are to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RebalancePlan {
    /// How many servers are to have each partition.
    pub replicas: usize,
    /// The servers as they are.
    pub before: Vec<ServerEntry>,
    /// The same servers as they are to be.
    pub after: Vec<ServerEntry>,
    changes_replicas: bool,
}

impl RebalancePlan {
    /// The servers that get partitions, and which.
    #[must_use]
    pub fn gains(&self) -> Vec<(String, Vec<usize>)> {
        differences(&self.after, &self.before)
    }

    /// The servers that give partitions away, and which.
    #[must_use]
    pub fn losses(&self) -> Vec<(String, Vec<usize>)> {
        differences(&self.before, &self.after)
    }

    /// Whether nothing is to be changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.changes_replicas && self.gains().is_empty() && self.losses().is_empty()
    }
}

/// The partitions that servers have in `of`, and not in `without`.
fn differences(of: &[ServerEntry], without: &[ServerEntry]) -> Vec<(String, Vec<usize>)> {
    let shares: BTreeMap<&str, BTreeSet<usize>> = without
        .iter()
        .map(|entry| (entry.name.as_str(), entry.partitions.iter().copied().collect()))
        .collect();
    let of = of.iter().map(|entry| {
        let share = shares.get(entry.name.as_str());
        let lacks = |partition: &usize| !share.is_some_and(|share| share.contains(partition));
        (entry.name.clone(), entry.partitions.iter().copied().filter(lacks).collect::<Vec<_>>())
    });
    of.filter(|(_, partitions)| !partitions.is_empty()).collect()
}

/// What happens while partitions are moved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RebalanceEvent {
    /// A server begins to copy partitions.
    Copies {
        /// Its name.
        server: String,
        /// How many.
        partitions: usize,
    },
    /// It has them.
    Has {
        /// Its name.
        server: String,
    },
}

/// The servers of the cluster, which are asked with the certificate of one of them.
struct Servers {
    map: ClusterMap,
    identity: Arc<Identity>,
    hello: Hello,
    peers: BTreeMap<String, Peer>,
}

impl Servers {
    fn open(directory: &Path) -> Result<Self> {
        let map = ClusterMap::read(directory)?;
        let identity = Arc::new(open_identity(directory, &map)?);
        let unnamed = || Error::new(ErrorKind::Input, "the map does not name the data of the cluster");
        let hello = Hello::new(map.number(map.origin().ok_or_else(unnamed)?), &map.server);
        let mut servers = Self { map: map.clone(), identity, hello, peers: BTreeMap::new() };
        servers.learn(&map);
        Ok(servers)
    }

    /// Knows the servers of a map, too.
    fn learn(&mut self, map: &ClusterMap) {
        for entry in &map.servers {
            let identity = Arc::clone(&self.identity);
            let peer = Peer::new(&entry.name, &entry.address, identity, self.hello.clone());
            self.peers.insert(entry.name.clone(), peer);
        }
    }

    /// Sends a request to a server.
    fn ask(&self, name: &str, kind: u8, text: &str, time_max: Duration) -> Result<Vec<u8>> {
        let own = ThreadLimits::current();
        let deadline = Some((Instant::now() + time_max, time_max));
        let _limits = ThreadLimits { deadline, ..own }.enter();
        let unknown = || Error::new(ErrorKind::Input, format!("the cluster has no server {name}"));
        let peer = self.peers.get(name).ok_or_else(unknown)?;
        let pending = peer.send(&[&[LAYOUT, kind], text.as_bytes()].concat())?;
        if pending.protocol() < Protocol::LAYOUTS {
            let what = format!("server {name} has an earlier version, whose partitions do not move");
            return Err(Error::new(ErrorKind::Unavailable, what).with_hint("upgrade all servers first"));
        }
        pending.receive()
    }

    /// Sends a request to the voters until one answers.
    fn ask_any(&self, kind: u8, text: &str, time_max: Duration) -> Result<Vec<u8>> {
        let mut failure = Error::new(ErrorKind::Unsupported, "this cluster has no voters")
            .with_hint("partitions move where all servers vote: vervet cluster init --voters N");
        for name in &self.map.voters {
            match self.ask(name, kind, text, time_max) {
                Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Deadline) => {
                    failure = error;
                }
                answered => return answered,
            }
        }
        Err(failure)
    }

    /// The map as a voter has it.
    fn current(&self) -> Result<ClusterMap> {
        let text = self.ask_any(ASK, "", ASK_MAX)?;
        let map = std::str::from_utf8(&text).ok().and_then(|text| toml::from_str::<ClusterMap>(text).ok());
        let map = map.filter(|map| map.check().is_ok());
        map.ok_or_else(|| Error::corrupt("an answer of another server", "it is no map of a cluster"))
    }
}

/// What [`rebalance`] would do.
///
/// # Errors
/// Input: there is no such server or partition, or a file is missing. Unsupported: no partition of this
/// cluster can move. Unavailable: no server answers.
pub fn plan_rebalance(directory: &Path, of: &Rebalance) -> Result<RebalancePlan> {
    plan(&Servers::open(directory)?.current()?, of)
}

fn plan(map: &ClusterMap, of: &Rebalance) -> Result<RebalancePlan> {
    if map.is_replicated() {
        return Err(whole_graph());
    }
    let position = |name: &str| {
        let names = || map.servers.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>().join(", ");
        let unknown = || {
            Error::new(ErrorKind::Input, format!("the cluster has no server {name}"))
                .with_hint(format!("its servers are {}", names()))
        };
        map.servers.iter().position(|entry| entry.name == name).ok_or_else(unknown)
    };
    let now: Vec<BTreeSet<usize>> =
        map.servers.iter().map(|entry| entry.partitions.iter().copied().collect()).collect();
    let mut replicas = map.replicas_wanted();
    let shares = match of {
        Rebalance::Evenly { replicas: wanted } => {
            replicas = wanted.unwrap_or(replicas);
            if replicas == 0 || replicas > now.len() {
                let what = format!("{replicas} replicas of each partition over {} servers", now.len());
                return Err(Error::new(ErrorKind::Input, what)
                    .with_hint(format!("name a number between 1 and {}", now.len())));
            }
            spread(&now, &|_| true, replicas)
        }
        Rebalance::Drain { server } => {
            let drained = position(server)?;
            if now.len() < 2 {
                return Err(Error::new(ErrorKind::Unsupported, "there is no other server"));
            }
            let mut shares = spread(&now, &|server| server != drained, replicas);
            // It keeps its own until it is removed.
            shares[drained].clone_from(&now[drained]);
            shares
        }
        Rebalance::Move { partitions, from, to } => {
            let (from, to) = (from.as_deref().map(position).transpose()?, position(to)?);
            let mut shares = now;
            for partition in partitions {
                let is_there = |server: usize| shares[server].contains(partition);
                if !(0..shares.len()).any(is_there) {
                    let what = format!("the graph has no partition {partition}");
                    return Err(Error::new(ErrorKind::Input, what));
                }
                if let Some(from) = from.filter(|from| !is_there(*from)) {
                    let what =
                        format!("server {} does not have partition {partition}", map.servers[from].name);
                    return Err(Error::new(ErrorKind::Input, what));
                }
                if let Some(from) = from {
                    shares[from].remove(partition);
                }
                shares[to].insert(*partition);
            }
            shares
        }
    };
    let after = map
        .servers
        .iter()
        .zip(shares)
        .map(|(entry, share)| ServerEntry { partitions: share.into_iter().collect(), ..entry.clone() });
    let changes_replicas = map.replicas.is_some_and(|before| before != replicas);
    Ok(RebalancePlan { replicas, before: map.servers.clone(), after: after.collect(), changes_replicas })
}

/// Moves partitions between the servers of the cluster of the one in `directory`, with its certificate, while
/// they answer queries and take changes. Returns once the log says where partitions are; servers go over to
/// that within seconds, and files that are not used any more go a minute later.
///
/// # Errors
/// As [`plan_rebalance`]. Unavailable: a server that is to get partitions is away. Conflict: servers have
/// joined or left meanwhile. Those of a server that could not copy. Cancelled: nothing has changed.
pub fn rebalance(
    directory: &Path,
    of: &Rebalance,
    report: &mut dyn FnMut(&RebalanceEvent),
) -> Result<RebalancePlan> {
    let mut servers = Servers::open(directory)?;
    let map = servers.current()?;
    servers.learn(&map);
    let plan = plan(&map, of)?;
    if plan.is_empty() {
        return Ok(plan);
    }
    let gains = plan.gains();
    let mut open: Vec<&(String, Vec<usize>)> = gains.iter().collect();
    for (server, partitions) in &gains {
        report(&RebalanceEvent::Copies { server: server.clone(), partitions: partitions.len() });
    }
    let mut answered: BTreeMap<&str, Instant> =
        gains.iter().map(|(server, _)| (server.as_str(), Instant::now())).collect();
    while !open.is_empty() {
        ThreadLimits::check()?;
        // Also those that have theirs: they keep them only for a while.
        let mut has = BTreeSet::new();
        for (server, partitions) in &gains {
            match servers.ask(server, GAIN, &partitions_text(partitions), ASK_MAX) {
                Ok(answer) => {
                    answered.insert(server, Instant::now());
                    if answer == [HAS] {
                        has.insert(server.as_str());
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Deadline) => {
                    let last = answered.get(server.as_str());
                    if last.is_none_or(|last| last.elapsed() > SILENT_MAX) {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error.context(format_args!("server {server}"))),
            }
        }
        for (server, _) in open.iter().filter(|(server, _)| has.contains(server.as_str())) {
            report(&RebalanceEvent::Has { server: server.clone() });
        }
        open.retain(|(server, _)| !has.contains(server.as_str()));
        if !open.is_empty() {
            std::thread::sleep(LOOK_INTERVAL);
        }
    }
    let line = |entry: &ServerEntry| format!("{} {}", entry.name, partitions_text(&entry.partitions));
    let lines: Vec<String> =
        std::iter::once(plan.replicas.to_string()).chain(plan.after.iter().map(line)).collect();
    servers.ask_any(SET, &lines.join("\n"), SET_MAX)?;
    Ok(plan)
}
