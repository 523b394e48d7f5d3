//! Small transactions at servers that elect a leader: commits, latency and processor time, beside one
//! database.
//!
//! # Shape
//! A small graph of 4,096 vertices. Each client is a thread that adds one edge between two of them in
//! each transaction, through the Rust interface, and waits until the commit is synced. The edges of a client
//! have their own predicate, so that transactions do not conflict. The graph is first one database with its
//! own synced log, then three voters, of which each has the whole graph; clients call the one that leads. In
//! memory, one database has no log: what is left is the order of commits, with the versions that they make.
//!
//! All servers are in this process, with their connections over the loopback address and TLS as between
//! machines. So the processor time of the process is that of clients and servers, and three servers share
//! the disk and the processors that each would have alone. With `--processes` the servers are processes of
//! the program `vervet` beside this one, and clients send `INSERT DATA` over HTTP, to the leader or to a
//! follower, which sends it on to the leader and answers when it shows the change itself.
//! # Check
//! After each run with voters, all of them must have the same statements: those of the start and of every
//! commit.

use crate::loopback::{self, Leading, PATIENCE, STABLE, leader, wait_for};
use crate::measure::CpuClock;
use crate::table::{Table, figure};
use crate::target::{self, Target};
use crate::transactions::{Load, Outcome, run_clients};
use crate::update_client::UpdateClient;
use clap::Args;
use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};
use vervet::{Database, DatabaseOptions, Durability, Format, NamedNode, OutputFormat, QueryOptions};
use vervet_cluster::{Cluster, InitOptions};
use vervet_conformance::voter_processes::{Http, Servers, program};
use vervet_model::{Error, ErrorKind, Result, lock};

/// Number of voters.
const SERVERS: usize = 3;

/// Vertices of the graph: enough for 16 million different edges of each client.
const VERTICES: usize = 4_096;

/// Transactions of each client before those that are measured.
const WARM_UP: u64 = 100;

/// Options of a run.
#[derive(Clone, Debug, Args)]
pub struct ClusterTransactionOptions {
    /// Numbers of clients
    #[arg(long, value_delimiter = ',', default_values_t = [1, 64], value_name = "NUMBERS")]
    clients: Vec<usize>,
    /// Seconds for each figure
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS")]
    seconds: f64,
    /// Runs of each figure; the run with the median rate counts
    #[arg(long, default_value_t = 3, value_name = "NUMBER")]
    repeats: usize,
    /// Only three voters, without the database beside them
    #[arg(long)]
    only_voters: bool,
    /// Also three processes of the program "vervet" beside this one, with clients over HTTP
    #[arg(long)]
    processes: bool,
}

/// Prints the table, and the targets; `false`: servers have different statements.
///
/// # Errors
/// A server cannot be started; a commit fails, as when the leader changes during a run.
pub fn run(options: &ClusterTransactionOptions) -> Result<bool> {
    let time = Duration::try_from_secs_f64(options.seconds).unwrap_or(Duration::from_secs(5));
    let mut table = Table::new(&["servers", "clients", "commits/s", "p50 ms", "p99 ms", "CPU ms / commit"]);
    let mut places = vec![Place::Memory, Place::Embedded, Place::Voters, Place::Leader, Place::Follower];
    places.retain(|place| match place {
        Place::Memory | Place::Embedded => !options.only_voters,
        Place::Voters => true,
        Place::Leader | Place::Follower => options.processes,
    });
    let (mut targets, mut is_right) = (Vec::new(), true);
    for place in places {
        for &clients in &options.clients {
            let load = Load { clients, time, warm_up: WARM_UP };
            let mut outcomes = Vec::new();
            for _ in 0..options.repeats.max(1) {
                let (outcome, is_equal) = match place {
                    Place::Memory => (in_memory(load)?, true),
                    Place::Embedded => (embedded(load)?, true),
                    Place::Voters => over_voters(load)?,
                    Place::Leader | Place::Follower => over_http(load, place)?,
                };
                is_right &= is_equal;
                outcomes.push(outcome);
            }
            outcomes.sort_by(|one, other| one.rate().total_cmp(&other.rate()));
            let outcome = &outcomes[outcomes.len() / 2];
            table.row(vec![
                place.name().to_owned(),
                clients.to_string(),
                figure(outcome.rate()),
                figure(outcome.quantile_us(0.5) / 1e3),
                figure(outcome.quantile_us(0.99) / 1e3),
                figure(outcome.cpu_seconds * 1e3 / outcome.done.max(1) as f64),
            ]);
            targets.extend(targets_of(place, clients, outcome));
        }
    }
    println!("{table}");
    println!("{}", target::table(&targets));
    let verdict =
        if is_right { "all servers have all statements" } else { "DIFFERENT statements at servers" };
    println!("{verdict}");
    Ok(is_right)
}

/// Where the graph is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Memory,
    Embedded,
    Voters,
    Leader,
    Follower,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Self::Memory => "one database, in memory",
            Self::Embedded => "one database",
            Self::Voters => "3 voters",
            Self::Leader => "3 voters, HTTP",
            Self::Follower => "3 voters, HTTP at a follower",
        }
    }
}

/// The targets of a figure.
fn targets_of(place: Place, clients: usize, outcome: &Outcome) -> Vec<Target> {
    let target = |what: &str, target: f64, at_most: bool, reached: f64| Target {
        what: what.to_owned(),
        target,
        at_most,
        reached,
        is_bound: false,
    };
    let p50 = outcome.quantile_us(0.5) / 1e3;
    match (place, clients) {
        (Place::Voters, 64) => vec![
            target("3 voters, 64 clients: commits/s", 50_000.0, false, outcome.rate()),
            target("3 voters, 64 clients: p50 ms", 2.0, true, p50),
        ],
        (Place::Voters, 1) => vec![target("3 voters, one client: p50 ms", 0.6, true, p50)],
        (Place::Memory, 1) => {
            vec![target(
                "the order alone (in memory, one client): commits/s",
                150_000.0,
                false,
                outcome.rate(),
            )]
        }
        _ => Vec::new(),
    }
}

/// The graph at the start: the vertices, and the predicate of each client.
fn start_graph(clients: usize) -> String {
    let vertices = (0..VERTICES).map(|number| format!("<urn:v{number}> <urn:is> <urn:vertex> .\n"));
    vertices.chain((0..clients).map(|client| format!("<urn:v0> <urn:link{client}> <urn:v0> .\n"))).collect()
}

/// The terms that clients use.
struct Terms {
    vertices: Vec<NamedNode>,
    links: Vec<NamedNode>,
}

impl Terms {
    fn new(clients: usize) -> Self {
        let named = |name: String| NamedNode::new_unchecked(name);
        Self {
            vertices: (0..VERTICES).map(|number| named(format!("urn:v{number}"))).collect(),
            links: (0..clients).map(|client| named(format!("urn:link{client}"))).collect(),
        }
    }

    /// Vertices and predicate of the edge of this number of a client: another one for each number.
    fn edge(&self, client: usize, number: u64) -> [&NamedNode; 3] {
        let number = usize::try_from(number).unwrap_or(0);
        let from = number % VERTICES;
        let to = (from + 1 + number / VERTICES) % VERTICES;
        [&self.vertices[from], &self.links[client], &self.vertices[to]]
    }

    /// Commits the edge of this number of a client.
    fn insert(&self, database: &Database, client: usize, number: u64) -> Result<()> {
        let graph = oxrdf::GraphNameRef::DefaultGraph;
        let [from, link, to] = self.edge(client, number);
        let mut transaction = database.begin()?;
        transaction.insert(oxrdf::QuadRef::new(from, link, to, graph))?;
        transaction.commit().map(drop)
    }
}

/// Checks that commits have added statements: each of them one, those before the measurement too.
fn check_added(added: u64, load: Load, outcome: &Outcome) -> Result<()> {
    let all = outcome.done + WARM_UP * load.clients as u64;
    if added < outcome.done || added > all {
        return Err(Error::internal(format!("{all} commits have added {added} statements")));
    }
    Ok(())
}

/// One database with its own log.
fn embedded(load: Load) -> Result<Outcome> {
    let folder = tempfile::tempdir().map_err(|error| Error::io("make a folder", &error))?;
    let options = DatabaseOptions {
        durability: Durability::Sync,
        // As at voters.
        checkpoints: false,
        ..DatabaseOptions::default()
    };
    run_over(&Database::open_or_create_with(folder.path().join("db"), options)?, load)
}

/// One database without a log.
fn in_memory(load: Load) -> Result<Outcome> {
    run_over(&Database::in_memory(), load)
}

fn run_over(database: &Database, load: Load) -> Result<Outcome> {
    database.load_text(Format::NTriples, &start_graph(load.clients))?;
    let (terms, before) = (Terms::new(load.clients), database.snapshot().statement_count());
    let outcome = run_clients(load, |client, number| terms.insert(database, client, number))?;
    check_added(database.snapshot().statement_count() - before, load, &outcome)?;
    Ok(outcome)
}

/// Three voters; `false`: they have different statements afterwards.
fn over_voters(load: Load) -> Result<(Outcome, bool)> {
    let database = Database::in_memory();
    database.load_text(Format::NTriples, &start_graph(load.clients))?;
    let (servers, _folder) = start(&database)?;
    let (terms, before) = (Terms::new(load.clients), database.snapshot().statement_count());
    let leading = Leading::of(&servers)?;
    let outcome =
        run_clients(load, |client, number| leading.run(|database| terms.insert(database, client, number)))?;
    match leading.changes() {
        0 => {}
        changes => println!("{} clients: the leader has changed {changes} times", load.clients),
    }
    let leader = servers[leader(&servers)?].database();
    let expected = sum(leader)?;
    check_added(expected.0 - before, load, &outcome)?;
    for server in &servers {
        let is_there = || Ok((server.database().snapshot().statement_count() >= expected.0).then_some(()));
        if wait_for(is_there, "a server does not catch up").is_err() || sum(server.database())? != expected {
            return Ok((outcome, false));
        }
    }
    Ok((outcome, true))
}

/// Position of the process that leads, once it has done so for [`STABLE`].
fn leading_process(servers: &Servers) -> Result<usize> {
    let (http, since) = (Http::new(PATIENCE), Cell::new((None, Instant::now())));
    let look = || {
        let status = http.get(&servers.servers[0].address, "/cluster").ok().map(|(_, text)| text);
        let status: Option<serde_json::Value> = status.and_then(|text| serde_json::from_str(&text).ok());
        let name = status.as_ref().and_then(|status| status["changes"]["voters"]["leader"].as_str());
        let leader = servers.servers.iter().position(|server| Some(server.name.as_str()) == name);
        if leader != since.get().0 {
            since.set((leader, Instant::now()));
        }
        Ok(leader.filter(|_| since.get().1.elapsed() > STABLE))
    };
    wait_for(look, "there is no leader")
}

/// Three processes, with clients over HTTP; `false`: they have different statements afterwards.
fn over_http(load: Load, place: Place) -> Result<(Outcome, bool)> {
    let failed = |reason: String| Error::new(ErrorKind::Unavailable, reason);
    let database = Database::in_memory();
    database.load_text(Format::NTriples, &start_graph(load.clients))?;
    let servers = Servers::start(&program().map_err(failed)?, &database).map_err(failed)?;
    let terms = Terms::new(load.clients);
    let leader = leading_process(&servers)?;
    let first = if place == Place::Follower { (leader + 1) % SERVERS } else { leader };
    let asked = AtomicUsize::new(first);
    let connections: Vec<_> = (0..load.clients).map(|_| Mutex::new(UpdateClient::new(PATIENCE))).collect();
    let processes: Vec<_> = servers.process_ids().into_iter().map(CpuClock::Process).collect();
    let cpu = || processes.iter().map(|process| process.read()).sum::<Duration>();
    let begun = OnceLock::new();
    let mut outcome = run_clients(load, |client, number| {
        let [from, link, to] = terms.edge(client, number);
        let text = format!("INSERT DATA {{ {from} {link} {to} }}");
        if number >= WARM_UP {
            begun.get_or_init(cpu);
        }
        let attempt = || {
            let at = asked.load(Ordering::Relaxed);
            match lock(&connections[client]).update(&servers.servers[at].address, &text) {
                Ok((200..=299, _)) => Ok(Some(())),
                // Another server leads.
                Ok((403 | 503, _)) => {
                    asked.store((at + 1) % servers.servers.len(), Ordering::Relaxed);
                    Ok(None)
                }
                Ok((status, reason)) => Err(failed(format!("{status}: {reason}"))),
                Err(reason) => Err(failed(format!("{reason:?}"))),
            }
        };
        wait_for(attempt, "there is no leader")
    })?;
    outcome.cpu_seconds += cpu().saturating_sub(begun.get().copied().unwrap_or_default()).as_secs_f64();
    let http = Http::new(PATIENCE);
    let expected =
        start_graph(load.clients).lines().count() as u64 + outcome.done + WARM_UP * load.clients as u64;
    for server in &servers.servers {
        let is_there = || {
            let answer =
                http.query(&server.address, "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }").map_err(failed)?;
            Ok(answer
                .lines()
                .nth(1)
                .and_then(|count| count.parse::<u64>().ok())
                .filter(|count| *count == expected))
        };
        if wait_for(is_there, "a server does not catch up").is_err() {
            return Ok((outcome, false));
        }
    }
    Ok((outcome, true))
}

/// The number of statements, and a number that equal graphs share.
fn sum(database: &Database) -> Result<(u64, u64)> {
    let mut bytes = Vec::new();
    let query = "SELECT ?s ?p ?o { ?s ?p ?o }";
    database.write(query, &QueryOptions::default(), OutputFormat::Tsv, &mut bytes)?;
    let hash = |line: &[u8]| {
        let mut hasher = DefaultHasher::new();
        line.hash(&mut hasher);
        hasher.finish()
    };
    // Independent of the order of rows.
    let sum = bytes.split(|byte| *byte == b'\n').map(hash).fold(0, u64::wrapping_add);
    Ok((database.snapshot().statement_count(), sum))
}

/// Voters of a graph in this process.
fn start(database: &Database) -> Result<(Vec<Cluster>, tempfile::TempDir)> {
    let mut options = InitOptions::on_host(SERVERS, 1, "127.0.0.1", (0, 0));
    options.voters = options.servers.iter().map(|server| server.name.clone()).collect();
    options.replicas = SERVERS;
    loopback::start(database, options)
}
