//! Files: what the store asks of a file system, and no more.
//!
//! # Durability
//! What was written is safe after [`WriteFile::sync`]; that a file exists under its name, or no longer
//! does, is safe after [`FileSystem::sync_dir`] of its directory. Nothing else is promised.

use crate::Bytes;
use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// A file that is being written, from its start or its end on.
pub trait WriteFile: Write + Send {
    /// Returns once everything written so far (its length too) survives a power failure.
    ///
    /// # Errors
    /// The data may then be lost even if a later call succeeds: treat the file as damaged.
    fn sync(&mut self) -> io::Result<()>;
}

/// Holds an exclusive lock until it is dropped.
pub trait LockGuard: Send + Sync + fmt::Debug {
    /// Says who holds the lock, in the error of those who want it meanwhile; by default nothing.
    ///
    /// # Errors
    /// The text could not be written; the lock is held all the same.
    fn describe(&self, _text: &str) -> io::Result<()> {
        Ok(())
    }
}

/// A file system. All methods return what the operating system says as their error.
#[expect(clippy::missing_errors_doc, reason = "said once, for the whole trait")]
pub trait FileSystem: Send + Sync + fmt::Debug {
    /// Makes `dir` and the missing directories above it.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// Opens a file for writing; an existing one is emptied.
    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>>;

    /// Opens a file for writing behind its end; a missing one is created.
    fn append(&self, path: &Path) -> io::Result<Box<dyn WriteFile>>;

    /// Cuts a file down to `length` bytes (no effect if it is shorter) and syncs it.
    fn truncate(&self, path: &Path, length: u64) -> io::Result<()>;

    /// The bytes of a file that is never changed in place any more.
    fn map(&self, path: &Path) -> io::Result<Bytes>;

    /// A copy of the bytes of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Opens a file for reading from its start on. Not buffered.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        self.open_at(path, 0)
    }

    /// Opens a file for reading from byte `offset` on; behind its end there is nothing to read. Not buffered.
    /// The file may be one that is still written: reading stops wherever it ends at that moment.
    fn open_at(&self, path: &Path, offset: u64) -> io::Result<Box<dyn Read + Send>>;

    /// Length of a file in bytes.
    fn length(&self, path: &Path) -> io::Result<u64>;

    /// Renames a file or directory; an existing file of the new name is replaced, atomically.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes a directory and everything inside.
    fn remove_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// Removes a directory in which there is nothing.
    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        if self.list(dir)?.is_empty() {
            return self.remove_dir_all(dir);
        }
        Err(io::Error::from(io::ErrorKind::DirectoryNotEmpty))
    }

    /// The paths (`dir` and a name) of the files and directories inside `dir`, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>>;

    /// Whether there is a file or directory.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// Returns once the names inside `dir` survive a power failure.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Returns once everything that a reader of the file can see survives a power failure, also if another
    /// process wrote it. Needs leave to read the file, no more. After a failed sync by its writer this may
    /// succeed all the same.
    fn sync_file(&self, path: &Path) -> io::Result<()>;

    /// How many bytes this process may still write to the file system that holds `dir`; `None`: unknown.
    fn available_bytes(&self, dir: &Path) -> io::Result<Option<u64>>;

    /// Takes the exclusive lock of `path`, a file of its own that is created if missing. Never waits: while
    /// somebody else holds the lock, this is an error of kind [`io::ErrorKind::WouldBlock`] whose text names
    /// the process that does. A lock file may be removed by the one who holds its lock: the lock is that of
    /// the file that has the name when this returns.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>>;
}

/// Whether an operation failed for want of space, so that the same operation may succeed once there is room.
/// A write that failed so has written nothing of the bytes that it did not report as written.
#[must_use]
pub fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Whether a directory could not be synced because its file system has no such operation (some network and
/// FUSE file systems, drvfs). Names there are as durable as they will ever be.
#[must_use]
pub fn cannot_sync_dir(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

/// The error of [`FileSystem::lock`] when `owner` has the lock: text from the file, a process id, and what
/// the process says of itself in a second line, if it does.
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
