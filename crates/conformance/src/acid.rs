//! The twelve tests of the LDBC ACID test suite (Waudby et al., "Towards Testing ACID Compliance in the LDBC
//! Social Network Benchmark", TPCTC 2020), reimplemented from their description on the facade.
//!
//! # Shape
//! Each test has a database of its own: a start graph, then clients from a pool of [`THREADS`] threads, each
//! of which runs transactions, then checks. A graph of persons with properties is written as statements:
//! `DELETE … INSERT … WHERE` replaces a single-valued property, emails are a multi-valued property, a history
//! whose order matters is one growing string, and an edge with properties has a vertex of its own.
//! # What is checked
//! At both levels the anomalies that the level forbids do not occur: all of them when serializable, all but
//! write skew under snapshot isolation, where write skew must be possible. An error other than a conflict
//! fails the test. Read-only transactions never abort. The abort rate of writers is limited per test by
//! `Writers`, so a database that aborts everything fails. All acknowledged writes are there at the end, and
//! nothing else; a database in a directory is reopened and compared.
//! # Differences from the description
//! `C` and `RB` have readers beside the writer, and `RB` has a second writer that rolls back to a savepoint
//! and commits. The writer of `FR` writes 100 times, like that of `OTV`. Each writer of `PMP` adds an edge
//! from another person, since a set of statements holds equal ones once. Sleeps vary by half, and the short
//! form sleeps 10 ms instead of 250; in `G0`, `G1c` and `LU` every second writer waits 1 ms before it
//! commits, so that writers overlap. No client retries after a conflict.
//! # Over servers
//! `servers.rs` has the same tests over processes of `vervet serve`, with faults.
//! # Not here
//! Durability: the crash tests of the log, of transactions and of the command line.

mod atomicity;
mod cycle;
mod isolation;
mod servers;
mod test_environment;
mod updates;

pub use servers::{ServerOptions, run as run_over_servers};
pub use test_environment::THREADS;

use crate::{Report, guarded};
use std::path::Path;
use std::time::{Duration, Instant};
use test_environment::TestEnvironment;
use vervet::Isolation;

/// The extent of a run.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The sleep of a client between two steps, plus or minus half.
    pub sleep: Duration,
    /// The number of runs of each test.
    pub rounds: u64,
    /// Whether each level runs both in memory and in a directory; otherwise snapshot isolation runs in memory
    /// and the serializable level in a directory.
    pub every_place: bool,
}

impl Form {
    /// For daily use: some seconds.
    pub const SHORT: Self = Self { sleep: Duration::from_millis(10), rounds: 1, every_place: false };
    /// With the sleeps of the description: some minutes.
    pub const FULL: Self = Self { sleep: Duration::from_millis(250), rounds: 3, every_place: true };
}

/// The allowed aborts of transactions that write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Writers {
    /// Writers do not conflict: less than 5 % abort.
    Free,
    /// Writers intentionally write the same data. A transaction aborts only for a commit during its life, and
    /// there are at most [`THREADS`]` - 1` others then: so one in [`THREADS`] commits.
    Collide,
}

struct Test {
    name: &'static str,
    writers: Writers,
    run: fn(&TestEnvironment) -> Result<(), String>,
}

const TESTS: [Test; 12] = [
    Test { name: "C", writers: Writers::Free, run: atomicity::commit },
    Test { name: "RB", writers: Writers::Free, run: atomicity::roll_back },
    Test { name: "G0", writers: Writers::Collide, run: isolation::dirty_write },
    Test { name: "G1a", writers: Writers::Free, run: isolation::aborted_read },
    Test { name: "G1b", writers: Writers::Collide, run: isolation::intermediate_read },
    Test { name: "G1c", writers: Writers::Collide, run: isolation::circular_information_flow },
    Test { name: "IMP", writers: Writers::Collide, run: isolation::item_many_preceders },
    Test { name: "PMP", writers: Writers::Free, run: isolation::predicate_many_preceders },
    // One writer, and readers that never abort a transaction.
    Test { name: "OTV", writers: Writers::Free, run: cycle::observed_transaction_vanishes },
    Test { name: "FR", writers: Writers::Free, run: cycle::fractured_read },
    Test { name: "LU", writers: Writers::Collide, run: updates::lost_update },
    Test { name: "WS", writers: Writers::Collide, run: updates::write_skew },
];

/// Runs all tests at both levels; prints a line for each with commits, aborts and the abort rate. Databases
/// in directories are created below `directory`.
pub fn run(form: Form, directory: &Path, seed: u64, report: &mut Report) {
    println!("seed {seed}, {THREADS} threads, sleeps of {} ms", form.sleep.as_millis());
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        for in_directory in [true, false] {
            if !form.every_place && in_directory != (isolation == Isolation::Serializable) {
                continue;
            }
            let level = if isolation == Isolation::Serializable { "serializable" } else { "snapshot" };
            let place = if in_directory { "directory" } else { "memory" };
            let category = format!("{level}, {place}");
            for round in 0..form.rounds {
                for (number, test) in (1_u64..).zip(&TESTS) {
                    let folder = directory.join(format!("{level}-{round}-{}", test.name));
                    let folder = in_directory.then_some(folder.as_path());
                    let seed = seed.wrapping_add(round * 1000 + number);
                    let start = Instant::now();
                    let result = guarded(|| one(test, isolation, form.sleep, folder, seed, &category, start));
                    report.add(&category, &format!("{} (round {round})", test.name), result);
                }
            }
        }
    }
}

fn one(
    test: &Test,
    isolation: Isolation,
    sleep: Duration,
    folder: Option<&Path>,
    seed: u64,
    category: &str,
    start: Instant,
) -> Result<(), String> {
    let environment = TestEnvironment::new(isolation, sleep, folder, seed)?;
    let result = (test.run)(&environment);
    let tally = environment.tally();
    let demand = if test.writers == Writers::Free { "below 5 %" } else { "they collide" };
    println!(
        "{category:23} {:4} {tally} ({demand}); {:.2} s{}",
        test.name,
        start.elapsed().as_secs_f64(),
        environment.notes()
    );
    result?;
    let (commits, aborts) = (tally.writer_commits, tally.writer_aborts);
    let enough = match test.writers {
        Writers::Free => aborts * 20 < (commits + aborts).max(1),
        Writers::Collide => commits > 0 && commits * THREADS >= commits + aborts,
    };
    if !enough {
        return Err(format!("too many writers abort: {tally}"));
    }
    if tally.reader_aborts > 0 {
        return Err(format!("transactions that only read abort: {tally}"));
    }
    environment.reopened_is_the_same(folder)
}
