//! Configurations of a scenario, and its limits.

use std::time::Duration;

/// The time limit of a traversal.
pub(super) const TIMEOUT: Duration = Duration::from_secs(120);
/// The memory cap of a traversal: the largest scenario has a million traversers, each held in the side effect
/// and behind it.
pub(super) const MEMORY_BYTES_MAX: u64 = 1 << 30;
/// Prefix of file names in traversals.
pub(super) const DATA_PREFIX: &str = "\"data/";

/// The storage of the data of a scenario.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Configuration {
    /// In the base: loaded, or merged into it.
    Base,
    /// In the delta: written by transactions.
    Delta,
    /// Like `Delta`, with every step as a step and no kernels.
    Steps,
}
