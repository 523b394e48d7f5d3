//! Spilling: entries that do not fit in memory, in temporary files.
//!
//! # Shape
//! A subdirectory of the caller's directory. Whenever memory is full, one file with a *run* for each
//! predicate and kind: its entries, sorted and distinct. When a segment is built, the runs of its predicate
//! are merged into another file, and the reversed entries, sorted in runs again, into a third (see `merge`).
//! The index of runs and their checksums are kept in memory: these files are not read after the process has
//! ended.
//! # Invariants
//! 1. The directory is removed when this is dropped, on success, error and panic alike.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use vervet_codec::load_u64;
use vervet_env::{Bytes, Environment, WriteFile};
use vervet_model::{Error, Id, Result, Watch};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Size of one write, in bytes.
const BUFFER_BYTES: usize = 1 << 16;

/// Encoding of the numbers of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RunKind {
    /// Narrow entries with these tags, one number each.
    Narrow(u8),
    /// Two numbers each.
    Pairs,
    /// Four numbers each.
    Quads,
}

/// Sorted entries of one predicate and kind in a file.
#[derive(Clone, Debug)]
pub(crate) struct SortedRun {
    kind: RunKind,
    bytes: Bytes,
}

/// A run in a file that is not yet readable.
#[derive(Debug)]
pub(crate) struct WrittenRun {
    kind: RunKind,
    offset: usize,
    length: usize,
    checksum: u64,
}

/// Temporary files. See the header of this file.
#[derive(Debug)]
pub(crate) struct Spill {
    environment: Environment,
    dir: PathBuf,
    files: AtomicU64,
}

/// A temporary file under construction.
pub(crate) struct SpillFile<'a> {
    spill: &'a Spill,
    path: PathBuf,
    file: Box<dyn WriteFile>,
    offset: usize,
}

impl SortedRun {
    pub(crate) fn kind(&self) -> RunKind {
        self.kind
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() / (8 * self.kind.numbers())
    }

    /// Subject, object, graph and edge (or object and subject) of an entry, as bits.
    #[inline]
    pub(crate) fn row(&self, index: usize) -> [u64; 4] {
        let numbers = self.kind.numbers();
        let number =
            |at: usize| if at < numbers { load_u64(&self.bytes, (index * numbers + at) * 8) } else { 0 };
        self.kind.row([number(0), number(1), number(2), number(3)])
    }
}

impl RunKind {
    /// Number of numbers of one entry.
    pub(crate) fn numbers(self) -> usize {
        match self {
            Self::Narrow(_) => 1,
            Self::Pairs => 2,
            Self::Quads => 4,
        }
    }

    /// The entry of these numbers, of which further ones are 0: subject, object, graph, edge.
    #[inline]
    pub(crate) fn row(self, numbers: [u64; 4]) -> [u64; 4] {
        match self {
            Self::Narrow(tags) => {
                let tag = |tags: u8| u64::from(tags & 15) << Id::PAYLOAD_BITS;
                let entry = numbers[0];
                [tag(tags >> 4) | entry >> 32, tag(tags) | entry & u64::from(u32::MAX), 0, 0]
            }
            Self::Pairs | Self::Quads => numbers,
        }
    }

    /// The kind of the reversed entries.
    pub(crate) fn reversed(self) -> Self {
        match self {
            Self::Narrow(tags) => Self::Narrow(tags.rotate_left(4)),
            kind => kind,
        }
    }

    /// Appends the numbers of an entry, which this kind can represent, to `out`.
    fn write(self, row: [u64; 4], out: &mut Vec<u8>) {
        let mut put = |number: u64| out.extend_from_slice(&number.to_le_bytes());
        match self {
            Self::Narrow(_) => put(row[0] << 32 | row[1] & u64::from(u32::MAX)),
            Self::Pairs => row[..2].iter().copied().for_each(put),
            Self::Quads => row.into_iter().for_each(put),
        }
    }
}

impl Spill {
    /// Creates a new directory below `parent`.
    pub(crate) fn new(environment: &Environment, parent: &Path) -> Result<Self> {
        let number = environment.random.next_u64().map_err(|e| Error::io("draw a random number", &e))?;
        let dir = parent.join(format!("build-{number:016x}.tmp"));
        let made = environment.files.create_dir_all(&dir);
        made.map_err(|e| Error::io(format_args!("create the directory {}", dir.display()), &e))?;
        Ok(Self { environment: environment.clone(), dir, files: AtomicU64::new(0) })
    }

    /// The directory.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Begins a file.
    pub(crate) fn begin(&self) -> Result<SpillFile<'_>> {
        // Relaxed: no other data is shared through the number.
        let path = self.dir.join(format!("spill-{}", self.files.fetch_add(1, Ordering::Relaxed)));
        let file = self.environment.files.create(&path);
        let file = file.map_err(|e| Error::io(format_args!("create {}", path.display()), &e))?;
        Ok(SpillFile { spill: self, path, file, offset: 0 })
    }
}

impl SpillFile<'_> {
    /// Writes entries that are sorted and distinct.
    pub(crate) fn write(
        &mut self,
        kind: RunKind,
        rows: impl Iterator<Item = Result<[u64; 4]>>,
        watch: &Watch<'_>,
    ) -> Result<WrittenRun> {
        let mut hasher = Xxh3::new();
        let mut buffer = Vec::with_capacity(BUFFER_BYTES + 32);
        let offset = self.offset;
        for row in rows {
            kind.write(row?, &mut buffer);
            if buffer.len() >= BUFFER_BYTES {
                watch.check()?;
                self.flush(&mut buffer, &mut hasher)?;
            }
        }
        self.flush(&mut buffer, &mut hasher)?;
        Ok(WrittenRun { kind, offset, length: self.offset - offset, checksum: hasher.digest() })
    }

    fn flush(&mut self, buffer: &mut Vec<u8>, hasher: &mut Xxh3) -> Result<()> {
        hasher.update(buffer);
        let written = self.file.write_all(buffer);
        written.map_err(|e| Error::io(format_args!("write {}", self.path.display()), &e))?;
        self.offset += buffer.len();
        buffer.clear();
        Ok(())
    }

    /// Makes the file readable; returns the runs that were written to it.
    pub(crate) fn finish(mut self, written: &[WrittenRun]) -> Result<Vec<SortedRun>> {
        let error = |e| Error::io(format_args!("write {}", self.path.display()), &e);
        self.file.flush().map_err(error)?;
        drop(self.file);
        let bytes = self.spill.environment.files.map(&self.path).map_err(error)?;
        let run = |written: &WrittenRun| {
            let run = bytes.checked_slice(written.offset..written.offset + written.length);
            match run.filter(|run| xxh3_64(run) == written.checksum) {
                Some(bytes) => Ok(SortedRun { kind: written.kind, bytes }),
                None => Err(Error::corrupt(self.path.display(), "a temporary file has changed")
                    .with_hint("check the disk, then load again")),
            }
        };
        written.iter().map(run).collect()
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        // A failure is harmless: the leftover can be removed by hand.
        let _ = self.environment.files.remove_dir_all(&self.dir);
    }
}
