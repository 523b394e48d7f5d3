//! What an operator does in an episode: servers join and leave, partitions move, and a server that has lost
//! its disk takes its place again. One thing at a time, with the calls of `vervet cluster`.

use crate::machine::{Node, with};
use crate::server::Server;
use crate::telling::tell;
use crate::transaction::{Answer, Request};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use vervet::{DatabaseOptions, Environment, Error, ErrorKind};
use vervet_cluster::{InviteOptions, Rebalance, invite, rebalance, rejoin, remove};
use vervet_model::lock;
use vervet_testkit::Random;

const SECOND: u64 = 1_000_000_000;

/// Most servers of an episode, those that have left included.
const SERVERS_MAX: usize = 9;

/// Most servers at a time: one fewer than `vervet-raft` allows, since the map of the server that invites may
/// still have one that has left.
const SERVERS_AT_A_TIME_MAX: usize = 6;

/// Fewest servers that are left.
const SERVERS_MIN: usize = 3;

/// Partitions of a cluster whose servers have different ones.
pub(crate) const PARTITIONS: usize = 8;

/// What a command has come to.
type Outcome = Arc<Mutex<Option<Result<(), Error>>>>;

/// A command at work.
enum Work {
    /// The server is to get a vote.
    Joining(usize),
    Leaving(usize, Outcome),
    Rejoining(usize, Outcome),
    Moving(Outcome),
}

/// The kinds in the order of [`Operator::counts`].
pub(crate) const WORKS: [&str; 4] =
    ["servers that joined", "that left", "that lost their disk", "moves of partitions"];

/// See the header of this file.
pub(crate) struct Operator {
    random: Random,
    work: Option<Work>,
    next: u64,
    /// Where the directories of servers are.
    folder: PathBuf,
    /// Servers have different partitions.
    is_shared_out: bool,
    /// Others have what is on a disk.
    loses_disks: bool,
    pub(crate) counts: [u64; WORKS.len()],
    tells: bool,
}

fn now() -> u64 {
    with(|world| world.now())
}

/// Runs a command in a thread, on the machine of `node`.
fn begin(node: Node, command: impl FnOnce() -> Result<(), Error> + Send + 'static) -> Outcome {
    let outcome = Outcome::default();
    let told = Arc::clone(&outcome);
    crate::machine::move_to(node);
    let started = std::thread::Builder::new().spawn(move || {
        let done = command();
        *lock(&told) = Some(done);
    });
    crate::machine::move_to(0);
    started.expect("a thread");
    outcome
}

fn take(outcome: &Outcome) -> Option<Result<(), Error>> {
    lock(outcome).take()
}

/// Whether the others have this server as a voter, as one of them says.
fn votes(servers: &[Server], name: &str) -> bool {
    let others = servers.iter().filter(|server| server.name != name);
    others.filter_map(|server| server.life.as_ref()).any(|life| {
        let answer = life.ask(Request::Voters, SECOND / 5);
        matches!(answer, Some(Answer::Voters(voters)) if voters.iter().any(|voter| voter == name))
    })
}

impl Operator {
    /// `is_shared_out`: servers have different partitions. `loses_disks`: others have what is on a disk.
    pub(crate) fn new(
        seed: u64,
        folder: PathBuf,
        (is_shared_out, loses_disks): (bool, bool),
        tells: bool,
    ) -> Self {
        let mut random = Random(seed | 1);
        let next = random.below(SECOND);
        let counts = [0; WORKS.len()];
        Self { random, work: None, next, folder, is_shared_out, loses_disks, counts, tells }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.work.is_none()
    }

    /// Goes on with what is begun; begins something new if `begins`. `leader`: the server that leads, if it
    /// is known.
    pub(crate) fn step(
        &mut self,
        servers: &mut Vec<Server>,
        leader: Option<usize>,
        begins: bool,
    ) -> Result<(), String> {
        let Some(work) = self.work.take() else {
            if begins && now() >= self.next {
                self.next = now() + self.random.below(2 * SECOND);
                self.work = self.begin(servers, leader)?;
            }
            return Ok(());
        };
        self.work = match work {
            Work::Joining(at) if votes(servers, &servers[at].name) && servers[at].is_ready() => None,
            Work::Joining(at) => {
                // It has found no other server that has data.
                if servers[at].life.as_ref().is_some_and(|life| life.failure().is_some()) {
                    servers[at].kill(false, false);
                    servers[at].start();
                }
                Some(Work::Joining(at))
            }
            Work::Leaving(at, outcome) => match take(&outcome) {
                None => Some(Work::Leaving(at, outcome)),
                // Once it is removed, the others do not know it. One of them may not know it yet, if it has
                // joined a moment before.
                Some(done)
                    if done.as_ref().err().is_none_or(|error| {
                        error.kind() == ErrorKind::Input && !votes(servers, &servers[at].name)
                    }) =>
                {
                    servers[at].kill(false, false);
                    servers[at].is_gone = true;
                    None
                }
                Some(_) => Some(self.leave(servers, at, SECOND)),
            },
            // One that has failed has changed nothing, or will have.
            Work::Moving(outcome) => match take(&outcome) {
                None => Some(Work::Moving(outcome)),
                Some(done) => {
                    if let (true, Err(error)) = (self.tells, &done) {
                        tell(&format!("partitions do not move: {error}"));
                    }
                    None
                }
            },
            Work::Rejoining(at, outcome) => match take(&outcome) {
                None if servers[at].is_held => Some(Work::Rejoining(at, outcome)),
                None if votes(servers, &servers[at].name) && servers[at].is_ready() => None,
                None => Some(Work::Rejoining(at, outcome)),
                Some(Ok(())) => {
                    servers[at].is_held = false;
                    servers[at].start();
                    Some(Work::Rejoining(at, outcome))
                }
                Some(Err(error)) if error.kind() == ErrorKind::Unavailable => {
                    if self.tells {
                        tell(&format!("server {at} does not take its place again yet: {error}"));
                    }
                    Some(self.take_place(servers, at, SECOND))
                }
                Some(Err(error)) => return Err(format!("a server did not take its place again: {error}")),
            },
        };
        Ok(())
    }

    fn begin(&mut self, servers: &mut Vec<Server>, leader: Option<usize>) -> Result<Option<Work>, String> {
        let present: Vec<usize> =
            (0..servers.len()).filter(|at| !servers[*at].is_gone && servers[*at].life.is_some()).collect();
        let all = servers.iter().filter(|server| !server.is_gone).count();
        if present.is_empty() {
            return Ok(None);
        }
        // New data are at the leader alone at first.
        let leader = leader.filter(|at| self.is_shared_out && present.contains(at) && self.random.one_in(2));
        let at = leader.unwrap_or_else(|| self.random.pick(&present));
        let kind = self.random.below(4);
        let work = match kind {
            0 if servers.len() < SERVERS_MAX && all < SERVERS_AT_A_TIME_MAX => self.join(servers, at)?,
            1 if all > SERVERS_MIN => self.leave(servers, at, 0),
            3 if self.is_shared_out => {
                let directory = servers[at].directory.clone();
                let to = servers[self.random.pick(&present)].name.clone();
                let of = if self.random.one_in(2) {
                    Rebalance::Evenly { replicas: None }
                } else {
                    let partitions = vec![usize::try_from(self.random.next()).unwrap_or(0) % PARTITIONS];
                    Rebalance::Move { partitions, from: None, to }
                };
                Work::Moving(begin(0, move || rebalance(&directory, &of, &mut |_| {}).map(drop)))
            }
            2 if self.loses_disks => {
                servers[at].kill(true, false);
                servers[at].is_held = true;
                let whole = self.random.one_in(2);
                servers[at].lose_disk(self.random.next(), whole)?;
                let wait = self.random.below(SECOND);
                self.take_place(servers, at, wait)
            }
            _ => return Ok(None),
        };
        let kind = usize::try_from(kind).unwrap_or(0);
        self.counts[kind] += 1;
        if self.tells {
            tell(&format!("operator: {} (from server {at})", WORKS[kind]));
        }
        Ok(Some(work))
    }

    fn join(&mut self, servers: &mut Vec<Server>, host: usize) -> Result<Work, String> {
        let at = servers.len();
        let name = format!("n{at}");
        let directory = self.folder.join(&name);
        let options =
            InviteOptions { name: name.clone(), address: format!("10.0.0.{}:7000", at + 1), http: None };
        let key = self.folder.join(vervet_cluster::AUTHORITY_KEY_FILE);
        let host: &Path = &servers[host].directory;
        invite(&Environment::real(), host, &key, &options, &directory)
            .map_err(|error| format!("a server was not invited: {error}"))?;
        let rate = 970 + self.random.below(61);
        let server = Server::new(name, directory, self.random.next(), rate);
        servers.push(server.map_err(|error| format!("no disk was made: {error}"))?);
        servers[at].start();
        Ok(Work::Joining(at))
    }

    fn leave(&self, servers: &[Server], at: usize, wait: u64) -> Work {
        let name = servers[at].name.clone();
        // Any other one that is there; the command asks those in its map.
        let host = servers.iter().find(|server| !server.is_gone && server.name != name && !server.is_held);
        let directory = host.map_or_else(|| servers[at].directory.clone(), |host| host.directory.clone());
        let is_shared_out = self.is_shared_out;
        let outcome = begin(0, move || {
            std::thread::sleep(std::time::Duration::from_nanos(wait));
            if is_shared_out {
                let drained = rebalance(&directory, &Rebalance::Drain { server: name.clone() }, &mut |_| {});
                // One that is removed already is not known.
                drained?;
            }
            remove(&directory, &name)
        });
        Work::Leaving(at, outcome)
    }

    fn take_place(&self, servers: &[Server], at: usize, wait: u64) -> Work {
        let directory = servers[at].directory.clone();
        let environment = servers[at].disk.environment();
        let outcome = begin(0, move || {
            std::thread::sleep(std::time::Duration::from_nanos(wait));
            let options = DatabaseOptions { environment, ..DatabaseOptions::default() };
            rejoin(&directory, &options, &|_, _| {}).map(drop)
        });
        Work::Rejoining(at, outcome)
    }
}
