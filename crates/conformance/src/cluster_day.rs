//! The day of an operator: `cargo xtask cluster-day`.
//!
//! # Shape
//! Three processes of the program `vervet`, each with a vote and the whole graph, or some partitions of it;
//! clients that send updates and reads at a fixed rate, whatever becomes of those before (`clients.rs`); and
//! the commands that an operator types (`steps`): servers join, partitions are spread evenly over them,
//! each is ended and started again, one is killed and loses its disk, others leave, once others have their
//! partitions. Reads ask for everything that was committed
//! before (`Vervet-Consistency: strict`). A step fails if its command does, or if one of its requests does:
//! an update that is refused or whose outcome is unknown, a read without an answer, a read that lacks what
//! was acknowledged before. Allowed are updates and reads that were under way when a server was killed. At
//! the end every server must have every acknowledged update, and none that was refused.
//! # Upgrade
//! With [`Options::from`], the program of an earlier version, the day begins with servers of that version,
//! and the restart of each server becomes a rolling upgrade to the current program: one server is upgraded,
//! goes back, and is upgraded again; a backup is made of servers of both versions; the others are upgraded.
//! # Clients
//! As behind a load balancer: a request goes to a server that was ready when it was looked at last; one that
//! no server has received goes to the next one.

mod clients;
mod node;

use crate::Report;
use crate::voter_processes::{Http, LOOK_INTERVAL, NoAnswer, PATIENCE, program};
use clients::Clients;
use node::Node;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use vervet_cluster::MAP_FILE;
use vervet_model::lock;
use vervet_peer::Protocol;
use vervet_testkit::{Random, free_address};

/// Servers at the start.
const SERVERS: u32 = 3;

/// The host of all servers.
const HOST: &str = "127.0.0.1";

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Of all choices.
    pub seed: u64,
    /// Updates a second, of all clients; as many reads.
    pub rate: u32,
    /// Time between two commands.
    pub pause: Duration,
    /// Statements of the graph at the start.
    pub statements: u32,
    /// How many servers have each partition; as many as there are at the start: each has the whole graph.
    pub replicas: u32,
    /// The program `vervet` of the version with which the day begins; `None`: the current one.
    pub from: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            rate: 100,
            pause: Duration::from_secs(3),
            statements: 50_000,
            replicas: SERVERS,
            from: None,
        }
    }
}

/// What an operator does, and what it is called.
type Step = (&'static str, fn(&mut Day) -> Result<(), String>);

const BACKUP: Step = ("a backup is made", Day::back_up);

/// Servers of an earlier version do not join where others have other partitions.
const GROWTH: [Step; 2] =
    [("two servers join", Day::grow), ("partitions are spread evenly over all servers", Day::spread)];

const RESTART: [Step; 1] = [("each server is started again", Day::restart_each)];

/// In place of [`RESTART`] if the day begins with an earlier version.
const UPGRADE: [Step; 3] = [
    ("one server is upgraded, goes back, and is upgraded again", Day::upgrade_first),
    ("what is new is added to the backup, from servers of both versions", Day::back_up),
    ("the other servers are upgraded", Day::upgrade_others),
];

const LAST_STEPS: [Step; 8] = [
    ("the leader is killed, loses its disk, and takes its place again", Day::replace_leader),
    ("two servers leave", Day::shrink),
    ("what is new is added to the backup", Day::back_up),
    ("the leader is started again", Day::restart_leader),
    ("a follower is killed and started again", Day::kill_follower),
    ("the leader leaves, and another server joins", Day::exchange_leader),
    ("the graphs of all backups are restored elsewhere", Day::restore),
    ("all servers have everything", Day::compare),
];

/// The steps of a day, in their order.
fn steps(options: &Options) -> Vec<Step> {
    let middle = if options.from.is_some() { &UPGRADE[..] } else { &RESTART[..] };
    let (is_spread, growth) = (options.is_spread(), &GROWTH[..if options.is_spread() { 2 } else { 1 }]);
    let parts = match is_spread && options.from.is_some() {
        true => [&[BACKUP], middle, growth, &LAST_STEPS],
        false => [&[BACKUP], growth, middle, &LAST_STEPS],
    };
    parts.concat()
}

impl Options {
    /// Servers have different partitions.
    fn is_spread(&self) -> bool {
        self.replicas < SERVERS
    }
}

/// A point of the backup.
struct Backup {
    /// The last commit in it.
    commit: String,
    /// Updates that were acknowledged before it began, and the number of the first one sent after it.
    range: (BTreeSet<u64>, u64),
}

struct Day {
    /// The program of commands and of new servers.
    program: PathBuf,
    folder: tempfile::TempDir,
    nodes: Vec<Arc<Node>>,
    clients: Arc<Clients>,
    backups: Vec<Backup>,
    random: Random,
    options: Options,
}

/// Runs the day.
///
/// # Errors
/// The program `vervet` is missing; the cluster cannot be made. Wrong behaviour is a failure in the report.
pub fn run(options: &Options, report: &mut Report) -> Result<(), String> {
    println!("seed {}, {} updates and {} reads a second", options.seed, options.rate, options.rate);
    if let Some(from) = &options.from {
        println!("from {} to {}", version(from)?, version(&program()?)?);
    }
    let mut day = Day::begin(options)?;
    let clients = Arc::clone(&day.clients);
    std::thread::scope(|scope| {
        clients.start(scope, options.rate, options.seed);
        for (name, step) in steps(options) {
            let (begun, before) = (Instant::now(), clients.counts());
            std::thread::sleep(options.pause);
            let done = step(&mut day);
            std::thread::sleep(options.pause);
            let counts = clients.counts().since(&before);
            let outcome = done.and_then(|()| clients.verdict());
            println!(
                "{} {name}: {:.1} s, {counts}",
                if outcome.is_ok() { "ok    " } else { "FAILED" },
                begun.elapsed().as_secs_f64()
            );
            let is_right = outcome.is_ok();
            report.add("day", &format!("seed {}: {name}", options.seed), outcome);
            if !is_right {
                day.folder.disable_cleanup(true);
                println!("the files of the servers are in {}", day.folder.path().display());
                break;
            }
        }
        clients.end();
    });
    Ok(())
}

/// What a program says about its version.
fn version(program: &Path) -> Result<String, String> {
    let failed = |reason: &dyn std::fmt::Display| format!("{}: {reason}", program.display());
    let done = Command::new(program).arg("--version").output().map_err(|error| failed(&error))?;
    let text = String::from_utf8_lossy(&done.stdout).lines().next().unwrap_or_default().to_owned();
    if done.status.success() { Ok(text) } else { Err(failed(&"it does not say its version")) }
}

impl Day {
    fn begin(options: &Options) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| format!("could not make the cluster: {error}");
        let program = options.from.clone().map_or_else(program, Ok)?;
        let folder = tempfile::tempdir().map_err(|error| failed(&error))?;
        let statement = |number| {
            format!("<urn:v{number}> <urn:next> <urn:v{}> .\n", (number * 7 + 1) % options.statements)
        };
        let text: String = (0..options.statements).map(statement).collect();
        let (data, servers) = (folder.path().join("data.nt"), folder.path().join("servers"));
        std::fs::write(&data, text).map_err(|error| failed(&error))?;
        let mut day = Self {
            program,
            folder,
            nodes: Vec::new(),
            clients: Arc::new(Clients::new(&[])),
            backups: Vec::new(),
            random: Random(options.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            options: options.clone(),
        };
        let (data, place) = (Self::text(&data), Self::text(&servers));
        let (servers_text, replicas) = (SERVERS.to_string(), options.replicas.to_string());
        let made = ["cluster", "init", &place, "--data", &data, "--servers", &servers_text];
        let shape = ["--replicas", &replicas, "--voters", &servers_text, "--host", HOST, "--port", "7900"];
        day.command(&[&made[..], &shape].concat())?;
        // The map is changed as a text: an earlier version may not read one that the current version writes.
        let addresses: Vec<_> = (0..3).map(|_| (free_address(), free_address())).collect();
        for (name, (_, http)) in ["a", "b", "c"].iter().zip(&addresses) {
            let directory = servers.join(name);
            let map = directory.join(MAP_FILE);
            let mut text = std::fs::read_to_string(&map).map_err(|error| failed(&error))?;
            for (at, (address, http)) in addresses.iter().enumerate() {
                text = text.replace(&format!("\"{HOST}:{}\"", 7900 + at), &format!("\"{address}\""));
                text = text.replace(&format!("\"{HOST}:{}\"", 7878 + at), &format!("\"{http}\""));
            }
            std::fs::write(&map, text).map_err(|error| failed(&error))?;
            day.nodes.push(Node::new(name, http.clone(), directory, &day.program));
        }
        day.clients.set(&day.nodes);
        day.nodes.iter().try_for_each(|node| day.spawn(node))?;
        day.nodes.iter().try_for_each(|node| day.wait_until_ready(node))?;
        Ok(day)
    }

    fn log(&self, node: &Node) -> PathBuf {
        self.folder.path().join(format!("{}.log", node.name))
    }

    fn spawn(&self, node: &Node) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("could not start server {}: {error}", node.name);
        let log = File::options().create(true).append(true).open(self.log(node)).map_err(failed)?;
        let mut command = Command::new(&*lock(&node.program));
        command.args(["serve", "--cluster"]).arg(&node.directory);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        *lock(&node.process) = Some(command.spawn().map_err(failed)?);
        Ok(())
    }

    /// Waits until a server is ready, and lets requests go to it.
    fn wait_until_ready(&self, node: &Node) -> Result<(), String> {
        let (http, begun) = (Http::new(PATIENCE), Instant::now());
        loop {
            let reason = match http.get(&node.http, "/ready") {
                Ok((200, _)) => break,
                Ok((_, reason)) | Err(NoAnswer::Lost(reason)) => reason,
                Err(NoAnswer::NotSent) => "it does not listen".to_owned(),
            };
            if begun.elapsed() > PATIENCE {
                let log = std::fs::read_to_string(self.log(node)).unwrap_or_default();
                let last = log.lines().rev().take(5).collect::<Vec<_>>().join("\n");
                return Err(format!("server {} does not become ready: {reason}\n{last}", node.name));
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
        node.rotate(true);
        Ok(())
    }

    /// No new requests go to a server, and those under way have time to end.
    fn drain(node: &Node) {
        node.rotate(false);
        std::thread::sleep(Duration::from_millis(200));
    }

    /// Ends a server as a service manager does, once no new requests go to it.
    fn end(&self, node: &Node) -> Result<(), String> {
        Self::drain(node);
        let id = lock(&node.process).as_ref().map(Child::id);
        let id = id.ok_or_else(|| format!("server {} has no process", node.name))?;
        let sent = Command::new("sh").args(["-c", &format!("kill -TERM {id}")]).status();
        sent.map_err(|error| error.to_string())?;
        let begun = Instant::now();
        loop {
            let ended = lock(&node.process).as_mut().map(Child::try_wait);
            match ended {
                Some(Ok(None)) if begun.elapsed() < PATIENCE => std::thread::sleep(LOOK_INTERVAL),
                Some(Ok(Some(status))) if status.success() => break,
                other => return Err(format!("server {} does not end: {other:?}", node.name)),
            }
        }
        *lock(&node.process) = None;
        Ok(())
    }

    fn kill(&self, node: &Node) {
        self.clients.note_kill();
        if let Some(mut process) = lock(&node.process).take() {
            let _ = process.kill();
            let _ = process.wait();
        }
        self.clients.note_kill();
        node.rotate(false);
    }

    /// Runs a command of the program.
    fn command(&self, arguments: &[&str]) -> Result<String, String> {
        let done = Command::new(&self.program).args(arguments).stdin(Stdio::null()).output();
        let done = done.map_err(|error| error.to_string())?;
        if !done.status.success() {
            let reason = String::from_utf8_lossy(&done.stderr);
            return Err(format!("vervet {}: {reason}", arguments.join(" ")));
        }
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }

    /// The server that takes changes.
    fn leader(&self) -> Result<Arc<Node>, String> {
        let (http, begun) = (Http::new(PATIENCE), Instant::now());
        loop {
            for node in &self.nodes {
                if let Ok((200, text)) = http.get(&node.http, "/cluster")
                    && let Ok(status) = serde_json::from_str::<serde_json::Value>(&text)
                    && let Some(name) = status["changes"]["voters"]["leader"].as_str()
                    && let Some(leader) = self.nodes.iter().find(|node| node.name == name)
                {
                    return Ok(Arc::clone(leader));
                }
            }
            if begun.elapsed() > PATIENCE {
                return Err("no server says who leads".to_owned());
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    fn any(&mut self) -> Arc<Node> {
        let at = usize::try_from(self.random.below(self.nodes.len() as u64)).unwrap_or(0);
        Arc::clone(&self.nodes[at])
    }

    fn text(path: &Path) -> String {
        path.display().to_string()
    }

    fn join(&mut self, name: &str) -> Result<(), String> {
        let (by, address, http) = (self.any(), free_address(), free_address());
        let directory = Self::text(&by.directory);
        self.command(&["cluster", "invite", &directory, name, "--address", &address, "--http", &http])?;
        let node = Node::new(name, http, by.directory.with_file_name(name), &self.program);
        self.spawn(&node)?;
        self.wait_until_ready(&node)?;
        self.nodes.push(node);
        self.clients.set(&self.nodes);
        Ok(())
    }

    fn leave(&mut self, node: &Arc<Node>) -> Result<(), String> {
        let by = self.nodes.iter().find(|other| other.name != node.name).ok_or("there is no other server")?;
        if self.options.is_spread() {
            self.command(&["cluster", "drain", &Self::text(&by.directory), &node.name])?;
        }
        // It shows nothing new once it has left.
        Self::drain(node);
        self.command(&["cluster", "remove", &Self::text(&by.directory), &node.name])?;
        self.end(node)?;
        self.nodes.retain(|other| other.name != node.name);
        self.clients.set(&self.nodes);
        Ok(())
    }

    fn restart(&self, node: &Node) -> Result<(), String> {
        self.end(node)?;
        self.spawn(node)?;
        self.wait_until_ready(node)
    }

    fn grow(&mut self) -> Result<(), String> {
        self.join("d")?;
        self.join("e")
    }

    fn spread(&mut self) -> Result<(), String> {
        let by = self.any();
        self.command(&["cluster", "rebalance", &Self::text(&by.directory)])?;
        let is_even = |servers: &[serde_json::Value]| {
            let sizes = || servers.iter().filter_map(|server| Some(server["partitions"].as_array()?.len()));
            sizes().max() <= sizes().min().map(|least| least + 1)
        };
        self.nodes.iter().try_for_each(|node| self.wait_for_servers(node, "even partitions", is_even))
    }

    fn restart_each(&mut self) -> Result<(), String> {
        for node in self.nodes.clone() {
            self.restart(&node)?;
            std::thread::sleep(self.options.pause / 3);
        }
        Ok(())
    }

    /// Starts a server again as another version.
    fn restart_as(&self, node: &Node, program: &Path) -> Result<(), String> {
        program.clone_into(&mut lock(&node.program));
        self.restart(node)?;
        std::thread::sleep(self.options.pause / 3);
        Ok(())
    }

    fn upgrade_first(&mut self) -> Result<(), String> {
        // From now on commands are those of the current version.
        let before = std::mem::replace(&mut self.program, program()?);
        let node = self.any();
        self.restart_as(&node, &self.program)?;
        self.restart_as(&node, &before)?;
        self.restart_as(&node, &self.program)
    }

    fn upgrade_others(&mut self) -> Result<(), String> {
        for node in self.nodes.clone() {
            if *lock(&node.program) != self.program {
                self.restart_as(&node, &self.program)?;
            }
        }
        self.nodes.iter().try_for_each(|node| self.wait_for_newest_protocol(node))
    }

    /// Waits until a server agrees with all others on the newest protocol.
    fn wait_for_newest_protocol(&self, node: &Node) -> Result<(), String> {
        let newest = u64::from(Protocol::NEWEST.number());
        let has_newest = |servers: &[serde_json::Value]| {
            servers.iter().all(|server| server["protocol"].as_u64() == Some(newest))
        };
        self.wait_for_servers(node, &format!("protocol {newest} with all others"), has_newest)
    }

    /// Waits until a server knows all servers, and says of them what is expected.
    fn wait_for_servers(
        &self,
        node: &Node,
        what: &str,
        is_so: impl Fn(&[serde_json::Value]) -> bool,
    ) -> Result<(), String> {
        let (http, begun) = (Http::new(PATIENCE), Instant::now());
        loop {
            let Ok((200, text)) = http.get(&node.http, "/cluster") else {
                return Err(format!("server {} does not say its state", node.name));
            };
            let status: serde_json::Value =
                serde_json::from_str(&text).map_err(|error| format!("server {}: {error}", node.name))?;
            let servers = status["servers"].as_array().map(Vec::as_slice).unwrap_or_default();
            if servers.len() == self.nodes.len() && is_so(servers) {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("server {} has not {what}: {text}", node.name));
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    fn replace_leader(&mut self) -> Result<(), String> {
        let leader = self.leader()?;
        self.kill(&leader);
        std::thread::sleep(self.options.pause);
        let kept = ["cluster.toml", "authority.pem", "certificate.pem", "key.pem"];
        let entries = std::fs::read_dir(&leader.directory).map_err(|error| error.to_string())?;
        for entry in entries.flatten().filter(|entry| !kept.iter().any(|kept| entry.file_name() == *kept)) {
            let path = entry.path();
            let removed =
                if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            removed.map_err(|error| error.to_string())?;
        }
        self.command(&["cluster", "rejoin", &Self::text(&leader.directory)])?;
        self.spawn(&leader)?;
        self.wait_until_ready(&leader)
    }

    fn shrink(&mut self) -> Result<(), String> {
        let leader = self.leader()?;
        let followers: Vec<_> = self.nodes.iter().filter(|node| node.name != leader.name).cloned().collect();
        followers.iter().take(2).try_for_each(|node| self.leave(node))
    }

    fn restart_leader(&mut self) -> Result<(), String> {
        let leader = self.leader()?;
        self.restart(&leader)
    }

    fn kill_follower(&mut self) -> Result<(), String> {
        let leader = self.leader()?;
        let follower =
            self.nodes.iter().find(|node| node.name != leader.name).ok_or("there is no follower")?;
        self.kill(follower);
        std::thread::sleep(self.options.pause);
        self.spawn(follower)?;
        self.wait_until_ready(follower)
    }

    fn exchange_leader(&mut self) -> Result<(), String> {
        let leader = self.leader()?;
        self.leave(&leader)?;
        self.join("f")?;
        if self.options.is_spread() { self.spread() } else { Ok(()) }
    }

    fn back_up(&mut self) -> Result<(), String> {
        let (by, backup) = (self.any(), Self::text(&self.folder.path().join("backup")));
        let acknowledged = self.clients.acknowledged();
        let said = self.command(&["cluster", "backup", &Self::text(&by.directory), &backup])?;
        let commit = said.split_once("commit ").and_then(|(_, rest)| rest.split_once(','));
        let (commit, _) = commit.ok_or_else(|| format!("the backup names no commit: {said}"))?;
        self.backups.push(Backup { commit: commit.to_owned(), range: (acknowledged, self.clients.sent()) });
        Ok(())
    }

    fn restore(&mut self) -> Result<(), String> {
        let path = |name: String| Self::text(&self.folder.path().join(name));
        let backup = path("backup".to_owned());
        self.command(&["check", &backup])?;
        for (number, Backup { commit, range: (acknowledged, end) }) in self.backups.iter().enumerate() {
            let (database, cluster) = (path(format!("restored-{number}")), path(format!("cluster-{number}")));
            self.command(&["cluster", "restore", &backup, &database, "--until", commit, "--database"])?;
            let query = "SELECT ?s { ?s <urn:is> ?o }";
            let found = self.command(&["query", &database, query, "--format", "csv"])?;
            let found = clients::numbers(&found);
            if let Some(lost) = acknowledged.difference(&found).next() {
                return Err(format!("commit {commit} lacks update {lost}, acknowledged before its backup"));
            }
            if let Some(later) = found.range(end..).next() {
                return Err(format!("commit {commit} has update {later}, sent after its backup"));
            }
            let shape = ["--servers", "2", "--replicas", "2", "--voters", "2"];
            let made = [&["cluster", "restore", &backup, &cluster, "--until", commit], &shape[..]].concat();
            self.command(&made)?;
            self.command(&["check", &format!("{cluster}/b")])?;
        }
        Ok(())
    }

    fn compare(&mut self) -> Result<(), String> {
        self.clients.end();
        let (http, begun) = (Http::new(PATIENCE), Instant::now());
        for node in &self.nodes {
            loop {
                let found = http.query(&node.http, "SELECT ?s { ?s <urn:is> ?o }")?;
                match self.clients.compare(&found) {
                    Ok(()) => break,
                    Err(reason) if begun.elapsed() > PATIENCE => {
                        return Err(format!("server {}: {reason}", node.name));
                    }
                    Err(_) => std::thread::sleep(LOOK_INTERVAL),
                }
            }
        }
        Ok(())
    }
}
