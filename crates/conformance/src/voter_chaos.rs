//! Faults of servers that elect a leader, under load: `cargo xtask cluster-chaos --voters`.
//!
//! # Shape
//! Three processes of the program `vervet`, each with the whole graph and a vote, take updates from clients
//! over HTTP (`load.rs`). In each round one process is killed or stopped for a while. A round measures the
//! time from the fault until the first acknowledgement of an update that was sent after it, starts a killed
//! process again with the same directory, and then compares what each server shows with what the clients
//! know (`history.rs`). A round fails if an acknowledged update is lost, if one is done twice, if a server
//! that is ready lacks what was acknowledged before its start, or if a read at a server that was not killed
//! fails or shows less than an earlier one there.
//! # Clusters
//! The log of voters has all changes, and a server that starts reads all of them. Every 50 rounds, and after
//! a round that fails, a new cluster begins. At the end of each one, all servers must have equal graphs. The
//! files of a cluster with a failure are kept.

mod history;
mod load;

use crate::Report;
use crate::voter_processes::{Http, LOOK_INTERVAL, PATIENCE, SERVERS, Servers, program};
use history::Shown;
use load::{Counts, Load};
use std::collections::BTreeMap;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};
use vervet::Database;
use vervet_testkit::Random;

/// Rounds with one cluster.
const ROUNDS_EACH: usize = 50;

/// Updates between two rounds, at least and at most.
const UPDATES_BETWEEN: (u64, u64) = (20, 400);

/// Updates that a killed server misses at most after the first one.
const UPDATES_MISSED_MAX: u64 = 200;

/// How long a process is stopped, in milliseconds, at least and at most.
const STOP_MS: (u64, u64) = (200, 3_000);

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Rounds with a kill of the leader, and as many with a kill of any server.
    pub kills: usize,
    /// Rounds with a kill of the leader that is started again at once, before the others elect one.
    pub restarts: usize,
    /// Rounds with a stop of the leader, and as many with a stop of any server.
    pub stops: usize,
    /// Of all choices.
    pub seed: u64,
    /// Clients that write.
    pub clients: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { kills: 20, restarts: 0, stops: 0, seed: 1, clients: 8 }
    }
}

/// What happens to which server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fault {
    KillLeader,
    KillAny,
    RestartLeader,
    StopLeader,
    StopAny,
}

const FAULTS: [(Fault, &str); 5] = [
    (Fault::KillLeader, "leader"),
    (Fault::KillAny, "random"),
    (Fault::RestartLeader, "restart-leader"),
    (Fault::StopLeader, "stop-leader"),
    (Fault::StopAny, "stop-random"),
];

/// What the rounds of a fault have measured.
#[derive(Default)]
struct Figures {
    pauses: Vec<Duration>,
    rounds: u64,
    counts: Counts,
}

/// Runs all rounds, and prints a table of them.
///
/// # Errors
/// The program `vervet` is missing; a cluster cannot be made. Wrong behaviour is a failure in the report.
pub fn run(options: &Options, report: &mut Report) -> Result<(), String> {
    let program = program()?;
    println!("seed {}, {SERVERS} servers, {} clients", options.seed, options.clients);
    let mut random = Random(options.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let rounds = rounds(options);
    let mut figures = BTreeMap::new();
    let mut done = 0;
    while done < rounds.len() {
        let next = &rounds[done..rounds.len().min(done + ROUNDS_EACH)];
        let mut of_cluster = Cluster { options, random: &mut random, figures: &mut figures, report };
        done += of_cluster.run(&program, done, next)?;
    }
    print(&figures);
    Ok(())
}

/// The faults of all rounds: kills in turn, restarts, then stops in turn.
fn rounds(options: &Options) -> Vec<Fault> {
    let kills = (0..options.kills).flat_map(|_| [Fault::KillLeader, Fault::KillAny]);
    let restarts = std::iter::repeat_n(Fault::RestartLeader, options.restarts);
    let stops = (0..options.stops).flat_map(|_| [Fault::StopLeader, Fault::StopAny]);
    kills.chain(restarts).chain(stops).collect()
}

fn name_of(fault: Fault) -> &'static str {
    FAULTS.iter().find(|(one, _)| *one == fault).map_or("", |(_, name)| name)
}

/// The rounds with one cluster.
struct Cluster<'a> {
    options: &'a Options,
    random: &'a mut Random,
    figures: &'a mut BTreeMap<Fault, Figures>,
    report: &'a mut Report,
}

impl Cluster<'_> {
    /// Runs these rounds until one fails; `before`: number of rounds with earlier clusters. Returns how many
    /// it has run.
    fn run(&mut self, program: &Path, before: usize, rounds: &[Fault]) -> Result<usize, String> {
        let database = Database::in_memory();
        let made = database.update(&history::initial_graph(self.options.clients));
        made.map_err(|error| error.to_string())?;
        let mut servers = Servers::start(program, &database)?;
        let load = Load::new(&servers, self.options.clients);
        let (done, is_right) = std::thread::scope(|scope| {
            load.start(scope);
            let done = self.run_rounds(&load, &servers, before, rounds);
            load.end();
            done
        });
        // Now that no client writes.
        let mut end = load.verdict();
        if is_right {
            end = end.and_then(|()| (0..SERVERS).try_for_each(|at| load.catch_up(at)));
            end = end.and_then(|()| equal_graphs(&servers));
        }
        let is_right = is_right && end.is_ok();
        self.report.add("equal graphs", &format!("after round {}", before + done), end);
        if !is_right {
            println!("the files of the servers are in {}", servers.keep().display());
        }
        Ok(done)
    }

    /// Returns the number of rounds, and whether all were right.
    fn run_rounds(
        &mut self,
        load: &Load<'_>,
        servers: &Servers,
        before: usize,
        rounds: &[Fault],
    ) -> (usize, bool) {
        for (at, &fault) in rounds.iter().enumerate() {
            let (counts, begun) = (load.counts(), Instant::now());
            let (victim, outcome) = self.round(load, servers, fault);
            let figures = self.figures.entry(fault).or_default();
            figures.rounds += 1;
            figures.pauses.extend(outcome.as_ref().ok());
            figures.counts.add(load.counts(), counts);
            // What a client or a reader has found is the cause of the rest.
            let outcome = load.verdict().and(outcome);
            let (name, round) = (name_of(fault), before + at + 1);
            let server = victim.map_or("no server", |victim| &servers.servers[victim].name);
            let label = format!("seed {}, round {round}, {name}: server {server}", self.options.seed);
            match &outcome {
                Ok(pause) => println!(
                    "round {round}, {name}, server {server}: writes after {} ms, {:.1} s",
                    pause.as_millis(),
                    begun.elapsed().as_secs_f64()
                ),
                Err(reason) => println!("FAILED {label}: {reason}"),
            }
            let is_right = outcome.is_ok();
            self.report.add(name, &label, outcome.map(drop));
            if !is_right {
                return (at + 1, false);
            }
        }
        (rounds.len(), true)
    }

    /// Returns the position of the server, and the time until writes.
    fn round(
        &mut self,
        load: &Load<'_>,
        servers: &Servers,
        fault: Fault,
    ) -> (Option<usize>, Result<Duration, String>) {
        let between = self.between(UPDATES_BETWEEN);
        if let Err(reason) = load.wait_for(between) {
            return (None, Err(reason));
        }
        let any = usize::try_from(self.random.below(SERVERS as u64)).unwrap_or(0);
        let victim = if matches!(fault, Fault::KillAny | Fault::StopAny) { any } else { load.leader() };
        let outcome = match fault {
            Fault::KillLeader | Fault::KillAny => self.kill(load, servers, victim),
            Fault::RestartLeader => restart(load, servers, victim),
            Fault::StopLeader | Fault::StopAny => self.stop(load, servers, victim),
        };
        let outcome = outcome.and_then(|pause| {
            (0..SERVERS).try_for_each(|at| load.catch_up(at))?;
            Ok(pause)
        });
        (Some(victim), outcome)
    }

    fn kill(&mut self, load: &Load<'_>, servers: &Servers, victim: usize) -> Result<Duration, String> {
        load.begin_fault();
        servers.kill(victim);
        let pause = load.pause()?;
        load.wait_for(self.random.below(UPDATES_MISSED_MAX))?;
        start_again(load, servers, victim)?;
        Ok(pause)
    }

    fn stop(&mut self, load: &Load<'_>, servers: &Servers, victim: usize) -> Result<Duration, String> {
        let time = Duration::from_millis(self.between(STOP_MS));
        servers.signal(victim, "STOP")?;
        // Behind the command, which takes milliseconds: the server acknowledges nothing that is sent later.
        load.begin_fault();
        // This is the fault, and no wait for something.
        sleep(time);
        servers.signal(victim, "CONT")?;
        load.pause()
    }

    fn between(&mut self, (least, most): (u64, u64)) -> u64 {
        least + self.random.below(most - least + 1)
    }
}

fn restart(load: &Load<'_>, servers: &Servers, victim: usize) -> Result<Duration, String> {
    load.begin_fault();
    servers.kill(victim);
    start_again(load, servers, victim)?;
    load.pause()
}

/// Starts a killed server again. Once it is ready, it must have what was acknowledged before its start.
fn start_again(load: &Load<'_>, servers: &Servers, victim: usize) -> Result<(), String> {
    let known = load.known();
    servers.start_again(victim)?;
    match load.look(victim, &known)? {
        Shown::All => Ok(()),
        Shown::Behind(what) => {
            let name = &servers.servers[victim].name;
            Err(format!("server {name} is ready without what was acknowledged before its start: {what}"))
        }
    }
}

/// All servers have the same statements. Nothing is written meanwhile.
fn equal_graphs(servers: &Servers) -> Result<(), String> {
    let (http, begun) = (Http::new(PATIENCE), Instant::now());
    loop {
        let graph = |at: usize| {
            let answer = http.query(&servers.servers[at].address, "SELECT ?s ?p ?o { ?s ?p ?o }")?;
            let mut rows: Vec<String> = answer.lines().map(str::to_owned).collect();
            rows.sort_unstable();
            Ok::<_, String>(rows)
        };
        let first = graph(0)?;
        let mut different = None;
        for at in 1..SERVERS {
            let other = graph(at)?;
            if other != first {
                different =
                    Some(format!("{} rows at one server, other {} at another", first.len(), other.len()));
            }
        }
        match different {
            None => return Ok(()),
            Some(what) if begun.elapsed() > PATIENCE => return Err(what),
            Some(_) => sleep(LOOK_INTERVAL),
        }
    }
}

fn print(figures: &BTreeMap<Fault, Figures>) {
    println!(
        "| fault | rounds | ms until writes p50 | p95 | max | updates acknowledged | answers lost | reads | reads failed |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    );
    for (fault, Figures { pauses, rounds, counts }) in figures {
        let mut pauses = pauses.clone();
        pauses.sort_unstable();
        // The nearest rank.
        let quantile = |percent: usize| {
            let at = (pauses.len() * percent).div_ceil(100).saturating_sub(1);
            pauses.get(at).map_or(0, Duration::as_millis)
        };
        let Counts { acknowledged, lost, reads, failed_reads } = counts;
        println!(
            "| {} | {rounds} | {} | {} | {} | {acknowledged} | {lost} | {reads} | {failed_reads} |",
            name_of(*fault),
            quantile(50),
            quantile(95),
            quantile(100)
        );
    }
}
