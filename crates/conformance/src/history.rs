//! Histories of concurrent transactions, recorded for third-party consistency checkers.
//!
//! # Shape
//! Threads run random transactions against the facade and record their operations and what they read. A
//! history consists either of *registers* (read a value, replace it) or of *lists* (read all, append one).
//! Its keys are stored in one of five layouts, so that reads go through property values, edges, reverse
//! edges, types, and the index from a value to its vertices (`storage.rs`). Each history is written as
//! Jepsen's EDN, for Elle, and as JSON for dbcop (`write.rs`). [`run`] passes them to both checkers, where
//! given, for a verdict at the level at which the transactions ran (`checkers.rs`).
//! # Validity of the verdicts
//! The clients neither check nor correct results: the checkers see the values that the database returned.
//! Without the third parties, our own checker (`own_checker.rs`) judges serializable histories. To show that
//! checkers detect anomalies, all must also reject faulty histories (`fault_injection.rs`): one read is
//! changed afterwards, or clients split their transactions, or, at serializable, the clients ran under
//! snapshot isolation.
//! # Claims
//! At the serializable level: Elle's *strong serializability* (also in real time) and dbcop's
//! serializability. Under snapshot isolation: *strong snapshot isolation*, and dbcop's snapshot isolation,
//! the latter for short histories, since dbcop takes exponential time for some.
//! # Lists in a graph
//! A list is a set of elements with positions. An append counts them and adds the next one. At the
//! serializable level nothing else prevents two appends from taking the same position. Under snapshot
//! isolation two transactions that add different edges do not conflict, so there an append also replaces the
//! length of the list, except where the elements are values of one property, which is locked as a whole.
//! # Source
//! Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations", VLDB 2020;
//! Biswas and Enea, "On the Complexity of Checking Transactional Consistency", OOPSLA 2019 (dbcop).

mod checkers;
mod client;
mod dependencies;
mod fault_injection;
mod options;
mod own_checker;
mod record;
mod requests;
mod servers;
mod storage;
mod write;

pub use client::THREADS;
pub use options::Options;
pub use servers::run as run_over_servers;

use crate::Report;
use client::Workload;
use fault_injection::Fault;
use options::{LEVELS, Level};
use record::{CommitOutcome, History, Kind};
use std::path::Path;
use std::time::Instant;
use storage::StorageForm;
use vervet::{Durability, Isolation};
use vervet_testkit::Random;

/// Transactions of a history, committed or not.
const HISTORY_TRANSACTIONS: u64 = 1_000;
/// Transactions of a history with a planted fault, and of one that dbcop checks at snapshot isolation: the
/// search for an order may take exponential time, and longer still to find that none exists.
const SHORT_TRANSACTIONS: u64 = 48;
/// Rounds of such histories at snapshot isolation; a round has one of each kind and layout.
const SHORT_ROUNDS: u64 = 4;

/// The category of the verdicts of our own checker.
const OWN: &str = "own checker, strictly serializable";

/// Transaction outcomes of several histories.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    histories: u64,
    committed: u64,
    refused: u64,
    unknown: u64,
}

impl Tally {
    fn add(&mut self, history: &History) {
        self.histories += 1;
        self.committed += history.count(CommitOutcome::Committed);
        self.refused += history.count(CommitOutcome::Refused);
        self.unknown += history.count(CommitOutcome::Unknown);
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { histories, committed, refused, unknown } = self;
        let tenths = refused * 1000 / (committed + refused + unknown).max(1);
        write!(
            f,
            "{histories} histories, {committed} transactions committed, {refused} refused ({}.{} %)",
            tenths / 10,
            tenths % 10
        )?;
        if *unknown > 0 { write!(f, ", {unknown} with an unknown outcome") } else { Ok(()) }
    }
}

/// Records histories and has them checked: correct ones, then ones with faults. Prints a line for each step.
///
/// # Errors
/// A failing database or checker, an unwritable folder. A wrong verdict is a failure in the report.
pub fn run(options: &Options, report: &mut Report) -> Result<(), String> {
    println!("seed {}, {THREADS} threads, histories in {}", options.seed, options.to.display());
    let mut random = Random(options.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    std::fs::create_dir_all(&options.to)
        .map_err(|error| format!("could not make {}: {error}", options.to.display()))?;
    for level in LEVELS {
        let folder = options.to.join(level.name);
        let (start, mut tally, mut rounds) = (Instant::now(), Tally::default(), 0);
        while tally.committed * 2 < options.transactions {
            let histories =
                round(options, level, HISTORY_TRANSACTIONS, rounds, &folder, &mut random, &mut tally)?;
            if level.isolation == Isolation::Serializable {
                histories
                    .iter()
                    .for_each(|(name, history)| report.add(OWN, name, own_checker::check(history)));
            }
            rounds += 1;
        }
        println!("{}: {tally}, in {:.1} s", level.name, start.elapsed().as_secs_f64());
        if level.isolation == Isolation::Serializable {
            checkers::accepted_by_dbcop(options, level, &folder, tally.histories, report)?;
        }
        checkers::accepted_by_elle(options, level, &folder, tally.histories, report)?;
        if level.isolation == Isolation::Snapshot {
            let folder = options.to.join("snapshot-short");
            let mut tally = Tally::default();
            for number in 0..SHORT_ROUNDS {
                round(options, level, SHORT_TRANSACTIONS, number, &folder, &mut random, &mut tally)?;
            }
            println!("{}, short: {tally}", level.name);
            checkers::accepted_by_dbcop(options, level, &folder, tally.histories, report)?;
        }
    }
    for fault in Fault::ALL {
        planted(options, fault, &mut random, report)?;
    }
    Ok(())
}

/// A history of each kind and layout, with its name.
fn round(
    options: &Options,
    level: Level,
    transactions: u64,
    number: u64,
    folder: &Path,
    random: &mut Random,
    tally: &mut Tally,
) -> Result<Vec<(String, History)>, String> {
    let mut histories = Vec::new();
    for kind in Kind::ALL {
        for shape in StorageForm::ALL {
            let workload = Workload {
                place: place(number, &options.to.join("database")),
                ..Workload::new(kind, shape, level.isolation, transactions)
            };
            let history = client::record(&workload, random)?;
            tally.add(&history);
            let name = format!("{}-{}-{number:03}", kind.name(), shape.name());
            write::write(&history, folder, &name)?;
            histories.push((name, history));
        }
    }
    Ok(histories)
}

/// A third of the histories in memory; a third in a directory with synced commits, whose database is reopened
/// half way; a third in a directory with continuous checkpoints.
fn place(number: u64, directory: &Path) -> Option<client::DatabaseLocation> {
    let place = |durability, checkpoints| client::DatabaseLocation {
        directory: directory.to_owned(),
        durability,
        checkpoints,
    };
    match number % 3 {
        0 => None,
        1 => Some(place(Durability::Sync, false)),
        _ => Some(place(Durability::None, true)),
    }
}

fn planted(options: &Options, fault: Fault, random: &mut Random, report: &mut Report) -> Result<(), String> {
    let folder = options.to.join("planted").join(fault.name());
    let (start, mut tally) = (Instant::now(), Tally::default());
    for kind in Kind::ALL {
        for shape in StorageForm::ALL {
            let name = format!("{}-{}", kind.name(), shape.name());
            let history = fault_injection::record(kind, shape, fault, SHORT_TRANSACTIONS, random)?;
            tally.add(&history);
            write::write(&history, &folder, &name)?;
            let found = own_checker::check(&history).err();
            let rejected = found.map(drop).ok_or_else(|| "it was accepted".to_owned());
            report.add(&format!("{OWN}: fault '{}' rejected", fault.name()), &name, rejected);
        }
    }
    println!("with fault '{}': {tally}, in {:.1} s", fault.name(), start.elapsed().as_secs_f64());
    checkers::rejected(options, fault, &folder, tally.histories, report)
}
