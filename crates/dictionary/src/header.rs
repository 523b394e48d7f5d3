//! The first bytes of a dictionary file: what is where, and checksums.
//!
//! # Shape
//! All numbers are little endian. [`HEADER_BYTES`] bytes of header, the checksums of the blocks of the
//! body (8 bytes each), the body: the sections one behind the other in the order of [`Section`].
//!
//! | bytes | meaning |
//! | --- | --- |
//! | 0..8 | [`MAGIC`] |
//! | 8..16 | [`VERSION`] |
//! | 16..32 | number of vertices, number of literals |
//! | 32..104 | lengths of the sections |
//! | 104..112 | XXH3 of the checksums of the blocks |
//! | 112..120 | XXH3 of the bytes 0..112 |
//! # Invariants
//! The lengths add up to that of the file, to the byte.

use vervet_env::Bytes;
use vervet_model::{Error, ErrorKind, Result};
use xxhash_rust::xxh3::xxh3_64;

pub(crate) const MAGIC: [u8; 8] = *b"VERVETDI";
pub(crate) const VERSION: u64 = 5;
/// What is written where there are no triple terms; it is the same otherwise.
pub(crate) const VERSION_WITHOUT_TRIPLES: u64 = 4;
/// The oldest that can be read.
const VERSION_MIN: u64 = VERSION_WITHOUT_TRIPLES;
/// The body is checked in blocks of so many bytes; the last one may be shorter.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;
const HEADER_BYTES: usize = 120;
pub(crate) const SECTION_COUNT: usize = 9;

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

/// What the header says.
pub(crate) struct Header {
    pub(crate) vertices: u64,
    pub(crate) literals: u64,
    pub(crate) lengths: [usize; SECTION_COUNT],
}

/// The parts of a whole file.
pub(crate) struct Layout {
    pub(crate) header: Header,
    pub(crate) checksums: Bytes,
    pub(crate) body: Bytes,
}

/// The image of a file with these sections.
pub(crate) fn write(
    version: u64,
    vertices: u64,
    literals: u64,
    sections: [Vec<u8>; SECTION_COUNT],
) -> Vec<u8> {
    let body_length: usize = sections.iter().map(Vec::len).sum();
    let checksums_length = body_length.div_ceil(BLOCK_BYTES) * 8;
    let body_start = HEADER_BYTES + checksums_length;
    let mut image = Vec::with_capacity(body_start + body_length);
    image.resize(body_start, 0);
    let mut lengths = Vec::with_capacity(SECTION_COUNT);
    for section in sections {
        lengths.push(section.len() as u64);
        image.extend_from_slice(&section);
    }
    let checksums: Vec<u8> =
        image[body_start..].chunks(BLOCK_BYTES).flat_map(|block| xxh3_64(block).to_le_bytes()).collect();
    image[HEADER_BYTES..body_start].copy_from_slice(&checksums);
    let mut header = MAGIC.to_vec();
    for number in [version, vertices, literals].into_iter().chain(lengths).chain([xxh3_64(&checksums)]) {
        header.extend_from_slice(&number.to_le_bytes());
    }
    header.extend_from_slice(&xxh3_64(&header).to_le_bytes());
    image[..HEADER_BYTES].copy_from_slice(&header);
    image
}

/// Checks everything but the body.
pub(crate) fn read(bytes: &Bytes, name: &str) -> Result<Layout> {
    let damaged = |what: &str| Error::corrupt(name, what);
    let header = bytes.get(..HEADER_BYTES).ok_or_else(|| damaged("it is shorter than its header"))?;
    if header[..8] != MAGIC {
        return Err(damaged("it does not start as a dictionary does"));
    }
    let mut numbers = [0; HEADER_BYTES / 8];
    for (number, field) in numbers.iter_mut().zip(header.chunks_exact(8)) {
        *number = crate::number::read_le(field);
    }
    let [_, version, vertices, literals, lengths @ .., checksums_sum, header_sum] = numbers;
    if xxh3_64(&header[..HEADER_BYTES - 8]) != header_sum {
        return Err(damaged("the checksum of its header is wrong"));
    }
    if !(VERSION_MIN..=VERSION).contains(&version) {
        let what =
            format!("{name} has version {version}, this program reads versions {VERSION_MIN} to {VERSION}");
        return Err(Error::new(ErrorKind::Unsupported, what).with_hint("use the program that wrote it"));
    }
    let overlong = || damaged("its sections do not fit its length");
    let total =
        lengths.iter().try_fold(0_u64, |sum, &length| sum.checked_add(length)).ok_or_else(overlong)?;
    let total = usize::try_from(total).map_err(|_| overlong())?;
    let body_start = HEADER_BYTES + total.div_ceil(BLOCK_BYTES) * 8;
    if bytes.len().checked_sub(body_start) != Some(total) {
        return Err(overlong());
    }
    let (Some(checksums), Some(body)) =
        (bytes.checked_slice(HEADER_BYTES..body_start), bytes.checked_slice(body_start..))
    else {
        return Err(overlong());
    };
    if xxh3_64(&checksums) != checksums_sum {
        return Err(damaged("the checksum of its checksums is wrong"));
    }
    let mut sizes = [0; SECTION_COUNT];
    for (size, length) in sizes.iter_mut().zip(lengths) {
        *size = usize::try_from(length).map_err(|_| overlong())?;
    }
    Ok(Layout { header: Header { vertices, literals, lengths: sizes }, checksums, body })
}
