//! Database files: names, the manifest, the framing of a segment file.
//!
//! # Shape
//! `MANIFEST`: text that names the files of the current generation with lengths and checksums, and ends with
//! its own checksum. `UNFINISHED` exists while a new database is being written. `segments-<generation>.vvs`:
//! head (16 bytes), sections, table of contents, tail (48 bytes). `dictionary-<generation>.vvd`: the image
//! made by the dictionary. See docs/format.md.
//! # Invariants
//! 1. A file that a manifest names is never changed; a new generation has new names.
//! 2. The manifest is replaced by renaming, after all files that it names have been synced.
//! 3. Files of a database without a manifest belong to an unfinished load or restore into a new directory,
//!    and then `UNFINISHED` exists; or the manifest has been lost, and the files must not be overwritten.

use crate::toc::{SectionLocation, Toc};
use std::io::Write;
use std::path::{Path, PathBuf};
use vervet_codec::{Damaged, Reader, write_u64};
use vervet_env::{Bytes, Environment, WriteFile, is_directory_sync_unsupported};
use vervet_model::{Error, ErrorKind, Result};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Name of the manifest.
pub(crate) const MANIFEST: &str = "MANIFEST";
const MANIFEST_NEW: &str = "MANIFEST.tmp";
const MANIFEST_TITLE: &str = "vervet manifest";
/// Version of the manifest. Version 1 has no `log` line where no log has been begun.
const MANIFEST_VERSION: u64 = 2;
/// The oldest supported version.
const MANIFEST_VERSION_MIN: u64 = 1;
/// Name of the file that marks files of a generation without a manifest as unfinished.
const UNFINISHED: &str = "UNFINISHED";
/// Last word of the `log` line while the log has no file.
const LOG_NOT_BEGUN: &str = "new";
/// First bytes of a segment file.
const MAGIC: [u8; 8] = *b"VERVETSG";
/// Version of the segment file.
const VERSION: u64 = 5;
/// The oldest supported version.
const VERSION_MIN: u64 = 3;
const HEAD_BYTES: u64 = 16;
const TAIL_BYTES: usize = 48;
/// Sections begin at multiples of this: a cache line.
const SECTION_ALIGN: usize = 64;

/// Content of a manifest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Manifest {
    /// Format version: [`MANIFEST_VERSION`] for new manifests.
    version: u64,
    pub(crate) generation: u64,
    pub(crate) segments: FileRecord,
    pub(crate) dictionary: FileRecord,
    /// Position at which the log continues; `None`, in version 1 alone: unknown, and any log in the directory
    /// is accepted.
    pub(crate) log: Option<CheckpointPosition>,
    /// Lines that storage keeps for higher layers.
    pub(crate) constraints: Vec<String>,
}

/// Position at which a write-ahead log continues after a generation that holds everything before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckpointPosition {
    /// The log id in the header of all its files.
    pub id: u64,
    /// Position in the log, in bytes.
    pub lsn: u64,
    /// Number of the last commit that the generation holds.
    pub timestamp: u64,
    /// Whether the log has files. `false`: the id is reserved for the first one, and a log with another id in
    /// the directory belongs to another database.
    pub begun: bool,
}

/// A file as recorded in a manifest or a catalog.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileRecord {
    /// Name in its directory.
    pub name: String,
    /// Length in bytes.
    pub length: u64,
    /// xxh3 of the whole file; compared by validation, not on opening.
    pub checksum: u64,
}

impl CheckpointPosition {
    /// A new id for a log that has not been begun, after a generation that holds the commits up to
    /// `timestamp`.
    ///
    /// # Errors
    /// Io: the random source failed.
    pub fn reserve(environment: &Environment, timestamp: u64) -> Result<Self> {
        let id = environment.random.next_u64();
        let id = id.map_err(|error| Error::io("draw a random number", &error))?;
        Ok(Self { id, lsn: 0, timestamp, begun: false })
    }

    fn parse(words: &str) -> Option<Self> {
        let mut words = words.split(' ');
        let id = u64::from_str_radix(words.next()?, 16).ok()?;
        let (lsn, timestamp) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let begun = match words.next() {
            None => true,
            Some(LOG_NOT_BEGUN) => false,
            Some(_) => return None,
        };
        words.next().is_none().then_some(Self { id, lsn, timestamp, begun })
    }
}

impl Manifest {
    /// The manifest of a new generation.
    pub(crate) fn new(
        generation: u64,
        segments: FileRecord,
        dictionary: FileRecord,
        log: CheckpointPosition,
        constraints: Vec<String>,
    ) -> Self {
        Self { version: MANIFEST_VERSION, generation, segments, dictionary, log: Some(log), constraints }
    }

    /// The same manifest with another log position.
    pub(crate) fn with_log(self, log: CheckpointPosition) -> Self {
        Self { version: MANIFEST_VERSION, log: Some(log), ..self }
    }

    fn to_text(&self) -> String {
        let line = |kind: &str, file: &FileRecord| {
            format!("{kind} {} {} {:016x}\n", file.name, file.length, file.checksum)
        };
        let mut text = format!("{MANIFEST_TITLE} {}\ngeneration {}\n", self.version, self.generation);
        text += &line("segments", &self.segments);
        text += &line("dictionary", &self.dictionary);
        if let Some(log) = &self.log {
            text += &format!("log {:016x} {} {}", log.id, log.lsn, log.timestamp);
            if !log.begun {
                text += " ";
                text += LOG_NOT_BEGUN;
            }
            text += "\n";
        }
        for constraint in &self.constraints {
            text += &format!("constraint {constraint}\n");
        }
        let checksum = xxh3_64(text.as_bytes());
        text + &format!("checksum {checksum:016x}\n")
    }

    /// Parses a manifest; `None` unless it is exactly these bytes.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut lines = text.lines();
        let version = lines.next()?.strip_prefix(MANIFEST_TITLE)?.strip_prefix(' ')?.parse().ok()?;
        if !(MANIFEST_VERSION_MIN..=MANIFEST_VERSION).contains(&version) {
            return None;
        }
        let generation = lines.next()?.strip_prefix("generation ")?.parse().ok()?;
        let mut file = |kind: &str, name: String| {
            let mut words = lines.next()?.strip_prefix(kind)?.strip_prefix(' ')?.split(' ');
            let same = words.next()? == name;
            let length = words.next()?.parse().ok()?;
            let checksum = u64::from_str_radix(words.next()?, 16).ok()?;
            same.then_some(FileRecord { name, length, checksum })
        };
        let segments = file("segments", segments_name(generation))?;
        let dictionary = file("dictionary", dictionary_name(generation))?;
        let mut lines = lines.peekable();
        let log = match lines.next_if(|line| line.starts_with("log ")) {
            Some(line) => Some(CheckpointPosition::parse(line.strip_prefix("log ")?)?),
            None => None,
        };
        let constraints =
            lines.map_while(|line| line.strip_prefix("constraint ").map(str::to_owned)).collect();
        let manifest = Self { version, generation, segments, dictionary, log, constraints };
        // A manifest has one canonical text, its checksum included.
        (manifest.to_text() == text).then_some(manifest)
    }

    /// The manifest of the database in `dir`; `None` if there is none.
    pub(crate) fn read(environment: &Environment, dir: &Path) -> Result<Option<Self>> {
        let path = dir.join(MANIFEST);
        let bytes = match environment.files.read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(format_args!("read {}", path.display()), &error)),
        };
        match Self::parse(&bytes) {
            Some(manifest) => Ok(Some(manifest)),
            None => {
                Err(Error::corrupt(path.display(), "it is not a manifest of version 1 or 2, or was changed"))
            }
        }
    }

    /// Makes this the manifest of `dir`, atomically and durably.
    pub(crate) fn publish(&self, environment: &Environment, dir: &Path) -> Result<()> {
        let (temporary, path) = (dir.join(MANIFEST_NEW), dir.join(MANIFEST));
        let write = || {
            let mut file = environment.files.create(&temporary)?;
            file.write_all(self.to_text().as_bytes())?;
            file.flush()?;
            file.sync()?;
            drop(file);
            environment.files.rename(&temporary, &path)?;
            environment.files.sync_dir(dir)
        };
        write().map_err(|e| Error::io(format_args!("write {}", path.display()), &e))
    }

    fn names(&self) -> [&str; 3] {
        [&self.segments.name, &self.dictionary.name, MANIFEST]
    }
}

pub(crate) fn segments_name(generation: u64) -> String {
    format!("segments-{generation}.vvs")
}

pub(crate) fn dictionary_name(generation: u64) -> String {
    format!("dictionary-{generation}.vvd")
}

/// Makes the names of a directory and of its ancestors survive a power failure: any of them may be new, made
/// by this process or by one that ended early.
pub(crate) fn sync_path(environment: &Environment, dir: &Path) -> Result<()> {
    for parent in dir.ancestors().skip(1) {
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        match environment.files.sync_dir(parent) {
            // An ancestor that this process may not list was created by another program long ago. On a file
            // system that cannot sync directories, names are as durable as possible.
            Err(error)
                if error.kind() == std::io::ErrorKind::PermissionDenied
                    || is_directory_sync_unsupported(&error) => {}
            synced => synced.map_err(|e| Error::io(format_args!("sync {}", parent.display()), &e))?,
        }
    }
    Ok(())
}

/// The generation number in a file name.
fn generation_in(name: &str) -> Option<u64> {
    let number = |prefix, suffix| name.strip_prefix(prefix)?.strip_suffix(suffix)?.parse().ok();
    number("segments-", ".vvs").or_else(|| number("dictionary-", ".vvd"))
}

/// Checks that a directory without a manifest may become a database.
///
/// # Errors
/// Corrupt: it has files of a database that has lost its manifest, or a log. Io.
fn check_vacant(environment: &Environment, dir: &Path) -> Result<()> {
    let paths = match environment.files.list(dir) {
        Ok(paths) => paths,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        // A path that is not a directory has no database in it; the writer will get the error itself.
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return Ok(()),
        Err(error) => return Err(Error::io(format_args!("list {}", dir.display()), &error)),
    };
    let names: Vec<&str> = paths.iter().filter_map(|path| path.file_name()?.to_str()).collect();
    let is_log = |name: &str| name.starts_with("wal-") && name.ends_with(".log");
    let mut found = names.iter().filter(|name| generation_in(name).is_some() || is_log(name));
    // The leftovers of an interrupted first load or restore have never been a database.
    let is_unfinished = names.contains(&UNFINISHED) && !names.iter().any(|name| is_log(name));
    match found.next() {
        Some(name) if !is_unfinished => {
            let what = format!("it has files of a database, such as {name}, but no {MANIFEST}");
            Err(Error::corrupt(dir.display(), what).with_hint(
                "restore a backup into another directory (`vervet restore`), or move these files away",
            ))
        }
        _ => Ok(()),
    }
}

/// The manifest of a directory before a write; `None` if there is no manifest and no file that it would name.
///
/// # Errors
/// As [`Manifest::read`]; Corrupt: it has lost its manifest.
pub(crate) fn manifest_to_replace(environment: &Environment, dir: &Path) -> Result<Option<Manifest>> {
    let manifest = Manifest::read(environment, dir)?;
    if manifest.is_none() {
        check_vacant(environment, dir)?;
    }
    Ok(manifest)
}

/// Marks durably that the files of a generation are being written to a directory without a manifest: see
/// invariant 3 of this file.
pub(crate) fn mark_unfinished(environment: &Environment, dir: &Path) -> Result<()> {
    let path = dir.join(UNFINISHED);
    let make = || {
        environment.files.create(&path)?.sync()?;
        environment.files.sync_dir(dir)
    };
    make().map_err(|error| Error::io(format_args!("make {}", path.display()), &error))
}

/// Removes the file of [`mark_unfinished`] once the directory durably has a manifest or no file of a
/// generation. If the removal fails, the mark stays valid.
pub(crate) fn remove_mark(environment: &Environment, dir: &Path) {
    let path = dir.join(UNFINISHED);
    if environment.files.exists(&path).unwrap_or(true) && environment.files.sync_dir(dir).is_ok() {
        let _ = environment.files.remove_file(&path);
    }
}

/// Replaces the log position in the manifest in `dir`, and nothing else.
///
/// # Errors
/// Input: there is no database. Corrupt: the manifest is damaged. Io: the manifest may be the old or the new
/// one.
pub fn publish_log(environment: &Environment, dir: &Path, log: CheckpointPosition) -> Result<()> {
    manifest_of(environment, dir)?.with_log(log).publish(environment, dir)
}

/// Removes files that are not part of `current`: older generations, and leftovers of interrupted loads,
/// except the mark of [`mark_unfinished`]. Only names that this crate assigns are touched. A file that cannot
/// be removed is left to the next call. `own`: a directory of temporary files that this load still needs.
pub(crate) fn remove_leftovers(
    environment: &Environment,
    dir: &Path,
    current: Option<&Manifest>,
    own: Option<&Path>,
) {
    let keep = current.map(Manifest::names).unwrap_or_default();
    for path in environment.files.list(dir).unwrap_or_default() {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if (generation_in(name).is_some() || name == MANIFEST_NEW) && !keep.contains(&name) {
            let _ = environment.files.remove_file(&path);
        } else if name.starts_with("build-") && name.ends_with(".tmp") && own != Some(path.as_path()) {
            let _ = environment.files.remove_dir_all(&path);
        }
    }
}

/// A file that is written sequentially and hashed on the way.
pub(crate) struct HashedFile {
    path: PathBuf,
    file: Box<dyn WriteFile>,
    hasher: Xxh3,
    length: u64,
}

impl HashedFile {
    pub(crate) fn create(environment: &Environment, path: PathBuf) -> Result<Self> {
        let file = environment.files.create(&path);
        let file = file.map_err(|e| Error::io(format_args!("create {}", path.display()), &e))?;
        Ok(Self { path, file, hasher: Xxh3::new(), length: 0 })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.hasher.update(bytes);
        self.length += bytes.len() as u64;
        let written = self.file.write_all(bytes);
        written.map_err(|e| Error::io(format_args!("write {}", self.path.display()), &e))
    }

    /// Syncs and closes the file.
    pub(crate) fn finish(mut self) -> Result<FileRecord> {
        let synced = self.file.flush().and_then(|()| self.file.sync());
        synced.map_err(|e| Error::io(format_args!("sync {}", self.path.display()), &e))?;
        let name = self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        Ok(FileRecord { name, length: self.length, checksum: self.hasher.digest() })
    }
}

/// A segment file under construction.
pub(crate) struct SegmentFile {
    file: HashedFile,
    generation: u64,
}

impl SegmentFile {
    /// `generation`: the number in its tail.
    pub(crate) fn create(environment: &Environment, path: PathBuf, generation: u64) -> Result<Self> {
        let mut file = HashedFile::create(environment, path)?;
        file.write(&MAGIC)?;
        file.write(&VERSION.to_le_bytes())?;
        Ok(Self { file, generation })
    }

    /// Appends a section and returns its position.
    pub(crate) fn section(&mut self, bytes: &[u8]) -> Result<SectionLocation> {
        let offset = self.file.length.next_multiple_of(SECTION_ALIGN as u64);
        let missing = usize::try_from(offset - self.file.length).unwrap_or(0);
        self.file.write(&[0; SECTION_ALIGN][..missing])?;
        self.file.write(bytes)?;
        Ok(SectionLocation { offset, length: bytes.len() as u64, checksum: xxh3_64(bytes) })
    }

    /// Appends the table of contents and the tail, and syncs the file.
    pub(crate) fn finish(mut self, toc: &Toc) -> Result<FileRecord> {
        let bytes = toc.write();
        let offset = self.file.length;
        self.file.write(&bytes)?;
        let mut tail = Vec::with_capacity(TAIL_BYTES);
        let length = offset + bytes.len() as u64 + TAIL_BYTES as u64;
        for number in [offset, bytes.len() as u64, xxh3_64(&bytes), self.generation, length] {
            write_u64(number, &mut tail);
        }
        write_u64(xxh3_64(&tail), &mut tail);
        self.file.write(&tail)?;
        self.file.finish()
    }
}

/// The table of contents of a mapped segment file of this generation.
pub(crate) fn read_toc(bytes: &[u8], generation: u64) -> Result<Toc, Damaged> {
    let (head, rest) = bytes.split_first_chunk::<8>().ok_or(Damaged("file too short"))?;
    if *head != MAGIC {
        return Err(Damaged("it does not begin with VERVETSG"));
    }
    if !(VERSION_MIN..=VERSION).contains(&Reader::new(rest).u64()?) {
        return Err(Damaged("it has an unknown version"));
    }
    let (front, tail) = bytes.split_last_chunk::<TAIL_BYTES>().ok_or(Damaged("file too short"))?;
    let (numbers, checksum) = tail.split_at(TAIL_BYTES - 8);
    if Reader::new(checksum).u64()? != xxh3_64(numbers) {
        return Err(Damaged("its tail has a wrong checksum"));
    }
    let mut tail = Reader::new(numbers);
    let (offset, length, checksum) = (tail.length()?, tail.length()?, tail.u64()?);
    if tail.u64()? != generation || tail.u64()? != bytes.len() as u64 {
        return Err(Damaged("it has another generation or length"));
    }
    let end = offset.checked_add(length).ok_or(Damaged("table of contents out of bounds"))?;
    let toc = front.get(offset..end).ok_or(Damaged("table of contents out of bounds"))?;
    if xxh3_64(toc) != checksum {
        return Err(Damaged("its table of contents has a wrong checksum"));
    }
    let toc = Toc::read(toc)?;
    let orders = toc.orders.iter().flat_map(|order| &order.locations);
    let locations = toc.segments.iter().flatten().chain(&toc.edges).chain(orders);
    for location in locations {
        let end = location.offset.checked_add(location.length).ok_or(Damaged("section out of bounds"))?;
        if location.offset < HEAD_BYTES || end > offset as u64 {
            return Err(Damaged("section out of bounds"));
        }
    }
    Ok(toc)
}

/// Maps a file of a manifest, after checking its length.
pub(crate) fn map(environment: &Environment, dir: &Path, record: &FileRecord) -> Result<Bytes> {
    let path = dir.join(&record.name);
    let bytes = match environment.files.map(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::corrupt(path.display(), "the manifest names it, but it is missing"));
        }
        Err(error) => return Err(Error::io(format_args!("map {}", path.display()), &error)),
    };
    if bytes.len() as u64 != record.length {
        let found = bytes.len();
        return Err(Error::corrupt(
            path.display(),
            format_args!("it has {found} bytes, expected {}", record.length),
        ));
    }
    Ok(bytes)
}

/// The manifest of an existing database.
pub(crate) fn manifest_of(environment: &Environment, dir: &Path) -> Result<Manifest> {
    manifest_to_replace(environment, dir)?.ok_or_else(|| {
        Error::new(ErrorKind::Input, format!("there is no database in {}", dir.display()))
            .with_hint("load data into it first, or check the path")
    })
}
