//! The files of a server while it loads.
//!
//! # Shape
//! They are written to [`PARTIAL`] beside [`DATA`]. The last one is the catalog, which all servers get when
//! the files of all are durable; then the directory gets its name.
//! # Invariants
//! A directory with a catalog is complete. So one that an interrupted load has left with a catalog is as good
//! as renamed ([`adopt`]), and one without is replaced by the next load.

use super::link::Link;
use super::state::Blob;
use crate::files::{create_private, failed};
use crate::generation::{DATA, remove_others};
use crate::map::ClusterMap;
use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use vervet_codec::{Damaged, Reader, write_u64};
use vervet_env::Environment;
use vervet_model::{Error, ErrorKind, Id, Result};
use vervet_partition::PartitionDirectory;
use vervet_store::{FileRecord, GraphCounts, PartFiles};
use xxhash_rust::xxh3::Xxh3;

/// Name of the directory of data while it is written.
const PARTIAL: &str = "data.partial";

/// Name of the file that is locked by a load.
const LOCK: &str = "load.lock";

/// Gives the data of a load that was interrupted behind its end their name.
pub(crate) fn adopt(environment: &Environment, directory: &Path) -> Result<()> {
    let (partial, data) = (directory.join(PARTIAL), directory.join(DATA));
    if PartitionDirectory::is_published(environment, &partial) {
        return rename(environment, &partial, &data, directory);
    }
    Ok(())
}

/// Replaces the data of a server, those with merged changes too, and what its map says of them.
fn rename(environment: &Environment, partial: &Path, data: &Path, directory: &Path) -> Result<()> {
    let map = ClusterMap::read(directory)?;
    if map.data.is_some() {
        ClusterMap { data: None, cluster: None, ..map }.write(directory)?;
    }
    remove_others(environment, directory, partial)?;
    fs::rename(partial, data).map_err(failed("rename", partial))?;
    // Not every system can; the files themselves are durable.
    let _ = File::open(directory).and_then(|directory| directory.sync_all());
    Ok(())
}

/// The directory while it is written: removed with this value, unless it is complete.
pub(crate) struct PartialData {
    directory: PathBuf,
    path: PathBuf,
    is_kept: bool,
    _lock: File,
}

impl PartialData {
    /// Removes what an earlier load has left, and makes a new one.
    pub(crate) fn create(directory: &Path) -> Result<Self> {
        let lock_path = directory.join(LOCK);
        let lock = File::create(&lock_path).map_err(failed("write", &lock_path))?;
        if let Err(TryLockError::WouldBlock) = lock.try_lock() {
            let what = format!("another process loads data into {}", directory.display());
            return Err(Error::new(ErrorKind::Input, what).with_hint("wait for it, or end it"));
        }
        let path = directory.join(PARTIAL);
        if path.exists() {
            fs::remove_dir_all(&path).map_err(failed("remove", &path))?;
        }
        create_private(&path).map_err(failed("create the directory", &path))?;
        Ok(Self { directory: directory.to_owned(), path, is_kept: false, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the data are complete, and stay whatever follows.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Gives the catalog that was stored its name, from when on the data are complete, and then the
    /// directory.
    pub(crate) fn publish(&mut self, environment: &Environment) -> Result<()> {
        PartitionDirectory::publish(environment, &self.path)?;
        self.is_kept = true;
        rename(environment, &self.path, &self.directory.join(DATA), &self.directory)
    }
}

impl Drop for PartialData {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_dir_all(&self.path);
        }
        let _ = fs::remove_file(self.directory.join(LOCK));
    }
}

/// The counts and the record of a dictionary as bytes.
pub(crate) fn write_record(counts: &GraphCounts, record: &FileRecord) -> Vec<u8> {
    let mut bytes = Vec::new();
    let numbers = [counts.vertices, counts.literals, counts.type_predicate.bits(), counts.edges];
    for number in numbers.into_iter().chain([record.length, record.checksum]) {
        write_u64(number, &mut bytes);
    }
    bytes
}

/// Reads what [`write_record`] wrote.
pub(crate) fn read_record(bytes: &[u8]) -> Result<(GraphCounts, FileRecord), Damaged> {
    let mut reader = Reader::new(bytes);
    let mut number = || reader.u64();
    let counts = GraphCounts {
        vertices: number()?,
        literals: number()?,
        type_predicate: Id::from_bits(number()?),
        edges: number()?,
    };
    let record = FileRecord { name: PartFiles::name(None), length: number()?, checksum: number()? };
    reader.finish()?;
    Ok((counts, record))
}

/// Copies the dictionary of the first server to a file in `directory`.
pub(crate) fn fetch_dictionary(
    link: &Link,
    environment: &Environment,
    directory: &Path,
) -> Result<(GraphCounts, FileRecord)> {
    let mut bytes = Vec::new();
    link.read(0, Blob::DictionaryRecord, &mut |chunk| {
        bytes.extend_from_slice(chunk);
        Ok(())
    })?;
    let damaged = |what| Error::corrupt("the dictionary of the first server", what);
    let (counts, record) = read_record(&bytes).map_err(|error| damaged(error.0))?;
    let path = directory.join(&record.name);
    let io = |error| Error::io(format_args!("write {}", path.display()), &error);
    let mut file = environment.files.create(&path).map_err(io)?;
    let (mut hasher, mut length) = (Xxh3::new(), 0);
    link.read(0, Blob::Dictionary, &mut |chunk| {
        hasher.update(chunk);
        length += chunk.len() as u64;
        file.write_all(chunk).map_err(io)
    })?;
    file.flush().and_then(|()| file.sync()).map_err(io)?;
    if (length, hasher.digest()) != (record.length, record.checksum) {
        return Err(damaged("it has changed on its way"));
    }
    Ok((counts, record))
}
