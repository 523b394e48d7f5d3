//! Restore: copies a backup into a directory without a database.
//!
//! # Why not a copy of the files
//! Files copied over an old database would lie beside its log, which holds the changes after the backup: the
//! very changes that the restore is meant to undo. Here the target has no files of a database, and the copy
//! reserves a log of its own.

use crate::directory::DirectoryLock;
use std::path::Path;
use vervet_env::Environment;
use vervet_model::{Error, ErrorKind, Result};
use vervet_snapshot::Snapshot;
use vervet_store::{Base, CheckpointPosition, Store};

/// Copies the backup in `backup` into `directory`, as a database; returns its number of statements. The copy
/// verifies the checksums of all files. `report` is called with the number of bytes copied so far and the
/// total; its error ends the copy, and then there is no database in `directory`.
///
/// # Errors
/// [`ErrorKind::Input`]: there is no database in `backup`, or one that has been written to and so has a log;
/// there is a database in `directory`. [`ErrorKind::Corrupt`]: the backup is damaged; `directory` has files
/// of a database without a manifest, or a log. [`ErrorKind::Unavailable`]: a process writes to `directory`.
/// [`ErrorKind::Io`]. Those of `report`.
pub fn restore(
    environment: &Environment,
    backup: &Path,
    directory: &Path,
    report: &mut dyn FnMut(u64, u64) -> Result<()>,
) -> Result<u64> {
    let place = Store::open(environment, backup)?.checkpoint_position();
    if place.is_some_and(|place| place.begun) || vervet_log::find_id(environment, backup)?.is_some() {
        let message =
            format!("{} has a log: it is a database that was written to, not a backup", backup.display());
        return Err(Error::new(ErrorKind::Input, message)
            .with_hint("`vervet backup` copies a database together with what its log holds"));
    }
    let _lock = DirectoryLock::take(environment, directory)?;
    let timestamp = place.map_or(0, |place| place.timestamp);
    let log = CheckpointPosition::reserve(environment, timestamp)?;
    vervet_store::copy_generation(environment, backup, directory, log, report)?;
    Ok(Store::open(environment, directory)?.statement_count())
}
