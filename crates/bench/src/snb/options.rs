//! Options of a run.

use super::peer::PeerOptions;
use std::path::PathBuf;
use std::time::Duration;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct SnbOptions {
    /// Only operations with these names; empty: all.
    pub only: Vec<String>,
    /// A file with persons, messages and dates for parameters; without it they are drawn from the data.
    pub parameters: Option<PathBuf>,
    /// The number of parameters of each operation.
    pub count: usize,
    /// Time for each operation in each language.
    pub time: Duration,
    /// Compare with this process.
    pub peer: Option<PeerOptions>,
    /// The path of this program, to measure memory in a subprocess; without it memory is not measured.
    pub program: Option<PathBuf>,
}
