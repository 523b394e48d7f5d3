//! Faults of servers in the middle of queries: `cargo xtask cluster-chaos`.
//!
//! A graph is spread over this process and others. In each round a query runs, and after a random time
//! something happens to one of the servers or to the connections to it. The query must give the right answer,
//! or say that a server is unavailable or that its time is over, within its deadline; afterwards, with the
//! fault ended, the same query must give the right answer.
//!
//! On the network of the machine, faults of connections are those that the server that asks adds to its own
//! (`vervet-peer`). In namespaces (`--namespaces`) they are those of links, between any two servers.

use crate::Report;
use crate::cluster::{Process, directories, directories_at};
use crate::namespaces;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vervet::{Database, DatabaseOptions, ErrorKind, OutputFormat, QueryOptions};
use vervet_cluster::Cluster;
use vervet_peer::{ALWAYS, FaultPlan};

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// For how long.
    pub time: Duration,
    /// At most so many rounds.
    pub rounds: u64,
    /// Of all choices.
    pub seed: u64,
    /// One fault alone, by its name.
    pub fault: Option<String>,
    /// Number of processes.
    pub servers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { time: Duration::from_secs(60), rounds: u64::MAX, seed: 1, fault: None, servers: 4 }
    }
}

/// What happens to a server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fault {
    Kill,
    Stop,
    Slow,
    CutRequests,
    CutAnswers,
    Garbage,
    NoRequests,
    NoAnswers,
    CutOff,
    Between,
}

const FAULTS: [(Fault, &str); 8] = [
    (Fault::Kill, "kill"),
    (Fault::Stop, "stop"),
    (Fault::Slow, "slow"),
    (Fault::CutRequests, "cut-requests"),
    (Fault::CutAnswers, "cut-answers"),
    (Fault::Garbage, "garbage"),
    (Fault::NoRequests, "no-requests"),
    (Fault::NoAnswers, "no-answers"),
];

/// The faults in namespaces: a link is slow, is gone, loses what goes to or comes from the server that asks,
/// or what goes from one of the others to another.
const FAULTS_OF_LINKS: [(Fault, &str); 7] = [
    (Fault::Kill, "kill"),
    (Fault::Stop, "stop"),
    (Fault::Slow, "slow"),
    (Fault::CutOff, "cut-off"),
    (Fault::NoRequests, "no-requests"),
    (Fault::NoAnswers, "no-answers"),
    (Fault::Between, "between"),
];

/// Deadline of a query.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Beyond the deadline: a busy machine.
const GRACE: Duration = Duration::from_secs(8);

/// A server that has come back answers within this time.
const RETURN: Duration = Duration::from_secs(30);

/// How the rounds of a fault ended.
#[derive(Clone, Copy, Default)]
struct Counts {
    right: u64,
    unavailable: u64,
    deadline: u64,
    slowest: Duration,
}

/// A query with the answer that one database gives.
struct Case {
    name: String,
    text: String,
    options: QueryOptions,
    expected: Vec<String>,
}

/// Runs rounds until the time is over.
///
/// # Errors
/// Missing data; the servers cannot be started.
pub fn run(options: &Options, data: &Path, report: &mut Report) -> Result<(), String> {
    let links = namespaces::is_inside();
    let all: &[(Fault, &str)] = if links { &FAULTS_OF_LINKS } else { &FAULTS };
    let faults: Vec<_> = all
        .iter()
        .copied()
        .filter(|(_, name)| options.fault.as_ref().is_none_or(|wanted| wanted == name))
        .collect();
    if faults.is_empty() {
        let names: Vec<_> = all.iter().map(|(_, name)| *name).collect();
        return Err(format!("no fault has this name; they are {}", names.join(", ")));
    }
    let database = Database::in_memory();
    database.load_file(data.join("lubm/lubm-1.nt.zst")).map_err(|error| error.to_string())?;
    let cases = cases(&database, &data.join("lubm/queries"))?;
    let partitions = (options.servers * 4).next_power_of_two();
    let (folder, mut made) = if links {
        namespaces::prepare()?;
        let addresses: Vec<String> = (0..options.servers).map(namespaces::address).collect();
        directories_at(&database, &addresses, partitions)?
    } else {
        directories(&database, options.servers, partitions)?
    };
    let others = made.split_off(1);
    let mut victims = Vec::new();
    for (directory, server) in others.into_iter().zip(1..) {
        let process = start(server, &directory, links)?;
        victims.push(Victim { server, directory, process, links });
    }
    let own = Cluster::open(&made[0], &DatabaseOptions::default()).map_err(|error| error.to_string())?;
    println!("seed {}, {} servers, {} queries", options.seed, options.servers, cases.len());
    let mut random = Random(options.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let begun = Instant::now();
    let mut counts: BTreeMap<Fault, Counts> = BTreeMap::new();
    let mut round = 0;
    while begun.elapsed() < options.time && round < options.rounds {
        round += 1;
        let case = &cases[random.below(cases.len())];
        let (fault, name) = faults[random.below(faults.len())];
        let victim = random.below(victims.len());
        // Another one of the others, if there are two.
        let other = (victim + 1 + random.below(victims.len().max(2) - 1)) % victims.len() + 1;
        let delay = Duration::from_micros(random.below(30_000) as u64);
        let fault_seed = options.seed.wrapping_add(round);
        // A command for a link takes longer than most queries: half of the faults are there before.
        let is_before = links && random.below(2) == 0;
        if is_before {
            victims[victim].begin(fault, &own, other, fault_seed)?;
        }
        let (asked, answer) = std::thread::scope(|scope| {
            let query = scope.spawn(|| {
                let asked = Instant::now();
                let answer = answer(own.database(), case);
                (asked.elapsed(), answer)
            });
            // The query is somewhere in its middle.
            std::thread::sleep(delay);
            let begun = match is_before {
                true => Ok(()),
                false => victims[victim].begin(fault, &own, other, fault_seed),
            };
            begun.map(|()| query.join().unwrap_or((Duration::ZERO, Err(None))))
        })?;
        let count = counts.entry(fault).or_default();
        count.slowest = count.slowest.max(asked);
        let label = format!("round {round}, {name} of server {}, {}", victim + 1, case.name);
        let mut outcome = match answer {
            Ok(rows) if rows == case.expected => {
                count.right += 1;
                Ok(())
            }
            Ok(rows) => Err(format!("{} rows, expected {}, or other ones", rows.len(), case.expected.len())),
            Err(Some(ErrorKind::Unavailable)) => {
                count.unavailable += 1;
                Ok(())
            }
            Err(Some(ErrorKind::Deadline)) => {
                count.deadline += 1;
                Ok(())
            }
            Err(kind) => Err(format!("an error of the kind {kind:?}")),
        };
        if asked > TIMEOUT + GRACE {
            outcome = Err(format!("it took {asked:?}"));
        }
        victims[victim].end(fault, &own, other)?;
        let returned = Instant::now();
        while outcome.is_ok() {
            match self::answer(own.database(), case) {
                Ok(rows) if rows == case.expected => break,
                Ok(_) => outcome = Err("a wrong answer afterwards".to_owned()),
                Err(kind) if returned.elapsed() > RETURN => {
                    outcome = Err(format!("afterwards still an error of the kind {kind:?}"));
                }
                Err(_) => {}
            }
        }
        report.add(name, &label, outcome);
    }
    println!(
        "| fault | queries | right | unavailable | deadline | slowest s |\n| --- | ---: | ---: | ---: | ---: | ---: |"
    );
    for (fault, name) in all {
        let Some(Counts { right, unavailable, deadline, slowest }) = counts.get(fault) else { continue };
        let all = right + unavailable + deadline;
        println!("| {name} | {all} | {right} | {unavailable} | {deadline} | {:.2} |", slowest.as_secs_f64());
    }
    drop(own);
    drop(folder);
    Ok(())
}

/// The queries of LUBM, some of them light, with what the database answers.
fn cases(database: &Database, queries: &Path) -> Result<Vec<Case>, String> {
    let failed = |error: std::io::Error| format!("could not read the queries of LUBM: {error}");
    let mut files: Vec<PathBuf> = std::fs::read_dir(queries)
        .map_err(failed)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rq"));
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).map_err(failed)?;
        let is_template = file.to_string_lossy().contains(".template");
        if is_template || text.to_uppercase().contains("LIMIT") {
            continue;
        }
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for heavy_from in [Duration::ZERO, QueryOptions::default().heavy_from] {
            let threads = QueryOptions::default().with_threads(2);
            let options = QueryOptions { heavy_from, timeout: Some(TIMEOUT), ..threads };
            let mut case = Case { name: name.clone(), text: text.clone(), options, expected: Vec::new() };
            case.expected = answer(database, &case).map_err(|kind| format!("{name}: {kind:?}"))?;
            cases.push(case);
        }
    }
    Ok(cases)
}

/// The rows of a query, sorted; the kind of its error, unless it has panicked.
fn answer(database: &Database, case: &Case) -> Result<Vec<String>, Option<ErrorKind>> {
    let mut bytes = Vec::new();
    let written = database.write(&case.text, &case.options, OutputFormat::Tsv, &mut bytes);
    written.map_err(|error| Some(error.kind()))?;
    let text = String::from_utf8(bytes).map_err(|_| None)?;
    let mut rows: Vec<String> = text.lines().map(str::to_owned).collect();
    rows.sort_unstable();
    Ok(rows)
}

/// Another server than the one that asks.
struct Victim {
    /// Its number, from 1.
    server: usize,
    directory: PathBuf,
    process: Process,
    /// Whether it is in a namespace.
    links: bool,
}

/// A process that runs a server.
fn start(server: usize, directory: &Path, links: bool) -> Result<Process, String> {
    let mut process = if links { Process::start_in_namespace(server)? } else { Process::start()? };
    process.tell("open", directory)?;
    Ok(process)
}

impl Victim {
    /// `other`: the other end of the connection that is disturbed, if it is not the server that asks.
    fn begin(&mut self, fault: Fault, own: &Cluster, other: usize, seed: u64) -> Result<(), String> {
        let (server, process) = (self.server, self.process.id());
        let none = FaultPlan { seed, ..FaultPlan::default() };
        let plan = match fault {
            Fault::Kill => {
                self.process.kill();
                return Ok(());
            }
            Fault::Stop => {
                self.process.signal("STOP");
                return Ok(());
            }
            Fault::CutOff => return namespaces::set_link(server, false),
            Fault::Between => return namespaces::lose(Some((server, process)), other),
            Fault::Slow if self.links => return namespaces::slow(server, process),
            Fault::NoRequests if self.links => return namespaces::lose(None, server),
            Fault::NoAnswers if self.links => return namespaces::lose(Some((server, process)), 0),
            Fault::Slow => FaultPlan { delay: Duration::from_millis(200), ..none },
            Fault::CutRequests => FaultPlan { cut_requests: ALWAYS / 4, ..none },
            Fault::CutAnswers => FaultPlan { cut_answers: ALWAYS / 4, ..none },
            Fault::Garbage => FaultPlan { garbage_requests: ALWAYS / 8, garbage_answers: ALWAYS / 8, ..none },
            Fault::NoRequests => FaultPlan { dropped_requests: ALWAYS, ..none },
            Fault::NoAnswers => FaultPlan { dropped_answers: ALWAYS, ..none },
        };
        set(own, server, &plan);
        Ok(())
    }

    fn end(&mut self, fault: Fault, own: &Cluster, other: usize) -> Result<(), String> {
        let (server, process) = (self.server, self.process.id());
        match fault {
            Fault::Kill => self.process = start(server, &self.directory, self.links)?,
            Fault::Stop => self.process.signal("CONT"),
            Fault::CutOff => return namespaces::set_link(server, true),
            Fault::Between => return namespaces::find(Some((server, process)), other),
            Fault::Slow if self.links => return namespaces::quicken(server, process),
            Fault::NoRequests if self.links => return namespaces::find(None, server),
            Fault::NoAnswers if self.links => return namespaces::find(Some((server, process)), 0),
            _ => set(own, server, &FaultPlan::default()),
        }
        Ok(())
    }
}

/// Sets the faults of the connections to a server.
fn set(own: &Cluster, server: usize, plan: &FaultPlan) {
    let name = own.map().servers.get(server).map(|entry| entry.name.clone());
    if let Some(faults) = name.and_then(|name| own.faults(&name)) {
        faults.set(plan.clone());
    }
}

struct Random(u64);

impl Random {
    /// xorshift64 (Marsaglia 2003), below `count`.
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap_or(0) % count
    }
}
