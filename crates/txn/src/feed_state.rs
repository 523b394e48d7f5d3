//! What the change feeds of a graph share: where the log is, if another process writes it, and landmarks in
//! it.

use crate::mutation::Timestamp;
use crate::record::LogRecord;
use crate::sync::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use vervet_log::Lsn;
use vervet_model::Result;

/// Bytes of log between two landmarks.
pub(crate) const LANDMARK_BYTES: u64 = 1 << 20;

/// The log of another process, which a graph follows.
pub trait RecordSource: Send + Sync + fmt::Debug {
    /// The synced records behind `after`, some of them, and the log with its opening: see
    /// [`crate::Transactions::read_log`].
    ///
    /// # Errors
    /// Unavailable: the other process does not answer.
    fn records(&self, after: u64) -> Result<([u64; 2], Vec<LogRecord>)>;
}

/// What the feeds of a graph share.
#[derive(Debug, Default)]
pub(crate) struct FeedState {
    /// The log, if another process writes it.
    pub(crate) source: OnceLock<Arc<dyn RecordSource>>,
    pub(crate) landmarks: Mutex<Landmarks>,
}

/// Positions in the log after some commits, for an early start of reading.
#[derive(Debug, Default)]
pub(crate) struct Landmarks {
    log: [u64; 2],
    commits: BTreeMap<Timestamp, Lsn>,
}

impl Landmarks {
    fn clear_if_other(&mut self, log: [u64; 2]) {
        if self.log != log {
            *self = Self { log, commits: BTreeMap::new() };
        }
    }

    /// The last known position at or before a commit, at or behind `start`.
    pub(crate) fn before(&mut self, log: [u64; 2], commit: Timestamp, start: Lsn) -> Lsn {
        self.clear_if_other(log);
        self.commits.retain(|_, lsn| *lsn >= start);
        self.commits.range(..=commit).next_back().map_or(start, |(_, lsn)| *lsn)
    }

    pub(crate) fn add(&mut self, log: [u64; 2], commit: Timestamp, lsn: Lsn) {
        self.clear_if_other(log);
        let before = self.commits.range(..=commit).next_back().map_or(0, |(_, lsn)| lsn.0);
        if lsn.0.saturating_sub(before) >= LANDMARK_BYTES {
            self.commits.insert(commit, lsn);
        }
    }
}
