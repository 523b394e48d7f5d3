//! A log that is damaged: what is wrong, and what cutting it there loses.
//!
//! # Why it is a choice
//! Behind the damage there may be commits that were acknowledged. A log that is torn by a loss of power has
//! none there, and is cut without asking (docs/format.md).

use crate::change::Timestamp;
use crate::directory::Locked;
use crate::recovery::{self, Recovered};
use std::path::{Path, PathBuf};
use vervet_env::Environment;
use vervet_log::{Log, LogOptions, ReadOptions};
use vervet_model::{ErrorKind, Result};
use vervet_store::Store;

/// Where a log is damaged, and what cutting it there loses.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// What is wrong there.
    pub reason: String,
    /// The last commit that is kept.
    pub last_kept: Timestamp,
    /// Bytes that are thrown away, those of later files included.
    pub bytes_lost: u64,
    /// Records among them that can still be told: commits, and terms that they use. What is damaged is not
    /// counted, so there may have been more.
    pub records_lost: u64,
}

/// Whether the log of the database in `directory` is damaged. Changes nothing, and takes no lock: another
/// process may write to the database meanwhile.
///
/// # Errors
/// [`ErrorKind::Input`]: there is no database. [`ErrorKind::Corrupt`]: damage that cutting the log would not
/// heal.
pub fn find_damage(environment: &Environment, directory: &Path) -> Result<Option<Damage>> {
    match recovery::recover_beside(environment, directory) {
        Ok(_) => Ok(None),
        Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unavailable) => {
            examine(environment, directory, false)
        }
        Err(error) => Err(error),
    }
}

/// Cuts the log of the database in `directory` where it is damaged; what was lost, or `None` if it is sound.
/// All commits before the damage are durable on return.
///
/// # Errors
/// As [`find_damage`]; [`ErrorKind::Unavailable`]: another process writes to it. [`ErrorKind::Io`], and then
/// it may be tried again.
pub fn cut_at_damage(environment: &Environment, directory: &Path) -> Result<Option<Damage>> {
    // Before the lock, which would make a directory that is not there.
    Store::open(environment, directory)?;
    let _lock = Locked::take(environment, directory)?;
    examine(environment, directory, true)
}

fn examine(environment: &Environment, directory: &Path, cut: bool) -> Result<Option<Damage>> {
    let store = Store::open(environment, directory)?;
    let options = ReadOptions { cut_at_damage: true, ..ReadOptions::default() };
    let Recovered { timestamp, found, .. } = recovery::recover(environment, directory, store, &options)?;
    let Some((place, reason)) = found.cut.as_ref().and_then(|cut| Some((cut, cut.damage.clone()?))) else {
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
