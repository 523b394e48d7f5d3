//! Frames: the on-disk encoding of a record, or of a mark of the log itself.
//!
//! # Shape
//! Little-endian: checksum (8 bytes), length of the payload (4), kind (1), payload. The checksum is xxh3 of
//! all later bytes of the frame; its seed is the log's id plus the LSN at which the frame starts, so that
//! bytes of another log, or of another position in this one, do not verify. Kinds 0 to 254 belong to the
//! caller. Kind 255 is a **mark**; its payload is the LSN up to which the log was synced when the mark was
//! written. Every batch of frames that is written together begins with a mark.
//! # Why marks
//! The sectors of an unsynced write may reach the medium in any order: the last sector kept, the first one
//! lost. Valid frames after an invalid one therefore do not prove damage. A mark after it does, if it states
//! that the invalid position had been synced before the mark was written. See `read.rs`.
//! # Cost
//! 13 bytes a record and 21 bytes a batch.

use crate::{KIND_MAX, LogId, RECORD_BYTES_MAX};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Size of a frame before its payload.
pub(crate) const HEAD_BYTES: usize = 13;
/// The kind of a mark.
const MARK: u8 = 255;
/// Size of a mark.
pub(crate) const MARK_BYTES: usize = HEAD_BYTES + 8;

const _: () = assert!(KIND_MAX < MARK);

/// A decoded frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Frame<'a> {
    /// A record of the caller.
    Record { kind: u8, payload: &'a [u8] },
    /// The log was synced up to this LSN when the batch that starts here was written.
    Mark { synced: u64 },
}

impl Frame<'_> {
    /// Size of the whole frame, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Record { payload, .. } => HEAD_BYTES + payload.len(),
            Self::Mark { .. } => MARK_BYTES,
        }
    }
}

fn checksum(id: LogId, lsn: u64, rest: &[u8]) -> u64 {
    xxh3_64_with_seed(rest, id.0.wrapping_add(lsn))
}

/// Appends the frame of a record that starts at `lsn`. The caller has checked that `length` is the length of
/// `payload`.
pub(crate) fn push_record(out: &mut Vec<u8>, id: LogId, lsn: u64, kind: u8, length: u32, payload: &[u8]) {
    let start = out.len();
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&length.to_le_bytes());
    out.push(kind);
    out.extend_from_slice(payload);
    let sum = checksum(id, lsn, &out[start + 8..]);
    out[start..start + 8].copy_from_slice(&sum.to_le_bytes());
}

/// A mark that starts at `lsn`.
pub(crate) fn mark(id: LogId, lsn: u64, synced: u64) -> [u8; MARK_BYTES] {
    let mut frame = [0; MARK_BYTES];
    frame[8..12].copy_from_slice(&8_u32.to_le_bytes());
    frame[12] = MARK;
    frame[13..].copy_from_slice(&synced.to_le_bytes());
    let sum = checksum(id, lsn, &frame[8..]);
    frame[..8].copy_from_slice(&sum.to_le_bytes());
    frame
}

/// Size of the frame whose head is at the start of `bytes`; `None` if the head is incomplete or invalid.
pub(crate) fn bytes_of(bytes: &[u8]) -> Option<usize> {
    let length = bytes.get(..HEAD_BYTES)?.get(8..12)?;
    let length = usize::try_from(u32::from_le_bytes(length.try_into().ok()?)).ok()?;
    (length <= RECORD_BYTES_MAX).then_some(HEAD_BYTES + length)
}

/// The frame at the start of `bytes`, at LSN `lsn`; `None` if it is not valid.
pub(crate) fn decode(id: LogId, lsn: u64, bytes: &[u8]) -> Option<Frame<'_>> {
    let bytes = bytes.get(..bytes_of(bytes)?)?;
    let (sum, rest) = bytes.split_first_chunk::<8>()?;
    if checksum(id, lsn, rest) != u64::from_le_bytes(*sum) {
        return None;
    }
    let payload = &bytes[HEAD_BYTES..];
    match (bytes[12], <[u8; 8]>::try_from(payload)) {
        (MARK, Ok(synced)) => Some(Frame::Mark { synced: u64::from_le_bytes(synced) }),
        (MARK, Err(_)) => None,
        (kind, _) => Some(Frame::Record { kind, payload }),
    }
}

/// The largest LSN that any mark in `bytes` states as synced; 0 without a mark. `bytes` starts at `lsn`.
///
/// One pass: a position is hashed only if its length and kind are those of a mark.
pub(crate) fn synced_by_marks(id: LogId, lsn: u64, bytes: &[u8]) -> u64 {
    let mut synced = 0;
    for (index, window) in bytes.windows(MARK_BYTES).enumerate() {
        if window[12] == MARK
            && window[8..12] == [8, 0, 0, 0]
            && let Some(Frame::Mark { synced: found }) = decode(id, lsn.wrapping_add(index as u64), window)
        {
            synced = synced.max(found);
        }
    }
    synced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_valid_only_at_their_position() {
        let id = LogId(77);
        let mut bytes = Vec::new();
        for (kind, payload) in [(0, &b""[..]), (7, b"hello"), (254, b"12345678")] {
            bytes.clear();
            let length = u32::try_from(payload.len()).expect("short");
            push_record(&mut bytes, id, 1000, kind, length, payload);
            assert_eq!(decode(id, 1000, &bytes), Some(Frame::Record { kind, payload }));
            assert_eq!(decode(id, 1001, &bytes), None, "a frame of another position");
            assert_eq!(decode(LogId(78), 1000, &bytes), None, "a frame of another log");
            assert_eq!(decode(id, 1000, &bytes[..bytes.len() - 1]), None, "a frame cut short");
        }
        let mut bytes = b"noise".to_vec();
        bytes.extend_from_slice(&mark(id, 1005, 900));
        bytes.extend_from_slice(b"noise");
        assert_eq!(decode(id, 1005, &bytes[5..]), Some(Frame::Mark { synced: 900 }));
        assert_eq!(synced_by_marks(id, 1000, &bytes), 900);
        assert_eq!(synced_by_marks(id, 1001, &bytes), 0);
    }

    #[test]
    fn every_bit_flip_is_detected() {
        let id = LogId(3);
        let mut bytes = Vec::new();
        push_record(&mut bytes, id, 5, 1, 5, b"hello");
        bytes.extend_from_slice(&mark(id, 5, 1));
        for at in 0..18 * 8 {
            let mut damaged = bytes.clone();
            damaged[at / 8] ^= 1 << (at % 8);
            assert_eq!(decode(id, 5, &damaged), None, "bit {at}");
        }
    }
}
