//! The database of the server: as it is now, not as it was when the process started.
//!
//! A process that does not own a directory sees it as it was when it opened it. Other processes write to it
//! meanwhile, so the server opens it again once its files have changed. With `--write` this process owns the
//! directory from its start to its end.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use vervet::{Database, DatabaseOptions, Error, Result};

pub(crate) struct ServedDatabase {
    directory: PathBuf,
    writes: bool,
    /// Held while the database is opened: concurrent calls open it once.
    opened: Mutex<Opened>,
}

struct Opened {
    database: Arc<Database>,
    files: Files,
}

/// Name, size and time of last change of each file of a directory.
type Files = Vec<(PathBuf, u64, Option<SystemTime>)>;

impl ServedDatabase {
    /// # Errors
    /// Those of [`Database::open_with`]; with `writes`, another process writes to the directory.
    pub(crate) fn open(directory: &Path, writes: bool) -> Result<Self> {
        let files = files(directory)?;
        let options = DatabaseOptions { to_write: writes, ..DatabaseOptions::default() };
        let database = Database::open_with(directory, options)?;
        if writes {
            database.describe_owner("vervet mcp");
        }
        let opened = Opened { database: Arc::new(database), files };
        Ok(Self { directory: directory.to_owned(), writes, opened: Mutex::new(opened) })
    }

    /// The database with everything that was committed before the call.
    ///
    /// # Errors
    /// As [`ServedDatabase::open`].
    pub(crate) fn current(&self) -> Result<Arc<Database>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.writes {
            // Before the opening: a change during it is found by the next call.
            let files = files(&self.directory)?;
            if files != opened.files {
                *opened = Opened { database: Arc::new(Database::open(&self.directory)?), files };
            }
        }
        Ok(Arc::clone(&opened.database))
    }
}

/// The files of a directory and of its folders, sorted.
fn files(directory: &Path) -> Result<Files> {
    let mut found = Vec::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder)
            .map_err(|error| Error::io(format!("read the directory {}", folder.display()), &error))?;
        // A file that disappears meanwhile belongs to a state that another process has replaced.
        for entry in entries.flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            match metadata.is_dir() {
                true => folders.push(entry.path()),
                false => found.push((entry.path(), metadata.len(), metadata.modified().ok())),
            }
        }
    }
    found.sort();
    Ok(found)
}
