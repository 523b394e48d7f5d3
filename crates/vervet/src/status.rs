//! Database statistics beside those of storage: file sizes.

use crate::database::Database;
use std::path::Path;
use vervet_env::{Environment, FileSystem};

/// The maximum depth of folders in a database.
const FOLDERS_DEEP: usize = 2;

/// Bytes of the files of a database.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct FileBytes {
    /// All files.
    pub all: u64,
    /// The log files among them.
    pub log: u64,
}

impl FileBytes {
    /// The sizes of the files in a directory and two levels of folders.
    #[must_use]
    pub fn of_directory(environment: &Environment, directory: &Path) -> Self {
        let mut bytes = Self::default();
        count_files(&*environment.files, directory, FOLDERS_DEEP, &mut bytes);
        bytes
    }
}

impl Database {
    /// The sizes of the files of the database; 0 in memory. Files created or removed meanwhile may be
    /// missing.
    ///
    /// # Cost
    /// One system call for each file.
    #[must_use]
    pub fn file_bytes(&self) -> FileBytes {
        let transactions = self.transactions();
        let of_files = |directory| FileBytes::of_directory(self.environment(), directory);
        transactions.directory().map(of_files).unwrap_or_default()
    }
}

fn count_files(files: &dyn FileSystem, directory: &Path, deep: usize, sum: &mut FileBytes) {
    for path in files.list(directory).unwrap_or_default() {
        if deep > 0 && files.list(&path).is_ok() {
            count_files(files, &path, deep - 1, sum);
        } else if let Ok(bytes) = files.length(&path) {
            sum.all += bytes;
            if path.extension().is_some_and(|extension| extension == "log") {
                sum.log += bytes;
            }
        }
    }
}
