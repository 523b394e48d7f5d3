//! Small types of the log's surface.

use std::fmt;
use std::time::Duration;

/// A position in the whole log, in bytes since its beginning, over all its files (their headers do not
/// count). The LSN of a record is its end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// The random number that all files of one log have in their headers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LogId(pub u64);

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// When [`crate::Log::wait`] returns, and so what a loss of power can take.
///
/// Whatever the level, a process that dies without the machine loses at most what was in the buffer, a closed
/// log has lost nothing, and what is left after a loss of power is a prefix of the records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Level {
    /// When the record is synced: an acknowledged record survives. The default, since it is what a database
    /// is expected to do; group commit shares the cost between those who commit at once.
    #[default]
    Sync,
    /// At once; a thread of the log writes and syncs with this much time between. A crash loses what was
    /// acknowledged since the last time.
    Interval(Duration),
    /// At once; the log is written when [`crate::WRITE_BYTES`] have come together, and synced when a file
    /// ends ([`crate::Log::rotate`]), on [`crate::Log::sync`] and on [`crate::Log::close`].
    None,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sync => f.write_str("sync"),
            Self::Interval(every) => write!(f, "interval of {every:?}"),
            Self::None => f.write_str("none"),
        }
    }
}

/// How a log is written.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// When [`crate::Log::wait`] returns.
    pub level: Level,
    /// How many bytes may wait to be written before appending waits too.
    pub buffer_bytes: usize,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { level: Level::default(), buffer_bytes: crate::BUFFER_BYTES_DEFAULT }
    }
}

/// How a log is read.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// What damage means. `false` (the default, because it may cost acknowledged records): an error that says
    /// where. `true`: the log ends before the damage, and [`crate::Log::open`] removes what follows.
    pub cut_at_damage: bool,
    /// Another process may be writing the log at this moment. Files that vanish are looked for again. What is
    /// found ends somewhere in what that writer has written; it may not be used to open the log.
    pub beside_writer: bool,
    /// The id that the log must have, if it is known; files of another log, and no files, are then damage.
    pub id: Option<LogId>,
}
