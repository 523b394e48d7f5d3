//! Options of a run, and the names of its parts.

use std::time::Duration;

/// The names of all parts.
pub const PARTS: [&str; 7] = ["inserts", "sync", "bulk", "readers", "lbv", "bank", "steady"];

/// Options of a run.
#[derive(Clone, Debug)]
pub struct TransactionOptions {
    /// Only these of [`PARTS`]; empty: all.
    pub only: Vec<String>,
    /// Time for each figure.
    pub time: Duration,
    /// The number of updates of the part `steady`.
    pub updates: u64,
    /// The part `steady` runs for this time instead.
    pub steady_time: Option<Duration>,
    /// The maximum rate of updates, and of reads, of the part `steady`, per second.
    pub rate: Option<f64>,
    /// The statements of one transaction of the part `bulk`.
    pub bulk: u64,
    /// Numbers of client threads.
    pub clients: Vec<usize>,
}
