//! Simulated file system in memory with fault injection: power failures, I/O errors, full disks, bad sectors.
//!
//! # Shape
//! A tree of nodes. A file is its bytes and the number of synced ones; a directory is its current names and
//! those of its last sync. A crash therefore restores the synced names, and keeps of each file the synced
//! bytes and possibly some more. Bytes that a failed sync should have saved stay unsaved: they can be read,
//! and later syncs succeed, but no crash keeps them, as on systems that mark pages clean after a failed write
//! (Rebello et al., "Can Applications Recover from fsync Failures?", USENIX ATC 2020).
//! # Invariants
//! 1. A handle or lock from before a crash is dead: it can neither write nor read.
//! 2. All randomness is drawn from the seed, so a failing test can be replayed.
//! # Cost
//! One lock around everything; [`FileSystem::map`] copies. For tests only.
//! # Not here
//! Spontaneous bit rot: a test injects it by [`SimulatedFiles::damage`].

use crate::files::locked_by;
use crate::{Bytes, FileSystem, LockGuard, SeededRandom, WriteFile};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Kind of an injected fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// This operation fails, later ones work again. A write writes half of its bytes first; data of a failed
    /// sync stays readable, but no later sync saves it.
    Io,
    /// The disk is full: every operation that needs space fails until [`SimulatedFiles::clear_faults`]. A
    /// write first writes half of its bytes and reports so; the next one fails and writes nothing.
    DiskFull,
    /// Loss of power: this and every later change fails, until a crash ([`SimulatedFiles::crash`] and its
    /// variants) restores power.
    Power,
    /// The thread of this operation panics, later operations work again.
    Panic,
}

/// A file system in memory. Clones share it. See the header of this file.
#[derive(Clone, Debug)]
pub struct SimulatedFiles {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    root: Directory,
    random: SeededRandom,
    /// Number of power failures; handles store the one of their opening.
    epoch: u64,
    writes: u64,
    write_fault: Option<(u64, Fault)>,
    disk_full: bool,
    is_powered_off: bool,
    reads: u64,
    read_fault: Option<u64>,
    /// Unreadable bytes: file, position in it.
    bad_sectors: BTreeSet<(PathBuf, usize)>,
    /// Directories that cannot be synced.
    unsyncable: BTreeSet<PathBuf>,
    /// Duration of a sync of a file, by the real clock.
    sync_time: Duration,
    /// Result of [`FileSystem::available_bytes`]; `None`: unlimited.
    available: Option<u64>,
}

type Directory = Arc<Mutex<DirectoryEntries>>;
type File = Arc<Mutex<FileContent>>;

#[derive(Clone, Debug)]
enum Node {
    File(File),
    Directory(Directory),
}

#[derive(Debug, Default)]
struct DirectoryEntries {
    now: BTreeMap<OsString, Node>,
    synced: BTreeMap<OsString, Node>,
}

#[derive(Debug, Default)]
struct FileContent {
    bytes: Vec<u8>,
    /// Number of leading bytes that survive a crash.
    synced: usize,
    /// Exceptions: ranges whose sync has failed.
    unsaved: Vec<Range<usize>>,
    locked: bool,
}

/// Policy for unsynced data in a crash.
#[derive(Clone, Copy)]
enum CrashPolicy<'a> {
    /// No unsynced data is kept.
    LoseUnsynced,
    /// A prefix of a file, all names of a directory or none.
    Prefix(&'a SeededRandom),
    /// Any sectors of a file, any names of a directory.
    AnySectors(&'a SeededRandom),
}

/// Locks, ignoring poison: no operation panics half way, so the guarded data is consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SimulatedFiles {
    /// An empty disk.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let state = State {
            root: Directory::default(),
            random: SeededRandom::new(seed ^ 0x0064_6973_6B00),
            epoch: 0,
            writes: 0,
            write_fault: None,
            disk_full: false,
            is_powered_off: false,
            reads: 0,
            read_fault: None,
            bad_sectors: BTreeSet::new(),
            unsyncable: BTreeSet::new(),
            sync_time: Duration::ZERO,
            available: None,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Power failure and restart. Every file keeps the synced bytes and a random prefix of the unsynced ones;
    /// every directory with changed names has, at random, those of its last sync or the changed ones. Faults
    /// are healed.
    pub fn crash(&self) {
        self.crash_with(|random| CrashPolicy::Prefix(random));
    }

    /// [`SimulatedFiles::crash`] that keeps no unsynced data.
    pub fn crash_losing_all(&self) {
        self.crash_with(|_| CrashPolicy::LoseUnsynced);
    }

    /// [`SimulatedFiles::crash`] in which unsynced data reached the disk in any order: of the unsynced bytes
    /// some sectors (of 8 to 512 bytes) are kept and others are zeros; of the changed names of a directory
    /// some are old and some new.
    pub fn crash_reordering(&self) {
        self.crash_with(|random| CrashPolicy::AnySectors(random));
    }

    /// A new disk with the state that [`SimulatedFiles::crash_losing_all`] would leave of this one now.
    #[must_use]
    pub fn after_power_loss(&self) -> Self {
        let left = Self::new(0);
        let root = synced_copy(&lock(&self.state).root);
        lock(&left.state).root = root;
        left
    }

    /// The end of the process, not of the machine: nothing is lost, but handles and locks are dead.
    pub fn end_process(&self) {
        let root = {
            let mut state = lock(&self.state);
            state.epoch += 1;
            state.root.clone()
        };
        unlock_all(&root);
    }

    fn crash_with(&self, policy: impl FnOnce(&SeededRandom) -> CrashPolicy<'_>) {
        let mut state = lock(&self.state);
        state.epoch += 1;
        state.clear_faults();
        let root = state.root.clone();
        crash_directory(&root, policy(&state.random));
    }

    /// Lets the `n`-th modifying operation from now (0: the next one) fail.
    pub fn fail_write(&self, n: u64, fault: Fault) {
        let mut state = lock(&self.state);
        state.write_fault = Some((state.writes + n, fault));
    }

    /// Lets the `n`-th operation from now that reads a file (0: the next one) fail.
    pub fn fail_read(&self, n: u64) {
        let mut state = lock(&self.state);
        state.read_fault = Some(state.reads + n);
    }

    /// Makes this byte of a file unreadable until [`SimulatedFiles::clear_faults`]. Reading it is an
    /// error; mapping the file panics, in place of the SIGBUS that would end the process on access.
    pub fn add_bad_sector(&self, path: &Path, position: usize) {
        lock(&self.state).bad_sectors.insert((path.to_owned(), position));
    }

    /// Makes syncs of this directory fail as on a file system without directory syncs: an error of kind
    /// [`io::ErrorKind::InvalidInput`].
    pub fn fail_directory_syncs(&self, dir: &Path) {
        lock(&self.state).unsyncable.insert(dir.to_owned());
    }

    /// Sets the duration of each later sync of a file, by the real clock.
    pub fn set_sync_time(&self, time: Duration) {
        lock(&self.state).sync_time = time;
    }

    /// Sets the reported free space of the disk; `None`: unlimited. It does not limit writes.
    pub fn set_available(&self, bytes: Option<u64>) {
        lock(&self.state).available = bytes;
    }

    /// Ends all faults, including a full disk.
    pub fn clear_faults(&self) {
        lock(&self.state).clear_faults();
    }

    /// Number of modifying operations (writes, syncs, creations, removals, renames), so that a test can let
    /// each of them fail in turn.
    #[must_use]
    pub fn write_count(&self) -> u64 {
        lock(&self.state).writes
    }

    /// Number of operations that have read a file.
    #[must_use]
    pub fn read_count(&self) -> u64 {
        lock(&self.state).reads
    }

    /// Overwrites one byte of a file, like a failing disk.
    ///
    /// # Errors
    /// The file does not exist, or is shorter.
    pub fn damage(&self, path: &Path, position: usize, byte: u8) -> io::Result<()> {
        let state = lock(&self.state);
        let file = state.file(path)?;
        let mut content = lock(&file);
        *content.bytes.get_mut(position).ok_or(io::ErrorKind::UnexpectedEof)? = byte;
        Ok(())
    }

    /// The bytes of a file, and the position of the first unreadable one.
    fn read_file(&self, path: &Path) -> io::Result<(Vec<u8>, Option<usize>)> {
        let mut state = lock(&self.state);
        let number = state.reads;
        state.reads += 1;
        if state.read_fault.is_some_and(|at| at == number) {
            return Err(injected_error());
        }
        let file = state.file(path)?;
        let bytes = lock(&file).bytes.clone();
        let bad = state.bad_sectors.iter().filter(|(file, at)| file == path && *at < bytes.len());
        let bad = bad.map(|(_, at)| *at).min();
        Ok((bytes, bad))
    }

    fn open_writer(&self, path: &Path, empty_it: bool) -> io::Result<Box<dyn WriteFile>> {
        let mut state = lock(&self.state);
        state.begin_write(true)?;
        let (parent, name) = state.parent(path)?;
        let mut names = lock(&parent);
        let node = names.now.entry(name).or_insert_with(|| Node::File(File::default()));
        let Node::File(file) = node else { return Err(io::ErrorKind::IsADirectory.into()) };
        if empty_it {
            let mut content = lock(file);
            content.truncate(0);
        }
        Ok(Box::new(Handle { state: self.state.clone(), file: file.clone(), epoch: state.epoch }))
    }
}

/// A copy of the synced state.
fn synced_copy(directory: &Directory) -> Directory {
    let copy = |node: &Node| match node {
        Node::Directory(inner) => Node::Directory(synced_copy(inner)),
        Node::File(file) => {
            let FileContent { bytes, synced, unsaved, .. } = &*lock(file);
            let mut left = FileContent {
                bytes: bytes.clone(),
                synced: *synced,
                unsaved: unsaved.clone(),
                locked: false,
            };
            left.crash(CrashPolicy::LoseUnsynced);
            Node::File(Arc::new(Mutex::new(left)))
        }
    };
    let names: BTreeMap<OsString, Node> =
        lock(directory).synced.iter().map(|(name, node)| (name.clone(), copy(node))).collect();
    Arc::new(Mutex::new(DirectoryEntries { now: names.clone(), synced: names }))
}

fn unlock_all(directory: &Directory) {
    for node in lock(directory).now.values() {
        match node {
            Node::Directory(inner) => unlock_all(inner),
            Node::File(file) => lock(file).locked = false,
        }
    }
}

fn crash_directory(directory: &Directory, policy: CrashPolicy<'_>) {
    let mut names = lock(directory);
    match policy {
        CrashPolicy::Prefix(random) if random.below(2) == 0 => {}
        CrashPolicy::AnySectors(random) => {
            let DirectoryEntries { now, synced } = &mut *names;
            let all: BTreeSet<OsString> = now.keys().chain(synced.keys()).cloned().collect();
            for name in all {
                if random.below(2) == 0 {
                    match synced.get(&name) {
                        Some(node) => now.insert(name, node.clone()),
                        None => now.remove(&name),
                    };
                }
            }
        }
        CrashPolicy::LoseUnsynced | CrashPolicy::Prefix(_) => names.now = names.synced.clone(),
    }
    names.synced = names.now.clone();
    for node in names.now.values() {
        match node {
            Node::Directory(inner) => crash_directory(inner, policy),
            Node::File(file) => lock(file).crash(policy),
        }
    }
}

impl FileContent {
    fn crash(&mut self, policy: CrashPolicy<'_>) {
        let tail = (self.bytes.len() - self.synced) as u64;
        let kept = match policy {
            CrashPolicy::LoseUnsynced => 0,
            CrashPolicy::Prefix(random) | CrashPolicy::AnySectors(random) => random.below(tail + 1),
        };
        let length = self.synced + usize::try_from(kept).unwrap_or(0);
        self.bytes.truncate(length);
        if let CrashPolicy::AnySectors(random) = policy {
            let sector = 8 << random.below(7);
            let mut start = self.synced;
            while start < length {
                let end = length.min((start / sector + 1) * sector);
                if random.below(2) == 0 {
                    self.bytes[start..end].fill(0);
                }
                start = end;
            }
        }
        for unsaved in std::mem::take(&mut self.unsaved) {
            self.bytes[unsaved.start.min(length)..unsaved.end.min(length)].fill(0);
        }
        self.synced = length;
        self.locked = false;
    }

    fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
        self.unsaved.retain_mut(|unsaved| {
            unsaved.end = unsaved.end.min(length);
            unsaved.start < unsaved.end
        });
        self.synced = self.bytes.len();
    }
}

fn injected_error() -> io::Error {
    io::Error::other("the simulated disk failed")
}

impl State {
    fn clear_faults(&mut self) {
        self.write_fault = None;
        self.read_fault = None;
        self.bad_sectors.clear();
        self.disk_full = false;
        self.is_powered_off = false;
    }

    /// Counts a modifying operation, and fails it if a fault is due.
    fn begin_write(&mut self, needs_space: bool) -> io::Result<()> {
        let number = self.writes;
        self.writes += 1;
        match self.write_fault {
            Some((at, fault)) if at == number => {
                self.write_fault = None;
                match fault {
                    Fault::Io => return Err(injected_error()),
                    Fault::DiskFull => self.disk_full = true,
                    Fault::Power => self.is_powered_off = true,
                    Fault::Panic => panic!("a simulated panic"),
                }
            }
            _ => {}
        }
        if self.is_powered_off {
            return Err(injected_error());
        }
        if self.disk_full && needs_space { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn node(&self, path: &Path) -> io::Result<Node> {
        let mut node = Node::Directory(self.root.clone());
        for name in path_components(path)? {
            let Node::Directory(directory) = node else { return Err(io::ErrorKind::NotADirectory.into()) };
            node = lock(&directory).now.get(name).cloned().ok_or(io::ErrorKind::NotFound)?;
        }
        Ok(node)
    }

    fn file(&self, path: &Path) -> io::Result<File> {
        match self.node(path)? {
            Node::File(file) => Ok(file),
            Node::Directory(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    fn directory(&self, path: &Path) -> io::Result<Directory> {
        match self.node(path)? {
            Node::Directory(directory) => Ok(directory),
            Node::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// The directory that contains `path`, and its name there.
    fn parent(&self, path: &Path) -> io::Result<(Directory, OsString)> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        Ok((self.directory(path.parent().unwrap_or(Path::new("")))?, name.to_owned()))
    }

    fn remove(&mut self, path: &Path, directory: bool) -> io::Result<()> {
        self.begin_write(false)?;
        let (parent, name) = self.parent(path)?;
        let mut names = lock(&parent);
        match names.now.get(&name).ok_or(io::ErrorKind::NotFound)? {
            Node::File(_) if directory => return Err(io::ErrorKind::NotADirectory.into()),
            Node::Directory(_) if !directory => return Err(io::ErrorKind::IsADirectory.into()),
            _ => names.now.remove(&name),
        };
        Ok(())
    }
}

/// The names from the root to `path`; relative paths start at the root too.
fn path_components(path: &Path) -> io::Result<Vec<&OsStr>> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => return Err(io::ErrorKind::InvalidInput.into()),
        }
    }
    Ok(names)
}

impl FileSystem for SimulatedFiles {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.begin_write(true)?;
        let mut directory = state.root.clone();
        for name in path_components(dir)? {
            let next = lock(&directory)
                .now
                .entry(name.to_owned())
                .or_insert_with(|| Node::Directory(Directory::default()))
                .clone();
            let Node::Directory(next) = next else { return Err(io::ErrorKind::AlreadyExists.into()) };
            directory = next;
        }
        Ok(())
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.open_writer(path, true)
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.open_writer(path, false)
    }

    fn truncate(&self, path: &Path, length: u64) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.begin_write(false)?;
        let file = state.file(path)?;
        let mut content = lock(&file);
        content.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        Ok(())
    }

    fn map(&self, path: &Path) -> io::Result<Bytes> {
        let (bytes, bad) = self.read_file(path)?;
        assert!(bad.is_none(), "SIGBUS: {} is mapped and has a bad sector", path.display());
        Ok(Bytes::from(bytes))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self.read_file(path)? {
            (bytes, None) => Ok(bytes),
            (_, Some(_)) => Err(injected_error()),
        }
    }

    fn open_at(&self, path: &Path, offset: u64) -> io::Result<Box<dyn Read + Send>> {
        let (bytes, bad) = self.read_file(path)?;
        let at = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        Ok(Box::new(SimulatedReader { bytes, at, bad }))
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        let file = lock(&self.state).file(path)?;
        let length = lock(&file).bytes.len();
        Ok(length as u64)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.begin_write(true)?;
        let node = state.node(from)?;
        let (old, old_name) = state.parent(from)?;
        let (new, new_name) = state.parent(to)?;
        if matches!(node, Node::Directory(_)) && path_components(to)?.starts_with(&path_components(from)?) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let replaced = lock(&new).now.get(&new_name).cloned();
        match (&node, &replaced) {
            (Node::File(_), Some(Node::Directory(_))) => return Err(io::ErrorKind::IsADirectory.into()),
            (Node::Directory(_), Some(Node::File(_))) => return Err(io::ErrorKind::NotADirectory.into()),
            (Node::Directory(_), Some(Node::Directory(inner))) if !lock(inner).now.is_empty() => {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            _ => {}
        }
        lock(&old).now.remove(&old_name);
        lock(&new).now.insert(new_name, node);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        lock(&self.state).remove(path, false)
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        lock(&self.state).remove(dir, true)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let directory = lock(&self.state).directory(dir)?;
        let names = lock(&directory);
        Ok(names.now.keys().map(|name| dir.join(name)).collect())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        match lock(&self.state).node(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.begin_write(false)?;
        if state.unsyncable.contains(dir) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let directory = state.directory(dir)?;
        let mut names = lock(&directory);
        names.synced = names.now.clone();
        Ok(())
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.begin_write(false)?;
        let file = state.file(path)?;
        let mut content = lock(&file);
        content.synced = content.bytes.len();
        Ok(())
    }

    fn available_bytes(&self, _dir: &Path) -> io::Result<Option<u64>> {
        let state = lock(&self.state);
        Ok(if state.disk_full { Some(0) } else { state.available })
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        let state = lock(&self.state);
        let (parent, name) = state.parent(path)?;
        let mut names = lock(&parent);
        let node = names.now.entry(name).or_insert_with(|| Node::File(File::default()));
        let Node::File(file) = node else { return Err(io::ErrorKind::IsADirectory.into()) };
        let mut content = lock(file);
        if content.locked {
            return Err(locked_by(&String::from_utf8_lossy(&content.bytes)));
        }
        content.locked = true;
        content.bytes = std::process::id().to_string().into_bytes();
        content.synced = 0;
        Ok(Box::new(Lock(Handle { state: self.state.clone(), file: file.clone(), epoch: state.epoch })))
    }
}

/// An open file, valid in one epoch.
#[derive(Debug)]
struct Handle {
    state: Arc<Mutex<State>>,
    file: File,
    epoch: u64,
}

impl Handle {
    fn begin_write(&self, needs_space: bool) -> io::Result<()> {
        let mut state = lock(&self.state);
        if state.epoch != self.epoch {
            return Err(io::Error::other("this file was opened before the power failed"));
        }
        state.begin_write(needs_space)
    }
}

/// A file opened for reading.
#[derive(Debug)]
struct SimulatedReader {
    bytes: Vec<u8>,
    at: usize,
    /// The first unreadable byte.
    bad: Option<usize>,
}

impl Read for SimulatedReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let length = out.len().min(self.bytes.len() - self.at);
        let end = match self.bad {
            Some(bad) if bad == self.at && length > 0 => return Err(injected_error()),
            Some(bad) if bad > self.at => bad.min(self.at + length),
            _ => self.at + length,
        };
        let part = &self.bytes[self.at..end];
        out[..part.len()].copy_from_slice(part);
        self.at = end;
        Ok(part.len())
    }
}

impl Write for Handle {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let was_full = lock(&self.state).disk_full;
        let half = bytes.len() / 2;
        let (written, result) = match self.begin_write(true) {
            Ok(()) => (bytes.len(), Ok(bytes.len())),
            // Like a real disk that fills up: a short write, then an error that has written nothing.
            Err(error) if error.kind() == io::ErrorKind::StorageFull && (was_full || half == 0) => {
                (0, Err(error))
            }
            Err(error) if error.kind() == io::ErrorKind::StorageFull => (half, Ok(half)),
            Err(error) => (half, Err(error)),
        };
        if lock(&self.state).epoch == self.epoch {
            lock(&self.file).bytes.extend_from_slice(&bytes[..written]);
        }
        result
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl WriteFile for Handle {
    fn sync(&mut self) -> io::Result<()> {
        let time = lock(&self.state).sync_time;
        if !time.is_zero() {
            std::thread::sleep(time);
        }
        let result = self.begin_write(false);
        if result.is_ok() || lock(&self.state).epoch == self.epoch {
            let mut content = lock(&self.file);
            let tail = content.synced..content.bytes.len();
            match result {
                Ok(()) => content.synced = tail.end,
                Err(_) => content.unsaved.push(tail),
            }
        }
        result
    }
}

#[derive(Debug)]
struct Lock(Handle);

impl LockGuard for Lock {}

impl Drop for Lock {
    fn drop(&mut self) {
        if lock(&self.0.state).epoch == self.0.epoch {
            let mut content = lock(&self.0.file);
            content.locked = false;
            content.bytes.clear();
            content.synced = 0;
        }
    }
}

/// Tests that every [`FileSystem`] must pass.
#[cfg(test)]
pub(crate) mod contract {
    use super::*;

    pub(crate) fn check(files: &dyn FileSystem, dir: &Path) {
        let inner = dir.join("a/b");
        files.create_dir_all(&inner).expect("create_dir_all");
        let path = inner.join("x");
        let mut file = files.create(&path).expect("create");
        file.write_all(b"hello").expect("write");
        file.sync().expect("sync");
        drop(file);
        let mut file = files.append(&path).expect("append");
        file.write_all(b" world").expect("write");
        file.sync().expect("sync");
        drop(file);
        files.sync_dir(&inner).expect("sync_dir");
        assert_eq!(files.length(&path).expect("length"), 11);
        assert_eq!(&*files.map(&path).expect("map"), b"hello world");
        assert_eq!(files.read(&path).expect("read"), b"hello world");
        let mut text = String::new();
        files.open(&path).expect("open").read_to_string(&mut text).expect("read");
        assert_eq!(text, "hello world");
        for (offset, rest) in [(6, "world"), (11, ""), (50, "")] {
            text.clear();
            files.open_at(&path, offset).expect("open").read_to_string(&mut text).expect("read");
            assert_eq!(text, rest);
        }
        files.sync_file(&path).expect("sync_file");
        assert!(files.available_bytes(&inner).expect("available").is_none_or(|bytes| bytes > 0));
        files.truncate(&path, 5).expect("truncate");
        files.truncate(&path, 50).expect("truncate does not lengthen");
        assert_eq!(files.read(&path).expect("read"), b"hello");

        let other = inner.join("y");
        drop(files.create(&other).expect("create"));
        assert!(files.map(&other).expect("an empty file can be mapped").is_empty());
        files.rename(&path, &other).expect("rename replaces");
        assert_eq!(files.list(&inner).expect("list"), std::slice::from_ref(&other));
        assert!(!files.exists(&path).expect("exists") && files.exists(&other).expect("exists"));
        let moved = dir.join("c");
        files.rename(&inner, &moved).expect("rename of a directory");
        assert_eq!(files.read(&moved.join("y")).expect("read"), b"hello");
        assert_eq!(files.create(&moved).err().map(|e| e.kind()), Some(io::ErrorKind::IsADirectory));
        assert_eq!(files.read(&path).err().map(|e| e.kind()), Some(io::ErrorKind::NotFound));
        files.remove_file(&moved.join("y")).expect("remove_file");

        let lock = files.lock(&dir.join("lock")).expect("lock");
        let refused = files.lock(&dir.join("lock")).expect_err("locked");
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        assert!(refused.to_string().contains(&std::process::id().to_string()), "{refused}");
        drop(lock);
        drop(files.lock(&dir.join("lock")).expect("free again"));
        files.remove_dir_all(dir).expect("remove_dir_all");
        assert!(!files.exists(dir).expect("exists"));
    }
}

#[cfg(test)]
mod tests;
