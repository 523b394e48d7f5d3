//! Log files: names, headers and creation.
//!
//! # Shape
//! `wal-<first LSN, 16 hex digits>.log`; header of 40 bytes, little-endian: `VERVETWL`, version (8), first
//! LSN (8), id of the log (8), xxh3 of the 32 bytes before (8). The byte at LSN `l` lies at `40 + l - first`.
//! # Invariants
//! A file gets its final name by renaming, after its header and initial content have been synced: a file with
//! its final name always has a valid header. From then on it is only appended to, and finally removed.

use crate::{LogId, Lsn};
use std::io::Write;
use std::path::{Path, PathBuf};
use vervet_env::{Environment, WriteFile, is_disk_full};
use vervet_model::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

/// Size of the header; the first frame follows.
pub(crate) const HEADER_BYTES: usize = 40;

const MAGIC: [u8; 8] = *b"VERVETWL";
const VERSION: u64 = 1;

/// Path of the file that starts at LSN `first`.
pub(crate) fn path_of(directory: &Path, first: u64) -> PathBuf {
    directory.join(format!("wal-{first:016x}.log"))
}

/// Path of a file that has no valid header yet.
fn temporary_path_of(directory: &Path, first: u64) -> PathBuf {
    directory.join(format!("wal-{first:016x}.tmp"))
}

fn number_in(path: &Path, suffix: &str) -> Option<u64> {
    let digits = path.file_name()?.to_str()?.strip_prefix("wal-")?.strip_suffix(suffix)?;
    let canonical =
        digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    canonical.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}

/// First LSNs of the log's files, ascending.
pub(crate) fn list(environment: &Environment, directory: &Path) -> Result<Vec<u64>> {
    let paths = environment
        .files
        .list(directory)
        .map_err(|error| Error::io(format_args!("list {}", directory.display()), &error))?;
    let mut firsts: Vec<u64> = paths.iter().filter_map(|path| number_in(path, ".log")).collect();
    firsts.sort_unstable();
    Ok(firsts)
}

/// Removes the leftovers of an interrupted [`create`]. A leftover is never read, so a failure to remove it is
/// ignored.
pub(crate) fn remove_temporary(environment: &Environment, directory: &Path) {
    for path in environment.files.list(directory).unwrap_or_default() {
        if number_in(&path, ".tmp").is_some() {
            let _ = environment.files.remove_file(&path);
        }
    }
}

fn header(id: LogId, first: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..16].copy_from_slice(&VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&first.to_le_bytes());
    header[24..32].copy_from_slice(&id.0.to_le_bytes());
    let sum = xxh3_64(&header[..32]);
    header[32..].copy_from_slice(&sum.to_le_bytes());
    header
}

/// Why a header is invalid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum HeaderError {
    /// The bytes are not what was written.
    Damaged(&'static str),
    /// A later program wrote it.
    Version(u64),
}

/// The id in the header of the file that starts at `first`.
pub(crate) fn read_header(bytes: &[u8], first: u64) -> Result<LogId, HeaderError> {
    let header = bytes.get(..HEADER_BYTES).ok_or(HeaderError::Damaged("it is shorter than a header"))?;
    let number = |at: usize| header[at..at + 8].iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
    if header[..8] != MAGIC {
        Err(HeaderError::Damaged("it does not start with VERVETWL"))
    } else if xxh3_64(&header[..32]) != number(32) {
        Err(HeaderError::Damaged("its header has a wrong checksum"))
    } else if number(8) != VERSION {
        Err(HeaderError::Version(number(8)))
    } else if number(16) != first {
        Err(HeaderError::Damaged("its header has another LSN than its name"))
    } else {
        Ok(LogId(number(24)))
    }
}

/// Why a file was not created, and whether it may exist nevertheless.
#[derive(Debug)]
pub(crate) struct CreateError {
    pub(crate) error: Error,
    /// The file may exist, now or after the next crash.
    pub(crate) may_exist: bool,
}

/// Creates the file that starts at `first` with `content` after its header, replacing one of the same name.
/// On return file and name survive a loss of power.
pub(crate) fn create(
    environment: &Environment,
    directory: &Path,
    id: LogId,
    first: Lsn,
    content: &[u8],
) -> Result<Box<dyn WriteFile>, CreateError> {
    let temporary = temporary_path_of(directory, first.0);
    let path = path_of(directory, first.0);
    let write = || {
        let mut file = environment.files.create(&temporary)?;
        file.write_all(&header(id, first.0))?;
        file.write_all(content)?;
        file.sync()?;
        Ok(file)
    };
    let file = write().map_err(|error| {
        // The temporary file may not exist; if it remains, the next opening removes it.
        let _ = environment.files.remove_file(&temporary);
        CreateError { error: Error::io(format_args!("make {}", path.display()), &error), may_exist: false }
    })?;
    let failed = |error: &std::io::Error, may_exist| {
        let error = Error::io(format_args!("rename the new file to {}", path.display()), error);
        CreateError { error, may_exist }
    };
    if let Err(error) = environment.files.rename(&temporary, &path) {
        let _ = environment.files.remove_file(&temporary);
        // Without room for the name the file has none. After other errors it may have one.
        return Err(failed(&error, !is_disk_full(&error)));
    }
    environment.files.sync_dir(directory).map_err(|error| failed(&error, true))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_spelling() {
        let dir = Path::new("/db");
        assert_eq!(path_of(dir, 0xabc), Path::new("/db/wal-0000000000000abc.log"));
        assert_eq!(number_in(&path_of(dir, u64::MAX), ".log"), Some(u64::MAX));
        assert_eq!(number_in(&temporary_path_of(dir, 1), ".log"), None);
        for other in ["wal-1.log", "wal-0000000000000ABC.log", "wal-+00000000000abcd.log", "log", "wal-.log"]
        {
            assert_eq!(number_in(Path::new(other), ".log"), None, "{other}");
        }
    }

    #[test]
    fn a_header_belongs_to_its_name() {
        let good = header(LogId(9), 5);
        assert_eq!(read_header(&good, 5), Ok(LogId(9)));
        assert!(read_header(&good, 6).is_err());
        for length in 0..HEADER_BYTES {
            assert!(read_header(&good[..length], 5).is_err());
        }
        for bit in 0..HEADER_BYTES * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(read_header(&bad, 5).is_err(), "bit {bit}");
        }
    }
}
