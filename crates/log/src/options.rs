//! Options and small public types of the log: LSN, log id, durability level.

use std::fmt;
use std::time::Duration;

/// Log sequence number: a position in the whole log, in bytes since its beginning, over all its files
/// (headers do not count). The LSN of a record is its end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Random number in the header of every file of one log.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LogId(pub u64);

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Durability level: when [`crate::Log::wait`] returns, and so which records a loss of power can lose.
///
/// At every level, a process crash without a machine crash loses at most the buffered records, a closed log
/// has lost nothing, and the log after a loss of power is a prefix of the records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Durability {
    /// Returns when the record is synced: an acknowledged record survives. The default, since it is what a
    /// database is expected to do; group commit shares the cost among concurrent committers.
    #[default]
    Sync,
    /// Returns at once; a thread of the log writes and syncs at this interval. A crash loses the records
    /// acknowledged since the last sync.
    Interval(Duration),
    /// Returns at once; the log is written when [`crate::WRITE_BYTES`] are buffered, and synced when a file
    /// ends ([`crate::Log::rotate`]), on [`crate::Log::sync`] and on [`crate::Log::close`].
    None,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sync => f.write_str("sync"),
            Self::Interval(every) => write!(f, "interval of {every:?}"),
            Self::None => f.write_str("none"),
        }
    }
}

/// Options for writing a log.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// When [`crate::Log::wait`] returns.
    pub durability: Durability,
    /// Number of buffered bytes from which appends wait for the disk.
    pub buffer_bytes: usize,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { durability: Durability::default(), buffer_bytes: crate::BUFFER_BYTES_DEFAULT }
    }
}

/// Options for reading a log.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Treatment of damage. `false` (the default, because a cut may lose acknowledged records): an error with
    /// the position. `true`: the log ends before the damage, and [`crate::Log::open`] removes the rest.
    pub truncate_at_damage: bool,
    /// Another process may be writing the log at this moment. The reader retries files that vanish. The end
    /// that it finds is some point in the output of that writer; it cannot be used to open the log.
    pub beside_writer: bool,
    /// Expected id of the log, if known; files of another log, or no files, are then damage.
    pub id: Option<LogId>,
}
