//! The log of the voters, for change feeds: at a voter, and at a server that follows.
//!
//! # Shape
//! An entry has the records of several commits, and a feed may end behind any of them. So a position in the
//! feed is the index of an entry and, in its last [`RECORD_BITS`] bits, how many records of the entry are
//! before it.

use crate::following::{PURGED, READ_LOG, read_answer};
use crate::peer_part::PeerPart;
use crate::voting::records_behind;
use std::sync::{Arc, Weak};
use vervet::{LogRecord, RecordSource};
use vervet_codec::{Damaged, write_u64};
use vervet_model::{Error, ErrorKind, Result};
use vervet_partition::Remote;
use vervet_raft::Replica;

/// Bits of the number of a record within its entry: an entry of 1 MiB has fewer, and a larger one has one.
const RECORD_BITS: u32 = 16;

/// See the header of this file.
#[derive(Debug)]
pub(crate) enum VoterLog {
    /// That of this server, and its number.
    Here(Weak<Replica>, u64),
    /// That of one of these.
    There(Vec<Arc<PeerPart>>),
}

impl VoterLog {
    /// The log with its opening, and records of the entries behind one, whose positions are indexes.
    fn read(&self, after: u64) -> Result<([u64; 2], Vec<LogRecord>)> {
        let ended = || Error::new(ErrorKind::Unavailable, "the log of this server has ended");
        match self {
            Self::Here(replica, number) => {
                let replica = replica.upgrade().ok_or_else(ended)?;
                Ok(([*number, 0], records_behind(&replica, after)?))
            }
            Self::There(sources) => {
                let mut failure = Error::new(ErrorKind::Unavailable, "no server has the log");
                for source in sources {
                    match ask(source, after) {
                        Ok(answer) => return Ok(answer),
                        Err(error) => failure = error,
                    }
                }
                Err(failure)
            }
        }
    }
}

fn ask(source: &PeerPart, after: u64) -> Result<([u64; 2], Vec<LogRecord>)> {
    let mut after = after;
    loop {
        let mut request = vec![READ_LOG];
        write_u64(after, &mut request);
        // Without a wait for further records.
        write_u64(0, &mut request);
        let answer = source.send(&request)?.receive()?;
        let damaged = |damaged: Damaged| Error::corrupt("records of a voter", damaged.0);
        let (log, end, records) = read_answer(&answer).map_err(damaged)?;
        if log[1] != PURGED {
            return Ok((log, records));
        }
        // The feed finds that there is a gap.
        after = after.max(end);
    }
}

/// Gives records with the indexes of their entries positions of their own, and leaves out those up to
/// `after`.
fn positioned(records: Vec<LogRecord>, after: u64) -> Vec<LogRecord> {
    let (mut index, mut number) = (0, 0);
    let position = |record: LogRecord| {
        if record.lsn != index {
            (index, number) = (record.lsn, 0);
        }
        number += 1;
        let lsn = record.lsn << RECORD_BITS | number;
        (lsn > after).then_some(LogRecord { lsn, ..record })
    };
    records.into_iter().filter_map(position).collect()
}

impl RecordSource for VoterLog {
    fn records(&self, after: u64) -> Result<([u64; 2], Vec<LogRecord>)> {
        let mut before = (after >> RECORD_BITS).saturating_sub(1);
        loop {
            let (log, records) = self.read(before)?;
            let Some(last) = records.last().map(|last| last.lsn) else { return Ok((log, records)) };
            let records = positioned(records, after);
            if !records.is_empty() {
                return Ok((log, records));
            }
            // All of them were before the position.
            before = last;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_record_has_a_position() {
        let record = |lsn| LogRecord { lsn, kind: 2, payload: Vec::new() };
        let records: Vec<_> = [5, 5, 5, 8, 9, 9].map(record).into();
        let all = positioned(records.clone(), 0);
        let found: Vec<_> =
            all.iter().map(|record| (record.lsn >> RECORD_BITS, record.lsn & 0xffff)).collect();
        assert_eq!(found, [(5, 1), (5, 2), (5, 3), (8, 1), (9, 1), (9, 2)]);
        for (at, record) in all.iter().enumerate() {
            assert_eq!(positioned(records.clone(), record.lsn), all[at + 1..], "{at}");
        }
    }
}
