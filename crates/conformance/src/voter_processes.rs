//! Processes of the program `vervet` that elect a leader, and requests to them over HTTP.
//!
//! A process ends with the value that has it, and also when this program is killed: beside each runs a shell
//! that waits for the end of a pipe, and then kills the process (`guard`).

use crate::cluster;
use crate::relay::Relays;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use vervet::Database;
use vervet_cluster::{ClusterMap, InitOptions, MAP_FILE, init};
use vervet_model::{Watch, lock};
use vervet_testkit::free_address;

/// The program `vervet`, beside that of this process.
///
/// # Errors
/// It is not there.
pub fn program() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let program = own.with_file_name(format!("vervet{}", std::env::consts::EXE_SUFFIX));
    let missing = || format!("{} is missing: cargo build --release -p vervet-cli", program.display());
    if program.is_file() { Ok(program) } else { Err(missing()) }
}

/// Number of servers. All vote, and each has the whole graph.
pub const SERVERS: usize = 3;

/// Partitions of servers that do not have the whole graph each.
const PARTITIONS: usize = 8;

/// Longest wait for something that has to happen.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Time between two looks at something that has to happen.
pub const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// Longest answer.
const ANSWER_BYTES_MAX: u64 = 1 << 30;

/// Why a request has no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoAnswer {
    /// Nothing listens: the request was not sent.
    NotSent,
    /// It may have been sent; the reason.
    Lost(String),
}

/// Sends requests, over connections that it keeps.
#[derive(Debug)]
pub struct Http(ureq::Agent);

impl Http {
    /// `time_max`: of a whole request.
    #[must_use]
    pub fn new(time_max: Duration) -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(time_max))
            .max_redirects(0)
            .proxy(None)
            .http_status_as_error(false)
            .build();
        Self(ureq::Agent::new_with_config(config))
    }

    /// Status and text of the answer to a `GET`.
    ///
    /// # Errors
    /// No answer within the time.
    pub fn get(&self, address: &str, path: &str) -> Result<(u16, String), NoAnswer> {
        answer(self.0.get(format!("http://{address}{path}")).call())
    }

    /// Status and text of the answer to an update.
    ///
    /// # Errors
    /// No answer within the time; the update may have had an effect.
    pub fn update(&self, address: &str, text: &str) -> Result<(u16, String), NoAnswer> {
        let request = self.0.post(format!("http://{address}/update"));
        answer(request.header("content-type", "application/sparql-update").send(text))
    }

    /// Status and text, as CSV, of the answer to a query that sees everything that was committed before it.
    ///
    /// # Errors
    /// No answer within the time.
    pub fn strict_query(&self, address: &str, text: &str) -> Result<(u16, String), NoAnswer> {
        let request = self.0.post(format!("http://{address}/query"));
        let request = request.header("content-type", "application/sparql-query").header("accept", "text/csv");
        answer(request.header("vervet-consistency", "strict").send(text))
    }

    /// The answer to a query, as CSV.
    ///
    /// # Errors
    /// No answer, or one with an error; the reason.
    pub fn query(&self, address: &str, text: &str) -> Result<String, String> {
        let request = self.0.post(format!("http://{address}/query"));
        let request = request.header("content-type", "application/sparql-query").header("accept", "text/csv");
        match answer(request.send(text)) {
            Ok((200, text)) => Ok(text),
            Ok((status, text)) => Err(format!("{status}: {text}")),
            Err(NoAnswer::NotSent) => Err("nothing listens".to_owned()),
            Err(NoAnswer::Lost(reason)) => Err(reason),
        }
    }
}

fn answer(sent: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<(u16, String), NoAnswer> {
    let mut response = sent.map_err(|error| match error {
        ureq::Error::ConnectionFailed | ureq::Error::Timeout(ureq::Timeout::Connect) => NoAnswer::NotSent,
        ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => NoAnswer::NotSent,
        error => NoAnswer::Lost(error.to_string()),
    })?;
    let status = response.status().as_u16();
    let text = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
    text.map(|text| (status, text)).map_err(|error| NoAnswer::Lost(error.to_string()))
}

/// One server.
#[derive(Debug)]
pub struct Server {
    /// Its name in the map of the cluster.
    pub name: String,
    /// Where it answers clients.
    pub address: String,
    directory: PathBuf,
    /// Its process; `None`: it was killed.
    process: Mutex<Option<Process>>,
    /// Number of its kills and starts: odd from a start, once it is ready, until the next kill.
    changes: AtomicU64,
}

/// A process, and the shell that ends it if this program is killed.
#[derive(Debug)]
struct Process {
    server: Child,
    guard: Child,
}

impl Drop for Process {
    fn drop(&mut self) {
        // The guard first, while the id of the server is surely its own.
        for child in [&mut self.guard, &mut self.server] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Kills the process with this id at the end of its input, which is that of this program.
fn guard(id: u32) -> std::io::Result<Child> {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("read _; kill -KILL {id}")]);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

impl Server {
    /// A number that changes with each kill and each start of the server; `None`: it is not ready.
    #[must_use]
    pub fn period(&self) -> Option<u64> {
        // SeqCst: a reader compares it before and after a request with a kill in between.
        Some(self.changes.load(Ordering::SeqCst)).filter(|changes| changes % 2 == 1)
    }
}

/// The processes of a cluster, which end with this value.
#[derive(Debug)]
pub struct Servers {
    program: PathBuf,
    /// The servers, in the order of the map.
    pub servers: Vec<Server>,
    /// Their connections to each other, if these go through this process.
    relays: Option<Relays>,
    folder: tempfile::TempDir,
}

impl Servers {
    /// Makes a cluster of [`SERVERS`] with this graph, starts its servers, and waits until they are ready.
    ///
    /// # Errors
    /// The files cannot be written; a process does not start, or is not ready within [`PATIENCE`].
    pub fn start(program: &Path, database: &Database) -> Result<Self, String> {
        Self::make(program, database, SERVERS, false)
    }

    /// As [`Servers::start`], with so many servers, whose connections to each other go through [`Relays`].
    ///
    /// # Errors
    /// As [`Servers::start`].
    pub fn start_with_relays(program: &Path, database: &Database, count: usize) -> Result<Self, String> {
        Self::make(program, database, count, true)
    }

    fn make(program: &Path, database: &Database, count: usize, with_relays: bool) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| format!("could not make the cluster: {error}");
        let folder = tempfile::tempdir().map_err(|error| failed(&error))?;
        // Without a choice each has the whole graph.
        let replicas = cluster::replicas().unwrap_or(count);
        let partitions = if replicas == count { 1 } else { PARTITIONS };
        let mut options = InitOptions::on_host(count, partitions, "127.0.0.1", (0, 0));
        options.voters = options.servers.iter().map(|server| server.name.clone()).collect();
        options.replicas = replicas;
        for server in &mut options.servers {
            (server.address, server.http) = (free_address(), Some(free_address()));
        }
        let place = folder.path().join("servers");
        let directories = init(database, &options, &place, &Watch::new("chaos"));
        let directories = directories.map_err(|error| failed(&error))?;
        let mut relays = None;
        if with_relays {
            let real: Vec<String> = options.servers.iter().map(|server| server.address.clone()).collect();
            let started = Relays::start(&real).map_err(|error| failed(&error))?;
            for (at, directory) in directories.iter().enumerate() {
                through_relays(directory, at, &started).map_err(|error| failed(&error))?;
            }
            relays = Some(started);
        }
        let server = |(entry, directory): (vervet_cluster::ServerEntry, PathBuf)| Server {
            name: entry.name,
            address: entry.http.unwrap_or_default(),
            directory,
            process: Mutex::default(),
            changes: AtomicU64::new(0),
        };
        let servers = options.servers.into_iter().zip(directories).map(server).collect();
        let servers = Self { program: program.to_owned(), servers, relays, folder };
        (0..count).try_for_each(|at| servers.spawn(at))?;
        (0..count).try_for_each(|at| servers.wait_until_ready(at))?;
        Ok(servers)
    }

    /// The connections of the servers to each other, if they go through this process.
    #[must_use]
    pub fn relays(&self) -> Option<&Relays> {
        self.relays.as_ref()
    }

    /// Keeps the files of the servers, and returns their folder.
    pub fn keep(&mut self) -> &Path {
        self.folder.disable_cleanup(true);
        self.folder.path()
    }

    /// Kills a server at once, as by the loss of its process.
    pub fn kill(&self, at: usize) {
        let server = &self.servers[at];
        server.changes.fetch_add(1, Ordering::SeqCst);
        drop(lock(&server.process).take());
    }

    /// Starts a killed server again, and waits until it is ready.
    ///
    /// # Errors
    /// It ends, or is not ready within [`PATIENCE`].
    pub fn start_again(&self, at: usize) -> Result<(), String> {
        self.spawn(at)?;
        self.wait_until_ready(at)
    }

    /// Sends a signal to a server by its name, such as `STOP`.
    ///
    /// # Errors
    /// The server has no process.
    pub fn signal(&self, at: usize, name: &str) -> Result<(), String> {
        let server = &self.servers[at];
        let id = lock(&server.process).as_ref().map(|process| process.server.id());
        let id = id.ok_or_else(|| format!("server {} has no process", server.name))?;
        let done = Command::new("sh").args(["-c", &format!("kill -{name} {id}")]).status();
        match done {
            Ok(status) if status.success() => Ok(()),
            _ => Err(format!("could not send the signal {name} to server {}", server.name)),
        }
    }

    /// The ids of the processes.
    #[must_use]
    pub fn process_ids(&self) -> Vec<u32> {
        let id = |server: &Server| lock(&server.process).as_ref().map(|process| process.server.id());
        self.servers.iter().filter_map(id).collect()
    }

    fn spawn(&self, at: usize) -> Result<(), String> {
        let server = &self.servers[at];
        let failed = |error: std::io::Error| format!("could not start server {}: {error}", server.name);
        let log = File::options().create(true).append(true).open(self.log(at)).map_err(failed)?;
        let mut command = Command::new(&self.program);
        command.args(["serve", "--cluster"]).arg(&server.directory);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut process = command.spawn().map_err(failed)?;
        match guard(process.id()) {
            Ok(guard) => *lock(&server.process) = Some(Process { server: process, guard }),
            Err(error) => {
                let _ = process.kill();
                let _ = process.wait();
                return Err(failed(error));
            }
        }
        Ok(())
    }

    /// The file with what a server has written to standard error.
    fn log(&self, at: usize) -> PathBuf {
        self.folder.path().join(format!("{}.log", self.servers[at].name))
    }

    fn wait_until_ready(&self, at: usize) -> Result<(), String> {
        let (server, http, begun) = (&self.servers[at], Http::new(PATIENCE), Instant::now());
        loop {
            let reason = match http.get(&server.address, "/ready") {
                Ok((200, _)) => break,
                Ok((_, reason)) => reason,
                Err(NoAnswer::Lost(reason)) => reason,
                Err(NoAnswer::NotSent) => "it does not listen".to_owned(),
            };
            let ended = lock(&server.process)
                .as_mut()
                .is_some_and(|process| process.server.try_wait().is_ok_and(|status| status.is_some()));
            if ended || begun.elapsed() > PATIENCE {
                let log = std::fs::read_to_string(self.log(at)).unwrap_or_default();
                let last = log.lines().rev().take(5).collect::<Vec<_>>().join("\n");
                return Err(format!("server {} does not become ready: {reason}\n{last}", server.name));
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
        server.changes.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// Gives a server the addresses at which it reaches the others through `relays`.
fn through_relays(directory: &Path, own: usize, relays: &Relays) -> Result<(), String> {
    let mut map = ClusterMap::read(directory).map_err(|error| error.to_string())?;
    for (at, entry) in map.servers.iter_mut().enumerate().filter(|(at, _)| *at != own) {
        relays.address(own, at).clone_into(&mut entry.address);
    }
    std::fs::write(directory.join(MAP_FILE), map.to_text()).map_err(|error| error.to_string())
}

impl Drop for Servers {
    fn drop(&mut self) {
        (0..self.servers.len()).for_each(|at| self.kill(at));
    }
}
