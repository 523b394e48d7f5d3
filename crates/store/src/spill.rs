//! Entries that did not fit in memory, in temporary files.
//!
//! # Shape
//! A directory of its own below the one that the caller names; one file for each time that memory was
//! full; in it one block of numbers for each predicate and kind. Blocks are found by what is kept in
//! memory, which also holds their checksums: nobody reads these files after the process has ended.
//! # Invariants
//! 1. The directory is removed when this is dropped, on success, error and panic alike.
//! # Not here
//! Merging of sorted runs: a predicate is sorted in memory when its segment is built, so the largest
//! predicate must fit (24 bytes an entry for plain triples of one kind).

use std::io::Write;
use std::path::{Path, PathBuf};
use vervet_env::{Bytes, Environment, WriteFile};
use vervet_model::{Error, Result};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// What the numbers of a block are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Narrow entries with these tags, one number each.
    Narrow(u8),
    /// Two numbers each.
    Pairs,
    /// Four numbers each.
    Quads,
}

/// Entries of one predicate and kind in a file.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    file: usize,
    kind: Kind,
    /// Number of entries.
    count: usize,
    /// Bytes before it in its file.
    offset: usize,
    checksum: u64,
}

/// Temporary files. See the header of this file.
#[derive(Debug)]
pub(crate) struct Spill {
    environment: Environment,
    dir: PathBuf,
    files: Vec<Bytes>,
}

/// A temporary file that is being written.
pub(crate) struct SpillFile<'a> {
    spill: &'a mut Spill,
    path: PathBuf,
    file: Box<dyn WriteFile>,
    offset: usize,
}

impl Block {
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Number of entries.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    fn size_bytes(&self) -> usize {
        self.count * 8 * self.kind.numbers()
    }
}

impl Kind {
    /// Numbers of one entry.
    fn numbers(self) -> usize {
        match self {
            Self::Narrow(_) => 1,
            Self::Pairs => 2,
            Self::Quads => 4,
        }
    }
}

impl Spill {
    /// A new directory below `parent`.
    pub(crate) fn new(environment: &Environment, parent: &Path) -> Result<Self> {
        let number = environment.random.next_u64().map_err(|e| Error::io("draw a random number", &e))?;
        let dir = parent.join(format!("build-{number:016x}.tmp"));
        let made = environment.files.create_dir_all(&dir);
        made.map_err(|e| Error::io(format_args!("create the directory {}", dir.display()), &e))?;
        Ok(Self { environment: environment.clone(), dir, files: Vec::new() })
    }

    /// Begins a file.
    pub(crate) fn begin(&mut self) -> Result<SpillFile<'_>> {
        let path = self.dir.join(format!("spill-{}", self.files.len()));
        let file = self.environment.files.create(&path);
        let file = file.map_err(|e| Error::io(format_args!("create {}", path.display()), &e))?;
        Ok(SpillFile { spill: self, path, file, offset: 0 })
    }

    /// The numbers of a block.
    pub(crate) fn read(&self, block: &Block) -> Result<Vec<u64>> {
        let file = self.files.get(block.file).map(|bytes| &**bytes).unwrap_or_default();
        let bytes = file.get(block.offset..block.offset + block.size_bytes());
        match bytes.filter(|bytes| xxh3_64(bytes) == block.checksum) {
            Some(bytes) => {
                Ok(bytes.as_chunks::<8>().0.iter().map(|chunk| u64::from_le_bytes(*chunk)).collect())
            }
            None => Err(Error::corrupt(self.dir.display(), "a temporary file has changed")
                .with_hint("check the disk, then load again")),
        }
    }
}

impl SpillFile<'_> {
    /// Writes the numbers of `count` entries.
    pub(crate) fn write(
        &mut self,
        kind: Kind,
        count: usize,
        mut numbers: impl Iterator<Item = u64>,
    ) -> Result<Block> {
        let mut hasher = Xxh3::new();
        let mut buffer = Vec::with_capacity(1 << 16);
        loop {
            buffer.clear();
            numbers.by_ref().take(1 << 13).for_each(|number| buffer.extend_from_slice(&number.to_le_bytes()));
            if buffer.is_empty() {
                break;
            }
            hasher.update(&buffer);
            let written = self.file.write_all(&buffer);
            written.map_err(|e| Error::io(format_args!("write {}", self.path.display()), &e))?;
        }
        let file = self.spill.files.len();
        let block = Block { file, kind, count, offset: self.offset, checksum: hasher.digest() };
        self.offset += block.size_bytes();
        Ok(block)
    }

    /// Makes the file readable.
    pub(crate) fn finish(mut self) -> Result<()> {
        let error = |e| Error::io(format_args!("write {}", self.path.display()), &e);
        self.file.flush().map_err(error)?;
        drop(self.file);
        self.spill.files.push(self.spill.environment.files.map(&self.path).map_err(error)?);
        Ok(())
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        self.files.clear();
        // Nothing depends on it: what stays behind is removed by hand.
        let _ = self.environment.files.remove_dir_all(&self.dir);
    }
}
