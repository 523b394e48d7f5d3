//! Databases of cases spread over several processes.
//!
//! With `--cluster N`, the graph of a case is cut into partitions for N servers. This program is the first of
//! them and asks the queries; the others are processes that it starts once, which open and close the servers
//! of each case.

use crate::changes::Changes;
use crate::namespaces;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use vervet::{Database, DatabaseOptions, OutputFormat, QueryOptions};
use vervet_cluster::{Cluster, InitOptions, init};
use vervet_model::Watch;

static SERVERS: OnceLock<usize> = OnceLock::new();

/// How many of them have each partition.
static REPLICAS: OnceLock<usize> = OnceLock::new();

/// Whether the graphs of cases have changes: see `changes`.
static WITH_CHANGES: OnceLock<()> = OnceLock::new();

/// The server of this process: the first one.
const WRITER: &str = "a";

/// Partitions of each server, so that each has several.
const PARTITIONS_EACH: usize = 4;

/// The argument with which this program starts itself as a server.
pub const SERVER: &str = "cluster-server";

thread_local! {
    /// The processes of the other servers.
    static PROCESSES: RefCell<Vec<Process>> = const { RefCell::new(Vec::new()) };
}

/// Spreads the databases of all cases over this number of processes from now on.
///
/// # Errors
/// It is not from 1 to 16; another one was chosen before.
pub fn choose(count: usize) -> Result<(), String> {
    if !(1..=16).contains(&count) {
        return Err(format!("{count} processes: 1 to 16 are possible"));
    }
    SERVERS.set(count).map_err(|_| "the number of processes is chosen twice".to_owned())
}

/// So many of the processes have each partition from now on.
///
/// # Errors
/// It is not from 1 to 16; another number was chosen before.
pub fn choose_replicas(count: usize) -> Result<(), String> {
    if !(1..=16).contains(&count) {
        return Err(format!("{count} replicas: 1 to 16 are possible"));
    }
    REPLICAS.set(count).map_err(|_| "the number of replicas is chosen twice".to_owned())
}

/// How many servers have each partition, if that was chosen.
pub(crate) fn replicas() -> Option<usize> {
    REPLICAS.get().copied()
}

/// From now on the graphs of cases have changes.
///
/// # Errors
/// It was chosen before.
pub fn choose_changes() -> Result<(), String> {
    WITH_CHANGES.set(()).map_err(|()| "--changes is there twice".to_owned())
}

/// The number of processes that was chosen.
#[must_use]
pub fn chosen() -> Option<usize> {
    SERVERS.get().copied()
}

/// Whether databases are spread over processes.
pub(crate) fn is_chosen() -> bool {
    SERVERS.get().is_some()
}

/// A database of a case, with the servers that it needs.
pub(crate) struct Spread {
    database: Database,
    servers: Option<Servers>,
}

impl Deref for Spread {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.database
    }
}

struct Servers {
    _own: Cluster,
    others: Vec<PathBuf>,
    _folder: tempfile::TempDir,
}

impl Drop for Servers {
    fn drop(&mut self) {
        PROCESSES.with_borrow_mut(|processes| {
            for (process, directory) in processes.iter_mut().zip(&self.others) {
                let _ = process.tell("close", directory);
            }
        });
    }
}

/// The graph of `database` over the processes that were chosen; without a choice `database` itself, with the
/// device that was chosen.
pub(crate) fn spread(database: Database) -> Result<Spread, String> {
    let Some(&count) = SERVERS.get() else {
        return Ok(Spread::here(crate::device::attach(database)));
    };
    let failed = |error: &dyn std::fmt::Display| format!("a cluster of {count} processes: {error}");
    if WITH_CHANGES.get().is_none() {
        return spread_over(&database, count, None);
    }
    let changes = Changes::of(&database).map_err(|error| failed(&error))?;
    changes.make(&database).map_err(|error| failed(&error))?;
    let spread = spread_over(&database, count, Some(WRITER))?;
    changes.take_back(&spread).map_err(|error| failed(&error))?;
    Ok(spread)
}

/// The graph of `database` over the processes that were chosen, with this one as the writer.
pub(crate) fn spread_to_write(database: &Database) -> Result<Spread, String> {
    let count = SERVERS.get().ok_or_else(|| "no number of processes was chosen".to_owned())?;
    spread_over(database, *count, Some(WRITER))
}

fn spread_over(database: &Database, count: usize, writer: Option<&str>) -> Result<Spread, String> {
    let failed = |error: &dyn std::fmt::Display| format!("a cluster of {count} processes: {error}");
    let partitions = (count * PARTITIONS_EACH).next_power_of_two();
    let (folder, mut made) =
        directories_with(database, count, (partitions, replicas().unwrap_or(1)), writer)?;
    let others = made.split_off(1);
    PROCESSES.with_borrow_mut(|processes| {
        while processes.len() < others.len() {
            processes.push(Process::start()?);
        }
        processes.iter_mut().zip(&others).try_for_each(|(process, directory)| process.tell("open", directory))
    })?;
    let own = Cluster::open(&made[0], &DatabaseOptions::default()).map_err(|error| failed(&error))?;
    let database = own.database().clone();
    Ok(Spread { database, servers: Some(Servers { _own: own, others, _folder: folder }) })
}

/// The directories of `count` servers of a graph, and the folder that has them, which goes with the value.
pub(crate) fn directories(
    database: &Database,
    count: usize,
    partitions: usize,
) -> Result<(tempfile::TempDir, Vec<PathBuf>), String> {
    directories_with(database, count, (partitions, 1), None)
}

/// As [`directories`]; several servers have each partition.
pub(crate) fn directories_with_replicas(
    database: &Database,
    count: usize,
    partitions: usize,
    replicas: usize,
) -> Result<(tempfile::TempDir, Vec<PathBuf>), String> {
    directories_with(database, count, (partitions, replicas), None)
}

fn directories_with(
    database: &Database,
    count: usize,
    partitions: (usize, usize),
    writer: Option<&str>,
) -> Result<(tempfile::TempDir, Vec<PathBuf>), String> {
    let failed = |error: &dyn std::fmt::Display| format!("a cluster of {count} processes: {error}");
    // Held until all are chosen, so that no two are equal.
    let (mut ports, mut addresses) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let port = TcpListener::bind("127.0.0.1:0").map_err(|error| failed(&error))?;
        addresses.push(port.local_addr().map_err(|error| failed(&error))?.to_string());
        ports.push(port);
    }
    drop(ports);
    directories_of(database, &addresses, partitions, writer)
}

/// As [`directories`], for servers at these addresses.
pub(crate) fn directories_at(
    database: &Database,
    addresses: &[String],
    partitions: usize,
) -> Result<(tempfile::TempDir, Vec<PathBuf>), String> {
    directories_of(database, addresses, (partitions, 1), None)
}

fn directories_of(
    database: &Database,
    addresses: &[String],
    (partitions, replicas): (usize, usize),
    writer: Option<&str>,
) -> Result<(tempfile::TempDir, Vec<PathBuf>), String> {
    let count = addresses.len();
    let failed = |error: &dyn std::fmt::Display| format!("a cluster of {count} processes: {error}");
    // In memory where that is possible: each file is synced.
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let folder = folder.map_err(|error| failed(&error))?;
    let mut options = InitOptions::on_host(count, partitions, "127.0.0.1", (0, 0));
    options.writer = writer.map(str::to_owned);
    options.replicas = replicas;
    // Small graphs would get runs of one number.
    options.run_bits = u32::try_from(database.snapshot().statement_count() % 4).ok();
    for (server, address) in options.servers.iter_mut().zip(addresses) {
        server.address.clone_from(address);
    }
    let directory = folder.path().join("servers");
    let made = init(database, &options, &directory, &Watch::new("case")).map_err(|error| failed(&error))?;
    Ok((folder, made))
}

impl Spread {
    /// A database in this process.
    pub(crate) fn here(database: Database) -> Self {
        Self { database, servers: None }
    }

    /// Waits until every other server has the commits of this one, and returns a sum of the graph of each.
    pub(crate) fn sums_elsewhere(&self) -> Result<Vec<String>, String> {
        let Some(servers) = &self.servers else { return Ok(Vec::new()) };
        let commit = self.database.snapshot().timestamp().0;
        PROCESSES.with_borrow_mut(|processes| {
            let ask = |(process, directory): (&mut Process, &PathBuf)| {
                process.ask(&format!("sum {commit} {}", directory.display()))
            };
            processes.iter_mut().zip(&servers.others).map(ask).collect()
        })
    }

    /// Whether it is spread over processes, and so cannot be changed.
    pub(crate) fn is_spread(&self) -> bool {
        self.servers.is_some()
    }
}

/// A process with servers; it ends with its input.
pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    pub(crate) fn start() -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        Self::run(Command::new(program))
    }

    /// In a network namespace of its own, as this server.
    pub(crate) fn start_in_namespace(server: usize) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut process = Self::run(namespaces::command(&program))?;
        // It answers, so it is in its namespace.
        let _ = process.tell("wait", Path::new(""));
        namespaces::connect(server, process.id())?;
        Ok(process)
    }

    /// The id of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    fn run(mut command: Command) -> Result<Self, String> {
        command.arg(SERVER).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("could not start a server: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a process without pipes".to_owned());
        };
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    pub(crate) fn tell(&mut self, what: &str, directory: &Path) -> Result<(), String> {
        let answer = self.ask(&format!("{what} {}", directory.display()))?;
        if answer == "done" { Ok(()) } else { Err(format!("a server: {answer}")) }
    }

    fn ask(&mut self, line: &str) -> Result<String, String> {
        let sent = writeln!(self.input, "{line}").and_then(|()| self.input.flush());
        sent.map_err(|error| format!("a server has ended: {error}"))?;
        let mut answer = String::new();
        self.output.read_line(&mut answer).map_err(|error| format!("a server has ended: {error}"))?;
        Ok(answer.trim_end().to_owned())
    }
}

impl Process {
    /// Ends it at once.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let command = format!("kill -{name} {}", self.child.id());
        let _ = Command::new("sh").args(["-c", &command]).status();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Opens and closes servers as lines of standard input say, until its end.
pub fn serve() {
    let mut open: BTreeMap<String, Cluster> = BTreeMap::new();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let answer = match line.split_once(' ') {
            Some(("open", directory)) => {
                match Cluster::open(Path::new(directory), &DatabaseOptions::default()) {
                    Ok(cluster) => {
                        open.insert(directory.to_owned(), cluster);
                        "done".to_owned()
                    }
                    Err(error) => error.to_string().replace('\n', " "),
                }
            }
            Some(("close", directory)) => {
                open.remove(directory);
                "done".to_owned()
            }
            Some(("sum", rest)) => match rest.split_once(' ') {
                Some((commit, directory)) => match open.get(directory) {
                    Some(cluster) => sum_at(cluster.database(), commit.parse().unwrap_or(u64::MAX)),
                    None => "no such server".to_owned(),
                },
                None => "not a request".to_owned(),
            },
            _ => "not a request".to_owned(),
        };
        println!("{answer}");
    }
}

/// Waits for a commit, and returns the sum of the graph.
fn sum_at(database: &Database, commit: u64) -> String {
    let begun = Instant::now();
    while database.snapshot().timestamp().0 < commit {
        if begun.elapsed() > COMMIT_WAIT {
            return format!("commit {commit} does not come");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    sum(database).unwrap_or_else(|error| error.to_string().replace('\n', " "))
}

/// A number that equal graphs share.
pub(crate) fn sum(database: &Database) -> vervet::Result<String> {
    let mut bytes = Vec::new();
    database.write(
        "SELECT ?s ?p ?o { ?s ?p ?o }",
        &QueryOptions::default(),
        OutputFormat::Tsv,
        &mut bytes,
    )?;
    let text = String::from_utf8_lossy(&bytes);
    let mut rows: Vec<&str> = text.lines().collect();
    rows.sort_unstable();
    let mut hasher = DefaultHasher::new();
    rows.hash(&mut hasher);
    Ok(format!("{} rows, {:016x}", rows.len(), hasher.finish()))
}

/// How long a server may take to have a commit of the writer.
const COMMIT_WAIT: Duration = Duration::from_secs(20);
