//! The file system interface: the operations that the store needs.
//!
//! # Durability
//! Written data is durable after [`WriteFile::sync`]; the creation, renaming or removal of a name is durable
//! after [`FileSystem::sync_dir`] of its directory. There are no other guarantees.

use crate::Bytes;
use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// A file opened for writing, at its start or its end.
pub trait WriteFile: Write + Send {
    /// Returns once everything written so far (including the length) survives a power failure.
    ///
    /// # Errors
    /// The data may then be lost even if a later call succeeds: treat the file as damaged.
    fn sync(&mut self) -> io::Result<()>;
}

/// Holds an exclusive lock until it is dropped.
pub trait LockGuard: Send + Sync + fmt::Debug {
    /// Describes the lock holder for the error that other processes get; does nothing by default.
    ///
    /// # Errors
    /// The text could not be written; the lock stays held.
    fn describe(&self, _text: &str) -> io::Result<()> {
        Ok(())
    }
}

/// A file system. All methods return the errors of the operating system.
#[expect(clippy::missing_errors_doc, reason = "said once, for the whole trait")]
pub trait FileSystem: Send + Sync + fmt::Debug {
    /// Creates `dir` and its missing ancestors.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// Opens a file for writing; an existing one is truncated.
    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>>;

    /// Opens a file for appending; a missing one is created.
    fn append(&self, path: &Path) -> io::Result<Box<dyn WriteFile>>;

    /// Truncates a file to `length` bytes (no effect if it is shorter) and syncs it.
    fn truncate(&self, path: &Path, length: u64) -> io::Result<()>;

    /// Maps a file that is no longer changed in place.
    fn map(&self, path: &Path) -> io::Result<Bytes>;

    /// A copy of the bytes of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Opens a file for reading from its start. Not buffered.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        self.open_at(path, 0)
    }

    /// Opens a file for reading from byte `offset` on, which may be past its end. Not buffered. The file may
    /// still be written: reading stops at its end at that moment.
    fn open_at(&self, path: &Path, offset: u64) -> io::Result<Box<dyn Read + Send>>;

    /// Length of a file in bytes.
    fn length(&self, path: &Path) -> io::Result<u64>;

    /// Renames a file or directory; an existing file of the new name is replaced, atomically.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes a directory and everything inside.
    fn remove_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// Removes an empty directory.
    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        if self.list(dir)?.is_empty() {
            return self.remove_dir_all(dir);
        }
        Err(io::Error::from(io::ErrorKind::DirectoryNotEmpty))
    }

    /// The paths (`dir` and a name) of the files and directories inside `dir`, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>>;

    /// Whether a file or directory exists.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// Returns once the names inside `dir` survive a power failure.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Returns once everything that a reader of the file can see survives a power failure, also if another
    /// process wrote it. Requires only read permission. After a failed sync by the writer this call may
    /// succeed nevertheless.
    fn sync_file(&self, path: &Path) -> io::Result<()>;

    /// Number of bytes that this process may still write to the file system of `dir`; `None`: unknown.
    fn available_bytes(&self, dir: &Path) -> io::Result<Option<u64>>;

    /// Takes the exclusive lock of `path`, a separate file that is created if missing. Never waits: while
    /// another owner holds the lock, this is an error of kind [`io::ErrorKind::WouldBlock`] whose text names
    /// the process of the owner. The lock holder may remove the lock file: the lock is that of the file that
    /// has the name when this returns.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>>;
}

/// Whether an operation failed for lack of space, so that the same operation may succeed once there is room.
/// Such a failed write has written only the bytes that it reported as written.
#[must_use]
pub fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Whether a directory sync failed because its file system has no such operation (some network and FUSE file
/// systems, drvfs). Names there are as durable as possible.
#[must_use]
pub fn is_directory_sync_unsupported(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

/// The error of [`FileSystem::lock`] when `owner` has the lock: the text of the lock file, that is a process
/// id and in a second line an optional description of the process.
pub(crate) fn locked_by(owner: &str) -> io::Error {
    let (owner, of_itself) = owner.split_once('\n').unwrap_or((owner, ""));
    let owner = owner.trim();
    let of_itself = match of_itself.trim() {
        "" => String::new(),
        text if text.contains(char::is_control) => String::new(),
        text => format!(" ({text})"),
    };
    let message = if owner.is_empty() || !owner.bytes().all(|byte| byte.is_ascii_digit()) {
        "another process holds the lock".to_owned()
    } else if owner == std::process::id().to_string() {
        format!("this process ({owner}) holds the lock already")
    } else {
        format!("process {owner}{of_itself} holds the lock")
    };
    io::Error::new(io::ErrorKind::WouldBlock, message)
}
