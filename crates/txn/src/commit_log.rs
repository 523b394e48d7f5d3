//! The log that commits are appended to: that of the directory, or one that several processes share.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Instant;
use vervet_log::{Log, LogId, LogStatus, Lsn, Publish};
use vervet_model::{Error, ErrorKind, Result};

/// A log that several processes have, of which this one writes to it for a while, such as the leader of
/// voters. It holds commits in the order of the calls, and makes them durable as it sees fit.
pub trait SharedLog: Send + Sync + Debug {
    /// Appends records of one kind, in this order; returns the position of the last one. `publish` runs when
    /// all of them are durable, after that of all earlier calls.
    ///
    /// # Errors
    /// Nothing was appended.
    fn append(&self, kind: u8, payloads: &[&[u8]], publish: Option<Box<dyn FnOnce() + Send>>) -> Result<u64>;

    /// Returns once everything up to `position` is durable and published. The limit of a wait counts from
    /// `since`, so that waits one after the other for commits of one time take no longer than the first.
    ///
    /// # Errors
    /// Unavailable: this process does not write the log any more, or nothing is made durable at present. The
    /// message says whether the outcome of the commit is unknown.
    fn wait(&self, position: u64, since: Instant) -> Result<()>;

    /// Position of the last record.
    fn last(&self) -> u64;

    /// Checks that this process still writes the log.
    ///
    /// # Errors
    /// Unavailable.
    fn check(&self) -> Result<()>;

    /// Bytes in the log.
    fn bytes(&self) -> u64;
}

/// See the header of this file.
#[derive(Debug)]
pub(crate) enum CommitLog {
    /// That of the directory.
    Own(Log),
    /// One that several processes share. Its LSNs are the positions of [`SharedLog`].
    Shared(Arc<dyn SharedLog>),
}

impl CommitLog {
    fn own(&self) -> Result<&Log> {
        match self {
            Self::Own(log) => Ok(log),
            Self::Shared(_) => {
                Err(Error::new(ErrorKind::Unsupported, "the log of this graph is that of several servers"))
            }
        }
    }

    pub(crate) fn append(&self, kind: u8, payload: &[u8]) -> Result<Lsn> {
        match self {
            Self::Own(log) => log.append(kind, payload),
            Self::Shared(log) => log.append(kind, &[payload], None).map(Lsn),
        }
    }

    pub(crate) fn append_then(&self, kind: u8, payload: &[u8], publish: Publish) -> Result<Lsn> {
        match self {
            Self::Own(log) => log.append_then(kind, payload, publish),
            Self::Shared(_) => self.append_all_then(kind, &[payload], publish),
        }
    }

    pub(crate) fn append_all_then(&self, kind: u8, payloads: &[&[u8]], publish: Publish) -> Result<Lsn> {
        match self {
            Self::Own(log) => log.append_all_then(kind, payloads, publish),
            // Callbacks ignore the LSN.
            Self::Shared(log) => log.append(kind, payloads, Some(Box::new(move || publish(Lsn(0))))).map(Lsn),
        }
    }

    pub(crate) fn wait(&self, lsn: Lsn) -> Result<()> {
        self.wait_since(lsn, Instant::now())
    }

    /// `since`: as for [`SharedLog::wait`].
    pub(crate) fn wait_since(&self, lsn: Lsn, since: Instant) -> Result<()> {
        match self {
            Self::Own(log) => log.wait(lsn),
            Self::Shared(log) => log.wait(lsn.0, since),
        }
    }

    pub(crate) fn sync(&self) -> Result<()> {
        match self {
            Self::Own(log) => log.sync().map(drop),
            Self::Shared(log) => log.wait(log.last(), Instant::now()),
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self::Own(log) => log.check(),
            Self::Shared(log) => log.check(),
        }
    }

    pub(crate) fn refuses(&self) -> bool {
        match self {
            Self::Own(log) => log.refuses(),
            Self::Shared(log) => log.check().is_err(),
        }
    }

    /// Size and syncs; `None`: others know them.
    pub(crate) fn status(&self) -> Option<LogStatus> {
        self.own().ok().map(Log::status)
    }

    /// Bytes from the beginning of the log.
    pub(crate) fn end(&self) -> u64 {
        match self {
            Self::Own(log) => log.end_lsn().0,
            Self::Shared(log) => log.bytes(),
        }
    }

    pub(crate) fn durable_lsn(&self) -> Lsn {
        self.own().map_or(Lsn(0), Log::durable_lsn)
    }

    pub(crate) fn id(&self) -> LogId {
        self.own().map_or(LogId(0), Log::id)
    }

    pub(crate) fn rotate(&self) -> Result<Lsn> {
        self.own()?.rotate()
    }

    pub(crate) fn remove_before(&self, lsn: Lsn) -> Result<()> {
        self.own()?.remove_before(lsn)
    }
}
