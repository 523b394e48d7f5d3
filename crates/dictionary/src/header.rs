//! Framing of a dictionary file: header, trailer, section lengths and checksums.
//!
//! # Shape
//! All numbers are little endian. Eight bytes [`MAGIC`], eight bytes [`VERSION`], the body: the sections in
//! the order of [`Section`]; the checksums of the blocks of the body (8 bytes each); the trailer,
//! [`TRAILER_BYTES`]:
//!
//! | bytes | meaning |
//! | --- | --- |
//! | 0..16 | number of vertices, number of literals |
//! | 16..32 | slots of the index of vertices, of literals |
//! | 32..40 | the seed of the hashes |
//! | 40..112 | lengths of the sections |
//! | 112..120 | XXH3 of the checksums of the blocks |
//! | 120..128 | XXH3 of the first 16 bytes of the file and the bytes 0..120 of the trailer |
//!
//! No byte before the body depends on the body, so a file is written sequentially without knowing its length.
//! Versions 4 and 5 have a header of [`OLD_HEADER_BYTES`] and the checksums before the body, and no seed;
//! their numbers of slots follow from the numbers of terms.
//! # Invariants
//! The lengths add up to the exact length of the file.

use crate::index_slots::slot_count;
use crate::integers::read_le;
use crate::key::Seed;
use std::ops::Range;
use vervet_env::Bytes;
use vervet_model::{Error, ErrorKind, Result, Watch};
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: [u8; 8] = *b"VERVETDI";
const VERSION: u64 = 6;
/// Versions with a header, the second one with triple terms.
const OLD_VERSIONS: [u64; 2] = [4, 5];
/// Block size of the checksums of the body; the last block may be shorter.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;
/// Before the body.
const FRONT_BYTES: usize = 16;
const TRAILER_BYTES: usize = 128;
const OLD_HEADER_BYTES: usize = 120;
pub(crate) const SECTION_COUNT: usize = 9;
/// Maximum width of a number in [`Section::LiteralOrder`], in bits; a window of 8 bytes holds one at any bit
/// offset.
pub(crate) const ORDER_WIDTH_MAX: u32 = 57;

/// The sections of the body. Those of literals follow those of vertices.
#[derive(Clone, Copy)]
pub(crate) enum Section {
    Templates = 0,
    VertexOffsets = 1,
    VertexRecords = 2,
    VertexIndex = 3,
    LiteralOffsets = 4,
    LiteralRecords = 5,
    LiteralIndex = 6,
    LiteralOrder = 7,
    LiteralWords = 8,
}

/// Metadata of a file, except for the lengths of its sections.
#[derive(Clone, Copy)]
pub(crate) struct Header {
    pub(crate) vertices: u64,
    pub(crate) literals: u64,
    /// Numbers of home slots in the indices of vertices and literals.
    pub(crate) slots: [u64; 2],
    pub(crate) seed: Seed,
    /// Whether a search wraps around from the last slot to the first: in files of old versions.
    pub(crate) wraps: bool,
}

/// The parts of a file.
pub(crate) struct Layout {
    pub(crate) header: Header,
    pub(crate) lengths: [usize; SECTION_COUNT],
    pub(crate) checksums: Bytes,
    pub(crate) body: Bytes,
}

/// Receives the pieces of a file.
pub(crate) type Sink<'s> = &'s mut dyn FnMut(&[u8]) -> Result<()>;

/// A file under construction.
pub(crate) struct FileWriter<'s> {
    sink: Sink<'s>,
    watch: &'s Watch<'s>,
    /// The incomplete last block of the body.
    block: Vec<u8>,
    checksums: Vec<u8>,
    lengths: [u64; SECTION_COUNT],
}

impl<'s> FileWriter<'s> {
    /// # Errors
    /// Those of `sink`, here and below; those of `watch`, which is checked for each block.
    pub(crate) fn new(sink: Sink<'s>, watch: &'s Watch<'s>) -> Result<Self> {
        sink(&front())?;
        Ok(Self { sink, watch, block: Vec::new(), checksums: Vec::new(), lengths: [0; SECTION_COUNT] })
    }

    /// Appends to a section; sections must be written in order.
    pub(crate) fn write(&mut self, section: Section, mut bytes: &[u8]) -> Result<()> {
        debug_assert!(self.lengths[section as usize + 1..].iter().all(|length| *length == 0));
        self.lengths[section as usize] += bytes.len() as u64;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK_BYTES - self.block.len()));
            self.block.extend_from_slice(now);
            bytes = later;
            if self.block.len() == BLOCK_BYTES {
                self.end_block()?;
            }
        }
        Ok(())
    }

    fn end_block(&mut self) -> Result<()> {
        self.watch.check()?;
        self.checksums.extend_from_slice(&xxh3_64(&self.block).to_le_bytes());
        (self.sink)(&self.block)?;
        self.block.clear();
        Ok(())
    }

    /// Writes the checksums and the trailer.
    pub(crate) fn finish(mut self, header: &Header) -> Result<()> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        (self.sink)(&self.checksums)?;
        let mut trailer = Vec::with_capacity(TRAILER_BYTES);
        let numbers = [header.vertices, header.literals, header.slots[0], header.slots[1], header.seed.0];
        for number in numbers.into_iter().chain(self.lengths).chain([xxh3_64(&self.checksums)]) {
            trailer.extend_from_slice(&number.to_le_bytes());
        }
        trailer.extend_from_slice(&trailer_sum(&front(), &trailer).to_le_bytes());
        (self.sink)(&trailer)
    }
}

/// Size of a file with a body of this size, in bytes.
pub(crate) fn file_bytes(body: usize) -> usize {
    FRONT_BYTES + body + body.div_ceil(BLOCK_BYTES) * 8 + TRAILER_BYTES
}

fn front() -> [u8; FRONT_BYTES] {
    let mut front = [0; FRONT_BYTES];
    front[..8].copy_from_slice(&MAGIC);
    front[8..].copy_from_slice(&VERSION.to_le_bytes());
    front
}

fn trailer_sum(front: &[u8], trailer: &[u8]) -> u64 {
    xxh3_64(&[front, trailer].concat())
}

/// Decodes the numbers in these bytes, which are long enough.
fn numbers<const COUNT: usize>(bytes: &[u8]) -> [u64; COUNT] {
    let mut numbers = [0; COUNT];
    for (number, field) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
        *number = read_le(field);
    }
    numbers
}

/// Checks everything but the body.
pub(crate) fn read(bytes: &Bytes, name: &str) -> Result<Layout> {
    let damaged = |what: &str| Error::corrupt(name, what);
    let front = bytes.get(..FRONT_BYTES).ok_or_else(|| damaged("it is shorter than its header"))?;
    if front[..8] != MAGIC {
        return Err(damaged("it does not start with VERVETDI"));
    }
    let version = read_le(&front[8..]);
    // The checksums identify the file before the version is trusted.
    if let Some(header) = bytes.get(..OLD_HEADER_BYTES)
        && let (numbers, sum) = header.split_at(OLD_HEADER_BYTES - 8)
        && xxh3_64(numbers) == read_le(sum)
    {
        if !OLD_VERSIONS.contains(&version) {
            return Err(unsupported(name, version));
        }
        return read_old(bytes, self::numbers(&header[FRONT_BYTES..])).map_err(damaged);
    }
    let trailer = bytes.len().checked_sub(TRAILER_BYTES).filter(|start| *start >= FRONT_BYTES);
    let trailer = trailer.and_then(|start| bytes.get(start..)).unwrap_or_default();
    let (numbers, sum) = trailer.split_at(trailer.len().saturating_sub(8));
    if trailer.is_empty() || trailer_sum(front, numbers) != read_le(sum) {
        return Err(damaged("the checksum of its header is wrong"));
    }
    if version != VERSION {
        return Err(unsupported(name, version));
    }
    read_new(bytes, self::numbers(numbers)).map_err(damaged)
}

#[cold]
fn unsupported(name: &str, version: u64) -> Error {
    let [first, ..] = OLD_VERSIONS;
    let what = format!("{name} has version {version}, this program reads versions {first} to {VERSION}");
    Error::new(ErrorKind::Unsupported, what).with_hint("use the program that wrote it")
}

fn read_new(bytes: &Bytes, numbers: [u64; 15]) -> Result<Layout, &'static str> {
    let [vertices, literals, vertex_slots, literal_slots, seed, lengths @ .., checksums_sum] = numbers;
    let header =
        Header { vertices, literals, slots: [vertex_slots, literal_slots], seed: Seed(seed), wraps: false };
    let (total, lengths) = sizes(lengths)?;
    let checksums_start = FRONT_BYTES.checked_add(total).ok_or(OVERLONG)?;
    let checksums_end = checksums_start.checked_add(total.div_ceil(BLOCK_BYTES) * 8).ok_or(OVERLONG)?;
    let places = [FRONT_BYTES..checksums_start, checksums_start..checksums_end];
    parts(bytes, places, TRAILER_BYTES, checksums_sum, (header, lengths))
}

fn read_old(bytes: &Bytes, numbers: [u64; 12]) -> Result<Layout, &'static str> {
    let [vertices, literals, lengths @ .., checksums_sum] = numbers;
    let slots = [slot_count(vertices), slot_count(literals)];
    let header = Header { vertices, literals, slots, seed: Seed(0), wraps: true };
    let (total, lengths) = sizes(lengths)?;
    let checksums_end = OLD_HEADER_BYTES.checked_add(total.div_ceil(BLOCK_BYTES) * 8).ok_or(OVERLONG)?;
    let body_end = checksums_end.checked_add(total).ok_or(OVERLONG)?;
    let places = [checksums_end..body_end, OLD_HEADER_BYTES..checksums_end];
    parts(bytes, places, 0, checksums_sum, (header, lengths))
}

const OVERLONG: &str = "its sections do not fit its length";

/// The sum of the lengths, and each length.
fn sizes(lengths: [u64; SECTION_COUNT]) -> Result<(usize, [usize; SECTION_COUNT]), &'static str> {
    let mut sizes = [0; SECTION_COUNT];
    let mut total = 0_usize;
    for (size, length) in sizes.iter_mut().zip(lengths) {
        *size = usize::try_from(length).map_err(|_| OVERLONG)?;
        total = total.checked_add(*size).ok_or(OVERLONG)?;
    }
    Ok((total, sizes))
}

/// The file with its body and checksums at these positions, and `behind` bytes after both.
fn parts(
    bytes: &Bytes,
    [body, checksums]: [Range<usize>; 2],
    behind: usize,
    checksums_sum: u64,
    (header, lengths): (Header, [usize; SECTION_COUNT]),
) -> Result<Layout, &'static str> {
    if bytes.len().checked_sub(body.end.max(checksums.end)) != Some(behind) {
        return Err(OVERLONG);
    }
    let (Some(body), Some(checksums)) = (bytes.checked_slice(body), bytes.checked_slice(checksums)) else {
        return Err(OVERLONG);
    };
    if xxh3_64(&checksums) != checksums_sum {
        return Err("the checksum of its checksums is wrong");
    }
    Ok(Layout { header, lengths, checksums, body })
}

/// Width of a number in [`Section::LiteralOrder`] of this many literals, in bits.
pub(crate) fn order_width(literals: u64) -> u32 {
    u64::BITS - literals.saturating_sub(1).leading_zeros()
}

/// Length of [`Section::LiteralOrder`] for this many literals; `None` if no dictionary has as many.
pub(crate) fn order_bytes(literals: u64) -> Option<usize> {
    let width = order_width(literals);
    let bits = literals.checked_mul(u64::from(width)).filter(|_| width <= ORDER_WIDTH_MAX)?;
    usize::try_from(bits.div_ceil(8)).ok()
}
