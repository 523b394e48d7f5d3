//! Where a backup is that is not a directory: objects of immutable content, and one that is replaced.
//!
//! # Shape
//! [`BackupStore`] is what [`crate::backup_to_store()`] and [`crate::restore_from_store()`] need of object
//! storage. A directory is none: its backups are read and written in place, with locks and syncs.
//! # Not here
//! Protocols (`vervet-object`).

use std::fmt;
use std::io::Write;
use std::path::Path;
use vervet_model::Result;

/// An object of a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredObject {
    /// Its name in the backup, of parts with `/` between them.
    pub name: String,
    /// Its length in bytes.
    pub size_bytes: u64,
}

/// The content of a small object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredText {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Names this version of it.
    pub tag: String,
}

/// The objects of a backup. What a call has written is durable when it returns. All methods have the errors
/// of the store, and those of the limits of the thread ([`vervet_model::ThreadLimits`]).
#[expect(clippy::missing_errors_doc, reason = "said once, for the whole trait")]
pub trait BackupStore: fmt::Debug {
    /// Where it is, for messages.
    fn location(&self) -> String;

    /// All objects whose names begin with a text.
    fn list(&self, begin: &str) -> Result<Vec<StoredObject>>;

    /// The content of an object of `bytes_max` bytes at most; `None`: there is none of this name.
    fn read(&self, name: &str, bytes_max: u64) -> Result<Option<StoredText>>;

    /// Writes the content of an object to `out`. `progress` gets the number of bytes of each step; its errors
    /// end the call.
    fn download(
        &self,
        object: &StoredObject,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<()>;

    /// Stores a file as an object, as a whole or not at all. `progress` is as for downloads.
    fn upload(&self, name: &str, file: &Path, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<()>;

    /// Stores a small object in place of the version `before`, or where there is none of this name; `false`:
    /// there is another version.
    fn replace(&self, name: &str, bytes: &[u8], before: Option<&str>) -> Result<bool>;

    /// Removes an object, which may be missing.
    fn remove(&self, name: &str) -> Result<()>;
}
