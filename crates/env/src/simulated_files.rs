//! Simulated file system in memory with fault injection: power failures, I/O errors, full disks, bad sectors.
//!
//! # Shape
//! A tree of nodes. A file is its bytes and the number of synced ones; a directory is its current names and
//! those of its last sync. A crash therefore restores the synced names, and keeps of each file the synced
//! bytes and possibly some more. Bytes that a failed sync should have saved are doomed: they can be read, and
//! later syncs succeed, but no crash keeps them, as on systems that mark pages clean after a failed write
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
    /// The disk is full: every operation that needs space fails until [`SimulatedFiles::heal`]. A write first
    /// writes half of its bytes and reports so; the next one fails and writes nothing.
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
    dark: bool,
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

type Directory = Arc<Mutex<Names>>;
type File = Arc<Mutex<Content>>;

#[derive(Clone, Debug)]
enum Node {
    File(File),
    Directory(Directory),
}

#[derive(Debug, Default)]
struct Names {
    now: BTreeMap<OsString, Node>,
    synced: BTreeMap<OsString, Node>,
}

#[derive(Debug, Default)]
struct Content {
    bytes: Vec<u8>,
    /// Number of leading bytes that survive a crash.
    synced: usize,
    /// Exceptions: ranges whose sync has failed.
    doomed: Vec<Range<usize>>,
    locked: bool,
}

/// Policy for unsynced data in a crash.
#[derive(Clone, Copy)]
enum Luck<'a> {
    /// No unsynced data is kept.
    None,
    /// A prefix of a file, all names of a directory or none.
    Prefix(&'a SeededRandom),
    /// Any sectors of a file, any names of a directory.
    Parts(&'a SeededRandom),
}

/// Locks, ignoring poison: no operation panics half way, so the guarded data is consistent.
fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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
            dark: false,
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
        self.crash_with(|random| Luck::Prefix(random));
    }

    /// [`SimulatedFiles::crash`] that keeps no unsynced data.
    pub fn crash_losing_all(&self) {
        self.crash_with(|_| Luck::None);
    }

    /// [`SimulatedFiles::crash`] in which unsynced data reached the disk in any order: of the unsynced bytes
    /// some sectors (of 8 to 512 bytes) are kept and others are zeros; of the changed names of a directory
    /// some are old and some new.
    pub fn crash_reordering(&self) {
        self.crash_with(|random| Luck::Parts(random));
    }

    /// A new disk with the state that [`SimulatedFiles::crash_losing_all`] would leave of this one now.
    #[must_use]
    pub fn after_power_loss(&self) -> Self {
        let left = Self::new(0);
        let root = surviving(&guard(&self.state).root);
        guard(&left.state).root = root;
        left
    }

    fn crash_with(&self, luck: impl FnOnce(&SeededRandom) -> Luck<'_>) {
        let mut state = guard(&self.state);
        state.epoch += 1;
        state.heal();
        let root = state.root.clone();
        crash_directory(&root, luck(&state.random));
    }

    /// Lets the `n`-th modifying operation from now (0: the next one) fail.
    pub fn fail_write(&self, n: u64, fault: Fault) {
        let mut state = guard(&self.state);
        state.write_fault = Some((state.writes + n, fault));
    }

    /// Lets the `n`-th operation from now that reads a file (0: the next one) fail.
    pub fn fail_read(&self, n: u64) {
        let mut state = guard(&self.state);
        state.read_fault = Some(state.reads + n);
    }

    /// Makes this byte of a file unreadable until [`SimulatedFiles::heal`]. Reading it is an error; mapping
    /// the file panics, in place of the SIGBUS that would end the process on access.
    pub fn break_sector(&self, path: &Path, position: usize) {
        guard(&self.state).bad_sectors.insert((path.to_owned(), position));
    }

    /// Makes syncs of this directory fail as on a file system without directory syncs: an error of kind
    /// [`io::ErrorKind::InvalidInput`].
    pub fn refuse_sync_dir(&self, dir: &Path) {
        guard(&self.state).unsyncable.insert(dir.to_owned());
    }

    /// Sets the duration of each later sync of a file, by the real clock.
    pub fn slow_syncs(&self, time: Duration) {
        guard(&self.state).sync_time = time;
    }

    /// Sets the reported free space of the disk; `None`: unlimited. It does not limit writes.
    pub fn set_available(&self, bytes: Option<u64>) {
        guard(&self.state).available = bytes;
    }

    /// Ends all faults, including a full disk.
    pub fn heal(&self) {
        guard(&self.state).heal();
    }

    /// Number of modifying operations (writes, syncs, creations, removals, renames), so that a test can let
    /// each of them fail in turn.
    #[must_use]
    pub fn write_count(&self) -> u64 {
        guard(&self.state).writes
    }

    /// Number of operations that have read a file.
    #[must_use]
    pub fn read_count(&self) -> u64 {
        guard(&self.state).reads
    }

    /// Overwrites one byte of a file, like a failing disk.
    ///
    /// # Errors
    /// The file does not exist, or is shorter.
    pub fn damage(&self, path: &Path, position: usize, byte: u8) -> io::Result<()> {
        let state = guard(&self.state);
        let file = state.file(path)?;
        let mut content = guard(&file);
        *content.bytes.get_mut(position).ok_or(io::ErrorKind::UnexpectedEof)? = byte;
        Ok(())
    }

    /// The bytes of a file, and the position of the first unreadable one.
    fn reading(&self, path: &Path) -> io::Result<(Vec<u8>, Option<usize>)> {
        let mut state = guard(&self.state);
        let number = state.reads;
        state.reads += 1;
        if state.read_fault.is_some_and(|at| at == number) {
            return Err(injected());
        }
        let file = state.file(path)?;
        let bytes = guard(&file).bytes.clone();
        let bad = state.bad_sectors.iter().filter(|(file, at)| file == path && *at < bytes.len());
        let bad = bad.map(|(_, at)| *at).min();
        Ok((bytes, bad))
    }

    fn writer(&self, path: &Path, empty_it: bool) -> io::Result<Box<dyn WriteFile>> {
        let mut state = guard(&self.state);
        state.change(true)?;
        let (parent, name) = state.parent(path)?;
        let mut names = guard(&parent);
        let node = names.now.entry(name).or_insert_with(|| Node::File(File::default()));
        let Node::File(file) = node else { return Err(io::ErrorKind::IsADirectory.into()) };
        if empty_it {
            let mut content = guard(file);
            content.truncate(0);
        }
        Ok(Box::new(Handle { state: self.state.clone(), file: file.clone(), epoch: state.epoch }))
    }
}

/// A copy of the synced state.
fn surviving(directory: &Directory) -> Directory {
    let copy = |node: &Node| match node {
        Node::Directory(inner) => Node::Directory(surviving(inner)),
        Node::File(file) => {
            let Content { bytes, synced, doomed, .. } = &*guard(file);
            let mut left =
                Content { bytes: bytes.clone(), synced: *synced, doomed: doomed.clone(), locked: false };
            left.crash(Luck::None);
            Node::File(Arc::new(Mutex::new(left)))
        }
    };
    let names: BTreeMap<OsString, Node> =
        guard(directory).synced.iter().map(|(name, node)| (name.clone(), copy(node))).collect();
    Arc::new(Mutex::new(Names { now: names.clone(), synced: names }))
}

fn crash_directory(directory: &Directory, luck: Luck<'_>) {
    let mut names = guard(directory);
    match luck {
        Luck::Prefix(random) if random.below(2) == 0 => {}
        Luck::Parts(random) => {
            let Names { now, synced } = &mut *names;
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
        Luck::None | Luck::Prefix(_) => names.now = names.synced.clone(),
    }
    names.synced = names.now.clone();
    for node in names.now.values() {
        match node {
            Node::Directory(inner) => crash_directory(inner, luck),
            Node::File(file) => guard(file).crash(luck),
        }
    }
}

impl Content {
    fn crash(&mut self, luck: Luck<'_>) {
        let tail = (self.bytes.len() - self.synced) as u64;
        let kept = match luck {
            Luck::None => 0,
            Luck::Prefix(random) | Luck::Parts(random) => random.below(tail + 1),
        };
        let length = self.synced + usize::try_from(kept).unwrap_or(0);
        self.bytes.truncate(length);
        if let Luck::Parts(random) = luck {
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
        for doomed in std::mem::take(&mut self.doomed) {
            self.bytes[doomed.start.min(length)..doomed.end.min(length)].fill(0);
        }
        self.synced = length;
        self.locked = false;
    }

    fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
        self.doomed.retain_mut(|doomed| {
            doomed.end = doomed.end.min(length);
            doomed.start < doomed.end
        });
        self.synced = self.bytes.len();
    }
}

fn injected() -> io::Error {
    io::Error::other("the simulated disk failed")
}

impl State {
    fn heal(&mut self) {
        self.write_fault = None;
        self.read_fault = None;
        self.bad_sectors.clear();
        self.disk_full = false;
        self.dark = false;
    }

    /// Counts a modifying operation, and fails it if a fault is due.
    fn change(&mut self, needs_space: bool) -> io::Result<()> {
        let number = self.writes;
        self.writes += 1;
        match self.write_fault {
            Some((at, fault)) if at == number => {
                self.write_fault = None;
                match fault {
                    Fault::Io => return Err(injected()),
                    Fault::DiskFull => self.disk_full = true,
                    Fault::Power => self.dark = true,
                    Fault::Panic => panic!("a simulated panic"),
                }
            }
            _ => {}
        }
        if self.dark {
            return Err(injected());
        }
        if self.disk_full && needs_space { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn node(&self, path: &Path) -> io::Result<Node> {
        let mut node = Node::Directory(self.root.clone());
        for name in names_of(path)? {
            let Node::Directory(directory) = node else { return Err(io::ErrorKind::NotADirectory.into()) };
            node = guard(&directory).now.get(name).cloned().ok_or(io::ErrorKind::NotFound)?;
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
        self.change(false)?;
        let (parent, name) = self.parent(path)?;
        let mut names = guard(&parent);
        match names.now.get(&name).ok_or(io::ErrorKind::NotFound)? {
            Node::File(_) if directory => return Err(io::ErrorKind::NotADirectory.into()),
            Node::Directory(_) if !directory => return Err(io::ErrorKind::IsADirectory.into()),
            _ => names.now.remove(&name),
        };
        Ok(())
    }
}

/// The names from the root to `path`; relative paths start at the root too.
fn names_of(path: &Path) -> io::Result<Vec<&OsStr>> {
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
        let mut state = guard(&self.state);
        state.change(true)?;
        let mut directory = state.root.clone();
        for name in names_of(dir)? {
            let next = guard(&directory)
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
        self.writer(path, true)
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.writer(path, false)
    }

    fn truncate(&self, path: &Path, length: u64) -> io::Result<()> {
        let mut state = guard(&self.state);
        state.change(false)?;
        let file = state.file(path)?;
        let mut content = guard(&file);
        content.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        Ok(())
    }

    fn map(&self, path: &Path) -> io::Result<Bytes> {
        let (bytes, bad) = self.reading(path)?;
        assert!(bad.is_none(), "SIGBUS: {} is mapped and has a bad sector", path.display());
        Ok(Bytes::from(bytes))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self.reading(path)? {
            (bytes, None) => Ok(bytes),
            (_, Some(_)) => Err(injected()),
        }
    }

    fn open_at(&self, path: &Path, offset: u64) -> io::Result<Box<dyn Read + Send>> {
        let (bytes, bad) = self.reading(path)?;
        let at = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        Ok(Box::new(Reading { bytes, at, bad }))
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        let file = guard(&self.state).file(path)?;
        let length = guard(&file).bytes.len();
        Ok(length as u64)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = guard(&self.state);
        state.change(true)?;
        let node = state.node(from)?;
        let (old, old_name) = state.parent(from)?;
        let (new, new_name) = state.parent(to)?;
        if matches!(node, Node::Directory(_)) && names_of(to)?.starts_with(&names_of(from)?) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let replaced = guard(&new).now.get(&new_name).cloned();
        match (&node, &replaced) {
            (Node::File(_), Some(Node::Directory(_))) => return Err(io::ErrorKind::IsADirectory.into()),
            (Node::Directory(_), Some(Node::File(_))) => return Err(io::ErrorKind::NotADirectory.into()),
            (Node::Directory(_), Some(Node::Directory(inner))) if !guard(inner).now.is_empty() => {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            _ => {}
        }
        guard(&old).now.remove(&old_name);
        guard(&new).now.insert(new_name, node);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        guard(&self.state).remove(path, false)
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        guard(&self.state).remove(dir, true)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let directory = guard(&self.state).directory(dir)?;
        let names = guard(&directory);
        Ok(names.now.keys().map(|name| dir.join(name)).collect())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        match guard(&self.state).node(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = guard(&self.state);
        state.change(false)?;
        if state.unsyncable.contains(dir) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let directory = state.directory(dir)?;
        let mut names = guard(&directory);
        names.synced = names.now.clone();
        Ok(())
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        let mut state = guard(&self.state);
        state.change(false)?;
        let file = state.file(path)?;
        let mut content = guard(&file);
        content.synced = content.bytes.len();
        Ok(())
    }

    fn available_bytes(&self, _dir: &Path) -> io::Result<Option<u64>> {
        let state = guard(&self.state);
        Ok(if state.disk_full { Some(0) } else { state.available })
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        let state = guard(&self.state);
        let (parent, name) = state.parent(path)?;
        let mut names = guard(&parent);
        let node = names.now.entry(name).or_insert_with(|| Node::File(File::default()));
        let Node::File(file) = node else { return Err(io::ErrorKind::IsADirectory.into()) };
        let mut content = guard(file);
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
    fn change(&self, needs_space: bool) -> io::Result<()> {
        let mut state = guard(&self.state);
        if state.epoch != self.epoch {
            return Err(io::Error::other("this file was opened before the power failed"));
        }
        state.change(needs_space)
    }
}

/// A file opened for reading.
#[derive(Debug)]
struct Reading {
    bytes: Vec<u8>,
    at: usize,
    /// The first unreadable byte.
    bad: Option<usize>,
}

impl Read for Reading {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let length = out.len().min(self.bytes.len() - self.at);
        let end = match self.bad {
            Some(bad) if bad == self.at && length > 0 => return Err(injected()),
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
        let was_full = guard(&self.state).disk_full;
        let half = bytes.len() / 2;
        let (written, result) = match self.change(true) {
            Ok(()) => (bytes.len(), Ok(bytes.len())),
            // Like a real disk that fills up: a short write, then an error that has written nothing.
            Err(error) if error.kind() == io::ErrorKind::StorageFull && (was_full || half == 0) => {
                (0, Err(error))
            }
            Err(error) if error.kind() == io::ErrorKind::StorageFull => (half, Ok(half)),
            Err(error) => (half, Err(error)),
        };
        if guard(&self.state).epoch == self.epoch {
            guard(&self.file).bytes.extend_from_slice(&bytes[..written]);
        }
        result
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl WriteFile for Handle {
    fn sync(&mut self) -> io::Result<()> {
        let time = guard(&self.state).sync_time;
        if !time.is_zero() {
            std::thread::sleep(time);
        }
        let result = self.change(false);
        if result.is_ok() || guard(&self.state).epoch == self.epoch {
            let mut content = guard(&self.file);
            let tail = content.synced..content.bytes.len();
            match result {
                Ok(()) => content.synced = tail.end,
                Err(_) => content.doomed.push(tail),
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
        if guard(&self.0.state).epoch == self.0.epoch {
            let mut content = guard(&self.0.file);
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
