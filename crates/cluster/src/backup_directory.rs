//! The directory of a backup of a cluster: its files, and the manifest that names them.
//!
//! # Shape
//! [`BACKUP_FILE`] is the manifest. `base-<number>/` has `data-<position>/`, the data of a server with the
//! changes up to a position of the log of the cluster (`generation.rs`), and `records-<position>/` for each
//! call that has found more: the records behind that position, as a write-ahead log of their own. A **point**
//! is the state that a call has reached; a restore may end at any commit from the data of a base to its last
//! point. See docs/format.md.
//! # Invariants
//! 1. What the manifest names is durable and never changes. All else in the directory of a base is left from
//!    a call that was interrupted, and the next call removes it.
//! 2. The records of a base follow each other, from its data on, without a gap.
//! 3. The manifest is replaced as a whole. It exists before the first base does.

use crate::files::{create_private, failed};
use crate::generation::{CHECKPOINT_FILE, Generation};
use serde::Deserialize;
use std::io::ErrorKind::{NotFound, WouldBlock};
use std::io::Write;
use std::path::{Path, PathBuf};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use vervet::{Environment, Timestamp};
use vervet_env::LockGuard;
use vervet_model::{Error, ErrorKind, Result};
use xxhash_rust::xxh3::xxh3_64;

/// Name of the manifest.
pub const BACKUP_FILE: &str = "backup.toml";

const NEW_FILE: &str = "backup.toml.tmp";
const LOCK_FILE: &str = "LOCK";
pub(crate) const BASE: &str = "base-";
pub(crate) const RECORDS: &str = "records-";
/// Ends the name of a directory while it is written.
const UNFINISHED: &str = ".tmp";
/// Version of the manifest.
const VERSION: u64 = 1;

/// What the manifest says.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    version: u64,
    /// Hash of the text behind its line, in hexadecimal.
    checksum: String,
    /// Name of the cluster.
    pub(crate) cluster: String,
    /// The build of the first data of the cluster, in hexadecimal.
    pub(crate) origin: String,
    /// Number of servers, and of voters among them, at the last call.
    pub(crate) servers: usize,
    pub(crate) voters: usize,
    #[serde(default)]
    pub(crate) bases: Vec<Base>,
}

/// Data, and the records behind them.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Base {
    /// The number in the name of its directory.
    pub(crate) number: u64,
    /// The build of the data, in hexadecimal.
    pub(crate) build: String,
    /// Position of the last record of the log in the data.
    pub(crate) position: u64,
    /// The last commit in the data.
    pub(crate) timestamp: u64,
    pub(crate) points: Vec<Point>,
}

/// What a call has reached.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Point {
    /// When the call began: everything that was committed before is in the backup.
    pub(crate) time: String,
    /// The last commit.
    pub(crate) timestamp: u64,
    /// Position in the log of the cluster.
    pub(crate) position: u64,
    /// Number of records behind the point before, or the data. Without records there is no directory.
    pub(crate) records: u64,
    /// LSN of the last of them in the log of their directory.
    pub(crate) end: u64,
    /// Id of that log, in hexadecimal.
    pub(crate) log: String,
}

/// A point of a backup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackupPoint {
    /// When the call that made it began, in UTC (RFC 3339).
    pub time: String,
    /// The last commit in it.
    pub timestamp: Timestamp,
}

/// What the manifest of a backup says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackupStatus {
    /// Name of the cluster.
    pub cluster: String,
    /// Number of its servers.
    pub servers: usize,
    /// Number of its voters.
    pub voters: usize,
    /// Number of copies of its data.
    pub bases: usize,
    /// All points, the oldest first.
    pub points: Vec<BackupPoint>,
}

/// Reads the manifest of a backup, and no other file.
///
/// # Errors
/// Input: there is no backup. Corrupt, Io: it cannot be read.
pub fn backup_status(environment: &Environment, backup: &Path) -> Result<BackupStatus> {
    Manifest::open(environment, backup).map(status_of)
}

pub(crate) fn status_of(manifest: Manifest) -> BackupStatus {
    let Manifest { cluster, servers, voters, bases, .. } = manifest;
    let points = bases.iter().flat_map(|base| &base.points).map(Point::shown).collect();
    BackupStatus { cluster, servers, voters, bases: bases.len(), points }
}

impl Point {
    pub(crate) fn shown(&self) -> BackupPoint {
        BackupPoint { time: self.time.clone(), timestamp: Timestamp(self.timestamp) }
    }
}

impl Base {
    /// Its last point.
    pub(crate) fn last(&self) -> Result<&Point> {
        self.points.last().ok_or_else(|| Error::internal("a base of a backup without a point"))
    }

    /// For each point its position in the log before: that of the point before, or of the data.
    pub(crate) fn segments(&self) -> impl Iterator<Item = (Before, &Point)> {
        let mut before = Before { position: self.position, timestamp: self.timestamp };
        self.points.iter().map(move |point| {
            let after = Before { position: point.position, timestamp: point.timestamp };
            (std::mem::replace(&mut before, after), point)
        })
    }

    /// Opens its data.
    ///
    /// # Errors
    /// Corrupt: they are missing, or not those that the manifest names. Io.
    pub(crate) fn open_data(
        &self,
        environment: &Environment,
        origin: u64,
        path: &Path,
    ) -> Result<Generation> {
        let wrong = |what: &dyn std::fmt::Display| {
            Error::corrupt(
                path.display(),
                format_args!("its data are not those that the manifest names: {what}"),
            )
        };
        let generation = Generation::open(environment, path).map_err(|error| match error.kind() {
            ErrorKind::Input => wrong(&error.message()),
            _ => error,
        })?;
        let found = (generation.origin, generation.checkpoint.position, generation.checkpoint.timestamp);
        if found != (origin, self.position, self.timestamp) {
            return Err(wrong(&format_args!("they end at commit {}", found.2)));
        }
        if hexadecimal(generation.files.build()) != self.build {
            return Err(wrong(&"they are of another build"));
        }
        let all: Vec<usize> = (0..generation.files.partitioning().count()).collect();
        for name in generation.files.file_names(&all).into_iter().chain([CHECKPOINT_FILE.to_owned()]) {
            if !environment.files.exists(&generation.path.join(&name)).unwrap_or(false) {
                return Err(wrong(&format_args!("{name} is missing")));
            }
        }
        Ok(generation)
    }
}

/// Where records begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Before {
    pub(crate) position: u64,
    /// The last commit up to there.
    pub(crate) timestamp: u64,
}

pub(crate) fn hexadecimal(number: u64) -> String {
    format!("{number:016x}")
}

/// The present time, as in the manifest.
pub(crate) fn present(environment: &Environment) -> Result<String> {
    let now = OffsetDateTime::from(environment.clock.wall());
    // Milliseconds are enough for people, and the text is compared with what they type.
    let now = now.replace_nanosecond(u32::from(now.millisecond()) * 1_000_000);
    let text = now.map_err(|error| error.to_string());
    let text = text.and_then(|now| now.format(&Rfc3339).map_err(|error| error.to_string()));
    text.map_err(|error| Error::internal(format!("the time of the system cannot be written: {error}")))
}

pub(crate) fn base_path(backup: &Path, number: u64) -> PathBuf {
    backup.join(format!("{BASE}{number:04}"))
}

/// The directory of the records behind a position.
pub(crate) fn records_path(base: &Path, position: u64) -> PathBuf {
    base.join(format!("{RECORDS}{position}"))
}

/// The same while it is written.
pub(crate) fn unfinished_records_path(base: &Path, position: u64) -> PathBuf {
    base.join(format!("{RECORDS}{position}{UNFINISHED}"))
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

impl Manifest {
    fn new(cluster: &str, origin: u64) -> Self {
        Self {
            version: VERSION,
            checksum: String::new(),
            cluster: cluster.to_owned(),
            origin: hexadecimal(origin),
            servers: 0,
            voters: 0,
            bases: Vec::new(),
        }
    }

    /// The manifest of a backup.
    ///
    /// # Errors
    /// Input: there is none, or no call has finished. Corrupt, Unsupported, Io: it cannot be read.
    pub(crate) fn open(environment: &Environment, backup: &Path) -> Result<Self> {
        let none = |what: &str| {
            Error::new(ErrorKind::Input, format!("there is no {what} of a cluster in {}", backup.display()))
                .with_hint("check the path; `vervet cluster backup` makes one, and `vervet restore` restores those of databases")
        };
        let manifest = Self::read(environment, backup)?.ok_or_else(|| none("backup"))?;
        if manifest.bases.is_empty() { Err(none("finished backup")) } else { Ok(manifest) }
    }

    pub(crate) fn read(environment: &Environment, backup: &Path) -> Result<Option<Self>> {
        let path = backup.join(BACKUP_FILE);
        let bytes = match environment.files.read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == NotFound => return Ok(None),
            Err(error) => return Err(failed("read", &path)(error)),
        };
        let damaged = |what: &str| {
            Error::corrupt(path.display(), what).with_hint(
                "put back a copy of this file that was made earlier; or keep the directory, and begin another backup \
                 in a new one",
            )
        };
        let text = std::str::from_utf8(&bytes).map_err(|_| damaged("it is not a text"))?;
        let (head, content) = split(text).ok_or_else(|| damaged("it has no checksum"))?;
        if !head.contains(&checksum_of(content)) {
            return Err(damaged("it has a wrong checksum"));
        }
        if !content.starts_with(&format!("version = {VERSION}\n")) {
            let what = format!("{} has another version than {VERSION}", path.display());
            return Err(
                Error::new(ErrorKind::Unsupported, what).with_hint("use the version of Vervet that wrote it")
            );
        }
        let manifest: Self = toml::from_str(text).map_err(|error| damaged(error.message()))?;
        if manifest.bases.iter().any(|base| base.points.is_empty()) {
            return Err(damaged("a base has no point"));
        }
        Ok(Some(manifest))
    }

    /// The text of the file. Names of clusters need no escapes ([`crate::ClusterMap::check`]).
    fn to_text(&self) -> String {
        let mut text = format!(
            "version = {VERSION}\ncluster = \"{}\"\norigin = \"{}\"\nservers = {}\nvoters = {}\n",
            self.cluster, self.origin, self.servers, self.voters
        );
        for Base { number, build, position, timestamp, points } in &self.bases {
            text.push_str(&format!(
                "\n[[bases]]\nnumber = {number}\nbuild = \"{build}\"\nposition = {position}\ntimestamp = {timestamp}\n"
            ));
            for Point { time, timestamp, position, records, end, log } in points {
                text.push_str(&format!(
                    "[[bases.points]]\ntime = \"{time}\"\ntimestamp = {timestamp}\nposition = {position}\n\
                     records = {records}\nend = {end}\nlog = \"{log}\"\n"
                ));
            }
        }
        format!(
            "# A backup of a cluster, written by `vervet cluster backup`.\nchecksum = {}\n{text}",
            checksum_of(&text)
        )
    }

    /// Replaces the manifest in a directory.
    fn write(&self, environment: &Environment, backup: &Path) -> Result<()> {
        let (path, new) = (backup.join(BACKUP_FILE), backup.join(NEW_FILE));
        let files = &environment.files;
        let written = files.create(&new).and_then(|mut file| {
            file.write_all(self.to_text().as_bytes())?;
            file.flush()?;
            file.sync()?;
            files.rename(&new, &path)?;
            files.sync_dir(backup)
        });
        written.map_err(failed("write", &path))
    }
}

/// The text up to the line of the checksum, and the text behind it.
fn split(text: &str) -> Option<(&str, &str)> {
    let line = text.find("checksum = \"")?;
    let end = line + text[line..].find('\n')? + 1;
    Some(text.split_at(end))
}

/// With quotation marks.
fn checksum_of(content: &str) -> String {
    format!("\"{:016x}\"", xxh3_64(content.as_bytes()))
}

/// The directory of a backup that this process writes.
pub(crate) struct BackupDirectory<'e> {
    pub(crate) environment: &'e Environment,
    path: PathBuf,
    pub(crate) manifest: Manifest,
    _lock: Box<dyn LockGuard>,
}

impl<'e> BackupDirectory<'e> {
    /// Opens a backup of a cluster to write to it, or makes one, and removes what interrupted calls have
    /// left.
    ///
    /// # Errors
    /// Input: the directory has something else, or a backup of another cluster. Unavailable: another process
    /// writes to it. Corrupt, Io.
    pub(crate) fn open(
        environment: &'e Environment,
        path: &Path,
        (cluster, origin): (&str, u64),
    ) -> Result<Self> {
        create_private(path).map_err(failed("create", path))?;
        let found = Manifest::read(environment, path)?;
        if found.is_none() {
            let entries = environment.files.list(path).map_err(failed("list", path))?;
            let is_own = |path: &PathBuf| matches!(name_of(path), LOCK_FILE | NEW_FILE);
            if let Some(other) = entries.iter().find(|path| !is_own(path)) {
                let what = format!("{} has {}, and no backup", path.display(), name_of(other));
                return Err(Error::new(ErrorKind::Input, what).with_hint("name a new directory, or a backup"));
            }
        }
        let lock = environment.files.lock(&path.join(LOCK_FILE)).map_err(|error| match error.kind() {
            WouldBlock => {
                let what = format!("another process writes to the backup {}", path.display());
                Error::new(ErrorKind::Unavailable, what).with_hint("wait until it has ended")
            }
            _ => failed("lock", path)(error),
        })?;
        // Another process may have written it before this one had the lock.
        let manifest = match Manifest::read(environment, path)? {
            Some(found) => found,
            None => {
                let manifest = Manifest::new(cluster, origin);
                manifest.write(environment, path)?;
                for above in path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
                    // Not every user may; one that was made just now can be.
                    _ = environment.files.sync_dir(above);
                }
                manifest
            }
        };
        if manifest.origin != hexadecimal(origin) {
            let what = format!(
                "{} is a backup of cluster {} with data {}, and this cluster, {cluster}, has data {}",
                path.display(),
                manifest.cluster,
                manifest.origin,
                hexadecimal(origin)
            );
            return Err(Error::new(ErrorKind::Input, what).with_hint("name a directory for each cluster"));
        }
        let directory = Self { environment, path: path.to_owned(), manifest, _lock: lock };
        directory.remove_unnamed()?;
        Ok(directory)
    }

    /// Path of the directory of a base.
    pub(crate) fn base(&self, number: u64) -> PathBuf {
        base_path(&self.path, number)
    }

    /// Makes the directory of a base that the manifest does not name yet, and returns its number.
    pub(crate) fn create_base(&self) -> Result<(u64, PathBuf)> {
        let number = self.manifest.bases.last().map_or(0, |base| base.number) + 1;
        let path = self.base(number);
        create_private(&path).map_err(failed("create", &path))?;
        self.environment.files.sync_dir(&self.path).map_err(failed("sync", &self.path))?;
        Ok((number, path))
    }

    /// Replaces the manifest, and removes what it does not name any more.
    pub(crate) fn write(&mut self, manifest: Manifest) -> Result<()> {
        manifest.write(self.environment, &self.path)?;
        self.manifest = manifest;
        self.remove_unnamed()
    }

    fn remove_unnamed(&self) -> Result<()> {
        let list = |path: &Path| self.environment.files.list(path).map_err(failed("list", path));
        for path in list(&self.path)?.iter().filter(|path| name_of(path).starts_with(BASE)) {
            let Some(base) = self.manifest.bases.iter().find(|base| self.base(base.number) == *path) else {
                self.remove(path)?;
                continue;
            };
            let segments = base.segments().filter(|(_, point)| point.records > 0);
            let named: Vec<PathBuf> =
                segments.map(|(before, _)| records_path(path, before.position)).collect();
            for inner in list(path)? {
                if name_of(&inner).starts_with(RECORDS) && !named.contains(&inner) {
                    self.remove(&inner)?;
                }
            }
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.environment.files.remove_dir_all(path).map_err(failed("remove", path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let point = |timestamp: u64, records| Point {
            time: format!("2026-11-29T12:00:0{timestamp}.5Z"),
            timestamp,
            position: timestamp * 2,
            records,
            end: records * 50,
            log: hexadecimal(records),
        };
        let base = |number, points| Base { number, build: hexadecimal(3), position: 2, timestamp: 1, points };
        let bases = vec![base(1, vec![point(1, 0), point(4, 9)]), base(3, vec![point(7, 5)])];
        Manifest { servers: 3, voters: 3, bases, ..Manifest::new("c", 7) }
    }

    #[test]
    fn a_manifest_is_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let environment = Environment::real();
        assert_eq!(Manifest::read(&environment, folder.path()).expect("none"), None);
        manifest().write(&environment, folder.path()).expect("written");
        let found = Manifest::read(&environment, folder.path()).expect("whole").expect("there");
        assert_eq!(Manifest { checksum: String::new(), ..found }, manifest());
        let path = folder.path().join(BACKUP_FILE);
        let bytes = std::fs::read(&path).expect("a file");
        let begin = bytes.iter().position(|byte| *byte == b'\n').expect("a line");
        for at in begin..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            std::fs::write(&path, &changed).expect("written");
            let error = Manifest::read(&environment, folder.path()).expect_err("damaged");
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{at}: {error}");
            std::fs::write(&path, &bytes[..at]).expect("written");
            assert!(Manifest::read(&environment, folder.path()).is_err(), "{at}");
        }
    }

    #[test]
    fn what_interrupted_calls_have_left_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let environment = Environment::real();
        manifest().write(&environment, folder.path()).expect("written");
        let [kept, gone] = [
            ["base-0001/data-2", "base-0001/records-2", "base-0003/data-2", "base-0003/records-2"],
            ["base-0001/records-8", "base-0001/records-9.tmp", "base-0002/data-2", "base-0004/data-2.tmp"],
        ];
        for name in kept.iter().chain(&gone) {
            std::fs::create_dir_all(folder.path().join(name)).expect("made");
        }
        let open = |origin| BackupDirectory::open(&environment, folder.path(), ("c", origin)).map(drop);
        assert_eq!(open(8).expect_err("another cluster").kind(), ErrorKind::Input);
        open(7).expect("opened");
        for name in kept {
            assert!(folder.path().join(name).exists(), "{name}");
        }
        for name in gone {
            assert!(!folder.path().join(name).exists(), "{name}");
        }
        // Bases without a manifest are never removed.
        std::fs::remove_file(folder.path().join(BACKUP_FILE)).expect("removed");
        assert_eq!(open(7).expect_err("no manifest").kind(), ErrorKind::Input);
        assert!(folder.path().join(kept[0]).exists());
    }
}
