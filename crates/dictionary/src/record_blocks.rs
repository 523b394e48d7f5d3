//! Blocks of records: the lengths of [`BLOCK_TERMS`] records, one byte each, and the records.
//!
//! # Cost
//! Reading a record takes the same few instructions for each place in its block, unless a record of the block
//! is [`LONG`].

use crate::integers::{bytes_for, read_varint, write_varint};

/// Number of terms of one block; their lengths precede them.
pub(crate) const BLOCK_TERMS: usize = 16;
/// [`BLOCK_TERMS`] as a `u64`, for term numbers.
pub(crate) const BLOCK_OF: u64 = BLOCK_TERMS as u64;
/// Marker in place of a length: the record starts with its length as a varint.
pub(crate) const LONG: u8 = 255;

/// Size of an offset into records of this length, in bytes.
pub(crate) fn offset_width(records_bytes: usize) -> usize {
    bytes_for(records_bytes as u64)
}

/// Records grouped in blocks.
#[derive(Default)]
pub(crate) struct RecordBlocks {
    /// Offset of each block.
    pub(crate) starts: Vec<u64>,
    pub(crate) records: Vec<u8>,
    pushed: usize,
}

impl RecordBlocks {
    pub(crate) fn push(&mut self, record: &[u8]) {
        let place = self.pushed % BLOCK_TERMS;
        if place == 0 {
            self.starts.push(self.records.len() as u64);
            self.records.resize(self.records.len() + BLOCK_TERMS, 0);
        }
        let length = u8::try_from(record.len()).unwrap_or(LONG);
        let lengths_at = self.starts.last().map_or(0, |start| usize::try_from(*start).unwrap_or(usize::MAX));
        self.records[lengths_at + place] = length;
        if length == LONG {
            write_varint(record.len() as u64, &mut self.records);
        }
        self.records.extend_from_slice(record);
        self.pushed += 1;
    }
}

/// Sixteen records (or fewer, at the end), before decoding.
#[derive(Clone, Copy)]
pub(crate) struct RecordBlock<'a> {
    /// The length of the first record in the lowest byte.
    lengths: u128,
    records: &'a [u8],
    /// Whether one of the lengths is [`LONG`].
    has_long: bool,
}

impl<'a> RecordBlock<'a> {
    /// The block of these bytes; `None` if they are too few for its lengths.
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Option<Self> {
        let (&lengths, records) = bytes.split_first_chunk()?;
        let lengths = u128::from_le_bytes(lengths);
        Some(Self { lengths, records, has_long: has_long(lengths) })
    }

    /// The record at index `place`, which is below [`BLOCK_TERMS`]; `None` if the block is damaged.
    #[inline]
    pub(crate) fn record(&self, place: usize) -> Option<&'a [u8]> {
        // Shifts out the lengths of later records; the highest byte is then the length of this one.
        let up_to = self.lengths << (8 * (BLOCK_TERMS - 1 - place));
        if self.has_long {
            return long_record_in(self.records, &self.lengths.to_le_bytes()[..=place]);
        }
        let length = usize::from(up_to.to_le_bytes()[BLOCK_TERMS - 1]);
        let end = sum_of_bytes(up_to);
        self.records.get(end - length..end)
    }
}

/// Whether one of the bytes is [`LONG`], that is, whether one of the inverted ones is 0.
#[inline]
fn has_long(bytes: u128) -> bool {
    const ONES: u128 = u128::MAX / 255;
    const _: () = assert!(LONG == 255);
    let inverted = !bytes;
    inverted.wrapping_sub(ONES) & !inverted & (ONES << 7) != 0
}

/// The sum of 16 bytes: pairwise, then all pairs at once by a multiplication.
#[inline]
fn sum_of_bytes(bytes: u128) -> usize {
    const EVEN: u128 = u128::MAX / 0x101;
    let pairs = (bytes & EVEN) + (bytes >> 8 & EVEN);
    #[expect(clippy::cast_possible_truncation, reason = "both tables are taken")]
    let (low, high) = (pairs as u64, (pairs >> 64) as u64);
    // Four sums of at most 1020: their total fits the upper 16 bits of the product.
    let sum = (low + high).wrapping_mul(u64::MAX / 0xFFFF) >> 48;
    usize::from(u16::try_from(sum).unwrap_or(u16::MAX))
}

/// The last record of a block prefix with these lengths, some of which are [`LONG`].
#[cold]
fn long_record_in<'a>(mut records: &'a [u8], lengths: &[u8]) -> Option<&'a [u8]> {
    let mut record: &[u8] = &[];
    for &length in lengths {
        let length = if length == LONG { read_varint(&mut records)? } else { u64::from(length) };
        (record, records) = records.split_at_checked(usize::try_from(length).ok()?)?;
    }
    Some(record)
}
