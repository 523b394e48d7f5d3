//! The queries of LUBM on one database and over several servers: time, processor time, requests, bytes, rows.
//!
//! # Shape
//! All servers of a cluster are in this process, with their connections over the loopback address and TLS as
//! between machines. So the processor time of the process is that of all servers, and the requests of all
//! servers are counted. Times of the wall clock on few processors say little of servers with their own.
//!
//! `predicted` is the number of requests that follows from the plan of a query, whatever the data: one to
//! each other server for each list that all have, or for tasks whose rows do not move.
//!
//! `--flows` measures what a query at all servers costs beyond its rows: one that finds nothing, and a
//! thousand rows that move four times, over a graph of its own.

use crate::data::{PlainFile, queries, test_data};
use crate::loopback::start;
use crate::table::{Table, count, figure};
use clap::Args;
use rustix::time::{ClockId, clock_gettime};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vervet::{Database, Format, OutputFormat, QueryOptions};
use vervet_cluster::{Cluster, InitOptions};
use vervet_model::{Error, ErrorKind, Result};

/// Options of a run.
#[derive(Clone, Debug, Args)]
pub struct SheetOptions {
    /// N-Triples of LUBM, plain or .zst; the queries are in the folder `queries` beside it
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Numbers of servers
    #[arg(long, value_delimiter = ',', default_value = "1,2,4", value_name = "NUMBERS")]
    servers: Vec<usize>,
    /// Number of partitions, a power of two
    #[arg(long, default_value_t = 16, value_name = "NUMBER")]
    partitions: usize,
    /// Only these queries, such as q1,q7
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    only: Vec<String>,
    /// Seconds for each query and number of servers
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    seconds: f64,
    /// Threads of a query at each server
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    threads: usize,
    /// Measure a query at all servers that finds nothing, and one whose rows move four times, instead of LUBM
    #[arg(long)]
    flows: bool,
    /// Print the profile of each query over each number of servers before the table
    #[arg(long)]
    profiles: bool,
}

/// One query at one number of servers.
struct Measured {
    rows: Vec<String>,
    median: Duration,
    /// Of the whole process, for a run.
    cpu: Duration,
    requests: f64,
    bytes: f64,
    moved: f64,
}

/// Prints the table of all queries; `false`: an answer differs from that of one database.
///
/// # Errors
/// The data cannot be read; a server cannot be started; a query fails.
pub fn run(options: &SheetOptions) -> Result<bool> {
    if options.flows {
        return flows(options);
    }
    let missing = || Error::new(ErrorKind::Input, "there is no test data; give --data");
    let data = match &options.data {
        Some(file) => file.clone(),
        None => test_data().ok_or_else(missing)?.join("data/lubm/lubm-40.nt.zst"),
    };
    let folder = data.parent().unwrap_or_else(|| Path::new(".")).join("queries");
    let is_wanted =
        |name: &str| options.only.is_empty() || options.only.iter().any(|one| is_selected(name, one));
    let queries: Vec<(String, String)> =
        queries(&folder)?.into_iter().filter(|(name, _)| is_wanted(name)).collect();
    let file = PlainFile::open(&data)?;
    let database = Database::in_memory();
    database.load_file(file.path())?;
    let query = QueryOptions::default().with_threads(options.threads);
    sheet(&database, &queries, &query, options)
}

/// The rows that move, and how often.
const FLOW_ROWS: usize = 1_000;
const FLOW_MOVES: usize = 4;

/// [`run`] for queries that run at all servers with few rows: none, and a thousand that move four times.
fn flows(options: &SheetOptions) -> Result<bool> {
    let mut text = String::new();
    for row in 0..FLOW_ROWS {
        for hop in 0..=FLOW_MOVES {
            // A permutation in each hop, so the next key is elsewhere.
            let [from, to] = [hop, hop + 1].map(|hop| row * [1, 7, 13, 31, 43, 57][hop] % FLOW_ROWS);
            text.push_str(&format!("<urn:{hop}:{from}> <urn:p{hop}> <urn:{}:{to}> .\n", hop + 1));
        }
    }
    text.push_str("<urn:a> <urn:one> <urn:b> .\n");
    let database = Database::in_memory();
    database.load_text(Format::NTriples, &text)?;
    let hops: String = (0..=FLOW_MOVES).map(|hop| format!("?v{hop} <urn:p{hop}> ?v{} . ", hop + 1)).collect();
    let named = |name: &str, text: String| (name.to_owned(), text);
    let queries = [
        named("nothing", "SELECT ?v1 { ?v0 <urn:one> ?v1 FILTER(STRLEN(STR(?v1)) > 99) }".to_owned()),
        named("moves", format!("SELECT ?v0 ?v{} {{ {hops} }}", FLOW_MOVES + 1)),
    ];
    // At all servers, whatever the estimate.
    let query = QueryOptions { heavy_from: Duration::ZERO, ..QueryOptions::default() };
    sheet(&database, &queries, &query.with_threads(options.threads), options)
}

/// Prints the table of these queries; `false`: an answer differs from that of one database.
fn sheet(
    database: &Database,
    queries: &[(String, String)],
    query: &QueryOptions,
    options: &SheetOptions,
) -> Result<bool> {
    let time = Duration::try_from_secs_f64(options.seconds).unwrap_or(Duration::from_secs(1));
    let nothing = || (0, 0, 0);
    let embedded = queries
        .iter()
        .map(|(_, text)| measure(database, text, query, time, &nothing))
        .collect::<Result<Vec<_>>>()?;
    let mut table = Table::new(&[
        "query",
        "rows",
        "servers",
        "value",
        "p50 ms",
        "CPU ms",
        "CPU / embedded",
        "requests",
        "predicted",
        "kB",
        "rows moved",
    ]);
    let mut is_right = true;
    let mut lines: Vec<Vec<Vec<String>>> = queries.iter().map(|_| Vec::new()).collect();
    for ((name, _), (own, lines)) in queries.iter().zip(embedded.iter().zip(&mut lines)) {
        lines.push(line(name, None, own, own));
    }
    for &servers in &options.servers {
        let made = InitOptions::on_host(servers, options.partitions, "127.0.0.1", (0, 0));
        let (clusters, _folder) = start(database, made)?;
        let counts = || {
            let of = |cluster: &Cluster| {
                let counts = cluster.counts();
                let requests: u64 = counts.iter().map(|(_, one)| one.requests).sum();
                let bytes: u64 = counts.iter().map(|(_, one)| one.bytes_sent + one.bytes_received).sum();
                (requests, bytes, cluster.query_counts().rows_moved)
            };
            clusters.iter().map(of).fold((0, 0, 0), |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2))
        };
        let Some(asked) = clusters.first() else { continue };
        for (((name, text), own), lines) in queries.iter().zip(&embedded).zip(&mut lines) {
            let found = measure(asked.database(), text, query, time, &counts)?;
            is_right &= found.rows == own.rows;
            if options.profiles {
                let profiled = QueryOptions { profile: true, ..query.clone() };
                let profile = asked.database().prepare(text)?.profile_with(&profiled)?;
                println!("{name} over {servers} servers\n{profile}");
            }
            lines.push(line(name, Some(servers), &found, own));
        }
    }
    lines.into_iter().flatten().for_each(|line| table.row(line));
    println!("{table}");
    Ok(is_right)
}

/// Whether a query is one of those that an option names: `q1` is not `q10`, `q` is all.
fn is_selected(name: &str, option: &str) -> bool {
    name.strip_prefix(option)
        .is_some_and(|rest| !option.ends_with(|end: char| end.is_ascii_digit()) || rest.is_empty())
}

/// `servers`: of a cluster.
fn line(name: &str, servers: Option<usize>, found: &Measured, own: &Measured) -> Vec<String> {
    let predicted = servers.and_then(|servers| predicted(name, servers));
    let ratio = found.cpu.as_secs_f64() / own.cpu.as_secs_f64().max(1e-9);
    vec![
        name.to_owned(),
        count(own.rows.len().saturating_sub(1) as u64),
        servers.map_or_else(|| "embedded".to_owned(), |servers| servers.to_string()),
        if found.rows == own.rows { "equal" } else { "DIFFERENT" }.to_owned(),
        figure(found.median.as_secs_f64() * 1e3),
        figure(found.cpu.as_secs_f64() * 1e3),
        figure(ratio),
        figure(found.requests),
        predicted.map_or_else(String::new, |requests| requests.to_string()),
        figure(found.bytes / 1e3),
        figure(found.moved),
    ]
}

/// The requests of a query over `n` servers that follow from its plan. Not of queries whose keys are where
/// the data says.
fn predicted(query: &str, n: usize) -> Option<usize> {
    let others = n.saturating_sub(1);
    Some(match query {
        // Four lists that all servers have.
        "q1" => 4 * others,
        // One list that all servers have, or tasks whose rows do not move.
        "q2" | "q9" | "nothing" => others,
        // Proved empty; short lists of one key, which are kept from the second run on.
        "q3" | "q4" | "q5" => 0,
        _ => return None,
    })
}

fn measure(
    database: &Database,
    text: &str,
    options: &QueryOptions,
    time: Duration,
    counts: &dyn Fn() -> (u64, u64, u64),
) -> Result<Measured> {
    let run = || -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        database.write(text, options, OutputFormat::Tsv, &mut bytes)?;
        Ok(bytes)
    };
    // Connections, caches.
    let bytes = run()?;
    run()?;
    let mut rows: Vec<String> = String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect();
    rows.sort_unstable();
    let (before, cpu, begun) = (counts(), process_cpu(), Instant::now());
    let mut times = Vec::new();
    while times.len() < 5 || (begun.elapsed() < time && times.len() < 2_000) {
        let start = Instant::now();
        run()?;
        times.push(start.elapsed());
    }
    let (cpu, after) = (process_cpu().saturating_sub(cpu), counts());
    let runs = times.len();
    times.sort_unstable();
    let each = |before: u64, after: u64| after.saturating_sub(before) as f64 / runs as f64;
    Ok(Measured {
        rows,
        median: times[runs / 2],
        cpu: cpu / u32::try_from(runs).unwrap_or(u32::MAX),
        requests: each(before.0, after.0),
        bytes: each(before.1, after.1),
        moved: each(before.2, after.2),
    })
}

/// The processor time of all threads.
fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let (seconds, nanoseconds) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanoseconds.unwrap_or_default())
}
