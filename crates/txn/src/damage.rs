//! Damaged logs: detection of the damage, and cutting the log there.
//!
//! # Why cutting is explicit
//! Acknowledged commits may follow the damage. A log torn by a loss of power has none after the tear, and is
//! cut automatically (docs/format.md).

use crate::directory::DirectoryLock;
use crate::mutation::Timestamp;
use crate::recovery::{self, Recovered};
use std::path::{Path, PathBuf};
use vervet_env::Environment;
use vervet_log::{Log, LogOptions, ReadOptions};
use vervet_model::{ErrorKind, Result};
use vervet_store::Store;

/// Location of log damage, and the loss if the log is cut there.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Damage {
    /// The damaged file.
    pub file: PathBuf,
    /// Position in the file, in bytes.
    pub offset: u64,
    /// Description of the damage.
    pub reason: String,
    /// The last commit before the damage.
    pub last_kept: Timestamp,
    /// Number of bytes that a cut discards, including later files.
    pub bytes_lost: u64,
    /// Number of readable records among them: commits, and terms that they use. Damaged records are not
    /// counted, so the true number may be larger.
    pub records_lost: u64,
}

/// Looks for damage in the log of the database in `directory`. Changes nothing, and takes no lock: another
/// process may write to the database meanwhile.
///
/// # Errors
/// [`ErrorKind::Input`]: there is no database. [`ErrorKind::Corrupt`]: damage that cutting the log cannot
/// repair.
pub fn find_damage(environment: &Environment, directory: &Path) -> Result<Option<Damage>> {
    match recovery::recover_beside(environment, directory) {
        Ok(_) => Ok(None),
        Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unavailable) => {
            examine(environment, directory, false)
        }
        Err(error) => Err(error),
    }
}

/// Cuts the log of the database in `directory` at its damage; returns the loss, or `None` for an undamaged
/// log. All commits before the damage are durable on return.
///
/// # Errors
/// As [`find_damage`]; [`ErrorKind::Unavailable`]: another process writes to it. [`ErrorKind::Io`]: the call
/// may be repeated.
pub fn cut_at_damage(environment: &Environment, directory: &Path) -> Result<Option<Damage>> {
    // Before the lock, which would create a missing directory.
    Store::open(environment, directory)?;
    let _lock = DirectoryLock::take(environment, directory)?;
    examine(environment, directory, true)
}

fn examine(environment: &Environment, directory: &Path, cut: bool) -> Result<Option<Damage>> {
    let store = Store::open(environment, directory)?;
    let options = ReadOptions { truncate_at_damage: true, ..ReadOptions::default() };
    let Recovered { timestamp, found, .. } = recovery::recover(environment, directory, store, &options)?;
    let Some((place, reason)) = found.truncation.as_ref().and_then(|cut| Some((cut, cut.damage.clone()?)))
    else {
        return Ok(None);
    };
    let damage = Damage {
        file: place.file.clone(),
        offset: place.offset,
        reason,
        last_kept: timestamp,
        bytes_lost: place.bytes,
        records_lost: place.records,
    };
    if cut {
        Log::open(environment, directory, found, LogOptions::default())?.close()?;
    }
    Ok(Some(damage))
}
