//! One server of a cluster: its database, and its connections to the others.

use crate::backup_feed::{self, BACKUP};
use crate::beginning;
use crate::changes_status::ChangesStatus;
use crate::damage::{CHANGES, with_remedy};
use crate::fetch::{self, FETCH};
use crate::following::{self, Following};
use crate::forwarding::{FORWARD, Forwarded, Receiver};
use crate::generation::{Generation, newest_path};
use crate::held::Held;
use crate::identity::open_identity;
use crate::init::AUTHORITY_FILE;
use crate::load::adopt;
use crate::map::{ClusterMap, ServerEntry};
use crate::members::{self, Members, Other};
use crate::merge::{Merge, Place};
use crate::merging::{Data, Merging};
use crate::merging_together::Together;
use crate::moving::{self, LAYOUT};
use crate::origin::{Origin, has_log};
use crate::peer_part::PeerPart;
use crate::rejoin;
use crate::remove;
use crate::serving::{self, Serving};
use crate::voter_log::VoterLog;
use crate::voting::{self, Voting};
use crate::writer_log::WriterLog;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use vervet::{Database, DatabaseOptions, Durability, Environment};
use vervet_driver_cluster::{ClusterCounts, ClusterDriver};
use vervet_driver_local::LocalDriver;
use vervet_log::LogStatus;
use vervet_model::{Error, ErrorKind, Result, ThreadLimits};
use vervet_partition::PartitionDirectory;
use vervet_peer::{Counts, Faults, Handler, Hello, Identity, PeerServer, Protocol};
use vervet_raft::Replica;

/// See the header of this file. Dropping it ends its listener and connections.
#[derive(Debug)]
pub struct Cluster {
    members: Arc<Members>,
    database: Database,
    driver: Arc<ClusterDriver>,
    forwarded: Receiver,
    /// Where changes are merged into the data.
    merging: Option<Merging>,
    /// At a server that follows the writer, or the voters.
    following: Option<Following>,
    /// At a voter.
    voting: Option<Voting>,
    server: PeerServer,
    partitions: usize,
    /// Where its files are.
    place: (Environment, PathBuf),
}

/// The state of a cluster as one of its servers sees it.
#[derive(Clone, Debug)]
pub struct ClusterStatus {
    /// Name of the cluster.
    pub name: String,
    /// Number of partitions.
    pub partitions: usize,
    /// Whether every server has all of them.
    pub is_replicated: bool,
    /// How many servers are to have each partition, where they may be at different ones.
    pub replicas: Option<usize>,
    /// Statements of the whole graph.
    pub statements: u64,
    /// What this server knows of changes; `None`: the graph does not change.
    pub changes: Option<ChangesStatus>,
    /// Connections from other servers.
    pub connections: usize,
    /// All servers, in the order of the map.
    pub servers: Vec<ServerStatus>,
}

/// The state of one server.
#[derive(Clone, Debug)]
pub struct ServerStatus {
    /// Its entry in the map.
    pub entry: ServerEntry,
    /// Whether it is the server that tells.
    pub is_own: bool,
    /// Time of a request without work to it; the reason why it does not answer.
    pub answers: Result<Duration>,
    /// What was sent to it and received; all zero for the server itself.
    pub counts: Counts,
    /// The protocol on which both servers agree; `None`: there is no connection.
    pub protocol: Option<Protocol>,
}

/// What a server knows of another one without asking it.
#[derive(Clone, Debug)]
pub struct PeerStatus {
    /// Name of the other server.
    pub name: String,
    /// Why it is unreachable: its last two pings have failed, or it has not answered one yet. `None`: it is
    /// reachable.
    pub unreachable: Option<String>,
    /// What was sent to it and received.
    pub counts: Counts,
    /// The protocol on which both servers agree; `None`: there is no connection.
    pub protocol: Option<Protocol>,
}

/// The certificates and the data of a server, which must be those of its map.
pub(crate) fn open_files(
    directory: &Path,
    map: &ClusterMap,
    options: &DatabaseOptions,
) -> Result<(Identity, Generation)> {
    let identity = open_identity(directory, map)?;
    adopt(&options.environment, directory)?;
    let data = newest_path(&options.environment, directory)?;
    if !PartitionDirectory::is_published(&options.environment, &data) && map.data.is_none() {
        let what = format!("the server in {} has no data yet", directory.display());
        return Err(Error::new(ErrorKind::Input, what)
            .with_hint("load files at all servers of the cluster together: vervet cluster load"));
    }
    let generation = Generation::open_at(&options.environment, data.clone());
    let is_lost = !PartitionDirectory::is_published(&options.environment, &data);
    let generation =
        generation.map_err(|error| if is_lost { rejoin_hint(error, map, directory) } else { error })?;
    map.check_data(generation.origin)?;
    Ok((identity, generation))
}

/// Gives the error of lost files the remedy, where there is one.
pub(crate) fn rejoin_hint(error: Error, map: &ClusterMap, directory: &Path) -> Error {
    if map.fewest_replicas() > 1 && !map.voters.is_empty() {
        let command = format!("vervet cluster rejoin {}", directory.display());
        return error.with_hint(format!("if they are lost, let the server take its place again: {command}"));
    }
    error
}

/// The directory of the log of the writer, which belongs to a build of data.
pub(crate) fn log_directory(directory: &Path, build: u64) -> PathBuf {
    directory.join(format!("{CHANGES}{build:016x}"))
}

/// What a log of changes of a server belongs to.
pub(crate) fn open_origin(directory: &Path, build: u64) -> Result<Origin> {
    let path = directory.join(AUTHORITY_FILE);
    let authority = std::fs::read(&path);
    let authority = authority.map_err(|error| Error::io(format_args!("read {}", path.display()), &error))?;
    Ok(Origin::new(build, &authority))
}

/// How long the writer waits at its start for servers whose partitions its log concerns.
const START_WAIT: Duration = Duration::from_secs(60);

/// Time for the answer of a request to reach another server.
const ANSWER_TIME: Duration = Duration::from_millis(100);

/// Time between two attempts.
const START_INTERVAL: Duration = Duration::from_millis(300);

/// Opens the database of the writer, when the servers that its log concerns answer.
fn open_to_write(open: impl Fn() -> Result<Database>) -> Result<Database> {
    let begun = Instant::now();
    loop {
        match open() {
            Err(error) if error.kind() == ErrorKind::Unavailable && begun.elapsed() < START_WAIT => {
                tracing::warn!(target: "vervet", "the writer waits: {error}");
                std::thread::sleep(START_INTERVAL);
            }
            opened => return opened,
        }
    }
}

/// Why a graph without a writer is not changed.
fn only_read() -> Error {
    Error::new(ErrorKind::Unsupported, "this graph is spread over several servers, which only read it")
        .with_hint("name a server that takes changes (`writer` in cluster.toml), or make the cluster again")
}

/// Why a server that follows the writer takes no changes.
fn written_elsewhere(map: &ClusterMap, writer: &str) -> Error {
    let entry = map.servers.iter().find(|entry| entry.name == writer);
    let place = entry.and_then(|entry| entry.http.as_deref()).map(|http| format!(" ({http})"));
    let what = format!("changes of this graph go to server {writer}{}", place.unwrap_or_default());
    Error::new(ErrorKind::Unsupported, what).with_hint("send them there; this server shows them soon after")
}

/// Why a server that does not vote takes no changes.
fn written_by_voters(map: &ClusterMap) -> Error {
    let what = format!("changes of this graph go to the one of servers {} that leads", map.voters.join(", "));
    Error::new(ErrorKind::Unsupported, what).with_hint("`vervet cluster status` at one of them says which")
}

/// Answers the requests of other servers: reads of the own partitions, and tasks of queries.
struct Requests {
    serving: Arc<Serving>,
    driver: Arc<ClusterDriver>,
    /// Where changes are merged into data.
    data: Arc<OnceLock<Arc<Data>>>,
    /// The database, at the writer, once it has read its log, and a random number of this process.
    writing: Arc<OnceLock<Database>>,
    opening: u64,
    /// The log of a voter, and its number.
    replica: Arc<OnceLock<Arc<Replica>>>,
    log: u64,
    forwarded: Receiver,
    members: Arc<Members>,
    environment: Environment,
    directory: PathBuf,
}

impl Requests {
    fn replica(&self) -> Result<&Replica> {
        let none = || Error::new(ErrorKind::Unavailable, "this server does not vote, or not yet");
        self.replica.get().map(|replica| &**replica).ok_or_else(none)
    }
}

impl Handler for Requests {
    fn answer(&self, request: &[u8], protocol: Protocol, out: &mut Vec<u8>) -> Result<()> {
        let answered = if request.first() == Some(&FETCH) {
            let places = self.data.get().and_then(|data| data.places());
            fetch::answer(&self.environment, &self.directory, places, (request, protocol), out)
        } else if request.first() == Some(&FORWARD) {
            let answered = self.forwarded.answer(request.get(1..).unwrap_or_default());
            answered.map(|answer| out.extend_from_slice(&answer))
        } else if request.first() == Some(&remove::REMOVE) {
            self.replica().and_then(|replica| {
                remove::answer(replica, &self.members, (&self.environment, &self.directory), request)
            })
        } else if request.first() == Some(&rejoin::MEMBERSHIP) {
            self.replica().and_then(|replica| rejoin::answer(replica, request, out))
        } else if request.first() == Some(&voting::VOTERS) {
            self.replica().and_then(|replica| voting::answer_voter(replica, request, out))
        } else if request.first() == Some(&following::READ_LOG) && self.replica.get().is_some() {
            let (after, wait) = following::read_request(request)?;
            self.replica().and_then(|replica| voting::answer(replica, self.log, after, wait, out))
        } else if request.first() == Some(&following::READ_LOG) {
            let not_writer = || Error::new(ErrorKind::Unavailable, "this server does not write, or not yet");
            let database = self.writing.get().ok_or_else(not_writer);
            database.and_then(|database| following::answer((database, self.opening), request, out))
        } else if request.first() == Some(&LAYOUT) {
            let together = self.data.get().and_then(|data| data.as_together());
            moving::answer(self.replica()?, &self.members, together, request, out)
        } else if request.first() == Some(&BACKUP) {
            self.replica().and_then(|replica| backup_feed::answer(replica, self.log, request, out))
        } else if ClusterDriver::is_request(request) {
            self.driver.answer(request, out)
        } else {
            self.serving.answer(request, out)
        };
        answered.map_err(|error| with_remedy(error, &self.directory))
    }
}

impl Cluster {
    /// Opens the server in a directory that [`crate::init`] made: listens for the other servers, and connects
    /// to them when they are first needed, so servers start in any order.
    ///
    /// # Errors
    /// Input: the map, a certificate or a partition is missing or wrong. Corrupt: a file is damaged. Io: the
    /// address is in use.
    pub fn open(directory: &Path, options: &DatabaseOptions) -> Result<Self> {
        Self::open_files(directory, options).map_err(|error| with_remedy(error, directory))
    }

    fn open_files(directory: &Path, options: &DatabaseOptions) -> Result<Self> {
        rejoin::take_invitation(directory, options)?;
        let mut map = ClusterMap::read(directory)?;
        let own = map.own()?.clone();
        let (identity, mut generation) = open_files(directory, &map, options)?;
        if map.data.is_none() && !map.voters.is_empty() {
            // Servers that load a graph together have its data after their maps; commands need the name.
            map = ClusterMap { data: Some(ClusterMap::data_name(generation.origin)), ..map };
            map.write(directory)?;
        }
        let identity = Arc::new(identity);
        let mut later = Vec::new();
        if !map.voters.is_empty() && !map.is_replicated() {
            // Others may read the oldest still.
            later = Generation::all_with(&options.environment, directory, &own.partitions)?;
            if !later.is_empty() {
                generation = later.remove(0);
            }
        }
        let (files, build) = (&generation.files, generation.origin);
        let number = map.number(build);
        let hello = Hello::new(number, &own.name);
        let place = members::Own {
            directory: directory.to_owned(),
            identity: Arc::clone(&identity),
            hello: hello.clone(),
        };
        let members = Arc::new(Members::new(place, map.clone())?);
        let peers = members.parts();
        let here = own.partitions.iter().copied().collect();
        let opened = serving::open(&generation, &here, &map, &members)?;
        let start = generation.start(Arc::clone(&opened.reading));
        // What no other server reads is not held: merged data replace it.
        let opened = if map.is_replicated() { opened.without_data(files.partitioning())? } else { opened };
        let seed = options.environment.random.next_u64();
        let seed = seed.map_err(|error| Error::io("draw a random number", &error))?;
        let driver = ClusterDriver::new(LocalDriver::new(options.gate), opened.servers, seed);
        let driver = Arc::new(driver);
        let serving = Arc::new(Serving::new(Arc::clone(&driver), build, opened.answering));
        let own_data = Arc::<OnceLock<Arc<Data>>>::default();
        let is_writer = map.writer.as_ref() == Some(&own.name);
        let log = log_directory(directory, build);
        if !is_writer && has_log(&options.environment, &log) {
            let what = format!("this server has changes in {}, and is not the writer", log.display());
            return Err(Error::new(ErrorKind::Input, what).with_hint(format!(
                "name it in cluster.toml of all servers (writer = \"{}\"), or move the changes away",
                own.name
            )));
        }
        let is_voter = map.voters.contains(&own.name);
        let voter_log = beginning::log_directory(directory, build);
        if !is_voter && voter_log.exists() {
            let what =
                format!("this server has a log of changes in {}, and is no voter", voter_log.display());
            return Err(Error::new(ErrorKind::Input, what)
                .with_hint("name it in `voters` of cluster.toml of all servers, or move the log away"));
        }
        let replica = Arc::<OnceLock<Arc<Replica>>>::default();
        let bind = map.bind.clone().unwrap_or_else(|| own.address.clone());
        let writing = Arc::<OnceLock<Database>>::default();
        let opening = options.environment.random.next_u64();
        let forwarded = Receiver::default();
        let requests = Arc::new(Requests {
            serving: Arc::clone(&serving),
            data: Arc::clone(&own_data),
            driver: Arc::clone(&driver),
            writing: Arc::clone(&writing),
            opening: opening.map_err(|error| Error::io("draw a random number", &error))?,
            replica: Arc::clone(&replica),
            log: number,
            forwarded: forwarded.clone(),
            members: Arc::clone(&members),
            environment: options.environment.clone(),
            directory: directory.to_owned(),
        });
        // Before the log is read, which may concern partitions of servers that wait for those of this one.
        let server = PeerServer::bind(&bind, identity, hello, requests)?;
        let (database, follower) = match &map.writer {
            None if !map.voters.is_empty() => {
                let refusal = if is_voter { voting::refusal(None) } else { written_by_voters(&map) };
                let (database, follower) =
                    Database::following(start.clone(), refusal, Arc::clone(&driver) as _, options)?;
                (database, Some(follower))
            }
            None => (Database::read_only(&start, only_read(), Arc::clone(&driver) as _, options)?, None),
            Some(_) if is_writer => {
                // Others follow what is synced.
                let options = DatabaseOptions { durability: Durability::Sync, ..options.clone() };
                let origin = open_origin(directory, build)?;
                origin.check(&options.environment, &log)?;
                let database = open_to_write(|| {
                    Database::over(start.clone(), &log, Arc::clone(&driver) as _, &options)
                })?;
                // Before anything is changed.
                origin.write(&options.environment, &log)?;
                _ = writing.set(database.clone());
                (database, None)
            }
            Some(writer) => {
                let refusal = written_elsewhere(&map, writer);
                let (database, follower) =
                    Database::following(start.clone(), refusal, Arc::clone(&driver) as _, options)?;
                let peer = peers.iter().find(|peer| peer.peer().name() == writer).map(Arc::clone);
                if let Some(peer) = peer {
                    database.feed_from(Arc::new(WriterLog(peer)));
                }
                (database, Some(follower))
            }
        };
        driver.ask_for_changes(database.changes_probe());
        let partitions = files.partitioning().count();
        let data_place = || Place {
            environment: options.environment.clone(),
            directory: directory.to_owned(),
            origin: build,
            members: Arc::clone(&members),
        };
        let data = match map.voters.as_slice() {
            [] => None,
            _ if map.is_replicated() => Some(Data::new(data_place(), &generation)),
            _ => {
                let held = Held::new(&generation, start, here, (&map, 0));
                let together = Together::new(data_place(), serving, database.clone(), held);
                later.iter().try_for_each(|later| together.take(later).map(drop))?;
                Some(Data::together(data_place(), &generation, together))
            }
        };
        let data = data.map(Arc::new);
        data.iter().for_each(|data| _ = own_data.set(Arc::clone(data)));
        let (mut following, mut voting, mut merging) = (None, None, None);
        if let Some(follower) = follower {
            let merge: Arc<dyn Merge> = if is_voter {
                let is_lost = !voter_log.exists();
                let opened = voting::open(&options.environment, directory, build, &members);
                let opened = opened
                    .map_err(|error| if is_lost { rejoin_hint(error, &map, directory) } else { error })?;
                let opened = Arc::new(opened);
                _ = replica.set(Arc::clone(&opened));
                let feed = Arc::new(VoterLog::Here(Arc::downgrade(&opened), number));
                let place = (Arc::clone(&members), (directory.to_owned(), build));
                let started = Voting::start((database.clone(), follower), opened, place, data.clone(), feed)?;
                voting.insert(started).as_merge()
            } else {
                let has_log = |peer: &&Arc<PeerPart>| {
                    let name = peer.peer().name();
                    map.writer.as_deref() == Some(name) || map.voters.iter().any(|voter| voter == name)
                };
                let sources: Vec<_> = peers.iter().filter(has_log).map(Arc::clone).collect();
                if !map.voters.is_empty() {
                    database.feed_from(Arc::new(VoterLog::There(sources.clone())));
                }
                following.insert(Following::start(follower, sources, data.clone())?).as_merge()
            };
            merging = data.map(|data| Merging::start(data, merge)).transpose()?;
        }
        let place = (options.environment.clone(), directory.to_owned());
        Ok(Self {
            members,
            database,
            driver,
            forwarded,
            merging,
            following,
            voting,
            server,
            partitions,
            place,
        })
    }

    /// Why this server takes no changes; `None`: it is the writer.
    #[must_use]
    pub fn refusal(&self) -> Option<Error> {
        if let Some(voting) = &self.voting {
            return voting.refusal();
        }
        let map = self.map();
        match &map.writer {
            None if !map.voters.is_empty() => Some(written_by_voters(&map)),
            None => Some(only_read()),
            Some(writer) if *writer == map.server => None,
            Some(writer) => Some(written_elsewhere(&map, writer)),
        }
    }

    /// Whether this server takes changes at present.
    #[must_use]
    pub fn takes_changes(&self) -> bool {
        if self.forwarded.is_ending() {
            return false;
        }
        match &self.voting {
            Some(voting) => voting.leads(),
            None => self.map().is_writer(),
        }
    }

    /// Whether this server was removed from the cluster, and knows it: no other one takes its changes.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.voting.as_ref().is_some_and(Voting::has_left)
    }

    /// From now on this server takes no changes, since it is about to end: other servers keep theirs for the
    /// next leader. Those that run go on.
    pub fn resign(&self) {
        self.forwarded.end();
    }

    /// Whether this server leads and has resigned: no other one takes changes before it has ended.
    #[must_use]
    pub fn has_resigned(&self) -> bool {
        self.forwarded.is_ending() && self.voting.as_ref().is_none_or(Voting::leads)
    }

    /// Waits for the requests that other servers have sent on, for `time_max` at most.
    pub fn wait_for_forwarded(&self, time_max: Duration) {
        self.forwarded.wait_until_idle(time_max);
        // The last answers are on their way.
        std::thread::sleep(ANSWER_TIME.min(time_max));
    }

    /// Answers requests that other servers send on ([`Cluster::forward`]), from now on. The first call
    /// counts.
    pub fn on_forwarded(&self, answer: Forwarded) {
        self.forwarded.set(answer);
    }

    /// The server to which changes go: the one that takes them, or, at a server that does not vote, a voter,
    /// which knows it.
    #[must_use]
    pub fn taker(&self) -> Option<String> {
        let map = self.map();
        if self.takes_changes() {
            return Some(map.server.clone());
        }
        let name = match (&self.voting, &map.writer, &self.following) {
            (Some(voting), ..) => voting.leader(),
            (None, Some(writer), _) => Some(writer.clone()),
            (None, None, Some(following)) => following.source().map(str::to_owned),
            (None, None, None) => None,
        };
        name.filter(|name| {
            *name != map.server && !self.members.other(name).is_some_and(|other| other.is_ending())
        })
    }

    /// Sends a request of a client to a server, which may be this one, and returns its answer; an empty one:
    /// that server is about to end, and has changed nothing. Waits for the deadline of the thread at most.
    ///
    /// # Errors
    /// The outer one: the request was not sent. The inner one: there is no answer, so what has become of the
    /// request is unknown.
    pub fn forward(&self, server: &str, request: &[u8]) -> Result<Result<Vec<u8>>> {
        if server == self.map().server {
            return Ok(self.forwarded.answer(request));
        }
        let unknown = || Error::new(ErrorKind::Unavailable, format!("there is no server {server}"));
        let other = self.members.other(server).ok_or_else(unknown)?;
        let answer = other.part.peer().send(&[&[FORWARD], request].concat())?.receive();
        if answer.as_ref().is_ok_and(Vec::is_empty) {
            other.note_ending();
        }
        Ok(answer)
    }

    /// Waits until this server shows everything that was committed before the call, for `time_max` at most.
    ///
    /// # Errors
    /// Unsupported: it does not vote. Unavailable: no majority of the voters answers in time.
    pub fn catch_up(&self, time_max: Duration) -> Result<()> {
        let none = || Error::new(ErrorKind::Unsupported, "this server does not vote");
        self.voting.as_ref().ok_or_else(none)?.catch_up(time_max)
    }

    /// Merges the changes of the graph into the data of this server now, as it does by itself when they are
    /// many; `false`: there is nothing to merge. Where servers have different partitions, the others copy
    /// their share of the merged data later, and then all go on from them.
    ///
    /// # Errors
    /// Unsupported: the changes have no voters, or another server leads that merges for all. Io: nothing has
    /// changed.
    pub fn merge_changes(&self) -> Result<bool> {
        let none = || {
            Error::new(ErrorKind::Unsupported, "this server does not merge changes into its data")
                .with_hint("where voters take changes, servers do")
        };
        self.merging.as_ref().ok_or_else(none)?.merge()
    }

    /// What this server knows of the changes of the graph; `None`: it does not change.
    #[must_use]
    pub fn changes(&self) -> Option<ChangesStatus> {
        if let Some(voting) = &self.voting {
            return Some(voting.status());
        }
        match (&self.map().writer, &self.following) {
            (_, Some(following)) => Some(following.status()),
            (None, None) => None,
            (Some(writer), None) => Some(ChangesStatus {
                writer: writer.clone(),
                timestamp: self.database.snapshot().timestamp(),
                behind_bytes: 0,
                is_complete: true,
                failure: None,
                has_left: false,
                has_ended: false,
                merged: None,
                voters: None,
            }),
        }
    }

    /// The whole graph.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// The map at present.
    #[must_use]
    pub fn map(&self) -> Arc<ClusterMap> {
        self.members.map()
    }

    /// Where the files of this server are.
    pub(crate) fn place(&self) -> (&Environment, &Path) {
        (&self.place.0, &self.place.1)
    }

    /// The log of a voter.
    pub(crate) fn voter_log(&self) -> Option<LogStatus> {
        self.voting.as_ref().map(Voting::log_status)
    }

    /// What was sent to each other server and received, in the order of the map.
    #[must_use]
    pub fn counts(&self) -> Vec<(String, Counts)> {
        self.members
            .parts()
            .iter()
            .map(|peer| (peer.peer().name().to_owned(), peer.peer().counts()))
            .collect()
    }

    /// The state of each other server, in the order of the map, as pings in the background know it. Waits for
    /// no server.
    #[must_use]
    pub fn peers(&self) -> Vec<PeerStatus> {
        let status = |other: &Arc<Other>| PeerStatus {
            name: other.part.peer().name().to_owned(),
            unreachable: other.reachability.reason(),
            counts: other.part.peer().counts(),
            protocol: other.part.peer().protocol(),
        };
        self.members.others().iter().map(status).collect()
    }

    /// What this server has done for queries over all servers.
    #[must_use]
    pub fn query_counts(&self) -> ClusterCounts {
        self.driver.counts()
    }

    /// From now on threads of heavy work for other servers, and of nothing else, call this first, to lower
    /// their priority. The first call counts.
    pub fn on_heavy_task(&self, call: fn()) {
        self.driver.on_heavy_task(call);
    }

    /// The faults of the connections to another server, for tests.
    #[must_use]
    pub fn faults(&self, server: &str) -> Option<Arc<Faults>> {
        self.members.other(server).map(|other| other.part.peer().faults())
    }

    /// The faults of the connections between voters to another server, for tests.
    #[must_use]
    pub fn voting_faults(&self, server: &str) -> Option<Arc<Faults>> {
        self.members.other(server).map(|other| other.log.faults())
    }

    /// The state of all servers, of which each that does not answer within `timeout` is reported so. Asks all
    /// at once.
    #[must_use]
    pub fn status(&self, timeout: Duration) -> ClusterStatus {
        let deadline = Instant::now().checked_add(timeout).map(|end| (end, timeout));
        let ping = |peer: &PeerPart| {
            let _limits = ThreadLimits { deadline, ..ThreadLimits::default() }.enter();
            peer.ping()
        };
        let (map, peers) = (self.map(), self.members.parts());
        let answers = std::thread::scope(|scope| {
            let asked: Vec<_> = peers.iter().map(|peer| scope.spawn(move || ping(peer))).collect();
            let failed = |_| Err(Error::internal("a thread that asked a server has ended"));
            asked.into_iter().map(|thread| thread.join().unwrap_or_else(failed)).collect::<Vec<_>>()
        });
        let mut asked = peers.iter().zip(answers);
        let server = |entry: &ServerEntry| {
            let is_own = entry.name == map.server;
            let peer = if is_own { None } else { asked.find(|(peer, _)| peer.peer().name() == entry.name) };
            let counts = peer.as_ref().map(|(peer, _)| peer.peer().counts()).unwrap_or_default();
            let protocol = peer.as_ref().map(|(peer, _)| peer.peer().protocol());
            let protocol = protocol.unwrap_or(is_own.then_some(Protocol::NEWEST));
            let answers = peer.map_or(Ok(Duration::ZERO), |(_, answers)| answers);
            ServerStatus { entry: entry.clone(), is_own, answers, counts, protocol }
        };
        ClusterStatus {
            name: map.name.clone(),
            partitions: self.partitions,
            is_replicated: map.is_replicated(),
            replicas: map.replicas,
            statements: self.database.snapshot().statement_count(),
            changes: self.changes(),
            connections: self.server.connection_count(),
            servers: map.servers.iter().map(server).collect(),
        }
    }
}
