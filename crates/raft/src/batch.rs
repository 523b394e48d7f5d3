//! A batch: the records of one entry of the replicated log.
//!
//! # Shape
//! Little-endian: the term in which the batch was proposed (8 bytes); of each record its kind (1), the length
//! of its payload (4) and the payload.
//! # Why the term
//! A leader makes records for the state that its own log leads to. If it loses the leadership and is elected
//! again before the batch reaches its log, other entries may have come in between, and the records do not fit
//! any more. The entry then has a later term than its batch, and every server ignores the batch.

use crate::types::Entry;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use openraft::EntryPayload;
use vervet_model::{Error, Result};

/// Bytes of a batch before its first record.
pub(crate) const HEAD_BYTES: usize = 8;

/// Bytes of a record before its payload.
pub(crate) const RECORD_HEAD_BYTES: usize = 5;

/// A record of the replicated log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Its meaning belongs to the caller.
    pub kind: u8,
    /// Its content.
    pub payload: Bytes,
}

/// Begins a batch of a leader of `term`.
pub(crate) fn begin(term: u64) -> BytesMut {
    let mut batch = BytesMut::with_capacity(256);
    batch.put_u64_le(term);
    batch
}

/// Adds a record. The caller has checked its length.
pub(crate) fn push(batch: &mut BytesMut, kind: u8, payload: &[u8], length: u32) {
    batch.reserve(RECORD_HEAD_BYTES + payload.len());
    batch.put_u8(kind);
    batch.put_u32_le(length);
    batch.put_slice(payload);
}

/// Whether the entry has a batch that has no effect; see the header of this file.
pub(crate) fn is_void(entry: &Entry) -> bool {
    match &entry.payload {
        EntryPayload::Normal(batch) => {
            batch.first_chunk().map(|term| u64::from_le_bytes(*term)) != Some(entry.log_id.leader_id.term)
        }
        EntryPayload::Blank | EntryPayload::Membership(_) => false,
    }
}

/// The records of a committed entry, without copies of their payloads.
///
/// # Errors
/// Corrupt: the batch is damaged.
pub(crate) fn records(entry: &Entry) -> Result<Vec<Record>> {
    let EntryPayload::Normal(batch) = &entry.payload else { return Ok(Vec::new()) };
    if is_void(entry) {
        return Ok(Vec::new());
    }
    let mut rest = batch.slice(HEAD_BYTES.min(batch.len())..);
    let mut records = Vec::new();
    while !rest.is_empty() {
        if rest.len() < RECORD_HEAD_BYTES {
            return Err(damaged(entry));
        }
        let (kind, length) = (rest.get_u8(), rest.get_u32_le());
        let length = usize::try_from(length).ok().filter(|length| *length <= rest.len());
        let payload = rest.split_to(length.ok_or_else(|| damaged(entry))?);
        records.push(Record { kind, payload });
    }
    Ok(records)
}

fn damaged(entry: &Entry) -> Error {
    Error::corrupt(format_args!("entry {} of the replicated log", entry.log_id), "its records end early")
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraft::testing::log_id;

    fn entry(term: u64, batch: Bytes) -> Entry {
        Entry { log_id: log_id(term, 1, 7), payload: EntryPayload::Normal(batch) }
    }

    #[test]
    fn a_batch_has_its_records() {
        let mut batch = begin(3);
        push(&mut batch, 1, b"one", 3);
        push(&mut batch, 2, b"", 0);
        let batch = batch.freeze();
        let expected =
            [Record { kind: 1, payload: Bytes::from("one") }, Record { kind: 2, payload: Bytes::new() }];
        assert_eq!(records(&entry(3, batch.clone())).expect("whole"), expected);
        for end in 9..batch.len() {
            let cut = records(&entry(3, batch.slice(..end)));
            assert_eq!(cut.is_ok(), end == 16, "{end}");
        }
    }

    #[test]
    fn a_batch_of_an_earlier_term_is_void() {
        let mut batch = begin(3);
        push(&mut batch, 1, b"one", 3);
        let batch = batch.freeze();
        assert!(!is_void(&entry(3, batch.clone())));
        assert!(is_void(&entry(4, batch.clone())));
        assert_eq!(records(&entry(4, batch)).expect("void"), []);
        assert!(is_void(&entry(4, Bytes::from("short"))));
    }
}
