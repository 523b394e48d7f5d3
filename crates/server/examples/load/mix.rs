//! Concurrent light and heavy queries: responses, latencies, and the memory of the server.
//!
//! # Shape
//! Each connection has a thread. Light clients send queries at random times (one Poisson process each), which
//! together make the given rate. Heavy clients send a query as soon as they have the response to the previous
//! one. The latency of a light query counts from its scheduled time, even if its connection still waits for
//! the previous response, so a slow response is not hidden by queries that were sent late. Light queries run
//! alone first, for a tenth of the time.

use crate::Error;
use crate::client::{Connection, Response};
use crate::queries::{Expected, Heavy, Light, Queries};
use crate::report::{Report, load_average};
use crate::server_process::ServerProcess;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Time from a query to the disconnect of its client, and from a 503 response to the next request.
const PAUSE: Duration = Duration::from_millis(300);

/// Minimum interval between two hostile requests of a client. Without it, requests that the server refuses
/// immediately are thousands of light requests a second, which use up both processors of a small machine, so
/// that the clients themselves are delayed.
const HOSTILE_EVERY: Duration = Duration::from_millis(50);

/// Maximum ratio of the median memory in the last quarter to that in the second quarter, and the difference
/// in MiB that does not count as growth.
const GROWTH_MAX: (f64, f64) = (1.25, 32.0);

/// Maximum time that requests of disconnected clients may still run, and the time until the server has
/// released their memory.
const ABANDONED_MAX: Duration = Duration::from_secs(10);
const RELEASE_TIME: Duration = Duration::from_secs(3);

/// Default timeout of a query.
const QUERY_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum number of wrong responses of a tally that are described.
const DESCRIBED_MAX: usize = 20;

/// Label of correct responses.
const CORRECT: &str = "200, correct";

/// Duration, connections and rate.
pub(crate) struct Options {
    /// Duration of light and heavy queries together.
    pub(crate) time: Duration,
    /// Connections with light queries, at least one.
    pub(crate) light: usize,
    /// Connections with heavy queries.
    pub(crate) heavy: usize,
    /// Light queries a second; 0: no pauses.
    pub(crate) rate: f64,
}

/// Outcomes of the queries of one kind.
#[derive(Default)]
pub(crate) struct Tally {
    outcomes: BTreeMap<String, u64>,
    /// Latencies of correct responses in µs.
    times: Vec<u32>,
    /// The same by second of the phase; only of light queries.
    by_second: BTreeMap<u64, Vec<u32>>,
    wrong: u64,
    descriptions: Vec<String>,
}

impl Tally {
    fn count(&mut self, outcome: &str) {
        *self.outcomes.entry(outcome.to_owned()).or_default() += 1;
    }

    fn correct(&mut self, time: Duration) {
        self.count(CORRECT);
        self.times.push(u32::try_from(time.as_micros()).unwrap_or(u32::MAX));
    }

    /// Counts a correct response to a query that was due in this second of the phase.
    fn correct_in(&mut self, second: u64, time: Duration) {
        self.correct(time);
        self.by_second.entry(second).or_default().extend(self.times.last());
    }

    fn wrong(&mut self, description: String) {
        self.wrong += 1;
        self.count("wrong");
        if self.descriptions.len() < DESCRIBED_MAX {
            self.descriptions.push(description);
        }
    }

    /// Counts a response that reports a limit of docs/limits.md; returns whether it is a complete response of
    /// that kind.
    fn limit(&mut self, response: &Response) -> bool {
        let what = match response.status {
            503 if response.retry_after => "503, no free place",
            504 => "504, out of time",
            507 => "507, out of memory",
            _ => return false,
        };
        self.count(what);
        response.whole
    }

    fn add(&mut self, other: Self) {
        for (what, count) in other.outcomes {
            *self.outcomes.entry(what).or_default() += count;
        }
        self.times.extend(other.times);
        for (second, times) in other.by_second {
            self.by_second.entry(second).or_default().extend(times);
        }
        self.wrong += other.wrong;
        self.descriptions.extend(other.descriptions);
    }

    /// The median over the seconds of a quantile of their latencies, in thousandths; in ms. A pause of the
    /// whole machine affects only the seconds in which it occurs.
    pub(crate) fn in_typical_second(&self, thousandths: usize) -> f64 {
        let quantile = |times: &Vec<u32>| {
            let mut times = times.clone();
            times.sort_unstable();
            times.get((times.len() - 1) * thousandths / 1000).copied()
        };
        let mut quantiles: Vec<u32> = self.by_second.values().filter_map(quantile).collect();
        quantiles.sort_unstable();
        quantiles.get(quantiles.len() / 2).map_or(0.0, |micros| f64::from(*micros) / 1000.0)
    }

    /// A quantile of the latencies, in thousandths; in ms.
    pub(crate) fn at(&self, thousandths: usize) -> f64 {
        let last = self.times.len().saturating_sub(1);
        self.times.get(last * thousandths / 1000).map_or(0.0, |micros| f64::from(*micros) / 1000.0)
    }
}

/// Metrics of the server at one time.
pub(crate) struct Sample {
    seconds: f64,
    memory: f64,
    running: f64,
    waiting: f64,
}

/// A request that the server must survive, and the expected content of its response unless that reports a
/// limit.
pub(crate) struct Hostile {
    pub(crate) name: String,
    pub(crate) path: &'static str,
    /// The body, of the content type of `path`.
    pub(crate) text: String,
    /// A part of the first bytes of a response with status 200; `None` if they depend on the data.
    pub(crate) expected: Option<String>,
}

/// Figures of one phase.
pub(crate) struct Phase {
    pub(crate) light: Tally,
    /// By name of the query or hostile request.
    heavy: BTreeMap<String, Tally>,
    samples: Vec<Sample>,
    /// Duration of the light queries.
    seconds: f64,
    /// Processor time of the server, in cores.
    cores: f64,
}

/// Runs both phases; returns whether every response is correct or a limit, and memory is constant.
pub(crate) fn run(
    server: &ServerProcess,
    queries: &Queries,
    options: &Options,
    report: &mut Report,
) -> Result<bool, Error> {
    let first = (options.time / 10).clamp(Duration::from_secs(3), Duration::from_secs(60));
    report.line("## Load\n");
    report.line(&format!(
        "{} connections with light queries ({}), alone for {:.0} s, then for {:.0} s beside {} connections with heavy \
         queries, without a pause between them.\n",
        options.light,
        if options.rate > 0.0 { format!("{} a second", options.rate) } else { "without a pause".to_owned() },
        first.as_secs_f64(),
        options.time.as_secs_f64(),
        options.heavy
    ));
    let alone = phase(server, queries, &[], first, &Options { heavy: 0, ..*options })?;
    let mixed = phase(server, queries, &[], options.time, options)?;
    light(&alone, &mixed, report);
    heavy(&mixed, report);
    let is_constant = memory(&mixed, report);
    report.line(&format!("Load average at the end: {}.\n", load_average()));
    let passed = wrong([&alone, &mixed], report) && is_constant;
    Ok(settled(server, report)? && passed)
}

/// Reports wrong responses; returns whether there are none.
pub(crate) fn wrong<'a>(phases: impl IntoIterator<Item = &'a Phase>, report: &mut Report) -> bool {
    let mut passed = true;
    for phase in phases {
        for wrong in
            [&phase.light].into_iter().chain(phase.heavy.values()).flat_map(|tally| &tally.descriptions)
        {
            passed = false;
            report.line(&format!("**Wrong:** {wrong}"));
        }
    }
    passed
}

/// Reports the memory after the end of all requests; returns whether requests of disconnected clients end
/// within [`ABANDONED_MAX`].
pub(crate) fn settled(server: &ServerProcess, report: &mut Report) -> Result<bool, Error> {
    let begin = Instant::now();
    loop {
        let metrics = server.metrics()?;
        if ["vervet_requests_running", "vervet_requests_waiting"]
            .iter()
            .all(|name| metrics.number(name) == 0.0)
        {
            break;
        }
        if begin.elapsed() > ABANDONED_MAX {
            report.line("**Wrong:** requests still run after the end");
            return Ok(false);
        }
        std::thread::sleep(PAUSE);
    }
    std::thread::sleep(RELEASE_TIME);
    report.line(&format!("Memory after the end of all requests: {:.0} MiB.\n", server.metrics()?.memory()));
    Ok(true)
}

/// Sends light and heavy queries and hostile requests for `time`, and samples the metrics of the server.
pub(crate) fn phase(
    server: &ServerProcess,
    queries: &Queries,
    hostile: &[Hostile],
    time: Duration,
    options: &Options,
) -> Result<Phase, Error> {
    let cpu_seconds = || Ok::<_, Error>(server.metrics()?.number("process_cpu_seconds_total"));
    let (cpu_before, begin) = (cpu_seconds()?, Instant::now());
    let (address, end) = (server.address, begin + time);
    let interval = if options.rate > 0.0 { options.light as f64 / options.rate } else { 0.0 };
    let mut phase = std::thread::scope(|scope| {
        let small = || std::thread::Builder::new().stack_size(256 << 10);
        let mut lights = Vec::new();
        for seed in 0..options.light as u64 {
            let work = move || light_client(address, &queries.light, interval, end, seed);
            lights.push(small().spawn_scoped(scope, work)?);
        }
        let mut heavies = Vec::new();
        for seed in 0..options.heavy as u64 {
            heavies
                .push(small().spawn_scoped(scope, move || heavy_client(address, &queries.heavy, end, seed))?);
        }
        for request in hostile {
            heavies.push(small().spawn_scoped(scope, move || hostile_client(address, request, end))?);
        }
        let mut samples = Vec::new();
        while Instant::now() < end {
            std::thread::sleep(Duration::from_secs(1).min(end.saturating_duration_since(Instant::now())));
            let metrics = server.metrics()?;
            samples.push(Sample {
                seconds: begin.elapsed().as_secs_f64(),
                memory: metrics.memory(),
                running: metrics.number("vervet_requests_running"),
                waiting: metrics.number("vervet_requests_waiting"),
            });
        }
        let mut phase =
            Phase { light: Tally::default(), heavy: BTreeMap::new(), samples, seconds: 0.0, cores: 0.0 };
        for client in lights {
            phase.light.add(client.join().map_err(|_| "a client panicked")?);
        }
        phase.seconds = begin.elapsed().as_secs_f64();
        for client in heavies {
            for (name, tally) in client.join().map_err(|_| "a client panicked")? {
                phase.heavy.entry(name).or_default().add(tally);
            }
        }
        Ok::<_, Error>(phase)
    })?;
    // All heavy queries sent before `end` have their responses by now.
    phase.cores = (cpu_seconds()? - cpu_before) / begin.elapsed().as_secs_f64();
    phase.light.times.sort_unstable();
    phase.heavy.values_mut().for_each(|tally| tally.times.sort_unstable());
    Ok(phase)
}

/// One connection with light queries, `interval` seconds apart on average.
fn light_client(
    address: SocketAddr,
    queries: &[Vec<Light>],
    interval: f64,
    end: Instant,
    seed: u64,
) -> Tally {
    let begin = Instant::now();
    let mut random = fastrand::Rng::with_seed(seed);
    // It represents another machine, whose threads do not wait for those of the server.
    vervet_env::request_time_slice(Some(Duration::from_micros(100)));
    let (mut tally, mut connection) = (Tally::default(), None);
    let mut due = Instant::now() + Duration::from_secs_f64(interval * random.f64());
    loop {
        let now = Instant::now();
        let late = now >= due;
        if !late {
            std::thread::sleep(due.min(end) - now);
        }
        if Instant::now() >= end {
            return tally;
        }
        // A delay by the server counts, a sleep of this client that lasted too long does not.
        let start = if late && interval > 0.0 { due } else { Instant::now() };
        due = start + Duration::from_secs_f64(interval * -(1.0 - random.f64()).ln());
        let of_query = &queries[random.usize(..queries.len())];
        let query = &of_query[random.usize(..of_query.len())];
        match send_query(&mut connection, address, "/query", &query.text) {
            Ok(response) if response.status == 200 && response.whole && response.lines == query.rows + 1 => {
                tally.correct_in(start.saturating_duration_since(begin).as_secs(), start.elapsed());
            }
            Ok(response) if response.status == 503 && tally.limit(&response) => {}
            Ok(response) => {
                let mismatch = format!("{} rows expected: {}", query.rows, describe(&response));
                tally.wrong(format!("light query, {mismatch}"));
            }
            Err(error) => tally.wrong(format!("light query: {error}")),
        }
    }
}

/// One connection with heavy queries, in sequence.
fn heavy_client(address: SocketAddr, queries: &[Heavy], end: Instant, seed: u64) -> BTreeMap<String, Tally> {
    let mut random = fastrand::Rng::with_seed(!seed);
    lower_priority();
    let (mut tallies, mut connection) = (BTreeMap::<String, Tally>::new(), None);
    while Instant::now() < end {
        let query = &queries[random.usize(..queries.len())];
        let tally = tallies.entry(query.name.clone()).or_default();
        if query.expected == Expected::Disconnect {
            match Connection::open(address)
                .and_then(|mut own| own.send(query.path, &query.text).map(|()| own))
            {
                Ok(own) => {
                    std::thread::sleep(PAUSE);
                    drop(own);
                    tally.count("disconnected");
                }
                Err(error) => tally.wrong(format!("{}: {error}", query.name)),
            }
            continue;
        }
        let start = Instant::now();
        let response = match send_query(&mut connection, address, query.path, &query.text) {
            Ok(response) => response,
            Err(error) => {
                tally.wrong(format!("{}: {error}", query.name));
                continue;
            }
        };
        match query.expected {
            Expected::Rows(rows)
                if response.status == 200 && response.whole && response.lines == rows + 1 =>
            {
                tally.correct(start.elapsed());
            }
            // On a busy machine every query may reach its timeout; the queries that expect a timeout must
            // reach it.
            Expected::Rows(_)
                if response.status == 200 && !response.whole && start.elapsed() >= QUERY_TIMEOUT =>
            {
                tally.count("200, truncated at the timeout");
            }
            Expected::Rows(_) if response.status != 503 && tally.limit(&response) => {}
            Expected::Limit(status) if response.status == status && tally.limit(&response) => {}
            Expected::Limit(507) if response.status == 504 && tally.limit(&response) => {}
            _ if response.status == 503 && tally.limit(&response) => std::thread::sleep(PAUSE),
            _ => {
                tally.wrong(format!("{}, {:?} expected: {}", query.name, query.expected, describe(&response)))
            }
        }
    }
    tallies
}

/// One connection that repeats one hostile request every [`HOSTILE_EVERY`], or later if the response
/// takes longer.
fn hostile_client(address: SocketAddr, request: &Hostile, end: Instant) -> BTreeMap<String, Tally> {
    lower_priority();
    let (mut tally, mut connection) = (Tally::default(), None);
    let mut due = Instant::now();
    while Instant::now() < end {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let start = Instant::now();
        due = start + HOSTILE_EVERY;
        match send_query(&mut connection, address, request.path, &request.text) {
            Ok(response) if response.status == 200 && response.whole => match &request.expected {
                Some(expected) if !response.beginning.contains(expected) => {
                    tally.wrong(format!("{}: {}", request.name, response.beginning));
                }
                _ => tally.correct(start.elapsed()),
            },
            Ok(response) if response.status == 200 => tally.count("200, truncated at a limit"),
            Ok(response) if response.status == 503 && tally.limit(&response) => std::thread::sleep(PAUSE),
            Ok(response) if tally.limit(&response) => {}
            Ok(response) if response.status == 400 && response.whole => tally.count("400, refused"),
            Ok(response) => tally.wrong(format!("{}: {}", request.name, describe(&response))),
            Err(error) => tally.wrong(format!("{}: {error}", request.name)),
        }
    }
    BTreeMap::from([(request.name.clone(), tally)])
}

/// A thread that only computes, at the priority of a heavy request.
pub(crate) fn busy_loop(end: Instant) {
    lower_priority();
    let mut number = 1_u64;
    while Instant::now() < end {
        for _ in 0..10_000 {
            number = std::hint::black_box(number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7));
        }
    }
}

/// Lowers the priority of this thread. It represents another machine, whose work must not delay the server.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(10);
}

/// Sends a query on the open connection, or on a new one, and reads the response.
fn send_query(
    connection: &mut Option<Connection>,
    address: SocketAddr,
    path: &str,
    text: &str,
) -> std::io::Result<Response> {
    let mut open = match connection.take() {
        Some(open) => open,
        None => Connection::open(address)?,
    };
    let response = open.query(path, text)?;
    if response.whole && !response.closes {
        *connection = Some(open);
    }
    Ok(response)
}

fn describe(response: &Response) -> String {
    let whole = if response.whole { "" } else { ", truncated" };
    let text = if response.status == 200 { "" } else { response.first_line() };
    format!("{} with {} lines{whole} {text}", response.status, response.lines)
}

pub(crate) fn light(alone: &Phase, mixed: &Phase, report: &mut Report) {
    let row = |name: &str, phase: &Phase| {
        let tally = &phase.light;
        let mut row = vec![name.to_owned(), tally.times.len().to_string()];
        row.push(format!("{:.0}", tally.times.len() as f64 / phase.seconds));
        row.extend([500, 950, 990, 999, 1000].map(|thousandths| format!("{:.2}", tally.at(thousandths))));
        row.push(others(tally));
        row
    };
    let head = [
        "light queries",
        "correct results",
        "a second",
        "median ms",
        "95 % ms",
        "99 % ms",
        "99.9 % ms",
        "longest ms",
        "other responses",
    ];
    report.table(&head, &[row("alone", alone), row("beside heavy queries", mixed)]);
    let rate = alone.light.times.len().max(1) as f64 / alone.seconds;
    report.line(&format!(
        "Processor time of the server: alone {:.0} µs for each light query, both together {:.2} cores.\n",
        alone.cores / rate * 1e6,
        mixed.cores
    ));
}

pub(crate) fn heavy(mixed: &Phase, report: &mut Report) {
    let rows: Vec<Vec<String>> = mixed
        .heavy
        .iter()
        .map(|(name, tally)| {
            let seconds = |thousandths| format!("{:.2}", tally.at(thousandths) / 1000.0);
            vec![name.clone(), tally.times.len().to_string(), seconds(500), seconds(990), others(tally)]
        })
        .collect();
    report.table(&["heavy query", "correct results", "median s", "99 % s", "other responses"], &rows);
    let mut all = BTreeMap::<&str, u64>::new();
    for tally in mixed.heavy.values().chain([&mixed.light]) {
        for (what, count) in &tally.outcomes {
            *all.entry(what).or_default() += count;
        }
    }
    let all: Vec<String> = all.into_iter().map(|(what, count)| format!("{count} × {what}")).collect();
    report.line(&format!("All responses beside heavy queries: {}.\n", all.join("; ")));
}

fn others(tally: &Tally) -> String {
    let others = tally.outcomes.iter().filter(|(what, _)| *what != CORRECT);
    let others: Vec<String> = others.map(|(what, count)| format!("{count} × {what}")).collect();
    if others.is_empty() { "none".to_owned() } else { others.join("; ") }
}

/// Reports the memory over time; returns whether it is constant.
pub(crate) fn memory(phase: &Phase, report: &mut Report) -> bool {
    let rows: Vec<Vec<String>> = phase
        .samples
        .chunks(phase.samples.len().div_ceil(10).max(1))
        .map(|samples| {
            let max = |of: fn(&Sample) -> f64| samples.iter().map(of).fold(0.0, f64::max);
            vec![
                format!("{:.0}", samples.last().map_or(0.0, |sample| sample.seconds)),
                format!("{:.0}", median(samples)),
                format!("{:.0}", max(|sample| sample.memory)),
                format!("{:.0}", max(|sample| sample.running)),
                format!("{:.0}", max(|sample| sample.waiting)),
            ]
        })
        .collect();
    report.table(&["until s", "memory MiB, median", "max", "requests running, max", "waiting, max"], &rows);
    let quarter = phase.samples.len() / 4;
    let (early, late) = (median(&phase.samples[quarter..2 * quarter]), median(&phase.samples[3 * quarter..]));
    let is_constant = late <= (early * GROWTH_MAX.0).max(early + GROWTH_MAX.1);
    report.line(&format!(
        "Memory, median of the second quarter: {early:.0} MiB, of the last: {late:.0} MiB: {}.\n",
        if is_constant { "constant" } else { "**growing**" }
    ));
    is_constant
}

fn median(samples: &[Sample]) -> f64 {
    let mut memory: Vec<f64> = samples.iter().map(|sample| sample.memory).collect();
    memory.sort_by(f64::total_cmp);
    memory.get(memory.len() / 2).copied().unwrap_or(0.0)
}
