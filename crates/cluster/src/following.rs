//! Changes: one server, the writer of the map, has the log; the others follow it.
//!
//! # Shape
//! A follower asks the writer for the records behind its own last one; the writer answers at once if it has
//! some, or after a while. A request is [`READ_LOG`], the position of the last record and the milliseconds to
//! wait (8 bytes each, as all numbers); the answer is the id of the log, a number of this opening of it, its
//! end, and the records: position, kind, length, content. If the log does not have the records behind that
//! position any more, the number of the opening is [`PURGED`], and the end is the last position that it
//! lacks.
//! # Invariants
//! 1. A follower applies the records of one opening of one log, in order, each once. When the writer was
//!    started again, it takes all records again, since a log may have been replaced by a copy, and shows them
//!    when it has all.
//! 2. What a follower shows, the writer has synced.
//! # Failures
//! While the writer, or a server whose partitions a change concerns, is away, followers answer with what they
//! have, and ask again.

use crate::changes_status::ChangesStatus;
use crate::merge::{Merge, Merged};
use crate::merging::Data;
use crate::peer_part::PeerPart;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vervet::{Applied, Database, Follower, LogRecord, Start};
use vervet_codec::{Damaged, Reader, write_u64};
use vervet_model::{Error, ErrorKind, Result, ThreadLimits, lock};
use vervet_partition::Remote;

/// Kind of the request for records: none of those of partitions and tasks.
pub(crate) const READ_LOG: u8 = 96;

/// In place of the number of an opening: the records that were asked for are not in the log any more.
pub(crate) const PURGED: u64 = u64::MAX;

/// About the most bytes of records of one answer.
pub(crate) const ANSWER_BYTES: usize = 4 << 20;

/// How long the writer waits for a record before it answers without one.
const WAIT: Duration = Duration::from_secs(1);

/// Time between two looks at the end of the log.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// Time between two attempts to reach the writer.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// The position behind which a request asks for records, and its wait.
pub(crate) fn read_request(request: &[u8]) -> Result<(u64, Duration)> {
    let wrong = |damaged: Damaged| Error::corrupt("a request of another server", damaged.0);
    let mut reader = Reader::new(request.get(1..).unwrap_or_default());
    let (after, wait) = (reader.u64().map_err(wrong)?, reader.u64().map_err(wrong)?);
    Ok((after, Duration::from_millis(wait).min(WAIT)))
}

/// Answers a request for records, at the writer. `opening`: a random number of this process.
pub(crate) fn answer((database, opening): (&Database, u64), request: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let (after, wait) = read_request(request)?;
    let end = Instant::now() + wait;
    while database.synced_log_end() <= after && Instant::now() < end {
        ThreadLimits::check()?;
        std::thread::sleep(LOOK_INTERVAL);
    }
    let (log, records) = database.read_log(after, ANSWER_BYTES)?;
    write_answer([log, opening], database.synced_log_end(), &records, out);
    Ok(())
}

/// Writes the log and its opening, its end, and records.
pub(crate) fn write_answer(log: [u64; 2], end: u64, records: &[LogRecord], out: &mut Vec<u8>) {
    for number in log.into_iter().chain([end, records.len() as u64]) {
        write_u64(number, out);
    }
    for LogRecord { lsn, kind, payload } in records {
        for number in [*lsn, u64::from(*kind), payload.len() as u64] {
            write_u64(number, out);
        }
        out.extend_from_slice(payload);
    }
}

/// The log and its opening, its end, and records.
pub(crate) fn read_answer(mut bytes: &[u8]) -> Result<([u64; 2], u64, Vec<LogRecord>), Damaged> {
    let rest = &mut bytes;
    let log = [take_number(rest)?, take_number(rest)?];
    let (end, count) = (take_number(rest)?, take_number(rest)?);
    let mut records = Vec::new();
    for _ in 0..count {
        let (lsn, kind, length) = (take_number(rest)?, take_number(rest)?, take_number(rest)?);
        let kind = u8::try_from(kind).map_err(|_| Damaged("unknown kind of record"))?;
        let length = usize::try_from(length).map_err(|_| SHORT)?;
        let (payload, tail) = rest.split_at_checked(length).ok_or(SHORT)?;
        records.push(LogRecord { lsn, kind, payload: payload.to_vec() });
        *rest = tail;
    }
    if rest.is_empty() { Ok((log, end, records)) } else { Err(Damaged("it is too long")) }
}

const SHORT: Damaged = Damaged("it ends early");

fn take_number(bytes: &mut &[u8]) -> Result<u64, Damaged> {
    let (head, tail) = bytes.split_first_chunk::<8>().ok_or(SHORT)?;
    *bytes = tail;
    Ok(u64::from_le_bytes(*head))
}

/// A server that follows the writer. Dropping it ends its thread.
pub(crate) struct Following {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

struct State {
    follower: Follower,
    /// The data, if changes are merged into them.
    data: Option<Arc<Data>>,
    /// Data from which to go on.
    merged: Mutex<Option<Merged>>,
    /// Bytes of the records behind the data.
    log_bytes: AtomicU64,
    /// The last entry that the log did not have any more when it was asked.
    purged: AtomicU64,
    /// Servers that have the log: the writer, or the voters. One of them is asked.
    sources: Vec<Arc<PeerPart>>,
    asked: AtomicUsize,
    progress: Mutex<Progress>,
    stop: Arc<AtomicBool>,
    is_stopped: Mutex<bool>,
    stopped: Condvar,
}

#[derive(Default)]
struct Progress {
    /// The log and its opening, once they are known.
    log: Option<[u64; 2]>,
    /// The last record that was applied.
    after: u64,
    /// Readers see all records up to this one: as much has to be there again before they see something else.
    whole_from: u64,
    /// The end of the log as of the first answer: with it, this server has once had all changes.
    complete_from: Option<u64>,
    /// The log is another one: readers see what they have until all of it is there.
    waits_for_all: bool,
    /// The end of the log as of the last answer.
    end: u64,
    /// The last request has failed, or a record could not be applied.
    failure: Option<String>,
    has_ended: bool,
    is_complete: bool,
}

impl Following {
    pub(crate) fn start(
        follower: Follower,
        sources: Vec<Arc<PeerPart>>,
        data: Option<Arc<Data>>,
    ) -> Result<Self> {
        let progress = Progress { after: follower.start().position, ..Progress::default() };
        let state = Arc::new(State {
            follower,
            data,
            merged: Mutex::default(),
            log_bytes: AtomicU64::new(0),
            purged: AtomicU64::new(0),
            sources,
            asked: AtomicUsize::new(0),
            progress: Mutex::new(progress),
            stop: Arc::default(),
            is_stopped: Mutex::default(),
            stopped: Condvar::new(),
        });
        let thread = std::thread::Builder::new().name("follow".to_owned());
        let followed = Arc::clone(&state);
        let thread = thread.spawn(move || followed.follow());
        let thread = thread.map_err(|error| Error::io("start a thread that follows the writer", &error))?;
        Ok(Self { state, thread: Some(thread) })
    }

    pub(crate) fn as_merge(&self) -> Arc<dyn Merge> {
        Arc::clone(&self.state) as _
    }

    /// Name of the server that is asked for records.
    pub(crate) fn source(&self) -> Option<&str> {
        self.state.source().map(|source| source.peer().name())
    }

    pub(crate) fn status(&self) -> ChangesStatus {
        let progress = lock(&self.state.progress);
        ChangesStatus {
            merged: self.state.data.as_ref().map(|data| data.position()),
            writer: self
                .state
                .sources
                .iter()
                .map(|source| source.peer().name())
                .collect::<Vec<_>>()
                .join(" or "),
            timestamp: self.state.follower.transactions().current().timestamp,
            behind_bytes: progress.end.saturating_sub(progress.after),
            is_complete: progress.is_complete
                && !self.state.data.as_ref().is_some_and(|data| data.is_behind()),
            failure: progress.failure.clone(),
            has_left: false,
            has_ended: progress.has_ended,
            voters: None,
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        // Relaxed: the flag carries no data.
        self.state.stop.store(true, Ordering::Relaxed);
        *lock(&self.state.is_stopped) = true;
        self.state.stopped.notify_all();
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

impl State {
    /// The server that is asked for records.
    fn source(&self) -> Option<&Arc<PeerPart>> {
        let asked = self.asked.load(Ordering::Relaxed);
        self.sources.get(asked % self.sources.len().max(1))
    }

    fn follow(&self) {
        let _limits =
            ThreadLimits { cancelled: Some(Arc::clone(&self.stop)), ..ThreadLimits::default() }.enter();
        while !self.stop.load(Ordering::Relaxed) {
            let (failure, is_over) = match self.next() {
                Ok(()) => (None, false),
                Err(Stop::Retry(error)) => (Some(error.message().to_owned()), false),
                Err(Stop::Over(error)) => {
                    let message = format!("{error}; this server follows no more, and is to be started again");
                    tracing::error!(target: "vervet", "{message}");
                    (Some(message), true)
                }
            };
            let has_failed = failure.is_some();
            {
                let mut progress = lock(&self.progress);
                (progress.failure, progress.has_ended) = (failure, is_over);
            }
            if is_over {
                return;
            }
            if has_failed {
                // Another voter may answer.
                self.asked.fetch_add(1, Ordering::Relaxed);
                let is_stopped = lock(&self.is_stopped);
                let wait = self.stopped.wait_timeout_while(is_stopped, RETRY_INTERVAL, |stopped| !*stopped);
                drop(wait.unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    /// Goes on from data with some of the records.
    fn go_over(&self, start: Start) {
        let mut progress = lock(&self.progress);
        (progress.whole_from, progress.after) = (progress.whole_from.max(progress.after), start.position);
        self.follower.restart_over(start);
        self.log_bytes.store(0, Ordering::Relaxed);
    }

    /// Asks for the next records, and applies them.
    fn next(&self) -> Result<(), Stop> {
        let merged = lock(&self.merged).clone();
        if let Some(merged) = merged {
            self.go_over(merged.start);
            *lock(&self.merged) = None;
        }
        let (after, known, whole_from) = {
            let progress = lock(&self.progress);
            (progress.after, progress.log, progress.whole_from)
        };
        let mut request = vec![READ_LOG];
        write_u64(after, &mut request);
        write_u64(u64::try_from(WAIT.as_millis()).unwrap_or(u64::MAX), &mut request);
        let none = || Stop::Retry(Error::internal("no server has the log"));
        let source = self.source().ok_or_else(none)?;
        let answer = source.send(&request).and_then(|answer| answer.receive()).map_err(Stop::Retry)?;
        let damaged = |damaged: Damaged| Stop::Retry(Error::corrupt("records of the writer", damaged.0));
        let (log, end, records) = read_answer(&answer).map_err(damaged)?;
        if log[1] == PURGED {
            let lost = || Error::corrupt("the log of the voters", "it lacks records that this server needs");
            let data = self.data.as_ref().ok_or_else(|| Stop::Over(lost()))?;
            self.purged.store(end, Ordering::Relaxed);
            let start = data.fetch(end).map_err(Stop::Retry)?;
            self.go_over(start);
            return Ok(());
        }
        if known.is_some_and(|known| known != log) {
            // These records are behind those of another opening: they are asked for again, from the first.
            self.follower.restart();
            let after = self.follower.start().position;
            *lock(&self.progress) =
                Progress { log: Some(log), after, end, waits_for_all: true, ..Progress::default() };
            return Ok(());
        }
        let bytes: usize = records.iter().map(|record| record.payload.len()).sum();
        self.log_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if !records.is_empty() {
            self.follower.apply(&records).map_err(stop)?;
        }
        let mut progress = lock(&self.progress);
        progress.log = Some(log);
        progress.after = records.last().map_or(after, |last| last.lsn);
        let has_all = records.is_empty();
        progress.waits_for_all &= !has_all;
        if progress.after >= whole_from && !progress.waits_for_all {
            self.follower.show().map_err(stop)?;
            let complete_from = *progress.complete_from.get_or_insert(end);
            // The log may end with marks, which are no records.
            progress.is_complete |= has_all || progress.after >= complete_from;
        }
        progress.end = if has_all { progress.after } else { end };
        Ok(())
    }
}

impl Merge for State {
    fn changes(&self) -> (u64, u64) {
        (self.follower.transactions().change_count(), self.log_bytes.load(Ordering::Relaxed))
    }

    fn applied(&self) -> Result<Applied> {
        Ok(self.follower.applied())
    }

    fn applied_over(&self, _: Start, _: Option<u64>) -> Result<Applied> {
        Err(Error::internal("a server without a log was to merge it"))
    }

    fn leads(&self) -> bool {
        false
    }

    fn start_number(&self) -> u64 {
        self.follower.start().base.number()
    }

    fn is_pending(&self) -> bool {
        lock(&self.merged).is_some()
    }

    fn purged(&self) -> u64 {
        self.purged.load(Ordering::Relaxed)
    }

    fn go_on_from(&self, merged: Merged, _: u64) -> Result<()> {
        *lock(&self.merged) = Some(merged);
        Ok(())
    }
}

/// Why records were not applied: those that are damaged never will be.
pub(crate) fn stop(error: Error) -> Stop {
    match error.kind() {
        ErrorKind::Corrupt | ErrorKind::Internal | ErrorKind::Input => Stop::Over(error),
        _ => Stop::Retry(error),
    }
}

/// Why no records were applied.
pub(crate) enum Stop {
    /// The writer does not answer: it is asked again.
    Retry(Error),
    /// Its records do not fit.
    Over(Error),
}

impl std::fmt::Debug for Following {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Following").field("status", &self.status()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_answers_are_refused() {
        let mut bytes = Vec::new();
        for number in [7, 8, 30, 1, 30, 2, 3] {
            write_u64(number, &mut bytes);
        }
        bytes.extend(b"abc");
        let record = LogRecord { lsn: 30, kind: 2, payload: b"abc".to_vec() };
        assert_eq!(read_answer(&bytes), Ok(([7, 8], 30, vec![record])));
        for end in 0..bytes.len() {
            assert!(read_answer(&bytes[..end]).is_err(), "{end}");
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x81;
            _ = read_answer(&changed);
        }
    }
}
