//! The data of a server: those that it was made with, or later ones into which changes were merged.
//!
//! # Shape
//! `data/` has the first ones, or `data-0/` if they were copied from other servers. `data-<position>/` has
//! later ones: the graph with all changes up to that position of the log of changes. In all of them,
//! [`CHECKPOINT_FILE`] says what the files of a graph do not: the build of the first data, which is part of
//! the identity of the cluster; the position and the last commit; constraints. Without it, as in data of an
//! earlier version: no changes and no constraints.
//! # Invariants
//! 1. A directory is whole or not there: it is written as `….tmp` and renamed when all of it is durable.
//! 2. The log has all entries behind the newest data. Older data are removed when newer ones are durable and
//!    no server reads them any more, and entries after that.
//! 3. A directory has the files of the partitions of its server, and may have those of others.

use crate::files::create_private;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::io::ErrorKind::NotFound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vervet::{Applied, Environment, Start, Timestamp};
use vervet_model::{Error, Result, Watch};
use vervet_partition::{PartitionDirectory, PartitionedBase};
use xxhash_rust::xxh3::xxh3_64;

/// Name of the directory of the first data within that of a server, which begins the names of later ones.
pub(crate) const DATA: &str = "data";

/// Name of the file.
pub(crate) const CHECKPOINT_FILE: &str = "checkpoint.toml";

/// Ends the name of a directory while it is written.
const UNFINISHED: &str = ".tmp";

/// Ends the name of a directory that another one replaces.
const BEFORE: &str = "-before.tmp";

/// What a checkpoint file says.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Checkpoint {
    /// The build of the first data, in hexadecimal.
    origin: String,
    /// Position of the last record of the log in the data.
    pub(crate) position: u64,
    /// The last commit in the data.
    pub(crate) timestamp: u64,
    #[serde(default)]
    pub(crate) constraints: Vec<String>,
    /// Changes were merged into partitions of several servers: servers of protocol 7, which do not say the
    /// build of what they read, do not open such data.
    #[serde(default)]
    is_together: bool,
    /// Hash of all other fields, in hexadecimal.
    checksum: String,
}

impl Checkpoint {
    pub(crate) fn new(origin: u64, position: u64, timestamp: Timestamp, constraints: Vec<String>) -> Self {
        let mut checkpoint = Self {
            origin: format!("{origin:016x}"),
            position,
            timestamp: timestamp.0,
            constraints,
            is_together: false,
            checksum: String::new(),
        };
        checkpoint.checksum = checkpoint.expected_checksum();
        checkpoint
    }

    /// The same, of partitions of several servers.
    pub(crate) fn together(mut self) -> Self {
        self.is_together = true;
        self.checksum = self.expected_checksum();
        self
    }

    fn expected_checksum(&self) -> String {
        let mut fields =
            format!("{} {} {} {:?}", self.origin, self.position, self.timestamp, self.constraints);
        if self.is_together {
            fields.push_str(" together");
        }
        format!("{:016x}", xxh3_64(fields.as_bytes()))
    }

    /// The text of the file. Constraints have no control characters.
    pub(crate) fn to_text(&self) -> String {
        let quoted = |text: &String| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let constraints: Vec<String> = self.constraints.iter().map(quoted).collect();
        format!(
            "# What these data have of the log of changes.\norigin = \"{}\"\nposition = {}\ntimestamp = {}\n\
             constraints = [{}]\n{}checksum = \"{}\"\n",
            self.origin,
            self.position,
            self.timestamp,
            constraints.join(", "),
            if self.is_together { "is_together = true\n" } else { "" },
            self.checksum
        )
    }

    fn read(environment: &Environment, data: &Path) -> Result<Option<Self>> {
        let path = data.join(CHECKPOINT_FILE);
        let bytes = match environment.files.read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == NotFound => return Ok(None),
            Err(error) => return Err(Error::io(format_args!("read {}", path.display()), &error)),
        };
        let checkpoint = std::str::from_utf8(&bytes).ok().and_then(|text| toml::from_str::<Self>(text).ok());
        let checkpoint = checkpoint.filter(|found| found.checksum == found.expected_checksum());
        let damaged = || Error::corrupt(path.display(), "it does not say what the data have");
        checkpoint.map(Some).ok_or_else(damaged)
    }
}

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct Generation {
    pub(crate) path: PathBuf,
    pub(crate) files: PartitionDirectory,
    /// The build of the first data.
    pub(crate) origin: u64,
    pub(crate) checkpoint: Checkpoint,
}

fn path_of(directory: &Path, position: u64) -> PathBuf {
    directory.join(format!("{DATA}-{position}"))
}

/// The position in the name of a directory of later data.
fn position_in(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix(DATA)?.strip_prefix('-')?.parse().ok()
}

/// The directories of the data of a server with their positions, the newest last; not the first data.
fn later_data(environment: &Environment, directory: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let paths = environment.files.list(directory);
    let paths = paths.map_err(|error| Error::io(format_args!("list {}", directory.display()), &error))?;
    let mut found: Vec<(u64, PathBuf)> =
        paths.into_iter().filter_map(|path| Some((position_in(&path)?, path))).collect();
    found.sort_unstable();
    Ok(found)
}

/// The directory of the newest data of a server.
pub(crate) fn newest_path(environment: &Environment, directory: &Path) -> Result<PathBuf> {
    let newest = later_data(environment, directory)?.pop();
    Ok(newest.map_or_else(|| directory.join(DATA), |(_, path)| path))
}

/// The directory of the data of a server with the changes up to a position.
pub(crate) fn data_path(environment: &Environment, directory: &Path, position: u64) -> PathBuf {
    let path = path_of(directory, position);
    let is_there = position > 0 || environment.files.exists(&path).unwrap_or(false);
    if is_there { path } else { directory.join(DATA) }
}

/// Removes all data of a server but those in `kept`.
pub(crate) fn remove_others(environment: &Environment, directory: &Path, kept: &Path) -> Result<()> {
    for path in environment.files.list(directory).unwrap_or_default() {
        if path != kept && (path.ends_with(DATA) || position_in(&path).is_some()) {
            let removed = environment.files.remove_dir_all(&path);
            removed.map_err(|error| Error::io(format_args!("remove {}", path.display()), &error))?;
        }
    }
    Ok(())
}

impl Generation {
    /// Position and build.
    pub(crate) fn place(&self) -> (u64, u64) {
        (self.checkpoint.position, self.files.build())
    }

    /// All partitions of the graph.
    pub(crate) fn all_partitions(&self) -> Vec<usize> {
        (0..self.files.partitioning().count()).collect()
    }

    /// Those of these partitions whose files are here.
    pub(crate) fn present(&self, environment: &Environment, of: &BTreeSet<usize>) -> BTreeSet<usize> {
        let names = self.file_names();
        let is_here = |partition: &usize| {
            let name = names.get(*partition + 1);
            name.is_some_and(|name| environment.files.exists(&self.path.join(name)).unwrap_or(false))
        };
        of.iter().copied().filter(is_here).collect()
    }

    /// Compares every byte of the files of these partitions with the catalog, and opens them if they are all.
    ///
    /// # Errors
    /// Corrupt: a file is missing or damaged.
    pub(crate) fn verify(&self, partitions: &[usize]) -> Result<()> {
        self.files.verify_files(partitions)?;
        if partitions.len() == self.files.partitioning().count() { self.whole().map(drop) } else { Ok(()) }
    }

    /// The names of all files that the graph has, in an order that is the same at all servers.
    pub(crate) fn file_names(&self) -> Vec<String> {
        let mut names = self.files.file_names(&self.all_partitions());
        names.push(CHECKPOINT_FILE.to_owned());
        names
    }

    /// All data of a server that can be opened, the newest last.
    ///
    /// # Errors
    /// Io: its directory cannot be read.
    pub(crate) fn all(environment: &Environment, directory: &Path) -> Result<Vec<Self>> {
        let later = later_data(environment, directory)?.into_iter().map(|(_, path)| path);
        let paths = [directory.join(DATA)].into_iter().chain(later);
        Ok(paths.filter_map(|path| Self::open_at(environment, path).ok()).collect())
    }

    /// Those of [`Generation::all`] that have these partitions.
    ///
    /// # Errors
    /// As for it.
    pub(crate) fn all_with(
        environment: &Environment,
        directory: &Path,
        partitions: &[usize],
    ) -> Result<Vec<Self>> {
        let mut all = Self::all(environment, directory)?;
        all.retain(|generation| {
            let mut names = generation.files.file_names(partitions).into_iter();
            names.all(|name| environment.files.exists(&generation.path.join(name)).unwrap_or(false))
        });
        Ok(all)
    }

    /// The newest data of a server.
    ///
    /// # Errors
    /// Input: there are none. Corrupt, Io: they cannot be read.
    pub(crate) fn open(environment: &Environment, directory: &Path) -> Result<Self> {
        Self::open_at(environment, newest_path(environment, directory)?)
    }

    /// The data in a directory.
    pub(crate) fn open_at(environment: &Environment, path: PathBuf) -> Result<Self> {
        let files = PartitionDirectory::open(environment, &path)?;
        let found = Checkpoint::read(environment, &path)?;
        let checkpoint =
            found.unwrap_or_else(|| Checkpoint::new(files.build(), 0, Timestamp::default(), Vec::new()));
        let damaged =
            || Error::corrupt(path.join(CHECKPOINT_FILE).display(), "it is not that of this directory");
        let origin = u64::from_str_radix(&checkpoint.origin, 16).map_err(|_| damaged())?;
        let is_unfinished = path.to_str().is_some_and(|name| name.ends_with(UNFINISHED));
        if !is_unfinished && position_in(&path).unwrap_or(0) != checkpoint.position {
            return Err(damaged());
        }
        Ok(Self { path, files, origin, checkpoint })
    }

    /// Where the log goes on; `base`: the graph of these data.
    pub(crate) fn start(&self, base: Arc<PartitionedBase>) -> Start {
        let Checkpoint { position, timestamp, constraints, .. } = &self.checkpoint;
        let (timestamp, constraints) = (Timestamp(*timestamp), constraints.clone());
        Start { base, timestamp, position: *position, constraints }
    }

    /// The start with all partitions from these data.
    ///
    /// # Errors
    /// Corrupt: a file is missing or damaged.
    pub(crate) fn whole(&self) -> Result<Start> {
        let [_, base] = self.files.bases(&self.all_partitions(), &[])?;
        Ok(self.start(base))
    }
}

/// Later data of a server while they are written; removed with this value, unless they were published.
pub(crate) struct Unfinished<'e> {
    environment: &'e Environment,
    directory: PathBuf,
    position: u64,
    pub(crate) path: PathBuf,
    is_published: bool,
}

impl<'e> Unfinished<'e> {
    pub(crate) fn create(environment: &'e Environment, directory: &Path, position: u64) -> Result<Self> {
        // What interrupted calls have left.
        for left in environment.files.list(directory).unwrap_or_default() {
            let name = left.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_data = |name: &str| position_in(Path::new(name)).is_some();
            let is_left = |end: &str| name.strip_suffix(end).is_some_and(is_data);
            if is_left(UNFINISHED) || is_left(BEFORE) {
                let removed = environment.files.remove_dir_all(&left);
                removed.map_err(|error| Error::io(format_args!("remove {}", left.display()), &error))?;
            }
        }
        let mut path = path_of(directory, position).into_os_string();
        path.push(UNFINISHED);
        let path = PathBuf::from(path);
        create_private(&path)
            .map_err(|error| Error::io(format_args!("create {}", path.display()), &error))?;
        Ok(Self { environment, directory: directory.to_owned(), position, path, is_published: false })
    }

    /// Writes a file, and syncs it.
    pub(crate) fn write(
        &self,
        name: &str,
        content: &mut dyn FnMut(&mut dyn std::io::Write) -> Result<()>,
    ) -> Result<()> {
        let path = self.path.join(name);
        let failed = |error: std::io::Error| Error::io(format_args!("write {}", path.display()), &error);
        let mut file = self.environment.files.create(&path).map_err(failed)?;
        content(&mut file)?;
        file.flush().and_then(|()| file.sync()).map_err(failed)
    }

    /// Gives the directory, whose files are synced, its name.
    pub(crate) fn publish(mut self) -> Result<Generation> {
        let Self { environment, directory, position, path, .. } = &self;
        let target = path_of(directory, *position);
        let files = &environment.files;
        let renamed = files.sync_dir(path).and_then(|()| {
            // Data of that position that could not be used, or those of another leader.
            let mut before = target.clone().into_os_string();
            before.push(BEFORE);
            let before = PathBuf::from(before);
            let is_there = files.exists(&target)?;
            if is_there {
                files.rename(&target, &before)?;
            }
            files.rename(path, &target)?;
            files.sync_dir(directory)?;
            if is_there { files.remove_dir_all(&before) } else { Ok(()) }
        });
        renamed.map_err(|error| Error::io(format_args!("write {}", target.display()), &error))?;
        let generation = Generation::open_at(environment, target)?;
        self.is_published = true;
        Ok(generation)
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.is_published {
            let _ = self.environment.files.remove_dir_all(&self.path);
        }
    }
}

/// Removes data of a server as a whole: after a crash they are there, or not.
///
/// # Errors
/// Io; they may be there still, or their files take space until later data are made.
pub(crate) fn discard(environment: &Environment, path: &Path) -> Result<()> {
    let mut unfinished = path.to_owned().into_os_string();
    unfinished.push(BEFORE);
    let (files, unfinished) = (&environment.files, PathBuf::from(unfinished));
    let removed = files.rename(path, &unfinished).and_then(|()| {
        path.parent().map_or(Ok(()), |parent| files.sync_dir(parent))?;
        files.remove_dir_all(&unfinished)
    });
    removed.map_err(|error| Error::io(format_args!("remove {}", path.display()), &error))
}

/// Removes the data of a server before a position, as far as that is possible now.
pub(crate) fn remove_older(environment: &Environment, directory: &Path, position: u64) {
    let older = environment.files.list(directory).unwrap_or_default();
    let is_older = |path: &PathBuf| {
        position > 0 && path.ends_with(DATA) || position_in(path).is_some_and(|found| found < position)
    };
    for path in older.into_iter().filter(is_older) {
        // The next time, if not now.
        let _ = environment.files.remove_dir_all(&path);
    }
}

/// Writes the graph of the first records of the log as later data of a server, which has all partitions of
/// it.
///
/// # Errors
/// Io; those of `watch`.
pub(crate) fn write(
    environment: &Environment,
    directory: &Path,
    (origin, is_together): (u64, bool),
    applied: &Applied,
    watch: &Watch<'_>,
) -> Result<Generation> {
    let unfinished = Unfinished::create(environment, directory, applied.position)?;
    applied.write(environment, &unfinished.path, watch)?;
    let constraints = applied.constraints.clone();
    let checkpoint = Checkpoint::new(origin, applied.position, applied.timestamp, constraints);
    let checkpoint = if is_together { checkpoint.together() } else { checkpoint };
    unfinished.write(CHECKPOINT_FILE, &mut |file| {
        let written = file.write_all(checkpoint.to_text().as_bytes());
        written.map_err(|error| Error::io("write what the data have", &error))
    })?;
    unfinished.publish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_its_file() {
        let constraints = vec!["unique <urn:a\\b> \"é\"".to_owned(), "required x".to_owned()];
        let checkpoint = Checkpoint::new(7, 12, Timestamp(9), constraints);
        let together = checkpoint.clone().together();
        assert_eq!(toml::from_str::<Checkpoint>(&together.to_text()), Ok(together.clone()));
        assert_ne!(together.checksum, checkpoint.checksum);
        let text = checkpoint.to_text();
        assert_eq!(toml::from_str::<Checkpoint>(&text), Ok(checkpoint.clone()));
        let folder = tempfile::tempdir().expect("a folder");
        let read = |text: &str| {
            std::fs::write(folder.path().join(CHECKPOINT_FILE), text).expect("written");
            Checkpoint::read(&Environment::real(), folder.path())
        };
        assert_eq!(read(&text).expect("whole"), Some(checkpoint));
        for (from, to) in
            [("position = 12", "position = 13"), ("timestamp = 9", "timestamp = 8"), ("unique", "single")]
        {
            assert!(read(&text.replace(from, to)).is_err(), "{to}");
        }
    }

    #[test]
    fn what_was_interrupted_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["data-7.tmp", "data-9", "data.partial", "voter-1.tmp"] {
            std::fs::create_dir_all(folder.path().join(name).join("inner")).expect("made");
        }
        let environment = Environment::real();
        let unfinished = Unfinished::create(&environment, folder.path(), 12).expect("made");
        let names = || {
            let entries = std::fs::read_dir(folder.path()).expect("a folder");
            let names =
                entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a text"));
            let mut names: Vec<String> = names.collect();
            names.sort();
            names
        };
        assert_eq!(names(), ["data-12.tmp", "data-9", "data.partial", "voter-1.tmp"]);
        drop(unfinished);
        assert_eq!(names(), ["data-9", "data.partial", "voter-1.tmp"]);
    }

    #[test]
    fn names_have_positions() {
        assert_eq!(position_in(&path_of(Path::new("/a"), 17)), Some(17));
        for name in ["data", "data-", "data-7.tmp", "data.partial", "voter-12"] {
            assert_eq!(position_in(&Path::new("/a").join(name)), None, "{name}");
        }
    }
}
