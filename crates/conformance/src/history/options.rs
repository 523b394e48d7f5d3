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
    /// What clients of servers avoid: see docs/histories.md.
    pub avoid: Vec<KnownError>,
}

/// An error of sessions over servers that histories find, and that clients avoid on request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KnownError {
    /// Requests of a session at a server that takes no changes at the moment are transactions of their own.
    /// To avoid it, a session that does not write has one request.
    SplitReads,
}

impl KnownError {
    /// The errors in a list of names with commas.
    ///
    /// # Errors
    /// Another name.
    pub fn parse(names: &str) -> Result<Vec<Self>, String> {
        let one = |name: &str| match name {
            "split-reads" => Ok(Self::SplitReads),
            _ => Err(format!("`{name}` is none of the known errors; they are split-reads")),
        };
        names.split(',').map(one).collect()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            transactions: 100_000,
            seed: 1,
            to: "target/histories".into(),
            dbcop: None,
            elle: None,
            avoid: Vec::new(),
        }
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
