//! Options of transactions, with their defaults.

use std::time::Duration;
use vervet_log::Durability;
use vervet_model::Partitioning;

/// Options of transactions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Durability level: when a commit is acknowledged.
    pub durability: Durability,
    /// Optimistic pre-read (G-Tran, §4.2): a transaction that writes begins at the newest validated version,
    /// on the condition that it becomes durable; its own commit waits for that in any case. `false`: it
    /// begins at the newest durable version, and conflicts with commits that are not durable yet.
    pub pre_read: bool,
    /// Whether checkpoints run in the background when due ([`crate::Transactions::wants_checkpoint`]).
    /// `false`: only calls of [`crate::Transactions::checkpoint`] bound memory and log.
    pub checkpoints: bool,
    /// Maximum memory of changes without a checkpoint, in bytes; commits are delayed, then refused, before it
    /// is exceeded by more than one transaction. Choose at most the spare memory of the machine.
    pub delta_bytes_max: u64,
    /// Maximum size of the log without a checkpoint, in bytes; enforced likewise.
    pub log_bytes_max: u64,
    /// Maximum number of vertices, and of literals, that ever get a number: at most [`TERMS_MAX`].
    pub terms_max: u64,
    /// Maximum wait of a writer for a bulk load.
    pub load_wait: Duration,
    /// The partitions of a graph in memory. A graph in a directory has one.
    pub partitioning: Partitioning,
}

/// Default of [`Options::delta_bytes_max`].
pub const DELTA_BYTES_MAX_DEFAULT: u64 = 2 << 30;
/// Default of [`Options::log_bytes_max`].
pub const LOG_BYTES_MAX_DEFAULT: u64 = 1 << 30;
/// Default of [`Options::load_wait`].
pub const LOAD_WAIT_DEFAULT: Duration = Duration::from_secs(60);
/// Maximum number of vertices, and of literals, that ever get a number: a base counts them in 32 bits.
/// Numbers are not reused, not even those of terms without statements; an export loaded into a new directory
/// numbers only the remaining terms.
pub const TERMS_MAX: u64 = (1 << 32) - (1 << 20);
impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            pre_read: true,
            checkpoints: true,
            delta_bytes_max: DELTA_BYTES_MAX_DEFAULT,
            log_bytes_max: LOG_BYTES_MAX_DEFAULT,
            terms_max: TERMS_MAX,
            load_wait: LOAD_WAIT_DEFAULT,
            partitioning: Partitioning::WHOLE,
        }
    }
}
