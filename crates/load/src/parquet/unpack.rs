//! Page decompression, bounded by the size in the page header.
//!
//! Some codecs of the library write without a bound.

use super::error::refused;
use flate2::read::MultiGzDecoder;
use parquet::basic::Compression;
use parquet::errors::Result;
use std::io::Read;

/// The decompressor of a column.
pub(super) enum Unpacker {
    None,
    Snappy(snap::raw::Decoder),
    Gzip,
    Brotli,
    /// Created for each page: there may be many columns, and its tables are large.
    Zstd,
    /// Raw LZ4 blocks.
    Lz4,
    /// LZ4 blocks in Hadoop frames, which some writers omit.
    Lz4Hadoop,
}

impl Unpacker {
    pub(super) fn new(codec: Compression) -> Result<Self> {
        Ok(match codec {
            Compression::UNCOMPRESSED => Self::None,
            Compression::SNAPPY => Self::Snappy(snap::raw::Decoder::new()),
            Compression::GZIP(_) => Self::Gzip,
            Compression::BROTLI(_) => Self::Brotli,
            Compression::ZSTD(_) => Self::Zstd,
            Compression::LZ4_RAW => Self::Lz4,
            Compression::LZ4 => Self::Lz4Hadoop,
            Compression::LZO => return Err(refused("the compression LZO is not supported")),
        })
    }

    pub(super) fn is_identity(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Decompresses `packed` and appends exactly `size` bytes to `out`.
    pub(super) fn unpack(&mut self, packed: &[u8], out: &mut Vec<u8>, size: usize) -> Result<()> {
        let start = out.len();
        // A page without values may have no bytes at all, not even those of an empty compressed stream.
        if size == 0 {
            return Ok(());
        }
        let damaged =
            |error: &dyn std::fmt::Display| refused(format!("a page cannot be decompressed: {error}"));
        // A limit of one more byte detects excess output.
        let limit = size as u64 + 1;
        match self {
            Self::None => out.extend_from_slice(packed),
            Self::Gzip => {
                MultiGzDecoder::new(packed).take(limit).read_to_end(out).map_err(|error| damaged(&error))?;
            }
            Self::Brotli => {
                let mut input = brotli_decompressor::Decompressor::new(packed, 1 << 12).take(limit);
                input.read_to_end(out).map_err(|error| damaged(&error))?;
            }
            Self::Snappy(decoder) => {
                out.resize(start + size, 0);
                let written =
                    decoder.decompress(packed, &mut out[start..]).map_err(|error| damaged(&error))?;
                out.truncate(start + written);
            }
            Self::Zstd => {
                out.resize(start + size, 0);
                let written = zstd::bulk::decompress_to_buffer(packed, &mut out[start..]);
                out.truncate(start + written.map_err(|error| damaged(&error))?);
            }
            Self::Lz4 => {
                out.resize(start + size, 0);
                let written = lz4_flex::block::decompress_into(packed, &mut out[start..]);
                out.truncate(start + written.map_err(|error| damaged(&error))?);
            }
            Self::Lz4Hadoop => {
                out.resize(start + size, 0);
                if unframe(packed, &mut out[start..]).is_none() {
                    let written = lz4_flex::block::decompress_into(packed, &mut out[start..]);
                    out.truncate(start + written.map_err(|error| damaged(&error))?);
                }
            }
        }
        if out.len() - start == size {
            Ok(())
        } else {
            Err(refused("the length of a page differs from its header"))
        }
    }
}

/// Decompresses frames into `out`: big-endian lengths of the text and of the block, followed by the block.
fn unframe(mut packed: &[u8], mut out: &mut [u8]) -> Option<()> {
    while !packed.is_empty() {
        let (size, rest) = packed.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let size = usize::try_from(u32::from_be_bytes(*size)).ok()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let block = rest.get(..length)?;
        packed = &rest[length..];
        let (text, rest) = out.split_at_mut_checked(size)?;
        if lz4_flex::block::decompress_into(block, text).ok()? != size {
            return None;
        }
        out = rest;
    }
    out.is_empty().then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decompressed_size_beyond_the_header_is_refused() {
        use std::io::Write;
        let text = vec![b'x'; 100_000];
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(&text).expect("memory");
        let gzip = gzip.finish().expect("memory");
        let snappy = snap::raw::Encoder::new().compress_vec(&text).expect("memory");
        let zstd = zstd::encode_all(&text[..], 3).expect("memory");
        let level = parquet::basic::GzipLevel::default();
        for (codec, packed) in [
            (Compression::GZIP(level), gzip),
            (Compression::SNAPPY, snappy),
            (Compression::ZSTD(parquet::basic::ZstdLevel::default()), zstd),
        ] {
            let mut unpacker = Unpacker::new(codec).expect("known");
            for size in [text.len() - 1, 10, text.len() + 1] {
                let mut out = Vec::new();
                assert!(unpacker.unpack(&packed, &mut out, size).is_err(), "{codec:?} {size}");
                assert!(out.len() <= size + 1, "{codec:?}");
            }
            let mut out = b"levels".to_vec();
            unpacker.unpack(&packed, &mut out, text.len()).expect("as long as it says");
            assert_eq!(out[6..], text);
            for cut in [0, 1, packed.len() / 2, packed.len() - 1] {
                assert!(
                    unpacker.unpack(&packed[..cut], &mut Vec::new(), text.len()).is_err(),
                    "{codec:?} {cut}"
                );
            }
        }
    }

    #[test]
    fn hadoop_frames_are_removed() {
        // A block of LZ4: five literals.
        let block = b"\x50hello";
        let frame = [&[0, 0, 0, 5, 0, 0, 0, 6][..], block].concat();
        let mut unpacker = Unpacker::new(Compression::LZ4).expect("known");
        for (packed, expected) in [
            (frame.clone(), "hello"),
            ([frame.clone(), frame.clone()].concat(), "hellohello"),
            (block.to_vec(), "hello"),
        ] {
            let mut out = Vec::new();
            unpacker.unpack(&packed, &mut out, expected.len()).expect("it is whole");
            assert_eq!(out, expected.as_bytes());
        }
        assert!(unpacker.unpack(&frame[..10], &mut Vec::new(), 5).is_err());
        assert!(unpacker.unpack(&[0xFF; 12], &mut Vec::new(), 5).is_err());
    }
}
