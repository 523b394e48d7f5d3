//! The log of the voters, for backups: which entry is the newest, and all records up to it.
//!
//! # Shape
//! A request is [`BACKUP`], and no more or two numbers of 8 bytes: the index of an entry behind which records
//! are wanted, and that of the last entry that is wanted. The answer has the form of one to a follower
//! (`following.rs`). In the answer to the first its end is the index of the newest committed entry, which a
//! majority of the voters has confirmed. In the answer to the second its end is the index of an entry: the
//! answer has all records of the entries up to it. [`PURGED`] has the meaning that it has there.
//! # Why not the requests of followers
//! Their answers do not say up to which entry the voter has looked: entries without records are skipped, and
//! the end of the log may move in between. A follower asks again in any case; a backup has to know when it
//! has everything.

use crate::following::{ANSWER_BYTES, PURGED, read_answer, write_answer};
use crate::peer_part::PeerPart;
use crate::voting::records_of;
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vervet::LogRecord;
use vervet_codec::{Damaged, Reader, write_u64};
use vervet_model::{Error, ErrorKind, Result, ThreadLimits};
use vervet_partition::Remote;
use vervet_raft::Replica;

/// Kind of the requests: none of those of partitions, tasks, followers, voters, data and clients.
pub(crate) const BACKUP: u8 = 100;

/// Longest wait of a voter for the confirmation of a majority, or for an entry that it does not have yet.
const WAIT: Duration = Duration::from_secs(2);

/// Longest time without an answer that has anything new.
const PATIENCE: Duration = Duration::from_secs(12);

/// Time between two rounds of requests to all servers.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// Answers a request, at a voter. `log`: number of the log.
///
/// # Errors
/// Unavailable: no majority of the voters answers. Corrupt: it is no such request, or the log is damaged.
pub(crate) fn answer(replica: &Replica, log: u64, request: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let wrong = |damaged: Damaged| Error::corrupt("a request of another server", damaged.0);
    if request.len() == 1 {
        write_answer([log, 0], replica.read_index(WAIT)?, &[], out);
        return Ok(());
    }
    let mut reader = Reader::new(request.get(1..).unwrap_or_default());
    let (after, through) = (reader.u64().map_err(wrong)?, reader.u64().map_err(wrong)?);
    replica.wait_for_more(after, WAIT);
    let mut at = after;
    loop {
        let mut entries = replica.read(at, ANSWER_BYTES)?;
        if let Some(purged) = replica.purged().filter(|purged| *purged > at) {
            write_answer([log, PURGED], purged, &[], out);
            return Ok(());
        }
        let has_more = !entries.is_empty();
        entries.retain(|entry| entry.index <= through);
        at = entries.last().map_or(at, |last| last.index);
        let records = records_of(entries);
        if !records.is_empty() || at >= through || !has_more {
            write_answer([log, 0], at, &records, out);
            return Ok(());
        }
        ThreadLimits::check()?;
    }
}

/// What the servers have behind an entry.
#[derive(Debug)]
pub(crate) enum FeedAnswer {
    /// All records of the entries up to one.
    Records {
        /// Index of that entry.
        reached: u64,
        records: Vec<LogRecord>,
    },
    /// No server that answers has the entries up to this one any more.
    Purged(u64),
}

/// Reads the log from whichever voters have it.
#[derive(Debug)]
pub(crate) struct Feed {
    sources: Vec<Arc<PeerPart>>,
    /// The one that has answered last.
    at: usize,
}

/// What a server has answered.
enum Answered {
    /// Its end, and records.
    Records(u64, Vec<LogRecord>),
    Purged(u64),
}

fn ask(source: &PeerPart, numbers: &[u64]) -> Result<Answered> {
    let mut request = vec![BACKUP];
    numbers.iter().for_each(|number| write_u64(*number, &mut request));
    let answer = source.send(&request)?.receive()?;
    let damaged =
        |damaged: Damaged| Error::corrupt(format_args!("an answer of server {}", source.name()), damaged.0);
    let ([_, opening], end, records) = read_answer(&answer).map_err(damaged)?;
    Ok(if opening == PURGED { Answered::Purged(end) } else { Answered::Records(end, records) })
}

/// Why nothing new has come for long.
fn given_up(what: &str, failure: Option<Error>) -> Error {
    let reason = failure.map(|failure| format!(": {failure}")).unwrap_or_default();
    Error::new(ErrorKind::Unavailable, format!("{what}{reason}")).with_hint(
        "a backup needs a majority of the voters: look with `vervet cluster status`, and run it again",
    )
}

impl Feed {
    /// `sources`: servers, those that vote first.
    pub(crate) fn new(sources: Vec<Arc<PeerPart>>) -> Self {
        Self { sources, at: 0 }
    }

    pub(crate) fn sources(&self) -> &[Arc<PeerPart>] {
        &self.sources
    }

    /// Index of an entry up to which is everything that was committed before the call.
    ///
    /// # Errors
    /// Unavailable: no voter answers for long, or none has a majority. Cancelled.
    pub(crate) fn newest(&mut self) -> Result<u64> {
        let mut newest = |answered| match answered {
            Answered::Records(end, _) => Some(end),
            Answered::Purged(_) => None,
        };
        self.ask_all(&[], "no voter confirms the newest commit", &mut newest, &mut || None)
    }

    /// Records of the entries behind `after`, of some of them at least, up to `through` at most, which is
    /// committed.
    ///
    /// # Errors
    /// Unavailable: no voter answers for long. Cancelled.
    pub(crate) fn read(&mut self, after: u64, through: u64) -> Result<FeedAnswer> {
        let purged = Cell::new(None::<u64>);
        let mut take = |answered| match answered {
            Answered::Records(reached, records) if reached > after => {
                Some(FeedAnswer::Records { reached, records })
            }
            Answered::Records(..) => None,
            Answered::Purged(end) => {
                purged.set(Some(purged.get().map_or(end, |purged| purged.min(end))));
                None
            }
        };
        let what = format!("no voter sends the entries of the log from {} on", after + 1);
        self.ask_all(&[after, through], &what, &mut take, &mut || purged.get().map(FeedAnswer::Purged))
    }

    /// Asks all servers in turn, round after round, until `take` returns something of an answer, or `end` at
    /// the end of a round.
    fn ask_all<T>(
        &mut self,
        numbers: &[u64],
        what: &str,
        take: &mut dyn FnMut(Answered) -> Option<T>,
        end: &mut dyn FnMut() -> Option<T>,
    ) -> Result<T> {
        let begun = Instant::now();
        loop {
            let mut failure = None;
            for _ in 0..self.sources.len() {
                ThreadLimits::check()?;
                match self.sources.get(self.at).map(|source| ask(source, numbers)) {
                    Some(Ok(answered)) => {
                        if let Some(taken) = take(answered) {
                            return Ok(taken);
                        }
                    }
                    Some(Err(error)) => failure = Some(error),
                    None => {}
                }
                self.at = (self.at + 1) % self.sources.len();
            }
            if let Some(taken) = end() {
                return Ok(taken);
            }
            if begun.elapsed() > PATIENCE {
                return Err(given_up(what, failure));
            }
            ThreadLimits::check()?;
            std::thread::sleep(RETRY_INTERVAL);
        }
    }
}
