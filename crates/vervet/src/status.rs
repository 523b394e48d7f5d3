//! Database statistics beside those of storage: file sizes.

use crate::database::Database;
use std::path::Path;
use vervet_env::FileSystem;

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

impl Database {
    /// The sizes of the files of the database; 0 in memory. Files created or removed meanwhile may be
    /// missing.
    ///
    /// # Cost
    /// One system call for each file.
    #[must_use]
    pub fn file_bytes(&self) -> FileBytes {
        let mut bytes = FileBytes::default();
        if let Some(directory) = self.transactions().directory() {
            count_files(&*self.environment().files, directory, FOLDERS_DEEP, &mut bytes);
        }
        bytes
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
