//! The ACID tests over processes of `vervet serve` that elect a leader, while they are killed, stopped,
//! slowed down and cut off from each other: `cargo xtask conformance acid --cluster N --faults KINDS`.
//!
//! # Shape
//! One cluster for all tests; each test of each round has vertices of its own. A transaction is a session of
//! Gremlin at the leader. One that ends because its server has failed, or does not lead, runs again from its
//! start: no commit was sent. A commit without an answer, or with the error that its outcome is unknown,
//! counts as unknown, and the checks at the end allow both outcomes.
//!
//! What a server shows that does not lead may be older. So a transaction that only reads ends with a change,
//! with which it moves to the leader if it is not there, and is rolled back: if the leader shows another
//! graph than it has read, it runs again. A transaction also runs again if the start graph is not there yet:
//! a leader that is cut off does not know that it leads no more.
//! # Differences from the embedded tests
//! Serializable alone, and no savepoints, which sessions do not have. A text that grows is read and written
//! by the client. Faults end transactions and connections, so how many states readers see is not checked.

mod cases;
mod environment;

use super::{Form, THREADS};
use crate::Report;
use crate::server_faults::{FaultKind, Injector};
use crate::voter_processes::{Http, PATIENCE, Servers, program};
use environment::{Environment, Tally};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;
use vervet::Database;
use vervet_model::lock;
use vervet_testkit::Random;

/// What to run.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Number of processes.
    pub servers: usize,
    /// Kinds of faults.
    pub faults: Vec<FaultKind>,
    /// Of all choices.
    pub seed: u64,
    /// Sleeps and rounds.
    pub form: Form,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self { servers: 4, faults: Vec::new(), seed: 1, form: Form::SHORT }
    }
}

/// Rounds of each test for each round of the embedded ones: faults come every few seconds.
const ROUNDS_EACH: u64 = 20;

/// Runs all tests with faults; prints a line for each.
///
/// # Errors
/// The program `vervet` is missing; the cluster cannot be made; a server does not become ready again.
pub fn run(options: &ServerOptions, report: &mut Report) -> Result<(), String> {
    let ServerOptions { servers: count, faults, seed, form } = options;
    let program = program()?;
    println!("seed {seed}, {count} servers, {THREADS} threads, sleeps of {} ms", form.sleep.as_millis());
    let database = Database::in_memory();
    let made = database.update("INSERT DATA { <urn:acid:start> a <urn:acid:Start> }");
    made.map_err(|error| error.to_string())?;
    let mut servers = Servers::start_with_relays(&program, &database, *count)?;
    let (leader, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let injector = Injector::new(&servers, faults, &leader, random);
    let mut all = Tally::default();
    let figures = std::thread::scope(|scope| {
        let injecting = scope.spawn(|| injector.run(&is_over));
        for round in 0..form.rounds * ROUNDS_EACH {
            for (number, (name, collide, test)) in (1_u64..).zip(cases::TESTS) {
                if injecting.is_finished() {
                    break;
                }
                let environment = Environment {
                    servers: &servers,
                    leader: &leader,
                    sleep: form.sleep,
                    seed: seed.wrapping_add(round * 1000 + number),
                    prefix: format!("urn:acid:{round}:{number}:"),
                    tally: Mutex::default(),
                };
                let begun = Instant::now();
                let result = test(&environment);
                let tally = *lock(&environment.tally);
                println!("{name:4} round {round}: {tally}; {:.2} s", begun.elapsed().as_secs_f64());
                all.add(&tally);
                report.add(
                    name,
                    &format!("seed {seed}, round {round}"),
                    result.and_then(|()| enough(&tally, collide)),
                );
            }
        }
        is_over.store(true, Ordering::SeqCst);
        injecting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    println!("{all}");
    let end = figures.and_then(|figures| {
        println!("{figures}");
        equal_graphs(&servers)
    });
    if end.is_err() || report.failed() > 0 {
        println!("the files of the servers are in {}", servers.keep().display());
    }
    report.add("equal graphs", "at all servers", end);
    Ok(())
}

/// The limits of aborts: see [`Writers`](super::Writers).
fn enough(tally: &Tally, collide: bool) -> Result<(), String> {
    let decided = tally.commits + tally.aborts;
    // Of those that collide one wins, perhaps one with an unknown outcome.
    let few = if collide {
        (tally.commits + tally.unknown) * THREADS >= decided
    } else {
        tally.aborts * 20 < decided.max(1)
    };
    match (few, tally.read_aborts) {
        (false, _) => Err(format!("too many writers abort: {tally}")),
        (true, 1..) => Err(format!("transactions that only read abort: {tally}")),
        (true, 0) => Ok(()),
    }
}

/// All servers show the same statements to strict reads.
fn equal_graphs(servers: &Servers) -> Result<(), String> {
    let http = Http::new(PATIENCE);
    let mut first: Option<Vec<String>> = None;
    for server in &servers.servers {
        let answer = http.strict_query(&server.address, "SELECT ?s ?p ?o { ?s ?p ?o }");
        let Ok((200, csv)) = answer else { return Err(format!("server {}: {answer:?}", server.name)) };
        let mut rows: Vec<String> = csv.lines().map(str::to_owned).collect();
        rows.sort_unstable();
        if first.as_ref().is_some_and(|first| *first != rows) {
            return Err(format!("server {} has another graph", server.name));
        }
        first = Some(rows);
    }
    Ok(())
}
