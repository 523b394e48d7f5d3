//! Figures of a database beside those of its storage: files, and the cache of plans.

use crate::Database;
use std::path::Path;
use vervet_env::FileSystem;

/// Folders of a database in each other, at most.
const FOLDERS_DEEP: usize = 2;

/// Bytes of the files of a database.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct FileBytes {
    /// Of all files.
    pub all: u64,
    /// Of the files of the log among them.
    pub log: u64,
}

/// How often the cache of queries that were parsed before has helped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct PlanCacheCounts {
    /// Queries that were in it.
    pub hits: u64,
    /// Queries that were not.
    pub misses: u64,
}

impl Database {
    /// What the files of the database take; nothing in memory. Files that come or go meanwhile may be
    /// missing.
    ///
    /// # Cost
    /// A call of the system for each file.
    #[must_use]
    pub fn file_bytes(&self) -> FileBytes {
        let mut bytes = FileBytes::default();
        if let Some(directory) = self.directory() {
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
