//! Options of a run, and the isolation levels of the histories.

use std::path::PathBuf;
use vervet::Isolation;

/// Options of [`run`](super::run).
#[derive(Clone, Debug)]
pub struct Options {
    /// The number of commits in total; determines the number of histories.
    pub transactions: u64,
    /// Seed of all randomness except thread scheduling.
    pub seed: u64,
    /// The output folder of the histories, which are kept.
    pub to: PathBuf,
    /// The program `dbcop`.
    pub dbcop: Option<PathBuf>,
    /// A program that runs a Clojure script with Elle on its class path: `PROGRAM SCRIPT ARGUMENT...`.
    pub elle: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { transactions: 100_000, seed: 1, to: "target/histories".into(), dbcop: None, elle: None }
    }
}

/// An isolation level, as the checkers name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Level {
    pub(super) isolation: Isolation,
    pub(super) name: &'static str,
    pub(super) elle: &'static str,
    pub(super) dbcop: &'static str,
}

pub(super) const LEVELS: [Level; 2] = [
    Level {
        isolation: Isolation::Serializable,
        name: "serializable",
        elle: "strong-serializable",
        dbcop: "serializable",
    },
    Level {
        isolation: Isolation::Snapshot,
        name: "snapshot",
        elle: "strong-snapshot-isolation",
        dbcop: "snapshot-isolation",
    },
];
