//! The change feed: the commits after a position, from the log.
//!
//! # Shape
//! A position is the number of a commit, and the id of the log that has it. [`Transactions::feed`] finds a
//! position in the log; [`Feed::read`] visits the commits after it, in order, one at a time.
//! # Invariants
//! 1. A feed has every commit between its position and its end, each once, or it is an error: a bulk load is
//!    a commit without a record, so no feed goes past it.
//! 2. What a feed returns is synced, at every level of durability.
//! # Cost
//! Memory of the longest record. Records are read from the last landmark before the position, at most about
//! [`LANDMARK_BYTES`] of log before it; the first feed of a process reads the log up to its position.

use crate::feed_state::{FeedState, LANDMARK_BYTES, RecordSource};
use crate::mutation::{Mutation, Timestamp};
use crate::published::Published;
use crate::record::{self, LogRecord, MutationReader};
use crate::sync::lock;
use crate::transactions::Transactions;
use std::fmt;
use std::sync::Arc;
use vervet_log::{Durability, LogId, Lsn, ReadOptions};
use vervet_model::{Error, ErrorKind, Result};

/// A position in the order of commits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FeedPosition {
    /// The last commit before the position.
    pub commit: Timestamp,
    /// The log that has this commit; `None`: not stated.
    pub log: Option<u64>,
}

impl fmt::Display for FeedPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.log {
            Some(log) => write!(f, "{}-{log:016x}", self.commit),
            None => write!(f, "{}", self.commit),
        }
    }
}

impl std::str::FromStr for FeedPosition {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            let shown: String = text.chars().take(40).collect();
            Error::new(ErrorKind::Input, format!("{shown:?} is not a position of the change feed")).with_hint(
                "a position is the number of a commit, as of Vervet-Position; 0 is before the first",
            )
        };
        let (commit, log) = match text.split_once('-') {
            Some((commit, log)) => (commit, Some(log)),
            None => (text, None),
        };
        let is_decimal = !commit.is_empty() && commit.bytes().all(|byte| byte.is_ascii_digit());
        let commit = commit.parse().ok().filter(|_| is_decimal).ok_or_else(wrong)?;
        let log = match log {
            Some(log) if log.len() == 16 && log.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                Some(u64::from_str_radix(log, 16).map_err(|_| wrong())?)
            }
            Some(_) => return Err(wrong()),
            None => None,
        };
        Ok(Self { commit: Timestamp(commit), log })
    }
}

/// Why a feed does not begin at a position.
#[derive(Clone, Debug)]
pub enum FeedRefusal {
    /// The log no longer has, or never had, the commits after the position: begin again with an export.
    Gone(Error),
    /// No commit has this number yet.
    Future(Error),
    /// The log cannot be read, or there is none.
    Failed(Error),
}

impl FeedRefusal {
    /// The error.
    #[must_use]
    pub fn into_error(self) -> Error {
        match self {
            Self::Gone(error) | Self::Future(error) | Self::Failed(error) => error,
        }
    }
}

impl From<Error> for FeedRefusal {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The commits after a position: see the header of this file.
#[derive(Debug)]
pub struct Feed {
    transactions: Arc<Transactions>,
    /// The log and its opening; `None`: nothing was ever written.
    log: Option<[u64; 2]>,
    /// The last commit that was visited, or before the first one.
    commit: Timestamp,
    /// A position in the log before the record of the next commit.
    lsn: Lsn,
    end: Arc<Published>,
}

/// A commit of a feed.
#[derive(Clone, Debug)]
pub struct FeedCommit<'a> {
    /// Its number; the number of the commit before it is less by one.
    pub timestamp: Timestamp,
    /// What it has changed.
    pub content: FeedContent<'a>,
}

/// Visitor of records: LSN, kind, payload; returns whether to go on.
type RecordVisit<'a> = &'a mut dyn FnMut(Lsn, u8, &[u8]) -> Result<bool>;

/// What a commit has changed.
#[derive(Clone, Debug)]
pub enum FeedContent<'a> {
    /// Statements, in order.
    Mutations(Mutations<'a>),
    /// The constraints: the texts of all that hold from then on.
    Constraints(Vec<String>),
}

/// The changes of a commit, in order. A removal of a statement that does not exist, and an addition of one
/// that does, have no effect; a statement with an edge replaces the same without.
#[derive(Clone, Debug)]
pub struct Mutations<'a>(MutationReader<'a>);

impl Iterator for Mutations<'_> {
    type Item = Result<Mutation>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_mutation().map(|mutation| mutation.ok_or_else(|| damaged("a commit")))
    }
}

impl Transactions {
    /// Takes the commits of feeds from the log of another process. Only the first call has an effect.
    pub fn feed_from(&self, source: Arc<dyn RecordSource>) {
        _ = self.feed_state().source.set(source);
    }

    /// Whether the graph has a log, here or at another process.
    #[must_use]
    pub fn has_feed(&self) -> bool {
        self.writer().directory().is_some() || self.feed_state().source.get().is_some()
    }

    /// The position of the newest commit, and the version at it.
    ///
    /// # Errors
    /// As [`Transactions::feed`].
    pub fn feed_end(&self) -> Result<(FeedPosition, Arc<Published>)> {
        let (log, end) = self.feed_log()?;
        Ok((FeedPosition { commit: end.timestamp, log: log.map(|[id, _]| id) }, end))
    }

    /// The commits after a position, up to the newest one of now; `None`: those after the newest one.
    ///
    /// # Errors
    /// See [`FeedRefusal`]. Unsupported: this process does not write the graph, or it has no log.
    pub fn feed(self: &Arc<Self>, after: Option<FeedPosition>) -> Result<Feed, FeedRefusal> {
        let (log, end) = self.feed_log()?;
        let newest = FeedPosition { commit: end.timestamp, log: None };
        let after = after.unwrap_or(newest);
        if let Some((other, [own, _])) = after.log.zip(log).filter(|(other, [own, _])| other != own) {
            return Err(FeedRefusal::Gone(gone(format!(
                "the position {after} is of the log {other:016x}, and the log of this database is {own:016x}"
            ))));
        }
        if after.commit > end.timestamp {
            let message = format!("the last commit of this database is {}, before {after}", end.timestamp);
            return Err(FeedRefusal::Future(
                Error::new(ErrorKind::Input, message).with_hint("begin at the position of an export"),
            ));
        }
        let mut feed = Feed { transactions: Arc::clone(self), log, commit: after.commit, lsn: Lsn(0), end };
        feed.locate()?;
        Ok(feed)
    }

    /// The log and its opening, if it is known, and the newest version.
    fn feed_log(&self) -> Result<(Option<[u64; 2]>, Arc<Published>)> {
        let end = self.current();
        if let Some(source) = self.feed_state().source.get() {
            // No record is behind this position.
            return Ok((Some(source.records(u64::MAX)?.0), end));
        }
        if self.writer().directory().is_none() {
            return Err(no_log());
        }
        let log = self.writer().known_log_id()?;
        // Taking the directory may have read later commits.
        Ok((log.map(|LogId(id)| [id, 0]), self.current()))
    }

    /// Makes the newest version durable, at any level of durability.
    fn sync_feed(&self) -> Result<()> {
        if self.feed_state().source.get().is_some() {
            return Ok(());
        }
        // Opening a log syncs what a process before has left.
        let log = self.writer().log()?.ok_or_else(no_log)?;
        if self.durability() != Durability::Sync && log.durable_lsn().0 < log.end() {
            log.sync()?;
        }
        Ok(())
    }
}

fn no_log() -> Error {
    Error::new(ErrorKind::Unsupported, "this database has no log, and so no change feed")
        .with_hint("a database in a directory has one; so has a cluster with a writer")
}

impl Feed {
    /// The position after the commits that were visited.
    #[must_use]
    pub fn position(&self) -> FeedPosition {
        self.position_of(self.commit)
    }

    /// The position of a commit of this feed.
    #[must_use]
    pub fn position_of(&self, commit: Timestamp) -> FeedPosition {
        FeedPosition { commit, log: self.log.map(|[id, _]| id) }
    }

    /// The version at the end of this feed, which has every id of its commits.
    #[must_use]
    pub fn end(&self) -> &Arc<Published> {
        &self.end
    }

    /// Takes the next commits from other transactions of the same graph and log: those that a process begins
    /// when it leads, or those that follow the next leader.
    pub fn go_on_with(&mut self, transactions: Arc<Transactions>) {
        self.transactions = transactions;
    }

    /// Moves the end to the newest commit; returns whether there are commits to visit.
    ///
    /// # Errors
    /// As [`Transactions::feed`].
    pub fn advance(&mut self) -> Result<bool, FeedRefusal> {
        let (log, end) = self.transactions.feed_log()?;
        let is_other = self.log.zip(log).is_some_and(|(own, now)| own[0] != now[0]);
        if is_other || end.timestamp < self.commit {
            return Err(FeedRefusal::Gone(gone("the log of this database is another one now".to_owned())));
        }
        self.end = end;
        if log != self.log {
            self.log = log;
            self.locate()?;
        } else if self.end.timestamp > self.commit {
            self.transactions.sync_feed()?;
        }
        Ok(self.end.timestamp > self.commit)
    }

    /// Visits the commits from the position to the end, until `visit` returns `false`.
    ///
    /// # Errors
    /// See [`FeedRefusal`]; those of `visit`.
    pub fn read(
        &mut self,
        visit: &mut dyn FnMut(&FeedCommit<'_>) -> Result<bool>,
    ) -> Result<(), FeedRefusal> {
        let end = self.end.timestamp;
        if self.commit >= end {
            return Ok(());
        }
        let (mut commit, mut lsn, mut is_over, mut gap) = (self.commit, self.lsn, false, None);
        let scanned = self.scan(lsn, &mut |at, kind, payload| {
            let Some(timestamp) = commit_timestamp(kind, payload)? else { return Ok(true) };
            if timestamp <= commit {
                return Ok(true);
            }
            if timestamp != commit.next() {
                gap = Some(timestamp);
                return Ok(false);
            }
            let content = content_of(kind, payload)?;
            let goes_on = visit(&FeedCommit { timestamp, content })?;
            (commit, lsn) = (timestamp, at);
            is_over = !goes_on || timestamp >= end;
            Ok(!is_over)
        });
        (self.commit, self.lsn) = (commit, lsn);
        lock(&self.state().landmarks).add(self.log.unwrap_or_default(), commit, lsn);
        match (self.checked(scanned, commit), gap) {
            (Err(refusal), _) => Err(refusal),
            (Ok(()), Some(next)) => Err(FeedRefusal::Gone(gone(gap_message(commit, next)))),
            (Ok(()), None) if is_over => Ok(()),
            (Ok(()), None) => Err(FeedRefusal::Gone(gone(lost_message(commit)))),
        }
    }

    /// The result of reading the log after a commit.
    fn checked(&self, scanned: Result<()>, after: Timestamp) -> Result<(), FeedRefusal> {
        let is_remote = self.state().source.get().is_some();
        match scanned {
            // A checkpoint has removed the file.
            Err(error) if error.kind() == ErrorKind::Unavailable && !is_remote => {
                Err(FeedRefusal::Gone(gone(lost_message(after))))
            }
            scanned => Ok(scanned?),
        }
    }

    fn state(&self) -> &FeedState {
        self.transactions.feed_state()
    }

    /// Finds the position in the log.
    fn locate(&mut self) -> Result<(), FeedRefusal> {
        let after = self.commit;
        let is_remote = self.state().source.get().is_some();
        let start = if is_remote { Lsn(0) } else { self.transactions.writer().log_start() };
        let log = self.log.unwrap_or_default();
        let lsn = lock(&self.state().landmarks).before(log, after, start);
        self.lsn = lsn;
        if after == self.end.timestamp {
            return Ok(());
        }
        self.transactions.sync_feed()?;
        let (mut found, mut last, mut passed) = (None, self.lsn, Vec::new());
        let mut noted = last;
        let scanned = self.scan(self.lsn, &mut |lsn, kind, payload| {
            let Some(timestamp) = commit_timestamp(kind, payload)? else { return Ok(true) };
            if timestamp > after {
                found = Some(timestamp);
                return Ok(false);
            }
            last = lsn;
            if lsn.0 - noted.0 >= LANDMARK_BYTES {
                passed.push((timestamp, lsn));
                noted = lsn;
            }
            Ok(true)
        });
        {
            let mut landmarks = lock(&self.state().landmarks);
            passed.into_iter().for_each(|(commit, lsn)| landmarks.add(log, commit, lsn));
        }
        self.checked(scanned, after)?;
        match found {
            Some(timestamp) if timestamp == after.next() => {
                self.lsn = last;
                Ok(())
            }
            Some(timestamp) => Err(FeedRefusal::Gone(gone(gap_message(after, timestamp)))),
            None => Err(FeedRefusal::Gone(gone(lost_message(after)))),
        }
    }

    /// Visits the records behind a position in the log, until `visit` returns `false`.
    fn scan(&self, from: Lsn, visit: RecordVisit<'_>) -> Result<()> {
        if let Some(source) = self.state().source.get() {
            return self.scan_remote(&**source, from, visit);
        }
        let writer = self.transactions.writer();
        let Some(directory) = writer.directory() else {
            return Err(Error::internal("a feed without a directory"));
        };
        let id = self.log.map(|[id, _]| LogId(id));
        let options = ReadOptions { beside_writer: true, id, ..ReadOptions::default() };
        let mut is_enough = false;
        let read =
            vervet_log::read(writer.environment(), directory, from, &options, &mut |lsn, kind, payload| {
                if visit(lsn, kind, payload)? {
                    return Ok(());
                }
                is_enough = true;
                Err(Error::internal("enough records"))
            });
        match read {
            Err(error) if !is_enough => Err(error),
            _ => Ok(()),
        }
    }

    fn scan_remote(&self, source: &dyn RecordSource, from: Lsn, visit: RecordVisit<'_>) -> Result<()> {
        let mut after = from.0;
        loop {
            let (log, records) = source.records(after)?;
            if Some(log) != self.log {
                return Err(Error::new(ErrorKind::Unavailable, "the log of the writer is another one now")
                    .with_hint("ask again with the last position"));
            }
            let Some(last) = records.last() else { return Ok(()) };
            after = last.lsn;
            for LogRecord { lsn, kind, payload } in &records {
                if !visit(Lsn(*lsn), *kind, payload)? {
                    return Ok(());
                }
            }
        }
    }
}

/// The timestamp of a record of a log, by its kind and content; `None`: it is no commit.
///
/// # Errors
/// Corrupt: the record is too short.
pub fn commit_timestamp(kind: u8, payload: &[u8]) -> Result<Option<Timestamp>> {
    match kind {
        record::COMMIT | record::CONSTRAINTS => {
            record::timestamp(payload).map(Some).ok_or_else(|| damaged("a commit"))
        }
        _ => Ok(None),
    }
}

fn content_of(kind: u8, payload: &[u8]) -> Result<FeedContent<'_>> {
    if kind == record::CONSTRAINTS {
        let read = record::read_constraints(payload).ok_or_else(|| damaged("the constraints"))?;
        return Ok(FeedContent::Constraints(read.1));
    }
    let reader = MutationReader::of(payload).ok_or_else(|| damaged("a commit"))?;
    Ok(FeedContent::Mutations(Mutations(reader)))
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the record of {what} is damaged"))
        .with_hint("restore this database from a backup")
}

fn gap_message(after: Timestamp, next: Timestamp) -> String {
    let first = Timestamp(next.0.saturating_sub(1));
    format!("the log has no commits between {after} and {first}: a checkpoint or a load has replaced them")
}

fn lost_message(after: Timestamp) -> String {
    format!("the log no longer has the commits after {after}: a checkpoint or a load has replaced them")
}

fn gone(message: String) -> Error {
    Error::new(ErrorKind::Unavailable, message).with_hint(
        "export the graph (GET /store) and go on after the position of the export (Vervet-Position)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_they_are_written() {
        for log in [None, Some(0), Some(u64::MAX), Some(0xab)] {
            for commit in [0, 17, u64::MAX] {
                let position = FeedPosition { commit: Timestamp(commit), log };
                assert_eq!(position.to_string().parse::<FeedPosition>().ok(), Some(position), "{position}");
            }
        }
        for text in [
            "",
            "-",
            "-1",
            "+1",
            "1.5",
            " 1",
            "1 ",
            "x",
            "0x10",
            "18446744073709551616",
            "1-",
            "1-0",
            "\u{661}",
            "1-00000000000000000",
            "1-000000000000000g",
            "1-+00000000000000a",
            "1-0000000000000000-1",
        ] {
            assert!(text.parse::<FeedPosition>().is_err(), "{text:?}");
        }
    }
}
