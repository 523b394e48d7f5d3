//! Locking and preparing a database directory: foreign files, the lock file, and cleanup after a failure.
//!
//! # Invariants
//! 1. A directory with files that are not Vervet's never becomes a database.
//! 2. If nothing was published, the writer removes the directories and the lock file that it created.

use std::path::{Path, PathBuf};
use vervet_env::{Environment, LockGuard};
use vervet_model::{Error, ErrorKind, Result};

/// File whose lock a writer holds.
const LOCK: &str = "LOCK";
/// File that makes a directory a database.
const MANIFEST: &str = "MANIFEST";
/// Prefix of a server's description in the lock file; its address follows.
const SERVER: &str = "vervet serve";
/// Maximum attempts to create a directory that another process removes meanwhile.
const ATTEMPTS_MAX: usize = 3;

/// A locked directory.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    environment: Environment,
    directory: PathBuf,
    /// Whether this process created the lock file.
    made_lock: bool,
    /// Directories created for this one, the innermost first.
    made: Vec<PathBuf>,
    /// `None` only while this is dropped.
    guard: Option<Box<dyn LockGuard>>,
}

impl DirectoryLock {
    /// Takes the directory for writing: creates and locks it.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`]: another process writes to it. [`ErrorKind::Input`]: it has foreign files
    /// and no database. [`ErrorKind::Io`].
    pub(crate) fn take(environment: &Environment, directory: &Path) -> Result<Self> {
        refuse_foreign(environment, directory)?;
        let mut attempt = 0;
        loop {
            match Self::try_take(environment, directory) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound && attempt < ATTEMPTS_MAX => {
                    attempt += 1;
                }
                Err(error) => return Err(lock_error(directory, &error)),
                Ok(locked) => return Ok(locked),
            }
        }
    }

    fn try_take(environment: &Environment, directory: &Path) -> std::io::Result<Self> {
        let files = &environment.files;
        let mut made = Vec::new();
        for above in directory.ancestors().filter(|above| !above.as_os_str().is_empty()) {
            if files.exists(above)? {
                break;
            }
            made.push(above.to_owned());
        }
        let path = directory.join(LOCK);
        files.create_dir_all(directory)?;
        let made_lock = !files.exists(&path)?;
        let locked = |guard| Self {
            environment: environment.clone(),
            directory: directory.to_owned(),
            made_lock,
            made,
            guard,
        };
        match files.lock(&path) {
            Ok(guard) => Ok(locked(Some(guard))),
            Err(error) => {
                // If another process has the lock, the directory is not empty.
                let _ = locked(None).remove_made();
                Err(error)
            }
        }
    }

    /// Writes a description of the lock holder into the lock file, for error messages of other processes.
    pub(crate) fn describe(&self, text: &str) {
        if let Some(guard) = &self.guard {
            // A failure only makes a message less specific.
            let _ = guard.describe(text);
        }
    }

    /// Removes the created directories, if they are empty except for the lock file.
    fn remove_made(&self) -> std::io::Result<()> {
        let files = &self.environment.files;
        for directory in &self.made {
            files.remove_dir(directory)?;
        }
        Ok(())
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        let Some(guard) = self.guard.take() else { return };
        let files = &self.environment.files;
        let is_database = files.exists(&self.directory.join(MANIFEST)).unwrap_or(true);
        if !is_database && self.made_lock {
            // While the lock is held: a process that waits for this file then finds that the name no longer
            // refers to it.
            let _ = files.remove_file(&self.directory.join(LOCK));
            let _ = self.remove_made();
        }
        drop(guard);
    }
}

/// The error of a failed lock.
fn lock_error(directory: &Path, error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            let message = format!("could not write to {}: {error}", directory.display());
            let hint = match error.to_string().contains(SERVER) {
                true => "a server runs until it is stopped: send updates to its address, or stop it first",
                false => "try again when it has ended",
            };
            Error::new(ErrorKind::Unavailable, message).with_hint(hint)
        }
        _ => Error::io(format_args!("lock {}", directory.join(LOCK).display()), error),
    }
}

/// # Errors
/// [`ErrorKind::Input`]: `directory` has foreign files and no database.
fn refuse_foreign(environment: &Environment, directory: &Path) -> Result<()> {
    let Ok(paths) = environment.files.list(directory) else { return Ok(()) };
    let names = || paths.iter().filter_map(|path| path.file_name()?.to_str());
    if names().any(|name| name == MANIFEST) {
        return Ok(());
    }
    let Some(foreign) = names().find(|name| !is_known(name)) else { return Ok(()) };
    let message = format!("{} is no database, and has other files, such as {foreign}", directory.display());
    Err(Error::new(ErrorKind::Input, message)
        .with_hint("name a directory that is empty or does not exist yet"))
}

/// Whether a file of this name may exist in the directory of a new database: Vervet's own files, hidden
/// files, and those that file systems create in their roots.
fn is_known(name: &str) -> bool {
    const BEGINNINGS: [&str; 8] =
        [".", "MANIFEST", "UNFINISHED", "ORIGIN", "segments-", "dictionary-", "wal-", "build-"];
    name == LOCK || name == "lost+found" || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}
