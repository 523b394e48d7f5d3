//! Following: the same graph in another process, which applies the log of the one that writes.
//!
//! # Shape
//! The process that writes returns its records by [`Transactions::read_log`]; a [`Follower`] over the same
//! base applies them, in order. Terms and edges have the numbers of the log, so versions of equal timestamps
//! are equal everywhere.
//! # Invariants
//! 1. Only records that are synced are returned: no follower has what the log could lose.
//! 2. A version becomes visible with all commits up to its timestamp, and no others.
//! # Merging
//! [`Follower::applied`] is the graph of all records so far, which can be written as files. A follower goes
//! on over them with the next records ([`Follower::restart_over`]), and so does a leader
//! ([`Transactions::move_to`]).

use crate::applied::Applied;
use crate::commit_log::SharedLog;
use crate::mutation::Timestamp;
use crate::options::Options;
use crate::published::Published;
use crate::record::LogRecord;
use crate::recovery::Replay;
use crate::start::Start;
use crate::sync::{Mutex, lock};
use crate::transactions::Transactions;
use crate::writer::LogLocation;
use std::sync::Arc;
use vervet_env::Environment;
use vervet_log::{Durability, LogId, Lsn, ReadOptions};
use vervet_model::{Error, ErrorKind, Result};

/// See the header of this file.
#[derive(Debug)]
pub struct Follower {
    transactions: Arc<Transactions>,
    environment: Environment,
    options: Options,
    state: Mutex<FollowerState>,
}

#[derive(Debug)]
struct FollowerState {
    start: Start,
    replay: Replay,
    /// Position of the last record of the replay.
    position: u64,
    /// The replay has begun again, and is not visible yet.
    is_behind: bool,
}

impl FollowerState {
    /// The start, and no records.
    fn new(start: Start, is_behind: bool) -> Self {
        Self { replay: Replay::over(&start), position: start.position, start, is_behind }
    }
}

impl Follower {
    /// A follower over `start` without later changes; transactions with changes fail with `refusal`.
    ///
    /// # Errors
    /// Corrupt: a constraint cannot be read.
    pub fn new(environment: Environment, start: Start, options: Options, refusal: Error) -> Result<Self> {
        let transactions = Transactions::read_only(environment.clone(), &start, options.clone(), refusal)?;
        let state = Mutex::new(FollowerState::new(start, false));
        Ok(Self { transactions, environment, options, state })
    }

    /// Begins again from its start: the next records are the first ones behind it. The graph stays as it is
    /// until [`Follower::show`].
    pub fn restart(&self) {
        let mut state = lock(&self.state);
        *state = FollowerState::new(state.start.clone(), true);
    }

    /// Begins again from another start of the same log, as [`Follower::restart`] does.
    pub fn restart_over(&self, start: Start) {
        *lock(&self.state) = FollowerState::new(start, true);
    }

    /// Where it began last.
    #[must_use]
    pub fn start(&self) -> Start {
        lock(&self.state).start.clone()
    }

    /// Another follower with this start, and no records yet.
    ///
    /// # Errors
    /// As [`Follower::new`].
    pub fn anew_over(&self, start: Start) -> Result<Self> {
        let refusal = Error::new(ErrorKind::Unsupported, "this graph is only read");
        Self::new(self.environment.clone(), start, self.options.clone(), refusal)
    }

    /// The graph of all records so far.
    #[must_use]
    pub fn applied(&self) -> Applied {
        let state = lock(&self.state);
        Applied::new(
            state.replay.version.clone(),
            state.replay.timestamp,
            state.replay.texts(),
            state.position,
        )
    }

    /// Why other changes are refused, from now on.
    pub fn refuse(&self, refusal: Error) {
        self.transactions.writer().refuse(refusal);
    }

    /// The graph of all records so far, as one that this process changes from now on, with `log` as its log.
    /// The follower begins again, as [`Follower::restart`] does: the versions of the result share numbers of
    /// terms that `log` may lose.
    ///
    /// # Errors
    /// Corrupt: a constraint cannot be read.
    pub fn lead(&self, log: Arc<dyn SharedLog>) -> Result<Arc<Transactions>> {
        let mut state = lock(&self.state);
        let constraints = state.replay.constraints()?;
        let start = state.start.clone();
        let fresh = FollowerState::new(start.clone(), true);
        let Replay { version, timestamp, .. } = std::mem::replace(&mut *state, fresh).replay;
        let location = LogLocation { over: Some(start), shared: Some(log), ..LogLocation::default() };
        let options = Options { checkpoints: false, durability: Durability::Sync, ..self.options.clone() };
        let leading = (version, timestamp, constraints);
        Ok(Transactions::with_log(self.environment.clone(), location, options, leading))
    }

    /// Makes what was applied since [`Follower::restart`] visible.
    ///
    /// # Errors
    /// As [`Follower::apply`].
    pub fn show(&self) -> Result<()> {
        let mut state = lock(&self.state);
        if std::mem::take(&mut state.is_behind) {
            self.publish(&state.replay)?;
        }
        Ok(())
    }

    /// The graph.
    #[must_use]
    pub fn transactions(&self) -> &Arc<Transactions> {
        &self.transactions
    }

    /// Applies the next records, and makes their commits visible together. Returns the last timestamp.
    ///
    /// # Errors
    /// Corrupt: they are damaged, or not the next ones. Unavailable: the base cannot be read. All stays as it
    /// was before the call, which may be repeated.
    pub fn apply(&self, records: &[LogRecord]) -> Result<Timestamp> {
        let mut state = lock(&self.state);
        let mut replay = state.replay.clone();
        for LogRecord { lsn, kind, payload } in records {
            replay
                .record(*kind, payload)
                .map_err(|error| error.context(format_args!("the record before {lsn} of the log")))?;
        }
        replay.add()?;
        let timestamp = replay.timestamp;
        if !state.is_behind && timestamp > self.transactions.current().timestamp {
            self.publish(&replay)?;
        }
        state.replay = replay;
        state.position = records.last().map_or(state.position, |last| last.lsn);
        Ok(timestamp)
    }

    fn publish(&self, replay: &Replay) -> Result<()> {
        let before = self.transactions.current();
        let published = Published {
            constraints: replay.constraints()?,
            changes: before.changes + 1,
            ..before.with(replay.version.clone(), replay.timestamp)
        };
        self.transactions.head().lock().replace(Arc::new(published));
        Ok(())
    }
}

impl Transactions {
    /// The synced records behind `after` (0, or the position of a record) of a graph that this process
    /// writes, about `bytes_max` bytes of them at most, and the id of the log. `after` is 0 at first.
    ///
    /// # Errors
    /// Unsupported: the graph has no log. Corrupt, Io: it cannot be read.
    pub fn read_log(&self, after: u64, bytes_max: usize) -> Result<(u64, Vec<LogRecord>)> {
        let no_log = || Error::new(ErrorKind::Unsupported, "this graph has no log");
        let log = self.writer().log()?.ok_or_else(no_log)?;
        let directory = self.writer().directory().ok_or_else(no_log)?;
        let LogId(id) = log.id();
        let (durable, mut records, mut bytes) = (log.durable_lsn(), Vec::new(), 0);
        if durable.0 <= after {
            return Ok((id, records));
        }
        let options = ReadOptions { beside_writer: true, id: Some(log.id()), ..ReadOptions::default() };
        let mut is_enough = false;
        let read = vervet_log::read(
            self.writer().environment(),
            directory,
            Lsn(after),
            &options,
            &mut |lsn, kind, payload| {
                if lsn > durable || bytes >= bytes_max {
                    is_enough = true;
                    return Err(Error::internal("enough records"));
                }
                bytes += payload.len() + size_of::<LogRecord>();
                records.push(LogRecord { lsn: lsn.0, kind, payload: payload.to_vec() });
                Ok(())
            },
        );
        match read {
            Err(error) if !is_enough => Err(error),
            _ => Ok((id, records)),
        }
    }

    /// Position up to which the log is synced; 0 without a log. Cheap: for a look at whether there is more.
    #[must_use]
    pub fn synced_log_end(&self) -> u64 {
        self.writer().open_log().map_or(0, |log| log.durable_lsn().0)
    }
}
