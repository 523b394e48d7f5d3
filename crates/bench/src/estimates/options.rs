//! Options of a run.

use std::path::PathBuf;
use std::time::Duration;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct EstimateOptions {
    /// The folder of test data, which contains `data` and `conformance`.
    pub data: PathBuf,
    /// Only these parts of [`super::PARTS`]; empty: all.
    pub only: Vec<String>,
    /// Number of edges of the generated graph.
    pub edges: u32,
    /// Number of parameters of each operation of the social network.
    pub count: usize,
    /// Time limit of a query.
    pub limit: Duration,
    /// Number of the worst steps that are listed for each benchmark.
    pub worst: usize,
    /// Also write all plans with estimated and actual rows to this file.
    pub plans: Option<PathBuf>,
}
